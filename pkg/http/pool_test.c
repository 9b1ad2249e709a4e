/* SPDX-License-Identifier: Apache-2.0 */
#include "http/pool.h"

#include <criterion/criterion.h>
#include <fcntl.h>

#include "http/testserver.h"
#include "loop/loop.h"

struct env {
    struct loop *l;
    struct ts s;
    struct ts_id ca, id;
    struct http_pool *p;
    const char *host;
};

static struct env *env_new(const char *alpn, void (*script)(struct ts_conn *), unsigned max_conns)
{
    struct env *e = calloc(1, sizeof *e);
    struct http_pool_opts o = {alpn && strcmp(alpn, "h2") == 0, max_conns};

    e->ca = ts_issue("test root", NULL, NULL);
    e->id = ts_issue("server", "IP:127.0.0.1,IP:::1,DNS:kube.test", &e->ca);
    e->s.alpn = alpn;
    e->s.script = script;
    e->s.arg = e;
    e->host = "127.0.0.1";
    ts_start(&e->s, &e->id, "127.0.0.1");
    cr_assert_eq(loop_new(&e->l, NULL), BASE_OK);
    cr_assert_eq(http_pool_new(&e->p, e->l, &o, NULL), BASE_OK);
    return e;
}

static void env_free(struct env *e)
{
    http_pool_free(e->p);
    loop_free(e->l);
    ts_stop(&e->s);
    ts_id_free(&e->ca);
    ts_id_free(&e->id);
    free(e);
}

struct got {
    struct env *e;
    int done, code, status, port, pieces, head_status;
    bool sent, reused;
    base_time sent_at, retry_after;
    char body[4096], err[BASE_ERR_MSG_MAX];
    struct http_call *call;
    bool stream, refuse, cancel_in_body, free_in_body, free_in_done, drop_in_body, start_in_done;
};

static void on_done(void *arg, const struct http_resp *r);
static bool on_head(void *arg, int status)
{
    struct got *g = arg;

    g->head_status = status;
    return g->stream;
}

static bool on_body(void *arg, struct base_str piece)
{
    struct got *g = arg;

    g->pieces++;
    strncat(g->body, piece.ptr, piece.len);
    if (g->cancel_in_body)
        http_cancel(g->call, true);
    if (g->free_in_body)
        g->e->p = http_pool_free(g->e->p);
    if (g->drop_in_body)
        http_pool_drop(g->e->p);
    return !g->refuse;
}

static int start(struct env *e, struct got *g, const char *method, const char *path, const char *body, int ms,
                 int idle_ms)
{
    char url[256];
    struct http_req r = {.method = method,
                         .url = url,
                         .body = base_str_of(body),
                         .timeout = ms * BASE_MS,
                         .idle = idle_ms * BASE_MS,
                         .max_body = 2048,
                         .repeatable = strcmp(method, "GET") == 0,
                         .tls = {.ca = base_str_of(e->ca.cert_pem)}};
    struct http_handler h = {on_head, on_body, on_done, g};
    struct base_err err = {0};
    int rc;

    g->e = e;
    g->done = 0;
    g->body[0] = '\0';
    snprintf(url, sizeof url, strchr(e->host, ':') ? "https://[%s]:%d%s" : "https://%s:%d%s", e->host,
             e->s.port, path);
    rc = http_start(e->p, &r, &h, &g->call, &err);
    cr_assert_eq(rc, BASE_OK, "%s", err.msg);
    cr_assert_eq(g->done, 0, "no callback from within the call");
    return rc;
}

static void on_done(void *arg, const struct http_resp *r)
{
    struct got *g = arg;

    g->done++;
    g->code = r->code;
    g->status = r->status;
    g->sent = r->sent;
    g->port = r->local_port;
    g->reused = r->reused;
    g->sent_at = r->sent_at;
    g->retry_after = r->retry_after;
    base_copy(g->err, sizeof g->err, r->err.msg);
    if (!g->stream)
        base_copy_str(g->body, sizeof g->body, r->body);
    if (g->free_in_done)
        g->e->p = http_pool_free(g->e->p);
    if (g->start_in_done) {
        static struct got next;

        g->start_in_done = false;
        start(g->e, &next, "GET", "/next", NULL, 5000, 0);
        g->call = next.call;
    }
}

