/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP/2 endpoint: life of a tunnel, packets both ways, fence and barrier, drain, reload.
 */
#include "masque/h2client_test.h"

#include <criterion/criterion.h>
#include <unistd.h>

static struct testenv *env(const struct masque_h2_limits *l)
{
    struct testenv *e = testenv_new(NULL);
    testenv_h2(e, l);
    return e;
}

static void done(struct testenv *e)
{
    h2client_free_all(e);
    testenv_free(e);
    testenv_skew = 0;
}

static struct masque_h2_stats stats(const struct testenv *e)
{
    struct masque_h2_stats s;
    masque_h2_stats(e->h2, &s);
    return s;
}

Test(masque_h2, tunnel_carries_packets_both_ways)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = h2client_tunnel(e, &flow);
    struct h2client_stream *s = c->streams[0];
    cr_assert(c->connect_protocol);
    cr_assert(flow & MASQUE_FLOW_H2);
    cr_assert_eq(e->rq[0].transport, MASQUE_H2);
    cr_assert_eq(e->rq[0].identity, MASQUE_IDENTITY_URI);
    cr_assert_str_eq(e->rq[0].uri, "spiffe://acme/site-1");
    cr_assert_eq(strlen(e->rq[0].credential_id), 64);
    cr_assert_str_eq(s->capsule_protocol, "?1");

    struct testclient_stream body = {.n_body = 0};
    uint64_t types[8];
    struct masque_address a[16];
    struct masque_route r[16];
    size_t n_a = 0, n_r = 0;
    memcpy(body.body, s->body, s->n_body);
    body.n_body = s->n_body;
    cr_assert_eq(testenv_capsules(&body, types, a, &n_a, r, &n_r, 8), 2);
    cr_assert_eq(types[0], MASQUE_CAPSULE_ADDRESS_ASSIGN);
    cr_assert_eq(types[1], MASQUE_CAPSULE_ROUTE_ADVERTISEMENT);
    cr_assert_eq(n_a, 1);
    cr_assert_eq(a[0].len, 96);
    cr_assert_eq(n_r, 2);

    uint8_t up[2000], pkt[1400];
    memset(pkt, 7, sizeof pkt);
    h2client_send(c, 0, up, h2client_capsule(up, pkt, 1280));
    WAIT(e, e->n_packets == 1);
    cr_assert_eq(e->packets[0].flow, flow);
    cr_assert_eq(e->packets[0].len, 1280);
    cr_assert_eq(memcmp(e->packets[0].data, pkt, 1280), 0);

    size_t last = 0;
    for (unsigned i = 0; i < 20; i++)
        cr_assert_eq(testenv_send(e, flow, 1000 + i, (uint8_t)i), BASE_OK);
    WAIT(e, h2client_packets(s, &last, false) == 20);
    cr_assert_eq(last, 1019);
    cr_assert_eq(masque_h2_mtu(e->h2, flow), 1500);
    cr_assert_eq(testenv_send(e, flow, 1501, 0), BASE_ERANGE);
    cr_assert_eq(stats(e).packets_in, 1);
    cr_assert_eq(stats(e).packets_out, 20);
    cr_assert_eq(stats(e).bytes_in, 1280);
    done(e);
}

Test(masque_h2, refusal_says_why_and_ends_the_stream)
{
    struct testenv *e = env(NULL);
    struct h2client *c = h2client_connected(e);
    e->answer = TESTENV_REFUSE;
    size_t s = h2client_connect_ip(c);
    WAIT(e, c->streams[s]->closed);
    cr_assert_eq(c->streams[s]->status, 403);
    cr_assert_str_eq(c->streams[s]->retry_after, "7");
    cr_assert_eq(c->streams[s]->capsule_protocol[0], 0);
    c->streams[s]->body[c->streams[s]->n_body] = 0;
    cr_assert_str_eq((char *)c->streams[s]->body, "reason: no binding for this identity\n");
    WAIT(e, e->n_ended == 1);
    /* the connection lives, another request may come */
    e->answer = TESTENV_ACCEPT;
    s = h2client_connect_ip(c);
    WAIT(e, c->streams[s]->status == 200);
    done(e);
}

Test(masque_h2, second_tunnel_on_a_connection_is_409)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = h2client_tunnel(e, &flow);
    size_t s = h2client_connect_ip(c);
    WAIT(e, c->streams[s]->status == 409);
    cr_assert_eq(e->n_rq, 1);
    done(e);
}

