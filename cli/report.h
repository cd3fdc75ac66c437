/* What a report shows: the parts of `h5cow report`. Each makes one part of what the page is given, as JSON:
 *
 *   report.c           the verb: versions, the page, the file that it becomes
 *   report_changes.c   which objects each version added, changed or removed
 *   report_storage.c   what each version and each dataset holds of the stored chunks
 *   report_pictures.c  some datasets before and after their last change
 *   report_trouble.c   what could not be read
 *   report.html        the page, whose script draws it; report_page.c is made of it
 *
 * Objects and index nodes that versions share are read once, whatever the number of versions.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "owners.h"
#include "state.h"

typedef struct cli_report {
    cli_state newest; /* the newest version, or the newest state where none has all of it */
    cli_states states;
    json_object *trouble; /* what could not be read, as texts */
} cli_report;

/* Something could not be read: WHAT, and why; without it, cli_reason. */
void cli_report_note(cli_report *report, const char *what, const char *why);
void cli_report_trouble(cli_report *report, const char *what);

/* A list of {"path", "kind", "changes": [version, "added" | "changed" | "removed", ...]}, versions counted from 0; those with
 * most changes first, MOST of them. *MORE: how many are left out. */
json_object *cli_report_changes(cli_report *report, size_t most, size_t *more);
/* The path of one of these as the file has it, which text in JSON need not be: names in it may be no UTF-8. */
const char *cli_report_path(json_object *item);
/* {"versions": [bytes of the chunks that only this one holds, ...], "datasets": [{"path", "all", "newest"}, ...], "all",
 * "newest", "shared", "nobody", "chunks"}: bytes as stored. The largest datasets are listed, `all` and `newest` are of all of them;
 * `shared` is what several datasets hold, `nobody` what no state does. */
json_object *cli_report_storage(cli_report *report);
/* Of up to MOST datasets of CHANGES, those that changed last first: {"path", "changed", "added", "slice", "line", "before", "after":
 * {"version", "shape", "height", "width", "values"}}; `slice` is the place in the dimensions that are not shown; values are
 * float32, little-endian, in base64; `before` may be missing. */
json_object *cli_report_pictures(cli_report *report, json_object *changes, uint64_t most);

/* report.html, cut where what the page is given belongs. */
extern const char cli_report_page_begin[], cli_report_page_end[];

#endif
