/* What h5cow forget and squash do, as a table and as JSON. See forget.h. */
#include "forget.h"

#include <stdio.h>
#include <stdlib.h>

/* Of a policy all versions that are there are told; else those that go. */
static bool is_told(const cli_forgetting *f, size_t row)
{
    return f->policy ? (f->why[row] & COW_KEPT_NOT) == 0 : f->go[row];
}

/* Why the version of ROW is kept: texts. */
static json_object *reasons(const cli_forgetting *f, size_t row)
{
    json_object *list = json_object_new_array();

    if (!f->policy)
        return list;
    if ((f->why[row] & COW_KEPT_NEWEST) != 0)
        json_object_array_add(list, json_object_new_string("newest"));
    for (size_t i = 0; i < f->tag_count; i++)
        if (f->tags[i].version == row) {
            char *text = cli_format("tag %s", f->tags[i].name);
            json_object_array_add(list, cli_json_text(text));
            free(text);
        }
    if ((f->why[row] & COW_KEPT_NAMED) != 0)
        json_object_array_add(list, json_object_new_string("named"));
    for (int rule = 0; rule <= COW_KEEP_WITHIN; rule++)
        if ((f->why[row] >> rule & 1) != 0)
            json_object_array_add(list, json_object_new_string(cow_keep_names[rule]));
    return list;
}

static int tell_json(const cli_forgetting *f)
{
    json_object *answer = json_object_new_object(), *list = json_object_new_array(), *collected = NULL;
    char text[48];

    for (size_t i = 0; i < f->states.version_count; i++) {
        if (!is_told(f, i))
            continue;
        json_object *item = json_object_new_object();
        json_object_object_add(item, "number", json_object_new_uint64(i + 1));
        json_object_object_add(item, "name", cli_json_text(f->states.versions[i].name));
        json_object_object_add(item, "time", cli_json_text(cli_time(text, f->states.versions[i].time, CLI_UTC, true)));
        json_object_object_add(item, "time_us", json_object_new_int64(f->states.versions[i].time));
        json_object_object_add(item, "forget", json_object_new_boolean(f->go[i]));
        json_object_object_add(item, "reasons", reasons(f, i));
        json_object_object_add(item, "alone", json_object_new_uint64(f->alone[i]));
        json_object_object_add(item, "frees", json_object_new_uint64(f->free[i]));
        json_object_array_add(list, item);
    }
    if (f->collect && !f->dry) {
        collected = json_object_new_object();
        cli_gc_json(collected, &f->collected);
    }
    json_object_object_add(answer, "file", cli_json_text(f->name));
    json_object_object_add(answer, "dry_run", json_object_new_boolean(f->dry));
    json_object_object_add(answer, "versions", list);
    json_object_object_add(answer, "forgotten", json_object_new_uint64(f->going));
    json_object_object_add(answer, "frees", json_object_new_uint64(f->frees));
    json_object_object_add(answer, "collected", collected);
    json_object_object_add(answer, "trouble", f->trouble == NULL ? NULL : cli_json_text(f->trouble));
    return cli_json(answer);
}

static void print_versions(const cli_forgetting *f)
{
    static const char *const titles[] = {"version", "#", "time", "only in it", "frees", "kept as"};
    cli_table *table = cli_table_open(6, titles);
    char text[48];

    cli_table_right(table, 1);
    cli_table_right(table, 3);
    cli_table_right(table, 4);
    for (size_t i = f->states.version_count; i-- > 0;) {
        if (!is_told(f, i))
            continue;
        json_object *why = reasons(f, i);
        char *words = cli_strdup(f->go[i] ? "forget" : "");
        for (size_t k = 0; k < json_object_array_length(why); k++) {
            char *more = cli_format("%s%s%s", words, k == 0 ? "" : ", ",
                                    json_object_get_string(json_object_array_get_idx(why, k)));
            free(words);
            words = more;
        }
        cli_table_cell(table, "%s", f->states.versions[i].name);
        cli_table_cell(table, "%zu", i + 1);
        cli_table_cell(table, "%s", cli_time(text, f->states.versions[i].time, CLI_LOCAL, false));
        cli_table_cell(table, "%s", cli_bytes(text, (double)f->alone[i]));
        cli_table_cell(table, "%s", f->go[i] ? cli_bytes(text, (double)f->free[i]) : "");
        cli_table_cell(table, "%s", words);
        free(words);
        json_object_put(why);
    }
    cli_table_print(table);
    cli_table_close(table);
}

int cli_forget_tell(const cli_forgetting *f)
{
    size_t there = cli_versions_there(f->states.versions, f->states.version_count);
    char bytes[32];

    if (f->json)
        return tell_json(f);
    print_versions(f);
    if (f->going == 0)
        printf("%s: nothing to forget\n", f->name);
    else
        printf("%s: %zu of %zu versions %s: %s of chunks that nothing else has%s\n", f->name, f->going, there,
               f->dry ? "would be forgotten" : "forgotten", cli_bytes(bytes, (double)f->frees),
               f->dry || f->collect ? "" : "; 'h5cow gc' makes that free");
    if (f->collect && !f->dry) {
        char *text = cli_gc_text(&f->collected);
        printf("%s: %s\n", f->name, text);
        free(text);
    }
    return cli_flush();
}
