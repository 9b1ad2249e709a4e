/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes one rule at a time from the running server and looks whether a case notices.
 *
 * A mutant carries a marker, so that the search starts when it acts: a CRD gets a field that only it has, a
 * policy a first validation that refuses the field manager "mutant-N". Roles have no place for one: the
 * scenario of the role is repeated instead. */
#include "admission.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WAIT_STEPS 400 /* of 25 ms */

enum mutant_sort { MUTANT_RULE, MUTANT_CONDITION, MUTANT_ROLE };

struct mutants {
    struct adm_client *client;
    const struct adm_lab *lab;
    const struct adm_suite *suite;
    const char *only;
    struct adm_run probe; /* objects that the markers are asked with */
    bool wide;
    unsigned n;
    int passed, failed;
};

struct object {
    const char *label, *path;
    int kind; /* enum adm_kind of a CRD, -1 */
    /* A policy's probe: a request that its match conditions take. */
    enum adm_who who;
    enum adm_verb verb;
    const char *target;
    /* A role's scenario. */
    const char *scenario;
};

#define CRD "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
#define POLICY "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/"
#define ROLE "/apis/rbac.authorization.k8s.io/v1/namespaces/" ADM_NAMESPACE "/roles/"

static const struct object objects[] = {
    {.label = "providerinstances",
     .path = CRD "providerinstances.edge.galactic.datumapis.com",
     .kind = ADM_PI,
     .target = "pi:b"},
    {.label = "hostattachments",
     .path = CRD "hostattachments.edge.galactic.datumapis.com",
     .kind = ADM_HA,
     .target = "ha:b"},
    {.label = "providerservices",
     .path = CRD "providerservices.edge.galactic.datumapis.com",
     .kind = ADM_PS,
     .target = "ps:s9"},
    {.label = "routeclaims",
     .path = CRD "routeclaims.edge.galactic.datumapis.com",
     .kind = ADM_RC,
     .target = "rc:9"},
    {.label = "connectorbindings",
     .path = CRD "connectorbindings.masque.galactic.datumapis.com",
     .kind = ADM_CB,
     .target = "cb:c9"},
    {"agent-writes", POLICY "holdfast-agent-writes", -1, ADM_AGENT_A, ADM_PUT, "pi:a", NULL},
    {"agent-bindings", POLICY "holdfast-agent-bindings", -1, ADM_AGENT_A, ADM_STATUS, "cb:c1", NULL},
    {"agent-events", POLICY "holdfast-agent-events", -1, ADM_AGENT_A, ADM_CREATE, "ev:9", NULL},
    {"foundation-writes", POLICY "holdfast-foundation-writes", -1, ADM_FOUNDATION_A, ADM_STATUS, "pi:a",
     NULL},
    {"deleting-rows", POLICY "holdfast-deleting-rows", -1, ADM_AGENT_A, ADM_PUT, "pi:a", NULL},
    {"operator-drain", POLICY "holdfast-operator-drain", -1, ADM_OPERATOR, ADM_PUT, "pi:a", NULL},
    {"claim-pool", POLICY "holdfast-claim-pool", -1, ADM_ADMIN, ADM_CREATE, "rc:9", NULL},
    {"service-valid-until", POLICY "holdfast-service-valid-until", -1, ADM_AUTHORITY, ADM_CREATE, "ps:s9",
     NULL},
    {.label = "role agent", .path = ROLE "holdfast-agent", .kind = -1, .scenario = "rbac: agent"},
    {.label = "role foundation",
     .path = ROLE "holdfast-foundation",
     .kind = -1,
     .scenario = "rbac: foundation"},
    {.label = "role authority", .path = ROLE "holdfast-authority", .kind = -1, .scenario = "rbac: authority"},
    {.label = "role operator", .path = ROLE "holdfast-operator", .kind = -1, .scenario = "rbac: operator"},
};

/* ---- the server */
static cJSON *get_object(struct mutants *m, const char *path)
{
    struct adm_answer a;
    adm_request(m->client, ADM_ADMIN, "GET", path, NULL, NULL, &a);
    cJSON *o = a.code == 200 ? a.body : NULL;
    if (o)
        a.body = NULL;
    else
        printf("FAIL %s: %ld %s\n", path, a.code, a.message);
    adm_answer_fini(&a);
    return o;
}

