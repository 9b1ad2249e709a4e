/* SPDX-License-Identifier: Apache-2.0
 *
 * session.pml - the other line: agents that keep the rules of sections 4 to 7, over foundations that open every gate at
 * once and never end one by time. They only close honestly: a confirmed epoch's gate is zero, for good.
 *
 * A and B are agents; the opportunist is a third taker that takes the row at any moment and may release it at once. An
 * attempt is one slot: it lands now, lands late, is lost, or its answer is late or lost; the agent reads back to know.
 * Pauses: nothing is forced; control may stand still between any two of its actions, while the fence, a word in memory
 * that holds an absolute deadline, is compared with the clock at each packet. As in claim.pml, timers are what is left
 * of an interval and lag is the age of the first change that a view does not show.
 *
 * Checked after every step: no two agents let packets pass. Checked when a write lands: a takeover names the epoch that
 * stands there; a release is of the releaser's own epoch, and its fence is shut.
 */
#include "constants.h"

#define N 2
#ifndef EMAX
#define EMAX 3
#endif
#define THIRD 2

typedef Row {
    bit rel, ac;
    byte ep, h, cl
};
Row R;
Row V[N];
byte cf; /* confirmed: every gate of this epoch and of older ones is zero */

bit vf[N];
byte lag[N];
byte st[N]; /* 0 nothing; 1 sent, outcome unknown; 2 it is mine */
byte me[N]; /* the epoch that it tries for, or holds */
byte ct[N]; /* what is left of the claim proof: the fence's deadline */
byte wt[N]; /* since it first saw its own epoch */
bit fn[N];  /* the fence is set */
byte rq[N]; /* an epoch that it wants to release */
byte sk[N]; /* on its way: a write, or the answer of one that landed */
byte se[N]; /* the epoch that it was decided on */
byte sa[N]; /* since it was sent */
bit sf[N], sold[N]; /* the answer's row is the newest version; the view is newer than the answer */
byte sl[N];         /* age of the first change after it */

#define S_NONE 0
#define S_TAKE 1
#define S_RELEASE 2
#define S_ANSWER 3

byte i;

#ifdef NO_MIN_CLAIM
#define PASS(n) (fn[n] && me[n] > cf)
#else
#define PASS(n) (fn[n] && ct[n] > 0 && me[n] > cf)
#endif
#ifdef NO_NONCE /* the epoch alone says whose write it was */
#define VMINE(n) (V[n].ep == me[n] && !V[n].rel)
#else
#define VMINE(n) (V[n].ep == me[n] && V[n].h == n && !V[n].rel)
#endif

#ifdef GOAL_CONFIRMED
#define GOAL PASS(1) && R.cl == 1 && wt[1] == 0
#endif
#ifdef GOAL_WAITED
#define GOAL PASS(1) && R.cl == 0
#endif
#ifdef GOAL_THIRD /* B follows the opportunist */
#define GOAL PASS(1) && me[1] == 3 && R.cl == 2
#endif

inline check()
{
    assert(!(PASS(0) && PASS(1)));
#ifdef GOAL /* not a rule: shows that the configuration gets there */
    assert(!(GOAL))
#endif
}
inline lost(n) /* refused: what was asked for did not happen */
{
    if
    :: sk[n] == S_TAKE && st[n] == 1 -> st[n] = 0; me[n] = 0; sa[n] = 0
    :: else
    fi;
    if
    :: sk[n] == S_ANSWER -> sf[n] = 0
    :: else -> sk[n] = S_NONE; se[n] = 0
    fi
}

inline moved()
{
    for (i : 0 .. N - 1) {
        vf[i] = 0;
#ifndef NO_CAS
        lost(i)
#else
        if
        :: sk[i] == S_ANSWER -> sf[i] = 0
        :: else
        fi
#endif
    }
    i = 0
}

