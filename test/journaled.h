/* Files of tests that are written through the journal, without the connector. */
#ifndef COW_TEST_JOURNALED_H
#define COW_TEST_JOURNALED_H

#include "harness.h"
#include "journal/driver.h"

#include <hdf5.h>

/* An access list that never waits for the disk, for the formats that the connector writes; the caller closes it. */
static inline hid_t journal_list(void)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    cow_journal_options options = cow_journal_defaults;

    options.sync = COW_SYNC_OFF;
    assert_true(H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_V114) >= 0);
    assert_int_equal(cow_journal_driver_set(fapl, &options), 0);
    return fapl;
}

#endif
