/* References of all kinds, as values: to objects and regions as HDF5 1.8 and as 1.12 write them, to attributes. */
#ifndef DIFFERENTIAL_REFERENCES_H
#define DIFFERENTIAL_REFERENCES_H

#include "run.h"

/* The reference of either side, of the kind that TYPE says: to the same target, or null, or, of the old kinds, a pattern
 * of bytes that leads nowhere. Between begin and end a few targets are taken again and again. */
void begin_references(void);
void random_reference(hid_t type, unsigned char *const value[2]);
void end_references(void);

#endif
