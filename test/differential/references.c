/* References of all kinds: see references.h. */
#include "references.h"

#include "compare.h"
#include "datasets.h"
#include "operations.h"
#include "places.h"
#include "transfer.h"
#include "versions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGETS 6

typedef enum { OBJECT_1, REGION_1, ANY_2 } style; /* as HDF5 1.8 has them, and 1.12 */

/* References that were made for the values being made now. */
static struct target {
    style style;
    unsigned char value[2][sizeof(H5R_ref_t)];
} target[TARGETS];
static size_t targets;

static style style_of(hid_t type)
{
    return H5Tequal(type, H5T_STD_REF_OBJ) > 0 ? OBJECT_1 : H5Tequal(type, H5T_STD_REF_DSETREG) > 0 ? REGION_1 : ANY_2;
}

void begin_references(void)
{
    targets = 0;
}

void end_references(void)
{
    for (size_t i = 0; i < targets; i++)
        for (int s = 0; s < 2 && target[i].style == ANY_2; s++)
            H5Rdestroy((H5R_ref_t *)(void *)target[i].value[s]);
    targets = 0;
}

/* A dataset of the native file and a selection in it. */
static hid_t some_region(char path[PATH_SIZE], char *text, size_t size)
{
    const char *at = some(AT_DATASET);
    hid_t set = at ? H5Dopen2(w.file.id[0], at, H5P_DEFAULT) : H5I_INVALID_HID, space = H5I_INVALID_HID;
    if (set < 0)
        return set;
    snprintf(path, PATH_SIZE, "%s", at);
    space = H5Dget_space(set);
    if (H5Sget_simple_extent_ndims(space) <= 0 || H5Sget_simple_extent_npoints(space) <= 0) {
        H5Sclose(space);
        space = H5I_INVALID_HID;
    } else
        random_selection(space, text, size);
    H5Dclose(set);
    return space;
}

static bool make_reference(struct target *t)
{
    SIDES;
    char path[PATH_SIZE], text[500] = "", name[20];
    H5R_ref_t *made[2] = {(H5R_ref_t *)(void *)t->value[0], (H5R_ref_t *)(void *)t->value[1]};
    size_t what = t->style == OBJECT_1 ? 0 : t->style == REGION_1 ? 60 : below(100);
    bool done = false;
    memset(t->value, 0, sizeof t->value);
    if (what < 50) {
        snprintf(path, sizeof path, "%s", some_object());
        also(" [to %s]", path);
        return t->style == OBJECT_1
                   ? BOTH("H5Rcreate", H5Rcreate(t->value[s], w.file.id[s], path, H5R_OBJECT1, -1))
                   : BOTH("H5Rcreate_object", H5Rcreate_object(w.file.id[s], path, H5P_DEFAULT, made[s]));
    }
    if (what < 80) {
        hid_t space = some_region(path, text, sizeof text);
        if (space >= 0) {
            also(" [to %s in %s]", text, path);
            done = t->style == REGION_1
                       ? BOTH("H5Rcreate", H5Rcreate(t->value[s], w.file.id[s], path, H5R_DATASET_REGION1, space))
                       : BOTH("H5Rcreate_region", H5Rcreate_region(w.file.id[s], path, space, H5P_DEFAULT, made[s]));
            H5Sclose(space);
            H5O_info2_t info;
            addresses *a = &w.addresses;
            if (done && t->style == REGION_1 && a->regions < MAX_OBJECTS &&
                H5Oget_info_by_name3(w.file.id[0], path, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0) {
                memcpy(a->region[a->regions].reference, t->value[0], sizeof a->region[0].reference);
                a->region[a->regions++].token = info.token;
            }
        }
        return done;
    }
    snprintf(path, sizeof path, "%s", some_object());
    for (size_t i = 0; i < 14; i++) {
        snprintf(name, sizeof name, "a%zu", i);
        if (H5Aexists_by_name(w.file.id[0], path, name, H5P_DEFAULT) > 0) {
            also(" [to %s@%s]", path, name);
            return BOTH("H5Rcreate_attr", H5Rcreate_attr(w.file.id[s], path, name, H5P_DEFAULT, made[s]));
        }
    }
    return false;
}

void random_reference(hid_t type, unsigned char *const value[2])
{
    size_t size = H5Tget_size(type), n = 0, pick;
    style of = style_of(type);
    memset(value[0], 0, size);
    memset(value[1], 0, size);
    if (chance(15))
        return;
    if (of != ANY_2 && chance(20)) {
        for (size_t i = 0; i < size; i++)
            value[0][i] = (unsigned char)next();
        value[0][7] = PATTERN_REFERENCE;
        memcpy(value[1], value[0], size);
        return;
    }
    if (w.file.id[0] < 0) /* only its datasets are open */
        return;
    if (targets < TARGETS && chance(40)) {
        target[targets].style = of;
        if (make_reference(&target[targets]))
            targets++;
    }
    for (size_t i = 0; i < targets; i++)
        n += target[i].style == of;
    pick = below(n);
    for (size_t i = 0; i < targets; i++)
        if (target[i].style == of && pick-- == 0)
            for (int s = 0; s < 2; s++) {
                if (of != ANY_2)
                    memcpy(value[s], target[i].value[s], size);
                else if (H5Rcopy((H5R_ref_t *)(void *)target[i].value[s], (H5R_ref_t *)(void *)value[s]) < 0)
                    die("H5Rcopy fails");
            }
}

/* References are written, and all that there are must lead alike at once. */
bool op_reference(void)
{
    SIDES;
    char path[PATH_SIZE] = "";
    pair set = {{H5I_INVALID_HID, H5I_INVALID_HID}};
    for (int tries = 0; tries < 20 && set.id[0] < 0; tries++) {
        const char *at = some(AT_DATASET);
        if (!at || !OPEN("H5Dopen", set, H5Dopen2(w.file.id[s], at, H5P_DEFAULT)))
            return false;
        hid_t type = H5Dget_type(set.id[0]);
        if (type_contains(type, H5T_REFERENCE) && !read_only(set.id[0]))
            snprintf(path, sizeof path, "%s", at);
        else {
            close_ids(set);
            set.id[0] = H5I_INVALID_HID;
        }
        H5Tclose(type);
    }
    if (set.id[0] < 0)
        return false;
    note("write references into %s", path);
    write_dataset(set, chance(30));
    check_dataset(set, path);
    close_ids(set);
    full_check();
    return true;
}
