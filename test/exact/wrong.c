/* SPDX-License-Identifier: Apache-2.0
 *
 * wrong.c - wrong variants: overflow, rounding, an argument left out, two arguments taken for each other.
 * Each has to be found by the check that is named with it.
 */
#include <stdlib.h>
#include <string.h>

#include "exact.h"

static base_time add_wraps(base_time a, base_time b)
{
    return (base_time)((uint64_t)a + (uint64_t)b);
}
static base_time add_one_end(base_time a, base_time b)
{
    base_time r;

    return __builtin_add_overflow(a, b, &r) ? BASE_TIME_NEVER : r;
}
static base_time until_swapped(base_time t0, int32_t l, base_time guard)
{
    return lease_until(guard, l, t0 == INT64_MIN ? 0 : t0); /* it negates its guard */
}
static base_time until_no_guard(base_time t0, int32_t l, base_time guard)
{
    return lease_until(t0, l, guard * 0);
}
static base_time until_wraps(base_time t0, int32_t l, base_time guard)
{
    l = l > LEASE_SECONDS_MAX ? LEASE_SECONDS_MAX : l;
    return t0 <= 0 || l <= 0 ? 0
                             : (base_time)((uint64_t)t0 + (uint64_t)l * (uint64_t)BASE_SEC - (uint64_t)guard);
}
static base_time until_narrow(base_time t0, int32_t l, base_time guard)
{
    l = l > LEASE_SECONDS_MAX ? LEASE_SECONDS_MAX : l;
    return t0 <= 0 || l <= 0 ? 0
                             : base_time_add(base_time_add(t0, (int32_t)((uint32_t)l * 1000000000u)), -guard);
}
static base_time until_no_cap(base_time t0, int32_t l, base_time guard)
{
    return t0 <= 0 || l <= 0 ? 0 : base_time_add(base_time_add(t0, l * BASE_SEC), -guard);
}
static base_time until_of_nothing(base_time t0, int32_t l, base_time guard)
{
    return base_time_add(base_time_add(t0, l * BASE_SEC), -guard);
}

#define DEADLINE(name, change)                                                                               \
    static base_time name(const struct lease_facts *f, enum lease_part *p)                                   \
    {                                                                                                        \
        struct lease_facts x = *f;                                                                           \
        change;                                                                                              \
        return lease_session_deadline(&x, p);                                                                \
    }
DEADLINE(deadline_no_authority, x.authority_t0 = INT64_MAX)
DEADLINE(deadline_no_renewal, x.renewed = INT64_MAX)
DEADLINE(deadline_no_claim, x.claim_t0 = INT64_MAX)
DEADLINE(deadline_no_service, x.service_until = INT64_MAX)
DEADLINE(deadline_instance_lease, x.row_lease_s = f->instance_lease_s)
DEADLINE(deadline_row_lease, x.instance_lease_s = f->row_lease_s)
DEADLINE(deadline_claim_is_authority, (x.claim_t0 = f->authority_t0, x.authority_t0 = f->claim_t0))
DEADLINE(deadline_renewal_is_authority, (x.renewed = f->authority_t0, x.authority_t0 = f->renewed))
DEADLINE(deadline_renewal_for_claim, x.claim_t0 = f->renewed)
DEADLINE(deadline_grant_is_guard, (x.guard = f->grant, x.grant = f->guard))
DEADLINE(deadline_service_is_authority,
         (x.service_until = f->authority_t0, x.authority_t0 = f->service_until))
DEADLINE(deadline_guard_off_grant, x.grant = f->grant - f->guard)

