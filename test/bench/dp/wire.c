/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { UDP_PAYLOAD = 1444 };

static void send_bytes(const struct bench_run *r, int fd, const struct sockaddr_in6 *to, size_t len)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))] = {0};
    struct iovec iov = {(void *)(uintptr_t)r->data, len};
    struct msghdr m = {.msg_name = (void *)(uintptr_t)to,
                       .msg_namelen = to ? sizeof *to : 0,
                       .msg_iov = &iov,
                       .msg_iovlen = 1};
    uint16_t seg = (uint16_t)r->seg;
    if (len > r->seg) {
        struct cmsghdr h = {
            .cmsg_len = CMSG_LEN(sizeof seg), .cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT};
        memcpy(control, &h, sizeof h);
        memcpy(control + CMSG_LEN(0), &seg, sizeof seg);
        m.msg_control = control;
        m.msg_controllen = sizeof control;
    }
    if (len > 0)
        (void)sendmsg(fd, &m, MSG_DONTWAIT);
}

void bench_run_flush(struct bench_run *r, int fd, const struct sockaddr_in6 *to)
{
    send_bytes(r, fd, to, r->len);
    r->len = r->n = 0;
}

void bench_run_add(struct bench_run *r, int fd, const struct sockaddr_in6 *to, size_t n, unsigned most)
{
    if (r->len > 0 && n > r->seg) { /* a longer one cannot follow */
        send_bytes(r, fd, to, r->len);
        memmove(r->data, r->data + r->len, n);
        r->len = r->n = 0;
    }
    if (r->len == 0)
        r->seg = n;
    r->len += n;
    if (++r->n == most || n < r->seg || r->len + UDP_PAYLOAD > BENCH_RUN_BYTES)
        bench_run_flush(r, fd, to);
}

bool bench_take_run(int fd, uint8_t *buf, size_t size, struct sockaddr_in6 *ret_from, size_t *ret_len,
                    size_t *ret_seg)
{
    _Alignas(struct cmsghdr) uint8_t control[128];
    struct iovec iov = {buf, size};
    struct msghdr m = {.msg_name = ret_from,
                       .msg_namelen = ret_from ? sizeof *ret_from : 0,
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof control};
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);
    if (n <= 0)
        return false;
    *ret_len = *ret_seg = (size_t)n;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
        if (h->cmsg_level == SOL_UDP && h->cmsg_type == UDP_GRO) {
            int v;
            memcpy(&v, CMSG_DATA(h), sizeof v);
            if (v > 0)
                *ret_seg = (size_t)v;
        }
    return true;
}

int bench_tun_open(const char *device)
{
    struct ifreq rq;
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), header = 10;
    memset(&rq, 0, sizeof rq);
    memcpy(rq.ifr_name, device, strnlen(device, sizeof rq.ifr_name - 1));
    rq.ifr_flags = (short)(IFF_TUN | IFF_NO_PI | IFF_VNET_HDR | IFF_MULTI_QUEUE);
    return fd < 0 || ioctl(fd, TUNSETIFF, &rq) < 0 || ioctl(fd, TUNSETVNETHDRSZ, &header) < 0 ? -1 : fd;
}
