/* Runs a fuzz target: first all inputs of a corpus; with --seconds it goes on with random changes of them, and keeps
 * those that reach code which none reached before, as libFuzzer does.
 *
 * usage: fuzz_TARGET [--seconds N] [--keep FOLDER] [FILE | FOLDER]...
 *
 * The code under test is compiled with -fsanitize-coverage=trace-pc, which gcc has as well. An input that ends the program
 * is written to fuzz-finding.
 */
#include "fuzz.h"

#include "../waiting.h"
#include "../random.h"
#include "../results.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define INPUT_MAX 8192
#define INPUTS    4096
#define MAP_SIZE  8192

void __sanitizer_cov_trace_pc(void);

static uint8_t map[MAP_SIZE], reached[MAP_SIZE];
static uint8_t current[INPUT_MAX];
static size_t current_size;
static struct {
    uint8_t *bytes;
    size_t size;
} input[INPUTS];
static size_t inputs;
static uint64_t random_state;

void __sanitizer_cov_trace_pc(void)
{
    uintptr_t place = (uintptr_t)__builtin_return_address(0);

    map[(place ^ place >> 16) % MAP_SIZE] = 1;
}

static void finding(int number)
{
    int out = open("fuzz-finding", O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (out >= 0 && write(out, current, current_size) == (ssize_t)current_size)
        close(out);
    signal(number, SIG_DFL);
    raise(number);
}

static uint64_t any(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 11) % below;
}

/* True: it reached something new. */
static bool try_input(const uint8_t *bytes, size_t size)
{
    bool fresh = false;
    uint8_t *exact = malloc(size + (size == 0)); /* so that ASan sees the end */

    memcpy(current, bytes, size);
    current_size = size;
    memcpy(exact, bytes, size);
    memset(map, 0, sizeof map);
    limit_computing(30);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    for (size_t i = 0; i < MAP_SIZE; i++)
        if (map[i] && !reached[i])
            reached[i] = 1, fresh = true;
    return fresh;
}

static void add_input(const uint8_t *bytes, size_t size)
{
    if (inputs == INPUTS)
        return;
    input[inputs].bytes = malloc(size + 1);
    memcpy(input[inputs].bytes, bytes, size);
    input[inputs++].size = size;
}

static unsigned long run_file(const char *name)
{
    uint8_t bytes[INPUT_MAX];
    int in = open(name, O_RDONLY);
    ssize_t size = in < 0 ? -1 : read(in, bytes, sizeof bytes);

    if (size < 0) {
        perror(name);
        exit(2);
    }
    close(in);
    try_input(bytes, (size_t)size);
    add_input(bytes, (size_t)size);
    return 1;
}

static unsigned long run_path(const char *path)
{
    DIR *folder = opendir(path);
    unsigned long count = 0;
    struct dirent *entry;
    char name[4096];

    if (folder == NULL)
        return run_file(path);
    while ((entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.') {
            snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
            count += run_file(name);
        }
    closedir(folder);
    return count;
}

static size_t mutate(uint8_t *bytes, size_t size)
{
    static const uint64_t numbers[] = {0,   1,    2,          255,        256,       511,
                                       512, 4096, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX};

    for (uint64_t n = 1 + any(4); n > 0; n--) {
        size_t at = size == 0 ? 0 : (size_t)any(size), length = 1 + (size_t)any(16);
        uint64_t number = numbers[any(sizeof numbers / sizeof *numbers)];
        size_t other;

        switch (any(7)) {
        case 0:
            if (size > 0)
                bytes[at] ^= (uint8_t)(1u << any(8));
            break;
        case 1:
            if (size > 0)
                bytes[at] = (uint8_t)any(256);
            break;
        case 2:
            for (size_t i = 0, width = any(2) ? 8 : 4; i < width && at + i < size; i++)
                bytes[at + i] = (uint8_t)(number >> 8 * i);
            break;
        case 3: /* something in between */
            if (size + length <= INPUT_MAX) {
                memmove(bytes + at + length, bytes + at, size - at);
                for (size_t i = 0; i < length; i++)
                    bytes[at + i] = (uint8_t)any(256);
                size += length;
            }
            break;
        case 4: /* something left out */
            if (length < size - at) {
                memmove(bytes + at, bytes + at + length, size - at - length);
                size -= length;
            }
            break;
        case 5: /* a part of another input */
            other = (size_t)any(inputs);
            for (size_t i = 0; i < 4 * length && at + i < size && i < input[other].size; i++)
                bytes[at + i] = input[other].bytes[i];
            break;
        case 6: /* a small step */
            if (size > 0)
                bytes[at] = (uint8_t)(bytes[at] + any(9) - 4);
            break;
        }
    }
    return size;
}

static void keep(const char *folder, const uint8_t *bytes, size_t size)
{
    char name[4096];
    uint64_t sum = size;
    FILE *out;

    for (size_t i = 0; i < size; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    snprintf(name, sizeof name, "%s/%016llx", folder, (unsigned long long)sum);
    if ((out = fopen(name, "w")) == NULL || fwrite(bytes, 1, size, out) != size || fclose(out) != 0) {
        perror(name);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    const char *folder = NULL;
    double seconds = 0;
    unsigned long runs = 0, fresh = 0;
    size_t places = 0;
    uint8_t bytes[INPUT_MAX];
    struct timespec start, now;

    setenv("ASAN_OPTIONS", "abort_on_error=1", 0);
    signal(SIGABRT, finding);
    signal(SIGALRM, finding);
    signal(SIGPROF, finding);
    random_state = test_random(0);
    for (size_t n = 0, size; (size = fuzz_first_input((unsigned)n, bytes, sizeof bytes)) > 0; n++) {
        try_input(bytes, size);
        add_input(bytes, size);
    }
    for (int i = 1; i < argc; i++)
        if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0)
            seconds = strtod(argv[++i], NULL);
        else if (i + 1 < argc && strcmp(argv[i], "--keep") == 0)
            folder = argv[++i];
        else
            runs += run_path(argv[i]);
    printf("%lu kept inputs", runs);
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (now = start; (double)(now.tv_sec - start.tv_sec) < seconds; clock_gettime(CLOCK_MONOTONIC, &now))
        for (int i = 0; i < 64; i++, runs++) {
            size_t which = (size_t)any(inputs), size = input[which].size;
            memcpy(bytes, input[which].bytes, size);
            size = mutate(bytes, size);
            if (!try_input(bytes, size))
                continue;
            fresh++;
            add_input(bytes, size);
            if (folder != NULL)
                keep(folder, bytes, size);
        }
    for (size_t i = 0; i < MAP_SIZE; i++)
        places += reached[i];
    if (seconds > 0) {
        FILE *out = results_open();
        const char *target = strrchr(argv[0], '/') == NULL ? argv[0] : strrchr(argv[0], '/') + 1;
        if (out != NULL) {
            fprintf(out,
                    "{\"item\": 5, \"what\": \"fuzzing (%s), guided by coverage, %.0f s\", \"result\": \"%lu runs, no "
                    "finding\", \"command\": \"test/%s --seconds N test/fuzz/corpus/%s\"}\n",
                    target, seconds, runs, target, target + 5);
            fclose(out);
        }
    }
    printf(", %lu runs, %lu new inputs, %zu places in the code reached\n", runs, fresh, places);
    for (size_t i = 0; i < inputs; i++)
        free(input[i].bytes);
    return 0;
}
