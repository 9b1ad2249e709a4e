/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/json.h"
#include "contract/test_samples.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define U1 "00000000-0000-4000-8000-000000000001"
#define U2 "00000000-0000-4000-8000-000000000002"
#define CORR "0123456789abcdef0123456789abcdef"

/* As the API server answers: unknown members at every level, managedFields, another condition. */
static const char claim_json[] =
    "{\"apiVersion\":\"edge.galactic.datumapis.com/"
    "v1alpha1\",\"kind\":\"RouteClaim\",\"metadata\":{\"annotations\":{\"a/b\":\"c\"},"
    "\"creationTimestamp\":\"2026-11-29T12:00:00Z\",\"finalizers\":[\"x.y/"
    "z\"],\"generation\":9007199254740993,\"labels\":{\"l\":\"v\"},"
    "\"managedFields\":[{\"manager\":\"m\",\"n\":12345678901234567890}],\"name\":\"rc-"
    "fd1200000000000100000001\",\"namespace\":\"hf\","
    "\"resourceVersion\":\"77\",\"uid\":\"" U1 "\"},"
    "\"spec\":{\"provider\":\"masque\",\"prefix\":\"fd12::1:0:1:0:0/"
    "96\",\"tenant\":\"t1\",\"vpc\":\"vpc-a\",\"connector\":\"c1\","
    "\"serviceRef\":{\"name\":\"s1\",\"uid\":\"" U2 "\",\"later\":1},\"leaseUUID\":\"" U1 "\",\"epoch\":3,"
    "\"holder\":{\"instance\":\"masque.edge1\",\"instanceUID\":\"" U1
    "\",\"instanceEpoch\":4,\"processID\":\"" U2 "\",\"node\":\"edge1\","
    "\"bootID\":\"" U1 "\"},\"previous\":{\"node\":\"edge2\",\"bootID\":\"" U2 "\",\"epoch\":2},"
    "\"attachmentRef\":{\"name\":\"masque.edge1.vpc-a\",\"uid\":\"" U2
    "\"},\"acquireTime\":\"2026-11-29T12:00:00.123456789+01:00\","
    "\"leaseDurationSeconds\":30,\"maxLeaseDurationSeconds\":300,\"correlationID\":\"" CORR
    "\",\"future\":[1.50,{\"x\":null}]},"
    "\"status\":{\"acceptedEpoch\":3,\"acceptedLeaseUUID\":\"" U1
    "\",\"gate\":{\"epoch\":3,\"state\":\"Open\",\"reason\":\"Accepted\"},"
    "\"closedEpoch\":2,\"closedReason\":\"Waited\",\"conditions\":[{\"type\":\"Weird\",\"status\":\"True\","
    "\"reason\":\"R\",\"message\":\"keep me\","
    "\"lastTransitionTime\":\"2026-11-29T12:00:00Z\"},{\"type\":\"GateOpen\",\"status\":\"True\",\"reason\":"
    "\"Open\",\"message\":\"m\","
    "\"lastTransitionTime\":\"2026-11-29T12:00:00Z\",\"observedGeneration\":3}]},\"extra\":true}";

static struct contract_object claim(void)
{
    struct contract_object o;
    struct base_err err = {0};

    cr_assert_eq(contract_decode(&o, CONTRACT_CLAIM, BASE_STR(claim_json), &err), BASE_OK, "%s", err.msg);
    return o;
}

static char *encode(const struct contract_object *o, const char *raw)
{
    struct base_buf b;
    struct base_err err = {0};

    base_buf_init(&b, 1u << 20);
    cr_assert_eq(contract_encode(&b, o, base_str_of(raw), &err), BASE_OK, "%s", err.msg);
    return b.data; /* the caller frees */
}

static void has(const char *text, const char *part)
{
    cr_expect(strstr(text, part), "'%s' is missing in %s", part, text);
}

