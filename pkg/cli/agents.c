/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/agents.c - the audit trail as the agents give it out: through the API server's pod proxy, or directly.
 *
 * The token that an agent sees is good for its audit page only (its own audience, ten minutes): on plain HTTP
 * and through proxies no credential of the API server is ever sent.
 */
#include "cli/cli_int.h"

#include <errno.h>

#include "kube/client.h"

#define ACCOUNT "holdfast-auditor"
#define AGENT_ACCOUNT "holdfast-agent"
#define TOKEN_MAX 16384
#define PAGES_MAX 64

static void trim_end(char *z)
{
    for (size_t n = strlen(z); n && (z[n - 1] == '\n' || z[n - 1] == '\r' || z[n - 1] == ' '); n--)
        z[n - 1] = '\0';
}

static int token_file(const char *path, char *dst, size_t size, struct base_err *err)
{
    FILE *f = fopen(path, "re");
    size_t n;

    if (!f)
        return base_err_sys(err, BASE_EIO, errno, "--agent-token %s: cannot be read", path);
    n = fread(dst, 1, size - 1, f);
    (void)fclose(f);
    dst[n] = '\0';
    trim_end(dst);
    if (!dst[0] ||
        strlen(dst) != strspn(dst, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="))
        return base_err_set(err, BASE_EINVAL, "--agent-token %s: holds no bearer token", path);
    return BASE_OK;
}

static int token_request(struct cli *c, char *dst, size_t size, struct base_err *err)
{
    static const char body[] =
        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenRequest\",\"spec\":{"
        "\"audiences\":[\"" AUDIT_PAGE_AUDIENCE "\"],\"expirationSeconds\":600}}";
    char path[256];
    struct base_buf answer;
    cJSON *doc;
    const char *token;
    int rc = cli_api_open(c, err);

    if (rc)
        return rc;
    base_buf_init(&answer, 1 << 20);
    (void)base_fmt(path, sizeof path, "/api/v1/namespaces/%s/serviceaccounts/" ACCOUNT "/token",
                   cli_api_namespace(c));
    rc = cli_api_call(c, "POST", path, body, NULL, &answer, NULL, err);
    if (rc) {
        base_buf_fini(&answer);
        return base_err_wrap(err,
                             "a token of the account " ACCOUNT
                             " (manifests/options/audit-reader.yaml makes it; or give --agent-token FILE)");
    }
    doc = cJSON_ParseWithLength(answer.data, answer.len);
    token = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(doc, "status"), "token"));
    rc = token && token[0] && !base_copy(dst, size, token)
             ? BASE_OK
             : base_err_set(err, BASE_EPROTO, "the API server's TokenRequest answer holds no token");
    cJSON_Delete(doc);
    base_buf_fini(&answer);
    return rc;
}

static void add_time(struct base_buf *b, const char *key, base_wall t)
{
    char text[BASE_RFC3339_SIZE];

    if (!t)
        return;
    base_rfc3339(text, t);
    (void)base_buf_addf(b, "&%s=%s", key, text);
}

static void add_query(struct base_buf *b, const struct audit_query *q, uint64_t after)
{
    char id[BASE_CORRELATION_SIZE];

    (void)base_buf_addf(b, "/audit?limit=1000&after=%llu", (unsigned long long)after);
    if (!base_correlation_is_zero(&q->correlation)) {
        base_correlation_text(id, &q->correlation);
        (void)base_buf_addf(b, "&correlationID=%s", id);
    }
    for (uint32_t i = 0; i < q->n_objects; i++)
        (void)base_buf_addf(b, "&object=%s", q->objects[i]);
    if (q->suffix[0])
        (void)base_buf_addf(b, "&connector=%s", q->suffix);
    add_time(b, "since", q->since);
    add_time(b, "until", q->until);
}

static const char *meaning(int status)
{
    return status == 401   ? "the agent does not know the token (audience " AUDIT_PAGE_AUDIENCE ")"
           : status == 403 ? "this account may not read the audit page (ClusterRole holdfast-audit-reader, "
                             "manifests/options/audit-reader.yaml)"
           : status == 404 ? "it has no audit page (audit.page is off, or an older version)"
           : status == 429 ? "it is busy with other readers: try again"
           : status == 502 || status == 504 ? "the agent could not be reached"
                                            : "the agent cannot review tokens now: ClusterRole "
                                              "holdfast-agent-reviews bound to it? API server up?";
}

