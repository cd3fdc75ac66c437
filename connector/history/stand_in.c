/* What stands in for datasets of the program's that HDF5 has not opened (vol/unopened.c). A handle of our own on it, open as long as the history is, makes each
 * of the program's a copy of that: HDF5 opens a dataset that is open already for 15,000 instructions, and takes 70,000 to read it from its header and to close
 * it. */
#include "base/error.h"
#include "history/internal.h"

#include <stdlib.h>

struct cow_stand_in {
    void *native; /* NULL: not open */
    uint64_t address;
    bool failed; /* it cannot be had */
};

cow_stand_in *cow_stand_in_new(void)
{
    return calloc(1, sizeof(cow_stand_in));
}

void cow_stand_in_free(cow_stand_in *stand_in)
{
    free(stand_in);
}

void cow_stand_in_close(cow_file *file)
{
    cow_stand_in *s = file->stand_in;

    if (s->native != NULL && cow_native_dataset_close(s->native) < 0)
        cow_error_clear();
    s->native = NULL;
}

static bool open_it(cow_file *file)
{
    cow_error_held *held = cow_error_hold();

    file->stand_in->native = cow_layout_stand_in(file->still, file->loc, &file->stand_in->address);
    cow_error_clear();
    cow_error_put_back(held);
    return file->stand_in->native != NULL;
}

bool cow_file_stand_in(cow_file *file, H5O_token_t *token)
{
    cow_stand_in *s = file->stand_in;

    if (!file->laid_out || cow_file_shut(file) || !cow_file_keeps_closed())
        return false;
    if (s->native == NULL && !s->failed)
        s->failed = !open_it(file);
    if (s->native == NULL)
        return false;
    *token = cow_token(s->address);
    return true;
}
