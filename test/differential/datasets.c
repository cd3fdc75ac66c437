/* Datasets: creating, writing, reading, resizing, raw chunks. */
#include "datasets.h"

#include "compare.h"
#include "filter.h"
#include "operations.h"
#include "places.h"
#include "properties.h"
#include "transfer.h"
#include "values.h"
#include "versions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- datasets held open ---- */

void drop_handle(size_t i)
{
    close_ids(w.handle[i].set);
    w.handle[i] = w.handle[--w.handles];
}

static void keep_handle(pair set, const char *path)
{
    if (w.handles == MAX_HANDLES)
        drop_handle(below(MAX_HANDLES));
    w.handle[w.handles].set = set;
    memmove(w.handle[w.handles++].path, path, strlen(path) + 1); /* PATH may be that of another handle */
}

bool find_dataset(pair *set, char path[PATH_SIZE], bool *own)
{
    SIDES;
    *own = false;
    if (w.handles && chance(50)) {
        struct handle *h = &w.handle[below(w.handles)];
        *set = h->set;
        snprintf(path, PATH_SIZE, "%s", h->path);
        return true;
    }
    const char *at = some(AT_DATASET);
    if (!at)
        return false;
    snprintf(path, PATH_SIZE, "%s", at);
    if (!OPEN("H5Dopen", *set, H5Dopen2(w.file.id[s], path, H5P_DEFAULT))) {
        return false;
    }
    if (chance(40))
        keep_handle(*set, path);
    else
        *own = true;
    return true;
}

/* The same, to be changed (D12). */
static bool take_dataset(pair *set, char path[PATH_SIZE], bool *own)
{
    if (!find_dataset(set, path, own))
        return false;
    if (!read_only(set->id[0]))
        return true;
    if (*own)
        close_ids(*set);
    return false;
}

void check_dataset(pair set, const char *path)
{
    comparison c = head_comparison();

    c.chunk_bytes = chance(30);
    if (!compare_objects(&c, path, set.id[0], set.id[1]))
        differ(c.stack, "%s", c.why);
}

hid_t random_space(char *text, size_t size, int *rank, hsize_t dims[4], hsize_t max[4])
{
    size_t length = 0, total = 1;
    *rank = 0;
    if (chance(5)) {
        snprintf(text, size, "null");
        return H5Screate(H5S_NULL);
    }
    if (chance(8)) {
        snprintf(text, size, "scalar");
        return H5Screate(H5S_SCALAR);
    }
    *rank = 1 + (int)below(4);
    for (int i = 0; i < *rank; i++) {
        size_t room = MAX_ELEMENTS / total;
        size_t most = *rank == 1 ? (chance(30) ? 3000 : 60) : *rank == 2 ? 40 : *rank == 3 ? 14 : 8;
        dims[i] = chance(3) ? 0 : 1 + below(most < room ? most : room);
        total *= dims[i] ? dims[i] : 1;
        max[i] = chance(45) ? dims[i] : chance(60) ? H5S_UNLIMITED : dims[i] + below(20);
        if (max[i] == 0)
            max[i] = 5;
        length += (size_t)snprintf(text + length, size - length, "%s%llu", i ? "x" : "", (unsigned long long)dims[i]);
        if (max[i] != dims[i] && length < size)
            length += max[i] == H5S_UNLIMITED
                          ? (size_t)snprintf(text + length, size - length, "..")
                          : (size_t)snprintf(text + length, size - length, "..%llu", (unsigned long long)max[i]);
    }
    return H5Screate_simple(*rank, dims, max);
}

