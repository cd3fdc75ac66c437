/* Heap arrays: see heap.h.
 *
 *    no entry --write--> dirty entry, its slot holds the chunk --cow_heap_store--> clean entry, slot = the index's
 *    no entry --read, verified--> clean entry, slot = the index's; what parts of were read has its content (content.h)
 *
 * Until it is stored, a chunk's slot has a row with a hash that no content has. Storing gives it the true row, or gives
 * the slot back where another one has the content already.
 */
#include "io/heap.h"

#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"
#include "io/chunk_cache.h"
#include "io/content.h"
#include "io/convert.h"
#include "io/plan.h"
#include "io/serial.h"
#include "io/stored.h"
#include "layout/layout.h"
#include "native/datatype.h"
#include "native/native.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <stdlib.h>
#include <string.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

static void *raw_data(const cow_array *array)
{
    return cow_native_chunk_store_dataset(cow_pool_store(array->pool));
}

static uint64_t chunk_elements(const cow_array *array)
{
    return array->chunk_bytes / array->element_size;
}

/* The slot of CHUNK, or COW_HOLE. */
static int slot_in_index(cow_array *array, const uint64_t chunk[], uint64_t *slot)
{
    char place[COW_PLACE_SIZE];

    if (cow_index_get(array->index, chunk, slot) < 0)
        return -1;
    return *slot != COW_HOLE && cow_is_composed(*slot)
               ? cow_error(
                     COW_CORRUPT,
                     "%s: the chunk at %s is said to be composed of pieces, as none of such elements is; run h5cow "
                     "verify on the file; an older version may still have the chunk",
                     array->label, cow_array_chunk_place(array, chunk, place))
               : 0;
}

/* ---- elements of a slot, through HDF5 ---- */

/* raw_data's dataspace with the elements of PART selected in SLOT; SINGLY: those of a whole chunk, one by one. */
static hid_t select_part(const cow_array *array, uint64_t slot, const cow_heap_part *part, bool singly)
{
    unsigned rank = array->grid.rank;
    hsize_t start[COW_MAX_RANK], count[COW_MAX_RANK], *point = NULL;
    hid_t space = cow_native_dataset_space(raw_data(array));
    herr_t status;

    if (space < 0)
        return H5I_INVALID_HID;
    if (part->first != NULL && !singly) {
        for (unsigned d = 0; d < rank; d++) {
            start[d] = part->first[d];
            count[d] = part->count[d];
        }
        start[0] += slot * array->grid.chunk[0];
        status = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    } else {
        if ((point = malloc(part->elements * rank * sizeof *point)) == NULL) {
            cow_error(COW_MEMORY, "%s: no memory for a selection", array->label);
            H5Sclose(space);
            return H5I_INVALID_HID;
        }
        for (uint64_t i = 0; i < part->elements; i++) {
            uint64_t place = singly ? i : part->place[i];
            for (unsigned d = rank; d-- > 0;) {
                point[i * rank + d] = place % array->grid.chunk[d];
                place /= array->grid.chunk[d];
            }
            point[i * rank] += slot * array->grid.chunk[0];
        }
        status = H5Sselect_elements(space, H5S_SELECT_SET, part->elements, point);
        free(point);
    }
    if (status < 0) {
        cow_error_native("%s: cannot select elements of a pool", array->label);
        H5Sclose(space);
        return H5I_INVALID_HID;
    }
    return space;
}

/* Would HDF5 lose members that MEM_TYPE does not name? It begins a whole chunk with zeros where its elements have the same
 * size in memory, as if all bytes were written, but not where they are selected one by one (H5D__chunk_write). */
static bool loses_members(const cow_array *array, const cow_heap_part *part, hid_t mem_type)
{
    return part->first != NULL && part->elements == chunk_elements(array) && mem_type != cow_array_type(array) &&
           H5Tget_size(mem_type) == array->file_element_size &&
           H5Tdetect_class(cow_array_type(array), H5T_COMPOUND) != 0 && H5Tequal(mem_type, cow_array_type(array)) <= 0;
}

/* HDF5 calls functions of the program meanwhile: conversions, memory managers, filters. */
static int move_part(const cow_array *array, uint64_t slot, const cow_heap_part *part, hid_t mem_type, hid_t dxpl,
                     bool write, void *packed)
{
    hsize_t n = part->elements;
    bool *moving = cow_native_chunk_store_moving(cow_pool_store(array->pool));
    cow_buffers aside;
    hid_t memory = H5Screate_simple(1, &n, NULL),
          file = select_part(array, slot, part, write && loses_members(array, part, mem_type));
    int status = -1;

    cow_chunk_cache_aside((cow_array *)(uintptr_t)array, true, &aside);
    if (memory < 0)
        cow_error_native("cannot describe a buffer");
    else if (*moving)
        cow_error(COW_UNSUPPORTED,
                  "a function that HDF5 calls while it moves elements of this type cannot move others of it");
    else if (file >= 0) {
        *moving = true;
        status = write ? cow_native_dataset_write(raw_data(array), mem_type, memory, file, dxpl, packed)
                       : cow_native_dataset_read(raw_data(array), mem_type, memory, file, dxpl, packed);
        *moving = false;
    }
    cow_chunk_cache_back(array->cache, &aside);
    if (write)
        cow_native_chunk_store_changed(cow_pool_store(array->pool));
    cow_close(file, memory);
    return status < 0 ? cow_context("%s: HDF5 cannot %s elements of a chunk", array->label, write ? "write" : "read")
                      : 0;
}

