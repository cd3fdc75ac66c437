/* Where the connector's plugin is, and whether it loads. */
#ifndef CLI_PLUGIN_H
#define CLI_PLUGIN_H

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>

#define CLI_PLUGIN_FILE "libh5cow.so"

#ifndef H5_DEFAULT_PLUGINDIR
#define H5_DEFAULT_PLUGINDIR "/usr/local/hdf5/lib/plugin"
#endif

/* The first folder with the plugin: beside this program as it was built, where it was installed, the folders of
 * HDF5_PLUGIN_PATH, HDF5's own. free() it. NULL: nowhere; *LOOKED (free() it, may be asked for as NULL) lists them. */
char *cli_plugin_directory(char **looked);

/* The first folder in which programs that are started here find it: those of HDF5_PLUGIN_PATH, or else HDF5's own.
 * free() it. NULL: none. */
char *cli_plugin_for_programs(void);

/* Load the plugin into this process. *INFO: OPTIONS as HDF5 keeps them. Give both back with cli_plugin_unload. -1: said
 * on standard error. */
hid_t cli_plugin_load(const char *options, void **info);
void cli_plugin_unload(hid_t connector, void *info);

/* The file NAME as programs see it: read-only, at REVISION, or NULL: its newest state. Negative: said on standard error. */
hid_t cli_plugin_open(const char *name, const char *revision);
/* The same to be written, with OPTIONS. */
hid_t cli_plugin_write(const char *name, const char *options);
/* The empty file at PATH becomes one with a history. SHOWN: what people are told as its name. */
hid_t cli_plugin_make(const char *path, const char *shown, const char *options);

/* The file NAME, to be changed by a verb that has the option --wait: SECONDS. Negative: said on standard error. */
hid_t cli_plugin_change(const char *name, unsigned seconds);
/* The value TEXT of that option. 0, or CLI_FAILED: said on standard error. */
int cli_wait(const char *verb, const char *text, unsigned *seconds);
/* As cli_reason, for a user who can say --wait. */
const char *cli_wait_reason(char *text, size_t size);

/* A change of FILE, opened by one of the two above, has failed: what was done is dropped, and FILE closed. Why, and that nothing was
 * changed, is said on standard error. Always CLI_FAILED. */
int cli_plugin_failed(hid_t file);
/* The same, where a change before is committed: DONE says what has become of FILE. */
int cli_plugin_failed_after(hid_t file, const char *done);
/* FILE is closed. 0, or CLI_FAILED after saying why not. */
int cli_plugin_close(hid_t file, const char *name);
/* OPEN chooses by what it finds in a file, natively, and opens *FILE, as above; *VERSIONS: how many it has found. Again, until nobody
 * has made one meanwhile. NAME: of the file, which OPEN sets. 0, or an exit code: nothing is open. */
int cli_plugin_settle(int (*open)(void *context, const char *argument, hid_t *file, size_t *versions), void *context,
                      const char *argument, char **name, hid_t *file);
/* How many versions FILE has had: the number of the newest one; 0: none, or it cannot be asked. */
uint64_t cli_plugin_versions(hid_t file);

/* What HDF5_PLUGIN_PATH has to be so that the plugin in DIRECTORY and the ones found so far are found. free() it. */
char *cli_plugin_search_path(const char *directory);
/* The folders of HDF5_PLUGIN_PATH but DIRECTORY. free() it. NULL: there are none. */
char *cli_plugin_path_without(const char *directory);

/* Append KEY=VALUE (LENGTH bytes of KEY) to OPTIONS, a string for free(). What has a meaning in a list of options, or for
 * HDF5, which ends it at a line's end, is written as %XX. */
void cli_plugin_option(char **options, const char *key, size_t length, const char *value);

/* OPTIONS as the environment variable HDF5_VOL_CONNECTOR says them. free() it. */
char *cli_plugin_connector(const char *options);

/* Load the plugin from DIRECTORY in a child process with the environment that a program started by 'h5cow run' gets,
 * and let it parse OPTIONS. 0, or -1 and WHY. Makes no HDF5 call in this process. */
int cli_plugin_probe(const char *directory, const char *options, char *why, size_t size);

/* Its folder, after OPTIONS were read and it was tried with them (NULL: it is only looked for). free() it. NULL: said why, and AFTER. */
char *cli_plugin_tried(const char *options, const char *after);

#endif
