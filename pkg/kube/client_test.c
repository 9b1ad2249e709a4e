/* SPDX-License-Identifier: Apache-2.0
 *
 * The client against a server that does what a script says. Letters and numbers in comments (B3, S2, …) are
 * reports of other clients' faults that these cases were taken from.
 */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "http/testserver.h"
#include "kube_int.h"
#include "loop/log.h"
#include "loop/loop.h"

#define TOKEN "s3cret-token-one"

struct env {
    struct loop *l;
    struct loop_log *log;
    int log_fd;
    struct ts s;
    struct ts_id ca, id;
    struct kube_config *cfg;
    struct kube_client *c;
    char token_file[64];
};

static void put_token(struct env *e, const char *z)
{
    char tmp[80];
    FILE *f;

    /* as kubelet does: a new file takes the old one's place */
    base_fmt(tmp, sizeof tmp, "%s.new", e->token_file);
    f = fopen(tmp, "w");
    cr_assert_not_null(f);
    fputs(z, f);
    fclose(f);
    cr_assert_eq(rename(tmp, e->token_file), 0);
}

static struct env *env_new(void (*script)(struct ts_conn *), const char *san, const char *server_name)
{
    struct env *e = calloc(1, sizeof *e);
    struct base_err err = {0};
    char url[64];
    int fd;

    base_fmt(e->token_file, sizeof e->token_file, "/tmp/hf-kube-token.XXXXXX");
    fd = mkstemp(e->token_file);
    cr_assert_geq(fd, 0);
    close(fd);
    put_token(e, TOKEN "\n");
    e->ca = ts_issue("test root", NULL, NULL);
    e->id = ts_issue("server", san ? san : "IP:127.0.0.1,IP:::1", &e->ca);
    e->s.script = script;
    e->s.arg = e;
    ts_start(&e->s, &e->id, "127.0.0.1");
    e->log_fd = memfd_create("log", MFD_CLOEXEC);
    e->log = loop_log_new(e->log_fd, LOOP_DEBUG, true, "kube");
    e->cfg = base_calloc(1, sizeof *e->cfg);
    base_fmt(url, sizeof url, "https://127.0.0.1:%d", e->s.port);
    e->cfg->server = base_strdup(url);
    e->cfg->ca = base_strdup(e->ca.cert_pem);
    e->cfg->token_file = base_strdup(e->token_file);
    if (server_name)
        e->cfg->tls_server_name = base_strdup(server_name);
    cr_assert_eq(kube_config_finish(e->cfg, &err), BASE_OK, "%s", err.msg);
    cr_assert_eq(loop_new(&e->l, NULL), BASE_OK);
    cr_assert_eq(kube_client_new(&e->c, e->l, e->cfg, "holdfast-test/1", e->log, &err), BASE_OK, "%s",
                 err.msg);
    return e;
}

/* Also checks that no token came into a log line. */
static void env_free(struct env *e)
{
    char text[65536] = "";

    kube_client_free(e->c);
    loop_free(e->l);
    ts_stop(&e->s);
    ts_id_free(&e->ca);
    ts_id_free(&e->id);
    kube_config_free(e->cfg);
    loop_log_free(e->log);
    cr_assert_geq(pread(e->log_fd, text, sizeof text - 1, 0), 0);
    cr_assert_null(strstr(text, "s3cret"), "%s", text);
    close(e->log_fd);
    unlink(e->token_file);
    free(e);
}

struct got {
    struct env *e;
    struct kube_call *call;
    int done, code, status, port, err_code;
    bool sent;
    base_time retry_after, sent_at;
    char body[8192], reason[64], err[BASE_ERR_MSG_MAX];
    /* streams */
    int opens, lines, ends;
    char text[8192];
    int cancel_at, free_at; /* call number, from 1 */
    int calls;
};

static void take(struct got *g, const struct kube_resp *r)
{
    g->done++;
    g->code = r->code;
    g->status = r->http_status;
    g->sent = r->sent;
    g->sent_at = r->sent_at;
    g->port = r->local_port;
    g->err_code = r->err.code;
    g->retry_after = r->retry_after;
    base_copy_str(g->body, sizeof g->body, r->body);
    base_copy(g->reason, sizeof g->reason, r->reason);
    base_copy(g->err, sizeof g->err, r->err.msg);
    cr_assert_null(strstr(r->err.msg, "s3cret"), "%s", r->err.msg);
}