Test(contract_decode, reads_every_member)
{
    struct contract_object o = claim();
    struct base_uuid u1 = sample_uuid(1), u2 = sample_uuid(2);

    cr_expect_str_eq(o.u.meta.name, "rc-fd1200000000000100000001");
    cr_expect_str_eq(o.u.meta.rv, "77");
    cr_expect_eq(o.u.meta.generation, 9007199254740993);
    cr_expect_eq(o.u.meta.created, SAMPLE_T0);
    cr_expect(contract_has_finalizer(&o.u.meta, "x.y/z"));
    cr_expect(!o.u.meta.drain);
    cr_expect_eq(o.u.claim.spec.epoch, 3);
    cr_expect(base_uuid_eq(&o.u.claim.spec.holder.process_id, &u2));
    cr_expect(base_uuid_eq(&o.u.claim.spec.service.uid, &u2));
    cr_expect_eq(o.u.claim.spec.acquire_time, SAMPLE_T0 - 3600 * SAMPLE_S + 123456);
    cr_expect_eq(o.u.claim.spec.previous.epoch, 2);
    cr_expect_eq(o.u.claim.spec.max_lease_seconds, 300);
    cr_expect_eq(o.u.claim.spec.prefix.len, 96);
    cr_expect(base_uuid_eq(&o.u.claim.status.accepted_lease_uuid, &u1));
    cr_expect_eq(o.u.claim.status.gate.state, CONTRACT_GATE_OPEN);
    cr_expect_eq(o.u.claim.status.closed_reason, CONTRACT_CLOSED_WAITED);
    cr_expect_eq(o.u.claim.status.gate_open.status, CONTRACT_COND_TRUE);
    cr_expect_eq(o.u.claim.status.gate_open.observed_generation, 3);
    cr_expect_eq(o.u.claim.status.accepted.status, CONTRACT_COND_ABSENT);
}

/* Replaces `from` in the sample by `to` and expects a refusal whose text holds `says`. */
static const struct {
    const char *from, *to, *says;
} bad[] = {
    {"\"epoch\":3,\"holder\"", "\"epoch\":3.0,\"holder\"", "spec.epoch: 3.0"},
    {"\"epoch\":3,\"holder\"", "\"epoch\":\"3\",\"holder\"", "spec.epoch"},
    {"\"epoch\":3,\"holder\"", "\"epoch\":1e400,\"holder\"", "spec.epoch"},
    {"\"epoch\":3,\"holder\"", "\"epoch\":99999999999999999999,\"holder\"", "64-bit integer"},
    {"\"epoch\":3,\"holder\"", "\"epoch\":3,\"epoch\":4,\"holder\"", "duplicate"},
    {"\"epoch\":3,\"holder\"", "\"holder\"", "spec.epoch: is missing"},
    {"\"epoch\":3,\"holder\"", "\"epoch\":null,\"holder\"", "spec.epoch: is missing"},
    {"\"leaseDurationSeconds\":30", "\"leaseDurationSeconds\":2147483648", "32-bit integer"},
    {"\"tenant\":\"t1\"", "\"tenant\":\"t\\u00001\"", "spec.tenant"},
    {"\"tenant\":\"t1\"", "\"tenant\":7", "spec.tenant: 7"},
    {"\"tenant\":\"t1\"", "\"tenant\":\"ttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt\"",
     "at most 63"},
    {"\"leaseUUID\":\"" U1, "\"leaseUUID\":\"00000000-0000-0000-0000-000000000000", "spec.leaseUUID"},
    {"\"leaseUUID\":\"" U1, "\"leaseUUID\":\"0000000A-0000-4000-8000-000000000001", "lower-case UUID"},
    {"\"leaseUUID\":\"" U1, "\"leaseUUID\":\"nonsense", "UUID"},
    {"\"prefix\":\"fd12::1:0:1:0:0/96\"", "\"prefix\":\"fd12::1:0:1:0:1/96\"", "canonical"},
    {"\"prefix\":\"fd12::1:0:1:0:0/96\"", "\"prefix\":\"FD12::1:0:1:0:0/96\"", "canonical"},
    {"\"prefix\":\"fd12::1:0:1:0:0/96\"", "\"prefix\":\"10.0.0.0/8\"", "canonical"},
    {"\"state\":\"Open\"", "\"state\":\"Ajar\"", "Open Closed"},
    {"\"state\":\"Open\",", "", "status.gate.state: is missing"},
    {"\"acquireTime\":\"2026-11-29T12:00:00.123456789+01:00\"", "\"acquireTime\":\"yesterday\"", "RFC 3339"},
    {"\"acquireTime\":\"2026-11-29T12:00:00.123456789+01:00\"", "\"acquireTime\":\"0001-01-01T00:00:00Z\"",
     "1970"},
    {"\"correlationID\":\"" CORR, "\"correlationID\":\"01", "32 hex"},
    {"\"serviceRef\":{", "\"serviceRef\":3,\"x\":{", "an object"},
    {"\"conditions\":[", "\"conditions\":{},\"x\":[", "a list"},
    {"\"status\":\"True\",\"reason\":\"Open\"", "\"status\":\"Yes\",\"reason\":\"Open\"",
     "False True Unknown"},
    {"\"kind\":\"RouteClaim\"", "\"kind\":\"Pod\"", "kind: \"Pod\""},
    {"edge.galactic.datumapis.com/v1alpha1", "edge.galactic.datumapis.com/v1", "apiVersion"},
    {"\"metadata\":{", "\"metadata\":7,\"x\":{", "metadata"},
    {"\"resourceVersion\":\"77\"", "\"resourceVersion\":77", "metadata.resourceVersion"},
    {"\"uid\":\"" U1 "\"}", "\"uid\":\"x\"}", "metadata.uid"},
    {"\"finalizers\":[\"x.y/z\"]", "\"finalizers\":[1]", "metadata.finalizers"},
    {"\"finalizers\":[\"x.y/z\"]", "\"finalizers\":\"x\"", "metadata.finalizers"},
};

