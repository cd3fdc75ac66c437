/* The comparison of two trees, object by object: see compare.h. What may differ, and why, is in one table
 * in main.c; the code here asks `how` and says which row of that table it applies (D1, D2 ...).
 */
#include "compare.h"

#include "run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMES 4096

static bool say(comparison *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool say(comparison *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->why, sizeof c->why, format, args);
    va_end(args);
    return false;
}

/* The two answers to a question that is a number. Failures agree with failures, whatever their cause. */
static bool agree(comparison *c, const char *path, const char *what, long long a, long long b)
{
    if ((a < 0 && b < 0) || a == b)
        return true;
    if (b < 0)
        c->stack = H5Eget_current_stack();
    return say(c, "%s: %s: native %lld, under test %lld", path, what, a, b);
}

/* ---- types and values ---- */

bool type_contains(hid_t type, H5T_class_t cls)
{
    H5T_class_t own = H5Tget_class(type);
    if (own == cls || (cls == H5T_VLEN && own == H5T_STRING && H5Tis_variable_str(type) > 0))
        return true;
    bool found = false;
    if (own == H5T_COMPOUND) {
        int n = H5Tget_nmembers(type);
        for (int i = 0; i < n && !found; i++) {
            hid_t member = H5Tget_member_type(type, (unsigned)i);
            found = type_contains(member, cls);
            H5Tclose(member);
        }
    } else if (own == H5T_ARRAY || own == H5T_VLEN) {
        hid_t base = H5Tget_super(type);
        found = type_contains(base, cls);
        H5Tclose(base);
    }
    return found;
}

bool type_has_new_references(hid_t type)
{
    H5T_class_t own = H5Tget_class(type);
    bool found = own == H5T_REFERENCE && H5Tequal(type, H5T_STD_REF) > 0;
    if (own == H5T_COMPOUND) {
        int n = H5Tget_nmembers(type);
        for (int i = 0; i < n && !found; i++) {
            hid_t member = H5Tget_member_type(type, (unsigned)i);
            found = type_has_new_references(member);
            H5Tclose(member);
        }
    } else if (own == H5T_ARRAY || own == H5T_VLEN) {
        hid_t base = H5Tget_super(type);
        found = type_has_new_references(base);
        H5Tclose(base);
    }
    return found;
}

bool type_nests_references(hid_t type)
{
    return H5Tget_class(type) != H5T_REFERENCE && type_has_new_references(type);
}

/* Has the native address one object, and never had another? Then a reference that holds it leads there. */
static bool surely(const comparison *c, const H5O_token_t *native)
{
    for (size_t i = 0; c->addresses && i < c->addresses->count; i++)
        if (memcmp(&c->addresses->at[i].token, native, sizeof *native) == 0)
            return c->addresses->at[i].alive && !c->addresses->at[i].again;
    return false;
}

/* What object a native reference was made for, without following it: through one that dangles HDF5 would read, and keep
 * in its cache, an object header that is none (D3). */
static bool target_of(const comparison *c, hid_t type, const unsigned char *value, H5O_token_t *token)
{
    memset(token, 0, sizeof *token);
    if (H5Tequal(type, H5T_STD_REF_OBJ) > 0)
        memcpy(token, value, sizeof(hobj_ref_t));
    else if (H5Tequal(type, H5T_STD_REF) > 0)
        memcpy(token, value, sizeof *token); /* an H5R_ref_t begins with it */
    else {
        for (size_t i = 0; c->addresses && i < c->addresses->regions; i++)
            if (memcmp(c->addresses->region[i].reference, value, sizeof c->addresses->region[i].reference) == 0) {
                *token = c->addresses->region[i].token;
                return true;
            }
        return false;
    }
    return true;
}

/* D3: a pattern is compared as bytes; a real reference holds an address of its own file. */
static bool references_agree(const unsigned char *a, const unsigned char *b, size_t size)
{
    static const unsigned char nothing[sizeof(H5R_ref_t)] = {0};
    if (a[7] == PATTERN_REFERENCE || b[7] == PATTERN_REFERENCE)
        return memcmp(a, b, size) == 0;
    return (memcmp(a, nothing, size) == 0) == (memcmp(b, nothing, size) == 0);
}

static bool value_agrees(hid_t type, const unsigned char *a, const unsigned char *b)
{
    size_t size = H5Tget_size(type);
    bool same = true;
    switch (H5Tget_class(type)) {
    case H5T_COMPOUND: {
        int n = H5Tget_nmembers(type);
        for (int i = 0; i < n && same; i++) {
            hid_t member = H5Tget_member_type(type, (unsigned)i);
            size_t at = H5Tget_member_offset(type, (unsigned)i);
            same = value_agrees(member, a + at, b + at);
            H5Tclose(member);
        }
        return same;
    }
    case H5T_ARRAY: {
        hid_t base = H5Tget_super(type);
        size_t step = H5Tget_size(base);
        for (size_t at = 0; at < size && same; at += step)
            same = value_agrees(base, a + at, b + at);
        H5Tclose(base);
        return same;
    }
    case H5T_VLEN: {
        hvl_t va, vb;
        memcpy(&va, a, sizeof va);
        memcpy(&vb, b, sizeof vb);
        if (va.len != vb.len)
            return false;
        hid_t base = H5Tget_super(type);
        size_t step = H5Tget_size(base);
        for (size_t i = 0; i < va.len && same; i++)
            same = value_agrees(base, (unsigned char *)va.p + i * step, (unsigned char *)vb.p + i * step);
        H5Tclose(base);
        return same;
    }
    case H5T_STRING:
        if (H5Tis_variable_str(type) > 0) {
            const char *sa, *sb;
            memcpy(&sa, a, sizeof sa);
            memcpy(&sb, b, sizeof sb);
            return sa && sb ? strcmp(sa, sb) == 0 : sa == sb;
        }
        return memcmp(a, b, size) == 0;
    case H5T_REFERENCE:
        return references_agree(a, b, size);
    case H5T_INTEGER:
    case H5T_FLOAT:
    case H5T_TIME:
    case H5T_BITFIELD:
    case H5T_OPAQUE:
    case H5T_ENUM:
    default: /* and complex numbers, which only HDF5 2 has */
        return memcmp(a, b, size) == 0;
    }
}

bool values_agree(hid_t type, const void *a, const void *b, size_t n)
{
    size_t size = H5Tget_size(type);
    bool pointers = type_contains(type, H5T_VLEN);
    if (!pointers && memcmp(a, b, n * size) == 0)
        return true;
    for (size_t i = 0; i < n; i++)
        if ((pointers || memcmp((const char *)a + i * size, (const char *)b + i * size, size) != 0) &&
            !value_agrees(type, (const unsigned char *)a + i * size, (const unsigned char *)b + i * size))
            return false;
    return true;
}

