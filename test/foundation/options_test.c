/* SPDX-License-Identifier: Apache-2.0
 * The command line, and what is read from a SelfSubjectReview: bad input names the flag, the value and the
 * remedy. */
#include "identity.h"
#include "options.h"

#include "base/cleanup.h"

#include <criterion/criterion.h>

#define ARGS_MAX 8

Test(foundation_options, good_ones)
{
    const char *const argv[] = {
        "x",    "--node=edge1", "--mtu", "1280",       "--log-format",
        "text", "--log-level",  "debug", "--node-uid", "0b711e68-ba38-4c51-9e5b-598154a3e046"};
    struct options o;
    struct base_err err;

    cr_assert_eq(options_parse(&o, BASE_LEN(argv), argv, &err), BASE_OK, "%s", err.msg);
    cr_assert_str_eq(o.node, "edge1");
    cr_assert_eq(o.mtu, 1280);
    cr_assert_eq(o.level, LOOP_DEBUG);
    cr_assert_not(o.json);
    cr_assert_eq(o.tun_owner, 65532u);
    cr_assert_eq(o.lease_seconds, 30);
    cr_assert_str_eq(o.ns, "holdfast-system");
    cr_assert_not(base_uuid_is_zero(&o.node_uid));
}

Test(foundation_options, bad_ones)
{
    static const struct {
        const char *args[ARGS_MAX];
        const char *says[2];
    } rows[] = {
        {{"--nod", "edge1"}, {"--nod", "--help"}},
        {{"edge1"}, {"edge1", "--help"}},
        {{"--mtu", "1400"}, {"--node", "Node object"}},
        {{"--node"}, {"--node", "needs a value"}},
        {{"--node", "Edge_1"}, {"Edge_1", "node name"}},
        {{"--node", "e", "--mtu", "1279"}, {"1279", "1280 to 9000"}},
        {{"--node", "e", "--mtu", "14oo"}, {"14oo", "number"}},
        {{"--node", "e", "--lease-seconds", "9"}, {"--lease-seconds", "10 to 300"}},
        {{"--node", "e", "--node-uid", "ABC"}, {"--node-uid", "UUID"}},
        {{"--node", "e", "--log-format", "xml"}, {"xml", "json"}},
        {{"--node", "e", "--log-level", "loud"}, {"loud", "debug"}},
        {{"--node", "e", "--namespace", "a/b"}, {"a/b", "namespace"}},
        {{"--node", "e", "--provider", "A"}, {"--provider", "A"}},
        {{"--node", "e", "--bpffs", ""}, {"--bpffs", "empty"}},
        {{"--node", "e", "--help=yes"}, {"--help", "no value"}},
    };

    for (unsigned i = 0; i < BASE_LEN(rows); i++) {
        const char *argv[ARGS_MAX + 1] = {"x"};
        struct options o;
        struct base_err err;
        int n = 1;

        for (unsigned a = 0; a < ARGS_MAX && rows[i].args[a]; a++)
            argv[n++] = rows[i].args[a];
        cr_assert_eq(options_parse(&o, n, argv, &err), BASE_EINVAL, "row %u was taken", i);
        for (unsigned s = 0; s < 2; s++)
            cr_assert_not_null(strstr(err.msg, rows[i].says[s]), "row %u: '%s' does not say '%s'", i, err.msg,
                               rows[i].says[s]);
    }
}

Test(foundation_options, every_flag_of_the_table_is_in_the_help)
{
    static const char *const flags[] = {
        "kubeconfig",  "namespace",     "node",       "node-uid",  "provider",
        "bpffs",       "lock",          "tun",        "tun-owner", "mtu",
        "route-table", "lease-seconds", "log-format", "log-level", "authority-kubeconfig",
        "watchdog"};

    for (unsigned i = 0; i < BASE_LEN(flags); i++) {
        char text[64];

        base_fmt(text, sizeof text, "--%s ", flags[i]);
        cr_assert_not_null(strstr(options_help(), text), "%s", flags[i]);
    }
}

Test(foundation_identity, of_a_bound_token)
{
    static const char body[] =
        "{\"status\":{\"userInfo\":{\"username\":\"system:serviceaccount:holdfast-system:holdfast-"
        "foundation\",\"extra\":"
        "{\"authentication.kubernetes.io/node-name\":[\"edge1\"],\"authentication.kubernetes.io/node-uid\":"
        "[\"0b711e68-ba38-4c51-9e5b-598154a3e046\"]}}}}";
    struct identity who;
    struct base_err err;

    cr_assert_eq(identity_parse(&who, BASE_STR(body), &err), BASE_OK, "%s", err.msg);
    cr_assert_str_eq(who.node, "edge1");
    cr_assert_not(base_uuid_is_zero(&who.node_uid));
}

Test(foundation_identity, without_a_node_and_nonsense)
{
    static const char admin[] =
        "{\"status\":{\"userInfo\":{\"username\":\"admin\",\"groups\":[\"system:masters\"]}}}";
    static const char *const bad[] = {"", "{", "[]", "{\"status\":{}}",
                                      "{\"status\":{\"userInfo\":{\"username\":7}}}"};
    struct identity who;
    struct base_err err;

    cr_assert_eq(identity_parse(&who, BASE_STR(admin), &err), BASE_OK);
    cr_assert_str_eq(who.node, "");
    cr_assert(base_uuid_is_zero(&who.node_uid));
    for (unsigned i = 0; i < BASE_LEN(bad); i++)
        cr_assert_eq(identity_parse(&who, base_str_of(bad[i]), &err), BASE_EPROTO, "%s", bad[i]);
}
