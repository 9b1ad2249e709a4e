/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes statements: builds the request, sends it, compares code, reason and message. */
#include "admission.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RETRY_STEPS 250 /* of 20 ms */
#define TEXT_MAX (256u << 10)

void adm_verdict_fini(struct adm_verdict *v)
{
    v->text = base_free(v->text);
}

static const char *reason_of(long code)
{
    switch (code) {
    case 400:
        return "BadRequest";
    case 403:
        return "Forbidden";
    case 404:
        return "NotFound";
    case 409:
        return "Conflict";
    case 422:
        return "Invalid";
    default:
        return "";
    }
}

struct sent {
    const char *method;
    const char *type; /* content type */
    char path[ADM_PATH_MAX];
    char *body;
};

static cJSON *fetch(struct adm_run *r, const char *path, struct base_err *err)
{
    struct adm_answer a;
    adm_request(r->client, ADM_ADMIN, "GET", path, NULL, NULL, &a);
    cJSON *o = NULL;
    if (a.code == 200) {
        o = a.body;
        a.body = NULL;
    } else {
        base_err_set(err, BASE_EIO, "GET %s: %ld %.300s", path, a.code, a.message);
    }
    adm_answer_fini(&a);
    return o;
}

/* The body of a write whose object is changed. */
static int changed_body(struct adm_run *r, const struct adm_stmt *st, cJSON *obj, char **ret,
                        struct base_err *err)
{
    int rc = obj ? BASE_OK : BASE_EINVAL;
    for (size_t i = 0; i < st->n_changes && !rc; i++)
        rc = adm_change(r, obj, st->changes[i], err);
    char *text = rc ? NULL : cJSON_PrintUnformatted(obj);
    cJSON_Delete(obj);
    if (!rc)
        *ret = base_strdup(text ? text : "");
    cJSON_free(text);
    return rc;
}

static int build(struct adm_run *r, const struct adm_stmt *st, struct sent *ret, struct base_err *err)
{
    enum adm_kind kind;
    bool status = st->verb == ADM_STATUS || st->verb == ADM_JSON_STATUS || st->verb == ADM_MERGE_STATUS;
    int rc = adm_target_path(r, st->target, st->verb != ADM_CREATE, ret->path, &kind, err);
    if (rc)
        return rc;
    ret->type = "application/json";
    switch (st->verb) {
    case ADM_CREATE:
        ret->method = "POST";
        rc = changed_body(r, st, adm_template(r, st->target, st->who, err), &ret->body, err);
        break;
    case ADM_PUT:
    case ADM_STATUS:
        ret->method = "PUT";
        rc = changed_body(r, st, fetch(r, ret->path, err), &ret->body, err);
        break;
    case ADM_DELETE:
        ret->method = "DELETE";
        break;
    case ADM_GET:
        ret->method = "GET";
        break;
    case ADM_JSON:
    case ADM_JSON_STATUS:
    case ADM_MERGE:
    case ADM_MERGE_STATUS:
    case ADM_APPLY:
        ret->method = "PATCH";
        ret->type = st->verb == ADM_APPLY                                 ? "application/apply-patch+yaml"
                    : st->verb == ADM_JSON || st->verb == ADM_JSON_STATUS ? "application/json-patch+json"
                                                                          : "application/merge-patch+json";
        ret->body = adm_expand(r, st->body, err);
        rc = ret->body ? BASE_OK : BASE_EINVAL;
        break;
    case ADM_VERB_N:
        return base_err_set(err, BASE_EINVAL, "no verb");
    }
    if (!rc && status)
        strncat(ret->path, "/status", sizeof ret->path - strlen(ret->path) - 1);
    return rc;
}

