/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/events.h"

#include "base/cleanup.h"
#include "contract/contract.h"
#include "contract/json.h"
#include "kube/client.h"
#include "loop/log.h"
#include "loop/loop.h"

#define WAITING_MAX 64
#define TEXT_MAX 4096
#define SOURCE "masque.galactic.datumapis.com/holdfast"
#define BUCKET (AGENT_EVENTS_BURST * AGENT_EVENTS_REFILL)

/* ---- the plan */

void agent_events_plan_init(struct agent_events_plan *p, base_time now)
{
    *p = (struct agent_events_plan){.tokens_at = now - BUCKET};
}

/* One write takes AGENT_EVENTS_REFILL out of a bucket that time fills. */
static bool take_token(struct agent_events_plan *p, base_time now)
{
    p->tokens_at = base_time_max(p->tokens_at, now - BUCKET);
    if (now - p->tokens_at < AGENT_EVENTS_REFILL)
        return false;
    p->tokens_at += AGENT_EVENTS_REFILL;
    return true;
}

static bool is_rare(const struct audit_record *r)
{
    switch (r->event) {
    case AUDIT_TAKEOVER:
    case AUDIT_EXPIRY:
    case AUDIT_REJECT:
        return true;
    case AUDIT_ACQUIRE:
    case AUDIT_RENEW:
    case AUDIT_RELEASE:
        return false;
    }
    return false;
}

static bool key_of(uint8_t ret[BASE_SHA256_SIZE], const struct audit_record *r)
{
    char text[400];

    return base_fmt(text, sizeof text, "%d %s %s ", (int)r->event, r->reason, r->object) &&
           base_sha256(ret, text, strlen(text), r->object_uid.b, sizeof r->object_uid.b) == BASE_OK;
}

static struct agent_event *find(struct agent_events_plan *p, const uint8_t key[BASE_SHA256_SIZE])
{
    for (unsigned i = 0; i < AGENT_EVENTS_KEYS; i++)
        if (p->at[i].used && memcmp(p->at[i].key, key, BASE_SHA256_SIZE) == 0)
            return &p->at[i];
    return NULL;
}

/* A free place, or that of the one that was seen longest ago. */
static struct agent_event *place(struct agent_events_plan *p)
{
    struct agent_event *oldest = &p->at[0];

    for (unsigned i = 0; i < AGENT_EVENTS_KEYS; i++) {
        if (!p->at[i].used)
            return &p->at[i];
        if (p->at[i].seen < oldest->seen)
            oldest = &p->at[i];
    }
    return oldest;
}

enum agent_event_verdict agent_events_plan_offer(struct agent_events_plan *p, base_time now,
                                                 const struct audit_record *r, const uint8_t random[16],
                                                 struct agent_event **ret)
{
    int64_t n = r->count ? r->count : 1;
    uint8_t key[BASE_SHA256_SIZE];
    struct agent_event *e;

    if (!is_rare(r) || !key_of(key, r))
        return AGENT_EVENT_NONE;
    e = find(p, key);
    if (e && now - e->seen < AGENT_EVENTS_FORGET) {
        e->count += n;
        e->last = r->last > r->ts ? r->last : r->ts;
        e->seen = now;
        e->unsent = true;
        if (now - e->written < AGENT_EVENTS_SERIES || !take_token(p, now))
            return AGENT_EVENT_COUNTED;
        e->written = now;
        e->unsent = false;
        *ret = e;
        return AGENT_EVENT_SERIES;
    }
    if (!take_token(p, now)) {
        p->dropped += (uint64_t)n;
        return AGENT_EVENT_NONE;
    }
    if (!e)
        e = place(p);
    *e = (struct agent_event){.used = true,
                              .name = base_uuid_v4(random),
                              .count = n,
                              .first = r->first ? r->first : r->ts,
                              .last = r->last > r->ts ? r->last : r->ts,
                              .seen = now,
                              .written = now};
    memcpy(e->key, key, sizeof key);
    *ret = e;
    return AGENT_EVENT_CREATE;
}