static void random_filters(hid_t dcpl, hid_t type, char *text, size_t size)
{
    H5T_class_t cls = H5Tget_class(type);
    bool lossless = cls == H5T_INTEGER && H5Tget_precision(type) == 8 * H5Tget_size(type);
    *text = 0;
    if (chance(45))
        return;
    if (lossless && chance(15)) {
        H5Pset_scaleoffset(dcpl, H5Z_SO_INT, (int)(8 * H5Tget_size(type))); /* D15 */
        strncat(text, " scaleoffset", size - strlen(text) - 1);
    } else if (lossless && chance(15)) {
        H5Pset_nbit(dcpl);
        strncat(text, " nbit", size - strlen(text) - 1);
    } else if (chance(45)) {
        H5Pset_shuffle(dcpl);
        strncat(text, " shuffle", size - strlen(text) - 1);
    }
    bool deflate = chance(55);
    if (deflate) {
        H5Pset_deflate(dcpl, (unsigned)below(10));
        strncat(text, " deflate", size - strlen(text) - 1);
    }
    if (!deflate && chance(15)) { /* D12: deflate could make the sizes equal */
        H5Pset_filter(dcpl, SOMETIMES, H5Z_FLAG_OPTIONAL, 0, NULL);
        strncat(text, " sometimes", size - strlen(text) - 1);
    }
    if (chance(30)) {
        H5Pset_fletcher32(dcpl);
        strncat(text, " fletcher32", size - strlen(text) - 1);
    }
}

static hid_t random_dcpl(hid_t type, int rank, const hsize_t dims[], const hsize_t max[], char *text, size_t size)
{
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[4];
    char filters[100] = "", shape[80] = "";
    const char *layout = "default";
    bool fixed = true;
    for (int i = 0; i < rank; i++)
        fixed = fixed && max[i] == dims[i];
    if (rank && (!fixed || chance(60))) {
        size_t length = 0;
        for (int i = 0; i < rank; i++) {
            hsize_t most = dims[i] ? dims[i] : 4;
            chunk[i] = 1 + below(chance(50) && most > 5 ? 5 : (size_t)most);
            if (max[i] == H5S_UNLIMITED && chance(10))
                chunk[i] = most + below(10);
            if (chance(1))
                chunk[i] += 30; /* often not allowed */
            length += (size_t)snprintf(shape + length, sizeof shape - length, "%s%llu", i ? "x" : " ",
                                       (unsigned long long)chunk[i]);
        }
        H5Pset_chunk(dcpl, rank, chunk);
        layout = "chunked";
        random_filters(dcpl, type, filters, sizeof filters);
    } else if (chance(25)) {
        H5Pset_layout(dcpl, H5D_COMPACT);
        layout = "compact";
    } else if (chance(50)) {
        H5Pset_layout(dcpl, H5D_CONTIGUOUS);
        layout = "contiguous";
    }
    bool special = type_contains(type, H5T_VLEN) || type_contains(type, H5T_REFERENCE);
    if (rank && !special && layout[1] == 'o' && layout[3] == 't' && chance(20)) {
        snprintf(shape, sizeof shape, "%zu-%u.raw", w.files, w.external++);
        H5Pset_external(dcpl, shape, 0, H5F_UNLIMITED);
        layout = "external ";
    }
    const char *fill = "";
    if (!special && chance(35)) {
        void *value[2];
        random_values(type, 1, value);
        H5Pset_fill_value(dcpl, type, value[0]);
        reclaim_both(type, 1, value);
        fill = " fill user";
    } else if (chance(12) && !type_contains(type, H5T_VLEN) && !type_has_new_references(type)) {
        /* overwriting garbage would free it */
        H5Pset_fill_value(dcpl, type, NULL);
        fill = " fill undefined";
    }
    int alloc = 0, when = 0;
    if (chance(35)) {
        alloc = 1 + (int)below(3);
        H5Pset_alloc_time(dcpl, (H5D_alloc_time_t)alloc);
    }
    if (chance(30)) {
        when = 1 + (int)below(type_has_new_references(type) ? 2 : 3);
        const H5D_fill_time_t times[] = {0, H5D_FILL_TIME_ALLOC, H5D_FILL_TIME_IFSET, H5D_FILL_TIME_NEVER};
        H5Pset_fill_time(dcpl, times[when]);
    }
    snprintf(text, size, "%s%s%s%s alloc %d filltime %d%s", layout, shape, filters, fill, alloc, when,
             draw_properties(DATASET_CREATION, (hid_t[]){dcpl, dcpl}));
    return dcpl;
}

