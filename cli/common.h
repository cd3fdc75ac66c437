/* What every verb of the command shares: one way to fail, one way to open a file, one way to print.
 *
 * Exit codes: 0 all is well, 1 damage or a difference was found, 2 wrong usage or a failure. A verb that fails says one
 * clear sentence on standard error: what, where, what to do.
 */
#ifndef CLI_COMMON_H
#define CLI_COMMON_H

#include "base/map.h"
#include "native/native.h"

#include <hdf5.h>
#include <json.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef H5COW_VERSION
#define H5COW_VERSION "0.1.0"
#endif

enum { CLI_OK = 0, CLI_DAMAGED = 1, CLI_FAILED = 2, CLI_LOST = 74 /* of `run`: EX_IOERR of sysexits.h */ };

/* The verbs. argv[0] is the verb itself. The answer is the exit code. */
typedef int cli_verb(int argc, char **argv);
cli_verb cli_run, cli_log, cli_import, cli_export, cli_verify, cli_stat, cli_doctor, cli_recover, cli_copy_verb,
    cli_diff_verb, cli_show, cli_blame, cli_hash, cli_ls, cli_bisect, cli_report_verb, cli_cp, cli_restore, cli_undo,
    cli_redo, cli_tag_verb, cli_rename, cli_describe, cli_forget, cli_squash, cli_gc, cli_apply, cli_protect,
    cli_unprotect, cli_env;
/* What `h5cow VERB --help` prints, and manual.c makes man pages and completions from: "Usage: ...", paragraphs, options
 * ("  -o, --option=X   text", further lines deeper), "Example: ...". */
extern const char cli_run_help[], cli_log_help[], cli_import_help[], cli_export_help[], cli_verify_help[],
    cli_stat_help[], cli_doctor_help[], cli_recover_help[], cli_copy_help[], cli_diff_help[], cli_show_help[],
    cli_blame_help[], cli_hash_help[], cli_ls_help[], cli_bisect_help[], cli_report_help[], cli_cp_help[],
    cli_restore_help[], cli_undo_help[], cli_redo_help[], cli_tag_help[], cli_rename_help[], cli_describe_help[],
    cli_forget_help[], cli_squash_help[], cli_gc_help[], cli_apply_help[], cli_protect_help[], cli_unprotect_help[],
    cli_env_help[];

/* Print "h5cow: ..." on standard error. cli_fail answers CLI_FAILED. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Wrong usage: the sentence, and where help is. */
int cli_usage(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same of the option that getopt_long does not know in ARGV. */
int cli_no_option(const char *verb, char **argv);
/* getopt_long answered ':': the last word, an option, has no value. */
int cli_no_value(const char *verb, char **argv);

/* The value of an option that counts. 0, or CLI_FAILED after saying what is wrong. */
int cli_parse_count(const char *verb, const char *option, const char *text, uint64_t *count);

/* The words of a verb that takes one FILE and the options --json and --help: -1 and *NAME, *JSON; else the exit code. */
int cli_one_file(const char *verb, const char *help, int argc, char **argv, const char **name, bool *json);

/* Why the last call of a room of the connector, or of HDF5, failed: the lowest message, as TEXT. Forgets it. To be asked
 * right after the call. */
const char *cli_reason(char *text, size_t size);

/* Before the first HDF5 call of this process: the environment must not choose a connector or a driver for it, and
 * errors are ours to tell. */
void cli_hdf5_start(void);
/* LZF and Blosc, which HDF5 may not have, for what HDF5 reads and writes itself in this process. */
void cli_filters_register(void);

/* A file, opened read-only with native HDF5. */
typedef struct cli_file {
    char *name;     /* without the revision */
    char *revision; /* what stood after '@', or NULL */
    hid_t id;
    cow_loc loc; /* the same for native/native.h */
} cli_file;

/* FILE or FILE@REV; a literal file of that name wins. 0; or, with WHY, CLI_FAILED: not a file that can be looked at, or
 * CLI_DAMAGED: an HDF5 file that HDF5 cannot open. */
int cli_file_try(cli_file *file, const char *argument, char *why, size_t size);
/* The same; says why on standard error and answers CLI_FAILED. With NAMED_REVISION false a revision is refused. */
int cli_file_open(cli_file *file, const char *verb, const char *argument, bool named_revision);
/* The file must have history: 0, or CLI_FAILED after saying why not. */
int cli_file_history(const cli_file *file);
void cli_file_close(cli_file *file);
/* 1 the first bytes say HDF5 (at 0, 512, 1024 ...), 0 they do not, -1 the file cannot be read (errno; 0: not a regular
 * file). */
int cli_is_hdf5(const char *name);
/* 0; or CLI_FAILED and WHY: it is none, or none yet. */
int cli_must_be_hdf5(const char *name, char *why, size_t size);

/* ---- output ---- */

/* In TEXT bytes that are not UTF-8 become '?': what JSON can hold. */
char *cli_clean(char *text);
/* "1.4 MiB", "312 B". */
const char *cli_bytes(char text[32], double bytes);
/* "2026-01-31T12:00:05Z", "2026-01-31T13:00:05+01:00", EXACT: with ".123456" behind the seconds. */
typedef enum { CLI_UTC, CLI_LOCAL } cli_clock;
const char *cli_time(char text[48], int64_t microseconds, cli_clock clock, bool exact);
/* TEXT, which came out of a file, safe to print: "\n", "\x1b", "\u202e" for what a terminal does not show as it is, '?' for bytes that
 * are not UTF-8. What was escaped before stays as it is. free() it. */
char *cli_escape(const char *text);
/* The same of TEXT, for free(), which it takes, in one line: blanks for ends of lines and tabulators. */
char *cli_visible(char *text);
/* (3, 4) */
const char *cli_shape(char *text, size_t size, unsigned rank, const uint64_t dims[]);
/* Print VALUE as JSON and give it back. 0 or CLI_FAILED (standard output is closed, full). */
int cli_json(json_object *value);
/* Print TEXT, which is JSON, and a line's end: what a terminal does not show as it is, in strings alone, as \uXXXX. */
void cli_json_put(const char *text);
/* Everything was printed: 0, or CLI_FAILED (standard output is closed, full). */
int cli_flush(void);
/* A JSON string of TEXT that came out of a file. */
json_object *cli_json_text(const char *text);
/* Make all texts of VALUE safe to print to a terminal. */
void cli_json_for_terminal(json_object *value);
json_object *cli_json_dims(unsigned rank, const uint64_t dims[]);

/* A table of columns as wide as their widest cell; the last is not padded. Cells are copied. */
typedef struct cli_table cli_table;
cli_table *cli_table_open(unsigned columns, const char *const titles[]);
void cli_table_right(cli_table *table, unsigned column); /* numbers are set to the right */
void cli_table_cell(cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_table_print(cli_table *table);
void cli_table_close(cli_table *table);

/* Memory: the command ends when there is none. */
void *cli_alloc(size_t count, size_t size);
/* base/vector.h */
#define CLI_RESERVE(array, room, count, more) cli_reserve(&(array), &(room), (count), (more), sizeof *(array))
void cli_reserve(void *array, size_t *room, size_t count, size_t more, size_t size);
char *cli_strdup(const char *text);
/* Set it. true: KEY was not there before. */
bool cli_map_put(cow_map *map, uint64_t key, uint64_t value);
char *cli_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* PATH, which is absolute, and NAME in it. free() it. */
char *cli_child_path(const char *path, const char *name);
char *cli_format_list(const char *format, va_list list) __attribute__((format(printf, 1, 0)));

#endif
