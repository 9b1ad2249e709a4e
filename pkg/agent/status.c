/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/status.c - what the agent says about itself: /livez, /readyz with each check named, /metrics.
 */
#include "agent/agent_int.h"

#include "audit/record.h"

/* ---- health */

struct check {
    const char *name;
    bool ok;
    char why[400];
};

static void check_set(struct check *c, const char *name, bool ok, const char *why)
{
    c->name = name;
    c->ok = ok;
    (void)base_fmt(c->why, sizeof c->why, "%s", ok ? "" : why);
}

#define CHECKS 7
static void run_checks(struct agent *a, struct check out[CHECKS])
{
    struct journal_stats js;
    base_time beat = agent_data_heartbeat(a->data), age = loop_clock() - beat;
    char text[400];

    journal_stats(a->journal, &js);
    check_set(&out[0], "apiserver", a->booted.api[0] == '\0' && a->booted.state == AGENT_BOOT_DONE,
              a->booted.api[0] ? a->booted.api : "not reached yet");
    check_set(&out[1], "crds", a->booted.state == AGENT_BOOT_DONE,
              a->booted.crds[0] ? a->booted.crds : "not checked yet: waiting for the API server");
    check_set(&out[2], "audit", js.healthy, js.reason);
    (void)base_fmt(text, sizeof text, "the data thread has not turned for %lld ms",
                   (long long)(age / BASE_MS));
    check_set(&out[3], "data", age < BASE_SEC, text);
    (void)base_fmt(text, sizeof text, "%s: %s", a->condition.reason, a->condition.message);
    check_set(&out[4], "instance", a->condition.ready, a->condition.reason[0] ? text : "not started");
    (void)base_fmt(text, sizeof text, "a collection has not been listed, or its watch is broken");
    check_set(&out[5], "watches", true, text);
    for (int k = CONTRACT_INSTANCE; k < CONTRACT_KIND_N; k++)
        if (!a->watch[k] || !kubestore_watch_synced(a->watch[k])) {
            (void)base_fmt(text, sizeof text, "%s have not been listed, or their watch is broken",
                           contract_kind_plural((enum contract_kind)k));
            check_set(&out[5], "watches", false, text);
        }
    check_set(&out[6], "draining", !a->draining, "shutting down");
}

static int readyz(struct agent *a, struct base_buf *body)
{
    struct check checks[CHECKS];
    bool ready = true;

    run_checks(a, checks);
    for (unsigned i = 0; i < CHECKS; i++) {
        ready &= checks[i].ok;
        (void)base_buf_addf(body, "[%c]%s %s%s\n", checks[i].ok ? '+' : '-', checks[i].name,
                            checks[i].ok ? "ok" : "failed: ", checks[i].why);
    }
    if (a->cfg.policy == AGENT_POLICY_DENY)
        (void)base_buf_addz(
            body, "note: authority.policy is 'deny': nobody is admitted until an operator sets it to "
                  "'kubernetes' or 'webhook' and creates ConnectorBindings\n");
    (void)base_buf_addf(body, "readyz check %s\n", ready ? "passed" : "failed");
    return ready ? 200 : 503;
}

int agent_page_health(void *arg, const char *path, struct base_buf *body, const char **content_type)
{
    struct agent *a = arg;

    (void)content_type;
    if (strcmp(path, "/livez") == 0) {
        (void)base_buf_addz(body, "ok\n");
        return 200;
    }
    return strcmp(path, "/readyz") == 0 ? readyz(a, body) : 0;
}

int agent_page_none(void *arg, const char *path, struct base_buf *body, const char **content_type)
{
    (void)arg;
    (void)path;
    (void)body;
    (void)content_type;
    return 0;
}

/* ---- metrics */

static void head(struct base_buf *b, const char *name, const char *type, const char *help)
{
    (void)base_buf_addf(b, "# HELP holdfast_%s %s\n# TYPE holdfast_%s %s\n", name, help, name, type);
}

static void one(struct base_buf *b, const char *name, const char *type, const char *help, uint64_t value)
{
    head(b, name, type, help);
    (void)base_buf_addf(b, "holdfast_%s %llu\n", name, (unsigned long long)value);
}

