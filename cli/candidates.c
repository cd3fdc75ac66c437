/* What the last word of a command line may become: versions behind FILE@, paths of objects behind a file. See manual.h.
 *
 * A shell asks while somebody types: what cannot be read, and what is in doubt, has no candidates, and nothing is said of it.
 */
#include "base/error.h"
#include "history/history.h"
#include "manual.h"
#include "object.h"
#include "tables.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No terminal shows more of them. */
#define MOST 2000

/* What a verb takes: FILE, FILE@REV, then perhaps a path, or FILE@REV:PATH, or FILE and words that are versions. */
static const struct verb {
    const char *name;
    bool revisions, paths, joined, words;
} verbs[] = {{"ls", true, true, false, false},      {"show", true, true, false, false},
             {"diff", true, true, false, false},    {"blame", true, true, false, false},
             {"bisect", true, true, false, false},  {"hash", true, true, false, false},
             {"stat", true, false, false, false},   {"export", true, false, false, false},
             {"log", false, false, false, false},   {"cp", true, false, true, false},
             {"restore", true, true, false, false}, {"tag", true, false, false, false},
             {"rename", true, false, false, false}, {"describe", true, false, false, false},
             {"forget", false, false, false, true}, {"squash", false, false, false, true}};

static const struct verb *find(const char *name)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

/* A name that a terminal would not show as it is, or that is two lines, is none. */
static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            return false;
    return true;
}

/* Versions, but for ONLY_TAGS, and tags of the file NAME that begin with WORD, each behind BEFORE. */
static void put_versions(const char *name, const char *word, const char *before, bool only_tags)
{
    cli_version *rows = NULL;
    cli_tag *tags = NULL;
    size_t count = 0, tagged = 0, length = strlen(word);
    char why[1024];
    cli_file file;

    if (cli_file_try(&file, name, why, sizeof why) != 0)
        return;
    if (cow_file_versioned(file.loc.object) > 0 && cli_versions_read(&file, &rows, &count, why, sizeof why) == 0)
        for (size_t i = only_tags ? 0 : count; i-- > 0 && count - i <= MOST;)
            if (rows[i].open != COW_LOG_FORGOTTEN && strncmp(rows[i].name, word, length) == 0 && is_plain(rows[i].name))
                printf("%s%s\n", before, rows[i].name);
    if (rows != NULL && cli_tags_read(&file, rows, count, &tags, &tagged, why, sizeof why) == 0)
        for (size_t i = 0; i < tagged && i < MOST; i++)
            if (strncmp(tags[i].name, word, length) == 0 && is_plain(tags[i].name))
                printf("%s%s\n", before, tags[i].name);
    cow_error_clear();
    cli_tags_free(tags, tagged);
    cli_versions_free(rows, count);
    cli_file_close(&file);
}

/* WORD is FILE@ and the beginning of a version's name; AT is that "@". */
static void put_states(const char *word, const char *at)
{
    char *name = cli_strdup(word), *before;

    name[at - word] = '\0';
    before = cli_format("%s@", name);
    if (access(word, F_OK) != 0 && access(name, F_OK) == 0)
        put_versions(name, at + 1, before, false);
    free(before);
    free(name);
}

/* WORD behind the file NAME: a version, or A..B, perhaps behind "--keep=". */
static void put_words(const char *name, const char *word)
{
    const char *value = strncmp(word, "--keep", 6) == 0 && strchr(word, '=') != NULL ? strchr(word, '=') + 1 : word;
    const char *dots = strstr(value, ".."), *begin = dots != NULL ? dots + 2 : value;
    char *before = cli_format("%.*s", (int)(begin - word), word);

    if (word[0] != '-' || strncmp(word, "--keep=", 7) == 0 || strncmp(word, "--keep-tag=", 11) == 0)
        put_versions(name, begin, before, strncmp(word, "--keep-tag", 10) == 0);
    free(before);
}

/* What PATH, absolute, may become in the state STATE; each behind BEFORE. A group ends in "/". */
static void put_members(const char *state, const char *path, const char *before)
{
    char why[1024], root[1024] = "";
    size_t above = (size_t)(strrchr(path, '/') - path);
    hid_t group = H5I_INVALID_HID;
    cow_tree_names links = {0};
    cli_file file;

    if (cli_file_try(&file, state, why, sizeof why) != 0)
        return;
    if (file.revision == NULL || cow_revision_resolve(file.loc.object, file.revision, root, sizeof root) == 0) {
        char *parent = cli_format("%s%.*s/", root, (int)above, path);
        if ((group = H5Gopen2(file.id, parent, H5P_DEFAULT)) >= 0 && cli_object_links(group, &links) == 0)
            for (size_t i = 0; i < links.count && i < MOST; i++) {
                const char *name = links.entry[i].name;
                H5O_info2_t info;
                if (strncmp(name, path + above + 1, strlen(path + above + 1)) != 0 || !is_plain(name) ||
                    (root[0] == '\0' && above == 0 && strcmp(name, COW_GROUP) == 0))
                    continue;
                bool is_group = links.entry[i].link.type == H5L_TYPE_HARD &&
                                H5Oget_info_by_name3(group, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
                                info.type == H5O_TYPE_GROUP;
                printf("%s%.*s/%s%s\n", before, (int)above, path, name, is_group ? "/" : "");
            }
        cow_tree_names_free(&links);
        free(parent);
    }
    if (group >= 0)
        H5Gclose(group);
    cow_error_clear();
    cli_file_close(&file);
}

/* The words before the last one: the newest of them that is a file, or a version. */
static const char *state_before(int argc, char **argv)
{
    for (int i = argc - 2; i > 0; i--) {
        char *name = cli_strdup(argv[i]), *at = strrchr(name, '@');
        bool there = argv[i][0] != '-' && access(name, F_OK) == 0;
        if (!there && argv[i][0] != '-' && at != NULL) {
            *at = '\0';
            there = access(name, F_OK) == 0;
        }
        free(name);
        if (there)
            return argv[i];
    }
    return NULL;
}

int cli_manual_candidates(int argc, char **argv)
{
    const struct verb *verb = argc > 1 ? find(argv[0]) : NULL;
    const char *word = argc > 1 ? argv[argc - 1] : "", *state, *colon, *at;
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0)
        return CLI_FAILED;
    if (verb == NULL)
        return CLI_OK;
    cli_hdf5_start();
    if (verb->joined && (colon = strstr(word, ":/")) != NULL) {
        char *file = cli_format("%.*s", (int)(colon - word), word), *before = cli_format("%s:", file);
        put_members(file, colon + 1, before);
        free(before);
        free(file);
    } else if (strncmp(word, "--object=/", 10) == 0 && (state = state_before(argc, argv)) != NULL)
        put_members(state, word + 9, "--object=");
    else if (verb->paths && word[0] == '/' && (state = state_before(argc, argv)) != NULL)
        put_members(state, word, "");
    else if (verb->revisions && (at = strrchr(word, '@')) != NULL)
        put_states(word, at);
    else if (verb->words && (state = state_before(argc, argv)) != NULL)
        put_words(state, word);
    return cli_flush();
}
