/* SPDX-License-Identifier: Apache-2.0
 *
 * holdfast-foundation: see README.md. Order of the start: lock, default drop and maps, watchdog, who we are,
 * watches.
 */
#include "authority.h"
#include "driver.h"
#include "identity.h"
#include "kube/client.h"
#include "lock.h"
#include "watchdog.h"

#include "base/mem.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define ASK_AGAIN (BASE_SEC)

struct program {
    struct options opt;
    struct loop *loop;
    struct loop_log *log;
    struct kube_config *cfg;
    struct kube_client *client;
    struct kubestore *store;
    struct authority *authority;
    struct loop_timer *again;
    struct loop_signal *term, *interrupt;
    struct kernel *kernel;
    struct fnd_core *core;
    struct driver *driver;
    struct base_uuid node_uid;
    int code;
    bool asked_in_vain;
};

static int fail(struct program *p, const struct base_err *err)
{
    loop_log(p->log, LOOP_ERROR, "foundation_exit", err->msg, LOG_STR("code", base_code_name(err->code)));
    p->code = 1;
    if (p->loop)
        loop_stop(p->loop);
    return 1;
}

static int start_core(struct program *p, struct base_err *err)
{
    struct fnd_config cfg = {
        .node_uid = p->node_uid,
        .timing = contract_timing_default(),
        .mtu = p->opt.mtu,
        .max_claims = DRIVER_CLAIMS,
        .max_instances = DRIVER_INSTANCES,
        .max_attachments = DRIVER_ATTACHMENTS,
        .max_services = DRIVER_SERVICES,
    };
    int r;

    cfg.timing.lease = p->opt.lease_seconds * BASE_SEC;
    cfg.timing.interval = base_time_min(cfg.timing.lease, cfg.timing.grant) / 3;
    base_copy(cfg.node, sizeof cfg.node, p->opt.node);
    loop_random(&cfg.seed, sizeof cfg.seed);
    r = loop_boot_id(&cfg.boot_id, err);
    if (!r)
        r = fnd_core_new(&p->core, &cfg, err);
    if (r)
        return r;
    *p->driver = (struct driver){.opt = &p->opt,
                                 .loop = p->loop,
                                 .log = p->log,
                                 .store = p->store,
                                 .kernel = p->kernel,
                                 .core = p->core};
    r = driver_start(p->driver, err);
    if (!r)
        loop_log(p->log, LOOP_INFO, "foundation_started", "working", LOG_STR("node", p->opt.node),
                 LOG_STR("server", kube_config_server(p->cfg)), LOG_INT("mtu", p->opt.mtu));
    return r;
}

/* The API server may not be there yet: ask again, say so once. */
static void identified(void *arg, int code, const struct identity *who, const struct base_err *why)
{
    struct program *p = arg;
    struct base_err err = *why;

    if (code) {
        if (!p->asked_in_vain)
            loop_log(p->log, LOOP_WARN, "foundation_waiting",
                     "waiting for the API server to say who we are, asking again", LOG_STR("err", err.msg));
        p->asked_in_vain = true;
        loop_timer_set(p->again, loop_clock() + ASK_AGAIN);
        return;
    }
    if (who->node[0] && strcmp(who->node, p->opt.node) != 0) {
        base_err_set(&err, BASE_EINVAL,
                     "--node: '%s' is not the node of the credential, which is bound to '%s'", p->opt.node,
                     who->node);
        fail(p, &err);
        return;
    }
    p->node_uid = base_uuid_is_zero(&p->opt.node_uid) ? who->node_uid : p->opt.node_uid;
    if (base_uuid_is_zero(&p->node_uid)) {
        base_err_set(&err, BASE_EINVAL,
                     "--node-uid: the credential of '%s' is bound to no node; use a token of a pod on the "
                     "node, or give "
                     "the UID of the Node object",
                     who->username);
        fail(p, &err);
        return;
    }
    if (start_core(p, &err))
        fail(p, &err);
}

static void ask(void *arg)
{
    struct program *p = arg;
    struct base_err err;

    if (identity_ask(p->client, identified, p, &err))
        fail(p, &err);
}

static void end(void *arg, int signum)
{
    struct program *p = arg;

    loop_log(p->log, LOOP_INFO, "foundation_stopping", "gates and routes stay until their deadlines",
             LOG_INT("signal", signum));
    loop_stop(p->loop);
}

static int start(struct program *p, struct base_err *err)
{
    struct kernel_config kc = {
        .bpffs = p->opt.bpffs, .tun = p->opt.tun, .tun_owner = p->opt.tun_owner, .table = p->opt.table};
    int r = loop_check_time_namespace(err);

    if (!r) /* what a person can get wrong comes before anything is touched */
        r = kube_config_load(&p->cfg, p->opt.kubeconfig, NULL, err);
    if (!r)
        r = lock_take(p->opt.lock, err);
    if (!r)
        r = kernel_new(&p->kernel, &kc, err);
    if (!r)
        r = watchdog_start(&p->opt, err);
    if (!r)
        r = loop_new(&p->loop, err);
    if (!r)
        r = loop_signal_new(&p->term, p->loop, SIGTERM, end, p, err);
    if (!r)
        r = loop_signal_new(&p->interrupt, p->loop, SIGINT, end, p, err);
    if (!r)
        r = loop_timer_new(&p->again, p->loop, ask, p, err);
    if (!r)
        r = kube_client_new(&p->client, p->loop, p->cfg, "holdfast-foundation/" HOLDFAST_VERSION, p->log,
                            err);
    if (!r)
        r = kubestore_new(&p->store, p->loop, p->client, p->opt.ns, p->log, err);
    if (!r && p->opt.authority_kubeconfig)
        r = authority_new(&p->authority, p->loop, p->opt.authority_kubeconfig, p->opt.ns, p->opt.provider,
                          p->log, err);
    if (!r)
        loop_timer_set(p->again, loop_clock());
    return r;
}

static void finish(struct program *p)
{
    if (p->core)
        driver_stop(p->driver);
    authority_free(p->authority);
    kubestore_free(p->store);
    kube_client_free(p->client);
    kube_config_free(p->cfg);
    loop_timer_free(p->again);
    loop_signal_free(p->interrupt);
    loop_signal_free(p->term);
    loop_free(p->loop);
    fnd_core_free(p->core);
    kernel_free(p->kernel);
    base_free(p->driver);
    loop_log_free(p->log);
}

int main(int argc, char *argv[])
{
    struct program p = {0};
    struct base_err err = {0};

    if (options_parse(&p.opt, argc, (const char *const *)argv, &err)) {
        fprintf(stderr, "holdfast-foundation: %s\n", err.msg);
        return 2;
    }
    if (p.opt.help || p.opt.version) {
        printf("%s", p.opt.help ? options_help() : "holdfast-foundation " HOLDFAST_VERSION "\n");
        return 0;
    }
    p.log = loop_log_new(STDERR_FILENO, p.opt.level, p.opt.json, p.opt.watchdog ? "watchdog" : "foundation");
    p.driver = base_calloc(1, sizeof *p.driver);
    if (!p.log || !p.driver) {
        fprintf(stderr, "holdfast-foundation: no memory\n");
        return 1;
    }
    if (p.opt.watchdog) {
        if (watchdog_run(&p.opt, p.log, &err))
            fail(&p, &err);
    } else if (start(&p, &err) || loop_run(p.loop, &err)) {
        fail(&p, &err);
    }
    finish(&p);
    return p.code;
}
