/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/dump.c - what somebody who helps needs to see, in one tar archive, and nothing that is secret.
 *
 * By allow-list, never by deny-list: objects are decoded into the contract's fields and written from those,
 * so that labels, annotations and fields that Holdfast does not know are left out; of pods and Events named
 * members are taken; of the agents' pages the lines of a known shape. Secrets, environments and logs are
 * never read.
 */
#include "cli/cli_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/tar.h"

#define AGENT_ACCOUNT "holdfast-agent"
#define TOP "holdfast-dump/"
#define METRICS_PORT 9781
#define HEALTH_PORT 9780

struct dump {
    struct cli *c;
    FILE *out;
    struct base_buf readme; /* README.txt: what is in it, and what could not be seen */
    unsigned files, unseen;
    int failed;
};

static void put(struct dump *d, const char *name, struct base_str content)
{
    struct base_err err = {0};
    char full[300];

    if (!base_fmt(full, sizeof full, TOP "%s", name) || cli_tar_add(d->out, full, content, d->c->now, &err)) {
        (void)base_buf_addf(&d->readme, "NOT SEEN  %s: %s\n", name,
                            err.msg[0] ? err.msg : "the name is too long");
        d->unseen++;
        return;
    }
    d->files++;
    (void)base_buf_addf(&d->readme, "          %s\n", name);
}

static void unseen(struct dump *d, const char *what, const struct base_err *err)
{
    (void)base_buf_addf(&d->readme, "NOT SEEN  %s: %s\n", what, err->msg);
    (void)fprintf(d->c->err, "not seen: %s: %s\n", what, err->msg);
    d->unseen++;
}

static void put_doc(struct dump *d, const char *name, cJSON *doc)
{
    char *text = cJSON_Print(doc);

    if (text)
        put(d, name, base_str_of(text));
    else
        d->failed = BASE_ENOMEM;
    cJSON_free(text);
    cJSON_Delete(doc);
}

/* ---- objects of the contract: one line each */

static void put_kind(struct dump *d, enum contract_kind kind)
{
    struct cli_list l = {.n = 0};
    struct base_err err = {0};
    struct base_buf b;
    char name[80];

    (void)base_fmt(name, sizeof name, "objects/%s.jsonl", contract_kind_plural(kind));
    if (cli_api_list(d->c, kind, NULL, &l, &err)) {
        unseen(d, name, &err);
        return;
    }
    base_buf_init(&b, (size_t)1 << 30);
    for (size_t k = 0; k < l.n && !b.failed; k++) {
        (void)contract_encode(&b, &l.o[k], BASE_STR(""), &err);
        (void)base_buf_addz(&b, "\n");
    }
    if (b.failed)
        unseen(d, name, &(struct base_err){.msg = "too large"});
    else
        put(d, name, (struct base_str){b.data ? b.data : "", b.len});
    base_buf_fini(&b);
    cli_list_fini(&l);
}

/* ---- members that are named */

/* Copies o.path ("spec.nodeName") when it is text, number or truth. */
static void pick(cJSON *to, const cJSON *from, const char *path)
{
    const cJSON *v = from;
    char key[64];

    for (const char *p = path; *p; p += strcspn(p, "."), p += *p == '.') {
        (void)base_copy_str(key, sizeof key, (struct base_str){p, strcspn(p, ".")});
        v = cJSON_GetObjectItemCaseSensitive(v, key);
    }
    if (cJSON_IsString(v) || cJSON_IsNumber(v) || cJSON_IsBool(v))
        (void)cJSON_AddItemToObject(to, path, cJSON_Duplicate(v, false));
}

static void pick_all(cJSON *to, const cJSON *from, const char *const *paths)
{
    for (; *paths; paths++)
        pick(to, from, *paths);
}

static void put_events(struct dump *d)
{
    static const char *const paths[] = {"metadata.name",
                                        "type",
                                        "reason",
                                        "action",
                                        "note",
                                        "eventTime",
                                        "reportingController",
                                        "reportingInstance",
                                        "regarding.kind",
                                        "regarding.name",
                                        "series.count",
                                        "series.lastObservedTime",
                                        NULL};
    struct base_err err = {0};
    cJSON *doc = cli_events_list(d->c, &err), *list;
    const cJSON *e;

    if (!doc) {
        unseen(d, "events.json", &err);
        return;
    }
    list = cJSON_CreateArray();
    cJSON_ArrayForEach(e, cJSON_GetObjectItemCaseSensitive(doc, "items"))
    {
        cJSON *o = cJSON_CreateObject();

        pick_all(o, e, paths);
        (void)cJSON_AddItemToArray(list, o);
    }
    put_doc(d, "events.json", list);
    cJSON_Delete(doc);
}