/* Writes spec and rules of `want` over what is there now. */
static int put_object(struct mutants *m, const char *path, const cJSON *want)
{
    cJSON *now = get_object(m, path);
    if (!now)
        return BASE_EIO;
    static const char *const parts[] = {"spec", "rules"};
    for (size_t i = 0; i < BASE_LEN(parts); i++) {
        cJSON *part = cJSON_GetObjectItemCaseSensitive(want, parts[i]);
        if (part)
            cJSON_ReplaceItemInObjectCaseSensitive(now, parts[i], cJSON_Duplicate(part, true));
    }
    char *body = cJSON_PrintUnformatted(now);
    struct adm_answer a;
    adm_request(m->client, ADM_ADMIN, "PUT", path, NULL, body, &a);
    int rc = a.code == 200 ? BASE_OK : BASE_EIO;
    if (rc)
        printf("FAIL PUT %s: %ld %s\n", path, a.code, a.message);
    adm_answer_fini(&a);
    cJSON_free(body);
    cJSON_Delete(now);
    return rc;
}

/* Does the mutant with number n act? */
static bool acts(struct mutants *m, const struct object *o, unsigned n)
{
    char change[32], manager[32];
    base_fmt(change, sizeof change, "spec.mutant%u=true", n);
    base_fmt(manager, sizeof manager, "mutant-%u", n);
    char *changes[] = {change};
    struct adm_stmt st = {.kind = ADM_CASE, .code = 403, .who = o->who, .verb = o->verb, .fragment = manager};
    if (o->kind >= 0) { /* refused as unknown as long as the old schema stands */
        st = (struct adm_stmt){.kind = ADM_CASE,
                               .code = 400,
                               .who = ADM_ADMIN,
                               .verb = ADM_CREATE,
                               .changes = changes,
                               .n_changes = 1};
    }
    base_fmt(st.target, sizeof st.target, "%s", o->target);
    struct adm_verdict v;
    adm_run_stmt(&m->probe, &st, manager, &v);
    bool known = o->kind >= 0 ? !v.ok : v.ok;
    adm_verdict_fini(&v);
    return known;
}

static bool wait_acts(struct mutants *m, const struct object *o, unsigned n, bool want)
{
    for (int i = 0; i < WAIT_STEPS; i++) {
        if (acts(m, o, n) == want)
            return true;
        usleep(25000);
    }
    return false;
}

/* ---- the search */
static int relevance(const struct adm_scenario *sc, const struct object *o, const char *message)
{
    static const char *const words[ADM_KIND_N] = {"pi", "ha", "ps", "rc", "cb", "ev"};
    int best = 0;
    for (size_t i = 0; i < sc->n_stmts; i++) {
        const struct adm_stmt *st = &sc->stmts[i];
        if (st->fragment && strstr(message, st->fragment))
            return 2;
        if (o->kind < 0 || strncmp(st->target, words[o->kind], 2) == 0)
            best = 1;
    }
    return best;
}

struct kill {
    bool weak; /* only the message changed: another rule refuses the same */
    char text[512];
};

/* Runs one scenario until a case changes its verdict. A removed refusal is noticed by a case that wanted one. */
static bool kills(struct mutants *m, const struct adm_scenario *sc, enum mutant_sort sort, struct kill *ret)
{
    struct base_err err = {0};
    if (m->wide != (sc->phase == ADM_PHASE_WIDE)) {
        if (adm_set_wide(m->client, !m->wide, &err)) {
            printf("FAIL %s\n", err.msg);
            return false;
        }
        m->wide = !m->wide;
    }
    struct adm_run r = {.client = m->client, .lab = m->lab, .number = adm_next_number()};
    bool killed = false;
    for (size_t i = 0; i < sc->n_stmts; i++) {
        const struct adm_stmt *st = &sc->stmts[i];
        struct adm_verdict v;
        adm_run_stmt(&r, st, NULL, &v);
        bool ok = v.ok, refusal = st->kind == ADM_CASE && st->code >= 400;
        bool weak = !ok && refusal && v.code == st->code;
        if (!ok && (refusal || sort != MUTANT_RULE) && (!killed || !weak)) {
            killed = true;
            ret->weak = weak;
            base_fmt(ret->text, sizeof ret->text, "%s / %s: %ld -> %s%s", sc->name,
                     st->name ? st->name : "step", st->code, v.got, weak ? ", other message" : "");
        }
        adm_verdict_fini(&v);
        if (!ok && !weak) /* later cases build on a state that is no longer theirs */
            break;
    }
    adm_run_clean(&r);
    return killed;
}

static bool search(struct mutants *m, const struct object *o, enum mutant_sort sort, const char *message,
                   struct kill *ret)
{
    /* A weak kill is taken when no case that names the rule has a strong one. */
    bool found = false;
    for (int want = 2; want >= 0 && !found; want--)
        for (int phase = ADM_PHASE_NORMAL; phase < ADM_PHASE_N; phase++)
            for (size_t i = 0; i < m->suite->n; i++) {
                const struct adm_scenario *sc = &m->suite->items[i];
                struct kill k = {.text = ""};
                if ((int)sc->phase != phase || relevance(sc, o, message) != want || !kills(m, sc, sort, &k))
                    continue;
                if (!found || !k.weak)
                    *ret = k;
                found = true;
                if (!k.weak)
                    return true;
            }
    return found;
}

