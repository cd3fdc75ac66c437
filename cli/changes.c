/* Contract: changes.h. */
#include "changes.h"

#include "progress.h"

#include <stdlib.h>
#include <string.h>

cli_changes cli_changes_of(const cli_state *of, const cli_version *rows, size_t count)
{
    return (cli_changes){.of = of, .rows = rows, .count = count, .row = {SIZE_MAX, SIZE_MAX}};
}

static void close_state(cli_changes *c, int i)
{
    if (c->row[i] != SIZE_MAX)
        cli_state_close(&c->state[i]);
    c->row[i] = SIZE_MAX;
}

void cli_changes_close(cli_changes *c)
{
    cli_progress_end();
    close_state(c, 0);
    close_state(c, 1);
}

/* The state of ROW is open as state I. 0, or -1, said. */
static int open_state(cli_changes *c, int i, size_t row)
{
    if (c->row[i] == row)
        return 0;
    if (c->row[1 - i] == row) { /* the one before has become the one after, or the other way round */
        const cli_state other = c->state[i];
        const size_t others = c->row[i];

        c->state[i] = c->state[1 - i];
        c->row[i] = row;
        c->state[1 - i] = other;
        c->row[1 - i] = others;
        return 0;
    }
    close_state(c, i);
    if (cli_state_version(&c->state[i], c->of, c->rows[row].name) != 0)
        return -1;
    c->row[i] = row;
    return 0;
}

static int open_both(cli_changes *c, size_t before, size_t after)
{
    /* first the one that is open, so that it is not closed for the other one */
    const bool swap = before != SIZE_MAX && c->row[1] == before;

    if (swap && open_state(c, 0, before) < 0)
        return -1;
    if (open_state(c, 1, after) < 0)
        return -1;
    return before == SIZE_MAX ? 0 : open_state(c, 0, before);
}

int cli_changes_tell(cli_changes *c, size_t before, size_t after, const char *path, cli_diff *diff)
{
    if (open_both(c, before, after) < 0)
        return -1;
    diff->absolute = diff->relative = -1;
    diff->same_file = before != SIZE_MAX;
    diff->before = before == SIZE_MAX ? NULL : &c->state[0];
    diff->after = &c->state[1];
    return cli_diff_tree(diff, path) == 0 ? 0 : -1;
}

static void drop(cli_diff *diff, json_object *item)
{
    (void)diff;
    json_object_put(item);
}

int cli_changes_between(cli_changes *c, size_t before, size_t after, const char *path)
{
    H5O_type_t type[2];
    const uint64_t address[2] = {cli_version_object(&c->of->file, &c->rows[before], path, &type[0]),
                                 cli_version_object(&c->of->file, &c->rows[after], path, &type[1])};
    cli_diff diff = {.enough = CLI_DIFF_ONE, .tell = drop};

    if (address[0] == address[1])
        return 0;
    if (address[0] == UINT64_MAX || address[1] == UINT64_MAX || type[0] != type[1])
        return 1;
    if (cli_changes_tell(c, before, after, path, &diff) < 0)
        return -1;
    return diff.differences + diff.troubles > 0;
}

/* ---- the last change of many objects ---- */

/* SUBJECT goes to the version that made what it is in that of its row: that one, or one of those in LINE, which it comes from. */
static void go_to_origin(const cli_changes *c, const cow_map *snapshots, const bool line[], cli_subject *subject)
{
    H5O_type_t type;
    uint64_t address = cli_version_object(&c->of->file, &c->rows[subject->row], subject->path, &type), row;

    if (!cow_map_get(snapshots, address, &row) || row >= c->count) {
        subject->row = SIZE_MAX;
        subject->known = true;
        return;
    }
    while (row < subject->row && c->rows[row].open == COW_LOG_FORGOTTEN)
        row++; /* the next one has what it changed */
    if (row < subject->row && line[row] &&
        cli_version_object(&c->of->file, &c->rows[row], subject->path, &type) == address)
        subject->row = (size_t)row;
}

/* Has the version before that of SUBJECT's row the same? Then it goes on there. 0, or -1. */
static int go_back(cli_changes *c, const cow_map *snapshots, const bool line[], cli_subject *subject)
{
    const size_t parent = cli_version_parent(c->rows, subject->row);
    const int differs = parent == SIZE_MAX ? 1 : cli_changes_between(c, parent, subject->row, subject->path);

    if (differs < 0)
        return -1;
    subject->known = differs > 0;
    if (!subject->known) {
        subject->row = parent;
        go_to_origin(c, snapshots, line, subject);
    }
    return 0;
}

/* From the newest version on, so that each is opened once. */
int cli_changes_last(cli_changes *c, const cow_map *snapshots, size_t row, cli_subject subject[], size_t count)
{
    bool *line = cli_alloc(c->count, sizeof *line);
    size_t newest = row;
    int status = 0;

    for (size_t at = row; at != SIZE_MAX; at = cli_version_parent(c->rows, at))
        line[at] = true;
    for (size_t i = 0; i < count; i++) {
        subject[i].row = row;
        go_to_origin(c, snapshots, line, &subject[i]);
    }
    while (status == 0 && newest != SIZE_MAX) {
        newest = SIZE_MAX;
        for (size_t i = 0; i < count; i++)
            if (!subject[i].known && (newest == SIZE_MAX || subject[i].row > newest))
                newest = subject[i].row;
        for (size_t i = 0; status == 0 && newest != SIZE_MAX && i < count; i++)
            if (!subject[i].known && subject[i].row == newest)
                status = go_back(c, snapshots, line, &subject[i]);
    }
    free(line);
    return status;
}
