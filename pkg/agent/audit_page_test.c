/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/audit_page.h"

#include <criterion/criterion.h>

#include "audit/parse.h"
#include "base/mem.h"

#define OURS "\"audiences\":[\"" AUDIT_PAGE_AUDIENCE "\"]"
#define USER                                                                                                 \
    "\"user\":{\"username\":\"system:serviceaccount:ns:auditor\",\"groups\":[\"g\"],\"extra\":{\"k\":["      \
    "\"v\"]}}"

Test(agent_audit_page, who_is_let_in_by_a_token_review)
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
        cr_assert_eq(agent_audit_page_access(&out, base_str_of(rows[i].answer), user, sizeof user, &err),
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

Test(agent_audit_page, what_a_subject_access_review_allows)
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

        cr_assert_eq(agent_audit_page_allowed(base_str_of(rows[i].answer), &err), rows[i].code, "row %zu", i);
    }
}

Test(agent_audit_page, the_review_asks_for_our_audience)
{
    struct base_buf out;

    base_buf_init(&out, 65536);
    cr_assert_eq(agent_audit_page_review(&out, BASE_STR("abc")), BASE_OK);
    cr_assert_str_eq(out.data, "{\"apiVersion\":\"authentication.k8s.io/"
                               "v1\",\"kind\":\"TokenReview\",\"spec\":{\"token\":\"abc\"," OURS "}}");
    base_buf_fini(&out);
}

Test(agent_audit_page, parameters)
{
    static const struct {
        const char *key, *value;
        int code;
    } rows[] = {{"correlationID", "0123456789abcdef0123456789abcdef", BASE_OK},
                {"correlationID", "0123456789ABCDEF0123456789abcdef", BASE_EINVAL},
                {"correlationID", "", BASE_EINVAL},
                {"correlationID", NULL, BASE_EINVAL},
                {"object", "rc-fd12", BASE_OK},
                {"object", "../x", BASE_EINVAL},
                {"connector", "site-1", BASE_OK},
                {"connector", "Site", BASE_EINVAL},
                {"since", "2026-11-29T21:08:22Z", BASE_OK},
                {"since", "10m", BASE_EINVAL},
                {"until", "2026-11-29T21:08:22+02:00", BASE_OK},
                {"after", "18446744073709551615", BASE_OK},
                {"after", "18446744073709551616", BASE_EINVAL},
                {"after", "-1", BASE_EINVAL},
                {"limit", "1000", BASE_OK},
                {"limit", "1001", BASE_EINVAL},
                {"limit", "0", BASE_EINVAL},
                {"Limit", "1", BASE_EINVAL},
                {"", "1", BASE_EINVAL}};

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct audit_query q = {.after = 0};
        struct base_err err = {0};
        unsigned limit = 5;

        cr_assert_eq(agent_audit_page_param(&q, &limit, rows[i].key, rows[i].value, &err), rows[i].code,
                     "row %zu: %s", i, err.msg);
        if (rows[i].code)
            cr_assert_not_null(strstr(err.msg, rows[i].key), "row %zu", i);
    }
}
