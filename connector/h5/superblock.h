/* The few fields of a superblock of version 3 that the journal must know, and those in which version 2 is the same (HDF5 File Format Specification, II.A). */
#ifndef COW_SUPERBLOCK_H
#define COW_SUPERBLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COW_SUPERBLOCK_MAX 48 /* bytes of a version 3 superblock with addresses of 8 bytes */

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
/* Address of the extension, relative to the base; UINT64_MAX: none. */
uint64_t cow_superblock_extension(const uint8_t *superblock);
uint64_t cow_superblock_end(const uint8_t *superblock);
/* The file ends at END; the checksum is made by cow_superblock_set. */
void cow_superblock_set_end(uint8_t *superblock, uint64_t end);
/* "Somebody is writing": HDF5 refuses to open a file with this flag. */
bool cow_superblock_flagged(const uint8_t *superblock);
void cow_superblock_set(uint8_t *superblock, uint64_t extension, bool flagged);
/* Are these two the same but for the end of the file and the checksum? */
bool cow_superblock_same_but_end(const uint8_t *a, const uint8_t *b);

#endif
