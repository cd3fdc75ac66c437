/* The table of properties, and the drawing: see properties.h. What native HDF5 cannot do with one is said beside it. */
#include "properties.h"

#include "filter.h"
#include "operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES 40 /* at most so many properties */

/* What the program has to know of the opening. */
static struct opening {
    H5F_libver_t high;
    H5F_close_degree_t degree;
    bool writes, history, chunks, small, evicts, swmr, locks, told_locks;
} opening;

/* And of the file. */
static struct created {
    hsize_t page; /* bytes; 0: it has none */
    bool newer;   /* natively it does not open with an upper bound below V110 */
    bool persists, narrow;
} created;

/* ---- random numbers ---- */

typedef struct dice {
    uint64_t left;
} dice;

static size_t roll(dice *d, size_t n)
{
    size_t result = (size_t)(d->left % n);
    d->left /= n;
    return result;
}

#define NOTHING          1 /* of a function that sets a property: not here */
#define ONE_OF(d, array) ((array)[roll(d, sizeof(array) / sizeof *(array))])

/* ---- access to the file ---- */

static const char *const bound_names[] = {"earliest", "v18", "v110", "v112", "v114", "v200"};

/* What the twin cannot have natively is not drawn: see know_created_file(). */
static void some_bounds(dice *d, H5F_libver_t *low, H5F_libver_t *high)
{
    *low = (H5F_libver_t)roll(d, H5F_LIBVER_NBOUNDS);
    *high = (H5F_libver_t)roll(d, H5F_LIBVER_NBOUNDS);
    if (*high < *low) {
        H5F_libver_t other = *low;
        *low = *high;
        *high = other;
    }
    if (*high == H5F_LIBVER_EARLIEST)
        *high = H5F_LIBVER_V18;
    if (created.newer && *high < H5F_LIBVER_V110)
        *high = H5F_LIBVER_V110;
}

static herr_t set_bounds(hid_t list, dice d, char *text, size_t size)
{
    H5F_libver_t low, high;
    some_bounds(&d, &low, &high);
    opening.high = high;
    snprintf(text, size, "%s to %s", bound_names[low], bound_names[high]);
    return H5Pset_libver_bounds(list, low, high);
}

/* Of files that are written only that with history has one: see D53. For one without pages it is refused natively (test_access). */
static herr_t set_page_buffer(hid_t list, dice d, char *text, size_t size)
{
    size_t pages = 1 + roll(&d, 30);
    unsigned metadata = (unsigned)roll(&d, 3) * 40, raw = metadata == 0 ? (unsigned)roll(&d, 3) * 40 : 0;
    if (created.page == 0 || (opening.writes && !opening.history))
        return NOTHING;
    snprintf(text, size, "%zu pages, at least %u %% metadata, %u %% raw", pages, metadata, raw);
    return H5Pset_page_buffer_size(list, pages * created.page, metadata, raw);
}

static herr_t set_sieve(hid_t list, dice d, char *text, size_t size)
{
    static const size_t sizes[] = {0, 1, 100, 4096, 1 << 20};
    size_t bytes = ONE_OF(&d, sizes);
    snprintf(text, size, "%zu", bytes);
    return H5Pset_sieve_buf_size(list, bytes);
}

static herr_t set_evict(hid_t list, dice d, char *text, size_t size)
{
    (void)d, (void)text, (void)size;
    if (opening.writes) /* D49 */
        return NOTHING;
    opening.evicts = true;
    return H5Pset_evict_on_close(list, true);
}

static herr_t set_alignment(hid_t list, dice d, char *text, size_t size)
{
    static const hsize_t thresholds[] = {0, 1, 64, 512, 2000}, alignments[] = {2, 8, 16, 512};
    hsize_t threshold = ONE_OF(&d, thresholds), alignment = ONE_OF(&d, alignments);
    snprintf(text, size, "%u from %u", (unsigned)alignment, (unsigned)threshold);
    return H5Pset_alignment(list, threshold, alignment);
}

