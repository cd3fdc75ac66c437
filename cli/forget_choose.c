/* Which versions go, and what that frees. See forget.h. */
#include "forget.h"

#include "base/error.h"
#include "history/history.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

/* The row of the version that TEXT names; with WHY, -1: none. */
static int find(const cli_forgetting *f, const cli_file *file, const char *text, size_t *row, char *why, size_t size)
{
    char path[1024];

    if (cow_revision_resolve(file->loc.object, text, path, sizeof path) < 0) {
        cli_reason(why, size);
        return -1;
    }
    *row = cli_version_row(f->states.versions, f->states.version_count, path + strlen(COW_PATH_VERSIONS "/"));
    if (*row < f->states.version_count)
        return 0;
    snprintf(why, size, "'%s' is damaged: the log lacks version '%s'", file->name, text);
    return -1;
}

/* "A..B" or, where MAY_BE_ONE, one version that is called so: rows FIRST to LAST. 0, or CLI_FAILED. */
static int find_range(const cli_forgetting *f, const cli_file *file, const char *text, bool may_be_one, size_t *first,
                      size_t *last)
{
    const char *dots = strstr(text, "..");
    char why[1024], *from;
    int status;

    if (may_be_one && find(f, file, text, first, why, sizeof why) == 0) {
        *last = *first;
        return 0;
    }
    if (dots == NULL)
        return may_be_one ? cli_fail("%s", why) : cli_usage(f->verb, "'%s' is not two versions, as A..B", text);
    from = cli_format("%.*s", (int)(dots - text), text);
    status = find(f, file, from, first, why, sizeof why) < 0 || find(f, file, dots + 2, last, why, sizeof why) < 0
                 ? cli_fail("%s", why)
                 : 0;
    free(from);
    if (status == 0 && *first > *last)
        status = cli_fail("'%s': version '%s' is older than version '%s': the older one stands first", text,
                          f->states.versions[*last].name, f->states.versions[*first].name);
    return status;
}

/* ---- those that are named ---- */

static int refuse_kept(const cli_forgetting *f, size_t row)
{
    const char *name = f->states.versions[row].name;

    for (size_t i = 0; i < f->tag_count; i++)
        if (f->tags[i].version == row)
            return cli_fail(
                "'%s': the tag '%s' leads to version '%s', which stays as long: 'h5cow tag -d %s %s'; nothing "
                "was changed",
                f->name, f->tags[i].name, name, f->name, f->tags[i].name);
    return row + 1 < f->states.version_count
               ? 0
               : cli_fail(
                     "'%s': version '%s' is the newest one, which the next one is made from: it stays; nothing was "
                     "changed",
                     f->name, name);
}

static int let_go(cli_forgetting *f, size_t first, size_t end)
{
    for (size_t row = first; row < end; row++) {
        if (f->states.versions[row].open == COW_LOG_FORGOTTEN)
            continue;
        if (refuse_kept(f, row) != 0)
            return CLI_FAILED;
        f->go[row] = true;
    }
    return 0;
}

static int choose_named(cli_forgetting *f, const cli_file *file)
{
    const bool squash = strcmp(f->verb, "squash") == 0;
    size_t first, last;
    int status = 0;

    for (size_t i = 0; status == 0 && i < f->revisions.count; i++) {
        status = find_range(f, file, f->revisions.word[i], !squash, &first, &last);
        if (status == 0 && squash && first == last)
            status = cli_fail("'%s': both are version '%s': nothing to squash", f->revisions.word[i],
                              f->states.versions[first].name);
        if (status == 0)
            status = let_go(f, first, squash ? last : last + 1);
    }
    return status;
}

/* ---- what a policy leaves ---- */

static int keep_named(cli_forgetting *f, const cli_file *file)
{
    size_t first, last, tag;

    for (size_t i = 0; i < f->kept_revisions.count; i++) {
        if (find_range(f, file, f->kept_revisions.word[i], true, &first, &last) != 0)
            return CLI_FAILED;
        for (; first <= last; first++)
            f->why[first] |= COW_KEPT_NAMED;
    }
    for (size_t i = 0; i < f->kept_tags.count; i++) { /* all tags keep their versions: it only has to be there */
        for (tag = 0; tag < f->tag_count && strcmp(f->tags[tag].name, f->kept_tags.word[i]) != 0;)
            tag++;
        if (tag == f->tag_count)
            return cli_fail("'%s' has no tag '%s': 'h5cow tag %s' lists them", f->name, f->kept_tags.word[i], f->name);
    }
    return 0;
}