/* ---- the agents */

static bool metric_line(const char *z, size_t n)
{
    static const char *const heads[] = {"holdfast_",        "process_",        "# HELP holdfast_",
                                        "# TYPE holdfast_", "# HELP process_", "# TYPE process_"};

    for (size_t i = 0; i < BASE_LEN(heads); i++)
        if (n > strlen(heads[i]) && memcmp(z, heads[i], strlen(heads[i])) == 0)
            return true;
    return false;
}

static bool ready_line(const char *z, size_t n)
{
    return n > 3 && z[0] == '[' && (z[1] == '+' || z[1] == '-') && z[2] == ']';
}

static void put_page(struct dump *d, const char *node, const char *pod, unsigned port, const char *page,
                     bool (*keep)(const char *z, size_t n))
{
    struct base_buf body, kept;
    struct base_err err = {0};
    char path[512], name[256];
    int status = 0, rc;

    (void)base_fmt(name, sizeof name, "agents/%s/%s.txt", node, page);
    (void)base_fmt(path, sizeof path, "/api/v1/namespaces/%s/pods/http:%s:%u/proxy/%s",
                   cli_api_namespace(d->c), pod, port, page);
    base_buf_init(&body, (size_t)16 << 20);
    base_buf_init(&kept, (size_t)16 << 20);
    rc = cli_api_call(d->c, "GET", path, NULL, NULL, &body, &status, &err);
    if (rc && !(status == 503 && keep == ready_line)) { /* not ready is what one wants to see */
        unseen(d, name, &err);
    } else {
        for (size_t i = 0; i < body.len;) {
            size_t n = strcspn(body.data + i, "\n");

            if (keep(body.data + i, n)) {
                (void)base_buf_add(&kept, body.data + i, n);
                (void)base_buf_addz(&kept, "\n");
            }
            i += n + 1;
        }
        put(d, name, (struct base_str){kept.data ? kept.data : "", kept.len});
    }
    base_buf_fini(&body);
    base_buf_fini(&kept);
}

static void put_pods(struct dump *d)
{
    static const char *const paths[] = {"metadata.name",
                                        "metadata.creationTimestamp",
                                        "metadata.deletionTimestamp",
                                        "spec.nodeName",
                                        "spec.hostNetwork",
                                        "spec.serviceAccountName",
                                        "status.phase",
                                        "status.reason",
                                        "status.qosClass",
                                        NULL};
    static const char *const container[] = {"name",
                                            "ready",
                                            "restartCount",
                                            "image",
                                            "imageID",
                                            "state.running.startedAt",
                                            "state.waiting.reason",
                                            "state.terminated.reason",
                                            "state.terminated.exitCode",
                                            "lastState.terminated.reason",
                                            "lastState.terminated.exitCode",
                                            "lastState.terminated.finishedAt",
                                            NULL};
    struct base_err err = {0};
    cJSON *doc, *list = cJSON_CreateArray();
    const cJSON *pod, *s;
    char path[256];

    (void)base_fmt(path, sizeof path,
                   "/api/v1/namespaces/%s/pods?fieldSelector=spec.serviceAccountName%%3D" AGENT_ACCOUNT,
                   cli_api_namespace(d->c));
    doc = cli_api_json(d->c, path, (size_t)64 << 20, &err);
    if (!doc)
        unseen(d, "pods.json and the agents' pages (pods, pods/proxy: manifests/options/audit-reader.yaml)",
               &err);
    cJSON_ArrayForEach(pod, cJSON_GetObjectItemCaseSensitive(doc, "items"))
    {
        cJSON *o = cJSON_CreateObject(), *states;
        const char *name, *node;

        pick_all(o, pod, paths);
        states = cJSON_AddArrayToObject(o, "containers");
        cJSON_ArrayForEach(s, cJSON_GetObjectItemCaseSensitive(
                                  cJSON_GetObjectItemCaseSensitive(pod, "status"), "containerStatuses"))
        {
            cJSON *k = cJSON_CreateObject();

            pick_all(k, s, container);
            (void)cJSON_AddItemToArray(states, k);
        }
        name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "metadata.name"));
        node = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "spec.nodeName"));
        (void)cJSON_AddItemToArray(list, o);
        if (!name || !node || !base_is_subdomain(base_str_of(name), 253) ||
            !base_is_subdomain(base_str_of(node), CONTRACT_NODE_SIZE - 1))
            continue;
        put_page(d, node, name, METRICS_PORT, "metrics", metric_line);
        put_page(d, node, name, HEALTH_PORT, "readyz", ready_line);
    }
    if (doc)
        put_doc(d, "pods.json", list);
    else
        cJSON_Delete(list);
    cJSON_Delete(doc);
}

