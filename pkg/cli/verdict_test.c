/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verdict.h"

#include <criterion/criterion.h>

#include "base/cleanup.h"

#include "cli/retire.h"

#define NOW ((base_wall)1764450502000000)
#define S ((base_wall)1000000)

struct world {
    struct contract_binding binding;
    struct contract_claim claim;
    struct contract_service service;
    struct contract_attachment attachment;
    struct contract_instance instance;
    struct cli_facts facts;
};

static struct base_uuid uuid(uint8_t n)
{
    struct base_uuid u;

    memset(u.b, n, sizeof u.b);
    return u;
}

/* Everything holds: node edge1, epoch 2. */
static void good(struct world *w)
{
    struct base_prefix p;

    memset(w, 0, sizeof *w);
    cr_assert_eq(base_prefix_parse(&p, BASE_STR("fd12::1:0:1:0:0/96")), BASE_OK);
    w->binding.status.has_prefix = true;
    w->binding.status.prefix = w->claim.spec.prefix = p;
    w->binding.spec.retention_seconds = -1;
    w->service.meta.uid = w->claim.spec.service.uid = uuid(1);
    w->service.valid_until = NOW + 100 * S;
    w->attachment.meta.uid = w->claim.spec.attachment.uid = uuid(2);
    w->attachment.status.accepted_instance_epoch = w->claim.spec.holder.instance_epoch = 7;
    w->attachment.status.ready.status = CONTRACT_COND_TRUE;
    w->instance.meta.uid = w->claim.spec.holder.instance_uid = uuid(3);
    w->instance.spec.process_id = w->claim.spec.holder.process_id = w->instance.status.accepted_process_id =
        uuid(4);
    w->instance.spec.epoch = w->instance.status.accepted_epoch = 7;
    w->instance.spec.lease_seconds = w->claim.spec.lease_seconds = w->claim.spec.max_lease_seconds = 30;
    w->instance.spec.renew.time = NOW - 5 * S;
    w->instance.status.ready.status = CONTRACT_COND_TRUE;
    (void)base_copy(w->claim.spec.holder.node, sizeof w->claim.spec.holder.node, "edge1");
    (void)base_copy(w->claim.spec.holder.instance, sizeof w->claim.spec.holder.instance, "masque.edge1");
    w->claim.spec.epoch = w->claim.status.accepted_epoch = w->claim.status.gate.epoch = 2;
    w->claim.spec.lease_uuid = w->claim.status.accepted_lease_uuid = uuid(5);
    w->claim.spec.acquire_time = NOW - 60 * S;
    w->claim.spec.previous.epoch = 1;
    (void)base_copy(w->claim.spec.previous.node, sizeof w->claim.spec.previous.node, "edge2");
    w->claim.status.gate.state = CONTRACT_GATE_OPEN;
    w->claim.status.closed_epoch = 1;
    w->claim.status.closed_reason = CONTRACT_CLOSED_CONFIRMED;
    w->facts = (struct cli_facts){.now = NOW,
                                  .who = "acme.site-1",
                                  .binding_sight = CLI_SEEN,
                                  .claim_sight = CLI_SEEN,
                                  .service_sight = CLI_SEEN,
                                  .attachment_sight = CLI_SEEN,
                                  .instance_sight = CLI_SEEN,
                                  .binding = &w->binding,
                                  .claim = &w->claim,
                                  .service = &w->service,
                                  .attachment = &w->attachment,
                                  .instance = &w->instance};
}

