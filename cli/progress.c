/* Progress bars: see progress.h. */
#include "progress.h"

#include "journal/locks.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST    1000 /* milliseconds before anything is shown, unless H5COW_PROGRESS says how many */
#define INTERVAL 100
#define WIDTH    40

static struct {
    bool off, shown;
    double begun, last, first; /* 0: not begun */
    pid_t owner;               /* what it has started shows nothing */
} bar;

void cli_progress_off(void)
{
    bar.off = true;
}

bool cli_progress_is_seen(void)
{
    return !bar.off && isatty(fileno(stderr));
}

/* Is it time? */
static bool due(void)
{
    double now;

    if (bar.off)
        return false;
    now = cow_milliseconds();
    if (bar.begun == 0) {
        bar.begun = now;
        bar.owner = getpid();
        bar.off = !isatty(fileno(stderr));
        bar.first = getenv("H5COW_PROGRESS") == NULL ? FIRST : atof(getenv("H5COW_PROGRESS"));
    }
    if (bar.off || bar.owner != getpid() || now - bar.begun < bar.first || now - bar.last < INTERVAL)
        return false;
    bar.last = now;
    return true;
}

void cli_progress(const char *what, uint64_t done, uint64_t total)
{
    if (!due())
        return;
    if (total == 0)
        fprintf(stderr, "\r\033[K%s: %llu", what, (unsigned long long)done);
    else {
        double part = done < total ? (double)done / (double)total : 1;
        fprintf(stderr, "\r\033[K%s [", what);
        for (int i = 0; i < WIDTH; i++)
            fputc(i < (int)(part * WIDTH) ? '#' : ' ', stderr);
        fprintf(stderr, "] %5.1f %%", 100 * part);
    }
    bar.shown = true;
}

void cli_progress_end(void)
{
    if (bar.shown && bar.owner == getpid())
        fputs("\r\033[K", stderr);
    bar.shown = false;
}
