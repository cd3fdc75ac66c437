/* H5Fcreate. New files get a history when they are kept by the default driver. Truncating a file that has a history
 * empties the head and keeps the history: the re-run of a program is its next version. Where that cannot be, the old
 * file is kept under another name; a history is never overwritten.
 *
 * A crash at any moment: emptying the head is part of the transaction, so without its commit the file is as it was. A
 * file that is put aside is complete under one of its two names, in a moment under both; the new file has its name from
 * the beginning and holds nothing until its first commit. With truncate=discard the old file is put aside as well, and
 * removed by that commit. */
#include "vol/vol.h"

#include "base/ids.h"
#include "base/newfile.h"
#include "base/witness.h"
#include "journal/disk.h"
#include "journal/driver.h"
#include "journal/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

/* The creation properties that a file with history gets when a program asks for GIVEN; the caller closes it. HDF5 1.14.5
 * cannot keep the tables of the history where lengths have fewer than 8 bytes (datasets without a maximum cannot be opened
 * again), nor resize them where dataspaces are shared messages: *SPACES is the index that had them (cow_file_set_spaces). The journal
 * knows addresses of 4 and of 8 bytes. */
static hid_t creation_properties(hid_t given, uint8_t *spaces)
{
    hid_t fcpl = H5Pcopy(given);
    size_t address, length;
    unsigned indexes, flags, least;

    *spaces = COW_NO_SPACES;
    if (fcpl < 0 || H5Pget_sizes(fcpl, &address, &length) < 0 || H5Pset_sizes(fcpl, address == 4 ? 4 : 8, 8) < 0 ||
        H5Pget_shared_mesg_nindexes(fcpl, &indexes) < 0)
        goto failed;
    for (unsigned i = 0; i < indexes; i++) {
        if (H5Pget_shared_mesg_index(fcpl, i, &flags, &least) < 0)
            goto failed;
        if (!(flags & H5O_SHMESG_SDSPACE_FLAG))
            continue;
        if (H5Pset_shared_mesg_index(fcpl, i, flags & ~(unsigned)H5O_SHMESG_SDSPACE_FLAG, least) < 0)
            goto failed;
        *spaces = (uint8_t)i;
    }
    return fcpl;
failed:
    if (fcpl >= 0)
        H5Pclose(fcpl);
    return cow_error_native("cannot prepare the creation properties");
}

/* Could a file created with FCPL look like the one that exists? 1, 0, -1. What is compared is what a program can see
 * and what cannot be changed later. */
static int same_properties(void *native, hid_t fcpl)
{
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_FCPL};
    H5VL_group_get_args_t get_root = {.op_type = H5VL_GROUP_GET_GCPL};
    H5F_fspace_strategy_t strategy[2];
    hsize_t block[2], threshold[2], page[2];
    unsigned links[2], attributes[2], indexes[2], most[2][2], least[2][2];
    size_t addresses[2], sizes[2];
    hbool_t persist[2];
    void *root = cow_native_group_open((cow_loc){native, H5I_FILE}, "/");
    hid_t list[2] = {H5I_INVALID_HID, fcpl}, root_list[2] = {H5I_INVALID_HID, fcpl};
    int same = -1;

    if (root == NULL || H5VLfile_get(native, cow_native_id(), &get, DXPL, NULL) < 0)
        goto done;
    list[0] = get.args.get_fcpl.fcpl_id;
    if (H5VLgroup_get(root, cow_native_id(), &get_root, DXPL, NULL) < 0)
        goto done;
    root_list[0] = get_root.args.get_gcpl.gcpl_id;
    for (int i = 0; i < 2; i++)
        if (H5Pget_userblock(list[i], &block[i]) < 0 || H5Pget_sizes(list[i], &addresses[i], &sizes[i]) < 0 ||
            H5Pget_file_space_strategy(list[i], &strategy[i], &persist[i], &threshold[i]) < 0 ||
            H5Pget_file_space_page_size(list[i], &page[i]) < 0 ||
            H5Pget_shared_mesg_nindexes(list[i], &indexes[i]) < 0 ||
            H5Pget_link_creation_order(root_list[i], &links[i]) < 0 ||
            H5Pget_attr_creation_order(root_list[i], &attributes[i]) < 0 ||
            H5Pget_link_phase_change(root_list[i], &most[0][i], &least[0][i]) < 0 ||
            H5Pget_attr_phase_change(root_list[i], &most[1][i], &least[1][i]) < 0)
            goto done;
    same = block[0] == block[1] && addresses[0] == addresses[1] && sizes[0] == sizes[1] && strategy[0] == strategy[1] &&
           persist[0] == persist[1] && threshold[0] == threshold[1] && page[0] == page[1] && indexes[0] == indexes[1] &&
           links[0] == links[1] && attributes[0] == attributes[1];
    for (int i = 0; i < 2; i++)
        same = same && most[i][0] == most[i][1] && least[i][0] == least[i][1];
