/* What a session costs does not grow with what it leaves alone: each program runs in a file with few objects beside those that it
 * changes, and in one with many, and the connector asks HDF5 as often in both.
 */
#include "harness.h"
#include "instead.h"
#include "with_connector.h"

#include <stdlib.h>

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <hdf5.h>

#include <stdio.h>

#define FILE_NAME "test_growth.h5"
#define FEW       10
#define MANY      400
#define TABLES    5 /* that HDF5 may have to open, where their rows begin a new chunk: here or there */

static long asked;

INSTEAD(herr_t, H5VLobject_get,
        (void *object, const H5VL_loc_params_t *loc, hid_t connector, H5VL_object_get_args_t *args, hid_t dxpl,
         void **req))
{
    asked++;
    return real_H5VLobject_get(object, loc, connector, args, dxpl, req);
}

INSTEAD(herr_t, H5VLlink_get,
        (void *object, const H5VL_loc_params_t *loc, hid_t connector, H5VL_link_get_args_t *args, hid_t dxpl,
         void **req))
{
    asked++;
    return real_H5VLlink_get(object, loc, connector, args, dxpl, req);
}

INSTEAD(void *, H5VLobject_open,
        (void *object, const H5VL_loc_params_t *loc, hid_t connector, H5I_type_t *type, hid_t dxpl, void **req))
{
    asked++;
    return real_H5VLobject_open(object, loc, connector, type, dxpl, req);
}

/* ---- files ---- */

static void make_group(hid_t file, const char *name)
{
    hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    assert_true(group >= 0 && H5Gclose(group) >= 0);
}

static void make_dataset(hid_t file, const char *name, int first)
{
    hsize_t n = 1000, chunk = 500;
    int values[1000];
    hid_t space = H5Screate_simple(1, &n, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE), set;

    for (int i = 0; i < 1000; i++)
        values[i] = first + i;
    assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
    set = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(set >= 0 && H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dclose(set) >= 0 && H5Pclose(dcpl) >= 0 && H5Sclose(space) >= 0);
}

static void make_datasets(hid_t file, const char *group, int n)
{
    char name[64];

    make_group(file, group);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s/%d", group, i);
        make_dataset(file, name, i);
    }
}

static void make_file(int beside, hid_t fapl)
{
    hid_t file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);

    assert_true(file >= 0);
    make_datasets(file, "work", 6);
    make_datasets(file, "work/below", 3);
    make_datasets(file, "more", 2);
    make_datasets(file, "beside", beside);
    assert_true(H5Fclose(file) >= 0);
}

/* ---- sessions ---- */

static void set_value(hid_t file, const char *name, int value)
{
    hsize_t at = 3, one = 1;
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set), point = H5Screate_simple(1, &one, NULL);

    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &one, NULL) >= 0);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT, point, space, H5P_DEFAULT, &value) >= 0);
    assert_true(H5Sclose(point) >= 0 && H5Sclose(space) >= 0 && H5Dclose(set) >= 0);
}

static void change(hid_t file, const char *name)
{
    set_value(file, name, -1);
}

static void change_one(hid_t file)
{
    change(file, "work/0");
}

static void delete_one(hid_t file)
{
    assert_true(H5Ldelete(file, "work/0", H5P_DEFAULT) >= 0);
}

static void delete_group(hid_t file)
{
    assert_true(H5Ldelete(file, "work/below", H5P_DEFAULT) >= 0);
}

/* What h5py programs do to give a dataset another shape. */
static void change_and_replace(hid_t file)
{
    change(file, "work/0");
    delete_one(file);
    make_dataset(file, "work/0", 77);
}

static void create_and_delete(hid_t file)
{
    make_dataset(file, "work/temporary", 78);
    assert_true(H5Ldelete(file, "work/temporary", H5P_DEFAULT) >= 0);
    change(file, "work/0");
}

static void create_and_delete_group(hid_t file)
{
    make_datasets(file, "temporary", 3);
    assert_true(H5Ldelete(file, "temporary", H5P_DEFAULT) >= 0);
    change(file, "work/0");
}

