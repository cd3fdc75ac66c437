/* Finding the plugin and trying it out. See plugin.h.
 *
 * When HDF5 cannot load a connector that the environment names, most programs go on without it, after messages that
 * nobody reads: the data would be written without history. So the plugin is loaded once before, in a child process,
 * because a library that fails to initialise stays useless in the process that tried.
 */
#include "child.h"
#include "plugin.h"

#include "base/error.h"
#include "base/options.h"
#include "common.h"
#include "h5cow.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* FOLDER, if the plugin is in it; frees FOLDER if not. Notes it in *LOOKED. */
static char *if_there(char *folder, char **looked)
{
    char *path = cli_format("%s/" CLI_PLUGIN_FILE, folder);
    char *resolved = realpath(folder, NULL);
    int there = access(path, F_OK) == 0;

    free(path);
    if (looked != NULL) {
        char *longer = cli_format("%s%s%s", *looked == NULL ? "" : *looked, *looked == NULL ? "" : ", ", folder);
        free(*looked);
        *looked = longer;
    }
    free(folder);
    if (there && resolved != NULL)
        return resolved;
    free(resolved);
    return NULL;
}

char *cli_plugin_directory(char **looked)
{
    static const char *const beside[] = {".", "../connector"};
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *path = getenv("HDF5_PLUGIN_PATH");
    char *found = NULL;

    if (looked != NULL)
        *looked = NULL;
    if (n > 0) {
        self[n] = '\0';
        *strrchr(self, '/') = '\0';
        for (size_t i = 0; found == NULL && i < sizeof beside / sizeof *beside; i++)
            found = if_there(cli_format("%s/%s", self, beside[i]), looked);
    }
#ifdef H5COW_PLUGINDIR
    if (found == NULL)
        found = if_there(cli_strdup(H5COW_PLUGINDIR), looked);
#endif
    if (path != NULL) {
        char *copy = cli_strdup(path), *rest = copy;
        for (char *folder; found == NULL && (folder = strsep(&rest, ":")) != NULL;)
            if (*folder != '\0')
                found = if_there(cli_strdup(folder), looked);
        free(copy);
    }
    if (found == NULL)
        found = if_there(cli_strdup(H5_DEFAULT_PLUGINDIR), looked);
    return found;
}

char *cli_plugin_for_programs(void)
{
    const char *path = getenv("HDF5_PLUGIN_PATH");
    char *copy = cli_strdup(path == NULL ? H5_DEFAULT_PLUGINDIR : path), *rest = copy, *found = NULL;

    for (char *folder; found == NULL && (folder = strsep(&rest, ":")) != NULL;)
        if (*folder != '\0')
            found = if_there(cli_strdup(folder), NULL);
    free(copy);
    return found;
}

/* Where it is; NULL: said that it is nowhere, and AFTER. */
static char *directory_or_fail(const char *after)
{
    char *looked, *directory = cli_plugin_directory(&looked);

    if (directory == NULL)
        cli_fail("the plugin " CLI_PLUGIN_FILE " is nowhere (looked in %s): install h5cow, or set HDF5_PLUGIN_PATH to "
                 "its folder%s",
                 looked, after);
    free(looked);
    return directory;
}

char *cli_plugin_tried(const char *options, const char *after)
{
    cow_options *good = options == NULL ? NULL : cow_options_parse(options);
    char *directory = NULL, why[1024];

    if (options != NULL && good == NULL)
        cli_fail("%s%s", cow_error_message(), after);
    else if ((directory = directory_or_fail(after)) != NULL && options != NULL &&
             cli_plugin_probe(directory, options, why, sizeof why) < 0) {
        cli_fail("the plugin %s/" CLI_PLUGIN_FILE " cannot be used: %s%s", directory, why, after);
        free(directory);
        directory = NULL;
    }
    cow_options_free(good);
    return directory;
}

hid_t cli_plugin_load(const char *options, void **info)
{
    char *directory = directory_or_fail(""), text[1024];
    hid_t connector = H5I_INVALID_HID;

    *info = NULL;
    if (directory == NULL)
        return H5I_INVALID_HID;
    if (H5PLprepend(directory) < 0 || (connector = H5VLregister_connector_by_name("h5cow", H5P_DEFAULT)) < 0)
        cli_fail("the plugin %s/" CLI_PLUGIN_FILE " does not load: %s; 'h5cow doctor' says more", directory,
                 cli_reason(text, sizeof text));
    else if (H5VLconnector_str_to_info(options, connector, info) < 0) {
        cli_fail("%s", cli_reason(text, sizeof text));
        H5VLclose(connector);
        connector = H5I_INVALID_HID;
    }
    free(directory);
    return connector;
}

void cli_plugin_unload(hid_t connector, void *info)
{
    if (info != NULL)
        H5VLfree_connector_info(connector, info);
    if (connector >= 0)
        H5VLclose(connector);
}

