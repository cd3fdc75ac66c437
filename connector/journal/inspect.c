/* Looking at a journal. Contract: inspect.h. Nothing here is used by programs that read or write files. */
#include "journal/inspect.h"

#include "base/bytes.h"
#include "base/error.h"
#include "journal/internal.h"
#include "journal/locks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK ((size_t)1 << 20)

/* ---- report ---- */

static int note_slots(const cow_disk *disk, const cow_anchor *anchor, cow_journal_report *report,
                      cow_journal_slot_pair *pair)
{
    static const uint8_t nothing[COW_JOURNAL_SLOT];
    uint8_t copies[COW_JOURNAL_SLOT];

    if (cow_journal_slots_read(disk, anchor, pair) < 0)
        return -1;
    for (unsigned i = 0; i < 2; i++) {
        if (cow_disk_read(disk, anchor->slot[i], copies, sizeof copies) < 0)
            return -1;
        report->blank[i] = memcmp(copies, nothing, sizeof copies) == 0;
        if ((report->valid[i] = pair->valid[i])) {
            const cow_journal_slot *slot = &pair->slot[i];
            report->slot[i] = (cow_journal_slot_note){slot->sequence, slot->applied, slot->end, slot->unsynced != 0};
        }
    }
    report->newest = cow_journal_slots_newest(pair);
    return 0;
}

static int note_chains(const cow_journal *journal, const cow_journal_slot slot[2], cow_journal_report *report)
{
    for (int i = 0; i < 2; i++) {
        cow_pending *list;
        size_t count;
        int status;

        if (!report->valid[i])
            continue;
        if ((status = cow_journal_load_chain(journal, &slot[i], &list, &count)) < 0)
            return -1;
        report->whole[i] = status == 0;
        if (status == 0 && i == report->newest && count > 0) {
            if ((report->extent = calloc(count, sizeof *report->extent)) == NULL) {
                cow_pending_free(list, count);
                return cow_error(COW_MEMORY, "%s: no memory to look at the file", journal->name);
            }
            for (size_t e = 0; e < count; e++)
                report->extent[e] =
                    (cow_journal_extent_note){list[e].extent.after, list[e].extent.sequence, list[e].name.length};
            report->extents = count;
        }
        for (size_t e = 0; e < count; e++) /* the other slot's are kept until the newest is known to be durable */
            if (list[e].name.address + list[e].name.length > report->need)
                report->need = list[e].name.address + list[e].name.length;
        cow_pending_free(list, count);
    }
    return 0;
}

static void note_superblock(const cow_disk *disk, uint64_t base, const cow_journal_slot slots[2],
                            cow_journal_report *report)
{
    uint8_t head[COW_SUPERBLOCK_MAX], clean[COW_SUPERBLOCK_MAX];
    const cow_journal_slot *slot = report->newest < 0 ? NULL : &slots[report->newest];
    size_t length;

    if (cow_disk_read(disk, base, head, sizeof head) < 0) {
        cow_error_clear();
        return;
    }
    report->superblock_whole = cow_superblock_whole(head);
    if (!report->superblock_whole) {
        report->stale = slot != NULL;
        return;
    }
    report->flagged = cow_superblock_flagged(head);
    if (slot == NULL || slot->applied != slot->sequence)
        return;
    length = cow_superblock_size(head);
    memcpy(clean, head, sizeof clean);
    cow_superblock_set(clean, cow_superblock_extension(clean), false);
    cow_superblock_move(clean, base);
    report->stale = memcmp(clean, slot->superblock, length) != 0;
}

static void note_pins(const cow_disk *disk, cow_journal_report *report)
{
    uint64_t pin, from = 0;

    while (report->pins < COW_REPORT_PINS && cow_lock_next_pin(disk, from, &pin) == 0 && pin != COW_NOWHERE) {
        report->pin[report->pins++] = pin;
        from = pin + 1;
    }
    cow_error_clear();
}

bool cow_journal_identify(const char *name, cow_journal_identity *identity)
{
    cow_journal_slot_pair pair = {0};
    cow_anchor anchor;
    struct stat about;
    cow_disk disk;
    int which = -1;

    if (cow_disk_open(&disk, &cow_disk_system, name, O_RDONLY | O_NONBLOCK) < 0)
        return false;
    if (disk.calls->fstat(disk.calls->context, disk.fd, &about) == 0 && S_ISREG(about.st_mode) &&
        cow_anchor_look(&disk, (uint64_t)about.st_size, &anchor) > 0 &&
        cow_journal_slots_read(&disk, &anchor, &pair) == 0 && (which = cow_journal_slots_newest(&pair)) >= 0) {
        memcpy(identity->id, anchor.id, sizeof identity->id);
        identity->sequence = pair.slot[which].sequence;
    }
    cow_error_clear();
    cow_disk_close(&disk);
    return which >= 0;
}