static void metrics_authority(struct agent *a, struct base_buf *b)
{
    static const char *const results[AGENT_ASK_RESULTS] = {"allowed", "denied", "unavailable", "invalid"};
    struct agent_ask_stats s;

    agent_ask_stats(a->ask, &s);
    head(b, "authority_asks_total", "counter",
         "Questions to the TokenReview API and the webhook, by result.");
    for (unsigned p = 0; p < 2; p++)
        for (unsigned r = 0; r < AGENT_ASK_RESULTS; r++)
            (void)base_buf_addf(b, "holdfast_authority_asks_total{authority=\"%s\",result=\"%s\"} %llu\n",
                                p ? "webhook" : "tokenreview", results[r], (unsigned long long)s.n[p][r]);
    one(b, "authority_waiting", "gauge", "Questions that wait for their answer.", s.waiting);
    one(b, "bearer_tokens", "gauge", "Bearer tokens kept for the sessions that they belong to.",
        agent_ask_kept(a->ask));
}

static void metrics_ended(struct agent *a, struct base_buf *b)
{
    static const char *const transports[] = {"http3", "http2"};
    static const char *const by[] = {[MASQUE_END_CLIENT] = "client",
                                     [MASQUE_END_IDLE] = "time",
                                     [MASQUE_END_PROTOCOL] = "protocol",
                                     [MASQUE_END_MTU] = "mtu",
                                     [MASQUE_END_LOCAL] = "agent"};

    head(b, "requests_ended_total", "counter",
         "CONNECT-IP requests that have ended, by transport and cause; time: silence, or something that was "
         "begun and not finished; protocol: malformed, or beyond a limit of the stream or its connection.");
    for (unsigned t = 0; t < BASE_LEN(transports); t++)
        for (unsigned e = MASQUE_END_CLIENT; e < BASE_LEN(by); e++)
            (void)base_buf_addf(b, "holdfast_requests_ended_total{transport=\"%s\",by=\"%s\"} %llu\n",
                                transports[t], by[e], (unsigned long long)a->n.ended[t][e]);
}

static void metrics_core(struct agent *a, struct base_buf *b)
{
    static const char *const statuses[] = {"400", "401", "403", "409", "503", "other"};
    static const char *const results[] = {"ok", "conflict", "refused", "unknown", "failed"};
    struct session_summary s = {.ready = false};
    struct check checks[CHECKS];

    if (a->core)
        session_core_summary(a->core, &s);
    head(b, "build_info", "gauge", "Version of this agent.");
    (void)base_buf_addf(b, "holdfast_build_info{version=\"%s\"} 1\n", HOLDFAST_VERSION);
    run_checks(a, checks);
    head(b, "ready", "gauge", "1 when the named readiness check holds.");
    for (unsigned i = 0; i < CHECKS; i++)
        (void)base_buf_addf(b, "holdfast_ready{check=\"%s\"} %d\n", checks[i].name, checks[i].ok ? 1 : 0);
    one(b, "instance_epoch", "gauge", "Epoch of this process's instance lease; 0 before it is held.",
        (uint64_t)s.instance_epoch);
    head(b, "instance_remaining_seconds", "gauge", "Time until the instance lease's deadline for sessions.");
    (void)base_buf_addf(b, "holdfast_instance_remaining_seconds %.3f\n",
                        s.instance_deadline > 0 ? (double)(s.instance_deadline - loop_clock()) / 1e9 : 0.0);
    one(b, "bindings", "gauge", "ConnectorBindings known.", s.bindings);
    one(b, "services", "gauge", "ProviderServices known.", s.services);
    one(b, "sessions_forwarding", "gauge", "Sessions that may forward now.", s.forwarding);
    one(b, "requests_total", "counter", "CONNECT-IP requests reported by the data thread.", a->n.requests);
    one(b, "admitted_total", "counter", "Requests answered with 200.", a->n.admitted);
    metrics_ended(a, b);
    metrics_authority(a, b);
    head(b, "refused_total", "counter", "Requests refused, by status.");
    for (unsigned i = 0; i < BASE_LEN(statuses); i++)
        (void)base_buf_addf(b, "holdfast_refused_total{status=\"%s\"} %llu\n", statuses[i],
                            (unsigned long long)a->n.refused[i]);
    head(b, "store_requests_total", "counter",
         "Requests of the core at the API server, by kind, direction and result.");
    for (int k = CONTRACT_INSTANCE; k < CONTRACT_KIND_N; k++)
        for (unsigned w = 0; w < 2; w++)
            for (unsigned r = 0; r < BASE_LEN(results); r++)
                (void)base_buf_addf(
                    b, "holdfast_store_requests_total{kind=\"%s\",op=\"%s\",result=\"%s\"} %llu\n",
                    contract_kind_plural((enum contract_kind)k), w ? "write" : "read", results[r],
                    (unsigned long long)a->n.store[k][w][r]);
    head(b, "proofs_total", "counter", "Collection proofs, by kind and result.");
    for (int k = CONTRACT_INSTANCE; k < CONTRACT_KIND_N; k++)
        for (unsigned r = 0; r < 2; r++)
            (void)base_buf_addf(b, "holdfast_proofs_total{kind=\"%s\",result=\"%s\"} %llu\n",
                                contract_kind_plural((enum contract_kind)k), r ? "failed" : "proved",
                                (unsigned long long)a->n.proofs[k][r]);
    one(b, "core_steps_total", "counter", "Events that the ownership core has taken.", a->n.steps);
    one(b, "orders_failed_total", "counter", "Orders that could not be started: queues full, no memory.",
        a->n.orders_failed);
    one(b, "bad_objects_total", "counter", "Objects that could not be decoded.", a->n.bad_objects);
}

