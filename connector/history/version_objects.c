/* Objects of a version by their tokens. In a version an object bears the token of the head's object that it is a
 * snapshot of. Nothing else would do: references in data hold such tokens, of region references even where no connector
 * can change them (in HDF5's heap), and programs compare what a reference holds with what an object says of itself.
 *
 * Head addresses that a version knows are never used again, so a token is that of one object for ever; one that is not
 * known in a version leads nowhere there.
 */
#include "history/internal.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* A version's objects by their tokens, both ways. */
struct cow_version_objects {
    cow_version_objects *next;
    char *path;             /* of the version */
    uint64_t row;           /* in the log */
    uint64_t generation;    /* of the snapshots when the maps were made */
    cow_map snapshot, head; /* of a head address; of a snapshot's */
};

static int find_in_log(cow_file *file, const char *version_path, uint64_t *row)
{
    const char *name = version_path + strlen(COW_PATH_VERSIONS "/");

    if (cow_file_open_all(file) < 0)
        return -1;
    for (*row = 0; *row < cow_versions_known(file); ++*row) {
        cow_layout_log_row entry = {0};
        int same, status = cow_layout_log_read(file->loc, *row, &entry);

        same = status == 0 && entry.open != COW_LOG_FORGOTTEN && entry.name != NULL && strcmp(entry.name, name) == 0;
        cow_layout_log_row_free(&entry);
        if (status < 0)
            return -1;
        if (same)
            return 0;
    }
    return cow_error(COW_CORRUPT, "%s: version '%s' is not in the log; try: h5cow verify", file->name, name);
}

/* Each version has a root group of its own, so its snapshot tells the version: the log's texts need not be read. */
static int find_row(cow_file *file, const char *version_path, uint64_t *row)
{
    const cow_layout_snapshot_row *made;
    H5O_info2_t info;
    cow_loc root;
    int status;

    if (cow_snapshots_load(file) < 0 || cow_native_open(file->loc, version_path, &root) < 0)
        return -1;
    status = cow_native_info(root, NULL, H5O_INFO_BASIC, &info);
    if (cow_native_close(root) < 0 || status < 0)
        return -1;
    if ((made = cow_snapshots_made(file, cow_address(&info.token))) == NULL)
        return cow_snapshots_load(file) < 0 ? -1 : find_in_log(file, version_path, row);
    *row = made->version;
    return 0;
}

/* Rows are in the order of versions, so the last one that counts stands for the object. */
static int fill(cow_file *file, cow_version_objects *objects)
{
    cow_map_free(&objects->snapshot);
    cow_map_free(&objects->head);
    if (cow_snapshots_load_all(file) < 0)
        return -1;
    for (size_t i = 0; i < cow_snapshots_count(file); i++) {
        const cow_layout_snapshot_row *row = cow_snapshots_row(file, i);
        if (row->version <= objects->row && cow_map_put(&objects->snapshot, row->head, row->snapshot) < 0)
            return -1;
    }
    for (size_t i = 0; i < objects->snapshot.capacity; i++) {
        const cow_map_entry *e = &objects->snapshot.entry[i];
        if (e->used && e->value != UINT64_MAX && cow_map_put(&objects->head, e->value, e->key) < 0)
            return -1;
    }
    objects->generation = cow_snapshots_generation(file);
    return 0;
}

/* MAPS: they are wanted as well. */
static cow_version_objects *objects_of(cow_file *file, const char *version_path, bool maps)
{
    cow_version_objects *objects = file->version_objects;

    while (objects != NULL && strcmp(objects->path, version_path) != 0)
        objects = objects->next;
    if (objects == NULL) {
        uint64_t row;

        if (find_row(file, version_path, &row) < 0)
            return NULL;
        if ((objects = calloc(1, sizeof *objects)) == NULL || (objects->path = strdup(version_path)) == NULL) {
            cow_error(COW_MEMORY, "%s: no memory for the objects of a version", file->name);
            free(objects);
            return NULL;
        }
        objects->row = row;
        objects->generation = UINT64_MAX;
        objects->next = file->version_objects;
        file->version_objects = objects;
    }
    if (maps && (cow_snapshots_load(file) < 0 ||
                 (objects->generation != cow_snapshots_generation(file) && fill(file, objects) < 0)))
        return NULL;
    return objects;
}

void cow_version_objects_free(cow_version_objects *objects)
{
    while (objects != NULL) {
        cow_version_objects *next = objects->next;

        cow_map_free(&objects->snapshot);
        cow_map_free(&objects->head);
        free(objects->path);
        free(objects);
        objects = next;
    }
}

int cow_snapshot_of(cow_file *file, const char *version_path, const H5O_token_t *head, H5O_token_t *snapshot)
{
    cow_version_objects *objects = objects_of(file, version_path, true);
    uint64_t address;

    if (objects == NULL)
        return -1;
    if (!cow_map_get(&objects->snapshot, cow_address(head), &address) || address == UINT64_MAX)
        return cow_error(COW_NOT_FOUND,
                         "%s: version '%s' has no object that was at address %llu: deleted or made later", file->name,
                         strrchr(version_path, '/') + 1, (unsigned long long)cow_address(head));
    *snapshot = cow_token(address);
    return 0;
}

int cow_head_of(cow_file *file, const char *version_path, const H5O_token_t *snapshot, H5O_token_t *head)
{
    cow_version_objects *objects = objects_of(file, version_path, true);
    uint64_t address;

    if (objects == NULL)
        return -1;
    *head = cow_map_get(&objects->head, cow_address(snapshot), &address) ? cow_token(address) : *snapshot;
    return 0;
}

int cow_version_row(cow_file *file, const char *version_path, uint64_t *row)
{
    cow_version_objects *objects = objects_of(file, version_path, false);

    if (objects == NULL)
        return -1;
    *row = objects->row;
    return 0;
}
