/* Contract: crash_sweep.h. What is done and why: crash.c. */
#include "crash_sweep.h"

#include "h5/superblock.h"
#include "journal/driver.h"
#include "journal/fence.h"
#include "journal/internal.h"
#include "journal/record.h"

#include "base/error.h"
#include "journal_states.h"

#include <xxhash.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REFERENCES_MAX 512
#define NEVER          SIZE_MAX

char crash_dummy[64], crash_real[64];
unsigned crash_damages = 20, crash_recoveries = 5, crash_every = 1;

static uint64_t random_state = 1;

void crash_random(uint64_t seed)
{
    random_state = seed * 0x9e3779b97f4a7c15u + 1;
}

static uint64_t any(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return below == 0 ? 0 : (random_state >> 11) % below;
}

/* ---- what a scenario leaves ---- */

/* A committed state: the bytes that reading everything reads, and what everything is. */
typedef struct reference {
    uint64_t sequence;
    int state;         /* the scenario's number for it */
    size_t born, dead; /* it may be there from so many operations on, and no more after so many */
    bool voided;       /* taken back: dead with the next sync */
    span_list ranges;
    uint8_t *logical; /* as HDF5 in this process sees the file */
    size_t size;
    uint64_t digest;
} reference;

/* What was known to be committed when a mark was made. */
typedef struct milestone {
    size_t ops;
    uint64_t sequence, applied;
    bool closed;
} milestone;

/* The sweep that is under way. */
static struct {
    const crash_scenario *scenario;
    crash_totals *total;
    reference reference[REFERENCES_MAX];
    size_t reference_count;
    milestone milestone[MARKS_MAX];
    size_t milestone_count;
    unsigned long turn, period; /* every so many states one is looked at closely */
    unsigned long said;
} now;

static cow_journal_options options;        /* of the journal in memory */
static hid_t fapl, plain_fapl, stock_fapl; /* with the journal on real files, without one in memory, HDF5 alone */

static int depth; /* how often recovery is cut off */

static void wrong(const char *what, size_t boundary, const char *rule)
{
    now.total->wrong++;
    if (now.said++ < 20)
        fprintf(stderr, "%s: operation %zu, recovery %d, %s: %s\n", now.scenario->name, boundary, depth, rule, what);
}

/* ---- everything in a file ---- */

static bool has_pointers(hid_t type)
{
    return H5Tis_variable_str(type) > 0 || H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tdetect_class(type, H5T_STRING) > 0;
}

static void digest_values(XXH3_state_t *sum, hid_t type, hid_t space, void *values, size_t count)
{
    if (H5Tis_variable_str(type) > 0)
        for (size_t i = 0; i < count; i++) {
            const char *text = ((char **)values)[i];
            if (text != NULL)
                XXH3_64bits_update(sum, text, strlen(text));
        }
    if (!has_pointers(type))
        XXH3_64bits_update(sum, values, count * H5Tget_size(type));
    else
        H5Treclaim(type, space, H5P_DEFAULT, values);
}

static herr_t digest_attribute(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), type = H5Aget_type(attribute);
    hid_t space = H5Aget_space(attribute);
    hssize_t count = H5Sget_simple_extent_npoints(space);
    void *values = need(calloc((size_t)count + 1, H5Tget_size(type)));
    herr_t status = H5Aread(attribute, type, values);

    (void)info;
    if (status >= 0)
        digest_values(context, type, space, values, (size_t)count);
    free(values);
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
    return status;
}

