/* SPDX-License-Identifier: Apache-2.0
 *
 * claim.pml - the kernel gates of one claim: N foundations that follow section 8 of the contract, and agents that
 * write whatever admission lets them write, whenever they like.
 *
 * What an agent knows does not matter here: a write that lands is a change of the row as it stands (every write names
 * uid and resourceVersion), so "an agent changes the row now" covers each write that was sent earlier and lands late.
 * What a foundation knows does: V[n] is its view, any earlier version of the row; it catches up when it likes.
 *
 * Pauses: no action is ever forced, so that each party may stand still for any time between any two of its actions,
 * also with a write on its way (one slot per foundation: lands now, lands late, is lost, its answer is lost). What
 * does not stand still is the kernel's gate: it compares the clock with an absolute deadline at each packet, so it is
 * a condition (OPEN) and no action. Time is discrete; timers are what is left of (or has passed since) an interval
 * on the node's own clock, so there is no horizon. A collection proof that completes now can be as new as the first
 * change of the row that the view does not show: lag[n] is the age of that change.
 *
 * Checked after every step: no two gates are open; no gate is open for an epoch that the row says is closed; none is
 * open on the device of a process that is not the accepted one. Checked when a gate opens: the row's holder is the
 * process whose device it is; the object said so before the kernel did; a kernel never goes back to an older epoch.
 * Configurations set N, EMAX, ... and RELEASE, ...; -DNO_x removes the guard x. The guards are in README.md.
 */
#include "constants.h"

#ifndef N
#define N 2
#endif
#ifndef EMAX
#define EMAX 2
#endif
#ifndef UMAX
#define UMAX 1 /* lives of the object */
#endif
#ifndef PM
#define PM 1 /* processes of an agent, one after the other, the old ones alive */
#endif
#ifndef BM
#define BM 1 /* boots of a node */
#endif
#ifndef TAKERS
#define TAKERS 255 /* bit per node whose agent takes over */
#endif
#ifdef TWIN /* node 2 is another machine of node 0's name */
#define NAME(n) ((n) == 2 -> 0 : (n))
#else
#define NAME(n) (n)
#endif
#define KERNEL(n) ((n) * BM + boot[n]) /* bootID */
#define NOBODY 15
#ifdef GOAL_CONFIRMED /* the second epoch forwards because closure was confirmed, before any time has passed */
#define GOAL gep[i] == 2 && R.cl == 1 && wt[i] == 0
#endif
#ifdef GOAL_WAITED /* because of the wait, while nobody has said anything */
#define GOAL gep[i] == 2 && R.cl == 0
#endif
#ifdef GOAL_LAST /* the last epoch, in the last life */
#define GOAL gep[i] == EMAX && guid[i] + 1 == UMAX
#endif

typedef Row {
    bit ex, rel, del, ac;
    byte uid, ep, h, hp, hb, pn, pb, cl, fin
};
Row R;    /* the truth */
Row V[N]; /* what each foundation knows */
#ifdef STALE
Row S;     /* what an API server's cache shows, which may be behind */
bit sf;    /* that is the newest version */
byte slag; /* age of the first change that it does not show */
#endif

bit seen[N];   /* it has listed the collection since it started */
bit vf[N];     /* the view is the newest version */
byte lag[N];   /* age of the first change that the view does not show */
byte wt[N];    /* since this process first saw (uid, epoch) of the view */
bit dseen[N];  /* it has read the deletion ... */
byte dl[N];    /* ... so long ago */
byte pr[N];    /* what is left of the newest proof of the row in the view; with the gate open: its deadline */
bit gon[N];    /* the kernel's gate has an entry, for ... */
byte guid[N], gep[N], gp[N]; /* object, epoch, and process on whose device packets enter */
byte rec[N * UMAX];  /* pinned: accept record */
byte tomb[N * UMAX]; /* pinned: tombstone */
byte chuid[N], chep[N]; /* closed here: zero, tombstone, withdrawal are done (process memory) */
byte inst[N], acc[N], dev[N]; /* instance epoch; accepted; the epoch whose device there is */
byte boot[N];
byte pboot[N * (PM + 1)]; /* bootID of the kernel on which a process runs */
byte wk[N], wep[N], warg[N]; /* status or finalizer write on its way: kind, value, finalizer */
#ifdef NO_LOCK
byte zrem[N], zuid[N], zep[N], zp[N]; /* a stopped older process with a gate write in its hands */
#endif
byte restarts;
byte top[N * UMAX]; /* only watched: the highest epoch that this kernel has opened */

