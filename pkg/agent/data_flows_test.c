/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/data_flows.h"

#include <criterion/criterion.h>

#include "agent/data.h"
#include "base/err.h"
#include "base/mem.h"
#include "fence/fence.h"

static struct fence_table *slots;
static struct base_prefix prefix(const char *text)
{
    struct base_prefix p;

    cr_assert_eq(base_prefix_parse(&p, base_str_of(text)), BASE_OK, "%s", text);
    return p;
}

static struct agent_admit admit(uint64_t flow, uint32_t n)
{
    struct agent_admit a = {.flow = flow, .prefix = {.addr = {{0xfd, 0x12}}, .len = 96}};

    a.prefix.addr.b[10] = (uint8_t)(n >> 8);
    a.prefix.addr.b[11] = (uint8_t)n;
    if (!slots)
        slots = fence_table_new(64);
    a.slot = fence_slot_take(slots, flow);
    return a;
}

Test(agent_data_flows, from_request_to_end)
{
    base_cleanup(agent_flows_freep) struct agent_flows *t = agent_flows_new(8, 1);
    struct agent_admit a = admit(1, 7);
    struct agent_flow *f = agent_flows_add(t, 1);

    cr_assert(f);
    cr_expect_eq(f->state, AGENT_FLOW_ASKED);
    cr_expect_null(agent_flows_by_address(t, a.prefix.addr.b), "found before it was admitted");
    cr_assert_eq(agent_flows_open(t, f, &a, 3), BASE_OK);
    cr_expect_eq(f->state, AGENT_FLOW_OPEN);
    cr_expect_eq(f->tun, 3);
    cr_expect_eq(f->slot, a.slot);
    cr_expect_eq(agent_flows_by_address(t, a.prefix.addr.b), f);
    cr_expect_eq(agent_flows_open(t, f, &a, 3), BASE_EINVAL, "admitted twice");
    agent_flows_stop(t, f);
    cr_expect_eq(f->state, AGENT_FLOW_STOPPED);
    cr_expect_null(f->slot);
    cr_expect_null(agent_flows_by_address(t, a.prefix.addr.b));
    cr_expect_eq(agent_flows_open(t, f, &a, 3), BASE_EINVAL, "a stopped flow never opens again");
    cr_expect_eq(agent_flows_find(t, 1), f);
    agent_flows_remove(t, f);
    cr_expect_null(agent_flows_find(t, 1));
    cr_expect_eq(agent_flows_count(t), 0);
}

/* A new session must not take the prefix from one that has not ended: the barrier comes first. */
Test(agent_data_flows, one_open_flow_per_prefix)
{
    base_cleanup(agent_flows_freep) struct agent_flows *t = agent_flows_new(8, 1);
    struct agent_admit a = admit(1, 7), b = admit(2, 7);
    struct agent_flow *f = agent_flows_add(t, 1), *g = agent_flows_add(t, 2);

    cr_assert_eq(agent_flows_open(t, f, &a, 0), BASE_OK);
    cr_expect_eq(agent_flows_open(t, g, &b, 0), BASE_EEXIST);
    cr_expect_eq(g->state, AGENT_FLOW_ASKED);
    cr_expect_null(g->slot);
    cr_expect_eq(agent_flows_by_address(t, a.prefix.addr.b), f);
    agent_flows_stop(t, g); /* what the data thread does with it then */
    cr_expect_eq(agent_flows_by_address(t, a.prefix.addr.b), f,
                 "the end of the refused one took the prefix away");
    agent_flows_remove(t, f);
    agent_flows_remove(t, g);
    f = agent_flows_add(t, 3);
    b.flow = 3;
    cr_expect_eq(agent_flows_open(t, f, &b, 0), BASE_OK);
}

Test(agent_data_flows, refuses_nonsense)
{
    base_cleanup(agent_flows_freep) struct agent_flows *t = agent_flows_new(2, 1);
    struct agent_admit a = admit(1, 7), b;
    struct agent_flow *f = agent_flows_add(t, 1);

    cr_expect_null(agent_flows_new(0, 1));
    cr_expect_null(agent_flows_new((1 << 20) + 1, 1));
    cr_expect_null(agent_flows_add(t, 0));
    cr_expect_null(agent_flows_add(t, 1), "known");
    cr_expect(agent_flows_add(t, 9));
    cr_expect_null(agent_flows_add(t, 10), "full");
    b = a;
    b.slot = NULL;
    cr_expect_eq(agent_flows_open(t, f, &b, 0), BASE_EINVAL, "without a fence");
    b = a;
    b.prefix.len = 64;
    cr_expect_eq(agent_flows_open(t, f, &b, 0), BASE_EINVAL);
    b = a;
    b.n_destinations = AGENT_DESTINATIONS_MAX + 1;
    cr_expect_eq(agent_flows_open(t, f, &b, 0), BASE_EINVAL);
    cr_expect_eq(f->state, AGENT_FLOW_ASKED);
    cr_expect_eq(agent_flows_open(t, f, &a, 0), BASE_OK, "nothing of the refused ones stayed");
}

