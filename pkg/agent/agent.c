/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent_int.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DRAIN_DEADLINE (20 * BASE_SEC)

static void finish(struct agent *a, int code)
{
    a->exit_code = code;
    loop_stop(a->loop);
}

/* ---- data thread */

static enum session_identity identity_of(enum masque_identity i)
{
    switch (i) {
    case MASQUE_IDENTITY_URI:
        return SESSION_ID_URI;
    case MASQUE_IDENTITY_NONE:
        return SESSION_ID_NONE;
    case MASQUE_IDENTITY_MANY:
        return SESSION_ID_MANY;
    case MASQUE_IDENTITY_BAD:
        return SESSION_ID_BAD;
    case MASQUE_IDENTITY_TOKEN:
        return SESSION_ID_TOKEN;
    case MASQUE_IDENTITY_ABSENT:
        return SESSION_ID_ABSENT;
    case MASQUE_IDENTITY_BAD_TOKEN:
        return SESSION_ID_BAD_TOKEN;
    }
    return SESSION_ID_BAD;
}

static void on_request(struct agent *a, const struct masque_request *rq)
{
    struct session_in in = {.ev = SESSION_EV_REQUEST};
    struct session_request *r = &in.u.request;

    a->n.requests++;
    if (!a->core) {
        base_secret_free(rq->token);
        (void)agent_data_refuse(a->data, rq->flow, 503,
                                "NotReady: the agent has not reached the API server yet", 1);
        return;
    }
    agent_ask_keep(a->ask, rq->flow, rq->token);
    r->flow = rq->flow;
    r->transport = rq->transport == MASQUE_H2 ? SESSION_H2 : SESSION_H3;
    r->identity = identity_of(rq->identity);
    (void)base_copy(r->uri, sizeof r->uri, rq->uri);
    (void)base_copy(r->credential_id, sizeof r->credential_id, rq->credential_id);
    r->any_target = rq->target == MASQUE_TARGET_ANY;
    r->target = rq->prefix;
    r->ipproto = rq->ipproto;
    r->correlation = rq->correlation;
    while (base_correlation_is_zero(&r->correlation))
        loop_random(r->correlation.b, sizeof r->correlation.b);
    agent_feed(a, &in);
}

static void on_stopped(struct agent *a, uint64_t flow)
{
    struct agent_slot *e = agent_slots_find(a->slots, flow);

    if (e && fence_is_dead(e->slot))
        agent_slots_remove(a->slots, e);
    agent_feed(a, &(struct session_in){.ev = SESSION_EV_STOPPED, .u.flow = flow});
}

static void on_ended(struct agent *a, const struct agent_report *r)
{
    struct agent_slot *e = agent_slots_find(a->slots, r->flow);

    loop_log(a->log, LOOP_INFO, "flow_ended", "a connector's stream has ended", LOG_INT("flow", r->flow),
             LOG_INT("why", r->end), LOG_STR("detail", r->detail));
    a->n.ended[r->flow & MASQUE_FLOW_H2 ? 1 : 0][r->end]++;
    if (e)
        fence_kill(e->slot);
    agent_ask_forget(a->ask, r->flow);
    agent_feed(a, &(struct session_in){.ev = SESSION_EV_ENDED, .u.flow = r->flow});
    e = agent_slots_find(a->slots, r->flow);
    if (e && !e->stopping) /* the slot comes back by the barrier, whatever the core does */
        agent_stop_flow(a, r->flow);
}

