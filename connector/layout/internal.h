/* What the files of layout/ share. Nobody else includes this. */
#ifndef COW_LAYOUT_INTERNAL_H
#define COW_LAYOUT_INTERNAL_H

#include "layout/layout.h"
#include "layout/still.h"

/* 0: ROWS rows of SIZE bytes are not more than the file has bytes for. */
int cow_layout_room(cow_loc file, const char *path, uint64_t rows, size_t size);
/* 0: DATASET is stored as a table is: chunks, filters, no fill value. Asked, as the members of rows are, before the first
 * row is read, written or added: it costs as much as all else in opening a table. */
int cow_layout_stored(void *dataset, size_t row_size);
/* 0: the texts of these rows, and those that *SUM counts, are no longer than the file, together. */
int cow_layout_texts(cow_loc file, void *dataset, const char *path, uint64_t first, uint64_t count, uint64_t *sum);

/* Where a table is, the bytes of its rows in memory and (but for those with texts) in the file, and whether its chunks have checksums of HDF5's.
 * NUMBER and RANK of what has none are 0. */
void cow_table_path(char path[COW_PATH_MAX], cow_table_kind kind, uint32_t number);
size_t cow_table_row_size(cow_table_kind kind, unsigned rank);
bool cow_table_is_summed(cow_table_kind kind);

/* ---- still.h ---- */

enum {
    COW_PLACE_DATASETS,
    COW_PLACE_SNAPSHOTS,
    COW_PLACE_SNAPSHOT_ROWS,
    COW_PLACE_INDEX,
    COW_PLACE_LOG,
    COW_PLACE_SLOTS,
    COW_PLACE_HASHES,
    COW_PLACE_RAW,
    COW_PLACE_FREE,
    COW_PLACE_INCOMPLETE,
    COW_PLACE_TAGS,
    COW_PLACES
};

typedef struct cow_places {
    uint64_t group;          /* the address of /_versioned_data */
    uint64_t at[COW_PLACES]; /* and those of what is in it; UINT64_MAX: not known, or */
    bool all;                /* there is none */
    uint32_t format;         /* 0: not known */
} cow_places;

struct cow_layout_still {
    cow_loc file;
    cow_still *still;
    cow_journal *journal; /* of a file that is written; else NULL */
    unsigned long fileno; /* the same */
    bool settled;
    cow_places place;
    bool made[COW_PLACES]; /* since place was read */
};
/* Where PATH leads, whose last link is in the GROUP at that address. */
bool cow_still_find(const cow_layout_still *s, uint64_t group, const char *path, uint64_t *address);
/* Do the bytes of the table at ADDRESS say what HDF5 has? */
bool cow_still_current(const cow_layout_still *s, uint64_t address);
/* Has the dataset rows of this kind? RANK: of slots. */
bool cow_is_row(cow_table_kind kind, unsigned rank, const cow_dataset_header *d);
/* And *ROW_SIZE. */
bool cow_is_log_row(const cow_dataset_header *d, size_t *row_size);

/* The members of a row of the log, in their order: how h5cow makes them. */
typedef enum { COW_COLUMN_TEXT, COW_COLUMN_NUMBER, COW_COLUMN_BYTE } cow_column_kind;
typedef struct cow_column {
    const char *name;
    size_t offset; /* in memory */
    cow_column_kind kind;
    bool required;
} cow_column;
extern const cow_column cow_layout_log_columns[];
extern const size_t cow_layout_log_columns_count;
#define COW_TEXT_STORED 16 /* bytes of a text in the file: its length, and where in the heaps it is */
size_t cow_column_stored(cow_column_kind kind);

/* The log of a file that is written, by its bytes (still.h). Each 1; 0: HDF5 is to do it; -1: recorded. */
typedef struct still_table cow_still_log;
cow_still_log *cow_still_log_open(const cow_layout_still *still, size_t *row_size); /* NULL: not known here */
void cow_still_log_close(cow_still_log *log);                                       /* NULL does nothing */
uint64_t cow_still_log_rows(const cow_still_log *log);
int cow_still_log_get(cow_still_log *log, uint64_t row, void *bytes);
/* Is there room for a row? Then it is put there. */
bool cow_still_log_room(cow_still_log *log);
int cow_still_log_append(cow_still_log *log, const void *bytes);

#endif
