/* SPDX-License-Identifier: Apache-2.0
 *
 * The endpoint and a client over loopback: the life of a tunnel, the fence, the barrier, sizes, drain.
 */
#include "masque/testenv_test.h"

static struct testenv *e;

static void setup(void)
{
    e = testenv_new(NULL);
}

static void teardown(void)
{
    testenv_free(e);
}

TestSuite(masque_h3, .init = setup, .fini = teardown, .timeout = 60);

static void wrap(uint8_t *dst, const void *pkt, size_t n)
{
    dst[0] = 0; /* Quarter Stream ID */
    dst[1] = 0; /* context */
    memcpy(dst + 2, pkt, n);
}

static void client_sends(struct testclient *c, size_t len, uint8_t mark)
{
    uint8_t pkt[1500], dgram[1502];
    memset(pkt, mark, len);
    wrap(dgram, pkt, len);
    testclient_datagram(c, dgram, len + 2);
}

/* ---- life ---- */

Test(masque_h3, from_request_to_packets_both_ways)
{
    struct testclient *c = testenv_connected(e);
    const struct testclient_field f[] = {
        {":method", "CONNECT"},
        {":protocol", "connect-ip"},
        {":scheme", "https"},
        {":authority", "masque.test"},
        {":path", "/.well-known/masque/ip/fd20%3A%3A%2F64/6/"},
        {"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
        {"x-site", "another"}};
    size_t s = testclient_request(c, f, sizeof f / sizeof f[0], false);
    WAIT(e, e->n_rq == 1);
    const struct masque_request *rq = &e->rq[0];
    char text[BASE_CORRELATION_SIZE];
    cr_assert_eq(rq->flow, 1);
    cr_assert_eq(rq->identity, MASQUE_IDENTITY_URI);
    cr_assert_str_eq(rq->uri, "spiffe://acme/site-1");
    cr_assert_eq(strlen(rq->credential_id), 64);
    cr_assert(strncmp(rq->peer, "[::1]:", 6) == 0, "%s", rq->peer);
    cr_assert_eq(rq->target, MASQUE_TARGET_PREFIX);
    cr_assert_eq(rq->prefix.len, 64);
    cr_assert_eq(rq->ipproto, 6);
    base_correlation_text(text, &rq->correlation);
    cr_assert_str_eq(text, "4bf92f3577b34da6a3ce929d0e0e4736");
    cr_assert_eq(c->streams[s].status, 0, "answered before it was asked to");

    cr_assert_eq(testenv_send(e, 1, 100, 1), BASE_ENOTFOUND, "not accepted yet");
    cr_assert_eq(testenv_accept(e, 1), BASE_OK);
    cr_assert_eq(testenv_accept(e, 1), BASE_ENOTFOUND, "twice");
    cr_assert_eq(masque_h3_refuse(e->h, 1, 403, "late", 0), BASE_ENOTFOUND);
    WAIT(e, c->streams[s].status == 200 && c->streams[s].n_body > 60);
    uint64_t types[8];
    struct masque_address a[16];
    struct masque_route r[16];
    size_t n_a = 0, n_r = 0, n = testenv_capsules(&c->streams[s], types, a, &n_a, r, &n_r, 8);
    cr_assert_eq(n, 2);
    cr_assert_eq(types[0], MASQUE_CAPSULE_ADDRESS_ASSIGN);
    cr_assert_eq(types[1], MASQUE_CAPSULE_ROUTE_ADVERTISEMENT);
    cr_assert_eq(n_a, 1);
    cr_assert_eq(a[0].request_id, 0);
    cr_assert_eq(a[0].len, 96);
    cr_assert_eq(memcmp(a[0].addr, e->prefix.addr.b, 16), 0);
    cr_assert_eq(n_r, 2);
    cr_assert_eq(memcmp(r[0].start, e->routes[1].addr.b, 16), 0, "sorted");
    cr_assert_eq(r[0].ipproto, 6, "the protocol that was asked for");

    client_sends(c, 1200, 0x61);
    WAIT(e, e->n_packets == 1);
    cr_assert_eq(e->packets[0].flow, 1);
    cr_assert_eq(e->packets[0].len, 1200);
    cr_assert_eq(e->packets[0].data[0], 0x61);
    cr_assert_eq(testenv_send(e, 1, 1280, 0x42), BASE_OK);
    WAIT(e, c->n_datagrams == 1);
    cr_assert_eq(c->datagram_len[0], 1282);
    cr_assert_eq(c->datagrams[0][0], 0, "Quarter Stream ID of stream 0");
    cr_assert_eq(c->datagrams[0][1], 0, "context 0");
    cr_assert_eq(c->datagrams[0][2], 0x60);
    cr_assert_eq(c->datagrams[0][1281], 0x42);

    testclient_write(c, s, NULL, 0, true);
    WAIT(e, e->n_ended == 1);
    cr_assert_eq(e->ended[0].why, MASQUE_END_CLIENT);
    WAIT(e, c->streams[s].ended);
    cr_assert_eq(testenv_send(e, 1, 100, 1), BASE_ENOTFOUND);
    cr_assert_eq(masque_h3_mtu(e->h, 1), 0);
    struct masque_h3_stats st = testenv_stats(e);
    cr_assert_eq(st.packets_in, 1);
    cr_assert_eq(st.packets_out, 1);
    cr_assert_eq(st.bytes_in, 1200);
    cr_assert_eq(st.bytes_out, 1280);
    cr_assert_eq(st.open_flows, 0);
    cr_assert_eq(st.open_connections, 1);
}

Test(masque_h3, refused_with_reason_and_may_ask_again)
{
    struct testclient *c = testenv_connected(e);
    e->answer = TESTENV_REFUSE;
    size_t s = testenv_request(c, NULL);
    WAIT(e, c->streams[s].ended);
    cr_assert_eq(c->streams[s].status, 403);
    cr_assert_str_eq((char *)c->streams[s].body, "reason: no binding for this identity\n");
    cr_assert_str_eq(c->streams[s].retry_after, "7");
    cr_assert_eq(e->n_ended, 1);
    cr_assert_eq(e->ended[0].why, MASQUE_END_LOCAL);
    e->answer = TESTENV_ACCEPT;
    s = testenv_request(c, NULL);
    WAIT(e, c->streams[s].status == 200);
    cr_assert_eq(e->rq[1].flow, 2, "numbers are not used again");
    client_sends(c, 100, 0); /* for the old stream: dropped without a word */
    WAIT(e, testenv_stats(e).drop_early == 1);
    cr_assert_eq(e->n_packets, 0);
}

Test(masque_h3, second_tunnel_on_one_connection_is_refused_with_409)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    size_t s = testenv_request(c, NULL);
    WAIT(e, c->streams[s].ended);
    cr_assert_eq(c->streams[s].status, 409);
    cr_assert_eq(e->n_rq, 1, "nobody was asked");
    cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_OK);
    WAIT(e, c->n_datagrams == 1);
}

