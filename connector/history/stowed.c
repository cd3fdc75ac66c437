/* Contract: stowed.h. */
#include "history/stowed.h"

#include "base/error.h"
#include "history/internal.h"
#include "io/chunk_cache.h"

#include <stdlib.h>
#include <string.h>

/* What an open dataset takes of the memory that the option gives, without its chunks. */
#define BYTES_EACH ((size_t)32 << 10)

struct cow_stowed {
    cow_map head;   /* address -> cow_stowed_head * */
    size_t look_at; /* so many datasets are open when it is next looked how many wait */
    bool off;       /* for this transaction: an object may have gone */
    bool busy;
};

cow_stowed *cow_stowed_new(void)
{
    return calloc(1, sizeof(cow_stowed));
}

static void forget_all(cow_stowed *stowed)
{
    for (size_t i = 0; i < stowed->head.capacity; i++)
        if (stowed->head.entry[i].used)
            free((void *)(uintptr_t)stowed->head.entry[i].value);
    cow_map_free(&stowed->head);
}

void cow_stowed_free(cow_stowed *stowed)
{
    if (stowed != NULL)
        forget_all(stowed);
    free(stowed);
}

static cow_stowed_head *stowed_at(const cow_file *file, uint64_t address)
{
    uint64_t value;

    return cow_map_get(&file->stowed->head, address, &value) ? (cow_stowed_head *)(uintptr_t)value : NULL;
}

cow_stowed_head cow_dataset_head(const cow_dataset *dataset)
{
    return (cow_stowed_head){dataset->id, dataset->root, dataset->view, dataset->whole_view};
}

/* The head at ADDRESS that is in use, committed by this transaction, and that HDF5 has not opened for us. */
static cow_dataset *unheld(const cow_file *file, uint64_t address)
{
    cow_dataset *dataset = cow_datasets_find(file, address);

    return dataset != NULL && dataset->root_changed && dataset->native == NULL && !dataset->snapshot ? dataset : NULL;
}

bool cow_stowed_find(const cow_file *file, uint64_t address, cow_stowed_head *head)
{
    const cow_stowed_head *found = stowed_at(file, address);
    const cow_dataset *dataset = found == NULL ? unheld(file, address) : NULL;

    if (head != NULL && (found != NULL || dataset != NULL))
        *head = found != NULL ? *found : cow_dataset_head(dataset);
    return found != NULL || dataset != NULL;
}

void cow_stowed_take(cow_dataset *dataset)
{
    cow_stowed_head *found = stowed_at(dataset->file, dataset->address);

    if (found == NULL)
        return;
    dataset->root_changed = true;
    dataset->whole_view = found->whole;
    dataset->view = found->view;
    cow_map_remove(&dataset->file->stowed->head, dataset->address);
    free(found);
}

void cow_stowed_used(cow_file *file, uint64_t address)
{
    cow_stowed_head *found = stowed_at(file, address);
    cow_dataset *dataset = found == NULL ? unheld(file, address) : NULL;

    if (found != NULL)
        found->whole = false;
    if (dataset != NULL)
        dataset->whole_view = false;
}

void cow_stowed_end(cow_file *file, bool missed)
{
    cow_stowed *s = file->stowed;

    if (!missed)
        forget_all(s);
    s->off = false;
    s->look_at = 0;
}

/* ---- stowing ---- */

/* Can it be done without anybody noticing? */
static bool waits(cow_dataset *dataset)
{
    return dataset->references == 0 && !dataset->snapshot && !dataset->dead && !dataset->committing &&
           (dataset->root_changed || cow_dataset_dirty(dataset)) && !dataset->array.refused &&
           cow_dataset_unlinked(dataset) == 0;
}

static size_t list_waiting(cow_file *file, cow_dataset *list[])
{
    cow_dataset *dataset;
    size_t n = 0;

    for (size_t at = 0; (dataset = cow_datasets_next(file, &at)) != NULL;)
        if (waits(dataset))
            list[n++] = dataset;
    return n;
}

static void put_away(cow_file *file, cow_dataset *list[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cow_stowed_head *head =
            cow_dataset_dirty(list[i]) || list[i]->root == COW_NO_NODE ? NULL : malloc(sizeof *head);

        if (head == NULL)
            continue;
        *head = cow_dataset_head(list[i]);
        if (cow_map_put(&file->stowed->head, list[i]->address, (uintptr_t)head) == 0)
            cow_dataset_free(list[i]);
        else
            free(head);
    }
}

void cow_stowed_back(cow_file *file, uint64_t address)
{
    cow_dataset *dataset = cow_datasets_find(file, address);

    if (dataset != NULL && !file->stowed->off && waits(dataset))
        put_away(file, &dataset, 1);
}

static bool possible(const cow_file *file)
{
    return cow_file_state_of(file) == COW_FILE_OPEN && cow_file_ours(file) && cow_file_writable(file) &&
           file->laid_out && !cow_file_refusing(file) && !cow_chunk_cache_busy(file->cache) &&
           (file->journal == NULL || cow_journal_failure(file->journal) == NULL);
}

void cow_file_stow(cow_file *file)
{
    cow_stowed *s = file->stowed;
    size_t limit = file->options->memory_bytes / BYTES_EACH, open = cow_datasets_count(file), n;
    cow_error_held *held;
    cow_dataset **list;

    if (s->busy || s->off || open <= limit || open < s->look_at || !possible(file))
        return;
    s->busy = true;
    held = cow_error_hold();
    if ((list = malloc(open * sizeof *list)) != NULL) {
        n = list_waiting(file, list);
        if (n > limit / 2) {
            int status = cow_commit_some(file, list, n);

            if (status < 0)
                cow_file_fail(file);
            else if (status > 0) /* the commit meets it again */
                s->off = true;
            else
                put_away(file, list, n);
        }
        s->look_at = cow_datasets_count(file) + limit / 2 + 1;
        free(list);
    }
    cow_error_clear();
    cow_error_put_back(held);
    s->busy = false;
}

/* ---- opening again ---- */

static int open_again(cow_file *file, uint64_t address)
{
    H5O_token_t token = cow_token(address);
    cow_dataset *dataset = NULL;
    cow_loc object;
    int status;

    if (cow_native_open_token(file->loc, &token, &object) < 0)
        return -1;
    status = object.type == H5I_DATASET ? cow_dataset_attach(file, object.object, false, &dataset) : 0;
    if (cow_native_close(object) < 0)
        status = -1;
    if (dataset != NULL)
        cow_dataset_release(dataset);
    return status;
}

int cow_file_unstow(cow_file *file, const H5O_info2_t *going)
{
    cow_stowed *s = file->stowed;
    uint64_t *address;
    size_t count = 0;
    int status = 0;

    if (s->head.count == 0)
        return 0;
    if (going != NULL && going->type != H5O_TYPE_GROUP)
        return cow_stowed_find(file, cow_address(&going->token), NULL) ? open_again(file, cow_address(&going->token))
                                                                       : 0;
    s->off = true;
    if ((address = malloc(s->head.count * sizeof *address)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory to open its datasets", file->name);
    for (size_t i = 0; i < s->head.capacity; i++)
        if (s->head.entry[i].used)
            address[count++] = s->head.entry[i].key;
    for (size_t i = 0; i < count && status == 0; i++)
        status = open_again(file, address[i]);
    free(address);
    return status;
}
