/* Fills the table of HDF5's functions and variables: see library.h. */
#include "library/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The newest release whose structures were compared with ours. */
#define NEWEST_MAJOR 2
#define NEWEST_MINOR 2

#define IN_VERSIONS(member) offsetof(cow_hdf5, differs.member)
#define IN_DRIVER(number, member)                                                                                      \
    (offsetof(cow_hdf5, driver) + (number) * sizeof(cow_hdf5_driver_symbols) +                                         \
     offsetof(cow_hdf5_driver_symbols, member))
/* What 1.14 has of a file driver, and what 2.x has. */
#define DRIVER(lower, upper, number)                                                                                   \
    {"H5FD_" lower "_init", IN_DRIVER(number, initialise)},                                                            \
    {                                                                                                                  \
        "H5FD_" upper "_id_g", IN_DRIVER(number, id)                                                                   \
    }

typedef struct place {
    const char *name;
    size_t at; /* bytes into cow_hdf5 */
} place;

cow_hdf5 cow_library;

static const place needed[] = {
#include "hdf5_names.h"
};

/* The first of several names that is there is taken. */
static const place wanted[] = {
    {"H5VLstart_lib_state", IN_VERSIONS(start_state)},
    {"H5VLfinish_lib_state", IN_VERSIONS(finish_state)},
    {"H5VLopen_lib_context", IN_VERSIONS(open_context)},
    {"H5VLclose_lib_context", IN_VERSIONS(close_context)},
    {"H5Tdecode", IN_VERSIONS(decode)},
    {"H5Tdecode1", IN_VERSIONS(decode)},
    {"H5Tdecode2", IN_VERSIONS(decode_2)},
    {"H5Dread_chunk", IN_VERSIONS(read_chunk)},
    {"H5Dread_chunk1", IN_VERSIONS(read_chunk)},
    {"H5Dread_chunk2", IN_VERSIONS(read_chunk_2)},
    {"H5I_remove", IN_VERSIONS(remove_id)},
    {"H5FDperform_init", IN_VERSIONS(perform_init)},
    {"H5Pget_fapl_mpio", IN_VERSIONS(get_fapl_mpio)},
    {"H5Pset_all_coll_metadata_ops", IN_VERSIONS(set_collective_metadata)},
    {"MPI_Comm_split", IN_VERSIONS(split)},
    {"MPI_Comm_size", IN_VERSIONS(size)},
    {"MPI_Comm_free", IN_VERSIONS(free)},
    {"ompi_mpi_comm_null", IN_VERSIONS(null_pointer)},
    DRIVER("sec2", "SEC2", COW_VFD_SEC2),
    DRIVER("core", "CORE", COW_VFD_CORE),
    DRIVER("family", "FAMILY", COW_VFD_FAMILY),
    DRIVER("multi", "MULTI", COW_VFD_MULTI),
    DRIVER("log", "LOG", COW_VFD_LOG),
    DRIVER("stdio", "STDIO", COW_VFD_STDIO),
    DRIVER("splitter", "SPLITTER", COW_VFD_SPLITTER),
    DRIVER("onion", "ONION", COW_VFD_ONION),
    DRIVER("direct", "DIRECT", COW_VFD_DIRECT),
    DRIVER("mpio", "MPIO", COW_VFD_MPIO),
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_variable(const char *name)
{
    size_t length = strlen(name);

    return length > 2 && strcmp(name + length - 2, "_g") == 0;
}

/* Where NAME is. An executable that is linked with the library has copies of the variables that it uses (copy
 * relocations), and the library then uses these copies: its own, which dlsym(library) gives, nobody writes. So
 * variables are looked for as the library itself finds them, in the global scope, if that has this library's HDF5. */
static void *find(void *library, bool global, const char *name)
{
    return dlsym(global && is_variable(name) ? RTLD_DEFAULT : library, name);
}

/* An unknown release may have other structures, and a call with the wrong ones destroys data. */
static int check_version(const cow_hdf5 *table, char *why, size_t size)
{
    if (table->major < 1 || (table->major == 1 && table->minor < 14)) {
        snprintf(why, size, "h5cow needs HDF5 1.14 or newer");
        return -1;
    }
    if (table->major > NEWEST_MAJOR || (table->major == NEWEST_MAJOR && table->minor > NEWEST_MINOR) ||
        (table->major == 1 && table->minor > 14)) {
        snprintf(why, size, "this h5cow knows HDF5 up to %d.%d", NEWEST_MAJOR, NEWEST_MINOR);
        return -1;
    }
    return 0;
}

static bool lacks_versions(const cow_hdf5 *table)
{
    const cow_hdf5_versions *v = &table->differs;
    bool state = table->major >= 2 ? v->open_context != NULL && v->close_context != NULL
                                   : v->start_state != NULL && v->finish_state != NULL;

    return !state || (v->decode == NULL && v->decode_2 == NULL) || (v->read_chunk == NULL && v->read_chunk_2 == NULL);
}

bool cow_library_version(void *library, unsigned version[3])
{
    const char *text = dlsym(library, "H5_lib_vers_info_g");

    return text != NULL && sscanf(text, "HDF5 library version: %u.%u.%u", &version[0], &version[1], &version[2]) == 3;
}

int cow_library_bind(void *library, char *why, size_t size)
{
    void *symbol, *wrap = dlsym(library, "H5VLwrap_register");
    bool global = wrap != NULL && dlsym(RTLD_DEFAULT, "H5VLwrap_register") == wrap;
    cow_hdf5 table = {0};
    unsigned version[3];

    if (!cow_library_version(library, version)) {
        snprintf(why, size, "its functions cannot be found");
        return -1;
    }
    table.major = version[0];
    table.minor = version[1];
    table.release = version[2];
    if (check_version(&table, why, size) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(needed); i++) {
        if ((symbol = find(library, global, needed[i].name)) == NULL) {
            snprintf(why, size, "it lacks %s", needed[i].name);
            return -1;
        }
        memcpy((char *)&table + needed[i].at, &symbol, sizeof symbol);
    }
    for (size_t i = 0; i < COUNT(wanted); i++) {
        void *earlier;
        memcpy(&earlier, (char *)&table + wanted[i].at, sizeof earlier);
        if (earlier == NULL && (symbol = find(library, global, wanted[i].name)) != NULL)
            memcpy((char *)&table + wanted[i].at, &symbol, sizeof symbol);
    }
    if (lacks_versions(&table)) {
        snprintf(why, size, "it lacks what HDF5 %u.%u.%u has", table.major, table.minor, table.release);
        return -1;
    }
    cow_library = table;
    return 0;
}

bool cow_library_is(void *library)
{
    void *symbol = dlsym(library, "H5VLwrap_register"), *ours;

    memcpy(&ours, &cow_library.H5VLwrap_register_, sizeof ours);
    return symbol != NULL && symbol == ours;
}

/* What h5cow was built beside; then the newest that the dynamic linker knows, and what is there for building programs.
 * Debian has a name of its own for the library without MPI. */
static const char *const names[] = {
#ifdef COW_HDF5_FOLDER
    COW_HDF5_FOLDER "/libhdf5.so",
#endif
    "libhdf5_serial.so.320",       "libhdf5.so.320", "libhdf5_serial.so.310", "libhdf5.so.310",
    "libhdf5_serial.so",           "libhdf5.so",
};

/* The folder of PATH, and the library beside it that the dynamic linker has just missed: what it said begins with the name.
 * -1: it missed nothing that is there. */
static int missed_beside(const char *path, char *beside, size_t size)
{
    const char *said = dlerror(), *slash = strrchr(path, '/'), *colon = said == NULL ? NULL : strchr(said, ':');

    if (slash == NULL || colon == NULL || memchr(said, '/', (size_t)(colon - said)) != NULL ||
        (size_t)snprintf(beside, size, "%.*s/%.*s", (int)(slash - path), path, (int)(colon - said), said) >= size)
        return -1;
    return access(beside, F_OK);
}

/* dlopen. In older wheels libhdf5 does not say where the libraries are that it needs, because those that need it do; they
 * are beside it, and are loaded before it. */
static void *load(const char *path, unsigned depth)
{
    void *library;
    char beside[4096];

    for (unsigned tries = 0; tries < 16; tries++) {
        if ((library = dlopen(path, RTLD_NOW | RTLD_GLOBAL)) != NULL)
            return library;
        if (depth == 8 || missed_beside(path, beside, sizeof beside) < 0)
            break;
        if (load(beside, depth + 1) == NULL)
            return NULL;
    }
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* for its error, which was read */
}

int cow_library_find(const char *path, char *why, size_t size)
{
    void *library;

    if (path != NULL) {
        char reason[200];
        if ((library = load(path, 0)) == NULL) {
            snprintf(why, size, "%s", dlerror());
            return -1;
        }
        if (cow_library_bind(library, reason, sizeof reason) < 0) {
            snprintf(why, size, "%s: %s", path, reason);
            return -1;
        }
        return 0;
    }
    if (dlsym(RTLD_DEFAULT, "H5_lib_vers_info_g") != NULL)
        return cow_library_bind(RTLD_DEFAULT, why, size);
    snprintf(why, size, "there is no libhdf5 1.14 or newer where the dynamic linker looks");
    for (size_t i = 0; i < COUNT(names); i++) {
        if ((library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL)) == NULL)
            continue;
        if (cow_library_bind(library, why, size) == 0)
            return 0;
        dlclose(library);
    }
    return -1;
}

