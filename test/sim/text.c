/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans as text: one setting, action or expectation a line. What sim_plan_write writes, sim_plan_read reads.
 *
 *     source contract-review.md, hole 1
 *     nodes 2
 *     at 20s move-quiet client 1 node 2
 *     at 21s cut node 1 target 3 for 30s
 *     at 60s expect forwarding client 1 node 2
 *     heal 70s
 */
#include "plan.h"

#include "base/cleanup.h"
#include "base/id.h"

static const struct {
    const char *name;
    enum sim_expect_what what;
} expects[] = {
    {"forwarding", SIM_X_FORWARDING}, {"stopped", SIM_X_STOPPED}, {"epoch", SIM_X_EPOCH},
    {"epoch-is", SIM_X_EPOCH_IS},     {"gates", SIM_X_GATES},     {"closed", SIM_X_CLOSED},
    {"ready", SIM_X_READY},           {"routes", SIM_X_ROUTES},   {"rows", SIM_X_ROWS},
    {"refusals", SIM_X_REFUSALS},
};

/* ---- words ---- */
struct words {
    unsigned n;
    struct base_str w[24];
};

static void split(struct words *ret, struct base_str line)
{
    size_t i = 0;

    ret->n = 0;
    while (i < line.len && ret->n < BASE_LEN(ret->w)) {
        size_t from;

        while (i < line.len && (line.ptr[i] == ' ' || line.ptr[i] == '\t'))
            i++;
        if (i == line.len || line.ptr[i] == '#')
            return;
        from = i;
        while (i < line.len && line.ptr[i] != ' ' && line.ptr[i] != '\t')
            i++;
        ret->w[ret->n++] = (struct base_str){line.ptr + from, i - from};
    }
}

static bool number(struct base_str s, int64_t *ret)
{
    bool minus = s.len > 1 && s.ptr[0] == '-';
    uint64_t v;

    if (minus)
        s = (struct base_str){s.ptr + 1, s.len - 1};
    if (base_parse_u64(s, INT64_MAX, &v))
        return false;
    *ret = minus ? -(int64_t)v : (int64_t)v;
    return true;
}

/* "20s", "1.5s", "350ms" */
static bool span(struct base_str s, base_time *ret)
{
    base_time unit = BASE_SEC, v = 0, part;

    if (s.len > 2 && s.ptr[s.len - 2] == 'm' && s.ptr[s.len - 1] == 's')
        unit = BASE_MS;
    else if (s.len < 2 || s.ptr[s.len - 1] != 's')
        return false;
    s.len -= unit == BASE_MS ? 2 : 1;
    part = unit;
    for (size_t i = 0, dot = 0; i < s.len; i++) {
        if (s.ptr[i] == '.' && !dot) {
            dot = 1;
            continue;
        }
        if (s.ptr[i] < '0' || s.ptr[i] > '9' || v > INT64_MAX / 100)
            return false;
        if (dot) {
            part /= 10;
            v += part * (s.ptr[i] - '0');
        } else {
            v = v * 10 + unit * (s.ptr[i] - '0');
        }
    }
    *ret = v;
    return true;
}

/* ---- reading ---- */
static int bad(struct base_err *err, const char *name, unsigned line, const char *what)
{
    return base_err_set(err, BASE_EINVAL, "%s:%u: %s", name, line, what);
}

static bool options(const struct words *w, unsigned from, int *node, int *client, int *target, int64_t *arg,
                    base_time *ret_span)
{
    for (unsigned i = from; i + 1 < w->n; i += 2) {
        struct base_str key = w->w[i];
        int64_t v;

        if (base_str_eqz(key, "for")) {
            if (!span(w->w[i + 1], ret_span))
                return false;
            continue;
        }
        if (!number(w->w[i + 1], &v))
            return false;
        if (base_str_eqz(key, "node") && v >= 0 && v <= SIM_NODES)
            *node = (int)v - 1;
        else if (base_str_eqz(key, "client") && v >= 0 && v <= SIM_CLIENTS)
            *client = (int)v - 1;
        else if (base_str_eqz(key, "target"))
            *target = (int)v;
        else if (base_str_eqz(key, "arg"))
            *arg = v;
        else
            return false;
    }
    return (w->n - from) % 2 == 0;
}

static int read_at(struct sim_plan *p, const struct words *w, const char *name, unsigned line,
                   struct base_err *err)
{
    base_time at, none = 0;
    int target = 0;

