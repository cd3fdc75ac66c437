/* Elements of a damaged file, chunk by chunk.
 *
 * The index is walked node by node: a bad node costs the chunks below it and no others. A chunk is read through the
 * connector, which compares it with its checksum. Where that fails (tables, index or slot table are damaged), its slot
 * is read natively, and taken when either hash or checksum are right; and where the index is damaged, it is read
 * through the views, which HDF5 follows by itself, and taken when hash or checksum are those of any slot of the pool:
 * then these are elements that were once stored. All else is lost: the fill value, and a line in the report. Of a composed chunk
 * base and pieces are read natively, and those that are right are kept: what is lost is told piece by piece.
 */
#include "salvage.h"

#include "base/ids.h"
#include "library/library.h"
#include "pools.h"

#include "base/bytes.h"
#include "base/error.h"
#include "history/history.h"
#include "io/serial.h"
#include "native/datatype.h"
#include "store/format.h"
#include "store/pieces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE         UINT64_MAX
#define MOST_DOUBTED ((uint64_t)1 << 20) /* chunks that are looked at one by one because the index contradicts itself */

/* ---- what a dataset is ---- */

uint64_t salvage_root(salvage *s, hid_t native)
{
    uint64_t number = 0;

    switch (cli_source(native, &number, NULL)) {
    case CLI_VIEW:
        return number;
    case CLI_HEAD:
        return number < s->dataset_count ? s->datasets[number].root : NONE;
    default:
        H5Eclear2(H5E_DEFAULT);
        return NONE;
    }
}

static bool read_root(salvage *s, uint64_t offset, cow_root *root)
{
    bool good = s->index != NULL && offset != NONE && cow_root_read(s->index, offset, root) == 0;

    cow_error_clear();
    return good;
}

bool salvage_in_chunks(salvage *s, hid_t native)
{
    cow_root root;

    return read_root(s, salvage_root(s, native), &root);
}

hid_t salvage_dcpl(salvage *s, hid_t native)
{
    hid_t dcpl = H5Dget_create_plist(native), space = H5Dget_space(native), raw = H5I_INVALID_HID;
    hsize_t extent[COW_MAX_RANK], most[COW_MAX_RANK], chunk[COW_MAX_RANK];
    const cli_dataset_row *row = NULL;
    uint64_t number = 0;
    cow_root root;
    bool fixed = true, known;
    int kind = dcpl < 0 ? -1 : cli_source(native, &number, NULL), rank;

    if (kind != CLI_VIEW && kind != CLI_HEAD)
        goto done;
    known = read_root(s, salvage_root(s, native), &root);
    if (known && root.dataset < s->dataset_count)
        row = &s->datasets[root.dataset];
    if ((rank = H5Sget_simple_extent_dims(space, extent, most)) < 1)
        goto done;
    for (int d = 0; d < rank; d++) {
        fixed = fixed && extent[d] == most[d];
        chunk[d] = known ? root.chunk[d] : extent[d] == 0 ? 1 : extent[d] < 64 ? extent[d] : 64;
    }
    H5Pset_layout(dcpl, H5D_CONTIGUOUS);
    if (!fixed || row == NULL || row->layout == H5D_CHUNKED) {
        H5Pset_chunk(dcpl, rank, chunk);
        if (known && (row == NULL || !(row->flags & 1)) && (raw = cli_raw_open(&s->file, root.pool)) >= 0) {
            hid_t list = H5Dget_create_plist(raw);
            for (int i = 0, n = list < 0 ? 0 : H5Pget_nfilters(list); i < n; i++) {
                unsigned flags, config, values[64];
                size_t count = 64;
                H5Z_filter_t id = H5Pget_filter2(list, (unsigned)i, &flags, &count, values, 0, NULL, &config);
                if (id >= 0 && count <= 64)
                    H5Pset_filter(dcpl, id, flags, count, values);
            }
            if (list >= 0)
                H5Pclose(list);
            H5Dclose(raw);
        }
    }
    if (row != NULL) {
        H5Pset_alloc_time(dcpl, (H5D_alloc_time_t)row->alloc_time);
        H5Pset_fill_time(dcpl, (H5D_fill_time_t)row->fill_time);
    }
done:
    if (space >= 0)
        H5Sclose(space);
    H5Eclear2(H5E_DEFAULT);
    return dcpl;
}

/* ---- digests of a pool ---- */

typedef struct salvage_digests {
    bool made;
    hid_t raw;          /* H5I_INVALID_HID: cannot be opened */
    cow_digest *digest; /* by slot; zeros where the row cannot be read */
    size_t count, room;
} salvage_digests;

static const salvage_digests *digests_of(salvage *s, uint64_t id)
{
    size_t known = s->digest_room;
    salvage_digests *d;
    cow_table *rows;

    if (id > 1u << 20)
        return NULL;
    CLI_RESERVE(s->digests, s->digest_room, id, 1);
    if (known < s->digest_room)
        memset(s->digests + known, 0, (s->digest_room - known) * sizeof *s->digests);
    d = &s->digests[id];
    if (d->made)
        return d;
    d->made = true;
    d->raw = cli_raw_open(&s->file, id);
    if (d->raw < 0 || (rows = cli_slots_open(&s->file, id, d->raw)) == NULL) {
        cow_error_clear();
        H5Eclear2(H5E_DEFAULT);
        return d;
    }
    uint8_t *row = cli_alloc(1, rows->row_size);
    for (uint64_t i = 0; i < rows->rows; i++) {
        if (rows->read(rows, i, 1, row) < 0)
            memset(row, 0, rows->row_size);
        CLI_RESERVE(d->digest, d->room, d->count, 1);
        memcpy(d->digest[d->count].hash, row + COW_SLOT_HASH_AT, COW_HASH_SIZE);
        d->digest[d->count++].checksum = cow_get64(row + COW_SLOT_CHECKSUM_AT);
    }
    cow_error_clear();
    free(row);
    rows->close(rows);
    return d;
}

