/* Contract: times.h. */
#include "base/times.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SECOND ((int64_t)1000000)

/* ".25": its microseconds, and how many of them the last digit stands for. The bytes that were read, -1: not one. */
static int parse_fraction(const char *text, int64_t *microseconds, int64_t *step)
{
    int n = 1;

    *microseconds = 0;
    *step = SECOND;
    for (; isdigit((unsigned char)text[n]) && *step > 1; n++) {
        *step /= 10;
        *microseconds += (text[n] - '0') * *step;
    }
    return n == 1 || isdigit((unsigned char)text[n]) ? -1 : n;
}

/* Behind a date: "T12:00", " 12:00:05", "T12:00:05.25". *STEP: microseconds that the last part stands for. The bytes that were
 * read, 0: there is no such thing; -1: not right. */
static int parse_clock(const char *text, struct tm *tm, int64_t *fraction, int64_t *step)
{
    int n = 0, more = 0;

    if (*text != 'T' && *text != ' ')
        return 0;
    if (sscanf(text + 1, "%2d:%2d%n", &tm->tm_hour, &tm->tm_min, &n) != 2 || n == 0)
        return -1;
    n++;
    *step = 60 * SECOND;
    if (text[n] != ':')
        return n;
    if (sscanf(text + n + 1, "%2d%n", &tm->tm_sec, &more) != 1 || more == 0)
        return -1;
    n += 1 + more;
    *step = SECOND;
    if (text[n] != '.')
        return n;
    more = parse_fraction(text + n, fraction, step);
    return more < 0 ? -1 : n + more;
}

/* "Z", "+01:00"; "": local time. */
static bool parse_zone(const char *text, bool *zone, int64_t *offset)
{
    int hours, minutes, n = 0;
    char sign;

    *zone = true;
    *offset = 0;
    if (strcmp(text, "Z") == 0)
        return true;
    if (sscanf(text, "%c%2d:%2d%n", &sign, &hours, &minutes, &n) == 3 && (sign == '+' || sign == '-') && hours >= 0 &&
        hours < 24 && minutes >= 0 && minutes < 60) {
        *offset = (sign == '+' ? 1 : -1) * ((int64_t)hours * 3600 + minutes * 60);
        return text[n] == '\0';
    }
    *zone = false;
    return *text == '\0';
}

/* mktime would make another day of the 31st of February. A leap second is one. */
static bool is_date(const struct tm *tm)
{
    struct tm day = {.tm_year = tm->tm_year, .tm_mon = tm->tm_mon, .tm_mday = tm->tm_mday};

    return timegm(&day) != -1 && day.tm_mon == tm->tm_mon && day.tm_mday == tm->tm_mday && tm->tm_hour >= 0 &&
           tm->tm_hour < 24 && tm->tm_min >= 0 && tm->tm_min < 60 && tm->tm_sec >= 0 && tm->tm_sec <= 60;
}

static int parse_date(const char *text, int64_t *first, int64_t *last)
{
    struct tm tm = {.tm_isdst = -1}, next;
    int64_t step = 0, offset, fraction = 0;
    int n = 0, clock;
    bool zone;

    if (sscanf(text, "%4d-%2d-%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &n) != 3 || n == 0)
        return -1;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    if ((clock = parse_clock(text + n, &tm, &fraction, &step)) < 0 || !parse_zone(text + n + clock, &zone, &offset))
        return -1;
    if (!is_date(&tm))
        return -1;
    next = tm;
    next.tm_mday++;
    *first = ((int64_t)(zone ? timegm(&tm) : mktime(&tm)) - offset) * SECOND + fraction;
    *last = step > 0 ? *first + step - 1 /* days have not all 24 hours */
                     : ((int64_t)(zone ? timegm(&next) : mktime(&next)) - offset) * SECOND - 1;
    return 0;
}

/* The day that began DAYS before today. */
static int whole_day(time_t now, int days, int64_t *first, int64_t *last)
{
    struct tm tm, next;

    if (localtime_r(&now, &tm) == NULL)
        return -1;
    tm = (struct tm){.tm_year = tm.tm_year, .tm_mon = tm.tm_mon, .tm_mday = tm.tm_mday - days, .tm_isdst = -1};
    next = tm;
    next.tm_mday++;
    *first = (int64_t)mktime(&tm) * SECOND;
    *last = (int64_t)mktime(&next) * SECOND - 1;
    return 0;
}

static int parse_day(const char *text, time_t now, int64_t *first, int64_t *last)
{
    static const char *const names[] = {"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"};
    struct tm today;

    if (strcasecmp(text, "today") == 0)
        return whole_day(now, 0, first, last);
    if (strcasecmp(text, "yesterday") == 0)
        return whole_day(now, 1, first, last);
    for (int d = 0; d < 7; d++)
        if (strcasecmp(text, names[d]) == 0 && localtime_r(&now, &today) != NULL)
            return whole_day(now, (today.tm_wday + 6 - d) % 7 + 1, first, last);
    return -1;
}

/* "2 hours ago" */
static int parse_ago(const char *text, time_t now, int64_t *first, int64_t *last)
{
    static const struct {
        const char *name;
        int seconds, months;
    } unit[] = {{"second", 1, 0},    {"minute", 60, 0}, {"hour", 3600, 0}, {"day", 86400, 0},
                {"week", 604800, 0}, {"month", 0, 1},   {"year", 0, 12}};
    char name[16];
    struct tm tm;
    int count, n = 0;

    if (sscanf(text, "%6d %15[a-zA-Z] ago%n", &count, name, &n) != 2 || n == 0 || text[n] != '\0' || count < 0)
        return -1;
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++) {
        size_t length = strlen(unit[i].name);
        if (strncasecmp(name, unit[i].name, length) != 0 ||
            (name[length] != '\0' && strcasecmp(name + length, "s") != 0))
            continue;
        now -= (time_t)unit[i].seconds * count;
        if (localtime_r(&now, &tm) == NULL)
            return -1;
        tm.tm_mon -= unit[i].months * count;
        tm.tm_isdst = -1;
        *first = (int64_t)(unit[i].months > 0 ? mktime(&tm) : now) * SECOND;
        *last = *first + SECOND - 1;
        return 0;
    }
    return -1;
}

int cow_times_parse(const char *text, time_t now, int64_t *first, int64_t *last)
{
    if (strcasecmp(text, "now") == 0) {
        *first = *last = (int64_t)now * SECOND + SECOND - 1; /* what was done in this second is done */
        return 0;
    }
    if (parse_day(text, now, first, last) == 0 || parse_ago(text, now, first, last) == 0)
        return 0;
    return parse_date(text, first, last);
}