    if (w->n < 3 || !span(w->w[1], &at))
        return bad(err, name, line,
                   "expected: at TIME WHAT [node N] [client N] [target N] [arg N] [for TIME]");
    if (base_str_eqz(w->w[2], "expect")) {
        struct sim_expect *x = &p->expect[p->n_expects];

        if (w->n < 4 || p->n_expects == SIM_EXPECTS)
            return bad(err, name, line, "an expectation without a name, or too many of them");
        *x = (struct sim_expect){.at = at, .node = -1, .client = 0, .line = line};
        for (unsigned i = 0; i < BASE_LEN(expects); i++)
            if (base_str_eqz(w->w[3], expects[i].name))
                x->what = expects[i].what;
        if (!x->what || !options(w, 4, &x->node, &x->client, &target, &x->arg, &none))
            return bad(err, name, line, "no such expectation, or options that it does not take");
        p->n_expects++;
        return BASE_OK;
    }
    if (p->n_acts == SIM_ACTIONS)
        return bad(err, name, line, "too many actions");
    struct sim_act *a = &p->act[p->n_acts];

    *a = (struct sim_act){.at = at, .what = sim_fault_of(w->w[2]), .node = -1, .client = -1};
    if (a->what < SIM_F_RATES_END || !options(w, 3, &a->node, &a->client, &a->target, &a->arg, &a->span))
        return bad(err, name, line, "no such action, or options that it does not take");
    p->n_acts++;
    return BASE_OK;
}

static bool list(const struct words *w, int64_t *to, unsigned max)
{
    for (unsigned i = 1; i < w->n && i <= max; i++)
        if (!number(w->w[i], &to[i - 1]))
            return false;
    for (unsigned i = w->n > 1 ? w->n - 1 : 0; i < max; i++) /* the last one stands for the rest */
        to[i] = w->n > 1 ? to[w->n - 2] : 0;
    return w->n > 1 && w->n <= max + 1;
}

static int read_line(struct sim_plan *p, struct base_str text, const char *name, unsigned line,
                     struct base_err *err)
{
    struct words w;
    int64_t v[SIM_CLIENTS] = {0};
    base_time t;

    split(&w, text);
    if (w.n == 0)
        return BASE_OK;
    if (base_str_eqz(w.w[0], "at"))
        return read_at(p, &w, name, line, err);
    if (base_str_eqz(w.w[0], "source")) {
        struct base_str rest = {text.ptr + 7, text.len > 7 ? text.len - 7 : 0};

        (void)base_copy_str(p->source, sizeof p->source, rest);
        return BASE_OK;
    }
    if (base_str_eqz(w.w[0], "violation")) {
        struct base_str rest = {text.ptr + 10, text.len > 10 ? text.len - 10 : 0};

        return base_copy_str(p->violation, sizeof p->violation, rest) ? bad(err, name, line, "too long")
                                                                      : BASE_OK;
    }
    if (base_str_eqz(w.w[0], "outside")) {
        p->outside = true;
        return BASE_OK;
    }
    if (base_str_eqz(w.w[0], "rate") && w.n == 3) {
        enum sim_fault f = sim_fault_of(w.w[1]);

        if (f == SIM_F_NONE || f >= SIM_F_RATES_END || !number(w.w[2], &v[0]) || v[0] < 0 || v[0] > 1000000)
            return bad(err, name, line, "expected: rate NAME 0..1000000");
        p->rate[f] = (uint32_t)v[0];
        return BASE_OK;
    }
    if (w.n == 2 && span(w.w[1], &t)) {
        if (base_str_eqz(w.w[0], "heal"))
            p->faults_end = t;
        else if (base_str_eqz(w.w[0], "end"))
            p->end = t;
        else if (base_str_eqz(w.w[0], "settle"))
            p->settle = t;
        else
            return bad(err, name, line, "no such setting");
        return BASE_OK;
    }
    if (!list(&w, v,
              base_str_eqz(w.w[0], "start") || base_str_eqz(w.w[0], "roams") ? SIM_CLIENTS : SIM_NODES))
        return bad(err, name, line, "no such setting, or no list of numbers");
    if (base_str_eqz(w.w[0], "seed"))
        p->seed = (uint64_t)v[0];
    else if (base_str_eqz(w.w[0], "nodes") && v[0] >= 1 && v[0] <= SIM_NODES)
        p->nodes = (int)v[0];
    else if (base_str_eqz(w.w[0], "clients") && v[0] >= 1 && v[0] <= SIM_CLIENTS)
        p->clients = (int)v[0];
    else if (base_str_eqz(w.w[0], "grant"))
        p->grant_s = (int32_t)v[0];
    else if (base_str_eqz(w.w[0], "valid"))
        p->valid_s = (int32_t)v[0];
    else if (base_str_eqz(w.w[0], "lease"))
        for (int i = 0; i < SIM_NODES; i++)
            p->lease_s[i] = (int32_t)v[i];
    else if (base_str_eqz(w.w[0], "ppm"))
        memcpy(p->ppm, v, sizeof p->ppm);
    else if (base_str_eqz(w.w[0], "wall"))
        memcpy(p->wall_off, v, sizeof p->wall_off);
    else if (base_str_eqz(w.w[0], "start"))
        for (int i = 0; i < SIM_CLIENTS; i++)
            p->first[i] = (int)v[i] - 1;
    else if (base_str_eqz(w.w[0], "roams"))
        for (int i = 0; i < SIM_CLIENTS; i++)
            p->roams[i] = v[i] != 0;
    else
        return bad(err, name, line, "no such setting");
    return BASE_OK;
}

