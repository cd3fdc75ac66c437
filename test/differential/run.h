/* One run of the differential test: what all its rooms share. The random numbers, by which a run is repeated; the record
 * of what was done; the end when the two sides differ.
 *
 * Side 0 is native HDF5, side 1 the file under test. Each call is done to both.
 */
#ifndef DIFFERENTIAL_RUN_H
#define DIFFERENTIAL_RUN_H

#include "die.h"

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY      2000 /* operations remembered, to be printed on a difference: the last 30 unless told */
#define MAX_HANDLES  6    /* datasets held open */
#define MAX_PATHS    400  /* links known */
#define MAX_LINKS    45   /* more than this and the program prefers to delete */
#define MAX_ELEMENTS 6000
#define MAX_OBJECTS  4000 /* native addresses that objects of one file have had */
#define PATH_SIZE    600

typedef struct pair {
    hid_t id[2];
} pair;

typedef enum { AT_GROUP, AT_DATASET, AT_TYPE, AT_LINK } kind;

typedef struct place {
    char path[PATH_SIZE];
    kind what;
} place;

/* Native addresses. One that was given to a second object is used again: a reference that holds it may be older (D3). */
typedef struct addresses {
    size_t count;
    struct address {
        H5O_token_t token;
        bool alive, seen, again;
    } at[MAX_OBJECTS];
    size_t regions; /* references of HDF5 1.8: they hold no address but a place in a heap */
    struct region {
        unsigned char reference[sizeof(hdset_reg_ref_t)];
        H5O_token_t token;
    } region[MAX_OBJECTS];
} addresses;

typedef enum {
    PLANT_NONE,
    PLANT_ELEMENT,
    PLANT_ATTRIBUTE,
    PLANT_LINK,
    PLANT_EXTENT,
    PLANT_VERSION,
    PLANT_REFERENCE,
    PLANT_HARD_LINK,
    PLANTS,
} plant;
extern const char *const plant_names[];

/* The whole run. */
extern struct run {
    uint64_t seed, random[4];
    long steps, step, file_steps, told;
    char dir[400];
    bool self, own_dir;
    plant plant;
    long planted, plants;
    long wanted, copies; /* --copies: the run ends with so many calls of H5Ocopy that were compared; those so far */
    char history[HISTORY][1400];
    long operations;

    hid_t access[2]; /* file access property lists */
    hid_t scratch, native_stack;
    char name[2][PATH_SIZE];
    pair file;
    size_t driver;        /* of the file: life.c */
    long lists;           /* of properties that were drawn: properties.c */
    char opened[700];     /* with which properties the file is open */
    const char *without;  /* properties that are not drawn: --without; NULL: all are */
    bool plain;           /* that driver keeps no history */
    unsigned external;    /* files outside that the file has */
    char many[PATH_SIZE]; /* the object with very many attributes; "": none */
    bool writable, modified, created, deleted, copied, renumbered, mixed, merged;
    bool evicted;  /* H5Ocopy while the metadata cache was small: D57 */
    bool restored; /* a version was restored: D42 */
    bool tagged;   /* H5Ocopy has made something since the file was opened (D18) */
    bool counted;  /* the program has added to reference counts, or made a circle (D7) */
    struct handle {
        pair set;
        char path[PATH_SIZE];
    } handle[MAX_HANDLES];
    size_t handles;
    place place[MAX_PATHS];
    size_t places;
    addresses addresses;
    char touched[4][PATH_SIZE];
    size_t touches;
    unsigned named;                /* names given so far */
    char again[PATH_SIZE];         /* the next object is to be called this; "": no wish */
    char outside[2][2][PATH_SIZE]; /* other files, to copy from and to: plain ones; on side 1 one with history */
    size_t first;   /* version of the file as it is; those before were put aside with the file that had them */
    unsigned aside; /* files put aside */

    struct version {
        char name[64];
        char twin[PATH_SIZE];
        char file[PATH_SIZE]; /* that has it, under test */
        addresses *addresses; /* as they were then */
        bool gone;            /* forgotten */
    } *version;
    size_t versions, files;
    long compared[4], followed[2]; /* trees; references, of which surely alive */
    long op_count[64], op_done[64];
} w;

/* xoshiro256**, seeded by splitmix64 */
uint64_t splitmix(uint64_t *x);
uint64_t next(void);
size_t below(size_t n); /* 0 to N - 1; 0 for N = 0 */
bool chance(unsigned percent);

/* A line for the record, before the call; also() goes on with it. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void also(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The end of the run. STACK: the error stack of the call that should not have failed. */
#define NO_STACK H5I_INVALID_HID
_Noreturn void differ(hid_t stack, const char *format, ...) __attribute__((format(printf, 2, 3)));
void on_signal(int number);
void run_end(void);

/* For the macros below. */
bool answers(const char *what, const long long r[2]);
void keep_stack(long long answer);

/* Evaluates CALL for s = 0 and 1 and compares. true: both succeeded. */
#define BOTH(what, call)                                                                                               \
    (r_[0] = (s = 0, (long long)(call)), keep_stack(r_[0]), r_[1] = (s = 1, (long long)(call)), answers(what, r_))
/* The same for calls that return an id, kept in IDS. */
#define OPEN(what, ids, call)                                                                                          \
    (r_[0] = (s = 0, (ids).id[0] = (call)) < 0 ? -1 : 0, keep_stack(r_[0]),                                            \
     r_[1] = (s = 1, (ids).id[1] = (call)) < 0 ? -1 : 0, answers(what, r_))
#define SIDES                                                                                                          \
    int s = 0;                                                                                                         \
    long long r_[2] = {0, 0};                                                                                          \
    (void)s;                                                                                                           \
    (void)r_

void close_ids(pair p);
/* The object at PATH is compared after the step. */
void touch(const char *path);

#endif
