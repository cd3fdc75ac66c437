/* The two functions that HDF5 looks for in a plugin file. The connector itself is in vol/class.c.
 *
 * A plugin file is loaded by any HDF5 library that finds it, and a process may have several: Python wheels bring one each.
 * The library is found by the address that H5PLget_plugin_info returns to. The first one that comes is served by this
 * instance. A second one gets, from dlopen, the same instance; it is served by a copy of the file, opened under a name of
 * its own: so all that is static in the connector, the table of HDF5's functions above all, belongs to one library.
 *
 * A plugin that says no is one that HDF5 goes on without, which nobody notices. So a library that cannot be served is
 * given a connector that refuses every file, with the reason: on that library's error stack, where it can be reached,
 * and once on standard error.
 */
#include "base/witness.h"
#include "library/library.h"
#include "native/native.h"
#include "vol/class.h"

#include <H5PLextern.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

#define RELINK "; link the program with the shared library of HDF5 (h5cc -shlib)"
#define OR_NOT "; without HDF5_VOL_CONNECTOR the program runs, and makes no versions"

/* The name has a number: an instance of another h5cow may be asked. */
#define INSTANCE      h5cow_instance_1
#define QUOTED(name)  #name
#define NAME_OF(name) QUOTED(name)
__attribute__((visibility("default"))) const void *INSTANCE(void *library, void *base, char *why, size_t size);

static const H5VL_class_t refusing;

/* The HDF5 library that has called us. */
typedef struct caller {
    void *library; /* dlopen's, NULL: nothing is known */
    void *base;    /* where it is loaded */
    char name[400];
} caller;

/* A library that this instance does not serve, and who does. */
typedef struct other {
    struct other *next;
    void *base, *wrap; /* where it is; its H5VLwrap_register: another library may come to the same place */
    const void *class;
    char why[300]; /* it is refused */
} other;

