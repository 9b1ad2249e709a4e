/* SPDX-License-Identifier: Apache-2.0
 *
 * data_book.c - control's book of TUNs when there are several data threads. Each thread has a queue of its
 * own; to the caller a TUN is one thing: it is open when all have taken theirs, lost when one lost its own,
 * closed when all have closed. With one thread the thread's reports are the caller's, and the book has only
 * closes that it had no room for.
 */
#include "agent/data_int.h"

static struct agent_book_tun *find(struct agent_data *d, uint32_t tun_id)
{
    for (uint32_t i = 0; i < AGENT_TUNS_MAX; i++)
        if (d->book.at[i].used && d->book.at[i].id == tun_id)
            return &d->book.at[i];
    return NULL;
}

static struct agent_book_tun *add(struct agent_data *d, uint32_t tun_id)
{
    for (uint32_t i = 0; i < AGENT_TUNS_MAX; i++)
        if (!d->book.at[i].used) {
            d->book.at[i] = (struct agent_book_tun){.id = tun_id, .used = true};
            return &d->book.at[i];
        }
    return NULL;
}

/* One queue for each of the first `n` threads, or none. */
static int open_queues(struct agent_data *d, struct agent_order *o, struct tun **t, unsigned n,
                       const char *device, int mtu)
{
    struct base_err err = {0};
    unsigned i = 0;

    /* Here, not in the data threads: attaching waits for the kernel's network lock. */
    while (i < n && (o->code = tun_open(&t[i], device, mtu, &err)) == BASE_OK)
        i++;
    if (o->code == BASE_OK) {
        for (i = 0; d->tun_offload && i < n; i++)
            (void)tun_offload(t[i]);
        return BASE_OK;
    }
    (void)base_fmt(o->text, sizeof o->text, "%s", err.msg);
    for (unsigned k = 0; k < i; k++)
        t[k] = tun_free(t[k]);
    return o->code;
}

/* Whatever comes of it is reported by the first thread, as its answer to an order. */
static int answer(struct agent_data *d, struct agent_order *o, int code, const char *device, const char *why)
{
    o->code = code;
    if (why)
        (void)base_fmt(o->text, sizeof o->text, "TUN device '%s': %s", device, why);
    return agent_data_push(d->at[0], o);
}

int agent_book_open(struct agent_data *d, uint32_t tun_id, const char *device, int mtu)
{
    struct agent_order o = {.kind = AGENT_ORDER_TUN_OPEN, .tun_id = tun_id};
    struct tun *t[MASQUE_THREADS_MAX] = {NULL};
    struct agent_book_tun *b;
    int rc;

    if (d->n == 1) {
        (void)open_queues(d, &o, t, 1, device, mtu);
        o.tun = t[0];
        if ((rc = agent_data_push(d->at[0], &o)) < 0)
            tun_free(o.tun);
        return rc;
    }
    if (find(d, tun_id))
        return answer(d, &o, BASE_EEXIST, device, "its number is in use");
    if (open_queues(d, &o, t, d->n, device, mtu) < 0)
        return answer(d, &o, o.code, device, NULL);
    b = add(d, tun_id);
    for (unsigned i = 0; i < d->n; i++) {
        o.tun = t[i];
        if (b && b->code == BASE_OK && agent_data_push(d->at[i], &o) == BASE_OK) {
            b->have |= UINT64_C(1) << i;
            b->answers++;
            continue;
        }
        if (b && b->code == BASE_OK) {
            b->code = BASE_EFULL;
            (void)base_fmt(b->detail, sizeof b->detail, "TUN device '%s': a data thread takes no orders",
                           device);
        }
        tun_free(t[i]);
    }
    if (!b)
        return answer(d, &o, BASE_EFULL, device, "too many devices are open");
    if (b->answers > 0)
        return BASE_OK;
    b->used = false;
    return BASE_EFULL;
}

/* False: a thread had no room for the order. */
static bool ask(struct agent_data *d, struct agent_book_tun *b)
{
    for (unsigned i = 0; i < d->n; i++) {
        uint64_t bit = UINT64_C(1) << i;

        if ((b->have & ~b->asked & bit) &&
            agent_data_push(d->at[i],
                            &(struct agent_order){.kind = AGENT_ORDER_TUN_CLOSE, .tun_id = b->id}) == BASE_OK)
            b->asked |= bit;
    }
    return (b->have & ~b->asked) == 0;
}

int agent_book_close(struct agent_data *d, uint32_t tun_id)
{
    struct agent_book_tun *b = d->n == 1 ? NULL : find(d, tun_id);

    if (!b && agent_data_push(d->at[0], &(struct agent_order){.kind = AGENT_ORDER_TUN_CLOSE,
                                                              .tun_id = tun_id}) == BASE_OK)
        return BASE_OK;
    if (!b && (d->n > 1 || !(b = add(d, tun_id))))
        return BASE_EFULL;
    if (d->n == 1)
        b->have = 1;
    b->closing = true;
    return ask(d, b) ? BASE_OK : BASE_EFULL;
}

bool agent_book_retry(struct agent_data *d)
{
    bool waits = false;

    for (uint32_t i = 0; i < AGENT_TUNS_MAX; i++) {
        struct agent_book_tun *b = &d->book.at[i];

        if (!b->used || !(b->closing || b->lost || (b->code != BASE_OK && b->answers == 0)))
            continue;
        if (!ask(d, b))
            waits = true;
        else if (d->n == 1)
            b->used = false;
    }
    return waits;
}

/* The last thread has let go: is there something to say? */
static bool gone(struct agent_book_tun *b)
{
    if (b->have != 0 || b->answers > 0)
        return false;
    b->used = false;
    return b->closing && !b->lost && b->code == BASE_OK;
}

static bool opened(struct agent_book_tun *b, uint64_t bit, struct agent_report *r)
{
    if (b->answers == 0)
        return true; /* the first thread says why another one under this number was not opened */
    b->answers--;
    if (r->code != BASE_OK) {
        b->have &= ~bit;
        if (b->code == BASE_OK)
            (void)base_fmt(b->detail, sizeof b->detail, "%s", r->detail);
        b->code = b->code ? b->code : r->code;
    }
    if (b->answers > 0)
        return false;
    r->code = b->code;
    (void)base_fmt(r->detail, sizeof r->detail, "%s", b->detail);
    if (b->have == 0)
        b->used = false;
    return true;
}

bool agent_book_report(struct agent_data *d, unsigned thread, struct agent_report *r)
{
    struct agent_book_tun *b = d->n == 1 ? NULL : find(d, r->tun_id);
    uint64_t bit = UINT64_C(1) << thread;
    bool tell;

    if (!b)
        return true;
    if (r->kind == AGENT_REPORT_TUN)
        return opened(b, bit, r);
    b->have &= ~bit;
    if (r->kind == AGENT_REPORT_TUN_CLOSED)
        return gone(b);
    if (b->answers > 0) { /* lost before all have it: it was never open */
        if (b->code == BASE_OK)
            (void)base_fmt(b->detail, sizeof b->detail, "%s", r->detail);
        b->code = BASE_ECLOSED;
        return false;
    }
    tell = !b->lost && b->code == BASE_OK;
    b->lost = true;
    (void)gone(b);
    return tell;
}
