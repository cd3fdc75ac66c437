/* Arrays that grow: what is in them stays, and a size that cannot be had changes nothing. */
#include "base/vector.h"

#include "sanitized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_elements_stay_when_room_is_made(void **state)
{
    uint64_t *number = NULL;
    size_t room = 0, moves = 0;

    (void)state;
    for (size_t count = 0; count < 100000; count++) {
        size_t before = room;
        assert_int_equal(COW_RESERVE(number, room, count, 1), 0);
        moves += room != before;
        assert_true(room > count);
        number[count] = count * count;
    }
    for (size_t i = 0; i < 100000; i++)
        assert_int_equal(number[i], i * i);
    assert_true(moves < 40); /* not once for each element */
    free(number);
}

static void test_many_at_once(void **state)
{
    char(*name)[3] = NULL;
    size_t room = 0;

    (void)state;
    assert_int_equal(COW_RESERVE(name, room, 0, 0), 0);
    assert_null(name);
    assert_int_equal(COW_RESERVE(name, room, 0, 1000), 0);
    assert_true(room >= 1000);
    memset(name, 'x', room * sizeof *name);
    assert_int_equal(COW_RESERVE(name, room, 900, 5000), 0);
    assert_true(room >= 5900);
    assert_memory_equal(name[999], "xxx", 3);
    free(name);
}

static void test_elements_whose_size_is_known_when_it_runs(void **state)
{
    uint8_t *row = NULL;
    size_t room = 0;

    (void)state;
    for (size_t size = 1; size < 700; size += 99) {
        room = 0;
        for (size_t count = 0; count < 50; count++) {
            assert_int_equal(cow_vector_reserve(&row, &room, count, 1, size), 0);
            memset(row + count * size, (int)count, size);
        }
        for (size_t count = 0; count < 50; count++)
            assert_int_equal(row[(count + 1) * size - 1], count);
    }
    free(row);
}

static void test_a_size_that_cannot_be_had_changes_nothing(void **state)
{
    uint64_t *number = NULL, *before;
    size_t room = 0, room_before;

    (void)state;
    assert_int_equal(COW_RESERVE(number, room, 0, 10), 0);
    before = number;
    room_before = room;
    number[9] = 9;
    assert_int_equal(COW_RESERVE(number, room, 1, SIZE_MAX), -1);         /* the sum overflows */
    assert_int_equal(COW_RESERVE(number, room, SIZE_MAX, 1), -1);         /* to 0 */
    assert_int_equal(COW_RESERVE(number, room, 0, SIZE_MAX / 8 + 1), -1); /* the product overflows, to 0 */
    assert_int_equal(COW_RESERVE(number, room, 0, SIZE_MAX / 16), -1);    /* there is no such memory */
    assert_ptr_equal(number, before);
    assert_int_equal(room, room_before);
    assert_int_equal(number[9], 9);
    free(number);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements_stay_when_room_is_made),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_elements_whose_size_is_known_when_it_runs),
        cmocka_unit_test(test_a_size_that_cannot_be_had_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