static struct {
    pthread_mutex_t lock;
    void *base; /* the library that this instance serves, NULL: none yet */
    other *others;
    unsigned copies;
    bool told; /* the refusal, on standard error */
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void know_caller(void *return_address, caller *c)
{
    Dl_info where;

    memset(c, 0, sizeof *c);
    if (dladdr(return_address, &where) == 0)
        return;
    c->base = where.dli_fbase;
    snprintf(c->name, sizeof c->name, "%s", where.dli_fname == NULL ? "" : where.dli_fname);
    c->library = dlopen(c->name, RTLD_LAZY | RTLD_NOLOAD);
    if (c->library == NULL) /* the program itself, linked statically */
        c->library = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
}

static void forget_caller(caller *c)
{
    if (c->library != NULL)
        dlclose(c->library);
}

/* ---- which instance ---- */

/* Is the library that this instance serves still in memory? */
static bool is_in_use(void)
{
    Dl_info where;
    void *symbol;

    memcpy(&symbol, &cow_library.H5VLwrap_register_, sizeof symbol);
    return plugin.base != NULL && dladdr(symbol, &where) != 0 && where.dli_fbase == plugin.base;
}

/* This instance's connector for LIBRARY, which is at BASE. NULL: WHY, or it serves another one, WHY empty. */
const void *INSTANCE(void *library, void *base, char *why, size_t size)
{
    *why = '\0';
    if (is_in_use())
        return plugin.base == base && cow_library_is(library) ? &cow_class : NULL;
    if (cow_library_bind(library, why, size) < 0)
        return NULL;
    plugin.base = base;
    return &cow_class;
}

static int copy_bytes(int from, int to)
{
    struct stat st;
    off_t at = 0;

    if (fstat(from, &st) < 0)
        return -1;
    while (at < st.st_size)
        if (sendfile(to, from, &at, (size_t)(st.st_size - at)) <= 0)
            return -1;
    return 0;
}

/* The copy in memory. dlopen takes a name that it has seen for the same object, and numbers of descriptors come again:
 * dots make each name a new one. */
static void *open_in_memory(int self, unsigned number)
{
    int fd = memfd_create("libh5cow.so", MFD_CLOEXEC | MFD_EXEC);
    char path[200];
    void *copy = NULL;

    if (fd < 0)
        fd = memfd_create("libh5cow.so", MFD_CLOEXEC); /* an older kernel */
    if (fd < 0)
        return NULL;
    if (number < 50 && copy_bytes(self, fd) == 0) {
        size_t used = (size_t)snprintf(path, sizeof path, "/proc/self/");
        for (unsigned i = 0; i < number; i++)
            used += (size_t)snprintf(path + used, sizeof path - used, "./");
        snprintf(path + used, sizeof path - used, "fd/%d", fd);
        copy = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    close(fd);
    return copy;
}

/* Where there is no /proc, or memory may not be executed: a file, gone again at once. */
static void *open_in_folder(int self, const char *folder)
{
    char path[512];
    void *copy = NULL;
    int fd;

    if (folder == NULL || *folder != '/' ||
        (size_t)snprintf(path, sizeof path, "%s/libh5cow-XXXXXX.so", folder) >= sizeof path ||
        (fd = mkostemps(path, 3, O_CLOEXEC)) < 0)
        return NULL;
    if (copy_bytes(self, fd) == 0 && fchmod(fd, 0500) == 0)
        copy = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    close(fd);
    return copy;
}

/* Another instance of this file; WHY. */
static void *open_copy(cow_instance *instance, char *why, size_t size)
{
    const char *const folders[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", getenv("XDG_RUNTIME_DIR"), getenv("HOME")};
    Dl_info here;
    void *copy = NULL;
    int self;

    if (dladdr(&plugin, &here) == 0 || (self = open(here.dli_fname, O_RDONLY | O_CLOEXEC)) < 0) {
        snprintf(why, size, "the process has another HDF5 library, and h5cow cannot read its own file to serve both");
        return NULL;
    }
    *instance = COW_INSTANCE_MEMORY;
    if ((copy = open_in_memory(self, ++plugin.copies)) == NULL)
        *instance = COW_INSTANCE_FOLDER;
    for (size_t i = 0; copy == NULL && i < sizeof folders / sizeof *folders; i++)
        copy = open_in_folder(self, folders[i]);
    close(self);
    if (copy == NULL)
        snprintf(
            why, size,
            "the process has another HDF5 library, and h5cow cannot open a copy of itself to serve both, neither in "
            "memory nor in a temporary folder: set TMPDIR to one where files may be executed");
    return copy;
}

static const void *class_of_copy(const caller *c, cow_instance *instance, char *why, size_t size)
{
    const void *(*of_copy)(void *, void *, char *, size_t);
    const void *class = NULL;
    void *copy = open_copy(instance, why, size), *symbol;

    if (copy == NULL)
        return NULL;
    if ((symbol = dlsym(copy, NAME_OF(INSTANCE))) != NULL) {
        memcpy(&of_copy, &symbol, sizeof of_copy);
        class = of_copy(c->library, c->base, why, size);
    } else
        snprintf(why, size, "another h5cow was installed since the program began");
    if (class == NULL)
        dlclose(copy);
    return class;
}

static void *wrap_of(const caller *c)
{
    return c->library == NULL ? NULL : dlsym(c->library, "H5VLwrap_register");
}

static other *known(const caller *c)
{
    void *wrap = wrap_of(c);

    for (other *o = plugin.others; o != NULL; o = o->next)
        if (o->base == c->base && o->wrap == wrap)
            return o;
    return NULL;
}

/* HDF5 1.12 and older know connectors of another shape: they leave ours out, and the program goes on without it. `h5cow run`
 * tells that itself. */
static void tell_older(const caller *c, const char *why)
{
    const char *asked = getenv("HDF5_VOL_CONNECTOR");
    unsigned v[3];

    if (getenv(COW_WITNESS_VARIABLE) == NULL && asked != NULL &&
        strncmp(asked, COW_CONNECTOR_NAME, strlen(COW_CONNECTOR_NAME)) == 0 && c->library != NULL &&
        cow_library_version(c->library, v) && v[0] == 1 && v[1] < 14 && !plugin.told) {
        plugin.told = true;
        fprintf(stderr, "h5cow: no version is made: the HDF5 library of this program is %s, version %u.%u.%u: %s\n",
                c->name, v[0], v[1], v[2], why);
    }
}

/* What NAME, which the dynamic linker gives, is in the lists of a process. free() it. */
static char *real_name(const char *name)
{
    char *real = realpath(name, NULL);

    return real != NULL ? real : realpath("/proc/self/exe", NULL); /* the program was found through PATH */
}

/* For `h5cow run` and `h5cow doctor`, once for each library of a process. */
static void tell_command(const caller *c, cow_instance instance, const char *why)
{
    unsigned v[3];
    char version[40] = "?", *name = NULL, *file = NULL;
    Dl_info here;

    if (getenv(COW_WITNESS_VARIABLE) == NULL)
        return;
    if (c->library != NULL && cow_library_version(c->library, v))
        snprintf(version, sizeof version, "%u.%u.%u", v[0], v[1], v[2]);
    else
        why = "its functions cannot be found" RELINK;
    name = real_name(c->name);
    file = dladdr(&plugin, &here) == 0 ? NULL : realpath(here.dli_fname, NULL);
    cow_witness_library(COW_WITNESS_LIBRARY, (long)getpid(), version, instance, name == NULL ? c->name : name,
                        file == NULL ? "" : file, why);
    free(name);
    free(file);
}

/* Never NULL. Without memory even for a reason the library is refused without one. */
static const void *class_for(const caller *c)
{
    char why[sizeof((other *)0)->why] = "";
    const void *class = NULL;
    cow_instance instance = COW_INSTANCE_FILE;
    bool bound = is_in_use();
    other *o = known(c);

    if (o != NULL && o->class != NULL)
        return o->class;
    if (c->library != NULL && (class = INSTANCE(c->library, c->base, why, sizeof why)) != NULL) {
        if (!bound)
            tell_command(c, instance, why);
        return class;
    }
    if (c->library != NULL && *why == '\0')
        class = class_of_copy(c, &instance, why, sizeof why);
    if (class == NULL)
        tell_older(c, why);
    if (o == NULL || class != NULL)
        tell_command(c, class == NULL ? COW_INSTANCE_NONE : instance, why);
    if (o == NULL && (o = calloc(1, sizeof *o)) != NULL) {
        o->base = c->base;
        o->wrap = wrap_of(c);
        o->next = plugin.others;
        plugin.others = o;
    }
    if (o != NULL) {
        o->class = class;
        snprintf(o->why, sizeof o->why, "%s", why);
    }
    return class == NULL ? &refusing : class;
}

/* ---- the connector that refuses ---- */

static bool version_of(const caller *c, char *text, size_t size)
{
    unsigned v[3];

    if (c->library == NULL || !cow_library_version(c->library, v))
        return false;
    snprintf(text, size, "version %u.%u.%u", v[0], v[1], v[2]);
    return true;
}

/* On the error stack of the library that has called, if it can be reached. */
static void push(const caller *c, const char *text)
{
    herr_t (*push2)(hid_t, const char *, const char *, unsigned, hid_t, hid_t, hid_t, const char *, ...);
    void *symbol, *class, *major, *minor;

    if (c->library == NULL || (symbol = dlsym(c->library, "H5Epush2")) == NULL ||
        (class = dlsym(c->library, "H5E_ERR_CLS_g")) == NULL || (major = dlsym(c->library, "H5E_VOL_g")) == NULL ||
        (minor = dlsym(c->library, "H5E_UNSUPPORTED_g")) == NULL)
        return;
    memcpy(&push2, &symbol, sizeof push2);
    push2(H5E_DEFAULT, "h5cow", "h5cow", 0, *(hid_t *)class, *(hid_t *)major, *(hid_t *)minor, "%s", text);
}

static void refuse(void *return_address, const char *file)
{
    char text[1200], version[60], why[sizeof((other *)0)->why] = "";
    caller c;
    const other *o;

    know_caller(return_address, &c);
    pthread_mutex_lock(&plugin.lock);
    if ((o = known(&c)) != NULL)
        memcpy(why, o->why, sizeof why);
    pthread_mutex_unlock(&plugin.lock);
    if (version_of(&c, version, sizeof version))
        snprintf(text, sizeof text,
                 "h5cow opens no file with the HDF5 library of this program, which is %s, %s: %s" OR_NOT, c.name,
                 version, why);
    else
        snprintf(
            text, sizeof text,
            "h5cow opens no file with the HDF5 library of this program, which is linked into %s: its functions cannot "
            "be found" RELINK OR_NOT,
            c.name);
    push(&c, text);
    if (!__atomic_exchange_n(&plugin.told, true, __ATOMIC_RELAXED))
        fprintf(stderr, "h5cow: %s: %s\n", file == NULL ? "a file" : file, text);
    forget_caller(&c);
}

static herr_t any_options(const char *text, void **info)
{
    (void)text;
    *info = NULL;
    return 0;
}

static void *refuse_create(const char *name, unsigned flags, hid_t fcpl, hid_t fapl, hid_t dxpl, void **req)
{
    (void)flags, (void)fcpl, (void)fapl, (void)dxpl, (void)req;
    refuse(__builtin_return_address(0), name);
    return NULL;
}

static void *refuse_open(const char *name, unsigned flags, hid_t fapl, hid_t dxpl, void **req)
{
    (void)flags, (void)fapl, (void)dxpl, (void)req;
    refuse(__builtin_return_address(0), name);
    return NULL;
}

static herr_t refuse_specific(void *object, H5VL_file_specific_args_t *args, hid_t dxpl, void **req)
{
    (void)object, (void)dxpl, (void)req;
    if (args->op_type == H5VL_FILE_IS_ACCESSIBLE) { /* asked of all plugins, wanted or not */
        *args->args.is_accessible.accessible = false;
        return 0;
    }
    refuse(__builtin_return_address(0), args->op_type == H5VL_FILE_DELETE ? args->args.del.filename : NULL);
    return -1;
}

static herr_t no_flags(const void *info, uint64_t *flags)
{
    (void)info;
    *flags = H5VL_CAP_FLAG_NONE;
    return 0;
}

static const H5VL_class_t refusing = {
    .version = H5VL_VERSION,
    .value = COW_CONNECTOR_VALUE,
    .name = COW_CONNECTOR_NAME,
    .conn_version = COW_CONNECTOR_VERSION,
    .info_cls = {.from_str = any_options},
    .file_cls = {.create = refuse_create, .open = refuse_open, .specific = refuse_specific},
    .introspect_cls = {.get_cap_flags = no_flags},
};

H5PL_type_t H5PLget_plugin_type(void)
{
    return H5PL_TYPE_VOL;
}

const void *H5PLget_plugin_info(void)
{
    const void *class;
    caller c;

    know_caller(__builtin_return_address(0), &c);
    pthread_mutex_lock(&plugin.lock);
    class = class_for(&c);
    pthread_mutex_unlock(&plugin.lock);
    forget_caller(&c);
    return class;
}
