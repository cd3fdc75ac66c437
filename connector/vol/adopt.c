/* The option adopt: a plain file that a program opens for writing through the default driver gets a history first, as
 * by h5cow import, with its state as version 1. What the program then writes is version 2. */
#include "vol/vol.h"

#include "import/import.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The import's version is not the one that the program's options speak of. Made anew: options that were parsed are shared
 * and never changed. */
static cow_options *options_of_import(const cow_options *options)
{
    char *text = cow_options_text(options);
    cow_options *own = text == NULL ? NULL : cow_options_parse(text);

    if (text == NULL)
        cow_error(COW_MEMORY, "no memory for options");
    free(text);
    if (own == NULL)
        return NULL;
    free(own->name);
    free(own->message);
    own->name = NULL;
    own->adopt = false;
    own->commit = COW_COMMIT_CLOSE;
    if ((own->message = strdup("as it was when it got a history")) == NULL) {
        cow_error(COW_MEMORY, "no memory for options");
        cow_options_free(own);
        return NULL;
    }
    return own;
}

int cow_adopt(const char *name, hid_t fapl, const cow_options *options)
{
    cow_import import = {.from = name, .connector = H5I_INVALID_HID};
    cow_options *own = NULL;
    unsigned long number = 0;
    int status = -1;

    if (access(name, F_OK) != 0 || cow_has_history(name, fapl, &number) || number == 0)
        return 0;
    if (cow_home_find(number) != NULL)
        return cow_error(COW_USAGE,
                         "%s: it has no history and is open in this program already, so it cannot be given one now "
                         "(option adopt=yes): close it first",
                         name);
    if ((own = options_of_import(options)) == NULL)
        return -1;
    if (H5Pget_vol_id(fapl, &import.connector) < 0) {
        cow_error_native("%s: cannot be given a history", name);
        goto done;
    }
    import.info = own;
    if ((status = cow_import_file(&import)) < 0)
        cow_error(COW_IO,
                  "%s: it was to be given a history (option adopt=yes) and was not, and nothing was changed: %s", name,
                  import.why);
done:
    if (import.connector >= 0)
        H5VLclose(import.connector);
    cow_options_free(own);
    return status;
}
