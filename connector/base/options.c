/* The options string of HDF5_VOL_CONNECTOR: see options.h, and docs/options.md for users.
 *
 * key=value;key=value with percent-encoding in values, so that every value can be written. Everything is checked here,
 * before any file is touched: a typing error must not become a file that is not what its owner thinks.
 */
#include "base/options.h"

#include "base/error.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIB                 ((size_t)1 << 10)
#define MIB                 ((size_t)1 << 20)
#define GIB                 ((size_t)1 << 30)
#define CHUNK_DEFAULT       (256 * KIB)
#define CACHE_DEFAULT       (32 * MIB)
#define MEMORY_DEFAULT      (64 * MIB)
#define MEMORY_MIN          KIB
#define PIECES_MIN          16
#define CHUNK_MIN           (4 * KIB)
#define CHUNK_MAX           GIB
#define CACHE_MAX           (1024 * GIB)
#define THREADS_MAX         64
#define THREADS_DEFAULT_MAX 8
#define TIMEOUT_MAX         86400
#define GZIP_LEVEL_DEFAULT  4 /* as h5py */
#define BLOSC_LEVEL_DEFAULT 5
#define REVISION_MAX        64 /* bytes; versions are links whose paths have a fixed room */

#define COMPRESS_ALLOWED                                                                                               \
    "none, blosc:CODEC[:LEVEL[:SHUFFLE]] with CODEC blosclz, lz4, lz4hc, zlib or zstd, gzip[:LEVEL[:SHUFFLE]], "       \
    "lzf[:SHUFFLE]; LEVEL 0 to 9; SHUFFLE none, byte, or with blosc bit"

typedef enum { NONE, BYTE, BIT } shuffle;

static const struct {
    const char *name;
    int code;
} codecs[] = {{"blosclz", 0}, {"lz4", 1}, {"lz4hc", 2}, {"zlib", 4}, {"zstd", 5}};
#define CODECS (sizeof codecs / sizeof *codecs)
static const char *const shuffles[] = {"none", "byte", "bit"};

unsigned cow_threads_default(void)
{
    cpu_set_t mine;
    long cores = sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : sysconf(_SC_NPROCESSORS_ONLN);

    if (cores < 1)
        cores = 1;
    return cores > THREADS_DEFAULT_MAX ? THREADS_DEFAULT_MAX : (unsigned)cores;
}

static cow_options *options_default(void)
{
    cow_options *options = calloc(1, sizeof *options);

    if (!options) {
        cow_error(COW_MEMORY, "no memory for options");
        return NULL;
    }
    options->references = 1;
    options->chunk_bytes = CHUNK_DEFAULT;
    options->cache_bytes = CACHE_DEFAULT;
    options->memory_bytes = MEMORY_DEFAULT;
    options->pieces_least = COW_PIECES_DEFAULT;
    options->threads = cow_threads_default();
    return options;
}

/* ---- values ---- */