static void suspend(struct world *w)
{
    w->binding.spec.suspended = true;
}
static void unbind(struct world *w)
{
    w->facts.binding_sight = CLI_ABSENT;
}
static void unbinding(struct world *w)
{
    w->binding.meta.deleting = NOW;
}
static void ambiguous(struct world *w)
{
    w->binding.status.ready.status = CONTRACT_COND_FALSE;
    (void)base_copy(w->binding.status.ready.reason, sizeof w->binding.status.ready.reason,
                    "AmbiguousIdentity");
}
static void no_audit(struct world *w)
{
    w->facts.claim_sight = CLI_ABSENT;
    w->binding.status.ready.status = CONTRACT_COND_FALSE;
    (void)base_copy(w->binding.status.ready.reason, sizeof w->binding.status.ready.reason,
                    "AuditUnavailable");
}
static void no_audit_released(struct world *w)
{
    no_audit(w);
    w->facts.claim_sight = CLI_SEEN;
    w->claim.spec.release_time = NOW - S;
}
static void no_claim(struct world *w)
{
    w->facts.claim_sight = CLI_ABSENT;
}
static void deleting(struct world *w)
{
    w->claim.meta.deleting = NOW;
}
static void released(struct world *w)
{
    w->claim.spec.release_time = NOW - S;
}
static void gone(struct world *w)
{
    w->facts.instance_sight = CLI_ABSENT;
}
static void other_process(struct world *w)
{
    w->instance.spec.process_id = uuid(9);
}
static void other_instance(struct world *w)
{
    w->instance.meta.uid = uuid(9);
}
static void other_epoch(struct world *w)
{
    w->instance.spec.epoch = 8;
}
static void given_back(struct world *w)
{
    w->instance.spec.release_time = NOW;
}
static void silent(struct world *w)
{
    w->instance.spec.renew.time = NOW - 33 * S;
}
static void not_accepted_instance(struct world *w)
{
    w->instance.status.accepted_epoch = 6;
}
static void no_service(struct world *w)
{
    w->facts.service_sight = CLI_ABSENT;
}
static void other_service(struct world *w)
{
    w->service.meta.uid = uuid(9);
}
static void revoked(struct world *w)
{
    w->service.revoked = true;
}
static void expired(struct world *w)
{
    w->service.valid_until = NOW;
}
static void unreserved(struct world *w)
{
    w->binding.status.has_prefix = false;
}
static void other_prefix(struct world *w)
{
    w->binding.status.prefix.addr.b[8]++;
}
static void waiting(struct world *w)
{
    w->claim.status.closed_epoch = 0;
    w->claim.status.gate.state = CONTRACT_GATE_ABSENT;
    w->claim.status.gate.epoch = 0;
    w->claim.spec.acquire_time = NOW - S;
}
static void intent(struct world *w)
{
    w->claim.status.accepted_epoch = 1;
}
static void other_lease(struct world *w)
{
    w->claim.status.accepted_lease_uuid = uuid(9);
}
static void shut(struct world *w)
{
    w->claim.status.gate.state = CONTRACT_GATE_CLOSED;
}
static void old_gate(struct world *w)
{
    w->claim.status.gate.epoch = 1;
}
static void no_device(struct world *w)
{
    w->attachment.status.ready.status = CONTRACT_COND_FALSE;
}
static void other_attachment(struct world *w)
{
    w->attachment.meta.uid = uuid(9);
}
static void old_attachment(struct world *w)
{
    w->attachment.status.accepted_instance_epoch = 6;
}
static void blind_service(struct world *w)
{
    w->facts.service_sight = CLI_UNSEEN;
}
static void blind_binding(struct world *w)
{
    w->facts.binding_sight = CLI_UNSEEN;
}
static void blind_claim(struct world *w)
{
    w->facts.claim_sight = CLI_UNSEEN;
}
static void nothing(struct world *w)
{
    (void)w;
}

