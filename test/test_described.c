/* What h5/dataset_header.h and h5/chunk_index.h find in the bytes of a file is what HDF5 says of it. */
#include "base/error.h"
#include "h5/chunk_index.h"
#include "h5/dataset_header.h"
#include "h5/links.h"
#include "h5/small_group.h"
#include "harness.h"
#include "random.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "test_described.h5"
#define PUT  "test_described.put.h5"

static uint64_t dice;

static uint64_t below(uint64_t n)
{
    return splitmix64(&dice) % n;
}

/* ---- the bytes ---- */

typedef struct image {
    uint8_t *bytes;
    size_t size;
} image;

static int read_image(void *context, uint64_t address, void *bytes, size_t size)
{
    const image *i = context;

    assert_true(address <= i->size && size <= i->size - address);
    memcpy(bytes, i->bytes + address, size);
    return 0;
}

static cow_source load(image *i)
{
    FILE *in = fopen(NAME, "rb");
    cow_source source = {.context = i, .read = read_image};

    assert_non_null(in);
    fseek(in, 0, SEEK_END);
    i->size = (size_t)ftell(in);
    rewind(in);
    free(i->bytes);
    i->bytes = malloc(i->size + 1);
    assert_int_equal(fread(i->bytes, 1, i->size, in), i->size);
    fclose(in);
    source.end = i->size;
    return source;
}

static uint64_t address_of(hid_t object)
{
    H5O_info2_t info;
    uint64_t address;

    assert_true(H5Oget_info3(object, &info, H5O_INFO_BASIC) >= 0);
    memcpy(&address, &info.token, sizeof address);
    return address;
}

static hid_t latest(H5F_libver_t low)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

    assert_true(H5Pset_libver_bounds(fapl, low, H5F_LIBVER_LATEST) >= 0);
    return fapl;
}

/* ---- chunks ---- */

typedef struct found {
    cow_chunk_place *place;
    uint64_t rows, count; /* of a chunk; of chunks */
} found;

static int note(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size, void *context)
{
    found *f = context;
    uint64_t number = offset[0] / f->rows;

    assert_true(number < f->count);
    f->place[number] = (cow_chunk_place){address, size, mask};
    return 0;
}

static int write_image(void *context, uint64_t address, const void *bytes, size_t size)
{
    image *i = context;

    assert_true(address <= i->size && size <= i->size - address);
    memcpy(i->bytes + address, bytes, size);
    return 0;
}

