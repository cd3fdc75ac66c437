/* Filters with awkward functions: they compute parameters from parameters, count their calls, refuse, refuse once, give sizes that
 * cannot be, call HDF5. Each test is a program that is run natively and through the connector and writes down what it sees; the
 * two texts must be the same. Where native HDF5 crashes, which it does after H5Idec_ref or H5Oclose of a dataset whose chunk was
 * refused, the connector must not, and all else must be in the file. */
#include "through.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILTER   32700
#define CHUNK    1000
#define ELEMENTS 10000

/* ---- the filter ---- */

typedef enum encoding {
    ENCODES = 'n',
    REFUSES = 'e',
    REFUSES_ONCE = 'o',
    HALVES = 'w',  /* says that there are half as many bytes */
    GROWS = 'b',   /* a thousand times as many */
    NO_SIZE = 'z', /* as many as can be */
    CALLS = 'h',   /* HDF5, and refuses */
} encoding;

static struct {
    int can_apply, set_local; /* how often it was asked */
    htri_t can[2];            /* what it answers the first time, and then */
    herr_t local;
    encoding encoding;
    int encoded;
} filter;

static void call_hdf5(void)
{
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), stack = H5Eget_current_stack();
    hsize_t chunk = 10;

    H5Pset_chunk(dcpl, 1, &chunk);
    H5Pset_shuffle(dcpl);
    H5Pclose(dcpl);
    H5Eclose_stack(stack);
    H5Eclear2(H5E_DEFAULT);
    H5Pget_nfilters(H5P_DATASET_ACCESS_DEFAULT); /* an error of its own */
}

static htri_t can_apply(hid_t dcpl, hid_t type, hid_t space)
{
    hsize_t dims[H5S_MAX_RANK];

    if (H5Pget_chunk(dcpl, 1, dims) != 1 || H5Tget_size(type) != sizeof(int) || H5Sget_simple_extent_npoints(space) < 1)
        return -1;
    call_hdf5();
    return filter.can[filter.can_apply++ > 0];
}

/* As those of Bitshuffle, SZ and Sperr do: two more in front, whatever is there. */
static herr_t set_local(hid_t dcpl, hid_t type, hid_t space)
{
    unsigned flags, values[20];
    size_t count = 18;

    (void)space;
    filter.set_local++;
    if (filter.local < 0 || H5Pget_filter_by_id2(dcpl, FILTER, &flags, &count, values + 2, 0, NULL, NULL) < 0)
        return -1;
    values[0] = 1;
    values[1] = (unsigned)H5Tget_size(type);
    return H5Pmodify_filter(dcpl, FILTER, flags, count + 2, values);
}

/* Adds a parameter to each byte. */
static size_t run(unsigned flags, size_t count, const unsigned values[], size_t bytes, size_t *room, void **buffer)
{
    unsigned char *p = *buffer, add = (unsigned char)(count + (count > 2 ? values[2] : 0));

    (void)room;
    if (count < 3 || values[0] != 1 || values[1] != sizeof(int))
        return 0;
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(flags & H5Z_FLAG_REVERSE ? p[i] - add : p[i] + add);
    if (flags & H5Z_FLAG_REVERSE)
        return bytes;
    filter.encoded++;
    switch (filter.encoding) {
    case ENCODES:
        return bytes;
    case REFUSES:
        return 0;
    case REFUSES_ONCE:
        return filter.encoded == 1 ? 0 : bytes;
    case HALVES:
        return bytes / 2;
    case GROWS:
        return bytes * 100000;
    case NO_SIZE:
        return (size_t)-1;
    case CALLS:
        call_hdf5();
        return 0;
    }
    return 0;
}

static void begin(void)
{
    static const H5Z_class2_t class = {H5Z_CLASS_T_VERS, FILTER, 1, 1, "awkward", can_apply, set_local, run};

    memset(&filter, 0, sizeof filter);
    filter.can[0] = filter.can[1] = 1;
    filter.encoding = ENCODES;
    assert_true(H5Zregister(&class) >= 0);
}

/* ---- two sides ---- */

typedef struct side {
    bool native;
    hid_t fapl;
    char path[64], other[64];
    listing text;
} side;

