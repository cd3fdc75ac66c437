/* h5cow recover FILE OUT: what can be read of a damaged file, into a new one.
 *
 * The work is done by a child process, since libhdf5 may crash on damaged bytes or never come back. It tells line by
 * line where it is and what is lost; when it crashes, another one goes on at the version that it did not finish, and
 * leaves out the object that was its end. Versions that are finished are committed in the new file, which has a
 * temporary name until all is done.
 */
#include "salvage.h"

#include "base/error.h"
#include "base/ids.h"
#include "child.h"
#include "history/history.h"
#include "journal/disk.h"
#include "journal/driver.h"
#include "library/library.h"
#include "output.h"
#include "plugin.h"
#include "pools.h"
#include "progress.h"
#include "vol/class.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define SILENCE  10  /* seconds of computing without a word: caught in a loop */
#define RESTARTS 200 /* places where the library may crash */

/* ---- the child ---- */

/* Those that the version has; the others are over. */
static size_t tell_losses(salvage *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->losses; i++) {
        json_object *line;
        if (!s->loss[i].current) {
            free(s->loss[i].path);
            json_object_put(s->loss[i].what);
            continue;
        }
        line = json_object_new_array();
        json_object_array_add(line, cli_json_text(s->now->name));
        json_object_array_add(line, json_object_get(s->loss[i].what));
        salvage_tell(s, "lost", line);
        s->loss[i].current = false;
        s->loss[kept++] = s->loss[i];
    }
    return s->losses = kept;
}

/* ---- versions ---- */

typedef struct name_list {
    struct {
        char *name;
        uint64_t address;
    } *item;
    size_t count, room;
} name_list;

static herr_t note_version(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    name_list *l = context;

    (void)group;
    CLI_RESERVE(l->item, l->room, l->count, 1);
    l->item[l->count].name = cli_strdup(name);
    l->item[l->count++].address = info->type == H5L_TYPE_HARD ? cow_address(&info->u.token) : 0;
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b; /* the name comes first in an item */
    unsigned long long m = strtoull(*x, NULL, 10), n = strtoull(*y, NULL, 10);

    return m != n ? (m > n) - (m < n) : strcmp(*x, *y);
}

static void add_version(salvage *s, const char *name, bool tree, const cli_version *row)
{
    CLI_RESERVE(s->version, s->version_room, s->versions, 1);
    s->version[s->versions++] =
        (salvage_version){cli_strdup(name), tree ? cli_format(COW_PATH_VERSIONS "/%s", name) : NULL, row};
}

/* Neither the list nor the log says which versions there were besides. */
static void tell_unlisted(salvage *s)
{
    json_object *line = json_object_new_array(), *what = json_object_new_object();

    json_object_object_add(what, "object", json_object_new_string(COW_PATH_VERSIONS));
    json_object_object_add(what, "why", json_object_new_string("which other versions there were cannot be read"));
    json_object_array_add(line, cli_json_text(s->version[s->versions - 1].name));
    json_object_array_add(line, what);
    salvage_tell(s, "lost", line);
}

/* In the order of the log; where it is damaged, by number. */
static void list_versions(salvage *s)
{
    name_list links = {0};
    char why[1200];
    hid_t group = H5Gopen2(s->file.id, COW_PATH_VERSIONS, H5P_DEFAULT);
    size_t next = 0, known;
    bool listed = !salvage_at(s, "versions") && group >= 0 && salvage_links(group, note_version, &links) >= 0;

    if (!listed)
        salvage_tell(s, "said", cli_json_text("the list of versions is damaged"));
    listed = listed && !s->searched;
    if (group >= 0)
        H5Gclose(group);
    H5Eclear2(H5E_DEFAULT);
    if (links.count > 0)
        qsort(links.item, links.count, sizeof *links.item, by_number);
    snprintf(why, sizeof why, "the HDF5 library crashes on the log of versions");
    if (salvage_at(s, "log") || cli_versions_read(&s->file, &s->rows, &s->row_count, why, sizeof why) < 0) {
        char *text = cli_format("%s; names are kept, times and messages are lost", why);
        salvage_tell(s, "said", cli_json_text(text));
        free(text);
    } else
        listed = true;
    for (size_t i = 0; i < s->row_count; i++) {
        bool found = false;
        if (s->rows[i].open == COW_LOG_FORGOTTEN)
            continue;
        for (size_t k = 0; !found && k < links.count; k++)
            if (links.item[k].name != NULL && strcmp(links.item[k].name, s->rows[i].name) == 0) {
                found = true;
                free(links.item[k].name);
                links.item[k].name = NULL;
            }
        add_version(s, s->rows[i].name, found, &s->rows[i]);
    }
    /* what is left over: the tree of a row whose name was damaged, else a version that the log does not know */
    known = s->versions;
    for (size_t k = 0; k < links.count; k++) {
        if (links.item[k].name == NULL)
            continue;
        while (next < known && s->version[next].path != NULL)
            next++;
        if (next < known) {
            salvage_version *v = &s->version[next];
            free(v->name);
            v->name = cli_strdup(links.item[k].name);
            v->path = cli_format(COW_PATH_VERSIONS "/%s", v->name);
        } else
            add_version(s, links.item[k].name, true, NULL);
        free(links.item[k].name);
    }
    free(links.item);
    if (s->versions == 0)
        add_version(s, "newest", false, NULL); /* the head is all there is */
    if (!listed)
        tell_unlisted(s);
}

