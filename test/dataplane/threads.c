/* SPDX-License-Identifier: Apache-2.0
 *
 * Two data threads: what comes to one and belongs to the other, a connector that moves between them, and one
 * of them stopped while the other works on.
 */
#include <dirent.h>
#include <sys/resource.h>

#include "rig.h"
#include "scenarios.h"

static struct agent_data_stats stats(struct rig *r)
{
    struct agent_data_stats s;

    agent_data_stats(r->d, &s);
    return s;
}

static void give_back(struct rig *r, unsigned i)
{
    fence_kill(r->flows[i].slot);
    fence_slot_give(r->slots, r->flows[i].slot);
    r->flows[i].client = dp_client_free(r->flows[i].client);
}

static bool stop(struct rig *r, uint64_t flow)
{
    return agent_data_stop(r->d, flow) == BASE_OK && rig_wait(r, AGENT_REPORT_STOPPED, flow, NULL);
}

static void ban(struct rig_rx *rx, base_time from, base_time to)
{
    rx->ban_from = from;
    rx->ban_to = to;
    rx->banned = 0;
}

/* Packets of many flows out of the VPC, none of which was ever answered: the kernel spreads them over both
 * queues as it likes, and each comes to its connector. */
static void carried(struct rig *r)
{
    enum { ROUNDS = 100 };

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session_on(r, 0, 0, 2, 1) && rig_session_on(r, 1, 1, 3, 1), "a session on each thread");
    rig_settle(r);
    for (unsigned i = 0; i < ROUNDS; i++) {
        /* The port is a part of what the kernel spreads by. */
        CHECK(r, rig_down_from(r, rig_addr(2), 400, (uint16_t)(20000 + i)), "send");
        CHECK(r, rig_down_from(r, rig_addr(3), 400, (uint16_t)(20000 + i)), "send");
        rig_run(r, BASE_MS / 2);
    }
    rig_settle(r);
    CHECK(r, r->flows[0].rx.n == ROUNDS, "%d came", (int)r->flows[0].rx.n);
    CHECK(r, r->flows[1].rx.n == ROUNDS, "%d came", (int)r->flows[1].rx.n);
    CHECK(r, stats(r).carried > 10, "%d were carried: nothing was tested", (int)stats(r).carried);
    CHECK(r, stats(r).carried < 2 * ROUNDS - 10, "%d were carried", (int)stats(r).carried);
    CHECK(r, stats(r).drop_carried == 0, "%d were lost", (int)stats(r).drop_carried);
    NEED(r, rig_flows(r, 0) && rig_flows(r, 1), "both ways");
}

/* The first packets to a new session, out of whichever queue: none is taken for an older session's. */
static void first_packets(struct rig *r)
{
    enum { PACKETS = 20 };

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    for (unsigned k = 0; k < 4; k++) {
        uint64_t flow = rig_session_on(r, k % 2, 0, 7, 1);

        NEED(r, flow != 0, "session %u", k);
        for (unsigned i = 0; i < PACKETS; i++)
            CHECK(r, rig_down_from(r, rig_addr(7), 300, (uint16_t)(24000 + i)), "send");
        rig_settle(r);
        CHECK(r, r->flows[0].rx.n == PACKETS, "session %u: %d of %d came", k, (int)r->flows[0].rx.n, PACKETS);
        fence_kill(r->flows[0].slot);
        CHECK(r, stop(r, flow), "no confirmation");
        give_back(r, 0);
        r->n_seen = 0;
    }
}

