/* The few fields of a superblock of version 3 that the journal must know, and those in which version 2 is the same (HDF5 File Format Specification, II.A). */
#ifndef COW_SUPERBLOCK_H
#define COW_SUPERBLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COW_SUPERBLOCK_MAX 48 /* bytes of a version 3 superblock with addresses of 8 bytes */

bool cow_superblock_signature(const uint8_t *bytes);
unsigned cow_superblock_version(const uint8_t *superblock);
/* Of version 2 or 3, and its addresses and lengths have 8 bytes. */
bool cow_superblock_wide(const uint8_t *superblock);
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
uint64_t cow_superblock_root(const uint8_t *superblock);
/* The file ends at END, and the root group is at ROOT; the checksum is made by cow_superblock_set, or cow_metadata_sum_up. */
void cow_superblock_set_end(uint8_t *superblock, uint64_t end);
void cow_superblock_set_root(uint8_t *superblock, uint64_t root);
/* One of which nothing is known but where it stands. */
void cow_superblock_new(uint8_t superblock[COW_SUPERBLOCK_MAX], uint64_t base);
/* "Somebody is writing": HDF5 refuses to open a file of version 2 or 3 with this flag. 12 bytes are looked at. */
bool cow_superblock_flagged(const uint8_t *superblock);
void cow_superblock_set(uint8_t *superblock, uint64_t extension, bool flagged);
/* Are these two the same but for the end of the file and the checksum? */
bool cow_superblock_same_but_end(const uint8_t *a, const uint8_t *b);

#endif
