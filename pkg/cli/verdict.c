/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verdict.h"

#include <stdarg.h>

#include "base/cleanup.h"

const char *cli_ready_word(const struct contract_instance *i, base_wall now)
{
    if (i->spec.release_time)
        return "Released";
    if (now - i->spec.renew.time > (int64_t)i->spec.lease_seconds * 1000000 + CLI_SKEW_US)
        return "Expired";
    if (i->status.accepted_epoch != i->spec.epoch)
        return "False";
    switch (i->status.ready.status) {
    case CONTRACT_COND_TRUE:
        return "True";
    case CONTRACT_COND_FALSE:
        return "False";
    case CONTRACT_COND_UNKNOWN:
    case CONTRACT_COND_ABSENT:
        return "Unknown";
    }
    return "Unknown";
}

const char *cli_ready_reason(const struct contract_instance *i, base_wall now)
{
    const char *word = cli_ready_word(i, now);

    if (strcmp(word, "Expired") == 0)
        return "NotRenewed";
    if (strcmp(word, "Released") == 0)
        return "GivenBack";
    if (i->status.accepted_epoch != i->spec.epoch)
        return "NotAccepted";
    return i->status.ready.reason[0] ? i->status.ready.reason : "NoCondition";
}

const char *cli_gate_word(const struct contract_claim *r)
{
    if (r->status.gate.epoch != r->spec.epoch)
        return "-";
    return r->status.gate.state == CONTRACT_GATE_OPEN     ? "Open"
           : r->status.gate.state == CONTRACT_GATE_CLOSED ? "Closed"
                                                          : "-";
}

const char *cli_why_name(enum cli_why w)
{
    static const char *const names[CLI_WHY_N] = {[CLI_WHY_FORWARDING] = "Forwarding",
                                                 [CLI_WHY_UNSEEN] = "NotSeen",
                                                 [CLI_WHY_NO_BINDING] = "NoBinding",
                                                 [CLI_WHY_BINDING_DELETING] = "BindingDeleting",
                                                 [CLI_WHY_SUSPENDED] = "Suspended",
                                                 [CLI_WHY_AMBIGUOUS] = "AmbiguousIdentity",
                                                 [CLI_WHY_AUDIT] = "AuditUnavailable",
                                                 [CLI_WHY_NO_CLAIM] = "NoClaim",
                                                 [CLI_WHY_DELETING] = "ClaimDeleting",
                                                 [CLI_WHY_RELEASED] = "Released",
                                                 [CLI_WHY_HOLDER_GONE] = "HolderGone",
                                                 [CLI_WHY_HOLDER_RELEASED] = "HolderReleased",
                                                 [CLI_WHY_HOLDER_SILENT] = "HolderSilent",
                                                 [CLI_WHY_SERVICE_GONE] = "ServiceGone",
                                                 [CLI_WHY_SERVICE_REVOKED] = "ServiceRevoked",
                                                 [CLI_WHY_SERVICE_EXPIRED] = "ServiceExpired",
                                                 [CLI_WHY_NOT_RESERVED] = "NotReserved",
                                                 [CLI_WHY_EARLIER_OPEN] = "EarlierEpochOpen",
                                                 [CLI_WHY_NOT_ACCEPTED] = "NotAccepted",
                                                 [CLI_WHY_GATE_CLOSED] = "GateClosed",
                                                 [CLI_WHY_INSTANCE_NOT_ACCEPTED] = "InstanceNotAccepted",
                                                 [CLI_WHY_ATTACHMENT] = "AttachmentNotReady"};

    return (unsigned)w < CLI_WHY_N && names[w] ? names[w] : "?";
}

/* ---- the seven conditions */

