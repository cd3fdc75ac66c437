/* Calls that take an index: the first, the last, one beyond, and indices beyond any count. Each answer is the one that HDF5
 * gives without the connector, in the head and in versions. Run with HDF5_VOL_CONNECTOR=h5cow.
 */
#include "through.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COW    "test_far_indices_cow.h5"
#define NATIVE "test_far_indices_native.h5"
#define LARGE  70 /* links of a group that HDF5 and h5cow sort otherwise than a small one */

static const char *const groups[] = {"/", "few", "tracked", "indexed", "many", "many_indexed", "none", "gone"};

static hid_t group_list(unsigned order)
{
    hid_t list = H5Pcreate(H5P_GROUP_CREATE);

    assert_true(list >= 0 && (order == 0 || H5Pset_link_creation_order(list, order) >= 0));
    assert_true(order == 0 || H5Pset_attr_creation_order(list, order) >= 0);
    return list;
}

static void fill(hid_t file, const char *name, int count, unsigned order)
{
    hid_t list = group_list(order), space = H5Screate(H5S_SCALAR), at;
    char text[32];

    at = strcmp(name, "/") == 0 ? H5Gopen2(file, name, H5P_DEFAULT)
                                : H5Gcreate2(file, name, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_true(at >= 0 && space >= 0);
    for (int i = 0; i < count; i++) {
        hid_t one;

        snprintf(text, sizeof text, "%c%d", 'A' + (i * 7) % 50, i); /* before and after the hidden group's name */
        assert_true((one = H5Dcreate2(at, text, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        assert_true(H5Dwrite(one, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &i) >= 0 && H5Dclose(one) >= 0);
        if (i < 12) {
            assert_true((one = H5Acreate2(at, text, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
            assert_true(H5Awrite(one, H5T_NATIVE_INT, &i) >= 0 && H5Aclose(one) >= 0);
        }
    }
    assert_true(H5Gclose(at) >= 0 && H5Sclose(space) >= 0 && H5Pclose(list) >= 0);
}

/* ROOT: links of the root besides those of the groups. */
static void make(const char *name, hid_t fapl, int root, unsigned order)
{
    hid_t list = H5Pcreate(H5P_FILE_CREATE), file;
    const hsize_t extent = 40, chunk = 8;
    hid_t chunked = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &extent, NULL), set;
    int values[40] = {0};

    assert_true(list >= 0 && (order == 0 || H5Pset_link_creation_order(list, order) >= 0));
    remove(name);
    assert_true((file = H5Fcreate(name, H5F_ACC_EXCL, list, fapl)) >= 0);
    fill(file, "/", root, 0);
    fill(file, "few", 5, 0);
    fill(file, "tracked", 5, H5P_CRT_ORDER_TRACKED);
    fill(file, "indexed", 5, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    fill(file, "many", LARGE, 0);
    fill(file, "many_indexed", LARGE, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    fill(file, "none", 0, 0);
    assert_true(H5Pset_chunk(chunked, 1, &chunk) >= 0);
    assert_true((set = H5Dcreate2(file, "few/chunks", H5T_NATIVE_INT, space, H5P_DEFAULT, chunked, H5P_DEFAULT)) >= 0);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 && H5Dclose(set) >= 0);
    assert_true(H5Fclose(file) >= 0 && H5Pclose(list) >= 0 && H5Pclose(chunked) >= 0 && H5Sclose(space) >= 0);
}

static herr_t each_link(hid_t group, const char *name, const H5L_info2_t *info, void *out)
{
    (void)group;
    (void)info;
    say(out, " %s", name);
    return 0;
}

static herr_t each_attribute(hid_t object, const char *name, const H5A_info_t *info, void *out)
{
    (void)object;
    (void)info;
    say(out, " %s", name);
    return 0;
}

static herr_t each_old(hid_t group, const char *name, void *out)
{
    (void)group;
    say(out, " %s", name);
    return 0;
}

static void say_name(listing *out, hid_t object, herr_t (*close)(hid_t))
{
    char name[64] = "";

    if (object < 0) {
        say(out, " -");
        return;
    }
    if (close == H5Aclose)
        H5Aget_name(object, sizeof name, name);
    else
        H5Iget_name(object, name, sizeof name);
    say(out, " %s", name);
    close(object);
}

static void ask_links(listing *out, hid_t file, const char *path, H5_index_t index, H5_iter_order_t order, hsize_t n)
{
    char name[64] = "";
    hsize_t first = n;
    H5L_info2_t link;
    H5O_info2_t info;
    herr_t done;

    say(out, "\n  name %d", (int)H5Lget_name_by_idx(file, path, index, order, n, name, sizeof name, H5P_DEFAULT));
    say(out, " %s, length %d", name, (int)H5Lget_name_by_idx(file, path, index, order, n, NULL, 0, H5P_DEFAULT));
    say(out, ", info %d", H5Lget_info_by_idx2(file, path, index, order, n, &link, H5P_DEFAULT));
    say(out, ", object info %d", H5Oget_info_by_idx3(file, path, index, order, n, &info, H5O_INFO_BASIC, H5P_DEFAULT));
    say(out, ", value %d", H5Lget_val_by_idx(file, path, index, order, n, name, sizeof name, H5P_DEFAULT));
    say(out, ", comment %d", (int)H5Oget_comment(file, NULL, 0));
    say(out, ", open");
    say_name(out, H5Oopen_by_idx(file, path, index, order, n, H5P_DEFAULT), H5Oclose);
    say(out, ", iterate");
    done = H5Literate_by_name2(file, path, index, order, &first, each_link, out, H5P_DEFAULT);
    say(out, " %d, next %lld", done, done < 0 ? 0 : (long long)first);
    if (index == H5_INDEX_NAME && order == H5_ITER_INC) {
        hid_t group = H5Gopen2(file, path, H5P_DEFAULT);
        int old = (int)n;

        say(out, ", old name %d", (int)H5Gget_objname_by_idx(group, n, name, sizeof name));
        say(out, ", old type %d", (int)H5Gget_objtype_by_idx(group, n));
        if ((hsize_t)old == n) {
            say(out, ", old iterate");
            done = H5Giterate(file, path, &old, each_old, out);
            say(out, " %d, next %d", done, done < 0 ? 0 : old);
        }
        H5Gclose(group);
    }
}

static void ask_attributes(listing *out, hid_t file, const char *path, H5_index_t index, H5_iter_order_t order,
                           hsize_t n)
{
    char name[64] = "";
    hsize_t first = n;
    H5A_info_t info;
    herr_t done;

    say(out, "\n  attribute %d", (int)H5Aget_name_by_idx(file, path, index, order, n, name, sizeof name, H5P_DEFAULT));
    say(out, " %s, info %d", name, H5Aget_info_by_idx(file, path, index, order, n, &info, H5P_DEFAULT));
    say(out, ", open");
    say_name(out, H5Aopen_by_idx(file, path, index, order, n, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    say(out, ", iterate");
    done = H5Aiterate_by_name(file, path, index, order, &first, each_attribute, out, H5P_DEFAULT);
    say(out, " %d, next %lld", done, done < 0 ? 0 : (long long)first);
}

static void ask_chunks(listing *out, hid_t file, hsize_t n)
{
    hid_t set = H5Dopen2(file, "few/chunks", H5P_DEFAULT);
    hsize_t at[1] = {99}, size = 0;
    unsigned mask = 0;

    assert_true(set >= 0);
    say(out, "\n  chunk %d", H5Dget_chunk_info(set, H5S_ALL, n, at, &mask, NULL, &size));
    say(out, " at %llu, %llu bytes", (unsigned long long)at[0], (unsigned long long)size);
    H5Dclose(set);
}

/* What an index of ORDER by order is, of the attributes above all, HDF5 promises nowhere: only far ones are compared. */
static void ask(listing *out, hid_t file, bool native_order)
{
    for (size_t g = 0; g < COUNT(groups); g++) {
        H5G_info_t info = {0};
        hid_t group = H5Gopen2(file, groups[g], H5P_DEFAULT);

        if (group < 0)
            continue;
        assert_true(H5Gget_info(group, &info) >= 0 && H5Gclose(group) >= 0);
        const hsize_t links = info.nlinks;
        const hsize_t far[] = {0,
                               links - 1,
                               links,
                               links + 1,
                               ((hsize_t)1 << 31) - 1,
                               (hsize_t)1 << 31,
                               ((hsize_t)1 << 32) - 1,
                               (hsize_t)1 << 32,
                               ((hsize_t)1 << 63) - 1,
                               (hsize_t)1 << 63,
                               (hsize_t)-3,
                               (hsize_t)-2,
                               (hsize_t)-1};

        for (size_t i = 0; i < COUNT(far); i++)
            for (int index = H5_INDEX_NAME; index <= H5_INDEX_CRT_ORDER; index++)
                for (int order = H5_ITER_INC; order <= H5_ITER_NATIVE; order++) {
                    if (order == H5_ITER_NATIVE && (!native_order || far[i] < links))
                        continue;
                    say(out, "\n%s, index %lld, %d, %d:", groups[g], (long long)far[i], index, order);
                    ask_links(out, file, groups[g], (H5_index_t)index, (H5_iter_order_t)order, far[i]);
                    if (far[i] >= links || index == H5_INDEX_NAME)
                        ask_attributes(out, file, groups[g], (H5_index_t)index, (H5_iter_order_t)order, far[i]);
                }
        for (size_t i = 0; i < COUNT(far); i++)
            ask_chunks(out, file, far[i]);
    }
}

/* Each deletes something or nothing, and then all is listed. */
static void delete_far(listing *out, hid_t file)
{
    for (size_t g = 0; g < COUNT(groups); g++) {
        const hsize_t far[] = {(hsize_t)-1, (hsize_t)-2, (hsize_t)1 << 63, (hsize_t)1 << 32, 1000, 1};

        for (size_t i = 0; i < COUNT(far); i++)
            for (int order = H5_ITER_INC; order <= H5_ITER_DEC; order++) {
                hsize_t first = 0;

                if (strcmp(groups[g], "/") == 0 && far[i] == 1)
                    continue;
                say(out, "\n%s, delete %lld, %d:", groups[g], (long long)far[i], order);
                say(out, " %d",
                    H5Ldelete_by_idx(file, groups[g], H5_INDEX_NAME, (H5_iter_order_t)order, far[i], H5P_DEFAULT));
                say(out, " %d",
                    H5Adelete_by_idx(file, groups[g], H5_INDEX_NAME, (H5_iter_order_t)order, far[i], H5P_DEFAULT));
                H5Literate_by_name2(file, groups[g], H5_INDEX_NAME, H5_ITER_INC, &first, each_link, out, H5P_DEFAULT);
            }
    }
}

static void compare(const char *what, hid_t cow, hid_t native, void (*call)(listing *, hid_t))
{
    listing a = {0}, b = {0};

    during("%s", what);
    H5E_BEGIN_TRY
    {
        call(&a, native);
        call(&b, cow);
    }
    H5E_END_TRY
    assert_true(a.length > 1000 && same_text(what, &a, &b));
    free(a.data);
    free(b.data);
}

static void ask_all(listing *out, hid_t file)
{
    ask(out, file, true);
}

static void test_indices_beyond_all_are_answered_as_natively(void **state)
{
    const unsigned orders[] = {0, H5P_CRT_ORDER_TRACKED, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED};
    const int roots[] = {0, 3, LARGE};

    (void)state;
    for (size_t o = 0; o < COUNT(orders); o++)
        for (size_t r = 0; r < COUNT(roots); r++) {
            char what[100];
            hid_t cow, native;

            make(COW, H5P_DEFAULT, roots[r], orders[o]);
            make(NATIVE, native_fapl, roots[r], orders[o]);
            assert_true((native = H5Fopen(NATIVE, H5F_ACC_RDONLY, native_fapl)) >= 0);
            for (int opened = 0; opened < 3; opened++) {
                const char *const how[] = {"reading", "a version", "writing"};

                snprintf(what, sizeof what, "%s, %d links in the root, order %u", how[opened], roots[r], orders[o]);
                if (opened == 2)
                    assert_true(H5Fclose(native) >= 0 && (native = H5Fopen(NATIVE, H5F_ACC_RDWR, native_fapl)) >= 0);
                cow = H5Fopen(opened == 1 ? COW "@1" : COW, opened == 2 ? H5F_ACC_RDWR : H5F_ACC_RDONLY, H5P_DEFAULT);
                assert_true(cow >= 0);
                compare(what, cow, native, ask_all);
                if (opened < 2)
                    assert_true(H5Fclose(cow) >= 0);
            }
            snprintf(what, sizeof what, "deleting, %d links in the root, order %u", roots[r], orders[o]);
            compare(what, cow, native, delete_far);
            assert_true(H5Fclose(cow) >= 0 && H5Fclose(native) >= 0);
            assert_true((native = H5Fopen(NATIVE, H5F_ACC_RDONLY, native_fapl)) >= 0);
            assert_true((cow = H5Fopen(COW, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
            compare("after deleting", cow, native, ask_all);
            assert_true(H5Fclose(cow) >= 0 && H5Fclose(native) >= 0);
        }
    remove(COW);
    remove(NATIVE);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_indices_beyond_all_are_answered_as_natively),
    };

    return test_main(tests, argc, argv, through_begin, through_end);
}
