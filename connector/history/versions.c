/* The log of versions (/_versioned_data/log), and revisions: which version a name, a tag, ~N or a time means. */
#include "history/internal.h"

#include "error.h"
#include "ids.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define LOG COW_ROOT "/log"

/* ---- rows ---- */

static hid_t text_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    if (type >= 0 && H5Tset_size(type, H5T_VARIABLE) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0)
        return type;
    cow_close(type);
    return H5I_INVALID_HID;
}

static hid_t log_row_type(void)
{
    static const struct {
        const char *name;
        size_t offset;
    } text[] = {{"user", offsetof(cow_log_row, user)},       {"host", offsetof(cow_log_row, host)},
                {"program", offsetof(cow_log_row, program)}, {"hdf5", offsetof(cow_log_row, hdf5)},
                {"h5cow", offsetof(cow_log_row, h5cow)},     {"message", offsetof(cow_log_row, message)}};
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(cow_log_row)), string = text_type();
    int bad = type < 0 || string < 0;

    bad = bad || H5Tinsert(type, "name", offsetof(cow_log_row, name), string) < 0 ||
          H5Tinsert(type, "parent", offsetof(cow_log_row, parent), H5T_NATIVE_INT64) < 0 ||
          H5Tinsert(type, "time", offsetof(cow_log_row, time), H5T_NATIVE_INT64) < 0;
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        bad = bad || H5Tinsert(type, text[i].name, text[i].offset, string) < 0;
    bad = bad || H5Tinsert(type, "added", offsetof(cow_log_row, added), H5T_NATIVE_INT64) < 0 ||
          H5Tinsert(type, "chunks", offsetof(cow_log_row, chunks), H5T_NATIVE_INT64) < 0 ||
          H5Tinsert(type, "changed", offsetof(cow_log_row, changed), H5T_NATIVE_INT64) < 0 ||
          H5Tinsert(type, "open", offsetof(cow_log_row, open), H5T_NATIVE_UINT8) < 0;
    cow_close(string);
    if (!bad)
        return type;
    cow_error_native("cannot describe the log of versions");
    cow_close(type);
    return H5I_INVALID_HID;
}

int cow_log_create(cow_loc file)
{
    hid_t memory = log_row_type(), type = H5I_INVALID_HID;
    cow_table *table = NULL;
    int status = -1;

    if (memory < 0)
        goto done;
    /* on disk without the padding of the structure in memory */
    if ((type = H5Tcopy(memory)) < 0 || H5Tpack(type) < 0) {
        cow_error_native("cannot describe the log of versions");
        goto done;
    }
    if ((table = cow_native_table_create(file, LOG, type, 2048, true)) != NULL) {
        table->close(table);
        status = 0;
    }
done:
    cow_close(type, memory);
    return status;
}

/* Move COUNT rows between memory and the file, those members that TYPE has; WRITE of one past the end appends. */
static int transfer(cow_loc file, uint64_t row, hsize_t count, cow_log_row *data, hid_t type, bool write)
{
    void *dataset = cow_native_dataset_open(file, LOG);
    hid_t memory = H5I_INVALID_HID, space = H5I_INVALID_HID;
    hsize_t rows = 0, start = row;
    int status = -1;

    if (dataset == NULL)
        return -1;
    if ((space = cow_native_dataset_space(dataset)) < 0)
        goto done;
    if (H5Sget_simple_extent_ndims(space) != 1 || H5Sget_simple_extent_dims(space, &rows, NULL) < 0 || row > rows ||
        (!write && count > rows - row)) {
        cow_error(COW_CORRUPT, "row %llu is asked of a log of %llu versions", (unsigned long long)row,
                  (unsigned long long)rows);
        goto done;
    }
    if (row == rows) {
        rows++;
        if (cow_native_dataset_resize(dataset, &rows) < 0 || H5Sset_extent_simple(space, 1, &rows, NULL) < 0)
            goto done;
    }
    if ((memory = H5Screate_simple(1, &count, NULL)) < 0 ||
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL) < 0)
        cow_error_native("cannot select a row of the log");
    else if (write)
        status = cow_native_dataset_write(dataset, type, memory, space, H5P_DEFAULT, data);
    else
        status = cow_native_dataset_read(dataset, type, memory, space, H5P_DEFAULT, data);
done:
    cow_close(memory, space);
    if (cow_native_dataset_close(dataset) < 0)
        status = -1;
    return status;
}

