/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/status.c - a line a node, its claims below.
 */
#include "cli/cli_int.h"

#include "cli/verdict.h"

struct view {
    struct cli_list instances, claims, attachments;
};

static bool wanted(const struct cli *c, const char *node)
{
    if (c->a.n_rest == 0)
        return true;
    for (size_t i = 0; i < c->a.n_rest; i++)
        if (strcmp(c->a.rest[i], node) == 0)
            return true;
    return false;
}

static cJSON *claim_doc(const struct contract_claim *r)
{
    cJSON *o = cJSON_CreateObject();

    cli_add_str(o, "name", r->meta.name);
    cli_add_prefix(o, "prefix", &r->spec.prefix);
    cli_add_str(o, "tenant", r->spec.tenant);
    cli_add_str(o, "connector", r->spec.connector);
    cli_add_str(o, "vpc", r->spec.vpc);
    cli_add_int(o, "epoch", r->spec.epoch);
    cli_add_uuid(o, "leaseUUID", &r->spec.lease_uuid);
    cli_add_str(o, "gate", cli_gate_word(r));
    cli_add_str(o, "gateReason", r->status.gate.epoch == r->spec.epoch ? r->status.gate.reason : "");
    cli_add_int(o, "closedEpoch", r->status.closed_epoch);
    cli_add_int(o, "publishedEpoch", r->status.published_epoch);
    cli_add_time(o, "acquireTime", r->spec.acquire_time);
    cli_add_time(o, "releaseTime", r->spec.release_time);
    cli_add_time(o, "deletionTimestamp", r->meta.deleting);
    return o;
}

static cJSON *node_doc(const struct view *v, const struct contract_instance *i, base_wall now)
{
    cJSON *o = cJSON_CreateObject(), *claims, *atts;

    cli_add_str(o, "node", i->spec.node);
    cli_add_str(o, "instance", i->meta.name);
    cli_add_str(o, "provider", i->spec.provider);
    cli_add_int(o, "epoch", i->spec.epoch);
    cli_add_uuid(o, "processID", &i->spec.process_id);
    cli_add_str(o, "ready", cli_ready_word(i, now));
    cli_add_str(o, "reason", i->status.ready.reason);
    cli_add_str(o, "message", i->status.ready.message);
    cli_add_time(o, "renewTime", i->spec.renew.time);
    cli_add_int(o, "leaseDurationSeconds", i->spec.lease_seconds);
    (void)cJSON_AddBoolToObject(o, "draining", i->spec.draining || i->meta.drain);
    cli_add_time(o, "releaseTime", i->spec.release_time);
    atts = cJSON_AddArrayToObject(o, "attachments");
    for (size_t k = 0; k < v->attachments.n; k++) {
        const struct contract_attachment *a = &v->attachments.o[k].u.attachment;
        cJSON *d;

        if (strcmp(a->spec.instance.name, i->meta.name) != 0)
            continue;
        d = cJSON_CreateObject();
        cli_add_str(d, "vpc", a->spec.vpc);
        cli_add_str(d, "device", a->status.device);
        (void)cJSON_AddBoolToObject(d, "ready", a->status.ready.status == CONTRACT_COND_TRUE);
        (void)cJSON_AddItemToArray(atts, d);
    }
    claims = cJSON_AddArrayToObject(o, "claims");
    for (size_t k = 0; k < v->claims.n; k++)
        if (strcmp(v->claims.o[k].u.claim.spec.holder.instance, i->meta.name) == 0)
            (void)cJSON_AddItemToArray(claims, claim_doc(&v->claims.o[k].u.claim));
    return o;
}

#define ORPHANS ((size_t)-1)

/* The group of a claim: the index of its holder's instance, or ORPHANS. */
static size_t group_of(const struct view *v, const struct contract_claim *r)
{
    for (size_t k = 0; k < v->instances.n; k++)
        if (strcmp(v->instances.o[k].u.meta.name, r->spec.holder.instance) == 0)
            return k;
    return ORPHANS;
}

