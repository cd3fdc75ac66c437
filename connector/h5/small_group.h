/* Groups with a few hard links, all of them in the object header, from the bytes of a file and into it: such as HDF5 makes with its usual creation properties,
 * or with those of cow_native_gcpl_for, where the format of 1.8 is allowed (HDF5 File Format Specification, IV.A). A group that differs in one link from another is made by this without a call of
 * HDF5 for each of the others, which takes as long as all else of a small commit. */
#ifndef COW_SMALL_GROUP_H
#define COW_SMALL_GROUP_H

#include "h5/header.h"
#include "h5/new_header.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COW_SMALL_NAMES 4096 /* bytes of all names of such a group */

typedef struct cow_small_link {
    char *name;
    uint64_t address; /* of the object's header */
    bool kept;        /* the new group has it as well: cow_small_group_encode */
} cow_small_link;

typedef struct cow_small_group {
    cow_small_link *link;
    size_t count, room;
    bool times; /* its header has them */
} cow_small_group;

/* The group at ADDRESS. 1; 0: it is another one, or none, or there is no memory; -1: recorded. Freed in any case by cow_small_group_free, as is {0}. */
int cow_small_group_read(const cow_source *source, uint64_t address, cow_small_group *group);
void cow_small_group_free(cow_small_group *group);

/* The object header of a new group with those links of GROUP that are kept, and room for ROOM further ones; names of both have NAMES bytes in all. It is as
 * cow_new_header takes it: its messages begin COW_NEW_START bytes behind what is returned, and end at *END; free it. What the links lead to does not count them by this
 * (cow_header_count_links). The group has no link itself, but counts one. NULL: recorded. */
uint8_t *cow_small_group_encode(const cow_small_group *group, size_t room, size_t names, uint8_t **end);

#endif
