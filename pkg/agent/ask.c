/* SPDX-License-Identifier: Apache-2.0
 *
 * ask.c - one question at a time is one call: built, sent, judged by authority/ask.h, answered.
 *
 * An outage of the webhook that ends is not waited out: after each quarter of its time a question is sent
 * again, with the same uid, if nothing at all was heard of the service since it was asked, or something that
 * was sent later has been answered. A service that is only slow is not asked twice. The first answer counts.
 * A question that takes too long is given up alone: with HTTP/2 its streams end and the others go on. Only
 * when in all its time nothing was heard is the connection closed, so that the next one gets a new one.
 */
#include "agent/ask_int.h"

#include "kube/client.h"
#include "loop/log.h"
#include "loop/loop.h"

#define CALLS_MAX 1024            /* questions on their way */
#define SAY_AGAIN (10 * BASE_SEC) /* the same trouble is told once in so long */

enum place { REVIEW = 0, WEBHOOK };

#define QUARTERS 4 /* of a webhook question's time; it is sent at most that often */

struct call;
struct attempt {
    struct call *c;
    struct http_call *http; /* NULL: over */
};
struct call {
    struct call *prev, *next;
    struct agent_ask *owner;
    uint64_t ask;
    struct authority_ask q;
    base_time t0, began;
    struct loop_timer *timer;
    struct attempt tries[QUARTERS];
    unsigned n_tries, quarter;
    base_time sent; /* the last of them */
    struct kube_call *kube;
};
struct agent_ask {
    struct loop *loop;
    struct loop_log *log;
    struct kube_client *client;
    int lane;
    struct http_pool *pool;
    char url[512];
    struct ask_file ca, cert, key;
    base_time timeout;
    agent_ask_fn fn;
    void *arg;
    struct ask_tokens *tokens;
    struct call calls;  /* ring */
    base_time heard_at; /* a whole answer of the webhook came */
    base_time answered; /* when the youngest request that was answered had been sent */
    bool down[2];
    base_time said[2];
    struct agent_ask_stats stats;
};

/* ---- answers */
static void say(struct agent_ask *a, enum place p, const struct authority_ask *q, const char *event,
                const char *text)
{
    base_time now = loop_clock();
    char correlation[BASE_CORRELATION_SIZE] = "";

    if (a->down[p] && now < base_time_add(a->said[p], SAY_AGAIN))
        return;
    a->said[p] = now;
    a->down[p] = true;
    base_correlation_text(correlation, &q->correlation);
    loop_log(a->log, LOOP_WARN, event, text, LOG_STR("authority", p == REVIEW ? "tokenreview" : "webhook"),
             LOG_STR("operation", authority_question_name(q->question)),
             LOG_STR("correlationID", correlation));
}

static void heard(struct agent_ask *a, enum place p)
{
    if (!a->down[p])
        return;
    a->down[p] = false;
    loop_log(a->log, LOOP_INFO, "authority_answers", "the authority answers again",
             LOG_STR("authority", p == REVIEW ? "tokenreview" : "webhook"));
}

static void drop(struct call *c)
{
    for (unsigned i = 0; i < c->n_tries; i++)
        if (c->tries[i].http)
            http_cancel(c->tries[i].http, false);
    c->prev->next = c->next;
    c->next->prev = c->prev;
    c->owner->stats.waiting--;
    loop_timer_free(c->timer);
    base_free(c);
}

static enum place place_of(const struct authority_ask *q)
{
    return q->question == AUTHORITY_ASK_IDENTITY ? REVIEW : WEBHOOK;
}

/* The call is gone after it. */
static void answer(struct call *c, enum agent_ask_result result, const struct authority_answer *given)
{
    struct agent_ask *a = c->owner;
    uint64_t ask = c->ask;
    base_time t0 = c->t0;
    struct authority_answer what = {.verdict = AUTHORITY_UNAVAILABLE};

    a->stats.n[place_of(&c->q)][result]++;
    if (given)
        what = *given;
    drop(c);
    if (ask != 0)
        a->fn(a->arg, ask, t0, &what);
}

static void unavailable(struct call *c, const char *event, const char *text, enum agent_ask_result result)
{
    say(c->owner, place_of(&c->q), &c->q, event, text);
    answer(c, result, NULL);
}

