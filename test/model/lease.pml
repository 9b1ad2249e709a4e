/* SPDX-License-Identifier: Apache-2.0
 *
 * lease.pml - one node and one claim: do fence and gate end on time, whatever else is stuck (section 6)?
 *
 * The agent's control thread, its renewals, the foundation and the API server are each free to stand still for ever;
 * renewals are one slot: they land now, land late, are lost, or their answer is. The truth is kept beside what the
 * parties believe, as the age of things: of the send of the newest renewal that landed, of the binding's revocation,
 * of the claim's loss, of the service's end. Checked after every step, for the fence and for the gate: none of them
 * outlives its part of the minimum. -DPART_FENCE and -DPART_GATE look at one of the two each.
 */
#include "constants.h"

/* the truth; ages stop at what matters */
byte renewed;       /* since the send of the newest landed renewal */
bit over;           /* another process has the instance row: no renewal lands any more */
bit revoked, taken; /* binding; claim */
byte since_revoked, since_taken;
byte service; /* what is left of validUntil */

/* a renewal on its way, and what the agent remembers of it */
byte rk;       /* 0 none, 1 sent, 2 landed and the answer on its way */
byte ra;       /* since it was sent */
bit unknown;   /* the answer is lost: reading back decides */
bit unlanded;  /* ... and it did not land */
byte row_age;  /* since the boot time that stands in the row */
bit row_ahead; /* that is ahead of the clock (an agent gone wrong) */

/* the agent: what is left of each part */
byte a_grant, a_renew, a_claim, a_service;
bit fence;
byte lag_b, lag_c; /* age of the binding's and the claim's first unseen change */
bit seen_b, seen_c;
/* the foundation */
byte f_renew, f_claim, f_service;
bit gate;
byte lag_f;
bit seen_f;

#define MINUS(a, b) ((a) > (b) -> (a) - (b) : 0)
#ifdef NO_MIN_GRANT
#define P_GRANT true
#else
#define P_GRANT (a_grant > 0)
#endif
#ifdef NO_MIN_RENEWAL
#define P_RENEW true
#else
#define P_RENEW (a_renew > 0)
#endif
#ifdef NO_MIN_CLAIM
#define P_CLAIM true
#else
#define P_CLAIM (a_claim > 0)
#endif
#ifdef NO_MIN_SERVICE
#define P_SERVICE true
#else
#define P_SERVICE (a_service > 0)
#endif
#define FENCE (fence && P_GRANT && P_RENEW && P_CLAIM && P_SERVICE)
#ifdef NO_GATE_RENEWAL
#define G_RENEW true
#else
#define G_RENEW (f_renew > 0)
#endif
#ifdef NO_GATE_CLAIM
#define G_CLAIM true
#else
#define G_CLAIM (f_claim > 0)
#endif
#ifdef NO_GATE_SERVICE
#define G_SERVICE true
#else
#define G_SERVICE (f_service > 0)
#endif
#define GATE (gate && G_RENEW && G_CLAIM && G_SERVICE)

inline check()
{
    assert(!(FENCE && renewed >= LEASE - GUARD));
    assert(!(FENCE && revoked && since_revoked >= GRANT));
    assert(!(FENCE && taken && since_taken >= LEASE - GUARD));
    assert(!(FENCE && service == 0));
    assert(!(GATE && renewed >= LEASE));
    assert(!(GATE && taken && since_taken >= LEASE));
    assert(!(GATE && service == 0));
#ifdef GOAL_FENCE /* revoked and taken, unseen, and open until the last moment */
    assert(!(FENCE && revoked && taken && since_revoked + 1 == GRANT && since_taken + 1 == LEASE - GUARD));
#endif
#ifdef GOAL_GATE
    assert(!(GATE && taken && since_taken + 1 == LEASE && renewed + 1 == LEASE));
#endif
}

#ifdef NO_RENEW_ANCHOR /* counted from the answer */
#define SENT_AGO 0
#else
#define SENT_AGO ra
#endif
#ifdef NO_GATE_ANCHOR /* counted from when it is seen */
#define STAMP 0
#else
#define STAMP row_age
#endif

#ifdef NO_READ_BACK /* not asked: it will have landed */
#define READ_BACK true
#else
#define READ_BACK (!unlanded && !over)
#endif

#define MAX(a, b) ((a) > (b) -> (a) : (b))
inline confirmed()
{
    a_renew = MAX(a_renew, MINUS(LEASE - GUARD, SENT_AGO));
    ra = 0
}

