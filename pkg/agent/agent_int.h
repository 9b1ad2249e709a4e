/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/agent_int.h - the agent's own insides, shared by agent.c, effects.c and status.c. Control thread
 * only.
 */
#ifndef AGENT_AGENT_INT_H
#define AGENT_AGENT_INT_H

#include "agent/agent.h"
#include "agent/audit_page.h"
#include "agent/ask.h"
#include "agent/boot.h"
#include "agent/data.h"
#include "agent/events.h"
#include "agent/metrics_page.h"
#include "agent/reload.h"
#include "agent/slots.h"
#include "agent/web.h"
#include "audit/sum.h"
#include "base/mem.h"
#include "base/sign.h"
#include "journal/journal.h"
#include "kube/client.h"
#include "kubestore/kubestore.h"
#include "loop/log.h"
#include "loop/loop.h"
#include "session/core.h"

#define AGENT_LATER_MAX 256

struct agent_counters {                      /* closed label sets: enums and codes only, no identities */
    uint64_t requests, admitted, refused[8]; /* refused by status class, see status.c */
    uint64_t store[CONTRACT_KIND_N][2][5];   /* kind; read/write; ok, conflict, refused, unknown, failed */
    uint64_t proofs[CONTRACT_KIND_N][2];     /* kind; proved, not */
    uint64_t audit[8];                       /* event */
    uint64_t reloads[2];                     /* applied, refused */
    uint64_t ended[2][MASQUE_END_LOCAL + 1]; /* HTTP/3, HTTP/2; enum masque_end */
    uint64_t audit_failed, steps, bad_objects, orders_failed;
};

struct agent {
    struct agent_config cfg;
    struct contract_timing timing;
    struct loop *loop;
    struct loop_log *log;
    struct loop_timer *tick, *retry, *deadline;
    struct loop_signal *sigterm, *sigint, *sighup;
    struct loop_poll *reports;
    struct kube_config *kube_config;
    struct kube_client *client;
    struct kubestore *store;
    struct kubestore_watch *watch[CONTRACT_KIND_N];
    struct agent_boot *boot;
    struct agent_boot_result booted;
    struct base_key *audit_key; /* NULL: no checkpoints */
    struct journal *journal;
    struct audit_sum *sum;
    struct loop_timer *sum_timer;
    bool sum_armed;
    struct agent_audit_page *audit_page; /* NULL: off */
    struct agent_events *events;         /* NULL: off */
    struct agent_metrics_page *metrics_page;
    struct agent_files *files; /* TLS files, watched */
    int64_t tls_expiry;        /* Unix s, of the certificate as last loaded; 0 = not known */
    struct agent_ask *ask;
    struct agent_data *data;
    struct agent_slots *slots;
    struct agent_web *health, *metrics;
    struct session_core *core; /* NULL until the boot is done */
    struct session_out *out;
    struct agent_pending *pending; /* requests that the store has not answered (effects.c) */
    struct base_buf line;          /* one audit line at a time */
    struct base_uuid boot_id, pod_uid;
    char instance[CONTRACT_NAME_SIZE];
    int64_t connections_at_start; /* memory was taken for so many */
    bool draining, stepping;
    int exit_code;
    struct {
        bool ready;
        char reason[SESSION_REASON_SIZE], message[160];
    } condition;
    struct agent_counters n;
    /* Answers that were clear at once (a request that could not even be started): fed to the core after the
     * step. */
    struct session_in later[AGENT_LATER_MAX];
    unsigned n_later;
};

/* Gives one event to the core and carries out what it says, until it has nothing more to say (effects.c). */
void agent_feed(struct agent *a, struct session_in *in);
/* Sends barrier orders that did not fit into the data thread's ring. True when some are still waiting. */
bool agent_retry_stops(struct agent *a);
/* A data thread had no room for an order: tries again in 20 ms (effects.c). */
void agent_retry_later(struct agent *a);
/* It was one to read files or limits again: says so, too (reload.c). */
void agent_reload_late(struct agent *a);
/* Frees what is remembered of requests whose answers will never come: the store is gone. */
void agent_forget_requests(struct agent *a);
/* Kills the flow's slot and asks for the barrier (effects.c). */
void agent_stop_flow(struct agent *a, uint64_t flow);

/* Writes the sums that are due, or all (effects.c). */
void agent_audit_flush(struct agent *a, bool all);

/* What the configuration says of the endpoint's limits: at the start, and again on SIGHUP. */
struct masque_h3_limits agent_limits(const struct agent_config *cfg);

/* Pages (status.c). */
int agent_page_health(void *arg, const char *path, struct base_buf *body, const char **content_type);
/* Only pages that answer later live on metrics.listen. */
int agent_page_none(void *arg, const char *path, struct base_buf *body, const char **content_type);
void agent_metrics(void *arg, struct base_buf *b);

#endif