/* A whole answer came: `rc` is what authority/ask.h says of it. */
static void judged(struct call *c, int rc, const struct authority_answer *given, const struct base_err *err)
{
    if (rc != BASE_OK) {
        unavailable(c, "authority_answer_refused", err->msg, AGENT_ASK_INVALID);
        return;
    }
    heard(c->owner, place_of(&c->q));
    if (given->verdict == AUTHORITY_DENIED && c->q.question != AUTHORITY_ASK_RETIRE) {
        char correlation[BASE_CORRELATION_SIZE];

        base_correlation_text(correlation, &c->q.correlation);
        loop_log(c->owner->log, LOOP_INFO, "authority_denied", "the authority said no",
                 LOG_STR("authority", place_of(&c->q) == REVIEW ? "tokenreview" : "webhook"),
                 LOG_STR("operation", authority_question_name(c->q.question)),
                 LOG_STR("reason", given->reason), LOG_STR("correlationID", correlation));
    }
    answer(c, given->verdict == AUTHORITY_ALLOWED ? AGENT_ASK_ALLOWED : AGENT_ASK_DENIED, given);
}

/* ---- TokenReview */
static void on_review(void *arg, const struct kube_resp *r)
{
    struct call *c = arg;
    struct authority_answer given;
    struct base_err err = {0};
    char text[256];

    c->kube = NULL;
    c->t0 = r->sent_at;
    if (r->code != BASE_OK) { /* the text is of the connection; an answer's own text is never shown */
        (void)base_fmt(text, sizeof text, "TokenReview: no answer: %s", base_code_name(r->code));
        unavailable(c, "authority_unavailable", text, AGENT_ASK_UNAVAILABLE);
    } else if (r->http_status == 403) {
        unavailable(
            c, "authority_unavailable",
            "TokenReview: 403: bind the ClusterRole holdfast-agent-reviews to this agent's ServiceAccount",
            AGENT_ASK_UNAVAILABLE);
    } else if (r->http_status != 200 && r->http_status != 201) {
        (void)base_fmt(text, sizeof text, "TokenReview: answered with status %d", r->http_status);
        unavailable(c, "authority_unavailable", text, AGENT_ASK_UNAVAILABLE);
    } else {
        int rc = authority_review_answer(&given, r->body, &err);

        judged(c, rc, &given, &err);
    }
}

static int send_review(struct call *c, struct base_err *err)
{
    struct agent_ask *a = c->owner;
    const struct base_secret *token = agent_ask_tokens_get(a->tokens, c->q.token);
    struct kube_req req = {.method = "POST",
                           .path = "/apis/authentication.k8s.io/v1/tokenreviews",
                           .timeout = a->timeout,
                           .lane = a->lane,
                           .secret = true};
    struct base_buf b;
    int rc;

    if (!a->client)
        return base_err_set(err, BASE_EINVAL, "TokenReview: bearer tokens are not taken here");
    if (!token)
        return base_err_set(err, BASE_ENOTFOUND, "TokenReview: the token is not kept (any more)");
    base_buf_init(&b, 16384);
    rc = base_buf_reserve(&b, 2 * base_secret_text(token).len + 512); /* growing would leave a copy behind */
    if (rc == BASE_OK)
        rc = authority_review_request(&b, base_secret_text(token));
    if (rc == BASE_OK) {
        req.body = (struct base_str){b.data, b.len};
        rc = kube_request(a->client, &req, on_review, c, &c->kube, err);
    } else {
        (void)base_err_set(err, rc, "TokenReview: the request could not be built");
    }
    if (b.data)
        base_wipe(b.data, b.cap);
    base_buf_fini(&b);
    return rc;
}

/* ---- webhook */
static bool on_its_way(const struct call *c)
{
    for (unsigned i = 0; i < c->n_tries; i++)
        if (c->tries[i].http)
            return true;
    return false;
}

static void on_answer(void *arg, const struct http_resp *r)
{
    struct attempt *t = arg;
    struct call *c = t->c;
    struct agent_ask *a = c->owner;
    struct authority_answer given;
    struct base_err err = {0};
    char text[300];

    t->http = NULL;
    if (r->code != BASE_OK && r->code != BASE_EFULL && on_its_way(c))
        return; /* another one may still be answered */
    if (r->sent_at > 0)
        c->t0 = r->sent_at; /* an answer tells nothing of a time before its own request */
    if (r->code == BASE_OK) {
        a->heard_at = loop_clock();
        a->answered = base_time_max(a->answered, r->sent_at);
    }
    if (r->code != BASE_OK) {
        (void)base_fmt(text, sizeof text, "webhook: no answer: %s", r->err.msg);
        unavailable(c, "authority_unavailable", text,
                    r->code == BASE_EFULL ? AGENT_ASK_INVALID : AGENT_ASK_UNAVAILABLE);
    } else if (r->status != 200) {
        (void)base_fmt(text, sizeof text, "webhook: answered with status %d, not 200", r->status);
        unavailable(c, "authority_unavailable", text, AGENT_ASK_UNAVAILABLE);
    } else {
        int rc = authority_webhook_answer(&given, &c->q, r->body, loop_wall(), &err);

        judged(c, rc, &given, &err);
    }
}

