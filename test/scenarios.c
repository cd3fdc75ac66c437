/* Scenario programs. Contract: scenarios.h.
 *
 * First the steps of which scenarios are made. Each changes the picture (picture.h) of what the file must hold, and
 * where the scenario is run for real makes the HDF5 calls as well. After a call that failed, steps do nothing. Then the
 * scenarios, and the comparison of a file with the pictures. */
#include "scenarios.h"

#include "die.h"
#include "h5cow.h"
#include "picture.h"

#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERSIONS_MAX 64
#define STATES_MAX   64

/* ---- states ---- */

struct scenario_states {
    picture *made[VERSIONS_MAX * 2]; /* every content that was a version, amended ones too */
    int made_count;
    struct {
        int version[VERSIONS_MAX]; /* which of `made` */
        int number[VERSIONS_MAX];  /* what it is called: from 1, without those that were forgotten */
        int version_count, last;   /* LAST: number of the newest one ever made */
    } state[STATES_MAX + 1];
    int count;
};

int scenario_states_count(const scenario_states *states)
{
    return states->count;
}

int scenario_state_versions(const scenario_states *states, int state)
{
    return states->state[state].version_count;
}

void scenario_states_free(scenario_states *states)
{
    if (states == NULL)
        return;
    for (int i = 0; i < states->made_count; i++)
        picture_free(states->made[i]);
    free(states);
}

/* ---- steps ---- */

typedef struct scenario_work {
    const scenario *scenario;
    const scenario_run *run; /* NULL: only the picture */
    bool live;               /* HDF5 calls are made */
    bool failed;
    hid_t file;
    picture *now;
    scenario_states *states;
    bool amending;    /* the newest version is that of this opening */
    bool keeps_space; /* files are created with pages, and keep their free space */
} scenario_work;

#define ON(w) ((w)->live && !(w)->failed)

static void check(scenario_work *w, bool right)
{
    if (!right)
        w->failed = true;
}

/* The picture becomes a version, or takes the place of the one that this opening made. Is it another state? */
static bool record_commit(scenario_work *w, bool finished)
{
    scenario_states *s = w->states;
    int state = s->count, versions = s->state[state].version_count;
    const char *why;
    bool differs = versions == 0 || !picture_same(w->now, s->made[s->state[state].version[versions - 1]], &why);

    if (differs) {
        if (state + 1 > STATES_MAX || s->made_count == VERSIONS_MAX * 2)
            die("%s: too many states", w->scenario->name);
        s->state[state + 1] = s->state[state];
        s->count = ++state;
        s->made[s->made_count] = picture_copy(w->now);
        if (!w->amending) {
            versions = ++s->state[state].version_count;
            s->state[state].number[versions - 1] = ++s->state[state].last;
        }
        s->state[state].version[versions - 1] = s->made_count++;
        w->amending = true;
    }
    if (finished)
        w->amending = false;
    return differs;
}

static void report(scenario_work *w)
{
    if (ON(w) && w->run->committed != NULL)
        w->run->committed(w->run->context, w->states->count);
}

/* What was not committed comes to nothing. */
static void forget(scenario_work *w)
{
    scenario_states *s = w->states;
    int versions = s->state[s->count].version_count;

    picture_free(w->now);
    w->now = versions == 0 ? picture_new() : picture_copy(s->made[s->state[s->count].version[versions - 1]]);
    w->amending = false;
}

static void create(scenario_work *w)
{
    hid_t fcpl = w->live && w->keeps_space ? H5Pcreate(H5P_FILE_CREATE) : H5P_DEFAULT;

    picture_free(w->now);
    w->now = picture_new();
    if (fcpl != H5P_DEFAULT)
        check(w, H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_PAGE, true, 1) >= 0 &&
                     H5Pset_file_space_page_size(fcpl, 512) >= 0);
    if (ON(w))
        check(w, (w->file = H5Fcreate(w->run->file, H5F_ACC_TRUNC, fcpl, w->run->fapl)) >= 0);
    if (fcpl != H5P_DEFAULT)
        H5Pclose(fcpl);
}

static void reopen(scenario_work *w)
{
    if (ON(w))
        check(w, (w->file = H5Fopen(w->run->file, H5F_ACC_RDWR, w->run->fapl)) >= 0);
}

static void flush(scenario_work *w)
{
    if (ON(w))
        check(w, H5Fflush(w->file, H5F_SCOPE_LOCAL) >= 0);
    record_commit(w, strstr(w->scenario->options, "commit=flush") != NULL);
    report(w);
}

/* A close that reports an error leaves the id open; the second one closes without a commit. */
static bool close_file(scenario_work *w)
{
    hid_t file = w->file;

    w->file = H5I_INVALID_HID;
    if (!w->live || file < 0 || H5Fclose(file) >= 0)
        return true;
    H5Fclose(file);
    return false;
}

static void end(scenario_work *w)
{
    check(w, close_file(w));
    record_commit(w, true);
    report(w);
}

/* A finished version, and the file stays open. */
static void commit(scenario_work *w)
{
    h5cow_version_t *versions = NULL;
    size_t count = 0;

    if (ON(w))
        check(w, h5cow_describe(w->file, NULL, "of a program that knows") >= 0);
    if (ON(w))
        check(w, h5cow_commit(w->file, NULL) >= 0);
    record_commit(w, true);
    report(w);
    if (ON(w))
        check(w, h5cow_versions(w->file, &count, &versions) >= 0);
    h5cow_free(versions);
}

/* Nothing of what was written since the last commit is to be kept. */
static void abandon(scenario_work *w)
{
    if (ON(w))
        check(w, h5cow_abort(w->file) >= 0);
    check(w, close_file(w));
    forget(w);
    report(w);
}

/* As in version NUMBER, but for what is committed next. */
static void restore(scenario_work *w, int number)
{
    scenario_states *s = w->states;
    char revision[16];

    picture_free(w->now);
    w->now = picture_copy(s->made[s->state[s->count].version[number - 1]]);
    snprintf(revision, sizeof revision, "%d", number);
    if (ON(w))
        check(w, h5cow_restore(w->file, &(h5cow_restore_t){.revision = revision}) >= 0);
}

