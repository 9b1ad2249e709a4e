/* SPDX-License-Identifier: Apache-2.0
 *
 * Who gets in: certificates and ALPN over QUIC, limits, and what strangers are told.
 */
#include "masque/testenv_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct testenv *e;

static void setup(void)
{
    e = testenv_new(NULL);
}

static void teardown(void)
{
    testenv_free(e);
}

TestSuite(masque_h3_tls, .init = setup, .fini = teardown, .timeout = 60);
TestSuite(masque_h3_limits, .timeout = 60);

#define ALERT(n) (0x100u + (n))

/* Connects with `spec`'s certificate and sends a request as soon as the client's side of the handshake allows
 * it. */
static struct testclient *try_with(const struct testpki_spec *spec, const struct testpki_cert *also,
                                   const char *alpn, bool stolen)
{
    char cert[96], key[96];
    (void)snprintf(cert, sizeof cert, "%s/try.crt", e->dir);
    (void)snprintf(key, sizeof key, "%s/try.key", e->dir);
    struct testclient_config cfg = {.alpn = alpn};
    if (spec) {
        struct testpki_cert *c = testpki_new(spec);
        testpki_write(c, also, cert, key);
        if (stolen) { /* the right certificate, signed for with another key */
            struct testpki_cert *other = testpki_new(spec);
            testpki_write(other, NULL, NULL, key);
            testpki_free(other);
        }
        testpki_free(c);
        cfg.cert_file = cert;
        cfg.key_file = key;
    }
    struct testclient *c = testenv_client(e, cfg);
    (void)unlink(cert);
    (void)unlink(key);
    bool asked = false;
    for (base_time until = loop_clock() + 3 * BASE_SEC; loop_clock() < until && !c->closed && e->n_rq == 0;) {
        testenv_turn(e);
        if (!asked && c->http && c->handshaken && !c->closed) {
            (void)testenv_request(c, NULL);
            asked = true;
        }
    }
    return c;
}

Test(masque_h3_tls, certificates)
{
    struct testpki_cert *other = testpki_new(&(struct testpki_spec){.cn = "other root", .ca = true});
    struct testpki_cert *middle =
        testpki_new(&(struct testpki_spec){.cn = "middle", .ca = true, .issuer = e->root});
    static const char nul[] = "spiffe://acme/a\0b";
#define URI "URI:spiffe://acme/site-1"
    const struct {
        const char *name;
        bool has_cert;
        struct testpki_spec spec;
        const struct testpki_cert *also;
        uint64_t code; /* 0 = gets in */
        enum masque_identity id;
    } rows[] = {
        {"good",
         true,
         {.cn = "a", .issuer = e->root, .eku = "clientAuth", .san = URI},
         NULL,
         0,
         MASQUE_IDENTITY_URI},
        {"through an intermediate",
         true,
         {.cn = "a", .issuer = middle, .eku = "clientAuth", .san = URI},
         middle,
         0,
         MASQUE_IDENTITY_URI},
        {"RSA",
         true,
         {.cn = "a", .issuer = e->root, .san = URI, .key = TESTPKI_RSA},
         NULL,
         0,
         MASQUE_IDENTITY_URI},
        {"Ed25519",
         true,
         {.cn = "a", .issuer = e->root, .san = URI, .key = TESTPKI_ED25519},
         NULL,
         0,
         MASQUE_IDENTITY_URI},
        {"no URI", true, {.cn = "a", .issuer = e->root, .san = "DNS:a.b"}, NULL, 0, MASQUE_IDENTITY_NONE},
        {"two URIs",
         true,
         {.cn = "a", .issuer = e->root, .san = URI "," URI "2"},
         NULL,
         0,
         MASQUE_IDENTITY_MANY},
        {"NUL in the URI",
         true,
         {.cn = "a", .issuer = e->root, .uri = nul, .n_uri = sizeof nul - 1, .has_uri = true},
         NULL,
         0,
         MASQUE_IDENTITY_BAD},
        {"none", false, {.cn = ""}, NULL, ALERT(116), 0},
        {"unknown CA",
         true,
         {.cn = "a", .issuer = other, .eku = "clientAuth", .san = URI},
         NULL,
         ALERT(48),
         0},
        {"unknown CA with its root", true, {.cn = "a", .issuer = other, .san = URI}, other, ALERT(48), 0},
        {"self-signed", true, {.cn = "a", .eku = "clientAuth", .san = URI}, NULL, ALERT(48), 0},
        {"without its intermediate", true, {.cn = "a", .issuer = middle, .san = URI}, NULL, ALERT(48), 0},
        {"for servers only",
         true,
         {.cn = "a", .issuer = e->root, .eku = "serverAuth", .san = URI},
         NULL,
         ALERT(43),
         0},
        {"expired",
         true,
         {.cn = "a", .issuer = e->root, .san = URI, .from = -7200, .to = -60},
         NULL,
         ALERT(45),
         0},
        {"not yet valid",
         true,
         {.cn = "a", .issuer = e->root, .san = URI, .from = 3600, .to = 7200},
         NULL,
         ALERT(45),
         0},
    };
    uint64_t failed = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        e->n_rq = 0;
        struct testclient *c = try_with(rows[i].has_cert ? &rows[i].spec : NULL, rows[i].also, "h3", false);
        if (rows[i].code == 0) {
            cr_assert_eq(e->n_rq, 1, "%s: did not get in (code 0x%x)", rows[i].name, (int)c->close_code);
            cr_assert_eq(e->rq[0].identity, rows[i].id, "%s", rows[i].name);
            cr_assert_eq(e->rq[0].uri[0] != 0, rows[i].id == MASQUE_IDENTITY_URI, "%s", rows[i].name);
        } else {
            cr_assert_eq(e->n_rq, 0, "%s: got in", rows[i].name);
            cr_assert(c->closed, "%s: nobody told it", rows[i].name);
            cr_assert_eq(c->close_code, rows[i].code, "%s: code 0x%x", rows[i].name, (int)c->close_code);
            failed++;
        }
        cr_assert_eq(testenv_stats(e).handshakes_failed, failed, "%s", rows[i].name);
    }
    testpki_free(other);
    testpki_free(middle);
}

