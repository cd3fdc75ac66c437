/* Contract: pages.h. A page has one place it can be at; what was there goes. */
#include "journal/pages.h"

#include <stdlib.h>
#include <string.h>

#define PAGE ((size_t)4096)
/* 512 KiB at most. A session of some datasets reads about fifty pages. */
#define PLACES 128
/* What is longer is read as it is: contents, which are read once. */
#define LONGEST (PAGE / 2)

struct cow_pages {
    uint64_t number[PLACES]; /* address / PAGE, where it is full */
    bool full[PLACES];
    uint8_t *bytes[PLACES]; /* NULL: none so far */
};

cow_pages *cow_pages_new(void)
{
    return calloc(1, sizeof(cow_pages));
}

void cow_pages_free(cow_pages *pages)
{
    if (pages == NULL)
        return;
    for (size_t i = 0; i < PLACES; i++)
        free(pages->bytes[i]);
    free(pages);
}

/* Page NUMBER, read if need be. NULL: cannot. */
static const uint8_t *page(cow_pages *pages, cow_pages_reader *read, const void *context, uint64_t number)
{
    size_t i = (size_t)(number % PLACES);
    ssize_t there;

    if (pages->full[i] && pages->number[i] == number)
        return pages->bytes[i];
    pages->full[i] = false;
    if (pages->bytes[i] == NULL && (pages->bytes[i] = malloc(PAGE)) == NULL)
        return NULL;
    if ((there = read(context, number * PAGE, pages->bytes[i], PAGE)) < 0)
        return NULL;
    memset(pages->bytes[i] + there, 0, PAGE - (size_t)there);
    pages->number[i] = number;
    pages->full[i] = true;
    return pages->bytes[i];
}

bool cow_pages_read(cow_pages *pages, cow_pages_reader *read, const void *context, uint64_t address, void *buffer,
                    size_t size)
{
    uint8_t *to = buffer;

    if (size > LONGEST)
        return false;
    while (size > 0) {
        size_t at = (size_t)(address % PAGE), n = PAGE - at < size ? PAGE - at : size;
        const uint8_t *from = page(pages, read, context, address / PAGE);

        if (from == NULL)
            return false;
        memcpy(to, from + at, n);
        to += n;
        address += n;
        size -= n;
    }
    return true;
}

void cow_pages_forget(cow_pages *pages, uint64_t address, uint64_t size)
{
    uint64_t first = address / PAGE, last;

    if (size == 0)
        return;
    last = (size - 1 < UINT64_MAX - address ? address + size - 1 : UINT64_MAX) / PAGE;
    if (last - first >= PLACES) {
        memset(pages->full, 0, sizeof pages->full);
        return;
    }
    for (uint64_t number = first; number <= last; number++)
        if (pages->number[number % PLACES] == number)
            pages->full[number % PLACES] = false;
}
