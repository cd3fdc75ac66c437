/* Which files are kept by the journal driver, and what programs see of that: nothing. */
#include "vol/vol.h"

#include "journal/driver.h"

int cow_file_use_journal(hid_t under, hid_t fapl, const char *name, bool creates, const cow_options *options)
{
    static const cow_sync syncs[] = {[COW_OPTION_SYNC_FULL] = COW_SYNC_FULL,
                                     [COW_OPTION_SYNC_NORMAL] = COW_SYNC_NORMAL,
                                     [COW_OPTION_SYNC_OFF] = COW_SYNC_OFF};
    cow_journal_options journal = cow_journal_defaults;

    if (!cow_default_driver(fapl) || (!creates && !cow_journal_present(name)))
        return 0;
    if (options != NULL) {
        journal.sync = syncs[options->sync];
        journal.lock_timeout = options->lock_timeout * 1000;
    }
    return cow_driver_set(under, &journal);
}

int cow_file_show_sec2(hid_t fapl)
{
    if (cow_driver_is_set(fapl) && H5Pset_fapl_sec2(fapl) < 0)
        return cow_error_native("cannot give back the access properties of the file");
    return 0;
}

static cow_journal *journal_of(void *native)
{
    unsigned long number = 0;
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_FILENO};

    get.args.get_fileno.fileno = &number;
    if (H5VLfile_get(native, cow_native_id(), &get, H5P_DATASET_XFER_DEFAULT, NULL) < 0)
        return NULL;
    return cow_driver_journal(number);
}

bool cow_file_take_on(void *native)
{
    cow_journal *journal = journal_of(native);

    return journal == NULL || cow_journal_take_on(journal);
}

void cow_file_drop_creation(void *native)
{
    cow_journal *journal = journal_of(native);

    if (journal != NULL)
        cow_journal_abort(journal, "the file could not be created");
}
