/* Codecs against HDF5 itself: what we encode HDF5 reads, what HDF5 encodes we decode, and they are the same bytes, for
 * every pipeline of the standard set in every order; foreign filters through the scratch dataset; damaged input.
 */
#include "assert_error.h"
#include "filter_classes.h"
#include "io/codec.h"
#include "io/filters.h"
#include "io/lzf.h"
#include "io/workers.h"
#include "native/kept_type.h"
#include "native/native.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XOR      300 /* a filter that the codec does not know: flips bits, and fails on chunks that start with 9 */
#define MISSING  301 /* a filter that nobody has */
#define CHANGING 302 /* a filter that computes another parameter each time a dataset is created */

static hid_t file;

/* ---- helpers ---- */

static uint32_t random_state;

static uint32_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    return random_state ^= random_state << 5;
}

typedef enum { ZEROS, RAMP, NOISE, KINDS } kind;

static void *make_data(kind k, size_t bytes)
{
    uint8_t *data = malloc(bytes);

    assert_non_null(data);
    for (size_t i = 0; i < bytes; i++)
        data[i] = k == ZEROS ? 0 : k == RAMP ? (uint8_t)(i / 16) : (uint8_t)(next_random() >> 11);
    return data;
}

static void add_filter(hid_t dcpl, int id)
{
    herr_t status;

    switch (id) {
    case H5Z_FILTER_SHUFFLE:
        status = H5Pset_shuffle(dcpl);
        break;
    case H5Z_FILTER_DEFLATE:
        status = H5Pset_deflate(dcpl, 6);
        break;
    case H5Z_FILTER_FLETCHER32:
        status = H5Pset_fletcher32(dcpl);
        break;
    case COW_FILTER_BLOSC:
        status = H5Pset_filter(dcpl, id, H5Z_FLAG_OPTIONAL, 7, (unsigned[]){0, 0, 0, 0, 5, 1, 1});
        break;
    default:
        status = H5Pset_filter(dcpl, id, H5Z_FLAG_OPTIONAL, 0, NULL);
    }
    assert_true(status >= 0);
}

static hid_t chunked(hsize_t elements)
{
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(dcpl, 1, &elements) >= 0);
    return dcpl;
}

static hid_t opaque(size_t size)
{
    hid_t type = H5Tcreate(H5T_OPAQUE, size);
    assert_true(type >= 0);
    return type;
}

static hid_t make_dataset(hid_t type, hid_t dcpl)
{
    hsize_t elements;
    hid_t space, dataset;

    assert_int_equal(H5Pget_chunk(dcpl, 1, &elements), 1);
    space = H5Screate_simple(1, &elements, NULL);
    dataset = H5Dcreate_anon(file, type, space, dcpl, H5P_DEFAULT);
    assert_true(dataset >= 0);
    H5Sclose(space);
    return dataset;
}

/* H5Dread with plain HDF5 of one chunk that is given to it encoded. The dataset is closed in between, because HDF5
 * 1.14.5 answers a wrong mask for the chunk that it wrote last. */
