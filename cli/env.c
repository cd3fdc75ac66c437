/* h5cow env: what a shell, a virtual environment or a kernel has to be told so that its programs make versions.
 *
 * HDF5 2 crashes by itself when a connector that the environment names cannot be found. So nothing is told before the plugin was
 * loaded with it, and what is written into a virtual environment looks for the plugin each time that Python starts.
 */
#include "base/error.h"
#include "base/newfile.h"
#include "common.h"
#include "plugin.h"

#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char cli_env_help[] =
    "Usage: h5cow env [OPTION]...\n\n"
    "Prints what a shell must be told so that every HDF5 program started from it makes versions, as 'h5cow run' has it for\n"
    "one program. The plugin is tried out first; where it does not load, nothing is printed.\n\n"
    "      --shell=SHELL     sh (also bash, zsh, dash, ksh), fish or csh (also tcsh); default: as $SHELL says\n"
    "  -o, --option=KEY=VALUE\n"
    "                        any option of the connector (docs/options.md), for example compress=blosc:zstd:5\n"
    "      --venv[=FOLDER]   write it into a virtual environment of Python, or of conda, instead; default: the active one.\n"
    "                        Each Python of it then makes versions, unless its own HDF5_VOL_CONNECTOR says otherwise\n"
    "      --jupyter         print it as the \"env\" of a kernel.json instead\n"
    "      --unset           take it back: print that for the shell, or remove it from the virtual environment\n"
    "  -h, --help\n\n"
    "Example: eval \"$(h5cow env)\"\n";

typedef enum { SHELL_UNKNOWN, SHELL_SH, SHELL_FISH, SHELL_CSH } shell_kind;

typedef struct request {
    shell_kind shell;
    char *options;    /* of the connector */
    const char *venv; /* its folder; NULL: none was asked for */
    bool jupyter, unset;
} request;

/* ---- shells ---- */

static shell_kind shell_of(const char *name)
{
    static const struct {
        const char *name;
        shell_kind kind;
    } known[] = {{"sh", SHELL_SH},     {"bash", SHELL_SH}, {"zsh", SHELL_SH},  {"dash", SHELL_SH},
                 {"ksh", SHELL_SH},    {"mksh", SHELL_SH}, {"ash", SHELL_SH},  {"busybox", SHELL_SH},
                 {"fish", SHELL_FISH}, {"csh", SHELL_CSH}, {"tcsh", SHELL_CSH}};
    const char *slash = strrchr(name, '/');

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(slash == NULL ? name : slash + 1, known[i].name) == 0)
            return known[i].kind;
    return SHELL_UNKNOWN;
}

