/* Tables, attributes, pools and versions below /_versioned_data, checked as they are opened. The rules: layout.h. */
#include "layout/layout.h"

#include "base/error.h"
#include "base/ids.h"
#include "layout/internal.h"
#include "store/index.h"
#include "store/lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_MAX_LENGTH  1024          /* of any path below /_versioned_data that h5cow knows */
#define MOST_CHUNK_BYTES (1024 * 1024) /* of a table; h5cow's have at most 4 KiB */

/* ---- objects ---- */

int cow_layout_hard(cow_loc file, const char *path)
{
    char part[PATH_MAX_LENGTH];

    if (strlen(path) >= sizeof part)
        return cow_error(COW_CORRUPT, "'%.100s...' is no path of the history; try: h5cow verify", path);
    for (const char *end = path; *end != '\0';) {
        H5L_info2_t info;

        if (end == path && strncmp(path, COW_ROOT "/", sizeof COW_ROOT) == 0)
            end += sizeof COW_ROOT - 1; /* that one was looked at when the file was opened: attribute() */
        end += 1 + strcspn(end + 1, "/");
        memcpy(part, path, (size_t)(end - path));
        part[end - path] = '\0';
        if (cow_native_link_info(file, part, &info) < 0)
            return -1;
        if (info.type != H5L_TYPE_HARD)
            return cow_error(COW_CORRUPT, "'%s' is not part of the file's history but a link; try: h5cow verify", part);
    }
    return 0;
}

static int too_much(uint64_t elements, size_t size)
{
    return cow_error(COW_CORRUPT, "%llu elements of %zu bytes are claimed, more than such a file has",
                     (unsigned long long)elements, size);
}

int cow_layout_values(cow_loc file, hid_t type, hid_t space, size_t *n)
{
    uint64_t elements, bytes;
    size_t size;

    if (cow_space_elements(space, &elements) < 0 || cow_native_file_size(file.object, &bytes) < 0 ||
        cow_native_element_size(file.object, type, &size) < 0)
        return -1;
    if (size == 0 || elements > bytes / size)
        return too_much(elements, size);
    *n = (size_t)elements;
    return 0;
}

#define SPARSE_BYTES ((uint64_t)64 << 20) /* of chunks that may be missing, or compressed */
#define SPARSE_TIMES 8                    /* and of each byte of the file */

int cow_layout_most(cow_loc file, uint64_t *bytes)
{
    if (cow_native_file_size(file.object, bytes) < 0)
        return -1;
    *bytes = cow_times(*bytes, SPARSE_TIMES) + SPARSE_BYTES;
    return 0;
}

/* All ELEMENTS, or those of one chunk, which HDF5 decodes as a whole, where they are more. */
static int most_elements(hid_t dcpl, uint64_t elements, uint64_t *most)
{
    hsize_t chunk[H5S_MAX_RANK];
    uint64_t inside = 1;
    int rank;

    *most = elements;
    if (H5Pget_layout(dcpl) != H5D_CHUNKED)
        return 0;
    if ((rank = H5Pget_chunk(dcpl, H5S_MAX_RANK, chunk)) < 0)
        return cow_error_native("cannot look at the chunks of a dataset");
    for (int d = 0; d < rank; d++)
        inside = cow_times(inside, chunk[d]);
    if (inside > elements)
        *most = inside;
    return 0;
}

int cow_layout_elements(cow_loc file, hid_t dcpl, hid_t type, hid_t space, size_t *n)
{
    bool chunked = H5Pget_layout(dcpl) == H5D_CHUNKED;
    uint64_t elements, together, bytes;
    size_t size;

    if (cow_space_elements(space, &elements) < 0 || most_elements(dcpl, elements, &together) < 0 ||
        (chunked ? cow_layout_most(file, &bytes) : cow_native_file_size(file.object, &bytes)) < 0 ||
        cow_native_element_size(file.object, type, &size) < 0)
        return -1;
    if (size == 0 || together > bytes / size)
        return too_much(together, size);
    *n = (size_t)elements;
    return 0;
}

int cow_layout_version(cow_loc file, const char *path)
{
    cow_loc object;
    H5I_type_t type;

    if (cow_layout_hard(file, path) < 0 || cow_native_open(file, path, &object) < 0)
        return -1;
    type = object.type;
    if (cow_native_close(object) < 0)
        return -1;
    return type == H5I_GROUP ? 0 : cow_error(COW_CORRUPT, "'%s' is not the tree of a version; try: h5cow verify", path);
}

