/* Chunk indexes that are written as bytes (h5/chunk_tree.h): any order of changes leads to what a table of all chunks says, and HDF5 alone
 * reads them, and goes on with them. */
#include "h5/chunk_tree.h"
#include "harness.h"
#include "h5/checksum.h"
#include "random.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME    "test_chunk_tree.h5"
#define NOWHERE UINT64_MAX
#define MOST    4000 /* chunks */
#define RANK    4
#define ROOM    ((size_t)16 << 20)

static uint64_t dice;

static uint64_t below(uint64_t n)
{
    return splitmix64(&dice) % n;
}

/* ---- a file in memory ---- */

typedef struct image {
    uint8_t *bytes;
    size_t size, taken, given; /* taken and given: places of nodes */
} image;

static int read_image(void *context, uint64_t address, void *bytes, size_t size)
{
    const image *i = context;

    assert_true(address <= ROOM && size <= ROOM - address);
    memcpy(bytes, i->bytes + address, size);
    return 0;
}

static int write_image(void *context, uint64_t address, const void *bytes, size_t size)
{
    image *i = context;

    assert_true(address <= i->size && size <= i->size - address);
    memcpy(i->bytes + address, bytes, size);
    return 0;
}

static int take_place(void *context, size_t size, uint64_t *address)
{
    image *i = context;

    assert_true(size <= ROOM - i->size);
    *address = i->size;
    memset(i->bytes + i->size, 0xa5, size);
    i->size += size;
    i->taken++;
    return 0;
}

static int give_place(void *context, uint64_t address, size_t size)
{
    image *i = context;

    assert_true(size <= i->size - address);
    memset(i->bytes + address, 0x5a, size);
    i->given++;
    return 0;
}

/* ---- a table of all chunks ---- */

typedef struct table {
    cow_chunk_form form;
    uint64_t count[RANK]; /* chunks along each dimension */
    size_t chunks;
    cow_chunk_place place[MOST];
    size_t next, nodes; /* while a tree is visited */
    uint64_t node[MOST];
} table;

static void make_table(table *t, unsigned width, unsigned half)
{
    memset(t, 0, sizeof *t);
    t->form = (cow_chunk_form){.rank = 1 + (unsigned)below(RANK),
                               .element = 4,
                               .half = half > 0 ? half : 2 + (unsigned)below(40),
                               .width = width};
    t->chunks = 1;
    for (unsigned d = 0; d < t->form.rank; d++) {
        t->form.chunk[d] = 1 + below(5);
        t->count[d] = 1 + below(MOST / t->chunks < 200 ? MOST / t->chunks : 200);
        t->chunks *= t->count[d];
    }
    for (size_t i = 0; i < t->chunks; i++)
        t->place[i].address = NOWHERE;
}

static void offsets(const table *t, size_t number, uint64_t at[])
{
    for (unsigned d = t->form.rank; d-- > 0; number /= t->count[d])
        at[d] = number % t->count[d] * t->form.chunk[d];
}

static int compare_chunk(void *context, const uint64_t at[], const cow_chunk_place *place)
{
    table *t = context;
    uint64_t expected[RANK];

    while (t->next < t->chunks && t->place[t->next].address == NOWHERE)
        t->next++;
    assert_true(t->next < t->chunks);
    offsets(t, t->next, expected);
    assert_memory_equal(at, expected, t->form.rank * sizeof *at);
    assert_true(place->address == t->place[t->next].address && place->size == t->place[t->next].size &&
                place->mask == t->place[t->next].mask);
    t->next++;
    return 1;
}

static int note_node(void *context, uint64_t address)
{
    table *t = context;

    t->node[t->nodes++] = address;
    return 1;
}

static uint64_t address_at(const table *t, const uint8_t *p)
{
    return t->form.width == 8 ? cow_get_bytes(p, 8) : cow_get_bytes(p, 4) == UINT32_MAX ? NOWHERE : cow_get_bytes(p, 4);
}

