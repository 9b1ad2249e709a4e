/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/retire.h"

#include "base/mutant.h"

#define SKEW_US 2000000

static void span(char *dst, size_t size, int64_t s)
{
    if (s < 120)
        (void)base_fmt(dst, size, "%llds", (long long)s);
    else if (s < 7200)
        (void)base_fmt(dst, size, "%lldm", (long long)(s / 60));
    else if (s < 172800)
        (void)base_fmt(dst, size, "%lldh", (long long)(s / 3600));
    else
        (void)base_fmt(dst, size, "%lldd", (long long)(s / 86400));
}

static base_wall later(base_wall a, base_wall b)
{
    return a > b ? a : b;
}

static bool holder_is(const struct contract_instance *i, const struct contract_holder *h)
{
    return i && base_uuid_eq(&i->meta.uid, &h->instance_uid) && i->spec.epoch == h->instance_epoch &&
           base_uuid_eq(&i->spec.process_id, &h->process_id);
}

/* When the row was last in use, as far as anybody can see. */
static base_wall last_use(const struct cli_retire_facts *f, bool *ret_living)
{
    const struct contract_claim *r = f->claim;
    base_wall t = later(later(r->spec.acquire_time, r->status.gate.since),
                        later(r->status.closed_time, r->status.published_time));

    *ret_living = false;
    if (r->spec.release_time)
        return r->spec.release_time;
    if (holder_is(f->instance, &r->spec.holder) && f->instance->spec.release_time)
        t = later(t, f->instance->spec.release_time);
    else if (holder_is(f->instance, &r->spec.holder)) {
        base_wall end = f->instance->spec.renew.time + (int64_t)f->instance->spec.lease_seconds * 1000000;

        *ret_living = f->now <= end + SKEW_US;
        t = later(t, end);
    }
    return t;
}

#define SAY(...) (void)base_fmt(ret.why, sizeof ret.why, __VA_ARGS__)

struct cli_retirement cli_retire(const struct cli_retire_facts *f)
{
    struct cli_retirement ret = {.go = false};
    const struct contract_claim *r = f->claim;
    const struct contract_binding *b = f->binding;
    bool reserved = b && b->status.has_prefix && base_prefix_eq(&b->status.prefix, &r->spec.prefix);
    bool released = r->spec.release_time != 0, living;
    int64_t retention =
        b && b->spec.retention_seconds >= 0 ? b->spec.retention_seconds : f->default_retention_s;
    base_wall since = last_use(f, &living);
    char age[24], keep[24];

    if (r->meta.deleting) {
        SAY("is being deleted already; %u finalizer(s) wait for the closure of its epochs",
            r->meta.n_finalizers);
        return ret;
    }
    if (!released && reserved && !base_mutant("prune.held")) {
        SAY("is held by %s and reserved by its binding", r->spec.holder.node);
        return ret;
    }
    if (!released && f->other) {
        SAY("was held by %s; binding %s reserves its /96: that connector's agent settles it",
            r->spec.holder.node, f->other);
        return ret;
    }
    if (living && !base_mutant("prune.living")) {
        SAY("no binding reserves it, but a living process on %s holds it: its agent releases it",
            r->spec.holder.node);
        return ret;
    }
    span(keep, sizeof keep, retention);
    if (since > f->now + SKEW_US) {
        SAY("was last used in the future by this machine's clock: check the clocks");
        return ret;
    }
    span(age, sizeof age, (f->now - since) / 1000000);
    if (f->now - since < retention * 1000000 && !base_mutant("prune.retention")) {
        SAY("%s %s ago; its retention is %s", released ? "was released" : "no binding reserves it, last used",
            age, keep);
        return ret;
    }
    ret.go = true;
    if (released)
        SAY("was released %s ago, past its retention of %s%s%s", age, keep,
            reserved ? "; its binding keeps the reservation" : "; no binding reserves it",
            r->status.closed_epoch < r->spec.epoch ? "; not closed yet: its finalizer keeps it until then"
                                                   : "");
    else
        SAY("no binding reserves it and its holder on %s is gone; last used %s ago, past the retention of "
            "%s%s",
            r->spec.holder.node, age, keep,
            r->status.closed_epoch < r->spec.epoch ? "; not closed yet: its finalizer keeps it until then"
                                                   : "");
    return ret;
}
