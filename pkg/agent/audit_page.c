/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/audit_page.h"

#include <pthread.h>
#include <stdarg.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/review.h"
#include "agent/reviewer.h"
#include "agent/web.h"
#include "audit/chain.h"
#include "audit/parse.h"
#include "base/mem.h"
#include "journal/trail.h"
#include "kube/client.h"
#include "loop/log.h"
#include "loop/loop.h"

#define READ_TIME (5 * BASE_SEC)

enum stage { FREE = 0, REVIEWING, READING };
struct ask {
    enum stage stage;
    struct agent_audit_page *page;
    struct agent_web_ask *web; /* NULL: nobody waits any more */
    struct agent_review review;
    struct audit_query query;
    unsigned limit;
    /* the reader's, while READING */
    struct base_buf body;
    uint64_t last_seq; /* of the last line that was given or looked at */
    unsigned lines, seen;
    base_time until;
    bool more;
    int code;
    struct base_err err;
    struct ask *next; /* in `todo` or `done` */
};

struct agent_audit_page {
    struct loop *loop;
    struct agent_web *web;
    struct agent_reviewer reviewer;
    struct loop_log *log;
    struct loop_wake *wake;
    const char *dir;
    char node[126];
    struct ask asks[AGENT_AUDIT_PAGE_OPEN];

    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct ask *todo, *done; /* under the lock */
    atomic_bool stop;
};

/* ---- pure */

static int bad_param(struct base_err *err, const char *key, const char *value, const char *remedy)
{
    return base_err_set(err, BASE_EINVAL, "%.40s '%.80s': %s", key, value ? value : "", remedy);
}

int agent_audit_page_param(struct audit_query *q, unsigned *limit, const char *key, const char *value,
                           struct base_err *err)
{
    struct base_str v = base_str_of(value ? value : "");
    uint64_t n;

    if (strcmp(key, "correlationID") == 0)
        return base_correlation_parse(&q->correlation, v)
                   ? bad_param(err, key, value, "must be 32 hex digits, lower case")
                   : BASE_OK;
    if (strcmp(key, "object") == 0) {
        if (q->n_objects == AUDIT_QUERY_OBJECTS)
            return bad_param(err, key, value, "is given more than 16 times");
        if (!base_is_subdomain(v, sizeof q->objects[0] - 1))
            return bad_param(err, key, value, "must be an object's name");
        return base_copy_str(q->objects[q->n_objects++], sizeof q->objects[0], v);
    }
    if (strcmp(key, "connector") == 0) {
        if (!base_is_subdomain(v, sizeof q->suffix - 1))
            return bad_param(err, key, value, "must be a connector's name");
        return base_copy_str(q->suffix, sizeof q->suffix, v);
    }
    if (strcmp(key, "since") == 0 || strcmp(key, "until") == 0)
        return base_rfc3339_parse(v, key[0] == 's' ? &q->since : &q->until)
                   ? bad_param(err, key, value, "must be a time like 2026-11-29T21:08:22Z")
                   : BASE_OK;
    if (strcmp(key, "after") == 0)
        return base_parse_u64(v, UINT64_MAX, &q->after)
                   ? bad_param(err, key, value, "must be a sequence number")
                   : BASE_OK;
    if (strcmp(key, "limit") == 0) {
        if (base_parse_u64(v, AGENT_AUDIT_PAGE_LINES, &n) || n == 0)
            return bad_param(err, key, value, "must be a whole number from 1 to 1000");
        *limit = (unsigned)n;
        return BASE_OK;
    }
    return bad_param(
        err, key, value,
        "no such parameter; known: correlationID, object, connector, since, until, after, limit");
}

/* ---- the reader's thread */

static bool want_file(void *arg, const char *path, uint64_t last_seq, base_wall mtime)
{
    struct ask *a = arg;

    (void)path;
    return !(last_seq && last_seq <= a->query.after) && !(a->query.since && mtime + 5000000 < a->query.since);
}