static void query(const struct adm_stmt *st, const char *manager, bool dry, char *path, size_t size)
{
    char q[160] = "";
    if (st->verb == ADM_GET)
        return;
    if (st->verb != ADM_DELETE)
        base_fmt(q, sizeof q, "&fieldValidation=Strict");
    size_t n = strlen(q);
    if (manager)
        base_fmt(q + n, sizeof q - n, "&fieldManager=%s", manager);
    else if (st->verb == ADM_APPLY)
        base_fmt(q + n, sizeof q - n, "&fieldManager=admission-test");
    n = strlen(q);
    if (dry)
        base_fmt(q + n, sizeof q - n, "&dryRun=All");
    if (q[0]) {
        q[0] = '?';
        strncat(path, q, size - strlen(path) - 1);
    }
}

static void remember(struct adm_run *r, const struct adm_stmt *st, const struct adm_answer *a)
{
    if (st->verb != ADM_CREATE || a->code != 201 || r->n_made == ADM_MADE_MAX)
        return;
    const cJSON *uid =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(a->body, "metadata"), "uid");
    const cJSON *name =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(a->body, "metadata"), "name");
    char path[ADM_PATH_MAX];
    enum adm_kind kind;
    if (adm_target_path(r, st->target, false, path, &kind, NULL))
        return;
    base_fmt(r->made[r->n_made].target, sizeof r->made[0].target, "%s", st->target);
    base_fmt(r->made[r->n_made].uid, sizeof r->made[0].uid, "%s",
             cJSON_IsString(uid) ? uid->valuestring : "");
    base_fmt(r->made[r->n_made].path, sizeof r->made[0].path, "%s/%s", path,
             cJSON_IsString(name) ? name->valuestring : "");
    r->n_made++;
}

static bool as_wanted(struct adm_run *r, const struct adm_stmt *st, const struct adm_answer *a,
                      struct base_err *err)
{
    if (st->kind == ADM_DO)
        return a->code >= 200 && a->code < 300;
    if (a->code != st->code || strcmp(a->reason, st->reason[0] ? st->reason : reason_of(st->code)) != 0)
        return false;
    if (!st->fragment)
        return true;
    base_cleanup(base_freep) char *want = adm_expand(r, st->fragment, err);
    return want && strstr(a->message, want);
}

static void explain(const struct adm_stmt *st, const struct sent *s, const struct adm_answer *a,
                    const char *why, struct adm_verdict *ret)
{
    struct base_buf b;
    base_buf_init(&b, TEXT_MAX);
    if (st->kind == ADM_DO)
        base_buf_addf(&b, "  wanted  success (a step)\n");
    else
        base_buf_addf(&b, "  wanted  %ld %s%s%s\n", st->code,
                      st->reason[0] ? st->reason : reason_of(st->code),
                      st->fragment ? ", message with: " : "", st->fragment ? st->fragment : "");
    base_buf_addf(&b, "  got     %s: %s\n", ret->got, a->message);
    if (why[0])
        base_buf_addf(&b, "  because %s\n", why);
    if (s->method)
        base_buf_addf(&b, "  request %s %s as %s\n", s->method, s->path, adm_who_name(st->who));
    if (s->body)
        base_buf_addf(&b, "  body    %s\n", s->body);
    ret->text = b.failed ? NULL : base_strdup(b.data);
    base_buf_fini(&b);
}

static void run_request(struct adm_run *r, const struct adm_stmt *st, const char *manager,
                        struct adm_verdict *ret)
{
    for (int i = 0;; i++) {
        struct sent s = {0};
        struct adm_answer a = {0};
        struct base_err err = {0};
        int rc = build(r, st, &s, &err);
        if (!rc) {
            query(st, manager, manager || st->retry, s.path, sizeof s.path);
            adm_request(r->client, st->who, s.method, s.path, s.type, s.body, &a);
            if (!manager && !st->retry)
                remember(r, st, &a);
        } else {
            base_fmt(a.message, sizeof a.message, "%s", err.msg);
        }
        ret->ok = !rc && as_wanted(r, st, &a, &err);
        bool last = ret->ok || !st->retry || i == RETRY_STEPS;
        if (last) {
            ret->code = a.code;
            base_fmt(ret->got, sizeof ret->got, "%ld %s", a.code, a.reason);
            if (!ret->ok)
                explain(st, &s, &a, err.msg, ret);
        }
        adm_answer_fini(&a);
        base_free(s.body);
        if (last)
            return;
        usleep(20000);
    }
}

