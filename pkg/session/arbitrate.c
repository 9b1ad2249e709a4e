/* SPDX-License-Identifier: Apache-2.0
 *
 * session/arbitrate.c - connector, then prefix, then row: what to read, in which order, and what to write
 * (contract sections 3 and 4). Every decision here rests on reads that were sent after the request came.
 */
#include "session/int.h"

#include "base/mutant.h"

#include <string.h>

#define NO_CANDIDATE UINT32_MAX

static uint32_t me(const struct session_core *c, const struct session_conn *n)
{
    return session_entity_conn(c, n);
}

int16_t session_desk_take(struct session_core *c)
{
    return c->n_desk_free > 0 ? c->desk_free[--c->n_desk_free] : -1;
}

void session_desk_free(struct session_core *c, struct session_conn *n)
{
    if (n->desk >= 0)
        c->desk_free[c->n_desk_free++] = n->desk;
    n->desk = -1;
    n->row = ROW_NOT_READ;
}

static void ask_claim(struct session_core *c, struct session_conn *n)
{
    char name[CONTRACT_NAME_SIZE];
    contract_claim_name(name, &n->want);
    session_desk_free(c, n);
    n->ask = session_get(c, me(c, n), CONTRACT_CLAIM, name, &n->req.correlation);
    n->ask_by = base_time_add(c->now, SESSION_READ_WAIT);
    n->holder_asked = false;
}

enum conn_state session_check_again(struct session_core *c, struct session_conn *n)
{
    ask_claim(c, n);
    return CONN_CHECKING;
}

/* From the start: the binding afresh; beside it, when they are known, the row of its reservation and the
 * service. */
enum conn_state session_begin(struct session_core *c, struct session_conn *n)
{
    if (!session_admitting(c))
        return session_give_up(c, n, session_reason_of(WHY_DRAINING));
    const struct session_attachment *a = session_att_of(c, n);
    n->claim.identity = c->inst.serial;
    if (!session_inst_ready(c) || !a || !session_att_ready(c, a))
        return CONN_PENDING; /* no claim is written before the instance is accepted and the attachment Ready */
    if (++n->loops > SESSION_LOOPS_MAX)
        return session_give_up(c, n, session_reason_of(WHY_ARBITRATION_BUSY));

    const struct session_service *s = session_service_of(c, n);
    n->read_failed = WHY_NONE;
    n->fresh_prefix = n->again = false;
    n->ask = n->ask_service = 0;
    session_desk_free(c, n);
    n->ask_binding = session_get(c, me(c, n), CONTRACT_BINDING, n->b.name, &n->req.correlation);
    if (n->b.has_prefix && s && authority_in_pool(&s->s.pool, &n->b.prefix)) {
        n->want = n->b.prefix;
        ask_claim(c, n);
    }
    if (session_services_stale(c, n, s))
        n->ask_service = session_get(c, me(c, n), CONTRACT_SERVICE, n->b.service, &n->req.correlation);
    n->ask_by = base_time_add(c->now, SESSION_READ_WAIT);
    return CONN_READING;
}

/* ---- reservation */
static enum conn_state write_reservation(struct session_core *c, struct session_conn *n, bool clear)
{
    struct contract_object *o;
    n->clearing = clear;
    n->ask = session_write(c, me(c, n), SESSION_FX_STATUS, CONTRACT_BINDING, &n->req.correlation, false, &o);
    n->ask_by = base_time_add(c->now, SESSION_WRITE_WAIT);
    struct contract_binding *b = &o->u.binding;
    session_binding_object(n, b);
    b->meta.uid = n->arb_uid;
    (void)base_copy(b->meta.rv, sizeof b->meta.rv, n->arb_rv);
    b->status.has_prefix = !clear;
    b->status.prefix = clear ? (struct base_prefix){.len = 0} : n->want;
    b->status.keep_assigned = false;
    b->status.prefix_assigned =
        (struct contract_cond){.status = clear ? CONTRACT_COND_FALSE : CONTRACT_COND_TRUE,
                               .observed_generation = n->b.generation,
                               .transition = c->wall};
    (void)base_copy(b->status.prefix_assigned.reason, sizeof b->status.prefix_assigned.reason,
                    clear ? "Cleared" : "Reserved");
    if (base_mutant(clear ? "binding-clear.uid" : "binding-reserve.uid"))
        b->meta.uid = (struct base_uuid){{0}};
    if (base_mutant(clear ? "binding-clear.rv" : "binding-reserve.rv"))
        b->meta.rv[0] = '\0';
    return CONN_RESERVING;
}

