/* The fence: on disk the superblock's extension is an object header with one message that no HDF5 knows and that says
 * "fail if unknown and open for write". So HDF5 without h5cow reads the file and cannot open it for writing. Here are
 * the few fields of a superblock (version 3) that the journal must know, and the making of that object header. */
#ifndef COW_JOURNAL_FENCE_H
#define COW_JOURNAL_FENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COW_SUPERBLOCK_MAX 48 /* bytes of a version 3 superblock with addresses of 8 bytes */

/* What HDF5 protects its metadata with. */
uint32_t cow_metadata_checksum(const uint8_t *bytes, size_t size);

bool cow_superblock_signature(const uint8_t *bytes);
/* Bytes of the superblock that starts here, 0: none of version 3 with addresses of 4 or 8 bytes. 12 bytes are looked
 * at. */
size_t cow_superblock_size(const uint8_t *bytes);
/* Its checksum is right. */
bool cow_superblock_whole(const uint8_t *superblock);
/* Its own address, which is also the size of the user block, as of when it was written. */
uint64_t cow_superblock_base(const uint8_t *superblock);
/* It stands at BASE now. What is not whole stays as it is. */
void cow_superblock_move(uint8_t *superblock, uint64_t base);
/* Address of the extension, relative to the base; COW_NOWHERE: none. */
uint64_t cow_superblock_extension(const uint8_t *superblock);
uint64_t cow_superblock_end(const uint8_t *superblock);
/* The file ends at END; the checksum is made by cow_superblock_set. */
void cow_superblock_set_end(uint8_t *superblock, uint64_t end);
/* "Somebody is writing": HDF5 refuses to open a file with this flag. */
bool cow_superblock_flagged(const uint8_t *superblock);
void cow_superblock_set(uint8_t *superblock, uint64_t extension, bool flagged);
/* Are these two the same but for the end of the file and the checksum? */
bool cow_superblock_same_but_end(const uint8_t *a, const uint8_t *b);

/* Is this the beginning of a fence header? */
bool cow_fence_is(const uint8_t *bytes, size_t size);
/* Bytes of the object header that starts with these SIZE bytes: 0, they are too few or not one of version 2. */
size_t cow_fence_source_size(const uint8_t *bytes, size_t size);
/* The fence header, with the messages of the file's real extension (NULL: it has none). Returns its size, 0: no room.
 */
size_t cow_fence_make(uint8_t *to, size_t room, const uint8_t *extension);

#endif
