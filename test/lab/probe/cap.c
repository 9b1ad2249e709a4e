/* SPDX-License-Identifier: Apache-2.0
 * cap.c - which packet passed which link, when: one line per IPv6 packet, no payload. */
#include "probe.h"
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ip6.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct prefix {
    struct in6_addr addr;
    unsigned bits; /* 0 = everything */
};

static struct prefix parse_prefix(const char *text)
{
    struct prefix p = {0};
    char buf[INET6_ADDRSTRLEN + 1];
    if (!text)
        return p;
    const char *slash = strchr(text, '/');
    char *end = NULL;
    if (!slash || (size_t)(slash - text) >= sizeof buf)
        probe_die("--prefix '%s' is no IPv6 prefix (example: fd12::/64)", text);
    memcpy(buf, text, (size_t)(slash - text));
    buf[slash - text] = 0;
    unsigned long bits = strtoul(slash + 1, &end, 10);
    if (inet_pton(AF_INET6, buf, &p.addr) != 1 || end == slash + 1 || *end || bits > 128)
        probe_die("--prefix '%s' is no IPv6 prefix (example: fd12::/64)", text);
    p.bits = (unsigned)bits;
    return p;
}

static bool in_prefix(const struct prefix *p, const struct in6_addr *a)
{
    unsigned bytes = p->bits / 8, rest = p->bits % 8;
    if (memcmp(p->addr.s6_addr, a->s6_addr, bytes))
        return false;
    return !rest || !((p->addr.s6_addr[bytes] ^ a->s6_addr[bytes]) >> (8 - rest));
}

static int open_link(const char *name)
{
    int on = 1,
        fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* protocol 0: nothing arrives before bind */
    struct sockaddr_ll a = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(name)};
    if (fd < 0 || !a.sll_ifindex || setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) ||
        bind(fd, (struct sockaddr *)&a, sizeof a))
        probe_die("capture on '%s': %s (needs CAP_NET_RAW and the link in this network namespace)", name,
                  strerror(errno));
    return fd;
}

static void one_packet(int fd, const char *link, const struct prefix *p)
{
    struct ip6_hdr ip;
    char control[128], src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];
    struct sockaddr_ll from = {0};
    struct iovec iov = {.iov_base = &ip, .iov_len = sizeof ip};
    struct msghdr m = {.msg_name = &from,
                       .msg_namelen = sizeof from,
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof control};
    ssize_t n = recvmsg(fd, &m, MSG_TRUNC);
    if (n < (ssize_t)sizeof ip || ntohs(from.sll_protocol) != ETH_P_IPV6)
        return;
    if (p->bits && !in_prefix(p, &ip.ip6_src) && !in_prefix(p, &ip.ip6_dst))
        return;
    inet_ntop(AF_INET6, &ip.ip6_src, src, sizeof src);
    inet_ntop(AF_INET6, &ip.ip6_dst, dst, sizeof dst);
    printf("%" PRId64 ",%s,%s,%s,%s,%u,%zd\n", probe_msg_time(&m), link,
           from.sll_pkttype == PACKET_OUTGOING ? "out" : "in", src, dst, ip.ip6_nxt, n);
}

int probe_cap(const struct probe_opts *o)
{
    struct pollfd fds[8];
    struct prefix p = parse_prefix(o->prefix);
    if (!o->n_ifs)
        probe_die("cap needs --if");
    probe_open_log(o->log);
    for (unsigned i = 0; i < o->n_ifs; i++)
        fds[i] = (struct pollfd){.fd = open_link(o->ifs[i]), .events = POLLIN};
    while (!probe_stopped()) {
        if (poll(fds, o->n_ifs, -1) < 0)
            continue;
        for (unsigned i = 0; i < o->n_ifs; i++) {
            if (fds[i].revents & POLLIN)
                one_packet(fds[i].fd, o->ifs[i], &p);
        }
    }
    for (unsigned i = 0; i < o->n_ifs; i++)
        close(fds[i].fd);
    return 0;
}
