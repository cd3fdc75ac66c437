/* File access properties, and what else tunes how HDF5 works on a file: with each of them the head, and every version,
 * of a file with history are what a plain file, kept at that time, is; HDF5 without the connector reads it; and the
 * program is given back what it has set. Where native HDF5 refuses, so is it here. Run with HDF5_VOL_CONNECTOR=h5cow.
 */
#include "random.h"
#include "through.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COW    "test_access_cow.h5"
#define NATIVE "test_access_native.h5"
#define WIDTH  4000

static hid_t default_fapl(bool native)
{
    return native ? H5Pcopy(native_fapl) : H5Pcreate(H5P_FILE_ACCESS);
}

static void clean(void)
{
    remove(COW);
    remove(NATIVE);
    remove(COW ".h5cow-old-1");
}

/* ---- content ---- */

static void write_numbers(hid_t file, const char *name, int value, int count)
{
    int *values = malloc(sizeof *values * (size_t)count);
    hid_t d = H5Dopen2(file, name, H5P_DEFAULT);

    if (values == NULL)
        abort();
    for (int i = 0; i < count; i++)
        values[i] = value + i % 1000;
    assert_true(d >= 0 && H5Dwrite(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 && H5Dclose(d) >= 0);
    free(values);
}

static void write_texts(hid_t file, int value)
{
    char text[3][100];
    const char *texts[3] = {text[0], text[1], text[2]};
    hid_t type = H5Tcopy(H5T_C_S1), d = H5Dopen2(file, "texts", H5P_DEFAULT);

    for (int i = 0; i < 3; i++)
        snprintf(text[i], sizeof text[i], "text %d of %d, a little longer than a number", i, value);
    assert_true(H5Tset_size(type, H5T_VARIABLE) >= 0);
    assert_true(d >= 0 && H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts) >= 0 && H5Dclose(d) >= 0);
    H5Tclose(type);
}