Test(masque_h2, packets_before_the_answer_are_kept_up_to_a_limit)
{
    struct testenv *e = env(NULL);
    struct h2client *c = h2client_connected(e);
    size_t s = h2client_connect_ip(c);
    uint8_t up[300], pkt[200] = {0x60};
    for (unsigned i = 0; i < 10; i++) {
        pkt[1] = (uint8_t)i;
        h2client_send(c, s, up, h2client_capsule(up, pkt, 200));
    }
    WAIT(e, e->n_rq == 1 && stats(e).drop_early == 2);
    cr_assert_eq(e->n_packets, 0);
    cr_assert_eq(testenv_accept(e, e->rq[0].flow), BASE_OK);
    WAIT(e, e->n_packets == 8);
    cr_assert_eq(e->packets[7].data[1], 7);
    done(e);
}

Test(masque_h2, capsules_may_be_split_anywhere)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = h2client_tunnel(e, &flow);
    uint8_t up[700], pkt[200] = {0x60};
    size_t n = 0;
    static const uint8_t grease[] = {0x41, 0x88, 0x03, 1, 2, 3}; /* an unknown capsule */
    for (unsigned i = 0; i < 3; i++)
        n += h2client_capsule(up + n, pkt, 200);
    for (size_t at = 0; at < n; at++) { /* one byte a frame */
        h2client_send(c, 0, up + at, 1);
        h2client_step(c);
    }
    h2client_send(c, 0, grease, sizeof grease);
    h2client_send(c, 0, up, n); /* three and one in one frame */
    WAIT(e, e->n_packets == 6);
    cr_assert_eq(e->n_ended, 0);
    done(e);
}

Test(masque_h2, address_request_is_answered)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = h2client_tunnel(e, &flow);
    static const uint8_t ask[] = {2, 19, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    size_t before = c->streams[0]->n_body;
    h2client_send(c, 0, ask, sizeof ask);
    WAIT(e, c->streams[0]->n_body > before);
    cr_assert_eq(c->streams[0]->body[before], MASQUE_CAPSULE_ADDRESS_ASSIGN);
    cr_assert_eq(c->streams[0]->body[before + 2], 5);
    done(e);
}

Test(masque_h2, client_ends_its_stream)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = h2client_tunnel(e, &flow);
    h2client_end(c, 0);
    WAIT(e, e->n_ended == 1 && c->streams[0]->closed);
    cr_assert_eq(e->ended[0].why, MASQUE_END_CLIENT);
    cr_assert_eq(c->streams[0]->code, NGHTTP2_NO_ERROR);
    cr_assert(c->streams[0]->ended);
    done(e);
}

Test(masque_h2, connection_lost_inside_a_capsule_ends_the_flow)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = h2client_tunnel(e, &flow);
    static const uint8_t half[] = {0, 100, 0, 0x60};
    h2client_send(c, 0, half, sizeof half);
    testenv_settle(e, 20);
    h2client_free(c);
    WAIT(e, e->n_ended == 1 && stats(e).open_connections == 0);
    done(e);
}

/* ---- fence ---- */

Test(masque_h2, nothing_is_sent_when_the_fence_is_closed)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = h2client_tunnel(e, &flow);
    size_t last = 0;
    cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_OK);
    WAIT(e, h2client_packets(c->streams[0], &last, false) == 1);
    testenv_settle(e, 100); /* acknowledged */
    cr_assert_eq(testenv_send(e, flow, 101, 1), BASE_OK);
    cr_assert(fence_set(e->slot, FENCE_CLOSED));
    testenv_settle(e, 100);
    cr_assert_eq(h2client_packets(c->streams[0], &last, false), 1);
    cr_assert_eq(e->n_ended, 0, "nothing was in the socket, so the session may stay");
    cr_assert(fence_set(e->slot, BASE_TIME_NEVER));
    cr_assert_eq(testenv_send(e, flow, 102, 1), BASE_OK);
    WAIT(e, h2client_packets(c->streams[0], &last, false) == 2);
    cr_assert_eq(last, 102);
    done(e);
}

/* A client that reads nothing and has a small receive buffer: the socket fills up. */
static struct h2client *stuffed(struct testenv *e, uint64_t *ret_flow)
{
    struct h2client *c = h2client_new(
        e, (struct h2client_config){
               .cert_file = e->cert, .key_file = e->key, .alpn = "\2h2", .window = 1 << 30, .rcvbuf = 4096});
    WAIT(e, c->settings_seen);
    e->answer = TESTENV_ACCEPT;
    (void)h2client_connect_ip(c);
    WAIT(e, c->streams[0]->status == 200 && c->streams[0]->n_body > 0);
    *ret_flow = e->rq[e->n_rq - 1].flow;
    cr_assert_eq(nghttp2_session_set_local_window_size(c->http, 0, 0, 1 << 30), 0);
    testenv_settle(e, 20);
    c->mute = true;
    for (unsigned i = 0; i < 4000; i++) {
        (void)testenv_send(e, *ret_flow, 1400, 1);
        testenv_endpoint(e);
    }
    cr_assert(stats(e).drop_queue > 0, "the socket took everything");
    return c;
}