done:
    if (same < 0)
        cow_error_native("cannot compare the file's creation properties");
    if (root != NULL)
        cow_native_group_close(root);
    cow_close(list[0], root_list[0]);
    return same;
}

/* Of a file that HDF5 cannot open: a history stands in its first metadata, and where its views name their chunks. Not all of a
 * large one is read: most are of other kinds, or plain ones whose program was killed and is begun again. */
#define LOOKED_THROUGH ((uint64_t)64 << 20)

/* A file that HDF5 cannot open, because it is damaged or somebody else is writing it, may have a history all the same, which
 * has no journal or lost it. Who cannot look must not overwrite; who may not look cannot write either. */
static bool may_have_history(const char *name)
{
    int found = cow_disk_mentions(&cow_disk_system, name, COW_GROUP, LOOKED_THROUGH);

    return found > 0 || (found < 0 && errno != EACCES && errno != EPERM && errno != ENOENT && errno != EISDIR);
}

/* What was recorded is why the history of NAME cannot be used. */
static int refuse_damaged(const char *name)
{
    char why[512];

    snprintf(why, sizeof why, "%s", cow_error_message());
    cow_error_clear();
    return cow_error(COW_CORRUPT,
                     "%s: the file was not emptied, since it has a history that cannot be used (%s); to see what is "
                     "wrong: h5cow verify %s; to begin a new file, move this one away",
                     name, why, name);
}

/* Can the history go on? Looked at without changing anything. */
static int check_history(const char *name, hid_t under, const cow_options *options)
{
    void *native = H5VLfile_open(name, H5F_ACC_RDONLY, under, DXPL, NULL);
    cow_file *file = NULL;
    int status = -1;

    if (native == NULL)
        cow_error_native("cannot open it");
    else if (cow_file_has_history(native) > 0 && (file = cow_file_attach(native, name, false, false, options)) != NULL)
        status = 0;
    if (file != NULL && cow_file_release(file) < 0)
        status = -1;
    if (native != NULL)
        cow_object_close_native(native, H5I_FILE);
    return status < 0 ? refuse_damaged(name) : 0;
}

/* What becomes of the file at a name where one is created. */
typedef struct standing {
    cow_object *object; /* it was emptied, and goes on */
    char *real;         /* it was there, without symbolic links, */
    char *aside;        /* and was renamed to that, so that a new one can be made; free() both */
    void *held;         /* its native object, open for writing: so nobody else writes it until the new one is there */
    unsigned withheld;  /* it is protected, and so will the new one be: protect.h; else 0 */
    bool discard;       /* it is to be removed when the new one has a commit */
} standing;

/* The name REAL is taken from the file, which keeps that of ASIDE. 1: something has that name; -1. */
static int move_aside(const char *name, const char *real, const char *aside)
{
    if (link(real, aside) == 0) { /* unlike rename, never over an existing file */
        /* the new name first: a power cut must not leave the file without any */
        if (cow_journal_sync_name(aside) == 0) {
            if (unlink(real) == 0)
                return 0;
            cow_error(COW_IO, "%s: cannot be put aside: %s", name, strerror(errno));
        }
        unlink(aside);
        return -1;
    }
    if (errno == EEXIST)
        return 1;
    if (access(aside, F_OK) != 0 && rename(real, aside) == 0) /* a file system without hard links */
        return 0;
    return cow_error(COW_IO, "%s: it has a history, which is kept, and cannot be renamed to %s: %s", name, aside,
                     strerror(errno));
}