int cow_log_rows(cow_loc file, uint64_t *rows)
{
    void *dataset = cow_native_dataset_open(file, LOG);
    hid_t space = H5I_INVALID_HID;
    hssize_t n = -1;

    if (dataset == NULL)
        return -1;
    if ((space = cow_native_dataset_space(dataset)) >= 0 && (n = H5Sget_simple_extent_npoints(space)) >= 0)
        *rows = (uint64_t)n;
    if (space >= 0)
        H5Sclose(space);
    if (cow_native_dataset_close(dataset) < 0)
        return -1;
    return n < 0 ? cow_error(COW_CORRUPT, "the log of versions cannot be read; try: h5cow verify") : 0;
}

int cow_log_trim(cow_loc file, uint64_t rows)
{
    void *dataset;
    hsize_t extent = rows;
    uint64_t there;
    int status;

    if (cow_log_rows(file, &there) < 0)
        return -1;
    if (there <= rows)
        return 0;
    if ((dataset = cow_native_dataset_open(file, LOG)) == NULL)
        return -1;
    status = cow_native_dataset_resize(dataset, &extent);
    return cow_native_dataset_close(dataset) < 0 ? -1 : status;
}

static int transfer_whole(cow_loc file, uint64_t row, cow_log_row *data, bool write)
{
    hid_t type = log_row_type();
    int status = type < 0 ? -1 : transfer(file, row, 1, data, type, write);

    cow_close(type);
    return status;
}

int cow_log_read(cow_loc file, uint64_t row, cow_log_row *out)
{
    memset(out, 0, sizeof *out);
    return transfer_whole(file, row, out, false);
}

int cow_log_write(cow_loc file, uint64_t row, const cow_log_row *in)
{
    cow_log_row copy = *in;
    return transfer_whole(file, row, &copy, true);
}

int cow_log_meet_blocks(cow_loc file, uint64_t rows)
{
    enum { MOST = 5 };
    const uint64_t n = rows < MOST ? rows : MOST;
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(cow_log_row)), string = text_type();
    cow_log_row row[MOST] = {0};
    int status = -1;

    /* a long text, and the last one: a row may stand in two blocks */
    if (type < 0 || string < 0 || H5Tinsert(type, "program", offsetof(cow_log_row, program), string) < 0 ||
        H5Tinsert(type, "h5cow", offsetof(cow_log_row, h5cow), string) < 0)
        cow_error_native("cannot describe the log of versions");
    else
        status = n == 0 ? 0 : transfer(file, rows - n, n, row, type, false);
    for (uint64_t i = 0; i < n; i++)
        cow_log_row_free(&row[i]);
    cow_close(string, type);
    return status;
}

void cow_log_row_free(cow_log_row *row)
{
    char **texts[] = {&row->name, &row->user, &row->host, &row->program, &row->hdf5, &row->h5cow, &row->message};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        H5free_memory(*texts[i]);
        *texts[i] = NULL;
    }
}

/* H5allocate_memory, because rows that were read hold memory of the library. */
static char *text_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = H5allocate_memory(size, false);

    if (copy != NULL)
        memcpy(copy, text, size);
    else
        cow_error(COW_MEMORY, "no memory for the description of a version");
    return copy;
}

/* The command line of this process, words separated by blanks, at most SIZE bytes. */
static void command_line(char *text, size_t size)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    if (n <= 0) {
        snprintf(text, size, "%s", program_invocation_name);
        return;
    }
    text[n] = '\0';
    while (n > 0 && text[n - 1] == '\0')
        n--;
    for (ssize_t i = 0; i < n; i++)
        if (text[i] == '\0' || iscntrl((unsigned char)text[i]))
            text[i] = ' ';
}

/* Who this process is. Looking it up reads files: once is enough for as long as it is the same. */
static const char *user_name(void)
{
    static struct {
        uid_t id;
        char name[256]; /* "": not looked up yet */
    } user;
    char buffer[4096];
    struct passwd entry, *found = NULL;

    if (user.name[0] != '\0' && user.id == geteuid())
        return user.name;
    user.id = geteuid();
    if (getpwuid_r(user.id, &entry, buffer, sizeof buffer, &found) == 0 && found != NULL)
        snprintf(user.name, sizeof user.name, "%s", entry.pw_name);
    else
        snprintf(user.name, sizeof user.name, "%lu", (unsigned long)user.id);
    return user.name;
}

int cow_log_row_describe(cow_log_row *row, const char *message)
{
    unsigned major = 0, minor = 0, release = 0;
    char host[256] = "", program[1024], hdf5[64];
    struct timeval now;

    gettimeofday(&now, NULL);
    row->time = (int64_t)now.tv_sec * 1000000 + now.tv_usec;
    if (gethostname(host, sizeof host - 1) < 0)
        host[0] = '\0';
    command_line(program, sizeof program);
    H5get_libversion(&major, &minor, &release);
    snprintf(hdf5, sizeof hdf5, "%u.%u.%u", major, minor, release);
    if ((row->user = text_copy(user_name())) == NULL || (row->host = text_copy(host)) == NULL ||
        (row->program = text_copy(program)) == NULL || (row->hdf5 = text_copy(hdf5)) == NULL ||
        (row->h5cow = text_copy(H5COW_VERSION)) == NULL ||
        (row->message = text_copy(message == NULL ? "" : message)) == NULL)
        return -1;
    return 0;
}