/* SPACE of a pool: without the slots that nothing uses, whose bytes may be anything. */
static void select_used(hid_t root, const char *pool, hid_t raw, hid_t space)
{
    char path[64];
    hid_t slots, type, extent, dcpl = H5Dget_create_plist(raw);
    hsize_t chunk[H5S_MAX_RANK], count[H5S_MAX_RANK], start[H5S_MAX_RANK] = {0}, rows;
    const int rank = H5Pget_chunk(dcpl, H5S_MAX_RANK, chunk);
    size_t size;
    uint8_t *row, *zeros;

    H5Pclose(dcpl);
    snprintf(path, sizeof path, "_versioned_data/slots/%s", pool);
    if ((slots = H5Dopen2(root, path, H5P_DEFAULT)) < 0)
        return;
    type = H5Dget_type(slots);
    extent = H5Dget_space(slots);
    size = H5Tget_size(type);
    rows = (hsize_t)H5Sget_simple_extent_npoints(extent);
    row = need(calloc(rows + 1, size));
    zeros = need(calloc(1, size));
    H5Sget_simple_extent_dims(space, count, NULL);
    count[0] = chunk[0];
    if (rank > 0 && H5Dread(slots, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, row) >= 0)
        for (hsize_t i = 0; i < rows; i++)
            if (memcmp(row + i * size, zeros, size) == 0) {
                start[0] = i * chunk[0];
                H5Sselect_hyperslab(space, H5S_SELECT_NOTB, start, NULL, count, NULL);
            }
    free(row);
    free(zeros);
    H5Sclose(extent);
    H5Tclose(type);
    H5Dclose(slots);
}

static herr_t digest_object(hid_t root, const char *name, const H5O_info2_t *info, void *context)
{
    XXH3_state_t *sum = context;
    hid_t object;
    herr_t status;

    XXH3_64bits_update(sum, name, strlen(name));
    if ((object = H5Oopen(root, name, H5P_DEFAULT)) < 0)
        return -1;
    status = H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, digest_attribute, sum);
    if (status >= 0 && info->type == H5O_TYPE_DATASET) {
        hid_t type = H5Dget_type(object), space = H5Dget_space(object);
        hssize_t count = H5Sget_simple_extent_npoints(space);
        void *values = need(calloc((size_t)count + 1, H5Tget_size(type)));
        static const char raw[] = "_versioned_data/raw/";

        if (strncmp(name, raw, sizeof raw - 1) == 0)
            select_used(root, name + sizeof raw - 1, object, space);
        if ((status = H5Dread(object, type, space, space, H5P_DEFAULT, values)) >= 0)
            digest_values(sum, type, space, values, (size_t)count);
        free(values);
        H5Sclose(space);
        H5Tclose(type);
    }
    H5Oclose(object);
    return status;
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
    const span *x = a, *y = b;

    return (x->address > y->address) - (x->address < y->address);
}

/* Take [from, from + length) out of the ranges. HDF5 reads a little more than an object header has, and what comes next
 * may be the journal's. */
static void leave_out(span_list *l, uint64_t from, uint64_t length)
{
    span_list rest = {need(malloc((2 * l->count + 1) * sizeof(span))), 0, 2 * l->count + 1};

    for (size_t i = 0; i < l->count; i++) {
        uint64_t start = l->span[i].address, stop = start + l->span[i].length;

        if (start < from && stop > start)
            rest.span[rest.count++] = (span){start, (stop < from ? stop : from) - start};
        if (stop > from + length)
            rest.span[rest.count++] = (span){start > from + length ? start : from + length,
                                             stop - (start > from + length ? start : from + length)};
    }
    free(l->span);
    *l = rest;
}

/* What reading R->logical reads, as a file of its own. It has no fence, so no journal, and all reads come through. */
static void find_ranges(reference *r, const cow_range reserve[], const cow_anchor *anchor)
{
    image keep = {0};
    size_t n = 0;

    image_copy(&keep, &disk.file);
    image_resize(&disk.file, 0);
    image_put(&disk.file, 0, r->logical, r->size);
    disk.reads = &r->ranges;
    r->digest = digest_file(crash_dummy, plain_fapl);
    disk.reads = NULL;
    if (r->digest == 0)
        wrong("a committed state cannot be read", r->born, "kept");
    image_copy(&disk.file, &keep);
    free(keep.data);
    qsort(r->ranges.span, r->ranges.count, sizeof *r->ranges.span, by_address);
    for (size_t i = 0; i < r->ranges.count; i++) {
        span *s = &r->ranges.span[i], *last = n == 0 ? NULL : &r->ranges.span[n - 1];

        if (s->address >= r->size)
            continue;
        if (s->length > r->size - s->address)
            s->length = r->size - s->address;
        if (last != NULL && s->address <= last->address + last->length) {
            if (s->address + s->length > last->address + last->length)
                last->length = s->address + s->length - last->address;
        } else
            r->ranges.span[n++] = *s;
    }
    r->ranges.count = n;
    leave_out(&r->ranges, anchor->address, anchor->end - anchor->address);
    for (unsigned i = 0; i < COW_RESERVES; i++)
        if (reserve[i].length > 0)
            leave_out(&r->ranges, reserve[i].address, reserve[i].length);
}