/* The reservation (or the row that is one) is of no use: its row must be over, then it is cleared. */
static bool usable(const struct session_service *s, const struct session_conn *n,
                   const struct base_prefix *prefix)
{
    (void)n;
    return authority_in_pool(&s->s.pool, prefix);
}

static enum conn_state reserve(struct session_core *c, struct session_conn *n,
                               const struct base_prefix *prefix, bool no_row)
{
    n->want = *prefix;
    n->fresh_prefix = no_row;
    return write_reservation(c, n, false);
}

static enum conn_state decide_row(struct session_core *c, struct session_conn *n,
                                  const struct contract_claim *row);

/* The answers of READING are all in. */
enum conn_state session_on_read(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    (void)in;
    if (n->read_failed != WHY_NONE)
        return session_give_up(c, n, session_reason_of(n->read_failed));
    if (!n->bound)
        return session_give_up(c, n, session_reason_auth(AUTHORITY_NO_BINDING));
    enum authority_reason r = authority_check_binding(&n->b, n->req.digest);
    const struct session_service *s = session_service_of(c, n);
    if (r == AUTHORITY_OK)
        r = authority_check_service(s ? &s->s : NULL, &n->b, c->cfg.provider, c->now);
    if (r == AUTHORITY_OK)
        r = authority_check_target(&s->s, n->req.any_target, &n->req.target);
    if (r != AUTHORITY_OK)
        return session_give_up(c, n, session_reason_auth(r));

    n->arb_uid = n->b.uid;
    (void)base_copy(n->arb_rv, sizeof n->arb_rv, n->b.rv);
    if (!n->b.has_prefix) {
        /* The connector's own rows first, whatever came of a list of the VPC before: this one says nothing of
         * what is free there. */
        if (n->candidate == NO_CANDIDATE && !base_mutant("arbitration.vpc-list"))
            n->candidate = AUTHORITY_CANDIDATES;
        struct session_fx *fx = session_fx(c, SESSION_FX_LIST);
        n->ask = fx->u.store.ask = session_ask(c, me(c, n));
        fx->u.store.kind = CONTRACT_CLAIM;
        (void)base_copy(fx->u.store.tenant, sizeof fx->u.store.tenant, n->b.tenant);
        (void)base_copy(fx->u.store.connector, sizeof fx->u.store.connector, n->b.connector);
        fx->u.store.correlation = n->req.correlation;
        n->ask_by = base_time_add(c->now, SESSION_READ_WAIT);
        session_desk_free(c, n);
        return CONN_LISTING;
    }
    bool read = n->row != ROW_NOT_READ && base_prefix_eq(&n->want, &n->b.prefix);
    n->want = n->b.prefix;
    if (!read)
        return session_check_again(c, n);
    return decide_row(c, n, n->row == ROW_ON_DESK ? &c->desk[n->desk] : NULL);
}

/* ---- no reservation: which rows does the connector have? */
static const struct contract_claim *claim_at(const struct session_answer *an, size_t i)
{
    return &an->objects[i].u.claim;
}

/* Is somebody else's closing takeover of this row under way? Its foundation closes it, after W at the latest;
 * another epoch would start that wait anew, and two agents that do so to each other go on without end. */
static bool closed_by_another(struct session_core *c, struct session_conn *n,
                              const struct contract_claim *row)
{
    if (row->spec.release_time == 0 || row->spec.release_time != row->spec.acquire_time ||
        base_mutant("closing.other"))
        return false;
    if (n->closing_since == 0 || !base_uuid_eq(&n->closing_uid, &row->meta.uid) ||
        !base_uuid_eq(&n->closing_lease, &row->spec.lease_uuid)) {
        n->closing_uid = row->meta.uid;
        n->closing_lease = row->spec.lease_uuid;
        n->closing_since = c->now;
    }
    base_time wait = contract_wait(&c->cfg.timing, row->spec.max_lease_seconds);
    return c->now < base_time_add(n->closing_since, base_time_add(wait, SESSION_CLOSING_PATIENCE));
}

