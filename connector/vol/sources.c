/* The sources of an application's own virtual dataset: which file and dataset a mapping means, as native HDF5 finds them,
 * and their elements.
 *
 * A source in the same file is an object of that file like any other. One in another file is opened through this
 * connector, and the file stays open until the virtual dataset is closed, as HDF5 keeps it: with that, or when the program
 * flushes the virtual dataset's file, a file with history gets its version.
 */
#include "vol/vol.h"

#include "base/ids.h"
#include "journal/journal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEEPEST 32   /* virtual datasets over virtual datasets */
#define MOST    1000 /* files of one name with a number are looked at for a history */

struct cow_mapped_source_file {
    cow_mapped_source_file *next;
    char *name; /* as mappings have it */
    hid_t id;
};

static unsigned depth;

/* ---- names ---- */

/* The file or dataset name of mapping I, for block N: %b is the number, %% is %. *NUMBERED: it has one. free() it. */
static char *mapping_name(hid_t dcpl, size_t i, bool dataset, hsize_t n, bool *numbered)
{
    ssize_t length = dataset ? H5Pget_virtual_dsetname(dcpl, i, NULL, 0) : H5Pget_virtual_filename(dcpl, i, NULL, 0);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1), *name = NULL;
    size_t at = 0;

    if (length < 0) {
        cow_error_native("cannot read a mapping of a virtual dataset");
        return NULL;
    }
    if (text != NULL && (dataset ? H5Pget_virtual_dsetname(dcpl, i, text, (size_t)length + 1)
                                 : H5Pget_virtual_filename(dcpl, i, text, (size_t)length + 1)) >= 0)
        name = malloc(22 * (size_t)length + 1);
    for (const char *c = text; name != NULL && *c != '\0'; c++)
        if (c[0] == '%' && c[1] == 'b') {
            at += (size_t)sprintf(name + at, "%llu", (unsigned long long)n);
            *numbered = true;
            c++;
        } else {
            name[at++] = *c;
            c += c[0] == '%' && c[1] == '%';
        }
    if (name == NULL)
        cow_error(COW_MEMORY, "no memory for the name of a source");
    else
        name[at] = '\0';
    free(text);
    return name;
}

hid_t cow_mapped_dapl(const cow_object *o)
{
    H5VL_dataset_get_args_t get = {.op_type = H5VL_DATASET_GET_DAPL};

    if (H5VLdataset_get(cow_object_opened(o), cow_native_id(), &get, H5P_DATASET_XFER_DEFAULT, NULL) < 0) {
        cow_error_native("cannot read the access properties of a virtual dataset");
        return H5I_INVALID_HID;
    }
    return get.args.get_dapl.dapl_id;
}

/* Names under which HDF5 looks for a file, in that order. */
typedef struct candidates {
    char name[8][PATH_MAX];
    size_t count;
} candidates;

static void add_candidate(candidates *c, const char *folder, size_t length, const char *name)
{
    bool slash = length == 0 || folder[length - 1] == '/' || *name == '/';

    if (c->count < sizeof c->name / sizeof *c->name && length + strlen(name) + 2 <= PATH_MAX)
        snprintf(c->name[c->count++], PATH_MAX, "%.*s%s%s", (int)length, folder, slash ? "" : "/", name);
}

static char *file_of(const cow_object *o)
{
    size_t length = 0;
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_NAME};
    char *name = NULL;

    get.args.get_name = (H5VL_file_get_name_args_t){.type = H5I_DATASET, .file_name_len = &length};
    if (H5VLfile_get(o->handle, cow_native_id(), &get, H5P_DATASET_XFER_DEFAULT, NULL) >= 0 &&
        (name = calloc(1, length + 1)) != NULL) {
        get.args.get_name.buf = name;
        get.args.get_name.buf_size = length + 1;
        if (H5VLfile_get(o->handle, cow_native_id(), &get, H5P_DATASET_XFER_DEFAULT, NULL) >= 0)
            return name;
    }
    free(name);
    cow_error_native("cannot tell the file of a virtual dataset");
    return NULL;
}

static void add_folder_of(candidates *c, const char *file, const char *name)
{
    const char *slash = strrchr(file, '/');

    if (slash != NULL)
        add_candidate(c, file, (size_t)(slash - file) + 1, name);
}

