/* Labels of files that are closed. Contract: label.h. */
#include "journal/label.h"

#include "base/error.h"
#include "journal/inspect.h"
#include "journal/internal.h"

#include <errno.h>
#include <string.h>

static bool lost(const cow_disk *disk, const char *name, cow_label *label)
{
    cow_journal_identity now;

    return cow_label_get(disk, label) &&
           !(cow_journal_identify(name, &now) && memcmp(now.id, label->history, sizeof label->history) == 0);
}

static bool open_labelled(cow_disk *disk, const char *name)
{
    return cow_disk_labelled(name) && cow_disk_open(disk, &cow_disk_system, name, O_RDONLY | O_NONBLOCK) == 0;
}

void cow_label_tell(const char *name)
{
    const int number = errno;
    cow_error_held *held;
    cow_label label;
    cow_disk disk;

    held = cow_error_hold();
    if (open_labelled(&disk, name)) {
        if (lost(&disk, name, &label))
            cow_label_say_once(&disk, name, &label, "it has none now");
        cow_disk_close(&disk);
    }
    cow_error_put_back(held);
    errno = number;
}

bool cow_label_lost(const char *name, cow_label *label)
{
    bool found;
    cow_disk disk;

    if (!open_labelled(&disk, name))
        return false;
    found = lost(&disk, name, label);
    cow_disk_close(&disk);
    return found;
}

bool cow_label_of(const char *name, cow_label *label)
{
    bool found;
    cow_disk disk;

    if (!open_labelled(&disk, name))
        return false;
    found = cow_label_get(&disk, label);
    cow_disk_close(&disk);
    return found;
}

void cow_label_copy(const char *source, int file)
{
    cow_disk to = {.calls = &cow_disk_system, .fd = file};
    cow_label label;

    if (source == NULL)
        cow_disk_system.set_label(cow_disk_system.context, file, "", 0);
    else if (cow_label_of(source, &label))
        cow_label_put(&to, &label);
}