/* Keep what cannot go on in the same file: NAME becomes NAME.h5cow-old-1, -2 ... */
static int put_aside(const char *name, standing *s)
{
    char suffix[32];
    int status = 1;

    if ((s->real = realpath(name, NULL)) == NULL) /* where a symbolic link leads: the link itself must stay */
        return cow_error(COW_IO, "%s: cannot be put aside: %s", name, strerror(errno));
    for (unsigned n = 1; status > 0 && n < 1000000; n++) {
        free(s->aside);
        snprintf(suffix, sizeof suffix, ".h5cow-old-%u", n);
        if ((s->aside = cow_name_beside(s->real, suffix)) == NULL)
            status = cow_error(COW_MEMORY, "%s: no memory to put it aside", name);
        else
            status = move_aside(name, s->real, s->aside);
    }
    if (status > 0)
        cow_error(COW_IO, "%s: cannot be put aside: too many files are there already", name);
    if (status != 0) {
        free(s->aside);
        s->aside = NULL;
    }
    return status == 0 ? 0 : -1;
}

/* No new file could be made: the old one gets its name again, unless something is there by now that holds something. */
static void put_back(const standing *s)
{
    bool abandoned;

    if (s->aside != NULL &&
        (access(s->real, F_OK) != 0 || (cow_journal_holds_nothing(s->real, &abandoned) && abandoned)))
        rename(s->aside, s->real);
}

/* The new file, still empty: nobody may do more with it than with the old one, from the first moment on. */
static int make_successor(const char *name, standing *s)
{
    struct stat about;
    int file = open(s->real, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR), kept = -1;

    if (file < 0)
        return cow_error(COW_IO, "%s: cannot be created anew: %s", name, strerror(errno));
    kept = cow_newfile_like(file, s->aside);
    /* until its first commit, which takes it away again */
    if (kept >= 0 && (s->withheld = cow_protection_of(s->aside)) != 0 &&
        (fstat(file, &about) < 0 || fchmod(file, cow_protection_mode(about.st_mode & 07777, s->withheld)) < 0))
        kept = cow_error(COW_IO, "%s: cannot be created anew: %s", name, strerror(errno));
    close(file);
    if (kept == 0)
        fprintf(stderr,
                "h5cow: %s was created anew, and this user cannot give it the owner, group and attributes of the file "
                "before: look who may use it\n",
                name);
    return kept < 0 ? -1 : 0;
}

/* Open for writing: nobody else can then. UNDER: with the journal's driver. */
static void *hold(const char *name, hid_t under)
{
    void *native = H5VLfile_open(name, H5F_ACC_RDWR, under, DXPL, NULL);

    if (native == NULL)
        cow_error_native("%s: the file has a history, which is kept, but it cannot be opened for writing", name);
    return native;
}

/* The file with history that NATIVE is, open for writing, goes aside. Takes NATIVE, also when it fails. */
static int make_way(const char *name, void *native, bool discard, standing *s)
{
    int status = -1;

    if (discard && cow_vol_file_who(native) == COW_USERS_SOME)
        cow_error(
            COW_IO,
            "%s: another program is reading the file, so it was not discarded (option truncate=discard): try again "
            "when it is closed",
            name);
    else if ((status = put_aside(name, s)) == 0 && (status = make_successor(name, s)) < 0)
        put_back(s);
    if (status < 0) {
        cow_object_close_native(native, H5I_FILE);
        return -1;
    }
    s->held = native;
    s->discard = discard;
    return 0;
}

/* A file that was opened here, and is not to be changed. */
static void give_up(cow_object **file)
{
    cow_error_held *held = cow_error_hold();

    (*file)->home->failed = true;
    if (cow_vol_file_close(*file, DXPL, NULL) < 0)
        cow_vol_file_close(*file, DXPL, NULL);
    *file = NULL;
    cow_error_put_back(held);
}

/* H5F_ACC_TRUNC on a file with history, through the default driver. */
static int truncate_head(const char *name, hid_t fcpl, hid_t fapl, hid_t under, const cow_options *options, standing *s)
{
    void *native;
    unsigned long failures;
    int same;

    if (check_history(name, under, options) < 0 || (native = hold(name, under)) == NULL)
        return -1;
    if (options->truncate == COW_TRUNCATE_DISCARD || cow_vol_file_who(native) == COW_USERS_NO_JOURNAL)
        return make_way(name, native, options->truncate == COW_TRUNCATE_DISCARD, s);
    if ((same = same_properties(native, fcpl)) < 0) {
        cow_object_close_native(native, H5I_FILE);
        return -1;
    }
    if (!same)
        return make_way(name, native, false, s);
    if ((s->object = cow_vol_file_join(native, name, NULL, NULL, true, false, options, fapl)) == NULL)
        return -1;
    failures = cow_journal_driver_failures();
    if (cow_file_clear_head(s->object->home->file) == 0) {
        s->object->home->emptied = true;
        return 0;
    }
    give_up(&s->object);
    if (cow_journal_driver_failures() != failures)
        return cow_error(COW_IO, "%s: the file could not be emptied", name);
    if (cow_error_is(COW_MEMORY)) {
        cow_error_in_file(name);
        return -1;
    }
    cow_error_clear(); /* the program's own class of links does not let go of one, for instance */
    return (native = hold(name, under)) == NULL ? -1 : make_way(name, native, false, s);
}

