/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/loop.h"
#include "tun/netns_test.h"

enum { UDP_HEADERS = 48, SERVER_CPU = 0, CLIENT_CPU = 1 };

void bench_die(const char *what)
{
    (void)fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

static char watched[160];

static void on_alarm(int sig)
{
    (void)!write(2, watched, strnlen(watched, sizeof watched));
    _exit(1); /* the servers end with their parent */
}

void bench_watch(const char *who, const char *what)
{
    const char *text = getenv("BENCH_PATIENCE");
    unsigned long patience = text ? strtoul(text, NULL, 10) : 0;
    patience = patience > 0 && patience < 86400 ? patience : 120;
    (void)alarm(0);
    if (!who)
        return;
    (void)snprintf(watched, sizeof watched, "bench: %s: %s did not end within %lu s\n", who, what, patience);
    (void)signal(SIGALRM, on_alarm);
    (void)alarm((unsigned)patience);
}

int64_t bench_now(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void pin(int cpu)
{
    cpu_set_t set;
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        return;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

void bench_anywhere(bool on)
{
    cpu_set_t set;
    memset(&set, 0xff, sizeof set);
    if (on)
        (void)sched_setaffinity(0, sizeof set, &set);
    else
        pin(CLIENT_CPU);
}

/* A device that takes super-packets and is never read: what a network card with segmentation offload is to
 * the stack. */
static void open_sink(void)
{
    struct ifreq rq;
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    memset(&rq, 0, sizeof rq);
    memcpy(rq.ifr_name, "sink0", 6);
    rq.ifr_flags = (short)(IFF_TUN | IFF_NO_PI | IFF_VNET_HDR);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &rq) < 0)
        bench_die("sink device");
    /* USO is refused before Linux 6.2; then the kernel segments. */
    if (ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | 0x20 | 0x40) < 0)
        (void)ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6);
    netns_run("ip", "link", "set", "sink0", "mtu", "1500", "txqueuelen", "16", "up", NULL);
    netns_run("ip", "-6", "route", "add", "fd20::20/128", "dev", "sink0", NULL);
}

void bench_net_open(void)
{
    netns_enter(0666);
    netns_put("/proc/sys/net/ipv6/conf/all/forwarding", "1");
    netns_run("ip", "-6", "addr", "add", "fd20::10/128", "dev", "lo", "nodad", NULL);
    open_sink();
    pin(CLIENT_CPU);
}

static void make_device(struct bench_server *s)
{
    char route[64];
    (void)snprintf(s->device, sizeof s->device, "hf%08x", s->pool);
    (void)snprintf(route, sizeof route, "fd12:0:0:%x::/64", s->pool);
    (void)close(netns_make_tun(s->device, s->kind == BENCH_GO ? IFF_TUN | IFF_NO_PI : NETNS_FOUNDATION, 0,
                               1500, true));
    netns_run("ip", "link", "set", s->device, "txqueuelen", "64", NULL);
    netns_run("ip", "-6", "route", "add", route, "dev", s->device, NULL);
}

void bench_server_start(struct bench_server *s, const struct bench_dirs *d, unsigned sessions)
{
    char path[400], pool[64], n[16], line[64] = "";
    int out[2];
    pid_t parent = getpid();
    bench_watch(s->name, "its start");
    make_device(s);
    (void)snprintf(n, sizeof n, "%u", sessions);
    (void)snprintf(pool, sizeof pool, s->kind == BENCH_GO ? "fd12:0:0:%x::" : "%x", s->pool);
    (void)snprintf(path, sizeof path, "%s/%s", s->kind == BENCH_GO ? d->peers : d->bin,
                   s->kind == BENCH_GO             ? "holdfast-connectip-server"
                   : s->kind == BENCH_BARE_LOOP    ? "bench-bare"
                   : s->kind == BENCH_IDEAL_LOOP   ? "bench-ideal-h2"
                   : s->kind == BENCH_IDEAL_UDP    ? "bench-ideal-h3"
                   : s->kind == BENCH_OURS_NOFENCE ? "bench-nofence"
                                                   : "bench-ours");
    if (pipe(out) < 0 || (s->pid = fork()) < 0)
        bench_die("fork");
    if (s->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        (void)dup2(out[1], 1);
        if (s->kind != BENCH_OURS_TWO)
            pin(SERVER_CPU);
        else
            bench_anywhere(true);
        if (s->kind == BENCH_GO)
            (void)execl(path, path, "-tun", s->device, "-pool", pool, "-pki", d->pki, (char *)NULL);
        else if (s->kind == BENCH_BARE_LOOP || s->kind == BENCH_IDEAL_LOOP || s->kind == BENCH_IDEAL_UDP)
            (void)execl(path, path, s->device, d->pki, (char *)NULL);
        else
            (void)execl(path, path, s->device, pool, d->pki, n,
                        s->kind == BENCH_OURS_PLAIN    ? "plain"
                        : s->kind == BENCH_OURS_TENANT ? "tenant"
                        : s->kind == BENCH_OURS_TWO    ? "two"
                                                       : "on",
                        (char *)NULL);
        _exit(127);
    }
    (void)close(out[1]);
    for (size_t at = 0; at < sizeof line - 1 && !strchr(line, '\n');) {
        ssize_t k = read(out[0], line + at, sizeof line - 1 - at);
        if (k <= 0)
            bench_die(path);
        at += (size_t)k;
    }
    (void)close(out[0]);
    s->port = (uint16_t)strtoul(line + 6, NULL, 10);
    if (strncmp(line, "ready ", 6) != 0 || s->port == 0 || clock_getcpuclockid(s->pid, &s->clock) != 0)
        bench_die(line);
}

