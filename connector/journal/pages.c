/* Contract: pages.h. A page has one place it can be at; what was there goes. */
#include "journal/pages.h"

#include <stdlib.h>
#include <string.h>

#define PAGE ((size_t)4096)
/* 512 KiB at most. A session of some datasets reads about fifty pages. */
#define PLACES 128
/* What is longer is read as it is, and written: contents, which are met once. To copy a page costs less than a call. */
#define LONGEST_READ (PAGE / 2)
#define LONGEST_PUT  PAGE
/* Pages that are written in one call. */
#define TOGETHER 16

/* Of the bytes, those from FROM to TO are not in the file yet; the others are known where the page is FULL. */
typedef struct place {
    uint64_t number; /* address / PAGE */
    uint8_t *bytes;  /* NULL: none so far */
    uint16_t from, to;
    bool full;
} place;

struct cow_pages {
    const cow_pages_file *file;
    size_t waiting; /* places that have what is not in the file */
    uint64_t end;   /* of what was written */
    bool frozen;
    place place[PLACES];
    uint8_t *together; /* room for TOGETHER pages, while one function works; NULL: not needed so far */
};

cow_pages *cow_pages_new(const cow_pages_file *file, uint64_t end)
{
    cow_pages *pages = calloc(1, sizeof *pages);

    if (pages != NULL) {
        pages->file = file;
        pages->end = end;
    }
    return pages;
}

void cow_pages_free(cow_pages *pages)
{
    if (pages == NULL)
        return;
    for (size_t i = 0; i < PLACES; i++)
        free(pages->place[i].bytes);
    free(pages->together);
    free(pages);
}

void cow_pages_freeze(cow_pages *pages)
{
    pages->frozen = true;
}

static bool waits(const place *p)
{
    return p->from < p->to;
}

static bool holds(const place *p, uint64_t number)
{
    return p->number == number && (p->full || waits(p));
}

static place *place_of(cow_pages *pages, uint64_t number)
{
    return &pages->place[number % PLACES];
}

/* Page NUMBER, if something of it waits; else NULL. */
static const place *waiting_at(cow_pages *pages, uint64_t number)
{
    const place *p = place_of(pages, number);

    return p->number == number && waits(p) ? p : NULL;
}

static void is_written(cow_pages *pages, place *p)
{
    p->from = p->to = 0;
    pages->waiting--;
}

/* NULL: no memory. */
static uint8_t *together(cow_pages *pages)
{
    if (pages->together == NULL)
        pages->together = malloc(TOGETHER * PAGE);
    return pages->together;
}

/* What waits in P, and in the pages before and behind it as far as it follows each other. */
static int write_back(cow_pages *pages, const void *context, place *p)
{
    uint64_t first = p->number, last = p->number, address;
    const place *next;
    const uint8_t *bytes;
    size_t size = 0;

    while (last - first + 1 < TOGETHER && first > 0 && place_of(pages, first)->from == 0 &&
           (next = waiting_at(pages, first - 1)) != NULL && next->to == PAGE)
        first--;
    while (last - first + 1 < TOGETHER && last < UINT64_MAX / PAGE && place_of(pages, last)->to == PAGE &&
           (next = waiting_at(pages, last + 1)) != NULL && next->from == 0)
        last++;
    if (first == last || together(pages) == NULL) {
        first = last = p->number;
        bytes = p->bytes + p->from;
        size = (size_t)(p->to - p->from);
    } else {
        bytes = pages->together;
        for (uint64_t number = first; number <= last; number++) {
            const place *one = place_of(pages, number);

            memcpy(pages->together + size, one->bytes + one->from, (size_t)(one->to - one->from));
            size += (size_t)(one->to - one->from);
        }
    }
    address = first * PAGE + place_of(pages, first)->from;
    if (pages->file->write(context, address, bytes, size) < 0)
        return -1;
    cow_pages_reach(pages, address + size);
    for (uint64_t number = first; number <= last; number++)
        is_written(pages, place_of(pages, number));
    return 0;
}

/* Page NUMBER with its place to itself, and memory. NULL: cannot. */
static place *take_place(cow_pages *pages, const void *context, uint64_t number)
{
    place *p = place_of(pages, number);

    if (holds(p, number))
        return p;
    if (waits(p) && write_back(pages, context, p) < 0)
        return NULL;
    p->full = false;
    p->number = number;
    if (p->bytes == NULL)
        p->bytes = malloc(PAGE);
    return p->bytes == NULL ? NULL : p;
}

/* Page NUMBER, read if need be. NULL: cannot. */
static const uint8_t *page(cow_pages *pages, const void *context, uint64_t number)
{
    place *p = take_place(pages, context, number);
    uint8_t *to;
    ssize_t there;

    if (p == NULL || p->full)
        return p == NULL ? NULL : p->bytes;
    if ((to = waits(p) ? together(pages) : p->bytes) == NULL ||
        (there = pages->file->read(context, number * PAGE, to, PAGE)) < 0)
        return NULL;
    memset(to + there, 0, PAGE - (size_t)there);
    if (waits(p)) {
        memcpy(p->bytes, to, p->from);
        memcpy(p->bytes + p->to, to + p->to, PAGE - p->to);
    }
    p->full = true;
    return p->bytes;
}