static void wait_for(struct got *g)
{
    while (!g->done)
        loop_step(g->e->l, true);
}

static void settle(struct env *e, int ms)
{
    base_time end = loop_clock() + ms * BASE_MS;
    struct pollfd p = {-1, 0, 0};

    while (loop_clock() < end) {
        loop_step(e->l, false);
        (void)poll(&p, 0, 2);
    }
}

static struct got fetch(struct env *e, const char *method, const char *path, const char *body, int ms)
{
    struct got g = {0};

    start(e, &g, method, path, body, ms, 0);
    wait_for(&g);
    return g;
}

/* ---- scripts */
static void echo(struct ts_conn *c)
{
    while (ts_request(c)) {
        char *body = strstr(c->req, "\r\n\r\n") + 4, text[256];

        snprintf(text, sizeof text, "%.*s|%.100s|%s", (int)strcspn(c->req, "\r"), c->req, body, c->peer_cn);
        ts_answer(c, "200 OK", "", text);
    }
}

Test(http_pool, request_and_answer_on_a_kept_connection)
{
    struct env *e = env_new(NULL, echo, 0);
    base_time before = loop_clock();
    struct got a = fetch(e, "GET", "/a?b=c%20d", NULL, 5000);
    struct got b = fetch(e, "PUT", "/x/../y", "{\"n\":1}", 5000);
    struct got d = fetch(e, "DELETE", "/z", NULL, 5000);

    cr_assert_eq(a.code, BASE_OK, "%s", a.err);
    cr_assert_str_eq(a.body, "GET /a?b=c%20d HTTP/1.1||");
    cr_assert_eq(a.status, 200);
    cr_assert(a.sent && !a.reused);
    cr_assert_geq(a.sent_at, before);
    cr_assert_leq(a.sent_at, loop_clock());
    cr_assert_str_eq(b.body, "PUT /x/../y HTTP/1.1|{\"n\":1}|");
    cr_assert_str_eq(d.body, "DELETE /z HTTP/1.1||");
    cr_assert(b.reused && d.reused);
    cr_assert_eq(a.port, b.port);
    cr_assert_eq(e->s.n_conns, 1);
    env_free(e);
}

Test(http_pool, sockets_are_not_inherited)
{
    struct env *e = env_new(NULL, echo, 0);
    unsigned seen = 0;

    cr_assert_eq(fetch(e, "GET", "/a", NULL, 5000).code, BASE_OK);
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in sa = {0};
        socklen_t n = sizeof sa;

        if (getpeername(fd, (struct sockaddr *)&sa, &n) != 0 || sa.sin_family != AF_INET)
            continue;
        seen++;
        cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC, "descriptor %d", fd);
    }
    cr_assert_geq(seen, 2, "both ends are in this process");
    env_free(e);
}

Test(http_pool, ipv6_literal)
{
    struct env *e = env_new(NULL, echo, 0);
    struct ts s6 = {.script = echo};
    struct got a;
    int port = e->s.port;

    ts_start(&s6, &e->id, "::1");
    e->host = "::1";
    e->s.port = s6.port;
    a = fetch(e, "GET", "/six", NULL, 5000);
    e->s.port = port;
    cr_assert_eq(a.code, BASE_OK, "%s", a.err);
    cr_assert_str_eq(a.body, "GET /six HTTP/1.1||");
    ts_stop(&s6);
    env_free(e);
}

Test(http_pool, only_the_given_root_is_trusted_and_nothing_is_sent_to_others)
{
    struct env *e = env_new(NULL, echo, 0);
    struct ts_id other = ts_issue("test root", NULL, NULL), tmp = e->ca;
    struct got a;

    e->ca = other;
    a = fetch(e, "PUT", "/secret", "x", 5000);
    e->ca = tmp;
    cr_assert_eq(a.code, BASE_EIO, "%s", a.err);
    cr_assert(strstr(a.err, "certificate"), "%s", a.err); /* of either end */
    cr_assert_not(a.sent);
    cr_assert_eq(a.status, 0);
    cr_assert_eq(e->s.n_reqs, 0);
    ts_id_free(&other);
    env_free(e);
}

