/* A close that reports an error after its commit: HDF5 may fail while it takes down what it has of a file in memory, and nothing is
 * lost then. The program is told so, by the error stack and on standard error.
 */
#include "harness.h"
#include "instead.h"
#include "with_connector.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <hdf5.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "test_closing.h5"
#define SAID      "test_closing.txt"

static int
    fails; /* the so-maniest of the closes to come: 1 is that of the history's own handle, 2 that of the program's */

INSTEAD(herr_t, H5VLfile_close, (void *file, hid_t connector, hid_t dxpl, void **req))
{
    if (fails == 0 || --fails > 0)
        return real_H5VLfile_close(file, connector, dxpl, req);
    H5Eclear2(H5E_DEFAULT);
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_RESOURCE, H5E_NOSPACE,
             "no memory, said the test");
    return -1;
}

static herr_t add_line(unsigned n, const H5E_error2_t *error, void *context)
{
    char *text = context;

    (void)n;
    strncat(text, error->desc, 4000 - strlen(text));
    strcat(text, "\n");
    return 0;
}

/* What H5Fclose returned, its error stack in STACK, and what was said on standard error in SAID_NOW. */
static herr_t close_and_listen(hid_t file, char stack[8192], char said_now[8192])
{
    int own = dup(2), to = open(SAID, O_RDWR | O_CREAT | O_TRUNC, 0600);
    ssize_t n;
    herr_t status;

    assert_true(own >= 0 && to >= 0 && dup2(to, 2) == 2);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    status = H5Fclose(file);
    stack[0] = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, add_line, stack);
    fflush(stderr);
    dup2(own, 2);
    n = pread(to, said_now, 8191, 0);
    said_now[n < 0 ? 0 : n] = '\0';
    close(to);
    close(own);
    unlink(SAID);
    return status;
}

static hid_t made(hid_t fapl, hid_t *space)
{
    static const int values[5000] = {1, 2, 3};
    hsize_t n = 5000;
    hid_t file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), dataset;

    assert_true(file >= 0 && (*space = H5Screate_simple(1, &n, NULL)) >= 0);
    dataset = H5Dcreate2(file, "x", H5T_NATIVE_INT, *space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(dataset >= 0 && H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dclose(dataset) >= 0);
    return file;
}

static void test_close_that_fails_after_the_commit_says_that_it_happened(void **state)
{
    hid_t fapl = connector_fapl(""), space, file = made(fapl, &space), version;
    char stack[8192], said[8192];

    (void)state;
    fails = 2;
    assert_true(close_and_listen(file, stack, said) < 0);
    assert_non_null(strstr(stack, "no memory, said the test"));
    assert_non_null(strstr(stack, FILE_NAME ": all changes are committed"));
    assert_non_null(strstr(said, FILE_NAME ": all changes are committed"));
    assert_null(strstr(said, "lost"));
    /* and it is true, before anything else is closed */
    assert_true((version = H5Fopen(FILE_NAME "@1", H5F_ACC_RDONLY, fapl)) >= 0);
    assert_true(H5Lexists(version, "x", H5P_DEFAULT) > 0 && H5Fclose(version) >= 0);
    assert_true(close_and_listen(file, stack, said) >= 0);
    assert_string_equal(said, "");
    H5Sclose(space);
    H5Pclose(fapl);
}

/* By its close degree HDF5 does not close what is in use: the program's mistake, natively too, and no word on standard error. */
static void test_close_that_is_refused_says_nothing(void **state)
{
    hid_t fapl = connector_fapl(""), space, file, group;
    char stack[8192], said[8192];

    (void)state;
    assert_true(H5Pset_fclose_degree(fapl, H5F_CLOSE_SEMI) >= 0);
    file = made(fapl, &space);
    assert_true((group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(close_and_listen(file, stack, said) < 0);
    assert_string_equal(said, "");
    assert_true(H5Gclose(group) >= 0 && close_and_listen(file, stack, said) >= 0);
    assert_string_equal(said, "");
    H5Sclose(space);
    H5Pclose(fapl);
    remove(FILE_NAME);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_close_that_fails_after_the_commit_says_that_it_happened),
        cmocka_unit_test(test_close_that_is_refused_says_nothing),
    };

    return test_main(tests, argc, argv, NULL, NULL);
}