/* H5Tequal says no to variable-length types of two files, so the parts are compared one by one. */
static bool types_agree(comparison *c, const char *path, hid_t a, hid_t b)
{
    H5T_class_t cls = H5Tget_class(a);
    if (!agree(c, path, "type class", cls, H5Tget_class(b)) ||
        !agree(c, path, "type size", (long long)H5Tget_size(a), (long long)H5Tget_size(b)))
        return false;
    bool same = true;
    if (cls == H5T_COMPOUND || cls == H5T_ENUM) {
        int n = H5Tget_nmembers(a);
        same = agree(c, path, "type members", n, H5Tget_nmembers(b));
        for (int i = 0; i < n && same; i++) {
            char *na = H5Tget_member_name(a, (unsigned)i), *nb = H5Tget_member_name(b, (unsigned)i);
            if (!na || !nb || strcmp(na, nb) != 0)
                same = say(c, "%s: member %d is called %s, under test %s", path, i, na ? na : "?", nb ? nb : "?");
            H5free_memory(na);
            H5free_memory(nb);
            if (same && cls == H5T_COMPOUND) {
                hid_t ma = H5Tget_member_type(a, (unsigned)i), mb = H5Tget_member_type(b, (unsigned)i);
                same = agree(c, path, "member offset", (long long)H5Tget_member_offset(a, (unsigned)i),
                             (long long)H5Tget_member_offset(b, (unsigned)i)) &&
                       types_agree(c, path, ma, mb);
                H5Tclose(ma);
                H5Tclose(mb);
            } else if (same) {
                char va[16] = {0}, vb[16] = {0};
                H5Tget_member_value(a, (unsigned)i, va);
                H5Tget_member_value(b, (unsigned)i, vb);
                if (memcmp(va, vb, sizeof va) != 0)
                    same = say(c, "%s: enum member %d has another value", path, i);
            }
        }
        if (!same || cls == H5T_COMPOUND)
            return same;
    }
    if (cls == H5T_ARRAY || cls == H5T_VLEN || cls == H5T_ENUM) {
        if (cls == H5T_ARRAY) {
            hsize_t da[H5S_MAX_RANK] = {0}, db[H5S_MAX_RANK] = {0};
            if (!agree(c, path, "array rank", H5Tget_array_dims2(a, da), H5Tget_array_dims2(b, db)))
                return false;
            if (memcmp(da, db, sizeof da) != 0)
                return say(c, "%s: array type of other dims", path);
        }
        hid_t sa = H5Tget_super(a), sb = H5Tget_super(b);
        same = types_agree(c, path, sa, sb);
        H5Tclose(sa);
        H5Tclose(sb);
        return same;
    }
    if (cls == H5T_OPAQUE) {
        char *ta = H5Tget_tag(a), *tb = H5Tget_tag(b);
        if (!ta || !tb || strcmp(ta, tb) != 0)
            same = say(c, "%s: opaque tag %s, under test %s", path, ta ? ta : "?", tb ? tb : "?");
        H5free_memory(ta);
        H5free_memory(tb);
        return same;
    }
    if (cls == H5T_STRING)
        return agree(c, path, "string pad", H5Tget_strpad(a), H5Tget_strpad(b)) &&
               agree(c, path, "character set", H5Tget_cset(a), H5Tget_cset(b)) &&
               agree(c, path, "variable string", H5Tis_variable_str(a), H5Tis_variable_str(b));
    if (cls == H5T_REFERENCE)
        return agree(c, path, "object reference", H5Tequal(a, H5T_STD_REF_OBJ), H5Tequal(b, H5T_STD_REF_OBJ)) &&
               agree(c, path, "region reference", H5Tequal(a, H5T_STD_REF_DSETREG), H5Tequal(b, H5T_STD_REF_DSETREG)) &&
               agree(c, path, "reference", H5Tequal(a, H5T_STD_REF), H5Tequal(b, H5T_STD_REF));
    if (!agree(c, path, "type equal", 1, H5Tequal(a, b)))
        return false;
    return true;
}

/* ---- attributes ---- */

typedef struct names {
    char *name[MAX_NAMES];
    int64_t number[MAX_NAMES]; /* creation order */
    int kind[MAX_NAMES];
    size_t count;
    bool stock; /* of the root without the connector, which has one link more */
} names;

static void names_free(names *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n->count; i++)
        free(n->name[i]);
    free(n);
}

static herr_t collect_attribute(hid_t at, const char *name, const H5A_info_t *info, void *data)
{
    names *n = data;
    (void)at;
    if (n->count == MAX_NAMES)
        return -1;
    n->number[n->count] = info->corder_valid ? (int64_t)info->corder : -1;
    n->kind[n->count] = (int)info->cset;
    n->name[n->count++] = strdup(name);
    return 0;
}

static herr_t collect_link(hid_t at, const char *name, const H5L_info2_t *info, void *data)
{
    names *n = data;
    (void)at;
    if (n->stock && strcmp(name, "_versioned_data") == 0)
        return 0;
    if (n->count == MAX_NAMES)
        return -1;
    n->number[n->count] = info->corder_valid ? (int64_t)info->corder : -1;
    n->kind[n->count] = (int)info->type;
    n->name[n->count++] = strdup(name);
    return 0;
}

static bool lists_agree(comparison *c, const char *path, const char *what, const names *a, const names *b, bool numbers)
{
    size_t n = a->count > b->count ? a->count : b->count;
    for (size_t i = 0; i < n; i++) {
        if (i >= a->count)
            return say(c, "%s: %s %zu '%s' is too many under test", path, what, i, b->name[i]);
        if (i >= b->count)
            return say(c, "%s: %s %zu '%s' is missing under test", path, what, i, a->name[i]);
        if (strcmp(a->name[i], b->name[i]) != 0 || a->kind[i] != b->kind[i])
            return say(c, "%s: %s %zu: native '%s' kind %d, under test '%s' kind %d", path, what, i, a->name[i],
                       a->kind[i], b->name[i], b->kind[i]);
        if (numbers && a->number[i] != b->number[i])
            return say(c, "%s: %s '%s': creation order native %lld, under test %lld", path, what, a->name[i],
                       (long long)a->number[i], (long long)b->number[i]);
    }
    return true;
}

static bool spaces_agree(comparison *c, const char *path, hid_t a, hid_t b, size_t *elements)
{
    hsize_t da[H5S_MAX_RANK] = {0}, db[H5S_MAX_RANK] = {0}, ma[H5S_MAX_RANK] = {0}, mb[H5S_MAX_RANK] = {0};
    *elements = 0;
    if (!agree(c, path, "space class", H5Sget_simple_extent_type(a), H5Sget_simple_extent_type(b)))
        return false;
    int rank = H5Sget_simple_extent_ndims(a);
    if (!agree(c, path, "rank", rank, H5Sget_simple_extent_ndims(b)))
        return false;
    H5Sget_simple_extent_dims(a, da, ma);
    H5Sget_simple_extent_dims(b, db, mb);
    for (int i = 0; i < rank; i++) {
        char what[40];
        snprintf(what, sizeof what, "extent of dimension %d", i);
        if (!agree(c, path, what, (long long)da[i], (long long)db[i]))
            return false;
        snprintf(what, sizeof what, "maximum of dimension %d", i);
        if (ma[i] != mb[i])
            return say(c, "%s: %s: native %llu, under test %llu", path, what, (unsigned long long)ma[i],
                       (unsigned long long)mb[i]);
    }
    if (H5Sget_simple_extent_type(a) != H5S_NULL)
        *elements = (size_t)H5Sget_simple_extent_npoints(a);
    return true;
}

