/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of one HTTP/3 connection that time or repetition reaches: resets, slow headers, slow capsules.
 */
#include "masque/rate.h"
#include "masque/testenv_test.h"

#include <string.h>

static struct testenv *e;

static void teardown(void)
{
    testenv_free(e);
}

TestSuite(masque_h3_flood, .fini = teardown, .timeout = 60);

static const uint8_t settings[] = {0x00, 0x04, 0x02, 0x33, 0x01};

static struct testclient *raw_client(void)
{
    struct testclient *c = testenv_client(
        e,
        (struct testclient_config){.cert_file = e->cert, .key_file = e->key, .alpn = "h3", .no_http = true});
    WAIT(e, c->handshaken);
    testclient_raw_write(c, testclient_raw_open(c, false), settings, sizeof settings);
    return c;
}

/* Opens a stream, writes the beginning of a request and resets it, `n` times. */
static void open_and_reset(struct testclient *c, unsigned n)
{
    static const uint8_t half[] = {0x01, 0x20, 0x00, 0x00};
    for (unsigned i = 0; i < n && !c->closed; i++) {
        WAIT(e, c->closed || ngtcp2_conn_get_streams_bidi_left(c->quic) > 0);
        if (c->closed)
            return;
        int64_t sid = testclient_raw_open(c, true);
        testclient_raw_write(c, sid, half, sizeof half);
        cr_assert_eq(ngtcp2_conn_shutdown_stream(c->quic, 0, sid, 0x10c), 0);
        testenv_turn(e);
    }
}

Test(masque_h3_flood, streams_reset_by_the_client)
{
    e = testenv_new(&(struct masque_h3_limits){.resets = 20});
    struct testclient *c = raw_client();
    open_and_reset(c, 20);
    testenv_settle(e, 20);
    cr_assert_not(c->closed, "20 are allowed");
    open_and_reset(c, 4);
    WAIT(e, c->closed);
    cr_assert(c->close_is_app);
    cr_assert_eq(c->close_code, 0x107, "0x%x", (int)c->close_code);
    cr_assert_eq(testenv_stats(e).floods, 1);
    WAIT(e, testenv_stats(e).open_connections == 0);
}

Test(masque_h3_flood, resets_are_forgotten_after_a_minute)
{
    e = testenv_new(&(struct masque_h3_limits){.resets = 5, .idle = 300 * BASE_SEC});
    struct testclient *c = raw_client();
    for (int round = 0; round < 3; round++) {
        open_and_reset(c, 5);
        WAIT(e, ngtcp2_conn_get_streams_bidi_left(c->quic) == 8); /* all of them were seen */
        for (int i = 0; i < 13; i++) {
            uint64_t in = testenv_stats(e).datagrams_in;
            ngtcp2_conn_set_keep_alive_timeout(c->quic, NGTCP2_SECONDS);
            testenv_skew += 5 * BASE_SEC;
            WAIT(e, c->closed || testenv_stats(e).datagrams_in > in);
        }
        cr_assert_not(c->closed, "round %d: app %d code 0x%x, error %d", round, c->close_is_app,
                      (int)c->close_code, c->error);
    }
    cr_assert_eq(testenv_stats(e).floods, 0);
}

Test(masque_h3_flood, streams_that_make_us_reset_them)
{
    e = testenv_new(&(struct masque_h3_limits){.resets = 5});
    e->answer = TESTENV_ACCEPT;
    struct testclient *c = testenv_connected(e);
    for (unsigned i = 0; i < 7 && !c->closed; i++) {
        cr_assert_eq(testenv_stats(e).floods, i > 5, "after %u", i);
        size_t s = testenv_request(c, NULL);
        WAIT(e, c->closed || c->streams[s].status == 200);
        if (!c->closed)
            testclient_write(c, s, (uint8_t[]){0x02, 0x00}, 2, false); /* ADDRESS_REQUEST without an entry */
        WAIT(e, c->closed || c->streams[s].was_reset);
    }
    WAIT(e, c->closed);
    cr_assert_eq(c->close_code, 0x107, "0x%x", (int)c->close_code);
    cr_assert_eq(e->n_ended, e->n_rq, "every reported flow ends");
}

