/* File drivers other than the default one (sec2). They know nothing of histories: files that are made with them have
 * none, and files with a history are read with them. For writing,
 *   - a driver that does by other means what sec2 does (stdio, direct, log, core with backing store) is replaced by the
 *     default one, which keeps the history;
 *   - core without backing store gets the newest state in a file in memory, which the default one keeps in its place;
 *   - MPI-IO is refused by all processes alike (mpi.c), also where it would create a file over one with a history: which of
 *     them should put that aside?
 *   - all others are refused. What they would write over is asked for before they are called, since some of them change or
 *     empty files while they open them; the fence keeps the others out, but with a message that nobody understands. */
#include "vol/vol.h"

#include "base/ids.h"
#include "journal/driver.h"
#include "journal/journal.h"
#include "library/library.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

/* Members of a family are looked at as far: it goes on in the next one as it grows, also past a gap. */
#define FAMILY_MEMBERS 1000

bool cow_default_driver(hid_t fapl)
{
    return H5Pget_driver(fapl) == cow_library_driver(COW_VFD_SEC2) || cow_journal_driver_is_set(fapl);
}

/* The environment (HDF5_DRIVER) can have put another driver on every new list. */
hid_t cow_sec2_fapl(void)
{
    hid_t plain = H5Pcreate(H5P_FILE_ACCESS);

    if (plain >= 0 && H5Pset_fapl_sec2(plain) < 0) {
        H5Pclose(plain);
        plain = H5I_INVALID_HID;
    }
    return plain;
}

/* How messages call it. */
static const char *name_of(hid_t driver)
{
    const char *name = "another file driver";

    H5E_BEGIN_TRY
    {
        if (driver == cow_library_driver(COW_VFD_CORE))
            name = "the file driver core";
        else if (driver == cow_library_driver(COW_VFD_FAMILY))
            name = "the file driver family";
        else if (driver == cow_library_driver(COW_VFD_MULTI))
            name = "the file driver split or multi";
        else if (driver == cow_library_driver(COW_VFD_LOG))
            name = "the file driver log";
        else if (driver == cow_library_driver(COW_VFD_STDIO))
            name = "the file driver stdio";
        else if (driver == cow_library_driver(COW_VFD_SPLITTER))
            name = "the file driver splitter";
        else if (driver == cow_library_driver(COW_VFD_ONION))
            name = "the file driver onion";
        else if (driver == cow_library_driver(COW_VFD_DIRECT))
            name = "the file driver direct";
        else if (driver == cow_library_driver(COW_VFD_MPIO))
            name = "MPI-IO";
    }
    H5E_END_TRY
    return name;
}

bool cow_driver_writes(hid_t fapl, bool creating)
{
    size_t increment, size = 0;
    hbool_t backed = true;

    H5E_BEGIN_TRY
    {
        if (H5Pget_driver(fapl) == cow_library_driver(COW_VFD_CORE)) {
            if (H5Pget_fapl_core(fapl, &increment, &backed) < 0)
                backed = true;
            /* opening with an image, HDF5 refuses a file that exists. Not asked for it: the program's callbacks may lend theirs */
            if (!creating)
                backed = H5Pget_file_image(fapl, NULL, &size) < 0 || size == 0;
        }
    }
    H5E_END_TRY
    return backed;
}

static bool has_history(const char *file, hid_t plain)
{
    return access(file, F_OK) == 0 && (cow_has_history(file, plain, NULL) || cow_journal_present(file));
}

cow_driver_way cow_driver_choose(const char *name, unsigned flags, hid_t fapl)
{
    hid_t driver = H5Pget_driver(fapl), plain;
    cow_driver_way way = COW_DRIVER_AS_IT_IS;
    bool writing = flags & H5F_ACC_RDWR, same = false;
    size_t increment, size = 0;
    hbool_t backed = true;

    H5E_BEGIN_TRY
    {
        if (driver == cow_library_driver(COW_VFD_CORE)) {
            if (H5Pget_fapl_core(fapl, &increment, &backed) < 0)
                backed = true; /* chosen by the environment */
            same = H5Pget_file_image(fapl, NULL, &size) >= 0 && size == 0;
        } else
            same = driver == cow_library_driver(COW_VFD_STDIO) || driver == cow_library_driver(COW_VFD_LOG);
        same = same || driver == cow_library_driver(COW_VFD_DIRECT);
    }
    H5E_END_TRY
    if (!same || (backed && !writing) || (plain = cow_sec2_fapl()) < 0)
        return way;
    if (has_history(name, plain))
        way = backed ? COW_DRIVER_DEFAULT : COW_DRIVER_MEMORY;
    H5Pclose(plain);
    if (way == COW_DRIVER_DEFAULT && driver == cow_library_driver(COW_VFD_LOG))
        fprintf(stderr,
                "h5cow: %s: the file has a history, which h5cow writes itself: the file driver log logs nothing\n",
                name);
    return way;
}

