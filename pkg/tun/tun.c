/* SPDX-License-Identifier: Apache-2.0 */
#include "tun/tun.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "fence/fence.h"
#include "loop/loop.h"
#include "tun/link.h"
#include "tun/offload.h"

#define TUN_NODE "/dev/net/tun"
#ifndef TUN_F_USO4 /* Linux 6.2; older headers do not have them */
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

enum {
    FLAGS = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR | IFF_MULTI_QUEUE,
    FLAGS_CHECKED = FLAGS | IFF_TAP | IFF_NAPI | IFF_NAPI_FRAGS,
    QUEUE_LEN_DEFAULT = 500,
};

_Static_assert((int)TUN_OFFLOAD_HEADER == (int)TUN_HEADROOM, "the header is what stands before a packet");

struct tun {
    int fd;
    int mtu;
    unsigned queue_len;
    char device[IFNAMSIZ];
    bool offload;                  /* super-packets may come */
    bool single;                   /* the kernel takes none from us */
    struct tun_run run;            /* what tun_put holds back until tun_flush */
    const struct fence_pass *pass; /* of all that is in the run */
    struct tun_flushed direct;     /* what tun_put wrote at once */
    uint8_t buf[TUN_HEADROOM + TUN_PACKET_MAX];
    uint8_t out[TUN_HEADROOM + TUN_RUN_BYTES];
};

static int check_name(const char *device, struct base_err *err)
{
    size_t n = strlen(device);

    /* TUNSETIFF takes '%d' as "make me one": names are checked before they get there. */
    if (n < 3 || n >= IFNAMSIZ || device[0] != 'h' || device[1] != 'f' ||
        strspn(device, "abcdefghijklmnopqrstuvwxyz0123456789") != n)
        return base_err_set(
            err, BASE_EINVAL,
            "device '%s' is no name that the foundation gives ('hf' and 8 hexadecimal digits): check "
            "HostAttachment status.device",
            device);
    return BASE_OK;
}

static int get_link(struct tun_link *l, const char *device, struct base_err *err)
{
    int rc = tun_link_get(l, device, err);

    if (rc != BASE_ENOTFOUND)
        return rc;
    return base_err_set(
        err, BASE_EDENIED,
        "TUN device '%s' does not exist in this network namespace: the foundation makes it; check that "
        "the foundation runs, and that the agent's pod has hostNetwork: true",
        device);
}

/* Says in words what TUNSETIFF would answer with EPERM or EINVAL, or would silently change on the device. */
static int check_link(const struct tun_link *l, const char *device, int mtu, struct base_err *err)
{
    if (!l->is_tun)
        return base_err_set(err, BASE_EINVAL,
                            "device '%s' is not a TUN device: check HostAttachment status.device", device);
    if (!l->has_owner)
        return base_err_set(
            err, BASE_EDENIED,
            "TUN device '%s' has no owner, so anybody could attach to it: the foundation must set the owner "
            "to uid %u",
            device, (unsigned)geteuid());
    if (l->owner != geteuid())
        return base_err_set(
            err, BASE_EDENIED,
            "TUN device '%s' belongs to uid %u, but this process is uid %u: run the agent as that user, or "
            "let the foundation set this owner",
            device, (unsigned)l->owner, (unsigned)geteuid());
    if (!l->no_pi || !l->vnet_hdr || !l->multi_queue)
        return base_err_set(
            err, BASE_EINVAL,
            "TUN device '%s' has other flags than the foundation makes (no_pi %s, vnet_hdr %s, multi_queue "
            "%s; all must be on): opening it would change the device for everybody; the foundation must "
            "make it anew",
            device, l->no_pi ? "on" : "off", l->vnet_hdr ? "on" : "off", l->multi_queue ? "on" : "off");
    if (mtu < TUN_MTU_MIN || l->mtu != (uint32_t)mtu)
        return base_err_set(
            err, BASE_EINVAL,
            "TUN device '%s' has MTU %u, the foundation says %d: both must be the same and at least %d; "
            "check HostAttachment status.mtu",
            device, (unsigned)l->mtu, mtu, TUN_MTU_MIN);
    if (!l->up)
        return base_err_set(
            err, BASE_EIO, "TUN device '%s' is down: the foundation sets it up before it says Ready", device);
    return BASE_OK;
}

