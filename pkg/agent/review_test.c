/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/review.h"

#include <criterion/criterion.h>

#include "audit/parse.h"
#include "base/mem.h"

#define OURS "\"audiences\":[\"" AUDIT_PAGE_AUDIENCE "\"]"
#define USER                                                                                                 \
    "\"user\":{\"username\":\"system:serviceaccount:ns:auditor\",\"groups\":[\"g\"],\"extra\":{\"k\":["      \
    "\"v\"]}}"

Test(agent_review, who_is_let_in_by_a_token_review)
{
    static const struct {
        const char *answer;
        int code;
    } rows[] = {
        {"{\"status\":{\"authenticated\":true," USER "," OURS "}}", BASE_OK},
        {"{\"status\":{\"authenticated\":false," USER "," OURS "}}", BASE_EDENIED},
        {"{\"status\":{" USER "," OURS "}}", BASE_EDENIED},                            /* absent */
        {"{\"status\":{\"authenticated\":\"true\"," USER "," OURS "}}", BASE_EDENIED}, /* of another type */
        {"{\"status\":{\"Authenticated\":true," USER "," OURS "}}", BASE_EDENIED},     /* in another case */
        {"{\"status\":{\"authenticated\":true," USER "}}", BASE_EDENIED}, /* for nobody in particular */
        {"{\"status\":{\"authenticated\":true," USER ",\"audiences\":[]}}", BASE_EDENIED},
        {"{\"status\":{\"authenticated\":true," USER ",\"audiences\":[\"https://kubernetes.default.svc\"]}}",
         BASE_EDENIED},
        {"{\"status\":{\"authenticated\":true," USER ",\"audiences\":[7]}}", BASE_EDENIED},
        {"{\"status\":{\"authenticated\":true,\"user\":{}," OURS "}}", BASE_EDENIED},
        {"{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"\"}," OURS "}}", BASE_EDENIED},
        {"{\"status\":{\"authenticated\":true,\"user\":{\"username\":9}," OURS "}}", BASE_EDENIED},
        {"{\"status\":{\"authenticated\":true," OURS "}}", BASE_EDENIED},
        {"{}", BASE_EPROTO},
        {"nonsense", BASE_EPROTO},
        {"", BASE_EPROTO},
    };

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct base_err err = {0};
        struct base_buf out;
        char user[64] = "";

        base_buf_init(&out, 65536);
        cr_assert_eq(agent_review_access(&out, base_str_of(rows[i].answer), AUDIT_PAGE_AUDIENCE, "/audit",
                                         user, sizeof user, &err),
                     rows[i].code, "row %zu: %s", i, err.msg);
        if (rows[i].code == BASE_OK)
            cr_assert_str_eq(
                out.data, "{\"apiVersion\":\"authorization.k8s.io/"
                          "v1\",\"kind\":\"SubjectAccessReview\",\"spec\":{\"user\":"
                          "\"system:serviceaccount:ns:auditor\",\"groups\":[\"g\"],\"extra\":{\"k\":[\"v\"]},"
                          "\"nonResourceAttributes\":{\"path\":\"/audit\",\"verb\":\"get\"}}}");
        else
            cr_assert_eq(out.len, 0, "row %zu", i);
        base_buf_fini(&out);
    }
}

Test(agent_review, what_a_subject_access_review_allows)
{
    static const struct {
        const char *answer;
        int code;
    } rows[] = {{"{\"status\":{\"allowed\":true}}", BASE_OK},
                {"{\"status\":{\"allowed\":true,\"denied\":true}}", BASE_EDENIED},
                {"{\"status\":{\"allowed\":false}}", BASE_EDENIED},
                {"{\"status\":{\"allowed\":\"true\"}}", BASE_EDENIED},
                {"{\"status\":{\"allowed\":1}}", BASE_EDENIED},
                {"{\"status\":{}}", BASE_EDENIED},
                {"{\"allowed\":true}", BASE_EPROTO},
                {"x", BASE_EPROTO}};

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct base_err err = {0};

        cr_assert_eq(agent_review_allowed(base_str_of(rows[i].answer), "bind it", &err), rows[i].code,
                     "row %zu", i);
    }
}

Test(agent_review, the_review_asks_for_our_audience)
{
    struct base_buf out;

    base_buf_init(&out, 65536);
    cr_assert_eq(agent_review_token(&out, BASE_STR("abc"), AUDIT_PAGE_AUDIENCE), BASE_OK);
    cr_assert_str_eq(out.data, "{\"apiVersion\":\"authentication.k8s.io/"
                               "v1\",\"kind\":\"TokenReview\",\"spec\":{\"token\":\"abc\"," OURS "}}");
    base_buf_fini(&out);
}

/* Prometheus' own token: whatever audience the API server takes. */
Test(agent_review, without_an_audience_the_servers_own_counts)
{
    struct base_err err = {0};
    struct base_buf out;
    char user[64] = "";

    base_buf_init(&out, 65536);
    cr_assert_eq(agent_review_token(&out, BASE_STR("abc"), NULL), BASE_OK);
    cr_assert_null(strstr(out.data, "audiences"));
    base_buf_reset(&out);
    cr_assert_eq(agent_review_access(&out, BASE_STR("{\"status\":{\"authenticated\":true," USER "}}"), NULL,
                                     "/metrics", user, sizeof user, &err),
                 BASE_OK);
    cr_assert_not_null(strstr(out.data, "\"path\":\"/metrics\""));
    cr_assert_eq(agent_review_access(&out, BASE_STR("{\"status\":{" USER "}}"), NULL, "/metrics", user,
                                     sizeof user, &err),
                 BASE_EDENIED);
    base_buf_fini(&out);
}
