/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

static _Thread_local unsigned long base_mem_left_, base_mem_seen_;

static int fail_now(void)
{
    base_mem_seen_++;
    if (base_mem_left_ == 0)
        return 0;
    if (base_mem_left_ == 1)
        return 1;
    base_mem_left_--;
    return 0;
}

void base_mem_fail_after(unsigned long n)
{
    base_mem_left_ = n;
    base_mem_seen_ = 0;
}

unsigned long base_mem_count(void)
{
    return base_mem_seen_;
}

void *base_calloc(size_t n, size_t size)
{
    return fail_now() ? NULL : calloc(n ? n : 1, size ? size : 1);
}

void *base_realloc(void *p, size_t size)
{
    return fail_now() ? NULL : realloc(p, size ? size : 1);
}

void *base_free(void *p)
{
    free(p);
    return NULL;
}

char *base_strdup(const char *z)
{
    size_t n = strlen(z) + 1;
    char *p = base_calloc(1, n);

    return p ? memcpy(p, z, n) : NULL;
}

#define ARENA_BLOCK 4064
struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};
struct base_arena {
    struct arena_block *head;
    size_t used, max;
};

struct base_arena *base_arena_new(size_t max)
{
    struct base_arena *a = base_calloc(1, sizeof *a);

    if (a)
        a->max = max;
    return a;
}

struct base_arena *base_arena_free(struct base_arena *a)
{
    if (!a)
        return NULL;
    for (struct arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        base_free(b);
    }
    return base_free(a);
}

void *base_arena_alloc(struct base_arena *a, size_t size)
{
    size_t need = (size + 15) & ~(size_t)15;
    struct arena_block *b = a->head;
    void *p;

    if (need < size || need > a->max - a->used)
        return NULL;
    if (!b || b->size - b->used < need) {
        size_t room = need > ARENA_BLOCK ? need : ARENA_BLOCK;

        b = base_calloc(1, sizeof *b + room);
        if (!b)
            return NULL;
        b->size = room;
        b->next = a->head;
        a->head = b;
    }
    p = b->bytes + b->used;
    b->used += need;
    a->used += need;
    return p;
}

char *base_arena_strdup(struct base_arena *a, struct base_str s)
{
    char *p = base_arena_alloc(a, s.len + 1);

    if (p && s.len)
        memcpy(p, s.ptr, s.len);
    return p;
}

size_t base_arena_used(const struct base_arena *a)
{
    return a->used;
}

void base_buf_init(struct base_buf *b, size_t max)
{
    *b = (struct base_buf){.max = max};
}

void base_buf_fini(struct base_buf *b)
{
    base_free(b->data);
    *b = (struct base_buf){.max = b->max};
}

static int reserve(struct base_buf *b, size_t n)
{
    size_t need = b->len + n + 1, cap = b->cap ? b->cap : 256;
    char *p;

    if (n > b->max - b->len)
        return b->failed = BASE_EFULL;
    if (need <= b->cap)
        return BASE_OK;
    while (cap < need)
        cap *= 2;
    p = base_realloc(b->data, cap);
    if (!p)
        return b->failed = BASE_ENOMEM;
    b->data = p;
    b->cap = cap;
    return BASE_OK;
}

int base_buf_reserve(struct base_buf *b, size_t n)
{
    return reserve(b, n);
}

int base_buf_add(struct base_buf *b, const void *p, size_t n)
{
    int rc = reserve(b, n);

    if (rc)
        return rc;
    if (n)
        memcpy(b->data + b->len, p, n);
    b->len += n;
    b->data[b->len] = '\0';
    return BASE_OK;
}

int base_buf_addz(struct base_buf *b, const char *z)
{
    return base_buf_add(b, z, strlen(z));
}

int base_buf_addf(struct base_buf *b, const char *fmt, ...)
{
    va_list ap;
    int n, rc;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return b->failed = BASE_EINVAL;
    rc = reserve(b, (size_t)n);
    if (rc)
        return rc;
    va_start(ap, fmt);
    (void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return BASE_OK;
}

void base_buf_consume(struct base_buf *b, size_t n)
{
    if (n >= b->len) {
        b->len = 0;
    } else {
        memmove(b->data, b->data + n, b->len - n);
        b->len -= n;
    }
    if (b->data)
        b->data[b->len] = '\0';
}

void base_buf_reset(struct base_buf *b)
{
    b->failed = 0;
    base_buf_consume(b, b->len);
}