static void metrics_audit(struct agent *a, struct base_buf *b)
{
    struct journal_stats js;

    journal_stats(a->journal, &js);
    head(b, "audit_records_total", "counter", "Audit records made, by event.");
    for (int e = SESSION_AUDIT_ACQUIRE; e <= SESSION_AUDIT_REJECT; e++)
        (void)base_buf_addf(b, "holdfast_audit_records_total{event=\"%s\"} %llu\n",
                            audit_event_name((enum audit_event)e), (unsigned long long)a->n.audit[e]);
    one(b, "audit_failed_total", "counter", "Records that could not be queued or encoded.",
        a->n.audit_failed);
    one(b, "audit_durable_total", "counter", "Records that are durable.", js.durable);
    one(b, "audit_lost_total", "counter", "Records that the disk refused.", js.failed);
    one(b, "audit_late_total", "counter", "Records that were not durable in time.", js.late);
    one(b, "audit_rotations_total", "counter", "Audit files that were closed.", js.rotations);
    one(b, "audit_torn_total", "counter", "Unfinished lines found when the audit file was opened.", js.torn);
    one(b, "audit_syncs_total", "counter", "fdatasync calls.", js.syncs);
    one(b, "audit_summed_total", "counter", "Events that were counted in another record instead of written.",
        audit_sum_counted(a->sum));
    one(b, "audit_checkpoints_total", "counter", "Signed checkpoints.", js.checkpoints);
    one(b, "audit_copied_total", "counter", "Lines copied to stdout.", js.copied);
    one(b, "audit_copy_missed_total", "counter", "Lines that stdout did not take.", js.missed);
    one(b, "audit_healthy", "gauge", "1 when the last record was durable in time.", js.healthy ? 1 : 0);
}

static void both(struct base_buf *b, const char *name, const char *type, const char *help, uint64_t h3,
                 uint64_t h2)
{
    head(b, name, type, help);
    (void)base_buf_addf(b,
                        "holdfast_%s{transport=\"http3\"} %llu\n"
                        "holdfast_%s{transport=\"http2\"} %llu\n",
                        name, (unsigned long long)h3, name, (unsigned long long)h2);
}

static void metrics_events(struct agent *a, struct base_buf *b)
{
    struct agent_events_stats s = {.created = 0};

    if (a->events)
        agent_events_stats(a->events, &s);
    head(b, "events_total", "counter", "Kubernetes Events by what became of them; dropped: beyond the rate.");
    (void)base_buf_addf(b, "holdfast_events_total{result=\"created\"} %llu\n", (unsigned long long)s.created);
    (void)base_buf_addf(b, "holdfast_events_total{result=\"series\"} %llu\n", (unsigned long long)s.series);
    (void)base_buf_addf(b, "holdfast_events_total{result=\"failed\"} %llu\n", (unsigned long long)s.failed);
    (void)base_buf_addf(b, "holdfast_events_total{result=\"dropped\"} %llu\n", (unsigned long long)s.dropped);
}