static bool journal_has(cow_journal *journal, const reference *r)
{
    static uint8_t *buffer;
    static size_t capacity;

    if ((size_t)cow_journal_end(journal) != r->size)
        return false;
    for (size_t i = 0; i < r->ranges.count; i++) {
        const span *s = &r->ranges.span[i];
        if (s->length > capacity) {
            capacity = (size_t)s->length * 2;
            buffer = need(realloc(buffer, capacity));
        }
        if (cow_journal_read(journal, s->address, buffer, (size_t)s->length) < 0 ||
            memcmp(buffer, r->logical + s->address, (size_t)s->length) != 0)
            return false;
    }
    return true;
}

/* The committed state with that number that the journal has, at a time when AT operations were done; NULL: none. */
static const reference *state_of_journal(cow_journal *journal, uint64_t sequence, size_t at)
{
    for (size_t i = 0; i < now.reference_count; i++) {
        const reference *r = &now.reference[i];
        if (r->sequence == sequence && r->born <= at && at < r->dead && journal_has(journal, r))
            return r;
    }
    return NULL;
}

/* The newest state of the file as it is in memory; a new one becomes a reference. */
static uint64_t meet_state(size_t at, uint64_t *applied)
{
    const cow_journal_mode reading = {0};
    cow_journal *journal;
    uint64_t sequence = 0;
    int number;

    *applied = 0;
    if ((journal = cow_journal_open(crash_dummy, reading, &options, &number)) == NULL) {
        cow_error_clear();
        return 0;
    }
    if (!cow_journal_plain(journal)) {
        cow_journal_state(journal, &sequence, applied);
        if (state_of_journal(journal, sequence, at) == NULL) {
            reference *r = &now.reference[now.reference_count++];
            cow_range reserve[COW_RESERVES];
            cow_anchor anchor = journal->anchor;

            if (now.reference_count == REFERENCES_MAX)
                die("%s: too many commits", now.scenario->name);
            *r = (reference){.sequence = sequence, .born = at, .dead = NEVER, .size = (size_t)cow_journal_end(journal)};
            r->logical = need(malloc(r->size));
            if (cow_journal_read(journal, 0, r->logical, r->size) < 0)
                die("%s: %s", now.scenario->name, cow_error_message());
            memcpy(reserve, journal->slot.reserve, sizeof reserve);
            cow_journal_close(journal);
            find_ranges(r, reserve, &anchor);
            return sequence;
        }
    }
    cow_journal_close(journal);
    return sequence;
}

/* ---- looking at a file after a crash ---- */

/* What a file shows to HDF5 without the journal: a committed state with a number in [FROM, TO]; NULL and *REFUSED: it
 * is refused; NULL: something else. */
static const reference *stock_sees(const image *file, uint64_t from, uint64_t to, size_t base, size_t at, bool *refused)
{
    uint8_t raw[COW_SUPERBLOCK_MAX], superblock[COW_SUPERBLOCK_MAX];
    size_t length, fence;

    *refused = true;
    if (file->size < base + 2048)
        return NULL;
    memcpy(raw, file->data + base, sizeof raw);
    if ((length = cow_superblock_size(raw)) == 0 || !cow_superblock_whole(raw) || cow_superblock_flagged(raw) ||
        cow_superblock_end(raw) > file->size)
        return NULL;
    *refused = false;
    fence = base + (size_t)cow_superblock_extension(raw);
    if (fence + 40 > file->size || (length = cow_fence_source_size(file->data + fence, 32)) == 0 ||
        memmem(file->data + fence, length, "h5cow: open", 11) == NULL)
        return NULL;
    length = cow_superblock_size(raw);
    for (size_t n = 0; n < now.reference_count; n++) {
        const reference *r = &now.reference[n];
        bool same = r->sequence >= from && r->sequence <= to && r->born <= at && at < r->dead &&
                    cow_superblock_end(r->logical + base) == cow_superblock_end(raw);

        if (!same)
            continue;
        memcpy(superblock, raw, sizeof superblock);
        cow_superblock_set(superblock, cow_superblock_extension(r->logical + base), false);
        same = memcmp(superblock, r->logical + base, length) == 0;
        for (size_t i = 0; same && i < r->ranges.count; i++) {
            span s = r->ranges.span[i];
            if (s.address < base + length && s.address + s.length > base) { /* the superblock was compared */
                uint64_t behind = base + length;
                if (s.address < base &&
                    memcmp(file->data + s.address, r->logical + s.address, base - (size_t)s.address) != 0)
                    same = false;
                if (s.address + s.length <= behind)
                    continue;
                s.length -= behind - s.address;
                s.address = behind;
            }
            same = same && s.address + s.length <= file->size &&
                   memcmp(file->data + s.address, r->logical + s.address, (size_t)s.length) == 0;
        }
        if (same)
            return r;
    }
    return NULL;
}