/* The same through another driver, which knows nothing of histories. */
static int truncate_other(const char *name, hid_t plain, const cow_options *options, standing *s)
{
    hid_t under = cow_native_fapl(plain);
    void *native = NULL;

    if (under >= 0 && cow_vol_file_use_journal(under, plain, options) == 0)
        native = hold(name, under);
    if (under >= 0)
        H5Pclose(under);
    return native == NULL ? -1 : make_way(name, native, false, s);
}

/* What is at NAME before a file is created over it. */
static int before_truncation(const char *name, hid_t fcpl, hid_t fapl, hid_t under, bool ours,
                             const cow_options *options, standing *s)
{
    hid_t plain = ours ? fapl : cow_sec2_fapl();
    unsigned long number = 0;
    int history, status = 0;
    bool abandoned;

    if (plain < 0)
        return cow_error_native("%s: cannot prepare to create the file", name);
    if (access(name, F_OK) != 0)
        goto done;
    history = cow_has_history(name, plain, &number);
    if (cow_home_find(number) != NULL)
        goto done; /* a file that is open here already is native HDF5's to refuse */
    if (history && ours)
        status = truncate_head(name, fcpl, fapl, under, options, s);
    else if (history && cow_mpi_list(fapl)) /* since we looked */
        status =
            cow_error(COW_READ_ONLY, "%s: it has got a history, which MPI-IO would write over: use another name", name);
    else if (history && cow_driver_writes(fapl, true))
        status = truncate_other(name, plain, options, s);
    else if (number == 0 && (ours || cow_driver_writes(fapl, true)) && !cow_journal_unfinished(name, &abandoned) &&
             (cow_journal_present(name) || may_have_history(name))) {
        hid_t native_plain = cow_native_fapl(plain);
        void *native = native_plain < 0 ? NULL : H5VLfile_open(name, H5F_ACC_RDONLY, native_plain, DXPL, NULL);

        status = -1;
        if (native != NULL) { /* it can be opened after all: somebody has just closed it */
            cow_object_close_native(native, H5I_FILE);
            cow_error(COW_IO, "somebody else was using it");
        } else if (native_plain >= 0)
            cow_error_native("cannot open it");
        refuse_damaged(name);
        if (native_plain >= 0)
            H5Pclose(native_plain);
    }
done:
    if (!ours)
        H5Pclose(plain);
    return status;
}

/* Everything before native HDF5 creates a file with another driver. What is at its name is changed only where no other process
 * has a say. */
static int prepare_other(const char *name, unsigned flags, hid_t fcpl, hid_t fapl, hid_t under,
                         const cow_options *options, standing *s)
{
    int status = options == NULL || under < 0 || cow_driver_check(name, flags, fapl) < 0 ||
                         ((flags & H5F_ACC_TRUNC) && before_truncation(name, fcpl, fapl, under, false, options, s) < 0)
                     ? -1
                     : 0;

    return cow_mpi_agree(name, fapl, status);
}

/* Readers may open what is made for a single writer and multiple readers as soon as it is made: it is committed. */
static int settle(cow_home *home, unsigned flags, hid_t fapl)
{
    home->writable = true;
    home->asked.old_format = home->asked.low < H5F_LIBVER_V110 && !(flags & H5F_ACC_SWMR_WRITE);
    if (!(flags & H5F_ACC_SWMR_WRITE))
        return 0;
    cow_home_start_swmr(home, cow_swmr_attempts(fapl));
    return home->file == NULL ? 0 : cow_file_commit(home->file, COW_FLUSH);
}

