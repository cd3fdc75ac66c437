/* Libraries of programs and who serves them: see libraries.h. */
#include "libraries.h"

#include "common.h"
#include "plugin.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define OLDER "h5cow needs HDF5 1.14 or newer"

/* ---- what is in a file ---- */

/* NULL: it cannot be read. */
static char *map_file(const char *name, size_t *size)
{
    int file = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about;
    void *bytes = MAP_FAILED;

    if (file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
        *size = (size_t)about.st_size;
        bytes = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (file >= 0)
        close(file);
    return bytes == MAP_FAILED ? NULL : bytes;
}

/* What H5get_libversion would say, if there is an HDF5 library in the file; free() it. NULL: none. Every release has this
 * text, also where its names were changed or left out. */
static char *version_in(const char *name)
{
    static const char text[] = "HDF5 library version: ";
    const size_t length = sizeof text - 1;
    unsigned v[3];
    size_t size;
    char *bytes = map_file(name, &size), *version = NULL;

    for (char *at = bytes; at != NULL && version == NULL;) {
        size_t left = size - (size_t)(at - bytes);
        char number[20];
        if ((at = memmem(at, left, text, length)) == NULL)
            break;
        at += length;
        left = size - (size_t)(at - bytes);
        snprintf(number, sizeof number, "%.*s", (int)(left < sizeof number ? left : sizeof number - 1), at);
        if (sscanf(number, "%u.%u.%u", &v[0], &v[1], &v[2]) == 3)
            version = cli_format("%u.%u.%u", v[0], v[1], v[2]);
    }
    if (bytes != NULL)
        munmap(bytes, size);
    return version;
}

/* Does the program do without the dynamic linker? Then it loads no plugins. */
static bool is_static(const char *program)
{
    size_t size;
    char *bytes = map_file(program, &size);
    ElfW(Ehdr) head = {0};
    bool dynamic = true;

    if (bytes != NULL && size >= sizeof head) {
        memcpy(&head, bytes, sizeof head);
        dynamic = memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(ElfW(Phdr)) ||
                  head.e_phoff > size || (size - head.e_phoff) / sizeof(ElfW(Phdr)) < head.e_phnum;
        for (size_t i = 0; !dynamic && i < head.e_phnum; i++) {
            ElfW(Phdr) part;
            memcpy(&part, bytes + head.e_phoff + i * sizeof part, sizeof part);
            dynamic = part.p_type == PT_INTERP;
        }
    }
    if (bytes != NULL)
        munmap(bytes, size);
    return !dynamic;
}

static bool is_older(const char *version)
{
    unsigned major, minor;

    return sscanf(version, "%u.%u", &major, &minor) == 2 && (major < 1 || (major == 1 && minor < 14));
}

/* ---- why a library has not asked ---- */

static bool is_found(const char *search)
{
    char *copy = cli_strdup(search), *rest = copy;
    bool found = false;

    for (char *folder; !found && (folder = strsep(&rest, ":")) != NULL;) {
        char *file = cli_format("%s/" CLI_PLUGIN_FILE, folder);
        found = *folder != '\0' && access(file, R_OK) == 0;
        free(file);
    }
    free(copy);
    return found;
}

static cli_service why_not(const cli_process *p, const char *file, const char *version, const char **why)
{
    if (is_older(version)) {
        *why = OLDER;
        return CLI_REFUSED;
    }
    if (strcmp(file, p->program) == 0 && is_static(file)) {
        *why = "the program is linked statically, and loads no plugins; link it with the shared library of HDF5 "
               "(h5cc -shlib)";
        return CLI_REFUSED;
    }
    *why = "it opened no file, or by a connector that the program chooses itself";
    if (!p->environment)
        return CLI_UNUSED;
    if (p->connector == NULL || strncmp(p->connector, "h5cow", 5) != 0) {
        *why = "HDF5_VOL_CONNECTOR does not choose h5cow";
        return CLI_NOT_CHOSEN;
    }
    if (p->preload != NULL && strcmp(p->preload, "::") == 0)
        *why = "HDF5_PLUGIN_PRELOAD=:: forbids HDF5 to load plugins: unset it";
    else if (p->search != NULL && !is_found(p->search))
        *why = "no folder of HDF5_PLUGIN_PATH has " CLI_PLUGIN_FILE;
    else if (p->search == NULL && !is_found(H5_DEFAULT_PLUGINDIR))
        *why = "HDF5_PLUGIN_PATH is not set, and HDF5's own folder for plugins has no " CLI_PLUGIN_FILE;
    else
        return CLI_UNUSED;
    return CLI_REFUSED;
}

/* ---- put together ---- */

static bool same(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

/* An empty WHY: it is served. */
static void add(cli_libraries *list, const char *program, const char *file, const char *version, const cli_asked *asked,
                cli_service service, const char *why)
{
    cow_instance instance = asked == NULL ? COW_INSTANCE_NONE : asked->instance;
    const char *plugin = service == CLI_SERVED ? asked->plugin : NULL;

    for (size_t i = 0; i < list->count; i++) {
        cli_library *l = &list->library[i];
        if (same(l->program, program) && strcmp(l->file, file) == 0 && l->service == service &&
            l->instance == instance && same(l->plugin, plugin) && strcmp(l->why, why) == 0) {
            l->processes++;
            return;
        }
    }
    CLI_RESERVE(list->library, list->room, list->count, 1);
    list->library[list->count++] = (cli_library){.program = program == NULL ? NULL : cli_strdup(program),
                                                 .file = cli_strdup(file),
                                                 .version = cli_strdup(version),
                                                 .plugin = plugin == NULL ? NULL : cli_strdup(plugin),
                                                 .instance = instance,
                                                 .service = service,
                                                 .why = cli_strdup(why),
                                                 .processes = 1};
}

/* Versions that were found, so that a file is searched once. */
static const char *find_version(json_object *found, const char *file)
{
    json_object *version;
    char *text;

    if (!json_object_object_get_ex(found, file, &version)) {
        text = version_in(file);
        version = text == NULL ? NULL : json_object_new_string(text);
        json_object_object_add(found, file, version);
        free(text);
    }
    return version == NULL ? NULL : json_object_get_string(version);
}

/* Where its functions cannot be found, the library's release is not known to who was asked: "?". */
static void add_asked(cli_libraries *list, const char *program, const cli_asked *a, json_object *found)
{
    const char *version = strcmp(a->version, "?") == 0 ? find_version(found, a->file) : a->version;
    bool served = a->instance != COW_INSTANCE_NONE;

    add(list, program, a->file, version == NULL ? "?" : version, a, served ? CLI_SERVED : CLI_REFUSED,
        served ? "" : a->why);
}

/* What the library in FILE was told, the last time that it asked. What a process has after a fork it does not ask for
 * again. */
static const cli_asked *answer(const cli_heard *heard, const cli_process *p, const char *file)
{
    for (const cli_process *at = p; at != NULL && strcmp(at->program, p->program) == 0; at = at->parent)
        for (size_t i = heard->count; i-- > 0;)
            if (heard->asked[i].pid == at->pid && strcmp(heard->asked[i].file, file) == 0)
                return &heard->asked[i];
    return NULL;
}

/* Has a `run` started it that was itself started here? Then that one has told. */
static bool is_told(const cli_process *p)
{
    for (; p->parent != NULL; p = p->parent)
        if (p->parent->own && p->parent->pid != p->pid)
            return true;
    return false;
}

static void add_process(cli_libraries *list, const cli_process *p, const cli_heard *heard, bool all, json_object *found)
{
    for (size_t i = 0; i < p->count; i++) {
        const char *file = p->files[i], *slash = strrchr(file, '/'), *version, *why;
        const cli_asked *a = answer(heard, p, file);
        cli_service service;

        if (a != NULL)
            add_asked(list, p->program, a, found);
        else if ((all || strstr(slash, "hdf5") != NULL || strcmp(file, p->program) == 0) &&
                 (version = find_version(found, file)) != NULL) {
            service = why_not(p, file, version, &why);
            add(list, p->program, file, version, NULL, service, why);
        }
    }
}

static bool was_seen(const cli_watch *watch, const cli_asked *a)
{
    for (size_t i = 0; i < watch->count; i++) {
        const cli_process *p = watch->processes[i];
        for (size_t j = 0; p->pid == a->pid && j < p->count; j++)
            if (strcmp(p->files[j], a->file) == 0)
                return true;
    }
    return false;
}

cli_libraries cli_libraries_of(const cli_watch *watch, const cli_heard *heard, bool all)
{
    json_object *found = json_object_new_object();
    cli_libraries list = {0};

    for (size_t i = 0; i < watch->count; i++)
        if (all || !is_told(watch->processes[i]))
            add_process(&list, watch->processes[i], heard, all, found);
    for (size_t i = 0; i < heard->count; i++)
        if ((all || !heard->asked[i].told) && !was_seen(watch, &heard->asked[i]))
            add_asked(&list, NULL, &heard->asked[i], found);
    json_object_put(found);
    return list;
}

void cli_libraries_free(cli_libraries *libraries)
{
    for (size_t i = 0; i < libraries->count; i++) {
        cli_library *l = &libraries->library[i];
        free(l->program);
        free(l->file);
        free(l->version);
        free(l->plugin);
        free(l->why);
    }
    free(libraries->library);
}

char *cli_library_service(const cli_library *library)
{
    const char *copy = library->instance == COW_INSTANCE_MEMORY   ? "a copy in memory of "
                       : library->instance == COW_INSTANCE_FOLDER ? "a copy, in a temporary folder, of "
                                                                  : "";

    return library->service == CLI_SERVED ? cli_format("served by %s%s", copy, library->plugin)
                                          : cli_format("not served: %s", library->why);
}