/* Nodes of one level name each other, from the first to the last. */
static void compare_siblings(const table *t, const image *i)
{
    uint64_t last[256];

    memset(last, 0xff, sizeof last);
    for (size_t n = 0; n < t->nodes; n++) {
        const uint8_t *p = i->bytes + t->node[n];

        assert_true(address_at(t, p + 8) == last[p[5]]);
        if (last[p[5]] != NOWHERE)
            assert_true(address_at(t, i->bytes + last[p[5]] + 8 + t->form.width) == t->node[n]);
        last[p[5]] = t->node[n];
    }
    for (size_t l = 0; l < COUNT(last); l++)
        assert_true(last[l] == NOWHERE || address_at(t, i->bytes + last[l] + 8 + t->form.width) == NOWHERE);
}

static void compare_all(table *t, cow_chunk_tree *tree, const image *i)
{
    const cow_chunk_tree_visitor visitor = {compare_chunk, note_node, t};

    t->next = t->nodes = 0;
    assert_int_equal(cow_chunk_tree_visit(tree, &visitor), 1);
    while (t->next < t->chunks && t->place[t->next].address == NOWHERE)
        t->next++;
    assert_true(t->next == t->chunks);
    compare_siblings(t, i);
    assert_true(t->nodes == i->taken - i->given);
}

static void change(table *t, cow_chunk_tree *tree, size_t number, bool goes)
{
    uint64_t at[RANK];
    cow_chunk_place *place = &t->place[number], found;

    *place = (cow_chunk_place){NOWHERE, 0, 0};
    if (!goes)
        *place = (cow_chunk_place){below(UINT32_MAX), 1 + (below(4) ? 0 : below(UINT32_MAX - 1)),
                                   (uint32_t)below(UINT32_MAX)};
    offsets(t, number, at);
    assert_int_equal(cow_chunk_tree_put(tree, at, place), 1);
    assert_int_equal(cow_chunk_tree_find(tree, at, &found), 1);
    assert_true(found.address == place->address && (goes || (found.size == place->size && found.mask == place->mask)));
}

static void test_any_order_of_changes(void **state)
{
    image i = {malloc(ROOM), 0, 0, 0};
    const cow_source source = {&i, ROOM, read_image, false};
    const cow_chunk_tree_space space = {&source, write_image, take_place, give_place, &i};
    table *t = malloc(sizeof *t);
    (void)state;

    assert_true(t != NULL && i.bytes != NULL);
    for (int round = 0; round < 60; round++) {
        uint64_t root, label = splitmix64(&dice), told;
        cow_chunk_tree *tree;

        during("round %d", round);
        make_table(t, round % 2 ? 4 : 8, round % 10 == 0 ? 2 : 0);
        i.size = 64;
        i.taken = i.given = 0;
        assert_int_equal(cow_chunk_tree_create(&t->form, &space, label, &root), 0);
        for (int batch = 0; batch < 12; batch++) {
            const uint64_t first = below(t->chunks), count = 1 + below(t->chunks), way = below(4);

            assert_int_equal(cow_chunk_tree_open(&t->form, &space, root, &tree, &told), 1);
            assert_true(told == label);
            for (uint64_t n = 0; n < count; n++) /* in order, backwards, at random, with holes that come */
                change(t, tree,
                       (way == 0   ? first + n
                        : way == 1 ? first + t->chunks - n % t->chunks
                                   : below(t->chunks)) %
                           t->chunks,
                       way == 3 && below(3) > 0);
            assert_int_equal(cow_chunk_tree_flush(tree), 1);
            compare_all(t, tree, &i);
            cow_chunk_tree_close(tree);
        }
        assert_int_equal(cow_chunk_tree_open(&t->form, &space, root, &tree, NULL), 1);
        for (size_t n = 0; round % 3 == 0 && n < t->chunks; n++)
            change(t, tree, n, true);
        for (size_t n = 0; n < t->chunks; n++)
            t->place[n].address = NOWHERE;
        assert_int_equal(round % 3 == 0 ? cow_chunk_tree_flush(tree) : cow_chunk_tree_clear(tree), 1);
        compare_all(t, tree, &i);
        assert_true(i.taken - i.given == 1);
        cow_chunk_tree_close(tree);
    }
    free(i.bytes);
    free(t);
}