static base_time wait_with(const struct contract_timing *t, int32_t l, int64_t num, int64_t den,
                           base_time lag, bool round)
{
    __int128 n = (__int128)num * ((__int128)l * BASE_SEC * 1000000 + (__int128)lag * den),
             d = (__int128)den * 1000000;
    bool allowed = t->rate_ppm >= 0 && t->rate_ppm <= 100000 && t->gate_lag >= 0 &&
                   t->gate_lag <= 10 * BASE_SEC && l >= 0 && l <= 300;

    return allowed ? (base_time)((n + (round ? d - 1 : 0)) / d) + 2 * BASE_SEC : BASE_TIME_NEVER;
}
static base_time wait_down(const struct contract_timing *t, int32_t l)
{
    return wait_with(t, l, 1000000 + t->rate_ppm, 1000000 - t->rate_ppm, t->gate_lag, false);
}
static base_time wait_no_lag(const struct contract_timing *t, int32_t l)
{
    return wait_with(t, l, 1000000 + t->rate_ppm, 1000000 - t->rate_ppm, 0, true);
}
static base_time wait_one_clock(const struct contract_timing *t, int32_t l)
{
    return wait_with(t, l, 1000000, 1000000 - t->rate_ppm, t->gate_lag, true);
}
static base_time wait_wrong_sign(const struct contract_timing *t, int32_t l)
{
    return wait_with(t, l, 1000000 - t->rate_ppm, 1000000 + t->rate_ppm, t->gate_lag, true);
}
static base_time wait_own_lease(const struct contract_timing *t, int32_t l)
{
    return contract_wait(t, l > 0 && l <= 300 ? (int32_t)(t->lease / BASE_SEC) : l);
}
static base_time wait_no_margin(const struct contract_timing *t, int32_t l)
{
    base_time w = contract_wait(t, l);

    return w == BASE_TIME_NEVER ? w : w - 2 * BASE_SEC;
}
static base_time wait_of_nonsense(const struct contract_timing *t, int32_t l)
{
    base_time w = contract_wait(t, l);

    return w == BASE_TIME_NEVER ? 0 : w;
}

static base_time wait_end_unseen(int32_t l, base_time seen, const struct contract_timing *t)
{
    return base_time_add(seen, contract_wait(t, l));
}
static base_time wait_end_now(int32_t l, base_time seen, const struct contract_timing *t)
{
    return seen <= 0 ? BASE_TIME_NEVER : seen;
}
static base_time wait_end_wraps(int32_t l, base_time seen, const struct contract_timing *t)
{
    return seen <= 0 ? BASE_TIME_NEVER : (base_time)((uint64_t)seen + (uint64_t)contract_wait(t, l));
}

#define OVER(name, expression)                                                                               \
    static bool name(int64_t epoch, int64_t closed, int32_t l, base_time seen, base_time now,                \
                     const struct contract_timing *t)                                                        \
    {                                                                                                        \
        return expression;                                                                                   \
    }
OVER(over_gap, closed >= epoch - 2 || lease_earlier_over(epoch, closed, l, seen, now, t))
OVER(over_own, lease_earlier_over(epoch + 1, closed, l, seen, now, t))
OVER(over_swapped, lease_earlier_over(closed, epoch, l, seen, now, t))
OVER(over_times_swapped, lease_earlier_over(epoch, closed, l, now, seen, t))
OVER(over_never_waits, closed >= epoch - 1)
OVER(over_at_once, lease_earlier_over(epoch, closed, l, seen, base_time_add(now, 1), t))
OVER(over_late, lease_earlier_over(epoch, closed, l, seen, now - 1, t))
OVER(over_low_bits, (int32_t)(uint32_t)closed >= (int32_t)(uint32_t)(epoch - 1) ||
                        lease_earlier_over(epoch, closed, l, seen, now, t))

static int generation_epoch_first(const struct lease_generation *a, const struct lease_generation *b)
{
    return a->epoch != b->epoch ? (a->epoch < b->epoch ? -1 : 1) : lease_generation_cmp(a, b);
}
static int generation_no_uid(const struct lease_generation *a, const struct lease_generation *b)
{
    struct lease_generation x = *a;

    x.uid = b->uid;
    return lease_generation_cmp(&x, b);
}
static int generation_no_counter(const struct lease_generation *a, const struct lease_generation *b)
{
    struct lease_generation x = *a;

    x.counter = b->counter;
    return lease_generation_cmp(&x, b);
}
static int generation_subtracts(const struct lease_generation *a, const struct lease_generation *b)
{
    struct lease_generation x = *a;

    if (a->created == b->created && memcmp(&a->uid, &b->uid, sizeof a->uid) == 0 && a->epoch == b->epoch)
        return (int)(uint32_t)(a->counter - b->counter);
    return lease_generation_cmp(&x, b);
}

static int rv_text(const char *a, const char *b, int *ret)
{
    int code = base_rv_cmp(a, b, ret);

    if (code == BASE_OK)
        *ret = strcmp(a, b);
    return code;
}
static int rv_64_bit(const char *a, const char *b, int *ret)
{
    int code = base_rv_cmp(a, b, ret);
    uint64_t x = strtoull(a, NULL, 10), y = strtoull(b, NULL, 10);

    if (code == BASE_OK)
        *ret = (x > y) - (x < y);
    return code;
}
static int rv_takes_all(const char *a, const char *b, int *ret)
{
    if (base_rv_cmp(a, b, ret) != BASE_OK)
        *ret = 0;
    return BASE_OK;
}

