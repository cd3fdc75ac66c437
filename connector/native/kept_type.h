/* A datatype that outlives the program's call. HDF5 lists every datatype that has an id in H5Fget_obj_ids(H5F_OBJ_ALL),
 * whoever made it, and a program may close all that is listed. So a kept type is its encoded bytes, or that of an open
 * dataset, and has an id of its own only while a call of the program runs. A type that is one of HDF5's own has that
 * one's id, which is never listed. */
#ifndef COW_KEPT_TYPE_H
#define COW_KEPT_TYPE_H

#include <hdf5.h>

#include <stdbool.h>

typedef struct cow_kept_type cow_kept_type;

/* A type that HDF5 itself has registered: its id means the same as long as the library runs. */
bool cow_type_predefined(hid_t type);

/* Such a number, little- or big-endian, from the message of an object header. 0: it is none. */
hid_t cow_type_of_message(const unsigned char *message, size_t size);
/* And back, for TYPE that is the id of one: the bytes of MESSAGE, of which there may be ROOM. 0: it is none, or HDF5 does not tell. */
size_t cow_type_message(hid_t type, unsigned char *message, size_t room);

/* TYPE is only read; a named one is kept as one without a name. NULL: the error. */
cow_kept_type *cow_kept_type_new(hid_t type);
/* That of DATASET, which must be open as long. For types with parts in the heap: references are not what they were after
 * H5Tencode and H5Tdecode. */
cow_kept_type *cow_kept_type_of(void *dataset);
/* The same once more: each is freed. */
cow_kept_type *cow_kept_type_share(cow_kept_type *kept);
void cow_kept_type_free(cow_kept_type *kept); /* NULL does nothing */
/* Located in memory, as H5Dget_type gives it. Lent until the program's call ends; H5I_INVALID_HID: the error. */
hid_t cow_kept_type_id(cow_kept_type *kept);

/* The program's call ends: close what was lent on this thread. */
void cow_kept_types_end_call(void);

#endif
