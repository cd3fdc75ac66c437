/* h5cow hash: what a state holds, as one number that does not depend on how it is stored. Format: docs/hash.md.
 *
 * By public calls on the state as programs see it, so that plain files and versions are looked at in the same way.
 * Objects are known by the first path that leads to them, breadth first, so that cycles and shared objects need no care
 * later.
 */
#include "base/error.h"
#include "base/ids.h"
#include "hash.h"
#include "object.h"
#include "progress.h"
#include "native/datatype.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOX ((size_t)8 << 20) /* bytes that are read at once */

const char cli_hash_help[] =
    "Usage: h5cow hash [OPTION]... FILE[@REV] [PATH]\n\n"
    "Prints a SHA-256 of what the file, or the object PATH and what is below it, holds: names, links, types, shapes,\n"
    "values, attributes, comments. It does not depend on how that is stored: not on layout, chunks, filters, byte order,\n"
    "times, orders of creation, nor on whether the file has a history. Two states with the same hash hold the same, but\n"
    "for objects in other files that references lead to; of two that have not, 'h5cow diff' says what differs, unless that\n"
    "is what it takes to be equal: -0 and 0, NaNs with other bits, a second link to an object and a copy of it. Everything\n"
    "is read. The format: hash.md in the documentation.\n\n"
    "  -l, --list   a hash of each object alone as well\n"
    "      --json   the answer as one JSON object\n"
    "  -q, --quiet  no progress bar\n"
    "  -h, --help\n\n"
    "Example: h5cow hash run.h5@3\n";

/* ---- the walk ---- */

/* An HDF5 call has just failed, or what called it, which has told why. Before any other call of HDF5. */
static int fails(const char *what)
{
    return cow_error_pending() ? -1 : cow_error_native("%s", what);
}

/* Then, for the object at PATH. CLI_FAILED. */
static int failed(const cli_hash_walk *w, const char *path)
{
    char why[400];

    return cli_fail("'%s' cannot be hashed: '%.150s': %.350s", w->argument, path, cli_reason(why, sizeof why));
}

static void note(cli_hash_walk *w, const H5O_token_t *token, H5O_type_t type, char *path)
{
    CLI_RESERVE(w->object, w->room, w->objects, 1);
    cli_map_put(&w->place, cow_address(token), w->objects);
    w->object[w->objects++] = (cli_hash_object){path, *token, type};
}

static hid_t open_object(const cli_hash_walk *w, size_t i)
{
    return H5Oopen_by_token(w->state->through, w->object[i].token);
}