int cow_journal_inspect(const char *name, cow_journal_report *report)
{
    cow_journal look = {0};
    cow_journal_slot_pair pair = {0};
    struct stat about;
    bool abandoned;
    int status = -1;

    memset(report, 0, sizeof *report);
    report->newest = -1;
    if (cow_disk_open(&look.disk, &cow_disk_system, name, O_RDONLY | O_NONBLOCK) < 0)
        return cow_error(COW_IO, "cannot read '%s': %s", name, strerror(errno));
    look.name = (char *)(uintptr_t)name;
    if (cow_disk_about(&look.disk, &about) < 0)
        goto done;
    if (!S_ISREG(about.st_mode)) {
        cow_error(COW_IO, "'%s' is not an ordinary file", name);
        goto done;
    }
    report->size = report->need = (uint64_t)about.st_size;
    if ((report->writing = cow_lock_is_writing(&look.disk)))
        cow_lock_describe_writer(&look.disk, report->writer, sizeof report->writer);
    note_pins(&look.disk, report);
    report->journal = cow_anchor_find(&look.disk, report->size, &look.anchor);
    if (!report->journal && cow_anchor_search(&look.disk, report->size, &look.anchor))
        report->journal = report->hidden = true;
    report->unfinished = cow_journal_unfinished(name, &abandoned);
    status = 0;
    if (!report->journal)
        goto done;
    status = -1;
    if (note_slots(&look.disk, &look.anchor, report, &pair) < 0)
        goto done;
    if (report->newest >= 0) {
        const cow_journal_slot *newest = &pair.slot[report->newest];
        bool pinned = report->pins > 0 && report->pin[0] < newest->sequence;
        report->need = newest->applied == newest->sequence && !pinned ? newest->end : newest->protect;
    }
    if (note_chains(&look, pair.slot, report) < 0)
        goto done;
    note_superblock(&look.disk, look.anchor.base, pair.slot, report);
    status = 0;
done:
    cow_disk_close(&look.disk);
    if (status < 0)
        cow_journal_report_free(report);
    return status;
}

void cow_journal_report_free(cow_journal_report *report)
{
    free(report->extent);
    report->extent = NULL;
    report->extents = 0;
}

int cow_journal_drop_unfinished(const char *name)
{
    cow_disk disk;
    struct stat about;
    uint64_t base = 0;
    bool found = false;
    uint8_t head[COW_UNFINISHED_SIZE];
    int status = -1;

    if (cow_disk_open(&disk, &cow_disk_system, name, O_RDWR) < 0)
        return cow_error(COW_IO, "cannot change '%s': %s", name, strerror(errno));
    /* looked at again under the lock: it may have become a file meanwhile */
    if (cow_lock_writer(&disk, 0) < 0 || cow_disk_about(&disk, &about) < 0)
        goto done;
    for (; base < (uint64_t)about.st_size; base = base == 0 ? 512 : base * 2) {
        if (cow_disk_read(&disk, base, head, sizeof head) < 0)
            goto done;
        if ((found = memcmp(head, COW_UNFINISHED, sizeof head) == 0))
            break;
    }
    if (!found || cow_journal_present(name))
        cow_error(COW_IO, "%s: somebody changed the file meanwhile; nothing was done", name);
    else
        status = cow_disk_truncate(&disk, base);
done:
    cow_disk_close(&disk);
    return status;
}

uint64_t cow_journal_base(const cow_journal *journal)
{
    return journal->anchor.base;
}

/* ---- a copy ---- */

static int write_copy(const cow_journal *journal, int to, uint64_t address, const void *bytes, size_t size)
{
    cow_disk copy = {.calls = &cow_disk_system, .fd = to, .name = "the copy"};

    (void)journal;
    return cow_disk_write(&copy, address, bytes, size);
}