Test(agent_data_flows, destinations_are_narrowed_to_the_request)
{
    static const struct {
        const char *name, *target;
        const char *want[3];
    } t[] = {
        {"anything", NULL, {"fd20::/16", "fd30:1::/32", NULL}},
        {"inside the first", "fd20:5::/32", {"fd20:5::/32", NULL, NULL}},
        {"around the second", "fd30::/16", {"fd30:1::/32", NULL, NULL}},
        {"around both", "fd00::/8", {"fd20::/16", "fd30:1::/32", NULL}},
        {"exactly one", "fd20::/16", {"fd20::/16", NULL, NULL}},
        {"elsewhere", "fd40::/16", {NULL, NULL, NULL}},
    };

    for (size_t i = 0; i < BASE_LEN(t); i++) {
        base_cleanup(agent_flows_freep) struct agent_flows *fl = agent_flows_new(2, 1);
        struct agent_admit a = admit(1, 7);
        struct agent_flow *f = agent_flows_add(fl, 1);
        size_t n = 0;

        a.n_destinations = 2;
        a.destinations[0] = prefix("fd20::/16");
        a.destinations[1] = prefix("fd30:1::/32");
        f->ipproto = 17;
        if (t[i].target)
            f->target = prefix(t[i].target);
        cr_assert_eq(agent_flows_open(fl, f, &a, 0), BASE_OK);
        for (; n < 3 && t[i].want[n]; n++) {
            struct base_prefix w = prefix(t[i].want[n]);

            cr_assert_gt(f->rules.n_destinations, n, "%s", t[i].name);
            cr_expect(base_prefix_eq(&f->rules.destinations[n], &w), "%s: %zu", t[i].name, n);
        }
        cr_expect_eq(f->rules.n_destinations, n, "%s", t[i].name);
        cr_expect_eq(f->rules.ipproto, 17);
    }
}

Test(agent_data_flows, a_closed_tun_leaves_its_flows_without_a_way)
{
    base_cleanup(agent_flows_freep) struct agent_flows *t = agent_flows_new(4, 1);
    struct agent_flow *f[3];

    for (uint64_t i = 0; i < 3; i++) {
        struct agent_admit a = admit(i + 1, (uint32_t)i);

        f[i] = agent_flows_add(t, i + 1);
        cr_assert_eq(agent_flows_open(t, f[i], &a, i == 1 ? 5 : 6), BASE_OK);
    }
    agent_flows_drop_tun(t, 6);
    cr_expect_eq(f[0]->tun, UINT32_MAX);
    cr_expect_eq(f[1]->tun, 5);
    cr_expect_eq(f[2]->tun, UINT32_MAX);
    cr_expect_eq(f[0]->state, AGENT_FLOW_OPEN, "ending it is control's decision");
}

/* Adds, finds and removes in random order against an array. */
Test(agent_data_flows, agrees_with_an_array)
{
    enum { N = 40, LIVE = 16 };

    for (uint64_t seed = 1; seed < 50; seed++) {
        base_cleanup(agent_flows_freep) struct agent_flows *t = agent_flows_new(LIVE, seed);
        struct base_prng g = {seed};
        bool live[N + 1] = {false};
        unsigned n = 0;

        for (unsigned step = 0; step < 2000; step++) {
            uint64_t id = 1 + base_prng_below(&g, N);
            struct agent_flow *f = agent_flows_find(t, id);

            cr_assert_eq(f != NULL, live[id]);
            if (f) {
                agent_flows_remove(t, f);
                live[id] = false;
                n--;
            } else {
                cr_assert_eq(agent_flows_add(t, id) != NULL, n < LIVE);
                n += live[id] = n < LIVE;
            }
            cr_assert_eq(agent_flows_count(t), n);
        }
    }
}

Test(agent_data_flows, no_memory)
{
    for (unsigned long i = 1; i <= 5; i++) {
        base_mem_fail_after(i);
        cr_assert_null(agent_flows_new(4, 1), "allocation %lu", i);
        base_mem_fail_after(0);
    }
    cr_assert_null(agent_flows_free(NULL));
}