Test(contract_decode, refuses_with_path_value_and_expectation)
{
    for (size_t i = 0; i < BASE_LEN(bad); i++) {
        struct contract_object o = {.kind = CONTRACT_BINDING};
        struct base_err err = {0};
        const char *at = strstr(claim_json, bad[i].from);
        char text[4096];

        cr_assert(at, "row %zu does not apply", i);
        (void)base_fmt(text, sizeof text, "%.*s%s%s", (int)(at - claim_json), claim_json, bad[i].to,
                       at + strlen(bad[i].from));
        cr_expect_eq(contract_decode(&o, CONTRACT_CLAIM, base_str_of(text), &err), BASE_EINVAL, "row %zu: %s",
                     i, bad[i].to);
        cr_expect(strstr(err.msg, bad[i].says), "row %zu: '%s' does not say '%s'", i, err.msg, bad[i].says);
        cr_expect_eq(o.kind, CONTRACT_BINDING, "row %zu: written in part", i);
    }
}

Test(contract_decode, survives_every_cut_and_flip)
{
    static char text[sizeof claim_json];
    struct contract_object o;
    struct base_err err;

    for (size_t n = 0; n < sizeof claim_json - 1; n++)
        cr_expect_eq(contract_decode(&o, CONTRACT_CLAIM, (struct base_str){claim_json, n}, &err), BASE_EINVAL,
                     "cut at %zu", n);
    for (size_t n = 0; n < sizeof claim_json - 1; n++) {
        memcpy(text, claim_json, sizeof text);
        text[n] = (char)(text[n] ^ 0x15);
        (void)contract_decode(&o, CONTRACT_CLAIM, (struct base_str){text, sizeof text - 1}, &err);
        (void)contract_decode_any(&o, (struct base_str){text, sizeof text - 1}, &err);
    }
}

Test(contract_decode, any_takes_the_kind_from_the_text)
{
    struct contract_object o;
    struct base_err err = {0};

    cr_expect_eq(contract_decode_any(&o, BASE_STR(claim_json), &err), BASE_OK, "%s", err.msg);
    cr_expect_eq(o.kind, CONTRACT_CLAIM);
    cr_expect_eq(contract_decode_any(&o, BASE_STR("{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}"), &err),
                 BASE_EINVAL);
    cr_expect_eq(contract_decode_any(&o, BASE_STR("{\"kind\":\"RouteClaim\"}"), &err), BASE_EINVAL,
                 "without apiVersion");
    cr_expect_eq(contract_decode_any(&o, BASE_STR("[]"), &err), BASE_EINVAL);
    cr_expect_eq(contract_decode_any(&o, BASE_STR("{\"kind\":\"RouteClaim\",\"apiVersion\":\"v1\"}"), &err),
                 BASE_EINVAL);
}

Test(contract_decode, a_release_at_the_start_of_1970_is_a_release)
{
    struct contract_object o;
    struct base_err err = {0};
    const char *at = strstr(claim_json, "\"leaseDurationSeconds\"");
    char text[4096];

    (void)base_fmt(text, sizeof text, "%.*s\"releaseTime\":\"1970-01-01T00:00:00Z\",%s",
                   (int)(at - claim_json), claim_json, at);
    cr_assert_eq(contract_decode(&o, CONTRACT_CLAIM, base_str_of(text), &err), BASE_OK, "%s", err.msg);
    cr_expect_neq(o.u.claim.spec.release_time, 0);
}

