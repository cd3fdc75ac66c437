/* Random programs of HDF5 calls, run twice in one process: on a file through the native connector (the twin, side 0)
 * and on a file through the connector named by HDF5_VOL_CONNECTOR (side 1). After every step the answers and the
 * objects touched must agree, every 25 steps and before every close both trees, and after every commit each earlier
 * version must still equal the copy of the twin that was kept when it was made: as FILE@N through the connector, and as
 * /_versioned_data/versions/N without it. Public HDF5 calls only; a run is repeated by its --seed.
 *
 * differential [--steps N | --copies N] [--seed S] [--dir DIR] [--file-steps N] [--history N] [--self [--plant KIND]]
 *              [--without PROPERTY,...] [--properties]
 *
 * Each opening of a file, each file and each object gets properties of its own: properties.c has the table, --properties prints it.
 * --without leaves some of them out, and changes no other one: so the one that matters for a difference is found.
 *
 * --copies: two steps of five are H5Ocopy, with all combinations of flags, until there were so many of them.
 *
 * --self runs native against native, which must agree. --plant then damages side 1 (element, attribute, link, extent,
 * version) now and then, and the run succeeds only when the damage is found: a test of the test.
 *
 * What may differ, and is not compared. Nothing else may.
 *  D1  Creation order numbers of the root's links, and its max_corder: the hidden group took a number. Their order must
 *      agree.
 *  D2  Addresses, file sizes, times, and what depends on the library version bounds, since a file with history has at
 *      least those of HDF5 1.10: group storage, header sizes, the order of H5_ITER_NATIVE; whether links have creation
 *      order numbers in a group that does not track them; native HDF5 may say that times are tracked where they are
 *      not, since an older object header cannot say it; with addresses of 4 bytes both have such headers, and either may.
 *  D3  Real references hold addresses. Both sides must have one, and right after it was written it must lead to the
 *      same object; later on, and in versions, to the same object or nowhere, since where a reference to a deleted object
 *      leads natively is undefined. Pattern references are never followed, and compared as bytes.
 *  D4  Sizes of deflated or scale-offset chunks, and the storage size they add up to: encoders may differ. Raw bytes
 *      are decoded by native HDF5 and the elements compared.
 *  D5  Elements that nobody wrote, where native HDF5 1.14.5 leaves what the file had there before: without fill value or
 *      with H5D_FILL_TIME_NEVER; allocated at once by a first write that covers all, if only some members of each
 *      (H5D__alloc_storage); allocated early with the default fill value, or for data of variable length; and bytes of
 *      an edge chunk outside the extent. The program writes such datasets whole after they are made or grown, and raw
 *      chunks only where the whole chunk is inside.
 *  D6  Absolute soft links in a version begin with the version's path when read without the connector.
 *  D7  Reference counts in versions read without the connector, and creation order numbers in versions: unchanged objects
 *      are shared by hard links. Counts that the program added to (H5Oincr_refcount) are in no version, nor is what counts in
 *      groups that only a circle of links holds, and in named types that only a circle of uses holds (an attribute of a type
 *      that is of this type, when its last link is deleted): a version has what its root leads to.
 *  D8  Layout, chunks, filters and allocation of a versioned dataset read without the connector: it is virtual there.
 *  D9  Modifying a file that was opened for reading: only H5Dwrite is tried, which must be refused. Native HDF5 1.14.5
 *      accepts others (H5Awrite), and then cannot close the file.
 * D10  H5Ocopy of a filtered dataset that is open: native HDF5 1.14.5 copies cached chunks into a buffer of their
 *      encoded size (H5D__chunk_copy_cb) and overwrites memory. Such datasets are closed first.
 * D11  Sequences of sequences or of variable-length strings: writing them over older ones, native HDF5 1.14.5 frees
 *      what it never allocated (H5T__conv_vlen).
 * D12  Raw chunks with a filter mask: while the dataset is open native HDF5 1.14.5 may read them with the old mask, and
 *      keeps the old mask when the new bytes have the same size, as 2.2.0 does. All handles are closed after such a write, it is left
 *      out where the sizes are equal on either side (a small dataset keeps its chunks when a version is restored that had
 *      none), and the dataset is only read from then on.
 * D13  H5Ocopy of a chunked dataset with variable-length data inside a compound or array: native HDF5 1.14.5 converts
 *      in a buffer that is too small; and it refuses to copy one of references (H5D__chunk_copy). Such trees are not copied.
 * D14  Unions of hyperslabs that HDF5 1.14.5 itself builds wrong: 490+3 | 110+162x3/4 has 486 elements, most of them
 *      outside the bounds it gives, and reading them overruns memory. The last box is used alone.
 * D16  The scale-offset filter with fewer bits than the type has: HDF5 1.14.5 cannot decode what it encoded where the
 *      values of a chunk take all bits ("minimum number of bits exceeds size of type"; h5cow stores such a chunk without
 *      filters), and rounds values when the chunk leaves its cache. It is used with all bits, which changes nothing;
 *      test_array has the others.
 * D15  Which chunks are allocated after H5Dset_extent made a dataset smaller: native HDF5 1.14.5 allocates a chunk at the
 *      new edge that nobody wrote, when reading has put it into the chunk cache (H5D__chunk_prune_fill). The chunk cache
 *      is left out.
 * D17  The creation order of the attributes of an object that does not track it, and of its links: HDF5 answers with
 *      the order in which it finds them.
 * D19  What is read where nothing is stored: native HDF5 1.14.5 applies data transforms to the fill value unless the dataset
 *      has no storage at all, which it still has when all its chunks were cut off; h5cow goes by whether there are chunks.
 *      And it fills up strings that are padded with spaces, or not, by whether the chunk fits its cache.
 * D20  Size and filter mask of a chunk whose elements were stored already, by whatever way: it is that stored chunk.
 * D21  The character set of link names in trees that H5Ocopy made: a connector cannot set it.
 * D22  Chunks of tiny datasets in FILE@N, in what is copied out of it or restored, and where no version is made: what changes no
 *      element makes none.
 * D23  Groups that a refused H5Dcreate made on its way: native HDF5 1.14.5 leaves them.
 * D32  H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG where the target has several named types that are alike: which one HDF5 takes
 *      depends on the order in which it finds them (D2).
 * D33  H5Oset_comment over a comment of a named type whose header is one of HDF5 1.8 or newer: native HDF5 1.14.5 may lose the
 *      reference count or the type when it makes another part of the header (H5O__alloc_chunk). Ours has such a header where the
 *      twin has, and where it was copied out of a version. test_vol has the others.
 * D43  H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG for two named types that are alike, where the search is stopped (H5Pset_mcdt_search_cb):
 *      native HDF5 1.14.5 puts the second one into its list as well, and refuses ("can't insert duplicate key",
 *      H5O__copy_insert_comm_dt). Such types are not merged.
 * D34  Reference counts of named types that H5Ocopy merges with: native HDF5 1.14.5 counts only the first use that is copied
 *      (the type's entry stays locked, H5O__copy_header_real), and keeps counting the uses of a copy that it then refuses,
 *      whose target has no group. Types are merged where each is used once; once such a copy was refused they may count
 *      more natively. test_found has the others.
 * D35  H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG between files for types with references or parts of variable length: native HDF5
 *      1.14.5 compares where they are stored as well (H5T_cmp), which the metadata cache knows of a type that was committed
 *      since its file was opened, and of no other. So it merges only what both were read from files. test_found has both.
 * D36  The reference count of what was deleted and is still open: an object header of HDF5 1.10 has no count of none, so it is 1
 *      again on either side once the metadata cache has written the header, dropped it and read it again. test_found has it.
 * D37  H5Ocopy of a dataset with external storage whose extent was changed: native HDF5 1.14.5 leaves its storage size as it
 *      was, and refuses ("invalid layout storage size", H5O__layout_copy_file). It is left out. In FILE@N the size is that of
 *      the extent, and can be copied.
 * D38  H5Dwrite of whole chunks with a memory type that does not name all members and is as large as an element in the file:
 *      native HDF5 1.14.5 takes that for all bytes, and makes zeros of the other members unless it has the chunk in its cache
 *      (H5D__chunk_write). The program names all members there. test_found has the others.
 * D39  H5Dwrite to points, one of them twice, of sequences or variable-length strings: native HDF5 1.14.5 may give back what the
 *      second one finds in the place of the first, and end the program (H5T__conv_vlen), or lose the strings. Points are not
 *      selected of them.
 * D40  H5O_COPY_EXPAND_REFERENCE_FLAG where there are references: HDF5 calls what they lead to by its address in the source
 *      (D2), in the root of the target, and refuses some that h5cow copies. test_references has others.
 * D41  H5Iget_name of an object of several names that was opened by one which is gone: HDF5 searches its file in the order in
 *      which it stores links, which is another one where the root has one link more. Either answers with one of the names.
 * D18  H5Dflush of what H5Ocopy has made since the file was opened: native HDF5 1.14.5 tags the attributes of a copied group
 *      with the address of a member, and cannot flush the file any more ("slist not empty?", H5O__copy_header_real).
 * D31  H5Ocopy of a group with H5O_COPY_EXPAND_SOFT_LINK_FLAG or H5O_COPY_EXPAND_EXT_LINK_FLAG: with the bounds of a file
 *      with history (D2) native HDF5 1.14.5 puts the expanded link into the place of the other one, which has another
 *      size, and makes a group that cannot be read (H5O__link_post_copy_file). Only datasets and types are so copied.
 * D30  Chunks in other files that were copied to, and of what is copied back: their index is of the kind that newer
 *      bounds give (D2), and of an extensible array whose unlimited dimension is not the first native HDF5 1.14.5 tells
 *      wrong places (H5D__earray_idx_iterate_cb). The elements are compared, and no raw chunk is read or written there: the
 *      one at that place may be longer than it says.
 * D29  Creation order numbers of links and attributes of what was copied out of a version: see D7.
 * D28  H5Ocopy of references of HDF5 1.12: the copy names the same heap objects as its source, which go with either
 *      (H5D__contig_copy copies the bytes). And between files of references inside something else: native HDF5 keeps
 *      their bytes, which then lead to whatever is at that address there, and expands none of these (H5A__attr_post_copy_file);
 *      h5cow empties or expands them as it does all others. Such trees are not copied, nor what uses a named type with such
 *      attributes, which come along.
 * D27  References of HDF5 1.12 inside compounds, arrays or sequences: writing them, native HDF5 1.14.5 may give back what it
 *      finds in the background buffer, whatever that is, and then destroys what is no reference (H5T__ref_disk_write,
 *      H5T__conv_ref). They stand alone. In H5Dwrite_multi the background buffer of another dataset is enough
 *      (H5D__scatgath_write): what needs one, compounds and variable length, is not written together with them.
 * D26  The extent of the dataspace that H5Rget_region gives in FILE@N: HDF5 reads it from the newest state's object header,
 *      past any connector (H5R__decode_token_region_compat).
 * D25  H5Dget_chunk_info and its like tell no address while the bytes wait to be committed or applied: docs/promises.md.
 * D42  Numbers of creation order, and character sets of link names, of what was restored: its links and attributes are made again.
 *      Reference counts: what the program added to (H5Oincr_refcount) is in no version.
 * D44  HDF5 2.2.0 as Debian builds it asserts when it frees a block of its global heap that its metadata accumulator has read into
 *      (H5F__accum_free; as it reads object headers, 512 bytes at once, neighbours come along). Its release builds go on and are
 *      right. There the run ends, and says so.
 * D45  H5Dget_storage_size where the option compress= adds filters: what is stored.
 * D46  H5Ropen_region where the place of the dataset is another object's now, which is none: native HDF5 1.14.5 takes it for one, and
 *      crashes (H5D__get_space).
 * D24  H5Dread_multi and H5Dwrite_multi where several datasets need conversion: native HDF5 1.14.5 may give elements that
 *      H5Dread of the same selection does not give, which then decides, and changes members that a compound memory type
 *      does not name. The program names all of them there.
 * D47  Objects without a link while the metadata cache is small: native HDF5 1.14.5 forgets that they have none when it evicts
 *      their header, and deletes them with the last handle. None are made then. test_access has them.
 * D48  What native HDF5 refuses because the upper library bound is below V112, and h5cow does not, since a file with history
 *      has at least the formats of HDF5 1.10 (D2): references of HDF5 1.12 in a dataset or attribute, H5Ocopy of objects whose
 *      messages are newer, and H5Dcreate with the creation list of a dataset whose layout is. They are left out then.
 * D49  H5Pset_evict_on_close of a file that is written: native HDF5 1.14.5 cannot close datasets of it ("Pinned entries still
 *      need evicted?!", H5C_evict_tagged_entries) after H5Dwrite_multi, H5Ocopy or where their type is a named one, and then
 *      crashes in H5Fclose (H5D_flush_all). Only files that are read have it.
 * D50  FILE@N beside the head: HDF5 takes both for one file, and wants the same close degree, eviction and locks. They are.
 * D51  After H5Fstart_swmr_write native HDF5 may neither make nor delete objects, and does not always say so. The program writes
 *      elements and sets extents then.
 * D52  Addresses of 4 bytes (H5Pset_sizes): of references of HDF5 1.8 native HDF5 1.14.5 stores 4 bytes less, and reads there what
 *      was in memory. And H5Ocopy to a file with other sizes makes objects that cannot be opened. Neither is done.
 * D53  A page buffer for a file that is written: native HDF5 1.14.5 loses raw data. A page that was freed and is given out again
 *      stays in its list of new pages (H5PB_add_new_page) while the old one is in the buffer; once that was evicted, the next write
 *      into the page begins with zeros. Ten lines that show it, with h5py 3.12:
 *          with h5py.File(NAME, "w", fs_strategy="page", fs_page_size=4096) as f:
 *              f["other"] = np.arange(1000, dtype="i2")
 *              f.create_dataset("d", (2, 600), "u1", chunks=(1, 600), compression="gzip")
 *          f = h5py.File(NAME, "r+", page_buf_size=4096, rdcc_nbytes=0)
 *          f["d"][0] = 1                           # the chunk gets a page of its own
 *          f["d"][0] = rng.integers(0, 255, 600)   # is larger: the page is freed, and given out again
 *          f["other"][...]                         # evicts it
 *          f["d"][1] = rng.integers(0, 255, 600)   # makes zeros of the first chunk
 *          f["d"][...]                             # "filter returned failure during read"
 *      Where files are written, that with history has one, which h5cow leaves out, and its twin has none.
 * D54  Free space that is kept, in pages under 4,096 bytes: native HDF5 1.14.5 may never end to look for a place for its list of it
 *      (the loop in H5MF_settle_meta_data_fsm: the list is as large as a page). Smaller pages do not keep it.
 * D55  H5Pset_istore_k of 1: native HDF5 1.14.5 makes ever deeper trees of few chunks, until "unable to encode node level" (H5B). The
 *      least here is 2.
 * D56  What external links lead to after H5Fstart_swmr_write: native HDF5 opens the other file for a single writer with many readers
 *      as well, and refuses one whose superblock is older than that of HDF5 1.10. h5cow opens it for writing alone, and its lock keeps
 *      others out. Only hard links are followed then.
 * D57  The reference count of what H5Ocopy made while the metadata cache is small: native HDF5 1.14.5 may have evicted its header
 *      before it is linked, reads it with a count of 1 (as in D47), and then counts one more. test_copies has it.
 * D58  H5Ocopy of a contiguous dataset of one sequence of variable length in a file with addresses of 4 bytes: native HDF5 1.14.5
 *      refuses it ("element size too large", H5D__contig_copy), for its element has 12 bytes in the file and 16 in memory. And of
 *      chunked ones with filters it writes behind its buffer (H5D__chunk_copy makes it as large as a decoded chunk). Neither is copied.
 * D59  A group that tracks the order of attributes in a file with addresses of 4 bytes: native HDF5 1.14.5 may lose its "group info"
 *      message, and then every new link is refused. Where no message is as long as a continuation (12 bytes), and no chunk of the
 *      header can grow in place, H5O__alloc_chunk moves all messages of the last chunk, and forgets the one after a null message.
 *      Whether a chunk can grow depends on what lies behind it. Natively too, with holes of 38 and of 57 bytes in the file. Such
 *      groups do not track it.
 * D60  A chunked dataset that is allocated early says to HDF5 alone that it is allocated as needed: HDF5 would make chunks of its own when
 *      it grows. Through the connector it says what it was made with.
 */
