/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

/* head and tail only grow; the slot is the number modulo the size. Publishing one side's number and then
 * reading the other's must not be reordered on either side, or both could think that the other one acts (a
 * lost wake-up): hence sequentially consistent stores and loads there (not fences, which the thread sanitizer
 * does not follow). */
struct loop_ring {
    _Alignas(64) atomic_size_t head; /* consumer writes */
    _Alignas(64) atomic_size_t tail; /* producer writes */
    _Alignas(64) _Atomic uint64_t refused;
    size_t mask, msg_size;
    int fd;
    unsigned char *slots;
    void *block; /* the allocation that this struct lies in */
};

int loop_ring_new(struct loop_ring **ret, size_t slots, size_t msg_size, struct base_err *err)
{
    struct loop_ring *r;
    void *block;
    size_t n = 1;

    if (slots == 0 || slots > (size_t)1 << 24 || msg_size == 0 || msg_size > (size_t)1 << 20)
        return base_err_set(err, BASE_EINVAL,
                            "ring: %zu slots of %zu bytes; allowed are 1..2^24 slots of 1..2^20 bytes", slots,
                            msg_size);
    while (n < slots)
        n *= 2;
    block = base_calloc(1, sizeof *r + 64);
    if (!block)
        return base_err_set(err, BASE_ENOMEM, "ring: no memory");
    r = (struct loop_ring *)(((uintptr_t)block + 63) & ~(uintptr_t)63);
    r->block = block;
    r->mask = n - 1;
    r->msg_size = msg_size;
    r->slots = base_calloc(n, msg_size);
    if (!r->slots) {
        base_free(block);
        return base_err_set(err, BASE_ENOMEM, "ring: no memory for %zu slots", n);
    }
    r->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r->fd < 0) {
        int code = base_err_sys(err, BASE_EIO, errno, "ring: eventfd");

        base_free(r->slots);
        base_free(block);
        return code;
    }
    *ret = r;
    return BASE_OK;
}

struct loop_ring *loop_ring_free(struct loop_ring *r)
{
    if (!r)
        return NULL;
    (void)close(r->fd);
    base_free(r->slots);
    base_free(r->block);
    return NULL;
}

bool loop_ring_push(struct loop_ring *r, const void *msg)
{
    size_t t = atomic_load_explicit(&r->tail, memory_order_relaxed);

    if (t - atomic_load_explicit(&r->head, memory_order_acquire) > r->mask) {
        atomic_fetch_add_explicit(&r->refused, 1, memory_order_relaxed);
        return false;
    }
    memcpy(r->slots + (t & r->mask) * r->msg_size, msg, r->msg_size);
    atomic_store_explicit(&r->tail, t + 1, memory_order_seq_cst);
    if (atomic_load_explicit(&r->head, memory_order_seq_cst) == t) {
        static const uint64_t one = 1;
        ssize_t n;

        do
            n = write(r->fd, &one, sizeof one);
        while (n < 0 && errno == EINTR);
    }
    return true;
}

bool loop_ring_pop(struct loop_ring *r, void *msg)
{
    size_t h = atomic_load_explicit(&r->head, memory_order_relaxed);

    if (atomic_load_explicit(&r->tail, memory_order_seq_cst) == h)
        return false;
    memcpy(msg, r->slots + (h & r->mask) * r->msg_size, r->msg_size);
    atomic_store_explicit(&r->head, h + 1, memory_order_seq_cst);
    return true;
}

int loop_ring_fd(const struct loop_ring *r)
{
    return r->fd;
}

void loop_ring_drain_fd(struct loop_ring *r)
{
    uint64_t n;
    ssize_t k;

    do
        k = read(r->fd, &n, sizeof n);
    while (k < 0 && errno == EINTR);
}

uint64_t loop_ring_refused(const struct loop_ring *r)
{
    return atomic_load_explicit(&r->refused, memory_order_relaxed);
}
