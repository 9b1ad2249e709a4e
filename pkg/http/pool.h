/* SPDX-License-Identifier: Apache-2.0
 *
 * http/pool.h - HTTPS requests on a loop: one pool of connections, shared with nobody else.
 *
 * Driving, on one loop. No callback comes from within http_start, http_cancel or http_pool_drop; callbacks
 * may cancel any call and drop or free any pool, their own included. TLS is always verified (TLS 1.2 or
 * later), redirects are never followed, no proxy is used unless the request names one, the environment is not
 * looked at.
 *
 * Connections. After a time-out every connection of the pool is closed with a reset, so that nothing which
 * still lies in a send buffer can arrive late; after an error on a shared (HTTP/2) connection too. Requests
 * that had not been sent by then go out on a new connection; those that had end with BASE_ECLOSED.
 *
 * Repeats. libcurl repeats a request by itself when a kept connection turns out to be dead. That is allowed
 * only for requests marked `repeatable`; for the others the first attempt is the only one, so "no answer"
 * stays visible.
 */
#ifndef HTTP_POOL_H
#define HTTP_POOL_H

#include "base/err.h"
#include "base/mem.h"
#include "base/time.h"

struct loop;
struct http_pool;
struct http_call;

struct http_pool_opts {
    bool http2;         /* HTTP/2 where the server speaks it (requests share a connection), else HTTP/1.1 */
    unsigned max_conns; /* connections at a time; 0 = as needed, at most 30; further requests wait */
};
#define HTTP_POOL_MAX_CALLS 4096
/* BASE_OK, BASE_ENOMEM, BASE_EIO. */
int http_pool_new(struct http_pool **ret, struct loop *l, const struct http_pool_opts *opts,
                  struct base_err *err);
/* No callback after it. NULL ok. */
struct http_pool *http_pool_free(struct http_pool *p);
/* Closes all connections now, with a reset. Calls that had been sent end with BASE_ECLOSED (in a later
 * iteration). */
void http_pool_drop(struct http_pool *p);
/* The way to the server is open again, by other evidence. Where requests have waited for HTTP_POOL_PATIENCE
 * or longer for a connection that is still being made, and nothing has been sent, it is made anew: the kernel
 * repeats a SYN that was lost only a second later. */
void http_pool_again(struct http_pool *p);
#define HTTP_POOL_PATIENCE (200 * BASE_MS)

/* Everything is copied. PEM; empty = none (`ca`: the system's roots). */
struct http_tls {
    struct base_str ca, cert, key;
};

struct http_req {
    const char *method;
    const char *url;            /* https, unless `plain` */
    bool plain;                 /* http, without TLS: only for what may be read on the wire */
    const char *const *headers; /* "Name: value" lines */
    unsigned n_headers;
    struct base_str body;
    struct http_tls tls;
    const char *
        connect_to; /* "host:port" to connect to instead of the URL's (whose host stays the TLS name); NULL */
    const char *resolve; /* "host:port:address[,address]" known beforehand; NULL */
    const char *proxy;   /* proxy URL; NULL = none */
    base_time timeout;   /* ns, whole request, on CLOCK_BOOTTIME; > 0 */
    base_time idle;      /* ns without a byte from the server; 0 = off */
    size_t max_body;     /* of an answer that is collected */
    bool repeatable;
    bool
        secret; /* body and collected answer are overwritten when the call is gone; max_body is taken at once */
};

struct http_resp {
    int code; /* BASE_OK: an answer came, whatever its status. BASE_ETIMEDOUT, BASE_ECLOSED (connection lost),
                 BASE_EIO (no connection, TLS), BASE_EPROTO, BASE_EFULL (answer too large), BASE_ENOMEM */
    bool sent;  /* false: certainly no byte of the request reached the server */
    int status; /* HTTP status; 0 = none came. May be set although code is not BASE_OK (answer cut off) */
    base_time
        sent_at; /* CLOCK_BOOTTIME right before the (last) attempt was handed to a connection; 0 = not sent */
    base_time retry_after; /* ns; 0 = none; at most HTTP_RETRY_AFTER_MAX */
    struct base_str body;  /* borrowed for the call; what was collected */
    int local_port;        /* of the connection used; 0 = none */
    bool reused;           /* that connection had been used before */
    struct base_err err;   /* text for people when code is not BASE_OK; holds no header and no body */
};
#define HTTP_RETRY_AFTER_MAX (3600 * BASE_SEC)

struct http_handler {
    /* Head of the final answer. true: the body goes to `body`; false (or NULL): it is collected. */
    bool (*head)(void *arg, int status);
    /* A piece of the body as it came. false ends the call with BASE_EFULL. */
    bool (*body)(void *arg, struct base_str piece);
    /* Exactly once, unless cancelled or freed; the call is gone after it. */
    void (*done)(void *arg, const struct http_resp *resp);
    void *arg;
};

/* BASE_OK, BASE_EINVAL (names the field), BASE_EFULL, BASE_ENOMEM. `ret_call` may be NULL. */
int http_start(struct http_pool *p, const struct http_req *req, const struct http_handler *h,
               struct http_call **ret_call, struct base_err *err);
/* No callback after it. `reset`: if the request had been sent, its connection is closed (with HTTP/2 that is
 * every connection of the pool); otherwise an HTTP/2 stream alone is ended. */
void http_cancel(struct http_call *c, bool reset);

#endif