/* All elements of a chunk. */
void cow_heap_interrupted(const cow_array *array)
{
    *cow_native_chunk_store_moving(cow_pool_store(array->pool)) = false;
}

static cow_heap_part whole_chunk(const cow_array *array, const uint64_t chunk[])
{
    static const uint64_t origin[COW_MAX_RANK];
    return (cow_heap_part){
        .chunk = chunk, .first = origin, .count = array->grid.chunk, .elements = chunk_elements(array), .whole = true};
}

/* What the lengths in a slot claim, the file has. Filters that only HDF5 knows are its own affair. */
static int check_lengths(const cow_array *array, uint64_t slot)
{
    cow_chunk_store *store = cow_pool_store(array->pool);
    size_t size, whole = cow_array_file_chunk_bytes(array);
    uint64_t sum = 0;
    uint32_t mask;
    cow_lengths *lengths = NULL;
    uint8_t *stored = NULL, *bytes = NULL;
    int status = -1;

    if (!cow_codec_parallel(array->codec))
        return 0;
    if (store->size(store, slot, &size) < 0)
        goto done;
    if ((stored = malloc(size)) == NULL || (bytes = malloc(whole)) == NULL) {
        cow_error(COW_MEMORY, "no memory for a chunk of %zu bytes", whole);
    } else if (store->read(store, slot, stored, size, &mask) == 0 &&
               cow_codec_decode(array->codec, stored, size, mask, bytes) == 0 &&
               (lengths = cow_lengths_open(cow_native_chunk_store_file(store), cow_array_type(array))) != NULL) {
        status = cow_lengths_check(lengths, bytes, chunk_elements(array), &sum);
    }
done:
    cow_lengths_close(lengths);
    free(bytes);
    free(stored);
    return status < 0 ? cow_error_where(array->label, "reading the lengths of elements") : 0;
}

/* The elements of a slot in the array's type, for reclaim() to free. OWN: this process has just written them. */
static void *read_slot(const cow_array *array, const uint64_t chunk[], uint64_t slot, bool own)
{
    cow_heap_part part = whole_chunk(array, chunk);
    void *elements;

    if (!own && check_lengths(array, slot) < 0)
        return NULL;
    if ((elements = calloc(1, array->chunk_bytes)) == NULL) {
        cow_error(COW_MEMORY, "%s: no memory for a chunk of %zu bytes", array->label, array->chunk_bytes);
        return NULL;
    }
    if (move_part(array, slot, &part, cow_array_type(array), DXPL, false, elements) < 0) {
        free(elements);
        return NULL;
    }
    return elements;
}

static void reclaim(const cow_array *array, void *elements)
{
    hsize_t n = chunk_elements(array);
    hid_t space;

    if (elements == NULL)
        return;
    if ((space = H5Screate_simple(1, &n, NULL)) >= 0) {
        H5Treclaim(cow_array_type(array), space, DXPL, elements);
        H5Sclose(space);
    }
    free(elements);
}

/* Zeros, empty, no reference: or no fill value at all. */
static bool fill_is_zeros(const cow_array *array)
{
    const uint8_t *fill = array->fill;
    bool zeros = true;

    for (size_t i = 0; zeros && fill != NULL && i < array->element_size; i++)
        zeros = fill[i] == 0;
    return zeros;
}

/* N elements of fill value; they share what they point to, and are for writing only. */
static void *fill_elements(const cow_array *array, uint64_t n)
{
    uint8_t *elements = calloc(n, array->element_size);

    if (elements == NULL)
        cow_error(COW_MEMORY, "%s: no memory for %zu bytes of fill value", array->label,
                  (size_t)n * array->element_size);
    else if (array->fill != NULL)
        cow_fill_elements(elements, array->fill, array->element_size, n);
    return elements;
}

/* ---- content ---- */

static cow_serial *open_serial(const cow_array *array)
{
    char name[4096] = "";
    size_t length = 0;
    H5VL_file_get_args_t args = {.op_type = H5VL_FILE_GET_NAME};

    args.args.get_name.type = H5I_DATASET;
    args.args.get_name.buf_size = sizeof name;
    args.args.get_name.buf = name;
    args.args.get_name.file_name_len = &length;
    if (H5VLfile_get(raw_data(array), cow_native_id(), &args, DXPL, NULL) < 0) {
        cow_error_native("%s: cannot get the name of the file", array->label);
        return NULL;
    }
    return cow_serial_open(cow_array_type(array), name);
}

