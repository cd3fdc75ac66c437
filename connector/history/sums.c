/* Checksums of what HDF5 keeps without any: elements of datasets that are not in pools (tiny, scalar, compact), values of
 * attributes that lie in heaps, and which index record a versioned dataset of a version names. HDF5 checks its object
 * headers, trees and fractal heaps itself, but headers of HDF5 1.6 have no checksum either. Where a named datatype has such a
 * one, its newest snapshot, which has a newer header, tells what the type is.
 *
 * They stand in the rows of `snapshots`: a snapshot is made when something changed, so a commit sums up what it copies
 * anyway. The head of an object is, until it changes, what its newest snapshot is. What is read is compared once in an
 * opening. And what is copied into a version without having changed is compared first, so that damage is never committed.
 */
#include "history/internal.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "io/serial.h"
#include "native/datatype.h"

#include <stdlib.h>
#include <string.h>

#define OTHER_SUM "the checksum differs"
#define LARGE     1024 /* bytes of an attribute that may lie outside of what HDF5 checks */

struct cow_sums {
    cow_map checked; /* twice the address, and 1 for its elements or type: compared in this opening */
};

cow_sums *cow_sums_new(void)
{
    return calloc(1, sizeof(cow_sums));
}

void cow_sums_free(cow_sums *sums)
{
    if (sums != NULL)
        cow_map_free(&sums->checked);
    free(sums);
}

/* Never 0, which means that there is none. */
static uint64_t sum_of(const void *bytes, size_t size)
{
    uint64_t sum = cow_checksum(bytes, size);

    return sum == 0 ? 1 : sum;
}

uint64_t cow_sum_root(uint64_t offset)
{
    uint8_t bytes[8];

    cow_put64(bytes, offset);
    return sum_of(bytes, sizeof bytes);
}

int cow_sum_values(const char *file, hid_t type, size_t n, const void *values, uint64_t *sum)
{
    cow_serial *serial = cow_serial_open(type, file);
    const uint64_t count = n;
    cow_digest digest;
    int status =
        serial == NULL ? -1 : cow_serial_digest(serial, values, H5Tget_size(type), 1, &count, NULL, 0, false, &digest);

    cow_serial_close(serial);
    *sum = digest.checksum == 0 ? 1 : digest.checksum;
    return status;
}

/* References of HDF5 1.12 cannot be looked at without side effects: HDF5 opens the file for each, and the history's handle
 * of it would stay open. */
static bool holds_references(hid_t type)
{
    return cow_type_is_heap(type, true) && H5Tdetect_class(type, H5T_REFERENCE) > 0;
}

bool cow_sum_covers(hid_t type, size_t n)
{
    if (holds_references(type))
        return false;
    return cow_type_is_heap(type, true) || n > LARGE / H5Tget_size(type);
}

int cow_sum_add(const char *file, const char *name, hid_t type, size_t n, const void *values, uint64_t *sum)
{
    uint8_t bytes[24];
    uint64_t one;

    if (!cow_sum_covers(type, n))
        return 0;
    if (cow_sum_values(file, type, n, values, &one) < 0)
        return -1;
    cow_put64(bytes, *sum);
    cow_put64(bytes + 8, cow_checksum(name, strlen(name)));
    cow_put64(bytes + 16, one);
    *sum = sum_of(bytes, sizeof bytes);
    return 0;
}

typedef struct attributes {
    const char *file;
    uint64_t sum;
} attributes;

static int add_attribute(void *context, const char *name, hid_t type, size_t n, const void *values)
{
    attributes *a = context;

    return cow_sum_add(a->file, name, type, n, values, &a->sum);
}

static int sum_attributes(const char *file, cow_loc object, uint64_t *sum)
{
    attributes a = {.file = file};
    int status = cow_native_attributes_read(object, add_attribute, &a);

    *sum = a.sum;
    return status;
}

/* ---- what elements hold in heaps ---- */

typedef struct heap {
    void *dataset;
    hid_t type, space;
    cow_serial *serial;
    void *element;
    uint64_t bytes, most;
} heap;

static int add_element(void *context, unsigned rank, const hsize_t start[], const hsize_t count[])
{
    heap *h = context;
    hid_t memory = rank == 0 ? H5Scopy(h->space) : H5Screate_simple((int)rank, count, NULL);
    size_t size = H5Tget_size(h->type);
    int status = -1;

    memset(h->element, 0, size);
    if (memory < 0 || (rank > 0 && H5Sselect_hyperslab(h->space, H5S_SELECT_SET, start, NULL, count, NULL) < 0))
        cow_error_native("cannot select an element");
    else if (cow_native_dataset_read(h->dataset, h->type, memory, h->space, H5P_DEFAULT, h->element) == 0) {
        h->bytes += cow_serial_memory(h->serial, h->element, size, 1);
        cow_reclaim(h->type, memory, H5P_DATASET_XFER_DEFAULT, h->element);
        status = h->bytes <= h->most ? 0
                                     : cow_error(COW_CORRUPT,
                                                 "texts or sequences of more than %llu bytes are claimed, "
                                                 "more than such a file has",
                                                 (unsigned long long)h->most);
    }
    cow_close(memory);
    return status;
}