void salvage_digests_free(salvage *s)
{
    for (size_t i = 0; i < s->digest_room; i++) {
        if (s->digests[i].made && s->digests[i].raw >= 0)
            H5Dclose(s->digests[i].raw);
        free(s->digests[i].digest);
    }
    free(s->digests);
    s->digests = NULL;
    s->digest_room = 0;
}

/* ---- chunks of a root record ---- */

typedef struct chunk_entry {
    uint64_t slot;
    uint64_t chunk[COW_MAX_RANK]; /* number in the grid */
} chunk_entry;

typedef struct bad_box {
    uint64_t first[COW_MAX_RANK], count[COW_MAX_RANK]; /* chunks */
    char *why;
} bad_box;

typedef struct chunk_list {
    cow_root root;
    cow_grid grid;
    chunk_entry *entry;
    size_t count, room;
    bad_box *box;
    size_t boxes, box_room;
    const char *path; /* of the dataset */
} chunk_list;

static void free_list(chunk_list *l)
{
    free(l->entry);
    for (size_t i = 0; i < l->boxes; i++)
        free(l->box[i].why);
    free(l->box);
}

/* Chunks of the extent along a dimension. */
static uint64_t chunks_along(const cow_root *root, unsigned d)
{
    return cow_grid_chunks_along(root->extent[d], root->chunk[d]);
}

static void add_box(chunk_list *l, const uint64_t first[], const uint64_t span[], const char *why)
{
    bad_box box = {.why = NULL};

    for (unsigned d = 0; d < l->grid.rank; d++) {
        uint64_t end = chunks_along(&l->root, d);
        if (first[d] >= end)
            return;
        box.first[d] = first[d];
        box.count[d] = end - first[d] < span[d] ? end - first[d] : span[d];
    }
    box.why = cli_strdup(why);
    CLI_RESERVE(l->box, l->box_room, l->boxes, 1);
    l->box[l->boxes++] = box;
}

static bool in_extent(const cow_root *root, const uint64_t chunk[])
{
    for (unsigned d = 0; d < root->rank; d++)
        if (chunk[d] >= chunks_along(root, d))
            return false;
    return true;
}

static void walk(salvage *s, chunk_list *l, uint64_t offset, unsigned level, const uint64_t first[])
{
    unsigned rank = l->grid.rank;
    uint64_t span[COW_MAX_RANK], below[COW_MAX_RANK], at[COW_MAX_RANK];
    cow_node *node = cli_alloc(1, sizeof *node); /* not on the stack: the tree may be deep */
    bool right = cow_node_read(s->index, &l->grid, offset, node) == 0;
    char why[1024] = "an index node does not belong where it is named";

    salvage_at(s, l->path); /* work goes on */

    if (!right)
        cli_reason(why, sizeof why);
    right = right && node->level == level && node->pool == l->root.pool;
    for (unsigned d = 0; right && d < rank; d++)
        right = node->origin[d] == first[d];
    cow_grid_span(&l->grid, level, span);
    if (!right) {
        add_box(l, first, span, why);
        free(node);
        return;
    }
    if (level > 0)
        cow_grid_span(&l->grid, level - 1, below);
    for (unsigned i = 0; i < node->entries; i++) {
        uint64_t place[COW_MAX_RANK];
        if (node->entry[i] == COW_HOLE)
            continue;
        if (level > 0)
            cow_grid_child_offset(&l->grid, level, i, place);
        else
            cow_grid_tile_offset(&l->grid, i, place);
        for (unsigned d = 0; d < rank; d++)
            at[d] = first[d] + place[d] * (level > 0 ? below[d] : 1);
        if (level > 0) {
            if (node->entry[i] < offset) /* children stand before their parents: no circles */
                walk(s, l, node->entry[i], level - 1, at);
            else
                add_box(l, at, below, why);
            continue;
        }
        if (!in_extent(&l->root, at))
            continue;
        CLI_RESERVE(l->entry, l->room, l->count, 1);
        l->entry[l->count].slot = node->entry[i];
        memcpy(l->entry[l->count++].chunk, at, sizeof at);
    }
    free(node);
}

static uint64_t key_of(const uint64_t chunk[], unsigned rank)
{
    return cow_checksum(chunk, rank * sizeof *chunk);
}

/* The chunk after this one in the extent. */
static bool next_chunk(const cow_root *root, uint64_t at[])
{
    int d;

    for (d = (int)root->rank - 1; d >= 0 && ++at[d] == chunks_along(root, (unsigned)d); d--)
        at[d] = 0;
    return d >= 0;
}

/* Of the extent; at most one more than MOST_DOUBTED. */
static uint64_t all_chunks(const cow_root *root)
{
    uint64_t all = 1;

    for (unsigned d = 0; d < root->rank; d++) {
        uint64_t along = chunks_along(root, d);
        all = along > 0 && all > MOST_DOUBTED / along ? MOST_DOUBTED + 1 : all * along;
    }
    return all;
}

/* The tree has fewer chunks than the root record says, and no node that cannot be read: what it has for holes may be none. */
static void doubt_holes(salvage *s, chunk_list *l)
{
    uint64_t at[COW_MAX_RANK] = {0}, one[COW_MAX_RANK], all = all_chunks(&l->root);
    cow_map there = {0};
    char why[160];

    snprintf(why, sizeof why, "the root record of its index counts %llu chunks, its tree has %llu",
             (unsigned long long)l->root.chunks, (unsigned long long)l->count);
    if (all > MOST_DOUBTED)
        salvage_lost(s, l->path, NULL, 0, why);
    if (all == 0 || all > MOST_DOUBTED)
        return;
    for (size_t i = 0; i < l->count; i++)
        cli_map_put(&there, key_of(l->entry[i].chunk, l->grid.rank), 1);
    for (unsigned d = 0; d < l->grid.rank; d++)
        one[d] = 1;
    do {
        if (cow_map_at(&there, key_of(at, l->grid.rank)) == NULL)
            add_box(l, at, one, why);
    } while (next_chunk(&l->root, at));
    cow_map_free(&there);
}