struct agent_event *agent_events_plan_due(struct agent_events_plan *p, base_time now)
{
    for (unsigned i = 0; i < AGENT_EVENTS_KEYS; i++) {
        struct agent_event *e = &p->at[i];

        if (!e->used || !e->unsent || now - e->written < AGENT_EVENTS_SERIES)
            continue;
        if (!take_token(p, now))
            return NULL;
        e->written = now;
        e->unsent = false;
        return e;
    }
    return NULL;
}

base_time agent_events_plan_wake(const struct agent_events_plan *p)
{
    base_time at = BASE_TIME_NEVER;

    for (unsigned i = 0; i < AGENT_EVENTS_KEYS; i++)
        if (p->at[i].used && p->at[i].unsent)
            at = base_time_min(at, base_time_add(p->at[i].written, AGENT_EVENTS_SERIES));
    return at == BASE_TIME_NEVER ? at : base_time_max(at, p->tokens_at + AGENT_EVENTS_REFILL);
}

void agent_events_plan_forget(struct agent_events_plan *p, const struct base_uuid *name)
{
    for (unsigned i = 0; i < AGENT_EVENTS_KEYS; i++)
        if (p->at[i].used && base_uuid_eq(&p->at[i].name, name))
            p->at[i] = (struct agent_event){.used = false};
}

/* ---- as text */

static void member(struct base_buf *out, const char *before, const char *value)
{
    (void)base_buf_addz(out, before);
    contract_json_quote(out, base_str_of(value));
}

/* What the record is about: its row, its binding, or, when it names none, this agent's instance. */
static void regarding(struct base_buf *out, const struct agent_events_about *about,
                      const struct audit_record *r)
{
    bool own = !r->object[0] || strcmp(r->object, about->instance) == 0;
    enum contract_kind kind = own                                              ? CONTRACT_INSTANCE
                              : base_str_starts(base_str_of(r->object), "rc-") ? CONTRACT_CLAIM
                                                                               : CONTRACT_BINDING;
    const struct base_uuid *uid = r->object[0] ? &r->object_uid : &about->instance_uid;
    char text[BASE_UUID_SIZE];

    (void)base_buf_addf(out, ",\"regarding\":{\"apiVersion\":\"%s/%s\",\"kind\":\"%s\"",
                        contract_kind_group(kind), CONTRACT_VERSION, contract_kind_name(kind));
    member(out, ",\"namespace\":", about->ns);
    member(out, ",\"name\":", own ? about->instance : r->object);
    if (!base_uuid_is_zero(uid)) {
        base_uuid_text(text, uid);
        member(out, ",\"uid\":", text);
    }
    (void)base_buf_addz(out, "}");
}

static void note_text(char *dst, size_t size, const struct audit_record *r)
{
    char id[BASE_CORRELATION_SIZE] = "";
    struct base_buf b;

    if (!base_correlation_is_zero(&r->correlation))
        base_correlation_text(id, &r->correlation);
    base_buf_init(&b, size - 1);
    (void)base_buf_addf(&b, "%s: %s", audit_event_name(r->event), r->reason);
    if (r->epoch)
        (void)base_buf_addf(&b, ", epoch %lld", (long long)r->epoch);
    if (r->old_holder[0])
        (void)base_buf_addf(&b, ", held by %s", r->old_holder);
    if (r->new_holder[0])
        (void)base_buf_addf(&b, ", now %s", r->new_holder);
    if (r->effect == AUDIT_EFFECT_POSSIBLE)
        (void)base_buf_addz(&b, ", an effect may already have happened");
    if (id[0])
        (void)base_buf_addf(&b, "; kubectl holdfast explain %s", id);
    (void)base_fmt(dst, size, "%s", b.data ? b.data : "");
    base_buf_fini(&b);
}

