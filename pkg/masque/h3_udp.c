/* SPDX-License-Identifier: Apache-2.0
 *
 * One AF_INET6 socket for everything; IPv4 comes as v4-mapped addresses. UDP_GRO on the way in and
 * UDP_SEGMENT on the way out where the kernel has them. Fragmentation is off: path MTU discovery is QUIC's.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "masque/h3_int.h"

enum { BATCH = 8, SLOT = 65536, CONTROL = 256, SOCKET_BUFFER = 8 << 20, ECN_MASK = 3 };

struct masque_udp {
    int fd;
    bool gso;
    bool wildcard; /* bound to :: or 0.0.0.0: answers must say from which address */
    struct sockaddr_in6 bound;
    struct mmsghdr msgs[BATCH];
    struct iovec iov[BATCH];
    struct sockaddr_in6 names[BATCH];
    _Alignas(struct cmsghdr) uint8_t control[BATCH][CONTROL];
    uint8_t data[BATCH][SLOT];
};

static int set(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value);
}

static void set_options(struct masque_udp *u)
{
    /* The forced forms need a capability; the plain ones are cut at the system's maximum. Neither is fatal. */
    if (set(u->fd, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER) != 0)
        (void)set(u->fd, SOL_SOCKET, SO_RCVBUF, SOCKET_BUFFER);
    if (set(u->fd, SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BUFFER) != 0)
        (void)set(u->fd, SOL_SOCKET, SO_SNDBUF, SOCKET_BUFFER);
    (void)set(u->fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    (void)set(u->fd, IPPROTO_IP, IP_RECVTOS, 1);
    if (u->gso)
        (void)set(u->fd, SOL_UDP, UDP_GRO, 1);
}

/* Two segments in one send, to a socket of our own on the loopback. False when they are refused or come out
 * as something else; true also when there is no loopback to try it on: the first refusal switches it off
 * then. */
static bool segments_work(void)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t len = sizeof to;
    uint8_t data[150], got[200];
    bool ok = true;
    int in = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int out = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    memset(data, 0x5a, sizeof data);
    if (in >= 0 && out >= 0 && bind(in, (struct sockaddr *)&to, len) == 0 &&
        getsockname(in, (struct sockaddr *)&to, &len) == 0 &&
        connect(out, (struct sockaddr *)&to, len) == 0) {
        ok = set(out, SOL_UDP, UDP_SEGMENT, 100) == 0 &&
             send(out, data, sizeof data, 0) == (ssize_t)sizeof data && recv(in, got, sizeof got, 0) == 100 &&
             recv(in, got + 100, sizeof got - 100, 0) == 50 && memcmp(got, data, sizeof data) == 0;
    }
    if (in >= 0)
        (void)close(in);
    if (out >= 0)
        (void)close(out);
    return ok;
}

static int need_options(struct masque_udp *u, struct base_err *err)
{
    if (set(u->fd, IPPROTO_IPV6, IPV6_V6ONLY, 0) != 0 ||
        set(u->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE) != 0 ||
        set(u->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE) != 0 ||
        set(u->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) != 0)
        return base_err_sys(err, BASE_EIO, errno, "UDP socket options");
    return BASE_OK;
}

/* The first socket is bound without SO_REUSEPORT, so that it fails where another process has the port; then
 * it opens the group for the others. */
static int bind_among(struct masque_udp *u, struct sockaddr_in6 *addr, const struct masque_threads *t)
{
    if (t->index > 0) {
        addr->sin6_port = htons(t->port);
        if (set(u->fd, SOL_SOCKET, SO_REUSEPORT, 1) != 0)
            return -1;
    }
    if (bind(u->fd, (struct sockaddr *)addr, sizeof *addr) != 0)
        return -1;
    return t->count > 1 && t->index == 0 ? set(u->fd, SOL_SOCKET, SO_REUSEPORT, 1) : 0;
}

