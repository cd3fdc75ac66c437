/* Arrays (connector/io), from the outside: random transfers, resizes and commits against a native dataset that is
 * treated the same, and each promise of array.h and stored.c once by itself. */
#include "assert_error.h"
#include "io/array.h"
#include "native/native.h"
#include "random.h"

#include <H5VLconnector.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANK_MOST 4

/* ---- random numbers ---- */

static uint64_t state;

static uint64_t random_below(uint64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return n == 0 ? 0 : (state >> 11) % n;
}

static void random_bytes(void *to, size_t n)
{
    uint8_t *p = to;
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)random_below(256);
}

/* ---- a chunk store between the pool and another one, which counts and can fail ---- */

typedef struct spy {
    cow_chunk_store store;
    cow_chunk_store *below;
    unsigned reads, writes;
    unsigned good_writes; /* with fail_writes: so many succeed before */
    bool fail_writes, spoil_reads;
    atomic_uint lies; /* brings of which every third is none, or of other bytes; 0: none is */
} spy;

static int spy_size(cow_chunk_store *store, uint64_t slot, size_t *bytes)
{
    spy *s = (spy *)store;
    return s->below->size(s->below, slot, bytes);
}

static int spy_read(cow_chunk_store *store, uint64_t slot, void *bytes, size_t size, uint32_t *mask)
{
    spy *s = (spy *)store;
    s->reads++;
    if (s->below->read(s->below, slot, bytes, size, mask) < 0)
        return -1;
    if (s->spoil_reads)
        ((uint8_t *)bytes)[size / 2] ^= 1;
    return 0;
}

static int spy_find(cow_chunk_store *store, uint64_t slot, void *bytes, size_t size, uint32_t *mask, uint64_t *place)
{
    if (spy_read(store, slot, bytes, size, mask) < 0)
        return -1;
    memset(bytes, 0xaa, size);
    *place = slot;
    return 0;
}

static bool spy_bring(const cow_chunk_store *store, uint64_t place, const struct iovec parts[], size_t n)
{
    spy *s = (spy *)store;
    size_t size = 0;
    uint32_t mask;
    uint8_t *bytes;
    unsigned lie = s->lies == 0 ? 1 : s->lies++;
    bool read;

    for (size_t i = 0; i < n; i++)
        size += parts[i].iov_len;
    bytes = malloc(size);
    read = s->below->read(s->below, place, bytes, size, &mask) == 0;
    if (s->spoil_reads || lie % 3 == 0)
        bytes[size / 2] ^= 1;
    for (size_t i = 0, at = 0; i < n; at += parts[i++].iov_len)
        memcpy(parts[i].iov_base, bytes + at, parts[i].iov_len);
    free(bytes);
    return read && lie % 6 != 0;
}

static int spy_write(cow_chunk_store *store, uint64_t slot, const void *bytes, size_t size, uint32_t mask)
{
    spy *s = (spy *)store;
    if (s->fail_writes && s->good_writes-- == 0) {
        s->good_writes = 0;
        return cow_error(COW_IO, "no space left on device");
    }
    s->writes++;
    return s->below->write(s->below, slot, bytes, size, mask);
}

static void spy_close(cow_chunk_store *store)
{
    spy *s = (spy *)store;
    s->below->close(s->below);
    free(s);
}

/* ---- an array and all that it needs ---- */

typedef struct world {
    hid_t file; /* in memory: the native twin, and raw_data of arrays that are on native HDF5 */
    hid_t dcpl, space;
    hid_t twin; /* or H5I_INVALID_HID */
    cow_table *log;
    spy *spy; /* NULL over a native store */
    cow_root root;
    cow_array array;
} world;

typedef struct setting {
    unsigned rank;
    uint64_t extent[RANK_MOST], maximum[RANK_MOST], chunk[RANK_MOST];
    hid_t type;
    const void *fill; /* NULL: the default, zero */
    size_t cache;
    bool native, heap, early, undefined;
    int deflate;  /* 0: no filters */
    int decimals; /* scale-offset of floats, 0: not */
    int bits;     /* scale-offset of integers, 0: not, -1: as many as it takes */
} setting;

static hid_t memory_file(void)
{
    static int number;
    char name[64];
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file;

    snprintf(name, sizeof name, "test-array-%d", number++);
    assert_true(H5Pset_fapl_core(fapl, 1 << 16, false) >= 0);
    assert_true(H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_LATEST) >= 0);
    file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    assert_true(file >= 0);
    H5Pclose(fapl);
    return file;
}

static void open_index(world *w)
{
    w->array.index = cow_index_open(w->log, &w->array.grid, &w->root);
    assert_non_null(w->array.index);
}

static void world_open(world *w, const setting *s)
{
    hsize_t dims[RANK_MOST], most[RANK_MOST], chunk[RANK_MOST];
    size_t elements = 1;
    cow_array *a = &w->array;
    cow_chunk_store *store;
    hid_t raw_dcpl;

    memset(w, 0, sizeof *w);
    assert_int_equal(cow_native_enter(), 0);
    w->file = memory_file();
    for (unsigned d = 0; d < s->rank; d++) {
        dims[d] = s->extent[d];
        most[d] = s->maximum[d] == COW_UNLIMITED ? H5S_UNLIMITED : s->maximum[d];
        chunk[d] = s->chunk[d];
        elements *= s->chunk[d];
    }
    w->space = H5Screate_simple((int)s->rank, dims, most);
    w->dcpl = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(w->dcpl, (int)s->rank, chunk) >= 0);
    if (s->fill != NULL)
        assert_true(H5Pset_fill_value(w->dcpl, s->type, s->fill) >= 0);
    if (s->undefined)
        assert_true(H5Pset_fill_time(w->dcpl, H5D_FILL_TIME_NEVER) >= 0);
    if (s->decimals != 0)
        assert_true(H5Pset_scaleoffset(w->dcpl, H5Z_SO_FLOAT_DSCALE, s->decimals) >= 0);
    if (s->bits != 0)
        assert_true(H5Pset_scaleoffset(w->dcpl, H5Z_SO_INT, s->bits < 0 ? H5Z_SO_INT_MINBITS_DEFAULT : s->bits) >= 0);
    if (s->deflate > 0) {
        assert_true(H5Pset_shuffle(w->dcpl) >= 0);
        assert_true(H5Pset_deflate(w->dcpl, (unsigned)s->deflate) >= 0);
    }
    w->twin = H5Dcreate2(w->file, "twin", s->type, w->space, H5P_DEFAULT, w->dcpl, H5P_DEFAULT);
    assert_true(w->twin >= 0);

    a->label = "test.h5: /array";
    a->type = cow_kept_type_new(s->type);
    a->element_size = H5Tget_size(s->type);
    a->chunk_bytes = elements * a->element_size;
    a->heap = s->heap;
    a->early = s->early;
    a->threads = 2;
    if (!s->undefined) {
        a->fill = calloc(1, a->element_size);
        if (s->fill != NULL)
            memcpy(a->fill, s->fill, a->element_size);
        a->fill_new = true;
    }
    memcpy(a->extent, s->extent, s->rank * sizeof *s->extent);
    memcpy(a->maximum, s->maximum, s->rank * sizeof *s->maximum);
    cow_grid_init(&a->grid, s->rank, s->chunk, s->maximum);
    if (s->native) {
        hsize_t raw_dims[RANK_MOST], raw_most[RANK_MOST];
        hid_t raw_space;
        void *raw;

        memcpy(raw_dims, chunk, sizeof raw_dims);
        memcpy(raw_most, chunk, sizeof raw_most);
        raw_dims[0] = 0;
        raw_most[0] = H5S_UNLIMITED;
        raw_space = H5Screate_simple((int)s->rank, raw_dims, raw_most);
        raw = cow_native_dataset_create((cow_loc){H5VLobject(w->file), H5I_FILE}, "raw", s->type, raw_space, w->dcpl);
        assert_non_null(raw);
        H5Sclose(raw_space);
        raw_dcpl = cow_native_dataset_dcpl(raw);
        store = cow_native_chunk_store(H5VLobject(w->file), raw, raw_dcpl);
    } else {
        raw_dcpl = H5Dget_create_plist(w->twin);
        w->spy = calloc(1, sizeof *w->spy);
        w->spy->store = (cow_chunk_store){.size = spy_size,
                                          .read = spy_read,
                                          .find = spy_find,
                                          .bring = spy_bring,
                                          .write = spy_write,
                                          .close = spy_close};
        w->spy->below = cow_chunk_store_memory();
        store = &w->spy->store;
    }
    assert_non_null(store);
    if (s->native)
        assert_int_equal(cow_native_element_size(H5VLobject(w->file), s->type, &a->file_element_size), 0);
    a->codec = cow_codec_open(raw_dcpl, s->type, s->native ? cow_array_file_chunk_bytes(a) : a->chunk_bytes);
    assert_non_null(a->codec);
    H5Pclose(raw_dcpl);
    a->pool = cow_pool_open("pool 1", s->rank, cow_table_memory(cow_slot_row_size(s->rank)), store);
    assert_non_null(a->pool);
    w->log = cow_table_memory(1);
    w->root = (cow_root){.dataset = 1, .pool = 1, .rank = s->rank, .top = COW_NO_NODE};
    memcpy(w->root.chunk, s->chunk, s->rank * sizeof *s->chunk);
    memcpy(w->root.maximum, s->maximum, s->rank * sizeof *s->maximum);
    memcpy(w->root.extent, s->extent, s->rank * sizeof *s->extent);
    open_index(w);
    a->cache = cow_chunk_cache_open(s->cache == 0 ? 1 << 20 : s->cache);
    assert_non_null(a->cache);
}

static void world_close(world *w)
{
    cow_array *a = &w->array;

    cow_array_forget(a);
    cow_chunk_cache_close(a->cache);
    cow_index_close(a->index);
    cow_pool_close(a->pool);
    cow_codec_close(a->codec);
    w->log->close(w->log);
    cow_kept_type_free(a->type);
    free(a->fill);
    if (w->twin >= 0)
        H5Dclose(w->twin);
    H5Sclose(w->space);
    H5Pclose(w->dcpl);
    H5Fclose(w->file);
    cow_native_leave();
    assert_string_equal(cow_error_message(), "");
}

static void commit(world *w)
{
    cow_array *a = &w->array;

    assert_good(cow_array_store(a));
    assert_null(a->dirty);
    assert_good(cow_pool_flush(a->pool));
    cow_pool_seal(a->pool);
    assert_good(cow_index_commit(a->index, NULL, NULL, &w->root.top, &w->root.level));
    w->root.chunks = cow_index_chunks(a->index);
    memcpy(w->root.extent, a->extent, a->grid.rank * sizeof *a->extent);
}

/* As another process would find it. */
static void reopen(world *w)
{
    commit(w);
    cow_array_forget(&w->array);
    cow_index_close(w->array.index);
    open_index(w);
}

static uint64_t slot_of(world *w, uint64_t c0, uint64_t c1)
{
    uint64_t chunk[RANK_MOST] = {c0, c1}, slot;
    assert_good(cow_index_get(w->array.index, chunk, &slot));
    return slot;
}

