/* SPDX-License-Identifier: Apache-2.0
 *
 * client.c - requests and streams to one API server.
 *
 * A call is one or two HTTP requests: after a 401 the credentials are read again, and if they have changed
 * the request goes out once more (a 401 was certainly not carried out, so that holds for writes too). Nothing
 * else is repeated here.
 */
#include <string.h>

#include "http/pool.h"
#include "kube_int.h"
#include "loop/log.h"
#include "loop/loop.h"

#define LANES_MAX 256
#define BODY_MAX ((size_t)64 << 20)
#define BODY_MAX_WRITE ((size_t)8 << 20)
#define BODY_MAX_SECRET ((size_t)64 << 10)
#define REQUEST_MAX ((size_t)3 << 20) /* the API server's own limit */
#define DEFAULT_TIMEOUT (10 * BASE_SEC)

struct kube_call {
    struct kube_call *prev, *next;
    struct kube_client *client;
    struct http_call *http;
    /* the request */
    const char *method; /* one of ours */
    char *path, *content_type, *audit_id, *header, *body;
    size_t body_len;
    bool secret;
    int lane;
    base_time deadline, idle;
    /* who waits */
    kube_done done;
    kube_stream_fn fn;
    void *arg;
    /* state */
    struct kube_frame frame;
    uint64_t gen; /* of the credentials used */
    int stop;     /* why our side ends a stream */
    bool retried, open, cancelled;
    unsigned in_callback;
};

struct kube_client {
    struct loop *loop;
    struct loop_log *log;
    struct kube_creds creds;
    struct kube_url url;
    char hostport[300], urlbase[900], *user_agent;
    struct kube_resolve *resolve;
    struct http_pool *lanes[LANES_MAX];
    int n_lanes;
    struct kube_call calls; /* ring */
};

/* ---- client */
static int lane_open(struct kube_client *c, const struct http_pool_opts *o, struct base_err *err)
{
    int rc;

    if (c->n_lanes == LANES_MAX)
        return base_err_set(err, BASE_EFULL, "API client: there are %d lanes already", LANES_MAX);
    rc = http_pool_new(&c->lanes[c->n_lanes], c->loop, o, err);
    return rc == BASE_OK ? c->n_lanes++ : rc;
}

int kube_client_new(struct kube_client **ret, struct loop *l, const struct kube_config *cfg,
                    const char *user_agent, struct loop_log *log, struct base_err *err)
{
    static const struct http_pool_opts shared = {true, 0}, renew = {false, 1};
    struct kube_client *c = base_calloc(1, sizeof *c);
    struct kube_config *copy = kube_config_dup(cfg);
    int rc = BASE_OK;

    if (!c || !copy) {
        base_free(c);
        kube_config_free(copy);
        return base_err_set(err, BASE_ENOMEM, "API client: no memory");
    }
    c->loop = l;
    c->log = log;
    c->calls.prev = c->calls.next = &c->calls;
    kube_creds_init(&c->creds, copy, log, loop_clock());
    c->user_agent = base_strdup(user_agent);
    if (!c->user_agent)
        rc = base_err_set(err, BASE_ENOMEM, "API client: no memory");
    for (const char *p = user_agent; rc == BASE_OK && *p; p++)
        if (*p < ' ' || *p > '~')
            rc = base_err_set(err, BASE_EINVAL,
                              "API client: the user agent holds a character that no header can hold");
    if (rc == BASE_OK)
        rc = kube_url_parse(&c->url, copy->server, err);
    if (rc == BASE_OK) {
        kube_url_hostport(c->hostport, sizeof c->hostport, &c->url);
        /* tls-server-name stands in the URL, so that it is what TLS checks; we connect to the real place */
        if (copy->tls_server_name)
            base_fmt(c->urlbase, sizeof c->urlbase, "https://%s:%d%s", copy->tls_server_name, c->url.port,
                     c->url.prefix);
        else
            base_fmt(c->urlbase, sizeof c->urlbase, "https://%s%s", c->hostport, c->url.prefix);
        rc = lane_open(c, &shared, err);
    }
    if (rc == KUBE_LANE_DEFAULT)
        rc = lane_open(c, &renew, err);
    if (rc == KUBE_LANE_RENEW)
        rc = c->url.ip || copy->proxy ? BASE_OK : kube_resolve_new(&c->resolve, l, &c->url);
    if (rc != BASE_OK) {
        if (rc > 0)
            rc = BASE_ENOMEM;
        kube_client_free(c);
        return rc;
    }
    *ret = c;
    return BASE_OK;
}

