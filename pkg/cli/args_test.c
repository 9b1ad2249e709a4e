/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "cli/cli_int.h"

#define NOW ((base_wall)1764450502000000)

static int parse(struct cli_args *a, struct base_err *err, const char *const *words)
{
    static char copy[16][300];
    char *argv[16];
    int argc = 0;

    for (; words[argc]; argc++) {
        (void)base_fmt(copy[argc], sizeof copy[argc], "%s", words[argc]);
        argv[argc] = copy[argc];
    }
    memset(a, 0, sizeof *a);
    return cli_args_parse(a, argc, argv, NOW, err);
}
#define PARSE(...) parse(&a, &err, (const char *const[]){__VA_ARGS__, NULL})

Test(cli_args, flags_may_stand_anywhere_and_take_their_value_both_ways)
{
    struct cli_args a;
    struct base_err err = {0};

    cr_assert_eq(PARSE("/x/kubectl-holdfast", "-n", "ns1", "status", "-o=json", "edge1"), BASE_OK, "%s",
                 err.msg);
    cr_assert_str_eq(a.name, "kubectl holdfast");
    cr_assert_eq((int)a.command, (int)CLI_STATUS);
    cr_assert_eq((int)a.format, (int)CLI_JSON);
    cr_assert_str_eq(a.ns, "ns1");
    cr_assert_eq(a.n_rest, 1);
    cr_assert_eq(PARSE("hf", "audit", "--since=10m", "show", "-oyaml", "--", "-dir"), BASE_OK, "%s", err.msg);
    cr_assert_str_eq(a.name, "hf");
    cr_assert_eq(a.since, NOW - 600 * (base_wall)1000000);
    cr_assert_eq((int)a.format, (int)CLI_YAML);
    cr_assert_str_eq(a.rest[0], "-dir");
    cr_assert_eq(PARSE("hf", "claims", "prune", "--dry-run", "--retention", "2d"), BASE_OK);
    cr_assert(a.dry_run);
    cr_assert_eq(a.retention_s, 172800);
    cr_assert_eq(PARSE("hf"), BASE_OK);
    cr_assert_eq((int)a.command, (int)CLI_HELP);
    cr_assert_eq(PARSE("hf", "audit", "--help"), BASE_OK);
}

Test(cli_args, errors_name_flag_value_and_remedy)
{
    static const struct {
        const char *words[8], *names[3];
    } rows[] = {
        {{"hf", "stat", NULL}, {"'stat'", "status", NULL}},
        {{"hf", "audit", "list", NULL}, {"audit list", "audit verify", NULL}},
        {{"hf", "claims", NULL}, {"claims prune", "claims list", NULL}},
        {{"hf", "drain", NULL}, {"drain", "one node", NULL}},
        {{"hf", "drain", "a", "b", NULL}, {"drain", "one node", NULL}},
        {{"hf", "drain", "a", "--timeout", "soon", NULL}, {"--timeout", "soon", "90s"}},
        {{"hf", "completion", "fish", NULL}, {"completion bash", NULL}},
        {{"hf", "events", "x", NULL}, {"no argument", NULL}},
        {{"hf", "status", "--what", NULL}, {"--what", "--help", NULL}},
        {{"hf", "status", "-x", NULL}, {"-x", "--help", NULL}},
        {{"hf", "status", "-o", NULL}, {"--output", "FORMAT", NULL}},
        {{"hf", "status", "--context=", NULL}, {"--context", "empty", NULL}},
        {{"hf", "status", "-o", "xml", NULL}, {"xml", "json, yaml or wide", NULL}},
        {{"hf", "status", "-o", "json", "-o", "yaml", NULL}, {"--output", "twice", NULL}},
        {{"hf", "status", "--dry-run", NULL}, {"--dry-run", "status", NULL}},
        {{"hf", "claims", "prune", "--dry-run=yes", NULL}, {"--dry-run", "yes", NULL}},
        {{"hf", "claims", "prune", "x", NULL}, {"'x'", "no argument", NULL}},
        {{"hf", "claims", "prune", "--retention", "10", NULL}, {"--retention", "'10'", "2h"}},
        {{"hf", "audit", "show", "d", "--since", "1y", NULL}, {"--since", "'1y'", "7d"}},
        {{"hf", "audit", "show", "d", "--limit", "0", NULL}, {"--limit", "'0'", "from 1"}},
        {{"hf", "audit", "show", "d", "--correlation-id", "AB", NULL},
         {"--correlation-id", "'AB'", "32 hex"}},
        {{"hf", "audit", "show", "d", "--connector", "A_B", NULL}, {"--connector", "'A_B'", NULL}},
        {{"hf", "audit", "show", "d", NULL}, {"--correlation-id", "--since", NULL}},
        {{"hf", "audit", "show", "--since", "1h", NULL}, {"no trail", "--from-agents", NULL}},
        {{"hf", "audit", "verify", NULL}, {"FILE", NULL}},
        {{"hf", "explain", NULL}, {"connector", "correlation", NULL}},
        {{"hf", "explain", "../x", NULL}, {"'../x'", NULL}},
        {{"hf", "explain", "x", "--agent", "=1:2", NULL}, {"--agent", "NODE=ADDRESS:PORT", NULL}},
        {{"hf", "explain", "x", "--agent-port", "70000", NULL}, {"--agent-port", "65535", NULL}},
        {{"hf", "status", "-n", "Bad_Name", NULL}, {"--namespace", "Bad_Name", NULL}},
    };

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct cli_args a;
        struct base_err err = {0};

        cr_assert_eq(parse(&a, &err, rows[i].words), BASE_EINVAL, "row %zu", i);
        for (size_t k = 0; k < 3 && rows[i].names[k]; k++)
            cr_assert_not_null(strstr(err.msg, rows[i].names[k]), "row %zu: no %s in: %s", i,
                               rows[i].names[k], err.msg);
    }
}