/* ---- attributes ---- */

/* The attribute of /_versioned_data, where that is a group of the file itself; what else has the name is somebody else's.
 * VALUE NULL: is it there? */
static int attribute(cow_loc file, const char *name, hid_t type, void *value)
{
    H5L_info2_t info;
    cow_loc group;
    int found = cow_native_exists(file, COW_ROOT);

    if (found <= 0)
        return found;
    if (cow_native_link_info(file, COW_ROOT, &info) < 0)
        return -1;
    if (info.type != H5L_TYPE_HARD)
        return 0;
    if (cow_native_open(file, COW_ROOT, &group) < 0)
        return -1;
    found = group.type != H5I_GROUP ? 0
            : value == NULL         ? cow_native_attribute_exists(group, name)
                                    : cow_native_attribute_get(group, name, type, value);
    return cow_native_close(group) < 0 ? -1 : found;
}

int cow_layout_has(cow_loc file, const char *name)
{
    return attribute(file, name, H5I_INVALID_HID, NULL);
}

int cow_layout_number(cow_loc file, const char *name, hid_t type, void *value)
{
    return attribute(file, name, type, value);
}

/* ---- row types ---- */

typedef struct member {
    const char *name;
    size_t offset, size; /* size: of an unsigned integer */
} member;

static hid_t compound(const member *members, size_t n, size_t size)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, size);
    bool bad = type < 0;

    for (size_t i = 0; !bad && i < n; i++)
        bad = H5Tinsert(type, members[i].name, members[i].offset,
                        members[i].size == 8   ? H5T_STD_U64LE
                        : members[i].size == 4 ? H5T_STD_U32LE
                                               : H5T_STD_U8LE) < 0;
    if (bad)
        cow_error_native("cannot describe a table");
    return type;
}

static hid_t dataset_row_type(void)
{
    static const member members[] = {{"head", 0, 8},        {"root", 8, 8},       {"pool", 16, 4}, {"layout", 20, 1},
                                     {"alloc_time", 21, 1}, {"fill_time", 22, 1}, {"flags", 23, 1}};

    return compound(members, sizeof members / sizeof *members, sizeof(cow_layout_dataset_row));
}

static hid_t snapshot_row_type(void)
{
    static const member members[] = {
        {"head", 0, 8}, {"snapshot", 8, 8}, {"version", 16, 8}, {"elements", 24, 8}, {"attributes", 32, 8}};

    return compound(members, sizeof members / sizeof *members, sizeof(cow_layout_snapshot_row));
}

static hid_t pool_row_type(void)
{
    hsize_t size = COW_HASH_SIZE;
    hid_t type = H5Tcreate(H5T_COMPOUND, COW_HASH_SIZE), bytes = H5Tarray_create2(H5T_STD_U8LE, 1, &size);

    if (type < 0 || bytes < 0 || H5Tinsert(type, "signature", 0, bytes) < 0)
        cow_error_native("cannot describe a table");
    cow_close(bytes);
    return type;
}

static hid_t slot_row_type(unsigned rank)
{
    hsize_t hash = COW_HASH_SIZE, extent = rank;
    hid_t type = H5Tcreate(H5T_COMPOUND, cow_slot_row_size(rank));
    hid_t bytes = H5Tarray_create2(H5T_STD_U8LE, 1, &hash), dims = H5Tarray_create2(H5T_STD_U32LE, 1, &extent);

    if (type < 0 || bytes < 0 || dims < 0 || H5Tinsert(type, "hash", 0, bytes) < 0 ||
        H5Tinsert(type, "checksum", COW_HASH_SIZE, H5T_STD_U64LE) < 0 ||
        H5Tinsert(type, "extent", COW_HASH_SIZE + 8, dims) < 0)
        cow_error_native("cannot describe a slot table");
    cow_close(dims, bytes);
    return type;
}