Test(masque_h3_flood, headers_that_do_not_end)
{
    static const uint8_t half[] = {0x01, 0x20, 0x00, 0x00};
    e = testenv_new(&(struct masque_h3_limits){.headers = 2 * BASE_SEC});
    struct testclient *c = raw_client();
    int64_t sid = testclient_raw_open(c, true);
    testclient_raw_write(c, sid, half, sizeof half);
    testenv_settle(e, 20);
    cr_assert_eq(ngtcp2_conn_get_streams_bidi_left(c->quic), 7);
    testenv_skew += 1500 * BASE_MS;
    testenv_settle(e, 20);
    cr_assert_eq(ngtcp2_conn_get_streams_bidi_left(c->quic), 7, "it has half a second");
    testenv_skew += 600 * BASE_MS;
    WAIT(e, ngtcp2_conn_get_streams_bidi_left(c->quic) == 8); /* it was aborted, so the next may come */
    testenv_settle(e, 50);
    cr_assert_not(c->closed, "the connection ended for it");
    e->answer = TESTENV_ACCEPT;
    (void)testenv_connected(e);
}

Test(masque_h3_flood, a_capsule_that_does_not_end)
{
    e = testenv_new(&(struct masque_h3_limits){.capsule = 2 * BASE_SEC});
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    for (int i = 0; i < 10; i++) { /* one a second, each begun by the piece before: all of them end in time */
        testclient_write(c, 0, i == 0 ? (uint8_t[]){0x17} : (uint8_t[]){0x01}, 1, false);
        testenv_settle(e, 3);
        testclient_write(c, 0, i == 0 ? (uint8_t[]){0x01, 0xaa} : (uint8_t[]){0x00}, i == 0 ? 2 : 1, false);
        testenv_settle(e, 3);
        testenv_skew += BASE_SEC;
    }
    cr_assert_eq(e->n_ended, 0, "%s", e->n_ended ? e->ended[0].detail : "");
    testclient_write(c, 0, (uint8_t[]){0x17, 0x05, 0xaa}, 3, false);
    testenv_settle(e, 10);
    testenv_skew += 1900 * BASE_MS;
    testenv_settle(e, 10);
    cr_assert_eq(e->n_ended, 0, "it has a tenth of a second");
    testenv_skew += 200 * BASE_MS;
    WAIT(e, e->n_ended == 1 && c->streams[0].was_reset);
    cr_assert(strstr(e->ended[0].detail, "not finished in time"), "%s", e->ended[0].detail);
    cr_assert_eq(c->streams[0].code, 0x10e);
    cr_assert_not(c->closed);
}

/* One after the other, so that no limit on connections at once is reached: after the burst a network has to
 * show its address, and is refused all the same, until it has earned the next one. */
Test(masque_h3_flood, new_connections_of_one_network)
{
    e = testenv_new(&(struct masque_h3_limits){.per_source = 1});
    for (unsigned i = 0; i < 1 + MASQUE_RATE_EXTRA; i++) {
        struct testclient *c = testenv_connected(e);
        cr_assert_not(ngtcp2_conn_after_retry(c->quic), "%u", i);
        testclient_close(c, 0x100);
        WAIT(e, testenv_stats(e).open_connections == 0);
        e->n_clients--;
        testclient_free(c);
    }
    struct testclient *late =
        testenv_client(e, (struct testclient_config){.cert_file = e->cert, .key_file = e->key, .alpn = "h3"});
    WAIT(e, late->closed);
    cr_assert_eq(late->close_code, NGTCP2_CONNECTION_REFUSED);
    cr_assert_eq(testenv_stats(e).full_rate, 1);
    cr_assert_eq(testenv_stats(e).retries, 1, "its address was asked for first");
    testenv_skew += 1100 * BASE_MS * (1 + MASQUE_RATE_EXTRA);
    (void)testenv_connected(e);
}

Test(masque_h3_flood, new_connections_of_all)
{
    e = testenv_new(&(struct masque_h3_limits){.rate = 2});
    for (unsigned i = 0; i < 2 + MASQUE_RATE_EXTRA; i++) {
        struct testclient *c = testenv_connected(e);
        testclient_close(c, 0x100);
        WAIT(e, testenv_stats(e).open_connections == 0);
        e->n_clients--;
        testclient_free(c);
    }
    for (unsigned i = 0; i < 2; i++) { /* one more may have been earned meanwhile */
        struct testclient *c = testenv_client(
            e, (struct testclient_config){.cert_file = e->cert, .key_file = e->key, .alpn = "h3"});
        WAIT(e, c->closed || c->handshaken);
    }
    cr_assert_geq(testenv_stats(e).full_rate, 1);
}