/* ---- the new file ---- */

/* What h5cow was asked to compress the source with. */
static void compress_option(salvage *s, char **options)
{
    static const char *const codecs[] = {"blosclz", "lz4", "lz4hc", NULL, "zlib", "zstd"};
    char text[64] = "";
    hid_t raw, dcpl;
    bool shuffle = false;

    for (size_t i = 0; i < s->dataset_count && text[0] == '\0'; i++) {
        if (!(s->datasets[i].flags & 1))
            continue;
        if ((raw = cli_raw_open(&s->file, s->datasets[i].pool)) < 0)
            continue;
        dcpl = H5Dget_create_plist(raw);
        for (int n = 0; n < H5Pget_nfilters(dcpl); n++) {
            unsigned flags, config, values[20] = {0};
            size_t count = 20;
            H5Z_filter_t id = H5Pget_filter2(dcpl, (unsigned)n, &flags, &count, values, 0, NULL, &config);
            shuffle |= id == H5Z_FILTER_SHUFFLE;
            if (id == H5Z_FILTER_DEFLATE && values[0] <= 9)
                snprintf(text, sizeof text, "gzip:%u:%s", values[0], shuffle ? "byte" : "none");
            else if (id == 32000)
                snprintf(text, sizeof text, "lzf:%s", shuffle ? "byte" : "none");
            else if (id == 32001 && values[6] < 6 && codecs[values[6]] != NULL && values[4] <= 9 && values[5] <= 2)
                snprintf(text, sizeof text, "blosc:%s:%u:%s", codecs[values[6]], values[4],
                         values[5] == 0   ? "none"
                         : values[5] == 1 ? "byte"
                                          : "bit");
        }
        H5Pclose(dcpl);
        H5Dclose(raw);
    }
    H5Eclear2(H5E_DEFAULT);
    if (text[0] != '\0')
        cli_plugin_option(options, "compress", 8, text);
}

static bool name_allowed(const char *name)
{
    size_t length = strlen(name);

    if (length == 0 || length > 64 || strpbrk(name, "/@") != NULL || strchr(".~{", name[0]) != NULL)
        return false;
    for (const char *p = name; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return false;
    return true;
}

/* Properties for opening through the connector of this program. */
static hid_t access_with(salvage *s, const char *options)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    void *info = NULL;

    if (fapl < 0 || H5VLconnector_str_to_info(options, s->connector, &info) < 0 || H5Pset_fapl_sec2(fapl) < 0 ||
        H5Pset_vol(fapl, s->connector, info) < 0) {
        if (fapl >= 0)
            H5Pclose(fapl);
        fapl = H5I_INVALID_HID;
    }
    if (info != NULL)
        H5VLfree_connector_info(s->connector, info);
    return fapl;
}

/* The group that the version at hand begins with. */
static hid_t root_of(salvage *s)
{
    hid_t root = s->now->path == NULL ? H5I_INVALID_HID : H5Gopen2(s->file.id, s->now->path, H5P_DEFAULT);

    if (root < 0 && s->newest)
        root = H5Gopen2(s->file.id, "/", H5P_DEFAULT);
    return root;
}

