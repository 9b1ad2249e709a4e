/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/capsule.h"

#include <stdlib.h>
#include <string.h>

#include "masque/varint.h"

static size_t addr_size(uint8_t version)
{
    return version == 4 ? 4 : version == 6 ? 16 : 0;
}

/* ---- the stream ---- */

static int start_value(struct masque_capsule_parser *p, struct base_err *err)
{
    bool known = p->type <= MASQUE_CAPSULE_ROUTE_ADVERTISEMENT;
    p->in_value = true;
    p->n_head = 0;
    p->stored = 0;
    p->skipping = false;
    if (!known) {
        p->skipping = true;
        if (p->left > MASQUE_CAPSULE_SKIP_MAX - p->skipped) {
            p->failed = true;
            return base_err_set(
                err, BASE_EPROTO,
                "capsules: more than %d bytes of unknown capsules on one stream (type 0x%llx, length %llu)",
                MASQUE_CAPSULE_SKIP_MAX, (unsigned long long)p->type, (unsigned long long)p->left);
        }
        p->skipped += p->left;
    } else if (p->left > MASQUE_CAPSULE_MAX) {
        if (p->type != MASQUE_CAPSULE_DATAGRAM) {
            p->failed = true;
            return base_err_set(err, BASE_EPROTO, "capsule type %llu: length %llu is more than %d",
                                (unsigned long long)p->type, (unsigned long long)p->left, MASQUE_CAPSULE_MAX);
        }
        p->skipping = true;
        p->oversize++;
    }
    return BASE_OK;
}

/* Takes bytes of the head until type and length are there. 1 = whole, 0 = more needed. */
static int take_head(struct masque_capsule_parser *p, const uint8_t **data, size_t *len)
{
    while (*len > 0) {
        p->head[p->n_head++] = **data;
        (*data)++;
        (*len)--;
        size_t a = masque_varint_get(p->head, p->n_head, &p->type);
        if (a > 0 && masque_varint_get(p->head + a, p->n_head - a, &p->left) > 0)
            return 1;
    }
    return 0;
}

int masque_capsule_feed(struct masque_capsule_parser *p, const uint8_t **data, size_t *len,
                        struct masque_capsule *ret, struct base_err *err)
{
    if (p->failed)
        return base_err_set(err, BASE_EPROTO, "capsules: the stream is malformed already");
    for (;;) {
        if (!p->in_value) {
            if (take_head(p, data, len) == 0)
                return 0;
            int rv = start_value(p, err);
            if (rv != BASE_OK)
                return rv;
        }
        size_t n = p->left < *len ? (size_t)p->left : *len;
        if (!p->skipping && n > 0) {
            memcpy(p->value + p->stored, *data, n);
            p->stored += n;
        }
        *data += n;
        *len -= n;
        p->left -= n;
        if (p->left > 0)
            return 0;
        p->in_value = false;
        if (p->skipping)
            continue;
        *ret = (struct masque_capsule){.type = p->type, .value = p->value, .len = p->stored};
        return 1;
    }
}

bool masque_capsule_at_boundary(const struct masque_capsule_parser *p)
{
    return !p->in_value && p->n_head == 0 && !p->failed;
}

/* ---- addresses ---- */

static bool host_bits_zero(const uint8_t *addr, size_t size, unsigned len)
{
    for (unsigned bit = len; bit < size * 8; bit++)
        if (addr[bit / 8] & (0x80u >> (bit % 8)))
            return false;
    return true;
}

static int address_error(struct base_err *err, bool request, size_t entry, const char *what)
{
    return base_err_set(err, BASE_EPROTO, "%s entry %zu: %s", request ? "ADDRESS_REQUEST" : "ADDRESS_ASSIGN",
                        entry, what);
}

int masque_address_decode(const uint8_t *p, size_t n, bool request, struct masque_address *ret, size_t max,
                          size_t *ret_n, struct base_err *err)
{
    size_t got = 0;
    for (; n > 0; got++) {
        if (got == max)
            return base_err_set(err, BASE_EPROTO, "%s: more than %zu entries",
                                request ? "ADDRESS_REQUEST" : "ADDRESS_ASSIGN", max);
        struct masque_address *a = &ret[got];
        memset(a, 0, sizeof *a);
        size_t k = masque_varint_get(p, n, &a->request_id);
        if (k == 0 || n - k < 1)
            return address_error(err, request, got, "cut short");
        p += k;
        n -= k;
        a->version = p[0];
        size_t size = addr_size(a->version);
        if (size == 0)
            return address_error(err, request, got, "IP version is neither 4 nor 6");
        if (n < 1 + size + 1)
            return address_error(err, request, got, "cut short");
        memcpy(a->addr, p + 1, size);
        a->len = p[1 + size];
        p += size + 2;
        n -= size + 2;
        if (a->len > size * 8)
            return address_error(err, request, got, "prefix length is more than the address has bits");
        if (!host_bits_zero(a->addr, size, a->len))
            return address_error(err, request, got, "bits after the prefix length are not zero");
        if (!request)
            continue;
        if (a->request_id == 0)
            return address_error(err, request, got, "Request ID is 0");
        for (size_t i = 0; i < got; i++)
            if (ret[i].request_id == a->request_id)
                return address_error(err, request, got, "Request ID was used before");
    }
    if (request && got == 0)
        return base_err_set(err, BASE_EPROTO, "ADDRESS_REQUEST: no entry");
    *ret_n = got;
    return BASE_OK;
}