/* ---- what references, links and datasets of named types lead to ---- */

/* Judged when the whole tree is known: see leads_agree(). */
struct lead {
    char *where;
    const char *what;
    bool there[2];
    unsigned long fileno[2]; /* an external link leads out of the file */
    H5O_token_t token[2];
    struct lead *next;
};

static void remember_lead(comparison *c, const char *where, const char *what, const hid_t object[2])
{
    if (!c->leading)
        return;
    struct lead *l = calloc(1, sizeof *l);
    l->what = what;
    for (int s = 0; s < 2; s++) {
        H5O_info2_t info;
        l->there[s] = object[s] >= 0 && H5Oget_info3(object[s], &info, H5O_INFO_BASIC) >= 0;
        if (l->there[s]) {
            l->token[s] = info.token;
            l->fileno[s] = info.fileno;
        }
    }
    l->where = strdup(where);
    l->next = c->lead;
    c->lead = l;
}

/* A reference of either file, opened. What it says besides the object, as text. */
static hid_t follow(const comparison *c, hid_t from, hid_t type, const unsigned char *value, char *text, size_t size)
{
    hid_t object = H5I_INVALID_HID, space = H5I_INVALID_HID, at;
    H5R_ref_t *reference = (H5R_ref_t *)(uintptr_t)value;
    bool extent = true;
    *text = 0;
    if (H5Tequal(type, H5T_STD_REF_OBJ) > 0)
        return H5Rdereference2(from, H5P_DEFAULT, H5R_OBJECT1, value);
    if (H5Tequal(type, H5T_STD_REF_DSETREG) > 0) {
        object = H5Rdereference2(from, H5P_DEFAULT, H5R_DATASET_REGION1, value);
        extent = c->how == REACHED_HEAD; /* D26 */
        space = object < 0 ? object : H5Rget_region(from, H5R_DATASET_REGION1, value);
    } else {
        object = H5Ropen_object(reference, H5P_DEFAULT, H5P_DEFAULT);
        if (object >= 0 && H5Rget_type(reference) == H5R_DATASET_REGION2 &&
            H5Iget_type(object) == H5I_DATASET /* D46 */)
            space = H5Ropen_region(reference, H5P_DEFAULT, H5P_DEFAULT);
        else if (object >= 0 && H5Rget_type(reference) == H5R_ATTR) {
            at = H5Ropen_attr(reference, H5P_DEFAULT, H5P_DEFAULT);
            if (at < 0 || H5Aget_name(at, size, text) < 0)
                snprintf(text, size, "no attribute");
            if (at >= 0)
                H5Aclose(at);
        }
    }
    if (space >= 0) { /* the selection by its blocks or points, the first few */
        hsize_t corner[2 * H5S_MAX_RANK * 8] = {0}, dims[H5S_MAX_RANK];
        int rank = H5Sget_simple_extent_dims(space, dims, NULL);
        H5S_sel_type form = H5Sget_select_type(space);
        hssize_t n = form == H5S_SEL_POINTS       ? H5Sget_select_elem_npoints(space)
                     : form == H5S_SEL_HYPERSLABS ? H5Sget_select_hyper_nblocks(space)
                                                  : 0;
        hsize_t shown = n > 8 ? 8 : n < 0 ? 0 : (hsize_t)n;
        size_t length = (size_t)snprintf(text, size, "selection %d of %lld", (int)form,
                                         extent || form != H5S_SEL_ALL ? (long long)H5Sget_select_npoints(space) : -1);
        if (shown && form == H5S_SEL_POINTS)
            H5Sget_select_elem_pointlist(space, 0, shown, corner);
        else if (shown)
            H5Sget_select_hyper_blocklist(space, 0, shown, corner);
        for (int i = 0; i < rank && extent && length < size; i++)
            length += (size_t)snprintf(text + length, size - length, " [%llu]", (unsigned long long)dims[i]);
        for (size_t i = 0; i < shown * (form == H5S_SEL_POINTS ? 1 : 2) * (size_t)rank && length < size; i++)
            length += (size_t)snprintf(text + length, size - length, " %llu", (unsigned long long)corner[i]);
        H5Sclose(space);
    } else if (object >= 0 && *text == 0)
        snprintf(text, size, "object");
    return object;
}

/* D3. Each side follows its own. What they say besides is compared where the object is surely the right one. */
static bool reference_leads_alike(comparison *c, const char *path, hid_t type, const hid_t from[2],
                                  const unsigned char *const value[2])
{
    static const unsigned char nothing[sizeof(H5R_ref_t)];
    char text[2][600] = {"", ""};
    hid_t object[2] = {H5I_INVALID_HID, H5I_INVALID_HID};
    H5O_token_t token;
    bool same = true;
    if (memcmp(value[0], nothing, H5Tget_size(type)) == 0 || value[0][7] == PATTERN_REFERENCE)
        return true;
    bool sure = target_of(c, type, value[0], &token) && surely(c, &token);
    if (sure)
        object[0] = follow(c, from[0], type, value[0], text[0], sizeof text[0]);
    if (sure || c->how == REACHED_AT)
        object[1] = follow(c, from[1], type, value[1], text[1], sizeof text[1]);
    c->followed++;
    c->sure += sure;
    if (sure) {
        remember_lead(c, path, "reference", object);
        if (strcmp(text[0], text[1]) != 0)
            same = say(c, "%s: a reference: native %s, under test %s", path, text[0], text[1]);
    }
    for (int s = 0; s < 2; s++)
        if (object[s] >= 0)
            H5Oclose(object[s]);
    return same;
}

/* All references in values of a type, the first few of each array. */
static bool references_lead_alike(comparison *c, const char *path, hid_t type, const hid_t from[2],
                                  const unsigned char *const value[2], size_t n)
{
    H5T_class_t cls = H5Tget_class(type);
    size_t size = H5Tget_size(type);
    bool same = true;
    if (!c->leading || !type_contains(type, H5T_REFERENCE))
        return true;
    for (size_t i = 0; i < n && i < 5 && same; i++) {
        const unsigned char *const at[2] = {value[0] + i * size, value[1] + i * size};
        if (cls == H5T_REFERENCE)
            same = reference_leads_alike(c, path, type, from, at);
        else if (cls == H5T_COMPOUND) {
            int members = H5Tget_nmembers(type);
            for (int m = 0; m < members && same; m++) {
                hid_t member = H5Tget_member_type(type, (unsigned)m);
                size_t in = H5Tget_member_offset(type, (unsigned)m);
                same = references_lead_alike(c, path, member, from,
                                             (const unsigned char *const[]){at[0] + in, at[1] + in}, 1);
                H5Tclose(member);
            }
        } else if (cls == H5T_ARRAY || cls == H5T_VLEN) {
            hid_t base = H5Tget_super(type);
            hvl_t sequence[2];
            if (cls == H5T_ARRAY)
                same = references_lead_alike(c, path, base, from, at, size / H5Tget_size(base));
            else {
                memcpy(&sequence[0], at[0], sizeof sequence[0]);
                memcpy(&sequence[1], at[1], sizeof sequence[1]);
                same = references_lead_alike(
                    c, path, base, from, (const unsigned char *const[]){sequence[0].p, sequence[1].p}, sequence[0].len);
            }
            H5Tclose(base);
        }
    }
    return same;
}