Test(masque_h3_tls, a_stolen_certificate_without_its_key_is_worth_nothing)
{
    struct testpki_spec spec = {.cn = "a", .issuer = e->root, .eku = "clientAuth", .san = URI};
    if (!testtls_takes_mismatch())
        cr_skip("this TLS library does not load a key that does not match");
    struct testclient *c = try_with(&spec, NULL, "h3", true);
    cr_assert_eq(e->n_rq, 0);
    cr_assert(c->closed);
}

/* As OpenSSL's and browsers' clients do by default; our groups have no post-quantum one, so the other share
 * is used. */
Test(masque_h3_tls, a_client_hello_in_two_datagrams)
{
    if (!testtls_has_big_hello())
        cr_skip("this TLS library has no post-quantum key share");
    struct testclient *c =
        testenv_client(e, (struct testclient_config){
                              .cert_file = e->cert, .key_file = e->key, .alpn = "h3", .big_hello = true});
    WAIT(e, c->handshaken && c->got_settings);
    cr_assert_eq(testenv_stats(e).open_connections, 1);
    cr_assert_eq(testenv_stats(e).handshakes_failed, 0);
}

Test(masque_h3_tls, alpn_is_h3_or_nothing)
{
    static const char *const rows[] = {NULL, "hq-interop", "h2", "h3-29"};
    struct testpki_spec spec = {.cn = "a", .issuer = e->root, .eku = "clientAuth", .san = URI};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct testclient *c = try_with(&spec, NULL, rows[i], false);
        const char *name = rows[i] ? rows[i] : "none";
        cr_assert_eq(e->n_rq, 0, "ALPN %s got in", name);
        cr_assert(c->closed, "ALPN %s", name);
        cr_assert_eq(c->close_code, ALERT(120), "ALPN %s: code 0x%x", name, (int)c->close_code);
    }
    cr_assert_eq(testenv_stats(e).handshakes_failed, 4);
}

Test(masque_h3_tls, no_secret_goes_to_a_key_log)
{
    char file[96];
    (void)snprintf(file, sizeof file, "%s/keys", e->dir);
    (void)setenv("SSLKEYLOGFILE", file, 1);
    uint64_t flow;
    (void)testenv_tunnel(e, &flow);
    FILE *f = fopen(file, "re");
    char line[512];
    int server_lines = 0;
    while (f && fgets(line, sizeof line, f))
        server_lines++;
    if (f)
        (void)fclose(f);
    (void)unlink(file);
    cr_assert_eq(server_lines, 0);
}

