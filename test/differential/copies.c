/* H5Ocopy: within the file, from and to other files, out of versions. */
#include "copies.h"

#include "compare.h"
#include "datasets.h"
#include "life.h"
#include "operations.h"
#include "places.h"
#include "properties.h"
#include "../results.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Between files HDF5 clears references, but only those that are not inside something else. Named types are copied along, with their
 * attributes. */
struct copying {
    bool between_files, found, refers;
    H5O_token_t along[100]; /* the named types that were looked at */
    size_t types;
};

static bool uncopyable(hid_t type, bool chunked, const struct copying *c)
{
    H5T_class_t cls = H5Tget_class(type);
    if ((cls == H5T_COMPOUND || cls == H5T_ARRAY) && type_contains(type, H5T_VLEN))
        return true;
    if (!type_contains(type, H5T_REFERENCE))
        return false;
    return chunked || c->between_files || cls == H5T_VLEN || type_nests_references(type) ||
           H5Tequal(type, H5T_STD_REF) > 0;
}

static void look_along(hid_t type, struct copying *c);

static herr_t find_uncopyable_attribute(hid_t at, const char *name, const H5A_info_t *info, void *data)
{
    struct copying *c = data;
    hid_t a = H5Aopen(at, name, H5P_DEFAULT), type = H5Aget_type(a);
    (void)info;
    c->found = c->found || uncopyable(type, false, c);
    c->refers = c->refers || type_contains(type, H5T_REFERENCE);
    look_along(type, c);
    H5Tclose(type);
    H5Aclose(a);
    return 0;
}

static void look_along(hid_t type, struct copying *c)
{
    H5O_info2_t info;
    if (H5Tcommitted(type) <= 0 || H5Oget_info3(type, &info, H5O_INFO_BASIC) < 0)
        return;
    for (size_t i = 0; i < c->types; i++)
        if (memcmp(&c->along[i], &info.token, sizeof info.token) == 0)
            return;
    if (c->types == sizeof c->along / sizeof *c->along) {
        c->found = true;
        return;
    }
    c->along[c->types++] = info.token;
    H5Aiterate2(type, H5_INDEX_NAME, H5_ITER_INC, NULL, find_uncopyable_attribute, c);
}

/* D37 */
static bool is_resized_outside(hid_t set, hid_t dcpl, hid_t type)
{
    hid_t space = H5Dget_space(set);
    hsize_t size = (hsize_t)H5Sget_simple_extent_npoints(space) * H5Tget_size(type);
    H5Sclose(space);
    return H5Pget_external_count(dcpl) > 0 && H5Dget_storage_size(set) != size;
}

/* D58. A string's element is smaller in memory. */
static bool is_larger_in_memory(hid_t set, hid_t dcpl, hid_t type)
{
    if (!has_narrow_addresses())
        return false;
    if (H5Pget_layout(dcpl) == H5D_CHUNKED)
        return H5Pget_nfilters(dcpl) > 0 && H5Tdetect_class(type, H5T_VLEN) > 0;
    hid_t space = H5Dget_space(set);
    hssize_t elements = H5Sget_simple_extent_npoints(space);
    H5Sclose(space);
    return H5Pget_layout(dcpl) == H5D_CONTIGUOUS && H5Tget_class(type) == H5T_VLEN && elements == 1;
}

static herr_t find_uncopyable(hid_t at, const char *name, const H5O_info2_t *info, void *data)
{
    struct copying *c = data;
    hid_t object = H5Oopen(at, name, H5P_DEFAULT);
    H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, find_uncopyable_attribute, data);
    if (info->type == H5O_TYPE_DATASET) {
        hid_t type = H5Dget_type(object), dcpl = H5Dget_create_plist(object);
        c->found = c->found || uncopyable(type, H5Pget_layout(dcpl) == H5D_CHUNKED, c) ||
                   is_resized_outside(object, dcpl, type) || is_larger_in_memory(object, dcpl, type);
        c->refers = c->refers || type_contains(type, H5T_REFERENCE);
        look_along(type, c);
        H5Tclose(type);
        H5Pclose(dcpl);
    }
    H5Oclose(object);
    return 0;
}

