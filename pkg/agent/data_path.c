/* SPDX-License-Identifier: Apache-2.0
 *
 * data_path.c - one packet's way.
 *
 *   client -> VPC:  masque_endpoint_read -> agent_data_on_packet -> checks -> tun_put -> (tun_flush)
 *   VPC -> client:  tun_read -> on_tun_packet -> checks, hop limit -> masque_endpoint_send -> (flush)
 *
 * A packet for a flow of another thread is carried there (data_carry.c) and goes its way from on_tun_packet's
 * lookup on: agent_data_carried.
 *
 * The fence is asked when a packet was taken in, with a clock read after that; tun_flush and
 * masque_endpoint_flush ask it again right before the system call. Nothing here allocates, logs or waits.
 */
#include "agent/data_int.h"

#include <limits.h>

#include "fence/fence.h"

enum { AT_HOP = 7, AT_DST = 24 };
#define TENANT_HOLD (2 * BASE_MS)

static void count_drop(struct agent_thread *d, enum masque_verdict v)
{
    switch (v) {
    case MASQUE_BAD_SHORT:
    case MASQUE_BAD_VERSION:
    case MASQUE_BAD_LENGTH:
    case MASQUE_BAD_EXTENSIONS:
    case MASQUE_BAD_ROUTING:
        d->n.drop_malformed++;
        return;
    case MASQUE_SOURCE_SCOPE:
    case MASQUE_SOURCE_SPOOF:
        d->n.drop_source++;
        return;
    case MASQUE_DST_SCOPE:
    case MASQUE_DST_LOCAL:
    case MASQUE_DST_NO_ROUTE:
    case MASQUE_DST_FORBIDDEN:
    case MASQUE_PROTO_FORBIDDEN:
        d->n.drop_destination++;
        return;
    case MASQUE_HOP_LIMIT:
        d->n.drop_hop_limit++;
        return;
    case MASQUE_LINK_NOISE: /* the kernels' own talk, never a connector's traffic */
    case MASQUE_PASS:
    case MASQUE_VERDICT_N:
        return;
    }
}

/* The pass for a packet of `f` that was taken in just now, or NULL (counted). */
static const struct fence_pass *pass_of(struct agent_thread *d, const struct agent_flow *f)
{
    base_time now = agent_data_clock(d);
    const struct fence_pass *pass = agent_data_held(d) ? NULL : fence_check(f->slot, now);

    if (!pass)
        d->n.drop_fence++;
    return pass;
}

/* `n` packets were not written, for this reason. */
static void not_written(struct agent_thread *d, struct agent_tun *t, int why, unsigned n, const char *text)
{
    switch (why) {
    case BASE_EDENIED:
        d->n.drop_fence += n;
        return;
    case BASE_ECLOSED:
        t->lost = true;
        (void)base_fmt(t->why, sizeof t->why, "%s", text);
        return;
    case BASE_EFULL:
        d->n.drop_tun_full += n;
        return;
    default:
        d->n.drop_malformed += n;
    }
}

void agent_data_tun_flush(struct agent_thread *d)
{
    struct agent_tun *t = &d->tuns[d->filled];
    struct tun_flushed n;
    struct base_err err;
    int rc;

    if (!d->tun_filled)
        return;
    d->tun_filled = false;
    if (!t->t || t->lost)
        return;
    (void)agent_data_clock(d);
    if (agent_data_held(d)) { /* this thread was stopped since they were taken in */
        d->n.drop_fence += tun_discard(t->t);
        return;
    }
    rc = tun_flush(t->t, &n, &err);
    d->n.tun_out += n.sent;
    d->n.tun_bytes_out += n.bytes;
    if (rc < 0)
        not_written(d, t, rc, n.lost, err.msg);
}