/* Elements of two datasets or attributes, whole. */
static bool elements_agree(comparison *c, const char *path, hid_t a, hid_t b, hid_t file_type, size_t n, bool attribute)
{
    if (n == 0)
        return true;
    hid_t type = H5Tcopy(file_type);
    size_t size = H5Tget_size(type);
    bool same = false;
    char *buf[2] = {calloc(n, size), calloc(n, size)};
    herr_t status[2];
    hid_t id[2] = {a, b};
    if (!buf[0] || !buf[1]) {
        say(c, "%s: out of memory", path);
        goto done;
    }
    for (int s = 0; s < 2; s++)
        status[s] =
            attribute ? H5Aread(id[s], type, buf[s]) : H5Dread(id[s], type, H5S_ALL, H5S_ALL, H5P_DEFAULT, buf[s]);
    if (!agree(c, path, "reading all of it", status[0], status[1]))
        goto done;
    if ((same = values_agree(type, buf[0], buf[1], n))) {
        if (c->how != REACHED_VERSION) /* there they lead to the head */
            same = references_lead_alike(
                c, path, type, id, (const unsigned char *const[]){(unsigned char *)buf[0], (unsigned char *)buf[1]}, n);
    } else {
        size_t i = 0, at = 0;
        while (values_agree(type, buf[0] + i * size, buf[1] + i * size, 1))
            i++;
        int length = snprintf(c->why, sizeof c->why, "%s: element %zu of %zu (size %zu): native", path, i, n, size);
        for (int s = 0; s < 2; s++) {
            for (at = 0; at < size && at < 32; at++)
                length += snprintf(c->why + length, sizeof c->why - (size_t)length, " %02x",
                                   (unsigned char)buf[s][i * size + at]);
            if (s == 0)
                length += snprintf(c->why + length, sizeof c->why - (size_t)length, ", under test");
        }
        size_t wrong = 0;
        for (; i < n; i++)
            wrong += !values_agree(type, buf[0] + i * size, buf[1] + i * size, 1);
        snprintf(c->why + length, sizeof c->why - (size_t)length, " (%zu elements differ)", wrong);
    }
done:
    if (type_contains(type, H5T_VLEN) || type_contains(type, H5T_REFERENCE)) {
        hsize_t count = n;
        hid_t space = H5Screate_simple(1, &count, NULL);
        for (int s = 0; s < 2; s++)
            if (buf[s])
                H5Treclaim(type, space, H5P_DEFAULT, buf[s]);
        H5Sclose(space);
    }
    free(buf[0]);
    free(buf[1]);
    H5Tclose(type);
    return same;
}

static bool names_type_alike(comparison *c, const char *path, const hid_t type[2])
{
    htri_t named = H5Tcommitted(type[0]);
    if (!agree(c, path, "committed type", named, H5Tcommitted(type[1])))
        return false;
    if (named > 0)
        remember_lead(c, path, "named type", type);
    return true;
}

static bool tracks_attributes(hid_t object)
{
    H5I_type_t type = H5Iget_type(object);
    hid_t plist = type == H5I_DATASET    ? H5Dget_create_plist(object)
                  : type == H5I_DATATYPE ? H5Tget_create_plist(object)
                                         : H5Gget_create_plist(object);
    unsigned order = 0;
    H5Pget_attr_creation_order(plist, &order);
    H5Pclose(plist);
    return order & H5P_CRT_ORDER_TRACKED;
}

static bool attributes_agree(comparison *c, const char *path, hid_t a, hid_t b)
{
    names *list[2] = {calloc(1, sizeof(names)), calloc(1, sizeof(names))};
    hid_t id[2] = {a, b};
    bool same = true, tracked = tracks_attributes(a);
    H5_index_t orders[2] = {H5_INDEX_NAME, H5_INDEX_CRT_ORDER};
    for (int o = 1; o >= 0 && same; o--) { /* creation order first, so that the list by name is the one that is left */
        herr_t status[2];
        for (int s = 0; s < 2; s++) {
            names_free(list[s]);
            list[s] = calloc(1, sizeof(names));
            status[s] = H5Aiterate2(id[s], orders[o], H5_ITER_INC, NULL, collect_attribute, list[s]);
        }
        same = agree(c, path, "walking attributes", status[0], status[1]) &&
               (status[0] < 0 || (o == 1 && !tracked) /* D17 */ ||
                lists_agree(c, path, "attribute", list[0], list[1],
                            tracked && c->how == REACHED_HEAD && !c->renumbered /* D29 */));
    }
    for (size_t i = 0; i < list[0]->count && same; i++) {
        char where[1200];
        snprintf(where, sizeof where, "%s@%s", path, list[0]->name[i]);
        hid_t at[2] = {H5I_INVALID_HID, H5I_INVALID_HID}, type[2], space[2];
        size_t n = 0;
        for (int s = 0; s < 2; s++)
            at[s] = H5Aopen(id[s], list[0]->name[i], H5P_DEFAULT);
        same = agree(c, where, "opening", at[0] < 0 ? -1 : 0, at[1] < 0 ? -1 : 0);
        if (at[0] >= 0 && at[1] >= 0) {
            for (int s = 0; s < 2; s++) {
                type[s] = H5Aget_type(at[s]);
                space[s] = H5Aget_space(at[s]);
            }
            same = types_agree(c, where, type[0], type[1]) && names_type_alike(c, where, type) &&
                   spaces_agree(c, where, space[0], space[1], &n) &&
                   agree(c, where, "attribute storage", (long long)H5Aget_storage_size(at[0]),
                         (long long)H5Aget_storage_size(at[1])) &&
                   elements_agree(c, where, at[0], at[1], type[0], n, true);
            for (int s = 0; s < 2; s++) {
                H5Tclose(type[s]);
                H5Sclose(space[s]);
            }
        }
        for (int s = 0; s < 2; s++)
            if (at[s] >= 0)
                H5Aclose(at[s]);
    }
    names_free(list[0]);
    names_free(list[1]);
    return same;
}

/* ---- datasets ---- */

static bool fill_agrees(comparison *c, const char *path, hid_t a, hid_t b, hid_t file_type)
{
    H5D_fill_value_t da = 0, db = 0;
    H5D_fill_time_t fa = 0, fb = 0;
    H5D_alloc_time_t aa = 0, ab = 0;
    H5Pfill_value_defined(a, &da);
    H5Pfill_value_defined(b, &db);
    H5Pget_fill_time(a, &fa);
    H5Pget_fill_time(b, &fb);
    H5Pget_alloc_time(a, &aa);
    H5Pget_alloc_time(b, &ab);
    if (!agree(c, path, "fill value defined", da, db) || !agree(c, path, "fill time", fa, fb) ||
        (!(c->how == REACHED_STOCK && aa == H5D_ALLOC_TIME_EARLY && ab == H5D_ALLOC_TIME_INCR &&
           H5Pget_layout(a) == H5D_CHUNKED) /* D60 */
         && !agree(c, path, "allocation time", aa, ab)))
        return false;
    if (da == H5D_FILL_VALUE_UNDEFINED || type_contains(file_type, H5T_VLEN))
        return true;
    hid_t type = H5Tcopy(file_type);
    size_t size = H5Tget_size(type);
    char *va = calloc(1, size), *vb = calloc(1, size);
    bool same =
        agree(c, path, "getting the fill value", H5Pget_fill_value(a, type, va), H5Pget_fill_value(b, type, vb));
    if (same && !values_agree(type, va, vb, 1))
        same = say(c, "%s: another fill value", path);
    free(va);
    free(vb);
    H5Tclose(type);
    return same;
}

