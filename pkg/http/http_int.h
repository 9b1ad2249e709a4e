/* SPDX-License-Identifier: Apache-2.0
 *
 * http_int.h - between pool.c (driving libcurl) and call.c (one request).
 */
#ifndef HTTP_INT_H
#define HTTP_INT_H

#include <curl/curl.h>

#include "http/pool.h"
#include "loop/loop.h"

#define HTTP_MAX_SOCKETS 64

enum http_state { HTTP_QUEUED = 1, HTTP_RUNNING, HTTP_FINISHED };

struct http_call {
    struct http_call *prev, *next;
    struct http_pool *pool;
    struct http_handler h;
    enum http_state state;
    CURL *easy;
    struct curl_slist *headers, *resolve, *connect_to;
    char *body;
    struct base_buf in;
    struct loop_timer *timer;
    base_time deadline, idle, last_rx, timeout;
    size_t head_bytes;
    unsigned attempts; /* how often the request was handed to a connection */
    base_time sent_at;
    size_t body_len;
    bool secret;
    bool repeatable, has_body, http2, dead, reset, head_seen, streaming, in_done;
    int abort_code; /* why a callback of ours ended the transfer */
    struct http_resp resp;
    char errbuf[CURL_ERROR_SIZE];
};

struct http_pool {
    struct loop *loop;
    struct http_pool_opts opts;
    CURLM *multi;
    struct loop_timer *timer; /* libcurl's */
    struct loop_timer *kick;  /* ours: settle in the next iteration */
    struct http_sock *socks;
    struct http_call calls; /* ring, in order of http_start */
    unsigned n_calls;
    int fds[HTTP_MAX_SOCKETS]; /* open sockets, idle ones too */
    unsigned n_fds;
    unsigned depth; /* > 0: within libcurl or a callback of the user */
    bool drop, dying;
};

/* call.c */
int http_call_new(struct http_call **ret, struct http_pool *p, const struct http_req *req,
                  const struct http_handler *h, struct base_err *err);
void http_call_free(struct http_call *c);
/* Fills c->resp from the transfer's result. */
void http_call_result(struct http_call *c, CURLcode rc);
/* pool.c */
void http_pool_enter(struct http_pool *p);
void http_pool_leave(struct http_pool *p);
void http_call_timeout(struct http_call *c, bool idle);
curl_socket_t http_socket_open(void *arg, curlsocktype purpose, struct curl_sockaddr *addr);
int http_socket_close(void *arg, curl_socket_t fd);

#endif
