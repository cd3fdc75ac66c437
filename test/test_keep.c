/* Which versions a policy keeps: a calendar of some years, written down by hand. */
#include "base/error.h"
#include "base/keep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SECOND ((int64_t)1000000)
#define HOUR   (3600 * SECOND)
#define DAY    (24 * HOUR)
#define NOON   (1774785600 * SECOND) /* Sunday 2026-03-29T12:00:00Z */
#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"
#define MOST   64

static void in_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

/* WANTED: a letter for each version: "." goes, "k" stays. */
static void keeps(const char *policy, size_t count, const int64_t time[], const char *wanted)
{
    uint32_t why[MOST] = {0};
    char kept[MOST + 1] = "";
    cow_keep keep;

    if (cow_keep_parse(policy, &keep) != 0)
        fail_msg("'%s': %s", policy, cow_error_message());
    assert_int_equal(cow_keep_decide(&keep, count, time, why), 0);
    for (size_t i = 0; i < count; i++)
        kept[i] = why[i] == 0 ? '.' : 'k';
    if (strcmp(kept, wanted) != 0)
        fail_msg("'%s' keeps %s, not %s", policy, kept, wanted);
}

static void test_numbers_of_versions_and_periods(void **state)
{
    /* two each in years, months, days and hours of their own */
    const int64_t times[] = {NOON - 800 * DAY, NOON - 799 * DAY,     NOON - 70 * DAY,
                             NOON - 69 * DAY,  NOON - 2 * DAY,       NOON - 2 * DAY + SECOND,
                             NOON - HOUR,      NOON - HOUR + SECOND, NOON,
                             NOON + SECOND};
    (void)state;

    in_zone("UTC");
    keeps("last:1", 10, times, ".........k");
    keeps("last:3", 10, times, ".......kkk");
    keeps("last:18446744073709551615", 10, times, "kkkkkkkkkk");
    keeps("hourly:2", 10, times, ".......k.k");
    keeps("hourly:3", 10, times, ".....k.k.k");
    keeps("daily:3", 10, times, "...k.k...k");
    keeps("weekly:2", 10, times, "...k.....k");
    keeps("monthly:2", 10, times, "...k.....k");
    keeps("yearly:2", 10, times, ".k.......k");
    keeps("daily:2,yearly:9", 10, times, ".k...k...k");
    keeps("daily:2+last:2", 10, times, ".....k..kk");
    keeps("within:2d", 10, times, ".....kkkkk"); /* from the newest one on, which is a second later */
    keeps("within:1h", 10, times, ".......kkk");
    keeps("within:0h", 10, times, ".........k");
}

static void test_a_duration_goes_by_the_calendar(void **state)
{
    const int64_t times[] = {NOON - 28 * DAY - 1, NOON - 28 * DAY, NOON - 8 * DAY, NOON - 7 * DAY, NOON};
    (void)state;

    in_zone("UTC");
    keeps("within:1m", 5, times, ".kkkk"); /* 29 February is 1 March */
    keeps("within:28d", 5, times, ".kkkk");
    keeps("within:4w", 5, times, ".kkkk");
    keeps("within:1 week", 5, times, "...kk");
    keeps("within:1 Week 1 day", 5, times, "..kkk");
    keeps("within:6d24h", 5, times, "...kk");
    keeps("within:999999y", 5, times, "kkkkk");
}

static void test_days_are_those_of_the_clock_on_the_wall(void **state)
{
    /* 2026-03-29 had no hour from 2 to 3 in Berlin: a second before, a second after; and the ends of that day */
    const int64_t midnight = 1774738800 * SECOND;
    const int64_t spring[] = {
        midnight - 1,        midnight, midnight + 2 * HOUR - 1, midnight + 2 * HOUR, midnight + 23 * HOUR - 1,
        midnight + 23 * HOUR};
    /* 2025-10-26 had it twice: it is one hour */
    const int64_t second = 1761440400 * SECOND; /* 01:00Z, the second 02:00 */
    const int64_t autumn[] = {second - HOUR - 1, second - HOUR, second - 1, second, second + HOUR - 1, second + HOUR};
    (void)state;

    in_zone(BERLIN);
    keeps("daily:9", 6, spring, "k...kk");
    keeps("hourly:9", 6, spring, "kkkkkk");
    keeps("weekly:9", 6, spring, "....kk");
    keeps("within:1d", 6, spring, ".kkkkk"); /* of 23 hours */
    keeps("within:24h", 6, spring, "kkkkkk");
    keeps("hourly:9", 6, autumn, "k...kk");
    in_zone("UTC");
    keeps("daily:9", 6, spring, ".k...k");
    keeps("hourly:9", 6, autumn, "k.k.kk");
}

