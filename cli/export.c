/* h5cow export: one version as a plain HDF5 file. Reads through the connector, as an application would; writes with
 * native HDF5, to a temporary name beside the target that takes its place when everything is on disk. */
#include "base/ids.h"
#include "common.h"
#include "history/history.h"
#include "import/tree.h"
#include "library/library.h"
#include "object.h"
#include "output.h"
#include "plugin.h"
#include "progress.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char cli_export_help[] =
    "Usage: h5cow export [OPTION]... FILE[@REV] OUT\n\n"
    "Writes version REV of FILE, or the newest, as the plain HDF5 file OUT, with the layouts, filters and fill values\n"
    "that the application chose. OUT has no history, can be changed by any program, and is complete or not there.\n"
    "It gets the owner and the permissions of FILE, as far as this user may give them; never wider ones.\n\n"
    "  -f, --force             replace OUT if it is a regular file that no program has open\n"
    "      --discard-history   with --force: also if OUT has a history, which is lost\n"
    "  -q, --quiet           no progress bar\n"
    "  -h, --help\n";

/* A new native file whose root group, and user block, are like those of FROM. */
static hid_t create_plain(const char *name, hid_t from, hid_t native, hsize_t *user_block)
{
    hid_t own = H5Fget_create_plist(from), fcpl = H5Pcreate(H5P_FILE_CREATE), fapl = H5Pcreate(H5P_FILE_ACCESS);
    hid_t root = H5Gopen2(from, "/", H5P_DEFAULT), file = H5I_INVALID_HID;
    char text[512];

    if (own < 0 || fcpl < 0 || fapl < 0 || root < 0 || H5Pget_userblock(own, user_block) < 0 ||
        H5Pset_userblock(fcpl, *user_block) < 0 || H5Pset_vol(fapl, native, NULL) < 0 || H5Pset_fapl_sec2(fapl) < 0 ||
        H5Pset_libver_bounds(fapl, H5F_LIBVER_V18, cow_library_latest()) <
            0 || /* attributes of 64 KiB and more need it */
        cow_tree_group_settings(root, fcpl) < 0 ||
        (file = H5Fcreate(name, H5F_ACC_TRUNC, fcpl, fapl)) < 0)
        cli_fail("a new file cannot be made: %s", cli_reason(text, sizeof text));
    cow_close(root, fapl, fcpl, own);
    return file;
}

static void tell_nulls(const cow_tree_nulls *nulls, const char *led_to, const char *out)
{
    char where[sizeof nulls->where + 60];

    cow_tree_nulls_where(nulls, where, sizeof where);
    if (nulls->count > 0)
        cli_warn("%zu reference%s pointed to %s in this version, and %s null in '%s'%s", nulls->count,
                 nulls->count == 1 ? "" : "s", led_to, nulls->count == 1 ? "is" : "are", out, where);
}

static uint64_t stored_bytes(hid_t dataset)
{
    return H5Dget_storage_size(dataset);
}

typedef struct bar {
    uint64_t done, total;
} bar;

static void show(void *context, uint64_t bytes)
{
    bar *b = context;

    cli_progress("exporting", b->done += bytes, b->total);
}

static int export_version(const char *name, const char *revision, const char *out, cli_output *output)
{
    bar b = {0};
    cow_tree copy = {.from = H5I_INVALID_HID, .to = H5I_INVALID_HID, .progress = show, .context = &b};
    hid_t native = H5VLregister_connector_by_value(H5_VOL_NATIVE, H5P_DEFAULT);
    hsize_t user_block = 0;
    char text[512];
    int status = CLI_FAILED;

    if ((copy.from = cli_plugin_open(name, revision)) < 0 || cli_output_make(output, out) != 0 ||
        (copy.to = create_plain(output->new.path, copy.from, native, &user_block)) < 0)
        goto done;
    b.total = cli_object_sum(copy.from, "/", stored_bytes);
    int copied = cow_tree_copy(&copy);
    cli_progress_end();
    cow_tree_free(&copy);
    if (copied < 0) {
        cli_fail("%s: %s; '%s' was not made", name, copy.why, out);
        goto done;
    }
    hid_t to = copy.to;
    copy.to = H5I_INVALID_HID;
    if (H5Fclose(to) < 0) {
        cli_fail("cannot write '%s': %s", out, cli_reason(text, sizeof text));
        goto done;
    }
    if (user_block > 0 && cow_newfile_user_block(output->new.file, name, user_block) < 0) {
        cli_fail("%s; '%s' was not made", cli_reason(text, sizeof text), out);
        goto done;
    }
    if ((status = cli_output_place(output, name)) == 0) {
        tell_nulls(&copy.dangling, "nothing", out);
        tell_nulls(&copy.stray, "objects that no link leads to", out);
    }
done:
    cow_close(copy.to, copy.from);
    if (native >= 0)
        H5VLclose(native);
    return status;
}

int cli_export(int argc, char **argv)
{
    static const struct option options[] = {{"force", no_argument, NULL, 'f'},
                                            {"discard-history", no_argument, NULL, 'd'},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    cli_output output = CLI_OUTPUT_NONE;
    cli_file file;
    char *name = NULL, *revision = NULL, text[1024], path[1024];
    struct stat source, target;
    bool force = false, discard = false;
    int status;

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "fqh", options, NULL)) != -1;)
        switch (c) {
        case 'f':
            force = true;
            break;
        case 'd':
            discard = true;
            break;
        case 'q':
            cli_progress_off();
            break;
        case 'h':
            fputs(cli_export_help, stdout);
            return cli_flush();
        default:
            return cli_no_option("export", argv);
        }
    if (optind + 2 != argc)
        return cli_usage("export", "it wants FILE[@REV] and OUT");
    const char *out = argv[optind + 1];
    cli_hdf5_start();
    if (cli_file_open(&file, "export", argv[optind], true) != 0)
        return CLI_FAILED;
    name = cli_strdup(file.name);
    revision = cli_strdup(file.revision == NULL ? "~0" : file.revision);
    if ((status = cli_file_history(&file)) == 0 &&
        cow_revision_resolve(file.loc.object, revision, path, sizeof path) < 0)
        status = cli_fail("%s", cli_reason(text, sizeof text));
    cli_file_close(&file);
    if (status != 0)
        goto done;
    free(revision); /* from now on by its name: "~0" may mean another version a moment later */
    revision = cli_strdup(strrchr(path, '/') + 1);
    if (stat(name, &source) == 0 && stat(out, &target) == 0 && source.st_dev == target.st_dev &&
        source.st_ino == target.st_ino)
        status = cli_fail("'%s' is the file itself: export to another name", out);
    else if (force)
        status = cli_output_claim(&output, out, discard);
    else if (lstat(out, &target) == 0)
        status = S_ISREG(target.st_mode)
                     ? cli_fail("'%s' exists: choose another name, or say --force to replace it", out)
                     : cli_output_absent(out);
    if (status == 0)
        status = export_version(name, revision, out, &output);
done:
    cli_output_drop(&output);
    free(name);
    free(revision);
    return status;
}
