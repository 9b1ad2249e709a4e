/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/lists.c - one table each: sessions (what bindings say of their last one) and events.
 */
#include "cli/cli_int.h"

static bool wanted(const struct cli *c, const struct contract_binding *b)
{
    char full[2 * CONTRACT_NAME_SIZE];

    if (c->a.n_rest == 0)
        return true;
    (void)base_fmt(full, sizeof full, "%s.%s", b->spec.tenant, b->spec.connector);
    for (size_t i = 0; i < c->a.n_rest; i++)
        if (strcmp(c->a.rest[i], b->spec.connector) == 0 || strcmp(c->a.rest[i], full) == 0)
            return true;
    return false;
}

/* The newest claim of the connector. */
static const struct contract_claim *claim_of(const struct cli_list *claims, const struct contract_binding *b)
{
    const struct contract_claim *best = NULL;

    for (size_t k = 0; k < claims->n; k++) {
        const struct contract_claim *r = &claims->o[k].u.claim;

        if (strcmp(r->spec.tenant, b->spec.tenant) == 0 &&
            strcmp(r->spec.connector, b->spec.connector) == 0 &&
            (!best || r->spec.acquire_time > best->spec.acquire_time))
            best = r;
    }
    return best;
}

static const char *state(const struct contract_binding *b, const struct contract_claim *r)
{
    if (b->spec.suspended)
        return "Suspended";
    if (!r || r->spec.release_time)
        return "None";
    return r->status.gate.epoch == r->spec.epoch && r->status.gate.state == CONTRACT_GATE_OPEN ? "Forwarding"
                                                                                               : "Waiting";
}

static void row(struct cli *c, struct cli_table *t, cJSON *list, const struct contract_binding *b,
                const struct contract_claim *r)
{
    const struct contract_last_session *last = &b->status.last;
    struct cli_row *cells = cli_table_row(t);
    char prefix[BASE_PREFIX_SIZE] = "-", age[CLI_AGE_SIZE] = "-";
    const char *word = state(b, r);
    cJSON *o = cJSON_CreateObject();

    if (b->status.has_prefix)
        base_prefix_text(prefix, &b->status.prefix);
    if (last->since)
        cli_age(age, c->now, last->since);
    if (cells) {
        cli_cell(t, cells, 0, CLI_STRONG, "%s.%s", b->spec.tenant, b->spec.connector);
        cli_cell(t, cells, 1, strcmp(word, "Forwarding") == 0 ? CLI_GOOD : CLI_PLAIN, "%s", word);
        cli_cell(t, cells, 2, CLI_PLAIN, "%s", last->node[0] ? last->node : "-");
        cli_cell(t, cells, 3, CLI_PLAIN, "%s", prefix);
        cli_cell(t, cells, 4, CLI_PLAIN, "%s", last->transport[0] ? last->transport : "-");
        cli_cell(t, cells, 5, CLI_PLAIN, "%s%s", age, last->until ? " (ended)" : "");
        cli_cell(t, cells, 6, CLI_PLAIN, "%lld", r ? (long long)r->spec.epoch : 0LL);
    }
    cli_add_str(o, "tenant", b->spec.tenant);
    cli_add_str(o, "connector", b->spec.connector);
    cli_add_str(o, "state", word);
    cli_add_str(o, "node", last->node);
    cli_add_str(o, "transport", last->transport);
    if (b->status.has_prefix)
        cli_add_prefix(o, "prefix", &b->status.prefix);
    cli_add_time(o, "since", last->since);
    cli_add_time(o, "until", last->until);
    if (r)
        cli_add_int(o, "epoch", r->spec.epoch);
    (void)cJSON_AddItemToArray(list, o);
}