static void on_report(void *arg, const struct agent_report *r)
{
    struct agent *a = arg;

    switch (r->kind) {
    case AGENT_REPORT_REQUEST:
        on_request(a, &r->rq);
        return;
    case AGENT_REPORT_ENDED:
        on_ended(a, r);
        return;
    case AGENT_REPORT_STOPPED:
        on_stopped(a, r->flow);
        return;
    case AGENT_REPORT_TUN:
        if (r->code)
            loop_log(a->log, LOOP_ERROR, "tun_refused", r->detail, LOG_INT("tunID", r->tun_id),
                     LOG_STR("code", base_code_name(r->code)));
        agent_feed(a, &(struct session_in){.ev = SESSION_EV_TUN, .u.tun = {r->tun_id, r->code}});
        return;
    case AGENT_REPORT_TUN_LOST:
        loop_log(a->log, LOOP_WARN, "tun_lost", r->detail, LOG_INT("tunID", r->tun_id));
        agent_feed(a, &(struct session_in){.ev = SESSION_EV_TUN_LOST, .u.tun = {r->tun_id, r->code}});
        return;
    case AGENT_REPORT_GAP:
        loop_log(a->log, LOOP_WARN, "data_gap", "the data thread was stopped; what it held was dropped",
                 LOG_INT("atNs", r->at));
        agent_feed(a, &(struct session_in){.ev = SESSION_EV_GAP, .u.gap = r->at});
        return;
    case AGENT_REPORT_TUN_CLOSED:
    case AGENT_REPORT_DRAINED:
        return;
    }
}

static void on_reports(void *arg, int events)
{
    struct agent *a = arg;

    (void)events;
    agent_data_drain_reports(a->data);
}

/* ---- timers and signals */

static void on_tick(void *arg)
{
    agent_feed(arg, &(struct session_in){.ev = SESSION_EV_TICK});
}

static void on_retry(void *arg)
{
    struct agent *a = arg;

    (void)agent_retry_stops(a);
    if (agent_data_retry(a->data))
        agent_retry_later(a);
}

static void on_deadline(void *arg)
{
    struct agent *a = arg;

    loop_log(a->log, LOOP_ERROR, "drain_timeout",
             "not everything could be released in time; what is left ends with its lease", LOG_END);
    finish(a, 1);
}

static void on_term(void *arg, int signum)
{
    struct agent *a = arg;

    if (!a->core) { /* nothing is held yet */
        loop_log(a->log, LOOP_INFO, "signal", "ends", LOG_INT("signal", signum));
        finish(a, 0);
        return;
    }
    if (a->draining && signum == SIGTERM) { /* supervisors repeat themselves; the drain has its own end */
        loop_log(a->log, LOOP_INFO, "signal", "draining already", LOG_INT("signal", signum));
        return;
    }
    if (a->draining) {
        loop_log(a->log, LOOP_WARN, "signal", "drain broken off; what is held ends with its lease",
                 LOG_INT("signal", signum));
        finish(a, 1);
        return;
    }
    loop_log(a->log, LOOP_INFO, "signal", "draining", LOG_INT("signal", signum));
    a->draining = true;
    if (agent_data_drain(a->data))
        agent_retry_later(a);
    loop_timer_set(a->deadline, base_time_add(loop_clock(), DRAIN_DEADLINE));
    agent_feed(a, &(struct session_in){.ev = SESSION_EV_DRAIN});
}

static void on_hup(void *arg, int signum)
{
    struct agent *a = arg;

    (void)signum;
    agent_reload(a);
}

static void on_files(void *arg)
{
    struct agent *a = arg;

    loop_log(a->log, LOOP_INFO, "tls_files_changed", "TLS files were replaced; reading them again", LOG_END);
    a->tls_expiry = agent_tls_expiry(a->cfg.tls_cert);
    if (agent_data_reload(a->data))
        agent_reload_late(a);
}

/* ---- collections */

