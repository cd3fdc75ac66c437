/* Power cuts, simulated: crash [--seed N] [--damages N] [--scenario NAME]
 *
 * Scenario programs run on HDF5 and the journal over a file in memory that logs every write, change of size and sync.
 * Then, for every point between two operations, the power goes: what was synced is there, and of what was not
 *   all, nothing, all but one, one alone, each beginning, and at least --damages random mixtures, in which writes are
 *   whole, lost, torn at multiples of 512 bytes, or torn with random bytes in the part that did not arrive.
 * Each resulting file is opened by a reader, by HDF5 without the journal, and by a writer, which recovers it. All must
 * see exactly one committed state: the last one that was reported, or the one that was being made; HDF5 without the
 * journal may instead be refused, or see an older one where a reader kept a commit from being applied. Recovery is cut
 * off at each of its operations as well, twice; also where it follows a kill, so that nothing new had been synced.
 *
 * What is seen is told by content: for each committed state the bytes that HDF5 reads to read everything in it. HDF5
 * itself is run on a sample of the files, and must agree.
 */
#include "journal/driver.h"
#include "journal/fence.h"
#include "journal/internal.h"
#include "journal/locks.h"
#include "journal/record.h"

#include "error.h"
#include "journal_states.h"

#include <hdf5.h>
#include <xxhash.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define COMMITS_MAX 256
#define MARKS_MAX   4096

/* ---- a file in memory ---- */

typedef enum op_kind { OP_WRITE, OP_TRUNCATE, OP_EXTEND, OP_SYNC } op_kind;

typedef struct op {
    op_kind kind;
    size_t offset, size; /* OP_TRUNCATE: size; OP_EXTEND: at least that */
    uint8_t *bytes;
} op;

typedef struct image {
    uint8_t *data;
    size_t size, capacity;
} image;

typedef struct range_list {
    cow_range *range;
    size_t count, capacity;
} range_list;

static void copy_image(image *to, const image *from);
static image failed; /* the file when a sync failed */

typedef struct memory {
    image file;
    bool log;
    op *ops;
    size_t op_count, op_capacity;
    range_list *reads; /* where reads are noted, or NULL */
    int fail_sync;     /* > 0: the sync of that number fails */
} memory;

static memory disk;
static char dummy[64], real[64]; /* an empty file that carries the locks; the file for HDF5 itself */
static uint64_t random_state = 1;

