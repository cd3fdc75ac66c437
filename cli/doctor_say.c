/* What is told and what is wrong: a line each, and a part of the JSON object. See doctor.h. */
#include "doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void doctor_say(const doctor *d, const char *key, const char *format, ...)
{
    va_list list;
    char *text = NULL;

    va_start(list, format);
    int n = vasprintf(&text, format, list);
    va_end(list);
    if (n < 0)
        return;
    text = cli_visible(text);
    if (!d->json)
        printf("%-12s %s\n", key, text);
    free(text);
}

void doctor_wrong(doctor *d, const char *format, ...)
{
    char *text = NULL;
    va_list list;

    va_start(list, format);
    int n = vasprintf(&text, format, list);
    va_end(list);
    if (n < 0)
        return;
    json_object_array_add(d->problems, cli_json_text(text));
    free(text);
}