/* The checksum of a whole chunk, and with TRIMMED also the hash of that part; SLOT: where it is. */
static int digest_elements(const cow_array *array, const void *elements, const uint64_t trimmed[], uint64_t slot,
                           bool regions, cow_digest *digest)
{
    cow_serial *serial = open_serial(array);
    int status = serial == NULL ? -1
                                : cow_serial_digest(serial, elements, array->element_size, array->grid.rank,
                                                    array->grid.chunk, trimmed, slot, regions, digest);

    cow_serial_close(serial);
    return status;
}

/* Compare ELEMENTS, read from SLOT, with the slot's checksum. */
static int verify_elements(const cow_array *array, const uint64_t chunk[], uint64_t slot, const void *elements)
{
    cow_digest digest;
    cow_slot row;

    if (cow_pool_row(array->pool, slot, &row) < 0 || digest_elements(array, elements, NULL, slot, false, &digest) < 0)
        return -1;
    if (digest.checksum != row.digest.checksum && H5Tdetect_class(cow_array_type(array), H5T_REFERENCE) > 0 &&
        digest_elements(array, elements, NULL, slot, true, &digest) < 0)
        return -1;
    return cow_array_chunk_verify(array, chunk, slot, digest.checksum, row.digest.checksum);
}

/* Is PART one chunk, as it is in memory, so that its content can be told from elements of MEM_TYPE? What HDF5 leaves alone between
 * the members of a compound is not content, and references it may tell otherwise when they are read back. */
static bool is_chunk(const cow_array *array, const cow_heap_part *part, hid_t mem_type)
{
    hid_t type = cow_array_type(array);

    if (part->first == NULL || part->elements != chunk_elements(array))
        return false;
    return (mem_type == type || H5Tequal(mem_type, type) > 0) && H5Tdetect_class(type, H5T_COMPOUND) == 0 &&
           H5Tdetect_class(type, H5T_REFERENCE) == 0;
}

/* Does HDF5 allocate what elements point to? What the program allocates may be one place for all of them. */
static bool allocates(hid_t dxpl)
{
    H5MM_allocate_t allocate = NULL;
    H5MM_free_t release = NULL;
    void *context[2];

    return H5Pget_vlen_mem_manager(dxpl, &allocate, &context[0], &release, &context[1]) >= 0 && allocate == NULL &&
           release == NULL;
}

static void forget_content(cow_cached_chunk *entry)
{
    cow_content_free(entry->content);
    cow_chunk_cache_keep(entry, NULL, 0);
    entry->large = false;
}

/* The slot was verified: a clean entry remembers it. NULL: the error. */
static cow_cached_chunk *note_verified(cow_array *array, const uint64_t chunk[], uint64_t slot)
{
    cow_cached_chunk *entry = cow_chunk_cache_insert(array, chunk, NULL);

    if (entry != NULL && !entry->dirty && entry->slot != slot) {
        forget_content(entry);
        entry->slot = slot;
    }
    return entry;
}

static bool is_verified(cow_array *array, const uint64_t chunk[], uint64_t slot)
{
    const cow_cached_chunk *entry = cow_chunk_cache_find(array, chunk);

    return (entry != NULL && entry->slot == slot) || (array->filtering != NULL && array->filtering->unchecked);
}

/* What SLOT holds, verified, without HDF5. *CONTENT is NULL where only HDF5 can tell that. */
static int read_content(cow_array *array, uint64_t slot, cow_content **content)
{
    cow_slot row;

    if (cow_pool_row(array->pool, slot, &row) < 0)
        return -1;
    *content = cow_content_read(array, slot, row.digest.checksum);
    return 0;
}

/* Verify a slot once. */
static int verify_slot(cow_array *array, const uint64_t chunk[], uint64_t slot)
{
    cow_content *content;
    void *elements;
    int status;

    if (is_verified(array, chunk, slot))
        return 0;
    if (read_content(array, slot, &content) < 0)
        return -1;
    if (content != NULL) {
        cow_content_free(content);
        return note_verified(array, chunk, slot) == NULL ? -1 : 0;
    }
    if ((elements = read_slot(array, chunk, slot, false)) == NULL)
        return -1;
    status = verify_elements(array, chunk, slot, elements);
    reclaim(array, elements);
    return status < 0 || note_verified(array, chunk, slot) == NULL ? -1 : 0;
}

