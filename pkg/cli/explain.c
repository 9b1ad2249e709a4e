/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/explain.c - an incident in one command: what was done, what is there now, what it means, what to do.
 */
#include "cli/cli_int.h"

#include "cli/verdict.h"

#define SHOWN 15 /* records, without -o wide */

struct story {
    struct base_correlation id; /* zero: asked for a connector */
    char who[CONTRACT_NAME_SIZE];
    struct contract_object binding, claim, service, attachment, instance;
    struct cli_facts facts;
    struct cli_verdict verdict;
    struct cli_trail trail;
    struct audit_query query;
    const struct audit_line *operation; /* the acquire, takeover or release that it is about; NULL */
    const struct audit_line *after;     /* what ended it: takeover, release, expiry, reject; NULL */
    uint64_t effects;                   /* records that say effect: possible */
    base_wall effect_first, effect_last;
};

/* ---- gathering */

static enum cli_sight look(struct cli *c, struct story *s, enum contract_kind kind, const char *name,
                           struct contract_object *ret)
{
    struct base_err err = {0};
    int rc = cli_api_get(c, kind, name, ret, &err);

    if (rc == BASE_OK)
        return CLI_SEEN;
    if (rc == BASE_ENOTFOUND)
        return CLI_ABSENT;
    cli_trail_blind(&s->trail, "%s %s: %s", contract_kind_name(kind), name, err.msg);
    return CLI_UNSEEN;
}

static void take_claim(struct story *s, const struct contract_object *o)
{
    s->claim = *o;
    s->facts.claim_sight = CLI_SEEN;
    (void)base_fmt(s->who, sizeof s->who, "%s.%s", o->u.claim.spec.tenant, o->u.claim.spec.connector);
}

/* The claim that counts: the reserved one, else one that is held, else the newest. */
static const struct contract_object *pick(const struct story *s, const struct cli_list *l)
{
    const struct contract_object *best = NULL;

    for (size_t i = 0; i < l->n; i++) {
        const struct contract_claim *r = &l->o[i].u.claim, *b = best ? &best->u.claim : NULL;

        if (s->facts.binding_sight == CLI_SEEN && s->binding.u.binding.status.has_prefix &&
            base_prefix_eq(&s->binding.u.binding.status.prefix, &r->spec.prefix))
            return &l->o[i];
        if (!b || (b->spec.release_time && !r->spec.release_time) ||
            (!b->spec.release_time == !r->spec.release_time && r->spec.acquire_time > b->spec.acquire_time))
            best = &l->o[i];
    }
    return best;
}

/* By tenant.connector: the binding and its claim. */
static int find_pair(struct cli *c, struct story *s, const char *tenant, const char *connector)
{
    struct base_err err = {0};
    struct cli_list claims;
    char fields[400];
    const struct contract_object *o;

    (void)base_fmt(s->who, sizeof s->who, "%s.%s", tenant, connector);
    s->facts.binding_sight = look(c, s, CONTRACT_BINDING, s->who, &s->binding);
    (void)base_fmt(fields, sizeof fields, "spec.tenant=%s,spec.connector=%s", tenant, connector);
    if (cli_api_list(c, CONTRACT_CLAIM, fields, &claims, &err)) {
        cli_trail_blind(&s->trail, "the claims of %s: %s", s->who, err.msg);
        return BASE_OK;
    }
    o = pick(s, &claims);
    s->facts.claim_sight = CLI_ABSENT;
    if (o)
        take_claim(s, o);
    for (size_t i = 0; i < claims.n && s->query.n_objects < AUDIT_QUERY_OBJECTS; i++)
        (void)base_copy(s->query.objects[s->query.n_objects++], sizeof s->query.objects[0],
                        claims.o[i].u.meta.name);
    if (claims.n > 1)
        cli_warn(c, "%s has %zu claims; shown is %s", s->who, claims.n, s->claim.u.meta.name);
    cli_list_fini(&claims);
    if (s->query.n_objects < AUDIT_QUERY_OBJECTS)
        (void)base_copy(s->query.objects[s->query.n_objects++], sizeof s->query.objects[0], s->who);
    return BASE_OK;
}