/* TEXT as one word of a shell, in single quotes. csh looks for '!' there as well. */
static void put_word(shell_kind shell, const char *text)
{
    putchar('\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs(shell == SHELL_FISH ? "\\'" : "'\\''", stdout);
        else if ((*text == '\\' && shell == SHELL_FISH) || (*text == '!' && shell == SHELL_CSH))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
    putchar('\'');
}

static void put_variable(shell_kind shell, const char *name, const char *value)
{
    const char *set = shell == SHELL_FISH ? "set -gx" : shell == SHELL_CSH ? "setenv" : "export";
    const char *unset = shell == SHELL_FISH ? "set -e" : shell == SHELL_CSH ? "unsetenv" : "unset";

    if (value == NULL)
        printf("%s %s", unset, name);
    else {
        printf("%s %s%c", set, name, shell == SHELL_SH ? '=' : ' ');
        put_word(shell, value);
    }
    puts(";");
}

static int tell_shell(const request *r, const char *directory, const char *connector)
{
    char *rest = cli_plugin_path_without(directory);
    char *search = r->unset ? rest : cli_plugin_search_path(directory);

    put_variable(r->shell, "HDF5_PLUGIN_PATH", search);
    put_variable(r->shell, "HDF5_VOL_CONNECTOR", r->unset ? NULL : connector);
    if (search != rest)
        free(search);
    free(rest);
    return cli_flush();
}

/* ---- a kernel ---- */

static int tell_kernel(const char *directory, const char *connector)
{
    json_object *value = json_object_new_object(), *env = json_object_new_object();
    char *search = cli_plugin_search_path(directory);

    json_object_object_add(env, "HDF5_PLUGIN_PATH", json_object_new_string(search));
    json_object_object_add(env, "HDF5_VOL_CONNECTOR", json_object_new_string(connector));
    json_object_object_add(value, "env", env);
    free(search);
    return cli_json(value);
}

/* ---- a virtual environment ---- */

#define PTH_NAME "h5cow-env.pth"

/* The folder of FOLDER that its Python reads .pth files from. free() it; NULL: said why there is none. */
static char *site_of(const char *folder)
{
    char *marks[] = {cli_format("%s/pyvenv.cfg", folder), cli_format("%s/conda-meta", folder)};
    bool is_one = access(marks[0], F_OK) == 0 || access(marks[1], F_OK) == 0;
    char *pattern = cli_format("%s/lib/python3*/site-packages", folder), *found = NULL;
    glob_t sites = {0};

    free(marks[0]);
    free(marks[1]);
    if (!is_one)
        cli_fail("'%s' is no virtual environment: it has no pyvenv.cfg and no conda-meta", folder);
    else if (glob(pattern, 0, NULL, &sites) != 0 || sites.gl_pathc != 1)
        cli_fail("'%s' has %s: which Python shall make versions cannot be told", folder,
                 sites.gl_pathc == 0 ? "no lib/python3*/site-packages" : "several lib/python3*/site-packages");
    else
        found = cli_strdup(sites.gl_pathv[0]);
    globfree(&sites);
    free(pattern);
    return found;
}

/* TEXT as a string of Python, which has none but ASCII letters and goes into one line. free() it. */
static char *python_string(const char *text)
{
    char *word = cli_alloc(4 * strlen(text) + 16, 1), *p = word;

    p += sprintf(p, "os.fsdecode(b'");
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        p += sprintf(p, c < 0x20 || c > 0x7e || c == '\'' || c == '\\' ? "\\x%02x" : "%c", c);
    }
    sprintf(p, "')");
    return word;
}

/* Python runs a line of a .pth file that begins with import. Where the plugin is no more, nothing is set; what the user has set
 * stays; netCDF4's wheel sets HDF5_PLUGIN_PATH only where nobody has, so what it would say is in SEARCH. */
static char *pth_text(const char *directory, const char *connector)
{
    char *search = cli_plugin_search_path(directory);
    char *folder = python_string(directory), *whole = python_string(search), *name = python_string(connector);
    char *text = cli_format(
        "# Written by 'h5cow env --venv'; taken back by 'h5cow env --venv --unset'.\n"
        "import os; e = os.environ; d = %s; "
        "os.path.isfile(d + '/" CLI_PLUGIN_FILE "') and 'HDF5_VOL_CONNECTOR' not in e and "
        "e.update(HDF5_VOL_CONNECTOR=%s, HDF5_PLUGIN_PATH=d + ':' + e['HDF5_PLUGIN_PATH'] if e.get('HDF5_PLUGIN_PATH') "
        "else %s)\n",
        folder, name, whole);

    free(search);
    free(folder);
    free(whole);
    free(name);
    return text;
}

/* TEXT in PATH, complete or not at all. */
static int put_file(const char *path, const char *text)
{
    cow_newfile new = COW_NEWFILE_NONE;
    const size_t length = strlen(text);
    int status = cow_newfile_make(&new, path);

    if (status == 0 && (fchmod(new.file, 0644) < 0 || write(new.file, text, length) != (ssize_t)length))
        status = cow_error(COW_IO, "cannot write '%s': %s", path, strerror(errno));
    if (status == 0)
        status = cow_newfile_place(&new, true);
    cow_newfile_drop(&new);
    return status < 0 ? cli_fail("%s", cow_error_message()) : 0;
}