static herr_t set_metadata_cache(hid_t list, dice d, char *text, size_t size)
{
    static const size_t sizes[] = {1 << 10 /* the least that HDF5 takes */, 16 << 10, 256 << 10, 4 << 20};
    H5AC_cache_config_t config = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};
    size_t bytes = ONE_OF(&d, sizes);
    bool grows = roll(&d, 2), epochs = roll(&d, 2);
    if (H5Pget_mdc_config(list, &config) < 0)
        return -1;
    config.set_initial_size = true;
    config.initial_size = config.min_size = bytes;
    config.max_size = grows ? 4 * bytes : bytes;
    if (!grows) {
        config.incr_mode = H5C_incr__off;
        config.flash_incr_mode = H5C_flash_incr__off;
    }
    config.decr_mode = epochs ? H5C_decr__age_out : H5C_decr__off;
    config.epoch_length = 1000;
    opening.small = bytes < 1 << 20;
    snprintf(text, size, "%zu%s%s", bytes, grows ? ", grows" : "", epochs ? ", ages" : "");
    return H5Pset_mdc_config(list, &config);
}

static herr_t set_degree(hid_t list, dice d, char *text, size_t size)
{
    static const H5F_close_degree_t degrees[] = {H5F_CLOSE_WEAK, H5F_CLOSE_SEMI, H5F_CLOSE_STRONG};
    static const char *const degree_names[] = {"default", "weak", "semi", "strong"};
    opening.degree = ONE_OF(&d, degrees);
    snprintf(text, size, "%s", degree_names[opening.degree]);
    return H5Pset_fclose_degree(list, opening.degree);
}

static herr_t set_blocks(hid_t list, dice d, char *text, size_t size)
{
    static const hsize_t sizes[] = {0, 512, 2048, 10000, 1 << 16};
    hsize_t metadata = ONE_OF(&d, sizes), raw = ONE_OF(&d, sizes);
    snprintf(text, size, "%u of metadata, %u of raw data", (unsigned)metadata, (unsigned)raw);
    return H5Pset_meta_block_size(list, metadata) < 0 ? -1 : H5Pset_small_data_block_size(list, raw);
}

static herr_t set_chunk_cache(hid_t list, dice d, char *text, size_t size)
{
    static const size_t sizes[] = {100, 5000, 1 << 20};
    static const double weights[] = {0, 0.75, 1};
    size_t bytes = ONE_OF(&d, sizes), slots = roll(&d, 2) ? 521 : 7;
    double weight = ONE_OF(&d, weights);
    opening.chunks = true;
    snprintf(text, size, "%zu in %zu slots, weight %.2f", bytes, slots, weight);
    return H5Pset_cache(list, 0, slots, bytes, weight);
}

static herr_t set_attempts(hid_t list, dice d, char *text, size_t size)
{
    unsigned attempts = 1 + (unsigned)roll(&d, 200);
    snprintf(text, size, "%u", attempts);
    return H5Pset_metadata_read_attempts(list, attempts);
}

static herr_t set_garbage(hid_t list, dice d, char *text, size_t size)
{
    (void)d, (void)text, (void)size;
    return H5Pset_gc_references(list, 1);
}

static herr_t set_elink_cache(hid_t list, dice d, char *text, size_t size)
{
    unsigned files = 1 + (unsigned)roll(&d, 4);
    snprintf(text, size, "%u", files);
    return H5Pset_elink_file_cache_size(list, files);
}

static herr_t set_locking(hid_t list, dice d, char *text, size_t size)
{
    bool locks = roll(&d, 2);
    snprintf(text, size, "%s", locks ? "on" : "off");
    opening.locks = locks;
    opening.told_locks = true;
    return H5Pset_file_locking(list, locks, true);
}

/* ---- the file that was opened ---- */

/* A superblock older than version 3, as native HDF5 makes with lower bounds below V110, is refused. */
static herr_t start_swmr(hid_t file, dice d, char *text, size_t size)
{
    H5F_info2_t info;
    (void)d, (void)text, (void)size;
    if (H5Fget_info2(w.file.id[0], &info) < 0)
        return -1;
    if (info.super.version < 3)
        return NOTHING;
    opening.swmr = true;
    return H5Fstart_swmr_write(file);
}

/* ---- creation of the file ---- */

static herr_t set_strategy(hid_t list, dice d, char *text, size_t size)
{
    static const char *const strategy_names[] = {"fsm", "page", "aggregation", "none"};
    static const hsize_t pages[] = {512, 1000, 4096, 16384};
    hsize_t block = 0;
    H5F_fspace_strategy_t strategy = (H5F_fspace_strategy_t)roll(&d, H5F_FSPACE_STRATEGY_NTYPES);
    bool persist = roll(&d, 2);
    hsize_t threshold = 1 + roll(&d, 3) * 30, page = ONE_OF(&d, pages);
    if (opening.high < H5F_LIBVER_V110) /* refused natively (H5O__fsinfo_set_version) */
        return NOTHING;
    H5Pget_userblock(list, &block);
    if (block > 0) /* it has to be a multiple of the page */
        page = 512;
    if (page < 4096) /* D54 */
        persist = false;
    snprintf(text, size, "%s%s, from %u bytes, pages of %u", strategy_names[strategy], persist ? ", persists" : "",
             (unsigned)threshold, (unsigned)page);
    return H5Pset_file_space_strategy(list, strategy, persist, threshold) < 0 ? -1
                                                                              : H5Pset_file_space_page_size(list, page);
}

