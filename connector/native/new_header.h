/* Object headers that are new, as HDF5 would write them (HDF5 File Format Specification, IV.A, version 2), in files of which the bytes can be had. */
#ifndef COW_NEW_HEADER_H
#define COW_NEW_HEADER_H

#include "native/native.h"

#include <stddef.h>
#include <stdint.h>

#define COW_NEW_START 26 /* bytes that may stand before the messages, */
#define COW_NEW_GROUP 32 /* of those of a group, at most, */
#define COW_NEW_LINK  16 /* and of that of a link, at most, without its name */

/* A message of SIZE bytes at P. Returns its end. */
uint8_t *cow_new_message(uint8_t *p, uint8_t type, uint8_t flags, const void *body, size_t size);
/* Those of a group with HDF5's usual creation properties, all LINKS of which are in the header (cow_native_gcpl_for); and a hard link, whose NAME has less than
 * 64 KiB. */
uint8_t *cow_new_group(uint8_t *p, size_t links);
uint8_t *cow_new_link(uint8_t *p, const char *name, uint64_t address);
/* The header with the messages from MESSAGES to END, of which there are less than 64 KiB: it is written to *ADDRESS, which nothing leads to. Room for COW_NEW_START
 * bytes before them, and for 4 behind, is used. TIMES: it has those of now. -1: recorded. */
int cow_new_header(const cow_native_bytes *bytes, uint8_t *messages, const uint8_t *end, bool times, uint64_t *address);

#endif
