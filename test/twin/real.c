/* SPDX-License-Identifier: Apache-2.0 */
#include "twin.h"

#include <stdio.h>
#include <stdlib.h>

void answer_clear(struct answer *a)
{
    free(a->objects);
    *a = (struct answer){0};
}

static void on_end(void *arg)
{
    (void)arg; /* only wakes the loop */
}

bool rig_wait(struct rig *r, const bool *done, int64_t ms)
{
    base_time end = base_time_add(loop_clock(), ms * BASE_MS);
    struct loop_timer *timer = NULL;

    if (loop_timer_new(&timer, r->loop, on_end, NULL, NULL))
        abort();
    loop_timer_set(timer, end);
    while (!*done && loop_clock() < end)
        loop_step(r->loop, true);
    loop_timer_free(timer);
    return *done;
}

void rig_sleep(struct rig *r, int64_t ms)
{
    bool never = false;

    (void)rig_wait(r, &never, ms);
}

struct waiting {
    struct answer *answer;
    bool done;
};

static void on_answer(void *arg, const struct store_resp *resp)
{
    struct waiting *w = arg;
    struct answer *a = w->answer;

    w->done = true;
    a->code = resp->code;
    a->http = resp->http_status;
    a->sent = resp->sent;
    (void)base_copy(a->reason, sizeof a->reason, resp->reason);
    (void)base_copy(a->text, sizeof a->text, resp->err.msg);
    (void)base_copy(a->list_rv, sizeof a->list_rv, resp->list_rv);
    if (resp->n_objects) {
        a->objects = calloc(resp->n_objects, sizeof *a->objects);
        if (!a->objects)
            abort();
        memcpy(a->objects, resp->objects, resp->n_objects * sizeof *a->objects);
        a->n = resp->n_objects;
    }
}

void real_do(struct rig *r, enum who who, const struct store_req *req, struct answer *ret)
{
    struct waiting w = {ret, false};
    struct base_err err = {0};

    *ret = (struct answer){0};
    ret->code = kubestore_submit(r->store[who], req, on_answer, &w, &err);
    if (ret->code) {
        (void)base_copy(ret->text, sizeof ret->text, err.msg);
        return;
    }
    if (!rig_wait(r, &w.done, 30000)) {
        (void)fprintf(stderr, "twin: no answer within 30 s\n");
        abort(); /* `w` lives on this stack */
    }
}

struct raw_waiting {
    int http;
    bool done;
};

static void on_raw(void *arg, const struct kube_resp *resp)
{
    struct raw_waiting *w = arg;

    w->done = true;
    w->http = resp->http_status;
    if (resp->http_status >= 400 && getenv("TWIN_TRACE"))
        (void)fprintf(stderr, "raw: %d %s\n", resp->http_status, resp->err.msg);
}

int real_send(struct rig *r, enum who who, const struct kube_req *req)
{
    struct raw_waiting w = {0, false};

    if (kube_request(r->client[who], req, on_raw, &w, NULL, NULL))
        return 0;
    if (!rig_wait(r, &w.done, 30000))
        abort();
    return w.http;
}

int real_raw(struct rig *r, enum who who, const char *method, const char *path, const char *body)
{
    struct kube_req req = {.method = method, .path = path, .body = base_str_of(body)};

    return real_send(r, who, &req);
}

static int node_uid(struct base_uuid *ret, const char *name, struct base_err *err)
{
    const char *z = getenv(name);

    if (z && base_uuid_parse(ret, base_str_of(z)) == BASE_OK)
        return BASE_OK;
    return base_err_set(err, BASE_EINVAL, "%s must be the uid of that Node object; start this with run.sh",
                        name);
}

int rig_open(struct rig *r, const char *dir, struct base_err *err)
{
    static const struct {
        const char *config;
        enum store_role role;
        const char *node;
    } ids[WHO_N] = {
        [ADMIN] = {"admin", STORE_ADMIN, ""},
        [AGENT1] = {"agent-edge1", STORE_AGENT, "edge1"},
        [AGENT2] = {"agent-edge2", STORE_AGENT, "edge2"},
        [FOUND1] = {"foundation-edge1", STORE_FOUNDATION, "edge1"},
        [FOUND2] = {"foundation-edge2", STORE_FOUNDATION, "edge2"},
        [OPERATOR] = {"operator", STORE_OPERATOR, ""},
        [AUTHORITY] = {"authority", STORE_AUTHORITY, ""},
        [NOPOD] = {"nopod", STORE_AGENT, ""},
    };
    int rc;

    r->dir = dir;
    r->real.name = "server";
    r->mem.name = "twin";
    r->log = getenv("TWIN_TRACE") ? loop_log_new(2, LOOP_DEBUG, false, "twin") : NULL;
    r->twin = store_twin_new(1);
    if (!r->twin)
        return base_err_set(err, BASE_ENOMEM, "no memory");
    rc = node_uid(&r->node1, "TWIN_EDGE1_UID", err);
    if (!rc)
        rc = node_uid(&r->node2, "TWIN_EDGE2_UID", err);
    if (!rc)
        rc = loop_new(&r->loop, err);
    for (int i = 0; !rc && i < WHO_N; i++) {
        struct kube_config *c = NULL;
        char path[1024];

        (void)base_fmt(path, sizeof path, "%s/%s.kubeconfig", dir, ids[i].config);
        rc = kube_config_load(&c, path, NULL, err);
        if (!rc)
            rc = kube_client_new(&r->client[i], r->loop, c, "holdfast-twin-test", r->log, err);
        kube_config_free(c);
        if (!rc)
            rc = kubestore_new(&r->store[i], r->loop, r->client[i], NAMESPACE, r->log, err);
        if (!rc)
            kubestore_unguarded(r->store[i]);
        r->identity[i].role = ids[i].role;
        (void)base_copy(r->identity[i].node, sizeof r->identity[i].node, ids[i].node);
        if (ids[i].node[0])
            r->identity[i].node_uid = ids[i].node[4] == '1' ? r->node1 : r->node2;
    }
    return rc;
}

void rig_close(struct rig *r)
{
    for (int i = 0; i < WHO_N; i++) {
        kubestore_free(r->store[i]);
        kube_client_free(r->client[i]);
    }
    store_twin_free(r->twin);
    loop_free(r->loop);
    loop_log_free(r->log);
}
