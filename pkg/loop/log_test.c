/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/log.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct out {
    int fd;
    struct loop_log *log;
};

static struct out start(bool json)
{
    struct out o;

    o.fd = memfd_create("log", MFD_CLOEXEC);
    cr_assert_geq(o.fd, 0);
    o.log = loop_log_new(o.fd, LOOP_INFO, json, "kube");
    cr_assert_not_null(o.log);
    return o;
}

static char *text(struct out *o)
{
    off_t n = lseek(o->fd, 0, SEEK_END);
    char *z = calloc(1, (size_t)n + 1);

    cr_assert_eq(pread(o->fd, z, (size_t)n, 0), n);
    return z;
}

static void end(struct out *o, char *z)
{
    free(z);
    loop_log_free(o->log);
    close(o->fd);
}

static unsigned lines(const char *z)
{
    unsigned n = 0;

    for (; *z; z++)
        n += *z == '\n';
    return n;
}

Test(loop_log, json_has_the_shape_of_kubernetes_components)
{
    struct out o = start(true);
    char *z;

    loop_log(o.log, LOOP_INFO, "session_state", "session moved", LOG_STR("connector", "a"),
             LOG_INT("epoch", -7), LOG_BOOL("fresh", 1), LOG_END);
    loop_log(o.log, LOOP_ERROR, "audit", "cannot write", LOG_STR("err", "disk full"), LOG_END);
    loop_log(o.log, LOOP_ERROR, "audit", "cannot write", LOG_END);
    loop_log(o.log, LOOP_DEBUG, "noise", "not written", LOG_END);
    loop_log_level(o.log, LOOP_DEBUG);
    loop_log(o.log, LOOP_DEBUG, "noise", "written", LOG_END);
    z = text(&o);
    cr_assert_eq(lines(z), 4, "%s", z);
    cr_assert(strstr(z, "{\"ts\":1") == z);
    cr_assert(
        strstr(
            z,
            ",\"v\":0,\"level\":\"info\",\"logger\":\"kube\",\"event\":\"session_state\",\"msg\":\"session "
            "moved\",\"connector\":\"a\",\"epoch\":-7,\"fresh\":true}\n"),
        "%s", z);
    cr_assert(strstr(z, "\"level\":\"error\",\"logger\":\"kube\",\"event\":\"audit\",\"msg\":\"cannot "
                        "write\",\"err\":\"disk "
                        "full\"}\n"),
              "%s", z);
    cr_assert(strstr(z, "\"msg\":\"cannot write\",\"err\":\"cannot write\"}\n"), "%s", z);
    cr_assert(strstr(z, "\"v\":4,\"level\":\"debug\""), "%s", z);
    end(&o, z);
}

Test(loop_log, text_is_for_people)
{
    struct out o = start(false);
    char *z;

    loop_log(o.log, LOOP_WARN, "watch", "stream ended", LOG_STR("path", "/apis/x"),
             LOG_STR("why", "no \"answer\""), LOG_STR("none", NULL), LOG_END);
    z = text(&o);
    cr_assert(
        strstr(z, "Z warn  kube watch: stream ended path=/apis/x why=\"no \\\"answer\\\"\" none=\"\"\n"),
        "%s", z);
    end(&o, z);
}

