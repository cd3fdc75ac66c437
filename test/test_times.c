/* Times as people write them: what `date` of the GNU core utilities says of the same instants, written down by hand here. */
#include "base/times.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW                                                                                                            \
    ((time_t)1774778400) /* Sunday 2026-03-29T10:00:00Z, 12:00 in Berlin, where the night had no hour from 2 to 3 */

static void in_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

/* Seconds of the first and the last instant, the last one rounded up. */
static void is(const char *text, int64_t first, int64_t last)
{
    int64_t a = -1, b = -1;

    if (cow_times_parse(text, NOW, &a, &b) != 0)
        fail_msg("'%s' is not understood", text);
    if (a != first * 1000000 || b != last * 1000000 - 1)
        fail_msg("'%s': %lld to %lld", text, (long long)a, (long long)b);
}

static void test_dates(void **state)
{
    (void)state;
    in_zone("UTC");
    is("2026-03-29", 1774742400, 1774742400 + 86400);
    is("2026-03-29T10:00", 1774778400, 1774778400 + 60);
    is("2026-03-29 10:00:05", 1774778405, 1774778406);
    is("2026-03-29T12:00:05+02:00", 1774778405, 1774778406);
    in_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    is("2026-03-29", 1774738800, 1774738800 + 23 * 3600); /* a day of 23 hours */
    is("2026-03-29T12:00:00", 1774778400, 1774778401);
    is("2026-03-29T10:00:00Z", 1774778400, 1774778401);
    is("2026-01-31T12:00", 1769857200, 1769857260);
}

static void test_fractions(void **state)
{
    int64_t first, last;
    (void)state;

    in_zone("UTC");
    assert_int_equal(cow_times_parse("2026-03-29T10:00:00.25", NOW, &first, &last), 0);
    assert_true(first == 1774778400250000 && last == 1774778400259999);
    assert_int_equal(cow_times_parse("2026-03-29T10:00:00.123456Z", NOW, &first, &last), 0);
    assert_true(first == 1774778400123456 && last == first);
}

static void test_days_by_their_names(void **state)
{
    (void)state;
    in_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    is("today", 1774738800, 1774738800 + 23 * 3600);
    is("Yesterday", 1774738800 - 86400, 1774738800);
    is("saturday", 1774738800 - 86400, 1774738800);
    is("monday", 1774738800 - 6 * 86400, 1774738800 - 5 * 86400);
    is("sunday", 1774738800 - 7 * 86400, 1774738800 - 6 * 86400); /* today is one, so the one before */
}

static void ago(const char *text, int64_t seconds)
{
    int64_t first, last;

    if (cow_times_parse(text, NOW, &first, &last) != 0)
        fail_msg("'%s' is not understood", text);
    if (last != first + 999999 || first != seconds * 1000000) /* that second */
        fail_msg("'%s': %lld", text, (long long)first);
}

static void test_so_long_ago(void **state)
{
    int64_t first, last;
    (void)state;

    in_zone("UTC");
    ago("2 hours ago", NOW - 7200);
    ago("1 second ago", NOW - 1);
    ago("90 Minutes ago", NOW - 5400);
    ago("3 weeks ago", NOW - 21 * 86400);
    ago("0 days ago", NOW);
    ago("2 months ago", 1769680800); /* 2026-01-29T10:00 */
    ago("1 year ago", 1743242400);   /* 2025-03-29T10:00 */
    assert_int_equal(cow_times_parse("now", NOW, &first, &last), 0);
    assert_true(last / 1000000 == NOW);
}

static void test_what_is_no_time(void **state)
{
    static const char *const wrong[] = {"",
                                        "2026",
                                        "2026-01",
                                        "2026-01-31T",
                                        "2026-01-31T12",
                                        "noon",
                                        "2 hours",
                                        "-2 hours ago",
                                        "2 hours ago or so",
                                        "2 fortnights ago",
                                        "hours ago",
                                        "2 hourss ago",
                                        "mon",
                                        "yesterdays",
                                        "2026-01-31T12:00x",
                                        "2026-01-31T12:00:05.",
                                        "2026-01-31+1",
                                        "2026-13-31",
                                        "2026-31-01",
                                        "2026-02-29",
                                        "2026-01-00",
                                        "2026-01-32",
                                        "2026-01-31T24:00",
                                        "2026-01-31T-1:00",
                                        "2026-01-31T12:60",
                                        "2026-01-31T12:00:61",
                                        "2026-01-31T12:00+25:00",
                                        "2026-01-31T12:00+01:99"};
    int64_t first, last;
    (void)state;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (cow_times_parse(wrong[i], NOW, &first, &last) == 0)
            fail_msg("'%s' is taken for a time", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_fractions),
        cmocka_unit_test(test_days_by_their_names),
        cmocka_unit_test(test_so_long_ago),
        cmocka_unit_test(test_what_is_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
