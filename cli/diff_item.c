/* What is collected of an object that differs. See diff.h. */
#include "diff.h"

#include <stdlib.h>

void cli_diff_both(json_object *item, const char *key, json_object *before, json_object *after)
{
    json_object *both = json_object_new_object();

    json_object_object_add(both, "before", before);
    json_object_object_add(both, "after", after);
    json_object_object_add(item, key, both);
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