Test(cli_verdict, each_thing_that_can_be_wrong_is_the_reason)
{
    static const struct {
        const char *what;
        void (*change)(struct world *);
        enum cli_why why;
    } rows[] = {
        {"nothing", nothing, CLI_WHY_FORWARDING},
        {"no binding", unbind, CLI_WHY_NO_BINDING},
        {"binding deleting", unbinding, CLI_WHY_BINDING_DELETING},
        {"suspended", suspend, CLI_WHY_SUSPENDED},
        {"ambiguous", ambiguous, CLI_WHY_AMBIGUOUS},
        {"audit unavailable, no claim", no_audit, CLI_WHY_AUDIT},
        {"audit unavailable, released", no_audit_released, CLI_WHY_AUDIT},
        {"no claim", no_claim, CLI_WHY_NO_CLAIM},
        {"deleting", deleting, CLI_WHY_DELETING},
        {"released", released, CLI_WHY_RELEASED},
        {"instance gone", gone, CLI_WHY_HOLDER_GONE},
        {"other process", other_process, CLI_WHY_HOLDER_GONE},
        {"other instance", other_instance, CLI_WHY_HOLDER_GONE},
        {"other epoch", other_epoch, CLI_WHY_HOLDER_GONE},
        {"given back", given_back, CLI_WHY_HOLDER_RELEASED},
        {"silent", silent, CLI_WHY_HOLDER_SILENT},
        {"instance not accepted", not_accepted_instance, CLI_WHY_INSTANCE_NOT_ACCEPTED},
        {"no service", no_service, CLI_WHY_SERVICE_GONE},
        {"other service", other_service, CLI_WHY_SERVICE_GONE},
        {"revoked", revoked, CLI_WHY_SERVICE_REVOKED},
        {"service expired", expired, CLI_WHY_SERVICE_EXPIRED},
        {"unreserved", unreserved, CLI_WHY_NOT_RESERVED},
        {"other prefix", other_prefix, CLI_WHY_NOT_RESERVED},
        {"waiting", waiting, CLI_WHY_EARLIER_OPEN},
        {"intent", intent, CLI_WHY_NOT_ACCEPTED},
        {"other lease", other_lease, CLI_WHY_GATE_CLOSED},
        {"gate closed", shut, CLI_WHY_GATE_CLOSED},
        {"gate of an older epoch", old_gate, CLI_WHY_GATE_CLOSED},
        {"no device", no_device, CLI_WHY_ATTACHMENT},
        {"other attachment", other_attachment, CLI_WHY_ATTACHMENT},
        {"attachment of an older epoch", old_attachment, CLI_WHY_ATTACHMENT},
        {"service not seen", blind_service, CLI_WHY_UNSEEN},
        {"binding not seen", blind_binding, CLI_WHY_UNSEEN},
        {"claim not seen", blind_claim, CLI_WHY_UNSEEN},
    };

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct cli_verdict v;
        struct world w;

        good(&w);
        rows[i].change(&w);
        cli_judge(&w.facts, &v);
        cr_assert_str_eq(cli_why_name(v.why), cli_why_name(rows[i].why), "%s", rows[i].what);
        cr_assert(v.because[0] && v.n_next > 0 && v.next[0][0], "%s", rows[i].what);
        /* only one verdict calls somebody authoritative */
        cr_assert_eq(strstr(v.statement, "is authoritative, epoch 2") != NULL,
                     rows[i].why == CLI_WHY_FORWARDING, "%s: %s", rows[i].what, v.statement);
        for (unsigned k = 0; k < CLI_CONDITIONS; k++)
            cr_assert(v.c[k].what && v.c[k].evidence[0], "%s: condition %u", rows[i].what, k + 1);
        for (unsigned k = 0; k < CLI_CONDITIONS && rows[i].why == CLI_WHY_FORWARDING; k++)
            cr_assert_eq((int)v.c[k].answer, (int)CLI_YES);
    }
}

Test(cli_verdict, a_released_row_is_not_shown_as_held)
{
    struct cli_verdict v;
    struct world w;
    unsigned said = 0;

    good(&w);
    released(&w);
    cli_judge(&w.facts, &v);
    for (unsigned k = 0; k < CLI_CONDITIONS; k++) {
        cr_assert_null(strstr(v.c[k].evidence, "held by"), "condition %u: %s", k + 1, v.c[k].evidence);
        said += v.c[k].answer == CLI_NO && strncmp(v.c[k].evidence, "released at ", 12) == 0;
    }
    cr_assert_eq(said, 1);
}

Test(cli_verdict, a_stale_ready_condition_does_not_count)
{
    struct world w;

    good(&w);
    cr_assert_str_eq(cli_ready_word(&w.instance, NOW), "True");
    silent(&w);
    cr_assert_str_eq(cli_ready_word(&w.instance, NOW), "Expired");
    good(&w);
    not_accepted_instance(&w); /* Ready was said of an older epoch */
    cr_assert_str_eq(cli_ready_word(&w.instance, NOW), "False");
    cr_assert_str_eq(cli_ready_reason(&w.instance, NOW), "NotAccepted");
}

Test(cli_verdict, the_gate_of_another_epoch_is_not_this_ones)
{
    struct world w;

    good(&w);
    cr_assert_str_eq(cli_gate_word(&w.claim), "Open");
    old_gate(&w);
    cr_assert_str_eq(cli_gate_word(&w.claim), "-");
}