/* As H5F_prefix_open_file. */
static int find_candidates(const cow_object *o, const char *name, candidates *c)
{
    const char *env = getenv("HDF5_VDS_PREFIX");
    char prefix[PATH_MAX] = "", *file = file_of(o), *real;
    hid_t dapl = o->dapl > 0 ? H5Pcopy(o->dapl) : cow_mapped_dapl(o);

    c->count = 0;
    if (file == NULL || dapl < 0) {
        free(file);
        cow_close(dapl);
        return -1;
    }
    if (*name == '/') {
        add_candidate(c, "", 0, name);
        name = strrchr(name, '/') + 1;
    }
    for (const char *end; env != NULL && *env != '\0'; env = *end == '\0' ? end : end + 1) {
        end = env + strcspn(env, ":");
        if (end > env)
            add_candidate(c, env, (size_t)(end - env), name);
    }
    if (H5Pget_virtual_prefix(dapl, prefix, sizeof prefix) > 0)
        add_candidate(c, prefix, strlen(prefix), name);
    add_folder_of(c, file, name);
    add_candidate(c, "", 0, name);
    if ((real = realpath(file, NULL)) != NULL)
        add_folder_of(c, real, name);
    free(real);
    free(file);
    H5Pclose(dapl);
    return 0;
}

/* ---- which virtual datasets are ours ---- */

/* As cow_has_history, which only works where HDF5 opens or creates a file. */
static int has_history(const char *name)
{
    hid_t plain, under, file = H5I_INVALID_HID;
    int history = 0;

    if (cow_journal_present(name))
        return 1;
    if ((plain = cow_sec2_fapl()) < 0 || (under = cow_native_fapl(plain)) < 0) {
        cow_close(plain);
        return cow_error_native("cannot look at a source of a virtual dataset");
    }
    H5E_BEGIN_TRY
    {
        if (cow_vol_file_use_journal(under, plain, NULL) == 0 && (file = H5Fopen(name, H5F_ACC_RDONLY, under)) >= 0) {
            history = H5Lexists(file, COW_ROOT, H5P_DEFAULT) > 0 &&
                      H5Aexists_by_name(file, COW_ROOT, COW_FORMAT_NAME, H5P_DEFAULT) > 0;
            H5Fclose(file);
        }
    }
    H5E_END_TRY
    cow_error_clear();
    cow_close(plain, under);
    return history;
}

/* Has the file that NAME leads to a history? *MISSING: there is no such file. */
static int leads_to_history(const cow_object *o, const char *name, bool *missing)
{
    candidates c;
    char *at;
    int history = 0;

    if (find_candidates(o, name, &c) < 0)
        return -1;
    *missing = true;
    for (size_t i = 0; *missing && i < c.count; i++) {
        if (access(c.name[i], F_OK) != 0 && (at = strrchr(c.name[i], '@')) != NULL)
            *at = '\0'; /* of a version */
        if (access(c.name[i], F_OK) != 0)
            continue;
        *missing = false;
        history = has_history(c.name[i]);
    }
    return history;
}

int cow_mapped_serves(const cow_object *o, hid_t dcpl, bool *own, bool *missing)
{
    size_t count = 0;
    int serves = 0;

    *own = *missing = false;
    if (H5Pget_layout(dcpl) != H5D_VIRTUAL)
        return 0;
    if (H5Pget_virtual_count(dcpl, &count) < 0)
        return cow_error_native("cannot read the mappings of a virtual dataset");
    for (size_t i = 0; serves >= 0 && i < count; i++) {
        bool numbered = true, absent = false;

        for (hsize_t n = 0; numbered && !absent && serves >= 0 && n < MOST; n++) {
            char *name;
            int history;

            numbered = false;
            if ((name = mapping_name(dcpl, i, false, n, &numbered)) == NULL)
                return -1;
            if (strcmp(name, ".") == 0) {
                history = o->home->file != NULL;
                *own = *own || history;
            } else {
                history = leads_to_history(o, name, &absent);
                *missing = *missing || absent;
            }
            free(name);
            serves = history < 0 ? -1 : serves || history;
        }
    }
    return serves;
}

/* ---- files ---- */

/* The options of the virtual dataset's file, but for those that name a version of it: at, name. */
static cow_options *source_options(const cow_object *o)
{
    char *text = o->home->options == NULL ? strdup("") : cow_options_text(o->home->options), *rest = text;
    cow_options *options = NULL;

    while (rest != NULL && (strncmp(rest, "at=", 3) == 0 || strncmp(rest, "name=", 5) == 0)) {
        rest += strcspn(rest, ";");
        rest += *rest == ';';
    }
    if (rest == NULL)
        cow_error(COW_MEMORY, "no memory for the connector's options");
    else
        options = cow_options_parse(rest);
    free(text);
    return options;
}