/* A state of the file: version VALUE. */
static void write_state(hid_t file, int value)
{
    hid_t space = H5Screate(H5S_SCALAR), object;
    char name[32];

    write_numbers(file, "chunked", value, WIDTH);
    write_numbers(file, "group/contiguous", value * 3, WIDTH);
    write_numbers(file, "tiny", value, 5);
    write_texts(file, value);
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "group/%d in %d", i, value);
        assert_true((object = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        H5Gclose(object);
    }
    snprintf(name, sizeof name, "attribute %d", value);
    assert_true((object = H5Acreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(H5Awrite(object, H5T_NATIVE_INT, &value) >= 0 && H5Aclose(object) >= 0);
    H5Sclose(space);
}

static void make_objects(hid_t file)
{
    const hsize_t dims = WIDTH, unlimited = H5S_UNLIMITED, chunk = 500, five = 5, three = 3;
    hid_t space = H5Screate_simple(1, &dims, &unlimited), fixed = H5Screate_simple(1, &dims, NULL),
          small = H5Screate_simple(1, &five, NULL), texts = H5Screate_simple(1, &three, NULL),
          dcpl = H5Pcreate(H5P_DATASET_CREATE), type = H5Tcopy(H5T_C_S1), object;

    assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0 && H5Tset_size(type, H5T_VARIABLE) >= 0);
    assert_true((object = H5Dcreate2(file, "chunked", H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    H5Dclose(object);
    assert_true((object = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    H5Gclose(object);
    assert_true((object = H5Dcreate2(file, "group/contiguous", H5T_STD_I32LE, fixed, H5P_DEFAULT, H5P_DEFAULT,
                                     H5P_DEFAULT)) >= 0);
    H5Dclose(object);
    assert_true((object = H5Dcreate2(file, "tiny", H5T_STD_I32LE, small, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    H5Dclose(object);
    assert_true((object = H5Dcreate2(file, "texts", type, texts, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    H5Dclose(object);
    H5Tclose(type);
    H5Pclose(dcpl);
    H5Sclose(texts);
    H5Sclose(small);
    H5Sclose(fixed);
    H5Sclose(space);
}

static void describe_numbers(hid_t file, const char *name, listing *l)
{
    int values[WIDTH] = {0};
    long long sum = 0;
    hid_t d = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(d);
    hssize_t count = H5Sget_simple_extent_npoints(space);

    assert_true(count <= WIDTH && H5Dread(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    for (int i = 0; i < count; i++)
        sum += (long long)values[i] * (i % 7 + 1);
    say(l, "%s: %d values from %d to %d, %lld\n", name, (int)count, values[0], values[count - 1], sum);
    H5Sclose(space);
    assert_true(H5Dclose(d) >= 0);
}

static herr_t note_link(hid_t group, const char *name, const H5L_info2_t *info, void *l)
{
    (void)group;
    say(l, "link %s %d\n", name, (int)info->type);
    return 0;
}

static herr_t note_attribute(hid_t object, const char *name, const H5A_info_t *info, void *l)
{
    int value = 0;
    hid_t a = H5Aopen(object, name, H5P_DEFAULT);

    (void)info;
    if (a < 0 || H5Aread(a, H5T_NATIVE_INT, &value) < 0 || H5Aclose(a) < 0)
        return -1;
    say(l, "%s = %d\n", name, value);
    return 0;
}

static void describe(hid_t file, listing *l)
{
    hid_t type = H5Tcopy(H5T_C_S1), d = H5Dopen2(file, "texts", H5P_DEFAULT), space = H5Dget_space(d);
    char *texts[3] = {NULL};

    clear(l);
    assert_true(H5Tset_size(type, H5T_VARIABLE) >= 0);
    assert_true(H5Lvisit2(file, H5_INDEX_NAME, H5_ITER_INC, note_link, l) >= 0);
    assert_true(H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_INC, NULL, note_attribute, l) >= 0);
    describe_numbers(file, "chunked", l);
    describe_numbers(file, "group/contiguous", l);
    describe_numbers(file, "tiny", l);
    assert_true(H5Dread(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts) >= 0);
    for (int i = 0; i < 3; i++)
        say(l, "%s\n", texts[i] == NULL ? "(none)" : texts[i]);
    H5Treclaim(type, space, H5P_DEFAULT, texts);
    H5Sclose(space);
    H5Tclose(type);
    assert_true(H5Dclose(d) >= 0);
}

static bool describe_file(const char *name, hid_t fapl, listing *l)
{
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, fapl);

    assert_true(file >= 0);
    if (file < 0)
        return false;
    describe(file, l);
    assert_true(H5Fclose(file) >= 0);
    return true;
}

/* ---- one setting ---- */

typedef struct setting {
    const char *name;
    herr_t (*access)(hid_t fapl);               /* NULL: as it is */
    herr_t (*creation)(hid_t fcpl);             /* NULL: as it is */
    void (*given_back)(hid_t fapl, listing *l); /* what H5Fget_access_plist tells of it */
    herr_t (*at_work)(hid_t file, int state);   /* done to the open file, after each state */
} setting;

#define STATES 3

/* Three openings for writing, the last one over more than one flush. */
static void run(const setting *s)
{
    listing kept[STATES + 1] = {{0}}, found = {0}, lists[2] = {{0}};
    char name[100];

    clean();
    during("with %s", s->name);
    for (int state = 1; state <= STATES; state++) {
        for (int native = 0; native < 2; native++) {
            hid_t fapl = default_fapl(native), fcpl = H5Pcreate(H5P_FILE_CREATE), file, list;

            assert_true(s->access == NULL || s->access(fapl) >= 0);
            assert_true(s->creation == NULL || s->creation(fcpl) >= 0);
            if (state == 1)
                file = H5Fcreate(native ? NATIVE : COW, H5F_ACC_TRUNC, fcpl, fapl);
            else
                file = H5Fopen(native ? NATIVE : COW, H5F_ACC_RDWR, fapl);
            assert_true(file >= 0);
            if (file < 0)
                goto failed;
            if (state == 1)
                make_objects(file);
            if (state == STATES) {
                write_numbers(file, "chunked", 77, WIDTH);
                assert_true(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
            }
            write_state(file, state);
            assert_true(s->at_work == NULL || s->at_work(file, state) >= 0);
            describe(file, &found);
            if (native)
                assert_true(same_text("while it is open", &found, &kept[0]));
            else {
                listing swap = kept[0];
                kept[0] = found;
                found = swap;
            }
            list = H5Fget_access_plist(file);
            clear(&lists[native]);
            if (s->given_back != NULL)
                s->given_back(list, &lists[native]);
            H5Pclose(list);
            assert_true(H5Fclose(file) >= 0);
            H5Pclose(fcpl);
            H5Pclose(fapl);
        }
        assert_true(same_text("given back", &lists[1], &lists[0]));
        if (!describe_file(NATIVE, native_fapl, &kept[state]) || !describe_file(COW, H5P_DEFAULT, &found))
            goto failed;
        snprintf(name, sizeof name, "head at version %d", state);
        assert_true(same_text(name, &kept[state], &found));
    }
    for (int version = 1; version <= STATES; version++) {
        hid_t fapl = default_fapl(false);

        snprintf(name, sizeof name, COW "@%d", version);
        assert_true(s->access == NULL || s->access(fapl) >= 0);
        for (int set = 0; set < 2; set++) {
            if (!describe_file(name, set ? fapl : H5P_DEFAULT, &found))
                continue;
            assert_true(same_text(name, &kept[version], &found));
        }
        H5Pclose(fapl);
    }
    /* HDF5 without the connector */
    {
        hid_t file = H5Fopen(COW, H5F_ACC_RDONLY, native_fapl), group;

        assert_true(file >= 0 && (group = H5Gopen2(file, "_versioned_data/versions/2", H5P_DEFAULT)) >= 0);
        if (file >= 0) {
            describe(group, &found);
            assert_true(same_text("natively", &kept[2], &found));
            assert_true(H5Gclose(group) >= 0 && H5Fclose(file) >= 0);
        }
    }
failed:
    for (int i = 0; i <= STATES; i++)
        free(kept[i].data);
    free(found.data);
    free(lists[0].data);
    free(lists[1].data);
}

/* ---- settings ---- */

static herr_t set_align(hid_t fapl)
{
    return H5Pset_alignment(fapl, 512, 4096);
}

static void told_align(hid_t fapl, listing *l)
{
    hsize_t threshold, alignment;

    assert_true(H5Pget_alignment(fapl, &threshold, &alignment) >= 0);
    say(l, "alignment %d %d\n", (int)threshold, (int)alignment);
}

static herr_t set_align_to_odd(hid_t fapl)
{
    return H5Pset_alignment(fapl, 1, 1000);
}

static herr_t set_blocks(hid_t fapl)
{
    return H5Pset_meta_block_size(fapl, 16384) < 0 || H5Pset_small_data_block_size(fapl, 8192) < 0 ||
                   H5Pset_sieve_buf_size(fapl, 1000) < 0
               ? -1
               : 0;
}

static herr_t set_no_blocks(hid_t fapl)
{
    return H5Pset_meta_block_size(fapl, 0) < 0 || H5Pset_small_data_block_size(fapl, 0) < 0 ||
                   H5Pset_sieve_buf_size(fapl, 0) < 0
               ? -1
               : 0;
}

static void told_blocks(hid_t fapl, listing *l)
{
    hsize_t metadata, raw;
    size_t sieve;

    assert_true(H5Pget_meta_block_size(fapl, &metadata) >= 0 && H5Pget_small_data_block_size(fapl, &raw) >= 0 &&
                H5Pget_sieve_buf_size(fapl, &sieve) >= 0);
    say(l, "blocks %d %d %d\n", (int)metadata, (int)raw, (int)sieve);
}

static herr_t set_chunk_cache(hid_t fapl)
{
    return H5Pset_cache(fapl, 0, 7, 1000, 0.1);
}

static void told_chunk_cache(hid_t fapl, listing *l)
{
    size_t slots, bytes;
    double preemption;

    assert_true(H5Pget_cache(fapl, NULL, &slots, &bytes, &preemption) >= 0);
    say(l, "cache %zu %zu %g\n", slots, bytes, preemption);
}

/* As small as HDF5 allows, so that it evicts all the time; METHOD of writing is minimum clean. */
static herr_t small_config(H5AC_cache_config_t *config)
{
    config->set_initial_size = true;
    config->initial_size = config->min_size = config->max_size = 1024;
    config->incr_mode = H5C_incr__off;
    config->decr_mode = H5C_decr__off;
    config->flash_incr_mode = H5C_flash_incr__off;
    return 0;
}

static herr_t set_metadata_cache(hid_t fapl)
{
    H5AC_cache_config_t config = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};

    return H5Pget_mdc_config(fapl, &config) < 0 || small_config(&config) < 0 ? -1 : H5Pset_mdc_config(fapl, &config);
}

static void told_metadata_cache(hid_t fapl, listing *l)
{
    H5AC_cache_config_t config = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};

    assert_true(H5Pget_mdc_config(fapl, &config) >= 0);
    say(l, "metadata cache %zu %zu %zu %d\n", config.initial_size, config.min_size, config.max_size,
        (int)config.incr_mode);
}

static herr_t change_metadata_cache(hid_t file, int state)
{
    H5AC_cache_config_t config = {.version = H5AC__CURR_CACHE_CONFIG_VERSION}, now = config;
    double rate;
    size_t size, least;
    int entries;

    (void)state;
    if (H5Fget_mdc_config(file, &config) < 0 || small_config(&config) < 0 || H5Fset_mdc_config(file, &config) < 0 ||
        H5Fget_mdc_config(file, &now) < 0 || now.max_size != 1024 || now.min_size != 1024 || now.initial_size != 1024 ||
        H5Fget_mdc_hit_rate(file, &rate) < 0 || H5Freset_mdc_hit_rate_stats(file) < 0 ||
        H5Fget_mdc_size(file, &size, &least, &size, &entries) < 0)
        return -1;
    write_numbers(file, "chunked", 5 + state, WIDTH);
    return 0;
}

static herr_t set_eviction(hid_t fapl)
{
    return H5Pset_evict_on_close(fapl, true);
}

static void told_eviction(hid_t fapl, listing *l)
{
    hbool_t evict;

    assert_true(H5Pget_evict_on_close(fapl, &evict) >= 0);
    say(l, "evict %d\n", evict);
}

static herr_t set_attempts(hid_t fapl)
{
    return H5Pset_metadata_read_attempts(fapl, 13);
}

static void told_attempts(hid_t fapl, listing *l)
{
    unsigned attempts;

    assert_true(H5Pget_metadata_read_attempts(fapl, &attempts) >= 0);
    say(l, "attempts %u\n", attempts);
}

static herr_t set_no_locks(hid_t fapl)
{
    return H5Pset_file_locking(fapl, false, true);
}

static herr_t set_locks(hid_t fapl)
{
    return H5Pset_file_locking(fapl, true, false);
}

static void told_locks(hid_t fapl, listing *l)
{
    hbool_t use, ignore;

    assert_true(H5Pget_file_locking(fapl, &use, &ignore) >= 0);
    say(l, "locks %d %d\n", use, ignore);
}

static herr_t set_garbage(hid_t fapl)
{
    return H5Pset_gc_references(fapl, 1) < 0 ? -1 : H5Pset_elink_file_cache_size(fapl, 8);
}

static void told_garbage(hid_t fapl, listing *l)
{
    unsigned collect, cached;

    assert_true(H5Pget_gc_references(fapl, &collect) >= 0 && H5Pget_elink_file_cache_size(fapl, &cached) >= 0);
    say(l, "collect %u, cached files %u\n", collect, cached);
}

#if !H5_VERSION_GE(2, 0,                                                                                               \
                   0) /* 2.2.0 ends at an assertion of its own, natively too, when it opens such a file for writing */
static herr_t set_image_of_cache(hid_t fapl)
{
    H5AC_cache_image_config_t config = {.version = H5AC__CURR_CACHE_IMAGE_CONFIG_VERSION,
                                        .generate_image = true,
                                        .save_resize_status = false,
                                        .entry_ageout = H5AC__CACHE_IMAGE__ENTRY_AGEOUT__NONE};

    return H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) < 0
               ? -1
               : H5Pset_mdc_image_config(fapl, &config);
}

static void told_image_of_cache(hid_t fapl, listing *l)
{
    H5AC_cache_image_config_t config = {.version = H5AC__CURR_CACHE_IMAGE_CONFIG_VERSION};

    assert_true(H5Pget_mdc_image_config(fapl, &config) >= 0);
    say(l, "image of the cache %d\n", config.generate_image);
}
#endif

static herr_t create_paged(hid_t fcpl)
{
    return H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_PAGE, false, 1) < 0
               ? -1
               : H5Pset_file_space_page_size(fcpl, 4096);
}

static herr_t create_paged_and_kept(hid_t fcpl)
{
    return H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_PAGE, true, 1) < 0
               ? -1
               : H5Pset_file_space_page_size(fcpl, 512);
}

static herr_t create_managed(hid_t fcpl)
{
    return H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_FSM_AGGR, true, 1);
}

static herr_t create_without_space_manager(hid_t fcpl)
{
    return H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_NONE, false, 1);
}

static herr_t create_with_user_block(hid_t fcpl)
{
    return H5Pset_userblock(fcpl, 2048) < 0 ? -1 : H5Pset_sizes(fcpl, 8, 8);
}

static herr_t set_page_buffer(hid_t fapl)
{
    return H5Pset_page_buffer_size(fapl, 16384, 20, 20);
}

static void told_page_buffer(hid_t fapl, listing *l)
{
    size_t size;
    unsigned metadata, raw;

    assert_true(H5Pget_page_buffer_size(fapl, &size, &metadata, &raw) >= 0);
    say(l, "page buffer %zu %u %u\n", size, metadata, raw);
}

static herr_t use_page_buffer(hid_t file, int state)
{
    unsigned accesses[2], hits[2], misses[2], evictions[2], bypasses[2];

    (void)state;
    return H5Fget_page_buffering_stats(file, accesses, hits, misses, evictions, bypasses) < 0 ||
                   (state > 1 && accesses[0] + bypasses[0] == 0)
               ? -1
               : H5Freset_page_buffering_stats(file);
}

static herr_t set_strong(hid_t fapl)
{
    return H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG);
}

static herr_t set_semi(hid_t fapl)
{
    return H5Pset_fclose_degree(fapl, H5F_CLOSE_SEMI);
}

static herr_t set_weak(hid_t fapl)
{
    return H5Pset_fclose_degree(fapl, H5F_CLOSE_WEAK);
}

static void told_degree(hid_t fapl, listing *l)
{
    H5F_close_degree_t degree;

    assert_true(H5Pget_fclose_degree(fapl, &degree) >= 0);
    say(l, "degree %d\n", (int)degree);
}

static unsigned flushed;

static herr_t note_flush(hid_t object, void *count)
{
    (void)object;
    ++*(unsigned *)count;
    return 0;
}

static herr_t set_flush_function(hid_t fapl)
{
    return H5Pset_object_flush_cb(fapl, note_flush, &flushed);
}

static herr_t flush_one(hid_t file, int state)
{
    hid_t d = H5Dopen2(file, "chunked", H5P_DEFAULT);
    unsigned before = flushed;
    herr_t status = H5Dflush(d);

    (void)state;
    H5Dclose(d);
    return flushed == before + 1 ? status : -1;
}

static herr_t ask_about_the_file(hid_t file, int state)
{
    H5F_info2_t info;
    H5F_retry_info_t retries;
    haddr_t end;
    hsize_t size;

    (void)state;
    if (H5Fget_info2(file, &info) < 0 || H5Fget_filesize(file, &size) < 0 || size == 0 || H5Fget_freespace(file) < 0 ||
        H5Fget_free_sections(file, H5FD_MEM_DEFAULT, 0, NULL) < 0 || H5Fget_eoa(file, &end) < 0 || end == 0 ||
        H5Fget_metadata_read_retry_info(file, &retries) < 0)
        return -1;
    for (int i = 0; i < H5F_NUM_METADATA_READ_RETRY_TYPES; i++)
        H5free_memory(retries.retries[i]);
    return H5Fincrement_filesize(file, 10000);
}

static herr_t log_metadata_cache(hid_t fapl)
{
    return H5Pset_mdc_log_options(fapl, true, "test_access.log", false);
}

static herr_t start_and_stop_logging(hid_t file, int state)
{
    hbool_t on, now;

    (void)state;
    return H5Fstart_mdc_logging(file) < 0 || H5Fget_mdc_logging_status(file, &on, &now) < 0 || !now ||
                   H5Fstop_mdc_logging(file) < 0
               ? -1
               : 0;
}

static void test_head_and_versions_are_right_with_every_setting(void **state)
{
    static const setting settings[] = {
        {"nothing set", NULL, NULL, NULL, NULL},
        {"an alignment", set_align, NULL, told_align, NULL},
        {"an alignment that is no power of two", set_align_to_odd, NULL, told_align, NULL},
        {"large blocks", set_blocks, NULL, told_blocks, NULL},
        {"no blocks", set_no_blocks, NULL, told_blocks, NULL},
        {"a small chunk cache", set_chunk_cache, NULL, told_chunk_cache, NULL},
        {"a small metadata cache", set_metadata_cache, NULL, told_metadata_cache, NULL},
        {"a metadata cache that is changed", NULL, NULL, told_metadata_cache, change_metadata_cache},
        {"metadata evicted on close", set_eviction, NULL, told_eviction, NULL},
        {"attempts at reading metadata", set_attempts, NULL, told_attempts, NULL},
        {"no file locking", set_no_locks, NULL, told_locks, NULL},
        {"file locking", set_locks, NULL, told_locks, NULL},
        {"garbage collection", set_garbage, NULL, told_garbage, NULL},
#if !H5_VERSION_GE(2, 0, 0)
        {"an image of the metadata cache", set_image_of_cache, NULL, told_image_of_cache, NULL},
#endif
        {"pages", NULL, create_paged, NULL, NULL},
        {"pages whose free space is kept", NULL, create_paged_and_kept, NULL, NULL},
        {"a page buffer", set_page_buffer, create_paged, told_page_buffer, use_page_buffer},
        {"free space that is kept", NULL, create_managed, NULL, NULL},
        {"no space manager", NULL, create_without_space_manager, NULL, NULL},
        {"a user block", NULL, create_with_user_block, NULL, NULL},
        {"strong closing", set_strong, NULL, told_degree, NULL},
        {"semi-strong closing", set_semi, NULL, told_degree, NULL},
        {"weak closing", set_weak, NULL, told_degree, NULL},
        {"a function called after flushes", set_flush_function, NULL, NULL, flush_one},
        {"questions about the file", NULL, NULL, NULL, ask_about_the_file},
        {"a log of the metadata cache", log_metadata_cache, NULL, NULL, start_and_stop_logging},
    };
    (void)state;

    for (size_t i = 0; i < COUNT(settings); i++)
        run(&settings[i]);
    remove("test_access.log");
}

static H5F_libver_t bound[2];

static herr_t set_bounds(hid_t fapl)
{
    return H5Pset_libver_bounds(fapl, bound[0], bound[1]);
}

static void told_bounds(hid_t fapl, listing *l)
{
    H5F_libver_t low, high;

    assert_true(H5Pget_libver_bounds(fapl, &low, &high) >= 0);
    say(l, "bounds %d %d\n", (int)low, (int)high);
}

static void test_library_version_bounds(void **state)
{
    char name[64];
    const setting s = {name, set_bounds, NULL, told_bounds, NULL};
    (void)state;

    for (int low = H5F_LIBVER_EARLIEST; low <= H5F_LIBVER_LATEST; low++)
        for (int high = low > H5F_LIBVER_V18 ? low : H5F_LIBVER_V18; high <= H5F_LIBVER_LATEST; high++) {
            bound[0] = (H5F_libver_t)low;
            bound[1] = (H5F_libver_t)high;
            snprintf(name, sizeof name, "bounds %d to %d", low, high);
            run(&s);
        }
}

static void test_page_buffer_for_a_file_without_pages_is_as_natively(void **state)
{
    bool opens[2][2] = {{false}};
    listing found = {0};
    (void)state;

    clean();
    for (int native = 0; native < 2; native++) {
        hid_t fapl = default_fapl(native), file;

        assert_true((file = H5Fcreate(native ? NATIVE : COW, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
        make_objects(file);
        assert_true(H5Fclose(file) >= 0 && set_page_buffer(fapl) >= 0);
        for (int flags = 0; flags < 2; flags++) {
            H5E_BEGIN_TRY
            {
                file = H5Fopen(native ? NATIVE : COW, flags ? H5F_ACC_RDWR : H5F_ACC_RDONLY, fapl);
            }
            H5E_END_TRY
            opens[native][flags] = file >= 0;
            if (file >= 0 && flags)
                write_state(file, 1);
            assert_true(file < 0 || H5Fclose(file) >= 0);
        }
        H5Pclose(fapl);
    }
    assert_true(memcmp(opens[0], opens[1], sizeof opens[0]) == 0);
    assert_true(describe_file(COW "@1", H5P_DEFAULT, &found) && describe_file(COW, H5P_DEFAULT, &found));
    free(found.data);
}

/* What the page buffer is told to be, and whether there are statistics of it. */
static void say_page_buffer(listing *l, const char *what, hid_t file)
{
    unsigned n[5][2] = {{0}};
    hid_t list;
    herr_t got, reset;

    if (file < 0) {
        say(l, "%s: refused\n", what);
        return;
    }
    list = H5Fget_access_plist(file);
    say(l, "%s: ", what);
    told_page_buffer(list, l);
    got = H5Fget_page_buffering_stats(file, n[0], n[1], n[2], n[3], n[4]);
    reset = H5Freset_page_buffering_stats(file);
    say(l, "statistics %s, reset %s\n", got < 0 ? "refused" : "told", reset < 0 ? "refused" : "done");
    if (reset >= 0) {
        assert_true(H5Fget_page_buffering_stats(file, n[0], n[1], n[2], n[3], n[4]) >= 0);
        for (int i = 0; i < 5; i++)
            assert_true(n[i][0] == 0 && n[i][1] == 0);
    }
    H5Pclose(list);
}

static void test_page_buffer_is_told_as_natively(void **state)
{
    static const size_t sizes[] = {0, 1000, 4096, 10000, 16384};
    listing found[2] = {{0}};
    (void)state;

    for (size_t i = 0; i < 2 * COUNT(sizes); i++) {
        clean();
        for (int native = 0; native < 2; native++) {
            const char *name = native ? NATIVE : COW;
            hid_t plain = default_fapl(native), fapl = default_fapl(native), fcpl = H5Pcreate(H5P_FILE_CREATE), file,
                  other;
            listing *l = &found[native];

            during("page buffer %zu", i);
            assert_true(H5Pset_page_buffer_size(fapl, sizes[i / 2], 20, 30) >= 0 &&
                        (i % 2 == 0 || create_paged(fcpl) >= 0));
            H5E_BEGIN_TRY
            {
                file = H5Fcreate(name, H5F_ACC_TRUNC, fcpl, fapl);
                say_page_buffer(l, "created", file);
                if (file < 0)
                    file = H5Fcreate(name, H5F_ACC_TRUNC, fcpl, plain);
                make_objects(file);
                write_state(file, 1);
                say_page_buffer(l, "and written", file);
                assert_true(H5Fclose(file) >= 0);
                assert_true((file = H5Fopen(name, H5F_ACC_RDWR, fapl)) >= 0);
                assert_true((other = H5Fopen(name, H5F_ACC_RDWR, plain)) >= 0);
                say_page_buffer(l, "opened for writing", file);
                say_page_buffer(l, "a second time", other);
                write_state(file, 2);
                assert_true(H5Fclose(file) >= 0 && H5Fclose(other) >= 0);
                assert_true((file = H5Fopen(name, H5F_ACC_RDWR, plain)) >= 0);
                say_page_buffer(l, "opened without", file);
                assert_true(H5Fclose(file) >= 0 && (file = H5Fopen(name, H5F_ACC_RDONLY, fapl)) >= 0);
                say_page_buffer(l, "read", file);
                assert_true((other = H5Freopen(file)) >= 0);
                say_page_buffer(l, "reopened", other);
                assert_true(H5Fclose(file) >= 0 && H5Fclose(other) >= 0);
            }
            H5E_END_TRY
            H5Pclose(fcpl);
            H5Pclose(fapl);
            H5Pclose(plain);
        }
    }
    assert_true(same_text("page buffers", &found[1], &found[0]));
    free(found[0].data);
    free(found[1].data);
}

#define ROW 600

static void fill(unsigned char row[ROW], uint64_t seed)
{
    for (int i = 0; i < ROW; i++)
        row[i] = (unsigned char)(seed == 0 ? 1 : splitmix64(&seed));
}

static void make_rows(hid_t file)
{
    const hsize_t dims[2] = {2, ROW}, chunk[2] = {1, ROW}, width = 1000;
    hid_t space = H5Screate_simple(2, dims, NULL), line = H5Screate_simple(1, &width, NULL),
          dcpl = H5Pcreate(H5P_DATASET_CREATE), d;

    assert_true(H5Pset_chunk(dcpl, 2, chunk) >= 0 && H5Pset_deflate(dcpl, 4) >= 0);
    assert_true((d = H5Dcreate2(file, "other", H5T_STD_I16LE, line, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(H5Dclose(d) >= 0);
    write_numbers(file, "other", 0, 1000);
    assert_true((d = H5Dcreate2(file, "rows", H5T_STD_U8LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    assert_true(H5Dclose(d) >= 0);
    H5Pclose(dcpl);
    H5Sclose(line);
    H5Sclose(space);
}

static void write_row(hid_t d, hsize_t number, uint64_t seed)
{
    const hsize_t start[2] = {number, 0}, count[2] = {1, ROW};
    hid_t memory = H5Screate_simple(2, count, NULL), space = H5Dget_space(d);
    unsigned char row[ROW];

    fill(row, seed);
    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                H5Dwrite(d, H5T_NATIVE_UCHAR, memory, space, H5P_DEFAULT, row) >= 0);
    H5Sclose(space);
    H5Sclose(memory);
}

/* What makes native HDF5 1.14.5 lose the first row, with a page buffer of one page. */
static void change_rows(hid_t at)
{
    int numbers[1000];
    hid_t d = H5Dopen2(at, "rows", H5P_DEFAULT), other = H5Dopen2(at, "other", H5P_DEFAULT);

    assert_true(d >= 0 && other >= 0);
    write_row(d, 0, 0);
    write_row(d, 0, 1); /* larger: its page is freed, and given out again */
    assert_true(H5Dread(other, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    write_row(d, 1, 2);
    assert_true(H5Dclose(d) >= 0 && H5Dclose(other) >= 0);
}

static void check_rows(const char *name)
{
    unsigned char rows[2][ROW], expected[ROW];
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT), d;

    assert_true(file >= 0);
    assert_true((d = H5Dopen2(file, "rows", H5P_DEFAULT)) >= 0);
    assert_true(H5Dread(d, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) >= 0);
    for (uint64_t i = 0; i < 2; i++) {
        fill(expected, i + 1);
        assert_memory_equal(rows[i], expected, ROW);
    }
    assert_true(H5Dclose(d) >= 0 && H5Fclose(file) >= 0);
}

static herr_t set_one_page(hid_t fapl)
{
    return H5Pset_page_buffer_size(fapl, 4096, 0, 0) < 0 ? -1 : H5Pset_cache(fapl, 0, 521, 0, 0.75);
}

static void test_a_page_buffer_loses_nothing_that_is_written(void **state)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), fapl = default_fapl(false), file, group;
    (void)state;

    assert_true(create_paged(fcpl) >= 0 && set_one_page(fapl) >= 0);
    for (int way = 0; way < 3; way++) {
        during("way %d", way);
        clean();
        assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, fcpl, way == 0 ? fapl : H5P_DEFAULT)) >= 0);
        make_rows(file);
        if (way == 0)
            change_rows(file);
        assert_true(H5Fclose(file) >= 0);
        if (way == 1) {
            assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, fapl)) >= 0);
            change_rows(file);
            assert_true(H5Fclose(file) >= 0);
        } else if (way == 2) { /* through a link, with the list of a plain file */
            assert_true((file = H5Fcreate(NATIVE, H5F_ACC_TRUNC, fcpl, native_fapl)) >= 0);
            assert_true(H5Lcreate_external(COW, "/", file, "there", H5P_DEFAULT, H5P_DEFAULT) >= 0);
            assert_true(H5Fclose(file) >= 0 && (file = H5Fopen(NATIVE, H5F_ACC_RDWR, fapl)) >= 0);
            assert_true((group = H5Gopen2(file, "there", H5P_DEFAULT)) >= 0);
            change_rows(group);
            assert_true(H5Gclose(group) >= 0 && H5Fclose(file) >= 0);
        }
        check_rows(COW);
        check_rows(way == 0 ? COW "@1" : COW "@2");
    }
    H5Pclose(fapl);
    H5Pclose(fcpl);
}

/* HDF5 1.14.5 takes no metadata to lie across the end of a page; the chunk index of a file of HDF5 1.10 may, from 1,025 chunks on. */
static void test_a_page_buffer_reads_large_chunk_indexes(void **state)
{
    enum { CHUNKS = 3000, PAGE = 16384 };
    const hsize_t dims[1] = {CHUNKS}, chunk[1] = {1};
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), dcpl = H5Pcreate(H5P_DATASET_CREATE), fapl = default_fapl(false), file, d;
    hid_t space = H5Screate_simple(1, dims, NULL);
    static signed char numbers[CHUNKS], found[CHUNKS];
    (void)state;

    clean();
    for (int i = 0; i < CHUNKS; i++)
        numbers[i] = (signed char)(i % 100);
    assert_true(create_paged(fcpl) >= 0 && H5Pset_file_space_page_size(fcpl, PAGE) >= 0);
    assert_true(H5Pset_chunk(dcpl, 1, chunk) >= 0 && H5Pset_page_buffer_size(fapl, 4 * PAGE, 0, 0) >= 0);
    assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, fcpl, H5P_DEFAULT)) >= 0);
    assert_true((d = H5Dcreate2(file, "d", H5T_NATIVE_SCHAR, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    for (int version = 1; version <= 3; version++) {
        numbers[version * 700] = (signed char)-version;
        assert_true(H5Dwrite(d, H5T_NATIVE_SCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
        assert_true(H5Dclose(d) >= 0 && H5Fclose(file) >= 0);
        for (int way = 0; way < 3; way++) {
            static const char *const names[] = {COW, COW, COW "@1"};
            const unsigned flags = way == 1 ? H5F_ACC_RDWR : H5F_ACC_RDONLY;

            during("version %d, way %d", version, way);
            assert_true((file = H5Fopen(names[way], flags, fapl)) >= 0);
            assert_true((d = H5Dopen2(file, "d", H5P_DEFAULT)) >= 0);
            assert_true(H5Dread(d, H5T_NATIVE_SCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0);
            for (int i = 0; i < CHUNKS; i++)
                assert_int_equal(found[i], way == 2 && i > 700 && i % 700 == 0 ? i % 100 : numbers[i]);
            assert_true(H5Dclose(d) >= 0 && H5Fclose(file) >= 0);
        }
        assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
        assert_true((d = H5Dopen2(file, "d", H5P_DEFAULT)) >= 0);
    }
    assert_true(H5Dclose(d) >= 0 && H5Fclose(file) >= 0);
    H5Sclose(space);
    H5Pclose(fapl);
    H5Pclose(dcpl);
    H5Pclose(fcpl);
}

static void test_data_is_where_the_alignment_wants_it(void **state)
{
    hid_t fapl = default_fapl(false), file, d;
    haddr_t address;
    hsize_t count = 0, size, offset;
    unsigned mask;
    (void)state;

    clean();
    assert_true(set_align(fapl) >= 0);
    assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
    make_objects(file);
    write_state(file, 1);
    assert_true(H5Fclose(file) >= 0 && (file = H5Fopen(COW, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    assert_true((d = H5Dopen2(file, "chunked", H5P_DEFAULT)) >= 0 && H5Dget_num_chunks(d, H5S_ALL, &count) >= 0 &&
                count == 8);
    for (hsize_t i = 0; i < count; i++)
        assert_true(H5Dget_chunk_info(d, H5S_ALL, i, &offset, &mask, &address, &size) >= 0 && address != HADDR_UNDEF &&
                    address % 4096 == 0);
    assert_true(H5Dclose(d) >= 0 && H5Fclose(file) >= 0);
    H5Pclose(fapl);
}

/* What each degree makes of H5Fclose while a dataset is open, and of what is written through that afterwards. */
static void test_closing_with_open_objects_is_as_natively(void **state)
{
    (void)state;
    for (int degree = H5F_CLOSE_DEFAULT; degree <= H5F_CLOSE_STRONG; degree++) {
        int told[2][5] = {{0}}, value = 4711;
        listing found[2] = {{0}};

        clean();
        for (int native = 0; native < 2; native++) {
            hid_t fapl = default_fapl(native), file, d, space, one;
            const hsize_t length = 1, start = 3;

            assert_true(H5Pset_fclose_degree(fapl, (H5F_close_degree_t)degree) >= 0);
            assert_true((file = H5Fcreate(native ? NATIVE : COW, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
            make_objects(file);
            write_state(file, 1);
            assert_true((d = H5Dopen2(file, "chunked", H5P_DEFAULT)) >= 0);
            space = H5Dget_space(d);
            one = H5Screate_simple(1, &length, NULL);
            H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &length, NULL);
            H5E_BEGIN_TRY
            {
                told[native][0] = H5Fclose(file) >= 0;
                told[native][1] = H5Iis_valid(file) > 0;
                told[native][2] = H5Iis_valid(d) > 0;
                told[native][3] = H5Dwrite(d, H5T_NATIVE_INT, one, space, H5P_DEFAULT, &value) >= 0;
                told[native][4] = H5Dclose(d) >= 0;
            }
            H5E_END_TRY
            if (told[native][1])
                assert_true(H5Fclose(file) >= 0);
            H5Sclose(one);
            H5Sclose(space);
            H5Pclose(fapl);
            describe_file(native ? NATIVE : COW, native ? native_fapl : H5P_DEFAULT, &found[native]);
        }
        assert_true(memcmp(told[0], told[1], sizeof told[0]) == 0);
        assert_true(same_text("after closing", &found[1], &found[0]));
        assert_true(describe_file(COW "@1", H5P_DEFAULT, &found[0]) && same_text("version", &found[1], &found[0]));
        free(found[0].data);
        free(found[1].data);
    }
}

/* Both openings of one file must agree, as natively. */
static void test_a_second_opening_with_another_degree_is_refused_as_natively(void **state)
{
    listing found[2] = {{0}};
    (void)state;

    clean();
    for (int native = 0; native < 2; native++) {
        hid_t weak = default_fapl(native), strong = default_fapl(native), file, other;

        assert_true(set_weak(weak) >= 0 && set_strong(strong) >= 0);
        assert_true((file = H5Fcreate(native ? NATIVE : COW, H5F_ACC_TRUNC, H5P_DEFAULT, weak)) >= 0);
        make_objects(file);
        H5E_BEGIN_TRY
        {
            other = H5Fopen(native ? NATIVE : COW, H5F_ACC_RDWR, strong);
        }
        H5E_END_TRY
        assert_true(other < 0);
        write_state(file, 1);
        assert_true(H5Fclose(file) >= 0);
        assert_true(describe_file(native ? NATIVE : COW "@1", native ? native_fapl : H5P_DEFAULT, &found[native]));
        H5Pclose(weak);
        H5Pclose(strong);
    }
    assert_true(same_text("version", &found[1], &found[0]));
    free(found[0].data);
    free(found[1].data);
}

/* Two handles on one file: what one is told of the metadata cache the other one set. */
static void test_handles_on_one_file_share_the_metadata_cache(void **state)
{
    (void)state;
    for (int native = 0; native < 2; native++) {
        hid_t fapl = default_fapl(native), file, other;
        H5AC_cache_config_t config = {.version = H5AC__CURR_CACHE_CONFIG_VERSION}, told = config;

        clean();
        assert_true((file = H5Fcreate(native ? NATIVE : COW, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
        assert_true(H5Fget_mdc_config(file, &config) >= 0);
        small_config(&config);
        assert_true(H5Fset_mdc_config(file, &config) >= 0);
        assert_true((other = H5Fopen(native ? NATIVE : COW, H5F_ACC_RDWR, fapl)) >= 0);
        assert_true(H5Fget_mdc_config(other, &told) >= 0 && told.max_size == 1024 && told.min_size == 1024);
        config.min_size = config.max_size = config.initial_size = 3 << 20;
        assert_true(H5Fset_mdc_config(other, &config) >= 0);
        assert_true(H5Fget_mdc_config(file, &told) >= 0 && told.max_size == 3 << 20 && told.min_size == 3 << 20);
        config.min_size = 10;
        H5E_BEGIN_TRY
        {
            assert_true(H5Fset_mdc_config(other, &config) < 0);
        }
        H5E_END_TRY
        assert_true(H5Fclose(other) >= 0 && H5Fclose(file) >= 0);
        H5Pclose(fapl);
    }
}

static size_t cache_limit(hid_t file)
{
    size_t most = 0, least, size;
    int entries;

    assert_true(H5Fget_mdc_size(file, &most, &least, &size, &entries) >= 0);
    return most;
}

/* Also after what needs a larger one while it lasts: a commit and a copy. */
static void test_a_small_metadata_cache_is_as_small_as_it_was_asked_for(void **state)
{
    (void)state;
    for (int native = 0; native < 2; native++) {
        hid_t fapl = default_fapl(native), file;
        H5AC_cache_config_t config = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};

        clean();
        assert_true(H5Pget_mdc_config(fapl, &config) >= 0);
        small_config(&config);
        assert_true(H5Pset_mdc_config(fapl, &config) >= 0);
        assert_true((file = H5Fcreate(native ? NATIVE : COW, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
        assert_true(cache_limit(file) == 1024);
        H5Gclose(H5Gcreate2(file, "a", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 && cache_limit(file) == 1024);
        assert_true(H5Ocopy(file, "a", file, "b", H5P_DEFAULT, H5P_DEFAULT) >= 0 && cache_limit(file) == 1024);
        assert_true(H5Fclose(file) >= 0 && H5Pclose(fapl) >= 0);
    }
}

/* HDF5 alone loses it: the cache forgets that it has no link yet. */
static void test_an_object_without_a_link_survives_a_small_metadata_cache(void **state)
{
    (void)state;
    for (int before = 0; before < 2; before++) {
        hid_t fapl = default_fapl(false), file, group;
        H5AC_cache_config_t config = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};
        char name[32];

        clean();
        assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
        assert_true(H5Fget_mdc_config(file, &config) >= 0);
        small_config(&config);
        assert_true(!before || H5Fset_mdc_config(file, &config) >= 0);
        assert_true((group = H5Gcreate_anon(file, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        assert_true(before || H5Fset_mdc_config(file, &config) >= 0);
        for (int i = 0; i < 100; i++) {
            snprintf(name, sizeof name, "group %d", i);
            H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        }
        assert_true(H5Olink(group, file, "late", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Gclose(group) >= 0 && H5Fclose(file) >= 0);
        assert_true((file = H5Fopen(COW, H5F_ACC_RDONLY, fapl)) >= 0);
        assert_true((group = H5Gopen2(file, "late", H5P_DEFAULT)) >= 0);
        assert_true(H5Gclose(group) >= 0 && H5Fclose(file) >= 0 && H5Pclose(fapl) >= 0);
    }
}

static void test_conversion_to_an_older_format_is_refused_with_a_sentence(void **state)
{
    hid_t file, fapl = default_fapl(false);
    listing before = {0}, after = {0};
    (void)state;

    clean();
    assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
    make_objects(file);
    write_state(file, 1);
    describe(file, &before);
    H5E_BEGIN_TRY
    {
        assert_true(H5Fformat_convert(file) < 0);
    }
    H5E_END_TRY
    describe(file, &after);
    assert_true(same_text("after the refusal", &before, &after));
    assert_true(H5Fclose(file) >= 0 && describe_file(COW "@1", H5P_DEFAULT, &after));
    assert_true(same_text("version", &before, &after));
    free(before.data);
    free(after.data);
    H5Pclose(fapl);
}

/* ---- shared messages ---- */

static void say_shared(listing *l, const char *when, hid_t file)
{
    hid_t list = H5Fget_create_plist(file);
    unsigned n, kinds, least;

    assert_true(list >= 0 && H5Pget_shared_mesg_nindexes(list, &n) >= 0);
    say(l, "%s:", when);
    for (unsigned i = 0; i < n; i++) {
        assert_true(H5Pget_shared_mesg_index(list, i, &kinds, &least) >= 0);
        say(l, " %x from %u", kinds, least);
    }
    say(l, "\n");
    H5Pclose(list);
}

static void reopen_shared(listing *l, const char *name, hid_t fapl, const char *when)
{
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, fapl);

    assert_true(file >= 0);
    say_shared(l, when, file);
    assert_true(H5Fclose(file) >= 0);
}

/* AT: the index that shares dataspaces, or -1. */
static hid_t share(int at)
{
    hid_t list = H5Pcreate(H5P_FILE_CREATE);

    assert_true(H5Pset_shared_mesg_nindexes(list, 2) >= 0);
    for (unsigned i = 0; i < 2; i++)
        assert_true(H5Pset_shared_mesg_index(list, i,
                                             (i == 0 ? H5O_SHMESG_DTYPE_FLAG : H5O_SHMESG_ATTR_FLAG) |
                                                 (at == (int)i ? H5O_SHMESG_SDSPACE_FLAG : 0),
                                             50 + i) >= 0);
    return list;
}

static void share_dataspaces(const char *name, hid_t fapl, listing *l)
{
    static const int order[] = {0, 1, 1, -1, 0};
    hid_t list, file;

    clean();
    for (size_t i = 0; i < COUNT(order); i++) {
        list = share(order[i]);
        assert_true((file = H5Fcreate(name, H5F_ACC_TRUNC, list, fapl)) >= 0);
        say_shared(l, "created", file);
        reopen_shared(l, name, fapl, "opened beside that");
        assert_true(H5Fclose(file) >= 0 && H5Pclose(list) >= 0);
        reopen_shared(l, name, fapl, "opened again");
        assert_true((file = H5Fopen(name, H5F_ACC_RDWR, fapl)) >= 0);
        H5Gclose(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        say_shared(l, "written", file);
        assert_true(H5Fclose(file) >= 0);
        reopen_shared(l, name, fapl, "after that");
    }
}

static void test_that_dataspaces_are_shared_is_told(void **state)
{
    listing found = {0}, native = {0};
    (void)state;

    share_dataspaces(NATIVE, native_fapl, &native);
    share_dataspaces(COW, H5P_DEFAULT, &found);
    assert_true(same_text("shared messages", &native, &found));
    clean();
    free(found.data);
    free(native.data);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_that_dataspaces_are_shared_is_told),
        cmocka_unit_test(test_head_and_versions_are_right_with_every_setting),
        cmocka_unit_test(test_library_version_bounds),
        cmocka_unit_test(test_page_buffer_for_a_file_without_pages_is_as_natively),
        cmocka_unit_test(test_page_buffer_is_told_as_natively),
        cmocka_unit_test(test_a_page_buffer_loses_nothing_that_is_written),
        cmocka_unit_test(test_a_page_buffer_reads_large_chunk_indexes),
        cmocka_unit_test(test_data_is_where_the_alignment_wants_it),
        cmocka_unit_test(test_closing_with_open_objects_is_as_natively),
        cmocka_unit_test(test_a_second_opening_with_another_degree_is_refused_as_natively),
        cmocka_unit_test(test_handles_on_one_file_share_the_metadata_cache),
        cmocka_unit_test(test_a_small_metadata_cache_is_as_small_as_it_was_asked_for),
        cmocka_unit_test(test_an_object_without_a_link_survives_a_small_metadata_cache),
        cmocka_unit_test(test_conversion_to_an_older_format_is_refused_with_a_sentence),
    };
    int status = test_main(tests, argc, argv, through_begin, through_end);

    clean();
    return status;
}