/* A connector comes again and lands on the other thread, forth and back. */
static void moves(struct rig *r)
{
    uint64_t flow, next;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, (flow = rig_session_on(r, 0, 0, 7, 1)) != 0, "session");
    for (unsigned k = 0; k < 4; k++) {
        unsigned now = k % 2, then = 1 - now;
        struct rig_flow *to = &r->flows[then];

        NEED(r, rig_flows(r, now), "round %u: open does not pass", k);
        /* Control forgets the barrier: the other thread does not take the prefix. */
        CHECK(r, rig_session_on(r, then, then, 7, 1) == 0, "round %u: a second session took the prefix", k);
        CHECK(r, dp_client_status(to->client) == 503, "status %d", dp_client_status(to->client));
        rig_run(r, 20 * BASE_MS);
        CHECK(r, strstr(dp_client_body(to->client), "HandoffInProgress"), "%s", dp_client_body(to->client));
        CHECK(r, rig_flows(r, now), "round %u: the first one was disturbed", k);
        give_back(r, then);
        fence_kill(r->flows[now].slot);
        CHECK(r, stop(r, flow), "no confirmation");
        NEED(r, (next = rig_session_on(r, then, then, 7, 1)) != 0, "round %u: session after the barrier", k);
        uint64_t n = r->flows[now].rx.n;
        CHECK(r, rig_flows(r, then), "round %u: the second one does not pass", k);
        CHECK(r, r->flows[now].rx.n == n, "round %u: the first one still gets packets", k);
        CHECK(r, agent_data_close(r->d, flow) == BASE_OK && rig_wait(r, AGENT_REPORT_ENDED, flow, NULL),
              "end");
        CHECK(r, rig_flows(r, then), "round %u: the end of the old session took the prefix away", k);
        give_back(r, now);
        flow = next;
    }
}

/* What waits in the other thread's queue when a new generation opens is not for it: the new session is not
 * admitted before that thread has read its queue. It stands still for less than the gap, so that no rule but
 * this one applies. */
static void other_queue_of_the_old_generation(struct rig *r)
{
    unsigned tried = 0;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    for (int round = 0; round < 20 && tried < 5; round++) {
        uint64_t old = rig_session_on(r, 1, 0, 7, 1), flow;
        struct rig_flow *f = &r->flows[1];
        struct agent_admit a;

        NEED(r, old && rig_flows(r, 0), "round %d: session", round);
        fence_kill(r->flows[0].slot);
        CHECK(r, stop(r, old), "no confirmation");
        NEED(r, (flow = rig_request_on(r, 0, 1)) != 0, "round %d: request", round);
        a = rig_prepare(r, 1, flow, 7, 1);
        rig_settle(r);
        rig_helper(r, "pause 1");
        base_time from = loop_clock();
        for (unsigned i = 0; i < 40; i++) /* to both queues */
            CHECK(r, rig_down_from(r, rig_addr(7), 300, (uint16_t)(21000 + i)), "send");
        ban(&f->rx, from, loop_clock());
        CHECK(r, agent_data_admit(r->d, &a) == BASE_OK, "admit");
        rig_run(r, 50 * BASE_MS);
        if (loop_clock() < from + 400 * BASE_MS) { /* else the machine is too busy: once more */
            tried++;
            CHECK(r, dp_client_status(f->client) == 0, "round %d: it did not wait", round);
        }
        rig_helper(r, "resume");
        for (base_time until = loop_clock() + 5 * BASE_SEC;
             dp_client_status(f->client) == 0 && loop_clock() < until;)
            rig_run(r, BASE_MS);
        NEED(r, dp_client_status(f->client) == 200, "round %d: the new one is not admitted", round);
        rig_settle(r);
        CHECK(r, rig_flows(r, 1), "round %d: the new one does not pass", round);
        CHECK(r, f->rx.banned == 0, "round %d: %d packets of the old generation", round, (int)f->rx.banned);
        fence_kill(f->slot);
        CHECK(r, stop(r, flow), "no confirmation");
        give_back(r, 0);
        give_back(r, 1);
        r->n_seen = 0;
    }
    CHECK(r, tried > 0, "nothing was tested");
}

/* A session that ends, or is stopped, while it waits for the other thread: its slot may be another's by then. */
static void stopped_while_it_waits(struct rig *r)
{
    uint64_t flow;
    struct agent_admit a;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    for (int round = 0; round < 4; round++) {
        NEED(r, (flow = rig_request_on(r, 0, 0)) != 0, "request");
        a = rig_prepare(r, 0, flow, 7, 1);
        rig_settle(r);
        rig_helper(r, "pause 1");
        CHECK(r, agent_data_admit(r->d, &a) == BASE_OK, "admit");
        fence_kill(r->flows[0].slot);
        CHECK(r, stop(r, flow), "no confirmation");
        if (round % 2)
            CHECK(r, agent_data_close(r->d, flow) == BASE_OK && rig_wait(r, AGENT_REPORT_ENDED, flow, NULL),
                  "no end");
        fence_slot_give(r->slots, r->flows[0].slot);
        rig_helper(r, "resume");
        rig_settle(r);
        rig_run(r, 20 * BASE_MS);
        CHECK(r, dp_client_status(r->flows[0].client) != 200, "round %d: it was admitted", round);
        /* What it is told is control's to say. */
        CHECK(r, round % 2 || dp_client_status(r->flows[0].client) == 0, "round %d: status %d", round,
              dp_client_status(r->flows[0].client));
        r->flows[0].client = dp_client_free(r->flows[0].client);
        r->n_seen = 0;
    }
    NEED(r, rig_session(r, 0, 7, 1) && rig_flows(r, 0), "a session after that");
}

