/* A fuzz target takes bytes, does with them what the connector does with bytes of a file, and must come back: sanitizers
 * and its own asserts say when something is wrong. The interface is libFuzzer's, so a target can be linked with it
 * (clang -fsanitize=fuzzer,address); fuzz/main.c is a driver that needs no clang. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of the target: inputs that make sense, to start from: N = 0, 1 ... Returns the size, 0: there are no more. */
size_t fuzz_first_input(unsigned n, uint8_t *to, size_t room);

#endif