/* Versions FIRST to LAST go, one commit; what they needed becomes free, another one. */
static void forget_versions(scenario_work *w, int first, int last)
{
    scenario_states *s = w->states;
    int from = s->count, count = 0;
    char name[VERSIONS_MAX][16];
    const char *revision[VERSIONS_MAX];
    h5cow_forget_t request = {.revisions = revision};

    if (from + 1 > STATES_MAX)
        die("%s: too many states", w->scenario->name);
    s->state[from + 1] = s->state[from];
    for (int i = 0; i < s->state[from].version_count; i++)
        if (s->state[from].number[i] < first || s->state[from].number[i] > last) {
            s->state[from + 1].version[count] = s->state[from].version[i];
            s->state[from + 1].number[count++] = s->state[from].number[i];
        } else {
            snprintf(name[request.count], sizeof name[0], "%d", s->state[from].number[i]);
            revision[request.count] = name[request.count];
            request.count++;
        }
    s->state[from + 1].version_count = count;
    s->count++;
    if (ON(w))
        check(w, h5cow_forget(w->file, &request) >= 0);
    report(w);
    if (ON(w))
        check(w, h5cow_collect(w->file, NULL) >= 0);
    report(w);
}

/* Commits that change nothing of any version. */
static void call_newest(scenario_work *w, const char *tag)
{
    if (ON(w))
        check(w, h5cow_tag(w->file, "latest", tag, 1) >= 0);
    if (ON(w))
        check(w, h5cow_set_message(w->file, tag, "named") >= 0);
    if (ON(w))
        check(w, h5cow_untag(w->file, tag) >= 0);
    report(w);
}

static void group(scenario_work *w, const char *path)
{
    picture_add(w->now, path, GROUP, 0, NULL);
    if (ON(w)) {
        hid_t id = H5Gcreate2(w->file, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        check(w, id >= 0 && H5Gclose(id) >= 0);
    }
}

static void note(scenario_work *w, const char *path, int value)
{
    object *o = picture_object(w->now, path);
    bool exists = o->noted;

    o->noted = true;
    o->note = value;
    if (ON(w)) {
        hid_t id = H5Oopen(w->file, path, H5P_DEFAULT), space = H5Screate(H5S_SCALAR), attribute;

        attribute = id < 0   ? H5I_INVALID_HID
                    : exists ? H5Aopen(id, "note", H5P_DEFAULT)
                             : H5Acreate2(id, "note", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT);
        check(w, attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_INT, &value) >= 0);
        if (attribute >= 0)
            check(w, H5Aclose(attribute) >= 0);
        if (id >= 0)
            H5Oclose(id);
        H5Sclose(space);
    }
}

static void unnote(scenario_work *w, const char *path)
{
    picture_object(w->now, path)->noted = false;
    if (ON(w))
        check(w, H5Adelete_by_name(w->file, path, "note", H5P_DEFAULT) >= 0);
}

