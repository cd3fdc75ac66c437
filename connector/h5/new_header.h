/* Object headers that are new, as HDF5 would write them (HDF5 File Format Specification, IV.A, version 2). */
#ifndef COW_NEW_HEADER_H
#define COW_NEW_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COW_NEW_START 26 /* bytes that may stand before the messages, */
#define COW_NEW_GROUP 32 /* of those of a group, at most, */
#define COW_NEW_LINK  16 /* and of that of a link, at most, without its name */

/* A group of a version has its links in its header up to so many, where HDF5's usual number is 8: a heap for them takes 1.3 kB more, in each version that has
 * such a group. Nobody is told so; a program's groups have these two numbers together only by chance. */
#define COW_HEADER_LINKS       31
#define COW_HEADER_LINKS_LEAST 3
#define COW_HEADER_LINKS_USUAL 8

/* What stands before the SIZE bytes of a message, at P. ORDERED: messages have numbers, it 0. Returns where the bytes go. And a message with its bytes: returns its end. */
uint8_t *cow_new_prefix(uint8_t *p, uint8_t type, uint8_t flags, size_t size, bool ordered);
uint8_t *cow_new_message(uint8_t *p, uint8_t type, uint8_t flags, const void *body, size_t size);
/* Those of a group with HDF5's usual creation properties, all LINKS of which are in the header; and a hard link, whose NAME has less than
 * 64 KiB. */
uint8_t *cow_new_group(uint8_t *p, size_t links);
uint8_t *cow_new_link(uint8_t *p, const char *name, uint64_t address);
/* What stands before the messages of a header, of which there are SIZE bytes; FLAGS say in how many bytes that is told, 0 for one, 1 for two, and COW_HEADER_ORDERED. NOW:
 * its times, in seconds since 1970; 0: it has none. Returns its bytes. */
size_t cow_new_start(uint8_t *p, uint8_t flags, uint32_t now, size_t size);
/* The header with the messages from MESSAGES to END, of which there are less than 64 KiB. Room for COW_NEW_START bytes before them, and for 4 behind, is used. Returns where it begins; *SIZE: its bytes. */
uint8_t *cow_new_header(uint8_t *messages, const uint8_t *end, uint32_t now, size_t *size);

/* A header all messages of which are in a chunk of SIZE bytes at ADDRESS; and the beginning of such a chunk. Returns where its messages go, behind which
 * cow_metadata_sum_up ends it. */
#define COW_NEW_CONTINUED 31
void cow_new_continued(uint8_t to[COW_NEW_CONTINUED], uint64_t address, uint64_t size);
uint8_t *cow_new_chunk(uint8_t *p);

#endif
