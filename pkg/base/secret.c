/* SPDX-License-Identifier: Apache-2.0 */
#include "base/secret.h"

#include "base/mem.h"

struct base_secret {
    size_t len;
    char bytes[];
};

void base_wipe(void *p, size_t n)
{
    /* the compiler does not know what this points to, so it cannot leave the call out */
    static void *(*volatile const overwrite)(void *, int, size_t) = memset;

    if (n > 0)
        overwrite(p, 0, n);
}

struct base_secret *base_secret_new(struct base_str s)
{
    struct base_secret *x = base_calloc(1, sizeof *x + s.len + 1);

    if (!x)
        return NULL;
    x->len = s.len;
    if (s.len > 0)
        memcpy(x->bytes, s.ptr, s.len);
    return x;
}

struct base_secret *base_secret_free(struct base_secret *s)
{
    if (s)
        base_wipe(s, sizeof *s + s->len + 1);
    return base_free(s);
}

struct base_str base_secret_text(const struct base_secret *s)
{
    return (struct base_str){s->bytes, s->len};
}