static const char *text_of(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsString(v) ? v->valuestring : "";
}

static void report(struct mutants *m, const struct object *o, bool killed, const char *what, const char *text)
{
    printf("%-8s %-20s %-70.70s %s\n", killed ? "killed" : "SURVIVED", o->label, what, text);
    if (killed)
        m->passed++;
    else
        m->failed++;
}

static void one_mutant(struct mutants *m, const struct object *o, const cJSON *mutated, enum mutant_sort sort,
                       const char *message)
{
    struct kill k = {.text = "(no case changes its verdict)"};
    bool killed = false;
    if (put_object(m, o->path, mutated) == BASE_OK) {
        if (wait_acts(m, o, m->n, true))
            killed = search(m, o, sort, message, &k);
        else
            base_fmt(k.text, sizeof k.text, "(the server does not take it over)");
    }
    report(m, o, killed, message, k.text);
}

static bool wanted(const struct mutants *m, const struct object *o, const char *message)
{
    return !m->only || strstr(o->label, m->only) || strstr(message, m->only);
}

/* ---- CRDs */
static cJSON *schema_of(cJSON *crd)
{
    cJSON *versions =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(crd, "spec"), "versions");
    cJSON *schema = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(versions, 0), "schema");
    return cJSON_GetObjectItemCaseSensitive(schema, "openAPIV3Schema");
}

/* The list of rules number `i` of the schema in depth-first order, and a rule's number in it; NULL when there
 * are fewer. `*left` counts down. */
static cJSON *nth_rule(cJSON *node, int *left, int *ret_index)
{
    cJSON *rules = cJSON_GetObjectItemCaseSensitive(node, "x-kubernetes-validations");
    int n = cJSON_GetArraySize(rules);
    if (*left < n) {
        *ret_index = *left;
        return rules;
    }
    *left -= n;
    for (cJSON *c = node->child; c; c = c->next) {
        if (!cJSON_IsObject(c))
            continue;
        cJSON *found = nth_rule(c, left, ret_index);
        if (found)
            return found;
    }
    return NULL;
}

static void crd_mutants(struct mutants *m, const struct object *o, const cJSON *original)
{
    for (int i = 0;; i++) {
        cJSON *mutated = cJSON_Duplicate(original, true);
        cJSON *schema = schema_of(mutated);
        int left = i, index = 0;
        cJSON *rules = nth_rule(schema, &left, &index);
        if (!rules) {
            cJSON_Delete(mutated);
            return;
        }
        base_cleanup(base_freep) char *message =
            base_strdup(text_of(cJSON_GetArrayItem(rules, index), "message"));
        cJSON_DeleteItemFromArray(rules, index);
        char field[32];
        base_fmt(field, sizeof field, "mutant%u", ++m->n);
        cJSON *spec =
            cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(schema, "properties"), "spec");
        cJSON *mark = cJSON_AddObjectToObject(cJSON_GetObjectItemCaseSensitive(spec, "properties"), field);
        cJSON_AddStringToObject(mark, "type", "boolean");
        if (message && wanted(m, o, message))
            one_mutant(m, o, mutated, MUTANT_RULE, message);
        cJSON_Delete(mutated);
    }
}

/* ---- policies */
static void mark_policy(cJSON *spec, unsigned n)
{
    char text[128], message[32];
    base_fmt(text, sizeof text,
             "!has(request.options.fieldManager) || request.options.fieldManager != 'mutant-%u'", n);
    base_fmt(message, sizeof message, "mutant-%u", n);
    cJSON *mark = cJSON_CreateObject();
    cJSON_AddStringToObject(mark, "expression", text);
    cJSON_AddStringToObject(mark, "message", message);
    cJSON_AddStringToObject(mark, "reason", "Forbidden");
    cJSON_InsertItemInArray(cJSON_GetObjectItemCaseSensitive(spec, "validations"), 0, mark);
}

