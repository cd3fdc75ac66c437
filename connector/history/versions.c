/* The log of versions (/_versioned_data/log), and revisions: which version a name, a tag, ~N or a time means. */
#include "history/internal.h"

#include "base/error.h"
#include "base/ids.h"
#include "base/times.h"

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

/* ---- rows ---- */

int cow_versions_meet_blocks(cow_layout_log *log)
{
    /* HDF5 writes the texts of a row from the last member to the first: where a block is full in the middle of a row, `name` is in
     * the next one. And a long text may have got a block of its own. */
    static const char *const members[] = {"name", "program", "h5cow", NULL};

    return cow_layout_log_meet(log, members);
}

char *cow_versions_text(const char *text)
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

int cow_versions_describe_row(cow_layout_log_row *row, const char *message)
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
    if ((row->user = cow_versions_text(user_name())) == NULL || (row->host = cow_versions_text(host)) == NULL ||
        (row->program = cow_versions_text(program)) == NULL || (row->hdf5 = cow_versions_text(hdf5)) == NULL ||
        (row->h5cow = cow_versions_text(H5COW_VERSION)) == NULL ||
        (row->message = cow_versions_text(message == NULL ? "" : message)) == NULL)
        return -1;
    return 0;
}

/* ---- revisions ---- */

static int version_path(const cow_layout_log_row *row, char path[], size_t size)
{
    if (row->name == NULL || row->name[0] == '\0' || strchr(row->name, '/') != NULL ||
        (size_t)snprintf(path, size, COW_PATH_VERSIONS "/%s", row->name) >= size)
        return cow_error(COW_CORRUPT, "the log names a version that cannot be; try: h5cow verify");
    return 0;
}

/* ", #2 'name'" of those that are there: all, or the oldest and the newest ones. */
static void list_versions(const cow_layout_log_row row[], uint64_t rows, uint64_t kept, char *text, size_t size)
{
    enum { SHOWN = 3 };
    size_t used = 0;
    uint64_t number = 0;

    for (uint64_t i = 0; i < rows; i++) {
        if (row[i].open == COW_LOG_FORGOTTEN)
            continue;
        if (number == SHOWN && kept > 2 * SHOWN)
            used += (size_t)snprintf(text + used, size - used, " ...");
        if (number < SHOWN || number + SHOWN >= kept || kept <= 2 * SHOWN)
            used += (size_t)snprintf(text + used, size - used, "%s#%llu '%.64s'", number == 0 ? "" : ", ",
                                     (unsigned long long)i + 1, row[i].name == NULL ? "?" : row[i].name);
        number++;
    }
}