/* One after the other, since HDF5 takes memory for all that it reads. (H5Dvlen_get_buf_size is nothing for a callback: in
 * HDF5 1.14.5 what allocates for it goes on allocating in the call that we are in.) Only where so few elements could name so
 * much: each may name all of the file. */
int cow_sum_fits(const char *file, cow_loc loc, void *dataset, hid_t dcpl, hid_t type, hid_t space, size_t *n)
{
    heap h = {.dataset = dataset, .type = type};
    hsize_t one[H5S_MAX_RANK];
    uint64_t bytes;
    int status = -1;

    if (cow_layout_elements(loc, dcpl, type, space, n) < 0)
        return -1;
    if (!cow_type_is_heap(type, true))
        return 0;
    if (cow_native_file_size(loc.object, &bytes) < 0 || cow_layout_most(loc, &h.most) < 0)
        return -1;
    if (cow_times(*n * H5Tget_size(type) / sizeof(char *), bytes) <= h.most)
        return 0;
    for (int d = 0; d < H5S_MAX_RANK; d++)
        one[d] = 1;
    h.space = H5Scopy(space);
    h.element = malloc(H5Tget_size(type));
    if (h.space < 0 || h.element == NULL)
        cow_error(COW_MEMORY, "no memory for a dataset");
    else if ((h.serial = cow_serial_open(type, file)) != NULL)
        status = cow_boxes(h.space, one, add_element, &h);
    cow_serial_close(h.serial);
    free(h.element);
    cow_close(h.space);
    return status;
}

static bool lacks_filter(hid_t dcpl)
{
    for (int i = 0; i < H5Pget_nfilters(dcpl); i++) {
        unsigned flags, configuration;
        size_t none = 0;

        if (H5Zfilter_avail(H5Pget_filter2(dcpl, (unsigned)i, &flags, &none, NULL, 0, NULL, &configuration)) <= 0)
            return true;
    }
    return false;
}

#define NOT_TOLD 1

/* NOT_TOLD: a filter is missing here, which says nothing of the elements. */
static int sum_elements(const cow_file *file, void *dataset, uint64_t *sum)
{
    hid_t type = cow_native_dataset_type(dataset), space = cow_native_dataset_space(dataset),
          dcpl = cow_native_dataset_dcpl(dataset);
    H5D_space_status_t allocated = H5D_SPACE_STATUS_NOT_ALLOCATED;
    void *values = NULL;
    size_t n;
    int status = -1;

    *sum = 0;
    if (type < 0 || space < 0 || dcpl < 0 || cow_native_dataset_status(dataset, &allocated) < 0)
        goto done;
    status = 0;
    if (allocated == H5D_SPACE_STATUS_NOT_ALLOCATED || H5Pget_layout(dcpl) == H5D_VIRTUAL ||
        H5Pget_external_count(dcpl) > 0 || holds_references(type))
        goto done; /* nothing, or elsewhere, or not to be read */
    status = -1;
    if (cow_sum_fits(file->name, file->loc, dataset, dcpl, type, space, &n) < 0)
        goto done;
    if (n == 0) {
        status = 0;
        goto done;
    }
    if ((values = calloc(n, H5Tget_size(type))) == NULL) {
        cow_error(COW_MEMORY, "no memory for a dataset");
        goto done;
    }
    if (cow_native_dataset_read(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) == 0) {
        status = cow_sum_values(file->name, type, n, values, sum);
        cow_reclaim(type, space, H5P_DATASET_XFER_DEFAULT, values);
    } else if (lacks_filter(dcpl)) {
        cow_error_clear();
        status = NOT_TOLD;
    }
done:
    free(values);
    cow_close(dcpl, space, type);
    return status;
}

int cow_sum_snapshot(cow_file *file, cow_loc object, bool elements, bool checked, cow_layout_snapshot_row *row)
{
    uint64_t sum;
    int status;

    if (checked && sum_attributes(file->name, object, &row->attributes) < 0)
        return -1;
    if (!elements || object.type != H5I_DATASET) {
        row->elements = 0;
        return 0;
    }
    if ((status = sum_elements(file, object.object, &sum)) == 0)
        row->elements = sum;
    return status < 0 ? -1 : 0;
}

static int differs(const cow_file *file, const char *what, const char *why)
{
    return cow_error(COW_CORRUPT,
                     "%s: %s not what was written: %s; an older version may still have it; to see what is damaged: "
                     "h5cow verify %s",
                     file->name, what, why, file->name);
}