#define DECIDE(name, change)                                                                                 \
    static enum lease_reason name(const struct lease_ask *ask, const struct contract_claim *row)             \
    {                                                                                                        \
        static struct contract_claim r;                                                                      \
        struct lease_ask a = *ask;                                                                           \
        if (!row)                                                                                            \
            return lease_decide(ask, NULL);                                                                  \
        r = *row;                                                                                            \
        change;                                                                                              \
        return lease_decide(&a, &r);                                                                         \
    }
DECIDE(decide_any_epoch, a.epoch = r.spec.epoch)
DECIDE(decide_any_lease, a.lease_uuid = &r.spec.lease_uuid)
DECIDE(decide_any_process, r.spec.holder.process_id = a.me->process_id)
DECIDE(decide_any_boot, r.spec.holder.boot_id = a.me->boot_id)
DECIDE(decide_any_node, memcpy(r.spec.holder.node, a.me->node, sizeof a.me->node))
DECIDE(decide_any_instance_epoch, r.spec.holder.instance_epoch = a.me->epoch)
DECIDE(decide_deleting, r.meta.deleting = 0)
DECIDE(decide_never_denied, a.takeover_denied = false)
DECIDE(decide_dead_holder_denies, a.holder_live = true)
DECIDE(decide_closed_denies, r.status.closed_epoch = 0)
DECIDE(decide_any_prefix, r.spec.prefix = a.target->prefix)
DECIDE(decide_released_twice, r.spec.release_time = 0)

#define OUTCOME(name, change)                                                                                \
    static enum lease_outcome name(const struct lease_attempt *attempt, const struct contract_claim *row)    \
    {                                                                                                        \
        static struct contract_claim r;                                                                      \
        struct lease_attempt a = *attempt;                                                                   \
        if (!row)                                                                                            \
            return lease_outcome_of(attempt, NULL);                                                          \
        r = *row;                                                                                            \
        change;                                                                                              \
        return lease_outcome_of(&a, &r);                                                                     \
    }
OUTCOME(outcome_any_uid, a.uid = r.meta.uid)
OUTCOME(outcome_no_nonce, a.lease_uuid = r.spec.lease_uuid)
OUTCOME(outcome_never_moves, memcpy(r.meta.rv, a.rv, sizeof a.rv))
OUTCOME(outcome_any_epoch, a.epoch = r.spec.epoch)
OUTCOME(outcome_not_released, r.spec.release_time = 1)
static enum lease_outcome outcome_404_settles(const struct lease_attempt *a, const struct contract_claim *row)
{
    return row ? lease_outcome_of(a, row) : LEASE_OVER;
}

#define INSTANCE(name, change)                                                                               \
    static enum lease_outcome name(const struct lease_instance_attempt *attempt,                             \
                                   const struct contract_instance *row)                                      \
    {                                                                                                        \
        static struct contract_instance r;                                                                   \
        struct lease_instance_attempt a = *attempt;                                                          \
        if (!row)                                                                                            \
            return lease_instance_outcome(attempt, NULL);                                                    \
        r = *row;                                                                                            \
        change;                                                                                              \
        return lease_instance_outcome(&a, &r);                                                               \
    }
INSTANCE(instance_any_process, r.spec.process_id = a.process_id)
INSTANCE(instance_any_boot_time, r.spec.renew.boot_time_us = a.boot_us)
INSTANCE(instance_any_uid, a.uid = base_uuid_is_zero(&a.uid) ? a.uid : r.meta.uid)
INSTANCE(instance_never_moves, memcpy(r.meta.rv, a.rv, sizeof a.rv))

#define SET(member, fn)                                                                                      \
    static void set_##fn(struct exact_fns *f)                                                                \
    {                                                                                                        \
        f->member = fn;                                                                                      \
    }
