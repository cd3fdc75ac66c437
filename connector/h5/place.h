/* Where bytes of HDF5's are, at its addresses. */
#ifndef COW_PLACE_H
#define COW_PLACE_H

#include <stdint.h>

typedef struct cow_place {
    uint64_t address, size;
} cow_place;

#endif