/* Lengths stay at 8 bytes: natively an unlimited dimension of 4 has an end when it is read again, and sections of free space are
 * read past their end (H5FS__cache_sinfo_deserialize). */
static herr_t set_sizes(hid_t list, dice d, char *text, size_t size)
{
    size_t address = roll(&d, 2) ? 8 : 4;
    H5F_fspace_strategy_t strategy;
    hbool_t persist = false;
    hsize_t threshold;
    if (H5Pget_file_space_strategy(list, &strategy, &persist, &threshold) < 0 || persist)
        return NOTHING;
    snprintf(text, size, "addresses %zu", address);
    return H5Pset_sizes(list, address, 8);
}

static herr_t set_trees(hid_t list, dice d, char *text, size_t size)
{
    unsigned internal = 1 + (unsigned)roll(&d, 20), leaf = 1 + (unsigned)roll(&d, 5),
             chunks = 2 + (unsigned)roll(&d, 39); /* D55 */
    snprintf(text, size, "%u, leaves %u, chunks %u", internal, leaf, chunks);
    return H5Pset_sym_k(list, internal, leaf) < 0 ? -1 : H5Pset_istore_k(list, chunks);
}

/* ---- creation of objects, and of the file, whose root is one ---- */

/* D59. The list of a file is that of its root group. */
static bool is_of_narrow_group(hid_t list)
{
    size_t address = created.narrow ? 4 : 8, length;
    if (H5Pisa_class(list, H5P_FILE_CREATE) > 0)
        H5Pget_sizes(list, &address, &length);
    return address < 8 && H5Pisa_class(list, H5P_GROUP_CREATE) > 0;
}

static herr_t set_attribute_order(hid_t list, dice d, char *text, size_t size)
{
    if (is_of_narrow_group(list)) {
        snprintf(text, size, "none");
        return 0;
    }
    bool indexed = roll(&d, 2);
    snprintf(text, size, "%s", indexed ? "indexed" : "tracked");
    return H5Pset_attr_creation_order(list, H5P_CRT_ORDER_TRACKED | (indexed ? H5P_CRT_ORDER_INDEXED : 0));
}

static herr_t set_link_order(hid_t list, dice d, char *text, size_t size)
{
    bool indexed = roll(&d, 2);
    snprintf(text, size, "%s", indexed ? "indexed" : "tracked");
    return H5Pset_link_creation_order(list, H5P_CRT_ORDER_TRACKED | (indexed ? H5P_CRT_ORDER_INDEXED : 0));
}

static herr_t set_times(hid_t list, dice d, char *text, size_t size)
{
    bool tracked = roll(&d, 2);
    snprintf(text, size, "%s", tracked ? "on" : "off");
    return H5Pset_obj_track_times(list, tracked);
}

static herr_t set_attribute_phases(hid_t list, dice d, char *text, size_t size)
{
    unsigned dense = (unsigned)roll(&d, 3), most = dense + (unsigned)roll(&d, 5);
    snprintf(text, size, "%u, %u", most, dense);
    return H5Pset_attr_phase_change(list, most, dense);
}

static herr_t set_link_phases(hid_t list, dice d, char *text, size_t size)
{
    unsigned dense = (unsigned)roll(&d, 3), most = dense + (unsigned)roll(&d, 5);
    snprintf(text, size, "%u, %u", most, dense);
    return H5Pset_link_phase_change(list, most, dense);
}

static herr_t set_group_hints(hid_t list, dice d, char *text, size_t size)
{
    size_t heap = roll(&d, 500);
    unsigned links = (unsigned)roll(&d, 30), length = (unsigned)roll(&d, 20);
    snprintf(text, size, "heap %zu, %u links of %u", heap, links, length);
    return H5Pset_local_heap_size_hint(list, heap) < 0 ? -1 : H5Pset_est_link_info(list, links, length);
}

