/* Large groups from the bytes of the file, and into it: see dense.h. */
#include "native/dense.h"

#include "base/error.h"
#include "base/ids.h"
#include "journal/driver.h"
#include "native/native.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <stdlib.h>
#include <string.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

/* The file is read in pieces of so many bytes: what was written by one commit mostly stands together. */
#define WINDOW ((size_t)64 << 10)

typedef struct reading {
    cow_journal *journal;
    uint64_t end, at;
    size_t size; /* of what is in the window, from `at` on */
    uint8_t *window;
} reading;

/* The file's own driver, without a user block, and with addresses and lengths of eight bytes. In a file whose free space HDF5 keeps,
 * nobody else can give anything back. NULL: it is otherwise. */
static cow_journal *journal_of(void *file, unsigned long *number)
{
    H5VL_file_get_args_t args = {.op_type = H5VL_FILE_GET_FILENO};
    H5VL_file_get_args_t list = {.op_type = H5VL_FILE_GET_FCPL};
    hid_t fcpl = H5I_INVALID_HID;
    size_t addresses = 0, lengths = 0;
    H5F_fspace_strategy_t strategy;
    hsize_t base = 0, threshold;
    hbool_t persists = true;
    cow_journal *journal = NULL;

    args.args.get_fileno.fileno = number;
    H5E_BEGIN_TRY
    {
        if (H5VLfile_get(file, cow_native_id(), &args, DXPL, NULL) >= 0 &&
            H5VLfile_get(file, cow_native_id(), &list, DXPL, NULL) >= 0)
            fcpl = list.args.get_fcpl.fcpl_id;
        if (fcpl >= 0 && H5Pget_userblock(fcpl, &base) >= 0 && base == 0 &&
            H5Pget_sizes(fcpl, &addresses, &lengths) >= 0 && addresses == 8 && lengths == 8 &&
            H5Pget_file_space_strategy(fcpl, &strategy, &persists, &threshold) >= 0 && !persists)
            journal = cow_journal_driver_of_file(*number);
    }
    H5E_END_TRY
    cow_close(fcpl);
    return journal != NULL && cow_journal_driver_linear(*number) ? journal : NULL;
}

static int read_window(void *context, uint64_t address, void *bytes, size_t size)
{
    reading *r = context;

    if (size > WINDOW)
        return cow_journal_read(r->journal, address, bytes, size);
    if (address < r->at || address - r->at > r->size || size > r->size - (address - r->at)) {
        const size_t wanted = r->end - address < WINDOW ? (size_t)(r->end - address) : WINDOW;

        r->size = 0;
        if (cow_journal_read(r->journal, address, r->window, wanted) < 0)
            return -1;
        r->at = address;
        r->size = wanted;
    }
    memcpy(bytes, r->window + (address - r->at), size);
    return 0;
}

int cow_dense_read(void *file, uint64_t address, cow_dense **dense)
{
    unsigned long number = 0;
    reading r = {.journal = journal_of(file, &number)};
    cow_dense_source source = {.context = &r, .read = read_window};
    int status;

    *dense = NULL;
    if (r.journal == NULL)
        return 0;
    if ((r.window = malloc(WINDOW)) == NULL)
        return cow_error(COW_MEMORY, "no memory to copy a group");
    source.end = r.end = cow_journal_end(r.journal);
    status = cow_dense_parse(&source, address, dense);
    free(r.window);
    return status;
}

typedef struct writing {
    cow_journal *journal;
    unsigned long number;
} writing;

static uint64_t allocate(void *context, uint64_t size, bool at_end)
{
    return cow_journal_driver_allocate(((const writing *)context)->number, size, at_end);
}

static int write_journal(void *context, uint64_t address, const void *bytes, size_t size)
{
    return cow_journal_write(((const writing *)context)->journal, address, bytes, size);
}

int cow_dense_write(void *file, cow_dense *dense, uint64_t *address)
{
    writing w = {0};
    const cow_place *offered;
    cow_dense_target target = {.context = &w, .allocate = allocate, .write = write_journal};

    if ((w.journal = journal_of(file, &w.number)) == NULL)
        return cow_error(COW_UNSUPPORTED, "a group cannot be copied into this file");
    target.has_places = cow_journal_driver_offered(w.number, &offered) > 0;
    return cow_dense_put(dense, &target, address);
}
