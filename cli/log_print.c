/* How h5cow log shows versions and operations. See log.h. */
#include "log.h"

#include "pager.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* At most WIDTH characters, the rest as an ellipsis. free() it. */
static char *shorten(const char *text, size_t width)
{
    size_t characters = 0, kept = 0;

    for (size_t i = 0; text[i] != '\0'; i++) {
        if (((unsigned char)text[i] & 0xc0) == 0x80)
            continue;
        if (++characters == width)
            kept = i;
    }
    return characters <= width ? cli_strdup(text) : cli_format("%.*s\xe2\x80\xa6", (int)kept, text);
}

static bool is_incomplete(const cli_listed *l, size_t version)
{
    for (size_t i = 0; i < l->lacking; i++)
        if (l->lacks[i].version == version)
            return true;
    return false;
}

static void print_lacks(const cli_listed *l)
{
    for (size_t v = l->count + 1; v-- > 0;) {
        if ((v == l->count ? l->some : l->left_out[v]) || !is_incomplete(l, v))
            continue;
        if (v == l->count)
            printf("\nChanges after the newest version are in no version yet; the next one will have them:\n");
        else
            printf("\nVersion %s is not complete:\n", l->rows[v].name);
        for (size_t i = 0; i < l->lacking; i++) {
            const cli_lack *lack = &l->lacks[i];
            char *path = cli_escape(lack->path), *reason = cli_escape(lack->reason);
            if (lack->version == v && lack->head == UINT64_MAX)
                printf("  a commit before it made no version: %s\n", reason);
            else if (lack->version == v)
                printf("  %s%s%s\n", path[0] == '\0' ? "(path not known)" : path, reason[0] == '\0' ? "" : ": ",
                       reason);
            free(path);
            free(reason);
        }
    }
}

/* As it can stand in a line, and on a terminal no longer than 40 characters: a program's text is often several, whose indentation says nothing in one. free() it. */
static char *program_line(const char *text)
{
    char *copy = cli_strdup(text), *to = copy;

    for (const char *from = copy; *from != '\0'; from++)
        if (*from != ' ' || (to > copy && to[-1] != ' '))
            *to++ = *from;
    *to = '\0';
    char *escaped = cli_escape(copy), *shown = cli_pager_terminal() ? shorten(escaped, 40) : cli_strdup(escaped);
    free(escaped);
    free(copy);
    return shown;
}

/* Versions of one second can be told apart, and named, by its fractions only. */
static bool close_together(const cli_version *rows, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (rows[i].time / 1000000 == rows[i - 1].time / 1000000)
            return true;
    return false;
}

/* ---- the graph: a lane for each line of versions, which leads from one that is shown down to what it was made of ---- */

typedef struct graph {
    size_t *lane; /* the row that each leads to; SIZE_MAX: it is free */
    size_t lanes, room;
} graph;

/* The nearest that is shown of those that ROW was made of. */
static size_t shown_parent(const cli_listed *l, size_t row)
{
    do
        row = cli_version_made_of(l->rows, row);
    while (row != SIZE_MAX && l->left_out[row]);
    return row;
}

/* Two characters a lane: MARK in lane AT, and in others that lead to ROW what joins them to it. free() it. */
static char *draw(const graph *g, size_t row, size_t at, bool joining)
{
    char *text = cli_alloc(2 * g->lanes + 2, 1);

    memset(text, ' ', 2 * g->lanes + 1);
    for (size_t k = 0; k < g->lanes; k++)
        if (k == at)
            text[2 * k] = joining ? '|' : '*';
        else if (joining && g->lane[k] == row)
            text[2 * k - 1] = '/';
        else if (g->lane[k] != SIZE_MAX)
            text[2 * k] = '|';
    return text;
}

static size_t lane_of(graph *g, size_t row)
{
    size_t k = 0;

    while (k < g->lanes && g->lane[k] != row)
        k++;
    if (k < g->lanes)
        return k;
    for (k = 0; k < g->lanes && g->lane[k] != SIZE_MAX;)
        k++;
    if (k == g->lanes) {
        CLI_RESERVE(g->lane, g->room, g->lanes, 1);
        g->lanes++;
    }
    g->lane[k] = row;
    return k;
}

/* The cell of ROW; and, where lanes join there, a line of CELLS cells above it. */
static void put_graph(cli_table *table, graph *g, const cli_listed *l, size_t row, unsigned cells)
{
    size_t at = lane_of(g, row);
    bool joins = false;
    char *text;

    for (size_t k = at + 1; k < g->lanes; k++)
        joins = joins || g->lane[k] == row;
    if (joins) {
        text = draw(g, row, at, true);
        cli_table_cell(table, "%s", text);
        free(text);
        for (unsigned i = 1; i < cells; i++)
            cli_table_cell(table, "%s", "");
        for (size_t k = at + 1; k < g->lanes; k++)
            if (g->lane[k] == row)
                g->lane[k] = SIZE_MAX;
    }
    text = draw(g, row, at, false);
    cli_table_cell(table, "%s", text);
    free(text);
    g->lane[at] = shown_parent(l, row);
    while (g->lanes > 0 && g->lane[g->lanes - 1] == SIZE_MAX)
        g->lanes--;
}

