/* SPDX-License-Identifier: Apache-2.0
 *
 * The path below a tunnel changes: keys, addresses, what the kernel can do for large sends.
 */
#include "masque/testenv_test.h"

#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_NO_CHECK6_TX
#define UDP_NO_CHECK6_TX 101
#define UDP_NO_CHECK6_RX 102
#endif

static struct testenv *e;

static void setup(void)
{
    e = testenv_new(NULL);
}

static void teardown(void)
{
    testenv_free(e);
}

TestSuite(masque_h3_path, .init = setup, .fini = teardown, .timeout = 60);

static void both_ways(struct testclient *c, uint64_t flow, uint8_t mark)
{
    unsigned up = e->n_packets;
    size_t down = c->n_datagrams;
    testclient_datagram(c, (uint8_t[]){0, 0, 0x60, mark}, 4);
    WAIT(e, e->n_packets == up + 1);
    cr_assert_eq(e->packets[up].data[1], mark);
    cr_assert_eq(testenv_send(e, flow, 1280, mark), BASE_OK);
    WAIT(e, c->n_datagrams == down + 1);
}

/* RFC 9001 section 6: the client changes its keys, again and again; the server follows. */
Test(masque_h3_path, keys_are_changed_under_a_tunnel)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    both_ways(c, flow, 1);
    for (uint8_t i = 2; i < 6; i++) {
        testenv_skew += 5 * BASE_SEC; /* longer than three probe time-outs since the last change */
        both_ways(c, flow, (uint8_t)(i + 100));
        cr_assert_eq(ngtcp2_conn_initiate_key_update(c->quic, (ngtcp2_tstamp)testenv_clock()), 0, "update %d",
                     i);
        both_ways(c, flow, i);
        testenv_settle(e, 20);
    }
    cr_assert_eq(e->n_ended, 0);
    cr_assert_not(c->closed);
}

/* A burst is one send with UDP_SEGMENT. Where that is refused (an interface without checksum offload, say)
 * the same packets go one by one from then on, and none of the burst is lost. */
Test(masque_h3_path, large_sends_that_the_kernel_refuses_go_one_by_one)
{
    const int on = 1;
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    WAIT(e, masque_h3_mtu(e->h, flow) > 1400);
    testenv_settle(e, 50);
    cr_assert(testenv_stats(e).gso, "no large sends here: nothing is tested");
    /* UDP without a checksum cannot be segmented: the kernel says EINVAL to UDP_SEGMENT. */
    cr_assert_eq(setsockopt(masque_h3_fd(e->h), IPPROTO_UDP, UDP_NO_CHECK6_TX, &on, sizeof on), 0);
    cr_assert_eq(setsockopt(c->fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &on, sizeof on), 0);
    size_t got = c->n_datagrams;
    for (uint8_t i = 0; i < 10; i++)
        cr_assert_eq(testenv_send(e, flow, 1200, i), BASE_OK);
    WAIT(e, c->n_datagrams == got + 10);
    cr_assert_not(testenv_stats(e).gso, "it goes on trying");
    cr_assert_eq(e->n_ended, 0);
    both_ways(c, flow, 7);
}

Test(masque_h3_path, without_offload_every_packet_is_a_send)
{
    masque_h3_free(e->h);
    e->cfg.no_offload = true;
    testenv_start(e, 0);
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    cr_assert_not(testenv_stats(e).gso);
    for (uint8_t i = 0; i < 20; i++)
        cr_assert_eq(testenv_send(e, flow, 1200, i), BASE_OK);
    WAIT(e, c->n_datagrams == 20);
    for (uint8_t i = 0; i < 20; i++) {
        cr_assert_eq(c->datagram_len[i], 1202);
        cr_assert_eq(c->datagrams[i][1201], i, "in order");
    }
    both_ways(c, flow, 9);
}

/* A client that sends more than it may is not read for a while, then as before; nobody else is touched. */
Test(masque_h3_path, a_held_connection_costs_no_others)
{
    uint64_t flow, other;
    struct testclient *c = testenv_tunnel(e, &flow), *d = testenv_tunnel(e, &other);
    both_ways(c, flow, 1);
    both_ways(d, other, 2);
    masque_h3_hold(e->h, flow, testenv_clock() + 300 * BASE_MS);
    masque_h3_hold(e->h, 12345, testenv_clock() + BASE_SEC);
    unsigned n = e->n_packets;
    testclient_datagram(c, (uint8_t[]){0, 0, 0x60, 3}, 4);
    testenv_settle(e, 50);
    cr_assert_eq(e->n_packets, n, "it was read");
    cr_assert_geq(testenv_stats(e).held, 1);
    both_ways(d, other, 4);
    testenv_skew += 300 * BASE_MS;
    both_ways(c, flow, 5);
    cr_assert_eq(e->n_ended, 0);
}

/* The library's pacing ends microseconds after each send: nobody is woken for it when nothing waits. */
Test(masque_h3_path, nobody_wakes_for_pacing_when_nothing_waits)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    both_ways(c, flow, 1);
    testenv_settle(e, 50);
    cr_assert_eq(testenv_send(e, flow, 1200, 2), BASE_OK);
    base_time before = testenv_clock();
    testenv_endpoint(e);
    cr_assert_geq(masque_h3_expiry(e->h), before + BASE_MS);
}
