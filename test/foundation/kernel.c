/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

#include "base/mem.h"
#include "gatemap.h"
#include "netlink.h"
#include "nft.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DEVICES_MAX 128
#define TUN_FLAGS (IFF_TUN | IFF_NO_PI | IFF_VNET_HDR | IFF_MULTI_QUEUE)

struct device {
    char name[CONTRACT_DEVICE_SIZE]; /* "" = free */
    unsigned ifindex;
    int keeper; /* a detached queue: the device outlives a provider that clears its persistence; -1 = none */
};

struct kernel {
    struct kernel_config cfg;
    struct gatemap *map;
    struct netlink *nl;
    int monitor;
    struct device devices[DEVICES_MAX];
};

static struct device *find(struct kernel *k, const char *name)
{
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        if (strcmp(k->devices[i].name, name) == 0)
            return &k->devices[i];
    return NULL;
}

static void release(struct device *d)
{
    if (d->keeper >= 0)
        close(d->keeper);
    memset(d, 0, sizeof *d);
    d->keeper = -1;
}

/* ---- devices ---- */
static int tun_attach(const struct kernel *k, const char *name, struct base_err *err)
{
    struct ifreq r;
    int fd = open(k->cfg.tun, O_RDWR | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return base_err_sys(err, BASE_EIO, errno, "--tun: cannot open '%s'; load the tun module", k->cfg.tun);
    memset(&r, 0, sizeof r);
    base_copy(r.ifr_name, sizeof r.ifr_name, name);
    r.ifr_flags = (short)TUN_FLAGS;
    if (ioctl(fd, TUNSETIFF, &r)) {
        int e = errno;

        close(fd);
        return base_err_sys(err, BASE_EIO, e, "tun: cannot attach to '%s'", name);
    }
    return fd;
}

/* Our queue takes no packets; it only keeps the device. */
static void detach(int fd)
{
    struct ifreq r;

    memset(&r, 0, sizeof r);
    r.ifr_flags = IFF_DETACH_QUEUE;
    (void)ioctl(fd, TUNSETQUEUE, &r);
}

static bool quiet_interface(const char *name)
{
    static const char *const off[] = {"accept_ra", "router_solicitations", "accept_dad"};
    char path[128];
    bool all = true;

    /* Less noise into the provider's queue; without effect on what may pass. */
    for (unsigned i = 0; i < BASE_LEN(off); i++) {
        int fd;

        base_fmt(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/%s", name, off[i]);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        all &= fd >= 0 && write(fd, "0", 1) == 1;
        if (fd >= 0)
            close(fd);
    }
    return all;
}

/* Order: the program on it before it has an owner, and before it is in the group and up. */
static int set_up(struct kernel *k, struct device *d, int mtu, struct base_err *err)
{
    int r;

    if (ioctl(d->keeper, TUNSETPERSIST, 1))
        return base_err_sys(err, BASE_EIO, errno, "tun: cannot make '%s' persistent", d->name);
    d->ifindex = if_nametoindex(d->name);
    if (!d->ifindex)
        return base_err_sys(err, BASE_EIO, errno, "tun: '%s' is gone again", d->name);
    r = gatemap_purge(k->map, d->ifindex, err);
    if (!r)
        r = gatemap_attach(k->map, d->ifindex, err);
    if (!r && ioctl(d->keeper, TUNSETOWNER, (unsigned long)k->cfg.tun_owner))
        r = base_err_sys(err, BASE_EIO, errno, "tun: cannot give '%s' to uid %u", d->name, k->cfg.tun_owner);
    if (!r)
        r = netlink_link_set(k->nl, d->ifindex, mtu, GATE_GROUP, false, err);
    if (!r) {
        (void)quiet_interface(d->name);
        r = netlink_link_set(k->nl, d->ifindex, mtu, GATE_GROUP, true, err);
    }
    if (!r)
        detach(d->keeper);
    return r;
}

int kernel_device_make(struct kernel *k, const char *name, int mtu, struct base_err *err)
{
    struct device *d;
    int r;

    if (if_nametoindex(name))
        return base_err_set(err, BASE_EEXIST,
                            "tun: there is an interface '%s' already, which this foundation did not make",
                            name);
    d = find(k, "");
    if (!d)
        return base_err_set(err, BASE_EFULL, "tun: more than %d devices", DEVICES_MAX);
    d->keeper = tun_attach(k, name, err);
    if (d->keeper < 0)
        return BASE_EIO;
    base_copy(d->name, sizeof d->name, name);
    r = set_up(k, d, mtu, err);
    if (r) {
        (void)ioctl(d->keeper, TUNSETPERSIST, 0); /* it goes with our descriptor */
        release(d);
    }
    return r;
}

int kernel_device_delete(struct kernel *k, const char *name, struct base_err *err)
{
    struct device *d = find(k, name);
    unsigned ifindex = if_nametoindex(name);
    int r = BASE_OK;

    if (ifindex)
        r = netlink_link_delete(k->nl, ifindex, err);
    if (r)
        return r;
    if (d) {
        (void)gatemap_purge(k->map, d->ifindex, NULL);
        release(d);
    }
    return BASE_OK;
}

/* Has it carrier, i.e. has somebody a queue of it? By ioctl: /sys may be another namespace's. */
static bool in_use(const char *name)
{
    struct ethtool_value link = {.cmd = ETHTOOL_GLINK};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r;
    bool yes;

    if (fd < 0)
        return false;
    memset(&r, 0, sizeof r);
    base_copy(r.ifr_name, sizeof r.ifr_name, name);
    r.ifr_data = (char *)&link;
    yes = ioctl(fd, SIOCETHTOOL, &r) == 0 && link.data != 0;
    close(fd);
    return yes;
}

/* A device of before. While its provider has it, no keeper is taken: between attaching and detaching, which
 * waits for the kernel's lock on links, packets would go into our queue and be lost. Such a provider can take
 * its own device away; that is news, and its instance gets another one. */
static void adopt(void *arg, const char *name, unsigned ifindex, bool gone)
{
    struct kernel *k = arg;
    struct device *d = find(k, "");

    (void)gone;
    if (!d || strlen(name) >= sizeof d->name)
        return;
    base_copy(d->name, sizeof d->name, name);
    d->ifindex = ifindex;
    /* A stranger that is no TUN of ours cannot be kept; it is reported all the same, and will be deleted. */
    d->keeper = in_use(name) ? -1 : tun_attach(k, name, NULL);
    if (d->keeper >= 0)
        detach(d->keeper);
    else
        d->keeper = -1;
}

/* Devices without records: the pinned maps were lost, and the programs on these devices ask maps that nobody
 * can reach any more. Everything goes before anything is accepted (contract section 8, "Restart"). */
static int start_over(struct kernel *k, struct base_err *err)
{
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        struct device *d = &k->devices[i];
        int r = d->name[0] ? netlink_link_delete(k->nl, d->ifindex, err) : BASE_OK;

        if (r)
            return r;
        release(d);
    }
    return netlink_route_flush(k->nl, k->cfg.table, KERNEL_PROTOCOL, err);
}

/* ---- start ---- */
static int forwarding(struct base_err *err)
{
    static const char path[] = "/proc/sys/net/ipv6/conf/all/forwarding";
    char was = '0';
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool ok;

    if (fd < 0) { /* a read-only /proc will do when somebody else has set it */
        fd = open(path, O_RDONLY | O_CLOEXEC);
        ok = fd >= 0 && read(fd, &was, 1) == 1 && was != '0';
    } else {
        ok = read(fd, &was, 1) == 1 && (was != '0' || pwrite(fd, "1", 1, 0) == 1);
    }
    if (fd >= 0)
        close(fd);
    return ok ? BASE_OK
              : base_err_set(
                    err, BASE_EDENIED,
                    "cannot switch IPv6 forwarding on; run: sysctl -w net.ipv6.conf.all.forwarding=1");
}

int kernel_new(struct kernel **ret, const struct kernel_config *cfg, struct base_err *err)
{
    struct kernel *k = base_calloc(1, sizeof *k);
    int r;

    if (!k)
        return base_err_set(err, BASE_ENOMEM, "no memory for the kernel's side");
    k->cfg = *cfg;
    k->monitor = -1;
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        k->devices[i].keeper = -1;
    r = nft_default_drop(err);
    if (!r)
        r = gatemap_new(&k->map, cfg->bpffs, err);
    if (!r)
        r = netlink_new(&k->nl, err);
    if (!r)
        r = netlink_monitor_new(&k->monitor, err);
    if (!r)
        r = netlink_link_list(k->nl, "hf", adopt, k, err);
    if (!r && gatemap_empty(k->map))
        r = start_over(k, err);
    if (!r)
        r = forwarding(err);
    if (r) {
        kernel_free(k);
        return r;
    }
    *ret = k;
    return BASE_OK;
}

struct kernel *kernel_free(struct kernel *k)
{
    if (!k)
        return NULL;
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        release(&k->devices[i]);
    if (k->monitor >= 0)
        close(k->monitor);
    netlink_free(k->nl);
    gatemap_free(k->map);
    return base_free(k);
}

struct restore {
    struct kernel *k;
    kernel_gate_fn gate;
    void *arg;
};

static void restore_gate(void *arg, unsigned ifindex, const struct fnd_gate *g)
{
    struct restore *r = arg;
    struct fnd_gate found = *g;

    for (unsigned i = 0; i < DEVICES_MAX; i++)
        if (r->k->devices[i].name[0] && r->k->devices[i].ifindex == ifindex) {
            base_copy(found.device, sizeof found.device, r->k->devices[i].name);
            r->gate(r->arg, &found);
            return;
        }
    /* Its device is gone: the number may come back as another device's. */
    (void)gatemap_shut(r->k->map, ifindex, &g->prefix, NULL);
    r->gate(r->arg, &found);
}

void kernel_restore(struct kernel *k, kernel_record_fn record, kernel_gate_fn gate, kernel_device_fn device,
                    void *arg)
{
    struct restore r = {.k = k, .gate = gate, .arg = arg};

    gatemap_each_record(k->map, record, arg);
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        if (k->devices[i].name[0])
            device(arg, k->devices[i].name, true);
    gatemap_each_gate(k->map, restore_gate, &r);
}

/* ---- effects ---- */
int kernel_gate(struct kernel *k, const struct fnd_gate *g, struct base_err *err)
{
    const struct device *d = g->device[0] ? find(k, g->device) : NULL;
    int r = BASE_OK;

    if (g->deadline) {
        if (!d)
            return base_err_set(err, BASE_ENOTFOUND, "gate: no device '%s'", g->device);
        return gatemap_set(k->map, d->ifindex, g, err);
    }
    if (d)
        r = gatemap_shut(k->map, d->ifindex, &g->prefix, err);
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        int one = BASE_OK;

        if (k->devices[i].name[0] && &k->devices[i] != d)
            one = gatemap_shut(k->map, k->devices[i].ifindex, &g->prefix, err);
        if (one)
            r = one;
    }
    return r;
}