int masque_udp_open(struct masque_udp **ret, const char *listen, const struct masque_threads *t, bool offload,
                    struct base_err *err)
{
    struct sockaddr_in6 addr;
    int rv = masque_listen_parse(&addr, listen, err);
    if (rv != BASE_OK)
        return rv;
    struct masque_udp *u = base_calloc(1, sizeof *u);
    if (!u)
        return base_err_set(err, BASE_ENOMEM, "UDP socket: no memory");
    u->gso = offload && segments_work();
    u->wildcard = masque_address_any(&addr.sin6_addr);
    u->fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (u->fd < 0) {
        rv = base_err_sys(err, BASE_EIO, errno, "UDP socket");
        goto fail;
    }
    rv = need_options(u, err);
    if (rv != BASE_OK)
        goto fail;
    set_options(u);
    socklen_t len = sizeof u->bound;
    if (bind_among(u, &addr, t) != 0) {
        int e = errno;
        rv = base_err_sys(err, BASE_EIO, e, "listen \"%s\" (UDP)%s", listen, masque_listen_remedy(e));
        goto fail;
    }
    if (getsockname(u->fd, (struct sockaddr *)&u->bound, &len) != 0) {
        rv = base_err_sys(err, BASE_EIO, errno, "listen \"%s\"", listen);
        goto fail;
    }
    if (t->count > 1 && t->index == t->count - 1)
        rv = masque_thread_steer(u->fd, t->count, err);
    if (rv != BASE_OK)
        goto fail;
    *ret = u;
    return BASE_OK;
fail:
    masque_udp_close(u);
    return rv;
}

struct masque_udp *masque_udp_close(struct masque_udp *u)
{
    if (u && u->fd >= 0)
        (void)close(u->fd);
    return base_free(u);
}

int masque_udp_fd(const struct masque_udp *u)
{
    return u->fd;
}

bool masque_udp_gso(const struct masque_udp *u)
{
    return u->gso;
}

uint16_t masque_udp_port(const struct masque_udp *u)
{
    return ntohs(u->bound.sin6_port);
}

/* What the control messages of one received message say. */
struct meta {
    size_t seg;
    uint8_t ecn;
    struct in6_addr local;
    uint32_t ifindex;
    bool has_local;
};

static void read_control(struct msghdr *m, struct meta *ret)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        size_t n = c->cmsg_len - CMSG_LEN(0);
        int v = 0;
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO &&
            n >= sizeof(struct in6_pktinfo)) {
            struct in6_pktinfo pi;
            memcpy(&pi, CMSG_DATA(c), sizeof pi);
            ret->local = pi.ipi6_addr;
            ret->ifindex = (uint32_t)pi.ipi6_ifindex;
            ret->has_local = true;
        } else if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO && n >= sizeof v) {
            memcpy(&v, CMSG_DATA(c), sizeof v);
            ret->seg = v > 0 ? (size_t)v : 0;
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS && n >= sizeof v) {
            memcpy(&v, CMSG_DATA(c), sizeof v);
            ret->ecn = (uint8_t)(v & ECN_MASK);
        } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS && n >= 1) {
            ret->ecn = *CMSG_DATA(c) & ECN_MASK;
        }
    }
}

/* Hands the datagrams of one message over; returns their number. */
static unsigned deliver(struct masque_udp *u, unsigned i, masque_udp_fn fn, void *arg)
{
    struct msghdr *m = &u->msgs[i].msg_hdr;
    size_t len = u->msgs[i].msg_len;
    struct meta meta = {.seg = len};
    if (len == 0 || (m->msg_flags & MSG_TRUNC) || m->msg_namelen != sizeof(struct sockaddr_in6))
        return 1; /* cut datagrams are dropped, never parsed */
    read_control(m, &meta);
    if (meta.seg == 0)
        meta.seg = len;
    struct masque_udp_in in = {.remote = u->names[i], .local = u->bound, .ecn = meta.ecn};
    if (meta.has_local) {
        in.local.sin6_addr = meta.local;
        in.local.sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(&meta.local) ? meta.ifindex : 0;
    }
    unsigned n = 0;
    for (size_t at = 0; at < len; at += meta.seg, n++) {
        in.data = u->data[i] + at;
        in.len = len - at < meta.seg ? len - at : meta.seg;
        fn(arg, &in);
    }
    return n;
}