static void metrics_limits_reached(struct base_buf *b, const struct agent_data_stats *d)
{
    const struct {
        const char *limit;
        uint64_t n;
    } full[] = {{"connections", d->h3.full_connections},
                {"connectionsPerSource", d->h3.full_source},
                {"handshakes", d->h3.full_handshakes},
                {"handshakesPerSecond", d->h3.full_rate}};

    head(b, "connections_refused_total", "counter",
         "HTTP/3 connections refused (CONNECTION_REFUSED), by the limit that was reached.");
    for (unsigned i = 0; i < BASE_LEN(full); i++)
        (void)base_buf_addf(b, "holdfast_connections_refused_total{limit=\"%s\"} %llu\n", full[i].limit,
                            (unsigned long long)full[i].n);
    head(b, "tenant_refused_total", "counter",
         "Requests refused with 503 because their tenant has used up its share, by the limit that was "
         "reached.");
    (void)base_buf_addf(b, "holdfast_tenant_refused_total{limit=\"tenantSessions\"} %llu\n",
                        (unsigned long long)d->full_tenant_sessions);
    (void)base_buf_addf(b, "holdfast_tenant_refused_total{limit=\"tenantRequests\"} %llu\n",
                        (unsigned long long)d->full_tenant_requests);
    one(b, "http3_held_total", "counter",
        "UDP datagrams thrown away unread because their tenant had used up its packets.", d->h3.held);
    one(b, "udp_offload", "gauge",
        "1: HTTP/3 sends bursts at once (UDP_SEGMENT); 0: off, or the kernel refused.", d->h3.gso);
    one(b, "retries_total", "counter", "QUIC Retries: clients that had to show their address first.",
        d->h3.retries);
    one(b, "http3_floods_total", "counter", "HTTP/3 connections ended for streams that were reset too often.",
        d->h3.floods);
}

static void metrics_data(struct agent *a, struct base_buf *b)
{
    struct agent_data_stats d;
    struct {
        const char *reason;
        uint64_t n;
    } drops[12];

    agent_data_stats(a->data, &d);
    drops[0].reason = "source", drops[0].n = d.drop_source;
    drops[1].reason = "destination", drops[1].n = d.drop_destination;
    drops[2].reason = "malformed", drops[2].n = d.drop_malformed + d.h3.drop_malformed + d.h2.drop_malformed;
    drops[3].reason = "hop_limit", drops[3].n = d.drop_hop_limit;
    drops[4].reason = "no_session", drops[4].n = d.drop_no_session;
    drops[5].reason = "fence", drops[5].n = d.drop_fence + d.h3.drop_fence + d.h2.drop_fence;
    drops[6].reason = "tun_full", drops[6].n = d.drop_tun_full;
    drops[7].reason = "queue", drops[7].n = d.h3.drop_queue + d.h2.drop_queue;
    drops[8].reason = "early", drops[8].n = d.h3.drop_early + d.h2.drop_early;
    drops[9].reason = "rate", drops[9].n = d.drop_rate;
    drops[10].reason = "tenant", drops[10].n = d.drop_tenant;
    drops[11].reason = "carried", drops[11].n = d.drop_carried;
    both(b, "connections", "gauge", "Open connections, by transport.", d.h3.open_connections,
         d.h2.open_connections);
    both(b, "flows", "gauge", "Open CONNECT-IP requests, by transport.", d.h3.open_flows, d.h2.open_flows);
    both(b, "connections_total", "counter", "Connections accepted, by transport.", d.h3.connections,
         d.h2.connections);
    both(b, "handshakes_failed_total", "counter", "TLS handshakes that failed, by transport.",
         d.h3.handshakes_failed, d.h2.handshakes_failed);
    both(b, "requests_refused_total", "counter", "Requests and connections refused, by transport.",
         d.h3.refused, d.h2.refused);
    both(b, "transport_packets_total", "counter", "IP packets sent to connectors, by transport.",
         d.h3.packets_out, d.h2.packets_out);
    metrics_limits_reached(b, &d);
    one(b, "http2_fence_resets_total", "counter",
        "HTTP/2 connections reset because their socket held packets that may not pass any more.",
        d.h2.resets_fence);
    one(b, "http2_floods_total", "counter", "HTTP/2 connections ended for frames that came too often.",
        d.h2.floods);
    head(b, "packets_total", "counter", "IP packets forwarded, by direction.");
    (void)base_buf_addf(b, "holdfast_packets_total{direction=\"to_vpc\"} %llu\n",
                        (unsigned long long)d.tun_out);
    (void)base_buf_addf(b, "holdfast_packets_total{direction=\"to_connector\"} %llu\n",
                        (unsigned long long)(d.h3.packets_out + d.h2.packets_out));
    head(b, "bytes_total", "counter", "Bytes of IP packets forwarded, by direction.");
    (void)base_buf_addf(b, "holdfast_bytes_total{direction=\"to_vpc\"} %llu\n",
                        (unsigned long long)d.tun_bytes_out);
    (void)base_buf_addf(b, "holdfast_bytes_total{direction=\"to_connector\"} %llu\n",
                        (unsigned long long)(d.h3.bytes_out + d.h2.bytes_out));
    head(b, "dropped_total", "counter", "Packets dropped, by reason.");
    for (unsigned i = 0; i < BASE_LEN(drops); i++)
        (void)base_buf_addf(b, "holdfast_dropped_total{reason=\"%s\"} %llu\n", drops[i].reason,
                            (unsigned long long)drops[i].n);
    one(b, "icmp_sent_total", "counter", "ICMPv6 messages made.", d.icmp_sent);
    one(b, "data_gaps_total", "counter", "Times a data thread was stopped for longer than the gap.", d.gaps);
    one(b, "data_threads", "gauge", "Threads that move packets.", agent_data_threads(a->data));
    one(b, "carried_total", "counter",
        "Packets and datagrams that came to one data thread and were carried to the one they belong to.",
        d.carried);
}