static void *need(void *pointer)
{
    if (pointer == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    return pointer;
}

static uint64_t any(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return below == 0 ? 0 : (random_state >> 11) % below;
}

static void resize(image *i, size_t size)
{
    if (size > i->capacity) {
        i->capacity = size * 2;
        i->data = need(realloc(i->data, i->capacity));
    }
    if (size > i->size)
        memset(i->data + i->size, 0, size - i->size);
    i->size = size;
}

static void copy_image(image *to, const image *from)
{
    to->size = 0;
    resize(to, from->size);
    if (from->size > 0)
        memcpy(to->data, from->data, from->size);
}

static void put(image *i, size_t offset, const uint8_t *bytes, size_t size)
{
    if (offset + size > i->size)
        resize(i, offset + size);
    memcpy(i->data + offset, bytes, size);
}

static void note(op_kind kind, size_t offset, size_t size, const void *bytes)
{
    op *o;

    if (!disk.log)
        return;
    if (disk.op_count == disk.op_capacity) {
        disk.op_capacity = disk.op_capacity == 0 ? 1024 : disk.op_capacity * 2;
        disk.ops = need(realloc(disk.ops, disk.op_capacity * sizeof *disk.ops));
    }
    o = &disk.ops[disk.op_count++];
    *o = (op){kind, offset, size, NULL};
    if (kind == OP_WRITE) {
        o->bytes = need(malloc(size + 1));
        memcpy(o->bytes, bytes, size);
    }
}

static void forget_ops(op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(ops[i].bytes);
    free(ops);
}

static int memory_open(void *context, const char *name, int flags, mode_t mode)
{
    (void)context;
    return open(name, flags, mode);
}
static int memory_close(void *context, int fd)
{
    (void)context;
    return close(fd);
}
static ssize_t memory_pread(void *context, int fd, void *buffer, size_t size, off_t offset)
{
    size_t at = (size_t)offset;

    (void)context;
    (void)fd;
    if (disk.reads != NULL) {
        range_list *l = disk.reads;
        if (l->count == l->capacity) {
            l->capacity = l->capacity == 0 ? 256 : l->capacity * 2;
            l->range = need(realloc(l->range, l->capacity * sizeof *l->range));
        }
        l->range[l->count++] = (cow_range){at, size};
    }
    if (at >= disk.file.size)
        return 0;
    if (size > disk.file.size - at)
        size = disk.file.size - at;
    memcpy(buffer, disk.file.data + at, size);
    return (ssize_t)size;
}
static ssize_t memory_pwrite(void *context, int fd, const void *buffer, size_t size, off_t offset)
{
    (void)context;
    (void)fd;
    note(OP_WRITE, (size_t)offset, size, buffer);
    put(&disk.file, (size_t)offset, buffer, size);
    return (ssize_t)size;
}
static int memory_fdatasync(void *context, int fd)
{
    (void)context;
    (void)fd;
    if (disk.fail_sync > 0 && --disk.fail_sync == 0) {
        copy_image(&failed, &disk.file);
        errno = EIO;
        return -1;
    }
    note(OP_SYNC, 0, 0, NULL);
    return 0;
}
static int memory_ftruncate(void *context, int fd, off_t size)
{
    (void)context;
    (void)fd;
    note(OP_TRUNCATE, 0, (size_t)size, NULL);
    resize(&disk.file, (size_t)size);
    return 0;
}
static int memory_fallocate(void *context, int fd, off_t offset, off_t size)
{
    (void)context;
    (void)fd;
    note(OP_EXTEND, 0, (size_t)(offset + size), NULL);
    if ((size_t)(offset + size) > disk.file.size)
        resize(&disk.file, (size_t)(offset + size));
    return 0;
}
static int memory_fstat(void *context, int fd, struct stat *about)
{
    (void)context;
    if (fstat(fd, about) < 0)
        return -1;
    about->st_size = (off_t)disk.file.size;
    return 0;
}
static int memory_stat(void *context, const char *name, struct stat *about)
{
    (void)context;
    return stat(name, about);
}
static int memory_lock(void *context, int fd, int command, struct flock *lock)
{
    (void)context;
    return fcntl(fd, command, lock);
}
static int memory_flock(void *context, int fd, int operation)
{
    (void)context;
    return flock(fd, operation);
}

static const cow_disk_calls memory_calls = {.open = memory_open,
                                            .close = memory_close,
                                            .pread = memory_pread,
                                            .pwrite = memory_pwrite,
                                            .fdatasync = memory_fdatasync,
                                            .ftruncate = memory_ftruncate,
                                            .fallocate = memory_fallocate,
                                            .fstat = memory_fstat,
                                            .stat = memory_stat,
                                            .lock = memory_lock,
                                            .flock = memory_flock};

/* ---- what a scenario leaves ---- */

/* What is known when so many operations were done: that many states are committed, and applied. */
typedef struct mark {
    size_t ops;
    uint64_t sequence, applied;
} mark;

/* A committed state: the bytes that reading everything reads, and what everything is. */
typedef struct reference {
    bool known;
    range_list ranges;
    uint8_t *logical; /* as HDF5 in this process sees the file */
    size_t size;
    uint64_t digest;
} reference;

static mark marks[MARKS_MAX];
static size_t mark_count;
static reference references[COMMITS_MAX];
static reference alternatives[COMMITS_MAX]; /* of commits that failed and were made again in another way */
static bool power;                          /* power cuts; false: only the death of the program */

static struct totals {
    unsigned long states, before, after, refused, older, recovered, real, cut_recoveries;
    unsigned long wrong;
} total;

static cow_journal_options options;
static hid_t fapl, plain_fapl, stock_fapl;
static const char *scenario_name;

static void wrong(const char *what, size_t boundary, const char *rule)
{
    if (total.wrong++ < 20)
        fprintf(stderr, "%s: operation %zu, %s: %s\n", scenario_name, boundary, rule, what);
}

/* ---- everything in a file ---- */

static herr_t digest_object(hid_t root, const char *name, const H5O_info2_t *info, void *context)
{
    XXH3_state_t *sum = context;
    herr_t status = -1;

    XXH3_64bits_update(sum, name, strlen(name));
    if (info->type == H5O_TYPE_DATASET) {
        hid_t set = H5Dopen2(root, name, H5P_DEFAULT), type = H5Dget_type(set), space = H5Dget_space(set);
        hssize_t count = H5Sget_simple_extent_npoints(space);
        size_t size = H5Tget_size(type);
        uint8_t *values = need(calloc((size_t)count + 1, size));

        if (set >= 0 && H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0) {
            status = 0;
            if (H5Tis_variable_str(type) > 0) {
                for (hssize_t i = 0; i < count; i++) {
                    const char *text = ((char **)(void *)values)[i];
                    if (text != NULL)
                        XXH3_64bits_update(sum, text, strlen(text));
                }
                H5Treclaim(type, space, H5P_DEFAULT, values);
            } else
                XXH3_64bits_update(sum, values, (size_t)count * size);
        }
        free(values);
        H5Sclose(space);
        H5Tclose(type);
        H5Dclose(set);
        return status;
    }
    return 0;
}

/* 0: cannot be read. */
static uint64_t digest_file(const char *name, hid_t list)
{
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, list);
    XXH3_state_t *sum = need(XXH3_createState());
    uint64_t digest = 0;

    XXH3_64bits_reset(sum);
    if (file >= 0 && H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, digest_object, sum, H5O_INFO_BASIC) >= 0)
        digest = XXH3_64bits_digest(sum) | 1;
    if (file >= 0)
        H5Fclose(file);
    XXH3_freeState(sum);
    return digest;
}

static int by_address(const void *a, const void *b)
{
    const cow_range *x = a, *y = b;

    return (x->address > y->address) - (x->address < y->address);
}

/* Take [from, from + length) out of the ranges. HDF5 reads a little more than an object header has, and what comes next
 * may be the journal's. */
static void leave_out(range_list *l, uint64_t from, uint64_t length)
{
    range_list rest = {need(malloc((2 * l->count + 1) * sizeof(cow_range))), 0, 2 * l->count + 1};

    for (size_t i = 0; i < l->count; i++) {
        uint64_t start = l->range[i].address, stop = start + l->range[i].length;

        if (start < from && stop > start)
            rest.range[rest.count++] = (cow_range){start, (stop < from ? stop : from) - start};
        if (stop > from + length)
            rest.range[rest.count++] = (cow_range){start > from + length ? start : from + length,
                                                   stop - (start > from + length ? start : from + length)};
    }
    free(l->range);
    *l = rest;
}

