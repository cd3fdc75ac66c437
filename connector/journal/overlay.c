/* Pages of 4 KiB with a bit for each byte, in a hash table by page number; sorted when somebody wants to go through
 * them. HDF5 writes many small pieces of the same pages, so this stays small where a list of ranges would not.
 * Contract: overlay.h. */
#include "journal/overlay.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define PAGE  4096u
#define WORDS (PAGE / 64) /* as many as a word has bits */

typedef struct overlay_page {
    uint64_t number; /* address / PAGE */
    uint64_t words;  /* a bit for each word of the mask that is not 0 */
    uint64_t mask[WORDS];
    uint8_t bytes[PAGE];
} overlay_page;

struct cow_overlay {
    overlay_page **table; /* open addressing; a power of two entries, at most half used */
    size_t capacity, count;
};

static int no_memory(void)
{
    return cow_error(COW_MEMORY, "no memory for the uncommitted changes of a file");
}

static size_t place(const cow_overlay *overlay, uint64_t number)
{
    size_t i = (size_t)((number * 0x9e3779b97f4a7c15u) >> 32) & (overlay->capacity - 1);

    while (overlay->table[i] != NULL && overlay->table[i]->number != number)
        i = (i + 1) & (overlay->capacity - 1);
    return i;
}

static const overlay_page *find(const cow_overlay *overlay, uint64_t number)
{
    return overlay->count == 0 ? NULL : overlay->table[place(overlay, number)];
}

static int grow(cow_overlay *overlay)
{
    cow_overlay larger = {.capacity = overlay->capacity == 0 ? 16 : overlay->capacity * 2, .count = overlay->count};

    if ((larger.table = calloc(larger.capacity, sizeof *larger.table)) == NULL)
        return no_memory();
    for (size_t i = 0; i < overlay->capacity; i++)
        if (overlay->table[i] != NULL)
            larger.table[place(&larger, overlay->table[i]->number)] = overlay->table[i];
    free(overlay->table);
    *overlay = larger;
    return 0;
}

static overlay_page *page_for(cow_overlay *overlay, uint64_t number)
{
    size_t i;

    if (overlay->count * 2 >= overlay->capacity && grow(overlay) < 0)
        return NULL;
    i = place(overlay, number);
    if (overlay->table[i] == NULL) {
        if ((overlay->table[i] = malloc(sizeof(overlay_page))) == NULL) {
            no_memory();
            return NULL;
        }
        overlay->table[i]->number = number;
        overlay->table[i]->words = 0;
        memset(overlay->table[i]->mask, 0, sizeof overlay->table[i]->mask);
        overlay->count++;
    }
    return overlay->table[i];
}

static bool has(const overlay_page *page, size_t i)
{
    return page->mask[i / 64] >> (i % 64) & 1;
}

static void mark(overlay_page *page, size_t from, size_t to)
{
    while (from < to) {
        size_t bit = from % 64, n = 64 - bit < to - from ? 64 - bit : to - from;

        page->words |= (uint64_t)1 << from / 64;
        page->mask[from / 64] |= (n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1) << bit;
        from += n;
    }
}

/* The end of the run of bytes that are there (or not: HAVE) from I on, at most END. */
static size_t run_end(const overlay_page *page, size_t i, size_t end, bool have)
{
    while (i < end) {
        uint64_t word = have ? ~page->mask[i / 64] : page->mask[i / 64];

        word >>= i % 64;
        if (word != 0) {
            i += (size_t)__builtin_ctzll(word);
            break;
        }
        i += 64 - i % 64;
        if (!have && i < end) { /* most pages have a few bytes here and there */
            const uint64_t words = page->words >> i / 64;

            i = words == 0 ? end : i + 64 * (size_t)__builtin_ctzll(words);
        }
    }
    return i < end ? i : end;
}

cow_overlay *cow_overlay_new(void)
{
    cow_overlay *overlay = calloc(1, sizeof *overlay);

    if (overlay == NULL)
        no_memory();
    return overlay;
}

void cow_overlay_clear(cow_overlay *overlay)
{
    for (size_t i = 0; i < overlay->capacity; i++)
        free(overlay->table[i]);
    free(overlay->table);
    memset(overlay, 0, sizeof *overlay);
}