static int on_line(void *arg, uint64_t number, struct base_str line, bool whole)
{
    struct ask *a = arg;
    struct audit_chain at;
    struct audit_line l;

    (void)number;
    if (!whole) /* being written right now */
        return BASE_OK;
    if (a->lines == a->limit || a->body.len + line.len + 256 > AGENT_AUDIT_PAGE_BYTES ||
        (++a->seen % 256 == 0 && (loop_clock() >= a->until || atomic_load(&a->page->stop)))) {
        a->more = true;
        return BASE_EFULL;
    }
    if (!audit_may_match(&a->query, line)) {
        if (a->seen % 256 == 255 && !audit_chain_parse(line, &at)) /* where to go on if the time is up */
            a->last_seq = at.seq > a->last_seq ? at.seq : a->last_seq;
        return BASE_OK;
    }
    if (audit_parse(line, &l))
        return BASE_OK; /* not ours to judge: `audit verify` does */
    if (audit_matches(&a->query, &l)) {
        (void)base_buf_add(&a->body, line.ptr, line.len);
        (void)base_buf_addz(&a->body, "\n");
        a->lines++;
    }
    a->last_seq = l.seq > a->last_seq ? l.seq : a->last_seq;
    return BASE_OK;
}

static void read_files(struct ask *a)
{
    struct journal_reader r = {a, want_file, on_line};

    a->until = base_time_add(loop_clock(), READ_TIME);
    a->last_seq = a->query.after;
    a->code = journal_read(a->page->dir, &r, &a->err);
    if (a->code == BASE_EFULL && a->more)
        a->code = BASE_OK;
    if (a->code == BASE_ENOTFOUND) /* nothing written yet */
        a->code = BASE_OK;
    if (!a->code && a->more && a->last_seq <= a->query.after)
        a->code =
            base_err_set(&a->err, BASE_ETIMEDOUT, "the files are read too slowly; narrow `since` or `after`");
    if (a->code)
        return;
    (void)base_buf_addf(&a->body, "{\"chain\":\"page\",\"node\":\"%s\"", a->page->node);
    if (a->more)
        (void)base_buf_addf(&a->body, ",\"next\":%llu", (unsigned long long)a->last_seq);
    (void)base_buf_addz(&a->body, "}\n");
    a->code = a->body.failed;
}