#define W_NONE 0
#define W_ACCEPT 1
#define W_A 2
#define W_B 3
#define W_C 4
#define W_ADD 5
#define W_DEL 6
#define W_FOREIGN 7

byte i, due; /* scratch: 0 between steps */

#ifdef NO_MIN_EXPIRY
#define OPEN(n) (gon[n])
#else
#define OPEN(n) (gon[n] && pr[n] > 0)
#endif
#ifdef NO_FIN_BOOT
#define FIN(n) (1 << (NAME(n) * BM))
#else
#define FIN(n) (1 << KERNEL(n))
#endif
#ifdef NO_ACCEPT_BOOT
#define MINE(x, n) (x.h == NAME(n))
#else
#define MINE(x, n) (x.h == NAME(n) && x.hb == KERNEL(n))
#endif
#ifdef NO_CONFIRM_BOOT
#define PREVIOUS(x, n) (x.pn == NAME(n))
#else
#define PREVIOUS(x, n) (x.pn == NAME(n) && x.pb == KERNEL(n))
#endif
#define CLOSED_HERE(n, e) (chuid[n] == V[n].uid + 1 && chep[n] >= (e))

inline check()
{
    assert(!(OPEN(0) && OPEN(1)));
#if N > 2
    assert(!(OPEN(0) && OPEN(2)));
    assert(!(OPEN(1) && OPEN(2)));
#endif
    for (i : 0 .. N - 1) {
        assert(!(OPEN(i) && gp[i] != acc[i]));
        assert(!(OPEN(i) && R.ex && guid[i] == R.uid && gep[i] <= R.cl));
#ifdef GOAL /* not a rule: shows that the configuration gets there */
        assert(!(OPEN(i) && (GOAL)));
#endif
    };
    i = 0
}

inline lost(n)
{
    wk[n] = W_NONE;
    wep[n] = 0;
    warg[n] = 0
}

/* the row has changed: a write that was decided on an older version gets 409 */
inline moved()
{
    for (i : 0 .. N - 1) {
        vf[i] = 0;
#ifndef NO_F_CAS
        lost(i)
#else
        skip
#endif
    }
    i = 0;
#ifdef STALE
    sf = 0;
#endif
    if
    :: R.del && R.fin == 0 -> R.ex = 0
    :: else
    fi;
    if
    :: !R.ex -> R.rel = 0; R.del = 0; R.ac = 0; R.ep = 0; R.h = NOBODY; R.hp = 0; R.hb = 0; R.pn = NOBODY; R.pb = 0; R.cl = 0; R.fin = 0
    :: else
    fi
}

inline shut(n)
{
    gon[n] = 0;
    guid[n] = 0;
    gep[n] = 0;
    gp[n] = 0;
    pr[n] = 0
}

inline close(n, u, e)
{
    if
    :: gon[n] && !(guid[n] == (u) && gep[n] > (e)) -> shut(n)
    :: else
    fi;
#ifndef NO_TOMB
    if
    :: tomb[(n) * UMAX + (u)] < (e) -> tomb[(n) * UMAX + (u)] = (e)
    :: else
    fi;
#endif
    chuid[n] = (u) + 1;
    chep[n] = (e)
}

inline blank(n)
{
    V[n].ex = 0; V[n].rel = 0; V[n].del = 0; V[n].ac = 0; V[n].uid = 0; V[n].ep = 0; V[n].h = NOBODY;
    V[n].hp = 0; V[n].hb = 0; V[n].pn = NOBODY; V[n].pb = 0; V[n].cl = 0; V[n].fin = 0
}

/* a new life of the process */
inline forget(n)
{
    blank(n);
    seen[n] = 0; vf[n] = 0; lag[n] = 0; wt[n] = 0; dseen[n] = 0; dl[n] = 0; chuid[n] = 0; chep[n] = 0;
    if
    :: !gon[n] -> pr[n] = 0
    :: else /* that is the kernel's */
    fi
}

