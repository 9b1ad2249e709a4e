/* SPDX-License-Identifier: Apache-2.0
 *
 * data_carry.c - what comes to one data thread and belongs to another.
 *
 * The kernel spreads a TUN's packets over the threads' queues by their flows: a reply comes to the queue that
 * its flow was last written to, which is the right one; others come anywhere. Whoever reads a packet for
 * another thread's prefix puts it into that thread's mail. Datagrams on the wrong socket go the same way
 * (masque/threads.h). Letters are posted once an iteration, with one wake-up for a thread that has nothing
 * else to do; full mail drops, nobody waits.
 *
 * A thread that was stopped carries nothing of what it had: it looks at its clock when it puts a packet in,
 * and again before it posts; what it posts all the same, since it was stopped right then, is too old for the
 * receiver, who looks at the letter's time. The receiver asks the fence, as for its own.
 */
#include "agent/data_int.h"

#include <errno.h>
#include <unistd.h>

enum { AT_DST = 24 };

static struct agent_mail *mail(const struct agent_thread *d, unsigned from, unsigned to)
{
    return d->all->mail[(size_t)from * d->count + to];
}

static void wake(const struct agent_thread *d, unsigned to)
{
    static const uint64_t one = 1;
    ssize_t n;

    do
        n = write(d->all->at[to]->mail_fd, &one, sizeof one);
    while (n < 0 && errno == EINTR);
}

static void put(struct agent_thread *d, unsigned to, const struct agent_letter *l, const uint8_t *data)
{
    if (!agent_mail_put(mail(d, d->index, to), l, data)) {
        d->n.drop_carried++;
        return;
    }
    d->mail_put |= UINT64_C(1) << to;
    d->n.carried++;
}

void agent_data_carry(struct agent_thread *d, uint32_t tun, const uint8_t *pkt, size_t len)
{
    unsigned to = d->count > 1 ? agent_shared_owner(d->all->shared, pkt + AT_DST) : AGENT_NOBODY;
    base_time now;

    if (to >= d->count || to == d->index) {
        d->n.drop_no_session++;
        return;
    }
    now = agent_data_clock(d); /* after the look at whose it is: see agent_data_carried */
    if (agent_data_held(d)) {
        d->n.drop_fence++;
        return;
    }
    put(d, to,
        &(struct agent_letter){
            .kind = AGENT_LETTER_PACKET, .len = (uint32_t)len, .tun_id = d->tuns[tun].id, .at = now},
        pkt);
}

void agent_data_on_stray(void *arg, unsigned thread, const struct masque_udp_in *in)
{
    struct agent_thread *d = arg;

    put(d, thread,
        &(struct agent_letter){.kind = AGENT_LETTER_DATAGRAM,
                               .len = (uint32_t)in->len,
                               .at = agent_data_clock(d),
                               .remote = in->remote,
                               .local = in->local,
                               .ecn = in->ecn},
        in->data);
}

static void take_from(struct agent_thread *d, unsigned from)
{
    struct agent_mail *m = mail(d, from, d->index);
    struct agent_letter *l;
    uint8_t *data;

    agent_mail_begin(m);
    while ((l = agent_mail_take(m, &data))) {
        struct agent_letter is = *l; /* its bytes are the room before the packet */

        if (d->beat - is.at > d->gap) /* whoever wrote it was stopped before it was posted */
            d->n.drop_carried++;
        else if (is.kind == AGENT_LETTER_PACKET)
            agent_data_carried(d, &is, data);
        else
            masque_endpoint_take(
                d->ends, d->beat,
                &(struct masque_udp_in){
                    .data = data, .len = is.len, .remote = is.remote, .local = is.local, .ecn = is.ecn});
    }
    if (agent_mail_end(m))
        d->mail_left = true;
}

/* Reads what the queues hold, when another thread has asked for it. */
static void sweep(struct agent_thread *d)
{
    unsigned asked = atomic_load(&d->sweeps_asked);

    if (asked == atomic_load_explicit(&d->sweeps_done, memory_order_relaxed))
        return;
    for (uint32_t i = 0; i < AGENT_TUNS_MAX; i++)
        agent_data_tun_all(d, i);
    atomic_store(&d->sweeps_done, asked);
    for (unsigned i = 0; i < d->count; i++)
        if (i != d->index && atomic_load(&d->all->at[i]->sweeps_awaited))
            wake(d, i);
}

void agent_data_mail_take(struct agent_thread *d, bool woken)
{
    uint64_t n;
    ssize_t k = 0;

    if (d->count < 2)
        return;
    while (woken && (k = read(d->mail_fd, &n, sizeof n)) < 0 && errno == EINTR)
        ;
    sweep(d);
    d->mail_left = false;
    for (unsigned from = 0; from < d->count; from++)
        if (from != d->index)
            take_from(d, from);
    agent_data_tun_flush(d); /* answers to what was carried here */
}

void agent_data_mail_post(struct agent_thread *d)
{
    uint64_t put_to = d->mail_put;

    d->mail_put = 0;
    (void)agent_data_clock(d);
    for (unsigned to = 0; put_to != 0; to++, put_to >>= 1) {
        if (!(put_to & 1))
            continue;
        if (agent_data_held(d))
            d->n.drop_fence += agent_mail_discard(mail(d, d->index, to));
        else if (agent_mail_post(mail(d, d->index, to)))
            wake(d, to);
    }
}

/* ---- admissions ---- */
bool agent_data_admit_later(struct agent_thread *d, const struct agent_admit *a)
{
    if (d->n_admits == AGENT_ADMITS_MAX)
        return false;
    d->admits[(d->admits_head + d->n_admits++) % AGENT_ADMITS_MAX] = *a;
    return true;
}

static void begin_round(struct agent_thread *d)
{
    d->n_round = d->n_admits;
    atomic_store(&d->sweeps_awaited, true); /* before anybody can be done with it */
    for (unsigned i = 0; i < d->count; i++)
        if (i != d->index) {
            d->round[i] = atomic_fetch_add(&d->all->at[i]->sweeps_asked, 1) + 1;
            wake(d, i);
        }
}

static bool round_over(const struct agent_thread *d, base_time now)
{
    for (unsigned i = 0; i < d->count; i++) {
        const struct agent_thread *t = d->all->at[i];

        if (i != d->index && (int)(atomic_load(&t->sweeps_done) - d->round[i]) < 0 &&
            now - atomic_load_explicit(&t->heartbeat, memory_order_acquire) <= d->gap)
            return false;
    }
    return true;
}

const struct agent_admit *agent_data_admit_next(struct agent_thread *d, base_time now)
{
    const struct agent_admit *a;

    if (d->n_admits == 0)
        return NULL;
    if (d->n_round == 0)
        begin_round(d);
    if (atomic_load(&d->sweeps_awaited)) {
        if (!round_over(d, now))
            return NULL;
        atomic_store(&d->sweeps_awaited, false);
    }
    a = &d->admits[d->admits_head];
    d->admits_head = (d->admits_head + 1) % AGENT_ADMITS_MAX;
    d->n_admits--;
    d->n_round--;
    return a;
}