static int choose_by_policy(cli_forgetting *f, const cli_file *file)
{
    const size_t count = f->states.version_count;
    int64_t *time = cli_alloc(count, sizeof *time);
    char why[1024];
    int status = keep_named(f, file);

    for (size_t i = 0; i < count; i++) {
        time[i] = f->states.versions[i].time;
        if (f->states.versions[i].open == COW_LOG_FORGOTTEN)
            f->why[i] |= COW_KEPT_NOT;
    }
    for (size_t i = 0; i < f->tag_count; i++)
        if (f->tags[i].version < count)
            f->why[f->tags[i].version] |= COW_KEPT_TAGGED;
    if (status == 0 && cow_keep_decide(&f->keep, count, time, f->why) < 0)
        status = cli_fail("%s", cli_reason(why, sizeof why));
    for (size_t i = 0; status == 0 && i < count; i++)
        f->go[i] = f->why[i] == 0;
    free(time);
    return status;
}

/* ---- what it frees ---- */

static int weigh(cli_forgetting *f, const cli_file *file)
{
    const size_t count = f->states.version_count;
    cow_table *index = cow_layout_table_open(file->loc, COW_TABLE_INDEX, 0, 0);
    uint64_t *bytes = cli_alloc(count + 2, sizeof *bytes);
    cli_storage storage = {0};
    char why[1024];
    int status = 0;

    f->alone = cli_alloc(count, sizeof *f->alone);
    f->free = cli_alloc(count, sizeof *f->free);
    if (index == NULL)
        status =
            cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", f->name, cli_reason(why, sizeof why));
    else if (cli_storage_open(&storage, &f->states, index, why, sizeof why) < 0)
        status = cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", f->name, why);
    else {
        cli_owners each = cli_owners_new(&storage), going = cli_owners_new(&storage);
        going.first = true;
        cli_owners_tree(&each, f->states.head, (uint32_t)count + 1);
        cli_owners_tree(&going, f->states.head, (uint32_t)count + 1);
        for (size_t i = count; i-- > 0;) {
            cli_owners_tree(&each, f->states.root[i], (uint32_t)i + 1);
            if (!f->go[i])
                cli_owners_tree(&going, f->states.root[i], (uint32_t)count + 1);
        }
        for (size_t i = count; i-- > 0;)
            if (f->go[i])
                cli_owners_tree(&going, f->states.root[i], (uint32_t)i + 1);
        cli_owners_sum(&each, count + 1, bytes, NULL);
        memcpy(f->alone, bytes + 1, count * sizeof *bytes);
        cli_owners_sum(&going, count + 1, bytes, NULL);
        memcpy(f->free, bytes + 1, count * sizeof *bytes);
        f->frees = 0;
        for (size_t i = 0; i < count; i++)
            f->frees += f->free[i];
        cli_owners_free(&each);
        cli_owners_free(&going);
        cli_storage_close(&storage);
    }
    if (index != NULL)
        index->close(index);
    free(bytes);
    return status;
}

static void note_trouble(void *context, const char *what, const char *why)
{
    cli_forgetting *f = context;

    if (f->trouble == NULL)
        f->trouble = cli_format("%s: %s", what, why);
}

int cli_forget_choose(cli_forgetting *f, const cli_file *file)
{
    char why[1024];
    int status;

    cli_forget_free(f);
    f->name = cli_strdup(file->name);
    f->states = (cli_states){.file = file, .trouble = note_trouble, .context = f};
    if (cli_states_read(&f->states, why, sizeof why) < 0 ||
        cli_tags_read(file, f->states.versions, f->states.version_count, &f->tags, &f->tag_count, why, sizeof why) < 0)
        return cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", f->name, why);
    if (f->states.version_count == 0)
        return cli_fail("'%s' has no version yet", f->name);
    f->why = cli_alloc(f->states.version_count, sizeof *f->why);
    f->go = cli_alloc(f->states.version_count, sizeof *f->go);
    if ((status = f->policy ? choose_by_policy(f, file) : choose_named(f, file)) != 0 || (status = weigh(f, file)) != 0)
        return status;
    for (size_t i = 0; i < f->states.version_count; i++)
        f->going += f->go[i];
    if (f->trouble != NULL && !f->dry)
        return cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left; nothing was changed", f->name,
                        f->trouble);
    return 0;
}

void cli_forget_free(cli_forgetting *f)
{
    cli_tags_free(f->tags, f->tag_count);
    cli_states_free(&f->states);
    free(f->name);
    free(f->why);
    free(f->go);
    free(f->alone);
    free(f->free);
    free(f->trouble);
    f->states = (cli_states){0};
    f->tags = NULL;
    f->tag_count = f->going = 0;
    f->name = f->trouble = NULL;
    f->why = NULL;
    f->go = NULL;
    f->alone = f->free = NULL;
}