Test(masque_h3_tls, reload_takes_good_files_and_keeps_the_old_for_bad_ones)
{
    struct base_err err = {0};
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow),
                      *half = testenv_client(e, (struct testclient_config){
                                                    .cert_file = e->cert, .key_file = e->key, .alpn = "h3"});
    testenv_endpoint(e); /* its handshake is under way with the old credentials */
    struct testpki_cert *fresh = testpki_new(&(struct testpki_spec){.cn = "edge", .eku = "serverAuth"});
    testpki_write(fresh, NULL, NULL, e->server_key); /* key of another certificate */
    cr_assert_eq(masque_h3_reload(e->h, &err), BASE_EINVAL);
    cr_assert(strstr(err.msg, e->server_key), "%s", err.msg);
    testpki_write(fresh, NULL, e->server_cert, NULL);
    cr_assert_eq(masque_h3_reload(e->h, &err), BASE_OK, "%s", err.msg);
    WAIT(e, half->handshaken && half->got_settings);
    (void)testenv_connected(e);
    cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_OK);
    WAIT(e, c->n_datagrams == 1);
    FILE *f = fopen(e->client_ca, "w");
    (void)fputs("-----BEGIN CERTIFICATE-----\nnonsense\n", f);
    (void)fclose(f);
    cr_assert_eq(masque_h3_reload(e->h, &err), BASE_EINVAL);
    cr_assert(strstr(err.msg, e->client_ca), "%s", err.msg);
    (void)testenv_connected(e);
    testpki_free(fresh);
}

/* ---- configuration ---- */

Test(masque_h3_tls, bad_configuration_is_named)
{
    static const struct {
        const char *listen, *text;
    } rows[] = {
        {NULL, "port is missing"},
        {"", "port is missing"},
        {"4433", "port is missing"},
        {"[::1]", "port must be a number"},
        {"[::1]:", "port must be a number"},
        {"[::1]:65536", "port must be a number"},
        {"[::1]:x", "port must be a number"},
        {":4433", "address is missing"},
        {"[]:4433", "address is missing"},
        {"::1:4433", "needs brackets"},
        {"localhost:4433", "not a numeric address"},
        {"[::g]:4433", "not a numeric address"},
        {"1.2.3:4433", "not a numeric address"},
        {"[2001:db8::1]:0", "no interface"},
    };
    struct masque_h3 *h = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct masque_h3_config cfg = e->cfg;
        struct base_err err = {0};
        cfg.listen = rows[i].listen;
        cr_assert_neq(masque_h3_new(&h, &cfg, &err), BASE_OK, "%s", rows[i].listen);
        cr_assert(strstr(err.msg, rows[i].text), "%s: %s", rows[i].listen, err.msg);
        cr_assert_null(h);
    }
    struct {
        const char **file;
        const char *value;
    } files[] = {{&e->cfg.cert_file, "/nonexistent/a"},
                 {&e->cfg.key_file, "/nonexistent/b"},
                 {&e->cfg.client_ca_file, "/nonexistent/c"},
                 {&e->cfg.client_ca_file, NULL}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *old = *files[i].file;
        struct base_err err = {0};
        *files[i].file = files[i].value;
        e->cfg.listen = "[::1]:0";
        cr_assert_eq(masque_h3_new(&h, &e->cfg, &err), BASE_EINVAL, "file %zu", i);
        cr_assert(strstr(err.msg, files[i].value ? files[i].value : "client CA"), "%s", err.msg);
        *files[i].file = old;
    }
    char listen[32];
    struct base_err err = {0};
    (void)snprintf(listen, sizeof listen, "[::1]:%u", masque_h3_port(e->h));
    e->cfg.listen = listen;
    cr_assert_eq(masque_h3_new(&h, &e->cfg, &err), BASE_EIO);
    cr_assert(strstr(err.msg, "another process"), "%s", err.msg);
    e->cfg.listen = NULL;
}

/* ---- strangers ---- */

Test(masque_h3_tls, unknown_versions_are_negotiated)
{
    struct testclient *c =
        testenv_client(e, (struct testclient_config){
                              .cert_file = e->cert, .key_file = e->key, .alpn = "h3", .version = 0x1a2a3a4a});
    WAIT(e, c->closed);
    cr_assert_eq(c->error, NGTCP2_ERR_RECV_VERSION_NEGOTIATION);
    cr_assert_eq(testenv_stats(e).connections, 0);
}

