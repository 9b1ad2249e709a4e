/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/nodes.c - taking a node out of service and back: drain and undrain, which wait and say how far it is.
 *
 * A drain is the annotation CONTRACT_DRAIN_ANNOTATION on the node's instances, all an operator may write
 * there; the agent then gives back its claims one by one, and each connector goes to another edge.
 */
#include "cli/cli_int.h"

#include <time.h>

#include "cli/verdict.h"
#include "loop/loop.h"

struct progress {
    unsigned instances, draining, ready, held;
};

static int look(struct cli *c, const char *node, struct progress *p, struct base_err *err)
{
    struct cli_list instances = {.n = 0}, claims = {.n = 0};
    int rc = cli_api_list(c, CONTRACT_INSTANCE, NULL, &instances, err);

    if (!rc)
        rc = cli_api_list(c, CONTRACT_CLAIM, NULL, &claims, err);
    *p = (struct progress){.held = 0};
    for (size_t k = 0; !rc && k < instances.n; k++) {
        const struct contract_instance *i = &instances.o[k].u.instance;

        if (strcmp(i->spec.node, node) != 0)
            continue;
        p->instances++;
        p->draining += i->spec.draining;
        p->ready += strcmp(cli_ready_word(i, c->now), "True") == 0;
    }
    for (size_t k = 0; !rc && k < claims.n; k++) {
        const struct contract_claim *r = &claims.o[k].u.claim;

        p->held += strcmp(r->spec.holder.node, node) == 0 && !r->spec.release_time;
    }
    cli_list_fini(&instances);
    cli_list_fini(&claims);
    return rc;
}

static int annotate(struct cli *c, const char *node, bool drain, unsigned *ret_n, struct base_err *err)
{
    struct cli_list instances = {.n = 0};
    int rc = cli_api_list(c, CONTRACT_INSTANCE, NULL, &instances, err);

    *ret_n = 0;
    for (size_t k = 0; !rc && k < instances.n; k++) {
        const struct contract_instance *i = &instances.o[k].u.instance;
        char path[400], json[160];
        struct base_buf body;

        if (strcmp(i->spec.node, node) != 0)
            continue;
        ++*ret_n;
        if (i->meta.drain == drain)
            continue;
        (void)base_fmt(path, sizeof path, "/apis/%s/%s/namespaces/%s/%s/%s",
                       contract_kind_group(CONTRACT_INSTANCE), CONTRACT_VERSION, cli_api_namespace(c),
                       contract_kind_plural(CONTRACT_INSTANCE), i->meta.name);
        (void)base_fmt(json, sizeof json,
                       "{\"metadata\":{\"annotations\":{\"" CONTRACT_DRAIN_ANNOTATION "\":%s}}}",
                       drain ? "\"true\"" : "null");
        base_buf_init(&body, (size_t)4 << 20);
        rc = cli_api_call(c, "PATCH", path, json, NULL, &body, NULL, err);
        base_buf_fini(&body);
    }
    cli_list_fini(&instances);
    return rc;
}

static void pause_1s(void)
{
    struct timespec t = {.tv_sec = 1};

    (void)nanosleep(&t, NULL);
}

static void say(struct cli *c, const char *node, bool drain, const struct progress *p)
{
    if (drain)
        (void)fprintf(c->err, "%s: %s, %u claim%s still held\n", node,
                      p->draining == p->instances ? "draining" : "told to drain", p->held,
                      p->held == 1 ? "" : "s");
    else
        (void)fprintf(c->err, "%s: %s\n", node,
                      p->draining                ? "still draining"
                      : p->ready == p->instances ? "Ready"
                                                 : "not Ready yet");
}

static bool reached(bool drain, const struct progress *p)
{
    return drain ? p->draining == p->instances && p->held == 0 : !p->draining && p->ready == p->instances;
}

static int finish(struct cli *c, const char *node, bool drain, const struct progress *p, bool ok)
{
    if (c->a.format == CLI_JSON || c->a.format == CLI_YAML) {
        cJSON *doc = cJSON_CreateObject();

        cli_add_str(doc, "node", node);
        (void)cJSON_AddBoolToObject(doc, "done", ok);
        cli_add_int(doc, "claimsHeld", p->held);
        cli_print_doc(c, doc);
    } else if (ok) {
        (void)fprintf(c->out, "%s is %s\n", node,
                      drain ? "drained: no claim is held there" : "back in service");
    }
    if (!ok)
        (void)fprintf(c->err, "%s: not done after %llds; it goes on: see `%s status %s`\n", node,
                      (long long)c->a.timeout_s, c->a.name, node);
    return ok ? CLI_EXIT_OK : CLI_EXIT_FOUND;
}

static int wait_for(struct cli *c, const char *node, bool drain)
{
    struct progress last = {.instances = ~0u}, p;
    struct base_err err = {0};

    for (int64_t waited = 0;; waited++) {
        c->now = loop_wall();
        if (look(c, node, &p, &err))
            return cli_fail(c, CLI_EXIT_BLIND, "%s", err.msg);
        if (memcmp(&p, &last, sizeof p) != 0)
            say(c, node, drain, &p);
        last = p;
        if (reached(drain, &p) || waited >= c->a.timeout_s)
            return finish(c, node, drain, &p, reached(drain, &p));
        pause_1s();
    }
}

int cli_drain(struct cli *c)
{
    bool drain = c->a.command == CLI_DRAIN;
    const char *node = c->a.rest[0];
    struct base_err err = {0};
    unsigned n;

    if (annotate(c, node, drain, &n, &err))
        return cli_fail(c, CLI_EXIT_BLIND, "%s", err.msg);
    if (n == 0)
        return cli_fail(c, CLI_EXIT_FOUND,
                        "no instance of node %s in namespace %s: no agent has started there (or -n names "
                        "another)",
                        node, cli_api_namespace(c));
    return wait_for(c, node, drain);
}