/* One of HDF5's own types: with properties that nobody set, h5cow does not have HDF5 open such a dataset when it is created. */
static hid_t usual_type(void)
{
    const hid_t types[] = {H5T_STD_I32LE, H5T_IEEE_F64LE,   H5T_STD_U8LE,
                           H5T_STD_I64BE, H5T_NATIVE_SHORT, H5T_IEEE_F32BE};

    return H5Tcopy(types[below(sizeof types / sizeof *types)]);
}

static hid_t usual_dcpl(int rank, const hsize_t dims[], const hsize_t max[], char *text, size_t size)
{
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[4];
    bool fixed = true;

    for (int i = 0; i < rank; i++) {
        fixed = fixed && max[i] == dims[i];
        chunk[i] = 1 + below(dims[i] > 1 ? dims[i] : 1);
    }
    if (rank && (!fixed || chance(50)))
        H5Pset_chunk(dcpl, rank, chunk);
    snprintf(text, size, "usual%s", H5Pget_layout(dcpl) == H5D_CHUNKED ? " chunked" : "");
    return dcpl;
}

bool op_dataset(void)
{
    SIDES;
    char path[PATH_SIZE], group[PATH_SIZE], shape[200], properties[500], type_text[PATH_SIZE + 40];
    hsize_t dims[4] = {0}, max[4] = {0};
    int rank;
    pair set, named = {{H5I_INVALID_HID, H5I_INVALID_HID}};
    hid_t types[2], space = random_space(shape, sizeof shape, &rank, dims, max);
    const bool usual = chance(45);
    const char *committed = !usual && chance(10) ? some(AT_TYPE) : NULL;
    types[0] = types[1] = H5I_INVALID_HID;
    if (committed && OPEN("H5Topen", named, H5Topen2(w.file.id[s], committed, H5P_DEFAULT))) {
        types[0] = named.id[0];
        types[1] = named.id[1];
        snprintf(type_text, sizeof type_text, "committed %s", committed);
    } else {
        types[0] = types[1] = usual ? usual_type() : random_type(2, chance(40));
        snprintf(type_text, sizeof type_text, "class %d size %zu", (int)H5Tget_class(types[0]), H5Tget_size(types[0]));
        committed = NULL;
    }
    hid_t dcpl = usual ? usual_dcpl(rank, dims, max, properties, sizeof properties)
                       : random_dcpl(types[0], rank, dims, max, properties, sizeof properties),
          lcpl = link_plist();
    bool anonymous = !usual && chance(5) && !has_small_metadata_cache() /* D47 */;
    new_path(path, "d");
    note("H5Dcreate%s %s: %s %s %s", anonymous ? "_anon+H5Olink" : "", path, type_text, shape, properties);
    w.modified = true;
    unsigned long asked[2]; /* before either side */
    bool done =
        anonymous ? OPEN("H5Dcreate_anon", set,
                         (asked[s] = filter_calls(), H5Dcreate_anon(w.file.id[s], types[s], space, dcpl, H5P_DEFAULT)))
                  : OPEN("H5Dcreate", set,
                         (asked[s] = filter_calls(),
                          H5Dcreate2(w.file.id[s], path, types[s], space, lcpl, dcpl, H5P_DEFAULT)));
    if (done && asked[1] - asked[0] != filter_calls() - asked[1]) /* refused for its link, it may ask natively or not */
        differ(NO_STACK, "filters are asked %lu times, under test %lu", asked[1] - asked[0], filter_calls() - asked[1]);
    if (done) {
        if (without_fill(set.id[0]) || chance(50))
            write_dataset(set, true);
        if (anonymous) /* may be refused: then the dataset goes when it is closed */
            BOTH("H5Olink", H5Olink(set.id[s], w.file.id[s], path, lcpl, H5P_DEFAULT));
        if (!usual || chance(35)) /* which has HDF5 open it */
            check_dataset(set, path);
        if (chance(60))
            keep_handle(set, path);
        else
            close_ids(set);
    } else { /* D23 */
        bool there = true, same = true;
        for (char *slash = path; same && there && (slash = strchr(slash + 1, '/'));) {
            *slash = 0;
            there = H5Lexists(w.file.id[0], path, H5P_DEFAULT) > 0;
            same = (H5Lexists(w.file.id[1], path, H5P_DEFAULT) > 0) == there;
            if (!same && there)
                H5Ldelete(w.file.id[0], path, H5P_DEFAULT);
            *slash = '/';
        }
    }
    if (committed)
        close_ids(named);
    else
        H5Tclose(types[0]);
    H5Sclose(space);
    H5Pclose(dcpl);
    H5Pclose(lcpl);
    parent(path, group);
    touch(group);
    return true;
}

