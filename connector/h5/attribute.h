/* Attributes of one unsigned integer, from an object header and into a new one. */
#ifndef COW_ATTRIBUTE_H
#define COW_ATTRIBUTE_H

#include "h5/header.h"

/* The value of the attribute NAME of the object at ADDRESS, if it has SIZE bytes: 1. 0: there is no such one, or the header is not known here; -1: recorded. */
int cow_attribute_number(const cow_source *source, uint64_t address, const char *name, unsigned size, uint64_t *value);

#define COW_NEW_NUMBER 38 /* bytes of such a message, at most, without the name */

/* Its message at P. Returns its end. */
uint8_t *cow_new_number(uint8_t *p, const char *name, unsigned size, uint64_t value);

#endif