/* clang-format off */
#define EACH(X) \
    X(exact_add, add, add_wraps) \
    X(exact_add, add, add_one_end) \
    X(exact_until, until, until_swapped) \
    X(exact_until, until, until_no_guard) \
    X(exact_until, until, until_wraps) \
    X(exact_until, until, until_narrow) \
    X(exact_until, until, until_of_nothing) \
    X(exact_until, until, until_no_cap) \
    X(exact_session_deadline, session_deadline, deadline_no_authority) \
    X(exact_session_deadline, session_deadline, deadline_no_renewal) \
    X(exact_session_deadline, session_deadline, deadline_no_claim) \
    X(exact_session_deadline, session_deadline, deadline_no_service) \
    X(exact_session_deadline, session_deadline, deadline_instance_lease) \
    X(exact_session_deadline, session_deadline, deadline_row_lease) \
    X(exact_session_deadline, session_deadline, deadline_claim_is_authority) \
    X(exact_session_deadline, session_deadline, deadline_renewal_is_authority) \
    X(exact_session_deadline, session_deadline, deadline_renewal_for_claim) \
    X(exact_session_deadline, session_deadline, deadline_grant_is_guard) \
    X(exact_session_deadline, session_deadline, deadline_service_is_authority) \
    X(exact_session_deadline, session_deadline, deadline_guard_off_grant) \
    X(exact_wait, wait, wait_down) \
    X(exact_wait, wait, wait_no_lag) \
    X(exact_wait, wait, wait_one_clock) \
    X(exact_wait, wait, wait_wrong_sign) \
    X(exact_wait, wait, wait_own_lease) \
    X(exact_wait, wait, wait_no_margin) \
    X(exact_wait, wait, wait_of_nonsense) \
    X(exact_wait_end, wait_end, wait_end_unseen) \
    X(exact_wait_end, wait_end, wait_end_now) \
    X(exact_wait_end, wait_end, wait_end_wraps) \
    X(exact_earlier_over, earlier_over, over_gap) \
    X(exact_earlier_over, earlier_over, over_own) \
    X(exact_earlier_over, earlier_over, over_swapped) \
    X(exact_earlier_over, earlier_over, over_times_swapped) \
    X(exact_earlier_over, earlier_over, over_never_waits) \
    X(exact_earlier_over, earlier_over, over_at_once) \
    X(exact_earlier_over, earlier_over, over_late) \
    X(exact_earlier_over, earlier_over, over_low_bits) \
    X(exact_generation, generation_cmp, generation_epoch_first) \
    X(exact_generation, generation_cmp, generation_no_uid) \
    X(exact_generation, generation_cmp, generation_no_counter) \
    X(exact_generation, generation_cmp, generation_subtracts) \
    X(exact_rv, rv_cmp, rv_text) \
    X(exact_rv, rv_cmp, rv_64_bit) \
    X(exact_rv, rv_cmp, rv_takes_all) \
    X(exact_decide, decide, decide_any_epoch) \
    X(exact_decide, decide, decide_any_lease) \
    X(exact_decide, decide, decide_any_process) \
    X(exact_decide, decide, decide_any_boot) \
    X(exact_decide, decide, decide_any_node) \
    X(exact_decide, decide, decide_any_instance_epoch) \
    X(exact_decide, decide, decide_deleting) \
    X(exact_decide, decide, decide_never_denied) \
    X(exact_decide, decide, decide_dead_holder_denies) \
    X(exact_decide, decide, decide_closed_denies) \
    X(exact_decide, decide, decide_any_prefix) \
    X(exact_decide, decide, decide_released_twice) \
    X(exact_outcome, outcome, outcome_any_uid) \
    X(exact_outcome, outcome, outcome_no_nonce) \
    X(exact_outcome, outcome, outcome_never_moves) \
    X(exact_outcome, outcome, outcome_any_epoch) \
    X(exact_outcome, outcome, outcome_not_released) \
    X(exact_outcome, outcome, outcome_404_settles) \
    X(exact_instance_outcome, instance_outcome, instance_any_process) \
    X(exact_instance_outcome, instance_outcome, instance_any_boot_time) \
    X(exact_instance_outcome, instance_outcome, instance_any_uid) \
    X(exact_instance_outcome, instance_outcome, instance_never_moves)
/* clang-format on */

#define SETTER(check, member, fn) SET(member, fn)
#define ROW(check, member, fn) {#fn, check, set_##fn},
EACH(SETTER)
const struct exact_wrong exact_wrongs[] = {EACH(ROW)};
const unsigned exact_wrongs_n = sizeof exact_wrongs / sizeof exact_wrongs[0];