Test(http_pool, a_certificate_for_another_name_is_refused)
{
    struct env *e = env_new(NULL, echo, 0);
    struct got a;

    e->host = "localhost"; /* not in the certificate */
    a = fetch(e, "GET", "/", NULL, 5000);
    cr_assert_eq(a.code, BASE_EIO, "%s", a.err);
    cr_assert_not(a.sent);
    cr_assert_eq(e->s.n_reqs, 0);
    env_free(e);
}

Test(http_pool, client_certificate_name_for_tls_and_known_address)
{
    struct env *e = env_new(NULL, echo, 0);
    struct ts_id me = ts_issue("edge1", NULL, &e->ca);
    char url[128], to[64], known[96];
    struct got g = {.e = e};
    struct http_handler h = {on_head, on_body, on_done, &g};
    struct http_req r = {
        .method = "GET",
        .url = url,
        .timeout = 5 * BASE_SEC,
        .max_body = 2048,
        .tls = {base_str_of(e->ca.cert_pem), base_str_of(me.cert_pem), base_str_of(me.key_pem)}};

    /* the name of the certificate in the URL, another place to connect to */
    snprintf(url, sizeof url, "https://kube.test:%d/who", e->s.port);
    snprintf(to, sizeof to, "127.0.0.1:%d", e->s.port);
    r.connect_to = to;
    cr_assert_eq(http_start(e->p, &r, &h, &g.call, NULL), BASE_OK);
    wait_for(&g);
    cr_assert_eq(g.code, BASE_OK, "%s", g.err);
    cr_assert_str_eq(g.body, "GET /who HTTP/1.1||edge1");
    /* the same by an address known beforehand */
    r.connect_to = NULL;
    snprintf(known, sizeof known, "kube.test:%d:127.0.0.1", e->s.port);
    r.resolve = known;
    g.done = 0;
    cr_assert_eq(http_start(e->p, &r, &h, &g.call, NULL), BASE_OK);
    wait_for(&g);
    cr_assert_eq(g.code, BASE_OK, "%s", g.err);
    ts_id_free(&me);
    env_free(e);
}

Test(http_pool, no_connection_means_nothing_was_sent)
{
    struct env *e = env_new(NULL, echo, 0);
    struct got a;
    int s = socket(AF_INET, SOCK_STREAM, 0), port = e->s.port;
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof sa;

    /* bound but not listening: refused */
    cr_assert_eq(bind(s, (struct sockaddr *)&sa, sizeof sa), 0);
    cr_assert_eq(getsockname(s, (struct sockaddr *)&sa, &n), 0);
    e->s.port = ntohs(sa.sin_port);
    a = fetch(e, "PUT", "/", "x", 5000);
    cr_assert_eq(a.code, BASE_EIO, "%s", a.err);
    cr_assert_not(a.sent);
    cr_assert_eq(a.sent_at, 0);
    e->s.port = port;
    e->host = "no-such-host.invalid";
    a = fetch(e, "PUT", "/", "x", 5000);
    cr_assert_neq(a.code, BASE_OK);
    cr_assert_not(a.sent);
    close(s);
    env_free(e);
}