struct kube_client *kube_client_free(struct kube_client *c)
{
    if (!c)
        return NULL;
    while (c->calls.next != &c->calls)
        kube_cancel(c->calls.next);
    for (int i = 0; i < c->n_lanes; i++)
        http_pool_free(c->lanes[i]);
    kube_resolve_free(c->resolve);
    kube_creds_fini(&c->creds);
    base_free(c->user_agent);
    return base_free(c);
}

void kube_client_reread(struct kube_client *c)
{
    kube_creds_refresh(&c->creds, loop_clock(), true);
}

int kube_lane_new(struct kube_client *c)
{
    static const struct http_pool_opts shared = {true, 0};

    return lane_open(c, &shared, NULL);
}

void kube_lane_drop(struct kube_client *c, int lane)
{
    if (lane >= 0 && lane < c->n_lanes)
        http_pool_drop(c->lanes[lane]);
}

void kube_lanes_again(struct kube_client *c)
{
    for (int i = 0; i < c->n_lanes; i++)
        http_pool_again(c->lanes[i]);
}

/* ---- one call */
static void unlink_call(struct kube_call *k)
{
    k->prev->next = k->next;
    k->next->prev = k->prev;
    k->prev = k->next = k;
}

static void call_free(struct kube_call *k)
{
    base_free(k->path);
    base_free(k->content_type);
    base_free(k->audit_id);
    kube_wipe(k->header);
    if (k->secret && k->body)
        explicit_bzero(k->body, k->body_len);
    base_free(k->body);
    kube_frame_fini(&k->frame);
    base_free(k);
}

void kube_cancel(struct kube_call *k)
{
    if (k->cancelled)
        return;
    k->cancelled = true;
    unlink_call(k);
    if (k->http)
        http_cancel(k->http, true);
    k->http = NULL;
    if (!k->in_callback)
        call_free(k);
}

/* The callback of a stream; false when the call is gone after it. */
static bool tell(struct kube_call *k, enum kube_stream_what what, struct base_str line)
{
    k->in_callback++;
    k->fn(k->arg, what, line, NULL);
    k->in_callback--;
    return !k->cancelled;
}

static bool on_line(void *arg, struct base_str line)
{
    return tell(arg, KUBE_STREAM_LINE, line);
}

/* Guards the call while http may run several callbacks in a row. */
static void leave(struct kube_call *k)
{
    if (k->cancelled && !k->in_callback)
        call_free(k);
}

static bool on_head(void *arg, int status)
{
    struct kube_call *k = arg;

    if (!k->fn || status != 200)
        return false;
    k->open = true;
    (void)tell(k, KUBE_STREAM_OPEN, (struct base_str){NULL, 0});
    leave(k);
    return true;
}

static bool on_body(void *arg, struct base_str piece)
{
    struct kube_call *k = arg;
    int rc;

    k->in_callback++;
    rc = kube_frame_feed(&k->frame, piece, on_line, k);
    k->in_callback--;
    if (k->cancelled) {
        leave(k);
        return false;
    }
    k->stop = rc;
    return rc == BASE_OK;
}

/* Text of what went wrong: method, path without the query, what came. */
static void explain(const struct kube_call *k, const struct http_resp *h, struct kube_resp *r)
{
    struct kube_status st;
    int n = (int)strcspn(k->path, "?");

    if (n > 160)
        n = 160;
    if (h->code != BASE_OK) {
        r->err = h->err;
        if (k->stop == BASE_EFULL)
            base_err_set(&r->err, BASE_EFULL, "a line of the stream is longer than %zu bytes",
                         k->frame.part.max);
        else if (k->stop == BASE_ENOMEM)
            base_err_set(&r->err, BASE_ENOMEM, "no memory for a line of the stream");
        r->code = r->err.code;
        r->err.http_status = h->status;
        base_err_wrap(&r->err, "%s %.*s", k->method, n, k->path);
        return;
    }
    if (h->status < 300)
        return;
    kube_status_parse(&st, h->body);
    memcpy(r->reason, st.reason, sizeof r->reason);
    if (!r->retry_after)
        r->retry_after = st.retry_after;
    base_err_set(&r->err, kube_status_code(h->status), "%s %.*s: %d%s%s%s%s", k->method, n, k->path,
                 h->status, st.reason[0] ? " " : "", st.reason, st.message[0] ? ": " : "", st.message);
    r->err.http_status = h->status;
}

