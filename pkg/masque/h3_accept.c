/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets that belong to no connection: a first Initial opens one within the limits, the rest costs next to
 * nothing and is answered, where the protocol has an answer, at a bounded rate.
 */
#include "loop/loop.h"
#include "masque/h3_int.h"

enum { MIN_INITIAL = 1200, MIN_RESET = 43, RESET_RANDOM = 22 };
#define TOKEN_LIFE (30 * BASE_SEC)
#define GONE_LIFE BASE_SEC /* three times any sane probe time-out */

/* One answer to a stranger; false = too many already. */
static bool may_answer(struct masque_h3 *h)
{
    return masque_rate_answer(&h->all->rates, h->now);
}

static void answer(struct masque_h3 *h, const struct masque_udp_in *in, const uint8_t *p, ngtcp2_ssize n)
{
    if (n > 0 && (size_t)n <= in->len) /* never larger than what provoked it */
        (void)masque_udp_send(h->udp, &in->remote, &in->local, 0, p, (size_t)n, (size_t)n);
}

static void negotiate_version(struct masque_h3 *h, const struct masque_udp_in *in,
                              const ngtcp2_version_cid *vc)
{
    static const uint32_t versions[] = {NGTCP2_PROTO_VER_V1};
    uint8_t out[512], random;
    if (in->len < MIN_INITIAL || !may_answer(h))
        return;
    loop_random(&random, sizeof random);
    answer(h, in, out,
           ngtcp2_pkt_write_version_negotiation(out, sizeof out, random, vc->scid, vc->scidlen, vc->dcid,
                                                vc->dcidlen, versions, sizeof versions / sizeof versions[0]));
}

/* Tells a client whose connection this process does not know (it was restarted, say) that it is gone. */
static void reset(struct masque_h3 *h, const struct masque_udp_in *in, const ngtcp2_version_cid *vc)
{
    uint8_t token[NGTCP2_STATELESS_RESET_TOKENLEN], random[RESET_RANDOM], out[RESET_RANDOM + sizeof token];
    ngtcp2_cid cid;
    if (in->len < MIN_RESET || !may_answer(h))
        return;
    ngtcp2_cid_init(&cid, vc->dcid, vc->dcidlen);
    if (ngtcp2_crypto_generate_stateless_reset_token(token, h->secret, sizeof h->secret, &cid) != 0)
        return;
    loop_random(random, sizeof random);
    answer(h, in, out, ngtcp2_pkt_write_stateless_reset(out, sizeof out, token, random, sizeof random));
}

static void refuse(struct masque_h3 *h, const struct masque_udp_in *in, const ngtcp2_pkt_hd *hd,
                   uint64_t code)
{
    uint8_t out[256];
    if (may_answer(h))
        answer(h, in, out,
               ngtcp2_crypto_write_connection_close(out, sizeof out, hd->version, &hd->scid, &hd->dcid, code,
                                                    NULL, 0));
}

static void retry(struct masque_h3 *h, const struct masque_udp_in *in, const ngtcp2_pkt_hd *hd)
{
    uint8_t token[NGTCP2_CRYPTO_MAX_RETRY_TOKENLEN2], out[512];
    ngtcp2_cid scid = {.datalen = MASQUE_CID_LEN};
    if (!may_answer(h))
        return;
    h->stats.retries++;
    loop_random(scid.data, scid.datalen);
    masque_thread_mark(scid.data, &h->threads);
    ngtcp2_ssize n = ngtcp2_crypto_generate_retry_token2(
        token, h->secret, sizeof h->secret, hd->version, (const ngtcp2_sockaddr *)&in->remote,
        (ngtcp2_socklen)sizeof in->remote, &scid, &hd->dcid, (ngtcp2_tstamp)h->now);
    if (n > 0)
        answer(h, in, out,
               ngtcp2_crypto_write_retry(out, sizeof out, hd->version, &hd->scid, &scid, &hd->dcid, token,
                                         (size_t)n));
}

/* Does the token of a returning client prove its address? */
static bool token_ok(struct masque_h3 *h, const struct masque_udp_in *in, const ngtcp2_pkt_hd *hd,
                     ngtcp2_cid *odcid)
{
    return hd->tokenlen > 0 && hd->token[0] == NGTCP2_CRYPTO_TOKEN_MAGIC_RETRY2 &&
           ngtcp2_crypto_verify_retry_token2(odcid, hd->token, hd->tokenlen, h->secret, sizeof h->secret,
                                             hd->version, (const ngtcp2_sockaddr *)&in->remote,
                                             (ngtcp2_socklen)sizeof in->remote, &hd->dcid, TOKEN_LIFE,
                                             (ngtcp2_tstamp)h->now) == 0;
}