static void test_weeks_begin_on_mondays_in_any_year(void **state)
{
    /* the Mondays 2025-12-29 and 1969-12-29 begin weeks with days of two years */
    const int64_t monday = 1766966400 * SECOND, old = -3 * DAY;
    const int64_t times[] = {old - 1, old, old + 7 * DAY - 1, monday - 1, monday, monday + 7 * DAY - 1};
    (void)state;

    in_zone("UTC");
    keeps("weekly:9", 6, times, "k.kk.k");
    keeps("yearly:9", 6, times, ".kk.kk");
}

static void test_equal_times_and_times_that_go_backward(void **state)
{
    const int64_t equal[] = {NOON, NOON, NOON},
                  backward[] = {NOON, NOON + DAY, NOON - DAY, NOON - DAY + 1, NOON - 9 * DAY};
    (void)state;

    in_zone("UTC");
    keeps("last:2", 3, equal, ".kk");
    keeps("daily:5", 3, equal, "..k");
    keeps("daily:1", 5, backward, ".k..k"); /* the newest one stays, whatever its time says */
    keeps("daily:3", 5, backward, "kk.kk");
    keeps("last:2", 5, backward, "kk..k");
    keeps("within:1d", 5, backward, "kk..k");
}

static void test_what_is_given_and_what_is_gone(void **state)
{
    const int64_t times[] = {NOON, NOON + 1, NOON + 2, NOON + 3};
    uint32_t why[] = {COW_KEPT_TAGGED, COW_KEPT_NAMED, 0, COW_KEPT_NOT};
    cow_keep keep = {.count = {[COW_KEEP_LAST] = 1}};
    (void)state;

    assert_int_equal(cow_keep_decide(&keep, 4, times, why), 0);
    assert_int_equal(why[0], COW_KEPT_TAGGED);
    assert_int_equal(why[1], COW_KEPT_NAMED);
    assert_int_equal(why[2], COW_KEPT_NEWEST | 1u << COW_KEEP_LAST);
    assert_int_equal(why[3], COW_KEPT_NOT);
    why[0] = why[1] = why[2] = COW_KEPT_NOT;
    assert_int_equal(cow_keep_decide(&keep, 4, times, why), 0);
    assert_int_equal(why[2], COW_KEPT_NOT);
    assert_int_equal(cow_keep_decide(&keep, 0, times, why), 0);
}

static void test_times_at_the_ends_of_the_numbers(void **state)
{
    const int64_t times[] = {INT64_MIN, INT64_MIN + 1, -1, 0, INT64_MAX}, early[] = {INT64_MIN, INT64_MIN + 1};
    (void)state;

    in_zone(BERLIN);
    keeps("yearly:9", 5, times, ".k.kk");
    keeps("within:999999y999999m999999w999999d999999h", 5, times, "kkkkk");
    keeps("within:999999y", 2, early, "kk");
    keeps("hourly:1", 2, early, ".k");
}

static void test_what_is_no_policy(void **state)
{
    static const char *const wrong[] = {"",
                                        ",",
                                        "last",
                                        "last:",
                                        "last:0",
                                        "last:-1",
                                        "last:+1",
                                        "last: 1",
                                        "last:1 ",
                                        "last:18446744073709551616",
                                        "last:1,",
                                        "last:1,last:2",
                                        "last:1;daily:2",
                                        "Last:1",
                                        "minutely:3",
                                        "daily:3d",
                                        "20",
                                        "within:",
                                        "within:5",
                                        "within:d",
                                        "within:3m2y",
                                        "within:1d1d",
                                        "within:1000000y",
                                        "within:3x",
                                        "within:3d ago",
                                        "within:3daysx",
                                        "within:-3d",
                                        "within:1d,within:2d"};
    cow_keep keep;
    (void)state;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (cow_keep_parse(wrong[i], &keep) == 0)
            fail_msg("'%s' is taken for a policy", wrong[i]);
        assert_true(cow_error_is(COW_USAGE));
        cow_error_clear();
    }
    keep = (cow_keep){0};
    assert_true(cow_keep_is_empty(&keep));
    assert_int_equal(cow_keep_parse("last:20,hourly:24,daily:7,weekly:4,monthly:12,yearly:10,within:30d", &keep), 0);
    assert_false(cow_keep_is_empty(&keep));
    assert_true(keep.count[COW_KEEP_LAST] == 20 && keep.count[COW_KEEP_YEARLY] == 10 && keep.days == 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_of_versions_and_periods),
        cmocka_unit_test(test_a_duration_goes_by_the_calendar),
        cmocka_unit_test(test_days_are_those_of_the_clock_on_the_wall),
        cmocka_unit_test(test_weeks_begin_on_mondays_in_any_year),
        cmocka_unit_test(test_equal_times_and_times_that_go_backward),
        cmocka_unit_test(test_what_is_given_and_what_is_gone),
        cmocka_unit_test(test_times_at_the_ends_of_the_numbers),
        cmocka_unit_test(test_what_is_no_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