static void on_packet(void *arg, const uint8_t *pkt, size_t len)
{
    struct bench_server *s = arg;
    s->got++;
    if (s->on_packet)
        s->on_packet(s, pkt, len);
}

void bench_server_connect(struct bench_server *s, const struct bench_dirs *d)
{
    int64_t until = bench_now() + 30000 * BENCH_TIME_MS, mtu = 0;
    bench_watch(s->name, "the connection to it");
    s->client = bench_client_new(s->port, d->pki, "site-1",
                                 s->kind == BENCH_BARE_LOOP    ? BENCH_BARE
                                 : s->kind == BENCH_IDEAL_LOOP ? BENCH_IDEAL_H2
                                 : s->kind == BENCH_IDEAL_UDP  ? BENCH_IDEAL_H3
                                 : s->h2                       ? BENCH_H2
                                                               : BENCH_H3,
                                 on_packet, s);
    while (bench_now() < until && (mtu == 0 || bench_now() < mtu)) {
        bench_client_pump(s->client);
        if (bench_client_ended(s->client))
            break;
        if (mtu == 0 && bench_client_open(s->client))
            mtu = bench_now() + 700 * BENCH_TIME_MS;
        (void)usleep(1000);
    }
    if (!bench_client_open(s->client) || bench_client_ended(s->client)) {
        (void)fprintf(stderr, "bench: %s: no session\n", s->name);
        exit(1);
    }
}

void bench_server_stop(struct bench_server *s)
{
    s->client = bench_client_free(s->client);
    if (s->pid > 0) {
        (void)kill(s->pid, SIGKILL);
        (void)waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
    netns_run("ip", "link", "del", s->device, NULL);
}

int64_t bench_server_cpu(const struct bench_server *s)
{
    struct timespec ts;
    if (clock_gettime(s->clock, &ts) != 0) {
        (void)fprintf(stderr, "bench: %s has ended\n", s->name);
        exit(1);
    }
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

struct bench_memory bench_server_memory(const struct bench_server *s)
{
    struct bench_memory m = {0};
    char path[64], line[256];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)s->pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "VmRSS:", 6) == 0)
            m.resident = strtod(line + 6, NULL);
        else if (strncmp(line, "RssAnon:", 8) == 0)
            m.own = strtod(line + 8, NULL);
    }
    if (f)
        (void)fclose(f);
    if (m.resident <= 0)
        bench_die(path);
    return m;
}

static void thread_policy(pid_t tid, int policy)
{
    struct sched_param p = {.sched_priority = policy == SCHED_RR ? 1 : 0};
    (void)sched_setscheduler(tid, policy, &p); /* where that is not permitted, the figure is a noisier one */
}

void bench_server_priority(const struct bench_server *s, bool high)
{
    char path[64];
    struct dirent *e;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)s->pid);
    DIR *dir = opendir(path);
    while (dir && (e = readdir(dir)))
        if (e->d_name[0] != '.')
            thread_policy((pid_t)strtol(e->d_name, NULL, 10), high ? SCHED_RR : SCHED_OTHER);
    if (dir)
        (void)closedir(dir);
    thread_policy(0, high ? SCHED_RR : SCHED_OTHER);
}

uint64_t bench_server_to_vpc(const struct bench_server *s)
{
    char line[512];
    uint64_t bytes = 0, packets = 0;
    FILE *f = fopen("/proc/self/net/dev", "re");
    while (f && fgets(line, sizeof line, f)) {
        const char *p = strstr(line, s->device);
        if (p && sscanf(p + strlen(s->device), ": %" SCNu64 " %" SCNu64, &bytes, &packets) == 2)
            break;
    }
    if (f)
        (void)fclose(f);
    /* A super-packet has one header. */
    return (bytes - packets * UDP_HEADERS) / (BENCH_PACKET - UDP_HEADERS);
}