/* The creation property list, as the application would see it. LOOSE: encoded sizes need not agree (D4, D5). */
static bool plists_agree(comparison *c, const char *path, hid_t a, hid_t b, hid_t type, bool *loose)
{
    H5D_layout_t layout = H5Pget_layout(a);
    if (!agree(c, path, "layout", layout, H5Pget_layout(b)))
        return false;
    if (layout == H5D_CHUNKED) {
        hsize_t ca[H5S_MAX_RANK] = {0}, cb[H5S_MAX_RANK] = {0};
        if (!agree(c, path, "chunk rank", H5Pget_chunk(a, H5S_MAX_RANK, ca), H5Pget_chunk(b, H5S_MAX_RANK, cb)))
            return false;
        if (memcmp(ca, cb, sizeof ca) != 0)
            return say(c, "%s: other chunk dims", path);
    }
    int n = H5Pget_nfilters(a);
    if (!agree(c, path, "number of filters", n, H5Pget_nfilters(b)))
        return false;
    for (unsigned i = 0; i < (unsigned)n; i++) {
        unsigned va[64] = {0}, vb[64] = {0}, fa = 0, fb = 0, config;
        size_t na = 64, nb = 64;
        char name[64];
        H5Z_filter_t ia = H5Pget_filter2(a, i, &fa, &na, va, sizeof name, name, &config);
        H5Z_filter_t ib = H5Pget_filter2(b, i, &fb, &nb, vb, sizeof name, name, &config);
        if (!agree(c, path, "filter", ia, ib) || !agree(c, path, "filter flags", fa, fb) ||
            !agree(c, path, "filter values", (long long)na, (long long)nb))
            return false;
        for (size_t v = 0; v < na && v < 64; v++)
            if (va[v] != vb[v])
                return say(c, "%s: filter %d: value %zu: native %u, under test %u", path, (int)ia, v, va[v], vb[v]);
        if (ia == H5Z_FILTER_DEFLATE || ia == H5Z_FILTER_SCALEOFFSET)
            *loose = true;
    }
    unsigned oa = 0, ob = 0;
    hbool_t ta = false, tb = false;
    H5Pget_attr_creation_order(a, &oa);
    H5Pget_attr_creation_order(b, &ob);
    H5Pget_obj_track_times(a, &ta);
    H5Pget_obj_track_times(b, &tb);
    H5D_fill_value_t defined = 0;
    H5D_fill_time_t when = 0;
    H5Pfill_value_defined(a, &defined);
    H5Pget_fill_time(a, &when);
    if (defined == H5D_FILL_VALUE_UNDEFINED || when == H5D_FILL_TIME_NEVER)
        *loose = true;
    return agree(c, path, "attribute creation order", oa, ob) &&
           (ta || c->old_headers /* D2 */ || agree(c, path, "track times", ta, tb)) && fill_agrees(c, path, a, b, type);
}

typedef struct chunk_list {
    int rank;
    size_t count, room;
    struct chunk {
        hsize_t offset[H5S_MAX_RANK];
        unsigned mask;
        hsize_t size;
    } *chunk;
} chunk_list;

static int collect_chunk(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size, void *data)
{
    chunk_list *list = data;
    (void)address; /* D2 */
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->chunk = realloc(list->chunk, list->room * sizeof *list->chunk);
    }
    struct chunk *k = &list->chunk[list->count++];
    memset(k, 0, sizeof *k);
    memcpy(k->offset, offset, (size_t)list->rank * sizeof *offset);
    k->mask = mask;
    k->size = size;
    return 0;
}

/* Elements of a raw chunk: written into a scratch dataset of one chunk, and read back, clipped to the extent (D5). */
static int decode_chunk(comparison *c, hid_t type, hid_t dcpl, int rank, const hsize_t inside[], unsigned mask,
                        const void *bytes, size_t size, void *values)
{
    hsize_t dims[H5S_MAX_RANK], zero[H5S_MAX_RANK] = {0};
    H5Pget_chunk(dcpl, rank, dims);
    hid_t space = H5Screate_simple(rank, dims, NULL);
    hid_t file_type = H5Tcopy(type);
    H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_INCR); /* over a chunk of the same size the mask would not be kept */
    hid_t set = H5Dcreate2(c->scratch, "chunk", file_type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    hid_t mem = H5Screate_simple(rank, inside, NULL);
    int status = set >= 0 ? H5Dwrite_chunk(set, H5P_DEFAULT, mask, zero, size, bytes) : -1;
    if (set >= 0)
        H5Dclose(set); /* D12: to be read with this mask it must be opened anew */
    if (status >= 0 && (set = H5Dopen2(c->scratch, "chunk", H5P_DEFAULT)) >= 0) {
        H5Sselect_hyperslab(space, H5S_SELECT_SET, zero, NULL, inside, NULL);
        if ((status = H5Dread(set, file_type, mem, space, H5P_DEFAULT, values)) < 0)
            c->stack = H5Eget_current_stack();
        H5Dclose(set);
    }
    H5Ldelete(c->scratch, "chunk", H5P_DEFAULT);
    H5Sclose(mem);
    H5Sclose(space);
    H5Tclose(file_type);
    return status;
}

static bool raw_chunk_agrees(comparison *c, const char *path, const hid_t set[2], hid_t type, hid_t dcpl,
                             const hsize_t extent[], const struct chunk k[2], int rank, bool loose)
{
    uint32_t mask[2] = {0, 0};
    hsize_t dims[H5S_MAX_RANK], inside[H5S_MAX_RANK];
    H5Pget_chunk(dcpl, rank, dims);
    size_t elements = 1;
    for (int i = 0; i < rank; i++) {
        inside[i] = extent[i] - k[0].offset[i] < dims[i] ? extent[i] - k[0].offset[i] : dims[i];
        elements *= inside[i];
    }
    size_t value = H5Tget_size(type);
    char *bytes[2] = {malloc(k[0].size + 1), malloc(k[1].size + 1)};
    char *values[2] = {calloc(elements, value), calloc(elements, value)};
    herr_t status[2];
    for (int s = 0; s < 2; s++)
        status[s] = H5Dread_chunk(set[s], H5P_DEFAULT, k[s].offset, &mask[s], bytes[s]);
    bool same = agree(c, path, "H5Dread_chunk", status[0], status[1]);
    for (int s = 0; s < 2 && same && status[0] >= 0; s++)
        same = agree(c, path, "the mask of H5Dread_chunk and that of H5Dchunk_iter", mask[s], k[s].mask);
    if (same && status[0] >= 0 && (k[0].size != k[1].size || memcmp(bytes[0], bytes[1], k[0].size) != 0)) {
        if (!loose && mask[0] == mask[1] && elements * value == k[0].size && H5Tget_class(type) != H5T_COMPOUND &&
            H5Tget_class(type) != H5T_ARRAY)
            same = say(c, "%s: H5Dread_chunk gives other bytes", path);
        for (int s = 0; s < 2 && same; s++)
            if (decode_chunk(c, type, dcpl, rank, inside, mask[s], bytes[s], k[s].size, values[s]) < 0) {
                same = say(c, "%s: the %llu bytes of H5Dread_chunk, mask %x, cannot be decoded (%s)", path,
                           (unsigned long long)k[s].size, mask[s], s ? "under test" : "native");
            }
        if (same && !values_agree(type, values[0], values[1], elements))
            same = say(c, "%s: the bytes of H5Dread_chunk decode to other elements", path);
    }
    for (int s = 0; s < 2; s++) {
        free(bytes[s]);
        free(values[s]);
    }
    return same;
}

