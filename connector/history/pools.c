/* Pools by signature. A pool is /_versioned_data/raw/<id> and /_versioned_data/slots/<id>; row <id> of the table
 * `pools` holds its signature: SHA-256 over datatype, chunk dims, filters and fill value. */
#include "history/pools.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"
#include "history/hashes.h"
#include "history/internal.h"
#include "io/filters.h"
#include "journal/driver.h"
#include "native/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

typedef struct opened {
    cow_pool_entry entry;
    cow_hashes *hashes;                   /* NULL: nothing is written */
    uint64_t slots_before, reused_before; /* when the transaction began */
    size_t users;
    bool asked; /* HDF5 has asked its filters, or will not: cow_pools_ask */
    bool told;  /* what else its creation properties are: it has no fill value, and is filled at FILL_TIME */
    H5D_fill_time_t fill_time;
} opened;

/* Vacant slots are given out again: of pools without filters so many bytes by each commit, since that holds in memory, and writes
 * twice, what it puts into the middle of the file. Chunks with filters get places of their own. */
#define REUSED_BYTES ((size_t)64 << 20)

/* Programs read files with one dataset in each of very many pools: an open one takes 60 kB. */
#define MOST_IDLE 256

struct cow_pools {
    cow_table *table; /* NULL until a pool is looked for */
    opened *list;     /* in no order */
    size_t count, room;
    size_t limit;       /* with so many, those are closed that nobody uses */
    uint8_t *signature; /* of the first signature_count pools, COW_HASH_SIZE bytes each */
    size_t signature_count, signature_room;
};

cow_pools *cow_pools_new(void)
{
    return calloc(1, sizeof(cow_pools));
}

void cow_pools_free(cow_pools *pools)
{
    free(pools);
}

int cow_pools_create(cow_file *file)
{
    file->pools->table = cow_layout_table_create(file->loc, COW_TABLE_POOLS, 0, 0);
    return file->pools->table == NULL ? -1 : 0;
}

int cow_pools_open(cow_file *file)
{
    return cow_file_open_table(file, COW_TABLE_POOLS, &file->pools->table);
}

/* ---- signature ---- */

typedef struct buffer {
    uint8_t *bytes;
    size_t size, room;
} buffer;

static int put(buffer *b, const void *bytes, size_t size)
{
    if (COW_RESERVE(b->bytes, b->room, b->size, size) < 0)
        return cow_error(COW_MEMORY, "no memory for the signature of a pool");
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
    return 0;
}

static int put_number(buffer *b, uint64_t number)
{
    uint8_t bytes[8];
    cow_put64(bytes, number);
    return put(b, bytes, sizeof bytes);
}

/* What can be compared with no other. */
static int put_unique(buffer *b)
{
    uint8_t bytes[16];

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return cow_error(COW_IO, "no random numbers for the signature of a pool");
    return put(b, bytes, sizeof bytes);
}

/* VALUE, in memory. Where parts of it lie elsewhere the pool is the dataset's own, unless it is a string. */
static int put_value(buffer *b, hid_t type, const void *value, bool heap)
{
    const char *text;

    if (!heap)
        return put(b, value, H5Tget_size(type));
    if (H5Tis_variable_str(type) <= 0)
        return put_unique(b);
    memcpy(&text, value, sizeof text);
    return text == NULL ? put_number(b, 0) : put(b, text, strlen(text) + 1);
}

static int put_fill(buffer *b, hid_t type, hid_t dcpl)
{
    H5D_fill_value_t defined;
    H5D_fill_time_t time;
    void *value;
    int heap = cow_type_is_heap(type, false), status = -1;

    if (heap < 0 || H5Pfill_value_defined(dcpl, &defined) < 0 || H5Pget_fill_time(dcpl, &time) < 0)
        return cow_error_native("cannot get the fill value of a dataset");
    /* what is outside the extent is zeros then, and would be seen by others when they grow */
    if (put_number(b, defined) < 0 || put_number(b, time == H5D_FILL_TIME_NEVER) < 0)
        return -1;
    if (defined != H5D_FILL_VALUE_USER_DEFINED)
        return 0;
    if ((value = calloc(1, H5Tget_size(type))) == NULL)
        return cow_error(COW_MEMORY, "no memory for a fill value");
    if (H5Pget_fill_value(dcpl, type, value) >= 0) {
        status = put_value(b, type, value, heap);
        cow_dataset_fill_free(type, heap, value);
    } else {
        cow_error_native("cannot get the fill value of a dataset");
        free(value);
    }
    return status;
}