static void on_note(struct agent *a, enum contract_kind kind, const struct kubestore_note *n)
{
    struct session_in in = {.ev = SESSION_EV_ROW};
    struct contract_object gone;

    switch (n->what) {
    case KUBESTORE_EVENT:
        in.u.row.kind = kind;
        in.u.row.deleted = n->ev->type == STORE_DELETED;
        in.u.row.object = &n->ev->object;
        break;
    case KUBESTORE_RELIST:
    case KUBESTORE_LISTED:
        in.ev = n->what == KUBESTORE_RELIST ? SESSION_EV_RELIST : SESSION_EV_LISTED;
        in.u.collection = kind;
        if (n->what == KUBESTORE_RELIST)
            (void)base_copy(in.version, sizeof in.version, n->version);
        break;
    case KUBESTORE_REGRESSED:
        in.ev = SESSION_EV_REGRESSED;
        break;
    case KUBESTORE_PROVED:
    case KUBESTORE_NOT_PROVED:
        a->n.proofs[kind][n->what == KUBESTORE_PROVED ? 0 : 1]++;
        if (n->what == KUBESTORE_NOT_PROVED)
            loop_log(
                a->log, LOOP_WARN, "proof_failed", "what is known could not be proved fresh; deadlines run",
                LOG_STR("collection", contract_kind_plural(kind)), LOG_STR("err", n->err ? n->err->msg : ""));
        in.ev = SESSION_EV_PROOF;
        in.u.proof.ask = n->proof_id;
        in.u.proof.collection = kind;
        in.u.proof.proved = n->what == KUBESTORE_PROVED;
        in.u.proof.t0 = n->t0;
        break;
    case KUBESTORE_BAD_OBJECT:
        a->n.bad_objects++;
        loop_log(a->log, LOOP_ERROR, "object_refused", "an object makes no sense and counts as absent",
                 LOG_STR("kind", contract_kind_name(kind)), LOG_STR("name", n->name),
                 LOG_STR("err", n->err ? n->err->msg : ""));
        memset(&gone, 0, sizeof gone);
        gone.kind = kind;
        if (!n->name || base_copy(gone.u.meta.name, sizeof gone.u.meta.name, n->name))
            return;
        (void)base_copy(gone.u.meta.rv, sizeof gone.u.meta.rv, n->version ? n->version : "");
        in.u.row.kind = kind;
        in.u.row.deleted = true;
        in.u.row.object = &gone;
        break;
    }
    agent_feed(a, &in);
}

/* One callback per collection, so that no argument has to be kept alive. */
#define NOTE_FOR(name, kind)                                                                                 \
    static void note_##name(void *arg, const struct kubestore_note *n)                                       \
    {                                                                                                        \
        on_note(arg, kind, n);                                                                               \
    }
NOTE_FOR(instances, CONTRACT_INSTANCE)
NOTE_FOR(attachments, CONTRACT_ATTACHMENT)
NOTE_FOR(services, CONTRACT_SERVICE)
NOTE_FOR(claims, CONTRACT_CLAIM)
NOTE_FOR(bindings, CONTRACT_BINDING)

static int start_watches(struct agent *a, struct base_err *err)
{
    static const kubestore_note_fn fns[CONTRACT_KIND_N] = {[CONTRACT_INSTANCE] = note_instances,
                                                           [CONTRACT_ATTACHMENT] = note_attachments,
                                                           [CONTRACT_SERVICE] = note_services,
                                                           [CONTRACT_CLAIM] = note_claims,
                                                           [CONTRACT_BINDING] = note_bindings};

    for (int k = CONTRACT_INSTANCE; k < CONTRACT_KIND_N; k++) {
        struct store_selector sel = {.node = ""};
        int rc;

        if (k == CONTRACT_INSTANCE || k == CONTRACT_CLAIM)
            (void)base_copy(sel.node, sizeof sel.node, a->booted.node);
        if (k == CONTRACT_SERVICE)
            (void)base_copy(sel.provider, sizeof sel.provider, a->cfg.provider);
        rc = kubestore_watch_new(&a->watch[k], a->store, (enum contract_kind)k, &sel, fns[k], a, err);
        if (rc)
            return rc;
    }
    return BASE_OK;
}

static int start_core(struct agent *a, struct base_err *err)
{
    struct session_config sc = {.node_uid = a->booted.node_uid,
                                .boot_id = a->boot_id,
                                .timing = a->timing,
                                .policy = a->cfg.policy == AGENT_POLICY_KUBERNETES ? SESSION_POLICY_KUBERNETES
                                          : a->cfg.policy == AGENT_POLICY_WEBHOOK  ? SESSION_POLICY_WEBHOOK
                                                                                   : SESSION_POLICY_DENY,
                                .max_connectors = (uint32_t)a->cfg.max_connectors,
                                .max_services = (uint32_t)a->cfg.max_services,
                                .max_attachments = (uint32_t)a->cfg.max_attachments};
    int rc;

    (void)base_copy(sc.provider, sizeof sc.provider, a->cfg.provider);
    (void)base_copy(sc.node, sizeof sc.node, a->booted.node);
    rc = contract_instance_name(a->instance, a->cfg.provider, a->booted.node, err);
    if (rc)
        return rc;
    loop_random(sc.seed, sizeof sc.seed);
    rc = session_core_new(&a->core, &sc, err);
    if (!rc)
        rc = start_watches(a, err);
    if (rc)
        return rc;
    agent_feed(a, &(struct session_in){.ev = SESSION_EV_START});
    return BASE_OK;
}

