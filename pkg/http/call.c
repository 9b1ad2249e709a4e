/* SPDX-License-Identifier: Apache-2.0
 *
 * call.c - one request: options, what comes in, what came of it.
 */
#include <string.h>

#include "http_int.h"

#define HEAD_MAX (64 * 1024)

/* Right before the request goes to a connection, each time. */
static int on_prereq(void *arg, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    struct http_call *c = arg;
    long connects = 0;

    if (c->dead || (c->attempts > 0 && !c->repeatable))
        return CURL_PREREQFUNC_ABORT;
    c->attempts++;
    c->sent_at = loop_clock();
    c->resp.local_port = local_port;
    if (curl_easy_getinfo(c->easy, CURLINFO_NUM_CONNECTS, &connects) == CURLE_OK)
        c->resp.reused = connects == 0;
    return CURL_PREREQFUNC_OK;
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct http_call *c = arg;
    long status = 0;

    if (c->dead)
        return 0;
    n *= size;
    c->last_rx = loop_clock();
    c->head_bytes += n;
    if (c->head_bytes > HEAD_MAX) {
        c->abort_code = BASE_EFULL;
        return 0;
    }
    if (c->head_seen || n > 2 || (n > 0 && p[0] != '\r' && p[0] != '\n'))
        return n;
    if (curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK || status < 200)
        return n;
    c->head_seen = true;
    c->resp.status = (int)status;
    if (c->h.head)
        c->streaming = c->h.head(c->h.arg, (int)status) && c->h.body;
    return c->dead ? 0 : n;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct http_call *c = arg;

    if (c->dead)
        return 0;
    n *= size;
    c->last_rx = loop_clock();
    if (c->streaming) {
        if (!c->h.body(c->h.arg, (struct base_str){p, n}))
            c->abort_code = BASE_EFULL;
    } else {
        c->abort_code = base_buf_add(&c->in, p, n);
    }
    return c->dead || c->abort_code != BASE_OK ? 0 : n;
}

static void on_timer(void *arg)
{
    struct http_call *c = arg;
    base_time now = loop_clock(), idle = c->idle ? base_time_add(c->last_rx, c->idle) : BASE_TIME_NEVER;

    if (now >= c->deadline)
        http_call_timeout(c, false);
    else if (now >= idle)
        http_call_timeout(c, true);
    else
        loop_timer_set(c->timer, base_time_min(c->deadline, idle));
}

static bool clean_line(const char *z)
{
    for (; *z; z++)
        if ((unsigned char)*z < 0x20 || *z == 0x7f)
            return false;
    return true;
}