Test(masque_h3, closing_a_flow_ends_its_connection)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    masque_h3_close(e->h, flow, 0x10b);
    cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_ENOTFOUND);
    WAIT(e, c->closed);
    cr_assert(c->close_is_app);
    cr_assert_eq(c->close_code, 0x10b);
    cr_assert_eq(e->n_ended, 1);
    cr_assert_eq(e->ended[0].why, MASQUE_END_LOCAL);
    cr_assert_eq(testenv_stats(e).open_connections, 0);
    masque_h3_close(e->h, flow, 0x10b);
    masque_h3_stop(e->h, flow);
    testenv_turn(e);
    cr_assert_eq(e->n_ended, 1);
}

static void close_it(struct testenv *env, uint64_t flow)
{
    masque_h3_stop(env->h, flow);
    masque_h3_close(env->h, flow, 0x100);
}

Test(masque_h3, may_be_closed_from_within_an_event)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    e->on_packet = close_it;
    for (int i = 0; i < 5; i++)
        client_sends(c, 100, 1);
    WAIT(e, c->closed);
    cr_assert_eq(e->n_packets, 1, "packets after the close");
    cr_assert_eq(e->n_ended, 1);
}

Test(masque_h3, reset_and_close_by_the_client)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    testclient_reset(c, 0, 0x10c);
    WAIT(e, e->n_ended == 1);
    cr_assert_eq(e->ended[0].why, MASQUE_END_CLIENT);
    cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_ENOTFOUND);
    c = testenv_tunnel(e, &flow);
    testclient_close(c, 0x100);
    WAIT(e, e->n_ended == 2);
    cr_assert_eq(e->ended[1].why, MASQUE_END_CLIENT);
    cr_assert_eq(e->ended[1].flow, flow);
}

