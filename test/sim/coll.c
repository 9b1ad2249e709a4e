/* SPDX-License-Identifier: Apache-2.0
 *
 * A collection as pkg/kubestore keeps it: list, watch from the list's version, relist after 410, and the
 * collection proof (contract section 5). Same order, same rules:
 *  - a stream brings changes in order; what is not above `version` was applied already and is dropped;
 *  - PROVED comes only when everything up to R has been applied, with t0 read before R was asked for;
 *  - no event or bookmark in time: a full list, which proves by itself; that fails too: NOT_PROVED.
 */
#include "sim.h"

#define PROBE_WAIT (4 * BASE_SEC)
#define BOOKMARK (400 * BASE_MS)
#define LIST_TIMEOUT (10 * BASE_SEC)

static void note(struct sim_world *w, struct sim_proc *p, unsigned i, int what, bool deleted,
                 struct contract_object *o, uint64_t id, base_time t0)
{
    static const enum session_ev agent[] = {SESSION_EV_ROW,   SESSION_EV_RELIST, SESSION_EV_LISTED,
                                            SESSION_EV_PROOF, SESSION_EV_PROOF,  SESSION_EV_REGRESSED};
    static const enum fnd_ev found[] = {FND_EV_ROW,    FND_EV_RELIST,     FND_EV_LISTED,
                                        FND_EV_PROVED, FND_EV_NOT_PROVED, FND_EV_REGRESSED};

    if (p->type == SIM_AGENT)
        sim_agent_note(w, p, i, agent[what], deleted, o, id, what == 3, t0);
    else
        sim_found_note(w, p, i, found[what], deleted, o, id, t0);
}
enum { ROW, RELIST, LISTED, PROVED, NOT_PROVED, REGRESSED };

static void saw(struct sim_proc *p, enum contract_kind kind, uint64_t version)
{
    p->seen[kind] = version > p->seen[kind] ? version : p->seen[kind];
}

static void check(struct sim_world *w, struct sim_proc *p, unsigned i)
{
    struct sim_coll *c = &p->coll[i];

    for (unsigned k = 0; k < BASE_LEN(c->proof) && p->alive && !c->over && !p->half; k++) {
        struct sim_proof *f = &c->proof[k];

        if (!f->used || !f->r || c->partial || c->version < f->r)
            continue;
        f->used = false;
        note(w, p, i, PROVED, false, NULL, f->id, f->t0);
    }
}

/* It goes on after it stood still in the middle of a step: what it could not be told then. */
void sim_coll_recheck(struct sim_world *w, struct sim_proc *p)
{
    for (unsigned i = 0; i < SIM_COLLS && p->alive; i++)
        if (p->coll[i].kind)
            check(w, p, i);
}

static void timer(struct sim_world *w, struct sim_proc *p, unsigned i, base_time boot)
{
    sim_post(w, sim_real(&w->node[p->node].clock, boot), SIM_EV_PROOF, p)->a = i;
}

/* ---- streams ---- */
void sim_coll_pump(struct sim_world *w, struct sim_proc *p, unsigned i)
{
    struct sim_coll *c = &p->coll[i];
    const struct contract_object *o;
    enum store_event_type type;
    int rc;

    if (!c->open)
        return;
    for (;;) {
        base_time at = w->now + sim_delay(w, p);
        struct sim_event *e;

        rc = store_twin_change(w->twin, c->kind, &c->sel, &c->sent, &type, &o);
        if (rc == BASE_EGONE) {
            sim_coll_break(w, p, i, true);
            return;
        }
        if (rc != BASE_OK)
            return;
        at += w->lag_by[p->front][c->kind];
        at = base_time_max(at, w->lag_until[p->front][c->kind]);
        at = base_time_max(at, c->silent);
        at = base_time_max(at, p->link.down_until);
        c->next_at = base_time_max(c->next_at, at);
        e = sim_post(w, c->next_at, SIM_EV_ROW, p);
        e->a = i | (uint64_t)(type == STORE_DELETED) << 8 | (uint64_t)c->stream << 16;
        e->b = c->sent;
        e->object = sim_object(w, o);
        if (type == STORE_DELETED)
            base_u64_text(e->object->u.meta.rv, c->sent);
    }
}

