/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a failing plan small: takes actions, rates, nodes' peculiarities and time out of it, one after the
 * other, as long as the same check fails.
 */
#include "sim.h"

#define TRIES_MAX 600

struct shrink {
    struct sim_world *w;
    struct sim_plan best;
    const char *violation;
    unsigned tries;
};

static bool still(struct shrink *s, const struct sim_plan *p)
{
    struct sim_result r;

    if (s->tries >= TRIES_MAX)
        return false;
    s->tries++;
    sim_run(s->w, p, false, &r);
    if (!r.violation || strcmp(r.violation, s->violation) != 0)
        return false;
    s->best = *p;
    return true;
}

static void cut(struct sim_plan *p, unsigned from, unsigned n)
{
    memmove(&p->act[from], &p->act[from + n], (p->n_acts - from - n) * sizeof p->act[0]);
    p->n_acts -= n;
}

static bool actions(struct shrink *s)
{
    bool better = false;

    for (unsigned n = (s->best.n_acts + 1) / 2; n > 0; n /= 2)
        for (unsigned i = 0; i + n <= s->best.n_acts;) {
            struct sim_plan p = s->best;

            cut(&p, i, n);
            if (still(s, &p))
                better = true;
            else
                i += n;
        }
    return better;
}

static bool rates(struct shrink *s)
{
    bool better = false;

    for (unsigned f = 1; f < SIM_F_RATES_END; f++) {
        struct sim_plan p = s->best;

        p.rate[f] = 0;
        better |= s->best.rate[f] && still(s, &p);
    }
    return better;
}

static void settings(struct shrink *s)
{
    struct sim_plan p;

    for (int i = 0; i < SIM_NODES; i++) {
        p = s->best;
        p.ppm[i] = 0;
        if (s->best.ppm[i])
            (void)still(s, &p);
        p = s->best;
        p.wall_off[i] = 0;
        if (s->best.wall_off[i])
            (void)still(s, &p);
    }
    for (int c = s->best.clients - 1; c > 0; c--) {
        bool used = false;

        p = s->best;
        for (unsigned i = 0; i < p.n_acts; i++)
            used |= p.act[i].client >= c;
        p.clients = c;
        if (used || !still(s, &p))
            break;
    }
    for (int i = 0; i < 8; i++) { /* the end of the faults */
        base_time last = s->best.n_acts ? s->best.act[s->best.n_acts - 1].at + BASE_SEC : 5 * BASE_SEC;

        p = s->best;
        p.faults_end = base_time_max(last, p.faults_end * 3 / 4);
        if (p.faults_end >= s->best.faults_end || !still(s, &p))
            break;
    }
}

unsigned sim_shrink(struct sim_world *w, struct sim_plan *plan, const char *violation)
{
    struct shrink s = {.w = w, .best = *plan, .violation = violation};

    for (bool better = true; better;) {
        better = actions(&s);
        better = rates(&s) || better;
    }
    settings(&s);
    (void)actions(&s);
    *plan = s.best;
    return s.tries;
}
