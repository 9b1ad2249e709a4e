/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/metrics_page.h"

#include <stdlib.h>
#include <strings.h>

#include "agent/review.h"
#include "agent/reviewer.h"
#include "agent/web.h"
#include "base/hash.h"
#include "base/mem.h"
#include "kube/client.h"
#include "loop/log.h"
#include "loop/loop.h"

#define PAGE_MAX (1024 * 1024)
#define ASKS 8
#define CACHED 16
#define TEXT "text/plain; charset=utf-8"
#define TEXT_004 "text/plain; version=0.0.4; charset=utf-8"
#define OPEN_100 "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct ask {
    struct agent_metrics_page *page;
    struct agent_web_ask *web; /* NULL: free */
    struct agent_review review;
    uint8_t hash[BASE_SHA256_SIZE];
};
struct known {
    uint8_t hash[BASE_SHA256_SIZE];
    base_time until; /* 0 = free */
};

struct agent_metrics_page {
    struct agent_web *web;
    struct agent_reviewer reviewer; /* its client NULL: everybody may */
    struct loop_log *log;
    struct base_hasher *hasher;
    agent_metrics_fn fn;
    void *arg;
    struct ask asks[ASKS];
    struct known known[CACHED];
};

/* ---- pure */

/* The weight of one media range, in thousandths: 1000 without q, 0 when it is malformed. */
static int weight(struct base_str range)
{
    for (size_t i = 0; i + 2 < range.len; i++)
        if (range.ptr[i] == ';') {
            size_t k = i + 1;

            while (k < range.len && range.ptr[k] == ' ')
                k++;
            if (k + 1 < range.len && (range.ptr[k] == 'q' || range.ptr[k] == 'Q') &&
                range.ptr[k + 1] == '=') {
                char text[8] = "";
                size_t n = 0;

                for (k += 2; k < range.len && n < sizeof text - 1 && strchr("0123456789.", range.ptr[k]); k++)
                    text[n++] = range.ptr[k];
                return (int)(strtod(text, NULL) * 1000 + 0.5);
            }
        }
    return 1000;
}

static bool starts(struct base_str s, const char *z)
{
    size_t n = strlen(z);

    return s.len >= n && strncasecmp(s.ptr, z, n) == 0 && (s.len == n || strchr(" ;,", s.ptr[n]) != NULL);
}

bool agent_metrics_wants_open(const char *accept)
{
    int open = 0, text = 0;

    while (accept && *accept) {
        struct base_str range = {accept, strcspn(accept, ",")};

        accept += range.len + (accept[range.len] == ',');
        while (range.len && *range.ptr == ' ')
            range = (struct base_str){range.ptr + 1, range.len - 1};
        if (starts(range, "application/openmetrics-text"))
            open = weight(range) > open ? weight(range) : open;
        else if (starts(range, "text/plain") || starts(range, "text/*") || starts(range, "*/*"))
            text = weight(range) > text ? weight(range) : text;
    }
    return open > 0 && open >= text;
}

int agent_metrics_open(struct base_buf *out, struct base_str text)
{
    size_t at = 0;

    while (at < text.len) {
        const char *line = text.ptr + at, *end = memchr(line, '\n', text.len - at), *name, *stop;
        size_t n = end ? (size_t)(end - line) : text.len - at;

        at += n + 1;
        if (n > 7 && (memcmp(line, "# HELP ", 7) == 0 || memcmp(line, "# TYPE ", 7) == 0)) {
            name = line + 7;
            stop = memchr(name, ' ', n - 7);
            if (stop && stop - name > 6 && memcmp(stop - 6, "_total", 6) == 0) {
                (void)base_buf_add(out, line, (size_t)(stop - 6 - line));
                (void)base_buf_add(out, stop, n - (size_t)(stop - line));
                (void)base_buf_addz(out, "\n");
                continue;
            }
        }
        (void)base_buf_add(out, line, n);
        (void)base_buf_addz(out, "\n");
    }
    (void)base_buf_addz(out, "# EOF\n");
    return out->failed;
}

/* ---- answers */

static void give(struct agent_metrics_page *p, struct agent_web_ask *web)
{
    bool open = agent_metrics_wants_open(agent_web_header(web, "Accept"));
    struct base_buf text, body;

    base_buf_init(&text, PAGE_MAX);
    base_buf_init(&body, PAGE_MAX);
    p->fn(p->arg, &text);
    if (!text.failed && open)
        (void)agent_metrics_open(&body, (struct base_str){text.data, text.len});
    if (text.failed || body.failed) {
        base_buf_reset(&body);
        agent_web_answer(web, 500, TEXT, &body, 0);
    } else {
        agent_web_answer(web, 200, open ? OPEN_100 : TEXT_004, open ? &body : &text, 0);
    }
    base_buf_fini(&text);
    base_buf_fini(&body);
}