static void open_stream(struct sim_world *w, struct sim_proc *p, unsigned i)
{
    struct sim_coll *c = &p->coll[i];

    if (!sim_link_up(w, p)) {
        p->front = (p->front + 1) % SIM_FRONTS;
        sim_post(w, w->now + BASE_SEC, SIM_EV_STREAM, p)->a = i;
        return;
    }
    c->open = true;
    c->stream++;
    c->sent = c->version;
    c->next_at = w->now;
    sim_coll_pump(w, p, i);
}

void sim_coll_row(struct sim_world *w, struct sim_proc *p, struct sim_event *ev)
{
    unsigned i = ev->a & 0xff;
    struct sim_coll *c = &p->coll[i];

    if (ev->a >> 16 != c->stream || !c->open || c->over || ev->b <= c->version)
        return;
    c->version = ev->b;
    saw(p, c->kind, ev->b);
    note(w, p, i, ROW, (ev->a >> 8 & 1) != 0, ev->object, 0, 0);
    check(w, p, i);
}

void sim_coll_bookmark(struct sim_world *w, struct sim_proc *p, struct sim_event *ev)
{
    unsigned i = ev->a & 0xff;
    struct sim_coll *c = &p->coll[i];

    if (ev->a >> 16 != c->stream || !c->open || c->over || ev->b <= c->version)
        return;
    c->version = ev->b;
    saw(p, c->kind, ev->b);
    check(w, p, i);
}

/* ---- lists ---- */
static void list(struct sim_world *w, struct sim_proc *p, unsigned i)
{
    struct sim_coll *c = &p->coll[i];
    struct sim_req *r = sim_req_new(w);

    c->listing = true;
    c->open = false;
    c->stream++;
    r->op = STORE_LIST;
    r->kind = c->kind;
    r->sel = c->sel;
    r->what = SIM_FOR_LIST;
    r->coll = i;
    r->proof = ++c->lists;
    sim_api_send(w, p, r, LIST_TIMEOUT);
}

static void listed(struct sim_world *w, struct sim_proc *p, struct sim_req *r)
{
    struct sim_coll *c = &p->coll[r->coll];

    if (!c->listing || c->over || r->proof != c->lists)
        return;
    if (r->code == BASE_OK && r->history == p->history && r->list_rv < r->floor) {
        sim_coll_start_over(w, p);
        return;
    }
    if (r->code != BASE_OK) {
        if (c->for_proof && c->version) {
            c->listing = false; /* no proof; the changes may still come */
            open_stream(w, p, r->coll);
        } else {
            base_time wait = (base_time)(250 * BASE_MS) << (c->failures < 5 ? c->failures : 5);

            c->failures++;
            sim_post(w, w->now + wait, SIM_EV_STREAM, p)->a = r->coll | 1u << 8;
        }
        return;
    }
    c->listing = false;
    c->failures = 0;
    c->partial = true;
    note(w, p, r->coll, RELIST, false, NULL, r->list_rv, 0);
    for (size_t k = 0; k < r->n_objects && p->alive && !c->over; k++)
        note(w, p, r->coll, ROW, false, &r->objects[k], 0, 0);
    if (!p->alive || c->over)
        return;
    c->partial = false;
    c->version = r->list_rv;
    saw(p, c->kind, c->version);
    note(w, p, r->coll, LISTED, false, NULL, 0, 0);
    for (unsigned k = 0; k < BASE_LEN(c->proof) && p->alive && !c->over; k++) {
        struct sim_proof *f = &c->proof[k];

        if (!f->used || r->sent < f->asked)
            continue;
        f->used = false;
        note(w, p, r->coll, PROVED, false, NULL, f->id, r->sent);
    }
    if (!p->alive || c->over)
        return;
    check(w, p, r->coll);
    if (p->alive && !c->listing && !c->over)
        open_stream(w, p, r->coll);
}

/* ---- the API server went back ---- */
void sim_coll_start_over(struct sim_world *w, struct sim_proc *p)
{
    SIM_SAY(w, "%s process %u: the API server went back, everything is listed again", w->node[p->node].name,
            p->serial);
    p->history++;
    p->had_instance = false; /* the rows as stored are its start: it takes its own as a fresh process does */
    memset(p->seen, 0, sizeof p->seen);
    for (unsigned i = 0; i < SIM_COLLS; i++) {
        if (!p->coll[i].kind || p->coll[i].over)
            continue;
        p->coll[i].over = true;
        sim_post(w, w->now, SIM_EV_STREAM, p)->a = i | 2u << 8;
    }
}