int kernel_record(struct kernel *k, const struct fnd_record *r, struct base_err *err)
{
    return gatemap_record(k->map, r, err);
}

int kernel_forget(struct kernel *k, const struct base_uuid *uid, struct base_err *err)
{
    return gatemap_forget(k->map, uid, err);
}

static struct netlink_route published(const struct kernel_config *cfg, const struct base_prefix *p,
                                      uint32_t metric)
{
    return (struct netlink_route){
        .prefix = *p, .table = cfg->table, .metric = metric, .protocol = KERNEL_PROTOCOL};
}

static struct netlink_route local_route(const struct base_prefix *p, unsigned ifindex)
{
    return (struct netlink_route){.prefix = *p,
                                  .table = 254, /* main */
                                  .metric = 1024,
                                  .protocol = KERNEL_PROTOCOL,
                                  .ifindex = ifindex};
}

/* BIRD makes MED 2^32-1-metric of it, so the metric is the epoch; 0 would mean "default" to the kernel. */
static uint32_t metric_of(int64_t epoch)
{
    return epoch < 1 ? 1 : epoch > 4294967294 ? 4294967294u : (uint32_t)epoch;
}

static int withdraw(struct gatemap *map, struct netlink *nl, const struct kernel_config *cfg,
                    const struct base_prefix *p, const struct route_value *v, struct base_err *err)
{
    struct netlink_route far = published(cfg, p, v->metric), near = local_route(p, v->ifindex);
    int r = netlink_route_delete(nl, &far, err), r2 = BASE_OK;

    if (v->ifindex)
        r2 = netlink_route_delete(nl, &near, err); /* gone with its device: a success */
    if (!r && !r2)
        (void)gatemap_route_drop(map, p);
    return r ? r : r2;
}

