/* Times as people write them. */
#ifndef COW_TIMES_H
#define COW_TIMES_H

#include <stdint.h>
#include <time.h>

/* TEXT is one of
 *   2026-01-31, 2026-01-31T12:00, 2026-01-31 12:00:05, 2026-01-31T12:00:05.25, with Z or +01:00 behind it; else local time
 *   now, today, yesterday, monday ... sunday (the last one before today)
 *   2 hours ago; seconds, minutes, hours, days, weeks, months, years
 * *FIRST and *LAST: the first and the last microsecond since 1970 that it names: of a day all of it, of 12:00 a
 * minute, of 2 hours ago a second. NOW: in seconds. -1: it is none of these. */
int cow_times_parse(const char *text, time_t now, int64_t *first, int64_t *last);

#endif