/* One thread stands still: the other's sessions pass, and move among themselves; its own get no answer to
 * their barrier (control retires such a connector, and only that one), and nothing of them passes. Once it
 * runs again it throws away what waited, tells of the gap, and answers. */
static void one_stands_still(struct rig *r)
{
    uint64_t moved, still, next;
    struct agent_report rep = {0};

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, (moved = rig_session_on(r, 0, 0, 2, 1)) && (still = rig_session_on(r, 1, 1, 3, 1)), "sessions");
    NEED(r, rig_flows(r, 0) && rig_flows(r, 1), "open does not pass");
    NEED(r, (next = rig_request_on(r, 0, 2)) != 0, "a request");
    rig_settle(r);
    r->n_seen = 0;
    rig_helper(r, "pause 1");
    base_time from = loop_clock();
    ban(&r->flows[1].rx, from, BASE_TIME_NEVER);
    ban(&r->rx, BASE_TIME_NEVER, BASE_TIME_NEVER);
    CHECK(r, agent_data_stop(r->d, still) == BASE_OK, "the order is taken");
    for (unsigned i = 0; i < 40; i++)
        (void)rig_down_from(r, rig_addr(3), 300, (uint16_t)(22000 + i));
    CHECK(r, rig_flows(r, 0), "the other thread's session does not pass");
    fence_kill(r->flows[0].slot);
    CHECK(r, stop(r, moved), "the other thread's barrier");
    /* Not even a new session waits for it longer than the gap, after which it throws away what it has. */
    CHECK(r, rig_admit(r, 2, next, 4, 1) != 0, "a new session on the other thread");
    CHECK(r, loop_clock() > from + 390 * BASE_MS, "it did not wait for the gap");
    while (loop_clock() < from + 1100 * BASE_MS)
        rig_run(r, 5 * BASE_MS);
    for (unsigned i = 0; i < r->n_seen; i++)
        CHECK(r, r->seen[i].kind != AGENT_REPORT_STOPPED, "who stands still has answered");
    CHECK(r, loop_clock() - agent_data_heartbeat(r->d) > BASE_SEC, "the heartbeat hides it");
    r->flows[1].rx.ban_to = loop_clock();
    rig_helper(r, "resume");
    CHECK(r, rig_wait(r, AGENT_REPORT_GAP, 0, &rep), "no gap");
    CHECK(r, rep.at >= from + 500 * BASE_MS, "time of the gap");
    CHECK(r, rig_wait(r, AGENT_REPORT_STOPPED, still, NULL), "no answer afterwards");
    rig_settle(r);
    CHECK(r, r->flows[1].rx.banned == 0, "%d packets waited and passed", (int)r->flows[1].rx.banned);
    give_back(r, 0);
    NEED(r, rig_session(r, 0, 2, 1) != 0 && rig_flows(r, 0), "a session after that");
}

/* The open session's packets that waited while its thread stood still: carried there, and thrown away, also
 * those that came shortly before it ran again. */
