/* Which versions of a file are kept, as a policy says it: the rules of restic's `forget`
 * (https://restic.readthedocs.io/en/stable/060_forget.html). A version is kept when any of them keeps it. Numbers and times
 * only; nobody is asked for the time of day. */
#ifndef COW_KEEP_H
#define COW_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cow_keep_rule {
    COW_KEEP_LAST,   /* the newest N versions */
    COW_KEEP_HOURLY, /* the newest version of each of the last N hours in which there are some; of local time */
    COW_KEEP_DAILY,
    COW_KEEP_WEEKLY, /* weeks begin on Mondays */
    COW_KEEP_MONTHLY,
    COW_KEEP_YEARLY,
    COW_KEEP_WITHIN, /* those that are not older than the newest one by more than a duration */
} cow_keep_rule;
#define COW_KEEP_COUNTS COW_KEEP_WITHIN /* rules before it have a number */

typedef struct cow_keep {
    uint64_t count[COW_KEEP_COUNTS]; /* 0: there is no such rule */
    bool within;
    int months, days, hours; /* of local time; hours have 3600 seconds */
} cow_keep;

/* "last", "hourly" ... "within". */
extern const char *const cow_keep_names[COW_KEEP_COUNTS + 1];

/* One rule more: NAME is one of these, VALUE a number from 1, or of `within` a duration: "2y5m7d3h", "2 weeks". -1: the error;
 * also where KEEP has that rule. */
int cow_keep_add(cow_keep *keep, const char *name, const char *value);
/* All of a policy, which has one rule at least: "last:20,daily:7,within:30d"; a plus is as good as a comma. */
int cow_keep_parse(const char *text, cow_keep *keep);
bool cow_keep_is_empty(const cow_keep *keep);

/* Why a version is kept: bits, 1u << COW_KEEP_..., and these, of which the last takes a version out of all rules. */
#define COW_KEPT_NEWEST (1u << 7)
#define COW_KEPT_TAGGED (1u << 8)  /* given */
#define COW_KEPT_NAMED  (1u << 9)  /* given: somebody wants it */
#define COW_KEPT_NOT    (1u << 10) /* given: it is gone already */

/* COUNT versions in the order of commits, committed at TIME, in microseconds since 1970 UTC. WHY has the bits that are given, and
 * gets all others; 0: the version is not kept. The newest one is the last that is not gone; of versions of one hour, the one with
 * the latest time, and of equal times the one that was committed last. -1: no memory. */
int cow_keep_decide(const cow_keep *keep, size_t count, const int64_t time[], uint32_t why[]);

#endif
