/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/config.h"

#include <criterion/criterion.h>

#include "agent/data_int.h"
#include "base/mem.h"
#include "session/core.h"

static const char *no_env(const char *name)
{
    return NULL;
}

static const char *node_env(const char *name)
{
    return strcmp(name, "NODE_NAME") == 0       ? "edge7"
           : strcmp(name, "POD_NAMESPACE") == 0 ? "holdfast-system"
                                                : NULL;
}

Test(agent_config, defaults_deny_everybody)
{
    struct agent_config c;
    struct contract_timing t;

    cr_assert_eq(agent_config_load(&c, "", no_env, NULL), BASE_OK);
    cr_assert_eq(c.policy, AGENT_POLICY_DENY);
    cr_assert_str_eq(c.provider, "masque");
    cr_assert_str_eq(c.listen_h3, "[::]:4433");
    cr_assert_eq(c.lease_seconds, 30);
    cr_assert_eq(agent_config_timing(&c, &t, NULL), BASE_OK);
    cr_assert_eq(t.interval, 10 * BASE_SEC);
}

Test(agent_config, file_wins_over_environment_and_environment_over_defaults)
{
    struct agent_config c;

    cr_assert_eq(agent_config_parse(&c, BASE_STR("nodeName: edge1\nlease:\n  durationSeconds: 10\n"), "f",
                                    node_env, NULL),
                 BASE_OK);
    cr_assert_str_eq(c.node_name, "edge1");
    cr_assert_str_eq(c.ns, "holdfast-system");
    cr_assert_eq(c.lease_seconds, 10);
}

/* Bad input: each row names what the error must say. */
Test(agent_config, bad_input_names_line_key_value_and_remedy)
{
    static const struct {
        const char *yaml, *parts[4];
    } rows[] = {
        {"lease:\n  durationSecond: 10\n",
         {"f:2:", "lease.durationSecond", "no such option in lease", "durationSeconds"}},
        {"leese: 1\n", {"f:1:", "leese", "no such option", "provider"}},
        {"leese:\n  a: 1\n", {"f:1:", "leese", "no such option", NULL}},
        {"lease:\n  durationSeconds: 9\n", {"f:2:", "lease.durationSeconds", "'9'", "from 10 to 300"}},
        {"lease:\n  durationSeconds: 1e6\n", {"f:2:", "'1e6'", "whole number", NULL}},
        {"lease:\n  durationSeconds: -30\n", {"f:2:", "'-30'", "whole number", NULL}},
        {"lease:\n  durationSeconds: 99999999999999999999999\n", {"f:2:", "whole number", NULL, NULL}},
        {"lease:\n  durationSeconds: 030\n", {"f:2:", "'030'", "whole number", NULL}},
        {"lease: 30\n", {"f:1:", "lease", "is a section", NULL}},
        {"lease:\n  durationSeconds: [1]\n", {"f:2:", "durationSeconds", "single value", NULL}},
        {"lease:\n  durationSeconds: 10\n  durationSeconds: 11\n", {"f:3:", "given twice", NULL, NULL}},
        {"authority:\n  policy: allow\n", {"f:2:", "authority.policy", "'allow'", "deny|kubernetes"}},
        {"provider: Masque\n", {"f:1:", "provider", "'Masque'", "RFC 1123"}},
        {"nodeName: a/b\n", {"f:1:", "nodeName", "125", NULL}},
        {"tls:\n  certFile: tls.crt\n", {"f:2:", "tls.certFile", "absolute path", NULL}},
        {"listen:\n  h3: 4433\n", {"f:2:", "listen.h3", "[::]:4433", NULL}},
        {"listen:\n  h3: \"[::]:99999\"\n", {"f:2:", "listen.h3", "99999", NULL}},
        {"listen:\n  h3: \"example.com:1\"\n", {"f:2:", "listen.h3", "<address>:<port>", NULL}},
        {"listen:\n  h3: \"1.2.3.4.5:1\"\n", {"f:2:", "listen.h3", "<address>:<port>", NULL}},
        {"listen:\n  h3: \"256.0.0.1:1\"\n", {"f:2:", "listen.h3", "<address>:<port>", NULL}},
        {"listen:\n  h3: \"[::]\\0:1\"\n", {"f:2:", "listen.h3", "<address>:<port>", NULL}},
        {"\"provider\\0x\": a\n", {"f:1:", "provider", "no such option", NULL}},
        {"log:\n  \"level\\0x\": info\n", {"f:2:", "log.level", "no such option", NULL}},
        {"log.level: info\n", {"f:1:", "log.level", "no such option", NULL}},
        {"log:\n  level: info\nlog:\n  format: json\n", {"f:3:", "log", "given twice", NULL}},
        {"- a\n", {"f:1:", "one mapping", NULL, NULL}},
        {"provider: 'x\n", {"f:", "not YAML", NULL, NULL}},
        {"? [a]\n: b\n", {"f:1:", "plain word", NULL, NULL}},
        {"provider: *x\n", {"f:1:", NULL, NULL, NULL}},
    };

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct agent_config c = {.lease_seconds = -1};
        struct base_err err = {0};

        cr_assert_eq(agent_config_parse(&c, base_str_of(rows[i].yaml), "f", no_env, &err), BASE_EINVAL,
                     "row %zu", i);
        for (size_t p = 0; p < 4 && rows[i].parts[p]; p++)
            cr_assert_not_null(strstr(err.msg, rows[i].parts[p]), "row %zu: '%s' lacks '%s'", i, err.msg,
                               rows[i].parts[p]);
        cr_assert_eq(c.lease_seconds, -1, "row %zu: half-applied", i);
    }
}

