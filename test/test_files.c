/* What concerns a whole file or a whole group: groups with very many links, mounts, images, files opened again, drivers,
 * properties of files, object times. The table of kinds and operations is test_model.c. Run with
 * HDF5_VOL_CONNECTOR=h5cow.
 */
#include "through.h"
#include "whole.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define COW      "test_files_cow.h5"
#define NATIVE   "test_files_native.h5"
#define OTHER    "test_files_other.h5"
#define VERSIONS "/_versioned_data/versions"

/* ---- very many links ---- */

/* Absolute soft links would be made anew in every version, as docs/format.md says; these are relative, or hard. */

static void add_links(hid_t file, unsigned from, unsigned to)
{
    hid_t group = H5Gopen2(file, "many", H5P_DEFAULT);

    for (unsigned i = from; i < to; i++) {
        char name[40], value[40];
        herr_t status;

        snprintf(name, sizeof name, "link %u", i);
        snprintf(value, sizeof value, "/objects/%u", i % 10);
        status = i % 2 == 0 ? H5Lcreate_soft("link 1", group, name, H5P_DEFAULT, H5P_DEFAULT)
                            : H5Lcreate_hard(file, value, group, name, H5P_DEFAULT, H5P_DEFAULT);
        if (status < 0)
            assert_true(status >= 0);
    }
    assert_true(H5Gclose(group) >= 0);
}

static herr_t count_link(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    unsigned *counts = context, number;

    (void)group;
    counts[0]++;
    counts[1] += sscanf(name, "link %u", &number) == 1 && (info->type == H5L_TYPE_HARD) == (number % 2 == 1);
    return 0;
}

static void many_links_there(const char *name, unsigned expected)
{
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT), object;
    unsigned counts[2] = {0, 0};
    char last[60];
    H5G_info_t info = {0};
    H5O_info2_t of;

    assert_true(file >= 0);
    assert_true(H5Gget_info_by_name(file, "many", &info, H5P_DEFAULT) >= 0 && info.nlinks == expected);
    assert_true(H5Literate_by_name2(file, "many", H5_INDEX_NAME, H5_ITER_INC, NULL, count_link, counts, H5P_DEFAULT) >=
                0);
    assert_true(counts[0] == expected && counts[1] == expected);
    snprintf(last, sizeof last, "many/link %u", expected - 2 + expected % 2);
    assert_true((object = H5Oopen(file, last, H5P_DEFAULT)) >= 0 && H5Oclose(object) >= 0);
    assert_true(H5Oget_info_by_name3(file, "objects/1", &of, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
                of.rc > expected / 10);
    assert_true(H5Fclose(file) >= 0);
}

