/* The error doctrine: one cause, context above it, published on HDF5's stack at the end. */
#include "base/error.h"
#include "harness.h"

#include <hdf5.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct stack_text {
    unsigned n;
    char text[32][1100];
    hid_t minor[32];
} stack_text;

static herr_t copy_record(unsigned n, const H5E_error2_t *error, void *context)
{
    stack_text *stack = context;

    snprintf(stack->text[n], sizeof stack->text[n], "%s", error->desc);
    stack->minor[n] = error->min_num;
    stack->n = n + 1;
    return 0;
}

/* HDF5's stack, lowest record first. */
static const stack_text *hdf5_stack(void)
{
    static stack_text stack;

    memset(&stack, 0, sizeof stack);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, copy_record, &stack);
    return &stack;
}

static int set_up(void **state)
{
    (void)state;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    cow_error_clear();
    H5Eclear2(H5E_DEFAULT);
    return 0;
}

static void fail_natively(void)
{
    assert_true(H5Gopen2(-1, "nowhere", H5P_DEFAULT) < 0);
}

/* HDF5 numbers ids in a row, and does not count error stacks for us: remember where the row was. */
static hid_t next_stack(void)
{
    hid_t id = H5Eget_current_stack();

    assert_true(id > 0);
    H5Eclose_stack(id);
    return id + 1;
}

/* No stack made since next_stack() gave FIRST is open. */
static void assert_no_stack_since(hid_t first)
{
    hid_t end = next_stack() - 1;

    assert_true(end > first); /* there have been some */
    for (hid_t id = first; id < end; id++)
        assert_int_equal(H5Iis_valid(id), 0);
}

static void test_first_error_is_the_cause(void **state)
{
    const stack_text *stack;
    (void)state;

    assert_false(cow_error_pending());
    assert_string_equal(cow_error_message(), "");
    assert_int_equal(cow_error(COW_CORRUPT, "slot %d is damaged", 7), -1);
    assert_int_equal(cow_error(COW_IO, "cleaning up failed"), -1);
    assert_int_equal(cow_context("reading /a"), -1);
    assert_true(cow_error_pending());
    assert_string_equal(cow_error_message(), "slot 7 is damaged");
    cow_error_publish();
    assert_false(cow_error_pending());
    stack = hdf5_stack();
    assert_int_equal(stack->n, 3);
    assert_string_equal(stack->text[0], "slot 7 is damaged");
    assert_string_equal(stack->text[1], "cleaning up failed");
    assert_string_equal(stack->text[2], "reading /a");
    assert_true(stack->minor[0] == H5E_READERROR);
}

static void test_kind_decides_the_minor_number(void **state)
{
    const struct {
        cow_kind kind;
        hid_t minor;
    } expected[] = {{COW_USAGE, H5E_BADVALUE},         {COW_NOT_FOUND, H5E_NOTFOUND}, {COW_READ_ONLY, H5E_WRITEERROR},
                    {COW_CORRUPT, H5E_READERROR},      {COW_IO, H5E_SYSERRSTR},       {COW_MEMORY, H5E_NOSPACE},
                    {COW_UNSUPPORTED, H5E_UNSUPPORTED}};
    (void)state;

    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        fail_natively(); /* what an earlier call left must not be the lowest record */
        cow_error(expected[i].kind, "x");
        cow_error_publish();
        assert_int_equal(hdf5_stack()->n, 1);
        assert_true(hdf5_stack()->minor[0] == expected[i].minor);
    }
}

static void test_nothing_recorded_leaves_the_stack_alone(void **state)
{
    unsigned n;
    (void)state;

    fail_natively();
    n = hdf5_stack()->n;
    assert_true(n > 0);
    cow_error_publish();
    assert_int_equal(hdf5_stack()->n, n);
}

static void test_native_errors_survive_clean_up(void **state)
{
    char lowest[1100];
    hid_t minor;
    unsigned n;
    hid_t stacks = next_stack();
    (void)state;

    fail_natively();
    n = hdf5_stack()->n;
    strcpy(lowest, hdf5_stack()->text[0]);
    minor = hdf5_stack()->minor[0];
    assert_int_equal(cow_error_native("opening the group of %s", "versions"), -1);
    H5Eclear2(H5E_DEFAULT); /* cleaning up */
    assert_non_null(strstr(cow_error_message(), "opening the group of versions: "));
    assert_non_null(strstr(cow_error_message(), lowest));
    cow_context("committing");
    cow_error_publish();
    assert_int_equal(hdf5_stack()->n, n + 2);
    assert_string_equal(hdf5_stack()->text[0], lowest);
    assert_true(hdf5_stack()->minor[0] == minor);
    assert_string_equal(hdf5_stack()->text[n], "opening the group of versions");
    assert_string_equal(hdf5_stack()->text[n + 1], "committing");
    assert_no_stack_since(stacks);
}