static void act(struct got *g)
{
    g->calls++;
    if (g->cancel_at == g->calls)
        kube_cancel(g->call);
    if (g->free_at == g->calls)
        g->e->c = kube_client_free(g->e->c);
}

static void on_done(void *arg, const struct kube_resp *r)
{
    take(arg, r);
    act(arg);
}

static void on_stream(void *arg, enum kube_stream_what what, struct base_str line,
                      const struct kube_resp *end)
{
    struct got *g = arg;
    size_t n = strlen(g->text);

    switch (what) {
    case KUBE_STREAM_OPEN:
        g->opens++;
        break;
    case KUBE_STREAM_LINE:
        g->lines++;
        base_fmt(g->text + n, sizeof g->text - n, "%.*s|", (int)(line.len > 200 ? 200 : line.len), line.ptr);
        break;
    case KUBE_STREAM_END:
        g->ends++;
        take(g, end);
        break;
    }
    act(g);
}

static void ask(struct env *e, struct got *g, const char *method, const char *path, const char *body,
                int lane, int ms)
{
    struct kube_req r = {.method = method,
                         .path = path,
                         .body = base_str_of(body),
                         .lane = lane,
                         .timeout = ms * BASE_MS,
                         .audit_id = "0123456789abcdef0123456789abcdef"};
    struct base_err err = {0};

    g->e = e;
    g->done = 0;
    cr_assert_eq(kube_request(e->c, &r, on_done, g, &g->call, &err), BASE_OK, "%s", err.msg);
    cr_assert_eq(g->done, 0);
}

