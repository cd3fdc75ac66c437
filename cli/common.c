/* Errors, files and output of the command. See common.h. */
#include "common.h"

#include "base/error.h"
#include "base/witness.h"
#include "h5/superblock.h"
#include "history/history.h"
#include "journal/driver.h"
#include "progress.h"

#include <H5VLconnector.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- errors ---- */

/* In one line, whatever the names in it hold. */
static void say(const char *format, va_list list)
{
    char *text = cli_visible(cli_format_list(format, list));

    cli_progress_end();
    fflush(stdout);
    fprintf(stderr, "h5cow: %s\n", text);
    free(text);
}

int cli_fail(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    say(format, list);
    va_end(list);
    return CLI_FAILED;
}

void cli_warn(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    say(format, list);
    va_end(list);
}

int cli_usage(const char *verb, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    say(format, list);
    va_end(list);
    fprintf(stderr, "Try 'h5cow %s --help'.\n", verb);
    return CLI_FAILED;
}

int cli_no_option(const char *verb, char **argv)
{
    const char *word = argv[optind - 1]; /* of one letter out of several, the word is not passed yet */

    if (optopt > 0 && optopt < 0x7f && !(strncmp(word, "--", 2) == 0 && strchr(word, '=') != NULL))
        return cli_usage(verb, "there is no option '-%c'", optopt);
    return cli_usage(verb, "there is no option '%s'", word);
}

int cli_no_value(const char *verb, char **argv)
{
    return cli_usage(verb, "the value of '%s' is missing", argv[optind - 1]);
}

int cli_one_file(const char *verb, const char *help, int argc, char **argv, const char **name, bool *json)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};

    *json = false;
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;)
        switch (c) {
        case 'j':
            *json = true;
            break;
        case 'h':
            fputs(help, stdout);
            return cli_flush();
        default:
            return cli_no_option(verb, argv);
        }
    if (optind + 1 != argc)
        return cli_usage(verb, optind == argc ? "which file?" : "one file at a time");
    *name = argv[optind];
    return -1;
}

int cli_parse_count(const char *verb, const char *option, const char *text, uint64_t *count)
{
    char *end;

    errno = 0;
    *count = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0)
        return 0;
    return cli_usage(verb, "%s wants a number, not '%s'", option, text);
}

const char *cli_reason(char *text, size_t size)
{
    if (cow_error_pending()) {
        snprintf(text, size, "%s", cow_error_message());
        cow_error_clear();
        H5Eclear2(H5E_DEFAULT);
    } else {
        cow_error_lowest(text, size);
    }
    return text;
}

void cli_hdf5_start(void)
{
    unsetenv("HDF5_VOL_CONNECTOR");
    unsetenv("HDF5_DRIVER");
    unsetenv("HDF5_DRIVER_CONFIG");
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    cow_tell_nothing();
    cli_filters_register();
}

/* ---- files ---- */

/* FILE@REV in its two parts; a literal file of that name wins. -1: a part is empty. */
static int split(const char *argument, char **name, char **revision)
{
    const char *at = strrchr(argument, '@');
    struct stat status;

    *name = cli_strdup(argument);
    *revision = NULL;
    if (at == NULL || stat(argument, &status) == 0)
        return 0;
    (*name)[at - argument] = '\0';
    *revision = cli_strdup(at + 1);
    if (**name != '\0' && **revision != '\0')
        return 0;
    free(*name);
    free(*revision);
    *name = *revision = NULL;
    return -1;
}

/* Where a pipe would be waited for, and a device read. */
static int open_regular(const char *name)
{
    int file = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat about;

    if (file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode))
        return file;
    if (file >= 0)
        close(file);
    if (file >= 0 || errno == ENXIO) /* a socket */
        errno = 0;
    return -1;
}

int cli_is_hdf5(const char *name)
{
    uint8_t bytes[8];
    int file = open_regular(name), found = 0;

    if (file < 0)
        return -1;
    for (off_t at = 0; !found; at = at == 0 ? 512 : 2 * at) {
        ssize_t n = pread(file, bytes, sizeof bytes, at);
        if (n < 0) {
            int error = errno;
            close(file);
            errno = error;
            return -1;
        }
        if (n < (ssize_t)sizeof bytes)
            break;
        found = cow_superblock_signature(bytes);
    }
    close(file);
    return found;
}

