/* Groups, attributes, named types, comments, reference counts. */
#include "compare.h"
#include "datasets.h"
#include "operations.h"
#include "places.h"
#include "properties.h"
#include "values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool op_group(void)
{
    SIDES;
    char path[PATH_SIZE], group[PATH_SIZE];
    pair made;
    hid_t gcpl = H5Pcreate(H5P_GROUP_CREATE), lcpl = link_plist();
    new_path(path, "g");
    note("H5Gcreate %s%s", path, draw_properties(GROUP_CREATION, (hid_t[]){gcpl, gcpl}));
    w.modified = true;
    if (OPEN("H5Gcreate", made, H5Gcreate2(w.file.id[s], path, lcpl, gcpl, H5P_DEFAULT))) {
        close_ids(made);
        touch(path);
    }
    H5Pclose(gcpl);
    H5Pclose(lcpl);
    parent(path, group);
    touch(group);
    return true;
}

static herr_t uses_named(hid_t object, const char *name, const H5A_info_t *info, void *found)
{
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), type = H5Aget_type(attribute);
    (void)info;
    *(bool *)found |= H5Tcommitted(type) > 0;
    H5Tclose(type);
    H5Aclose(attribute);
    return 0;
}

/* May an attribute of OBJECT, whose type is the named NAMED, close a circle of named types that use each other? */
static bool closes_circle(hid_t object, hid_t named)
{
    H5O_info2_t info[2];
    bool found = false;
    if (H5Iget_type(object) != H5I_DATATYPE || H5Oget_info3(object, &info[0], H5O_INFO_BASIC) < 0 ||
        H5Oget_info3(named, &info[1], H5O_INFO_BASIC) < 0)
        return false;
    H5Aiterate2(named, H5_INDEX_NAME, H5_ITER_INC, NULL, uses_named, &found);
    return found || memcmp(&info[0].token, &info[1].token, sizeof info[0].token) == 0;
}

bool op_attribute(void)
{
    SIDES;
    char path[PATH_SIZE], name[40], other[40], shape[200];
    hsize_t dims[4], max[4];
    int rank;
    snprintf(path, sizeof path, "%s", some_object());
    snprintf(name, sizeof name, "a%zu", below(14));
    snprintf(other, sizeof other, "a%zu", below(14));
    pair object, at;
    if (!OPEN("H5Oopen", object, H5Oopen(w.file.id[s], path, H5P_DEFAULT)))
        return false;
    touch(path);
    w.modified = true;
    size_t what = below(100);
    if (what < 45) {
        const char *committed = chance(20) ? some(AT_TYPE) : NULL;
        pair named = {{H5I_INVALID_HID, H5I_INVALID_HID}};
        if (committed && !OPEN("H5Topen", named, H5Topen2(w.file.id[s], committed, H5P_DEFAULT)))
            committed = NULL;
        hid_t type = committed ? H5Tcopy(named.id[0]) : random_type(1, true),
              space = random_space(shape, sizeof shape, &rank, dims, max);
        if (H5Sget_simple_extent_type(space) == H5S_SIMPLE) { /* attributes have no maximum, and are small */
            for (int i = 0; i < rank; i++)
                dims[i] = dims[i] % 5;
            H5Sclose(space);
            space = H5Screate_simple(rank, dims, NULL);
        }
        size_t n = H5Sget_simple_extent_type(space) == H5S_NULL ? 0 : (size_t)H5Sget_simple_extent_npoints(space);
        void *values[2];
        random_values(type, n, values);
        note("H5Acreate %s@%s class %d rank %d%s%s", path, name, (int)H5Tget_class(type), rank,
             committed ? " type " : "", committed ? committed : "");
        w.counted |= committed && closes_circle(object.id[0], named.id[0]);
        if (OPEN("H5Acreate", at,
                 H5Acreate2(object.id[s], name, committed ? named.id[s] : type, space, H5P_DEFAULT, H5P_DEFAULT))) {
            BOTH("H5Awrite", H5Awrite(at.id[s], type, values[s]));
            close_ids(at);
        }
        reclaim_both(type, n, values);
        close_ids(named);
        H5Tclose(type);
        H5Sclose(space);
    } else if (what < 70) {
        note("H5Awrite %s@%s", path, name);
        if (BOTH("H5Aexists", H5Aexists(object.id[s], name)) && r_[0] > 0 &&
            OPEN("H5Aopen", at, H5Aopen(object.id[s], name, H5P_DEFAULT))) {
            hid_t own = H5Aget_type(at.id[0]), type = memory_type(own, chance(60)), space = H5Aget_space(at.id[0]);
            size_t n = H5Sget_simple_extent_type(space) == H5S_NULL ? 0 : (size_t)H5Sget_simple_extent_npoints(space);
            void *values[2];
            random_values(type, n, values);
            if (!type_nests_references(own)) /* D27 */
                BOTH("H5Awrite", H5Awrite(at.id[s], type, values[s]));
            reclaim_both(type, n, values);
            H5Tclose(own);
            H5Tclose(type);
            H5Sclose(space);
            close_ids(at);
        }
    } else if (what < 80) {
        note("H5Adelete %s@%s", path, name);
        BOTH("H5Adelete", H5Adelete(object.id[s], name));
    } else if (what < 85) {
        hsize_t n = below(4);
        note("H5Adelete_by_idx %s %llu", path, (unsigned long long)n);
        BOTH("H5Adelete_by_idx", H5Adelete_by_idx(w.file.id[s], path, H5_INDEX_NAME, H5_ITER_INC, n, H5P_DEFAULT));
    } else if (what < 92) {
        note("H5Arename %s@%s to %s", path, name, other);
        BOTH("H5Arename", H5Arename_by_name(w.file.id[s], path, name, other, H5P_DEFAULT));
    } else {
        char text[2][60] = {"", ""};
        hsize_t n = below(5);
        note("H5Aget_name_by_idx %s %llu", path, (unsigned long long)n);
        if (BOTH("H5Aget_name_by_idx", H5Aget_name_by_idx(w.file.id[s], path, H5_INDEX_NAME, H5_ITER_DEC, n, text[s],
                                                          sizeof text[s], H5P_DEFAULT)) &&
            strcmp(text[0], text[1]) != 0)
            differ(NO_STACK, "attribute %llu of %s is %s, under test %s", (unsigned long long)n, path, text[0],
                   text[1]);
    }
    close_ids(object);
    return true;
}