Test(cli_out, ages)
{
    static const struct {
        int64_t s;
        const char *text;
    } rows[] = {{0, "0s"},      {119, "119s"},      {120, "2m0s"},  {3599, "59m59s"},
                {3600, "1h0m"}, {172799, "47h59m"}, {172800, "2d"}, {-5, "in 5s"}};

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        char age[CLI_AGE_SIZE];

        cli_age(age, NOW, NOW - rows[i].s * 1000000);
        cr_assert_str_eq(age, rows[i].text);
    }
}

Test(cli_out, yaml)
{
    cJSON *doc = cJSON_Parse(
        "{\"nodes\":[{\"node\":\"edge1\",\"epoch\":3,\"claims\":[],\"list\":[1,[2],{\"a\":\"b c\"}]}],"
        "\"ready\":true,\"word\":\"true\",\"time\":\"2026-11-29T21:08:22Z\",\"empty\":\"\",\"none\":null,"
        "\"key with space\":\"x: y\",\"deep\":{\"er\":{\"n\":1}},\"nothing\":{}}");
    struct base_buf b;

    cr_assert_not_null(doc);
    base_buf_init(&b, 65536);
    cli_yaml(&b, doc);
    cr_assert_str_eq(b.data,
                     "nodes:\n"
                     "- node: edge1\n"
                     "  epoch: 3\n"
                     "  claims: []\n"
                     "  list:\n"
                     "  - 1\n"
                     "  - \n"
                     "    - 2\n"
                     "  - a: \"b c\"\n"
                     "ready: true\n"
                     "word: \"true\"\n"
                     "time: \"2026-11-29T21:08:22Z\"\n"
                     "empty: \"\"\n"
                     "none: null\n"
                     "\"key with space\": \"x: y\"\n"
                     "deep:\n"
                     "  er:\n"
                     "    \"n\": 1\n"
                     "nothing: {}\n",
                     "%s", b.data);
    base_buf_fini(&b);
    cJSON_Delete(doc);
}

Test(cli_trail, a_page_of_an_agent)
{
    static const char record[] = "{\"ts\":\"2025-11-29T21:08:22.000000Z\",\"event\":\"renew\",\"outcome\":"
                                 "\"allowed\",\"reason\":\"Renew\",\"node\":\"edge1\","
                                 "\"instance\":\"m.edge1\",\"effect\":\"none\"}\n";
    static const char *const bad[] = {"", "x\n", "{\"chain\":\"page\",\"node\":\"edge1\"",
                                      "{\"chain\":\"page\"}\nx\n"};
    struct cli_trail *t = base_calloc(1, sizeof *t);
    struct audit_query q = {.after = 0};
    struct base_err err = {0};
    uint64_t next = 0;
    char page[1024];

    cli_trail_init(t, 10);
    (void)base_fmt(page, sizeof page, "%s%s", record, "{\"chain\":\"page\",\"node\":\"edge1\",\"next\":7}\n");
    cr_assert_eq(cli_trail_page(t, &q, base_str_of(page), &next, &err), BASE_OK);
    cr_assert_eq(next, 7);
    cr_assert(cli_trail_saw(t, "edge1"));
    for (size_t i = 0; i < BASE_LEN(bad); i++)
        cr_assert_eq(cli_trail_page(t, &q, base_str_of(bad[i]), &next, &err), BASE_EPROTO, "row %zu", i);
    cli_trail_fini(t);
    base_free(t);
}