/* A list for sources: through this connector. */
static hid_t source_fapl(const cow_object *o)
{
    cow_options *options = source_options(o);
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS),
          connector = H5VLregister_connector_by_name(COW_CONNECTOR_NAME, H5P_VOL_INITIALIZE_DEFAULT);

    if (options == NULL || fapl < 0 || connector < 0 || H5Pset_vol(fapl, connector, options) < 0 ||
        H5Pset_fclose_degree(fapl, H5F_CLOSE_WEAK) < 0) {
        cow_error_native("cannot prepare to open a source of a virtual dataset");
        cow_close(fapl);
        fapl = H5I_INVALID_HID;
    }
    if (connector >= 0)
        H5VLclose(connector);
    cow_options_free(options);
    return fapl;
}

static bool writes(const cow_object *o)
{
    return o->home->version == NULL && (o->home->file != NULL ? cow_file_writable(o->home->file) : o->home->writable);
}

/* *ID: H5I_INVALID_HID where there is no such file. */
static int open_file(cow_object *o, const char *name, hid_t *id)
{
    cow_mapped_source_file *file;
    candidates c;
    hid_t fapl;

    *id = H5I_INVALID_HID;
    for (file = o->sources; file != NULL; file = file->next)
        if (strcmp(file->name, name) == 0) {
            *id = file->id;
            return 0;
        }
    if (find_candidates(o, name, &c) < 0 || (fapl = source_fapl(o)) < 0)
        return -1;
    H5E_BEGIN_TRY
    {
        for (size_t i = 0; *id < 0 && i < c.count; i++) {
            *id = H5Fopen(c.name[i], writes(o) ? H5F_ACC_RDWR : H5F_ACC_RDONLY, fapl);
            if (*id < 0 && writes(o) && access(c.name[i], F_OK) != 0 && strchr(c.name[i], '@') != NULL)
                *id = H5Fopen(c.name[i], H5F_ACC_RDONLY, fapl); /* a version */
        }
    }
    H5E_END_TRY
    cow_error_clear();
    H5Pclose(fapl);
    if (*id < 0)
        return 0;
    if ((file = calloc(1, sizeof *file)) == NULL || (file->name = strdup(name)) == NULL) {
        free(file);
        H5Fclose(*id);
        return cow_error(COW_MEMORY, "no memory for a source of a virtual dataset");
    }
    file->id = *id;
    file->next = o->sources;
    o->sources = file;
    return 0;
}

int cow_sources_close(cow_object *o)
{
    int status = 0;

    if (o->dapl > 0)
        H5Pclose(o->dapl);
    if (o->shape > 0)
        H5Sclose(o->shape);
    o->dapl = o->shape = 0;
    while (o->sources != NULL) {
        cow_mapped_source_file *file = o->sources;

        o->sources = file->next;
        if (H5Iis_valid(file->id) > 0 && H5Fclose(file->id) < 0) {
            status = cow_error_native("cannot commit what was written to a source of a virtual dataset");
            H5Fclose(file->id); /* without a commit */
        }
        free(file->name);
        free(file);
    }
    return status;
}

int cow_sources_flush(const cow_home *home)
{
    for (const cow_object *o = home->datasets; o != NULL; o = o->next)
        for (const cow_mapped_source_file *file = writes(o) ? o->sources : NULL; file != NULL; file = file->next)
            if (H5Fflush(file->id, H5F_SCOPE_LOCAL) < 0)
                return cow_error_native("cannot commit what was written to a source of a virtual dataset");
    return 0;
}

/* ---- one source ---- */

static int open_own(cow_object *o, const char *name, cow_mapped_source *source)
{
    cow_loc here = {cow_object_opened(o), H5I_DATASET};
    const char *version = o->home->version == NULL ? "" : o->home->version;
    char *path = malloc(strlen(version) + strlen(name) + 2);
    H5VL_loc_params_t loc;
    void *native;
    H5O_info2_t info;
    int found;

    if (path == NULL)
        return cow_error(COW_MEMORY, "no memory for the name of a source");
    sprintf(path, "%s/%s", version, name);
    loc = cow_by_name(H5I_DATASET, path);
    /* whatever the reason for which it cannot be followed, to HDF5 there is no source */
    if ((found = cow_info_quietly(cow_object_opened(o), &loc, &info)) > 0 &&
        (found = info.type == H5O_TYPE_DATASET) > 0)
        found = (native = cow_native_dataset_open(here, path)) != NULL &&
                        (source->object = cow_object_wrap(o, native, H5I_DATASET, false)) != NULL
                    ? 1
                    : -1;
    free(path);
    if (found <= 0)
        return found;
    if (source->object->dataset != NULL)
        source->space = cow_dataset_space(source->object->dataset);
    else if (cow_vol_dataset_learn(source->object) == 0)
        source->space = source->object->mapped ? cow_mapped_space(source->object)
                                               : cow_native_dataset_space(cow_object_opened(source->object));
    return source->space < 0 ? -1 : 1;
}