static void on_boot(void *arg, const struct agent_boot_result *r)
{
    struct agent *a = arg;
    struct base_err err = {0};

    a->booted = *r;
    switch (r->state) {
    case AGENT_BOOT_WAITING:
        return;
    case AGENT_BOOT_FATAL:
        loop_log(a->log, LOOP_ERROR, "start_refused", "this agent cannot start here", LOG_STR("err", r->api));
        finish(a, 1);
        return;
    case AGENT_BOOT_DONE:
        loop_log(a->log, LOOP_INFO, "start_identity", "the API server knows this agent",
                 LOG_STR("node", r->node));
        if (start_core(a, &err)) {
            loop_log(a->log, LOOP_ERROR, "start_refused", "this agent cannot start here",
                     LOG_STR("err", err.msg));
            finish(a, 1);
        }
        return;
    }
}

static void on_sum(void *arg)
{
    agent_audit_flush(arg, false);
}

static void on_asked(void *arg, uint64_t ask, base_time t0, const struct authority_answer *answer)
{
    struct session_in in = {.ev = SESSION_EV_AUTHORITY,
                            .u.authority = {.ask = ask, .t0 = t0, .answer = *answer}};

    agent_feed(arg, &in);
}

static void on_audit(void *arg, uint64_t ask, bool durable)
{
    struct agent *a = arg;

    if (!durable)
        audit_sum_failed(a->sum);
    if (a->events)
        agent_events_durable(a->events, ask, durable);
    agent_feed(arg,
               &(struct session_in){.ev = SESSION_EV_AUDIT, .u.audit = {.ask = ask, .durable = durable}});
}

/* ---- life */

struct masque_h3_limits agent_limits(const struct agent_config *cfg)
{
    return (struct masque_h3_limits){.connections = (uint32_t)cfg->max_connections,
                                     .per_source = (uint32_t)cfg->max_per_source,
                                     .handshakes = (uint32_t)cfg->max_handshakes,
                                     .queue_packets = (uint32_t)cfg->queue_packets,
                                     .queue_bytes = (uint32_t)cfg->queue_bytes,
                                     .header_bytes = (uint32_t)cfg->header_bytes,
                                     .rate = (uint32_t)cfg->handshake_rate,
                                     .handshake = cfg->handshake_seconds * BASE_SEC,
                                     .idle = cfg->idle_seconds * BASE_SEC,
                                     .queue_age = cfg->queue_ms * BASE_MS,
                                     .resets = (uint32_t)cfg->h3_resets,
                                     .headers = cfg->header_seconds * BASE_SEC,
                                     .capsule = cfg->capsule_seconds * BASE_SEC};
}

/* How many data threads the configuration means. */
static unsigned data_threads(const struct agent_config *cfg)
{
    cpu_set_t cpus;
    int n;

    if (cfg->data_threads > 0)
        return (unsigned)cfg->data_threads;
    n = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    return n < MASQUE_THREADS_MAX ? (unsigned)n : MASQUE_THREADS_MAX;
}