/* The newest state of the file as it is now becomes references[its sequence]. */
static void remember_state_in(reference *table)
{
    const cow_journal_mode reading = {0};
    cow_journal_options quiet = options;
    reference *r;
    cow_journal *journal;
    image keep = {0};
    cow_range reserve[COW_RESERVES];
    cow_anchor anchor;
    uint64_t sequence, applied;
    bool log = disk.log;
    size_t n = 0;
    int number;

    quiet.sync = COW_SYNC_OFF;
    disk.log = false;
    if ((journal = cow_journal_open(dummy, reading, &quiet, &number)) == NULL || cow_journal_plain(journal)) {
        fprintf(stderr, "%s: no state after a commit: %s\n", scenario_name, cow_error_message());
        exit(2);
    }
    cow_journal_state(journal, &sequence, &applied);
    if (sequence >= COMMITS_MAX) {
        fprintf(stderr, "%s: too many commits\n", scenario_name);
        exit(2);
    }
    r = &table[sequence];
    if (mark_count == MARKS_MAX)
        exit(2);
    marks[mark_count++] = (mark){disk.op_count, sequence, applied};
    if (!r->known) {
        r->known = true;
        r->size = (size_t)cow_journal_end(journal);
        r->logical = need(malloc(r->size));
        if (cow_journal_read(journal, 0, r->logical, r->size) < 0)
            exit(2);
        memcpy(reserve, journal->slot.reserve, sizeof reserve);
        anchor = journal->anchor;
        cow_journal_close(journal);
        /* as a file of its own, without fence, it is one without a journal: all reads come through */
        copy_image(&keep, &disk.file);
        resize(&disk.file, 0);
        put(&disk.file, 0, r->logical, r->size);
        disk.reads = &r->ranges;
        r->digest = digest_file(dummy, plain_fapl);
        disk.reads = NULL;
        if (r->digest == 0) {
            fprintf(stderr, "%s: state %llu cannot be read\n", scenario_name, (unsigned long long)sequence);
            total.wrong++;
        }
        copy_image(&disk.file, &keep);
        free(keep.data);
        qsort(r->ranges.range, r->ranges.count, sizeof *r->ranges.range, by_address);
        for (size_t i = 0; i < r->ranges.count; i++) {
            cow_range *range = &r->ranges.range[i];
            if (range->address >= r->size)
                continue;
            if (range->length > r->size - range->address)
                range->length = r->size - range->address;
            if (n > 0 && range->address <= r->ranges.range[n - 1].address + r->ranges.range[n - 1].length) {
                cow_range *last = &r->ranges.range[n - 1];
                if (range->address + range->length > last->address + last->length)
                    last->length = range->address + range->length - last->address;
            } else
                r->ranges.range[n++] = *range;
        }
        r->ranges.count = n;
        leave_out(&r->ranges, anchor.address, anchor.end - anchor.address);
        for (unsigned i = 0; i < COW_RESERVES; i++)
            if (reserve[i].length > 0)
                leave_out(&r->ranges, reserve[i].address, reserve[i].length);
    } else
        cow_journal_close(journal);
    disk.log = log;
}

static void remember_state(void)
{
    remember_state_in(references);
}

/* ---- looking at a file after a crash ---- */

static bool journal_has(cow_journal *journal, const reference *r)
{
    static uint8_t *buffer;
    static size_t capacity;

    if (cow_journal_end(journal) != r->size)
        return false;
    for (size_t i = 0; i < r->ranges.count; i++) {
        const cow_range *range = &r->ranges.range[i];
        if (range->length > capacity) {
            capacity = (size_t)range->length * 2;
            buffer = need(realloc(buffer, capacity));
        }
        if (cow_journal_read(journal, range->address, buffer, (size_t)range->length) < 0 ||
            memcmp(buffer, r->logical + range->address, (size_t)range->length) != 0)
            return false;
    }
    return true;
}

static bool journal_has_state(cow_journal *journal, uint64_t sequence)
{
    return sequence < COMMITS_MAX && ((references[sequence].known && journal_has(journal, &references[sequence])) ||
                                      (alternatives[sequence].known && journal_has(journal, &alternatives[sequence])));
}

/* What a file shows to HDF5 without the journal: a sequence, 0: it is refused, -1: something else. */
static int64_t stock_sees(const image *file, uint64_t from, uint64_t to, size_t base)
{
    uint8_t raw[COW_SUPERBLOCK_MAX], superblock[COW_SUPERBLOCK_MAX];
    size_t length, fence;

    if (file->size < base + 2048)
        return 0;
    memcpy(raw, file->data + base, sizeof raw);
    if ((length = cow_superblock_size(raw)) == 0 || !cow_superblock_whole(raw) || cow_superblock_flagged(raw) ||
        cow_superblock_end(raw) > file->size)
        return 0;
    fence = base + (size_t)cow_superblock_extension(raw);
    if (fence + 40 > file->size || (length = cow_fence_source_size(file->data + fence, 32)) == 0 ||
        memmem(file->data + fence, length, "h5cow: open", 11) == NULL)
        return -1;
    length = cow_superblock_size(raw);
    for (uint64_t s = 2 * from; s <= 2 * to + 1; s++) {
        const reference *r = s % 2 == 0 ? &references[s / 2] : &alternatives[s / 2];
        bool same = r->known && cow_superblock_end(r->logical + base) == cow_superblock_end(raw);

        if (!same)
            continue;
        memcpy(superblock, raw, sizeof superblock);
        cow_superblock_set(superblock, cow_superblock_extension(r->logical + base), false);
        same = memcmp(superblock, r->logical + base, length) == 0;
        for (size_t i = 0; same && i < r->ranges.count; i++) {
            cow_range range = r->ranges.range[i];
            if (range.address < base + length &&
                range.address + range.length > base) { /* the superblock was compared */
                uint64_t behind = base + length;
                if (range.address < base &&
                    memcmp(file->data + range.address, r->logical + range.address, base - (size_t)range.address) != 0)
                    same = false;
                if (range.address + range.length <= behind)
                    continue;
                range.length -= behind - range.address;
                range.address = behind;
            }
            same = same && range.address + range.length <= file->size &&
                   memcmp(file->data + range.address, r->logical + range.address, (size_t)range.length) == 0;
        }
        if (same)
            return (int64_t)(s / 2);
    }
    return -1;
}