/* CHUNK NULL: contiguous, of fixed extent. DEFLATE: by the dataset's own filter. Elements are 0, and no text. */
static void dataset(scenario_work *w, const char *path, kind what, int rank, const hsize_t extent[],
                    const hsize_t chunk[], bool deflate)
{
    picture_add(w->now, path, what, rank, extent);
    if (ON(w)) {
        const hsize_t unlimited[RANK_MAX] = {H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED};
        hid_t space = H5Screate_simple(rank, extent, chunk == NULL ? NULL : unlimited);
        hid_t list = H5Pcreate(H5P_DATASET_CREATE), set;
        hid_t type = what == TEXTS ? picture_text_type() : what == PAIRS ? picture_pair_type() : H5Tcopy(H5T_STD_I32LE);

        check(w, chunk == NULL || H5Pset_chunk(list, rank, chunk) >= 0);
        check(w, !deflate || (H5Pset_shuffle(list) >= 0 && H5Pset_deflate(list, 6) >= 0));
        set = H5Dcreate2(w->file, path, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
        check(w, set >= 0 && H5Dclose(set) >= 0);
        H5Tclose(type);
        H5Pclose(list);
        H5Sclose(space);
    }
}

/* What SEED writes to the element at a place. Never 0. */
static int value_at(int seed, int rank, const hsize_t at[])
{
    uint64_t v = (uint64_t)seed * 1000003;

    for (int d = 0; d < rank; d++)
        v = v * 31 + at[d] + 1;
    return (int)(v % 100000) + 1;
}

typedef struct box {
    hsize_t from[RANK_MAX], size[RANK_MAX];
} box;

/* For each element of the box: its index in the dataset. Returns how many. */
static size_t box_elements(const object *o, const box *b, size_t **index, int **value, int seed)
{
    size_t count = 1, n = 0;
    hsize_t at[RANK_MAX] = {0};

    for (int d = 0; d < o->rank; d++)
        count *= (size_t)b->size[d];
    *index = need(malloc((count + 1) * sizeof **index));
    *value = need(malloc((count + 1) * sizeof **value));
    for (; n < count; n++) {
        hsize_t place[RANK_MAX];
        size_t i = 0;

        for (int d = 0; d < o->rank; d++) {
            place[d] = b->from[d] + at[d];
            i = i * (size_t)o->extent[d] + (size_t)place[d];
        }
        (*index)[n] = i;
        (*value)[n] = value_at(seed, o->rank, place);
        for (int d = o->rank - 1; d >= 0 && ++at[d] == b->size[d]; d--)
            at[d] = 0;
    }
    return count;
}

static void write_texts(scenario_work *w, hid_t set, hid_t memory, hid_t space, const int *value, size_t count)
{
    char(*text)[128] = need(malloc((count + 1) * sizeof *text));
    const char **pointer = need(malloc((count + 1) * sizeof *pointer));
    hid_t type = picture_text_type();

    for (size_t i = 0; i < count; i++) {
        picture_text(value[i], text[i], sizeof text[i]);
        pointer[i] = text[i];
    }
    check(w, H5Dwrite(set, type, memory, space, H5P_DEFAULT, pointer) >= 0);
    H5Tclose(type);
    free(pointer);
    free(text);
}

/* MEMBERS of PAIRS: 1 a, 2 b, 3 both. */
static void write_pairs(scenario_work *w, hid_t set, hid_t memory, hid_t space, const int *value, size_t count,
                        int members)
{
    pair *pairs = need(calloc(count + 1, sizeof *pairs));
    hid_t type = members == 3 ? picture_pair_type() : H5Tcreate(H5T_COMPOUND, sizeof(pair));

    if (members == 1)
        H5Tinsert(type, "a", HOFFSET(pair, a), H5T_NATIVE_INT);
    if (members == 2)
        H5Tinsert(type, "b", HOFFSET(pair, b), H5T_NATIVE_DOUBLE);
    for (size_t i = 0; i < count; i++)
        pairs[i] = (pair){value[i], (value[i] + 1) * 0.5};
    check(w, H5Dwrite(set, type, memory, space, H5P_DEFAULT, pairs) >= 0);
    H5Tclose(type);
    free(pairs);
}

static void fill_members(scenario_work *w, const char *path, const box *part, int seed, int members)
{
    object *o = picture_object(w->now, path);
    box whole = {{0}, {0}};
    size_t *index, count;
    int *value;

    for (int d = 0; d < o->rank; d++)
        whole.size[d] = o->extent[d];
    if (part == NULL)
        part = &whole;
    count = box_elements(o, part, &index, &value, seed);
    for (size_t i = 0; i < count; i++)
        if (o->kind == PAIRS) {
            if (members & 1)
                o->value[2 * index[i]] = value[i];
            if (members & 2)
                o->value[2 * index[i] + 1] = value[i] + 1;
        } else
            o->value[index[i]] = value[i];
    if (ON(w)) {
        hid_t set = H5Dopen2(w->file, path, H5P_DEFAULT), space = set < 0 ? H5I_INVALID_HID : H5Dget_space(set);
        hid_t memory = H5Screate_simple(o->rank, part->size, NULL);

        check(w, space >= 0 && memory >= 0 &&
                     H5Sselect_hyperslab(space, H5S_SELECT_SET, part->from, NULL, part->size, NULL) >= 0);
        if (ON(w) && o->kind == TEXTS)
            write_texts(w, set, memory, space, value, count);
        else if (ON(w) && o->kind == PAIRS)
            write_pairs(w, set, memory, space, value, count, members);
        else if (ON(w))
            check(w, H5Dwrite(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, value) >= 0);
        if (memory >= 0)
            H5Sclose(memory);
        if (space >= 0)
            H5Sclose(space);
        if (set >= 0)
            check(w, H5Dclose(set) >= 0);
    }
    free(index);
    free(value);
}

static void fill(scenario_work *w, const char *path, int seed)
{
    fill_members(w, path, NULL, seed, 3);
}

static void fill_box(scenario_work *w, const char *path, hsize_t from0, hsize_t from1, hsize_t size0, hsize_t size1,
                     int seed)
{
    const box b = {{from0, from1}, {size0, size1}};

    fill_members(w, path, &b, seed, 3);
}

/* What is new is 0, what was cut off is gone. */
static void resize(scenario_work *w, const char *path, const hsize_t extent[])
{
    object *o = picture_object(w->now, path), old = *o;
    box both = {{0}, {0}};
    size_t *from, *to, count;
    int *unused;

    for (int d = 0; d < o->rank; d++) {
        o->extent[d] = extent[d];
        both.size[d] = extent[d] < old.extent[d] ? extent[d] : old.extent[d];
    }
    o->value = need(calloc(picture_elements(o) + 1, sizeof(int)));
    count = box_elements(&old, &both, &from, &unused, 0);
    free(unused);
    box_elements(o, &both, &to, &unused, 0);
    free(unused);
    for (size_t i = 0; i < count; i++)
        o->value[to[i]] = old.value[from[i]];
    free(from);
    free(to);
    free(old.value);
    if (ON(w)) {
        hid_t set = H5Dopen2(w->file, path, H5P_DEFAULT);
        check(w, set >= 0 && H5Dset_extent(set, extent) >= 0);
        if (set >= 0)
            check(w, H5Dclose(set) >= 0);
    }
}

static bool is_below(const char *path, const char *group_path)
{
    size_t length = strlen(group_path);

    return strncmp(path, group_path, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

/* Objects stay in the picture, unlinked, like in a file. */
static void delete_link(scenario_work *w, const char *path)
{
    picture *p = w->now;

    for (int i = p->link_count - 1; i >= 0; i--)
        if (is_below(p->link[i].path, path))
            p->link[i] = p->link[--p->link_count];
    if (ON(w))
        check(w, H5Ldelete(w->file, path, H5P_DEFAULT) >= 0);
}

static void move(scenario_work *w, const char *from, const char *to)
{
    picture *p = w->now;

    for (int i = 0; i < p->link_count; i++)
        if (is_below(p->link[i].path, from)) {
            char path[sizeof p->link[i].path];
            snprintf(path, sizeof path, "%.30s%.30s", to, p->link[i].path + strlen(from));
            memcpy(p->link[i].path, path, sizeof path);
        }
    if (ON(w))
        check(w, H5Lmove(w->file, from, w->file, to, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void hard_link(scenario_work *w, const char *from, const char *to)
{
    picture_link(w->now, to, w->now->link[picture_find(w->now, from)].object);
    if (ON(w))
        check(w, H5Lcreate_hard(w->file, from, w->file, to, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void soft_link(scenario_work *w, const char *target, const char *path)
{
    named *l = picture_link(w->now, path, -1);

    snprintf(l->target, sizeof l->target, "%s", target);
    if (ON(w))
        check(w, H5Lcreate_soft(target, w->file, path, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

/* With all that is below it; without links that share objects. */
static void copy(scenario_work *w, const char *from, const char *to)
{
    picture *p = w->now;
    int count = p->link_count;

    for (int i = 0; i < count; i++)
        if (is_below(p->link[i].path, from)) {
            char path[sizeof p->link[i].path];
            const object *o = &p->objects[p->link[i].object];
            object *made;

            snprintf(path, sizeof path, "%.30s%.30s", to, p->link[i].path + strlen(from));
            made = picture_add(p, path, o->kind, o->rank, o->extent);
            memcpy(made->value, o->value, picture_elements(o) * sizeof(int));
            made->noted = o->noted;
            made->note = o->note;
        }
    if (ON(w))
        check(w, H5Ocopy(w->file, from, w->file, to, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

/* ---- other processes ---- */

static bool ended_well(pid_t id)
{
    int status;

    return id > 0 && waitpid(id, &status, 0) == id && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* A program that does WORK and ends without closing the file: by exit(), which commits, or at once. */
static void in_child(scenario_work *w, void (*work)(scenario_work *), bool by_exit)
{
    bool live = w->live;
    pid_t id = -1;

    if (ON(w)) {
        fflush(NULL);
        if ((id = fork()) == 0) {
            work(w);
            if (by_exit && !w->failed)
                exit(0);
            _exit(w->failed);
        }
    }
    w->live = false; /* here only the picture */
    work(w);
    w->live = live;
    if (ON(w))
        check(w, ended_well(id));
    if (by_exit)
        record_commit(w, true);
    else
        forget(w);
    report(w);
}

typedef struct reader {
    pid_t id;
    int to, from; /* pipes */
} reader;

static bool sees(hid_t file, const picture *expected)
{
    picture *p = picture_read(file, "");
    const char *why;
    bool same = p != NULL && picture_same(expected, p, &why);

    picture_free(p);
    return same;
}

/* A process that has the file open, and holds on to what it saw: through the connector, or native HDF5. */
static reader start_reader(scenario_work *w, bool stock)
{
    reader r = {-1, -1, -1};
    int ask[2], answer[2];
    char byte = 0;

    if (!ON(w) || pipe(ask) < 0)
        return r;
    if (pipe(answer) < 0) {
        close(ask[0]);
        close(ask[1]);
        return r;
    }
    fflush(NULL);
    if ((r.id = fork()) == 0) {
        hid_t file = H5Fopen(w->run->file, H5F_ACC_RDONLY, stock ? w->run->stock_fapl : w->run->fapl);
        bool right = file >= 0 && sees(file, w->now);

        close(ask[1]);
        close(answer[0]);
        if (write(answer[1], right ? "1" : "0", 1) != 1 || read(ask[0], &byte, 1) != 1 || !right || !sees(file, w->now))
            _exit(1);
        _exit(0);
    }
    close(ask[0]);
    close(answer[1]);
    r.to = ask[1];
    r.from = answer[0];
    check(w, r.id > 0 && read(r.from, &byte, 1) == 1 && byte == '1');
    return r;
}

static void stop_reader(scenario_work *w, reader r)
{
    if (r.id < 0)
        return;
    check(w, write(r.to, "1", 1) == 1);
    close(r.to);
    close(r.from);
    check(w, ended_well(r.id));
}

/* ---- scenarios ---- */

#define DIMS(...) ((const hsize_t[]){__VA_ARGS__})

static void begin_grid(scenario_work *w)
{
    create(w);
    group(w, "data");
    note(w, "data", 1);
    dataset(w, "data/grid", INTEGERS, 2, DIMS(30, 20), DIMS(16, 16), false);
    fill(w, "data/grid", 1);
}

static void first_version(scenario_work *w)
{
    begin_grid(w);
    end(w);
}

static void rewrite(scenario_work *w)
{
    begin_grid(w);
    end(w);
    for (int v = 2; v <= 4; v++) {
        reopen(w);
        fill(w, "data/grid", v);
        end(w);
    }
}

static void rewrite_few_chunks(scenario_work *w)
{
    create(w);
    dataset(w, "grid", INTEGERS, 2, DIMS(64, 64), DIMS(16, 16), false);
    fill(w, "grid", 1);
    end(w);
    for (int v = 2; v <= 4; v++) {
        reopen(w);
        fill_box(w, "grid", 16, 8, 10, 20, v);
        fill_box(w, "grid", 60, 60, 4, 4, v + 10);
        end(w);
    }
}

static void extend(scenario_work *w)
{
    create(w);
    dataset(w, "cube", INTEGERS, 3, DIMS(4, 6, 8), DIMS(4, 4, 4), false);
    fill(w, "cube", 1);
    end(w);
    reopen(w);
    resize(w, "cube", DIMS(9, 6, 8));
    end(w);
    reopen(w);
    resize(w, "cube", DIMS(9, 10, 15));
    fill(w, "cube", 2);
    end(w);
    reopen(w);
    resize(w, "cube", DIMS(10, 11, 15));
    fill_members(w, "cube", &(box){{9, 0, 0}, {1, 11, 15}}, 3, 3);
    end(w);
}

static void shrink_then_grow(scenario_work *w)
{
    create(w);
    dataset(w, "grid", INTEGERS, 2, DIMS(40, 40), DIMS(16, 16), false);
    fill(w, "grid", 1);
    end(w);
    reopen(w);
    resize(w, "grid", DIMS(10, 25));
    end(w);
    reopen(w);
    resize(w, "grid", DIMS(40, 40));
    end(w);
    reopen(w);
    resize(w, "grid", DIMS(5, 5));
    resize(w, "grid", DIMS(30, 50));
    fill_box(w, "grid", 20, 20, 10, 30, 2);
    end(w);
}

static void flush_and_close(scenario_work *w)
{
    begin_grid(w);
    flush(w);
    fill(w, "data/grid", 2);
    end(w);
    reopen(w);
    fill(w, "data/grid", 3);
    flush(w);
    end(w);
}

static void amend(scenario_work *w)
{
    begin_grid(w);
    end(w);
    reopen(w);
    for (int v = 2; v <= 5; v++) {
        fill_box(w, "data/grid", (hsize_t)v, 2, 12, 10, v);
        note(w, "data", v);
        flush(w);
    }
    dataset(w, "late", INTEGERS, 1, DIMS(2000), NULL, false);
    fill(w, "late", 1);
    flush(w);
    fill(w, "late", 2);
    end(w);
}

static void version_of_each_flush(scenario_work *w)
{
    begin_grid(w);
    for (int v = 2; v <= 5; v++) {
        flush(w);
        fill(w, "data/grid", v);
    }
    end(w);
}

static void delete_and_make_anew(scenario_work *w)
{
    begin_grid(w);
    dataset(w, "gone", INTEGERS, 1, DIMS(3000), DIMS(500), false);
    fill(w, "gone", 1);
    end(w);
    reopen(w);
    delete_link(w, "gone");
    end(w);
    reopen(w);
    dataset(w, "gone", INTEGERS, 2, DIMS(20, 20), DIMS(8, 8), false);
    fill(w, "gone", 2);
    flush(w);
    delete_link(w, "data");
    end(w);
}

static void create_over(scenario_work *w)
{
    begin_grid(w);
    end(w);
    create(w);
    dataset(w, "other", INTEGERS, 1, DIMS(2500), DIMS(500), false);
    fill(w, "other", 2);
    end(w);
    begin_grid(w);
    flush(w);
    fill(w, "data/grid", 3);
    end(w);
}

static void many_small(scenario_work *w)
{
    char name[32];

    create(w);
    group(w, "small");
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "small/%d", i);
        dataset(w, name, INTEGERS, 1, DIMS(3), i % 3 == 0 ? DIMS(2) : NULL, false);
        fill(w, name, i);
        if (i == 40)
            flush(w);
    }
    end(w);
    reopen(w);
    for (int i = 5; i < 60; i += 11) {
        snprintf(name, sizeof name, "small/%d", i);
        fill(w, name, i + 1000);
    }
    end(w);
}

/* Versions of a large group are copied, amended, forgotten, and what they had is written again. */
static void large_group(scenario_work *w)
{
    char name[32];

    create(w);
    group(w, "many");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "many/%d", i);
        dataset(w, name, INTEGERS, 1, DIMS(5), i % 2 ? DIMS(3) : NULL, false);
        fill(w, name, i);
    }
    end(w);
    for (int i = 2; i <= 5; i++) {
        reopen(w);
        snprintf(name, sizeof name, "many/%d", 3 * i);
        fill(w, name, 100 + i);
        if (i == 3) {
            flush(w);
            dataset(w, "many/late", INTEGERS, 1, DIMS(2000), DIMS(500), false);
            fill(w, "many/late", 1);
            flush(w);
            fill(w, "many/late", 2);
        }
        if (i == 4)
            delete_link(w, "many/7");
        end(w);
    }
    reopen(w);
    forget_versions(w, 1, 3);
    end(w);
    reopen(w);
    fill(w, "many/late", 3);
    move(w, "many/8", "many/eight");
    end(w);
    reopen(w);
    forget_versions(w, 4, 5);
    fill(w, "many/9", 9);
    end(w);
}

static void strings(scenario_work *w)
{
    create(w);
    dataset(w, "chunked", TEXTS, 1, DIMS(60), DIMS(16), false);
    dataset(w, "plain", TEXTS, 1, DIMS(10), NULL, false);
    fill(w, "chunked", 1);
    fill(w, "plain", 1);
    end(w);
    reopen(w);
    fill_members(w, "chunked", &(box){{10}, {9}}, 2, 3);
    end(w);
    reopen(w);
    resize(w, "chunked", DIMS(90));
    fill(w, "plain", 3);
    end(w);
}

static void begin_groups(scenario_work *w)
{
    begin_grid(w);
    group(w, "data/inner");
    group(w, "data/inner/most");
    note(w, "data/inner/most", 4);
    end(w);
    reopen(w);
    note(w, "data/grid", 7);
}

static void attributes_and_groups(scenario_work *w)
{
    begin_groups(w);
    note(w, "data/inner/most", 5);
    group(w, "more");
    end(w);
    reopen(w);
    unnote(w, "data/grid");
    delete_link(w, "data/inner/most");
    end(w);
}

/* HDF5's list of free space grows and shrinks, and is written by closing the file. Flushed, HDF5 might end the program. */
static void keeps_free_space(scenario_work *w)
{
    w->keeps_space = true;
    begin_groups(w);
    delete_link(w, "data/inner");
    end(w);
    reopen(w);
    group(w, "more");
    dataset(w, "gone", INTEGERS, 1, DIMS(3000), DIMS(500), false);
    fill(w, "gone", 1);
    end(w);
    reopen(w);
    delete_link(w, "gone");
    end(w);
    create(w);
    dataset(w, "other", INTEGERS, 1, DIMS(2500), DIMS(500), false);
    fill(w, "other", 2);
    end(w);
}

static void compound_members(scenario_work *w)
{
    create(w);
    dataset(w, "pairs", PAIRS, 1, DIMS(300), DIMS(64), false);
    fill(w, "pairs", 1);
    end(w);
    reopen(w);
    fill_members(w, "pairs", &(box){{50}, {100}}, 2, 1);
    end(w);
    reopen(w);
    fill_members(w, "pairs", NULL, 3, 2);
    end(w);
}

static void moves_and_links(scenario_work *w)
{
    begin_grid(w);
    hard_link(w, "data/grid", "same");
    soft_link(w, "/data/grid", "soft");
    end(w);
    reopen(w);
    move(w, "data", "moved");
    end(w);
    reopen(w);
    fill(w, "same", 2);
    delete_link(w, "soft");
    delete_link(w, "moved/grid");
    end(w);
}

static void open_and_write(scenario_work *w)
{
    reopen(w);
    fill(w, "data/grid", 5);
    flush(w);
    fill(w, "data/grid", 6);
    dataset(w, "unclosed", INTEGERS, 1, DIMS(2000), DIMS(300), false);
    fill(w, "unclosed", 1);
}

static void exit_without_close(scenario_work *w)
{
    begin_grid(w);
    end(w);
    in_child(w, open_and_write, true);
    reopen(w);
    fill(w, "data/grid", 7);
    end(w);
}

static void killed_without_close(scenario_work *w)
{
    begin_grid(w);
    end(w);
    in_child(w, open_and_write, false);
    reopen(w);
    fill(w, "data/grid", 7);
    end(w);
}

/* Both syncs of a commit, and with the first one, which appends data as well, the one of a close. */
static void failed_commit(scenario_work *w)
{
    begin_grid(w);
    end(w);
    for (int nth = 1; nth <= 2; nth++) {
        reopen(w);
        fill(w, "data/grid", 2);
        if (ON(w)) {
            w->run->fail_sync(w->run->context, nth);
            check(w, H5Fflush(w->file, H5F_SCOPE_LOCAL) < 0);
            w->run->fail_sync(w->run->context, 0);
            check(w, !close_file(w)); /* what was not committed is lost, and that is said */
        }
        forget(w);
    }
    reopen(w);
    fill(w, "data/grid", 2);
    end(w);
}

static void pending_with_reader_of(scenario_work *w, bool stock)
{
    reader r;

    begin_grid(w);
    end(w);
    r = start_reader(w, stock);
    reopen(w);
    fill(w, "data/grid", 2);
    flush(w);
    delete_link(w, "data");
    dataset(w, "instead", INTEGERS, 1, DIMS(2000), DIMS(300), false);
    fill(w, "instead", 1);
    end(w);
    reopen(w);
    fill(w, "instead", 2);
    end(w);
    stop_reader(w, r);
    reopen(w);
    fill(w, "instead", 3);
    end(w);
}

static void pending_with_reader(scenario_work *w)
{
    pending_with_reader_of(w, false);
}

static void pending_with_stock_reader(scenario_work *w)
{
    pending_with_reader_of(w, true);
}

static void two_openings(scenario_work *w)
{
    hid_t other = H5I_INVALID_HID;

    begin_grid(w);
    end(w);
    reopen(w);
    if (ON(w))
        check(w, (other = H5Fopen(w->run->file, H5F_ACC_RDWR, w->run->fapl)) >= 0);
    fill(w, "data/grid", 2);
    flush(w);
    if (other >= 0) {
        hid_t first = w->file;
        w->file = other;
        other = first;
    }
    fill_box(w, "data/grid", 4, 4, 10, 10, 3);
    if (other >= 0 && H5Fclose(other) < 0) {
        check(w, false);
        H5Fclose(other);
    }
    record_commit(w, false);
    report(w);
    fill_box(w, "data/grid", 20, 4, 10, 10, 4);
    end(w);
}

static void compressed(scenario_work *w)
{
    begin_grid(w);
    dataset(w, "packed", INTEGERS, 2, DIMS(40, 40), DIMS(16, 16), true);
    fill(w, "packed", 1);
    end(w);
    for (int v = 2; v <= 3; v++) {
        reopen(w);
        fill_box(w, "packed", 10, 10, 20, 5, v);
        fill(w, "data/grid", v);
        end(w);
    }
}

static void copied(scenario_work *w)
{
    begin_grid(w);
    end(w);
    reopen(w);
    copy(w, "data", "copy");
    end(w);
    reopen(w);
    fill_box(w, "copy/grid", 0, 0, 5, 5, 2);
    copy(w, "copy/grid", "again");
    end(w);
}

static void nothing_changed(scenario_work *w)
{
    begin_grid(w);
    end(w);
    reopen(w);
    end(w);
    reopen(w);
    fill(w, "data/grid", 1); /* the same values */
    flush(w);
    end(w);
    reopen(w);
    fill(w, "data/grid", 2);
    end(w);
}

static void contiguous(scenario_work *w)
{
    create(w);
    dataset(w, "long", INTEGERS, 1, DIMS(12000), NULL, false);
    dataset(w, "tiny", INTEGERS, 1, DIMS(9), NULL, false);
    fill(w, "long", 1);
    fill(w, "tiny", 1);
    end(w);
    for (int v = 2; v <= 3; v++) {
        reopen(w);
        fill_members(w, "long", &(box){{(hsize_t)v * 1000}, {100}}, v, 3);
        fill(w, "tiny", v);
        end(w);
    }
}

static void commits(scenario_work *w)
{
    begin_grid(w);
    commit(w);
    for (int v = 2; v <= 3; v++) {
        fill_box(w, "data/grid", (hsize_t)v, 2, 12, 10, v);
        commit(w);
    }
    fill(w, "data/grid", 4);
    flush(w);
    note(w, "data", 4);
    commit(w);
    end(w);
}

/* New, changed, flushed and emptied files. */
static void aborts(scenario_work *w)
{
    begin_grid(w);
    abandon(w);
    begin_grid(w);
    end(w);
    reopen(w);
    dataset(w, "large", INTEGERS, 1, DIMS(20000), DIMS(1000), false);
    fill(w, "large", 2);
    delete_link(w, "data");
    abandon(w);
    reopen(w);
    fill(w, "data/grid", 2);
    flush(w);
    fill(w, "data/grid", 3);
    abandon(w);
    create(w);
    dataset(w, "other", INTEGERS, 1, DIMS(2500), DIMS(500), false);
    fill(w, "other", 1);
    abandon(w);
    reopen(w);
    fill(w, "data/grid", 4);
    end(w);
}

static void restores(scenario_work *w)
{
    begin_grid(w);
    note(w, "data", 1);
    end(w);
    reopen(w);
    fill_box(w, "data/grid", 0, 2, 12, 10, 2);
    note(w, "data", 2);
    group(w, "data/below");
    end(w);
    reopen(w);
    delete_link(w, "data");
    dataset(w, "other", INTEGERS, 1, DIMS(2500), DIMS(500), false);
    fill(w, "other", 3);
    end(w);
    reopen(w);
    restore(w, 1);
    commit(w);
    call_newest(w, "first");
    restore(w, 3);
    end(w);
    reopen(w);
    restore(w, 2);
    abandon(w);
    reopen(w);
    restore(w, 2);
    flush(w);
    fill(w, "data/grid", 4);
    end(w);
}

/* Chunks of which little changes, and so are composed: anew in each version, amended, of copies, cut, freed. */
static void in_pieces(scenario_work *w, bool compressed)
{
    create(w);
    group(w, "data");
    dataset(w, "data/grid", INTEGERS, 2, DIMS(40, 40), DIMS(16, 16), compressed);
    fill(w, "data/grid", 1);
    end(w);
    for (int v = 2; v <= 3; v++) {
        reopen(w);
        fill_box(w, "data/grid", (hsize_t)v, 10, 1, 20, v);
        flush(w);
        fill_box(w, "data/grid", (hsize_t)v + 1, 12, 1, 3, v + 10);
        fill_box(w, "data/grid", 38, 38, 2, 2, v);
        end(w);
    }
    reopen(w);
    fill_box(w, "data/grid", 17, 1, 1, 2, 4);
    copy(w, "data/grid", "copy");
    fill_box(w, "data/grid", 17, 1, 1, 2, 5);
    fill_box(w, "copy", 0, 1, 2, 2, 6);
    end(w);
    reopen(w);
    forget_versions(w, 1, 2);
    fill_box(w, "data/grid", 20, 20, 1, 2, 7);
    end(w);
    reopen(w);
    fill_box(w, "data/grid", 3, 10, 1, 20, 8);
    resize(w, "data/grid", DIMS(21, 35));
    end(w);
    reopen(w);
    resize(w, "data/grid", DIMS(40, 40));
    fill_box(w, "copy", 0, 1, 2, 2, 9);
    end(w);
}

static void pieces(scenario_work *w)
{
    in_pieces(w, false);
}

static void pieces_compressed(scenario_work *w)
{
    in_pieces(w, true);
}

/* What is freed is written again: chunks, and what HDF5 keeps itself. */
static void forget_and_go_on(scenario_work *w, bool compressed)
{
    create(w);
    group(w, "data");
    dataset(w, "data/grid", INTEGERS, 2, DIMS(30, 20), DIMS(6, 5), compressed);
    fill(w, "data/grid", 1);
    end(w);
    for (int i = 2; i <= 6; i++) {
        reopen(w);
        fill_box(w, "data/grid", (hsize_t)i, 2, 12, 10, i);
        note(w, "data", i);
        if (i == 3)
            group(w, "data/below");
        if (i == 4)
            delete_link(w, "data/below");
        end(w);
    }
    reopen(w);
    forget_versions(w, 1, 2);
    fill(w, "data/grid", 7);
    end(w);
    reopen(w);
    fill(w, "data/grid", 8);
    dataset(w, "other", INTEGERS, 1, DIMS(2500), DIMS(500), false);
    fill(w, "other", 3);
    end(w);
    reopen(w);
    forget_versions(w, 4, 7);
    end(w);
    reopen(w);
    fill_box(w, "data/grid", 0, 2, 12, 10, 9);
    note(w, "data", 9);
    end(w);
}

static void forgets(scenario_work *w)
{
    forget_and_go_on(w, false);
}

static void forgets_compressed(scenario_work *w)
{
    forget_and_go_on(w, true);
}

/* So many chunks that slots are found by /_versioned_data/hashes: made, added to, made anew, used again. */
static void found_by_hash(scenario_work *w)
{
    create(w);
    group(w, "data");
    dataset(w, "data/many", INTEGERS, 1, DIMS(2400), DIMS(2), false);
    fill(w, "data/many", 1);
    end(w);
    for (int i = 2; i <= 3; i++) {
        reopen(w);
        fill(w, "data/many", i);
        end(w);
    }
    reopen(w);
    forget_versions(w, 1, 2);
    end(w);
    reopen(w);
    fill(w, "data/many", 4);
    end(w);
    reopen(w);
    fill(w, "data/many", 2);
    flush(w);
    fill(w, "data/many", 5);
    end(w);
}

/* Rows of new slots are written out before the commit (memory=), in chunks that are not kept (cache=0): and then such chunks are
 * overwritten, cut off, found again, put into pieces, flushed, given up. */
static void write_half(scenario_work *w, int seed)
{
    fill_box(w, "data/grid", 0, 0, 20, 20, seed);
    fill_box(w, "data/grid", 4, 4, 3, 10, seed + 1);
    fill_box(w, "data/words", 0, 0, 7, 1, seed);
    fill(w, "data/alike", seed);
}

static void writes_out(scenario_work *w)
{
    create(w);
    group(w, "data");
    dataset(w, "data/grid", INTEGERS, 2, DIMS(24, 20), DIMS(4, 4), false);
    dataset(w, "data/alike", INTEGERS, 2, DIMS(24, 20), DIMS(4, 4), false);
    dataset(w, "data/words", TEXTS, 1, DIMS(12), DIMS(1), false);
    fill(w, "data/grid", 1);
    fill(w, "data/alike", 1);
    flush(w);
    write_half(w, 2);
    resize(w, "data/grid", DIMS(9, 20));
    resize(w, "data/grid", DIMS(24, 20));
    fill_box(w, "data/grid", 9, 0, 15, 20, 3);
    flush(w);
    write_half(w, 4);
    end(w);
    reopen(w);
    write_half(w, 5);
    resize(w, "data/alike", DIMS(5, 20));
    abandon(w);
    reopen(w);
    write_half(w, 6);
    end(w);
}

/* The same with so many that their hashes are written out as well. */
static void writes_out_hashes(scenario_work *w)
{
    create(w);
    dataset(w, "many", INTEGERS, 1, DIMS(1300), DIMS(1), false);
    fill(w, "many", 1);
    flush(w);
    fill(w, "many", 2);
    end(w);
    reopen(w);
    fill(w, "many", 3);
    abandon(w);
    reopen(w);
    fill(w, "many", 1);
    fill_box(w, "many", 0, 0, 1200, 1, 4);
    end(w);
}

/* Datasets that are closed and committed before there is a version (memory=), then changed, copied, deleted, given up. */
static void stows(scenario_work *w)
{
    static const char *const name[] = {"data/0", "data/1", "data/2", "data/3", "data/4", "data/in/5", "data/in/6"};

    create(w);
    group(w, "data");
    group(w, "data/in");
    for (int i = 0; i < 7; i++) {
        dataset(w, name[i], i == 4 ? TEXTS : INTEGERS, 1, DIMS(40), DIMS(8), false);
        fill(w, name[i], i);
    }
    note(w, "data/1", 1);
    fill_box(w, "data/2", 0, 0, 9, 1, 20);
    resize(w, "data/3", DIMS(11));
    copy(w, "data/0", "copy");
    delete_link(w, "data/4");
    dataset(w, "data/4", INTEGERS, 2, DIMS(6, 6), DIMS(4, 4), false);
    fill(w, "data/4", 40);
    flush(w);
    fill(w, "data/0", 50);
    fill(w, "data/1", 51);
    fill(w, "data/in/5", 52);
    delete_link(w, "data/in");
    fill(w, "copy", 53);
    end(w);
    reopen(w);
    for (int i = 0; i < 4; i++)
        fill(w, name[i], 60 + i);
    move(w, "data/0", "moved");
    abandon(w);
    reopen(w);
    fill(w, "data/2", 70);
    fill(w, "data/3", 71);
    delete_link(w, "data/2");
    end(w);
}

const scenario scenarios[] = {
    {.name = "first_version", .work = first_version, .options = ""},
    {.name = "rewrite", .work = rewrite, .options = ""},
    {.name = "rewrite_few_chunks", .work = rewrite_few_chunks, .options = ""},
    {.name = "extend", .work = extend, .options = ""},
    {.name = "shrink_then_grow", .work = shrink_then_grow, .options = ""},
    {.name = "flush_and_close", .work = flush_and_close, .options = ""},
    {.name = "amend", .work = amend, .options = ""},
    {.name = "version_of_each_flush", .work = version_of_each_flush, .options = "commit=flush"},
    {.name = "delete_and_make_anew", .work = delete_and_make_anew, .options = ""},
    {.name = "create_over", .work = create_over, .options = ""},
    {.name = "many_small", .work = many_small, .options = ""},
    {.name = "large_group", .work = large_group, .options = "", .sound_commits = 5},
    {.name = "strings", .work = strings, .options = ""},
    {.name = "attributes_and_groups", .work = attributes_and_groups, .options = ""},
    {.name = "keeps_free_space", .work = keeps_free_space, .options = ""},
    {.name = "compound_members", .work = compound_members, .options = ""},
    {.name = "moves_and_links", .work = moves_and_links, .options = ""},
    {.name = "exit_without_close", .work = exit_without_close, .options = "", .forks = true},
    {.name = "killed_without_close", .work = killed_without_close, .options = "", .forks = true},
    {.name = "failed_commit", .work = failed_commit, .options = "", .fails = true},
    {.name = "pending_with_reader", .work = pending_with_reader, .options = "", .forks = true},
    {.name = "pending_with_stock_reader", .work = pending_with_stock_reader, .options = "", .forks = true},
    {.name = "two_openings", .work = two_openings, .options = ""},
    {.name = "compressed", .work = compressed, .options = "compress=gzip:5"},
    {.name = "copied", .work = copied, .options = ""},
    {.name = "nothing_changed", .work = nothing_changed, .options = ""},
    {.name = "contiguous", .work = contiguous, .options = "chunk=4K"},
    {.name = "commits", .work = commits, .options = ""},
    {.name = "aborts", .work = aborts, .options = ""},
    {.name = "restores", .work = restores, .options = "", .sound_commits = 3},
    {.name = "forgets", .work = forgets, .options = "", .sound_commits = 6},
    {.name = "forgets_compressed", .work = forgets_compressed, .options = "", .sound_commits = 6},
    {.name = "pieces", .work = pieces, .options = "pieces=16", .sound_commits = 4},
    {.name = "pieces_compressed", .work = pieces_compressed, .options = "pieces=16", .sound_commits = 4},
    {.name = "found_by_hash", .work = found_by_hash, .options = "", .sound_commits = 3},
    {.name = "stows", .work = stows, .options = "memory=1K"},
    {.name = "writes_out", .work = writes_out, .options = "memory=1K;cache=0;pieces=16"},
    {.name = "writes_out_hashes", .work = writes_out_hashes, .options = "memory=32K;cache=0", .sound_commits = 1},
    {.name = "sync_normal", .work = amend, .options = "sync=normal", .loses_newest = true},
    {.name = "sync_off", .work = amend, .options = "sync=off", .kill_only = true},
};
const size_t scenario_count = sizeof scenarios / sizeof *scenarios;

static scenario_states *go(const scenario *s, const scenario_run *run, bool *failed)
{
    scenario_work w = {.scenario = s,
                       .run = run,
                       .live = run != NULL,
                       .file = H5I_INVALID_HID,
                       .now = picture_new(),
                       .states = need(calloc(1, sizeof *w.states))};

    s->work(&w);
    check(&w, close_file(&w));
    *failed = w.failed;
    picture_free(w.now);
    return w.states;
}

int scenario_run_all(const scenario *s, const scenario_run *run)
{
    bool failed;

    if (s->fails && run->fail_sync == NULL)
        return -1;
    scenario_states_free(go(s, run, &failed));
    return failed ? -1 : 0;
}

scenario_states *scenario_expect(const scenario *s)
{
    bool failed;

    return go(s, NULL, &failed);
}

/* ---- checking ---- */

static picture *version_through_connector(const char *file, int version, hid_t fapl)
{
    char name[4200];
    picture *p = NULL;
    hid_t id;

    snprintf(name, sizeof name, "%s@%d", file, version);
    if ((id = H5Fopen(name, H5F_ACC_RDONLY, fapl)) >= 0) {
        p = picture_read(id, "");
        H5Fclose(id);
    }
    return p;
}

static picture *version_of_stock(hid_t file, int version)
{
    char path[64];
    picture *p = NULL;
    hid_t id;

    snprintf(path, sizeof path, "/" RESERVED "/versions/%d", version);
    if ((id = H5Gopen2(file, path, H5P_DEFAULT)) >= 0) {
        p = picture_read(id, path);
        H5Gclose(id);
    }
    return p;
}

/* How many versions the file has, by one way that the reading of them does not use. */
static int count_versions(const char *name, hid_t file, hid_t fapl, bool stock)
{
    H5G_info_t info;
    char path[4200];
    int count = 0;
    hid_t id;

    if (stock)
        return H5Gget_info_by_name(file, "/" RESERVED "/versions", &info, H5P_DEFAULT) < 0 ? -1 : (int)info.nlinks;
    for (bool more = true; more && count < VERSIONS_MAX; count += more) {
        snprintf(path, sizeof path, "%s@~%d", name, count);
        id = H5Fopen(path, H5F_ACC_RDONLY, fapl);
        if ((more = id >= 0))
            H5Fclose(id);
    }
    return count;
}

static void say(char *why, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(char *why, size_t size, const char *format, ...)
{
    va_list arguments;

    if (why == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(why, size, format, arguments);
    va_end(arguments);
}

int scenario_check(const scenario_states *states, const char *file, hid_t fapl, bool stock, char *why, size_t size)
{
    hid_t id = H5Fopen(file, H5F_ACC_RDONLY, fapl);
    picture *seen[VERSIONS_MAX + 1] = {NULL}; /* the newest state, then the versions */
    int number[VERSIONS_MAX + 1], count, answer = SCENARIO_WRONG;

    if (id < 0) {
        say(why, size, "the file cannot be opened");
        return SCENARIO_REFUSED;
    }
    if ((count = count_versions(file, id, fapl, stock)) < 0 || count > VERSIONS_MAX) {
        say(why, size, "the versions cannot be counted");
        goto done;
    }
    if ((seen[0] = picture_read(id, "")) == NULL) {
        say(why, size, "the newest state cannot be read");
        goto done;
    }
    number[0] = 0;
    for (int i = 1; i <= count; i++) {
        for (number[i] = number[i - 1] + 1; number[i] <= VERSIONS_MAX; number[i]++)
            if ((seen[i] = stock ? version_of_stock(id, number[i])
                                 : version_through_connector(file, number[i], fapl)) != NULL)
                break;
        if (seen[i] == NULL) {
            say(why, size, "there are %d versions, and after %d none can be read", count, number[i - 1]);
            goto done;
        }
    }
    say(why, size, "no state has %d versions", count);
    for (int s = states->count; s > 0 && answer == SCENARIO_WRONG; s--) {
        const char *path = "";
        int i = 0;

        if (states->state[s].version_count != count)
            continue;
        while (i <= count && (i == 0 || states->state[s].number[i - 1] == number[i]) &&
               picture_same(states->made[states->state[s].version[i == 0 ? count - 1 : i - 1]], seen[i], &path))
            i++;
        if (i > count)
            answer = s;
        else
            say(why, size, "unlike state %d: %s of %s %d", s, path,
                i == 0 ? "the newest state, like version" : "version", i == 0 ? count : i);
    }
done:
    for (int i = 0; i <= VERSIONS_MAX; i++)
        picture_free(seen[i]);
    H5Fclose(id);
    return answer;
}
