/* The two functions that HDF5 looks for in a plugin file. The connector itself is in vol/class.c.
 *
 * A plugin is loaded by any HDF5 library that finds it, but works with the one that it was built for: another one's
 * objects and ids mean nothing to it. Python wheels bring such a library. A plugin that says no is one that HDF5 goes
 * on without, which nobody notices; so a strange library is given a connector that refuses every file, with the reason.
 */
#include "vol/vol.h"

#include <H5PLextern.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ADVICE                                                                                                          \
    "; use a program with the HDF5 library of h5cow (for Python: h5py from the same distribution), or build h5cow for " \
    "this one; without HDF5_VOL_CONNECTOR the program runs, and makes no versions"

/* The HDF5 library that has called us: found by the address that we return to. */
typedef struct caller {
    void *library; /* dlopen's, NULL: it is no HDF5 library */
    char name[400];
    bool other; /* not the one that our own calls go to */
    unsigned version[3];
} caller;

static void know_caller(void *return_address, caller *c)
{
    Dl_info theirs, ours;
    herr_t (*version)(unsigned *, unsigned *, unsigned *) = NULL;
    void *symbol;

    memset(c, 0, sizeof *c);
    /* not H5open: an executable may have an address of its own for a function that it takes the address of */
    if (dladdr(return_address, &theirs) == 0 || dladdr((void *)(uintptr_t)H5VLwrap_register, &ours) == 0)
        return;
    c->other = theirs.dli_fbase != ours.dli_fbase;
    snprintf(c->name, sizeof c->name, "%s", theirs.dli_fname == NULL ? "" : theirs.dli_fname);
    c->library = dlopen(c->name, RTLD_LAZY | RTLD_NOLOAD);
    if (c->library == NULL) /* the program itself, linked statically */
        c->library = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
    symbol = c->library == NULL ? NULL
             : c->other         ? dlsym(c->library, "H5get_libversion")
                                : (void *)(uintptr_t)H5get_libversion;
    if (symbol == NULL) {
        c->other = false;
        return;
    }
    memcpy(&version, &symbol, sizeof version);
    version(&c->version[0], &c->version[1], &c->version[2]);
}

static void forget_caller(caller *c)
{
    if (c->library != NULL)
        dlclose(c->library);
}

/* Structures that are passed to connectors have changed between minor versions, with the number of the interface the
 * same. */
static bool is_strange(const caller *c)
{
    return c->library != NULL && (c->other || c->version[0] != H5_VERS_MAJOR || c->version[1] != H5_VERS_MINOR);
}

/* On the error stack of the library that has called. */
static void refuse(void *return_address)
{
    herr_t (*push)(hid_t, const char *, const char *, unsigned, hid_t, hid_t, hid_t, const char *, ...);
    void *symbol, *class, *major, *minor;
    char text[1024];
    caller c;

    know_caller(return_address, &c);
    if (c.library != NULL && (symbol = dlsym(c.library, "H5Epush2")) != NULL &&
        (class = dlsym(c.library, "H5E_ERR_CLS_g")) != NULL && (major = dlsym(c.library, "H5E_VOL_g")) != NULL &&
        (minor = dlsym(c.library, "H5E_UNSUPPORTED_g")) != NULL) {
        memcpy(&push, &symbol, sizeof push);
        if (c.other)
            snprintf(text, sizeof text,
                     "h5cow opens no file: it does not belong to the HDF5 library of this program, "
                     "which is %s, version %u.%u.%u" ADVICE,
                     c.name, c.version[0], c.version[1], c.version[2]);
        else
            snprintf(text, sizeof text,
                     "h5cow opens no file: it is built for HDF5 %u.%u, and this is %s, version "
                     "%u.%u.%u" ADVICE,
                     (unsigned)H5_VERS_MAJOR, (unsigned)H5_VERS_MINOR, c.name, c.version[0], c.version[1],
                     c.version[2]);
        push(H5E_DEFAULT, "h5cow", "h5cow", 0, *(hid_t *)class, *(hid_t *)major, *(hid_t *)minor, "%s", text);
    }
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
    (void)name, (void)flags, (void)fcpl, (void)fapl, (void)dxpl, (void)req;
    refuse(__builtin_return_address(0));
    return NULL;
}

static void *refuse_open(const char *name, unsigned flags, hid_t fapl, hid_t dxpl, void **req)
{
    (void)name, (void)flags, (void)fapl, (void)dxpl, (void)req;
    refuse(__builtin_return_address(0));
    return NULL;
}

static herr_t refuse_specific(void *object, H5VL_file_specific_args_t *args, hid_t dxpl, void **req)
{
    (void)object, (void)dxpl, (void)req;
    if (args->op_type == H5VL_FILE_IS_ACCESSIBLE) { /* asked of all plugins, wanted or not */
        *args->args.is_accessible.accessible = false;
        return 0;
    }
    refuse(__builtin_return_address(0));
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
