/* SPDX-License-Identifier: Apache-2.0 */
#include "authority.h"

#include "base/mem.h"
#include "kube/client.h"
#include "kubestore/kubestore.h"
#include "loop/log.h"
#include "loop/loop.h"

#define PERIOD (60 * BASE_SEC)
#define RETRY (2 * BASE_SEC)
#define VALID_FOR ((base_wall)300 * 1000000)
#define ASK_TIMEOUT (10 * BASE_SEC)

struct authority {
    struct loop *loop;
    struct loop_log *log;
    const char *provider;
    struct kube_config *cfg;
    struct kube_client *client;
    struct kubestore *store;
    struct loop_timer *timer;
};

static void wrote(void *arg, const struct store_resp *resp)
{
    struct authority *a = arg;

    if (resp->code == BASE_OK)
        return;
    /* A conflict or an unknown outcome is settled by the next round's list. */
    loop_log(a->log, LOOP_WARN, "authority_write", resp->err.msg,
             LOG_STR("code", base_code_name(resp->code)));
    loop_timer_set(a->timer, loop_clock() + RETRY);
}

static void listed(void *arg, const struct store_resp *resp)
{
    struct authority *a = arg;
    unsigned moved = 0;
    struct base_err err;

    if (resp->code != BASE_OK) {
        loop_log(a->log, LOOP_WARN, "authority_list", resp->err.msg,
                 LOG_STR("code", base_code_name(resp->code)));
        loop_timer_set(a->timer, loop_clock() + RETRY);
        return;
    }
    for (size_t i = 0; i < resp->n_objects; i++) {
        struct contract_object o = resp->objects[i];
        struct store_req req = {
            .op = STORE_UPDATE, .kind = CONTRACT_SERVICE, .object = &o, .timeout = ASK_TIMEOUT};

        if (o.u.service.revoked || o.u.meta.deleting || strcmp(o.u.service.provider, a->provider) != 0)
            continue;
        o.u.service.valid_until = loop_wall() + VALID_FOR;
        base_copy(req.name, sizeof req.name, o.u.meta.name);
        if (kubestore_submit(a->store, &req, wrote, a, &err))
            loop_log(a->log, LOOP_WARN, "authority_write", err.msg, LOG_STR("name", o.u.meta.name));
        else
            moved++;
    }
    loop_log(a->log, LOOP_DEBUG, "authority_round", "services moved on", LOG_INT("services", moved));
}

static void round_of(void *arg)
{
    struct authority *a = arg;
    struct store_req req = {.op = STORE_LIST, .kind = CONTRACT_SERVICE, .timeout = ASK_TIMEOUT};
    struct base_err err;

    loop_timer_set(a->timer, loop_clock() + PERIOD);
    base_copy(req.selector.provider, sizeof req.selector.provider, a->provider);
    if (kubestore_submit(a->store, &req, listed, a, &err))
        loop_log(a->log, LOOP_WARN, "authority_list", err.msg, LOG_END);
}

int authority_new(struct authority **ret, struct loop *l, const char *kubeconfig, const char *ns,
                  const char *provider, struct loop_log *log, struct base_err *err)
{
    struct authority *a = base_calloc(1, sizeof *a);
    int r;

    if (!a)
        return base_err_set(err, BASE_ENOMEM, "authority: no memory");
    a->loop = l;
    a->log = log;
    a->provider = provider;
    r = kube_config_load(&a->cfg, kubeconfig, NULL, err);
    if (!r)
        r = kube_client_new(&a->client, l, a->cfg, "holdfast-authority/" HOLDFAST_VERSION, log, err);
    if (!r)
        r = kubestore_new(&a->store, l, a->client, ns, log, err);
    if (!r)
        r = loop_timer_new(&a->timer, l, round_of, a, err);
    if (r) {
        authority_free(a);
        return base_err_wrap(err, "--authority-kubeconfig");
    }
    loop_timer_set(a->timer, loop_clock());
    *ret = a;
    return BASE_OK;
}

struct authority *authority_free(struct authority *a)
{
    if (!a)
        return NULL;
    loop_timer_free(a->timer);
    kubestore_free(a->store);
    kube_client_free(a->client);
    kube_config_free(a->cfg);
    return base_free(a);
}