static void deliver(struct kube_call *k, const struct http_resp *h)
{
    struct kube_resp r = {.code = h->code,
                          .sent = h->sent,
                          .http_status = h->status,
                          .sent_at = h->sent_at,
                          .retry_after = h->retry_after,
                          .body = h->body,
                          .local_port = h->local_port};

    k->http = NULL;
    /* A stream that ended in good order may lack the last line's end. */
    if (k->open && h->code == BASE_OK) {
        k->in_callback++;
        (void)kube_frame_end(&k->frame, on_line, k);
        k->in_callback--;
        if (k->cancelled) {
            leave(k);
            return;
        }
    }
    explain(k, h, &r);
    unlink_call(k);
    k->cancelled = true; /* from here on kube_cancel does nothing */
    if (k->fn)
        k->fn(k->arg, KUBE_STREAM_END, (struct base_str){NULL, 0}, &r);
    else
        k->done(k->arg, &r);
    call_free(k);
}

static int send_it(struct kube_call *k, struct base_err *err);

static void on_done(void *arg, const struct http_resp *h)
{
    struct kube_call *k = arg;
    struct kube_client *c = k->client;
    struct base_err err = {0};

    /* The head says it all: kube-apiserver closes the connection behind a 401, often before the body's end. */
    if (h->status == 401 && !k->retried) {
        uint64_t used = k->gen;

        k->retried = true;
        kube_creds_refresh(&c->creds, loop_clock(), true);
        if (c->creds.gen != used && loop_clock() < k->deadline && send_it(k, &err) == BASE_OK)
            return;
    }
    deliver(k, h);
}

static int send_it(struct kube_call *k, struct base_err *err)
{
    struct kube_client *c = k->client;
    const struct kube_config *cfg;
    base_time now = loop_clock();
    char host[320], type[160], agent[200], audit[160], *url, *auth = NULL;
    const char *headers[7];
    struct http_handler h = {on_head, on_body, on_done, k};
    struct http_req r = {
        .method = k->method, .headers = headers, .repeatable = strcmp(k->method, "GET") == 0};
    size_t n;
    int rc;

    kube_creds_refresh(&c->creds, now, false);
    cfg = c->creds.c;
    k->gen = c->creds.gen;
    n = strlen(c->urlbase) + strlen(k->path) + 1;
    url = base_calloc(1, n);
    if (!url)
        return base_err_set(err, BASE_ENOMEM, "API client: no memory");
    base_fmt(url, n, "%s%s", c->urlbase, k->path);
    if (!k->header || strncmp(k->header, "Accept: ", 8) != 0)
        headers[r.n_headers++] = "Accept: application/json";
    base_fmt(agent, sizeof agent, "User-Agent: %.180s", c->user_agent);
    headers[r.n_headers++] = agent;
    if (k->body_len) {
        base_fmt(type, sizeof type, "Content-Type: %s", k->content_type);
        headers[r.n_headers++] = type;
    }
    if (k->audit_id) {
        base_fmt(audit, sizeof audit, "Audit-ID: %s", k->audit_id);
        headers[r.n_headers++] = audit;
    }
    if (k->header)
        headers[r.n_headers++] = k->header;
    if (cfg->tls_server_name) {
        base_fmt(host, sizeof host, "Host: %s", c->hostport);
        headers[r.n_headers++] = host;
        r.connect_to = c->hostport;
    }
    if (cfg->token) {
        n = strlen(cfg->token) + sizeof "Authorization: Bearer ";
        auth = base_calloc(1, n);
        if (!auth) {
            base_free(url);
            return base_err_set(err, BASE_ENOMEM, "API client: no memory");
        }
        base_fmt(auth, n, "Authorization: Bearer %s", cfg->token);
        headers[r.n_headers++] = auth;
    }
    r.url = url;
    r.body = (struct base_str){k->body, k->body_len};
    r.tls = (struct http_tls){base_str_of(cfg->ca), base_str_of(cfg->cert), base_str_of(cfg->key)};
    r.resolve = k->lane == KUBE_LANE_RENEW && c->resolve ? kube_resolve_get(c->resolve, now) : NULL;
    r.proxy = cfg->proxy;
    r.timeout = base_time_max(k->deadline - now, 1);
    r.idle = k->idle;
    r.max_body = k->secret ? BODY_MAX_SECRET : r.repeatable ? BODY_MAX : BODY_MAX_WRITE;
    r.secret = k->secret;
    rc = http_start(c->lanes[k->lane], &r, &h, &k->http, err);
    base_free(url);
    kube_wipe(auth);
    return rc;
}

