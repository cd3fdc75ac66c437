/* Whether a version may have absolute soft links below its root: the attribute `absolute_links`. */
#include "history/absolute_links.h"

#include "base/error.h"
#include "history/internal.h"

#include <stdlib.h>

struct cow_absolute_state {
    bool read;
    uint8_t value; /* as in the file */
};

cow_absolute_state *cow_absolute_links_new(void)
{
    return calloc(1, sizeof(cow_absolute_state));
}

void cow_absolute_links_free(cow_absolute_state *state)
{
    free(state);
}

/* A file from before there was the attribute may have such links anywhere. */
int cow_absolute_links(cow_file *file)
{
    cow_absolute_state *state = file->absolute;
    uint64_t told = 1;

    if (!state->read) {
        if (cow_layout_told_number(file->written, file->loc, COW_ABSOLUTE, 1, &told) < 0)
            return cow_error_where(file->name, "looking for absolute links");
        state->value = (uint8_t)told;
        state->read = true;
    }
    return state->value != 0;
}

bool cow_absolute_links_known(const cow_file *file)
{
    return file->absolute->value != 0;
}

int cow_absolute_links_put(cow_file *file, bool absolute)
{
    const uint8_t value = absolute;

    if (file->absolute->value == value)
        return 0;
    if (cow_file_put_number(file, COW_ABSOLUTE, H5T_STD_U8LE, &value) < 0)
        return -1;
    file->absolute->value = value;
    return 0;
}