static hid_t lack_row_type(void)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(cow_layout_lack)), text = H5Tcopy(H5T_C_S1);

    if (type < 0 || text < 0 || H5Tset_size(text, H5T_VARIABLE) < 0 || H5Tset_cset(text, H5T_CSET_UTF8) < 0 ||
        H5Tinsert(type, "version", offsetof(cow_layout_lack, version), H5T_STD_U64LE) < 0 ||
        H5Tinsert(type, "head", offsetof(cow_layout_lack, head), H5T_STD_U64LE) < 0 ||
        H5Tinsert(type, "path", offsetof(cow_layout_lack, path), text) < 0 ||
        H5Tinsert(type, "reason", offsetof(cow_layout_lack, reason), text) < 0)
        cow_error_native("cannot describe a table");
    cow_close(text);
    return type;
}

static hid_t operation_row_type(void)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(cow_layout_operation)), text = H5Tcopy(H5T_C_S1);

    if (type < 0 || text < 0 || H5Tset_size(text, H5T_VARIABLE) < 0 || H5Tset_cset(text, H5T_CSET_UTF8) < 0 ||
        H5Tinsert(type, "time", offsetof(cow_layout_operation, time), H5T_STD_I64LE) < 0 ||
        H5Tinsert(type, "version", offsetof(cow_layout_operation, version), H5T_STD_U64LE) < 0 ||
        H5Tinsert(type, "user", offsetof(cow_layout_operation, user), text) < 0 ||
        H5Tinsert(type, "host", offsetof(cow_layout_operation, host), text) < 0 ||
        H5Tinsert(type, "program", offsetof(cow_layout_operation, program), text) < 0 ||
        H5Tinsert(type, "what", offsetof(cow_layout_operation, what), text) < 0 ||
        H5Tinsert(type, "kind", offsetof(cow_layout_operation, kind), H5T_STD_U8LE) < 0)
        cow_error_native("cannot describe a table");
    cow_close(text);
    return type;
}

static hid_t free_row_type(void)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(cow_layout_free_row));

    if (type < 0 || H5Tinsert(type, "address", offsetof(cow_layout_free_row, address), H5T_STD_U64LE) < 0 ||
        H5Tinsert(type, "size", offsetof(cow_layout_free_row, size), H5T_STD_U64LE) < 0)
        cow_error_native("cannot describe a table");
    return type;
}

static hid_t hash_row_type(void)
{
    static const member members[] = {{"key", 0, 8}, {"slot", 8, 8}};

    return compound(members, sizeof members / sizeof *members, COW_LOOKUP_ROW);
}

static hid_t snapshot_rows_row_type(void)
{
    static const member members[] = {{"key", 0, 8}, {"row", 8, 8}};

    return compound(members, sizeof members / sizeof *members, COW_LOOKUP_ROW);
}

static hid_t row_type(cow_table_kind kind, unsigned rank)
{
    switch (kind) {
    case COW_TABLE_DATASETS:
        return dataset_row_type();
    case COW_TABLE_POOLS:
        return pool_row_type();
    case COW_TABLE_SNAPSHOTS:
        return snapshot_row_type();
    case COW_TABLE_INDEX:
        return H5Tcopy(H5T_STD_U8LE);
    case COW_TABLE_SLOTS:
        return slot_row_type(rank);
    case COW_TABLE_INCOMPLETE:
        return lack_row_type();
    case COW_TABLE_OPERATIONS:
        return operation_row_type();
    case COW_TABLE_FREE:
        return free_row_type();
    case COW_TABLE_HASHES:
        return hash_row_type();
    case COW_TABLE_SNAPSHOT_ROWS:
        return snapshot_rows_row_type();
    }
    return H5I_INVALID_HID;
}

bool cow_layout_below(const char *path)
{
    return strncmp(path, COW_ROOT "/", sizeof COW_ROOT) == 0;
}

void cow_layout_mark(char marked[COW_MARKED_MAX], const char *path, uint64_t root)
{
    size_t n = sizeof COW_ROOT - 1;
    unsigned digits = 0;

    while (digits < 64 && root >> digits != 0)
        digits++;
    memcpy(marked, path, n);
    while (digits-- > 0) {
        marked[n++] = '/';
        if (root >> digits & 1)
            marked[n++] = '.';
    }
    snprintf(marked + n, COW_MARKED_MAX - n, "%s", path + sizeof COW_ROOT - 1);
}