/* NAME or TENANT.NAME. BASE_ENOTFOUND: unknown; BASE_EINVAL: more than one. */
static int find_connector(struct cli *c, struct story *s, const char *name, struct base_err *err)
{
    struct cli_list bindings, claims;
    char fields[300], tenant[CONTRACT_LABEL_SIZE] = "", connector[CONTRACT_CONNECTOR_SIZE] = "",
                      all[300] = "";
    const char *dot = strchr(name, '.');
    unsigned n = 0;
    int rc;

    (void)base_fmt(fields, sizeof fields, "spec.connector=%s", name);
    rc = cli_api_list(c, CONTRACT_BINDING, fields, &bindings, err);
    if (rc)
        return rc;
    rc = cli_api_list(c, CONTRACT_CLAIM, fields, &claims, err);
    for (size_t i = 0; !rc && i < bindings.n + claims.n; i++) {
        const struct contract_binding *b = i < bindings.n ? &bindings.o[i].u.binding : NULL;
        const struct contract_claim *r = b ? NULL : &claims.o[i - bindings.n].u.claim;
        const char *t = b ? b->spec.tenant : r->spec.tenant;

        if (n && strcmp(t, tenant) == 0)
            continue;
        n++;
        (void)base_copy(tenant, sizeof tenant, t);
        (void)base_copy(connector, sizeof connector, b ? b->spec.connector : r->spec.connector);
        (void)base_fmt(all + strlen(all), sizeof all - strlen(all), "%s%s.%s", all[0] ? ", " : "", tenant,
                       connector);
    }
    cli_list_fini(&bindings);
    cli_list_fini(&claims);
    if (rc)
        return rc;
    if (n > 1)
        return base_err_set(err, BASE_EINVAL, "several tenants have a connector '%s': name one of %s", name,
                            all);
    if (n == 0 && dot &&
        base_is_label((struct base_str){name, (size_t)(dot - name)}, CONTRACT_LABEL_SIZE - 1) &&
        !base_copy(connector, sizeof connector, dot + 1)) {
        (void)base_copy_str(tenant, sizeof tenant, (struct base_str){name, (size_t)(dot - name)});
        rc = find_pair(c, s, tenant, connector);
        if (rc || s->facts.binding_sight != CLI_ABSENT || s->facts.claim_sight != CLI_ABSENT)
            return rc;
    }
    if (n == 0)
        return base_err_set(
            err, BASE_ENOTFOUND,
            "no ConnectorBinding and no RouteClaim of a connector '%s' in namespace %s: check the "
            "name (`kubectl get cb`), or -n",
            name, cli_api_namespace(c));
    return find_pair(c, s, tenant, connector);
}

/* What a request was about: from the records, else from a row that carries its id. */
static int find_request(struct cli *c, struct story *s, struct base_err *err)
{
    struct cli_list claims;
    char object[CONTRACT_NAME_SIZE] = "", text[BASE_CORRELATION_SIZE];
    bool found = false;
    int rc;

    for (size_t i = 0; i < s->trail.n; i++) {
        const char *o = s->trail.l[i].record.object;

        if (o[0] && (!object[0] || strncmp(o, "rc-", 3) == 0))
            (void)base_copy(object, sizeof object, o);
    }
    rc = cli_api_list(c, CONTRACT_CLAIM, NULL, &claims, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < claims.n && !found; i++) {
        const struct contract_claim *r = &claims.o[i].u.claim;

        if (strcmp(r->meta.name, object) == 0 ||
            memcmp(r->spec.correlation.b, s->id.b, sizeof s->id.b) == 0) {
            (void)find_pair(c, s, r->spec.tenant, r->spec.connector);
            found = true;
        }
    }
    cli_list_fini(&claims);
    if (!found && object[0] && strncmp(object, "rc-", 3) != 0 && strchr(object, '.')) {
        char tenant[CONTRACT_LABEL_SIZE];

        if (!base_copy_str(tenant, sizeof tenant,
                           (struct base_str){object, (size_t)(strchr(object, '.') - object)})) {
            (void)find_pair(c, s, tenant, strchr(object, '.') + 1);
            found = s->facts.binding_sight == CLI_SEEN || s->facts.claim_sight == CLI_SEEN;
        }
    }
    if (found)
        return BASE_OK;
    base_correlation_text(text, &s->id);
    if (s->trail.n) { /* records, but nothing of today */
        (void)base_copy(s->who, sizeof s->who, object[0] ? object : "(unknown connector)");
        s->facts.binding_sight = s->facts.claim_sight = CLI_ABSENT;
        return BASE_OK;
    }
    return base_err_set(err, BASE_ENOTFOUND, "nothing is known of request %s: no row carries it%s", text,
                        s->trail.n_nodes ? ", and no record in the trails that were read"
                                         : "; name audit files, or --from-agents");
}