inline catch_up(n)
{
    if
    :: !V[n].ex || !R.ex || V[n].uid != R.uid || V[n].ep != R.ep ->
        wt[n] = 0;
        if
        :: !gon[n] -> pr[n] = 0
        :: else /* MUST_SHUT */
        fi
    :: else
    fi;
    if
    :: !R.del || !R.ex || V[n].uid != R.uid -> dseen[n] = 0; dl[n] = 0
    :: else
    fi;
    if
    :: R.ex && R.del -> dseen[n] = 1
    :: else
    fi;
    V[n].ex = R.ex; V[n].rel = R.rel; V[n].del = R.del; V[n].ac = R.ac; V[n].uid = R.uid; V[n].ep = R.ep; V[n].h = R.h;
    V[n].hp = R.hp; V[n].hb = R.hb; V[n].pn = R.pn; V[n].pb = R.pb; V[n].cl = R.cl; V[n].fin = R.fin;
    vf[n] = 1;
    seen[n] = 1;
    lag[n] = 0;
    /* What no selector of this foundation shows, and nothing here is wanted for, need not be told apart. */
    if
    :: V[n].ex && V[n].h != NAME(n) && V[n].pn != NAME(n) && !V[n].del && (V[n].fin & FIN(n)) == 0 -> blank(n)
    :: else
    fi
}

inline fresh_enough(n)
{
    assert(gp[n] == V[n].hp);
    assert(V[n].ac);
    assert(V[n].ep >= top[(n) * UMAX + V[n].uid]);
    top[(n) * UMAX + V[n].uid] = V[n].ep
}

/* ---- what a foundation may do ----------------------------------------------------------------------------------- */
#define REPLACED(n) (V[n].hp < inst[n] && acc[n] > V[n].hp) /* an older process, and its device is gone */
#ifdef SERVICE
#define CAUSE(n) true /* the service may be seen as revoked at any time, and as valid again at any time */
#else
#define CAUSE(n) (V[n].rel || V[n].del || REPLACED(n))
#endif
#define NOT_BACKWARDS(n) (rec[(n) * UMAX + V[n].uid] <= V[n].ep)
#ifdef NO_TOMB_CHECK
#define NOT_TOMBED(n) true
#else
#define NOT_TOMBED(n) (tomb[(n) * UMAX + V[n].uid] < V[n].ep)
#endif
#ifdef NO_ACCEPT_PROCESS
#define PROCESS(n) true
#else
#define PROCESS(n) (V[n].hp == acc[n])
#endif
#ifdef NO_SECOND_DEVICE
#define DEVICE(n) true
#define DEVICE_OF(n) acc[n]
#else
#define DEVICE(n) (dev[n] == acc[n])
#define DEVICE_OF(n) dev[n]
#endif
#define ACCEPTABLE(n) \
    (V[n].ex && MINE(V[n], n) && !V[n].rel && !V[n].del && PROCESS(n) && DEVICE(n) && V[n].cl < V[n].ep && \
     NOT_TOMBED(n) && NOT_BACKWARDS(n))
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
#ifdef NO_CONTIGUOUS /* a confirmation may jump a gap */
#define NEXT(n, e) (V[n].cl < (e))
#else
#define NEXT(n, e) (V[n].cl == (e)-1)
#endif
#ifdef NO_OPEN_GAP /* "somebody closed something" is enough */
#define EARLIER_OVER(n) (V[n].cl + 2 >= V[n].ep || WAITED(n))
#else
#define EARLIER_OVER(n) (V[n].cl + 1 >= V[n].ep || WAITED(n))
#endif
#ifdef NO_ACCEPT_FIRST
#define ACCEPTED(n) true
#else
#define ACCEPTED(n) (V[n].ac)
#endif
#ifdef NO_FINALIZER
#define PROTECTED(n) true
#else
#define PROTECTED(n) ((V[n].fin & FIN(n)) != 0)
#endif
#ifdef NO_CONFIRM_AFTER_CLOSE
#define DONE(n, e) true
#else
#define DONE(n, e) CLOSED_HERE(n, e)
#endif
#ifdef NO_FIN_AFTER_CLOSE
#define FIN_DONE(n) true
#else
#define FIN_DONE(n) (!gon[n] && CLOSED_HERE(n, (V[n].del -> V[n].ep : V[n].ep - 1)))
#endif
#ifdef NO_FIN_WAIT
#define DELETION_WAITED(n) true
#else
#define DELETION_WAITED(n) (dseen[n] && dl[n] >= TAKEOVER_WAIT - SHORT)
#endif

/* The gate as it is has to go: the view names another epoch, or says that this one is over. */
#define MUST_SHUT(n) \
    (gon[n] && (!V[n].ex || V[n].uid != guid[n] || V[n].ep != gep[n] || V[n].rel || V[n].del || V[n].cl >= V[n].ep))

