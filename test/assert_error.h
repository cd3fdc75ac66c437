/* Assertions about the connector's own functions, which record why they fail (connector/base/error.h). */
#ifndef ASSERT_ERROR_H
#define ASSERT_ERROR_H

#include "base/error.h"
#include "harness.h"

/* CALL succeeds; else its error is told. */
#define assert_good(call)                                                                                              \
    do {                                                                                                               \
        if ((call) < 0)                                                                                                \
            fail_msg("%s: %s", #call, cow_error_message());                                                            \
    } while (0)

/* The recorded error is of this kind; it is cleared. */
static inline void assert_kind(cow_kind kind)
{
    cow_error_box box;

    cow_error_take(&box);
    assert_true(box.set);
    assert_int_equal(box.kind, kind);
    assert_true(box.message[0] != '\0');
}

#endif