/* The file's creation properties, which HDF5 does not know all of: cow_file_spaces. */
static hid_t creation_list(const salvage *s)
{
    hid_t fcpl = s->whole ? H5Fget_create_plist(s->file.id) : H5Pcreate(H5P_FILE_CREATE);
    uint8_t index;

    if (s->whole && cow_layout_number(s->file.loc, COW_SPACES, H5T_STD_U8LE, &index) > 0)
        cow_native_share_dataspaces(fcpl, index);
    cow_error_clear();
    return fcpl;
}

static hid_t open_new(salvage *s, bool create)
{
    char *options = cli_strdup("sync=off");
    hid_t fapl, fcpl = creation_list(s), root = root_of(s), file = H5I_INVALID_HID;

    if (name_allowed(s->now->name))
        cli_plugin_option(&options, "name", 4, s->now->name);
    compress_option(s, &options);
    fapl = access_with(s, options);
    if (root >= 0 && cow_tree_group_settings(root, fcpl) < 0) { /* not half of them */
        H5Pclose(fcpl);
        fcpl = H5Pcreate(H5P_FILE_CREATE);
    }
    H5Pset_userblock(fcpl, cow_journal_base(s->journal));
    if (root >= 0)
        H5Gclose(root);
    H5Eclear2(H5E_DEFAULT);
    if (fapl >= 0)
        file = create ? H5Fcreate(s->temporary, H5F_ACC_TRUNC, fcpl, fapl) : H5Fopen(s->temporary, H5F_ACC_RDWR, fapl);
    free(options);
    hid_t stack = cow_errors_take();
    if (fapl >= 0)
        H5Pclose(fapl);
    H5Pclose(fcpl);
    cow_errors_give_back(stack);
    return file;
}

static int put_user_block(salvage *s, char *why, size_t size)
{
    uint64_t bytes = cow_journal_base(s->journal);
    int out = bytes == 0 ? -1 : open(s->temporary, O_WRONLY | O_CLOEXEC), status = 0;

    if (bytes > 0 && (status = cow_newfile_user_block(out, s->name, bytes)) < 0)
        cli_reason(why, size);
    if (out >= 0)
        close(out);
    return status;
}

/* ---- the child ---- */

/* Nothing here needs what other files hold, and whatever goes wrong, nothing shall be written there: external links lead
 * nowhere, as those of classes that only other programs have. Links of any class can be copied and deleted. */
static int lead_nowhere(void)
{
    static bool made[H5L_TYPE_MAX + 1];

    return H5Lunregister(H5L_TYPE_EXTERNAL) < 0 || cow_native_link_classes_stand_in(made) < 0 ? -1 : 0;
}

static int failed(salvage *s, const char *why)
{
    salvage_tell(s, "failed", cli_json_text(why));
    return -1;
}

static int heart; /* the end of the pipe */

static void beat(int number)
{
    ssize_t told = write(heart, "{}\n", 3);

    (void)number;
    (void)told;
}

/* A commit computes long where there is much in it, without a word. It is of the new file, which is whole, so there is
 * no loop without end to be feared: by the time it takes, it is told that work goes on. */
static int close_new(salvage *s)
{
    struct sigaction act = {.sa_handler = beat, .sa_flags = SA_RESTART};
    struct itimerval every = {{SILENCE / 4, 0}, {SILENCE / 4, 0}}, never = {{0, 0}, {0, 0}};
    int status;

    heart = fileno(s->to);
    sigaction(SIGPROF, &act, NULL);
    setitimer(ITIMER_PROF, &every, NULL);
    status = H5Fclose(s->copy.to) < 0 ? -1 : 0;
    setitimer(ITIMER_PROF, &never, NULL);
    return status;
}

/* A commit makes no version of what is the same as the one before: so it gets something, and loses it while it goes on. */
static int touch(hid_t file)
{
    static const char name[] = "h5cow compact";
    hid_t space = H5Screate(H5S_SCALAR),
          attribute = H5Acreate2(file, name, H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT);
    int status =
        attribute < 0 || H5Aclose(attribute) < 0 || H5Fflush(file, H5F_SCOPE_GLOBAL) < 0 || H5Adelete(file, name) < 0
            ? -1
            : 0;

    H5Sclose(space);
    return status;
}

/* The version is complete. Where nothing is lost, what is the same as the version before is one as well. */
static int commit(salvage *s, bool first, bool *same, char *why, size_t size)
{
    if (close_new(s) < 0) {
        cli_reason(why, size);
        return -1;
    }
    if (salvage_put_row(s, same, why, size) < 0)
        return -1;
    if (!*same || !s->whole || first)
        return 0;
    if ((s->copy.to = open_new(s, false)) < 0 || touch(s->copy.to) < 0 || close_new(s) < 0) {
        cli_reason(why, size);
        return -1;
    }
    return salvage_put_row(s, same, why, size);
}