static void *reader(void *arg)
{
    struct agent_audit_page *p = arg;

    /* behind everything that moves packets or renews */
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 15);
    (void)pthread_mutex_lock(&p->lock);
    while (!atomic_load(&p->stop)) {
        struct ask *a = p->todo;

        if (!a) {
            (void)pthread_cond_wait(&p->more, &p->lock);
            continue;
        }
        p->todo = a->next;
        (void)pthread_mutex_unlock(&p->lock);
        read_files(a);
        (void)pthread_mutex_lock(&p->lock);
        a->next = p->done;
        p->done = a;
        loop_wake(p->wake);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- the loop */

static void release(struct ask *a)
{
    base_buf_fini(&a->body);
    *a = (struct ask){.stage = FREE};
}

static void refuse(struct ask *a, int status, const char *why)
{
    struct agent_web_ask *web = a->web;

    loop_log(a->page->log, LOOP_INFO, "audit_read_refused", "somebody may not read the audit trail",
             LOG_INT("status", status), LOG_STR("user", a->review.user), LOG_STR("reason", why));
    release(a);
    agent_web_say(web, status, status == 503 ? 1 : 0, why);
}

static void on_wake(void *arg)
{
    struct agent_audit_page *p = arg;
    struct ask *list;

    (void)pthread_mutex_lock(&p->lock);
    list = p->done;
    p->done = NULL;
    (void)pthread_mutex_unlock(&p->lock);
    while (list) {
        struct ask *a = list;
        struct agent_web_ask *web = a->web;

        list = a->next;
        if (a->code) {
            refuse(a, 500, a->err.msg[0] ? a->err.msg : "no memory");
            continue;
        }
        loop_log(p->log, LOOP_INFO, "audit_read", "the audit trail was read", LOG_STR("user", a->review.user),
                 LOG_INT("lines", a->lines));
        agent_web_answer(web, 200, "application/x-ndjson", &a->body, 0);
        release(a);
    }
}

static void start_reading(struct ask *a)
{
    struct agent_audit_page *p = a->page;
    struct ask **tail;

    a->stage = READING;
    base_buf_init(&a->body, AGENT_AUDIT_PAGE_BYTES + 4096);
    a->next = NULL;
    (void)pthread_mutex_lock(&p->lock);
    for (tail = &p->todo; *tail; tail = &(*tail)->next)
        ;
    *tail = a;
    (void)pthread_cond_signal(&p->more);
    (void)pthread_mutex_unlock(&p->lock);
}

static void on_reviewed(void *arg, int status, const char *why)
{
    struct ask *a = arg;

    if (status)
        refuse(a, status, why);
    else
        start_reading(a);
}

/* ---- a request */

struct params {
    struct audit_query *query;
    unsigned *limit;
    struct base_err err;
    int rc;
};

static bool on_param(void *arg, const char *key, const char *value)
{
    struct params *p = arg;

    p->rc = agent_audit_page_param(p->query, p->limit, key, value, &p->err);
    return p->rc == BASE_OK;
}

static struct ask *free_ask(struct agent_audit_page *p)
{
    for (size_t i = 0; i < AGENT_AUDIT_PAGE_OPEN; i++)
        if (p->asks[i].stage == FREE)
            return &p->asks[i];
    return NULL;
}

static void on_ask(void *arg, struct agent_web_ask *web)
{
    struct agent_audit_page *p = arg;
    struct ask *a = free_ask(p);
    struct params params = {.rc = BASE_OK};
    struct base_str token;

    if (!agent_review_bearer(web, &token)) {
        agent_web_say(web, 401, 0,
                      "no bearer token: send `Authorization: Bearer TOKEN` with a token for the "
                      "audience " AUDIT_PAGE_AUDIENCE);
        return;
    }
    if (!a || !agent_reviewer_take(&p->reviewer)) {
        agent_web_say(web, 429, 1, "busy with other readers; try again");
        return;
    }
    *a = (struct ask){.page = p, .web = web, .limit = AGENT_AUDIT_PAGE_LINES};
    params.query = &a->query;
    params.limit = &a->limit;
    agent_web_query(web, on_param, &params);
    if (params.rc) {
        release(a);
        agent_web_say(web, 400, 0, params.err.msg);
        return;
    }
    a->stage = REVIEWING;
    agent_review_begin(&a->review, &p->reviewer, token, on_reviewed, a);
}

/* ---- life */

int agent_audit_page_new(struct agent_audit_page **ret, struct loop *l, struct agent_web *web,
                         struct kube_client *client, const char *dir, const char *node, struct loop_log *log,
                         struct base_err *err)
{
    struct agent_audit_page *p = base_calloc(1, sizeof *p);
    int rc, e;

    if (!p)
        return base_err_set(err, BASE_ENOMEM, "audit page: no memory");
    p->loop = l;
    p->web = web;
    p->reviewer =
        (struct agent_reviewer){.client = client,
                                .audience = AUDIT_PAGE_AUDIENCE,
                                .path = "/audit",
                                .remedy = "may not get /audit: bind the ClusterRole holdfast-audit-reader"};
    p->dir = dir;
    p->log = log;
    (void)base_fmt(p->node, sizeof p->node, "%s", node[0] ? node : "unnamed");
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->more, NULL);
    atomic_init(&p->stop, false);
    rc = loop_wake_new(&p->wake, l, on_wake, p, err);
    if (!rc) {
        e = pthread_create(&p->thread, NULL, reader, p);
        p->started = e == 0;
        if (e)
            rc = base_err_sys(err, BASE_EIO, e, "audit page: cannot start its thread");
    }
    if (rc) {
        agent_audit_page_free(p);
        return rc;
    }
    agent_web_later(web, "/audit", on_ask, p);
    *ret = p;
    return BASE_OK;
}

struct agent_audit_page *agent_audit_page_free(struct agent_audit_page *p)
{
    struct timespec until;
    bool stuck = false;

    if (!p)
        return NULL;
    agent_web_later(p->web, "/audit", NULL, NULL);
    if (p->started) {
        (void)pthread_mutex_lock(&p->lock);
        atomic_store(&p->stop, true);
        (void)pthread_cond_signal(&p->more);
        (void)pthread_mutex_unlock(&p->lock);
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        stuck = pthread_timedjoin_np(p->thread, NULL, &until) != 0; /* it looks at `stop` every few lines */
    }
    for (size_t i = 0; i < AGENT_AUDIT_PAGE_OPEN; i++) {
        struct ask *a = &p->asks[i];

        agent_review_cancel(&a->review);
        if (a->stage != FREE && a->web)
            agent_web_say(a->web, 503, 1, "shutting down");
        if (!stuck)
            base_buf_fini(&a->body);
    }
    if (stuck) { /* the disk holds the thread: it keeps what it uses, the process is about to end */
        p->wake = loop_wake_free(p->wake);
        return NULL;
    }
    loop_wake_free(p->wake);
    (void)pthread_cond_destroy(&p->more);
    (void)pthread_mutex_destroy(&p->lock);
    return base_free(p);
}
