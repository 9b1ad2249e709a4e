/* SPDX-License-Identifier: Apache-2.0
 * udp.c - numbered UDP packets: sender and receiver, with echo. */
#include "probe.h"
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int open_udp(const struct probe_opts *o, uint16_t port)
{
    struct sockaddr_storage a;
    socklen_t len;
    int on = 1, free = o->freebind, fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        probe_die("socket: %s", strerror(errno));
    probe_addr(o->bind, port, &a, &len);
    if (setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on) ||
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) ||
        setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &free, sizeof free) ||
        bind(fd, (struct sockaddr *)&a, len))
        probe_die("UDP [%s]:%u: %s", o->bind ? o->bind : "::", port, strerror(errno));
    return fd;
}

static unsigned pktinfo_if(struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo pi;
            memcpy(&pi, CMSG_DATA(c), sizeof pi);
            return pi.ipi6_ifindex;
        }
    }
    return 0;
}

/* Takes one packet in and logs it; with `echo` it goes back to its sender unchanged. */
static void take(int fd, bool echo)
{
    unsigned char buf[9000];
    char control[256], src[INET6_ADDRSTRLEN] = "?", link[IF_NAMESIZE] = "?";
    struct sockaddr_in6 from = {0};
    struct iovec iov = {.iov_base = buf, .iov_len = sizeof buf};
    struct msghdr m = {.msg_name = &from,
                       .msg_namelen = sizeof from,
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof control};
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);
    uint32_t head[2];
    uint64_t body[2];
    if (n < PROBE_HEAD) /* a short packet, an ICMP error, a signal */
        return;
    memcpy(head, buf, sizeof head);
    memcpy(body, buf + sizeof head, sizeof body);
    if (be32toh(head[0]) != PROBE_MAGIC)
        return;
    if (echo)
        sendto(fd, buf, (size_t)n, MSG_DONTWAIT, (struct sockaddr *)&from, sizeof from);
    inet_ntop(AF_INET6, &from.sin6_addr, src, sizeof src);
    if_indextoname(pktinfo_if(&m), link);
    printf("%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%s,%s\n", be32toh(head[1]), be64toh(body[0]),
           be64toh(body[1]), probe_msg_time(&m), link, src);
}

int probe_send(const struct probe_opts *o)
{
    unsigned char buf[9000] = {0};
    struct sockaddr_storage to;
    socklen_t len;
    uint64_t seq = 0, failed = 0;
    if (!o->to || !o->port || o->size < PROBE_HEAD)
        probe_die("send needs --to, --port and --size of at least %d", PROBE_HEAD);
    probe_open_log(o->log);
    int fd = open_udp(o, 0);
    probe_addr(o->to, o->port, &to, &len);
    int64_t next = probe_now();
    while (!probe_stopped() && (!o->count || seq < o->count)) {
        uint32_t head[2] = {htobe32(PROBE_MAGIC), htobe32(o->stream)};
        uint64_t body[2] = {htobe64(seq++), htobe64((uint64_t)probe_now())};
        memcpy(buf, head, sizeof head);
        memcpy(buf + sizeof head, body, sizeof body);
        /* No route, a full queue, an ICMP error: part of the story, the packet just counts as lost. */
        if (sendto(fd, buf, o->size, 0, (struct sockaddr *)&to, len) < 0)
            failed++;
        next += (int64_t)o->interval * 1000;
        for (int64_t wait; !probe_stopped() && (wait = next - probe_now()) > 0;) {
            struct pollfd p = {.fd = fd, .events = POLLIN};
            struct timespec ts = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
            if (ppoll(&p, 1, &ts, NULL) > 0)
                take(fd, false);
        }
    }
    fprintf(stderr, "{\"stream\":%" PRIu32 ",\"sent\":%" PRIu64 ",\"failed\":%" PRIu64 "}\n", o->stream, seq,
            failed);
    close(fd);
    return 0;
}

int probe_recv(const struct probe_opts *o)
{
    if (!o->port)
        probe_die("recv needs --port");
    probe_open_log(o->log);
    int fd = open_udp(o, o->port);
    while (!probe_stopped()) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, -1) > 0)
            take(fd, o->echo);
    }
    close(fd);
    return 0;
}
