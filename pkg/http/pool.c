/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c - drives one libcurl multi handle from the loop.
 *
 * libcurl must not be entered from its own callbacks, and users may do anything in theirs. So what users ask
 * for within a callback is noted (dead, drop, dying) and done by settle() when the stack is unwound; outside
 * of callbacks connections are closed at once. Results are delivered only by settle(), which only loop
 * callbacks reach.
 */
#include "http/pool.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_int.h"

/* Unacknowledged data for so long: the kernel gives the connection up. */
#define USER_TIMEOUT_MS 20000

/* Connections of a pool without a limit of its own; each may take two sockets while it is being made. */
#define CONNS_MAX 30
#define LOOK_AGAIN (20 * BASE_MS)

struct http_sock {
    struct http_sock *prev, *next;
    struct http_pool *pool;
    struct loop_poll *poll;
    curl_socket_t fd;
};

/* ---- sockets */
curl_socket_t http_socket_open(void *arg, curlsocktype purpose, struct curl_sockaddr *addr)
{
    struct http_pool *p = arg;
    int fd, ms = USER_TIMEOUT_MS;

    if (p->n_fds == HTTP_MAX_SOCKETS)
        return CURL_SOCKET_BAD;
    fd = socket(addr->family, addr->socktype | SOCK_CLOEXEC, addr->protocol);
    if (fd < 0)
        return CURL_SOCKET_BAD;
    if (addr->socktype == SOCK_STREAM)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
    p->fds[p->n_fds++] = fd;
    return fd;
}

int http_socket_close(void *arg, curl_socket_t fd)
{
    struct http_pool *p = arg;

    for (unsigned i = 0; i < p->n_fds; i++)
        if (p->fds[i] == fd) {
            p->fds[i] = p->fds[--p->n_fds];
            break;
        }
    return close(fd);
}

static void on_sock(void *arg, int events)
{
    struct http_sock *s = arg;
    struct http_pool *p = s->pool;
    int running;

    http_pool_enter(p);
    (void)curl_multi_socket_action(
        p->multi, s->fd,
        (events & LOOP_READ ? CURL_CSELECT_IN : 0) | (events & LOOP_WRITE ? CURL_CSELECT_OUT : 0), &running);
    http_pool_leave(p);
}

static void sock_free(struct http_sock *s)
{
    loop_poll_free(s->poll);
    if (s->prev)
        s->prev->next = s->next;
    else
        s->pool->socks = s->next;
    if (s->next)
        s->next->prev = s->prev;
    base_free(s);
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *sockp)
{
    struct http_pool *p = arg;
    struct http_sock *s = sockp;
    int events = (what & CURL_POLL_IN ? LOOP_READ : 0) | (what & CURL_POLL_OUT ? LOOP_WRITE : 0);

    if (what == CURL_POLL_REMOVE) {
        if (s)
            sock_free(s);
        return 0;
    }
    if (s) {
        loop_poll_set(s->poll, events);
        return 0;
    }
    s = base_calloc(1, sizeof *s);
    if (!s)
        return -1;
    s->pool = p;
    s->fd = fd;
    if (loop_poll_new(&s->poll, p->loop, fd, events, on_sock, s, NULL) != BASE_OK) {
        base_free(s);
        return -1;
    }
    s->next = p->socks;
    if (s->next)
        s->next->prev = s;
    p->socks = s;
    (void)curl_multi_assign(p->multi, fd, s);
    return 0;
}

static int on_curl_timer(CURLM *multi, long ms, void *arg)
{
    struct http_pool *p = arg;

    loop_timer_set(p->timer, ms < 0 ? BASE_TIME_NEVER : base_time_add(loop_clock(), (base_time)ms * BASE_MS));
    return 0;
}