Test(contract_decode, cuts_only_messages)
{
    struct contract_object o;
    struct base_err err = {0};
    const char *at = strstr(claim_json, "\"message\":\"m\"");
    char text[4096], long_text[400];
    char *out;

    memset(long_text, 'm', sizeof long_text);
    memcpy(long_text + 157, "\xe2\x82\xac", 3); /* a character across the cut */
    long_text[399] = '\0';
    (void)base_fmt(text, sizeof text, "%.*s\"message\":\"%s\"%s", (int)(at - claim_json), claim_json,
                   long_text, at + 13);
    cr_assert_eq(contract_decode(&o, CONTRACT_CLAIM, base_str_of(text), &err), BASE_OK, "%s", err.msg);
    cr_expect_eq(strlen(o.u.claim.status.gate_open.message), 157);
    o.u.claim.status.published_epoch = 3;
    out = encode(&o, text);
    has(out, long_text);
    free(out);
}

Test(contract_encode, unchanged_object_keeps_every_byte_that_matters)
{
    struct contract_object o = claim();
    char *out = encode(&o, claim_json);
    static const char *const kept[] = {"\"acquireTime\":\"2026-11-29T12:00:00.123456789+01:00\"",
                                       "\"managedFields\":[{\"manager\":\"m\",\"n\":12345678901234567890}]",
                                       "\"labels\":{\"l\":\"v\"}",
                                       "\"annotations\":{\"a/b\":\"c\"}",
                                       "\"finalizers\":[\"x.y/z\"]",
                                       "\"future\":[1.50,{\"x\":null}]",
                                       "\"later\":1",
                                       "\"keep me\"",
                                       "\"extra\":true",
                                       "\"namespace\":\"hf\"",
                                       "\"generation\":9007199254740993",
                                       "\"resourceVersion\":\"77\""};

    for (size_t i = 0; i < BASE_LEN(kept); i++)
        has(out, kept[i]);
    cr_expect_eq(strlen(out), sizeof claim_json - 1, "only the order of members differs");
    free(out);
}

Test(contract_encode, changes_only_what_changed)
{
    struct contract_object o = claim(), back;
    struct base_err err = {0};
    char *out;

    sample_takeover(&o, "edge2", 9);
    o.u.claim.status.gate_open.status = CONTRACT_COND_FALSE;
    o.u.claim.status.published = (struct contract_cond){CONTRACT_COND_TRUE, "Up", "say \"hi\"", 5, SAMPLE_T0};
    cr_expect_eq(contract_finalizer_add(&o.u.meta, "x.y/new"), BASE_OK);
    o.u.meta.drain = true;
    out = encode(&o, claim_json);
    has(out, "\"keep me\"");
    has(out, "\"future\":[1.50,{\"x\":null}]");
    has(out, "\"later\":1");
    has(out, "\"finalizers\":[\"x.y/z\",\"x.y/new\"]");
    has(out, "\"annotations\":{\"a/b\":\"c\",\"masque.galactic.datumapis.com/drain\":\"true\"}");
    has(out, "\"epoch\":4");
    has(out, "{\"type\":\"Published\",\"status\":\"True\",\"reason\":\"Up\",\"message\":\"say "
             "\\\"hi\\\"\",\"observedGeneration\":5,"
             "\"lastTransitionTime\":\"2026-11-29T12:00:00.000000Z\"}");
    cr_assert_eq(contract_decode(&back, CONTRACT_CLAIM, base_str_of(out), &err), BASE_OK, "%s", err.msg);
    cr_expect(contract_spec_equal(&o, &back));
    cr_expect(contract_status_equal(&o, &back));
    cr_expect(back.u.meta.drain);
    free(out);
}

Test(contract_encode, removes_what_the_value_no_longer_has)
{
    struct contract_object o = claim();
    char *out;

    memset(&o.u.claim.status.gate, 0, sizeof o.u.claim.status.gate);
    o.u.claim.status.gate_open.status = CONTRACT_COND_ABSENT;
    o.u.meta.rv[0] = '\0';
    o.u.meta.uid = (struct base_uuid){{0}};
    cr_expect(contract_finalizer_remove(&o.u.meta, "x.y/z"));
    out = encode(&o, claim_json);
    cr_expect(!strstr(out, "\"gate\""), "%s", out);
    cr_expect(!strstr(out, "GateOpen"), "%s", out);
    cr_expect(!strstr(out, "resourceVersion"), "%s", out);
    cr_expect(!strstr(out, "finalizers"), "%s", out);
    cr_expect(!strstr(out, "\"uid\":\"" U1 "\"}"), "%s", out);
    has(out, "\"keep me\"");
    free(out);
}