/* Deleted, and created as it was with the elements that it had, as many programs save. */
bool op_again(void)
{
    SIDES;
    char path[PATH_SIZE], group[PATH_SIZE];
    pair set, made, type, space, dcpl;
    void *values[2];
    size_t elements;
    const char *at = some(AT_DATASET);
    if (!at || !takes_newest_formats() /* D48 */)
        return false;
    snprintf(path, sizeof path, "%s", at);
    if (!OPEN("H5Dopen", set, H5Dopen2(w.file.id[s], path, H5P_DEFAULT)))
        return false;
    if (read_only(set.id[0])) {
        close_ids(set);
        return false;
    }
    note("%s is made again as it is", path);
    w.deleted = w.modified = true;
    for (int i = 0; i < 2; i++) {
        type.id[i] = H5Dget_type(set.id[i]);
        space.id[i] = H5Dget_space(set.id[i]);
        dcpl.id[i] = H5Dget_create_plist(set.id[i]);
    }
    elements =
        H5Sget_simple_extent_type(space.id[0]) == H5S_NULL ? 0 : (size_t)H5Sget_simple_extent_npoints(space.id[0]);
    for (int i = 0; i < 2; i++)
        values[i] = calloc(elements + 1, H5Tget_size(type.id[i]));
    bool done = BOTH("H5Dread", H5Dread(set.id[s], type.id[s], H5S_ALL, H5S_ALL, H5P_DEFAULT, values[s]));
    close_ids(set);
    done = done && BOTH("H5Ldelete", H5Ldelete(w.file.id[s], path, H5P_DEFAULT));
    learn_places(); /* its address is free, and may be used again (D3) */
    if (done && OPEN("H5Dcreate", made,
                     H5Dcreate2(w.file.id[s], path, type.id[s], space.id[s], H5P_DEFAULT, dcpl.id[s], H5P_DEFAULT))) {
        BOTH("H5Dwrite", H5Dwrite(made.id[s], type.id[s], H5S_ALL, H5S_ALL, H5P_DEFAULT, values[s]));
        check_dataset(made, path);
        close_ids(made);
    }
    for (int i = 0; i < 2; i++)
        reclaim(type.id[i], elements, values[i]);
    close_ids(type);
    close_ids(space);
    close_ids(dcpl);
    parent(path, group);
    touch(group);
    return true;
}

bool op_open(void)
{
    SIDES;
    pair set;
    const char *path = some(AT_DATASET);
    if (!path)
        return false;
    note("open and keep %s", path);
    if (chance(70) ? OPEN("H5Dopen", set, H5Dopen2(w.file.id[s], path, H5P_DEFAULT))
                   : OPEN("H5Oopen", set, H5Oopen(w.file.id[s], path, H5P_DEFAULT)))
        keep_handle(set, path);
    return true;
}