/* What the root record at OFFSET says. false: it cannot be read. */
static bool list_chunks(salvage *s, const char *path, uint64_t offset, chunk_list *l)
{
    static const uint64_t origin[COW_MAX_RANK];

    memset(l, 0, sizeof *l);
    l->path = path;
    if (!read_root(s, offset, &l->root))
        return false;
    cow_grid_init(&l->grid, l->root.rank, l->root.chunk, l->root.maximum);
    if (l->root.top != COW_NO_NODE && l->root.level <= COW_MAX_LEVEL)
        walk(s, l, l->root.top, l->root.level, origin);
    if (l->boxes == 0 && l->count < l->root.chunks)
        doubt_holes(s, l);
    return true;
}

/* ---- one chunk ---- */

typedef struct filling {
    salvage *s;
    const salvage_object *object;
    const chunk_list *list;
    hid_t through, native, to, type, space;
    bool plain;   /* bytes that can be hashed */
    bool encoded; /* chunks go as they are stored: filters may be lossy */
    bool fills;   /* cow_tree_fills(to) */
    void *fill;   /* one element, or NULL: zeros */
    void *buffer;
    size_t element, room;
} filling;

static uint64_t clip(const cow_root *root, const uint64_t chunk[], hsize_t start[], hsize_t count[])
{
    uint64_t elements = 1;

    for (unsigned d = 0; d < root->rank; d++) {
        start[d] = chunk[d] * root->chunk[d];
        count[d] = root->extent[d] - start[d] < root->chunk[d] ? root->extent[d] - start[d] : root->chunk[d];
        elements *= count[d];
    }
    return elements;
}

static void *room_for(filling *f, size_t size)
{
    cli_reserve(&f->buffer, &f->room, 0, size, 1);
    return f->buffer;
}

/* Close a space, and with ELEMENTS give back what they hold in memory. What HDF5 has told so far of an error stays. */
static void let_go(const filling *f, hid_t space, void *elements)
{
    hid_t stack = cow_errors_take();

    if (elements != NULL && !f->plain)
        cow_reclaim(f->type, space, H5P_DEFAULT, elements);
    H5Sclose(space);
    cow_errors_give_back(stack);
}

/* 0; 1: it cannot be read, or is not what the filters of the new dataset made, WHY. */
static int move_encoded(filling *f, const hsize_t start[], char *why, size_t size)
{
    hsize_t bytes = 0;
    uint32_t mask = 0;
    void *buffer;

    if (H5Dget_chunk_storage_size(f->through, start, &bytes) < 0 || bytes == 0 || bytes > UINT32_MAX ||
        (buffer = room_for(f, bytes)) == NULL || cow_library_read_chunk(f->through, start, &mask, buffer, bytes) < 0 ||
        (f->to >= 0 && cow_tree_write_chunk(f->to, f->fills, mask, start, bytes, buffer) < 0)) {
        cli_reason(why, size);
        return 1;
    }
    return 0;
}

/* A box of elements from one dataset. REFERENCES: they are made to point to the copies. */
static int move_box(filling *f, hid_t from, const hsize_t start[], const hsize_t count[], char *why, size_t size)
{
    unsigned rank = f->list->root.rank;
    hid_t memory = H5Screate_simple((int)rank, count, NULL);
    size_t elements = (size_t)H5Sget_simple_extent_npoints(memory);
    void *buffer = room_for(f, elements * f->element);
    int status = 0;

    memset(buffer, 0, elements * f->element);
    H5Sselect_hyperslab(f->space, H5S_SELECT_SET, start, NULL, count, NULL);
    if (H5Dread(from, f->type, memory, f->space, H5P_DEFAULT, buffer) < 0) {
        cli_reason(why, size);
        let_go(f, memory, NULL);
        return 1;
    }
    if (f->to >= 0 && (cow_tree_references(&f->s->copy, f->type, elements, buffer) < 0 ||
                       H5Dwrite(f->to, f->type, memory, f->space, H5P_DEFAULT, buffer) < 0))
        status = -1;
    let_go(f, memory, buffer);
    return status;
}

static bool digest_of(filling *f, const void *chunk, const uint64_t inside[], cow_digest *digest)
{
    const cow_root *root = &f->list->root;
    cow_serial *serial;
    bool good;

    if (f->plain)
        good = cow_digest_chunk(chunk, root->rank, root->chunk, inside, f->element, digest) == 0;
    else if ((good = (serial = cow_serial_open(f->type, f->s->name)) != NULL)) {
        good = cow_serial_digest(serial, chunk, f->element, root->rank, root->chunk, inside, 0, false, digest) == 0;
        cow_serial_close(serial);
    }
    cow_error_clear();
    return good;
}

/* Between the part of a chunk that is inside the extent, line by line, and the whole chunk, which may be wider. */
static void move_lines(filling *f, uint8_t *chunk, uint8_t *inside, const hsize_t count[], bool into_chunk)
{
    const cow_root *root = &f->list->root;
    size_t line = (size_t)count[root->rank - 1] * f->element;
    uint64_t at[COW_MAX_RANK] = {0};

    for (;; inside += line) {
        uint64_t place = 0;
        int d;
        for (unsigned e = 0; e < root->rank; e++)
            place = place * root->chunk[e] + at[e];
        if (into_chunk)
            memcpy(chunk + place * f->element, inside, line);
        else
            memcpy(inside, chunk + place * f->element, line);
        for (d = (int)root->rank - 2; d >= 0 && ++at[d] == count[d]; d--)
            at[d] = 0;
        if (d < 0)
            return;
    }
}