static size_t base_of(void)
{
    for (size_t s = 1; s < COMMITS_MAX; s++)
        if (references[s].known)
            for (size_t base = 0; base + 8 < references[s].size; base = base == 0 ? 512 : base * 2)
                if (cow_superblock_signature(references[s].logical + base))
                    return base;
    return 0;
}

/* HDF5 itself, without the journal and with it. */
static void ask_hdf5(const image *file, int64_t stock, uint64_t sequence, size_t boundary, const char *rule)
{
    FILE *out = fopen(real, "w");
    uint64_t digest;

    if (out == NULL || (file->size > 0 && fwrite(file->data, 1, file->size, out) != file->size) || fclose(out) != 0) {
        perror(real);
        exit(2);
    }
    total.real++;
    H5E_BEGIN_TRY
    {
        digest = digest_file(real, stock_fapl);
        if (stock >= 0 && digest != (stock == 0 ? 0 : references[stock].digest))
            wrong("HDF5 itself sees something else", boundary, rule);
        digest = digest_file(real, fapl);
        if (digest != (sequence == 0 ? 0 : references[sequence].digest))
            wrong("HDF5 with the journal sees something else", boundary, rule);
        hid_t stock_writer = sequence == 0 ? -1 : H5Fopen(real, H5F_ACC_RDWR, stock_fapl);
        if (stock_writer >= 0) {
            wrong("HDF5 without the journal can write", boundary, rule);
            H5Fclose(stock_writer);
        }
    }
    H5E_END_TRY
    unlink(real);
}

typedef struct expectation {
    uint64_t low, high; /* of the sequence; 0: no state is possible as well */
    uint64_t applied;   /* what HDF5 without the journal sees is not older */
    size_t base;
} expectation;

static int depth; /* how often recovery is cut off */
static unsigned recoveries_left[2], kills_left;
static void sweep_recovery(const image *start, uint64_t sequence, const expectation *e);

/* disk.file is the file after the crash. */
static void look(const expectation *e, size_t boundary, const char *rule, bool sample)
{
    static image crashed[3], stock_image;
    image *keep = &crashed[depth];
    const cow_journal_mode reading = {0}, writing = {.writable = true};
    cow_journal *journal;
    uint64_t sequence = 0, again = 0, applied;
    int64_t stock;
    int number;

    unsigned long wrong_before = total.wrong;

    total.states++;
    copy_image(keep, &disk.file);
    if ((journal = cow_journal_open(dummy, reading, &options, &number)) != NULL && !cow_journal_plain(journal)) {
        cow_journal_state(journal, &sequence, &applied);
        if (!journal_has_state(journal, sequence)) {
            wrong("a reader sees what was never committed", boundary, rule);
            sequence = 0;
        } else if (sequence < e->low || sequence > e->high)
            wrong(sequence < e->low ? "a commit is lost" : "a reader sees what was not yet committed", boundary, rule);
        else if (sequence == e->low)
            total.before++;
        else
            total.after++;
    } else if (e->low > 0)
        wrong(journal == NULL ? cow_error_message() : "there is no journal", boundary, rule);
    else
        total.before++;
    if (journal != NULL)
        cow_journal_close(journal);
    cow_error_clear();

    stock = stock_sees(keep, e->applied == 0 ? 1 : e->applied, e->high, e->base);
    if (stock < 0)
        wrong("HDF5 without the journal sees what was never committed", boundary, rule);
    else if (stock == 0)
        total.refused++;
    else if ((uint64_t)stock < e->low)
        total.older++;
    if (sample && total.wrong == wrong_before) /* HDF5 may crash on what is wrong */
        ask_hdf5(keep, stock, sequence, boundary, rule);

    /* a writer recovers it, and then everybody sees the same */
    if (sequence > 0) {
        if ((journal = cow_journal_open(dummy, writing, &options, &number)) == NULL)
            wrong(cow_error_message(), boundary, rule);
        else {
            cow_journal_state(journal, &again, &applied);
            if (again != sequence || !journal_has_state(journal, sequence))
                wrong("recovery changes the state", boundary, rule);
            if (cow_journal_failure(journal) != NULL)
                wrong(cow_journal_failure(journal), boundary, rule);
            cow_journal_close(journal);
            copy_image(&stock_image, &disk.file);
            if (stock_sees(&stock_image, sequence, sequence, e->base) != (int64_t)sequence)
                wrong("after recovery HDF5 without the journal does not see the state", boundary, rule);
            total.recovered++;
        }
        cow_error_clear();
        if (depth < 2 && recoveries_left[depth] > 0 && any(depth == 0 ? 200 : 60) == 0) {
            recoveries_left[depth]--;
            sweep_recovery(keep, sequence, e);
        }
    }
    copy_image(&disk.file, keep);
}

