/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/show.c - audit show: the records of a request, a connector or a time.
 */
#include "cli/cli_int.h"

/* The names under which records speak of a connector: its binding, its claims, past ones too. */
void cli_connector_objects(struct cli *c, struct cli_trail *t, const char *name, struct audit_query *q)
{
    struct cli_list bindings, claims;
    struct base_err err = {0};
    char fields[300];
    const char *plain = name;
    int rc;

    (void)base_copy(q->objects[q->n_objects++], sizeof q->objects[0], name);
    (void)base_copy(q->suffix, sizeof q->suffix, name);
    (void)base_fmt(fields, sizeof fields, "spec.connector=%s", plain);
    rc = cli_api_list(c, CONTRACT_CLAIM, fields, &claims, &err);
    if (!rc && claims.n == 0 && strchr(name, '.')) { /* TENANT.NAME */
        plain = strchr(name, '.') + 1;
        (void)base_fmt(fields, sizeof fields, "spec.tenant=%.*s,spec.connector=%s", (int)(plain - name - 1),
                       name, plain);
        cli_list_fini(&claims);
        rc = cli_api_list(c, CONTRACT_CLAIM, fields, &claims, &err);
    }
    if (rc) {
        cli_trail_blind(
            t,
            "the connector's claims: %s; records that name a claim (rc-…) instead of the connector are "
            "missing",
            err.msg);
        return;
    }
    for (size_t i = 0; i < claims.n && q->n_objects < AUDIT_QUERY_OBJECTS; i++)
        (void)base_copy(q->objects[q->n_objects++], sizeof q->objects[0], claims.o[i].u.meta.name);
    if (!cli_api_list(c, CONTRACT_BINDING, fields, &bindings, &err))
        for (size_t i = 0; i < bindings.n && q->n_objects < AUDIT_QUERY_OBJECTS; i++) {
            const struct contract_binding *b = &bindings.o[i].u.binding;
            bool known = !b->status.has_prefix;
            char rc_name[CONTRACT_NAME_SIZE];

            if (!known)
                contract_claim_name(rc_name, &b->status.prefix);
            for (uint32_t k = 0; k < q->n_objects && !known; k++)
                known = strcmp(q->objects[k], rc_name) == 0;
            if (!known) /* reserved, and the row is pruned */
                (void)base_copy(q->objects[q->n_objects++], sizeof q->objects[0], rc_name);
        }
    cli_list_fini(&bindings);
    cli_list_fini(&claims);
}

static enum cli_colour colour_of(const struct audit_record *r)
{
    return r->event == AUDIT_REJECT || r->event == AUDIT_EXPIRY ? CLI_BAD
           : r->event == AUDIT_TAKEOVER                         ? CLI_STRONG
                                                                : CLI_PLAIN;
}