bool op_close(void)
{
    if (!w.handles)
        return false;
    size_t i = below(w.handles);
    note("close handle of %s", w.handle[i].path);
    drop_handle(i);
    return true;
}

bool op_write(void)
{
    pair set;
    char path[PATH_SIZE];
    bool own;
    if (!take_dataset(&set, path, &own))
        return false;
    note("H5Dwrite %s", path);
    write_dataset(set, chance(8));
    check_dataset(set, path);
    if (own)
        close_ids(set);
    return true;
}

/* Memory for its values has to be emptied before, and reclaimed after. */
static bool holds_pointers(hid_t type)
{
    return type_contains(type, H5T_VLEN) || type_contains(type, H5T_REFERENCE);
}

static void read_dataset(pair set)
{
    SIDES;
    transfer t;
    plan_transfer(&t, set.id[0], false);
    also(": %s", t.text);
    size_t size = H5Tget_size(t.type);
    char *values[2];
    bool pointers = holds_pointers(t.type);
    for (int i = 0; i < 2; i++) {
        values[i] = malloc(t.elements * size + 1);
        memset(values[i], pointers ? 0 : 0xA5, t.elements * size + 1); /* what is not selected must stay */
    }
    if (BOTH("H5Dread", H5Dread(set.id[s], t.type, t.mem_space, t.file_space, t.plist, values[s])) &&
        !values_agree(t.type, values[0], values[1], t.elements))
        differ(NO_STACK, "H5Dread gives other elements");
    for (int i = 0; i < 2; i++)
        reclaim(t.type, t.elements, values[i]);
    end_transfer(&t);
}

bool op_read(void)
{
    pair set;
    char path[PATH_SIZE];
    bool own;
    if (!find_dataset(&set, path, &own))
        return false;
    note("H5Dread %s", path);
    read_dataset(set);
    if (own)
        close_ids(set);
    return true;
}

/* D27 */
static bool gives_background(hid_t type)
{
    return type_contains(type, H5T_COMPOUND) || type_contains(type, H5T_VLEN);
}

