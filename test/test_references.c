/* References in versions: of every kind, in every kind of place, they lead to the objects of the version that they are
 * read in, and tell of themselves what a plain copy of the file, kept at that time, tells. Run with
 * HDF5_VOL_CONNECTOR=h5cow.
 *
 * The same is done with a file with history and with a native one; of the native one a copy is kept at each version.
 */
#include "files.h"
#include "through.h"

#include <stdlib.h>
#include <string.h>

#define COW    "test_references_cow.h5"
#define NATIVE "test_references_native.h5"
#define OTHER  "test_references_other.h5"

/* ---- what is referred to ---- */

#define ROWS 40
static const char *const targets[] = {"data", "rows", "group", "type", "tiny", "scalar", "group/inner"};

static void set_stamp(hid_t object, int value)
{
    hid_t space = H5Screate(H5S_SCALAR),
          a = H5Aexists(object, "stamp") > 0
                  ? H5Aopen(object, "stamp", H5P_DEFAULT)
                  : H5Acreate2(object, "stamp", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);

    assert_true(H5Awrite(a, H5T_NATIVE_INT, &value) >= 0);
    H5Aclose(a);
    H5Sclose(space);
}

static int get_stamp(hid_t object)
{
    hid_t a = H5Aopen(object, "stamp", H5P_DEFAULT);
    int value = -1;

    if (a >= 0)
        H5Aread(a, H5T_NATIVE_INT, &value);
    H5Aclose(a);
    return value;
}

static void fill(hid_t dataset, int value)
{
    int values[4 * ROWS];

    for (size_t i = 0; i < COUNT(values); i++)
        values[i] = 1000 * value + (int)i;
    assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    set_stamp(dataset, value);
}

