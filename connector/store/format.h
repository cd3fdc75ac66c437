/* Every number on disk that the store room writes: the one place to read for an independent reader.
 *
 * The slot table (one row a slot, cow_slot_row_size bytes; all integers little-endian):
 *
 *      0  32 bytes    SHA-256 of the trimmed chunk and its shape; all zeros: the slot holds nothing
 *     32  uint64      XXH3-64 (seed 0) of the decoded chunk as stored, padding included
 *     40  uint32 x r  trimmed extent, r = rank of the pool
 *
 * The index log is a stream of bytes that begins with COW_INDEX_LOG_HEADER bytes: the 8 characters "h5cowidx", uint32
 * COW_INDEX_LOG_VERSION, uint32 zero. So offset 0 never names a record. Records follow each other without gaps between the
 * records of one commit; a commit that failed may leave bytes that nothing points to.
 *
 * A record:
 *
 *      0  2 bytes   COW_RECORD_MAGIC
 *      2  uint8     kind: COW_RECORD_LEAF, COW_RECORD_INNER, COW_RECORD_ROOT, COW_RECORD_COMPOSED
 *      3  uint8     level of the node (leaf and composed chunk 0, inner from 1); root: level of the top node
 *      4  uint16    n, bytes of the payload, at most COW_PAYLOAD_MAX
 *      6  n bytes   payload
 *    6+n  uint64    XXH3-64 (seed 0) of the 6 + n bytes before it
 *
 * Payloads are varints (LEB128, 64 bits), but for the bitmap, and end exactly where their last item ends.
 *
 *   leaf   pool id; origin: for each dimension the first chunk of the box divided by the box's span at this level;
 *          runs until every chunk of the tile is told (in tile positions, dimension 0 fastest): count * 4 + kind, and
 *          after it, unless the run is holes, the slot: COW_RUN_HOLES, COW_RUN_SLOTS (slot, slot+1, ...),
 *          COW_RUN_SAME (slot, slot, ...); or, with COW_RUN_COMPOSED, for each chunk the distance from this record back to
 *          that of the composed chunk
 *   composed  pool id; for each dimension the number of the chunk; its base, a slot of that pool, plus one, 0: none, all
 *          but its pieces is fill value; id of the pool of the pieces;
 *          bitmap: bit i set where piece i is one of its own and not the base's; for each of these its slot, as the
 *          zigzag-coded difference from the one before it, the first from 0
 *   inner  pool id; origin as above; uint16 bitmap: bit i set where child i (row-major) is present; for each present
 *          child its offset in the log, as the zigzag-coded difference from the present child before it, the first
 *          from the record's own offset (children are written before their parents and siblings together, so
 *          differences are short)
 *   root   dataset id, pool id, rank; for each dimension extent and maximum in elements and chunk in elements, maximum
 *          plus one modulo 2^64 (0: unlimited); distance back to the top node (0: none); chunks that have a slot
 */
#ifndef COW_FORMAT_H
#define COW_FORMAT_H

#define COW_SLOT_HASH_AT     0
#define COW_SLOT_CHECKSUM_AT 32
#define COW_SLOT_TRIMMED_AT  40

#define COW_INDEX_LOG_HEADER  16
#define COW_INDEX_LOG_MAGIC   "h5cowidx"
#define COW_INDEX_LOG_VERSION 1

#define COW_RECORD_MAGIC    "cN"
#define COW_RECORD_HEADER   6
#define COW_RECORD_CHECKSUM 8
/* The longest: a leaf of rank 32 with 64 runs, 33 * 10 + 64 * 12 bytes at most. A composed chunk: 36 * 10 + 64 * 10. */
#define COW_PAYLOAD_MAX 1152
#define COW_RECORD_MAX  (COW_RECORD_HEADER + COW_PAYLOAD_MAX + COW_RECORD_CHECKSUM)

enum { COW_RECORD_LEAF = 1, COW_RECORD_INNER = 2, COW_RECORD_ROOT = 3, COW_RECORD_COMPOSED = 4 };
enum { COW_RUN_HOLES = 0, COW_RUN_SLOTS = 1, COW_RUN_SAME = 2, COW_RUN_COMPOSED = 3 };

#endif
