/* Records of the index log as bytes: shared by node.c and index.c, no business of other rooms. Layout: format.h. */
#ifndef COW_NODE_H
#define COW_NODE_H

#include "store/format.h"
#include "store/index.h"

/* What the reader of a node knows of it already, from the node above. */
typedef struct cow_expected {
    uint64_t pool;
    unsigned level;
    uint64_t origin[COW_MAX_RANK];
} cow_expected;

/* cow_node_read that also fails (COW_CORRUPT) on a good node which is not the EXPECTED one (NULL: any). */
int cow_node_read_expected(cow_table *log, const cow_grid *grid, uint64_t offset, const cow_expected *expected,
                           cow_node *node);

/* NODE as the record that will stand at node->offset. Returns its size. */
size_t cow_node_encode(const cow_grid *grid, const cow_node *node, uint8_t record[COW_RECORD_MAX]);

/* The entries of a leaf as runs: bytes, at most COW_PAYLOAD_MAX, of which the first not used is returned. OFFSET: of the record that
 * they are part of. */
uint8_t *cow_runs_encode(const uint64_t entry[], unsigned entries, uint64_t offset, uint8_t *bytes);
/* And back. -1 COW_CORRUPT: they are no such runs. */
int cow_runs_decode(const uint8_t *bytes, size_t size, uint64_t offset, uint64_t entry[], unsigned entries);

/* Where the next record will stand. -1: the log is not an index log. */
int cow_index_log_end(cow_table *log, uint64_t *end);
/* Append whole records, the first of which must have been encoded for OFFSET = cow_index_log_end; writes the log's header
 * before the first of all. A log that fails has its old length afterwards, where that can be done. */
int cow_index_log_append(cow_table *log, uint64_t offset, const uint8_t *records, size_t size);

#endif