/* Zeros, or fill values: HDF5 gives them where it finds nothing, or where the file ends. */
static bool may_be_nothing(const filling *f, const uint8_t *elements, const hsize_t count[])
{
    uint64_t total = 1;
    bool zero = true, fill = f->fill != NULL;

    for (unsigned d = 0; d < f->list->root.rank; d++)
        total *= count[d];
    for (uint64_t i = 0; fill && i < total; i++)
        fill = memcmp(elements + i * f->element, f->fill, f->element) == 0;
    for (uint64_t i = 0; zero && i < total * f->element; i++)
        zero = elements[i] == 0;
    return zero || fill;
}

static bool is_digest(const cow_digest *known, const cow_digest *digest)
{
    return known->checksum == digest->checksum || memcmp(known->hash, digest->hash, COW_HASH_SIZE) == 0;
}

/* Are these, the part of a chunk that is inside the extent, the elements that SLOT got? Where that is not known (NONE, of a composed one, or
 * without a row), are they what the pool once got, and not what stands for nothing? */
static bool known_elements(filling *f, void *elements, const hsize_t count[], uint64_t slot)
{
    static const uint8_t no_hash[COW_HASH_SIZE];
    const cow_root *root = &f->list->root;
    const salvage_digests *known = digests_of(f->s, root->pool);
    uint64_t inside[COW_MAX_RANK], total = 1;
    uint8_t *chunk;
    cow_digest digest;
    bool found = false, told;

    if (known == NULL || known->count == 0)
        return false;
    for (unsigned d = 0; d < root->rank; d++) {
        inside[d] = count[d];
        total *= root->chunk[d];
    }
    chunk = cli_alloc(total, f->element);
    for (uint64_t i = 0; f->fill != NULL && i < total; i++)
        memcpy(chunk + i * f->element, f->fill, f->element);
    move_lines(f, chunk, elements, count, true);
    told = slot < known->count && memcmp(known->digest[slot].hash, no_hash, sizeof no_hash) != 0;
    if (!digest_of(f, chunk, inside, &digest))
        found = false;
    else if (told)
        found = is_digest(&known->digest[slot], &digest);
    else if (!may_be_nothing(f, elements, count))
        for (size_t i = 0; !found && i < known->count; i++)
            found = is_digest(&known->digest[i], &digest);
    free(chunk);
    return found;
}

static json_object *selection(unsigned rank, const hsize_t start[], const hsize_t count[])
{
    json_object *what = json_object_new_object();

    json_object_object_add(what, "start", cli_json_dims(rank, (const uint64_t *)start));
    json_object_object_add(what, "count", cli_json_dims(rank, (const uint64_t *)count));
    return what;
}

/* The chunk in SLOT of a pool of WHOLE elements, of which INSIDE were hashed, natively: is it right? CHUNK has room for
 * all. */
static bool read_slot(filling *f, const salvage_digests *known, uint64_t slot, const hsize_t whole[],
                      const uint64_t inside[], uint8_t *chunk)
{
    unsigned rank = f->list->root.rank;
    hsize_t first[COW_MAX_RANK] = {0};
    uint64_t dims[COW_MAX_RANK];
    hid_t space, memory;
    cow_digest digest;
    bool good;

    if (known == NULL || known->raw < 0 || slot >= known->count || slot > UINT64_MAX / whole[0] - 1)
        return false;
    for (unsigned d = 0; d < rank; d++)
        dims[d] = whole[d];
    first[0] = slot * whole[0];
    space = H5Dget_space(known->raw);
    memory = H5Screate_simple((int)rank, whole, NULL);
    good = H5Sselect_hyperslab(space, H5S_SELECT_SET, first, NULL, whole, NULL) >= 0 && H5Sselect_valid(space) > 0 &&
           H5Dread(known->raw, f->type, memory, space, H5P_DEFAULT, chunk) >= 0 &&
           cow_digest_chunk(chunk, rank, dims, inside, f->element, &digest) == 0 &&
           is_digest(&known->digest[slot], &digest);
    cow_error_clear();
    H5Eclear2(H5E_DEFAULT);
    cow_close(memory, space);
    return good;
}

/* How chunks are cut into what the pool of pieces KNOWN has. */
static bool piecing_of(const filling *f, const salvage_digests *known, cow_piecing *cut)
{
    const chunk_list *l = f->list;
    hid_t dcpl = H5I_INVALID_HID, type = H5I_INVALID_HID;
    hsize_t chunk[COW_MAX_RANK];
    uint64_t piece[COW_MAX_RANK];
    bool good = known != NULL && known->raw >= 0 && (dcpl = H5Dget_create_plist(known->raw)) >= 0 &&
                (type = H5Dget_type(known->raw)) >= 0 && H5Tequal(type, f->type) > 0 &&
                H5Pget_chunk(dcpl, COW_MAX_RANK, chunk) == (int)l->root.rank;

    for (unsigned d = 0; good && d < l->root.rank; d++)
        piece[d] = chunk[d];
    good = good && cow_piecing_from(cut, &l->grid, f->element, l->root.rank, piece);
    cow_close(type, dcpl);
    return good;
}