#include "compare.h"
#include "copies.h"
#include "life.h"
#include "operations.h"
#include "places.h"
#include "plant.h"
#include "properties.h"
#include "../random.h"
#include "versions.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define FULL_EVERY 25

static const struct operation {
    const char *name;
    bool (*run)(void);
    unsigned weight;
    enum { READS, WRITES, MAKES /* D51 */ } does;
} operations[] = {
    {"create group", op_group, 4, MAKES},
    {"create dataset", op_dataset, 9, MAKES},
    {"open dataset", op_open, 4, READS},
    {"close dataset", op_close, 3, READS},
    {"write", op_write, 22, WRITES},
    {"read", op_read, 14, READS},
    {"multi", op_multi, 4, WRITES},
    {"set extent", op_extent, 9, WRITES},
    {"raw chunk", op_chunk, 5, MAKES},
    {"reference", op_reference, 3, MAKES},
    {"attribute", op_attribute, 11, MAKES},
    {"link", op_link, 9, MAKES},
    {"copy object", op_copy, 4, MAKES},
    {"commit type", op_type, 2, MAKES},
    {"comment", op_comment, 1, MAKES},
    {"reference count", op_reference_count, 1, MAKES},
    {"replace", op_replace, 2, MAKES},
    {"copy between files", op_copy_files, 3, MAKES},
    {"list", op_list, 5, READS},
    {"flush", op_flush, 2, READS},
    {"version", op_version, 2, READS},
    {"reopen", op_reopen, 3, READS},
    {"restore", op_restore, 1, MAKES},
    {"forget", op_forget, 1, MAKES},
    {"many attributes", op_many_attributes, 1, MAKES}, /* at the latest after 40 steps undone in pick() */
    {"make again", op_again, 3, MAKES},
    {"bounds", op_bounds, 1, READS},
    {"truncate", op_truncate, 0, MAKES}, /* weight in pick() */
};
#define OPERATIONS (sizeof operations / sizeof operations[0])
enum { COPY = 12, COPY_FILES = 17, REOPEN = 21, MANY_ATTRIBUTES = 24 };