/* ---- tables ---- */

static void put_name(cli_table *table, const cli_listed *l, size_t row, const char *open, const char *incomplete)
{
    char *tags = cli_tags_of(l->tags, l->tagged, row);

    cli_table_cell(table, "%s%s%s%s%s", l->rows[row].name, tags, open, incomplete,
                   l->rows[row].open == COW_LOG_FORGOTTEN ? " (forgotten)" : "");
    free(tags);
}

static void put_row(cli_table *table, const cli_listed *l, size_t row, cli_clock clock, bool exact)
{
    const cli_version *v = &l->rows[row];
    char *program = program_line(v->program), *message = cli_escape(v->message), text[48];

    put_name(table, l, row, v->open == COW_LOG_OPEN ? " (open)" : "", is_incomplete(l, row) ? " (incomplete)" : "");
    cli_table_cell(table, "%zu", row + 1);
    cli_table_cell(table, "%s", cli_time(text, v->time, clock, exact));
    cli_table_cell(table, "%s", v->user);
    cli_table_cell(table, "%s", cli_bytes(text, (double)v->added));
    cli_table_cell(table, "%lld", (long long)v->changed);
    cli_table_cell(table, "%s", program);
    cli_table_cell(table, "%s", message);
    free(program);
    free(message);
}

static void put_line(cli_table *table, const cli_listed *l, size_t row, cli_clock clock, bool exact)
{
    char *message = cli_escape(l->rows[row].message), text[48];

    put_name(table, l, row, "", "");
    cli_table_cell(table, "%s", cli_time(text, l->rows[row].time, clock, exact));
    cli_table_cell(table, "%s", message);
    free(message);
}

/* TITLES: of the column of the graph, then of CELLS more. */
static void print_table(const cli_listed *l, cli_clock clock, bool with_graph, const char *const titles[],
                        unsigned cells, void (*put)(cli_table *, const cli_listed *, size_t, cli_clock, bool))
{
    const unsigned first = with_graph ? 1 : 0;
    cli_table *table = cli_table_open(cells + first, titles + 1 - first);
    bool exact = close_together(l->rows + l->first, l->count - l->first);
    graph g = {0};

    if (put == put_row) {
        cli_table_right(table, first + 1);
        cli_table_right(table, first + 4);
        cli_table_right(table, first + 5);
    }
    for (size_t i = l->count; i-- > 0;) {
        if (l->left_out[i])
            continue;
        if (with_graph)
            put_graph(table, &g, l, i, cells + 1);
        put(table, l, i, clock, exact);
    }
    free(g.lane);
    cli_table_print(table);
    cli_table_close(table);
}

void cli_log_table(const cli_listed *l, cli_clock clock, bool with_graph)
{
    static const char *const titles[] = {"", "version", "#", "time", "user", "added", "changed", "program", "message"};

    print_table(l, clock, with_graph, titles, 8, put_row);
    print_lacks(l);
}

void cli_log_lines(const cli_listed *l, cli_clock clock, bool with_graph)
{
    static const char *const titles[] = {"", "version", "time", "message"};

    print_table(l, clock, with_graph, titles, 3, put_line);
    print_lacks(l);
}

/* ---- operations ---- */

static int print_operations(const cli_operation *rows, size_t count, cli_clock clock)
{
    static const char *const titles[] = {"time", "user", "what"};
    cli_table *table = cli_table_open(3, titles);
    char text[48];

    for (size_t i = count; i-- > 0;) {
        char *what = cli_escape(rows[i].what);
        cli_table_cell(table, "%s", cli_time(text, rows[i].time, clock, false));
        cli_table_cell(table, "%s", rows[i].user);
        cli_table_cell(table, "%s", what);
        free(what);
    }
    cli_table_print(table);
    cli_table_close(table);
    return cli_flush();
}

static int operations_as_json(const cli_operation *rows, size_t count)
{
    json_object *list = json_object_new_array();
    char text[48];

    for (size_t i = count; i-- > 0;) {
        json_object *item = json_object_new_object();
        json_object_object_add(item, "time", cli_json_text(cli_time(text, rows[i].time, CLI_UTC, true)));
        json_object_object_add(item, "time_us", json_object_new_int64(rows[i].time));
        json_object_object_add(item, "user", cli_json_text(rows[i].user));
        json_object_object_add(item, "host", cli_json_text(rows[i].host));
        json_object_object_add(item, "program", cli_json_text(rows[i].program));
        json_object_object_add(item, "version",
                               rows[i].version == UINT64_MAX ? NULL : json_object_new_uint64(rows[i].version + 1));
        json_object_object_add(item, "what", cli_json_text(rows[i].what));
        json_object_array_add(list, item);
    }
    return cli_json(list);
}

int cli_log_operations(const cli_file *file, bool json, cli_clock clock)
{
    cli_operation *rows;
    size_t count;
    char why[1024];
    int status;

    if (cli_operations_read(file, &rows, &count, why, sizeof why) < 0)
        return cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", file->name, why);
    status = json ? operations_as_json(rows, count) : print_operations(rows, count, clock);
    cli_operations_free(rows, count);
    return status;
}