static int check(const struct sim_plan *p, const char *name, struct base_err *err)
{
    for (unsigned i = 0; i < p->n_acts; i++)
        if (p->act[i].node >= p->nodes || p->act[i].client >= p->clients)
            return base_err_set(err, BASE_EINVAL, "%s: action %u names a node or client that does not exist",
                                name, i + 1);
    for (int i = 0; i < p->clients; i++)
        if (p->first[i] < 0 || p->first[i] >= p->nodes)
            return base_err_set(err, BASE_EINVAL, "%s: start: client %d has no node", name, i + 1);
    return BASE_OK;
}

int sim_plan_read(struct sim_plan *p, struct base_str text, const char *name, struct base_err *err)
{
    unsigned line = 0;
    size_t i = 0;

    *p = (struct sim_plan){.seed = 1,
                           .nodes = 2,
                           .clients = 1,
                           .lease_s = {30, 30, 30, 30},
                           .grant_s = 30,
                           .valid_s = 300,
                           .faults_end = 60 * BASE_SEC,
                           .end = 1000 * BASE_SEC,
                           .settle = 10 * BASE_SEC};
    (void)base_copy(p->name, sizeof p->name, name);
    while (i < text.len) {
        size_t from = i;
        int rc;

        while (i < text.len && text.ptr[i] != '\n')
            i++;
        rc = read_line(p, (struct base_str){text.ptr + from, i - from}, name, ++line, err);
        if (rc)
            return rc;
        i++;
    }
    return check(p, name, err);
}

/* ---- writing ---- */
static void put_span(struct base_buf *out, const char *before, base_time t)
{
    base_time rest = t % BASE_SEC;
    int digits = 9;

    (void)base_buf_addf(out, "%s%lld", before, (long long)(t / BASE_SEC));
    if (rest) {
        while (rest % 10 == 0) {
            rest /= 10;
            digits--;
        }
        (void)base_buf_addf(out, ".%0*lld", digits, (long long)rest);
    }
    (void)base_buf_addz(out, "s");
}

static void put_list(struct base_buf *out, const char *name, const int64_t *v, int n)
{
    (void)base_buf_addz(out, name);
    for (int i = 0; i < n; i++)
        (void)base_buf_addf(out, " %lld", (long long)v[i]);
    (void)base_buf_addz(out, "\n");
}

int sim_plan_write(struct base_buf *out, const struct sim_plan *p)
{
    int64_t v[SIM_CLIENTS];

    (void)base_buf_addf(out, "seed %llu\nnodes %d\nclients %d\ngrant %d\nvalid %d\n",
                        (unsigned long long)p->seed, p->nodes, p->clients, (int)p->grant_s, (int)p->valid_s);
    for (int i = 0; i < SIM_NODES; i++)
        v[i] = p->lease_s[i];
    put_list(out, "lease", v, SIM_NODES);
    put_list(out, "ppm", p->ppm, SIM_NODES);
    put_list(out, "wall", p->wall_off, SIM_NODES);
    for (int i = 0; i < SIM_CLIENTS; i++)
        v[i] = p->first[i] + 1;
    put_list(out, "start", v, p->clients);
    for (int i = 0; i < SIM_CLIENTS; i++)
        v[i] = p->roams[i];
    put_list(out, "roams", v, p->clients);
    for (unsigned f = 1; f < SIM_F_RATES_END; f++)
        if (p->rate[f])
            (void)base_buf_addf(out, "rate %s %u\n", sim_fault_name((enum sim_fault)f), p->rate[f]);
    for (unsigned i = 0; i < p->n_acts; i++) {
        const struct sim_act *a = &p->act[i];

        put_span(out, "at ", a->at);
        (void)base_buf_addf(out, " %s", sim_fault_name(a->what));
        if (a->client >= 0)
            (void)base_buf_addf(out, " client %d", a->client + 1);
        if (a->node >= 0)
            (void)base_buf_addf(out, " node %d", a->node + 1);
        if (a->target)
            (void)base_buf_addf(out, " target %d", a->target);
        if (a->arg)
            (void)base_buf_addf(out, " arg %lld", (long long)a->arg);
        if (a->span)
            put_span(out, " for ", a->span);
        (void)base_buf_addz(out, "\n");
    }
    put_span(out, "heal ", p->faults_end);
    put_span(out, "\nsettle ", p->settle);
    put_span(out, "\nend ", p->end);
    (void)base_buf_addz(out, "\n");
    return out->failed;
}