static void say(struct cli_condition *c, enum cli_answer a, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void say(struct cli_condition *c, enum cli_answer a, const char *fmt, ...)
{
    va_list ap;

    c->answer = a;
    va_start(ap, fmt);
    (void)base_vfmt(c->evidence, sizeof c->evidence, fmt, ap);
    va_end(ap);
}

static void at(char dst[BASE_RFC3339_SIZE], base_wall t)
{
    if (t > 0) {
        base_rfc3339(dst, t);
        dst[19] = 'Z'; /* whole seconds are enough for people */
        dst[20] = '\0';
    } else {
        (void)base_copy(dst, BASE_RFC3339_SIZE, "an unknown time");
    }
}

static void reserved(const struct cli_facts *f, struct cli_condition *c)
{
    char want[BASE_PREFIX_SIZE], have[BASE_PREFIX_SIZE];

    c->what = "the claim's prefix is the connector's reservation";
    if (f->binding_sight == CLI_UNSEEN) {
        say(c, CLI_ANSWER_UNSEEN, "the binding could not be read");
        return;
    }
    if (f->binding_sight == CLI_ABSENT) {
        say(c, CLI_NO, "there is no ConnectorBinding %s", f->who);
        return;
    }
    if (!f->binding->status.has_prefix) {
        say(c, CLI_NO, "the binding has no reservation (status.prefix is absent)");
        return;
    }
    base_prefix_text(want, &f->binding->status.prefix);
    if (f->claim_sight != CLI_SEEN) {
        say(c, CLI_ANSWER_UNSEEN, "reserved is %s; no claim to compare", want);
        return;
    }
    base_prefix_text(have, &f->claim->spec.prefix);
    say(c, base_prefix_eq(&f->binding->status.prefix, &f->claim->spec.prefix) ? CLI_YES : CLI_NO,
        "reserved %s, claimed %s", want, have);
}

static void held(const struct cli_facts *f, struct cli_condition *c)
{
    char t[BASE_RFC3339_SIZE], process[BASE_UUID_SIZE];

    c->what = "the object names this holder, not released, not being deleted";
    if (f->claim_sight != CLI_SEEN) {
        say(c, f->claim_sight == CLI_ABSENT ? CLI_NO : CLI_ANSWER_UNSEEN,
            f->claim_sight == CLI_ABSENT ? "there is no RouteClaim" : "the claim could not be read");
        return;
    }
    if (f->claim->meta.deleting) {
        at(t, f->claim->meta.deleting);
        say(c, CLI_NO, "being deleted since %s; %u finalizer(s) left", t, f->claim->meta.n_finalizers);
    } else if (f->claim->spec.release_time) {
        at(t, f->claim->spec.release_time);
        say(c, CLI_NO, "released at %s by epoch %lld on %s", t, (long long)f->claim->spec.epoch,
            f->claim->spec.holder.node);
    } else {
        base_uuid_text(process, &f->claim->spec.holder.process_id);
        say(c, CLI_YES, "held by process %s on %s, epoch %lld", process, f->claim->spec.holder.node,
            (long long)f->claim->spec.epoch);
    }
}

static void gate(const struct cli_facts *f, struct cli_condition *c)
{
    const struct contract_claim *r = f->claim;
    char t[BASE_RFC3339_SIZE];

    c->what = "the foundation accepted this epoch and its gate is open";
    if (f->claim_sight != CLI_SEEN) {
        say(c, f->claim_sight == CLI_ABSENT ? CLI_NO : CLI_ANSWER_UNSEEN,
            f->claim_sight == CLI_ABSENT ? "no claim, no gate" : "the claim could not be read");
        return;
    }
    if (r->status.accepted_epoch != r->spec.epoch ||
        !base_uuid_eq(&r->status.accepted_lease_uuid, &r->spec.lease_uuid)) {
        say(c, CLI_NO, "accepted is epoch %lld, the claim is at %lld", (long long)r->status.accepted_epoch,
            (long long)r->spec.epoch);
        return;
    }
    at(t, r->status.gate.since);
    if (r->status.gate.epoch != r->spec.epoch || r->status.gate.state == CONTRACT_GATE_ABSENT)
        say(c, CLI_NO, "epoch %lld is accepted, its gate is not there yet", (long long)r->spec.epoch);
    else
        say(c, r->status.gate.state == CONTRACT_GATE_OPEN ? CLI_YES : CLI_NO, "gate %s since %s, reason %s",
            cli_gate_word(r), t, r->status.gate.reason);
}

static void earlier(const struct cli_facts *f, struct cli_condition *c)
{
    const struct contract_claim *r = f->claim;
    struct contract_timing timing = contract_timing_default();
    char t[BASE_RFC3339_SIZE];
    base_wall end;

    c->what = "every earlier epoch is over";
    if (f->claim_sight != CLI_SEEN) {
        say(c, CLI_ANSWER_UNSEEN, "no claim to look at");
        return;
    }
    if (r->status.closed_epoch >= r->spec.epoch - 1) {
        if (r->spec.epoch == 1)
            say(c, CLI_YES, "epoch 1 is the first");
        else
            say(c, CLI_YES, "closed up to epoch %lld (%s)", (long long)r->status.closed_epoch,
                r->status.closed_reason == CONTRACT_CLOSED_WAITED ? "after the takeover wait"
                                                                  : "confirmed by the node that held it");
        return;
    }
    end = r->spec.acquire_time + contract_wait(&timing, r->spec.max_lease_seconds) / BASE_US;
    at(t, end);
    if (strcmp(cli_gate_word(r), "Open") == 0)
        say(c, CLI_YES, "not confirmed, but the foundation opened the gate: it has waited");
    else if (f->now < end)
        say(c, CLI_NO, "epoch %lld on %s is not confirmed as closed; the takeover wait ends about %s",
            (long long)r->spec.epoch - 1, r->spec.previous.node, t);
    else
        say(c, CLI_ANSWER_UNSEEN, "epoch %lld on %s is not confirmed; the takeover wait was over about %s",
            (long long)r->spec.epoch - 1, r->spec.previous.node, t);
}

static void live(const struct cli_facts *f, struct cli_condition *c)
{
    const struct contract_holder *h = f->claim_sight == CLI_SEEN ? &f->claim->spec.holder : NULL;
    const struct contract_instance *i = f->instance;

    c->what = "the holder's instance is live and accepted";
    if (!h || f->instance_sight == CLI_UNSEEN) {
        say(c, CLI_ANSWER_UNSEEN, h ? "the instance could not be read" : "no claim, no holder");
        return;
    }
    if (f->instance_sight == CLI_ABSENT)
        say(c, CLI_NO, "there is no instance %s any more", h->instance);
    else if (!base_uuid_eq(&i->meta.uid, &h->instance_uid) || i->spec.epoch != h->instance_epoch ||
             !base_uuid_eq(&i->spec.process_id, &h->process_id))
        say(c, CLI_NO, "the claim names epoch %lld of %s; the row is at epoch %lld, another process",
            (long long)h->instance_epoch, h->instance, (long long)i->spec.epoch);
    else if (i->spec.release_time)
        say(c, CLI_NO, "the instance was given back");
    else if (strcmp(cli_ready_word(i, f->now), "Expired") == 0)
        say(c, CLI_NO, "last renewed %lld s ago, its lease is %d s",
            (long long)((f->now - i->spec.renew.time) / 1000000), i->spec.lease_seconds);
    else if (i->status.accepted_epoch != i->spec.epoch ||
             !base_uuid_eq(&i->status.accepted_process_id, &i->spec.process_id))
        say(c, CLI_NO, "its foundation accepted epoch %lld, it is at %lld",
            (long long)i->status.accepted_epoch, (long long)i->spec.epoch);
    else
        say(c, CLI_YES, "epoch %lld, renewed %lld s ago, lease %d s%s", (long long)i->spec.epoch,
            (long long)((f->now - i->spec.renew.time) / 1000000), i->spec.lease_seconds,
            i->spec.draining ? ", draining" : "");
}

static void attached(const struct cli_facts *f, struct cli_condition *c)
{
    const struct contract_attachment *a = f->attachment;

    c->what = "the attachment is accepted and Ready";
    if (f->claim_sight != CLI_SEEN || f->attachment_sight == CLI_UNSEEN) {
        say(c, CLI_ANSWER_UNSEEN,
            f->claim_sight == CLI_SEEN ? "the attachment could not be read" : "no claim, no attachment");
        return;
    }
    if (f->attachment_sight == CLI_ABSENT)
        say(c, CLI_NO, "there is no attachment %s", f->claim->spec.attachment.name);
    else if (!base_uuid_eq(&a->meta.uid, &f->claim->spec.attachment.uid))
        say(c, CLI_NO, "%s is another object than the claim names", a->meta.name);
    else if (a->status.accepted_instance_epoch != f->claim->spec.holder.instance_epoch)
        say(c, CLI_NO, "accepted for instance epoch %lld, the claim's holder is epoch %lld",
            (long long)a->status.accepted_instance_epoch, (long long)f->claim->spec.holder.instance_epoch);
    else if (a->status.ready.status != CONTRACT_COND_TRUE)
        say(c, CLI_NO, "not Ready: %s", a->status.ready.reason[0] ? a->status.ready.reason : "no condition");
    else
        say(c, CLI_YES, "device %s, MTU %d", a->status.device, a->status.mtu);
}

static void in_time(const struct cli_facts *f, struct cli_condition *c)
{
    base_wall end = 0;
    char t[BASE_RFC3339_SIZE];

    c->what = "the session deadline is not past";
    if (f->binding_sight == CLI_SEEN && f->binding->spec.suspended) {
        say(c, CLI_NO, "the binding is suspended");
        return;
    }
    if (f->binding_sight == CLI_SEEN && f->binding->meta.deleting) {
        say(c, CLI_NO, "the binding is being deleted");
        return;
    }
    if (f->service_sight == CLI_UNSEEN || f->claim_sight != CLI_SEEN) {
        say(c, CLI_ANSWER_UNSEEN,
            f->claim_sight == CLI_SEEN ? "the service could not be read" : "no claim, no session");
        return;
    }
    if (f->service_sight == CLI_ABSENT || !base_uuid_eq(&f->service->meta.uid, &f->claim->spec.service.uid)) {
        say(c, CLI_NO, "the service %s that the claim names is gone", f->claim->spec.service.name);
        return;
    }
    at(t, f->service->valid_until);
    if (f->service->revoked || f->service->valid_until <= f->now) {
        say(c, CLI_NO,
            f->service->revoked ? "the service is revoked (valid until %s)" : "the service ended at %s", t);
        return;
    }
    end = f->service->valid_until;
    if (f->instance_sight == CLI_SEEN) {
        base_wall lease = f->instance->spec.renew.time + (int64_t)f->claim->spec.lease_seconds * 1000000;

        end = lease < end ? lease : end;
    }
    at(t, end);
    say(c, end > f->now ? CLI_YES : CLI_NO,
        "cannot be later than %s as things stand (the agent's own proofs may end it earlier)", t);
}

/* ---- words */

static enum cli_why holder_why(const struct cli_facts *f)
{
    const struct contract_holder *h = &f->claim->spec.holder;
    const struct contract_instance *i = f->instance;

    if (f->instance_sight == CLI_ABSENT || !base_uuid_eq(&i->meta.uid, &h->instance_uid) ||
        i->spec.epoch != h->instance_epoch || !base_uuid_eq(&i->spec.process_id, &h->process_id))
        return CLI_WHY_HOLDER_GONE;
    if (i->spec.release_time)
        return CLI_WHY_HOLDER_RELEASED;
    return strcmp(cli_ready_word(i, f->now), "Expired") == 0 ? CLI_WHY_HOLDER_SILENT
                                                             : CLI_WHY_INSTANCE_NOT_ACCEPTED;
}

/* The cause that explains the others, first. */
static enum cli_why reason_of(const struct cli_facts *f, const struct cli_verdict *v)
{
    if (f->binding_sight == CLI_ABSENT)
        return CLI_WHY_NO_BINDING;
    if (f->binding_sight == CLI_SEEN && f->binding->meta.deleting)
        return CLI_WHY_BINDING_DELETING;
    if (f->binding_sight == CLI_SEEN && f->binding->spec.suspended)
        return CLI_WHY_SUSPENDED;
    if (f->claim_sight == CLI_UNSEEN)
        return CLI_WHY_UNSEEN;
    if (f->binding_sight == CLI_SEEN && f->binding->status.ready.status == CONTRACT_COND_FALSE &&
        strcmp(f->binding->status.ready.reason, "AmbiguousIdentity") == 0)
        return CLI_WHY_AMBIGUOUS;
    if ((f->claim_sight == CLI_ABSENT || f->claim->spec.release_time) && f->binding_sight == CLI_SEEN &&
        f->binding->status.ready.status == CONTRACT_COND_FALSE &&
        strcmp(f->binding->status.ready.reason, "AuditUnavailable") == 0)
        return CLI_WHY_AUDIT;
    if (f->claim_sight == CLI_ABSENT)
        return CLI_WHY_NO_CLAIM;
    if (f->claim->meta.deleting)
        return CLI_WHY_DELETING;
    if (f->claim->spec.release_time)
        return CLI_WHY_RELEASED;
    if (v->c[4].answer == CLI_NO)
        return holder_why(f);
    if (v->c[6].answer == CLI_NO)
        return f->service_sight != CLI_SEEN ||
                       !base_uuid_eq(&f->service->meta.uid, &f->claim->spec.service.uid)
                   ? CLI_WHY_SERVICE_GONE
               : f->service->revoked               ? CLI_WHY_SERVICE_REVOKED
               : f->service->valid_until <= f->now ? CLI_WHY_SERVICE_EXPIRED
                                                   : CLI_WHY_HOLDER_SILENT;
    if (v->c[0].answer == CLI_NO)
        return CLI_WHY_NOT_RESERVED;
    if (v->c[3].answer == CLI_NO)
        return CLI_WHY_EARLIER_OPEN;
    if (v->c[2].answer == CLI_NO)
        return f->claim->status.accepted_epoch != f->claim->spec.epoch ? CLI_WHY_NOT_ACCEPTED
                                                                       : CLI_WHY_GATE_CLOSED;
    if (v->c[5].answer == CLI_NO)
        return CLI_WHY_ATTACHMENT;
    for (unsigned i = 0; i < CLI_CONDITIONS; i++)
        if (v->c[i].answer == CLI_ANSWER_UNSEEN)
            return CLI_WHY_UNSEEN;
    return CLI_WHY_FORWARDING;
}

static void next(struct cli_verdict *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void next(struct cli_verdict *v, const char *fmt, ...)
{
    va_list ap;

    if (v->n_next == CLI_NEXT_MAX)
        return;
    va_start(ap, fmt);
    (void)base_vfmt(v->next[v->n_next++], sizeof v->next[0], fmt, ap);
    va_end(ap);
}

#define BECAUSE(...) (void)base_fmt(v->because, sizeof v->because, __VA_ARGS__)

static void takeover_next(const struct cli_facts *f, struct cli_verdict *v)
{
    struct contract_timing timing = contract_timing_default();
    int64_t ms = contract_wait(&timing, f->claim->spec.max_lease_seconds) / BASE_MS;

    next(v,
         "the way back is a takeover with the observed epoch %lld: the connector's next attempt makes it, on "
         "any "
         "Ready node, and gets epoch %lld. Nothing is ever retried as epoch %lld.",
         (long long)f->claim->spec.epoch, (long long)f->claim->spec.epoch + 1,
         (long long)f->claim->spec.epoch);
    if (f->claim->status.closed_epoch < f->claim->spec.epoch)
        next(v,
             "epoch %lld is not confirmed as closed yet: a living foundation on %s confirms in milliseconds, "
             "without one the takeover waits up to %lld.%lld s.",
             (long long)f->claim->spec.epoch, f->claim->spec.holder.node, (long long)(ms / 1000),
             (long long)(ms % 1000 / 100));
}

static void explain(const struct cli_facts *f, struct cli_verdict *v)
{
    const struct contract_claim *r = f->claim_sight == CLI_SEEN ? f->claim : NULL;
    const char *node = r ? r->spec.holder.node : "", *name = r ? r->meta.name : "";
    long long epoch = r ? (long long)r->spec.epoch : 0;
    char t[BASE_RFC3339_SIZE];

    switch (v->why) {
    case CLI_WHY_FORWARDING:
        BECAUSE("every condition under which a packet may pass holds, as far as the objects show.");
        next(v, "nothing. To end it: suspend the binding (spec.suspended: true), or delete claim %s.", name);
        return;
    case CLI_WHY_UNSEEN:
        BECAUSE("not everything could be seen; nothing that was seen forbids forwarding.");
        next(v,
             "look again with credentials that may read all kinds (group holdfast:operators), or see below.");
        return;
    case CLI_WHY_NO_BINDING:
        BECAUSE("there is no ConnectorBinding %s: nobody may connect as this connector.", f->who);
        next(v, "create the binding if the connector should be admitted; check tenant and name.");
        if (r)
            next(v, "claim %s is left over: `claims prune` deletes it after its retention.", name);
        return;
    case CLI_WHY_BINDING_DELETING:
        BECAUSE("the binding is being deleted: its sessions have ended, its claim is released.");
        next(v, "create the binding anew when it is gone, if the connector should come back.");
        return;
    case CLI_WHY_SUSPENDED:
        BECAUSE(
            "an operator has suspended the binding (spec.suspended): the agent ends the session and releases "
            "the claim%s.",
            r && r->spec.release_time ? ", which has happened" : "");
        next(v, "set spec.suspended to false to admit the connector again; it takes the claim over.");
        if (r && !r->spec.release_time)
            next(v,
                 "the claim is not released yet: see whether the agent on %s is alive; without it the gate "
                 "closes "
                 "on its own deadline.",
                 node);
        return;
    case CLI_WHY_AMBIGUOUS:
        BECAUSE("an identity of this binding is also in another one: it admits nobody on either.");
        next(
            v,
            "remove the identity from one of the bindings (condition Ready of both says AmbiguousIdentity).");
        return;
    case CLI_WHY_AUDIT:
        BECAUSE("a node refused the connector because its audit trail cannot be written (condition Ready: "
                "%.120s); nobody holds it.",
                f->binding->status.ready.message);
        next(v, "see /readyz of that node, which names file and errno; make room on its disk, or mount it "
                "anew.");
        next(v, "meanwhile the connector can take its claim over on another node.");
        return;
    case CLI_WHY_NO_CLAIM:
        BECAUSE("no RouteClaim exists: no session has been opened, or its row was pruned.");
        next(v,
             "see the connector's own log and the refusals in the audit trail; a session makes the claim.");
        return;
    case CLI_WHY_DELETING:
        BECAUSE("claim %s is being deleted: its gates close, nobody takes it over.", name);
        next(v, "wait until the foundations have closed every epoch and taken their finalizers off; then the "
                "connector acquires it anew.");
        return;
    case CLI_WHY_RELEASED:
        at(t, r->spec.release_time);
        BECAUSE("epoch %lld on %s was released at %s, which is final for that epoch.", epoch, node, t);
        takeover_next(f, v);
        return;
    case CLI_WHY_HOLDER_GONE:
        BECAUSE(
            "the process that holds epoch %lld on %s is gone: its instance row names another process, or is "
            "gone. The old lease is not authoritative.",
            epoch, node);
        takeover_next(f, v);
        return;
    case CLI_WHY_HOLDER_RELEASED:
        BECAUSE("the agent on %s has given its instance back (a drain or a stop).", node);
        takeover_next(f, v);
        return;
    case CLI_WHY_HOLDER_SILENT:
        BECAUSE(
            "the agent on %s has not renewed its lease in time; its sessions and its kernel gates have ended "
            "on their own deadlines.",
            node);
        next(v,
             "look at node %s: is the agent running, does it reach the API server (its /readyz says), is the "
             "audit disk writable?",
             node);
        takeover_next(f, v);
        return;
    case CLI_WHY_SERVICE_GONE:
        BECAUSE("the ProviderService that the claim names is gone.");
        next(v, "create the service again (the authority does); the connector then takes the claim over.");
        return;
    case CLI_WHY_SERVICE_REVOKED:
        BECAUSE("the ProviderService is revoked, which is final for that object.");
        next(v, "a new service object is needed; ask whoever runs the authority.");
        return;
    case CLI_WHY_SERVICE_EXPIRED:
        BECAUSE("the ProviderService's validUntil is past: the authority has not moved it on.");
        next(v, "look at the authority: is it running, may it write services, is its clock right?");
        return;
    case CLI_WHY_NOT_RESERVED:
        BECAUSE("the claim's prefix is not the one that the binding reserves.");
        next(v, "the connector's next attempt settles it (the reservation decides); a claim that nobody "
                "reserves is "
                "pruned after its retention.");
        return;
    case CLI_WHY_EARLIER_OPEN:
        BECAUSE("epoch %lld on %s took over, but epoch %lld on %s is not known to be closed.", epoch, node,
                epoch - 1, r->spec.previous.node);
        next(v, "wait: the foundation on %s confirms, or the takeover wait passes (see condition 4).",
             r->spec.previous.node);
        return;
    case CLI_WHY_NOT_ACCEPTED:
        BECAUSE("the claim is intent only: the foundation on %s has not accepted epoch %lld.", node, epoch);
        next(v, "look at the foundation on %s: its log, and condition Accepted of %s (%s).", node, name,
             r->status.accepted.reason[0] ? r->status.accepted.reason : "not there");
        return;
    case CLI_WHY_GATE_CLOSED:
        BECAUSE("the foundation on %s keeps the gate of epoch %lld closed: %s.", node, epoch,
                r->status.gate.epoch == r->spec.epoch && r->status.gate.reason[0] ? r->status.gate.reason
                                                                                  : "not opened yet");
        if (r->status.closed_epoch >= r->spec.epoch)
            takeover_next(f, v);
        else
            next(v, "look at the foundation on %s; a gate that is closed for good shows in closedEpoch.",
                 node);
        return;
    case CLI_WHY_INSTANCE_NOT_ACCEPTED:
        BECAUSE("the foundation on %s has not accepted the agent's instance.", node);
        next(v, "look at the foundation on %s.", node);
        return;
    case CLI_WHY_ATTACHMENT:
        BECAUSE("the attachment (TUN device) on %s is not ready: %s.", node, v->c[5].evidence);
        next(v, "look at the foundation on %s and at the agent's log (tun_refused).", node);
        return;
    }
}

void cli_judge(const struct cli_facts *f, struct cli_verdict *ret)
{
    struct cli_verdict *v = ret;

    memset(v, 0, sizeof *v);
    reserved(f, &v->c[0]);
    held(f, &v->c[1]);
    gate(f, &v->c[2]);
    earlier(f, &v->c[3]);
    live(f, &v->c[4]);
    attached(f, &v->c[5]);
    in_time(f, &v->c[6]);
    v->why = reason_of(f, v);
    if (v->why == CLI_WHY_FORWARDING)
        (void)base_fmt(v->statement, sizeof v->statement,
                       "%s: node %s is authoritative, epoch %lld. Its session may forward; nobody else may.",
                       f->who, f->claim->spec.holder.node, (long long)f->claim->spec.epoch);
    else if (v->why == CLI_WHY_UNSEEN)
        (void)base_fmt(v->statement, sizeof v->statement, "%s: it cannot be said who is authoritative.",
                       f->who);
    else if (f->claim_sight == CLI_SEEN && f->claim->status.gate.epoch == f->claim->spec.epoch &&
             f->claim->status.gate.state == CONTRACT_GATE_OPEN && !f->claim->spec.release_time &&
             f->claim->status.closed_epoch < f->claim->spec.epoch)
        (void)base_fmt(
            v->statement, sizeof v->statement,
            "%s: nobody has authority to forward; what was open on %s ends, or has ended, on its own "
            "deadline.",
            f->who, f->claim->spec.holder.node);
    else
        (void)base_fmt(v->statement, sizeof v->statement, "%s: nobody has authority to forward.", f->who);
    explain(f, v);
    v->opened = f->claim_sight == CLI_SEEN &&
                (f->claim->status.gate.state != CONTRACT_GATE_ABSENT || f->claim->status.published_epoch > 0);
}
