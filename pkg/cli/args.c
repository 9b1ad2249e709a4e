/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/args.c - the command line: one row per flag, with the commands that take it.
 */
#include "cli/cli_int.h"

#include <stdlib.h>
#include <strings.h>

#define C(x) (1u << (x))
#define ALL_API                                                                                              \
    (C(CLI_STATUS) | C(CLI_SHOW) | C(CLI_EXPLAIN) | C(CLI_PRUNE) | C(CLI_INSTANCES) | C(CLI_CLAIMS) |        \
     C(CLI_SESSIONS) | C(CLI_DRAIN) | C(CLI_UNDRAIN) | C(CLI_EVENTS) | C(CLI_VERSION) | C(CLI_CHECK) |       \
     C(CLI_DUMP))
#define ALL_OUT ((ALL_API & ~C(CLI_DUMP)) | C(CLI_VERIFY))

enum flag_id {
    F_HELP,
    F_OUTPUT,
    F_NAMESPACE,
    F_CONTEXT,
    F_KUBECONFIG,
    F_CORRELATION,
    F_CONNECTOR,
    F_SINCE,
    F_UNTIL,
    F_LIMIT,
    F_KEY,
    F_FROM_AGENTS,
    F_AGENT,
    F_AGENT_PORT,
    F_AGENT_TOKEN,
    F_DRY_RUN,
    F_RETENTION,
    F_TIMEOUT,
    F_CLIENT,
    F_FILE,
};
static const struct flag {
    enum flag_id id;
    char letter;
    const char *name, *value, *what;
    unsigned commands;
} flags[] = {
    {F_CORRELATION, 0, "correlation-id", "ID", "records of this request: 32 hex digits, as in logs and rows",
     C(CLI_SHOW)},
    {F_CONNECTOR, 0, "connector", "NAME", "records of this connector: NAME or TENANT.NAME", C(CLI_SHOW)},
    {F_SINCE, 0, "since", "T", "records from T on: 10m, 2h, 7d, or 2026-11-29T21:08:22Z",
     C(CLI_SHOW) | C(CLI_EXPLAIN)},
    {F_UNTIL, 0, "until", "T", "records before T", C(CLI_SHOW) | C(CLI_EXPLAIN)},
    {F_LIMIT, 0, "limit", "N", "the newest N records at most (1000)", C(CLI_SHOW) | C(CLI_EXPLAIN)},
    {F_KEY, 0, "key", "FILE", "public key (PEM, Ed25519) of the checkpoints; may be given again",
     C(CLI_VERIFY)},
    {F_FROM_AGENTS, 0, "from-agents", NULL,
     "read the audit trail from the agents, through the API server's pod proxy",
     C(CLI_SHOW) | C(CLI_EXPLAIN)},
    {F_AGENT, 0, "agent", "NODE=ADDRESS:PORT", "or from this agent directly (plain HTTP); may be given again",
     C(CLI_SHOW) | C(CLI_EXPLAIN)},
    {F_AGENT_PORT, 0, "agent-port", "PORT", "port of the agents' metrics page (9781)",
     C(CLI_SHOW) | C(CLI_EXPLAIN)},
    {F_AGENT_TOKEN, 0, "agent-token", "FILE",
     "bearer token for the agents; default: one is asked for the account holdfast-auditor",
     C(CLI_SHOW) | C(CLI_EXPLAIN)},
    {F_DRY_RUN, 0, "dry-run", NULL, "delete nothing, say for each row why it would go or stay", C(CLI_PRUNE)},
    {F_RETENTION, 0, "retention", "DURATION",
     "for rows whose binding says none: 24h; 10m, 2h, 7d (a binding's own retentionSeconds wins)",
     C(CLI_PRUNE)},
    {F_TIMEOUT, 0, "timeout", "DURATION", "how long to wait (5m); what was begun goes on after it",
     C(CLI_DRAIN) | C(CLI_UNDRAIN)},
    {F_CLIENT, 0, "client", NULL, "only this tool's own version; asks no cluster", C(CLI_VERSION)},
    {F_FILE, 'f', "file", "FILE", "where to write it (holdfast-dump-TIME.tar here); - is standard output",
     C(CLI_DUMP)},
    {F_OUTPUT, 'o', "output", "FORMAT", "json, yaml or wide", ALL_OUT},
    {F_NAMESPACE, 'n', "namespace", "NAME", "namespace of the objects (the context's, else holdfast-system)",
     ALL_API},
    {F_CONTEXT, 0, "context", "NAME", "context of the kubeconfig", ALL_API},
    {F_KUBECONFIG, 0, "kubeconfig", "FILE", "kubeconfig file ($KUBECONFIG, in-cluster, ~/.kube/config)",
     ALL_API},
    {F_HELP, 'h', "help", NULL, "this text", ALL_OUT | C(CLI_DUMP) | C(CLI_COMPLETION) | C(CLI_HELP)},
};