/* Filters with callbacks, behind those of the dataset. */
static herr_t set_own_filter(hid_t list, dice d, H5Z_filter_t filter, char *text, size_t size)
{
    bool optional = roll(&d, 2);
    if (H5Pget_layout(list) != H5D_CHUNKED)
        return NOTHING;
    snprintf(text, size, "%s", optional ? "optional" : "mandatory");
    return H5Pset_filter(list, filter, optional ? H5Z_FLAG_OPTIONAL : H5Z_FLAG_MANDATORY, 0, NULL);
}

static herr_t set_computes(hid_t list, dice d, char *text, size_t size)
{
    return set_own_filter(list, d, COMPUTES, text, size);
}

static herr_t set_chooses(hid_t list, dice d, char *text, size_t size)
{
    return set_own_filter(list, d, CHOOSES, text, size);
}

/* ---- the table ---- */

#define OBJECTS (GROUP_CREATION | DATASET_CREATION | TYPE_CREATION)

static const struct property {
    const char *name, *effect;
    unsigned of, percent; /* of the lists */
    herr_t (*set)(hid_t list, dice d, char *text, size_t size);
} properties[] = {
    {"bounds", "library version bounds of the opening, also changed while the file is open", FILE_ACCESS, 60,
     set_bounds},
    {"page-buffer", "a page buffer, for files with pages; where they are written natively there is none", FILE_ACCESS,
     70, set_page_buffer},
    {"sieve", "the sieve buffer for contiguous data", FILE_ACCESS, 30, set_sieve},
    {"evict", "metadata leave the cache when an object is closed, of files that are read", FILE_ACCESS, 50, set_evict},
    {"alignment", "places of what is allocated", FILE_ACCESS, 20, set_alignment},
    {"metadata-cache", "size and resizing of the metadata cache", FILE_ACCESS, 30, set_metadata_cache},
    {"close-degree", "what H5Fclose does with open objects", FILE_ACCESS, 40, set_degree},
    {"blocks", "sizes of blocks of metadata and of small raw data", FILE_ACCESS, 25, set_blocks},
    {"chunk-cache", "a chunk cache; else there is none", FILE_ACCESS, 30, set_chunk_cache},
    {"attempts", "how often metadata are read again", FILE_ACCESS, 10, set_attempts},
    {"gc-references", "garbage collection of references", FILE_ACCESS, 10, set_garbage},
    {"external-files", "files that external links lead to stay open", FILE_ACCESS, 15, set_elink_cache},
    {"locking", "locks of the file", FILE_ACCESS, 15, set_locking},
    {"strategy", "how free space is kept, and pages", FILE_CREATION, 60, set_strategy},
    {"sizes", "bytes of addresses", FILE_CREATION, 15, set_sizes},
    {"trees", "widths of B-trees of version 1", FILE_CREATION, 20, set_trees},
    {"swmr", "H5Fstart_swmr_write", OPENED, 12, start_swmr},
    {"attribute-order", "creation order of attributes", FILE_CREATION | OBJECTS, 30, set_attribute_order},
    {"link-order", "creation order of links", FILE_CREATION | GROUP_CREATION, 50, set_link_order},
    {"times", "times of objects", FILE_CREATION | OBJECTS, 30, set_times},
    {"attribute-phases", "when attributes are stored densely", FILE_CREATION | OBJECTS, 20, set_attribute_phases},
    {"link-phases", "when links are stored densely", FILE_CREATION | GROUP_CREATION, 20, set_link_phases},
    {"computes", "a filter that has HDF5 compute its parameters (set_local)", DATASET_CREATION, 15, set_computes},
    {"chooses", "a filter for elements of some sizes (can_apply)", DATASET_CREATION, 15, set_chooses},
    {"group-hints", "what is expected of a group", FILE_CREATION | GROUP_CREATION, 15, set_group_hints},
};
#define PROPERTIES (sizeof properties / sizeof properties[0])
_Static_assert(PROPERTIES <= NAMES, "more properties than can be left out");

static bool left_out[NAMES];

/* The numbers of property I, for the next list. */
static dice dice_of(size_t i)
{
    uint64_t x = (w.seed * 1000003u + w.files) ^ (uint64_t)w.lists << 32 ^ (uint64_t)(i + 1) << 24;
    splitmix(&x);
    return (dice){.left = splitmix(&x)};
}