#define DUE_HELD(n) (MINE(V[n], n) && CAUSE(n) && (V[n].cl < V[n].ep || (V[n].fin & FIN(n)) != 0))
#define DUE_LEFT(n) (!MINE(V[n], n) && (V[n].fin & FIN(n)) != 0)
#define DUE_PREVIOUS(n) (PREVIOUS(V[n], n) && V[n].ep - 1 > V[n].cl)

#ifdef NO_F_CAS
#define SENDS(n) (wk[n] == W_NONE)
#else
#define SENDS(n) (wk[n] == W_NONE && vf[n]) /* from an older view: 409 for sure */
#endif

inline send(n, kind, value, arg)
{
    wk[n] = kind;
    wep[n] = value;
    warg[n] = arg
}

#ifdef NO_F_CAS /* uid and resourceVersion are not named: it lands on whatever is there */
#define LANDS(n) (wk[n] != W_NONE && R.ex && wep[n] <= R.ep && wep[n] >= R.cl)
#else
#define LANDS(n) (wk[n] != W_NONE)
#endif

inline land(n)
{
    if
    :: wk[n] == W_ACCEPT -> R.ac = 1
    :: wk[n] == W_A || wk[n] == W_B || wk[n] == W_C -> R.cl = wep[n]
    :: wk[n] == W_ADD -> R.fin = R.fin | warg[n]
    :: wk[n] == W_DEL -> R.fin = R.fin & (255 - warg[n])
    :: else -> R.fin = R.fin & warg[n]
    fi;
    moved()
}

#ifdef NO_PROOF /* a renewal alone moves the deadline */
#define LEFT(n) LEASE
#else
#ifdef NO_PROOF_ANCHOR /* counted from the answer, which came within a tick of the question */
#define LEFT(n) (lag[n] <= 1 -> LEASE : LEASE - lag[n])
#else
#define LEFT(n) (LEASE - lag[n])
#endif
#endif
#define PROVABLE(n) (V[n].ex && MINE(V[n], n) && !V[n].rel && !V[n].del && (!gon[n] || (guid[n] == V[n].uid && gep[n] == V[n].ep)))

#define FOUNDATION(n) \
    :: d_step { !vf[n] -> catch_up(n); check() } \
    :: d_step { PROVABLE(n) && pr[n] < LEFT(n) && lag[n] < LEASE -> pr[n] = LEFT(n); check() } \
    :: d_step { SENDS(n) && ACCEPTABLE(n) && !V[n].ac -> send(n, W_ACCEPT, V[n].cl, 0) } \
    :: d_step { SENDS(n) && ACCEPTABLE(n) && V[n].ac && (V[n].fin & FIN(n)) == 0 -> send(n, W_ADD, V[n].cl, FIN(n)) } \
    :: d_step { !gon[n] && ACCEPTABLE(n) && ACCEPTED(n) && EARLIER_OVER(n) && PROTECTED(n) && pr[n] > 0 -> \
        gon[n] = 1; guid[n] = V[n].uid; gep[n] = V[n].ep; gp[n] = DEVICE_OF(n); fresh_enough(n); rec[(n) * UMAX + V[n].uid] = V[n].ep; check() } \
    :: d_step { MUST_SHUT(n) && seen[n] -> due = guid[n]; i = gep[n]; close(n, due, i); due = 0; i = 0 } \
    :: d_step { V[n].ex && DUE_HELD(n) && !CLOSED_HERE(n, V[n].ep) -> due = V[n].uid; i = V[n].ep; close(n, due, i); due = 0; i = 0 } \
    :: d_step { V[n].ex && DUE_LEFT(n) && !CLOSED_HERE(n, (V[n].del -> V[n].ep : V[n].ep - 1)) -> \
        due = V[n].uid; i = (V[n].del -> V[n].ep : V[n].ep - 1); close(n, due, i); due = 0; i = 0 } \
    :: d_step { V[n].ex && DUE_PREVIOUS(n) && !CLOSED_HERE(n, V[n].ep - 1) -> due = V[n].uid; i = V[n].ep - 1; close(n, due, i); due = 0; i = 0 } \
    :: d_step { SENDS(n) && V[n].ex && MINE(V[n], n) && CAUSE(n) && NEXT(n, V[n].ep) && DONE(n, V[n].ep) && !gon[n] -> \
        send(n, W_A, V[n].ep, 0) } \
    :: d_step { SENDS(n) && V[n].ex && PREVIOUS(V[n], n) && NEXT(n, V[n].ep - 1) && V[n].ep > 1 && DONE(n, V[n].ep - 1) -> \
        send(n, W_B, V[n].ep - 1, 0) } \
    :: d_step { SENDS(n) && V[n].ex && V[n].h == NAME(n) && V[n].cl + 1 < V[n].ep && WAITED(n) -> send(n, W_C, V[n].ep - 1, 0) } \
    :: d_step { SENDS(n) && V[n].ex && (V[n].fin & FIN(n)) != 0 && (!MINE(V[n], n) || V[n].del) && FIN_DONE(n) -> \
        send(n, W_DEL, V[n].cl, FIN(n)) } \
    :: d_step { SENDS(n) && V[n].ex && V[n].del && (V[n].fin & (255 - FIN(n))) != 0 && DELETION_WAITED(n) -> \
        send(n, W_FOREIGN, V[n].cl, FIN(n)) } \
    :: d_step { LANDS(n) -> land(n); lost(n); catch_up(n); check() } \
    :: d_step { LANDS(n) -> land(n); lost(n); check() /* its answer is lost */ } \
    :: d_step { wk[n] != W_NONE -> lost(n) /* refused, or lost */ } \
    LAPSE(n) RESTART(n) REBOOT(n) PROCESS_NEW(n)