/* Pieces that are lost of a chunk, in WHICH, are told: neighbours along the dimension that is cut as one box. */
static uint64_t tell_pieces(filling *f, const cow_piecing *cut, uint64_t which, const uint64_t chunk[], const char *why)
{
    const cow_root *root = &f->list->root;
    uint64_t lost = 0;

    for (unsigned i = 0; i < cut->count; i++) {
        uint64_t first[COW_MAX_RANK], size[COW_MAX_RANK], next[COW_MAX_RANK], more[COW_MAX_RANK], elements = 1;
        hsize_t start[COW_MAX_RANK], count[COW_MAX_RANK];
        json_object *what;

        if (!(which >> i & 1))
            continue;
        cow_piecing_box(cut, &f->list->grid, i, first, size);
        while (i + 1 < cut->count && (which >> (i + 1) & 1) && (i + 1) % cut->along != 0) {
            cow_piecing_box(cut, &f->list->grid, ++i, next, more);
            size[cut->cut] += more[cut->cut];
        }
        for (unsigned d = 0; d < root->rank; d++) {
            start[d] = chunk[d] * root->chunk[d] + first[d];
            count[d] = start[d] >= root->extent[d]            ? 0
                       : root->extent[d] - start[d] < size[d] ? root->extent[d] - start[d]
                                                              : size[d];
            elements *= count[d];
        }
        if (elements == 0)
            continue;
        what = selection(root->rank, start, count);
        json_object_object_add(what, "chunk", cli_json_dims(root->rank, chunk));
        salvage_lost(f->s, f->object->path, what, elements, why);
        lost += elements;
    }
    return lost;
}

static uint64_t bad_key(const cow_root *root, uint64_t slot)
{
    return root->pool << 40 | (slot & (((uint64_t)1 << 40) - 1));
}

/* A composed chunk without the connector. 0: what is right of it is written, and what is not, *LOST elements, told; 1: nothing of it
 * can be had; -1. */
static int move_composed(filling *f, const uint64_t chunk[], uint64_t entry, const hsize_t start[],
                         const hsize_t count[], uint64_t *lost)
{
    const cow_root *root = &f->list->root;
    uint64_t inside[COW_MAX_RANK], total = 1, piece[COW_MAX_RANK], bad[2] = {0, 0}; /* of the base, of pieces */
    hsize_t whole[COW_MAX_RANK], part[COW_MAX_RANK];
    cow_composed composed;
    cow_piecing cut;
    uint8_t *bytes, *one;
    bool based, hole;
    int status = 1;

    if (!f->plain || cow_composed_read(f->s->index, root->rank, entry, root->pool, chunk, &composed) < 0) {
        cow_error_clear();
        return 1;
    }
    if (!piecing_of(f, digests_of(f->s, composed.piece_pool), &cut) ||
        (cut.count < COW_PIECES && composed.own >> cut.count != 0))
        return 1;
    for (unsigned d = 0; d < root->rank; d++) {
        whole[d] = root->chunk[d];
        inside[d] = count[d];
        part[d] = piece[d] = cut.piece[d];
        total *= root->chunk[d];
    }
    bytes = cli_alloc(total, f->element);
    one = cli_alloc(total, f->element);
    hole = composed.base == COW_HOLE; /* the rest is fill value */
    based = !hole && read_slot(f, digests_of(f->s, root->pool), composed.base, whole, inside, bytes);
    if (!based)
        memset(bytes, 0, total * f->element);
    for (uint64_t i = 0; !based && f->fill != NULL && i < total; i++)
        memcpy(bytes + i * f->element, f->fill, f->element);
    for (unsigned i = 0; i < cut.count; i++) {
        size_t offset, size;

        cow_piecing_place(&cut, i, &offset, &size);
        if (!(composed.own >> i & 1))
            bad[0] |= based || hole ? 0 : (uint64_t)1 << i;
        else if (read_slot(f, digests_of(f->s, composed.piece_pool), composed.slot[i], part, piece, one))
            memcpy(bytes + offset, one, size);
        else {
            bad[1] |= (uint64_t)1 << i;
            for (size_t at = 0; at < size; at += f->element)
                if (f->fill != NULL)
                    memcpy(bytes + offset + at, f->fill, f->element);
                else
                    memset(bytes + offset + at, 0, f->element);
        }
    }
    if (based || hole || bad[1] != composed.own) {
        hid_t memory = H5Screate_simple((int)root->rank, count, NULL);

        move_lines(f, bytes, one, count, false);
        H5Sselect_hyperslab(f->space, H5S_SELECT_SET, start, NULL, count, NULL);
        status = f->to >= 0 && H5Dwrite(f->to, f->type, memory, f->space, H5P_DEFAULT, one) < 0 ? -1 : 0;
        let_go(f, memory, NULL);
        if (status == 0) {
            *lost =
                tell_pieces(f, &cut, bad[0], chunk, "what is in the slot of its base is not what was stored there") +
                tell_pieces(f, &cut, bad[1], chunk,
                            "what is in the slot of a piece of it is not what was stored there");
            if (bad[0] != 0 || bad[1] != 0)
                cli_map_put(&f->s->bad, bad_key(root, entry), 1);
        }
    }
    free(one);
    free(bytes);
    return status;
}

