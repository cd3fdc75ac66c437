/* HDF5's page buffer (H5Pset_page_buffer_size). Files with history have none: with it HDF5 loses raw data that it writes
 * (test/differential/main.c, D53), and reads wrong what lies across the end of a page, as the pages of a chunk index of more than
 * 1,024 chunks may. The program is told the buffer that it asked for, as HDF5 would have made it; in its statistics every access is
 * one that bypassed the buffer. Only where another driver reads the file, or it has no journal, HDF5 has its own.
 *
 * A file that is created goes without by its access list, here; one that is there already by the driver (journal/driver.c), which
 * HDF5 also calls for what it opens itself, through links. */
#include "vol/vol.h"

#include "journal/driver.h"

#define DXPL H5P_DATASET_XFER_DEFAULT

/* What HDF5 would make of the buffer that FAPL asks for, in a file with FCPL: whole pages, and none where there are no pages. */
static cow_page_buffer asked_for(hid_t fapl, hid_t fcpl)
{
    cow_page_buffer asked;
    H5F_fspace_strategy_t strategy;
    hbool_t persist;
    hsize_t threshold, page;

    if (H5Pget_page_buffer_size(fapl, &asked.size, &asked.metadata, &asked.raw) < 0 || asked.size == 0 ||
        H5Pget_file_space_strategy(fcpl, &strategy, &persist, &threshold) < 0 || strategy != H5F_FSPACE_STRATEGY_PAGE ||
        H5Pget_file_space_page_size(fcpl, &page) < 0 || page == 0)
        return (cow_page_buffer){0};
    asked.size = asked.size < page ? (size_t)page : asked.size - asked.size % (size_t)page;
    return asked;
}

int cow_page_buffer_leave_out(hid_t under, hid_t fcpl)
{
    cow_page_buffer asked = asked_for(under, fcpl);
    size_t given;
    unsigned metadata, raw;

    if (H5Pget_page_buffer_size(under, &given, &metadata, &raw) < 0 || given == 0)
        return 0;
    /* as HDF5, but before the file that is there is looked at */
    if (given < asked.size)
        return cow_error(COW_USAGE, "a page buffer of %zu bytes is smaller than a page", given);
    if (asked.size == 0)
        return cow_error(COW_USAGE,
                         "a page buffer is for files whose space is kept in pages (H5Pset_file_space_strategy)");
    return H5Pset_page_buffer_size(under, 0, 0, 0) < 0 ? cow_error_native("cannot set the page buffer of a file") : 0;
}

int cow_page_buffer_begin(cow_home *home, void *native, hid_t fapl)
{
    H5VL_optional_args_t reset = {.op_type = H5VL_NATIVE_FILE_RESET_PAGE_BUFFERING_STATS};
    const cow_journal *journal;
    size_t size;
    unsigned metadata, raw;
    hid_t fcpl;

    if (H5Pget_page_buffer_size(fapl, &size, &metadata, &raw) < 0 || size == 0)
        return 0;
    if ((journal = cow_native_file_journal(native)) == NULL || cow_journal_plain(journal)) {
        /* HDF5 has it, then; what h5cow has read of it until now is not the program's */
        if (H5VLfile_optional(native, cow_native_id(), &reset, DXPL, NULL) < 0)
            cow_error_clear(); /* it has no pages */
        return 0;
    }
    if ((fcpl = cow_native_file_fcpl(native)) < 0)
        return -1;
    home->asked.page_buffer = asked_for(fapl, fcpl);
    H5Pclose(fcpl);
    cow_page_buffer_reset(home);
    return 0;
}

void cow_page_buffer_reset(const cow_home *home)
{
    unsigned *accesses = cow_journal_driver_accesses(home->fileno);

    if (accesses != NULL)
        accesses[0] = accesses[1] = 0;
}

void cow_page_buffer_show(const cow_home *home, const H5VL_native_file_get_page_buffering_stats_t *told)
{
    const unsigned *accesses = cow_journal_driver_accesses(home->fileno);

    for (int i = 0; i < 2; i++) {
        told->accesses[i] = told->hits[i] = told->misses[i] = told->evictions[i] = 0;
        told->bypasses[i] = accesses == NULL ? 0 : accesses[i];
    }
}
