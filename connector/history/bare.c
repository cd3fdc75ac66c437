/* Copies that are bare: versioned datasets that H5Ocopy has made in this transaction, with neither attributes nor a comment.
 * What a snapshot of one shows is known here, so that the commit need not open it, which takes HDF5 as long as making it.
 *
 * An entry holds while the object is a dataset without attributes and nothing is noted of it (changes.c). Its address is
 * another dataset's only after H5Dcreate, which is noted, or H5Ocopy, which replaces or removes the entry.
 */
#include "history/bare.h"

#include "base/error.h"
#include "base/ids.h"
#include "history/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct bare {
    cow_shown shown; /* its type only while a call runs: */
    cow_kept_type *type;
    uint64_t extents[];
} bare;

struct cow_bare {
    cow_map copy;  /* address -> bare * */
    uint64_t last; /* the address noted last */
};

/* The lists of properties of many copies are equal: one is enough. */
static int share_dcpl(bare *copy, const cow_dataset *source, const bare *last)
{
    if (last != NULL && H5Pequal(last->shown.dcpl, source->dcpl) > 0 && H5Iinc_ref(last->shown.dcpl) >= 0)
        copy->shown.dcpl = last->shown.dcpl;
    else if ((copy->shown.dcpl = H5Pcopy(source->dcpl)) < 0)
        return cow_error_native("cannot note a copy");
    return 0;
}

static void bare_free(bare *copy)
{
    cow_kept_type_free(copy->type);
    cow_close(copy->shown.dcpl);
    free(copy);
}

cow_bare *cow_bare_new(void)
{
    return calloc(1, sizeof(cow_bare));
}

void cow_bare_free(cow_bare *all)
{
    free(all);
}

int cow_bare_note(cow_file *file, uint64_t address, const cow_dataset *source, uint64_t root)
{
    const cow_array *array = &source->array;
    unsigned rank = array->grid.rank;
    uint64_t last;
    bare *copy;

    cow_bare_forget(file, address);
    if (source->named_type || array->heap) /* types that belong to a file or to an object in it */
        return 0;
    if ((copy = malloc(sizeof *copy + 2 * rank * sizeof *copy->extents)) == NULL)
        return cow_error(COW_MEMORY, "no memory for a copy");
    *copy = (bare){
        .shown = {.root = root, .rank = rank, .extent = copy->extents, .maximum = copy->extents + rank},
        .type = cow_kept_type_share(array->type),
    };
    memcpy(copy->extents, array->extent, rank * sizeof *copy->extents);
    memcpy(copy->extents + rank, array->maximum, rank * sizeof *copy->extents);
    if (share_dcpl(copy, source,
                   cow_map_get(&file->bare->copy, file->bare->last, &last) ? (bare *)(uintptr_t)last : NULL) < 0 ||
        cow_map_put(&file->bare->copy, address, (uintptr_t)copy) < 0) {
        bare_free(copy);
        return -1;
    }
    file->bare->last = address;
    return 0;
}

const cow_shown *cow_bare_find(const cow_file *file, uint64_t address)
{
    uint64_t found;
    bare *copy;

    if (!cow_map_get(&file->bare->copy, address, &found))
        return NULL;
    copy = (bare *)(uintptr_t)found;
    copy->shown.type = cow_kept_type_id(copy->type);
    return &copy->shown;
}

void cow_bare_forget(cow_file *file, uint64_t address)
{
    uint64_t found;

    if (!cow_map_get(&file->bare->copy, address, &found))
        return;
    cow_map_remove(&file->bare->copy, address);
    bare_free((bare *)(uintptr_t)found);
}

void cow_bare_forget_all(cow_file *file)
{
    for (size_t i = 0; i < file->bare->copy.capacity; i++)
        if (file->bare->copy.entry[i].used)
            bare_free((bare *)(uintptr_t)file->bare->copy.entry[i].value);
    cow_map_free(&file->bare->copy);
}
