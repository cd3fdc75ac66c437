/* The parts of `h5cow hash`: SHA-256 of fields, types and values. Format: docs/hash.md. */
#ifndef CLI_HASH_H
#define CLI_HASH_H

#include "native/datatype.h"
#include "state.h"

#include <openssl/evp.h>

#define HASH 32

/* An object, by the first path that leads to it. */
typedef struct cli_hash_object {
    char *path; /* below the one that is hashed; "/": itself */
    H5O_token_t token;
    H5O_type_t type;
} cli_hash_object;

/* What is known of a file whose states are compared with those of another: hash_stored.c. */
typedef struct cli_hash_known cli_hash_known;

typedef struct cli_hash_walk {
    const cli_state *state;
    cli_hash_known *known; /* NULL: format 1 */
    bool refers;           /* the object at hand has references, whose hash depends on where they lead */
    const char *argument;  /* its name, as it was given */
    cli_hash_object *object;
    size_t objects, room;
    cow_map place; /* address -> in object */
} cli_hash_walk;

/* ---- all of a state ---- */

/* What STATE, named ARGUMENT in messages, holds. With KNOWN, of the same file, elements in chunks are not read but told by the
 * hashes of their slots, and what versions share is looked at once: where two such hashes, of states of two files, are equal, the
 * states hold the same; where they differ, they may. 0, or CLI_FAILED and said why. */
int cli_hash_state(const cli_state *state, const char *argument, cli_hash_known *known, uint8_t hash[HASH]);

/* ---- hash_stored.c ---- */

cli_hash_known *cli_hash_known_new(void);
void cli_hash_known_free(cli_hash_known *known);
/* 1: the elements of the object PATH, a dataset, are told; 0: they are to be read; -1: cow_error. */
int cli_hash_stored(const cli_hash_walk *w, EVP_MD_CTX *sha, const char *path);
/* Of the object PATH, if it was met in another state. */
bool cli_hash_met(const cli_hash_walk *w, const char *path, uint8_t hash[HASH]);
void cli_hash_meet(const cli_hash_walk *w, const char *path, const uint8_t hash[HASH]);

/* ---- SHA-256 of fields ---- */

/* The command ends where OpenSSL has none. */
EVP_MD_CTX *cli_sha_open(void);
/* Ends SHA. */
void cli_sha_close(EVP_MD_CTX *sha, uint8_t hash[HASH]);
void cli_sha_put(EVP_MD_CTX *sha, const void *bytes, size_t size);
void cli_sha_number(EVP_MD_CTX *sha, uint64_t number);
/* With their number in front. */
void cli_sha_bytes(EVP_MD_CTX *sha, const void *bytes, size_t size);
void cli_sha_text(EVP_MD_CTX *sha, const char *text);

/* ---- types and values: -1: cow_error, or HDF5's ---- */

int cli_hash_type(EVP_MD_CTX *sha, hid_t type);

/* Values of one type, as they are added. */
typedef struct cli_hash_values {
    cli_hash_walk *w;
    EVP_MD_CTX *to, *block; /* `block` NULL: none is begun */
    uint64_t in_block, repeats;
    uint8_t last[HASH]; /* of the block before, which stood there `repeats` times */
    hid_t type;         /* as they have to be read */
    cow_part *part;
} cli_hash_values;

/* Of TYPE, into TO. To be closed, in any case. */
int cli_hash_values_open(cli_hash_values *v, cli_hash_walk *w, EVP_MD_CTX *to, hid_t type);
void cli_hash_values_close(cli_hash_values *v);
/* They hold memory of HDF5's: H5Treclaim. */
bool cli_hash_values_hold(const cli_hash_values *v);
/* The next N. */
int cli_hash_values_add(cli_hash_values *v, uint64_t n, void *value);
/* N times VALUE, and nothing else. */
int cli_hash_values_repeat(cli_hash_values *v, uint64_t n, void *value);

#endif
