/* Where tables and pools are, from the bytes of the file: see still.h. */
#include "layout/internal.h"

#include "base/bytes.h"
#include "base/error.h"
#include "h5/attribute.h"
#include "h5/links.h"
#include "h5/superblock.h"
#include "journal/driver.h"

#include <stdlib.h>
#include <string.h>

/* Of the states that this process has read last: programs open one file over and over. What is at these places is looked at as ever. */
static struct {
    struct {
        cow_journal_stamp stamp;
        cow_places place;
    } last[8];
    unsigned next;
} seen;

/* Where PATH leads, whose last link is in the GROUP at that address. HDF5 looks where the group has so many links that they are in a heap, but
 * not in a file that is written: it may know of an object there whose bytes are not written yet. */
bool cow_still_find(const cow_layout_still *s, uint64_t group, const char *path, uint64_t *address)
{
    const char *const names[] = {strrchr(path, '/') + 1};
    H5L_info2_t info;
    uint8_t token[8];

    if (cow_links_find(cow_still_source(s->still), group, false, 1, names, address) > 0)
        return *address != UINT64_MAX;
    if (s->settled || cow_native_link_info(s->file, path, &info) < 0) {
        cow_error_clear();
        return false;
    }
    memcpy(token, &info.u.token, sizeof token);
    *address = cow_get64(token);
    return info.type == H5L_TYPE_HARD;
}

/* The address of /_versioned_data. */
static bool find_group(const cow_layout_still *s, uint64_t *group)
{
    uint8_t superblock[COW_SUPERBLOCK_MAX];

    return cow_source_bring(cow_still_source(s->still), 0, superblock, sizeof superblock) > 0 &&
           cow_superblock_wide(superblock) && cow_still_find(s, cow_superblock_root(superblock), COW_ROOT, group);
}

/* STILL, which may be NULL, is taken over. */
static cow_layout_still *make(cow_loc file, cow_still *still)
{
    cow_layout_still *s = still == NULL ? NULL : malloc(sizeof *s);

    if (s == NULL) {
        cow_still_close(still);
        return NULL;
    }
    *s = (cow_layout_still){.file = file, .still = still};
    return s;
}

/* Where all that is; and what is there, at first, is what the bytes say. */
static bool find_places(cow_layout_still *s)
{
    static const char *const names[COW_PLACES] = {"datasets", "snapshots",  "snapshot_rows", "index",
                                                  "log",      "slots",      "hashes",        "raw",
                                                  "free",     "incomplete", "tags"};

    s->place.all = find_group(s, &s->place.group) &&
                   cow_links_find(cow_still_source(s->still), s->place.group, true, COW_PLACES, names, s->place.at) > 0;
    if (s->place.all)
        return true;
    cow_error_clear();
    for (size_t i = 0; i < COW_PLACES; i++)
        s->place.at[i] = UINT64_MAX;
    return false;
}

static const cow_places *find_known(cow_journal *journal)
{
    cow_journal_stamp stamp;

    if (journal == NULL)
        return NULL;
    cow_journal_stamp_of(journal, &stamp);
    for (size_t i = 0; i < sizeof seen.last / sizeof *seen.last; i++)
        if (seen.last[i].place.format != 0 && memcmp(&seen.last[i].stamp, &stamp, sizeof stamp) == 0)
            return &seen.last[i].place;
    return NULL;
}

static void make_known(cow_journal *journal, const cow_places *place)
{
    cow_journal_stamp_of(journal, &seen.last[seen.next].stamp);
    seen.last[seen.next].place = *place;
    seen.next = (seen.next + 1) % (sizeof seen.last / sizeof *seen.last);
}

cow_layout_still *cow_layout_still_open(cow_loc file, cow_journal *journal)
{
    cow_layout_still *s = make(file, cow_still_open(journal));
    const cow_places *place = s == NULL ? NULL : find_known(journal);

    if (place != NULL)
        s->place = *place;
    else if (s != NULL && !find_places(s)) {
        cow_layout_still_close(s);
        return NULL;
    } else if (s != NULL && cow_layout_still_format(s, &s->place.format))
        make_known(journal, &s->place);
    return s;
}

cow_layout_still *cow_layout_still_open_written(cow_loc file, cow_journal *journal, unsigned long fileno)
{
    cow_layout_still *s = make(file, cow_still_open_written(journal));

    if (s != NULL) {
        s->journal = journal;
        s->fileno = fileno;
        find_places(s);
    }
    return s;
}

void cow_layout_still_settle(cow_layout_still *still)
{
    if (still != NULL)
        still->settled = true;
}

/* Do the bytes at ADDRESS, a table's that was committed, say what HDF5 has? It reads the header of what it deletes, too. */
bool cow_still_current(const cow_layout_still *s, uint64_t address)
{
    return s->journal == NULL || !cow_journal_driver_met(s->fileno, address);
}

void cow_layout_still_close(cow_layout_still *still)
{
    if (still == NULL)
        return;
    cow_still_close(still->still);
    free(still);
}

