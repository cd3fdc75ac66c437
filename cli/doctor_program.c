/* h5cow doctor --program: which libhdf5 the programs of a command have loaded, and who serves each. */
#include "doctor.h"

#include "child.h"
#include "heard.h"
#include "libraries.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_object *text_or_null(const char *text)
{
    return text == NULL ? NULL : cli_json_text(text);
}

static json_object *library_json(const cli_library *l)
{
    static const char *const services[] = {
        [CLI_SERVED] = "served", [CLI_UNUSED] = "not used", [CLI_NOT_CHOSEN] = "not chosen", [CLI_REFUSED] = "refused"};
    json_object *library = json_object_new_object();
    const char *instance = l->service != CLI_SERVED             ? NULL
                           : l->instance == COW_INSTANCE_MEMORY ? "copy in memory"
                           : l->instance == COW_INSTANCE_FOLDER ? "copy in a temporary folder"
                                                                : "file";

    json_object_object_add(library, "program", text_or_null(l->program));
    json_object_object_add(library, "processes", json_object_new_int64((int64_t)l->processes));
    json_object_object_add(library, "file", cli_json_text(l->file));
    json_object_object_add(library, "version", cli_json_text(l->version));
    json_object_object_add(library, "service", cli_json_text(services[l->service]));
    json_object_object_add(library, "plugin", text_or_null(l->plugin));
    json_object_object_add(library, "instance", text_or_null(instance));
    json_object_object_add(library, "why_not", l->service == CLI_SERVED ? NULL : cli_json_text(l->why));
    return library;
}

static void say_library(doctor *d, const cli_library *l, const char *key)
{
    char *service = cli_library_service(l);
    char *processes = l->processes == 1 ? cli_strdup("") : cli_format(" (%zu processes)", l->processes);

    doctor_say(d, key, "%s, %s%s%s%s", l->version, l->file, l->program == NULL ? "" : ", in ",
               l->program == NULL ? "" : l->program, processes);
    doctor_say(d, "", "    %s", service);
    if (l->service == CLI_REFUSED || l->service == CLI_NOT_CHOSEN)
        doctor_wrong(d, "no version is made with the libhdf5 %s of %s, %s: %s%s", l->version,
                     l->program == NULL ? "a program" : l->program, l->file, l->why,
                     l->service == CLI_NOT_CHOSEN ? ": start it with 'h5cow run'" : "");
    free(service);
    free(processes);
}

static void say_all(doctor *d, const cli_libraries *libraries, const cli_watch *watch, const cli_heard *heard,
                    const char *command)
{
    json_object *list = json_object_new_array();
    size_t wrong = json_object_array_length(d->problems);

    if (watch->blind)
        doctor_say(d, "", "There is no /proc: only what has asked for h5cow is known.");
    for (size_t i = 0; i < libraries->count; i++) {
        say_library(d, &libraries->library[i], i == 0 ? "it loaded" : "");
        json_object_array_add(list, library_json(&libraries->library[i]));
    }
    if (libraries->count == 0)
        doctor_say(d, "it loaded", "no libhdf5 that could be found");
    json_object_object_add(json_object_object_get(d->whole, "program"), "libraries", list);
    if (!heard->opened && json_object_array_length(d->problems) == wrong)
        doctor_wrong(d, "'%s' has opened no HDF5 file through h5cow", command);
}

void doctor_program(doctor *d, char **command)
{
    json_object *program = json_object_new_object(), *words = json_object_new_array();
    char *witness = cli_heard_begin();
    cli_watch *watch = cli_watch_new();
    cli_libraries libraries;
    cli_heard heard = {0};
    bool ran = false;
    int code = -1;

    if (witness != NULL) {
        code = cli_child_run(command, STDERR_FILENO, watch, &ran);
        cli_heard_end(witness, &heard);
    }
    for (char **word = command; *word != NULL; word++)
        json_object_array_add(words, cli_json_text(*word));
    json_object_object_add(d->whole, "program", program);
    json_object_object_add(program, "command", words);
    json_object_object_add(program, "ran", json_object_new_boolean(ran));
    if (ran) {
        doctor_say(d, "program", "'%s' ended with code %d", command[0], code);
        json_object_object_add(program, "exit_code", json_object_new_int(code));
        json_object_object_add(program, "looked_at", json_object_new_boolean(!watch->blind));
        json_object_object_add(program, "opened_files", json_object_new_boolean(heard.opened));
        json_object_object_add(program, "made_versions", json_object_new_boolean(heard.version));
        libraries = cli_libraries_of(watch, &heard, true);
        say_all(d, &libraries, watch, &heard, command[0]);
        cli_libraries_free(&libraries);
        cli_heard_pass_up(&heard);
    } else
        doctor_wrong(d, "'%s' was not run", command[0]);
    cli_heard_free(&heard);
    cli_watch_free(watch);
}
