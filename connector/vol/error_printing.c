/* One HDF5 error is printed once. The functions of the native connector are public calls: when one fails, HDF5 prints
 * the error stack as the application has set it (H5Eset_auto), and the application's own call, around our callback,
 * prints it again. So printing is off while one of our callbacks runs, unless it calls a function of the application,
 * whose errors are its own. What the application has set may be different every time, and is put back every time.
 *
 * None of these calls clears the default stack, so the reason of a failure survives them.
 */
#include "vol/vol.h"

#include "native/kept_type.h"
#include "native/native.h"

/* HDF5 keeps this for each thread. */
static _Thread_local struct {
    bool off;    /* by us */
    bool second; /* H5Eset_auto2 holds; H5Eset_auto1 and H5Eset_auto2 must not be mixed */
    H5E_auto1_t function1;
    H5E_auto2_t function2;
    void *data;
    unsigned depth; /* of callbacks */
} printing;

/* What the application has set. Only programs of HDF5 1.6 use H5Eset_auto1, so asking which of the two it was is spared
 * as long as it was not: one call costs 0.09 us, and this is done in every callback. A program that turns to
 * H5Eset_auto1 later on may see one trace more. */
static bool learn(void)
{
    unsigned second = 0;

    if (printing.second && H5Eget_auto2(H5E_DEFAULT, &printing.function2, &printing.data) >= 0)
        return printing.function2 != NULL;
    if (printing.second)
        H5Epop(H5E_DEFAULT, 1); /* what this failure has left */
    printing.second = false;
    if (H5Eauto_is_v2(H5E_DEFAULT, &second) < 0)
        return false;
    if (second) {
        printing.second = true;
        return H5Eget_auto2(H5E_DEFAULT, &printing.function2, &printing.data) >= 0 && printing.function2 != NULL;
    }
    return H5Eget_auto1(&printing.function1, &printing.data) >= 0 && printing.function1 != NULL;
}

/* True when there was something to turn off. */
static bool turn_off(void)
{
    if (!learn())
        return false;
    if (printing.second)
        H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    else
        H5Eset_auto1(NULL, NULL);
    printing.off = true;
    return true;
}

static void turn_on(void)
{
    printing.off = false;
    if (printing.second)
        H5Eset_auto2(H5E_DEFAULT, printing.function2, printing.data);
    else
        H5Eset_auto1(printing.function1, printing.data);
}

cow_quiet cow_quiet_begin(bool object)
{
    cow_quiet quiet = {
        .ours = !printing.off && turn_off(), .before = cow_native_on_object(object), .held = cow_error_hold()};

    printing.depth++;
    return quiet;
}

cow_quiet cow_quiet_begin_element(void)
{
    if (printing.depth == 0)
        return cow_quiet_begin(true);
    return (cow_quiet){.element = true};
}

void cow_quiet_end(cow_quiet *quiet)
{
    if (quiet->element)
        return;
    if (quiet->ours)
        turn_on();
    cow_error_put_back(quiet->held);
    cow_native_on_object(quiet->before);
    if (--printing.depth == 0) {
        cow_kept_types_end_call();
        cow_native_call_ends();
    }
}

bool cow_quiet_nested(void)
{
    return printing.depth > 1;
}

/* ---- functions of the application ---- */

/* NAME_aloud stands in for the application's function: it prints again while that one runs. */
#define LOUD(name, type, result, parameters, arguments)                                                                \
    static result name##_aloud parameters                                                                              \
    {                                                                                                                  \
        cow_loud *loud = context;                                                                                      \
        result status;                                                                                                 \
                                                                                                                       \
        turn_on();                                                                                                     \
        status = loud->name arguments;                                                                                 \
        turn_off();                                                                                                    \
        return status;                                                                                                 \
    }                                                                                                                  \
    void cow_loud_##name(const cow_quiet *quiet, type *op, void **op_data, cow_loud *loud)                             \
    {                                                                                                                  \
        if (!quiet->ours)                                                                                              \
            return;                                                                                                    \
        loud->name = *op;                                                                                              \
        loud->data = *op_data;                                                                                         \
        *op = name##_aloud;                                                                                            \
        *op_data = loud;                                                                                               \
    }

LOUD(attribute, H5A_operator2_t, herr_t, (hid_t object, const char *name, const H5A_info_t *info, void *context),
     (object, name, info, loud->data))
LOUD(attribute_old, H5A_operator1_t, herr_t, (hid_t object, const char *name, void *context),
     (object, name, loud->data))
LOUD(link, H5L_iterate2_t, herr_t, (hid_t group, const char *name, const H5L_info2_t *info, void *context),
     (group, name, info, loud->data))
LOUD(member_old, H5G_iterate_t, herr_t, (hid_t group, const char *name, void *context), (group, name, loud->data))
LOUD(object, H5O_iterate2_t, herr_t, (hid_t start, const char *name, const H5O_info2_t *info, void *context),
     (start, name, info, loud->data))
LOUD(chunk, H5D_chunk_iter_op_t, int,
     (const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size, void *context),
     (offset, mask, address, size, loud->data))