static base_time boottime(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * BASE_SEC + t.tv_nsec;
}

int kernel_publish(struct kernel *k, const struct fnd_gate *g, base_time until, struct base_err *err)
{
    const struct device *d = find(k, g->device);
    struct route_value v = {.until = (uint64_t)until, .metric = metric_of(g->epoch)}, was;
    bool there = gatemap_route_get(k->map, &g->prefix, &was) == BASE_OK;
    struct netlink_route far, near;
    int r;

    if (!d || !g->device[0])
        return base_err_set(err, BASE_ENOTFOUND, "route: no device '%s'", g->device);
    v.ifindex = d->ifindex;
    if (there && (was.metric != v.metric || was.ifindex != v.ifindex)) {
        r = withdraw(k->map, k->nl, &k->cfg, &g->prefix, &was, err);
        if (r)
            return r;
    }
    /* The limit first: what is published is known to the watchdog. */
    r = gatemap_route_set(k->map, &g->prefix, &v, err);
    if (r ||
        (there && was.metric == v.metric && was.ifindex == v.ifindex && (base_time)was.until > boottime()))
        return r;
    near = local_route(&g->prefix, d->ifindex);
    far = published(&k->cfg, &g->prefix, v.metric);
    r = netlink_route_add(k->nl, &near, err);
    return r ? r : netlink_route_add(k->nl, &far, err);
}

