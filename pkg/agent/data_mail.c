/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/data_mail.h"

#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"

enum { MIN_BYTES = 1 << 16, MAX_BYTES = 1 << 30, ALIGN = 16 };
#define FILLER UINT32_MAX /* stands where a letter's kind would: the rest up to the end is empty */

/* `head` and `tail` only grow; the place is the number modulo the size. Sequentially consistent, as in
 * loop/ring.c: publishing one's own number and then reading the other's must not change places, or a wake-up
 * is lost. */
struct agent_mail {
    _Alignas(64) atomic_size_t head; /* the reader has read up to here */
    _Alignas(64) atomic_size_t tail; /* posted up to here */
    _Alignas(64) size_t put;         /* writer: put up to here */
    unsigned n_put;                  /* since the last post */
    _Alignas(64) size_t at, end;     /* reader: the next letter; what was posted at agent_mail_begin */
    size_t mask;
    uint8_t *bytes;
    void *block; /* the allocation that this struct lies in */
};

static size_t letter_size(uint32_t len)
{
    return (sizeof(struct agent_letter) + len + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

struct agent_mail *agent_mail_new(size_t bytes)
{
    struct agent_mail *m;
    size_t size = MIN_BYTES;
    void *block;

    if (bytes > MAX_BYTES)
        return NULL;
    while (size < bytes)
        size *= 2;
    block = base_calloc(1, sizeof *m + 64);
    if (!block)
        return NULL;
    m = (struct agent_mail *)(((uintptr_t)block + 63) & ~(uintptr_t)63);
    m->block = block;
    m->mask = size - 1;
    m->bytes = base_calloc(1, size);
    return m->bytes ? m : agent_mail_free(m);
}

struct agent_mail *agent_mail_free(struct agent_mail *m)
{
    if (!m)
        return NULL;
    base_free(m->bytes);
    return base_free(m->block);
}

bool agent_mail_put(struct agent_mail *m, const struct agent_letter *l, const uint8_t *data)
{
    size_t need = letter_size(l->len), room = m->mask + 1, left = room - (m->put & m->mask),
           skip = left < need ? left : 0, most = l->kind == AGENT_LETTER_DATAGRAM ? room / 2 : room;
    struct agent_letter head = *l;
    uint8_t *p;

    if (l->len > room / 2 - sizeof head ||
        m->put + skip + need - atomic_load_explicit(&m->head, memory_order_acquire) > most)
        return false;
    if (skip > 0) { /* at least ALIGN bytes: everything is a multiple of it */
        memcpy(m->bytes + (m->put & m->mask), &(uint32_t){FILLER}, sizeof(uint32_t));
        m->put += skip;
    }
    p = m->bytes + (m->put & m->mask);
    memcpy(p, &head, sizeof head);
    memcpy(p + sizeof head, data, l->len);
    m->put += need;
    m->n_put++;
    return true;
}

bool agent_mail_post(struct agent_mail *m)
{
    size_t was = atomic_load_explicit(&m->tail, memory_order_relaxed);

    if (m->put == was)
        return false;
    m->n_put = 0;
    atomic_store(&m->tail, m->put);
    return atomic_load(&m->head) == was;
}

unsigned agent_mail_discard(struct agent_mail *m)
{
    unsigned n = m->n_put;

    m->put = atomic_load_explicit(&m->tail, memory_order_relaxed);
    m->n_put = 0;
    return n;
}

void agent_mail_begin(struct agent_mail *m)
{
    m->at = atomic_load_explicit(&m->head, memory_order_relaxed);
    m->end = atomic_load(&m->tail);
}

struct agent_letter *agent_mail_take(struct agent_mail *m, uint8_t **data)
{
    struct agent_letter *l;
    uint32_t kind;

    if (m->at == m->end)
        return NULL;
    memcpy(&kind, m->bytes + (m->at & m->mask), sizeof kind);
    if (kind == FILLER)
        m->at += m->mask + 1 - (m->at & m->mask);
    if (m->at == m->end)
        return NULL;
    l = (struct agent_letter *)(void *)(m->bytes + (m->at & m->mask));
    *data = (uint8_t *)l + sizeof *l;
    m->at += letter_size(l->len);
    return l;
}

bool agent_mail_end(struct agent_mail *m)
{
    atomic_store(&m->head, m->at);
    return atomic_load(&m->tail) != m->at;
}
