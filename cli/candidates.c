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

/* What a verb takes: FILE, FILE@REV, then perhaps a path, or FILE@REV:PATH. */
static const struct verb {
    const char *name;
    bool revisions, paths, joined;
} verbs[] = {{"ls", true, true, false},      {"show", true, true, false},     {"diff", true, true, false},
             {"blame", true, true, false},   {"bisect", true, true, false},   {"hash", true, true, false},
             {"stat", true, false, false},   {"export", true, false, false},  {"log", false, false, false},
             {"cp", true, false, true},      {"restore", true, true, false},  {"tag", true, false, false},
             {"rename", true, false, false}, {"describe", true, false, false}};

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

/* WORD is FILE@ and the beginning of a version's name; AT is that "@". */
static void put_versions(const char *word, const char *at)
{
    char *name = cli_format("%.*s", (int)(at - word), word), why[1024];
    cli_version *rows = NULL;
    cli_tag *tags = NULL;
    size_t count = 0, tagged = 0;
    cli_file file;

    if (access(word, F_OK) != 0 && access(name, F_OK) == 0 && cli_file_try(&file, name, why, sizeof why) == 0) {
        if (cow_file_versioned(file.loc.object) > 0 && cli_versions_read(&file, &rows, &count, why, sizeof why) == 0)
            for (size_t i = count; i-- > 0 && count - i <= MOST;)
                if (rows[i].open != COW_LOG_FORGOTTEN && strncmp(rows[i].name, at + 1, strlen(at + 1)) == 0 &&
                    is_plain(rows[i].name))
                    printf("%s@%s\n", name, rows[i].name);
        if (rows != NULL && cli_tags_read(&file, rows, count, &tags, &tagged, why, sizeof why) == 0)
            for (size_t i = 0; i < tagged && i < MOST; i++)
                if (strncmp(tags[i].name, at + 1, strlen(at + 1)) == 0 && is_plain(tags[i].name))
                    printf("%s@%s\n", name, tags[i].name);
        cow_error_clear();
        cli_tags_free(tags, tagged);
        cli_versions_free(rows, count);
        cli_file_close(&file);
    }
    free(name);
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
        put_versions(word, at);
    return cli_flush();
}