static void gap_and_what_was_carried(struct rig *r)
{
    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session_on(r, 1, 0, 7, 1), "session");
    for (int round = 0; round < 3; round++) {
        NEED(r, rig_flows(r, 0), "round %d: open does not pass", round);
        rig_settle(r);
        uint64_t before = stats(r).carried;
        rig_helper(r, "pause 1");
        base_time from = loop_clock();
        ban(&r->flows[0].rx, from, BASE_TIME_NEVER);
        for (unsigned i = 0; i < 60; i++)
            (void)rig_down_from(r, rig_addr(7), 300, (uint16_t)(23000 + i));
        while (loop_clock() < from + 550 * BASE_MS)
            rig_run(r, 10 * BASE_MS);
        for (unsigned i = 0; i < 60; i++)
            (void)rig_down_from(r, rig_addr(7), 300, (uint16_t)(23000 + i));
        while (loop_clock() < from + 650 * BASE_MS)
            rig_run(r, 10 * BASE_MS);
        r->flows[0].rx.ban_to = loop_clock();
        CHECK(r, stats(r).carried > before, "round %d: nothing was carried", round);
        rig_helper(r, "resume");
        CHECK(r, rig_wait(r, AGENT_REPORT_GAP, 0, NULL), "round %d: no report", round);
        rig_settle(r);
        CHECK(r, r->flows[0].rx.banned == 0, "round %d: %d packets waited through the gap and passed", round,
              (int)r->flows[0].rx.banned);
    }
}

/* A thread that stands still just as it hands over what it has read from its queue (its clock was asked
 * before): longer than the gap, and nothing of that arrives. */
static void posted_late(struct rig *r)
{
    enum { PACKETS = 40 };

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session_on(r, 0, 0, 7, 1) && rig_flows(r, 0), "session");
    for (int round = 0; round < 2; round++) {
        rig_settle(r);
        uint64_t before = r->flows[0].rx.n, carried = stats(r).carried, late = stats(r).drop_carried;
        base_time to = loop_clock() + 5 * BASE_SEC;

        rig_stall_post(700 * BASE_MS);
        for (unsigned i = 0; i < PACKETS; i++)
            CHECK(r, rig_down_from(r, rig_addr(7), 300, (uint16_t)(25000 + i)), "send");
        CHECK(r, rig_wait(r, AGENT_REPORT_GAP, 0, NULL), "round %d: no gap", round);
        while (r->flows[0].rx.n == before && loop_clock() < to)
            rig_run(r, BASE_MS);
        rig_settle(r);
        carried = stats(r).carried - carried;
        CHECK(r, carried > 0, "round %d: nothing was carried", round);
        /* It may have been a single one, if its thread was that fast; the rest of its queue is thrown away. */
        CHECK(r, stats(r).drop_carried > late, "round %d: %d were carried, and not dropped", round,
              (int)carried);
        CHECK(r, r->flows[0].rx.n <= before + PACKETS - carried,
              "round %d: %d of %d came, %d of them had been carried", round, (int)(r->flows[0].rx.n - before),
              PACKETS, (int)carried);
        NEED(r, rig_flows(r, 0), "round %d: a session after that", round);
    }
}

/* A letter for a session that ended meanwhile, to the thread where the next one with this prefix opens. The
 * thread that posts it has read its queues when it was asked to, all in time; the letter comes when the other
 * one has just looked into its mail. */
static void letter_for_the_session_before(struct rig *r)
{
    uint64_t flow, next;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    for (int round = 0; round < 4; round++) {
        NEED(r, (flow = rig_session_on(r, 0, 0, 7, 1)) != 0 && rig_flows(r, 0), "session");
        NEED(r, (next = rig_request_on(r, 0, 1)) != 0, "request");
        rig_settle(r);
        uint64_t carried = stats(r).carried;
        rig_stall_post(150 * BASE_MS);
        base_time from = loop_clock();
        for (unsigned i = 0; i < 40; i++)
            CHECK(r, rig_down_from(r, rig_addr(7), 300, (uint16_t)(26000 + i)), "send");
        base_time to = loop_clock();
        rig_run(r, 10 * BASE_MS);
        fence_kill(r->flows[0].slot);
        CHECK(r, stop(r, flow), "no confirmation");
        rig_stall_admit(250 * BASE_MS);
        ban(&r->flows[1].rx, from, to);
        NEED(r, rig_admit(r, 1, next, 7, 1), "the next session");
        rig_settle(r);
        CHECK(r, stats(r).carried > carried, "round %d: nothing was carried", round);
        CHECK(r, r->flows[1].rx.banned == 0, "round %d: %d packets of the session before", round,
              (int)r->flows[1].rx.banned);
        NEED(r, rig_flows(r, 1), "round %d: the next session passes", round);
        fence_kill(r->flows[1].slot);
        CHECK(r, stop(r, next), "no confirmation");
        give_back(r, 0);
        give_back(r, 1);
        r->n_seen = 0;
        rig_stall_post(0);
        rig_stall_admit(0);
    }
}