static int change_venv(const request *r, const char *directory, const char *connector)
{
    char *site = site_of(r->venv), *path = site == NULL ? NULL : cli_format("%s/" PTH_NAME, site), *text;
    int status = CLI_FAILED;

    if (path != NULL && r->unset) {
        status =
            unlink(path) == 0 || errno == ENOENT ? 0 : cli_fail("'%s' cannot be removed: %s", path, strerror(errno));
    } else if (path != NULL) {
        text = pth_text(directory, connector);
        status = put_file(path, text);
        free(text);
        if (status == 0)
            printf("Each Python of '%s' makes versions from now on; 'h5cow env --venv=%s --unset' takes that back.\n",
                   r->venv, r->venv);
    }
    free(path);
    free(site);
    return status == 0 ? cli_flush() : status;
}

/* ---- the verb ---- */

/* -1; or the exit code, after saying why or printing the help. */
static int understand(int argc, char **argv, request *r)
{
    static const struct option options[] = {
        {"shell", required_argument, NULL, 's'},
        {"option", required_argument, NULL, 'o'},
        {"venv", optional_argument, NULL, 'v'},
        {"jupyter", no_argument, NULL, 'j'},
        {"unset", no_argument, NULL, 'u'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const char *shell = getenv("SHELL"), *equals;
    bool venv = false;

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":o:h", options, NULL)) != -1;) {
        switch (c) {
        case 's':
            if ((r->shell = shell_of(optarg)) == SHELL_UNKNOWN)
                return cli_usage("env", "'%s' is no shell that it knows: sh, fish or csh", optarg);
            break;
        case 'o':
            if ((equals = strchr(optarg, '=')) == NULL || equals == optarg)
                return cli_usage("env", "-o wants KEY=VALUE, not '%s'", optarg);
            cli_plugin_option(&r->options, optarg, (size_t)(equals - optarg), equals + 1);
            break;
        case 'v':
            venv = true;
            r->venv = optarg != NULL                  ? optarg
                      : getenv("VIRTUAL_ENV") != NULL ? getenv("VIRTUAL_ENV")
                                                      : getenv("CONDA_PREFIX");
            break;
        case 'j':
            r->jupyter = true;
            break;
        case 'u':
            r->unset = true;
            break;
        case 'h':
            fputs(cli_env_help, stdout);
            return cli_flush();
        default:
            return c == ':' ? cli_no_value("env", argv) : cli_no_option("env", argv);
        }
    }
    if (optind < argc)
        return cli_usage("env", "'%s' is one word too many", argv[optind]);
    if (venv && (r->venv == NULL || *r->venv == '\0'))
        return cli_usage("env", "no virtual environment is active: name it, --venv=FOLDER");
    if (r->jupyter && (venv || r->unset))
        return cli_usage("env", "--jupyter goes with neither --venv nor --unset");
    if (r->shell == SHELL_UNKNOWN && (shell == NULL || (r->shell = shell_of(shell)) == SHELL_UNKNOWN))
        r->shell = SHELL_SH;
    return -1;
}

int cli_env(int argc, char **argv)
{
    request r = {.options = cli_strdup("")};
    char *directory = NULL, *connector = NULL;
    int status = understand(argc, argv, &r);

    if (status >= 0)
        goto done;
    status = CLI_FAILED;
    connector = cli_plugin_connector(r.options);
    if (r.unset && r.venv != NULL)
        status = change_venv(&r, NULL, NULL);
    else if ((directory = cli_plugin_tried(r.unset ? NULL : r.options, "")) != NULL)
        status = r.venv != NULL ? change_venv(&r, directory, connector)
                 : r.jupyter    ? tell_kernel(directory, connector)
                                : tell_shell(&r, directory, connector);
done:
    free(connector);
    free(directory);
    free(r.options);
    return status;
}
