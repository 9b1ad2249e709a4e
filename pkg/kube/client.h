/* SPDX-License-Identifier: Apache-2.0
 *
 * kube/client.h - one API server: where it is, who we are, one request, one stream.
 *
 * Driving. Everything on one loop; callbacks never from within the call that asked. TLS is always verified. Tokens are
 * read again from their file (at most 60 s old, and at once after a 401); they appear in no log and no error text.
 */
#ifndef KUBE_CLIENT_H
#define KUBE_CLIENT_H

#include "base/err.h"
#include "base/mem.h"
#include "base/time.h"

struct loop;
struct loop_log;

/* Where and who: from a kubeconfig, or in-cluster. */
struct kube_config;
/* `path` NULL: $KUBECONFIG, else the in-cluster files and variables, else ~/.kube/config. `context` NULL: the current
 * one. exec and auth-provider users are refused with the field's name and what to use instead, insecure-skip-tls-verify
 * too. BASE_OK, BASE_ENOTFOUND (no configuration anywhere), BASE_EINVAL, BASE_EIO, BASE_ENOMEM. */
int kube_config_load(struct kube_config **ret, const char *path, const char *context, struct base_err *err);
/* The same for a tool that a person runs: an exec plug-in is run at once as kubectl runs it (blocking; it may
 * ask on the terminal), and again when its credentials have run out or are refused. Also BASE_EDENIED,
 * BASE_EPROTO, BASE_EFULL. */
int kube_config_load_person(struct kube_config **ret, const char *path, const char *context,
                            struct base_err *err);
struct kube_config *kube_config_free(struct kube_config *c);
const char *kube_config_server(const struct kube_config *c);    /* "https://host:port" */
const char *kube_config_namespace(const struct kube_config *c); /* "" when it names none */

struct kube_client;
/* Copies what it needs from `c`. `user_agent` is sent with each request. */
int kube_client_new(struct kube_client **ret, struct loop *l, const struct kube_config *c,
                    const char *user_agent, struct loop_log *log, struct base_err *err);
struct kube_client *kube_client_free(struct kube_client *c);
/* Reads token, certificate and CA files now; what cannot be read, or is wrong, leaves the last good ones in use. */
void kube_client_reread(struct kube_client *c);

/* Connections. Requests of one lane share connections with no other lane; a time-out drops the lane's connections. */
enum kube_lane {
    KUBE_LANE_DEFAULT = 0, /* HTTP/2, shared */
    KUBE_LANE_RENEW = 1,   /* HTTP/1.1, one connection of its own */
    KUBE_LANE_PRIVATE = 2, /* first of many: one HTTP/2 connection per collection, see kube_lane_new */
};
/* A lane of its own (proof LIST and watch of one collection). Returns its number. */
int kube_lane_new(struct kube_client *c);
void kube_lane_drop(struct kube_client *c,
                    int lane); /* closes its connections; later requests connect anew */
/* The server answers again: in every lane, requests that wait for a connection get a new one
 * (http_pool_again). */
void kube_lanes_again(struct kube_client *c);

struct kube_req {
    const char *method; /* "GET", "POST", "PUT", "PATCH", "DELETE" */
    const char *path;   /* "/apis/…", already percent-encoded, with its query */
    struct base_str body;
    const char *content_type; /* NULL: application/json */
    const char *audit_id;     /* NULL: none */
    const char *header; /* one more "Name: value" ("Accept" takes the place of ours), at most 16 KiB; may be a
                           secret: in no log or error; NULL: none */
    base_time timeout;  /* ns from now, whole request; 0 = 10 s */
    int lane;
    bool secret; /* body and answer are overwritten when the call is gone; the answer is at most 64 KiB */
};
struct kube_resp {
    int code; /* BASE_OK when an HTTP answer came (whatever its status); BASE_ETIMEDOUT, BASE_EIO (no connection,
                          TLS), BASE_ECLOSED (connection lost), BASE_EPROTO, BASE_EFULL (answer too large), BASE_ENOMEM */
    bool sent;             /* false: certainly nothing reached the server (no connection was made) */
    int http_status;       /* 0 = no answer */
    base_time sent_at;     /* CLOCK_BOOTTIME before the request was handed to the connection */
    base_time retry_after; /* ns; 0 = none */
    struct base_str body;  /* borrowed for the call; at most 64 MiB for lists */
    char reason[64];       /* Status.reason, "" when the body is no Status */
    struct base_err
        err; /* also for an answer of 400 and more: its code class and a text; BASE_EUNKNOWN for any 5xx */
    int local_port; /* of the connection; 0 = none */
};
typedef void (*kube_done)(void *arg, const struct kube_resp *resp);
struct kube_call;
/* `done` comes exactly once, unless the call is cancelled or the client freed. ret_call may be NULL. */
int kube_request(struct kube_client *c, const struct kube_req *req, kube_done done, void *arg,
                 struct kube_call **ret_call, struct base_err *err);
/* No callback after it; its connection is closed if the request had been sent. */
void kube_cancel(struct kube_call *call);

/* Adds `s` percent-encoded for a path segment or a query value (`continue` tokens, selectors, versions). */
int kube_escape(struct base_buf *b, struct base_str s);

/* A watch: lines as they come. */
enum kube_stream_what { KUBE_STREAM_OPEN = 1, KUBE_STREAM_LINE, KUBE_STREAM_END };
typedef void (*kube_stream_fn)(void *arg, enum kube_stream_what what, struct base_str line,
                               const struct kube_resp *end);
/* `req->timeout` bounds the whole stream; `idle` ends it when no byte came for so long (0 = off). KUBE_STREAM_END comes
 * exactly once, with the reason in *end (also for an HTTP error status), unless cancelled. A line is at most 4 MiB. */
int kube_stream(struct kube_client *c, const struct kube_req *req, base_time idle, kube_stream_fn fn,
                void *arg, struct kube_call **ret_call, struct base_err *err);

#endif
