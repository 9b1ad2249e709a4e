/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/preflight.h"

#include <criterion/criterion.h>

#include "base/mem.h"

Test(agent_preflight, skew_is_what_cannot_be_explained_by_the_request)
{
    static const struct {
        const char *stamp;
        double ahead; /* of our moment "sent", s; the answer took 0.5 s */
        bool there;
        double skew;
    } rows[] = {
        {"2026-11-30T00:00:00Z", 0, true, 0},      {"2026-11-30T00:00:00Z", 0.9, true, 0},
        {"2026-11-30T00:00:00Z", -0.4, true, 0},   {"2026-11-30T00:00:00Z", 11, true, -10},
        {"2026-11-30T00:00:00Z", -10.5, true, 10}, {"yesterday", 0, false, 0},
    };
    base_wall zero;

    cr_assert_eq(base_rfc3339_parse(BASE_STR("2026-11-30T00:00:00Z"), &zero), BASE_OK);
    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        base_wall sent = zero + (base_wall)(rows[i].ahead * 1e6);
        char text[128];
        double skew = 0;

        (void)base_fmt(text, sizeof text, "{\"metadata\":{\"creationTimestamp\":\"%s\"}}", rows[i].stamp);
        cr_assert_eq(agent_preflight_skew(base_str_of(text), sent, sent + 500000, &skew), rows[i].there,
                     "row %zu", i);
        cr_assert_float_eq(skew, rows[i].skew, 0.001, "row %zu: %f", i, skew);
    }
    {
        double skew = 0;

        cr_assert_not(
            agent_preflight_skew(BASE_STR("{\"metadata\":{\"creationTimestamp\":null}}"), 0, 0, &skew));
        cr_assert_not(agent_preflight_skew(BASE_STR(""), 0, 0, &skew));
    }
}

Test(agent_preflight, only_our_policys_refusal_counts)
{
    static const struct {
        int status;
        const char *body;
        int code;
    } rows[] = {
        {403,
         "{\"message\":\"x is forbidden: ValidatingAdmissionPolicy 'holdfast-agent-writes' with binding\"}",
         BASE_OK},
        {403, "{\"message\":\"x is forbidden: User cannot create resource\"}", BASE_EINVAL},
        {403, "{\"message\":\"ValidatingAdmissionPolicy 'holdfast-other' denied\"}", BASE_EINVAL},
        {201, "{\"message\":\"ValidatingAdmissionPolicy 'holdfast-agent-writes'\"}", BASE_EINVAL},
        {422, "", BASE_EINVAL},
        {500, "", BASE_EINVAL},
    };

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct base_err err = {0};

        cr_assert_eq(agent_preflight_fence(rows[i].status, base_str_of(rows[i].body), &err), rows[i].code,
                     "row %zu", i);
    }
}
