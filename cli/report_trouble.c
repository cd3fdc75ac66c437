/* What could not be read of a damaged file, for the page to say. See report.h. */
#include "report.h"

#include <stdlib.h>

#define MOST 20 /* more of them say no more */

void cli_report_note(cli_report *report, const char *what, const char *why)
{
    char *text = cli_format("%s: %s", what, why);

    if (json_object_array_length(report->trouble) < MOST)
        json_object_array_add(report->trouble, cli_json_text(text));
    free(text);
}

void cli_report_trouble(cli_report *report, const char *what)
{
    char why[1024];

    cli_report_note(report, what, cli_reason(why, sizeof why));
}