static int start_data(struct agent *a, struct base_err *err)
{
    struct agent_data_config dc = {
        .threads = data_threads(&a->cfg),
        .h3 = {.listen = a->cfg.listen_h3,
               .cert_file = a->cfg.tls_cert,
               .key_file = a->cfg.tls_key,
               .client_ca_file = a->cfg.tls_client_ca,
               .bearer = a->cfg.bearer != 0,
               .no_rfc = a->cfg.rfc9484 == 0,
               .cloudflare = a->cfg.cloudflare != 0,
               .no_offload = a->cfg.udp_offload == 0,
               .limits = agent_limits(&a->cfg),
               .log = a->log},
        .http2 = a->cfg.http2 != 0,
        .no_tun_offload = a->cfg.tun_offload == 0,
        .h2 = {.unsent = (uint32_t)a->cfg.h2_unsent,
               .window = (uint32_t)a->cfg.h2_window,
               .connection_window = 4 * (uint32_t)a->cfg.h2_window,
               .resets = (uint32_t)a->cfg.h2_resets,
               .control = (uint32_t)a->cfg.h2_control,
               .small = (uint32_t)a->cfg.h2_small,
               .headers = a->cfg.header_seconds * BASE_SEC,
               .capsule = a->cfg.capsule_seconds * BASE_SEC,
               .ping = a->cfg.h2_ping * BASE_SEC,
               .dead = 3 * a->cfg.h2_ping * BASE_SEC,
               .blocked = a->cfg.h2_blocked * BASE_SEC},
        .tenant = {.sessions = (uint32_t)a->cfg.tenant_sessions,
                   .requests = (uint32_t)a->cfg.tenant_requests,
                   .packets = (uint32_t)a->cfg.tenant_packets},
        .rate = {.packets = (uint32_t)a->cfg.session_packets, .bytes = (uint64_t)a->cfg.session_bytes},
        .gap = a->timing.gap,
        .log = a->log};
    int rc = agent_data_new(&a->data, &dc, on_report, a, err);

    return rc ? rc
              : loop_poll_new(&a->reports, a->loop, agent_data_fd(a->data), LOOP_READ, on_reports, a, err);
}

static int start_ask(struct agent *a, struct base_err *err)
{
    bool webhook = a->cfg.policy == AGENT_POLICY_WEBHOOK;
    struct agent_ask_config ac = {.client = a->cfg.bearer ? a->client : NULL,
                                  .url = webhook ? a->cfg.webhook_url : "",
                                  .ca_file = a->cfg.webhook_ca,
                                  .cert_file = a->cfg.webhook_cert,
                                  .key_file = a->cfg.webhook_key,
                                  .timeout = a->cfg.authority_timeout_ms * BASE_MS,
                                  .max_tokens = (uint32_t)a->cfg.max_connections * (a->cfg.http2 ? 2 : 1),
                                  .log = a->log};

    return agent_ask_new(&a->ask, a->loop, &ac, on_asked, a, err);
}

static int start_kube(struct agent *a, struct base_err *err)
{
    const char *ns = a->cfg.ns;
    int rc = kube_config_load(&a->kube_config, a->cfg.kubeconfig[0] ? a->cfg.kubeconfig : NULL, NULL, err);

    if (rc)
        return base_err_wrap(err, "kubeconfig");
    if (!ns[0])
        ns = kube_config_namespace(a->kube_config);
    if (!ns[0])
        return base_err_set(err, BASE_EINVAL,
                            "namespace: not given by the configuration, $POD_NAMESPACE, the service "
                            "account or the kubeconfig; set one of them");
    rc =
        kube_client_new(&a->client, a->loop, a->kube_config, "holdfast-agent/" HOLDFAST_VERSION, a->log, err);
    if (!rc)
        rc = kubestore_new(&a->store, a->loop, a->client, ns, a->log, err);
    if (!rc)
        rc = start_ask(a, err);
    if (!rc && a->cfg.audit_events)
        rc = agent_events_new(&a->events, a->loop, a->client, ns, a->log, err);
    if (!rc)
        rc = agent_boot_new(&a->boot, a->loop, a->client, a->cfg.node_name, a->log, on_boot, a, err);
    return rc;
}

static int start_loop(struct agent *a, struct base_err *err)
{
    int rc = loop_new(&a->loop, err);

    if (!rc)
        rc = loop_timer_new(&a->tick, a->loop, on_tick, a, err);
    if (!rc)
        rc = loop_timer_new(&a->retry, a->loop, on_retry, a, err);
    if (!rc)
        rc = loop_timer_new(&a->deadline, a->loop, on_deadline, a, err);
    if (!rc)
        rc = loop_timer_new(&a->sum_timer, a->loop, on_sum, a, err);
    if (!rc)
        rc = loop_signal_new(&a->sigterm, a->loop, SIGTERM, on_term, a, err);
    if (!rc)
        rc = loop_signal_new(&a->sigint, a->loop, SIGINT, on_term, a, err);
    if (!rc)
        rc = loop_signal_new(&a->sighup, a->loop, SIGHUP, on_hup, a, err);
    return rc;
}