/* Very many attributes on one object, and, the next time, none of them. */
bool op_many_attributes(void)
{
    SIDES;
    pair object, at;
    bool more = !*w.many;
    size_t n = !more ? SIZE_MAX : chance(10) ? 1000 + below(1000) : 20 + below(200);
    char name[40];
    if (more) {
        if (!chance(15))
            return false;
        snprintf(w.many, sizeof w.many, "%s", some_object());
    }
    note("%s attributes of %s", more ? "very many" : "without the many", w.many);
    if (!OPEN("H5Oopen", object, H5Oopen(w.file.id[s], w.many, H5P_DEFAULT))) {
        *w.many = 0; /* it has been deleted */
        return true;
    }
    w.modified = true;
    hid_t space = H5Screate(H5S_SCALAR);
    for (size_t i = 0; i < n; i++) {
        int value = (int)i;
        snprintf(name, sizeof name, "m%zu", i);
        if (!more) {
            if (!BOTH("H5Aexists", H5Aexists(object.id[s], name)) || r_[0] == 0)
                break;
            BOTH("H5Adelete", H5Adelete(object.id[s], name));
        } else if (OPEN("H5Acreate", at,
                        H5Acreate2(object.id[s], name, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT))) {
            BOTH("H5Awrite", H5Awrite(at.id[s], H5T_NATIVE_INT, &value));
            close_ids(at);
        }
    }
    H5Sclose(space);
    close_ids(object);
    touch(w.many);
    if (!more)
        *w.many = 0;
    return true;
}

bool op_type(void)
{
    SIDES;
    char path[PATH_SIZE], group[PATH_SIZE];
    pair copy;
    hid_t type = random_type(2, true), lcpl = link_plist(), tcpl = H5Pcreate(H5P_DATATYPE_CREATE);
    new_path(path, "t");
    note("H5Tcommit %s class %d%s", path, (int)H5Tget_class(type),
         draw_properties(TYPE_CREATION, (hid_t[]){tcpl, tcpl}));
    w.modified = true;
    OPEN("H5Tcopy", copy, H5Tcopy(type)); /* each side turns its own into a named one */
    BOTH("H5Tcommit", H5Tcommit2(w.file.id[s], path, copy.id[s], lcpl, tcpl, H5P_DEFAULT));
    close_ids(copy);
    H5Tclose(type);
    H5Pclose(lcpl);
    H5Pclose(tcpl);
    parent(path, group);
    touch(path);
    touch(group);
    return true;
}

