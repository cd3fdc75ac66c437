/* Contract: picture.h. */
#include "picture.h"
#include "die.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t picture_elements(const object *o)
{
    size_t n = o->kind == GROUP ? 0 : o->kind == PAIRS ? 2 : 1;

    for (int d = 0; d < o->rank; d++)
        n *= (size_t)o->extent[d];
    return n;
}

picture *picture_new(void)
{
    return need(calloc(1, sizeof(picture)));
}

void picture_free(picture *p)
{
    if (p == NULL)
        return;
    for (int i = 0; i < p->object_count; i++)
        free(p->objects[i].value);
    free(p);
}

picture *picture_copy(const picture *from)
{
    picture *p = picture_new();

    *p = *from;
    for (int i = 0; i < p->object_count; i++) {
        size_t size = picture_elements(&p->objects[i]) * sizeof(int);
        p->objects[i].value = need(malloc(size + 1));
        if (size > 0)
            memcpy(p->objects[i].value, from->objects[i].value, size);
    }
    return p;
}

int picture_find(const picture *p, const char *path)
{
    for (int i = 0; i < p->link_count; i++)
        if (strcmp(p->link[i].path, path) == 0)
            return i;
    return -1;
}

object *picture_object(picture *p, const char *path)
{
    int i = picture_find(p, path);

    return i < 0 || p->link[i].object < 0 ? NULL : &p->objects[p->link[i].object];
}

named *picture_link(picture *p, const char *path, int number)
{
    named *l = &p->link[p->link_count++];

    if (p->link_count == LINKS_MAX)
        die("too many links");
    snprintf(l->path, sizeof l->path, "%s", path);
    l->object = number;
    l->target[0] = '\0';
    return l;
}

object *picture_add(picture *p, const char *path, kind what, int rank, const hsize_t extent[])
{
    object *o = &p->objects[p->object_count];

    *o = (object){.kind = what, .rank = rank};
    for (int d = 0; d < rank; d++)
        o->extent[d] = extent[d];
    o->value = need(calloc(picture_elements(o) + 1, sizeof(int)));
    picture_link(p, path, p->object_count++);
    return o;
}

static bool same_object(const object *a, const object *b)
{
    return a->kind == b->kind && a->rank == b->rank &&
           memcmp(a->extent, b->extent, (size_t)a->rank * sizeof *a->extent) == 0 && a->noted == b->noted &&
           (!a->noted || a->note == b->note) && memcmp(a->value, b->value, picture_elements(a) * sizeof(int)) == 0;
}

/* WHY: the first path that differs. */
bool picture_same(const picture *a, const picture *b, const char **why)
{
    for (int i = 0; i < a->link_count; i++) {
        const named *x = &a->link[i];
        int at = picture_find(b, x->path);

        *why = x->path;
        if (at < 0 || (b->link[at].object < 0) != (x->object < 0) || strcmp(b->link[at].target, x->target) != 0)
            return false;
        if (x->object < 0)
            continue;
        if (!same_object(&a->objects[x->object], &b->objects[b->link[at].object]))
            return false;
        /* two paths of one object are so in both */
        for (int j = 0; j < i; j++) {
            int other = picture_find(b, a->link[j].path);
            if (a->link[j].object >= 0 &&
                (a->link[j].object == x->object) != (b->link[other].object == b->link[at].object))
                return false;
        }
    }
    *why = "a link that should not be there";
    return a->link_count == b->link_count;
}

void picture_text(int value, char *text, size_t size)
{
    snprintf(text, size, "text %d%.*s", value, value % 29, " and so on, to be of some length");
}

/* ---- from a file ---- */

typedef struct reading {
    picture *picture;
    hid_t root;
    const char *place; /* path of ROOT */
} reading;

static int note_of(hid_t id, bool *noted, int *note)
{
    hid_t attribute;
    int status = -1;
    htri_t exists = H5Aexists(id, "note");

    *noted = exists > 0;
    if (exists <= 0)
        return exists < 0 ? -1 : 0;
    if ((attribute = H5Aopen(id, "note", H5P_DEFAULT)) >= 0) {
        status = H5Aread(attribute, H5T_NATIVE_INT, note) < 0 ? -1 : 0;
        H5Aclose(attribute);
    }
    return status;
}

hid_t picture_pair_type(void)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(pair));

    H5Tinsert(type, "a", HOFFSET(pair, a), H5T_NATIVE_INT);
    H5Tinsert(type, "b", HOFFSET(pair, b), H5T_NATIVE_DOUBLE);
    return type;
}

hid_t picture_text_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    H5Tset_size(type, H5T_VARIABLE);
    return type;
}