static struct copying look_through(hid_t file, const char *path, bool between_files)
{
    struct copying c = {.between_files = between_files};
    H5O_info2_t info;
    if (H5Oget_info_by_name3(file, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return c;
    hid_t top = H5Oopen(file, path, H5P_DEFAULT);
    H5Ovisit3(top, H5_INDEX_NAME, H5_ITER_INC, find_uncopyable, &c, H5O_INFO_BASIC);
    H5Oclose(top);
    return c;
}

/* D13, D28, D37, D58. Asked of the twin. */
static bool copyable(hid_t file, const char *path, bool between_files)
{
    return !look_through(file, path, between_files).found;
}

/* D40. Asked of the twin. */
static bool refers(hid_t file, const char *path)
{
    return look_through(file, path, false).refers;
}

static void close_filtered(void) /* D10, D15 */
{
    for (size_t i = w.handles; i-- > 0;) {
        hid_t dcpl = H5Dget_create_plist(w.handle[i].set.id[0]);
        bool filtered = H5Pget_nfilters(dcpl) > 0;
        H5Pclose(dcpl);
        if (filtered || caches_chunks())
            drop_handle(i);
    }
}

struct types {
    struct {
        hid_t type;
        H5O_token_t token;
    } at[100];
    size_t count;
    bool alike, again; /* two that are alike; one that was met twice */
    bool placed;       /* one that HDF5 compares by its place as well */
};

/* TYPE is closed. Without a place in a file, for those of variable length differ by it. */
static void note_type(struct types *t, hid_t type)
{
    unsigned char bytes[20000];
    size_t size = sizeof bytes;
    H5O_info2_t info;
    if (H5Tcommitted(type) > 0 && H5Oget_info3(type, &info, H5O_INFO_BASIC) >= 0) {
        hid_t copy = H5Tencode(type, bytes, &size) < 0 ? H5I_INVALID_HID : H5Tdecode(bytes);
        bool known = false;
        t->alike = t->alike || copy < 0 || t->count == 100;
        t->placed = t->placed || type_contains(type, H5T_VLEN) || type_contains(type, H5T_REFERENCE);
        for (size_t i = 0; copy >= 0 && i < t->count && !known; i++) {
            known = memcmp(&t->at[i].token, &info.token, sizeof info.token) == 0;
            t->again = t->again || known;
            t->alike = t->alike || (!known && H5Tequal(t->at[i].type, copy) > 0);
        }
        if (copy >= 0 && !known && t->count < 100) {
            t->at[t->count].type = copy;
            t->at[t->count++].token = info.token;
        } else if (copy >= 0)
            H5Tclose(copy);
    }
    H5Tclose(type);
}

static herr_t note_attribute_type(hid_t at, const char *name, const H5A_info_t *info, void *data)
{
    hid_t a = H5Aopen(at, name, H5P_DEFAULT);
    (void)info;
    note_type(data, H5Aget_type(a));
    H5Aclose(a);
    return 0;
}

static herr_t note_types(hid_t at, const char *name, const H5O_info2_t *info, void *data)
{
    struct types *t = data;
    hid_t object = H5Oopen(at, name, H5P_DEFAULT);
    if (info->type == H5O_TYPE_DATASET)
        note_type(t, H5Dget_type(object));
    else if (info->type == H5O_TYPE_NAMED_DATATYPE) {
        note_type(t, H5Topen2(at, name, H5P_DEFAULT));
        t->again = t->again || info->rc > 1; /* perhaps by a second link from here */
    }
    H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, note_attribute_type, data);
    H5Oclose(object);
    return 0;
}

/* Named types below AT, and of what is there. */
static struct types types_below(hid_t at)
{
    struct types t = {.count = 0};
    H5Ovisit3(at, H5_INDEX_NAME, H5_ITER_INC, note_types, &t, H5O_INFO_BASIC);
    for (size_t i = 0; i < t.count; i++)
        H5Tclose(t.at[i].type);
    return t;
}

/* D32, D34, D35. Asked of the twin. */
static bool merges(hid_t file, const char *path, hid_t target)
{
    hid_t source = H5Oopen(file, path, H5P_DEFAULT);
    struct types copied = {.count = 0};
    if (source >= 0) {
        copied = types_below(source);
        H5Oclose(source);
    }
    return !copied.again && !copied.alike && (target == file || (!copied.placed && !types_below(target).alike));
}

/* What was copied with which flags: from FROM_, to the head of the file or to TO_. */
enum { FROM_HEAD, FROM_VERSION, FROM_PLAIN, FROM_OTHER, SOURCES };
enum { TO_HEAD, TO_PLAIN, TO_OTHER, TARGETS };
static long met[2 * H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG][SOURCES][TARGETS];

static void count_copy(unsigned flags, int source, int target)
{
    w.copies++;
    met[flags][source][target]++;
}

/* Into the page of ./dev reliability. */
static void record_copies(const char *told)
{
    FILE *results = results_open();
    if (!results)
        return;
    fprintf(
        results,
        "{\"item\": 12, \"what\": \"H5Ocopy of what random programs made, with random flags, done to native files and "
        "through the connector; every answer, the copies and both trees compared\", "
        "\"result\": \"%s; 0 differences\"}\n",
        told);
    fclose(results);
}

void tell_copies(void)
{
    static const char *const source_names[] = {"head", "version", "plain file", "other file with history"};
    static const char *const target_names[] = {"head", "plain file", "other file with history"};
    char told[2000];
    int length = snprintf(told, sizeof told, "%ld copies", w.copies);
    for (int i = 0; i < SOURCES; i++)
        for (int k = 0; k < TARGETS; k++) {
            long copies = 0;
            int combinations = 0;
            for (size_t f = 0; f < sizeof met / sizeof met[0]; f++) {
                copies += met[f][i][k];
                combinations += met[f][i][k] > 0;
            }
            if (copies)
                length +=
                    snprintf(told + length, sizeof told - (size_t)length, "; %s to %s: %ld, %d combinations of flags",
                             source_names[i], target_names[k], copies, combinations);
        }
    printf("%s\n", told);
    if (w.wanted)
        record_copies(told);
}

static H5O_mcdt_search_ret_t stop_searching(void *data)
{
    (void)data;
    return H5O_MCDT_SEARCH_STOP;
}

static H5O_mcdt_search_ret_t go_on_searching(void *data)
{
    (void)data;
    return H5O_MCDT_SEARCH_CONT;
}

/* Where to look for named types first, and whether everywhere then. */
static void suggest_types(hid_t plist)
{
    const char *type = some(AT_TYPE);
    if (chance(50))
        H5Padd_merge_committed_dtype_path(plist, type ? type : "/nothing");
    if (chance(50))
        H5Pset_mcdt_search_cb(plist, chance(50) ? stop_searching : go_on_searching, NULL);
}

/* All combinations alike. GROUPS: there may be groups in what is copied (D31); REFERENCES: and references (D40). */
static hid_t any_copy_plist(unsigned *flags, bool groups, bool references, bool merging)
{
    hid_t plist = H5Pcreate(H5P_OBJECT_COPY);
    *flags = (unsigned)below(2 * H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG);
    if (groups)
        *flags &= ~(unsigned)(H5O_COPY_EXPAND_SOFT_LINK_FLAG | H5O_COPY_EXPAND_EXT_LINK_FLAG);
    if (references)
        *flags &= ~(unsigned)H5O_COPY_EXPAND_REFERENCE_FLAG;
    if (!merging)
        *flags &= ~(unsigned)H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG;
    if (*flags & H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG)
        suggest_types(plist);
    H5Pset_copy_object(plist, *flags);
    return plist;
}

static hid_t copy_plist(unsigned *flags, bool groups, bool references, bool merging)
{
    hid_t plist;
    if (w.wanted)
        return any_copy_plist(flags, groups, references, merging);
    plist = H5Pcreate(H5P_OBJECT_COPY);
    *flags = (chance(10) ? H5O_COPY_SHALLOW_HIERARCHY_FLAG : 0) | (chance(10) ? H5O_COPY_WITHOUT_ATTR_FLAG : 0) |
             (chance(15) && !groups ? H5O_COPY_EXPAND_SOFT_LINK_FLAG : 0) |
             (chance(10) && !groups ? H5O_COPY_EXPAND_EXT_LINK_FLAG : 0) |
             (chance(10) && merging ? H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG : 0);
    H5Pset_copy_object(plist, *flags);
    return plist;
}

static void refused_copy(unsigned flags) /* D34 */
{
    w.merged = w.merged || (flags & H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG);
}

static bool is_group(hid_t file, const char *path)
{
    H5O_info2_t info;
    return H5Oget_info_by_name3(file, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0 || info.type == H5O_TYPE_GROUP;
}

/* A copy of the root has its numbers, which differ (D1). */
static bool is_root(hid_t file, const char *path)
{
    H5O_info2_t info, root;
    return H5Oget_info_by_name3(file, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
           H5Oget_info3(file, &root, H5O_INFO_BASIC) >= 0 && memcmp(&info.token, &root.token, sizeof info.token) == 0;
}

bool op_copy(void)
{
    SIDES;
    char from[PATH_SIZE], to[PATH_SIZE], group[PATH_SIZE];
    unsigned flags;
    if (w.places > MAX_LINKS || !takes_newest_formats() /* D48 */)
        return false;
    const char *link = chance(70) ? some(AT_DATASET) : some_link();
    if (!link)
        return false;
    snprintf(from, sizeof from, "%s", link);
    new_path(to, "c");
    existing_parent(to, group);
    if (holds(from, group) || !copyable(w.file.id[0], from, false))
        return false;
    close_filtered();
    hid_t plist = copy_plist(&flags, is_group(w.file.id[0], from), refers(w.file.id[0], from),
                             merges(w.file.id[0], from, w.file.id[0])),
          lcpl = link_plist();
    note("H5Ocopy %s %s flags %x", from, to, flags);
    w.copied = w.tagged = true;
    w.evicted = w.evicted || has_small_metadata_cache();
    w.modified = true;
    w.renumbered = w.renumbered || is_root(w.file.id[0], from);
    if (!BOTH("H5Ocopy", H5Ocopy(w.file.id[s], from, w.file.id[s], to, plist, lcpl)))
        refused_copy(flags);
    count_copy(flags, FROM_HEAD, TO_HEAD);
    H5Pclose(plist);
    H5Pclose(lcpl);
    touch(to);
    touch(group);
    touch(from);
    return true;
}

/* ---- other files ---- */

enum { PLAIN, WITH_HISTORY };

void unlink_outside(void)
{
    for (int k = PLAIN; k <= WITH_HISTORY; k++)
        for (int s = 0; s < 2; s++)
            if (*w.outside[k][s]) {
                unlink(w.outside[k][s]);
                *w.outside[k][s] = 0;
            }
}

/* Both files of a kind, made when there are none. The plain ones are made by native HDF5. */
static pair open_outside(int k)
{
    SIDES;
    pair file = {{H5I_INVALID_HID, H5I_INVALID_HID}};
    if (!*w.outside[k][0])
        for (int side = 0; side < 2; side++) {
            snprintf(w.outside[k][side], PATH_SIZE, "%s/%s/%zu-%s.h5", w.dir, sides[side], w.files,
                     k == PLAIN ? "plain" : "other");
            hid_t made = H5Fcreate(w.outside[k][side], H5F_ACC_TRUNC, H5P_DEFAULT, w.access[k == PLAIN ? 0 : side]);
            if (made < 0 || H5Fclose(made) < 0)
                die("cannot make %s", w.outside[k][side]);
        }
    OPEN("H5Fopen of another file", file, H5Fopen(w.outside[k][s], H5F_ACC_RDWR, w.access[s]));
    return file;
}

static void check_outside(pair file, int k, const char *when)
{
    comparison c = {.stack = NO_STACK,
                    .how = REACHED_HEAD,
                    .scratch = w.scratch,
                    .renumbered = true /* D1, D29 */,
                    .deleted = true,
                    .other = true,
                    .merged = w.merged,
                    .evicted = w.evicted};
    if (!compare_trees(&c, file.id[0], file.id[1]))
        differ(c.stack, "%s%s: %s", w.outside[k][1], when, c.why);
}

/* A version beside the file that has it. */
static pair open_version(const struct version *v)
{
    SIDES;
    pair file;
    char path[PATH_SIZE + 80];
    snprintf(path, sizeof path, w.self ? "%s.%s" : "%s@%s", v->file, v->name);
    pair access = {{access_beside(0), access_beside(1)}};
    OPEN("H5Fopen of a version", file, H5Fopen(s ? path : v->twin, H5F_ACC_RDONLY, access.id[s]));
    close_ids(access);
    return file;
}

/* D52. A version may have others than the file has, which was created over it. */
static bool have_same_sizes(hid_t a, hid_t b)
{
    size_t address[2], length[2];
    hid_t file[] = {a, b};
    for (int i = 0; i < 2; i++) {
        hid_t fcpl = H5Fget_create_plist(file[i]);
        H5Pget_sizes(fcpl, &address[i], &length[i]);
        H5Pclose(fcpl);
    }
    return address[0] == address[1] && length[0] == length[1];
}

static hsize_t links_in(hid_t file)
{
    H5G_info_t info = {0};
    H5Gget_info(file, &info);
    return info.nlinks;
}

/* Out of the file into another, or out of another or a version into the file, or out of a version into another. */
bool op_copy_files(void)
{
    SIDES;
    char from[PATH_SIZE] = "", to[PATH_SIZE];
    int k = chance(50) ? PLAIN : WITH_HISTORY;
    bool into = chance(50) && w.places <= MAX_LINKS && takes_newest_formats() /* D48 */,
         old = w.versions > 0 && chance(50), done = false;
    const struct version *v = old ? &w.version[below(w.versions)] : NULL;
    if (old && v->gone)
        v = &w.version[w.versions - 1];
    pair source, target, other = {{H5I_INVALID_HID, H5I_INVALID_HID}};
    unsigned flags;
    if (has_narrow_addresses()) /* D52 */
        return false;
    close_filtered();
    note("H5Ocopy between files");
    if (!into || !old)
        other = open_outside(k);
    source = old ? open_version(v) : into ? other : w.file;
    target = into ? w.file : other;
    if (source.id[0] == w.file.id[0]) {
        const char *link = some_link();
        snprintf(from, sizeof from, "%s", link ? link : "");
    } else if (links_in(source.id[0]) > 0)
        H5Lget_name_by_idx(source.id[0], ".", H5_INDEX_NAME, H5_ITER_INC, below(links_in(source.id[0])), from,
                           sizeof from, H5P_DEFAULT);
    if (into)
        new_path(to, "f");
    else
        snprintf(to, sizeof to, "o%zu", below(12));
    if (*from && have_same_sizes(source.id[0], target.id[0]) && copyable(source.id[0], from, true)) {
        hid_t plist = copy_plist(&flags, is_group(source.id[0], from), refers(source.id[0], from),
                                 merges(source.id[0], from, target.id[0])),
              lcpl = link_plist();
        also(": %s of %s to %s of %s, flags %x", from,
             old    ? v->name
             : into ? w.outside[k][1]
                    : "the file",
             to, into ? "the file" : w.outside[k][1], flags);
        w.modified = w.modified || into;
        w.copied = w.tagged = true;
        w.evicted = w.evicted || has_small_metadata_cache();
        if (!BOTH("H5Ocopy", H5Ocopy(source.id[s], from, target.id[s], to, plist, lcpl)))
            refused_copy(flags);
        H5Pclose(plist);
        H5Pclose(lcpl);
        count_copy(flags,
                   old          ? FROM_VERSION
                   : !into      ? FROM_HEAD
                   : k == PLAIN ? FROM_PLAIN
                                : FROM_OTHER,
                   into         ? TO_HEAD
                   : k == PLAIN ? TO_PLAIN
                                : TO_OTHER);
        w.renumbered = w.renumbered || old || into || is_root(source.id[0], from);
        w.mixed = w.mixed || into;
        if (into)
            touch("/");
        else
            check_outside(target, k, "");
        done = true;
    }
    if (old) {
        BOTH("H5Fclose of a version", H5Fclose(source.id[s]));
    }
    if (other.id[0] >= 0) {
        bool full = links_in(other.id[0]) > 10;
        BOTH("H5Fclose of another file", H5Fclose(other.id[s]));
        if (full)
            unlink_outside();
        else if (done && !into) { /* what was copied is in the file when it is opened again */
            other = open_outside(k);
            check_outside(other, k, ", opened again");
            BOTH("H5Fclose of another file", H5Fclose(other.id[s]));
        }
    }
    return done;
}