Test(masque_h3, freed_with_tunnels_open_tells_the_clients)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    cr_assert_eq(testenv_send(e, flow, 1000, 1), BASE_OK); /* still queued */
    e->h = masque_h3_free(e->h);
    for (int i = 0; i < 100 && !c->closed; i++)
        testclient_step(c, testenv_clock());
    cr_assert(c->closed && c->close_is_app);
    cr_assert_eq(c->n_datagrams, 0);
    cr_assert_eq(e->n_ended, 0, "free reports nothing");
}

/* ---- fence and barrier ---- */

Test(masque_h3, a_closed_fence_lets_nothing_out)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_OK);
    WAIT(e, c->n_datagrams == 1); /* open passes */
    cr_assert_eq(masque_h3_send(e->h, flow, NULL, (const uint8_t *)"x", 1), BASE_EDENIED, "no pass");
    cr_assert_eq(testenv_send(e, flow, 100, 2), BASE_OK); /* queued while open ... */
    fence_set(e->slot, FENCE_CLOSED);                     /* ... cut off before the flush */
    testenv_settle(e, 50);
    cr_assert_eq(c->n_datagrams, 1);
    fence_set(e->slot, BASE_TIME_NEVER);
    testenv_settle(e, 50);
    cr_assert_eq(c->n_datagrams, 1, "what was dropped comes back");
    cr_assert_geq(testenv_stats(e).drop_fence, 2);
    cr_assert_eq(testenv_send(e, flow, 100, 3), BASE_OK);
    WAIT(e, c->n_datagrams == 2);
    cr_assert_eq(c->datagrams[1][50], 3);
}

/* The first look at the clock is before the deadline, every later one after it: the burst is built, then
 * dropped. */
static base_time clock_deadline;
static unsigned clock_calls;
static base_time clock_that_runs_out(void)
{
    return clock_calls++ == 0 ? clock_deadline - 1 : clock_deadline;
}

Test(masque_h3, a_burst_is_checked_again_right_before_it_leaves)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    testenv_settle(e, 50);                            /* acknowledgements are through */
    clock_deadline = testenv_clock() + 200 * BASE_MS; /* sooner than what counts as a stall */
    fence_set(e->slot, clock_deadline);
    cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_OK);
    uint64_t out = testenv_stats(e).packets_out;
    masque_h3_flush(e->h, testenv_clock(), clock_that_runs_out);
    cr_assert_geq(clock_calls, 2, "the clock was not read again");
    cr_assert_eq(testenv_stats(e).packets_out, out);
    cr_assert_geq(testenv_stats(e).drop_fence, 1);
    testenv_settle(e, 300); /* nothing of it is sent again later */
    cr_assert_eq(c->n_datagrams, 0);
}

Test(masque_h3, a_closed_fence_is_seen_before_packets_are_sealed)
{
    uint64_t flow;
    (void)testenv_tunnel(e, &flow);
    testenv_settle(e, 100);
    clock_deadline = testenv_clock() + 200 * BASE_MS;
    clock_calls = 1; /* past the deadline from the first look on */
    fence_set(e->slot, clock_deadline);
    cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_OK);
    masque_h3_flush(e->h, testenv_clock(), clock_that_runs_out);
    cr_assert_eq(clock_calls, 2, "it looked again: a burst was built");
    cr_assert_eq(testenv_stats(e).drop_fence, 1);
}

static base_time stalled_by;
static base_time clock_after_a_stall(void)
{
    return testenv_clock() + (clock_calls++ == 0 ? 0 : stalled_by);
}

Test(masque_h3, a_flush_that_was_stopped_in_between_drops_what_it_holds)
{
    static const struct {
        base_time by;
        bool leaves;
    } rows[] = {{400 * BASE_MS, true}, {501 * BASE_MS, false}};
    uint64_t flow;
    (void)testenv_tunnel(e, &flow);
    testenv_settle(e, 100);
    for (size_t i = 0; i < 2; i++) {
        struct masque_h3_stats before = testenv_stats(e), after;
        stalled_by = rows[i].by;
        clock_calls = 0;
        cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_OK);
        masque_h3_flush(e->h, testenv_clock(), clock_after_a_stall);
        after = testenv_stats(e);
        cr_assert_eq(after.packets_out - before.packets_out, rows[i].leaves ? 1 : 0, "row %zu", i);
        cr_assert_eq(after.drop_fence - before.drop_fence, rows[i].leaves ? 0 : 1, "row %zu", i);
    }
}