void masque_udp_read(struct masque_udp *u, unsigned max, masque_udp_fn fn, void *arg)
{
    for (unsigned got = 0; got < max;) {
        unsigned want = max - got < BATCH ? max - got : BATCH;
        for (unsigned i = 0; i < want; i++) {
            u->iov[i] = (struct iovec){u->data[i], SLOT};
            u->msgs[i].msg_hdr = (struct msghdr){.msg_name = &u->names[i],
                                                 .msg_namelen = sizeof u->names[i],
                                                 .msg_iov = &u->iov[i],
                                                 .msg_iovlen = 1,
                                                 .msg_control = u->control[i],
                                                 .msg_controllen = CONTROL};
        }
        int n = recvmmsg(u->fd, u->msgs, want, MSG_DONTWAIT, NULL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* EAGAIN, or an ICMP error that belongs to one peer only */
        for (unsigned i = 0; i < (unsigned)n; i++)
            got += deliver(u, i, fn, arg);
        if ((unsigned)n < want)
            return;
    }
}

static void add_control(struct msghdr *m, int level, int type, const void *p, size_t n)
{
    uint8_t *at = (uint8_t *)m->msg_control + m->msg_controllen;
    struct cmsghdr h = {.cmsg_len = CMSG_LEN(n), .cmsg_level = level, .cmsg_type = type};
    memset(at, 0, CMSG_SPACE(n));
    memcpy(at, &h, sizeof h);
    memcpy(at + CMSG_LEN(0), p, n);
    m->msg_controllen += CMSG_SPACE(n);
}

static int send_one(struct masque_udp *u, struct sockaddr_in6 *remote, const struct sockaddr_in6 *local,
                    uint8_t ecn, struct iovec iov, uint16_t seg)
{
    _Alignas(struct cmsghdr) uint8_t control[CONTROL];
    struct msghdr m = {.msg_name = remote,
                       .msg_namelen = sizeof *remote,
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control};
    if (u->wildcard && !masque_address_any(&local->sin6_addr)) {
        struct in6_pktinfo pi = {.ipi6_addr = local->sin6_addr, .ipi6_ifindex = local->sin6_scope_id};
        add_control(&m, IPPROTO_IPV6, IPV6_PKTINFO, &pi, sizeof pi);
    }
    if (ecn != 0) {
        int v = ecn;
        bool v4 = IN6_IS_ADDR_V4MAPPED(&remote->sin6_addr);
        add_control(&m, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, &v, sizeof v);
    }
    if (seg != 0)
        add_control(&m, SOL_UDP, UDP_SEGMENT, &seg, sizeof seg);
    if (m.msg_controllen == 0)
        m.msg_control = NULL;
    for (;;) {
        if (sendmsg(u->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            return 0;
        if (errno != EINTR)
            return errno;
    }
}

unsigned masque_udp_send(struct masque_udp *u, const struct sockaddr_in6 *remote,
                         const struct sockaddr_in6 *local, uint8_t ecn, const uint8_t *data, size_t len,
                         size_t seg)
{
    struct sockaddr_in6 to = *remote;
    uint8_t *p = (uint8_t *)(uintptr_t)data; /* sendmsg takes iovecs without const and does not write */
    if (u->gso && len > seg) {
        int e = send_one(u, &to, local, ecn, (struct iovec){p, len}, (uint16_t)seg);
        if (e == 0)
            return 0;
        if (e == EAGAIN || e == ENOBUFS || e == ECONNREFUSED || e == ENETUNREACH || e == EHOSTUNREACH)
            return (unsigned)((len + seg - 1) / seg);
        if (e == EIO || e == EINVAL || e == EOPNOTSUPP || e == ENOPROTOOPT)
            u->gso = false; /* the interface or kernel cannot; one by one from now on */
    }
    unsigned lost = 0;
    for (size_t at = 0; at < len; at += seg) {
        size_t n = len - at < seg ? len - at : seg;
        if (send_one(u, &to, local, ecn, (struct iovec){p + at, n}, 0) != 0)
            lost++;
    }
    return lost;
}
