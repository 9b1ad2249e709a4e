/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may forward, and until when: fences, barrier, devices that go, a thread that was stopped.
 *
 * "Never after" is exact: every packet carries the time of its sending, and a packet that was sent after a
 * deadline can only be taken in after it. Before each "does not pass" stands a "passes".
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "rig.h"
#include "scenarios.h"

/* Packets both ways for `d`, as fast as the main thread can. */
static void traffic(struct rig *r, unsigned i, base_time d)
{
    base_time until = loop_clock() + d;

    while (loop_clock() < until) {
        for (int k = 0; k < 4; k++) {
            (void)rig_up(r, i, rig_addr(r->flows[i].n), RIG_HOST, 64, 400);
            (void)rig_down(r, rig_addr(r->flows[i].n), 400);
        }
        rig_run(r, BASE_MS / 5);
    }
}

/* Packets sent in [from, to) must not come to client i or to the VPC host. */
static void ban(struct rig *r, unsigned i, base_time from, base_time to)
{
    r->rx.ban_from = r->flows[i].rx.ban_from = from;
    r->rx.ban_to = r->flows[i].rx.ban_to = to;
    r->rx.banned = r->flows[i].rx.banned = 0;
}

static uint64_t banned(const struct rig *r, unsigned i)
{
    return r->rx.banned + r->flows[i].rx.banned;
}

static bool stop(struct rig *r, uint64_t flow)
{
    return agent_data_stop(r->d, flow) == BASE_OK && rig_wait(r, AGENT_REPORT_STOPPED, flow, NULL);
}

static void give_back(struct rig *r, unsigned i)
{
    fence_kill(r->flows[i].slot);
    fence_slot_give(r->slots, r->flows[i].slot);
    r->flows[i].client = dp_client_free(r->flows[i].client);
}

/* ---- fences */
static void nothing_after_the_deadline(struct rig *r)
{
    struct rig_flow *f = &r->flows[0];
    struct agent_data_stats before, s;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 7, 1), "session");
    /* A round in which this process did not run before the deadline says nothing: it does not count. */
    for (int round = 0, counted = 0; counted < 60; round++) {
        NEED(r, round < 600, "only %d of %d rounds had a packet before the deadline", counted, round);
        NEED(r, rig_flows(r, 0), "round %d: open does not pass", round);
        base_time deadline = loop_clock() + 15 * BASE_MS;
        ban(r, 0, deadline, BASE_TIME_NEVER);
        fence_set(f->slot, deadline);
        r->rx.last = f->rx.last = 0;
        traffic(r, 0, 30 * BASE_MS);
        rig_settle(r);
        counted += r->rx.last > 0 && f->rx.last > 0;
        CHECK(r, banned(r, 0) == 0,
              "round %d: %d packets passed that were sent after the deadline, the last %d us late", round,
              (int)banned(r, 0), (int)((r->rx.last - deadline) / BASE_US));
        ban(r, 0, BASE_TIME_NEVER, BASE_TIME_NEVER);
        fence_set(f->slot, loop_clock() + 60 * BASE_SEC); /* renewed: the same session goes on */
    }
    CHECK(r, rig_flows(r, 0), "renewed does not pass");
    /* A packet that is taken in while the fence is shut is not even queued: it must not leave when the fence
     * opens before the next flush. */
    fence_set(f->slot, loop_clock() - 1);
    rig_settle(r);
    agent_data_stats(r->d, &before);
    for (int i = 0; i < 50; i++)
        CHECK(r, rig_down(r, rig_addr(7), 200), "send");
    rig_settle(r);
    agent_data_stats(r->d, &s);
    CHECK(r, s.drop_fence == before.drop_fence + 50 && s.h3.drop_fence == before.h3.drop_fence,
          "dropped when taken in: %d, later: %d", (int)(s.drop_fence - before.drop_fence),
          (int)(s.h3.drop_fence - before.h3.drop_fence));
}