/* One version. 0, or -1: told. */
static int save_version(salvage *s, bool *made)
{
    char *name = cli_format("%s@%s", s->name, s->now->name), why[1200];
    hid_t fapl, root;
    bool same = false;
    int status;

    s->through = H5I_INVALID_HID;
    if (s->now->path != NULL && (fapl = access_with(s, "")) >= 0) {
        s->through = H5Fopen(name, H5F_ACC_RDONLY, fapl);
        H5Eclear2(H5E_DEFAULT);
        H5Pclose(fapl);
    }
    free(name);
    s->copy.from = s->through >= 0 ? s->through : s->file.id;
    s->copy.to = H5I_INVALID_HID;
    s->copy.why[0] = '\0';
    if ((root = root_of(s)) >= 0) {
        H5Gclose(root);
        if (s->temporary != NULL && (s->copy.to = open_new(s, !*made)) < 0) {
            cli_reason(why, sizeof why);
            return failed(s, why);
        }
    }
    H5Eclear2(H5E_DEFAULT);
    status = salvage_tree(s);
    if (s->through >= 0)
        H5Fclose(s->through);
    if (status < 0)
        return failed(s, s->copy.why); /* and the new file is not closed: nothing of this is committed */
    if (s->copy.to >= 0) {
        bool first = !*made;
        *made = true;
        if (commit(s, first, &same, why, sizeof why) < 0)
            return failed(s, why);
    }
    json_object *told = json_object_new_object();
    size_t losses = tell_losses(s);
    json_object_object_add(told, "name", cli_json_text(s->now->name));
    json_object_object_add(told, "state",
                           json_object_new_string(status > 0   ? "lost"
                                                  : losses > 0 ? "damaged"
                                                               : "whole"));
    salvage_tell(s, "version", told);
    if (status == 0 && (losses == 0 || s->got || s->objects > 1)) /* the root alone is nothing */
        salvage_tell(s, "saved", json_object_new_boolean(true));
    if (same)
        salvage_tell(s, "same", cli_json_text(s->now->name));
    return 0;
}

/* Has the head what no version has? Rows of the version that is to come say so. */
static bool changed_since(const salvage *s)
{
    cli_lack *rows = NULL;
    size_t count = 0;
    char why[512];
    bool changed = cli_lacks_read(&s->file, &rows, &count, why, sizeof why) < 0;

    for (size_t i = 0; i < count; i++)
        changed |= rows[i].version >= s->row_count;
    cli_lacks_free(rows, count);
    return changed;
}

static void open_head(salvage *s)
{
    hid_t fapl;

    s->head = H5I_INVALID_HID;
    if (changed_since(s) || salvage_at(s, "head") || (fapl = access_with(s, "")) < 0)
        return;
    s->head = H5Fopen(s->name, H5F_ACC_RDONLY, fapl);
    H5Eclear2(H5E_DEFAULT);
    H5Pclose(fapl);
}

/* What the process that waits has heard so far. */
typedef struct answer {
    json_object *said, *tried, *versions, *lost, *nulls;
    char *state, *failed;
    char at[2048];
    size_t finished, count;          /* versions */
    uint64_t dangling;               /* references that are null in the copy; where, in `nulls` */
    bool made, saved, nothing, done; /* made: a version; saved: something in one */
    bool whole;                      /* it wants all or nothing, and has the lock of who writes the source */
} answer;

/* References that are null in the copy: how many, and where. */
static void tell_nulls(salvage *s, const cow_tree_nulls *nulls)
{
    char where[sizeof nulls->where + 60];
    json_object *told;

    if (nulls->count == 0)
        return;
    cow_tree_nulls_where(nulls, where, sizeof where);
    told = json_object_new_array();
    json_object_array_add(told, json_object_new_uint64(nulls->count));
    json_object_array_add(told, cli_json_text(where));
    salvage_tell(s, "null", told);
}