static int write_all(world *w, hid_t type, const void *buf)
{
    return cow_array_write(&w->array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, buf);
}

static int read_all(world *w, hid_t type, void *buf)
{
    return cow_array_read(&w->array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, buf);
}

/* ---- the model test ---- */

/* HDF5 1.14.5 and 2.2.0 now and then lose blocks of a regular hyperslab to which one is added (H5S_SELECT_OR): it has fewer
 * elements than it says, and H5Dread refuses a memory selection of either number. {0, 5, 1, 1} OR {0, 5, 2, 1} is one. */
static bool has_lost_blocks(hid_t space, unsigned rank)
{
    hsize_t start[RANK_MOST], stride[RANK_MOST], count[RANK_MOST], block[RANK_MOST], elements = 1;

    if (H5Sget_select_type(space) != H5S_SEL_HYPERSLABS || H5Sis_regular_hyperslab(space) <= 0)
        return false;
    assert_true(H5Sget_regular_hyperslab(space, start, stride, count, block) >= 0);
    for (unsigned d = 0; d < rank; d++)
        elements *= count[d] * block[d];
    return elements != (hsize_t)H5Sget_select_npoints(space);
}

/* A random selection of EXTENT. */
static hid_t random_selection(unsigned rank, const uint64_t extent[], bool regular)
{
    hsize_t dims[RANK_MOST] = {0}, start[RANK_MOST], stride[RANK_MOST], count[RANK_MOST], block[RANK_MOST];
    uint64_t total = 1;
    hid_t space;
    unsigned kind = (unsigned)random_below(regular ? 6 : 10);

    for (unsigned d = 0; d < rank; d++) {
        dims[d] = extent[d];
        total *= extent[d];
    }
    space = H5Screate_simple((int)rank, dims, NULL);
    if (total == 0) {
        H5Sselect_none(space);
        return space;
    }
    if (kind == 0)
        return space;
    if (kind == 9) { /* points, some of them twice */
        hsize_t point[64 * RANK_MOST];
        size_t n = 1 + random_below(64);
        for (size_t i = 0; i < n; i++)
            for (unsigned d = 0; d < rank; d++)
                point[i * rank + d] =
                    i > 0 && d < rank - 1 && random_below(4) == 0 ? point[(i - 1) * rank + d] : random_below(extent[d]);
        assert_true(H5Sselect_elements(space, H5S_SELECT_SET, n, point) >= 0);
        return space;
    }
    H5Sselect_none(space);
    for (unsigned part = 0; part < (kind < 6 ? 1u : 2 + (unsigned)random_below(2)); part++) {
        for (unsigned d = 0; d < rank; d++) {
            uint64_t left;
            start[d] = random_below(extent[d]);
            if (random_below(3) == 0)
                start[d] = 0;
            left = extent[d] - start[d];
            if (random_below(2) == 0) { /* one block */
                count[d] = stride[d] = 1;
                block[d] = random_below(3) == 0 ? left : 1 + random_below(left);
            } else {
                block[d] = 1 + random_below(left < 4 ? left : 4);
                stride[d] = block[d] + random_below(6);
                count[d] = 1 + random_below((left - block[d]) / stride[d] + 1);
            }
        }
        assert_true(
            H5Sselect_hyperslab(space, part == 0 ? H5S_SELECT_SET : H5S_SELECT_OR, start, stride, count, block) >= 0);
        if (has_lost_blocks(space, rank))
            assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, block) >= 0);
    }
    return space;
}

/* A random memory selection for the selection FILE. *ELEMENTS: of the buffer. The id may be H5S_ALL or H5S_BLOCK. */
static hid_t random_memory(hid_t file, size_t *elements)
{
    uint64_t n = (uint64_t)H5Sget_select_npoints(file);
    hsize_t dims[RANK_MOST], start[RANK_MOST], stride[RANK_MOST], count[RANK_MOST], block[RANK_MOST];
    int rank = H5Sget_simple_extent_ndims(file);
    hsize_t one = n;
    hid_t space;

    switch (random_below(7)) {
    case 0: /* the same selection */
        H5Sget_simple_extent_dims(file, dims, NULL);
        *elements = 1;
        for (int d = 0; d < rank; d++)
            *elements *= dims[d];
        return H5S_ALL;
    case 1:
        *elements = n;
        return H5S_BLOCK;
    case 2: /* the same shape inside something larger, maybe strided */
        if (n > 0 && H5Sget_select_type(file) == H5S_SEL_HYPERSLABS && H5Sis_regular_hyperslab(file) > 0) {
            H5Sget_regular_hyperslab(file, start, stride, count, block);
            *elements = 1;
            for (int d = 0; d < rank; d++) {
                count[d] *= block[d];
                stride[d] = 1 + random_below(2);
                start[d] = random_below(3);
                dims[d] = start[d] + count[d] * stride[d] + random_below(3);
                *elements *= dims[d];
            }
            space = H5Screate_simple(rank, dims, NULL);
            assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL) >= 0);
            return space;
        } /* fall through */
    case 3:
    case 4:
        *elements = n;
        return H5Screate_simple(1, &one, NULL);
    case 5: /* every other element */
        one = 2 * n + 3;
        *elements = one;
        space = H5Screate_simple(1, &one, NULL);
        start[0] = 1;
        stride[0] = 2;
        count[0] = n;
        if (n == 0)
            H5Sselect_none(space);
        else
            assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL) >= 0);
        return space;
    default: { /* backwards */
        hsize_t *point = malloc((n + 1) * sizeof *point);
        one = n + 2;
        *elements = one;
        space = H5Screate_simple(1, &one, NULL);
        for (uint64_t i = 0; i < n; i++)
            point[i] = n - i;
        if (n == 0)
            H5Sselect_none(space);
        else
            assert_true(H5Sselect_elements(space, H5S_SELECT_SET, n, point) >= 0);
        free(point);
        return space;
    }
    }
}

static herr_t is_duplicate(unsigned n, const H5E_error2_t *error, void *found)
{
    (void)n;
    *(bool *)found = *(bool *)found || error->min_num == H5E_CANTINSERT;
    return 0;
}

/* HDF5 1.14.5 now and then takes two chunks of a dataset that was resized for one and gives up: "can't insert duplicate
 * key", H5D__create_piece_file_map_hyper. */
static bool met_a_chunk_twice(void)
{
    bool found = false;

    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, is_duplicate, &found);
    return found;
}

/* H5Dwrite or H5Dread of the twin. False: it met a chunk twice and did nothing. */
static bool twin_transfer(const world *w, bool write, hid_t type, hid_t memory, hid_t file, hid_t dxpl, void *buffer)
{
    herr_t status;

    H5E_BEGIN_TRY
    status = write ? H5Dwrite(w->twin, type, memory, file, dxpl, buffer)
                   : H5Dread(w->twin, type, memory, file, dxpl, buffer);
    H5E_END_TRY
    if (status < 0)
        assert_true(met_a_chunk_twice());
    return status >= 0;
}

/* The elements of BUFFER, of SIZE bytes each, to those of the selection FILE, as twin_transfer. Points go one by one, so that the last one counts where
 * several name one element: HDF5 1.14.5 removes what such an element had in the heap once for each, and where that has been the last of its
 * collection it fails, and may crash ("unable to remove background heap object", H5T__vlen_disk_write). */
static bool twin_write(const world *w, hid_t type, size_t size, hid_t memory, hid_t file, const void *buffer)
{
    hssize_t n = H5Sget_select_npoints(file);
    hid_t one, scalar;

    if (H5Sget_select_type(file) != H5S_SEL_POINTS)
        return twin_transfer(w, true, type, memory, file, H5P_DEFAULT, (void *)(uintptr_t)buffer);
    one = H5Scopy(file);
    scalar = H5Screate(H5S_SCALAR);
    for (hssize_t i = 0; i < n; i++) {
        hsize_t point[RANK_MOST];

        assert_true(H5Sget_select_elem_pointlist(file, (hsize_t)i, 1, point) >= 0);
        assert_true(H5Sselect_elements(one, H5S_SELECT_SET, 1, point) >= 0);
        assert_true(H5Dwrite(w->twin, type, scalar, one, H5P_DEFAULT, (const uint8_t *)buffer + (size_t)i * size) >= 0);
    }
    H5Sclose(scalar);
    H5Sclose(one);
    return true;
}

static void compare_everything(world *w, hid_t type, const char *when)
{
    size_t bytes = H5Tget_size(type), size = bytes;
    uint8_t *ours, *theirs;

    for (unsigned d = 0; d < w->array.grid.rank; d++)
        size *= w->array.extent[d];
    ours = malloc(size + 1);
    theirs = malloc(size + 1);
    memset(ours, 7, size);
    memset(theirs, 7, size);
    assert_good(read_all(w, type, ours));
    if (twin_transfer(w, false, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, theirs) && memcmp(ours, theirs, size) != 0)
        for (size_t i = 0; i < size; i++)
            if (ours[i] != theirs[i])
                fail_msg("%s: byte %zu of element %zu of %zu is %u, native HDF5 has %u", when, i % bytes, i / bytes,
                         size / bytes, ours[i], theirs[i]);
    free(ours);
    free(theirs);
}

/* HDF5 2 makes zeros of what is between the members in memory where it reads a chunk that the file does not have, as 1.14
 * does only while the dataset has no chunk at all. The connector leaves these bytes alone: so they are set to 0 in BYTES
 * where native has 0. */
static void ignore_zeroed_padding(hid_t type, size_t elements, uint8_t *bytes, const uint8_t *native)
{
#if H5_VERSION_GE(2, 0, 0)
    size_t size = H5Tget_size(type);
    bool *member = calloc(size, sizeof *member);

    if (H5Tget_class(type) != H5T_COMPOUND)
        memset(member, true, size);
    for (unsigned m = 0; H5Tget_class(type) == H5T_COMPOUND && m < (unsigned)H5Tget_nmembers(type); m++) {
        hid_t of = H5Tget_member_type(type, m);
        memset(member + H5Tget_member_offset(type, m), true, H5Tget_size(of));
        H5Tclose(of);
    }
    for (size_t i = 0; i < elements * size; i++)
        if (!member[i % size] && native[i] == 0)
            bytes[i] = 0;
    free(member);
#else
    (void)type, (void)elements, (void)bytes, (void)native;
#endif
}

static void random_transfer(world *w, hid_t type, hid_t dxpl)
{
    bool write = random_below(2) == 0;
    hid_t file = random_selection(w->array.grid.rank, w->array.extent, random_below(2) == 0);
    bool all = H5Sget_select_type(file) == H5S_SEL_ALL && random_below(2) == 0;
    size_t elements, size;
    hid_t memory = random_memory(file, &elements);
    uint8_t *ours, *theirs;

    size = elements * H5Tget_size(type);
    ours = malloc(size + 1);
    theirs = malloc(size + 1);
    random_bytes(ours, size);
    if (random_below(2) == 0) /* something that is met again */
        memset(ours, (int)random_below(3), size);
    memcpy(theirs, ours, size);
    if (twin_transfer(w, write, type, memory, all ? H5S_ALL : file, dxpl, theirs)) {
        if (write)
            assert_good(cow_array_write(&w->array, type, memory, all ? H5S_ALL : file, dxpl, ours));
        else
            assert_good(cow_array_read(&w->array, type, memory, all ? H5S_ALL : file, dxpl, ours));
        if (!write)
            ignore_zeroed_padding(type, elements, ours, theirs);
        assert_memory_equal(ours, theirs, size);
    }
    free(ours);
    free(theirs);
    if (memory != H5S_ALL && memory != H5S_BLOCK)
        H5Sclose(memory);
    H5Sclose(file);
}