static void surroundings(struct cli *c, struct story *s)
{
    struct cli_facts *f = &s->facts;

    f->now = c->now;
    f->who = s->who;
    if (f->claim_sight == CLI_SEEN) {
        const struct contract_claim *r = &s->claim.u.claim;

        f->instance_sight = look(c, s, CONTRACT_INSTANCE, r->spec.holder.instance, &s->instance);
        f->attachment_sight = look(c, s, CONTRACT_ATTACHMENT, r->spec.attachment.name, &s->attachment);
        f->service_sight = look(c, s, CONTRACT_SERVICE, r->spec.service.name, &s->service);
    } else if (f->binding_sight == CLI_SEEN) {
        f->service_sight = look(c, s, CONTRACT_SERVICE, s->binding.u.binding.spec.service, &s->service);
    }
    f->binding = &s->binding.u.binding;
    f->claim = &s->claim.u.claim;
    f->service = &s->service.u.service;
    f->attachment = &s->attachment.u.attachment;
    f->instance = &s->instance.u.instance;
    cli_judge(f, &s->verdict);
}

static bool is_operation(const struct audit_record *r)
{
    return (r->event == AUDIT_ACQUIRE || r->event == AUDIT_TAKEOVER || r->event == AUDIT_RELEASE) &&
           strncmp(r->object, "rc-", 3) == 0;
}

/* The operation, and the first thing that took it back. */
static void read_story(struct story *s)
{
    const struct cli_trail *t = &s->trail;
    bool by_id = !base_correlation_is_zero(&s->id);

    for (size_t i = 0; i < t->n; i++) {
        const struct audit_record *r = &t->l[i].record;
        bool same = memcmp(r->correlation.b, s->id.b, sizeof s->id.b) == 0;

        if (is_operation(r) && r->event != AUDIT_RELEASE && (by_id ? same && !s->operation : true)) {
            s->operation = &t->l[i];
            s->after = NULL;
            continue;
        }
        if (s->operation && !s->after && strcmp(r->object, s->operation->record.object) == 0 &&
            r->epoch >= s->operation->record.epoch && r->event != AUDIT_RENEW && !(r->event == AUDIT_ACQUIRE))
            s->after = &t->l[i];
    }
    if (!s->operation && by_id) /* a refusal is an operation, too */
        for (size_t i = 0; i < t->n && !s->operation; i++)
            if (memcmp(t->l[i].record.correlation.b, s->id.b, sizeof s->id.b) == 0)
                s->operation = &t->l[i];
    for (size_t i = 0; i < t->n; i++)
        if (t->l[i].record.effect == AUDIT_EFFECT_POSSIBLE) {
            s->effects++;
            if (!s->effect_first)
                s->effect_first = t->l[i].ts;
            s->effect_last = t->l[i].ts;
        }
    /* whose trail would be needed, and was not read */
}

static void blind_nodes(struct story *s)
{
    const char *need[4] = {NULL};
    unsigned n = 0;

    if (s->facts.claim_sight == CLI_SEEN) {
        need[n++] = s->claim.u.claim.spec.holder.node;
        if (s->claim.u.claim.spec.previous.epoch)
            need[n++] = s->claim.u.claim.spec.previous.node;
    }
    if (s->facts.binding_sight == CLI_SEEN && s->binding.u.binding.status.last.node[0])
        need[n++] = s->binding.u.binding.status.last.node;
    for (unsigned i = 0; i < n; i++) {
        bool again = false;

        for (unsigned k = 0; k < i; k++)
            again |= strcmp(need[k], need[i]) == 0;
        if (!again && !cli_trail_saw(&s->trail, need[i]))
            cli_trail_blind(&s->trail,
                            "the audit trail of node %s was not read (name its files, or --from-agents)",
                            need[i]);
    }
}

/* ---- showing */

static void heading(struct cli *c, const char *text)
{
    (void)fprintf(c->out, "\n%s%s%s\n", cli_on(c, CLI_STRONG), text, cli_off(c));
}

static const char *time_text(char dst[BASE_RFC3339_SIZE], base_wall t)
{
    if (t <= 0)
        return "-";
    base_rfc3339(dst, t);
    return dst;
}