static void metrics_limits(struct agent *a, struct base_buf *b)
{
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    static const char *const results[] = {"applied", "refused"};
    const struct {
        const char *name;
        int64_t value;
    } limits[] = {{"connectors", a->cfg.max_connectors},
                  {"services", a->cfg.max_services},
                  {"attachments", a->cfg.max_attachments},
                  {"connections", a->cfg.max_connections}};

    one(b, "draining", "gauge", "1 once this process gives back what it holds.", a->draining ? 1 : 0);
    one(b, "lease_duration_seconds", "gauge", "Configured L: how long an instance lease lasts.",
        (uint64_t)a->cfg.lease_seconds);
    head(b, "limit", "gauge", "Configured limits, by name.");
    for (unsigned i = 0; i < BASE_LEN(limits); i++)
        (void)base_buf_addf(b, "holdfast_limit{limit=\"%s\"} %lld\n", limits[i].name,
                            (long long)limits[i].value);
    one(b, "tls_certificate_expiry_timestamp_seconds", "gauge",
        "End of the certificate in tls.certFile as it was last read, Unix time; 0 = not known.",
        a->tls_expiry > 0 ? (uint64_t)a->tls_expiry : 0);
    head(b, "reloads_total", "counter", "Times the configuration was read again (SIGHUP), by result.");
    for (unsigned i = 0; i < BASE_LEN(results); i++)
        (void)base_buf_addf(b, "holdfast_reloads_total{result=\"%s\"} %llu\n", results[i],
                            (unsigned long long)a->n.reloads[i]);
    head(b, "log_messages_total", "counter",
         "Log lines asked for, by level, also those that were not written.");
    for (unsigned i = 0; i < BASE_LEN(levels); i++)
        (void)base_buf_addf(b, "holdfast_log_messages_total{level=\"%s\"} %llu\n", levels[i],
                            (unsigned long long)loop_log_count(a->log, (enum loop_level)i));
}

void agent_metrics(void *arg, struct base_buf *b)
{
    struct agent *a = arg;

    metrics_core(a, b);
    metrics_limits(a, b);
    metrics_audit(a, b);
    metrics_events(a, b);
    metrics_data(a, b);
    agent_metrics_process(b);
}