const cow_still *cow_layout_still_bytes(const cow_layout_still *still)
{
    return still->still;
}

static bool find_number(const cow_layout_still *still, const char *name, unsigned size, uint64_t *value)
{
    return cow_attribute_number(cow_still_source(still->still), still->place.group, name, size, value) > 0;
}

bool cow_layout_still_format(const cow_layout_still *still, uint32_t *format)
{
    uint64_t value = still->place.format;

    if (value == 0 && !find_number(still, COW_FORMAT_NAME, 4, &value))
        value = 0;
    *format = (uint32_t)value;
    return value != 0;
}

int cow_layout_told_number(const cow_layout_still *still, cow_loc file, const char *name, unsigned size,
                           uint64_t *value)
{
    uint8_t bytes[sizeof *value];
    int found;

    if (still != NULL && find_number(still, name, size, value))
        return 1;
    if ((found = cow_layout_number(file, name, size == 1 ? H5T_STD_U8LE : H5T_STD_U64LE, bytes)) > 0)
        *value = cow_get_bytes(bytes, size);
    return found;
}

bool cow_layout_still_lacks_tag(const cow_layout_still *still, const char *name)
{
    const uint64_t tags = still == NULL ? UINT64_MAX : still->place.at[COW_PLACE_TAGS];

    return tags != UINT64_MAX && cow_still_current(still, tags) &&
           cow_links_lack(cow_still_source(still->still), tags, name);
}

int cow_layout_parts(const cow_layout_still *still, cow_loc file, uint64_t *parts)
{
    int found = cow_layout_told_number(still, file, COW_PARTS, sizeof *parts, parts);

    if (found < 0)
        return -1;
    if (found == 0)
        *parts = COW_NO_PARTS;
    else if (*parts % COW_VIEWS_PART != 0)
        return cow_error(COW_CORRUPT, "the attribute '%s' is %llu, which is not where a part begins; try: h5cow verify",
                         COW_PARTS, (unsigned long long)*parts);
    return 0;
}

bool cow_layout_still_has(cow_loc file, cow_journal *journal)
{
    cow_layout_still s = {.file = file, .still = cow_still_open(journal)};
    uint32_t format;
    bool has;

    if (s.still == NULL) /* a history that was committed stays */
        s.still = cow_still_open_written(journal);
    has = s.still != NULL &&
          (find_known(journal) != NULL || (find_group(&s, &s.place.group) && cow_layout_still_format(&s, &format)));
    cow_error_clear();
    cow_still_close(s.still);
    return has;
}

/* HDF5 takes the access properties of what is opened by its place from the call of the program that it is in. */
static void *open_index(const cow_layout_still *still, cow_loc file, uint64_t *address)
{
    H5O_token_t token;
    cow_apart apart;
    cow_loc object;
    int status;

    if ((*address = still->place.at[COW_PLACE_INDEX]) == UINT64_MAX || cow_native_apart(&apart) < 0)
        return NULL;
    token = cow_token(*address);
    status = cow_native_open_token(file, &token, &object);
    cow_native_together(&apart);
    if (status < 0 || object.type == H5I_DATASET)
        return status < 0 ? NULL : object.object;
    cow_native_close(object);
    return NULL;
}

void *cow_layout_stand_in(const cow_layout_still *still, cow_loc file, uint64_t *address)
{
    H5O_info2_t info;
    void *pools;

    if (still != NULL)
        return open_index(still, file, address);
    if ((pools = cow_native_dataset_open(file, COW_PATH_POOLS)) == NULL)
        return NULL;
    if (cow_native_info((cow_loc){pools, H5I_DATASET}, NULL, H5O_INFO_BASIC, &info) == 0) {
        *address = cow_address(&info.token);
        return pools;
    }
    cow_native_dataset_close(pools);
    return NULL;
}

bool cow_layout_still_raw(const cow_layout_still *still, uint32_t pool, cow_dataset_header *raw)
{
    char path[COW_PATH_MAX];
    uint64_t address;

    cow_layout_raw_path(path, pool);
    return cow_still_find(still, still->place.at[COW_PLACE_RAW], path, &address) &&
           cow_dataset_header_read(cow_still_source(still->still), address, raw) > 0 &&
           raw->layout == COW_DATASET_HEADER_CHUNKED;
}

int cow_layout_still_shape(const cow_dataset_header *d, size_t element_size, cow_raw *raw)
{
    *raw = (cow_raw){.rank = d->rank, .element_size = element_size, .chunk_bytes = element_size};
    if (d->rank < 1 || d->rank > COW_MAX_RANK || d->element_size != element_size)
        return -1;
    for (unsigned k = 0; k < d->rank; k++) {
        raw->chunk[k] = d->chunk[k];
        if ((k == 0 ? d->maximum[k] != UINT64_MAX : d->extent[k] != d->chunk[k]) ||
            __builtin_mul_overflow(raw->chunk_bytes, d->chunk[k], &raw->chunk_bytes))
            return -1;
    }
    raw->room = d->extent[0] / d->chunk[0];
    return 0;
}