inline catch_up(n)
{
    V[n].rel = R.rel; V[n].ac = R.ac; V[n].ep = R.ep; V[n].h = R.h; V[n].cl = R.cl;
    vf[n] = 1;
    lag[n] = 0;
    sold[n] = (sk[n] == S_ANSWER)
}

inline stop(n)
{
    fn[n] = 0;
    st[n] = 0;
    me[n] = 0;
    ct[n] = 0;
    wt[n] = 0;
    sa[n] = 0
}

inline answered(n)
{
    sk[n] = S_NONE;
    se[n] = 0;
    sf[n] = 0;
    sold[n] = 0;
    sl[n] = 0
}

#ifdef NO_ANCHOR /* counted from the answer */
#define SINCE(n) 0
#else
#define SINCE(n) sa[n]
#endif
inline mine(n)
{
    st[n] = 2;
    ct[n] = (LEASE - GUARD > SINCE(n) -> LEASE - GUARD - SINCE(n) : 0);
    wt[n] = 0;
    sa[n] = 0
}

#ifdef NO_CAS /* uid and resourceVersion are not named; otherwise moved() drops what is behind */
#define FRESH(n) true
#else
#define FRESH(n) vf[n] /* from an older view: 409 for sure */
#endif
#ifdef NO_PROOF
#define LEFT(n) (LEASE - GUARD)
#else
#define LEFT(n) (LEASE - GUARD > lag[n] -> LEASE - GUARD - lag[n] : 0)
#endif
#ifdef NO_PROOF_ROW /* a proof counts whatever the collection shows */
#define PROVES(n) true
#else
#define PROVES(n) VMINE(n)
#endif
#ifdef NO_WHOLE_WAIT
#define SHORT 1
#else
#define SHORT 0
#endif
#ifdef NO_WAIT
#define WAITED(n) true
#else
#define WAITED(n) (wt[n] >= TAKEOVER_WAIT - SHORT)
#endif
#ifdef NO_OPEN_GAP
#define EARLIER_OVER(n) (V[n].cl + 2 >= me[n] || WAITED(n))
#else
#define EARLIER_OVER(n) (V[n].cl + 1 >= me[n] || WAITED(n))
#endif
#ifdef NO_RELEASE_CHECK /* reads again, and does not look whose it is */
#define RELEASABLE(n) true
#else
#define RELEASABLE(n) (V[n].ep == rq[n] && V[n].h == n && !V[n].rel)
#endif
#ifdef NO_RELEASE_ORDER
#define STOPPED(n) true
#else
#define STOPPED(n) (!fn[n])
#endif
#ifdef NO_UNKNOWN /* no answer counts as success */
#define HOPES(n) (st[n] == 1 && sk[n] == S_NONE)
#else
#define HOPES(n) false
#endif