/* A whole chunk that nobody has verified yet, into the program's buffer, and verified there. */
static int read_chunk(cow_array *array, uint64_t slot, const cow_heap_part *part, hid_t mem_type, hid_t dxpl,
                      void *packed)
{
    hsize_t n = part->elements;
    hid_t space;

    if (check_lengths(array, slot) < 0 || move_part(array, slot, part, mem_type, dxpl, false, packed) < 0)
        return -1;
    if (verify_elements(array, part->chunk, slot, packed) == 0 && note_verified(array, part->chunk, slot) != NULL)
        return 0;
    if ((space = H5Screate_simple(1, &n, NULL)) >= 0) {
        H5Treclaim(mem_type, space, dxpl, packed);
        H5Sclose(space);
    }
    memset(packed, 0, n * H5Tget_size(mem_type));
    return -1;
}

/* Elements that are copied out of a chunk's content, which is kept where only a part of it is wanted. 1: HDF5 has to read them. */
static int read_copied(cow_array *array, uint64_t slot, const cow_heap_part *part, void *packed)
{
    cow_cached_chunk *entry = cow_chunk_cache_find(array, part->chunk);
    cow_content *content;
    int status;

    if (entry != NULL && entry->slot == slot && entry->content != NULL)
        return cow_content_copy(array, entry->content, part, packed);
    if (entry != NULL && entry->slot == slot && entry->large && part->elements < chunk_elements(array))
        return 1;
    if (read_content(array, slot, &content) < 0)
        return -1;
    if (content == NULL)
        return 1;
    entry = note_verified(array, part->chunk, slot);
    status = entry == NULL ? -1 : cow_content_copy(array, content, part, packed);
    if (status == 0 && !entry->dirty && part->elements < chunk_elements(array)) {
        forget_content(entry);
        if (!(entry->large = cow_content_size(content) > cow_chunk_cache_limit(array->cache) / 4)) {
            cow_chunk_cache_keep(entry, content, cow_content_size(content));
            return 0;
        }
    }
    cow_content_free(content);
    return status;
}

/* ---- a copy of the program's elements ---- */

/* What a chunk holds is known without reading it back only if HDF5 was given nothing else: the program may go on changing its
 * elements, and HDF5 may use their place for what it makes of them (H5Pset_modify_write_buf). So HDF5 gets a copy. */
typedef struct own_copy {
    void *elements;     /* NULL: there is none */
    char *room;         /* of what they point to */
    size_t bytes, used; /* of ROOM: all, and by what is pointed to */
    char **strings;     /* for the entry that is held: the pointers once more */
    cow_digest *known;  /* of a whole chunk */
} own_copy;

static void own_free(own_copy *own)
{
    free(own->strings);
    free(own->elements);
    free(own->room);
    free(own->known);
}

/* Bytes that a string or a sequence of numbers points to, and where they are. */
static size_t pointed_at(const cow_part *part, const void *element, const void **bytes)
{
    hvl_t sequence;

    if (part->kind == COW_PART_STRING) {
        memcpy(bytes, element, sizeof *bytes);
        return *bytes == NULL ? 0 : strlen(*bytes) + 1;
    }
    memcpy(&sequence, element, sizeof sequence);
    *bytes = sequence.p;
    return cow_sequence_length(element) * part->inner->size;
}

/* Strings, or sequences of numbers: what all of them point to is one block. Their pointers are read once; a string that grows
 * meanwhile is cut. */
static bool copy_together(own_copy *own, const cow_part *part, uint64_t n, const void *packed)
{
    const uint8_t *from;
    uint8_t *to, *element;
    size_t sum = 0, size;

    if ((own->elements = malloc(n * part->size)) == NULL)
        return false;
    memcpy(own->elements, packed, n * part->size);
    element = own->elements;
    for (uint64_t i = 0; i < n; i++)
        sum += pointed_at(part, element + i * part->size, (const void **)&from);
    own->bytes = sum + n + 1;
    if ((own->room = malloc(own->bytes)) == NULL)
        return false;
    to = (uint8_t *)own->room;
    for (uint64_t i = 0; i < n; i++, element += part->size) {
        size_t room = (size_t)((uint8_t *)own->room + sum + i - to);

        if ((size = pointed_at(part, element, (const void **)&from)) > room)
            size = room;
        if (part->kind == COW_PART_STRING && from != NULL) {
            size_t length = strnlen((const char *)from, room);

            memcpy(to, from, length);
            to[length] = '\0';
            memcpy(element, &to, sizeof to);
            to += length + 1;
        } else if (part->kind == COW_PART_SEQUENCE) {
            hvl_t sequence = {size / part->inner->size, size == 0 ? NULL : to};

            if (size > 0)
                memcpy(to, from, size);
            memcpy(element, &sequence, sizeof sequence);
            to += size;
        }
    }
    own->used = (size_t)(to - (uint8_t *)own->room);
    return true;
}

/* Strings alone. */
static bool copy_strings(own_copy *own, uint64_t n, const void *packed)
{
    static const cow_part string = {.kind = COW_PART_STRING, .size = sizeof(char *)};

    return copy_together(own, &string, n, packed);
}