int cli_sessions(struct cli *c)
{
    static const char *const head[] = {"CONNECTOR", "STATE", "NODE", "PREFIX", "TRANSPORT", "SINCE", "EPOCH"};
    struct cli_list bindings = {.n = 0}, claims = {.n = 0};
    struct base_err err = {0};
    struct cli_table t;
    cJSON *doc, *list;
    unsigned n = 0;
    int rc = cli_api_list(c, CONTRACT_BINDING, NULL, &bindings, &err);

    if (!rc)
        rc = cli_api_list(c, CONTRACT_CLAIM, NULL, &claims, &err);
    if (rc) {
        cli_list_fini(&bindings);
        cli_list_fini(&claims);
        return cli_fail(c, CLI_EXIT_BLIND, "%s", err.msg);
    }
    cli_table_init(&t, head, BASE_LEN(head), 1u << 6);
    doc = cJSON_CreateObject();
    list = cJSON_AddArrayToObject(doc, "sessions");
    for (size_t k = 0; k < bindings.n; k++)
        if (wanted(c, &bindings.o[k].u.binding)) {
            row(c, &t, list, &bindings.o[k].u.binding, claim_of(&claims, &bindings.o[k].u.binding));
            n++;
        }
    if (c->a.format == CLI_JSON || c->a.format == CLI_YAML) {
        cli_print_doc(c, doc);
        cli_table_fini(&t);
    } else {
        cJSON_Delete(doc);
        if (n > 0)
            cli_table_print(c, &t, "");
        else
            cli_table_fini(&t);
    }
    if (n == 0)
        (void)fprintf(c->err, "no ConnectorBinding %sin namespace %s\n", c->a.n_rest ? "of that name " : "",
                      cli_api_namespace(c));
    cli_list_fini(&bindings);
    cli_list_fini(&claims);
    return n > 0 ? CLI_EXIT_OK : CLI_EXIT_FOUND;
}

/* ---- events */

static base_wall moment(const cJSON *o, const char *key)
{
    base_wall t;

    return base_rfc3339_parse(base_str_of(cli_text(o, key)), &t) ? 0 : t;
}

/* Takes the events of others out of the list. */
static void only_ours(cJSON *items)
{
    cJSON *e = items ? items->child : NULL, *next;

    for (; e; e = next) {
        next = e->next;
        if (strncmp(cli_text(e, "reportingController"), "masque.galactic.datumapis.com/", 30) != 0)
            cJSON_Delete(cJSON_DetachItemViaPointer(items, e));
    }
}

cJSON *cli_events_list(struct cli *c, struct base_err *err)
{
    char path[200];
    cJSON *doc;

    if (cli_api_open(c, err))
        return NULL;
    (void)base_fmt(path, sizeof path, "/apis/events.k8s.io/v1/namespaces/%s/events?limit=1000",
                   cli_api_namespace(c));
    doc = cli_api_json(c, path, (size_t)64 << 20, err);
    only_ours(cJSON_GetObjectItemCaseSensitive(doc, "items"));
    return doc;
}

int cli_events(struct cli *c)
{
    static const char *const head[] = {"LAST SEEN", "TYPE", "REASON", "OBJECT", "COUNT", "NOTE"};
    struct base_err err = {0};
    struct cli_table t;
    cJSON *doc = cli_events_list(c, &err), *e;
    unsigned n = 0;

    if (!doc)
        return cli_fail(c, CLI_EXIT_BLIND, "%s", err.msg);
    cli_table_init(&t, head, BASE_LEN(head), 0);
    cJSON_ArrayForEach(e, cJSON_GetObjectItemCaseSensitive(doc, "items"))
    {
        const cJSON *regarding = cJSON_GetObjectItemCaseSensitive(e, "regarding"),
                    *series = cJSON_GetObjectItemCaseSensitive(e, "series");
        const cJSON *count = cJSON_GetObjectItemCaseSensitive(series, "count");
        base_wall last = series ? moment(series, "lastObservedTime") : moment(e, "eventTime");
        struct cli_row *r;
        char age[CLI_AGE_SIZE] = "-";

        r = cli_table_row(&t);
        n++;
        if (!r)
            continue;
        if (last)
            cli_age(age, c->now, last);
        cli_cell(&t, r, 0, CLI_PLAIN, "%s", age);
        cli_cell(&t, r, 1, strcmp(cli_text(e, "type"), "Warning") == 0 ? CLI_DOUBT : CLI_PLAIN, "%s",
                 cli_text(e, "type"));
        cli_cell(&t, r, 2, CLI_PLAIN, "%s", cli_text(e, "reason"));
        cli_cell(&t, r, 3, CLI_PLAIN, "%s/%s", cli_text(regarding, "kind"), cli_text(regarding, "name"));
        cli_cell(&t, r, 4, CLI_PLAIN, "%d", cJSON_IsNumber(count) ? count->valueint : 1);
        cli_cell(&t, r, 5, CLI_PLAIN, "%s", cli_text(e, "note"));
    }
    if (c->a.format == CLI_JSON || c->a.format == CLI_YAML) {
        cli_print_doc(c, doc);
        cli_table_fini(&t);
    } else {
        if (n > 0)
            cli_table_print(c, &t, "");
        else
            cli_table_fini(&t);
        cJSON_Delete(doc);
    }
    if (n == 0)
        (void)fprintf(c->err,
                      "no event of Holdfast in namespace %s (agents write them with audit.events: on)\n",
                      cli_api_namespace(c));
    return CLI_EXIT_OK;
}
