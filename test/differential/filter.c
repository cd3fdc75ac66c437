/* A filter of the program's own that does not take every chunk: HDF5 then stores the chunk without it. */
#include "filter.h"

#include "run.h"

#include <stdlib.h>
#include <string.h>

#define EXTRA 8 /* bytes it adds, so that a chunk has another size where it was left out (D12) */

static size_t flip(unsigned flags, size_t count, const unsigned values[], size_t bytes, size_t *room, void **buffer)
{
    unsigned char *from = *buffer, *to;
    bool decode = (flags & H5Z_FLAG_REVERSE) != 0;
    (void)count, (void)values;
    if (decode ? bytes < EXTRA : bytes == 0 || from[bytes / 2] % 3 == 0)
        return 0;
    size_t made = decode ? bytes - EXTRA : bytes + EXTRA;
    if ((to = H5allocate_memory(made, false)) == NULL)
        return 0;
    for (size_t i = 0; i < (decode ? made : bytes); i++)
        to[decode ? i : i + EXTRA] = from[decode ? i + EXTRA : i] ^ 0x5a;
    if (!decode)
        memset(to, 7, EXTRA);
    H5free_memory(from);
    *buffer = to;
    *room = made;
    return made;
}

void know_filter(void)
{
    static const H5Z_class2_t class = {
        .version = H5Z_CLASS_T_VERS,
        .id = SOMETIMES,
        .encoder_present = 1,
        .decoder_present = 1,
        .name = "sometimes",
        .filter = flip,
    };
    if (H5Zregister(&class) < 0)
        die("the filter cannot be registered");
}

bool leaves_chunks_out(hid_t dcpl)
{
    unsigned flags;
    size_t none = 0;
    return H5Pget_filter_by_id2(dcpl, SOMETIMES, &flags, &none, NULL, 0, NULL, NULL) >= 0;
}
