/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz.h - what every fuzzer needs: a check that ends the run, and numbers out of the input's front.
 *
 * A fuzzer asserts what must hold for any input (a fixed point, a bound, nothing changed on failure), not
 * only that nothing crashes.
 */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(cond, ...)                                                                                     \
    do {                                                                                                     \
        if (!(cond)) {                                                                                       \
            fprintf(stderr, "%s:%d: %s does not hold: ", __FILE__, __LINE__, #cond);                         \
            fprintf(stderr, __VA_ARGS__);                                                                    \
            fputc('\n', stderr);                                                                             \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* The input as a text, exactly as long as it is, so that a read behind its end is seen. */
static inline struct base_str fuzz_text(const uint8_t *data, size_t size)
{
    return (struct base_str){(const char *)data, size};
}

struct fuzz_in { /* decisions are taken from the front, the rest is the payload */
    const uint8_t *p;
    size_t left;
};
/* 0 when the input is used up. */
static inline uint8_t fuzz_byte(struct fuzz_in *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->p++;
}
static inline uint32_t fuzz_u16(struct fuzz_in *in)
{
    uint32_t hi = fuzz_byte(in);

    return hi << 8 | fuzz_byte(in);
}
/* Is `what` somewhere in `z`? Marks that an input carries must not come out in errors. */
static inline int fuzz_has(struct base_str s, const char *what)
{
    return s.len >= strlen(what) && memmem(s.ptr, s.len, what, strlen(what)) != NULL;
}

#endif
