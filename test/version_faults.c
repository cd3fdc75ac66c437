/* Each step of making a version is made to fail once: version_faults [--all] [--most N] [--seed S] [--round N] [--step N]
 *                                                                    [--class CLASS] [--command H5COW] [--table] [--large]
 *                                                                    [--parts]
 *
 * A program makes objects of every kind and commits four times: it creates the file, opens and changes everything, changes
 * again and flushes, deletes and changes and closes, which amends what was flushed. Whatever the connector asks of HDF5, or
 * of malloc, while a version is made (cow_version_commit) is a step; of steps that are the same place in the code, reached
 * the same way, the first is taken, and the last; of these, at most N of each round and class, drawn anew at each run (the
 * seed is printed). The step fails, as if it had done nothing (a close: once it is done).
 * Then must be true
 *   - the program got no error, and there is no crash
 *   - the head, as HDF5 without the connector reads it, is that of a twin that native HDF5 wrote
 *   - the newest version is the head's, or lists what it lacks; or none was made, and that is listed. Older ones are as they
 *     were. h5cow verify finds no damage
 *   - the next commit makes a version that is complete.
 * With --large, what is made and changed are members of a large group, whose versions are copied. With --parts, most views of the file are in parts.
 * Where a step may fail the commit (undoing, which needs a second failure) is no step here.
 */
#include "die.h"
#include "differential/compare.h"
#include "files.h"
#include "instead.h"
#include "random.h"
#include "results.h"
#include "with_connector.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <errno.h>
#include <execinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILE_NAME "version_faults.h5"
#define TWIN      "version_faults_twin.h5"
#define NEXT      "version_faults_next.h5" /* the twin after the next commit */
#define RAW       "version_faults_raw"
#define ROUNDS    4
#define STEPS_MAX 20000
#define DEPTH     40

enum { CALLS = 1, MEMORY = 2 };

/* ---- the steps ---- */

static struct {
    int inside;      /* a version is being made */
    int class;       /* of the steps that are counted; 0: none */
    unsigned nth, n; /* the one that fails, 0: none; counted so far */
    struct {
        uint64_t place;
        char name[28];
    } step[STEPS_MAX];
} steps;