/* The slot itself, without the connector. 0: right, and written; 1: not; -1. */
static int move_slot(filling *f, uint64_t slot, const hsize_t start[], const hsize_t count[])
{
    const cow_root *root = &f->list->root;
    const salvage_digests *known = digests_of(f->s, root->pool);
    hsize_t first[COW_MAX_RANK] = {0}, whole[COW_MAX_RANK];
    hid_t space, memory, inside;
    uint64_t trimmed[COW_MAX_RANK], total = 1;
    uint8_t *chunk, *part;
    cow_digest digest;
    bool read;
    int status = 1;

    if (known == NULL || known->raw < 0 || slot >= known->count || slot > UINT64_MAX / root->chunk[0] - 1 ||
        cow_type_has(f->type, COW_PART_REFERENCES) != 0)
        return 1;
    for (unsigned d = 0; d < root->rank; d++) {
        whole[d] = root->chunk[d];
        trimmed[d] = count[d];
        total *= root->chunk[d];
    }
    first[0] = slot * root->chunk[0];
    space = H5Dget_space(known->raw);
    memory = H5Screate_simple((int)root->rank, whole, NULL);
    inside = H5Screate_simple((int)root->rank, count, NULL);
    chunk = cli_alloc(total, f->element);
    part = cli_alloc(total, f->element);
    read = H5Sselect_hyperslab(space, H5S_SELECT_SET, first, NULL, whole, NULL) >= 0 && H5Sselect_valid(space) > 0 &&
           H5Dread(known->raw, f->type, memory, space, H5P_DEFAULT, chunk) >= 0;
    if (read && digest_of(f, chunk, trimmed, &digest) && is_digest(&known->digest[slot], &digest)) {
        status = 0;
        move_lines(f, chunk, part, count, false);
        H5Sselect_hyperslab(f->space, H5S_SELECT_SET, start, NULL, count, NULL);
        if (f->to >= 0 && H5Dwrite(f->to, f->type, inside, f->space, H5P_DEFAULT, part) < 0)
            status = -1;
    }
    let_go(f, memory, read ? chunk : NULL);
    let_go(f, inside, NULL);
    let_go(f, space, NULL);
    free(part);
    free(chunk);
    return status;
}

/* Through the views. 0: found, and written; 1: lost; -1. */
static int move_by_view(filling *f, uint64_t slot, const hsize_t start[], const hsize_t count[])
{
    hid_t memory;
    size_t elements;
    void *buffer;
    bool read;
    int status = 1;

    if (!f->plain && cow_type_has(f->type, COW_PART_REFERENCES) != 0) /* their content is not known from their bytes */
        return 1;
    memory = H5Screate_simple((int)f->list->root.rank, count, NULL);
    elements = (size_t)H5Sget_simple_extent_npoints(memory);
    buffer = room_for(f, elements * f->element);
    memset(buffer, 0, elements * f->element);
    H5Sselect_hyperslab(f->space, H5S_SELECT_SET, start, NULL, count, NULL);
    read = H5Dread(f->native, f->type, memory, f->space, H5P_DEFAULT, buffer) >= 0;
    if (read && known_elements(f, buffer, count, slot))
        status = f->to >= 0 && H5Dwrite(f->to, f->type, memory, f->space, H5P_DEFAULT, buffer) < 0 ? -1 : 0;
    let_go(f, memory, read ? buffer : NULL);
    return status;
}

/* What stands where nothing can be read. */
static int write_fill(filling *f, const hsize_t start[], const hsize_t count[])
{
    hid_t memory;
    size_t elements;
    uint8_t *buffer;
    int status;

    if (f->to < 0 || !f->object->kept) /* a new dataset has nothing there yet */
        return 0;
    memory = H5Screate_simple((int)f->list->root.rank, count, NULL);
    elements = (size_t)H5Sget_simple_extent_npoints(memory);
    buffer = room_for(f, elements * f->element);
    memset(buffer, 0, elements * f->element);
    for (size_t i = 0; f->fill != NULL && i < elements; i++)
        memcpy(buffer + i * f->element, f->fill, f->element);
    H5Sselect_hyperslab(f->space, H5S_SELECT_SET, start, NULL, count, NULL);
    status = H5Dwrite(f->to, f->type, memory, f->space, H5P_DEFAULT, buffer) < 0 ? -1 : 0;
    let_go(f, memory, NULL);
    return status;
}

/* SLOT NONE: the index does not say. *LOST: elements. */
static int move_chunk(filling *f, const uint64_t chunk[], uint64_t slot, const char *index_why, uint64_t *lost)
{
    const cow_root *root = &f->list->root;
    uint64_t elements;
    hsize_t start[COW_MAX_RANK], count[COW_MAX_RANK];
    char why[1024];
    int status = 1;

    *lost = 0;
    elements = clip(root, chunk, start, count);
    /* a composed chunk as elements, of which the connector stores what differs: encoded it would be another whole one */
    if (slot != NONE && f->through >= 0)
        status = f->encoded && !cow_is_composed(slot) ? move_encoded(f, start, why, sizeof why)
                                                      : move_box(f, f->through, start, count, why, sizeof why);
    else
        snprintf(why, sizeof why, "%s", slot == NONE ? index_why : "what is in its slot is not what was stored there");
    if (status == 1 && slot != NONE)
        status = cow_is_composed(slot) ? move_composed(f, chunk, slot, start, count, lost)
                                       : move_slot(f, slot, start, count);
    if (status == 1)
        status = move_by_view(f, slot, start, count);
    if (status == 1) {
        json_object *what = selection(root->rank, start, count);
        json_object_object_add(what, "chunk", cli_json_dims(root->rank, chunk));
        if (slot != NONE) {
            cli_map_put(&f->s->bad, bad_key(root, slot), 1);
            salvage_lost(f->s, f->object->path, what, elements, why);
        } else
            json_object_put(what); /* told with its box, or by the caller */
        *lost = elements;
        status = write_fill(f, start, count);
    }
    if (status < 0 && f->s->copy.why[0] == '\0')
        cow_tree_failed(&f->s->copy, "the dataset", f->object->path); /* now: the reason is gone in the next line */
    H5Eclear2(H5E_DEFAULT);
    return status;
}

/* ---- what the index does not say ---- */

static int next_in(const bad_box *box, unsigned rank, uint64_t at[])
{
    int d;

    for (d = (int)rank - 1; d >= 0 && ++at[d] == box->first[d] + box->count[d]; d--)
        at[d] = box->first[d];
    return d >= 0;
}