static const struct command {
    enum cli_command_id id;
    const char *word, *sub, *usage, *what, *more;
} commands[] = {
    {CLI_STATUS, "status", NULL, "status [NODE…]",
     "a line a node, its claims below; exit 1 when one is not Ready",
     "READY is the foundation's condition; Expired = the lease was not renewed in time, Released = given "
     "back.\n"
     "GATE is the forwarding gate of the claim's own epoch; '-' = none yet. CLOSED: this epoch and every "
     "older\n"
     "one is closed on every node.\n"},
    {CLI_VERIFY, "audit", "verify", "audit verify FILE|DIR…",
     "verify the chain of audit trails; exit 1 with file:line and what is wrong",
     "A directory is one trail: its audit-*.jsonl in order, then audit.jsonl. Files of one directory that "
     "are\n"
     "named one after the other are one trail in the order given. A trail may begin in the middle (the "
     "oldest\n"
     "files are deleted by retention). With --key the signed checkpoints are verified too, and what comes "
     "after\n"
     "the last one is said to be unsigned.\n"},
    {CLI_SHOW, "audit", "show", "audit show [FILE|DIR…]", "records of a request, a connector or a time",
     "At least one of --correlation-id, --connector and --since. -o json gives an object with the records, "
     "what\n"
     "was read and what could not be seen.\n"},
    {CLI_EXPLAIN, "explain", NULL, "explain CONNECTOR|CORRELATION-ID [FILE|DIR…]",
     "what is authoritative now, why, and what to do next",
     "Shows the operation, its takeover, expiry or reject, the current row, the gate and the agent's "
     "execution\n"
     "context side by side. The audit trail is read from the files and directories named, or from the "
     "agents;\n"
     "what could not be seen is said. Times are compared with this machine's clock.\n"},
    {CLI_PRUNE, "claims", "prune", "claims prune [--dry-run]",
     "delete claims past their retention that are released or that no binding reserves",
     "Nothing else is deleted, and each deletion carries the uid and resourceVersion that it was decided "
     "on.\n"
     "A deleted row's finalizer keeps it until the foundation has closed every epoch of it.\n"},
    {CLI_CLAIMS, "claims", "list", "claims list [NODE…]", "the claims, below the node that holds them",
     "The same as status, without the nodes' own lines.\n"},
    {CLI_INSTANCES, "instances", NULL, "instances [NODE…]", "a line a node; exit 1 when one is not Ready",
     "The same as status, without the claims.\n"},
    {CLI_SESSIONS, "sessions", NULL, "sessions [CONNECTOR…]",
     "a line a connector: its prefix, where its last session is or was, whether it forwards",
     "STATE: Forwarding = its gate is open; Waiting = claimed, not open; None = no claim is held; "
     "Suspended.\n"},
    {CLI_DRAIN, "drain", NULL, "drain NODE", "take a node out of service; waits until no claim is held there",
     "Each connector of the node goes to another edge. Undone by undrain; a restart of the agent does not "
     "undo "
     "it.\n"},
    {CLI_UNDRAIN, "undrain", NULL, "undrain NODE", "put it back; waits until it is Ready", ""},
    {CLI_EVENTS, "events", NULL, "events", "Holdfast's Kubernetes Events",
     "Agents write them with audit.events: on.\n"},
    {CLI_COMPLETION, "completion", NULL, "completion bash", "a completion script for bash",
     "source <(kubectl holdfast completion bash)\n"},
    {CLI_CHECK, "check", NULL, "check",
     "look at everything in the cluster that Holdfast needs; says what to do",
     "API server, CRDs with every field, admission policies, your permissions, the namespace's Pod Security "
     "label,\ninstances, versions. Only reads. The node's side: `holdfast-agent check` in an agent's pod.\n"},
    {CLI_DUMP, "dump", NULL, "dump [-f FILE]",
     "write what somebody who helps needs to see into a tar archive",
     "Objects (only the contract's fields), Events, what check and version say, state of the agents' pods, "
     "and "
     "their\nmetrics and readyz through the API server's pod proxy. No Secret, label, annotation, "
     "environment or "
     "log.\nExit status 3: something could not be seen; README.txt in the archive says what.\n"},
    {CLI_VERSION, "version", NULL, "version",
     "versions of this tool, API server, CRDs and agents; exit 1 when they do not work together",
     "Agents, this tool and agents among each other may be one minor version apart. AGENT is what each wrote "
     "into\nits ProviderInstance.\n"},
    {CLI_HELP, "help", NULL, "help", "this text", ""},
};