/* Generation after generation, killed while packets flow. */
static void nothing_after_the_kill(struct rig *r)
{
    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    for (int round = 0; round < 60; round++) {
        uint64_t flow = rig_session(r, 0, 7, 1);

        NEED(r, flow, "round %d: session", round);
        NEED(r, rig_flows(r, 0), "round %d: open does not pass", round);
        traffic(r, 0, 5 * BASE_MS);
        fence_kill(r->flows[0].slot);
        ban(r, 0, loop_clock(), BASE_TIME_NEVER);
        traffic(r, 0, 10 * BASE_MS);
        fence_set(r->flows[0].slot, BASE_TIME_NEVER); /* dead for ever */
        traffic(r, 0, 5 * BASE_MS);
        CHECK(r, stop(r, flow), "round %d: no confirmation", round);
        rig_settle(r);
        CHECK(r, banned(r, 0) == 0, "round %d: %d packets passed that were sent after the kill", round,
              (int)banned(r, 0));
        ban(r, 0, BASE_TIME_NEVER, BASE_TIME_NEVER);
        give_back(r, 0);
    }
}

/* Queued while the thread sleeps, taken in after the deadline: the time of taking in counts. */
static void stopped_across_the_deadline(struct rig *r)
{
    struct rig_flow *f = &r->flows[0];

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 7, 1), "session");
    for (int round = 0; round < 10; round++) {
        NEED(r, rig_flows(r, 0), "round %d: open does not pass", round);
        rig_settle(r);
        rig_helper(r, "pause");
        base_time from = loop_clock(), deadline = from + 30 * BASE_MS;
        ban(r, 0, from, BASE_TIME_NEVER);
        if (round % 2)
            fence_set(f->slot, deadline);
        traffic(r, 0, 10 * BASE_MS); /* all of it before the deadline */
        while (loop_clock() < deadline)
            rig_run(r, BASE_MS);
        if (round % 2 == 0)
            fence_set(f->slot, FENCE_CLOSED);
        rig_helper(r, "resume");
        rig_settle(r);
        CHECK(r, banned(r, 0) == 0, "round %d: %d queued packets passed", round, (int)banned(r, 0));
        ban(r, 0, BASE_TIME_NEVER, BASE_TIME_NEVER);
        fence_set(f->slot, loop_clock() + 60 * BASE_SEC);
    }
    CHECK(r, rig_flows(r, 0), "renewed does not pass");
}

/* ---- barrier */
/* The fence is left open on purpose: the barrier alone must stop everything. */
static void barrier(struct rig *r)
{
    struct agent_data_stats stats;
    uint64_t flow, up, down;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, (flow = rig_session(r, 0, 7, 1)) != 0, "session");
    for (int i = 0; i < 50; i++) /* something to be in flight */
        (void)rig_down(r, rig_addr(7), 1200);
    NEED(r, rig_flows(r, 0), "open does not pass");
    CHECK(r, stop(r, flow), "no confirmation");
    rig_run(r, 5 * BASE_MS); /* what is in the client's socket was sent before */
    up = r->rx.n;
    down = r->flows[0].rx.n;
    traffic(r, 0, 100 * BASE_MS);
    rig_settle(r);
    CHECK(r, r->rx.n == up, "%d packets into the VPC after the barrier", (int)(r->rx.n - up));
    CHECK(r, r->flows[0].rx.n == down, "%d packets to the client after the barrier",
          (int)(r->flows[0].rx.n - down));
    /* Over HTTP/2 what the socket still holds can only be taken back with the connection. */
    agent_data_stats(r->d, &stats);
    CHECK(r, !dp_client_ended(r->flows[0].client) || (dp_over_h2() && stats.h2.resets_fence > 0),
          "the barrier ended the stream");
    CHECK(r, stop(r, flow), "asked again");
    CHECK(r, agent_data_close(r->d, flow) == BASE_OK && rig_wait(r, AGENT_REPORT_ENDED, flow, NULL),
          "no end");
    for (int i = 0; i < 200 && !dp_client_ended(r->flows[0].client); i++)
        rig_run(r, 5 * BASE_MS);
    CHECK(r, dp_client_ended(r->flows[0].client), "the client was not told");
    CHECK(r, stop(r, flow), "a flow that has ended");
    CHECK(r, stop(r, 123456), "a flow that never was");
    CHECK(r,
          agent_data_close(r->d, 123456) == BASE_OK &&
              agent_data_refuse(r->d, 123456, 503, "x", 1) == BASE_OK,
          "orders");
    CHECK(r, stop(r, 123457), "the thread lives on");
}