/* The objects of group I that were not met before. */
static int note_members(cli_hash_walk *w, size_t i)
{
    hid_t group = open_object(w, i);
    cow_tree_names names = {0};
    H5O_info2_t info;
    uint64_t place;
    int status = group < 0 || cli_object_links(group, &names) < 0 ? fails("its links") : 0;

    for (size_t n = 0; status == 0 && n < names.count; n++) {
        const cow_tree_entry *link = &names.entry[n];
        if (link->link.type != H5L_TYPE_HARD || cow_map_get(&w->place, cow_address(&link->link.u.token), &place))
            continue;
        if (H5Oget_info_by_name3(group, link->name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
            status = fails(link->name);
        else
            note(w, &info.token, info.type, cli_child_path(w->object[i].path, link->name));
    }
    if (status < 0)
        status = failed(w, w->object[i].path);
    cow_tree_names_free(&names);
    if (group >= 0)
        H5Oclose(group);
    return status;
}

static int note_all(cli_hash_walk *w, const char *path)
{
    H5O_info2_t info, root;
    int status = 0;

    if (H5Oget_info_by_name3(w->state->through, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return fails("there is no such object"), failed(w, path);
    if (H5Oget_info3(w->state->through, &root, H5O_INFO_BASIC) < 0)
        return fails("the root"), failed(w, path);
    if (info.fileno != root.fileno) /* where its token would be of another object */
        return cow_error(COW_USAGE, "an external link leads to another file: name that one"), failed(w, path);
    note(w, &info.token, info.type, cli_strdup("/"));
    for (size_t i = 0; status == 0 && i < w->objects; i++)
        if (w->object[i].type == H5O_TYPE_GROUP)
            status = note_members(w, i);
    return status;
}

/* ---- elements ---- */

static int put_space(EVP_MD_CTX *sha, hid_t space)
{
    hsize_t dims[H5S_MAX_RANK], most[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, dims, most);
    H5S_class_t class = H5Sget_simple_extent_type(space);

    cli_sha_text(sha, class == H5S_NULL ? "null" : class == H5S_SCALAR ? "scalar" : "simple");
    if (class == H5S_SIMPLE) {
        cli_sha_number(sha, rank < 0 ? 0 : (uint64_t)rank);
        for (int d = 0; d < rank; d++) {
            cli_sha_number(sha, dims[d]);
            cli_sha_number(sha, most[d]);
        }
    }
    return rank < 0 ? -1 : 0;
}

typedef struct reading {
    cli_hash_values *v;
    hid_t dataset, space;
} reading;

static int put_box(void *context, unsigned rank, const hsize_t start[], const hsize_t count[])
{
    reading *r = context;
    cli_box box;
    int status = cli_box_read(&box, r->dataset, r->space, r->v->type, rank, start, count) < 0
                     ? fails("its elements")
                     : cli_hash_values_add(r->v, box.count, box.value);

    cli_box_close(&box, cli_hash_values_hold(r->v));
    return status;
}

/* Whole rows of chunks, where that many are read at once. */
static void round_to_chunks(hid_t dcpl, unsigned rank, const hsize_t extent[], hsize_t box[])
{
    hsize_t chunk[H5S_MAX_RANK];
    unsigned d = 0;

    if (H5Pget_layout(dcpl) != H5D_CHUNKED || H5Pget_chunk(dcpl, H5S_MAX_RANK, chunk) != (int)rank)
        return;
    while (d < rank && box[d] == 1 && extent[d] > 1)
        d++;
    if (d < rank && box[d] < extent[d] && chunk[d] < box[d])
        box[d] -= box[d] % chunk[d];
}

/* Nothing of it is stored: all of its elements read as the first one does. */
static bool all_one_value(hid_t dataset, hid_t dcpl)
{
    H5D_space_status_t allocated;

    return (H5Pget_layout(dcpl) == H5D_CHUNKED || H5Pget_layout(dcpl) == H5D_CONTIGUOUS) &&
           H5Pget_external_count(dcpl) == 0 && H5Dget_space_status(dataset, &allocated) >= 0 &&
           allocated == H5D_SPACE_STATUS_NOT_ALLOCATED;
}

static int put_one_value(const reading *r, uint64_t n)
{
    hsize_t start[H5S_MAX_RANK] = {0}, count[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_ndims(r->space), status;
    cli_box box;

    for (int d = 0; d < rank; d++)
        count[d] = 1;
    status = cli_box_read(&box, r->dataset, r->space, r->v->type, (unsigned)rank, start, count) < 0
                 ? fails("its elements")
                 : cli_hash_values_repeat(r->v, n, box.value);
    cli_box_close(&box, cli_hash_values_hold(r->v));
    return status;
}

static int put_elements(cli_hash_values *v, hid_t dataset, hid_t space, hid_t dcpl)
{
    reading r = {v, dataset, space};
    hsize_t extent[H5S_MAX_RANK], box[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    H5D_fill_value_t fill;
    uint64_t n;

    if (rank < 0 || cow_space_elements(space, &n) < 0)
        return -1;
    if (n == 0)
        return 0;
    if (all_one_value(dataset, dcpl))
        return H5Pfill_value_defined(dcpl, &fill) < 0 ? fails("its fill value")
               : fill == H5D_FILL_VALUE_UNDEFINED     ? 0 /* nothing can be read of it, natively either */
                                                      : put_one_value(&r, n);
    if (cow_box_of(space, BOX / v->part->size + 1, box) < 0)
        return -1;
    round_to_chunks(dcpl, (unsigned)rank, extent, box);
    return cow_boxes(space, box, put_box, &r);
}

static int put_dataset(cli_hash_walk *w, EVP_MD_CTX *sha, hid_t dataset, const char *path)
{
    hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset), dcpl = H5Dget_create_plist(dataset);
    cli_hash_values v = {.type = H5I_INVALID_HID};
    int status = -1, stored = 0;

    cli_sha_text(sha, "dataset");
    if (type < 0 || space < 0 || dcpl < 0 || cli_hash_type(sha, type) < 0 || put_space(sha, space) < 0 ||
        cli_hash_values_open(&v, w, sha, type) < 0)
        fails("its type or shape");
    else if (w->known != NULL && !w->refers && (stored = cli_hash_stored(w, sha, path)) != 0)
        status = stored > 0 ? 0 : fails("its index");
    else
        status = put_elements(&v, dataset, space, dcpl);
    cli_hash_values_close(&v);
    cow_close(dcpl, space, type);
    return status;
}

/* ---- objects ---- */

static int put_attribute(cli_hash_walk *w, EVP_MD_CTX *sha, hid_t object, const char *name)
{
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), type = H5I_INVALID_HID, space = H5I_INVALID_HID;
    cli_hash_values v = {.type = H5I_INVALID_HID};
    hssize_t n;
    void *value = NULL;
    int status = -1;

    cli_sha_text(sha, name);
    if (attribute < 0 || (type = H5Aget_type(attribute)) < 0 || (space = H5Aget_space(attribute)) < 0 ||
        cli_hash_type(sha, type) < 0 || put_space(sha, space) < 0 || (n = H5Sget_simple_extent_npoints(space)) < 0 ||
        cli_hash_values_open(&v, w, sha, type) < 0)
        fails(name);
    else {
        value = cli_alloc(n == 0 ? 1 : (size_t)n, v.part->size);
        if (n == 0)
            status = 0;
        else if (H5Aread(attribute, v.type, value) < 0)
            fails(name);
        else {
            status = cli_hash_values_add(&v, (uint64_t)n, value);
            if (cli_hash_values_hold(&v))
                cow_reclaim(v.type, space, H5P_DEFAULT, value);
        }
    }
    free(value);
    cli_hash_values_close(&v);
    cow_close(space, type, attribute);
    return status;
}

static int put_attributes(cli_hash_walk *w, EVP_MD_CTX *sha, hid_t object)
{
    cow_tree_names names = {0};
    int status = cli_object_attributes(object, &names) < 0 ? fails("its attributes") : 0;

    cli_sha_number(sha, names.count);
    for (size_t i = 0; status == 0 && i < names.count; i++)
        status = put_attribute(w, sha, object, names.entry[i].name);
    cow_tree_names_free(&names);
    return status;
}

static int put_comment(EVP_MD_CTX *sha, hid_t object)
{
    char *text = cli_object_comment(object);

    if (text == NULL)
        return fails("its comment");
    cli_sha_text(sha, text);
    free(text);
    return 0;
}

static int put_link(cli_hash_walk *w, EVP_MD_CTX *sha, hid_t group, const cow_tree_entry *link)
{
    uint64_t place;
    size_t size;
    char *value;

    cli_sha_text(sha, link->name);
    if (link->link.type == H5L_TYPE_HARD) {
        cli_sha_text(sha, "object");
        if (!cow_map_get(&w->place, cow_address(&link->link.u.token), &place))
            return cow_error(COW_IO, "the file changed while it was read");
        cli_sha_text(sha, w->object[place].path);
        return 0;
    }
    if ((value = cli_object_link_value(group, link, &size)) == NULL)
        return fails(link->name);
    if (link->link.type == H5L_TYPE_SOFT) {
        cli_sha_text(sha, "soft");
        cli_sha_text(sha, value);
    } else {
        cli_sha_text(sha, link->link.type == H5L_TYPE_EXTERNAL ? "external" : "other");
        cli_sha_number(sha, (uint64_t)link->link.type);
        cli_sha_bytes(sha, value, size);
    }
    free(value);
    return 0;
}

static int put_group(cli_hash_walk *w, EVP_MD_CTX *sha, hid_t group)
{
    cow_tree_names names = {0};
    int status = cli_object_links(group, &names) < 0 ? fails("its links") : 0;

    cli_sha_text(sha, "group");
    cli_sha_number(sha, names.count);
    for (size_t i = 0; status == 0 && i < names.count; i++)
        status = put_link(w, sha, group, &names.entry[i]);
    cow_tree_names_free(&names);
    return status;
}

static int hash_object(cli_hash_walk *w, size_t i, uint8_t hash[HASH])
{
    const char *path = w->object[i].path;
    bool shared = w->known != NULL && w->object[i].type != H5O_TYPE_GROUP; /* links lead elsewhere in each version */
    EVP_MD_CTX *sha;
    hid_t object;
    int status = -1;

    if (shared && cli_hash_met(w, path, hash))
        return 0;
    w->refers = false;
    sha = cli_sha_open();
    if ((object = open_object(w, i)) < 0)
        fails("it cannot be opened");
    else
        switch (w->object[i].type) {
        case H5O_TYPE_GROUP:
            status = put_group(w, sha, object);
            break;
        case H5O_TYPE_DATASET:
            status = put_dataset(w, sha, object, path);
            break;
        case H5O_TYPE_NAMED_DATATYPE:
            cli_sha_text(sha, "type");
            if ((status = cli_hash_type(sha, object)) < 0)
                fails("its type");
            break;
        case H5O_TYPE_MAP:
        case H5O_TYPE_UNKNOWN:
        case H5O_TYPE_NTYPES:
            cow_error(COW_UNSUPPORTED, "it is of a kind that is not known");
            break;
        }
    if (status == 0 && (status = put_attributes(w, sha, object)) == 0)
        status = put_comment(sha, object);
    if (status != 0)
        status = failed(w, path);
    cli_sha_close(sha, hash);
    if (status == 0 && shared && !w->refers)
        cli_hash_meet(w, path, hash);
    if (object >= 0)
        H5Oclose(object);
    return status;
}

/* ---- the verb ---- */

static const char *hexadecimal(char text[2 * HASH + 1], const uint8_t hash[HASH])
{
    for (int i = 0; i < HASH; i++)
        snprintf(text + 2 * i, 3, "%02x", hash[i]);
    return text;
}

static void tell_object(const cli_hash_object *object, const uint8_t hash[HASH], json_object *list)
{
    char text[2 * HASH + 1], *path;

    if (list != NULL) {
        json_object *item = json_object_new_object();
        json_object_object_add(item, "path", cli_json_text(object->path));
        json_object_object_add(item, "kind", cli_json_text(cli_object_kind(object->type)));
        json_object_object_add(item, "hash", cli_json_text(hexadecimal(text, hash)));
        json_object_array_add(list, item);
        return;
    }
    path = cli_escape(object->path);
    printf("%s  %s\n", hexadecimal(text, hash), path);
    free(path);
}

static int tell(const cli_hash_walk *w, const char *path, const uint8_t hash[HASH], json_object *list, bool json)
{
    char text[2 * HASH + 1], *name;
    json_object *answer;

    if (json) {
        answer = json_object_new_object();
        json_object_object_add(answer, "file", cli_json_text(w->state->file.name));
        json_object_object_add(answer, "version", w->state->name == NULL ? NULL : cli_json_text(w->state->name));
        json_object_object_add(answer, "path", cli_json_text(path));
        json_object_object_add(answer, "format", json_object_new_int(1));
        json_object_object_add(answer, "hash", cli_json_text(hexadecimal(text, hash)));
        if (list != NULL)
            json_object_object_add(answer, "objects", list);
        return cli_json(answer);
    }
    name = cli_escape(w->argument);
    printf("%s  %s", hexadecimal(text, hash), name);
    free(name);
    if (strcmp(path, "/") != 0) {
        name = cli_escape(path);
        printf(" %s", name);
        free(name);
    }
    putchar('\n');
    return cli_flush();
}

/* ALL: each object alone is told as well, in LIST or on standard output. */
static int hash_all(cli_hash_walk *w, const char *path, bool all, json_object *list, uint8_t hash[HASH])
{
    EVP_MD_CTX *sha = cli_sha_open();
    int status = note_all(w, path);

    cli_sha_text(sha, "h5cow content hash 1");
    for (size_t i = 0; status == 0 && i < w->objects; i++) {
        if (w->known == NULL)
            cli_progress("objects", i, w->objects);
        if ((status = hash_object(w, i, hash)) == 0) {
            cli_sha_text(sha, w->object[i].path);
            cli_sha_put(sha, hash, HASH);
            if (all)
                tell_object(&w->object[i], hash, list);
        }
    }
    cli_sha_close(sha, hash);
    return status;
}

static void walk_free(cli_hash_walk *w)
{
    for (size_t i = 0; i < w->objects; i++)
        free(w->object[i].path);
    free(w->object);
    cow_map_free(&w->place);
}

int cli_hash_state(const cli_state *state, const char *argument, cli_hash_known *known, uint8_t hash[HASH])
{
    cli_hash_walk w = {.state = state, .argument = argument, .known = known};
    int status = hash_all(&w, "/", false, NULL, hash);

    walk_free(&w);
    return status;
}

static int hash_and_tell(const cli_state *state, const char *argument, const char *path, bool all, bool json)
{
    cli_hash_walk w = {.state = state, .argument = argument};
    uint8_t hash[HASH];
    json_object *list = all && json ? json_object_new_array() : NULL;
    int status = hash_all(&w, path, all, list, hash);

    cli_progress_end();
    if (status == 0)
        status = tell(&w, path, hash, list, json);
    else
        json_object_put(list);
    walk_free(&w);
    return status;
}

int cli_hash(int argc, char **argv)
{
    static const struct option options[] = {{"list", no_argument, NULL, 'l'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    cli_state state;
    bool all = false, json = false;
    const char *path;
    int status;

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":lqh", options, NULL)) != -1;)
        switch (c) {
        case 'l':
            all = true;
            break;
        case 'j':
            json = true;
            cli_progress_off();
            break;
        case 'q':
            cli_progress_off();
            break;
        case 'h':
            fputs(cli_hash_help, stdout);
            return cli_flush();
        default:
            return c == ':' ? cli_no_value("hash", argv) : cli_no_option("hash", argv);
        }
    if ((status = cli_state_words("hash", argc, argv, &path)) != 0)
        return status;
    cli_hdf5_start();
    if (cli_state_open(&state, "hash", argv[optind], NULL) != 0)
        return CLI_FAILED;
    status = hash_and_tell(&state, argv[optind], path, all, json);
    cli_state_close(&state);
    return status;
}