static void run_same(struct adm_run *r, const struct adm_stmt *st, struct adm_verdict *ret)
{
    char path[ADM_PATH_MAX], text[700];
    enum adm_kind kind;
    struct base_err err = {0};
    cJSON *o = adm_target_path(r, st->target, true, path, &kind, &err) ? NULL : fetch(r, path, &err);
    ret->ok = o != NULL;
    for (size_t i = 0; i < st->n_changes && ret->ok; i++)
        ret->ok = adm_same(r, o, st->changes[i], &err) == BASE_OK;
    cJSON_Delete(o);
    base_fmt(ret->got, sizeof ret->got, ret->ok ? "same" : "other values");
    base_fmt(text, sizeof text, "  %s\n", err.msg);
    if (!ret->ok)
        ret->text = base_strdup(text);
}

/* rows "name" rc ; SELECTOR ; COUNT */
static void run_rows(struct adm_run *r, const struct adm_stmt *st, struct adm_verdict *ret)
{
    char path[ADM_PATH_MAX], url[ADM_PATH_MAX * 2], text[256];
    enum adm_kind kind;
    struct base_err err = {0};
    struct adm_answer a = {0};
    base_cleanup(base_freep) char *sel = st->n_changes == 2 ? adm_expand(r, st->changes[0], &err) : NULL;
    if (!sel || adm_target_path(r, st->target, false, path, &kind, &err)) {
        ret->text = base_strdup("  rows needs a kind, a selector and a count\n");
        return;
    }
    base_fmt(url, sizeof url, "%s?fieldSelector=%s", path, sel);
    adm_request(r->client, ADM_ADMIN, "GET", url, NULL, NULL, &a);
    int n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(a.body, "items"));
    ret->ok = a.code == 200 && n == (int)strtol(st->changes[1], NULL, 10);
    base_fmt(ret->got, sizeof ret->got, "%ld, %d rows", a.code, n);
    base_fmt(text, sizeof text, "  wanted %s rows, got %s: %.120s\n", st->changes[1], ret->got, a.message);
    if (!ret->ok)
        ret->text = base_strdup(text);
    adm_answer_fini(&a);
}

/* can "name" WHO group/resource[/subresource] ; VERB ; VERB...: exactly these ("none" = nothing). */
static void run_can(struct adm_run *r, const struct adm_stmt *st, struct adm_verdict *ret)
{
    static const char *const verbs[] = {"get",    "list",  "watch",  "create",
                                        "update", "patch", "delete", "deletecollection"};
    char group[80] = "", resource[80] = "", sub[40] = "", body[600], text[512] = "";
    sscanf(st->target, "%79[^/]/%79[^/]/%39s", group, resource, sub);
    ret->ok = true;
    for (size_t i = 0; i < BASE_LEN(verbs); i++) {
        bool want = false;
        for (size_t k = 0; k < st->n_changes; k++)
            want |= strcmp(st->changes[k], verbs[i]) == 0;
        base_fmt(body, sizeof body,
                 "{\"apiVersion\":\"authorization.k8s.io/"
                 "v1\",\"kind\":\"SelfSubjectAccessReview\",\"spec\":{\"resourceAttributes\":{"
                 "\"namespace\":\"%s\",\"group\":\"%s\",\"resource\":\"%s\",\"subresource\":\"%s\",\"verb\":"
                 "\"%s\"}}}",
                 ADM_NAMESPACE, strcmp(group, "core") == 0 ? "" : group, resource, sub, verbs[i]);
        struct adm_answer a;
        adm_request(r->client, st->who, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                    NULL, body, &a);
        bool have = cJSON_IsTrue(
            cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(a.body, "status"), "allowed"));
        if (a.code != 201 || have != want) {
            ret->ok = false;
            base_fmt(text, sizeof text, "  %s %s: wanted %s, got %s (%ld %.200s)\n", verbs[i], st->target,
                     want ? "allowed" : "refused", have ? "allowed" : "refused", a.code, a.message);
        }
        adm_answer_fini(&a);
    }
    base_fmt(ret->got, sizeof ret->got, ret->ok ? "as listed" : "other verbs");
    if (!ret->ok)
        ret->text = base_strdup(text);
}