/* Everything that can be asked about chunks. A and B are chunked. */
static bool chunks_agree(comparison *c, const char *path, const hid_t set[2], hid_t type, hid_t dcpl, hid_t space,
                         bool loose)
{
    hsize_t count[2] = {0, 0}, extent[H5S_MAX_RANK];
    herr_t status[2];
    int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    chunk_list list[2] = {{.rank = rank}, {.rank = rank}};
    bool same = true;
    for (int s = 0; s < 2; s++)
        status[s] = H5Dget_num_chunks(set[s], H5S_ALL, &count[s]);
    if (!agree(c, path, "H5Dget_num_chunks status", status[0], status[1]) ||
        !agree(c, path, "H5Dget_num_chunks", (long long)count[0], (long long)count[1]))
        return false;
    for (int s = 0; s < 2; s++)
        status[s] = H5Dchunk_iter(set[s], H5P_DEFAULT, collect_chunk, &list[s]);
    same = agree(c, path, "H5Dchunk_iter status", status[0], status[1]) &&
           agree(c, path, "H5Dchunk_iter chunks", (long long)list[0].count, (long long)list[1].count);
    for (size_t i = 0; i < list[0].count && same; i++) {
        char where[1200];
        int length = snprintf(where, sizeof where, "%s: chunk %zu at", path, i);
        for (int d = 0; d < rank; d++)
            length += snprintf(where + length, sizeof where - (size_t)length, " %llu",
                               (unsigned long long)list[0].chunk[i].offset[d]);
        struct chunk by_index[2], by_place[2], k[2] = {list[0].chunk[i], list[1].chunk[i]};
        if (memcmp(k[0].offset, k[1].offset, sizeof k[0].offset) != 0)
            same = say(c, "%s: under test it is at %llu %llu %llu %llu", where, (unsigned long long)k[1].offset[0],
                       (unsigned long long)k[1].offset[1], (unsigned long long)k[1].offset[2],
                       (unsigned long long)k[1].offset[3]);
        memset(by_index, 0, sizeof by_index);
        memset(by_place, 0, sizeof by_place);
        for (int s = 0; s < 2 && same; s++) {
            haddr_t address;
            hsize_t size = 0;
            if (H5Dget_chunk_info(set[s], H5S_ALL, i, by_index[s].offset, &by_index[s].mask, &address,
                                  &by_index[s].size) < 0 ||
                H5Dget_chunk_info_by_coord(set[s], k[0].offset, &by_place[s].mask, &address, &by_place[s].size) < 0 ||
                (s == 0 && address == HADDR_UNDEF) /* D25 */ ||
                H5Dget_chunk_storage_size(set[s], k[0].offset, &size) < 0) {
                c->stack = H5Eget_current_stack();
                same = say(c, "%s: H5Dget_chunk_info fails (%s)", where, s ? "under test" : "native");
            } else if (memcmp(by_index[s].offset, k[s].offset, sizeof k[s].offset) != 0 ||
                       by_index[s].size != k[s].size || by_place[s].size != k[s].size || size != k[s].size ||
                       by_index[s].mask != k[s].mask || by_place[s].mask != k[s].mask)
                same = say(c,
                           "%s: the chunk calls disagree among themselves (%s): size iter %llu index %llu place %llu "
                           "storage %llu, mask %x %x %x",
                           where, s ? "under test" : "native", (unsigned long long)k[s].size,
                           (unsigned long long)by_index[s].size, (unsigned long long)by_place[s].size,
                           (unsigned long long)size, k[s].mask, by_index[s].mask, by_place[s].mask);
        }
        same = same && (loose || k[0].mask != k[1].mask /* D20 */ ||
                        agree(c, where, "size", (long long)k[0].size, (long long)k[1].size));
        if (same && c->chunk_bytes && !type_contains(type, H5T_VLEN) && !type_contains(type, H5T_REFERENCE))
            same = raw_chunk_agrees(c, where, set, type, dcpl, extent, k, rank, loose);
    }
    free(list[0].chunk);
    free(list[1].chunk);
    return same;
}

/* D45 */
static bool compresses(void)
{
    const char *connector = getenv("HDF5_VOL_CONNECTOR");
    return connector != NULL && strstr(connector, "compress=") != NULL;
}

bool misplaces_chunks(hid_t set)
{
    H5D_chunk_index_t index = H5D_CHUNK_IDX_SINGLE;
    hsize_t dims[H5S_MAX_RANK], max[H5S_MAX_RANK];
    hid_t space = H5Dget_space(set);
    H5Sget_simple_extent_dims(space, dims, max);
    H5Sclose(space);
    return H5Dget_chunk_index_type(set, &index) >= 0 && index == H5D_CHUNK_IDX_EARRAY && max[0] != H5S_UNLIMITED;
}

/* Is SIZE what the elements of SPACE take, or would if all dimensions but the first were as large as they may become? Those
 * of external storage are, while HDF5 makes the dataset. */
static bool as_extent(hid_t space, hid_t type, hsize_t size)
{
    hsize_t dims[H5S_MAX_RANK], most[H5S_MAX_RANK], is = H5Tget_size(type), may = is;
    int rank = H5Sget_simple_extent_dims(space, dims, most);

    for (int d = 0; d < rank; d++) {
        is *= dims[d];
        may *= d == 0 ? dims[d] : most[d];
    }
    return size == is || size == may;
}