static unsigned entries(const char *dir)
{
    unsigned n = 0;
    DIR *d = opendir(dir);

    while (d && readdir(d))
        n++;
    if (d)
        (void)closedir(d);
    return n;
}

/* When the second thread, or the third, cannot be had, nothing is left of the first. */
static void all_threads_or_none(struct rig *r)
{
    char cert[300], key[300], ca[300];
    struct agent_data_config cfg = {.threads = 3, .http2 = true};
    struct rlimit old, few;
    unsigned fds, tasks, tried = 0;
    struct agent_data *d = NULL;
    struct base_err err;

    (void)snprintf(cert, sizeof cert, "%s/edge1.crt", r->dir);
    (void)snprintf(key, sizeof key, "%s/edge1.key", r->dir);
    (void)snprintf(ca, sizeof ca, "%s/client-ca.crt", r->dir);
    cfg.h3.listen = "[::1]:0";
    cfg.h3.cert_file = cert;
    cfg.h3.key_file = key;
    cfg.h3.client_ca_file = ca;
    fds = entries("/proc/self/fd");
    tasks = entries("/proc/self/task");
    for (unsigned i = 1; i <= 3; i++) {
        char which[40];

        (void)snprintf(which, sizeof which, "data thread %u of 3", i);
        rig_fail_thread(i);
        err = (struct base_err){0};
        CHECK(r, agent_data_new(&d, &cfg, NULL, NULL, &err) == BASE_EIO && !d, "thread %u", i);
        CHECK(r, strstr(err.msg, which) && strstr(err.msg, "data.threads"), "%s", err.msg);
        CHECK(r, entries("/proc/self/fd") == fds && entries("/proc/self/task") == tasks,
              "thread %u: %d descriptors, %d tasks more", i, (int)(entries("/proc/self/fd") - fds),
              (int)(entries("/proc/self/task") - tasks));
    }
    rig_fail_thread(0);
    NEED(r, getrlimit(RLIMIT_NOFILE, &old) == 0, "limit");
    for (few = old, few.rlim_cur = fds; few.rlim_cur < fds + 200; few.rlim_cur++) {
        err = (struct base_err){0};
        NEED(r, setrlimit(RLIMIT_NOFILE, &few) == 0, "limit");
        int rc = agent_data_new(&d, &cfg, NULL, NULL, &err);
        NEED(r, setrlimit(RLIMIT_NOFILE, &old) == 0, "limit");
        if (rc == BASE_OK)
            break;
        tried++;
        CHECK(r, !d && err.msg[0], "%d descriptors: code %d", (int)few.rlim_cur, rc);
        CHECK(r, entries("/proc/self/fd") == fds && entries("/proc/self/task") == tasks, "%d descriptors: %s",
              (int)few.rlim_cur, err.msg);
    }
    CHECK(r, tried > 10, "%u limits were tried", tried);
    NEED(r, d != NULL, "never enough descriptors: %s", err.msg);
    d = agent_data_free(d);
    CHECK(r, entries("/proc/self/fd") == fds && entries("/proc/self/task") == tasks, "after the end");
}

const struct scenario dp_threads[] = {
    {"carried", carried, false, {0}, true},
    {"first-packets", first_packets, false, {0}, true},
    {"moves", moves, false, {0}, true},
    {"other-queue-of-the-old-generation", other_queue_of_the_old_generation, false, {0}, true},
    {"stopped-while-it-waits", stopped_while_it_waits, false, {0}, true},
    {"one-stands-still", one_stands_still, false, {0}, true},
    {"gap-and-what-was-carried", gap_and_what_was_carried, false, {0}, true},
    {"posted-late", posted_late, true, {0}, true},
    {"letter-for-the-session-before", letter_for_the_session_before, true, {0}, true},
    {"all-threads-or-none", all_threads_or_none, true, {0}, true},
    {NULL, NULL, false, {0}, false},
};
