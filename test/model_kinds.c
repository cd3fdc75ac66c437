/* The rows of the table of test_model.c. Contract: model.h. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#define ROWS    40
#define COLUMNS 30
#define LENGTH  50 /* of datasets that stand for a datatype */

#define MODEL_PLAIN  "test_model_plain.h5"  /* files that links lead to: a plain one */
#define MODEL_LINKED "test_model_linked.h5" /* and one with history */

int model_side;

static const H5L_class_t by_name;

static hid_t intermediate(void)
{
    hid_t lcpl = H5Pcreate(H5P_LINK_CREATE);

    assert_true(H5Pset_create_intermediate_group(lcpl, 1) >= 0);
    return lcpl;
}

static void put_attribute(hid_t object, const char *name, int value)
{
    hid_t space = H5Screate(H5S_SCALAR), attribute;

    attribute = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT)
                                            : H5Acreate2(object, name, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_INT, &value) >= 0 && H5Aclose(attribute) >= 0);
    H5Sclose(space);
}

/* Values of the whole of a dataset or attribute, or of what is selected. */
static void put_values(hid_t object, hid_t type, hid_t selected, unsigned seed)
{
    hsize_t n = (hsize_t)H5Sget_select_npoints(selected);
    hid_t memory = H5Screate_simple(1, &n, NULL);
    unsigned char *values = calloc(n + 1, H5Tget_size(type));

    sample_seed(seed);
    for (hsize_t i = 0; i < n; i++)
        sample_value(type, values + i * H5Tget_size(type));
    if (H5Iget_type(object) == H5I_ATTR)
        assert_true(H5Awrite(object, type, values) >= 0);
    else
        assert_true(H5Dwrite(object, type, memory, selected, H5P_DEFAULT, values) >= 0);
    assert_true(H5Treclaim(type, memory, H5P_DEFAULT, values) >= 0);
    free(values);
    H5Sclose(memory);
}

/* ---- datasets ---- */

static hid_t plain_type(const kind *k)
{
    return k->type == NULL ? H5Tcopy(H5T_STD_I32LE) : k->type();
}

static hid_t space_of(const kind *k)
{
    hsize_t dims[2] = {ROWS, COLUMNS}, most[2] = {H5S_UNLIMITED, 2 * COLUMNS}, line = LENGTH;

    switch (k->layout) {
    case SCALAR:
        return H5Screate(H5S_SCALAR);
    case NULL_SPACE:
        return H5Screate(H5S_NULL);
    case TINY:
    case COMPACT:
        dims[0] = 10, dims[1] = 6;
        return H5Screate_simple(2, dims, NULL);
    case EMPTY:
        dims[0] = 0;
        return H5Screate_simple(2, dims, NULL);
    case EMPTY_GROWING:
        dims[0] = 0;
        return H5Screate_simple(2, dims, most);
    case GROWING:
    case SPARSE:
        return H5Screate_simple(2, dims, most);
    case CHUNKED:
        if (k->type != NULL)
            return H5Screate_simple(1, &line, NULL);
        break;
    case DEFLATED:
    case CHECKSUMMED:
    case NBIT:
    case EARLY:
    case CONTIGUOUS:
    case CONTIGUOUS_EARLY:
    case VIRTUAL:
    case VIRTUAL_OTHER:
    case VIRTUAL_COW:
    case EXTERNAL:
    case ANONYMOUS:
        break;
    }
    return H5Screate_simple(2, dims, NULL);
}

static void chunk_it(const kind *k, hid_t dcpl)
{
    hsize_t chunk[2] = {8, 7};

    assert_true(H5Pset_chunk(dcpl, k->type == NULL ? 2 : 1, chunk) >= 0);
}

static const char *external_name(void)
{
    return model_side == 0 ? "test_model_cow.raw" : "test_model_native.raw";
}

/* Files of sources: HDF5 locks them for the file that refers to them, so each side has its own. */
static const char *const source_files[] = {"test_model_source_0.h5", "test_model_source_1.h5",
                                           "test_model_source_2.h5"};

static bool has_history(const kind *k)
{
    return k->layout == VIRTUAL_COW && model_side == 0;
}

static const char *source_file(const kind *k)
{
    return source_files[has_history(k) ? 0 : 1 + model_side];
}