static bool datasets_agree(comparison *c, const char *path, hid_t a, hid_t b)
{
    hid_t set[2] = {a, b}, type[2], space[2], dcpl[2];
    size_t n = 0;
    bool loose = false;
    for (int s = 0; s < 2; s++) {
        type[s] = H5Dget_type(set[s]);
        space[s] = H5Dget_space(set[s]);
        dcpl[s] = H5Dget_create_plist(set[s]);
    }
    bool same = agree(c, path, "H5Dget_type", type[0] < 0 ? -1 : 0, type[1] < 0 ? -1 : 0) &&
                agree(c, path, "H5Dget_space", space[0] < 0 ? -1 : 0, space[1] < 0 ? -1 : 0) &&
                agree(c, path, "H5Dget_create_plist", dcpl[0] < 0 ? -1 : 0, dcpl[1] < 0 ? -1 : 0) &&
                types_agree(c, path, type[0], type[1]) && names_type_alike(c, path, type) &&
                spaces_agree(c, path, space[0], space[1], &n) && elements_agree(c, path, a, b, type[0], n, false);
    /* of the head that HDF5 reads alone: what was chunked */
    const bool loosely = c->how == REACHED_VERSION ||
                         (c->how == REACHED_STOCK && (H5Pget_layout(dcpl[0]) != H5D_CHUNKED ||
                                                      H5Pget_layout(dcpl[1]) != H5D_CHUNKED || compresses()));
    if (same && !loosely) { /* D8 */
        same = plists_agree(c, path, dcpl[0], dcpl[1], type[0], &loose);
    }
    bool tiny = (c->how == REACHED_AT || c->renumbered) &&
                H5Sget_simple_extent_npoints(space[0]) * (hssize_t)H5Tget_size(type[0]) <= 4096;
    if (same && !loosely && !tiny && !c->other) { /* D8, D22, D30 */
        H5D_space_status_t status[2] = {0, 0};
        for (int s = 0; s < 2; s++)
            H5Dget_space_status(set[s], &status[s]);
        same = same && agree(c, path, "H5Dget_space_status", status[0], status[1]);
        hsize_t size[2] = {H5Dget_storage_size(a), H5Dget_storage_size(b)};
        bool mended = c->how == REACHED_AT && H5Pget_external_count(dcpl[0]) > 0 &&
                      as_extent(space[1], type[1], size[1]); /* D37 */
        if (same && (!loose || H5Pget_layout(dcpl[0]) != H5D_CHUNKED) && H5Pget_nfilters(dcpl[0]) == 0 /* D20 */ &&
            !mended && !compresses())
            same = agree(c, path, "H5Dget_storage_size", (long long)size[0], (long long)size[1]);
        if (same && H5Pget_layout(dcpl[0]) == H5D_CHUNKED && !misplaces_chunks(a) && !(c->mixed && misplaces_chunks(b)))
            same = chunks_agree(c, path, set, type[0], dcpl[0], space[0], loose);
    }
    for (int s = 0; s < 2; s++) {
        H5Tclose(type[s]);
        H5Sclose(space[s]);
        H5Pclose(dcpl[s]);
    }
    return same;
}

/* ---- groups, objects, trees ---- */

/* The value of a link, not a hard one, as text. */
static void link_value(hid_t group, const char *name, int type, const char *prefix, char *text, size_t size)
{
    H5L_info2_t info;
    char value[1024] = "";
    *text = 0;
    if (H5Lget_info2(group, name, &info, H5P_DEFAULT) < 0 || info.u.val_size > sizeof value ||
        H5Lget_val(group, name, value, sizeof value, H5P_DEFAULT) < 0) {
        snprintf(text, size, "(no value)");
        return;
    }
    if (type == H5L_TYPE_EXTERNAL) {
        const char *file = "?", *object = "?";
        unsigned flags;
        H5Lunpack_elink_val(value, info.u.val_size, &flags, &file, &object);
        snprintf(text, size, "%s -> %s", file, object);
        return;
    }
    const char *start = value;
    if (*prefix && strncmp(value, prefix, strlen(prefix)) == 0 &&
        (value[strlen(prefix)] == '/' || !value[strlen(prefix)]))
        start = value + strlen(prefix); /* D6 */
    snprintf(text, size, "%s", *start ? start : "/");
}