bool cow_layout_unmark(char path[COW_MARKED_MAX], uint64_t *root)
{
    char *rest = path + sizeof COW_ROOT - 1;
    unsigned digits = 0;
    uint64_t number = 0;

    if (!cow_layout_below(path))
        return false;
    for (; rest[0] == '/' && (rest[1] == '/' || (rest[1] == '.' && rest[2] == '/')); digits++) {
        number = number << 1 | (rest[1] == '.');
        rest += rest[1] == '.' ? 2 : 1;
    }
    if (digits == 0 || digits > 64 || path[sizeof COW_ROOT] != '.' || number == UINT64_MAX ||
        (strncmp(rest, "/raw/", 5) != 0 && strncmp(rest, "/views/", 7) != 0))
        return false;
    memmove(path + sizeof COW_ROOT - 1, rest, strlen(rest) + 1);
    *root = number;
    return true;
}

/* ---- views ---- */

void cow_layout_part_path(char path[COW_PATH_MAX], uint64_t offset)
{
    snprintf(path, COW_PATH_MAX, COW_PATH_VIEWS "/p%llx", (unsigned long long)(offset / COW_VIEWS_PART));
}

void cow_layout_view_path(char path[COW_PATH_MAX], uint64_t parts, uint64_t offset)
{
    if (offset < parts)
        snprintf(path, COW_PATH_MAX, COW_PATH_VIEWS "/%llx", (unsigned long long)offset);
    else
        snprintf(path, COW_PATH_MAX, COW_PATH_VIEWS "/p%llx/%llx", (unsigned long long)(offset / COW_VIEWS_PART),
                 (unsigned long long)(offset % COW_VIEWS_PART));
}

/* All of the LENGTH digits at TEXT, as this program writes them. */
static bool read_number(const char *text, size_t length, unsigned base, uint64_t *number)
{
    static const char digits[] = "0123456789abcdef";

    *number = 0;
    for (size_t i = 0; i < length; i++) {
        const char *digit = text[i] == '\0' ? NULL : memchr(digits, text[i], base);

        if (digit == NULL || __builtin_mul_overflow(*number, base, number) ||
            __builtin_add_overflow(*number, (uint64_t)(digit - digits), number))
            return false;
    }
    return length == 1 || (length > 1 && text[0] != '0');
}

static bool read_part(const char *name, size_t length, uint64_t *offset)
{
    return length > 1 && name[0] == 'p' && read_number(name + 1, length - 1, 16, offset) &&
           !__builtin_mul_overflow(*offset, COW_VIEWS_PART, offset);
}

bool cow_layout_part_name(const char *name, uint64_t *offset)
{
    return read_part(name, strlen(name), offset);
}

int cow_layout_source(const char *path, uint64_t *number)
{
    static const char heads[] = COW_PATH_HEADS "/", views[] = COW_PATH_VIEWS "/";
    uint64_t part = 0;
    const char *name;

    if (strncmp(path, heads, sizeof heads - 1) == 0) {
        name = path + sizeof heads - 1;
        return read_number(name, strlen(name), 10, number);
    }
    if (strncmp(path, views, sizeof views - 1) != 0)
        return 0;
    path += sizeof views - 1;
    if ((name = strchr(path, '/')) == NULL)
        return read_number(path, strlen(path), 16, number) ? 2 : 0;
    if (!read_part(path, (size_t)(name - path), &part) || !read_number(name + 1, strlen(name + 1), 16, number) ||
        *number >= COW_VIEWS_PART)
        return 0;
    *number += part;
    return 2;
}

/* ---- tables ---- */

void cow_layout_raw_path(char path[COW_PATH_MAX], uint32_t pool)
{
    snprintf(path, COW_PATH_MAX, COW_PATH_RAW "/%u", pool);
}

void cow_table_path(char path[COW_PATH_MAX], cow_table_kind kind, uint32_t number)
{
    static const char *const names[] = {"datasets",   "pools",      "snapshots", "index", "",
                                        "incomplete", "operations", "free",      "",      "snapshot_rows"};

    if (kind == COW_TABLE_SLOTS)
        snprintf(path, COW_PATH_MAX, COW_PATH_SLOTS "/%u", number);
    else if (kind == COW_TABLE_HASHES)
        snprintf(path, COW_PATH_MAX, COW_PATH_HASHES "/%u", number);
    else
        snprintf(path, COW_PATH_MAX, COW_ROOT "/%s", names[kind]);
}

