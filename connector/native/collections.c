/* Global heap collections: see collections.h. */
#include "native/collections.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/vector.h"
#include "h5/collection.h"
#include "journal/driver.h"
#include "native/native.h"

#include <stdlib.h>

#define HEADER   COW_COLLECTION_HEADER
#define OBJECT   COW_COLLECTION_OBJECT
#define SMALLEST 4096

/* Larger ones are left to HDF5. */
#define MOST ((size_t)4 << 20)
/* HDF5 puts objects into any of 16 collections that have room. */
#define KEPT 16
/* Objects that are all over a file would be found by reading collections again and again: after so many bytes, and so many more for
 * each object, HDF5 does it, which keeps more of them. */
#define LOADED_MOST   ((uint64_t)64 << 20)
#define LOADED_FOR_IT ((uint64_t)16 << 10)
/* The file is read in pieces of so many bytes: collections mostly follow each other. */
#define WINDOW_LEAST ((size_t)16 << 10)
#define WINDOW_MOST  ((size_t)256 << 10)

typedef struct collection {
    uint64_t address; /* 0: none */
    uint8_t *bytes;
    size_t size, room;
    uint32_t *at;
    size_t count, at_room;
} collection;

struct cow_collections {
    cow_journal *journal;
    uint64_t base, end; /* of HDF5's addresses; of the file */
    collection kept[KEPT];
    unsigned last, next; /* the one that was used last, and the one that goes next */
    uint8_t *window;
    uint64_t window_at; /* in the file */
    size_t window_size, ahead;
    uint64_t loaded, asked; /* bytes of collections; objects */
};

cow_collections *cow_collections_open(void *file)
{
    cow_collections *c;
    cow_native_bytes bytes;

    if (file == NULL || !cow_native_file_bytes(file, &bytes) || (c = calloc(1, sizeof *c)) == NULL)
        return NULL;
    if ((c->window = malloc(WINDOW_MOST)) == NULL) {
        cow_collections_close(c);
        return NULL;
    }
    c->journal = bytes.journal;
    c->base = bytes.base;
    c->end = cow_journal_end(c->journal);
    c->ahead = WINDOW_LEAST;
    return c;
}

void cow_collections_close(cow_collections *collections)
{
    if (collections == NULL)
        return;
    for (unsigned i = 0; i < KEPT; i++) {
        free(collections->kept[i].bytes);
        free(collections->kept[i].at);
    }
    free(collections->window);
    free(collections);
}

uint64_t cow_collections_end(const cow_collections *collections)
{
    return collections->end;
}

/* SIZE bytes at AT of the file, at most as many as a window has. NULL: there are none. */
static const uint8_t *look(cow_collections *c, uint64_t at, size_t size)
{
    uint64_t known = c->window_at + c->window_size;
    size_t wanted;

    if (at > c->end || size > c->end - at)
        return NULL;
    if (at >= c->window_at && at <= known && size <= known - at)
        return c->window + (at - c->window_at);
    /* further on: more is read at once; somewhere else: less */
    c->ahead = c->window_size > 0 && at >= c->window_at && at <= known + c->ahead
                   ? (c->ahead < WINDOW_MOST ? c->ahead * 2 : WINDOW_MOST)
                   : WINDOW_LEAST;
    wanted = c->ahead > size ? c->ahead : size;
    if (wanted > c->end - at)
        wanted = (size_t)(c->end - at);
    c->window_size = 0;
    if (!cow_journal_look(c->journal, at, c->window, wanted))
        return NULL;
    c->window_at = at;
    c->window_size = wanted;
    return c->window;
}

static bool load(cow_collections *c, uint64_t address, collection *to)
{
    uint64_t at = c->base + address;
    const uint8_t *bytes = at < address ? NULL : look(c, at, HEADER);
    uint64_t size = bytes == NULL ? 0 : cow_collection_size(bytes);

    to->address = 0;
    if (bytes == NULL || size < SMALLEST || size > MOST || size > c->end - at ||
        c->loaded > LOADED_MOST + c->asked * LOADED_FOR_IT || COW_RESERVE(to->bytes, to->room, 0, (size_t)size) < 0)
        return false;
    c->loaded += size;
    to->size = (size_t)size;
    if (size <= WINDOW_MOST) {
        if ((bytes = look(c, at, to->size)) == NULL)
            return false;
        memcpy(to->bytes, bytes, to->size);
    } else if (!cow_journal_look(c->journal, at, to->bytes, to->size))
        return false;
    if (!cow_collection_parse(to->bytes, to->size, &to->at, &to->at_room, &to->count))
        return false;
    to->address = address;
    return true;
}

static const collection *find(cow_collections *c, uint64_t address)
{
    if (c->kept[c->last].address == address)
        return &c->kept[c->last];
    for (unsigned i = 0; i < KEPT; i++)
        if (c->kept[i].address == address) {
            c->last = i;
            return &c->kept[i];
        }
    c->last = c->next;
    c->next = (c->next + 1) % KEPT;
    return load(c, address, &c->kept[c->last]) ? &c->kept[c->last] : NULL;
}

const uint8_t *cow_collections_object(cow_collections *collections, const uint8_t id[COW_HEAP_ID], size_t size)
{
    uint64_t address = cow_get64(id);
    uint32_t number = cow_get32(id + 8);
    const collection *c = address == 0 ? NULL : find(collections, address);
    const uint8_t *object;

    collections->asked++;
    if (c == NULL || number == 0 || number >= c->count || c->at[number] == 0)
        return NULL;
    object = c->bytes + c->at[number];
    return cow_get64(object + 8) == size ? object + OBJECT : NULL;
}
