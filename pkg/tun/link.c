/* SPDX-License-Identifier: Apache-2.0 */
#include "tun/link.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

/* Next attribute of [*at, end) with its payload, or false. Attributes are 4-byte aligned; lengths are
 * checked. */
struct attr {
    uint16_t type;
    const uint8_t *data;
    size_t len;
};
static bool next_attr(const uint8_t **at, const uint8_t *end, struct attr *ret)
{
    struct rtattr h;
    size_t left = (size_t)(end - *at), step;

    if (left < sizeof h)
        return false;
    memcpy(&h, *at, sizeof h);
    if (h.rta_len < sizeof h || h.rta_len > left)
        return false;
    *ret = (struct attr){(uint16_t)(h.rta_type & NLA_TYPE_MASK), *at + sizeof h, h.rta_len - sizeof h};
    step = RTA_ALIGN(h.rta_len);
    *at += step < left ? step : left;
    return true;
}

static uint32_t u32(const struct attr *a)
{
    uint32_t v = 0;

    if (a->len >= sizeof v)
        memcpy(&v, a->data, sizeof v);
    return v;
}

static bool flag(const struct attr *a)
{
    return a->len >= 1 && a->data[0] != 0;
}

static void read_tun(struct tun_link *ret, const uint8_t *at, const uint8_t *end)
{
    struct attr a;

    while (next_attr(&at, end, &a)) {
        switch (a.type) {
        case IFLA_TUN_OWNER:
            ret->has_owner = true;
            ret->owner = u32(&a);
            break;
        case IFLA_TUN_TYPE:
            ret->is_tun = a.len >= 1 && a.data[0] == IFF_TUN;
            break;
        case IFLA_TUN_PI:
            ret->no_pi = !flag(&a);
            break;
        case IFLA_TUN_VNET_HDR:
            ret->vnet_hdr = flag(&a);
            break;
        case IFLA_TUN_PERSIST:
            ret->persist = flag(&a);
            break;
        case IFLA_TUN_MULTI_QUEUE:
            ret->multi_queue = flag(&a);
            break;
        default:
            break;
        }
    }
}

static void read_info(struct tun_link *ret, const uint8_t *at, const uint8_t *end)
{
    struct attr a, data = {0};
    bool tun = false;

    while (next_attr(&at, end, &a)) {
        if (a.type == IFLA_INFO_KIND)
            tun = a.len >= 3 && memcmp(a.data, "tun", 3) == 0 && (a.len == 3 || a.data[3] == '\0');
        else if (a.type == IFLA_INFO_DATA)
            data = a;
    }
    if (tun && data.data)
        read_tun(ret, data.data, data.data + data.len);
}

static void read_link(struct tun_link *ret, const struct ifinfomsg *ifi, const uint8_t *at,
                      const uint8_t *end)
{
    struct attr a;

    ret->index = ifi->ifi_index;
    ret->up = (ifi->ifi_flags & IFF_UP) != 0;
    while (next_attr(&at, end, &a)) {
        if (a.type == IFLA_MTU)
            ret->mtu = u32(&a);
        else if (a.type == IFLA_TXQLEN)
            ret->queue_len = u32(&a);
        else if (a.type == IFLA_LINKINFO)
            read_info(ret, a.data, a.data + a.len);
    }
}

static ssize_t ask(int fd, const char *device, uint8_t *buf, size_t cap)
{
    struct {
        struct nlmsghdr h;
        struct ifinfomsg ifi;
        struct rtattr name;
        char text[IFNAMSIZ];
    } rq;
    size_t n = strlen(device) + 1;
    const struct timeval patience = {.tv_sec = 5};

    memset(&rq, 0, sizeof rq);
    rq.h.nlmsg_type = RTM_GETLINK;
    rq.h.nlmsg_flags = NLM_F_REQUEST;
    rq.name.rta_type = IFLA_IFNAME;
    rq.name.rta_len = (unsigned short)RTA_LENGTH(n);
    memcpy(rq.text, device, n);
    rq.h.nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof rq.ifi) + RTA_ALIGN(rq.name.rta_len));
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        send(fd, &rq, rq.h.nlmsg_len, 0) < 0)
        return -1;
    return recv(fd, buf, cap, 0);
}

int tun_link_get(struct tun_link *ret, const char *device, struct base_err *err)
{
    base_cleanup(close_fd) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    uint8_t buf[16384];
    struct nlmsghdr h;
    struct nlmsgerr e;
    struct ifinfomsg ifi;
    ssize_t n;

    memset(ret, 0, sizeof *ret);
    if (strlen(device) >= IFNAMSIZ)
        return base_err_set(err, BASE_EINVAL, "device name '%s' is longer than %d characters", device,
                            IFNAMSIZ - 1);
    if (fd < 0)
        return base_err_sys(err, BASE_EIO, errno, "rtnetlink socket");
    n = ask(fd, device, buf, sizeof buf);
    if (n < 0)
        return base_err_sys(err, BASE_EIO, errno, "rtnetlink: asking for device '%s'", device);
    if ((size_t)n < sizeof h)
        return base_err_set(err, BASE_EPROTO, "rtnetlink: answer of %zd bytes about device '%s'", n, device);
    memcpy(&h, buf, sizeof h);
    if (h.nlmsg_type == NLMSG_ERROR && (size_t)n >= NLMSG_HDRLEN + sizeof e) {
        memcpy(&e, buf + NLMSG_HDRLEN, sizeof e);
        if (e.error == -ENODEV)
            return base_err_sys(err, BASE_ENOTFOUND, ENODEV, "device '%s'", device);
        return base_err_sys(err, BASE_EIO, -e.error, "rtnetlink: device '%s'", device);
    }
    if (h.nlmsg_type != RTM_NEWLINK || h.nlmsg_len > (size_t)n || h.nlmsg_len < NLMSG_LENGTH(sizeof ifi))
        return base_err_set(err, BASE_EPROTO, "rtnetlink: unexpected answer of type %u about device '%s'",
                            h.nlmsg_type, device);
    memcpy(&ifi, buf + NLMSG_HDRLEN, sizeof ifi);
    read_link(ret, &ifi, buf + NLMSG_SPACE(sizeof ifi), buf + h.nlmsg_len);
    return BASE_OK;
}