static bool token(const char *z)
{
    size_t n = z ? strspn(z, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") : 0;

    return n > 0 && n < 16 && z[n] == '\0';
}

static int check(const struct http_req *r, struct base_err *err)
{
    const char *scheme = r->plain ? "http://" : "https://";

    if (!token(r->method))
        return base_err_set(err, BASE_EINVAL, "http: the method must be 1..15 capital letters");
    if (!r->url || strncmp(r->url, scheme, strlen(scheme)) != 0 || !clean_line(r->url) || strchr(r->url, ' '))
        return base_err_set(err, BASE_EINVAL,
                            "http: the URL must begin with %s and hold no space or control character",
                            scheme);
    for (unsigned i = 0; i < r->n_headers; i++)
        if (!clean_line(r->headers[i])) /* the text may hold a token: it is not shown */
            return base_err_set(err, BASE_EINVAL, "http: header %u holds a control character", i);
    if (r->timeout <= 0)
        return base_err_set(err, BASE_EINVAL, "http: the time-out must be positive, not %lld ns",
                            (long long)r->timeout);
    return BASE_OK;
}

static bool append(struct curl_slist **list, const char *line)
{
    struct curl_slist *n = curl_slist_append(*list, line);

    if (n)
        *list = n;
    return n != NULL;
}

static bool set_blob(CURL *e, CURLoption opt, struct base_str s)
{
    union {
        const char *in;
        void *out;
    } data = {s.ptr};
    struct curl_blob blob = {data.out, s.len, CURL_BLOB_COPY};

    return s.len == 0 || curl_easy_setopt(e, opt, &blob) == CURLE_OK;
}

static bool set_options(struct http_call *c, const struct http_req *r)
{
    CURL *e = c->easy;
    struct http_pool *p = c->pool;
    long version = c->http2 ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1;
    long ms = (long)base_time_min(r->timeout / BASE_MS + 1, 24L * 3600 * 1000);
    bool ok = true;

#define SET(opt, val) ok = ok && curl_easy_setopt(e, (opt), (val)) == CURLE_OK
    SET(CURLOPT_PRIVATE, c);
    SET(CURLOPT_ERRORBUFFER, c->errbuf);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* or giving up would wait for a slow name server */
    SET(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    SET(CURLOPT_PROTOCOLS_STR, r->plain ? "http" : "https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_PROXY, r->proxy ? r->proxy : "");
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_URL, r->url);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_HTTP_VERSION, version);
    SET(CURLOPT_PIPEWAIT, c->http2 ? 1L : 0L);
    /* A connection that no request could be finished on in time is closed by us; this is only for the time
     * before. */
    SET(CURLOPT_CONNECTTIMEOUT_MS, ms);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_TCP_KEEPIDLE, 15L);
    SET(CURLOPT_TCP_KEEPINTVL, 5L);
    SET(CURLOPT_OPENSOCKETFUNCTION, http_socket_open);
    SET(CURLOPT_OPENSOCKETDATA, p);
    SET(CURLOPT_CLOSESOCKETFUNCTION, http_socket_close);
    SET(CURLOPT_CLOSESOCKETDATA, p);
    /* TLS */
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_SESSIONID_CACHE, 0L); /* a resumed session would keep the old client certificate */
    if (r->tls.ca.len) {
        /* only the given roots: libcurl would look in its default folder too */
        SET(CURLOPT_CAINFO, NULL);
        SET(CURLOPT_CAPATH, NULL);
    }
    ok = ok && set_blob(e, CURLOPT_CAINFO_BLOB, r->tls.ca) &&
         set_blob(e, CURLOPT_SSLCERT_BLOB, r->tls.cert) && set_blob(e, CURLOPT_SSLKEY_BLOB, r->tls.key);
    /* request */
    if (r->body.len || strcmp(r->method, "POST") == 0 || strcmp(r->method, "PUT") == 0 ||
        strcmp(r->method, "PATCH") == 0) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
        SET(CURLOPT_POSTFIELDS, c->body);
    } else {
        SET(CURLOPT_HTTPGET, 1L);
    }
    SET(CURLOPT_CUSTOMREQUEST, r->method);
    SET(CURLOPT_HTTPHEADER, c->headers);
    if (c->resolve)
        SET(CURLOPT_RESOLVE, c->resolve);
    if (c->connect_to)
        SET(CURLOPT_CONNECT_TO, c->connect_to);
    SET(CURLOPT_PREREQFUNCTION, on_prereq);
    SET(CURLOPT_PREREQDATA, c);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, c);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, c);
#undef SET
    return ok;
}

static bool build_lists(struct http_call *c, const struct http_req *r)
{
    bool ok = append(&c->headers, "Expect:");

    for (unsigned i = 0; ok && i < r->n_headers; i++)
        ok = append(&c->headers, r->headers[i]);
    if (ok && r->resolve)
        ok = append(&c->resolve, r->resolve);
    if (ok && r->connect_to) {
        char to[512];

        ok = base_fmt(to, sizeof to, "::%s", r->connect_to) && append(&c->connect_to, to);
    }
    if (ok && r->body.len) {
        c->body = base_calloc(1, r->body.len);
        if (c->body)
            memcpy(c->body, r->body.ptr, r->body.len);
    } else if (ok) {
        c->body = base_strdup("");
    }
    return ok && c->body;
}

int http_call_new(struct http_call **ret, struct http_pool *p, const struct http_req *req,
                  const struct http_handler *h, struct base_err *err)
{
    struct http_call *c;
    int r = check(req, err);

    if (r != BASE_OK)
        return r;
    c = base_calloc(1, sizeof *c);
    if (!c)
        return base_err_set(err, BASE_ENOMEM, "http: no memory for a request");
    c->prev = c->next = c;
    c->pool = p;
    c->h = *h;
    c->http2 = p->opts.http2;
    c->repeatable = req->repeatable;
    c->has_body = req->body.len > 0;
    c->body_len = req->body.len;
    c->secret = req->secret;
    c->timeout = req->timeout;
    c->idle = req->idle;
    c->last_rx = loop_clock();
    c->deadline = base_time_add(c->last_rx, req->timeout);
    base_buf_init(&c->in, req->max_body);
    if (req->secret &&
        base_buf_reserve(&c->in, req->max_body) != BASE_OK) { /* growing would leave copies behind */
        http_call_free(c);
        return base_err_set(err, BASE_ENOMEM, "http: no memory for a request");
    }
    c->easy = curl_easy_init();
    if (!c->easy || !build_lists(c, req) || !set_options(c, req)) {
        http_call_free(c);
        return base_err_set(err, BASE_ENOMEM, "http: no memory for a request");
    }
    r = loop_timer_new(&c->timer, p->loop, on_timer, c, err);
    if (r != BASE_OK) {
        http_call_free(c);
        return r;
    }
    loop_timer_set(c->timer, req->idle ? base_time_min(c->deadline, base_time_add(c->last_rx, req->idle))
                                       : c->deadline);
    *ret = c;
    return BASE_OK;
}