static void claim_row(const struct cli *c, struct cli_table *t, size_t group, const struct contract_claim *r)
{
    struct cli_row *row = cli_table_row(t);
    char text[BASE_PREFIX_SIZE], age[CLI_AGE_SIZE], uuid[BASE_UUID_SIZE];
    const char *gate = cli_gate_word(r);

    if (!row)
        return;
    row->group = group;
    base_prefix_text(text, &r->spec.prefix);
    cli_age(age, c->now, r->spec.acquire_time);
    base_uuid_text(uuid, &r->spec.lease_uuid);
    cli_cell(t, row, 0, CLI_PLAIN, "%s", text);
    cli_cell(t, row, 1, CLI_PLAIN, "%s.%s", r->spec.tenant, r->spec.connector);
    cli_cell(t, row, 2, CLI_PLAIN, "%s", r->spec.vpc);
    cli_cell(t, row, 3, CLI_PLAIN, "%lld", (long long)r->spec.epoch);
    cli_cell(t, row, 4, strcmp(gate, "Open") == 0 ? CLI_GOOD : CLI_PLAIN, "%s", gate);
    cli_cell(t, row, 5, CLI_PLAIN, "%lld", (long long)r->status.closed_epoch);
    cli_cell(t, row, 6, CLI_PLAIN, "%s",
             r->meta.deleting       ? "Deleting"
             : r->spec.release_time ? "Released"
                                    : "Held");
    cli_cell(t, row, 7, CLI_PLAIN, "%s", age);
    cli_cell(t, row, 8, CLI_PLAIN, "%lld", (long long)r->status.published_epoch);
    cli_cell(t, row, 9, CLI_PLAIN, "%s", uuid);
    cli_cell(t, row, 10, CLI_PLAIN, "%s", r->status.gate.epoch == r->spec.epoch ? r->status.gate.reason : "");
}

static void node_row(const struct cli *c, const struct view *v, struct cli_table *t, size_t k)
{
    const struct contract_instance *i = &v->instances.o[k].u.instance;
    const char *ready = cli_ready_word(i, c->now);
    char age[CLI_AGE_SIZE], uuid[BASE_UUID_SIZE], devices[200] = "";
    struct cli_row *row = cli_table_row(t);
    unsigned n = 0;

    if (!row)
        return;
    row->group = k;
    for (size_t m = 0; m < v->claims.n; m++)
        n += group_of(v, &v->claims.o[m].u.claim) == k && !v->claims.o[m].u.claim.spec.release_time;
    for (size_t m = 0; m < v->attachments.n; m++) {
        const struct contract_attachment *a = &v->attachments.o[m].u.attachment;
        size_t at = strlen(devices);

        if (strcmp(a->spec.instance.name, i->meta.name) == 0)
            (void)base_fmt(devices + at, sizeof devices - at, "%s%s:%s", at ? "," : "", a->spec.vpc,
                           a->status.device[0] ? a->status.device : "-");
    }
    cli_age(age, c->now, i->spec.renew.time);
    base_uuid_text(uuid, &i->spec.process_id);
    cli_cell(t, row, 0, CLI_STRONG, "%s", i->spec.node);
    cli_cell(t, row, 1, CLI_PLAIN, "%lld", (long long)i->spec.epoch);
    cli_cell(t, row, 2, strcmp(ready, "True") == 0 ? CLI_GOOD : CLI_BAD, "%s", ready);
    cli_cell(t, row, 3, CLI_PLAIN, "%s", age);
    cli_cell(t, row, 4, CLI_PLAIN, "%s", i->spec.draining || i->meta.drain ? "yes" : "no");
    cli_cell(t, row, 5, CLI_PLAIN, "%u", n);
    cli_cell(t, row, 6, CLI_PLAIN, "%s", strcmp(ready, "True") == 0 ? "" : cli_ready_reason(i, c->now));
    cli_cell(t, row, 7, CLI_PLAIN, "%s", uuid);
    cli_cell(t, row, 8, CLI_PLAIN, "%ds", i->spec.lease_seconds);
    cli_cell(t, row, 9, CLI_PLAIN, "%s", devices);
}