int agent_events_text(struct base_buf *out, const struct agent_events_about *about,
                      const struct audit_record *r, const struct agent_event *e)
{
    static const char *const actions[AUDIT_EVENT_N] = {NULL,      "Acquire", "Renew", "Takeover",
                                                       "Release", "Expiry",  "Reject"};
    char name[BASE_UUID_SIZE], at[BASE_RFC3339_SIZE], note[900];

    base_uuid_text(name, &e->name);
    base_rfc3339(at, e->first);
    note_text(note, sizeof note, r);
    (void)base_buf_addf(out,
                        "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"name\":"
                        "\"holdfast.%s\"",
                        name);
    member(out, ",\"namespace\":", about->ns);
    (void)base_buf_addf(out, "},\"eventTime\":\"%s\",\"type\":\"%s\",\"reportingController\":\"" SOURCE "\"",
                        at, r->event == AUDIT_TAKEOVER ? "Normal" : "Warning");
    member(out, ",\"reportingInstance\":", about->node);
    member(out, ",\"action\":", actions[r->event]);
    member(out, ",\"reason\":", r->reason);
    member(out, ",\"note\":", note);
    regarding(out, about, r);
    (void)base_buf_addz(out, "}");
    return out->failed;
}

int agent_events_series_text(struct base_buf *out, const struct agent_event *e)
{
    char at[BASE_RFC3339_SIZE];

    base_rfc3339(at, e->last);
    return base_buf_addf(out, "{\"series\":{\"count\":%lld,\"lastObservedTime\":\"%s\"}}",
                         (long long)base_time_min(e->count, INT32_MAX), at);
}

/* ---- sending */

struct call { /* one write under way */
    struct agent_events *events;
    struct call *next, **link;
    struct kube_call *kube;
    struct base_uuid name;
    bool series;
};
struct agent_events {
    struct kube_client *client;
    struct loop_log *log;
    struct loop_timer *timer;
    struct agent_events_plan plan;
    struct agent_events_stats stats;
    struct call *calls;
    char ns[CONTRACT_LABEL_SIZE];
    struct base_uuid instance_uid;
    struct { /* for agent_events_durable */
        uint64_t ask;
        struct audit_record record;
    } waiting[WAITING_MAX];
    unsigned next_waiting;
    base_time complained;
};

static void call_drop(struct call *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    base_free(c);
}

static void complain(struct agent_events *e, const char *why)
{
    e->stats.failed++;
    if (e->complained && loop_clock() - e->complained < 60 * BASE_SEC)
        return;
    e->complained = loop_clock();
    loop_log(e->log, LOOP_WARN, "event_failed",
             "an Event could not be written; the audit trail has the record", LOG_STR("err", why));
}

static void on_answer(void *arg, const struct kube_resp *resp)
{
    struct call *c = arg;
    struct agent_events *e = c->events;

    if (resp->code || resp->http_status >= 300) {
        agent_events_plan_forget(&e->plan, &c->name);
        if (resp->http_status != 404) /* it is older than Events live */
            complain(e, resp->err.msg);
    } else if (c->series) {
        e->stats.series++;
    } else {
        e->stats.created++;
    }
    call_drop(c);
}

static void send(struct agent_events *e, const struct agent_event *ev, bool series, struct base_str body)
{
    char path[300], name[BASE_UUID_SIZE] = "";
    struct kube_req req = {.method = series ? "PATCH" : "POST",
                           .path = path,
                           .body = body,
                           .content_type = series ? "application/merge-patch+json" : NULL,
                           .timeout = 5 * BASE_SEC};
    struct call *c = base_calloc(1, sizeof *c);
    struct base_err err = {0};

    base_uuid_text(name, &ev->name);
    (void)base_fmt(path, sizeof path, "/apis/events.k8s.io/v1/namespaces/%s/events%s%s", e->ns,
                   series ? "/holdfast." : "", series ? name : "");
    if (!c) {
        complain(e, "no memory");
        return;
    }
    *c = (struct call){.events = e, .next = e->calls, .link = &e->calls, .name = ev->name, .series = series};
    if (c->next)
        c->next->link = &c->next;
    e->calls = c;
    if (kube_request(e->client, &req, on_answer, c, &c->kube, &err)) {
        agent_events_plan_forget(&e->plan, &c->name);
        complain(e, err.msg);
        call_drop(c);
    }
}