/* A type has as many links as uses. */
static void create_named_type(hid_t file)
{
    hid_t type = H5Tcopy(H5T_NATIVE_INT), space = H5Screate(H5S_SCALAR), set;

    assert_true(H5Tcommit2(file, "more/type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    set = H5Dcreate2(file, "more/of_type", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(set >= 0 && H5Dclose(set) >= 0 && H5Sclose(space) >= 0 && H5Tclose(type) >= 0);
}

static void move_one(hid_t file)
{
    assert_true(H5Lmove(file, "work/0", file, "more/moved", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void link_one(hid_t file)
{
    assert_true(H5Lcreate_hard(file, "work/0", file, "more/linked", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void copy_link(hid_t file)
{
    assert_true(H5Lcopy(file, "work/0", file, "more/linked", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void copy_one(hid_t file)
{
    assert_true(H5Ocopy(file, "work/0", file, "more/copied", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void copy_group(hid_t file)
{
    assert_true(H5Ocopy(file, "work", file, "more/copied", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static long questions(int beside, void (*session)(hid_t file), hid_t fapl)
{
    hid_t file;

    make_file(beside, fapl);
    asked = 0;
    assert_true((file = H5Fopen(FILE_NAME, H5F_ACC_RDWR, fapl)) >= 0);
    session(file);
    assert_true(H5Fclose(file) >= 0);
    return asked;
}

static void test_objects_beside(void **state)
{
    static const struct {
        const char *name;
        void (*session)(hid_t file);
    } sessions[] = {
        {"change one", change_one},
        {"delete one", delete_one},
        {"delete a group", delete_group},
        {"change and replace", change_and_replace},
        {"create and delete", create_and_delete},
        {"create and delete a group", create_and_delete_group},
        {"create a named type", create_named_type},
        {"move one", move_one},
        {"link one", link_one},
        {"copy a link", copy_link},
        {"copy one", copy_one},
        {"copy a group", copy_group},
    };
    hid_t fapl = connector_fapl("sync=off");
    int failed = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(sessions); i++) {
        long few = questions(FEW, sessions[i].session, fapl), many = questions(MANY, sessions[i].session, fapl);

        if (labs(few - many) > TABLES || few == 0) {
            print_error("%s: HDF5 is asked %ld times beside %d datasets, %ld times beside %d\n", sessions[i].name, few,
                        FEW, many, MANY);
            failed++;
        }
    }
    assert_int_equal(failed, 0);
    assert_true(H5Pclose(fapl) >= 0);
    remove(FILE_NAME);
}

/* That file, and open. */
static hid_t made(int beside, hid_t fapl)
{
    hid_t file;

    make_file(beside, fapl);
    assert_true((file = H5Fopen(FILE_NAME, H5F_ACC_RDWR, fapl)) >= 0);
    return file;
}

/* H5DSattach_scale asks for the object each time, so programs of netCDF do. */
static void test_objects_that_were_deleted(void **state)
{
    const int beside[] = {FEW, MANY};
    hid_t fapl = connector_fapl("sync=off");
    long times[2];
    (void)state;

    for (int i = 0; i < 2; i++) {
        hid_t file, set, space = H5Screate(H5S_SCALAR);
        char name[40];

        file = made(beside[i], fapl);
        for (int k = 0; k < beside[i]; k++) {
            snprintf(name, sizeof name, "beside/%d", k);
            assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
        }
        assert_true((set = H5Dopen2(file, "work/1", H5P_DEFAULT)) >= 0);
        for (int k = -1; k < 5; k++) {
            H5O_info2_t info;
            hid_t a;

            snprintf(name, sizeof name, "a%d", k);
            assert_true((a = H5Acreate2(set, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0 &&
                        H5Awrite(a, H5T_NATIVE_INT, &k) >= 0 && H5Aclose(a) >= 0);
            assert_true(H5Oget_info3(set, &info, H5O_INFO_BASIC) >= 0 && info.rc == 1);
            asked = k < 0 ? 0 : asked; /* the first counts what was deleted */
        }
        times[i] = asked;
        assert_true(H5Dclose(set) >= 0 && H5Sclose(space) >= 0 && H5Fclose(file) >= 0);
    }
    assert_int_equal(times[0], times[1]);
    assert_true(H5Pclose(fapl) >= 0);
    remove(FILE_NAME);
}

static unsigned links_of(hid_t object)
{
    H5O_info2_t info;

    assert_true(H5Oget_info3(object, &info, H5O_INFO_BASIC) >= 0);
    return info.rc;
}

/* What was deleted by earlier sessions does not count: of a program that makes its file anew each time that is all that there ever was. */
static void test_objects_that_were_deleted_before(void **state)
{
    const int beside[] = {FEW, MANY};
    hid_t fapl = connector_fapl("sync=off");
    (void)state;

    for (int how = 0; how < 4;
         how++) { /* 0: reading; 1: writing; 2: with something deleted; 3: with something new as well */
        long times[2];

        for (int i = 0; i < 2; i++) {
            hid_t file = made(beside[i], fapl), set, group;
            char name[40];

            for (int k = 0; k < beside[i]; k++) {
                snprintf(name, sizeof name, "beside/%d", k);
                assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
            }
            assert_true(H5Fclose(file) >= 0);
            assert_true((file = H5Fopen(FILE_NAME, how == 0 ? H5F_ACC_RDONLY : H5F_ACC_RDWR, fapl)) >= 0);
            if (how >= 2)
                delete_one(file);
            if (how == 3)
                make_dataset(file, "new", 9);
            asked = 0;
            set = H5Dopen2(file, how == 3 ? "new" : "work/1", H5P_DEFAULT);
            group = H5Gopen2(file, "more", H5P_DEFAULT);
            assert_int_equal(links_of(set), 1);
            assert_int_equal(links_of(group), 1);
            times[i] = asked;
            assert_true(H5Dclose(set) >= 0 && H5Gclose(group) >= 0 && H5Fclose(file) >= 0);
        }
        during("how %d", how);
        assert_true(labs(times[0] - times[1]) <= TABLES);
    }
    assert_true(H5Pclose(fapl) >= 0);
    remove(FILE_NAME);
}

static hobj_ref_t reference_to(hid_t file, const char *name)
{
    hobj_ref_t reference;

    assert_true(H5Rcreate(&reference, file, name, H5R_OBJECT, H5I_INVALID_HID) >= 0);
    return reference;
}

/* Questions of the first dereference after opening; THERE: is there an object? */
static long first_dereference(hid_t file, const hobj_ref_t *reference, bool there)
{
    hid_t object;

    asked = 0;
    H5E_BEGIN_TRY
    {
        object = H5Rdereference2(file, H5P_DEFAULT, H5R_OBJECT, reference);
    }
    H5E_END_TRY
    assert_true((object >= 0) == there && (object < 0 || H5Oclose(object) >= 0));
    return asked;
}

/* Whether a reference leads to what was deleted does not take going through all that ever was. */
static void test_references_where_much_was_deleted(void **state)
{
    const int beside[] = {FEW, MANY};
    hid_t fapl = connector_fapl("sync=off");
    (void)state;

    for (int how = 0; how < 5; how++) { /* 0: reading; 1: writing; 2: what is new; 3, 4: what was deleted before */
        long times[2];

        for (int i = 0; i < 2; i++) {
            hid_t file = made(beside[i], fapl);
            hobj_ref_t reference = reference_to(file, how < 3 ? "work/1" : "beside/1");
            char name[40];

            for (int k = 0; k < beside[i]; k++) {
                snprintf(name, sizeof name, "beside/%d", k);
                assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
            }
            assert_true(H5Fclose(file) >= 0);
            file = H5Fopen(FILE_NAME, how == 0 || how == 3 ? H5F_ACC_RDONLY : H5F_ACC_RDWR, fapl);
            assert_true(file >= 0);
            if (how == 2) {
                make_dataset(file, "new", 9);
                reference = reference_to(file, "new");
            }
            times[i] = first_dereference(file, &reference, how < 3);
            assert_true(H5Fclose(file) >= 0);
        }
        during("how %d: %ld and %ld questions", how, times[0], times[1]);
        assert_true(labs(times[0] - times[1]) <= TABLES);
    }
    assert_true(H5Pclose(fapl) >= 0);
    remove(FILE_NAME);
}

/* Nor what earlier versions had, of a program that makes its file anew each time, or changes it. */
static void test_references_where_there_are_many_versions(void **state)
{
    const int versions[] = {4, 40};
    hid_t fapl = connector_fapl("sync=off");
    (void)state;

    for (int how = 0; how < 4; how++) { /* 0, 1: made anew; 2, 3: changed; then 0, 2: read; 1, 3: written */
        long times[2];

        for (int i = 0; i < 2; i++) {
            hobj_ref_t reference;
            hid_t file;

            for (int k = 0; k < versions[i]; k++) {
                if (how < 2 || k == 0)
                    make_file(2, fapl);
                else {
                    assert_true((file = H5Fopen(FILE_NAME, H5F_ACC_RDWR, fapl)) >= 0);
                    set_value(file, "work/1", k);
                    assert_true(H5Fclose(file) >= 0);
                }
            }
            assert_true((file = H5Fopen(FILE_NAME, how % 2 ? H5F_ACC_RDWR : H5F_ACC_RDONLY, fapl)) >= 0);
            reference = reference_to(file, "work/1");
            times[i] = first_dereference(file, &reference, true);
            assert_true(H5Fclose(file) >= 0 && remove(FILE_NAME) == 0);
        }
        during("how %d: %ld and %ld questions", how, times[0], times[1]);
        assert_true(labs(times[0] - times[1]) <= TABLES);
    }
    assert_true(H5Pclose(fapl) >= 0);
}

/* What is open is looked at when the first is asked about, and when what was deleted is closed. */
static void test_a_deleted_object_that_is_open(void **state)
{
    const int beside[] = {FEW, MANY};
    hid_t fapl = connector_fapl("sync=off"), open[MANY], type;
    long times[2];
    (void)state;

    for (int i = 0; i < 2; i++) {
        hid_t file, gone, space = H5Screate(H5S_SCALAR);
        char name[40];

        file = made(beside[i], fapl);
        type = H5Tcopy(H5T_NATIVE_INT);
        assert_true(H5Tcommit2(file, "type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
        gone = H5Dcreate2(file, "of the type", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(gone >= 0 && H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 && links_of(type) == 2);
        for (int k = 0; k < beside[i]; k++) {
            snprintf(name, sizeof name, "beside/%d", k);
            assert_true((open[k] = H5Dopen2(file, name, H5P_DEFAULT)) >= 0);
        }
        assert_true(H5Ldelete(file, "of the type", H5P_DEFAULT) >= 0 && links_of(gone) == 0);
        asked = 0;
        for (int k = 0; k < FEW; k++)
            assert_true(links_of(open[k]) == 1 && links_of(type) == 2);
        times[i] = asked;
        assert_true(H5Dclose(gone) >= 0 && links_of(type) == 1);
        for (int k = 0; k < beside[i]; k++)
            assert_true(H5Dclose(open[k]) >= 0);
        assert_true(H5Tclose(type) >= 0 && H5Sclose(space) >= 0 && H5Fclose(file) >= 0);
    }
    assert_int_equal(times[0], times[1]);
    assert_true(H5Pclose(fapl) >= 0);
    remove(FILE_NAME);
}

static int value_of(hid_t file, const char *name)
{
    int values[1000];
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);

    assert_true(set >= 0 && H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 &&
                H5Dclose(set) >= 0);
    return values[3];
}

/* As NeXus files have them. Where the links are is found out once; each flush here is a version. */
static void test_objects_with_several_links(void **state)
{
    static const char *const second[] = {"more/linked", "more/linked", "work/below/moved", "work/below/moved"};
    const int beside[] = {FEW, MANY};
    hid_t fapl = connector_fapl("sync=off;commit=flush"), file;
    long times[2];
    (void)state;

    for (int i = 0; i < 2; i++) {
        file = made(beside[i], fapl);
        link_one(file);
        assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        for (int k = 0; k < 4; k++) {
            if (k == 2)
                assert_true(H5Lmove(file, "more/linked", file, second[2], H5P_DEFAULT, H5P_DEFAULT) >= 0);
            set_value(file, k % 2 == 0 ? "work/0" : second[k], -k);
            asked = 0;
            assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
            if (k == 1)
                times[i] = asked;
        }
        assert_true(H5Fclose(file) >= 0);
        for (int k = 0; k < 4; k++) {
            char name[40];

            snprintf(name, sizeof name, FILE_NAME "@%d", 3 + k); /* 1: as it was made, 2: the link */
            assert_true((file = H5Fopen(name, H5F_ACC_RDONLY, fapl)) >= 0);
            assert_int_equal(value_of(file, "work/0"), -k);
            assert_int_equal(value_of(file, second[k]), -k);
            assert_true(H5Lexists(file, second[k < 2 ? 2 : 0], H5P_DEFAULT) == 0 && H5Fclose(file) >= 0);
        }
    }
    assert_int_equal(times[0], times[1]);
    assert_true(H5Pclose(fapl) >= 0);
    remove(FILE_NAME);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_beside),
        cmocka_unit_test(test_objects_that_were_deleted),
        cmocka_unit_test(test_objects_that_were_deleted_before),
        cmocka_unit_test(test_references_where_much_was_deleted),
        cmocka_unit_test(test_references_where_there_are_many_versions),
        cmocka_unit_test(test_a_deleted_object_that_is_open),
        cmocka_unit_test(test_objects_with_several_links),
    };

    return test_main(tests, argc, argv, NULL, NULL);
}