void cow_overlay_free(cow_overlay *overlay)
{
    if (overlay == NULL)
        return;
    cow_overlay_clear(overlay);
    free(overlay);
}

bool cow_overlay_empty(const cow_overlay *overlay)
{
    return overlay->count == 0;
}

int cow_overlay_write(cow_overlay *overlay, uint64_t address, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;

    while (size > 0) {
        size_t at = (size_t)(address % PAGE), n = PAGE - at < size ? PAGE - at : size;
        overlay_page *page = page_for(overlay, address / PAGE);

        if (page == NULL)
            return -1;
        memcpy(page->bytes + at, from, n);
        mark(page, at, at + n);
        from += n;
        address += n;
        size -= n;
    }
    return 0;
}

void cow_overlay_read(const cow_overlay *overlay, uint64_t address, void *buffer, size_t size)
{
    uint8_t *to = buffer;

    if (overlay->count == 0)
        return;
    while (size > 0) {
        size_t at = (size_t)(address % PAGE), n = PAGE - at < size ? PAGE - at : size;
        const overlay_page *page = find(overlay, address / PAGE);

        for (size_t i = at, next; page != NULL && i < at + n; i = next)
            if (has(page, i)) {
                next = run_end(page, i, at + n, true);
                memcpy(to + (i - at), page->bytes + i, next - i);
            } else
                next = run_end(page, i, at + n, false);
        to += n;
        address += n;
        size -= n;
    }
}

static bool all_of(const cow_overlay *overlay, uint64_t address, uint64_t size, bool have)
{
    while (size > 0) {
        size_t at = (size_t)(address % PAGE), n = PAGE - at < size ? PAGE - at : (size_t)size;
        const overlay_page *page = find(overlay, address / PAGE);

        if (page == NULL ? have : run_end(page, at, at + n, have) != at + n)
            return false;
        address += n;
        size -= n;
    }
    return true;
}

bool cow_overlay_touches(const cow_overlay *overlay, uint64_t address, uint64_t size)
{
    /* a huge range: rather go through what is there */
    if (size / PAGE > overlay->capacity) {
        for (size_t i = 0; i < overlay->capacity; i++) {
            const overlay_page *page = overlay->table[i];
            uint64_t start = page == NULL ? 0 : page->number * PAGE;

            if (page == NULL || start + PAGE <= address || start >= address + size)
                continue;
            size_t from = start < address ? (size_t)(address - start) : 0;
            size_t to = start + PAGE > address + size ? (size_t)(address + size - start) : PAGE;
            if (run_end(page, from, to, false) != to)
                return true;
        }
        return false;
    }
    return !all_of(overlay, address, size, false);
}

bool cow_overlay_covers(const cow_overlay *overlay, uint64_t address, uint64_t size)
{
    return all_of(overlay, address, size, true);
}

static int by_number(const void *a, const void *b)
{
    const overlay_page *x = *(overlay_page *const *)a, *y = *(overlay_page *const *)b;

    return (x->number > y->number) - (x->number < y->number);
}

int cow_overlay_each(const cow_overlay *overlay, cow_overlay_visitor visit, void *context)
{
    const overlay_page **list;
    size_t count = 0;
    int status = 0;

    if (overlay->count == 0)
        return 0;
    if ((list = malloc(overlay->count * sizeof *list)) == NULL)
        return no_memory();
    for (size_t i = 0; i < overlay->capacity; i++)
        if (overlay->table[i] != NULL)
            list[count++] = overlay->table[i];
    qsort(list, count, sizeof *list, by_number);
    for (size_t p = 0; p < count && status == 0; p++)
        for (size_t i = 0, next; i < PAGE && status == 0; i = next) {
            bool have = has(list[p], i);

            next = run_end(list[p], i, PAGE, have);
            if (have)
                status = visit(context, list[p]->number * PAGE + i, list[p]->bytes + i, next - i);
        }
    free(list);
    return status;
}

static int take(void *context, uint64_t address, const uint8_t *bytes, size_t size)
{
    return cow_overlay_write(context, address, bytes, size);
}

int cow_overlay_merge(cow_overlay *to, const cow_overlay *from)
{
    return cow_overlay_each(from, take, to);
}
