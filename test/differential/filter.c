/* Filters of the program's own: see filter.h. */
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

static unsigned long calls;

static size_t turn(unsigned flags, size_t count, const unsigned values[], size_t bytes, size_t *room, void **buffer)
{
    unsigned char *at = *buffer;
    (void)flags, (void)count, (void)values, (void)room;
    for (size_t i = 0; i < bytes; i++)
        at[i] ^= 0x33;
    return bytes;
}

/* As Bitshuffle does: what it is given is what it has computed, and it computes again. */
static herr_t compute(hid_t dcpl, hid_t type, hid_t space)
{
    unsigned flags, values[2] = {0, 0};
    size_t count = 2;
    (void)space;
    calls++;
    if (H5Pget_filter_by_id2(dcpl, COMPUTES, &flags, &count, values, 0, NULL, NULL) < 0)
        return -1;
    values[0] = (unsigned)H5Tget_size(type) % 255 + 1;
    values[1]++;
    return H5Pmodify_filter(dcpl, COMPUTES, flags, 2, values);
}

static size_t keep(unsigned flags, size_t count, const unsigned values[], size_t bytes, size_t *room, void **buffer)
{
    (void)flags, (void)count, (void)values, (void)room, (void)buffer;
    return bytes;
}

static htri_t choose(hid_t dcpl, hid_t type, hid_t space)
{
    size_t size = H5Tget_size(type);
    (void)dcpl, (void)space;
    calls++;
    return size == 1 || size == 2 || size == 4 || size == 8;
}

unsigned long filter_calls(void)
{
    return calls;
}

void know_filter(void)
{
    static const H5Z_class2_t computes = {
        .version = H5Z_CLASS_T_VERS,
        .id = COMPUTES,
        .encoder_present = 1,
        .decoder_present = 1,
        .name = "computes",
        .set_local = compute,
        .filter = turn,
    };
    static const H5Z_class2_t chooses = {
        .version = H5Z_CLASS_T_VERS,
        .id = CHOOSES,
        .encoder_present = 1,
        .decoder_present = 1,
        .name = "chooses",
        .can_apply = choose,
        .filter = keep,
    };
    static const H5Z_class2_t class = {
        .version = H5Z_CLASS_T_VERS,
        .id = SOMETIMES,
        .encoder_present = 1,
        .decoder_present = 1,
        .name = "sometimes",
        .filter = flip,
    };
    if (H5Zregister(&class) < 0 || H5Zregister(&computes) < 0 || H5Zregister(&chooses) < 0)
        die("the filter cannot be registered");
}

bool leaves_chunks_out(hid_t dcpl)
{
    unsigned flags;
    size_t none = 0;
    return H5Pget_filter_by_id2(dcpl, SOMETIMES, &flags, &none, NULL, 0, NULL, NULL) >= 0;
}