static size_t pick(void)
{
    unsigned total = 0, at;
    if (*w.many && w.writable && !started_swmr() && w.step % 40 == 0) /* a commit of thousands takes seconds */
        return MANY_ATTRIBUTES;
    if (started_swmr()) /* only so long that something happens */
        return chance(15) ? REOPEN : below(OPERATIONS - 1);
    if (w.step % 500 == 499 || (w.step % 100 == 60 && chance(40)))
        return OPERATIONS - 1;
    if (w.wanted && chance(40))
        return chance(40) ? COPY : COPY_FILES;
    for (size_t i = 0; i < OPERATIONS; i++)
        total += operations[i].weight;
    at = (unsigned)below(total);
    for (size_t i = 0; i < OPERATIONS; i++) {
        if (at < operations[i].weight)
            return i;
        at -= operations[i].weight;
    }
    return 0;
}

static void one_step(void)
{
    w.touches = 0;
    for (int tries = 0; tries < 50; tries++) {
        size_t i = pick();
        if (!w.writable && operations[i].does != READS && !(operations[i].run == op_write && chance(10))) /* D9 */
            continue;
        if (started_swmr() && operations[i].does == MAKES) /* D51 */
            continue;
        w.op_count[i]++;
        if (operations[i].run()) {
            w.op_done[i]++;
            break;
        }
    }
    if (w.plant && w.plant != PLANT_VERSION && w.writable && w.step % 10 == 5)
        plant_damage();
    for (size_t i = 0; i < w.touches; i++) {
        SIDES;
        pair object;
        comparison c = head_comparison();
        if (!OPEN("H5Oopen of what was touched", object, H5Oopen(w.file.id[s], w.touched[i], H5P_DEFAULT)))
            continue;
        if (!compare_objects(&c, w.touched[i], object.id[0], object.id[1]))
            differ(c.stack, "%s", c.why);
        close_ids(object);
    }
    learn_places();
    /* a planted extent at once: the next operation would take buffers of the one side's size for the other's */
    if (w.step % FULL_EVERY == 0 || (w.plant == PLANT_EXTENT && w.planted == w.step))
        full_check();
}

