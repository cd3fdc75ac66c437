/* What becomes of files with history while a program runs. Contract: lives.h. A history has an identity, 16 random bytes that stand in
 * its journal, so it is found again under another name. */
#include "lives.h"

#include "common.h"
#include "journal/inspect.h"
#include "journal/label.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define FILES_MOST 2000 /* in one folder: beyond, looking would take longer than it is worth */

typedef struct life {
    char *name; /* absolute */
    struct stat about;
    cow_journal_identity identity;
    char newest[400]; /* its newest version, as it is told; "": not known */
} life;

struct cli_lives {
    char **folders;
    size_t folder_count, folder_room;
    life *files;
    size_t count, room;
};

static void add_folder(cli_lives *lives, char *folder)
{
    for (size_t i = 0; folder != NULL && i < lives->folder_count; i++)
        if (strcmp(lives->folders[i], folder) == 0) {
            free(folder);
            return;
        }
    if (folder == NULL)
        return;
    CLI_RESERVE(lives->folders, lives->folder_room, lives->folder_count, 1);
    lives->folders[lives->folder_count++] = folder;
}

/* What the label of the file NAME says of its newest version, if it is of the history of L. */
static void look_at_label(life *l, const char *name)
{
    cow_label label;

    if (cow_label_of(name, &label) && label.number > 0 &&
        memcmp(label.history, l->identity.id, sizeof label.history) == 0)
        cow_label_text(&label, l->newest);
}

static void look_at_file(cli_lives *lives, const char *name)
{
    life l = {0};

    if (stat(name, &l.about) < 0 || !S_ISREG(l.about.st_mode) || !cow_journal_identify(name, &l.identity))
        return;
    l.name = cli_strdup(name);
    look_at_label(&l, name);
    CLI_RESERVE(lives->files, lives->room, lives->count, 1);
    lives->files[lives->count++] = l;
}

/* The name of a file of FOLDER with the history IDENTITY, free() it; NULL: none. With LIVES, all files with history are noted instead. */
static char *look_through(const char *folder, cli_lives *lives, const cow_journal_identity *identity)
{
    DIR *entries = opendir(folder);
    cow_journal_identity other;
    struct dirent *entry;
    char *found = NULL;

    for (unsigned i = 0; entries != NULL && found == NULL && i < FILES_MOST && (entry = readdir(entries)) != NULL;
         i++) {
        char *name = cli_format("%s/%s", strcmp(folder, "/") == 0 ? "" : folder, entry->d_name);

        if (entry->d_type == DT_REG && lives != NULL)
            look_at_file(lives, name);
        else if (entry->d_type == DT_REG && cow_journal_identify(name, &other) &&
                 memcmp(other.id, identity->id, sizeof other.id) == 0) {
            found = name;
            name = NULL;
        }
        free(name);
    }
    if (entries != NULL)
        closedir(entries);
    return found;
}

cli_lives *cli_lives_begin(char **words)
{
    cli_lives *lives = cli_alloc(1, sizeof *lives);
    struct stat about;

    add_folder(lives, realpath(".", NULL));
    for (; *words != NULL; words++) {
        char *real = stat(*words, &about) == 0 && S_ISREG(about.st_mode) ? realpath(*words, NULL) : NULL, *slash;
        cow_journal_identity identity;

        if (real != NULL && cow_journal_identify(real, &identity) && (slash = strrchr(real, '/')) != NULL) {
            slash[slash == real] = '\0';
            add_folder(lives, real);
        } else
            free(real);
    }
    for (size_t i = 0; i < lives->folder_count; i++)
        look_through(lives->folders[i], lives, NULL);
    return lives;
}

static char *find(const cli_lives *lives, const cow_journal_identity *identity)
{
    char *found = NULL;

    for (size_t i = 0; found == NULL && i < lives->folder_count; i++)
        found = look_through(lives->folders[i], NULL, identity);
    return found;
}

/* "version #25 'name', made TIME, is the last one known", or where no program and no label has told it, the commit. free() it. */
static char *last_known(life l, const cli_heard *heard)
{
    char id[2 * sizeof l.identity.id + 1], when[40], *visible, *text;
    json_object *newest = NULL;

    for (size_t i = 0; i < sizeof l.identity.id; i++)
        sprintf(id + 2 * i, "%02x", l.identity.id[i]);
    look_at_label(&l, l.name);
    if (json_object_object_get_ex(heard->newest, id, &newest))
        snprintf(l.newest, sizeof l.newest, "%s", json_object_get_string(newest));
    if (l.newest[0] != '\0') {
        visible = cli_escape(l.newest);
        text = cli_format("version %s, is the last one known", visible);
        free(visible);
        return text;
    }
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", localtime(&l.about.st_mtime));
    return cli_format("commit %llu, written %s, is the last state known", (unsigned long long)l.identity.sequence,
                      when);
}

void cli_lives_end(const cli_lives *lives, const cli_heard *heard)
{
    for (size_t i = 0; i < lives->count; i++) {
        const life *l = &lives->files[i];
        cow_journal_identity now = {0};
        const char *what;
        char *elsewhere, *last;
        struct stat about;
        bool there = stat(l->name, &about) == 0, history = there && cow_journal_identify(l->name, &now);

        if (history && memcmp(now.id, l->identity.id, sizeof now.id) == 0)
            continue;
        elsewhere = find(lives, &l->identity);
        what =
            !there ? "is not there any more"
            : about.st_ino != l->about.st_ino || about.st_dev != l->about.st_dev
                ? (history ? "is another file now, with a history of its own" : "is another file now, without history")
                : "was emptied or written anew without h5cow, and has lost its history";
        last = last_known(*l, heard);
        if (elsewhere != NULL)
            cli_warn("'%s' %s; the history that it had is in '%s' now", l->name, what, elsewhere);
        else
            cli_warn("'%s' %s; no file beside it has the history that it had, of which %s", l->name, what, last);
        free(last);
        free(elsewhere);
    }
}

void cli_lives_free(cli_lives *lives)
{
    for (size_t i = 0; i < lives->count; i++)
        free(lives->files[i].name);
    for (size_t i = 0; i < lives->folder_count; i++)
        free(lives->folders[i]);
    free(lives->files);
    free(lives->folders);
    free(lives);
}
