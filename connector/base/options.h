/* What HDF5_VOL_CONNECTOR="h5cow key=value;key=value" may say. Described for users in docs/options.md. */
#ifndef COW_OPTIONS_H
#define COW_OPTIONS_H

#include "base/keep.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COW_PIECES_DEFAULT ((size_t)1 << 10) /* pieces of 64 bytes and more */

/* A compressor that the connector adds to datasets which the application left unfiltered. */
typedef struct cow_compress {
    enum { COW_COMPRESS_NONE, COW_COMPRESS_BLOSC, COW_COMPRESS_LZF, COW_COMPRESS_GZIP } library;
    int codec;   /* Blosc only: 0 blosclz, 1 lz4, 2 lz4hc, 4 zlib, 5 zstd, as stored in cd_values[6] */
    int level;   /* 0 to 9 */
    int shuffle; /* 0 none, 1 byte, 2 bit */
} cow_compress;

/* Which versions stay when a file is closed. */
typedef struct cow_policy {
    char *text; /* as it was given; NULL: all of them */
    cow_keep rules;
} cow_policy;

/* More than 20 fields: each is an option of its own. */
typedef struct cow_options {
    unsigned references; /* copies are this very one: options are never changed once they are parsed */
    char *at;            /* revision to read, or NULL for the head */
    char *name;          /* name of the version to be made, or NULL: 1, 2, 3 ... */
    char *message;       /* recorded in the version, or NULL */
    enum { COW_COMMIT_CLOSE, COW_COMMIT_FLUSH } commit; /* flush: every H5Fflush makes a version of its own */
    cow_compress compress;
    size_t chunk_bytes;  /* at most, of the chunks of contiguous datasets, default 256 KiB */
    size_t cache_bytes;  /* chunk cache of one file, default 32 MiB */
    size_t memory_bytes; /* of what waits for the commit, and helps to find equal chunks, default 64 MiB */
    size_t
        pieces_least; /* bytes of the smallest chunk of which small changes are stored as pieces, default 1 KiB; 0: none */
    unsigned threads; /* worker threads, 1 to 64; default: cores, at most 8 */
    enum { COW_OPTION_SYNC_FULL, COW_OPTION_SYNC_NORMAL, COW_OPTION_SYNC_OFF } sync; /* docs/promises.md */
    unsigned lock_timeout; /* seconds to wait for another program that writes the file, default 0 */
    bool adopt;            /* a plain file that is opened for writing gets a history first */
    bool protect;          /* a file that is written has no permission to write between sessions, from then on */
    enum { COW_TRUNCATE_KEEP, COW_TRUNCATE_DISCARD } truncate; /* H5F_ACC_TRUNC on a file with history */
    cow_policy keep;
    char *refused; /* NULL, or a text that is no good: nothing may be opened with these options ... */
    char *refusal; /* ... and why */
} cow_options;

/* Parse TEXT (may be NULL or empty: defaults) into a new cow_options. under_vol=0;under_info={} is accepted, another
 * under_vol refused. NULL and a recorded error that names the key and what it may be. Free with cow_options_free. */
cow_options *cow_options_parse(const char *text);
/* What stands for a TEXT that was not parsed; takes the recorded error. NULL: no memory, recorded. */
cow_options *cow_options_refuse(const char *text);
/* Never fails: HDF5 leaks half a property list where a part of it cannot be copied. */
cow_options *cow_options_copy(const cow_options *options);
/* A string that parses to the same options, or is refused again; free() it. NULL when out of memory. */
char *cow_options_text(const cow_options *options);
void cow_options_free(cow_options *options);
/* How many threads are used where no option says: the cores that this process may run on, at most 8. */
unsigned cow_threads_default(void);
/* 0: a version may be called NAME. -1: it may not, and what is allowed; the message begins with WHAT. */
int cow_version_name_check(const char *what, const char *name);
/* The same where it would be taken for a revision that means something else. The message begins with WHERE. */
int cow_version_name_not_reserved(const char *where, const char *name);

#endif
