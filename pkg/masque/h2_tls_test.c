/* SPDX-License-Identifier: Apache-2.0
 *
 * Who gets in over HTTP/2: certificates, ALPN, TLS version, tickets; limits of connections. The rows are
 * those of HTTP/3: one check of certificates serves both.
 */
#include "masque/h2client_test.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

static struct testenv *e;

static void setup(void)
{
    e = testenv_new(NULL);
    testenv_h2(e, NULL);
}

static void teardown(void)
{
    h2client_free_all(e);
    testenv_free(e);
    testenv_skew = 0;
}

TestSuite(masque_h2_tls, .init = setup, .fini = teardown, .timeout = 60);
TestSuite(masque_h2_limits, .timeout = 60);

static struct masque_h2_stats stats(void)
{
    struct masque_h2_stats s;
    masque_h2_stats(e->h2, &s);
    return s;
}

/* The alert that ended the handshake, 0 = none. */
static int alert_of(const struct h2client *c)
{
    int reason = ERR_GET_REASON(c->tls_error);
    return reason > SSL_AD_REASON_OFFSET ? reason - SSL_AD_REASON_OFFSET : 0;
}

static struct h2client *try_with(const struct testpki_spec *spec, const struct testpki_cert *also,
                                 const char *alpn, bool stolen)
{
    char cert[96], key[96];
    (void)snprintf(cert, sizeof cert, "%s/try.crt", e->dir);
    (void)snprintf(key, sizeof key, "%s/try.key", e->dir);
    struct h2client_config cfg = {.alpn = alpn};
    if (spec) {
        struct testpki_cert *c = testpki_new(spec);
        testpki_write(c, also, cert, key);
        testpki_free(c);
        cfg.cert_file = cert;
        cfg.key_file = key;
        cfg.stolen = stolen;
    }
    struct h2client *c = h2client_new(e, cfg);
    (void)unlink(cert);
    (void)unlink(key);
    bool asked = false;
    for (base_time until = loop_clock() + 3 * BASE_SEC; loop_clock() < until && !c->eof && e->n_rq == 0;) {
        testenv_turn(e);
        if (!asked && c->settings_seen) {
            (void)h2client_connect_ip(c);
            asked = true;
        }
    }
    return c;
}

Test(masque_h2_tls, certificates)
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
        int alert; /* 0 = gets in */
        enum masque_identity id;
    } rows[] = {
        {"good",
         true,
         {.cn = "a", .issuer = e->root, .eku = "clientAuth", .san = URI},
         NULL,
         0,
         MASQUE_IDENTITY_URI},
        {"no EKU", true, {.cn = "a", .issuer = e->root, .san = URI}, NULL, 0, MASQUE_IDENTITY_URI},
        {"with its intermediate",
         true,
         {.cn = "a", .issuer = middle, .san = URI},
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
        {"none", false, {.cn = ""}, NULL, 116, 0},
        {"unknown CA", true, {.cn = "a", .issuer = other, .eku = "clientAuth", .san = URI}, NULL, 48, 0},
        {"unknown CA with its root", true, {.cn = "a", .issuer = other, .san = URI}, other, 48, 0},
        {"self-signed", true, {.cn = "a", .eku = "clientAuth", .san = URI}, NULL, 48, 0},
        {"without its intermediate", true, {.cn = "a", .issuer = middle, .san = URI}, NULL, 48, 0},
        {"for servers only",
         true,
         {.cn = "a", .issuer = e->root, .eku = "serverAuth", .san = URI},
         NULL,
         43,
         0},
        {"expired", true, {.cn = "a", .issuer = e->root, .san = URI, .from = -7200, .to = -60}, NULL, 45, 0},
        {"not yet valid",
         true,
         {.cn = "a", .issuer = e->root, .san = URI, .from = 3600, .to = 7200},
         NULL,
         42,
         0},
    };
    uint64_t failed = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        e->n_rq = 0;
        struct h2client *c = try_with(rows[i].has_cert ? &rows[i].spec : NULL, rows[i].also, "\2h2", false);
        if (rows[i].alert == 0) {
            cr_assert_eq(e->n_rq, 1, "%s: did not get in (alert %d)", rows[i].name, alert_of(c));
            cr_assert_eq(e->rq[0].identity, rows[i].id, "%s", rows[i].name);
            cr_assert_eq(e->rq[0].uri[0] != 0, rows[i].id == MASQUE_IDENTITY_URI, "%s", rows[i].name);
        } else {
            cr_assert_eq(e->n_rq, 0, "%s: got in", rows[i].name);
            cr_assert(c->eof, "%s: nobody told it", rows[i].name);
            cr_assert_eq(alert_of(c), rows[i].alert, "%s: alert %d", rows[i].name, alert_of(c));
            cr_assert_not(c->settings_seen, "%s: saw HTTP/2", rows[i].name);
            failed++;
        }
        h2client_free(c);
        WAIT(e, stats().open_connections == 0);
        cr_assert_eq(stats().handshakes_failed, failed, "%s", rows[i].name);
    }
    testpki_free(other);
    testpki_free(middle);
}

