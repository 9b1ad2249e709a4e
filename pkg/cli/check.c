/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/check.c - is everything there in the cluster that Holdfast needs? The node's side is `holdfast-agent
 * check`.
 *
 * Only reads: what the caller may not read is skipped and said so, never taken for good.
 */
#include "cli/cli_int.h"

#include <stdarg.h>

#include "cli/skew.h"
#include "cli/verdict.h"

enum word { OK = 0, FAILED, SKIPPED };
static const char *const words[] = {"ok", "FAILED", "skipped"};
#define ANSWER_MAX ((size_t)32 << 20)
#define LINES_MAX 20 /* of one check; the rest is counted */
struct run {
    struct cli *c;
    cJSON *list;
    unsigned n[3];
};

static void say(struct run *r, enum word w, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void say(struct run *r, enum word w, const char *name, const char *fmt, ...)
{
    cJSON *o = cJSON_CreateObject();
    char text[900];
    va_list ap;

    va_start(ap, fmt);
    (void)base_vfmt(text, sizeof text, fmt, ap);
    va_end(ap);
    r->n[w]++;
    cli_add_str(o, "check", name);
    cli_add_str(o, "verdict", words[w]);
    cli_add_str(o, "message", text);
    (void)cJSON_AddItemToArray(r->list, o);
}

static const cJSON *at(const cJSON *o, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(o, key);
}

/* ---- the API server */

static bool check_server(struct run *r)
{
    struct base_err err = {0};
    char version[64];

    if (cli_server_version(r->c, version, sizeof version, &err)) {
        say(r, FAILED, "apiserver", "%s", err.msg);
        return false;
    }
    if (cli_server_new_enough(version))
        say(r, OK, "apiserver", "%s at %s", version, cli_api_server(r->c));
    else
        say(r, FAILED, "apiserver", "%s: Kubernetes 1.%d or newer is needed: update the control plane",
            version, CLI_SERVER_MINOR);
    return true;
}

static void check_crds(struct run *r)
{
    static const char *const groups[] = {CONTRACT_GROUP, CONTRACT_MASQUE_GROUP};

    for (size_t i = 0; i < BASE_LEN(groups); i++) {
        struct base_err err = {0};
        int rc = cli_served(r->c, groups[i], &err);

        if (!rc)
            say(r, OK, "crds", "%s/%s has every field that Holdfast needs", groups[i], CONTRACT_VERSION);
        else
            say(r, rc == BASE_EDENIED ? SKIPPED : FAILED, "crds", "%s", err.msg);
    }
}

/* ---- admission policies */

static const struct policy {
    const char *name;
    bool lets_errors_pass; /* claim-pool.yaml says why */
} policies[] = {{"holdfast-agent-writes", false},   {"holdfast-agent-bindings", false},
                {"holdfast-agent-events", false},   {"holdfast-foundation-writes", false},
                {"holdfast-claim-pool", true},      {"holdfast-deleting-rows", false},
                {"holdfast-operator-drain", false}, {"holdfast-service-valid-until", false}};

static const cJSON *named(const cJSON *list, const char *name)
{
    const cJSON *o;

    cJSON_ArrayForEach(o, at(list, "items")) if (strcmp(cli_text(at(o, "metadata"), "name"), name) ==
                                                 0) return o;
    return NULL;
}

static bool denies(const cJSON *binding)
{
    const cJSON *a;

    cJSON_ArrayForEach(a, at(at(binding, "spec"), "validationActions")) if (cJSON_IsString(a) &&
                                                                            strcmp(a->valuestring, "Deny") ==
                                                                                0) return true;
    return false;
}

/* What is wrong with the policy and its binding of that name; false = nothing. */
static bool lame(const struct run *r, const cJSON *all, const cJSON *bindings, const struct policy *want,
                 char *dst, size_t size)
{
    const cJSON *p = named(all, want->name), *b = named(bindings, want->name);
    const char *ns = cli_text(at(at(at(at(b, "spec"), "matchResources"), "namespaceSelector"), "matchLabels"),
                              "kubernetes.io/metadata.name");

    if (!p)
        return (void)base_fmt(dst, size, "is missing"), true;
    if (!b)
        return (void)base_fmt(dst, size, "is not bound: it does nothing"), true;
    if (strcmp(cli_text(at(b, "spec"), "policyName"), want->name) != 0)
        return (void)base_fmt(dst, size, "the binding of its name binds another policy"), true;
    if (!want->lets_errors_pass && strcmp(cli_text(at(p, "spec"), "failurePolicy"), "Fail") != 0)
        return (void)base_fmt(dst, size, "has another failurePolicy than Fail: an error lets writes pass"),
               true;
    if (!denies(b))
        return (void)base_fmt(dst, size, "its binding does not Deny: it only warns or writes down"), true;
    if (ns[0] && strcmp(ns, cli_api_namespace(r->c)) != 0)
        return (void)base_fmt(dst, size, "acts in namespace %.63s, not in %s", ns, cli_api_namespace(r->c)),
               true;
    return false;
}

static void check_policies(struct run *r)
{
    static const char base[] = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic";
    struct base_err err = {0};
    char path[128], why[200];
    cJSON *all, *bindings = NULL;
    unsigned bad = 0;

    (void)base_fmt(path, sizeof path, "%sies", base);
    all = cli_api_json(r->c, path, ANSWER_MAX, &err);
    (void)base_fmt(path, sizeof path, "%sybindings", base);
    if (all)
        bindings = cli_api_json(r->c, path, ANSWER_MAX, &err);
    for (size_t i = 0; bindings && i < BASE_LEN(policies); i++)
        if (lame(r, all, bindings, &policies[i], why, sizeof why)) {
            say(r, FAILED, "policies", "%s %s: apply manifests/admission (chart: admission.enabled)",
                policies[i].name, why);
            bad++;
        }
    if (!bindings)
        say(r, err.code == BASE_EDENIED ? SKIPPED : FAILED, "policies", "%s%s", err.msg,
            err.code == BASE_EDENIED ? "; in a pod `holdfast-agent check` tries whether they act" : "");
    else if (!bad)
        say(r, OK, "policies", "%zu policies are bound and deny", BASE_LEN(policies));
    cJSON_Delete(all);
    cJSON_Delete(bindings);
}

/* ---- what the caller may do */

/* manifests/rbac/operator.yaml; a test compares. */
static const struct right {
    const char *group, *resource, *verbs[8];
} rights[] = {
    {CONTRACT_MASQUE_GROUP,
     "connectorbindings",
     {"get", "list", "watch", "create", "update", "patch", "delete"}},
    {CONTRACT_GROUP, "providerinstances", {"get", "list", "watch", "update", "patch", "delete"}},
    {CONTRACT_GROUP, "routeclaims", {"get", "list", "watch", "delete"}},
    {CONTRACT_GROUP, "hostattachments", {"get", "list", "watch"}},
    {CONTRACT_GROUP, "providerservices", {"get", "list", "watch"}},
    {"events.k8s.io", "events", {"get", "list", "watch"}},
};

/* -1: not answered; 0, 1. */
static int may(struct run *r, const char *group, const char *resource, const char *verb, struct base_err *err)
{
    struct base_buf json, body;
    cJSON *doc = NULL;
    int yes = -1;

    base_buf_init(&json, 2048);
    base_buf_init(&body, 1 << 20);
    (void)base_buf_addf(
        &json,
        "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\",\"spec\":{"
        "\"resourceAttributes\":{\"group\":\"%s\",\"resource\":\"%s\",\"verb\":\"%s\",\"namespace\":"
        "\"%s\"}}}",
        group, resource, verb, cli_api_namespace(r->c));
    if (!cli_api_call(r->c, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json.data, NULL,
                      &body, NULL, err))
        doc = cJSON_ParseWithLength(body.data ? body.data : "", body.len);
    if (doc)
        yes = cJSON_IsTrue(at(at(doc, "status"), "allowed"));
    cJSON_Delete(doc);
    base_buf_fini(&json);
    base_buf_fini(&body);
    return yes;
}

static void check_rights(struct run *r)
{
    struct base_err err = {0};
    unsigned good = 0, bad = 0;

    for (size_t i = 0; i < BASE_LEN(rights); i++)
        for (size_t v = 0; rights[i].verbs[v]; v++) {
            int yes = may(r, rights[i].group, rights[i].resource, rights[i].verbs[v], &err);

            if (yes < 0) {
                say(r, FAILED, "rbac", "SelfSubjectAccessReview was not answered: %s", err.msg);
                return;
            }
            good += yes == 1;
            bad += yes == 0;
            if (!yes)
                say(r, FAILED, "rbac",
                    "you may not %s %s.%s: join the group holdfast:operators (manifests/rbac/operator.yaml)",
                    rights[i].verbs[v], rights[i].resource, rights[i].group);
        }
    if (!bad)
        say(r, OK, "rbac", "you have the %u permissions of an operator in namespace %s", good,
            cli_api_namespace(r->c));
}

/* ---- what runs */

static void check_namespace(struct run *r)
{
    struct base_err err = {0};
    char path[128];
    const char *ns = cli_api_namespace(r->c);
    cJSON *doc;

    (void)base_fmt(path, sizeof path, "/api/v1/namespaces/%s", ns);
    doc = cli_api_json(r->c, path, ANSWER_MAX, &err);
    if (!doc)
        say(r, err.code == BASE_EDENIED ? SKIPPED : FAILED, "namespace", "%s%s", err.msg,
            err.code == BASE_ENOTFOUND ? ": apply manifests/namespace.yaml, or name another with -n" : "");
    else if (strcmp(cli_text(at(at(doc, "metadata"), "labels"), "pod-security.kubernetes.io/enforce"),
                    "privileged") == 0)
        say(r, OK, "namespace", "%s allows the node's network", ns);
    else
        say(r, FAILED, "namespace",
            "%s is not labelled pod-security.kubernetes.io/enforce=privileged: label it, or no pod starts "
            "where Pod "
            "Security is enforced",
            ns);
    cJSON_Delete(doc);
}

/* Is there such a Node? -1 = may not look. */
static int node_exists(struct run *r, const char *node)
{
    struct base_err err = {0};
    char path[200];
    cJSON *doc;

    (void)base_fmt(path, sizeof path, "/api/v1/nodes/%s", node);
    doc = cli_api_json(r->c, path, ANSWER_MAX, &err);
    cJSON_Delete(doc);
    return doc ? 1 : err.code == BASE_ENOTFOUND ? 0 : -1;
}

static void check_instances(struct run *r)
{
    struct cli_list l = {.n = 0}, atts = {.n = 0};
    struct base_err err = {0};
    unsigned bad = 0;

    if (cli_api_list(r->c, CONTRACT_INSTANCE, NULL, &l, &err) ||
        cli_api_list(r->c, CONTRACT_ATTACHMENT, NULL, &atts, &err)) {
        say(r, FAILED, "instances", "%s", err.msg);
        cli_list_fini(&l);
        return;
    }
    for (size_t k = 0; k < l.n; k++) {
        const struct contract_instance *i = &l.o[k].u.instance;
        const char *ready = cli_ready_word(i, r->c->now);

        if (strcmp(ready, "True") == 0 || bad++ >= LINES_MAX)
            continue;
        if (strcmp(ready, "Expired") == 0 && node_exists(r, i->spec.node) == 0)
            say(r, FAILED, "instances",
                "%s: there is no node %s any more: `kubectl -n %s delete pi %s` (OPERATIONS.md, \"Removing a "
                "node\")",
                i->meta.name, i->spec.node, cli_api_namespace(r->c), i->meta.name);
        else
            say(r, FAILED, "instances", "%s is %s (%s): look at its agent's and foundation's logs",
                i->meta.name,
                strcmp(ready, "False") == 0 || strcmp(ready, "Unknown") == 0 ? "not Ready" : ready,
                cli_ready_reason(i, r->c->now));
    }
    for (size_t k = 0; k < atts.n; k++) {
        const struct contract_attachment *a = &atts.o[k].u.attachment;

        if (a->status.ready.status != CONTRACT_COND_TRUE && bad++ < LINES_MAX)
            say(r, FAILED, "instances", "attachment %s is not Ready (%s): look at that node's foundation",
                a->meta.name,
                a->status.ready.reason[0] ? a->status.ready.reason : "no foundation has answered");
    }
    if (bad > LINES_MAX)
        say(r, FAILED, "instances", "and %u more: see `%s status`", bad - LINES_MAX, r->c->a.name);
    if (!l.n)
        say(r, FAILED, "instances",
            "none in namespace %s: no agent has started there; look at the DaemonSet's events, or name "
            "another "
            "namespace with -n",
            cli_api_namespace(r->c));
    else if (!bad)
        say(r, OK, "instances", "%zu of %zu Ready, %zu attachments", l.n, l.n, atts.n);
    cli_list_fini(&l);
    cli_list_fini(&atts);
}

static void check_versions(struct run *r)
{
    bool blind;
    cJSON *doc = cli_version_doc(r->c, false, &blind);
    const cJSON *problems = at(doc, "problems"), *m;

    cJSON_ArrayForEach(m, problems) if (!strstr(m->valuestring, "manifests/crds") &&
                                        !strstr(m->valuestring, "is needed")) /* said already */
        say(r, FAILED, "versions", "%s", m->valuestring);
    cJSON_ArrayForEach(m, at(doc, "notSeen")) say(r, SKIPPED, "versions", "%s", m->valuestring);
    if (!blind && !cJSON_GetArraySize(problems))
        say(r, OK, "versions", "agents, CRDs, API server and this tool (%s) work together", HOLDFAST_VERSION);
    cJSON_Delete(doc);
}

cJSON *cli_check_doc(struct cli *c, bool *ret_blind, bool *ret_failed)
{
    struct run r = {.c = c};
    cJSON *doc = cJSON_CreateObject(), *sum;

    r.list = cJSON_AddArrayToObject(doc, "checks");
    *ret_blind = !check_server(&r);
    if (!*ret_blind) {
        check_crds(&r);
        check_policies(&r);
        check_rights(&r);
        check_namespace(&r);
        check_instances(&r);
        check_versions(&r);
    }
    sum = cJSON_AddObjectToObject(doc, "summary");
    for (unsigned i = OK; i <= SKIPPED; i++)
        cli_add_int(sum, words[i], r.n[i]);
    *ret_failed = r.n[FAILED] > 0;
    return doc;
}

int cli_check(struct cli *c)
{
    bool blind, failed;
    cJSON *doc = cli_check_doc(c, &blind, &failed);
    const cJSON *o, *sum = at(doc, "summary");
    int code = blind ? CLI_EXIT_BLIND : failed ? CLI_EXIT_FOUND : CLI_EXIT_OK;

    if (c->a.format == CLI_JSON || c->a.format == CLI_YAML) {
        cli_print_doc(c, doc);
        return code;
    }
    cJSON_ArrayForEach(o, at(doc, "checks"))
    {
        const char *word = cli_text(o, "verdict");
        enum cli_colour colour = word[0] == 'o' ? CLI_GOOD : word[0] == 'F' ? CLI_BAD : CLI_DOUBT;

        (void)fprintf(c->out, "%s%-8s%s %-10s %s\n", cli_on(c, colour), word, cli_off(c),
                      cli_text(o, "check"), cli_text(o, "message"));
    }
    (void)fprintf(c->out, "%d ok, %d failed, %d skipped\n", at(sum, "ok")->valueint,
                  at(sum, "FAILED")->valueint, at(sum, "skipped")->valueint);
    cJSON_Delete(doc);
    return code;
}