/* Reads what has changed; a file that cannot be read leaves the last good one in use. */
static int credentials(struct agent_ask *a, bool first, struct base_err *err)
{
    struct ask_file *files[] = {&a->ca, &a->cert, &a->key};

    for (size_t i = 0; i < BASE_LEN(files); i++) {
        struct base_err why = {0};
        bool changed;
        int rc = agent_ask_file_read(files[i], &changed, &why);

        if (rc != BASE_OK && first) {
            if (err)
                *err = why;
            return rc;
        }
        if (rc != BASE_OK)
            say(a, WEBHOOK, &(struct authority_ask){.question = AUTHORITY_ASK_NONE}, "authority_file",
                why.msg);
        if (changed && !first)
            http_pool_drop(a->pool); /* connections were made with the old ones */
    }
    return BASE_OK;
}

/* Sends it, again or for the first time. */
static int send_once(struct call *c, struct base_err *err)
{
    static const char *const headers[] = {"Content-Type: application/json", "Accept: application/json",
                                          ("User-Agent: holdfast-agent/" HOLDFAST_VERSION)};
    struct agent_ask *a = c->owner;
    struct attempt *t = &c->tries[c->n_tries++];
    struct http_handler h = {.done = on_answer, .arg = t};
    struct http_req req = {.method = "POST",
                           .url = a->url,
                           .headers = headers,
                           .n_headers = BASE_LEN(headers),
                           .timeout = 4 * a->timeout, /* ours comes first */
                           .max_body = AUTHORITY_ANSWER_MAX};
    struct base_buf b;
    int rc;

    (void)credentials(a, false, NULL);
    req.tls = (struct http_tls){base_secret_text(a->ca.text), base_secret_text(a->cert.text),
                                base_secret_text(a->key.text)};
    base_buf_init(&b, 16384);
    rc = authority_webhook_request(&b, &c->q);
    req.body = (struct base_str){b.data, b.len};
    t->c = c;
    c->sent = loop_clock();
    if (rc == BASE_OK)
        rc = http_start(a->pool, &req, &h, &t->http, err);
    base_buf_fini(&b);
    return rc;
}

static void next_quarter(struct call *c)
{
    c->quarter++;
    loop_timer_set(c->timer, base_time_add(c->began, c->owner->timeout * c->quarter / QUARTERS));
}

static void on_timer(void *arg)
{
    struct call *c = arg;
    struct agent_ask *a = c->owner;
    char text[96];

    if (c->quarter < QUARTERS) {
        if (a->heard_at < c->began || a->answered > c->sent)
            (void)send_once(c, NULL); /* what is on its way goes on in any case */
        next_quarter(c);
        return;
    }
    if (a->heard_at < c->began)
        http_pool_drop(a->pool);
    (void)base_fmt(text, sizeof text, "webhook: no complete answer within %lld ms",
                   (long long)(a->timeout / BASE_MS));
    unavailable(c, "authority_unavailable", text, AGENT_ASK_UNAVAILABLE);
}

static int send_webhook(struct call *c, struct base_err *err)
{
    struct agent_ask *a = c->owner;
    int rc;

    if (!a->pool)
        return base_err_set(err, BASE_EINVAL, "webhook: none is configured");
    rc = loop_timer_new(&c->timer, a->loop, on_timer, c, err);
    if (rc == BASE_OK)
        rc = send_once(c, err);
    if (rc == BASE_OK)
        next_quarter(c);
    return rc;
}