int cli_must_be_hdf5(const char *name, char *why, size_t size)
{
    int hdf5 = cli_is_hdf5(name), error = errno;
    bool abandoned;
    struct stat about;

    if (hdf5 > 0 || cow_journal_present(name)) /* a journal has a superblock of its own, where the file's is torn */
        return 0;
    if (hdf5 < 0 && error == 0)
        snprintf(why, size, "'%s' is %snot a regular file", name,
                 stat(name, &about) == 0 && S_ISDIR(about.st_mode) ? "a directory, " : "");
    else if (hdf5 < 0)
        snprintf(why, size, "cannot read '%s': %s", name, strerror(error));
    else if (stat(name, &about) == 0 && about.st_size == 0)
        snprintf(why, size, "'%s' is empty", name);
    else if (!cow_journal_unfinished(name, &abandoned))
        snprintf(why, size, "'%s' is not an HDF5 file", name);
    else if (abandoned)
        snprintf(why, size,
                 "'%s' holds nothing: the program that created it died before its first commit; it counts as missing, "
                 "and a program that creates it through h5cow begins it anew",
                 name);
    else
        snprintf(why, size, "'%s' holds nothing yet: it is being created by a program that has not committed anything",
                 name);
    return CLI_FAILED;
}

int cli_file_try(cli_file *file, const char *argument, char *why, size_t size)
{
    char text[1024];
    hid_t fapl = H5I_INVALID_HID;
    int status = CLI_FAILED;

    *file = (cli_file){.id = H5I_INVALID_HID};
    snprintf(why, size, "'%s' is neither a file nor FILE@VERSION", argument);
    if (split(argument, &file->name, &file->revision) < 0)
        return CLI_FAILED;
    if (cli_must_be_hdf5(file->name, why, size) != 0)
        goto done;
    if ((fapl = H5Pcreate(H5P_FILE_ACCESS)) < 0 || cow_native_id() < 0 || H5Pset_vol(fapl, cow_native_id(), NULL) < 0 ||
        cow_journal_driver_set_apart(fapl, &cow_journal_defaults) < 0) {
        snprintf(why, size, "the HDF5 library cannot be used: %s", cli_reason(text, sizeof text));
        goto done;
    }
    if ((file->id = H5Fopen(file->name, H5F_ACC_RDONLY, fapl)) < 0) {
        cli_reason(text, sizeof text);
        if (strstr(text, "unable to lock file") != NULL) {
            snprintf(why, size, "'%s' is open for writing by another program: try again when it is closed", file->name);
        } else {
            snprintf(why, size, "HDF5 cannot open '%s': %s", file->name, text);
            status = CLI_DAMAGED;
        }
        goto done;
    }
    file->loc = (cow_loc){H5VLobject(file->id), H5I_FILE};
    if (cow_native_enter() < 0) {
        snprintf(why, size, "the HDF5 library cannot be used: %s", cli_reason(text, sizeof text));
        H5Fclose(file->id);
        file->id = H5I_INVALID_HID;
        goto done;
    }
    status = 0;
done:
    if (fapl >= 0)
        H5Pclose(fapl);
    if (status != 0)
        cli_file_close(file);
    return status;
}

int cli_file_open(cli_file *file, const char *verb, const char *argument, bool named_revision)
{
    char why[1200];

    if (cli_file_try(file, argument, why, sizeof why) != 0)
        return cli_fail("%s", why);
    if (file->revision == NULL || named_revision)
        return 0;
    cli_usage(verb, "'%s' looks at the whole history: give the file without '@%s'", verb, file->revision);
    cli_file_close(file);
    return CLI_FAILED;
}

int cli_file_history(const cli_file *file)
{
    char text[1024];
    int versioned = cow_file_versioned(file->loc.object);

    if (versioned > 0)
        return 0;
    if (versioned < 0)
        return cli_fail("the history of '%s' cannot be used: %s", file->name, cli_reason(text, sizeof text));
    cow_error_clear();
    return cli_fail("'%s' has no history: it was not made through h5cow (see 'h5cow doctor %s')", file->name,
                    file->name);
}

void cli_file_close(cli_file *file)
{
    if (file->id >= 0) {
        cow_native_leave();
        H5Fclose(file->id);
        cow_native_terminate();
    }
    free(file->name);
    free(file->revision);
    *file = (cli_file){.id = H5I_INVALID_HID};
}

