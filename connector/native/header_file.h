/* New objects, written as bytes into a file of which the bytes can be had: h5/new_header.h, h5/small_group.h. */
#ifndef COW_HEADER_FILE_H
#define COW_HEADER_FILE_H

#include "h5/small_group.h"
#include "native/native.h"

/* The header that cow_new_header makes of these messages is written to *ADDRESS, which nothing leads to. TIMES: it has those of now. -1: recorded. */
int cow_header_write(const cow_native_bytes *bytes, uint8_t *messages, const uint8_t *end, bool times,
                     uint64_t *address);

/* The SIZE bytes of a header are written to *ADDRESS, which nothing leads to. -1: recorded. */
int cow_header_put(const cow_native_bytes *bytes, const uint8_t *header, size_t size, uint64_t *address);

/* The group that cow_small_group_encode makes. -1: recorded. */
int cow_small_group_write(const cow_native_bytes *bytes, const cow_small_group *group, size_t room, size_t names,
                          uint64_t *address);

#endif