static void both(const char *name, void (*program)(side *))
{
    side two[2] = {{.native = true, .fapl = native_fapl}, {.fapl = H5P_DEFAULT}};

    H5E_BEGIN_TRY
    {
        for (int i = 0; i < 2; i++) {
            snprintf(two[i].path, sizeof two[i].path, "filters-%d.h5", i);
            snprintf(two[i].other, sizeof two[i].other, "filters-other-%d.h5", i);
            program(&two[i]);
            remove(two[i].path);
            remove(two[i].other);
        }
    }
    H5E_END_TRY
    assert_true(same_text(name, &two[0].text, &two[1].text));
    free(two[0].text.data);
    free(two[1].text.data);
}

static void said(side *s, const char *what, long long answer)
{
    say(&s->text, "%s: %lld, asked %d and %d times\n", what, answer, filter.can_apply, filter.set_local);
}

static void parameters(side *s, hid_t dataset)
{
    hid_t dcpl = H5Dget_create_plist(dataset);
    unsigned flags = 0, values[20] = {0};
    size_t count = 20;

    say(&s->text, "filter %d:", (int)H5Pget_filter2(dcpl, 0, &flags, &count, values, 0, NULL, NULL));
    for (size_t i = 0; i < count; i++)
        say(&s->text, " %u", values[i]);
    say(&s->text, "\n");
    H5Pclose(dcpl);
}

static hid_t filtered(unsigned flags, unsigned parameter)
{
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk = CHUNK;

    H5Pset_chunk(dcpl, 1, &chunk);
    H5Pset_filter(dcpl, FILTER, flags, 1, &parameter);
    return dcpl;
}

static hid_t line(hsize_t size)
{
    hsize_t most = H5S_UNLIMITED;

    return H5Screate_simple(1, &size, &most);
}

static herr_t write_all(hid_t dataset, hsize_t size, int factor)
{
    hid_t space = line(size);
    int *values = malloc(size * sizeof *values);
    herr_t status;

    for (hsize_t i = 0; i < size; i++)
        values[i] = (int)i * factor;
    status = H5Dwrite(dataset, H5T_NATIVE_INT, space, H5S_ALL, H5P_DEFAULT, values);
    free(values);
    H5Sclose(space);
    return status;
}

/* How many elements are as FACTOR makes them; -1: they cannot be read. From FIRST on. */
static int count_of(hid_t file, const char *name, hsize_t first, int factor)
{
    static int values[2 * ELEMENTS];
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(dataset), memory;
    hsize_t size = 0, count;
    int right = 0;

    H5Sget_simple_extent_dims(space, &size, NULL);
    count = size - first;
    memory = line(count);
    memset(values, 0, sizeof values);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &count, NULL);
    if (dataset < 0 || H5Dread(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values) < 0)
        right = -1;
    for (hsize_t i = 0; right >= 0 && i < count; i++)
        right += values[i] == (int)(i + first) * factor;
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(dataset);
    return right;
}

/* ---- being asked ---- */