Test(contract_encode, keeps_finalizers_that_the_table_cannot_show)
{
    struct contract_object o;
    struct base_err err = {0};
    const char *at = strstr(claim_json, "\"x.y/z\"");
    char text[8192], list[2048] = "\"a/1\"", longest[200];
    char *out;

    memset(longest, 'f', 190);
    longest[190] = '\0';
    for (int i = 2; i <= 10; i++) {
        size_t n = strlen(list);

        if (i == 3)
            (void)base_fmt(list + n, sizeof list - n, ",\"%s\"", longest);
        else
            (void)base_fmt(list + n, sizeof list - n, ",\"a/%d\"", i);
    }
    (void)base_fmt(text, sizeof text, "%.*s%s%s", (int)(at - claim_json), claim_json, list, at + 7);
    cr_assert_eq(contract_decode(&o, CONTRACT_CLAIM, base_str_of(text), &err), BASE_OK, "%s", err.msg);
    cr_expect_eq(o.u.meta.n_finalizers, 10);
    cr_expect_str_eq(o.u.meta.finalizers[2], "");
    cr_expect(contract_finalizer_remove(&o.u.meta, "a/2"));
    out = encode(&o, text);
    has(out, "\"finalizers\":[\"a/1\",\"ffff");
    has(out, "\"a/4\",\"a/5\",\"a/6\",\"a/7\",\"a/8\",\"a/9\",\"a/10\"]");
    free(out);
}

Test(contract_encode, new_objects_read_back)
{
    struct contract_object samples[] = {sample_instance("edge1", sample_uuid(3)),
                                        sample_attachment("edge1", "vpc-a", sample_uuid(4)),
                                        sample_service("s1", "t1", "fd12:0:0:1::/64", SAMPLE_T0),
                                        sample_claim(1, "edge1", "s1", sample_uuid(5)), sample_binding("c1")};

    samples[4].u.binding.spec.takeover = CONTRACT_TAKEOVER_DENIED;
    samples[4].u.binding.spec.suspended = true;
    samples[4].u.binding.spec.retention_seconds = 0;
    samples[4].u.binding.status.has_prefix = true;
    samples[4].u.binding.status.prefix = sample_prefix("fd12::1:0:1:0:0/96");
    (void)base_copy(samples[4].u.binding.status.last.node, CONTRACT_NODE_SIZE, "edge1");
    (void)base_copy(samples[4].u.binding.status.last.generation, 129, "g");
    samples[4].u.binding.status.last.since = SAMPLE_T0;
    for (size_t i = 0; i < BASE_LEN(samples); i++) {
        struct contract_object back;
        struct base_err err = {0};
        char *out = encode(&samples[i], "");

        cr_assert_eq(contract_decode_any(&back, base_str_of(out), &err), BASE_OK, "%s: %s", out, err.msg);
        cr_expect_eq(back.kind, samples[i].kind);
        cr_expect_str_eq(back.u.meta.name, samples[i].u.meta.name);
        cr_expect(contract_spec_equal(&back, &samples[i]), "%s", out);
        cr_expect(contract_status_equal(&back, &samples[i]), "%s", out);
        cr_expect_eq(contract_validate(&back, NULL, &err), BASE_OK, "%s", err.msg);
        free(out);
    }
}

Test(contract_encode, absent_and_zero_are_not_the_same)
{
    struct contract_object o = sample_binding("c1");
    char *out = encode(&o, "");

    cr_expect(!strstr(out, "retentionSeconds") && !strstr(out, "grantSeconds") && !strstr(out, "suspended") &&
                  !strstr(out, "status"),
              "%s", out);
    free(out);
    o = sample_instance("edge1", sample_uuid(3));
    o.u.instance.spec.renew.boot_time_us = 0;
    out = encode(&o, "");
    has(out, "\"bootTimeMicros\":0");
    free(out);
}

