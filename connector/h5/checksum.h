/* What HDF5 protects its metadata with. */
#ifndef COW_H5_CHECKSUM_H
#define COW_H5_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint32_t cow_metadata_checksum(const uint8_t *bytes, size_t size);

/* Of SIZE bytes the last four are the checksum of the others: are they? And they become it. */
bool cow_metadata_whole(const uint8_t *bytes, size_t size);
void cow_metadata_sum_up(uint8_t *bytes, size_t size);

#endif
