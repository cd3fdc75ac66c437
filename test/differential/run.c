/* The run itself: see run.h. */
#include "run.h"

#include <execinfo.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct run w;

const char *const plant_names[] = {"none",   "element", "attribute", "link",
                                   "extent", "version", "reference", "hard link"};

/* ---- random numbers: xoshiro256**, seeded by splitmix64 ---- */

uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t next(void)
{
    uint64_t *s = w.random, result = ((s[1] * 5) << 7 | (s[1] * 5) >> 57) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = s[3] << 45 | s[3] >> 19;
    return result;
}

size_t below(size_t n)
{
    return n ? (size_t)(next() % n) : 0;
}

bool chance(unsigned percent)
{
    return below(100) < percent;
}

/* ---- saying what happens, and that it differs ---- */

void note(const char *format, ...)
{
    va_list args;
    char *line = w.history[w.operations++ % HISTORY];
    int length = snprintf(line, sizeof w.history[0], "%6ld  ", w.step);
    va_start(args, format);
    vsnprintf(line + length, sizeof w.history[0] - (size_t)length, format, args);
    va_end(args);
}

/* Goes on with the last line of the history. */
void also(const char *format, ...)
{
    va_list args;
    char *line = w.history[(w.operations + HISTORY - 1) % HISTORY];
    size_t length = strlen(line);
    va_start(args, format);
    vsnprintf(line + length, sizeof w.history[0] - length, format, args);
    va_end(args);
}

static void tell_history(void)
{
    fprintf(stderr, "\nthe last operations:\n");
    long told = w.told < HISTORY ? w.told : HISTORY;
    for (long i = w.operations > told ? w.operations - told : 0; i < w.operations; i++)
        fprintf(stderr, "%s\n", w.history[i % HISTORY]);
    fprintf(stderr,
            "the file is open with: %s\nfiles: %s (native), %s (under test)\nagain: --seed %" PRIu64 " --%s %ld",
            *w.opened ? w.opened : "nothing set", w.name[0], w.name[1], w.seed, w.wanted ? "copies" : "steps",
            w.wanted ? w.wanted : w.steps);
    fprintf(stderr, w.without ? " --without %s\n" : "\n", w.without);
}

_Noreturn void differ(hid_t stack, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (w.planted) {
        printf("planted %s at step %ld, found at step %ld: ", plant_names[w.plant], w.planted, w.step);
        vprintf(format, args);
        printf("\nPASS\n");
        va_end(args);
        run_end();
        exit(0);
    }
    if (stack >= 0)
        H5Eprint2(stack, stderr);
    fprintf(stderr, "DIFFERENCE at step %ld, seed %" PRIu64 ", file %zu\n  ", w.step, w.seed, w.files);
    vfprintf(stderr, format, args);
    va_end(args);
    tell_history();
    fflush(stdout);
    hid_t file[16]; /* they are kept as they are, without what closing would change */
    for (ssize_t n = H5Fget_obj_ids(H5F_OBJ_ALL, H5F_OBJ_FILE, sizeof file / sizeof file[0], file); n-- > 0;)
        H5Fflush(file[n], H5F_SCOPE_GLOBAL);
    _exit(1);
}

_Noreturn void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function);
/* The C library's, which says what it would have said. Of the one that D44 leaves out the run ends well. */
_Noreturn void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function)
{
    fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, assertion);
    if (strcmp(function, "H5F__accum_free") == 0 && strstr(assertion, "H5FD_MEM_GHEAP") != NULL) {
        printf("left out (D44): the rest of this run\nPASS\n");
        fflush(NULL);
        _exit(0);
    }
    abort();
}

/* A crash, or the end of somebody's patience: say where. */
void on_signal(int number)
{
    fprintf(stderr, "SIGNAL %d (%s) at step %ld, seed %" PRIu64 ", file %zu", number, strsignal(number), w.step, w.seed,
            w.files);
    void *frames[30];
    fprintf(stderr, "\n");
    backtrace_symbols_fd(frames, backtrace(frames, sizeof frames / sizeof *frames), STDERR_FILENO);
    tell_history();
    _exit(1);
}

/* The answers of both sides to one call. Both fail, or both succeed with the same number. */
bool answers(const char *what, const long long r[2])
{
    if (r[0] < 0 && r[1] < 0) {
        also(" [%s refused]", what);
        return false;
    }
    if (r[0] != r[1])
        differ(r[1] < 0   ? H5E_DEFAULT
               : r[0] < 0 ? w.native_stack
                          : NO_STACK,
               "%s: native %lld, under test %lld", what, r[0], r[1]);
    return true;
}

/* Why the native side refused; the other side's call would clear it. */
void keep_stack(long long answer)
{
    if (answer >= 0)
        return;
    hid_t before = w.native_stack;
    w.native_stack = H5Eget_current_stack(); /* first: closing a stack clears the current one */
    if (before > 0)
        H5Eclose_stack(before);
}

void close_ids(pair p)
{
    long long r[2] = {0, 0};
    for (int s = 0; s < 2; s++)
        if (p.id[s] >= 0 && (r[s] = H5Idec_ref(p.id[s])) > 0)
            r[s] = 0;
    if (r[0] < 0 || r[1] < 0) { /* HDF5 may crash after a close that failed */
        if (r[0] < 0)
            H5Eprint2(H5E_DEFAULT, stderr);
        differ(H5E_DEFAULT, "closing an object: native %lld, under test %lld", r[0], r[1]);
    }
}

void touch(const char *path)
{
    if (w.touches < sizeof w.touched / sizeof w.touched[0])
        snprintf(w.touched[w.touches++], PATH_SIZE, "%s", path);
}
