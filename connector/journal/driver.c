/* The H5FD class: unpack, call journal.h, pack. Contract: driver.h.
 *
 * A driver with a lock callback makes HDF5 mark the superblock as being written, as files without a journal need it. In
 * those with one that mark is the journal's own sign for an unfinished apply: HDF5 never sees it, and its own is not
 * committed. */
#include "journal/driver.h"

#include "base/error.h"
#include "base/map.h"
#include "h5/chunk_tree.h"

#include <H5FDdevelop.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME                     "h5cow_journal"
#define VALUE                    ((H5FD_class_value_t)0x6835) /* beyond what HDF5 itself numbers */
#define GIVEN_BYTES              ((uint64_t)64 << 20) /* what is written there is held in memory until the commit */
#define MOST_MET                 ((size_t)1 << 17)    /* object headers that are remembered: 6 MiB */
#define MAX_ADDRESS              ((haddr_t)COW_JOURNAL_DRIVER_LIMIT)
#define COW_JOURNAL_DRIVER_LIMIT ((uint64_t)1 << 60)

typedef struct driver_file {
    H5FD_t pub; /* first: HDF5 sees only this */
    struct driver_file *next;
    cow_journal *journal;
    haddr_t eoa;
    unsigned long failures;
    unsigned accesses[2]; /* of metadata, of raw data */
    bool opening;         /* HDF5 has not set its end of allocation yet */
    bool lockless;        /* a file system without locks is no error */
    hbool_t joined; /* h5repart makes one file of a family: what the superblock says of its driver does not count */
    cow_journal_options options;
    cow_place *place; /* cow_journal_driver_offer */
    size_t places;
    uint64_t given; /* bytes of them, since they were offered */
    bool held, offered;
    bool writable;
    cow_place piece; /* of the last page that was taken past HDF5: what is left */
    cow_map met;     /* addresses of object headers that HDF5 has read or written */
    bool all_met;    /* and perhaps of others */
} driver_file;

/* HDF5 tells files by number, and drivers by a registered copy of the class. */
static struct {
    driver_file *first;
    hid_t id, apart; /* the second: cow_journal_driver_set_apart */
    unsigned long failures;
} open_files = {.id = H5I_INVALID_HID, .apart = H5I_INVALID_HID};

/* HDF5 calls while the connector may have an error of its own at hand: HELD. */
static herr_t leave(int status, driver_file *file, cow_error_held *held)
{
    if (status < 0 && file != NULL) {
        cow_error_in_file(cow_journal_name(file->journal));
        open_files.failures++;
        file->failures++;
    }
    if (status < 0)
        cow_error_publish();
    cow_error_put_back(held);
    return status;
}

/* vol/page_buffer.c says why. HDF5 asks its list for the page buffer after it has opened the file. */
static int without_page_buffer(hid_t fapl)
{
    size_t size;
    unsigned metadata, raw;

    if (H5Pget_page_buffer_size(fapl, &size, &metadata, &raw) < 0)
        return cow_error_native("cannot get the size of the page buffer");
    return size > 0 && H5Pset_page_buffer_size(fapl, 0, 0, 0) < 0 ? cow_error_native("cannot set the page buffer") : 0;
}

/* As sec2: a property that h5repart adds. */
#define FAMILY_TO_SINGLE "family_to_single"

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t fapl, haddr_t maxaddr)
{
    const cow_journal_options *options = H5Pget_driver_info(fapl);
    cow_journal_mode mode = {.writable = flags & H5F_ACC_RDWR,
                             .create = flags & H5F_ACC_CREAT,
                             .exclusive = flags & H5F_ACC_EXCL,
                             .truncate = flags & H5F_ACC_TRUNC};
    cow_error_held *held = cow_error_hold();
    driver_file *file = calloc(1, sizeof *file);
    bool use;
    int number;

    (void)maxaddr;
    if (file == NULL) {
        cow_error(COW_MEMORY, "%s: no memory to open the file", name);
        goto failed;
    }
    file->writable = mode.writable;
    file->options = options == NULL ? cow_journal_defaults : *options;
    if ((file->journal = cow_journal_open(name, mode, &file->options, &number)) == NULL)
        goto failed;
    if ((flags & H5F_ACC_SWMR_WRITE) && !cow_journal_plain(file->journal)) {
        cow_error(COW_UNSUPPORTED, "%s: a file with history cannot be opened for SWMR writing", name);
        cow_journal_close(file->journal);
        goto failed;
    }
    if (H5Pget_file_locking(fapl, &use, &file->lockless) < 0)
        file->lockless = false;
    if (H5Pexist(fapl, FAMILY_TO_SINGLE) > 0 && H5Pget(fapl, FAMILY_TO_SINGLE, &file->joined) < 0)
        file->joined = false;
    if (!mode.create && !cow_journal_plain(file->journal) && without_page_buffer(fapl) < 0) {
        cow_journal_close(file->journal);
        goto failed;
    }
    file->opening = true;
    file->next = open_files.first;
    open_files.first = file;
    leave(0, NULL, held);
    return &file->pub;
failed:
    free(file);
    cow_error_in_file(name);
    leave(-1, NULL, held);
    return NULL;
}

