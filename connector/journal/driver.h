/* The file driver of HDF5 over journal.h. Programs never see it: the connector puts it on its own copy of the file
 * access list, and shows them sec2. */
#ifndef COW_JOURNAL_DRIVER_H
#define COW_JOURNAL_DRIVER_H

#include "journal/journal.h"

#include <hdf5.h>

/* Put the driver on the list FAPL. It is registered with HDF5 on the first call. -1: recorded. */
int cow_journal_driver_set(hid_t fapl, const cow_journal_options *options);
/* The same, and HDF5 takes the file for another one than those that are opened by cow_journal_driver_set: one that is open
 * natively and through a connector at once shares what names the connector, and HDF5 crashes on text in it. For reading
 * only. */
int cow_journal_driver_set_apart(hid_t fapl, const cow_journal_options *options);
/* HDF5 forgets the drivers, and the connector is done with it. LIBRARY_ENDS: files that HDF5 has kept open after an error
 * are let go as well, with their locks. */
void cow_journal_driver_forget(bool library_ends);
/* Is it this driver that is on the list? */
bool cow_journal_driver_is_set(hid_t fapl);

/* How often reading or writing has failed so far: tells a failing disk from what is not there. */
unsigned long cow_journal_driver_failures(void);
/* The same of the file that HDF5 gave the number FILENO; 0: it is not open. */
unsigned long cow_journal_driver_file_failures(unsigned long fileno);
/* How often HDF5 has read or written metadata and raw data of that file, since the caller set them to 0; NULL: it is not open. */
unsigned *cow_journal_driver_accesses(unsigned long fileno);

/* HDF5 forgets free space when a file is closed. PLACES, COUNT of them, in order and apart, at addresses of HDF5's, are given out again
 * before the file grows. Only the first list counts, which may be empty: after that HDF5 knows itself. LIST is taken over. Places where anything of the journal's or nothing of
 * HDF5's can be are left out. */
void cow_journal_driver_offer(unsigned long fileno, cow_place *list, size_t count);
/* What is left; borrowed. None is given out while HELD. */
size_t cow_journal_driver_offered(unsigned long fileno, const cow_place **list);
void cow_journal_driver_hold(unsigned long fileno, bool held);

/* Does HDF5 keep raw data and the rest in pages apart? */
bool cow_journal_driver_paged(unsigned long fileno);
/* SIZE bytes of the file for what is written past HDF5, as it is given them: it has none of them in memory. PAGE: the bytes of the file's pages,
 * 0: it has none. UINT64_MAX: no place has so many, and AT_END, where the file grows, they could not be had either, which is recorded. */
uint64_t cow_journal_driver_allocate(unsigned long fileno, uint64_t size, uint64_t page, bool at_end);

/* May HDF5 have the object header at ADDRESS, one of its own, in memory, as it was when it read or wrote it? */
bool cow_journal_driver_met(unsigned long fileno, uint64_t address);

/* The journal of the file that HDF5 gave the number FILENO (H5Fget_fileno); NULL: the file has none. */
cow_journal *cow_journal_driver_of_file(unsigned long fileno);
/* The same for what is written past HDF5, also where the file is in memory and needs no journal. */
cow_journal *cow_journal_driver_writes(unsigned long fileno);
/* The same to read the file's bytes, also where there is no journal in it. NULL: it has another driver. */
cow_journal *cow_journal_driver_reads(unsigned long fileno);
/* Does HDF5 have a file of this journal open? */
bool cow_journal_driver_has(const cow_journal *journal);

#endif
