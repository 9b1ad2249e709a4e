/* SPDX-License-Identifier: Apache-2.0 */
#include "authority/index.h"
#include "authority/policy.h"
#include "authority/prefix.h"

#include "base/mem.h"

#include <criterion/criterion.h>
#include <string.h>

#define S BASE_SEC

static struct base_uuid id(uint8_t n)
{
    uint8_t b[16] = {n};
    return base_uuid_v4(b);
}

static struct base_prefix prefix(const char *text)
{
    struct base_prefix p;
    cr_assert_eq(base_prefix_parse(&p, base_str_of(text)), BASE_OK, "%s", text);
    return p;
}

static struct contract_binding binding(void)
{
    struct contract_binding b;
    memset(&b, 0, sizeof b);
    base_copy(b.meta.name, 64, "acme.site1");
    b.meta.uid = id(1);
    base_copy(b.meta.rv, sizeof b.meta.rv, "5");
    base_copy(b.spec.tenant, 64, "acme");
    base_copy(b.spec.connector, 64, "site1");
    base_copy(b.spec.vpc, 64, "vpc-a");
    base_copy(b.spec.service, 64, "svc-a");
    b.spec.n_identities = 2;
    b.spec.identities[0].kind = CONTRACT_IDENTITY_URI;
    base_copy(b.spec.identities[0].value, 64, "spiffe://acme/site1");
    b.spec.identities[1].kind = CONTRACT_IDENTITY_USER;
    base_copy(b.spec.identities[1].value, 64, "system:serviceaccount:acme:site1");
    b.status.has_prefix = true;
    b.status.prefix = prefix("fd12:0:0:1:1::/96");
    return b;
}

static struct contract_service service(void)
{
    struct contract_service s;
    memset(&s, 0, sizeof s);
    base_copy(s.meta.name, 64, "svc-a");
    s.meta.uid = id(2);
    base_copy(s.provider, 64, "masque");
    base_copy(s.tenant, 64, "acme");
    base_copy(s.vpc, 64, "vpc-a");
    s.pool = prefix("fd12:0:0:1::/64");
    s.n_destinations = 2;
    s.destinations[0] = prefix("fd20::/16");
    s.destinations[1] = prefix("fd30::/64");
    s.valid_until = 1000000000;
    return s;
}

static struct authority_binding compact(void)
{
    struct contract_binding b = binding();
    struct authority_binding a;
    cr_assert_eq(authority_binding_of(&a, &b, NULL), BASE_OK);
    return a;
}

