/* The journal's own records in the file: anchor, slot, extent. Encoding, and checked decoding of bytes that may be
 * anything. Byte by byte: docs/format.md, "Journal". */
#ifndef COW_JOURNAL_RECORD_H
#define COW_JOURNAL_RECORD_H

#include "journal/overlay.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COW_SECTOR       512u  /* the unit that a disk writes whole, or garbles alone */
#define COW_JOURNAL_SLOT 1024u /* a slot as written: the same sector twice, so that one may rot */
#define COW_BLOCK        4096u /* the two slots never share one */
#define COW_RESERVES     4     /* places that extents use again and again */
#define COW_NOWHERE      UINT64_MAX
#define COW_FILE_LIMIT   ((uint64_t)1 << 61)

typedef struct cow_range {
    uint64_t address, length;
} cow_range;

/* Where the journal's records are. Written once, before the first commit. A user block may be put before the file later, or
 * taken away: then all is SHIFT bytes behind (modulo 2^64) where the records say. They go on saying the same, decoding adds
 * SHIFT and encoding takes it off; in this program an address is always one in the file as it is. */
typedef struct cow_anchor {
    uint8_t id[16];   /* of the file: its records are known by it */
    uint64_t base;    /* where the superblock is: size of the user block */
    uint64_t shift;   /* a multiple of 512 */
    uint64_t address; /* of this record, a multiple of 512; the fence header follows at + 512 */
    uint64_t slot[2]; /* addresses */
    uint64_t end;     /* of the block that the anchor takes: records and HDF5's data never share it */
} cow_anchor;

/* An extent as a slot or another extent names it. length 0: none. */
typedef struct cow_journal_extent_name {
    uint64_t address, length;
    uint8_t hash[16]; /* XXH128 of all its bytes */
} cow_journal_extent_name;

#define COW_WITHHELD 8u

/* What is committed. */
typedef struct cow_journal_slot {
    uint64_t generation; /* grows with each slot written; even ones are in slot[0] */
    uint64_t sequence;   /* N: the newest commit */
    uint64_t applied;    /* A: the file's own bytes are those of this commit, durably */
    uint64_t end;        /* of the state N, where HDF5's address space ends */
    uint64_t extension;  /* of the superblock of state N, as HDF5 wrote it; relative to base, COW_NOWHERE: none */
    uint64_t protect;    /* no state that anybody may still be reading reaches beyond */
    cow_journal_extent_name extent; /* the newest of the chain (A, N] */
    uint64_t withheld; /* 0, or COW_WITHHELD and the permissions to write that a protected file does not have between
                               sessions: 4 its owner's, 2 its group's, 1 that of others */
    uint64_t unsynced; /* 1: written with sync=off, so a power cut may have left it without its extent */
    cow_range reserve[COW_RESERVES];
    uint8_t superblock[48]; /* of state N, with the fence: the one in the file may be torn by an interrupted write */
} cow_journal_slot;

typedef struct cow_journal_extent {
    uint64_t sequence;                /* N: brings the state AFTER to the state N */
    uint64_t after;                   /* < N */
    uint64_t end;                     /* of the state N */
    uint64_t extension;               /* of the state N */
    cow_journal_extent_name previous; /* the extent that ends with AFTER; none: AFTER was applied */
} cow_journal_extent;

/* For a first block of HDF5 data that ends at FIRST_END: where the anchor goes. UNIT: its end is a multiple of that. */
void cow_anchor_place(cow_anchor *anchor, uint64_t base, uint64_t first_end, uint64_t unit);
void cow_anchor_encode(const cow_anchor *anchor, uint8_t sector[COW_SECTOR]);
/* An anchor at ADDRESS whose record is damaged, and where its slots are if the superblock, now at BASE, was first at
 * ORIGIN. */
void cow_anchor_guess(cow_anchor *anchor, uint64_t base, uint64_t address, uint64_t origin);
/* Complete it from one of its slots, the bytes of a sector. false: that is none, or ORIGIN was not right. */
bool cow_anchor_from_slot(cow_anchor *anchor, const uint8_t sector[COW_SECTOR]);
/* false: that is no anchor, or cannot be one at ADDRESS. */
bool cow_anchor_decode(cow_anchor *anchor, const uint8_t sector[COW_SECTOR], uint64_t address);

void cow_journal_slot_encode(const cow_journal_slot *slot, const cow_anchor *anchor, uint8_t sector[COW_SECTOR]);
/* false: empty, torn, damaged, or of another file. WHICH: 0 or 1. */
bool cow_journal_slot_decode(cow_journal_slot *slot, const cow_anchor *anchor, unsigned which,
                             const uint8_t sector[COW_SECTOR]);
/* Of both copies the newer that is valid. */
bool cow_journal_slot_decode_copies(cow_journal_slot *slot, const cow_anchor *anchor, unsigned which,
                                    const uint8_t copies[COW_JOURNAL_SLOT]);

/* The whole extent, *SIZE bytes, a multiple of 512; free() it. -1: out of memory. */
int cow_journal_extent_encode(const cow_journal_extent *extent, const cow_anchor *anchor, const cow_overlay *frames,
                              uint8_t **bytes, size_t *size);
void cow_journal_extent_hash(const uint8_t *bytes, size_t size, uint8_t hash[16]);
/* Decode SIZE bytes and put the frames into FRAMES (NULL: only check). 0: fine. 1: not an extent of this file, damaged,
 * or impossible. -1: out of memory, recorded. */
int cow_journal_extent_decode(cow_journal_extent *extent, const cow_anchor *anchor, const uint8_t *bytes, size_t size,
                              cow_overlay *frames);

#endif