Test(contract_encode, is_whole_or_nothing)
{
    struct contract_object o = claim();
    struct base_err err = {0};
    struct base_buf b;

    base_buf_init(&b, 1000);
    cr_expect_eq(base_buf_addz(&b, "before"), BASE_OK);
    cr_expect_eq(contract_encode(&b, &o, BASE_STR(claim_json), &err), BASE_EFULL);
    cr_expect_str_eq(b.data, "before");
    cr_expect_eq(contract_encode(&b, &o, BASE_STR("{\"kind\":"), &err), BASE_EINVAL);
    cr_expect_str_eq(b.data, "before");
    base_buf_fini(&b);
}

Test(contract_codec, every_failing_allocation_is_reported)
{
    struct contract_object o = claim();
    bool encoded = false, decoded = false;

    for (unsigned long n = 1; n < 200 && !(encoded && decoded); n++) {
        struct contract_object back = {.kind = CONTRACT_BINDING};
        struct base_buf b;
        int rc;

        base_buf_init(&b, 1u << 20);
        base_mem_fail_after(n);
        rc = contract_encode(&b, &o, BASE_STR(claim_json), NULL);
        base_mem_fail_after(0);
        cr_expect(rc == BASE_OK || rc == BASE_ENOMEM, "encode, allocation %lu: %d", n, rc);
        encoded |= rc == BASE_OK;
        base_buf_fini(&b);
        base_mem_fail_after(n);
        rc = contract_decode(&back, CONTRACT_CLAIM, BASE_STR(claim_json), NULL);
        base_mem_fail_after(0);
        cr_expect(rc == BASE_OK || (rc == BASE_ENOMEM && back.kind == CONTRACT_BINDING),
                  "decode, allocation %lu: %d", n, rc);
        decoded |= rc == BASE_OK;
    }
    cr_expect(encoded && decoded);
}

static const char instance_json[] =
    "{\"apiVersion\":\"edge.galactic.datumapis.com/v1alpha1\",\"kind\":\"ProviderInstance\",\"metadata\":{"
    "\"name\":\"masque.edge1\",\"annotations\":{\"a/b\":\"c\",\"masque.galactic.datumapis.com/"
    "agent-version\":"
    "\"%s\"}},\"spec\":{\"provider\":\"masque\",\"nodeName\":\"edge1\",\"nodeUID\":\"" U1
    "\",\"processID\":\"" U1 "\",\"epoch\":1,\"leaseDurationSeconds\":30,\"renew\":{\"bootID\":\"" U1
    "\",\"bootTimeMicros\":1,\"time\":\"2026-11-29T12:00:00Z\"}}}";

Test(contract_encode, the_agents_version_is_an_annotation_beside_others)
{
    static const struct {
        const char *was, *read, *now, *says;
    } rows[] = {
        {"0.1.0", "0.1.0", "0.2.0-rc.1",
         "\"annotations\":{\"a/b\":\"c\",\"masque.galactic.datumapis.com/agent-version\":\"0.2.0-rc.1\"}"},
        {"0.1.0", "0.1.0", "0.1.0",
         "\"annotations\":{\"a/b\":\"c\",\"masque.galactic.datumapis.com/agent-version\":\"0.1.0\"}"},
        {"no version", "", "",
         "\"masque.galactic.datumapis.com/agent-version\":\"no version\""}, /* kept, not believed */
        {"\\u001b[31m", "", "0.1.0", "\"masque.galactic.datumapis.com/agent-version\":\"0.1.0\"}"},
        {"0123456789012345678901234567890123456789", "", "0.1.0", "agent-version\":\"0.1.0\"}"},
    };

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct contract_object o;
        struct base_err err = {0};
        char text[2048], *out;

        (void)base_fmt(text, sizeof text, instance_json, rows[i].was);
        cr_assert_eq(contract_decode(&o, CONTRACT_INSTANCE, base_str_of(text), &err), BASE_OK, "%s", err.msg);
        cr_expect_str_eq(o.u.instance.agent_version, rows[i].read, "row %zu", i);
        (void)base_copy(o.u.instance.agent_version, sizeof o.u.instance.agent_version, rows[i].now);
        out = encode(&o, text);
        has(out, rows[i].says);
        free(out);
        out = encode(&o, ""); /* a creation */
        cr_expect_eq(strstr(out, "agent-version") != NULL, rows[i].now[0] != '\0', "row %zu: %s", i, out);
        free(out);
    }
}