static void random_resize(world *w, const setting *s)
{
    uint64_t extent[RANK_MOST];
    hsize_t dims[RANK_MOST];

    for (unsigned d = 0; d < s->rank; d++) {
        uint64_t most = s->maximum[d] == COW_UNLIMITED ? s->extent[d] * 2 + 3 : s->maximum[d];
        extent[d] = w->array.extent[d];
        if (random_below(2) == 0)
            extent[d] = random_below(4) == 0 ? random_below(most + 1) : most - random_below(most / 4 + 1);
        dims[d] = extent[d];
    }
    assert_true(H5Dset_extent(w->twin, dims) >= 0);
    assert_good(cow_array_resize(&w->array, extent));
    assert_memory_equal(w->array.extent, extent, s->rank * sizeof *extent);
}

static void live_random_life(const setting *s, const hid_t types[], size_t n_types, hid_t dxpl, unsigned steps)
{
    world w;

    world_open(&w, s);
    /* Native HDF5 also overwrites what is not in the file's type while a dataset has no chunk at all. */
    if (H5Tget_class(s->type) == H5T_COMPOUND) {
        hid_t corner = H5Scopy(w.space);
        hsize_t origin[RANK_MOST] = {0};
        uint8_t element[64] = {0};
        assert_true(H5Sselect_elements(corner, H5S_SELECT_SET, 1, origin) >= 0);
        assert_true(H5Dwrite(w.twin, s->type, H5S_BLOCK, corner, H5P_DEFAULT, element) >= 0);
        assert_good(cow_array_write(&w.array, s->type, H5S_BLOCK, corner, H5P_DEFAULT, element));
        H5Sclose(corner);
    }
    for (unsigned step = 0; step < steps; step++) {
        char when[64];
        unsigned what = (unsigned)random_below(40);

        if (what == 0)
            random_resize(&w, s);
        else if (what == 1)
            reopen(&w);
        else if (what == 2)
            commit(&w);
        else if (what == 3)
            assert_good(cow_array_store(&w.array));
        else
            random_transfer(&w, types[random_below(n_types)], random_below(4) == 0 ? dxpl : H5P_DEFAULT);
        snprintf(when, sizeof when, "step %u (%u)", step, what);
        if (what < 4 || step % 8 == 0)
            compare_everything(&w, types[0], when);
    }
    reopen(&w);
    compare_everything(&w, types[0], "in the end");
    world_close(&w);
}

static setting random_setting(hid_t type)
{
    setting s = {.rank = 1 + (unsigned)random_below(RANK_MOST), .type = type};
    static const uint64_t side[] = {0, 300, 40, 14, 8};

    for (unsigned d = 0; d < s.rank; d++) {
        s.extent[d] = 1 + random_below(side[s.rank]);
        s.maximum[d] = random_below(2) == 0 ? COW_UNLIMITED : s.extent[d] + random_below(side[s.rank]);
        s.chunk[d] = 1 + random_below(side[s.rank] / 3);
        if (s.maximum[d] != COW_UNLIMITED && s.chunk[d] > s.maximum[d])
            s.chunk[d] = s.maximum[d];
    }
    s.cache = random_below(3) == 0 ? 1 : random_below(2) == 0 ? 2000 : 1 << 20;
    s.native = random_below(2) == 0;
    s.deflate = random_below(3) == 0 ? 1 : 0;
    return s;
}

static void test_integers_as_native_hdf5(void **unused)
{
    hid_t files[] = {H5T_STD_I32LE, H5T_STD_I16BE, H5T_STD_U8LE, H5T_STD_I64LE};
    hid_t types[] = {H5T_NATIVE_INT, H5T_NATIVE_SHORT, H5T_STD_I32BE, H5T_NATIVE_LLONG, H5T_NATIVE_INT};
    hid_t dxpl = H5Pcreate(H5P_DATASET_XFER);
    uint64_t fill = 0x0102030405060708;

    (void)unused;
    for (unsigned seed = 1; seed <= 24; seed++) {
        state = test_random(seed);
        setting s = random_setting(files[seed % 4]);
        s.fill = seed % 3 == 0 ? NULL : &fill;
        live_random_life(&s, types, sizeof types / sizeof *types, dxpl, 150);
    }
    H5Pclose(dxpl);
}

/* One type on both sides: the paths without conversion. */
static void test_doubles_as_native_hdf5(void **unused)
{
    hid_t types[] = {H5T_NATIVE_DOUBLE};
    double fill = -1.5;

    (void)unused;
    for (unsigned seed = 1; seed <= 32; seed++) {
        state = test_random(100 + seed);
        setting s = random_setting(H5T_IEEE_F64LE);
        s.fill = &fill;
        live_random_life(&s, types, 1, H5P_DEFAULT, 150);
    }
}

static void test_compounds_as_native_hdf5(void **unused)
{
    struct full {
        int32_t a;
        double b;
        int16_t c[3];
    } fill = {.a = 5, .b = 2.5, .c = {1, 2, 3}};
    hsize_t three = 3;
    hid_t shorts = H5Tarray_create2(H5T_NATIVE_SHORT, 1, &three), whole, subset, mixed, packed;

    (void)unused;
    whole = H5Tcreate(H5T_COMPOUND, sizeof(struct full));
    H5Tinsert(whole, "a", offsetof(struct full, a), H5T_NATIVE_INT);
    H5Tinsert(whole, "b", offsetof(struct full, b), H5T_NATIVE_DOUBLE);
    H5Tinsert(whole, "c", offsetof(struct full, c), shorts);
    packed = H5Tcopy(whole);
    H5Tpack(packed);
    subset = H5Tcreate(H5T_COMPOUND, 8);
    H5Tinsert(subset, "b", 0, H5T_NATIVE_DOUBLE);
    mixed = H5Tcreate(H5T_COMPOUND, 24);
    H5Tinsert(mixed, "c", 2, shorts);
    H5Tinsert(mixed, "a", 16, H5T_STD_I64BE);
    hid_t types[] = {packed, whole, subset, mixed};
    uint8_t *filling = calloc(1, sizeof fill);
    memcpy(filling, &fill.a, 4);
    memcpy(filling + 4, &fill.b, 8);
    memcpy(filling + 12, fill.c, 6);
    for (unsigned seed = 1; seed <= 16; seed++) {
        state = test_random(200 + seed);
        setting s = random_setting(packed);
        s.fill = filling;
        live_random_life(&s, types, 4, H5P_DEFAULT, 120);
    }
    free(filling);
    H5Tclose(whole);
    H5Tclose(packed);
    H5Tclose(subset);
    H5Tclose(mixed);
    H5Tclose(shorts);
}

static void test_data_transforms_as_native_hdf5(void **unused)
{
    hid_t types[] = {H5T_NATIVE_DOUBLE, H5T_NATIVE_INT, H5T_NATIVE_FLOAT}, dxpl = H5Pcreate(H5P_DATASET_XFER);

    (void)unused;
    assert_true(H5Pset_data_transform(dxpl, "(2*x+1)/3") >= 0);
    for (unsigned seed = 1; seed <= 6; seed++) {
        state = test_random(300 + seed);
        setting s = random_setting(seed % 2 == 0 ? H5T_IEEE_F32BE : H5T_STD_I32LE);
        world w;

        /* Values that stay ordinary numbers. */
        world_open(&w, &s);
        for (unsigned i = 0; i < 40; i++) {
            hid_t file = random_selection(s.rank, s.extent, i % 2 == 0), type = types[random_below(3)];
            uint64_t n = (uint64_t)H5Sget_select_npoints(file);
            hsize_t dims = n;
            hid_t memory = H5Screate_simple(1, &dims, NULL);
            size_t size = n * H5Tget_size(type);
            uint8_t *ours = calloc(n + 1, 8), *theirs = calloc(n + 1, 8);

            for (uint64_t e = 0; e < n; e++) {
                int value = (int)random_below(2000) - 1000;
                if (type == H5T_NATIVE_INT)
                    memcpy(ours + 4 * e, &value, 4);
                else if (type == H5T_NATIVE_DOUBLE)
                    ((double *)(void *)ours)[e] = value;
                else
                    ((float *)(void *)ours)[e] = (float)value;
            }
            memcpy(theirs, ours, size);
            if (twin_transfer(&w, true, type, memory, file, dxpl, theirs)) {
                assert_good(cow_array_write(&w.array, type, memory, file, dxpl, ours));
                assert_memory_equal(ours, theirs, size);
            }
            if (twin_transfer(&w, false, type, memory, file, dxpl, theirs)) {
                assert_good(cow_array_read(&w.array, type, memory, file, dxpl, ours));
                assert_memory_equal(ours, theirs, size);
            }
            free(ours);
            free(theirs);
            H5Sclose(memory);
            H5Sclose(file);
        }
        compare_everything(&w, H5T_NATIVE_DOUBLE, "after transforms");
        world_close(&w);
    }
    H5Pclose(dxpl);
}