Test(http_pool, proxies_of_the_environment_are_not_used)
{
    struct env *e;
    struct got a;

    setenv("https_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    e = env_new(NULL, echo, 0);
    a = fetch(e, "GET", "/", NULL, 5000);
    cr_assert_eq(a.code, BASE_OK, "%s", a.err);
    env_free(e);
}

/* ---- time-outs */
static atomic_int saw_reset;

static void stall_first(struct ts_conn *c)
{
    char b[16];

    if (c->index > 0) {
        echo(c);
        return;
    }
    if (ts_request(c)) {
        int r, e;

        do {
            errno = 0;
            r = ts_read(c, b, sizeof b);
            e = errno;
        } while (r > 0);
        /* The first that is seen is the reset: neither a close notification nor an orderly end before it. */
        if (SSL_get_error(c->ssl, r) == SSL_ERROR_SYSCALL && e == ECONNRESET)
            atomic_store(&saw_reset, 1);
    }
}

Test(http_pool, after_a_time_out_the_connection_is_reset_and_never_used_again)
{
    struct env *e = env_new(NULL, stall_first, 1);
    base_time t0 = loop_clock();
    struct got a = fetch(e, "PUT", "/a", "x", 150), b;

    cr_assert_eq(a.code, BASE_ETIMEDOUT, "%s", a.err);
    cr_assert(a.sent);
    cr_assert_geq(loop_clock() - t0, 150 * BASE_MS);
    cr_assert_lt(loop_clock() - t0, 5 * BASE_SEC);
    b = fetch(e, "PUT", "/b", "x", 5000);
    cr_assert_eq(b.code, BASE_OK, "%s", b.err);
    cr_assert_neq(a.port, b.port);
    cr_assert_eq(e->s.n_conns, 2);
    settle(e, 200);
    env_free(e);
    cr_assert(atomic_load(&saw_reset), "the server must see a reset, not an orderly end");
}

static void h2_stall_first(struct ts_conn *c)
{
    static _Thread_local struct ts_frame f;

    if (!ts_h2_open(c))
        return;
    while (ts_h2_request(c, &f))
        if (c->index > 0)
            ts_h2_answer(c, f.stream, "two", true);
}

Test(http_pool, on_http2_a_time_out_closes_the_shared_connection)
{
    struct env *e = env_new("h2", h2_stall_first, 0);
    struct got a = {0}, b = {0}, d;

    start(e, &a, "PUT", "/a", "x", 5000, 0);
    start(e, &b, "GET", "/b", NULL, 200, 0);
    wait_for(&b);
    cr_assert_eq(b.code, BASE_ETIMEDOUT);
    wait_for(&a);
    cr_assert_eq(a.code, BASE_ECLOSED, "%s", a.err);
    cr_assert(a.sent, "a write on a lost connection may have landed");
    cr_assert_eq(e->s.n_conns, 1, "both shared one connection");
    d = fetch(e, "GET", "/d", NULL, 5000);
    cr_assert_eq(d.code, BASE_OK, "%s", d.err);
    cr_assert_str_eq(d.body, "two");
    cr_assert_neq(d.port, b.port);
    env_free(e);
}

static bool stall_handshake(struct ts_conn *c)
{
    if (c->index == 0)
        ts_stall(c, 30000);
    return c->index > 0;
}

/* curl issues 13227, 17225, 18177: a request that waits for a connection in the making has no time-out of its
 * own */
Test(http_pool, a_stalled_handshake_holds_up_nobody_beyond_their_own_time_out)
{
    struct env *e = env_new("h2", h2_stall_first, 0);
    struct got a = {0}, b = {0}, d = {0};
    base_time t0 = loop_clock();

    e->s.before_tls = stall_handshake;
    start(e, &a, "PUT", "/a", "x", 100, 0);
    start(e, &b, "GET", "/b", NULL, 20000, 0);
    wait_for(&a);
    cr_assert_eq(a.code, BASE_ETIMEDOUT);
    cr_assert_not(a.sent, "the handshake was never finished");
    /* b had not been sent: it starts again on a new connection */
    wait_for(&b);
    cr_assert_eq(b.code, BASE_OK, "%s", b.err);
    cr_assert_lt(loop_clock() - t0, 10 * BASE_SEC, "not until the handshake ends");
    start(e, &d, "GET", "/d", NULL, 20000, 0);
    wait_for(&d);
    cr_assert_eq(d.code, BASE_OK, "%s", d.err);
    env_free(e);
}

static void drip(struct ts_conn *c)
{
    if (!ts_request(c))
        return;
    ts_send(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 6; i++) {
        ts_chunk(c, "tick\n");
        ts_stall(c, 60);
    }
    ts_stall(c, 30000);
}

Test(http_pool, idle_time_out_counts_from_the_last_byte)
{
    struct env *e = env_new(NULL, drip, 0);
    struct got g = {.stream = true};
    base_time t0 = loop_clock();

    start(e, &g, "GET", "/watch", NULL, 20000, 250);
    wait_for(&g);
    cr_assert_eq(g.code, BASE_ETIMEDOUT, "%s", g.err);
    cr_assert(strstr(g.err, "250 ms"), "%s", g.err);
    cr_assert_geq(g.pieces, 2);
    cr_assert_geq(loop_clock() - t0, 500 * BASE_MS);
    cr_assert_lt(loop_clock() - t0, 15 * BASE_SEC);
    cr_assert_eq(g.head_status, 200);
    env_free(e);
}

/* ---- odd answers */
static void odd(struct ts_conn *c)
{
    static char big[200000];

    while (ts_request(c)) {
        if (strstr(c->req, " /truncated ")) {
            ts_send(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
            return;
        }
        if (strstr(c->req, " /reset ")) {
            ts_send(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
            ts_stall(c, 300);
            ts_reset(c);
            return;
        }
        if (strstr(c->req, " /chunk-cut ")) {
            ts_send(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel");
            return;
        }
        if (strstr(c->req, " /nothing "))
            return;
        if (strstr(c->req, " /garbage ")) {
            ts_send(c, "SSH-2.0-hello\r\n\r\n");
            return;
        }
        if (strstr(c->req, " /huge ")) {
            memset(big, 'x', sizeof big - 1);
            ts_answer(c, "200 OK", "", big);
            return;
        }
        if (strstr(c->req, " /bighead ")) {
            ts_send(c, "HTTP/1.1 200 OK\r\n");
            for (int i = 0; i < 2000; i++)
                ts_send(c, "X-Filler: 0123456789012345678901234567890123456789\r\n");
            ts_send(c, "Content-Length: 0\r\n\r\n");
            return;
        }
        if (strstr(c->req, " /moved ")) {
            ts_answer(c, "302 Found", "Location: /elsewhere\r\n", "no");
            continue;
        }
        if (strstr(c->req, " /busy ")) {
            ts_answer(c, "429 Too Many Requests", "Retry-After: 7\r\nContent-Type: text/plain\r\n",
                      "too many");
            continue;
        }
        if (strstr(c->req, " /forever ")) {
            ts_answer(c, "503 Service Unavailable", "Retry-After: 99999999\r\n", "");
            continue;
        }
        if (strstr(c->req, " /hint ")) {
            ts_send(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
            ts_answer(c, "200 OK", "", "late");
            continue;
        }
        ts_answer(c, "404 Not Found", "", "");
    }
}

Test(http_pool, odd_answers)
{
    static const struct {
        const char *path;
        int code, status;
        const char *body, *err;
    } row[] = {
        {"/truncated", BASE_ECLOSED, 200, "half", ""},
        {"/reset", BASE_ECLOSED, 200, "half", ""},
        {"/chunk-cut", BASE_ECLOSED, 200, "hel", ""},
        {"/nothing", BASE_ECLOSED, 0, "", ""},
        {"/garbage", BASE_EPROTO, 0, "", "HTTP/0.9"},
        {"/huge", BASE_EFULL, 200, NULL, "larger than 2048 bytes"},
        {"/bighead", BASE_EFULL, 0, NULL, "head of the answer"},
        {"/moved", BASE_OK, 302, "no", ""},
        {"/busy", BASE_OK, 429, "too many", ""},
        {"/forever", BASE_OK, 503, "", ""},
        {"/hint", BASE_OK, 200, "late", ""},
        {"/none", BASE_OK, 404, "", ""},
    };

    for (unsigned i = 0; i < BASE_LEN(row); i++) {
        struct env *e = env_new(NULL, odd, 0);
        struct got g = fetch(e, "GET", row[i].path, NULL, 5000);

        cr_expect_eq(g.code, row[i].code, "%s: %s %s", row[i].path, base_code_name(g.code), g.err);
        cr_expect_eq(g.status, row[i].status, "%s: status %d", row[i].path, g.status);
        cr_expect(strstr(g.err, row[i].err) != NULL, "%s: %s", row[i].path, g.err);
        if (row[i].body)
            cr_expect_str_eq(g.body, row[i].body, "%s: %s", row[i].path, g.body);
        if (strcmp(row[i].path, "/busy") == 0)
            cr_expect_eq(g.retry_after, 7 * BASE_SEC);
        if (strcmp(row[i].path, "/forever") == 0)
            cr_expect_eq(g.retry_after, HTTP_RETRY_AFTER_MAX);
        cr_expect(g.sent);
        cr_expect_eq(g.done, 1);
        env_free(e);
    }
}

/* The server closes a kept connection after it has read the next request: did that one land? */
static void close_on_second(struct ts_conn *c)
{
    if (!ts_request(c))
        return;
    ts_answer(c, "200 OK", "", "first");
    if (c->index == 0) {
        (void)ts_request(c);
        return;
    }
    while (ts_request(c))
        ts_answer(c, "200 OK", "", "again");
}

Test(http_pool, a_write_without_answer_is_never_repeated_by_itself)
{
    struct env *e = env_new(NULL, close_on_second, 0);
    struct got a = fetch(e, "PUT", "/1", "x", 5000), b = fetch(e, "PUT", "/2", "x", 5000);

    cr_assert_eq(a.code, BASE_OK);
    cr_assert_eq(b.code, BASE_ECLOSED, "%s %s", base_code_name(b.code), b.err);
    cr_assert(b.sent);
    cr_assert_eq(e->s.n_reqs, 2);
    a = fetch(e, "PUT", "/3", "x", 5000);
    cr_assert_eq(a.code, BASE_OK, "%s", a.err);
    env_free(e);
}

Test(http_pool, a_read_without_answer_is_repeated_on_a_new_connection)
{
    struct env *e = env_new(NULL, close_on_second, 0);
    struct got a = fetch(e, "GET", "/1", NULL, 5000), b = fetch(e, "GET", "/2", NULL, 5000);

    cr_assert_eq(a.code, BASE_OK);
    cr_assert_eq(b.code, BASE_OK, "%s", b.err);
    cr_assert_neq(a.port, b.port);
    cr_assert_eq(e->s.n_reqs, 3);
    env_free(e);
}

static void go_away(struct ts_conn *c)
{
    static _Thread_local struct ts_frame f;
    unsigned char body[8] = {0};

    if (!ts_h2_open(c))
        return;
    while (ts_h2_request(c, &f)) {
        if (c->index == 0) {
            body[3] = (unsigned char)f.stream;
            ts_h2_send(c, TS_GOAWAY, 0, 0, body, 8);
        }
        ts_h2_answer(c, f.stream, c->index == 0 ? "old" : "new", true);
        if (c->index == 0) { /* a close with something unread would be a reset */
            while (ts_read(c, body, sizeof body) > 0)
                ;
            return;
        }
    }
}

Test(http_pool, goaway_is_normal_life)
{
    struct env *e = env_new("h2", go_away, 0);
    struct got a = fetch(e, "GET", "/1", NULL, 5000), b;

    cr_assert_eq(a.code, BASE_OK, "%s", a.err);
    cr_assert_str_eq(a.body, "old");
    settle(e, 100);
    b = fetch(e, "PUT", "/2", "x", 5000);
    cr_assert_eq(b.code, BASE_OK, "%s", b.err);
    cr_assert_str_eq(b.body, "new");
    env_free(e);
}

/* Answers before it has read the body. */
static void h2_early(struct ts_conn *c)
{
    static _Thread_local struct ts_frame f;

    if (ts_h2_open(c))
        while (ts_h2_request(c, &f))
            ts_h2_answer(c, f.stream, "early", true);
}

Test(http_pool, an_answer_that_overtakes_the_body_is_seen_at_once)
{
    struct env *e = env_new("h2", h2_early, 0);

    for (int i = 0; i < 60; i++) {
        struct got a = fetch(e, "PUT", "/1", "x", 3000);

        http_pool_drop(e->p); /* it shows on new connections */

        cr_assert_eq(a.code, BASE_OK, "round %d: %s", i, a.err);
        cr_assert_str_eq(a.body, "early");
    }
    env_free(e);
}

static void h2_cut(struct ts_conn *c)
{
    static _Thread_local struct ts_frame f;

    if (!ts_h2_open(c) || !ts_h2_request(c, &f) || c->index > 0)
        return;
    ts_h2_answer(c, f.stream, "half", false);
    ts_stall(c, 50);
    ts_reset(c);
}

Test(http_pool, a_broken_http2_connection_ends_all_its_requests)
{
    struct env *e = env_new("h2", h2_cut, 0);
    struct got a = {0}, b = {0};

    start(e, &a, "PUT", "/1", "x", 5000, 0);
    start(e, &b, "PUT", "/2", "x", 5000, 0);
    wait_for(&a);
    wait_for(&b);
    cr_assert_eq(a.code, BASE_ECLOSED, "%s", a.err);
    cr_assert_eq(b.code, BASE_ECLOSED, "%s", b.err);
    cr_assert(a.sent && b.sent);
    env_free(e);
}

/* ---- what callbacks may do */
Test(http_pool, callbacks_may_cancel_drop_and_free)
{
    for (int what = 0; what < 7; what++) {
        struct env *e = env_new(NULL, drip, 0);
        struct got g = {.stream = true}, h = {0};

        g.cancel_in_body = what == 0;
        g.free_in_body = what == 1;
        g.drop_in_body = what == 2;
        g.refuse = what == 3;
        if (what == 4)
            g.stream = false; /* collected */
        start(e, &g, "GET", "/watch", NULL, what == 4 ? 300 : 5000, 0);
        if (what == 5) { /* before it was sent */
            http_cancel(g.call, true);
            settle(e, 20);
            cr_assert_eq(e->s.n_reqs, 0);
        }
        while (what != 5 && !g.done && !g.pieces)
            loop_step(e->l, true);
        if (what == 6)
            http_cancel(g.call, true);
        if (what >= 2 && what <= 4)
            wait_for(&g);
        settle(e, 60);
        switch (what) {
        case 2:
            cr_assert_eq(g.code, BASE_ECLOSED, "%s", g.err);
            break;
        case 3:
            cr_assert_eq(g.code, BASE_EFULL, "%s", g.err);
            break;
        case 4:
            cr_assert_eq(g.code, BASE_ETIMEDOUT, "%s", g.err);
            cr_assert_eq(g.status, 200);
            break;
        default:
            cr_assert_eq(g.done, 0, "case %d", what);
            cr_assert_leq(g.pieces, 1);
        }
        if (e->p && what != 3) {
            start(e, &h, "GET", "/other", NULL, 200, 0);
            wait_for(&h);
        }
        env_free(e);
    }
}

Test(http_pool, done_may_free_the_pool_or_start_the_next)
{
    struct env *e = env_new(NULL, echo, 0);
    struct got g = {.start_in_done = true}, other = {.free_in_done = true};

    start(e, &g, "GET", "/1", NULL, 5000, 0);
    wait_for(&g);
    while (e->s.n_reqs < 2)
        loop_step(e->l, false);
    settle(e, 20);
    g = (struct got){.free_in_done = true};
    start(e, &g, "GET", "/2", NULL, 5000, 0);
    start(e, &other, "GET", "/3", NULL, 5000, 0);
    while (e->p)
        loop_step(e->l, true);
    settle(e, 50);
    cr_assert_eq(g.done + other.done, 1, "nobody is called after the pool is gone");
    env_free(e);
}

Test(http_pool, one_connection_at_a_time_when_told)
{
    struct env *e = env_new(NULL, echo, 1);
    struct got g[5] = {0};

    for (int i = 0; i < 5; i++)
        start(e, &g[i], "PUT", "/x", "y", 5000, 0);
    for (int i = 0; i < 5; i++) {
        wait_for(&g[i]);
        cr_assert_eq(g[i].code, BASE_OK, "%s", g[i].err);
    }
    cr_assert_eq(e->s.n_conns, 1);
    env_free(e);
}

Test(http_pool, drop_lets_unsent_requests_go_out_on_a_new_connection)
{
    struct env *e = env_new(NULL, stall_first, 1);
    struct got a = {0}, b = {0};

    start(e, &a, "PUT", "/a", "x", 5000, 0);
    start(e, &b, "PUT", "/b", "x", 5000, 0); /* waits: one connection */
    while (e->s.n_reqs == 0)
        loop_step(e->l, false);
    http_pool_drop(e->p);
    cr_assert_eq(a.done, 0, "no callback from within the call");
    wait_for(&a);
    wait_for(&b);
    cr_assert_eq(a.code, BASE_ECLOSED);
    cr_assert(a.sent);
    cr_assert_eq(b.code, BASE_OK, "%s", b.err);
    env_free(e);
}

/* What an outage leaves: a connection that is being made, and does not come about. */
Test(http_pool, what_waits_for_a_connection_gets_another_one)
{
    struct env *e = env_new("h2", h2_stall_first, 0);
    struct got a = {0};
    base_time t0;

    e->s.before_tls = stall_handshake;
    start(e, &a, "PUT", "/a", "x", 20000, 0);
    t0 = loop_clock(); /* it waits since then at the latest */
    while (loop_clock() - t0 < HTTP_POOL_PATIENCE / 2)
        loop_step(e->l, false);
    http_pool_again(e->p);
    while (loop_clock() - t0 < HTTP_POOL_PATIENCE)
        loop_step(e->l, false);
    cr_assert_eq(e->s.n_conns, 1, "it is young");
    http_pool_again(e->p);
    cr_assert_eq(a.done, 0, "no callback from within the call");
    wait_for(&a);
    cr_assert_eq(a.code, BASE_OK, "%s", a.err);
    cr_assert_eq(e->s.n_conns, 2);
    cr_assert_lt(loop_clock() - t0, 10 * BASE_SEC);
    env_free(e);
}

Test(http_pool, what_was_sent_keeps_its_connection)
{
    struct env *e = env_new(NULL, stall_first, 1);
    struct got a = {0}, b = {0};
    base_time t0;

    start(e, &a, "PUT", "/a", "x", 1000, 0);
    start(e, &b, "PUT", "/b", "x", 5000, 0); /* waits: one connection */
    t0 = loop_clock();
    while (e->s.n_reqs == 0 || loop_clock() - t0 < 2 * HTTP_POOL_PATIENCE)
        loop_step(e->l, false);
    http_pool_again(e->p);
    wait_for(&a);
    cr_assert_eq(a.code, BASE_ETIMEDOUT, "it was waited for");
    wait_for(&b);
    cr_assert_eq(b.code, BASE_OK, "%s", b.err);
    env_free(e);
}

Test(http_pool, bad_requests_are_refused_with_the_field)
{
    struct env *e = env_new(NULL, echo, 0);
    const char *bad_header = "X: a\r\nAuthorization: s3cret";
    struct http_handler h = {NULL, NULL, on_done, NULL};
    static const struct {
        const char *method, *url, *header;
        base_time timeout;
        const char *word;
    } row[] = {
        {"GET /", "https://h/", NULL, BASE_SEC, "method"}, {"", "https://h/", NULL, BASE_SEC, "method"},
        {NULL, "https://h/", NULL, BASE_SEC, "method"},    {"GET", "http://h/", NULL, BASE_SEC, "URL"},
        {"GET", "file:///x", NULL, BASE_SEC, "URL"},       {"GET", "https://h/a b", NULL, BASE_SEC, "URL"},
        {"GET", "https://h/\r\n", NULL, BASE_SEC, "URL"},  {"GET", NULL, NULL, BASE_SEC, "URL"},
        {"GET", "https://h/", "bad", BASE_SEC, "header"},  {"GET", "https://h/", NULL, 0, "time-out"},
    };

    for (unsigned i = 0; i < BASE_LEN(row); i++) {
        struct base_err err = {0};
        struct http_call *c = NULL;
        struct http_req r = {.method = row[i].method, .url = row[i].url, .timeout = row[i].timeout};

        if (row[i].header) {
            r.headers = &bad_header;
            r.n_headers = 1;
        }
        cr_expect_eq(http_start(e->p, &r, &h, &c, &err), BASE_EINVAL, "row %u", i);
        cr_expect(strstr(err.msg, row[i].word), "row %u: %s", i, err.msg);
        cr_expect_null(strstr(err.msg, "s3cret"));
        cr_expect_null(c);
    }
    env_free(e);
}

Test(http_pool, survives_every_failed_allocation)
{
    struct env *e = env_new(NULL, echo, 0);

    for (unsigned long n = 1; n < 30; n++) {
        struct got g = {.e = e};
        struct http_handler h = {NULL, NULL, on_done, &g};
        char url[64];
        struct http_req r = {.method = "PUT",
                             .url = url,
                             .timeout = 5 * BASE_SEC,
                             .max_body = 2048,
                             .body = BASE_STR("x"),
                             .tls = {.ca = base_str_of(e->ca.cert_pem)}};
        int rc;

        snprintf(url, sizeof url, "https://127.0.0.1:%d/", e->s.port);
        base_mem_fail_after(n);
        rc = http_start(e->p, &r, &h, NULL, NULL);
        base_mem_fail_after(0);
        if (rc == BASE_OK) {
            base_mem_fail_after(n);
            while (!g.done)
                loop_step(e->l, true);
            base_mem_fail_after(0);
        } else {
            cr_assert_eq(rc, BASE_ENOMEM);
        }
    }
    cr_assert_eq(fetch(e, "GET", "/", NULL, 5000).code, BASE_OK);
    env_free(e);
}