static void end_file(void)
{
    close_pair();
    check_versions(true);
    for (size_t i = 0; i < w.versions; i++) {
        char copy[2 * PATH_SIZE];
        unlink(w.version[i].twin);
        free(w.version[i].addresses);
        snprintf(copy, sizeof copy, "%s.%s", w.name[1], w.version[i].name);
        unlink(copy);
        unlink(w.version[i].file);
    }
    unlink_outside();
    unlink_files();
    w.versions = 0;
}

/* Each side has a folder with a plain file that external links may lead to. It has one dataset. */
static void make_folders(void)
{
    static const int values[4] = {1, 2, 3, 4};
    hsize_t n = 4;
    char path[PATH_SIZE];
    for (int s = 0; s < 2; s++) {
        snprintf(path, sizeof path, "%s/%s", w.dir, sides[s]);
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            die("cannot make %s", path);
        snprintf(path, sizeof path, "%s/%s/elsewhere.h5", w.dir, sides[s]);
        hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, w.access[0]), space = H5Screate_simple(1, &n, NULL);
        hid_t set = H5Dcreate2(file, "d", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        if (H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
            die("cannot make %s", path);
        H5Dclose(set);
        H5Sclose(space);
        H5Fclose(file);
    }
}

static bool enough(void)
{
    return w.step >= w.steps || (w.wanted && w.copies >= w.wanted);
}

/* A call that does not end is told like a crash: processor time, so that a busy machine changes nothing. */
static void begin_step(void)
{
    static const struct itimerval most = {.it_value = {.tv_sec = 300}};
    setitimer(ITIMER_PROF, &most, NULL);
    w.step++;
}

static void run(void)
{
    size_t versions = 0;
    make_folders();
    for (w.step = 0; !enough(); w.files++) {
        uint64_t x = w.seed * 1000003u + w.files;
        for (int i = 0; i < 4; i++)
            w.random[i] = splitmix(&x);
        w.named = 0;
        choose_driver();
        create_pair();
        learn_places();
        for (long n = 0; n < w.file_steps && !enough(); n++) {
            begin_step();
            one_step();
        }
        versions += w.versions;
        end_file();
    }
    printf("%ld steps, seed %" PRIu64
           ", %zu files, %zu versions; compared: %ld trees, %ld versions through the connector, "
           "%ld without it\n",
           w.step, w.seed, w.files, versions, w.compared[REACHED_HEAD], w.compared[REACHED_AT],
           w.compared[REACHED_VERSION]);
    printf("%ld references followed, %ld to an object that was surely theirs\n", w.followed[0], w.followed[1]);
    for (size_t i = 0; i < OPERATIONS; i++)
        printf("%s%s %ld", i ? ", " : "", operations[i].name, w.op_done[i]);
    printf("\n");
    tell_copies();
}

/* With an odd seed small chunks are composed of pieces as well; with every other pair of seeds what waits for a commit has next to no
 * memory, so that rows are written out and closed datasets committed early; with four of twelve, what has no filters is compressed. */
static void choose_options(void)
{
    static const char *const compress[] = {"gzip:1", "gzip:6:none"}; /* that HDF5 alone can read */
    const char *connector = getenv("HDF5_VOL_CONNECTOR");
    char options[100];

    if (connector == NULL || strcmp(connector, "h5cow") != 0)
        return;
    snprintf(options, sizeof options, "h5cow %s%s", w.seed & 1 ? "pieces=16;" : "", w.seed & 2 ? "memory=1K;" : "");
    if ((w.seed >> 2) % 3 == 0)
        snprintf(options + strlen(options), sizeof options - strlen(options), "compress=%s", compress[w.seed >> 2 & 1]);
    setenv("HDF5_VOL_CONNECTOR", options, 1);
}

static void set_up(void)
{
    choose_options();
    if (!*w.dir) {
        const char *tmp = getenv("TMPDIR");
        snprintf(w.dir, sizeof w.dir, "%s/differential.XXXXXX", tmp ? tmp : "/tmp");
        if (!mkdtemp(w.dir))
            die("cannot make %s", w.dir);
        w.own_dir = true;
    } else if (mkdir(w.dir, 0777) != 0 && errno != EEXIST)
        die("cannot make %s", w.dir);
    setenv("HDF5_EXTFILE_PREFIX", "${ORIGIN}", 1); /* each side has its own files outside */
    start_library();
    if (!w.self)
        printf("connector: %s\n", getenv("HDF5_VOL_CONNECTOR"));
}

void run_end(void)
{
    end_library();
    for (size_t i = 0; i < w.versions; i++)
        free(w.version[i].addresses);
    free(w.version);
    for (int s = 0; s < 2; s++) {
        char path[PATH_SIZE];
        snprintf(path, sizeof path, "%s/%s/elsewhere.h5", w.dir, sides[s]);
        unlink(path);
        snprintf(path, sizeof path, "%s/%s", w.dir, sides[s]);
        rmdir(path);
    }
    if (w.own_dir)
        rmdir(w.dir);
}

int main(int argc, char **argv)
{
    w.steps = 20000;
    w.file_steps = 600;
    w.told = 30;
    w.seed = test_seed();
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--self") == 0)
            w.self = true;
        else if (strcmp(argv[i], "--steps") == 0 && value)
            w.steps = atol(argv[++i]);
        else if (strcmp(argv[i], "--file-steps") == 0 && value)
            w.file_steps = atol(argv[++i]);
        else if (strcmp(argv[i], "--copies") == 0 && value) {
            w.wanted = atol(argv[++i]);
            w.steps = LONG_MAX;
        } else if (strcmp(argv[i], "--history") == 0 && value)
            w.told = atol(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0 && value) {
            w.seed = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--dir") == 0 && value)
            snprintf(w.dir, sizeof w.dir, "%s", argv[++i]);
        else if (strcmp(argv[i], "--without") == 0 && value) {
            if (!leave_out(w.without = argv[++i]))
                die("--without takes names that --properties lists, divided by commas, or all");
        } else if (strcmp(argv[i], "--properties") == 0) {
            list_properties();
            return 0;
        } else if (strcmp(argv[i], "--plant") == 0 && value) {
            i++;
            for (plant p = PLANT_ELEMENT; p < PLANTS; p++)
                if (strcmp(value, plant_names[p]) == 0)
                    w.plant = p;
            if (!w.plant)
                die("--plant takes element, attribute, link, extent, version, reference or 'hard link'");
        } else
            die("usage: differential [--steps N | --copies N] [--seed S] [--dir DIR] [--file-steps N] [--history N] [--self "
                "[--plant KIND]] [--without PROPERTY,...] [--properties]");
    }
    if (w.plant && !w.self)
        die("--plant needs --self");
    if (w.steps < 1 || w.file_steps < 1)
        die("--steps and --file-steps are at least 1");
    printf("seed %" PRIu64 "\n", w.seed);
    fflush(stdout);
    const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTERM, SIGINT, SIGPROF};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], on_signal);
    set_up();
    run();
    run_end();
    if (w.plant) {
        printf("planted %s %ld times, never found\nFAIL\n", plant_names[w.plant], w.plants);
        return 1;
    }
    printf("PASS\n");
    return 0;
}