int kernel_withdraw(struct kernel *k, const struct base_prefix *prefix, struct base_err *err)
{
    struct route_value v;

    if (gatemap_route_get(k->map, prefix, &v))
        return BASE_OK; /* never published, or withdrawn by the watchdog */
    return withdraw(k->map, k->nl, &k->cfg, prefix, &v, err);
}

int kernel_monitor_fd(const struct kernel *k)
{
    return k->monitor;
}

struct news {
    struct kernel *k;
    kernel_device_fn device;
    void *arg;
};

static void news_one(void *arg, const char *name, unsigned ifindex, bool gone)
{
    struct news *n = arg;
    struct device *d = strlen(name) < CONTRACT_DEVICE_SIZE ? find(n->k, name) : NULL;

    if (!gone || !d || d->ifindex != ifindex)
        return; /* our own deletions have released theirs already */
    (void)gatemap_purge(n->k->map, ifindex, NULL);
    release(d);
    n->device(n->arg, name, false);
}

void kernel_news(struct kernel *k, kernel_device_fn device, void *arg)
{
    struct news n = {.k = k, .device = device, .arg = arg};

    netlink_monitor_read(k->monitor, "hf", news_one, &n);
}

/* ---- watchdog ---- */
struct kernel_watch {
    struct kernel_config cfg;
    struct gatemap *map;
    struct netlink *nl;
    base_time now;
    unsigned left, withdrawn;
};

int kernel_watch_new(struct kernel_watch **ret, const struct kernel_config *cfg, struct base_err *err)
{
    struct kernel_watch *w = base_calloc(1, sizeof *w);
    int r;

    if (!w)
        return base_err_set(err, BASE_ENOMEM, "watchdog: no memory");
    w->cfg = *cfg;
    r = gatemap_new(&w->map, cfg->bpffs, err);
    if (!r)
        r = netlink_new(&w->nl, err);
    if (r) {
        kernel_watch_free(w);
        return r;
    }
    *ret = w;
    return BASE_OK;
}

struct kernel_watch *kernel_watch_free(struct kernel_watch *w)
{
    if (!w)
        return NULL;
    netlink_free(w->nl);
    gatemap_free(w->map);
    return base_free(w);
}

static void watch_one(void *arg, const struct base_prefix *prefix, const struct route_value *v)
{
    struct kernel_watch *w = arg;

    if ((base_time)v->until > w->now) {
        w->left++;
        return;
    }
    if (withdraw(w->map, w->nl, &w->cfg, prefix, v, NULL))
        w->left++;
    else
        w->withdrawn++;
}

unsigned kernel_watch_pass(struct kernel_watch *w, base_time now, unsigned *ret_withdrawn)
{
    w->now = now;
    w->left = w->withdrawn = 0;
    gatemap_each_route(w->map, watch_one, w);
    if (ret_withdrawn)
        *ret_withdrawn = w->withdrawn;
    return w->left;
}