/* ---- the whole */

static void fill(struct dump *d)
{
    static const enum contract_kind kinds[] = {CONTRACT_INSTANCE, CONTRACT_ATTACHMENT, CONTRACT_SERVICE,
                                               CONTRACT_CLAIM, CONTRACT_BINDING};
    char when[BASE_RFC3339_SIZE];
    bool blind, failed;

    base_rfc3339(when, d->c->now);
    (void)base_buf_addf(
        &d->readme,
        "Holdfast, namespace %s, %s, by kubectl-holdfast %s.\n\nOf objects only the contract's own "
        "fields: no labels, no annotations. No Secret, no environment,\nno log, no credential is in "
        "here. Names of tenants, connectors, nodes and addresses are.\n\n",
        cli_api_namespace(d->c), when, HOLDFAST_VERSION);
    put_doc(d, "version.json", cli_version_doc(d->c, false, &blind));
    put_doc(d, "check.json", cli_check_doc(d->c, &blind, &failed));
    for (size_t i = 0; i < BASE_LEN(kinds); i++)
        put_kind(d, kinds[i]);
    put_events(d);
    put_pods(d);
    put(d, "README.txt", (struct base_str){d->readme.data ? d->readme.data : "", d->readme.len});
    cli_tar_end(d->out);
}

/* For nobody but the caller; a file that is there stays as it is. */
static FILE *create(struct cli *c, const char *file)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    if (!f)
        (void)cli_fail(c, CLI_EXIT_USAGE, "--file %.200s: %s%s", file, strerror(errno),
                       errno == EEXIST ? "; name another, or remove it" : "");
    if (!f && fd >= 0)
        (void)close(fd);
    return f;
}

int cli_dump(struct cli *c)
{
    struct dump d = {.c = c};
    struct base_err err = {0};
    char name[64], when[BASE_RFC3339_SIZE];
    const char *file = c->a.file;
    bool to_stdout = file && strcmp(file, "-") == 0;

    if (cli_api_open(c, &err))
        return cli_fail(c, CLI_EXIT_BLIND, "%s", err.msg);
    if (to_stdout && isatty(fileno(c->out)))
        return cli_fail(c, CLI_EXIT_USAGE, "--file -: standard output is a terminal; name a file or a pipe");
    if (!file) {
        base_rfc3339(when, c->now);
        (void)base_fmt(name, sizeof name, "holdfast-dump-%.4s%.2s%.2s-%.2s%.2s%.2s.tar", when, when + 5,
                       when + 8, when + 11, when + 14, when + 17);
        file = name;
    }
    d.out = to_stdout ? c->out : create(c, file);
    if (!d.out)
        return CLI_EXIT_USAGE;
    base_buf_init(&d.readme, 1 << 20);
    fill(&d);
    if (d.readme.failed)
        d.failed = d.readme.failed;
    base_buf_fini(&d.readme);
    if (fflush(d.out) != 0 || ferror(d.out))
        d.failed = BASE_EIO;
    if (!to_stdout && fclose(d.out) != 0)
        d.failed = BASE_EIO;
    if (d.failed) {
        if (!to_stdout)
            (void)unlink(file);
        return cli_fail(c, CLI_EXIT_BLIND, "%.200s: could not be written whole (%s), and was removed", file,
                        base_code_name(d.failed));
    }
    (void)fprintf(c->err, "%s: %u files, %u not seen\n", to_stdout ? "standard output" : file, d.files,
                  d.unseen);
    return d.unseen ? CLI_EXIT_BLIND : CLI_EXIT_OK;
}