/* Links by name, with values, and in creation order where the group tracks it. LIST[s] is filled by name. */
static bool groups_agree(comparison *c, const char *path, hid_t a, hid_t b, names *list[2])
{
    hid_t group[2] = {a, b};
    H5G_info_t info[2];
    herr_t status[2];
    H5O_info2_t own, of_root; /* the root may have been reached by another name */
    bool root = H5Oget_info3(a, &own, H5O_INFO_BASIC) >= 0 &&
                H5Oget_info_by_name3(a, "/", &of_root, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
                memcmp(&own.token, &of_root.token, sizeof own.token) == 0;
    memset(info, 0, sizeof info);
    for (int s = 0; s < 2; s++)
        status[s] = H5Gget_info(group[s], &info[s]);
    if (root && c->how == REACHED_STOCK && H5Lexists(b, "_versioned_data", H5P_DEFAULT) > 0)
        info[1].nlinks--;
    if (!agree(c, path, "H5Gget_info", status[0], status[1]) ||
        !agree(c, path, "number of links", (long long)info[0].nlinks, (long long)info[1].nlinks) ||
        (!root && c->how == REACHED_HEAD && !c->renumbered /* D29 */ &&
         !agree(c, path, "max_corder", info[0].max_corder, info[1].max_corder)))
        return false;
    hid_t plist[2] = {H5Gget_create_plist(a), H5Gget_create_plist(b)};
    unsigned order[2] = {0, 0};
    for (int s = 0; s < 2; s++) {
        H5Pget_link_creation_order(plist[s], &order[s]);
        H5Pclose(plist[s]);
    }
    if (!agree(c, path, "link creation order flags", order[0], order[1]))
        return false;
    list[1]->stock = root && c->how == REACHED_STOCK;
    for (int s = 0; s < 2; s++)
        status[s] = H5Literate2(group[s], H5_INDEX_NAME, H5_ITER_INC, NULL, collect_link, list[s]);
    /* D1: the number of a link of the root counts the hidden one; D2; D7: in a version it starts anew. */
    bool numbers = !root && c->how == REACHED_HEAD && !c->renumbered /* D29 */ && order[0] & H5P_CRT_ORDER_TRACKED;
    if (!agree(c, path, "H5Literate", status[0], status[1]) || !lists_agree(c, path, "link", list[0], list[1], numbers))
        return false;
    if (order[0] & H5P_CRT_ORDER_TRACKED) {
        names *by[2] = {calloc(1, sizeof(names)), calloc(1, sizeof(names))};
        by[1]->stock = list[1]->stock;
        for (int s = 0; s < 2; s++)
            status[s] = H5Literate2(group[s], H5_INDEX_CRT_ORDER, H5_ITER_INC, NULL, collect_link, by[s]);
        bool same = agree(c, path, "H5Literate by creation order", status[0], status[1]) &&
                    lists_agree(c, path, "link by creation order", by[0], by[1], numbers);
        names_free(by[0]);
        names_free(by[1]);
        if (!same)
            return false;
    }
    for (size_t i = 0; i < list[0]->count; i++) {
        if (list[0]->kind[i] == H5L_TYPE_HARD)
            continue;
        char value[2][1100];
        for (int s = 0; s < 2; s++)
            link_value(group[s], list[s]->name[i], list[s]->kind[i], s ? c->prefix : "", value[s], sizeof value[s]);
        if (strcmp(value[0], value[1]) != 0)
            return say(c, "%s: link '%s': native '%s', under test '%s'", path, list[0]->name[i], value[0], value[1]);
        if (c->unfollowed)
            continue;
        hid_t object[2];
        char where[1200];
        for (int s = 0; s < 2; s++)
            object[s] = H5Oopen(group[s], list[0]->name[i], H5P_DEFAULT);
        snprintf(where, sizeof where, "%s: link '%s'", path, list[0]->name[i]);
        bool same = agree(c, where, "opening what it leads to", object[0] < 0 ? -1 : 0, object[1] < 0 ? -1 : 0);
        if (same && object[0] >= 0 && list[0]->kind[i] == H5L_TYPE_SOFT)
            remember_lead(c, where, "soft link", object);
        for (int s = 0; s < 2; s++)
            if (object[s] >= 0)
                H5Oclose(object[s]);
        if (!same)
            return false;
    }
    return true;
}

/* Native object A is open, and nothing at PATH any more. */
static bool is_unlinked(const char *path, hid_t a, const H5O_info2_t *info)
{
    H5O_info2_t found;
    hid_t file = H5Iget_file_id(a);
    bool there = H5Oget_info_by_name3(file, path, &found, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
                 memcmp(&found.token, &info->token, sizeof found.token) == 0;
    H5Fclose(file);
    return !there;
}

static bool object_agrees(comparison *c, const char *path, hid_t a, hid_t b, names *list[2])
{
    hid_t id[2] = {a, b};
    H5O_info2_t info[2];
    herr_t status[2];
    char comment[2][300] = {"", ""};
    memset(info, 0, sizeof info);
    for (int s = 0; s < 2; s++)
        status[s] = H5Oget_info3(id[s], &info[s], H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS);
    if (!agree(c, path, "H5Oget_info", status[0], status[1]) ||
        !agree(c, path, "object type", info[0].type, info[1].type) ||
        !agree(c, path, "number of attributes", (long long)info[0].num_attrs, (long long)info[1].num_attrs))
        return false;
    if (c->how != REACHED_VERSION && !c->uncounted /* D7 */ &&
        !(c->merged && info[0].type == H5O_TYPE_NAMED_DATATYPE && info[0].rc > info[1].rc) && /* D34 */
        !(info[0].rc <= 1 && info[1].rc <= 1 && is_unlinked(path, a, &info[0])) &&            /* D36 */
        !(c->evicted && info[0].rc > info[1].rc) &&                                           /* D57 */
        !agree(c, path, "reference count", info[0].rc, info[1].rc))
        return false;
    for (int s = 0; s < 2; s++)
        status[s] = (herr_t)H5Oget_comment(id[s], comment[s], sizeof comment[s]);
    if (!agree(c, path, "H5Oget_comment", status[0], status[1]))
        return false;
    if (strcmp(comment[0], comment[1]) != 0)
        return say(c, "%s: comment: native '%s', under test '%s'", path, comment[0], comment[1]);
    if (!attributes_agree(c, path, a, b))
        return false;
    switch (info[0].type) {
    case H5O_TYPE_DATASET:
        return datasets_agree(c, path, a, b);
    case H5O_TYPE_GROUP:
        return groups_agree(c, path, a, b, list);
    case H5O_TYPE_NAMED_DATATYPE:
        return types_agree(c, path, a, b);
    case H5O_TYPE_UNKNOWN:
    case H5O_TYPE_MAP:
    case H5O_TYPE_NTYPES:
        break;
    }
    return say(c, "%s: an object of unknown kind", path);
}

bool compare_objects(comparison *c, const char *path, hid_t a, hid_t b)
{
    names *list[2] = {calloc(1, sizeof(names)), calloc(1, sizeof(names))};
    bool same = object_agrees(c, path, a, b, list);
    names_free(list[0]);
    names_free(list[1]);
    return same;
}

/* Objects already met, so that shared ones are met once, and shared by the same paths in both files. */
typedef struct met {
    unsigned long fileno[2];
    H5O_token_t token[2];
    char *path;
    struct met *next;
} met;

static bool walk(comparison *c, const char *path, hid_t a, hid_t b, met **known)
{
    hid_t id[2] = {a, b};
    H5O_info2_t info[2];
    names *list[2] = {calloc(1, sizeof(names)), calloc(1, sizeof(names))};
    bool same = false;
    memset(info, 0, sizeof info);
    for (int s = 0; s < 2; s++)
        if (H5Oget_info3(id[s], &info[s], H5O_INFO_BASIC) < 0) {
            say(c, "%s: H5Oget_info fails (%s)", path, s ? "under test" : "native");
            goto done;
        }
    for (met *m = *known; m; m = m->next) {
        int cmp[2] = {1, 1};
        for (int s = 0; s < 2; s++)
            H5Otoken_cmp(id[s], &m->token[s], &info[s].token, &cmp[s]);
        if (cmp[0] == 0 && cmp[1] == 0) {
            same = true;
            goto done;
        }
        if (cmp[0] == 0 || cmp[1] == 0) {
            say(c, "%s and %s are %s object, under test %s", m->path, path, cmp[0] == 0 ? "one" : "not one",
                cmp[0] == 0 ? "two" : "one");
            goto done;
        }
    }
    met *m = calloc(1, sizeof *m);
    for (int s = 0; s < 2; s++) {
        m->token[s] = info[s].token;
        m->fileno[s] = info[s].fileno;
    }
    m->path = strdup(path);
    m->next = *known;
    *known = m;
    if (!(same = object_agrees(c, path, a, b, list)) || info[0].type != H5O_TYPE_GROUP)
        goto done;
    for (size_t i = 0; i < list[0]->count && same; i++) {
        if (list[0]->kind[i] != H5L_TYPE_HARD)
            continue;
        char below[1100];
        snprintf(below, sizeof below, "%s%s%s", path, strcmp(path, "/") == 0 ? "" : "/", list[0]->name[i]);
        hid_t child[2];
        for (int s = 0; s < 2; s++)
            child[s] = H5Oopen(id[s], list[s]->name[i], H5P_DEFAULT);
        same = agree(c, below, "opening", child[0] < 0 ? -1 : 0, child[1] < 0 ? -1 : 0);
        if (child[0] >= 0 && child[1] >= 0)
            same = walk(c, below, child[0], child[1], known);
        for (int s = 0; s < 2; s++)
            if (child[s] >= 0)
                H5Oclose(child[s]);
    }
done:
    names_free(list[0]);
    names_free(list[1]);
    return same;
}

static const met *met_at(const met *known, const struct lead *l, int side)
{
    while (known && !(l->there[side] && l->fileno[side] == known->fileno[side] &&
                      memcmp(&known->token[side], &l->token[side], sizeof l->token[side]) == 0))
        known = known->next;
    return known;
}

/* Where native HDF5 is led to an object of the tree, the file under test is led to that one. */
static bool leads_agree(comparison *c, const met *known)
{
    for (const struct lead *l = c->lead; l; l = l->next) {
        const met *native = met_at(known, l, 0), *tested = met_at(known, l, 1);
        if (native && tested != native)
            return say(c, "%s: a %s leads to %s, under test to %s", l->where, l->what, native->path,
                       tested        ? tested->path
                       : l->there[1] ? "something that has no name"
                                     : "nothing");
    }
    return true;
}

bool compare_trees(comparison *c, hid_t a, hid_t b)
{
    met *known = NULL;
    c->leading = true;
    bool same = walk(c, "/", a, b, &known) && leads_agree(c, known);
    c->leading = false;
    while (c->lead) {
        struct lead *next = c->lead->next;
        free(c->lead->where);
        free(c->lead);
        c->lead = next;
    }
    while (known) {
        met *next = known->next;
        free(known->path);
        free(known);
        known = next;
    }
    return same;
}