/* Places that are put into the bytes are those that HDF5 tells; and the extent that was put there. */
static void put_chunks(image *all, const cow_source *source, const cow_dataset_header *d, const found *f, unsigned rank)
{
    const uint64_t count = f->count, extent = d->extent[0] + 2 * below(3);
    found now = {calloc(count + 1, sizeof *now.place), 2, count};
    hsize_t told[3];
    cow_chunk_index *index;
    hid_t file, dataset, space;
    FILE *out;

    memcpy(now.place, f->place, count * sizeof *now.place);
    assert_int_equal(cow_chunk_index_open(source, d->index, false, below(2), &index), 1);
    for (int n = 0; n < 40; n++) {
        const uint64_t i = below(count), to = 512 + below(all->size - 1024);
        cow_chunk_place place;
        uint64_t address;

        if (below(2))
            assert_int_equal(cow_chunk_index_find(index, i, &place), 1);
        if (cow_chunk_index_may_put(index, i, &address) == 0) {
            assert_true(now.place[i].address == UINT64_MAX);
            assert_int_equal(cow_chunk_index_put(index, i, to, write_image, all), 0);
            continue;
        }
        assert_true(address == now.place[i].address);
        assert_int_equal(cow_chunk_index_put(index, i, to, write_image, all), 1);
        now.place[i].address = to;
        assert_int_equal(cow_chunk_index_find(index, i, &place), 1);
        assert_true(place.address == to);
    }
    cow_chunk_index_close(index);
    assert_int_equal(cow_header_resize(source, d->address, d->extent[0], extent, write_image, all), 1);
    assert_non_null(out = fopen(PUT, "wb"));
    assert_int_equal(fwrite(all->bytes, 1, all->size, out), all->size);
    fclose(out);
    assert_true((file = H5Fopen(PUT, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    assert_true((dataset = H5Dopen2(file, "d", H5P_DEFAULT)) >= 0);
    space = H5Dget_space(dataset);
    assert_int_equal(H5Sget_simple_extent_dims(space, told, NULL), rank);
    assert_int_equal(told[0], extent);
    for (uint64_t i = 0; i < count; i++)
        f->place[i].address = UINT64_MAX;
    assert_true(H5Dchunk_iter(dataset, H5P_DEFAULT, note, (void *)(uintptr_t)f) >= 0);
    for (uint64_t i = 0; i < count; i++)
        if (f->place[i].address != now.place[i].address)
            fail_msg("chunk %llu: HDF5 tells %llx, not %llx", (unsigned long long)i,
                     (unsigned long long)f->place[i].address, (unsigned long long)now.place[i].address);
    H5Sclose(space);
    H5Dclose(dataset);
    H5Fclose(file);
    remove(PUT);
    free(now.place);
}

/* COUNT chunks, of which one in SPARSE is there; 0: the first one alone. */
static void compare_chunks(uint64_t count, unsigned sparse, bool filtered, unsigned rank, H5F_libver_t low)
{
    hid_t fapl = latest(low), file = H5Fcreate(NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl),
          dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t extent[3] = {count * 2, 3, 2}, most[3] = {H5S_UNLIMITED, 3, 2}, chunk[3] = {2, 3, 2}, offset[3] = {0};
    hid_t space = H5Screate_simple((int)rank, extent, most), dataset;
    found f = {calloc(count + 1, sizeof *f.place), 2, count};
    size_t bytes = 2 * (rank > 1 ? 3 : 1) * (rank > 2 ? 2 : 1);
    uint8_t values[16] = {0};
    const unsigned more = (unsigned)below(4); /* than elements */
    image all = {0};
    cow_source source;
    cow_dataset_header d;
    cow_chunk_index *index;
    uint64_t address;

    during("%llu chunks, one in %u, %s, rank %u, version %d", (unsigned long long)count, sparse,
           filtered ? "filtered" : "plain", rank, low);
    for (uint64_t i = 0; i < count; i++)
        f.place[i].address = UINT64_MAX;
    H5Pset_chunk(dcpl, (int)rank, chunk);
    if (filtered)
        H5Pset_fletcher32(dcpl);
    assert_true((dataset = H5Dcreate2(file, "d", H5T_NATIVE_UCHAR, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    for (uint64_t i = 0; i < count; i++) {
        offset[0] = i * 2;
        if (sparse == 0 ? i == 0 : below(sparse) == 0)
            assert_true(H5Dwrite_chunk(dataset, H5P_DEFAULT, filtered ? (uint32_t)below(2) : 0, offset,
                                       bytes + (filtered ? below(4) : 0), values) >= 0);
    }
    for (unsigned n = 0, most_of_them = more == 2 ? 20 : more == 1; n < most_of_them; n++) {
        char name[16];
        hid_t one = H5Screate(H5S_SCALAR), attribute;

        snprintf(name, sizeof name, "a%u", n);
        assert_true((attribute = H5Acreate2(dataset, name, H5T_NATIVE_UCHAR, one, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        H5Aclose(attribute);
        H5Sclose(one);
    }
    if (more == 3)
        assert_true(H5Oset_comment(dataset, "what it is") >= 0);
    H5Dclose(dataset);
    H5Fclose(file);
    file = H5Fopen(NAME, H5F_ACC_RDONLY, fapl);
    dataset = H5Dopen2(file, "d", H5P_DEFAULT);
    assert_true(H5Dchunk_iter(dataset, H5P_DEFAULT, note, &f) >= 0);
    source = load(&all);
    assert_int_equal(cow_dataset_header_read(&source, address_of(dataset), &d), 1);
    assert_int_equal(d.layout, COW_DATASET_HEADER_CHUNKED);
    assert_int_equal(d.filters, filtered ? COW_DATASET_HEADER_FLETCHER32 : COW_DATASET_HEADER_PLAIN);
    assert_int_equal(d.rank, rank);
    for (unsigned k = 0; k < rank; k++) {
        assert_int_equal(d.extent[k], extent[k]);
        assert_int_equal(d.maximum[k], most[k]);
        assert_int_equal(d.chunk[k], chunk[k]);
    }
    assert_int_equal(d.element_size, 1);
    assert_int_equal(d.bare, more == 0);
    if (d.index != UINT64_MAX) {
        assert_int_equal(cow_chunk_index_open(&source, d.index, filtered, below(2), &index), 1);
        for (uint64_t n = 0; n < 2 * count; n++) { /* one after the other, then anywhere */
            cow_chunk_place place;
            uint64_t i = n < count ? n : below(count);

            assert_int_equal(cow_chunk_index_find(index, i, &place), 1);
            if (place.address != f.place[i].address ||
                (filtered && place.address != UINT64_MAX &&
                 (place.size != f.place[i].size || place.mask != f.place[i].mask)))
                fail_msg("chunk %llu: %llx %llu %x", (unsigned long long)i, (unsigned long long)place.address,
                         (unsigned long long)place.size, place.mask);
        }
        cow_chunk_index_close(index);
        assert_int_equal(cow_chunk_index_open(&source, d.index, !filtered, false, &index), 0);
    } else
        for (uint64_t i = 0; i < count; i++)
            assert_true(f.place[i].address == UINT64_MAX);
    /* whatever is changed in the bytes, nothing bad happens, and what is not metadata any more is not taken for it */
    address = address_of(dataset);
    for (unsigned n = 0; n < 300; n++) {
        uint64_t at = below(all.size);
        uint8_t before = all.bytes[at];
        cow_chunk_place place;

        all.bytes[at] = (uint8_t)below(256);
        source.unchecked = n % 2;
        if (cow_dataset_header_read(&source, address, &d) > 0 && d.layout == COW_DATASET_HEADER_CHUNKED &&
            d.index != UINT64_MAX && cow_chunk_index_open(&source, d.index, filtered, n % 2, &index) > 0) {
            for (unsigned k = 0; k < 20; k++) {
                uint64_t i = k < 10 ? below(count + 1) : splitmix64(&dice) >> below(64);
                int status = cow_chunk_index_find(index, i, &place);

                if (n % 2 == 0 && status > 0 && i < count)
                    assert_true(place.address == f.place[i].address);
            }
            cow_chunk_index_close(index);
        }
        all.bytes[at] = before;
    }
    source.unchecked = false;
    assert_int_equal(cow_dataset_header_read(&source, address, &d), 1);
    if (!filtered && d.index != UINT64_MAX)
        put_chunks(&all, &source, &d, &f, rank);
    free(all.bytes);
    free(f.place);
    H5Dclose(dataset);
    H5Fclose(file);
    H5Sclose(space);
    H5Pclose(dcpl);
    H5Pclose(fapl);
}

static void test_chunks(void **state)
{
    static const uint64_t counts[] = {1, 3, 4, 5, 20, 21, 52, 100, 500, 2000, 5000, 20000};

    (void)state;
    for (size_t i = 0; i < COUNT(counts); i++) {
        compare_chunks(counts[i] + below(counts[i]), 1, i % 2, 1 + (unsigned)below(3), H5F_LIBVER_V110);
        compare_chunks(counts[i] + below(counts[i]), 1 + (unsigned)below(9), below(2), 1 + (unsigned)below(3),
                       below(2) ? H5F_LIBVER_V110 : H5F_LIBVER_V114);
    }
    compare_chunks(4, 0, false, 1, H5F_LIBVER_V110); /* there is room for others, which HDF5 has never looked at */
    compare_chunks(200000 + below(100000), 3000, true, 1, H5F_LIBVER_V110); /* many pages that were never written */
    compare_chunks(120000, 1, false, 1, H5F_LIBVER_V110);
}

/* ---- datasets and groups of all kinds ---- */

static void compare_dataset(const cow_source *source, hid_t dataset)
{
    hid_t dcpl = H5Dget_create_plist(dataset), space = H5Dget_space(dataset);
    hsize_t extent[32], most[32];
    int rank = H5Sget_simple_extent_dims(space, extent, most);
    H5D_fill_value_t defined;
    cow_dataset_header d;

    if (cow_dataset_header_read(source, address_of(dataset), &d) == 1) {
        hbool_t times;
        unsigned order, compact, dense;

        H5Pfill_value_defined(dcpl, &defined);
        H5Pget_obj_track_times(dcpl, &times);
        H5Pget_attr_creation_order(dcpl, &order);
        H5Pget_attr_phase_change(dcpl, &compact, &dense);
        assert_int_equal(d.rank, rank);
        for (int k = 0; k < rank; k++) {
            assert_int_equal(d.extent[k], extent[k]);
            assert_int_equal(d.maximum[k], most[k]);
        }
        assert_int_equal(d.layout == COW_DATASET_HEADER_VIRTUAL, H5Pget_layout(dcpl) == H5D_VIRTUAL);
        assert_int_equal(d.fill, defined == H5D_FILL_VALUE_UNDEFINED      ? COW_DATASET_HEADER_UNDEFINED
                                 : defined == H5D_FILL_VALUE_USER_DEFINED ? COW_DATASET_HEADER_USER
                                                                          : COW_DATASET_HEADER_DEFAULT);
        assert_int_equal(d.filters == COW_DATASET_HEADER_PLAIN, H5Pget_nfilters(dcpl) == 0);
        assert_int_equal(d.times, times);
        assert_int_equal(d.usual, order == 0 && compact == 8 && dense == 6);
        if (d.layout == COW_DATASET_HEADER_VIRTUAL) {
            char file[60], name[60], their_file[60] = "", their_name[60] = "";
            uint64_t mappings;
            size_t theirs;

            H5Pget_virtual_count(dcpl, &theirs);
            if (theirs > 0) {
                H5Pget_virtual_filename(dcpl, 0, their_file, sizeof their_file);
                H5Pget_virtual_dsetname(dcpl, 0, their_name, sizeof their_name);
            }
            assert_int_equal(cow_dataset_header_source(source, &d, sizeof file, file, name, &mappings), 1);
            assert_int_equal(mappings, theirs);
            assert_string_equal(file, their_file);
            assert_string_equal(name, their_name);
        }
    }
    H5Sclose(space);
    H5Pclose(dcpl);
}

static herr_t compare_object(hid_t at, const char *name, const H5O_info2_t *info, void *context)
{
    hid_t object = H5Oopen(at, name, H5P_DEFAULT);

    (void)info;
    if (H5Iget_type(object) == H5I_DATASET)
        compare_dataset(context, object);
    H5Oclose(object);
    return 0;
}

static void test_kinds(void **state)
{
    image all = {0};
    cow_source source;

    (void)state;
    for (int low = H5F_LIBVER_EARLIEST; low <= H5F_LIBVER_V114; low++) {
        hid_t fapl = latest((H5F_libver_t)low), file = H5Fcreate(NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl),
              type = H5Tcopy(H5T_C_S1);

        during("version %d", low);
        H5Tset_size(type, H5T_VARIABLE);
        for (unsigned n = 0; n < 200; n++) {
            hsize_t extent[3] = {1 + below(9), 1 + below(9), 4}, most[3], chunk[3] = {1 + below(3), 2, 3};
            hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space, dataset;
            unsigned kind = (unsigned)below(4);
            int rank = (int)below(4), value = 3;
            char name[20];

            for (int k = 0; k < 3; k++) /* some unlimited, in any dimension */
                most[k] = kind == 1 && below(3) == 0 ? H5S_UNLIMITED : extent[k];
            space = rank == 0 ? H5Screate(below(2) ? H5S_SCALAR : H5S_NULL) : H5Screate_simple(rank, extent, most);
            if (kind == 1 && rank > 0) {
                H5Pset_chunk(dcpl, rank, chunk);
                if (below(3) == 0)
                    H5Pset_deflate(dcpl, 1);
                if (below(3) == 0)
                    H5Pset_fletcher32(dcpl);
            } else if (kind == 2)
                H5Pset_layout(dcpl, H5D_COMPACT);
            else if (kind == 3 && rank > 0 && low >= H5F_LIBVER_V110)
                for (unsigned m = (unsigned)below(3); m > 0; m--) {
                    hid_t source_space = H5Screate_simple(rank, extent, NULL);

                    H5Pset_virtual(dcpl, space, m == 1 ? "." : "other.h5", m == 1 ? "/_versioned_data/.//raw/2" : "x",
                                   source_space);
                    H5Sclose(source_space);
                    break;
                }
            if (below(3) == 0)
                H5Pset_fill_value(dcpl, H5T_NATIVE_INT, below(2) ? &value : NULL);
            if (below(3) == 0)
                H5Pset_obj_track_times(dcpl, false);
            if (below(4) == 0)
                H5Pset_attr_creation_order(dcpl, H5P_CRT_ORDER_TRACKED);
            if (below(4) == 0)
                H5Pset_attr_phase_change(dcpl, 4, 3);
            snprintf(name, sizeof name, "%u", n);
            H5E_BEGIN_TRY
            {
                dataset = H5Dcreate2(file, name, below(5) == 0 ? type : H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl,
                                     H5P_DEFAULT);
            }
            H5E_END_TRY
            if (dataset >= 0)
                H5Dclose(dataset);
            H5Sclose(space);
            H5Pclose(dcpl);
        }
        H5Tclose(type);
        H5Fclose(file);
        file = H5Fopen(NAME, H5F_ACC_RDONLY, fapl);
        source = load(&all);
        assert_true(H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_NATIVE, compare_object, &source, H5O_INFO_BASIC) >= 0);
        H5Fclose(file);
        H5Pclose(fapl);
    }
    free(all.bytes);
}

static void test_links(void **state)
{
    image all = {0};

    (void)state;
    for (unsigned n = 0; n < 60; n++) {
        hid_t fapl = latest(H5F_LIBVER_V110), file = H5Fcreate(NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
        hid_t gcpl = H5Pcreate(H5P_GROUP_CREATE), group, member;
        const unsigned links = (unsigned)below(n < 50 ? 20 : 500);
        cow_source source;
        uint64_t where;

        if (below(2))
            H5Pset_link_creation_order(gcpl, H5P_CRT_ORDER_TRACKED | (below(2) ? H5P_CRT_ORDER_INDEXED : 0));
        group = H5Gcreate2(file, "g", H5P_DEFAULT, gcpl, H5P_DEFAULT);
        for (unsigned i = 0; i < links; i++) {
            char name[300];

            memset(name, 'n', sizeof name);
            snprintf(name + below(280), 12, "%u", i);
            if (below(6) == 0)
                H5Lcreate_soft("nowhere", group, name, H5P_DEFAULT, H5P_DEFAULT);
            else
                H5Gclose(H5Gcreate2(group, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        }
        where = address_of(group);
        H5Fflush(file, H5F_SCOPE_GLOBAL);
        source = load(&all);
        for (hsize_t i = 0; i < links; i++) {
            char name[300];
            const char *const names[] = {"none", name};
            uint64_t address[2];
            H5L_info2_t info;
            int status;

            assert_true(H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT) >
                        0);
            assert_true(H5Lget_info2(group, name, &info, H5P_DEFAULT) >= 0);
            status = cow_links_find(&source, where, true, 2, names, address);
            assert_int_equal(status, 1);
            assert_true(address[0] == UINT64_MAX);
            if (info.type == H5L_TYPE_HARD) {
                member = H5Gopen2(group, name, H5P_DEFAULT);
                assert_true(address[1] == address_of(member));
                H5Gclose(member);
            } else
                assert_true(address[1] == UINT64_MAX);
            assert_false(cow_links_lack(&source, where, name));
            assert_int_equal(cow_links_lack(&source, where, "none"),
                             cow_links_find(&source, where, false, 2, names, address) == 1);
            if (cow_links_find(&source, where, false, 2, names, address) == 1)
                assert_int_equal(address[1] == UINT64_MAX, info.type != H5L_TYPE_HARD);
            else
                assert_true(links > 8);
            if (links > 30)
                i += below(20);
        }
        H5Gclose(group);
        H5Fclose(file);
        H5Pclose(gcpl);
        H5Pclose(fapl);
    }
    free(all.bytes);
}

/* Has it HDF5's usual creation properties, and a few hard links alone? */
static bool is_small(hid_t group)
{
    hid_t gcpl = H5Gget_create_plist(group);
    unsigned links, attributes, most, least, entries, length, more, fewer;
    H5L_info2_t info;
    H5G_info_t told;
    bool small;

    assert_true(H5Pget_link_creation_order(gcpl, &links) >= 0 && H5Pget_attr_creation_order(gcpl, &attributes) >= 0 &&
                H5Pget_link_phase_change(gcpl, &most, &least) >= 0 &&
                H5Pget_est_link_info(gcpl, &entries, &length) >= 0 &&
                H5Pget_attr_phase_change(gcpl, &more, &fewer) >= 0 && H5Gget_info(group, &told) >= 0);
    small = links == 0 && attributes == 0 &&
            ((most == 8 && least == 6) || (most == COW_HEADER_LINKS && least == COW_HEADER_LINKS_LEAST)) &&
            entries == 4 && length == 8 && more == 8 && fewer == 6 && H5Pget_nfilters(gcpl) == 0 &&
            told.storage_type == H5G_STORAGE_TYPE_COMPACT;
    for (hsize_t i = 0; i < told.nlinks; i++) {
        assert_true(H5Lget_info_by_idx2(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, &info, H5P_DEFAULT) >= 0);
        small = small && info.type == H5L_TYPE_HARD && info.cset == H5T_CSET_ASCII;
    }
    H5Pclose(gcpl);
    return small;
}

static hid_t draw_group(hid_t file)
{
    hid_t gcpl = H5Pcreate(H5P_GROUP_CREATE), group;

    if (below(6) == 0)
        H5Pset_link_creation_order(gcpl, H5P_CRT_ORDER_TRACKED);
    if (below(6) == 0)
        H5Pset_attr_creation_order(gcpl, H5P_CRT_ORDER_TRACKED);
    switch (below(6)) {
    case 0:
        H5Pset_link_phase_change(gcpl, 5, 3);
        break;
    case 1:
        H5Pset_link_phase_change(gcpl, COW_HEADER_LINKS, 5);
        break;
    case 2:
    case 3:
        H5Pset_link_phase_change(gcpl, COW_HEADER_LINKS, COW_HEADER_LINKS_LEAST);
        break;
    default:
        break;
    }
    if (below(6) == 0)
        H5Pset_attr_phase_change(gcpl, 5, 3);
    if (below(6) == 0)
        H5Pset_est_link_info(gcpl, 3, 20);
    if (below(6) == 0)
        H5Pset_local_heap_size_hint(gcpl, 300);
    if (below(6) == 0)
        H5Pset_deflate(gcpl, 3);
    group = H5Gcreate2(file, "g", H5P_DEFAULT, gcpl, H5P_DEFAULT);
    H5Pclose(gcpl);
    return group;
}

static void draw_links(hid_t group, hid_t members)
{
    const unsigned links = (unsigned)below(below(2) ? 11 : 35), strange = (unsigned)below(30);
    hid_t text = H5Pcreate(H5P_LINK_CREATE);

    H5Pset_char_encoding(text, H5T_CSET_UTF8);
    for (unsigned i = 0; i < links; i++) {
        char name[300], to[20];

        memset(name, 'n', sizeof name);
        snprintf(name + below(i < 11 ? 280 : 9), 12, "%u", i);
        snprintf(to, sizeof to, "%u", (unsigned)below(12));
        if (i == strange)
            H5Lcreate_soft("nowhere", group, name, H5P_DEFAULT, H5P_DEFAULT);
        else
            H5Lcreate_hard(members, to, group, name, i + 10 == strange ? text : H5P_DEFAULT, H5P_DEFAULT);
    }
    if (links > 0 && below(3) == 0)
        H5Ldelete_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, below(links), H5P_DEFAULT);
    if (below(4) == 0)
        H5Oset_comment(group, "what it is");
    for (uint64_t n = below(4) == 0 ? below(12) : 0; n > 0; n--) {
        hid_t space = H5Screate(H5S_SCALAR), attribute;

        attribute =
            H5Acreate2(group, (const char[2]){(char)('a' + n), '\0'}, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
        H5Aclose(attribute);
        H5Sclose(space);
    }
    H5Pclose(text);
}

/* Small groups and their links are told, and no others; and one link more, or less, of what several lead to. */
static void test_small_groups(void **state)
{
    const H5F_libver_t lows[] = {H5F_LIBVER_EARLIEST, H5F_LIBVER_V18, H5F_LIBVER_V110, H5F_LIBVER_LATEST};
    unsigned small = 0, counted = 0;
    image all = {0};

    (void)state;
    for (unsigned n = 0; n < 200; n++) {
        hid_t fapl = latest(lows[below(4)]), file = H5Fcreate(NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), group, members,
              member;
        unsigned rc[12];
        uint64_t where[12], at;
        cow_small_group told;
        cow_source source;
        H5O_info2_t info;
        int status;
        char name[20];
        FILE *out;

        members = H5Gcreate2(file, "m", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        for (unsigned i = 0; i < 12; i++) {
            snprintf(name, sizeof name, "%u", i);
            H5Gclose(H5Gcreate2(members, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        }
        group = draw_group(file);
        draw_links(group, members);
        H5Gclose(group);
        H5Gclose(members);
        H5Fclose(file);
        assert_true((file = H5Fopen(NAME, H5F_ACC_RDONLY, fapl)) >= 0);
        assert_true((group = H5Gopen2(file, "g", H5P_DEFAULT)) >= 0 &&
                    (members = H5Gopen2(file, "m", H5P_DEFAULT)) >= 0);
        at = address_of(group);
        source = load(&all);
        status = cow_small_group_read(&source, at, &told);
        assert_true(status == 1 || status == 0);
        assert_true(status == 0 || is_small(group));
        if (memcmp(all.bytes + at, "OHDR", 4) == 0) /* those in older headers are not told */
            assert_int_equal(status, is_small(group));
        small += status > 0;
        if (status > 0) {
            H5G_info_t info_of;

            assert_true(H5Gget_info(group, &info_of) >= 0);
            assert_int_equal(info_of.nlinks, told.count);
            for (size_t i = 0; i < told.count; i++) {
                assert_true(H5Oget_info_by_name3(group, told.link[i].name, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0);
                assert_memory_equal(&info.token, &told.link[i].address, 8);
            }
        }
        cow_small_group_free(&told);
        for (unsigned i = 0; i < 12; i++) {
            const int more = below(2) ? 1 : -1;

            snprintf(name, sizeof name, "%u", i);
            assert_true(H5Oget_info_by_name3(members, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0);
            memcpy(&where[i], &info.token, 8);
            rc[i] = info.rc;
            status = cow_header_count_links(&source, where[i], more, write_image, &all);
            if (memcmp(all.bytes + where[i], "OHDR", 4) != 0)
                assert_int_equal(status, 0);
            else
                assert_int_equal(status, rc[i] >= 2 && (int)rc[i] + more >= 2);
            rc[i] += status > 0 ? (unsigned)more : 0;
            counted += status > 0;
        }
        H5Gclose(group);
        H5Gclose(members);
        H5Fclose(file);
        assert_non_null(out = fopen(PUT, "wb"));
        assert_int_equal(fwrite(all.bytes, 1, all.size, out), all.size);
        fclose(out);
        assert_true((file = H5Fopen(PUT, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
        for (unsigned i = 0; i < 12; i++) {
            snprintf(name, sizeof name, "m/%u", i);
            assert_true((member = H5Gopen2(file, name, H5P_DEFAULT)) >= 0 &&
                        H5Oget_info3(member, &info, H5O_INFO_BASIC) >= 0);
            assert_int_equal(info.rc, rc[i]);
            H5Gclose(member);
        }
        H5Fclose(file);
        H5Pclose(fapl);
    }
    assert_true(small > 5 && counted > 5);
    free(all.bytes);
    remove(PUT);
}

/* A dataset of RANK dimensions, whose messages are in one place or several, in HEADER's version. */
static hid_t draw_dataset(hid_t file, unsigned rank, hsize_t now[], hsize_t most[], bool timed)
{
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), one = H5Screate(H5S_SCALAR), space, dataset, attribute;
    hsize_t chunk[4] = {2, 2, 2, 2};
    const unsigned attributes = (unsigned)below(2) * (unsigned)below(14);

    for (unsigned d = 0; d < rank; d++) {
        now[d] = 1 + below(9);
        most[d] = below(2) ? H5S_UNLIMITED : now[d] + below(5);
    }
    assert_true(H5Pset_chunk(dcpl, (int)rank, chunk) >= 0 && H5Pset_obj_track_times(dcpl, timed) >= 0);
    space = H5Screate_simple((int)rank, now, below(8) == 0 ? NULL : most);
    assert_true(H5Sget_simple_extent_dims(space, NULL, most) >= 0);
    if (memcmp(now, most, rank * sizeof *now) == 0) /* HDF5 does not take chunks of more than a fixed extent has */
        H5Pset_layout(dcpl, H5D_CONTIGUOUS);
    H5E_BEGIN_TRY
    {
        dataset = H5Dcreate2(file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    }
    H5E_END_TRY
    if (dataset < 0) {
        assert_true(H5Pset_layout(dcpl, H5D_CONTIGUOUS) >= 0);
        H5Sclose(space);
        memcpy(most, now, rank * sizeof *now);
        space = H5Screate_simple((int)rank, now, NULL);
        assert_true((dataset = H5Dcreate2(file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    }
    for (unsigned i = 0; i < attributes; i++) {
        char name[16];

        snprintf(name, sizeof name, "a%u", i);
        assert_true((attribute = H5Acreate2(dataset, name, H5T_NATIVE_INT, one, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        assert_true(H5Awrite(attribute, H5T_NATIVE_INT, &i) >= 0);
        H5Aclose(attribute);
    }
    if (below(3) == 0)
        assert_true(H5Oset_comment(dataset, "what it is") >= 0);
    H5Sclose(space);
    H5Sclose(one);
    H5Pclose(dcpl);
    return dataset;
}

/* What HDF5 says of a dataset whose extent was put into its header: that, and the times; nothing else has changed. */
static void test_extents(void **state)
{
    const uint32_t when = 1234567890;
    unsigned put = 0, left = 0;

    (void)state;
    for (unsigned n = 0; n < 300; n++) {
        const unsigned rank = 1 + (unsigned)below(4);
        const bool timed = below(2);
        hid_t fapl = below(4) ? latest(H5F_LIBVER_V110) : H5Pcreate(H5P_FILE_ACCESS),
              file = H5Fcreate(NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), dataset = H5I_INVALID_HID, space;
        hsize_t now[4], most[4], told[4], told_most[4];
        uint64_t extent[4] = {0}, where;
        bool fits = true, older;
        H5O_info2_t before, after;
        image all = {0};
        cow_source source;
        FILE *out;
        int status;

        during("%u: rank %u, times %d", n, rank, timed);
        H5Dclose(draw_dataset(file, rank, now, most, timed));
        H5Fclose(file);
        assert_true((file = H5Fopen(NAME, H5F_ACC_RDONLY, fapl)) >= 0 &&
                    (dataset = H5Dopen2(file, "d", H5P_DEFAULT)) >= 0);
        assert_true(H5Oget_info3(dataset, &before, H5O_INFO_ALL) >= 0);
        where = address_of(dataset);
        H5Dclose(dataset);
        H5Fclose(file);
        source = load(&all);
        older = memcmp(all.bytes + where, "OHDR", 4) != 0;
        for (unsigned d = 0; d < rank; d++) {
            extent[d] = below(16);
            fits = fits && (most[d] == H5S_UNLIMITED || extent[d] <= most[d]);
        }
        status = cow_header_set_extent(&source, where, rank, extent, when, write_image, &all);
        if (older || !fits)
            assert_int_equal(status, 0);
        assert_true(status == 0 || status == 1);
        assert_int_equal(
            cow_header_set_extent(&source, where, rank + 1, (uint64_t[5]){1, 1, 1, 1, 1}, when, write_image, &all), 0);
        put += status > 0;
        left += status == 0;
        assert_non_null(out = fopen(PUT, "wb"));
        assert_int_equal(fwrite(all.bytes, 1, all.size, out), all.size);
        fclose(out);
        assert_true((file = H5Fopen(PUT, H5F_ACC_RDONLY, fapl)) >= 0 &&
                    (dataset = H5Dopen2(file, "d", H5P_DEFAULT)) >= 0);
        assert_true((space = H5Dget_space(dataset)) >= 0);
        assert_int_equal(H5Sget_simple_extent_dims(space, told, told_most), rank);
        assert_memory_equal(told_most, most, rank * sizeof *most);
        for (unsigned d = 0; d < rank; d++)
            assert_int_equal(told[d], status > 0 ? extent[d] : now[d]);
        assert_true(H5Oget_info3(dataset, &after, H5O_INFO_ALL) >= 0);
        if (status > 0 && timed)
            before.atime = before.ctime = when;
        assert_memory_equal(&before.token, &after.token, sizeof before.token);
        assert_int_equal(before.rc, after.rc);
        assert_int_equal(before.num_attrs, after.num_attrs);
        assert_int_equal(before.atime, after.atime);
        assert_int_equal(before.mtime, after.mtime);
        assert_int_equal(before.ctime, after.ctime);
        assert_int_equal(before.btime, after.btime);
        for (unsigned i = 0; i < after.num_attrs; i++) {
            char name[16];
            unsigned value = 99;
            hid_t attribute;

            snprintf(name, sizeof name, "a%u", i);
            assert_true((attribute = H5Aopen(dataset, name, H5P_DEFAULT)) >= 0 &&
                        H5Aread(attribute, H5T_NATIVE_UINT, &value) >= 0);
            assert_int_equal(value, i);
            H5Aclose(attribute);
        }
        H5Sclose(space);
        H5Dclose(dataset);
        H5Fclose(file);
        H5Pclose(fapl);
        free(all.bytes);
    }
    assert_true(put > 50 && left > 50);
    remove(PUT);
}

static int begin(void **state)
{
    (void)state;
    dice = test_seed();
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chunks), cmocka_unit_test(test_kinds),
                                       cmocka_unit_test(test_links), cmocka_unit_test(test_small_groups),
                                       cmocka_unit_test(test_extents)};

    return test_main(tests, argc, argv, begin, NULL);
}