static void watch(struct env *e, struct got *g, const char *path, int ms, int idle_ms)
{
    struct kube_req r = {.method = "GET", .path = path, .timeout = ms * BASE_MS};
    struct base_err err = {0};

    g->e = e;
    cr_assert_eq(kube_stream(e->c, &r, idle_ms * BASE_MS, on_stream, g, &g->call, &err), BASE_OK, "%s",
                 err.msg);
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

static struct got fetch(struct env *e, const char *method, const char *path, const char *body)
{
    struct got g = {0};

    ask(e, &g, method, path, body, KUBE_LANE_DEFAULT, 5000);
    wait_for(&g);
    return g;
}

/* ---- requests */
static void mirror(struct ts_conn *c)
{
    while (ts_request(c))
        ts_answer(c, "200 OK", "", c->req);
}

Test(kube_client, what_a_request_carries)
{
    struct env *e = env_new(mirror, NULL, NULL);
    struct got g = fetch(e, "PUT", "/apis/x/v1/y?fieldValidation=Strict", "{\"n\":9007199254740993}");
    char host[64];

    cr_assert_eq(g.code, BASE_OK, "%s", g.err);
    cr_assert(g.sent && g.sent_at > 0);
    cr_assert_eq(g.err_code, BASE_OK);
    base_fmt(host, sizeof host, "Host: 127.0.0.1:%d\r\n", e->s.port);
    {
        const char *const want[] = {"PUT /apis/x/v1/y?fieldValidation=Strict HTTP/1.1\r\n",
                                    host,
                                    "Authorization: Bearer " TOKEN "\r\n",
                                    "User-Agent: holdfast-test/1\r\n",
                                    "Accept: application/json\r\n",
                                    "Content-Type: application/json\r\n",
                                    "Audit-ID: 0123456789abcdef0123456789abcdef\r\n",
                                    "\r\n\r\n{\"n\":9007199254740993}"};

        for (unsigned i = 0; i < BASE_LEN(want); i++)
            cr_expect(strstr(g.body, want[i]) != NULL, "%s lacks %s", g.body, want[i]);
    }
    cr_expect_null(strstr(g.body, "Expect:"));
    cr_expect_null(strstr(g.body, "Accept-Encoding"));
    g = fetch(e, "GET", "/api", NULL);
    cr_expect_null(strstr(g.body, "Content-Type"), "%s", g.body);
    cr_assert_eq(e->s.n_conns, 1);
    env_free(e);
}

Test(kube_client, tls_server_name_is_what_tls_checks)
{
    struct env *e = env_new(mirror, "DNS:kube.test", "kube.test"), *f;
    struct got g = fetch(e, "GET", "/api", NULL);
    char host[64];

    cr_assert_eq(g.code, BASE_OK, "%s", g.err);
    base_fmt(host, sizeof host, "Host: 127.0.0.1:%d\r\n", e->s.port);
    cr_assert(strstr(g.body, host), "%s", g.body);
    env_free(e);
    f = env_new(mirror, "DNS:kube.test", "other.test");
    g = fetch(f, "GET", "/api", NULL);
    cr_assert_eq(g.code, BASE_EIO, "%s", g.err);
    cr_assert_not(g.sent);
    env_free(f);
}

static void statuses(struct ts_conn *c)
{
    while (ts_request(c)) {
        const char *p = strchr(c->req, '/') + 1;

        if (strncmp(p, "plain429", 8) == 0)
            ts_answer(c, "429 Too Many Requests", "Retry-After: 2\r\nContent-Type: text/plain\r\n",
                      "Too many requests, please try again later.\n");
        else if (strncmp(p, "body429", 7) == 0)
            ts_answer(c, "429 Too Many Requests", "",
                      "{\"kind\":\"Status\",\"reason\":\"TooManyRequests\",\"message\":\"storage is "
                      "(re)initializing\","
                      "\"details\":{\"retryAfterSeconds\":3}}");
        else if (strncmp(p, "conflict", 8) == 0)
            ts_answer(
                c, "409 Conflict", "",
                "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"the object has been modified\"}");
        else if (strncmp(p, "deny", 4) == 0)
            ts_answer(c, "403 Forbidden", "",
                      "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no\"}");
        else if (strncmp(p, "html", 4) == 0)
            ts_answer(c, "502 Bad Gateway", "", "<html>\n<h1>Bad\x01 Gateway</h1>\n</html>");
        else if (strncmp(p, "empty", 5) == 0)
            ts_answer(c, "404 Not Found", "", "");
        else if (strncmp(p, "late", 4) == 0)
            ts_answer(c, "504 Gateway Timeout", "",
                      "{\"kind\":\"Status\",\"reason\":\"Timeout\",\"message\":\"may still\"}");
        else if (strncmp(p, "moved", 5) == 0)
            ts_answer(c, "301 Moved", "Location: https://127.0.0.1:1/\r\n", "");
        else
            ts_answer(c, "200 OK", "", "{\"kind\":\"Status\",\"reason\":\"NotAnError\"}");
    }
}

/* B3, B22, B26, S2: whatever the body is, an answer is an answer, and none leaks into the next */
Test(kube_client, statuses_of_every_shape)
{
    static const struct {
        const char *path;
        int status, err;
        const char *reason, *text;
        base_time retry;
    } row[] = {
        {"/plain429", 429, BASE_EAGAIN, "", "Too many requests", 2 * BASE_SEC},
        {"/body429", 429, BASE_EAGAIN, "TooManyRequests", "storage is (re)initializing", 3 * BASE_SEC},
        {"/conflict?x=1", 409, BASE_ECONFLICT, "Conflict", "/conflict: 409 Conflict: the object", 0},
        {"/deny", 403, BASE_EDENIED, "Forbidden", ": no", 0},
        {"/html", 502, BASE_EUNKNOWN, "", "502: <html> <h1>Bad Gateway</h1> </html>", 0},
        {"/empty", 404, BASE_ENOTFOUND, "", "/empty: 404", 0},
        {"/late", 504, BASE_EUNKNOWN, "Timeout", "may still", 0},
        {"/moved", 301, BASE_EPROTO, "", "301", 0},
        {"/fine", 200, BASE_OK, "", "", 0},
    };
    static const char *const methods[] = {"GET", "PUT", "POST", "DELETE", "PATCH"};
    struct env *e = env_new(statuses, NULL, NULL);

    for (unsigned i = 0; i < BASE_LEN(row); i++)
        for (unsigned m = 0; m < BASE_LEN(methods); m++) {
            struct got g = fetch(e, methods[m], row[i].path, m ? "{}" : NULL);

            cr_expect_eq(g.code, BASE_OK, "%s: %s", row[i].path, g.err);
            cr_expect_eq(g.status, row[i].status, "%s: %d", row[i].path, g.status);
            cr_expect_eq(g.err_code, row[i].err, "%s: %s", row[i].path, base_code_name(g.err_code));
            cr_expect_str_eq(g.reason, row[i].reason, "%s: %s", row[i].path, g.reason);
            cr_expect(strstr(g.err, row[i].text) != NULL, "%s: %s", row[i].path, g.err);
            cr_expect_eq(g.retry_after, row[i].retry, "%s", row[i].path);
        }
    cr_assert_eq(e->s.n_conns, 1);
    env_free(e);
}

/* ---- tokens */
static const char *_Atomic wanted;

static void guarded(struct ts_conn *c)
{
    while (ts_request(c)) {
        char line[128];

        base_fmt(line, sizeof line, "Authorization: Bearer %s\r\n", wanted);
        if (strstr(c->req, line))
            ts_answer(c, "200 OK", "", "{\"type\":\"BOOKMARK\"}\n");
        else
            ts_answer(c, "401 Unauthorized", "",
                      "{\"kind\":\"Status\",\"reason\":\"Unauthorized\",\"message\":\"Unauthorized\"}");
    }
}

/* B18 */
Test(kube_client, a_rotated_token_costs_one_refusal_and_writes_go_through)
{
    struct env *e;
    struct got g, w = {0};

    wanted = TOKEN;
    e = env_new(guarded, NULL, NULL);
    cr_assert_eq(fetch(e, "GET", "/1", NULL).status, 200);
    wanted = "s3cret-two";
    put_token(e, "s3cret-two\n");
    g = fetch(e, "PUT", "/2", "{}");
    cr_assert_eq(g.status, 200, "%s", g.err);
    cr_assert_eq(e->s.n_reqs, 3, "one refusal");
    g = fetch(e, "PUT", "/3", "{}");
    cr_assert_eq(g.status, 200);
    cr_assert_eq(e->s.n_reqs, 4);
    wanted = "s3cret-three";
    put_token(e, "s3cret-three");
    watch(e, &w, "/4", 5000, 0);
    wait_for(&w);
    cr_assert_eq(w.status, 200, "%s", w.err);
    cr_assert_eq(w.opens, 1);
    cr_assert_str_eq(w.text, "{\"type\":\"BOOKMARK\"}|");
    env_free(e);
}

Test(kube_client, a_token_is_read_when_it_is_asked_for)
{
    struct env *e;

    wanted = TOKEN;
    e = env_new(guarded, NULL, NULL);
    cr_assert_eq(fetch(e, "GET", "/1", NULL).status, 200);
    wanted = "s3cret-two";
    put_token(e, "s3cret-two\n");
    kube_client_reread(e->c);
    cr_assert_eq(fetch(e, "GET", "/2", NULL).status, 200);
    cr_assert_eq(e->s.n_reqs, 2, "no refusal");
    env_free(e);
}

/* kube-apiserver ends the connection with a 401, and the end can overtake the body. */
static void guarded_in_haste(struct ts_conn *c)
{
    static const char cut[] = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 99\r\n\r\n{\"kind\":\"Sta";

    while (ts_request(c)) {
        char line[128];

        base_fmt(line, sizeof line, "Authorization: Bearer %s\r\n", wanted);
        if (strstr(c->req, line)) {
            ts_answer(c, "200 OK", "", "{}");
            continue;
        }
        ts_write(c, cut, sizeof cut - 1);
        return;
    }
}

Test(kube_client, a_refusal_that_is_cut_off_is_a_refusal)
{
    struct env *e;
    struct got g;

    wanted = "s3cret-two";
    e = env_new(guarded_in_haste, NULL, NULL);
    put_token(e, TOKEN);
    g = fetch(e, "PUT", "/1", "{}");
    cr_assert_eq(g.status, 401);
    cr_assert_eq(e->s.n_reqs, 1);
    put_token(e, "s3cret-two\n");
    g = fetch(e, "PUT", "/2", "{}");
    cr_assert_eq(g.status, 200, "%s", g.err);
    cr_assert_eq(e->s.n_reqs, 3, "one refusal");
    env_free(e);
}

Test(kube_client, a_refused_token_that_has_not_changed_is_not_tried_again)
{
    struct env *e;
    struct got g;

    wanted = "s3cret-other";
    e = env_new(guarded, NULL, NULL);
    g = fetch(e, "PUT", "/1", "{}");
    cr_assert_eq(g.status, 401);
    cr_assert_str_eq(g.reason, "Unauthorized");
    cr_assert_eq(g.err_code, BASE_EDENIED);
    cr_assert_eq(e->s.n_reqs, 1);
    /* broken files change nothing, and are no reason to forget the token */
    put_token(e, "");
    cr_assert_eq(fetch(e, "GET", "/2", NULL).status, 401);
    cr_assert_eq(e->s.n_reqs, 2);
    unlink(e->token_file);
    cr_assert_eq(fetch(e, "GET", "/3", NULL).status, 401);
    cr_assert_eq(e->s.n_reqs, 3);
    wanted = TOKEN;
    cr_assert_eq(fetch(e, "GET", "/4", NULL).status, 200, "the last good token");
    env_free(e);
}

static void always_401(struct ts_conn *c)
{
    struct env *e = c->srv->arg;

    while (ts_request(c)) {
        char t[64];

        base_fmt(t, sizeof t, "s3cret-%d", atomic_load(&c->srv->n_reqs));
        put_token(e, t);
        ts_answer(c, "401 Unauthorized", "", "");
    }
}

Test(kube_client, at_most_one_repeat_after_a_401)
{
    struct env *e = env_new(always_401, NULL, NULL);
    struct got g = fetch(e, "GET", "/1", NULL);

    cr_assert_eq(g.status, 401);
    cr_assert_eq(g.done, 1);
    cr_assert_eq(e->s.n_reqs, 2);
    env_free(e);
}

/* ---- lanes */
static void stall_on_request(struct ts_conn *c)
{
    while (ts_request(c)) {
        if (strstr(c->req, "/stall"))
            ts_stall(c, 30000);
        ts_answer(c, "200 OK", "", "{}");
    }
}

/* B16, B17, B19 */
Test(kube_client, lanes_share_no_connection_and_a_time_out_touches_its_own_only)
{
    struct env *e = env_new(stall_on_request, NULL, NULL);
    int lane = kube_lane_new(e->c), lane2 = kube_lane_new(e->c);
    struct got def = {0}, ren = {0}, prv = {0}, again = {0};
    base_time t0;

    cr_assert_eq(lane, KUBE_LANE_PRIVATE);
    cr_assert_eq(lane2, KUBE_LANE_PRIVATE + 1);
    ask(e, &ren, "PUT", "/renew", "{}", KUBE_LANE_RENEW, 5000);
    wait_for(&ren);
    ask(e, &prv, "GET", "/list", NULL, lane, 5000);
    wait_for(&prv);
    ask(e, &again, "GET", "/list", NULL, lane2, 5000);
    wait_for(&again);
    cr_assert_neq(again.port, prv.port);
    t0 = loop_clock();
    ask(e, &def, "PUT", "/stall", "{}", KUBE_LANE_DEFAULT, 1500);
    ask(e, &again, "PUT", "/renew", "{}", KUBE_LANE_RENEW, 5000);
    wait_for(&again);
    cr_assert_eq(def.done, 0);
    cr_assert_lt(loop_clock() - t0, 1500 * BASE_MS, "a renewal does not wait for others");
    cr_assert_eq(again.port, ren.port);
    wait_for(&def);
    cr_assert_eq(def.code, BASE_ETIMEDOUT, "%s", def.err);
    cr_assert(def.sent);
    cr_assert(strstr(def.err, "PUT /stall"), "%s", def.err);
    ask(e, &again, "PUT", "/renew", "{}", KUBE_LANE_RENEW, 5000);
    wait_for(&again);
    cr_assert_eq(again.port, ren.port, "the other lanes keep their connections");
    ask(e, &again, "GET", "/list", NULL, lane, 5000);
    wait_for(&again);
    cr_assert_eq(again.port, prv.port);
    ask(e, &again, "PUT", "/x", "{}", KUBE_LANE_DEFAULT, 5000);
    wait_for(&again);
    cr_assert_eq(again.code, BASE_OK, "%s", again.err);
    cr_assert_neq(again.port, def.port, "after a time-out a connection is never used again");
    kube_lane_drop(e->c, lane);
    ask(e, &again, "GET", "/list", NULL, lane, 5000);
    wait_for(&again);
    cr_assert_neq(again.port, prv.port);
    kube_lane_drop(e->c, 99);
    kube_lane_drop(e->c, -1);
    env_free(e);
}

Test(kube_client, renewals_have_one_connection)
{
    struct env *e = env_new(mirror, NULL, NULL);
    struct got g[5] = {0};

    for (unsigned i = 0; i < BASE_LEN(g); i++)
        ask(e, &g[i], "PUT", "/renew", "{}", KUBE_LANE_RENEW, 20000);
    for (unsigned i = 0; i < BASE_LEN(g); i++) {
        wait_for(&g[i]);
        cr_assert_eq(g[i].code, BASE_OK, "%s", g[i].err);
        cr_assert_eq(g[i].port, g[0].port);
    }
    cr_assert_eq(e->s.n_conns, 1);
    env_free(e);
}

Test(kube_client, a_host_name_is_resolved_beforehand_for_renewals)
{
    struct env *e = env_new(mirror, "DNS:localhost", NULL);
    struct kube_config *cfg = kube_config_dup(e->cfg);
    struct kube_resolve *r = NULL;
    struct kube_url u;
    struct got g = {0};
    char url[64];
    const char *known = NULL;

    base_fmt(url, sizeof url, "https://localhost:%d", e->s.port);
    base_free(cfg->server);
    cfg->server = base_strdup(url);
    kube_client_free(e->c);
    cr_assert_eq(kube_client_new(&e->c, e->l, cfg, "x", NULL, NULL), BASE_OK);
    ask(e, &g, "PUT", "/renew", "{}", KUBE_LANE_RENEW, 5000);
    wait_for(&g);
    cr_assert_eq(g.code, BASE_OK, "%s", g.err);
    cr_assert_eq(kube_url_parse(&u, url, NULL), BASE_OK);
    cr_assert_eq(kube_resolve_new(&r, e->l, &u), BASE_OK);
    cr_assert_null(kube_resolve_get(r, loop_clock()), "never waits");
    for (base_time end = loop_clock() + 20 * BASE_SEC; !(known = kube_resolve_get(r, loop_clock()));) {
        cr_assert_lt(loop_clock(), end, "'localhost' has no address here: is it in /etc/hosts?");
        loop_step(e->l, false);
        (void)poll(NULL, 0, 2);
    }
    cr_assert(strstr(known, "127.0.0.1") && strstr(known, "localhost:"), "%s", known);
    /* asks again in the background after 30 s and may be freed meanwhile */
    cr_assert_not_null(kube_resolve_get(r, loop_clock() + 31 * BASE_SEC));
    kube_resolve_free(r);
    ask(e, &g, "PUT", "/renew", "{}", KUBE_LANE_RENEW, 5000);
    wait_for(&g);
    cr_assert_eq(g.code, BASE_OK, "%s", g.err);
    kube_config_free(cfg);
    env_free(e);
}

Test(kube_client, another_root_is_not_trusted)
{
    struct env *e = env_new(mirror, NULL, NULL);
    struct kube_config *cfg = kube_config_dup(e->cfg);
    struct ts_id root = ts_issue("another root", NULL, NULL);
    struct got g;

    base_free(cfg->ca);
    cfg->ca = base_strdup(root.cert_pem);
    kube_client_free(e->c);
    cr_assert_eq(kube_client_new(&e->c, e->l, cfg, "x", NULL, NULL), BASE_OK);
    g = fetch(e, "PUT", "/x", "{}");
    cr_assert_eq(g.code, BASE_EIO);
    cr_assert_not(g.sent);
    cr_assert(strstr(g.err, "certificate is not accepted"), "%s", g.err);
    cr_assert_eq(e->s.n_reqs, 0);
    ts_id_free(&root);
    kube_config_free(cfg);
    env_free(e);
}

/* ---- streams */
static void streams(struct ts_conn *c)
{
    static char big[1 << 20];

    while (ts_request(c)) {
        if (strstr(c->req, " /cut ")) {
            ts_send(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for (const char *p = "{\"type\":\"ADDED\"}\n{\"type\":\"MODIFIED\"}\n"; *p; p++)
                ts_chunk(c, (char[]){*p, '\0'});
            ts_send(c, "0\r\n\r\n");
        } else if (strstr(c->req, " /silent ")) {
            ts_send(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            ts_stall(c, 30000);
        } else if (strstr(c->req, " /whole ")) {
            ts_answer(c, "200 OK", "", "{\"type\":\"ERROR\",\"object\":{\"code\":410}}"); /* no line end */
        } else if (strstr(c->req, " /gone ")) {
            ts_answer(c, "410 Gone", "Content-Type: application/json\r\n",
                      "{\n  \"kind\": \"Status\",\n  \"reason\": \"Expired\",\n  \"message\": \"too old\",\n "
                      " \"code\": 410\n}\n");
        } else if (strstr(c->req, " /reset ")) {
            ts_send(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            ts_chunk(c, "{\"type\":\"ADDED\"}\n{\"type\":\"DEL");
            ts_stall(c, 300);
            ts_reset(c);
            return;
        } else if (strstr(c->req, " /long ")) {
            ts_send(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            memset(big, 'x', sizeof big - 1);
            ts_chunk(c, "small\n");
            for (int i = 0; i < 6; i++)
                ts_chunk(c, big);
            return;
        } else {
            ts_send(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for (int i = 0; i < 200; i++) {
                ts_chunk(c, "{\"type\":\"MODIFIED\"}\n{\"type\":\"MODIFIED\"}\n");
                ts_stall(c, 5);
            }
            ts_send(c, "0\r\n\r\n");
        }
    }
}

/* S1, B3, B23 */
Test(kube_stream, ends_of_every_kind)
{
    static const struct {
        const char *path;
        int idle_ms, opens, lines, code, status;
        const char *text, *reason, *err;
    } row[] = {
        {"/cut", 0, 1, 2, BASE_OK, 200, "{\"type\":\"ADDED\"}|{\"type\":\"MODIFIED\"}|", "", ""},
        {"/silent", 200, 1, 0, BASE_ETIMEDOUT, 200, "", "", "no byte from the server for 200 ms"},
        {"/silent", 0, 1, 0, BASE_ETIMEDOUT, 200, "", "", "no complete answer within 1500 ms"},
        {"/whole", 0, 1, 1, BASE_OK, 200, "{\"type\":\"ERROR\",\"object\":{\"code\":410}}|", "", ""},
        {"/gone", 0, 0, 0, BASE_OK, 410, "", "Expired", "too old"},
        {"/reset", 0, 1, 1, BASE_ECLOSED, 200, "{\"type\":\"ADDED\"}|", "", "GET /reset"},
        {"/long", 0, 1, 1, BASE_EFULL, 200, "small|", "", "longer than 4194304 bytes"},
    };

    for (unsigned i = 0; i < BASE_LEN(row); i++) {
        struct env *e = env_new(streams, NULL, NULL);
        struct got g = {0};

        watch(e, &g, row[i].path, 1500, row[i].idle_ms);
        wait_for(&g);
        settle(e, 20);
        cr_expect_eq(g.code, row[i].code, "%s: %s %s", row[i].path, base_code_name(g.code), g.err);
        cr_expect_eq(g.status, row[i].status, "%s: %d", row[i].path, g.status);
        cr_expect_eq(g.opens, row[i].opens, "%s", row[i].path);
        cr_expect_eq(g.lines, row[i].lines, "%s: %d lines", row[i].path, g.lines);
        cr_expect_eq(g.ends, 1, "%s", row[i].path);
        cr_expect_str_eq(g.text, row[i].text, "%s: %s", row[i].path, g.text);
        cr_expect_str_eq(g.reason, row[i].reason, "%s", row[i].path);
        cr_expect(strstr(g.err, row[i].err) != NULL, "%s: %s", row[i].path, g.err);
        env_free(e);
    }
}

Test(kube_stream, callbacks_may_cancel_and_free)
{
    for (int at = 1; at <= 4; at++)
        for (int how = 0; how < 2; how++) {
            struct env *e = env_new(streams, NULL, NULL);
            struct got g = {.cancel_at = how ? 0 : at, .free_at = how ? at : 0}, other = {0};

            watch(e, &g, "/ticks", 20000, 0);
            while (g.calls < at)
                loop_step(e->l, true);
            settle(e, 40);
            cr_expect_eq(g.calls, at, "nobody is called after the end: %d calls, not %d", g.calls, at);
            cr_expect_eq(g.ends, 0);
            if (e->c) {
                ask(e, &other, "GET", "/whole", NULL, 0, 5000);
                wait_for(&other);
                cr_expect_eq(other.code, BASE_OK, "%s", other.err);
            }
            env_free(e);
        }
}

Test(kube_client, done_may_cancel_and_free)
{
    for (int how = 0; how < 2; how++) {
        struct env *e = env_new(mirror, NULL, NULL);
        struct got g = {.cancel_at = how ? 0 : 1, .free_at = how ? 1 : 0}, other = {0};

        ask(e, &g, "GET", "/1", NULL, KUBE_LANE_RENEW, 5000);
        ask(e, &other, "GET", "/2", NULL, KUBE_LANE_RENEW, 5000); /* waits for the one connection */
        wait_for(&g);
        if (how)
            settle(e, 30);
        else
            wait_for(&other);
        cr_expect_eq(g.done, 1);
        cr_expect_eq(other.done, how ? 0 : 1, "how %d: %d %s", how, other.done, other.err);
        env_free(e);
    }
}

Test(kube_client, cancelled_from_outside)
{
    struct env *e = env_new(stall_on_request, NULL, NULL);
    struct got a = {0}, b = {0};

    ask(e, &a, "PUT", "/stall", "{}", KUBE_LANE_RENEW, 5000);
    ask(e, &b, "PUT", "/fine", "{}", KUBE_LANE_RENEW, 5000);
    while (e->s.n_reqs == 0)
        loop_step(e->l, false);
    kube_cancel(a.call); /* its connection is closed, so the next one gets a connection at once */
    wait_for(&b);
    cr_assert_eq(b.code, BASE_OK, "%s", b.err);
    cr_assert_eq(a.done, 0);
    ask(e, &a, "PUT", "/never", "{}", KUBE_LANE_DEFAULT, 5000);
    kube_cancel(a.call);
    settle(e, 30);
    cr_assert_eq(a.done, 0);
    cr_assert_eq(e->s.n_reqs, 2);
    env_free(e);
}

/* ---- bad input */
Test(kube_client, bad_requests_are_refused_with_the_field)
{
    static const struct {
        struct kube_req r;
        const char *word;
    } row[] = {
        {{.method = "get", .path = "/x"}, "method"},
        {{.method = NULL, .path = "/x"}, "method"},
        {{.method = "OPTIONS", .path = "/x"}, "method"},
        {{.method = "GET", .path = "x"}, "path"},
        {{.method = "GET", .path = NULL}, "path"},
        {{.method = "GET", .path = "/x y"}, "percent"},
        {{.method = "GET", .path = "/x", .lane = 7}, "lane 7"},
        {{.method = "GET", .path = "/x", .lane = KUBE_LANE_PRIVATE}, "kube_lane_new"},
        {{.method = "GET", .path = "/x", .lane = -1}, "lane"},
        {{.method = "GET", .path = "/x", .timeout = -1}, "time-out"},
        {{.method = "PUT", .path = "/x", .body = {"", (size_t)4 << 20}}, "body"},
        {{.method = "PUT", .path = "/x", .content_type = "a\r\nb"}, "content_type"},
        {{.method = "PUT", .path = "/x", .content_type = ""}, "content_type"},
        {{.method = "PUT", .path = "/x", .audit_id = "a\nb"}, "audit_id"},
    };
    struct env *e = env_new(mirror, NULL, NULL);
    struct kube_client *c = NULL;
    struct base_err err = {0};
    struct got g = {0};

    for (unsigned i = 0; i < BASE_LEN(row); i++) {
        cr_expect_eq(kube_request(e->c, &row[i].r, on_done, &g, &g.call, &err), BASE_EINVAL, "row %u", i);
        cr_expect(strstr(err.msg, row[i].word) != NULL, "row %u: %s", i, err.msg);
        cr_expect_eq(kube_stream(e->c, &row[i].r, 0, on_stream, &g, &g.call, &err), BASE_EINVAL, "row %u", i);
        cr_expect_null(g.call);
    }
    cr_expect_eq(kube_client_new(&c, e->l, e->cfg, "a\r\nb", NULL, &err), BASE_EINVAL);
    cr_expect(strstr(err.msg, "user agent"), "%s", err.msg);
    for (int i = 0; i < 300; i++)
        if (kube_lane_new(e->c) < 0) {
            cr_expect_eq(i, 254);
            break;
        }
    cr_expect_eq(kube_lane_new(e->c), BASE_EFULL);
    env_free(e);
}

Test(kube_client, survives_every_failed_allocation)
{
    struct env *e = env_new(mirror, NULL, NULL);
    unsigned long n;
    int ok = 0;

    for (n = 1; n < 60 && ok < 3; n++) {
        struct kube_client *c = NULL;
        struct kube_req r = {.method = "PUT", .path = "/x", .body = BASE_STR("{}"), .audit_id = "a"};
        struct got g = {.e = e};
        int rc;

        base_mem_fail_after(n);
        rc = kube_client_new(&c, e->l, e->cfg, "x", NULL, NULL);
        if (rc == BASE_OK)
            rc = kube_request(c, &r, on_done, &g, NULL, NULL);
        if (rc == BASE_OK)
            while (!g.done)
                loop_step(e->l, true);
        base_mem_fail_after(0);
        cr_assert(rc == BASE_OK || rc == BASE_ENOMEM, "allocation %lu: %s", n, base_code_name(rc));
        ok += rc == BASE_OK && g.code == BASE_OK;
        kube_client_free(c);
    }
    cr_assert_eq(ok, 3);
    env_free(e);
}
