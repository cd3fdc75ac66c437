/* What `h5cow run` hears: see witness.h. */
#include "base/witness.h"

#include "base/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

void cow_witness(cow_witness_kind kind, const char *name)
{
    const char *witness = getenv(COW_WITNESS_VARIABLE);
    char first = (char)kind;
    struct iovec record[] = {{&first, 1}, {(char *)(uintptr_t)name, strlen(name) + 1}};
    int file, error = errno;

    if (witness != NULL && (file = open(witness, O_WRONLY | O_APPEND | O_CLOEXEC)) >= 0) {
        if (writev(file, record, 2) != (ssize_t)(strlen(name) + 2) && kind == COW_WITNESS_LOST)
            fchmod(file, S_IRUSR | S_IWUSR | S_IXUSR); /* no room, which may be why something is lost */
        close(file);
    }
    errno = error;
}

void cow_witness_library(cow_witness_kind kind, long pid, const char *version, cow_instance instance, const char *name,
                         const char *plugin, const char *why)
{
    char *record = NULL;

    if (getenv(COW_WITNESS_VARIABLE) != NULL && asprintf(&record, "%ld %s %c %zu %zu %s %s %s", pid, version, instance,
                                                         strlen(name), strlen(plugin), name, plugin, why) >= 0)
        cow_witness(kind, record);
    free(record);
}

void cow_witness_lost(cow_witness_kind kind, const char *name, const char *what)
{
    char *record = NULL;

    if (getenv(COW_WITNESS_VARIABLE) != NULL && asprintf(&record, "%zu %s %s", strlen(name), name, what) >= 0)
        cow_witness(kind, record);
    free(record);
}

static bool quietly;

void cow_tell_nothing(void)
{
    quietly = true;
}

void cow_tell_lost(const char *name, const char *format, ...)
{
    char what[2048];
    va_list arguments;

    if (quietly || cow_newfile_is(name))
        return;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    fprintf(stderr, "h5cow: %s: %s\n", name, what);
    cow_witness_lost(COW_WITNESS_LOST, name, what);
}

bool cow_tells(void)
{
    return !quietly;
}

void cow_tell(const char *format, ...)
{
    char what[2048];
    va_list arguments;

    if (quietly)
        return;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    fprintf(stderr, "h5cow: %s\n", what);
}

long long cow_witness_changed_at(const struct stat *about)
{
    return (long long)about->st_mtim.tv_sec * 1000000000 + about->st_mtim.tv_nsec;
}

void cow_witness_plain(const char *name)
{
    char *real, *folder, *record = NULL;
    struct stat about;
    bool there;

    if (getenv(COW_WITNESS_VARIABLE) == NULL)
        return;
    there = stat(name, &about) == 0;
    if ((real = realpath(name, NULL)) == NULL && name[0] != '/' && (folder = getcwd(NULL, 0)) != NULL) {
        if (asprintf(&real, "%s/%s", folder, name) < 0)
            real = NULL;
        free(folder);
    }
    if (asprintf(&record, "%lld %lld %s", there ? (long long)about.st_size : -1,
                 there ? cow_witness_changed_at(&about) : -1, real == NULL ? name : real) >= 0)
        cow_witness(COW_WITNESS_PLAIN, record);
    free(record);
    free(real);
}