/* Of a whole chunk, with what it holds, or for the entry that is held; nothing of other types, or where there is no memory. */
static void copy_elements(const cow_array *array, const cow_cached_chunk *entry, const cow_heap_part *part,
                          hid_t mem_type, const void *packed, own_copy *own)
{
    bool whole = is_chunk(array, part, mem_type), copied = false;
    cow_part *type = whole ? cow_parts_open(NULL, mem_type) : NULL;

    if (type != NULL &&
        (type->kind == COW_PART_STRING || (type->kind == COW_PART_SEQUENCE && type->inner->kind == COW_PART_BYTES)))
        copied = copy_together(own, type, part->elements, packed) &&
                 (own->known = malloc(sizeof *own->known)) != NULL &&
                 digest_elements(array, own->elements, array->grid.chunk, entry->slot, false, own->known) == 0;
    else if (!whole && entry->strings != NULL && H5Tequal(mem_type, cow_array_type(array)) > 0 &&
             copy_strings(own, part->elements, packed) &&
             (own->strings = malloc(part->elements * sizeof *own->strings)) != NULL) {
        memcpy(own->strings, own->elements, part->elements * sizeof *own->strings);
        copied = true;
    }
    cow_parts_close(type);
    if (copied)
        return;
    cow_error_clear();
    own_free(own);
    *own = (own_copy){0};
}

/* ---- strings that are written a few at a time ---- */

/* The chunk that was written last, if not as a whole, has its strings in memory too, so that it need not be read back when it is
 * stored. Of each array one: strings are often appended. */
typedef struct cow_strings {
    char **element; /* null, or in one of the blocks: what was written together is in one */
    char **block;
    size_t blocks, room;
    size_t bytes, used; /* of all blocks, and of them by elements */
} cow_strings;

/* Blocks are made one when so much more than half of them is used by nothing. */
#define UNUSED_BYTES ((size_t)64 << 10)

static void strings_free(cow_strings *strings)
{
    if (strings == NULL)
        return;
    for (size_t i = 0; i < strings->blocks; i++)
        free(strings->block[i]);
    free(strings->block);
    free(strings->element);
    free(strings);
}

/* A block of OWN, which it then has no more. */
static bool strings_take(cow_strings *strings, own_copy *own)
{
    if (COW_RESERVE(strings->block, strings->room, strings->blocks, 1) < 0)
        return false;
    strings->block[strings->blocks++] = own->room;
    strings->bytes += own->bytes;
    strings->used += own->used;
    own->room = NULL;
    return true;
}

/* The N elements of a chunk; NULL: there is no memory. */
static cow_strings *strings_open(uint64_t n, const void *elements)
{
    cow_strings *strings = calloc(1, sizeof *strings);
    own_copy own = {0};

    if (strings != NULL && copy_strings(&own, n, elements) && strings_take(strings, &own)) {
        strings->element = own.elements;
        own.elements = NULL;
    } else {
        strings_free(strings);
        strings = NULL;
    }
    own_free(&own);
    return strings;
}

void cow_heap_forget(cow_cached_chunk *entry)
{
    forget_content(entry);
    free(entry->known);
    entry->known = NULL;
    if (entry->array->held == entry)
        entry->array->held = NULL;
    strings_free(entry->strings);
    entry->strings = NULL;
}

/* ENTRY has STRINGS from now on, and the one that had some knows what it holds, as far as that is certain. */
static void hold(cow_cached_chunk *entry, cow_strings *strings)
{
    cow_array *array = entry->array;
    cow_cached_chunk *former = array->held;
    cow_digest *known = former == NULL ? NULL : malloc(sizeof *known);

    if (known != NULL &&
        digest_elements(array, former->strings->element, array->grid.chunk, former->slot, false, known) < 0) {
        cow_error_clear(); /* it is read back */
        free(known);
        known = NULL;
    }
    if (former != NULL) {
        cow_heap_forget(former);
        former->known = known;
    }
    entry->strings = strings;
    array->held = entry;
}

/* What OWN has was written to PART of it. false: there is no memory to know that. */
static bool replace_strings(cow_cached_chunk *entry, const cow_heap_part *part, own_copy *own)
{
    const cow_grid *grid = &entry->array->grid;
    cow_strings *strings = entry->strings, *fewer;
    uint64_t at[COW_MAX_RANK] = {0};

    if (!strings_take(strings, own))
        return false;
    for (uint64_t i = 0; i < part->elements; i++) {
        uint64_t place = part->first == NULL ? part->place[i] : 0;

        for (unsigned d = 0; part->first != NULL && d < grid->rank; d++)
            place = place * grid->chunk[d] + part->first[d] + at[d];
        if (strings->element[place] != NULL)
            strings->used -= strlen(strings->element[place]) + 1;
        strings->element[place] = own->strings[i];
        for (unsigned d = grid->rank; part->first != NULL && d-- > 0 && ++at[d] == part->count[d];)
            at[d] = 0;
    }
    if (strings->bytes / 2 <= strings->used + UNUSED_BYTES)
        return true;
    if ((fewer = strings_open(chunk_elements(entry->array), strings->element)) == NULL)
        return false;
    strings_free(strings);
    entry->strings = fewer;
    return true;
}