/* What the client can still read from its socket. */
static size_t drained(struct h2client *c)
{
    size_t last = 0;
    c->mute = false;
    for (unsigned i = 0; i < 200 && !c->eof; i++)
        h2client_step(c);
    return h2client_packets(c->streams[0], &last, false);
}

Test(masque_h2, deadline_with_packets_in_the_socket_resets_the_connection)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = stuffed(e, &flow);
    base_time deadline = testenv_clock() + 5 * BASE_SEC, wake;
    cr_assert(fence_set(e->slot, deadline));
    testenv_skew += deadline - testenv_clock() - 10 * BASE_MS; /* shortly before it, the flow looks again */
    testenv_endpoint(e);
    testenv_endpoint(e);
    wake = masque_h2_expiry(e->h2);
    cr_assert(wake <= deadline || testenv_clock() >= deadline,
              "it does not wake at its deadline, but %d ms later", (int)((wake - deadline) / BASE_MS));
    WAIT(e, e->n_ended == 1);
    cr_assert_eq(e->ended[0].why, MASQUE_END_LOCAL);
    cr_assert_eq(stats(e).resets_fence, 1);
    size_t n = drained(c);
    cr_assert(c->reset, "an abortive end");
    cr_assert(n < 200, "%zu packets came after the deadline", n);
    done(e);
}

Test(masque_h2, killed_slot_with_packets_in_the_socket_resets_the_connection)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = stuffed(e, &flow);
    cr_assert(fence_set(e->slot, FENCE_CLOSED)); /* no order, no deadline: the look every 20 ms sees it */
    WAIT(e, e->n_ended == 1);
    (void)drained(c);
    cr_assert(c->reset);
    done(e);
}

Test(masque_h2, a_piece_that_waits_is_not_written_once_the_fence_is_closed)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = stuffed(e, &flow);
    cr_assert(fence_set(e->slot, FENCE_CLOSED));
    c->mute = false;
    for (unsigned i = 0; i < 500 && stats(e).resets_fence == 0;
         i++) { /* the socket takes more; no timer runs */
        h2client_step(c);
        masque_h2_read(e->h2, testenv_clock(), 16);
        masque_h2_flush(e->h2, testenv_clock(), testenv_clock);
    }
    cr_assert_eq(stats(e).resets_fence, 1);
    cr_assert(stats(e).drop_fence > 0, "the look before the write is what ended it");
    done(e);
}

/* The kernel holds all that was sent, more than the client's buffer: nothing is left with us. */
static struct h2client *handed_over(struct testenv *e, uint64_t *ret_flow)
{
    struct h2client *c = h2client_new(
        e, (struct h2client_config){
               .cert_file = e->cert, .key_file = e->key, .alpn = "\2h2", .window = 1 << 30, .rcvbuf = 4096});
    WAIT(e, c->settings_seen);
    e->answer = TESTENV_ACCEPT;
    (void)h2client_connect_ip(c);
    WAIT(e, c->streams[0]->status == 200 && c->streams[0]->n_body > 0);
    *ret_flow = e->rq[0].flow;
    testenv_settle(e, 20);
    c->mute = true;
    for (unsigned i = 0; i < 12; i++) { /* more than the client's buffer, less than the kernel takes */
        cr_assert_eq(testenv_send(e, *ret_flow, 1400, 1), BASE_OK);
        testenv_endpoint(e);
    }
    cr_assert_eq(stats(e).packets_out, 12);
    return c;
}

Test(masque_h2, stop_looks_into_the_socket)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = handed_over(e, &flow);
    masque_h2_stop(e->h2, flow);
    cr_assert_eq(stats(e).resets_fence, 1);
    (void)drained(c);
    cr_assert(c->reset);
    done(e);
}

Test(masque_h2, a_busy_client_does_not_put_off_the_look)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = handed_over(e, &flow);
    uint8_t up[300], pkt[200] = {0x60};
    cr_assert(fence_set(e->slot, FENCE_CLOSED));
    for (unsigned i = 0; i < 60 && e->n_ended == 0; i++) { /* it has something to say every millisecond */
        h2client_send(c, 0, up, h2client_capsule(up, pkt, 200));
        h2client_step(c);
        testenv_skew += BASE_MS;
        testenv_endpoint(e);
    }
    cr_assert_eq(e->n_ended, 1, "nobody looked for 60 ms");
    done(e);
}