/* A row that has to end first: taken over and released in one write. One that this process has released
 * already is only waited for: another epoch would start every wait anew. */
static enum conn_state closing(struct session_core *c, struct session_conn *n,
                               const struct contract_claim *row)
{
    n->want = row->spec.prefix;
    if (row->spec.release_time != 0 && lease_row_mine(row, &c->inst.me) && !base_mutant("closing.again"))
        return session_landed(c, n, row, c->now);
    if (closed_by_another(c, n, row)) {
        session_desk_free(c, n);
        n->again = true;
        n->retry_at = base_time_add(c->now, session_jitter(c, SESSION_RETRY_MAX));
        return CONN_RETRYING;
    }
    struct lease_ask ask = {.op = LEASE_CLOSING, .me = &c->inst.me, .epoch = row->spec.epoch};
    enum lease_reason r = lease_decide(&ask, row);
    if (r != LEASE_OK)
        return session_give_up(
            c, n, session_reason_of(r == LEASE_DELETING ? WHY_CLAIM_DELETING : WHY_EPOCH_EXHAUSTED));
    int16_t d = n->desk >= 0 ? n->desk : session_desk_take(c);
    if (d < 0)
        return session_give_up(c, n, session_reason_of(WHY_BUSY));
    if (row != &c->desk[d])
        c->desk[d] = *row;
    n->desk = d;
    n->row = ROW_ON_DESK;
    return session_decide(c, n, LEASE_CLOSING);
}

static enum conn_state pick(struct session_core *c, struct session_conn *n, const struct session_answer *an,
                            const struct session_service *s)
{
    struct base_prefix p;
    int rc = n->candidate < AUTHORITY_CANDIDATES
                 ? authority_candidate(&p, n->b.tenant, n->b.connector, n->b.vpc, &s->s.pool, n->candidate)
                 : BASE_EFULL;
    if (rc == BASE_OK) {
        bool row = false; /* a row of its own that is over: taken over, not created */
        for (size_t i = 0; i < an->n_objects; i++)
            row = row || base_prefix_eq(&claim_at(an, i)->spec.prefix, &p);
        return reserve(c, n, &p, !row);
    }
    if (rc != BASE_EFULL)
        return session_give_up(c, n, session_reason_of(WHY_POOL_EXHAUSTED));
    n->candidate = NO_CANDIDATE; /* now the VPC's claims decide */
    struct session_fx *fx = session_fx(c, SESSION_FX_LIST);
    n->ask = fx->u.store.ask = session_ask(c, me(c, n));
    fx->u.store.kind = CONTRACT_CLAIM;
    (void)base_copy(fx->u.store.vpc, sizeof fx->u.store.vpc, n->b.vpc);
    fx->u.store.correlation = n->req.correlation;
    n->ask_by = base_time_add(c->now, SESSION_READ_WAIT);
    return CONN_LISTING;
}

/* Every claim of the VPC is here: the first candidate that nobody has. */
static enum conn_state pick_free(struct session_core *c, struct session_conn *n,
                                 const struct session_answer *an, const struct session_service *s)
{
    struct base_prefix p;
    /* ends after one more than there are rows, at the latest: one of them must be free */
    for (uint64_t i = 0;
         authority_candidate(&p, n->b.tenant, n->b.connector, n->b.vpc, &s->s.pool, i) == BASE_OK; i++) {
        bool taken = false;
        for (size_t k = 0; k < an->n_objects && !taken; k++)
            taken = base_prefix_eq(&claim_at(an, k)->spec.prefix, &p);
        if (!taken)
            return reserve(c, n, &p, true);
    }
    n->candidate = 0;
    return session_give_up(c, n, session_reason_of(WHY_POOL_EXHAUSTED));
}