hid_t cow_library_driver(cow_hdf5_driver driver)
{
    const cow_hdf5_driver_symbols *symbols = &cow_library.driver[driver];

    if (symbols->id != NULL)
        return cow_library.H5open_() < 0 ? H5I_INVALID_HID : *symbols->id;
    if (symbols->initialise == NULL)
        return H5I_INVALID_HID;
    return cow_library.differs.perform_init != NULL ? cow_library.differs.perform_init(symbols->initialise)
                                                    : symbols->initialise();
}

herr_t cow_library_enter(void **context)
{
    return cow_library_is_2() ? cow_library.differs.open_context(context) : cow_library.differs.start_state();
}

herr_t cow_library_leave(void *context)
{
    return cow_library_is_2() ? cow_library.differs.close_context(context) : cow_library.differs.finish_state();
}

hid_t cow_library_decode_type(const void *bytes, size_t size)
{
    return cow_library.differs.decode_2 != NULL ? cow_library.differs.decode_2(bytes, size)
                                                : cow_library.differs.decode(bytes);
}

void cow_library_remove_id(hid_t id)
{
    if (cow_library.differs.remove_id != NULL)
        cow_library.differs.remove_id(id);
}

herr_t cow_library_read_chunk(hid_t dataset, const hsize_t *offset, uint32_t *filters, void *bytes, size_t size)
{
    return cow_library.differs.read_chunk_2 != NULL
               ? cow_library.differs.read_chunk_2(dataset, H5P_DEFAULT, offset, filters, bytes, &size)
               : cow_library.differs.read_chunk(dataset, H5P_DEFAULT, offset, filters, bytes);
}