static void test_stacks_are_not_leaked(void **state)
{
    hid_t stacks = next_stack();
    cow_error_box box;
    (void)state;

    fail_natively();
    cow_error_native("a");
    cow_error_clear();
    fail_natively();
    cow_error_native("b");
    fail_natively();
    cow_error_native("c"); /* context of b */
    cow_error_take(&box);
    assert_non_null(strstr(box.message, "b: "));
    assert_non_null(strstr(box.message, "; c"));
    H5Eclear2(H5E_DEFAULT);
    cow_error_native("without a stack");
    assert_string_equal(cow_error_message(), "without a stack");
    cow_error_publish();
    assert_no_stack_since(stacks);
}

static void test_endless_messages_are_cut_off(void **state)
{
    char text[5000];
    cow_error_box box;
    (void)state;

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    fail_natively();
    cow_error_native("%s", text);
    for (int i = 0; i < 50; i++)
        cow_context("%s", text);
    cow_error_take(&box);
    assert_int_equal(strlen(box.message), sizeof box.message - 1);
    cow_error_give(&box);
    for (int i = 0; i < 50; i++)
        cow_context("%s", text);
    cow_error_publish();
    assert_true(hdf5_stack()->n > 1);
}

static void *fail_in_thread(void *context)
{
    cow_error(COW_CORRUPT, "chunk 3");
    cow_context("decoding");
    cow_error_take(context);
    return cow_error_pending() ? NULL : context;
}

static void test_errors_of_a_thread_can_be_carried_over(void **state)
{
    pthread_t thread;
    cow_error_box box;
    void *answer;
    (void)state;

    assert_int_equal(pthread_create(&thread, NULL, fail_in_thread, &box), 0);
    assert_int_equal(pthread_join(thread, &answer), 0);
    assert_ptr_equal(answer, &box);
    assert_false(cow_error_pending());
    assert_int_equal(cow_error_give(&box), -1);
    assert_false(box.set);
    assert_string_equal(cow_error_message(), "chunk 3; decoding");
    cow_error_take(&box);
    assert_int_equal(box.kind, COW_CORRUPT);
    cow_error_take(&box);
    assert_false(box.set);
}

static void test_the_place_is_put_in_front_once(void **state)
{
    const stack_text *stack;
    char place[900];
    (void)state;

    cow_error(COW_CORRUPT, "its checksum differs");
    assert_int_equal(cow_error_where("f.h5: /x", "reading"), -1);
    cow_error_where("f.h5: /x", "reading");
    assert_string_equal(cow_error_message(), "f.h5: /x: its checksum differs");
    memset(place, 'p', sizeof place - 1);
    place[sizeof place - 1] = '\0';
    cow_error_where(place, "reading");
    cow_error_where("0123456789012345678901234567890123456789012345678901234567890123456789", "reading");
    assert_true(strlen(cow_error_message()) >= 950 && strlen(cow_error_message()) <= 1023);
    cow_error_clear();

    fail_natively();
    cow_error_native("cannot read");
    cow_error_where("f.h5: /x", "reading");
    cow_error_publish();
    stack = hdf5_stack();
    assert_string_equal(stack->text[stack->n - 1], "f.h5: /x: reading");
    assert_null(strstr(stack->text[0], "f.h5"));
}

static void test_an_error_survives_a_callback_within_the_callback(void **state)
{
    cow_error_held *held;
    (void)state;

    assert_null(cow_error_hold());
    cow_error_put_back(NULL);
    cow_error(COW_CORRUPT, "the cause");
    cow_context("above");
    held = cow_error_hold();
    assert_false(cow_error_pending());
    cow_error(COW_IO, "another one");
    cow_error_put_back(held);
    assert_string_equal(cow_error_message(), "the cause");
    cow_error_publish();
    assert_int_equal(hdf5_stack()->n, 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_first_error_is_the_cause, set_up),
        cmocka_unit_test_setup(test_kind_decides_the_minor_number, set_up),
        cmocka_unit_test_setup(test_nothing_recorded_leaves_the_stack_alone, set_up),
        cmocka_unit_test_setup(test_native_errors_survive_clean_up, set_up),
        cmocka_unit_test_setup(test_stacks_are_not_leaked, set_up),
        cmocka_unit_test_setup(test_endless_messages_are_cut_off, set_up),
        cmocka_unit_test_setup(test_errors_of_a_thread_can_be_carried_over, set_up),
        cmocka_unit_test_setup(test_the_place_is_put_in_front_once, set_up),
        cmocka_unit_test_setup(test_an_error_survives_a_callback_within_the_callback, set_up),
    };
    return test_main(tests, argc, argv, NULL, NULL);
}