static herr_t driver_close(H5FD_t *pub)
{
    driver_file *file = (driver_file *)pub;
    cow_error_held *held = cow_error_hold();

    for (driver_file **at = &open_files.first; *at != NULL; at = &(*at)->next)
        if (*at == file) {
            *at = file->next;
            break;
        }
    cow_journal_close(file->journal);
    cow_map_free(&file->met);
    free(file->place);
    free(file);
    return leave(0, NULL, held);
}

static int driver_compare(const H5FD_t *a, const H5FD_t *b)
{
    return cow_journal_compare(((const driver_file *)a)->journal, ((const driver_file *)b)->journal);
}

/* As sec2: H5Fget_eoa asks for the SWMR one. But what HDF5 reads and writes in a file with a journal stands in memory already, and is written past
 * HDF5 as well: it shall have nothing in an accumulator besides. */
static herr_t driver_query(const H5FD_t *pub, unsigned long *flags)
{
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_POSIX_COMPAT_HANDLE | H5FD_FEAT_SUPPORTS_SWMR_IO |
             H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    if (pub != NULL &&
        (((const driver_file *)pub)->options.in_memory || !cow_journal_plain(((const driver_file *)pub)->journal)))
        *flags &= ~(unsigned long)H5FD_FEAT_ACCUMULATE_METADATA;
    if (pub != NULL && ((const driver_file *)pub)->options.in_memory)
        *flags &= ~(unsigned long)H5FD_FEAT_POSIX_COMPAT_HANDLE; /* HDF5 would look for what the name leads to */
    if (pub != NULL && ((const driver_file *)pub)->joined)
        *flags |= H5FD_FEAT_IGNORE_DRVRINFO;
    return 0;
}

/* What is on a file access list. Copies are this very one: HDF5 leaks half a list where a part of it cannot be copied. */
typedef struct driver_info {
    cow_journal_options options; /* first: what H5Pget_driver_info gives */
    unsigned references;
} driver_info;

static driver_info *info_new(const cow_journal_options *options)
{
    driver_info *info = malloc(sizeof *info);

    if (info != NULL)
        *info = (driver_info){*options, 1};
    return info;
}

/* What files that are reached from this one inherit: external links, virtual datasets. They skip the connector. */
static void *driver_fapl_get(H5FD_t *pub)
{
    driver_info *info = info_new(&((driver_file *)pub)->options);

    if (info != NULL)
        info->options.borrowed = true;
    return info;
}

static void *driver_fapl_copy(const void *from)
{
    driver_info *info = (driver_info *)(uintptr_t)from;

    info->references++;
    return info;
}

static herr_t driver_fapl_free(void *from)
{
    driver_info *info = from;

    if (--info->references == 0)
        free(info);
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *pub, H5FD_mem_t type)
{
    (void)type;
    return ((const driver_file *)pub)->eoa;
}

static herr_t driver_set_eoa(H5FD_t *pub, H5FD_mem_t type, haddr_t address)
{
    driver_file *file = (driver_file *)pub;

    (void)type;
    /* On opening HDF5 feels its way to the end that the superblock tells. */
    if (!file->opening)
        cow_journal_extended(file->journal, file->eoa, address);
    else if (address >= cow_journal_stored_end(file->journal))
        file->opening = false;
    file->eoa = address;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *pub, H5FD_mem_t type)
{
    (void)type;
    return cow_journal_end(((const driver_file *)pub)->journal);
}