/* Tells which there are, or that it was forgotten. */
static int no_revision(cow_loc file, const char *revision)
{
    static const char *const members[] = {"name", "open", NULL};
    cow_layout_log_row *row;
    char text[800] = "";
    uint64_t rows = 0, kept = 0;
    bool forgotten = false;

    if (cow_layout_log_rows(file, &rows) < 0)
        return -1;
    if (rows == 0)
        return cow_error(COW_NOT_FOUND, "there is no version '%s': the file has no version yet", revision);
    if ((row = calloc(rows, sizeof *row)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the list of versions");
    if (cow_layout_log_read_many(file, 0, rows, members, row) < 0) {
        free(row);
        return -1;
    }
    for (uint64_t i = 0; i < rows; i++)
        if (row[i].open != COW_LOG_FORGOTTEN)
            kept++;
        else
            forgotten |= row[i].name != NULL && strcmp(row[i].name, revision) == 0;
    list_versions(row, rows, kept, text, sizeof text);
    for (uint64_t i = 0; i < rows; i++)
        cow_layout_log_row_free(&row[i]);
    free(row);
    return cow_error(COW_NOT_FOUND, "there is no version '%s'%s; the file has %llu: %s (see: h5cow log)", revision,
                     forgotten ? " any more, it was forgotten" : "", (unsigned long long)kept, text);
}

static int forgotten(uint64_t number, const char *name)
{
    return cow_error(COW_NOT_FOUND, "version #%llu ('%s') was forgotten (see: h5cow log --all)",
                     (unsigned long long)number, name == NULL ? "?" : name);
}

static int by_number(cow_loc file, const char *revision, uint64_t number, char path[], size_t size)
{
    cow_layout_log_row row = {0};
    uint64_t rows = 0;
    int status = -1;

    if (cow_layout_log_rows(file, &rows) < 0)
        return -1;
    if (number < 1 || number > rows)
        return no_revision(file, revision);
    if (cow_layout_log_read(file, number - 1, &row) == 0)
        status = row.open == COW_LOG_FORGOTTEN ? forgotten(number, row.name) : version_path(&row, path, size);
    cow_layout_log_row_free(&row);
    return status;
}

/* In the order of commits, whatever each was made of; those that were forgotten do not count. */
static int by_distance(cow_loc file, const char *revision, uint64_t distance, char path[], size_t size)
{
    enum { BATCH = 64 };
    static const char *const members[] = {"open", NULL};
    cow_layout_log_row row[BATCH];
    uint64_t rows = 0;

    if (cow_layout_log_rows(file, &rows) < 0)
        return -1;
    while (distance < rows) {
        uint64_t n = rows < BATCH ? rows : BATCH;

        if (cow_layout_log_read_many(file, rows - n, n, members, row) < 0)
            return -1;
        for (; n > 0; n--, rows--)
            if (row[n - 1].open != COW_LOG_FORGOTTEN && distance-- == 0)
                return by_number(file, revision, rows, path, size);
    }
    return no_revision(file, revision);
}

/* The newest of those that were made before LIMIT. A clock may have been set back meanwhile, so no row tells anything of others:
 * their times are read, the newest first. */
static int by_time(cow_loc file, const char *revision, int64_t limit, char path[], size_t size)
{
    enum { BATCH = 1024 };
    static const char *const members[] = {"time", "open", NULL};
    cow_layout_log_row *row;
    uint64_t rows = 0, found = 0;
    int status = 0;

    if (cow_layout_log_rows(file, &rows) < 0)
        return -1;
    if ((row = calloc(BATCH, sizeof *row)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the list of versions");
    for (uint64_t n = 1; status == 0 && found == 0 && rows > 0; n = n * 4 > BATCH ? BATCH : n * 4) {
        if (n > rows)
            n = rows;
        status = cow_layout_log_read_many(file, rows - n, n, members, row);
        for (uint64_t i = n; status == 0 && found == 0 && i-- > 0;)
            if (row[i].time <= limit && row[i].open != COW_LOG_FORGOTTEN)
                found = rows - n + i + 1;
        rows -= n;
    }
    free(row); /* no texts were asked for */
    if (status < 0)
        return -1;
    return found == 0 ? no_revision(file, revision) : by_number(file, revision, found, path, size);
}

/* It is the path of a version, and of nothing below one. */
const char *cow_tagged_version(const char *value)
{
    static const char versions[] = COW_PATH_VERSIONS "/";
    const char *name;

    if (strncmp(value, versions, sizeof versions - 1) != 0)
        return NULL;
    name = value + sizeof versions - 1;
    return name[0] == '\0' || strchr(name, '/') != NULL ? NULL : name;
}

static int parse_number(const char *text, uint64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoull(text, &end, 10);
    return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0 ? 0 : -1;
}

static int resolve(cow_loc file, const char *revision, char path[], size_t size)
{
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
        int64_t first, limit;
        if (revision[length - 1] != '}' || length - 2 >= sizeof text)
            return cow_error(COW_USAGE,
                             "'%s' is not a revision: a time is {2026-01-31T12:00}, {yesterday} or {2 hours ago}",
                             revision);
        memcpy(text, revision + 1, length - 2);
        text[length - 2] = '\0';
        if (cow_times_parse(text, time(NULL), &first, &limit) < 0)
            return cow_error(COW_USAGE,
                             "'%s' is not a revision: a time is {2026-01-31T12:00}, {yesterday} or {2 hours ago}",
                             revision);
        return by_time(file, revision, limit, path, size);
    }
    if ((size_t)snprintf(path, size, COW_PATH_VERSIONS "/%s", revision) >= size)
        return cow_error(COW_USAGE, "'%s' is too long for a revision", revision);
    if ((exists = cow_native_exists(file, path)) != 0)
        return exists < 0 ? -1 : 0;
    if (revision[0] == '#') { /* behind the names: earlier versions of h5cow allowed such a one */
        if (parse_number(revision + 1, &number) < 0)
            return cow_error(COW_USAGE, "'%s' is not a revision: #N is the N-th version of the file", revision);
        return by_number(file, revision, number, path, size);
    }
    snprintf(path, size, COW_PATH_TAGS "/%s", revision);
    if ((exists = cow_native_exists(file, path)) < 0)
        return -1;
    if (exists && cow_native_link_info(file, path, &info) < 0)
        return -1;
    if (exists && info.type == H5L_TYPE_SOFT) {
        size_t target_size;
        char *target = cow_native_link_value(file, path, &target_size);
        int status = target == NULL ? -1 : 0;
        if (target != NULL && ((size_t)snprintf(path, size, "%s", target) >= size || cow_tagged_version(path) == NULL))
            status = cow_error(COW_CORRUPT, "the tag '%s' does not name a version", revision);
        free(target);
        return status;
    }
    if (strcmp(revision, "latest") == 0 || strcmp(revision, "head") == 0)
        return by_distance(file, revision, 0, path, size);
    if (parse_number(revision, &number) == 0) /* nobody's name: versions that were renamed keep their number */
        return by_number(file, revision, number, path, size);
    return no_revision(file, revision);
}

int cow_revision_resolve(void *native_file, const char *revision, char path[], size_t size)
{
    cow_loc file = {native_file, H5I_FILE};
    char name[512];

    if (resolve(file, revision, path, size) == 0)
        return cow_layout_version(file, path);
    if (cow_error_is(COW_NOT_FOUND)) {
        cow_native_file_name(native_file, name, sizeof name);
        cow_error_where(name, "choosing a version");
    }
    return -1;
}