static void test_what_grows_at_its_end_fills_its_nodes(void **state)
{
    image i = {malloc(ROOM), 64, 0, 0};
    const cow_source source = {&i, ROOM, read_image, false};
    const cow_chunk_tree_space space = {&source, write_image, take_place, give_place, &i};
    table *t = calloc(1, sizeof *t);
    cow_chunk_tree *tree;
    uint64_t root;
    (void)state;

    t->form = (cow_chunk_form){.rank = 1, .chunk = {7}, .element = 1, .half = 32, .width = 8};
    t->count[0] = t->chunks = MOST;
    assert_int_equal(cow_chunk_tree_create(&t->form, &space, 1, &root), 0);
    assert_int_equal(cow_chunk_tree_open(&t->form, &space, root, &tree, NULL), 1);
    for (size_t n = 0; n < MOST; n++)
        change(t, tree, n, false);
    assert_int_equal(cow_chunk_tree_flush(tree), 1);
    compare_all(t, tree, &i);
    assert_true(i.taken <= MOST / 64 + 3);
    cow_chunk_tree_close(tree);
    free(i.bytes);
    free(t);
}

static int count_chunk(void *context, const uint64_t at[], const cow_chunk_place *place)
{
    (void)at;
    (void)place;
    return ++*(size_t *)context <= MOST ? 1 : 2;
}

/* Whatever the bytes are, the walk ends, and no more chunks are told than the file has room for. */
static void test_damaged_trees(void **state)
{
    image i = {malloc(ROOM), 0, 0, 0};
    table *t = malloc(sizeof *t);
    (void)state;

    for (int round = 0; round < 30; round++) {
        const cow_source whole = {&i, ROOM, read_image, false};
        const cow_chunk_tree_space space = {&whole, write_image, take_place, give_place, &i};
        cow_chunk_tree *tree;
        uint64_t root;
        size_t damaged = 0;

        during("round %d", round);
        make_table(t, round % 2 ? 4 : 8, 2);
        i.size = 64;
        i.taken = i.given = 0;
        assert_int_equal(cow_chunk_tree_create(&t->form, &space, 1, &root), 0);
        assert_int_equal(cow_chunk_tree_open(&t->form, &space, root, &tree, NULL), 1);
        for (size_t n = 0; n < t->chunks; n += 1 + below(3))
            change(t, tree, n, false);
        assert_int_equal(cow_chunk_tree_flush(tree), 1);
        compare_all(t, tree, &i);
        cow_chunk_tree_close(tree);
        for (int flip = 0; flip < 300; flip++) {
            const cow_source source = {&i, i.size, read_image, false};
            const cow_chunk_tree_space outside = {.source = &source};
            const size_t at = t->node[below(t->nodes)] + below(cow_chunk_tree_node_size(&t->form));
            const uint8_t before = i.bytes[at];
            size_t count = 0;
            const cow_chunk_tree_visitor visitor = {.chunk = count_chunk, .context = &count};

            i.bytes[at] ^= (uint8_t)(1 + below(255));
            if (cow_chunk_tree_open(&t->form, &outside, root, &tree, NULL) == 1) {
                const int status = cow_chunk_tree_visit(tree, &visitor);

                assert_true(status == 0 || status == 1);
                damaged += status == 0;
                cow_chunk_tree_close(tree);
            } else
                damaged++;
            i.bytes[at] = before;
        }
        assert_true(damaged > 0);
    }
    free(i.bytes);
    free(t);
}

