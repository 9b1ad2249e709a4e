/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.pml - the wait W with the real figures and clocks that are wrong: does the old gate end before the new one opens?
 *
 * Node A holds the claim and never hears of the takeover; B takes it over and waits for W on its own clock. It begins at
 * the commit with a proof made at that very moment: any earlier proof leaves less. The unit
 * is the gate lag (constants.h), so lease, wait, guard and lag are the product's own, not a picture of them. The clocks'
 * rate error is a lead of 0..K units: in each unit of real time a clock goes on by none, one or two, so that each of its
 * measures of an interval is wrong by up to K, K being the rate bound over W. G is what a gate may need from its
 * deadline until it drops.
 */
#include "constants.h"

byte pr = LEASE;         /* A: what is left of its gate's deadline, on its clock */
byte ct = LEASE - GUARD; /* A: of its agent's fence, with the guard */
byte late;               /* ... and of the lag after the deadline */
byte lag;                /* on A's clock, since the takeover was committed */
byte wt;                 /* on B's clock, since B saw it */
bit seen;                /* B has read its own epoch */
bit open;                /* B's gate */
byte leada = K, leadb; /* at the commit: as bad as may be */

#ifdef NO_MARGIN /* the lease, and nothing for clocks and lag */
#define ENOUGH LEASE
#else
#ifdef NO_ROW_LEASE /* from the taker's own lease instead of the row's largest */
#define ENOUGH WAIT_OWN
#else
#ifdef NO_WHOLE_WAIT /* one unit below what clocks and lag can use up */
#define ENOUGH (LEASE + GATE_LAG + 2 * K - 1)
#else
#define ENOUGH TAKEOVER_WAIT
#endif
#endif
#endif
#ifdef NO_PROOF_ANCHOR /* counted from the answer, up to ten units after the question */
#define LEFT(l) (lag <= 10 -> (l) : (l) - lag)
#else
#define LEFT(l) ((l) - lag)
#endif
#ifdef NO_WAIT_AFTER_COMMIT /* counted from the question, up to ten units before the commit */
#define BEGINS 10
#else
#define BEGINS 0
#endif

inline check()
{
    assert(!(open && (pr > 0 || late > 0)));
    assert(!(open && ct > 0));
#ifdef GOAL_OPEN
    assert(!open);
#endif
}

#define TICK(a, b) \
    :: d_step { leada + (a) >= 1 && leada + (a) - 1 <= K && leadb + (b) >= 1 && leadb + (b) - 1 <= K && !open -> \
        leada = leada + (a) - 1; \
        leadb = leadb + (b) - 1; \
        late = (pr > 0 && pr <= (a) -> GATE_LAG : (late > 0 -> late - 1 : 0)); \
        pr = (pr > (a) -> pr - (a) : 0); \
        ct = (ct > (a) -> ct - (a) : 0); \
        lag = (lag + (a) < LEASE -> lag + (a) : LEASE); \
        wt = (seen -> (wt + (b) < ENOUGH -> wt + (b) : ENOUGH) : 0); \
        check() }
active proctype world()
{
end:
    do
    :: d_step { pr < LEFT(LEASE) -> pr = LEFT(LEASE); late = 0; check() }
    :: d_step { ct < (LEFT(LEASE) > GUARD -> LEFT(LEASE) - GUARD : 0) -> ct = LEFT(LEASE) - GUARD; check() }
    :: d_step { !seen -> seen = 1; wt = BEGINS }
    :: d_step { seen && !open && wt >= ENOUGH -> open = 1; check() }
    TICK(0, 0) TICK(0, 1) TICK(0, 2) TICK(1, 0) TICK(1, 1) TICK(1, 2) TICK(2, 0) TICK(2, 1) TICK(2, 2)
    od
}
