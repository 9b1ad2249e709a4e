/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/prune.c - claims prune: deletes rows that cli_retire() lets go, each with the uid and resourceVersion
 * that it was decided on.
 */
#include "cli/cli_int.h"

#include "cli/retire.h"

struct prune {
    struct cli_list claims, bindings, instances;
    struct cli_table table;
    cJSON *rows;
    unsigned deleted, kept, failed;
};

static const struct contract_object *named(const struct cli_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->o[i].u.meta.name, name) == 0)
            return &l->o[i];
    return NULL;
}

/* A binding of another connector that reserves the row's /96 (which its agent is about to find taken). */
static const char *other_binding(const struct cli_list *l, const struct contract_claim *r, const char *own)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct contract_binding *b = &l->o[i].u.binding;

        if (b->status.has_prefix && base_prefix_eq(&b->status.prefix, &r->spec.prefix) &&
            strcmp(b->meta.name, own) != 0)
            return b->meta.name;
    }
    return NULL;
}

static struct cli_retirement decide(const struct cli *c, const struct contract_claim *r,
                                    const struct contract_object *binding, const char *other,
                                    const struct contract_object *instance)
{
    return cli_retire(&(struct cli_retire_facts){.now = c->now,
                                                 .claim = r,
                                                 .binding = binding ? &binding->u.binding : NULL,
                                                 .other = other,
                                                 .instance = instance ? &instance->u.instance : NULL,
                                                 .default_retention_s = c->a.retention_s});
}

/* Fresh reads of all that the decision rests on, right before it is carried out. *row becomes the fresh row. */
static int decide_again(struct cli *c, struct contract_object *row, const char *binding_name,
                        const char *other, struct cli_retirement *ret, struct base_err *err)
{
    struct contract_object *b = base_calloc(1, sizeof *b), *i = base_calloc(1, sizeof *i);
    int rc = b && i ? cli_api_get(c, CONTRACT_BINDING, binding_name, b, err)
                    : base_err_set(err, BASE_ENOMEM, "no memory"),
        ri = BASE_OK;

    if (rc == BASE_OK || rc == BASE_ENOTFOUND)
        ri = cli_api_get(c, CONTRACT_INSTANCE, row->u.claim.spec.holder.instance, i, err);
    if ((rc == BASE_OK || rc == BASE_ENOTFOUND) && (ri == BASE_OK || ri == BASE_ENOTFOUND)) {
        *ret = decide(c, &row->u.claim, rc == BASE_OK ? b : NULL, other, ri == BASE_OK ? i : NULL);
        rc = BASE_OK;
    } else if (ri) {
        rc = ri;
    }
    base_free(b);
    base_free(i);
    return rc;
}

static void report(struct cli *c, struct prune *p, const struct contract_claim *r, const char *action,
                   enum cli_colour colour, const char *why)
{
    char prefix[BASE_PREFIX_SIZE];

    base_prefix_text(prefix, &r->spec.prefix);
    if (p->rows) {
        cJSON *o = cJSON_CreateObject();

        cli_add_str(o, "name", r->meta.name);
        cli_add_str(o, "prefix", prefix);
        cli_add_str(o, "tenant", r->spec.tenant);
        cli_add_str(o, "connector", r->spec.connector);
        cli_add_int(o, "epoch", r->spec.epoch);
        cli_add_str(o, "action", action);
        cli_add_str(o, "why", why);
        (void)cJSON_AddItemToArray(p->rows, o);
        return;
    }
    {
        struct cli_row *row = cli_table_row(&p->table);

        cli_cell(&p->table, row, 0, CLI_PLAIN, "%s", r->meta.name);
        cli_cell(&p->table, row, 1, CLI_PLAIN, "%s.%s", r->spec.tenant, r->spec.connector);
        cli_cell(&p->table, row, 2, CLI_PLAIN, "%lld", (long long)r->spec.epoch);
        cli_cell(&p->table, row, 3, colour, "%s", action);
        cli_cell(&p->table, row, 4, CLI_PLAIN, "%s", why);
    }
}