/* Up to three different datasets in one call. */
bool op_multi(void)
{
    SIDES;
    transfer t[3];
    pair set[3];
    void *values[2][3];
    hid_t ids[2][3], type[3], mem[3], file[3];
    const void *out[2][3];
    size_t n = 0;
    bool writing = chance(60);
    note(writing ? "H5Dwrite_multi" : "H5Dread_multi");
    for (int tries = 0; tries < 6 && n < 3; tries++) {
        const char *path = some(AT_DATASET);
        H5O_info2_t mine, other;
        bool fresh = path && OPEN("H5Dopen", set[n], H5Dopen2(w.file.id[s], path, H5P_DEFAULT));
        if (!fresh)
            continue;
        H5Oget_info3(set[n].id[0], &mine, H5O_INFO_BASIC);
        for (size_t i = 0; i < n; i++) {
            int cmp = 1;
            H5Oget_info3(set[i].id[0], &other, H5O_INFO_BASIC);
            H5Otoken_cmp(w.file.id[0], &mine.token, &other.token, &cmp);
            fresh = fresh && cmp != 0;
        }
        fresh = fresh && !(writing && read_only(set[n].id[0]));
        if (!fresh) {
            close_ids(set[n]);
            continue;
        }
        plan_transfer(&t[n], set[n].id[0], false);
        if (t[n].plist != H5P_DEFAULT) {
            H5Pclose(t[n].plist);
            t[n].plist = H5P_DEFAULT;
        }
        if (writing)
            name_all_members(&t[n], set[n].id[0]);
        for (size_t i = 0; i < n && writing; i++)
            fresh = fresh && !(type_has_new_references(t[n].type) && gives_background(t[i].type)) &&
                    !(type_has_new_references(t[i].type) && gives_background(t[n].type));
        if (!fresh) {
            end_transfer(&t[n]);
            close_ids(set[n]);
            continue;
        }
        also(" %s (%s)", path, t[n].text);
        n++;
    }
    for (size_t i = 0; i < n; i++) {
        size_t size = H5Tget_size(t[i].type);
        for (int k = 0; k < 2; k++) {
            ids[k][i] = set[i].id[k];
            values[k][i] = NULL;
            if (!writing)
                values[k][i] = memset(malloc(t[i].elements * size + 1), holds_pointers(t[i].type) ? 0 : 0xA5,
                                      t[i].elements * size + 1);
        }
        if (writing) {
            void *made[2];
            random_values(t[i].type, t[i].elements, made);
            for (int k = 0; k < 2; k++)
                out[k][i] = values[k][i] = made[k];
        }
        type[i] = t[i].type;
        mem[i] = t[i].mem_space;
        file[i] = t[i].file_space;
    }
    if (n && writing) {
        w.modified = true;
        BOTH("H5Dwrite_multi", H5Dwrite_multi(n, ids[s], type, mem, file, H5P_DEFAULT, out[s]));
    } else if (n && BOTH("H5Dread_multi", H5Dread_multi(n, ids[s], type, mem, file, H5P_DEFAULT, values[s])))
        for (size_t i = 0; i < n; i++)
            if (!values_agree(type[i], values[0][i], values[1][i], t[i].elements)) { /* D24 */
                if (H5Dread(ids[0][i], type[i], mem[i], file[i], H5P_DEFAULT, values[0][i]) < 0 ||
                    !values_agree(type[i], values[0][i], values[1][i], t[i].elements))
                    differ(NO_STACK, "H5Dread_multi gives other elements for dataset %zu", i);
                also(" [native H5Dread_multi and H5Dread disagree]");
            }
    for (size_t i = 0; i < n; i++) {
        if (writing)
            check_dataset(set[i], "a dataset of H5Dwrite_multi");
        for (int k = 0; k < 2; k++)
            if (values[k][i])
                reclaim(t[i].type, t[i].elements, values[k][i]);
        end_transfer(&t[i]);
        close_ids(set[i]);
    }
    return n > 0;
}

bool op_extent(void)
{
    SIDES;
    pair set;
    char path[PATH_SIZE];
    bool own;
    if (!take_dataset(&set, path, &own))
        return false;
    hid_t space = H5Dget_space(set.id[0]);
    hsize_t dims[H5S_MAX_RANK] = {0}, max[H5S_MAX_RANK] = {0}, was[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, dims, max);
    size_t total = 1;
    memcpy(was, dims, sizeof was);
    bool resizable = false;
    for (int i = 0; i < rank; i++)
        resizable = resizable || max[i] != dims[i];
    H5Sclose(space);
    if (!resizable && chance(90)) {
        if (own)
            close_ids(set);
        return false;
    }
    note("H5Dset_extent %s:", path);
    for (int i = 0; i < rank; i++) {
        if (chance(25) && !caches_chunks() /* D15 */)
            dims[i] = chance(8) ? 0 : 1 + below((size_t)dims[i] + 1); /* down */
        else if (chance(60) && (max[i] != dims[i] || chance(2)))
            dims[i] += below(rank == 1 ? 60 : rank == 2 ? 15 : 6);
        if (max[i] != H5S_UNLIMITED && dims[i] > max[i] && chance(95))
            dims[i] = max[i];
        if (total * (dims[i] ? dims[i] : 1) > MAX_ELEMENTS)
            dims[i] = caches_chunks() ? was[i] : 1;
        total *= dims[i] ? dims[i] : 1;
        also(" %llu", (unsigned long long)dims[i]);
    }
    w.modified = true;
    if (BOTH("H5Dset_extent", H5Dset_extent(set.id[s], dims)) && without_fill(set.id[0]))
        write_dataset(set, true);
    check_dataset(set, path);
    if (own)
        close_ids(set);
    return true;
}

