/* Closing ids of any kind together, at the end of a function. */
#ifndef COW_IDS_H
#define COW_IDS_H

#include <hdf5.h>

#include <stddef.h>

/* Close those of the ids that are not negative, in this order. Who needs to know whether that worked calls H5?close. */
#define cow_close(...) cow_close_ids((hid_t[]){__VA_ARGS__}, sizeof((hid_t[]){__VA_ARGS__}) / sizeof(hid_t))
void cow_close_ids(const hid_t ids[], size_t count);

#endif