/* Type and length of a capsule whose value has `len` bytes. Bytes written, 0 = no room for head and value. */
static size_t put_head(uint8_t *dst, size_t size, uint64_t type, size_t len)
{
    size_t a = masque_varint_put(dst, size, type);
    if (a == 0)
        return 0;
    size_t b = masque_varint_put(dst + a, size - a, len);
    if (b == 0 || size - a - b < len)
        return 0;
    return a + b;
}

size_t masque_address_encode(uint8_t *dst, size_t size, enum masque_capsule_type type,
                             const struct masque_address *a, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += masque_varint_len(a[i].request_id) + 1 + addr_size(a[i].version) + 1;
    size_t at = put_head(dst, size, type, len);
    if (at == 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        size_t w = addr_size(a[i].version);
        at += masque_varint_put(dst + at, size - at, a[i].request_id);
        dst[at++] = a[i].version;
        memcpy(dst + at, a[i].addr, w);
        at += w;
        dst[at++] = a[i].len;
    }
    return at;
}

struct masque_address masque_address_refusal(const struct masque_address *asked)
{
    return (struct masque_address){
        .request_id = asked->request_id, .version = asked->version, .len = asked->version == 4 ? 32 : 128};
}

/* ---- routes ---- */

static int route_error(struct base_err *err, size_t entry, const char *what)
{
    return base_err_set(err, BASE_EPROTO, "ROUTE_ADVERTISEMENT range %zu: %s", entry, what);
}

/* Is `b` allowed to follow `a`? NULL, or what is wrong. */
static const char *route_order(const struct masque_route *a, const struct masque_route *b)
{
    if (a->version != b->version)
        return a->version < b->version ? NULL : "IP versions are not in order";
    if (a->ipproto != b->ipproto)
        return a->ipproto < b->ipproto ? NULL : "protocols are not in order";
    return memcmp(a->end, b->start, 16) < 0 ? NULL : "overlaps the range before it, or is out of order";
}

int masque_route_decode(const uint8_t *p, size_t n, struct masque_route *ret, size_t max, size_t *ret_n,
                        struct base_err *err)
{
    struct masque_route prev = {0};
    size_t got = 0;
    for (; n > 0; got++) {
        struct masque_route r = {.version = p[0]};
        size_t size = addr_size(r.version);
        if (size == 0)
            return route_error(err, got, "IP version is neither 4 nor 6");
        if (n < 2 * size + 2)
            return route_error(err, got, "cut short");
        memcpy(r.start, p + 1, size);
        memcpy(r.end, p + 1 + size, size);
        r.ipproto = p[1 + 2 * size];
        p += 2 * size + 2;
        n -= 2 * size + 2;
        if (memcmp(r.start, r.end, 16) > 0)
            return route_error(err, got, "start is after end");
        const char *wrong = got > 0 ? route_order(&prev, &r) : NULL;
        if (wrong)
            return route_error(err, got, wrong);
        if (got < max)
            ret[got] = r;
        prev = r;
    }
    *ret_n = got;
    return BASE_OK;
}

size_t masque_route_encode(uint8_t *dst, size_t size, const struct masque_route *r, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += 2 * addr_size(r[i].version) + 2;
    size_t at = put_head(dst, size, MASQUE_CAPSULE_ROUTE_ADVERTISEMENT, len);
    if (at == 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        size_t w = addr_size(r[i].version);
        dst[at++] = r[i].version;
        memcpy(dst + at, r[i].start, w);
        memcpy(dst + at + w, r[i].end, w);
        at += 2 * w;
        dst[at++] = r[i].ipproto;
    }
    return at;
}

static int by_start(const void *a, const void *b)
{
    const struct masque_route *x = a, *y = b;
    return memcmp(x->start, y->start, sizeof x->start);
}

/* True when `b` begins inside `a` or right after it. */
static bool touches(const struct masque_route *a, const struct masque_route *b)
{
    if (memcmp(b->start, a->end, 16) <= 0)
        return true;
    uint8_t next[16];
    memcpy(next, a->end, sizeof next);
    for (int i = 15; i >= 0 && ++next[i] == 0; i--)
        ;
    return memcmp(b->start, next, 16) == 0;
}

size_t masque_route_from_prefixes(const struct base_prefix *p, size_t n, uint8_t ipproto,
                                  struct masque_route *ret)
{
    for (size_t i = 0; i < n; i++) {
        ret[i] = (struct masque_route){.version = 6, .ipproto = ipproto};
        memcpy(ret[i].start, p[i].addr.b, 16);
        memcpy(ret[i].end, p[i].addr.b, 16);
        for (unsigned bit = p[i].len; bit < 128; bit++)
            ret[i].end[bit / 8] |= (uint8_t)(0x80u >> (bit % 8));
    }
    if (n == 0)
        return 0;
    qsort(ret, n, sizeof *ret, by_start);
    size_t out = 0;
    for (size_t i = 1; i < n; i++) {
        if (!touches(&ret[out], &ret[i])) {
            ret[++out] = ret[i];
        } else if (memcmp(ret[i].end, ret[out].end, 16) > 0) {
            memcpy(ret[out].end, ret[i].end, 16);
        }
    }
    return out + 1;
}