static void start_over(struct sim_world *w, struct sim_proc *p, unsigned i)
{
    struct sim_coll *c = &p->coll[i];

    if (!c->over)
        return;
    c->over = c->open = c->listing = c->partial = c->for_proof = false;
    c->stream++;
    c->lists++;
    c->version = 0;
    c->silent = 0;
    for (unsigned k = 0; k < BASE_LEN(c->proof) && p->alive; k++) {
        if (!c->proof[k].used)
            continue;
        c->proof[k].used = false;
        note(w, p, i, NOT_PROVED, false, NULL, c->proof[k].id, 0);
    }
    if (p->alive)
        note(w, p, i, REGRESSED, false, NULL, 0, 0);
    if (p->alive)
        sim_post(w, w->now + 20 * BASE_MS + (base_time)sim_draw(p, 180 * BASE_MS), SIM_EV_STREAM, p)->a =
            i | 1u << 8;
}

/* A write that changed something has a version of its own, above all that was seen before it was sent; a list
 * has at least the highest of those. What was sent in another history says nothing of this one. */
void sim_coll_look(struct sim_world *w, struct sim_proc *p, const struct sim_req *r)
{
    bool list = r->op == STORE_LIST, back;
    uint64_t version = r->list_rv;

    if (r->code != BASE_OK || r->history != p->history || (!list && !r->n_objects))
        return;
    if (!list && base_parse_u64(base_str_of(r->objects[0].u.meta.rv), UINT64_MAX, &version))
        return;
    back = list ? version < r->floor
                : r->op != STORE_GET && r->op != STORE_DELETE && version != r->based_on && r->floor &&
                      version <= r->floor;
    if (back)
        sim_coll_start_over(w, p);
    else
        saw(p, r->kind, version);
}

/* A stream ends: again from `version`, or from a new list. */
void sim_coll_break(struct sim_world *w, struct sim_proc *p, unsigned i, bool relist)
{
    struct sim_coll *c = &p->coll[i];

    if (c->listing)
        return;
    c->open = false;
    c->stream++;
    c->silent = 0;
    sim_post(w, w->now + 20 * BASE_MS + (base_time)sim_draw(p, 200 * BASE_MS), SIM_EV_STREAM, p)->a =
        i | (unsigned)relist << 8;
}

void sim_coll_stream(struct sim_world *w, struct sim_proc *p, struct sim_event *ev)
{
    unsigned i = ev->a & 0xff;
    struct sim_coll *c = &p->coll[i];

    if (ev->a >> 8 == 2) {
        start_over(w, p, i);
        return;
    }
    if (c->open || c->over)
        return;
    if (ev->a >> 8 || !c->version) {
        c->for_proof = false;
        list(w, p, i);
    } else if (!c->listing) {
        open_stream(w, p, i);
    }
}

/* ---- proofs ---- */
static void step1(struct sim_world *w, struct sim_proc *p, unsigned i, struct sim_proof *f)
{
    struct sim_coll *c = &p->coll[i];
    struct sim_req *r = sim_req_new(w);
    base_time timeout =
        base_time_min(base_time_max((f->deadline - f->asked) / 4, 250 * BASE_MS), 2 * BASE_SEC);

    r->op = STORE_LIST;
    r->kind = c->kind;
    r->what = SIM_FOR_STEP1;
    r->coll = i;
    r->proof = f->id;
    sim_api_send(w, p, r, timeout);
}

void sim_coll_prove(struct sim_world *w, struct sim_proc *p, unsigned i, uint64_t id, base_time timeout)
{
    struct sim_coll *c = &p->coll[i];
    struct sim_proof *f = NULL;

    for (unsigned k = 0; k < BASE_LEN(c->proof) && !f; k++)
        if (!c->proof[k].used)
            f = &c->proof[k];
    if (!f)
        return; /* refused; as an answer that never comes */
    *f = (struct sim_proof){
        .used = true, .id = id, .asked = sim_node_now(w, p->node), .give_up = BASE_TIME_NEVER};
    f->deadline = f->asked + timeout;
    timer(w, p, i, f->deadline);
    step1(w, p, i, f);
}