static int open_node(struct base_err *err)
{
    int fd = open(TUN_NODE, O_RDWR | O_NONBLOCK | O_CLOEXEC), e = errno;

    if (fd >= 0)
        return fd;
    switch (e) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
        return base_err_sys(
            err, BASE_EIO, e,
            "cannot open %s: load the kernel module 'tun' and give the pod the device (hostPath of type "
            "CharDevice, or a device plugin)",
            TUN_NODE);
    case EACCES:
        return base_err_sys(err, BASE_EIO, e,
                            "cannot open %s: its mode does not let uid %u in; make it 0666 (as udev does)",
                            TUN_NODE, (unsigned)geteuid());
    case EPERM:
        return base_err_sys(
            err, BASE_EIO, e,
            "cannot open %s: the pod's device cgroup forbids it; use a device plugin, or another runtime "
            "(runc 1.2.0-1.2.3 and crun 1.8 refuse a hostPath device)",
            TUN_NODE);
    default:
        return base_err_sys(err, BASE_EIO, e, "cannot open %s", TUN_NODE);
    }
}

static int attach(struct tun *t, const struct tun_link *before, struct base_err *err)
{
    struct tun_link after;
    struct ifreq rq;
    int size = TUN_HEADROOM, rc;

    memset(&rq, 0, sizeof rq);
    memcpy(rq.ifr_name, t->device, sizeof rq.ifr_name);
    rq.ifr_flags = (short)FLAGS;
    if (ioctl(t->fd, TUNSETIFF, &rq) < 0) {
        int e = errno;

        return base_err_sys(err,
                            e == EPERM    ? BASE_EDENIED
                            : e == EINVAL ? BASE_EINVAL
                                          : BASE_EIO,
                            e, "cannot attach to TUN device '%s': it was %s", t->device,
                            e == EPERM    ? "removed, or given to another owner, a moment ago"
                            : e == EINVAL ? "made without multi_queue"
                            : e == E2BIG
                                ? "opened more than 256 times already; is another agent running here?"
                                : "refused by the kernel");
    }
    /* Did we get the device that was there before? A process with more rights than it should have would have
     * created one if the old one vanished in between; it goes away again with the descriptor. */
    rc = get_link(&after, t->device, err);
    if (rc < 0)
        return rc;
    memset(&rq, 0, sizeof rq);
    if (ioctl(t->fd, TUNGETIFF, &rq) < 0)
        return base_err_sys(err, BASE_EIO, errno, "TUN device '%s': reading its flags", t->device);
    if (after.index != before->index || memcmp(rq.ifr_name, t->device, strlen(t->device) + 1) != 0)
        return base_err_set(err, BASE_EIO,
                            "TUN device '%s' was replaced while it was being opened: try again", t->device);
    if (((unsigned short)rq.ifr_flags & FLAGS_CHECKED) != FLAGS)
        return base_err_set(err, BASE_EINVAL,
                            "TUN device '%s' has flags 0x%x, expected 0x%x: the foundation must make it anew",
                            t->device, (unsigned)(unsigned short)rq.ifr_flags, (unsigned)FLAGS);
    if (ioctl(t->fd, TUNSETVNETHDRSZ, &size) < 0)
        return base_err_sys(err, BASE_EIO, errno, "TUN device '%s': setting the header size", t->device);
    /* An earlier holder may have left offloads on; then super-packets would arrive that nobody here cuts. */
    if (ioctl(t->fd, TUNSETOFFLOAD, 0) < 0)
        return base_err_sys(err, BASE_EIO, errno, "TUN device '%s': switching offloads off", t->device);
    return BASE_OK;
}

int tun_open(struct tun **ret, const char *device, int mtu, struct base_err *err)
{
    base_cleanup(tun_freep) struct tun *t = NULL;
    struct tun_link before;
    int rc;

    if ((rc = check_name(device, err)) < 0 || (rc = get_link(&before, device, err)) < 0 ||
        (rc = check_link(&before, device, mtu, err)) < 0)
        return rc;
    t = base_calloc(1, sizeof *t);
    if (!t)
        return base_err_set(err, BASE_ENOMEM, "no memory for TUN device '%s'", device);
    t->mtu = mtu;
    t->queue_len = before.queue_len ? before.queue_len : QUEUE_LEN_DEFAULT;
    (void)base_copy(t->device, sizeof t->device, device);
    t->fd = open_node(err);
    if (t->fd < 0)
        return BASE_EIO;
    rc = attach(t, &before, err);
    if (rc < 0)
        return rc;
    t->run.pkt = t->out + TUN_HEADROOM;
    *ret = BASE_TAKE(t);
    return BASE_OK;
}

bool tun_offload(struct tun *t)
{
    /* Before Linux 6.2 there are no UDP super-packets; TCP's are older than every kernel we run on. */
    if (ioctl(t->fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO6 | TUN_F_USO4 | TUN_F_USO6) == 0 ||
        ioctl(t->fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO6) == 0)
        t->offload = true;
    return t->offload;
}

struct tun *tun_free(struct tun *t)
{
    if (!t)
        return NULL;
    if (t->fd >= 0)
        (void)close(t->fd);
    return base_free(t);
}

int tun_fd(const struct tun *t)
{
    return t->fd;
}

const char *tun_device(const struct tun *t)
{
    return t->device;
}