/* The smallest of the places that were offered and have room. */
static bool take_place(driver_file *file, uint64_t size, uint64_t *address)
{
    cow_place *best = NULL;

    if (file->places == 0 || file->held || size == 0 || size > GIVEN_BYTES || file->given > GIVEN_BYTES - size)
        return false;
    for (size_t i = 0; i < file->places; i++)
        if (file->place[i].size >= size && (best == NULL || file->place[i].size < best->size))
            best = &file->place[i];
    if (best == NULL)
        return false;
    *address = file->pub.base_addr + best->address;
    best->address += size;
    best->size -= size;
    file->given += size;
    if (best->size == 0)
        memmove(best, best + 1, (size_t)(file->place + --file->places - best) * sizeof *best);
    return true;
}

static haddr_t driver_alloc(H5FD_t *pub, H5FD_mem_t type, hid_t dxpl, hsize_t size)
{
    driver_file *file = (driver_file *)pub;
    cow_error_held *held = cow_error_hold();
    uint64_t end = file->eoa, address;
    uint64_t alignment = !pub->paged_aggr && pub->alignment > 1 && size >= pub->threshold ? pub->alignment : 1;

    (void)type;
    (void)dxpl;
    if (size > MAX_ADDRESS || end > MAX_ADDRESS - size) {
        cow_error(COW_USAGE, "the file would be larger than a file can be");
        leave(-1, file, held);
        return HADDR_UNDEF;
    }
    if (alignment > 1 || pub->paged_aggr || !take_place(file, size, &address)) {
        address = cow_journal_allocate(file->journal, pub->base_addr, alignment, pub->paged_aggr, size, &end);
        file->eoa = end;
    }
    file->opening = false;
    leave(0, file, held);
    return address;
}

static herr_t driver_get_handle(H5FD_t *pub, hid_t fapl, void **handle)
{
    (void)fapl;
    if (handle == NULL)
        return -1;
    *handle = cow_journal_descriptor(((driver_file *)pub)->journal);
    return 0;
}

/* HDF5 has object headers in memory that it has read or written, and begins to read them where they begin. A cache image, which comes from
 * elsewhere, has any of them. */
static void note_met(driver_file *file, H5FD_mem_t type, uint64_t address, size_t size)
{
    const size_t signature = 8; /* is looked for where the superblock may be */

    if (file->all_met || cow_journal_plain(file->journal))
        return;
    if (type == H5FD_MEM_SUPER && size > signature && address != file->pub.base_addr)
        file->all_met = true;
    else if (type == H5FD_MEM_OHDR && (file->met.count >= MOST_MET || cow_map_put(&file->met, address, 0) < 0)) {
        cow_error_clear();
        file->all_met = true;
    }
}

/* HDF5 must not see which chunks a head has: it would write over slots that versions name, and free them. */
static int hide_head_index(const driver_file *file, uint64_t address, uint8_t *bytes, size_t size)
{
    const int ours = cow_chunk_tree_owned(bytes, size, address - file->pub.base_addr, NULL);

    if (ours < 0)
        return cow_error(COW_CORRUPT, "the index of a dataset's chunks is damaged at %llu; to see more: h5cow verify",
                         (unsigned long long)address);
    if (ours > 0)
        cow_chunk_tree_hide(bytes, size);
    return 0;
}

static herr_t driver_read(H5FD_t *pub, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size, void *buffer)
{
    driver_file *file = (driver_file *)pub;
    cow_error_held *held = cow_error_hold();
    int status;

    (void)dxpl;
    if (address > MAX_ADDRESS || size > MAX_ADDRESS - address) {
        cow_error(COW_CORRUPT, "address %llu is beyond any file", (unsigned long long)address);
        return leave(-1, file, held);
    }
    if (type == H5FD_MEM_DRAW && cow_journal_meets(file->journal, address, buffer, size))
        return leave(0, file, held);
    note_met(file, type, address, size);
    file->accesses[type == H5FD_MEM_DRAW || type == H5FD_MEM_GHEAP]++;
    status = cow_journal_read(file->journal, address, buffer, size);
    if (status == 0 && type == H5FD_MEM_BTREE && (file->writable || !cow_journal_plain(file->journal)))
        status = hide_head_index(file, address, buffer, size);
    return leave(status, file, held);
}

static herr_t driver_write(H5FD_t *pub, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size, const void *bytes)
{
    driver_file *file = (driver_file *)pub;
    cow_error_held *held = cow_error_hold();

    (void)dxpl;
    if (address > MAX_ADDRESS || size > MAX_ADDRESS - address) {
        cow_error(COW_USAGE, "address %llu is beyond any file", (unsigned long long)address);
        return leave(-1, file, held);
    }
    note_met(file, type, address, size);
    file->accesses[type == H5FD_MEM_DRAW || type == H5FD_MEM_GHEAP]++;
    if (type == H5FD_MEM_DRAW)
        cow_journal_stores(file->journal, address - pub->base_addr, bytes, size);
    return leave(cow_journal_write(file->journal, address, bytes, size), file, held);
}

