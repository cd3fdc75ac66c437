/* Content of chunks: see content.h. HDF5 may have a newer state of a heap in memory than the file has, and a chunk may be damaged:
 * in either case the checksum is another one, and HDF5 reads the chunk, or says what is wrong. */
#include "io/content.h"

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"
#include "io/chunk_cache.h"
#include "io/convert.h"
#include "native/collections.h"
#include "native/datatype.h"
#include "native/native.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define NO_ELEMENT ((uint64_t)1 << 63) /* in `at`: a null pointer */
#define SAFE       ((unsigned)(COW_PART_BYTES | COW_PART_STRING | COW_PART_SEQUENCE | COW_PART_COMPOUND | COW_PART_ARRAY))

struct cow_content {
    size_t inner; /* bytes of an element of a sequence; 0: strings */
    uint8_t *text;
    size_t size, room;
    uint64_t *at; /* of each element where it begins in TEXT; NULL: elements are not copied */
    size_t elements;
};

void cow_content_free(cow_content *content)
{
    if (content == NULL)
        return;
    free(content->text);
    free(content->at);
    free(content);
}

size_t cow_content_size(const cow_content *content)
{
    return sizeof *content + content->room + content->elements * sizeof *content->at;
}

/* ---- from the file ---- */

typedef struct reading {
    cow_collections *collections;
    cow_content *content;
    uint64_t most; /* bytes of text: a file has no more content than bytes */
} reading;

/* Room for SIZE more bytes, or NULL. */
static uint8_t *more(reading *r, size_t size)
{
    cow_content *c = r->content;
    uint8_t *to;

    if (size > r->most - c->size || COW_RESERVE(c->text, c->room, c->size, size) < 0)
        return NULL;
    to = c->text + c->size;
    c->size += size;
    return to;
}

static bool put_text(reading *r, const uint8_t *bytes, size_t size)
{
    uint8_t *to = more(r, 8 + size);

    if (to == NULL)
        return false;
    cow_put64(to, size);
    memcpy(to + 8, bytes, size);
    return true;
}

static bool put_string(reading *r, const uint8_t *stored)
{
    size_t size = cow_get32(stored);
    const uint8_t *text;

    if (cow_collections_null(stored + 4))
        return put_text(r, stored, 0);
    text = cow_collections_object(r->collections, stored + 4, size);
    return text != NULL && put_text(r, text, strnlen((const char *)text, size)); /* what HDF5 reads ends with a zero */
}

static bool put_elements(reading *r, const cow_part *part, size_t count, const uint8_t *stored);

static bool put_sequence(reading *r, const cow_part *inner, const uint8_t *stored)
{
    size_t n = cow_collections_null(stored + 4) ? 0 : cow_get32(stored), size = n * inner->stored;
    const uint8_t *object = n == 0 ? NULL : cow_collections_object(r->collections, stored + 4, size);
    uint8_t *to = n > 0 && object == NULL ? NULL : more(r, 8), *copy;
    bool done;

    if (to == NULL)
        return false;
    cow_put64(to, n);
    if (n == 0)
        return true;
    if (inner->kind == COW_PART_BYTES) {
        if ((to = more(r, size)) != NULL)
            memcpy(to, object, size);
        return to != NULL;
    }
    if ((copy = malloc(size)) == NULL) /* the object does not stay while those are looked for that it names */
        return false;
    memcpy(copy, object, size);
    done = put_elements(r, inner, n, copy);
    free(copy);
    return done;
}

