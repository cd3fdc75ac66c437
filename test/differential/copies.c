/* H5Ocopy: within the file, from and to other files, out of versions. */
#include "compare.h"
#include "datasets.h"
#include "operations.h"
#include "places.h"

#include <stdio.h>
#include <string.h>

static herr_t find_uncopyable(hid_t at, const char *name, const H5O_info2_t *info, void *found)
{
    if (info->type != H5O_TYPE_DATASET)
        return 0;
    hid_t set = H5Dopen2(at, name, H5P_DEFAULT), type = H5Dget_type(set);
    H5T_class_t cls = H5Tget_class(type);
    if (((cls == H5T_COMPOUND || cls == H5T_ARRAY) && type_contains(type, H5T_VLEN)) ||
        type_contains(type, H5T_REFERENCE))
        *(bool *)found = true;
    H5Tclose(type);
    H5Dclose(set);
    return 0;
}

/* D13. Asked of the twin. */
static bool copyable(const char *path)
{
    bool found = false;
    H5O_info2_t info;
    if (H5Oget_info_by_name3(w.file.id[0], path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return true;
    hid_t top = H5Oopen(w.file.id[0], path, H5P_DEFAULT);
    H5Ovisit3(top, H5_INDEX_NAME, H5_ITER_INC, find_uncopyable, &found, H5O_INFO_BASIC);
    H5Oclose(top);
    return !found;
}

bool op_copy(void)
{
    SIDES;
    char from[PATH_SIZE], to[PATH_SIZE], group[PATH_SIZE];
    if (w.places > MAX_LINKS)
        return false;
    const char *link = chance(70) ? some(AT_DATASET) : some_link();
    if (!link)
        return false;
    snprintf(from, sizeof from, "%s", link);
    new_path(to, "c");
    existing_parent(to, group);
    if (holds(from, group) || !copyable(from))
        return false;
    for (size_t i = w.handles; i-- > 0;) { /* D10 */
        hid_t dcpl = H5Dget_create_plist(w.handle[i].set.id[0]);
        bool filtered = H5Pget_nfilters(dcpl) > 0;
        H5Pclose(dcpl);
        if (filtered)
            drop_handle(i);
    }
    hid_t plist = H5Pcreate(H5P_OBJECT_COPY), lcpl = link_plist();
    unsigned flags = (chance(10) ? H5O_COPY_SHALLOW_HIERARCHY_FLAG : 0) | (chance(10) ? H5O_COPY_WITHOUT_ATTR_FLAG : 0);
    H5Pset_copy_object(plist, flags);
    note("H5Ocopy %s %s flags %x", from, to, flags);
    w.copied = true;
    w.modified = true;
    BOTH("H5Ocopy", H5Ocopy(w.file.id[s], from, w.file.id[s], to, plist, lcpl));
    H5Pclose(plist);
    H5Pclose(lcpl);
    touch(to);
    touch(group);
    touch(from);
    return true;
}