static size_t base_of(void)
{
    for (size_t s = 0; s < now.reference_count; s++)
        for (size_t base = 0; base + 8 < now.reference[s].size; base = base == 0 ? 512 : base * 2)
            if (cow_superblock_signature(now.reference[s].logical + base))
                return base;
    return 0;
}

typedef struct expectation {
    uint64_t low, high; /* of the sequence; 0: no state is possible as well */
    uint64_t kill_low;  /* where only the program died */
    uint64_t applied;   /* what HDF5 without the journal sees is not older */
    size_t base;
    size_t at; /* operations of the scenario that were done */
} expectation;

/* The program's own digest of what HDF5 reads, where the scenario has no better judge. */
static void compare_digests(const reference *seen, const reference *stock, bool refused, size_t boundary,
                            const char *rule)
{
    uint64_t digest = digest_file(crash_real, stock_fapl);
    hid_t stock_writer;

    if ((stock != NULL || refused) && digest != (stock == NULL ? 0 : stock->digest))
        wrong("HDF5 itself sees something else", boundary, rule);
    digest = digest_file(crash_real, fapl);
    if (digest != (seen == NULL ? 0 : seen->digest))
        wrong("HDF5 with the journal sees something else", boundary, rule);
    stock_writer = seen == NULL ? -1 : H5Fopen(crash_real, H5F_ACC_RDWR, stock_fapl);
    if (stock_writer >= 0) {
        wrong("HDF5 without the journal can write", boundary, rule);
        H5Fclose(stock_writer);
    }
}

static int ask(crash_look look, int expected, const char *what, size_t boundary, const char *rule)
{
    char why[400] = "", text[600];
    int state = now.scenario->judge(now.scenario->context, crash_real, look, why, sizeof why);

    if (state != expected) {
        snprintf(text, sizeof text, "%s: state %d instead of %d (-1 none, -2 refused): %s", what, state, expected, why);
        wrong(text, boundary, rule);
    }
    return state;
}

/* A real file is read through the connector and without it, each version; recovered, and checked. */
static void judge_file(const reference *seen, const reference *stock, bool refused, size_t boundary, const char *rule)
{
    hid_t writer;

    ask(LOOK_READER, seen == NULL ? LOOK_REFUSED : seen->state, "through the connector", boundary, rule);
    if (stock != NULL || refused)
        ask(LOOK_STOCK, stock == NULL ? LOOK_REFUSED : stock->state, "without h5cow", boundary, rule);
    if (seen == NULL) {
        ask(LOOK_CREATE, 0, "creating the file", boundary, rule);
        return;
    }
    if ((writer = H5Fopen(crash_real, H5F_ACC_RDWR, stock_fapl)) >= 0) {
        wrong("HDF5 without h5cow can write", boundary, rule);
        H5Fclose(writer);
    }
    ask(LOOK_WRITER, 0, "a writer", boundary, rule);
    ask(LOOK_READER, seen->state, "through the connector after a writer", boundary, rule);
    ask(LOOK_STOCK, seen->state, "without h5cow after a writer", boundary, rule);
    ask(LOOK_VERIFY, 0, "h5cow verify", boundary, rule);
}