Test(loop_log, nothing_in_a_value_can_break_or_forge_a_line)
{
    static const struct {
        const char *in, *out;
    } row[] = {
        {"a\nb", "a\\nb"},
        {"a\r\t\"\\", "a\\r\\t\\\"\\\\"},
        {"\x01\x1b[31m\x7f", "\\u0001\\u001b[31m\\u007f"},
        {"\xc2\x85", "\\u0085"},
        {"\xe2\x80\xa8\xe2\x80\xae", "\\u2028\\u202e"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\xff\xc0\x80", "\\ufffd\\ufffd\\ufffd"},
        {"\xc3(\xe2\x28\xa1", "\\ufffd(\\ufffd(\\ufffd"},
        {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},
        {"\xf0\x9f\x98\x80\xf0\x9f", "\xf0\x9f\x98\x80\\ufffd\\ufffd"},
    };

    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        for (int json = 0; json < 2; json++) {
            struct out o = start(json);
            char *z, want[128];

            loop_log(o.log, LOOP_INFO, "e", row[i].in, LOG_STR("k", row[i].in), LOG_END);
            z = text(&o);
            snprintf(want, sizeof want, json ? "\"k\":\"%s\"" : "%s", row[i].out);
            cr_assert(strstr(z, want), "row %u: %s lacks %s", i, z, want);
            cr_assert_eq(lines(z), 1, "row %u: %s", i, z);
            end(&o, z);
        }
}

Test(loop_log, a_line_is_at_most_4_kib_and_stays_well_formed)
{
    struct out o = start(true);
    char big[5000], *z;

    memset(big, 1, sizeof big - 1);
    big[sizeof big - 1] = '\0';
    loop_log(o.log, LOOP_INFO, big, big, LOG_STR("a", big), LOG_STR("b", big), LOG_STR("c", big),
             LOG_STR("d", big), LOG_END);
    z = text(&o);
    cr_assert_eq(lines(z), 1);
    cr_assert_leq(strlen(z), 4096);
    cr_assert(strstr(z, "...(cut)"));
    cr_assert(strstr(z, ",\"truncated\":true}\n"));
    cr_assert(strstr(z, "(cut)\",\"truncated\""), "%s", z);
    end(&o, z);
}

Test(loop_log, repeats_are_counted_instead_of_written)
{
    struct out o = start(true);
    char *z;

    for (int i = 0; i < LOOP_LOG_BURST + 25; i++)
        loop_log(o.log, LOOP_WARN, "flood", "again", LOG_INT("i", i), LOG_END);
    loop_log(o.log, LOOP_INFO, "flood", "other level, other count", LOG_END);
    loop_log(o.log, LOOP_WARN, "other", "other event", LOG_END);
    loop_log_flush(o.log);
    z = text(&o);
    cr_assert_eq(lines(z), LOOP_LOG_BURST + 2, "%u", lines(z));
    free(z);
    usleep(1100 * 1000); /* the second that the limit counts in must pass */
    loop_log_flush(o.log);
    loop_log(o.log, LOOP_WARN, "flood", "again", LOG_INT("i", 99), LOG_END);
    z = text(&o);
    cr_assert(
        strstr(z, "\"event\":\"flood\",\"msg\":\"more of the same were not written\",\"suppressed\":25}"),
        "%s", z);
    cr_assert(strstr(z, "\"i\":99"));
    end(&o, z);
}

Test(loop_log, what_was_suppressed_is_said_at_the_end)
{
    struct out o = start(true);
    char *z;

    for (int i = 0; i < LOOP_LOG_BURST + 1; i++)
        loop_log(o.log, LOOP_WARN, "flood", "again", LOG_END);
    o.log = loop_log_free(o.log);
    z = text(&o);
    cr_assert(strstr(z, "\"suppressed\":1}"));
    end(&o, z);
}

static void *writer(void *arg)
{
    static const char *const names[] = {"e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7"};

    for (int i = 0; i < 400; i++)
        loop_log(arg, LOOP_INFO, names[i % 8], "from a thread", LOG_INT("i", i), LOG_END);
    return NULL;
}

Test(loop_log, threads_do_not_mix_their_lines)
{
    struct out o = start(true);
    pthread_t th[4];
    char *z;

    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&th[i], NULL, writer, o.log), 0);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_join(th[i], NULL), 0);
    z = text(&o);
    for (char *p = z; *p; p = strchr(p, '\n') + 1) {
        cr_assert(strncmp(p, "{\"ts\":", 6) == 0, "%.60s", p);
        cr_assert(strchr(p, '\n')[-1] == '}');
    }
    end(&o, z);
}

/* A pipe that nobody reads: one thread fills it, and it may stand still in its write, or be stopped there,
 * for ever. Nobody else waits for it, and what was lost is counted once somebody reads again. */
static void *fill(void *arg)
{
    char x[4096];

    memset(x, 'x', sizeof x);
    while (write(*(int *)arg, x, sizeof x) > 0)
        ;
    return NULL;
}

static void *say(void *arg)
{
    for (int i = 0; i < 10; i++)
        loop_log(arg, LOOP_INFO, "e", "m", LOG_END);
    return NULL;
}