static uint64_t place(void)
{
    void *at[DEPTH];
    int n = backtrace(at, DEPTH);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    /* As far as this program: HDF5 in between does not matter. Of a walk down a tree, each level is the same. */
    for (int i = 2; i < n && i < 12; i++)
        hash = (hash ^ (uintptr_t)at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static bool fails(int class, const char *name)
{
    if (steps.inside == 0 || steps.class != class || ++steps.n > STEPS_MAX)
        return false;
    if (steps.nth == 0) {
        steps.step[steps.n - 1].place = place();
        snprintf(steps.step[steps.n - 1].name, sizeof steps.step->name, "%s", name);
    }
    if (steps.n != steps.nth)
        return false;
    if (class == CALLS)
        H5Epush2(H5E_DEFAULT, "planted", name, 0, H5E_ERR_CLS, H5E_INTERNAL, H5E_SYSERRSTR, "planted failure of %s",
                 name);
    return true;
}

#define WRAP(type, name, parameters)                                                                                   \
    type __real_##name parameters;                                                                                     \
    type __wrap_##name parameters;                                                                                     \
    type __wrap_##name parameters
#define CALL(type, bad, name, parameters, arguments)                                                                   \
    INSTEAD(type, name, parameters)                                                                                    \
    {                                                                                                                  \
        return fails(CALLS, #name) ? bad : real_##name arguments;                                                      \
    }
#define CLOSE(name)                                                                                                    \
    INSTEAD(herr_t, name, (void *object, hid_t id, hid_t dxpl, void **req))                                            \
    {                                                                                                                  \
        herr_t status = real_##name(object, id, dxpl, req);                                                            \
        return fails(CALLS, #name) ? -1 : status;                                                                      \
    }
#define LOC const H5VL_loc_params_t *

CALL(void *, NULL, H5VLattr_create,
     (void *o, LOC l, hid_t id, const char *name, hid_t type, hid_t space, hid_t acpl, hid_t aapl, hid_t dxpl,
      void **req),
     (o, l, id, name, type, space, acpl, aapl, dxpl, req))
CALL(void *, NULL, H5VLattr_open, (void *o, LOC l, hid_t id, const char *name, hid_t aapl, hid_t dxpl, void **req),
     (o, l, id, name, aapl, dxpl, req))
CALL(herr_t, -1, H5VLattr_read, (void *o, hid_t id, hid_t type, void *to, hid_t dxpl, void **req),
     (o, id, type, to, dxpl, req))
CALL(herr_t, -1, H5VLattr_write, (void *o, hid_t id, hid_t type, const void *from, hid_t dxpl, void **req),
     (o, id, type, from, dxpl, req))
CALL(herr_t, -1, H5VLattr_get, (void *o, hid_t id, H5VL_attr_get_args_t *args, hid_t dxpl, void **req),
     (o, id, args, dxpl, req))
CALL(herr_t, -1, H5VLattr_specific, (void *o, LOC l, hid_t id, H5VL_attr_specific_args_t *args, hid_t dxpl, void **req),
     (o, l, id, args, dxpl, req))
CALL(void *, NULL, H5VLdataset_create,
     (void *o, LOC l, hid_t id, const char *name, hid_t lcpl, hid_t type, hid_t space, hid_t dcpl, hid_t dapl,
      hid_t dxpl, void **req),
     (o, l, id, name, lcpl, type, space, dcpl, dapl, dxpl, req))
CALL(void *, NULL, H5VLdataset_open, (void *o, LOC l, hid_t id, const char *name, hid_t dapl, hid_t dxpl, void **req),
     (o, l, id, name, dapl, dxpl, req))
CALL(herr_t, -1, H5VLdataset_read,
     (size_t n, void *o[], hid_t id, hid_t type[], hid_t memory[], hid_t file[], hid_t dxpl, void *to[], void **req),
     (n, o, id, type, memory, file, dxpl, to, req))
CALL(herr_t, -1, H5VLdataset_write,
     (size_t n, void *o[], hid_t id, hid_t type[], hid_t memory[], hid_t file[], hid_t dxpl, const void *from[],
      void **req),
     (n, o, id, type, memory, file, dxpl, from, req))
CALL(herr_t, -1, H5VLdataset_get, (void *o, hid_t id, H5VL_dataset_get_args_t *args, hid_t dxpl, void **req),
     (o, id, args, dxpl, req))
CALL(herr_t, -1, H5VLdataset_specific, (void *o, hid_t id, H5VL_dataset_specific_args_t *args, hid_t dxpl, void **req),
     (o, id, args, dxpl, req))
CALL(herr_t, -1, H5VLdataset_optional, (void *o, hid_t id, H5VL_optional_args_t *args, hid_t dxpl, void **req),
     (o, id, args, dxpl, req))
CALL(void *, NULL, H5VLdatatype_commit,
     (void *o, LOC l, hid_t id, const char *name, hid_t type, hid_t lcpl, hid_t tcpl, hid_t tapl, hid_t dxpl,
      void **req),
     (o, l, id, name, type, lcpl, tcpl, tapl, dxpl, req))
CALL(herr_t, -1, H5VLdatatype_get, (void *o, hid_t id, H5VL_datatype_get_args_t *args, hid_t dxpl, void **req),
     (o, id, args, dxpl, req))
CALL(herr_t, -1, H5VLfile_optional, (void *o, hid_t id, H5VL_optional_args_t *args, hid_t dxpl, void **req),
     (o, id, args, dxpl, req))
CALL(void *, NULL, H5VLgroup_create,
     (void *o, LOC l, hid_t id, const char *name, hid_t lcpl, hid_t gcpl, hid_t gapl, hid_t dxpl, void **req),
     (o, l, id, name, lcpl, gcpl, gapl, dxpl, req))
CALL(void *, NULL, H5VLgroup_open, (void *o, LOC l, hid_t id, const char *name, hid_t gapl, hid_t dxpl, void **req),
     (o, l, id, name, gapl, dxpl, req))
CALL(herr_t, -1, H5VLgroup_get, (void *o, hid_t id, H5VL_group_get_args_t *args, hid_t dxpl, void **req),
     (o, id, args, dxpl, req))
CALL(herr_t, -1, H5VLlink_create,
     (H5VL_link_create_args_t * args, void *o, LOC l, hid_t id, hid_t lcpl, hid_t lapl, hid_t dxpl, void **req),
     (args, o, l, id, lcpl, lapl, dxpl, req))
CALL(herr_t, -1, H5VLlink_copy,
     (void *o, LOC l, void *to, LOC t, hid_t id, hid_t lcpl, hid_t lapl, hid_t dxpl, void **req),
     (o, l, to, t, id, lcpl, lapl, dxpl, req))
CALL(herr_t, -1, H5VLlink_move,
     (void *o, LOC l, void *to, LOC t, hid_t id, hid_t lcpl, hid_t lapl, hid_t dxpl, void **req),
     (o, l, to, t, id, lcpl, lapl, dxpl, req))
CALL(herr_t, -1, H5VLlink_get, (void *o, LOC l, hid_t id, H5VL_link_get_args_t *args, hid_t dxpl, void **req),
     (o, l, id, args, dxpl, req))
CALL(herr_t, -1, H5VLlink_specific, (void *o, LOC l, hid_t id, H5VL_link_specific_args_t *args, hid_t dxpl, void **req),
     (o, l, id, args, dxpl, req))
CALL(void *, NULL, H5VLobject_open, (void *o, LOC l, hid_t id, H5I_type_t *type, hid_t dxpl, void **req),
     (o, l, id, type, dxpl, req))
CALL(herr_t, -1, H5VLobject_get, (void *o, LOC l, hid_t id, H5VL_object_get_args_t *args, hid_t dxpl, void **req),
     (o, l, id, args, dxpl, req))
CALL(herr_t, -1, H5VLobject_specific,
     (void *o, LOC l, hid_t id, H5VL_object_specific_args_t *args, hid_t dxpl, void **req), (o, l, id, args, dxpl, req))
CALL(herr_t, -1, H5VLobject_optional, (void *o, LOC l, hid_t id, H5VL_optional_args_t *args, hid_t dxpl, void **req),
     (o, l, id, args, dxpl, req))
CLOSE(H5VLattr_close)
CLOSE(H5VLdataset_close)
CLOSE(H5VLdatatype_close)
CLOSE(H5VLgroup_close)

WRAP(void *, malloc, (size_t size))
{
    return fails(MEMORY, "malloc") ? NULL : __real_malloc(size);
}
WRAP(void *, calloc, (size_t n, size_t size))
{
    return fails(MEMORY, "calloc") ? NULL : __real_calloc(n, size);
}
WRAP(void *, realloc, (void *at, size_t size))
{
    return fails(MEMORY, "realloc") ? NULL : __real_realloc(at, size);
}
WRAP(char *, strdup, (const char *text))
{
    return fails(MEMORY, "strdup") ? NULL : __real_strdup(text);
}
INSTEAD(void *, H5allocate_memory, (size_t size, hbool_t clear))
{
    return fails(MEMORY, "H5allocate_memory") ? NULL : real_H5allocate_memory(size, clear);
}
int __wrap_asprintf(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_asprintf(char **text, const char *format, ...)
{
    va_list list;
    int n = -1;

    if (fails(MEMORY, "asprintf"))
        return -1;
    va_start(list, format);
    n = vasprintf(text, format, list);
    va_end(list);
    return n;
}

struct cow_file;
WRAP(int, cow_version_commit, (struct cow_file * file, bool finished))
{
    int status;

    steps.inside++;
    status = __real_cow_version_commit(file, finished);
    steps.inside--;
    return status;
}

/* What the journal needs while HDF5 writes is the head's as well. */
typedef struct cow_journal cow_journal;
WRAP(int, cow_journal_read, (cow_journal * journal, uint64_t address, void *to, size_t size))
{
    int inside = steps.inside, status;

    steps.inside = 0;
    status = __real_cow_journal_read(journal, address, to, size);
    steps.inside = inside;
    return status;
}
WRAP(int, cow_journal_write, (cow_journal * journal, uint64_t address, const void *from, size_t size))
{
    int inside = steps.inside, status;

    steps.inside = 0;
    status = __real_cow_journal_write(journal, address, from, size);
    steps.inside = inside;
    return status;
}

/* ---- the program ---- */

static hid_t checked(hid_t id, const char *call, int line)
{
    if (id < 0)
        die("line %d: %s", line, call);
    return id;
}
#define ID(call) checked(call, #call, __LINE__)

static hid_t text_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    H5Tset_size(type, H5T_VARIABLE);
    return type;
}

static void put_attribute(hid_t at, const char *name, hid_t type, const void *value)
{
    hid_t space = H5Screate(H5S_SCALAR), a;

    a = ID(H5Aexists(at, name) > 0 ? H5Aopen(at, name, H5P_DEFAULT)
                                   : H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
    must(H5Awrite(a, type, value) >= 0);
    H5Aclose(a);
    H5Sclose(space);
}

/* Small ones in the header, a text in a heap, and one that HDF5 keeps outside of both. */
static void put_attributes(hid_t at, int value)
{
    hid_t text = text_type();
    char word[40];
    const char *words = word;

    snprintf(word, sizeof word, "text %d", value);
    put_attribute(at, "number", H5T_NATIVE_INT, &value);
    put_attribute(at, "text", text, &words);
    H5Tclose(text);
}

static hid_t dataset(hid_t at, const char *name, hid_t type, int rank, const hsize_t extent[], const hsize_t most[],
                     hid_t dcpl)
{
    hid_t space = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, extent, most), d;

    d = ID(H5Dcreate2(at, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    H5Sclose(space);
    return d;
}

static void fill(hid_t d, int value)
{
    static int numbers[6000];
    hid_t type = H5Dget_type(d);

    for (int i = 0; i < 6000; i++)
        numbers[i] = value + i / 7;
    must(H5Dwrite(d, H5Tget_class(type) == H5T_COMPOUND ? type : H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                  numbers) >= 0);
    H5Tclose(type);
}

static void texts(hid_t d, int value, int n)
{
    char word[20][30];
    const char *words[20];
    hid_t type = text_type();

    for (int i = 0; i < n; i++) {
        snprintf(word[i], sizeof word[i], "text %d of %d", i, value);
        words[i] = word[i];
    }
    must(H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, words) >= 0);
    H5Tclose(type);
}

static bool parts;
#define STRIPED 12 /* versions, before those of the program */

/* Its index gets so long that views are in parts from then on (docs/format.md). */
static hid_t make_striped(const char *name, hid_t fapl, hid_t file)
{
    int values[256 * 8];
    const hsize_t many = sizeof values / sizeof *values, chunk = 8;
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), d;

    H5Pset_chunk(dcpl, 1, &chunk);
    H5Dclose(dataset(file, "striped", H5T_NATIVE_INT, 1, &many, NULL, dcpl));
    H5Pclose(dcpl);
    for (size_t version = 0; version < STRIPED; version++) {
        for (size_t i = 0; i < many; i++)
            values[i] = (int)((i / 8 * (i / 8) + version * (i / 8)) % 61);
        d = ID(H5Dopen2(file, "striped", H5P_DEFAULT));
        must(H5Dwrite(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
        must(H5Dclose(d) >= 0 && H5Fclose(file) >= 0);
        file = ID(H5Fopen(name, H5F_ACC_RDWR, fapl));
    }
    return file;
}

static void make_all(hid_t file)
{
    const hsize_t flat[2] = {40, 50}, grows[2] = {H5S_UNLIMITED, 50}, chunk[2] = {8, 25}, many = 6000, few = 20;
    hid_t gcpl = H5Pcreate(H5P_GROUP_CREATE), dcpl = H5Pcreate(H5P_DATASET_CREATE), all, sub, d, type,
          text = text_type();
    hobj_ref_t reference;

    H5Pset_link_creation_order(gcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    put_attributes(file, 1);
    all = ID(H5Gcreate2(file, "all", H5P_DEFAULT, gcpl, H5P_DEFAULT));
    put_attributes(all, 2);
    must(H5Oset_comment(all, "a comment") >= 0);
    sub = ID(H5Gcreate2(all, "sub", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Pset_chunk(dcpl, 2, chunk);
    H5Pset_deflate(dcpl, 1);
    d = dataset(all, "d", H5T_NATIVE_INT, 2, flat, grows, dcpl);
    fill(d, 1);
    put_attributes(d, 3);
    H5Dclose(d);
    H5Pset_layout(dcpl, H5D_CONTIGUOUS);
    H5Premove_filter(dcpl, H5Z_FILTER_ALL);
    d = dataset(all, "c", H5T_NATIVE_INT, 1, &many, NULL, dcpl);
    fill(d, 2);
    H5Dclose(d);
    d = dataset(all, "tiny", H5T_NATIVE_INT, 1, &few, NULL, dcpl);
    fill(d, 3);
    put_attributes(d, 4);
    H5Dclose(d);
    H5Pset_layout(dcpl, H5D_COMPACT);
    d = dataset(sub, "compact", H5T_NATIVE_INT, 1, &few, NULL, dcpl);
    fill(d, 4);
    H5Dclose(d);
    H5Pset_layout(dcpl, H5D_CONTIGUOUS);
    d = dataset(sub, "text", text, 0, NULL, NULL, dcpl);
    texts(d, 1, 1);
    H5Dclose(d);
    H5Pset_chunk(dcpl, 1, &few);
    d = dataset(all, "texts", text, 1, &few, &grows[0], dcpl);
    texts(d, 2, 20);
    H5Dclose(d);
    H5Pclose(dcpl);
    dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(dcpl, RAW, 0, H5F_UNLIMITED);
    d = dataset(all, "external", H5T_NATIVE_INT, 1, &few, NULL, dcpl);
    fill(d, 5);
    H5Dclose(d);
    type = H5Tcreate(H5T_COMPOUND, 4);
    H5Tinsert(type, "a", 0, H5T_NATIVE_SHORT);
    H5Tinsert(type, "b", 2, H5T_NATIVE_SHORT);
    must(H5Tcommit2(all, "type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    put_attributes(type, 5);
    d = dataset(all, "typed", type, 1, &many, NULL, H5P_DEFAULT);
    fill(d, 6);
    put_attribute(d, "typed", type, &few);
    H5Dclose(d);
    d = dataset(sub, "typed", type, 1, &few, NULL, H5P_DEFAULT);
    fill(d, 7);
    H5Dclose(d);
    H5Tclose(type);
    must(H5Lcreate_hard(all, "d", sub, "d again", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    must(H5Lcreate_hard(file, "all", sub, "up", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    must(H5Lcreate_soft("../tiny", sub, "soft", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    must(H5Lcreate_soft("/all/d", sub, "absolute", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    must(H5Lcreate_external("nowhere.h5", "/x", sub, "elsewhere", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    d = dataset(all, "reference", H5T_STD_REF_OBJ, 0, NULL, NULL, H5P_DEFAULT);
    must(H5Rcreate(&reference, file, "/all/sub/compact", H5R_OBJECT, -1) >= 0);
    must(H5Dwrite(d, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, &reference) >= 0);
    H5Dclose(d);
    H5Gclose(ID(H5Gcreate2(all, "gone", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)));
    d = dataset(all, "gone/d", H5T_NATIVE_INT, 1, &many, NULL, H5P_DEFAULT);
    fill(d, 8);
    H5Dclose(d);
    H5Tclose(text);
    H5Pclose(dcpl);
    H5Pclose(gcpl);
    H5Gclose(sub);
    H5Gclose(all);
}

static void refill(hid_t file, const char *name, int value)
{
    hid_t d = ID(H5Dopen2(file, name, H5P_DEFAULT));

    fill(d, value);
    put_attributes(d, value);
    H5Dclose(d);
}

static void change_all(hid_t file, int round)
{
    static const char *const names[] = {"/all/d",        "/all/c",     "/all/tiny",     "/all/sub/compact",
                                        "/all/external", "/all/typed", "/all/sub/typed"};
    const hsize_t larger[2] = {40 + (hsize_t)round, 50}, few = 20;
    hid_t d, type;
    char name[40];

    put_attributes(file, 10 * round);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        refill(file, names[i], 100 * round + (int)i);
    d = ID(H5Dopen2(file, "/all/d", H5P_DEFAULT));
    must(H5Dset_extent(d, larger) >= 0);
    H5Dclose(d);
    d = ID(H5Dopen2(file, "/all/texts", H5P_DEFAULT));
    texts(d, 10 * round, 20);
    H5Dclose(d);
    type = ID(H5Topen2(file, "/all/type", H5P_DEFAULT));
    put_attributes(type, 10 * round);
    H5Tclose(type);
    snprintf(name, sizeof name, "/all/new %d", round);
    d = dataset(file, name, H5T_NATIVE_INT, 1, &few, NULL, H5P_DEFAULT);
    fill(d, round);
    H5Dclose(d);
}

static void remove_some(hid_t file)
{
    must(H5Ldelete(file, "/all/gone", H5P_DEFAULT) >= 0);
    must(H5Ldelete(file, "/all/new 2", H5P_DEFAULT) >= 0);
    must(H5Ldelete(file, "/all/type", H5P_DEFAULT) >= 0);
    must(H5Lmove(file, "/all/tiny", file, "/all/sub/tiny", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    refill(file, "/all/d", 500);
    refill(file, "/all/sub/tiny", 501);
    refill(file, "/all/typed", 502);
    put_attributes(file, 503);
}

/* The same of a large group, of which a little changes. */
static bool large;

static void make_large(hid_t file)
{
    const hsize_t many = 6000, few = 20;
    hid_t all = ID(H5Gcreate2(file, "all", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)), d;
    char name[40];

    d = dataset(all, "c", H5T_NATIVE_INT, 1, &many, NULL, H5P_DEFAULT);
    fill(d, 2);
    H5Dclose(d);
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "n%d", i);
        d = dataset(all, name, H5T_NATIVE_INT, 1, i % 2 ? &few : &many, NULL, H5P_DEFAULT);
        fill(d, i);
        if (i % 5 == 0)
            put_attributes(d, i);
        H5Dclose(d);
    }
    H5Gclose(all);
}

static void change_large(hid_t file, int round)
{
    const hsize_t many = 6000;
    char name[40];
    hid_t d;

    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "/all/n%d", 10 * round + i);
        refill(file, name, 100 * round + i);
    }
    snprintf(name, sizeof name, "/all/new %d", round);
    d = dataset(file, name, H5T_NATIVE_INT, 1, &many, NULL, H5P_DEFAULT);
    fill(d, round);
    H5Dclose(d);
}

static void remove_some_large(hid_t file)
{
    must(H5Ldelete(file, "/all/n40", H5P_DEFAULT) >= 0);
    must(H5Ldelete(file, "/all/new 2", H5P_DEFAULT) >= 0);
    must(H5Lmove(file, "/all/n41", file, "/all/moved", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    refill(file, "/all/n42", 500);
    refill(file, "/all/moved", 501);
}

static void step_begin(int class, unsigned nth)
{
    steps.class = class;
    steps.nth = nth;
    steps.n = 0;
}

/* Rounds 0 to LAST; the commit of that one has the step. */
static void program(const char *name, hid_t fapl, int last, int class, unsigned nth)
{
    hid_t file = ID(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl));

    if (parts)
        file = make_striped(name, fapl, file);
    (large ? make_large : make_all)(file);
    for (int round = 0;; round++) {
        if (round == last)
            step_begin(class, nth);
        if (round == 2) {
            must(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        } else
            must(H5Fclose(file) >= 0);
        if (round == last)
            break;
        if (round != 2)
            file = ID(H5Fopen(name, H5F_ACC_RDWR, fapl));
        if (round == 2)
            (large ? remove_some_large : remove_some)(file);
        else
            (large ? change_large : change_all)(file, round + 1);
    }
    steps.class = 0;
    if (last == 2 && H5Pget_driver(fapl) >= 0 && strcmp(name, FILE_NAME) != 0)
        must(H5Fclose(file) >= 0); /* the twin; the file's program dies here */
}

/* One more change, after whatever happened. */
static void next(const char *name, hid_t fapl)
{
    hid_t file = ID(H5Fopen(name, H5F_ACC_RDWR, fapl));

    refill(file, "/all/c", 777);
    must(H5Fclose(file) >= 0);
}

/* ---- what is in the file afterwards ---- */

static hid_t cow, plain; /* access lists */

static bool same(const char *what, reached how, const char *twin, const char *name, hid_t fapl, const char *path)
{
    comparison c = {.how = how, .unfollowed = true, .uncounted = true, .deleted = true, .stack = H5I_INVALID_HID};
    hid_t files[2] = {ID(H5Fopen(twin, H5F_ACC_RDONLY, plain)), ID(H5Fopen(name, H5F_ACC_RDONLY, fapl))};
    hid_t roots[2] = {ID(H5Gopen2(files[0], path, H5P_DEFAULT)), ID(H5Gopen2(files[1], path, H5P_DEFAULT))};
    bool good = compare_trees(&c, roots[0], roots[1]);

    if (!good)
        printf("    %s: %.600s\n", what, c.why);
    for (int i = 0; i < 2; i++) {
        H5Gclose(roots[i]);
        H5Fclose(files[i]);
    }
    return good;
}

typedef struct lack {
    uint64_t version, head;
} lack;

/* What the newest version lacks, and what is in none; both told apart by SKIPPED. */
static void count_lacks(hsize_t *versions, unsigned *lacking, unsigned *to_come)
{
    hid_t file = ID(H5Fopen(FILE_NAME, H5F_ACC_RDONLY, plain)), log, space, table;
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(lack));
    hsize_t n = 0;
    lack *rows;

    H5Tinsert(type, "version", offsetof(lack, version), H5T_NATIVE_UINT64);
    H5Tinsert(type, "head", offsetof(lack, head), H5T_NATIVE_UINT64);
    log = ID(H5Dopen2(file, "/_versioned_data/log", H5P_DEFAULT));
    space = H5Dget_space(log);
    H5Sget_simple_extent_dims(space, versions, NULL);
    H5Sclose(space);
    H5Dclose(log);
    *lacking = *to_come = 0;
    if (H5Lexists(file, "/_versioned_data/incomplete", H5P_DEFAULT) > 0) {
        table = ID(H5Dopen2(file, "/_versioned_data/incomplete", H5P_DEFAULT));
        space = H5Dget_space(table);
        H5Sget_simple_extent_dims(space, &n, NULL);
        rows = calloc(n + 1, sizeof *rows);
        must(H5Dread(table, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) >= 0);
        for (hsize_t i = 0; i < n; i++) {
            *lacking += rows[i].version + 1 == *versions && rows[i].head != UINT64_MAX;
            *to_come += rows[i].version >= *versions;
        }
        free(rows);
        H5Sclose(space);
        H5Dclose(table);
    }
    H5Tclose(type);
    H5Fclose(file);
}

static const char *command;

static bool verified(void)
{
    char line[600];

    if (command == NULL)
        return true;
    snprintf(line, sizeof line, "'%s' verify %s > version_faults_verify.txt 2>&1", command, FILE_NAME);
    if (system(line) == 0)
        return true;
    printf("    h5cow verify:\n");
    fflush(stdout);
    snprintf(line, sizeof line, "head -20 version_faults_verify.txt");
    return system(line) < 0;
}

enum { COMPLETE, INCOMPLETE, ABSENT, WRONG };

static int look(int round)
{
    const hsize_t before = parts ? STRIPED : 0, expected = before + (round == 0 ? 1 : round == 1 ? 2 : 3);
    char first[64];
    hsize_t versions;
    unsigned lacking, to_come;
    bool good = same("the head, natively", REACHED_VERSION, TWIN, FILE_NAME, plain, "/all") &&
                same("the head", REACHED_HEAD, TWIN, FILE_NAME, cow, "/") && verified();
    int answer;

    snprintf(first, sizeof first, FILE_NAME "@%llu", (unsigned long long)before + 1);
    count_lacks(&versions, &lacking, &to_come);
    answer = to_come > 0 ? ABSENT : lacking > 0 ? INCOMPLETE : COMPLETE;
    if (answer != ABSENT && versions != expected) {
        printf("    %llu versions instead of %llu\n", (unsigned long long)versions, (unsigned long long)expected);
        good = false;
    }
    if (answer == COMPLETE)
        good = good && same("the newest version", REACHED_AT, TWIN, FILE_NAME "@~0", cow, "/");
    if (round > 0)
        good = good && same("the first version", REACHED_AT, TWIN ".0", first, cow, "/");
    next(FILE_NAME, cow);
    count_lacks(&versions, &lacking, &to_come);
    if (lacking > 0 || to_come > 0) {
        printf("    the next version lacks %u objects, and %u are in none\n", lacking, to_come);
        good = false;
    }
    good = good && same("the head after the next commit", REACHED_HEAD, NEXT, FILE_NAME, cow, "/") &&
           same("the next version", REACHED_AT, NEXT, FILE_NAME "@~0", cow, "/") && verified();
    return good ? answer : WRONG;
}

/* ---- runs ---- */

static int in_child(void (*work)(void *context), void *context)
{
    int state = 0;
    pid_t id;

    fflush(NULL);
    if ((id = fork()) == 0) {
        alarm(60);
        work(context);
        fflush(NULL);
        _exit(0);
    }
    while (waitpid(id, &state, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(state)) {
        printf("    ended by signal %d\n", WTERMSIG(state));
        return WRONG;
    }
    return WEXITSTATUS(state);
}

typedef struct run {
    int round, class;
    unsigned nth;
    unsigned *count; /* shared: of steps, when they are counted */
} run;

static void make_lists(void)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    cow = ID(connector_fapl("sync=off;pieces=16"));
    plain = ID(native_fapl());
}

static void make_twins(void *context)
{
    const run *r = context;

    make_lists();
    if (r->round > 0) {
        program(TWIN ".0", plain, 0, 0, 0);
    }
    program(TWIN, plain, r->round, 0, 0);
    must(copy_file(TWIN, NEXT));
    next(NEXT, plain);
}

static void work(void *context)
{
    const run *r = context;

    make_lists();
    remove(FILE_NAME);
    program(FILE_NAME, cow, r->round, r->class, r->nth);
    if (r->count != NULL) {
        FILE *to = fopen("version_faults_steps", "w");
        for (unsigned i = 0; to != NULL && i < steps.n; i++)
            fprintf(to, "%llu %s\n", (unsigned long long)steps.step[i].place, steps.step[i].name);
        must(to != NULL && fclose(to) == 0);
    }
    if (r->round == 2)
        _exit(0); /* dies with the file open */
}

static void check_and_tell(void *context)
{
    int answer;

    make_lists();
    answer = look(((const run *)context)->round);
    fflush(NULL);
    _exit(answer == WRONG ? 9 : 10 + answer);
}

typedef struct totals {
    unsigned steps, runs, wrong, outcome[3];
} totals;

static const char *const round_names[] = {"create and close", "change everything, close", "change, flush",
                                          "delete, change, close: amend"};

static void one(run r, const char *name, totals *t, bool table)
{
    static const char *const outcomes[] = {"complete", "incomplete", "none made"};
    int answer = in_child(work, &r);

    if (answer == 0)
        answer = in_child(check_and_tell, &r);
    t->runs++;
    if (answer < 10) {
        t->wrong++;
        printf("round %d, class %s, step %u (%s): wrong\n", r.round, r.class == CALLS ? "calls" : "memory", r.nth,
               name);
        return;
    }
    t->outcome[answer - 10]++;
    if (table)
        printf("  %-6u %-24s %s\n", r.nth, name, outcomes[answer - 10]);
}

static bool first_or_last(const uint64_t at[], unsigned count, unsigned i)
{
    bool first = true, last = true;

    for (unsigned k = 0; first && k < i; k++)
        first = at[k] != at[i];
    for (unsigned k = i + 1; last && k < count; k++)
        last = at[k] != at[i];
    return first || last;
}

/* For docs/reliability.md: test/reliability.py. */
static void tell_results(const totals *all, bool everything)
{
    FILE *out = results_open();

    if (out == NULL)
        return;
    fprintf(
        out,
        "{\"item\": 4, \"what\": \"each step of making a version (a call of HDF5, an allocation, in four commits of a "
        "program with %s) fails once; the head compared with native HDF5's twin\", "
        "\"result\": \"%u of %u steps: the version was complete after %u, lacked something and said so after %u, "
        "was not made and that was said after %u; %u heads or versions wrong; the next commit was complete after "
        "each\", \"command\": \"build/release/test/version_faults%s%s\"}\n",
        large   ? "a large group, copied for its versions"
        : parts ? "objects of every kind, their views in parts"
                : "objects of every kind",
        all->runs, all->steps, all->outcome[COMPLETE], all->outcome[INCOMPLETE], all->outcome[ABSENT], all->wrong,
        large   ? " --large"
        : parts ? " --parts"
                : "",
        everything ? " --all" : "");
    fclose(out);
}

int main(int argc, char **argv)
{
    static uint64_t at[STEPS_MAX];
    static unsigned chosen[STEPS_MAX];
    static char name[STEPS_MAX][28];
    bool all = false, table = false;
    int only = -1, class_only = 0;
    unsigned step_only = 0, wrong = 0, most = STEPS_MAX, seed = test_seed();

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--all") == 0)
            all = true;
        else if (strcmp(argv[i], "--table") == 0)
            table = true;
        else if (strcmp(argv[i], "--large") == 0)
            large = true;
        else if (strcmp(argv[i], "--parts") == 0)
            parts = true;
        else if (strcmp(argv[i], "--round") == 0)
            only = atoi(value), i++;
        else if (strcmp(argv[i], "--most") == 0)
            most = (unsigned)atoi(value), i++;
        else if (strcmp(argv[i], "--seed") == 0)
            seed = (unsigned)strtoul(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--step") == 0)
            step_only = (unsigned)atoi(value), i++;
        else if (strcmp(argv[i], "--class") == 0)
            class_only = strcmp(value, "memory") == 0 ? MEMORY : CALLS, i++;
        else if (strcmp(argv[i], "--command") == 0)
            command = value, i++;
    }
    if (large || parts) { /* all may run at a time */
        const char *folder = large ? "version_faults_large" : "version_faults_parts";

        command = need(realpath(command, NULL));
        must((mkdir(folder, 0777) == 0 || errno == EEXIST) && chdir(folder) == 0);
    }
    printf("seed %u\n", seed);
    unsigned random = seed;
    totals every = {0};
    setenv("HDF5_PLUGIN_PATH", "/nonexistent", 1);
    for (int round = 0; round < ROUNDS; round++)
        for (int class = CALLS; class <= MEMORY; class ++) {
            run r = {.round = round, .class = class};
            unsigned count = 0;
            totals t = {0};
            FILE *from;

            if ((only >= 0 && round != only) || (class_only != 0 && class != class_only))
                continue;
            r.count = &count;
            if (in_child(make_twins, &r) != 0 || in_child(work, &r) != 0 ||
                (from = fopen("version_faults_steps", "r")) == NULL) {
                printf("round %d cannot be made\n", round);
                return 1;
            }
            while (count < STEPS_MAX) {
                unsigned long long p;
                if (fscanf(from, "%llu %27s", &p, name[count]) != 2)
                    break;
                at[count++] = p;
            }
            fclose(from);
            r.count = NULL;
            t.steps = count;
            one(r, "none", &t, false);
            unsigned places = 0, taken = 0;
            for (unsigned i = 0; i < count; i++)
                if (all || first_or_last(at, count, i))
                    chosen[places++] = i;
            for (unsigned i = 0; i < places; i++) {
                random = random * 1664525u + 1013904223u;
                r.nth = chosen[i] + 1;
                if (step_only != 0 ? r.nth == step_only : (random >> 8) % (places - i) < most - taken) {
                    taken++;
                    one(r, name[chosen[i]], &t, table);
                }
            }
            printf("%s: %u steps of %s, %u taken: %u complete, %u incomplete, %u without a version, %u wrong\n",
                   round_names[round], t.steps, class == CALLS ? "HDF5" : "memory", t.runs, t.outcome[COMPLETE],
                   t.outcome[INCOMPLETE], t.outcome[ABSENT], t.wrong);
            fflush(stdout);
            wrong += t.wrong;
            every.steps += t.steps;
            every.runs += t.runs;
            every.wrong += t.wrong;
            for (int outcome = COMPLETE; outcome <= ABSENT; outcome++)
                every.outcome[outcome] += t.outcome[outcome];
        }
    tell_results(&every, all);
    return wrong > 0;
}