static void look_closely(const image *file, const reference *seen, const reference *stock, bool refused,
                         size_t boundary, const char *rule)
{
    image_save(file, crash_real);
    *(now.scenario->judge == NULL ? &now.total->asked : &now.total->deep) += 1;
    H5E_BEGIN_TRY
    {
        if (now.scenario->judge == NULL)
            compare_digests(seen, stock, refused, boundary, rule);
        else
            judge_file(seen, stock, refused, boundary, rule);
    }
    H5E_END_TRY
    unlink(crash_real);
}

static unsigned recoveries_left[2], kills_left; /* each takes hundreds of states */
static void sweep_recovery(const image *start, uint64_t sequence, const expectation *e);

/* disk.file is the file after the crash. */
static void look(const expectation *e, uint64_t low, size_t boundary, const char *rule)
{
    static image crashed[3];
    image *keep = &crashed[depth];
    const cow_journal_mode reading = {0}, writing = {.writable = true};
    const reference *seen = NULL, *stock;
    cow_journal *journal;
    uint64_t sequence = 0, again = 0, applied;
    unsigned long wrong_before = now.total->wrong;
    bool refused;
    int number;

    now.total->states++;
    image_copy(keep, &disk.file);
    if ((journal = cow_journal_open(crash_dummy, reading, &options, &number)) != NULL && !cow_journal_plain(journal)) {
        cow_journal_state(journal, &sequence, &applied);
        if ((seen = state_of_journal(journal, sequence, e->at)) == NULL)
            wrong("a reader sees what was never committed", boundary, rule);
        else if (sequence < low || sequence > e->high)
            wrong(sequence < low ? "a commit is lost" : "a reader sees what was not yet committed", boundary, rule);
        else if (sequence == low)
            now.total->before++;
        else
            now.total->after++;
    } else if (low > 0)
        wrong(journal == NULL ? cow_error_message() : "there is no journal", boundary, rule);
    else
        now.total->before++;
    if (journal != NULL)
        cow_journal_close(journal);
    cow_error_clear();

    stock = stock_sees(keep, e->applied == 0 ? 1 : e->applied, e->high, e->base, e->at, &refused);
    if (stock == NULL && !refused)
        wrong("HDF5 without the journal sees what was never committed", boundary, rule);
    else if (stock == NULL)
        now.total->refused++;
    else if (stock->sequence < low)
        now.total->older++;
    /* HDF5 may crash on what is wrong */
    if (now.turn++ % now.period == 0 && now.total->wrong == wrong_before)
        look_closely(keep, seen, stock, refused, boundary, rule);

    /* a writer recovers it, and then everybody sees the same */
    if (seen != NULL) {
        if ((journal = cow_journal_open(crash_dummy, writing, &options, &number)) == NULL)
            wrong(cow_error_message(), boundary, rule);
        else {
            cow_journal_state(journal, &again, &applied);
            if (again != sequence || state_of_journal(journal, sequence, e->at) == NULL)
                wrong("recovery changes the state", boundary, rule);
            if (cow_journal_failure(journal) != NULL)
                wrong(cow_journal_failure(journal), boundary, rule);
            cow_journal_close(journal);
            if (stock_sees(&disk.file, sequence, sequence, e->base, e->at, &refused) == NULL)
                wrong("after recovery HDF5 without the journal does not see the state", boundary, rule);
            now.total->recovered++;
        }
        cow_error_clear();
        if (depth < 2 && recoveries_left[depth] > 0 && any(depth == 0 ? 200 : 60) == 0) {
            recoveries_left[depth]--;
            sweep_recovery(keep, sequence, e);
        }
    }
    image_copy(&disk.file, keep);
}

/* ---- crashes ---- */

/* Some of its sectors, and perhaps random bytes in the others. */
static void perform_torn(image *i, const op *o, bool garbage)
{
    size_t from = o->offset, end = o->offset + o->size;

    if (o->kind != OP_WRITE) {
        if (any(2))
            image_perform(i, o);
        return;
    }
    while (from < end) {
        size_t to = (from / 512 + 1) * 512 < end ? (from / 512 + 1) * 512 : end;
        if (any(2))
            image_put(i, from, o->bytes + (from - o->offset), to - from);
        else if (garbage) {
            uint8_t bytes[512];
            for (size_t k = 0; k < to - from; k++)
                bytes[k] = (uint8_t)any(256);
            image_put(i, from, bytes, to - from);
        }
        from = to;
    }
}

typedef enum fate { LOST, DONE, TORN, TORN_WITH_GARBAGE } fate;