/* false: not to be found so. */
static bool put_elements(reading *r, const cow_part *part, size_t count, const uint8_t *stored)
{
    uint8_t *to;
    bool done = true;

    switch (part->kind) {
    case COW_PART_BYTES:
        if ((to = more(r, count * part->stored)) == NULL)
            return false;
        memcpy(to, stored, count * part->stored);
        return true;
    case COW_PART_ARRAY:
        return put_elements(r, part->inner, count * part->count, stored);
    case COW_PART_STRING:
    case COW_PART_SEQUENCE:
    case COW_PART_COMPOUND:
        break;
    case COW_PART_REFERENCE:
    case COW_PART_OBJECT:
    case COW_PART_REGION:
        return false;
    }
    for (size_t i = 0; done && i < count; i++, stored += part->stored)
        if (part->kind == COW_PART_STRING)
            done = put_string(r, stored);
        else if (part->kind == COW_PART_SEQUENCE)
            done = put_sequence(r, part->inner, stored);
        else
            for (size_t m = 0; done && m < part->inners; m++)
                done = put_elements(r, &part->inner[m], 1, stored + part->inner[m].stored_at);
    return done;
}

/* Strings, or sequences of numbers. */
static bool is_simple(const cow_part *part)
{
    return part->kind == COW_PART_STRING || (part->kind == COW_PART_SEQUENCE && part->inner->kind == COW_PART_BYTES);
}

static bool put_chunk(reading *r, const cow_part *part, size_t n, const uint8_t *stored)
{
    cow_content *c = r->content;

    if (!is_simple(part))
        return put_elements(r, part, n, stored);
    c->inner = part->kind == COW_PART_STRING ? 0 : part->inner->size;
    c->elements = n;
    if ((c->at = malloc(n * sizeof *c->at)) == NULL)
        return false;
    for (size_t i = 0; i < n; i++, stored += part->stored) {
        c->at[i] = c->size | (cow_collections_null(stored + 4) ? NO_ELEMENT : 0);
        if (!(part->kind == COW_PART_STRING ? put_string(r, stored) : put_sequence(r, part->inner, stored)))
            return false;
    }
    return true;
}

/* The bytes of a slot without its filters: borrowed; NULL: they cannot be had. */
static const uint8_t *stored_bytes(cow_array *array, uint64_t slot)
{
    cow_chunk_store *store = cow_pool_store(array->pool);
    uint8_t *stored, *bytes;
    uint32_t mask;
    size_t size;

    if (store->size(store, slot, &size) < 0 ||
        (stored = cow_chunk_cache_scratch(array->cache, COW_BUFFER_ENCODED, size)) == NULL ||
        (bytes = cow_chunk_cache_scratch(array->cache, COW_BUFFER_ROOMS, cow_array_file_chunk_bytes(array))) == NULL ||
        store->read(store, slot, stored, size, &mask) < 0 ||
        cow_codec_decode(array->codec, stored, size, mask, bytes) < 0)
        return NULL;
    return bytes;
}

cow_content *cow_content_read(cow_array *array, uint64_t slot, uint64_t expected)
{
    void *file = cow_native_chunk_store_file(cow_pool_store(array->pool));
    size_t n = array->chunk_bytes / array->element_size;
    cow_error_held *held;
    reading r = {0};
    cow_part *part = NULL;
    const uint8_t *stored;
    bool good = false;

    if (file == NULL || array->filtering != NULL || !cow_codec_parallel(array->codec))
        return NULL;
    held = cow_error_hold();
    if ((r.collections = cow_collections_open(file)) == NULL || (r.content = calloc(1, sizeof *r.content)) == NULL ||
        (part = cow_parts_open(file, cow_array_type(array))) == NULL || (part->kinds & ~SAFE) != 0 ||
        part->stored * n != cow_array_file_chunk_bytes(array) || (stored = stored_bytes(array, slot)) == NULL)
        goto done;
    r.most = cow_collections_end(r.collections);
    r.most = r.most > SIZE_MAX / 4 - 8 * n ? SIZE_MAX / 4 : r.most + 8 * n;
    good = COW_RESERVE(r.content->text, r.content->room, 0, n * 24) == 0 && put_chunk(&r, part, n, stored) &&
           cow_checksum(r.content->text, r.content->size) == expected;
done:
    cow_parts_close(part);
    cow_collections_close(r.collections);
    cow_error_clear();
    cow_error_put_back(held);
    if (good)
        return r.content;
    cow_content_free(r.content);
    return NULL;
}