/* The key file is read once: a new key is a restart, so that a trail says when its key changed. */
static int read_audit_key(struct agent *a, struct base_err *err)
{
    char pem[4096];
    size_t n;
    FILE *f;
    int rc;

    if (!a->cfg.audit_key[0])
        return BASE_OK;
    f = fopen(a->cfg.audit_key, "re");
    if (!f)
        return base_err_sys(err, BASE_EIO, errno, "audit.checkpointKeyFile: cannot read %s",
                            a->cfg.audit_key);
    n = fread(pem, 1, sizeof pem, f);
    (void)fclose(f);
    rc = base_key_private(&a->audit_key, (struct base_str){pem, n}, err);
    explicit_bzero(pem, sizeof pem);
    return rc ? base_err_wrap(err, "audit.checkpointKeyFile: %s", a->cfg.audit_key) : BASE_OK;
}

static int start_audit(struct agent *a, struct base_err *err)
{
    const struct agent_config *cfg = &a->cfg;
    struct journal_config jc = {.dir = cfg->audit_dir,
                                .node = cfg->node_name,
                                .max_lines = (size_t)cfg->audit_queue,
                                .max_file_bytes = (uint64_t)cfg->audit_file_mb << 20,
                                .max_age = cfg->audit_file_hours * 3600 * BASE_SEC,
                                .max_files = (unsigned)cfg->audit_files,
                                .deadline = cfg->audit_deadline_ms * BASE_MS,
                                .checkpoint_lines = (uint64_t)cfg->audit_key_records,
                                .checkpoint_age = cfg->audit_key_minutes * 60 * BASE_SEC,
                                .copy = cfg->audit_copy != 0,
                                .copy_fd = STDOUT_FILENO};
    struct audit_sum_config sc = {.renew = cfg->audit_renew_s * BASE_SEC,
                                  .reject = cfg->audit_reject_s * BASE_SEC};
    int rc = read_audit_key(a, err);

    if (rc)
        return rc;
    jc.key = a->audit_key;
    a->sum = audit_sum_new(&sc);
    if (!a->sum)
        return base_err_set(err, BASE_ENOMEM, "agent: no memory");
    return journal_new(&a->journal, a->loop, &jc, on_audit, a, err);
}

int agent_new(struct agent **ret, const struct agent_config *cfg, struct base_err *err)
{
    struct agent *a = base_calloc(1, sizeof *a);
    const char *pod_uid = getenv("POD_UID");
    int rc;

    if (!a)
        return base_err_set(err, BASE_ENOMEM, "agent: no memory");
    a->cfg = *cfg;
    a->exit_code = 1;
    a->connections_at_start = cfg->max_connections;
    a->tls_expiry = agent_tls_expiry(cfg->tls_cert);
    a->booted.state = AGENT_BOOT_WAITING;
    (void)base_copy(a->booted.node, sizeof a->booted.node, cfg->node_name);
    base_buf_init(&a->line, 2 * 4096);
    if (pod_uid)
        (void)base_uuid_parse(&a->pod_uid, base_str_of(pod_uid));
    (void)signal(SIGPIPE, SIG_IGN);
    rc = loop_check_time_namespace(err);
    if (!rc)
        rc = agent_config_timing(cfg, &a->timing, err);
    if (!rc)
        rc = agent_config_policy(cfg, err);
    if (!rc)
        rc = loop_boot_id(&a->boot_id, err);
    if (!rc) {
        a->out = base_calloc(1, sizeof *a->out);
        a->slots = agent_slots_new((uint32_t)cfg->max_connections * (cfg->http2 ? 2 : 1) + 64);
        a->log = loop_log_new(STDERR_FILENO, (enum loop_level)cfg->log_level, cfg->log_json != 0,
                              "holdfast-agent");
        if (!a->out || !a->slots || !a->log)
            rc = base_err_set(err, BASE_ENOMEM, "agent: no memory");
    }
    if (!rc)
        rc = start_loop(a, err);
    if (!rc)
        rc = start_audit(a, err);
    if (!rc)
        rc = start_data(a, err);
    if (!rc)
        rc = agent_web_new(&a->health, a->loop, "health.listen", cfg->health_listen, agent_page_health, a,
                           err);
    if (!rc)
        rc = agent_web_new(&a->metrics, a->loop, "metrics.listen", cfg->metrics_listen, agent_page_none, a,
                           err);
    if (!rc)
        rc = start_kube(a, err);
    if (!rc)
        rc = agent_metrics_page_new(&a->metrics_page, a->metrics, cfg->metrics_auth ? a->client : NULL,
                                    agent_metrics, a, a->log, err);
    if (!rc)
        rc = agent_files_new(&a->files, a->loop,
                             (const char *const[]){a->cfg.tls_cert, a->cfg.tls_key, a->cfg.tls_client_ca}, 3,
                             on_files, a, err);
    if (!rc && cfg->audit_page)
        rc = agent_audit_page_new(&a->audit_page, a->loop, a->metrics, a->client, a->cfg.audit_dir,
                                  cfg->node_name, a->log, err);
    if (rc) {
        agent_free(a);
        return rc;
    }
    *ret = a;
    return BASE_OK;
}