Test(masque_h2_tls, a_stolen_certificate_without_its_key_is_worth_nothing)
{
    const struct testpki_spec good = {.cn = "a", .issuer = e->root, .eku = "clientAuth", .san = URI};
    struct h2client *c = try_with(&good, NULL, "\2h2", true);
    cr_assert_eq(e->n_rq, 0);
    cr_assert(c->eof);
    cr_assert_eq(alert_of(c), SSL_AD_DECRYPT_ERROR, "alert %d", alert_of(c));
}

Test(masque_h2_tls, alpn_is_h2_or_nothing)
{
    static const char *const others[] = {NULL, "\2h3", "\10http/1.1", "\3h2c"};
    const struct testpki_spec good = {.cn = "a", .issuer = e->root, .san = URI};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct h2client *c = try_with(&good, NULL, others[i], false);
        cr_assert_eq(e->n_rq, 0, "%zu", i);
        cr_assert_eq(alert_of(c), SSL_AD_NO_APPLICATION_PROTOCOL, "%zu: alert %d", i, alert_of(c));
    }
    (void)try_with(&good, NULL, "\10http/1.1\2h2", false);
    cr_assert_eq(e->n_rq, 1, "h2 among others");
}

Test(masque_h2_tls, older_versions_are_refused)
{
    struct h2client *c = h2client_new(
        e, (struct h2client_config){.cert_file = e->cert, .key_file = e->key, .alpn = "\2h2", .tls12 = true});
    WAIT(e, c->eof);
    cr_assert_eq(alert_of(c), SSL_AD_PROTOCOL_VERSION, "alert %d", alert_of(c));
}

static unsigned tickets;
static int on_ticket(SSL *ssl, SSL_SESSION *s)
{
    tickets++;
    return 0;
}

Test(masque_h2_tls, no_tickets_and_no_early_data)
{
    struct h2client *c =
        h2client_new(e, (struct h2client_config){.cert_file = e->cert, .key_file = e->key, .alpn = "\2h2"});
    SSL_CTX_set_session_cache_mode(c->ctx, SSL_SESS_CACHE_CLIENT);
    SSL_CTX_sess_set_new_cb(c->ctx, on_ticket);
    WAIT(e, c->settings_seen);
    testenv_settle(e, 50);
    cr_assert_eq(tickets, 0);
    cr_assert_eq(SSL_SESSION_get_max_early_data(SSL_get0_session(c->ssl)), 0);
}

Test(masque_h2_tls, no_secret_goes_to_a_key_log)
{
    char file[96];
    (void)snprintf(file, sizeof file, "%s/keys", e->dir);
    cr_assert_eq(setenv("SSLKEYLOGFILE", file, 1), 0);
    struct h2client *c = h2client_connected(e);
    (void)c;
    cr_assert_neq(access(file, F_OK), 0, "secrets were written");
    (void)unsetenv("SSLKEYLOGFILE");
}