int cli_duration(const char *text, int64_t *ret_s)
{
    static const struct {
        char unit;
        int64_t s;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    size_t n = strlen(text);
    uint64_t v;

    if (n < 2 || base_parse_u64((struct base_str){text, n - 1}, 36500 * 86400ULL, &v))
        return BASE_EINVAL;
    for (size_t i = 0; i < BASE_LEN(units); i++)
        if (text[n - 1] == units[i].unit) {
            *ret_s = (int64_t)v * units[i].s;
            return *ret_s > 36500LL * 86400 ? BASE_EINVAL : BASE_OK;
        }
    return BASE_EINVAL;
}

static int point(const char *flag, const char *text, base_wall now, base_wall *ret, struct base_err *err)
{
    int64_t s;

    if (!cli_duration(text, &s)) {
        *ret = now - s * 1000000;
        return BASE_OK;
    }
    if (!base_rfc3339_parse(base_str_of(text), ret))
        return BASE_OK;
    return base_err_set(err, BASE_EINVAL,
                        "--%s '%.60s': no time; write how long ago (90s, 10m, 2h, 7d) or a moment "
                        "(2026-11-29T21:08:22Z)",
                        flag, text);
}

static int number(const char *flag, const char *text, uint64_t lo, uint64_t hi, int64_t *ret,
                  struct base_err *err)
{
    uint64_t v;

    if (base_parse_u64(base_str_of(text), hi, &v) || v < lo)
        return base_err_set(err, BASE_EINVAL, "--%s '%.60s': must be a whole number from %llu to %llu", flag,
                            text, (unsigned long long)lo, (unsigned long long)hi);
    *ret = (int64_t)v;
    return BASE_OK;
}

static int output(struct cli_args *a, const char *v, struct base_err *err)
{
    static const char *const names[] = {[CLI_WIDE] = "wide", [CLI_JSON] = "json", [CLI_YAML] = "yaml"};

    for (int i = CLI_WIDE; i <= CLI_YAML; i++)
        if (strcmp(v, names[i]) == 0) {
            a->format = (enum cli_format)i;
            return BASE_OK;
        }
    return base_err_set(err, BASE_EINVAL, "--output '%.60s': must be json, yaml or wide", v);
}

static int set(struct cli_args *a, const struct flag *f, const char *v, base_wall now, struct base_err *err)
{
    int64_t n;
    int rc;

    switch (f->id) {
    case F_HELP:
        a->help = true;
        return BASE_OK;
    case F_OUTPUT:
        return output(a, v, err);
    case F_NAMESPACE:
        a->ns = v;
        if (base_is_label(base_str_of(v), 63))
            return BASE_OK;
        return base_err_set(err, BASE_EINVAL,
                            "--namespace '%.80s': must be a namespace's name: a-z, 0-9, '-', at most 63 "
                            "characters",
                            v);
    case F_CONTEXT:
        a->context = v;
        return BASE_OK;
    case F_KUBECONFIG:
        a->kubeconfig = v;
        return BASE_OK;
    case F_CORRELATION:
        if (!base_correlation_parse(&a->correlation, base_str_of(v)))
            return BASE_OK;
        return base_err_set(
            err, BASE_EINVAL,
            "--correlation-id '%.80s': must be 32 hex digits in lower case, as in a log line, an "
            "audit record or a claim's spec.correlationID",
            v);
    case F_CONNECTOR:
        a->connector = v;
        if (base_is_subdomain(base_str_of(v), CONTRACT_NAME_SIZE - 1))
            return BASE_OK;
        return base_err_set(err, BASE_EINVAL,
                            "--connector '%.80s': must be a connector's name or TENANT.NAME", v);
    case F_SINCE:
        return point(f->name, v, now, &a->since, err);
    case F_UNTIL:
        return point(f->name, v, now, &a->until, err);
    case F_LIMIT:
        return number(f->name, v, 1, 100000, &a->limit, err);
    case F_KEY:
        if (a->n_keys == CLI_KEYS_MAX)
            return base_err_set(err, BASE_EINVAL, "--key is given more than %d times", CLI_KEYS_MAX);
        a->keys[a->n_keys++] = v;
        return BASE_OK;
    case F_FROM_AGENTS:
        a->from_agents = true;
        return BASE_OK;
    case F_AGENT: {
        const char *eq = strchr(v, '='), *colon = strrchr(v, ':');

        if (!eq || !colon || colon < eq || !base_is_subdomain((struct base_str){v, (size_t)(eq - v)}, 125))
            return base_err_set(
                err, BASE_EINVAL,
                "--agent '%.80s': must be NODE=ADDRESS:PORT, for instance edge1=127.0.0.1:9781 "
                "or edge1=[fd00::1]:9781",
                v);
        if (a->n_agents == CLI_AGENTS_MAX)
            return base_err_set(err, BASE_EINVAL, "--agent is given more than %d times", CLI_AGENTS_MAX);
        a->agents[a->n_agents++] = v;
        return BASE_OK;
    }
    case F_AGENT_PORT:
        rc = number(f->name, v, 1, 65535, &n, err);
        if (!rc)
            a->agent_port = (uint16_t)n;
        return rc;
    case F_AGENT_TOKEN:
        a->agent_token = v;
        return BASE_OK;
    case F_DRY_RUN:
        a->dry_run = true;
        return BASE_OK;
    case F_CLIENT:
        a->client_only = true;
        return BASE_OK;
    case F_FILE:
        a->file = v;
        return BASE_OK;
    case F_TIMEOUT:
        if (!cli_duration(v, &a->timeout_s))
            return BASE_OK;
        return base_err_set(err, BASE_EINVAL, "--timeout '%.60s': no duration; write 90s, 10m, 2h or 7d", v);
    case F_RETENTION:
        if (!cli_duration(v, &a->retention_s))
            return BASE_OK;
        return base_err_set(err, BASE_EINVAL, "--retention '%.60s': no duration; write 90s, 10m, 2h or 7d",
                            v);
    }
    return BASE_OK;
}

static const struct flag *find_flag(const char *arg, const char **ret_value)
{
    *ret_value = NULL;
    for (size_t i = 0; i < BASE_LEN(flags); i++) {
        const struct flag *f = &flags[i];
        size_t n = strlen(f->name);

        if (arg[1] == '-') {
            if (strncmp(arg + 2, f->name, n) != 0 || (arg[2 + n] != '\0' && arg[2 + n] != '='))
                continue;
            *ret_value = arg[2 + n] == '=' ? arg + 3 + n : NULL;
            return f;
        }
        if (f->letter && arg[1] == f->letter) {
            *ret_value = arg[2] == '=' ? arg + 3 : arg[2] ? arg + 2 : NULL;
            return f;
        }
    }
    return NULL;
}

static const struct command *command_of(enum cli_command_id id)
{
    for (size_t i = 0; i < BASE_LEN(commands); i++)
        if (commands[i].id == id)
            return &commands[i];
    return NULL;
}

/* The first words that are no flags name the command. */
static int find_command(struct cli_args *a, size_t *n_words, struct base_err *err)
{
    const char *subs = NULL;

    if (a->n_rest == 0) {
        *n_words = 0;
        a->command = CLI_HELP;
        return BASE_OK;
    }
    for (size_t i = 0; i < BASE_LEN(commands); i++) {
        const struct command *c = &commands[i];

        if (strcmp(c->word, a->rest[0]) != 0)
            continue;
        if (!c->sub || (a->n_rest > 1 && strcmp(c->sub, a->rest[1]) == 0)) {
            a->command = c->id;
            *n_words = c->sub ? 2 : 1;
            return BASE_OK;
        }
        subs = strcmp(c->word, "audit") == 0 ? "'audit verify' or 'audit show'"
                                             : "'claims prune' or 'claims list'";
    }
    if (subs) {
        if (a->help) {
            a->command = CLI_HELP;
            *n_words = a->n_rest;
            return BASE_OK;
        }
        return base_err_set(err, BASE_EINVAL, "'%.40s%s%.40s': no such command; it is %s", a->rest[0],
                            a->n_rest > 1 ? " " : "", a->n_rest > 1 ? a->rest[1] : "", subs);
    }
    return base_err_set(err, BASE_EINVAL,
                        "'%.60s': no such command; known: status, audit verify, audit show, explain, claims "
                        "prune, claims list, instances, sessions, drain, undrain, events, check, "
                        "dump, completion, version",
                        a->rest[0]);
}

static int check_use(const struct cli_args *a, const bool *given, struct base_err *err)
{
    const struct command *c = command_of(a->command);

    for (size_t i = 0; i < BASE_LEN(flags); i++)
        if (given[i] && !(flags[i].commands & C(a->command)))
            return base_err_set(err, BASE_EINVAL, "--%s is no flag of '%s%s%s'; see %s %s --help",
                                flags[i].name, c->word, c->sub ? " " : "", c->sub ? c->sub : "", a->name,
                                c->word);
    if (a->help)
        return BASE_OK;
    switch (a->command) {
    case CLI_VERIFY:
        if (a->n_rest == 0)
            return base_err_set(err, BASE_EINVAL, "audit verify: name the FILEs or DIRs to verify");
        return BASE_OK;
    case CLI_SHOW:
        if (base_correlation_is_zero(&a->correlation) && !a->connector && !a->since)
            return base_err_set(
                err, BASE_EINVAL,
                "audit show: say which records: --correlation-id ID, --connector NAME or --since "
                "10m");
        if (!a->n_rest && !a->from_agents && !a->n_agents)
            return base_err_set(
                err, BASE_EINVAL,
                "audit show: no trail to read: name FILEs or DIRs, or --from-agents, or --agent "
                "NODE=ADDRESS:PORT");
        return BASE_OK;
    case CLI_EXPLAIN:
        if (a->n_rest == 0)
            return base_err_set(err, BASE_EINVAL, "explain: name a connector or a correlation ID");
        if (!base_is_subdomain(base_str_of(a->rest[0]), CONTRACT_NAME_SIZE - 1))
            return base_err_set(err, BASE_EINVAL,
                                "explain '%.80s': neither a connector's name (a-z, 0-9, '-', '.') nor a "
                                "correlation ID (32 hex digits)",
                                a->rest[0]);
        return BASE_OK;
    case CLI_DRAIN:
    case CLI_UNDRAIN:
        if (a->n_rest != 1 || !base_is_subdomain(base_str_of(a->rest[0]), CONTRACT_NODE_SIZE - 1))
            return base_err_set(err, BASE_EINVAL, "%s: name one node", c->word);
        return BASE_OK;
    case CLI_COMPLETION:
        if (a->n_rest != 1 || strcmp(a->rest[0], "bash") != 0)
            return base_err_set(err, BASE_EINVAL,
                                "completion: for which shell? only 'completion bash' is known");
        return BASE_OK;
    case CLI_EVENTS:
    case CLI_PRUNE:
    case CLI_VERSION:
    case CLI_CHECK:
    case CLI_DUMP:
        if (a->n_rest)
            return base_err_set(err, BASE_EINVAL, "'%.60s': %s takes no argument", a->rest[0], c->word);
        return BASE_OK;
    case CLI_STATUS:
    case CLI_INSTANCES:
    case CLI_CLAIMS:
    case CLI_SESSIONS:
    case CLI_HELP:
        return BASE_OK;
    }
    return BASE_OK;
}

static const char *name_of(const char *argv0)
{
    const char *base = argv0 ? strrchr(argv0, '/') : NULL;

    base = base ? base + 1 : argv0;
    return !base || strncmp(base, "kubectl-", 8) == 0 || strncmp(base, "kubectl_", 8) == 0
               ? "kubectl holdfast"
               : base;
}

int cli_args_parse(struct cli_args *ret, int argc, char **argv, base_wall now, struct base_err *err)
{
    struct cli_args a = {.retention_s = 86400, .limit = 1000, .timeout_s = 300, .agent_port = 9781};
    bool given[BASE_LEN(flags)] = {false}, only_words = false;
    size_t words = 0;
    int rc;

    a.name = name_of(argc > 0 ? argv[0] : NULL);
    for (int i = 1; i < argc; i++) {
        const struct flag *f;
        const char *value;

        if (only_words || argv[i][0] != '-' || argv[i][1] == '\0') {
            if (a.n_rest == CLI_REST_MAX)
                return base_err_set(err, BASE_EINVAL, "more than %d arguments", CLI_REST_MAX);
            a.rest[a.n_rest++] = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--") == 0) {
            only_words = true;
            continue;
        }
        f = find_flag(argv[i], &value);
        if (!f)
            return base_err_set(err, BASE_EINVAL, "'%.60s': no such flag; see %s --help", argv[i], a.name);
        if (!f->value && value)
            return base_err_set(err, BASE_EINVAL, "--%s takes no value ('%.60s'); write --%s alone", f->name,
                                value, f->name);
        if (f->value && !value) {
            if (i + 1 == argc)
                return base_err_set(err, BASE_EINVAL, "--%s needs a value: --%s %s", f->name, f->name,
                                    f->value);
            value = argv[++i];
        }
        if (f->value && value[0] == '\0')
            return base_err_set(err, BASE_EINVAL, "--%s is empty; write --%s %s, or leave it out", f->name,
                                f->name, f->value);
        if (given[f - flags] && f->id != F_KEY && f->id != F_AGENT)
            return base_err_set(err, BASE_EINVAL, "--%s is given twice; leave one out", f->name);
        given[f - flags] = true;
        rc = set(&a, f, value, now, err);
        if (rc)
            return rc;
    }
    rc = find_command(&a, &words, err);
    if (rc)
        return rc;
    a.n_rest -= words;
    memmove(a.rest, a.rest + words, a.n_rest * sizeof a.rest[0]);
    rc = check_use(&a, given, err);
    if (!rc)
        *ret = a;
    return rc;
}

void cli_help(FILE *out, const struct cli_args *a)
{
    const struct command *c = command_of(a->command);

    if (a->command == CLI_HELP) {
        (void)fprintf(
            out,
            "Shows who owns what in Holdfast, verifies and reads the audit trail, explains incidents.\n\n"
            "usage: %s COMMAND [FLAGS]\n\ncommands:\n",
            a->name);
        for (size_t i = 0; i < BASE_LEN(commands); i++)
            (void)fprintf(out, "  %-42s %s\n", commands[i].usage, commands[i].what);
        (void)fprintf(
            out,
            "\n%s COMMAND --help lists a command's flags.\n"
            "exit status: 0 all is well; 1 looked, and something is not; 2 wrong command line; 3 could "
            "not look.\n"
            "Everything shown is also in `kubectl get pi,ha,ps,rclaim,cb` and in the audit files.\n",
            a->name);
        return;
    }
    (void)fprintf(out, "%s\n\nusage: %s %s [FLAGS]\n\n%s%sflags:\n", c->what, a->name, c->usage, c->more,
                  c->more[0] ? "\n" : "");
    for (size_t i = 0; i < BASE_LEN(flags); i++) {
        char left[64];

        if (!(flags[i].commands & C(a->command)))
            continue;
        (void)base_fmt(left, sizeof left, "%c%c%s--%s%s%s", flags[i].letter ? '-' : ' ',
                       flags[i].letter ? flags[i].letter : ' ', flags[i].letter ? ", " : "  ", flags[i].name,
                       flags[i].value ? " " : "", flags[i].value ? flags[i].value : "");
        (void)fprintf(out, "  %-32s %s\n", left, flags[i].what);
    }
}

void cli_completion(FILE *out)
{
    (void)fputs("_kubectl_holdfast() {\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} line=\" ${COMP_WORDS[*]:1} \" words=\"\"\n"
                "    case $line in\n",
                out);
    for (size_t i = 0; i < BASE_LEN(commands); i++) {
        const struct command *c = &commands[i];

        (void)fprintf(out, "    *\" %s%s%s \"*) words=\"", c->word, c->sub ? " " : "", c->sub ? c->sub : "");
        for (size_t f = 0; f < BASE_LEN(flags); f++)
            if (flags[f].commands & C(c->id))
                (void)fprintf(out, "--%s ", flags[f].name);
        (void)fputs("\" ;;\n", out);
    }
    (void)fputs("    *\" audit \"*) words=\"verify show\" ;;\n    *\" claims \"*) words=\"prune list\" ;;\n  "
                "  *) words=\"",
                out);
    for (size_t i = 0; i < BASE_LEN(commands); i++)
        if (i == 0 || strcmp(commands[i].word, commands[i - 1].word) != 0)
            (void)fprintf(out, "%s ", commands[i].word);
    (void)fputs("\" ;;\n    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
                "complete -F _kubectl_holdfast kubectl-holdfast\n",
                out);
}
