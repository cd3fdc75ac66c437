/* AddressSanitizer ends the program where memory cannot be had, which HDF5 and h5cow take for an answer: a damaged file asks for
 * more than there is. Meson sets ASAN_OPTIONS before the program starts; what is said here holds beside it. */
#ifndef TEST_SANITIZED_H
#define TEST_SANITIZED_H

#define SANITIZED "abort_on_error=1:detect_leaks=0:allocator_may_return_null=1"

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return SANITIZED;
}

#endif
