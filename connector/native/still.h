/* The bytes of a file that stays as it is while it is open: one that is only read, through the journal, whose state is pinned. What HDF5 has
 * in memory is what they say. So datasets need not be opened to read what stands in them: h5/dataset_header.h, h5/chunk_index.h. */
#ifndef COW_STILL_H
#define COW_STILL_H

#include "h5/header.h"
#include "journal/journal.h"

typedef struct cow_still cow_still;

/* NULL: it can be written, has no journal, or its addresses are of another size than usual; or there is no memory. */
cow_still *cow_still_open(cow_journal *journal);
void cow_still_close(cow_still *still); /* NULL does nothing */
/* The bytes of a file that this process writes, as they are at each moment: what HDF5 has not written yet is not in them, so only what was
 * committed and has not changed since may be looked for. NULL: nothing was committed, or as above. */
cow_still *cow_still_open_written(cow_journal *journal);
/* At addresses of HDF5's. Its reads record no error. */
const cow_source *cow_still_source(const cow_still *still);
/* Writes at an address of HDF5's, in a file that this process writes. STILL is it, so that it can be a cow_header_writer. */
int cow_still_write(void *still, uint64_t address, const void *bytes, size_t size);
/* What HDF5's addresses are added to in the file. */
uint64_t cow_still_base(const cow_still *still);

#endif