const char *draw_properties(unsigned of, const hid_t lists[2])
{
    static char told[600];
    size_t length = 0;
    *told = 0;
    w.lists++;
    if (of & FILE_ACCESS)
        opening = (struct opening){.writes = of & WRITING, .high = H5F_LIBVER_LATEST, .degree = H5F_CLOSE_DEFAULT};
    for (size_t i = 0; i < PROPERTIES; i++) {
        dice d = dice_of(i);
        char text[100] = "";
        long long set[2] = {0, 0};
        if (!(properties[i].of & of) || left_out[i] || roll(&d, 100) >= properties[i].percent)
            continue;
        for (int s = 0; s < 2; s++) {
            opening.history = s == 1 && !w.self && !w.plain;
            set[s] = properties[i].set(lists[s], d, text, sizeof text);
            if (s == 0)
                keep_stack(set[0]);
        }
        if (set[0] == NOTHING && set[1] == NOTHING)
            continue;
        if (of == OPENED)
            answers(properties[i].name, set);
        else if (set[0] < 0 || set[1] < 0)
            die("the property %s (%s) cannot be set", properties[i].name, text);
        if (length < sizeof told)
            length += (size_t)snprintf(told + length, sizeof told - length, "; %s %s", properties[i].name, text);
    }
    return told;
}

static size_t find(const char *name, size_t length)
{
    size_t i = 0;
    while (i < PROPERTIES && (strlen(properties[i].name) != length || memcmp(properties[i].name, name, length) != 0))
        i++;
    return i;
}

bool leave_out(const char *names)
{
    for (size_t length; *names; names += length + (names[length] == ',')) {
        length = strcspn(names, ",");
        size_t i = find(names, length);
        if (i == PROPERTIES && !(length == 3 && memcmp(names, "all", 3) == 0))
            return false;
        for (size_t k = i < PROPERTIES ? i : 0; k < (i < PROPERTIES ? i + 1 : PROPERTIES); k++)
            left_out[k] = true;
    }
    return true;
}

bool is_drawn(const char *name)
{
    return !left_out[find(name, strlen(name))];
}

void list_properties(void)
{
    for (size_t i = 0; i < PROPERTIES; i++)
        printf("%-18s%s\n", properties[i].name, properties[i].effect);
}

/* ---- what they decide ---- */

void know_created_file(hid_t native)
{
    hid_t plist = H5Fget_create_plist(native);
    H5F_fspace_strategy_t strategy;
    hbool_t persist = false;
    hsize_t threshold, page = 0;
    size_t address = 8, length = 8;
    H5F_info2_t info;
    if (H5Pget_file_space_strategy(plist, &strategy, &persist, &threshold) < 0 ||
        H5Pget_file_space_page_size(plist, &page) < 0 || H5Fget_info2(native, &info) < 0)
        die("what was created cannot be asked");
    created.persists = persist;
    H5Pget_sizes(plist, &address, &length);
    created.narrow = address < 8;
    created.page = strategy == H5F_FSPACE_STRATEGY_PAGE ? page : 0;
    created.newer =
        info.super.version > 2 || strategy != H5F_FSPACE_STRATEGY_FSM_AGGR || persist || threshold != 1 || page != 4096;
    H5Pclose(plist);
}

bool keeps_free_space(void)
{
    return created.persists;
}

bool has_narrow_addresses(void)
{
    return created.narrow;
}

void forget_created_file(void)
{
    created = (struct created){0};
}

H5F_close_degree_t close_degree(void)
{
    return opening.degree;
}

bool caches_chunks(void)
{
    return opening.chunks;
}

bool has_small_metadata_cache(void)
{
    return opening.small;
}

bool started_swmr(void)
{
    return opening.swmr;
}

bool takes_newest_formats(void)
{
    return opening.high >= H5F_LIBVER_V112;
}

hid_t access_beside(int s)
{
    hid_t access = H5Pcopy(w.access[s]);
    if (H5Pset_fclose_degree(access, opening.degree) < 0 || H5Pset_evict_on_close(access, opening.evicts) < 0 ||
        (opening.told_locks && H5Pset_file_locking(access, opening.locks, true) < 0))
        die("the properties of another opening cannot be set");
    return access;
}

bool op_bounds(void)
{
    SIDES;
    H5F_libver_t low, high;
    dice d = {.left = next()};
    some_bounds(&d, &low, &high);
    if (!is_drawn("bounds"))
        return true;
    note("H5Fset_libver_bounds %s to %s", bound_names[low], bound_names[high]);
    if (BOTH("H5Fset_libver_bounds", H5Fset_libver_bounds(w.file.id[s], low, high)))
        opening.high = high;
    return true;
}
