/* Attributes and comment of an object: comparing them with those of a snapshot, and making them as those are. */
#ifndef COW_HISTORY_HEADER_H
#define COW_HISTORY_HEADER_H

#include "native/native.h"

/* 1: OBJECT has not the attributes, with ORDER in their order, or not the comment of OTHER; 0, -1. SAME is asked of named types,
 * that of OBJECT first. */
int cow_header_differs(cow_loc object, cow_loc other, bool order, cow_named_types_same *same, void *context);
/* OBJECT gets the attributes and the comment of OTHER. TYPE_OF: cow_native_attribute_copy. What does not differ is not touched, but with
 * ORDER, where all are made anew. -1: it may be half done. */
int cow_header_restore(cow_loc object, cow_loc other, bool order, cow_named_types_same *same, cow_type_of *type_of,
                       void *context);

#endif