/* Sources of a virtual dataset: "upper" and "lower", in the file of AT or in another. */
static void write_source(hid_t at, const char *name, unsigned seed)
{
    hsize_t dims[2] = {ROWS / 2, COLUMNS}, chunk[2] = {8, 7};
    hid_t space = H5Screate_simple(2, dims, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE), dataset;

    if (strcmp(name, "upper") == 0)
        assert_true(H5Pset_chunk(dcpl, 2, chunk) >= 0);
    dataset = H5Lexists(at, name, H5P_DEFAULT) > 0
                  ? H5Dopen2(at, name, H5P_DEFAULT)
                  : H5Dcreate2(at, name, H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(dataset >= 0);
    put_values(dataset, H5T_STD_I32LE, space, seed);
    assert_true(H5Dclose(dataset) >= 0);
    H5Pclose(dcpl);
    H5Sclose(space);
}

static void write_sources(const kind *k, hid_t at, unsigned seed)
{
    hid_t plain = H5VLget_connector_id_by_name("native"), fapl = H5Pcreate(H5P_FILE_ACCESS), file = at;

    assert_true(H5Pset_vol(fapl, plain, NULL) >= 0);
    if (k->layout != VIRTUAL)
        assert_true((file = H5Fopen(source_file(k), H5F_ACC_RDWR, has_history(k) ? H5P_DEFAULT : fapl)) >= 0);
    write_source(file, "upper", seed);
    write_source(file, "lower", seed + 50);
    if (file != at)
        assert_true(H5Fclose(file) >= 0);
    H5Pclose(fapl);
    H5VLclose(plain);
}

static void map_sources(const kind *k, hid_t dcpl, hid_t space)
{
    const char *file = k->layout == VIRTUAL ? "." : source_file(k);
    hsize_t start[2] = {0, 0}, count[2] = {ROWS / 2, COLUMNS};
    hid_t part = H5Scopy(space), source = H5Screate_simple(2, count, NULL);
    int minus = -1;

    for (int i = 0; i < 2; i++) {
        char name[40];

        start[0] = (hsize_t)i * ROWS / 2;
        snprintf(name, sizeof name, "%s/%s", k->layout == VIRTUAL ? "/" MODEL_GROUP : "", i == 0 ? "upper" : "lower");
        assert_true(H5Sselect_hyperslab(part, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
        assert_true(H5Pset_virtual(dcpl, part, file, name, source) >= 0);
    }
    assert_true(H5Pset_fill_value(dcpl, H5T_NATIVE_INT, &minus) >= 0);
    H5Sclose(source);
    H5Sclose(part);
}

static bool is_virtual(const kind *k)
{
    return k->layout == VIRTUAL || k->layout == VIRTUAL_OTHER || k->layout == VIRTUAL_COW;
}

static void make_dataset(const kind *k, hid_t at, unsigned seed)
{
    hid_t type = plain_type(k), space = space_of(k), dcpl = H5Pcreate(H5P_DATASET_CREATE), dataset;
    int minus = -77;

    switch (k->layout) {
    case CHUNKED:
    case GROWING:
    case EMPTY_GROWING:
    case ANONYMOUS:
        chunk_it(k, dcpl);
        break;
    case DEFLATED:
        chunk_it(k, dcpl);
        assert_true(H5Pset_shuffle(dcpl) >= 0 && H5Pset_deflate(dcpl, 4) >= 0);
        break;
    case CHECKSUMMED:
        chunk_it(k, dcpl);
        assert_true(H5Pset_fletcher32(dcpl) >= 0);
        break;
    case NBIT:
        chunk_it(k, dcpl);
        assert_true(H5Pset_nbit(dcpl) >= 0);
        break;
    case EARLY:
        chunk_it(k, dcpl);
        assert_true(H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY) >= 0);
        break;
    case SPARSE:
        chunk_it(k, dcpl);
        assert_true(H5Pset_fill_value(dcpl, H5T_NATIVE_INT, &minus) >= 0);
        break;
    case CONTIGUOUS_EARLY:
        assert_true(H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY) >= 0);
        break;
    case COMPACT:
        assert_true(H5Pset_layout(dcpl, H5D_COMPACT) >= 0);
        break;
    case VIRTUAL:
    case VIRTUAL_OTHER:
    case VIRTUAL_COW:
        write_sources(k, at, seed);
        map_sources(k, dcpl, space);
        break;
    case EXTERNAL:
        assert_true(H5Pset_external(dcpl, external_name(), 16, H5F_UNLIMITED) >= 0);
        break;
    case CONTIGUOUS:
    case TINY:
    case SCALAR:
    case NULL_SPACE:
    case EMPTY:
        break;
    }
    dataset = k->layout == ANONYMOUS ? H5Dcreate_anon(at, type, space, dcpl, H5P_DEFAULT)
                                     : H5Dcreate2(at, "x", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(dataset >= 0);
    if (!is_virtual(k) && k->layout != NULL_SPACE && k->layout != SPARSE)
        put_values(dataset, type, space, seed);
    if (k->layout == ANONYMOUS) {
        assert_true(H5Fflush(at, H5F_SCOPE_LOCAL) >= 0); /* a version without it may come to be */
        assert_true(H5Olink(dataset, at, "x", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    }
    put_attribute(dataset, "note", (int)seed);
    assert_true(H5Dclose(dataset) >= 0);
    H5Pclose(dcpl);
    H5Sclose(space);
    H5Tclose(type);
}

/* A part of the elements, and some new ones where it can grow. */
static void change_dataset(const kind *k, hid_t at, unsigned seed)
{
    hid_t dataset = H5Dopen2(at, "x", H5P_DEFAULT), type = plain_type(k), space;
    hsize_t start[2] = {3, 2}, stride[2] = {11, 9}, count[2] = {3, 3}, block[2] = {2, 4}, larger[2] = {55, 45};

    assert_true(dataset >= 0);
    put_attribute(dataset, "note", (int)seed);
    if (k->layout == GROWING || k->layout == EMPTY_GROWING)
        assert_true(H5Dset_extent(dataset, larger) >= 0);
    space = H5Dget_space(dataset);
    if (k->layout == TINY || k->layout == COMPACT)
        stride[0] = 2, stride[1] = 2, count[1] = 2, block[0] = block[1] = 1;
    if (k->layout != SCALAR && k->layout != NULL_SPACE && k->layout != EMPTY)
        assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, block) >= 0);
    if (is_virtual(k))
        write_sources(k, at, seed);
    else if (k->layout != NULL_SPACE)
        put_values(dataset, type, space, seed);
    assert_true(H5Dclose(dataset) >= 0);
    H5Sclose(space);
    H5Tclose(type);
}

/* Only the data that lies elsewhere: no change of the file. */
static void change_data_elsewhere(const kind *k, hid_t at, unsigned seed)
{
    hid_t dataset = H5Dopen2(at, "x", H5P_DEFAULT), space = H5Dget_space(dataset);

    if (is_virtual(k))
        write_sources(k, at, seed);
    else
        put_values(dataset, H5T_STD_I32LE, space, seed);
    assert_true(H5Dclose(dataset) >= 0);
    H5Sclose(space);
}

/* ---- references ---- */

static hid_t target(hid_t at, unsigned number)
{
    hsize_t n = 20, chunk = 6;
    char name[20];
    hid_t dataset;

    snprintf(name, sizeof name, "target%u", number);
    if (H5Lexists(at, name, H5P_DEFAULT) > 0)
        dataset = H5Dopen2(at, name, H5P_DEFAULT);
    else {
        hid_t space = H5Screate_simple(1, &n, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE);

        assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
        dataset = H5Dcreate2(at, name, H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
        put_values(dataset, H5T_STD_I32LE, space, number);
        put_attribute(dataset, "note", (int)number);
        H5Pclose(dcpl);
        H5Sclose(space);
    }
    assert_true(dataset >= 0);
    return dataset;
}

static hid_t object_reference_1(void)
{
    return H5Tcopy(H5T_STD_REF_OBJ);
}

static hid_t region_reference_1(void)
{
    return H5Tcopy(H5T_STD_REF_DSETREG);
}

static hid_t reference_2(void)
{
    return H5Tcopy(H5T_STD_REF);
}

/* Four references to target1 and target2: of 1.8, or of 1.12, then of all its kinds. */
static void put_references(hid_t at, hid_t object, hid_t type, unsigned seed)
{
    hobj_ref_t objects[4] = {0};
    hdset_reg_ref_t regions[4];
    H5R_ref_t references[4];
    hsize_t start[4], count = 3;
    hid_t space = H5I_INVALID_HID;
    void *values = H5Tequal(type, H5T_STD_REF_OBJ) > 0       ? (void *)objects
                   : H5Tequal(type, H5T_STD_REF_DSETREG) > 0 ? (void *)regions
                                                             : (void *)references;

    memset(regions, 0, sizeof regions);
    memset(references, 0, sizeof references);
    for (unsigned i = 0; i < 4; i++) {
        unsigned number = 1 + (i + seed) % 2;
        hid_t dataset = target(at, number);
        char name[20];

        snprintf(name, sizeof name, "target%u", number);
        start[i] = (i * 3 + seed) % 15;
        space = H5Dget_space(dataset);
        assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start[i], NULL, &count, NULL) >= 0);
        if (values == objects)
            assert_true(H5Rcreate(&objects[i], at, name, H5R_OBJECT1, -1) >= 0);
        else if (values == regions)
            assert_true(H5Rcreate(&regions[i], at, name, H5R_DATASET_REGION1, space) >= 0);
        else if (i == 0)
            assert_true(H5Rcreate_attr(at, name, "note", H5P_DEFAULT, &references[i]) >= 0);
        else if (i < 3)
            assert_true(H5Rcreate_region(at, name, space, H5P_DEFAULT, &references[i]) >= 0);
        else
            assert_true(H5Rcreate_object(at, name, H5P_DEFAULT, &references[i]) >= 0);
        H5Sclose(space);
        H5Dclose(dataset);
    }
    if (H5Iget_type(object) == H5I_ATTR)
        assert_true(H5Awrite(object, type, values) >= 0);
    else
        assert_true(H5Dwrite(object, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    for (unsigned i = 0; values == references && i < 4; i++)
        assert_true(H5Rdestroy(&references[i]) >= 0);
}

/* In a dataset, and in an attribute of it. */
static void make_references(const kind *k, hid_t at, unsigned seed)
{
    hsize_t n = 4, chunk = 3, most = H5S_UNLIMITED;
    hid_t type = k->type(), space = H5Screate_simple(1, &n, k->layout == CHUNKED ? &most : NULL),
          dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hid_t dataset, attribute;

    if (k->layout == CHUNKED)
        assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
    dataset = H5Dcreate2(at, "x", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(dataset >= 0);
    put_references(at, dataset, type, seed);
    if (k->layout != CHUNKED) { /* H5Ocopy empties those of attributes, so natively made ones would be others */
        attribute = H5Acreate2(dataset, "references", type, space, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(attribute >= 0);
        put_references(at, attribute, type, seed + 1);
        assert_true(H5Aclose(attribute) >= 0);
    }
    assert_true(H5Dclose(dataset) >= 0);
    H5Pclose(dcpl);
    H5Sclose(space);
    H5Tclose(type);
}

static void change_references(const kind *k, hid_t at, unsigned seed)
{
    hid_t type = k->type(), dataset = H5Dopen2(at, "x", H5P_DEFAULT), attribute;

    put_references(at, dataset, type, seed + 2);
    if (k->layout != CHUNKED) {
        assert_true((attribute = H5Aopen(dataset, "references", H5P_DEFAULT)) >= 0);
        put_references(at, attribute, type, seed + 3);
        assert_true(H5Aclose(attribute) >= 0);
    }
    assert_true(H5Dclose(dataset) >= 0);
    H5Tclose(type);
}

/* ---- attributes ---- */

static hid_t attribute_owner(const kind *k, hid_t at)
{
    hid_t gcpl = H5Pcreate(H5P_GROUP_CREATE), owner;

    if (k->creation_order)
        assert_true(H5Pset_attr_creation_order(gcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0);
    if (k->dense)
        assert_true(H5Pset_attr_phase_change(gcpl, 2, 1) >= 0);
    owner = H5Lexists(at, "x", H5P_DEFAULT) > 0 ? H5Oopen(at, "x", H5P_DEFAULT)
                                                : H5Gcreate2(at, "x", H5P_DEFAULT, gcpl, H5P_DEFAULT);
    assert_true(owner >= 0);
    H5Pclose(gcpl);
    return owner;
}

static hid_t attribute_space(const kind *k)
{
    hsize_t n = k->elements;

    return k->layout == NULL_SPACE ? H5Screate(H5S_NULL)
           : n == 0                ? H5Screate(H5S_SCALAR)
                                   : H5Screate_simple(1, &n, NULL);
}

static void make_attributes(const kind *k, hid_t at, unsigned seed)
{
    hid_t owner = attribute_owner(k, at), type = plain_type(k), space = attribute_space(k);

    for (unsigned i = k->attributes; i-- > 0;) { /* not in the order of names */
        char name[20];
        hid_t attribute;

        snprintf(name, sizeof name, "a%u", i);
        if (H5Aexists(owner, name) > 0)
            continue;
        assert_true((attribute = H5Acreate2(owner, name, type, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        if (k->layout != NULL_SPACE)
            put_values(attribute, type, space, seed + i);
        assert_true(H5Aclose(attribute) >= 0);
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Oclose(owner);
}

static void change_attributes(const kind *k, hid_t at, unsigned seed)
{
    hid_t owner = H5Oopen(at, "x", H5P_DEFAULT), type = plain_type(k), space = attribute_space(k);

    for (unsigned i = 0; i < k->attributes; i += 3) {
        char name[20];
        hid_t attribute;

        snprintf(name, sizeof name, "a%u", i);
        assert_true((attribute = H5Aopen(owner, name, H5P_DEFAULT)) >= 0);
        put_values(attribute, type, space, seed + i);
        assert_true(H5Aclose(attribute) >= 0);
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Oclose(owner);
}

static void move_attribute(hid_t at)
{
    assert_true(H5Arename_by_name(at, "x", "a0", "renamed", H5P_DEFAULT) >= 0);
}

static void remove_attribute(hid_t at)
{
    assert_true(H5Adelete_by_name(at, "x", "renamed", H5P_DEFAULT) >= 0);
}

/* ---- groups ---- */

static void fill_group(const kind *k, hid_t group, unsigned from, unsigned to)
{
    (void)k;
    for (unsigned i = to; i-- > from;) {
        char name[40];
        hid_t member;

        snprintf(name, sizeof name, "member %u", i);
        assert_true((member = H5Gcreate2(group, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        if (i % 5 == 0)
            assert_true(H5Lcreate_soft(name, member, "soft", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Gclose(member) >= 0);
    }
}

static void make_group(const kind *k, hid_t at, unsigned seed)
{
    hid_t gcpl = H5Pcreate(H5P_GROUP_CREATE), group;

    if (k->creation_order)
        assert_true(H5Pset_link_creation_order(gcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0);
    if (k->dense)
        assert_true(H5Pset_link_phase_change(gcpl, 4, 2) >= 0);
    assert_true((group = H5Gcreate2(at, "x", H5P_DEFAULT, gcpl, H5P_DEFAULT)) >= 0);
    fill_group(k, group, 0, k->elements);
    put_attribute(group, "note", (int)seed);
    assert_true(H5Gclose(group) >= 0);
    H5Pclose(gcpl);
}

static void change_group(const kind *k, hid_t at, unsigned seed)
{
    hid_t group = H5Gopen2(at, "x", H5P_DEFAULT);

    if (k->elements > 1) {
        assert_true(H5Ldelete(group, "member 1", H5P_DEFAULT) >= 0);
        assert_true(H5Lmove(group, "member 0", group, "member zero", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    }
    fill_group(k, group, k->elements, k->elements + 3);
    put_attribute(group, "note", (int)seed);
    assert_true(H5Gclose(group) >= 0);
}

/* x/below/x is x, and x/self too. */
static void make_cycle(const kind *k, hid_t at, unsigned seed)
{
    hid_t group = H5Gcreate2(at, "x", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t below = H5Gcreate2(group, "below", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    (void)k;
    assert_true(H5Olink(group, below, "x", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Olink(group, group, "self", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    put_attribute(below, "note", (int)seed);
    assert_true(H5Gclose(below) >= 0 && H5Gclose(group) >= 0);
}

static void change_cycle(const kind *k, hid_t at, unsigned seed)
{
    hid_t below = H5Gopen2(at, "x/below/x/self/below", H5P_DEFAULT);

    (void)k;
    assert_true(below >= 0);
    put_attribute(below, "note", (int)seed);
    H5Gclose(H5Gcreate2(below, "further", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_true(H5Gclose(below) >= 0);
}

/* ---- named types ---- */

static void make_named_type(const kind *k, hid_t at, unsigned seed)
{
    hid_t type = k->type();

    assert_true(H5Tcommit2(at, "x", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    put_attribute(type, "note", (int)seed);
    assert_true(H5Tclose(type) >= 0);
}

static void change_note(const kind *k, hid_t at, unsigned seed)
{
    hid_t object = H5Oopen(at, "x", H5P_DEFAULT);

    (void)k;
    put_attribute(object, "note", (int)seed);
    assert_true(H5Oclose(object) >= 0);
}

/* A type that a dataset and an attribute use. */
static void make_shared_type(const kind *k, hid_t at, unsigned seed)
{
    hsize_t n = LENGTH, chunk = 9;
    hid_t type, space = H5Screate_simple(1, &n, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE);

    make_named_type(k, at, seed);
    assert_true((type = H5Topen2(at, "x", H5P_DEFAULT)) >= 0);
    assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
    for (int i = 0; i < 2; i++) {
        char name[40];
        hid_t dataset, attribute, one = H5Screate(H5S_SCALAR);

        snprintf(name, sizeof name, "user %d of %u", i, seed);
        assert_true((dataset = H5Dcreate2(at, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
        assert_true((attribute = H5Acreate2(dataset, "of the type", type, one, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        put_values(dataset, type, space, seed);
        put_values(attribute, type, one, seed);
        H5Sclose(one);
        assert_true(H5Aclose(attribute) >= 0 && H5Dclose(dataset) >= 0);
    }
    H5Pclose(dcpl);
    H5Sclose(space);
    H5Tclose(type);
}

/* A dataset, with an attribute, of a named type. */
static void make_typed_dataset(const kind *k, hid_t at, unsigned seed)
{
    hsize_t n = 2 * LENGTH, chunk = 9, most = H5S_UNLIMITED;
    hid_t type, space = H5Screate_simple(1, &n, &most), dcpl = H5Pcreate(H5P_DATASET_CREATE), dataset, attribute;
    hid_t one = H5Screate(H5S_SCALAR);

    if (H5Lexists(at, "t", H5P_DEFAULT) > 0)
        type = H5Topen2(at, "t", H5P_DEFAULT);
    else {
        type = k->type();
        assert_true(H5Tcommit2(at, "t", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    }
    assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
    assert_true((dataset = H5Dcreate2(at, "x", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    assert_true((attribute = H5Acreate2(dataset, "of the type", type, one, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    put_values(dataset, type, space, seed);
    put_values(attribute, type, one, seed);
    put_attribute(dataset, "note", (int)seed);
    assert_true(H5Aclose(attribute) >= 0 && H5Dclose(dataset) >= 0);
    H5Sclose(one);
    H5Pclose(dcpl);
    H5Sclose(space);
    H5Tclose(type);
}

static void change_typed_dataset(const kind *k, hid_t at, unsigned seed)
{
    hid_t dataset = H5Dopen2(at, "x", H5P_DEFAULT), type = H5Dget_type(dataset), space = H5Dget_space(dataset);

    (void)k;
    assert_true(H5Tcommitted(type) > 0);
    put_values(dataset, type, space, seed);
    put_attribute(dataset, "note", (int)seed);
    assert_true(H5Dclose(dataset) >= 0);
    H5Sclose(space);
    H5Tclose(type);
}

/* ---- links ---- */

/* What links lead to. */
static void make_destination(hid_t at, unsigned seed)
{
    H5Oclose(target(at, 1));
    H5Oclose(target(at, 2));
    put_attribute(at, "note", (int)seed);
}

static void put_soft(const kind *k, hid_t at, unsigned number)
{
    char value[100];

    snprintf(value, sizeof value,
             k->elements == 0   ? "target%u"
             : k->elements == 1 ? "/" MODEL_GROUP "/target%u"
                                : "nothing/%u",
             number);
    assert_true(H5Lcreate_soft(value, at, "x", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void make_soft(const kind *k, hid_t at, unsigned seed)
{
    make_destination(at, seed);
    put_soft(k, at, 1);
}

static void change_soft(const kind *k, hid_t at, unsigned seed)
{
    (void)seed;
    assert_true(H5Ldelete(at, "x", H5P_DEFAULT) >= 0);
    put_soft(k, at, 2);
}

static const char *linked_file(const kind *k)
{
    return k->elements == 0 ? MODEL_PLAIN : k->elements == 1 ? MODEL_LINKED : "test_model_missing.h5";
}

static void make_external(const kind *k, hid_t at, unsigned seed)
{
    (void)seed;
    assert_true(H5Lcreate_external(linked_file(k), "/target1", at, "x", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void change_external(const kind *k, hid_t at, unsigned seed)
{
    (void)seed;
    assert_true(H5Ldelete(at, "x", H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_external(linked_file(k), "target2", at, "x", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void make_user_defined(const kind *k, hid_t at, unsigned seed)
{
    (void)k;
    make_destination(at, seed);
    assert_true(H5Lcreate_ud(at, "x", by_name.id, "target1", 8, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void change_user_defined(const kind *k, hid_t at, unsigned seed)
{
    (void)k;
    (void)seed;
    assert_true(H5Ldelete(at, "x", H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_ud(at, "x", by_name.id, "target2", 8, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static hid_t traverse(const char *name, hid_t group, const void *value, size_t size, hid_t lapl, hid_t dxpl)
{
    (void)name;
    (void)lapl;
    (void)dxpl;
    return size == 0 ? H5I_INVALID_HID : H5Oopen(group, value, H5P_DEFAULT);
}

static ssize_t query(const char *name, const void *value, size_t size, void *buf, size_t room)
{
    (void)name;
    if (buf != NULL)
        memcpy(buf, value, size < room ? size : room);
    return (ssize_t)size;
}

static const H5L_class_t by_name = {.version = H5L_LINK_CLASS_T_VERS,
                                    .id = (H5L_type_t)(H5L_TYPE_UD_MIN + 11),
                                    .comment = "by name",
                                    .trav_func = traverse,
                                    .query_func = query};

static void copy_link(hid_t at)
{
    hid_t lcpl = intermediate();

    assert_true(H5Lcopy(at, "x", at, "copies/c", lcpl, H5P_DEFAULT) >= 0);
    assert_true(H5Lcopy(at, "x", at, "copy", lcpl, H5P_DEFAULT) >= 0);
    H5Pclose(lcpl);
}

/* Three links to one object: x, y/z and the other one. */
static void make_hard(const kind *k, hid_t at, unsigned seed)
{
    hid_t lcpl = intermediate();

    (void)k;
    H5Oclose(target(at, seed));
    make_destination(at, seed);
    for (int i = 0; i < 3; i++) {
        char from[20], to[40];

        snprintf(from, sizeof from, "target%u", seed);
        snprintf(to, sizeof to, i == 0 ? "x" : i == 1 ? "y%u/z" : "another %u", seed);
        assert_true(H5Lcreate_hard(at, from, at, to, lcpl, H5P_DEFAULT) >= 0);
    }
    H5Pclose(lcpl);
}

/* Written through one link, read through all. */
static void change_hard(const kind *k, hid_t at, unsigned seed)
{
    hid_t dataset = H5Dopen2(at, "y1/z", H5P_DEFAULT), space = H5Dget_space(dataset);

    (void)k;
    put_values(dataset, H5T_STD_I32LE, space, seed);
    put_attribute(dataset, "note", (int)seed);
    assert_true(H5Dclose(dataset) >= 0);
    H5Sclose(space);
}

/* The names that people and programs give. */
static const char *const odd_names[] = {"a@3",  "@",      "with space ",     ".hidden", "a.b",  "\xc3\xa4\xe2\x82\xac",
                                        "\n\t", "%41%2F", "_versioned_data", "-",       "a\\b", "\xff\xfe"};

static void make_odd_names(const kind *k, hid_t at, unsigned seed)
{
    hid_t group = H5Gcreate2(at, "x", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), lcpl = H5Pcreate(H5P_LINK_CREATE);
    char *longest = malloc(70001);

    (void)k;
    assert_true(H5Pset_char_encoding(lcpl, H5T_CSET_UTF8) >= 0);
    for (size_t i = 0; i < COUNT(odd_names); i++) {
        hid_t member = H5Gcreate2(group, odd_names[i], i % 2 == 0 ? lcpl : H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

        assert_true(member >= 0);
        put_attribute(member, odd_names[COUNT(odd_names) - 1 - i], (int)(seed + i));
        assert_true(H5Gclose(member) >= 0);
    }
    memset(longest, 'n', 500);
    longest[500] = '\0';
    assert_true(H5Lcreate_soft("-", group, longest, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    free(longest);
    assert_true(H5Gclose(group) >= 0);
    H5Pclose(lcpl);
}

static void change_odd_names(const kind *k, hid_t at, unsigned seed)
{
    hid_t group = H5Gopen2(at, "x", H5P_DEFAULT);

    (void)k;
    assert_true(H5Lmove(group, "a@3", group, "b@{now}", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Ldelete(group, "@", H5P_DEFAULT) >= 0);
    put_attribute(group, "\xc3\xa4@1", (int)seed);
    assert_true(H5Gclose(group) >= 0);
}

/* ---- properties of objects ---- */

static void make_comment(const kind *k, hid_t at, unsigned seed)
{
    hid_t group = H5Gcreate2(at, "x", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    (void)k;
    assert_true(H5Oset_comment(group, seed == 1 ? "a comment\nof two lines" : "another one") >= 0);
    assert_true(H5Gclose(group) >= 0);
}

static void change_comment(const kind *k, hid_t at, unsigned seed)
{
    (void)k;
    (void)seed;
    assert_true(H5Oset_comment_by_name(at, "x", "changed", H5P_DEFAULT) >= 0);
}

static void make_counted(const kind *k, hid_t at, unsigned seed)
{
    hid_t group = H5Gcreate2(at, "x", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    (void)k;
    put_attribute(group, "note", (int)seed);
    assert_true(H5Oincr_refcount(group) >= 0);
    assert_true(H5Gclose(group) >= 0);
}

static void change_counted(const kind *k, hid_t at, unsigned seed)
{
    hid_t group = H5Oopen(at, "x", H5P_DEFAULT);

    (void)k;
    put_attribute(group, "note", (int)seed);
    assert_true(H5Oincr_refcount(group) >= 0 && H5Oincr_refcount(group) >= 0 && H5Odecr_refcount(group) >= 0);
    assert_true(H5Gclose(group) >= 0);
}

/* ---- files ---- */

/* Something of everything in a group. */
static void make_bundle(const kind *k, hid_t at, unsigned seed)
{
    static const kind datasets[] = {{.layout = DEFLATED}, {.layout = CONTIGUOUS}, {.layout = TINY}};
    hid_t x = H5Gcreate2(at, "x", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    (void)k;
    for (size_t i = 0; i < COUNT(datasets); i++) {
        char name[20];
        hid_t group;

        snprintf(name, sizeof name, "%zu", i);
        assert_true((group = H5Gcreate2(x, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        make_dataset(&datasets[i], group, seed + (unsigned)i);
        assert_true(H5Lcreate_soft("x", group, "soft", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Gclose(group) >= 0);
    }
    put_attribute(x, "note", (int)seed);
    assert_true(H5Gclose(x) >= 0);
}

static void change_bundle(const kind *k, hid_t at, unsigned seed)
{
    static const kind datasets[] = {{.layout = DEFLATED}, {.layout = CONTIGUOUS}};

    (void)k;
    for (size_t i = 0; i < COUNT(datasets); i++) {
        char name[20];
        hid_t group;

        snprintf(name, sizeof name, "x/%zu", i);
        assert_true((group = H5Gopen2(at, name, H5P_DEFAULT)) >= 0);
        change_dataset(&datasets[i], group, seed + (unsigned)i);
        assert_true(H5Gclose(group) >= 0);
    }
}

static hid_t user_block(void)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);

    assert_true(H5Pset_userblock(fcpl, 1024) >= 0);
    return fcpl;
}

static hid_t paged(void)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);

    assert_true(H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_PAGE, true, 1) >= 0);
    assert_true(H5Pset_file_space_page_size(fcpl, 1024) >= 0);
    return fcpl;
}

static hid_t free_space_kept(void)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);

    assert_true(H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_FSM_AGGR, true, 8) >= 0);
    return fcpl;
}

static hid_t no_free_space(void)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);

    assert_true(H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_NONE, false, 1) >= 0);
    return fcpl;
}

static hid_t aggregated(void)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);

    assert_true(H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_AGGR, false, 1) >= 0);
    return fcpl;
}

static hid_t shared_messages(void)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);

    assert_true(H5Pset_shared_mesg_nindexes(fcpl, 2) >= 0);
    assert_true(H5Pset_shared_mesg_index(fcpl, 0, H5O_SHMESG_ATTR_FLAG, 10) >= 0);
    assert_true(H5Pset_shared_mesg_index(
                    fcpl, 1, H5O_SHMESG_DTYPE_FLAG | H5O_SHMESG_SDSPACE_FLAG | H5O_SHMESG_FILL_FLAG, 10) >= 0);
    return fcpl;
}

static hid_t short_addresses(void)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);

    assert_true(H5Pset_sizes(fcpl, 4, 4) >= 0);
    return fcpl;
}

static hid_t ordered_root(void)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);

    assert_true(H5Pset_link_creation_order(fcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0);
    assert_true(H5Pset_attr_creation_order(fcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0);
    return fcpl;
}

/* ---- the table ---- */

#define DATASET(...) {.family = "datasets", .make = make_dataset, .change = change_dataset, __VA_ARGS__}
#define ELSEWHERE(...)                                                                                                 \
    {.family = "datasets", .make = make_dataset, .change = change_data_elsewhere, .data_elsewhere = true, __VA_ARGS__}
#define ATTRIBUTE(...)                                                                                                 \
    {.family = "attributes",                                                                                           \
     .make = make_attributes,                                                                                          \
     .change = change_attributes,                                                                                      \
     .move = move_attribute,                                                                                           \
     .remove = remove_attribute,                                                                                       \
     __VA_ARGS__}
#define GROUP(...)      {.family = "groups", .make = make_group, .change = change_group, __VA_ARGS__}
#define REFERENCES(...) {.family = "types", .make = make_references, .change = change_references, __VA_ARGS__}
#define WHOLE_FILE(...) {.family = "files", .make = make_bundle, .change = change_bundle, __VA_ARGS__}

static hid_t native_sample(const char *name)
{
    for (size_t i = 0; i < sample_type_count; i++)
        if (strcmp(sample_types[i].name, name) == 0)
            return sample_types[i].make();
    assert_true(!"there is such a sample");
    return H5I_INVALID_HID;
}

static hid_t texts(void)
{
    return native_sample("text_utf8");
}

static hid_t sequences(void)
{
    return native_sample("sequence_of_numbers");
}

static hid_t compound(void)
{
    return native_sample("compound_with_sequences");
}

static hid_t enumerated(void)
{
    return native_sample("enumeration");
}

static const kind kinds[] = {
    DATASET(.name = "chunked", .layout = CHUNKED),
    DATASET(.name = "chunked, extendible", .layout = GROWING),
    DATASET(.name = "chunked, shuffle and deflate", .layout = DEFLATED),
    DATASET(.name = "chunked, fletcher32", .layout = CHECKSUMMED),
    DATASET(.name = "chunked, n-bit", .layout = NBIT),
    DATASET(.name = "chunked, allocated early", .layout = EARLY),
    DATASET(.name = "chunked, mostly fill value", .layout = SPARSE),
    DATASET(.name = "contiguous", .layout = CONTIGUOUS),
    DATASET(.name = "contiguous, allocated early", .layout = CONTIGUOUS_EARLY),
    DATASET(.name = "contiguous, at most 4 KiB", .layout = TINY),
    DATASET(.name = "compact", .layout = COMPACT),
    DATASET(.name = "scalar", .layout = SCALAR),
    DATASET(.name = "scalar string", .layout = SCALAR, .type = texts),
    DATASET(.name = "null dataspace", .layout = NULL_SPACE),
    DATASET(.name = "no element", .layout = EMPTY),
    DATASET(.name = "no element, extendible", .layout = EMPTY_GROWING),
    DATASET(.name = "anonymous, linked later", .layout = ANONYMOUS),
    DATASET(.name = "the user's virtual, same file", .layout = VIRTUAL, .stock_shows_head = true,
            .note =
                "The mappings are versioned; so are the sources, and through h5cow a version is read from its own. Without "
                "h5cow a version's virtual dataset shows the head's sources, for its mappings name them; with h5cow too where "
                "mappings lead to other files."),
    ELSEWHERE(
            .name = "the user's virtual, plain file", .layout = VIRTUAL_OTHER,
            .note =
                "The mappings are versioned. The data are in another file without history, and every version shows them "
                "as they are now."),
    ELSEWHERE(.name = "the user's virtual, file with history", .layout = VIRTUAL_COW,
              .note =
                  "The mappings are versioned. They name the other file's head, not a version of it: that file has a "
                  "history of its own, with other numbers."),
    ELSEWHERE(
            .name = "external storage", .layout = EXTERNAL,
            .note =
                "Passed through unversioned: the elements are bytes of another file, which HDF5 overwrites in place and "
                "which other programs may write. Name, place and everything else of the dataset are versioned."),

    REFERENCES(.name = "object reference of 1.8", .type = object_reference_1, .layout = CHUNKED,
               .native_cannot_copy = true),
    REFERENCES(.name = "region reference of 1.8", .type = region_reference_1, .layout = CHUNKED,
               .native_cannot_copy = true),
    REFERENCES(.name = "reference of 1.12", .type = reference_2, .layout = CHUNKED, .native_cannot_copy = true),
    REFERENCES(.name = "object reference of 1.8, not chunked", .type = object_reference_1, .layout = TINY),
    REFERENCES(.name = "region reference of 1.8, not chunked", .type = region_reference_1, .layout = TINY),
    REFERENCES(.name = "reference of 1.12, not chunked", .type = reference_2, .layout = TINY),

    ATTRIBUTE(.name = "one, compact", .attributes = 1),
    ATTRIBUTE(.name = "of many elements", .attributes = 2, .elements = 700),
    ATTRIBUTE(.name = "more than 64 KiB", .attributes = 2, .elements = 40000, .dense = true, .new_format = true),
    ATTRIBUTE(.name = "many, dense", .attributes = 40, .elements = 3),
    ATTRIBUTE(.name = "creation order", .attributes = 5, .creation_order = true),
    ATTRIBUTE(.name = "creation order, dense", .attributes = 30, .creation_order = true, .dense = true),
    ATTRIBUTE(.name = "strings of any length", .attributes = 12, .elements = 4, .type = texts),
    ATTRIBUTE(.name = "sequences", .attributes = 3, .elements = 20, .type = sequences),
    ATTRIBUTE(.name = "compound with sequences", .attributes = 3, .elements = 2, .type = compound),
    ATTRIBUTE(.name = "null dataspace", .attributes = 2, .layout = NULL_SPACE,
              .none = {[MODIFY] = "there is no element to write"}),

    GROUP(.name = "empty"),
    GROUP(.name = "compact", .elements = 4),
    GROUP(.name = "several", .elements = 13),
    GROUP(.name = "several, creation order", .elements = 13, .creation_order = true),
    GROUP(.name = "dense", .elements = 40),
    GROUP(.name = "dense by phase change", .elements = 12, .dense = true),
    GROUP(.name = "creation order", .elements = 6, .creation_order = true),
    GROUP(.name = "creation order, dense", .elements = 30, .creation_order = true, .dense = true),
    {.family = "groups", .name = "a cycle", .make = make_cycle, .change = change_cycle},
    {.family = "groups",
     .name = "members of any name",
     .make = make_odd_names,
     .change = change_odd_names,
     .note =
         "Names are kept byte by byte. In a version they are all marked as ASCII, as in copies by `H5Ocopy`: no call of "
         "HDF5 lets a connector set the mark."},

    {.family = "named types",
     .name = "enumeration",
     .make = make_named_type,
     .change = change_note,
     .type = enumerated},
    {.family = "named types", .name = "compound", .make = make_named_type, .change = change_note, .type = compound},
    {.family = "named types",
     .name = "shared by datasets and attributes",
     .make = make_shared_type,
     .change = change_note,
     .type = enumerated},

    {.family = "named types",
     .name = "of a dataset and its attribute",
     .make = make_typed_dataset,
     .change = change_typed_dataset,
     .type = enumerated},

    {.family = "links",
     .name = "several hard links to one object",
     .make = make_hard,
     .change = change_hard,
     .copy = copy_link},
    {.family = "links",
     .name = "soft, relative",
     .make = make_soft,
     .change = change_soft,
     .copy = copy_link,
     .elements = 0},
    {.family = "links",
     .name = "soft, absolute",
     .make = make_soft,
     .change = change_soft,
     .copy = copy_link,
     .elements = 1},
    {.family = "links",
     .name = "soft, dangling",
     .make = make_soft,
     .change = change_soft,
     .copy = copy_link,
     .elements = 2},
    {.family = "links",
     .name = "external, to a plain file",
     .make = make_external,
     .change = change_external,
     .copy = copy_link,
     .elements = 0,
     .note = "The link is versioned. What it leads to is the other file as it is now."},
    {.family = "links",
     .name = "external, to a file with history",
     .make = make_external,
     .change = change_external,
     .copy = copy_link,
     .elements = 1,
     .note = "The link is versioned. What it leads to is the other file's head, unless the link itself names a version "
             "(`FILE@3`)."},
    {.family = "links",
     .name = "external, to no file",
     .make = make_external,
     .change = change_external,
     .copy = copy_link,
     .elements = 2},
    {.family = "links",
     .name = "user-defined",
     .make = make_user_defined,
     .change = change_user_defined,
     .copy = copy_link},

    {.family = "objects", .name = "comment", .make = make_comment, .change = change_comment},
    {.family = "objects",
     .name = "reference count",
     .make = make_counted,
     .change = change_counted,
     .counts = true,
     .note =
         "In a version it is one for each link, and for a named type each use: what the program counted itself is not in "
         "versions."},

    WHOLE_FILE(.name = "user block", .fcpl = user_block,
               .note = "The block itself belongs to the program and has no history."),
    WHOLE_FILE(.name = "paged file space", .fcpl = paged),
    WHOLE_FILE(.name = "free space kept in the file", .fcpl = free_space_kept),
    WHOLE_FILE(.name = "aggregated file space", .fcpl = aggregated),
    WHOLE_FILE(.name = "no free space management", .fcpl = no_free_space),
    WHOLE_FILE(
            .name = "shared object header messages", .fcpl = shared_messages,
            .note =
                "Attributes, datatypes, fill values and filters are shared as the program asked; dataspaces are not, for "
                "HDF5 1.14.5 cannot resize a dataset whose dataspace is shared; the program is told what it asked for."),
    WHOLE_FILE(
            .name = "addresses of four bytes", .fcpl = short_addresses, .copy_in_file_only = true,
            .note =
                "Addresses are as short as the program asked; lengths have 8 bytes, for with fewer HDF5 1.14.5 cannot "
                "open resizable datasets of its newer format again. Copies in files with longer addresses are none "
                "that HDF5 1.14.5 can open, natively as well."),
    WHOLE_FILE(.name = "creation order in the root group", .fcpl = ordered_root),
};

/* Native HDF5 1.14.5 copies sequences inside of compounds and arrays in a buffer that is too small. */
static bool has_inner_sequences(hid_t type)
{
    H5T_class_t class = H5Tget_class(type);

    return (class == H5T_COMPOUND || class == H5T_ARRAY) &&
           (H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tdetect_class(type, H5T_STRING) > 0);
}

bool model_kind(size_t number, kind *k)
{
    const sample_type *sample = &sample_types[number - COUNT(kinds)];
    hid_t type;

    if (number < COUNT(kinds)) {
        *k = kinds[number];
        return true;
    }
    if (number - COUNT(kinds) >= sample_type_count)
        return false;
    type = sample->make();
    *k = (kind){.family = "types",
                .name = sample->name,
                .make = make_dataset,
                .change = change_dataset,
                .layout = CHUNKED,
                .type = sample->make,
                .native_cannot_copy = has_inner_sequences(type)};
    H5Tclose(type);
    return true;
}

/* ---- files that kinds refer to ---- */

void model_begin(void)
{
    for (int i = 0; i < 5; i++) {
        const char *name = i == 0 ? MODEL_PLAIN : i == 1 ? MODEL_LINKED : source_files[i - 2];
        hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, i == 1 || i == 2 ? H5P_DEFAULT : native_fapl);

        assert_true(file >= 0);
        if (i < 2)
            make_destination(file, 1);
        else {
            write_source(file, "upper", 1);
            write_source(file, "lower", 2);
        }
        assert_true(H5Fclose(file) >= 0);
    }
    assert_true(H5Lregister(&by_name) >= 0);
}

void model_end(void)
{
    assert_true(H5Lunregister(by_name.id) >= 0);
    remove(MODEL_PLAIN);
    remove(MODEL_LINKED);
    remove("test_model_cow.raw");
    remove("test_model_native.raw");
    for (size_t i = 0; i < COUNT(source_files); i++)
        remove(source_files[i]);
}