/* Operation, row, gate and agent, one column each. */
static void side_by_side(struct cli *c, const struct story *s)
{
    static const char *const head[] = {"", "OPERATION (audit)", "ROW (RouteClaim)", "GATE (foundation)",
                                       "AGENT (instance)"};
    static const char *const lines[] = {"what", "node", "epoch", "lease UUID", "process", "at", "reason"};
    const struct audit_record *o = s->operation ? &s->operation->record : NULL;
    const struct contract_claim *r = s->facts.claim_sight == CLI_SEEN ? &s->claim.u.claim : NULL;
    const struct contract_instance *i = s->facts.instance_sight == CLI_SEEN ? &s->instance.u.instance : NULL;
    struct cli_row *row[BASE_LEN(lines)];
    char t[BASE_RFC3339_SIZE], u[BASE_UUID_SIZE];
    struct cli_table table;

    cli_table_init(&table, head, BASE_LEN(head), 0);
    for (size_t k = 0; k < BASE_LEN(lines); k++) {
        row[k] = cli_table_row(&table);
        cli_cell(&table, row[k], 0, CLI_FAINT, "%s", lines[k]);
        for (size_t col = 1; col < BASE_LEN(head); col++)
            cli_cell(&table, row[k], col, CLI_PLAIN, "-");
    }
    if (o) {
        static const char *const outcomes[] = {"?", "allowed", "refused", "observed"};

        cli_cell(&table, row[0], 1, CLI_PLAIN, "%s %s", audit_event_name(o->event), outcomes[o->outcome]);
        cli_cell(&table, row[1], 1, CLI_PLAIN, "%s", o->node);
        if (o->epoch)
            cli_cell(&table, row[2], 1, CLI_PLAIN, "%lld", (long long)o->epoch);
        base_uuid_text(u, &o->lease_uuid);
        cli_cell(&table, row[3], 1, CLI_PLAIN, "%s", base_uuid_is_zero(&o->lease_uuid) ? "-" : u);
        cli_cell(&table, row[5], 1, CLI_PLAIN, "%s", time_text(t, o->ts));
        cli_cell(&table, row[6], 1, CLI_PLAIN, "%s", o->reason);
    } else {
        cli_cell(&table, row[0], 1, CLI_DOUBT, "not seen");
    }
    if (r) {
        cli_cell(&table, row[0], 2, CLI_PLAIN, "%s",
                 r->meta.deleting       ? "being deleted"
                 : r->spec.release_time ? "released"
                                        : "held");
        cli_cell(&table, row[1], 2, CLI_PLAIN, "%s", r->spec.holder.node);
        cli_cell(&table, row[2], 2, CLI_PLAIN, "%lld", (long long)r->spec.epoch);
        base_uuid_text(u, &r->spec.lease_uuid);
        cli_cell(&table, row[3], 2,
                 o && !base_uuid_eq(&o->lease_uuid, &r->spec.lease_uuid) ? CLI_DOUBT : CLI_PLAIN, "%s", u);
        base_uuid_text(u, &r->spec.holder.process_id);
        cli_cell(&table, row[4], 2, CLI_PLAIN, "%s", u);
        cli_cell(&table, row[5], 2, CLI_PLAIN, "%s",
                 time_text(t, r->spec.release_time ? r->spec.release_time : r->spec.acquire_time));
        cli_cell(&table, row[6], 2, CLI_PLAIN, "closed up to %lld", (long long)r->status.closed_epoch);

        cli_cell(&table, row[0], 3, CLI_PLAIN, "%s",
                 r->status.gate.state == CONTRACT_GATE_OPEN     ? "Open"
                 : r->status.gate.state == CONTRACT_GATE_CLOSED ? "Closed"
                                                                : "none");
        cli_cell(&table, row[1], 3, CLI_PLAIN, "%s",
                 r->status.gate.epoch == r->spec.epoch ? r->spec.holder.node
                 : r->status.gate.epoch == r->spec.previous.epoch && r->spec.previous.epoch
                     ? r->spec.previous.node
                     : "-");
        if (r->status.gate.epoch)
            cli_cell(&table, row[2], 3, r->status.gate.epoch != r->spec.epoch ? CLI_DOUBT : CLI_PLAIN,
                     "%lld%s", (long long)r->status.gate.epoch,
                     r->status.gate.epoch != r->spec.epoch ? " (an older one)" : "");
        base_uuid_text(u, &r->status.accepted_lease_uuid);
        cli_cell(&table, row[3], 3, CLI_PLAIN, "%s",
                 base_uuid_is_zero(&r->status.accepted_lease_uuid) ? "-" : u);
        cli_cell(&table, row[5], 3, CLI_PLAIN, "%s", time_text(t, r->status.gate.since));
        cli_cell(&table, row[6], 3, CLI_PLAIN, "%s", r->status.gate.reason[0] ? r->status.gate.reason : "-");
    } else {
        cli_cell(&table, row[0], 2, CLI_DOUBT,
                 s->facts.claim_sight == CLI_ABSENT ? "there is none" : "not seen");
    }
    if (i) {
        char age[CLI_AGE_SIZE];

        cli_age(age, c->now, i->spec.renew.time);
        cli_cell(&table, row[0], 4, CLI_PLAIN, "Ready=%s%s", cli_ready_word(i, c->now),
                 i->spec.draining ? ", draining" : "");
        cli_cell(&table, row[1], 4, CLI_PLAIN, "%s", i->spec.node);
        cli_cell(&table, row[2], 4, CLI_PLAIN, "%lld (its own)", (long long)i->spec.epoch);
        base_uuid_text(u, &i->spec.process_id);
        cli_cell(&table, row[4], 4,
                 r && !base_uuid_eq(&i->spec.process_id, &r->spec.holder.process_id) ? CLI_DOUBT : CLI_PLAIN,
                 "%s", u);
        cli_cell(&table, row[5], 4, CLI_PLAIN, "renewed %s ago, lease %ds", age, i->spec.lease_seconds);
        cli_cell(&table, row[6], 4, CLI_PLAIN, "%s", cli_ready_reason(i, c->now));
    } else {
        cli_cell(&table, row[0], 4, CLI_DOUBT,
                 s->facts.instance_sight == CLI_ABSENT ? "its instance is gone" : "not seen");
    }
    cli_table_print(c, &table, "  ");
}