static void one_session_per_prefix(struct rig *r)
{
    uint64_t first, second;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, (first = rig_session(r, 0, 7, 1)) != 0, "session");
    NEED(r, rig_flows(r, 0), "open does not pass");
    /* Control forgets the barrier. */
    CHECK(r, rig_session(r, 1, 7, 1) == 0, "a second session took the prefix");
    CHECK(r, dp_client_status(r->flows[1].client) == 503, "status %d", dp_client_status(r->flows[1].client));
    rig_run(r, 20 * BASE_MS);
    CHECK(r, strstr(dp_client_body(r->flows[1].client), "HandoffInProgress"), "%s",
          dp_client_body(r->flows[1].client));
    CHECK(r, rig_wait(r, AGENT_REPORT_ENDED, 0, NULL), "control is not told");
    CHECK(r, rig_flows(r, 0), "the first one was disturbed");
    give_back(r, 1);
    /* And with it. */
    fence_kill(r->flows[0].slot);
    CHECK(r, stop(r, first), "no confirmation");
    NEED(r, (second = rig_session(r, 1, 7, 1)) != 0, "session after the barrier");
    uint64_t n = r->flows[0].rx.n;
    CHECK(r, rig_flows(r, 1), "the second one does not pass");
    CHECK(r, r->flows[0].rx.n == n, "the first one still gets packets");
    /* The late end of the first one takes nothing away from the second. */
    CHECK(r, agent_data_close(r->d, first) == BASE_OK && rig_wait(r, AGENT_REPORT_ENDED, first, NULL), "end");
    CHECK(r, rig_flows(r, 1), "the end of the old session took the prefix away");
    CHECK(r, second != first, "flow ids");
}

/* What waits in the device when a new generation opens passed the old one's gate: it is not for the new
 * session. */
static void queue_of_the_old_generation(struct rig *r)
{
    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    for (int round = 0; round < 5; round++) {
        uint64_t old = rig_session(r, 0, 7, 1), flow;
        struct agent_admit a;
        union {
            const struct fence_slot *c;
            struct fence_slot *m;
        } slot;

        NEED(r, old && rig_flows(r, 0), "round %d: session", round);
        fence_kill(r->flows[0].slot);
        CHECK(r, stop(r, old), "no confirmation");
        NEED(r, (flow = rig_request(r, 1, "/.well-known/masque/ip/*/*/")) != 0, "request");
        a = rig_order(r, flow, 7, 1);
        slot.c = a.slot;
        r->flows[1].n = 7;
        r->flows[1].slot = slot.m;
        fence_set(slot.m, loop_clock() + 60 * BASE_SEC);
        rig_helper(r, "pause");
        ban(r, 1, loop_clock(), BASE_TIME_NEVER);
        for (int i = 0; i < 40; i++)
            CHECK(r, rig_down(r, rig_addr(7), 300), "send");
        CHECK(r, agent_data_admit(r->d, &a) == BASE_OK, "admit");
        r->rx.ban_to = r->flows[1].rx.ban_to = loop_clock();
        rig_helper(r, "resume");
        rig_settle(r);
        CHECK(r, banned(r, 1) == 0, "round %d: %d packets of the old generation", round, (int)banned(r, 1));
        CHECK(r, rig_flows(r, 1), "round %d: the new one does not pass", round);
        CHECK(r, banned(r, 1) == 0, "round %d: %d packets of the old generation", round, (int)banned(r, 1));
        fence_kill(r->flows[1].slot);
        CHECK(r, stop(r, flow), "no confirmation");
        give_back(r, 0);
        give_back(r, 1);
    }
}

/* ---- the thread was stopped */
static unsigned gaps_seen;
static void gap_closes(struct rig *r, const struct agent_report *gap)
{
    gaps_seen++;
    fence_set(r->flows[0].slot, FENCE_CLOSED); /* as control does until a younger proof */
}

