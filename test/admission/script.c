/* SPDX-License-Identifier: Apache-2.0
 *
 * Templates of the five kinds, `$` substitutions and changes. */
#include "admission.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TEXT_MAX 65536

/* ---- names */
static const char *node_of(char letter)
{
    return letter == 'b' ? "edge2" : "edge1";
}

static void uuid_of(char dst[40], unsigned long n)
{
    base_fmt(dst, 40, "00000000-0000-4000-8000-%012lu", n);
}

static void prefix_of(const struct adm_run *r, unsigned long n, char dst[64])
{
    if (n)
        base_fmt(dst, 64, "fd00:%x::%lx:0:0/96", r->number, n);
    else
        base_fmt(dst, 64, "fd00:%x::/96", r->number);
}

/* Splits "rc:1" and "ha:a:v2". */
static int split(const char *target, char kind[4], char a[32], char b[32])
{
    b[0] = '\0';
    return sscanf(target, "%3[a-z]:%31[^:]:%31[^:]", kind, a, b) >= 2 ? BASE_OK : BASE_EINVAL;
}

int adm_target_path(const struct adm_run *r, const char *target, bool object, char dst[ADM_PATH_MAX],
                    enum adm_kind *ret_kind, struct base_err *err)
{
    static const struct {
        const char *word, *path;
    } kinds[ADM_KIND_N] = {
        [ADM_PI] = {"pi", ADM_EDGE "/namespaces/" ADM_NAMESPACE "/providerinstances"},
        [ADM_HA] = {"ha", ADM_EDGE "/namespaces/" ADM_NAMESPACE "/hostattachments"},
        [ADM_PS] = {"ps", ADM_EDGE "/namespaces/" ADM_NAMESPACE "/providerservices"},
        [ADM_RC] = {"rc", ADM_EDGE "/namespaces/" ADM_NAMESPACE "/routeclaims"},
        [ADM_CB] = {"cb", ADM_MASQUE "/namespaces/" ADM_NAMESPACE "/connectorbindings"},
        [ADM_EV] = {"ev", "/apis/events.k8s.io/v1/namespaces/" ADM_NAMESPACE "/events"},
    };
    char kind[4] = "", a[32] = "", b[32] = "", name[254] = "";
    if (split(target, kind, a, b) && strlen(target) != 2)
        return base_err_set(err, BASE_EINVAL, "target '%s': expected KIND:NAME", target);
    int k = 0;
    while (k < ADM_KIND_N && strncmp(target, kinds[k].word, 2) != 0)
        k++;
    if (k == ADM_KIND_N)
        return base_err_set(err, BASE_EINVAL, "target '%s': expected pi, ha, ps, rc, cb or ev", target);
    *ret_kind = (enum adm_kind)k;
    switch (*ret_kind) {
    case ADM_PI:
        base_fmt(name, sizeof name, "p%u.%s", r->number, node_of(a[0]));
        break;
    case ADM_HA:
        base_fmt(name, sizeof name, "p%u.%s.%s", r->number, node_of(a[0]), b[0] ? b : "v1");
        break;
    case ADM_PS:
        base_fmt(name, sizeof name, "p%u-%s", r->number, a);
        break;
    case ADM_RC:
        base_fmt(name, sizeof name, "rc-fd00%04x000000000000%04lx", r->number, strtoul(a, NULL, 10));
        break;
    case ADM_CB:
        base_fmt(name, sizeof name, "t%u.%s", r->number, a);
        break;
    case ADM_EV:
        base_fmt(name, sizeof name, "ev%u-%s", r->number, a);
        break;
    case ADM_KIND_N:
        break;
    }
    base_fmt(dst, ADM_PATH_MAX, "%s%s%s", kinds[k].path, object ? "/" : "", object ? name : "");
    return BASE_OK;
}

static const char *uid_of(const struct adm_run *r, const char *target)
{
    for (size_t i = r->n_made; i-- > 0;)
        if (strcmp(r->made[i].target, target) == 0)
            return r->made[i].uid;
    return "";
}