static void about_operation(struct cli *c, const struct story *s)
{
    const struct audit_record *o = s->operation ? &s->operation->record : NULL;
    const struct contract_claim *r = s->facts.claim_sight == CLI_SEEN ? &s->claim.u.claim : NULL;
    char t[BASE_RFC3339_SIZE];

    if (!o) {
        (void)fprintf(c->out, "  The operation was not found in the trails that were read.\n");
        return;
    }
    (void)fprintf(c->out, "  %s of %s by %s at %s", audit_event_name(o->event),
                  o->object[0] ? o->object : s->who, o->node, time_text(t, o->ts));
    if (o->epoch)
        (void)fprintf(c->out, ", epoch %lld", (long long)o->epoch);
    (void)fprintf(c->out, ": %s (%s).\n", o->outcome == AUDIT_REFUSED ? "refused" : "allowed", o->reason);
    if (s->after)
        (void)fprintf(c->out, "  Ended by: %s at %s on %s (%s)%s.\n",
                      audit_event_name(s->after->record.event), time_text(t, s->after->ts),
                      s->after->record.node, s->after->record.reason,
                      s->after->record.epoch > o->epoch ? ", a later epoch" : "");
    if (o->outcome == AUDIT_REFUSED || !is_operation(o))
        return;
    if (!r)
        (void)fprintf(c->out, "  Its row is not there any more.\n");
    else if (r->spec.epoch == o->epoch && base_uuid_eq(&r->spec.lease_uuid, &o->lease_uuid))
        (void)fprintf(c->out, "  The row is still this operation's (epoch %lld, same lease UUID)%s.\n",
                      (long long)r->spec.epoch, r->spec.release_time ? ", and released" : "");
    else
        (void)fprintf(
            c->out,
            "  The row has moved on: epoch %lld on %s. Epoch %lld is not authoritative and is never retried "
            "as the old holder.\n",
            (long long)r->spec.epoch, r->spec.holder.node, (long long)o->epoch);
}