/* ---- crashes ---- */

static void perform(image *i, const op *o)
{
    switch (o->kind) {
    case OP_WRITE:
        put(i, o->offset, o->bytes, o->size);
        break;
    case OP_TRUNCATE:
        resize(i, o->size);
        break;
    case OP_EXTEND:
        if (o->size > i->size)
            resize(i, o->size);
        break;
    case OP_SYNC:
        break;
    }
}

/* Some of its sectors, and perhaps random bytes in the others. */
static void perform_torn(image *i, const op *o, bool garbage)
{
    size_t from = o->offset, end = o->offset + o->size;

    if (o->kind != OP_WRITE) {
        if (any(2))
            perform(i, o);
        return;
    }
    while (from < end) {
        size_t to = (from / 512 + 1) * 512 < end ? (from / 512 + 1) * 512 : end;
        if (any(2))
            put(i, from, o->bytes + (from - o->offset), to - from);
        else if (garbage) {
            uint8_t bytes[512];
            for (size_t k = 0; k < to - from; k++)
                bytes[k] = (uint8_t)any(256);
            put(i, from, bytes, to - from);
        }
        from = to;
    }
}

static unsigned damages = 24;

static void sweep_kill(const image *durable, const op *ops, size_t from, size_t to, const expectation *e);

static void crash_here(const image *durable, const op *ops, size_t from, size_t to, const expectation *e)
{
    size_t count = to - from, some = depth == 0 ? 12 : 3, step = count > some ? count / some : 1;
    static unsigned long turn;

#define LOOK(RULE) look(e, to, RULE, turn++ % 101 == 0)
    copy_image(&disk.file, durable);
    for (size_t i = from; i < to; i++)
        perform(&disk.file, &ops[i]);
    LOOK("all written");
    if (!power || count == 0)
        return;
    if (depth == 0 && kills_left > 0 && any(4) == 0 && kills_left-- > 0)
        sweep_kill(durable, ops, from, to, e);
    copy_image(&disk.file, durable);
    LOOK("nothing written");
    for (size_t k = any(step); k < count; k += step) {
        copy_image(&disk.file, durable);
        for (size_t i = 0; i < count; i++)
            if (i != k)
                perform(&disk.file, &ops[from + i]);
        LOOK("one lost");
        copy_image(&disk.file, durable);
        perform(&disk.file, &ops[from + k]);
        LOOK("one written");
        copy_image(&disk.file, durable);
        for (size_t i = 0; i < k; i++)
            perform(&disk.file, &ops[from + i]);
        perform_torn(&disk.file, &ops[from + k], false);
        LOOK("beginning, torn");
        copy_image(&disk.file, durable);
        for (size_t i = 0; i < k; i++)
            perform(&disk.file, &ops[from + i]);
        perform_torn(&disk.file, &ops[from + k], true);
        LOOK("beginning, torn with garbage");
    }
    for (unsigned d = 0; d < damages; d++) {
        unsigned likely = (unsigned)any(4);
        copy_image(&disk.file, durable);
        for (size_t i = from; i < to; i++)
            switch (any(4 + likely)) {
            case 0:
                break;
            case 1:
                perform_torn(&disk.file, &ops[i], false);
                break;
            case 2:
                perform_torn(&disk.file, &ops[i], true);
                break;
            default:
                perform(&disk.file, &ops[i]);
            }
        LOOK("random");
    }
#undef LOOK
}

static void sweep(const image *start, const op *ops, size_t count, const expectation *fixed)
{
    image durable = {0};
    size_t from = 0, m = 0;
    uint64_t newest = mark_count > 0 ? marks[mark_count - 1].sequence : 0;

    copy_image(&durable, start);
    for (size_t to = 0; to <= count; to++) {
        expectation e = {.base = base_of()};

        if (fixed != NULL)
            e = *fixed;
        else {
            while (m < mark_count && marks[m].ops <= to)
                m++;
            e.low = m == 0 ? 0 : marks[m - 1].sequence;
            e.applied = m == 0 ? 0 : marks[m - 1].applied;
            e.high = e.low < newest ? e.low + 1 : e.low;
        }
        crash_here(&durable, ops, from, to, &e);
        if (to < count && ops[to].kind == OP_SYNC) {
            for (; from < to; from++)
                perform(&durable, &ops[from]);
            from = to + 1;
        }
    }
    free(durable.data);
}

/* The program is killed, another one recovers the file from what the system still has in memory, and the power goes:
 * what the first one did not sync is no more certain than before. */