void cli_records_table(struct cli *c, const struct cli_trail *t, size_t from, const char *indent)
{
    static const char *const head[] = {"TIME",           "NODE",  "EVENT",     "OUTCOME", "REASON",
                                       "OBJECT",         "EPOCH", "HOLDER",    "EFFECT",  "COUNT",
                                       "CORRELATION ID", "SEQ",   "LEASE UUID"};
    struct cli_table table;

    cli_table_init(&table, head, BASE_LEN(head), 1u << 11 | 1u << 12);
    for (size_t i = from; i < t->n; i++) {
        const struct audit_record *r = &t->l[i].record;
        struct cli_row *row = cli_table_row(&table);
        char ts[BASE_RFC3339_SIZE], id[BASE_CORRELATION_SIZE], uuid[BASE_UUID_SIZE];
        static const char *const outcomes[] = {"?", "allowed", "refused", "observed"};
        static const char *const effects[] = {"?", "none", "intended", "possible"};

        base_rfc3339(ts, r->ts);
        cli_cell(&table, row, 0, CLI_PLAIN, "%.23sZ", ts);
        cli_cell(&table, row, 1, CLI_PLAIN, "%s", r->node);
        cli_cell(&table, row, 2, colour_of(r), "%s", audit_event_name(r->event));
        cli_cell(&table, row, 3, CLI_PLAIN, "%s", outcomes[r->outcome]);
        cli_cell(&table, row, 4, CLI_PLAIN, "%s", r->reason);
        cli_cell(&table, row, 5, CLI_PLAIN, "%s", r->object[0] ? r->object : "-");
        if (r->epoch)
            cli_cell(&table, row, 6, CLI_PLAIN, "%lld", (long long)r->epoch);
        else
            cli_cell(&table, row, 6, CLI_PLAIN, "-");
        if (strcmp(r->old_holder, r->new_holder) == 0)
            cli_cell(&table, row, 7, CLI_PLAIN, "%s", r->new_holder[0] ? r->new_holder : "-");
        else
            cli_cell(&table, row, 7, CLI_PLAIN, "%s→%s", r->old_holder[0] ? r->old_holder : "-",
                     r->new_holder[0] ? r->new_holder : "-");
        cli_cell(&table, row, 8, r->effect == AUDIT_EFFECT_POSSIBLE ? CLI_DOUBT : CLI_PLAIN, "%s",
                 effects[r->effect]);
        cli_cell(&table, row, 9, CLI_PLAIN, "%lld", (long long)(r->count ? r->count : 1));
        base_correlation_text(id, &r->correlation);
        cli_cell(&table, row, 10, CLI_FAINT, "%s", base_correlation_is_zero(&r->correlation) ? "-" : id);
        cli_cell(&table, row, 11, CLI_PLAIN, "%llu", (unsigned long long)t->l[i].seq);
        base_uuid_text(uuid, &r->lease_uuid);
        cli_cell(&table, row, 12, CLI_PLAIN, "%s", base_uuid_is_zero(&r->lease_uuid) ? "-" : uuid);
    }
    cli_table_print(c, &table, indent);
}

cJSON *cli_trail_doc(const struct cli_trail *t, cJSON *doc)
{
    cJSON *records = cJSON_AddArrayToObject(doc, "records"), *nodes, *blind;

    for (size_t i = 0; i < t->n; i++)
        (void)cJSON_AddItemToArray(records, cli_record_json(&t->l[i]));
    nodes = cJSON_AddArrayToObject(doc, "auditOfNodes");
    for (size_t i = 0; i < t->n_nodes; i++)
        (void)cJSON_AddItemToArray(nodes, cJSON_CreateString(t->nodes[i]));
    blind = cJSON_AddArrayToObject(doc, "notSeen");
    for (size_t i = 0; i < t->n_blind; i++)
        (void)cJSON_AddItemToArray(blind, cJSON_CreateString(t->blind[i]));
    return doc;
}

int cli_show(struct cli *c)
{
    struct cli_trail *t = base_calloc(1, sizeof *t);
    struct audit_query *q = base_calloc(1, sizeof *q);
    int code = CLI_EXIT_OK;

    if (!t || !q) {
        base_free(t);
        base_free(q);
        return cli_fail(c, CLI_EXIT_BLIND, "no memory");
    }
    cli_trail_init(t, (size_t)c->a.limit);
    q->correlation = c->a.correlation;
    q->since = c->a.since;
    q->until = c->a.until;
    if (c->a.connector)
        cli_connector_objects(c, t, c->a.connector, q);
    cli_trail_read(c, t, q, 0);
    if (c->a.format == CLI_JSON || c->a.format == CLI_YAML) {
        cli_print_doc(c, cli_trail_doc(t, cJSON_CreateObject()));
    } else {
        if (t->n)
            cli_records_table(c, t, 0, "");
        for (size_t i = 0; i < t->n_blind; i++)
            (void)fprintf(c->err, "not seen: %s\n", t->blind[i]);
    }
    if (t->n == 0 && t->n_nodes == 0)
        code = t->n_blind ? CLI_EXIT_BLIND : CLI_EXIT_FOUND;
    else if (t->n == 0)
        code = CLI_EXIT_FOUND;
    if (t->n == 0)
        (void)fprintf(c->err, "no record found in the trail of %zu node(s)\n", t->n_nodes);
    cli_trail_fini(t);
    base_free(t);
    base_free(q);
    return code;
}
