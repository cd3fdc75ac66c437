/* What the process that reads the damaged file tells the one that waits: where it is, and what is lost. See salvage.h. */
#include "salvage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void salvage_tell(salvage *s, const char *key, json_object *value)
{
    json_object *line = json_object_new_object();

    json_object_object_add(line, key, value);
    fprintf(s->to, "%s\n", json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN));
    fflush(s->to);
    json_object_put(line);
}

bool salvage_known(json_object *list, const char *text)
{
    bool found = false;

    for (size_t i = 0; !found && i < json_object_array_length(list); i++)
        found = strcmp(json_object_get_string(json_object_array_get_idx(list, i)), text) == 0;
    return found;
}

bool salvage_at(salvage *s, const char *path)
{
    char *where = cli_format("%s\n%s", s->now == NULL ? "" : s->now->name, path);
    json_object *text = cli_json_text(where);
    bool skipped = salvage_known(s->skip, json_object_get_string(text));

    salvage_tell(s, "at", text);
    free(where);
    return skipped;
}

/* Without file, path and advice, which say the same in other words for each version. */
static char *tidied(const salvage *s, const char *why)
{
    size_t name = strlen(s->name);
    const char *end;
    char *text;

    if (strncmp(why, s->name, name) == 0 && strncmp(why + name, ": ", 2) == 0)
        why += name + 2;
    if (why[0] == '/' && (end = strstr(why, ": ")) != NULL)
        why = end + 2;
    text = cli_strdup(why);
    if ((end = strstr(text, "; run h5cow verify")) != NULL || (end = strstr(text, "; try: h5cow verify")) != NULL)
        text[end - text] = '\0';
    return text;
}

void salvage_lost(salvage *s, const char *path, json_object *what, uint64_t elements, const char *why)
{
    char *tidy = tidied(s, why);
    const char *text;

    if (what == NULL)
        what = json_object_new_object();
    json_object_object_add(what, "object", cli_json_text(path));
    if (elements > 0)
        json_object_object_add(what, "elements", json_object_new_uint64(elements));
    json_object_object_add(what, "why", cli_json_text(tidy));
    free(tidy);
    text = json_object_to_json_string(what);
    for (size_t i = 0; i < s->losses; i++)
        if (strcmp(s->loss[i].path, path) == 0 && strcmp(json_object_to_json_string(s->loss[i].what), text) == 0) {
            s->loss[i].current = true;
            json_object_put(what);
            return;
        }
    CLI_RESERVE(s->loss, s->loss_room, s->losses, 1);
    s->loss[s->losses++] = (salvage_loss){cli_strdup(path), what, true};
}

void salvage_same(salvage *s, const char *path)
{
    for (size_t i = 0; i < s->losses; i++)
        if (strcmp(s->loss[i].path, path) == 0)
            s->loss[i].current = true;
}

void salvage_forget(salvage *s, const char *path)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->losses; i++)
        if (strcmp(s->loss[i].path, path) == 0) {
            free(s->loss[i].path);
            json_object_put(s->loss[i].what);
        } else
            s->loss[kept++] = s->loss[i];
    s->losses = kept;
}