/* ---- output ---- */

const char *cli_bytes(char text[32], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;

    while ((bytes >= 1024 || bytes <= -1024) && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 32, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return text;
}

const char *cli_time(char text[48], int64_t microseconds, cli_clock clock, bool exact)
{
    time_t seconds = (time_t)(microseconds / 1000000 - (microseconds % 1000000 < 0));
    struct tm broken, *known = clock == CLI_UTC ? gmtime_r(&seconds, &broken) : localtime_r(&seconds, &broken);
    size_t n = known == NULL ? 0 : strftime(text, 32, "%Y-%m-%dT%H:%M:%S", known);

    if (n == 0) {
        snprintf(text, 48, "?");
        return text;
    }
    if (exact)
        n += (size_t)snprintf(text + n, 48 - n, ".%06d", (int)(microseconds - (int64_t)seconds * 1000000));
    if (clock == CLI_UTC)
        snprintf(text + n, 48 - n, "Z");
    else
        snprintf(text + n, 48 - n, "%c%02ld:%02ld", broken.tm_gmtoff < 0 ? '-' : '+', labs(broken.tm_gmtoff) / 3600,
                 labs(broken.tm_gmtoff) / 60 % 60);
    return text;
}

const char *cli_shape(char *text, size_t size, unsigned rank, const uint64_t dims[])
{
    size_t used = 0;

    used += (size_t)snprintf(text, size, "(");
    for (unsigned d = 0; d < rank && used < size; d++) {
        if (dims[d] == UINT64_MAX)
            used += (size_t)snprintf(text + used, size - used, "%s*", d == 0 ? "" : ", ");
        else
            used +=
                (size_t)snprintf(text + used, size - used, "%s%llu", d == 0 ? "" : ", ", (unsigned long long)dims[d]);
    }
    if (used < size)
        snprintf(text + used, size - used, rank == 1 ? ",)" : ")");
    return text;
}

int cli_flush(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    return cli_fail("cannot write to standard output: %s", strerror(errno));
}

int cli_json(json_object *value)
{
    cli_json_put(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                                                           JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(value);
    return cli_flush();
}

json_object *cli_json_dims(unsigned rank, const uint64_t dims[])
{
    json_object *list = json_object_new_array();

    for (unsigned d = 0; d < rank; d++)
        json_object_array_add(list, dims[d] == UINT64_MAX ? NULL : json_object_new_uint64(dims[d]));
    return list;
}

/* ---- tables ---- */

struct cli_table {
    unsigned columns;
    bool *right;
    char **cell;
    size_t cells, room;
};

cli_table *cli_table_open(unsigned columns, const char *const titles[])
{
    cli_table *table = cli_alloc(1, sizeof *table);

    table->columns = columns;
    table->right = cli_alloc(columns, sizeof *table->right);
    for (unsigned c = 0; c < columns; c++)
        cli_table_cell(table, "%s", titles[c]);
    return table;
}

void cli_table_right(cli_table *table, unsigned column)
{
    table->right[column] = true;
}

void cli_table_cell(cli_table *table, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    char *text = cli_format_list(format, list);
    va_end(list);
    CLI_RESERVE(table->cell, table->room, table->cells, 1);
    table->cell[table->cells++] = cli_visible(text);
}

/* Columns on screen: characters, not bytes. */
static size_t characters(const char *text)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

void cli_table_print(cli_table *table)
{
    size_t *width = cli_alloc(table->columns, sizeof *width);

    for (size_t i = 0; i < table->cells; i++) {
        size_t n = characters(table->cell[i]), *w = &width[i % table->columns];
        *w = n > *w ? n : *w;
    }
    for (size_t i = 0; i < table->cells; i++) {
        unsigned column = (unsigned)(i % table->columns);
        bool last = column + 1 == table->columns;
        int padding = (int)(width[column] - characters(table->cell[i]));
        if (table->right[column])
            printf("%*s%s%s", padding, "", table->cell[i], last ? "\n" : "  ");
        else
            printf("%s%*s%s", table->cell[i], last ? 0 : padding, "", last ? "\n" : "  ");
    }
    free(width);
}

void cli_table_close(cli_table *table)
{
    for (size_t i = 0; i < table->cells; i++)
        free(table->cell[i]);
    free(table->cell);
    free(table->right);
    free(table);
}