static int child(const char *name, const char *temporary, unsigned first_way, const answer *a, json_object *skip,
                 FILE *to)
{
    salvage s = {.name = name, .temporary = temporary, .to = to, .skip = skip, .whole = a->whole};
    bool made = a->made;
    char why[1200];
    int status;

    cli_hdf5_start();
    if (lead_nowhere() < 0 || (s.connector = H5VLregister_connector(&cow_class, H5P_DEFAULT)) < 0)
        return cli_fail("the HDF5 library cannot be used: %s", cli_reason(why, sizeof why));
    if (salvage_open(&s, first_way) != 0) {
        salvage_tell(&s, "nothing", json_object_new_boolean(true));
        return 0;
    }
    if (salvage_at(&s, "index"))
        salvage_tell(&s, "said", cli_json_text("the HDF5 library crashes on the index"));
    else if ((s.index = cow_layout_table_open(s.file.loc, COW_TABLE_INDEX, 0, 0)) == NULL) {
        cli_reason(why, sizeof why);
        char *text = cli_format("the index cannot be opened: %s", why);
        salvage_tell(&s, "said", cli_json_text(text));
        free(text);
    }
    snprintf(why, sizeof why, "the HDF5 library crashes on the table of datasets");
    if (salvage_at(&s, "datasets") || cli_datasets_read(&s.file, &s.datasets, &s.dataset_count, why, sizeof why) < 0)
        salvage_tell(&s, "said", cli_json_text(why));
    list_versions(&s);
    salvage_tell(&s, "count", json_object_new_uint64(s.versions));
    open_head(&s);
    status = temporary != NULL && salvage_log_begin(&s, made, why, sizeof why) < 0 ? failed(&s, why) : 0;
    for (size_t v = a->finished; status == 0 && v < s.versions; v++) {
        s.now = &s.version[v];
        s.newest = v + 1 == s.versions;
        status = save_version(&s, &made);
    }
    if (s.head >= 0)
        H5Fclose(s.head);
    if (status == 0 && made && temporary != NULL &&
        (salvage_put_names(&s, why, sizeof why) < 0 || put_user_block(&s, why, sizeof why) < 0))
        status = failed(&s, why);
    if (status == 0) {
        tell_nulls(&s, &s.copy.dangling);
        tell_nulls(&s, &s.copy.stray);
        salvage_tell(&s, "done", json_object_new_boolean(made || temporary == NULL));
    }
    return status == 0 ? 0 : CLI_FAILED;
}

/* ---- the parent ---- */

/* The same loss in one more version. */
static void hear_loss(answer *a, json_object *told)
{
    json_object *version = json_object_array_get_idx(told, 0), *what = json_object_array_get_idx(told, 1), *entry, *old;
    json_object *versions;

    for (size_t i = 0; i < json_object_array_length(a->lost); i++) {
        entry = json_object_array_get_idx(a->lost, i);
        json_object_object_get_ex(entry, "what", &old);
        if (json_object_equal(old, what)) {
            json_object_object_get_ex(entry, "versions", &versions);
            for (size_t k = 0; version != NULL && k < json_object_array_length(versions); k++)
                if (json_object_equal(version, json_object_array_get_idx(versions, k)))
                    version = NULL; /* by a child before */
            if (version != NULL)
                json_object_array_add(versions, json_object_get(version));
            return;
        }
    }
    entry = json_object_new_object();
    versions = json_object_new_array();
    json_object_array_add(versions, json_object_get(version));
    json_object_object_add(entry, "what", json_object_get(what));
    json_object_object_add(entry, "versions", versions);
    json_object_array_add(a->lost, entry);
}

