/* SPDX-License-Identifier: Apache-2.0 */
#include "kubestore/fake.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "loop/log.h"

struct loop_timer {
    struct loop_timer *next;
    loop_timer_fn fn;
    void *arg;
    base_time at;
};
static struct {
    base_time now;
    struct kube_call *calls;
    struct loop_timer *timers;
    int lanes;
    unsigned drops, agains, made;
} fake;

void fake_reset(void)
{
    fake.now = 1000 * BASE_SEC;
    fake.calls = NULL;
    fake.timers = NULL;
    fake.lanes = KUBE_LANE_PRIVATE;
    fake.drops = fake.agains = fake.made = 0;
}

bool fake_clean(void)
{
    return !fake.calls && !fake.timers;
}

base_time fake_now(void)
{
    return fake.now;
}

unsigned fake_drops(void)
{
    return fake.drops;
}

unsigned fake_agains(void)
{
    return fake.agains;
}

unsigned fake_made(void)
{
    return fake.made;
}

/* ---- loop ---- */
base_time loop_clock(void)
{
    return fake.now;
}

void loop_random(void *dst, size_t n)
{
    memset(dst, 7, n);
}

int loop_timer_new(struct loop_timer **ret, struct loop *l, loop_timer_fn fn, void *arg, struct base_err *err)
{
    struct loop_timer *t = calloc(1, sizeof *t);

    (void)l;
    (void)err;
    cr_assert(t);
    *t = (struct loop_timer){fake.timers, fn, arg, BASE_TIME_NEVER};
    fake.timers = t;
    *ret = t;
    return BASE_OK;
}

struct loop_timer *loop_timer_free(struct loop_timer *t)
{
    for (struct loop_timer **p = &fake.timers; *p; p = &(*p)->next)
        if (*p == t) {
            *p = t->next;
            free(t);
            return NULL;
        }
    return NULL;
}

void loop_timer_set(struct loop_timer *t, base_time at)
{
    t->at = at;
}

void loop_log_fields(struct loop_log *l, enum loop_level level, const char *event, const char *msg,
                     const struct loop_field *fields, unsigned n)
{
    (void)l;
    (void)level;
    (void)event;
    (void)msg;
    (void)fields;
    (void)n;
}

void fake_advance(int64_t ms)
{
    base_time end = fake.now + ms * BASE_MS;

    for (int i = 0; i < 1000; i++) {
        struct loop_timer *due = NULL;

        for (struct loop_timer *t = fake.timers; t; t = t->next)
            if (t->at <= end && (!due || t->at < due->at))
                due = t;
        if (!due) {
            fake.now = end;
            return;
        }
        fake.now = base_time_max(fake.now, due->at);
        due->at = BASE_TIME_NEVER;
        due->fn(due->arg);
    }
    cr_assert_fail("timers fire without end");
}

/* ---- kube ---- */
int kube_lane_new(struct kube_client *c)
{
    (void)c;
    return fake.lanes++;
}

void kube_lane_drop(struct kube_client *c, int lane)
{
    (void)c;
    (void)lane;
    fake.drops++;
}

void kube_lanes_again(struct kube_client *c)
{
    (void)c;
    fake.agains++;
}

static struct kube_call *add(const struct kube_req *req, struct kube_call **ret)
{
    struct kube_call *c = calloc(1, sizeof *c);

    cr_assert(c);
    (void)base_copy(c->method, sizeof c->method, req->method);
    cr_assert_eq(base_copy(c->path, sizeof c->path, req->path), BASE_OK);
    (void)base_copy(c->audit_id, sizeof c->audit_id, req->audit_id ? req->audit_id : "");
    c->body = calloc(1, req->body.len + 1);
    cr_assert(c->body);
    if (req->body.len)
        memcpy(c->body, req->body.ptr, req->body.len);
    c->lane = req->lane;
    c->timeout = req->timeout;
    c->sent_at = fake.now;
    c->next = fake.calls;
    fake.calls = c;
    fake.made++;
    if (ret)
        *ret = c;
    return c;
}

static void drop(struct kube_call *c)
{
    for (struct kube_call **p = &fake.calls; *p; p = &(*p)->next)
        if (*p == c) {
            *p = c->next;
            free(c->body);
            free(c);
            return;
        }
    cr_assert_fail("a call was cancelled or answered twice");
}

int kube_request(struct kube_client *k, const struct kube_req *req, kube_done done, void *arg,
                 struct kube_call **ret, struct base_err *err)
{
    struct kube_call *c = add(req, ret);

    (void)k;
    (void)err;
    c->done = done;
    c->arg = arg;
    return BASE_OK;
}

int kube_stream(struct kube_client *k, const struct kube_req *req, base_time idle, kube_stream_fn fn,
                void *arg, struct kube_call **ret, struct base_err *err)
{
    struct kube_call *c = add(req, ret);

    (void)k;
    (void)err;
    c->idle = idle;
    c->fn = fn;
    c->arg = arg;
    return BASE_OK;
}

void kube_cancel(struct kube_call *c)
{
    drop(c);
}

unsigned fake_calls(const char *part)
{
    unsigned n = 0;

    for (struct kube_call *c = fake.calls; c; c = c->next)
        n += strstr(c->path, part) != NULL;
    return n;
}

struct kube_call *fake_call(const char *part)
{
    for (struct kube_call *c = fake.calls; c; c = c->next)
        if (strstr(c->path, part))
            return c;
    cr_assert_fail("no open call of '%s'", part);
    return NULL;
}

static bool is_open(const struct kube_call *c)
{
    for (const struct kube_call *o = fake.calls; o; o = o->next)
        if (o == c)
            return true;
    return false;
}

static void end(struct kube_call *c, struct kube_resp *r)
{
    kube_done done = c->done;
    kube_stream_fn fn = c->fn;
    void *arg = c->arg;

    r->sent_at = c->sent_at;
    drop(c);
    if (fn)
        fn(arg, KUBE_STREAM_END, (struct base_str){"", 0}, r);
    else
        done(arg, r);
}

void fake_answer(struct kube_call *c, int http, const char *reason, const char *body)
{
    struct kube_resp r = {.http_status = http, .sent = true, .body = base_str_of(body)};

    (void)base_copy(r.reason, sizeof r.reason, reason);
    end(c, &r);
}

void fake_fail(struct kube_call *c, int code, bool sent)
{
    struct kube_resp r = {.code = code, .sent = sent};

    (void)base_err_set(&r.err, code, "no answer");
    end(c, &r);
}

void fake_retry_after(struct kube_call *c, int http, base_time after)
{
    struct kube_resp r = {.http_status = http, .sent = true, .retry_after = after, .body = {"too many", 8}};

    end(c, &r);
}

bool fake_open(struct kube_call *c)
{
    c->fn(c->arg, KUBE_STREAM_OPEN, (struct base_str){"", 0}, NULL);
    return is_open(c);
}

bool fake_line(struct kube_call *c, const char *fmt, ...)
{
    char text[16384];
    va_list ap;

    va_start(ap, fmt);
    cr_assert(base_vfmt(text, sizeof text, fmt, ap));
    va_end(ap);
    c->fn(c->arg, KUBE_STREAM_LINE, base_str_of(text), NULL);
    return is_open(c);
}