static void refuse(struct ask *a, int status, const char *why)
{
    struct agent_web_ask *web = a->web;

    loop_log(a->page->log, LOOP_INFO, "metrics_refused", "somebody may not read the metrics",
             LOG_INT("status", status), LOG_STR("user", a->review.user), LOG_STR("reason", why));
    *a = (struct ask){.web = NULL};
    agent_web_say(web, status, status == 503 ? 1 : 0, why);
}

/* ---- reviews */

static struct known *find_known(struct agent_metrics_page *p, const uint8_t hash[BASE_SHA256_SIZE])
{
    for (size_t i = 0; i < CACHED; i++)
        if (p->known[i].until > loop_clock() && memcmp(p->known[i].hash, hash, BASE_SHA256_SIZE) == 0)
            return &p->known[i];
    return NULL;
}

static void remember(struct agent_metrics_page *p, const uint8_t hash[BASE_SHA256_SIZE])
{
    struct known *oldest = &p->known[0];

    for (size_t i = 1; i < CACHED; i++)
        if (p->known[i].until < oldest->until)
            oldest = &p->known[i];
    memcpy(oldest->hash, hash, BASE_SHA256_SIZE);
    oldest->until = base_time_add(loop_clock(), AGENT_METRICS_CACHE);
}

static void on_reviewed(void *arg, int status, const char *why)
{
    struct ask *a = arg;
    struct agent_web_ask *web = a->web;

    if (status) {
        refuse(a, status, why);
        return;
    }
    remember(a->page, a->hash);
    a->web = NULL;
    give(a->page, web);
}

static void on_ask(void *arg, struct agent_web_ask *web)
{
    struct agent_metrics_page *p = arg;
    struct ask *a = NULL;
    struct base_str token;
    uint8_t hash[BASE_SHA256_SIZE];

    if (!p->reviewer.client) {
        give(p, web);
        return;
    }
    if (!agent_review_bearer(web, &token)) {
        agent_web_say(web, 401, 0,
                      "no bearer token: send `Authorization: Bearer TOKEN` of who may get /metrics");
        return;
    }
    if (base_hasher_digest(p->hasher, hash, token, BASE_STR(""), BASE_STR(""))) {
        agent_web_say(web, 503, 1, "no memory");
        return;
    }
    if (find_known(p, hash)) {
        give(p, web);
        return;
    }
    for (size_t i = 0; !a && i < ASKS; i++)
        a = p->asks[i].web ? NULL : &p->asks[i];
    if (!a || !agent_reviewer_take(&p->reviewer)) {
        agent_web_say(web, 429, 1, "busy with other readers; try again");
        return;
    }
    *a = (struct ask){.page = p, .web = web};
    memcpy(a->hash, hash, sizeof hash);
    agent_review_begin(&a->review, &p->reviewer, token, on_reviewed, a);
}

/* ---- life */

int agent_metrics_page_new(struct agent_metrics_page **ret, struct agent_web *web, struct kube_client *client,
                           agent_metrics_fn fn, void *arg, struct loop_log *log, struct base_err *err)
{
    struct agent_metrics_page *p = base_calloc(1, sizeof *p);

    if (!p)
        return base_err_set(err, BASE_ENOMEM, "metrics page: no memory");
    p->hasher = base_hasher_new();
    if (!p->hasher) {
        base_free(p);
        return base_err_set(err, BASE_ENOMEM, "metrics page: no memory");
    }
    p->web = web;
    p->reviewer = (struct agent_reviewer){
        .client = client,
        .path = "/metrics",
        .remedy = "may not get /metrics: bind the ClusterRole holdfast-metrics-reader"};
    p->fn = fn;
    p->arg = arg;
    p->log = log;
    agent_web_later(web, "/metrics", on_ask, p);
    *ret = p;
    return BASE_OK;
}

struct agent_metrics_page *agent_metrics_page_free(struct agent_metrics_page *p)
{
    if (!p)
        return NULL;
    agent_web_later(p->web, "/metrics", NULL, NULL);
    for (size_t i = 0; i < ASKS; i++) {
        agent_review_cancel(&p->asks[i].review);
        if (p->asks[i].web)
            agent_web_say(p->asks[i].web, 503, 1, "shutting down");
    }
    base_hasher_free(p->hasher);
    return base_free(p);
}