Test(loop_log, nobody_waits_for_a_reader_that_does_not_read, .timeout = 20)
{
    int p[2];
    pthread_t th[2];
    static char got[1 << 20];
    size_t n = 0;
    struct loop_log *l;
    struct timespec from, to;

    cr_assert_eq(pipe2(p, O_NONBLOCK | O_CLOEXEC), 0);
    (void)fill(&p[1]);
    cr_assert_eq(fcntl(p[1], F_SETFL, 0), 0); /* as stderr is */
    l = loop_log_new(p[1], LOOP_INFO, true, "x");
    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    for (unsigned i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&th[i], NULL, say, l), 0);
    for (unsigned i = 0; i < 2; i++)
        cr_assert_eq(pthread_join(th[i], NULL), 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &to);
    cr_assert(to.tv_sec - from.tv_sec < 5, "20 lines took %ld s", (long)(to.tv_sec - from.tv_sec));
    for (ssize_t k; (k = read(p[0], got, sizeof got)) > 0;)
        cr_assert_null(memchr(got, '{', (size_t)k), "it did not lose them");
    loop_log(l, LOOP_INFO, "again", "m", LOG_END);
    loop_log_free(l);
    for (ssize_t k; (k = read(p[0], got + n, sizeof got - 1 - n)) > 0;)
        n += (size_t)k;
    got[n] = '\0';
    cr_assert(strstr(got, "\"event\":\"log_lost\"") && strstr(got, "\"lines\":20"), "%s", got);
    cr_assert(strstr(got, "\"event\":\"again\""), "%s", got);
    cr_assert_eq(lines(got), 2, "%s", got);
    close(p[0]);
    close(p[1]);
}

/* A thread that is stopped in the middle of a line has the lock: the others lose theirs, and go on. A
 * signal's handler that sleeps stands for whatever stops a single thread. */
static atomic_bool asleep, enough;

static void sleep_long(int signum)
{
    struct timespec ts = {.tv_sec = 1};

    (void)signum;
    atomic_store(&asleep, true);
    (void)nanosleep(&ts, NULL);
    atomic_store(&asleep, false);
}

/* More kinds of events than are counted: all are written, and it has the lock most of the time. */
static void *chat(void *arg)
{
    static char names[300][8];

    for (unsigned i = 0; !atomic_load(&enough); i = (i + 1) % 300) {
        if (!names[i][0])
            (void)snprintf(names[i], sizeof names[i], "chat%u", i);
        loop_log(arg, LOOP_INFO, names[i], "m", LOG_END);
    }
    return NULL;
}

static long ms_of_a_line(struct loop_log *l)
{
    struct timespec from, to;

    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    loop_log(l, LOOP_INFO, "line", "m", LOG_END);
    (void)clock_gettime(CLOCK_MONOTONIC, &to);
    return (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
}

Test(loop_log, nobody_waits_for_a_thread_that_was_stopped_in_a_line, .timeout = 60)
{
    struct sigaction act = {.sa_handler = sleep_long};
    struct out o = start(true);
    pthread_t th;
    char *z;
    bool lost = false;

    cr_assert_eq(sigaction(SIGUSR1, &act, NULL), 0);
    cr_assert_eq(pthread_create(&th, NULL, chat, o.log), 0);
    for (int i = 0; i < 15 && !lost; i++) {
        cr_assert_eq(pthread_kill(th, SIGUSR1), 0);
        while (!atomic_load(&asleep))
            (void)sched_yield();
        for (int k = 0; k < 3; k++)
            cr_assert_lt(ms_of_a_line(o.log), 700);
        while (atomic_load(&asleep))
            (void)usleep(1000);
        loop_log(o.log, LOOP_INFO, "after", "m", LOG_END);
        z = text(&o);
        lost = strstr(z, "\"event\":\"log_lost\"") != NULL;
        free(z);
    }
    atomic_store(&enough, true);
    cr_assert_eq(pthread_join(th, NULL), 0);
    cr_assert(lost, "it never had the lock: nothing was tested");
    end(&o, text(&o));
}

Test(loop_log, no_log_and_a_closed_descriptor_are_harmless)
{
    struct loop_log *l = loop_log_new(-1, LOOP_INFO, true, "x");

    loop_log((struct loop_log *)0, LOOP_ERROR, "e", "m", LOG_END);
    loop_log(l, LOOP_ERROR, "e", "m", LOG_END);
    cr_assert_null(loop_log_free(l));
    cr_assert_null(loop_log_free(NULL));
}
