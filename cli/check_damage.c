/* Damages are noted, and the place where the check is told. See check.h. */
#include "check.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

void cli_damaged(cli_check *check, cli_bad kind, uint64_t pool, uint64_t number, const char *format, ...)
{
    char *text = NULL;
    va_list list;

    if (check->quiet) {
        check->untold++;
        cow_error_clear();
        return;
    }
    va_start(list, format);
    if (vasprintf(&text, format, list) < 0)
        text = cli_strdup("damaged");
    va_end(list);
    cow_error_clear();
    CLI_RESERVE(check->damage, check->damage_room, check->damages, 1);
    check->damage[check->damages++] = (cli_damage){kind, pool, number, cli_visible(text)};
}

void cli_check_step(cli_check *check, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(check->where, sizeof check->where, format, list);
    va_end(list);
    check->at(check->context, check->where);
}

void cli_check_beat(cli_check *check)
{
    if (++check->beats % 256 == 0)
        check->at(check->context, check->where);
}