static int copy_range(const cow_journal *journal, int to, uint64_t from, uint64_t end, uint8_t *buffer)
{
    bool fast = true;

    while (from < end) {
        size_t size = end - from < BLOCK ? (size_t)(end - from) : BLOCK;
        if (fast) {
            off_t in = (off_t)from, out = (off_t)from;
            ssize_t n = copy_file_range(journal->disk.fd, &in, to, &out, (size_t)(end - from), 0);
            if (n > 0) {
                from += (uint64_t)n;
                continue;
            }
            fast = n < 0 && errno == EINTR; /* else the plain way, which says what is wrong */
            continue;
        }
        if (cow_disk_read(&journal->disk, from, buffer, size) < 0 || write_copy(journal, to, from, buffer, size) < 0)
            return -1;
        from += size;
    }
    return 0;
}

/* What is stored of the first END bytes. */
static int copy_stored(const cow_journal *journal, int to, uint64_t end)
{
    uint8_t *buffer = malloc(BLOCK);
    off_t data = 0, hole;
    int status = 0;

    if (buffer == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for a copy", journal->name);
    while (status == 0 && (uint64_t)data < end) {
        off_t next = lseek(journal->disk.fd, data, SEEK_DATA);

        if (next < 0 && errno == ENXIO)
            break; /* only holes follow */
        if (next < 0 || (hole = lseek(journal->disk.fd, next, SEEK_HOLE)) < 0) {
            next = data; /* a file system that knows no holes */
            hole = (off_t)end;
        }
        if ((uint64_t)hole > end)
            hole = (off_t)end;
        if (next < hole)
            status = copy_range(journal, to, (uint64_t)next, (uint64_t)hole, buffer);
        data = hole > next ? hole : next;
    }
    free(buffer);
    return status;
}

typedef struct copying {
    const cow_journal *journal;
    int to;
    uint64_t end;
} copying;

static int copy_frame(void *context, uint64_t address, const uint8_t *bytes, size_t size)
{
    const copying *c = context;

    if (address >= c->end)
        return 0;
    if (size > c->end - address)
        size = (size_t)(c->end - address);
    return write_copy(c->journal, c->to, address, bytes, size);
}

/* With SLOT. The other slot is empty, so this one is the newest whatever was there. */
static int write_anchor(const cow_journal *journal, const cow_journal_slot *slot, int to)
{
    static const uint8_t nothing[COW_JOURNAL_SLOT];
    uint8_t sector[COW_SECTOR], copies[COW_JOURNAL_SLOT];

    cow_anchor_encode(&journal->anchor, sector);
    cow_journal_slot_encode(slot, &journal->anchor, copies);
    memcpy(copies + COW_SECTOR, copies, COW_SECTOR);
    return write_copy(journal, to, journal->anchor.address, sector, sizeof sector) < 0 ||
                   write_copy(journal, to, journal->anchor.slot[slot->generation % 2], copies, sizeof copies) < 0 ||
                   write_copy(journal, to, journal->anchor.slot[!(slot->generation % 2)], nothing, sizeof nothing) < 0
               ? -1
               : 0;
}

int cow_journal_copy(const cow_journal *journal, int to)
{
    uint64_t end = journal->end;
    copying c = {journal, to, end};
    cow_journal_slot slot = journal->slot;

    if (ftruncate(to, (off_t)end) < 0)
        return cow_error(COW_IO, "cannot write the copy: %s", strerror(errno));
    if (copy_stored(journal, to, end) < 0 || cow_overlay_each(journal->merged, copy_frame, &c) < 0)
        return -1;
    if (!journal->placed)
        return 0;
    /* A journal in which all is applied. */
    slot.applied = slot.sequence;
    slot.protect = slot.end;
    slot.unsynced = 0;
    memset(&slot.extent, 0, sizeof slot.extent);
    for (unsigned i = 0; i < COW_RESERVES; i++)
        if (slot.reserve[i].length > 0 && slot.reserve[i].address + slot.reserve[i].length > end)
            slot.reserve[i] = (cow_range){0, 0};
    return write_anchor(journal, &slot, to); /* the original's may be damaged */
}

int cow_journal_identify_as(const char *name, const uint8_t id[16])
{
    int number, status = 0;
    cow_journal *journal = cow_journal_open(name, (cow_journal_mode){.writable = true}, &cow_journal_defaults, &number);
    cow_error_held *held;

    if (journal == NULL)
        return -1;
    if (journal->slot.sequence == 0 || journal->pending_count > 0) /* records would not be known any more */
        status = cow_error(COW_IO, "%s: it is used by another program", name);
    else {
        memcpy(journal->anchor.id, id, sizeof journal->anchor.id);
        status = write_anchor(journal, &journal->slot, journal->disk.fd);
    }
    held = cow_error_hold();
    cow_journal_close(journal);
    cow_error_put_back(held);
    return status;
}