/* ---- prune */

static bool goes(const struct world *w, bool binding, bool instance)
{
    struct cli_retirement r =
        cli_retire(&(struct cli_retire_facts){.now = NOW,
                                              .claim = &w->claim,
                                              .binding = binding ? &w->binding : NULL,
                                              .instance = instance ? &w->instance : NULL,
                                              .default_retention_s = 3600});

    cr_assert(r.why[0]);
    return r.go;
}

Test(cli_retire, released_rows_go_exactly_when_their_retention_is_over)
{
    struct world w;

    good(&w);
    w.binding.spec.retention_seconds = 60;
    cr_assert_not(goes(&w, true, true)); /* held, reserved */
    w.claim.spec.release_time = NOW - 60 * S + 1;
    cr_assert_not(goes(&w, true, true));
    w.claim.spec.release_time = NOW - 60 * S;
    cr_assert(goes(&w, true, true));
    w.binding.spec.retention_seconds = 61; /* the binding's wins over the default, both ways */
    cr_assert_not(goes(&w, true, true));
    w.binding.spec.retention_seconds = 7200;
    w.claim.spec.release_time = NOW - 3700 * S;
    cr_assert_not(goes(&w, true, true));
    w.binding.spec.retention_seconds = 0;
    cr_assert(goes(&w, true, true));
    w.binding.spec.retention_seconds = -1; /* none: the default */
    cr_assert(goes(&w, true, true));
    w.claim.spec.release_time = NOW - 3599 * S;
    cr_assert_not(goes(&w, true, true));
    w.claim.spec.release_time = NOW + 10 * S; /* a clock is wrong */
    w.binding.spec.retention_seconds = 0;
    cr_assert_not(goes(&w, true, true));
    w.claim.spec.release_time = NOW - 99999 * S;
    cr_assert(goes(&w, true, true));
    w.claim.meta.deleting = NOW;
    cr_assert_not(goes(&w, true, true));
}

Test(cli_retire, a_row_whose_prefix_another_binding_reserves_stays_unless_it_is_released)
{
    struct cli_retire_facts f = {.now = NOW, .default_retention_s = 3600, .other = "acme.site-9"};
    struct cli_retirement r;
    struct world w;

    good(&w);
    w.claim.spec.acquire_time = NOW - 99999 * S;
    f.claim = &w.claim;
    r = cli_retire(&f);
    cr_assert_not(r.go);
    cr_assert_not_null(strstr(r.why, "acme.site-9"));
    w.claim.spec.release_time = NOW - 99999 * S;
    cr_assert(cli_retire(&f).go);
}

Test(cli_retire, held_rows_go_only_when_nobody_reserves_them_and_nobody_lives)
{
    struct world w;

    good(&w);
    w.claim.spec.acquire_time = NOW - 99999 * S;
    cr_assert_not(goes(&w, true, true));  /* reserved */
    cr_assert_not(goes(&w, true, false)); /* reserved, holder gone: the reservation keeps it */
    cr_assert_not(goes(&w, false, true)); /* a living holder */
    w.instance.spec.renew.time = NOW - (30 + 3600) * S + 1;
    cr_assert_not(goes(&w, false, true)); /* silent, within the retention */
    w.instance.spec.renew.time = NOW - (30 + 3600) * S;
    cr_assert(goes(&w, false, true));
    cr_assert(goes(&w, false, false));
    w.binding.status.has_prefix = false; /* a binding without a reservation reserves nothing */
    cr_assert(goes(&w, true, true));
    w.binding.status.has_prefix = true;
    w.binding.status.prefix.addr.b[8]++; /* one that reserves another prefix, too */
    cr_assert(goes(&w, true, true));
    w.instance.spec.process_id = uuid(9); /* another process lives in the holder's row */
    w.instance.spec.renew.time = NOW;
    cr_assert(goes(&w, false, true));
    w.claim.status.closed_time = NOW - 10 * S; /* a sign of life of the row itself */
    cr_assert_not(goes(&w, false, true));
    w.claim.status.closed_time = 0;
    good(&w);
    w.claim.spec.acquire_time = NOW - 99999 * S;
    w.instance.spec.release_time = NOW - 10 * S; /* given back just now */
    cr_assert_not(goes(&w, false, true));
}