/* What a failed sync was to bring onto the disk may never come there, although later syncs succeed. */
typedef enum certainty { UNSYNCED, DOUBTFUL, SYNCED } certainty;

/* Operations since the newest moment of which all is known, in the order in which they were made. */
typedef struct recent {
    const op *ops;
    const certainty *certainty;
    size_t count;
} recent;

static void make_file(const image *durable, const recent *r, const fate *fates)
{
    image_copy(&disk.file, durable);
    for (size_t i = 0; i < r->count; i++)
        switch (r->certainty[i] == SYNCED ? DONE : fates[i]) {
        case LOST:
            break;
        case DONE:
            image_perform(&disk.file, &r->ops[i]);
            break;
        case TORN:
            perform_torn(&disk.file, &r->ops[i], false);
            break;
        case TORN_WITH_GARBAGE:
            perform_torn(&disk.file, &r->ops[i], true);
            break;
        }
}

static bool is_open(const recent *r, size_t i)
{
    return r->certainty[i] != SYNCED && r->ops[i].kind != OP_SYNC && r->ops[i].kind != OP_FAILED_SYNC;
}

static void all_of(fate *fates, size_t from, size_t to, fate f)
{
    for (size_t i = from; i < to; i++)
        fates[i] = f;
}

static void sweep_kill(const image *durable, const recent *r, const expectation *e);

static void crash_here(const image *durable, const recent *r, size_t boundary, const expectation *e)
{
    bool doubtful = false;
    size_t open = 0, some = depth == 0 ? 12 : 3, count = r->count, step;
    fate *fates = need(malloc((count + 1) * sizeof *fates));

    for (size_t i = 0; i < count; i++) {
        open += is_open(r, i);
        doubtful = doubtful || r->certainty[i] == DOUBTFUL;
    }
    step = open > some ? open / some : 1;
    all_of(fates, 0, count, DONE);
    make_file(durable, r, fates);
    look(e, e->kill_low, boundary, "all written");
    if (now.scenario->kill_only || open == 0)
        goto done;
    /* Not with what a failed sync left: the one who recovers it would have to know of another program's failure. */
    if (depth == 0 && !doubtful && kills_left > 0 && any(4) == 0 && kills_left-- > 0)
        sweep_kill(durable, r, e);
    all_of(fates, 0, count, LOST);
    make_file(durable, r, fates);
    look(e, e->low, boundary, "nothing written");
    for (size_t k = any(step), n = 0; n < count; n++) {
        if (!is_open(r, n) || k-- > 0)
            continue;
        k = step - 1;
        all_of(fates, 0, count, DONE);
        fates[n] = LOST;
        make_file(durable, r, fates);
        look(e, e->low, boundary, "one lost");
        all_of(fates, 0, count, LOST);
        fates[n] = DONE;
        make_file(durable, r, fates);
        look(e, e->low, boundary, "one written");
        all_of(fates, 0, n, DONE);
        fates[n] = TORN;
        make_file(durable, r, fates);
        look(e, e->low, boundary, "beginning, torn");
        fates[n] = TORN_WITH_GARBAGE;
        make_file(durable, r, fates);
        look(e, e->low, boundary, "beginning, torn with garbage");
    }
    for (unsigned d = 0; d < (depth == 0 ? crash_damages : 6); d++) {
        unsigned likely = (unsigned)any(4);
        for (size_t i = 0; i < count; i++) {
            uint64_t f = any(4 + likely);
            fates[i] = f == 0 ? LOST : f == 1 ? TORN : f == 2 ? TORN_WITH_GARBAGE : DONE;
        }
        make_file(durable, r, fates);
        look(e, e->low, boundary, "random");
    }
done:
    free(fates);
}

/* What may be there after so many operations of the scenario. */
static expectation expect(size_t at)
{
    expectation e = {.base = base_of(), .at = at};

    for (size_t i = 0; i < now.milestone_count && now.milestone[i].ops <= at; i++) {
        const milestone *m = &now.milestone[i];

        e.kill_low = m->sequence;
        if (!now.scenario->loses_newest || m->closed) {
            e.low = m->sequence;
            e.applied = m->applied;
        }
    }
    e.high = e.kill_low;
    for (size_t i = 0; i < now.reference_count; i++)
        if (now.reference[i].born <= at && at < now.reference[i].dead && now.reference[i].sequence > e.high)
            e.high = now.reference[i].sequence;
    return e;
}

