/* Creating datasets with filters whose parameters are computed already.
 *
 * HDF5 asks the filters of a chunked dataset when it creates it: `can_apply` may refuse, `set_local` computes parameters from type and
 * chunk. A program's filter is asked once, when the program creates its dataset. `set_local` of some (Bitshuffle, SZ, ZFP) changes
 * parameters again that it has computed before: then stored chunks could not be decoded. So pools, versions, copies and scratch
 * datasets are created without asking.
 *
 * How: H5D__create asks the filters that H5P_peek tells, and then uses those that H5P_get tells. A property may have a function that
 * H5P_get calls and H5P_peek does not.
 */
#ifndef COW_PIPELINE_H
#define COW_PIPELINE_H

#include <hdf5.h>

#include <stdbool.h>
#include <stdint.h>

/* Are the filters of DCPL HDF5's own that it does not ask, or that compute the same again? */
bool cow_pipeline_stable(hid_t dcpl);
/* A list that creates a dataset with the properties and filters of DCPL just as they are; the caller closes it. While that dataset is
 * open, HDF5 says that it has no filters: cow_pipeline_told. H5I_INVALID_HID: the error. */
hid_t cow_pipeline_computed(hid_t dcpl);
bool cow_pipeline_is_computed(hid_t dcpl); /* it is such a list */
/* A list with which HDF5 creates no dataset: it leaves what it leaves when a filter refuses, and asks none. The caller closes it. */
hid_t cow_pipeline_refusing(hid_t dcpl);
/* How often HDF5 took filters from such lists. An HDF5 in which creating a dataset does not add to it has another way. */
unsigned long cow_pipeline_taken(void);
/* LIST, as HDF5 tells it of an open dataset, with its filters. Takes LIST; H5I_INVALID_HID: the error. */
hid_t cow_pipeline_told(hid_t list);
/* 1: both have the same filters with the same flags and parameters; 0: not; -1. */
int cow_pipeline_same(hid_t a, hid_t b);
/* DCPL gets the filters of FROM, another list, in place of its own, but for those whose bit is set in SKIP. They are put in one by one: a
 * list out of which HDF5 1.14.5 has removed a filter alone frees memory of another list when it was copied (H5Z_delete,
 * H5O__pline_copy). */
int cow_pipeline_take(hid_t dcpl, hid_t from, uint32_t skip);

#endif