/* NULL: rows of SIZE bytes are stored in chunks such as a table has. */
static const char *not_a_list(hid_t dcpl, size_t size)
{
    H5D_fill_value_t fill;
    hsize_t chunk;
    unsigned flags;
    size_t parameters = 0;

    if (H5Pget_layout(dcpl) != H5D_CHUNKED || H5Pget_chunk(dcpl, 1, &chunk) != 1 || size == 0 ||
        chunk > MOST_CHUNK_BYTES / size)
        return "is not stored as a table is";
    for (int i = 0; i < H5Pget_nfilters(dcpl); i++)
        if (i > 0 || H5Pget_filter2(dcpl, 0, &flags, &parameters, NULL, 0, NULL, NULL) != H5Z_FILTER_FLETCHER32)
            return "has filters that no table has";
    return H5Pfill_value_defined(dcpl, &fill) < 0 || fill == H5D_FILL_VALUE_USER_DEFINED ? "has rows without content"
                                                                                         : NULL;
}

int cow_layout_stored(void *dataset, size_t row_size)
{
    hid_t dcpl = cow_native_dataset_dcpl(dataset);
    const char *bad = dcpl < 0 ? NULL : not_a_list(dcpl, row_size);

    if (bad != NULL)
        cow_error(COW_CORRUPT, "a table below " COW_ROOT " %s; try: h5cow recover", bad);
    if (dcpl >= 0)
        H5Pclose(dcpl);
    return dcpl < 0 || bad != NULL ? -1 : 0;
}

int cow_layout_room(cow_loc file, const char *path, uint64_t rows, size_t size)
{
    uint64_t bytes;

    if (cow_native_file_size(file.object, &bytes) < 0)
        return -1;
    if (size == 0 || rows > bytes / size)
        return cow_error(COW_CORRUPT, "'%s' claims %llu rows of %zu bytes, more than the file has; try: h5cow recover",
                         path, (unsigned long long)rows, size);
    return 0;
}

/* 0: the rows of DATASET are of this kind. */
static int check_rows(void *dataset, const char *name, cow_table_kind kind, unsigned rank)
{
    hid_t stored = cow_native_dataset_type(dataset), expected = stored < 0 ? H5I_INVALID_HID : row_type(kind, rank);
    htri_t same = expected < 0 ? -1 : H5Tequal(stored, expected);

    if (same < 0)
        cow_error_native("cannot look at the rows of '%s'", name);
    else if (!same)
        cow_error(COW_CORRUPT, "'%s' has other rows than the format knows; try: h5cow recover", name);
    cow_close(expected, stored);
    return same > 0 ? 0 : -1;
}

static int check_table(void *dataset, size_t row_size, cow_table_kind kind)
{
    char path[COW_PATH_MAX];

    cow_table_path(path, kind, 0);
    return check_rows(dataset, path, kind, 0) < 0 ? -1 : cow_layout_stored(dataset, row_size);
}

static int check_datasets(void *dataset, size_t row_size)
{
    return check_table(dataset, row_size, COW_TABLE_DATASETS);
}

static int check_pools(void *dataset, size_t row_size)
{
    return check_table(dataset, row_size, COW_TABLE_POOLS);
}

static int check_snapshots(void *dataset, size_t row_size)
{
    return check_table(dataset, row_size, COW_TABLE_SNAPSHOTS);
}

static int check_index(void *dataset, size_t row_size)
{
    return check_table(dataset, row_size, COW_TABLE_INDEX);
}

static int check_incomplete(void *dataset, size_t row_size)
{
    return check_table(dataset, row_size, COW_TABLE_INCOMPLETE);
}

static int check_operations(void *dataset, size_t row_size)
{
    return check_table(dataset, row_size, COW_TABLE_OPERATIONS);
}

static int check_free(void *dataset, size_t row_size)
{
    return check_table(dataset, row_size, COW_TABLE_FREE);
}

static int check_hashes(void *dataset, size_t row_size)
{
    return check_table(dataset, row_size, COW_TABLE_HASHES);
}

static int check_snapshot_rows(void *dataset, size_t row_size)
{
    return check_table(dataset, row_size, COW_TABLE_SNAPSHOT_ROWS);
}