static int put_filter(buffer *b, hid_t dcpl, unsigned i)
{
    unsigned flags, config, none, *values = NULL;
    size_t n = 0;
    H5Z_filter_t id = H5Pget_filter2(dcpl, i, &flags, &n, &none, 0, NULL, &config);
    int status = -1;

    if (id < 0)
        return cow_error_native("cannot get the filters of a dataset");
    if ((values = calloc(n + 1, sizeof *values)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the parameters of a filter");
    if (H5Pget_filter2(dcpl, i, &flags, &n, values, 0, NULL, &config) != id) {
        cow_error_native("cannot get the filters of a dataset");
        goto done;
    }
    if (put_number(b, (uint64_t)id) < 0 || put_number(b, flags) < 0 || put_number(b, n) < 0)
        goto done;
    for (size_t v = 0; v < n; v++)
        if (put_number(b, values[v]) < 0)
            goto done;
    status = 0;
done:
    free(values);
    return status;
}

static int signature_of(hid_t type, hid_t dcpl, uint8_t signature[COW_HASH_SIZE])
{
    buffer b = {0};
    hsize_t chunk[COW_MAX_RANK];
    unsigned opts = 0;
    size_t size = 0;
    int rank = H5Pget_chunk(dcpl, COW_MAX_RANK, chunk), filters = H5Pget_nfilters(dcpl), status = -1;
    void *encoded = NULL;
    cow_digest digest;

    if (rank < 1 || filters < 0 || H5Tencode(type, NULL, &size) < 0 || (encoded = malloc(size)) == NULL ||
        H5Tencode(type, encoded, &size) < 0 || H5Pget_chunk_opts(dcpl, &opts) < 0) {
        cow_error_native("cannot describe the chunks of a dataset");
        goto done;
    }
    if (put_number(&b, size) < 0 || put(&b, encoded, size) < 0 || put_number(&b, (uint64_t)rank) < 0 ||
        put_number(&b, opts) < 0 || put_number(&b, (uint64_t)filters) < 0)
        goto done;
    for (int d = 0; d < rank; d++)
        if (put_number(&b, chunk[d]) < 0)
            goto done;
    for (int i = 0; i < filters; i++)
        if (put_filter(&b, dcpl, (unsigned)i) < 0)
            goto done;
    if (put_fill(&b, type, dcpl) < 0 || cow_digest_payload(b.bytes, b.size, 0, NULL, &digest) < 0)
        goto done;
    memcpy(signature, digest.hash, COW_HASH_SIZE);
    status = 0;
done:
    free(encoded);
    free(b.bytes);
    return status;
}

/* ---- opening and making ---- */

/* Type, creation properties and shape of raw_data, before anything is made for them. */
static int pool_shape(const cow_file *file, cow_pool_entry *entry, void *raw_data)
{
    hid_t space = cow_native_dataset_space(raw_data), type = cow_native_dataset_type(raw_data);
    unsigned options = 0;
    int status = -1;

    if (space >= 0 && type >= 0 && (entry->dcpl = cow_native_dataset_dcpl(raw_data)) >= 0 &&
        (entry->type = cow_type_is_heap(type, true) > 0 ? cow_kept_type_of(raw_data) : cow_kept_type_new(type)) != NULL)
        status = cow_layout_raw_shape(type, space, entry->dcpl, &entry->raw);
    if (status == 0 && H5Pget_chunk_opts(entry->dcpl, &options) < 0)
        status = cow_error_native("cannot read how chunks are stored");
    entry->plain_edges = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
    cow_close(type, space);
    return status < 0 ? cow_context("%s: pool %u cannot be used; try: h5cow verify", file->name, entry->id) : 0;
}

/* Bytes of a chunk as the filters give it. */
static int decoded_bytes(const cow_file *file, const cow_pool_entry *entry, size_t *bytes)
{
    hid_t type = cow_kept_type_id(entry->type);

    *bytes = entry->raw.chunk_bytes;
    if (cow_type_is_heap(type, true) > 0) {
        if (cow_native_element_size(file->native, type, bytes) < 0)
            return -1;
        *bytes *= entry->raw.chunk_bytes / entry->raw.element_size;
    }
    return 0;
}

static void allow_reuse(const cow_file *file, const cow_pool_entry *entry, size_t bytes)
{
    if (!cow_file_writable(file) || cow_type_is_heap(cow_kept_type_id(entry->type), true) != 0 || bytes == 0)
        return;
    cow_pool_allow_reuse(entry->pool, cow_codec_identity(entry->codec) ? REUSED_BYTES / bytes : UINT64_MAX);
}

/* Who writes looks for equal chunks. */
static int allow_finding(cow_file *file, opened *o)
{
    cow_pool_lookup source;

    if (!cow_file_writable(file))
        return 0;
    if ((o->hashes = cow_hashes_new(file, o->entry.id)) == NULL)
        return -1;
    source = cow_hashes_source(o->hashes);
    cow_pool_keep_lookup(o->entry.pool, &source);
    cow_pool_wait_in(o->entry.pool, &file->room);
    return 0;
}

/* The table of its slots. */
static cow_table *open_slots(const cow_file *file, uint32_t id, unsigned rank)
{
    cow_table *table = cow_layout_still_table(cow_file_tables(file), COW_TABLE_SLOTS, id, rank);

    return table != NULL ? table : cow_layout_table_open(file->loc, COW_TABLE_SLOTS, id, rank);
}

/* Where the bytes of chunks are, and that they may be read by several threads. */
static void find_apart(const cow_file *file, cow_chunk_store *store, const cow_dataset_header *raw)
{
    if (raw != NULL)
        cow_native_chunk_store_look(store, cow_layout_still_bytes(cow_file_tables(file)), raw);
    if (raw != NULL && file->written != NULL)
        cow_native_chunk_store_write(store, file->journal, file->fileno, raw);
    if (file->journal != NULL)
        cow_native_chunk_store_read_apart(store, file->journal);
}

/* Is TYPE, of a dataset of which LIKE is what its header says (NULL: that is not known), that of RAW? */
static bool is_like(hid_t type, const cow_dataset_header *like, const cow_dataset_header *raw)
{
    uint8_t encoded[2 + COW_DATASET_HEADER_TYPE];
    size_t size = sizeof encoded;

    if (like != NULL)
        return raw->type_size == like->type_size && memcmp(raw->type, like->type, raw->type_size) == 0;
    return H5Tencode(type, NULL, &size) >= 0 && size == 2 + raw->type_size && H5Tencode(type, encoded, &size) >= 0 &&
           memcmp(encoded + 2, raw->type, raw->type_size) == 0;
}

/* Without opening its raw data, where its chunks have no filters and are of TYPE, as LIKE tells: 1; 0: that is to be opened; -1. */
static int pool_open_closed(cow_file *file, opened *o, hid_t type, const cow_dataset_header *like,
                            const cow_dataset_header *raw)
{
    cow_pool_entry *entry = &o->entry;
    char name[COW_PATH_MAX];
    cow_chunk_store *store;
    cow_table *table;

    if (raw->filters != COW_DATASET_HEADER_PLAIN || raw->type_size == 0 || cow_type_is_heap(type, true) != 0 ||
        !is_like(type, like, raw) || cow_layout_still_shape(raw, H5Tget_size(type), &entry->raw) < 0)
        return 0;
    entry->plain_edges = raw->whole_edges;
    o->told = raw->fill == COW_DATASET_HEADER_DEFAULT;
    o->fill_time = raw->fill_time;
    snprintf(name, sizeof name, "pool %u", entry->id);
    if ((entry->type = cow_kept_type_new(type)) == NULL)
        return -1;
    if ((table = open_slots(file, entry->id, entry->raw.rank)) == NULL)
        goto failed;
    if ((store = cow_native_chunk_store_closed(file->native, raw, cow_layout_raw_open, entry->id)) == NULL) {
        table->close(table);
        goto failed;
    }
    find_apart(file, store, raw);
    if ((entry->pool = cow_pool_open(name, entry->raw.rank, table, store)) == NULL)
        goto failed;
    if ((entry->codec = cow_codec_plain(entry->raw.chunk_bytes)) != NULL) {
        allow_reuse(file, entry, entry->raw.chunk_bytes);
        if (allow_finding(file, o) == 0)
            return 1;
        cow_codec_close(entry->codec);
    }
    cow_pool_close(entry->pool);
failed:
    cow_kept_type_free(entry->type);
    return -1;
}

/* RAW_DATA: of one that was just made. Takes it, also when it fails; NULL: it is opened. */
static int pool_open(cow_file *file, opened *o, const cow_dataset_header *raw, void *raw_data)
{
    cow_pool_entry *entry = &o->entry;
    char name[COW_PATH_MAX];
    cow_table *table = NULL;
    cow_chunk_store *store = NULL;
    size_t bytes;
    int status = -1;

    snprintf(name, sizeof name, "pool %u", entry->id);
    o->asked = raw_data != NULL;
    if (raw_data == NULL && (raw_data = cow_layout_raw_open(file->loc, entry->id)) == NULL)
        return cow_context("%s: the chunks of %s cannot be opened", file->name, name);
    if (pool_shape(file, entry, raw_data) < 0 || decoded_bytes(file, entry, &bytes) < 0 ||
        (table = open_slots(file, entry->id, entry->raw.rank)) == NULL) {
        cow_native_dataset_close(raw_data);
        goto done;
    }
    if ((store = cow_native_chunk_store(file->native, raw_data, entry->dcpl)) == NULL) {
        table->close(table);
        goto done;
    }
    find_apart(file, store, raw);
    if ((entry->pool = cow_pool_open(name, entry->raw.rank, table, store)) == NULL)
        goto done;
    if ((entry->codec = cow_codec_open(entry->dcpl, cow_kept_type_id(entry->type), bytes)) == NULL) {
        cow_context("%s: the chunks of %s cannot be decoded", file->name, name);
        cow_pool_close(entry->pool);
        entry->pool = NULL;
        goto done;
    }
    allow_reuse(file, entry, bytes);
    if (allow_finding(file, o) < 0) {
        cow_codec_close(entry->codec);
        cow_pool_close(entry->pool);
        goto done;
    }
    status = 0;
done:
    if (status < 0) {
        cow_kept_type_free(entry->type);
        cow_close(entry->dcpl);
    }
    return status;
}

static void pool_close(opened *o)
{
    cow_codec_close(o->entry.codec);
    cow_pool_close(o->entry.pool);
    cow_hashes_free(o->hashes);
    cow_kept_type_free(o->entry.type);
    cow_close(o->entry.dcpl);
}

static void note_slots(opened *o)
{
    o->slots_before = cow_pool_slots(o->entry.pool);
    o->reused_before = cow_pool_reused(o->entry.pool);
}

static void close_idle(cow_pools *pools)
{
    size_t kept = 0;

    for (size_t i = 0; i < pools->count; i++) {
        opened *o = &pools->list[i];

        if (o->users == 0 && cow_pool_idle(o->entry.pool) && cow_pool_slots(o->entry.pool) == o->slots_before)
            pool_close(o);
        else
            pools->list[kept++] = *o;
    }
    pools->count = kept;
    pools->limit = kept + MOST_IDLE;
}

static opened *find(const cow_pools *pools, uint32_t id)
{
    for (size_t i = 0; i < pools->count; i++)
        if (pools->list[i].entry.id == id)
            return &pools->list[i];
    return NULL;
}

void cow_pools_use(cow_file *file, uint32_t id)
{
    opened *o = find(file->pools, id);

    if (o != NULL)
        o->users++;
}

void cow_pools_leave(cow_file *file, uint32_t id)
{
    opened *o = find(file->pools, id);

    if (o != NULL)
        o->users--;
}

const cow_pool_entry *cow_pools_get(cow_file *file, uint32_t id)
{
    return cow_pools_get_like(file, id, H5I_INVALID_HID, NULL);
}

/* A place for pool ID. NULL: the error. */
static opened *place_for(cow_file *file, uint32_t id)
{
    cow_pools *pools = file->pools;
    opened *o;

    if (pools->count >= pools->limit)
        close_idle(pools);
    if (pools->table != NULL && id >= pools->table->rows) {
        cow_error(COW_CORRUPT, "%s: pool %u is named, but there are %llu; try: h5cow verify", file->name, id,
                  (unsigned long long)pools->table->rows);
        return NULL;
    }
    if (COW_RESERVE(pools->list, pools->room, pools->count, 1) < 0) {
        cow_error(COW_MEMORY, "no memory for %zu pools", pools->count + 1);
        return NULL;
    }
    o = &pools->list[pools->count];
    *o = (opened){.entry = {.id = id, .dcpl = H5I_INVALID_HID}};
    return o;
}

const cow_pool_entry *cow_pools_get_like(cow_file *file, uint32_t id, hid_t type, const cow_dataset_header *like)
{
    opened *o = find(file->pools, id);
    cow_dataset_header raw;
    bool looked;
    int status = 0;

    if (o != NULL)
        return &o->entry;
    if ((o = place_for(file, id)) == NULL)
        return NULL;
    looked = cow_file_tables(file) != NULL && cow_layout_still_raw(cow_file_tables(file), id, &raw);
    if (looked && (like != NULL || type >= 0))
        status = pool_open_closed(file, o, type, like, &raw);
    if (status == 0)
        status = pool_open(file, o, looked && file->still != NULL ? &raw : NULL, NULL);
    if (status < 0)
        return NULL;
    note_slots(o);
    file->pools->count++;
    return &o->entry;
}

/* What only concerns one dataset is set to a fixed value. */
static int fix_properties(hid_t dcpl)
{
    H5D_fill_time_t time;

    return H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_INCR) < 0 || H5Pget_fill_time(dcpl, &time) < 0 ||
                   (time != H5D_FILL_TIME_NEVER && H5Pset_fill_time(dcpl, H5D_FILL_TIME_IFSET) < 0) ||
                   H5Pset_obj_track_times(dcpl, false) < 0 || H5Pset_attr_creation_order(dcpl, 0) < 0
               ? -1
               : 0;
}

/* The creation properties of a pool that is not open. */
static hid_t told_dcpl(const opened *o)
{
    const cow_raw *raw = &o->entry.raw;
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[COW_MAX_RANK];

    for (unsigned d = 0; d < raw->rank; d++)
        chunk[d] = raw->chunk[d];
    if (dcpl >= 0 && H5Pset_chunk(dcpl, (int)raw->rank, chunk) >= 0 &&
        H5Pset_chunk_opts(dcpl, o->entry.plain_edges ? H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS : 0) >= 0 &&
        H5Pset_fill_time(dcpl, o->fill_time) >= 0 && fix_properties(dcpl) == 0)
        return dcpl;
    cow_error_native("cannot describe a pool");
    cow_close(dcpl);
    return H5I_INVALID_HID;
}

hid_t cow_pools_dcpl(cow_file *file, uint32_t id)
{
    const cow_pool_entry *entry = cow_pools_get(file, id);
    opened *o = entry == NULL ? NULL : find(file->pools, id);
    void *raw_data;

    if (o == NULL)
        return H5I_INVALID_HID;
    if (o->entry.dcpl < 0 && o->told)
        o->entry.dcpl = told_dcpl(o);
    else if (o->entry.dcpl < 0 && (raw_data = cow_native_chunk_store_dataset(cow_pool_store(o->entry.pool))) != NULL)
        o->entry.dcpl = cow_native_dataset_dcpl(raw_data);
    return o->entry.dcpl;
}

/* Elements that have parts elsewhere HDF5 writes itself, and it asks the filters of a dataset that it has opened before it writes it
 * (H5D__write): those of the program, once more than natively. One that it has created it does not ask again. */
static bool asks(hid_t type, hid_t dcpl)
{
    return !cow_pipeline_stable(dcpl) && cow_type_is_heap(type, true) != 0;
}

/* Opens pool ID, which has been made. Takes RAW_DATA. */
static int open_made(cow_file *file, uint32_t id, void *raw_data)
{
    opened *o = place_for(file, id);

    if (o == NULL) {
        cow_native_dataset_close(raw_data);
        return -1;
    }
    if (pool_open(file, o, NULL, raw_data) < 0)
        return -1;
    note_slots(o);
    file->pools->count++;
    return 0;
}

int cow_pools_ask(cow_file *file, uint32_t id)
{
    opened *o = cow_pools_get(file, id) == NULL ? NULL : find(file->pools, id);
    hid_t space = H5I_INVALID_HID;
    void *raw_data;
    int status = -1;

    if (o == NULL)
        return -1;
    o->asked = o->asked || o->entry.dcpl < 0 || !asks(cow_kept_type_id(o->entry.type), o->entry.dcpl);
    if (o->asked)
        return 0;
    if ((raw_data = cow_native_chunk_store_dataset(cow_pool_store(o->entry.pool))) == NULL ||
        (space = cow_native_dataset_space(raw_data)) < 0)
        return -1;
    if (H5Sselect_none(space) < 0)
        cow_error_native("cannot select nothing");
    else if (cow_native_dataset_write(raw_data, cow_kept_type_id(o->entry.type), space, space, H5P_DATASET_XFER_DEFAULT,
                                      "") == 0) {
        o->asked = true;
        status = 1;
    }
    cow_close(space);
    return status;
}

/* *RAW_DATA is open if its filters would be asked again, else NULL. 1: HDF5 does not take such chunks, which is recorded. */
static int pool_make(cow_file *file, uint32_t id, hid_t type, hid_t dcpl, void **raw_data)
{
    char path[COW_PATH_MAX];
    hsize_t extent[COW_MAX_RANK], most[COW_MAX_RANK];
    int rank = H5Pget_chunk(dcpl, COW_MAX_RANK, extent), status = -1, exists;
    unsigned long failures = cow_journal_driver_file_failures(file->fileno);
    hid_t space = H5I_INVALID_HID;
    cow_table *table = NULL;

    *raw_data = NULL;
    memcpy(most, extent, sizeof most);
    extent[0] = 0;
    most[0] = H5S_UNLIMITED;
    cow_layout_raw_path(path, id);
    if ((space = H5Screate_simple(rank, extent, most)) < 0) {
        cow_error_native("cannot describe a pool");
        goto done;
    }
    if ((exists = cow_native_exists(file->loc, path)) != 0) {
        if (exists > 0)
            cow_error(COW_CORRUPT, "%s: there is a pool %s already, which the table of pools does not know", file->name,
                      path);
        goto done;
    }
    if ((*raw_data = cow_native_dataset_create(file->loc, path, type, space, dcpl)) == NULL) {
        status = cow_error_is(COW_MEMORY) || cow_journal_driver_file_failures(file->fileno) != failures ? -1 : 1;
        goto done;
    }
    if ((table = cow_layout_table_create(file->loc, COW_TABLE_SLOTS, id, (unsigned)rank)) == NULL) {
        cow_error_held *held = cow_error_hold();
        cow_native_link_delete(file->loc, path);
        cow_error_put_back(held);
        goto done;
    }
    status = 0;
done:
    if (table != NULL)
        table->close(table);
    if (*raw_data != NULL && (status != 0 || !asks(type, dcpl))) {
        if (cow_native_dataset_close(*raw_data) < 0)
            status = -1;
        *raw_data = NULL;
    }
    if (space >= 0)
        H5Sclose(space);
    return status;
}

/* Has DCPL filters that h5cow does not run itself? */
static bool has_foreign_filters(hid_t dcpl)
{
    for (int i = 0; i < H5Pget_nfilters(dcpl); i++) {
        unsigned flags, none;
        size_t count = 0;

        if (!cow_filter_ours(H5Pget_filter2(dcpl, (unsigned)i, &flags, &count, &none, 0, NULL, NULL)))
            return true;
    }
    return false;
}

/* The application's creation properties as a pool's. */
static hid_t pool_dcpl(hid_t dcpl, hid_t type)
{
    hid_t p = cow_native_dcpl_placeless(dcpl, type); /* a list of another file must not be in the way of others */

    if (p < 0 || fix_properties(p) < 0 ||
        /* HDF5 asks filters again when a dataset that it fills grows (H5D__check_filters); types with parts elsewhere must be filled */
        (has_foreign_filters(p) && cow_type_is_heap(type, true) == 0 && H5Pset_fill_time(p, H5D_FILL_TIME_NEVER) < 0))
        cow_error_native("cannot describe a pool");
    return p;
}

/* All signatures in memory, so that creating many datasets does not read the table again for each. */
static int load_signatures(cow_file *file)
{
    cow_pools *pools = file->pools;
    size_t rows, have = pools->signature_count;

    if (cow_pools_open(file) < 0)
        return -1;
    if ((rows = pools->table->rows) <= have)
        return 0;
    if (cow_vector_reserve(&pools->signature, &pools->signature_room, have, rows - have, COW_HASH_SIZE) < 0)
        return cow_error(COW_MEMORY, "no memory for the signatures of %zu pools", rows);
    if (cow_layout_rows(pools->table, COW_TABLE_POOLS, have, rows - have, pools->signature + have * COW_HASH_SIZE) < 0)
        return cow_error_where(file->name, "reading which pools there are");
    pools->signature_count = rows;
    return 0;
}

/* Is pool ID one for chunks with the filters of DCPL, whose signature it has? The signature may be over what its filters were asked, and
 * what they compute may change: with their version, or an environment variable. 1, 0, -1 */
static int has_filters(cow_file *file, uint32_t id, hid_t dcpl)
{
    hid_t own;

    if (cow_pipeline_stable(dcpl))
        return 1;
    return (own = cow_pools_dcpl(file, id)) < 0 ? -1 : cow_pipeline_same(own, dcpl);
}

int cow_pools_find(cow_file *file, hid_t type, hid_t asked, hid_t dcpl, uint32_t *id)
{
    uint8_t signature[2][COW_HASH_SIZE];
    hid_t p, t;
    void *raw_data = NULL;
    int status = -1;

    if (signature_of(type, dcpl, signature[0]) < 0 || signature_of(type, asked, signature[1]) < 0 ||
        load_signatures(file) < 0)
        return -1;
    for (*id = 0; *id < file->pools->signature_count; ++*id) {
        const uint8_t *of = file->pools->signature + (size_t)*id * COW_HASH_SIZE;

        if (memcmp(of, signature[0], COW_HASH_SIZE) != 0 && memcmp(of, signature[1], COW_HASH_SIZE) != 0)
            continue;
        if ((status = has_filters(file, *id, dcpl)) != 0)
            return status < 0 ? -1 : 0;
    }
    p = pool_dcpl(dcpl, type);
    t = H5Tcopy(type);
    if (p < 0 || t < 0)
        status = -1;
    else if ((status = pool_make(file, *id, t, p, &raw_data)) == 0)
        status = cow_table_append(file->pools->table, 1, signature[0], NULL) < 0 ? -1 : 0;
    if (raw_data != NULL && status == 0)
        status = open_made(file, *id, raw_data);
    else if (raw_data != NULL)
        cow_native_dataset_close(raw_data);
    cow_close(t, p);
    return status;
}

void cow_pools_close(cow_file *file)
{
    cow_pools *pools = file->pools;

    for (size_t i = 0; i < pools->count; i++)
        pool_close(&pools->list[i]);
    free(pools->list);
    free(pools->signature);
    cow_file_close_table(&pools->table);
    *pools = (cow_pools){0};
}

uint64_t cow_pools_rows(const cow_file *file)
{
    return file->pools->table->rows;
}

/* ---- all of them ---- */

size_t cow_pools_count(const cow_file *file)
{
    return file->pools->count;
}

int cow_pools_flush(cow_file *file)
{
    for (size_t i = 0; i < file->pools->count; i++)
        if (cow_pool_flush(file->pools->list[i].entry.pool) < 0)
            return -1;
    return 0;
}

/* In the middle of a call of the program, which may have given HDF5 a smaller cache than making a table needs. */
int cow_pools_write_out(void *context)
{
    cow_file *file = context;
    H5AC_cache_config_t cache;
    int wider = cow_native_metadata_cache_widen(file->native, &cache), status = wider < 0 ? -1 : 0;

    for (size_t i = 0; status == 0 && i < file->pools->count; i++)
        status = cow_pool_write_out(file->pools->list[i].entry.pool);
    if (wider > 0)
        cow_native_metadata_cache_restore(file->native, &cache);
    return status < 0 ? cow_context("%s: writing out what waits for the next commit", file->name) : 0;
}

void cow_pools_seal(cow_file *file, bool finished)
{
    for (size_t i = 0; i < file->pools->count; i++) {
        opened *o = &file->pools->list[i];
        cow_pool_seal(o->entry.pool);
        if (finished)
            note_slots(o);
    }
}

int64_t cow_pools_added(const cow_file *file)
{
    int64_t n = 0;

    for (size_t i = 0; i < file->pools->count; i++) {
        const opened *o = &file->pools->list[i];

        n += (int64_t)(cow_pool_slots(o->entry.pool) - o->slots_before + cow_pool_reused(o->entry.pool) -
                       o->reused_before);
    }
    return n;
}