static void one(struct cli *c, struct prune *p, struct contract_object *row)
{
    const struct contract_claim *r = &row->u.claim;
    struct base_err err = {0};
    char binding[CONTRACT_NAME_SIZE];
    struct cli_retirement d;
    const char *other;
    int rc;

    (void)base_fmt(binding, sizeof binding, "%s.%s", r->spec.tenant, r->spec.connector);
    other = other_binding(&p->bindings, r, binding);
    d = decide(c, r, named(&p->bindings, binding), other, named(&p->instances, r->spec.holder.instance));
    if (!d.go) {
        p->kept++;
        report(c, p, r, "keep", CLI_PLAIN, d.why);
        return;
    }
    if (c->a.dry_run) {
        p->deleted++;
        report(c, p, r, "would delete", CLI_DOUBT, d.why);
        return;
    }
    rc = decide_again(c, row, binding, other, &d, &err);
    if (!rc && !d.go) {
        p->kept++;
        report(c, p, r, "keep", CLI_PLAIN, d.why);
        return;
    }
    if (!rc)
        rc = cli_api_delete(c, row, &err);
    if (rc == BASE_OK || rc == BASE_ENOTFOUND) {
        p->deleted++;
        report(c, p, r, "deleted", CLI_DOUBT, rc ? "was gone already" : d.why);
        return;
    }
    p->failed++;
    report(c, p, r, "not deleted", CLI_BAD,
           rc == BASE_ECONFLICT ? "changed since it was read: it is in use again, or run this once more"
                                : err.msg);
}

static int run(struct cli *c, struct prune *p)
{
    static const char *const head[] = {"CLAIM", "CONNECTOR", "EPOCH", "ACTION", "WHY"};

    if (c->a.format == CLI_JSON || c->a.format == CLI_YAML)
        p->rows = cJSON_CreateArray();
    else
        cli_table_init(&p->table, head, BASE_LEN(head), 0);
    for (size_t i = 0; i < p->claims.n; i++)
        one(c, p, &p->claims.o[i]);
    if (p->rows) {
        cJSON *doc = cJSON_CreateObject();

        (void)cJSON_AddBoolToObject(doc, "dryRun", c->a.dry_run);
        cli_add_int(doc, c->a.dry_run ? "wouldDelete" : "deleted", p->deleted);
        cli_add_int(doc, "kept", p->kept);
        cli_add_int(doc, "failed", p->failed);
        (void)cJSON_AddItemToObject(doc, "rows", p->rows);
        cli_print_doc(c, doc);
    } else {
        if (p->claims.n)
            cli_table_print(c, &p->table, "");
        else
            cli_table_fini(&p->table);
        (void)fprintf(c->out, "%u %s, %u kept", p->deleted, c->a.dry_run ? "would be deleted" : "deleted",
                      p->kept);
        if (p->failed)
            (void)fprintf(c->out, ", %s%u not deleted%s", cli_on(c, CLI_BAD), p->failed, cli_off(c));
        (void)fputc('\n', c->out);
    }
    return p->failed ? CLI_EXIT_FOUND : CLI_EXIT_OK;
}

int cli_prune(struct cli *c)
{
    struct prune *p = base_calloc(1, sizeof *p);
    struct base_err err = {0};
    int rc, code;

    if (!p)
        return cli_fail(c, CLI_EXIT_BLIND, "no memory");
    /* Claims first: a reservation that is made meanwhile is seen in the bindings, which are read later. */
    rc = cli_api_list(c, CONTRACT_CLAIM, NULL, &p->claims, &err);
    if (!rc)
        rc = cli_api_list(c, CONTRACT_INSTANCE, NULL, &p->instances, &err);
    if (!rc)
        rc = cli_api_list(c, CONTRACT_BINDING, NULL, &p->bindings, &err);
    code = rc ? cli_fail(c, CLI_EXIT_BLIND, "nothing was deleted: %s", err.msg) : run(c, p);
    cli_list_fini(&p->claims);
    cli_list_fini(&p->instances);
    cli_list_fini(&p->bindings);
    base_free(p);
    return code;
}