static void hear_line(void *context, const char *line)
{
    answer *a = context;
    json_object *told = json_tokener_parse(line), *value, *name;

    if (json_object_object_get_ex(told, "at", &value))
        snprintf(a->at, sizeof a->at, "%s", json_object_get_string(value));
    else if (json_object_object_get_ex(told, "lost", &value))
        hear_loss(a, value);
    else if (json_object_object_get_ex(told, "version", &value)) {
        json_object_array_add(a->versions, json_object_get(value));
        json_object_object_get_ex(value, "state", &name);
        a->made |= strcmp(json_object_get_string(name), "lost") != 0;
        a->finished++;
        cli_progress("versions", a->finished, a->count);
    } else if (json_object_object_get_ex(told, "saved", &value))
        a->saved = true;
    else if (json_object_object_get_ex(told, "count", &value))
        a->count = (size_t)json_object_get_uint64(value);
    else if (json_object_object_get_ex(told, "same", &value)) {
        for (size_t i = 0; i < json_object_array_length(a->versions); i++) {
            json_object *v = json_object_array_get_idx(a->versions, i), *state;
            json_object_object_get_ex(v, "name", &name);
            json_object_object_get_ex(v, "state", &state);
            if (json_object_equal(name, value) && strcmp(json_object_get_string(state), "lost") != 0)
                json_object_object_add(v, "same_as_before", json_object_new_boolean(true));
        }
    } else if (json_object_object_get_ex(told, "said", &value)) {
        for (size_t i = 0; value != NULL && i < json_object_array_length(a->said); i++)
            if (json_object_equal(value, json_object_array_get_idx(a->said, i)))
                value = NULL; /* by a child before */
        if (value != NULL)
            json_object_array_add(a->said, json_object_get(value));
    } else if (json_object_object_get_ex(told, "tried", &value))
        json_object_array_add(a->tried, json_object_get(value));
    else if (json_object_object_get_ex(told, "state", &value)) {
        free(a->state);
        a->state = cli_strdup(json_object_get_string(value));
    } else if (json_object_object_get_ex(told, "failed", &value)) {
        free(a->failed);
        a->failed = cli_strdup(json_object_get_string(value));
    } else if (json_object_object_get_ex(told, "null", &value)) {
        a->dangling += json_object_get_uint64(json_object_array_get_idx(value, 0));
        json_object_array_add(a->nulls, json_object_get(json_object_array_get_idx(value, 1)));
    } else if (json_object_object_get_ex(told, "nothing", &value))
        a->nothing = true;
    else if (json_object_object_get_ex(told, "done", &value))
        a->done = true;
    json_object_put(told);
}

/* Children one after the other until one comes to the end. 0, or CLI_FAILED and said why. */
static int run(const char *name, const cow_newfile *new, answer *a)
{
    const char *temporary = new->path;
    json_object *skip = json_object_new_array();
    unsigned way = 0;
    int status = CLI_FAILED;
    pid_t parent = getpid();

    for (unsigned round = 0; round < RESTARTS; round++) {
        int ends[2], state = 0;
        bool stuck;
        pid_t id;

        if (!a->made && temporary != NULL && ftruncate(new->file, 0) < 0) {
            cli_fail("cannot begin anew: %s", strerror(errno));
            goto done;
        }
        fflush(NULL);
        if (pipe(ends) < 0 || (id = fork()) < 0) {
            cli_fail("cannot start a process: %s", strerror(errno));
            goto done;
        }
        if (id == 0) {
            FILE *to = fdopen(ends[1], "w");
            close(ends[0]);
            cli_child_quiet();
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            int code = to == NULL || getppid() != parent ? CLI_FAILED : child(name, temporary, way, a, skip, to);
            fflush(NULL);
            _exit(code);
        }
        close(ends[1]);
        stuck = cli_hear(id, ends[0], SILENCE, hear_line, a);
        close(ends[0]);
        while (waitpid(id, &state, 0) < 0 && errno == EINTR)
            ;
        if (!stuck && WIFSIGNALED(state) && !cli_is_crash(WTERMSIG(state))) {
            cli_fail("it was ended by a signal (%s)", strsignal(WTERMSIG(state)));
            goto done;
        }
        if (a->nothing || a->done) {
            status = 0;
            goto done;
        }
        if (!WIFSIGNALED(state)) {
            if (a->failed != NULL)
                cli_fail("the new file cannot be written: %s", a->failed);
            goto done;
        }
        if (sscanf(a->at, "way %u", &way) == 1)
            way++;
        else if (salvage_known(skip, a->at))
            break; /* leaving it out does not help */
        else
            json_object_array_add(skip, json_object_new_string(a->at));
    }
    cli_fail("the HDF5 library crashes again and again on this file; the last time at: %s", a->at);
done:
    cli_progress_end();
    json_object_put(skip);
    return status;
}

static void print_numbers(json_object *list)
{
    printf("(");
    for (size_t i = 0; i < json_object_array_length(list); i++)
        printf("%s%s", i == 0 ? "" : ", ", json_object_get_string(json_object_array_get_idx(list, i)));
    printf(json_object_array_length(list) == 1 ? ",)" : ")");
}

