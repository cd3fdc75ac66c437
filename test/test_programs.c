/* What HDF5's own test programs (run_hdf5_suite.py) found, as small programs: each runs natively and through the
 * connector, and both must be told the same. Run with HDF5_VOL_CONNECTOR=h5cow.
 */
#include "through.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_NAME  "test_programs.h5"
#define OTHER_NAME "test_programs_other.h5"

static hid_t fapl_of(bool native)
{
    return native ? H5Pcopy(native_fapl) : H5Pcreate(H5P_FILE_ACCESS);
}

static hid_t newest(hid_t fapl)
{
    assert_true(H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_LATEST) >= 0);
    return fapl;
}

static void clean(void)
{
    remove(FILE_NAME);
    remove(OTHER_NAME);
}

static void each(void (*run)(hid_t fapl))
{
    for (int native = 1; native >= 0; native--) {
        hid_t fapl = fapl_of(native);

        during("%s", native ? "natively" : "through the connector");
        clean();
        run(fapl);
        H5Pclose(fapl);
    }
    clean();
}

static bool fails(herr_t status)
{
    return status < 0;
}

/* ---- mounts ---- */

/* What is mounted can be named by its own root: its file must be free again then. */
static void unmount_by_root(hid_t fapl)
{
    hid_t parent = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);

    for (int times = 0; times < 2; times++) {
        hid_t child = H5Fcreate(OTHER_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), point, root;

        assert_true(child >= 0);
        if (times == 0)
            H5Gclose(H5Gcreate2(parent, "point", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        assert_true((point = H5Gopen2(parent, "point", H5P_DEFAULT)) >= 0);
        assert_true(H5Fmount(point, ".", child, H5P_DEFAULT) >= 0);
        assert_true((root = H5Gopen2(parent, "point", H5P_DEFAULT)) >= 0);
        assert_true(H5Funmount(root, ".") >= 0);
        assert_true(H5Gclose(root) >= 0 && H5Gclose(point) >= 0 && H5Fclose(child) >= 0);
    }
    assert_true(H5Fclose(parent) >= 0);
}

static void test_a_file_can_be_unmounted_by_its_own_root(void **state)
{
    (void)state;
    each(unmount_by_root);
}

/* A mount is undone by a path that leads through another mount, and by one within. */
static void unmount_below_a_mount(hid_t fapl)
{
    hid_t first = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl),
          second = H5Fcreate(OTHER_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), b, third;

    H5Gclose(H5Gcreate2(first, "a", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_true((b = H5Gcreate2(second, "b", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(H5Fmount(first, "a", second, H5P_DEFAULT) >= 0);
    for (int inside = 0; inside < 2; inside++) {
        assert_true((third = H5Fcreate(FILE_NAME "3", H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
        assert_true(H5Fmount(inside ? first : b, inside ? "a/b" : ".", third, H5P_DEFAULT) >= 0);
        assert_true(H5Funmount(inside ? b : first, inside ? "." : "a/b") >= 0);
        assert_true(H5Fclose(third) >= 0);
    }
    assert_true(H5Gclose(b) >= 0 && H5Funmount(first, "a") >= 0 && H5Fclose(second) >= 0 && H5Fclose(first) >= 0);
    remove(FILE_NAME "3");
}

static void test_a_file_can_be_unmounted_by_another_path(void **state)
{
    (void)state;
    each(unmount_below_a_mount);
}

/* ---- single writer, multiple readers ---- */

static unsigned attempts(hid_t file)
{
    hid_t fapl = H5Fget_access_plist(file);
    unsigned n = 0;

    assert_true(fapl >= 0 && H5Pget_metadata_read_attempts(fapl, &n) >= 0 && H5Pclose(fapl) >= 0);
    return n;
}

/* Bounds matter where a file is made, not where one of the newer format is opened; but natively in HDF5 2. */
#if H5_VERSION_GE(2, 0, 0)
#define OPENED_FOR_SWMR(fapl, wide) (wide)
#else
#define OPENED_FOR_SWMR(fapl, wide) (fapl)
#endif

static void start_swmr(hid_t fapl)
{
    hid_t wide = newest(H5Pcopy(fapl)), file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, wide);

    assert_true(file >= 0 && H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(FILE_NAME, H5F_ACC_RDWR, OPENED_FOR_SWMR(fapl, wide))) >= 0);
    assert_true(attempts(file) == 1);
    assert_true(H5Fstart_swmr_write(file) >= 0);
    assert_true(attempts(file) == 100);
    assert_true(H5Fclose(file) >= 0);

    assert_true((file = H5Fcreate(OTHER_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
    H5E_BEGIN_TRY
    {
        assert_true(fails(H5Fstart_swmr_write(file)));
    }
    H5E_END_TRY
    assert_true(H5Fclose(file) >= 0);

    assert_true((file = H5Fcreate(OTHER_NAME, H5F_ACC_TRUNC | H5F_ACC_SWMR_WRITE, H5P_DEFAULT, fapl)) >= 0);
    assert_true(attempts(file) == 100 && H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(OTHER_NAME, H5F_ACC_RDWR, OPENED_FOR_SWMR(fapl, wide))) >= 0);
    assert_true(H5Fstart_swmr_write(file) >= 0 && H5Fclose(file) >= 0);
    H5Pclose(wide);
}

static void test_swmr_starts_in_every_file_of_a_new_format(void **state)
{
    (void)state;
    each(start_swmr);
}

static void read_attempts(hid_t fapl)
{
    hid_t wide = newest(H5Pcopy(fapl)), file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, wide), second;

    assert_true(file >= 0 && H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(FILE_NAME, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, wide)) >= 0);
    assert_true(attempts(file) == 100);
    assert_true(H5Pset_metadata_read_attempts(wide, 9) >= 0);
    assert_true((second = H5Fopen(FILE_NAME, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, wide)) >= 0);
    assert_true(attempts(second) == 100 && H5Fclose(second) >= 0 && H5Fclose(file) >= 0);
    for (unsigned n = 1; n < 10; n += 8) {
        assert_true(H5Pset_metadata_read_attempts(wide, n) >= 0);
        assert_true((file = H5Fopen(FILE_NAME, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, wide)) >= 0);
        assert_true(attempts(file) == n && H5Fclose(file) >= 0);
        assert_true((file = H5Fopen(FILE_NAME, H5F_ACC_RDONLY, wide)) >= 0);
        assert_true(attempts(file) == n && H5Fclose(file) >= 0);
    }
    H5Pclose(wide);
}

static void test_attempts_to_read_are_told_as_natively(void **state)
{
    (void)state;
    each(read_attempts);
}

static void mixed_readers(hid_t fapl)
{
    hid_t wide = newest(H5Pcopy(fapl)), file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, wide), second;

    assert_true(file >= 0 && H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(FILE_NAME, H5F_ACC_RDONLY, wide)) >= 0);
    H5E_BEGIN_TRY
    {
        second = H5Fopen(FILE_NAME, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, wide);
    }
    H5E_END_TRY
    assert_true(second < 0 && H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(FILE_NAME, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, wide)) >= 0);
    assert_true((second = H5Fopen(FILE_NAME, H5F_ACC_RDONLY, wide)) >= 0);
    assert_true(H5Fclose(second) >= 0 && H5Fclose(file) >= 0);
    H5Pclose(wide);
}

static void test_a_file_open_for_reading_is_not_opened_for_swmr(void **state)
{
    (void)state;
    each(mixed_readers);
}

/* Its writer dies before it has flushed anything. */
static void new_for_swmr(hid_t fapl)
{
    pid_t child = fork_child();
    hid_t file = H5I_INVALID_HID;
    int status = -1;

    if (child == 0) {
        file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC | H5F_ACC_SWMR_WRITE, H5P_DEFAULT, fapl);
        _exit(file < 0 ? 1 : 0);
    }
    assert_true(waitpid(child, &status, 0) == child && status == 0);
    assert_true((file = H5Fopen(FILE_NAME, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, fapl)) >= 0);
    assert_true(H5Fclose(file) >= 0);
}

static void test_a_file_made_for_swmr_is_there_at_once(void **state)
{
    (void)state;
    each(new_for_swmr);
}

static unsigned intent_behind_link(hid_t file, hid_t gapl)
{
    hid_t group = H5Gopen2(file, "link/group", gapl), other = H5Iget_file_id(group);
    unsigned flags = 99;

    assert_true(group >= 0 && H5Fget_intent(other, &flags) >= 0);
    assert_true(H5Gclose(group) >= 0 && H5Fclose(other) >= 0);
    return flags;
}

/* External links hand the flags on, unless the program sets others for the link. */
static void swmr_through_links(hid_t fapl)
{
    hid_t wide = newest(H5Pcopy(fapl)), gapl = H5Pcreate(H5P_GROUP_ACCESS), file;

    assert_true((file = H5Fcreate(OTHER_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, wide)) >= 0);
    H5Gclose(H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_true(H5Fclose(file) >= 0 && (file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, wide)) >= 0);
    assert_true(H5Lcreate_external(OTHER_NAME, "/", file, "link", H5P_DEFAULT, H5P_DEFAULT) >= 0 &&
                H5Fclose(file) >= 0);
    for (int writes = 0; writes < 2; writes++) {
        unsigned plain = writes ? H5F_ACC_RDWR : H5F_ACC_RDONLY,
                 swmr = plain | (writes ? H5F_ACC_SWMR_WRITE : H5F_ACC_SWMR_READ);
        assert_true((file = H5Fopen(FILE_NAME, swmr, wide)) >= 0);
        assert_true(intent_behind_link(file, H5P_DEFAULT) == swmr);
        assert_true(H5Pset_elink_acc_flags(gapl, plain) >= 0 && intent_behind_link(file, gapl) == plain);
        assert_true(H5Fclose(file) >= 0);
    }
    assert_true(H5Pclose(gapl) >= 0 && H5Pclose(wide) >= 0);
}

static void test_external_links_hand_the_flags_of_swmr_on(void **state)
{
    (void)state;
    each(swmr_through_links);
}

/* ---- the metadata cache ---- */

/* Closing the last handle ends what H5Odisable_mdc_flushes began. */
static void kept_in_the_cache(hid_t fapl)
{
    const hsize_t extent[] = {2000};
    hid_t file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), space = H5Screate_simple(1, extent, NULL), one,
          other;
    hbool_t kept = false;

    assert_true((one = H5Dcreate2(file, "a", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(H5Odisable_mdc_flushes(one) >= 0 && H5Oflush(one) >= 0);
    assert_true((other = H5Dopen2(file, "a", H5P_DEFAULT)) >= 0 && H5Dclose(one) >= 0);
    assert_true(H5Oare_mdc_flushes_disabled(other, &kept) >= 0 && kept);
    assert_true(H5Dclose(other) >= 0 && (one = H5Dopen2(file, "a", H5P_DEFAULT)) >= 0);
    assert_true(H5Oare_mdc_flushes_disabled(one, &kept) >= 0 && !kept);
    assert_true(H5Dclose(one) >= 0 && H5Sclose(space) >= 0 && H5Fclose(file) >= 0);
}

static void test_metadata_is_kept_in_the_cache_until_the_last_handle_is_closed(void **state)
{
    (void)state;
    each(kept_in_the_cache);
}

/* ---- user-defined links ---- */

#define LINK_TYPE ((H5L_type_t)187)

static hid_t lead_nowhere(const char *name, hid_t group, const void *value, size_t size, hid_t lapl, hid_t dxpl)
{
    (void)name, (void)group, (void)value, (void)size, (void)lapl, (void)dxpl;
    return H5I_INVALID_HID;
}

/* Another program has the class of a link: the file can be written, flushed twice and made anew without it. */
static void link_without_class(hid_t fapl)
{
    const H5L_class_t class = {.version = H5L_LINK_CLASS_T_VERS, .id = LINK_TYPE, .trav_func = lead_nowhere};

    for (int times = 0; times < 3; times++) {
        hid_t file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), group;

        assert_true(file >= 0 && H5Lexists(file, "link", H5P_DEFAULT) == 0);
        assert_true((group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        assert_true(H5Lregister(&class) >= 0);
        assert_true(H5Lcreate_ud(file, "link", LINK_TYPE, "value", 6, H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Lcreate_ud(group, "below", LINK_TYPE, "value", 6, H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Lunregister(LINK_TYPE) >= 0);
        assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        H5Gclose(H5Gcreate2(group, "more", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        H5Gclose(H5Gcreate2(group, "and more", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        assert_true(H5Gclose(group) >= 0 && H5Fclose(file) >= 0);
    }
}

static void test_links_of_a_class_that_is_not_there_are_in_no_way(void **state)
{
    (void)state;
    each(link_without_class);
}

static herr_t keep_link(const char *name, hid_t file, const void *data, size_t size)
{
    (void)name, (void)file, (void)data, (void)size;
    return -1;
}

/* Its links cannot be deleted, which is nothing to a file that is made anew. */
static void over_links_that_stay(hid_t fapl)
{
    const H5L_class_t class = {
        .version = H5L_LINK_CLASS_T_VERS, .id = LINK_TYPE, .trav_func = lead_nowhere, .del_func = keep_link};
    hid_t file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);

    assert_true(H5Lregister(&class) >= 0);
    assert_true(H5Lcreate_ud(file, "link", LINK_TYPE, "x", 2, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(fails(H5Ldelete(file, "link", H5P_DEFAULT)) && H5Fclose(file) >= 0);
    assert_true((file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
    assert_true(H5Lexists(file, "link", H5P_DEFAULT) == 0 && H5Fclose(file) >= 0);
    assert_true(H5Lunregister(LINK_TYPE) >= 0);
    remove(FILE_NAME ".h5cow-old-1");
}

static void test_a_file_is_made_anew_over_links_that_cannot_be_deleted(void **state)
{
    (void)state;
    each(over_links_that_stay);
}

/* ---- creation order ---- */

/* A file that is made anew counts from 0. */
static void creation_order(hid_t fapl)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);

    assert_true(H5Pset_link_creation_order(fcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0);
    for (int times = 0; times < 3; times++) {
        hid_t file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, fcpl, fapl);
        H5G_info_t group;
        H5L_info2_t link;

        assert_true(H5Gget_info(file, &group) >= 0 && group.max_corder == 0);
        for (int i = 0; i < 20; i++) {
            char name[32];

            snprintf(name, sizeof name, "%d", i);
            H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
            assert_true(H5Lget_info2(file, name, &link, H5P_DEFAULT) >= 0 && link.corder_valid && link.corder == i);
        }
        assert_true(H5Gget_info(file, &group) >= 0 && group.max_corder == 20 && H5Fclose(file) >= 0);
    }
    H5Pclose(fcpl);
}

static void test_a_file_made_anew_counts_creations_from_zero(void **state)
{
    (void)state;
    each(creation_order);
}

/* ---- references ---- */

/* What was deleted before anything was committed leads nowhere, whoever has its place in the file now. */
static void reference_to_deleted(hid_t fapl)
{
    hid_t file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), space = H5Screate(H5S_SCALAR), object;
    hid_t holder = H5Dcreate2(file, "holder", H5T_STD_REF, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5R_ref_t reference;

    H5Dclose(H5Dcreate2(file, "gone", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_true(H5Rcreate_object(file, "gone", H5P_DEFAULT, &reference) >= 0);
    assert_true(H5Dwrite(holder, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, &reference) >= 0);
    assert_true(H5Ldelete(file, "gone", H5P_DEFAULT) >= 0);
    assert_true(H5Rdestroy(&reference) >= 0 && H5Dclose(holder) >= 0 && H5Fclose(file) >= 0);

    file = H5Fopen(FILE_NAME, H5F_ACC_RDWR, fapl);
    holder = H5Dopen2(file, "holder", H5P_DEFAULT);
    assert_true(H5Dread(holder, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, &reference) >= 0);
    H5E_BEGIN_TRY
    object = H5Ropen_object(&reference, H5P_DEFAULT, H5P_DEFAULT);
    H5E_END_TRY
    assert_true(object < 0);
    assert_true(H5Rdestroy(&reference) >= 0 && H5Dclose(holder) >= 0 && H5Fclose(file) >= 0 && H5Sclose(space) >= 0);
}

static void test_a_reference_to_what_was_deleted_at_once_leads_nowhere(void **state)
{
    (void)state;
    each(reference_to_deleted);
}

/* The other file is there, and open or not. */
static void reference_to_other_file(hid_t fapl)
{
    for (int open = 0; open < 2; open++) {
        hid_t other = H5Fcreate(OTHER_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), space = H5Screate(H5S_SCALAR);
        hid_t group = H5Gcreate2(other, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), file, holder, attribute;
        H5R_ref_t reference;
        int value = 7;

        attribute = H5Acreate2(group, "value", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Awrite(attribute, H5T_NATIVE_INT, &value) >= 0 && H5Aclose(attribute) >= 0 &&
                    H5Gclose(group) >= 0);
        assert_true(H5Rcreate_attr(other, "group", "value", H5P_DEFAULT, &reference) >= 0);
        assert_true(open || H5Fclose(other) >= 0);
        file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
        holder = H5Dcreate2(file, "holder", H5T_STD_REF, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Dwrite(holder, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, &reference) >= 0);
        assert_true(H5Rdestroy(&reference) >= 0 && H5Dclose(holder) >= 0 && H5Fclose(file) >= 0);
        assert_true(!open || H5Fclose(other) >= 0);

        assert_true((file = H5Fopen(FILE_NAME, H5F_ACC_RDONLY, fapl)) >= 0);
        assert_true((holder = H5Dopen2(file, "holder", H5P_DEFAULT)) >= 0);
        assert_true(H5Dread(holder, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, &reference) >= 0);
        value = 0;
        assert_true((attribute = H5Ropen_attr(&reference, fapl, H5P_DEFAULT)) >= 0);
        assert_true(H5Aread(attribute, H5T_NATIVE_INT, &value) >= 0 && value == 7 && H5Aclose(attribute) >= 0);
        assert_true(H5Rdestroy(&reference) >= 0 && H5Dclose(holder) >= 0 && H5Fclose(file) >= 0 &&
                    H5Sclose(space) >= 0);
    }
}

static void test_references_into_a_file_that_is_there_are_kept(void **state)
{
    (void)state;
    each(reference_to_other_file);
}

/* ---- chunks as bytes ---- */

#define SIDE 8

static void check_chunk(hid_t dataset, const hsize_t offset[], const int given[])
{
    int values[SIDE * SIDE] = {0};
    hsize_t size = 0;
    unsigned mask = 0;

    assert_true(H5Dget_chunk_storage_size(dataset, offset, &size) >= 0 && size == sizeof values);
    assert_true(H5Dget_chunk_info_by_coord(dataset, offset, &mask, NULL, &size) >= 0 && mask == 1);
    if (size == sizeof values)
        assert_true(H5Dread_chunk(dataset, H5P_DEFAULT, offset, &mask, values) >= 0 && mask == 1);
    assert_true(memcmp(values, given, sizeof values) == 0);
}

/* Also where the same elements are stored otherwise already, and where a chunk stands out of the extent. */
static void chunks_as_given(hid_t fapl)
{
    const hsize_t chunk[] = {SIDE, SIDE}, extent[] = {2 * SIDE, 3 * SIDE - 3}, most[] = {H5S_UNLIMITED, H5S_UNLIMITED};
    const hsize_t place[][2] = {{0, 0}, {SIDE, SIDE}, {SIDE, 2 * SIDE}};
    hid_t file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), space = H5Screate_simple(2, extent, most);
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), memory = H5Screate_simple(2, chunk, NULL), dataset;
    int given[SIDE * SIDE], grown[SIDE * SIDE];

    for (int i = 0; i < SIDE * SIDE; i++)
        given[i] = i / 3;
    assert_true(H5Pset_chunk(dcpl, 2, chunk) >= 0 && H5Pset_deflate(dcpl, 9) >= 0);
    dataset = H5Dcreate2(file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, place[0], NULL, chunk, NULL) >= 0);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, given) >= 0);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < 3; i++)
            assert_true(H5Dwrite_chunk(dataset, H5P_DEFAULT, 1, place[i], sizeof given, given) >= 0);
        assert_true(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
        file = H5Fopen(FILE_NAME, H5F_ACC_RDWR, fapl);
        dataset = H5Dopen2(file, "d", H5P_DEFAULT);
        for (int i = 0; i < 3; i++) {
            int values[SIDE * SIDE];

            check_chunk(dataset, place[i], given);
            if (i == 2)
                continue;
            assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, place[i], NULL, chunk, NULL) >= 0);
            assert_true(H5Dread(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values) >= 0);
            assert_true(memcmp(values, given, sizeof given) == 0);
        }
    }
    /* What stood out of the extent is still there. */
    assert_true(H5Dset_extent(dataset, (hsize_t[]){2 * SIDE, 3 * SIDE}) >= 0 && H5Sclose(space) >= 0);
    space = H5Dget_space(dataset);
    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, place[2], NULL, chunk, NULL) >= 0);
    assert_true(H5Dread(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, grown) >= 0);
    assert_true(memcmp(grown, given, sizeof given) == 0);
    assert_true(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0 && H5Pclose(dcpl) >= 0);
    assert_true(H5Sclose(space) >= 0 && H5Sclose(memory) >= 0);
}

static void test_chunks_written_as_bytes_are_read_as_they_were_given(void **state)
{
    (void)state;
    each(chunks_as_given);
}

/* ---- filters ---- */

#define FILTER 312

static size_t refuse(unsigned flags, size_t n, const unsigned v[], size_t bytes, size_t *size, void **buffer)
{
    (void)n, (void)v, (void)size, (void)buffer;
    return flags & H5Z_FLAG_REVERSE ? bytes : 0;
}

/* There is no such dataset then, and all else is as if nobody had tried. */
static void refused_at_once(hid_t fapl)
{
    const H5Z_class2_t class = {H5Z_CLASS_T_VERS, FILTER, 1, 1, "refuse", NULL, NULL, refuse};
    const hsize_t extent[] = {2000}, chunk[] = {500};
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, extent, NULL), file, dataset;
    int values[2000] = {1, 2, 3}, got[2000] = {0};

    assert_true(H5Zregister(&class) >= 0 && H5Pset_chunk(dcpl, 1, chunk) >= 0);
    assert_true(H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY) >= 0);
    assert_true((file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
    H5Gclose(H5Gcreate2(file, "kept", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_true(H5Pset_filter(dcpl, FILTER, H5Z_FLAG_MANDATORY, 0, NULL) >= 0);
    assert_true(fails((herr_t)H5Dcreate2(file, "a", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)));
    assert_true(fails((herr_t)H5Dcreate_anon(file, H5T_NATIVE_INT, space, dcpl, H5P_DEFAULT)));
    assert_true(H5Lexists(file, "a", H5P_DEFAULT) == 0 && H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    assert_true(H5Premove_filter(dcpl, FILTER) >= 0);
    assert_true((dataset = H5Dcreate2(file, "a", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(FILE_NAME, H5F_ACC_RDONLY, fapl)) >= 0 && H5Lexists(file, "kept", H5P_DEFAULT) > 0);
    assert_true((dataset = H5Dopen2(file, "a", H5P_DEFAULT)) >= 0);
    assert_true(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, got) >= 0);
    assert_true(memcmp(values, got, sizeof got) == 0 && H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    assert_true(H5Sclose(space) >= 0 && H5Pclose(dcpl) >= 0 && H5Zunregister(FILTER) >= 0);
}

static void test_a_dataset_whose_filter_refuses_early_allocation_costs_nothing_else(void **state)
{
    (void)state;
    each(refused_at_once);
}

/* ---- virtual datasets ---- */

/* Mappings and selections whose place is given by H5Soffset_simple. */
static void virtual_with_offsets(hid_t fapl)
{
    const hsize_t extent[] = {26}, start[] = {3}, half[] = {13};
    const hssize_t back[] = {-3}, forth[] = {10};
    hid_t file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), space = H5Screate_simple(1, extent, NULL);
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), memory = H5Screate_simple(1, half, NULL), dataset;
    int values[26], got[26] = {0};

    for (int i = 0; i < 26; i++)
        values[i] = i + 1;
    for (int i = 0; i < 2; i++) {
        dataset = H5Dcreate2(file, i ? "b" : "a", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 &&
                    H5Dclose(dataset) >= 0);
    }
    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, half, NULL) >= 0);
    assert_true(H5Soffset_simple(space, back) >= 0 && H5Pset_virtual(dcpl, space, ".", "a", space) >= 0);
    assert_true(H5Soffset_simple(space, forth) >= 0 && H5Pset_virtual(dcpl, space, ".", "b", space) >= 0);
    dataset = H5Dcreate2(file, "v", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    for (int again = 0; again < 2; again++) {
        assert_true(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, got) >= 0);
        assert_true(memcmp(got, values, sizeof got) == 0);
        assert_true(H5Dread(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, got) >= 0);
        assert_true(memcmp(got, values + 3, 13 * sizeof *got) == 0); /* HDF5 leaves that offset out */
        assert_true(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
        file = H5Fopen(FILE_NAME, H5F_ACC_RDWR, fapl);
        dataset = H5Dopen2(file, "v", H5P_DEFAULT);
    }
    assert_true(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0 && H5Pclose(dcpl) >= 0);
    assert_true(H5Sclose(space) >= 0 && H5Sclose(memory) >= 0);
}

static void test_virtual_datasets_know_offsets_of_selections(void **state)
{
    (void)state;
    each(virtual_with_offsets);
}

/* The extent that is set holds until somebody asks for it: then it follows the sources again. */
static void virtual_cut(hid_t fapl)
{
    const hsize_t extent[] = {20}, most[] = {H5S_UNLIMITED}, chunk[] = {5}, start[] = {0}, count[] = {H5S_UNLIMITED},
                  cut[] = {12};
    hid_t file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), space = H5Screate_simple(1, extent, most),
          dcpl = H5Pcreate(H5P_DATASET_CREATE), memory = H5Screate_simple(1, cut, NULL), source, first, other;
    int values[20], got[20] = {0};
    hsize_t now = 0;

    for (int i = 0; i < 20; i++)
        values[i] = i + 1;
    assert_true(H5Pset_chunk(dcpl, 1, chunk) >= 0);
    source = H5Dcreate2(file, "source", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(H5Dwrite(source, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 && H5Dclose(source) >= 0);
    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
    assert_true(H5Pset_layout(dcpl, H5D_VIRTUAL) >= 0 && H5Pset_virtual(dcpl, space, ".", "source", space) >= 0);
    assert_true(H5Dclose(H5Dcreate2(file, "v", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    assert_true((first = H5Dopen2(file, "v", H5P_DEFAULT)) >= 0);
    assert_true((other = H5Dopen2(file, "v", H5P_DEFAULT)) >= 0);
    assert_true(H5Dread(other, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, got) >= 0 && got[19] == 20);
    assert_true(H5Dset_extent(first, cut) >= 0);
    for (int i = 0; i < 2; i++) {
        memset(got, 0, sizeof got);
        assert_true(H5Dread(i ? other : first, H5T_NATIVE_INT, memory, H5S_ALL, H5P_DEFAULT, got) >= 0);
        assert_true(memcmp(got, values, 12 * sizeof *got) == 0 && got[12] == 0);
    }
    assert_true(H5Sclose(space) >= 0 && (space = H5Dget_space(other)) >= 0);
    assert_true(H5Sget_simple_extent_dims(space, &now, NULL) == 1 && now == 20);
    assert_true(H5Dread(first, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, got) >= 0 && got[19] == 20);
    assert_true(H5Dclose(first) >= 0 && H5Dclose(other) >= 0 && H5Fclose(file) >= 0);
    assert_true(H5Sclose(space) >= 0 && H5Sclose(memory) >= 0 && H5Pclose(dcpl) >= 0);
}

static void test_virtual_datasets_are_cut_until_their_extent_is_asked_for(void **state)
{
    (void)state;
    each(virtual_cut);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_can_be_unmounted_by_its_own_root),
        cmocka_unit_test(test_a_file_can_be_unmounted_by_another_path),
        cmocka_unit_test(test_swmr_starts_in_every_file_of_a_new_format),
        cmocka_unit_test(test_attempts_to_read_are_told_as_natively),
        cmocka_unit_test(test_a_file_open_for_reading_is_not_opened_for_swmr),
        cmocka_unit_test(test_a_file_made_for_swmr_is_there_at_once),
        cmocka_unit_test(test_external_links_hand_the_flags_of_swmr_on),
        cmocka_unit_test(test_metadata_is_kept_in_the_cache_until_the_last_handle_is_closed),
        cmocka_unit_test(test_links_of_a_class_that_is_not_there_are_in_no_way),
        cmocka_unit_test(test_a_file_is_made_anew_over_links_that_cannot_be_deleted),
        cmocka_unit_test(test_a_file_made_anew_counts_creations_from_zero),
        cmocka_unit_test(test_a_reference_to_what_was_deleted_at_once_leads_nowhere),
        cmocka_unit_test(test_references_into_a_file_that_is_there_are_kept),
        cmocka_unit_test(test_chunks_written_as_bytes_are_read_as_they_were_given),
        cmocka_unit_test(test_a_dataset_whose_filter_refuses_early_allocation_costs_nothing_else),
        cmocka_unit_test(test_virtual_datasets_know_offsets_of_selections),
        cmocka_unit_test(test_virtual_datasets_are_cut_until_their_extent_is_asked_for),
    };

    return test_main(tests, argc, argv, through_begin, through_end);
}
