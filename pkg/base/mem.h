/* SPDX-License-Identifier: Apache-2.0
 *
 * base/mem.h - the only allocator, and an arena on top of it.
 *
 * Every allocation of every package goes through base_calloc/base_realloc, so that a test can fail the i-th
 * one (BASE_FAILMALLOC_RUN). The arena frees everything at once; objects in it are never freed alone.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

#include "base/cleanup.h"
#include "base/str.h"

/* Zeroed memory, or NULL. Released by base_free. */
void *base_calloc(size_t n, size_t size);
void *base_realloc(void *p, size_t size);
char *base_strdup(const char *z);
/* NULL ok; returns NULL. */
void *base_free(void *p);
BASE_DEFINE_CLEANUP(char *, base_free)

/* Test hook: allocation number `n` from now (1 = the next) and all later ones fail; 0 = off. Per thread. */
void base_mem_fail_after(unsigned long n);
/* Number of allocations of this thread since the last base_mem_fail_after. */
unsigned long base_mem_count(void);

struct base_arena;
/* `max` bounds the bytes that the arena may hold in all. NULL when there is no memory. */
struct base_arena *base_arena_new(size_t max);
struct base_arena *base_arena_free(struct base_arena *a);
BASE_DEFINE_CLEANUP(struct base_arena *, base_arena_free)
/* Zeroed and aligned for any type; NULL when the bound or the memory is used up. Lives as long as the arena. */
void *base_arena_alloc(struct base_arena *a, size_t size);
char *base_arena_strdup(struct base_arena *a, struct base_str s);
size_t base_arena_used(const struct base_arena *a);

/* A byte buffer with a fixed maximum (contract: growth beyond it is an error, never a cut). */
struct base_buf {
    char *data; /* always NUL-terminated once something was added */
    size_t len, cap, max;
    int failed; /* sticky: BASE_ENOMEM or BASE_EFULL after a failed add */
};
void base_buf_init(struct base_buf *b, size_t max);
void base_buf_fini(struct base_buf *b);
/* BASE_OK, BASE_EFULL, BASE_ENOMEM; after a failure the content is as before it. */
int base_buf_add(struct base_buf *b, const void *p, size_t n);
int base_buf_addz(struct base_buf *b, const char *z);
int base_buf_addf(struct base_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Makes room for n more bytes now, so that adding them moves nothing. BASE_OK, BASE_EFULL, BASE_ENOMEM. */
int base_buf_reserve(struct base_buf *b, size_t n);
/* Drops the first n bytes. */
void base_buf_consume(struct base_buf *b, size_t n);
void base_buf_reset(struct base_buf *b);

#endif