/* ---- slots ---- */

/* A slot whose row no chunk will ever match. */
static int take_slot(cow_array *array, uint64_t *slot)
{
    cow_slot row = {0};
    uint64_t number = cow_pool_slots(array->pool);

    memset(row.digest.hash, 0xff, sizeof row.digest.hash);
    memcpy(row.digest.hash + 8, &array, sizeof array);
    memcpy(row.digest.hash + 16, &number, sizeof number);
    for (unsigned d = 0; d < array->grid.rank; d++)
        row.trimmed[d] = (uint32_t)array->grid.chunk[d];
    if (cow_pool_add(array->pool, &row, slot) < 0)
        return -1;
    if (cow_native_chunk_store_reserve(cow_pool_store(array->pool), *slot + 1) < 0) {
        cow_pool_drop(array->pool, *slot);
        return cow_context("%s: making room for a chunk", array->label);
    }
    return 0;
}

/* Are ELEMENTS strings that a chunk can hold: no fill value is shared by them? */
static bool are_strings(const cow_array *array, bool filled)
{
    return H5Tis_variable_str(cow_array_type(array)) > 0 && (!filled || fill_is_zeros(array));
}

/* HDF5 fills a chunk that it does not have yet when it writes a part of it. */
static bool is_filled(const cow_array *array, uint64_t slot)
{
    const hsize_t offset[COW_MAX_RANK] = {slot * array->grid.chunk[0]};

    return fill_is_zeros(array) && cow_native_dataset_lacks_chunk(raw_data(array), offset);
}

/* What a slot of its own holds before PART is written to it: nothing needed, the chunk as it was, or fill value. *STRINGS: that,
 * where it can be held. */
static int prepare_slot(cow_array *array, const cow_heap_part *part, uint64_t old, uint64_t slot, cow_strings **strings)
{
    cow_heap_part all = whole_chunk(array, part->chunk);
    uint64_t trimmed[COW_MAX_RANK];
    bool covered =
        part->whole && H5Tdetect_class(cow_array_type(array), H5T_COMPOUND) == 0; /* else members may be left out */
    void *elements;
    int status;

    cow_array_chunk_trimmed(array, part->chunk, trimmed);
    if (covered && memcmp(trimmed, array->grid.chunk, array->grid.rank * sizeof *trimmed) == 0)
        return 0;
    if (old == COW_HOLE || covered) {
        if ((elements = fill_elements(array, all.elements)) == NULL)
            return -1;
        status = is_filled(array, slot) ? 0 : move_part(array, slot, &all, cow_array_type(array), DXPL, true, elements);
        if (status == 0 && are_strings(array, true))
            *strings = strings_open(all.elements, elements);
        free(elements);
        return status;
    }
    if ((elements = read_slot(array, part->chunk, old, false)) == NULL)
        return -1;
    status = verify_elements(array, part->chunk, old, elements) < 0 ||
                     cow_native_references_lend(cow_array_type(array), all.elements, elements) < 0
                 ? -1
                 : move_part(array, slot, &all, cow_array_type(array), DXPL, true, elements);
    if (status == 0 && are_strings(array, false))
        *strings = strings_open(all.elements, elements);
    reclaim(array, elements);
    return status;
}

/* The dirty entry of a chunk: its slot may be written. */
static cow_cached_chunk *own_slot(cow_array *array, const cow_heap_part *part)
{
    cow_cached_chunk *entry = cow_chunk_cache_find(array, part->chunk);
    cow_strings *strings = NULL;
    uint64_t old, slot;

    if (entry != NULL && entry->dirty) {
        free(entry->known);
        entry->known = NULL;
        return entry;
    }
    if (slot_in_index(array, part->chunk, &old) < 0 || take_slot(array, &slot) < 0)
        return NULL;
    entry =
        prepare_slot(array, part, old, slot, &strings) < 0 ? NULL : cow_chunk_cache_insert(array, part->chunk, NULL);
    if (entry == NULL || entry->dirty) { /* dirty: a filter of the program wrote there meanwhile */
        strings_free(strings);
        cow_pool_drop(array->pool, slot);
        return entry;
    }
    entry->slot = slot;
    forget_content(entry);
    cow_chunk_cache_dirty(entry);
    if (strings != NULL)
        hold(entry, strings);
    return entry;
}

/* HDF5 failed in the middle of writing to it. Where it made no chunk, there is nothing to store. */
static void half_written(cow_cached_chunk *entry)
{
    cow_array *array = entry->array;
    cow_error_held *held = cow_error_hold();

    cow_heap_forget(entry);
    if (is_filled(array, entry->slot)) {
        cow_pool_drop(array->pool, entry->slot);
        cow_chunk_cache_remove(entry);
    }
    cow_error_put_back(held);
}

