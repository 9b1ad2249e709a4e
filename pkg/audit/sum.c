/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/sum.h"

#define POOLED 128 /* sums per reason, once the table is full: more than there are reasons */
#define RESERVED 8 /* entries that rejects leave to renewals */

struct entry {
    bool used, pooled, due;
    base_time opened;
    int64_t count; /* since the last written record */
    base_wall first;
    struct audit_record last;
};
struct audit_sum {
    struct audit_sum_config cfg;
    uint64_t counted;
    bool failed;
    size_t n, n_used; /* of the first max */
    struct entry entries[];
};

struct audit_sum *audit_sum_new(const struct audit_sum_config *cfg)
{
    uint32_t max = (cfg->max ? cfg->max : 256) + RESERVED;
    struct audit_sum *s = base_calloc(1, sizeof *s + (max + POOLED) * sizeof s->entries[0]);

    if (!s)
        return NULL;
    s->cfg = *cfg;
    s->cfg.max = max;
    s->n = max + POOLED;
    return s;
}

struct audit_sum *audit_sum_free(struct audit_sum *s)
{
    return base_free(s);
}

static bool equal(const struct audit_record *a, const struct audit_record *b)
{
    return a->event == b->event && a->epoch == b->epoch && base_uuid_eq(&a->lease_uuid, &b->lease_uuid) &&
           strcmp(a->reason, b->reason) == 0 && strcmp(a->object, b->object) == 0 &&
           strcmp(a->credential_id, b->credential_id) == 0;
}

/* A renewal's sum is written with a renewal, which waits for it; only one that renews no more is left to the
 * timer. */
static base_time patience(const struct audit_sum *s, const struct entry *e)
{
    return e->last.event == AUDIT_RENEW ? 2 * s->cfg.renew : s->cfg.reject;
}

static struct entry *find(struct audit_sum *s, const struct audit_record *r, bool pooled)
{
    for (size_t i = 0; i < s->n; i++) {
        struct entry *e = &s->entries[i];

        if (e->used && e->pooled == pooled &&
            (pooled ? r->event == e->last.event && strcmp(r->reason, e->last.reason) == 0
                    : equal(r, &e->last)))
            return e;
    }
    return NULL;
}

static struct entry *open_entry(struct audit_sum *s, base_time now, const struct audit_record *r, bool pooled)
{
    size_t from = pooled ? s->cfg.max : 0, to = pooled ? s->n : s->cfg.max;

    for (size_t i = from; i < to; i++)
        if (!s->entries[i].used) {
            s->entries[i] = (struct entry){.used = true, .pooled = pooled, .opened = now, .last = *r};
            s->n_used += !pooled;
            return &s->entries[i];
        }
    return NULL;
}

static void close_entry(struct audit_sum *s, struct entry *e)
{
    s->n_used -= !e->pooled;
    e->used = false;
}

static void count(struct audit_sum *s, struct entry *e, const struct audit_record *r)
{
    if (e->count == 0)
        e->first = r->ts;
    e->count++;
    s->counted++;
    e->last = *r;
    if (e->pooled) {
        e->last.object[0] = e->last.credential_id[0] = '\0';
        e->last.object_uid = e->last.lease_uuid = (struct base_uuid){{0}};
        e->last.epoch = 0;
    }
}

static void become_sum(const struct entry *e, struct audit_record *r)
{
    *r = e->last;
    r->count = e->count;
    r->first = e->first;
    r->last = e->last.ts;
}

static enum audit_sum_verdict offer_renew(struct audit_sum *s, base_time now, struct audit_record *r,
                                          bool must)
{
    struct entry *e = find(s, r, false);

    if (!e) {
        (void)open_entry(s, now, r, false);
        return AUDIT_SUM_WRITE;
    }
    count(s, e, r);
    if (!must && !s->failed && now - e->opened < s->cfg.renew)
        return AUDIT_SUM_COUNTED;
    s->counted--; /* this one is written */
    if (e->count > 1)
        become_sum(e, r);
    s->failed = false;
    e->count = 0;
    e->opened = now;
    return AUDIT_SUM_WRITE;
}

static enum audit_sum_verdict offer_reject(struct audit_sum *s, base_time now, struct audit_record *r)
{
    struct entry *e = find(s, r, false);

    if (!e && s->n_used < s->cfg.max - RESERVED && open_entry(s, now, r, false))
        return AUDIT_SUM_WRITE;
    if (!e)
        e = find(s, r, true);
    if (!e)
        e = open_entry(s, now, r, true);
    if (!e)
        return AUDIT_SUM_WRITE;
    count(s, e, r);
    return AUDIT_SUM_COUNTED;
}

enum audit_sum_verdict audit_sum_offer(struct audit_sum *s, base_time now, struct audit_record *r, bool must)
{
    if (r->event == AUDIT_RENEW && s->cfg.renew)
        return offer_renew(s, now, r, must);
    if (r->event == AUDIT_REJECT && r->effect != AUDIT_EFFECT_POSSIBLE && s->cfg.reject)
        return offer_reject(s, now, r);
    for (size_t i = 0; r->event != AUDIT_RENEW && r->event != AUDIT_REJECT && i < s->cfg.max; i++) {
        struct entry *e = &s->entries[i];

        if (e->used && e->last.event == AUDIT_RENEW && strcmp(e->last.object, r->object) == 0)
            e->due = true; /* something changed for this holder */
    }
    return AUDIT_SUM_WRITE;
}

void audit_sum_failed(struct audit_sum *s)
{
    s->failed = true;
}

bool audit_sum_next(struct audit_sum *s, base_time now, bool all, struct audit_record *ret)
{
    for (size_t i = 0; i < s->n; i++) {
        struct entry *e = &s->entries[i];
        bool over = e->used && (e->due || now - e->opened >= patience(s, e));

        if (!e->used || (!over && !all) || (!over && e->count == 0))
            continue;
        if (e->count == 0) { /* quiet since the last record */
            close_entry(s, e);
            continue;
        }
        become_sum(e, ret);
        e->count = 0;
        e->opened = now;
        if (e->due)
            close_entry(s, e);
        return true;
    }
    return false;
}

base_time audit_sum_wake(const struct audit_sum *s)
{
    base_time at = BASE_TIME_NEVER;

    for (size_t i = 0; i < s->n; i++) {
        const struct entry *e = &s->entries[i];

        if (e->used)
            at = base_time_min(at, e->due ? e->opened : base_time_add(e->opened, patience(s, e)));
    }
    return at;
}

uint64_t audit_sum_counted(const struct audit_sum *s)
{
    return s->counted;
}
