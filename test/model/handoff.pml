/* SPDX-License-Identifier: Apache-2.0
 *
 * handoff.pml - one node, one connector, one open gate: sessions that follow each other (section 11). The kernel's gate
 * cannot tell them apart, so order is the agent's business: control kills the old session's fence, waits until the
 * data thread says that nothing of it is in its hands, and only then lets the next one pass.
 *
 * Control and data are free to stand still anywhere, also data between its last look at the fence and the system call.
 * A fence is a slot in a table; slots are used again. Checked: once a packet of a session has passed, none of an older
 * one does; a killed fence lets nothing pass but what was already behind its last look.
 */
#ifndef SESSIONS
#define SESSIONS 3
#endif
#define SLOTS 2
#define THREADS 2
#define SHUT 0
#define OPEN 1
#define DEAD 2

byte slot[SLOTS + 1]; /* what stands in each slot; index 0 is not used */
bit taken[SLOTS + 1];
byte cur, curslot; /* the session that forwards; 0 none */
byte nxt;          /* the request that waits for its turn */
byte sessions;     /* so many were made */
bit stopping;      /* the old one is being stopped: data was asked */
bit answered;      /* data has said that nothing of it is left */
bit retired;       /* no answer in time: nothing more for this connector */
bit refresh;       /* a deadline worked out before, not yet stored */
byte refreshslot;
byte hand[THREADS], handslot[THREADS]; /* data: the session whose packet it holds, and where its fence is */
bit ready[THREADS];                    /* it has looked again, and is about to send */
bit grace[THREADS];                    /* it was when the fence was killed: that packet may still leave */
byte last;                             /* the newest session of which a packet has passed */

#ifdef NO_RECHECK
#define RECHECKED(t) true
#else
#define RECHECKED(t) (slot[handslot[t]] == OPEN)
#endif
#ifdef NO_BARRIER /* killed is good enough */
#define QUIET true
#else
#define QUIET answered
#endif
#ifdef NO_BARRIER_HANDS /* data answers although a packet is in its hands */
#define EMPTY true
#else
#define EMPTY (hand[0] != cur && hand[1] != cur)
#endif
#ifdef NO_KILL /* shut instead of dead: a late refresh opens it again */
#define KILLED SHUT
#else
#define KILLED DEAD
#endif
#ifdef NO_DEAD
#define MAY_SET true
#else
#define MAY_SET (slot[refreshslot] != DEAD)
#endif
#ifdef NO_SLOT_WAIT /* given back as soon as it is killed */
#define GIVE_EARLY taken[curslot] = 0
#else
#define GIVE_EARLY skip
#endif
#ifdef NO_RETIRE /* no answer: go on without it */
#define UNANSWERED answered = 1
#else
#define UNANSWERED retired = 1; nxt = 0
#endif

inline give()
{
    taken[curslot] = 0;
    cur = 0;
    curslot = 0;
    stopping = 0;
    answered = 0
}

inline kill()
{
    slot[curslot] = KILLED;
    stopping = 1;
    answered = 0;
    grace[0] = (hand[0] == cur && ready[0]);
    grace[1] = (hand[1] == cur && ready[1]);
    GIVE_EARLY
}

inline begin(s)
{
    taken[s] = 1;
    slot[s] = OPEN;
    cur = nxt;
    curslot = s;
    nxt = 0
}

#define DATA(t) \
    :: d_step { hand[t] == 0 && cur > 0 && slot[curslot] == OPEN -> hand[t] = cur; handslot[t] = curslot } \
    :: d_step { hand[t] > 0 && !ready[t] && RECHECKED(t) -> ready[t] = 1 } \
    :: d_step { hand[t] > 0 && !ready[t] && !RECHECKED(t) -> hand[t] = 0; handslot[t] = 0 /* dropped */ } \
    :: d_step { hand[t] > 0 && ready[t] -> \
        assert(hand[t] >= last); \
        assert(slot[handslot[t]] == OPEN || grace[t]); \
        GOAL_SENT(t); \
        last = hand[t]; hand[t] = 0; handslot[t] = 0; ready[t] = 0; grace[t] = 0 }
#ifdef GOAL_HANDOFF
#define GOAL_SENT(t) assert(!(hand[t] == SESSIONS && last == SESSIONS - 1))
#else
#define GOAL_SENT(t) skip
#endif

active proctype node()
{
end:
    do
    /* control: a request, authenticated before it touches anything; a third one is told to come back */
    :: d_step { nxt == 0 && sessions < SESSIONS && !retired -> sessions++; nxt = sessions }
    :: d_step { nxt > 0 && cur > 0 && !stopping -> kill() }
    :: d_step { nxt == 0 && cur > 0 && !stopping -> kill() /* the client is gone */ }
    :: d_step { stopping && QUIET && !retired -> give() }
    :: d_step { stopping && !answered && !retired -> UNANSWERED /* 1 s is over */ }
    :: d_step { stopping && answered && retired -> give() }
    :: d_step { nxt > 0 && cur == 0 && !taken[1] -> begin(1) }
    :: d_step { nxt > 0 && cur == 0 && taken[1] && !taken[2] -> begin(2) }
#ifdef NO_SLOT_WAIT
    :: d_step { nxt > 0 && stopping && answered == 0 && !taken[curslot] -> answered = 0; stopping = 0; cur = 0; begin(curslot) }
#endif
    /* control: a later deadline, worked out and then stored */
    :: d_step { cur > 0 && !stopping && !refresh -> refresh = 1; refreshslot = curslot }
    :: d_step { refresh && MAY_SET && taken[refreshslot] -> slot[refreshslot] = OPEN; refresh = 0; refreshslot = 0 }
    :: d_step { refresh && !(MAY_SET && taken[refreshslot]) -> refresh = 0; refreshslot = 0 }
    DATA(0)
    DATA(1)
    :: d_step { stopping && !answered && EMPTY -> answered = 1 }
#ifdef GOAL_RETIRED
    :: d_step { retired && cur == 0 -> assert(false) }
#endif
    od
}
