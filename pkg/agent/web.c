/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/web.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/addr.h"
#include "loop/loop.h"

#define WEB_CONNECTIONS 32
#define WEB_SPARE 8 /* of them, for new ones while those that have to go are on their way out */
#define WEB_BODY_MAX (4 * 1024 * 1024)
#define WEB_TEXT "text/plain; charset=utf-8"

/* A client, in the order in which they last came or had an answer. */
struct conn {
    struct agent_web *web;
    int fd;           /* MHD's */
    bool waits, told; /* for an answer of ours; to go */
    struct conn *prev, *next;
};

struct agent_web_ask {
    struct agent_web *web;
    struct MHD_Connection *conn;
    struct agent_web_ask *next;
    bool suspended, answered;
    int status;
    unsigned retry_after;
    const char *type;
    struct base_buf body;
};

struct agent_web {
    struct MHD_Daemon *daemon;
    struct loop_poll *poll;
    struct loop_timer *timer;
    agent_web_fn fn;
    void *arg;
    uint16_t port;
    struct later {
        const char *path;
        agent_web_ask_fn fn;
        void *arg;
    } later[AGENT_WEB_LATER_MAX];
    struct agent_web_ask *asks; /* not answered yet */
    bool turning, left;         /* in this turn a client left */
    struct conn *first, *last;  /* the longest quiet one first */
    unsigned conns;             /* those that were not told to go */
};

/* ---- clients */

static void unlink_conn(struct conn *c)
{
    *(c->prev ? &c->prev->next : &c->web->first) = c->next;
    *(c->next ? &c->next->prev : &c->web->last) = c->prev;
    c->prev = c->next = NULL;
}

static void link_last(struct conn *c)
{
    c->prev = c->web->last;
    *(c->prev ? &c->prev->next : &c->web->first) = c;
    c->web->last = c;
}

/* The longest quiet one has to go, so that a new one can always ask; not one that waits for an answer of
 * ours. MHD sees the end of its socket as if the client had left. */
static void make_room(struct agent_web *w)
{
    for (struct conn *c = w->first; c && w->conns > WEB_CONNECTIONS - WEB_SPARE; c = c->next)
        if (!c->waits && !c->told) {
            c->told = true;
            w->conns--;
            (void)shutdown(c->fd, SHUT_RDWR);
        }
}

static void on_connection(void *cls, struct MHD_Connection *conn, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct agent_web *w = cls;
    struct conn *c = *context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);

        c = info ? base_calloc(1, sizeof *c) : NULL;
        if (!c)
            return; /* it cannot be told to go; MHD's time-out is its end */
        c->web = w;
        c->fd = info->connect_fd;
        *context = c;
        w->conns++;
        make_room(w);
        link_last(c);
        return;
    }
    w->left = true;
    if (c) {
        w->conns -= !c->told;
        unlink_conn(c);
        base_free(c);
        *context = NULL;
    }
}

static struct conn *conn_of(struct MHD_Connection *conn)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

static void waits(struct MHD_Connection *conn, bool on)
{
    struct conn *c = conn_of(conn);

    if (c)
        c->waits = on;
}

static void turn(struct agent_web *w)
{
    MHD_UNSIGNED_LONG_LONG ms;

    w->turning = true;
    w->left = false;
    (void)MHD_run(w->daemon);
    w->turning = false;
    if (w->left) /* MHD listens again only when it is called the next time after it was full */
        loop_timer_set(w->timer, 0);
    else if (MHD_get_timeout(w->daemon, &ms) == MHD_YES)
        loop_timer_set(w->timer, base_time_add(loop_clock(), (base_time)ms * BASE_MS));
    else
        loop_timer_set(w->timer, BASE_TIME_NEVER);
}

static void on_poll(void *arg, int events)
{
    (void)events;
    turn(arg);
}

static void on_timer(void *arg)
{
    turn(arg);
}