Test(masque_h2, stop_with_packets_in_the_socket_resets_at_once)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = stuffed(e, &flow);
    masque_h2_stop(e->h2, flow);
    cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_ENOTFOUND);
    (void)drained(c); /* without a turn of the endpoint */
    cr_assert(c->reset, "the barrier is the call itself");
    WAIT(e, e->n_ended == 1);
    done(e);
}

Test(masque_h2, stop_of_a_quiet_flow_keeps_the_stream_until_close)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = h2client_tunnel(e, &flow);
    uint8_t up[300], pkt[200] = {0x60};
    testenv_settle(e, 20);
    masque_h2_stop(e->h2, flow);
    h2client_send(c, 0, up, h2client_capsule(up, pkt, 200));
    testenv_settle(e, 50);
    cr_assert_eq(e->n_packets, 0);
    cr_assert_eq(e->n_ended, 0);
    masque_h2_close(e->h2, flow);
    WAIT(e, e->n_ended == 1 && c->goaway && c->streams[0]->closed);
    cr_assert_eq(c->streams[0]->code, NGHTTP2_CANCEL);
    cr_assert(!c->reset, "nothing was in the socket: a clean end");
    WAIT(e, c->eof && stats(e).open_connections == 0);
    done(e);
}

Test(masque_h2, thread_stopped_within_a_flush_sends_nothing)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = h2client_tunnel(e, &flow);
    testenv_settle(e, 20);
    cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_OK);
    base_time began = testenv_clock();
    testenv_skew += 600 * BASE_MS; /* the next look at the clock comes so much later */
    masque_h2_flush(e->h2, began, testenv_clock);
    size_t last = 0;
    for (unsigned i = 0; i < 100; i++)
        h2client_step(c);
    cr_assert_eq(h2client_packets(c->streams[0], &last, false), 0);
    WAIT(e, e->n_ended == 1);
    done(e);
}

Test(masque_h2, discard_drops_the_queue_and_resets_what_was_begun)
{
    struct testenv *e = env(NULL);
    uint64_t a, b;
    struct h2client *c = h2client_tunnel(e, &a), *d = stuffed(e, &b);
    size_t last = 0;
    cr_assert_eq(testenv_send(e, a, 100, 1), BASE_OK);
    masque_h2_discard(e->h2);
    WAIT(e, e->n_ended == 1);
    cr_assert_eq(e->ended[0].flow, b);
    testenv_settle(e, 20);
    cr_assert_eq(h2client_packets(c->streams[0], &last, false), 0);
    (void)d;
    cr_assert_eq(testenv_send(e, a, 101, 1), BASE_OK);
    WAIT(e, h2client_packets(c->streams[0], &last, false) == 1);
    done(e);
}

/* ---- pressure ---- */

Test(masque_h2, slow_reader_costs_a_bounded_queue_and_its_input_goes_on)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = stuffed(e, &flow);
    uint8_t up[300], pkt[200] = {0x60};
    unsigned before = e->n_packets;
    cr_assert(stats(e).packets_out < 200, "%d packets are with the kernel: more than it may hold unsent",
              (int)stats(e).packets_out);
    for (unsigned i = 0; i < 10; i++)
        h2client_send(c, 0, up, h2client_capsule(up, pkt, 200));
    WAIT(e, e->n_packets == before + 10);
    testenv_skew += 31 * BASE_SEC; /* longer than `blocked` */
    WAIT(e, e->n_ended == 1);
    cr_assert_eq(e->ended[0].why, MASQUE_END_IDLE, "%s", e->ended[0].detail);
    done(e);
}

Test(masque_h2, small_windows_split_capsules_and_old_packets_are_dropped)
{
    struct testenv *e = env(&(struct masque_h2_limits){.queue_age = BASE_SEC});
    struct h2client *c = h2client_new(
        e, (struct h2client_config){.cert_file = e->cert, .key_file = e->key, .alpn = "\2h2", .window = 300});
    e->answer = TESTENV_ACCEPT;
    WAIT(e, c->settings_seen);
    (void)h2client_connect_ip(c);
    WAIT(e, c->streams[0]->status == 200);
    uint64_t flow = e->rq[0].flow;
    size_t last = 0;
    cr_assert_eq(testenv_send(e, flow, 1400, 1), BASE_OK);
    WAIT(e, h2client_packets(c->streams[0], &last, false) == 1);
    cr_assert(c->max_data <= 300);
    cr_assert_eq(last, 1400);
    c->mute = true; /* sends no WINDOW_UPDATE any more */
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(testenv_send(e, flow, 1400, 2), BASE_OK);
    testenv_endpoint(e);
    testenv_skew += 2 * BASE_SEC;
    cr_assert_eq(testenv_send(e, flow, 1300, 3), BASE_OK);
    testenv_settle(e, 20);
    c->mute = false;
    WAIT(e, last == 1300 || (h2client_packets(c->streams[0], &last, false), last == 1300));
    cr_assert(h2client_packets(c->streams[0], &last, false) <= 3,
              "the one that was begun, and the young one");
    cr_assert(stats(e).drop_queue >= 2);
    done(e);
}

