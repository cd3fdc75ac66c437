/* Files and their versions: see versions.h. */
#include "versions.h"

#include "compare.h"
#include "datasets.h"
#include "files.h"
#include "filter.h"
#include "h5cow.h"
#include "life.h"
#include "operations.h"
#include "places.h"
#include "plant.h"
#include "properties.h"
#include "transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECENT 2 /* versions compared at every commit; all of them when the file is done */

comparison head_comparison(void)
{
    return (comparison){.stack = NO_STACK,
                        .how = REACHED_HEAD,
                        .deleted = w.deleted,
                        .renumbered = w.renumbered,
                        .uncounted = w.restored,
                        .mixed = w.mixed,
                        .merged = w.merged,
                        .unfollowed = started_swmr(), /* D56 */
                        .evicted = w.evicted,
                        .old_headers = has_narrow_addresses(),
                        .scratch = w.scratch};
}

void full_check(void)
{
    learn_places();
    comparison c = head_comparison();
    c.addresses = &w.addresses;
    c.chunk_bytes = chance(30);
    if (!compare_trees(&c, w.file.id[0], w.file.id[1]))
        differ(c.stack, "%s", c.why);
    w.followed[0] += c.followed;
    w.followed[1] += c.sure;
    w.compared[REACHED_HEAD]++;
}

/* Names of the versions of the file under test, oldest first, from its log, read natively. */
static size_t read_log(char (**names)[64])
{
    *names = NULL;
    hid_t file = H5Fopen(w.name[1], H5F_ACC_RDONLY, w.access[0]), log = H5I_INVALID_HID;
    hssize_t n = 0;
    if (file < 0)
        differ(H5E_DEFAULT, "%s does not open without the connector", w.name[1]);
    if (H5Lexists(file, "_versioned_data", H5P_DEFAULT) > 0)
        log = H5Dopen2(file, "_versioned_data/log", H5P_DEFAULT);
    if (log >= 0) {
        hid_t space = H5Dget_space(log), text = H5Tcopy(H5T_C_S1), row = H5Tcreate(H5T_COMPOUND, sizeof(char *));
        H5Tset_size(text, H5T_VARIABLE);
        H5Tset_cset(text, H5T_CSET_UTF8);
        H5Tinsert(row, "name", 0, text);
        n = H5Sget_simple_extent_npoints(space);
        char **read = calloc((size_t)n + 1, sizeof *read);
        *names = calloc((size_t)n + 1, sizeof **names);
        if (n && H5Dread(log, row, H5S_ALL, H5S_ALL, H5P_DEFAULT, read) < 0)
            differ(H5E_DEFAULT, "/_versioned_data/log cannot be read");
        for (hssize_t i = 0; i < n; i++)
            snprintf((*names)[i], sizeof(*names)[i], "%s", read[i] ? read[i] : "");
        H5Treclaim(row, space, H5P_DEFAULT, read);
        free(read);
        H5Tclose(row);
        H5Tclose(text);
        H5Sclose(space);
        H5Dclose(log);
    }
    H5Fclose(file);
    return (size_t)n;
}

