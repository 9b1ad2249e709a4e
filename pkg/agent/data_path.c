/* SPDX-License-Identifier: Apache-2.0
 *
 * data_path.c - one packet's way.
 *
 *   client -> VPC:  masque_endpoint_read -> agent_data_on_packet -> checks -> tun_write
 *   VPC -> client:  tun_read -> on_tun_packet -> checks, hop limit -> masque_endpoint_send -> (flush)
 *
 * The fence is asked when a packet was taken in, with a clock read after that; tun_write and
 * masque_endpoint_flush ask it again right before the system call. Nothing here allocates, logs or waits.
 */
#include "agent/data_int.h"

#include "fence/fence.h"

enum { AT_HOP = 7, AT_DST = 24 };

static void count_drop(struct agent_data *d, enum masque_verdict v)
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
static const struct fence_pass *pass_of(struct agent_data *d, const struct agent_flow *f)
{
    base_time now = agent_data_clock(d);
    const struct fence_pass *pass = agent_data_held(d) ? NULL : fence_check(f->slot, now);

    if (!pass)
        d->n.drop_fence++;
    return pass;
}

static bool to_vpc(struct agent_data *d, const struct agent_flow *f, const struct fence_pass *pass,
                   uint8_t *pkt, size_t len)
{
    struct agent_tun *t = f->tun < AGENT_TUNS_MAX ? &d->tuns[f->tun] : NULL;
    struct base_err err;

    if (!t || !t->t || t->lost) {
        d->n.drop_no_session++;
        return false;
    }
    switch (tun_write(t->t, pass, pkt, len, &err)) {
    case BASE_OK:
        d->n.tun_out++;
        d->n.tun_bytes_out += len;
        return true;
    case BASE_EDENIED:
        d->n.drop_fence++;
        return false;
    case BASE_ECLOSED:
        t->lost = true;
        (void)base_fmt(t->why, sizeof t->why, "%s", err.msg);
        return false;
    case BASE_EFULL:
        d->n.drop_tun_full++;
        return false;
    default:
        d->n.drop_malformed++;
        return false;
    }
}

/* Sends an error about a packet back to whoever sent it: through the tunnel, or into the VPC. */
static void answer(struct agent_data *d, struct agent_flow *f, const struct fence_pass *pass, bool into_vpc,
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
    struct agent_data *d = arg;
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
    struct agent_data *d;
    uint32_t tun;
};

static void on_tun_packet(void *arg, uint8_t *pkt, size_t len)
{
    const struct burst *b = arg;
    struct agent_data *d = b->d;
    struct agent_flow *f;
    const struct fence_pass *pass;
    struct masque_packet info;
    enum masque_verdict v;
    enum masque_icmp6 what;

    if (len < MASQUE_PACKET_HEADER) {
        d->n.drop_malformed++;
        return;
    }
    if (pkt[AT_DST] == 0xff) /* listener reports, solicitations: noise */
        return;
    f = agent_flows_by_address(d->flows, pkt + AT_DST);
    if (!f || f->tun != b->tun) { /* a prefix of another VPC is nobody here */
        d->n.drop_no_session++;
        return;
    }
    d->n.tun_in++;
    d->n.tun_bytes_in += len;
    pass = pass_of(d, f);
    if (!pass)
        return;
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

static void tun_take(struct agent_data *d, uint32_t tun, unsigned max, tun_packet_fn fn)
{
    struct agent_tun *t = &d->tuns[tun];
    struct burst b = {d, tun};
    struct base_err err;

    if (!t->t || t->lost)
        return;
    if (tun_read(t->t, max, fn, &b, &err) == BASE_ECLOSED) {
        t->lost = true;
        (void)base_fmt(t->why, sizeof t->why, "%s", err.msg);
    }
}

void agent_data_tun_burst(struct agent_data *d, uint32_t tun, unsigned max)
{
    tun_take(d, tun, max, on_tun_packet);
}

void agent_data_tun_empty(struct agent_data *d, uint32_t tun)
{
    if (d->tuns[tun].t)
        tun_take(d, tun, tun_queue_len(d->tuns[tun].t) + 1, NULL);
}
