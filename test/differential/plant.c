/* Damage for the test of the test: see plant.h. */
#include "plant.h"

#include "compare.h"
#include "places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A reference of side 1 that leads to something gets another target. */
static bool plant_reference(const char *path)
{
    hid_t set = H5Dopen2(w.file.id[1], path, H5P_DEFAULT), type = set < 0 ? set : H5Dget_type(set),
          space = set < 0 ? set : H5Dget_space(set);
    H5O_info2_t mine, other;
    bool done = false;
    if (set >= 0 && H5Tequal(type, H5T_STD_REF_OBJ) > 0 && H5Sget_simple_extent_npoints(space) > 0) {
        size_t n = (size_t)H5Sget_simple_extent_npoints(space), at = 0;
        hobj_ref_t *reference = calloc(n, sizeof *reference);
        const char *name = some_object();
        done = H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, reference) >= 0 &&
               H5Oget_info_by_name3(w.file.id[1], name, &other, H5O_INFO_BASIC, H5P_DEFAULT) >= 0;
        while (at < n && (reference[at] == 0 || ((unsigned char *)&reference[at])[7] == PATTERN_REFERENCE))
            at++;
        done = done && at < n;
        hid_t object = done ? H5Rdereference2(set, H5P_DEFAULT, H5R_OBJECT1, &reference[at]) : H5I_INVALID_HID;
        done = object >= 0 && H5Oget_info3(object, &mine, H5O_INFO_BASIC) >= 0 &&
               memcmp(&mine.token, &other.token, sizeof mine.token) != 0 &&
               H5Rcreate(&reference[at], w.file.id[1], name, H5R_OBJECT1, -1) >= 0 &&
               H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, reference) >= 0;
        if (object >= 0)
            H5Oclose(object);
        free(reference);
    }
    if (set >= 0) {
        H5Tclose(type);
        H5Sclose(space);
        H5Dclose(set);
    }
    return done;
}

/* Of an object of side 1 with two links one comes to lead to a copy. The copy's count is put right: only what is one
 * object, and what is two, tells. */
static bool plant_hard_link(void)
{
    for (size_t i = 0; i < w.places; i++)
        for (size_t j = i + 1; j < w.places; j++) {
            H5O_info2_t a, b;
            const char *first = w.place[i].path, *second = w.place[j].path;
            if (w.place[i].what != AT_DATASET || w.place[j].what != AT_DATASET ||
                H5Oget_info_by_name3(w.file.id[1], first, &a, H5O_INFO_BASIC, H5P_DEFAULT) < 0 ||
                H5Oget_info_by_name3(w.file.id[1], second, &b, H5O_INFO_BASIC, H5P_DEFAULT) < 0 ||
                memcmp(&a.token, &b.token, sizeof a.token) != 0)
                continue;
            hid_t set = H5I_INVALID_HID;
            bool done = H5Ocopy(w.file.id[1], first, w.file.id[1], "/planted", H5P_DEFAULT, H5P_DEFAULT) >= 0 &&
                        H5Ldelete(w.file.id[1], second, H5P_DEFAULT) >= 0 &&
                        H5Lmove(w.file.id[1], "/planted", w.file.id[1], second, H5P_DEFAULT, H5P_DEFAULT) >= 0 &&
                        (set = H5Dopen2(w.file.id[1], second, H5P_DEFAULT)) >= 0;
            for (unsigned rc = 1; done && rc < a.rc; rc++)
                H5Oincr_refcount(set);
            if (set >= 0)
                H5Dclose(set);
            if (done && (set = H5Dopen2(w.file.id[1], first, H5P_DEFAULT)) >= 0) {
                H5Oincr_refcount(set);
                H5Dclose(set);
            }
            return done;
        }
    return false;
}

void plant_damage(void)
{
    static const int one = 1;
    bool done = false;
    if (w.plant == PLANT_VERSION) {
        char path[2 * PATH_SIZE];
        if (!w.versions)
            return;
        snprintf(path, sizeof path, "%s.%s", w.name[1], w.version[w.versions - 1].name);
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, w.access[1]);
        hid_t group = H5Gcreate2(file, "planted", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Gclose(group);
        H5Fclose(file);
        done = true;
    } else if (w.plant == PLANT_LINK) {
        done = H5Lcreate_soft("x", w.file.id[1], "/planted", H5P_DEFAULT, H5P_DEFAULT) >= 0;
    } else if (w.plant == PLANT_REFERENCE) {
        for (size_t i = 0; i < w.places && !done; i++)
            done = w.place[i].what == AT_DATASET && plant_reference(w.place[i].path);
    } else if (w.plant == PLANT_HARD_LINK) {
        done = plant_hard_link();
    } else if (w.plant == PLANT_ATTRIBUTE) {
        hid_t space = H5Screate(H5S_SCALAR);
        hid_t at = H5Acreate_by_name(w.file.id[1], some_object(), "planted", H5T_NATIVE_INT, space, H5P_DEFAULT,
                                     H5P_DEFAULT, H5P_DEFAULT);
        if (at >= 0) {
            done = H5Awrite(at, H5T_NATIVE_INT, &one) >= 0;
            H5Aclose(at);
        }
        H5Sclose(space);
    } else {
        const char *path = some(AT_DATASET);
        hid_t set = path ? H5Dopen2(w.file.id[1], path, H5P_DEFAULT) : H5I_INVALID_HID;
        if (set >= 0) {
            hid_t type = H5Dget_type(set), space = H5Dget_space(set);
            hsize_t dims[H5S_MAX_RANK], max[H5S_MAX_RANK];
            int rank = H5Sget_simple_extent_dims(space, dims, max);
            size_t size = H5Tget_size(type);
            if (w.plant == PLANT_EXTENT && rank > 0 && max[0] == H5S_UNLIMITED) {
                dims[0]++;
                done = H5Dset_extent(set, dims) >= 0;
            } else if (w.plant == PLANT_ELEMENT && rank > 0 && H5Sget_simple_extent_npoints(space) > 0 &&
                       H5Tget_class(type) != H5T_COMPOUND && H5Tget_class(type) != H5T_ARRAY &&
                       !type_contains(type, H5T_VLEN) && !type_contains(type, H5T_REFERENCE)) {
                hsize_t point[H5S_MAX_RANK], n = 1;
                for (int i = 0; i < rank; i++)
                    point[i] = below(dims[i]);
                H5Sselect_elements(space, H5S_SELECT_SET, 1, point);
                hid_t mem = H5Screate_simple(1, &n, NULL), memory = H5Tcopy(type);
                unsigned char *value = calloc(1, size);
                done = H5Dread(set, memory, mem, space, H5P_DEFAULT, value) >= 0;
                value[below(size)] ^= 0x10;
                done = done && H5Dwrite(set, memory, mem, space, H5P_DEFAULT, value) >= 0;
                free(value);
                H5Sclose(mem);
                H5Tclose(memory);
            }
            H5Tclose(type);
            H5Sclose(space);
            H5Dclose(set);
        }
    }
    if (done) {
        note("(planted: %s)", plant_names[w.plant]);
        w.planted = w.step;
        w.plants++;
    }
}