static void make_dataset(hid_t file, const char *name, int rank, hsize_t rows, const hsize_t *chunk, int value)
{
    hsize_t dims[] = {rows, 4}, most[] = {H5S_UNLIMITED, 4};
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE),
          space = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, dims, chunk == NULL ? NULL : most), d;

    if (chunk != NULL)
        H5Pset_chunk(dcpl, rank, chunk);
    assert_true((d = H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    fill(d, value);
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(dcpl);
}

static void make_targets(hid_t file, int value)
{
    const hsize_t chunk[] = {8, 4};
    hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), type = H5Tcopy(H5T_STD_I16BE);

    assert_true(group >= 0 && H5Tcommit2(file, "type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    set_stamp(group, value);
    set_stamp(type, value);
    make_dataset(file, "data", 2, ROWS, chunk, value);
    make_dataset(file, "rows", 2, ROWS, chunk, value);
    make_dataset(file, "tiny", 2, 10, NULL, value);
    make_dataset(file, "scalar", 0, 1, NULL, value);
    make_dataset(file, "group/inner", 2, 10, NULL, value);
    H5Tclose(type);
    H5Gclose(group);
}

/* All targets become those of VALUE, in place. */
static void change_targets(hid_t file, int value)
{
    for (size_t i = 0; i < COUNT(targets); i++) {
        hid_t object = H5Oopen(file, targets[i], H5P_DEFAULT);

        assert_true(object >= 0);
        if (H5Iget_type(object) == H5I_DATASET)
            fill(object, value);
        else
            set_stamp(object, value);
        H5Oclose(object);
    }
}

static hid_t region_of(hid_t file, const char *name, size_t n)
{
    hid_t d = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(d);
    hsize_t start[] = {2, 1}, count[] = {3, 2}, points[] = {1, 0, 7, 3, 4, 2};

    if (n % 2 == 0)
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    else
        H5Sselect_elements(space, H5S_SELECT_SET, 3, points);
    H5Dclose(d);
    return space;
}

/* ---- references of every kind ---- */

typedef enum { OLD_OBJECT, OLD_REGION, NEW_OBJECT, NEW_REGION, NEW_ATTRIBUTE, KINDS } kind;
static const char *const kind_names[] = {"old-object", "old-region", "new-object", "new-region", "new-attribute"};

static const char *const regions[] = {"data", "rows", "tiny", "group/inner"};

static size_t how_many(kind k)
{
    return k == OLD_REGION || k == NEW_REGION ? COUNT(regions) : COUNT(targets);
}

static hid_t base_type(kind k)
{
    return H5Tcopy(k == OLD_OBJECT ? H5T_STD_REF_OBJ : k == OLD_REGION ? H5T_STD_REF_DSETREG : H5T_STD_REF);
}

static void make_reference(hid_t file, kind k, size_t n, void *reference)
{
    const char *name = k == OLD_REGION || k == NEW_REGION ? regions[n] : targets[n];
    hid_t space = H5I_INVALID_HID;
    herr_t status = -1;

    if (k == OLD_REGION || k == NEW_REGION)
        space = region_of(file, name, n);
    switch (k) {
    case OLD_OBJECT:
        status = H5Rcreate(reference, file, name, H5R_OBJECT1, -1);
        break;
    case OLD_REGION:
        status = H5Rcreate(reference, file, name, H5R_DATASET_REGION1, space);
        break;
    case NEW_OBJECT:
        status = H5Rcreate_object(file, name, H5P_DEFAULT, reference);
        break;
    case NEW_REGION:
        status = H5Rcreate_region(file, name, space, H5P_DEFAULT, reference);
        break;
    case NEW_ATTRIBUTE:
        status = H5Rcreate_attr(file, name, "stamp", H5P_DEFAULT, reference);
        break;
    case KINDS:
        break;
    }
    assert_true(status >= 0);
    if (space >= 0)
        H5Sclose(space);
}

static void say_region(listing *out, hid_t object, hid_t space)
{
    int values[4 * ROWS];
    hssize_t n = H5Sget_select_npoints(space);
    hsize_t size = (hsize_t)n;
    hid_t memory = n > 0 ? H5Screate_simple(1, &size, NULL) : H5Screate(H5S_NULL);

    say(out, " region of %lld:", (long long)n);
    if (n > 0 && n <= (hssize_t)COUNT(values) &&
        H5Dread(object, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values) >= 0)
        for (hssize_t i = 0; i < n; i++)
            say(out, " %d", values[i]);
    else
        say(out, " cannot be read");
    H5Sclose(memory);
}

/* Everything that can be asked about one reference: which object, and whether all ways to compare agree. */
static void say_reference(listing *out, hid_t file, kind k, void *reference)
{
    const bool old = k == OLD_OBJECT || k == OLD_REGION;
    const H5R_type_t type = k == OLD_OBJECT ? H5R_OBJECT1 : H5R_DATASET_REGION1;
    char name[200] = "", again_name[200] = "", path[200] = "";
    H5O_type_t kind_of = H5O_TYPE_UNKNOWN;
    H5O_info2_t info, by_name;
    hid_t object, space = H5I_INVALID_HID, a;
    ssize_t length;
    int compared = -1;

    H5E_BEGIN_TRY
    object =
        old ? H5Rdereference2(file, H5P_DEFAULT, type, reference) : H5Ropen_object(reference, H5P_DEFAULT, H5P_DEFAULT);
    H5E_END_TRY
    if (object < 0) {
        say(out, " leads nowhere\n");
        return;
    }
    length = old ? H5Rget_name(file, type, reference, name, sizeof name)
                 : H5Rget_obj_name(reference, H5P_DEFAULT, name, sizeof name);
    assert_true((old ? H5Rget_obj_type2(file, type, reference, &kind_of)
                     : H5Rget_obj_type3(reference, H5P_DEFAULT, &kind_of)) >= 0);
    assert_true(H5Iget_name(object, again_name, sizeof again_name) >= 0);
    say(out, " %s (%zd) type %d stamp %d", name, length, kind_of, get_stamp(object));
    if (strcmp(name, again_name) != 0)
        say(out, " is called %s", again_name);
    if (old)
        assert_true(H5Rget_obj_type1(file, type, reference) == (H5G_obj_t)kind_of);

    /* the same object by its name */
    assert_true(H5Oget_info3(object, &info, H5O_INFO_BASIC) >= 0);
    if (length > 0 && H5Oget_info_by_name3(file, name, &by_name, H5O_INFO_BASIC, H5P_DEFAULT) >= 0) {
        H5L_info2_t link;
        H5G_stat_t stat;
        haddr_t address = HADDR_UNDEF;
        unsigned long number = 0;
        hid_t named, again;

        assert_true(H5Otoken_cmp(file, &info.token, &by_name.token, &compared) >= 0 && compared == 0);
        assert_true(info.fileno == by_name.fileno && H5Fget_fileno(file, &number) >= 0 && number == info.fileno);
        assert_true(H5Lget_info2(file, name, &link, H5P_DEFAULT) >= 0 &&
                    memcmp(&link.u.token, &info.token, sizeof info.token) == 0);
        assert_true(H5VLnative_token_to_addr(file, info.token, &address) >= 0 &&
                    H5Gget_objinfo(file, name, true, &stat) >= 0 && stat.objno[0] == address &&
                    stat.fileno[0] == number);
        assert_true((again = H5Oopen_by_token(file, info.token)) >= 0 && get_stamp(again) == get_stamp(object));
        H5Oclose(again);
        assert_true((again = H5Oopen_by_addr(file, address)) >= 0 && get_stamp(again) == get_stamp(object));
        H5Oclose(again);
        assert_true((named = H5Oopen(file, name, H5P_DEFAULT)) >= 0);
        H5Oclose(named);
        if (k == OLD_OBJECT) {
            hobj_ref_t made;
            assert_true(memcmp(&address, reference, sizeof address) == 0);
            assert_true(H5Rcreate(&made, file, name, H5R_OBJECT1, -1) >= 0 && made == *(hobj_ref_t *)reference);
        } else if (k == NEW_OBJECT || k == NEW_ATTRIBUTE) {
            H5R_ref_t made;
            assert_true((k == NEW_OBJECT ? H5Rcreate_object(file, name, H5P_DEFAULT, &made)
                                         : H5Rcreate_attr(file, name, "stamp", H5P_DEFAULT, &made)) >= 0);
            assert_true(H5Requal(&made, reference) > 0);
            H5Rdestroy(&made);
        }
    }
    if (!old && H5Rget_file_name(reference, path, sizeof path) >= 0) {
        char own[200];
        assert_true(H5Fget_name(file, own, sizeof own) >= 0 && strcmp(own, path) == 0);
    }
    if (k == OLD_REGION)
        assert_true((space = H5Rget_region(file, type, reference)) >= 0);
    if (k == NEW_REGION)
        assert_true((space = H5Ropen_region(reference, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    if (space >= 0) {
        say_region(out, object, space);
        H5Sclose(space);
    }
    if (k == NEW_ATTRIBUTE) {
        int value = -1;
        assert_true((a = H5Ropen_attr(reference, H5P_DEFAULT, H5P_DEFAULT)) >= 0 &&
                    H5Aread(a, H5T_NATIVE_INT, &value) >= 0);
        say(out, " attribute %d", value);
        H5Aclose(a);
    }
    say(out, "\n");
    H5Oclose(object);
}

/* ---- places where references are ---- */

typedef enum { PLAIN, ARRAY, COMPOUND, SEQUENCE, SEQUENCE_OF_COMPOUNDS, SHAPES } shape;
static const char *const shape_names[] = {"plain", "array", "compound", "sequence", "sequence-of-compounds"};
typedef enum { TINY, COMPACT, ONE, CHUNKED, CONTIGUOUS, ATTRIBUTE, PLACES } place;
static const char *const place_names[] = {"tiny", "compact", "one", "chunked", "contiguous", "attribute"};

#define PADDING 3 /* before the reference in a compound: a member of a byte */

typedef struct held {
    hid_t base, pair, type;
    size_t base_size, size;
} held;

/* Element types: one reference, two, one with a number, a sequence of all, of all with numbers. */
static held held_of(kind k, shape s)
{
    const hsize_t two = 2;
    held h = {.base = base_type(k)};

    h.base_size = H5Tget_size(h.base);
    h.pair = H5Tcreate(H5T_COMPOUND, h.base_size + 16);
    assert_true(H5Tinsert(h.pair, "number", PADDING, H5T_NATIVE_UINT8) >= 0 && H5Tinsert(h.pair, "to", 8, h.base) >= 0);
    switch (s) {
    case PLAIN:
        h.type = H5Tcopy(h.base);
        break;
    case ARRAY:
        h.type = H5Tarray_create2(h.base, 1, &two);
        break;
    case COMPOUND:
        h.type = H5Tcopy(h.pair);
        break;
    case SEQUENCE:
        h.type = H5Tvlen_create(h.base);
        break;
    case SEQUENCE_OF_COMPOUNDS:
        h.type = H5Tvlen_create(h.pair);
        break;
    case SHAPES:
        break;
    }
    h.size = H5Tget_size(h.type);
    return h;
}

static void held_done(held *h)
{
    H5Tclose(h->type);
    H5Tclose(h->pair);
    H5Tclose(h->base);
}

/* The references in ELEMENT, one after the other; NULL: no more. */
static void *reference_in(const held *h, shape s, void *element, size_t n)
{
    unsigned char *bytes = element;
    const hvl_t *sequence = element;

    switch (s) {
    case PLAIN:
        return n == 0 ? element : NULL;
    case ARRAY:
        return n < 2 ? bytes + n * h->base_size : NULL;
    case COMPOUND:
        return n == 0 ? bytes + 8 : NULL;
    case SEQUENCE:
        return n < sequence->len ? (unsigned char *)sequence->p + n * h->base_size : NULL;
    case SEQUENCE_OF_COMPOUNDS:
        return n < sequence->len ? (unsigned char *)sequence->p + n * (h->base_size + 16) + 8 : NULL;
    case SHAPES:
        break;
    }
    return NULL;
}

/* Native HDF5 1.14.5 crashes when it writes these, or cannot read what it wrote. */
static bool fits(kind k, shape s)
{
    return s != SEQUENCE_OF_COMPOUNDS || (k != NEW_REGION && k != NEW_ATTRIBUTE);
}

static hsize_t elements_in(place p)
{
    return p == ONE || p == ATTRIBUTE ? 1 : p == CONTIGUOUS ? 600 : 7;
}

static void place_name(char name[200], kind k, shape s, place p)
{
    snprintf(name, 200, "%s %s %s", kind_names[k], shape_names[s], place_names[p]);
}

static void make_place(hid_t file, kind k, shape s, place p)
{
    held h = held_of(k, s);
    hsize_t n = elements_in(p), most = H5S_UNLIMITED, chunk = 3;
    hid_t space =
              p == ONE || p == ATTRIBUTE ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &n, p == CHUNKED ? &most : NULL),
          dcpl = H5Pcreate(H5P_DATASET_CREATE), made;
    unsigned char *elements = calloc(n, h.size);
    size_t next = 0;
    char name[200];

    place_name(name, k, s, p);
    if (p == COMPACT)
        H5Pset_layout(dcpl, H5D_COMPACT);
    if (p == CHUNKED)
        H5Pset_chunk(dcpl, 1, &chunk);
    for (hsize_t i = 0; i < n && i < COUNT(targets); i++) {
        void *element = elements + i * h.size, *reference;

        if (s == SEQUENCE || s == SEQUENCE_OF_COMPOUNDS) {
            hvl_t *sequence = element;
            sequence->len = how_many(k);
            sequence->p = calloc(sequence->len, h.base_size + 16);
        }
        for (size_t j = 0; (reference = reference_in(&h, s, element, j)) != NULL; j++)
            make_reference(file, k, next++ % how_many(k), reference);
    }
    if (p == ATTRIBUTE) {
        assert_true((made = H5Acreate2(file, name, h.type, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        assert_true(H5Awrite(made, h.type, elements) >= 0 && H5Aclose(made) >= 0);
    } else {
        assert_true((made = H5Dcreate2(file, name, h.type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
        assert_true(H5Dwrite(made, h.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, elements) >= 0 && H5Dclose(made) >= 0);
    }
    assert_true(H5Treclaim(h.type, space, H5P_DEFAULT, elements) >= 0);
    free(elements);
    H5Pclose(dcpl);
    H5Sclose(space);
    held_done(&h);
}

static void say_place(listing *out, hid_t file, kind k, shape s, place p)
{
    held h = held_of(k, s);
    hsize_t n = elements_in(p);
    hid_t space = H5Screate_simple(1, &n, NULL), made;
    unsigned char *elements = calloc(n, h.size);
    char name[200];
    herr_t status;

    place_name(name, k, s, p);
    if (p == ATTRIBUTE) {
        made = H5Aopen(file, name, H5P_DEFAULT);
        status = H5Aread(made, h.type, elements);
        H5Aclose(made);
    } else {
        made = H5Dopen2(file, name, H5P_DEFAULT);
        status = H5Dread(made, h.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, elements);
        H5Dclose(made);
    }
    assert_true(status >= 0);
    for (hsize_t i = 0; status >= 0 && i < n && i < COUNT(targets); i++) {
        void *reference;
        for (size_t j = 0; (reference = reference_in(&h, s, elements + i * h.size, j)) != NULL; j++) {
            say(out, "%s %llu.%zu:", name, (unsigned long long)i, j);
            say_reference(out, file, k, reference);
        }
    }
    assert_true(H5Treclaim(h.type, space, H5P_DEFAULT, elements) >= 0);
    free(elements);
    H5Sclose(space);
    held_done(&h);
}

static void for_all_places(void (*make)(hid_t, kind, shape, place), listing *out, hid_t file)
{
    for (kind k = 0; k < KINDS; k++)
        for (shape s = 0; s < SHAPES; s++)
            for (place p = 0; p < PLACES; p++)
                if (fits(k, s)) {
                    if (make != NULL)
                        make(file, k, s, p);
                    else
                        say_place(out, file, k, s, p);
                }
}

/* ---- files ---- */

static const char *kept(unsigned version)
{
    static char name[2][64];
    snprintf(name[version % 2], sizeof name[0], "test_references_kept_%u.h5", version);
    return name[version % 2];
}

/* One version of both files. VERSION 1 makes them. */
static void make_version(unsigned version, void (*change)(hid_t file, int version))
{
    for (int native = 0; native < 2; native++) {
        const char *name = native ? NATIVE : COW;
        hid_t fapl = native ? native_fapl : H5P_DEFAULT, file;

        if (version == 1) {
            remove(name);
            file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
        } else
            file = H5Fopen(name, H5F_ACC_RDWR, fapl);
        assert_true(file >= 0);
        change(file, (int)version);
        assert_true(H5Fclose(file) >= 0);
    }
    assert_true(copy_file(NATIVE, kept(version)));
}

static hid_t open_version(unsigned version)
{
    char name[64];
    hid_t file;

    snprintf(name, sizeof name, COW "@%u", version);
    assert_true((file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    return file;
}

static void compare_with_kept(unsigned version, void (*describe)(listing *, hid_t))
{
    static listing cow, native;
    hid_t file = open_version(version), plain;
    char what[100];

    clear(&cow);
    clear(&native);
    describe(&cow, file);
    assert_true(H5Fclose(file) >= 0);
    assert_true((plain = H5Fopen(kept(version), H5F_ACC_RDONLY, native_fapl)) >= 0);
    describe(&native, plain);
    assert_true(H5Fclose(plain) >= 0);
    snprintf(what, sizeof what, "version %u, native and in the history", version);
    assert_true(native.length > 0 && same_text(what, &native, &cow));
}

static void remove_files(void)
{
    remove(COW);
    remove(NATIVE);
    remove(OTHER);
    for (unsigned v = 1; v < 10; v++)
        remove(kept(v));
}

/* ---- tests ---- */

static void describe_all(listing *out, hid_t file)
{
    for_all_places(NULL, out, file);
}

static void make_all(hid_t file, int version)
{
    make_targets(file, version);
    for_all_places(make_place, NULL, file);
}

static void move_some(hid_t file, int version)
{
    change_targets(file, version);
    assert_true(H5Lmove(file, "data", file, "group/moved", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lmove(file, "tiny", file, "small", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void delete_all_targets(hid_t file)
{
    static const char *const now[] = {"group/moved", "rows", "group/inner", "group", "type", "small", "scalar"};

    for (size_t i = 0; i < COUNT(now); i++)
        assert_true(H5Ldelete(file, now[i], H5P_DEFAULT) >= 0);
}

/* Everything that was referred to goes, and other objects come under the same names, and more. */
static void make_again(hid_t file, int version)
{
    const hsize_t chunk[] = {8, 4};
    char name[40];

    delete_all_targets(file);
    make_targets(file, version);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "stranger %d", i);
        make_dataset(file, name, 2, 10, i % 2 ? chunk : NULL, 99);
    }
}

static void test_references_of_every_kind_lead_to_objects_of_their_version(void **state)
{
    (void)state;
    make_version(1, make_all);
    make_version(2, move_some);
    compare_with_kept(1, describe_all);
    compare_with_kept(2, describe_all);
    make_version(3, make_again);
    compare_with_kept(1, describe_all);
    compare_with_kept(2, describe_all);
}

/* What natively leads to a place in the file that may be anything by now. */
static void test_references_to_deleted_objects_lead_nowhere(void **state)
{
    static listing out;
    const char *names[] = {COW "@3", COW};
    (void)state;

    for (int i = 0; i < 2; i++) {
        hid_t file = H5Fopen(names[i], H5F_ACC_RDONLY, H5P_DEFAULT);
        size_t lines = 0, nowhere = 0;

        assert_true(file >= 0);
        clear(&out);
        describe_all(&out, file);
        for (const char *p = out.data; (p = strchr(p, '\n')) != NULL; p++)
            lines++;
        for (const char *p = out.data; (p = strstr(p, " leads nowhere\n")) != NULL; p++)
            nowhere++;
        assert_true(lines > 500 && lines == nowhere);
        H5Fclose(file);
    }
}

static void dangling(hid_t file, int version)
{
    hobj_ref_t old[2];
    H5R_ref_t new[2];
    const hsize_t two = 2, chunk[] = {8, 4};
    hid_t space = H5Screate_simple(1, &two, NULL), d;
    char name[40];

    make_dataset(file, "stays", 2, ROWS, chunk, version);
    make_dataset(file, "goes", 2, ROWS, chunk, version);
    for (int i = 0; i < 2; i++) {
        assert_true(H5Rcreate(&old[i], file, i ? "goes" : "stays", H5R_OBJECT1, -1) >= 0);
        assert_true(H5Rcreate_object(file, i ? "goes" : "stays", H5P_DEFAULT, &new[i]) >= 0);
    }
    d = H5Dcreate2(file, "old", H5T_STD_REF_OBJ, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(d, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, old) >= 0 && H5Dclose(d) >= 0);
    d = H5Dcreate2(file, "new", H5T_STD_REF, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(d, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, new) >= 0 && H5Dclose(d) >= 0);
    for (int i = 0; i < 2; i++)
        H5Rdestroy(&new[i]);
    H5Sclose(space);
    assert_true(H5Ldelete(file, "goes", H5P_DEFAULT) >= 0);
    for (int i = 0; i < 60; i++) { /* one of them gets its place */
        snprintf(name, sizeof name, "stranger %d", i);
        make_dataset(file, name, 2, 10, i % 2 ? chunk : NULL, 99);
    }
}

static void add_strangers(hid_t file, int version)
{
    const hsize_t chunk[] = {8, 4};
    char name[40];

    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "stranger %d of %d", i, version);
        make_dataset(file, name, 2, 10, i % 2 ? chunk : NULL, 99);
    }
}

/* Both leads: where OBJECT of the old and of the new kind leads. */
static void leads(hid_t file, int n, int stamps[2])
{
    hobj_ref_t old[2];
    H5R_ref_t new[2];
    hid_t d, object;

    d = H5Dopen2(file, "old", H5P_DEFAULT);
    assert_true(H5Dread(d, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, old) >= 0);
    H5Dclose(d);
    d = H5Dopen2(file, "new", H5P_DEFAULT);
    assert_true(H5Dread(d, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, new) >= 0);
    H5Dclose(d);
    H5E_BEGIN_TRY
    {
        stamps[0] = (object = H5Rdereference2(file, H5P_DEFAULT, H5R_OBJECT1, &old[n])) < 0 ? -1 : get_stamp(object);
        H5Oclose(object);
        stamps[1] = (object = H5Ropen_object(&new[n], H5P_DEFAULT, H5P_DEFAULT)) < 0 ? -1 : get_stamp(object);
        H5Oclose(object);
    }
    H5E_END_TRY
    for (int i = 0; i < 2; i++)
        H5Rdestroy(&new[i]);
}

/* The application may use the place again in the same transaction; nobody can tell there. A later version can. */
static void test_reference_to_what_no_version_knew_never_leads_to_a_later_object(void **state)
{
    int stamps[2];
    (void)state;

    make_version(1, dangling);
    make_version(2, add_strangers);
    make_version(3, add_strangers);
    for (unsigned version = 1; version <= 3; version++) {
        hid_t file = open_version(version);

        leads(file, 0, stamps);
        assert_true(stamps[0] == 1 && stamps[1] == 1);
        if (version > 1) {
            H5O_info2_t first, now;
            hobj_ref_t old[2];
            hid_t earlier = open_version(1), d = H5Dopen2(file, "old", H5P_DEFAULT), object, same;

            assert_true(H5Dread(d, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, old) >= 0);
            H5E_BEGIN_TRY
            {
                object = H5Rdereference2(file, H5P_DEFAULT, H5R_OBJECT1, &old[1]);
                same = H5Rdereference2(earlier, H5P_DEFAULT, H5R_OBJECT1, &old[1]);
            }
            H5E_END_TRY
            assert_true((object < 0) == (same < 0)); /* what was not there at the first version did not come later */
            if (object >= 0 && same >= 0)
                assert_true(H5Oget_info3(object, &now, H5O_INFO_BASIC) >= 0 &&
                            H5Oget_info3(same, &first, H5O_INFO_BASIC) >= 0 &&
                            memcmp(&first.token, &now.token, sizeof now.token) == 0 && first.fileno != now.fileno);
            if (object >= 0)
                H5Oclose(object);
            if (same >= 0)
                H5Oclose(same);
            H5Dclose(d);
            H5Fclose(earlier);
        }
        H5Fclose(file);
    }
}

/* A flush amends the version, and the snapshot that it replaces gives its place back. */
static void test_references_lead_to_what_is_made_in_the_place_of_a_replaced_snapshot(void **state)
{
    hid_t file = (remove(COW), H5Fcreate(COW, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT)), object;
    char name[40];
    (void)state;

    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "replaced %d", i);
        make_dataset(file, name, 2, 10, NULL, 1);
    }
    for (int value = 2; value < 4; value++) {
        assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        for (int i = 0; i < 5; i++) {
            snprintf(name, sizeof name, "replaced %d", i);
            assert_true((object = H5Dopen2(file, name, H5P_DEFAULT)) >= 0);
            fill(object, value);
            assert_true(H5Dclose(object) >= 0);
        }
    }
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    add_strangers(file, 1);
    for (int i = 0; i < 60; i++) {
        H5R_ref_t reference;
        hobj_ref_t old;

        snprintf(name, sizeof name, "stranger %d of 1", i);
        assert_true(H5Rcreate_object(file, name, H5P_DEFAULT, &reference) >= 0 &&
                    H5Rcreate(&old, file, name, H5R_OBJECT1, -1) >= 0);
        assert_true((object = H5Ropen_object(&reference, H5P_DEFAULT, H5P_DEFAULT)) >= 0 && get_stamp(object) == 99);
        assert_true(H5Oclose(object) >= 0);
        assert_true((object = H5Rdereference2(file, H5P_DEFAULT, H5R_OBJECT1, &old)) >= 0 && get_stamp(object) == 99);
        assert_true(H5Oclose(object) >= 0 && H5Rdestroy(&reference) >= 0);
    }
    assert_true(H5Fclose(file) >= 0);
}

/* Into a group that no version knows, which then is deleted, several levels deep. */
static void test_what_a_version_knows_is_kept_when_it_goes_with_a_new_group(void **state)
{
    hid_t file = (remove(COW), H5Fcreate(COW, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT)), object;
    static const char *const moved[] = {"large", "tiny", "group", "type", "twice"};
    const hsize_t chunk[] = {8, 4};
    H5O_info2_t was[COUNT(moved)], now;
    char path[60];
    (void)state;

    make_dataset(file, "large", 2, ROWS, chunk, 1);
    make_dataset(file, "tiny", 2, 10, NULL, 1);
    make_dataset(file, "twice", 2, 10, NULL, 1);
    object = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    set_stamp(object, 1);
    H5Gclose(object);
    object = H5Tcopy(H5T_STD_I16BE);
    assert_true(H5Tcommit2(file, "type", object, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    set_stamp(object, 1);
    H5Tclose(object);
    for (size_t i = 0; i < COUNT(moved); i++)
        assert_true(H5Oget_info_by_name3(file, moved[i], &was[i], H5O_INFO_BASIC, H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(file) >= 0 && (file = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
    H5Gclose(H5Gcreate2(file, "new", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Gclose(H5Gcreate2(file, "new/inner", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_true(H5Lcreate_hard(file, "new", file, "new/inner/again", H5P_DEFAULT, H5P_DEFAULT) >= 0 &&
                H5Ldelete(file, "new/inner/again", H5P_DEFAULT) >= 0);
    for (size_t i = 0; i < COUNT(moved); i++) {
        snprintf(path, sizeof path, i % 2 ? "new/%s" : "new/inner/%s", moved[i]);
        assert_true(H5Lmove(file, moved[i], file, path, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    }
    assert_true(H5Lcreate_hard(file, "new/inner/twice", file, "new/once more", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Ldelete(file, "new", H5P_DEFAULT) >= 0);
    for (int i = 0; i < 2; i++) {
        assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        add_strangers(file, i);
    }
    for (int i = 0; i < 60; i++) {
        snprintf(path, sizeof path, "stranger %d of 0", i);
        assert_true(H5Oget_info_by_name3(file, path, &now, H5O_INFO_BASIC, H5P_DEFAULT) >= 0);
        for (size_t k = 0; k < COUNT(moved); k++)
            assert_true(memcmp(&now.token, &was[k].token, sizeof now.token) != 0);
    }
    H5E_BEGIN_TRY
    {
        for (size_t k = 0; k < COUNT(moved); k++)
            assert_true(H5Oopen_by_token(file, was[k].token) < 0);
    }
    H5E_END_TRY
    assert_true(H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    for (size_t k = 0; k < COUNT(moved); k++) {
        assert_true((object = H5Oopen_by_token(file, was[k].token)) >= 0 && get_stamp(object) == 1);
        assert_true(H5Oclose(object) >= 0);
    }
    assert_true(H5Fclose(file) >= 0);
}

/* ---- regions of what is gone ---- */

/* References to N selections of DATASET, all different. */
static void make_regions(hid_t dataset, size_t n, H5R_ref_t region[])
{
    hid_t space = H5Dget_space(dataset);

    for (size_t i = 0; i < n; i++) {
        hsize_t start[] = {i, 0}, count[] = {2, 3};

        assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
        assert_true(H5Rcreate_region(dataset, ".", space, H5P_DEFAULT, &region[i]) >= 0);
    }
    H5Sclose(space);
}

static hid_t make_holder(hid_t file, const char *name, hsize_t n)
{
    const hsize_t most = H5S_UNLIMITED, one = 1;
    hid_t space = H5Screate_simple(1, &n, &most), dcpl = H5Pcreate(H5P_DATASET_CREATE), d;

    assert_true(H5Pset_chunk(dcpl, 1, &one) >= 0);
    assert_true((d = H5Dcreate2(file, name, H5T_STD_REF, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    H5Pclose(dcpl);
    H5Sclose(space);
    return d;
}

/* One that HDF5 keeps itself, without a link: it goes with its handle. */
static hid_t make_unlinked(hid_t file)
{
    const hsize_t extent[] = {10, 4};
    hid_t space = H5Screate_simple(2, extent, NULL), d;

    assert_true((d = H5Dcreate_anon(file, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    H5Sclose(space);
    return d;
}

#define REGIONS 3

/* The history compares what is written, for which HDF5 would open the dataset that a region is of. Where there is none any
 * more, HDF5 would keep what it takes for one, and could make no other there. */
static void test_a_region_of_what_is_gone_is_not_looked_at(void **state)
{
    H5R_ref_t region[REGIONS];
    hid_t file = (remove(COW), H5Fcreate(COW, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT)),
          holder = make_holder(file, "holder", REGIONS), gone = make_unlinked(file);
    (void)state;

    make_regions(gone, REGIONS, region);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0); /* so the disk has it */
    assert_true(H5Dclose(gone) >= 0);
    assert_true(H5Dwrite(holder, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, region) >= 0);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    add_strangers(file, 1);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    for (size_t i = 0; i < REGIONS; i++)
        H5Rdestroy(&region[i]);
    assert_true(H5Dclose(holder) >= 0 && H5Fclose(file) >= 0);
}

static void regions_begin_one_after_the_other(hid_t holder)
{
    H5R_ref_t read[REGIONS];

    assert_true(H5Dread(holder, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, read) >= 0);
    for (size_t i = 0; i < REGIONS; i++) {
        hsize_t block[4] = {100};
        hid_t space = H5Ropen_region(&read[i], H5P_DEFAULT, H5P_DEFAULT);

        assert_true(space >= 0 && H5Sget_select_hyper_blocklist(space, 0, 1, block) >= 0 && block[0] == i);
        H5Sclose(space);
        H5Rdestroy(&read[i]);
    }
}

/* Nobody but its handle leads to it, so the history does not look at it; chunks of references to it are not equal for that. */
static void test_regions_that_are_not_looked_at_stay_different(void **state)
{
    H5R_ref_t region[REGIONS];
    hid_t file = (remove(COW), H5Fcreate(COW, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT)),
          holder = make_holder(file, "holder", REGIONS), set = make_unlinked(file);
    (void)state;

    make_regions(set, REGIONS, region);
    for (int i = 0; i < 2; i++) {
        assert_true(H5Dwrite(holder, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, region) >= 0);
        assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        regions_begin_one_after_the_other(holder);
    }
    for (size_t i = 0; i < REGIONS; i++)
        H5Rdestroy(&region[i]);
    assert_true(H5Olink(set, file, "set", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Dclose(set) >= 0 && H5Dclose(holder) >= 0 && H5Fclose(file) >= 0);
    for (int i = 0; i < 2; i++) {
        assert_true((file = H5Fopen(i ? COW "@1" : COW, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0 &&
                    (holder = H5Dopen2(file, "holder", H5P_DEFAULT)) >= 0);
        regions_begin_one_after_the_other(holder);
        assert_true(H5Dclose(holder) >= 0 && H5Fclose(file) >= 0);
    }
}

#define SPOTS 300 /* no pattern: HDF5 keeps them as a tree */

/* As where the dataset has gone before any version knew it, and HDF5 gave its place to another one; or where a file was made
 * so. An H5R_ref_t begins with the token. */
static void test_a_region_of_another_rank_than_its_dataset(void **state)
{
    static const int ranks[] = {0, 1, 2, 4};
    const hsize_t dims[] = {9, 9, 9}, few[] = {2, 3, 4, 5}, many = 5000, one = 1;
    hid_t file = (remove(COW), H5Fcreate(COW, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT)),
          type = H5Tarray_create2(H5T_STD_I32LE, 1, &many), cube = H5Screate_simple(3, dims, NULL),
          single = H5Screate_simple(1, &one, NULL), holder, made, space;
    (void)state;

    assert_true((made = H5Dcreate2(file, "cube", H5T_STD_I32LE, cube, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(H5Dclose(made) >= 0 && H5Sselect_none(cube) >= 0);
    for (hsize_t i = 0; i < SPOTS; i++) {
        const hsize_t start[] = {i * i % 7, i * 7 % 9, i * i * i % 8}, count[] = {1, 1, 1};
        assert_true(H5Sselect_hyperslab(cube, H5S_SELECT_OR, start, NULL, count, NULL) >= 0);
    }
    for (size_t i = 0; i < COUNT(ranks); i++) {
        char name[40];
        H5O_info2_t info;
        H5R_ref_t region, read;

        snprintf(name, sizeof name, "rank %d", ranks[i]);
        space = ranks[i] == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(ranks[i], few, NULL);
        assert_true((made = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        assert_true(H5Oget_info3(made, &info, H5O_INFO_BASIC) >= 0);
        assert_true(H5Rcreate_region(file, "cube", cube, H5P_DEFAULT, &region) >= 0);
        memcpy(&region, &info.token, sizeof info.token);
        snprintf(name, sizeof name, "holder %d", ranks[i]);
        assert_true((holder = make_holder(file, name, 1)) >= 0);
        assert_true(H5Dwrite(holder, H5T_STD_REF, single, H5S_ALL, H5P_DEFAULT, &region) >= 0);
        assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 && H5Dclose(made) >= 0);
        assert_true(H5Dread(holder, H5T_STD_REF, single, H5S_ALL, H5P_DEFAULT, &read) >= 0);
        assert_true(H5Rget_type(&read) == H5R_DATASET_REGION2 && H5Rdestroy(&read) >= 0);
        assert_true(H5Rdestroy(&region) >= 0 && H5Dclose(holder) >= 0 && H5Sclose(space) >= 0);
    }
    H5Sclose(single), H5Sclose(cube), H5Tclose(type);
    assert_true(H5Fclose(file) >= 0);
}

/* How many elements it has, nobody can say; HDF5 keeps it as start, stride and block. */
static void test_an_unlimited_region_is_kept_and_copied(void **state)
{
    const hsize_t extent = 100, most = H5S_UNLIMITED, chunk = 10, start = 3, stride = 5, block = 2, one = 1;
    hid_t space = H5Screate_simple(1, &extent, &most), single = H5Screate_simple(1, &one, NULL),
          dcpl = H5Pcreate(H5P_DATASET_CREATE), list = H5Pcreate(H5P_OBJECT_COPY), file, other, set, holder, got;
    H5R_ref_t region;

    (void)state;
    assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
    assert_true(H5Pset_copy_object(list, H5O_COPY_EXPAND_REFERENCE_FLAG) >= 0);
    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &stride, &most, &block) >= 0);
    remove(COW);
    assert_true((file = H5Fcreate(COW, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true((set = H5Dcreate2(file, "set", H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    holder = make_holder(file, "holder", 1);
    assert_true(H5Rcreate_region(file, "set", space, H5P_DEFAULT, &region) >= 0);
    assert_true(H5Dwrite(holder, H5T_STD_REF, single, H5S_ALL, H5P_DEFAULT, &region) >= 0);
    assert_true(H5Rdestroy(&region) >= 0 && H5Dclose(set) >= 0 && H5Dclose(holder) >= 0 && H5Fclose(file) >= 0);
    assert_true((other = H5Fcreate(OTHER, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    for (int k = 0; k < 3; k++) {
        hsize_t is[4] = {0};

        assert_true((file = H5Fopen(k ? COW "@1" : COW, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
        if (k == 2)
            assert_true(H5Ocopy(file, "holder", other, "holder", list, H5P_DEFAULT) >= 0);
        assert_true((holder = H5Dopen2(k == 2 ? other : file, "holder", H5P_DEFAULT)) >= 0);
        assert_true(H5Dread(holder, H5T_STD_REF, single, H5S_ALL, H5P_DEFAULT, &region) >= 0);
        assert_true((got = H5Ropen_region(&region, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        assert_true(H5Sget_regular_hyperslab(got, &is[0], &is[1], &is[2], &is[3]) >= 0);
        assert_true(is[0] == start && is[1] == stride && is[2] == most && is[3] == block);
        assert_true(H5Sclose(got) >= 0 && H5Rdestroy(&region) >= 0 && H5Dclose(holder) >= 0 && H5Fclose(file) >= 0);
    }
    assert_true(H5Fclose(other) >= 0 && H5Pclose(dcpl) >= 0 && H5Pclose(list) >= 0 && H5Sclose(space) >= 0 &&
                H5Sclose(single) >= 0);
}

/* H5Requal does not compare what regions select. */
static void test_an_attribute_with_another_region_is_in_the_next_version(void **state)
{
    static const hsize_t starts[] = {2, 7};
    const hsize_t extent = 100, count = 3;
    hid_t space = H5Screate_simple(1, &extent, NULL), scalar = H5Screate(H5S_SCALAR), file, set, attribute, got;
    H5R_ref_t region, nothing;

    (void)state;
    memset(&nothing, 0, sizeof nothing);
    remove(COW);
    for (size_t i = 0; i < COUNT(starts); i++) {
        if (i == 0) {
            assert_true((file = H5Fcreate(COW, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
            assert_true((set = H5Dcreate2(file, "set", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >=
                        0);
            assert_true((attribute = H5Acreate2(set, "region", H5T_STD_REF, scalar, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        } else {
            assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
            assert_true((set = H5Dopen2(file, "set", H5P_DEFAULT)) >= 0);
            assert_true((attribute = H5Aopen(set, "region", H5P_DEFAULT)) >= 0);
        }
        assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, &starts[i], NULL, &count, NULL) >= 0);
        assert_true(H5Rcreate_region(file, "set", space, H5P_DEFAULT, &region) >= 0);
        assert_true(H5Awrite(attribute, H5T_STD_REF, &region) >= 0 && H5Aclose(attribute) >= 0);
        assert_true(H5Rdestroy(&region) >= 0 && H5Dclose(set) >= 0 && H5Fclose(file) >= 0);
    }
    for (size_t i = 0; i < COUNT(starts); i++) {
        hsize_t first, last;

        assert_true((file = H5Fopen(i ? COW "@2" : COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
        assert_true((set = H5Dopen2(file, "set", H5P_DEFAULT)) >= 0);
        assert_true((attribute = H5Aopen(set, "region", H5P_DEFAULT)) >= 0);
        assert_true(H5Aread(attribute, H5T_STD_REF, &region) >= 0 && H5Aclose(attribute) >= 0);
        assert_true((got = H5Ropen_region(&region, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        assert_true(H5Sget_select_bounds(got, &first, &last) >= 0 && first == starts[i] && H5Sclose(got) >= 0);
        assert_true(H5Rdestroy(&region) >= 0 && H5Dclose(set) >= 0 && H5Fclose(file) >= 0);
    }
    /* one that is never written, and one that holds nothing: nothing asks H5Requal, which ends some programs then */
    assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0 &&
                (set = H5Dopen2(file, "set", H5P_DEFAULT)) >= 0);
    assert_true((attribute = H5Acreate2(set, "empty", H5T_STD_REF, scalar, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    assert_true(H5Awrite(attribute, H5T_STD_REF, &nothing) >= 0 && H5Aclose(attribute) >= 0);
    assert_true(H5Dclose(set) >= 0 && H5Fclose(file) >= 0 && H5Sclose(space) >= 0 && H5Sclose(scalar) >= 0);
}

/* No version has known it; the commit opens it for its region, and is the last to do so. */
static void test_a_region_of_what_this_commit_drops(void **state)
{
    const hsize_t dims[] = {100, 100};
    H5R_ref_t region[REGIONS];
    hid_t file = (remove(COW), H5Fcreate(COW, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT)),
          space = H5Screate_simple(2, dims, NULL), holder, large;
    (void)state;

    for (int round = 0; round < 2; round++) {
        assert_true((large = H5Dcreate2(file, "large", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >=
                    0);
        make_regions(large, REGIONS, region);
        assert_true(H5Ldelete(file, "large", H5P_DEFAULT) >= 0 && H5Dclose(large) >= 0);
        holder = make_holder(file, round ? "later" : "holder", REGIONS); /* is committed after the other */
        assert_true(H5Dwrite(holder, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, region) >= 0);
        assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        for (size_t i = 0; i < REGIONS; i++)
            assert_true(H5Rdestroy(&region[i]) >= 0);
        assert_true(H5Dclose(holder) >= 0);
    }
    assert_true(H5Sclose(space) >= 0 && H5Fclose(file) >= 0);
}

/* ---- deleting with what is below, with several links, and what is in use ---- */

static void make_tree(hid_t file, int version)
{
    const char *const names[] = {"top/below/deep", "top/shared", "top/kept", "type", "top", "counted", "alone"};
    hid_t group, type = H5Tcopy(H5T_STD_I32LE), d, space;
    hobj_ref_t old[COUNT(names)];
    H5R_ref_t new[COUNT(names)];
    hsize_t n = COUNT(names);
    int value = version;

    group = H5Gcreate2(file, "top", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    set_stamp(group, version);
    H5Gclose(group);
    H5Gclose(H5Gcreate2(file, "top/below", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    make_dataset(file, "top/below/deep", 2, 10, NULL, version);
    make_dataset(file, "top/shared", 2, 10, NULL, version);
    make_dataset(file, "top/kept", 2, 10, NULL, version);
    make_dataset(file, "counted", 2, 10, NULL, version);
    make_dataset(file, "alone", 2, 10, NULL, version);
    assert_true(H5Lcreate_hard(file, "top/shared", file, "second", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_hard(file, "top/kept", file, "other", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Tcommit2(file, "type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    set_stamp(type, version);
    space = H5Screate(H5S_SCALAR);
    d = H5Dcreate2(file, "of type", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0);
    H5Dclose(d);
    H5Sclose(space);
    H5Tclose(type);
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_true(H5Rcreate(&old[i], file, names[i], H5R_OBJECT1, -1) >= 0);
        assert_true(H5Rcreate_object(file, names[i], H5P_DEFAULT, &new[i]) >= 0);
    }
    space = H5Screate_simple(1, &n, NULL);
    d = H5Dcreate2(file, "old", H5T_STD_REF_OBJ, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(d, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, old) >= 0);
    H5Dclose(d);
    d = H5Dcreate2(file, "new", H5T_STD_REF, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(d, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, new) >= 0);
    H5Dclose(d);
    H5Sclose(space);
    for (size_t i = 0; i < COUNT(names); i++)
        H5Rdestroy(&new[i]);
}

static void delete_tree(hid_t file, int version)
{
    hid_t object;

    (void)version;
    assert_true((object = H5Oopen(file, "counted", H5P_DEFAULT)) >= 0 && H5Oincr_refcount(object) >= 0);
    H5Oclose(object);
    assert_true(H5Ldelete(file, "counted", H5P_DEFAULT) >= 0);
    assert_true(H5Ldelete(file, "top", H5P_DEFAULT) >= 0);
    assert_true(H5Ldelete(file, "type", H5P_DEFAULT) >= 0);
}

static void delete_second(hid_t file, int version)
{
    (void)version;
    assert_true(H5Ldelete(file, "second", H5P_DEFAULT) >= 0);
}

/* A string of + (leads to an object) and - (nowhere), for the references in order; both kinds must agree. */
static void where_they_lead(hid_t file, char out[8])
{
    hobj_ref_t old[7];
    H5R_ref_t new[7];
    hid_t d = H5Dopen2(file, "old", H5P_DEFAULT), object[2];

    assert_true(H5Dread(d, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, old) >= 0);
    H5Dclose(d);
    d = H5Dopen2(file, "new", H5P_DEFAULT);
    assert_true(H5Dread(d, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, new) >= 0);
    H5Dclose(d);
    for (int i = 0; i < 7; i++) {
        H5E_BEGIN_TRY
        {
            object[0] = H5Rdereference2(file, H5P_DEFAULT, H5R_OBJECT1, &old[i]);
            object[1] = H5Ropen_object(&new[i], H5P_DEFAULT, H5P_DEFAULT);
        }
        H5E_END_TRY
        assert_true((object[0] < 0) == (object[1] < 0));
        out[i] = object[0] < 0 ? '-' : get_stamp(object[0]) == 1 && get_stamp(object[1]) == 1 ? '+' : '?';
        for (int j = 0; j < 2; j++)
            if (object[j] >= 0)
                H5Oclose(object[j]);
        H5Rdestroy(&new[i]);
    }
    out[7] = '\0';
}

static void expect_leads(const char *name, const char *expected)
{
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
    char found[8] = "";

    assert_true(file >= 0);
    where_they_lead(file, found);
    H5Fclose(file);
    if (strcmp(found, expected) != 0)
        printf("  %s: %s instead of %s\n", name, found, expected);
    assert_true(strcmp(found, expected) == 0);
}

/* In order: deep, shared, kept, type, top, counted, alone. */
static void test_what_is_deleted_with_a_group_is_deleted_and_what_is_held_is_not(void **state)
{
    (void)state;
    make_version(1, make_tree);
    make_version(2, delete_tree);
    expect_leads(COW "@1", "+++++++");
    expect_leads(COW "@2", "-+++-++");
    expect_leads(COW, "-+++-++");
    make_version(3, delete_second);
    expect_leads(COW "@1", "+++++++");
    expect_leads(COW "@2", "-+++-++");
    expect_leads(COW "@3", "--++-++");
    expect_leads(COW, "--++-++");
}

static void test_after_recreation_references_of_old_versions_still_lead(void **state)
{
    hid_t file;
    (void)state;

    make_version(1, make_tree);
    assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    make_tree(file, 1);
    assert_true(H5Fclose(file) >= 0);
    assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(H5Fclose(file) >= 0);
    expect_leads(COW "@1", "+++++++");
    expect_leads(COW "@2", "+++++++");
}

/* ---- conversion ---- */

static const place all_places[] = {TINY, COMPACT, ONE, CHUNKED, CONTIGUOUS, ATTRIBUTE};

/* As h5dump and h5diff of 1.12 and later read them. */
static void say_as_new(listing *out, hid_t file, kind k, shape s, place p)
{
    held h = held_of(k == OLD_OBJECT ? NEW_OBJECT : NEW_REGION, s);
    hsize_t n = elements_in(p);
    hid_t space = H5Screate_simple(1, &n, NULL), made;
    unsigned char *elements = calloc(n, h.size);
    char name[200];
    void *reference;

    place_name(name, k, s, p);
    made = p == ATTRIBUTE ? H5Aopen(file, name, H5P_DEFAULT) : H5Dopen2(file, name, H5P_DEFAULT);
    assert_true((p == ATTRIBUTE ? H5Aread(made, h.type, elements)
                                : H5Dread(made, h.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, elements)) >= 0);
    for (hsize_t i = 0; i < n && i < COUNT(targets); i++)
        for (size_t j = 0; (reference = reference_in(&h, s, elements + i * h.size, j)) != NULL; j++) {
            say(out, "%s %llu.%zu as new:", name, (unsigned long long)i, j);
            say_reference(out, file, k == OLD_OBJECT ? NEW_OBJECT : NEW_REGION, reference);
        }
    assert_true(H5Treclaim(h.type, space, H5P_DEFAULT, elements) >= 0);
    free(elements);
    H5Sclose(space);
    if (p == ATTRIBUTE)
        H5Aclose(made);
    else
        H5Dclose(made);
    held_done(&h);
}

static void describe_as_new(listing *out, hid_t file)
{
    for (size_t i = 0; i < COUNT(all_places); i++)
        for (shape s = PLAIN; s <= COMPOUND; s++)
            for (kind k = OLD_OBJECT; k <= OLD_REGION; k++)
                say_as_new(out, file, k, s, all_places[i]);
}

static void make_and_read(hid_t file, int version)
{
    static listing out;

    make_all(file, version);
    clear(&out);
    describe_as_new(&out, file); /* before anything is committed */
    assert_true(out.length > 0 && strstr(out.data, "nowhere") == NULL);
}

static void test_old_references_are_read_as_new_ones(void **state)
{
    (void)state;
    make_version(1, make_and_read);
    make_version(2, move_some);
    compare_with_kept(1, describe_as_new);
    compare_with_kept(2, describe_as_new);
}

/* ---- versions beside each other ---- */

static int differing_objects;

static herr_t count_differing(hid_t start, const char *name, const H5O_info2_t *info, void *context)
{
    const hid_t *other = context;
    H5O_info2_t there, here;

    if (H5Oget_info_by_name3(start, name, &here, H5O_INFO_BASIC, H5P_DEFAULT) < 0 || here.fileno != info->fileno ||
        memcmp(&here.token, &info->token, sizeof here.token) != 0)
        return -1;
    if (H5Oget_info_by_name3(*other, name, &there, H5O_INFO_BASIC, H5P_DEFAULT) >= 0)
        differing_objects += there.fileno != info->fileno;
    return 0;
}

static herr_t check_link(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    H5O_info2_t object;

    (void)context;
    if (H5Oget_info_by_name3(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return -1;
    return memcmp(&object.token, &info->u.token, sizeof object.token) == 0 ? 0 : -1;
}

static void test_objects_of_two_versions_are_never_one_object(void **state)
{
    hid_t file[3];
    (void)state;

    make_version(1, make_tree);
    make_version(2, delete_second);
    file[0] = open_version(1);
    file[1] = open_version(2);
    file[2] = H5Fopen(COW, H5F_ACC_RDONLY, H5P_DEFAULT);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            differing_objects = 0;
            assert_true(H5Ovisit3(file[i], H5_INDEX_NAME, H5_ITER_INC, count_differing, &file[j], H5O_INFO_BASIC) >= 0);
            assert_true(i == j ? differing_objects == 0 : differing_objects >= 9);
        }
    for (int i = 0; i < 3; i++) {
        assert_true(H5Lvisit2(file[i], H5_INDEX_NAME, H5_ITER_INC, check_link, NULL) >= 0);
        assert_true(H5Literate2(file[i], H5_INDEX_NAME, H5_ITER_INC, NULL, check_link, NULL) >= 0);
        H5Fclose(file[i]);
    }
}

/* ---- what holds references open ---- */

static void many_references(hid_t file, int version)
{
    enum { N = 3000 };
    H5R_ref_t *references = calloc(N, sizeof *references);
    hsize_t n = N;
    hid_t space = H5Screate_simple(1, &n, NULL), d;

    make_dataset(file, "a", 2, 10, NULL, version);
    for (int i = 0; i < N; i++)
        assert_true(H5Rcreate_object(file, "a", H5P_DEFAULT, &references[i]) >= 0);
    d = H5Dcreate2(file, "many", H5T_STD_REF, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(d, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, references) >= 0);
    H5Dclose(d);
    H5Sclose(space);
    for (int i = 0; i < N; i++)
        H5Rdestroy(&references[i]);
    free(references);
}

static void change_a(hid_t file, int version)
{
    hid_t d = H5Dopen2(file, "a", H5P_DEFAULT);

    fill(d, version);
    H5Dclose(d);
}

/* The application's own file is what they hold, in whatever order things are closed; nothing else is left open. */
static void test_references_outlive_the_file_id_they_were_read_through(void **state)
{
    (void)state;
    make_version(1, many_references);
    make_version(2, change_a);
    make_version(3, change_a);
    for (unsigned version = 1; version <= 3; version++)
        for (int order = 0; order < 3; order++) {
            hid_t file = open_version(version), d = H5Dopen2(file, "many", H5P_DEFAULT), one = H5Screate(H5S_SCALAR),
                  space = H5Dget_space(d), object;
            hsize_t first = 2999, count = 1;
            char name[100];
            H5R_ref_t reference;

            H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &count, NULL);
            if (order == 0)
                assert_true(H5Fclose(file) >= 0);
            assert_true(H5Dread(d, H5T_STD_REF, one, space, H5P_DEFAULT, &reference) >= 0);
            if (order == 1)
                assert_true(H5Fclose(file) >= 0);
            assert_true(H5Dclose(d) >= 0);
            if (order == 2)
                assert_true(H5Fget_obj_count(file, H5F_OBJ_ALL) == 1 && H5Fclose(file) >= 0);
            assert_true((object = H5Ropen_object(&reference, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
            assert_true(get_stamp(object) == (int)version);
            assert_true(H5Iget_name(object, name, sizeof name) > 0 && strcmp(name, "/a") == 0);
            assert_true(H5Fget_name(object, name, sizeof name) > 0 &&
                        strcmp(strchr(name, '@') + 1, version == 1   ? "1"
                                                      : version == 2 ? "2"
                                                                     : "3") == 0);
            H5Oclose(object);
            H5Rdestroy(&reference);
            H5Sclose(space);
            H5Sclose(one);
            assert_true(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_FILE | H5F_OBJ_DATASET | H5F_OBJ_GROUP) == 0);
        }
}

/* A reference into a version that is written to another file names the version. */
static void test_reference_into_a_version_keeps_its_version_in_another_file(void **state)
{
    hid_t version, other, d, space = H5Screate(H5S_SCALAR);
    H5R_ref_t reference;
    char name[100] = "";
    (void)state;

    make_version(1, many_references);
    make_version(2, change_a);
    version = open_version(1);
    assert_true(H5Rcreate_object(version, "a", H5P_DEFAULT, &reference) >= 0);
    assert_true((other = H5Fcreate(OTHER, H5F_ACC_TRUNC, H5P_DEFAULT, native_fapl)) >= 0);
    d = H5Dcreate2(other, "elsewhere", H5T_STD_REF, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(d, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, &reference) >= 0);
    H5Rdestroy(&reference);
    assert_true(H5Dread(d, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, &reference) >= 0);
    assert_true(H5Rget_file_name(&reference, name, sizeof name) > 0 && strcmp(name, COW "@1") == 0);
    H5Rdestroy(&reference);
    H5Dclose(d);
    H5Sclose(space);
    H5Fclose(other);
    H5Fclose(version);
}

/* References into another file, which is not there, in all places that a commit copies. */
static void refer_elsewhere(hid_t file, int version)
{
    const hsize_t n = 5, most = H5S_UNLIMITED, chunk = 3;
    hid_t other, space = H5Screate_simple(1, &n, &most), tiny = H5Screate_simple(1, &n, NULL), dcpl, d, a;
    H5R_ref_t references[5];

    assert_true((other = H5Fcreate(OTHER, H5F_ACC_TRUNC, H5P_DEFAULT, native_fapl)) >= 0);
    make_targets(other, version);
    for (int i = 0; i < 5; i++)
        assert_true(H5Rcreate_object(i % 2 ? file : other, i % 2 ? "/" : "data", H5P_DEFAULT, &references[i]) >= 0);
    dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, 1, &chunk);
    d = H5Dcreate2(file, "many", H5T_STD_REF, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(H5Dwrite(d, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, references) >= 0 && H5Dclose(d) >= 0);
    d = H5Dcreate2(file, "tiny", H5T_STD_REF, tiny, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(d, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, references) >= 0);
    a = H5Acreate2(d, "attribute", H5T_STD_REF, tiny, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(a, H5T_STD_REF, references) >= 0 && H5Aclose(a) >= 0 && H5Dclose(d) >= 0);
    for (int i = 0; i < 5; i++)
        H5Rdestroy(&references[i]);
    H5Pclose(dcpl);
    H5Sclose(tiny);
    H5Sclose(space);
    H5Fclose(other);
    remove(OTHER);
}

static void refer_here(hid_t file, int version)
{
    static const char *const names[] = {"many", "tiny"};
    hid_t one = H5Screate(H5S_SCALAR);
    hsize_t last = 1;

    (void)version;
    for (int i = 0; i < 2; i++) {
        hid_t d = H5Dopen2(file, names[i], H5P_DEFAULT), space = H5Dget_space(d);
        H5R_ref_t reference;

        assert_true(H5Rcreate_object(file, "tiny", H5P_DEFAULT, &reference) >= 0);
        assert_true(H5Sselect_elements(space, H5S_SELECT_SET, 1, &last) >= 0 &&
                    H5Dwrite(d, H5T_STD_REF, one, space, H5P_DEFAULT, &reference) >= 0);
        H5Rdestroy(&reference);
        H5Sclose(space);
        H5Dclose(d);
    }
    H5Sclose(one);
}

static void describe_elsewhere(listing *out, hid_t file)
{
    static const char *const names[] = {"many", "tiny", "attribute of tiny"};
    char name[200];

    for (int i = 0; i < 3; i++) {
        hid_t d = H5Dopen2(file, i == 0 ? "many" : "tiny", H5P_DEFAULT), a;
        H5R_ref_t references[5];

        if (i < 2)
            assert_true(H5Dread(d, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, references) >= 0);
        else
            assert_true((a = H5Aopen(d, "attribute", H5P_DEFAULT)) >= 0 && H5Aread(a, H5T_STD_REF, references) >= 0 &&
                        H5Aclose(a) >= 0);
        for (int j = 0; j < 5; j++) {
            assert_true(H5Rget_file_name(&references[j], name, sizeof name) > 0);
            say(out, "%s %d: %s", names[i], j, strncmp(name, OTHER, sizeof OTHER) == 0 ? name : "this file");
            if (strcmp(name, OTHER) != 0) {
                assert_true(H5Rget_obj_name(&references[j], H5P_DEFAULT, name, sizeof name) > 0);
                say(out, " %s", name);
            }
            say(out, "\n");
            H5Rdestroy(&references[j]);
        }
        H5Dclose(d);
    }
}

static void test_references_into_other_files_are_kept_in_every_version(void **state)
{
    (void)state;
    make_version(1, refer_elsewhere);
    make_version(2, refer_here);
    compare_with_kept(1, describe_elsewhere);
    compare_with_kept(2, describe_elsewhere);
}

/* A region is that of the version's extent, also when the dataset has shrunk since. */
static void shrink_rows(hid_t file, int version)
{
    hid_t d = H5Dopen2(file, "rows", H5P_DEFAULT);
    hsize_t dims[] = {version == 2 ? 3 : 2 * ROWS, 4};

    assert_true(H5Dset_extent(d, dims) >= 0);
    H5Dclose(d);
}

static void describe_regions(listing *out, hid_t file)
{
    say_place(out, file, OLD_REGION, PLAIN, CHUNKED);
    say_place(out, file, NEW_REGION, PLAIN, CHUNKED);
    say_place(out, file, NEW_REGION, PLAIN, TINY);
}

static void test_regions_are_those_of_the_extent_that_the_version_has(void **state)
{
    (void)state;
    make_version(1, make_all);
    make_version(2, shrink_rows);
    compare_with_kept(1, describe_regions);
    make_version(3, shrink_rows);
    compare_with_kept(1, describe_regions);
    compare_with_kept(3, describe_regions);
}

/* What no link holds: types by their use, a group by a count. The tokens are those of the version that knows them. */
static H5O_token_t unlinked_tokens[3];

static H5O_token_t token_of(hid_t object)
{
    H5O_info2_t info = {.rc = 0};

    assert_true(H5Oget_info3(object, &info, H5O_INFO_BASIC) >= 0);
    return info.token;
}

static void put_attribute(hid_t file, const char *name, hid_t type)
{
    hid_t space = H5Screate(H5S_SCALAR), a = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);

    assert_true(a >= 0 && H5Awrite(a, H5T_NATIVE_INT, &(int){7}) >= 0);
    H5Aclose(a);
    H5Sclose(space);
}

static void make_held(hid_t file)
{
    hid_t type = H5Tcopy(H5T_STD_I32BE), group;

    assert_true(H5Tcommit2(file, "type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    unlinked_tokens[0] = token_of(type);
    put_attribute(file, "unlinked", type);
    assert_true(H5Ldelete(file, "type", H5P_DEFAULT) >= 0);
    H5Tclose(type);
    type = H5Tcopy(H5T_STD_I32BE);
    assert_true(H5Tcommit_anon(file, type, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    put_attribute(file, "anonymous", type);
    unlinked_tokens[1] = token_of(type);
    H5Tclose(type);
    group = H5Gcreate2(file, "counted", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Oincr_refcount(group) >= 0);
    unlinked_tokens[2] = token_of(group);
    H5Gclose(group);
}

/* New objects come where there is room. */
static void replace_held(hid_t file)
{
    char name[20];
    hid_t group = H5Gopen2(file, "counted", H5P_DEFAULT), type;

    assert_true(H5Adelete(file, "unlinked") >= 0 && H5Adelete(file, "anonymous") >= 0);
    assert_true(H5Ldelete(file, "counted", H5P_DEFAULT) >= 0 && H5Odecr_refcount(group) >= 0);
    H5Gclose(group);
    for (int i = 0; i < 60; i++) {
        H5O_token_t token[2];
        snprintf(name, sizeof name, "group %d", i);
        assert_true((group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        token[0] = token_of(group);
        H5Gclose(group);
        type = H5Tcopy(H5T_STD_I32BE);
        snprintf(name, sizeof name, "type %d", i);
        assert_true(H5Tcommit2(file, name, type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
        token[1] = token_of(type);
        H5Tclose(type);
        for (size_t j = 0; j < 2 * COUNT(unlinked_tokens); j++)
            assert_true(memcmp(&unlinked_tokens[j / 2], &token[j % 2], sizeof *token) != 0);
    }
}

static void test_an_address_that_a_version_knows_is_never_another_objects(void **state)
{
    hid_t file;
    (void)state;

    remove(COW);
    assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    make_held(file);
    H5Fclose(file);
    assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
    replace_held(file);
    H5Fclose(file);
    file = open_version(1);
    assert_true(H5Aexists(file, "unlinked") > 0 && H5Aexists(file, "anonymous") > 0);
    assert_true(H5Lexists(file, "counted", H5P_DEFAULT) > 0);
    H5Fclose(file);
    assert_true((file = H5Fopen(COW, H5F_ACC_RDONLY, native_fapl)) >= 0);
    for (size_t i = 0; i < COUNT(unlinked_tokens); i++) {
        hid_t object = H5Oopen_by_token(file, unlinked_tokens[i]);
        assert_true(object >= 0 && H5Oclose(object) >= 0);
    }
    H5Fclose(file);
}

/* What a region was of can be asked for only while its dataset is there. The reference is written when it is, and read
 * when it is not. */
static void test_chunk_of_regions_is_readable_after_their_dataset_was_deleted(void **state)
{
    static const char *const names[] = {COW, COW "@1"};
    const hsize_t n = 100, chunk = 50;
    hid_t file = (remove_files(), H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)),
          dcpl = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &n, NULL), d, region;
    H5R_ref_t reference[100], back[100];
    (void)state;

    memset(reference, 0, sizeof reference);
    H5Pset_chunk(dcpl, 1, &chunk);
    make_targets(file, 1);
    region = region_of(file, "rows", 0);
    assert_true(H5Rcreate_region(file, "rows", region, H5P_DEFAULT, &reference[3]) >= 0);
    H5Sclose(region);
    assert_true((d = H5Dcreate2(file, "references", H5T_STD_REF, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    assert_true(H5Dwrite(d, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, reference) >= 0);
    assert_true(H5Dflush(d) >= 0);
    assert_true(H5Dclose(d) >= 0);
    H5Rdestroy(&reference[3]);
    assert_true(H5Ldelete(file, "rows", H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(file) >= 0);
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_true((file = H5Fopen(names[i], H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
        assert_true((d = H5Dopen2(file, "references", H5P_DEFAULT)) >= 0);
        assert_true(H5Dread(d, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
        assert_true(H5Rget_type(&back[3]) == H5R_DATASET_REGION2);
        H5Treclaim(H5T_STD_REF, space, H5P_DEFAULT, back);
        H5Dclose(d);
        assert_true(H5Fclose(file) >= 0);
    }
    H5Sclose(space);
    H5Pclose(dcpl);
}

/* H5Ocopy within a file keeps references as they are. */
static void test_references_copied_within_the_file_still_lead(void **state)
{
    const hsize_t n[] = {3, 2000};
    static hobj_ref_t reference[2000], back[2000];
    hid_t file = (remove_files(), H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    (void)state;

    make_targets(file, 1);
    for (size_t i = 0; i < COUNT(n); i++) { /* kept by HDF5, and by us */
        hid_t space = H5Screate_simple(1, &n[i], NULL),
              d = H5Dcreate2(file, "references", H5T_STD_REF_OBJ, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Rcreate(&reference[1], file, "data", H5R_OBJECT1, -1) >= 0);
        assert_true(H5Dwrite(d, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, reference) >= 0);
        H5Dclose(d);
        assert_true(H5Ocopy(file, "references", file, "copy", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true((d = H5Dopen2(file, "copy", H5P_DEFAULT)) >= 0);
        assert_true(H5Dread(d, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
        assert_true(memcmp(reference, back, n[i] * sizeof *back) == 0);
        H5Dclose(d);
        H5Sclose(space);
        assert_true(H5Ldelete(file, "references", H5P_DEFAULT) >= 0 && H5Ldelete(file, "copy", H5P_DEFAULT) >= 0);
    }
    assert_true(H5Fclose(file) >= 0);
}

typedef struct pair_of {
    int value;
    hobj_ref_t reference;
} pair_of;

/* Make NAME of N references to TARGET, of a kind: 0 to objects, 1 to regions, 2 those of HDF5 1.12, 3 inside a compound. */
static void make_references(hid_t file, const char *name, int which, hsize_t n, const char *target)
{
    const hsize_t chunk = n < 500 ? n : 500;
    hid_t space = H5Screate_simple(1, &n, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE), d,
          type = which == 3 ? H5Tcreate(H5T_COMPOUND, sizeof(pair_of))
                            : H5Tcopy(which == 0   ? H5T_STD_REF_OBJ
                                      : which == 1 ? H5T_STD_REF_DSETREG
                                                   : H5T_STD_REF),
          region = region_of(file, target, 0);
    char *values = calloc(n, H5Tget_size(type)), *second = values + H5Tget_size(type);

    H5Pset_chunk(dcpl, 1, &chunk);
    if (which == 0)
        assert_true(H5Rcreate(second, file, target, H5R_OBJECT1, -1) >= 0);
    if (which == 1)
        assert_true(H5Rcreate(second, file, target, H5R_DATASET_REGION1, region) >= 0);
    if (which == 2)
        assert_true(H5Rcreate_object(file, target, H5P_DEFAULT, (H5R_ref_t *)(void *)second) >= 0);
    if (which == 3) {
        H5Tinsert(type, "value", HOFFSET(pair_of, value), H5T_NATIVE_INT);
        H5Tinsert(type, "reference", HOFFSET(pair_of, reference), H5T_STD_REF_OBJ);
        assert_true(H5Rcreate(&((pair_of *)(void *)second)->reference, file, target, H5R_OBJECT1, -1) >= 0);
        ((pair_of *)(void *)second)->value = 7;
    }
    assert_true((d = H5Dcreate2(file, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    assert_true(H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    if (which == 2)
        H5Treclaim(type, space, H5P_DEFAULT, values);
    free(values);
    H5Dclose(d);
    H5Pclose(dcpl);
    H5Tclose(type);
    H5Sclose(region);
    H5Sclose(space);
}

/* The bytes of all references in NAME that are not 0. */
static size_t references_in(hid_t file, const char *name)
{
    hid_t d = H5Dopen2(file, name, H5P_DEFAULT), type = H5Dget_type(d), space = H5Dget_space(d);
    size_t n = (size_t)H5Sget_simple_extent_npoints(space), size = H5Tget_size(type), found = 0;
    bool pairs = H5Tget_class(type) == H5T_COMPOUND;
    char *values = calloc(n, size);

    assert_true(H5Dread(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    for (size_t i = 0; i < n * size; i++)
        found += values[i] != 0 && (!pairs || i % size >= HOFFSET(pair_of, reference));
    assert_true(!pairs || ((pair_of *)(void *)values)[1].value == 7);
    if (H5Tequal(type, H5T_STD_REF) > 0)
        H5Treclaim(type, space, H5P_DEFAULT, values);
    free(values);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(d);
    return found;
}

/* What an address of the source means in the copy's file is nobody's to say. HDF5 empties references, but not addresses
 * inside something else, which stay as they are, for h5diff to find the copy equal (test_tools.py, test_h5copy). */
static void test_references_copied_into_another_file_are_empty(void **state)
{
    static const char *const names[] = {"objects", "regions", "new", "pairs"};
    static const hsize_t n[] = {3, 2000};
    (void)state;

    for (int k = 0; k < 4;
         k++) { /* native; with history, into a file with history, into a plain one, out of a version */
        hid_t fapl = k ? H5P_DEFAULT : native_fapl;
        hid_t file = (remove_files(), H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)), other, from;
        char name[40];

        make_targets(file, 1);
        for (int which = 0; which < 4; which++)
            for (size_t i = 0; i < COUNT(n); i++) {
                snprintf(name, sizeof name, "%s-%d", names[which], (int)n[i]);
                make_references(file, name, which, n[i], "data");
                assert_true(references_in(file, name) > 0);
            }
        assert_true(H5Fclose(file) >= 0);
        assert_true((other = H5Fcreate(OTHER, H5F_ACC_TRUNC, H5P_DEFAULT, k == 1 ? H5P_DEFAULT : native_fapl)) >= 0);
        assert_true(H5Fclose(other) >= 0);
        assert_true((from = H5Fopen(k == 3 ? COW "@1" : COW, H5F_ACC_RDONLY, fapl)) >= 0);
        assert_true((other = H5Fopen(OTHER, H5F_ACC_RDWR, fapl)) >= 0);
        for (int which = 0; which < 4; which++)
            for (size_t i = 0; i < COUNT(n); i++) {
                snprintf(name, sizeof name, "%s-%d", names[which], (int)n[i]);
                assert_true(H5Ocopy(from, name, other, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
            }
        assert_true(H5Fclose(other) >= 0 && H5Fclose(from) >= 0);
        assert_true((other = H5Fopen(OTHER, H5F_ACC_RDONLY, fapl)) >= 0);
        for (int which = 0; which < 4; which++)
            for (size_t i = 0; i < COUNT(n); i++) {
                snprintf(name, sizeof name, "%s-%d", names[which], (int)n[i]);
                if (which < 3)
                    assert_true(references_in(other, name) == 0);
            }
        assert_true(H5Fclose(other) >= 0);
    }
}

/* Of the object that the second of three references leads to. */
static int stamp_behind(hid_t file, const char *name)
{
    hid_t d = H5Dopen2(file, name, H5P_DEFAULT), object;
    hobj_ref_t reference[2000];
    int stamp;

    assert_true(H5Dread(d, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, reference) >= 0);
    assert_true((object = H5Rdereference2(d, H5P_DEFAULT, H5R_OBJECT1, &reference[1])) >= 0);
    stamp = get_stamp(object);
    H5Oclose(object);
    H5Dclose(d);
    return stamp;
}

static hsize_t links_of(hid_t file)
{
    H5G_info_t info = {0};

    assert_true(H5Gget_info(file, &info) >= 0);
    return info.nlinks;
}

/* With H5O_COPY_EXPAND_REFERENCE_FLAG, HDF5 copies as well what references lead to: right as long as that is what it keeps
 * itself. What we keep, and what a version had, it cannot copy: that is an error, and nothing is left behind. */
static void test_copies_of_what_references_lead_to(void **state)
{
    hid_t list = H5Pcreate(H5P_OBJECT_COPY), file, other, d, object;
    (void)state;

    assert_true(H5Pset_copy_object(list, H5O_COPY_EXPAND_REFERENCE_FLAG) >= 0);
    for (int k = 0; k < 3; k++) { /* native, into a file with history, into a plain one */
        file = (remove_files(), H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, k ? H5P_DEFAULT : native_fapl));
        make_targets(file, 1);
        make_references(file, "to tiny", 0, 3, "tiny");
        make_references(file, "to data", 0, 3, "data");
        make_references(file, "many", 0, 2000, "tiny");
        make_references(file, "group/to inner", 0, 3, "group/inner");
        assert_true((d = H5Gcreate2(file, "whole", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        assert_true(H5Olink(object = H5Oopen(file, "data", H5P_DEFAULT), d, "data", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        H5Oclose(object);
        make_references(file, "whole/to data", 0, 3, "data");
        H5Gclose(d);
        assert_true(H5Fclose(file) >= 0);
        assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, k ? H5P_DEFAULT : native_fapl)) >= 0);
        change_targets(file, 2);
        assert_true(H5Fclose(file) >= 0);
        assert_true((other = H5Fcreate(OTHER, H5F_ACC_TRUNC, H5P_DEFAULT, k == 1 ? H5P_DEFAULT : native_fapl)) >= 0);
        assert_true(H5Fclose(other) >= 0);
        assert_true((file = H5Fopen(COW, H5F_ACC_RDONLY, k ? H5P_DEFAULT : native_fapl)) >= 0);
        assert_true((other = H5Fopen(OTHER, H5F_ACC_RDWR, k ? H5P_DEFAULT : native_fapl)) >= 0);
        assert_true(H5Ocopy(file, "to tiny", other, "copy", list, H5P_DEFAULT) >= 0);
        assert_true(H5Ocopy(file, "rows", other, "rows", list, H5P_DEFAULT) >= 0);
        assert_true(links_of(other) == 3);
        assert_true(H5Ocopy(file, "group", other, "group", list, H5P_DEFAULT) >= 0 && links_of(other) == 4);
        assert_true(stamp_behind(other, "group/to inner") == 2);
        assert_true(stamp_behind(other, "copy") == 2);
        assert_true(H5Ocopy(file, "to data", other, "to data", list, H5P_DEFAULT) >= 0);
        assert_true(stamp_behind(other, "to data") == 2 && links_of(other) == 6);
        assert_true(H5Ocopy(file, "many", other, "many", list, H5P_DEFAULT) >= 0 && stamp_behind(other, "many") == 2);
        assert_true(H5Ocopy(file, "whole", other, "whole", list, H5P_DEFAULT) >= 0);
        assert_true(stamp_behind(other, "whole/to data") == 2 && links_of(other) == 9);
        if (k > 0) {
            hid_t version = H5Fopen(COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT);
            assert_true(H5Ocopy(version, "to tiny", other, "old", list, H5P_DEFAULT) >= 0 &&
                        stamp_behind(other, "old") == 1);
            assert_true(H5Fclose(version) >= 0);
            assert_true(links_of(other) == 11);
        }
        assert_true(H5Fclose(other) >= 0 && H5Fclose(file) >= 0);
    }
    H5Pclose(list);
}

/* What H5Dset_extent did counts at once, before any commit. */
static void test_region_has_the_extent_that_its_dataset_was_just_given(void **state)
{
    static const hsize_t rows[] = {2 * ROWS, 3, ROWS};
    listing listed[2] = {{0}, {0}};
    (void)state;

    for (int k = 0; k < 2; k++) {
        hid_t file = H5Fcreate(k ? COW : NATIVE, H5F_ACC_TRUNC, H5P_DEFAULT, k ? H5P_DEFAULT : native_fapl), d;
        hdset_reg_ref_t reference;
        hid_t region;
        make_targets(file, 1);
        region = region_of(file, "rows", 0);
        assert_true(H5Rcreate(&reference, file, "rows", H5R_DATASET_REGION1, region) >= 0);
        H5Sclose(region);
        assert_true((d = H5Dopen2(file, "rows", H5P_DEFAULT)) >= 0);
        for (size_t i = 0; i < COUNT(rows); i++) {
            hsize_t dims[] = {rows[i], 4}, told[2] = {0, 0};
            assert_true(H5Dset_extent(d, dims) >= 0);
            assert_true((region = H5Rget_region(d, H5R_DATASET_REGION1, &reference)) >= 0);
            assert_true(H5Sget_simple_extent_dims(region, told, NULL) == 2);
            say(&listed[k], "%llu %llu\n", (unsigned long long)told[0], (unsigned long long)told[1]);
            H5Sclose(region);
        }
        H5Dclose(d);
        assert_true(H5Fclose(file) >= 0);
    }
    assert_true(same_text("regions", &listed[0], &listed[1]));
    free(listed[0].data);
    free(listed[1].data);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_references_of_every_kind_lead_to_objects_of_their_version),
        cmocka_unit_test(test_references_to_deleted_objects_lead_nowhere),
        cmocka_unit_test(test_reference_to_what_no_version_knew_never_leads_to_a_later_object),
        cmocka_unit_test(test_what_is_deleted_with_a_group_is_deleted_and_what_is_held_is_not),
        cmocka_unit_test(test_after_recreation_references_of_old_versions_still_lead),
        cmocka_unit_test(test_old_references_are_read_as_new_ones),
        cmocka_unit_test(test_objects_of_two_versions_are_never_one_object),
        cmocka_unit_test(test_references_outlive_the_file_id_they_were_read_through),
        cmocka_unit_test(test_reference_into_a_version_keeps_its_version_in_another_file),
        cmocka_unit_test(test_references_into_other_files_are_kept_in_every_version),
        cmocka_unit_test(test_regions_are_those_of_the_extent_that_the_version_has),
        cmocka_unit_test(test_an_address_that_a_version_knows_is_never_another_objects),
        cmocka_unit_test(test_chunk_of_regions_is_readable_after_their_dataset_was_deleted),
        cmocka_unit_test(test_references_lead_to_what_is_made_in_the_place_of_a_replaced_snapshot),
        cmocka_unit_test(test_what_a_version_knows_is_kept_when_it_goes_with_a_new_group),
        cmocka_unit_test(test_a_region_of_what_is_gone_is_not_looked_at),
        cmocka_unit_test(test_regions_that_are_not_looked_at_stay_different),
        cmocka_unit_test(test_a_region_of_another_rank_than_its_dataset),
        cmocka_unit_test(test_an_unlimited_region_is_kept_and_copied),
        cmocka_unit_test(test_an_attribute_with_another_region_is_in_the_next_version),
        cmocka_unit_test(test_a_region_of_what_this_commit_drops),
        cmocka_unit_test(test_references_copied_within_the_file_still_lead),
        cmocka_unit_test(test_references_copied_into_another_file_are_empty),
        cmocka_unit_test(test_copies_of_what_references_lead_to),
        cmocka_unit_test(test_region_has_the_extent_that_its_dataset_was_just_given),
    };
    int status = test_main(tests, argc, argv, through_begin, through_end);

    remove_files();
    return status;
}