static void test_owners(void **state)
{
    image i = {malloc(ROOM), 64, 0, 0};
    const cow_source source = {&i, ROOM, read_image, false};
    const cow_chunk_tree_space space = {&source, write_image, take_place, give_place, &i};
    const cow_chunk_form form = {.rank = 2, .chunk = {3, 4}, .element = 8, .half = 3, .width = 8};
    const size_t size = cow_chunk_tree_node_size(&form);
    uint8_t hidden[2000];
    uint64_t root, owner = 0;
    (void)state;

    assert_int_equal(cow_chunk_tree_create(&form, &space, 77, &root), 0);
    assert_int_equal(cow_chunk_tree_owned(i.bytes + root, size, root, &owner), 1);
    assert_int_equal(owner, 77);
    assert_int_equal(cow_chunk_tree_owner(&form, &source, root, &owner), 1);
    assert_int_equal(cow_chunk_tree_owner(&form, &source, ROOM - 19, &owner), 0);
    assert_int_equal(cow_chunk_tree_owner(&form, &source, UINT64_MAX - 7, &owner), 0);
    assert_int_equal(cow_chunk_tree_owned(i.bytes + root, size, root + 8, &owner), -1);
    assert_int_equal(cow_chunk_tree_owned(i.bytes + root, size - 8, root, &owner), 0);
    memcpy(hidden, i.bytes + root, size);
    cow_chunk_tree_hide(hidden, size);
    assert_memory_equal(hidden, i.bytes + root, size); /* it has no chunks yet */
    for (size_t at = 0; at < size; at++) {             /* no byte makes it another's */
        i.bytes[root + at] ^= 1;
        assert_int_equal(cow_chunk_tree_owned(i.bytes + root, size, root, NULL), at < size - 20 ? 1 : -1);
        assert_int_equal(cow_chunk_tree_owner(&form, &source, root, &owner), at < size - 20 ? 1 : -1);
        i.bytes[root + at] ^= 1;
    }
    free(i.bytes);
}

/* ---- HDF5 ---- */

typedef struct patch {
    cow_header *header;
    uint64_t at, sum_at;
    size_t size; /* from the beginning of the chunk of the header */
    uint64_t begin;
} patch;

static int find_layout(void *context, const uint8_t *message, size_t prefix, size_t length)
{
    patch *p = context;
    const uint8_t *body = message + prefix;

    (void)length;
    if (message[0] != COW_MESSAGE_LAYOUT)
        return 1;
    assert_true(body[0] == 3 && body[1] == 2);
    p->begin = p->header->visited.address;
    p->size = p->header->visited.size - 4;
    p->at = p->begin + (uint64_t)(body + 3 - p->header->visited.bytes);
    return 1;
}

