/* SPDX-License-Identifier: Apache-2.0
 * main.c - command line of the probe. */
#include "probe.h"
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile sig_atomic_t stopped;

static const char usage[] =
    "usage: probe send --to ADDR --port N [--bind ADDR [--freebind]] [--interval US] [--count N] "
    "[--size BYTES] [--stream N] [--log FILE]\n"
    "       probe recv --port N [--bind ADDR] [--echo] [--log FILE]\n"
    "       probe cap --if LINK [--if LINK ...] [--prefix P/LEN] [--log FILE]\n"
    "       probe tcp-serve --port N [--bind ADDR] [--log FILE]\n"
    "       probe tcp-xfer --to ADDR --port N --count BYTES [--timeout MS]\n"
    "       probe freeze --tid THREAD [--log FILE]\n"
    "       probe late [--log FILE]\n"
    "       probe stamp | probe clock\n"
    "Times are CLOCK_BOOTTIME in ns. send, recv, cap, tcp-serve, freeze and late end on SIGTERM.\n";

int64_t probe_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t probe_from_realtime(int64_t t)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return probe_now() - ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec - t);
}

_Noreturn void probe_die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("probe: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(2);
}

void probe_open_log(const char *path)
{
    if (path && !freopen(path, "we", stdout))
        probe_die("--log %s: %s", path, strerror(errno));
    setvbuf(stdout, NULL, _IOLBF, 0);
}

bool probe_stopped(void)
{
    return stopped != 0;
}

void probe_addr(const char *text, uint16_t port, struct sockaddr_storage *ret, socklen_t *ret_len)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    if (text && inet_pton(AF_INET6, text, &a.sin6_addr) != 1)
        probe_die("'%s' is no IPv6 address", text);
    memcpy(ret, &a, sizeof a);
    *ret_len = sizeof a;
}

int64_t probe_msg_time(struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec ts;
            memcpy(&ts, CMSG_DATA(c), sizeof ts);
            return probe_from_realtime((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
        }
    }
    return probe_now();
}

int probe_stamp(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    probe_open_log(NULL);
    while ((n = getline(&line, &cap, stdin)) > 0) {
        int64_t now = probe_now();
        printf("%" PRId64 " %s%s", now, line, line[n - 1] == '\n' ? "" : "\n");
    }
    free(line);
    return 0;
}

static void on_stop(int sig)
{
    (void)sig;
    stopped = 1;
}

static uint64_t number(const char *name, const char *text, uint64_t max)
{
    char *end = NULL;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno || end == text || *end || v > max)
        probe_die("--%s '%s' is no number from 0 to %" PRIu64, name, text, max);
    return v;
}

static const struct option options[] = {
    {"to", required_argument, NULL, 't'},
    {"bind", required_argument, NULL, 'b'},
    {"port", required_argument, NULL, 'p'},
    {"interval", required_argument, NULL, 'i'},
    {"count", required_argument, NULL, 'c'},
    {"size", required_argument, NULL, 's'},
    {"stream", required_argument, NULL, 'm'},
    {"log", required_argument, NULL, 'l'},
    {"if", required_argument, NULL, 'f'},
    {"prefix", required_argument, NULL, 'x'},
    {"timeout", required_argument, NULL, 'w'},
    {"tid", required_argument, NULL, 'd'},
    {"echo", no_argument, NULL, 'e'},
    {"freebind", no_argument, NULL, 'r'},
    {NULL, 0, NULL, 0},
};

static void parse(struct probe_opts *o, int argc, char **argv)
{
    int c;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 't':
            o->to = optarg;
            break;
        case 'b':
            o->bind = optarg;
            break;
        case 'p':
            o->port = (uint16_t)number("port", optarg, UINT16_MAX);
            break;
        case 'i':
            o->interval = (uint32_t)number("interval", optarg, 60000000);
            break;
        case 'c':
            o->count = number("count", optarg, UINT64_C(1) << 40);
            break;
        case 's':
            o->size = (uint32_t)number("size", optarg, 9000);
            break;
        case 'm':
            o->stream = (uint32_t)number("stream", optarg, UINT32_MAX);
            break;
        case 'l':
            o->log = optarg;
            break;
        case 'f':
            if (o->n_ifs == sizeof o->ifs / sizeof *o->ifs)
                probe_die("more than %zu links", sizeof o->ifs / sizeof *o->ifs);
            o->ifs[o->n_ifs++] = optarg;
            break;
        case 'e':
            o->echo = true;
            break;
        case 'r':
            o->freebind = true;
            break;
        case 'x':
            o->prefix = optarg;
            break;
        case 'w':
            o->timeout_ms = (uint32_t)number("timeout", optarg, 3600000);
            break;
        case 'd':
            o->tid = (uint32_t)number("tid", optarg, INT32_MAX);
            break;
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    if (optind != argc)
        probe_die("unexpected argument '%s'", argv[optind]);
}

int main(int argc, char **argv)
{
    struct probe_opts o = {.interval = 10000, .size = 64, .timeout_ms = 10000};
    const char *cmd = argc > 1 ? argv[1] : "";
    if (!strcmp(cmd, "--help")) {
        fputs(usage, stdout);
        return 0;
    }
    struct sigaction sa = {.sa_handler = on_stop}; /* no SA_RESTART: blocking calls end */
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1)
        parse(&o, argc - 1, argv + 1);
    if (!strcmp(cmd, "send"))
        return probe_send(&o);
    if (!strcmp(cmd, "recv"))
        return probe_recv(&o);
    if (!strcmp(cmd, "cap"))
        return probe_cap(&o);
    if (!strcmp(cmd, "tcp-serve"))
        return probe_tcp_serve(&o);
    if (!strcmp(cmd, "tcp-xfer"))
        return probe_tcp_xfer(&o);
    if (!strcmp(cmd, "freeze"))
        return probe_freeze(&o);
    if (!strcmp(cmd, "late"))
        return probe_late(&o);
    if (!strcmp(cmd, "stamp"))
        return probe_stamp();
    if (!strcmp(cmd, "clock")) {
        struct timespec ts;
        clock_gettime(CLOCK_REALTIME, &ts);
        printf("%" PRId64 " %" PRId64 "\n", probe_now(), (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
        return 0;
    }
    fputs(usage, stderr);
    return 2;
}
