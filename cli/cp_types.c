/* Named types of copied objects. See cp.h.
 *
 * H5Ocopy can use a named type of the target that is the same; left to itself it takes any that it finds. Here it is shown those
 * alone that stand where the source has them.
 */
#include "cp.h"

#include "base/error.h"
#include "base/ids.h"
#include "object.h"
#include "tables.h"

#include <stdlib.h>

typedef struct search {
    hid_t from, to, ocpypl;
    cow_map used; /* addresses of named types in FROM */
} search;

static int note_type(search *s, hid_t type)
{
    H5O_info2_t info;
    int committed = type < 0 ? -1 : H5Tcommitted(type);

    if (committed > 0 && H5Oget_info3(type, &info, H5O_INFO_BASIC) < 0)
        return -1;
    if (committed > 0)
        cli_map_put(&s->used, cow_address(&info.token), 1);
    return committed < 0 ? -1 : 0;
}

static herr_t note_types(hid_t root, const char *name, const H5O_info2_t *info, void *context)
{
    search *s = context;
    hid_t object, type = H5I_INVALID_HID, attribute;
    cow_tree_names names = {0};
    int status;

    if (info->type != H5O_TYPE_DATASET && info->num_attrs == 0)
        return 0;
    if ((object = H5Oopen(root, name, H5P_DEFAULT)) < 0)
        return -1;
    status = info->type == H5O_TYPE_DATASET ? note_type(s, type = H5Dget_type(object)) : 0;
    if (status == 0 && info->num_attrs > 0)
        status = cli_object_attributes(object, &names);
    cow_close(type);
    for (size_t i = 0; status == 0 && i < names.count; i++) {
        attribute = H5Aopen(object, names.entry[i].name, H5P_DEFAULT);
        status = attribute < 0 ? -1 : note_type(s, type = H5Aget_type(attribute));
        if (attribute >= 0)
            cow_close(type, attribute);
    }
    if (status < 0 && !cow_error_pending())
        cow_error_native("the types of '%s'", name);
    cow_tree_names_free(&names);
    cow_close(object);
    return status;
}

static herr_t suggest(hid_t root, const char *name, const H5O_info2_t *info, void *context)
{
    search *s = context;
    hid_t type = H5I_INVALID_HID, there = H5I_INVALID_HID;
    int status = 0;

    if (info->type != H5O_TYPE_NAMED_DATATYPE || cow_map_at(&s->used, cow_address(&info->token)) == NULL)
        return 0;
    H5E_BEGIN_TRY
    {
        if ((there = H5Topen2(s->to, name, H5P_DEFAULT)) >= 0 && (type = H5Topen2(root, name, H5P_DEFAULT)) >= 0 &&
            H5Tequal(type, there) > 0)
            status = H5Padd_merge_committed_dtype_path(s->ocpypl, name) < 0 ? -1 : 0;
    }
    H5E_END_TRY
    cow_close(there, type);
    return status;
}

static H5O_mcdt_search_ret_t no_others(void *context)
{
    (void)context;
    return H5O_MCDT_SEARCH_STOP;
}

int cli_cp_types(hid_t from, const char *path, hid_t to, hid_t ocpypl)
{
    search s = {.from = from, .to = to, .ocpypl = ocpypl};
    int status = 0;

    if (H5Ovisit_by_name3(from, path, H5_INDEX_NAME, H5_ITER_NATIVE, note_types, &s,
                          H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS, H5P_DEFAULT) < 0 ||
        (s.used.count > 0 && (H5Ovisit3(from, H5_INDEX_NAME, H5_ITER_NATIVE, suggest, &s, H5O_INFO_BASIC) < 0 ||
                              H5Pset_mcdt_search_cb(ocpypl, no_others, NULL) < 0 ||
                              H5Pset_copy_object(ocpypl, H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG) < 0)))
        status = cow_error_pending() ? -1 : cow_error_native("its types");
    cow_map_free(&s.used);
    return status;
}
