/* SPDX-License-Identifier: Apache-2.0 */
#include "authority/standing.h"

#include <criterion/criterion.h>

#define T (1000 * BASE_SEC)
#define KUBE AUTHORITY_POLICY_KUBERNETES
#define HOOK AUTHORITY_POLICY_WEBHOOK
static const base_time grant = 30 * BASE_SEC;

static const struct authority_answer yes = {
    .verdict = AUTHORITY_ALLOWED, .grant = 20 * BASE_SEC, .user = "u"};
static const struct authority_answer no = {.verdict = AUTHORITY_DENIED};
static const struct authority_answer silent = {.verdict = AUTHORITY_UNAVAILABLE};

static enum authority_reason tell(struct authority_standing *s, enum authority_question q,
                                  const struct authority_answer *a, base_time t0)
{
    struct authority_ask asked = {.question = q, .identity = ""};
    return authority_told(s, &asked, a, t0);
}

Test(authority_standing, what_is_asked_before_a_request_may_enter)
{
    static const struct {
        enum authority_policy policy;
        bool token;
        enum authority_question q[3];
    } rows[] = {
        {KUBE, false, {AUTHORITY_ASK_NONE}},
        {KUBE, true, {AUTHORITY_ASK_IDENTITY, AUTHORITY_ASK_NONE}},
        {HOOK, false, {AUTHORITY_ASK_CONNECT, AUTHORITY_ASK_NONE}},
        {HOOK, true, {AUTHORITY_ASK_IDENTITY, AUTHORITY_ASK_CONNECT, AUTHORITY_ASK_NONE}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct authority_standing s = {.token = rows[i].token};
        for (unsigned k = 0;; k++) {
            cr_assert_eq(authority_authorize(rows[i].policy, &s), rows[i].q[k], "row %zu, question %u", i, k);
            if (rows[i].q[k] == AUTHORITY_ASK_NONE)
                break;
            cr_assert_eq(authority_until(rows[i].policy, &s, grant), 0, "nothing is given yet");
            cr_assert_eq(tell(&s, rows[i].q[k], &silent, T), AUTHORITY_OK);
            cr_assert_eq(authority_authorize(rows[i].policy, &s), rows[i].q[k], "silence answers nothing");
            cr_assert_eq(tell(&s, rows[i].q[k], &yes, T), AUTHORITY_OK);
        }
    }
}

Test(authority_standing, a_claim_permission_is_for_one_prefix_and_epoch)
{
    struct authority_standing s = {0};
    struct base_prefix p = {.len = 96}, other = {.len = 96};
    other.addr.b[11] = 1;
    cr_assert_eq(authority_claim(KUBE, &s, &p, 0), AUTHORITY_ASK_NONE);
    cr_assert_eq(authority_claim(KUBE, &s, &p, 9), AUTHORITY_ASK_NONE);
    cr_assert_eq(authority_claim(HOOK, &s, &p, 0), AUTHORITY_ASK_ACQUIRE);
    cr_assert_eq(authority_claim(HOOK, &s, &p, 9), AUTHORITY_ASK_TAKEOVER);
    struct authority_ask asked = {.question = AUTHORITY_ASK_TAKEOVER, .prefix = p, .epoch = 9};
    cr_assert_eq(authority_told(&s, &asked, &yes, T), AUTHORITY_OK);
    cr_assert_eq(authority_claim(HOOK, &s, &p, 9), AUTHORITY_ASK_NONE);
    cr_assert_eq(authority_claim(HOOK, &s, &p, 10), AUTHORITY_ASK_TAKEOVER);
    cr_assert_eq(authority_claim(HOOK, &s, &p, 8), AUTHORITY_ASK_TAKEOVER);
    cr_assert_eq(authority_claim(HOOK, &s, &p, 0), AUTHORITY_ASK_ACQUIRE);
    cr_assert_eq(authority_claim(HOOK, &s, &other, 9), AUTHORITY_ASK_TAKEOVER);
    asked.question = AUTHORITY_ASK_ACQUIRE;
    asked.epoch = 0;
    cr_assert_eq(authority_told(&s, &asked, &yes, T), AUTHORITY_OK);
    cr_assert_eq(authority_claim(HOOK, &s, &p, 0), AUTHORITY_ASK_NONE);
    cr_assert_eq(authority_claim(HOOK, &s, &p, 9), AUTHORITY_ASK_TAKEOVER);
}

Test(authority_standing, refusals_by_question)
{
    static const struct {
        enum authority_question q;
        enum authority_reason r;
    } rows[] = {{AUTHORITY_ASK_IDENTITY, AUTHORITY_UNAUTHENTICATED},
                {AUTHORITY_ASK_CONNECT, AUTHORITY_NOT_PERMITTED},
                {AUTHORITY_ASK_ACQUIRE, AUTHORITY_NOT_PERMITTED},
                {AUTHORITY_ASK_TAKEOVER, AUTHORITY_TAKEOVER_NOT_PERMITTED},
                {AUTHORITY_ASK_REFRESH, AUTHORITY_NOT_PERMITTED}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct authority_standing s = {.token = true, .identity_t0 = T, .permit_t0 = T, .permit = grant};
        cr_assert_gt(authority_until(HOOK, &s, grant), T);
        cr_assert_eq(tell(&s, rows[i].q, &no, T + 1), rows[i].r);
        cr_assert_eq(authority_until(HOOK, &s, grant), 0, "retired");
        enum authority_question q;
        cr_assert_eq(authority_refresh(HOOK, &s, 10 * BASE_SEC, grant, 0, &q), BASE_TIME_NEVER);
        cr_assert_eq(q, AUTHORITY_ASK_NONE);
    }
}

Test(authority_standing, another_user_is_another_identity)
{
    struct authority_standing s = {.token = true, .identity_t0 = T};
    struct authority_ask asked = {.question = AUTHORITY_ASK_IDENTITY, .identity = "u"};
    cr_assert_eq(authority_told(&s, &asked, &yes, T + 5), AUTHORITY_OK);
    cr_assert_eq(s.identity_t0, T + 5);
    base_copy(asked.identity, sizeof asked.identity, "U");
    cr_assert_eq(authority_told(&s, &asked, &yes, T + 6), AUTHORITY_IDENTITY_CHANGED);
    cr_assert_eq(authority_until(KUBE, &s, grant), 0);
}

Test(authority_standing, until_is_the_earliest_and_nobody_exceeds_the_cap)
{
    struct authority_standing s = {0};
    cr_assert_eq(authority_until(KUBE, &s, grant), BASE_TIME_NEVER, "the collection proofs give the end");
    s = (struct authority_standing){.token = true, .identity_t0 = T};
    cr_assert_eq(authority_until(KUBE, &s, grant), T + grant);
    cr_assert_eq(authority_until(HOOK, &s, grant), 0);
    s.permit_t0 = T + BASE_SEC;
    s.permit = 6 * BASE_SEC;
    cr_assert_eq(authority_until(HOOK, &s, grant), T + 7 * BASE_SEC);
    s.permit_t0 = T + 29 * BASE_SEC;
    cr_assert_eq(authority_until(HOOK, &s, grant), T + grant);
    /* a grant beyond the cap, with the answer's own check bypassed */
    struct authority_answer huge = {.verdict = AUTHORITY_ALLOWED, .grant = 3600 * BASE_SEC};
    s = (struct authority_standing){0};
    cr_assert_eq(tell(&s, AUTHORITY_ASK_CONNECT, &huge, T), AUTHORITY_OK);
    cr_assert_eq(s.permit, AUTHORITY_GRANT_MAX);
    cr_assert_eq(authority_until(HOOK, &s, 3600 * BASE_SEC), T + AUTHORITY_GRANT_MAX);
    /* and one that is stricter than the connector's */
    cr_assert_eq(authority_until(HOOK, &s, 6 * BASE_SEC), T + 6 * BASE_SEC);
}

Test(authority_standing, late_answers_take_nothing_back)
{
    struct authority_standing s = {.token = true};
    cr_assert_eq(tell(&s, AUTHORITY_ASK_IDENTITY, &yes, T + 9), AUTHORITY_OK);
    cr_assert_eq(tell(&s, AUTHORITY_ASK_IDENTITY, &yes, T), AUTHORITY_OK);
    cr_assert_eq(s.identity_t0, T + 9);
    struct authority_answer shorter = yes;
    shorter.grant = 5 * BASE_SEC;
    cr_assert_eq(tell(&s, AUTHORITY_ASK_REFRESH, &shorter, T + 9), AUTHORITY_OK);
    cr_assert_eq(tell(&s, AUTHORITY_ASK_REFRESH, &yes, T), AUTHORITY_OK);
    cr_assert_eq(s.permit_t0, T + 9);
    cr_assert_eq(s.permit, 5 * BASE_SEC);
}

Test(authority_standing, refresh_is_in_time_for_two_tries)
{
    static const base_time permits[] = {BASE_SEC, 6 * BASE_SEC, 30 * BASE_SEC};
    for (size_t i = 0; i < 3; i++)
        for (uint64_t d = 0; d < 200; d++) {
            struct authority_standing s = {.permit_t0 = T, .permit = permits[i]};
            enum authority_question q;
            base_time at =
                authority_refresh(HOOK, &s, 10 * BASE_SEC, grant, d * UINT64_C(0x9e3779b97f4a7c15), &q);
            cr_assert_eq(q, AUTHORITY_ASK_REFRESH);
            cr_assert(at > T && at <= T + permits[i] / 3 && at <= T + 10 * BASE_SEC);
        }
}

Test(authority_standing, retire_tells_the_webhook_once)
{
    struct authority_standing s = {.permit_t0 = T, .permit = grant};
    cr_assert_eq(authority_retire(HOOK, &s), AUTHORITY_ASK_RETIRE);
    cr_assert_eq(authority_until(HOOK, &s, grant), 0);
    cr_assert_eq(authority_retire(HOOK, &s), AUTHORITY_ASK_NONE);
    s = (struct authority_standing){.token = true, .identity_t0 = T};
    cr_assert_eq(authority_retire(KUBE, &s), AUTHORITY_ASK_NONE);
    cr_assert_eq(authority_until(KUBE, &s, grant), 0);
}