Test(authority_policy, identity)
{
    struct authority_binding a = compact();
    uint8_t d[AUTHORITY_DIGEST_SIZE];
    static const struct {
        enum contract_identity_kind kind;
        const char *value;
        bool known;
    } rows[] = {
        {CONTRACT_IDENTITY_URI, "spiffe://acme/site1", true},
        {CONTRACT_IDENTITY_URI, "spiffe://acme/site", false},
        {CONTRACT_IDENTITY_URI, "spiffe://acme/site1/", false},
        {CONTRACT_IDENTITY_URI, "SPIFFE://acme/site1", false},
        {CONTRACT_IDENTITY_USER, "spiffe://acme/site1", false}, /* the kind is part of it */
        {CONTRACT_IDENTITY_USER, "system:serviceaccount:acme:site1", true},
        {CONTRACT_IDENTITY_URI, "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert_eq(authority_digest(d, rows[i].kind, rows[i].value), BASE_OK);
        cr_assert_eq(authority_has_identity(&a, d), rows[i].known, "%s", rows[i].value);
        cr_assert_eq(authority_check_binding(&a, d),
                     rows[i].known ? AUTHORITY_OK : AUTHORITY_IDENTITY_REMOVED);
    }
    memset(d, 0, sizeof d);
    cr_assert_not(authority_has_identity(&a, d), "an unused place in the table is no identity");
}

Test(authority_policy, binding_states)
{
    struct authority_binding a = compact();
    uint8_t d[AUTHORITY_DIGEST_SIZE];
    (void)authority_digest(d, CONTRACT_IDENTITY_URI, "spiffe://acme/site1");
    a.suspended = true;
    cr_assert_eq(authority_check_binding(&a, d), AUTHORITY_SUSPENDED);
    a.deleting = true;
    cr_assert_eq(authority_check_binding(&a, d), AUTHORITY_BINDING_DELETING);
    a = compact();
    cr_assert_eq(a.grant_seconds, 0);
    struct contract_timing t = contract_timing_default();
    cr_assert_eq(authority_grant(&a, &t), 30 * S);
    a.grant_seconds = 6;
    cr_assert_eq(authority_grant(&a, &t), 6 * S);
    t.grant = 5 * S;
    cr_assert_eq(authority_grant(&a, &t), 5 * S);
    t.grant = 300 * S;
    a.grant_seconds = 0;
    cr_assert_eq(authority_grant(&a, &t), 30 * S, "never above 30 s");
    a.grant_seconds = 3600; /* as if neither the CRD nor the configuration had a maximum */
    t.grant = 3600 * S;
    cr_assert_eq(authority_grant(&a, &t), 30 * S, "never above 30 s");
}

Test(authority_policy, service_states)
{
    struct authority_binding a = compact();
    for (int i = 0; i < 8; i++) {
        static const enum authority_reason want[8] = {
            AUTHORITY_OK,
            AUTHORITY_SERVICE_MISMATCH,
            AUTHORITY_SERVICE_MISMATCH,
            AUTHORITY_SERVICE_MISMATCH,
            AUTHORITY_SERVICE_REVOKED,
            AUTHORITY_SERVICE_REVOKED,
            AUTHORITY_SERVICE_EXPIRED,
            AUTHORITY_NO_SERVICE,
        };
        struct contract_service s = service();
        struct authority_service c;
        if (i == 1)
            base_copy(s.tenant, 64, "evil");
        if (i == 2)
            base_copy(s.vpc, 64, "vpc-b");
        if (i == 3)
            base_copy(s.provider, 64, "other");
        if (i == 4)
            s.revoked = true;
        if (i == 5)
            s.meta.deleting = 1;
        authority_service_of(&c, &s, NULL, 100 * S, s.valid_until - 60000000);
        base_time now = i == 6 ? 160 * S : 160 * S - 1;
        enum authority_reason got = authority_check_service(i == 7 ? NULL : &c, &a, "masque", now);
        cr_assert_eq(got, want[i], "%d: %s", i, authority_reason_name(got));
    }
}

Test(authority_policy, valid_until_is_converted_once_and_clamped)
{
    struct contract_service s = service();
    struct authority_service a, b;
    authority_service_of(&a, &s, NULL, 100 * S, s.valid_until - 60000000);
    cr_assert_eq(a.until, 160 * S);
    authority_service_of(&b, &s, &a, 130 * S, s.valid_until - 90000000); /* the wall clock was set back */
    cr_assert_eq(b.until, 160 * S, "the same value keeps its conversion");
    s.valid_until += 30000000;
    authority_service_of(&b, &s, &a, 130 * S, s.valid_until - 60000000);
    cr_assert_eq(b.until, 190 * S, "a new value is converted");
    s.meta.uid = id(9);
    authority_service_of(&a, &s, &b, 150 * S, s.valid_until - 10000000);
    cr_assert_eq(a.until, 160 * S, "another object is converted");
    authority_service_of(&a, &s, NULL, 100 * S, s.valid_until - INT64_C(400000000));
    cr_assert_eq(a.until, 402 * S, "never more than 302 s from the read");
    authority_service_of(&a, &s, NULL, 100 * S, s.valid_until - INT64_C(302000000));
    cr_assert_eq(a.until, 402 * S);
    authority_service_of(&a, &s, NULL, 100 * S, s.valid_until);
    cr_assert_eq(a.until, 100 * S, "past");
    authority_service_of(&a, &s, NULL, 100 * S, s.valid_until + 5);
    cr_assert_eq(a.until, 100 * S);
    s.valid_until = INT64_MAX;
    authority_service_of(&a, &s, NULL, 100 * S, 0);
    cr_assert_eq(a.until, 402 * S);
}

Test(authority_policy, targets)
{
    struct contract_service s = service();
    struct authority_service a;
    static const struct {
        const char *target;
        enum authority_reason want;
    } rows[] = {{"fd20::/16", AUTHORITY_OK}, {"fd20::10/128", AUTHORITY_OK},
                {"fd30::/64", AUTHORITY_OK}, {"fd30::/63", AUTHORITY_TARGET},
                {"::/0", AUTHORITY_TARGET},  {"fd40::/16", AUTHORITY_TARGET}};
    authority_service_of(&a, &s, NULL, 0, 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct base_prefix p = prefix(rows[i].target);
        cr_assert_eq(authority_check_target(&a, false, &p), rows[i].want, "%s", rows[i].target);
        cr_assert_eq(authority_check_target(&a, true, &p), AUTHORITY_OK);
    }
}

Test(authority_policy, what_a_refresh_may_change)
{
    struct contract_service s = service();
    struct authority_service as;
    struct authority_binding b = compact();
    struct authority_pin pin;
    uint8_t d[AUTHORITY_DIGEST_SIZE];
    (void)authority_digest(d, CONTRACT_IDENTITY_URI, "spiffe://acme/site1");
    authority_service_of(&as, &s, NULL, 0, 0);
    authority_pin_of(&pin, &b, &as, d, &b.prefix);
    cr_assert_eq(authority_check_refresh(&pin, &b, &as), AUTHORITY_OK);
    for (int i = 0; i < 7; i++) {
        static const enum authority_reason want[7] = {AUTHORITY_BINDING_CHANGED,
                                                      AUTHORITY_PREFIX_CHANGED,
                                                      AUTHORITY_PREFIX_CHANGED,
                                                      AUTHORITY_SERVICE_CHANGED,
                                                      AUTHORITY_SERVICE_CHANGED,
                                                      AUTHORITY_SERVICE_CHANGED,
                                                      AUTHORITY_OK};
        struct authority_binding b2 = b;
        struct contract_service s2 = s;
        struct authority_service as2;
        if (i == 0)
            b2.uid = id(9);
        if (i == 1)
            b2.has_prefix = false;
        if (i == 2)
            b2.prefix = prefix("fd12:0:0:1:2::/96");
        if (i == 3)
            s2.meta.uid = id(9);
        if (i == 4)
            s2.n_destinations = 1;
        if (i == 5)
            s2.pool = prefix("fd12:0:0:2::/64");
        if (i == 6)
            s2.valid_until++; /* that is what a refresh is for */
        authority_service_of(&as2, &s2, NULL, 0, 0);
        cr_assert_eq(authority_check_refresh(&pin, &b2, &as2), want[i], "%d", i);
    }
}

Test(authority_policy, every_reason_says_what_to_answer)
{
    for (int r = AUTHORITY_OK + 1; r <= AUTHORITY_SERVICE_CHANGED; r++) {
        unsigned retry = 99;
        int status = authority_reason_status((enum authority_reason)r, &retry);
        cr_assert(status == 400 || status == 403 || status == 503, "%d", r);
        cr_assert(status != 503 || retry > 0, "a 503 says when to come again");
        cr_assert_gt(strlen(authority_reason_name((enum authority_reason)r)), 3);
        cr_assert_gt(strlen(authority_reason_text((enum authority_reason)r)), 10);
    }
    struct contract_binding b = binding();
    struct authority_binding a;
    base_mem_fail_after(1);
    int rc = authority_binding_of(
        &a, &b, NULL); /* OpenSSL takes its memory elsewhere: either way it is whole or an error */
    base_mem_fail_after(0);
    cr_assert(rc == BASE_OK || rc == BASE_ENOMEM);
}

/* ---- prefixes */
Test(authority_prefix, order_is_fixed_by_the_digest)
{
    /* SHA-256("acme/site1/vpc-a") ends in ...; its low 32 bits are the first index of a /64 pool */
    uint8_t digest[BASE_SHA256_SIZE];
    struct base_prefix pool = prefix("fd12:0:0:1::/64"), p;
    cr_assert_eq(base_sha256(digest, "acme/site1/vpc-a", 16, NULL, 0), BASE_OK);
    cr_assert_eq(authority_candidate(&p, "acme", "site1", "vpc-a", &pool, 0), BASE_OK);
    cr_assert_eq(memcmp(p.addr.b + 8, digest + 28, 4), 0);
    cr_assert_eq(memcmp(p.addr.b, pool.addr.b, 8), 0);
    cr_assert_eq(p.len, 96);
    for (uint64_t i = 1; i < 64; i++) {
        struct base_prefix q;
        cr_assert_eq(authority_candidate(&q, "acme", "site1", "vpc-a", &pool, i), BASE_OK);
        cr_assert(authority_in_pool(&pool, &q));
        uint32_t a = (uint32_t)p.addr.b[8] << 24 | p.addr.b[9] << 16 | p.addr.b[10] << 8 | p.addr.b[11];
        uint32_t b = (uint32_t)q.addr.b[8] << 24 | q.addr.b[9] << 16 | q.addr.b[10] << 8 | q.addr.b[11];
        cr_assert_eq((uint32_t)(b - a), i);
    }
}

Test(authority_prefix, small_pools_are_walked_once_and_index_0_is_left_out)
{
    static const unsigned lens[] = {95, 94, 93, 92, 90, 88};
    static const char *const connectors[] = {"a", "b", "c", "d", "e", "f", "g", "h", "site1", "site2"};
    for (size_t l = 0; l < sizeof lens / sizeof lens[0]; l++) {
        struct base_prefix pool = {.addr = prefix("fd12::/64").addr, .len = (uint8_t)lens[l]};
        unsigned n = 1U << (96 - lens[l]);
        for (size_t k = 0; k < sizeof connectors / sizeof connectors[0]; k++) {
            bool seen[256] = {false};
            struct base_prefix p;
            for (unsigned i = 0; i < n - 1; i++) {
                cr_assert_eq(authority_candidate(&p, "t", connectors[k], "v", &pool, i), BASE_OK);
                unsigned index = p.addr.b[11];
                cr_assert(index > 0 && index < n, "/%u %s: index %u", lens[l], connectors[k], index);
                cr_assert_not(seen[index]);
                seen[index] = true;
                cr_assert(authority_in_pool(&pool, &p));
            }
            cr_assert_eq(authority_candidate(&p, "t", connectors[k], "v", &pool, n - 1), BASE_EFULL);
        }
    }
    struct base_prefix one = prefix("fd12::/96"), p;
    cr_assert_eq(authority_candidate(&p, "t", "c", "v", &one, 0), BASE_EINVAL);
    struct base_prefix all = {.len = 0};
    cr_assert_eq(authority_candidate(&p, "t", "c", "v", &all, 0), BASE_OK);
    cr_assert_eq(authority_candidate(&p, "t", "c", "v", &all, UINT64_MAX), BASE_OK);
}

Test(authority_prefix, what_belongs_to_a_pool)
{
    static const struct {
        const char *pool, *p;
        bool in;
    } rows[] = {
        {"fd12:0:0:1::/64", "fd12:0:0:1:1::/96", true},  {"fd12:0:0:1::/64", "fd12:0:0:1::/96", false},
        {"fd12:0:0:1::/64", "fd12:0:0:2::/96", false},   {"fd12:0:0:1::/64", "fd12:0:0:1:1::/97", false},
        {"fd12:0:0:1::/64", "fd12:0:0:1:1::/95", false}, {"fd12:0:0:1:1::/96", "fd12:0:0:1:1::/96", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct base_prefix pool = prefix(rows[i].pool), p = prefix(rows[i].p);
        cr_assert_eq(authority_in_pool(&pool, &p), rows[i].in, "%s in %s", rows[i].p, rows[i].pool);
    }
    struct base_prefix pool = prefix("fd12:0:0:1::/64");
    struct base_ip6 ip = authority_tunnel_ip(&pool);
    char text[BASE_IP6_SIZE];
    base_ip6_text(text, &ip);
    cr_assert_str_eq(text, "fd12:0:0:1::1");
}

/* ---- index */
static uint8_t slots[200][CONTRACT_IDENTITIES_MAX][AUTHORITY_DIGEST_SIZE];
static void set(struct authority_index *ix, uint32_t slot, uint8_t n, const uint8_t *d)
{
    authority_index_set(ix, slot, 0);
    if (n > 0)
        memcpy(slots[slot], d, (size_t)n * AUTHORITY_DIGEST_SIZE);
    authority_index_set(ix, slot, n);
}

Test(authority_index, counts_bindings)
{
    struct authority_index *ix = authority_index_new(4, slots, sizeof slots[0]);
    uint8_t d[3][AUTHORITY_DIGEST_SIZE];
    uint32_t slot;
    cr_assert_not_null(ix);
    (void)authority_digest(d[0], CONTRACT_IDENTITY_URI, "a:1");
    (void)authority_digest(d[1], CONTRACT_IDENTITY_URI, "a:2");
    (void)authority_digest(d[2], CONTRACT_IDENTITY_URI, "a:3");
    cr_assert_eq(authority_index_find(ix, d[0], &slot), 0);
    cr_assert_eq(slot, AUTHORITY_NO_SLOT);
    set(ix, 1, 2, d[0]);
    cr_assert_eq(authority_index_find(ix, d[0], &slot), 1);
    cr_assert_eq(slot, 1);
    set(ix, 3, 2, d[1]);
    cr_assert_eq(authority_index_find(ix, d[1], &slot), 2, "two bindings name it");
    cr_assert_eq(authority_index_find(ix, d[2], &slot), 1);
    cr_assert_eq(slot, 3);
    set(ix, 1, 0, NULL);
    cr_assert_eq(authority_index_find(ix, d[0], &slot), 0);
    cr_assert_eq(authority_index_find(ix, d[1], &slot), 1);
    cr_assert_eq(slot, 3);
    memcpy(d[1], d[0], sizeof d[0]);
    set(ix, 2, 2, d[0]);
    cr_assert_eq(authority_index_find(ix, d[0], &slot), 1, "twice in one binding is one binding");
    authority_index_free(ix);
}

/* As many buckets as there are, chains of several, and each order of taking out. */
Test(authority_index, chains)
{
    struct authority_index *ix = authority_index_new(4, slots, sizeof slots[0]);
    uint8_t d[4][AUTHORITY_DIGEST_SIZE] = {{0}};
    uint32_t slot;
    for (unsigned k = 0; k < 4; k++)
        d[k][31] = (uint8_t)k; /* one bucket */
    for (unsigned out = 0; out < 4; out++) {
        for (uint32_t s = 0; s < 4; s++)
            set(ix, s, 1, d[s]);
        set(ix, out, 0, NULL);
        for (uint32_t s = 0; s < 4; s++)
            cr_assert_eq(authority_index_find(ix, d[s], &slot), s != out, "%u without %u", s, out);
        for (uint32_t s = 0; s < 4; s++)
            set(ix, s, 0, NULL);
        cr_assert_eq(authority_index_find(ix, d[0], &slot), 0);
    }
    authority_index_free(ix);
}

Test(authority_index, many_changes)
{
    enum { N = 200 };
    struct authority_index *ix = authority_index_new(N, slots, sizeof slots[0]);
    base_mem_fail_after(2);
    struct authority_index *none = authority_index_new(N, slots, sizeof slots[0]);
    base_mem_fail_after(0);
    cr_assert_null(none);
    struct base_prng r = {.state = 7};
    uint8_t d[16][AUTHORITY_DIGEST_SIZE];
    uint8_t has[N][2];
    memset(has, 255, sizeof has);
    for (unsigned i = 0; i < 16; i++) {
        char text[8];
        base_fmt(text, sizeof text, "a:%u", i);
        (void)authority_digest(d[i], CONTRACT_IDENTITY_URI, text);
    }
    for (unsigned step = 0; step < 20000; step++) {
        uint32_t slot = (uint32_t)base_prng_below(&r, N);
        uint8_t two[2][AUTHORITY_DIGEST_SIZE];
        uint8_t n = (uint8_t)base_prng_below(&r, 3);
        memset(has[slot], 255, 2);
        for (uint8_t i = 0; i < n; i++) {
            has[slot][i] = (uint8_t)base_prng_below(&r, 16);
            memcpy(two[i], d[has[slot][i]], sizeof two[i]);
        }
        set(ix, slot, n, two[0]);
        unsigned q = (unsigned)base_prng_below(&r, 16), want = 0;
        for (unsigned s = 0; s < N; s++)
            want += has[s][0] == q || has[s][1] == q;
        unsigned got = authority_index_find(ix, d[q], &slot);
        cr_assert(got == want || (want > 1 && got > 1), "%u: %u of %u", step, got, want);
    }
    authority_index_free(ix);
}
