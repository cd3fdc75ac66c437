/* The fence: on disk the superblock's extension is an object header with one message that no HDF5 knows and that says
 * "fail if unknown and open for write". So HDF5 without h5cow reads the file and cannot open it for writing. */
#ifndef COW_JOURNAL_FENCE_H
#define COW_JOURNAL_FENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is this the beginning of a fence header? */
bool cow_fence_is(const uint8_t *bytes, size_t size);
/* Bytes of the object header that starts with these SIZE bytes: 0, they are too few or not one of version 2. */
size_t cow_fence_source_size(const uint8_t *bytes, size_t size);
/* The fence header, with the messages of the file's real extension (NULL: it has none). Returns its size, 0: no room.
 */
size_t cow_fence_make(uint8_t *to, size_t room, const uint8_t *extension);

#endif