static void gap(struct rig *r)
{
    struct agent_report rep = {0};

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 7, 1), "session");
    NEED(r, rig_flows(r, 0), "open does not pass");
    rig_settle(r);
    r->deaf = true; /* control is stopped as well */
    rig_helper(r, "pause");
    base_time from = loop_clock();
    ban(r, 0, from, BASE_TIME_NEVER);
    traffic(r, 0, 20 * BASE_MS);
    while (loop_clock() < from + 700 * BASE_MS)
        rig_run(r, 10 * BASE_MS);
    rig_helper(r, "resume");
    base_time resumed = loop_clock();
    /* The fence is open all the time; still nothing passes before control has heard of the gap. */
    traffic(r, 0, 100 * BASE_MS);
    CHECK(r, banned(r, 0) == 0, "%d packets passed before the gap was answered", (int)banned(r, 0));
    r->deaf = false;
    r->on_gap = gap_closes;
    CHECK(r, rig_wait(r, AGENT_REPORT_GAP, 0, &rep), "no report");
    CHECK(r, rep.at >= from + 500 * BASE_MS && rep.at <= resumed + 5 * BASE_SEC, "time of the gap");
    traffic(r, 0, 50 * BASE_MS);
    rig_settle(r);
    CHECK(r, banned(r, 0) == 0, "%d packets passed while the fence was shut", (int)banned(r, 0));
    ban(r, 0, BASE_TIME_NEVER, BASE_TIME_NEVER);
    fence_set(r->flows[0].slot, loop_clock() + 60 * BASE_SEC); /* a proof younger than the gap */
    CHECK(r, rig_flows(r, 0), "a younger proof does not help");
    CHECK(r, gaps_seen >= 1, "callback");
    struct agent_data_stats s;
    agent_data_stats(r->d, &s);
    CHECK(r, s.gaps >= 1, "counted");
}

/* Control answers at once and leaves the fence open: still nothing passes that waited through the gap. */
static void gap_answered_at_once(struct rig *r)
{
    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 7, 1), "session");
    for (int round = 0; round < 5; round++) {
        NEED(r, rig_flows(r, 0), "round %d: open does not pass", round);
        rig_settle(r);
        rig_helper(r, "pause");
        base_time from = loop_clock();
        ban(r, 0, from, BASE_TIME_NEVER);
        for (int i = 0; i < 450; i++)
            (void)rig_down(r, rig_addr(7), 100);
        while (loop_clock() < from + 600 * BASE_MS)
            rig_run(r, 10 * BASE_MS);
        r->rx.ban_to = r->flows[0].rx.ban_to = loop_clock();
        rig_helper(r, "resume");
        CHECK(r, rig_wait(r, AGENT_REPORT_GAP, 0, NULL), "round %d: no report", round);
        rig_settle(r);
        CHECK(r, banned(r, 0) == 0, "round %d: %d packets waited through the gap and passed", round,
              (int)banned(r, 0));
    }
}

/* The thread stands still in the middle of an iteration, with a packet in its hands and the fence open. */
static void stopped_with_a_packet(struct rig *r)
{
    struct agent_data_stats before, s;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 7, 1), "session");
    for (int round = 0; round < 4; round++) {
        bool up = round % 2 == 0;

        if (up && !rig_tun_collects()) /* then it is in the kernel already: nothing to hold */
            continue;
        NEED(r, rig_flows(r, 0), "round %d: open does not pass", round);
        rig_settle(r);
        agent_data_stats(r->d, &before);
        ban(r, 0, loop_clock(), BASE_TIME_NEVER);
        rig_stall(up, 700 * BASE_MS);
        CHECK(r, up ? rig_up(r, 0, rig_addr(7), RIG_HOST, 64, 300) : rig_down(r, rig_addr(7), 300), "send");
        CHECK(r, rig_wait(r, AGENT_REPORT_GAP, 0, NULL) && rig_stalled(), "round %d: no report", round);
        r->rx.ban_to = r->flows[0].rx.ban_to = loop_clock();
        rig_settle(r);
        rig_run(r, 20 * BASE_MS);
        agent_data_stats(r->d, &s);
        CHECK(r, banned(r, 0) == 0, "round %d: the packet was held through a gap and passed", round);
        CHECK(r, !up || s.drop_fence > before.drop_fence, "round %d: not counted", round);
    }
    CHECK(r, rig_flows(r, 0), "afterwards nothing passes");
}

