/* Which files the journal driver keeps: all that programs open with the default driver. Those without a journal it passes
 * through; but files that are reached from them, through external links and virtual datasets, are opened by the same driver
 * and may have one. Programs see nothing of it. */
#include "vol/vol.h"

#include "base/error.h"
#include "h5/superblock.h"
#include "journal/driver.h"

/* A build without it is there to be compared with: benchmarks/bench.py. */
#ifdef H5COW_WITHOUT_JOURNAL
static const bool with_journal = false;
#else
static const bool with_journal = true;
#endif

static int use_journal(hid_t under, const cow_options *options, bool in_memory)
{
    static const cow_sync syncs[] = {[COW_OPTION_SYNC_FULL] = COW_SYNC_FULL,
                                     [COW_OPTION_SYNC_NORMAL] = COW_SYNC_NORMAL,
                                     [COW_OPTION_SYNC_OFF] = COW_SYNC_OFF};
    cow_journal_options journal = cow_journal_defaults;

    if (!with_journal)
        return 0;
    journal.in_memory = in_memory;
    if (options != NULL) {
        journal.sync = syncs[options->sync];
        journal.protect = options->protect;
        journal.lock_timeout = options->lock_timeout * 1000;
    }
    return cow_journal_driver_set(under, &journal);
}

int cow_vol_file_use_journal(hid_t under, hid_t fapl, const cow_options *options)
{
    return cow_default_driver(fapl) ? use_journal(under, options, false) : 0;
}

int cow_vol_file_use_memory(hid_t under, const cow_options *options)
{
    return use_journal(under, options, true);
}

int cow_vol_file_show_sec2(hid_t fapl)
{
    if (cow_journal_driver_is_set(fapl) && H5Pset_fapl_sec2(fapl) < 0)
        return cow_error_native("cannot give back the access properties of the file");
    return 0;
}

bool cow_vol_file_is_new(void *native)
{
    cow_journal *journal = cow_native_file_journal(native);
    uint64_t sequence = 1, applied;

    if (journal != NULL)
        cow_journal_state(journal, &sequence, &applied);
    return sequence == 0;
}

bool cow_vol_file_take_on(void *native)
{
    cow_journal *journal = cow_native_file_journal(native);

    return journal == NULL ? !with_journal : cow_journal_take_on(journal);
}

cow_vol_file_users cow_vol_file_who(void *native)
{
    const cow_journal *journal = cow_native_file_journal(native);

    if (journal == NULL)
        return with_journal ? COW_USERS_NO_JOURNAL : COW_USERS_NONE;
    return cow_journal_alone(journal) ? COW_USERS_NONE : COW_USERS_SOME;
}

bool cow_vol_file_in_place(const cow_home *home, haddr_t address, hsize_t size)
{
    cow_journal *journal = home == NULL ? NULL : cow_journal_driver_of_file(home->fileno);

    return journal == NULL || cow_journal_in_place(journal, address, size);
}

int cow_vol_file_check_journal(void *native, const char *name)
{
    if (!with_journal || cow_native_file_journal(native) != NULL)
        return 0;
    return cow_error(COW_UNSUPPORTED,
                     "%s: the file has a history but no journal, as what h5repack writes: it can be read, but not be "
                     "written, since its history would not be safe; for a file that can: h5cow import %s OUT",
                     name, name);
}

void cow_vol_file_drop_changes(void *native, const char *why)
{
    cow_journal *journal = cow_native_file_journal(native);

    if (journal != NULL)
        cow_journal_abort(journal, why);
}

void cow_vol_file_mend_image(void *bytes, size_t size)
{
    uint8_t *image = bytes;

    for (size_t base = 0; size >= COW_SUPERBLOCK_MAX && base <= size - COW_SUPERBLOCK_MAX;
         base = base == 0 ? 512 : base * 2)
        if (cow_superblock_size(image + base) > 0) {
            cow_superblock_set(image + base, cow_superblock_extension(image + base), false);
            return;
        }
}
