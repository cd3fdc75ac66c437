/* Into what a chunk is cut: pieces of random chunks, which cover it, in the order of its bytes. And which mappings show them. */
#include "harness.h"
#include "random.h"
#include "store/pieces.h"
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

static uint64_t state_of_random;

static uint64_t below(uint64_t n)
{
    return splitmix64(&state_of_random) % n;
}

static void random_chunk(cow_grid *grid, size_t *element)
{
    uint64_t chunk[COW_MAX_RANK], maximum[COW_MAX_RANK];
    unsigned rank = 1 + (unsigned)below(5);

    for (unsigned d = 0; d < rank; d++) {
        chunk[d] = 1 + below((uint64_t[]){1, 4, 20, 100, 700}[below(5)]);
        maximum[d] = COW_UNLIMITED;
    }
    cow_grid_init(grid, rank, chunk, maximum);
    *element = 1 + below(16);
}

/* The bytes of the chunk at which the box of a piece lies: first and number; all of them stand together. */
static void box_in_bytes(const cow_grid *grid, size_t element, const uint64_t start[], const uint64_t count[],
                         size_t *first, size_t *size)
{
    uint64_t at = 0, last = 0, n = 1;

    for (unsigned d = 0; d < grid->rank; d++) {
        at = at * grid->chunk[d] + start[d];
        last = last * grid->chunk[d] + start[d] + count[d] - 1;
        n *= count[d];
    }
    assert_int_equal(last - at + 1, n);
    *first = at * element;
    *size = n * element;
}

static void test_pieces_cover_the_chunk_in_the_order_of_its_bytes(void **state)
{
    unsigned cut = 0;
    (void)state;

    for (unsigned round = 0; round < 20000; round++) {
        size_t element, bytes, least = (size_t[]){1, 64, 512, 8192}[below(4)], next = 0;
        cow_piecing p, again;
        cow_grid grid;

        random_chunk(&grid, &element);
        bytes = element;
        for (unsigned d = 0; d < grid.rank; d++)
            bytes *= grid.chunk[d];
        if (!cow_piecing_plan(&p, &grid, element, least)) {
            assert_true(bytes < least || bytes / element == 1 || bytes < 2 * (least / COW_PIECES_OF_LEAST));
            continue;
        }
        cut++;
        assert_true(p.count > 1 && p.count <= COW_PIECES && p.bytes >= least / COW_PIECES_OF_LEAST);
        for (unsigned i = 0; i < p.count; i++) {
            uint64_t start[COW_MAX_RANK], count[COW_MAX_RANK];
            size_t offset, size, first, boxed;

            cow_piecing_place(&p, i, &offset, &size);
            cow_piecing_box(&p, &grid, i, start, count);
            box_in_bytes(&grid, element, start, count, &first, &boxed);
            assert_int_equal(offset, next);
            assert_true(size > 0 && size <= p.bytes);
            assert_int_equal(first, offset);
            assert_int_equal(boxed, size);
            next += size;
        }
        assert_int_equal(next, bytes);
        assert_true(cow_piecing_from(&again, &grid, element, p.rank, p.piece));
        assert_true(again.count == p.count && again.bytes == p.bytes);
        for (unsigned i = 0; i < p.count; i++) {
            size_t offset[2], size[2];

            cow_piecing_place(&p, i, &offset[0], &size[0]);
            cow_piecing_place(&again, i, &offset[1], &size[1]);
            assert_true(offset[0] == offset[1] && size[0] == size[1]);
        }
    }
    assert_true(cut > 1000);
}

static void test_what_is_no_piece_is_refused(void **state)
{
    cow_piecing p;
    cow_grid grid;
    (void)state;

    cow_grid_init(&grid, 2, (uint64_t[]){8, 100}, (uint64_t[]){COW_UNLIMITED, COW_UNLIMITED});
    assert_true(cow_piecing_from(&p, &grid, 8, 2, (uint64_t[]){2, 100}));
    assert_true(cow_piecing_from(&p, &grid, 8, 2, (uint64_t[]){1, 30}));
    assert_true(cow_piecing_from(&p, &grid, 8, 2, (uint64_t[]){8, 100}));
    assert_false(cow_piecing_from(&p, &grid, 8, 2, (uint64_t[]){2, 50}));
    assert_false(cow_piecing_from(&p, &grid, 8, 2, (uint64_t[]){9, 100}));
    assert_false(cow_piecing_from(&p, &grid, 8, 2, (uint64_t[]){0, 100}));
    assert_false(cow_piecing_from(&p, &grid, 8, 2, (uint64_t[]){1, 0}));
    assert_false(cow_piecing_from(&p, &grid, 8, 2, (uint64_t[]){1, 101}));
    assert_false(cow_piecing_from(&p, &grid, 8, 2, (uint64_t[]){1, 10})); /* 80 of them */
    assert_false(cow_piecing_from(&p, &grid, 8, 1, (uint64_t[]){8}));
}

/* Each piece is in one mapping, in whose order slots ascend. */
static void test_mappings_show_each_piece_once_and_in_order(void **state)
{
    (void)state;

    for (unsigned round = 0; round < 5000; round++) {
        cow_composed c = {.base = 1};
        uint64_t group[COW_PIECES], all = 0;
        unsigned n, ascending = 1;

        while (c.own == 0)
            c.own = splitmix64(&state_of_random);
        for (unsigned i = 0; i < COW_PIECES; i++)
            c.slot[i] = round % 4 == 0 ? i + 5 : below(round % 2 ? 1000 : 9);
        n = cow_view_plan_pieces(&c, group);
        for (unsigned k = 0; k < n; k++) {
            uint64_t last = 0;
            bool first = true;

            assert_true(group[k] != 0 && (group[k] & all) == 0);
            all |= group[k];
            for (unsigned i = 0; i < COW_PIECES; i++)
                if (group[k] >> i & 1) {
                    assert_true(first || c.slot[i] > last);
                    last = c.slot[i];
                    first = false;
                }
        }
        assert_int_equal(all, c.own);
        for (unsigned i = 1; i < COW_PIECES; i++)
            ascending = ascending && c.slot[i] > c.slot[i - 1];
        assert_true(!ascending || n == 1);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_cover_the_chunk_in_the_order_of_its_bytes),
        cmocka_unit_test(test_what_is_no_piece_is_refused),
        cmocka_unit_test(test_mappings_show_each_piece_once_and_in_order),
    };
    state_of_random = test_random(1);
    return test_main(tests, argc, argv, NULL, NULL);
}