static bool has_new_header(const char *path) /* on either side */
{
    H5O_native_info_t header[2];
    for (int s = 0; s < 2; s++)
        if (H5Oget_native_info_by_name(w.file.id[s], path, &header[s], H5O_NATIVE_INFO_HDR, H5P_DEFAULT) < 0)
            return true;
    return header[0].hdr.version > 1 || header[1].hdr.version > 1;
}

bool op_comment(void)
{
    SIDES;
    H5O_info2_t info;
    char path[PATH_SIZE], text[60];
    snprintf(path, sizeof path, "%s", some_object());
    snprintf(text, sizeof text, "comment %zu", below(1000));
    if (H5Oget_info_by_name3(w.file.id[0], path, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
        info.type == H5O_TYPE_NAMED_DATATYPE && H5Oget_comment_by_name(w.file.id[0], path, NULL, 0, H5P_DEFAULT) > 0 &&
        has_new_header(path)) /* D33 */
        return false;
    note("H5Oset_comment %s", path);
    w.modified = true;
    BOTH("H5Oset_comment", H5Oset_comment_by_name(w.file.id[s], path, text, H5P_DEFAULT));
    touch(path);
    return true;
}

bool op_flush(void)
{
    SIDES;
    pair set;
    char path[PATH_SIZE];
    bool own;
    if (chance(50) || w.tagged /* D18 */) {
        note("H5Fflush");
        BOTH("H5Fflush", H5Fflush(w.file.id[s], chance(50) ? H5F_SCOPE_LOCAL : H5F_SCOPE_GLOBAL));
        return true;
    }
    if (!find_dataset(&set, path, &own))
        return false;
    note("H5Dflush %s", path);
    BOTH("H5Dflush", H5Dflush(set.id[s]));
    check_dataset(set, path);
    if (own)
        close_ids(set);
    return true;
}

/* Never below the number of links: then the object would go while it has names. */
bool op_reference_count(void)
{
    SIDES;
    char path[PATH_SIZE];
    H5O_info2_t info, under_test, other;
    unsigned links = 0;
    pair object;
    snprintf(path, sizeof path, "%s", some_object());
    if (strcmp(path, "/") == 0 || !OPEN("H5Oopen", object, H5Oopen(w.file.id[s], path, H5P_DEFAULT)))
        return false;
    H5Oget_info3(object.id[0], &info, H5O_INFO_BASIC);
    H5Oget_info3(object.id[1], &under_test, H5O_INFO_BASIC);
    H5Oget_info3(w.file.id[0], &other, H5O_INFO_BASIC);
    links += memcmp(&info.token, &other.token, sizeof info.token) == 0; /* the file's own hold on its root */
    for (size_t i = 0; i < w.places; i++)
        links += w.place[i].what != AT_LINK &&
                 H5Oget_info_by_name3(w.file.id[0], w.place[i].path, &other, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
                 memcmp(&info.token, &other.token, sizeof info.token) == 0;
    w.modified = w.counted = true;
    /* What uses a named type counts as well, and is not to be left without it. After a restore the file under test lacks what the
     * program had added. */
    if (info.type != H5O_TYPE_NAMED_DATATYPE && info.rc > links && under_test.rc > links && chance(60)) {
        note("H5Odecr_refcount %s", path);
        BOTH("H5Odecr_refcount", H5Odecr_refcount(object.id[s]));
    } else {
        note("H5Oincr_refcount %s", path);
        BOTH("H5Oincr_refcount", H5Oincr_refcount(object.id[s]));
    }
    close_ids(object);
    touch(path);
    return true;
}

/* Something is deleted, and something else gets its name. */
bool op_replace(void)
{
    SIDES;
    char path[PATH_SIZE];
    const char *link = some_link();
    if (!link)
        return false;
    snprintf(path, sizeof path, "%s", link);
    note("H5Ldelete %s, to be made anew", path);
    w.deleted = w.modified = true;
    if (!BOTH("H5Ldelete", H5Ldelete(w.file.id[s], path, H5P_DEFAULT)))
        return true;
    learn_places();
    snprintf(w.again, sizeof w.again, "%s", path);
    bool done = chance(60) ? op_dataset() : chance(50) ? op_group() : chance(50) ? op_type() : op_copy();
    *w.again = 0;
    (void)done; /* a copy may have nothing to work on */
    return true;
}
