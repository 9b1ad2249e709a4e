/* SPDX-License-Identifier: Apache-2.0
 *
 * bench-ours DEVICE POOL PKI SESSIONS [WHAT]: the agent's data thread as it ships, with a control that admits
 * everybody and sets each fence once, an hour ahead. Prints "ready PORT". Linked a second time with
 * nofence.c: what the fence costs.
 *
 * A fifth word says what is different: "plain" no offload; "tenant" 20,000 packets a second for each tenant;
 * "two" data threads, which get as many sessions each (a request that would make one have two more than
 * another is refused).
 *
 * POOL is the third group of fd12:0:0:POOL::/64 in hex; session n (from 1) gets the /96 with n in the sixth.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/data.h"
#include "base/mem.h"
#include "fence/fence.h"
#include "loop/loop.h"

struct control {
    struct agent_data *d;
    struct fence_table *slots;
    uint16_t pool;
    uint32_t n;
    unsigned on[MASQUE_THREADS_MAX]; /* sessions of each data thread */
    bool open;
};

static struct base_prefix prefix(const char *text)
{
    struct base_prefix p;
    if (base_prefix_parse(&p, base_str_of(text)) != BASE_OK)
        abort();
    return p;
}

static void admit(struct control *c, uint64_t flow)
{
    struct agent_admit a = {.flow = flow, .tun_id = 1, .n_destinations = 1};
    unsigned at = masque_flow_thread(flow), threads = agent_data_threads(c->d);
    for (unsigned i = 0; i < threads; i++)
        if (c->on[at] > c->on[i]) {
            (void)agent_data_refuse(c->d, flow, 503, "ThisThreadHasMore", 1);
            return;
        }
    struct fence_slot *slot = fence_slot_take(c->slots, ++c->n);
    if (!slot)
        abort();
    c->on[at]++;
    (void)fence_set(slot, loop_clock() + 3600 * BASE_SEC);
    a.slot = slot;
    a.pool = prefix("fd12::/64");
    a.pool.addr.b[7] = (uint8_t)c->pool;
    a.prefix = a.pool;
    a.prefix.len = 96;
    a.prefix.addr.b[9] = (uint8_t)(c->n >> 16);
    a.prefix.addr.b[10] = (uint8_t)(c->n >> 8);
    a.prefix.addr.b[11] = (uint8_t)c->n;
    a.tunnel_ip = a.pool.addr;
    a.tunnel_ip.b[15] = 1;
    a.destinations[0] = prefix("fd20::/16");
    (void)agent_data_admit(c->d, &a);
}

static void on_report(void *arg, const struct agent_report *r)
{
    struct control *c = arg;
    if (r->kind == AGENT_REPORT_REQUEST) {
        admit(c, r->flow);
    } else if (r->kind == AGENT_REPORT_TUN) {
        if (r->code != BASE_OK) {
            (void)fprintf(stderr, "bench-ours: %s\n", r->detail);
            exit(1);
        }
        c->open = true;
    } else if (r->kind == AGENT_REPORT_GAP) {
        (void)fprintf(stderr, "bench-ours: a gap\n");
    }
}

int main(int argc, char **argv)
{
    char cert[300], key[300], ca[300];
    struct agent_data_config cfg = {.http2 = true};
    struct base_err err = {0};
    struct control c = {0};
    if (argc < 5)
        return 2;
    c.pool = (uint16_t)strtoul(argv[2], NULL, 16);
    uint32_t sessions = (uint32_t)strtoul(argv[4], NULL, 10);
    (void)base_fmt(cert, sizeof cert, "%s/edge1.crt", argv[3]);
    (void)base_fmt(key, sizeof key, "%s/edge1.key", argv[3]);
    (void)base_fmt(ca, sizeof ca, "%s/client-ca.crt", argv[3]);
    cfg.h3.listen = "[::1]:0";
    cfg.h3.cert_file = cert;
    cfg.h3.key_file = key;
    cfg.h3.client_ca_file = ca;
    cfg.h3.limits.connections = cfg.h3.limits.per_source = cfg.h3.limits.handshakes = sessions;
    cfg.h3.limits.rate = 1000000;
    cfg.gap = 5 * BASE_SEC; /* a busy machine must not end a run */
    cfg.threads = argc > 5 && strcmp(argv[5], "two") == 0 ? 2 : 1;
    cfg.h3.no_offload = cfg.no_tun_offload = argc > 5 && strcmp(argv[5], "plain") == 0;
    /* "tenant": 20,000 packets a second for each tenant. */
    cfg.tenant.packets = argc > 5 && strcmp(argv[5], "tenant") == 0 ? 20000 : 0;
    c.slots = fence_table_new(2 * sessions + 64);
    if (!c.slots || agent_data_new(&c.d, &cfg, on_report, &c, &err) != BASE_OK ||
        agent_data_tun_open(c.d, 1, argv[1], 1500) != BASE_OK) {
        (void)fprintf(stderr, "bench-ours: %s\n", err.msg);
        return 1;
    }
    for (bool told = false;;) {
        struct pollfd p = {agent_data_fd(c.d), POLLIN, 0};
        (void)poll(&p, 1, -1);
        agent_data_drain_reports(c.d);
        if (c.open && !told) {
            told = true;
            (void)printf("ready %u\n", (unsigned)agent_data_port(c.d));
            (void)fflush(stdout);
        }
    }
}