/* Raw chunks: from one place of a dataset to another, or unfiltered bytes with every filter masked out. */
bool op_chunk(void)
{
    SIDES;
    pair set;
    char path[PATH_SIZE];
    bool own, done = false;
    if (!take_dataset(&set, path, &own))
        return false;
    hid_t space = H5Dget_space(set.id[0]), type = H5Dget_type(set.id[0]), dcpl = H5Dget_create_plist(set.id[0]);
    hsize_t dims[H5S_MAX_RANK] = {0}, chunk[H5S_MAX_RANK] = {0}, at[H5S_MAX_RANK] = {0}, from[H5S_MAX_RANK] = {0},
            n = 0;
    int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    bool fits = H5Pget_layout(dcpl) == H5D_CHUNKED && !type_contains(type, H5T_VLEN) &&
                !type_contains(type, H5T_REFERENCE) && !leaves_chunks_out(dcpl) /* D12 */ &&
                !misplaces_chunks(set.id[0]); /* D30 */
    size_t bytes = H5Tget_size(type);
    if (fits)
        H5Pget_chunk(dcpl, rank, chunk);
    for (int i = 0; i < rank && fits; i++) {
        fits = dims[i] >= chunk[i]; /* D5 */
        at[i] = fits ? below((size_t)(dims[i] / chunk[i])) * chunk[i] : 0;
        bytes *= chunk[i];
    }
    if (fits) {
        note("H5Dwrite_chunk %s to", path);
        for (int i = 0; i < rank; i++)
            also(" %llu", (unsigned long long)at[i]);
        uint32_t mask = 0;
        hsize_t size = bytes;
        void *raw = NULL;
        int filters = H5Pget_nfilters(dcpl);
        haddr_t address;
        unsigned ignored;
        if (filters && chance(70) && H5Dget_num_chunks(set.id[0], H5S_ALL, &n) >= 0 && n > 0 &&
            H5Dget_chunk_info(set.id[0], H5S_ALL, below((size_t)n), from, &ignored, &address, &size) >= 0) {
            raw = malloc(size + 1);
            if (H5Dread_chunk(set.id[0], H5P_DEFAULT, from, &mask, raw) < 0)
                fits = false;
        } else {
            void *made[2];
            random_values(type, bytes / H5Tget_size(type), made);
            free(made[1]);
            raw = made[0];
            mask = filters ? (1u << filters) - 1 : 0;
        }
        also(", %llu bytes, mask %x", (unsigned long long)size, mask);
        unsigned before[2] = {0, 0};
        hsize_t there[2] = {0, 0};
        BOTH("H5Dget_chunk_info_by_coord", H5Dget_chunk_info_by_coord(set.id[s], at, &before[s], &address, &there[s]));
        bool lost = false;
        for (unsigned i = 0; i < 2; i++)
            lost = lost || (mask != before[i] && there[i] == size);
        if (fits && lost) { /* D12 */
            also(" [not written, same size]");
            done = true;
        } else if (fits) {
            w.modified = true;
            BOTH("H5Dwrite_chunk", H5Dwrite_chunk(set.id[s], H5P_DEFAULT, mask, at, size, raw));
            done = true;
            if (mask || before[0] || before[1]) { /* D12 */
                if (own)
                    close_ids(set);
                own = false;
                while (w.handles)
                    drop_handle(0);
                touch(path);
            } else
                check_dataset(set, path);
        }
        free(raw);
    } else if (H5Pget_layout(dcpl) != H5D_CHUNKED) {
        hsize_t count;
        note("chunk questions to %s, which has none", path);
        BOTH("H5Dget_num_chunks", H5Dget_num_chunks(set.id[s], H5S_ALL, &count));
        done = true;
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Pclose(dcpl);
    if (own)
        close_ids(set);
    return done;
}