/* ---- devices */
static void device_deleted(struct rig *r)
{
    struct agent_report rep = {0};
    uint64_t flow, up;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, (flow = rig_session(r, 0, 7, 1)) != 0, "session");
    NEED(r, rig_flows(r, 0), "open does not pass");
    rig_helper(r, "delete " RIG_DEV);
    CHECK(r, rig_wait(r, AGENT_REPORT_TUN_LOST, 1, &rep), "not noticed");
    CHECK(r, rep.code == BASE_ECLOSED && strstr(rep.detail, RIG_DEV), "%s", rep.detail);
    up = r->rx.n;
    for (int i = 0; i < 20; i++)
        (void)rig_up(r, 0, rig_addr(7), RIG_HOST, 64, 200);
    rig_settle(r);
    CHECK(r, r->rx.n == up, "packets passed without a device");
    /* A new device under a new number: the old session does not move over by itself. */
    rig_helper(r, "make hf00000003");
    NEED(r, rig_open_tun(r, 3, "hf00000003"), "new device");
    for (int i = 0; i < 20; i++)
        (void)rig_up(r, 0, rig_addr(7), RIG_HOST, 64, 200);
    rig_settle(r);
    CHECK(r, r->rx.n == up, "the old session uses the new device");
    fence_kill(r->flows[0].slot);
    CHECK(r, stop(r, flow), "no confirmation");
    give_back(r, 0);
    NEED(r, rig_session(r, 0, 7, 3), "session on the new device");
    CHECK(r, rig_flows(r, 0), "the new session does not pass");
    for (unsigned i = 0; i < r->n_seen; i++)
        CHECK(r, r->seen[i].kind != AGENT_REPORT_TUN_LOST, "lost twice");
}

static void device_closed_and_refused(struct rig *r)
{
    struct agent_report rep = {0};
    uint64_t up;

    CHECK(r, agent_data_tun_open(r->d, 9, "hfffffffff", RIG_TUN_MTU) == BASE_OK, "order");
    NEED(r, rig_wait(r, AGENT_REPORT_TUN, 9, &rep), "no answer");
    CHECK(r, rep.code == BASE_EDENIED && strstr(rep.detail, "does not exist"), "%d %s", rep.code, rep.detail);
    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    CHECK(r,
          agent_data_tun_open(r->d, 1, RIG_DEV2, RIG_TUN_MTU) == BASE_OK &&
              rig_wait(r, AGENT_REPORT_TUN, 1, &rep),
          "order");
    CHECK(r, rep.code == BASE_EEXIST, "a number was given twice: %d %s", rep.code, rep.detail);
    NEED(r, rig_session(r, 0, 7, 1), "session");
    NEED(r, rig_flows(r, 0), "open does not pass");
    CHECK(r, agent_data_tun_close(r->d, 1) == BASE_OK && rig_wait(r, AGENT_REPORT_TUN_CLOSED, 1, NULL),
          "close");
    up = r->rx.n;
    (void)rig_up(r, 0, rig_addr(7), RIG_HOST, 64, 200);
    rig_settle(r);
    CHECK(r, r->rx.n == up, "packets pass through a closed device");
    CHECK(r, agent_data_tun_close(r->d, 1) == BASE_OK && rig_wait(r, AGENT_REPORT_TUN_CLOSED, 1, NULL),
          "close again");
    /* A session for a device that is not there is refused, not left hanging. */
    CHECK(r, rig_session(r, 1, 6, 1) == 0, "admitted without a device");
    CHECK(r, dp_client_status(r->flows[1].client) == 503, "status %d", dp_client_status(r->flows[1].client));
    NEED(r, rig_open_tun(r, 1, RIG_DEV), "the number is free again");
}