/* Not in a multi handle any more. */
void http_call_free(struct http_call *c)
{
    loop_timer_free(c->timer);
    if (c->easy)
        curl_easy_cleanup(c->easy);
    for (struct curl_slist *s = c->headers; s; s = s->next)
        explicit_bzero(s->data, strlen(s->data)); /* may hold a token */
    curl_slist_free_all(c->headers);
    curl_slist_free_all(c->resolve);
    curl_slist_free_all(c->connect_to);
    if (c->secret) {
        if (c->body)
            explicit_bzero(c->body, c->body_len);
        if (c->in.data)
            explicit_bzero(c->in.data, c->in.cap);
    }
    base_free(c->body);
    base_buf_fini(&c->in);
    base_free(c);
}

static int code_of(CURLcode rc)
{
    switch ((int)rc) {
    case CURLE_OK:
        return BASE_OK;
    case CURLE_OUT_OF_MEMORY:
        return BASE_ENOMEM;
    case CURLE_OPERATION_TIMEDOUT:
        return BASE_ETIMEDOUT;
    case CURLE_URL_MALFORMAT:
        return BASE_EINVAL;
    case CURLE_UNSUPPORTED_PROTOCOL: /* an answer that is no HTTP; the scheme of the URL has been checked */
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
        return BASE_EPROTO;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_ABORTED_BY_CALLBACK:
        return BASE_ECLOSED;
    default:
        return BASE_EIO;
    }
}

void http_call_result(struct http_call *c, CURLcode rc)
{
    struct http_resp *r = &c->resp;
    curl_off_t wait = 0;
    const char *text = c->errbuf[0] ? c->errbuf : curl_easy_strerror(rc);

    r->sent = c->attempts > 0;
    r->sent_at = c->sent_at;
    r->code = c->abort_code ? c->abort_code : code_of(rc);
    r->body = (struct base_str){c->in.data, c->in.len};
    if (r->code == BASE_OK && r->status == 0)
        r->code = BASE_EPROTO;
    if (r->status && curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
        r->retry_after =
            wait > HTTP_RETRY_AFTER_MAX / BASE_SEC ? HTTP_RETRY_AFTER_MAX : (base_time)wait * BASE_SEC;
    if (r->code == BASE_OK)
        return;
    if (c->abort_code == BASE_EFULL && c->head_bytes > HEAD_MAX)
        base_err_set(&r->err, r->code, "the head of the answer is larger than %d bytes", HEAD_MAX);
    else if (c->abort_code == BASE_EFULL && !c->streaming)
        base_err_set(&r->err, r->code, "the answer is larger than %zu bytes", c->in.max);
    else if (c->abort_code)
        base_err_set(&r->err, r->code, "%s",
                     c->abort_code == BASE_ENOMEM ? "no memory for the answer" : "the answer was refused");
    else if (rc == CURLE_OK)
        base_err_set(&r->err, r->code, "the server sent no HTTP answer");
    else if (rc == CURLE_ABORTED_BY_CALLBACK)
        base_err_set(&r->err, r->code,
                     "the connection was lost before an answer came; the request is not repeated");
    else if (rc == CURLE_PEER_FAILED_VERIFICATION)
        base_err_set(&r->err, r->code, "the server's certificate is not accepted: %s", text);
    else if (rc == CURLE_SSL_CONNECT_ERROR)
        base_err_set(&r->err, r->code,
                     "TLS handshake failed (is it the right CA, and a valid client certificate?): %s", text);
    else
        base_err_set(&r->err, r->code, "%s", text);
}
