/* Selections as plain data, compared with a brute-force reading of the same selection by HDF5 (H5Dscatter-like: a
 * gather of element numbers). */
#include "base/error.h"
#include "harness.h"
#include "io/selection.h"

#include <stdlib.h>
#include <string.h>

#define NX 12
#define NY 10

/* Element numbers of SPACE (extent NX x NY) in selection order, as HDF5 gathers them. Returns how many. */
static size_t gather(hid_t space, int out[])
{
    int all[NX * NY];
    hssize_t n = H5Sget_select_npoints(space);

    for (int i = 0; i < NX * NY; i++)
        all[i] = i;
    if (n > 0)
        assert_true(H5Dgather(space, all, H5T_NATIVE_INT, (size_t)n * sizeof(int), out, NULL, NULL) >= 0);
    return (size_t)n;
}

/* The same from a regular cow_selection. */
static size_t expand(const cow_selection *s, int out[])
{
    bool hit[2][NX] = {{false}};
    size_t n = 0;

    for (unsigned d = 0; d < 2; d++)
        for (uint64_t c = 0; c < s->slab[d].count; c++)
            for (uint64_t b = 0; b < s->slab[d].block; b++)
                hit[d][s->slab[d].start + c * s->slab[d].stride + b] = true;
    for (int x = 0; x < NX; x++)
        for (int y = 0; y < NY; y++)
            if (hit[0][x] && hit[1][y])
                out[n++] = x * NY + y;
    return n;
}

/* The same from the runs, asked for in pieces of at most PIECES runs and ELEMENTS elements. */
static size_t walk(hid_t space, size_t pieces, uint64_t elements, int out[])
{
    cow_runs *runs = cow_runs_open(space);
    cow_run run[64];
    size_t n, made = 0;

    assert_non_null(runs);
    for (;;) {
        uint64_t piece = 0;
        assert_int_equal(cow_runs_next(runs, run, pieces, elements, &n), 0);
        if (n == 0)
            break;
        assert_true(n <= pieces);
        for (size_t i = 0; i < n; i++) {
            piece += run[i].length;
            for (uint64_t k = 0; k < run[i].length; k++)
                out[made++] = (int)(run[i].offset + k);
        }
        assert_true(piece <= elements);
    }
    cow_runs_close(runs);
    return made;
}

/* SPACE is read right in every way; returns whether it counted as regular. */
static bool check(hid_t space)
{
    const uint64_t extent[] = {NX, NY};
    int want[NX * NY], got[NX * NY];
    cow_selection s;
    size_t n = gather(space, want);

    assert_int_equal(cow_selection_from(&s, space, 2, extent), 0);
    assert_int_equal(s.elements, n);
    if (s.regular) {
        assert_int_equal(expand(&s, got), n);
        assert_memory_equal(got, want, n * sizeof *want);
    }
    assert_int_equal(walk(space, 64, UINT64_MAX, got), n);
    assert_memory_equal(got, want, n * sizeof *want);
    assert_int_equal(walk(space, 3, 7, got), n);
    assert_memory_equal(got, want, n * sizeof *want);
    assert_int_equal(walk(space, 1, 1, got), n);
    assert_memory_equal(got, want, n * sizeof *want);
    return s.regular;
}

static hid_t plane(void)
{
    hid_t space = H5Screate_simple(2, (hsize_t[]){NX, NY}, NULL);
    assert_true(space >= 0);
    return space;
}

static void test_all_is_one_block_of_the_extent(void **state)
{
    const uint64_t extent[] = {NX, NY}, empty[] = {4, 0};
    cow_selection s;
    hid_t space = plane();

    (void)state;
    assert_int_equal(cow_selection_from(&s, H5S_ALL, 2, extent), 0);
    assert_true(s.regular);
    assert_int_equal(s.elements, NX * NY);
    assert_int_equal(s.slab[1].start, 0);
    assert_int_equal(s.slab[1].count, 1);
    assert_int_equal(s.slab[1].block, NY);
    assert_int_equal(cow_selection_from(&s, H5S_ALL, 2, empty), 0);
    assert_int_equal(s.elements, 0);
    assert_int_equal(s.slab[0].count, 0);
    assert_true(check(space));
    H5Sclose(space);
}