/* Turns it away, and counts the limit that was reached (NULL: none, it is draining or out of memory). */
static void turn_away(struct masque_h3 *h, const struct masque_udp_in *in, const ngtcp2_pkt_hd *hd,
                      uint64_t *reached)
{
    h->stats.refused++;
    if (reached && !h->draining)
        ++*reached;
    refuse(h, in, hd, NGTCP2_CONNECTION_REFUSED);
}

static uint64_t *counter(struct masque_h3 *h, enum masque_full full)
{
    switch (full) {
    case MASQUE_FULL_CONNECTIONS:
        return &h->stats.full_connections;
    case MASQUE_FULL_HANDSHAKES:
        return &h->stats.full_handshakes;
    case MASQUE_FULL_SOURCE:
        return &h->stats.full_source;
    case MASQUE_ROOM:
        break;
    }
    return NULL;
}

static void open_connection(struct masque_h3 *h, const struct masque_udp_in *in, const ngtcp2_pkt_hd *hd)
{
    const struct masque_h3_limits *l = &h->limits;
    const struct in6_addr *from = &in->remote.sin6_addr;
    ngtcp2_cid odcid;
    bool connections = atomic_load(&h->all->conns) >= l->connections;
    uint32_t handshakes = atomic_load(&h->all->handshakes);
    bool proven = token_ok(h, in, hd, &odcid);
    if (hd->tokenlen > 0 && hd->token[0] == NGTCP2_CRYPTO_TOKEN_MAGIC_RETRY2 && !proven) {
        refuse(h, in, hd, NGTCP2_INVALID_TOKEN);
        return;
    }
    if (h->draining || connections || handshakes >= l->handshakes) {
        turn_away(h, in, hd, counter(h, connections ? MASQUE_FULL_CONNECTIONS : MASQUE_FULL_HANDSHAKES));
        return;
    }
    bool slow = !masque_rate_left(&h->all->rates, from, h->now, l->rate, l->per_source);
    if (!proven && (slow || handshakes >= (l->handshakes + 3) / 4)) {
        retry(h, in, hd); /* under load a client shows first that it is where it says it is */
        return;
    }
    if (slow) {
        turn_away(h, in, hd, &h->stats.full_rate);
        return;
    }
    /* Clients come to other threads meanwhile: what was looked at above is decided here. */
    enum masque_full full =
        masque_count_enter(h->all, from, &(struct masque_room){l->connections, l->handshakes, l->per_source});
    if (full != MASQUE_ROOM) {
        turn_away(h, in, hd, counter(h, full));
        return;
    }
    if (!masque_rate_take(&h->all->rates, from, h->now, l->rate, l->per_source)) {
        masque_count_leave(h->all, from, false);
        turn_away(h, in, hd, &h->stats.full_rate);
        return;
    }
    struct masque_new_conn n = {.in = in, .hd = hd, .odcid = proven ? &odcid : NULL};
    struct masque_conn *c = masque_conn_new(h, &n);
    if (!c) {
        masque_count_leave(h->all, from, false);
        turn_away(h, in, hd, NULL);
        return;
    }
    masque_conn_input(c, in);
}

void masque_accept_goodbye(struct masque_h3 *h, const struct masque_conn *c)
{
    for (const struct masque_cid *m = c->cids; m; m = m->conn_next) {
        h->gone[h->gone_next] = (struct masque_gone){m->cid, h->now + GONE_LIFE};
        h->gone_next = (h->gone_next + 1) % MASQUE_GONE_MAX;
    }
}

static bool gone(const struct masque_h3 *h, const uint8_t *cid, size_t len)
{
    for (unsigned i = 0; i < MASQUE_GONE_MAX; i++) {
        const struct masque_gone *g = &h->gone[i];
        if (g->until > h->now && g->cid.datalen == len && memcmp(g->cid.data, cid, len) == 0)
            return true;
    }
    return false;
}

void masque_accept_input(struct masque_h3 *h, const struct masque_udp_in *in)
{
    ngtcp2_version_cid vc;
    ngtcp2_pkt_hd hd;
    h->stats.datagrams_in++;
    int rv = ngtcp2_pkt_decode_version_cid(&vc, in->data, in->len, MASQUE_CID_LEN);
    if (rv == NGTCP2_ERR_VERSION_NEGOTIATION) {
        negotiate_version(h, in, &vc);
        return;
    }
    if (rv != 0)
        return;
    struct masque_conn *c = masque_index_conn(&h->index, vc.dcid, vc.dcidlen);
    if (c && c->held_until > h->now) {
        h->stats.held++;
        return;
    }
    if (c) {
        masque_conn_input(c, in);
        return;
    }
    if (gone(h, vc.dcid, vc.dcidlen))
        return;
    if (vc.version == 0) {
        reset(h, in, &vc);
        return;
    }
    if (ngtcp2_accept(&hd, in->data, in->len) == 0)
        open_connection(h, in, &hd);
}