#ifdef SERVICE /* what may come back shuts the gate without confirming */
#define LAPSE(n) :: d_step { gon[n] -> shut(n) }
#else
#define LAPSE(n)
#endif

#ifdef STALE /* the list after a start comes from a cache */
#define LIST(n) :: d_step { restarts > 0 && !seen[n] && S.ex -> \
    V[n].ex = S.ex; V[n].rel = S.rel; V[n].del = S.del; V[n].ac = S.ac; V[n].uid = S.uid; V[n].ep = S.ep; V[n].h = S.h; \
    V[n].hp = S.hp; V[n].hb = S.hb; V[n].pn = S.pn; V[n].pb = S.pb; V[n].cl = S.cl; V[n].fin = S.fin; \
    vf[n] = sf; lag[n] = slag; seen[n] = 1; check() }
#define CACHE \
    :: d_step { !sf -> \
    S.ex = R.ex; S.rel = R.rel; S.del = R.del; S.ac = R.ac; S.uid = R.uid; S.ep = R.ep; S.h = R.h; \
    S.hp = R.hp; S.hb = R.hb; S.pn = R.pn; S.pb = R.pb; S.cl = R.cl; S.fin = R.fin; sf = 1; slag = 0 }
#else
#define LIST(n)
#define CACHE
#endif
#ifdef FRESTART
#ifdef NO_LOCK
#define STASH(n) zrem[n] = (gon[n] && vf[n] -> LEASE : 0); zuid[n] = guid[n]; zep[n] = gep[n]; zp[n] = gp[n]
#define ZOMBIE(n) :: d_step { zrem[n] > 0 -> gon[n] = 1; guid[n] = zuid[n]; gep[n] = zep[n]; gp[n] = zp[n]; zp[n] = 0; pr[n] = zrem[n]; zrem[n] = 0; zuid[n] = 0; zep[n] = 0; check() }
#else
#define STASH(n) skip
#define ZOMBIE(n)
#endif
#ifdef EMPTY_MAP /* the pinned map is lost: devices are deleted first, and none is made twice for an epoch */
#ifdef NO_EMPTY_DELETE
#define MAP(n) for (i : 0 .. UMAX - 1) { rec[(n) * UMAX + i] = 0; tomb[(n) * UMAX + i] = 0 }; i = 0
#else
#define MAP(n) shut(n); for (i : 0 .. UMAX - 1) { rec[(n) * UMAX + i] = 0; tomb[(n) * UMAX + i] = 0 }; dev[n] = 0
#endif
#else
#ifdef NO_PIN
#define MAP(n) for (i : 0 .. UMAX - 1) { rec[(n) * UMAX + i] = 0; tomb[(n) * UMAX + i] = 0 }; i = 0
#else
#define MAP(n) skip
#endif
#endif
#define RESTART(n) :: d_step { restarts < FRESTART -> restarts++; STASH(n); forget(n); MAP(n) } ZOMBIE(n) LIST(n)
#else
#define RESTART(n)
#endif

#if BM > 1
#define REBOOT(n) \
    :: d_step { boot[n] + 1 < BM -> \
        boot[n]++; forget(n); shut(n); for (i : 0 .. UMAX - 1) { rec[(n) * UMAX + i] = 0; tomb[(n) * UMAX + i] = 0 }; dev[n] = 0; acc[n] = 0 }
#else
#define REBOOT(n)
#endif