/* ---- the door ---- */

static int read_fill(const cow_array *array, hid_t mem_type, hid_t dxpl, uint64_t n, void *packed)
{
    if (!fill_is_zeros(array)) {
        cow_buffers aside;
        int status;

        cow_chunk_cache_aside((cow_array *)(uintptr_t)array, false, &aside);
        status = cow_conversion_fill(cow_array_type(array), array->fill, mem_type, dxpl, n, packed);
        cow_chunk_cache_back(array->cache, &aside);
        return status;
    }
    memset(packed, 0, n * H5Tget_size(mem_type)); /* zero, empty, and no reference, in any type */
    return 0;
}

int cow_heap_read(cow_array *array, const cow_heap_part *part, hid_t mem_type, hid_t dxpl, void *packed)
{
    cow_cached_chunk *entry = cow_chunk_cache_find(array, part->chunk);
    uint64_t slot;
    int status;

    if (entry != NULL && entry->dirty) {
        slot = entry->slot;
    } else {
        if (slot_in_index(array, part->chunk, &slot) < 0)
            return cow_error_where(array->label, "looking for a chunk");
        if (slot == COW_HOLE)
            return read_fill(array, mem_type, dxpl, part->elements, packed);
        if (array->filtering == NULL && cow_content_serves(array, mem_type, dxpl) &&
            (status = read_copied(array, slot, part, packed)) != 1)
            return status;
        if (is_chunk(array, part, mem_type) && allocates(dxpl) && !is_verified(array, part->chunk, slot))
            return read_chunk(array, slot, part, mem_type, dxpl, packed);
        if (verify_slot(array, part->chunk, slot) < 0)
            return -1;
    }
    return move_part(array, slot, part, mem_type, dxpl, false, packed);
}

/* Points may name an element twice. HDF5 would remove what it held twice from a heap, and may fail at that: the last one counts. 1: ONCE
 * is PART without the others, its places and *PACKED are the caller's to free; 0: there are none; -1. */
static int without_doubles(const cow_array *array, const cow_heap_part *part, size_t size, const void *packed,
                           cow_heap_part *once, void **packed_once)
{
    uint64_t n = part->place == NULL ? 0 : part->elements, doubles = 0, *place = NULL;
    uint8_t *seen = n < 2 ? NULL : calloc(1, chunk_elements(array) / 8 + 1), *dropped = NULL;
    int status = -1;

    if (n < 2)
        return 0;
    if (seen == NULL || (dropped = calloc(1, n)) == NULL)
        goto done;
    for (uint64_t i = n; i-- > 0;) {
        uint64_t at = part->place[i];
        dropped[i] = seen[at / 8] >> at % 8 & 1;
        doubles += dropped[i];
        seen[at / 8] |= (uint8_t)(1u << at % 8);
    }
    status = 0;
    if (doubles == 0)
        goto done;
    status = -1;
    if ((place = malloc((n - doubles) * sizeof *place)) == NULL ||
        (*packed_once = malloc((n - doubles) * size)) == NULL) {
        free(place);
        goto done;
    }
    *once = *part;
    once->place = place;
    once->elements = 0;
    for (uint64_t i = 0; i < n; i++)
        if (!dropped[i]) {
            memcpy((uint8_t *)*packed_once + once->elements * size, (const uint8_t *)packed + i * size, size);
            place[once->elements++] = part->place[i];
        }
    status = 1;
done:
    free(seen);
    free(dropped);
    return status < 0 ? cow_error(COW_MEMORY, "%s: no memory for a selection", array->label) : status;
}

static int write_part(cow_array *array, const cow_heap_part *part, hid_t mem_type, hid_t dxpl, const void *packed)
{
    cow_cached_chunk *entry = own_slot(array, part);
    own_copy own = {0};
    int status;

    if (entry == NULL)
        return -1;
    copy_elements(array, entry, part, mem_type, packed, &own);
    status = move_part(array, entry->slot, part, mem_type, dxpl, true,
                       own.elements != NULL ? own.elements : (void *)(uintptr_t)packed);
    entry = cow_chunk_cache_find(array, part->chunk); /* again: functions of the program were called */
    if (entry == NULL || !entry->dirty)
        ;
    else if (status < 0)
        half_written(entry);
    else if (own.strings == NULL || entry->strings == NULL || !replace_strings(entry, part, &own)) {
        cow_heap_forget(entry);
        entry->known = own.known;
        own.known = NULL;
    }
    own_free(&own);
    return status;
}

int cow_heap_write(cow_array *array, const cow_heap_part *part, hid_t mem_type, hid_t dxpl, const void *packed)
{
    cow_heap_part once = {0};
    void *packed_once = NULL;
    int status = without_doubles(array, part, H5Tget_size(mem_type), packed, &once, &packed_once);

    if (status == 0)
        return write_part(array, part, mem_type, dxpl, packed);
    if (status < 0)
        return -1;
    status = write_part(array, &once, mem_type, dxpl, packed_once);
    free((void *)(uintptr_t)once.place);
    free(packed_once);
    return status;
}