static void print_loss(size_t number, json_object *entry)
{
    json_object *what, *versions, *value, *start, *count;

    json_object_object_get_ex(entry, "what", &what);
    json_object_object_get_ex(entry, "versions", &versions);
    printf("%zu. ", number);
    if (json_object_object_get_ex(what, "version", &value))
        printf("the version");
    else {
        if (json_object_object_get_ex(what, "attribute", &value))
            printf("attribute '%s' of ", value == NULL ? "?" : json_object_get_string(value));
        else if (json_object_object_get_ex(what, "links", &value))
            printf("some links of ");
        else if (json_object_object_get_ex(what, "chunk", &value)) {
            printf("chunk ");
            print_numbers(value);
            printf(" of ");
        } else if (json_object_object_get_ex(what, "start", &value))
            printf("a part of ");
        json_object_object_get_ex(what, "object", &value);
        printf("%s", json_object_get_string(value));
    }
    if (json_object_object_get_ex(what, "start", &start) && json_object_object_get_ex(what, "count", &count)) {
        printf(", from ");
        print_numbers(start);
        printf(" on ");
        print_numbers(count);
    }
    if (json_object_object_get_ex(what, "elements", &value))
        printf(", %s elements", json_object_get_string(value));
    json_object_object_get_ex(what, "why", &value);
    printf(": %s\n   in version%s ", json_object_get_string(value), json_object_array_length(versions) == 1 ? "" : "s");
    for (size_t i = 0; i < json_object_array_length(versions); i++)
        printf("%s%s", i == 0 ? "" : ", ", json_object_get_string(json_object_array_get_idx(versions, i)));
    printf("\n");
}

static void print_text(const char *name, const char *out, bool dry, const answer *a)
{
    size_t versions = json_object_array_length(a->versions), lost = json_object_array_length(a->lost);

    cli_json_for_terminal(a->said);
    cli_json_for_terminal(a->versions);
    cli_json_for_terminal(a->lost);
    cli_json_for_terminal(a->nulls);
    printf("%s: read from %s\n", name, a->state);
    for (size_t i = 0; i < json_object_array_length(a->said); i++)
        printf("%s\n", json_object_get_string(json_object_array_get_idx(a->said, i)));
    for (size_t i = 0; i < versions; i++) {
        json_object *v = json_object_array_get_idx(a->versions, i), *label, *state, *same = NULL;
        json_object_object_get_ex(v, "name", &label);
        json_object_object_get_ex(v, "state", &state);
        printf("version %s: %s%s\n", json_object_get_string(label), json_object_get_string(state),
               json_object_object_get_ex(v, "same_as_before", &same)
                   ? "; what can be read of it is the version before, so it has no place of its own"
                   : "");
    }
    if (lost > 0)
        printf(dry ? "would be lost:\n" : "lost:\n");
    for (size_t i = 0; i < lost; i++)
        print_loss(i + 1, json_object_array_get_idx(a->lost, i));
    if (a->dangling > 0)
        printf("%llu reference%s to what is not there %s null", (unsigned long long)a->dangling,
               a->dangling == 1 ? "" : "s", a->dangling == 1 ? "is" : "are");
    for (size_t i = 0; i < json_object_array_length(a->nulls); i++)
        fputs(json_object_get_string(json_object_array_get_idx(a->nulls, i)), stdout);
    if (a->dangling > 0)
        putchar('\n');
    if (lost == 0)
        printf(dry ? "nothing would be lost\n" : "nothing is lost\n");
    if (!dry)
        printf("'%s' was made\n", out);
}

static json_object *as_json(const char *name, const char *out, bool dry, const answer *a)
{
    json_object *whole = json_object_new_object(), *lost = json_object_new_array();

    json_object_object_add(whole, "file", cli_json_text(name));
    json_object_object_add(whole, "out", dry ? NULL : cli_json_text(out));
    json_object_object_add(whole, "state", json_object_new_string(a->state));
    json_object_object_add(whole, "said", json_object_get(a->said));
    json_object_object_add(whole, "versions", json_object_get(a->versions));
    for (size_t i = 0; i < json_object_array_length(a->lost); i++) {
        json_object *entry = json_object_array_get_idx(a->lost, i), *what, *versions;
        json_object_object_get_ex(entry, "what", &what);
        json_object_object_get_ex(entry, "versions", &versions);
        json_object_object_add(what, "versions", json_object_get(versions));
        json_object_array_add(lost, json_object_get(what));
    }
    json_object_object_add(whole, "lost", lost);
    json_object_object_add(whole, "null_references", json_object_new_uint64(a->dangling));
    return whole;
}

static answer answer_new(void)
{
    return (answer){.said = json_object_new_array(),
                    .tried = json_object_new_array(),
                    .versions = json_object_new_array(),
                    .lost = json_object_new_array(),
                    .nulls = json_object_new_array()};
}