void agent_ask_start(struct agent_ask *a, uint64_t ask, const struct authority_ask *q)
{
    struct call *c = a->stats.waiting < CALLS_MAX ? base_calloc(1, sizeof *c) : NULL;
    struct base_err err = {0};
    int rc;

    if (!c) {
        a->stats.n[place_of(q)][AGENT_ASK_UNAVAILABLE]++;
        say(a, place_of(q), q, "authority_unavailable", "too many questions are waiting for their answers");
        if (ask != 0)
            a->fn(a->arg, ask, loop_clock(), &(struct authority_answer){.verdict = AUTHORITY_UNAVAILABLE});
        return;
    }
    c->owner = a;
    c->ask = ask;
    c->q = *q;
    c->t0 = c->began = loop_clock();
    c->next = &a->calls;
    c->prev = a->calls.prev;
    c->prev->next = c;
    a->calls.prev = c;
    a->stats.waiting++;
    rc = place_of(q) == REVIEW ? send_review(c, &err) : send_webhook(c, &err);
    if (rc != BASE_OK)
        unavailable(c, "authority_unavailable", err.msg, AGENT_ASK_UNAVAILABLE);
}

/* ---- life */
static int file_init(struct ask_file *f, const char *what, const char *path, struct base_err *err)
{
    f->what = what;
    return base_copy(f->path, sizeof f->path, path) == BASE_OK
               ? BASE_OK
               : base_err_set(err, BASE_EINVAL, "%s: the path is too long", what);
}

static int open_webhook(struct agent_ask *a, const struct agent_ask_config *cfg, struct base_err *err)
{
    static const struct http_pool_opts opts = {.http2 = true};
    int rc;

    if (base_copy(a->url, sizeof a->url, cfg->url) != BASE_OK)
        return base_err_set(err, BASE_EINVAL, "authority.webhookURL: is too long");
    if ((rc = file_init(&a->ca, "authority.webhookCAFile", cfg->ca_file, err)) ||
        (rc = file_init(&a->cert, "authority.webhookCertFile", cfg->cert_file, err)) ||
        (rc = file_init(&a->key, "authority.webhookKeyFile", cfg->key_file, err)) ||
        (rc = credentials(a, true, err)))
        return rc;
    return http_pool_new(&a->pool, a->loop, &opts, err);
}

int agent_ask_new(struct agent_ask **ret, struct loop *l, const struct agent_ask_config *cfg, agent_ask_fn fn,
                  void *arg, struct base_err *err)
{
    struct agent_ask *a = base_calloc(1, sizeof *a);
    int rc = BASE_OK;

    if (!a)
        return base_err_set(err, BASE_ENOMEM, "no memory for the policy's questions");
    a->loop = l;
    a->log = cfg->log;
    a->client = cfg->client;
    a->timeout = cfg->timeout;
    a->fn = fn;
    a->arg = arg;
    a->calls.prev = a->calls.next = &a->calls;
    a->tokens = agent_ask_tokens_new(cfg->max_tokens);
    if (!a->tokens)
        rc = base_err_set(err, BASE_ENOMEM, "no memory for %u bearer tokens", cfg->max_tokens);
    if (rc == BASE_OK && a->client) {
        a->lane = kube_lane_new(a->client);
        if (a->lane < 0)
            rc = base_err_set(err, a->lane, "no connection of its own for TokenReviews");
    }
    if (rc == BASE_OK && cfg->url && cfg->url[0])
        rc = open_webhook(a, cfg, err);
    if (rc != BASE_OK) {
        agent_ask_free(a);
        return rc;
    }
    *ret = a;
    return BASE_OK;
}

struct agent_ask *agent_ask_free(struct agent_ask *a)
{
    if (!a)
        return NULL;
    while (a->calls.next != &a->calls) {
        struct call *c = a->calls.next;

        if (c->kube)
            kube_cancel(c->kube);
        drop(c);
    }
    http_pool_free(a->pool);
    agent_ask_tokens_free(a->tokens);
    agent_ask_file_fini(&a->ca);
    agent_ask_file_fini(&a->cert);
    agent_ask_file_fini(&a->key);
    return base_free(a);
}

void agent_ask_keep(struct agent_ask *a, uint64_t flow, struct base_secret *token)
{
    if (token)
        agent_ask_tokens_put(a->tokens, flow, token);
}

void agent_ask_forget(struct agent_ask *a, uint64_t flow)
{
    agent_ask_tokens_drop(a->tokens, flow);
}

uint32_t agent_ask_kept(const struct agent_ask *a)
{
    return agent_ask_tokens_count(a->tokens);
}

void agent_ask_stats(const struct agent_ask *a, struct agent_ask_stats *ret)
{
    *ret = a->stats;
}