static void policy_mutants(struct mutants *m, const struct object *o, const cJSON *original)
{
    static const char *const lists[] = {"validations", "matchConditions"};
    const cJSON *spec = cJSON_GetObjectItemCaseSensitive(original, "spec");
    for (size_t l = 0; l < BASE_LEN(lists); l++) {
        int n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(spec, lists[l]));
        for (int i = 0; i < n; i++) {
            cJSON *mutated = cJSON_Duplicate(original, true);
            cJSON *mspec = cJSON_GetObjectItemCaseSensitive(mutated, "spec");
            cJSON *list = cJSON_GetObjectItemCaseSensitive(mspec, lists[l]);
            const cJSON *item = cJSON_GetArrayItem(list, i);
            char message[512];
            if (l == 0)
                base_fmt(message, sizeof message, "%s%s", text_of(item, "message"),
                         text_of(item, "messageExpression"));
            else
                base_fmt(message, sizeof message, "(condition %s)", text_of(item, "name"));
            cJSON_DeleteItemFromArray(list, i);
            mark_policy(mspec, ++m->n);
            if (wanted(m, o, message))
                one_mutant(m, o, mutated, l == 0 ? MUTANT_RULE : MUTANT_CONDITION, message);
            cJSON_Delete(mutated);
        }
    }
}

/* ---- roles */
static bool role_search(struct mutants *m, const struct object *o, bool want, struct kill *ret)
{
    for (int tries = 0; tries < 100; tries++) {
        for (size_t i = 0; i < m->suite->n; i++) {
            const struct adm_scenario *sc = &m->suite->items[i];
            if (strcmp(sc->name, o->scenario) == 0 && kills(m, sc, MUTANT_ROLE, ret) == want)
                return true;
        }
        usleep(25000);
    }
    return false;
}

static void role_mutants(struct mutants *m, const struct object *o, const cJSON *original)
{
    int n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(original, "rules"));
    for (int i = 0; i < n; i++) {
        cJSON *mutated = cJSON_Duplicate(original, true);
        cJSON *rules = cJSON_GetObjectItemCaseSensitive(mutated, "rules");
        const cJSON *rule = cJSON_GetArrayItem(rules, i);
        char *resources = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(rule, "resources"));
        char *verbs = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(rule, "verbs"));
        char message[512];
        base_fmt(message, sizeof message, "%s %s", resources ? resources : "", verbs ? verbs : "");
        cJSON_free(resources);
        cJSON_free(verbs);
        cJSON_DeleteItemFromArray(rules, i);
        if (wanted(m, o, message)) {
            struct kill k = {.text = "(no case changes its verdict)"}, back = {.text = ""};
            bool killed = put_object(m, o->path, mutated) == BASE_OK && role_search(m, o, true, &k);
            report(m, o, killed, message, k.text);
            if (put_object(m, o->path, original) || !role_search(m, o, false, &back))
                report(m, o, false, "(role put back)", back.text);
        }
        cJSON_Delete(mutated);
    }
}

/* ---- all */
static int make_probes(struct mutants *m)
{
    static const struct {
        enum adm_who who;
        const char *target;
    } made[] = {{ADM_AUTHORITY, "ps:s1"}, {ADM_AGENT_A, "pi:a"}, {ADM_OPERATOR, "cb:c1"}};
    for (size_t i = 0; i < BASE_LEN(made); i++) {
        struct adm_stmt st = {.kind = ADM_DO, .who = made[i].who, .verb = ADM_CREATE};
        base_fmt(st.target, sizeof st.target, "%s", made[i].target);
        struct adm_verdict v;
        adm_run_stmt(&m->probe, &st, NULL, &v);
        bool ok = v.ok;
        if (!ok)
            printf("FAIL probe %s\n%s", made[i].target, v.text ? v.text : "");
        adm_verdict_fini(&v);
        if (!ok)
            return BASE_EIO;
    }
    return BASE_OK;
}

static void mutate(struct mutants *m, const struct object *o)
{
    cJSON *original = get_object(m, o->path);
    if (!original) {
        m->failed++;
        return;
    }
    unsigned before = m->n;
    if (o->scenario)
        role_mutants(m, o, original);
    else if (o->kind >= 0)
        crd_mutants(m, o, original);
    else
        policy_mutants(m, o, original);
    if (m->n != before && (put_object(m, o->path, original) || !wait_acts(m, o, m->n, false)))
        report(m, o, false, "(put back)", "(the server does not take the original back)");
    cJSON_Delete(original);
}

int adm_mutants(const struct adm_lab *lab, const struct adm_suite *suite, const char *only)
{
    struct mutants m = {.client = adm_client_new(lab), .lab = lab, .suite = suite, .only = only};
    if (!m.client)
        return BASE_ENOMEM;
    m.probe = (struct adm_run){.client = m.client, .lab = lab, .number = adm_next_number()};
    int rc = make_probes(&m);
    for (size_t i = 0; i < BASE_LEN(objects) && !rc; i++)
        mutate(&m, &objects[i]);
    if (m.wide && adm_set_wide(m.client, false, NULL))
        m.failed++;
    adm_run_clean(&m.probe);
    adm_client_free(m.client);
    printf("mutants-admission: %d passed, %d failed\n", m.passed, m.failed + (rc ? 1 : 0));
    return rc || m.failed || !m.passed ? 1 : 0;
}