/* All pages of one agent. `address` for a direct read, else `prefix` is the proxy's path. */
static void read_agent(struct cli *c, struct cli_trail *t, const struct audit_query *q, const char *node,
                       const char *address, const char *prefix, const char *header)
{
    uint64_t after = q->after, next = 0;

    for (unsigned page = 0; page < PAGES_MAX; page++) {
        struct base_err err = {0};
        struct base_buf path, body;
        int status = 0, rc;

        base_buf_init(&path, 32768);
        base_buf_init(&body, (size_t)32 << 20);
        if (prefix)
            (void)base_buf_addz(&path, prefix);
        add_query(&path, q, after);
        rc = path.failed ? base_err_set(&err, path.failed, "no memory")
             : address   ? cli_api_plain(c, address, path.data, header, &body, &status, &err)
                         : cli_api_call(c, "GET", path.data, NULL, header, &body, &status, &err);
        if (status >= 300) {
            char said[160] = "";

            if (body.len) /* the agent's own words: one line of text */
                (void)base_fmt(said, sizeof said, ": %.*s", (int)strcspn(body.data, "\n{"), body.data);
            cli_trail_blind(t, "audit of %s: %d, %s%s", node, status, meaning(status), said);
            rc = BASE_EDENIED;
        } else if (rc) {
            cli_trail_blind(t, "audit of %s: %s", node, err.msg);
        } else {
            rc = cli_trail_page(t, q, (struct base_str){body.data, body.len}, &next, &err);
            if (rc)
                cli_trail_blind(t, "audit of %s: %s", node, err.msg);
        }
        base_buf_fini(&path);
        base_buf_fini(&body);
        if (rc || !next)
            return;
        after = next;
    }
    cli_trail_blind(t, "audit of %s: more than %d pages; narrow the question (--since)", node, PAGES_MAX);
}

static void each_pod(struct cli *c, struct cli_trail *t, const struct audit_query *q, const char *header)
{
    struct base_err err = {0};
    struct base_buf answer;
    char path[512];
    cJSON *doc;
    const cJSON *pod;
    unsigned n = 0;
    int rc;

    base_buf_init(&answer, (size_t)64 << 20);
    (void)base_fmt(path, sizeof path,
                   "/api/v1/namespaces/%s/pods?fieldSelector=spec.serviceAccountName%%3D" AGENT_ACCOUNT,
                   cli_api_namespace(c));
    rc = cli_api_call(c, "GET", path, NULL, NULL, &answer, NULL, &err);
    if (rc) {
        cli_trail_blind(t, "the agents' audit pages: %s", err.msg);
        base_buf_fini(&answer);
        return;
    }
    doc = cJSON_ParseWithLength(answer.data, answer.len);
    cJSON_ArrayForEach(pod, cJSON_GetObjectItemCaseSensitive(doc, "items"))
    {
        const char *name = cJSON_GetStringValue(
            cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(pod, "metadata"), "name"));
        const char *node = cJSON_GetStringValue(
            cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(pod, "spec"), "nodeName"));

        if (!name || !base_is_subdomain(base_str_of(name), 253))
            continue;
        n++;
        (void)base_fmt(path, sizeof path, "/api/v1/namespaces/%s/pods/http:%s:%u/proxy", cli_api_namespace(c),
                       name, c->a.agent_port);
        read_agent(c, t, q, node ? node : name, NULL, path, header);
    }
    if (!n)
        cli_trail_blind(t, "the agents' audit pages: no pod of the account " AGENT_ACCOUNT " in namespace %s",
                        cli_api_namespace(c));
    cJSON_Delete(doc);
    base_buf_fini(&answer);
}

void cli_trail_agents(struct cli *c, struct cli_trail *t, const struct audit_query *q)
{
    char *token = base_calloc(1, TOKEN_MAX), *header = base_calloc(1, TOKEN_MAX + 64);
    struct base_err err = {0};
    int rc = BASE_ENOMEM;

    if (token && header)
        rc = c->a.agent_token ? token_file(c->a.agent_token, token, TOKEN_MAX, &err)
                              : token_request(c, token, TOKEN_MAX, &err);
    if (rc) {
        cli_trail_blind(t, "the agents' audit pages: %s", err.msg);
    } else {
        for (size_t i = 0; i < c->a.n_agents; i++) {
            const char *eq = strchr(c->a.agents[i], '=');
            char node[CONTRACT_NODE_SIZE];

            (void)base_copy_str(node, sizeof node,
                                (struct base_str){c->a.agents[i], (size_t)(eq - c->a.agents[i])});
            (void)base_fmt(header, TOKEN_MAX + 64, "Authorization: Bearer %s", token);
            read_agent(c, t, q, node, eq + 1, NULL, header);
        }
        if (c->a.from_agents) { /* the proxy takes Authorization away: it is the API server's own */
            (void)base_fmt(header, TOKEN_MAX + 64, "Holdfast-Authorization: Bearer %s", token);
            each_pod(c, t, q, header);
        }
    }
    if (token)
        memset(token, 0, TOKEN_MAX);
    if (header)
        memset(header, 0, TOKEN_MAX + 64);
    base_free(token);
    base_free(header);
}