Test(masque_h3_tls, a_forged_retry_token_is_refused)
{
    uint8_t token[80];
    memset(token, 7, sizeof token);
    token[0] = NGTCP2_CRYPTO_TOKEN_MAGIC_RETRY2;
    struct testclient_config cfg = {
        .cert_file = e->cert, .key_file = e->key, .alpn = "h3", .token = token, .n_token = sizeof token};
    struct testclient *c = testenv_client(e, cfg);
    WAIT(e, c->closed);
    cr_assert_eq(c->close_code, NGTCP2_INVALID_TOKEN);
    cr_assert_eq(testenv_stats(e).connections, 0);
}

/* Answers that `n` short-header packets of nobody's connection get; `fd` is connected to the endpoint. */
static unsigned answers(int fd, unsigned n)
{
    uint8_t pkt[60] = {0x40}, buf[256];
    unsigned got = 0;
    for (unsigned i = 0; i < n; i++) {
        memcpy(pkt + 1, &i, sizeof i);
        cr_assert_eq(send(fd, pkt, sizeof pkt, 0), (ssize_t)sizeof pkt);
        if (i % 16 == 15)
            masque_h3_read(e->h, testenv_clock(), 64);
        while (recv(fd, buf, sizeof buf, MSG_DONTWAIT) > 0)
            got++;
    }
    return got;
}

Test(masque_h3_tls, answers_to_strangers_are_limited_in_rate)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6,
                              .sin6_port = htons(masque_h3_port(e->h)),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    base_time start = loop_clock();
    unsigned got = answers(fd, 3000);
    double seconds = (double)(loop_clock() - start) / (double)BASE_SEC;
    cr_assert_gt(got, 100);
    cr_assert_leq(got, 500 + (unsigned)(500 * seconds) + 1, "%u answers in %.3f s", got, seconds);
    (void)close(fd);
}

Test(masque_h3_tls, answers_come_from_the_address_that_was_asked)
{
    char listen[] = "[::]:0";
    struct base_err err = {0};
    e->h = masque_h3_free(e->h);
    e->cfg.listen = listen;
    cr_assert_eq(masque_h3_new(&e->h, &e->cfg, &err), BASE_OK, "%s", err.msg);
    e->cfg.listen = NULL;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(masque_h3_port(e->h)),
                             .sin_addr.s_addr =
                                 htonl(0x7f000002)}; /* not the address that the kernel would choose */
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0); /* others than this are not delivered */
    cr_assert_eq(answers(fd, 32), 32);
    (void)close(fd);
}

Test(masque_h3_tls, junk_is_ignored)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    uint8_t buf[2000];
    struct base_prng rng = {42};
    for (int i = 0; i < 3000; i++) {
        size_t n = (size_t)base_prng_below(&rng, sizeof buf);
        for (size_t k = 0; k < n; k++)
            buf[k] = (uint8_t)base_prng_next(&rng);
        if (i % 3 == 0 && n > 20) { /* looks like a first Initial of version 1 */
            memcpy(buf, (uint8_t[]){0xc0, 0, 0, 0, 1, 8}, 6);
            buf[14] = 8;
        }
        (void)sendto(fd, buf, n, 0, (struct sockaddr *)&c->remote, sizeof c->remote);
        if (i % 16 == 0)
            testenv_endpoint(e);
    }
    (void)close(fd);
    testenv_settle(e, 20);
    cr_assert_eq(testenv_send(e, flow, 100, 1), BASE_OK);
    WAIT(e, c->n_datagrams == 1);
    cr_assert_eq(e->n_ended, 0);
}

Test(masque_h3_tls, a_restarted_endpoint_resets_connections_that_it_does_not_know)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    uint16_t port = masque_h3_port(e->h);
    uint8_t buf[2048];
    testenv_settle(e, 50);
    e->h = masque_h3_free(e->h);
    while (recv(c->fd, buf, sizeof buf, MSG_DONTWAIT) > 0)
        ; /* the goodbye is lost, as in a crash */
    testenv_start(e, port);
    testclient_datagram(c, "\0\0packet that nobody expects, long enough for an answer ...", 60);
    WAIT(e, c->closed);
    cr_assert_eq(testenv_stats(e).connections, 0);
}

/* quic-go acts on a reset at once and on a CONNECTION_CLOSE in its turn: with a reset on its heels the alert
 * was lost in one of three refusals, and the connector's log said "stateless reset" instead of what was
 * wrong. */
