/* SPDX-License-Identifier: Apache-2.0
 *
 * resolve.c - asks for the server's addresses in the background, so that a slow name server cannot hold up a
 * renewal.
 */
#include <netdb.h>
#include <netinet/in.h>
#include <uv.h>

#include "kube_int.h"
#include "loop/loop.h"

#define FRESH (30 * BASE_SEC)

/* One question; outlives the resolver when it is still under way. */
struct question {
    uv_getaddrinfo_t req;
    struct kube_resolve *r; /* NULL: nobody waits any more */
};

struct kube_resolve {
    struct loop *loop;
    struct kube_url url;
    struct question *asking;
    base_time asked_at;
    char text[1024];
    bool have;
};

static void on_answer(uv_getaddrinfo_t *req, int status, struct addrinfo *ai)
{
    struct question *q = req->data;
    struct kube_resolve *r = q->r;
    char text[1024];
    unsigned n = 0;

    base_free(q);
    if (r) {
        r->asking = NULL;
        base_fmt(text, sizeof text, "%s:%d:", r->url.host, r->url.port);
        for (const struct addrinfo *a = ai; status == 0 && a && n < 8; a = a->ai_next) {
            char ip[INET6_ADDRSTRLEN];
            size_t len = strlen(text);
            const union {
                const struct sockaddr *sa;
                const struct sockaddr_in *in;
                const struct sockaddr_in6 *in6;
            } u = {a->ai_addr};

            if (a->ai_family == AF_INET6 && uv_ip6_name(u.in6, ip, sizeof ip) == 0)
                base_fmt(text + len, sizeof text - len, "%s[%s]", n ? "," : "", ip);
            else if (a->ai_family == AF_INET && uv_ip4_name(u.in, ip, sizeof ip) == 0)
                base_fmt(text + len, sizeof text - len, "%s%s", n ? "," : "", ip);
            else
                continue;
            n++;
        }
        if (n) { /* an answer without addresses leaves the last good one */
            (void)base_copy(r->text, sizeof r->text, text);
            r->have = true;
        }
    }
    uv_freeaddrinfo(ai);
}

static void ask(struct kube_resolve *r)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct question *q = base_calloc(1, sizeof *q);

    if (!q)
        return;
    q->req.data = q;
    q->r = r;
    if (uv_getaddrinfo(loop_uv(r->loop), &q->req, on_answer, r->url.host, NULL, &hints) != 0) {
        base_free(q);
        return;
    }
    r->asking = q;
    r->asked_at = loop_clock();
}

int kube_resolve_new(struct kube_resolve **ret, struct loop *l, const struct kube_url *u)
{
    struct kube_resolve *r = base_calloc(1, sizeof *r);

    if (!r)
        return BASE_ENOMEM;
    r->loop = l;
    r->url = *u;
    ask(r);
    *ret = r;
    return BASE_OK;
}

struct kube_resolve *kube_resolve_free(struct kube_resolve *r)
{
    if (!r)
        return NULL;
    if (r->asking) {
        r->asking->r = NULL;
        (void)uv_cancel((uv_req_t *)&r->asking->req);
    }
    return base_free(r);
}

const char *kube_resolve_get(struct kube_resolve *r, base_time now)
{
    if (!r->asking && now - r->asked_at >= FRESH)
        ask(r);
    return r->have ? r->text : NULL;
}