/* ---- substitutions */
static void stamp(char dst[40], long ahead)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time_t t = now.tv_sec + ahead;
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(dst, 40, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void read_rv(struct adm_run *r, const char *target, struct base_buf *out)
{
    char path[ADM_PATH_MAX];
    enum adm_kind kind;
    struct adm_answer a = {0};
    if (adm_target_path(r, target, true, path, &kind, NULL))
        return;
    adm_request(r->client, ADM_ADMIN, "GET", path, NULL, NULL, &a);
    const cJSON *meta = cJSON_GetObjectItemCaseSensitive(a.body, "metadata");
    const cJSON *rv = cJSON_GetObjectItemCaseSensitive(meta, "resourceVersion");
    base_buf_addz(out, cJSON_IsString(rv) ? rv->valuestring : "");
    adm_answer_fini(&a);
}

/* One `$name` or `$name(args)`; returns how many characters it took, 0 = unknown. */
static size_t expand_one(struct adm_run *r, const char *p, struct base_buf *out)
{
    static const char *const plain[] = {"$UA", "$UB", "$FA", "$FB", "$P", "$T", "$G", "$N4", "$N"};
    char name[8] = "", args[80] = "", text[128];
    int used = 0;
    if (sscanf(p, "$%7[a-z](%79[^)])%n", name, args, &used) == 2 && used > 0) {
        unsigned long n = strtoul(args, NULL, 10);
        const char *comma = strchr(args, ',');
        if (strcmp(name, "u") == 0) {
            uuid_of(text, n);
            base_buf_addz(out, text);
        } else if (strcmp(name, "pfx") == 0) {
            prefix_of(r, n, text);
            base_buf_addz(out, text);
        } else if (strcmp(name, "now") == 0) {
            stamp(text, strtol(args, NULL, 10));
            base_buf_addz(out, text);
        } else if (strcmp(name, "uid") == 0) {
            base_buf_addz(out, uid_of(r, args));
        } else if (strcmp(name, "rv") == 0) {
            read_rv(r, args, out);
        } else if (strcmp(name, "rep") == 0 && comma) {
            for (unsigned long i = strtoul(comma + 1, NULL, 10); i > 0; i--)
                base_buf_add(out, args, (size_t)(comma - args));
        } else {
            return 0;
        }
        return (size_t)used;
    }
    for (size_t i = 0; i < BASE_LEN(plain); i++) {
        if (strncmp(p, plain[i], strlen(plain[i])) != 0)
            continue;
        switch (i) {
        case 0:
        case 1:
            base_buf_addz(out, r->lab->node_uid[i]);
            break;
        case 2:
        case 3:
            base_buf_addf(out, "gate.edge.galactic.datumapis.com/%s.0123456789abcdef",
                          r->lab->node_uid[i - 2]);
            break;
        case 4:
            base_buf_addf(out, "p%u", r->number);
            break;
        case 5:
            base_buf_addf(out, "t%u", r->number);
            break;
        case 7:
            base_buf_addf(out, "%04x", r->number);
            break;
        case 8:
            base_buf_addf(out, "%x", r->number);
            break;
        default:
            base_buf_addz(out, "gate.edge.galactic.datumapis.com/");
            break;
        }
        return strlen(plain[i]);
    }
    return 0;
}

char *adm_expand(struct adm_run *r, const char *text, struct base_err *err)
{
    struct base_buf out;
    base_buf_init(&out, TEXT_MAX);
    base_buf_addz(&out, "");
    for (const char *p = text; *p && !out.failed;) {
        if (*p != '$') {
            base_buf_add(&out, p++, 1);
            continue;
        }
        size_t n = expand_one(r, p, &out);
        if (n == 0) {
            base_err_set(err, BASE_EINVAL, "unknown substitution at '%.30s'", p);
            base_buf_fini(&out);
            return NULL;
        }
        p += n;
    }
    char *ret = out.failed ? NULL : base_strdup(out.data ? out.data : "");
    base_buf_fini(&out);
    if (!ret)
        base_err_set(err, BASE_ENOMEM, "substitution: too long, or no memory");
    return ret;
}

/* ---- templates */
#define META(group, kind)                                                                                    \
    "{\"apiVersion\":\"" group ".galactic.datumapis.com/v1alpha1\",\"kind\":\"" kind                         \
    "\",\"metadata\":{\"name\":\"%s\"},"

cJSON *adm_template(const struct adm_run *r, const char *target, enum adm_who who, struct base_err *err)
{
    char path[ADM_PATH_MAX], kind[4] = "", a[32] = "", b[32] = "", text[4096], until[40];
    enum adm_kind k;
    if (split(target, kind, a, b) || adm_target_path(r, target, true, path, &k, err)) {
        base_err_set(err, BASE_EINVAL, "target '%s': expected KIND:NAME", target);
        return NULL;
    }
    const char *name = strrchr(path, '/') + 1;
    char letter = who == ADM_AGENT_B || who == ADM_FOUNDATION_B ? 'b' : 'a';
    const char *node = node_of(letter);
    unsigned n = r->number;
    unsigned long i = strtoul(a, NULL, 10);
    char pfx[64];
    switch (k) {
    case ADM_PI:
        base_fmt(
            text, sizeof text,
            META("edge",
                 "ProviderInstance") "\"spec\":{\"provider\":\"p%u\",\"nodeName\":\"%s\",\"nodeUID\":\"%s\","
                                     "\"processID\":\"00000000-0000-4000-8000-000000000001\",\"epoch\":1,"
                                     "\"leaseDurationSeconds\":30,"
                                     "\"renew\":{\"bootID\":\"00000000-0000-4000-8000-000000000011\","
                                     "\"bootTimeMicros\":1000000,"
                                     "\"time\":\"2026-11-29T12:00:00Z\"}}}",
            name, n, node_of(a[0]), r->lab->node_uid[a[0] == 'b']);
        break;
    case ADM_HA:
        base_fmt(
            text, sizeof text,
            META("edge", "HostAttachment") "\"spec\":{\"vpc\":\"%s\",\"instanceRef\":{\"name\":\"p%u.%s\","
                                           "\"uid\":\"00000000-0000-4000-8000-000000000001\",\"epoch\":1}}}",
            name, b[0] ? b : "v1", n, node_of(a[0]));
        break;
    case ADM_PS:
        stamp(until, 120);
        base_fmt(
            text, sizeof text,
            META("edge",
                 "ProviderService") "\"spec\":{\"provider\":\"p%u\",\"tenant\":\"t%u\",\"vpc\":\"v1\","
                                    "\"allowedPrefix\":\"fd00:%x::/64\",\"destinations\":[\"2001:db8:99::/"
                                    "48\"],\"validUntil\":\"%s\"}}",
            name, n, n, n, until);
        break;
    case ADM_RC:
        prefix_of(r, i, pfx);
        base_fmt(
            text, sizeof text,
            META("edge",
                 "RouteClaim") "\"spec\":{\"provider\":\"p%u\",\"prefix\":\"%s\",\"tenant\":\"t%u\",\"vpc\":"
                               "\"v1\","
                               "\"connector\":\"c%lu\",\"serviceRef\":{\"name\":\"p%u-s1\",\"uid\":\"%s\"},"
                               "\"leaseUUID\":\"00000000-0000-4000-8000-000000000100\",\"epoch\":1,"
                               "\"holder\":{\"instance\":\"p%u.%s\","
                               "\"instanceUID\":\"00000000-0000-4000-8000-000000000001\",\"instanceEpoch\":1,"
                               "\"processID\":\"00000000-0000-4000-8000-000000000001\",\"node\":\"%s\","
                               "\"bootID\":\"00000000-0000-4000-8000-0000000000%s\"},\"attachmentRef\":{"
                               "\"name\":\"p%u.%s.v1\","
                               "\"uid\":\"00000000-0000-4000-8000-000000000002\"},\"acquireTime\":\"2026-11-"
                               "29T12:00:00Z\","
                               "\"leaseDurationSeconds\":30,\"maxLeaseDurationSeconds\":30,"
                               "\"correlationID\":\"0123456789abcdef0123456789abcdef\"}}",
            name, n, pfx, n, i, n, uid_of(r, "ps:s1"), n, node, node, letter == 'b' ? "12" : "11", n, node);
        break;
    case ADM_CB:
        base_fmt(text, sizeof text,
                 META("masque",
                      "ConnectorBinding") "\"spec\":{\"tenant\":\"t%u\",\"connector\":\"%s\",\"vpc\":\"v1\","
                                          "\"serviceName\":\"p%u-s1\",\"identities\":[{\"uri\":\"spiffe://"
                                          "lab/%u/%s\"}]}}",
                 name, n, a, n, n, a);
        break;
    case ADM_EV:
        base_fmt(text, sizeof text,
                 "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"%s\"},"
                 "\"eventTime\":\"2026-11-29T12:00:00.000000Z\",\"type\":\"Normal\",\"reason\":\"Test\","
                 "\"action\":\"Test\",\"note\":\"a test\",\"reportingInstance\":\"%s\","
                 "\"reportingController\":\"masque.galactic.datumapis.com/holdfast\","
                 "\"regarding\":{\"kind\":\"ProviderInstance\",\"namespace\":\"" ADM_NAMESPACE
                 "\",\"name\":\"p%u.%s\"}}",
                 name, node, n, node);
        break;
    case ADM_KIND_N:
        return NULL;
    }
    cJSON *o = cJSON_Parse(text);
    if (!o)
        base_err_set(err, BASE_EINVAL, "template of %s is no JSON: %s", target, text);
    return o;
}

/* ---- paths: spec.holder.node, metadata.annotations."a.b/c", metadata.managedFields[0].time */
struct step {
    char key[128];
    int index; /* -1 = an object's member */
};
static int path_steps(const char *p, size_t len, struct step steps[16], int *ret_n)
{
    const char *end = p + len;
    int n = 0;
    while (p < end) {
        if (n == 16)
            return BASE_EINVAL;
        struct step *s = &steps[n];
        s->index = -1;
        const char *start = p;
        if (*p == '[') {
            s->index = (int)strtol(p + 1, NULL, 10);
            while (p < end && *p != ']')
                p++;
            if (p++ >= end)
                return BASE_EINVAL;
        } else if (*p == '"') {
            start = ++p;
            while (p < end && *p != '"')
                p++;
            if (base_copy_str(s->key, sizeof s->key, (struct base_str){start, (size_t)(p - start)}))
                return BASE_EINVAL;
            if (p++ >= end)
                return BASE_EINVAL;
        } else {
            while (p < end && *p != '.' && *p != '[')
                p++;
            if (p == start ||
                base_copy_str(s->key, sizeof s->key, (struct base_str){start, (size_t)(p - start)}))
                return BASE_EINVAL;
        }
        if (p < end && *p == '.')
            p++;
        n++;
    }
    *ret_n = n;
    return n ? BASE_OK : BASE_EINVAL;
}

static cJSON *step_into(cJSON *o, const struct step *s)
{
    return s->index >= 0 ? cJSON_GetArrayItem(o, s->index) : cJSON_GetObjectItemCaseSensitive(o, s->key);
}

/* The end of the path in a change: '=' or "+=" outside of quotes. */
static size_t path_len(const char *change)
{
    bool in = false;
    size_t i = 0;
    for (; change[i]; i++) {
        if (change[i] == '"')
            in = !in;
        else if (!in && (change[i] == '=' || (change[i] == '+' && change[i + 1] == '=')))
            break;
    }
    return i;
}

/* Numbers go as the digits that were written: a double would round them. */
static cJSON *value_of(struct adm_run *r, const char *text, struct base_err *err)
{
    base_cleanup(base_freep) char *z = adm_expand(r, text, err);
    if (!z)
        return NULL;
    cJSON *v = (z[0] >= '0' && z[0] <= '9') || z[0] == '-' ? cJSON_CreateRaw(z) : cJSON_Parse(z);
    if (!v)
        base_err_set(err, BASE_EINVAL, "value is no JSON: %s", z);
    return v;
}

static int set_value(cJSON *obj, const struct step *steps, int n, bool append, cJSON *value)
{
    cJSON *o = obj;
    for (int i = 0; i < n - 1; i++) {
        cJSON *next = step_into(o, &steps[i]);
        if (!next) {
            if (steps[i].index >= 0)
                return BASE_ENOTFOUND;
            next = cJSON_AddObjectToObject(o, steps[i].key);
        }
        o = next;
    }
    const struct step *last = &steps[n - 1];
    if (append) {
        cJSON *list = step_into(o, last);
        if (!list)
            list = cJSON_AddArrayToObject(o, last->key);
        return cJSON_AddItemToArray(list, value) ? BASE_OK : BASE_ENOMEM;
    }
    if (last->index >= 0)
        return cJSON_ReplaceItemInArray(o, last->index, value) ? BASE_OK : BASE_ENOTFOUND;
    cJSON_DeleteItemFromObjectCaseSensitive(o, last->key);
    return cJSON_AddItemToObject(o, last->key, value) ? BASE_OK : BASE_ENOMEM;
}

static cJSON *find(cJSON *obj, const struct step *steps, int n)
{
    cJSON *o = obj;
    for (int i = 0; i < n && o; i++)
        o = step_into(o, &steps[i]);
    return o;
}

/* ---- macros */
static int change_all(struct adm_run *r, cJSON *obj, struct base_err *err, const char *const *changes)
{
    for (; *changes; changes++) {
        int rc = adm_change(r, obj, *changes, err);
        if (rc)
            return rc;
    }
    return BASE_OK;
}

static int spec_number(const cJSON *obj, const char *key)
{
    const cJSON *spec = cJSON_GetObjectItemCaseSensitive(obj, "spec");
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(spec, key);
    return cJSON_IsNumber(v) ? (int)v->valuedouble : 0;
}

static const char *spec_text(const cJSON *obj, const char *a, const char *b)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(obj, "spec"), a);
    if (b)
        v = cJSON_GetObjectItemCaseSensitive(v, b);
    return cJSON_IsString(v) ? v->valuestring : "";
}

