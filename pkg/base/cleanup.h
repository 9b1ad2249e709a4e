/* SPDX-License-Identifier: Apache-2.0
 *
 * base/cleanup.h - locals that release themselves.
 *
 *     base_cleanup(x_freep) struct x *x = NULL;
 *     ...
 *     return BASE_TAKE(x);
 */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#define base_cleanup(fn) __attribute__((cleanup(fn)))

/* BASE_DEFINE_CLEANUP(struct x *, x_free) defines x_freep(struct x **) for base_cleanup(). */
#define BASE_DEFINE_CLEANUP(type, fn)                                                                        \
    static inline void fn##p(type *p)                                                                        \
    {                                                                                                        \
        if (*p)                                                                                              \
            (void)fn(*p);                                                                                    \
    }

/* Gives the pointer away: yields it and leaves NULL behind. */
#define BASE_TAKE(p)                                                                                         \
    ({                                                                                                       \
        __typeof__(p) base_take_ = (p);                                                                      \
        (p) = NULL;                                                                                          \
        base_take_;                                                                                          \
    })

#define BASE_LEN(array) (sizeof(array) / sizeof((array)[0]))

#endif