Test(masque_h2_tls, junk_and_clear_text_are_dropped)
{
    static const char *const junk[] = {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                                       "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\x16\x03\x01\xff\xff\x01", ""};
    for (size_t i = 0; i < sizeof junk / sizeof junk[0]; i++) {
        struct sockaddr_in6 to = {.sin6_family = AF_INET6,
                                  .sin6_port = htons(masque_h2_port(e->h2)),
                                  .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        cr_assert_eq(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
        (void)send(fd, junk[i], strlen(junk[i]), MSG_NOSIGNAL);
        for (unsigned k = 0; k < 20; k++)
            testenv_endpoint(e);
        (void)close(fd);
        WAIT(e, stats().open_connections == 0);
    }
    cr_assert_eq(stats().handshakes_failed, 4);
}

Test(masque_h2_tls, half_a_handshake_does_not_stay)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6,
                              .sin6_port = htons(masque_h2_port(e->h2)),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    WAIT(e, (testenv_endpoint(e), stats().open_connections == 1));
    testenv_skew += 11 * BASE_SEC;
    WAIT(e, (testenv_endpoint(e), stats().open_connections == 0));
    (void)close(fd);
    /* TLS, but no HTTP/2 behind it */
    struct h2client *c = h2client_new(
        e,
        (struct h2client_config){.cert_file = e->cert, .key_file = e->key, .alpn = "\2h2", .no_http = true});
    WAIT(e, c->shaken && stats().open_connections == 1);
    testenv_settle(e, 20);
    testenv_skew += 6 * BASE_SEC;
    WAIT(e, c->eof);
}

Test(masque_h2_tls, bad_configuration_is_named)
{
    struct masque_h2_config cfg = {.listen = "[::1]:0",
                                   .cert_file = e->server_cert,
                                   .key_file = e->server_key,
                                   .client_ca_file = e->client_ca,
                                   .events = e->cfg.events};
    struct masque_h2 *h = NULL;
    struct base_err err = {0};
    char taken[32];
    struct masque_h2_config bad = cfg;
    bad.key_file = e->key; /* another certificate's */
    cr_assert_eq(masque_h2_new(&h, &bad, &err), BASE_EINVAL);
    cr_assert(strstr(err.msg, e->key), "%s", err.msg);
    bad = cfg;
    bad.client_ca_file = "/nowhere/ca.crt";
    cr_assert_eq(masque_h2_new(&h, &bad, &err), BASE_EINVAL);
    cr_assert(strstr(err.msg, "/nowhere/ca.crt"), "%s", err.msg);
    bad = cfg;
    bad.listen = "::1:4433";
    cr_assert_eq(masque_h2_new(&h, &bad, &err), BASE_EINVAL);
    cr_assert(strstr(err.msg, "brackets"), "%s", err.msg);
    bad = cfg;
    (void)snprintf(taken, sizeof taken, "[::1]:%u", masque_h2_port(e->h2));
    bad.listen = taken;
    cr_assert_eq(masque_h2_new(&h, &bad, &err), BASE_EIO);
    cr_assert(strstr(err.msg, "another process") && strstr(err.msg, "TCP"), "%s", err.msg);
    bad = cfg;
    bad.client_ca_file = NULL;
    cr_assert_eq(masque_h2_new(&h, &bad, &err), BASE_EINVAL);
    cr_assert_null(h);
}

Test(masque_h2_limits, connections_handshakes_and_sources)
{
    static const struct masque_h2_limits rows[] = {{.connections = 3}, {.per_source = 3}, {.handshakes = 3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        e = testenv_new(NULL);
        testenv_h2(e, &rows[i]);
        struct h2client *c[5];
        for (unsigned k = 0; k < 5; k++) {
            c[k] = h2client_new(
                e, (struct h2client_config){.cert_file = e->cert, .key_file = e->key, .alpn = "\2h2"});
            c[k]->held = rows[i].handshakes != 0;
            testenv_settle(e, 10);
        }
        testenv_settle(e, 50);
        cr_assert_eq(stats().open_connections, 3, "%zu", i);
        cr_assert_eq(stats().refused, 2, "%zu", i);
        h2client_free(c[0]); /* room again */
        WAIT(e, stats().open_connections == 2);
        struct h2client *late = h2client_connected(e);
        cr_assert(late->settings_seen);
        teardown();
    }
}

Test(masque_h2_limits, no_more_connections_than_descriptors)
{
    struct rlimit old, few;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = 100; /* half of it for connections */
    e = testenv_new(NULL);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    testenv_h2(e, NULL);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    for (unsigned i = 0; i < 52; i++) {
        (void)h2client_new(
            e, (struct h2client_config){.cert_file = e->cert, .key_file = e->key, .alpn = "\2h2"});
        testenv_endpoint(e);
    }
    WAIT(e, stats().open_connections == 50);
    cr_assert_eq(stats().refused, 2);
    teardown();
}

/* ---- bearer tokens ---- */

static size_t ask_with(struct h2client *c, const char *authorization)
{
    const struct testclient_field f[] = {{":method", "CONNECT"},
                                         {":protocol", "connect-ip"},
                                         {":scheme", "https"},
                                         {":authority", "masque.test"},
                                         {":path", "/.well-known/masque/ip/*/*/"},
                                         {"authorization", authorization}};
    return h2client_request(c, f, authorization ? 6 : 5, false);
}

Test(masque_h2_limits, bearer_tokens_as_over_http3)
{
    e = testenv_new(NULL);
    e->cfg.bearer = true;
    testenv_h2(e, NULL);
    struct h2client *c = h2client_new(e, (struct h2client_config){.alpn = "\2h2"});
    WAIT(e, c->settings_seen);
    (void)ask_with(c, "Bearer abc.def");
    WAIT(e, e->n_rq == 1);
    cr_assert_eq(e->rq[0].identity, MASQUE_IDENTITY_TOKEN);
    cr_assert_not_null(e->rq[0].token);
    cr_assert(base_str_eqz(base_secret_text(e->rq[0].token), "abc.def"));
    base_secret_free(e->rq[0].token);
    cr_assert_eq(masque_h2_refuse(e->h2, e->rq[0].flow, 401, "the token is not good", 0), BASE_OK);
    WAIT(e, c->streams[0]->closed);
    cr_assert_str_eq(c->streams[0]->authenticate, "Bearer realm=\"holdfast\", error=\"invalid_token\"");
    (void)ask_with(c, NULL);
    WAIT(e, e->n_rq == 2);
    cr_assert_eq(e->rq[1].identity, MASQUE_IDENTITY_ABSENT);
    struct h2client *d = h2client_connected(e); /* with a certificate */
    size_t s = ask_with(d, "Bearer abc.def");
    WAIT(e, d->streams[s]->status == 400);
    cr_assert_eq(e->n_rq, 2);
    teardown();
}
