/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/versions.c - versions of this tool, the API server, the CRDs and each agent, and whether they work
 * together.
 */
#include "cli/cli_int.h"

#include <stdarg.h>

#include "cli/skew.h"
#include "cli/verdict.h"
#include "contract/served.h"

static void problem(cJSON *list, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void problem(cJSON *list, const char *fmt, ...)
{
    char text[700];
    va_list ap;

    va_start(ap, fmt);
    (void)base_vfmt(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)cJSON_AddItemToArray(list, cJSON_CreateString(text));
}

int cli_server_version(struct cli *c, char *dst, size_t size, struct base_err *err)
{
    cJSON *doc = cli_api_json(c, "/version", 1 << 20, err);
    const char *text = cli_text(doc, "gitVersion");
    int rc = doc ? BASE_OK : err->code;

    if (!rc)
        rc = text[0] && !base_copy(dst, size, text)
                 ? BASE_OK
                 : base_err_set(err, BASE_EPROTO, "the API server's /version has no gitVersion");
    cJSON_Delete(doc);
    return rc;
}

int cli_served(struct cli *c, const char *group, struct base_err *err)
{
    struct base_buf body;
    char path[200];
    int rc;

    base_buf_init(&body, (size_t)16 << 20);
    (void)base_fmt(path, sizeof path, "/openapi/v3/apis/%s/%s", group, CONTRACT_VERSION);
    rc = cli_api_call(c, "GET", path, NULL, NULL, &body, NULL, err);
    if (rc == BASE_ENOTFOUND)
        rc = base_err_set(err, BASE_EINVAL, "API group %s/%s is not served: apply manifests/crds", group,
                          CONTRACT_VERSION);
    else if (!rc)
        rc = contract_served((struct base_str){body.data ? body.data : "", body.len}, group, err);
    base_buf_fini(&body);
    return rc;
}

/* Of those that are renewed: a row that is over says nothing of what runs now. */
static void agents(const struct cli *c, const struct cli_list *l, cJSON *doc, cJSON *problems)
{
    cJSON *list = cJSON_AddArrayToObject(doc, "agents");
    const char *oldest = NULL, *newest = NULL;

    for (size_t k = 0; k < l->n; k++) {
        const struct contract_instance *i = &l->o[k].u.instance;
        const char *ready = cli_ready_word(i, c->now), *v = i->agent_version;
        bool over = strcmp(ready, "Expired") == 0 || strcmp(ready, "Released") == 0;
        enum cli_skew skew = cli_skew(HOLDFAST_VERSION, v);
        struct cli_version a, b;
        cJSON *o = cJSON_CreateObject();

        cli_add_str(o, "node", i->spec.node);
        cli_add_str(o, "version", v);
        cli_add_str(o, "skewToClient", cli_skew_word(skew));
        (void)cJSON_AddBoolToObject(o, "running", !over);
        (void)cJSON_AddItemToArray(list, o);
        if (over)
            continue;
        if (skew == CLI_SKEW_UNKNOWN)
            problem(problems,
                    "node %s: its agent did not write its version (annotation " CONTRACT_AGENT_ANNOTATION
                    "): it is older than 0.1.0; finish the roll-out",
                    i->spec.node);
        if (skew == CLI_SKEW_TOO_FAR)
            problem(problems,
                    "node %s: agent %s and kubectl-holdfast %s are more than one minor version apart: "
                    "install the tool of the agents' version",
                    i->spec.node, v, HOLDFAST_VERSION);
        if (!cli_version_read(&a, v))
            continue;
        if (!oldest || (cli_version_read(&b, oldest) &&
                        (a.major < b.major || (a.major == b.major && a.minor < b.minor))))
            oldest = v;
        if (!newest || (cli_version_read(&b, newest) &&
                        (a.major > b.major || (a.major == b.major && a.minor > b.minor))))
            newest = v;
    }
    if (oldest && cli_skew(oldest, newest) == CLI_SKEW_TOO_FAR)
        problem(
            problems,
            "agents of %s and of %s run side by side, more than one minor version apart: update one minor "
            "version after the other (kubectl rollout status daemonset/holdfast-agent)",
            oldest, newest);
}

cJSON *cli_version_doc(struct cli *c, bool client_only, bool *ret_blind)
{
    cJSON *doc = cJSON_CreateObject(), *client = cJSON_AddObjectToObject(doc, "client"), *problems, *unseen;
    static const char *const groups[] = {CONTRACT_GROUP, CONTRACT_MASQUE_GROUP};
    struct cli_list instances = {.n = 0};
    struct base_err err = {0};
    char server[64];

    *ret_blind = false;
    cli_add_str(client, "version", HOLDFAST_VERSION);
    cli_add_str(client, "contract", CONTRACT_GROUP "/" CONTRACT_VERSION);
    if (client_only)
        return doc;
    problems = cJSON_CreateArray();
    unseen = cJSON_CreateArray();
    if (cli_server_version(c, server, sizeof server, &err)) {
        problem(unseen, "the API server's version: %s", err.msg);
    } else {
        cli_add_str(doc, "server", server);
        if (!cli_server_new_enough(server))
            problem(problems, "the API server is %s: Kubernetes 1.%d or newer is needed", server,
                    CLI_SERVER_MINOR);
    }
    for (size_t g = 0; g < BASE_LEN(groups); g++) {
        int rc = cJSON_GetArraySize(unseen) ? BASE_OK : cli_served(c, groups[g], &err);

        if (rc == BASE_EINVAL)
            problem(problems, "%s", err.msg);
        else if (rc)
            problem(unseen, "CRDs of %s: %s", groups[g], err.msg);
    }
    if (!cJSON_GetArraySize(unseen) && cli_api_list(c, CONTRACT_INSTANCE, NULL, &instances, &err))
        problem(unseen, "the agents' versions: %s", err.msg);
    if (instances.seen)
        agents(c, &instances, doc, problems);
    cli_list_fini(&instances);
    *ret_blind = cJSON_GetArraySize(unseen) > 0;
    (void)cJSON_AddBoolToObject(doc, "supported", !*ret_blind && !cJSON_GetArraySize(problems));
    (void)cJSON_AddItemToObject(doc, "problems", problems);
    (void)cJSON_AddItemToObject(doc, "notSeen", unseen);
    return doc;
}

static void lines(struct cli *c, const cJSON *doc, const char *key, const char *mark, enum cli_colour colour)
{
    const cJSON *m;

    cJSON_ArrayForEach(m, cJSON_GetObjectItemCaseSensitive(doc, key))(void)
        fprintf(c->out, "%s%s%s %s\n", cli_on(c, colour), mark, cli_off(c), m->valuestring);
}

static void print(struct cli *c, const cJSON *doc)
{
    static const char *const head[] = {"NODE", "AGENT", "SKEW", "RUNNING"};
    const cJSON *agent;
    struct cli_table t;

    (void)fprintf(c->out, "kubectl-holdfast %s (contract %s/%s)\n", HOLDFAST_VERSION, CONTRACT_GROUP,
                  CONTRACT_VERSION);
    if (cli_text(doc, "server")[0])
        (void)fprintf(c->out, "API server %s\n", cli_text(doc, "server"));
    cli_table_init(&t, head, BASE_LEN(head), 0);
    cJSON_ArrayForEach(agent, cJSON_GetObjectItemCaseSensitive(doc, "agents"))
    {
        struct cli_row *r = cli_table_row(&t);
        const char *skew = cli_text(agent, "skewToClient"), *v = cli_text(agent, "version");
        bool running = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(agent, "running"));

        if (!r)
            continue;
        cli_cell(&t, r, 0, CLI_STRONG, "%s", cli_text(agent, "node"));
        cli_cell(&t, r, 1, CLI_PLAIN, "%s", v[0] ? v : "-");
        cli_cell(&t, r, 2, strcmp(skew, "TooFar") == 0 ? CLI_BAD : CLI_PLAIN, "%s", skew);
        cli_cell(&t, r, 3, CLI_PLAIN, "%s", running ? "yes" : "no");
    }
    if (t.rows)
        cli_table_print(c, &t, "");
    else
        cli_table_fini(&t);
    lines(c, doc, "problems", "problem:", CLI_BAD);
    lines(c, doc, "notSeen", "not seen:", CLI_DOUBT);
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(doc, "supported")))
        (void)fprintf(c->out, "these versions work together\n");
}

int cli_versions(struct cli *c)
{
    bool blind;
    cJSON *doc = cli_version_doc(c, c->a.client_only, &blind);
    int code = blind                                                                   ? CLI_EXIT_BLIND
               : cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(doc, "problems")) ? CLI_EXIT_FOUND
                                                                                       : CLI_EXIT_OK;

    if (c->a.format == CLI_JSON || c->a.format == CLI_YAML) {
        cli_print_doc(c, doc);
        return code;
    }
    print(c, doc);
    cJSON_Delete(doc);
    return code;
}
