/* Contract: keep.h. */
#include "base/keep.h"

#include "base/error.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define SECOND ((int64_t)1000000)
#define RULES  (COW_KEEP_COUNTS + 1)
#define MOST   999999 /* of each unit of a duration: what is made of it fits all types */

const char *const cow_keep_names[RULES] = {"last", "hourly", "daily", "weekly", "monthly", "yearly", "within"};

/* ---- policies as people write them ---- */

/* Digits at *TEXT, which stands behind them then. -1: none, or a number above LIMIT. */
static int take_number(const char **text, uint64_t limit, uint64_t *number)
{
    if (!isdigit((unsigned char)**text))
        return -1;
    for (*number = 0; isdigit((unsigned char)**text); ++*text) {
        uint64_t digit = (uint64_t)(**text - '0');
        if (*number > (limit - digit) / 10)
            return -1;
        *number = *number * 10 + digit;
    }
    return 0;
}

/* Letters at *TEXT: a unit of time, as its letter or its name. -1: none. */
static int take_unit(const char **text)
{
    static const char *const names[] = {"year", "month", "week", "day", "hour"};
    size_t length = 0;

    while (isalpha((unsigned char)(*text)[length]))
        length++;
    for (int i = 0; i < 5; i++) {
        size_t whole = strlen(names[i]);
        bool plural = length == whole + 1 && tolower((unsigned char)(*text)[whole]) == 's';
        if ((length == 1 || length == whole || plural) && strncasecmp(*text, names[i], plural ? whole : length) == 0) {
            *text += length;
            return i;
        }
    }
    return -1;
}

/* "2y5m7d3h", "2 weeks": each unit once, the larger ones first. */
static int parse_duration(const char *text, cow_keep *keep)
{
    uint64_t amount[5] = {0}, number;
    int last = -1;

    do {
        if (take_number(&text, MOST, &number) < 0)
            return -1;
        text += strspn(text, " ");
        int unit = take_unit(&text);
        if (unit <= last)
            return -1;
        amount[unit] = number;
        last = unit;
        text += strspn(text, " ");
    } while (*text != '\0');
    keep->months = (int)(amount[0] * 12 + amount[1]);
    keep->days = (int)(amount[2] * 7 + amount[3]);
    keep->hours = (int)amount[4];
    keep->within = true;
    return 0;
}

int cow_keep_add(cow_keep *keep, const char *name, const char *value)
{
    size_t rule = 0;
    uint64_t number;

    while (rule < RULES && strcmp(name, cow_keep_names[rule]) != 0)
        rule++;
    if (rule == RULES)
        return cow_error(COW_USAGE,
                         "'%s' is no rule of what is kept: last, hourly, daily, weekly, monthly and yearly have a "
                         "number, within has a duration",
                         name);
    if (rule == COW_KEEP_WITHIN ? keep->within : keep->count[rule] > 0)
        return cow_error(COW_USAGE, "what is kept is said twice by '%s'", name);
    if (rule == COW_KEEP_WITHIN)
        return parse_duration(value, keep) == 0
                   ? 0
                   : cow_error(COW_USAGE, "'%s' is no duration: write years, months, weeks, days and hours as 2y5m7d3h",
                               value);
    const char *end = value;
    if (take_number(&end, UINT64_MAX, &number) < 0 || *end != '\0' || number == 0)
        return cow_error(COW_USAGE, "'%s' keeps a number of versions from 1, not '%s'", name, value);
    keep->count[rule] = number;
    return 0;
}

int cow_keep_parse(const char *text, cow_keep *keep)
{
    *keep = (cow_keep){0};
    for (;;) {
        size_t length = strcspn(text, ",+"), name = strcspn(text, ":,+");
        char *rule = strndup(text, length);
        int status;
        if (rule == NULL)
            return cow_error(COW_MEMORY, "no memory for a policy");
        if (name < length) {
            rule[name] = '\0';
            status = cow_keep_add(keep, rule, rule + name + 1);
        } else
            status =
                cow_error(COW_USAGE, "'%s' does not say what is kept: write it as last:20,daily:7,within:30d", rule);
        free(rule);
        if (status < 0 || text[length] == '\0')
            return status;
        text += length + 1;
    }
}

