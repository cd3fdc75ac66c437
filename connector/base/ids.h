/* Closing ids of any kind together, at the end of a function. */
#ifndef COW_IDS_H
#define COW_IDS_H

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>

/* H5P_DATASET_XFER_DEFAULT without what makes sure that the library is open, which takes its lock each time: in callbacks it is. */
static inline hid_t cow_default_transfer(void)
{
    return H5P_LST_DATASET_XFER_ID_g;
}
static inline bool cow_is_default_transfer(hid_t dxpl)
{
    return dxpl == H5P_DEFAULT || dxpl == cow_default_transfer();
}

/* Close those of the ids that are not negative, in this order. Who needs to know whether that worked calls H5?close. */
#define cow_close(...) cow_close_ids((hid_t[]){__VA_ARGS__}, sizeof((hid_t[]){__VA_ARGS__}) / sizeof(hid_t))
void cow_close_ids(const hid_t ids[], size_t count);

#endif
