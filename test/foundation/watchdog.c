/* SPDX-License-Identifier: Apache-2.0 */
#include "watchdog.h"

#include "base/cleanup.h"
#include "lock.h"
#include "loop/loop.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

BASE_DEFINE_CLEANUP(struct kernel_watch *, kernel_watch_free)

#define PERIOD_NS 250000000L

int watchdog_start(const struct options *o, struct base_err *err)
{
    char table[16], self[16];
    const char *argv[] = {"holdfast-foundation",
                          "--watchdog",
                          self,
                          "--bpffs",
                          o->bpffs,
                          "--lock",
                          o->lock,
                          "--route-table",
                          table,
                          "--log-format",
                          o->json ? "json" : "text",
                          NULL};
    pid_t pid;
    int e;

    base_fmt(table, sizeof table, "%u", o->table);
    base_fmt(self, sizeof self, "%ld", (long)getpid());
    e = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, (char *const *)(const void *)argv, environ);
    return e ? base_err_sys(err, BASE_EIO, e, "watchdog: cannot start it") : BASE_OK;
}

static volatile sig_atomic_t ended;

static void end(int sig)
{
    (void)sig;
    ended = 1;
}

static void pause_for_a_moment(void)
{
    struct timespec t = {0, PERIOD_NS};

    (void)nanosleep(&t, NULL);
}

int watchdog_run(const struct options *o, struct loop_log *log, struct base_err *err)
{
    struct kernel_config cfg = {
        .bpffs = o->bpffs, .tun = o->tun, .tun_owner = o->tun_owner, .table = o->table};
    base_cleanup(kernel_watch_freep) struct kernel_watch *w = NULL;
    struct sigaction sa = {.sa_handler = end};
    pid_t parent = (pid_t)o->watchdog; /* it may have ended before we could ask who it is */
    char path[512];
    int r;

    (void)setsid(); /* a signal to the foundation's group is not for us */
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    if (!base_fmt(path, sizeof path, "%s.watchdog", o->lock))
        return base_err_set(err, BASE_EINVAL, "--lock: '%s' is too long", o->lock);
    /* The one of an earlier foundation serves on until it sees that there is a new one. */
    while ((r = lock_take(path, err)) == BASE_EAGAIN && !ended && getppid() == parent)
        pause_for_a_moment();
    if (r || ended)
        return r == BASE_EAGAIN ? BASE_OK : r;
    r = kernel_watch_new(&w, &cfg, err);
    if (r)
        return r;
    while (!ended) {
        unsigned withdrawn = 0;
        unsigned left = kernel_watch_pass(w, loop_clock(), &withdrawn);
        pid_t holder = lock_holder(o->lock);

        if (withdrawn)
            loop_log(log, LOOP_WARN, "foundation_watchdog", "withdrew routes that were not refreshed in time",
                     LOG_INT("withdrawn", withdrawn), LOG_INT("left", left));
        if (getppid() != parent && (left == 0 || (holder && holder != parent)))
            break;
        pause_for_a_moment();
    }
    return BASE_OK;
}