static int read_texts(hid_t set, hid_t space, object *o)
{
    size_t count = picture_elements(o);
    char **text = need(calloc(count + 1, sizeof *text)), expected[128];
    hid_t type = picture_text_type();
    int status = H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) < 0 ? -1 : 0;

    for (size_t i = 0; status == 0 && i < count; i++) {
        int value = 0;
        if (text[i] != NULL && text[i][0] != '\0') { /* what was never written is nothing */
            if (sscanf(text[i], "text %d", &value) != 1)
                value = NOTHING;
            picture_text(value, expected, sizeof expected);
            if (strcmp(expected, text[i]) != 0)
                value = NOTHING;
        }
        o->value[i] = value;
    }
    if (status == 0)
        H5Treclaim(type, space, H5P_DEFAULT, text);
    H5Tclose(type);
    free(text);
    return status;
}

static int read_pairs(hid_t set, object *o)
{
    size_t count = picture_elements(o) / 2;
    pair *pairs = need(calloc(count + 1, sizeof *pairs));
    hid_t type = picture_pair_type();
    int status = H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, pairs) < 0 ? -1 : 0;

    for (size_t i = 0; i < count; i++) {
        o->value[2 * i] = pairs[i].a;
        o->value[2 * i + 1] = (int)(pairs[i].b * 2);
    }
    H5Tclose(type);
    free(pairs);
    return status;
}

static int read_dataset(reading *r, hid_t set, const char *path)
{
    hid_t space = H5Dget_space(set), type = H5Dget_type(set);
    hsize_t extent[RANK_MAX];
    object *o;
    int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space), status = -1;
    H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);

    if (rank < 0 || rank > RANK_MAX || H5Sget_simple_extent_dims(space, extent, NULL) < 0)
        goto done;
    o = picture_add(r->picture, path,
                    class == H5T_STRING     ? TEXTS
                    : class == H5T_COMPOUND ? PAIRS
                                            : INTEGERS,
                    rank, extent);
    if (o->kind == TEXTS)
        status = read_texts(set, space, o);
    else if (o->kind == PAIRS)
        status = read_pairs(set, o);
    else if (picture_elements(o) == 0)
        status = 0;
    else
        status = H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, o->value) < 0 ? -1 : 0;
done:
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return status;
}

static int read_object(reading *r, const char *path)
{
    hid_t id = H5Oopen(r->root, path, H5P_DEFAULT);
    H5O_info2_t info;
    picture *p = r->picture;
    int status = -1, same;

    if (id < 0 || H5Oget_info3(id, &info, H5O_INFO_BASIC) < 0)
        goto done;
    for (int i = 0; i < p->object_count; i++)
        if (H5Otoken_cmp(r->root, &info.token, &p->objects[i].token, &same) >= 0 && same == 0) {
            picture_link(p, path, i);
            status = 0;
            goto done;
        }
    if (info.type == H5O_TYPE_GROUP) {
        picture_add(p, path, GROUP, 0, NULL);
        status = 0;
    } else if (info.type == H5O_TYPE_DATASET)
        status = read_dataset(r, id, path);
    if (status == 0) {
        object *o = &p->objects[p->object_count - 1];
        o->token = info.token;
        status = note_of(id, &o->noted, &o->note);
    }
done:
    if (id >= 0)
        H5Oclose(id);
    return status;
}

static herr_t read_link(hid_t group, const char *path, const H5L_info2_t *info, void *context)
{
    reading *r = context;

    (void)group;
    if (strncmp(path, RESERVED, strlen(RESERVED)) == 0)
        return 0;
    if (r->picture->link_count + 1 >= LINKS_MAX || strlen(path) >= sizeof r->picture->link[0].path)
        return -1;
    if (info->type == H5L_TYPE_SOFT) {
        char target[256] = "";
        size_t in_version = strlen(r->place);

        if (H5Lget_val(r->root, path, target, sizeof target - 1, H5P_DEFAULT) < 0)
            return -1;
        /* the links of a version lead into the version */
        snprintf(picture_link(r->picture, path, -1)->target, sizeof r->picture->link[0].target, "%.60s",
                 strncmp(target, r->place, in_version) == 0 ? target + in_version : target);
        return 0;
    }
    return read_object(r, path);
}

/* NULL: it cannot be read. */
picture *picture_read(hid_t root, const char *place)
{
    reading r = {picture_new(), root, place};

    if (H5Lvisit2(root, H5_INDEX_NAME, H5_ITER_INC, read_link, &r) < 0) {
        picture_free(r.picture);
        return NULL;
    }
    return r.picture;
}
