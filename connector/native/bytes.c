/* See bytes.h. */
#include "native/bytes.h"

#include "base/error.h"
#include "base/ids.h"
#include "journal/driver.h"
#include "native/native.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

/* What does not change while a file is open, of the last one that was asked for: to be asked again costs more than the bytes are worth. No two
 * files have one number until HDF5 ends, and begins again. */
static struct {
    unsigned life; /* cow_native_lives */
    bool asked, known;
    cow_native_bytes bytes; /* without the journal */
    unsigned half;          /* cow_native_file_half */
} constants;

static void ask_for_bytes(void *file, unsigned long fileno)
{
    H5VL_file_get_args_t list = {.op_type = H5VL_FILE_GET_FCPL};
    H5F_fspace_strategy_t strategy;
    hid_t fcpl = H5I_INVALID_HID;
    size_t addresses = 0, lengths = 0;
    hsize_t base, threshold, page;
    hbool_t persists;
    unsigned indexes;

    constants.asked = true;
    constants.life = cow_native_lives();
    constants.known = false;
    constants.bytes = (cow_native_bytes){.fileno = fileno};
    if (H5VLfile_get(file, cow_native_id(), &list, DXPL, NULL) >= 0)
        fcpl = list.args.get_fcpl.fcpl_id;
    if (fcpl >= 0 && H5Pget_userblock(fcpl, &base) >= 0 && H5Pget_sizes(fcpl, &addresses, &lengths) >= 0 &&
        H5Pget_file_space_strategy(fcpl, &strategy, &persists, &threshold) >= 0 &&
        H5Pget_file_space_page_size(fcpl, &page) >= 0 && H5Pget_shared_mesg_nindexes(fcpl, &indexes) >= 0 &&
        H5Pget_istore_k(fcpl, &constants.half) >= 0) {
        constants.bytes.shares = indexes > 0;
        constants.bytes.base = base;
        constants.bytes.page = strategy == H5F_FSPACE_STRATEGY_PAGE ? page : 0;
        constants.bytes.persists = persists;
        constants.known = addresses == 8 && lengths == 8;
    }
    cow_close(fcpl);
}

static bool known(void *file, cow_native_bytes *bytes)
{
    H5VL_file_get_args_t args = {.op_type = H5VL_FILE_GET_FILENO};
    unsigned long fileno = 0;

    *bytes = (cow_native_bytes){0};
    args.args.get_fileno.fileno = &fileno;
    H5E_BEGIN_TRY
    {
        if (H5VLfile_get(file, cow_native_id(), &args, DXPL, NULL) < 0)
            constants.asked = false;
        else if (!constants.asked || constants.life != cow_native_lives() || constants.bytes.fileno != fileno)
            ask_for_bytes(file, fileno);
    }
    H5E_END_TRY
    if (!constants.asked || !constants.known)
        return false;
    *bytes = constants.bytes;
    return true;
}

bool cow_native_file_bytes(void *file, cow_native_bytes *bytes)
{
    return known(file, bytes) && (bytes->journal = cow_journal_driver_writes(bytes->fileno)) != NULL;
}

bool cow_native_file_looks(void *file, cow_native_bytes *bytes)
{
    return known(file, bytes) && (bytes->journal = cow_journal_driver_reads(bytes->fileno)) != NULL;
}

unsigned cow_native_file_half(void *file)
{
    cow_native_bytes bytes;

    return known(file, &bytes) ? constants.half : 0;
}

uint64_t cow_bytes_take(const cow_native_bytes *bytes, uint64_t size, bool at_end)
{
    uint64_t address = cow_journal_driver_allocate(bytes->fileno, size, bytes->page, at_end);

    return address == UINT64_MAX ? address : address - bytes->base;
}

int cow_bytes_write(const cow_native_bytes *bytes, uint64_t address, const void *from, size_t size)
{
    return cow_journal_write(bytes->journal, bytes->base + address, from, size);
}

bool cow_bytes_look(const cow_native_bytes *bytes, uint64_t address, void *to, size_t size)
{
    return address <= UINT64_MAX - bytes->base && cow_journal_look(bytes->journal, bytes->base + address, to, size);
}

static int read_source(void *context, uint64_t address, void *bytes, size_t size)
{
    return cow_bytes_look(context, address, bytes, size)
               ? 0
               : cow_error(COW_CORRUPT, "the file cannot be read at %llu", (unsigned long long)address);
}

cow_source cow_bytes_source(cow_native_bytes *bytes)
{
    return (cow_source){.context = bytes, .end = UINT64_MAX / 2, .read = read_source};
}