#if PM > 1
#define PROCESS_NEW(n) \
    :: d_step { inst[n] < PM -> inst[n]++; pboot[(n) * (PM + 1) + inst[n]] = KERNEL(n) } \
    :: d_step { acc[n] < inst[n] && pboot[(n) * (PM + 1) + inst[n]] == KERNEL(n) -> /* old gates, then the old device, then the new epoch */ \
        if :: gon[n] -> OLD_GATES(n) :: else fi; acc[n] = inst[n]; dev[n] = inst[n] }
#ifdef NO_OLD_GATES
#define OLD_GATES(n) skip
#else
#define OLD_GATES(n) shut(n)
#endif
#else
#define PROCESS_NEW(n)
#endif

/* ---- what an agent may write ------------------------------------------------------------------------------------ */
inline take(n, p, r)
{
    R.pn = R.h;
    R.pb = R.hb;
    R.ep++;
    R.h = NAME(n);
    R.hp = p;
    R.hb = pboot[(n) * (PM + 1) + (p)];
    R.rel = r;
    R.ac = 0;
    moved()
}

#define TAKEABLE (!R.del)
#ifdef RELEASE
#define RELEASES(n, p) \
    :: d_step { R.ex && !R.rel && R.h == NAME(n) && R.hp == (p) && R.hb == pboot[(n) * (PM + 1) + (p)] -> R.rel = 1; moved(); check() } \
    :: d_step { R.ex && TAKEABLE && R.ep < EMAX && (TAKERS & (1 << (n))) && (p) <= inst[n] -> take(n, p, 1); check() /* closing takeover */ }
#else
#define RELEASES(n, p)
#endif
#if UMAX > 1
#define CREATE(n, p) \
    :: d_step { !R.ex && R.uid + 1 < UMAX && (p) <= inst[n] -> \
        R.ex = 1; R.uid++; R.ep = 1; R.h = NAME(n); R.hp = p; R.hb = pboot[(n) * (PM + 1) + (p)]; R.pn = NOBODY; R.pb = 0; moved(); check() }
#define OPERATOR :: d_step { R.ex && !R.del -> R.del = 1; moved(); check() }
#else
#define CREATE(n, p)
#define OPERATOR
#endif
#define AGENT(n, p) \
    :: d_step { R.ex && TAKEABLE && R.ep < EMAX && (TAKERS & (1 << (n))) && (p) <= inst[n] -> take(n, p, 0); check() } \
    RELEASES(n, p) CREATE(n, p)
#if PM > 1
#define NODE(n) FOUNDATION(n) AGENT(n, 1) AGENT(n, 2)
#else
#define NODE(n) FOUNDATION(n) AGENT(n, 1)
#endif

/* ---- time --------------------------------------------------------------------------------------------------------- */
inline advance(n, by)
{
    pr[n] = (pr[n] > (by) -> pr[n] - (by) : 0);
#ifdef NO_LOCK
    zrem[n] = (zrem[n] > (by) -> zrem[n] - (by) : 0);
#endif
    if
    :: !vf[n] && V[n].ex -> lag[n] = (lag[n] + (by) < LEASE -> lag[n] + (by) : LEASE)
    :: else
    fi;
    if
    :: V[n].ex && V[n].h == NAME(n) && V[n].cl + 1 < V[n].ep -> wt[n] = (wt[n] + (by) < TAKEOVER_WAIT -> wt[n] + (by) : TAKEOVER_WAIT)
    :: else
    fi;
    if
    :: dseen[n] -> dl[n] = (dl[n] + (by) < TAKEOVER_WAIT -> dl[n] + (by) : TAKEOVER_WAIT)
    :: else
    fi
}

active proctype world()
{
    d_step {
        for (i : 0 .. N - 1) {
            forget(i);
            inst[i] = 1;
            acc[i] = 1;
            dev[i] = 1;
            pboot[i * (PM + 1) + 1] = KERNEL(i)
        };
        R.ex = 1;
        R.ep = 1;
        R.h = 0;
        R.hp = 1;
        R.hb = pboot[1];
        R.pn = NOBODY
    };
    do
    NODE(0)
    NODE(1)
#if N > 2
    NODE(2)
#endif
    OPERATOR
    CACHE
    :: d_step {
        true ->
        for (i : 0 .. N - 1) { advance(i, 1) };
#ifdef STALE
        if
        :: !sf && slag < LEASE -> slag++
        :: else
        fi;
#endif
        i = 0
    }
    od
}
