/* Memory and strings of the command, which ends when there is no more. See common.h. */
#include "common.h"

#include "base/vector.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *or_die(void *block)
{
    if (block == NULL) {
        fputs("h5cow: out of memory\n", stderr);
        exit(CLI_FAILED);
    }
    return block;
}

void *cli_alloc(size_t count, size_t size)
{
    return or_die(calloc(count == 0 ? 1 : count, size));
}

void cli_reserve(void *array, size_t *room, size_t count, size_t more, size_t size)
{
    or_die(cow_vector_reserve(array, room, count, more, size) < 0 ? NULL : array);
}

bool cli_map_put(cow_map *map, uint64_t key, uint64_t value)
{
    bool new = !cow_map_get(map, key, NULL);

    or_die(cow_map_put(map, key, value) < 0 ? NULL : map);
    return new;
}

char *cli_strdup(const char *text)
{
    return or_die(strdup(text));
}

char *cli_format_list(const char *format, va_list list)
{
    char *text = NULL;
    int n = vasprintf(&text, format, list);

    return or_die(n < 0 ? NULL : text);
}

char *cli_format(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    char *text = cli_format_list(format, list);
    va_end(list);
    return text;
}

char *cli_child_path(const char *path, const char *name)
{
    return cli_format("%s/%s", path[1] == '\0' ? "" : path, name);
}
