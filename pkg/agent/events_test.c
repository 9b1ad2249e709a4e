/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of rare records: which become one, how many are written, and what is in them.
 */
#include "agent/events.h"

#include <cjson/cJSON.h>
#include <criterion/criterion.h>

static struct agent_events_plan plan;
static struct agent_event *got;

static struct audit_record record(enum audit_event event, const char *reason, const char *object)
{
    struct audit_record r = {.ts = INT64_C(1764450000000000),
                             .event = event,
                             .outcome = AUDIT_REFUSED,
                             .effect = AUDIT_EFFECT_NONE,
                             .node = "edge1",
                             .instance = "masque.edge1"};

    (void)base_copy(r.reason, sizeof r.reason, reason);
    (void)base_copy(r.object, sizeof r.object, object);
    return r;
}

static enum agent_event_verdict offer(base_time now, enum audit_event event, const char *reason,
                                      const char *object)
{
    static uint8_t random[16];
    struct audit_record r = record(event, reason, object);

    random[0]++;
    if (!random[0])
        random[1]++;
    return agent_events_plan_offer(&plan, now, &r, random, &got);
}

Test(agent_events, only_the_rare_ones)
{
    agent_events_plan_init(&plan, 0);
    for (int e = AUDIT_ACQUIRE; e <= AUDIT_REJECT; e++)
        cr_assert_eq(offer(e, (enum audit_event)e, "R", "a.b"),
                     e == AUDIT_TAKEOVER || e == AUDIT_EXPIRY || e == AUDIT_REJECT ? AGENT_EVENT_CREATE
                                                                                   : AGENT_EVENT_NONE,
                     "%s", audit_event_name((enum audit_event)e));
    cr_assert_eq(plan.dropped, 0);
}

Test(agent_events, equal_ones_are_one_with_a_count)
{
    struct audit_record sum = record(AUDIT_REJECT, "NoBinding", "acme.site-1");
    const uint8_t random[16] = {9};

    agent_events_plan_init(&plan, 0);
    cr_assert_eq(offer(0, AUDIT_REJECT, "NoBinding", "acme.site-1"), AGENT_EVENT_CREATE);
    cr_assert_eq(got->count, 1);
    struct base_uuid name = got->name;
    for (int i = 1; i < 60; i++)
        cr_assert_eq(offer(i * BASE_SEC, AUDIT_REJECT, "NoBinding", "acme.site-1"), AGENT_EVENT_COUNTED);
    cr_assert_eq(agent_events_plan_wake(&plan), AGENT_EVENTS_SERIES);
    cr_assert_null(agent_events_plan_due(&plan, AGENT_EVENTS_SERIES - 1));
    sum.count = 40; /* a sum of the trail counts for what it stands for */
    sum.last = sum.ts + 7;
    cr_assert_eq(agent_events_plan_offer(&plan, AGENT_EVENTS_SERIES, &sum, random, &got), AGENT_EVENT_SERIES);
    cr_assert(base_uuid_eq(&name, &got->name), "the same Event");
    cr_assert_eq(got->count, 100);
    cr_assert_eq(got->last, sum.last);
    cr_assert_eq(agent_events_plan_wake(&plan), BASE_TIME_NEVER, "all is said");
    /* another reason, another object, another event: another Event */
    cr_assert_eq(offer(61 * BASE_SEC, AUDIT_REJECT, "Suspended", "acme.site-1"), AGENT_EVENT_CREATE);
    cr_assert_eq(offer(61 * BASE_SEC, AUDIT_REJECT, "NoBinding", "acme.site-2"), AGENT_EVENT_CREATE);
    cr_assert_eq(offer(61 * BASE_SEC, AUDIT_EXPIRY, "NoBinding", "acme.site-1"), AGENT_EVENT_CREATE);
}

Test(agent_events, what_was_counted_is_written_a_minute_later)
{
    agent_events_plan_init(&plan, 0);
    (void)offer(0, AUDIT_EXPIRY, "GrantExpired", "rc-1");
    (void)offer(BASE_SEC, AUDIT_EXPIRY, "GrantExpired", "rc-1");
    got = agent_events_plan_due(&plan, agent_events_plan_wake(&plan));
    cr_assert_not_null(got);
    cr_assert_eq(got->count, 2);
    cr_assert_null(agent_events_plan_due(&plan, 200 * BASE_SEC));
    /* after a long silence it is news again */
    cr_assert_eq(offer(AGENT_EVENTS_FORGET + 2 * BASE_SEC, AUDIT_EXPIRY, "GrantExpired", "rc-1"),
                 AGENT_EVENT_CREATE);
    cr_assert_eq(got->count, 1);
}

