/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_capsule.c - capsules and varints: the cut between two reads means nothing.
 *
 * Input: 8 bytes that seed the cuts, then the stream. Fed whole, byte by byte and in random pieces it gives
 * the same capsules and the same end; a second reader (below) that has the whole stream in front of it
 * agrees. What is decoded is written again as the same bytes, but for varints that were longer than need be.
 */
#include "fuzz.h"

#include "base/hash.h"
#include "masque/capsule.h"
#include "masque/varint.h"

/* What came out, folded into a number, and how it ended. */
struct outcome {
    uint64_t hash;
    unsigned n;
    int rv;
    bool boundary;
    uint64_t skipped;
    uint32_t oversize;
};

static void add(struct outcome *o, uint64_t type, const uint8_t *value, size_t len)
{
    o->hash = base_fnv1a(base_fnv1a(base_fnv1a(o->hash, &type, sizeof type), &len, sizeof len), value, len);
    o->n++;
}

static size_t cut(uint64_t *seed, size_t left, int how)
{
    if (how == 0)
        return left;
    if (how == 1)
        return 1;
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    size_t n = 1 + (size_t)(*seed >> 33) % 40;
    return n < left ? n : left;
}

static struct outcome feed(const uint8_t *p, size_t n, int how, uint64_t seed)
{
    static struct masque_capsule_parser parser;
    struct outcome o = {.hash = 1};
    struct base_err err = {0};
    struct masque_capsule cap;
    memset(&parser, 0, sizeof parser);
    for (size_t at = 0; at < n && o.rv >= 0;) {
        size_t piece = cut(&seed, n - at, how), left = piece;
        /* A copy of its own: a read behind the piece is seen. */
        uint8_t *copy = malloc(piece);
        if (!copy)
            abort();
        memcpy(copy, p + at, piece);
        const uint8_t *q = copy;
        while ((o.rv = masque_capsule_feed(&parser, &q, &left, &cap, &err)) == 1) {
            CHECK(cap.len <= MASQUE_CAPSULE_MAX, "%zu", cap.len);
            CHECK(cap.type <= MASQUE_CAPSULE_ROUTE_ADVERTISEMENT, "an unknown one came out");
            add(&o, cap.type, cap.value, cap.len);
        }
        CHECK(o.rv < 0 || left == 0, "%zu bytes are left", left);
        free(copy);
        at += piece;
    }
    if (o.rv < 0) {
        const uint8_t *q = p;
        size_t left = n;
        CHECK(err.msg[0], "no text");
        CHECK(n == 0 || masque_capsule_feed(&parser, &q, &left, &cap, NULL) < 0, "it went on after an error");
    }
    o.boundary = masque_capsule_at_boundary(&parser);
    o.skipped = parser.skipped;
    o.oversize = parser.oversize;
    return o;
}

/* The same by somebody who sees all of it at once. */
static struct outcome oracle(const uint8_t *p, size_t n)
{
    struct outcome o = {.hash = 1, .boundary = true};
    for (size_t at = 0; at < n;) {
        uint64_t type, len;
        size_t a = masque_varint_get(p + at, n - at, &type);
        size_t b = a ? masque_varint_get(p + at + a, n - at - a, &len) : 0;
        o.boundary = false;
        if (b == 0)
            return o;
        at += a + b;
        if (type > 3) {
            if (len > MASQUE_CAPSULE_SKIP_MAX - o.skipped) {
                o.rv = BASE_EPROTO;
                return o;
            }
            o.skipped += len;
        } else if (len > MASQUE_CAPSULE_MAX) {
            if (type != 0) {
                o.rv = BASE_EPROTO;
                return o;
            }
            o.oversize++;
        }
        if (len > n - at)
            return o;
        if (type <= 3 && len <= MASQUE_CAPSULE_MAX)
            add(&o, type, p + at, (size_t)len);
        at += (size_t)len;
        o.boundary = true;
    }
    return o;
}

static void same(const struct outcome *a, const struct outcome *b, const char *what)
{
    CHECK(a->rv == b->rv, "%s: %d and %d", what, a->rv, b->rv);
    CHECK(a->n == b->n && a->hash == b->hash, "%s: %u and %u capsules", what, a->n, b->n);
    CHECK(a->boundary == b->boundary, "%s: boundary", what);
    CHECK(a->skipped == b->skipped && a->oversize == b->oversize, "%s: counters", what);
}