static void compare_version(const struct version *v, reached how)
{
    if (v->gone)
        return;
    char path[PATH_SIZE + 80];
    comparison c = {.stack = NO_STACK,
                    .how = how,
                    .renumbered = w.renumbered,
                    .uncounted = w.counted,
                    .mixed = w.mixed,
                    .merged = w.merged,
                    .evicted = w.evicted,
                    .old_headers = has_narrow_addresses(),
                    .scratch = w.scratch,
                    .addresses = v->addresses,
                    .chunk_bytes = chance(20)};
    /* a file that both have links into is opened by HDF5 with the locks of the one, or not at all */
    hid_t native = access_beside(0), twin = H5Fopen(v->twin, H5F_ACC_RDONLY, native), file = H5I_INVALID_HID,
          root = H5I_INVALID_HID;
    H5Pclose(native);
    if (w.self)
        snprintf(path, sizeof path, "%s.%s", v->file, v->name);
    else if (how == REACHED_AT)
        snprintf(path, sizeof path, "%s@%s", v->file, v->name);
    else {
        snprintf(path, sizeof path, "%s", v->file);
        snprintf(c.prefix, sizeof c.prefix, "/_versioned_data/versions/%s", v->name);
    }
    if (twin < 0)
        die("cannot open %s", v->twin);
    hid_t access = access_beside(how == REACHED_AT);
    file = H5Fopen(path, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    root = file < 0 ? file : H5Gopen2(file, how == REACHED_VERSION && !w.self ? c.prefix : "/", H5P_DEFAULT);
    if (root < 0)
        differ(H5E_DEFAULT, "version %s does not open %s", v->name,
               how == REACHED_AT ? "through the connector" : "natively");
    hid_t top = H5Gopen2(twin, "/", H5P_DEFAULT);
    if (!compare_trees(&c, top, root)) {
        fprintf(stderr, "twin of the version: %s\n", v->twin);
        differ(c.stack, "version %s, read %s: %s", v->name, how == REACHED_AT ? "through the connector" : "natively",
               c.why);
    }
    H5Gclose(top);
    H5Gclose(root);
    H5Fclose(file);
    H5Fclose(twin);
    w.followed[0] += c.followed;
    w.followed[1] += c.sure;
    w.compared[how]++;
}

void check_versions(bool all)
{
    size_t first = all || w.versions <= RECENT ? 0 : w.versions - RECENT;
    for (size_t i = first; i < w.versions; i++) {
        compare_version(&w.version[i], REACHED_AT);
        compare_version(&w.version[i], REACHED_VERSION);
    }
    if (!all && first > 0) { /* and an old one */
        size_t i = below(first);
        compare_version(&w.version[i], chance(50) ? REACHED_AT : REACHED_VERSION);
    }
}

/* The twin as it is now is what version NAME must be for ever. */
static void keep_version(const char *name)
{
    struct version *v;
    w.version = realloc(w.version, (w.versions + 1) * sizeof *w.version);
    v = &w.version[w.versions++];
    snprintf(v->name, sizeof v->name, "%s", name);
    snprintf(v->twin, sizeof v->twin, "%.500s.%zu", w.name[0], w.versions);
    snprintf(v->file, sizeof v->file, "%s", w.name[1]);
    must(copy_file(w.name[0], v->twin));
    if ((v->addresses = malloc(sizeof *v->addresses)) == NULL)
        die("out of memory");
    *v->addresses = w.addresses;
    v->gone = false;
}

/* An old version while the file is open, for writing as well. */
bool op_version(void)
{
    if (w.versions == 0)
        return false;
    size_t i = below(w.versions);
    note("version %s beside the head", w.version[i].name);
    compare_version(&w.version[i], REACHED_AT);
    return true;
}

/* The head as HDF5 reads it alone. */
static void check_stock_head(void)
{
    comparison c = head_comparison();
    hid_t file[2];

    c.how = REACHED_STOCK;
    c.uncounted = c.renumbered = true;
    c.addresses = &w.addresses;
    c.chunk_bytes = chance(30);
    for (int s = 0; s < 2; s++)
        if ((file[s] = H5Fopen(w.name[s], H5F_ACC_RDONLY, w.access[0])) < 0)
            differ(H5E_DEFAULT, "%s does not open without the connector", w.name[s]);
    if (!compare_trees(&c, file[0], file[1]))
        differ(c.stack, "the head, read natively: %s", c.why);
    H5Fclose(file[0]);
    H5Fclose(file[1]);
    w.compared[REACHED_STOCK]++;
}

/* Both files have been closed: a version more, when something changed, and none, when not. */
static void after_close(void)
{
    char(*names)[64] = NULL, made[64];
    size_t n;
    bool new_one;
    if (w.plain)
        return;
    if (w.self) {
        char copy[2 * PATH_SIZE];
        snprintf(made, sizeof made, "%zu", w.versions + 1);
        new_one = w.modified;
        snprintf(copy, sizeof copy, "%s.%s", w.name[1], made);
        if (new_one)
            must(copy_file(w.name[1], copy));
    } else {
        n = read_log(&names);
        size_t had = w.versions - w.first;
        if (n < had || n > had + 1)
            differ(NO_STACK, "the file has %zu versions after a close, it had %zu before", n, had);
        for (size_t i = 0; i < had; i++)
            if (strcmp(names[i], w.version[w.first + i].name) != 0)
                differ(NO_STACK, "version %zu is now called %s, it was %s", i, names[i], w.version[w.first + i].name);
        new_one = n == had + 1;
        snprintf(made, sizeof made, "%s", new_one ? names[n - 1] : "");
        free(names);
        if (new_one && !w.modified && !w.created)
            differ(NO_STACK, "nothing was changed, but version %s was made", made);
    }
    if (new_one)
        keep_version(made);
    else if (w.modified && w.versions > w.first) {
        /* Changes that no version shows (refused calls, equal bytes, reference counts): then the last version is the
         * present state. */
        struct version *last = &w.version[w.versions - 1];
        comparison c = {.stack = NO_STACK,
                        .how = REACHED_HEAD,
                        .uncounted = true,
                        .renumbered = true /* D22 */,
                        .scratch = w.scratch};
        hid_t now = H5Fopen(w.name[0], H5F_ACC_RDONLY, w.access[0]),
              then = H5Fopen(last->twin, H5F_ACC_RDONLY, w.access[0]);
        if (!compare_trees(&c, then, now))
            differ(NO_STACK, "no version was made, but since version %s this changed: %s", last->name, c.why);
        H5Fclose(now);
        H5Fclose(then);
    } else if (w.modified)
        differ(NO_STACK, "the first close made no version");
    if (w.plant == PLANT_VERSION)
        plant_damage();
    if (getenv("H5COW_HEADS") != NULL && !w.self)
        check_stock_head();
    check_versions(false);
}

static void open_pair(bool writable)
{
    SIDES;
    unsigned flags = writable ? H5F_ACC_RDWR : H5F_ACC_RDONLY;
    note("H5Fopen %s", writable ? "to write" : "to read");
    pair how = file_access(writable);
    if (!OPEN("H5Fopen", w.file, H5Fopen(w.name[s], flags, how.id[s])))
        differ(H5E_DEFAULT, "neither file opens again");
    close_ids(how);
    if (writable)
        also("%s", draw_properties(OPENED, w.file.id));
    unsigned intent[2] = {0, 0};
    if (BOTH("H5Fget_intent", H5Fget_intent(w.file.id[s], &intent[s])) && intent[0] != intent[1])
        differ(NO_STACK, "H5Fget_intent: %u, under test %u", intent[0], intent[1]);
    w.writable = writable;
    w.modified = w.created = w.tagged = false;
}

void close_pair(void)
{
    SIDES;
    full_check();
    if (H5Fget_obj_count(w.file.id[0], H5F_OBJ_ALL) != 1 + (ssize_t)w.handles)
        die("an operation since the last opening left an object open: a fault of this test");
    if (w.handles && close_degree() == H5F_CLOSE_STRONG) {
        note("H5Fclose, which closes %zu datasets", w.handles);
        BOTH("H5Fclose", H5Fclose(w.file.id[s]));
        for (size_t i = 0; i < w.handles; i++)
            BOTH("H5Iis_valid", H5Iis_valid(w.handle[i].set.id[s]));
        w.handles = 0;
    } else if (w.handles && close_degree() != H5F_CLOSE_SEMI /* it would be refused: test_access */ && chance(35)) {
        /* the file id goes first: its datasets keep the file open */
        note("H5Fclose with %zu datasets open", w.handles);
        BOTH("H5Fclose", H5Fclose(w.file.id[s]));
        w.file.id[0] = w.file.id[1] = H5I_INVALID_HID;
        size_t i = below(w.handles);
        if (w.writable && !read_only(w.handle[i].set.id[0])) {
            note("H5Dwrite %s of the closed file", w.handle[i].path);
            write_dataset(w.handle[i].set, false);
        }
        for (i = 0; i < w.handles; i++)
            check_dataset(w.handle[i].set, w.handle[i].path);
        while (w.handles)
            drop_handle(0);
    } else {
        note("H5Fclose");
        const unsigned long asked = filter_calls();
        while (w.handles)
            drop_handle(0);
        BOTH("H5Fclose", H5Fclose(w.file.id[s]));
        if (filter_calls() != asked)
            differ(NO_STACK, "closing the file asks filters whether they can be used");
    }
    w.file.id[0] = w.file.id[1] = H5I_INVALID_HID;
    after_close();
}

/* The list with which the file was created, for programs that create it again as they did before; H5close closes lists. */
static unsigned char created_with[4096];

static void keep_creation(hid_t plist)
{
    size_t size = 0;
    if (H5Pencode2(plist, NULL, &size, H5P_DEFAULT) < 0 || size > sizeof created_with ||
        H5Pencode2(plist, created_with, &size, H5P_DEFAULT) < 0)
        die("a creation list of %zu bytes cannot be kept", size);
}

void create_pair(void)
{
    SIDES;
    w.first = w.versions = 0;
    w.aside = 0;
    hid_t plist = H5Pcreate(H5P_FILE_CREATE);
    /* native HDF5 1.14.5 does not open a family of files with a user block again */
    hsize_t block = w.plain || chance(85) ? 0 : (hsize_t)512 << below(4);
    H5Pset_userblock(plist, block);
    note("H5Fcreate, user block %u", (unsigned)block);
    forget_created_file();
    pair how = file_access(true);
    also("%s", draw_properties(FILE_CREATION, (hid_t[]){plist, plist}));
    keep_creation(plist);
    if (!OPEN("H5Fcreate", w.file, H5Fcreate(w.name[s], H5F_ACC_TRUNC, plist, how.id[s])))
        die("cannot create files in %s", w.dir);
    close_ids(how);
    H5Pclose(plist);
    know_created_file(w.file.id[0]);
    also("%s", draw_properties(OPENED, w.file.id));
    *w.many = 0;
    w.deleted = w.tagged = w.counted = w.copied = w.renumbered = w.mixed = w.merged = w.evicted = w.restored = false;
    w.addresses.count = w.addresses.regions = 0;
    w.writable = w.modified = w.created = true;
}

bool op_reopen(void)
{
    close_pair();
    go_on_elsewhere();
    if (chance(15)) { /* look, without a change */
        open_pair(false);
        full_check();
    } else
        open_pair(true);
    return true;
}

static bool restore_side(const struct version *v)
{
    h5cow_restore_t request = {.revision = v->name};
    hid_t file = H5Fopen(w.name[1], H5F_ACC_RDWR, w.access[1]);

    if (file < 0 || h5cow_restore(file, &request) < 0 || H5Fclose(file) < 0)
        differ(H5E_DEFAULT, "version %s cannot be restored", v->name);
    return request.differs != 0;
}

/* Some versions go, never the newest; what nobody needs becomes free. All else is as it was. */
static void forget_side(const char *const names[], size_t count, bool collect)
{
    h5cow_forget_t request = {.count = count, .revisions = names};
    hid_t file = H5Fopen(w.name[1], H5F_ACC_RDWR, w.access[1]);

    if (file < 0 || h5cow_forget(file, &request) < 0 || request.forgotten != count ||
        (collect && h5cow_collect(file, NULL) < 0) || H5Fclose(file) < 0)
        differ(H5E_DEFAULT, "%zu versions cannot be forgotten, the first of them %s", count, count > 0 ? names[0] : "");
}

bool op_forget(void)
{
    const char **names;
    size_t count = 0, had;
    bool collect = chance(70) && !keeps_free_space();

    if (!w.writable || w.self || w.plain || w.versions <= w.first)
        return false;
    close_pair();
    had = w.versions;
    names = calloc(w.versions + 1, sizeof *names);
    for (size_t i = w.first; names != NULL && i + 1 < w.versions; i++)
        if (!w.version[i].gone && chance(50)) {
            w.version[i].gone = true;
            names[count++] = w.version[i].name;
        }
    note("%zu versions forgotten%s", count, collect ? ", and what they needed freed" : "");
    forget_side(names, count, collect);
    free(names);
    after_close();
    if (w.versions != had)
        differ(NO_STACK, "forgetting made a version");
    check_versions(chance(30));
    open_pair(true);
    full_check();
    return true;
}

/* The file is as it was in some version: the twin is the copy of then. What the program counted itself is in no version. */
bool op_restore(void)
{
    size_t had = w.versions;
    struct version *v;
    bool differs;
    hid_t twin;

    if (!w.writable || w.self || w.plain || w.versions <= w.first)
        return false;
    close_pair();
    had = w.versions;
    v = &w.version[w.first + below(w.versions - w.first)];
    if (v->gone)
        v = &w.version[w.versions - 1];
    note("version %s restored", v->name);
    must(copy_file(v->twin, w.name[0]));
    if ((twin = H5Fopen(w.name[0], H5F_ACC_RDONLY, w.access[0])) < 0)
        differ(H5E_DEFAULT, "the copy of version %s cannot be opened", v->name);
    know_created_file(twin);
    H5Fclose(twin);
    w.addresses = *v->addresses;
    w.deleted = w.copied = w.renumbered = w.restored = true; /* D42 */
    *w.many = 0;
    differs = restore_side(v);
    w.modified = true;
    after_close();
    if (differs != (w.versions > had))
        differ(NO_STACK, "restoring told that %s differed, and there are %zu versions, there were %zu",
               differs ? "something" : "nothing", w.versions, had);
    open_pair(true);
    full_check();
    return true;
}

/* Where the creation properties are those of the file, it is emptied and keeps its history. Else (OTHERWISE) the file is
 * put aside, where its history goes on to be what it was. */
bool op_truncate(void)
{
    SIDES;
    if (!w.writable)
        return false;
    bool otherwise = chance(20);
    unsigned order = 0;
    close_pair();
    hid_t plist = H5Pdecode(created_with);
    H5Pget_link_creation_order(plist, &order);
    note("H5Fcreate over the existing file%s", otherwise ? ", with other creation properties" : "");
    w.deleted = true;
    if (chance(50)) /* the program makes what it made before, by the same names */
        w.named = 0;
    for (size_t i = 0; i < w.addresses.count; i++)
        w.addresses.at[i].alive = false;
    pair how = file_access(true); /* for what the list has from the creation before as well */
    if (otherwise) {
        also("%s", draw_properties(FILE_CREATION, (hid_t[]){plist, plist}));
        H5Pset_link_creation_order(plist, order ? 0 : H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
        keep_creation(plist);
        H5Pset_page_buffer_size(how.id[1], 0, 0, 0); /* the new file may have no pages, or larger ones */
    }
    if (!OPEN("H5Fcreate", w.file, H5Fcreate(w.name[s], H5F_ACC_TRUNC, plist, how.id[s])))
        differ(H5E_DEFAULT, "the files cannot be created anew");
    close_ids(how);
    H5Pclose(plist);
    know_created_file(w.file.id[0]);
    also("%s", draw_properties(OPENED, w.file.id));
    *w.many = 0;
    if (otherwise && !w.self && !w.plain) {
        char old[PATH_SIZE];
        snprintf(old, sizeof old, "%.500s.h5cow-old-%u", w.name[1], ++w.aside);
        if (access(old, F_OK) != 0)
            differ(NO_STACK, "there is no file %s", old);
        for (; w.first < w.versions; w.first++)
            snprintf(w.version[w.first].file, PATH_SIZE, "%s", old);
    }
    w.writable = w.modified = w.created = true;
    return true;
}