Test(masque_h3, discard_drops_what_waits_and_keeps_the_flow)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_OK);
    masque_h3_discard(e->h);
    testenv_settle(e, 30);
    cr_assert_eq(c->n_datagrams, 0);
    cr_assert_eq(testenv_send(e, flow, 100, 2), BASE_OK);
    WAIT(e, c->n_datagrams == 1);
    cr_assert_eq(c->datagrams[0][50], 2);
}

static base_time clock_that_counts(void)
{
    clock_calls++;
    return testenv_clock();
}

Test(masque_h3, no_more_than_52_packets_leave_between_two_looks)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    for (int round = 0; round < 40; round++) { /* opens the congestion window */
        for (int i = 0; i < 20; i++)
            (void)testenv_send(e, flow, 1280, 1);
        testenv_turn(e);
    }
    testenv_settle(e, 50);
    for (int i = 0; i < 400; i++)
        cr_assert_eq(testenv_send(e, flow, 40, 1), BASE_OK);
    uint64_t out = testenv_stats(e).packets_out;
    clock_calls = 0;
    masque_h3_flush(e->h, testenv_clock(), clock_that_counts);
    out = testenv_stats(e).packets_out - out;
    cr_assert_gt(out, 60, "only %d packets left: this test shows nothing", (int)out);
    cr_assert_leq(out, 52 * (clock_calls - 1), "%d packets, %d looks", (int)out, (int)clock_calls);
    cr_assert_not(c->closed);
}

Test(masque_h3, stop_is_a_barrier)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    struct fence_slot *mine = e->slot;
    for (int i = 0; i < 20; i++)
        cr_assert_eq(testenv_send(e, flow, 1000, 1), BASE_OK);
    client_sends(c, 100, 7); /* on its way when the flow is stopped */
    testclient_step(c, testenv_clock());
    fence_kill(mine);
    masque_h3_stop(e->h, flow);
    cr_assert_eq(testenv_stats(e).drop_fence, 20, "the queue is empty when stop returns");
    fence_slot_give(e->fences, mine); /* no longer used: another generation may have it */
    e->slot = fence_slot_take(e->fences, 2);
    fence_set(e->slot, BASE_TIME_NEVER);
    testenv_settle(e, 100);
    cr_assert_eq(c->n_datagrams, 0, "packets after the barrier");
    cr_assert_eq(e->n_packets, 0, "packets were delivered after the barrier");
    cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_ENOTFOUND);
    cr_assert_eq(e->n_ended, 0, "the stream stays open");
    cr_assert_not(c->streams[0].ended);
    masque_h3_close(e->h, flow, 0x100);
    WAIT(e, c->closed);
    cr_assert_eq(e->n_ended, 1);
}

/* ---- the queue ---- */

Test(masque_h3, the_queue_is_bounded_in_packets_bytes_and_age)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    testenv_settle(e, 100); /* path MTU is found */
    int rv = BASE_OK;
    unsigned n = 0;
    while ((rv = testenv_send(e, flow, 40, 1)) == BASE_OK)
        n++;
    cr_assert_eq(rv, BASE_EFULL);
    cr_assert_eq(n, 512);
    testenv_skew += 60 * BASE_MS; /* nobody flushed for 60 ms: time counts from the first flush */
    base_time now = testenv_clock();
    masque_h3_flush(e->h, now, testenv_clock);
    WAIT(e, c->n_datagrams > 10);
    n = 0;
    while (testenv_send(e, flow, 1280, 2) == BASE_OK)
        n++;
    cr_assert_leq(n, 512 * 1024 / 1280);
    struct masque_h3_stats before = testenv_stats(e);
    masque_h3_flush(e->h, testenv_clock(),
                    testenv_clock); /* sends what congestion control allows, stamps the rest */
    testenv_skew += 51 * BASE_MS;
    testenv_settle(e, 50);
    struct masque_h3_stats after = testenv_stats(e);
    cr_assert_gt(after.drop_queue, before.drop_queue, "old packets were kept");
    cr_assert_eq(e->n_ended, 0);
}

