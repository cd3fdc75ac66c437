/* HDF5 without the connector, and texts, for the C tests through the connector. Contract: through.h. */
#include "through.h"

#include <stdlib.h>
#include <string.h>

hid_t native_fapl;

static hid_t native;

int through_begin(void **state)
{
    (void)state;
    native = H5VLregister_connector_by_value(H5_VOL_NATIVE, H5P_DEFAULT);
    native_fapl = H5Pcreate(H5P_FILE_ACCESS);
    if (native >= 0 && H5Pset_vol(native_fapl, native, NULL) >= 0 && H5VLis_connector_registered_by_name("h5cow") > 0)
        return 0;
    puts("run this with HDF5_PLUGIN_PATH=FOLDER HDF5_VOL_CONNECTOR=h5cow");
    return -1;
}

int through_end(void **state)
{
    (void)state;
    H5Pclose(native_fapl);
    H5VLclose(native);
    return 0;
}

void clear(listing *l)
{
    l->length = 0;
    if (l->data != NULL)
        l->data[0] = '\0';
}

void say(listing *l, const char *format, ...)
{
    va_list list;

    if (l->room - l->length < 1000) {
        l->room = l->room * 2 + 100000;
        if ((l->data = realloc(l->data, l->room)) == NULL)
            abort();
    }
    va_start(list, format);
    l->length += (size_t)vsnprintf(l->data + l->length, l->room - l->length, format, list);
    va_end(list);
}

/* The last lines of TEXT before END. */
static const char *before(const char *text, const char *end)
{
    const char *at = end;

    for (int lines = 0; at > text && lines <= 100; at--)
        lines += at[-1] == '\n';
    return at;
}

bool same_text(const char *what, const listing *a, const listing *b)
{
    const char *p = a->data == NULL ? "" : a->data, *q = b->data == NULL ? "" : b->data;

    if (strcmp(p, q) == 0)
        return true;
    while (*p != '\0' && *q != '\0') {
        size_t m = strcspn(p, "\n"), n = strcspn(q, "\n");
        if (m != n || strncmp(p, q, m) != 0)
            break;
        p += m + (p[m] != '\0');
        q += n + (q[n] != '\0');
    }
    printf("  %s, after\n%.*s  - %.*s\n  + %.*s\n", what, (int)(p - before(a->data, p)), before(a->data, p),
           (int)strcspn(p, "\n"), p, (int)strcspn(q, "\n"), q);
    return false;
}
