/* How many links and uses an object has, and what H5Ocopy finds in a file: as if there were no history. What seeds of the
 * differential test that were new have found, each in a few calls. Run with HDF5_VOL_CONNECTOR=h5cow.
 */
#include "through.h"

#include <stdio.h>
#include <string.h>

#define COW   "test_counts_cow.h5"
#define OTHER "test_counts_other.h5"

static hid_t created(const char *name)
{
    hid_t file = (remove(name), H5Fcreate(name, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT));

    assert_true(file >= 0);
    return file;
}

static hid_t reopened(hid_t file)
{
    assert_true(H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
    return file;
}

static unsigned count_of(hid_t file, const char *path)
{
    H5O_info2_t info = {.rc = 1000};
    H5G_stat_t old;

    assert_true(H5Oget_info_by_name3(file, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0);
    assert_true(H5Gget_objinfo(file, path, true, &old) >= 0 && old.nlink == info.rc);
    return info.rc;
}

static unsigned own_count(hid_t object)
{
    H5O_info2_t info = {.rc = 1000};

    assert_true(H5Oget_info3(object, &info, H5O_INFO_BASIC) >= 0);
    return info.rc;
}

static void make_group(hid_t file, const char *path)
{
    hid_t group = H5Gcreate2(file, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    assert_true(group >= 0 && H5Gclose(group) >= 0);
}

static void make_dataset(hid_t file, const char *path, hid_t type, hsize_t n)
{
    hid_t space = H5Screate_simple(1, &n, NULL),
          set = H5Dcreate2(file, path, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    assert_true(set >= 0 && H5Dclose(set) >= 0 && H5Sclose(space) >= 0);
}

static void make_type(hid_t file, const char *path, hid_t like)
{
    hid_t type = H5Tcopy(like);

    assert_true(H5Tcommit2(file, path, type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0 && H5Tclose(type) >= 0);
}

static void make_attribute(hid_t object, const char *name, hid_t type)
{
    hid_t space = H5Screate(H5S_SCALAR), a = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);

    assert_true(a >= 0 && H5Aclose(a) >= 0 && H5Sclose(space) >= 0);
}

static void test_a_named_type_is_not_used_by_what_was_deleted(void **state)
{
    hid_t file = created(COW), type, group;
    (void)state;

    make_type(file, "type", H5T_NATIVE_INT);
    make_group(file, "group");
    assert_true((type = H5Topen2(file, "type", H5P_DEFAULT)) >= 0);
    make_dataset(file, "group/small", type, 5);
    make_dataset(file, "large", type, 5000);
    assert_true((group = H5Gopen2(file, "group", H5P_DEFAULT)) >= 0);
    make_attribute(group, "a", type);
    assert_true(H5Gclose(group) >= 0 && H5Tclose(type) >= 0);
    assert_true(count_of(file, "type") == 4);
    file = reopened(file);
    assert_true(H5Ldelete(file, "large", H5P_DEFAULT) >= 0 && count_of(file, "type") == 3);
    assert_true(H5Ldelete(file, "group", H5P_DEFAULT) >= 0 && count_of(file, "type") == 1);
    file = reopened(file);
    assert_true(count_of(file, "type") == 1);
    assert_true(H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    assert_true(count_of(file, "type") == 4 && H5Fclose(file) >= 0);
}

static void test_what_is_deleted_counts_until_it_is_closed(void **state)
{
    hid_t file = created(COW), type, set;
    (void)state;

    make_type(file, "type", H5T_NATIVE_INT);
    assert_true((type = H5Topen2(file, "type", H5P_DEFAULT)) >= 0);
    make_dataset(file, "large", type, 5000);
    assert_true(H5Tclose(type) >= 0);
    file = reopened(file);
    assert_true((set = H5Dopen2(file, "large", H5P_DEFAULT)) >= 0);
    assert_true(H5Ldelete(file, "large", H5P_DEFAULT) >= 0 && count_of(file, "type") == 2);
    assert_true(H5Dclose(set) >= 0 && count_of(file, "type") == 1);
    assert_true(H5Fclose(file) >= 0);
}

/* The history holds it until the next flush: then it is gone, with its use of the type. */
static void test_what_was_deleted_before_any_version_is_counted_out_once(void **state)
{
    hid_t file = created(COW), type;
    (void)state;

    make_type(file, "type", H5T_NATIVE_INT);
    assert_true((type = H5Topen2(file, "type", H5P_DEFAULT)) >= 0);
    make_group(file, "group");
    make_dataset(file, "group/large", type, 5000);
    assert_true(own_count(type) == 2);
    assert_true(H5Ldelete(file, "group", H5P_DEFAULT) >= 0 && own_count(type) == 1);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 && own_count(type) == 1);
    assert_true(H5Tclose(type) >= 0 && H5Fclose(file) >= 0);
}

/* A version knows it still, and what refers to it leads there. */
static void test_what_has_another_link_is_not_gone_with_a_group(void **state)
{
    hid_t file = created(COW), space = H5Screate(H5S_SCALAR), a, set;
    hobj_ref_t reference;
    (void)state;

    make_group(file, "group");
    make_dataset(file, "group/x", H5T_NATIVE_INT, 5000);
    assert_true(H5Lcreate_hard(file, "group/x", file, "kept", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Rcreate(&reference, file, "kept", H5R_OBJECT, -1) >= 0);
    assert_true((a = H5Acreate2(file, "to", H5T_STD_REF_OBJ, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0 &&
                H5Awrite(a, H5T_STD_REF_OBJ, &reference) >= 0 && H5Aclose(a) >= 0);
    file = reopened(file);
    assert_true(H5Ldelete(file, "group", H5P_DEFAULT) >= 0 && count_of(file, "kept") == 1);
    assert_true(H5Fclose(file) >= 0);
    for (int version = 1; version <= 2; version++) {
        char name[40];

        snprintf(name, sizeof name, COW "@%d", version);
        assert_true((file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
        assert_true((a = H5Aopen(file, "to", H5P_DEFAULT)) >= 0 && H5Aread(a, H5T_STD_REF_OBJ, &reference) >= 0);
        assert_true((set = H5Rdereference2(file, H5P_DEFAULT, H5R_OBJECT, &reference)) >= 0);
        assert_true(H5Dclose(set) >= 0 && H5Aclose(a) >= 0 && H5Fclose(file) >= 0);
    }
    assert_true(H5Sclose(space) >= 0);
}

static void test_versions_do_not_add_to_the_links_of_an_object(void **state)
{
    hid_t file = created(COW);
    char name[40];
    (void)state;

    make_group(file, "group");
    make_dataset(file, "group/once", H5T_NATIVE_INT, 5000);
    assert_true(H5Lcreate_hard(file, "group/once", file, "twice", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    make_dataset(file, "single", H5T_NATIVE_INT, 3);
    for (int i = 0; i < 5; i++) {
        file = reopened(file);
        snprintf(name, sizeof name, "new %d", i);
        make_group(file, name);
    }
    assert_true(H5Fclose(file) >= 0);
    for (int i = 1; i <= 6; i++) {
        snprintf(name, sizeof name, COW "@%d", i);
        assert_true((file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
        assert_true(count_of(file, "single") == 1 && count_of(file, "twice") == 2 && count_of(file, "group") == 1);
        assert_true(H5Fclose(file) >= 0);
    }
}

/* What it puts away is gone, and links to the root with it, even where nothing but a circle of links held them. */
static void test_h5fcreate_leaves_the_root_no_links_of_before(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        hid_t file = created(COW), group;

        make_group(file, "group");
        make_group(file, "group/inner");
        assert_true(H5Lcreate_hard(file, "group", file, "group/itself", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Lcreate_hard(file, "/", file, "group/top", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Lcreate_hard(file, "/", file, "group/inner/top", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        if (k >= 2) { /* the program itself counts some */
            assert_true((group = H5Gopen2(file, k == 2 ? "group/inner" : "/", H5P_DEFAULT)) >= 0);
            for (int more = 0; more < k - 1; more++)
                assert_true(H5Oincr_refcount(group) >= 0);
            assert_true(H5Gclose(group) >= 0);
        }
        if (k == 1) {
            file = reopened(file);
            assert_true(H5Ldelete(file, "group", H5P_DEFAULT) >= 0 && count_of(file, "/") == 3);
        }
        assert_true(H5Fclose(file) >= 0);
        assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        assert_true(count_of(file, "/") == 1);
        make_group(file, "new");
        for (int again = 0; again < 2; again++) {
            file = reopened(file);
            assert_true(count_of(file, "/") == 1 && count_of(file, "new") == 1);
            assert_true(H5Lcreate_hard(file, "/", file, "top", H5P_DEFAULT, H5P_DEFAULT) >= 0 &&
                        count_of(file, "/") == 2);
            assert_true(H5Ldelete(file, "top", H5P_DEFAULT) >= 0);
        }
        assert_true(H5Fclose(file) >= 0);
        assert_true((file = H5Fopen(COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
        assert_true(count_of(file, "group") == 2 && count_of(file, "group/inner") == 1 && count_of(file, "/") == 3);
        assert_true(H5Fclose(file) >= 0);
    }
}

static void test_a_deleted_group_holds_no_link(void **state)
{
    hid_t file = created(COW);
    (void)state;

    make_group(file, "group");
    make_dataset(file, "x", H5T_NATIVE_INT, 5000);
    assert_true(H5Lcreate_hard(file, "x", file, "group/x", H5P_DEFAULT, H5P_DEFAULT) >= 0 && count_of(file, "x") == 2);
    file = reopened(file);
    assert_true(H5Ldelete(file, "group", H5P_DEFAULT) >= 0 && count_of(file, "x") == 1);
    file = reopened(file);
    assert_true(count_of(file, "x") == 1 && H5Fclose(file) >= 0);
}

/* HDF5 leaves the groups that it has made on the way. */
static void test_groups_that_a_refused_call_left_are_in_the_next_version(void **state)
{
    hsize_t n = 5, chunk = 10;
    hid_t file = created(COW), lcpl = H5Pcreate(H5P_LINK_CREATE), dcpl = H5Pcreate(H5P_DATASET_CREATE),
          space = H5Screate_simple(1, &n, NULL), set = 0;
    (void)state;

    assert_true(H5Pset_create_intermediate_group(lcpl, 1) >= 0 && H5Pset_chunk(dcpl, 1, &chunk) >= 0);
    make_group(file, "group");
    file = reopened(file);
    H5E_BEGIN_TRY
    {
        set = H5Dcreate2(file, "/group/way/x", H5T_NATIVE_INT, space, lcpl, dcpl, H5P_DEFAULT);
    }
    H5E_END_TRY
    assert_true(set < 0);
    htri_t left = H5Lexists(file, "/group/way", H5P_DEFAULT);
    assert_true(H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(left > 0 ? COW "@2" : COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    assert_true(H5Lexists(file, "/group/way", H5P_DEFAULT) == left && H5Fclose(file) >= 0);
    H5Pclose(lcpl);
    H5Pclose(dcpl);
    H5Sclose(space);
}

/* After HDF5's own H5Ocopy of a group with many attributes, H5Dflush of a member fails, and all that comes after it. */
static void test_members_of_a_copied_group_can_be_flushed_and_committed(void **state)
{
    hid_t file = created(COW), group, set;
    char name[20];
    int values[10] = {0};
    (void)state;

    make_group(file, "group");
    make_dataset(file, "group/x", H5T_NATIVE_INT, 10);
    assert_true((group = H5Gopen2(file, "group", H5P_DEFAULT)) >= 0);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "a%d", i);
        make_attribute(group, name, H5T_NATIVE_INT);
    }
    assert_true(H5Gclose(group) >= 0);
    file = reopened(file);
    assert_true(H5Ocopy(file, "group", file, "copy", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true((set = H5Dopen2(file, "copy/x", H5P_DEFAULT)) >= 0);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dflush(set) >= 0 && H5Fclose(file) >= 0 && H5Dclose(set) >= 0);
    assert_true((file = H5Fopen(COW "@2", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    assert_true(H5Lexists(file, "copy/x", H5P_DEFAULT) > 0 && H5Fclose(file) >= 0);
}

/* A type that only an attribute of another type holds; that one goes after a flush, and comes back under another name. Each step before it is
 * flushed, or not. */
static void test_types_that_only_their_use_holds_go_with_it_and_come_back(void **state)
{
    (void)state;

    for (unsigned flushed = 0; flushed < 8; flushed++) {
        hid_t file = created(COW), type, user, a;

        during("flushes %u", flushed);
        make_type(file, "type", H5T_NATIVE_INT);
        make_type(file, "user", H5T_NATIVE_INT);
        assert_true((type = H5Topen2(file, "type", H5P_DEFAULT)) >= 0);
        assert_true((user = H5Topen2(file, "user", H5P_DEFAULT)) >= 0);
        make_attribute(user, "a", type);
        assert_true(H5Tclose(type) >= 0);
        assert_true((flushed & 1) == 0 || H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        assert_true(H5Ldelete(file, "type", H5P_DEFAULT) >= 0);
        assert_true((flushed & 2) == 0 || H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        assert_true(H5Ldelete(file, "user", H5P_DEFAULT) >= 0 && H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        for (char name[] = "a"; name[0] < 'q'; name[0]++)
            make_group(file, name); /* where something became free */
        assert_true((flushed & 4) == 0 || H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        assert_true(H5Olink(user, file, "again", H5P_DEFAULT, H5P_DEFAULT) >= 0 && H5Tclose(user) >= 0);
        assert_true(H5Fclose(file) >= 0 && (file = H5Fopen(COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
        assert_true((a = H5Aopen_by_name(file, "again", "a", H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        assert_true((type = H5Aget_type(a)) >= 0 && H5Tcommitted(type) > 0 && own_count(type) == 1);
        assert_true(H5Tclose(type) >= 0 && H5Aclose(a) >= 0 && H5Fclose(file) >= 0);
    }
}

/* A group without a link goes when it is closed, and what was moved into it: versions know that, so it is kept. */
static void test_what_is_moved_into_a_group_without_a_link_is_kept_for_versions(void **state)
{
    hid_t strong = H5Pcreate(H5P_FILE_ACCESS);
    (void)state;

    assert_true(H5Pset_fclose_degree(strong, H5F_CLOSE_STRONG) >= 0);
    for (int k = 0; k < 6; k++) {
        hid_t file = created(COW), group, removed;
        H5G_info_t kept;

        during("case %d", k);
        make_group(file, "known");
        make_dataset(file, "known/x", H5T_NATIVE_INT, 4000);
        make_dataset(file, "tiny", H5T_NATIVE_INT, 4);
        assert_true(H5Fclose(file) >= 0);
        assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, k < 4 ? H5P_DEFAULT : strong)) >= 0);
        if (k % 2 == 0)
            assert_true((group = H5Gcreate_anon(file, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        else {
            assert_true((group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
            assert_true(H5Ldelete(file, "g", H5P_DEFAULT) >= 0);
        }
        assert_true(H5Lcreate_hard(file, "known", group, "a", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Lcreate_hard(file, "tiny", group, "b", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Ldelete(file, "known", H5P_DEFAULT) >= 0 && H5Ldelete(file, "tiny", H5P_DEFAULT) >= 0);
        if (k < 2) {
            assert_true(H5Gclose(group) >= 0);
            for (char name[] = "a"; name[0] < 'q'; name[0]++)
                make_group(file, name);
            assert_true(H5Fclose(file) >= 0);
        } else
            assert_true(H5Fclose(file) >= 0 && (k >= 4 || H5Gclose(group) >= 0));
        assert_true((file = H5Fopen(COW, H5F_ACC_RDONLY, native_fapl)) >= 0);
        assert_true((removed = H5Gopen2(file, "_versioned_data/removed", H5P_DEFAULT)) >= 0);
        assert_true(H5Gget_info(removed, &kept) >= 0 && kept.nlinks == 2);
        assert_true(H5Gclose(removed) >= 0 && H5Fclose(file) >= 0);
        assert_true((file = H5Fopen(COW "@2", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
        assert_true(H5Lexists(file, "known", H5P_DEFAULT) == 0 && H5Lexists(file, "tiny", H5P_DEFAULT) == 0);
        assert_true(H5Fclose(file) >= 0);
    }
    H5Pclose(strong);
}

static bool opens(hid_t file, const H5O_token_t *token)
{
    hid_t object;

    H5E_BEGIN_TRY
    {
        object = H5Oopen_by_token(file, *token);
    }
    H5E_END_TRY
    return object >= 0 && H5Oclose(object) >= 0;
}

/* As natively: by token, which is what references are, in this session and in later commits of it. */
static void test_what_is_in_a_deleted_group_is_there_until_that_is_closed(void **state)
{
    (void)state;

    for (int k = 0; k < 2; k++) {
        hid_t file = created(COW), group;
        H5O_info2_t deep, shallow;

        during(k ? "with a history" : "native");
        if (!k)
            assert_true(H5Fclose(file) >= 0 && (file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, native_fapl)) >= 0);
        make_group(file, "g");
        make_group(file, "g/below");
        make_dataset(file, "g/below/x", H5T_NATIVE_INT, 4000);
        assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        assert_true(H5Oget_info_by_name3(file, "g/below/x", &deep, H5O_INFO_BASIC, H5P_DEFAULT) >= 0);
        assert_true(H5Oget_info_by_name3(file, "g/below", &shallow, H5O_INFO_BASIC, H5P_DEFAULT) >= 0);
        assert_true((group = H5Gopen2(file, "g", H5P_DEFAULT)) >= 0 && H5Ldelete(file, "g", H5P_DEFAULT) >= 0);
        for (int flushed = 0; flushed < 2; flushed++) {
            assert_true(opens(file, &deep.token) && opens(file, &shallow.token));
            assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        }
        assert_true(opens(file, &deep.token) && opens(file, &shallow.token));
        assert_true(H5Gclose(group) >= 0);
        if (k) /* natively it is not defined what is at their places */
            assert_true(!opens(file, &deep.token) && !opens(file, &shallow.token));
        assert_true(H5Fclose(file) >= 0);
    }
}

/* H5Fcreate counts the root anew: if the history had a link of it besides, all that it leads to would be the history's own. */
static void test_a_deleted_group_leaves_no_link_to_the_root(void **state)
{
    hid_t file = created(COW), removed;
    H5O_info2_t info;
    H5G_info_t kept;
    (void)state;

    make_group(file, "known");
    file = reopened(file);
    make_group(file, "g");
    assert_true(H5Lcreate_hard(file, "/", file, "g/top", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Ldelete(file, "g", H5P_DEFAULT) >= 0 && count_of(file, "/") == 1 && H5Fclose(file) >= 0);
    assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    make_group(file, "new");
    for (int again = 0; again < 2; again++) {
        assert_true(count_of(file, "/") == 1 && count_of(file, "new") == 1);
        assert_true(H5Oget_info_by_name3(file, "new", &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0);
        make_group(file, "other");
        assert_true(H5Ldelete(file, "other", H5P_DEFAULT) >= 0 && opens(file, &info.token));
        file = reopened(file);
    }
    assert_true(H5Fclose(file) >= 0 && (file = H5Fopen(COW, H5F_ACC_RDONLY, native_fapl)) >= 0);
    assert_true((removed = H5Gopen2(file, "_versioned_data/removed", H5P_DEFAULT)) >= 0);
    assert_true(H5Gget_info(removed, &kept) >= 0 && kept.nlinks == 1 && H5Gclose(removed) >= 0); /* "known" */
    assert_true(H5Fclose(file) >= 0);
}

/* The walk by the paths that were noted does not come to the type, that through the whole head comes to a user of it first. */
static void test_what_uses_a_named_type_that_changed_is_of_its_new_snapshot(void **state)
{
    hid_t file = created(COW), type, set, a;
    H5O_info2_t linked, used;
    (void)state;

    make_group(file, "e");
    make_group(file, "e/g");
    make_group(file, "e/z");
    make_type(file, "e/g/type", H5T_NATIVE_INT);
    make_dataset(file, "e/g/set", H5T_NATIVE_INT, 4);
    assert_true((type = H5Topen2(file, "e/g/type", H5P_DEFAULT)) >= 0);
    assert_true((set = H5Dopen2(file, "e/g/set", H5P_DEFAULT)) >= 0);
    make_attribute(set, "a", type);
    assert_true(H5Dclose(set) >= 0 && H5Tclose(type) >= 0);
    assert_true(H5Lcreate_hard(file, "e", file, "f", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    file = reopened(file);
    assert_true((type = H5Topen2(file, "f/g/type", H5P_DEFAULT)) >= 0);
    make_attribute(type, "x", H5T_NATIVE_INT);
    assert_true(H5Tclose(type) >= 0 && H5Ldelete(file, "e/z", H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(file) >= 0 && (file = H5Fopen(COW "@2", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    assert_true(H5Oget_info_by_name3(file, "e/g/type", &linked, H5O_INFO_BASIC, H5P_DEFAULT) >= 0);
    assert_true((a = H5Aopen_by_name(file, "e/g/set", "a", H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true((type = H5Aget_type(a)) >= 0 && H5Oget_info3(type, &used, H5O_INFO_ALL) >= 0 && used.num_attrs == 1);
    assert_memory_equal(&used.token, &linked.token, sizeof used.token);
    assert_true(own_count(type) == 2);
    assert_true(H5Tclose(type) >= 0 && H5Aclose(a) >= 0 && H5Fclose(file) >= 0);
}

static hid_t merging(void)
{
    hid_t list = H5Pcreate(H5P_OBJECT_COPY);

    assert_true(H5Pset_copy_object(list, H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG) >= 0);
    return list;
}

static bool same_object(hid_t file, const char *a, const char *b)
{
    H5O_info2_t info[2] = {{.rc = 0}};

    assert_true(H5Oget_info_by_name3(file, a, &info[0], H5O_INFO_BASIC, H5P_DEFAULT) >= 0);
    assert_true(H5Oget_info_by_name3(file, b, &info[1], H5O_INFO_BASIC, H5P_DEFAULT) >= 0);
    return memcmp(&info[0].token, &info[1].token, sizeof info[0].token) == 0;
}

static void test_copies_merge_with_named_types_of_the_head(void **state)
{
    hid_t file = created(COW), other = created(OTHER), list = merging(), type, text = H5Tcopy(H5T_C_S1);
    (void)state;

    assert_true(H5Tset_size(text, H5T_VARIABLE) >= 0);
    make_type(file, "z", H5T_NATIVE_INT);
    make_type(file, "text", text);
    make_type(other, "like z", H5T_NATIVE_INT);
    make_type(other, "like text", text);
    make_type(other, "alone", H5T_NATIVE_DOUBLE);
    assert_true((type = H5Topen2(other, "like z", H5P_DEFAULT)) >= 0);
    make_dataset(other, "x", type, 5000);
    assert_true(H5Tclose(type) >= 0);
    file = reopened(file);
    assert_true(H5Ocopy(other, "x", file, "x", list, H5P_DEFAULT) >= 0 && count_of(file, "z") == 2);
    assert_true(H5Ocopy(other, "like z", file, "again", list, H5P_DEFAULT) >= 0 && same_object(file, "z", "again"));
    assert_true(H5Ocopy(other, "like text", file, "text too", list, H5P_DEFAULT) >= 0 &&
                same_object(file, "text", "text too"));
    assert_true(H5Ocopy(other, "alone", file, "alone", list, H5P_DEFAULT) >= 0 && count_of(file, "alone") == 1);
    assert_true(H5Ocopy(file, "z", file, "third", list, H5P_DEFAULT) >= 0 && same_object(file, "z", "third"));
    assert_true(H5Fclose(file) >= 0 && H5Fclose(other) >= 0 && H5Pclose(list) >= 0 && H5Tclose(text) >= 0);
}

static H5O_mcdt_search_ret_t stop_at_once(void *asked)
{
    ++*(int *)asked;
    return H5O_MCDT_SEARCH_STOP;
}

static void test_types_to_merge_with_are_those_that_the_program_suggests(void **state)
{
    hid_t file = created(COW), other = created(OTHER), list = merging();
    int asked = 0;
    (void)state;

    make_type(file, "first", H5T_NATIVE_INT);
    make_group(file, "group");
    make_type(file, "group/second", H5T_NATIVE_INT);
    make_type(other, "int", H5T_NATIVE_INT);
    make_type(other, "float", H5T_NATIVE_FLOAT);
    assert_true(H5Padd_merge_committed_dtype_path(list, "/nowhere") >= 0);
    assert_true(H5Padd_merge_committed_dtype_path(list, "/group/second") >= 0);
    assert_true(H5Pset_mcdt_search_cb(list, stop_at_once, &asked) >= 0);
    assert_true(H5Ocopy(other, "int", file, "int", list, H5P_DEFAULT) >= 0);
    assert_true(same_object(file, "int", "group/second") && asked == 0);
    assert_true(H5Ocopy(other, "float", file, "float", list, H5P_DEFAULT) >= 0 && asked == 1);
    assert_true(H5Fclose(file) >= 0 && H5Fclose(other) >= 0 && H5Pclose(list) >= 0);
}

static void test_a_copied_root_has_no_history_whatever_the_flags(void **state)
{
    hid_t file = created(COW), other = created(OTHER), list = merging(), type;
    H5G_info_t info = {0};
    (void)state;

    make_type(file, "type", H5T_NATIVE_INT);
    make_dataset(file, "x", H5T_NATIVE_INT, 5000);
    file = reopened(file);
    make_type(file, "late", H5T_NATIVE_INT);
    assert_true((type = H5Topen2(file, "type", H5P_DEFAULT)) >= 0);
    make_dataset(file, "typed", type, 5000);
    assert_true(H5Tclose(type) >= 0 && H5Lcreate_soft("/", file, "to all", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    file = reopened(file);
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "all" : "all again";
        assert_true(H5Ocopy(file, i == 0 ? "/" : "to all", other, name, list, H5P_DEFAULT) >= 0);
        assert_true(H5Gget_info_by_name(other, name, &info, H5P_DEFAULT) >= 0 && info.nlinks == 5);
    }
    assert_true(same_object(other, "all/type", "all/late") && same_object(other, "all/type", "all again/late"));
    assert_true(count_of(other, "all/type") == 6);
    assert_true(H5Fclose(file) >= 0 && H5Fclose(other) >= 0 && H5Pclose(list) >= 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_named_type_is_not_used_by_what_was_deleted),
        cmocka_unit_test(test_what_is_deleted_counts_until_it_is_closed),
        cmocka_unit_test(test_what_was_deleted_before_any_version_is_counted_out_once),
        cmocka_unit_test(test_what_has_another_link_is_not_gone_with_a_group),
        cmocka_unit_test(test_versions_do_not_add_to_the_links_of_an_object),
        cmocka_unit_test(test_h5fcreate_leaves_the_root_no_links_of_before),
        cmocka_unit_test(test_a_deleted_group_holds_no_link),
        cmocka_unit_test(test_groups_that_a_refused_call_left_are_in_the_next_version),
        cmocka_unit_test(test_members_of_a_copied_group_can_be_flushed_and_committed),
        cmocka_unit_test(test_types_that_only_their_use_holds_go_with_it_and_come_back),
        cmocka_unit_test(test_what_is_moved_into_a_group_without_a_link_is_kept_for_versions),
        cmocka_unit_test(test_what_is_in_a_deleted_group_is_there_until_that_is_closed),
        cmocka_unit_test(test_a_deleted_group_leaves_no_link_to_the_root),
        cmocka_unit_test(test_what_uses_a_named_type_that_changed_is_of_its_new_snapshot),
        cmocka_unit_test(test_copies_merge_with_named_types_of_the_head),
        cmocka_unit_test(test_types_to_merge_with_are_those_that_the_program_suggests),
        cmocka_unit_test(test_a_copied_root_has_no_history_whatever_the_flags),
    };
    int status = test_main(tests, argc, argv, through_begin, through_end);

    remove(COW);
    remove(OTHER);
    return status;
}