/* The power may go after each of the operations from FIRST on. DOUBTS (NULL: none): of the operations before FIRST.
 * FIXED: what may be there then, NULL: what the scenario had committed. */
static void sweep(const image *start, const op *ops, size_t count, size_t first, const certainty *doubts,
                  const expectation *fixed)
{
    certainty *all = need(calloc(count + 1, sizeof *all));
    image durable = {0};
    bool doubtful = false;
    size_t from = 0;

    for (size_t i = 0; i < first; i++) {
        all[i] = doubts[i];
        doubtful = doubtful || doubts[i] == DOUBTFUL;
    }
    image_copy(&durable, start);
    for (size_t to = first; to <= count; to++) {
        const recent r = {ops + from, all + from, to - from};
        const expectation e = fixed != NULL ? *fixed : expect(to);

        if (depth > 0 || to % crash_every == 0 || to == count)
            crash_here(&durable, &r, to, &e);
        if (to == count || (ops[to].kind != OP_SYNC && ops[to].kind != OP_FAILED_SYNC))
            continue;
        doubtful = doubtful || ops[to].kind == OP_FAILED_SYNC;
        for (size_t i = from; i <= to; i++)
            if (!doubtful)
                image_perform(&durable, &ops[i]);
            else if (all[i] == UNSYNCED)
                all[i] = ops[to].kind == OP_SYNC ? SYNCED : DOUBTFUL;
        if (!doubtful)
            from = to + 1;
    }
    free(durable.data);
    free(all);
}

/* What a writer does to START when it opens it. */
static op *record_recovery(const image *start, size_t *count)
{
    const cow_journal_mode writing = {.writable = true};
    memory outer = disk;
    cow_journal *journal;
    op *ops;
    int number;

    memset(&disk, 0, sizeof disk);
    image_copy(&disk.file, start);
    disk.log = true;
    if ((journal = cow_journal_open(crash_dummy, writing, &options, &number)) != NULL)
        cow_journal_close(journal);
    cow_error_clear();
    ops = disk.ops;
    *count = disk.op_count;
    free(disk.file.data);
    disk = outer;
    return ops;
}

/* The program is killed, another one recovers the file from what the system still has in memory, and the power goes:
 * what the first one did not sync is no more certain than before. */
static void sweep_kill(const image *durable, const recent *r, const expectation *e)
{
    image killed = {0};
    size_t count;
    op *ops, *both;

    image_copy(&killed, &disk.file);
    ops = record_recovery(&killed, &count);
    both = need(malloc((r->count + count + 1) * sizeof *both));
    memcpy(both, r->ops, r->count * sizeof *both);
    if (count > 0)
        memcpy(both + r->count, ops, count * sizeof *both);
    depth++;
    sweep(durable, both, r->count + count, r->count, r->certainty, e);
    depth--;
    now.total->cut_recoveries++;
    forget_ops(ops, count);
    free(both);
    free(killed.data);
}

static void sweep_recovery(const image *start, uint64_t sequence, const expectation *e)
{
    expectation exact = *e;
    image first = {0};
    size_t count;
    op *ops;

    image_copy(&first, start);
    ops = record_recovery(&first, &count);
    exact.low = exact.high = exact.kill_low = sequence;
    if (count > 0) {
        depth++;
        now.total->cut_recoveries++;
        sweep(&first, ops, count, 0, NULL, &exact);
        depth--;
    }
    forget_ops(ops, count);
    free(first.data);
}

/* ---- all of it ---- */