bool cow_pages_read(cow_pages *pages, const void *context, uint64_t address, void *buffer, size_t size)
{
    uint8_t *to = buffer;

    if (size > LONGEST_READ || pages->frozen)
        return false;
    while (size > 0) {
        size_t at = (size_t)(address % PAGE), n = PAGE - at < size ? PAGE - at : size;
        const uint8_t *from = page(pages, context, address / PAGE);

        if (from == NULL)
            return false;
        memcpy(to, from + at, n);
        to += n;
        address += n;
        size -= n;
    }
    return true;
}

/* Bytes of one page, from AT on. */
static int put(cow_pages *pages, const void *context, uint64_t number, size_t at, const uint8_t *bytes, size_t size)
{
    place *p = take_place(pages, context, number);

    if (p == NULL)
        return -1;
    if (waits(p) && (at > p->to || at + size < p->from) && write_back(pages, context, p) < 0)
        return -1;
    memcpy(p->bytes + at, bytes, size);
    if (!waits(p)) {
        pages->waiting++;
        p->from = (uint16_t)at;
        p->to = (uint16_t)(at + size);
        return 0;
    }
    p->from = at < p->from ? (uint16_t)at : p->from;
    p->to = at + size > p->to ? (uint16_t)(at + size) : p->to;
    return 0;
}

bool cow_pages_take(const cow_pages *pages, size_t size)
{
    return size <= LONGEST_PUT && !pages->frozen;
}

int cow_pages_put(cow_pages *pages, const void *context, uint64_t address, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;

    for (size_t n; size > 0; from += n, address += n, size -= n) {
        const size_t at = (size_t)(address % PAGE);

        n = PAGE - at < size ? PAGE - at : size;
        if (put(pages, context, address / PAGE, at, from, n) < 0)
            return -1;
    }
    return 0;
}

/* Calls VISIT with each place that has something of SIZE bytes from ADDRESS, which are of its page those from FROM to TO. Non-zero ends it, and is
 * returned. */
typedef int visitor(cow_pages *pages, void *context, place *p, size_t from, size_t to);
static int each(cow_pages *pages, uint64_t address, uint64_t size, visitor *visit, void *context)
{
    const uint64_t last = size == 0                         ? address
                          : size - 1 < UINT64_MAX - address ? address + size - 1
                                                            : UINT64_MAX,
                   first = address / PAGE;
    int status = 0;

    if (size == 0)
        return 0;
    for (size_t i = 0, n = last / PAGE - first < PLACES ? (size_t)(last / PAGE - first) + 1 : PLACES;
         status == 0 && i < n; i++) {
        place *p = place_of(pages, first + i);

        if ((p->full || waits(p)) && p->number >= first && p->number <= last / PAGE)
            status = visit(pages, context, p, p->number == first ? (size_t)(address % PAGE) : 0,
                           p->number == last / PAGE ? (size_t)(last % PAGE) + 1 : PAGE);
    }
    return status;
}

typedef struct given {
    uint64_t address;
    uint8_t *bytes;
} given;

static int copy_waiting(cow_pages *pages, void *context, place *p, size_t from, size_t to)
{
    const given *g = context;

    (void)pages;
    from = from < p->from ? p->from : from;
    to = to < p->to ? to : p->to;
    if (from < to)
        memcpy(g->bytes + (p->number * PAGE + from - g->address), p->bytes + from, to - from);
    return 0;
}

void cow_pages_overlay(cow_pages *pages, uint64_t address, void *buffer, size_t size)
{
    if (pages->waiting > 0)
        each(pages, address, size, copy_waiting, &(given){address, buffer});
}

static int settle_place(cow_pages *pages, void *context, place *p, size_t from, size_t to)
{
    return from < p->to && p->from < to ? write_back(pages, context, p) : 0;
}

int cow_pages_settle(cow_pages *pages, const void *context, uint64_t address, uint64_t size)
{
    return pages->waiting == 0 || pages->frozen ? 0
                                                : each(pages, address, size, settle_place, (void *)(uintptr_t)context);
}

uint64_t cow_pages_end(const cow_pages *pages)
{
    return pages->end;
}

void cow_pages_reach(cow_pages *pages, uint64_t end)
{
    if (pages->end < end)
        pages->end = end;
}

void cow_pages_cut(cow_pages *pages, uint64_t end)
{
    pages->end = end;
}

static int forget_place(cow_pages *pages, void *context, place *p, size_t from, size_t to)
{
    (void)context;
    p->full = false;
    if (!waits(p) || from >= p->to || to <= p->from)
        return 0;
    if (from <= p->from)
        p->from = to < p->to ? (uint16_t)to : p->to;
    else
        p->to = (uint16_t)from; /* and what is behind, which nobody forgets so */
    if (!waits(p))
        is_written(pages, p);
    return 0;
}

void cow_pages_forget(cow_pages *pages, uint64_t address, uint64_t size)
{
    each(pages, address, size, forget_place, NULL);
}