static void send_series(struct agent_events *e, const struct agent_event *ev)
{
    struct base_buf b;

    base_buf_init(&b, TEXT_MAX);
    if (!agent_events_series_text(&b, ev))
        send(e, ev, true, (struct base_str){b.data, b.len});
    base_buf_fini(&b);
}

static void offer(struct agent_events *e, const struct audit_record *r)
{
    struct agent_events_about about = {
        .ns = e->ns, .node = r->node, .instance = r->instance, .instance_uid = e->instance_uid};
    struct agent_event *ev = NULL;
    struct base_buf b;
    uint8_t random[16];

    loop_random(random, sizeof random);
    switch (agent_events_plan_offer(&e->plan, loop_clock(), r, random, &ev)) {
    case AGENT_EVENT_NONE:
    case AGENT_EVENT_COUNTED:
        break;
    case AGENT_EVENT_SERIES:
        send_series(e, ev);
        break;
    case AGENT_EVENT_CREATE:
        base_buf_init(&b, TEXT_MAX);
        if (!agent_events_text(&b, &about, r, ev))
            send(e, ev, false, (struct base_str){b.data, b.len});
        base_buf_fini(&b);
        break;
    }
    loop_timer_set(e->timer, agent_events_plan_wake(&e->plan));
}

static void on_timer(void *arg)
{
    struct agent_events *e = arg;
    struct agent_event *ev;

    while ((ev = agent_events_plan_due(&e->plan, loop_clock())))
        send_series(e, ev);
    loop_timer_set(e->timer, agent_events_plan_wake(&e->plan));
}

int agent_events_new(struct agent_events **ret, struct loop *l, struct kube_client *client, const char *ns,
                     struct loop_log *log, struct base_err *err)
{
    struct agent_events *e = base_calloc(1, sizeof *e);
    int rc;

    if (!e)
        return base_err_set(err, BASE_ENOMEM, "events: no memory");
    e->client = client;
    e->log = log;
    agent_events_plan_init(&e->plan, loop_clock());
    rc = base_copy(e->ns, sizeof e->ns, ns);
    if (!rc)
        rc = loop_timer_new(&e->timer, l, on_timer, e, err);
    if (rc) {
        agent_events_free(e);
        return rc;
    }
    *ret = e;
    return BASE_OK;
}

struct agent_events *agent_events_free(struct agent_events *e)
{
    if (!e)
        return NULL;
    while (e->calls) {
        kube_cancel(e->calls->kube);
        call_drop(e->calls);
    }
    loop_timer_free(e->timer);
    return base_free(e);
}

void agent_events_offer(struct agent_events *e, const struct audit_record *r, uint64_t ask)
{
    if (r->object[0] && strcmp(r->object, r->instance) == 0 && !base_uuid_is_zero(&r->object_uid))
        e->instance_uid = r->object_uid;
    if (!is_rare(r))
        return;
    if (!ask) {
        offer(e, r);
        return;
    }
    if (e->waiting[e->next_waiting].ask) /* many at once: the oldest goes without */
        e->plan.dropped++;
    e->waiting[e->next_waiting].ask = ask;
    e->waiting[e->next_waiting].record = *r;
    e->next_waiting = (e->next_waiting + 1) % WAITING_MAX;
}

void agent_events_durable(struct agent_events *e, uint64_t ask, bool durable)
{
    for (unsigned i = 0; i < WAITING_MAX; i++) {
        if (!ask || e->waiting[i].ask != ask)
            continue;
        e->waiting[i].ask = 0;
        if (durable)
            offer(e, &e->waiting[i].record);
        return;
    }
}

void agent_events_stats(const struct agent_events *e, struct agent_events_stats *ret)
{
    *ret = e->stats;
    ret->dropped = e->plan.dropped;
}
