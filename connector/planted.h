/* Bugs that are planted on purpose, to prove that the tests catch them. They exist only in builds with the meson option
 * `planted`, where the environment variable H5COW_PLANTED names the one that is active; in every other build
 * COW_PLANTED(...) is the constant false. What each does is said where it stands; which test catches it: test/planted.py. */
#ifndef COW_PLANTED_H
#define COW_PLANTED_H

#include <stdbool.h>

#ifdef COW_WITH_PLANTED_BUGS

#include <stdlib.h>
#include <string.h>

static inline bool cow_planted(const char *name)
{
    const char *chosen = getenv("H5COW_PLANTED");

    return chosen != NULL && strcmp(chosen, name) == 0;
}

#define COW_PLANTED(NAME) cow_planted(#NAME)

#else

#define COW_PLANTED(NAME) false

#endif
#endif
