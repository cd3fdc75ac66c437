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
    cow_shown shown;
    uint64_t extents[];
} bare;

struct cow_bare {
    cow_map copy;  /* address -> bare * */
    uint64_t last; /* the address noted last */
};

/* The lists of properties of many copies are equal: one is enough. */
static int share_ids(cow_shown *shown, const cow_dataset *source, const cow_shown *last)
{
    if (last != NULL && H5Pequal(last->dcpl, source->dcpl) > 0 && H5Tequal(last->type, source->array.type) > 0) {
        *shown = (cow_shown){.type = last->type, .dcpl = last->dcpl};
        if (H5Iinc_ref(shown->type) < 0)
            return cow_error_native("cannot note a copy");
        if (H5Iinc_ref(shown->dcpl) >= 0)
            return 0;
        H5Tclose(shown->type);
        return cow_error_native("cannot note a copy");
    }
    shown->type = H5Tcopy(source->array.type);
    shown->dcpl = H5Pcopy(source->dcpl);
    if (shown->type >= 0 && shown->dcpl >= 0)
        return 0;
    cow_close(shown->dcpl, shown->type);
    return cow_error_native("cannot note a copy");
}

static void bare_free(bare *copy)
{
    cow_close(copy->shown.dcpl, copy->shown.type);
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
    if (share_ids(&copy->shown, source,
                  cow_map_get(&file->bare->copy, file->bare->last, &last) ? &((bare *)(uintptr_t)last)->shown : NULL) <
        0) {
        free(copy);
        return -1;
    }
    copy->shown.root = root;
    copy->shown.rank = rank;
    copy->shown.extent = memcpy(copy->extents, array->extent, rank * sizeof *copy->extents);
    copy->shown.maximum = memcpy(copy->extents + rank, array->maximum, rank * sizeof *copy->extents);
    if (cow_map_put(&file->bare->copy, address, (uintptr_t)copy) < 0) {
        bare_free(copy);
        return -1;
    }
    file->bare->last = address;
    return 0;
}

const cow_shown *cow_bare_find(const cow_file *file, uint64_t address)
{
    uint64_t found;

    return cow_map_get(&file->bare->copy, address, &found) ? &((bare *)(uintptr_t)found)->shown : NULL;
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