/* UNDER is made fit for a file with history. */
static int prepare_list(const char *name, hid_t under, hid_t fapl, hid_t fcpl, const cow_options *options)
{
    H5F_libver_t low, high;

    cow_raised_bounds(fapl, &low, &high);
    if (H5Pset_libver_bounds(under, low, high) < 0 || cow_metadata_cache_set_image(under, false) < 0)
        return cow_error_native("%s: cannot prepare to create the file", name);
    if (cow_page_buffer_leave_out(under, fcpl) < 0)
        return cow_context("%s", name);
    return cow_small_blocks(under) < 0 ? -1 : cow_vol_file_use_journal(under, fapl, options);
}

void *cow_vol_file_create(const char *name, unsigned flags, hid_t fcpl, hid_t fapl, hid_t dxpl, void **req)
{
    COW_QUIET_FOR(false);
    hid_t under = cow_native_fapl(fapl); /* of a list for MPI-IO by all processes together */
    cow_options *options = cow_fapl_options(fapl);
    standing s = {0};
    hid_t stack = H5I_INVALID_HID, own_fcpl = H5I_INVALID_HID;
    unsigned native_flags = flags;
    void *native;
    bool ours, abandoned, again = false;
    uint8_t spaces = COW_NO_SPACES;

    cow_witness(COW_WITNESS_OPENED, name);
    ours = cow_default_driver(fapl); /* another driver keeps the file elsewhere, or in another form: passed through */
    if ((ours ? (options == NULL || under < 0 ? -1 : 0) : prepare_other(name, flags, fcpl, fapl, under, options, &s)) <
        0)
        goto done;
    if (!ours && cow_driver_writes(fapl, true))
        cow_witness_plain(name);
    if (ours) {
        native_flags &= ~H5F_ACC_SWMR_WRITE; /* see cow_home_start_swmr */
        if (prepare_list(name, under, fapl, fcpl, options) < 0 || (own_fcpl = creation_properties(fcpl, &spaces)) < 0)
            goto done;
        fcpl = own_fcpl;
    }
    /* what a program left that died before its first commit is no file yet */
    if (ours && (flags & H5F_ACC_EXCL) && cow_journal_unfinished(name, &abandoned) && abandoned)
        native_flags = (native_flags & ~H5F_ACC_EXCL) | H5F_ACC_TRUNC;
    do {
        if (again)
            H5Eclear2(H5E_DEFAULT);
        if (ours && (flags & H5F_ACC_TRUNC) &&
            (before_truncation(name, fcpl, fapl, under, true, options, &s) < 0 || s.object != NULL))
            goto done;
        if (ours && s.withheld != 0) {
            options->protect = true;
            if (cow_vol_file_use_journal(under, fapl, options) < 0)
                goto done;
        }
        native = H5VLfile_create(name, native_flags, fcpl, under, dxpl, req);
        /* while we waited for its creator, it may have got a history */
        again =
            native == NULL && !again && ours && (flags & H5F_ACC_TRUNC) && s.aside == NULL && cow_journal_present(name);
    } while (again);
    if (native == NULL) {
        stack = cow_errors_take(); /* programs read the reason there; closing the lists would clear it */
        put_back(&s);
    } else
        s.object = ours ? cow_vol_file_join(native, name, NULL, NULL, true, true, options, fapl)
                        : cow_vol_file_pass(native, false, options);
    if (native != NULL && s.object == NULL)
        put_back(&s);
    if (s.object != NULL && s.aside != NULL && ours)
        cow_file_replaces(s.object->home->file, s.aside, s.discard); /* else it is just kept */
done:
    if (s.held != NULL) {
        cow_vol_file_drop_changes(s.held, "the file was put aside"); /* HDF5 notes that it was open */
        if (cow_object_close_native(s.held, H5I_FILE) < 0)
            cow_error_clear();
    }
    cow_vol_file_remember(s.object, fapl);
    if (ours && s.object != NULL && cow_file_set_spaces(s.object->home->file, spaces) < 0)
        give_up(&s.object);
    if (s.object != NULL && s.object->home != NULL && settle(s.object->home, flags, fapl) < 0)
        give_up(&s.object);
    cow_close(own_fcpl, under);
    cow_options_free(options);
    free(s.real);
    free(s.aside);
    cow_errors_give_back(stack);
    if (s.object == NULL)
        cow_error_in_file(name);
    return cow_leave_pointer(s.object);
}
