/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/trail.c - records out of files, and what could not be seen.
 */
#include "cli/cli_int.h"

#include <stdarg.h>
#include <stdlib.h>

#include "audit/chain.h"
#include "journal/trail.h"

void cli_trail_init(struct cli_trail *t, size_t limit)
{
    memset(t, 0, sizeof *t);
    t->limit = limit;
}

void cli_trail_fini(struct cli_trail *t)
{
    t->l = base_free(t->l);
    t->n = t->room = 0;
}

void cli_trail_blind(struct cli_trail *t, const char *fmt, ...)
{
    va_list ap;

    if (t->n_blind == CLI_BLIND_MAX)
        return;
    va_start(ap, fmt);
    (void)base_vfmt(t->blind[t->n_blind], sizeof t->blind[0], fmt, ap);
    va_end(ap);
    cli_tame(t->blind[t->n_blind]);
    for (size_t i = 0; i < t->n_blind; i++)
        if (strcmp(t->blind[i], t->blind[t->n_blind]) == 0)
            return;
    t->n_blind++;
}

bool cli_trail_saw(const struct cli_trail *t, const char *node)
{
    for (size_t i = 0; i < t->n_nodes; i++)
        if (strcmp(t->nodes[i], node) == 0)
            return true;
    return false;
}

void cli_trail_node(struct cli_trail *t, const char *node)
{
    if (node[0] && !cli_trail_saw(t, node) && t->n_nodes < CLI_BLIND_MAX)
        (void)base_copy(t->nodes[t->n_nodes++], sizeof t->nodes[0], node);
}

static int by_time(const void *a, const void *b)
{
    const struct audit_line *x = a, *y = b;

    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* Keeps the newest `limit`: sorts and drops the oldest when there are twice as many. */
static void trim(struct cli_trail *t)
{
    if (t->n)
        qsort(t->l, t->n, sizeof t->l[0], by_time);
    if (t->n > t->limit) {
        memmove(t->l, t->l + (t->n - t->limit), t->limit * sizeof t->l[0]);
        t->n = t->limit;
        t->cut = true;
    }
}

void cli_trail_add(struct cli_trail *t, const struct audit_line *l)
{
    if (t->n >= 2 * t->limit)
        trim(t);
    if (t->n == t->room) {
        size_t room = t->room ? 2 * t->room : 128;
        void *more = base_realloc(t->l, room * sizeof *t->l);

        if (!more) {
            t->cut = true;
            return;
        }
        t->l = more;
        t->room = room;
    }
    t->l[t->n++] = *l;
}

struct reading {
    struct cli_trail *t;
    const struct audit_query *q;
    struct base_hasher *hasher;
    struct audit_verifier v; /* of the files that are read; a trail may begin in the middle */
    char path[512];
};

static bool want_file(void *arg, const char *path, uint64_t last_seq, base_wall mtime)
{
    struct reading *r = arg;

    (void)last_seq;
    if (r->q->since && mtime + 5000000 < r->q->since) { /* nothing in it is that new */
        if (!r->v.flaw)
            audit_verifier_init(&r->v); /* the next one follows nothing that was read */
        return false;
    }
    audit_verifier_file(&r->v);
    (void)base_fmt(r->path, sizeof r->path, "%s", path);
    return true;
}

/* What is shown is shown as found; a trail that was changed is no evidence, and that is said. */
static void check(struct reading *r, struct base_str line, bool whole)
{
    if (r->v.flaw || !audit_verifier_line(&r->v, r->hasher, line, whole))
        return;
    cli_trail_blind(r->t, "%s:%llu: %s: what comes from there on is no evidence; run `audit verify`", r->path,
                    (unsigned long long)r->v.flaw_line, audit_flaw_name(r->v.flaw));
}

static int on_line(void *arg, uint64_t number, struct base_str line, bool whole)
{
    struct reading *r = arg;
    struct audit_line l;

    check(r, line, whole);
    if (number != 1 && whole && !audit_may_match(r->q, line))
        return BASE_OK;
    if (!whole || audit_parse(line, &l)) {
        r->t->bad_lines += whole;
        return BASE_OK;
    }
    if (l.kind == AUDIT_LINE_START)
        cli_trail_node(r->t, l.node);
    if (audit_matches(r->q, &l))
        cli_trail_add(r->t, &l);
    return BASE_OK;
}

void cli_trail_read(struct cli *c, struct cli_trail *t, const struct audit_query *q, size_t from)
{
    struct reading r = {.t = t, .q = q, .hasher = base_hasher_new()};
    struct journal_reader jr = {&r, want_file, on_line};

    if (!r.hasher)
        cli_trail_blind(t, "no memory to read audit files");
    for (size_t i = from; i < c->a.n_rest && r.hasher; i++) {
        struct base_err err = {0};

        audit_verifier_init(&r.v);
        if (journal_read(c->a.rest[i], &jr, &err))
            cli_trail_blind(t, "%s", err.msg);
    }
    base_hasher_free(r.hasher);
    if (c->a.from_agents || c->a.n_agents)
        cli_trail_agents(c, t, q);
    trim(t);
    if (t->bad_lines)
        cli_trail_blind(
            t, "%llu lines are no audit records and were left out: run `audit verify` on these files",
            (unsigned long long)t->bad_lines);
    if (t->cut)
        cli_trail_blind(t, "there are more records than --limit %lld: the oldest are left out",
                        (long long)t->limit);
}

/* {"chain":"page","node":"edge1","oldest":"…","next":123}: the page's last line. */
int cli_trail_page(struct cli_trail *t, const struct audit_query *q, struct base_str page, uint64_t *ret_next,
                   struct base_err *err)
{
    bool ended = false;

    *ret_next = 0;
    for (size_t at = 0; at < page.len;) {
        const char *end = memchr(page.ptr + at, '\n', page.len - at);
        struct base_str line = {page.ptr + at, end ? (size_t)(end - (page.ptr + at)) : page.len - at};
        struct audit_line l;

        at += line.len + 1;
        if (base_str_starts(line, "{\"chain\":\"page\"")) {
            cJSON *doc = cJSON_ParseWithLength(line.ptr, line.len);
            const char *node = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(doc, "node"));
            const cJSON *next = cJSON_GetObjectItemCaseSensitive(doc, "next");

            if (node && base_is_subdomain(base_str_of(node), 125))
                cli_trail_node(t, node);
            if (cJSON_IsNumber(next) && next->valuedouble > 0)
                *ret_next = (uint64_t)next->valuedouble;
            ended = doc != NULL;
            cJSON_Delete(doc);
            continue;
        }
        if (ended || audit_parse(line, &l))
            return base_err_set(err, BASE_EPROTO, "the answer is no audit page");
        if (audit_matches(q, &l))
            cli_trail_add(t, &l);
    }
    if (!ended)
        return base_err_set(err, BASE_EPROTO, "the audit page is cut off");
    return BASE_OK;
}