/* 10,000 different rejects a second for a minute: memory and writes are bounded, nothing is silent. */
Test(agent_events, a_flood_is_bounded_and_counted)
{
    unsigned written = 0, n = 0;
    char object[40];

    agent_events_plan_init(&plan, 0);
    for (base_time now = 0; now < 60 * BASE_SEC; now += BASE_MS)
        for (unsigned k = 0; k < 10; k++) {
            (void)base_fmt(object, sizeof object, "acme.site-%u", n++);
            written += offer(now, AUDIT_REJECT, "NoBinding", object) == AGENT_EVENT_CREATE;
        }
    cr_assert_leq(written, AGENT_EVENTS_BURST + 60 * BASE_SEC / AGENT_EVENTS_REFILL);
    cr_assert_geq(written, AGENT_EVENTS_BURST);
    cr_assert_eq(plan.dropped + written, n);
    /* and when it is quiet again, there is room again */
    cr_assert_eq(offer(200 * BASE_SEC, AUDIT_TAKEOVER, "Reconnect", "rc-1"), AGENT_EVENT_CREATE);
}

Test(agent_events, one_that_is_gone_is_made_anew)
{
    agent_events_plan_init(&plan, 0);
    (void)offer(0, AUDIT_REJECT, "NoBinding", "a.b");
    struct base_uuid name = got->name;
    agent_events_plan_forget(&plan, &name);
    cr_assert_eq(offer(1, AUDIT_REJECT, "NoBinding", "a.b"), AGENT_EVENT_CREATE);
    cr_assert_not(base_uuid_eq(&name, &got->name));
}

static const char *text_of(const cJSON *o, const char *name)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(o, name);

    return cJSON_IsString(m) ? m->valuestring : "";
}

static cJSON *written(const struct audit_record *r)
{
    struct agent_events_about about = {.ns = "holdfast-system", .node = "edge1", .instance = "masque.edge1"};
    struct agent_event e = {.used = true, .first = r->ts, .name = {{1}}};
    struct base_buf b;
    cJSON *doc;

    about.instance_uid.b[0] = 7;
    base_buf_init(&b, 4096);
    cr_assert_eq(agent_events_text(&b, &about, r, &e), BASE_OK);
    doc = cJSON_ParseWithLength(b.data, b.len);
    cr_assert_not_null(doc, "%s", b.data);
    base_buf_fini(&b);
    return doc;
}

Test(agent_events, an_event_says_what_it_is_about)
{
    static const struct {
        const char *object, *kind, *name;
    } rows[] = {{"", "ProviderInstance", "masque.edge1"},
                {"masque.edge1", "ProviderInstance", "masque.edge1"},
                {"rc-fd1200000000000100000005", "RouteClaim", "rc-fd1200000000000100000005"},
                {"acme.site-1", "ConnectorBinding", "acme.site-1"}};

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct audit_record r = record(AUDIT_REJECT, "NoBinding", rows[i].object);

        r.object_uid.b[0] = r.object[0] ? 7 : 0;
        cJSON *doc = written(&r), *about = cJSON_GetObjectItemCaseSensitive(doc, "regarding");
        cr_assert_str_eq(text_of(about, "kind"), rows[i].kind);
        cr_assert_str_eq(text_of(about, "name"), rows[i].name);
        cr_assert_str_eq(text_of(about, "uid"), "07000000-0000-0000-0000-000000000000");
        cr_assert_str_eq(text_of(doc, "type"), "Warning");
        cr_assert_str_eq(text_of(doc, "action"), "Reject");
        cr_assert_str_eq(text_of(doc, "reportingController"), "masque.galactic.datumapis.com/holdfast");
        cJSON_Delete(doc);
    }
    struct audit_record r = record(AUDIT_TAKEOVER, "Reconnect", "rc-fd1200000000000100000005");

    r.epoch = 7;
    r.effect = AUDIT_EFFECT_POSSIBLE;
    r.correlation.b[0] = 0xab;
    (void)base_copy(r.old_holder, sizeof r.old_holder, "edge2");
    (void)base_copy(r.new_holder, sizeof r.new_holder, "edge1");
    cJSON *doc = written(&r);
    cr_assert_str_eq(text_of(doc, "type"), "Normal");
    cr_assert_str_eq(text_of(doc, "note"),
                     "takeover: Reconnect, epoch 7, held by edge2, now edge1, an effect may already have "
                     "happened; kubectl holdfast explain ab000000000000000000000000000000");
    cJSON_Delete(doc);
}

/* The longest names there are: every field within what the API server takes. */
Test(agent_events, the_longest_names_fit)
{
    struct audit_record r = record(AUDIT_TAKEOVER, "R", "");

    memset(r.object, 'a', sizeof r.object - 1);
    memset(r.node, 'n', sizeof r.node - 1);
    memset(r.old_holder, 'n', sizeof r.old_holder - 1);
    memset(r.new_holder, 'n', sizeof r.new_holder - 1);
    memset(r.instance, 'i', sizeof r.instance - 1);
    memset(r.reason, 'R', sizeof r.reason - 1);
    r.epoch = INT64_MAX;
    r.effect = AUDIT_EFFECT_POSSIBLE;
    r.correlation.b[0] = 1;
    cJSON *doc = written(&r);
    cr_assert_leq(strlen(text_of(doc, "note")), 1024);
    cr_assert_leq(strlen(text_of(doc, "reportingInstance")), 128);
    cr_assert_leq(strlen(text_of(doc, "reason")), 128);
    cJSON_Delete(doc);
}