static void about_effects(struct cli *c, const struct story *s)
{
    char a[BASE_RFC3339_SIZE], b[BASE_RFC3339_SIZE];

    if (s->effects) {
        (void)fprintf(c->out,
                      "  %seffect: possible%s in %llu record(s), %s to %s: an external effect may already "
                      "have happened "
                      "(packets\n  forwarded, a write landed). Nothing here claims exactly-once: look at the "
                      "other side "
                      "before repeating anything.\n",
                      cli_on(c, CLI_DOUBT), cli_off(c), (unsigned long long)s->effects,
                      time_text(a, s->effect_first), time_text(b, s->effect_last));
        return;
    }
    if (s->verdict.opened)
        (void)fprintf(c->out,
                      "  A gate has been open for this claim: packets may have passed in that time.\n");
    else if (s->trail.n_nodes)
        (void)fprintf(c->out, "  No record says that an external effect may have happened.\n");
}

static void show_table(struct cli *c, const struct story *s)
{
    const struct cli_verdict *v = &s->verdict;
    struct cli_table t;
    static const char *const answers[] = {"not seen", "no", "yes"};
    static const enum cli_colour colours[] = {CLI_DOUBT, CLI_BAD, CLI_GOOD};

    (void)fprintf(c->out, "%s%s%s\n  Why: %s\n",
                  cli_on(c, v->why == CLI_WHY_FORWARDING ? CLI_GOOD : CLI_STRONG), v->statement, cli_off(c),
                  v->because);
    for (unsigned i = 0; i < v->n_next; i++)
        (void)fprintf(c->out, "  %s %s\n", i ? "     " : "Next:", v->next[i]);
    heading(c, "Side by side");
    side_by_side(c, s);
    heading(c, "The operation");
    about_operation(c, s);
    about_effects(c, s);
    heading(c, "May a packet pass? (contract, section 7)");
    cli_table_init(&t, NULL, 3, 0);
    for (unsigned i = 0; i < CLI_CONDITIONS; i++) {
        struct cli_row *row = cli_table_row(&t);

        cli_cell(&t, row, 0, colours[v->c[i].answer], "%s", answers[v->c[i].answer]);
        cli_cell(&t, row, 1, CLI_PLAIN, "%u. %s", i + 1, v->c[i].what);
        cli_cell(&t, row, 2, CLI_FAINT, "%s", v->c[i].evidence);
    }
    cli_table_print(c, &t, "  ");
    if (s->trail.n) {
        size_t from = c->a.format != CLI_WIDE && s->trail.n > SHOWN ? s->trail.n - SHOWN : 0;

        heading(c, "Audit trail");
        if (from)
            (void)fprintf(c->out, "  (the last %d of %zu; -o wide shows all)\n", SHOWN, s->trail.n);
        cli_records_table(c, &s->trail, from, "  ");
    }
    if (s->trail.n_blind) {
        heading(c, "Not seen");
        for (size_t i = 0; i < s->trail.n_blind; i++)
            (void)fprintf(c->out, "  %s\n", s->trail.blind[i]);
    }
}