/* ---- revisions ---- */

static int version_path(const cow_log_row *row, char path[], size_t size)
{
    if (row->name == NULL || (size_t)snprintf(path, size, COW_ROOT "/versions/%s", row->name) >= size)
        return cow_error(COW_CORRUPT, "the log names a version that cannot be; try: h5cow verify");
    return 0;
}

/* ".25": its microseconds, and how many of them the last digit stands for. The bytes that were read, -1: not one. */
static int parse_fraction(const char *text, int64_t *microseconds, int64_t *step)
{
    int n = 1;

    *microseconds = 0;
    *step = 1000000;
    for (; isdigit((unsigned char)text[n]) && *step > 1; n++) {
        *step /= 10;
        *microseconds += (text[n] - '0') * *step;
    }
    return n == 1 || isdigit((unsigned char)text[n]) ? -1 : n;
}

/* "2026-01-31", "2026-01-31T12:00", "2026-01-31 12:00:05", "2026-01-31T12:00:05.25", an optional Z or +hh:mm; without
 * one: local time. The last instant that the text names: a day without a time is its end. */
static int parse_time(const char *text, int64_t *microseconds)
{
    struct tm tm = {.tm_isdst = -1};
    int n = 0, hours, minutes, fields;
    char sign;
    const char *rest = text;
    int64_t slack = (int64_t)86400 * 1000000, offset = 0, fraction = 0;
    bool zone = false;
    time_t t;

    if (sscanf(rest, "%4d-%2d-%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &n) != 3 || n == 0)
        return -1;
    rest += n;
    if (*rest == 'T' || *rest == ' ') {
        n = 0;
        if ((fields = sscanf(rest + 1, "%2d:%2d%n", &tm.tm_hour, &tm.tm_min, &n)) != 2 || n == 0)
            return -1;
        rest += 1 + n;
        slack = (int64_t)60 * 1000000;
        if (*rest == ':') {
            n = 0;
            if (sscanf(rest + 1, "%2d%n", &tm.tm_sec, &n) != 1 || n == 0)
                return -1;
            rest += 1 + n;
            slack = 1000000;
            if (*rest == '.') {
                if ((n = parse_fraction(rest, &fraction, &slack)) < 0)
                    return -1;
                rest += n;
            }
        }
    }
    if (*rest == 'Z') {
        zone = true;
        rest++;
    } else if (sscanf(rest, "%c%2d:%2d%n", &sign, &hours, &minutes, &n) == 3 && (sign == '+' || sign == '-')) {
        zone = true;
        offset = (sign == '+' ? 1 : -1) * (hours * 3600 + minutes * 60);
        rest += n;
    }
    if (*rest != '\0')
        return -1;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    t = zone ? timegm(&tm) : mktime(&tm);
    *microseconds = ((int64_t)t - offset) * 1000000 + fraction + slack - 1;
    return 0;
}

/* ", #2 'name'" at TEXT. The bytes written, or -1. */
static int list_version(cow_loc file, uint64_t row, char *text, size_t size)
{
    cow_log_row version = {0};
    int n = cow_log_read(file, row, &version);

    if (n == 0)
        n = version.name == NULL ? cow_error(COW_CORRUPT, "a version has no name; try: h5cow verify")
                                 : snprintf(text, size, "%s#%llu '%.64s'", row == 0 ? "" : ", ",
                                            (unsigned long long)row + 1, version.name);
    cow_log_row_free(&version);
    return n;
}

/* Tells which there are: all, or the oldest and the newest ones. */
static int no_revision(cow_loc file, const char *revision)
{
    enum { SHOWN = 3 };
    char text[(2 * SHOWN + 1) * 100];
    uint64_t rows = 0;
    size_t used = 0;

    if (cow_log_rows(file, &rows) < 0)
        return -1;
    if (rows == 0)
        return cow_error(COW_NOT_FOUND, "there is no version '%s': the file has no version yet", revision);
    for (uint64_t row = 0; row < rows; row++) {
        if (row == SHOWN && rows > 2 * SHOWN) {
            used += (size_t)snprintf(text + used, sizeof text - used, " ...");
            row = rows - SHOWN;
        }
        int n = list_version(file, row, text + used, sizeof text - used);
        if (n < 0)
            return -1;
        used += (size_t)n;
    }
    return cow_error(COW_NOT_FOUND, "there is no version '%s'; the file has %llu: %s (see: h5cow log)", revision,
                     (unsigned long long)rows, text);
}

static int by_number(cow_loc file, const char *revision, uint64_t number, char path[], size_t size)
{
    cow_log_row row = {0};
    uint64_t rows = 0;
    int status = -1;

    if (cow_log_rows(file, &rows) < 0)
        return -1;
    if (number < 1 || number > rows)
        return no_revision(file, revision);
    if (cow_log_read(file, number - 1, &row) == 0)
        status = version_path(&row, path, size);
    cow_log_row_free(&row);
    return status;
}

static int by_distance(cow_loc file, const char *revision, uint64_t distance, char path[], size_t size)
{
    uint64_t rows = 0;
    cow_log_row row = {0};
    int64_t at;
    int status = -1;

    if (cow_log_rows(file, &rows) < 0)
        return -1;
    at = (int64_t)rows - 1;
    while (at >= 0 && at < (int64_t)rows && distance > 0) {
        int64_t parent;
        if (cow_log_read(file, (uint64_t)at, &row) < 0)
            return -1;
        parent = row.parent;
        cow_log_row_free(&row);
        if (parent >= at)
            return cow_error(COW_CORRUPT, "the log of versions is not in order; try: h5cow verify");
        at = parent;
        distance--;
    }
    if (at < 0)
        return no_revision(file, revision);
    if (cow_log_read(file, (uint64_t)at, &row) == 0)
        status = version_path(&row, path, size);
    cow_log_row_free(&row);
    return status;
}

static int by_time(cow_loc file, const char *revision, int64_t limit, char path[], size_t size)
{
    uint64_t rows = 0;

    if (cow_log_rows(file, &rows) < 0)
        return -1;
    while (rows > 0) {
        cow_log_row row = {0};
        int status = cow_log_read(file, --rows, &row), found = status == 0 && row.time <= limit;
        if (found)
            status = version_path(&row, path, size);
        cow_log_row_free(&row);
        if (found || status < 0)
            return status;
    }
    return no_revision(file, revision);
}

static int parse_number(const char *text, uint64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoull(text, &end, 10);
    return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0 ? 0 : -1;
}

int cow_revision_resolve(void *native_file, const char *revision, char path[], size_t size)
{
    cow_loc file = {native_file, H5I_FILE};
    size_t length = strlen(revision);
    uint64_t number;
    char text[64];
    H5L_info2_t info;
    int exists;

    if (length == 0 || length > 200 || strchr(revision, '/') != NULL)
        return cow_error(COW_USAGE, "'%s' is not a revision: give the name of a version, #N, ~N or {time}", revision);
    if (revision[0] == '~') {
        if (parse_number(revision + 1, &number) < 0)
            return cow_error(COW_USAGE, "'%s' is not a revision: ~N is a number of versions before the newest",
                             revision);
        return by_distance(file, revision, number, path, size);
    }
    if (revision[0] == '{') {
        int64_t limit;
        if (revision[length - 1] != '}' || length - 2 >= sizeof text)
            return cow_error(COW_USAGE, "'%s' is not a revision: a time is {2026-01-31T12:00}", revision);
        memcpy(text, revision + 1, length - 2);
        text[length - 2] = '\0';
        if (parse_time(text, &limit) < 0)
            return cow_error(COW_USAGE, "'%s' is not a revision: a time is {2026-01-31T12:00}", revision);
        return by_time(file, revision, limit, path, size);
    }
    if ((size_t)snprintf(path, size, COW_ROOT "/versions/%s", revision) >= size)
        return cow_error(COW_USAGE, "'%s' is too long for a revision", revision);
    if ((exists = cow_native_exists(file, path)) != 0)
        return exists < 0 ? -1 : 0;
    if (revision[0] == '#') { /* behind the names: earlier versions of h5cow allowed such a one */
        if (parse_number(revision + 1, &number) < 0)
            return cow_error(COW_USAGE, "'%s' is not a revision: #N is the N-th version of the file", revision);
        return by_number(file, revision, number, path, size);
    }
    snprintf(path, size, COW_ROOT "/tags/%s", revision);
    if ((exists = cow_native_exists(file, path)) < 0)
        return -1;
    if (exists && cow_native_link_info(file, path, &info) < 0)
        return -1;
    if (exists && info.type == H5L_TYPE_SOFT) {
        size_t target_size;
        char *target = cow_native_link_value(file, path, &target_size);
        int status = target == NULL ? -1 : 0;
        if (target != NULL && ((size_t)snprintf(path, size, "%s", target) >= size ||
                               strncmp(path, COW_ROOT "/versions/", strlen(COW_ROOT "/versions/")) != 0))
            status = cow_error(COW_CORRUPT, "the tag '%s' does not name a version", revision);
        free(target);
        return status;
    }
    return no_revision(file, revision);
}