Test(agent_config, node_name_of_126_characters_is_refused)
{
    char name[127], yaml[160];
    struct agent_config c;

    memset(name, 'a', sizeof name);
    name[126] = '\0';
    (void)base_fmt(yaml, sizeof yaml, "nodeName: %s\n", name);
    cr_assert_eq(agent_config_parse(&c, base_str_of(yaml), "f", no_env, NULL), BASE_EINVAL);
    name[125] = '\0';
    (void)base_fmt(yaml, sizeof yaml, "nodeName: %s\n", name);
    cr_assert_eq(agent_config_parse(&c, base_str_of(yaml), "f", no_env, NULL), BASE_OK);
}

Test(agent_config, every_option_is_described_and_has_a_legal_default)
{
    struct base_buf b;

    base_buf_init(&b, 65536);
    cr_assert_eq(agent_config_describe(&b), BASE_OK);
    for (size_t i = 0; i < agent_options_n; i++)
        cr_assert_not_null(strstr(b.data, agent_options[i].path));
    base_buf_fini(&b);
}

/* What the table allows must not be refused later, when the error cannot name line and key any more. */
Test(agent_config, no_number_that_the_table_allows_is_refused_later)
{
    for (size_t i = 0; i < agent_options_n * 2; i++) {
        const struct agent_option *o = &agent_options[i / 2];
        const char *dot = strchr(o->path, '.');
        struct agent_config c;
        struct contract_timing t;
        struct base_err err = {0};
        char yaml[160];

        if (o->type != AGENT_OPT_INT || !dot)
            continue;
        (void)base_fmt(yaml, sizeof yaml, "%.*s:\n  %s: %lld\n", (int)(dot - o->path), o->path, dot + 1,
                       (long long)(i % 2 ? o->max : o->min));
        cr_assert_eq(agent_config_parse(&c, base_str_of(yaml), "f", no_env, &err), BASE_OK, "%s", err.msg);
        cr_assert_eq(agent_config_timing(&c, &t, &err), BASE_OK, "%s: %s", yaml, err.msg);
        cr_assert_leq(c.max_attachments, AGENT_TUNS_MAX, "%s: more than the data thread can open", yaml);

        struct session_config sc = {.provider = "masque",
                                    .node = "edge1",
                                    .node_uid = {{1}},
                                    .boot_id = {{1}},
                                    .timing = t,
                                    .max_connectors = 1,
                                    .max_services = (uint32_t)c.max_services,
                                    .max_attachments = (uint32_t)c.max_attachments};
        struct session_core *core = NULL;
        cr_assert_eq(session_core_new(&core, &sc, &err), BASE_OK, "%s: %s", yaml, err.msg);
        session_core_free(core);
    }
}

/* A renewal goes out an interval after the last confirmed one; when its answer is lost, it has to be given up
 * and read back (a second is enough) before what rests on that last one ends, and not in a hurry. */
Test(agent_config, a_renewal_without_an_answer_is_given_up_before_sessions_end)
{
    for (int64_t lease = 10; lease <= 300; lease++) {
        struct contract_timing t = contract_timing_default();

        t.lease = lease * BASE_SEC;
        t.interval = base_time_min(t.lease, t.grant) / 3;
        base_time wait = agent_renewal_timeout(&t, 5 * BASE_SEC);
        cr_assert_leq(t.interval + wait + BASE_SEC, t.lease - t.guard, "L = %lld s", (long long)lease);
        cr_assert_geq(wait, 3 * BASE_SEC, "L = %lld s", (long long)lease);
        cr_assert_leq(wait, 5 * BASE_SEC);
        t.guard = t.lease - t.interval;
        cr_assert_eq(agent_renewal_timeout(&t, 5 * BASE_SEC), BASE_SEC);
    }
}

Test(agent_config, a_missing_file_says_so)
{
    struct agent_config c;
    struct base_err err = {0};

    cr_assert_eq(agent_config_load(&c, "/nonexistent/agent.yaml", no_env, &err), BASE_ENOTFOUND);
    cr_assert_not_null(strstr(err.msg, "/nonexistent/agent.yaml"));
}