static void sweep_kill(const image *durable, const op *ops, size_t from, size_t to, const expectation *e)
{
    const cow_journal_mode writing = {.writable = true};
    memory outer = disk;
    cow_journal *journal;
    size_t count = to - from, all, first = 0;
    op *both;
    image start = {0};
    int number;

    copy_image(&start, &disk.file);
    memset(&disk, 0, sizeof disk);
    copy_image(&disk.file, &start);
    disk.log = true;
    if ((journal = cow_journal_open(dummy, writing, &options, &number)) != NULL)
        cow_journal_close(journal);
    cow_error_clear();
    disk.log = false;
    all = count + disk.op_count;
    both = need(malloc((all + 1) * sizeof *both));
    memcpy(both, ops + from, count * sizeof *both);
    memcpy(both + count, disk.ops, disk.op_count * sizeof *both);
    copy_image(&start, durable);
    depth++;
    for (size_t cut = 0; cut <= all; cut++) {
        if (cut >= count)
            crash_here(&start, both, first, cut, e);
        if (cut < all && both[cut].kind == OP_SYNC)
            for (; first <= cut; first++)
                perform(&start, &both[first]);
    }
    depth--;
    total.cut_recoveries++;
    forget_ops(disk.ops, disk.op_count);
    free(both);
    free(start.data);
    free(disk.file.data);
    disk = outer;
}

static void sweep_recovery(const image *start, uint64_t sequence, const expectation *e)
{
    const cow_journal_mode writing = {.writable = true};
    memory outer = disk;
    expectation exact = *e;
    cow_journal *journal;
    image first = {0};
    op *ops;
    size_t count;
    int number;

    copy_image(&first, start);
    memset(&disk, 0, sizeof disk);
    copy_image(&disk.file, start);
    disk.log = true;
    if ((journal = cow_journal_open(dummy, writing, &options, &number)) != NULL)
        cow_journal_close(journal);
    cow_error_clear();
    disk.log = false;
    ops = disk.ops;
    count = disk.op_count;
    disk.ops = NULL;
    exact.low = exact.high = sequence;
    depth++;
    if (count > 0) {
        unsigned keep = damages;
        damages = 6;
        total.cut_recoveries++;
        sweep(&first, ops, count, &exact);
        damages = keep;
    }
    depth--;
    forget_ops(ops, count);
    free(disk.file.data);
    free(first.data);
    disk = outer;
}

/* ---- scenarios ---- */

static hid_t file = -1;
static hid_t fcpl;

static void must(bool right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "%s: %s: %s\n", scenario_name, what, cow_error_message());
    H5Eprint2(H5E_DEFAULT, stderr);
    exit(2);
}

static cow_journal *journal_of_file(void)
{
    unsigned long number = 0;

    H5Fget_fileno(file, &number);
    return cow_driver_journal(number);
}

/* What is reported as committed now. */
static void report(void)
{
    cow_journal *journal = journal_of_file();
    uint64_t sequence, applied;

    cow_journal_state(journal, &sequence, &applied);
    marks[mark_count++] = (mark){disk.op_count, sequence, applied};
    must(mark_count < MARKS_MAX, "too many marks");
}

static image snapshots[COMMITS_MAX];

static void snapshot(uint64_t sequence)
{
    must(sequence < COMMITS_MAX, "too many commits");
    copy_image(&snapshots[sequence], &disk.file);
}

static void begin(void)
{
    file = H5Fcreate(dummy, H5F_ACC_TRUNC, fcpl, fapl);
    must(file >= 0, "create");
}

static void commit(void)
{
    uint64_t sequence, applied;

    must(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0, "flush");
    must(cow_journal_commit(journal_of_file(), false) == 0, "commit");
    report();
    cow_journal_state(journal_of_file(), &sequence, &applied);
    snapshot(sequence);
}

static void end(void)
{
    must(H5Fclose(file) >= 0, "close");
    remember_state();
}

static void reopen(void)
{
    file = H5Fopen(dummy, H5F_ACC_RDWR, fapl);
    must(file >= 0, "open");
    report();
}

static void state(int v)
{
    must(state_write(file, v) == 0, "write");
}

static void made(int v)
{
    begin();
    state(1);
    end();
    for (int i = 2; i <= v; i++) {
        reopen();
        state(i);
        end();
    }
}

static void many_small(int from, int to)
{
    hid_t space = H5Screate(H5S_SCALAR);

    for (int i = from; i < to; i++) {
        char name[32];
        snprintf(name, sizeof name, "small%d", i);
        hid_t set = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        must(set >= 0 && H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &i) >= 0, "small dataset");
        H5Dclose(set);
    }
    H5Sclose(space);
}

static void block(hsize_t a, hsize_t b, int value, bool creates)
{
    static int values[400 * 400];
    const hsize_t unlimited[2] = {H5S_UNLIMITED, H5S_UNLIMITED}, chunk[2] = {16, 16}, extent[2] = {a, b};
    hid_t set, space, dcpl;

    for (hsize_t i = 0; i < a * b; i++)
        values[i] = value + (int)i;
    if (creates) {
        space = H5Screate_simple(2, extent, unlimited);
        dcpl = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(dcpl, 2, chunk);
        set = H5Dcreate2(file, "block", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
        H5Sclose(space);
        H5Pclose(dcpl);
    } else {
        set = H5Dopen2(file, "block", H5P_DEFAULT);
        must(H5Dset_extent(set, extent) >= 0, "extent");
    }
    must(set >= 0 && H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, "block");
    H5Dclose(set);
}

static void strings(int v, bool creates)
{
    const hsize_t count = 40;
    char text[40][32];
    const char *pointer[40];
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &count, NULL), set;

    H5Tset_size(type, H5T_VARIABLE);
    for (int i = 0; i < 40; i++) {
        snprintf(text[i], sizeof text[i], "text %d of %d", i * v, v);
        pointer[i] = text[i];
    }
    set = creates ? H5Dcreate2(file, "text", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
                  : H5Dopen2(file, "text", H5P_DEFAULT);
    must(set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, pointer) >= 0, "strings");
    H5Dclose(set);
    H5Sclose(space);
    H5Tclose(type);
}