static void read_with_hdf5(hid_t type, hid_t dcpl, const void *encoded, size_t size, uint32_t mask, void *back)
{
    const hsize_t zero = 0;
    hid_t space, dataset;
    hsize_t elements;

    assert_int_equal(H5Pget_chunk(dcpl, 1, &elements), 1);
    space = H5Screate_simple(1, &elements, NULL);
    dataset = H5Dcreate2(file, "ours", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(dataset >= 0);
    assert_true(H5Dwrite_chunk(dataset, H5P_DEFAULT, mask, &zero, size, encoded) >= 0);
    H5Dclose(dataset);
    dataset = H5Dopen2(file, "ours", H5P_DEFAULT);
    assert_true(dataset >= 0);
    assert_true(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
    assert_true(H5Ldelete(file, "ours", H5P_DEFAULT) >= 0);
}

static cow_codec *codec_of(hid_t dataset, size_t bytes)
{
    hid_t dcpl = H5Dget_create_plist(dataset), type = H5Dget_type(dataset);
    cow_codec *codec = cow_codec_open(dcpl, type, bytes);

    if (!codec)
        fail_msg("%s", cow_error_message());
    H5Tclose(type);
    H5Pclose(dcpl);
    return codec;
}

/* One chunk of DATA through a pipeline in both directions, ours against HDF5's. */
static void check_both_ways(hid_t type, hid_t dcpl, const void *data, size_t bytes, bool same_bytes)
{
    const hsize_t zero = 0;
    hid_t theirs = make_dataset(type, dcpl);
    cow_codec *codec = codec_of(theirs, bytes);
    size_t bound = cow_codec_bound(codec), size;
    uint8_t *encoded = malloc(bound), *stored, *back = malloc(bytes);
    uint32_t mask, their_mask = 0;
    hsize_t their_size;

    assert_non_null(encoded);
    assert_non_null(back);
    assert_good(cow_codec_encode_as(codec, NULL, data, encoded, &size, &mask));
    assert_true(size <= bound);

    memset(back, 0xee, bytes);
    read_with_hdf5(type, dcpl, encoded, size, mask, back);
    assert_memory_equal(back, data, bytes);

    assert_true(H5Dwrite(theirs, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    assert_true(H5Dflush(theirs) >= 0);
    assert_true(H5Dget_chunk_storage_size(theirs, &zero, &their_size) >= 0);
    stored = malloc(their_size);
    assert_true(H5Dread_chunk(theirs, H5P_DEFAULT, &zero, &their_mask, stored) >= 0);
    memset(back, 0xee, bytes);
    assert_good(cow_codec_decode(codec, stored, their_size, their_mask, back));
    assert_memory_equal(back, data, bytes);

    assert_int_equal(mask, their_mask);
    if (same_bytes) {
        assert_int_equal(size, their_size);
        assert_memory_equal(encoded, stored, size);
    }
    free(stored);
    free(back);
    free(encoded);
    cow_codec_close(codec);
    H5Dclose(theirs);
}

/* ---- the standard set ---- */

static const int standard[] = {H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32, COW_FILTER_LZF,
                               COW_FILTER_BLOSC};
#define STANDARD 5
static const struct {
    size_t type;
    hsize_t elements;
} shapes[] = {{1, 1},  {1, 1000}, {2, 7},  {3, 101}, {4, 1},  {4, 255}, {5, 77},
              {7, 13}, {8, 361},  {8, 33}, {16, 10}, {24, 5}, {300, 3}, {2, 4097}};
#define SHAPES (sizeof shapes / sizeof *shapes)

static void check_pipeline(const int filters[], int n, size_t shape)
{
    hid_t type = opaque(shapes[shape].type), dcpl = chunked(shapes[shape].elements);
    size_t bytes = shapes[shape].type * shapes[shape].elements;

    for (int i = 0; i < n; i++)
        add_filter(dcpl, filters[i]);
    for (kind k = ZEROS; k < KINDS; k++) {
        void *data = make_data(k, bytes);
        check_both_ways(type, dcpl, data, bytes, true);
        free(data);
    }
    H5Pclose(dcpl);
    H5Tclose(type);
}

/* All arrangements of N of the standard filters after those in CHOSEN; each with another shape. */
static void arrange(int chosen[], int n, unsigned used, size_t *turn)
{
    check_pipeline(chosen, n, (*turn)++ % SHAPES);
    for (int i = 0; n < STANDARD && i < STANDARD; i++)
        if (!(used >> i & 1)) {
            chosen[n] = standard[i];
            arrange(chosen, n + 1, used | 1u << i, turn);
        }
}

static void test_every_order_of_the_standard_filters_agrees_with_hdf5(void **state)
{
    int chosen[STANDARD];
    size_t turn = 0;

    (void)state;
    arrange(chosen, 0, 0, &turn);
    assert_int_equal(turn, 326);
}

static void test_every_shape_agrees_with_hdf5(void **state)
{
    (void)state;
    for (unsigned subset = 0; subset < 1u << STANDARD; subset++)
        for (size_t shape = 0; shape < SHAPES; shape++) {
            int filters[STANDARD], n = 0;
            for (int i = 0; i < STANDARD; i++)
                if (subset >> i & 1)
                    filters[n++] = standard[i];
            check_pipeline(filters, n, shape);
        }
}

/* Large chunks have another stream, which HDF5 reads, and which is not longer than its own by more than a little. */
static void test_large_chunks_are_deflated_into_what_hdf5_reads(void **state)
{
    static const size_t sizes[] = {16383, 16384, 100000, 1 << 20};
    hid_t type = opaque(1);

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (unsigned level = 0; level <= 9; level++) {
            hid_t dcpl = chunked(sizes[s]);

            assert_true(H5Pset_deflate(dcpl, level) >= 0);
            for (kind k = ZEROS; k < KINDS; k++) {
                void *data = make_data(k, sizes[s]);
                check_both_ways(type, dcpl, data, sizes[s], sizes[s] < 16384 || level == 0);
                free(data);
            }
            H5Pclose(dcpl);
        }
    H5Tclose(type);
}

static void test_counted_integers_are_deflated_as_well_as_by_hdf5(void **state)
{
    uint32_t *values = malloc(1 << 20);
    hid_t type = opaque(4);

    (void)state;
    assert_non_null(values);
    for (uint32_t i = 0; i < 1 << 18; i++)
        values[i] = i;
    for (unsigned level = 1; level <= 9; level++) {
        hid_t dcpl = chunked(1 << 18), dataset;
        hsize_t zero = 0, their_size;
        uint8_t *encoded;
        cow_codec *codec;
        uint32_t mask;
        size_t size;

        assert_true(H5Pset_deflate(dcpl, level) >= 0);
        dataset = make_dataset(type, dcpl);
        codec = codec_of(dataset, 1 << 20);
        encoded = malloc(cow_codec_bound(codec));
        assert_non_null(encoded);
        assert_good(cow_codec_encode_as(codec, NULL, values, encoded, &size, &mask));
        assert_true(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
        assert_true(H5Dflush(dataset) >= 0);
        assert_true(H5Dget_chunk_storage_size(dataset, &zero, &their_size) >= 0);
        assert_true(size <= their_size + their_size / 50);
        free(encoded);
        cow_codec_close(codec);
        H5Dclose(dataset);
        H5Pclose(dcpl);
    }
    H5Tclose(type);
    free(values);
}

static void test_blosc_codecs_levels_and_shuffles_agree_with_the_filter(void **state)
{
    static const unsigned codecs[] = {0, 1, 2, 4, 5};
    void *data = make_data(RAMP, 40000);
    hid_t type = opaque(4);

    (void)state;
    for (size_t c = 0; c < 5; c++)
        for (unsigned level = 0; level <= 9; level += 3)
            for (unsigned shuffling = 0; shuffling <= 2; shuffling++) {
                hid_t dcpl = chunked(10000);
                unsigned value[] = {0, 0, 0, 0, level, shuffling, codecs[c]};
                assert_true(H5Pset_filter(dcpl, COW_FILTER_BLOSC, H5Z_FLAG_OPTIONAL, 7, value) >= 0);
                check_both_ways(type, dcpl, data, 40000, true);
                H5Pclose(dcpl);
            }
    H5Tclose(type);
    free(data);
}

static void test_optional_filter_that_does_not_compress_sets_its_own_bit(void **state)
{
    void *data = make_data(NOISE, 4000);
    hid_t type = opaque(4), dcpl = chunked(1000), dataset;
    uint8_t *encoded;
    cow_codec *codec;
    size_t size;
    uint32_t mask;

    (void)state;
    add_filter(dcpl, H5Z_FILTER_SHUFFLE);
    add_filter(dcpl, COW_FILTER_LZF);
    add_filter(dcpl, COW_FILTER_BLOSC);
    add_filter(dcpl, H5Z_FILTER_FLETCHER32);
    dataset = make_dataset(type, dcpl);
    codec = codec_of(dataset, 4000);
    encoded = malloc(cow_codec_bound(codec));
    assert_good(cow_codec_encode_as(codec, NULL, data, encoded, &size, &mask));
    assert_int_equal(mask, 0x6);
    assert_int_equal(size, 4004);
    free(encoded);
    cow_codec_close(codec);
    H5Dclose(dataset);
    H5Pclose(dcpl);
    H5Tclose(type);
    free(data);
}

static void test_mandatory_filter_that_does_not_compress_is_an_error(void **state)
{
    void *data = make_data(NOISE, 4000);
    hid_t type = opaque(4), dcpl = chunked(1000), dataset;
    uint8_t *encoded;
    cow_codec *codec;
    size_t size;
    uint32_t mask;

    (void)state;
    assert_true(H5Pset_filter(dcpl, COW_FILTER_LZF, H5Z_FLAG_MANDATORY, 0, NULL) >= 0);
    dataset = make_dataset(type, dcpl);
    codec = codec_of(dataset, 4000);
    encoded = malloc(cow_codec_bound(codec));
    assert_int_equal(cow_codec_encode_as(codec, NULL, data, encoded, &size, &mask), -1);
    assert_non_null(strstr(cow_error_message(), "32000 (lzf)"));
    cow_error_clear();
    free(encoded);
    cow_codec_close(codec);
    H5Dclose(dataset);
    H5Pclose(dcpl);
    H5Tclose(type);
    free(data);
}

static void test_a_chunk_written_with_filters_masked_out_is_read(void **state)
{
    uint8_t *data = make_data(RAMP, 4000), back[4000], encoded[8000];
    hid_t type = opaque(4), plain = chunked(1000), dcpl = chunked(1000), dataset, other;
    cow_codec *deflate, *both;
    size_t size;
    uint32_t mask;

    (void)state;
    add_filter(plain, H5Z_FILTER_DEFLATE);
    add_filter(dcpl, H5Z_FILTER_SHUFFLE);
    add_filter(dcpl, H5Z_FILTER_DEFLATE);
    other = make_dataset(type, plain);
    dataset = make_dataset(type, dcpl);
    deflate = codec_of(other, 4000);
    both = codec_of(dataset, 4000);
    assert_good(cow_codec_encode_as(deflate, NULL, data, encoded, &size, &mask));
    assert_good(cow_codec_decode(both, encoded, size, 1, back));
    assert_memory_equal(back, data, 4000);
    memset(back, 0, sizeof back);
    read_with_hdf5(type, dcpl, encoded, size, 1, back);
    assert_memory_equal(back, data, 4000);
    assert_good(cow_codec_decode(both, data, 4000, 3, back));
    assert_memory_equal(back, data, 4000);
    cow_codec_close(both);
    cow_codec_close(deflate);
    H5Dclose(dataset);
    H5Dclose(other);
    H5Pclose(dcpl);
    H5Pclose(plain);
    H5Tclose(type);
    free(data);
}

/* A filter of somebody else's that was left out, with one behind it that has no parameters; and one that is there twice. */
static void test_a_foreign_filter_that_was_left_out_of_a_chunk_is_left_out_again(void **state)
{
    uint8_t *data = make_data(NOISE, 4000), back[4000], encoded[8000];
    hid_t type = opaque(4), shorter = chunked(1000), dcpl = chunked(1000), with_one, with_both;
    cow_codec *one, *both;
    size_t size;
    uint32_t mask;

    (void)state;
    data[0] = 1;
    add_filter(shorter, XOR);
    add_filter(shorter, H5Z_FILTER_FLETCHER32);
    add_filter(dcpl, XOR);
    add_filter(dcpl, XOR);
    add_filter(dcpl, H5Z_FILTER_FLETCHER32);
    with_one = make_dataset(type, shorter);
    with_both = make_dataset(type, dcpl);
    one = codec_of(with_one, 4000);
    both = codec_of(with_both, 4000);
    for (uint32_t left_out = 1; left_out <= 2; left_out++) {
        assert_good(cow_codec_encode_as(one, NULL, data, encoded, &size, &mask));
        assert_good(cow_codec_decode(both, encoded, size, left_out, back));
        assert_memory_equal(back, data, 4000);
    }
    cow_codec_close(both);
    cow_codec_close(one);
    H5Dclose(with_both);
    H5Dclose(with_one);
    H5Pclose(dcpl);
    H5Pclose(shorter);
    H5Tclose(type);
    free(data);
}

/* What is between the members of a compound decodes the same wherever it is put: the checksum is of these bytes too. */
static void test_padding_beside_references_decodes_the_same_with_a_foreign_filter(void **state)
{
    uint8_t chunk[1200] = {1}, encoded[8000], first[1200], second[1200];
    hid_t type = H5Tcreate(H5T_COMPOUND, 12), dcpl = chunked(100), dataset;
    cow_codec *codec;
    size_t size;
    uint32_t mask;

    (void)state;
    for (size_t i = 0; i < 100; i++)
        memset(chunk + 12 * i, (int)i, 4);
    H5Tinsert(type, "reference", 4, H5T_STD_REF_OBJ);
    add_filter(dcpl, XOR);
    dataset = make_dataset(type, dcpl);
    codec = codec_of(dataset, sizeof chunk);
    memset(first, 0x11, sizeof first);
    memset(second, 0x22, sizeof second);
    assert_good(cow_codec_encode_back(codec, NULL, chunk, encoded, &size, &mask, first));
    assert_good(cow_codec_decode(codec, encoded, size, mask, second));
    assert_memory_equal(first, second, sizeof first);
    cow_codec_close(codec);
    H5Dclose(dataset);
    H5Pclose(dcpl);
    H5Tclose(type);
}

static void test_fletcher32_finds_damage_and_accepts_the_sums_of_hdf5_before_163(void **state)
{
    uint8_t *data = make_data(NOISE, 999), back[999], encoded[1100], old[1100];
    hid_t type = opaque(3), dcpl = chunked(333), dataset;
    cow_codec *codec;
    size_t size;
    uint32_t mask;

    (void)state;
    add_filter(dcpl, H5Z_FILTER_FLETCHER32);
    dataset = make_dataset(type, dcpl);
    codec = codec_of(dataset, 999);
    assert_good(cow_codec_encode_as(codec, NULL, data, encoded, &size, &mask));
    assert_int_equal(size, 1003);
    memcpy(old, encoded, size);
    old[999] = encoded[1000];
    old[1000] = encoded[999];
    old[1001] = encoded[1002];
    old[1002] = encoded[1001];
    assert_good(cow_codec_decode(codec, old, size, 0, back));
    assert_memory_equal(back, data, 999);
    read_with_hdf5(type, dcpl, old, size, 0, back);
    assert_memory_equal(back, data, 999);
    for (size_t bit = 0; bit < size * 8; bit += 5) {
        encoded[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(cow_codec_decode(codec, encoded, size, 0, back), -1);
        assert_non_null(strstr(cow_error_message(), "damaged"));
        cow_error_clear();
        encoded[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    cow_codec_close(codec);
    H5Dclose(dataset);
    H5Pclose(dcpl);
    H5Tclose(type);
    free(data);
}

/* Of all lengths about those where sums are folded, and of bytes that make them as large as can be. */
static void test_fletcher32_is_that_of_hdf5(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 300; n++) {
        const size_t bytes = 1 + next_random() % (n % 2 == 0 ? 40 : 2200);
        hid_t type = opaque(1), dcpl = chunked(bytes);
        uint8_t *data = make_data(NOISE, bytes);

        for (size_t i = 0; n % 3 != 0 && i < bytes; i++)
            data[i] = n % 3 == 1 || data[i] < 250 ? 0xff : data[i];
        add_filter(dcpl, H5Z_FILTER_FLETCHER32);
        check_both_ways(type, dcpl, data, bytes, true);
        free(data);
        H5Pclose(dcpl);
        H5Tclose(type);
    }
}

static void test_damaged_chunks_are_errors_or_other_bytes_but_never_a_crash(void **state)
{
    static const int pipelines[][2] = {
        {H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE}, {COW_FILTER_LZF, H5Z_FILTER_SHUFFLE},
        {COW_FILTER_LZF, COW_FILTER_LZF},         {COW_FILTER_BLOSC, H5Z_FILTER_DEFLATE},
        {H5Z_FILTER_DEFLATE, COW_FILTER_BLOSC},   {H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32}};
    enum { BYTES = 6000 };
    hid_t type = opaque(4);

    (void)state;
    for (size_t p = 0; p < sizeof pipelines / sizeof *pipelines; p++) {
        hid_t dcpl = chunked(BYTES / 4), dataset;
        uint8_t *data = make_data(RAMP, BYTES), *back = malloc(BYTES), *encoded, *damaged;
        unsigned failed = 0;
        cow_codec *codec;
        size_t size;
        uint32_t mask;

        add_filter(dcpl, pipelines[p][0]);
        add_filter(dcpl, pipelines[p][1]);
        dataset = make_dataset(type, dcpl);
        codec = codec_of(dataset, BYTES);
        encoded = malloc(cow_codec_bound(codec));
        assert_good(cow_codec_encode_as(codec, NULL, data, encoded, &size, &mask));
        for (int round = 0; round < 1500; round++) {
            size_t n = round % 3 ? size : next_random() % (size + 1);
            damaged = malloc(n ? n : 1); /* of the exact size, so that a sanitizer sees reads behind it */
            memcpy(damaged, encoded, n);
            for (uint32_t flips = next_random() % 4 + (round % 3 != 0); n > 0 && flips > 0; flips--)
                damaged[next_random() % (round % 2 && n > 24 ? 24 : n)] ^= (uint8_t)(1 << next_random() % 8);
            if (cow_codec_decode(codec, damaged, n, mask, back) < 0) {
                failed++;
                assert_true(cow_error_pending());
                cow_error_clear();
            }
            free(damaged);
        }
        assert_true(failed > 300);
        free(encoded);
        free(back);
        free(data);
        cow_codec_close(codec);
        H5Dclose(dataset);
        H5Pclose(dcpl);
    }
    H5Tclose(type);
}

static void test_a_chunk_of_another_size_is_damage(void **state)
{
    uint8_t *data = make_data(RAMP, 4000), encoded[9000], back[4004];
    hid_t type = opaque(4);

    (void)state;
    for (int i = 0; i < STANDARD; i++) {
        hid_t small = chunked(999), right = chunked(1000), dataset_small, dataset;
        cow_codec *codec_small, *codec;
        size_t size;
        uint32_t mask;

        add_filter(small, standard[i]);
        add_filter(right, standard[i]);
        dataset_small = make_dataset(type, small);
        dataset = make_dataset(type, right);
        codec_small = codec_of(dataset_small, 3996);
        codec = codec_of(dataset, 4000);
        assert_good(cow_codec_encode_as(codec_small, NULL, data, encoded, &size, &mask));
        assert_int_equal(cow_codec_decode(codec, encoded, size, mask, back), -1);
        cow_error_clear();
        assert_good(cow_codec_encode_as(codec, NULL, data, encoded, &size, &mask));
        assert_int_equal(cow_codec_decode(codec_small, encoded, size, mask, back), -1);
        cow_error_clear();
        cow_codec_close(codec_small);
        cow_codec_close(codec);
        H5Dclose(dataset);
        H5Dclose(dataset_small);
        H5Pclose(small);
        H5Pclose(right);
    }
    H5Tclose(type);
    free(data);
}

typedef struct shared {
    cow_codec *codec;
    const uint8_t *data;
    size_t bytes;
} shared;

static int round_trip(void *context, size_t i)
{
    shared *s = context;
    uint8_t *encoded = malloc(cow_codec_bound(s->codec)), *back = malloc(s->bytes);
    size_t size;
    uint32_t mask;
    int result = -1;

    (void)i;
    if (cow_codec_encode_as(s->codec, NULL, s->data, encoded, &size, &mask) == 0 &&
        cow_codec_decode(s->codec, encoded, size, mask, back) == 0)
        result = memcmp(back, s->data, s->bytes) == 0 ? 0 : -1;
    free(encoded);
    free(back);
    return result;
}

static void test_one_standard_codec_serves_many_threads(void **state)
{
    uint8_t *data = make_data(RAMP, 40000);
    hid_t type = opaque(8), dcpl = chunked(5000), dataset;
    shared s = {.data = data, .bytes = 40000};

    (void)state;
    for (int i = 0; i < STANDARD; i++)
        add_filter(dcpl, standard[i]);
    dataset = make_dataset(type, dcpl);
    s.codec = codec_of(dataset, s.bytes);
    assert_true(cow_codec_parallel(s.codec));
    assert_int_equal(cow_parallel(100, 4, round_trip, &s), 0);
    cow_codec_close(s.codec);
    H5Dclose(dataset);
    H5Pclose(dcpl);
    H5Tclose(type);
    free(data);
}

/* ---- what others wrote ---- */

static size_t from_hex(const char *hex, uint8_t *out)
{
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        out[i] = (uint8_t)byte;
    }
    return n;
}

/* Chunks of arange(100, dtype='<i4') // 3, read with H5Dread_chunk from files of h5py 3.13 (LZF) and PyTables 3.10
 * (Blosc with zstd, level 5, byte shuffle). */
static const char h5py_lzf[] = "010000e001000001200ac0030002200bc0030003200bc0030004200bc0030005200bc0030006200bc003000"
                               "7200bc0030008200bc0030009200"
                               "bc003000a200bc003000b200bc003000c200bc003000d200bc003000e200bc003000f200bc0030010200bc0"
                               "030011200bc0030012200bc00300"
                               "13200bc0030014200bc0030015200bc0030016200bc0030017200bc0030018200bc0030019200bc003001a2"
                               "00bc003001b200bc003001c200bc"
                               "003001d200bc003001e200bc003001f200bc0030020200bc0030021200b";
static const char pytables_blosc[] = "0201910490010000900100008f000000140000007700000028b52ffd6090006d03005406000000010"
                                     "10102020203030304040405050506060607"
                                     "07070808080909090a0a0a0b0b0b0c0c0c0d0d0d0e0e0e0f0f0f10101011111112121213131314141"
                                     "41515151616161717171818181919191a1a"
                                     "1a1b1b1b1c1c1c1d1d1d1e1e1e1f1f1f20202021000100258a0aa2";

static void test_chunks_of_h5py_and_pytables_are_read(void **state)
{
    static const struct {
        int id;
        const char *hex;
    } foreign[] = {{COW_FILTER_LZF, h5py_lzf}, {COW_FILTER_BLOSC, pytables_blosc}};

    (void)state;
    for (int f = 0; f < 2; f++) {
        uint8_t bytes[400];
        int32_t back[100];
        hid_t dcpl = chunked(100), dataset;
        cow_codec *codec;
        size_t size = from_hex(foreign[f].hex, bytes);

        add_filter(dcpl, foreign[f].id);
        dataset = make_dataset(H5T_STD_I32LE, dcpl);
        codec = codec_of(dataset, 400);
        assert_good(cow_codec_decode(codec, bytes, size, 0, back));
        for (int i = 0; i < 100; i++)
            assert_int_equal(back[i], i / 3);
        cow_codec_close(codec);
        H5Dclose(dataset);
        H5Pclose(dcpl);
    }
}

static void test_lzf_copies_and_literals_of_every_length_survive(void **state)
{
    (void)state;
    for (size_t length = 1; length < 600; length++)
        for (int period = 1; period < 40; period += 7) {
            uint8_t in[600], packed[700], out[600];
            size_t n;
            for (size_t i = 0; i < length; i++)
                in[i] = i < length / 2 ? (uint8_t)(next_random() >> 9) : (uint8_t)(i % (size_t)period);
            n = cow_lzf_compress(in, length, packed, sizeof packed);
            assert_true(n > 0);
            assert_int_equal(cow_lzf_decompressed_size(packed, n), length);
            assert_int_equal(cow_lzf_decompress(packed, n, out, length), length);
            assert_memory_equal(in, out, length);
            assert_int_equal(cow_lzf_decompress(packed, n, out, length - 1), 0);
            assert_int_equal(cow_lzf_compress(in, length, packed, n - 1), 0);
        }
}

/* ---- foreign filters ---- */

static int xor_fails;

static size_t run_xor(unsigned flags, size_t count, const unsigned values[], size_t size, size_t *buf_size, void **buf)
{
    uint8_t *bytes = *buf;

    (void)buf_size;
    if (!(flags & H5Z_FLAG_REVERSE) && bytes[0] == 9) {
        xor_fails++;
        return 0;
    }
    for (size_t i = 0; i < size; i++)
        bytes[i] ^= (uint8_t)(count > 0 ? values[0] : 0x5a);
    return size;
}

static unsigned changes;

static herr_t change_parameter(hid_t dcpl, hid_t type, hid_t space)
{
    unsigned value = ++changes;

    (void)type;
    (void)space;
    return H5Pmodify_filter(dcpl, CHANGING, H5Z_FLAG_OPTIONAL, 1, &value);
}

static void register_test_filters(void)
{
    static const H5Z_class2_t xor_class = {.version = H5Z_CLASS_T_VERS,
                                           .id = XOR,
                                           .encoder_present = 1,
                                           .decoder_present = 1,
                                           .name = "xor",
                                           .filter = run_xor};
    static const H5Z_class2_t changing = {.version = H5Z_CLASS_T_VERS,
                                          .id = CHANGING,
                                          .encoder_present = 1,
                                          .decoder_present = 1,
                                          .name = "changing",
                                          .set_local = change_parameter,
                                          .filter = run_xor};
    assert_true(H5Zregister(&xor_class) >= 0);
    assert_true(H5Zregister(&changing) >= 0);
}

static void test_any_registered_filter_works_among_the_standard_ones(void **state)
{
    static const int pipelines[][3] = {{XOR, 0, 0},
                                       {XOR, H5Z_FILTER_DEFLATE, 0},
                                       {H5Z_FILTER_SHUFFLE, XOR, COW_FILTER_LZF},
                                       {H5Z_FILTER_FLETCHER32, XOR, 0}};
    hid_t type = opaque(4);

    (void)state;
    for (size_t p = 0; p < sizeof pipelines / sizeof *pipelines; p++)
        for (int first = 8; first <= 9; first++) { /* 9 makes the filter fail: skipped, being optional */
            hid_t dcpl = chunked(500);
            uint8_t *data = make_data(RAMP, 2000);
            data[0] = (uint8_t)first;
            for (int i = 0; i < 3 && pipelines[p][i]; i++)
                add_filter(dcpl, pipelines[p][i]);
            check_both_ways(type, dcpl, data, 2000, true);
            free(data);
            H5Pclose(dcpl);
        }
    assert_true(xor_fails > 0);
    H5Tclose(type);
}

static void test_filters_that_look_at_type_and_shape_work(void **state)
{
    int32_t data[600];
    hid_t nbit = H5Tcopy(H5T_STD_I32LE);

    (void)state;
    for (int i = 0; i < 600; i++)
        data[i] = i % 100;
    assert_true(H5Tset_precision(nbit, 17) >= 0);
    for (int which = 0; which < 3; which++) {
        hid_t dcpl = chunked(600);
        if (which == 0)
            assert_true(H5Pset_nbit(dcpl) >= 0);
        else if (which == 1)
            assert_true(H5Pset_scaleoffset(dcpl, H5Z_SO_INT, 0) >= 0);
        else if (H5Zfilter_avail(H5Z_FILTER_SZIP) > 0)
            assert_true(H5Pset_szip(dcpl, H5_SZIP_NN_OPTION_MASK, 8) >= 0);
        check_both_ways(which == 0 ? nbit : H5T_STD_I32LE, dcpl, data, sizeof data, true);
        H5Pclose(dcpl);
    }
    H5Tclose(nbit);
}

/* ROUNDS chunks of BYTES through one codec of xor and SECOND, of which xor fails on every third. */
static void check_many(int second, size_t bytes, int rounds)
{
    hid_t type = opaque(4), dcpl = chunked(bytes / 4), dataset;
    uint8_t *encoded, *back = malloc(bytes);
    cow_codec *codec;
    size_t size;
    uint32_t mask;

    add_filter(dcpl, XOR);
    add_filter(dcpl, second);
    dataset = make_dataset(type, dcpl);
    codec = codec_of(dataset, bytes);
    assert_false(cow_codec_parallel(codec));
    encoded = malloc(cow_codec_bound(codec));
    for (int round = 0; round < rounds; round++) {
        uint8_t *data = make_data(round % 2 ? NOISE : RAMP, bytes);
        data[0] = (uint8_t)(8 + round % 3 / 2);
        assert_good(cow_codec_encode_as(codec, NULL, data, encoded, &size, &mask));
        assert_int_equal(mask, data[0] == 9 ? 1 : 0);
        assert_good(cow_codec_decode(codec, encoded, size, mask, back));
        assert_memory_equal(back, data, bytes);
        free(data);
    }
    free(encoded);
    free(back);
    cow_codec_close(codec);
    H5Dclose(dataset);
    H5Pclose(dcpl);
    H5Tclose(type);
}

static void test_one_codec_encodes_and_decodes_many_foreign_chunks(void **state)
{
    (void)state;
    check_many(H5Z_FILTER_DEFLATE, 2000, 200);
    check_many(H5Z_FILTER_SHUFFLE, 2000, 200);   /* as many bytes whatever the mask */
    check_many(H5Z_FILTER_SHUFFLE, 3 << 20, 12); /* larger than HDF5's own chunk cache */
}

static void test_a_missing_filter_is_named_and_needed_only_where_it_was_applied(void **state)
{
    hid_t type = opaque(4), dcpl = chunked(500), dataset;
    uint8_t *data = make_data(RAMP, 2000), *encoded, back[2000];
    cow_codec *codec;
    size_t size;
    uint32_t mask;

    (void)state;
    add_filter(dcpl, MISSING); /* optional: HDF5 creates the dataset and skips it */
    add_filter(dcpl, H5Z_FILTER_DEFLATE);
    dataset = make_dataset(type, dcpl);
    codec = codec_of(dataset, 2000);
    encoded = malloc(cow_codec_bound(codec));
    assert_good(cow_codec_encode_as(codec, NULL, data, encoded, &size, &mask));
    assert_int_equal(mask, 1);
    assert_good(cow_codec_decode(codec, encoded, size, mask, back));
    assert_memory_equal(back, data, 2000);
    assert_good(cow_codec_decode(codec, data, 2000, 3, back));
    assert_int_equal(cow_codec_decode(codec, encoded, size, 0, back), -1);
    assert_non_null(strstr(cow_error_message(), "filter 301"));
    cow_error_clear();
    cow_codec_close(codec);
    H5Dclose(dataset);
    H5Pclose(dcpl);
    dcpl = chunked(500);
    assert_true(H5Pset_filter(dcpl, MISSING, H5Z_FLAG_OPTIONAL, 0, NULL) >= 0);
    assert_true(H5Pmodify_filter(dcpl, MISSING, H5Z_FLAG_MANDATORY, 0, NULL) >= 0);
    codec = cow_codec_open(dcpl, type, 2000);
    assert_non_null(codec);
    assert_int_equal(cow_codec_encode_as(codec, NULL, data, encoded, &size, &mask), -1);
    assert_non_null(strstr(cow_error_message(), "filter 301"));
    cow_error_clear();
    cow_codec_close(codec);
    free(encoded);
    free(data);
    H5Pclose(dcpl);
    H5Tclose(type);
}

static void test_a_filter_that_computes_other_parameters_is_used_with_those_of_the_dataset(void **state)
{
    hid_t type = opaque(4), dcpl = chunked(500), dataset;
    uint8_t *data = make_data(RAMP, 2000), *encoded, back[2000];
    unsigned parameter;
    cow_codec *codec;
    size_t size;
    uint32_t mask;

    (void)state;
    add_filter(dcpl, CHANGING);
    dataset = make_dataset(type, dcpl);
    parameter = changes;
    codec = codec_of(dataset, 2000);
    encoded = malloc(cow_codec_bound(codec));
    assert_good(cow_codec_encode_as(codec, NULL, data, encoded, &size, &mask));
    assert_int_equal(size, 2000);
    assert_int_equal(encoded[100], data[100] ^ parameter);
    assert_good(cow_codec_decode(codec, encoded, 2000, 0, back));
    assert_memory_equal(back, data, 2000);
    assert_int_equal(changes, parameter);
    free(encoded);
    cow_codec_close(codec);
    H5Dclose(dataset);
    H5Pclose(dcpl);
    H5Tclose(type);
    free(data);
}

static void test_damaged_foreign_chunks_are_errors(void **state)
{
    hid_t type = opaque(4), dcpl = chunked(500), dataset;
    uint8_t *data = make_data(RAMP, 2000), *encoded, back[2000];
    cow_codec *codec;
    size_t size;
    uint32_t mask;

    (void)state;
    add_filter(dcpl, XOR);
    add_filter(dcpl, H5Z_FILTER_FLETCHER32);
    dataset = make_dataset(type, dcpl);
    codec = codec_of(dataset, 2000);
    encoded = malloc(cow_codec_bound(codec));
    assert_good(cow_codec_encode_as(codec, NULL, data, encoded, &size, &mask));
    encoded[17] ^= 4;
    H5E_BEGIN_TRY
    {
        assert_int_equal(cow_codec_decode(codec, encoded, size, mask, back), -1);
    }
    H5E_END_TRY
    assert_true(cow_error_pending());
    cow_error_clear();
    encoded[17] ^= 4;
    assert_good(cow_codec_decode(codec, encoded, size, mask, back));
    assert_memory_equal(back, data, 2000);
    assert_int_equal(cow_codec_decode(codec, encoded, 0, mask, back), -1);
    cow_error_clear();
    free(encoded);
    cow_codec_close(codec);
    H5Dclose(dataset);
    H5Pclose(dcpl);
    H5Tclose(type);
    free(data);
}

/* ---- inside a callback: a connector that hands everything to native, and codes a foreign chunk in each write ---- */

static cow_codec *inside_codec;
static int inside_result;

static void *pass_file_create(const char *name, unsigned flags, hid_t fcpl, hid_t fapl, hid_t dxpl, void **req)
{
    hid_t under = H5Pcopy(fapl);
    void *made;

    H5Pset_vol(under, cow_native_id(), NULL);
    made = H5VLfile_create(name, flags, fcpl, under, dxpl, req);
    H5Pclose(under);
    return made;
}

static herr_t pass_file_close(void *object, hid_t dxpl, void **req)
{
    return H5VLfile_close(object, cow_native_id(), dxpl, req);
}

static void *pass_dataset_create(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t lcpl, hid_t type,
                                 hid_t space, hid_t dcpl, hid_t dapl, hid_t dxpl, void **req)
{
    return H5VLdataset_create(object, loc, cow_native_id(), name, lcpl, type, space, dcpl, dapl, dxpl, req);
}

static herr_t pass_dataset_write(size_t count, void *dataset[], hid_t mem_type[], hid_t mem_space[], hid_t file_space[],
                                 hid_t dxpl, const void *buf[], void **req)
{
    uint8_t encoded[2000 * 2 + (64 << 10)], back[2000];
    size_t size;
    uint32_t mask;

    inside_result = cow_codec_encode_as(inside_codec, NULL, buf[0], encoded, &size, &mask);
    if (inside_result == 0)
        inside_result = cow_codec_decode(inside_codec, encoded, size, mask, back);
    if (inside_result == 0 && (mask != 0 || memcmp(back, buf[0], 2000) != 0))
        inside_result = -2;
    cow_kept_types_end_call();
    return H5VLdataset_write(count, dataset, cow_native_id(), mem_type, mem_space, file_space, dxpl, buf, req);
}

static herr_t pass_dataset_close(void *object, hid_t dxpl, void **req)
{
    return H5VLdataset_close(object, cow_native_id(), dxpl, req);
}

static herr_t pass_class(void *object, H5VL_get_conn_lvl_t level, const H5VL_class_t **class);

static herr_t pass_flags(const void *info, uint64_t *flags)
{
    (void)info;
    *flags = 0;
    return 0;
}

static herr_t pass_query(void *object, H5VL_subclass_t subclass, int operation, uint64_t *flags)
{
    return H5VLintrospect_opt_query(object, cow_native_id(), subclass, operation, flags);
}

/* Native wants to hear that its file is open (H5VL_NATIVE_FILE_POST_OPEN): HDF5 2 asserts that it did. */
static herr_t pass_file_optional(void *object, H5VL_optional_args_t *args, hid_t dxpl, void **req)
{
    return H5VLfile_optional(object, cow_native_id(), args, dxpl, req);
}

static const H5VL_class_t pass = {
    .version = H5VL_VERSION,
    .value = 300,
    .name = "h5cow-test-pass",
    .dataset_cls = {.create = pass_dataset_create, .write = pass_dataset_write, .close = pass_dataset_close},
    .file_cls = {.create = pass_file_create, .optional = pass_file_optional, .close = pass_file_close},
    .introspect_cls = {.get_conn_cls = pass_class, .get_cap_flags = pass_flags, .opt_query = pass_query},
};

static herr_t pass_class(void *object, H5VL_get_conn_lvl_t level, const H5VL_class_t **class)
{
    (void)object;
    (void)level;
    *class = &pass;
    return 0;
}

static void test_a_foreign_chunk_is_coded_inside_a_vol_callback_without_counting_as_open(void **state)
{
    hid_t type = opaque(4), dcpl = chunked(500), like, connector, fapl = H5Pcreate(H5P_FILE_ACCESS), outer, dataset,
          space;
    hsize_t elements = 500;
    uint8_t *data = make_data(RAMP, 2000);
    ssize_t before;

    (void)state;
    add_filter(dcpl, XOR);
    add_filter(dcpl, H5Z_FILTER_DEFLATE);
    like = make_dataset(type, dcpl);
    inside_codec = codec_of(like, 2000);
    connector = H5VLregister_connector(&pass, H5P_DEFAULT);
    assert_true(connector >= 0);
    assert_true(H5Pset_fapl_core(fapl, 1 << 16, false) >= 0);
    assert_true(H5Pset_vol(fapl, connector, NULL) >= 0);
    outer = H5Fcreate("outer", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    assert_true(outer >= 0);
    space = H5Screate_simple(1, &elements, NULL);
    dataset = H5Dcreate2(outer, "d", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(dataset >= 0);
    before = H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL);
    for (int round = 0; round < 3; round++) {
        inside_result = -3;
        assert_true(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
        if (inside_result < 0)
            fail_msg("%d: %s", inside_result, cow_error_message());
    }
    assert_int_equal(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), before);
    cow_codec_close(inside_codec);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Fclose(outer);
    H5VLclose(connector);
    H5Pclose(fapl);
    H5Dclose(like);
    H5Pclose(dcpl);
    H5Tclose(type);
    free(data);
}

/* ---- the compress= option ---- */

/* The parameters that filter I of a dataset of TYPE ends up with when COMPRESS is added to it. */
static int added(hid_t type, hsize_t elements, cow_compress compress, unsigned i, unsigned value[8], size_t *count)
{
    hid_t dcpl = chunked(elements), dataset, made;
    unsigned flags;
    int result = cow_codec_add(dcpl, type, &compress, elements * H5Tget_size(type)), id = -1;

    assert_good(result);
    *count = 8;
    if (result == 1) {
        dataset = make_dataset(type, dcpl);
        made = H5Dget_create_plist(dataset);
        id = (int)H5Pget_filter2(made, i, &flags, count, value, 0, NULL, NULL);
        assert_int_equal(flags & H5Z_FLAG_OPTIONAL, H5Z_FLAG_OPTIONAL);
        H5Pclose(made);
        H5Dclose(dataset);
    }
    H5Pclose(dcpl);
    return id;
}

static void test_compressors_get_the_parameters_that_other_programs_expect(void **state)
{
    const cow_compress blosc = {COW_COMPRESS_BLOSC, 5, 3, 2}, lzf = {COW_COMPRESS_LZF, 0, 0, 1},
                       gzip = {COW_COMPRESS_GZIP, 0, 9, 0};
    const unsigned blosc_want[] = {2, 2, 8, 8000, 3, 2, 5}, lzf_want[] = {4, 0x105, 8000};
    hid_t array = H5Tarray_create2(H5T_STD_I16LE, 1, (hsize_t[]){6}), huge = opaque(256), byte = H5T_STD_I8LE;
    unsigned value[8];
    size_t count;

    (void)state;
    assert_int_equal(added(H5T_IEEE_F64LE, 1000, blosc, 0, value, &count), COW_FILTER_BLOSC);
    assert_int_equal(count, 7);
    assert_memory_equal(value, blosc_want, sizeof blosc_want);
    assert_int_equal(added(array, 1000, blosc, 0, value, &count), COW_FILTER_BLOSC);
    assert_int_equal(value[2], 2);
    assert_int_equal(value[3], 12000);
    assert_int_equal(added(huge, 10, blosc, 0, value, &count), COW_FILTER_BLOSC);
    assert_int_equal(value[2], 1);
    assert_int_equal(added(H5T_IEEE_F64LE, 1000, lzf, 0, value, &count), H5Z_FILTER_SHUFFLE);
    assert_int_equal(added(H5T_IEEE_F64LE, 1000, lzf, 1, value, &count), COW_FILTER_LZF);
    assert_int_equal(count, 3);
    assert_memory_equal(value, lzf_want, sizeof lzf_want);
    assert_int_equal(added(byte, 1000, lzf, 0, value, &count), COW_FILTER_LZF);
    assert_int_equal(added(H5T_IEEE_F64LE, 1000, gzip, 0, value, &count), H5Z_FILTER_DEFLATE);
    assert_int_equal(value[0], 9);
    H5Tclose(huge);
    H5Tclose(array);
}

static void test_small_chunks_filtered_datasets_and_none_stay_as_they_are(void **state)
{
    const cow_compress blosc = {COW_COMPRESS_BLOSC, 5, 3, 2}, none = {COW_COMPRESS_NONE, 0, 0, 0};
    hid_t dcpl = chunked(1000);

    (void)state;
    assert_int_equal(cow_codec_add(dcpl, H5T_STD_I8LE, &blosc, 127), 0);
    assert_int_equal(cow_codec_add(dcpl, H5T_STD_I8LE, &none, 1000), 0);
    assert_int_equal(H5Pget_nfilters(dcpl), 0);
    add_filter(dcpl, H5Z_FILTER_FLETCHER32);
    assert_int_equal(cow_codec_add(dcpl, H5T_STD_I8LE, &blosc, 1000), 0);
    assert_int_equal(H5Pget_nfilters(dcpl), 1);
    H5Pclose(dcpl);
}

static void test_plain_chunks_are_the_identity(void **state)
{
    hid_t dcpl = chunked(10);
    cow_codec *codec = cow_codec_open(dcpl, H5T_STD_I8LE, 10);
    uint8_t data[] = "0123456789", out[10], back[10];
    size_t size;
    uint32_t mask = 7;

    (void)state;
    assert_true(cow_codec_identity(codec));
    assert_true(cow_codec_parallel(codec));
    assert_int_equal(cow_codec_bound(codec), 10);
    assert_good(cow_codec_encode_as(codec, NULL, data, out, &size, &mask));
    assert_int_equal(size, 10);
    assert_int_equal(mask, 0);
    assert_good(cow_codec_decode(codec, out, 10, 0, back));
    assert_memory_equal(back, data, 10);
    assert_int_equal(cow_codec_decode(codec, out, 9, 0, back), -1);
    cow_error_clear();
    cow_codec_close(codec);
    H5Pclose(dcpl);
}

static int start(void **state)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

    (void)state;
    H5Pset_fapl_core(fapl, 1 << 20, false);
    file = H5Fcreate("codec", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    H5Pclose(fapl);
    register_lzf_and_blosc();
    register_test_filters();
    return file < 0 ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    H5Fclose(file);
    cow_native_terminate();
    return H5close() < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_chunks_are_the_identity),
        cmocka_unit_test(test_every_order_of_the_standard_filters_agrees_with_hdf5),
        cmocka_unit_test(test_every_shape_agrees_with_hdf5),
        cmocka_unit_test(test_large_chunks_are_deflated_into_what_hdf5_reads),
        cmocka_unit_test(test_counted_integers_are_deflated_as_well_as_by_hdf5),
        cmocka_unit_test(test_blosc_codecs_levels_and_shuffles_agree_with_the_filter),
        cmocka_unit_test(test_optional_filter_that_does_not_compress_sets_its_own_bit),
        cmocka_unit_test(test_mandatory_filter_that_does_not_compress_is_an_error),
        cmocka_unit_test(test_a_chunk_written_with_filters_masked_out_is_read),
        cmocka_unit_test(test_a_foreign_filter_that_was_left_out_of_a_chunk_is_left_out_again),
        cmocka_unit_test(test_padding_beside_references_decodes_the_same_with_a_foreign_filter),
        cmocka_unit_test(test_fletcher32_finds_damage_and_accepts_the_sums_of_hdf5_before_163),
        cmocka_unit_test(test_fletcher32_is_that_of_hdf5),
        cmocka_unit_test(test_damaged_chunks_are_errors_or_other_bytes_but_never_a_crash),
        cmocka_unit_test(test_a_chunk_of_another_size_is_damage),
        cmocka_unit_test(test_one_standard_codec_serves_many_threads),
        cmocka_unit_test(test_chunks_of_h5py_and_pytables_are_read),
        cmocka_unit_test(test_lzf_copies_and_literals_of_every_length_survive),
        cmocka_unit_test(test_any_registered_filter_works_among_the_standard_ones),
        cmocka_unit_test(test_filters_that_look_at_type_and_shape_work),
        cmocka_unit_test(test_one_codec_encodes_and_decodes_many_foreign_chunks),
        cmocka_unit_test(test_a_missing_filter_is_named_and_needed_only_where_it_was_applied),
        cmocka_unit_test(test_a_filter_that_computes_other_parameters_is_used_with_those_of_the_dataset),
        cmocka_unit_test(test_damaged_foreign_chunks_are_errors),
        cmocka_unit_test(test_a_foreign_chunk_is_coded_inside_a_vol_callback_without_counting_as_open),
        cmocka_unit_test(test_compressors_get_the_parameters_that_other_programs_expect),
        cmocka_unit_test(test_small_chunks_filtered_datasets_and_none_stay_as_they_are),
    };

    random_state = (uint32_t)test_random(0);
    return test_main(tests, argc, argv, start, end);
}
