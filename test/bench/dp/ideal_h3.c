/* SPDX-License-Identifier: Apache-2.0
 *
 * bench-ideal-h3 DEVICE PKI: what a tunnel over UDP could cost at best, for one client: UDP in runs (GSO,
 * GRO), one AES-128-GCM a packet, super-packets on the TUN; no QUIC, so no acknowledgements, no congestion
 * control, no timers; no checks, no fence, no queue, no counters. Prints "ready PORT".
 */
#include <errno.h>
#include <linux/if_tun.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sealed.h"
#include "tun/offload.h"
#include "wire.h"

enum { RUN = 44, BURST = 128, PACKET = 1420 };

static struct {
    int udp, tun;
    struct sockaddr_in6 client;
    struct bench_sealed keys;
    struct bench_run to_client;
    uint8_t in[65536], pkt[2048];
    uint8_t buf[TUN_OFFLOAD_HEADER + 65575], out[TUN_OFFLOAD_HEADER + TUN_RUN_BYTES];
    struct tun_run run;
} s;

static void die(const char *what)
{
    (void)fprintf(stderr, "bench-ideal-h3: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- towards the VPC ---- */
static void flush_tun(void)
{
    if (s.run.n == 0)
        return;
    tun_run_finish(&s.run);
    (void)!write(s.tun, s.out,
                 s.run.len + TUN_OFFLOAD_HEADER); /* a full device loses packets, as any network */
    s.run.n = 0;
}

static bool from_udp(void)
{
    size_t len, seg;
    if (!bench_take_run(s.udp, s.in, sizeof s.in, &s.client, &len, &seg))
        return false;
    for (size_t at = 0; at < len; at += seg) {
        size_t n = bench_unseal(&s.keys, s.pkt, sizeof s.pkt, s.in + at, len - at < seg ? len - at : seg);
        if (n == 0 || tun_run_add(&s.run, s.pkt, n)) /* 0: the client's first word */
            continue;
        flush_tun();
        (void)tun_run_add(&s.run, s.pkt, n);
    }
    return true;
}

/* ---- towards the client ---- */
static void to_client(void *arg, uint8_t *pkt, size_t len)
{
    size_t n;
    if (s.client.sin6_port == 0 || pkt[24] == 0xff || len > PACKET)
        return;
    n = bench_seal(&s.keys, s.to_client.data + s.to_client.len, pkt, len);
    bench_run_add(&s.to_client, s.udp, &s.client, n, RUN);
}

static void from_tun(void)
{
    for (unsigned i = 0; i < BURST; i++) {
        ssize_t n = read(s.tun, s.buf, sizeof s.buf);
        if (n <= TUN_OFFLOAD_HEADER)
            break;
        if (tun_offload_is_super(s.buf))
            (void)tun_offload_cut(s.buf, (size_t)n - TUN_OFFLOAD_HEADER, to_client, NULL);
        else if (tun_offload_finish(s.buf, (size_t)n - TUN_OFFLOAD_HEADER))
            to_client(NULL, s.buf + TUN_OFFLOAD_HEADER, (size_t)n - TUN_OFFLOAD_HEADER);
    }
    bench_run_flush(&s.to_client, s.udp, &s.client);
}

int main(int argc, char **argv)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const int one = 1, size = 8 << 20;
    socklen_t n = sizeof a;
    if (argc < 3)
        return 2;
    if (bench_sealed_init(&s.keys, 1) != 0)
        die("AES-128-GCM");
    s.udp = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)setsockopt(s.udp, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    (void)setsockopt(s.udp, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    (void)setsockopt(s.udp, SOL_UDP, UDP_GRO, &one, sizeof one);
    if (bind(s.udp, (struct sockaddr *)&a, n) != 0 || getsockname(s.udp, (struct sockaddr *)&a, &n) != 0)
        die("bind");
    s.tun = bench_tun_open(argv[1]);
    if (s.tun < 0)
        die(argv[1]);
    if (ioctl(s.tun, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO6 | 0x20 | 0x40) < 0)
        (void)ioctl(s.tun, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO6);
    s.run.pkt = s.out + TUN_OFFLOAD_HEADER;
    (void)printf("ready %u\n", (unsigned)ntohs(a.sin6_port));
    (void)fflush(stdout);
    for (;;) {
        struct pollfd p[2] = {{s.udp, POLLIN, 0}, {s.tun, POLLIN, 0}};
        (void)poll(p, 2, -1);
        if (p[1].revents & POLLIN)
            from_tun();
        if (p[0].revents & POLLIN)
            for (int i = 0; i < 16 && from_udp(); i++)
                ;
        flush_tun();
    }
}