/* ---- requests and ends */
static void requests_end(struct rig *r)
{
    struct agent_report rep = {0};
    uint64_t flow;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, (flow = rig_request(r, 0, "/.well-known/masque/ip/*/*/")) != 0, "request");
    CHECK(r,
          agent_data_refuse(r->d, flow, 403, "NoBinding: spiffe://acme/site-1 is in no ConnectorBinding",
                            0) == BASE_OK,
          "order");
    CHECK(r, rig_wait(r, AGENT_REPORT_ENDED, flow, &rep) && rep.end == MASQUE_END_LOCAL, "end %d", rep.end);
    rig_run(r, 50 * BASE_MS);
    CHECK(r, dp_client_status(r->flows[0].client) == 403, "status %d", dp_client_status(r->flows[0].client));
    CHECK(r, strstr(dp_client_body(r->flows[0].client), "NoBinding"), "%s",
          dp_client_body(r->flows[0].client));

    NEED(r, (flow = rig_session(r, 1, 7, 1)) != 0, "session");
    NEED(r, rig_flows(r, 1), "open does not pass");
    r->flows[1].client = dp_client_free(r->flows[1].client);
    CHECK(r, rig_wait(r, AGENT_REPORT_ENDED, flow, &rep) && rep.end == MASQUE_END_CLIENT, "end %d: %s",
          rep.end, rep.detail);
    CHECK(r, stop(r, flow), "the barrier after the end");
    NEED(r, rig_session(r, 2, 7, 1), "the prefix is free after the end");
    CHECK(r, rig_flows(r, 2), "open does not pass");
}

static void drain(struct rig *r)
{
    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 7, 1), "session");
    NEED(r, rig_flows(r, 0), "open does not pass");
    CHECK(r, agent_data_drain(r->d) == BASE_OK, "order");
    CHECK(r, rig_flows(r, 0), "draining ended a session");
    r->flows[0].client = dp_client_free(r->flows[0].client);
    CHECK(r, rig_wait(r, AGENT_REPORT_DRAINED, 0, NULL), "not drained");
}

/* Control does not listen: orders are refused, no answer is lost or passed over. */
static void rings_are_bounded(struct rig *r)
{
    uint64_t sent = 0;
    struct agent_data_stats s;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 7, 1), "session");
    r->deaf = true;
    for (int round = 0; round < 6; round++) {
        while (agent_data_stop(r->d, 1000000 + sent) == BASE_OK)
            sent++;
        rig_run(r, 20 * BASE_MS);
    }
    rig_settle(r);
    agent_data_stats(r->d, &s);
    CHECK(r, s.orders_refused >= 6, "orders refused: %d", (int)s.orders_refused);
    CHECK(r, s.reports_refused > 0, "the ring of reports never was full");
    CHECK(r, sent >= 2048, "sent %d", (int)sent);
    CHECK(r, rig_flows(r, 0), "packets wait for control");
    r->deaf = false;
    for (int i = 0; i < 500 && r->n_stopped < sent; i++)
        rig_run(r, 10 * BASE_MS);
    CHECK(r, r->n_stopped == sent, "%d answers to %d orders", (int)r->n_stopped, (int)sent);
    CHECK(r, r->last_stopped == 1000000 + sent - 1, "out of order");
}

/* A thread that stands still has no room for more orders. What must not be lost is kept, and reaches it once
 * it runs again: the end of a session (its client would go on in a tunnel that leads nowhere), and the drain.
 */
static void orders_are_kept(struct rig *r)
{
    unsigned last = r->threads - 1;
    uint64_t flow;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, (flow = rig_session_on(r, last, 0, 7, 1)) != 0 && rig_flows(r, 0), "session");
    rig_settle(r);
    rig_helper(r, r->threads > 1 ? "pause 1" : "pause");
    CHECK(r, rig_fill_orders(r, last) > 500, "orders");
    CHECK(r, agent_data_close(r->d, flow) == BASE_EFULL, "there was room for a close");
    CHECK(r, agent_data_drain(r->d) == BASE_EFULL, "there was room for a drain");
    CHECK(r, agent_data_tun_close(r->d, 1) == BASE_EFULL, "there was room for a device's end");
    CHECK(r, agent_data_retry(r->d), "there was room after all");
    rig_run(r, 20 * BASE_MS);
    for (unsigned i = 0; i < r->n_seen; i++)
        CHECK(r, r->seen[i].kind != AGENT_REPORT_DRAINED, "drained without that thread");
    rig_helper(r, "resume");
    CHECK(r, rig_wait(r, AGENT_REPORT_ENDED, flow, NULL), "the session was never closed");
    CHECK(r, rig_wait(r, AGENT_REPORT_DRAINED, 0, NULL), "never drained");
    CHECK(r, rig_wait(r, AGENT_REPORT_TUN_CLOSED, 0, NULL), "the device was never closed");
    CHECK(r, !agent_data_retry(r->d), "something is still kept");
}

