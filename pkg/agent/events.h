/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/events.h - Kubernetes Events for the rare records of the audit trail: takeover, expiry, reject. Never
 * renew. A help for people (`kubectl describe`), not the evidence: that is the trail.
 *
 * An Event is made of a record's fields, which the audit's allow-list bounds, so nothing secret can be in
 * one. Equal ones (event, reason, object) within 10 minutes are one Event with a count (`series`), written
 * again at most once a minute. In all at most 20 writes at once and one every 3 s after that; what does not
 * fit is counted, not queued.
 *
 * agent_events_plan_* is pure: time is an argument. agent_events sends what the plan says; control thread
 * only.
 */
#ifndef AGENT_EVENTS_H
#define AGENT_EVENTS_H

#include "audit/record.h"
#include "base/time.h"

#define AGENT_EVENTS_KEYS 64
#define AGENT_EVENTS_BURST 20
#define AGENT_EVENTS_REFILL (3 * BASE_SEC)
#define AGENT_EVENTS_SERIES (60 * BASE_SEC)
#define AGENT_EVENTS_FORGET (600 * BASE_SEC)

/* ---- what is to be written */
struct agent_event {   /* one kind of thing that happens to one object */
    bool used, unsent; /* unsent: counted since it was written last */
    uint8_t key[BASE_SHA256_SIZE];
    struct base_uuid name; /* the Event's name is made of it */
    int64_t count;
    base_wall first, last;
    base_time seen, written;
};
struct agent_events_plan {
    struct agent_event at[AGENT_EVENTS_KEYS];
    base_time tokens_at; /* when the bucket was full the last time, in terms of AGENT_EVENTS_REFILL */
    uint64_t dropped;    /* records that are in no Event */
};
enum agent_event_verdict {
    AGENT_EVENT_NONE = 0, /* not a rare one, or no room */
    AGENT_EVENT_CREATE,   /* write (*ret)'s record as a new Event */
    AGENT_EVENT_SERIES,   /* write (*ret)'s count into its Event */
    AGENT_EVENT_COUNTED,  /* later: agent_events_plan_due */
};
void agent_events_plan_init(struct agent_events_plan *p, base_time now);
/* `random`: for the name of a new Event. */
enum agent_event_verdict agent_events_plan_offer(struct agent_events_plan *p, base_time now,
                                                 const struct audit_record *r, const uint8_t random[16],
                                                 struct agent_event **ret);
/* A count that is due to be written; NULL: none. */
struct agent_event *agent_events_plan_due(struct agent_events_plan *p, base_time now);
/* When to ask again; BASE_TIME_NEVER. */
base_time agent_events_plan_wake(const struct agent_events_plan *p);
/* It could not be written, or is not there any more: the next one is a new Event. */
void agent_events_plan_forget(struct agent_events_plan *p, const struct base_uuid *name);

/* ---- as text */
struct agent_events_about {
    const char *ns, *node, *instance;
    struct base_uuid instance_uid; /* zero: not known yet */
};
/* The Event of events.k8s.io/v1, and the merge patch of its count. BASE_OK, BASE_EFULL, BASE_ENOMEM. */
int agent_events_text(struct base_buf *out, const struct agent_events_about *about,
                      const struct audit_record *r, const struct agent_event *e);
int agent_events_series_text(struct base_buf *out, const struct agent_event *e);

/* ---- sending */
struct agent_events;
struct kube_client;
struct loop;
struct loop_log;
/* `client` and `log` must outlive it. BASE_OK, BASE_ENOMEM, BASE_EIO. */
int agent_events_new(struct agent_events **ret, struct loop *l, struct kube_client *client, const char *ns,
                     struct loop_log *log, struct base_err *err);
struct agent_events *agent_events_free(struct agent_events *e);
/* A record is being written. ask != 0: its operation waits for it, and so does the Event, for
 * agent_events_durable: what was refused because of the disk did not happen. */
void agent_events_offer(struct agent_events *e, const struct audit_record *r, uint64_t ask);
void agent_events_durable(struct agent_events *e, uint64_t ask, bool durable);
struct agent_events_stats {
    uint64_t created, series, failed, dropped;
};
void agent_events_stats(const struct agent_events *e, struct agent_events_stats *ret);

#endif