char *cli_plugin_path_without(const char *directory)
{
    const char *path = getenv("HDF5_PLUGIN_PATH");
    char *copy = cli_strdup(path == NULL ? "" : path), *rest = copy, *left = NULL;

    for (char *folder; (folder = strsep(&rest, ":")) != NULL;)
        if (*folder != '\0' && strcmp(folder, directory) != 0) {
            char *longer = cli_format("%s%s%s", left == NULL ? "" : left, left == NULL ? "" : ":", folder);
            free(left);
            left = longer;
        }
    free(copy);
    return left;
}

char *cli_plugin_search_path(const char *directory)
{
    const char *path = getenv("HDF5_PLUGIN_PATH");
    bool given = path != NULL && *path != '\0';
    char *others = given ? cli_plugin_path_without(directory) : cli_strdup(H5_DEFAULT_PLUGINDIR);
    char *search = others == NULL ? cli_strdup(directory) : cli_format("%s:%s", directory, others);

    free(others);
    return search;
}

void cli_plugin_option(char **options, const char *key, size_t length, const char *value)
{
    char *escaped = cli_alloc(3 * strlen(value) + 1, 1), *p = escaped, *longer;

    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;
        p += sprintf(p, c == ';' || c == '%' || c < 0x20 || c == 0x7f ? "%%%02X" : "%c", c);
    }
    longer = cli_format("%s%s%.*s=%s", *options, **options == '\0' ? "" : ";", (int)length, key, escaped);
    free(escaped);
    free(*options);
    *options = longer;
}

char *cli_plugin_connector(const char *options)
{
    return *options == '\0' ? cli_strdup("h5cow") : cli_format("h5cow %s", options);
}

/* FLAGS as of H5Fopen; H5F_ACC_TRUNC: of H5Fcreate. SHOWN: the name for people. */
static hid_t open_file(const char *name, const char *shown, const char *revision, const char *options, unsigned flags)
{
    void *info = NULL;
    hid_t connector = cli_plugin_load(options, &info), fapl = H5I_INVALID_HID, file = H5I_INVALID_HID;
    char text[1024];
    bool waits = flags == H5F_ACC_RDWR; /* every verb that changes a file has --wait */

    if (connector >= 0 &&
        ((fapl = H5Pcreate(H5P_FILE_ACCESS)) < 0 || H5Pset_fapl_sec2(fapl) < 0 ||
         H5Pset_vol(fapl, connector, info) < 0 ||
         (file = flags == H5F_ACC_TRUNC ? H5Fcreate(name, flags, H5P_DEFAULT, fapl) : H5Fopen(name, flags, fapl)) < 0))
        cli_fail("%s%s%s'%s' cannot be %s: %s", revision == NULL ? "" : "version '", revision == NULL ? "" : revision,
                 revision == NULL ? "" : "' of ", shown, flags == H5F_ACC_TRUNC ? "made" : "opened",
                 waits ? cli_wait_reason(text, sizeof text) : cli_reason(text, sizeof text));
    if (fapl >= 0)
        H5Pclose(fapl);
    cli_plugin_unload(connector, info);
    return file;
}

hid_t cli_plugin_open(const char *name, const char *revision)
{
    char *options = cli_strdup("");
    hid_t file;

    if (revision != NULL)
        cli_plugin_option(&options, "at", 2, revision);
    file = open_file(name, name, revision, options, H5F_ACC_RDONLY);
    free(options);
    return file;
}

int cli_wait(const char *verb, const char *text, unsigned *seconds)
{
    char *option = cli_strdup("");
    cow_options *options;
    int status = 0;

    cli_plugin_option(&option, "lock_timeout", 12, text);
    if (strspn(text, "0123456789") != strlen(text) || (options = cow_options_parse(option)) == NULL) {
        cow_error_clear();
        status = cli_usage(verb, "'--wait' wants seconds, 0 to 86400, not '%s'", text);
    } else {
        *seconds = options->lock_timeout;
        cow_options_free(options);
    }
    free(option);
    return status;
}

const char *cli_wait_reason(char *text, size_t size)
{
    static const char option[] = "set the option lock_timeout=SECONDS", word[] = "say --wait=SECONDS";
    char *at;

    cli_reason(text, size);
    at = strstr(text, option);
    if (at != NULL) {
        memmove(at + strlen(word), at + strlen(option), strlen(at + strlen(option)) + 1);
        memcpy(at, word, strlen(word));
    }
    return text;
}

hid_t cli_plugin_change(const char *name, unsigned seconds)
{
    char *options = cli_format("lock_timeout=%u", seconds);
    hid_t file = cli_plugin_write(name, options);

    free(options);
    return file;
}

hid_t cli_plugin_write(const char *name, const char *options)
{
    return open_file(name, name, NULL, options, H5F_ACC_RDWR);
}

hid_t cli_plugin_make(const char *path, const char *shown, const char *options)
{
    return open_file(path, shown, NULL, options, H5F_ACC_TRUNC);
}

int cli_plugin_failed_after(hid_t file, const char *done)
{
    char why[1024];

    cli_reason(why, sizeof why);
    H5E_BEGIN_TRY
    {
        h5cow_abort(file); /* of a file that is read an error, which says nothing */
        H5Fclose(file);
    }
    H5E_END_TRY
    return cli_fail("%s; %s", why, done);
}