static void on_timer(void *arg)
{
    struct http_pool *p = arg;
    int running;

    http_pool_enter(p);
    (void)curl_multi_socket_action(p->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    http_pool_leave(p);
}

/* libcurl 7.88 can sleep on a finished HTTP/2 stream: when the whole answer came while the body was still
 * being sent (a server that refuses early), nothing wakes it again. So as long as an answer to a request with
 * a body has begun and not ended, its sockets are looked at again. */
static bool half_answered(const struct http_pool *p)
{
    for (const struct http_call *c = p->calls.next; c != &p->calls; c = c->next)
        if (c->state == HTTP_RUNNING && c->http2 && c->head_seen && c->has_body)
            return true;
    return false;
}

static void on_kick(void *arg)
{
    struct http_pool *p = arg;
    int running;

    http_pool_enter(p);
    if (p->multi && half_answered(p)) {
        curl_socket_t fds[HTTP_MAX_SOCKETS];
        unsigned n = 0;

        for (const struct http_sock *s = p->socks; s && n < HTTP_MAX_SOCKETS; s = s->next)
            fds[n++] = s->fd;
        for (unsigned i = 0; i < n; i++)
            (void)curl_multi_socket_action(p->multi, fds[i], CURL_CSELECT_IN, &running);
    }
    http_pool_leave(p);
}

static void kick(struct http_pool *p)
{
    loop_timer_set(p->kick, loop_clock());
}

/* ---- multi handle */
static bool open_multi(struct http_pool *p)
{
    bool ok;

    p->multi = curl_multi_init();
    if (!p->multi)
        return false;
    ok = curl_multi_setopt(p->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket) == CURLM_OK &&
         curl_multi_setopt(p->multi, CURLMOPT_SOCKETDATA, p) == CURLM_OK &&
         curl_multi_setopt(p->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer) == CURLM_OK &&
         curl_multi_setopt(p->multi, CURLMOPT_TIMERDATA, p) == CURLM_OK &&
         curl_multi_setopt(p->multi, CURLMOPT_PIPELINING,
                           p->opts.http2 ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING) == CURLM_OK &&
         curl_multi_setopt(p->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
                           (long)(p->opts.max_conns ? p->opts.max_conns : CONNS_MAX)) == CURLM_OK &&
         curl_multi_setopt(p->multi, CURLMOPT_MAXCONNECTS,
                           (long)(p->opts.max_conns ? p->opts.max_conns : 16)) == CURLM_OK;
    if (!ok) {
        (void)curl_multi_cleanup(p->multi);
        p->multi = NULL;
    }
    return ok;
}

/* Ends every connection at once and by a reset: what lies in a send buffer goes with it, and nothing can arrive
 * after we gave up. By the kernel and not by libcurl, whose newer versions end a connection in an orderly way
 * (they send a TLS close_notify first, and may take their time over it): dissolving the association sends the
 * RST now, whatever libcurl does with the descriptor later. Before any handle is removed, since that may
 * close its connection. SO_LINGER is for a socket that cannot be dissolved. */
static void close_by_reset(struct http_pool *p)
{
    const struct linger lin = {1, 0};
    const struct sockaddr none = {.sa_family = AF_UNSPEC};

    for (unsigned i = 0; i < p->n_fds; i++) {
        (void)setsockopt(p->fds[i], SOL_SOCKET, SO_LINGER, &lin, sizeof lin);
        (void)connect(p->fds[i], &none, sizeof none);
    }
}

static void close_multi(struct http_pool *p)
{
    if (p->multi)
        (void)curl_multi_cleanup(p->multi);
    p->multi = NULL;
    while (p->socks)
        sock_free(p->socks);
    loop_timer_set(p->timer, BASE_TIME_NEVER);
}

static void unlink_call(struct http_call *c)
{
    c->prev->next = c->next;
    c->next->prev = c->prev;
    c->prev = c->next = c;
    c->pool->n_calls--;
}

static void discard(struct http_call *c)
{
    if (c->state == HTTP_RUNNING)
        (void)curl_multi_remove_handle(c->pool->multi, c->easy);
    unlink_call(c);
    http_call_free(c);
}

/* The transfer is over; its result waits for delivery. */
static void finish(struct http_call *c, CURLcode rc)
{
    http_call_result(c, rc);
    if (c->state == HTTP_RUNNING)
        (void)curl_multi_remove_handle(c->pool->multi, c->easy);
    loop_timer_set(c->timer, BASE_TIME_NEVER);
    c->state = HTTP_FINISHED;
}

static void finish_with(struct http_call *c, int code, const char *text)
{
    finish(c, CURLE_ABORTED_BY_CALLBACK);
    c->resp.code = code;
    base_err_set(&c->resp.err, code, "%s", text);
}

/* Not within libcurl. Sent requests end, the others start again on what comes next. */
static void do_drop(struct http_pool *p)
{
    p->drop = false;
    close_by_reset(p);
    for (struct http_call *c = p->calls.next, *next; c != &p->calls; c = next) {
        next = c->next;
        if (c->dead) {
            discard(c);
        } else if (c->state == HTTP_RUNNING && c->attempts > 0) {
            finish_with(c, BASE_ECLOSED, "the connection was closed because of a time-out or on request");
        } else if (c->state == HTTP_RUNNING) {
            (void)curl_multi_remove_handle(p->multi, c->easy);
            c->state = HTTP_QUEUED;
        }
    }
    close_multi(p);
    kick(p);
}

static void start_queued(struct http_pool *p)
{
    for (struct http_call *c = p->calls.next; c != &p->calls; c = c->next) {
        if (c->state != HTTP_QUEUED)
            continue;
        if ((!p->multi && !open_multi(p)) || curl_multi_add_handle(p->multi, c->easy) != CURLM_OK)
            finish_with(c, BASE_ENOMEM, "no memory to start the request");
        else
            c->state = HTTP_RUNNING;
    }
}

static void collect(struct http_pool *p)
{
    CURLMsg *m;
    int left;

    while (p->multi && (m = curl_multi_info_read(p->multi, &left))) {
        struct http_call *c = NULL;
        CURLcode rc = m->data.result;

        if (m->msg != CURLMSG_DONE || curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &c) != CURLE_OK ||
            !c || c->dead)
            continue;
        finish(c, rc);
        /* A connection that failed is closed by libcurl, but one with several streams stays. */
        if (c->resp.code == BASE_ETIMEDOUT ||
            (c->resp.code != BASE_OK && c->resp.sent && c->http2 && !c->abort_code))
            p->drop = true;
    }
}