static enum MHD_Result answer(struct MHD_Connection *conn, int status, struct base_buf *body,
                              const char *type, unsigned retry_after)
{
    char none[1] = "";
    struct MHD_Response *r =
        MHD_create_response_from_buffer(body->len, body->len ? body->data : none, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result ok;

    base_buf_fini(body);
    if (!r)
        return MHD_NO;
    (void)MHD_add_response_header(r, "Content-Type", type);
    (void)MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(r, "Allow", "GET, HEAD");
    if (status == MHD_HTTP_UNAUTHORIZED)
        (void)MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
    if (retry_after) {
        char text[16];

        (void)base_fmt(text, sizeof text, "%u", retry_after);
        (void)MHD_add_response_header(r, "Retry-After", text);
    }
    ok = MHD_queue_response(conn, (unsigned)status, r);
    MHD_destroy_response(r);
    return ok;
}

/* ---- pages that answer later */

static struct later *find_later(struct agent_web *w, const char *path)
{
    for (size_t i = 0; i < AGENT_WEB_LATER_MAX; i++)
        if (w->later[i].path && strcmp(w->later[i].path, path) == 0)
            return &w->later[i];
    return NULL;
}

void agent_web_later(struct agent_web *w, const char *path, agent_web_ask_fn fn, void *arg)
{
    struct later *l = find_later(w, path);

    for (size_t i = 0; !l && fn && i < AGENT_WEB_LATER_MAX; i++)
        if (!w->later[i].path)
            l = &w->later[i];
    if (l)
        *l = fn ? (struct later){path, fn, arg} : (struct later){NULL, NULL, NULL};
}

const char *agent_web_header(struct agent_web_ask *ask, const char *name)
{
    return MHD_lookup_connection_value(ask->conn, MHD_HEADER_KIND, name);
}

struct query {
    agent_web_query_fn fn;
    void *arg;
};

static enum MHD_Result on_query(void *cls, enum MHD_ValueKind kind, const char *key, const char *value)
{
    struct query *q = cls;

    (void)kind;
    return q->fn(q->arg, key, value) ? MHD_YES : MHD_NO;
}

void agent_web_query(struct agent_web_ask *ask, agent_web_query_fn fn, void *arg)
{
    struct query q = {fn, arg};

    (void)MHD_get_connection_values(ask->conn, MHD_GET_ARGUMENT_KIND, on_query, &q);
}

void agent_web_answer(struct agent_web_ask *ask, int status, const char *content_type, struct base_buf *body,
                      unsigned retry_after)
{
    struct agent_web *w = ask->web;

    for (struct agent_web_ask **p = &w->asks; *p; p = &(*p)->next)
        if (*p == ask) {
            *p = ask->next;
            break;
        }
    ask->answered = true;
    ask->status = status;
    ask->type = content_type;
    ask->retry_after = retry_after;
    if (body) {
        ask->body = *body;
        base_buf_init(body, body->max);
    }
    if (!ask->suspended)
        return; /* answered at once */
    waits(ask->conn, false);
    MHD_resume_connection(ask->conn);
    if (!w->turning)
        loop_timer_set(w->timer, 0);
}

void agent_web_say(struct agent_web_ask *ask, int status, unsigned retry_after, const char *text)
{
    struct base_buf body;

    base_buf_init(&body, 2048);
    (void)base_buf_addf(&body, "%s\n", text);
    agent_web_answer(ask, status, WEB_TEXT, &body, retry_after);
    base_buf_fini(&body);
}

static enum MHD_Result begin_ask(struct agent_web *w, const struct later *l, struct MHD_Connection *conn,
                                 void **state)
{
    struct agent_web_ask *ask = base_calloc(1, sizeof *ask);

    if (!ask)
        return MHD_NO;
    ask->web = w;
    ask->conn = conn;
    base_buf_init(&ask->body, 1);
    ask->next = w->asks;
    w->asks = ask;
    *state = ask;
    l->fn(l->arg, ask);
    if (ask->answered)
        return answer(conn, ask->status, &ask->body, ask->type, ask->retry_after);
    ask->suspended = true;
    waits(conn, true);
    MHD_suspend_connection(conn);
    return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *conn, void **state,
                         enum MHD_RequestTerminationCode why)
{
    struct agent_web *w = cls;
    struct agent_web_ask *ask = *state;
    struct conn *c = conn_of(conn);

    (void)why;
    if (c) {
        unlink_conn(c);
        link_last(c);
    }
    if (!ask || *state == w)
        return;
    base_buf_fini(&ask->body);
    base_free(ask);
    *state = NULL;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **state)
{
    struct agent_web *w = cls;
    const char *type = WEB_TEXT;
    const struct later *l;
    struct base_buf body;
    int status;

    (void)version;
    (void)upload;
    if (!*state) { /* headers only so far */
        *state = w;
        if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
            return MHD_YES;
        base_buf_init(&body, 64); /* now: an answer cannot be given while a body is coming */
        (void)base_buf_addz(&body, "only GET and HEAD\n");
        return answer(conn, MHD_HTTP_METHOD_NOT_ALLOWED, &body, type, 0);
    }
    if (*upload_size) { /* a GET's body means nothing */
        *upload_size = 0;
        return MHD_YES;
    }
    if (*state != w) { /* the answer has come */
        struct agent_web_ask *ask = *state;

        return ask->answered ? answer(conn, ask->status, &ask->body, ask->type, ask->retry_after) : MHD_YES;
    }
    base_buf_init(&body, WEB_BODY_MAX);
    l = find_later(w, url);
    if (l)
        return begin_ask(w, l, conn, state);
    status = w->fn(w->arg, url, &body, &type);
    if (status == 0) {
        base_buf_reset(&body);
        (void)base_buf_addz(&body, "no such page\n");
        status = MHD_HTTP_NOT_FOUND;
    } else if (body.failed) {
        base_buf_reset(&body);
        status = MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
    return answer(conn, status, &body, type, 0);
}

static int listen_on(const char *name, const char *listen_addr, int *ret_fd, uint16_t *ret_port,
                     struct base_err *err)
{
    struct sockaddr_storage ss;
    socklen_t len = sizeof ss;
    int fd, one = 1, zero = 0, e;

    if (agent_addr_parse(listen_addr, &ss, &len, err))
        return base_err_wrap(err, "%s", name);
    fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return base_err_sys(err, BASE_EIO, errno, "%s: no socket", name);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (ss.ss_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(fd, (struct sockaddr *)&ss, len) != 0 || listen(fd, 64) != 0) {
        e = errno;
        (void)close(fd);
        return base_err_sys(err, BASE_EIO, e, "%s: cannot listen on %s; is another process on this port?",
                            name, listen_addr);
    }
    len = sizeof ss;
    (void)getsockname(fd, (struct sockaddr *)&ss, &len);
    *ret_port = ntohs(ss.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&ss)->sin6_port
                                               : ((struct sockaddr_in *)&ss)->sin_port);
    *ret_fd = fd;
    return BASE_OK;
}

int agent_web_new(struct agent_web **ret, struct loop *l, const char *name, const char *listen_addr,
                  agent_web_fn fn, void *arg, struct base_err *err)
{
    struct agent_web *w = base_calloc(1, sizeof *w);
    const union MHD_DaemonInfo *info;
    int fd = -1, rc;

    if (!w)
        return base_err_set(err, BASE_ENOMEM, "%s: no memory", name);
    w->fn = fn;
    w->arg = arg;
    rc = listen_on(name, listen_addr, &fd, &w->port, err);
    if (rc) {
        agent_web_free(w);
        return rc;
    }
    w->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, w,
                         MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)WEB_CONNECTIONS,
                         MHD_OPTION_CONNECTION_TIMEOUT, 10u, MHD_OPTION_NOTIFY_COMPLETED, on_completed, w,
                         MHD_OPTION_NOTIFY_CONNECTION, on_connection, w, MHD_OPTION_END);
    info = w->daemon ? MHD_get_daemon_info(w->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!w->daemon)
        (void)close(fd);
    if (!info) {
        agent_web_free(w);
        return base_err_set(err, BASE_EIO, "%s: the HTTP server did not start", name);
    }
    rc = loop_timer_new(&w->timer, l, on_timer, w, err);
    if (!rc)
        rc = loop_poll_new(&w->poll, l, info->epoll_fd, LOOP_READ, on_poll, w, err);
    if (rc) {
        agent_web_free(w);
        return rc;
    }
    *ret = w;
    return BASE_OK;
}

struct agent_web *agent_web_free(struct agent_web *w)
{
    if (!w)
        return NULL;
    while (w->asks) {
        struct base_buf none;

        base_buf_init(&none, 1);
        agent_web_answer(w->asks, MHD_HTTP_SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", &none, 1);
    }
    loop_poll_free(w->poll);
    loop_timer_free(w->timer);
    if (w->daemon)
        (void)MHD_run(w->daemon); /* what was resumed must not be suspended when it stops */
    if (w->daemon)
        MHD_stop_daemon(w->daemon);
    return base_free(w);
}

uint16_t agent_web_port(const struct agent_web *w)
{
    return w->port;
}