static void put(uint8_t *p, uint64_t v, unsigned width)
{
    for (unsigned i = 0; i < width; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static hid_t bounds(void)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

    assert_true(H5Pset_libver_bounds(fapl, H5F_LIBVER_V18, H5F_LIBVER_V18) >= 0);
    return fapl;
}

/* A file with the dataset "d", chunked, of which nothing is stored. Its object header's address. */
static uint64_t make_file(const table *t)
{
    hid_t fapl = bounds(), fcpl = H5Pcreate(H5P_FILE_CREATE), dcpl = H5Pcreate(H5P_DATASET_CREATE), file, space, d;
    hsize_t extent[RANK], most[RANK], chunk[RANK];
    const int fill = -7;
    H5O_info2_t info;
    uint64_t address;

    for (unsigned i = 0; i < t->form.rank; i++) {
        chunk[i] = t->form.chunk[i];
        extent[i] = chunk[i] * t->count[i];
        most[i] = H5S_UNLIMITED;
    }
    assert_true(H5Pset_istore_k(fcpl, t->form.half) >= 0 && H5Pset_sizes(fcpl, t->form.width, 8) >= 0);
    assert_true(H5Pset_chunk(dcpl, (int)t->form.rank, chunk) >= 0 &&
                H5Pset_fill_value(dcpl, H5T_NATIVE_INT, &fill) >= 0);
    assert_true((file = H5Fcreate(NAME, H5F_ACC_TRUNC, fcpl, fapl)) >= 0);
    space = H5Screate_simple((int)t->form.rank, extent, most);
    assert_true((d = H5Dcreate2(file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    assert_true(H5Oget_info3(d, &info, H5O_INFO_BASIC) >= 0);
    memcpy(&address, &info.token, sizeof address);
    assert_true(H5Dclose(d) >= 0 && H5Fclose(file) >= 0);
    H5Sclose(space);
    H5Pclose(dcpl);
    H5Pclose(fcpl);
    H5Pclose(fapl);
    return t->form.width == 8 ? address : (uint32_t)address;
}

static void load(image *i)
{
    FILE *in = fopen(NAME, "rb");

    assert_non_null(in);
    i->size = fread(i->bytes, 1, ROOM, in);
    fclose(in);
}

/* The dataset has its chunks by the tree at ROOT, and the file ends where the image does. */
static void store(image *i, uint64_t header_at, uint64_t root, const table *t)
{
    const cow_source source = {i, i->size, read_image, false};
    const unsigned width = t->form.width;
    const size_t sum = 12 + 4 * (size_t)width;
    cow_header header;
    patch p = {.header = &header};
    FILE *out;

    assert_int_equal(cow_header_begin(&source, header_at, &header), 1);
    assert_int_equal(cow_header_messages(&source, &header, find_layout, &p), 1);
    cow_header_free(&header);
    assert_true(p.at > 0);
    put(i->bytes + p.at, root, width);
    put(i->bytes + p.begin + p.size, cow_metadata_checksum(i->bytes + p.begin, p.size), 4);
    put(i->bytes + 12 + 2 * (size_t)width, i->size, width);
    put(i->bytes + sum, cow_metadata_checksum(i->bytes, sum), 4);
    assert_non_null(out = fopen(NAME, "wb"));
    assert_int_equal(fwrite(i->bytes, 1, i->size, out), i->size);
    assert_int_equal(fclose(out), 0);
}

static size_t elements_of(const table *t)
{
    size_t n = 1;

    for (unsigned d = 0; d < t->form.rank; d++)
        n *= t->form.chunk[d];
    return n;
}

/* What VALUES, the whole dataset, should be at the chunk NUMBER. */
static void compare_values(const table *t, const int *values, size_t number, const int *expected)
{
    uint64_t at[RANK], in[RANK] = {0};
    const size_t n = elements_of(t);

    offsets(t, number, at);
    for (size_t i = 0; i < n; i++) {
        size_t where = 0, rest = i;

        for (unsigned d = t->form.rank; d-- > 0; rest /= t->form.chunk[d])
            in[d] = rest % t->form.chunk[d];
        for (unsigned d = 0; d < t->form.rank; d++)
            where = where * t->count[d] * t->form.chunk[d] + at[d] + in[d];
        assert_int_equal(values[where], expected == NULL ? -7 : expected[i]);
    }
}

static void compare_with_hdf5(const table *t, int *const chunk[], int *values, bool writes)
{
    hid_t fapl = bounds(), file, d, space;
    hsize_t count, stored = 0;

    assert_true((file = H5Fopen(NAME, writes ? H5F_ACC_RDWR : H5F_ACC_RDONLY, fapl)) >= 0);
    assert_true((d = H5Dopen2(file, "d", H5P_DEFAULT)) >= 0);
    assert_true((space = H5Dget_space(d)) >= 0);
    assert_true(H5Dread(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    for (size_t n = 0; n < t->chunks; n++) {
        compare_values(t, values, n, chunk[n]);
        stored += chunk[n] != NULL;
    }
    assert_true(H5Dget_num_chunks(d, space, &count) >= 0 && count == stored);
    assert_true(H5Dget_storage_size(d) == stored * elements_of(t) * sizeof(int));
    assert_true(H5Sclose(space) >= 0 && H5Dclose(d) >= 0 && H5Fclose(file) >= 0);
    H5Pclose(fapl);
}

/* HDF5 writes some chunks, then makes the dataset smaller and larger, then deletes it. */
static void go_on(const table *t, int *chunk[])
{
    hid_t fapl = bounds(), file, d;
    const size_t n = elements_of(t);
    hsize_t extent[RANK];

    assert_true((file = H5Fopen(NAME, H5F_ACC_RDWR, fapl)) >= 0);
    assert_true((d = H5Dopen2(file, "d", H5P_DEFAULT)) >= 0);
    for (int k = 0; k < 50; k++) {
        const size_t number = below(t->chunks);
        uint64_t at[RANK];
        hsize_t offset[RANK];

        offsets(t, number, at);
        for (unsigned i = 0; i < t->form.rank; i++)
            offset[i] = at[i];
        if (chunk[number] == NULL)
            assert_non_null(chunk[number] = malloc(n * sizeof(int)));
        for (size_t i = 0; i < n; i++)
            chunk[number][i] = (int)below(1000000);
        assert_true(H5Dwrite_chunk(d, H5P_DEFAULT, 0, offset, n * sizeof(int), chunk[number]) >= 0);
    }
    for (unsigned i = 0; i < t->form.rank; i++)
        extent[i] = t->count[i] * t->form.chunk[i];
    if (t->count[0] > 1) {
        const uint64_t kept = 1 + below(t->count[0] - 1);

        extent[0] = kept * t->form.chunk[0];
        assert_true(H5Dset_extent(d, extent) >= 0);
        extent[0] = t->count[0] * t->form.chunk[0];
        assert_true(H5Dset_extent(d, extent) >= 0);
        for (size_t i = kept * (t->chunks / t->count[0]); i < t->chunks; i++) {
            free(chunk[i]);
            chunk[i] = NULL;
        }
    }
    assert_true(H5Dclose(d) >= 0 && H5Fclose(file) >= 0);
    H5Pclose(fapl);
}

static void delete(void)
{
    hid_t file = H5Fopen(NAME, H5F_ACC_RDWR, H5P_DEFAULT);

    assert_true(file >= 0 && H5Ldelete(file, "d", H5P_DEFAULT) >= 0 && H5Fclose(file) >= 0);
}

static void test_hdf5_reads_them_and_goes_on(void **state)
{
    image i = {malloc(ROOM), 0, 0, 0};
    const cow_source source = {&i, ROOM, read_image, false};
    const cow_chunk_tree_space space = {&source, write_image, take_place, give_place, &i};
    table *t = malloc(sizeof *t);
    int **chunk = calloc(MOST, sizeof *chunk), *values;
    (void)state;

    for (int round = 0; round < 24; round++) {
        uint64_t header, root;
        cow_chunk_tree *tree;
        size_t n;

        during("round %d", round);
        do
            make_table(t, round % 2 ? 4 : 8, round % 5 == 0 ? 32 : 0);
        while (t->chunks * elements_of(t) > ROOM / 32);
        n = elements_of(t);
        assert_non_null(values = malloc(t->chunks * n * sizeof *values));
        header = make_file(t);
        load(&i);
        assert_int_equal(cow_chunk_tree_create(&t->form, &space, 1, &root), 0);
        assert_int_equal(cow_chunk_tree_open(&t->form, &space, root, &tree, NULL), 1);
        for (size_t k = 0; k < t->chunks; k++) {
            const size_t number = round % 3 == 0 ? k : below(t->chunks);
            uint64_t at[RANK];
            cow_chunk_place place = {i.size, n * sizeof(int), 0};

            if (chunk[number] != NULL || below(8) == 0)
                continue;
            assert_non_null(chunk[number] = malloc(n * sizeof(int)));
            for (size_t v = 0; v < n; v++)
                chunk[number][v] = (int)below(1000000);
            memcpy(i.bytes + i.size, chunk[number], n * sizeof(int));
            i.size += n * sizeof(int);
            offsets(t, number, at);
            assert_int_equal(cow_chunk_tree_put(tree, at, &place), 1);
        }
        assert_int_equal(cow_chunk_tree_flush(tree), 1);
        cow_chunk_tree_close(tree);
        store(&i, header, root, t);
        compare_with_hdf5(t, chunk, values, false);
        go_on(t, chunk);
        compare_with_hdf5(t, chunk, values, true);
        delete ();
        for (size_t k = 0; k < t->chunks; k++) {
            free(chunk[k]);
            chunk[k] = NULL;
        }
        free(values);
    }
    free(chunk);
    free(i.bytes);
    free(t);
    remove(NAME);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order_of_changes),
        cmocka_unit_test(test_what_grows_at_its_end_fills_its_nodes),
        cmocka_unit_test(test_damaged_trees),
        cmocka_unit_test(test_owners),
        cmocka_unit_test(test_hdf5_reads_them_and_goes_on),
    };

    dice = test_random(1);
    return test_main(tests, argc, argv, NULL, NULL);
}