int cow_sum_check_root(cow_file *file, uint64_t address, uint64_t offset)
{
    const cow_layout_snapshot_row *row;

    if (cow_snapshots_load(file) < 0)
        return -1;
    if ((row = cow_snapshots_made(file, address)) == NULL || row->elements == 0 ||
        row->elements == cow_sum_root(offset))
        return cow_snapshots_load(file); /* which tells if it could not be looked for */
    return differs(file, "the index record that a dataset names is", OTHER_SUM);
}

/* One of cow_snapshots_find and cow_snapshots_of_head. */
typedef const cow_layout_snapshot_row *row_finder(const cow_file *file, uint64_t address);

static int check(cow_file *file, const H5O_token_t *token, cow_change what, uint64_t key, row_finder *find)
{
    const cow_layout_snapshot_row *row;
    uint64_t expected, sum;
    cow_loc object;
    bool borrowed;
    int status = -1;

    if (cow_snapshots_load(file) < 0)
        return -1;
    if ((row = find(file, cow_address(token))) == NULL)
        return cow_snapshots_load(file); /* which tells if it could not be looked for */
    expected = what == COW_CHANGED_DATA ? row->elements : row->attributes;
    if (expected != 0) {
        if (cow_head_open(file, cow_address(token), &object, &borrowed) < 0)
            return -1;
        if (what != COW_CHANGED_DATA)
            status = sum_attributes(file->name, object, &sum);
        else if (object.type == H5I_DATASET)
            status = sum_elements(file, object.object, &sum);
        if ((!borrowed && cow_native_close(object) < 0) || status < 0)
            return -1;
        if (status == NOT_TOLD)
            return 0;
        if (sum != expected)
            return differs(
                file, what == COW_CHANGED_DATA ? "the elements of a dataset are" : "the attributes of an object are",
                OTHER_SUM);
    }
    return cow_map_put(&file->sums->checked, key, 1);
}

/* ---- named datatypes ---- */

/* H5I_INVALID_HID also where there is something else. */
static hid_t open_type(const cow_file *file, uint64_t address)
{
    H5O_token_t token = cow_token(address);
    cow_loc object;

    if (cow_native_open_token(file->loc, &token, &object) < 0)
        return H5I_INVALID_HID;
    if (object.type == H5I_DATATYPE)
        return cow_native_type_id(object);
    cow_native_close(object);
    return H5I_INVALID_HID;
}

/* A header of HDF5 1.6 has no checksum, but that of the newest snapshot has. What cannot be looked for there says nothing of the head. */
static int check_type(cow_file *file, const H5O_token_t *token, uint64_t key)
{
    uint64_t address = cow_address(token), snapshot;
    hid_t head = open_type(file, address), then = H5I_INVALID_HID;
    unsigned version;
    int same = -1;

    if (head >= 0 && cow_native_header_version(cow_native_named_type(head), &version) == 0 && version < 2 &&
        cow_snapshots_load(file) == 0 && cow_snapshots_newest(file, address, &snapshot) &&
        (then = open_type(file, snapshot)) >= 0)
        same = cow_types_same(head, then);
    cow_close(then, head);
    cow_error_clear();
    return same == 0 ? differs(file, "a named datatype is", "its snapshot differs")
                     : cow_map_put(&file->sums->checked, key, 1);
}

/* ---- once an opening ---- */

/* The changes CHANGED of this transaction: nothing of what is there then was committed. */
static bool to_check(const cow_file *file, uint64_t address, unsigned changed, uint64_t key)
{
    return file->laid_out && !cow_file_shut(file) && cow_file_state_of(file) != COW_FILE_FAILED &&
           !cow_map_get(&file->sums->checked, key, NULL) &&
           (cow_changes_flags(file, address) & (changed | 1u << COW_CHANGED_NEW)) == 0;
}

static int check_once(cow_file *file, const H5O_token_t *token, cow_change what, row_finder *find)
{
    uint64_t address = cow_address(token), key = 2 * address + (what == COW_CHANGED_DATA);
    cow_apart apart;
    int status;

    if (!to_check(file, address, 1u << what, key))
        return 0;
    if (cow_native_apart(&apart) < 0)
        return -1;
    status = check(file, token, what, key, find);
    cow_native_together(&apart);
    return status;
}

int cow_sum_check(cow_file *file, const H5O_token_t *token, cow_change what)
{
    return check_once(file, token, what, cow_snapshots_find);
}

int cow_sum_check_head(cow_file *file, const H5O_token_t *token, cow_change what)
{
    return check_once(file, token, what, cow_snapshots_of_head);
}

int cow_sum_check_type(cow_file *file, const H5O_token_t *token)
{
    uint64_t address = cow_address(token), key = 2 * address + 1;
    cow_apart apart;
    int status;

    if (!to_check(file, address, 0, key))
        return 0;
    if (cow_native_apart(&apart) < 0)
        return -1;
    status = check_type(file, token, key);
    cow_native_together(&apart);
    return status;
}