Test(masque_h3_tls, late_packets_of_a_closed_connection_are_met_with_silence)
{
    struct testclient *c = testenv_client(e, (struct testclient_config){.alpn = "h3"});
    uint8_t late[64] = {0x40}, buf[2048];
    WAIT(e, c->closed);
    cr_assert_not(c->close_is_app);
    const ngtcp2_cid *cid = ngtcp2_conn_get_dcid(c->quic);
    memcpy(late + 1, cid->data, cid->datalen);
    while (recv(c->fd, buf, sizeof buf, MSG_DONTWAIT) > 0)
        ;
    (void)sendto(c->fd, late, sizeof late, 0, (struct sockaddr *)&c->remote, sizeof c->remote);
    testenv_endpoint(e);
    cr_assert_lt(recv(c->fd, buf, sizeof buf, MSG_DONTWAIT), 0, "a reset right behind the goodbye");
    testenv_skew += 2 * BASE_SEC;
    (void)sendto(c->fd, late, sizeof late, 0, (struct sockaddr *)&c->remote, sizeof c->remote);
    testenv_endpoint(e);
    cr_assert_gt(recv(c->fd, buf, sizeof buf, MSG_DONTWAIT), 0, "no reset any more");
}

/* ---- limits ---- */

static void with_limits(const struct masque_h3_limits *l)
{
    e = testenv_new(l);
}

Test(masque_h3_limits, connections_in_all)
{
    with_limits(&(struct masque_h3_limits){.connections = 2});
    (void)testenv_connected(e);
    struct testclient *second = testenv_connected(e);
    struct testclient *c =
        testenv_client(e, (struct testclient_config){.cert_file = e->cert, .key_file = e->key, .alpn = "h3"});
    WAIT(e, c->closed);
    cr_assert_eq(c->close_code, NGTCP2_CONNECTION_REFUSED);
    cr_assert_eq(testenv_stats(e).refused, 1);
    cr_assert_eq(testenv_stats(e).full_connections, 1);
    testclient_close(second, 0x100);
    WAIT(e, testenv_stats(e).open_connections == 1);
    (void)testenv_connected(e);
    testenv_free(e);
}

Test(masque_h3_limits, connections_of_one_source)
{
    with_limits(&(struct masque_h3_limits){.per_source = 1});
    struct testclient *first = testenv_connected(e);
    struct testclient *c =
        testenv_client(e, (struct testclient_config){.cert_file = e->cert, .key_file = e->key, .alpn = "h3"});
    WAIT(e, c->closed);
    cr_assert_eq(c->close_code, NGTCP2_CONNECTION_REFUSED);
    cr_assert_eq(testenv_stats(e).full_source, 1);
    testclient_close(first, 0x100);
    WAIT(e, testenv_stats(e).open_connections == 0);
    (void)testenv_connected(e);
    testenv_free(e);
}

Test(masque_h3_limits, half_open_handshakes_cost_a_retry_then_a_refusal)
{
    with_limits(&(struct masque_h3_limits){.handshakes = 4});
    struct testclient_config cfg = {.cert_file = e->cert, .key_file = e->key, .alpn = "h3"};
    (void)testenv_client(e, cfg); /* never heard of again */
    testenv_endpoint(e);
    cr_assert_eq(testenv_stats(e).connections, 1);
    e->clients[0]->closed = true;
    struct testclient *c = testenv_connected(e);
    cr_assert(ngtcp2_conn_after_retry(c->quic), "no Retry though a quarter of the handshakes is taken");
    for (int i = 0; i < 3; i++) { /* fill up: these answer the Retry, then fall silent */
        struct testclient *half = testenv_client(e, cfg);
        for (base_time until = loop_clock() + BASE_SEC; loop_clock() < until && half->udp_in == 0;) {
            testenv_endpoint(e);
            testclient_step(half, testenv_clock());
        }
        testenv_endpoint(e);
        half->closed = true;
    }
    cr_assert_eq(testenv_stats(e).connections, 5);
    struct testclient *late = testenv_client(e, cfg);
    WAIT(e, late->closed);
    cr_assert_eq(late->close_code, NGTCP2_CONNECTION_REFUSED);
    cr_assert_eq(testenv_stats(e).full_handshakes, 1);
    cr_assert_geq(testenv_stats(e).retries, 4);
    testenv_skew += 11 * BASE_SEC; /* handshakes time out */
    WAIT(e, testenv_stats(e).open_connections <= 1);
    (void)testenv_connected(e);
    testenv_free(e);
}