static bool to_vpc(struct agent_thread *d, const struct agent_flow *f, const struct fence_pass *pass,
                   uint8_t *pkt, size_t len)
{
    struct agent_tun *t = f->tun < AGENT_TUNS_MAX ? &d->tuns[f->tun] : NULL;
    struct base_err err;
    int rc = BASE_EAGAIN;

    if (d->tun_filled && f->tun != d->filled)
        agent_data_tun_flush(d);
    for (int i = 0; i < 2 && rc == BASE_EAGAIN; i++) {
        if (i > 0)
            agent_data_tun_flush(d);
        if (!t || !t->t || t->lost) {
            d->n.drop_no_session++;
            return false;
        }
        rc = tun_put(t->t, pass, pkt, len, &err);
    }
    if (rc < 0) {
        not_written(d, t, rc, 1, err.msg);
        return false;
    }
    d->filled = f->tun;
    d->tun_filled = true;
    return true;
}

/* Sends an error about a packet back to whoever sent it: through the tunnel, or into the VPC. */
static void answer(struct agent_thread *d, struct agent_flow *f, const struct fence_pass *pass, bool into_vpc,
                   enum masque_icmp6 what, uint32_t mtu, const uint8_t *pkt, size_t len,
                   const struct masque_packet *info)
{
    /* Into the VPC the foundation's gate lets nothing pass but sources in the connector's /96; its
     * subnet-router address (RFC 4291 section 2.6.1) is the tunnel's end of it. */
    const struct base_ip6 *from = into_vpc ? &f->rules.prefix.addr : &f->rules.tunnel_ip;
    uint8_t *m = d->icmp + TUN_HEADROOM;
    size_t n = masque_icmp6_error(m, MASQUE_ICMP6_MAX, what, mtu, from, pkt, len, info);

    if (n == 0 || !masque_icmp6_take(&f->bucket, d->beat))
        return;
    if (into_vpc ? to_vpc(d, f, pass, m, n) : masque_endpoint_send(d->ends, f->id, pass, m, n) == BASE_OK)
        d->n.icmp_sent++;
}

void agent_data_on_packet(void *arg, uint64_t flow, uint8_t *pkt, size_t len)
{
    struct agent_thread *d = arg;
    struct agent_flow *f = agent_flows_find(d->flows, flow);
    const struct fence_pass *pass;
    struct masque_packet info;
    enum masque_verdict v;
    enum masque_icmp6 what;

    if (!f || f->state != AGENT_FLOW_OPEN) {
        d->n.drop_no_session++;
        return;
    }
    pass = pass_of(d, f);
    if (!pass)
        return;
    if (!agent_tenant_packet(f->tenant, &d->tenant, d->beat)) {
        d->n.drop_tenant++;
        /* It will not stop at once: what is behind this packet must not cost others their turn. */
        masque_endpoint_hold(d->ends, flow, d->beat + TENANT_HOLD);
        return;
    }
    if (!agent_flow_rate(f, &d->rate, d->beat, len)) {
        d->n.drop_rate++;
        return;
    }
    v = masque_packet_from_client(&info, &f->rules, pkt, len);
    if (v == MASQUE_PASS) {
        (void)to_vpc(d, f, pass, pkt, len);
        return;
    }
    if (v == MASQUE_DST_LOCAL) {
        uint8_t *m = d->icmp + TUN_HEADROOM;
        size_t n = masque_icmp6_echo(m, TUN_PACKET_MAX, &f->rules.tunnel_ip, pkt, len, &info);

        if (n > 0) {
            d->n.icmp_sent += masque_endpoint_send(d->ends, flow, pass, m, n) == BASE_OK;
            return;
        }
    }
    count_drop(d, v);
    if (masque_icmp6_for(v, &what))
        answer(d, f, pass, false, what, 0, pkt, len, &info);
}

struct burst {
    struct agent_thread *d;
    uint32_t tun;
    unsigned n;
};