static const char *method_of(const char *m)
{
    static const char *const known[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};

    for (unsigned i = 0; m && i < BASE_LEN(known); i++)
        if (strcmp(known[i], m) == 0)
            return known[i];
    return NULL;
}

/* A short header value: visible ASCII and spaces. */
static bool header_text(const char *z, size_t max)
{
    size_t n = strlen(z);

    for (size_t i = 0; i < n; i++)
        if (z[i] < ' ' || z[i] > '~')
            return false;
    return n > 0 && n <= max;
}

static int check(const struct kube_client *c, const struct kube_req *req, struct base_err *err)
{
    int rc = kube_path_check(req->path, err);

    if (rc != BASE_OK)
        return rc;
    if (!method_of(req->method))
        return base_err_set(err, BASE_EINVAL,
                            "request: method \"%.20s\" is none of GET, POST, PUT, PATCH, DELETE",
                            req->method ? req->method : "");
    if (req->lane < 0 || req->lane >= c->n_lanes)
        return base_err_set(err, BASE_EINVAL, "request: there is no lane %d; make it with kube_lane_new",
                            req->lane);
    if (req->timeout < 0)
        return base_err_set(err, BASE_EINVAL, "request: a time-out of %lld ns", (long long)req->timeout);
    if (req->body.len > REQUEST_MAX)
        return base_err_set(err, BASE_EINVAL, "request: a body of %zu bytes; the limit is %zu", req->body.len,
                            REQUEST_MAX);
    if (req->content_type && !header_text(req->content_type, 128))
        return base_err_set(err, BASE_EINVAL,
                            "request: content_type is no header value of 1..128 characters");
    if (req->audit_id && !header_text(req->audit_id, 128))
        return base_err_set(err, BASE_EINVAL, "request: audit_id is no header value of 1..128 characters");
    if (req->header && (!header_text(req->header, 16384) || !strchr(req->header, ':')))
        return base_err_set(err, BASE_EINVAL, "request: header is no \"Name: value\" of at most 16 KiB");
    return BASE_OK;
}

static int start(struct kube_client *c, const struct kube_req *req, struct kube_call *k,
                 struct kube_call **ret_call, struct base_err *err)
{
    int rc;

    k->prev = k->next = k;
    k->client = c;
    k->method = method_of(req->method);
    k->lane = req->lane;
    k->secret = req->secret;
    k->deadline = base_time_add(loop_clock(), req->timeout ? req->timeout : DEFAULT_TIMEOUT);
    kube_frame_init(&k->frame, KUBE_LINE_MAX);
    k->path = base_strdup(req->path);
    k->content_type = base_strdup(req->content_type ? req->content_type : "application/json");
    k->audit_id = req->audit_id ? base_strdup(req->audit_id) : NULL;
    k->header = req->header ? base_strdup(req->header) : NULL;
    k->body = base_calloc(1, req->body.len + 1);
    if (!k->path || !k->content_type || !k->body || (req->audit_id && !k->audit_id) ||
        (req->header && !k->header)) {
        rc = base_err_set(err, BASE_ENOMEM, "request: no memory");
    } else {
        if (req->body.len)
            memcpy(k->body, req->body.ptr, req->body.len);
        k->body_len = req->body.len;
        rc = send_it(k, err);
    }
    if (rc != BASE_OK) {
        call_free(k);
        return rc;
    }
    k->next = &c->calls;
    k->prev = c->calls.prev;
    k->prev->next = k;
    c->calls.prev = k;
    if (ret_call)
        *ret_call = k;
    return BASE_OK;
}

int kube_request(struct kube_client *c, const struct kube_req *req, kube_done done, void *arg,
                 struct kube_call **ret_call, struct base_err *err)
{
    struct kube_call *k;
    int rc = check(c, req, err);

    if (rc != BASE_OK)
        return rc;
    k = base_calloc(1, sizeof *k);
    if (!k)
        return base_err_set(err, BASE_ENOMEM, "request: no memory");
    k->done = done;
    k->arg = arg;
    return start(c, req, k, ret_call, err);
}

int kube_stream(struct kube_client *c, const struct kube_req *req, base_time idle, kube_stream_fn fn,
                void *arg, struct kube_call **ret_call, struct base_err *err)
{
    struct kube_call *k;
    int rc = check(c, req, err);

    if (rc != BASE_OK)
        return rc;
    k = base_calloc(1, sizeof *k);
    if (!k)
        return base_err_set(err, BASE_ENOMEM, "request: no memory");
    k->fn = fn;
    k->arg = arg;
    k->idle = idle;
    return start(c, req, k, ret_call, err);
}