static int pin_fd = -1;
static cow_disk pin_disk;

static void pin_now(void)
{
    uint64_t sequence, applied;
    cow_journal_options quiet = options;
    int number;
    cow_journal *journal = cow_journal_open(dummy, (cow_journal_mode){0}, &quiet, &number);

    cow_journal_state(journal, &sequence, &applied);
    cow_journal_close(journal);
    pin_fd = open(dummy, O_RDONLY | O_CLOEXEC);
    pin_disk = (cow_disk){&cow_disk_system, pin_fd, dummy};
    must(cow_lock_pin(&pin_disk, sequence) == 0, "pin");
}

static void unpin(void)
{
    close(pin_fd);
}

static void s_create(void)
{
    begin();
    state(1);
    end();
}
static void s_create_empty(void)
{
    begin();
    end();
}
static void s_create_and_flush(void)
{
    begin();
    for (int v = 1; v < 4; v++) {
        state(v);
        commit();
    }
    end();
}
static void s_rewrite(void)
{
    made(4);
}
static void s_flush_and_close(void)
{
    made(1);
    reopen();
    state(2);
    commit();
    state(3);
    end();
}
static void s_two_dimensions(void)
{
    begin();
    block(20, 20, 1, true);
    commit();
    block(50, 20, 2, false);
    commit();
    block(50, 50, 3, false);
    commit();
    block(10, 70, 4, false);
    end();
    reopen();
    block(1, 1, 5, false);
    end();
}
static void s_many_small(void)
{
    begin();
    many_small(0, 30);
    commit();
    many_small(30, 80);
    end();
    reopen();
    many_small(80, 90);
    end();
}
static void s_strings(void)
{
    begin();
    strings(1, true);
    commit();
    strings(2, false);
    end();
    reopen();
    strings(3, false);
    end();
}
static void s_delete_and_reuse(void)
{
    made(1);
    reopen();
    block(60, 60, 1, true);
    commit();
    must(H5Ldelete(file, "block", H5P_DEFAULT) >= 0, "delete");
    many_small(0, 20);
    commit();
    block(40, 40, 2, true);
    end();
}
static void s_nothing_changed(void)
{
    made(1);
    reopen();
    commit();
    end();
    reopen();
    end();
}
static void s_abort(void)
{
    made(2);
    reopen();
    state(3);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    cow_journal_abort(journal_of_file(), "scenario");
    end();
    reopen();
    state(3);
    end();
}
static void s_abort_in_creation(void)
{
    begin();
    state(1);
    commit();
    state(2);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    cow_journal_abort(journal_of_file(), "scenario");
    end();
}
static void s_pinned(void)
{
    made(1);
    pin_now();
    reopen();
    state(2);
    commit();
    state(3);
    commit();
    unpin();
    state(4);
    end();
}
static void s_pinned_at_close(void)
{
    made(1);
    pin_now();
    reopen();
    state(2);
    end();
    reopen();
    state(3);
    end();
    unpin();
    reopen();
    state(4);
    end();
}
static void s_pins_move(void)
{
    made(1);
    pin_now();
    reopen();
    state(2);
    commit();
    end();
    unpin();
    pin_now();
    reopen();
    state(3);
    commit();
    state(4);
    commit();
    end();
    unpin();
    reopen();
    end();
}
static void s_stock_reader(void)
{
    int fd;

    made(1);
    fd = open(dummy, O_RDONLY | O_CLOEXEC);
    flock(fd, LOCK_SH);
    reopen();
    state(2);
    commit();
    state(3);
    end();
    close(fd);
    reopen();
    state(4);
    end();
}
static void s_applied_late(void)
{
    options.apply_interval = 1000000;
    H5Pclose(fapl);
    fapl = state_fapl(&options);
    made(1);
    reopen();
    for (int v = 2; v < 7; v++) {
        state(v);
        commit();
    }
    end();
}
static void s_long_chain(void)
{
    made(1);
    pin_now();
    reopen();
    for (int v = 2; v < 80; v++) {
        many_small(v, v + 1);
        commit();
    }
    end();
    unpin();
}
static void s_user_block(void)
{
    H5Pset_userblock(fcpl, 1024);
    made(3);
}
static void s_persistent_free_space(void)
{
    H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_FSM_AGGR, true, 1);
    made(3);
    reopen();
    block(40, 40, 2, true);
    commit();
    must(H5Ldelete(file, "block", H5P_DEFAULT) >= 0, "delete");
    end();
}
static void s_pages(void)
{
    H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_PAGE, true, 1);
    made(3);
}
static void s_large(void)
{
    begin();
    block(300, 300, 1, true);
    commit();
    block(320, 300, 1, false);
    end();
    reopen();
    block(320, 330, 1, false);
    end();
}
static void s_shrink(void)
{
    begin();
    block(100, 100, 1, true);
    end();
    for (int i = 0; i < 3; i++) {
        reopen();
        must(H5Ldelete(file, "block", H5P_DEFAULT) >= 0, "delete");
        end();
        reopen();
        block(60, 60, i, true);
        end();
    }
}
static void s_failed_sync(void)
{
    made(2);
    for (int n = 1; n <= 2; n++) {
        reopen();
        state(3);
        H5Fflush(file, H5F_SCOPE_GLOBAL);
        disk.fail_sync = n;
        must(cow_journal_commit(journal_of_file(), false) < 0, "commit with a failing sync");
        disk.fail_sync = 0;
        cow_error_clear();
        end();
    }
    /* the same calls as those that failed: what a power cut left of them is the same state */
    reopen();
    state(3);
    commit();
    end();
}
static void s_kill_without_syncs(void)
{
    power = false;
    options.sync = COW_SYNC_OFF;
    H5Pclose(fapl);
    fapl = state_fapl(&options);
    made(3);
    reopen();
    state(4);
    commit();
    state(5);
    end();
}

