/* The pools of a file that are open. Which they are, and the table `pools`, is pools.c's alone. */
#ifndef COW_HISTORY_POOLS_H
#define COW_HISTORY_POOLS_H

#include "h5/dataset_header.h"
#include "history/history.h"

typedef struct cow_pools cow_pools;

/* A pool, for others to read. */
typedef struct cow_pool_entry {
    uint32_t id;
    cow_pool *pool;
    cow_codec *codec;
    hid_t dcpl;       /* of raw_data; H5I_INVALID_HID: it has no filters, and nobody has asked; cow_pools_dcpl */
    bool plain_edges; /* chunks that the extent cuts are not filtered */
    cow_kept_type *type;
    cow_raw raw; /* its shape when it was opened */
} cow_pool_entry;

/* NULL: no memory. */
cow_pools *cow_pools_new(void);
void cow_pools_free(cow_pools *pools);
/* The table itself: made in a new file, or opened, which does nothing where it is open. */
int cow_pools_create(cow_file *file);
int cow_pools_open(cow_file *file);
/* All pools, and the table. */
void cow_pools_close(cow_file *file);

/* Pool ID, opened where it is not; valid until the next call. */
const cow_pool_entry *cow_pools_get(cow_file *file, uint32_t id);
/* The same, perhaps without opening it: TYPE is that of an open dataset of which LIKE is what its header says, or NULL. */
const cow_pool_entry *cow_pools_get_like(cow_file *file, uint32_t id, hid_t type, const cow_dataset_header *like);
/* The creation properties of pool ID, which stay its own. H5I_INVALID_HID: the error. */
hid_t cow_pools_dcpl(cow_file *file, uint32_t id);
/* Open datasets that use it: what nobody uses, and wrote to, is closed again when very many pools are open. */
void cow_pools_use(cow_file *file, uint32_t id);
void cow_pools_leave(cow_file *file, uint32_t id);
/* The pool for chunks of TYPE with the creation properties DCPL (chunked), whose filters have their parameters; made when there is none.
 * ASKED: what the program asked for. 1, with an error: HDF5 does not take such chunks. */
int cow_pools_find(cow_file *file, hid_t type, hid_t asked, hid_t dcpl, uint32_t *id);
/* Before a dataset of the pool is written whose filters HDF5 would ask now: 1: it has asked them, as those of the pool, where it writes
 * elements itself; 0: it will not ask those of the pool; -1: they refuse. */
int cow_pools_ask(cow_file *file, uint32_t id);
/* How many the file has; the table must be open. */
uint64_t cow_pools_rows(const cow_file *file);
/* How many are open. */
size_t cow_pools_count(const cow_file *file);

/* Of all that are open: write the rows of new slots; */
int cow_pools_flush(cow_file *file);
/* write out what waits, since it takes more memory than the option memory= allows (CONTEXT: the file); no commit follows; */
int cow_pools_write_out(void *context);
/* let no slot be written again, now that a commit names it. FINISHED: the next transaction begins; */
void cow_pools_seal(cow_file *file, bool finished);
/* how many slots did the running transaction add? */
int64_t cow_pools_added(const cow_file *file);

#endif
