/* SPDX-License-Identifier: Apache-2.0
 *
 * stall.c - what cannot be had from outside: the data thread stands still within one iteration, right after
 * it has taken a packet in (ptrace stops it anywhere), and a kernel that knows no super-packets. The calls
 * are wrapped (ld --wrap) in this test's binary, and nowhere else.
 */
#include <errno.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "agent/data_int.h"
#include "rig.h"
#include "tun/tun.h"

static _Atomic base_time stall_up, stall_down, stall_post, stall_admit;
static atomic_uint fail_thread;
static atomic_bool offload, old_kernel;
static atomic_uint refused;

void rig_stall(bool up, base_time d)
{
    atomic_store(up ? &stall_up : &stall_down, d);
}
bool rig_stalled(void)
{
    return atomic_load(&stall_up) == 0 && atomic_load(&stall_down) == 0 && atomic_load(&stall_post) == 0 &&
           atomic_load(&stall_admit) == 0;
}
bool rig_tun_collects(void)
{
    return atomic_load(&offload);
}

void rig_old_kernel(bool is)
{
    atomic_store(&old_kernel, is);
}
unsigned rig_kernel_refused(void)
{
    return atomic_load(&refused);
}

void rig_stall_post(base_time d)
{
    atomic_store(&stall_post, d);
}
void rig_stall_admit(base_time d)
{
    atomic_store(&stall_admit, d);
}
void rig_fail_thread(unsigned n)
{
    atomic_store(&fail_thread, n);
}

ssize_t __real_write(int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
    enum { GSO_TYPE = 1 }; /* in the virtio_net_hdr */
    struct ifreq rq;

    if (!atomic_load(&old_kernel) || len <= TUN_HEADROOM || ((const uint8_t *)buf)[GSO_TYPE] == 0 ||
        ioctl(fd, TUNGETIFF, &rq) < 0)
        return __real_write(fd, buf, len);
    atomic_fetch_add(&refused, 1);
    errno = EINVAL;
    return -1;
}

static void stand_still(_Atomic base_time *how_long)
{
    base_time d = atomic_exchange(how_long, 0);
    struct timespec ts = {.tv_sec = d / BASE_SEC, .tv_nsec = d % BASE_SEC};

    if (d > 0)
        (void)nanosleep(&ts, NULL);
}

bool __real_tun_offload(struct tun *t);
bool __wrap_tun_offload(struct tun *t);
bool __wrap_tun_offload(struct tun *t)
{
    bool is = __real_tun_offload(t);

    atomic_store(&offload, is);
    return is;
}

int __real_tun_put(struct tun *t, const struct fence_pass *pass, uint8_t *pkt, size_t len,
                   struct base_err *err);
int __wrap_tun_put(struct tun *t, const struct fence_pass *pass, uint8_t *pkt, size_t len,
                   struct base_err *err);
int __wrap_tun_put(struct tun *t, const struct fence_pass *pass, uint8_t *pkt, size_t len,
                   struct base_err *err)
{
    int rc = __real_tun_put(t, pass, pkt, len, err);

    stand_still(&stall_up);
    return rc;
}

int __real_masque_endpoint_send(struct masque_endpoint *e, uint64_t flow, const struct fence_pass *pass,
                                uint8_t *pkt, size_t len);
int __wrap_masque_endpoint_send(struct masque_endpoint *e, uint64_t flow, const struct fence_pass *pass,
                                uint8_t *pkt, size_t len);
int __wrap_masque_endpoint_send(struct masque_endpoint *e, uint64_t flow, const struct fence_pass *pass,
                                uint8_t *pkt, size_t len)
{
    int rc = __real_masque_endpoint_send(e, flow, pass, pkt, len);

    stand_still(&stall_down);
    return rc;
}

bool __real_agent_mail_post(struct agent_mail *m);
bool __wrap_agent_mail_post(struct agent_mail *m);
bool __wrap_agent_mail_post(struct agent_mail *m)
{
    stand_still(&stall_post);
    return __real_agent_mail_post(m);
}

const struct agent_admit *__real_agent_data_admit_next(struct agent_thread *d, base_time now);
const struct agent_admit *__wrap_agent_data_admit_next(struct agent_thread *d, base_time now);
const struct agent_admit *__wrap_agent_data_admit_next(struct agent_thread *d, base_time now)
{
    if (atomic_load(&d->sweeps_awaited))
        stand_still(&stall_admit);
    return __real_agent_data_admit_next(d, now);
}

int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    if (atomic_load(&fail_thread) > 0 && atomic_fetch_sub(&fail_thread, 1) == 1)
        return EAGAIN;
    return __real_pthread_create(ret, attr, fn, arg);
}