static void use(side *s, hid_t dcpl)
{
    hid_t file = H5Fcreate(s->path, H5F_ACC_TRUNC, H5P_DEFAULT, s->fapl), space = line(ELEMENTS), dataset, second,
          other;
    hsize_t more = 2 * ELEMENTS;

    dataset = H5Dcreate2(file, "x", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    said(s, "created", dataset >= 0);
    parameters(s, dataset);
    said(s, "written", write_all(dataset, ELEMENTS, 3));
    said(s, "closed", H5Dclose(dataset));
    dataset = H5Dcreate2(file, "y", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    said(s, "created again", dataset >= 0);
    said(s, "closed", H5Dclose(dataset));
    said(s, "file closed", H5Fclose(file));
    file = H5Fopen(s->path, H5F_ACC_RDWR, s->fapl);
    dataset = H5Dopen2(file, "x", H5P_DEFAULT);
    parameters(s, dataset);
    said(s, "read", count_of(file, "x", 0, 3));
    said(s, "grown", H5Dset_extent(dataset, &more));
    said(s, "written", write_all(dataset, 2 * ELEMENTS, 5));
    said(s, "flushed", H5Fflush(file, H5F_SCOPE_GLOBAL));
    second = H5Dopen2(file, "x", H5P_DEFAULT);
    said(s, "written by another handle", write_all(second, 2 * ELEMENTS, 7));
    H5Dclose(second);
    said(s, "closed", H5Dclose(dataset));
    dataset = H5Dopen2(file, "x", H5P_DEFAULT);
    said(s, "opened and written", write_all(dataset, 2 * ELEMENTS, 9));
    said(s, "closed", H5Dclose(dataset));
    said(s, "copied", H5Ocopy(file, "x", file, "z", H5P_DEFAULT, H5P_DEFAULT));
    other = H5Fcreate(s->other, H5F_ACC_TRUNC, H5P_DEFAULT, s->fapl);
    said(s, "copied to another file", H5Ocopy(file, "x", other, "z", H5P_DEFAULT, H5P_DEFAULT));
    said(s, "closed", H5Fclose(other));
    said(s, "closed", H5Fclose(file));
    file = H5Fopen(s->path, H5F_ACC_RDONLY, s->fapl);
    other = H5Fopen(s->other, H5F_ACC_RDONLY, s->fapl);
    said(s, "x", count_of(file, "x", 0, 9));
    said(s, "z", count_of(file, "z", 0, 9));
    said(s, "z there", count_of(other, "z", 0, 9));
    dataset = H5Dopen2(other, "z", H5P_DEFAULT);
    parameters(s, dataset);
    H5Dclose(dataset);
    H5Fclose(other);
    H5Fclose(file);
    H5Sclose(space);
}

static void program_asked(side *s)
{
    const int nine = 9;

    for (int fill = 0; fill < 4; fill++) {
        hid_t dcpl = filtered(fill == 3 ? H5Z_FLAG_OPTIONAL : 0, 5);

        begin();
        say(&s->text, "-- %d\n", fill);
        if (fill == 1)
            H5Pset_fill_value(dcpl, H5T_NATIVE_INT, &nine);
        if (fill == 2)
            H5Pset_fill_time(dcpl, H5D_FILL_TIME_ALLOC);
        use(s, dcpl);
        H5Pclose(dcpl);
    }
}

static void test_filters_are_asked_as_often_as_natively(void **state)
{
    (void)state;
    both("filters are asked", program_asked);
}

static void program_refuses_to_apply(side *s)
{
    static const struct {
        htri_t can[2];
        herr_t local;
    } answers[] = {{{0, 0}, 0}, {{-1, -1}, 0}, {{0, 1}, 0}, {{-1, 1}, 0}, {{1, 0}, 0}, {{1, -1}, 0}, {{1, 1}, -1}};

    for (size_t i = 0; i < COUNT(answers); i++)
        for (unsigned flags = 0; flags < 2; flags++) {
            hid_t dcpl = filtered(flags, 5);

            begin();
            say(&s->text, "-- answer %zu, flags %u\n", i, flags);
            memcpy(filter.can, answers[i].can, sizeof filter.can);
            filter.local = answers[i].local;
            use(s, dcpl);
            H5Pclose(dcpl);
        }
}

static void test_a_filter_that_refuses_is_asked_once(void **state)
{
    (void)state;
    both("filters that refuse to be applied", program_refuses_to_apply);
}

/* What the groups on the way, made by the same call, are after a refusal. */
static void program_intermediate_groups(side *s)
{
    hid_t file, dcpl = filtered(0, 5), lcpl = H5Pcreate(H5P_LINK_CREATE), space = line(ELEMENTS);

    begin();
    filter.can[0] = 0;
    H5Pset_create_intermediate_group(lcpl, 1);
    file = H5Fcreate(s->path, H5F_ACC_TRUNC, H5P_DEFAULT, s->fapl);
    said(s, "created", H5Dcreate2(file, "a/b/c", H5T_NATIVE_INT, space, lcpl, dcpl, H5P_DEFAULT) >= 0);
    said(s, "a", H5Lexists(file, "a", H5P_DEFAULT));
    said(s, "a/b", H5Lexists(file, "a/b", H5P_DEFAULT));
    said(s, "a/b/c", H5Lexists(file, "a/b/c", H5P_DEFAULT));
    said(s, "closed", H5Fclose(file));
    H5Sclose(space);
    H5Pclose(lcpl);
    H5Pclose(dcpl);
}

static void test_a_refusal_leaves_what_native_leaves(void **state)
{
    (void)state;
    both("groups after a refusal", program_intermediate_groups);
}

/* A list that HDF5 tells of one dataset makes another: its filter computes from what it has computed. */
static void program_parameters(side *s)
{
    hid_t file, dcpl = filtered(0, 5), told, dataset, space = line(ELEMENTS);

    begin();
    file = H5Fcreate(s->path, H5F_ACC_TRUNC, H5P_DEFAULT, s->fapl);
    dataset = H5Dcreate2(file, "x", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    told = H5Dget_create_plist(dataset);
    said(s, "x", write_all(dataset, ELEMENTS, 3));
    H5Dclose(dataset);
    dataset = H5Dcreate2(file, "again", H5T_NATIVE_INT, space, H5P_DEFAULT, told, H5P_DEFAULT);
    parameters(s, dataset);
    said(s, "again", write_all(dataset, ELEMENTS, 5));
    H5Dclose(dataset);
    said(s, "closed", H5Fclose(file));
    file = H5Fopen(s->path, H5F_ACC_RDWR, s->fapl);
    said(s, "x", count_of(file, "x", 0, 3));
    said(s, "again", count_of(file, "again", 0, 5));
    said(s, "closed", H5Fclose(file));
    H5Pclose(told);
    H5Pclose(dcpl);
    H5Sclose(space);
}

#define SIZED (FILTER + 1)

static size_t pass(unsigned flags, size_t count, const unsigned values[], size_t bytes, size_t *room, void **buffer)
{
    (void)flags, (void)count, (void)values, (void)room, (void)buffer;
    return bytes;
}

/* Its parameter is the size of an element. */
static herr_t take_size(hid_t dcpl, hid_t type, hid_t space)
{
    const unsigned size = (unsigned)H5Tget_size(type);

    (void)space;
    return H5Pmodify_filter(dcpl, SIZED, 0, 1, &size);
}

/* References have the size of the addresses in the file. */
static void program_references(side *s)
{
    static const H5Z_class2_t class = {H5Z_CLASS_T_VERS, SIZED, 1, 1, "sized", NULL, take_size, pass};
    hid_t space = line(ELEMENTS), dcpl = H5Pcreate(H5P_DATASET_CREATE), told, fcpl, file, dataset;
    const hsize_t chunk = CHUNK;

    assert_true(H5Zregister(&class) >= 0 && H5Pset_chunk(dcpl, 1, &chunk) >= 0 &&
                H5Pset_filter(dcpl, SIZED, 0, 0, NULL) >= 0);
    for (size_t bytes = 4; bytes <= 8; bytes += 4) {
        unsigned flags, size = 0;
        size_t count = 1;

        fcpl = H5Pcreate(H5P_FILE_CREATE);
        assert_true(H5Pset_sizes(fcpl, bytes, 8) >= 0);
        file = H5Fcreate(s->path, H5F_ACC_TRUNC, fcpl, s->fapl);
        dataset = H5Dcreate2(file, "x", H5T_STD_REF, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
        told = H5Dget_create_plist(dataset);
        said(s, "parameters", H5Pget_filter_by_id2(told, SIZED, &flags, &count, &size, 0, NULL, NULL));
        say(&s->text, "addresses of %zu bytes: %u\n", bytes, size);
        H5Pclose(told);
        said(s, "closed", H5Dclose(dataset));
        said(s, "closed", H5Fclose(file));
        H5Pclose(fcpl);
        remove(s->path);
    }
    H5Pclose(dcpl);
    H5Sclose(space);
}

static void test_parameters_that_are_computed_from_references(void **state)
{
    (void)state;
    both("parameters of references", program_references);
}

#define COUNTED (FILTER + 2)

static htri_t refuse_and_count(hid_t dcpl, hid_t type, hid_t space)
{
    (void)dcpl, (void)type, (void)space;
    filter.can_apply++;
    return 0;
}

/* How many of the first two elements are as in STRINGS; -1: they cannot be read. */
static int strings_that_are(hid_t dataset, hid_t type, const char *const strings[2])
{
    const hsize_t first = 0, two = 2;
    hid_t space = H5Dget_space(dataset), memory = line(two);
    char *read[2] = {NULL, NULL};
    int right = 0;

    H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &two, NULL);
    if (H5Dread(dataset, type, memory, space, H5P_DEFAULT, read) < 0)
        right = -1;
    for (int i = 0; right >= 0 && i < 2; i++)
        right += read[i] != NULL && strcmp(read[i], strings[i]) == 0;
    H5Treclaim(type, memory, H5P_DEFAULT, read);
    H5Sclose(memory);
    H5Sclose(space);
    return right;
}

/* What HDF5 keeps elsewhere in the file, by when it is allocated and filled. */
static void program_asked_for_heaps(side *s)
{
    static const H5Z_class2_t class = {H5Z_CLASS_T_VERS, COUNTED, 1, 1, "counted", refuse_and_count, NULL, pass};
    static const char *const strings[ELEMENTS] = {"one", "two"};
    static const H5R_ref_t references[ELEMENTS];
    const hid_t string = H5Tcopy(H5T_C_S1);
    const hid_t types[] = {string, H5T_STD_REF};
    const void *const values[] = {strings, references};
    const hsize_t chunk = CHUNK, more = ELEMENTS + CHUNK;
    hid_t space = line(ELEMENTS), file, dataset;

    assert_true(H5Zregister(&class) >= 0 && H5Tset_size(string, H5T_VARIABLE) >= 0);
    for (unsigned i = 0; i < COUNT(types) * 12; i++) {
        const unsigned type = i / 12;
        const H5D_alloc_time_t alloc = (H5D_alloc_time_t)(i / 3 % 4);
        const H5D_fill_time_t fill = (H5D_fill_time_t)(i % 3);
        const char *const user = "filled";
        hid_t dcpl;

        if (alloc == H5D_ALLOC_TIME_DEFAULT || (type == 0 && fill == H5D_FILL_TIME_NEVER)) /* which HDF5 refuses */
            continue;
        begin();
        dcpl = H5Pcreate(H5P_DATASET_CREATE);
        say(&s->text, "-- type %u, allocated %d, filled %d\n", type, (int)alloc, (int)fill);
        assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0 && H5Pset_deflate(dcpl, 1) >= 0 &&
                    H5Pset_filter(dcpl, COUNTED, H5Z_FLAG_OPTIONAL, 0, NULL) >= 0 &&
                    H5Pset_alloc_time(dcpl, alloc) >= 0 && H5Pset_fill_time(dcpl, fill) >= 0);
        if (type == 0 && i % 2 == 1)
            assert_true(H5Pset_fill_value(dcpl, string, &user) >= 0);
        file = H5Fcreate(s->path, H5F_ACC_TRUNC, H5P_DEFAULT, s->fapl);
        for (char name[] = "x"; *name <= 'y'; ++*name) {
            dataset = H5Dcreate2(file, name, types[type], space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
            said(s, "created", dataset >= 0);
            said(s, "written", H5Dwrite(dataset, types[type], space, H5S_ALL, H5P_DEFAULT, values[type]));
            said(s, "grown", H5Dset_extent(dataset, &more));
            said(s, "closed", H5Dclose(dataset));
        }
        said(s, "file closed", H5Fclose(file));
        file = H5Fopen(s->path, H5F_ACC_RDWR, s->fapl);
        for (char name[] = "x"; *name <= 'y'; ++*name) {
            dataset = H5Dopen2(file, name, H5P_DEFAULT);
            said(s, "opened", dataset >= 0);
            said(s, "read", type == 0 ? strings_that_are(dataset, string, strings) : 0);
            /* else they are asked before HDF5 fills what is new, natively when it is written */
            if (alloc != H5D_ALLOC_TIME_EARLY) {
                said(s, "made smaller", H5Dset_extent(dataset, &chunk));
                said(s, "grown", H5Dset_extent(dataset, (const hsize_t[]){ELEMENTS}));
            }
            said(s, "written", H5Dwrite(dataset, types[type], space, H5S_ALL, H5P_DEFAULT, values[type]));
            said(s, "written again", H5Dwrite(dataset, types[type], space, H5S_ALL, H5P_DEFAULT, values[type]));
            said(s, "closed", H5Dclose(dataset));
        }
        said(s, "file closed", H5Fclose(file));
        H5Pclose(dcpl);
        remove(s->path);
    }
    H5Tclose(string);
    H5Sclose(space);
}

static void test_filters_of_heaps_are_asked_as_often_as_natively(void **state)
{
    (void)state;
    both("filters of strings and references are asked", program_asked_for_heaps);
}

static void test_parameters_are_computed_from_those_that_are_given(void **state)
{
    (void)state;
    both("parameters of parameters", program_parameters);
}

/* ---- refusing chunks ---- */

/* A session with a chunk of x that the filter does as ENCODING says, and changes of y, closed as ORDER says. */
static void session(side *s, encoding how, const char *order)
{
    hid_t dcpl = filtered(0, 5), plain = H5Pcreate(H5P_DATASET_CREATE), space = line(ELEMENTS), x, y, second = 0, file,
          again = 0;
    hsize_t chunk = CHUNK;

    begin();
    H5Pset_chunk(plain, 1, &chunk);
    file = H5Fcreate(s->path, H5F_ACC_TRUNC, H5P_DEFAULT, s->fapl);
    x = H5Dcreate2(file, "x", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    y = H5Dcreate2(file, "y", H5T_NATIVE_INT, space, H5P_DEFAULT, plain, H5P_DEFAULT);
    write_all(x, ELEMENTS, 3);
    write_all(y, ELEMENTS, 3);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    filter.encoding = how;
    filter.encoded = 0;
    say(&s->text, "y %d, x %d\n", write_all(y, ELEMENTS, 5), write_all(x, CHUNK, 5));
    H5Dclose(y);
    for (; *order != '\0'; order++)
        switch (*order) {
        case 'd':
            say(&s->text, "H5Dclose %d\n", H5Dclose(x));
            break;
        case 'i':
            say(&s->text, "H5Idec_ref %d\n", H5Idec_ref(x));
            break;
        case 'O':
            say(&s->text, "H5Oclose %d\n", H5Oclose(x));
            break;
        case 'D':
            second = H5Dopen2(file, "x", H5P_DEFAULT);
            break;
        case 'e':
            say(&s->text, "H5Dclose of the other %d\n", H5Dclose(second));
            break;
        case 'f':
            say(&s->text, "H5Fclose %d\n", H5Fclose(file));
            break;
        case 'F':
            again = H5Freopen(file);
            break;
        case 'g':
            say(&s->text, "H5Fclose of the other %d\n", H5Fclose(again));
            break;
        case 'u':
            say(&s->text, "H5Fflush %d\n", H5Fflush(file, H5F_SCOPE_GLOBAL));
            break;
        case 'U':
            say(&s->text, "H5Dflush %d\n", H5Dflush(x));
            break;
        case 'h':
            say(&s->text, "H5close %d\n", H5close());
            break;
        }
    if (strchr("h", order[-1]) != NULL) /* nothing else is left */
        return;
    H5Pclose(dcpl);
    H5Pclose(plain);
    H5Sclose(space);
}

static void look(side *s, encoding how)
{
    hid_t file;

    begin();
    file = H5Fopen(s->path, H5F_ACC_RDONLY, s->fapl);
    if (how != HALVES) /* natively what is not there is read all the same */
        say(&s->text, "x: %d as before, %d new\n", count_of(file, "x", 0, 3), count_of(file, "x", 0, 5));
    say(&s->text, "others of x: %d as before\n", count_of(file, "x", CHUNK, 3));
    say(&s->text, "y: %d new\n", count_of(file, "y", 0, 5));
    say(&s->text, "H5Fclose %d\n", H5Fclose(file));
}

static const encoding failures[] = {REFUSES, REFUSES_ONCE, HALVES, GROWS, NO_SIZE, CALLS};

static void program_refused(side *s)
{
    const char *orders[] = {"df", "fd", "Ddef", "Dedf", "Dfde", "dFfg", "Fdfg", "udf", "Udf", "udfu"};

    for (size_t f = 0; f < COUNT(failures); f++)
        for (size_t i = 0; i < COUNT(orders); i++) {
            say(&s->text, "-- %c, %s\n", failures[f], orders[i]);
            session(s, failures[f], orders[i]);
            look(s, failures[f]);
        }
}

static void test_a_chunk_that_a_filter_refuses_is_lost_alone(void **state)
{
    (void)state;
    both("chunks that a filter refuses", program_refused);
}

/* In a process of its own. Natively it may crash. */
static void end_so(encoding how, const char *order)
{
    side s = {.fapl = H5P_DEFAULT, .path = "filters-ended.h5"};
    int status;
    pid_t child;

    during("%c, %s", how, order);
    if ((child = fork_child()) == 0) {
        H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
        session(&s, how, order);
        if (order[strlen(order) - 1] == 'q')
            exit(0); /* with what is open */
        _exit(s.text.data != NULL && strstr(s.text.data, "H5Fclose -1") != NULL ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if ((child = fork_child()) == 0) { /* the other one may have closed the library for good */
        look(&s, how);
        if (strcmp(s.text.data, "x: 10000 as before, 1 new\nothers of x: 9000 as before\ny: 10000 new\nH5Fclose 0\n") !=
            0)
            printf("%s\n", s.text.data);
        _exit(strcmp(s.text.data,
                     "x: 10000 as before, 1 new\nothers of x: 9000 as before\ny: 10000 new\nH5Fclose 0\n") != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    remove(s.path);
}

static void test_no_close_that_fails_crashes(void **state)
{
    const char *orders[] = {"if", "Of", "fi", "Dif", "Ddef", "Fifg", "Ffig", "iq", "Diq",
                            "q",  "ih", "Oh", "h",   "dq",   "dh",   "fq",   "uif"};

    (void)state;
    for (size_t i = 0; i < COUNT(orders); i++) {
        end_so(REFUSES, orders[i]);
        end_so(CALLS, orders[i]);
    }
}

/* ---- missing ---- */

/* x of a new file, whose elements are written. */
static hid_t create_x(side *s, unsigned flags, hid_t *file)
{
    hid_t dcpl = filtered(flags, 5), space = line(ELEMENTS), x;

    *file = H5Fcreate(s->path, H5F_ACC_TRUNC, H5P_DEFAULT, s->fapl);
    x = H5Dcreate2(*file, "x", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    said(s, "written", write_all(x, ELEMENTS, 3));
    H5Sclose(space);
    H5Pclose(dcpl);
    return x;
}

/* The filter is there again. */
static void look_again(side *s)
{
    hid_t file;

    begin();
    file = H5Fopen(s->path, H5F_ACC_RDONLY, s->fapl);
    said(s, "as before", count_of(file, "x", 2 * CHUNK, 3));
    said(s, "new", count_of(file, "x", 0, 5));
    said(s, "closed", H5Fclose(file));
}

static void program_missing(side *s)
{
    for (unsigned flags = 0; flags < 2; flags++) {
        hid_t file, x;

        begin();
        say(&s->text, "-- flags %u\n", flags);
        x = create_x(s, flags, &file);
        H5Dclose(x);
        said(s, "closed", H5Fclose(file));
        H5Zunregister(FILTER);
        file = H5Fopen(s->path, H5F_ACC_RDWR, s->fapl);
        x = H5Dopen2(file, "x", H5P_DEFAULT);
        said(s, "opened", x >= 0);
        said(s, "read", count_of(file, "x", 0, 3));
        said(s, "written", write_all(x, 2 * CHUNK, 5)); /* whole chunks: nothing is decoded */
        said(s, "closed", H5Dclose(x));
        said(s, "closed", H5Fclose(file));
        look_again(s);
    }
}

static void test_a_filter_that_is_missing(void **state)
{
    (void)state;
    both("a filter that is missing", program_missing);
}

/* It is taken away while chunks wait to be encoded: the dataset is open, or was closed in a file that is. */
static void program_vanishes(side *s)
{
    for (int closed = 0; closed < 2; closed++)
        for (int optional = 0; optional < 2; optional++) {
            hid_t file, x;

            begin();
            say(&s->text, "-- closed %d, optional %d\n", closed, optional);
            x = create_x(s, optional ? H5Z_FLAG_OPTIONAL : 0, &file);
            said(s, "flushed", H5Fflush(file, H5F_SCOPE_GLOBAL));
            said(s, "written", write_all(x, 2 * CHUNK, 5));
            if (closed)
                said(s, "closed", H5Dclose(x));
            said(s, "taken away", H5Zunregister(FILTER));
            said(s, "there", H5Zfilter_avail(FILTER));
            if (!closed)
                said(s, "closed", H5Dclose(x));
            said(s, "flushed", H5Fflush(file, H5F_SCOPE_GLOBAL));
            said(s, "closed", H5Fclose(file));
            look_again(s);
        }
}

static void test_a_filter_that_is_taken_away(void **state)
{
    (void)state;
    both("a filter that is taken away", program_vanishes);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filters_are_asked_as_often_as_natively),
        cmocka_unit_test(test_a_filter_that_refuses_is_asked_once),
        cmocka_unit_test(test_a_refusal_leaves_what_native_leaves),
        cmocka_unit_test(test_parameters_are_computed_from_those_that_are_given),
        cmocka_unit_test(test_parameters_that_are_computed_from_references),
        cmocka_unit_test(test_filters_of_heaps_are_asked_as_often_as_natively),
        cmocka_unit_test(test_a_chunk_that_a_filter_refuses_is_lost_alone),
        cmocka_unit_test(test_a_filter_that_is_missing),
        cmocka_unit_test(test_a_filter_that_is_taken_away),
        cmocka_unit_test(test_no_close_that_fails_crashes),
    };
    return test_main(tests, argc, argv, through_begin, through_end);
}
