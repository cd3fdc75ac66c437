/* The two functions that HDF5 looks for in a plugin file. The connector itself is in vol/class.c.
 *
 * A plugin is loaded by any HDF5 library that finds it, but works with the one that it was built for: another one's
 * objects and ids mean nothing to it. Python wheels bring such a library. A plugin that says no is one that HDF5 goes
 * on without, which nobody notices; so a strange library is given a connector that refuses every file, with the reason:
 * on that library's error stack, or, where it cannot be reached, on standard error.
 */
#include "vol/vol.h"

#include <H5PLextern.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define USE                                                                                                             \
    "; use a program with the HDF5 library of h5cow (for Python: h5py from the same distribution), or build h5cow for " \
    "this one"
#define RELINK "; link the program with the shared library of HDF5 (h5cc -shlib)"
#define OR_NOT "; without HDF5_VOL_CONNECTOR the program runs, and makes no versions"

/* The HDF5 library that has called us: found by the address that we return to. */
typedef struct caller {
    void *library; /* dlopen's, NULL: nothing is known */
    char name[400];
    bool other; /* not the one that our own calls go to */
} caller;

static void know_caller(void *return_address, caller *c)
{
    Dl_info theirs, ours;

    memset(c, 0, sizeof *c);
    c->other = true;
    /* not H5open: an executable may have an address of its own for a function that it takes the address of */
    if (dladdr(return_address, &theirs) == 0 || dladdr((void *)(uintptr_t)H5VLwrap_register, &ours) == 0)
        return;
    c->other = theirs.dli_fbase != ours.dli_fbase;
    snprintf(c->name, sizeof c->name, "%s", theirs.dli_fname == NULL ? "" : theirs.dli_fname);
    c->library = dlopen(c->name, RTLD_LAZY | RTLD_NOLOAD);
    if (c->library == NULL) /* the program itself, linked statically */
        c->library = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
}

static void forget_caller(caller *c)
{
    if (c->library != NULL)
        dlclose(c->library);
}

typedef struct version {
    unsigned major, minor, release; /* zeros: not known */
} version;

/* Of another library: its error stack is cleared, as any call does. */
static version version_of(const caller *c)
{
    herr_t (*ask)(unsigned *, unsigned *, unsigned *) = H5get_libversion;
    version v = {0};
    void *symbol = c->other && c->library != NULL ? dlsym(c->library, "H5get_libversion") : NULL;

    if (symbol != NULL)
        memcpy(&ask, &symbol, sizeof ask);
    if (symbol != NULL || !c->other)
        ask(&v.major, &v.minor, &v.release);
    return v;
}

/* Structures that are passed to connectors have changed between minor versions, with the number of the interface the
 * same. HDF5 looks for plugins when it cannot open a file: then the reason is on the stack, and stays there. */
static bool is_strange(const caller *c)
{
    hid_t stack;
    version v;

    if (c->other)
        return true;
    stack = H5Eget_num(H5E_DEFAULT) > 0 ? H5Eget_current_stack() : H5I_INVALID_HID;
    v = version_of(c);
    if (stack >= 0)
        H5Eset_current_stack(stack);
    return v.major != H5_VERS_MAJOR || v.minor != H5_VERS_MINOR;
}

/* On the error stack of the library that has called. False: it cannot be reached, as that of a libhdf5 that is linked
 * into the program, whose functions the dynamic linker does not know. */
static bool push(const caller *c, const char *text)
{
    herr_t (*push2)(hid_t, const char *, const char *, unsigned, hid_t, hid_t, hid_t, const char *, ...);
    void *symbol, *class, *major, *minor;

    if (c->library == NULL || (symbol = dlsym(c->library, "H5Epush2")) == NULL ||
        (class = dlsym(c->library, "H5E_ERR_CLS_g")) == NULL || (major = dlsym(c->library, "H5E_VOL_g")) == NULL ||
        (minor = dlsym(c->library, "H5E_UNSUPPORTED_g")) == NULL)
        return false;
    memcpy(&push2, &symbol, sizeof push2);
    return push2(H5E_DEFAULT, "h5cow", "h5cow", 0, *(hid_t *)class, *(hid_t *)major, *(hid_t *)minor, "%s", text) >= 0;
}

static void refuse(void *return_address, const char *file)
{
    char text[1024], name[512];
    const char *advice = USE;
    caller c;
    version v;

    know_caller(return_address, &c);
    v = version_of(&c);
    if (v.major == 0) {
        snprintf(name, sizeof name, "which is linked into %s", c.name);
        advice = RELINK;
    } else
        snprintf(name, sizeof name, "which is %s, version %u.%u.%u", c.name, v.major, v.minor, v.release);
    if (c.other)
        snprintf(text, sizeof text,
                 "h5cow opens no file: it does not belong to the HDF5 library of this program, %s%s" OR_NOT, name,
                 advice);
    else
        snprintf(text, sizeof text,
                 "h5cow opens no file: it is built for HDF5 %u.%u, not for that of this program, %s%s" OR_NOT,
                 (unsigned)H5_VERS_MAJOR, (unsigned)H5_VERS_MINOR, name, advice);
    if (!push(&c, text))
        fprintf(stderr, "h5cow: %s: %s\n", file == NULL ? "a file" : file, text);
    forget_caller(&c);
}

/* ---- the connector that refuses ---- */

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
    caller c;
    bool strange;

    know_caller(__builtin_return_address(0), &c);
    strange = is_strange(&c);
    forget_caller(&c);
    return strange ? &refusing : &cow_class;
}
