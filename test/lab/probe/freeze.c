/* SPDX-License-Identifier: Apache-2.0
 * freeze.c - stops one thread of another process, as a hypervisor or a busy machine does, while the rest of
 * it runs on. By ptrace, so that it works with any cgroup version, and ends with this process, however that
 * ends. */
#include "probe.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

/* True as long as the thread is there; a thread group that is being killed wakes us here. */
static bool there(pid_t tid)
{
    int status;
    pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
    return got == 0 || (got == tid && WIFSTOPPED(status));
}

int probe_freeze(const struct probe_opts *o)
{
    pid_t tid = (pid_t)o->tid;
    int status;
    if (!tid)
        probe_die("freeze needs --tid");
    probe_open_log(o->log);
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
        probe_die("thread %d: %s", (int)tid, strerror(errno));
    if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
        probe_die("thread %d did not stop", (int)tid);
    printf("%" PRId64 " frozen\n", probe_now());
    bool alive;
    while ((alive = there(tid)) && !probe_stopped())
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    int64_t end = probe_now(); /* before it can run again */
    if (alive && ptrace(PTRACE_DETACH, tid, NULL, NULL))
        probe_die("thread %d: %s", (int)tid, strerror(errno));
    printf("%" PRId64 " %s\n", end, alive ? "thawed" : "gone");
    return 0;
}