static struct sim_proof *proof_of(struct sim_coll *c, uint64_t id)
{
    for (unsigned k = 0; k < BASE_LEN(c->proof); k++)
        if (c->proof[k].used && c->proof[k].id == id)
            return &c->proof[k];
    return NULL;
}

/* A watch from `version` with a bookmark about 0.4 s later; it also brings what a silent stream kept back. */
static void probe(struct sim_world *w, struct sim_proc *p, unsigned i)
{
    struct sim_coll *c = &p->coll[i];
    struct sim_event *e;
    base_time at;

    if (w->now < p->link.up_until || w->now < w->front_down[p->front] || c->listing)
        return;
    if (c->silent > w->now) {
        c->silent = 0;
        open_stream(w, p, i);
    }
    if (!c->open)
        return;
    sim_coll_pump(w, p, i); /* everything up to the bookmark's version is on its way before it */
    at = w->now + BOOKMARK + 2 * sim_delay(w, p) + w->lag_by[p->front][c->kind];
    at = base_time_max(at, w->lag_until[p->front][c->kind]);
    at = base_time_max(at, p->link.down_until);
    /* After everything that it covers, and in nobody's way: what comes later covers the bookmark's version,
     * too. */
    e = sim_post(w, base_time_max(c->next_at, at), SIM_EV_BOOKMARK, p);
    e->a = i | (uint64_t)c->stream << 16;
    e->b = w->rv;
}

static void stepped(struct sim_world *w, struct sim_proc *p, struct sim_req *r)
{
    struct sim_coll *c = &p->coll[r->coll];
    struct sim_proof *f = proof_of(c, r->proof);
    base_time now = sim_node_now(w, p->node);

    if (!f || f->r || c->over)
        return;
    if (r->code == BASE_OK && r->history == p->history && r->list_rv < r->floor) {
        sim_coll_start_over(w, p);
        return;
    }
    if (r->code == BASE_OK && !w->healed && sim_chance(p, w->plan->rate[SIM_F_PROOF_FAIL])) {
        sim_fired(w, SIM_F_PROOF_FAIL);
        r->code = BASE_EPROTO;
    }
    if (r->code != BASE_OK) {
        if (++f->failures < 2) {
            step1(w, p, r->coll, f);
        } else {
            f->give_up = now;
            sim_coll_timer(w, p, r->coll);
        }
        return;
    }
    f->r = r->list_rv;
    f->t0 = r->sent;
    saw(p, c->kind, f->r);
    f->give_up = now + base_time_min(PROBE_WAIT, (f->deadline - now) / 2);
    check(w, p, r->coll);
    if (!p->alive || !f->used || f->id != r->proof)
        return;
    timer(w, p, r->coll, f->give_up);
    probe(w, p, r->coll);
}

void sim_coll_timer(struct sim_world *w, struct sim_proc *p, unsigned i)
{
    struct sim_coll *c = &p->coll[i];
    base_time now = sim_node_now(w, p->node);
    bool want = false;

    for (unsigned k = 0; k < BASE_LEN(c->proof) && p->alive; k++) {
        struct sim_proof *f = &c->proof[k];

        if (!f->used)
            continue;
        if (now >= f->deadline) {
            f->used = false;
            note(w, p, i, NOT_PROVED, false, NULL, f->id, 0);
        } else if (now >= f->give_up) {
            f->give_up = BASE_TIME_NEVER; /* once */
            want = true;
        }
    }
    if (want && p->alive && !c->listing && !c->over) {
        c->for_proof = true;
        list(w, p, i);
    }
}

void sim_coll_answer(struct sim_world *w, struct sim_proc *p, struct sim_req *r)
{
    if (r->what == SIM_FOR_STEP1)
        stepped(w, p, r);
    else
        listed(w, p, r);
}

void sim_coll_start(struct sim_world *w, struct sim_proc *p)
{
    for (unsigned i = 0; i < SIM_COLLS; i++)
        if (p->coll[i].kind)
            list(w, p, i);
}