/* What one session sends into the VPC: at once a tenth of a second's worth, then at its rate. */
Test(agent_data_flows, rate_of_a_session)
{
    static const struct {
        const char *name;
        struct agent_rate rate;
        size_t len;
        unsigned at_once, a_second; /* packets; the latter at the rate, when the bucket is empty */
    } rows[] = {{"packets", {.packets = 1000}, 1200, 100, 1000},
                {"few packets", {.packets = 10}, 100, 64, 10},
                {"bytes", {.bytes = 12000000}, 1200, 1000, 10000},
                {"few bytes", {.bytes = 12000}, 1200, 54, 10},
                {"both", {.packets = 1000, .bytes = 120000}, 1200, 54, 100}};
    base_time t = 1000 * BASE_SEC;

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct agent_flow f = {.id = 1};
        unsigned n = 0;

        while (n < 20000 && agent_flow_rate(&f, &rows[i].rate, t, rows[i].len))
            n++;
        cr_expect(n >= rows[i].at_once - 1 && n <= rows[i].at_once + 1, "%s: %u at once", rows[i].name, n);
        n = 0;
        for (base_time at = t; at < t + 10 * BASE_SEC; at += 50000)
            n += agent_flow_rate(&f, &rows[i].rate, at, rows[i].len);
        cr_expect(n + 2 >= rows[i].a_second * 99 / 10 && n <= rows[i].a_second * 101 / 10 + 2,
                  "%s: %u in 10 s", rows[i].name, n);
    }
    struct agent_flow f = {.id = 1};
    for (unsigned n = 0; n < 100000; n++)
        cr_assert(agent_flow_rate(&f, &(struct agent_rate){0}, t, 65535), "without a limit");
}

Test(agent_data_flows, tenants_of_uris)
{
    struct agent_flows *t = agent_flows_new(4, 7);
    struct agent_tenant *acme = agent_flows_tenant(t, "spiffe://acme/site-1");

    cr_assert_not_null(acme);
    cr_expect_eq(agent_flows_tenant(t, "spiffe://acme/site-2"), acme);
    cr_expect_eq(agent_flows_tenant(t, "spiffe://acme"), acme);
    cr_expect_neq(agent_flows_tenant(t, "spiffe://acm/e/site-1"), acme);
    cr_expect_neq(agent_flows_tenant(t, "https://acme/site-1"), acme);
    cr_expect_neq(agent_flows_tenant(t, "spiffe://evil/site-1"), acme);
    cr_expect_null(agent_flows_tenant(t, "urn:site-1"));
    cr_expect_null(agent_flows_tenant(t, "spiffe://"));
    cr_expect_null(agent_flows_tenant(t, "spiffe:///site-1"));
    cr_expect_null(agent_flows_tenant(t, ""));
    agent_flows_free(t);
}

Test(agent_data_flows, budgets_of_a_tenant)
{
    struct agent_flows *t = agent_flows_new(8, 7);
    struct agent_tenant *x = agent_flows_tenant(t, "spiffe://acme/site-1");
    struct agent_tenant_limits l = {.sessions = 3};
    base_time now = 1000 * BASE_SEC;
    unsigned n = 0;

    for (uint64_t i = 1; i <= 3; i++) {
        cr_assert_eq(agent_tenant_request(x, &l, now), AGENT_TENANT_PASS);
        cr_assert(agent_flow_belongs(agent_flows_add(t, i), x, l.sessions));
    }
    cr_assert_eq(agent_tenant_request(x, &l, now), AGENT_TENANT_SESSIONS);
    agent_flows_remove(t, agent_flows_find(t, 2));
    cr_assert_eq(agent_tenant_request(x, &l, now), AGENT_TENANT_PASS, "one has ended");
    cr_assert_eq(agent_tenant_request(NULL, &l, now), AGENT_TENANT_PASS, "not known");
    l.sessions = 2;
    cr_assert_eq(agent_tenant_request(x, &l, now), AGENT_TENANT_SESSIONS, "two are left");
    l = (struct agent_tenant_limits){.requests = 500};
    while (n < 1000 && agent_tenant_request(x, &l, now) == AGENT_TENANT_PASS)
        n++;
    cr_expect(n >= 49 && n <= 51, "%u requests at once", n);
    cr_expect_eq(agent_tenant_request(x, &l, now), AGENT_TENANT_REQUESTS);
    cr_expect_eq(agent_tenant_request(x, &l, now + BASE_SEC), AGENT_TENANT_PASS);
    l = (struct agent_tenant_limits){.packets = 10000};
    for (n = 0; n < 100000 && agent_tenant_packet(x, &l, now); n++)
        ;
    cr_expect(n >= 999 && n <= 1001, "%u packets at once", n);
    n = 0;
    for (base_time at = now; at < now + 10 * BASE_SEC; at += 20000)
        n += agent_tenant_packet(x, &l, at);
    cr_expect(n > 99000 && n < 101000, "%u packets in 10 s", n);
    l.packets = 0;
    for (n = 0; n < 100000; n++)
        cr_assert(agent_tenant_packet(x, &l, now), "without a limit");
    agent_flows_free(t);
}