static void answer_free(answer *a)
{
    free(a->state);
    free(a->failed);
    json_object_put(a->said);
    json_object_put(a->tried);
    json_object_put(a->versions);
    json_object_put(a->lost);
    json_object_put(a->nulls);
}

/* ": " and why nothing was saved, or nothing; free() it. */
static char *why_nothing(const answer *a)
{
    json_object *first = json_object_array_get_idx(a->lost, 0), *what = NULL, *why = NULL, *object = NULL;

    if (json_object_array_length(a->tried) > 0)
        return cli_format(": %s", json_object_get_string(json_object_array_get_idx(a->tried, 0)));
    if (!json_object_object_get_ex(first, "what", &what) || !json_object_object_get_ex(what, "why", &why))
        return cli_strdup("");
    json_object_object_get_ex(what, "object", &object);
    return cli_format(": %s: %s", object == NULL ? "/" : json_object_get_string(object), json_object_get_string(why));
}

/* 0, or CLI_FAILED and said what is lost. */
static int all_whole(const char *name, const answer *a)
{
    json_object *what, *why, *object, *first = json_object_array_get_idx(a->lost, 0);

    if (a->nothing || !a->saved) {
        char *reason = why_nothing(a);
        cli_fail("'%s' is damaged: nothing of it can be read%s; try: h5cow recover", name, reason);
        free(reason);
        return CLI_FAILED;
    }
    if (json_object_object_get_ex(first, "what", &what) && json_object_object_get_ex(what, "why", &why)) {
        object = NULL;
        json_object_object_get_ex(what, "object", &object);
        return cli_fail("'%s' is damaged: %s: %s; 'h5cow verify' says what is left", name,
                        object == NULL ? "a version" : json_object_get_string(object), json_object_get_string(why));
    }
    if (json_object_array_length(a->said) > 0)
        return cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", name,
                        json_object_get_string(json_object_array_get_idx(a->said, 0)));
    if (strcmp(a->state, salvage_whole_state) != 0)
        return cli_fail("'%s' is damaged: only %s can be read; try: h5cow recover", name, a->state);
    return CLI_OK;
}

int cli_salvage_whole(const char *name, const cow_newfile *new)
{
    answer a = answer_new();
    int status;

    a.whole = true;
    status = run(name, new, &a) != 0 ? CLI_FAILED : all_whole(name, &a);
    answer_free(&a);
    return status;
}

int cli_salvage(const char *name, const char *out, bool dry, bool json)
{
    cli_output output = CLI_OUTPUT_NONE;
    char text[1024];
    answer a = answer_new();
    cow_journal_report look;
    int status = CLI_FAILED;

    if (cow_journal_inspect(name, &look) < 0) {
        cli_fail("%s", cli_reason(text, sizeof text));
        goto done;
    }
    cow_journal_report_free(&look);
    if (look.writing) {
        cli_fail("'%s' is being written by %s; to copy it: h5cow copy", name, look.writer);
        goto done;
    }
    if (look.unfinished) {
        cli_fail("'%s' holds nothing: the program that created it died before its first commit", name);
        goto done;
    }
    if (!look.journal && !look.hidden && cow_disk_mentions(&cow_disk_system, name, COW_GROUP, UINT64_MAX) == 0) {
        cli_fail("nothing can be read of '%s': there is no history in it, and h5cow saves only files that have one; "
                 "'%s' was not made",
                 name, out);
        goto done;
    }
    if ((!dry && cli_output_make(&output, out) != 0) || run(name, &output.new, &a) != 0)
        goto done;
    if (a.nothing || !a.saved) {
        char *why = why_nothing(&a);
        cli_fail("nothing can be read of '%s'%s; '%s' was not made", name, why, out);
        free(why);
        goto done;
    }
    if (!dry &&
        ((status = cli_output_same_history(&output, name)) != 0 || (status = cli_output_place(&output, name)) != 0))
        goto done;
    status = json_object_array_length(a.lost) > 0 ? CLI_DAMAGED : CLI_OK;
    if (json) {
        if (cli_json(as_json(name, out, dry, &a)) != 0)
            status = CLI_FAILED;
    } else {
        print_text(name, out, dry, &a);
        if (cli_flush() != 0)
            status = CLI_FAILED;
    }
done:
    cli_output_drop(&output);
    answer_free(&a);
    return status;
}