/* ---- to the program ---- */

/* Are sequences of TYPE sequences of bytes: is_simple, without a walk? */
static bool holds_bytes(hid_t type)
{
    hid_t inner = H5Tget_super(type);
    H5T_class_t class = inner < 0 ? H5T_NO_CLASS : H5Tget_class(inner);
    bool bytes = class != H5T_NO_CLASS && class != H5T_COMPOUND && class != H5T_ARRAY && class != H5T_VLEN &&
                 class != H5T_REFERENCE && (class != H5T_STRING || H5Tis_variable_str(inner) == 0);

    cow_close(inner);
    return bytes;
}

bool cow_content_serves(const cow_array *array, hid_t mem_type, hid_t dxpl)
{
    hid_t type = cow_array_type(array);
    H5MM_allocate_t allocate = NULL;
    H5MM_free_t release = NULL;
    void *context[2];
    H5T_class_t class = H5Tget_class(type);

    if ((class == H5T_STRING ? H5Tis_variable_str(type) <= 0 : class != H5T_VLEN || !holds_bytes(type)) ||
        (mem_type != type && H5Tequal(mem_type, type) <= 0))
        return false;
    return cow_is_default_transfer(dxpl) ||
           (H5Pget_vlen_mem_manager(dxpl, &allocate, &context[0], &release, &context[1]) >= 0 && allocate == NULL &&
            release == NULL && !cow_conversion_transforms(dxpl));
}

/* Element I to TO. Memory is the system's, as HDF5's own is. */
static bool copy_out(const cow_content *content, uint64_t i, uint8_t *to)
{
    const uint8_t *from = content->text + (content->at[i] & ~NO_ELEMENT);
    bool null = (content->at[i] & NO_ELEMENT) != 0;
    uint64_t n = cow_get64(from);
    hvl_t sequence = {0};
    char *string = NULL;

    if (content->inner == 0) {
        if (!null && (string = cow_program_memory((size_t)n + 1)) == NULL)
            return false;
        if (!null) {
            memcpy(string, from + 8, (size_t)n);
            string[n] = '\0';
        }
        memcpy(to, &string, sizeof string);
        return true;
    }
    if (n > 0 && (sequence.p = cow_program_memory((size_t)n * content->inner)) == NULL)
        return false;
    if (n > 0)
        memcpy(sequence.p, from + 8, (size_t)n * content->inner);
    sequence.len = (size_t)n;
    memcpy(to, &sequence, sizeof sequence);
    return true;
}

static void take_back(const cow_content *content, uint8_t *elements, uint64_t n, size_t size)
{
    void *p;

    for (uint64_t i = 0; i < n; i++) {
        memcpy(&p, elements + i * size + (content->inner == 0 ? 0 : offsetof(hvl_t, p)), sizeof p);
        free(p);
    }
    memset(elements, 0, n * size);
}

int cow_content_copy(const cow_array *array, const cow_content *content, const cow_heap_part *part, void *packed)
{
    const cow_grid *grid = &array->grid;
    uint64_t at[COW_MAX_RANK] = {0};
    size_t size = array->element_size;
    uint8_t *to = packed;

    if (content->at == NULL)
        return 1;
    for (uint64_t i = 0; i < part->elements; i++) {
        uint64_t place = part->first == NULL ? part->place[i] : 0;

        for (unsigned d = 0; part->first != NULL && d < grid->rank; d++)
            place = place * grid->chunk[d] + part->first[d] + at[d];
        if (!copy_out(content, place, to + i * size)) {
            take_back(content, to, i, size);
            return cow_error(COW_MEMORY, "%s: no memory for strings or sequences", array->label);
        }
        for (unsigned d = grid->rank; part->first != NULL && d-- > 0 && ++at[d] == part->count[d];)
            at[d] = 0;
    }
    return 0;
}