/* By how much the file grows when N links are made, when one more is, and when nothing of the group is touched. */
static void grow_by_links(unsigned n, long long grown[3])
{
    hid_t file;
    long long before;

    remove(COW);
    file = create_file(COW, H5P_DEFAULT);
    H5Gclose(H5Gcreate2(file, "many", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Gclose(H5Gcreate2(file, "objects", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    for (int i = 0; i < 10; i++) {
        char name[20];

        snprintf(name, sizeof name, "objects/%d", i);
        H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    }
    assert_true(H5Fclose(file) >= 0);
    for (int step = 0; step < 3; step++) {
        before = size_of(COW);
        assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
        if (step == 0)
            add_links(file, 0, n);
        else if (step == 1)
            add_links(file, n, n + 1);
        else
            write_numbers(file, "x", 10, 5, 1);
        assert_true(H5Fclose(file) >= 0);
        grown[step] = size_of(COW) - before;
    }
}

static void test_group_of_a_hundred_thousand_links(void **state)
{
    const unsigned few = 10000, many = 100000;
    long long small[3], large[3];
    (void)state;

    grow_by_links(few, small);
    grow_by_links(many, large);
    printf("  %u links: the file grows by %lld kB, for one more by %lld kB, beside them by %lld kB\n", many,
           large[0] / 1000, large[1] / 1000, large[2] / 1000);
    many_links_there(COW "@2", many);
    many_links_there(COW "@3", many + 1);
    many_links_there(COW, many + 1);
    /* in proportion to the width of the group, and nothing for a group that did not change */
    for (int i = 0; i < 2; i++)
        assert_true(large[i] < 15 * small[i]);
    assert_true(large[2] < 2 * small[2] + 100000);
}

/* While so many links are made, the copy's own header leaves HDF5's metadata cache. */
static void test_copy_of_a_group_of_many_ordered_links(void **state)
{
    const unsigned many = 50000;
    hid_t file, gcpl = H5Pcreate(H5P_GROUP_CREATE), group;
    unsigned counts[2] = {0, 0};
    H5O_info2_t info;
    (void)state;

    assert_true(H5Pset_link_creation_order(gcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0);
    remove(COW);
    file = create_file(COW, H5P_DEFAULT);
    assert_true((group = H5Gcreate2(file, "many", H5P_DEFAULT, gcpl, H5P_DEFAULT)) >= 0);
    for (unsigned i = 0; i < many; i++) {
        char name[40];

        snprintf(name, sizeof name, "link %u", 2 * i);
        if (H5Lcreate_soft("link 1", group, name, H5P_DEFAULT, H5P_DEFAULT) < 0)
            assert_true(!"a link can be made");
    }
    assert_true(H5Gclose(group) >= 0);
    assert_true(H5Ocopy(file, "many", file, "copy", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Oget_info_by_name3(file, "copy", &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 && info.rc == 1);
    assert_true(H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    assert_true(
        H5Literate_by_name2(file, "copy", H5_INDEX_CRT_ORDER, H5_ITER_INC, NULL, count_link, counts, H5P_DEFAULT) >= 0);
    assert_true(counts[0] == many && counts[1] == many);
    assert_true(H5Fclose(file) >= 0);
    H5Pclose(gcpl);
}

/* ---- mounts ---- */

static void make_mountable(const char *name, hid_t fapl, unsigned seed)
{
    hid_t file = create_file(name, fapl), group;

    group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    write_numbers(group, "x", 3000, 500, seed);
    assert_true(H5Lcreate_soft("/g/x", file, "absolute", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Gclose(group) >= 0);
    H5Gclose(H5Gcreate2(file, "at", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_true(H5Fclose(file) >= 0);
}

/* A file with history and a plain one, mounted in a file with history and in a plain one: what is seen through the mount
 * point is what a native pair shows. */
static void test_mounts_show_what_native_hdf5_shows(void **state)
{
    static const char *const children[] = {OTHER, "test_files_plain.h5"};
    static const char *const paths[] = {"g", "at", "at/g"};
    (void)state;

    for (size_t c = 0; c < COUNT(children); c++)
        for (int plain_parent = 0; plain_parent < 2; plain_parent++) {
            hid_t parent[2], child[2];
            char what[100];

            remove(COW);
            remove(OTHER);
            make_mountable(COW, plain_parent ? native_fapl : H5P_DEFAULT, 1);
            make_mountable(NATIVE, native_fapl, 1);
            make_mountable(OTHER, H5P_DEFAULT, 2);
            make_mountable("test_files_plain.h5", native_fapl, 2);
            make_mountable("test_files_native_2.h5", native_fapl, 2);
            for (int side = 0; side < 2; side++) {
                hid_t fapl = side == 0 ? H5P_DEFAULT : native_fapl;

                parent[side] = H5Fopen(side == 0 ? COW : NATIVE, H5F_ACC_RDONLY, fapl);
                child[side] = H5Fopen(side == 0 ? children[c] : "test_files_native_2.h5", H5F_ACC_RDONLY, fapl);
                assert_true(parent[side] >= 0 && child[side] >= 0);
                assert_true(H5Fmount(parent[side], "at", child[side], H5P_DEFAULT) >= 0);
            }
            snprintf(what, sizeof what, "%s in %s", children[c], plain_parent ? "a plain file" : "one with history");
            for (size_t i = 0; i < COUNT(paths); i++) {
                hid_t group[2];

                for (int side = 0; side < 2; side++)
                    assert_true((group[side] = H5Gopen2(parent[side], paths[i], H5P_DEFAULT)) >= 0);
                same_tree(what, REACHED_HEAD, group[1], group[0]);
                for (int side = 0; side < 2; side++)
                    assert_true(H5Gclose(group[side]) >= 0);
            }
            for (int side = 0; side < 2; side++) {
                assert_true(H5Funmount(parent[side], "at") >= 0);
                assert_true(H5Fclose(child[side]) >= 0 && H5Fclose(parent[side]) >= 0);
            }
        }
    remove("test_files_plain.h5");
    remove("test_files_native_2.h5");
}

/* HDF5 begins a path from the id of a file that is mounted at the root of the file that it is mounted in. */
static void through_the_mounted_id(hid_t child, bool group, long long result[24])
{
    hid_t at = group ? H5Gopen2(child, "/", H5P_DEFAULT) : child, dataset, space = H5Screate(H5S_SCALAR), id;
    H5G_info_t info = {0};
    unsigned counts[2] = {0, 0};
    hsize_t fewer = 2000;
    char name[40] = "";
    int n = 0;

    result[n++] = H5Gget_info(at, &info);
    result[n++] = (long long)info.nlinks;
    result[n++] = H5Literate2(at, H5_INDEX_NAME, H5_ITER_INC, NULL, count_link, counts);
    result[n++] = counts[0];
    result[n++] = H5Lget_name_by_idx(at, ".", H5_INDEX_NAME, H5_ITER_INC, 0, name, sizeof name, H5P_DEFAULT);
    result[n++] = name[0];
    write_numbers(at, "made", 3000, 500, 3);
    write_numbers(at, "g/x", 3000, 500, 4);
    write_numbers(at, "/g/made", 3000, 500, 5);
    result[n++] = (dataset = H5Dopen2(at, "made", H5P_DEFAULT)) >= 0;
    result[n++] = H5Dset_extent(dataset, &fewer);
    result[n++] = H5Dclose(dataset);
    result[n++] = H5Gclose(H5Gcreate2(at, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    result[n++] = (id = H5Acreate2(at, "attribute", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0;
    result[n++] = H5Awrite(id, H5T_NATIVE_INT, &(int){6});
    result[n++] = H5Aclose(id);
    result[n++] = H5Ocopy(at, "g", at, "copy", H5P_DEFAULT, H5P_DEFAULT);
    result[n++] = H5Lcreate_soft("made", at, "soft", H5P_DEFAULT, H5P_DEFAULT);
    result[n++] = H5Lcreate_hard(at, "made", at, "hard", H5P_DEFAULT, H5P_DEFAULT);
    result[n++] = H5Lmove(at, "soft", at, "moved", H5P_DEFAULT, H5P_DEFAULT);
    result[n++] = H5Ldelete(at, "absolute", H5P_DEFAULT);
    result[n++] = H5Adelete(at, "attribute");
    result[n++] = H5Oset_comment(at, "a comment");
    result[n++] =
        (id = H5Tcopy(H5T_NATIVE_INT)) >= 0 && H5Tcommit2(at, "type", id, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0;
    result[n++] = H5Tclose(id);
    result[n++] = H5Fflush(child, H5F_SCOPE_GLOBAL);
    write_numbers(at, "made", 4000, 500, 7);
    H5Sclose(space);
    result[n++] = group ? H5Gclose(at) : 0;
}

/* Its own id, while it is mounted and afterwards, in each kind of pair; also where the group of the child was opened first. */
static void test_the_id_of_a_mounted_file_leads_where_it_does_natively(void **state)
{
    static const char *const name[2][2] = {{COW, OTHER}, {NATIVE, "test_files_native_2.h5"}};
    (void)state;

    for (int kind = 0; kind < 16; kind++) {
        bool plain[2] = {kind & 1, kind & 2}, group = kind & 4, first = kind & 8;
        long long result[2][24] = {0};
        char what[100];

        for (int side = 0; side < 2; side++) {
            hid_t file[2], root = H5I_INVALID_HID;

            for (int i = 0; i < 2; i++) {
                remove(name[side][i]);
                make_mountable(name[side][i], side == 1 || plain[i] ? native_fapl : H5P_DEFAULT, (unsigned)i + 1);
                assert_true((file[i] = H5Fopen(name[side][i], H5F_ACC_RDWR, side == 0 ? H5P_DEFAULT : native_fapl)) >=
                            0);
            }
            if (first) {
                write_numbers(file[1], "before", 3000, 500, 8);
                assert_true((root = H5Gopen2(file[1], "g", H5P_DEFAULT)) >= 0);
            }
            assert_true(H5Fmount(file[0], "at", file[1], H5P_DEFAULT) >= 0);
            through_the_mounted_id(file[1], group, result[side]);
            if (first) {
                write_numbers(root, "inside", 3000, 500, 9);
                write_numbers(root, "/inside", 3000, 500, 10);
                assert_true(H5Gclose(root) >= 0);
            }
            assert_true(H5Funmount(file[0], "at") >= 0);
            write_numbers(file[1], "after", 3000, 500, 11);
            write_numbers(file[0], "after", 3000, 500, 12);
            assert_true(H5Fclose(file[1]) >= 0 && H5Fclose(file[0]) >= 0);
        }
        snprintf(what, sizeof what, "%s in %s, by its %s%s", plain[1] ? "plain" : "a history",
                 plain[0] ? "plain" : "a history", group ? "root" : "id", first ? ", opened before" : "");
        for (size_t i = 0; i < COUNT(result[0]); i++)
            if (result[0][i] != result[1][i]) {
                printf("%s: call %zu gives %lld, natively %lld\n", what, i, result[0][i], result[1][i]);
                assert_true(result[0][i] == result[1][i]);
            }
        for (int i = 0; i < 2; i++) {
            same_files(what, name[1][i], name[0][i], H5P_DEFAULT);
            if (!plain[i])
                same_files(what, name[1][i], i == 0 ? COW "@2" : OTHER "@2", H5P_DEFAULT);
        }
    }
    remove("test_files_native_2.h5");
}

static void make_mountables(void)
{
    remove(COW);
    remove(OTHER);
    make_mountable(COW, H5P_DEFAULT, 1);
    make_mountable(OTHER, H5P_DEFAULT, 2);
}

/* HDF5 would show the head at the mount point. */
static void test_mounting_an_old_version_is_refused(void **state)
{
    hid_t parent, child;
    herr_t status;
    (void)state;

    make_mountables();
    parent = H5Fopen(COW, H5F_ACC_RDONLY, H5P_DEFAULT);
    child = H5Fopen(OTHER "@1", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(parent >= 0 && child >= 0);
    H5E_BEGIN_TRY
    {
        status = H5Fmount(parent, "at", child, H5P_DEFAULT);
    }
    H5E_END_TRY
    assert_true(status < 0);
    assert_true(H5Lexists(parent, "at/g", H5P_DEFAULT) == 0);
    assert_true(H5Fclose(child) >= 0 && H5Fclose(parent) >= 0);
}

/* Two groups where another file is mounted lose their links, one after the other: it is they that are kept for the versions before, and not
 * what the name leads to. */
static void test_mount_points_are_deleted_as_other_groups_are(void **state)
{
    static const char *const names[] = {"at", "g"};
    hid_t parent, child, removed;
    H5G_info_t kept;
    H5O_info2_t info;
    (void)state;

    make_mountables();
    assert_true((parent = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
    for (int i = 0; i < 2; i++) {
        assert_true((child = H5Fopen(OTHER, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
        assert_true(H5Fmount(parent, names[i], child, H5P_DEFAULT) >= 0 &&
                    H5Ldelete(parent, names[i], H5P_DEFAULT) >= 0);
        assert_true(H5Lexists(parent, names[i], H5P_DEFAULT) == 0 && H5Fclose(child) >= 0);
    }
    assert_true(H5Fclose(parent) >= 0);
    assert_true((parent = H5Fopen(COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    assert_true(H5Lexists(parent, "at", H5P_DEFAULT) > 0 && H5Lexists(parent, "g/x", H5P_DEFAULT) > 0);
    assert_true(H5Fclose(parent) >= 0);
    assert_true((parent = H5Fopen(COW, H5F_ACC_RDONLY, native_fapl)) >= 0);
    assert_true((removed = H5Gopen2(parent, "_versioned_data/removed", H5P_DEFAULT)) >= 0);
    assert_true(H5Gget_info(removed, &kept) >= 0 && kept.nlinks == 2);
    for (hsize_t i = 0; i < kept.nlinks; i++) { /* by their addresses */
        char name[20];
        haddr_t address;
        assert_true(H5Lget_name_by_idx(removed, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT) >
                    0);
        assert_true(H5Oget_info_by_name3(removed, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0);
        assert_true(H5VLnative_token_to_addr(parent, info.token, &address) >= 0 && strtoull(name, NULL, 16) == address);
    }
    assert_true(H5Gclose(removed) >= 0 && H5Fclose(parent) >= 0);
}

/* HDF5 1.14.5 alone lists the mounted root, and deletes from the group that it hides. */
static void test_links_are_deleted_by_index_where_they_are_listed(void **state)
{
    hid_t parent, child;
    char name[20];
    (void)state;

    make_mountables();
    assert_true((parent = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
    assert_true((child = H5Fopen(OTHER, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
    assert_true(H5Lcreate_soft("nowhere", child, "a", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Gclose(H5Gcreate2(child, "b", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_true(H5Fmount(parent, "g", child, H5P_DEFAULT) >= 0);
    for (const char *at = "a absolute at b g"; *at != '\0'; at += strcspn(at, " "), at += *at == ' ') {
        size_t length = strcspn(at, " ");
        assert_true(H5Lget_name_by_idx(parent, "g", H5_INDEX_NAME, H5_ITER_INC, 0, name, sizeof name, H5P_DEFAULT) ==
                    (ssize_t)length);
        assert_memory_equal(name, at, length);
        assert_true(H5Ldelete_by_idx(parent, "g", H5_INDEX_NAME, H5_ITER_INC, 0, H5P_DEFAULT) >= 0);
    }
    assert_true(H5Funmount(parent, "g") >= 0 && H5Fclose(child) >= 0);
    assert_true(H5Lexists(parent, "g/x", H5P_DEFAULT) > 0 && H5Fclose(parent) >= 0);
    assert_true((child = H5Fopen(OTHER "@2", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    assert_true(H5Lexists(child, "g", H5P_DEFAULT) == 0 && H5Fclose(child) >= 0);
}

/* ---- images, files opened again, what files say of themselves ---- */

/* A file image taken while a file with history is open is that file, as it was at the last flush. */
static void test_image_of_an_open_file_is_the_file(void **state)
{
    hid_t file, core = H5Pcopy(native_fapl), opened, twin;
    ssize_t size;
    char *image;
    (void)state;

    remove(COW);
    make_mountable(COW, H5P_DEFAULT, 1);
    make_mountable(NATIVE, native_fapl, 1);
    assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
    assert_true((twin = H5Fopen(NATIVE, H5F_ACC_RDWR, native_fapl)) >= 0);
    write_numbers(file, "g/x", 3000, 500, 7);
    write_numbers(twin, "g/x", 3000, 500, 7);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 && H5Fflush(twin, H5F_SCOPE_GLOBAL) >= 0);
    assert_true((size = H5Fget_file_image(file, NULL, 0)) > 0);
    image = malloc((size_t)size);
    assert_true(H5Fget_file_image(file, image, (size_t)size) == size);
    assert_true(H5Pset_fapl_core(core, 1 << 16, false) >= 0 && H5Pset_file_image(core, image, (size_t)size) >= 0);
    opened = H5Fopen("test_files_image.h5", H5F_ACC_RDONLY, core);
    assert_true(opened >= 0);
    if (opened >= 0) {
        hid_t groups[2] = {H5Gopen2(twin, "g", H5P_DEFAULT), H5Gopen2(opened, "g", H5P_DEFAULT)};

        same_tree("head in the image", REACHED_VERSION, groups[0], groups[1]);
        assert_true(H5Gclose(groups[0]) >= 0 && H5Gclose(groups[1]) >= 0);
        assert_true((groups[1] = H5Gopen2(opened, VERSIONS "/1/g", H5P_DEFAULT)) >= 0 && H5Gclose(groups[1]) >= 0);
        assert_true(H5Fclose(opened) >= 0);
    }
    H5Pclose(core);
    /* through the connector too, which reads it as any file with another driver */
    core = H5Pcreate(H5P_FILE_ACCESS);
    assert_true(H5Pset_fapl_core(core, 1 << 16, false) >= 0 && H5Pset_file_image(core, image, (size_t)size) >= 0);
    assert_true((opened = H5Fopen("test_files_image.h5", H5F_ACC_RDONLY, core)) >= 0);
    same_tree("image through h5cow", REACHED_VERSION, twin, opened);
    assert_true(H5Fclose(opened) >= 0 && H5Fclose(file) >= 0 && H5Fclose(twin) >= 0);
    H5Pclose(core);
    free(image);
}

static void test_reopened_file_is_the_same_file(void **state)
{
    (void)state;
    remove(COW);
    make_mountable(COW, H5P_DEFAULT, 1);
    make_mountable(NATIVE, native_fapl, 1);
    for (int side = 0; side < 2; side++) {
        hid_t file = H5Fopen(side == 0 ? COW : NATIVE, H5F_ACC_RDWR, side == 0 ? H5P_DEFAULT : native_fapl), again;
        unsigned long numbers[2];
        unsigned intent = 0;

        assert_true((again = H5Freopen(file)) >= 0 && H5Fget_intent(again, &intent) >= 0 && (intent & H5F_ACC_RDWR));
        assert_true(H5Fget_fileno(file, &numbers[0]) >= 0 && H5Fget_fileno(again, &numbers[1]) >= 0);
        assert_true(numbers[0] == numbers[1]);
        assert_true(H5Fget_obj_count(file, H5F_OBJ_FILE) == 2 &&
                    H5Fget_obj_count(again, H5F_OBJ_FILE | H5F_OBJ_LOCAL) == 1);
        write_numbers(file, "g/x", 3000, 500, 8);
        assert_true(H5Fclose(file) >= 0);
        write_numbers(again, "g/y", 3000, 500, 9); /* the transaction goes on until the last is closed */
        assert_true(H5Fclose(again) >= 0);
    }
    same_files("head", NATIVE, COW, H5P_DEFAULT);
    same_files("the one version of both", NATIVE, COW "@2", H5P_DEFAULT);
}

/* One of two openings is closed while an object is open by it, then the object, then the other one; and again the other
 * way round. */
static void test_close_degrees_of_two_openings(void **state)
{
    (void)state;
    remove(COW);
    make_mountable(COW, H5P_DEFAULT, 1);
    make_mountable(NATIVE, native_fapl, 1);
    for (int degree = H5F_CLOSE_DEFAULT; degree <= H5F_CLOSE_STRONG; degree++) {
        listing said[2] = {0};

        for (int side = 0; side < 2; side++) {
            const char *name = side == 0 ? COW : NATIVE;
            hid_t fapl = with_degree(degree, side == 1);

            for (int first = 0; first < 2; first++) {
                hid_t files[2] = {H5Fopen(name, H5F_ACC_RDWR, fapl), H5Fopen(name, H5F_ACC_RDWR, fapl)},
                      kept = files[first], closed = files[1 - first], objects[3];
                hsize_t size = 0;

                objects[0] = H5Gopen2(closed, "g", H5P_DEFAULT);
                objects[1] = H5Dopen2(closed, "g/x", H5P_DEFAULT);
                objects[2] = H5Dget_type(objects[1]);
                assert_true(kept >= 0 && closed >= 0 && objects[0] >= 0 && objects[1] >= 0 && objects[2] >= 0);
                H5E_BEGIN_TRY
                {
                    say(&said[side], "close %d\n", H5Fclose(closed));
                    for (int i = 0; i < 3; i++)
                        say(&said[side], "object %d\n", H5Iis_valid(objects[i]));
                    say(&said[side], "open %lld %lld %lld\n", (long long)H5Fget_obj_count(kept, H5F_OBJ_ALL),
                        (long long)H5Fget_obj_count(kept, H5F_OBJ_ALL | H5F_OBJ_LOCAL),
                        (long long)H5Fget_obj_count(closed, H5F_OBJ_ALL | H5F_OBJ_LOCAL));
                    say(&said[side], "set %d\n", H5Dset_extent(objects[1], (size = 100, &size)) >= 0);
                    for (int i = 0; i < 3; i++)
                        say(&said[side], "object %d\n", H5Iis_valid(objects[i]) > 0 ? H5Idec_ref(objects[i]) : -2);
                    say(&said[side], "close again %d\n", H5Fclose(closed));
                }
                H5E_END_TRY
                say(&said[side], "open %lld\n", (long long)H5Fget_obj_count(kept, H5F_OBJ_ALL));
                assert_true(H5Fclose(kept) >= 0);
            }
            H5Pclose(fapl);
        }
        assert_true(said[0].data != NULL && strcmp(said[0].data, said[1].data) == 0);
        if (strcmp(said[0].data, said[1].data) != 0)
            printf("degree %d, h5cow:\n%snative:\n%s", degree, said[0].data, said[1].data);
        free(said[0].data);
        free(said[1].data);
    }
    same_files("head", NATIVE, COW, H5P_DEFAULT);
}

/* Names, sizes and counts that a program may ask of a file. */
static void say_file(listing *out, hid_t file)
{
    char name[200] = "";
    unsigned intent;
    hid_t fcpl = H5Fget_create_plist(file);
    hsize_t block, page, threshold, size;
    H5F_fspace_strategy_t strategy;
    hbool_t persist;
    H5F_info2_t info;
    unsigned links, attributes;

    assert_true(H5Fget_intent(file, &intent) >= 0 && H5Fget_name(file, name, sizeof name) > 0);
    assert_true(H5Pget_userblock(fcpl, &block) >= 0 && H5Pget_file_space_page_size(fcpl, &page) >= 0);
    assert_true(H5Pget_file_space_strategy(fcpl, &strategy, &persist, &threshold) >= 0);
    assert_true(H5Pget_link_creation_order(fcpl, &links) >= 0 && H5Pget_attr_creation_order(fcpl, &attributes) >= 0);
    assert_true(H5Fget_info2(file, &info) >= 0 && H5Fget_freespace(file) >= 0);
    assert_true(H5Fget_filesize(file, &size) >= 0 && size > block);
    say(out, "%s intent %u, block %llu, page %llu, strategy %d %d %llu, orders %u %u, open %lld\n",
        strrchr(name, '_') + 1, intent, (unsigned long long)block, (unsigned long long)page, (int)strategy,
        (int)persist, (unsigned long long)threshold, links, attributes, (long long)H5Fget_obj_count(file, H5F_OBJ_ALL));
    H5Pclose(fcpl);
}

static void test_files_say_of_themselves_what_the_program_asked_for(void **state)
{
    (void)state;
    for (int variant = 0; variant < 6; variant++) {
        hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);
        listing said[2] = {{0}};

        if (variant == 1)
            H5Pset_userblock(fcpl, 4096);
        if (variant == 2) {
            H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_PAGE, true, 3);
            H5Pset_file_space_page_size(fcpl, 8192);
        }
        if (variant == 3)
            H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_FSM_AGGR, true, 1);
        if (variant == 4)
            H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_NONE, false, 1);
        if (variant == 5) {
            H5Pset_link_creation_order(fcpl, H5P_CRT_ORDER_TRACKED);
            H5Pset_attr_creation_order(fcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
        }
        for (int side = 0; side < 2; side++) {
            const char *const names[] = {"test_files_0_same.h5", "test_files_1_same.h5"};
            hid_t fapl = side == 0 ? H5P_DEFAULT : native_fapl, file;

            remove(names[side]);
            assert_true((file = H5Fcreate(names[side], H5F_ACC_EXCL, fcpl, fapl)) >= 0);
            write_numbers(file, "x", 1000, 100, 1);
            assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
            say_file(&said[side], file);
            assert_true(H5Fclose(file) >= 0);
            for (int mode = 0; mode < 2; mode++) {
                file = H5Fopen(names[side], mode == 0 ? H5F_ACC_RDONLY : H5F_ACC_RDWR, fapl);
                assert_true(file >= 0);
                say_file(&said[side], file);
                assert_true(H5Fclose(file) >= 0);
            }
            remove(names[side]);
        }
        assert_true(same_text("what files say", &said[1], &said[0]));
        free(said[0].data);
        free(said[1].data);
        H5Pclose(fcpl);
    }
}

static void test_user_block_belongs_to_the_program(void **state)
{
    static const char text[] = "#!/bin/sh\n# bytes that are the program's own\n";
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), file;
    char bytes[2048] = "";
    FILE *raw;
    (void)state;

    remove(COW);
    assert_true(H5Pset_userblock(fcpl, sizeof bytes) >= 0);
    assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, fcpl, H5P_DEFAULT)) >= 0);
    write_numbers(file, "x", 3000, 100, 1);
    assert_true(H5Fclose(file) >= 0);
    assert_true((raw = fopen(COW, "r+b")) != NULL && fwrite(text, 1, sizeof text, raw) == sizeof text &&
                fclose(raw) == 0);
    for (unsigned i = 2; i < 5; i++) {
        assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
        write_numbers(file, "x", 3000, 100, i);
        assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        write_numbers(file, "x", 3000, 100, 10 + i);
        assert_true(H5Fclose(file) >= 0);
    }
    assert_true((raw = fopen(COW, "rb")) != NULL && fread(bytes, 1, sizeof bytes, raw) == sizeof bytes &&
                fclose(raw) == 0);
    assert_true(memcmp(bytes, text, sizeof text) == 0);
    for (size_t i = sizeof text; i < sizeof bytes; i++)
        if (bytes[i] != 0) {
            assert_true(bytes[i] == 0);
            break;
        }
    assert_true((file = H5Fopen(COW "@4", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0 && H5Fclose(file) >= 0);
    H5Pclose(fcpl);
}

/* ---- access properties ---- */

typedef struct access_kind {
    const char *name;
    herr_t (*set)(hid_t fapl);
} access_kind;

static herr_t oldest_format(hid_t fapl)
{
    return H5Pset_libver_bounds(fapl, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
}

static herr_t newest_format(hid_t fapl)
{
    return H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
}

static herr_t aligned(hid_t fapl)
{
    return H5Pset_alignment(fapl, 512, 4096);
}

static herr_t large_blocks(hid_t fapl)
{
    return H5Pset_meta_block_size(fapl, 1 << 20) < 0 || H5Pset_small_data_block_size(fapl, 1 << 18) < 0 ||
                   H5Pset_sieve_buf_size(fapl, 1 << 20) < 0
               ? -1
               : 0;
}

static herr_t tiny_caches(hid_t fapl)
{
    H5AC_cache_config_t config = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};

    if (H5Pget_mdc_config(fapl, &config) < 0)
        return -1;
    config.set_initial_size = true;
    config.initial_size = config.min_size = 4096;
    config.max_size = 65536;
    return H5Pset_mdc_config(fapl, &config) < 0 || H5Pset_cache(fapl, 0, 1, 1, 0.5) < 0 ||
                   H5Pset_evict_on_close(fapl, true) < 0
               ? -1
               : 0;
}

static herr_t strong_closing(hid_t fapl)
{
    return H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG);
}

static herr_t collected_references(hid_t fapl)
{
    return H5Pset_gc_references(fapl, 1);
}

static herr_t cache_image(hid_t fapl)
{
    H5AC_cache_image_config_t config = {.version = H5AC__CURR_CACHE_IMAGE_CONFIG_VERSION,
                                        .generate_image = true,
                                        .entry_ageout = H5AC__CACHE_IMAGE__ENTRY_AGEOUT__NONE};

    return H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) < 0
               ? -1
               : H5Pset_mdc_image_config(fapl, &config);
}

static const access_kind access_kinds[] = {
    {"oldest format", oldest_format},
    {"newest format", newest_format},
    {"alignment", aligned},
    {"block sizes", large_blocks},
    {"tiny caches, evict on close", tiny_caches},
    {"strong close degree", strong_closing},
    {"garbage collection of references", collected_references},
    {"metadata cache image", cache_image},
};

static void test_access_properties_leave_history_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(access_kinds); i++) {
        hid_t fapl[2] = {H5Pcreate(H5P_FILE_ACCESS), H5Pcopy(native_fapl)};

        during("%s", access_kinds[i].name);
        for (int side = 0; side < 2; side++) {
            assert_true(access_kinds[i].set(fapl[side]) >= 0);
            for (unsigned version = 1; version <= 3; version++) {
                const char *name = side == 0 ? COW : version == 3 ? NATIVE : OTHER;
                hid_t file, group;

                if (version == 1) {
                    remove(name);
                    file = create_file(name, fapl[side]);
                } else {
                    if (side == 1 && version == 3) /* what version 2 has stays in OTHER */
                        assert_true(rename(OTHER, NATIVE) == 0);
                    file = H5Fopen(name, H5F_ACC_RDWR, fapl[side]);
                }
                assert_true(file >= 0);
                group = H5Gcreate2(file,
                                   version == 1   ? "a"
                                   : version == 2 ? "b"
                                                  : "c",
                                   H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
                write_numbers(group, "x", 5000, 700, version);
                assert_true(H5Gclose(group) >= 0);
                write_numbers(file, "x", 5000, 700, version);
                assert_true(H5Fclose(file) >= 0);
            }
        }
        same_files(access_kinds[i].name, NATIVE, COW, fapl[0]);
        same_files(access_kinds[i].name, NATIVE, COW "@3", H5P_DEFAULT);
        H5Pclose(fapl[0]);
        H5Pclose(fapl[1]);
    }
}

static void test_page_buffer(void **state)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), fapl[2] = {H5Pcreate(H5P_FILE_ACCESS), H5Pcopy(native_fapl)};
    (void)state;

    H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_PAGE, true, 1);
    H5Pset_file_space_page_size(fcpl, 4096);
    remove(COW);
    for (int side = 0; side < 2; side++) {
        const char *name = side == 0 ? COW : NATIVE;
        hid_t file;

        assert_true(H5Pset_page_buffer_size(fapl[side], 1 << 20, 20, 20) >= 0);
        assert_true((file = H5Fcreate(name, H5F_ACC_TRUNC, fcpl, fapl[side])) >= 0);
        write_numbers(file, "x", 9000, 700, 1);
        assert_true(H5Fclose(file) >= 0);
        assert_true((file = H5Fopen(name, H5F_ACC_RDWR, fapl[side])) >= 0);
        write_numbers(file, "y", 9000, 700, 2);
        assert_true(H5Fclose(file) >= 0);
    }
    same_files("with a page buffer", NATIVE, COW, fapl[0]);
    same_files("without", NATIVE, COW "@2", H5P_DEFAULT);
    H5Pclose(fcpl);
    H5Pclose(fapl[0]);
    H5Pclose(fapl[1]);
}

/* ---- drivers ---- */

static herr_t core_kept(hid_t fapl)
{
    return H5Pset_fapl_core(fapl, 1 << 16, true);
}

static herr_t family(hid_t fapl)
{
    return H5Pset_fapl_family(fapl, 1 << 16, H5P_DEFAULT);
}

static herr_t split(hid_t fapl)
{
    return H5Pset_fapl_split(fapl, "-m.h5", H5P_DEFAULT, "-r.h5", H5P_DEFAULT);
}

static herr_t standard_io(hid_t fapl)
{
    return H5Pset_fapl_stdio(fapl);
}

static herr_t logging(hid_t fapl)
{
    return H5Pset_fapl_log(fapl, NULL, 0, 0);
}

#ifdef H5_HAVE_DIRECT
static herr_t direct(hid_t fapl)
{
    return H5Pset_fapl_direct(fapl, 4096, 4096, 1 << 16);
}
#endif

static const struct {
    const char *name, *file; /* the file has to be named so */
    herr_t (*set)(hid_t fapl);
    bool other_form; /* it reads no file of the default driver */
} drivers[] = {
    {"core", "test_files_driver.h5", core_kept, false}, {"family", "test_files_driver_%03d.h5", family, true},
    {"split", "test_files_driver", split, true},        {"stdio", "test_files_driver.h5", standard_io, false},
    {"log", "test_files_driver.h5", logging, false},
#ifdef H5_HAVE_DIRECT
    {"direct", "test_files_driver.h5", direct, false},
#endif
};

static void test_other_drivers_make_plain_files_and_open_histories(void **state)
{
    (void)state;
    remove(COW);
    make_mountable(COW, H5P_DEFAULT, 1);
    make_mountable(NATIVE, native_fapl, 1);
    for (size_t i = 0; i < COUNT(drivers); i++) {
        hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), native = H5Pcopy(native_fapl), file, twin;

        during("%s", drivers[i].name);
        assert_true(drivers[i].set(fapl) >= 0 && drivers[i].set(native) >= 0);
        make_mountable(drivers[i].file, fapl, 1);
        assert_true((file = H5Fopen(drivers[i].file, H5F_ACC_RDONLY, native)) >= 0);
        assert_true(H5Lexists(file, "_versioned_data", H5P_DEFAULT) == 0);
        assert_true((twin = H5Fopen(NATIVE, H5F_ACC_RDONLY, native_fapl)) >= 0);
        same_tree("a new file", REACHED_HEAD, twin, file);
        assert_true(H5Fclose(file) >= 0 && H5Fclose(twin) >= 0);
        if (!drivers[i].other_form) {
            same_files("a file with history", NATIVE, COW, fapl);
            same_files("a version", NATIVE, COW "@1", fapl);
            assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, fapl)) >= 0 && H5Fclose(file) >= 0);
        }
        H5Pclose(fapl);
        H5Pclose(native);
    }
    for (int i = 0; i < 10; i++) {
        char name[60];

        snprintf(name, sizeof name, "test_files_driver_%03d.h5", i);
        remove(name);
    }
    remove("test_files_driver-m.h5");
    remove("test_files_driver-r.h5");
    remove("test_files_driver.h5");
}

/* ---- object times ---- */

/* The head's are native. Those of a version are none before the version was made, and do not change. */
static void test_times_of_objects_stay_those_of_their_version(void **state)
{
    hid_t file, dataset, dcpl = H5Pcreate(H5P_DATASET_CREATE), space;
    hsize_t n = 3000, chunk = 100;
    H5O_info2_t first, head, version, again;
    (void)state;

    remove(COW);
    space = H5Screate_simple(1, &n, NULL);
    assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0 && H5Pset_obj_track_times(dcpl, true) >= 0);
    file = create_file(COW, H5P_DEFAULT);
    dataset = H5Dcreate2(file, "x", H5T_STD_U32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(H5Pset_obj_track_times(dcpl, false) >= 0);
    H5Dclose(H5Dcreate2(file, "without", H5T_STD_U32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    assert_true(dataset >= 0 && H5Dclose(dataset) >= 0);
    assert_true(H5Oget_info_by_name3(file, "x", &first, H5O_INFO_TIME, H5P_DEFAULT) >= 0 && first.ctime > 0);
    assert_true(H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    assert_true(H5Oget_info_by_name3(file, "x", &version, H5O_INFO_TIME, H5P_DEFAULT) >= 0);
    assert_true(version.ctime >= first.ctime && version.ctime <= time(NULL));
    assert_true(H5Oget_info_by_name3(file, "without", &again, H5O_INFO_TIME, H5P_DEFAULT) >= 0 && again.ctime == 0);
    assert_true(H5Fclose(file) >= 0);
    sleep(2);
    assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
    assert_true(H5Oset_comment_by_name(file, "x", "changed", H5P_DEFAULT) >= 0);
    assert_true(H5Oget_info_by_name3(file, "x", &head, H5O_INFO_TIME, H5P_DEFAULT) >= 0);
    assert_true(head.btime == first.btime && head.ctime > first.ctime);
    assert_true(H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    assert_true(H5Oget_info_by_name3(file, "x", &again, H5O_INFO_TIME, H5P_DEFAULT) >= 0);
    assert_true(again.ctime == version.ctime && again.mtime == version.mtime && again.btime == version.btime);
    assert_true(H5Fclose(file) >= 0);
    H5Pclose(dcpl);
    H5Sclose(space);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_of_a_hundred_thousand_links),
        cmocka_unit_test(test_copy_of_a_group_of_many_ordered_links),
        cmocka_unit_test(test_mounts_show_what_native_hdf5_shows),
        cmocka_unit_test(test_the_id_of_a_mounted_file_leads_where_it_does_natively),
        cmocka_unit_test(test_mounting_an_old_version_is_refused),
        cmocka_unit_test(test_mount_points_are_deleted_as_other_groups_are),
        cmocka_unit_test(test_links_are_deleted_by_index_where_they_are_listed),
        cmocka_unit_test(test_image_of_an_open_file_is_the_file),
        cmocka_unit_test(test_reopened_file_is_the_same_file),
        cmocka_unit_test(test_close_degrees_of_two_openings),
        cmocka_unit_test(test_files_say_of_themselves_what_the_program_asked_for),
        cmocka_unit_test(test_user_block_belongs_to_the_program),
        cmocka_unit_test(test_access_properties_leave_history_right),
        cmocka_unit_test(test_page_buffer),
        cmocka_unit_test(test_other_drivers_make_plain_files_and_open_histories),
        cmocka_unit_test(test_times_of_objects_stay_those_of_their_version),
    };
    int status = test_main(tests, argc, argv, through_begin, through_end);

    remove(COW);
    remove(NATIVE);
    remove(OTHER);
    return status;
}
