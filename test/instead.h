/* What the connector's objects in a test call in HDF5 goes by a table (connector/library/library.h). INSTEAD begins a function
 * that takes the place of one of them; real_NAME is what stood there. */
#ifndef TEST_INSTEAD_H
#define TEST_INSTEAD_H

#include "library/library.h"

#define INSTEAD(type, name, parameters)                                                                                \
    static type(*real_##name) parameters;                                                                              \
    static type instead_##name parameters;                                                                             \
    __attribute__((constructor)) static void put_##name(void) /* after bind.c's */                                     \
    {                                                                                                                  \
        real_##name = cow_library.name##_;                                                                             \
        cow_library.name##_ = instead_##name;                                                                          \
    }                                                                                                                  \
    static type instead_##name parameters

#endif
