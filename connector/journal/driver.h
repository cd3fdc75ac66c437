/* The file driver of HDF5 over journal.h. Programs never see it: the connector puts it on its own copy of the file
 * access list, and shows them sec2. */
#ifndef COW_JOURNAL_DRIVER_H
#define COW_JOURNAL_DRIVER_H

#include "journal/journal.h"

#include <hdf5.h>

/* Put the driver on the list FAPL. It is registered with HDF5 on the first call. -1: recorded. */
int cow_driver_set(hid_t fapl, const cow_journal_options *options);
/* Is it this driver that is on the list? */
bool cow_driver_is_set(hid_t fapl);

/* The journal of the file that HDF5 gave the number FILENO (H5Fget_fileno); NULL: the file has none. */
cow_journal *cow_driver_journal(unsigned long fileno);

#endif
