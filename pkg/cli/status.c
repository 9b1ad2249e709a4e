/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/status.c - a line a node, its claims below.
 */
#include "cli/cli_int.h"

#include <stdlib.h>

#include "cli/verdict.h"

/* What is shown of a claim: there may be many, and the whole is 30 times as large. */
struct row {
    struct base_prefix prefix;
    struct base_uuid lease_uuid;
    int64_t epoch, closed, published;
    base_wall acquired, released, deleting;
    const char *name, *tenant, *connector, *vpc, *node, *gate, *gate_reason; /* in the arena, or constants */
    size_t group; /* the index of its holder's instance, or ORPHANS */
};
#define ORPHANS ((size_t)-1)
#define ARENA_MAX ((size_t)1 << 30)
struct view {
    struct cli_list instances, attachments;
    struct row *rows;
    size_t n, room;
    unsigned *held; /* claims of each instance that are not released */
    struct base_arena *arena;
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

static cJSON *claim_doc(const struct row *r)
{
    cJSON *o = cJSON_CreateObject();

    cli_add_str(o, "name", r->name);
    cli_add_prefix(o, "prefix", &r->prefix);
    cli_add_str(o, "tenant", r->tenant);
    cli_add_str(o, "connector", r->connector);
    cli_add_str(o, "vpc", r->vpc);
    cli_add_int(o, "epoch", r->epoch);
    cli_add_uuid(o, "leaseUUID", &r->lease_uuid);
    cli_add_str(o, "gate", r->gate);
    cli_add_str(o, "gateReason", r->gate_reason);
    cli_add_int(o, "closedEpoch", r->closed);
    cli_add_int(o, "publishedEpoch", r->published);
    cli_add_time(o, "acquireTime", r->acquired);
    cli_add_time(o, "releaseTime", r->released);
    cli_add_time(o, "deletionTimestamp", r->deleting);
    return o;
}

static cJSON *node_doc(const struct view *v, size_t at, base_wall now)
{
    const struct contract_instance *i = &v->instances.o[at].u.instance;
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
    for (size_t k = 0; k < v->n; k++)
        if (v->rows[k].group == at)
            (void)cJSON_AddItemToArray(claims, claim_doc(&v->rows[k]));
    return o;
}

static void claim_row(const struct cli *c, struct cli_table *t, const struct row *r)
{
    struct cli_row *row = cli_table_row(t);
    char text[BASE_PREFIX_SIZE], age[CLI_AGE_SIZE], uuid[BASE_UUID_SIZE];

    if (!row)
        return;
    row->group = r->group;
    base_prefix_text(text, &r->prefix);
    cli_age(age, c->now, r->acquired);
    base_uuid_text(uuid, &r->lease_uuid);
    cli_cell(t, row, 0, CLI_PLAIN, "%s", text);
    cli_cell(t, row, 1, CLI_PLAIN, "%s.%s", r->tenant, r->connector);
    cli_cell(t, row, 3, CLI_PLAIN, "%lld", (long long)r->epoch);
    cli_cell(t, row, 4, strcmp(r->gate, "Open") == 0 ? CLI_GOOD : CLI_PLAIN, "%s", r->gate);
    cli_cell(t, row, 5, CLI_PLAIN, "%lld", (long long)r->closed);
    cli_cell(t, row, 6, CLI_PLAIN, "%s", r->deleting ? "Deleting" : r->released ? "Released" : "Held");
    if (c->a.format != CLI_WIDE)
        return;
    cli_cell(t, row, 2, CLI_PLAIN, "%s", r->vpc);
    cli_cell(t, row, 7, CLI_PLAIN, "%s", age);
    cli_cell(t, row, 8, CLI_PLAIN, "%lld", (long long)r->published);
    cli_cell(t, row, 9, CLI_PLAIN, "%s", uuid);
    cli_cell(t, row, 10, CLI_PLAIN, "%s", r->gate_reason);
}

static void node_row(const struct cli *c, const struct view *v, struct cli_table *t, size_t k)
{
    const struct contract_instance *i = &v->instances.o[k].u.instance;
    const char *ready = cli_ready_word(i, c->now);
    char age[CLI_AGE_SIZE], uuid[BASE_UUID_SIZE], devices[200] = "";
    struct cli_row *row = cli_table_row(t);

    if (!row)
        return;
    row->group = k;
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
    cli_cell(t, row, 5, CLI_PLAIN, "%u", v->held[k]);
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
    for (size_t k = 0; k < v->n; k++)
        if (wanted(c, v->rows[k].node)) {
            claim_row(c, &claims, &v->rows[k]);
            orphans |= v->rows[k].group == ORPHANS;
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
                (void)cJSON_AddItemToArray(nodes, node_doc(v, k, c->now));
        orphans = cJSON_AddArrayToObject(doc, "claimsWithoutInstance");
        for (size_t k = 0; k < v->n; k++)
            if (v->rows[k].group == ORPHANS)
                (void)cJSON_AddItemToArray(orphans, claim_doc(&v->rows[k]));
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

static int by_name(const void *a, const void *b)
{
    const struct contract_object *x = a, *y = b;

    return strcmp(x->u.meta.name, y->u.meta.name);
}

static size_t group_of(const struct view *v, const char *instance)
{
    size_t lo = 0, hi = v->instances.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = strcmp(v->instances.o[mid].u.meta.name, instance);

        if (order == 0)
            return mid;
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return ORPHANS;
}

/* Claims that follow each other often say the same: one copy of it. NULL = no memory. */
static const char *keep(struct view *v, const char *before, const char *text)
{
    return before && strcmp(before, text) == 0 ? before : base_arena_strdup(v->arena, base_str_of(text));
}

static void view_restart(void *arg)
{
    struct view *v = arg;

    v->n = 0;
    v->arena = base_arena_free(v->arena);
    memset(v->held, 0, (v->instances.n + 1) * sizeof *v->held);
}

static int view_add(void *arg, const struct contract_object *o, struct base_err *err)
{
    const struct contract_claim *c = &o->u.claim;
    struct view *v = arg;
    struct row *r;
    const struct row *last;
    bool ok;

    if (!v->arena)
        v->arena = base_arena_new(ARENA_MAX);
    if (v->n == v->room) {
        size_t room = v->room ? 2 * v->room : 256;
        void *more = base_realloc(v->rows, room * sizeof *v->rows);

        if (!more)
            return base_err_set(err, BASE_ENOMEM, "no memory for the claims");
        v->rows = more;
        v->room = room;
    }
    last = v->n ? &v->rows[v->n - 1] : NULL;
    r = &v->rows[v->n];
    *r = (struct row){.prefix = c->spec.prefix,
                      .lease_uuid = c->spec.lease_uuid,
                      .epoch = c->spec.epoch,
                      .closed = c->status.closed_epoch,
                      .published = c->status.published_epoch,
                      .acquired = c->spec.acquire_time,
                      .released = c->spec.release_time,
                      .deleting = c->meta.deleting,
                      .gate = cli_gate_word(c),
                      .group = group_of(v, c->spec.holder.instance)};
    ok = v->arena && (r->name = keep(v, NULL, c->meta.name)) &&
         (r->tenant = keep(v, last ? last->tenant : NULL, c->spec.tenant)) &&
         (r->connector = keep(v, NULL, c->spec.connector)) &&
         (r->vpc = keep(v, last ? last->vpc : NULL, c->spec.vpc)) &&
         (r->node = keep(v, r->group != ORPHANS ? v->instances.o[r->group].u.instance.spec.node : NULL,
                         c->spec.holder.node)) &&
         (r->gate_reason = keep(v, last ? last->gate_reason : NULL,
                                c->status.gate.epoch == c->spec.epoch ? c->status.gate.reason : ""));
    if (!ok)
        return base_err_set(err, BASE_ENOMEM, "no memory for the claims");
    if (r->group != ORPHANS)
        v->held[r->group] += c->spec.release_time == 0;
    v->n++;
    return BASE_OK;
}

int cli_status(struct cli *c)
{
    struct view v = {.n = 0};
    struct base_err err = {0};
    int rc, code;

    rc = cli_api_list(c, CONTRACT_INSTANCE, NULL, &v.instances, &err);
    if (!rc && v.instances.n)
        qsort(v.instances.o, v.instances.n, sizeof *v.instances.o, by_name);
    v.held = base_calloc(v.instances.n + 1, sizeof *v.held);
    if (!rc && !v.held)
        rc = base_err_set(&err, BASE_ENOMEM, "no memory");
    if (!rc)
        rc = cli_claim_rows(c, view_add, view_restart, &v, &err);
    if (!rc)
        rc = cli_api_list(c, CONTRACT_ATTACHMENT, NULL, &v.attachments, &err);
    code = rc ? cli_fail(c, CLI_EXIT_BLIND, "%s", err.msg) : show(c, &v);
    cli_list_fini(&v.instances);
    cli_list_fini(&v.attachments);
    base_arena_free(v.arena);
    base_free(v.rows);
    base_free(v.held);
    return code;
}