Test(masque_h3, the_queue_is_bounded_in_bytes)
{
    testenv_free(e);
    e = testenv_new(&(struct masque_h3_limits){.queue_bytes = 10 * 1280});
    uint64_t flow;
    (void)testenv_tunnel(e, &flow);
    for (int i = 0; i < 10; i++)
        cr_assert_eq(testenv_send(e, flow, 1280, 1), BASE_OK, "packet %d", i);
    cr_assert_eq(testenv_send(e, flow, 1280, 1), BASE_EFULL);
    cr_assert_eq(testenv_stats(e).drop_queue, 1);
}

/* ---- sizes ---- */

Test(masque_h3, mtu_follows_the_path_and_1280_always_passes)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    cr_assert_geq(masque_h3_mtu(e->h, flow), 1280, "never less is told");
    cr_assert_eq(testenv_send(e, flow, 1280, 1), BASE_OK, "also before discovery has ended");
    WAIT(e, c->n_datagrams == 1);
    WAIT(e, masque_h3_mtu(e->h, flow) > 1400);
    testenv_settle(e, 100);
    cr_assert_eq(masque_h3_mtu(e->h, flow), 1444 - 34, "8 bytes of connection ID, 4 of packet number");
    size_t mtu = masque_h3_mtu(e->h, flow);
    cr_assert_eq(testenv_send(e, flow, mtu + 1, 1), BASE_ERANGE);
    cr_assert_eq(testenv_send(e, flow, 0, 1), BASE_ERANGE);
    cr_assert_eq(testenv_send(e, flow, mtu, 1), BASE_OK, "what it says fits");
    WAIT(e, c->n_datagrams == 2);
    cr_assert_eq(c->datagram_len[1], mtu + 2);
    cr_assert_leq(c->largest_in, 1444);
}

Test(masque_h3, a_path_with_room_for_one_packet_of_1280_is_found)
{
    struct testclient *c =
        testenv_client(/* what an underlay MTU of 1380 leaves, IPv6 */
                       e, (struct testclient_config){
                              .cert_file = e->cert, .key_file = e->key, .alpn = "h3", .max_tx = 1332});
    WAIT(e, c->handshaken && c->got_settings);
    e->answer = TESTENV_ACCEPT;
    size_t s = testenv_request(c, NULL);
    WAIT(e, c->streams[s].status == 200);
    WAIT(e, masque_h3_mtu(e->h, e->rq[0].flow) > 1280);
    cr_assert_eq(testenv_send(e, e->rq[0].flow, 1280, 1), BASE_OK);
    WAIT(e, c->n_datagrams == 1);
    testenv_skew += 6 * BASE_SEC;
    testenv_settle(e, 50);
    cr_assert_eq(e->n_ended, 0);
}

Test(masque_h3, a_path_below_1280_ends_the_flow_and_blocks_nothing_before)
{
    struct testclient *c = testenv_client(
        e,
        (struct testclient_config){.cert_file = e->cert, .key_file = e->key, .alpn = "h3", .max_tx = 1250});
    WAIT(e, c->handshaken && c->got_settings);
    e->answer = TESTENV_ACCEPT;
    size_t s = testenv_request(c, NULL);
    WAIT(e, c->streams[s].status == 200);
    uint64_t flow = e->rq[0].flow;
    cr_assert_eq(testenv_send(e, flow, 1280, 1), BASE_OK); /* can never pass here */
    cr_assert_eq(testenv_send(e, flow, 40, 2), BASE_OK);   /* must not wait behind it */
    WAIT(e, c->n_datagrams == 1);
    cr_assert_eq(c->datagram_len[0], 42);
    cr_assert_eq(e->n_ended, 0);
    for (int i = 0; i < 60 && e->n_ended == 0; i++) {
        testenv_skew += 100 * BASE_MS;
        testenv_turn(e);
    }
    cr_assert_eq(e->n_ended, 1);
    cr_assert_eq(e->ended[0].why, MASQUE_END_MTU);
    cr_assert(strstr(e->ended[0].detail, "1280"), "%s", e->ended[0].detail);
    WAIT(e, c->streams[s].was_reset);
}

