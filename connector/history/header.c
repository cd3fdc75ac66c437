/* Attributes and comment of an object, beside those of another one. */
#include "history/header.h"

#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

/* ---- comparing ---- */

typedef struct comparison {
    cow_loc object, other;
    cow_named_types_same *same;
    void *context;
    int64_t *number; /* creation order, one of the object, one of the other, by turns */
    size_t count;
} comparison;

static int attribute_differs(void *context, const char *name)
{
    comparison *c = context;
    int64_t *number = c->number + c->count;
    int equal = cow_native_attribute_equal(c->object, c->other, name, c->same, c->context);

    if (equal <= 0)
        return equal < 0 ? -1 : 1;
    c->count += 2;
    return cow_native_attribute_number(c->object, name, number) < 0 ||
                   cow_native_attribute_number(c->other, name, number + 1) < 0
               ? -1
               : 0;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The numbers themselves differ: a snapshot's attributes were all made at once. */
static bool order_differs(comparison *c)
{
    if (c->count > 0)
        qsort(c->number, c->count / 2, 2 * sizeof *c->number, by_number);
    for (size_t i = 3; i < c->count; i += 2)
        if (c->number[i] < c->number[i - 2])
            return true;
    return false;
}

static int comment_differs(cow_loc object, cow_loc other)
{
    char *a = cow_native_comment(object, NULL), *b = cow_native_comment(other, NULL);
    int differs = a == NULL || b == NULL ? -1 : strcmp(a, b) != 0;

    free(a);
    free(b);
    return differs;
}

int cow_header_differs(cow_loc object, cow_loc other, bool order, cow_named_types_same *same, void *context)
{
    comparison c = {.object = object, .other = other, .same = same, .context = context};
    H5O_info2_t a, b;
    int differs;

    if (cow_native_info(object, NULL, H5O_INFO_NUM_ATTRS, &a) < 0 ||
        cow_native_info(other, NULL, H5O_INFO_NUM_ATTRS, &b) < 0)
        return -1;
    if (a.num_attrs != b.num_attrs)
        return 1;
    if (a.num_attrs > 0 && (c.number = malloc(2 * a.num_attrs * sizeof *c.number)) == NULL)
        return cow_error(COW_MEMORY, "no memory to compare %llu attributes", (unsigned long long)a.num_attrs);
    if ((differs = cow_native_attributes(object, false, attribute_differs, &c)) == 0 && order)
        differs = order_differs(&c);
    free(c.number);
    return differs != 0 ? differs : comment_differs(object, other);
}

/* ---- restoring ---- */

typedef struct restoring {
    comparison pair;
    cow_type_of *type_of;
    bool all; /* none of them stays */
    char **gone;
    size_t count, room;
} restoring;

/* Attributes are not deleted while they are listed. */
static int note_gone(void *context, const char *name)
{
    restoring *r = context;
    int there = r->all ? 0 : cow_native_attribute_exists(r->pair.other, name);

    if (there > 0)
        there = cow_native_attribute_equal(r->pair.object, r->pair.other, name, r->pair.same, r->pair.context);
    if (there != 0)
        return there < 0 ? -1 : 0;
    if (COW_RESERVE(r->gone, r->room, r->count, 1) < 0 || (r->gone[r->count] = strdup(name)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the list of attributes");
    r->count++;
    return 0;
}

/* An attribute may be of the very type that it belongs to, and count as a use of it. With its last one HDF5 1.14.5 removes the message
 * with the reference count from the header in which it is just removing the attribute, and breaks it; so there is one reference more
 * meanwhile. */
static int delete_gone(restoring *r)
{
    const cow_loc object = r->pair.object;
    int status = 0;

    if (object.type == H5I_DATATYPE && cow_native_change_references(object, 1) < 0)
        return -1;
    for (size_t i = 0; status == 0 && i < r->count; i++)
        status = cow_native_attribute_delete(object, r->gone[i]);
    return object.type == H5I_DATATYPE && cow_native_change_references(object, -1) < 0 ? -1 : status;
}

static int make_missing(void *context, const char *name)
{
    restoring *r = context;
    int there = cow_native_attribute_exists(r->pair.object, name);

    return there != 0
               ? (there < 0 ? -1 : 0)
               : cow_native_attribute_copy(r->pair.other, name, r->pair.object, r->type_of, NULL, r->pair.context);
}

static int restore_comment(cow_loc object, cow_loc other)
{
    int differs = comment_differs(object, other);
    char *comment;
    int status;

    if (differs <= 0)
        return differs;
    if ((comment = cow_native_comment(other, NULL)) == NULL)
        return -1;
    status = cow_native_comment_set(object, *comment == '\0' ? NULL : comment);
    free(comment);
    return status;
}

int cow_header_restore(cow_loc object, cow_loc other, bool order, cow_named_types_same *same, cow_type_of *type_of,
                       void *context)
{
    restoring r = {.pair = {.object = object, .other = other, .same = same, .context = context}, .type_of = type_of};
    int status;

    r.all = order;
    status = cow_native_attributes(object, false, note_gone, &r);
    if (status == 0 && r.count > 0)
        status = delete_gone(&r);
    for (size_t i = 0; i < r.count; i++)
        free(r.gone[i]);
    free(r.gone);
    if (status < 0 || cow_native_attributes(other, true, make_missing, &r) < 0)
        return -1;
    return restore_comment(object, other);
}