enum conn_state session_on_list(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    const struct session_answer *an = in->answer;
    const struct session_service *s = session_service_of(c, n);
    if (!an || an->code != BASE_OK)
        return session_give_up(c, n, session_reason_of(WHY_API_UNAVAILABLE));
    if (!s)
        return session_give_up(c, n, session_reason_auth(AUTHORITY_NO_SERVICE));
    if (n->candidate == NO_CANDIDATE)
        return pick_free(c, n, an, s);

    const struct contract_claim *first = NULL, *other = NULL;
    for (size_t i = 0; i < an->n_objects; i++) {
        const struct contract_claim *row = claim_at(an, i);
        if (strcmp(row->spec.tenant, n->b.tenant) != 0 || strcmp(row->spec.connector, n->b.connector) != 0 ||
            strcmp(row->spec.provider, c->cfg.provider) != 0 || lease_row_over(row))
            continue;
        if (!first || strcmp(row->meta.name, first->meta.name) < 0) {
            other = first ? first : other;
            first = row;
        } else {
            other = row;
        }
    }
    if (other &&
        !base_mutant("arbitration.several")) /* of several, all but the first by name are ended first */
        return closing(c, n, other);
    if (!first)
        return pick(c, n, an, s);
    if (strcmp(first->spec.vpc, n->b.vpc) != 0 || !usable(s, n, &first->spec.prefix))
        return closing(
            c, n, first); /* outside pool or VPC: ended by a closing takeover, closed, then from the start */
    return reserve(c, n, &first->spec.prefix, false);
}

enum conn_state session_on_reserved(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    const struct session_answer *an = in->answer;
    if (an->code == BASE_OK)
        (void)session_binding_row(c, &an->objects[0].u.binding);
    if (an->code == BASE_OK && !n->clearing) {
        if (n->fresh_prefix) {
            n->fresh_prefix = false;
            return session_decide(c, n, LEASE_ACQUIRE);
        }
        return session_check_again(c, n);
    }
    if (an->code == BASE_EDENIED || an->code == BASE_EINVAL)
        return session_give_up(c, n, session_reason_of(WHY_RESERVATION_REFUSED));
    if (an->code == BASE_OK || an->code == BASE_ECONFLICT || an->code == BASE_EUNKNOWN ||
        an->code == BASE_ENOTFOUND)
        return session_begin(c,
                             n); /* cleared, somebody was faster, or unknown: what the binding says decides */
    return session_give_up(c, n, session_reason_of(WHY_API_UNAVAILABLE));
}

/* ---- the row of the prefix in question */
static enum conn_state clear(struct session_core *c, struct session_conn *n)
{
    session_desk_free(c, n);
    if (!n->b.has_prefix || !base_prefix_eq(&n->b.prefix, &n->want))
        return session_begin(c, n); /* it is not the reservation any more */
    return write_reservation(c, n, true);
}

/* takeover: Denied: is the row's holder alive, as far as this clock can tell? */
static bool holder_live(struct session_core *c, struct session_conn *n,
                        const struct contract_instance *holder, const struct contract_claim *row)
{
    if (!holder || !base_uuid_eq(&holder->spec.process_id, &row->spec.holder.process_id))
        return false;
    if (!base_uuid_eq(&n->denied_process, &holder->spec.process_id) ||
        n->denied_boot_us != holder->spec.renew.boot_time_us) {
        n->denied_process = holder->spec.process_id;
        n->denied_boot_us = holder->spec.renew.boot_time_us;
        n->denied_since = c->now; /* it may have been renewed just now */
    }
    return c->now <
           base_time_add(n->denied_since, contract_wait(&c->cfg.timing, row->spec.max_lease_seconds));
}

static enum conn_state take_over(struct session_core *c, struct session_conn *n,
                                 const struct contract_claim *row, bool live)
{
    struct lease_target t = {
        .tenant = n->b.tenant, .connector = n->b.connector, .vpc = n->b.vpc, .prefix = n->want};
    n->seen_epoch = row->spec.epoch;
    struct lease_ask ask = {.op = LEASE_TAKEOVER,
                            .me = &c->inst.me,
                            .target = &t,
                            .epoch = row->spec.epoch,
                            .takeover_denied = n->b.takeover_denied,
                            .holder_live = live};
    switch (lease_decide(&ask, row)) {
    case LEASE_OK:
        return session_decide(c, n, LEASE_TAKEOVER);
    case LEASE_OTHER_CONNECTOR:
        n->candidate = n->candidate < AUTHORITY_CANDIDATES ? n->candidate + 1 : n->candidate;
        return clear(c, n);
    case LEASE_OTHER_VPC:
        return lease_row_over(row) ? clear(c, n) : closing(c, n, row);
    case LEASE_DELETING:
        return session_give_up(c, n, session_reason_of(WHY_CLAIM_DELETING));
    case LEASE_DENIED:
        return session_give_up(c, n, session_reason_of(WHY_TAKEOVER_DENIED));
    case LEASE_EPOCH_FULL:
        return session_give_up(c, n, session_reason_of(WHY_EPOCH_EXHAUSTED));
    case LEASE_HELD:
    case LEASE_RELEASED:
    case LEASE_ABSENT:
    case LEASE_OTHER_HOLDER:
    case LEASE_OTHER_EPOCH:
    case LEASE_OTHER_LEASE:
        break;
    }
    return session_give_up(c, n, session_reason_of(WHY_CONFLICT));
}