Test(masque_h3, a_client_that_takes_small_frames_only_is_told_so)
{
    static const struct {
        const char *name, *text;
        struct testclient_config cfg;
    } rows[] = {
        {"no setting", "SETTINGS_H3_DATAGRAM", {.no_h3_datagram = true}},
        {"no parameter", "max_datagram_frame_size", {.max_datagram_frame_size = 1}},
        {"too small", "max_datagram_frame_size", {.max_datagram_frame_size = 1200}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct testclient_config cfg = rows[i].cfg;
        cfg.cert_file = e->cert;
        cfg.key_file = e->key;
        cfg.alpn = "h3";
        struct testclient *c = testenv_client(e, cfg);
        WAIT(e, c->handshaken && c->got_settings);
        size_t s = testenv_request(c, NULL);
        WAIT(e, c->streams[s].ended);
        cr_assert_eq(c->streams[s].status, 400, "%s", rows[i].name);
        cr_assert(strstr((char *)c->streams[s].body, rows[i].text), "%s: %s", rows[i].name,
                  c->streams[s].body);
    }
    cr_assert_eq(e->n_rq, 0);
    cr_assert_eq(e->n_ended, 0, "never reported, so never ended");
}

/* Bug 33 and the like: the client's address changes; the tunnel, its number and its packets of 1280 bytes
 * stay. */
Test(masque_h3, a_client_that_moves_keeps_its_tunnel)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    WAIT(e, masque_h3_mtu(e->h, flow) > 1400);
    testclient_rebind(c);
    client_sends(c, 100, 5);
    WAIT(e, e->n_packets == 1);
    testenv_settle(e, 100);
    for (uint8_t i = 0; i < 3; i++) {
        cr_assert_eq(testenv_send(e, flow, 1280, i), BASE_OK);
        WAIT(e, c->n_datagrams == i + 1u);
    }
    testenv_skew += 6 * BASE_SEC;
    testenv_settle(e, 50);
    cr_assert_eq(e->n_ended, 0, "%s", e->n_ended ? e->ended[0].detail : "");
    cr_assert_eq(e->n_rq, 1);
}

/* ---- time ---- */

Test(masque_h3, no_answer_in_time_is_503)
{
    struct testclient *c = testenv_connected(e);
    size_t s = testenv_request(c, NULL);
    WAIT(e, e->n_rq == 1);
    for (int i = 0; i < 14 && e->n_ended == 0;
         i++) { /* small steps: the client's keep-alive is its own business */
        testenv_skew += 5 * BASE_SEC;
        testenv_settle(e, 20);
        client_sends(c, 40, 1);
    }
    WAIT(e, c->streams[s].ended);
    cr_assert_eq(c->streams[s].status, 503);
    cr_assert_str_eq(c->streams[s].retry_after, "5");
    cr_assert_eq(e->n_ended, 1);
    cr_assert_eq(e->ended[0].why, MASQUE_END_LOCAL);
    cr_assert_eq(testenv_accept(e, e->rq[0].flow), BASE_ENOTFOUND, "too late");
}

Test(masque_h3, keep_alive_holds_a_quiet_tunnel_and_idle_ends_a_dead_one)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    for (int i = 0; i < 30; i++) {
        testenv_skew += 5 * BASE_SEC;
        testenv_settle(e, 5);
    }
    cr_assert_eq(e->n_ended, 0, "%s", e->n_ended ? e->ended[0].detail : "");
    cr_assert_not(c->closed);
    e->n_clients = 0; /* the client is gone without a word */
    for (int i = 0; i < 20 && e->n_ended == 0; i++) {
        testenv_skew += 5 * BASE_SEC;
        testenv_settle(e, 5);
    }
    e->n_clients = 1;
    cr_assert_eq(e->n_ended, 1);
    cr_assert_eq(e->ended[0].why, MASQUE_END_IDLE);
    cr_assert_eq(testenv_stats(e).open_connections, 0);
}

/* ---- drain ---- */

Test(masque_h3, drain_says_goaway_and_lets_nobody_in)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow), *idle = testenv_connected(e);
    masque_h3_drain(e->h);
    WAIT(e, c->goaway && idle->goaway);
    cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_OK, "what is there goes on");
    WAIT(e, c->n_datagrams == 1);
    struct testclient *late =
        testenv_client(e, (struct testclient_config){.cert_file = e->cert, .key_file = e->key, .alpn = "h3"});
    WAIT(e, late->closed);
    cr_assert_not(late->close_is_app);
    cr_assert_eq(late->close_code, NGTCP2_CONNECTION_REFUSED);
    testenv_skew += 1500 * BASE_MS;
    WAIT(e, idle->closed);
    masque_h3_close(e->h, flow, 0x100);
    WAIT(e, c->closed && testenv_stats(e).open_connections == 0);
    cr_assert_eq(e->n_rq, 1);
}