/* Wherever a macro needs text that has no place in a change: set by formatted change. */
static int changef(struct adm_run *r, cJSON *obj, struct base_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static int changef(struct adm_run *r, cJSON *obj, struct base_err *err, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    bool fits = base_vfmt(text, sizeof text, fmt, ap);
    va_end(ap);
    return fits ? adm_change(r, obj, text, err) : base_err_set(err, BASE_ERANGE, "macro: text too long");
}

/* take(NODE,N): a takeover as the contract wants it, with leaseUUID and processID u(N). */
static int macro_take(struct adm_run *r, cJSON *obj, const char *args, struct base_err *err)
{
    const char *comma = strchr(args, ',');
    if (!comma)
        return base_err_set(err, BASE_EINVAL, "take(%s): expected take(a|b,NUMBER)", args);
    unsigned long n = strtoul(comma + 1, NULL, 10);
    const char *node = node_of(args[0]);
    int epoch = spec_number(obj, "epoch"), rc;
    (void)((rc = changef(r, obj, err, "spec.previous={\"node\":\"%s\",\"bootID\":\"%s\",\"epoch\":%d}",
                         spec_text(obj, "holder", "node"), spec_text(obj, "holder", "bootID"), epoch)) ||
           (rc = changef(r, obj, err, "spec.epoch=%d", epoch + 1)) ||
           (rc = changef(r, obj, err, "spec.leaseUUID=\"$u(%lu)\"", n)) ||
           (rc = changef(r, obj, err,
                         "spec.holder={\"instance\":\"$P.%s\",\"instanceUID\":\"$u(1)\",\"instanceEpoch\":1,"
                         "\"processID\":\"$u(%lu)\",\"node\":\"%s\",\"bootID\":\"$u(%s)\"}",
                         node, n, node, args[0] == 'b' ? "12" : "11")) ||
           (rc = changef(r, obj, err, "spec.acquireTime=\"2026-11-29T12:01:00Z\"")) ||
           (rc = changef(r, obj, err, "-spec.releaseTime")));
    return rc;
}

static int macro(struct adm_run *r, cJSON *obj, const char *text, struct base_err *err)
{
    char name[16] = "", args[128] = "";
    if (sscanf(text, "%15[a-z](%127[^)])", name, args) < 1)
        return base_err_set(err, BASE_EINVAL, "'%s' is no change", text);
    int epoch = spec_number(obj, "epoch"), rc;
    if (strcmp(name, "take") == 0)
        return macro_take(r, obj, args, err);
    if (strcmp(name, "acc") == 0) {
        rc = changef(r, obj, err, "status.acceptedEpoch=%d", epoch);
        return rc ? rc
                  : changef(r, obj, err, "status.acceptedLeaseUUID=\"%s\"",
                            spec_text(obj, "leaseUUID", NULL));
    }
    if (strcmp(name, "gate") == 0)
        return changef(r, obj, err,
                       "status.gate={\"epoch\":%d,\"state\":\"%s\",\"reason\":\"Test\",\"since\":\"2026-11-"
                       "29T12:00:00Z\"}",
                       epoch, args);
    if (strcmp(name, "closed") == 0 && strchr(args, ',')) {
        rc = changef(r, obj, err, "status.closedEpoch=%ld", strtol(args, NULL, 10));
        if (!rc)
            rc = changef(r, obj, err, "status.closedReason=\"%s\"", strchr(args, ',') + 1);
        return rc ? rc : changef(r, obj, err, "status.closedTime=\"2026-11-29T12:02:00Z\"");
    }
    if (strcmp(name, "release") == 0)
        return changef(r, obj, err, "spec.releaseTime=\"2026-11-29T12:03:00Z\"");
    if (strcmp(name, "process") == 0) { /* process(N): the next instance epoch, by process u(N) */
        rc = changef(r, obj, err, "spec.epoch=%d", epoch + 1);
        return rc ? rc : changef(r, obj, err, "spec.processID=\"$u(%s)\"", args);
    }
    if (strcmp(name, "ready") == 0) {
        const char *const changes[] = {
            "status.conditions=[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"Ok\",\"message\":\"\","
            "\"lastTransitionTime\":\"2026-11-29T12:00:00Z\"}]",
            NULL};
        return change_all(r, obj, err, changes);
    }
    return base_err_set(err, BASE_EINVAL, "'%s' is no change and no macro", text);
}

int adm_change(struct adm_run *r, cJSON *obj, const char *change, struct base_err *err)
{
    struct step steps[16];
    int n = 0;
    if (change[0] == '-') {
        if (path_steps(change + 1, strlen(change + 1), steps, &n))
            return base_err_set(err, BASE_EINVAL, "'%s': no such path", change);
        cJSON *o = find(obj, steps, n - 1);
        if (steps[n - 1].index >= 0)
            cJSON_DeleteItemFromArray(o, steps[n - 1].index);
        else
            cJSON_DeleteItemFromObjectCaseSensitive(o, steps[n - 1].key);
        return BASE_OK;
    }
    size_t len = path_len(change);
    if (!change[len])
        return macro(r, obj, change, err);
    if (path_steps(change, len, steps, &n))
        return base_err_set(err, BASE_EINVAL, "'%s': no path before '='", change);
    bool append = change[len] == '+';
    cJSON *value = value_of(r, change + len + (append ? 2 : 1), err);
    if (!value)
        return BASE_EINVAL;
    int rc = set_value(obj, steps, n, append, value);
    if (rc) {
        cJSON_Delete(value);
        return base_err_set(err, rc, "'%s': the path leads nowhere", change);
    }
    return BASE_OK;
}

int adm_same(struct adm_run *r, const cJSON *obj, const char *change, struct base_err *err)
{
    struct step steps[16];
    int n = 0;
    bool absent = change[0] == '-';
    size_t len = absent ? strlen(change) : path_len(change);
    if (path_steps(change + absent, len - absent, steps, &n))
        return base_err_set(err, BASE_EINVAL, "'%s': no path", change);
    cJSON *copy = cJSON_Duplicate(obj, true); /* find() walks without const */
    const cJSON *have = find(copy, steps, n);
    base_cleanup(base_freep) char *want = absent ? NULL : adm_expand(r, change + len + 1, err);
    char *text = have ? cJSON_PrintUnformatted(have) : NULL;
    int rc = BASE_OK;
    if (absent && have)
        rc = base_err_set(err, BASE_ECONFLICT, "%s: wanted absent, is %.200s", change + 1, text ? text : "");
    else if (!absent && (!text || !want || strcmp(text, want) != 0))
        rc = base_err_set(err, BASE_ECONFLICT, "%s: is %.200s", change, text ? text : "absent");
    cJSON_free(text);
    cJSON_Delete(copy);
    return rc;
}