/* All chunks of a box that a bad node covers. Told as one selection where all is lost, else chunk by chunk. */
static int move_bad_box(filling *f, const bad_box *box)
{
    const cow_root *root = &f->list->root;
    hsize_t start[COW_MAX_RANK], count[COW_MAX_RANK];
    uint64_t at[COW_MAX_RANK], lost, all_lost = 0, all = 1;
    chunk_entry *gone = NULL;
    size_t gone_count = 0, gone_room = 0;
    int status = 0;

    memcpy(at, box->first, sizeof at);
    do {
        if ((status = move_chunk(f, at, NONE, box->why, &lost)) < 0)
            goto done;
        if (lost > 0) {
            CLI_RESERVE(gone, gone_room, gone_count, 1);
            memcpy(gone[gone_count++].chunk, at, sizeof at);
            all_lost += lost;
        }
    } while (next_in(box, root->rank, at));
    for (unsigned d = 0; d < root->rank; d++) {
        uint64_t end = (box->first[d] + box->count[d]) * root->chunk[d];
        start[d] = box->first[d] * root->chunk[d];
        count[d] = (end < root->extent[d] ? end : root->extent[d]) - start[d];
        all *= count[d];
    }
    if (all_lost == all)
        salvage_lost(f->s, f->object->path, selection(root->rank, start, count), all, box->why);
    else
        for (size_t i = 0; i < gone_count; i++) {
            uint64_t elements = clip(root, gone[i].chunk, start, count);
            json_object *what = selection(root->rank, start, count);
            json_object_object_add(what, "chunk", cli_json_dims(root->rank, gone[i].chunk));
            salvage_lost(f->s, f->object->path, what, elements, box->why);
        }
done:
    free(gone);
    return status;
}

/* ---- all of a dataset ---- */

/* Is the whole chunk inside both extents? */
static bool whole_in_both(const cow_root *a, const cow_root *b, const uint64_t chunk[])
{
    for (unsigned d = 0; d < a->rank; d++)
        if (chunk[d] >= a->extent[d] / a->chunk[d] || chunk[d] >= b->extent[d] / a->chunk[d])
            return false;
    return true;
}

/* Nothing is known of what the dataset in the new file holds: nothing is to be left of it. */
static int empty(filling *f)
{
    hsize_t none[COW_MAX_RANK] = {0}, extent[COW_MAX_RANK], start[COW_MAX_RANK], count[COW_MAX_RANK];
    const cow_root *root = &f->list->root;
    hid_t dcpl = H5Dget_create_plist(f->to);
    bool chunked = dcpl >= 0 && H5Pget_layout(dcpl) == H5D_CHUNKED;
    uint64_t all = 1;
    bad_box box = {.why = NULL};
    int status = 0;

    if (dcpl >= 0)
        H5Pclose(dcpl);
    for (unsigned d = 0; d < root->rank; d++) {
        extent[d] = root->extent[d];
        all *= box.count[d] = chunks_along(root, d);
    }
    if (chunked)
        return H5Dset_extent(f->to, none) < 0 || H5Dset_extent(f->to, extent) < 0 ? -1 : 0;
    if (all > 0)
        do {
            clip(root, box.first, start, count);
            status = write_fill(f, start, count);
        } while (status == 0 && next_chunk(root, box.first));
    return status;
}

static int move_chunks(filling *f, const chunk_list *former)
{
    const chunk_list *l = f->list;
    cow_map before = {0}, now = {0};
    uint64_t lost;
    int status = 0;

    for (size_t i = 0; former != NULL && i < former->count; i++)
        cli_map_put(&before, key_of(former->entry[i].chunk, l->grid.rank), former->entry[i].slot);
    for (size_t i = 0; status >= 0 && i < l->count; i++) {
        const chunk_entry *e = &l->entry[i];
        uint64_t key = key_of(e->chunk, l->grid.rank), *slot = cow_map_at(&before, key);
        cli_map_put(&now, key, e->slot);
        if (slot != NULL && *slot == e->slot && whole_in_both(&l->root, &former->root, e->chunk) &&
            cow_map_at(&f->s->bad, bad_key(&l->root, e->slot)) == NULL)
            continue;
        if (salvage_at(f->s, f->object->path))
            break;
        status = move_chunk(f, e->chunk, e->slot, "", &lost);
    }
    for (size_t i = 0; status >= 0 && former != NULL && i < former->count; i++) { /* became holes */
        hsize_t start[COW_MAX_RANK], count[COW_MAX_RANK];
        const uint64_t *chunk = former->entry[i].chunk;
        bool inside = cow_map_at(&now, key_of(chunk, l->grid.rank)) == NULL;
        for (unsigned d = 0; inside && d < l->grid.rank; d++)
            inside = chunk[d] < chunks_along(&l->root, d);
        if (inside) {
            clip(&l->root, chunk, start, count);
            status = write_fill(f, start, count);
        }
    }
    for (size_t i = 0; status >= 0 && i < l->boxes; i++)
        status = move_bad_box(f, &l->box[i]);
    cow_map_free(&before);
    cow_map_free(&now);
    return status < 0 ? -1 : 0;
}

/* What history/sums.c says; HDF5 speaks of checksums of its own, of tables that cannot be read. */
bool salvage_differs(const char *why)
{
    return strstr(why, "not what was written: the checksum differs") != NULL;
}

/* Has the dataset AGAIN the type and extent of FROM? */
static bool alike(hid_t from, hid_t again)
{
    hid_t type[2], space[2];
    bool same = false;

    if (again < 0 || H5Iget_type(again) != H5I_DATASET)
        return false;
    for (int i = 0; i < 2; i++) {
        type[i] = H5Dget_type(i == 0 ? from : again);
        space[i] = H5Dget_space(i == 0 ? from : again);
    }
    if (type[0] >= 0 && type[1] >= 0 && space[0] >= 0 && space[1] >= 0)
        same = H5Tequal(type[0], type[1]) > 0 && H5Sextent_equal(space[0], space[1]) > 0;
    for (int i = 0; i < 2; i++)
        cow_close(space[i], type[i]);
    return same;
}