static int open_other(cow_object *o, const char *file_name, const char *name, cow_mapped_source *source)
{
    hid_t file;

    if (open_file(o, file_name, &file) < 0)
        return -1;
    if (file < 0)
        return 0;
    H5E_BEGIN_TRY
    {
        source->id = H5Dopen2(file, name, H5P_DEFAULT);
    }
    H5E_END_TRY
    cow_error_clear();
    if (source->id < 0)
        return 0;
    return (source->space = H5Dget_space(source->id)) < 0 ? cow_error_native("cannot use a source of a virtual dataset")
                                                          : 1;
}

int cow_mapped_source_open(cow_object *o, hid_t dcpl, size_t i, hsize_t n, cow_mapped_source *source)
{
    bool numbered;
    char *file = mapping_name(dcpl, i, false, n, &numbered), *name = mapping_name(dcpl, i, true, n, &numbered);
    int found = -1;

    *source = (cow_mapped_source){.id = H5I_INVALID_HID, .space = H5I_INVALID_HID};
    if (depth >= DEEPEST)
        cow_error(COW_USAGE, "virtual datasets are the sources of one another, more than %d deep", DEEPEST);
    else if (file != NULL && name != NULL) {
        depth++;
        found = strcmp(file, ".") == 0 ? open_own(o, name, source) : open_other(o, file, name, source);
        depth--;
    }
    free(file);
    free(name);
    if (found <= 0 && cow_mapped_source_close(source) < 0)
        found = -1;
    return found;
}

int cow_mapped_source_close(cow_mapped_source *source)
{
    int status = 0;

    cow_close(source->space);
    if ((source->id > 0 && H5Dclose(source->id) < 0) ||
        (source->object != NULL && cow_vol_dataset_close(source->object, H5P_DATASET_XFER_DEFAULT, NULL) < 0))
        status = cow_error_native("cannot close a source of a virtual dataset");
    *source = (cow_mapped_source){.id = H5I_INVALID_HID, .space = H5I_INVALID_HID};
    return status;
}

int cow_mapped_source_read(cow_mapped_source *source, hid_t mem_type, hid_t memory, hid_t from, hid_t dxpl, void *buf)
{
    void *object = source->object;
    herr_t status = -1;

    if (depth++ < DEEPEST)
        status = object != NULL ? cow_vol_dataset_read(1, &object, &mem_type, &memory, &from, dxpl, &buf, NULL)
                                : H5Dread(source->id, mem_type, memory, from, dxpl, buf);
    depth--;
    return status < 0 ? cow_error_native("cannot read a source of a virtual dataset") : 0;
}

hid_t cow_mapped_source_dcpl(const cow_mapped_source *source)
{
    H5VL_dataset_get_args_t args = {.op_type = H5VL_DATASET_GET_DCPL, .args.get_dcpl.dcpl_id = H5I_INVALID_HID};

    if (source->object == NULL)
        return H5Dget_create_plist(source->id);
    return cow_vol_dataset_get(source->object, &args, H5P_DATASET_XFER_DEFAULT, NULL) < 0 ? H5I_INVALID_HID
                                                                                          : args.args.get_dcpl.dcpl_id;
}

int cow_mapped_source_write(cow_mapped_source *source, hid_t mem_type, hid_t memory, hid_t to, hid_t dxpl,
                            const void *buf)
{
    void *object = source->object;
    herr_t status = -1;

    if (depth++ < DEEPEST)
        status = object != NULL ? cow_vol_dataset_write(1, &object, &mem_type, &memory, &to, dxpl, &buf, NULL)
                                : H5Dwrite(source->id, mem_type, memory, to, dxpl, buf);
    depth--;
    return status < 0 ? cow_error_native("cannot write to a source of a virtual dataset") : 0;
}