int cli_plugin_failed(hid_t file)
{
    return cli_plugin_failed_after(file, "nothing was changed");
}

int cli_plugin_close(hid_t file, const char *name)
{
    char why[1024];

    return H5Fclose(file) < 0 ? cli_fail("'%s' cannot be closed: %s", name, cli_reason(why, sizeof why)) : 0;
}

uint64_t cli_plugin_versions(hid_t file)
{
    h5cow_state_t state;
    uint64_t count = h5cow_version(file, &state) < 0 || state.version == NULL ? 0 : state.version->number;

    h5cow_free(state.version);
    return count;
}

int cli_plugin_settle(int (*open)(void *context, const char *argument, hid_t *file, size_t *versions), void *context,
                      const char *argument, char **name, hid_t *file)
{
    enum { TRIES = 100 };

    for (int n = 0; n <= TRIES; n++) {
        size_t versions;
        int status = open(context, argument, file, &versions);

        if (status != 0 || cli_plugin_versions(*file) == versions)
            return status;
        H5Fclose(*file);
    }
    return cli_fail("'%s': others make versions all the time; try again; nothing was changed", *name);
}

/* The child's part: try it, say why not. */
static int try_it(const char *directory, const char *options, char *why, size_t size)
{
    char *path = cli_format("%s/" CLI_PLUGIN_FILE, directory);
    void *plugin = dlopen(path, RTLD_LAZY | RTLD_LOCAL), *info = NULL;
    hid_t connector, fapl;
    char text[800];

    if (plugin == NULL) {
        snprintf(why, size, "the system cannot load it: %s", dlerror());
        return -1;
    }
    if (dlsym(plugin, "H5PLget_plugin_type") == NULL || dlsym(plugin, "H5PLget_plugin_info") == NULL) {
        snprintf(why, size, "%s is not an HDF5 plugin", path);
        return -1;
    }
    unsetenv("HDF5_VOL_CONNECTOR");
    unsetenv("H5COW_WITNESS");
    if (H5open() < 0) {
        snprintf(why, size, "the HDF5 library does not start with this environment: %s", cli_reason(text, sizeof text));
        return -1;
    }
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if ((connector = H5VLregister_connector_by_name("h5cow", H5P_DEFAULT)) < 0) {
        const char *preload = getenv("HDF5_PLUGIN_PRELOAD");
        if (preload != NULL && strcmp(preload, "::") == 0)
            snprintf(why, size, "HDF5_PLUGIN_PRELOAD=:: forbids HDF5 to load any plugin: unset it");
        else
            snprintf(why, size, "HDF5 does not accept it: %s", cli_reason(text, sizeof text));
        return -1;
    }
    /* What is wrong with its options, or with this library, it says when a file is to be opened: here one in memory. */
    if ((*options != '\0' && H5VLconnector_str_to_info(options, connector, &info) < 0) ||
        (fapl = H5Pcreate(H5P_FILE_ACCESS)) < 0 || H5Pset_fapl_core(fapl, 4096, false) < 0 ||
        H5Pset_vol(fapl, connector, info) < 0 || H5Fcreate("h5cow-probe", H5F_ACC_EXCL, H5P_DEFAULT, fapl) < 0) {
        snprintf(why, size, "%s", cli_reason(text, sizeof text));
        return -1;
    }
    return 0;
}

int cli_plugin_probe(const char *directory, const char *options, char *why, size_t size)
{
    char *search = cli_plugin_search_path(directory);
    size_t used = 0;
    int ends[2], state;
    pid_t child;

    snprintf(why, size, "cannot start a process: %s", strerror(errno));
    if (strchr(directory, ':') != NULL) {
        snprintf(why, size, "its folder '%s' has a ':' in its name, which HDF5_PLUGIN_PATH cannot say", directory);
        free(search);
        return -1;
    }
    fflush(NULL);
    if (pipe(ends) < 0 || (child = fork()) < 0) {
        snprintf(why, size, "cannot start a process to try it: %s", strerror(errno));
        free(search);
        return -1;
    }
    if (child == 0) {
        char text[1024] = "";
        close(ends[0]);
        cli_child_quiet();
        setenv("HDF5_PLUGIN_PATH", search, 1);
        int code = try_it(directory, options, text, sizeof text) == 0 ? 0 : 1;
        if (write(ends[1], text, strlen(text)) < 0)
            code = 1;
        _exit(code);
    }
    close(ends[1]);
    for (ssize_t n;
         used + 1 < size && ((n = read(ends[0], why + used, size - 1 - used)) > 0 || (n < 0 && errno == EINTR));)
        used += n > 0 ? (size_t)n : 0;
    why[used] = '\0';
    close(ends[0]);
    free(search);
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            return -1;
    if (WIFSIGNALED(state))
        snprintf(why, size, "loading it ends the program: %s", strsignal(WTERMSIG(state)));
    return WIFEXITED(state) && WEXITSTATUS(state) == 0 ? 0 : -1;
}
