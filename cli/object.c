/* Contract: object.h. */
#include "object.h"

#include "base/ids.h"
#include "native/datatype.h"
#include "progress.h"

#include <stdlib.h>
#include <string.h>

const char *cli_object_kind(H5O_type_t type)
{
    switch (type) {
    case H5O_TYPE_GROUP:
        return "group";
    case H5O_TYPE_DATASET:
        return "dataset";
    case H5O_TYPE_NAMED_DATATYPE:
        return "type";
    case H5O_TYPE_MAP:
    case H5O_TYPE_UNKNOWN:
    case H5O_TYPE_NTYPES:
        break;
    }
    return "unknown";
}

int cli_object_links(hid_t group, cow_tree_names *names)
{
    int status = cow_tree_links(group, names);

    cow_tree_names_by_name(names);
    return status;
}

int cli_object_attributes(hid_t object, cow_tree_names *names)
{
    int status = cow_tree_attributes(object, names);

    cow_tree_names_by_name(names);
    return status;
}

char *cli_object_comment(hid_t object)
{
    ssize_t length = H5Oget_comment(object, NULL, 0);
    char *text;

    if (length < 0)
        return NULL;
    text = cli_alloc((size_t)length + 1, 1);
    if (length == 0 || H5Oget_comment(object, text, (size_t)length + 1) >= 0)
        return text;
    free(text);
    return NULL;
}

char *cli_object_link_value(hid_t group, const cow_tree_entry *link, size_t *size)
{
    H5L_info2_t now = link->link;
    char *value;

    /* HDF5 tells the value of a link, and its size, through the link's class alone */
    if (cow_native_link_class_stand_in(link->link.type) < 0 || H5Lget_info2(group, link->name, &now, H5P_DEFAULT) < 0)
        return NULL;
    *size = now.u.val_size;
    value = cli_alloc(*size + 1, 1);
    if (*size == 0 || H5Lget_val(group, link->name, value, *size, H5P_DEFAULT) >= 0)
        return value;
    free(value);
    return NULL;
}

char *cli_object_link(hid_t group, const cow_tree_entry *link, const char *root)
{
    size_t size, above = root[1] == '\0' ? 0 : strlen(root);
    char *value = cli_object_link_value(group, link, &size), *text;
    const char *file, *object;
    unsigned flags;

    if (value == NULL) {
        H5Eclear2(H5E_DEFAULT);
        return cli_strdup("link that cannot be read");
    }
    if (link->link.type == H5L_TYPE_EXTERNAL)
        text = H5Lunpack_elink_val(value, size, &flags, &file, &object) < 0
                   ? cli_strdup("link that cannot be read")
                   : cli_format("link to %s: %s", file, object);
    else if (link->link.type != H5L_TYPE_SOFT)
        text = cli_format("link of class %d: %s", (int)link->link.type, value);
    else if (above > 0 && strncmp(value, root, above) == 0 && (value[above] == '/' || value[above] == '\0'))
        text = cli_format("link to %s", value[above] == '\0' ? "/" : value + above);
    else
        text = cli_format("link to %s", value);
    free(value);
    return text;
}

typedef struct summing {
    uint64_t (*of)(hid_t dataset);
    uint64_t sum;
} summing;

static herr_t add_dataset(hid_t object, const char *name, const H5O_info2_t *info, void *context)
{
    summing *s = context;
    hid_t dataset;

    if (info->type != H5O_TYPE_DATASET)
        return 0;
    if ((dataset = H5Dopen2(object, name, H5P_DEFAULT)) >= 0)
        s->sum += s->of(dataset);
    cow_close(dataset);
    H5Eclear2(H5E_DEFAULT);
    return 0;
}

uint64_t cli_object_sum(hid_t file, const char *path, uint64_t (*of)(hid_t dataset))
{
    summing s = {.of = of};
    hid_t object;

    if (!cli_progress_is_seen())
        return 0;
    if ((object = H5Oopen(file, path, H5P_DEFAULT)) >= 0)
        H5Ovisit3(object, H5_INDEX_NAME, H5_ITER_NATIVE, add_dataset, &s, H5O_INFO_BASIC);
    cow_close(object);
    H5Eclear2(H5E_DEFAULT);
    return s.sum;
}

int cli_box_read(cli_box *box, hid_t dataset, hid_t space, hid_t type, unsigned rank, const hsize_t start[],
                 const hsize_t count[])
{
    *box = (cli_box){.type = type, .count = 1};
    box->memory = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple((int)rank, count, NULL);
    for (unsigned d = 0; d < rank; d++)
        box->count *= count[d];
    if (box->memory < 0 || (rank > 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) < 0))
        return -1;
    box->value = cli_alloc(box->count, H5Tget_size(type));
    return H5Dread(dataset, type, box->memory, space, H5P_DEFAULT, box->value) < 0 ? -1 : 0;
}

void cli_box_close(cli_box *box, bool hold)
{
    if (hold && box->value != NULL)
        cow_reclaim(box->type, box->memory, H5P_DEFAULT, box->value);
    free(box->value);
    cow_close(box->memory);
}