/* A file in memory: HDF5 opens it like any other file, by a path of this process. */
struct cow_memory {
    cow_memory *next;
    char *name; /* of the file that is copied, the same for all its names; or what an image is called */
    char path[32];
    int descriptor;
    unsigned users;
    bool image; /* of no file */
};

static cow_memory *memories;

static cow_memory *new_memory(const char *name)
{
    cow_memory *m = calloc(1, sizeof *m);

    if (m == NULL || (m->name = strdup(name)) == NULL) {
        free(m);
        cow_error(COW_MEMORY, "%s: no memory to open the file", name);
        return NULL;
    }
    m->next = memories;
    memories = m;
    m->users = 1;
    if ((m->descriptor = memfd_create("h5cow", MFD_CLOEXEC)) < 0) {
        cow_error(COW_IO, "%s: cannot make a file in memory: %s", name, strerror(errno));
        cow_memory_close(m);
        return NULL;
    }
    snprintf(m->path, sizeof m->path, "/proc/self/fd/%d", m->descriptor);
    return m;
}

static cow_memory *kept(cow_memory *m, int status, const char *what)
{
    if (status == 0)
        return m;
    cow_error(COW_IO, "%s: cannot %s: %s", m->name, what, strerror(errno));
    cow_memory_close(m);
    return NULL;
}

/* Byte by byte: a copy of a file at work is one of its committed states. */
static int copy_file(const cow_memory *m)
{
    const int from = open(m->name, O_RDONLY | O_CLOEXEC);
    ssize_t n = from < 0 ? -1 : 1;
    int number;

    while (n > 0 || (n < 0 && from >= 0 && errno == EINTR))
        n = sendfile(m->descriptor, from, NULL, (size_t)1 << 30);
    number = errno;
    if (from >= 0)
        close(from);
    errno = number;
    return n < 0 ? -1 : 0;
}

cow_memory *cow_memory_open(const char *name)
{
    char real[PATH_MAX];
    cow_memory *m = memories;

    if (realpath(name, real) == NULL)
        snprintf(real, sizeof real, "%s", name);
    while (m != NULL && (m->image || strcmp(m->name, real) != 0))
        m = m->next;
    if (m != NULL) {
        m->users++;
        return m;
    }
    return (m = new_memory(real)) == NULL ? NULL : kept(m, copy_file(m), "copy the file to memory");
}

cow_memory *cow_memory_image(const char *name, const void *image, size_t size)
{
    cow_memory *m = new_memory(name);
    size_t done = 0;

    if (m == NULL)
        return NULL;
    m->image = true;
    while (done < size) {
        const ssize_t n = write(m->descriptor, (const char *)image + done, size - done);

        if (n < 0 && errno != EINTR)
            break;
        done += n < 0 ? 0 : (size_t)n;
    }
    return kept(m, done < size ? -1 : 0, "keep an image in memory");
}

const char *cow_memory_path(const cow_memory *memory)
{
    return memory->path;
}

void cow_memory_close(cow_memory *memory)
{
    if (memory == NULL || --memory->users > 0)
        return;
    for (cow_memory **p = &memories; *p != NULL; p = &(*p)->next)
        if (*p == memory) {
            *p = memory->next;
            break;
        }
    if (memory->descriptor >= 0)
        close(memory->descriptor);
    free(memory->name);
    free(memory);
}

/* -1: FILE, which is NAME or a part of it, has a history. */
static int check_file(const char *file, const char *name, unsigned flags, hid_t driver, hid_t plain)
{
    if (!has_history(file, plain))
        return 0;
    return cow_error(
        COW_READ_ONLY,
        "%s: %sit has a history, which only HDF5's default file driver (sec2) keeps, and %s would write over "
        "it%s%s: use the default driver, or another name; for a file without history that any driver "
        "can write: h5cow export %s OUT",
        file, flags & H5F_ACC_EXCL ? "File exists (errno = 17): " : "", name_of(driver),
        file == name ? "" : ", as a part of ", file == name ? "" : name, file);
}

