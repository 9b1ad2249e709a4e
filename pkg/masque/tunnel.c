/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/tunnel.h"

#include <string.h>

void masque_tunnel_init(struct masque_tunnel *t, const struct masque_path *path, base_time now)
{
    memset(t, 0, sizeof *t);
    t->path = *path;
    t->request_tokens = MASQUE_REQUESTS_BURST;
    t->request_at = now;
}

/* Answers each entry: the first IPv6 one gets the tunnel's prefix, the others a refusal. The list is the full
 * one, so the prefix stands in it in any case. */
static size_t answer_addresses(const struct masque_tunnel *t, const struct masque_address *asked, size_t n,
                               uint8_t *dst, size_t size)
{
    struct masque_address list[MASQUE_CAPSULE_ADDRESSES_MAX + 1];
    struct masque_address mine = {.version = 6, .len = t->prefix.len};
    size_t k = 0;
    bool given = false;
    memcpy(mine.addr, t->prefix.addr.b, sizeof t->prefix.addr.b);
    for (size_t i = 0; i < n; i++) {
        list[k] = masque_address_refusal(&asked[i]);
        if (asked[i].version == 6 && !given) {
            given = true;
            list[k] = mine;
            list[k].request_id = asked[i].request_id;
        }
        k++;
    }
    if (!given)
        list[k++] = mine;
    return masque_address_encode(dst, size, MASQUE_CAPSULE_ADDRESS_ASSIGN, list, k);
}

static bool request_rate_ok(struct masque_tunnel *t, base_time now)
{
    t->request_tokens += (double)(now - t->request_at) / (double)BASE_SEC * 10;
    if (t->request_tokens > MASQUE_REQUESTS_BURST)
        t->request_tokens = MASQUE_REQUESTS_BURST;
    t->request_at = now;
    if (t->request_tokens < 1)
        return false;
    t->request_tokens -= 1;
    return true;
}

static int address_request(struct masque_tunnel *t, base_time now, const struct masque_capsule *cap,
                           struct masque_tunnel_out *ret, struct base_err *err)
{
    struct masque_address asked[MASQUE_CAPSULE_ADDRESSES_MAX];
    size_t n = 0;
    int rv = masque_address_decode(cap->value, cap->len, true, asked, MASQUE_CAPSULE_ADDRESSES_MAX, &n, err);
    if (rv != BASE_OK)
        return rv;
    if (!request_rate_ok(t, now))
        return base_err_set(err, BASE_EPROTO, "ADDRESS_REQUEST: too many in a short time");
    if (t->open) {
        ret->p = ret->reply;
        ret->len = answer_addresses(t, asked, n, ret->reply, sizeof ret->reply);
        return ret->len > 0 ? MASQUE_TUNNEL_REPLY
                            : base_err_set(err, BASE_EPROTO, "ADDRESS_REQUEST: too many entries");
    }
    if (n > MASQUE_CAPSULE_ADDRESSES_MAX - t->n_asked)
        return base_err_set(err, BASE_EPROTO, "ADDRESS_REQUEST: too many entries before the tunnel is up");
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < t->n_asked; j++)
            if (t->asked[j].request_id == asked[i].request_id)
                return base_err_set(err, BASE_EPROTO, "ADDRESS_REQUEST: Request ID was used before");
    memcpy(t->asked + t->n_asked, asked, n * sizeof asked[0]);
    t->n_asked += n;
    return MASQUE_TUNNEL_MORE;
}

static int capsule(struct masque_tunnel *t, base_time now, const struct masque_capsule *cap,
                   struct masque_tunnel_out *ret, struct base_err *err)
{
    struct masque_address addrs[MASQUE_CAPSULE_ADDRESSES_MAX];
    size_t n;
    switch ((enum masque_capsule_type)cap->type) {
    case MASQUE_CAPSULE_DATAGRAM:
        ret->p = cap->value;
        ret->len = cap->len;
        return MASQUE_TUNNEL_DATAGRAM;
    case MASQUE_CAPSULE_ADDRESS_REQUEST:
        return address_request(t, now, cap, ret, err);
    case MASQUE_CAPSULE_ADDRESS_ASSIGN: /* checked, but of no use: we take no address from a client */
        return masque_address_decode(cap->value, cap->len, false, addrs, MASQUE_CAPSULE_ADDRESSES_MAX, &n,
                                     err);
    case MASQUE_CAPSULE_ROUTE_ADVERTISEMENT: /* likewise */
        return masque_route_decode(cap->value, cap->len, NULL, 0, &n, err);
    }
    return MASQUE_TUNNEL_MORE;
}

int masque_tunnel_feed(struct masque_tunnel *t, base_time now, const uint8_t **p, size_t *n,
                       struct masque_tunnel_out *ret, struct base_err *err)
{
    struct masque_capsule cap;
    for (;;) {
        int rv = masque_capsule_feed(&t->parser, p, n, &cap, err);
        if (rv <= 0)
            return rv;
        rv = capsule(t, now, &cap, ret, err);
        if (rv != MASQUE_TUNNEL_MORE)
            return rv;
    }
}

bool masque_tunnel_at_boundary(const struct masque_tunnel *t)
{
    return masque_capsule_at_boundary(&t->parser);
}

size_t masque_tunnel_open(struct masque_tunnel *t, const struct base_prefix *prefix,
                          const struct base_prefix *routes, size_t n_routes, uint8_t *dst, size_t size)
{
    struct masque_route list[MASQUE_ROUTES_MAX];
    uint8_t proto = t->path.ipproto > 0 ? (uint8_t)t->path.ipproto : 0;
    t->prefix = *prefix;
    size_t a = answer_addresses(t, t->asked, t->n_asked, dst, size);
    size_t n = masque_route_from_prefixes(routes, n_routes, proto, list);
    size_t b = a > 0 ? masque_route_encode(dst + a, size - a, list, n) : 0;
    if (b == 0)
        return 0;
    t->open = true;
    t->n_asked = 0;
    return a + b;
}