Test(agent_config, policy_goes_with_what_it_needs)
{
    static const struct {
        const char *yaml, *says; /* NULL = good */
    } rows[] = {
        {"authority: {policy: webhook, webhookURL: 'https://authority.example:8443/holdfast?v=1'}\n", NULL},
        {"authority: {policy: kubernetes, bearerTokens: on}\n", NULL},
        {"authority: {policy: webhook}\n", "authority.webhookURL"},
        {"authority: {policy: webhook, webhookURL: 'http://authority.example/'}\n", "https://"},
        {"authority: {policy: webhook, webhookURL: 'https://'}\n", "https://"},
        {"authority: {policy: webhook, webhookURL: 'https://user:secret@authority.example/'}\n",
         "without a user"},
        {"authority: {policy: webhook, webhookURL: 'https://a.example/ b'}\n", "https://"},
        {"authority: {policy: kubernetes, webhookURL: 'https://a.example/'}\n", "not 'webhook'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct agent_config c;
        struct base_err err = {0};
        cr_assert_eq(agent_config_parse(&c, base_str_of(rows[i].yaml), "agent.yaml", NULL, &err), BASE_OK,
                     "%s", err.msg);
        int rc = agent_config_policy(&c, &err);
        cr_assert_eq(rc, rows[i].says ? BASE_EINVAL : BASE_OK, "%s: %s", rows[i].yaml, err.msg);
        if (rows[i].says)
            cr_assert_not_null(strstr(err.msg, rows[i].says), "%s: %s", rows[i].yaml, err.msg);
    }
}

/* A secret that somebody put where it does not belong is not repeated. */
Test(agent_config, a_misplaced_secret_is_not_repeated)
{
    static const char *const rows[] = {
        "authority:\n  password: hush5e1f\n",
        "token: hush5e1f\n",
        "authority: hush5e1f\n",
        "tls:\n  keyFile: \"-----BEGIN PRIVATE KEY-----\\nhush5e1f\"\n",
        "audit:\n  checkpointKeyFile: hush5e1f\n",
        "log:\n  level: info\n  level: hush5e1f\n",
        "authority:\n  policy: webhook\n  webhookURL: https://user:hush5e1f@auth.example/\n",
    };

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct agent_config c;
        struct base_err err = {0};
        int rc = agent_config_parse(&c, base_str_of(rows[i]), "f", NULL, &err);

        if (!rc)
            rc = agent_config_policy(&c, &err);
        cr_assert_eq(rc, BASE_EINVAL, "row %zu", i);
        cr_assert_null(strstr(err.msg, "hush"), "%s", err.msg);
    }
}

/* An option that has a default is never empty: what would an empty address, path or name be? */
Test(agent_config, an_empty_value_is_no_default)
{
    for (size_t i = 0; i < agent_options_n; i++) {
        const char *path = agent_options[i].path, *dot = strchr(path, '.');
        struct agent_config c;
        struct base_err err = {0};
        char text[200];

        if (dot)
            (void)base_fmt(text, sizeof text, "%.*s:\n  %s:\n", (int)(dot - path), path, dot + 1);
        else
            (void)base_fmt(text, sizeof text, "%s: \"\"\n", path);
        if (!agent_options[i].preset[0]) {
            cr_assert_eq(agent_config_parse(&c, base_str_of(text), "f", NULL, &err), BASE_OK, "%s", err.msg);
            continue;
        }
        cr_assert_eq(agent_config_parse(&c, base_str_of(text), "f", NULL, &err), BASE_EINVAL, "%s", path);
        cr_assert_not_null(strstr(err.msg, "must not be empty"), "%s: %s", path, err.msg);
        cr_assert_not_null(strstr(err.msg, path), "%s: %s", path, err.msg);
    }
}

/* Every option is remembered, also the last of the table. */
Test(agent_config, no_option_can_be_given_twice)
{
    for (size_t i = 0; i < agent_options_n; i++) {
        const char *path = agent_options[i].path, *dot = strchr(path, '.');
        const char *preset = agent_options[i].preset;
        struct agent_config c;
        struct base_err err = {0};
        char text[800];

        if (dot)
            (void)base_fmt(text, sizeof text, "%.*s:\n  %s: \"%s\"\n  %s: \"%s\"\n", (int)(dot - path), path,
                           dot + 1, preset, dot + 1, preset);
        else
            (void)base_fmt(text, sizeof text, "%s: \"%s\"\n%s: \"%s\"\n", path, preset, path, preset);
        cr_assert_eq(agent_config_parse(&c, base_str_of(text), "f", NULL, &err), BASE_EINVAL, "%s", path);
        cr_assert_not_null(strstr(err.msg, "twice"), "%s: %s", path, err.msg);
    }
}
