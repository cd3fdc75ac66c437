/* Large groups from the bytes of the file, and into it: see dense_file.h. */
#include "native/dense_file.h"

#include "base/error.h"
#include "journal/driver.h"
#include "native/native.h"

#include <stdlib.h>
#include <string.h>

/* The file is read in pieces of so many bytes: what was written by one commit mostly stands together. */
#define WINDOW ((size_t)64 << 10)

typedef struct reading {
    const cow_native_bytes *bytes;
    uint64_t end, at;
    size_t size; /* of what is in the window, from `at` on */
    uint8_t *window;
} reading;

/* In a file whose free space HDF5 keeps, nobody else can give anything back. */
static bool can_be_copied(void *file, cow_native_bytes *bytes)
{
    return cow_native_file_bytes(file, bytes) && !bytes->persists;
}

static int read_window(void *context, uint64_t address, void *bytes, size_t size)
{
    reading *r = context;

    if (size > WINDOW)
        return cow_journal_read(r->bytes->journal, r->bytes->base + address, bytes, size);
    if (address < r->at || address - r->at > r->size || size > r->size - (address - r->at)) {
        const size_t wanted = r->end - address < WINDOW ? (size_t)(r->end - address) : WINDOW;

        r->size = 0;
        if (cow_journal_read(r->bytes->journal, r->bytes->base + address, r->window, wanted) < 0)
            return -1;
        r->at = address;
        r->size = wanted;
    }
    memcpy(bytes, r->window + (address - r->at), size);
    return 0;
}

int cow_dense_read(void *file, uint64_t address, cow_dense **dense)
{
    cow_native_bytes bytes;
    reading r = {0};
    cow_source source = {.context = &r, .read = read_window};
    int status;

    *dense = NULL;
    if (!can_be_copied(file, &bytes))
        return 0;
    if ((r.window = malloc(WINDOW)) == NULL)
        return cow_error(COW_MEMORY, "no memory to copy a group");
    r.bytes = &bytes;
    source.end = r.end = cow_journal_end(bytes.journal) - bytes.base;
    status = cow_dense_parse(&source, address, dense);
    free(r.window);
    return status;
}

static uint64_t take(void *context, uint64_t size, bool at_end)
{
    return cow_bytes_take(context, size, at_end);
}

static int write_bytes(void *context, uint64_t address, const void *bytes, size_t size)
{
    return cow_bytes_write(context, address, bytes, size);
}

int cow_dense_write(void *file, cow_dense *dense, uint64_t *address)
{
    cow_native_bytes bytes;
    const cow_place *offered;
    cow_dense_target target = {.context = &bytes, .allocate = take, .write = write_bytes};

    if (!can_be_copied(file, &bytes))
        return cow_error(COW_UNSUPPORTED, "a group cannot be copied into this file");
    target.has_places = cow_journal_driver_offered(bytes.fileno, &offered) > 0;
    return cow_dense_put(dense, &target, address);
}