static void bad_configuration(struct rig *r)
{
    char listen[32], cert[300], key[300], ca[300];
    struct agent_data_config cfg = {.gap = 0};
    struct agent_data *d = NULL;
    struct base_err err = {0};

    (void)snprintf(listen, sizeof listen, "[::1]:%d", agent_data_port(r->d));
    (void)snprintf(cert, sizeof cert, "%s/edge1.crt", r->dir);
    (void)snprintf(key, sizeof key, "%s/edge1.key", r->dir);
    (void)snprintf(ca, sizeof ca, "%s/client-ca.crt", r->dir);
    cfg.h3.listen = listen;
    cfg.h3.cert_file = cert;
    cfg.h3.key_file = key;
    cfg.h3.client_ca_file = "/nowhere/ca.crt";
    CHECK(r, agent_data_new(&d, &cfg, NULL, NULL, &err) < 0 && !d && strstr(err.msg, "/nowhere/ca.crt"), "%s",
          err.msg);
    cfg.h3.client_ca_file = ca;
    CHECK(r, agent_data_new(&d, &cfg, NULL, NULL, &err) == BASE_EIO && !d, "port in use: %s", err.msg);
    CHECK(r, agent_data_reload(r->d) == BASE_OK && stop(r, 1), "reload");
    CHECK(r, agent_data_free(NULL) == NULL, "NULL");
}

/* The fence alone, for the thread sanitizer (Criterion does not run under it). */
struct shared {
    struct fence_slot *slot;
    atomic_bool killed;
    uint64_t payload;
};
static void *reader(void *arg)
{
    struct shared *sh = arg;
    uintptr_t bad = 0;

    while (!atomic_load(&sh->killed))
        bad += fence_check(sh->slot, 1) && sh->payload != 42;
    for (int i = 0; i < 1000; i++)
        bad += fence_check(sh->slot, 1) != NULL;
    return (void *)bad;
}

static void fence_between_threads(struct rig *r)
{
    struct shared sh = {.slot = fence_slot_take(r->slots, 99)};
    pthread_t th;
    void *bad = NULL;

    NEED(r, pthread_create(&th, NULL, reader, &sh) == 0, "thread");
    sh.payload = 42;
    for (int i = 0; i < 20000; i++)
        fence_set(sh.slot, i % 3 ? BASE_SEC + i : FENCE_CLOSED);
    fence_kill(sh.slot);
    atomic_store(&sh.killed, true);
    (void)fence_set(sh.slot, BASE_TIME_NEVER);
    (void)pthread_join(th, &bad);
    CHECK(r, bad == NULL, "%d checks passed that must not", (int)(uintptr_t)bad);
}

const struct scenario dp_authority[] = {
    {"nothing-after-the-deadline", nothing_after_the_deadline, true, {0}, true},
    {"nothing-after-the-kill", nothing_after_the_kill, false, {0}, true},
    {"stopped-across-the-deadline", stopped_across_the_deadline, false, {0}, false},
    {"barrier", barrier, false, {0}, true},
    {"one-session-per-prefix", one_session_per_prefix, false, {0}, true},
    {"queue-of-the-old-generation", queue_of_the_old_generation, false, {0}, true},
    {"gap", gap, false, {0}, true},
    {"gap-answered-at-once", gap_answered_at_once, false, {0}, true},
    {"stopped-with-a-packet", stopped_with_a_packet, false, {0}, false},
    {"device-deleted", device_deleted, false, {0}, true},
    {"device-closed-and-refused", device_closed_and_refused, false, {0}, true},
    {"requests-end", requests_end, false, {0}, false},
    {"drain", drain, false, {0}, true},
    {"rings-are-bounded", rings_are_bounded, false, {0}, true},
    {"orders-are-kept", orders_are_kept, false, {0}, true},
    {"bad-configuration", bad_configuration, false, {0}, false},
    {"fence-between-threads", fence_between_threads, false, {0}, false},
    {NULL, NULL, false, {0}, false},
};