static void test_none_null_and_empty_select_nothing(void **state)
{
    const uint64_t extent[] = {NX, NY};
    hid_t none = plane(), null = H5Screate(H5S_NULL), empty = H5Screate_simple(2, (hsize_t[]){0, NY}, NULL);
    hid_t spaces[] = {none, null, empty};

    (void)state;
    H5Sselect_none(none);
    for (int i = 0; i < 3; i++) {
        cow_selection s;
        assert_int_equal(cow_selection_from(&s, spaces[i], 2, extent), 0);
        assert_int_equal(s.elements, 0);
        assert_true(s.regular);
        assert_int_equal(s.slab[0].count, 0);
        H5Sclose(spaces[i]);
    }
}

static void test_a_scalar_is_one_element(void **state)
{
    hid_t scalar = H5Screate(H5S_SCALAR);
    cow_selection s;
    int got[1];

    (void)state;
    assert_int_equal(cow_selection_from(&s, scalar, 0, (uint64_t[]){0}), 0);
    assert_int_equal(s.elements, 1);
    assert_int_equal(walk(scalar, 4, 4, got), 1);
    assert_int_equal(got[0], 0);
    H5Sclose(scalar);
}

static void test_every_small_regular_hyperslab_is_regular(void **state)
{
    hid_t space = plane();

    (void)state;
    for (hsize_t start = 0; start < 4; start++)
        for (hsize_t block = 1; block <= 3; block++)
            for (hsize_t stride = block; stride <= 4; stride++)
                for (hsize_t count = 1; start + (count - 1) * stride + block <= NY; count++) {
                    hsize_t a[] = {start, 1}, b[] = {stride, 2}, c[] = {count, 3}, d[] = {block, 1};
                    hsize_t e[] = {2, start}, f[] = {3, stride}, g[] = {2, count}, h[] = {3, block};
                    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, a, b, c, d) >= 0);
                    assert_true(check(space));
                    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, e, f, g, h) >= 0);
                    assert_true(check(space));
                }
    H5Sclose(space);
}

static void test_touching_blocks_are_one_block(void **state)
{
    hid_t space = plane();
    hsize_t start[] = {1, 2}, stride[] = {2, 3}, count[] = {4, 2}, block[] = {2, 3};
    cow_selection s;

    (void)state;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, block);
    assert_int_equal(cow_selection_from(&s, space, 2, (uint64_t[]){NX, NY}), 0);
    assert_int_equal(s.slab[0].count, 1);
    assert_int_equal(s.slab[0].block, 8);
    assert_int_equal(s.slab[0].stride, 8);
    assert_int_equal(s.slab[1].block, 6);
    assert_true(check(space));
    H5Sclose(space);
}

static void test_irregular_selections_are_walked_in_order(void **state)
{
    hid_t space = plane();
    hsize_t start[] = {0, 0}, other[] = {5, 4}, count[] = {1, 1}, block[] = {3, 4};
    hsize_t points[][2] = {{11, 9}, {0, 0}, {0, 1}, {0, 2}, {11, 9}, {3, 3}};

    (void)state;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, block);
    H5Sselect_hyperslab(space, H5S_SELECT_OR, other, NULL, count, block);
    assert_false(check(space));
    H5Sselect_hyperslab(space, H5S_SELECT_XOR, (hsize_t[]){1, 1}, NULL, count, block);
    assert_false(check(space));
    H5Sselect_elements(space, H5S_SELECT_SET, 6, &points[0][0]);
    assert_false(check(space));
    H5Sclose(space);
}

