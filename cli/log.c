/* h5cow log: the versions of a file, newest first. */
#include "common.h"
#include "tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: h5cow log [--json] FILE\n\n"
    "Lists the versions of FILE, newest first: name, time (UTC), user, program, bytes by which the file grew, objects\n"
    "that changed, message. A version marked 'open' belongs to a program that has not closed the file yet, or never\n"
    "will.\n\n"
    "      --json    a list of objects, with all that is recorded\n"
    "  -h, --help\n";

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

static void print_table(const cli_version *rows, size_t count)
{
    static const char *const titles[] = {"version", "time", "user", "added", "changed", "program", "message"};
    cli_table *table = cli_table_open(7, titles);
    char text[32];

    cli_table_right(table, 3);
    cli_table_right(table, 4);
    for (size_t i = count; i-- > 0;) {
        const cli_version *v = &rows[i];
        char *program = shorten(v->program, 40);

        cli_table_cell(table, "%s%s", v->name, v->open ? " (open)" : "");
        cli_table_cell(table, "%s", cli_time(text, v->time));
        cli_table_cell(table, "%s", v->user);
        cli_table_cell(table, "%s", cli_bytes(text, (double)v->added));
        cli_table_cell(table, "%lld", (long long)v->changed);
        cli_table_cell(table, "%s", program);
        cli_table_cell(table, "%s", v->message);
        free(program);
    }
    cli_table_print(table);
    cli_table_close(table);
}

static json_object *as_json(const cli_version *rows, size_t count)
{
    json_object *list = json_object_new_array();
    char text[32];

    for (size_t i = count; i-- > 0;) {
        const cli_version *v = &rows[i];
        json_object *item = json_object_new_object();

        json_object_object_add(item, "name", cli_json_text(v->name));
        json_object_object_add(
            item, "parent", v->parent >= 0 && (uint64_t)v->parent < count ? cli_json_text(rows[v->parent].name) : NULL);
        json_object_object_add(item, "time", cli_json_text(cli_time(text, v->time)));
        json_object_object_add(item, "time_us", json_object_new_int64(v->time));
        json_object_object_add(item, "user", cli_json_text(v->user));
        json_object_object_add(item, "host", cli_json_text(v->host));
        json_object_object_add(item, "program", cli_json_text(v->program));
        json_object_object_add(item, "hdf5", cli_json_text(v->hdf5));
        json_object_object_add(item, "h5cow", cli_json_text(v->h5cow));
        json_object_object_add(item, "message", cli_json_text(v->message));
        json_object_object_add(item, "added", json_object_new_int64(v->added));
        json_object_object_add(item, "chunks", json_object_new_int64(v->chunks));
        json_object_object_add(item, "changed", json_object_new_int64(v->changed));
        json_object_object_add(item, "open", json_object_new_boolean(v->open != 0));
        json_object_array_add(list, item);
    }
    return list;
}

int cli_log(int argc, char **argv)
{
    cli_file file = {.id = H5I_INVALID_HID};
    cli_version *rows = NULL;
    size_t count = 0;
    char why[1024];
    const char *name;
    bool json;
    int status;

    if ((status = cli_one_file("log", help, argc, argv, &name, &json)) >= 0)
        return status;
    status = CLI_FAILED;
    cli_hdf5_start();
    if (cli_file_open(&file, "log", name, false) != 0)
        return CLI_FAILED;
    if (cli_file_history(&file) != 0)
        goto done;
    if (cli_versions_read(&file, &rows, &count, why, sizeof why) < 0) {
        cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", file.name, why);
        goto done;
    }
    if (json)
        status = cli_json(as_json(rows, count));
    else {
        print_table(rows, count);
        status = cli_flush();
    }
done:
    cli_versions_free(rows, count);
    cli_file_close(&file);
    return status;
}