/* `row` is the fresh read of the prefix in question; NULL = there is none. */
static enum conn_state decide_row(struct session_core *c, struct session_conn *n,
                                  const struct contract_claim *row)
{
    const struct session_service *s = session_service_of(c, n);
    if (!s)
        return session_give_up(c, n, session_reason_auth(AUTHORITY_NO_SERVICE));

    /* a write whose answer was lost: our nonce is there, so it landed, with the deadline of that attempt's
     * send */
    const struct lease_attempt *lost = row ? session_attempt_of(n, &row->spec.lease_uuid) : NULL;
    if (lost && lease_row_mine(row, &c->inst.me) && lease_outcome_of(lost, row) == LEASE_LANDED &&
        (row->spec.release_time == 0 || lost->op == LEASE_CLOSING) && !base_mutant("outcome.landed")) {
        base_time sent = lost->sent;
        return session_landed(c, n, row, base_mutant("outcome.anchor") ? c->now : sent);
    }

    bool fits = usable(s, n, &n->want) || base_mutant("arbitration.pool");
    bool own = row && strcmp(row->spec.tenant, n->b.tenant) == 0 &&
               strcmp(row->spec.connector, n->b.connector) == 0 &&
               strcmp(row->spec.provider, c->cfg.provider) == 0;
    if (!fits) {
        if (!own || lease_row_over(row))
            return clear(c, n);
        return closing(c, n, row);
    }
    if (!row)
        return session_decide(c, n, LEASE_ACQUIRE);
    if (own && n->b.takeover_denied && row->spec.release_time == 0 &&
        row->status.closed_epoch < row->spec.epoch &&
        !base_uuid_eq(&row->spec.holder.process_id, &c->inst.me.process_id)) {
        n->ask = session_get(c, me(c, n), CONTRACT_INSTANCE, row->spec.holder.instance, &n->req.correlation);
        n->ask_by = base_time_add(c->now, SESSION_READ_WAIT);
        n->holder_asked = true;
        return CONN_CHECKING; /* the row stays on the desk */
    }
    return take_over(c, n, row, false);
}

enum conn_state session_on_row(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    const struct session_answer *an = in->answer;
    if (n->read_failed != WHY_NONE) { /* or there is no answer at all (session_conn_settle) */
        session_acquire_refused(c, n, NULL);
        n->read_failed = WHY_NONE;
        return session_give_up(c, n, session_reason_of(WHY_API_UNAVAILABLE));
    }
    if (!n->holder_asked)
        session_acquire_refused(c, n, n->row == ROW_ON_DESK ? &c->desk[n->desk] : NULL);
    if (n->holder_asked) {
        assert(n->row == ROW_ON_DESK);
        const struct contract_claim *row = &c->desk[n->desk];
        if (an->code != BASE_OK && an->code != BASE_ENOTFOUND)
            return session_give_up(c, n, session_reason_of(WHY_API_UNAVAILABLE));
        bool live = holder_live(c, n, an->code == BASE_OK ? &an->objects[0].u.instance : NULL, row);
        return take_over(c, n, row, live);
    }
    if (n->row == ROW_NOT_READ) { /* the desk was full */
        n->retry_at = base_time_add(c->now, session_backoff(c, 0));
        return CONN_RETRYING;
    }
    return decide_row(c, n, n->row == ROW_ON_DESK ? &c->desk[n->desk] : NULL);
}