active proctype node()
{
    d_step {
        service = SERVICE;
#ifdef PART_FENCE
        fence = 1; a_grant = GRANT; a_renew = LEASE - GUARD; a_claim = LEASE - GUARD; a_service = SERVICE;
#endif
#ifdef PART_GATE
        gate = 1; f_renew = LEASE; f_claim = LEASE; f_service = SERVICE;
#endif
        check()
    };
    do
    /* what may change */
    :: d_step { !over -> over = 1 }
    :: d_step { !taken -> taken = 1 }
    :: d_step { service > 0 && service < SERVICE -> service = SERVICE /* the authority moves it on */ }
    /* renewals */
    :: d_step { rk == 0 && !unknown -> rk = 1; ra = 0 }
    :: d_step { rk == 1 && !over -> rk = 2; renewed = ra; row_age = ra; row_ahead = 0; check() }
    :: d_step { rk == 1 -> rk = 0; unknown = 1; unlanded = 1 }
    :: d_step { rk == 2 -> rk = 0; unknown = 1; unlanded = 0 }
#ifdef PART_FENCE
    :: d_step { !revoked -> revoked = 1 }
    :: d_step { rk == 2 -> rk = 0; confirmed(); check() }
    :: d_step { unknown && READ_BACK -> /* the boot time that it sent stands there */ unknown = 0; unlanded = 0; confirmed(); check() }
    :: d_step { unknown && (unlanded || over) -> unknown = 0; unlanded = 0; ra = 0 }
#ifdef NO_READ_NO_EXTEND /* a read that shows the row as mine is taken for a renewal */
    :: d_step { !over && a_renew < LEASE - GUARD -> a_renew = LEASE - GUARD; check() }
#endif
    /* proofs: as new as the first change that is not shown */
#ifdef NO_GRANT_PROOF /* the grant goes on without asking */
    :: d_step { a_grant < GRANT -> a_grant = GRANT; check() }
#else
    :: d_step { !seen_b && a_grant < MINUS(GRANT, lag_b) -> a_grant = MINUS(GRANT, lag_b); check() }
#endif
    :: d_step { !seen_c && a_claim < MINUS(LEASE - GUARD, lag_c) -> a_claim = MINUS(LEASE - GUARD, lag_c); check() }
    :: d_step { a_service != service -> a_service = service; check() }
    :: d_step { revoked && !seen_b -> seen_b = 1; fence = 0 }
    :: d_step { taken && !seen_c -> seen_c = 1; fence = 0 }
#endif
#ifdef PART_GATE
    :: d_step { rk == 2 || unknown -> rk = 0; unknown = 0; unlanded = 0; ra = 0 }
    /* an agent gone wrong stamps a renewal with a time that is still to come */
    :: d_step { !over && !row_ahead -> row_ahead = 1 }
    :: d_step { !seen_f && f_claim < MINUS(LEASE, lag_f) -> f_claim = MINUS(LEASE, lag_f); check() }
    :: d_step { f_service != service -> f_service = service; check() }
    :: d_step { !row_ahead && f_renew < MINUS(LEASE, STAMP) -> f_renew = MINUS(LEASE, STAMP); check() }
#ifdef NO_AHEAD /* a boot time ahead of the own clock is believed */
    :: d_step { row_ahead && f_renew < LEASE + 1 -> f_renew = LEASE + 1; check() }
#endif
    :: d_step { taken && !seen_f -> seen_f = 1; gate = 0 }
#endif
    :: d_step {
        true ->
        renewed = (renewed < LEASE + 1 -> renewed + 1 : renewed);
        row_age = (row_age < LEASE -> row_age + 1 : row_age);
        ra = ((rk > 0 || unknown) && ra < LEASE -> ra + 1 : ra);
        service = MINUS(service, 1);
        since_taken = (taken && since_taken < LEASE -> since_taken + 1 : since_taken);
#ifdef PART_FENCE
        a_grant = MINUS(a_grant, 1); a_renew = MINUS(a_renew, 1); a_claim = MINUS(a_claim, 1); a_service = MINUS(a_service, 1);
        since_revoked = (revoked && since_revoked < GRANT -> since_revoked + 1 : since_revoked);
        lag_b = (revoked && !seen_b && lag_b < GRANT -> lag_b + 1 : lag_b);
        lag_c = (taken && !seen_c && lag_c < LEASE -> lag_c + 1 : lag_c);
#endif
#ifdef PART_GATE
        f_renew = MINUS(f_renew, 1); f_claim = MINUS(f_claim, 1); f_service = MINUS(f_service, 1);
        lag_f = (taken && !seen_f && lag_f < LEASE -> lag_f + 1 : lag_f);
#endif
        check()
    }
    od
}