/* Several batches, slabs and evictions: sizes beyond all the internal limits. */
static void test_large_transfers_as_native_hdf5(void **unused)
{
    const uint64_t rows = 3000, columns = 2000; /* 48 MB */
    double fill = 3;
    setting s = {.rank = 2,
                 .extent = {rows, columns},
                 .maximum = {COW_UNLIMITED, columns},
                 .chunk = {130, 256},
                 .type = H5T_IEEE_F64LE,
                 .fill = &fill,
                 .cache = 4 << 20};
    size_t n = rows * columns;
    float *single = malloc(n * sizeof *single);
    double *ours = malloc(n * sizeof *ours), *theirs = malloc(n * sizeof *theirs);
    hsize_t dims[2] = {rows, columns}, start[2] = {0, 1}, stride[2] = {1, 2}, count[2] = {rows, columns / 2};
    hid_t halves = H5Screate_simple(2, dims, NULL), odd = H5Screate_simple(2, dims, NULL);
    world w;

    (void)unused;
    state = test_random(500);
    world_open(&w, &s);
    for (size_t i = 0; i < n; i++) {
        ours[i] = (double)i;
        single[i] = (float)i / 2;
    }
    assert_good(write_all(&w, H5T_NATIVE_DOUBLE, ours));
    assert_true(H5Dwrite(w.twin, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, ours) >= 0);
    compare_everything(&w, H5T_NATIVE_DOUBLE, "written at once");
    assert_good(write_all(&w, H5T_NATIVE_FLOAT, single));
    assert_true(H5Dwrite(w.twin, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, single) >= 0);
    compare_everything(&w, H5T_NATIVE_DOUBLE, "converted");
    compare_everything(&w, H5T_NATIVE_FLOAT, "converted back");
    /* Memory every other element, file irregular (a hole punched), both types. */
    assert_true(H5Sselect_hyperslab(odd, H5S_SELECT_SET, start, stride, count, NULL) >= 0);
    start[1] = 0;
    count[1] = columns / 2;
    assert_true(H5Sselect_hyperslab(halves, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
    assert_good(cow_array_write(&w.array, H5T_NATIVE_DOUBLE, odd, halves, H5P_DEFAULT, ours));
    assert_true(H5Dwrite(w.twin, H5T_NATIVE_DOUBLE, odd, halves, H5P_DEFAULT, ours) >= 0);
    compare_everything(&w, H5T_NATIVE_DOUBLE, "from every other element");
    start[0] = 7;
    count[0] = 5;
    start[1] = 1500;
    count[1] = 3;
    assert_true(H5Sselect_hyperslab(halves, H5S_SELECT_OR, start, NULL, count, NULL) >= 0);
    dims[0] = (hsize_t)H5Sget_select_npoints(halves);
    hid_t line = H5Screate_simple(1, dims, NULL);
    for (int round = 0; round < 2; round++) {
        hid_t type = round == 0 ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT;
        void *from = round == 0 ? (void *)ours : (void *)single;
        assert_good(cow_array_write(&w.array, type, line, halves, H5P_DEFAULT, from));
        assert_true(H5Dwrite(w.twin, type, line, halves, H5P_DEFAULT, from) >= 0);
        compare_everything(&w, H5T_NATIVE_DOUBLE, "irregular");
        memset(theirs, 0, n * sizeof *theirs);
        assert_good(cow_array_read(&w.array, type, line, halves, H5P_DEFAULT, theirs));
        assert_memory_equal(theirs, from, dims[0] * (round == 0 ? 8 : 4));
    }
    reopen(&w);
    compare_everything(&w, H5T_NATIVE_DOUBLE, "reopened");
    H5Sclose(line);
    H5Sclose(odd);
    H5Sclose(halves);
    world_close(&w);
    free(single);
    free(ours);
    free(theirs);
}

/* ---- promises, one by one ---- */

static const setting plain = {
    .rank = 2, .extent = {20, 10}, .maximum = {COW_UNLIMITED, COW_UNLIMITED}, .chunk = {4, 5}};

static setting with_type(setting s, hid_t type)
{
    s.type = type;
    return s;
}

static void number(int values[], size_t n, int first)
{
    for (size_t i = 0; i < n; i++)
        values[i] = first + (int)i;
}

static void test_same_bytes_keep_their_slots_and_write_nothing(void **unused)
{
    setting s = with_type(plain, H5T_NATIVE_INT);
    int values[200];
    world w;

    (void)unused;
    world_open(&w, &s);
    number(values, 200, 1);
    assert_good(write_all(&w, H5T_NATIVE_INT, values));
    commit(&w);
    assert_true(w.array.written);
    uint64_t slots = cow_pool_slots(w.array.pool), slot = slot_of(&w, 2, 1);
    unsigned writes = w.spy->writes;
    assert_int_equal(slots, 10);
    assert_int_equal(writes, 10);
    assert_good(write_all(&w, H5T_NATIVE_INT, values));
    assert_good(cow_array_store(&w.array));
    assert_false(cow_index_changed(w.array.index));
    assert_int_equal(cow_pool_slots(w.array.pool), slots);
    assert_int_equal(w.spy->writes, writes);
    assert_int_equal(slot_of(&w, 2, 1), slot);
    world_close(&w);
}

static void test_equal_chunks_share_a_slot(void **unused)
{
    setting s = with_type(plain, H5T_NATIVE_INT);
    int values[200];
    world w;

    (void)unused;
    world_open(&w, &s);
    for (size_t i = 0; i < 200; i++)
        values[i] = 9;
    assert_good(write_all(&w, H5T_NATIVE_INT, values));
    assert_good(cow_array_store(&w.array));
    assert_int_equal(cow_pool_slots(w.array.pool), 1);
    assert_int_equal(slot_of(&w, 0, 0), slot_of(&w, 4, 1));
    assert_int_equal(cow_index_chunks(w.array.index), 10);
    world_close(&w);
}

static void test_a_sealed_slot_is_never_written_again(void **unused)
{
    setting s = with_type(plain, H5T_NATIVE_INT);
    int values[200], old[20];
    uint32_t mask;
    world w;

    (void)unused;
    world_open(&w, &s);
    number(values, 200, 1);
    assert_good(write_all(&w, H5T_NATIVE_INT, values));
    commit(&w);
    uint64_t slot = slot_of(&w, 0, 0);
    number(values, 200, 1000);
    assert_good(write_all(&w, H5T_NATIVE_INT, values));
    commit(&w);
    assert_int_not_equal(slot_of(&w, 0, 0), slot);
    assert_good(w.spy->store.read(&w.spy->store, slot, old, sizeof old, &mask));
    assert_int_equal(old[0], 1);
    assert_int_equal(old[5], 11);
    /* One that was given out since is given out again. */
    slot = cow_pool_slots(w.array.pool);
    for (int round = 0; round < 5; round++) {
        number(values, 200, 5000 + 1000 * round);
        assert_good(write_all(&w, H5T_NATIVE_INT, values));
        assert_good(cow_array_store(&w.array));
    }
    assert_true(cow_pool_slots(w.array.pool) <= slot + 20);
    world_close(&w);
}

static void test_a_chunk_that_is_wholly_overwritten_is_not_read(void **unused)
{
    setting s = with_type(plain, H5T_NATIVE_INT);
    hsize_t start[2] = {4, 5}, count[2] = {4, 5};
    int values[200];
    world w;

    (void)unused;
    s.extent[0] = 18; /* with an edge */
    world_open(&w, &s);
    number(values, 180, 1);
    assert_good(write_all(&w, H5T_NATIVE_INT, values));
    reopen(&w);
    w.spy->reads = 0;
    number(values, 180, 7);
    assert_good(write_all(&w, H5T_NATIVE_INT, values));
    hid_t chunk = H5Screate_simple(2, (hsize_t[]){18, 10}, NULL);
    assert_true(H5Sselect_hyperslab(chunk, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
    assert_good(cow_array_write(&w.array, H5T_NATIVE_INT, H5S_BLOCK, chunk, H5P_DEFAULT, values));
    /* With conversion, and in an edge chunk. */
    long long wide[10] = {0};
    start[0] = 16;
    count[0] = 2;
    assert_true(H5Sselect_hyperslab(chunk, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
    assert_good(cow_array_write(&w.array, H5T_NATIVE_LLONG, H5S_BLOCK, chunk, H5P_DEFAULT, wide));
    assert_int_equal(w.spy->reads, 0);
    /* A part of one is another matter. */
    count[0] = 1;
    reopen(&w);
    assert_true(H5Sselect_hyperslab(chunk, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
    assert_good(cow_array_write(&w.array, H5T_NATIVE_INT, H5S_BLOCK, chunk, H5P_DEFAULT, values));
    assert_int_equal(w.spy->reads, 1);
    H5Sclose(chunk);
    world_close(&w);
}

/* Chunks are found on the calling thread and read by any; what was read below HDF5 and is not what was stored is read again by it. */
static void test_what_other_threads_read_wrongly_is_read_again(void **unused)
{
    enum { ROWS = 500, COLUMNS = 700 };
    setting s = {.rank = 2,
                 .extent = {ROWS, COLUMNS},
                 .maximum = {COW_UNLIMITED, COW_UNLIMITED},
                 .chunk = {40, 256},
                 .type = H5T_NATIVE_INT};
    int *values = malloc(ROWS * COLUMNS * sizeof *values), *got = malloc(ROWS * COLUMNS * sizeof *got);
    long long *wide = malloc(ROWS * COLUMNS * sizeof *wide);
    hsize_t apart[2] = {ROWS, COLUMNS * 2}, start[2] = {0, 0}, stride[2] = {1, 2}, count[2] = {ROWS, COLUMNS};
    int *spread = malloc(ROWS * COLUMNS * 2 * sizeof *spread);
    hid_t memory = H5Screate_simple(2, apart, NULL);
    world w;

    (void)unused;
    assert_true(H5Sselect_hyperslab(memory, H5S_SELECT_SET, start, stride, count, NULL) >= 0);
    for (int way = 0; way < 4; way++) {
        during("filter %d, lies %d", way & 1, way >> 1);
        s.deflate = (way & 1) * 3;
        world_open(&w, &s);
        for (size_t i = 0; i < ROWS * COLUMNS; i++) /* long with a filter, too */
            values[i] = (int)((i + (size_t)way) * 2654435761u ^ i * i);
        assert_good(write_all(&w, H5T_NATIVE_INT, values));
        reopen(&w);
        w.spy->lies = way >> 1;
        memset(got, 0x55, ROWS * COLUMNS * sizeof *got);
        assert_good(read_all(&w, H5T_NATIVE_INT, got));
        assert_memory_equal(got, values, ROWS * COLUMNS * sizeof *got);
        assert_good(read_all(&w, H5T_NATIVE_LLONG, wide));
        assert_good(cow_array_read(&w.array, H5T_NATIVE_INT, memory, H5S_ALL, H5P_DEFAULT, spread));
        for (size_t i = 0; i < ROWS * COLUMNS; i++)
            assert_true(wide[i] == values[i] && spread[2 * i] == values[i]);
        assert_true(way >> 1 == 0 || w.spy->lies > 20);
        w.spy->spoil_reads = true; /* however it is read */
        assert_int_equal(read_all(&w, H5T_NATIVE_INT, got), -1);
        cow_error_box box = {0};
        cow_error_take(&box);
        assert_int_equal(box.kind, COW_CORRUPT);
        w.spy->spoil_reads = false;
        assert_good(read_all(&w, H5T_NATIVE_INT, got));
        assert_memory_equal(got, values, ROWS * COLUMNS * sizeof *got);
        world_close(&w);
    }
    H5Sclose(memory);
    free(spread);
    free(wide);
    free(got);
    free(values);
}

static void test_damaged_chunk_is_reported_with_its_place(void **unused)
{
    setting s = with_type(plain, H5T_NATIVE_INT);
    int values[200], got[200];
    world w;

    (void)unused;
    for (int filtered = 0; filtered < 2; filtered++) {
        s.deflate = filtered * 6;
        world_open(&w, &s);
        number(values, 200, 1);
        assert_good(write_all(&w, H5T_NATIVE_INT, values));
        reopen(&w);
        w.spy->spoil_reads = true;
        assert_int_equal(read_all(&w, H5T_NATIVE_INT, got), -1);
        w.spy->spoil_reads = false;
        assert_true(cow_error_pending());
        cow_error_box box = {0};
        cow_error_take(&box);
        assert_int_equal(box.kind, COW_CORRUPT);
        assert_true(strstr(box.message, "chunk") != NULL || filtered);
        if (!filtered) {
            assert_non_null(strstr(box.message, "test.h5: /array"));
            assert_non_null(strstr(box.message, "(0, 0)"));
            assert_non_null(strstr(box.message, "pool 1"));
            assert_non_null(strstr(box.message, "h5cow verify"));
        }
        cow_error_clear();
        assert_good(read_all(&w, H5T_NATIVE_INT, got));
        assert_memory_equal(got, values, sizeof got);
        world_close(&w);
    }
}

static void test_shrink_then_grow_shows_fill(void **unused)
{
    int fill = -7;
    setting s = with_type(plain, H5T_NATIVE_INT);
    int values[200], got[200];
    world w;

    (void)unused;
    s.fill = &fill;
    for (int dirty = 0; dirty < 2; dirty++) {
        world_open(&w, &s);
        number(values, 200, 1);
        assert_good(write_all(&w, H5T_NATIVE_INT, values));
        if (!dirty)
            reopen(&w);
        assert_good(cow_array_resize(&w.array, (uint64_t[]){6, 7}));
        assert_true(w.array.extent_changed);
        assert_good(cow_array_resize(&w.array, (uint64_t[]){20, 10}));
        if (!dirty)
            reopen(&w);
        assert_good(read_all(&w, H5T_NATIVE_INT, got));
        for (int i = 0; i < 20; i++)
            for (int j = 0; j < 10; j++)
                assert_int_equal(got[i * 10 + j], i < 6 && j < 7 ? 1 + i * 10 + j : -7);
        world_close(&w);
    }
}

static void test_growing_does_not_rewrite_edge_chunks(void **unused)
{
    setting s = with_type(plain, H5T_NATIVE_INT);
    int values[180];
    world w;

    (void)unused;
    s.extent[0] = 18;
    world_open(&w, &s);
    number(values, 180, 1);
    assert_good(write_all(&w, H5T_NATIVE_INT, values));
    commit(&w);
    w.spy->reads = w.spy->writes = 0;
    assert_good(cow_array_resize(&w.array, (uint64_t[]){40, 10}));
    assert_good(cow_array_resize(&w.array, (uint64_t[]){19, 10})); /* nothing of it was ever written */
    commit(&w);
    assert_int_equal(w.spy->writes, 0);
    assert_int_equal(w.spy->reads, 0);
    world_close(&w);
}

static void test_reading_a_hole_without_fill_value_leaves_memory_alone(void **unused)
{
    setting s = with_type(plain, H5T_NATIVE_INT);
    int values[200];
    hsize_t point[4] = {0, 0, 19, 9};
    world w;

    (void)unused;
    s.undefined = true;
    world_open(&w, &s);
    number(values, 200, 3);
    assert_good(read_all(&w, H5T_NATIVE_INT, values));
    assert_int_equal(values[0], 3);
    assert_int_equal(values[199], 202);
    hid_t points = H5Screate_simple(2, (hsize_t[]){20, 10}, NULL);
    assert_true(H5Sselect_elements(points, H5S_SELECT_SET, 2, point) >= 0);
    assert_good(cow_array_read(&w.array, H5T_NATIVE_INT, points, points, H5P_DEFAULT, values));
    assert_int_equal(values[199], 202);
    int one = 77;
    hsize_t first[2] = {0, 0};
    assert_true(H5Sselect_elements(points, H5S_SELECT_SET, 1, first) >= 0);
    assert_good(cow_array_write(&w.array, H5T_NATIVE_INT, H5S_BLOCK, points, H5P_DEFAULT, &one));
    assert_good(read_all(&w, H5T_NATIVE_INT, values));
    assert_int_equal(values[0], 77);
    assert_int_equal(values[1], 0); /* the rest of a chunk that exists */
    assert_int_equal(values[199], 202);
    H5Sclose(points);
    world_close(&w);
}

/* As many chunks as have numbers of three bytes, visited in no order. */
static void test_points_in_any_order_go_to_their_chunks(void **unused)
{
    enum { POINTS = 3000, ROWS = 400000, TWICE = 70 };
    setting s = with_type(plain, H5T_NATIVE_INT);
    static hsize_t point[POINTS][2];
    static int values[POINTS], got[POINTS];
    hsize_t n = POINTS;
    world w;

    (void)unused;
    s.extent[0] = ROWS;
    s.extent[1] = 10;
    world_open(&w, &s);
    for (int i = 0; i < POINTS; i++) {
        point[i][0] = (hsize_t)i * 104729 % ROWS;
        point[i][1] = (hsize_t)i % 10;
        values[i] = i + 1;
    }
    memcpy(point[POINTS - 1], point[TWICE], sizeof point[TWICE]);
    hid_t points = H5Screate_simple(2, (hsize_t[]){ROWS, 10}, NULL), memory = H5Screate_simple(1, &n, NULL);
    assert_true(H5Sselect_elements(points, H5S_SELECT_SET, POINTS, &point[0][0]) >= 0);
    assert_good(cow_array_write(&w.array, H5T_NATIVE_INT, memory, points, H5P_DEFAULT, values));
    commit(&w);
    assert_good(cow_array_read(&w.array, H5T_NATIVE_INT, memory, points, H5P_DEFAULT, got));
    values[TWICE] = values[POINTS - 1]; /* the later one */
    assert_memory_equal(got, values, sizeof got);
    H5Sclose(memory);
    H5Sclose(points);
    world_close(&w);
}

static void test_bad_requests_are_refused(void **unused)
{
    setting s = with_type(plain, H5T_NATIVE_INT);
    int values[200] = {0};
    world w;

    (void)unused;
    world_open(&w, &s);
    hid_t five = H5Screate_simple(1, (hsize_t[]){5}, NULL), larger = H5Screate_simple(2, (hsize_t[]){21, 10}, NULL);
    assert_int_equal(cow_array_write(&w.array, H5T_NATIVE_INT, five, H5S_ALL, H5P_DEFAULT, values), -1);
    assert_non_null(strstr(cow_error_message(), "different number of elements"));
    cow_error_clear();
    assert_int_equal(cow_array_read(&w.array, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, NULL), -1);
    assert_non_null(strstr(cow_error_message(), "no output buffer"));
    cow_error_clear();
    assert_int_equal(cow_array_read(&w.array, H5T_NATIVE_INT, H5S_ALL, larger, H5P_DEFAULT, values), -1);
    cow_error_clear();
    assert_int_equal(cow_array_read(&w.array, H5T_NATIVE_INT, five, five, H5P_DEFAULT, values), -1);
    cow_error_clear();
    H5E_BEGIN_TRY
    assert_int_equal(cow_array_write(&w.array, H5T_C_S1, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), -1);
    H5E_END_TRY
    cow_error_clear();
    assert_false(w.array.written);
    H5Sselect_none(larger);
    H5Sselect_none(five);
    assert_good(cow_array_write(&w.array, H5T_NATIVE_INT, five, larger, H5P_DEFAULT, NULL));
    assert_false(w.array.written);
    H5Sclose(five);
    H5Sclose(larger);
    world_close(&w);
}

static void test_a_full_disk_is_an_error_and_nothing_is_lost(void **unused)
{
    setting s = with_type(plain, H5T_NATIVE_INT);
    int values[200], got[200];
    world w;

    (void)unused;
    s.cache = 1 << 20;
    world_open(&w, &s);
    number(values, 200, 1);
    assert_good(write_all(&w, H5T_NATIVE_INT, values));
    w.spy->fail_writes = true;
    assert_int_equal(cow_array_store(&w.array), -1);
    assert_non_null(strstr(cow_error_message(), "no space left"));
    cow_error_clear();
    assert_int_equal(cow_index_chunks(w.array.index), 0);
    w.spy->fail_writes = false;
    reopen(&w);
    assert_int_equal(cow_pool_slots(w.array.pool), 10);
    assert_good(read_all(&w, H5T_NATIVE_INT, got));
    assert_memory_equal(got, values, sizeof got);
    world_close(&w);
}

/* Neighbours along dimension 0 get neighbouring slots, inside each tile: long runs in a leaf. */
static void test_a_disk_that_becomes_full_leaves_what_was_stored_before(void **unused)
{
    setting s = {.rank = 1, .extent = {1 << 20}, .maximum = {1 << 20}, .chunk = {1 << 14}, .cache = 1 << 16};
    size_t n = 1 << 20;
    int *values = malloc(n * sizeof *values), *got = malloc(n * sizeof *got);
    world w;

    (void)unused;
    s.type = H5T_NATIVE_INT;
    for (int filtered = 0; filtered < 2; filtered++)
        for (unsigned good = 0; good < 64; good += 9) {
            s.deflate = filtered;
            world_open(&w, &s);
            number(values, n, 1);
            w.spy->fail_writes = true;
            w.spy->good_writes = good;
            assert_int_equal(write_all(&w, H5T_NATIVE_INT, values), -1);
            assert_non_null(strstr(cow_error_message(), "no space left"));
            cow_error_clear();
            assert_int_equal(w.spy->writes, good);
            assert_int_equal(cow_index_chunks(w.array.index), good);
            for (unsigned i = 0; i < good; i++)
                assert_int_equal(slot_of(&w, i, 0), i);
            w.spy->fail_writes = false;
            number(values, n, 7); /* other chunks: they take the slots that were given back */
            assert_good(write_all(&w, H5T_NATIVE_INT, values));
            reopen(&w);
            assert_true(cow_pool_slots(w.array.pool) <= 64 + good);
            assert_good(read_all(&w, H5T_NATIVE_INT, got));
            assert_memory_equal(got, values, n * sizeof *got);
            world_close(&w);
        }
    free(values);
    free(got);
}

/* One transaction that gives slots out and back all the time. Returns the slots of all chunks. */
static uint64_t *slots_after_much_writing(unsigned threads, int deflate)
{
    setting s = {.rank = 1, .extent = {64 << 12}, .maximum = {64 << 12}, .chunk = {1 << 12}, .cache = 1 << 18};
    size_t n = 64 << 12;
    int *values = malloc(n * sizeof *values);
    uint64_t *slots = malloc(65 * sizeof *slots);
    world w;

    s.type = H5T_NATIVE_INT;
    s.deflate = deflate;
    world_open(&w, &s);
    w.array.threads = threads;
    state = test_random(600);
    for (int round = 0; round < 30; round++) {
        hsize_t start = 0, count = n;
        hid_t space = H5Screate_simple(1, &count, NULL);

        for (size_t i = 0; i < 64; i++) { /* some chunks as before, some the same as others */
            int content = (int)random_below(40);
            for (size_t k = 0; k < 1 << 12; k++)
                values[(i << 12) + k] = content + (int)k;
        }
        if (round % 3 != 0) {
            start = random_below(20) << 12;
            count = n - start - (random_below(20) << 12);
        }
        assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0);
        assert_good(cow_array_write(&w.array, H5T_NATIVE_INT, space, space, H5P_DEFAULT, values));
        H5Sclose(space);
    }
    commit(&w);
    for (uint64_t i = 0; i < 64; i++)
        slots[i] = slot_of(&w, i, 0);
    slots[64] = cow_pool_slots(w.array.pool);
    world_close(&w);
    free(values);
    return slots;
}

static void test_slots_do_not_depend_on_the_threads(void **unused)
{
    (void)unused;
    for (int deflate = 0; deflate < 2; deflate++) {
        uint64_t *alone = slots_after_much_writing(1, deflate);

        for (unsigned threads = 2; threads <= 8; threads += 3)
            for (int again = 0; again < 3; again++) {
                uint64_t *together = slots_after_much_writing(threads, deflate);
                assert_memory_equal(alone, together, 65 * sizeof *alone);
                free(together);
            }
        free(alone);
    }
}

static void write_rows(world *w, uint64_t first, uint64_t rows, uint64_t column, uint64_t columns, int value)
{
    hsize_t start[2] = {first, column}, count[2] = {rows, columns};
    int values[200];

    assert_true(H5Sselect_hyperslab(w->space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
    for (uint64_t i = 0; i < rows * columns; i++)
        values[i] = value;
    assert_good(cow_array_write(&w->array, H5T_NATIVE_INT, H5S_BLOCK, w->space, H5P_DEFAULT, values));
    assert_true(H5Dwrite(w->twin, H5T_NATIVE_INT, H5S_BLOCK, w->space, H5P_DEFAULT, values) >= 0);
}

static void test_what_is_not_written_of_a_new_chunk_is_fill_value(void **unused)
{
    setting s = {.rank = 2, .extent = {20, 5}, .maximum = {20, 5}, .chunk = {4, 5}};
    int fill = 77;
    world w;

    (void)unused;
    s.type = H5T_NATIVE_INT;
    for (int filled = 0; filled < 2; filled++)
        for (int moment = 0; moment < 4; moment++) {
            s.fill = filled ? &fill : NULL;
            world_open(&w, &s);
            write_rows(&w, 0, 2, 0, 5, 1);  /* the first rows */
            write_rows(&w, 6, 1, 0, 5, 2);  /* one in the middle */
            write_rows(&w, 8, 1, 1, 3, 3);  /* a part of one */
            write_rows(&w, 9, 2, 2, 1, 4);  /* a part of two */
            write_rows(&w, 14, 1, 0, 5, 5); /* backwards */
            write_rows(&w, 13, 1, 0, 5, 6);
            write_rows(&w, 16, 3, 0, 5, 7); /* over what is there */
            write_rows(&w, 17, 1, 0, 5, 8);
            if (moment == 1)
                compare_everything(&w, H5T_NATIVE_INT, "while it is cached");
            if (moment == 2)
                commit(&w);
            if (moment == 3) { /* shrinking looks at dirty chunks */
                assert_good(cow_array_resize(&w.array, (uint64_t[]){15, 4}));
                assert_good(cow_array_resize(&w.array, (uint64_t[]){20, 5}));
                assert_true(H5Dset_extent(w.twin, (hsize_t[]){15, 4}) >= 0);
                assert_true(H5Dset_extent(w.twin, (hsize_t[]){20, 5}) >= 0);
            }
            write_rows(&w, 2, 1, 0, 5, 9); /* the row after the first */
            write_rows(&w, 19, 1, 0, 2, 10);
            if (moment == 2)
                reopen(&w);
            compare_everything(&w, H5T_NATIVE_INT, "at the end");
            world_close(&w);
        }
}

static void test_slots_follow_the_order_of_tiles(void **unused)
{
    setting s = {.rank = 2, .extent = {64, 64}, .maximum = {64, 64}, .chunk = {4, 4}, .type = H5T_NATIVE_INT};
    int *values = malloc(64 * 64 * sizeof *values);
    world w;

    (void)unused;
    for (int large = 0; large < 2; large++) {
        world_open(&w, &s);
        uint64_t expected = 0;
        number(values, 64 * 64, 1);
        assert_good(write_all(&w, H5T_NATIVE_INT, values));
        assert_good(cow_array_store(&w.array));
        const uint64_t *tile = w.array.grid.tile;
        for (uint64_t t0 = 0; t0 < 16; t0 += tile[0])
            for (uint64_t t1 = 0; t1 < 16; t1 += tile[1])
                for (uint64_t p = 0; p < cow_grid_tile_chunks(&w.array.grid); p++) {
                    uint64_t offset[2];
                    cow_grid_tile_offset(&w.array.grid, (unsigned)p, offset);
                    assert_int_equal(slot_of(&w, t0 + offset[0], t1 + offset[1]), expected++);
                }
        assert_int_equal(expected, 256);
        world_close(&w);
        s.cache = 1000; /* straight to the pool */
    }
    free(values);
}

static void test_early_allocation_stores_all_chunks_once(void **unused)
{
    int fill = 5, got[400];
    setting s = with_type(plain, H5T_NATIVE_INT);
    world w;

    (void)unused;
    s.fill = &fill;
    s.early = true;
    s.extent[0] = 18;
    world_open(&w, &s);
    assert_good(cow_array_resize(&w.array, s.extent));
    uint64_t count;
    assert_good(cow_array_chunk_count(&w.array, &count));
    assert_int_equal(count, 10);
    assert_int_equal(cow_pool_slots(w.array.pool), 2); /* whole chunks and edge chunks */
    reopen(&w);
    assert_good(cow_array_resize(&w.array, (uint64_t[]){25, 16}));
    assert_good(cow_array_chunk_count(&w.array, &count));
    assert_int_equal(count, 28);
    assert_good(read_all(&w, H5T_NATIVE_INT, got));
    for (int i = 0; i < 400; i++)
        assert_int_equal(got[i], 5);
    assert_good(cow_array_resize(&w.array, (uint64_t[]){3, 16}));
    assert_good(cow_array_chunk_count(&w.array, &count));
    assert_int_equal(count, 4);
    world_close(&w);
}

/* ---- chunks ---- */

static void test_chunk_queries_as_native_hdf5(void **unused)
{
    setting s = with_type(plain, H5T_NATIVE_INT);
    int values[200];
    hsize_t point[] = {0, 0, 19, 9, 9, 9, 9, 0};
    world w;

    (void)unused;
    s.native = true;
    s.deflate = 4;
    for (int dense = 0; dense < 2; dense++) {
        world_open(&w, &s);
        hid_t space = H5Screate_simple(2, (hsize_t[]){20, 10}, NULL);
        if (!dense)
            assert_true(H5Sselect_elements(space, H5S_SELECT_SET, 4, point) >= 0);
        number(values, 200, 50);
        assert_good(cow_array_write(&w.array, H5T_NATIVE_INT, H5S_BLOCK, space, H5P_DEFAULT, values));
        assert_true(H5Dwrite(w.twin, H5T_NATIVE_INT, H5S_BLOCK, space, H5P_DEFAULT, values) >= 0);
        assert_true(H5Dflush(w.twin) >= 0);
        uint64_t count, bytes;
        hsize_t twin_count;
        assert_good(cow_array_chunk_count(&w.array, &count));
        assert_true(H5Dget_num_chunks(w.twin, H5S_ALL, &twin_count) >= 0);
        assert_int_equal(count, twin_count);
        assert_good(cow_array_storage_size(&w.array, &bytes));
        assert_int_equal(bytes, H5Dget_storage_size(w.twin));
        uint64_t last = 0;
        for (uint64_t i = 0; i < count; i++) {
            cow_chunk_info info, again;
            haddr_t address;
            hsize_t size, offset[2];
            unsigned mask;
            uint8_t ours[1000], theirs[1000];
            uint32_t our_mask, their_mask;

            assert_good(cow_array_chunk_by_index(&w.array, i, &info));
            assert_true(i == 0 || info.offset[0] * 10 + info.offset[1] > last);
            last = info.offset[0] * 10 + info.offset[1];
            assert_good(cow_array_chunk_by_offset(&w.array, info.offset, &again));
            assert_int_equal(again.address, info.address);
            offset[0] = info.offset[0];
            offset[1] = info.offset[1];
            assert_true(H5Dget_chunk_info_by_coord(w.twin, offset, &mask, &address, &size) >= 0);
            assert_int_equal(info.size, size);
            assert_int_equal(info.filter_mask, mask);
            assert_true(info.address != HADDR_UNDEF);
            assert_good(cow_array_chunk_read(&w.array, info.offset, &our_mask, ours, sizeof ours));
            assert_true(H5Dread_chunk(w.twin, H5P_DEFAULT, offset, &their_mask, theirs) >= 0);
            assert_int_equal(our_mask, their_mask);
            assert_memory_equal(ours, theirs, size);
            assert_int_equal(cow_array_chunk_read(&w.array, info.offset, &our_mask, ours, 3), -1);
            cow_error_clear();
        }
        cow_chunk_info none;
        assert_int_equal(cow_array_chunk_by_index(&w.array, count, &none), -1);
        cow_error_clear();
        if (!dense) {
            assert_good(cow_array_chunk_by_offset(&w.array, (uint64_t[]){4, 5}, &none));
            assert_true(none.slot == COW_HOLE && none.address == HADDR_UNDEF && none.size == 0);
        }
        assert_int_equal(cow_array_chunk_by_offset(&w.array, (uint64_t[]){3, 5}, &none), -1);
        cow_error_clear();
        H5Sclose(space);
        world_close(&w);
    }
}

static void test_encoded_chunks_are_stored_as_they_are_and_deduplicated(void **unused)
{
    setting s = with_type(plain, H5T_NATIVE_INT);
    int values[20], got[180];
    uint8_t encoded[1000];
    size_t size;
    uint32_t mask;
    world w;

    (void)unused;
    s.deflate = 9;
    s.extent[0] = 18;
    world_open(&w, &s);
    number(values, 20, 1);
    assert_good(cow_codec_encode_as(w.array.codec, NULL, values, encoded, &size, &mask));
    assert_good(cow_array_chunk_write(&w.array, (uint64_t[]){4, 0}, mask, encoded, size));
    assert_good(cow_array_chunk_write(&w.array, (uint64_t[]){8, 5}, mask, encoded, size));
    assert_int_equal(cow_pool_slots(w.array.pool), 1);
    assert_int_equal(w.spy->writes, 1);
    /* Not compressed: the same elements, but H5Dread_chunk must give these bytes. */
    assert_good(cow_array_chunk_write(&w.array, (uint64_t[]){4, 0}, 3, values, sizeof values));
    assert_int_equal(w.spy->writes, 2);
    /* An edge chunk: what is outside the extent comes back when it grows, as natively. */
    assert_good(cow_array_chunk_write(&w.array, (uint64_t[]){16, 5}, mask, encoded, size));
    assert_int_equal(cow_pool_slots(w.array.pool), 2);
    assert_good(cow_array_resize(&w.array, (uint64_t[]){20, 10}));
    int edge[20];
    hid_t space = H5Screate_simple(2, (hsize_t[]){20, 10}, NULL);
    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[]){16, 5}, NULL, (hsize_t[]){4, 5}, NULL) >= 0);
    assert_good(cow_array_read(&w.array, H5T_NATIVE_INT, H5S_BLOCK, space, H5P_DEFAULT, edge));
    H5Sclose(space);
    for (int i = 0; i < 20; i++)
        assert_int_equal(edge[i], 1 + i);
    assert_int_equal(cow_array_chunk_write(&w.array, (uint64_t[]){0, 0}, mask, encoded, size / 2), -1);
    cow_error_clear();
    assert_int_equal(slot_of(&w, 0, 0), COW_HOLE);
    assert_good(cow_array_resize(&w.array, (uint64_t[]){18, 10}));
    assert_good(read_all(&w, H5T_NATIVE_INT, got));
    assert_int_equal(got[4 * 10], 1);
    assert_int_equal(got[8 * 10 + 5], 1);
    world_close(&w);
}

/* ---- lossy filters ---- */

/* Native HDF5 forgets what was written when it drops a chunk from its cache. */
static void reopen_twin(world *w)
{
    assert_true(H5Dclose(w->twin) >= 0);
    w->twin = H5Dopen2(w->file, "twin", H5P_DEFAULT);
    assert_true(w->twin >= 0);
}

static void assert_as_twin(world *w, hid_t type, size_t n)
{
    size_t size = H5Tget_size(type);
    uint8_t *native = calloc(n, size), *ours = calloc(n, size);

    assert_true(H5Dread(w->twin, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, native) >= 0);
    assert_good(read_all(w, type, ours));
    assert_memory_equal(ours, native, n * size);
    free(native);
    free(ours);
}

static void check_lossy(const setting *s, const void *values, size_t n)
{
    size_t size = n * H5Tget_size(s->type);
    uint8_t *got = malloc(size);
    uint64_t slots, grown[RANK_MOST];
    hsize_t native_grown[RANK_MOST];
    size_t grown_n = 1;
    world w;

    world_open(&w, s);
    assert_true(H5Dwrite(w.twin, s->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    reopen_twin(&w);
    assert_good(write_all(&w, s->type, values));
    assert_good(cow_array_store(&w.array));
    assert_as_twin(&w, s->type, n); /* from the cache */
    assert_good(read_all(&w, s->type, got));
    assert_memory_not_equal(got, values, size); /* it is lossy */
    reopen(&w);
    assert_as_twin(&w, s->type, n);

    /* The same values again are the same chunks, as they were written and as they are read. */
    slots = cow_pool_slots(w.array.pool);
    assert_good(write_all(&w, s->type, values));
    reopen(&w);
    assert_int_equal(cow_pool_slots(w.array.pool), slots);
    assert_good(write_all(&w, s->type, got));
    reopen(&w);
    assert_int_equal(cow_pool_slots(w.array.pool), slots);
    assert_as_twin(&w, s->type, n);

    /* What is outside the extent went through the filter as well. */
    for (unsigned d = 0; d < s->rank; d++) {
        native_grown[d] = grown[d] = s->extent[d] + s->chunk[d] + 1;
        grown_n *= grown[d];
    }
    assert_good(cow_array_resize(&w.array, grown));
    assert_true(H5Dset_extent(w.twin, native_grown) >= 0);
    reopen_twin(&w);
    reopen(&w);
    assert_as_twin(&w, s->type, grown_n);
    world_close(&w);
    free(got);
}

static void test_what_a_lossy_filter_makes_is_what_is_stored(void **unused)
{
    const double fill = 1.23456;
    setting s = with_type(plain, H5T_NATIVE_DOUBLE);
    double values[180];
    int integers[180];

    (void)unused;
    s.maximum[0] = s.maximum[1] = COW_UNLIMITED;
    s.extent[0] = 18; /* the last chunks are cut */
    for (int i = 0; i < 180; i++) {
        values[i] = (double)random_below(1000000) / 7777;
        integers[i] = (int)random_below(100);
    }
    s.decimals = 2;
    check_lossy(&s, values, 180);
    s.fill = &fill;
    check_lossy(&s, values, 180);
    s.deflate = 6;
    check_lossy(&s, values, 180);
    s = with_type(plain, H5T_NATIVE_INT);
    s.maximum[0] = s.maximum[1] = COW_UNLIMITED;
    s.extent[0] = 18;
    s.bits = 5;
    check_lossy(&s, integers, 180);
}

/* The scale-offset filter of HDF5 1.14.5 refuses to decode what it made of values that take all bits of their type. */
static void test_what_a_filter_encodes_but_cannot_decode_is_not_lost(void **unused)
{
    setting s = with_type(plain, H5T_NATIVE_INT);
    int values[200], got[200], chunk[20];
    uint8_t bytes[1000];
    uint32_t mask;
    world w;

    (void)unused;
    s.bits = -1;
    world_open(&w, &s);
    for (int i = 0; i < 200; i++)
        values[i] = (int)(uint32_t)random_below((uint64_t)1 << 32);
    values[0] = INT32_MIN;
    values[1] = INT32_MAX;
    assert_good(write_all(&w, H5T_NATIVE_INT, values));
    reopen(&w);
    assert_good(read_all(&w, H5T_NATIVE_INT, got));
    assert_memory_equal(got, values, sizeof values);
    assert_good(cow_array_chunk_read(&w.array, (uint64_t[]){0, 0}, &mask, bytes, sizeof bytes));
    for (int i = 0; i < 20; i++)
        chunk[i] = values[i / 5 * 10 + i % 5];
    if (mask == 1) /* a library without that fault has no need to skip it */
        assert_memory_equal(bytes, chunk, sizeof chunk);
    world_close(&w);
}

/* ---- variable-length data ---- */

static const setting strings = {
    .rank = 1, .extent = {10}, .maximum = {COW_UNLIMITED}, .chunk = {4}, .native = true, .heap = true};

static hid_t string_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    assert_true(H5Tset_size(type, H5T_VARIABLE) >= 0);
    return type;
}

static void assert_strings(world *w, hid_t type, const char *const expected[], size_t n)
{
    char **got = calloc(n, sizeof *got);
    hsize_t dims = n;
    hid_t space = H5Screate_simple(1, &dims, NULL);

    assert_good(read_all(w, type, got));
    for (size_t i = 0; i < n; i++) {
        if (expected[i] == NULL)
            assert_null(got[i]);
        else
            assert_string_equal(got[i], expected[i]);
    }
    H5Treclaim(type, space, H5P_DEFAULT, got);
    H5Sclose(space);
    free(got);
}

static void test_strings_are_compared_by_content(void **unused)
{
    hid_t type = string_type();
    setting s = with_type(strings, type);
    const char *values[10] = {"a", "bcd", "", "long enough to be somewhere else",
                              "a", "bcd", "", "long enough to be somewhere else",
                              "x", "y"};
    world w;

    (void)unused;
    world_open(&w, &s);
    const char *none[10] = {0};
    assert_strings(&w, type, none, 10);
    assert_good(write_all(&w, type, values));
    assert_strings(&w, type, values, 10); /* before it is stored */
    reopen(&w);
    assert_int_equal(slot_of(&w, 0, 0), slot_of(&w, 1, 0));
    uint64_t slots = cow_pool_slots(w.array.pool), first = slot_of(&w, 0, 0);
    assert_strings(&w, type, values, 10);
    /* The same again. */
    assert_good(write_all(&w, type, values));
    assert_good(cow_array_store(&w.array));
    assert_false(cow_index_changed(w.array.index));
    commit(&w);
    /* One element: the others of the chunk come along, the old slot stays what it was. */
    hid_t space = H5Screate_simple(1, (hsize_t[]){10}, NULL);
    const char *other = "other";
    assert_true(H5Sselect_elements(space, H5S_SELECT_SET, 1, (hsize_t[]){5}) >= 0);
    assert_good(cow_array_write(&w.array, type, H5S_BLOCK, space, H5P_DEFAULT, &other));
    values[5] = other;
    assert_strings(&w, type, values, 10);
    reopen(&w);
    assert_strings(&w, type, values, 10);
    assert_int_equal(slot_of(&w, 0, 0), first);
    assert_int_not_equal(slot_of(&w, 1, 0), first);
    assert_true(cow_pool_slots(w.array.pool) > slots);
    /* A row of raw_data as versioned-hdf5 hashes it: ["a", "bcd"] is in its description. */
    H5Sclose(space);
    world_close(&w);
    H5Tclose(type);
}

static void test_strings_have_the_hash_of_versioned_hdf5(void **unused)
{
    static const uint8_t expected[] = {0x37, 0xbb, 0x2d, 0xd2, 0x81, 0x15, 0xe7, 0x90};
    hid_t type = string_type();
    setting s = with_type(strings, type);
    const char *values[2] = {"a", "bcd"};
    cow_slot row;
    world w;

    (void)unused;
    s.extent[0] = 2;
    world_open(&w, &s);
    assert_good(write_all(&w, type, values));
    commit(&w);
    assert_good(cow_pool_row(w.array.pool, slot_of(&w, 0, 0), &row));
    assert_memory_equal(row.digest.hash, expected, sizeof expected);
    world_close(&w);
    H5Tclose(type);
}

static void test_strings_shrink_then_grow_shows_fill(void **unused)
{
    hid_t type = string_type();
    setting s = with_type(strings, type);
    const char *values[10] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    world w;

    (void)unused;
    for (int dirty = 0; dirty < 2; dirty++) {
        world_open(&w, &s);
        assert_good(write_all(&w, type, values));
        if (!dirty)
            reopen(&w);
        assert_good(cow_array_resize(&w.array, (uint64_t[]){6}));
        assert_good(cow_array_resize(&w.array, (uint64_t[]){10}));
        const char *expected[10] = {"0", "1", "2", "3", "4", "5"};
        assert_strings(&w, type, expected, 10);
        reopen(&w);
        assert_strings(&w, type, expected, 10);
        world_close(&w);
    }
    H5Tclose(type);
}

static void test_damaged_strings_are_reported(void **unused)
{
    hid_t type = string_type();
    setting s = with_type(strings, type);
    const char *values[10] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, *bad = "bad";
    char *got[10] = {0};
    world w;

    (void)unused;
    world_open(&w, &s);
    assert_good(write_all(&w, type, values));
    reopen(&w);
    hid_t raw = H5Dopen2(w.file, "raw", H5P_DEFAULT), space = H5Dget_space(raw);
    hsize_t at = slot_of(&w, 1, 0) * 4 + 2;
    assert_true(H5Sselect_elements(space, H5S_SELECT_SET, 1, &at) >= 0);
    assert_true(H5Dwrite(raw, type, H5S_BLOCK, space, H5P_DEFAULT, &bad) >= 0);
    H5Sclose(space);
    H5Dclose(raw);
    assert_int_equal(read_all(&w, type, got), -1);
    assert_non_null(strstr(cow_error_message(), "(4)"));
    cow_error_clear();
    for (int i = 0; i < 10; i++)
        free(got[i]); /* what was read before the error */
    world_close(&w);
    H5Tclose(type);
}

/* Sequences in compounds, random parts, against native HDF5. */
static void test_sequences_as_native_hdf5(void **unused)
{
    typedef struct record {
        int id;
        hvl_t list;
        char *name;
    } record;
    hid_t list = H5Tvlen_create(H5T_NATIVE_SHORT), name = string_type();
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(record)), names = H5Tcreate(H5T_COMPOUND, sizeof(char *));
    setting s = {.rank = 2,
                 .extent = {9, 7},
                 .maximum = {COW_UNLIMITED, COW_UNLIMITED},
                 .chunk = {4, 3},
                 .native = true,
                 .heap = true};
    short numbers[40];
    char texts[8][16];
    world w;

    (void)unused;
    H5Tinsert(type, "id", offsetof(record, id), H5T_NATIVE_INT);
    H5Tinsert(type, "list", offsetof(record, list), list);
    H5Tinsert(type, "name", offsetof(record, name), name);
    H5Tinsert(names, "name", 0, name);
    s.type = type;
    state = test_random(400);
    for (int i = 0; i < 40; i++)
        numbers[i] = (short)i;
    for (int i = 0; i < 8; i++)
        snprintf(texts[i], sizeof texts[i], "text %d", i * 1000);
    for (int life = 0; life < 4; life++) {
        world_open(&w, &s);
        for (int step = 0; step < 60; step++) {
            unsigned what = (unsigned)random_below(10);

            if (what == 0) {
                uint64_t extent[2] = {1 + random_below(12), 1 + random_below(9)};
                assert_true(H5Dset_extent(w.twin, (hsize_t[]){extent[0], extent[1]}) >= 0);
                assert_good(cow_array_resize(&w.array, extent));
            } else if (what == 1) {
                reopen(&w);
            } else {
                hid_t file = random_selection(2, w.array.extent, false);
                uint64_t n = (uint64_t)H5Sget_select_npoints(file);
                hsize_t dims = n;
                hid_t memory = H5Screate_simple(1, &dims, NULL);
                record *records = calloc(n + 1, sizeof *records);
                char **only = calloc(n + 1, sizeof *only);

                for (uint64_t i = 0; i < n; i++) {
                    records[i] = (record){.id = (int)random_below(3), .name = texts[random_below(8)]};
                    records[i].list = (hvl_t){.len = random_below(20), .p = numbers + random_below(20)};
                    only[i] = texts[random_below(8)];
                }
                bool part = random_below(4) == 0;
                if (twin_write(&w, part ? names : type, part ? sizeof *only : sizeof *records, memory, file,
                               part ? (void *)only : (void *)records))
                    assert_good(cow_array_write(&w.array, part ? names : type, memory, file, H5P_DEFAULT,
                                                part ? (void *)only : (void *)records));
                free(records);
                free(only);
                H5Sclose(memory);
                H5Sclose(file);
            }
            uint64_t n = w.array.extent[0] * w.array.extent[1];
            record *ours = calloc(n, sizeof *ours), *theirs = calloc(n, sizeof *theirs);
            hid_t space = H5Dget_space(w.twin);
            assert_good(read_all(&w, type, ours));
            assert_true(H5Dread(w.twin, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, theirs) >= 0);
            for (uint64_t i = 0; i < n; i++) {
                assert_int_equal(ours[i].id, theirs[i].id);
                assert_int_equal(ours[i].list.len, theirs[i].list.len);
                if (ours[i].list.len > 0)
                    assert_memory_equal(ours[i].list.p, theirs[i].list.p, ours[i].list.len * sizeof(short));
                assert_int_equal(ours[i].name == NULL, theirs[i].name == NULL);
                if (ours[i].name != NULL)
                    assert_string_equal(ours[i].name, theirs[i].name);
            }
            H5Treclaim(type, space, H5P_DEFAULT, ours);
            H5Treclaim(type, space, H5P_DEFAULT, theirs);
            H5Sclose(space);
            free(ours);
            free(theirs);
        }
        world_close(&w);
    }
    H5Tclose(names);
    H5Tclose(type);
    H5Tclose(name);
    H5Tclose(list);
}

static void test_references_are_compared_by_what_they_refer_to(void **unused)
{
    setting s = with_type(strings, H5T_STD_REF);
    H5R_ref_t values[10], got[10];
    world w;

    (void)unused;
    world_open(&w, &s);
    hid_t group = H5Gcreate2(w.file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), space = H5Dget_space(w.twin);
    H5Gclose(group);
    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[]){2}, NULL, (hsize_t[]){3}, NULL) >= 0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 10; i++) {
            if (i % 4 == 3)
                assert_true(H5Rcreate_region(w.file, "twin", space, H5P_DEFAULT, &values[i]) >= 0);
            else
                assert_true(H5Rcreate_object(w.file, i % 4 == 0 ? "twin" : "group", H5P_DEFAULT, &values[i]) >= 0);
        }
        assert_good(write_all(&w, H5T_STD_REF, values));
        reopen(&w);
        assert_int_equal(slot_of(&w, 0, 0), slot_of(&w, 1, 0));
        assert_int_equal(slot_of(&w, 0, 0), 0); /* in the second round as well */
        assert_good(read_all(&w, H5T_STD_REF, got));
        for (int i = 0; i < 10; i++) {
            char ours[32] = "", theirs[32] = "";
            assert_int_equal(H5Rget_type(&got[i]), H5Rget_type(&values[i]));
            assert_true(H5Rget_obj_name(&got[i], H5P_DEFAULT, ours, sizeof ours) > 0);
            assert_true(H5Rget_obj_name(&values[i], H5P_DEFAULT, theirs, sizeof theirs) > 0);
            assert_string_equal(ours, theirs);
            if (i % 4 == 3) {
                hid_t region = H5Ropen_region(&got[i], H5P_DEFAULT, H5P_DEFAULT);
                assert_int_equal(H5Sget_select_npoints(region), 3);
                H5Sclose(region);
            }
            H5Rdestroy(&got[i]);
            H5Rdestroy(&values[i]);
        }
    }
    H5Sclose(space);
    world_close(&w);
}

#ifndef __SANITIZE_THREAD__ /* it is a race, and meant to be */
/* Memory of the program that changes, and changes back, all the time. */
typedef struct restless {
    volatile uint8_t *memory;
    size_t size, step;
    atomic_bool over;
} restless;

static void *change_and_change_back(void *context)
{
    restless *r = context;

    while (!atomic_load(&r->over))
        for (size_t i = 0; i < r->size; i += r->step)
            r->memory[i] ^= 0x80;
    return NULL;
}

/* What a program changes while it is written is stored as it was at some time, and is what its hash says. */
static void test_memory_that_changes_while_it_is_written(void **state_)
{
    enum { ROWS = 256, WIDTH = 4096, SIZE = ROWS * WIDTH };
    static uint8_t memory[SIZE], meant[SIZE], read[SIZE];

    (void)state_;
    for (unsigned kind = 0; kind < 24; kind++) {
        setting s = {.rank = 2,
                     .extent = {ROWS, WIDTH},
                     .maximum = {ROWS, WIDTH},
                     .chunk = {16, kind % 3 == 0 ? WIDTH : 1024},
                     .type = H5T_NATIVE_UINT8};
        uint64_t chunk[2];
        world w;

        s.deflate = kind % 4 == 3 ? 1 : 0;
        world_open(&w, &s);
        w.array.threads = 1 + kind % 2;
        for (unsigned round = 0; round < 3; round++) {
            restless r = {.memory = memory, .size = SIZE, .step = 1009 << kind % 5};
            pthread_t thread;

            for (size_t i = 0; i < SIZE; i++) /* many chunks are equal */
                meant[i] = memory[i] = (uint8_t)((i / WIDTH / 32 * round + i % 1024 / 16) & 0x7f);
            if (round < 2)
                assert_int_equal(pthread_create(&thread, NULL, change_and_change_back, &r), 0);
            assert_good(write_all(&w, H5T_NATIVE_UINT8, memory));
            atomic_store(&r.over, true);
            if (round < 2)
                pthread_join(thread, NULL);
            assert_good(read_all(&w, H5T_NATIVE_UINT8, read));
            for (size_t i = 0; i < SIZE; i++)
                assert_true(read[i] == meant[i] || (round < 2 && read[i] == (meant[i] | 0x80)));
            for (chunk[0] = 0; chunk[0] < ROWS / 16; chunk[0]++)
                for (chunk[1] = 0; chunk[1] < WIDTH / s.chunk[1]; chunk[1]++) {
                    const uint64_t dims[2] = {16, s.chunk[1]};
                    uint8_t bytes[16 * WIDTH];
                    cow_digest digest;
                    cow_slot row;

                    for (size_t n = 0; n < 16; n++)
                        memcpy(bytes + n * dims[1], read + (chunk[0] * 16 + n) * WIDTH + chunk[1] * dims[1], dims[1]);
                    assert_good(cow_digest_chunk(bytes, 2, dims, dims, 1, &digest));
                    assert_good(cow_pool_row(w.array.pool, slot_of(&w, chunk[0], chunk[1]), &row));
                    assert_memory_equal(digest.hash, row.digest.hash, COW_HASH_SIZE);
                }
            if (kind % 2 == 0)
                commit(&w);
        }
        world_close(&w);
    }
}
#endif

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubles_as_native_hdf5),
        cmocka_unit_test(test_integers_as_native_hdf5),
        cmocka_unit_test(test_compounds_as_native_hdf5),
        cmocka_unit_test(test_data_transforms_as_native_hdf5),
        cmocka_unit_test(test_large_transfers_as_native_hdf5),
        cmocka_unit_test(test_same_bytes_keep_their_slots_and_write_nothing),
        cmocka_unit_test(test_equal_chunks_share_a_slot),
        cmocka_unit_test(test_a_sealed_slot_is_never_written_again),
        cmocka_unit_test(test_a_chunk_that_is_wholly_overwritten_is_not_read),
        cmocka_unit_test(test_what_other_threads_read_wrongly_is_read_again),
        cmocka_unit_test(test_damaged_chunk_is_reported_with_its_place),
        cmocka_unit_test(test_shrink_then_grow_shows_fill),
        cmocka_unit_test(test_growing_does_not_rewrite_edge_chunks),
        cmocka_unit_test(test_reading_a_hole_without_fill_value_leaves_memory_alone),
        cmocka_unit_test(test_points_in_any_order_go_to_their_chunks),
        cmocka_unit_test(test_bad_requests_are_refused),
        cmocka_unit_test(test_a_full_disk_is_an_error_and_nothing_is_lost),
        cmocka_unit_test(test_a_disk_that_becomes_full_leaves_what_was_stored_before),
        cmocka_unit_test(test_slots_do_not_depend_on_the_threads),
        cmocka_unit_test(test_what_is_not_written_of_a_new_chunk_is_fill_value),
        cmocka_unit_test(test_slots_follow_the_order_of_tiles),
        cmocka_unit_test(test_early_allocation_stores_all_chunks_once),
        cmocka_unit_test(test_chunk_queries_as_native_hdf5),
        cmocka_unit_test(test_encoded_chunks_are_stored_as_they_are_and_deduplicated),
        cmocka_unit_test(test_what_a_lossy_filter_makes_is_what_is_stored),
        cmocka_unit_test(test_what_a_filter_encodes_but_cannot_decode_is_not_lost),
        cmocka_unit_test(test_strings_are_compared_by_content),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(test_memory_that_changes_while_it_is_written),
#endif
        cmocka_unit_test(test_strings_have_the_hash_of_versioned_hdf5),
        cmocka_unit_test(test_strings_shrink_then_grow_shows_fill),
        cmocka_unit_test(test_damaged_strings_are_reported),
        cmocka_unit_test(test_sequences_as_native_hdf5),
        cmocka_unit_test(test_references_are_compared_by_what_they_refer_to),
    };

    return test_main(tests, argc, argv, NULL, NULL);
}