bool cow_keep_is_empty(const cow_keep *keep)
{
    bool some = keep->within;

    for (size_t i = 0; i < COW_KEEP_COUNTS; i++)
        some = some || keep->count[i] > 0;
    return !some;
}

/* ---- which ---- */

typedef struct version {
    int64_t time;
    size_t place;
} version;

/* The newest first. */
static int by_time(const void *a, const void *b)
{
    const version *x = a, *y = b;

    return x->time != y->time ? (x->time < y->time) - (x->time > y->time)
                              : (x->place < y->place) - (x->place > y->place);
}

static int64_t floor_divided(int64_t number, int64_t by)
{
    return number / by - (number % by < 0);
}

/* The hour, day ... of local time that TIME is in, counted. When clocks are set back an hour comes twice: as one. */
static int64_t period(int64_t time, cow_keep_rule rule)
{
    time_t seconds = (time_t)floor_divided(time, SECOND);
    struct tm tm = {0};

    if (localtime_r(&seconds, &tm) == NULL)
        gmtime_r(&seconds, &tm);
    struct tm same = tm;
    int64_t clock = timegm(&same); /* what the clock on the wall shows, as if it were UTC */
    switch (rule) {
    case COW_KEEP_HOURLY:
        return floor_divided(clock, 3600);
    case COW_KEEP_DAILY:
        return floor_divided(clock, 86400);
    case COW_KEEP_WEEKLY: /* 1970 began on a Thursday */
        return floor_divided(floor_divided(clock, 86400) + 3, 7);
    case COW_KEEP_MONTHLY:
        return (int64_t)tm.tm_year * 12 + tm.tm_mon;
    case COW_KEEP_YEARLY:
        return tm.tm_year;
    case COW_KEEP_LAST:
    case COW_KEEP_WITHIN:
        break;
    }
    return 0;
}

/* Of VERSIONS, the newest first, the newest one of each of the first KEEP->count[RULE] periods. */
static void keep_some(const cow_keep *keep, cow_keep_rule rule, size_t count, const version versions[], uint32_t why[])
{
    uint64_t left = keep->count[rule];
    int64_t former = 0;

    for (size_t i = 0; left > 0 && i < count; i++) {
        int64_t now = rule == COW_KEEP_LAST ? (int64_t)i : period(versions[i].time, rule);
        if (i > 0 && now == former)
            continue;
        former = now;
        why[versions[i].place] |= 1u << rule;
        left--;
    }
}

/* What lies before NEWEST by the duration, in microseconds. */
static int64_t oldest_within(const cow_keep *keep, int64_t newest)
{
    time_t seconds = (time_t)floor_divided(newest, SECOND);
    struct tm tm;

    if (localtime_r(&seconds, &tm) == NULL)
        return INT64_MIN;
    tm.tm_mon -= keep->months;
    tm.tm_mday -= keep->days;
    tm.tm_isdst = -1;
    int64_t from = (keep->months > 0 || keep->days > 0 ? mktime(&tm) : seconds) - (int64_t)keep->hours * 3600;
    return from < INT64_MIN / SECOND ? INT64_MIN : from * SECOND + (newest % SECOND + SECOND) % SECOND;
}

int cow_keep_decide(const cow_keep *keep, size_t count, const int64_t time[], uint32_t why[])
{
    version *versions = calloc(count == 0 ? 1 : count, sizeof *versions);
    size_t there = 0, newest = 0;

    if (versions == NULL)
        return cow_error(COW_MEMORY, "no memory for the times of %zu versions", count);
    for (size_t i = 0; i < count; i++)
        if ((why[i] & COW_KEPT_NOT) == 0) {
            versions[there++] = (version){time[i], i};
            newest = i;
        }
    if (there > 0) {
        why[newest] |= COW_KEPT_NEWEST;
        qsort(versions, there, sizeof *versions, by_time);
        for (cow_keep_rule rule = COW_KEEP_LAST; rule < COW_KEEP_COUNTS; rule++)
            keep_some(keep, rule, there, versions, why);
        int64_t from = oldest_within(keep, versions[0].time);
        for (size_t i = 0; keep->within && i < there && versions[i].time >= from; i++)
            why[versions[i].place] |= 1u << COW_KEEP_WITHIN;
    }
    free(versions);
    return 0;
}