static void test_the_offset_of_a_selection_is_included(void **state)
{
    hid_t space = plane();
    hsize_t start[] = {4, 3}, stride[] = {3, 2}, count[] = {2, 2}, block[] = {2, 1};
    hssize_t offset[] = {-3, 2};
    cow_selection s;

    (void)state;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, block);
    H5Soffset_simple(space, offset);
    assert_int_equal(cow_selection_from(&s, space, 2, (uint64_t[]){NX, NY}), 0);
    assert_int_equal(s.slab[0].start, 1);
    assert_int_equal(s.slab[1].start, 5);
    assert_true(check(space));
    H5Sselect_elements(space, H5S_SELECT_SET, 2, (hsize_t[]){5, 5, 4, 1});
    assert_false(check(space));
    H5Sclose(space);
}

static void test_what_is_outside_is_refused(void **state)
{
    const uint64_t smaller[] = {NX - 1, NY}, larger[] = {NX + 5, NY};
    hsize_t unlimited[] = {H5S_UNLIMITED, 1}, start[] = {0, 0}, last[] = {NX - 1, NY - 1}, one[] = {1, 1};
    hssize_t offset[] = {1, 0};
    hid_t space = plane(), line = H5Screate_simple(1, (hsize_t[]){NX}, NULL);
    hid_t endless = H5Screate_simple(2, (hsize_t[]){NX, NY}, (hsize_t[]){H5S_UNLIMITED, NY});
    cow_selection s;

    (void)state;
    assert_int_equal(cow_selection_from(&s, space, 2, smaller), -1);
    assert_non_null(strstr(cow_error_message(), "not within extent"));
    cow_error_clear();
    assert_int_equal(cow_selection_from(&s, space, 2, larger), 0);
    assert_int_equal(s.elements, NX * NY);
    assert_int_equal(s.extent[0], NX);
    assert_int_equal(cow_selection_from(&s, line, 2, larger), -1);
    assert_non_null(strstr(cow_error_message(), "dimensions"));
    cow_error_clear();
    H5Sselect_hyperslab(space, H5S_SELECT_SET, last, NULL, one, NULL);
    assert_int_equal(cow_selection_from(&s, space, 2, smaller), -1);
    cow_error_clear();
    H5Soffset_simple(space, offset);
    assert_int_equal(cow_selection_from(&s, space, 2, larger), -1);
    cow_error_clear();
    H5Sselect_hyperslab(endless, H5S_SELECT_SET, start, NULL, unlimited, one);
    assert_int_equal(cow_selection_from(&s, endless, 2, larger), -1);
    assert_true(cow_error_pending());
    cow_error_clear();
    H5Sclose(endless);
    H5Sclose(line);
    H5Sclose(space);
}

static void test_long_irregular_selections_come_in_pieces(void **state)
{
    enum { N = 100000 };
    hid_t space = H5Screate_simple(1, (hsize_t[]){N}, NULL);
    cow_runs *runs;
    static cow_run run[5000];
    uint64_t next = 0;
    size_t n;

    (void)state;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[]){0}, (hsize_t[]){4}, (hsize_t[]){N / 4}, (hsize_t[]){2});
    H5Sselect_hyperslab(space, H5S_SELECT_OR, (hsize_t[]){2}, NULL, (hsize_t[]){1}, NULL);
    runs = cow_runs_open(space);
    assert_non_null(runs);
    do {
        assert_int_equal(cow_runs_next(runs, run, 5000, UINT64_MAX, &n), 0);
        for (size_t i = 0; i < n; i++) {
            assert_true(run[i].offset >= next);
            next = run[i].offset + run[i].length;
        }
    } while (n > 0);
    assert_int_equal(next, N - 2);
    cow_runs_close(runs);
    H5Sclose(space);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_one_block_of_the_extent),
        cmocka_unit_test(test_none_null_and_empty_select_nothing),
        cmocka_unit_test(test_a_scalar_is_one_element),
        cmocka_unit_test(test_every_small_regular_hyperslab_is_regular),
        cmocka_unit_test(test_touching_blocks_are_one_block),
        cmocka_unit_test(test_irregular_selections_are_walked_in_order),
        cmocka_unit_test(test_the_offset_of_a_selection_is_included),
        cmocka_unit_test(test_what_is_outside_is_refused),
        cmocka_unit_test(test_long_irregular_selections_come_in_pieces),
    };
    return test_main(tests, argc, argv, NULL, NULL);
}