/* Do it again, and see which states there are, and when. */
static void find_states(const recording *r)
{
    uint64_t sequence = 0, applied = 0, newest = 0;
    size_t m = 0;

    image_resize(&disk.file, 0);
    for (size_t done = 0; done <= r->op_count; done++) {
        for (; m < r->mark_count && r->marks[m].ops <= done; m++) {
            sequence = meet_state(done, &applied);
            now.milestone[now.milestone_count++] = (milestone){done, sequence, applied, r->marks[m].closed};
        }
        if (done == r->op_count)
            break;
        image_perform(&disk.file, &r->ops[done]);
        if (r->ops[done].kind == OP_SYNC)
            for (size_t i = 0; i < now.reference_count; i++)
                if (now.reference[i].voided && now.reference[i].dead == NEVER)
                    now.reference[i].dead = done + 1;
        if (r->ops[done].kind == OP_WRITE && r->ops[done].size == COW_JOURNAL_SLOT) { /* perhaps a slot */
            newest = sequence;
            sequence = meet_state(done + 1, &applied);
            for (size_t i = 0; i < now.reference_count; i++)
                if (now.reference[i].sequence > sequence && now.reference[i].sequence == newest)
                    now.reference[i].voided = true;
        }
    }
}

/* Each state once, as it was when it was committed: what it is is the scenario's to say, and all must agree. */
static void judge_states(const recording *r)
{
    image file = {0};
    size_t n = 0;

    for (size_t done = 0; done <= r->op_count; done++) {
        for (; n < now.reference_count && now.reference[n].born == done; n++) {
            reference *known = &now.reference[n];
            char why[400] = "";

            image_save(&file, crash_real);
            H5E_BEGIN_TRY
            known->state = now.scenario->judge(now.scenario->context, crash_real, LOOK_READER, why, sizeof why);
            H5E_END_TRY
            if (known->state <= 0)
                wrong(why, done, "a committed state");
            else {
                bool refused;
                const reference *stock = stock_sees(&file, 1, known->sequence, base_of(), done, &refused);
                look_closely(&file, known, stock, refused, done, "committed");
            }
        }
        if (done < r->op_count)
            image_perform(&file, &r->ops[done]);
    }
    for (size_t i = 0, m = 0; i < r->mark_count; i++, m++) {
        int state = 0;
        for (size_t k = 0; k < now.reference_count; k++)
            if (now.reference[k].sequence == now.milestone[m].sequence && now.reference[k].born <= r->marks[i].ops &&
                r->marks[i].ops < now.reference[k].dead)
                state = now.reference[k].state;
        if (state != r->marks[i].state)
            wrong("a commit that was reported is not there", r->marks[i].ops, "committed");
    }
    free(file.data);
}

void crash_sweep(const crash_scenario *s, const recording *r, crash_totals *total)
{
    const image empty = {0};
    crash_totals start = *total;
    cow_journal_options system = cow_journal_defaults, plain = cow_journal_defaults;
    FILE *make = fopen(crash_dummy, "w");

    if (make == NULL || fclose(make) != 0)
        die("%s", crash_dummy);
    memset(&disk, 0, sizeof disk);
    memset(&now, 0, sizeof now);
    now.scenario = s;
    now.total = total;
    options = cow_journal_defaults;
    options.apply_interval = system.apply_interval = 0;
    options.calls = plain.calls = &memory_calls;
    fapl = state_fapl(&system);
    plain_fapl = state_fapl(&plain);
    stock_fapl = state_fapl(NULL);
    recoveries_left[0] = recoveries_left[1] = kills_left = crash_recoveries;
    /* with a judge: every 500th, and at least twenty; a point gives some fifty states */
    now.period = s->judge == NULL ? 101 : r->op_count < 200 ? r->op_count * 50 / 20 + 1 : 500;
    find_states(r);
    if (s->judge != NULL)
        judge_states(r);
    sweep(&empty, r->ops, r->op_count, 0, NULL, NULL);
    total->scenarios++;
    total->operations += r->op_count;
    free(disk.file.data);
    for (size_t i = 0; i < now.reference_count; i++) {
        free(now.reference[i].ranges.span);
        free(now.reference[i].logical);
    }
    H5Pclose(fapl);
    H5Pclose(plain_fapl);
    H5Pclose(stock_fapl);
    unlink(crash_dummy);
    printf("%-26s %5zu operations %3zu states %8lu crash states: %7lu before, %7lu after; without h5cow %6lu refused, "
           "%6lu older; %4lu looked at closely; %lu wrong\n",
           s->name, r->op_count, now.reference_count, total->states - start.states, total->before - start.before,
           total->after - start.after, total->refused - start.refused, total->older - start.older,
           total->deep - start.deep + total->asked - start.asked, total->wrong - start.wrong);
    fflush(stdout);
}