static void node_table(struct cli *c, const struct view *v)
{
    static const char *const node_head[] = {"NODE",   "EPOCH",  "READY",   "RENEWED", "DRAINING",
                                            "CLAIMS", "REASON", "PROCESS", "LEASE",   "DEVICES"};
    static const char *const claim_head[] = {"CLAIM",     "CONNECTOR",  "VPC",        "EPOCH",
                                             "GATE",      "CLOSED",     "STATE",      "ACQUIRED",
                                             "PUBLISHED", "LEASE UUID", "GATE REASON"};
    struct cli_table nodes, claims;
    bool orphans = false;

    cli_table_init(&nodes, node_head, BASE_LEN(node_head), 1u << 7 | 1u << 8 | 1u << 9);
    cli_table_init(&claims, claim_head, BASE_LEN(claim_head),
                   1u << 2 | 1u << 7 | 1u << 8 | 1u << 9 | 1u << 10);
    for (size_t k = 0; k < v->instances.n; k++)
        if (wanted(c, v->instances.o[k].u.instance.spec.node))
            node_row(c, v, &nodes, k);
    for (size_t k = 0; k < v->claims.n; k++)
        if (wanted(c, v->claims.o[k].u.claim.spec.holder.node)) {
            size_t group = group_of(v, &v->claims.o[k].u.claim);

            claim_row(c, &claims, group, &v->claims.o[k].u.claim);
            orphans |= group == ORPHANS;
        }
    /* two kinds of lines, two headings, once */
    if (nodes.rows && c->a.command != CLI_CLAIMS)
        cli_table_print_group(c, &nodes, ORPHANS - 1, true, "");
    if (claims.rows && c->a.command != CLI_INSTANCES)
        cli_table_print_group(c, &claims, ORPHANS - 1, true, "  ");
    for (size_t k = 0; k < v->instances.n; k++)
        if (wanted(c, v->instances.o[k].u.instance.spec.node)) {
            if (c->a.command != CLI_CLAIMS)
                cli_table_print_group(c, &nodes, k, false, "");
            if (c->a.command != CLI_INSTANCES)
                cli_table_print_group(c, &claims, k, false, "  ");
        }
    if (orphans && c->a.command != CLI_INSTANCES) {
        (void)fprintf(c->out, "(claims whose holder's instance is gone)\n");
        cli_table_print_group(c, &claims, ORPHANS, false, "  ");
    }
    cli_table_fini(&nodes);
    cli_table_fini(&claims);
}

static int show(struct cli *c, const struct view *v)
{
    unsigned n = 0, ready = 0;

    for (size_t k = 0; k < v->instances.n; k++) {
        const struct contract_instance *i = &v->instances.o[k].u.instance;

        if (!wanted(c, i->spec.node))
            continue;
        n++;
        ready += strcmp(cli_ready_word(i, c->now), "True") == 0;
    }
    if (c->a.format == CLI_JSON || c->a.format == CLI_YAML) {
        cJSON *doc = cJSON_CreateObject(), *nodes = cJSON_AddArrayToObject(doc, "nodes"), *orphans;

        for (size_t k = 0; k < v->instances.n; k++)
            if (wanted(c, v->instances.o[k].u.instance.spec.node))
                (void)cJSON_AddItemToArray(nodes, node_doc(v, &v->instances.o[k].u.instance, c->now));
        orphans = cJSON_AddArrayToObject(doc, "claimsWithoutInstance");
        for (size_t k = 0; k < v->claims.n; k++)
            if (group_of(v, &v->claims.o[k].u.claim) == ORPHANS)
                (void)cJSON_AddItemToArray(orphans, claim_doc(&v->claims.o[k].u.claim));
        (void)cJSON_AddBoolToObject(doc, "ready", n > 0 && ready == n);
        cli_print_doc(c, doc);
    } else {
        node_table(c, v);
    }
    if (n == 0) {
        (void)fprintf(c->err,
                      "no instance of %s in namespace %s: no agent has started there (or -n names another)\n",
                      c->a.n_rest ? "these nodes" : "any node", cli_api_namespace(c));
        return CLI_EXIT_FOUND;
    }
    return ready == n ? CLI_EXIT_OK : CLI_EXIT_FOUND;
}

int cli_status(struct cli *c)
{
    struct view v = {.instances = {.n = 0}};
    struct base_err err = {0};
    int rc, code;

    rc = cli_api_list(c, CONTRACT_INSTANCE, NULL, &v.instances, &err);
    if (!rc)
        rc = cli_api_list(c, CONTRACT_CLAIM, NULL, &v.claims, &err);
    if (!rc)
        rc = cli_api_list(c, CONTRACT_ATTACHMENT, NULL, &v.attachments, &err);
    code = rc ? cli_fail(c, CLI_EXIT_BLIND, "%s", err.msg) : show(c, &v);
    cli_list_fini(&v.instances);
    cli_list_fini(&v.claims);
    cli_list_fini(&v.attachments);
    return code;
}