void cow_driver_explain(const char *name, hid_t fapl, hid_t under, hid_t *stack)
{
    void *native = NULL;
    hid_t driver = H5Pget_driver(fapl);

    if (cow_mpi_list(fapl)) /* not all may be here */
        return;
    H5E_BEGIN_TRY
    {
        native = H5VLfile_open(name, H5F_ACC_RDONLY, under, H5P_DATASET_XFER_DEFAULT, NULL);
    }
    H5E_END_TRY
    if (native == NULL)
        return;
    if (cow_file_has_history(native) != 0) {
        cow_error_clear();
        H5Eclose_stack(*stack);
        *stack = H5I_INVALID_HID;
        cow_error(
            COW_READ_ONLY,
            "%s: it has a history, which only HDF5's default file driver (sec2) keeps, and %s would write over it: "
            "open the file by its name, with the default driver",
            name, name_of(driver));
    }
    cow_native_file_close(native);
}

/* FORMAT is the program's, as HDF5 itself uses it for this driver. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static bool member_name(char *file, size_t size, const char *format, unsigned member)
{
    int length = snprintf(file, size, format, member);

    return length >= 0 && (size_t)length < size;
}

static bool part_name(char *file, size_t size, const char *format, const char *name)
{
    int length = snprintf(file, size, format, name);

    return length >= 0 && (size_t)length < size;
}
#pragma GCC diagnostic pop

static int check_family(const char *name, unsigned flags, hid_t driver, hid_t plain)
{
    char file[4096], first[4096];
    int status = 0;

    if (!member_name(first, sizeof first, name, 0) || !member_name(file, sizeof file, name, 1) ||
        strcmp(file, first) == 0)
        return 0; /* HDF5 refuses it */
    for (unsigned n = 0; status == 0; n++) {
        if (!member_name(file, sizeof file, name, n) || (n >= FAMILY_MEMBERS && access(file, F_OK) != 0))
            break;
        status = check_file(file, name, flags, driver, plain);
    }
    return status;
}

static int check_multi(const char *name, unsigned flags, hid_t fapl, hid_t driver, hid_t plain)
{
    char file[4096], *format[H5FD_MEM_NTYPES] = {NULL};
    int status = 0;

    if (H5Pget_fapl_multi(fapl, NULL, NULL, format, NULL, NULL) < 0)
        return cow_error_native("%s: cannot find the files that it consists of", name);
    for (unsigned type = 0; type < H5FD_MEM_NTYPES; type++) {
        if (format[type] != NULL && status == 0 && part_name(file, sizeof file, format[type], name))
            status = check_file(file, name, flags, driver, plain);
        free(format[type]); /* HDF5 made it with malloc */
    }
    return status;
}

static int check_splitter(const char *name, unsigned flags, hid_t fapl, hid_t driver, hid_t plain)
{
    H5FD_splitter_vfd_config_t *config = calloc(1, sizeof *config);
    int status;

    if (config == NULL)
        return cow_error(COW_MEMORY, "%s: no memory to open the file", name);
    config->magic = H5FD_SPLITTER_MAGIC;
    config->version = H5FD_CURR_SPLITTER_VFD_CONFIG_VERSION;
    config->rw_fapl_id = config->wo_fapl_id = H5I_INVALID_HID;
    if (H5Pget_fapl_splitter(fapl, config) < 0)
        status = cow_error_native("%s: cannot find the files that it consists of", name);
    else
        status = check_file(config->wo_path, name, flags, driver, plain);
    cow_close(config->rw_fapl_id, config->wo_fapl_id);
    free(config);
    return status;
}

int cow_driver_check(const char *name, unsigned flags, hid_t fapl)
{
    hid_t driver = H5Pget_driver(fapl), plain = H5I_INVALID_HID;
    bool abandoned;
    int status = 0;

    if (!cow_driver_writes(fapl, flags & (H5F_ACC_TRUNC | H5F_ACC_EXCL)))
        return 0;
    if ((plain = cow_sec2_fapl()) < 0)
        return cow_error_native("%s: cannot prepare to open the file", name);
    if (driver == cow_library_driver(COW_VFD_FAMILY))
        status = check_family(name, flags, driver, plain);
    else if (driver == cow_library_driver(COW_VFD_MULTI))
        status = check_multi(name, flags, fapl, driver, plain);
    else if (driver == cow_library_driver(COW_VFD_SPLITTER))
        status = check_splitter(name, flags, fapl, driver, plain);
    /* what a program left that died before its first commit is no file yet */
    if (status == 0 &&
        (!(flags & H5F_ACC_TRUNC) || (cow_mpi_list(fapl) && !(cow_journal_unfinished(name, &abandoned) && abandoned))))
        status = check_file(name, name, flags, driver, plain);
    H5Pclose(plain);
    return status;
}