static int bad_value(const char *key, const char *value, const char *allowed)
{
    return cow_error(COW_USAGE, "option %s=%s: allowed is %s", key, value, allowed);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes %XX in place. */
static int percent_decode(const char *key, char *value)
{
    char *to = value;

    for (const char *from = value; *from; from++) {
        int high, low;
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        if ((high = hex_digit(from[1])) < 0 || (low = hex_digit(from[2])) < 0 || high + low == 0)
            return cow_error(COW_USAGE,
                             "option %s: '%%' must be followed by two hexadecimal digits, not 00 (write ';' as "
                             "%%3B and '%%' as %%25)",
                             key);
        *to++ = (char)(high << 4 | low);
        from += 2;
    }
    *to = '\0';
    return 0;
}

static int parse_whole(const char *text, size_t maximum, size_t *number, const char **end)
{
    size_t n = 0;

    if (*text < '0' || *text > '9')
        return -1;
    for (; *text >= '0' && *text <= '9'; text++) {
        size_t digit = (size_t)(*text - '0');
        if (n > (maximum - digit) / 10)
            return -1;
        n = n * 10 + digit;
    }
    *number = n;
    *end = text;
    return 0;
}

static int parse_bytes(const char *key, const char *value, size_t minimum, size_t maximum, const char *allowed,
                       size_t *bytes)
{
    size_t n, unit = 1;
    const char *end;

    if (parse_whole(value, maximum, &n, &end) < 0)
        return bad_value(key, value, allowed);
    if (*end == 'K' || *end == 'k')
        unit = KIB;
    else if (*end == 'M' || *end == 'm')
        unit = MIB;
    else if (*end == 'G' || *end == 'g')
        unit = GIB;
    if (unit > 1)
        end++;
    if (*end != '\0' || n > maximum / unit || n * unit < minimum)
        return bad_value(key, value, allowed);
    *bytes = n * unit;
    return 0;
}

/* What can be a link, and stand behind '@'. */
static bool is_revision(const char *text)
{
    size_t length = strlen(text);
    bool good = length >= 1 && length <= REVISION_MAX && text[0] != '.';

    for (size_t i = 0; good && i < length; i++)
        good = text[i] != '/' && text[i] != '@' && (unsigned char)text[i] >= ' ' && text[i] != 0x7f;
    return good;
}

int cow_version_name_check(const char *what, const char *name)
{
    /* told apart from the other ways to name a version */
    if (is_revision(name) && name[0] != '~' && name[0] != '#' && name[0] != '{')
        return 0;
    return cow_error(COW_USAGE,
                     "%s=%s: allowed is 1 to 64 bytes without '/', '@' and control characters, not starting with '.', "
                     "'~', '#' or '{'",
                     what, name);
}

int cow_version_name_not_reserved(const char *where, const char *name)
{
    if (strcmp(name, "head") != 0 && strcmp(name, "latest") != 0 && strspn(name, "0123456789") != strlen(name))
        return 0;
    return cow_error(
        COW_USAGE,
        "%s: '%s' means something already: head and latest are the newest version, numbers are the names of "
        "versions to come",
        where, name);
}

static int parse_at(const char *key, const char *value, char **revision)
{
    if (!is_revision(value))
        return bad_value(key, value, "the name of a version, #N, ~N, or {DATE} as in {2026-01-31T12:00}");
    if (!(*revision = strdup(value)))
        return cow_error(COW_MEMORY, "no memory for options");
    return 0;
}

static int parse_name(const char *value, char **name)
{
    if (cow_version_name_check("option name", value) < 0)
        return -1;
    if (!(*name = strdup(value)))
        return cow_error(COW_MEMORY, "no memory for options");
    return 0;
}

/* One part of compress=, up to ':' or the end; *TEXT moves behind it, to NULL at the end. */
static const char *next_part(char **text)
{
    char *part = *text, *colon = part ? strchr(part, ':') : NULL;

    if (colon)
        *colon = '\0';
    *text = colon ? colon + 1 : NULL;
    return part;
}

static int parse_shuffle(const char *text, shuffle last, int *result)
{
    for (shuffle s = NONE; s <= last; s++)
        if (strcmp(text, shuffles[s]) == 0) {
            *result = s;
            return 0;
        }
    return -1;
}

static int parse_level(const char *text, int *level)
{
    if (text[0] < '0' || text[0] > '9' || text[1] != '\0')
        return -1;
    *level = text[0] - '0';
    return 0;
}

static int parse_codec(const char *text, int *codec)
{
    for (size_t i = 0; i < CODECS; i++)
        if (strcmp(text, codecs[i].name) == 0) {
            *codec = codecs[i].code;
            return 0;
        }
    return -1;
}

static int parse_compress_parts(char *text, cow_compress *compress)
{
    char *rest = text;
    const char *library = next_part(&rest), *part;
    shuffle last = BYTE;

    if (strcmp(library, "none") == 0) {
        compress->library = COW_COMPRESS_NONE;
        return rest ? -1 : 0;
    }
    compress->shuffle = BYTE;
    if (strcmp(library, "blosc") == 0) {
        compress->library = COW_COMPRESS_BLOSC;
        compress->level = BLOSC_LEVEL_DEFAULT;
        last = BIT;
        if (!(part = next_part(&rest)) || parse_codec(part, &compress->codec) < 0)
            return -1;
    } else if (strcmp(library, "gzip") == 0) {
        compress->library = COW_COMPRESS_GZIP;
        compress->level = GZIP_LEVEL_DEFAULT;
    } else if (strcmp(library, "lzf") == 0) {
        compress->library = COW_COMPRESS_LZF;
    } else {
        return -1;
    }
    if (compress->library != COW_COMPRESS_LZF && (part = next_part(&rest)) && parse_level(part, &compress->level) < 0)
        return -1;
    if ((part = next_part(&rest)) && parse_shuffle(part, last, &compress->shuffle) < 0)
        return -1;
    return rest ? -1 : 0;
}

static int parse_compress(const char *key, const char *value, cow_compress *compress)
{
    char *parts = strdup(value);
    cow_compress made = {.library = COW_COMPRESS_NONE};
    int result;

    if (!parts)
        return cow_error(COW_MEMORY, "no memory for options");
    result = parse_compress_parts(parts, &made);
    free(parts);
    if (result < 0)
        return bad_value(key, value, COMPRESS_ALLOWED);
    *compress = made;
    return 0;
}

/* ---- keys ---- */

typedef enum {
    AT,
    NAME,
    MESSAGE,
    COMMIT,
    COMPRESS,
    CHUNK,
    CACHE,
    MEMORY,
    PIECES,
    THREADS,
    SYNC,
    LOCK_TIMEOUT,
    ADOPT,
    PROTECT,
    TRUNCATE,
    KEEP,
    UNDER_VOL,
    UNDER_INFO,
    KEYS
} key_id;
static const char *const keys[KEYS] = {"at",    "name",    "message",  "commit",  "compress",  "chunk",
                                       "cache", "memory",  "pieces",   "threads", "sync",      "lock_timeout",
                                       "adopt", "protect", "truncate", "keep",    "under_vol", "under_info"};
static const char *const syncs[] = {"full", "normal", "off"};

static int parse_switch(const char *key, const char *value, const char *on, const char *off, bool *result)
{
    char allowed[40];

    snprintf(allowed, sizeof allowed, "%s or %s", on, off);
    *result = strcmp(value, on) == 0;
    return *result || strcmp(value, off) == 0 ? 0 : bad_value(key, value, allowed);
}

static int parse_keep(const char *value, cow_policy *keep)
{
    char why[500];

    if ((keep->text = strdup(value)) == NULL)
        return cow_error(COW_MEMORY, "no memory for options");
    if (cow_keep_parse(value, &keep->rules) == 0)
        return 0;
    snprintf(why, sizeof why, "%s", cow_error_message());
    cow_error_clear();
    return cow_error(COW_USAGE, "option keep=%s: %s", value, why);
}

static int parse_pieces(const char *value, size_t *least)
{
    if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
        return parse_bytes(keys[PIECES], value, PIECES_MIN, CHUNK_MAX,
                           "on, off, or bytes from 16 to 1G, with K, M or G for the unit", least);
    *least = value[1] == 'n' ? COW_PIECES_DEFAULT : 0;
    return 0;
}

static int set_option(cow_options *options, key_id key, const char *value)
{
    size_t n;

    switch (key) {
    case AT:
        return parse_at(keys[key], value, &options->at);
    case NAME:
        return parse_name(value, &options->name);
    case MESSAGE:
        if (!(options->message = strdup(value)))
            return cow_error(COW_MEMORY, "no memory for options");
        return 0;
    case COMMIT:
        if (strcmp(value, "close") != 0 && strcmp(value, "flush") != 0)
            return bad_value(keys[key], value, "close or flush");
        options->commit = value[0] == 'f' ? COW_COMMIT_FLUSH : COW_COMMIT_CLOSE;
        return 0;
    case COMPRESS:
        return parse_compress(keys[key], value, &options->compress);
    case CHUNK:
        return parse_bytes(keys[key], value, CHUNK_MIN, CHUNK_MAX, "bytes from 4K to 1G, with K, M or G for the unit",
                           &options->chunk_bytes);
    case MEMORY:
        return parse_bytes(keys[key], value, MEMORY_MIN, CACHE_MAX,
                           "bytes from 1K to 1024G, with K, M or G for the unit", &options->memory_bytes);
    case CACHE:
        return parse_bytes(keys[key], value, 0, CACHE_MAX, "bytes from 0 to 1024G, with K, M or G for the unit",
                           &options->cache_bytes);
    case PIECES:
        return parse_pieces(value, &options->pieces_least);
    case THREADS:
        if (parse_bytes(keys[key], value, 1, THREADS_MAX, "1 to 64", &n) < 0)
            return -1;
        options->threads = (unsigned)n;
        return 0;
    case SYNC:
        for (n = 0; n < sizeof syncs / sizeof *syncs; n++)
            if (strcmp(value, syncs[n]) == 0) {
                options->sync = (int)n;
                return 0;
            }
        return bad_value(keys[key], value, "full, normal or off");
    case LOCK_TIMEOUT:
        if (parse_bytes(keys[key], value, 0, TIMEOUT_MAX, "seconds, 0 to 86400", &n) < 0)
            return -1;
        options->lock_timeout = (unsigned)n;
        return 0;
    case KEEP:
        return parse_keep(value, &options->keep);
    case ADOPT:
        return parse_switch(keys[key], value, "yes", "no", &options->adopt);
    case PROTECT:
        return parse_switch(keys[key], value, "on", "off", &options->protect);
    case TRUNCATE:
        if (strcmp(value, "keep") != 0 && strcmp(value, "discard") != 0)
            return bad_value(keys[key], value, "keep or discard");
        options->truncate = value[0] == 'd' ? COW_TRUNCATE_DISCARD : COW_TRUNCATE_KEEP;
        return 0;
    case UNDER_VOL:
        if (strcmp(value, "0") != 0)
            return cow_error(COW_USAGE,
                             "option under_vol=%s: h5cow works on the native connector only (under_vol=0): leave "
                             "the option out",
                             value);
        return 0;
    case UNDER_INFO:
        if (strcmp(value, "") != 0 && strcmp(value, "{}") != 0)
            return cow_error(COW_USAGE,
                             "option under_info=%s: h5cow works on the native connector only, which takes no "
                             "options (under_info={}): leave the option out",
                             value);
        return 0;
    case KEYS:
        break;
    }
    return -1;
}

static char *trim(char *text)
{
    size_t length;

    text += strspn(text, " \t\r\n");
    for (length = strlen(text); length > 0 && strchr(" \t\r\n", text[length - 1]); length--)
        ;
    text[length] = '\0';
    return text;
}

static int parse_entry(cow_options *options, char *entry, bool given[])
{
    char *equals = strchr(entry, '='), *key_text, *value;
    key_id key = 0;

    entry = trim(entry);
    if (*entry == '\0')
        return 0;
    if (equals)
        *equals = '\0';
    key_text = trim(entry);
    while (key < KEYS && strcmp(key_text, keys[key]) != 0)
        key++;
    if (key == KEYS)
        return cow_error(
            COW_USAGE,
            "option '%s' is unknown: there are at, name, message, commit, compress, chunk, cache, memory, "
            "pieces, threads, sync, lock_timeout, adopt, protect, truncate and keep (a ';' inside a value is written %%3B)",
            key_text);
    if (!equals)
        return cow_error(COW_USAGE, "option %s has no value: write %s=VALUE", keys[key], keys[key]);
    if (given[key])
        return cow_error(COW_USAGE, "option %s is given twice", keys[key]);
    given[key] = true;
    value = trim(equals + 1);
    return percent_decode(keys[key], value) < 0 ? -1 : set_option(options, key, value);
}

static int check_combination(const bool given[])
{
    if (given[AT] && given[NAME])
        return cow_error(COW_USAGE,
                         "options at and name: at opens a version that exists, which is read-only; name is for "
                         "the version to be made: leave one of them out");
    if (given[AT] && given[MESSAGE])
        return cow_error(COW_USAGE,
                         "options at and message: at opens a version that exists, which is read-only; message "
                         "is for the version to be made: leave one of them out");
    return 0;
}

cow_options *cow_options_parse(const char *text)
{
    cow_options *options = options_default();
    char *copy = strdup(text ? text : ""), *entry = copy;
    bool given[KEYS] = {false}, good = false;

    if (!options)
        goto done;
    if (!copy) {
        cow_error(COW_MEMORY, "no memory for options");
        goto done;
    }
    while (entry) {
        char *next = strchr(entry, ';');
        if (next)
            *next++ = '\0';
        if (parse_entry(options, entry, given) < 0)
            goto done;
        entry = next;
    }
    if (check_combination(given) < 0)
        goto done;
    if (options->name && options->commit == COW_COMMIT_FLUSH) {
        cow_error(COW_USAGE,
                  "options name and commit=flush: every flush would make a version of this one name: leave one of "
                  "them out");
        goto done;
    }
    good = true;
done:
    free(copy);
    if (!good) {
        cow_options_free(options);
        return NULL;
    }
    return options;
}

/* ---- copies and text ---- */

static int copy_string(const char *from, char **to)
{
    *to = from ? strdup(from) : NULL;
    return from && !*to ? cow_error(COW_MEMORY, "no memory for options") : 0;
}

cow_options *cow_options_refuse(const char *text)
{
    cow_error_box why;
    cow_options *options;

    cow_error_take(&why);
    if (!(options = options_default()))
        return NULL;
    if (copy_string(text ? text : "", &options->refused) < 0 || copy_string(why.message, &options->refusal) < 0) {
        cow_options_free(options);
        return NULL;
    }
    return options;
}

cow_options *cow_options_copy(const cow_options *options)
{
    cow_options *shared = (cow_options *)(uintptr_t)options;

    shared->references++;
    return shared;
}

void cow_options_free(cow_options *options)
{
    if (!options || --options->references > 0)
        return;
    free(options->at);
    free(options->name);
    free(options->message);
    free(options->keep.text);
    free(options->refused);
    free(options->refusal);
    free(options);
}

/* key=value with what the parser would trim or take apart percent-encoded; nothing for a NULL value. */
static void put_string(FILE *out, key_id key, const char *value)
{
    if (!value)
        return;
    fprintf(out, "%s=", keys[key]);
    for (const char *c = value; *c; c++) {
        bool edge = c == value || c[1] == '\0';
        if (*c == ';' || *c == '%' || (unsigned char)*c < ' ' || (edge && *c == ' '))
            fprintf(out, "%%%02X", (unsigned char)*c);
        else
            fputc(*c, out);
    }
    fputc(';', out);
}

static void put_compress(FILE *out, const cow_compress *compress)
{
    const char *codec = "";

    switch (compress->library) {
    case COW_COMPRESS_NONE:
        fprintf(out, "compress=none;");
        break;
    case COW_COMPRESS_BLOSC:
        for (size_t i = 0; i < CODECS; i++)
            if (codecs[i].code == compress->codec)
                codec = codecs[i].name;
        fprintf(out, "compress=blosc:%s:%d:%s;", codec, compress->level, shuffles[compress->shuffle]);
        break;
    case COW_COMPRESS_LZF:
        fprintf(out, "compress=lzf:%s;", shuffles[compress->shuffle]);
        break;
    case COW_COMPRESS_GZIP:
        fprintf(out, "compress=gzip:%d:%s;", compress->level, shuffles[compress->shuffle]);
        break;
    }
}

char *cow_options_text(const cow_options *options)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bool failed;

    if (!out)
        return NULL;
    if (options->refused) {
        fputs(options->refused, out);
        goto done;
    }
    put_string(out, AT, options->at);
    put_string(out, NAME, options->name);
    put_string(out, MESSAGE, options->message);
    put_string(out, KEEP, options->keep.text);
    fprintf(out, "commit=%s;", options->commit == COW_COMMIT_FLUSH ? "flush" : "close");
    put_compress(out, &options->compress);
    if (options->pieces_least > 0)
        fprintf(out, "pieces=%zu;", options->pieces_least);
    else
        fputs("pieces=off;", out);
    fprintf(out, "chunk=%zu;cache=%zu;memory=%zu;threads=%u;sync=%s;lock_timeout=%u;adopt=%s;protect=%s;truncate=%s",
            options->chunk_bytes, options->cache_bytes, options->memory_bytes, options->threads, syncs[options->sync],
            options->lock_timeout, options->adopt ? "yes" : "no", options->protect ? "on" : "off",
            options->truncate == COW_TRUNCATE_DISCARD ? "discard" : "keep");
done:
    failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}