static void show_doc(struct cli *c, const struct story *s)
{
    static const char *const answers[] = {"Unknown", "False", "True"};
    static const char *const sights[] = {"notSeen", "absent", "seen"};
    const struct cli_verdict *v = &s->verdict;
    cJSON *doc = cJSON_CreateObject(), *list, *seen, *claim;

    cli_add_str(doc, "connector", s->who);
    (void)cJSON_AddBoolToObject(doc, "authoritative", v->why == CLI_WHY_FORWARDING);
    if (v->why == CLI_WHY_FORWARDING)
        cli_add_str(doc, "node", s->claim.u.claim.spec.holder.node);
    cli_add_str(doc, "reason", cli_why_name(v->why));
    cli_add_str(doc, "statement", v->statement);
    cli_add_str(doc, "because", v->because);
    list = cJSON_AddArrayToObject(doc, "next");
    for (unsigned i = 0; i < v->n_next; i++)
        (void)cJSON_AddItemToArray(list, cJSON_CreateString(v->next[i]));
    list = cJSON_AddArrayToObject(doc, "conditions");
    for (unsigned i = 0; i < CLI_CONDITIONS; i++) {
        cJSON *o = cJSON_CreateObject();

        cli_add_int(o, "number", i + 1);
        cli_add_str(o, "what", v->c[i].what);
        cli_add_str(o, "status", answers[v->c[i].answer]);
        cli_add_str(o, "evidence", v->c[i].evidence);
        (void)cJSON_AddItemToArray(list, o);
    }
    seen = cJSON_AddObjectToObject(doc, "objects");
    cli_add_str(seen, "binding", sights[s->facts.binding_sight]);
    cli_add_str(seen, "claim", sights[s->facts.claim_sight]);
    cli_add_str(seen, "service", sights[s->facts.service_sight]);
    cli_add_str(seen, "attachment", sights[s->facts.attachment_sight]);
    cli_add_str(seen, "instance", sights[s->facts.instance_sight]);
    if (s->facts.claim_sight == CLI_SEEN) {
        const struct contract_claim *r = &s->claim.u.claim;

        claim = cJSON_AddObjectToObject(doc, "claim");
        cli_add_str(claim, "name", r->meta.name);
        cli_add_prefix(claim, "prefix", &r->spec.prefix);
        cli_add_int(claim, "epoch", r->spec.epoch);
        cli_add_uuid(claim, "leaseUUID", &r->spec.lease_uuid);
        cli_add_str(claim, "node", r->spec.holder.node);
        cli_add_uuid(claim, "processID", &r->spec.holder.process_id);
        cli_add_time(claim, "acquireTime", r->spec.acquire_time);
        cli_add_time(claim, "releaseTime", r->spec.release_time);
        cli_add_str(claim, "gate", cli_gate_word(r));
        cli_add_int(claim, "gateEpoch", r->status.gate.epoch);
        cli_add_str(claim, "gateReason", r->status.gate.reason);
        cli_add_int(claim, "closedEpoch", r->status.closed_epoch);
        cli_add_int(claim, "publishedEpoch", r->status.published_epoch);
    }
    if (s->facts.instance_sight == CLI_SEEN) {
        const struct contract_instance *i = &s->instance.u.instance;

        claim = cJSON_AddObjectToObject(doc, "instance");
        cli_add_str(claim, "name", i->meta.name);
        cli_add_str(claim, "node", i->spec.node);
        cli_add_int(claim, "epoch", i->spec.epoch);
        cli_add_uuid(claim, "processID", &i->spec.process_id);
        cli_add_str(claim, "ready", cli_ready_word(i, c->now));
        cli_add_time(claim, "renewTime", i->spec.renew.time);
        cli_add_int(claim, "leaseDurationSeconds", i->spec.lease_seconds);
        (void)cJSON_AddBoolToObject(claim, "draining", i->spec.draining);
    }
    if (s->operation)
        (void)cJSON_AddItemToObject(doc, "operation", cli_record_json(s->operation));
    if (s->after)
        (void)cJSON_AddItemToObject(doc, "endedBy", cli_record_json(s->after));
    (void)cJSON_AddBoolToObject(doc, "effectPossible", s->effects > 0);
    cli_print_doc(c, cli_trail_doc(&s->trail, doc));
}

int cli_explain(struct cli *c)
{
    struct story *s = base_calloc(1, sizeof *s);
    struct base_err err = {0};
    const char *what = c->a.rest[0];
    int rc;

    if (!s)
        return cli_fail(c, CLI_EXIT_BLIND, "no memory");
    cli_trail_init(&s->trail, (size_t)c->a.limit);
    s->query.since = c->a.since;
    s->query.until = c->a.until;
    if (!base_correlation_parse(&s->id, base_str_of(what))) {
        s->query.correlation = s->id;
        cli_trail_read(c, &s->trail, &s->query, 1);
        rc = find_request(c, s, &err);
        if (!rc && s->query.n_objects) { /* what else happened to the same connector */
            cli_trail_fini(&s->trail);
            s->trail.n_nodes = 0;
            s->trail.bad_lines = 0;
            memset(&s->query.correlation, 0, sizeof s->query.correlation);
            cli_trail_read(c, &s->trail, &s->query, 1);
        }
    } else {
        rc = find_connector(c, s, what, &err);
        if (!rc)
            cli_trail_read(c, &s->trail, &s->query, 1);
    }
    if (!rc) {
        surroundings(c, s);
        read_story(s);
        blind_nodes(s);
        if (c->a.format == CLI_JSON || c->a.format == CLI_YAML)
            show_doc(c, s);
        else
            show_table(c, s);
    }
    cli_trail_fini(&s->trail);
    base_free(s);
    return rc == BASE_OK          ? CLI_EXIT_OK
           : rc == BASE_ENOTFOUND ? cli_fail(c, CLI_EXIT_FOUND, "%s", err.msg)
           : rc == BASE_EINVAL    ? cli_fail(c, CLI_EXIT_USAGE, "%s", err.msg)
                                  : cli_fail(c, CLI_EXIT_BLIND, "%s", err.msg);
}