/* The usual three services. The pool policy learns of new ones by a watch: dry runs ask until it knows each. */
static void run_services(struct adm_run *r, const struct adm_stmt *st, struct adm_verdict *ret)
{
    static const struct {
        const char *target, *change;
    } made[] = {{"ps:s1", NULL}, {"ps:s2", "spec.tenant=\"$T-x\""}, {"ps:s3", "spec.revoked=true"}};
    for (size_t i = 0; i < 2 * BASE_LEN(made); i++) {
        size_t k = i % BASE_LEN(made);
        bool create = i < BASE_LEN(made);
        /* Asked with two faults, so that one rule of the policy may be missing (mutants). */
        char ask[96], said[32];
        base_fmt(ask, sizeof ask, "spec.serviceRef={\"name\":\"$P-s%zu\",\"uid\":\"$u(9)\"}", k + 1);
        base_fmt(said, sizeof said, "service $P-s%zu ", k + 1);
        const char *text = create ? made[k].change : ask;
        char *change = text ? base_strdup(text) : NULL;
        char *fragment = create ? NULL : base_strdup(said);
        struct adm_stmt one = {.kind = create ? ADM_DO : ADM_CASE,
                               .line = st->line,
                               .code = 403,
                               .retry = !create,
                               .who = ADM_ADMIN,
                               .verb = ADM_CREATE,
                               .changes = &change,
                               .n_changes = change ? 1 : 0,
                               .fragment = fragment};
        base_fmt(one.target, sizeof one.target, "%s", create ? made[k].target : "rc:0");
        run_request(r, &one, NULL, ret);
        base_free(change);
        base_free(fragment);
        if (!ret->ok)
            return;
    }
}

void adm_run_stmt(struct adm_run *r, const struct adm_stmt *st, const char *manager, struct adm_verdict *ret)
{
    memset(ret, 0, sizeof *ret);
    switch (st->kind) {
    case ADM_CASE:
    case ADM_DO:
        run_request(r, st, manager, ret);
        break;
    case ADM_SAME:
        run_same(r, st, ret);
        break;
    case ADM_ROWS:
        run_rows(r, st, ret);
        break;
    case ADM_CAN:
        run_can(r, st, ret);
        break;
    case ADM_SLEEP:
        usleep((useconds_t)st->code * 1000);
        ret->ok = true;
        break;
    case ADM_SERVICES:
        run_services(r, st, ret);
        break;
    }
}

void adm_run_clean(struct adm_run *r)
{
    for (size_t i = r->n_made; i-- > 0;) {
        const char *path = r->made[i].path;
        struct adm_answer a;
        adm_request(r->client, ADM_ADMIN, "DELETE", path, NULL, NULL, &a);
        const cJSON *meta = cJSON_GetObjectItemCaseSensitive(a.body, "metadata");
        bool held = a.code == 200 && cJSON_GetObjectItemCaseSensitive(meta, "finalizers");
        adm_answer_fini(&a);
        if (held) {
            adm_request(r->client, ADM_ADMIN, "PATCH", path, "application/merge-patch+json",
                        "{\"metadata\":{\"finalizers\":null}}", &a);
            adm_answer_fini(&a);
        }
    }
    r->n_made = 0;
}