static void destroy(struct http_pool *p)
{
    while (p->calls.next != &p->calls)
        discard(p->calls.next);
    close_multi(p);
    loop_timer_free(p->timer);
    loop_timer_free(p->kick);
    base_free(p);
}

/* True when the pool is still there. */
static bool settle(struct http_pool *p)
{
    struct http_call *c;

    for (;;) {
        collect(p);
        for (struct http_call *i = p->calls.next, *next; i != &p->calls; i = next) {
            next = i->next;
            if (!i->dead)
                continue;
            if (i->reset && i->attempts > 0) {
                close_by_reset(p);
                p->drop = true;
            }
            discard(i);
        }
        if (p->dying) {
            destroy(p);
            return false;
        }
        if (p->drop)
            do_drop(p);
        start_queued(p);
        for (c = p->calls.next; c != &p->calls && c->state != HTTP_FINISHED; c = c->next)
            ;
        if (c == &p->calls) {
            if (half_answered(p))
                loop_timer_set(p->kick, base_time_add(loop_clock(), LOOK_AGAIN));
            return true;
        }
        unlink_call(c);
        c->in_done = true;
        p->depth++;
        c->h.done(c->h.arg, &c->resp);
        p->depth--;
        http_call_free(c);
    }
}

void http_pool_enter(struct http_pool *p)
{
    p->depth++;
}

void http_pool_leave(struct http_pool *p)
{
    if (--p->depth == 0)
        (void)settle(p);
}

void http_call_timeout(struct http_call *c, bool idle)
{
    struct http_pool *p = c->pool;
    char text[96];

    http_pool_enter(p);
    if (idle)
        base_fmt(text, sizeof text, "no byte from the server for %lld ms", (long long)(c->idle / BASE_MS));
    else
        base_fmt(text, sizeof text, "no complete answer within %lld ms",
                 (long long)((c->timeout + BASE_MS / 2) / BASE_MS));
    close_by_reset(p);
    finish_with(c, BASE_ETIMEDOUT, text);
    p->drop = true;
    http_pool_leave(p);
}

/* ---- public */
static void global_init(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

int http_pool_new(struct http_pool **ret, struct loop *l, const struct http_pool_opts *opts,
                  struct base_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct http_pool *p = base_calloc(1, sizeof *p);
    int r;

    if (!p)
        return base_err_set(err, BASE_ENOMEM, "http: no memory for a pool");
    (void)pthread_once(&once, global_init);
    p->loop = l;
    p->opts = *opts;
    p->calls.prev = p->calls.next = &p->calls;
    r = loop_timer_new(&p->timer, l, on_timer, p, err);
    if (r == BASE_OK)
        r = loop_timer_new(&p->kick, l, on_kick, p, err);
    if (r != BASE_OK) {
        loop_timer_free(p->timer);
        base_free(p);
        return r;
    }
    *ret = p;
    return BASE_OK;
}

struct http_pool *http_pool_free(struct http_pool *p)
{
    if (!p)
        return NULL;
    /* From now on nobody is called. */
    for (struct http_call *c = p->calls.next; c != &p->calls; c = c->next)
        c->dead = true;
    p->dying = true;
    if (p->depth == 0)
        destroy(p);
    return NULL;
}

void http_pool_drop(struct http_pool *p)
{
    p->drop = true;
    if (p->depth == 0)
        do_drop(p);
}

void http_pool_again(struct http_pool *p)
{
    base_time now = loop_clock();
    bool waits = false;

    for (const struct http_call *c = p->calls.next; c != &p->calls; c = c->next) {
        if (c->state != HTTP_RUNNING || c->dead)
            continue;
        if (c->attempts > 0)
            return;
        waits |= now - (c->deadline - c->timeout) >= HTTP_POOL_PATIENCE;
    }
    if (waits)
        http_pool_drop(p);
}

int http_start(struct http_pool *p, const struct http_req *req, const struct http_handler *h,
               struct http_call **ret_call, struct base_err *err)
{
    struct http_call *c = NULL;
    int r;

    if (p->n_calls >= HTTP_POOL_MAX_CALLS)
        return base_err_set(err, BASE_EFULL, "http: %u requests are waiting already", p->n_calls);
    r = http_call_new(&c, p, req, h, err);
    if (r != BASE_OK)
        return r;
    c->state = HTTP_QUEUED;
    c->next = &p->calls;
    c->prev = p->calls.prev;
    c->prev->next = c;
    p->calls.prev = c;
    p->n_calls++;
    kick(p);
    if (ret_call)
        *ret_call = c;
    return BASE_OK;
}

void http_cancel(struct http_call *c, bool reset)
{
    struct http_pool *p = c->pool;

    if (c->in_done || c->dead)
        return;
    c->dead = true;
    c->reset = reset && c->state == HTTP_RUNNING;
    if (p->depth > 0)
        return;
    if (c->reset && c->attempts > 0)
        do_drop(p);
    else
        discard(c);
}