/* ---- end and renewal ---- */

Test(masque_h2, drain_tells_clients_and_takes_no_more)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = h2client_tunnel(e, &flow), *idle = h2client_connected(e);
    size_t last = 0;
    masque_h2_drain(e->h2);
    WAIT(e, c->goaway && idle->goaway);
    cr_assert_eq(c->goaway_code, NGHTTP2_NO_ERROR);
    cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_OK);
    WAIT(e, h2client_packets(c->streams[0], &last, false) == 1);
    struct h2client *late =
        h2client_new(e, (struct h2client_config){.cert_file = e->cert, .key_file = e->key, .alpn = "\2h2"});
    cr_assert(late->eof, "refused at once");
    testenv_skew += 2 * BASE_SEC;
    WAIT(e, idle->eof);
    h2client_end(c, 0);
    WAIT(e, stats(e).open_connections == 0);
    done(e);
}

Test(masque_h2, ping_keeps_a_quiet_tunnel_and_finds_a_dead_one)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = h2client_tunnel(e, &flow);
    for (unsigned i = 1; i <= 5; i++) {
        testenv_skew += 16 * BASE_SEC;
        WAIT(e, c->pings == i);
        testenv_settle(e, 20);
    }
    cr_assert_eq(e->n_ended, 0);
    c->mute = true;
    testenv_skew += 16 * BASE_SEC;
    testenv_settle(e, 20);
    testenv_skew += 46 * BASE_SEC;
    WAIT(e, e->n_ended == 1);
    cr_assert_eq(e->ended[0].why, MASQUE_END_IDLE);
    done(e);
}

Test(masque_h2, idle_connection_without_a_tunnel_is_closed)
{
    struct testenv *e = env(NULL);
    struct h2client *c = h2client_connected(e);
    for (unsigned i = 0; i < 4; i++) { /* its answers to PINGs do not count */
        testenv_skew += 16 * BASE_SEC;
        testenv_settle(e, 20);
    }
    WAIT(e, c->goaway && c->eof);
    done(e);
}

Test(masque_h2, answer_that_does_not_come_is_503)
{
    struct testenv *e = env(NULL);
    struct h2client *c = h2client_connected(e);
    size_t s = h2client_connect_ip(c);
    WAIT(e, e->n_rq == 1);
    for (unsigned i = 0; i < 4; i++) {
        testenv_skew += 16 * BASE_SEC;
        testenv_settle(e, 20);
    }
    WAIT(e, c->streams[s]->status == 503);
    cr_assert_str_eq(c->streams[s]->retry_after, "5");
    WAIT(e, e->n_ended == 1);
    done(e);
}

Test(masque_h2, reload_serves_the_new_certificate_and_keeps_sessions)
{
    struct testenv *e = env(NULL);
    uint64_t flow;
    struct h2client *c = h2client_tunnel(e, &flow);
    struct masque_h2_tls *fresh = NULL;
    struct base_err err = {0};
    size_t last = 0;
    FILE *f = fopen(e->server_key, "w");
    cr_assert(f);
    (void)fclose(f);
    cr_assert_eq(masque_h2_reload_prepare(e->h2, &fresh, &err), BASE_EINVAL);
    cr_assert_null(fresh);
    struct testpki_cert *server =
        testpki_new(&(struct testpki_spec){.cn = "edge two", .eku = "serverAuth", .san = "DNS:masque.test"});
    testpki_write(server, NULL, e->server_cert, e->server_key);
    testpki_free(server);
    cr_assert_eq(masque_h2_reload_prepare(e->h2, &fresh, &err), BASE_OK, "%s", err.msg);
    masque_h2_reload_commit(e->h2, fresh, true);
    struct h2client *d = h2client_connected(e);
    char name[64] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_get0_peer_certificate(d->ssl)), NID_commonName, name,
                              sizeof name);
    cr_assert_str_eq(name, "edge two");
    cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_OK);
    WAIT(e, h2client_packets(c->streams[0], &last, false) == 1);
    done(e);
}
