/* SPDX-License-Identifier: Apache-2.0
 *
 * What watchers see of the table: collections on the real server are open while it runs; afterwards the
 * twin's watch is read from the start with the same selectors, and the two sequences of events must be equal.
 */
#include <stdio.h>
#include <stdlib.h>

#include "twin.h"

#define EVENTS_MAX 1024
static const struct view {
    const char *name;
    enum contract_kind kind;
    struct store_selector sel;
} views[] = {
    {"watch: all claims", CONTRACT_CLAIM, {.node = ""}},
    {"watch: claims of edge1", CONTRACT_CLAIM, {.node = "edge1"}},
    {"watch: claims of edge2", CONTRACT_CLAIM, {.node = "edge2"}},
    {"watch: claims that edge1 held before", CONTRACT_CLAIM, {.previous_node = "edge1"}},
    {"watch: instances of edge1", CONTRACT_INSTANCE, {.node = "edge1"}},
    {"watch: attachments", CONTRACT_ATTACHMENT, {.vpc = "vpc-a"}},
    {"watch: services of t1", CONTRACT_SERVICE, {.tenant = "t1"}},
    {"watch: bindings", CONTRACT_BINDING, {.tenant = "t1"}},
};
#define N_VIEWS (sizeof views / sizeof views[0])

struct history {
    struct kubestore_watch *w[N_VIEWS];
    struct seen {
        struct store_event *ev;
        size_t n, relists;
        bool listed, proved, versions; /* versions: each event says its object's own */
    } seen[N_VIEWS];
    char start[CONTRACT_RV_SIZE]; /* of the twin */
};

static void on_note(void *arg, const struct kubestore_note *n)
{
    struct seen *s = arg;

    switch (n->what) {
    case KUBESTORE_EVENT:
        if (s->n == EVENTS_MAX)
            abort();
        s->versions &= strcmp(n->version, n->ev->object.u.meta.rv) == 0;
        s->ev[s->n++] = *n->ev;
        break;
    case KUBESTORE_RELIST:
        s->relists++;
        break;
    case KUBESTORE_LISTED:
        s->listed = true;
        break;
    case KUBESTORE_PROVED:
        s->proved = true;
        break;
    case KUBESTORE_NOT_PROVED:
    case KUBESTORE_REGRESSED:
    case KUBESTORE_BAD_OBJECT:
        break;
    }
}

struct history *history_open(struct rig *r)
{
    struct history *h = calloc(1, sizeof *h);

    if (!h)
        abort();
    store_twin_rv(r->twin, h->start);
    for (size_t i = 0; i < N_VIEWS; i++) {
        h->seen[i].versions = true;
        h->seen[i].ev = calloc(EVENTS_MAX, sizeof *h->seen[i].ev);
        if (!h->seen[i].ev || kubestore_watch_new(&h->w[i], r->store[ADMIN], views[i].kind, &views[i].sel,
                                                  on_note, &h->seen[i], NULL))
            abort();
        (void)rig_wait(r, &h->seen[i].listed, 10000);
    }
    rig_sleep(r, 500); /* the streams open */
    return h;
}

static const char *type_name(enum store_event_type t)
{
    return t == STORE_ADDED ? "ADDED" : t == STORE_MODIFIED ? "MODIFIED" : "DELETED";
}

static void compare(struct rig *r, const struct history *h, size_t i)
{
    const struct view *v = &views[i];
    const struct seen *s = &h->seen[i];
    char rv[CONTRACT_RV_SIZE];
    struct store_event ev;
    size_t n = 0;

    memcpy(rv, h->start, sizeof rv);
    for (; store_twin_watch(r->twin, v->kind, &v->sel, rv, &ev, rv) == BASE_OK; n++) {
        struct store_event *real = &s->ev[n];
        const char *what;

        if (n >= s->n) {
            report(r, false, v->name, "the server ends after %zu events, the twin goes on with %s %s", s->n,
                   type_name(ev.type), ev.object.u.meta.name);
            return;
        }
        normalize(&r->mem, &ev.object);
        normalize(&r->real, &real->object);
        what = ev.type != real->type ? "the type" : differs(&ev.object, &real->object);
        if (what) {
            report(r, false, v->name, "event %zu: %s differs (twin: %s %s, server: %s %s)", n, what,
                   type_name(ev.type), ev.object.u.meta.name, type_name(real->type),
                   real->object.u.meta.name);
            return;
        }
    }
    report(r, n == s->n && n > 0, v->name, "%zu events on the twin, %zu on the server", n, s->n);
}

void history_close(struct rig *r, struct history *h)
{
    for (size_t i = 0; i < N_VIEWS; i++) {
        /* a proof: everything that was written has come */
        kubestore_watch_prove(h->w[i], 1, 10 * BASE_SEC);
        report(r, rig_wait(r, &h->seen[i].proved, 12000), "watch: proved at the end", "%s", views[i].name);
        report(r, h->seen[i].relists == 1, "watch: one list", "%s: %zu", views[i].name, h->seen[i].relists);
        report(r, h->seen[i].versions, "watch: versions", "%s: an event does not say its object's version",
               views[i].name);
        compare(r, h, i);
        kubestore_watch_free(h->w[i]);
        free(h->seen[i].ev);
    }
    free(h);
}