/* Before the first row is read, written or added: who opens a file rarely needs all of its tables. Slots have a rank, so
 * they are looked at when they are opened. */
static cow_table_check *const check_of[] = {
    [COW_TABLE_DATASETS] = check_datasets,     [COW_TABLE_POOLS] = check_pools,
    [COW_TABLE_SNAPSHOTS] = check_snapshots,   [COW_TABLE_INDEX] = check_index,
    [COW_TABLE_SLOTS] = cow_layout_stored,     [COW_TABLE_INCOMPLETE] = check_incomplete,
    [COW_TABLE_OPERATIONS] = check_operations, [COW_TABLE_FREE] = check_free,
    [COW_TABLE_HASHES] = check_hashes,         [COW_TABLE_SNAPSHOT_ROWS] = check_snapshot_rows};

bool cow_table_is_summed(cow_table_kind kind)
{
    return kind != COW_TABLE_INDEX && kind != COW_TABLE_SLOTS;
}

size_t cow_table_row_size(cow_table_kind kind, unsigned rank)
{
    switch (kind) {
    case COW_TABLE_DATASETS:
        return sizeof(cow_layout_dataset_row);
    case COW_TABLE_POOLS:
        return COW_HASH_SIZE;
    case COW_TABLE_SNAPSHOTS:
        return sizeof(cow_layout_snapshot_row);
    case COW_TABLE_INDEX:
        return 1;
    case COW_TABLE_SLOTS:
        return cow_slot_row_size(rank);
    case COW_TABLE_INCOMPLETE:
        return sizeof(cow_layout_lack);
    case COW_TABLE_OPERATIONS:
        return sizeof(cow_layout_operation);
    case COW_TABLE_FREE:
        return sizeof(cow_layout_free_row);
    case COW_TABLE_HASHES:
    case COW_TABLE_SNAPSHOT_ROWS:
        return COW_LOOKUP_ROW;
    }
    return 0;
}

cow_table *cow_layout_table_open_at(cow_loc file, const char *path, cow_table_kind kind, unsigned rank)
{
    size_t size = cow_table_row_size(kind, rank);
    void *dataset = NULL;
    cow_table *table;

    if (cow_layout_hard(file, path) < 0 || (dataset = cow_native_dataset_open(file, path)) == NULL)
        return NULL;
    if (kind == COW_TABLE_SLOTS && check_rows(dataset, path, kind, rank) < 0) {
        if (cow_native_dataset_close(dataset) < 0)
            cow_error_clear(); /* the first error is the one to tell */
        return NULL;
    }
    if ((table = cow_native_table_over(dataset, path, check_of[kind])) != NULL &&
        cow_layout_room(file, path, table->rows, table->row_size > size ? table->row_size : size) < 0) {
        table->close(table);
        table = NULL;
    }
    return table;
}

cow_table *cow_layout_table_open(cow_loc file, cow_table_kind kind, uint32_t number, unsigned rank)
{
    char path[COW_PATH_MAX];

    cow_table_path(path, kind, number);
    return cow_layout_table_open_at(file, path, kind, rank);
}

cow_table *cow_layout_table_create(cow_loc file, cow_table_kind kind, uint32_t number, unsigned rank)
{
    hid_t type = row_type(kind, rank);
    char path[COW_PATH_MAX];
    cow_table *table = NULL;

    cow_table_path(path, kind, number);
    if (type >= 0)
        table = cow_native_table_create(
            file, path, type,
            kind == COW_TABLE_POOLS || (kind >= COW_TABLE_INCOMPLETE && kind <= COW_TABLE_FREE) ? 1024 : 4096,
            cow_table_is_summed(kind));
    cow_close(type);
    return table;
}

/* Where the row begins, an address or a signature, it is never zero. */
int cow_layout_rows(cow_table *table, cow_table_kind kind, uint64_t first, uint64_t count, void *rows)
{
    static const uint8_t zeros[COW_HASH_SIZE];
    static const char *const names[] = {"datasets",   "pools",      "snapshots", "index", "slots",
                                        "incomplete", "operations", "free",      "hashes"};
    const size_t key = kind == COW_TABLE_POOLS ? COW_HASH_SIZE : 8;

    if (table->read(table, first, count, rows) < 0)
        return -1;
    for (uint64_t i = 0; kind < COW_TABLE_INDEX && i < count; i++)
        if (memcmp((const uint8_t *)rows + i * table->row_size, zeros, key) == 0)
            return cow_error(COW_CORRUPT, "row %llu of %s/%s was never stored; try: h5cow recover",
                             (unsigned long long)(first + i), COW_ROOT, names[kind]);
    return 0;
}