int agent_run(struct agent *a)
{
    struct base_err err = {0};

    loop_log(a->log, LOOP_INFO, "start", "agent started", LOG_STR("version", HOLDFAST_VERSION),
             LOG_STR("server", kube_config_server(a->kube_config)), LOG_STR("listen", a->cfg.listen_h3),
             LOG_STR("policy", a->cfg.policy == AGENT_POLICY_DENY      ? "deny"
                               : a->cfg.policy == AGENT_POLICY_WEBHOOK ? "webhook"
                                                                       : "kubernetes"),
             LOG_BOOL("bearerTokens", a->cfg.bearer != 0));
    if (a->cfg.policy == AGENT_POLICY_DENY)
        loop_log(
            a->log, LOOP_WARN, "policy_deny",
            "authority.policy is 'deny': nobody is admitted until it is set to 'kubernetes' or 'webhook'",
            LOG_END);
    if (loop_run(a->loop, &err)) {
        loop_log(a->log, LOOP_ERROR, "loop_failed", err.msg, LOG_END);
        return 1;
    }
    return a->exit_code;
}

struct agent *agent_free(struct agent *a)
{
    if (!a)
        return NULL;
    agent_boot_free(a->boot);
    agent_audit_page_free(a->audit_page);
    agent_metrics_page_free(a->metrics_page);
    agent_files_free(a->files);
    for (int k = CONTRACT_INSTANCE; k < CONTRACT_KIND_N; k++)
        kubestore_watch_free(a->watch[k]);
    kubestore_free(a->store);
    agent_forget_requests(a);
    agent_ask_free(a->ask);
    a->events = agent_events_free(a->events);
    kube_client_free(a->client);
    kube_config_free(a->kube_config);
    agent_web_free(a->health);
    agent_web_free(a->metrics);
    loop_poll_free(a->reports);
    agent_data_free(a->data);
    session_core_free(a->core);
    if (a->journal && a->sum && a->sum_timer)
        agent_audit_flush(a, true);
    journal_free(a->journal);
    base_key_free(a->audit_key);
    audit_sum_free(a->sum);
    loop_timer_free(a->sum_timer);
    loop_timer_free(a->tick);
    loop_timer_free(a->retry);
    loop_timer_free(a->deadline);
    loop_signal_free(a->sigterm);
    loop_signal_free(a->sigint);
    loop_signal_free(a->sighup);
    if (a->slots)
        for (struct agent_slot *e; (e = agent_slots_at(a->slots, 0));) {
            fence_kill(e->slot);
            agent_slots_remove(a->slots, e);
        }
    agent_slots_free(a->slots);
    loop_free(a->loop);
    loop_log_free(a->log);
    base_buf_fini(&a->line);
    base_free(a->out);
    return base_free(a);
}