static herr_t driver_truncate(H5FD_t *pub, hid_t dxpl, hbool_t closing)
{
    driver_file *file = (driver_file *)pub;
    cow_error_held *held = cow_error_hold();

    (void)dxpl;
    (void)closing;
    return leave(cow_journal_truncate(file->journal, file->eoa), file, held);
}

static herr_t driver_lock(H5FD_t *pub, hbool_t writable)
{
    driver_file *file = (driver_file *)pub;
    cow_error_held *held = cow_error_hold();

    return leave(cow_journal_lock_plain(file->journal, writable, file->lockless), file, held);
}

static herr_t driver_unlock(H5FD_t *pub)
{
    cow_journal_unlock_plain(((driver_file *)pub)->journal);
    return 0;
}

static herr_t driver_delete(const char *name, hid_t fapl)
{
    (void)fapl;
    return unlink(name);
}

static const H5FD_class_t driver_class = {
    .version = H5FD_CLASS_VERSION,
    .value = VALUE,
    .name = NAME,
    .maxaddr = MAX_ADDRESS,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(driver_info),
    .fapl_get = driver_fapl_get,
    .fapl_copy = driver_fapl_copy,
    .fapl_free = driver_fapl_free,
    .open = driver_open,
    .close = driver_close,
    .cmp = driver_compare,
    .query = driver_query,
    .alloc = driver_alloc,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .get_handle = driver_get_handle,
    .read = driver_read,
    .write = driver_write,
    .truncate = driver_truncate,
    .lock = driver_lock,
    .unlock = driver_unlock,
    .del = driver_delete,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* HDF5 may have been closed, and opened again, since. */
static int set(hid_t fapl, hid_t *id, const cow_journal_options *options)
{
    driver_info *info = info_new(options);
    int status = 0;

    if (info == NULL)
        return cow_error(COW_MEMORY, "no memory to open a file");
    if (*id < 0 || H5Iis_valid(*id) <= 0 || H5Iget_type(*id) != H5I_VFL)
        *id = H5FDregister(&driver_class);
    if (*id < 0 || H5Pset_driver(fapl, *id, info) < 0)
        status = cow_error_native("cannot prepare to open a file");
    driver_fapl_free(info);
    return status;
}

int cow_journal_driver_set(hid_t fapl, const cow_journal_options *options)
{
    return set(fapl, &open_files.id, options);
}

int cow_journal_driver_set_apart(hid_t fapl, const cow_journal_options *options)
{
    return set(fapl, &open_files.apart, options); /* HDF5 compares files of one registration only */
}

/* Of a library that ends these ids are invalid; in one that begins again they are those of others. */
static void unregister(hid_t *id)
{
    if (*id >= 0)
        H5FDunregister(*id);
    *id = H5I_INVALID_HID;
}

void cow_journal_driver_forget(bool library_ends)
{
    unregister(&open_files.id);
    unregister(&open_files.apart);
    while (library_ends && open_files.first != NULL) {
        driver_file *file = open_files.first;

        open_files.first = file->next;
        cow_journal_close(file->journal);
        cow_map_free(&file->met);
        free(file->place);
        free(file);
    }
}

unsigned long cow_journal_driver_failures(void)
{
    return open_files.failures;
}

bool cow_journal_driver_is_set(hid_t fapl)
{
    return open_files.id >= 0 && H5Pget_driver(fapl) == open_files.id;
}

static driver_file *numbered(unsigned long fileno)
{
    driver_file *file = open_files.first;

    while (file != NULL && file->pub.fileno != fileno)
        file = file->next;
    return file;
}

unsigned long cow_journal_driver_file_failures(unsigned long fileno)
{
    const driver_file *file = numbered(fileno);

    return file == NULL ? 0 : file->failures;
}

unsigned *cow_journal_driver_accesses(unsigned long fileno)
{
    driver_file *file = numbered(fileno);

    return file == NULL ? NULL : file->accesses;
}

bool cow_journal_driver_has(const cow_journal *journal)
{
    const driver_file *file = open_files.first;

    while (file != NULL && file->journal != journal)
        file = file->next;
    return file != NULL;
}

cow_journal *cow_journal_driver_of_file(unsigned long fileno)
{
    cow_journal *journal = cow_journal_driver_reads(fileno);

    return journal == NULL || cow_journal_plain(journal) ? NULL : journal;
}

cow_journal *cow_journal_driver_writes(unsigned long fileno)
{
    const driver_file *file = numbered(fileno);

    return file != NULL && (file->options.in_memory || !cow_journal_plain(file->journal)) ? file->journal : NULL;
}

cow_journal *cow_journal_driver_reads(unsigned long fileno)
{
    const driver_file *file = numbered(fileno);

    return file == NULL ? NULL : file->journal;
}

bool cow_journal_driver_met(unsigned long fileno, uint64_t address)
{
    const driver_file *file = numbered(fileno);

    return file == NULL || file->all_met || cow_map_get(&file->met, file->pub.base_addr + address, NULL);
}

bool cow_journal_driver_paged(unsigned long fileno)
{
    const driver_file *file = numbered(fileno);

    return file != NULL && file->pub.paged_aggr;
}

/* SIZE bytes behind all others; UINT64_MAX: the file would be too large. Nobody wants them aligned. */
static uint64_t lengthen(driver_file *file, uint64_t size)
{
    uint64_t end = file->eoa, address;

    if (size > MAX_ADDRESS || end > MAX_ADDRESS - size)
        return UINT64_MAX;
    address = cow_journal_allocate(file->journal, file->pub.base_addr, 1, file->pub.paged_aggr, size, &end);
    file->eoa = end;
    cow_journal_reach(file->journal, address + size);
    return address;
}

/* As HDF5 does it: nothing lies across the end of a page that is not longer than one, and what is begins with a page. */
static uint64_t take_piece(driver_file *file, uint64_t size, uint64_t page)
{
    const uint64_t whole = size <= MAX_ADDRESS ? (size + page - 1) / page * page : size;
    uint64_t address = file->piece.address;

    if (size > file->piece.size) {
        if ((address = lengthen(file, whole)) == UINT64_MAX)
            return UINT64_MAX;
        if (whole - size <= file->piece.size)
            return address;
        file->piece.size = whole;
    }
    file->piece = (cow_place){address + size, file->piece.size - size};
    return address;
}

uint64_t cow_journal_driver_allocate(unsigned long fileno, uint64_t size, uint64_t page, bool at_end)
{
    driver_file *file = numbered(fileno);
    cow_place *best = NULL;
    uint64_t address;

    if (file != NULL && page == 0 && !file->held && size <= GIVEN_BYTES && file->given <= GIVEN_BYTES - size)
        for (size_t i = 0; i < file->places; i++)
            if (file->place[i].size >= size && (best == NULL || file->place[i].size < best->size))
                best = &file->place[i];
    if (best != NULL) {
        best->size -= size;
        file->given += size;
        address = file->pub.base_addr + best->address + best->size;
        if (best->size == 0)
            memmove(best, best + 1, (size_t)(file->place + --file->places - best) * sizeof *best);
        return address;
    }
    if (!at_end)
        return UINT64_MAX;
    address = file == NULL ? UINT64_MAX : page > 0 ? take_piece(file, size, page) : lengthen(file, size);
    if (address == UINT64_MAX)
        cow_error(COW_USAGE, "the file would be larger than a file can be");
    return address;
}

void cow_journal_driver_offer(unsigned long fileno, cow_place *list, size_t count)
{
    driver_file *file = numbered(fileno);
    uint64_t end = 0; /* of the place before */

    /* HDF5 may keep a file open that nobody has open: it then knows itself what was freed since. */
    if (file == NULL || file->offered) {
        free(list);
        return;
    }
    file->offered = true;
    file->place = list;
    for (size_t i = 0; i < count; i++) {
        const cow_place one = list[i];

        if (one.size > 0 && one.address >= end && one.size < MAX_ADDRESS && one.address < MAX_ADDRESS &&
            file->pub.base_addr + one.address + one.size <= file->eoa &&
            cow_journal_is_hdf5s(file->journal, file->pub.base_addr + one.address, one.size)) {
            end = one.address + one.size;
            file->place[file->places++] = one;
        }
    }
}

size_t cow_journal_driver_offered(unsigned long fileno, const cow_place **list)
{
    const driver_file *file = numbered(fileno);

    *list = file == NULL ? NULL : file->place;
    return file == NULL ? 0 : file->places;
}

void cow_journal_driver_hold(unsigned long fileno, bool held)
{
    driver_file *file = numbered(fileno);

    if (file != NULL)
        file->held = held;
}
