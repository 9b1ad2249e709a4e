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
#define WEB_BODY_MAX (4 * 1024 * 1024)

struct agent_web {
    struct MHD_Daemon *daemon;
    struct loop_poll *poll;
    struct loop_timer *timer;
    agent_web_fn fn;
    void *arg;
    uint16_t port;
};

static void turn(struct agent_web *w)
{
    MHD_UNSIGNED_LONG_LONG ms;

    (void)MHD_run(w->daemon);
    if (MHD_get_timeout(w->daemon, &ms) == MHD_YES)
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
                              const char *type)
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
    ok = MHD_queue_response(conn, (unsigned)status, r);
    MHD_destroy_response(r);
    return ok;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **state)
{
    struct agent_web *w = cls;
    const char *type = "text/plain; charset=utf-8";
    struct base_buf body;
    int status;

    (void)version;
    (void)upload;
    if (!*state) { /* headers only so far */
        *state = w;
        return MHD_YES;
    }
    base_buf_init(&body, WEB_BODY_MAX);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        *upload_size = 0;
        (void)base_buf_addz(&body, "only GET and HEAD\n");
        return answer(conn, MHD_HTTP_METHOD_NOT_ALLOWED, &body, type);
    }
    status = w->fn(w->arg, url, &body, &type);
    if (status == 0) {
        base_buf_reset(&body);
        (void)base_buf_addz(&body, "no such page\n");
        status = MHD_HTTP_NOT_FOUND;
    } else if (body.failed) {
        base_buf_reset(&body);
        status = MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
    return answer(conn, status, &body, type);
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
    w->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, w, MHD_OPTION_LISTEN_SOCKET, fd,
                                 MHD_OPTION_CONNECTION_LIMIT, (unsigned)WEB_CONNECTIONS,
                                 MHD_OPTION_CONNECTION_TIMEOUT, 10u, MHD_OPTION_END);
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
    loop_poll_free(w->poll);
    loop_timer_free(w->timer);
    if (w->daemon)
        MHD_stop_daemon(w->daemon);
    return base_free(w);
}

uint16_t agent_web_port(const struct agent_web *w)
{
    return w->port;
}