int cow_heap_cut(cow_array *array, const uint64_t chunk[])
{
    cow_heap_part part = whole_chunk(array, chunk);
    uint64_t trimmed[COW_MAX_RANK], *place = NULL, inside = 1, n = 0;
    void *elements = NULL;
    cow_cached_chunk *entry;
    int status = -1;

    cow_array_chunk_trimmed(array, chunk, trimmed);
    for (unsigned d = 0; d < array->grid.rank; d++)
        inside *= trimmed[d];
    if ((place = malloc((part.elements - inside + 1) * sizeof *place)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for a selection", array->label);
    for (uint64_t i = 0; i < part.elements; i++) {
        uint64_t rest = i;
        bool in = true;

        for (unsigned d = array->grid.rank; d-- > 0; rest /= array->grid.chunk[d])
            in = in && rest % array->grid.chunk[d] < trimmed[d];
        if (!in)
            place[n++] = i;
    }
    part.whole = false;
    if ((elements = fill_elements(array, n)) == NULL || (entry = own_slot(array, &part)) == NULL)
        goto done;
    cow_heap_forget(entry);
    part = (cow_heap_part){.chunk = chunk, .place = place, .elements = n};
    if ((status = move_part(array, entry->slot, &part, cow_array_type(array), DXPL, true, elements)) < 0)
        half_written(entry);
done:
    free(elements);
    free(place);
    return status;
}

/* What a dirty chunk holds. */
static int digest_entry(const cow_array *array, const cow_cached_chunk *entry, const uint64_t trimmed[],
                        cow_digest *digest)
{
    void *elements;
    int status;

    if (entry->known != NULL && memcmp(trimmed, array->grid.chunk, array->grid.rank * sizeof *trimmed) == 0) {
        *digest = *entry->known;
        return 0;
    }
    if (entry->strings != NULL)
        return digest_elements(array, entry->strings->element, trimmed, entry->slot, false, digest);
    if ((elements = read_slot(array, entry->chunk, entry->slot, true)) == NULL)
        return -1;
    status = digest_elements(array, elements, trimmed, entry->slot, false, digest);
    reclaim(array, elements);
    return status;
}

/* Give a dirty chunk its place in the pool: the slot it had, a known one, or its own. */
static int store_entry(cow_array *array, cow_cached_chunk *entry)
{
    uint64_t trimmed[COW_MAX_RANK], old, slot = COW_NO_SLOT;
    cow_slot row = {0}, old_row;
    int status = -1;

    cow_array_chunk_trimmed(array, entry->chunk, trimmed);
    for (unsigned d = 0; d < array->grid.rank; d++)
        row.trimmed[d] = (uint32_t)trimmed[d];
    if (digest_entry(array, entry, trimmed, &row.digest) < 0 || slot_in_index(array, entry->chunk, &old) < 0)
        goto done;
    if (old != COW_HOLE) {
        if (cow_pool_row(array->pool, old, &old_row) < 0)
            goto done;
        if (memcmp(old_row.digest.hash, row.digest.hash, COW_HASH_SIZE) == 0)
            slot = old;
    }
    if (slot == COW_NO_SLOT) {
        if (cow_pool_find(array->pool, &row.digest, &slot) < 0)
            goto done;
        if (slot == COW_NO_SLOT) {
            slot = entry->slot;
            cow_pool_use(array->pool, slot);
        }
        if (cow_stored_set(array, entry->chunk, slot) < 0) {
            cow_pool_drop(array->pool, slot);
            goto done;
        }
        /* Only now: a slot that others can find must not be written any more. */
        if (slot == entry->slot && cow_pool_set_row(array->pool, slot, &row) < 0)
            goto done;
    }
    cow_pool_drop(array->pool, entry->slot); /* the entry's use; the index has its own */
    entry->slot = slot;
    cow_heap_forget(entry);
    cow_chunk_cache_clean(entry);
    status = 0;
done:
    return status < 0 ? cow_context("%s: storing a chunk", array->label) : 0;
}

int cow_heap_fill(cow_array *array, const uint64_t chunk[])
{
    cow_heap_part part = whole_chunk(array, chunk);
    void *elements = fill_elements(array, part.elements);
    cow_cached_chunk *entry;
    int status = -1;

    if (elements != NULL && (entry = own_slot(array, &part)) != NULL) {
        cow_heap_forget(entry);
        if (move_part(array, entry->slot, &part, cow_array_type(array), DXPL, true, elements) < 0)
            half_written(entry);
        else
            status = store_entry(array, entry);
    }
    free(elements);
    return status;
}

int cow_heap_store(cow_array *array)
{
    while (array->dirty != NULL)
        if (store_entry(array, array->dirty) < 0)
            return -1;
    return 0;
}