#define AGENT(n) \
    :: d_step { !vf[n] -> catch_up(n) } \
    :: d_step { st[n] == 0 && sk[n] == S_NONE && rq[n] == 0 && FRESH(n) && V[n].ep > 0 && V[n].ep < EMAX && V[n].h != n -> \
        sk[n] = S_TAKE; se[n] = V[n].ep; st[n] = 1; me[n] = V[n].ep + 1; sa[n] = 0 } \
    :: d_step { sk[n] == S_TAKE -> /* landed; the answer is on its way */ \
        assert(R.ep == se[n]); \
        R.ep = se[n] + 1; R.h = n; R.rel = 0; R.ac = 0; sk[n] = S_NONE; moved(); sk[n] = S_ANSWER; sf[n] = 1; sold[n] = 0; sl[n] = 0; check() } \
    :: d_step { sk[n] == S_ANSWER && !sold[n] -> \
        if \
        :: st[n] == 1 -> V[n].ep = me[n]; V[n].h = n; V[n].rel = 0; V[n].ac = 0; vf[n] = sf[n]; lag[n] = sl[n]; answered(n); mine(n) \
        :: else -> answered(n) \
        fi; check() } \
    :: d_step { sk[n] == S_ANSWER && sold[n] -> answered(n) } \
    :: d_step { sk[n] != S_NONE -> sk[n] = S_NONE; answered(n) /* lost, or its answer: reading back decides */ } \
    :: d_step { HOPES(n) -> V[n].ep = me[n]; V[n].h = n; V[n].rel = 0; mine(n) } \
    :: d_step { st[n] == 1 && sk[n] == S_NONE && V[n].ep >= me[n] && VMINE(n) -> mine(n) } \
    :: d_step { st[n] == 1 && sk[n] == S_NONE && vf[n] && !VMINE(n) -> stop(n) } \
    :: d_step { st[n] == 2 && !VMINE(n) -> stop(n) } \
    :: d_step { st[n] == 2 && PROVES(n) && ct[n] < LEFT(n) -> ct[n] = LEFT(n); check() } \
    :: d_step { st[n] == 2 && VMINE(n) && !fn[n] && rq[n] == 0 && V[n].ac && EARLIER_OVER(n) && ct[n] > 0 -> fn[n] = 1; check() } \
    :: d_step { st[n] == 2 && VMINE(n) && rq[n] == 0 && sk[n] == S_NONE -> rq[n] = me[n]; /* the session ends */ \
        if :: STOPPED(n) :: else -> stop(n) fi } \
    :: d_step { rq[n] > 0 && sk[n] == S_NONE && vf[n] && !RELEASABLE(n) -> rq[n] = 0; stop(n) } \
    :: d_step { rq[n] > 0 && sk[n] == S_NONE && FRESH(n) && RELEASABLE(n) && STOPPED(n) -> sk[n] = S_RELEASE; se[n] = rq[n] } \
    :: d_step { sk[n] == S_RELEASE -> \
        assert(R.ep == se[n] && R.h == n); \
        assert(!fn[n]); \
        R.rel = 1; sk[n] = S_NONE; moved(); rq[n] = 0; stop(n); answered(n); check() }

active proctype world()
{
    d_step {
        R.ep = 1;
        R.h = 0;
        R.ac = 1;
        st[0] = 2;
        me[0] = 1;
        V[0].ep = 1;
        V[0].ac = 1;
        V[1].h = THIRD;
        fn[0] = 1;
        ct[0] = LEASE - GUARD
    };
    do
    AGENT(0)
    AGENT(1)
#ifdef OPPORTUNIST
    :: d_step { R.ep < EMAX -> R.ep++; R.h = THIRD; R.rel = 0; R.ac = 0; moved(); check() }
    :: d_step { R.ep < EMAX -> R.ep++; R.h = THIRD; R.rel = 1; R.ac = 0; moved(); check() }
    :: d_step { R.h == THIRD && !R.rel -> R.rel = 1; moved(); check() }
#endif
    /* foundations: accept at once; close honestly */
    :: d_step { !R.ac && !R.rel -> R.ac = 1; moved(); check() }
    :: d_step { R.cl + 2 == R.ep -> R.cl = R.ep - 1; cf = R.cl; moved(); check() }
    :: d_step { R.rel && R.cl + 1 == R.ep -> R.cl = R.ep; cf = R.cl; moved(); check() }
    :: d_step {
        true ->
        for (i : 0 .. N - 1) {
            ct[i] = (ct[i] > 0 -> ct[i] - 1 : 0);
            if
            :: st[i] == 2 && V[i].cl + 1 < me[i] && wt[i] < TAKEOVER_WAIT -> wt[i]++
            :: else
            fi;
            if
            :: st[i] == 1 && sa[i] < LEASE -> sa[i]++
            :: else
            fi;
            if
            :: !vf[i] && lag[i] < LEASE -> lag[i]++
            :: else
            fi;
            if
            :: sk[i] == S_ANSWER && !sf[i] && sl[i] < LEASE -> sl[i]++
            :: else
            fi
        };
        i = 0
    }
    od
}