/* ---- values ---- */
static void varints(const uint8_t *p, size_t n)
{
    uint64_t v = 1;
    uint8_t out[8];
    size_t k = masque_varint_get(p, n, &v);
    size_t want = n > 0 ? (size_t)1 << (p[0] >> 6) : 0;
    CHECK(k == (want > 0 && want <= n ? want : 0), "%zu of %zu", k, n);
    if (k == 0)
        return;
    CHECK(v <= MASQUE_VARINT_MAX, "too large");
    size_t len = masque_varint_len(v), w = masque_varint_put(out, sizeof out, v);
    uint64_t again;
    CHECK(w == len && w > 0 && w <= k, "written in %zu, read from %zu", w, k);
    CHECK(masque_varint_put(out, len - 1, v) == 0, "fits into less than it needs");
    CHECK(masque_varint_get(out, w, &again) == w && again == v, "reads as another number");
    CHECK(w != k || memcmp(out, p, k) == 0, "two spellings of one length");
}

static void addresses(const uint8_t *p, size_t n, bool request)
{
    struct masque_address a[MASQUE_CAPSULE_ADDRESSES_MAX], b[MASQUE_CAPSULE_ADDRESSES_MAX];
    struct base_err err = {0};
    uint8_t out[MASQUE_CAPSULE_MAX];
    size_t got = 12345, again;
    if (masque_address_decode(p, n, request, a, MASQUE_CAPSULE_ADDRESSES_MAX, &got, &err) != BASE_OK) {
        CHECK(err.msg[0], "no text");
        CHECK(got == 12345, "a number though it failed");
        return;
    }
    CHECK(!request || got > 0, "a request without entries");
    for (size_t i = 0; i < got; i++) {
        size_t bits = a[i].version == 4 ? 32 : 128;
        CHECK(a[i].version == 4 || a[i].version == 6, "version %u", a[i].version);
        CHECK(a[i].len <= bits, "/%u", a[i].len);
        for (size_t bit = a[i].len; bit < 128; bit++)
            CHECK(!(a[i].addr[bit / 8] & (0x80 >> bit % 8)), "bit %zu of entry %zu", bit, i);
        for (size_t k = 0; request && k < i; k++)
            CHECK(a[k].request_id != a[i].request_id, "entries %zu and %zu", k, i);
        CHECK(!request || a[i].request_id != 0, "Request ID 0");
        struct masque_address r = masque_address_refusal(&a[i]);
        CHECK(r.request_id == a[i].request_id && r.version == a[i].version && r.len == bits, "refusal");
    }
    enum masque_capsule_type type = request ? MASQUE_CAPSULE_ADDRESS_REQUEST : MASQUE_CAPSULE_ADDRESS_ASSIGN;
    size_t len = masque_address_encode(out, sizeof out, type, a, got);
    uint64_t t, l;
    size_t x = masque_varint_get(out, len, &t), y = x ? masque_varint_get(out + x, len - x, &l) : 0;
    CHECK(y && t == (uint64_t)type && l == len - x - y && l <= n, "head");
    CHECK(masque_address_decode(out + x + y, (size_t)l, request, b, MASQUE_CAPSULE_ADDRESSES_MAX, &again,
                                &err) == BASE_OK &&
              again == got && memcmp(a, b, got * sizeof a[0]) == 0,
          "written and read again it is another list");
}

static void routes(const uint8_t *p, size_t n)
{
    struct masque_route r[MASQUE_CAPSULE_MAX / 10 + 1];
    struct base_err err = {0};
    uint8_t out[MASQUE_CAPSULE_MAX + 8];
    size_t got = 0;
    if (masque_route_decode(p, n, r, sizeof r / sizeof r[0], &got, &err) != BASE_OK) {
        CHECK(err.msg[0], "no text");
        return;
    }
    for (size_t i = 0; i < got; i++) {
        CHECK(memcmp(r[i].start, r[i].end, 16) <= 0, "range %zu", i);
        if (i > 0 && r[i - 1].version == r[i].version && r[i - 1].ipproto == r[i].ipproto)
            CHECK(memcmp(r[i - 1].end, r[i].start, 16) < 0, "ranges %zu and %zu", i - 1, i);
        CHECK(i == 0 || r[i - 1].version <= r[i].version, "versions");
    }
    size_t len = masque_route_encode(out, sizeof out, r, got);
    CHECK(len >= n && memcmp(out + len - n, p, n) == 0, "written again it is another value");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    uint64_t seed = 0;
    for (int i = 0; i < 8; i++)
        seed = seed << 8 | fuzz_byte(&in);
    struct outcome want = oracle(in.p, in.left), whole = feed(in.p, in.left, 0, 0),
                   bytes = feed(in.p, in.left, 1, 0), pieces = feed(in.p, in.left, 2, seed);
    same(&want, &whole, "oracle, whole");
    same(&whole, &bytes, "whole, byte by byte");
    same(&whole, &pieces, "whole, in pieces");
    varints(in.p, in.left);
    if (in.left <= MASQUE_CAPSULE_MAX) {
        addresses(in.p, in.left, true);
        addresses(in.p, in.left, false);
        routes(in.p, in.left);
    }
    return 0;
}