/* A dataset that HDF5 keeps itself, or one of which nothing is known but what HDF5 shows. FROM the connector, AGAIN the head's
 * (or negative), and NATIVE, for where no checksum can be compared. */
static int move_whole(salvage *s, const salvage_object *object, hid_t from, hid_t again, hid_t native, hid_t to)
{
    hid_t type = H5Dget_type(from), space = H5Dget_space(from), memory = type < 0 ? type : H5Tcopy(type),
          dcpl = H5Dget_create_plist(from);
    uint64_t elements;
    size_t n;
    char why[1024];
    void *buffer = NULL;
    int status = 0;

    if (memory < 0 || space < 0 || dcpl < 0 || cow_space_elements(space, &elements) < 0 || elements == 0)
        goto done;
    if (cow_sum_fits(s->name, s->file.loc, H5VLobject(from), dcpl, memory, space, &n) < 0) { /* then piece by piece */
        cow_error_clear();
        if (to >= 0 && cow_tree_copy_elements(&s->copy, from, to, object->path) < 0) {
            s->copy.why[0] = '\0';
            salvage_lost(s, object->path, NULL, elements, "not all of it can be read");
        }
        goto done;
    }
    buffer = cli_alloc(n, H5Tget_size(memory));
    if (H5Dread(from, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer) < 0) {
        cli_reason(why, sizeof why);
        if (alike(from, again) && H5Dread(again, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer) >= 0)
            from = again;
        else if (from != native && !salvage_differs(why) &&
                 H5Dread(native, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer) >= 0)
            from = native;
        else {
            salvage_lost(s, object->path, NULL, elements, why);
            goto done;
        }
    }
    cow_reclaim(memory, space, H5P_DEFAULT, buffer);
    if (to >= 0)
        status = cow_tree_copy_elements(&s->copy, from, to, object->path);
done:
    free(buffer);
    cow_close(dcpl, memory, space, type);
    return status;
}

static void *fill_of(hid_t native, hid_t type)
{
    hid_t dcpl = H5Dget_create_plist(native);
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    void *fill = NULL;

    if (dcpl >= 0 && H5Pfill_value_defined(dcpl, &defined) >= 0 && defined == H5D_FILL_VALUE_USER_DEFINED) {
        fill = cli_alloc(1, H5Tget_size(type));
        if (H5Pget_fill_value(dcpl, type, fill) < 0) {
            free(fill);
            fill = NULL;
        }
    }
    if (dcpl >= 0)
        H5Pclose(dcpl);
    H5Eclear2(H5E_DEFAULT);
    return fill;
}

static bool has_filters(hid_t dataset)
{
    hid_t dcpl = H5Dget_create_plist(dataset);
    bool found = dcpl >= 0 && H5Pget_layout(dcpl) == H5D_CHUNKED && H5Pget_nfilters(dcpl) > 0;

    if (dcpl >= 0)
        H5Pclose(dcpl);
    return found;
}

static uint64_t elements_of(hid_t dataset)
{
    hid_t space = H5Dget_space(dataset);
    uint64_t elements = 0;

    if (space >= 0) {
        cow_space_elements(space, &elements);
        H5Sclose(space);
    }
    return elements;
}

int salvage_elements(salvage *s, const salvage_object *object, hid_t through, hid_t native, hid_t again, hid_t to)
{
    uint64_t number, offset = salvage_root(s, native);
    int kind = cli_source(native, &number, NULL);
    filling f = {.s = s, .object = object, .through = through, .native = native, .to = to};
    chunk_list list, former = {0};
    bool compare = false;
    hid_t type;
    int status = -1;

    if (kind != CLI_VIEW && kind != CLI_HEAD)
        return move_whole(s, object, through >= 0 ? through : native, again, native, to);
    if (!list_chunks(s, object->path, offset, &list)) {
        salvage_lost(s, object->path, NULL, elements_of(native),
                     kind == CLI_HEAD && offset == NONE ? "the table of datasets does not say where its index is"
                                                        : "the root record of its index is damaged");
        return 0;
    }
    f.list = &list;
    if ((type = H5Dget_type(native)) < 0 || (f.type = H5Tcopy(type)) < 0 || (f.space = H5Dget_space(native)) < 0) {
        salvage_lost(s, object->path, NULL, 0, "its type or extent cannot be read");
        if (type >= 0)
            H5Tclose(type);
        free_list(&list);
        return 0;
    }
    f.element = H5Tget_size(f.type);
    f.plain = cow_type_has(f.type, COW_PART_LENGTHS | COW_PART_REFERENCES) == 0;
    f.encoded = f.plain && through >= 0 && has_filters(through) && (to < 0 || has_filters(to));
    f.fills = f.encoded && to >= 0 && cow_tree_fills(to);
    f.fill = f.plain ? fill_of(native, f.type) : NULL;
    if (object->kept && object->former_root != NONE && !(s->moved && cow_type_has(f.type, COW_PART_REFERENCES) != 0)) {
        compare = list_chunks(s, object->path, object->former_root, &former) && former.boxes == 0 &&
                  former.root.rank == list.root.rank && former.root.pool == list.root.pool &&
                  memcmp(former.root.chunk, list.root.chunk, list.root.rank * sizeof *list.root.chunk) == 0;
    }
    status = to >= 0 && object->kept && !compare ? empty(&f) : 0;
    if (status == 0)
        status = move_chunks(&f, compare ? &former : NULL);
    if (status < 0 && s->copy.why[0] == '\0')
        cow_tree_failed(&s->copy, "the dataset", object->path);
    free_list(&list);
    free_list(&former);
    free(f.fill);
    free(f.buffer);
    H5Sclose(f.space);
    H5Tclose(f.type);
    H5Tclose(type);
    return status;
}
