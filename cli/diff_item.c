/* What is collected of an object that differs. See diff.h. */
#include "diff.h"

#include <stdlib.h>

static void free_path(json_object *text, void *path)
{
    (void)text;
    free(path);
}

json_object *cli_diff_item(const char *path, const char *change)
{
    json_object *item = json_object_new_object(), *text = cli_json_text(path);

    json_object_set_userdata(text, cli_strdup(path), free_path);
    json_object_object_add(item, "path", text);
    json_object_object_add(item, "change", cli_json_text(change));
    return item;
}

const char *cli_diff_path(json_object *item)
{
    return json_object_get_userdata(json_object_object_get(item, "path"));
}

void cli_diff_both(json_object *item, const char *key, json_object *before, json_object *after)
{
    json_object *both = json_object_new_object();

    json_object_object_add(both, "before", before);
    json_object_object_add(both, "after", after);
    json_object_object_add(item, key, both);
}

bool cli_diff_enough_of(const cli_diff *diff, json_object *item)
{
    return diff->enough != CLI_DIFF_ALL && json_object_object_length(item) > 2;
}

json_object *cli_diff_text(char *text)
{
    json_object *value = cli_json_text(text);

    free(text);
    return value;
}

json_object *cli_diff_list(json_object *item, const char *key)
{
    json_object *list;

    if (!json_object_object_get_ex(item, key, &list)) {
        list = json_object_new_array();
        json_object_object_add(item, key, list);
    }
    return list;
}

void cli_diff_trouble(cli_diff *diff, json_object *item, const char *what)
{
    char why[600];

    json_object_array_add(cli_diff_list(item, "trouble"),
                          cli_diff_text(cli_format("%s: %s", what, cli_reason(why, sizeof why))));
    diff->troubles++;
}
