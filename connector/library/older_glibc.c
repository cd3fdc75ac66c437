/* Only with the option `bundle`: two functions of glibc 2.35 and 2.36 that the C++ runtime of newer compilers calls, so that
 * what was built there runs with 2.34 as well. C++ is here for Snappy, one of Blosc's codecs. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

/* Finds the tables by which exceptions are passed up. Snappy throws where memory has ended, and only C is above it, which
 * cannot catch anything: the program ends, whether or not tables are found. */
int _dl_find_object(void *address, struct dl_find_object *found)
{
    (void)address, (void)found;
    return -1;
}

/* For std::random_device, which comes along and which nobody uses. */
uint32_t arc4random(void)
{
    uint32_t number;
    ssize_t n;

    while ((n = getrandom(&number, sizeof number, 0)) != sizeof number)
        if (n >= 0 || errno != EINTR)
            abort();
    return number;
}