int tun_mtu(const struct tun *t)
{
    return t->mtu;
}

unsigned tun_queue_len(const struct tun *t)
{
    return t->queue_len;
}

static bool is_lost(int e)
{
    return e == EBADFD || e == EIO || e == EFAULT || e == ENODEV;
}

static int lost(const struct tun *t, int e, struct base_err *err)
{
    return base_err_sys(err, BASE_ECLOSED, e, "TUN device '%s' is gone", t->device);
}

int tun_read(struct tun *t, unsigned max, tun_packet_fn fn, void *arg, struct base_err *err)
{
    for (unsigned i = 0; i < max; i++) {
        ssize_t n = read(t->fd, t->buf, sizeof t->buf);

        if (n < 0) {
            int e = errno;

            if (e == EINTR)
                continue;
            if (e == EAGAIN)
                return BASE_EAGAIN;
            if (is_lost(e))
                return lost(t, e, err);
            continue; /* one packet that the kernel could not copy */
        }
        if ((size_t)n <= TUN_HEADROOM || !fn)
            continue;
        if (t->offload && tun_offload_is_super(t->buf))
            (void)tun_offload_cut(t->buf, (size_t)n - TUN_HEADROOM, fn, arg);
        else if (tun_offload_finish(t->buf, (size_t)n - TUN_HEADROOM))
            fn(arg, t->buf + TUN_HEADROOM, (size_t)n - TUN_HEADROOM);
    }
    return BASE_OK;
}

/* `buf` begins with the virtio header. */
static int write_out(struct tun *t, const struct fence_pass *pass, const uint8_t *buf, size_t len,
                     struct base_err *err)
{
    ssize_t n;

    do {
        if (!fence_recheck(pass, loop_clock()))
            return BASE_EDENIED;
        n = write(t->fd, buf, len);
    } while (n < 0 && errno == EINTR);
    if (n >= 0)
        return BASE_OK;
    if (is_lost(errno))
        return lost(t, errno, err);
    return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ? BASE_EFULL : BASE_EINVAL;
}

int tun_write(struct tun *t, const struct fence_pass *pass, uint8_t *pkt, size_t len, struct base_err *err)
{
    memset(pkt - TUN_HEADROOM, 0, TUN_HEADROOM);
    return write_out(t, pass, pkt - TUN_HEADROOM, len + TUN_HEADROOM, err);
}

int tun_put(struct tun *t, const struct fence_pass *pass, uint8_t *pkt, size_t len, struct base_err *err)
{
    if (!pass)
        return BASE_EDENIED;
    if (!t->offload || t->single || len == 0 || len > TUN_RUN_BYTES) {
        int rc = t->run.n > 0 ? BASE_EAGAIN : tun_write(t, pass, pkt, len, err);

        if (rc == BASE_OK) {
            t->direct.sent++;
            t->direct.bytes += len;
        }
        return rc;
    }
    if ((t->run.n > 0 && t->pass != pass) || !tun_run_add(&t->run, pkt, len))
        return BASE_EAGAIN;
    t->pass = pass;
    return BASE_OK;
}

struct one_by_one {
    struct tun *t;
    const struct fence_pass *pass;
    struct base_err *err;
    struct tun_flushed *ret;
    int rc;
};

static void write_one(void *arg, uint8_t *pkt, size_t len)
{
    struct one_by_one *o = arg;
    int rc = o->rc == BASE_ECLOSED ? BASE_ECLOSED : tun_write(o->t, o->pass, pkt, len, o->err);

    if (rc == BASE_OK) {
        o->ret->sent++;
        o->ret->bytes += len;
    } else {
        o->ret->lost++;
    }
    o->rc = rc < 0 ? rc : o->rc;
}

int tun_flush(struct tun *t, struct tun_flushed *ret, struct base_err *err)
{
    struct tun_run *r = &t->run;
    int rc;

    *ret = t->direct;
    t->direct = (struct tun_flushed){0};
    if (r->n == 0)
        return BASE_OK;
    tun_run_finish(r);
    rc = write_out(t, t->pass, t->out, r->len + TUN_HEADROOM, err);
    if (rc == BASE_EINVAL && r->n > 1) {
        /* A kernel that knows no such super-packets: cut again, and not put together any more. */
        struct one_by_one o = {t, t->pass, err, ret, BASE_OK};

        t->single = true;
        (void)tun_offload_cut(t->out, r->len, write_one, &o);
        rc = o.rc;
    } else if (rc == BASE_OK) {
        ret->sent += r->n;
        ret->bytes += r->len + (r->n - 1) * r->head;
    } else {
        ret->lost += r->n;
    }
    r->n = 0;
    t->pass = NULL;
    return rc;
}

unsigned tun_discard(struct tun *t)
{
    unsigned n = t->run.n;

    t->run.n = 0;
    t->pass = NULL;
    return n;
}
