/* Arrays that grow: a pointer, and for how many elements there is room; both zero to start, free() to end. The owner counts
 * the elements. */
#ifndef COW_VECTOR_H
#define COW_VECTOR_H

#include <stddef.h>

/* Make room for MORE elements behind the first COUNT: COW_RESERVE(list->entry, list->room, list->count, 1). The first two
 * are changed when there is too little room. -1 when memory or a size_t runs out, without an error on the stack: the caller
 * knows what was to be kept. Then, and for elements that there is room for, nothing changes. New room is not cleared. */
#define COW_RESERVE(array, room, count, more) cow_vector_reserve(&(array), &(room), (count), (more), sizeof *(array))

/* The same with the address of the pointer, for elements of SIZE > 0 bytes: rows of a table, coordinates of each rank. */
int cow_vector_reserve(void *array, size_t *room, size_t count, size_t more, size_t size);

#endif