static const struct scenario {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"create", s_create},
    {"create_empty", s_create_empty},
    {"create_and_flush", s_create_and_flush},
    {"rewrite", s_rewrite},
    {"flush_and_close", s_flush_and_close},
    {"two_dimensions", s_two_dimensions},
    {"many_small", s_many_small},
    {"strings", s_strings},
    {"delete_and_reuse", s_delete_and_reuse},
    {"nothing_changed", s_nothing_changed},
    {"abort", s_abort},
    {"abort_in_creation", s_abort_in_creation},
    {"pinned", s_pinned},
    {"pinned_at_close", s_pinned_at_close},
    {"pins_move", s_pins_move},
    {"stock_reader", s_stock_reader},
    {"applied_late", s_applied_late},
    {"long_chain", s_long_chain},
    {"user_block", s_user_block},
    {"persistent_free_space", s_persistent_free_space},
    {"pages", s_pages},
    {"large", s_large},
    {"shrink", s_shrink},
    {"failed_sync", s_failed_sync},
    {"kill_without_syncs", s_kill_without_syncs},
};

static void run_scenario(const struct scenario *scenario)
{
    struct totals start = total;
    image empty = {0};
    FILE *make = fopen(dummy, "w");

    if (make == NULL || fclose(make) != 0) {
        perror(dummy);
        exit(2);
    }
    scenario_name = scenario->name;
    memset(&disk, 0, sizeof disk);
    memset(references, 0, sizeof references);
    memset(alternatives, 0, sizeof alternatives);
    memset(&failed, 0, sizeof failed);
    memset(snapshots, 0, sizeof snapshots);
    mark_count = 0;
    recoveries_left[0] = recoveries_left[1] = kills_left = 12;
    power = true;
    options = cow_journal_defaults;
    options.calls = &memory_calls;
    options.apply_interval = 0;
    fapl = state_fapl(&options);
    fcpl = H5Pcreate(H5P_FILE_CREATE);
    disk.log = true;
    scenario->run();
    disk.log = false;
    H5Pclose(fcpl);
    /* states that were committed while the file stayed open */
    for (uint64_t s = 1; s < COMMITS_MAX; s++)
        if (snapshots[s].size > 0 && !references[s].known) {
            size_t keep = mark_count;
            copy_image(&disk.file, &snapshots[s]);
            remember_state();
            mark_count = keep;
        }
    if (failed.size > 0) {
        size_t keep = mark_count;
        copy_image(&disk.file, &failed);
        remember_state_in(alternatives);
        mark_count = keep;
        free(failed.data);
    }
    size_t count = disk.op_count;
    op *ops = disk.ops;
    disk.ops = NULL;
    options.apply_interval = 0;
    /* real files are opened with HDF5 and the system's calls */
    options.calls = &memory_calls;
    H5Pclose(fapl);
    cow_journal_options system = options;
    system.calls = NULL;
    fapl = state_fapl(&system);
    sweep(&empty, ops, count, NULL);
    H5Pclose(fapl);
    forget_ops(ops, count);
    free(disk.file.data);
    for (size_t s = 0; s < COMMITS_MAX; s++) {
        free(references[s].ranges.range);
        free(references[s].logical);
        free(alternatives[s].ranges.range);
        free(alternatives[s].logical);
        free(snapshots[s].data);
    }
    unlink(dummy);
    printf(
        "%-22s %5zu operations %8lu crash states: %7lu before, %7lu after; without journal %6lu refused, %6lu older; "
        "%lu wrong\n",
        scenario->name, count, total.states - start.states, total.before - start.before, total.after - start.after,
        total.refused - start.refused, total.older - start.older, total.wrong - start.wrong);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *only = NULL;
    uint64_t seed = 1;

    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--damages") == 0)
            damages = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--scenario") == 0)
            only = argv[i + 1];
        else {
            fprintf(stderr, "usage: crash [--seed N] [--damages N] [--scenario NAME]\n");
            return 2;
        }
    random_state = seed * 0x9e3779b97f4a7c15u + 1;
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(dummy, sizeof dummy, "%s/crash.%d.locks", folder, (int)getpid());
    snprintf(real, sizeof real, "%s/crash.%d.h5", folder, (int)getpid());
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    state_without_plugins();
    cow_journal_options plain = cow_journal_defaults;
    plain.calls = &memory_calls;
    plain_fapl = state_fapl(&plain);
    stock_fapl = state_fapl(NULL);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (only == NULL || strcmp(only, scenarios[i].name) == 0)
            run_scenario(&scenarios[i]);
    H5Pclose(plain_fapl);
    H5Pclose(stock_fapl);
    printf("%lu crash states: %lu before, %lu after, %lu wrong; without the journal %lu refused, %lu older\n"
           "%lu recoveries, %lu of them cut off at every operation; %lu states asked HDF5 itself\n",
           total.states, total.before, total.after, total.wrong, total.refused, total.older, total.recovered,
           total.cut_recoveries, total.real);
    return total.wrong > 0 || total.states == 0;
}