static void to_client(struct agent_thread *d, struct agent_flow *f, uint8_t *pkt, size_t len)
{
    const struct fence_pass *pass;
    struct masque_packet info;
    enum masque_verdict v;
    enum masque_icmp6 what;

    d->n.tun_in++;
    d->n.tun_bytes_in += len;
    pass = pass_of(d, f);
    if (!pass)
        return;
    if (!agent_tenant_packet(f->tenant, &d->tenant, d->beat)) {
        d->n.drop_tenant++;
        return;
    }
    v = masque_packet_to_client(&info, &f->rules, pkt, len);
    if (v != MASQUE_PASS) {
        count_drop(d, v);
        /* A source in the pool is another connector, behind another gate: it gets no answer. */
        if (v != MASQUE_SOURCE_SPOOF && masque_icmp6_for(v, &what))
            answer(d, f, pass, true, what, 0, pkt, len, &info);
        return;
    }
    masque_packet_hop(pkt);
    if (masque_endpoint_send(d->ends, f->id, pass, pkt, len) == BASE_ERANGE) {
        pkt[AT_HOP]++; /* it was not encapsulated: the answer quotes it as it came */
        answer(d, f, pass, true, MASQUE_ICMP6_TOO_BIG, (uint32_t)masque_endpoint_mtu(d->ends, f->id), pkt,
               len, &info);
    }
}

static void on_tun_packet(void *arg, uint8_t *pkt, size_t len)
{
    struct burst *b = arg;
    struct agent_thread *d = b->d;
    struct agent_flow *f;

    b->n++;
    if (len < MASQUE_PACKET_HEADER) {
        d->n.drop_malformed++;
        return;
    }
    if (pkt[AT_DST] == 0xff) /* listener reports, solicitations: noise */
        return;
    f = agent_flows_by_address(d->flows, pkt + AT_DST);
    if (!f) {
        agent_data_carry(d, b->tun, pkt, len);
        return;
    }
    if (f->tun != b->tun) { /* a prefix of another VPC is nobody here */
        d->n.drop_no_session++;
        return;
    }
    to_client(d, f, pkt, len);
}

void agent_data_carried(struct agent_thread *d, const struct agent_letter *l, uint8_t *pkt)
{
    struct agent_flow *f = agent_flows_by_address(d->flows, pkt + AT_DST);

    /* As above. And a letter from before this flow was open was for an earlier session with the prefix, and
     * had passed the gate of that generation: whoever reads a packet and then finds the new session in the
     * table puts its time on it after that. */
    if (!f || f->tun >= AGENT_TUNS_MAX || d->tuns[f->tun].id != l->tun_id || l->at <= f->opened) {
        d->n.drop_no_session++;
        return;
    }
    to_client(d, f, pkt, l->len);
}

/* Reads at most `reads` times, and not again once `packets` have come. */
static void tun_take(struct agent_thread *d, uint32_t tun, unsigned reads, unsigned packets, tun_packet_fn fn)
{
    enum { STEP = 4 }; /* reads between two looks at what has come: each may bring some 50 packets */
    struct agent_tun *t = &d->tuns[tun];
    struct burst b = {d, tun, 0};
    struct base_err err;
    int rc = BASE_OK;

    for (unsigned i = 0; i < reads && b.n < packets && rc == BASE_OK && t->t && !t->lost; i += STEP)
        rc = tun_read(t->t, reads - i < STEP ? reads - i : STEP, fn, &b, &err);
    if (rc == BASE_ECLOSED) {
        t->lost = true;
        (void)base_fmt(t->why, sizeof t->why, "%s", err.msg);
    }
    agent_data_tun_flush(d);
}

void agent_data_tun_burst(struct agent_thread *d, uint32_t tun, unsigned max)
{
    tun_take(d, tun, max, max, on_tun_packet);
}

void agent_data_tun_all(struct agent_thread *d, uint32_t tun)
{
    if (d->tuns[tun].t)
        tun_take(d, tun, tun_queue_len(d->tuns[tun].t) + 1, UINT_MAX, on_tun_packet);
}

void agent_data_tun_empty(struct agent_thread *d, uint32_t tun)
{
    if (d->tuns[tun].t)
        tun_take(d, tun, tun_queue_len(d->tuns[tun].t) + 1, UINT_MAX, NULL);
}