/* The bytes of the chunk of rows that begins with row FIRST, as HDF5 decodes them; free() it. */
static uint8_t *stored_rows(void *dataset, const char *path, uint64_t first, size_t bytes)
{
    hsize_t size = 0;
    uint32_t mask;
    uint8_t *rows = NULL;
    int found = cow_native_chunk_size(dataset, &first, &size);

    if (found < 0) {
        cow_error_native("row %llu of '%s' cannot be found", (unsigned long long)first, path);
    } else if (size < bytes || size > bytes + 4) { /* with the four bytes of fletcher32, or where that was skipped */
        cow_error(COW_CORRUPT, "row %llu of '%s' was never stored; try: h5cow recover", (unsigned long long)first,
                  path);
    } else if ((rows = malloc(size)) == NULL) {
        cow_error(COW_MEMORY, "no memory to read '%s'", path);
    } else if (cow_native_chunk_read(dataset, &first, &mask, rows, size) < 0) {
        cow_error_native("row %llu of '%s' cannot be read", (unsigned long long)first, path);
        free(rows);
        rows = NULL;
    }
    return rows;
}

int cow_layout_texts(cow_loc file, void *dataset, const char *path, uint64_t first, uint64_t count, uint64_t *sum)
{
    hid_t dcpl = cow_native_dataset_dcpl(dataset), type = cow_native_dataset_type(dataset);
    cow_lengths *lengths = type < 0 ? NULL : cow_lengths_open(file.object, type);
    size_t size = lengths == NULL ? 0 : cow_lengths_element(lengths);
    hsize_t chunk;
    int status = dcpl < 0 || lengths == NULL || H5Pget_chunk(dcpl, 1, &chunk) != 1 ? -1 : 0;

    while (status == 0 && count > 0) {
        uint64_t inside = first % chunk, n = chunk - inside < count ? chunk - inside : count;
        uint8_t *rows = stored_rows(dataset, path, first - inside, (size_t)chunk * size);

        status = rows == NULL ? -1 : cow_lengths_check(lengths, rows + inside * size, n, sum);
        free(rows);
        first += n;
        count -= n;
    }
    cow_lengths_close(lengths);
    cow_close(type, dcpl);
    return status;
}

/* ---- pools ---- */

void *cow_layout_raw_open(cow_loc file, uint32_t pool)
{
    char path[COW_PATH_MAX];

    cow_layout_raw_path(path, pool);
    return cow_layout_hard(file, path) < 0 ? NULL : cow_native_dataset_open(file, path);
}

int cow_layout_raw_shape(hid_t type, hid_t space, hid_t dcpl, cow_raw *raw)
{
    hsize_t extent[COW_MAX_RANK], most[COW_MAX_RANK], chunk[COW_MAX_RANK];
    int rank = H5Sget_simple_extent_ndims(space);

    *raw = (cow_raw){.element_size = H5Tget_size(type)};
    if (rank < 1 || rank > COW_MAX_RANK || H5Sget_simple_extent_dims(space, extent, most) != rank ||
        H5Pget_layout(dcpl) != H5D_CHUNKED || H5Pget_chunk(dcpl, COW_MAX_RANK, chunk) != rank || raw->element_size == 0)
        return cow_error(COW_CORRUPT, "the chunks of a pool are not in a chunked dataset; try: h5cow verify");
    raw->rank = (unsigned)rank;
    raw->chunk_bytes = raw->element_size;
    for (int d = 0; d < rank; d++) {
        raw->chunk[d] = chunk[d];
        if (chunk[d] == 0 || (d == 0 ? most[d] != H5S_UNLIMITED : extent[d] != chunk[d]) ||
            __builtin_mul_overflow(raw->chunk_bytes, chunk[d], &raw->chunk_bytes))
            return cow_error(COW_CORRUPT, "a pool has impossible chunks; try: h5cow verify");
    }
    raw->room = extent[0] / chunk[0];
    return 0;
}
