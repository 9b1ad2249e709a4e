/* SPDX-License-Identifier: Apache-2.0
 *
 * A TUN in memory, with the interface of tun/tun.h: what the agent's packet path writes is kept, what the
 * case puts in is read. The pass is checked as the real one does.
 */
#include "conf.h"

#include <stdlib.h>
#include <string.h>

enum { KEEP = 4096 };
struct tun {
    struct conf_pkt *in, *out;
    size_t n_in, at_in, n_out;
    unsigned put;
    uint8_t buf[TUN_HEADROOM + TUN_PACKET_MAX];
};
static struct tun only;
uint64_t conf_tun_denied;

struct tun *conf_tun(void)
{
    return &only;
}

void conf_tun_reset(void)
{
    free(only.in);
    free(only.out);
    memset(&only, 0, sizeof only);
    only.in = calloc(KEEP, sizeof *only.in);
    only.out = calloc(KEEP, sizeof *only.out);
    if (!only.in || !only.out)
        abort();
}

void conf_tun_put(const uint8_t *p, size_t n)
{
    if (only.n_in == KEEP || n > sizeof only.in->b)
        abort();
    memcpy(only.in[only.n_in].b, p, n);
    only.in[only.n_in++].n = n;
}

size_t conf_vpc_n(void)
{
    return only.n_out;
}

const struct conf_pkt *conf_vpc(size_t i)
{
    return i < only.n_out ? &only.out[i] : NULL;
}

int tun_open(struct tun **ret, const char *device, int mtu, struct base_err *err)
{
    *ret = &only;
    return BASE_OK;
}

struct tun *tun_free(struct tun *t)
{
    return NULL;
}

int tun_fd(const struct tun *t)
{
    return -1;
}

const char *tun_device(const struct tun *t)
{
    return "memory";
}

int tun_mtu(const struct tun *t)
{
    return CONF_PKT;
}

unsigned tun_queue_len(const struct tun *t)
{
    return KEEP;
}

int tun_read(struct tun *t, unsigned max, tun_packet_fn fn, void *arg, struct base_err *err)
{
    for (unsigned i = 0; i < max; i++) {
        if (t->at_in == t->n_in)
            return BASE_EAGAIN;
        const struct conf_pkt *p = &t->in[t->at_in++];
        memcpy(t->buf + TUN_HEADROOM, p->b, p->n);
        if (fn)
            fn(arg, t->buf + TUN_HEADROOM, p->n);
    }
    return BASE_OK;
}

int tun_write(struct tun *t, const struct fence_pass *pass, uint8_t *pkt, size_t len, struct base_err *err)
{
    memset(pkt - TUN_HEADROOM, 0, TUN_HEADROOM);
    if (!fence_recheck(pass, loop_clock())) {
        conf_tun_denied++;
        return BASE_EDENIED;
    }
    if (t->n_out == KEEP)
        return BASE_EFULL;
    t->out[t->n_out].n = len < sizeof t->out->b ? len : sizeof t->out->b;
    memcpy(t->out[t->n_out].b, pkt, t->out[t->n_out].n);
    t->n_out++;
    return BASE_OK;
}

bool tun_offload(struct tun *t)
{
    return false;
}

int tun_put(struct tun *t, const struct fence_pass *pass, uint8_t *pkt, size_t len, struct base_err *err)
{
    int rc = tun_write(t, pass, pkt, len, err);
    t->put += rc == BASE_OK;
    return rc;
}

int tun_flush(struct tun *t, struct tun_flushed *ret, struct base_err *err)
{
    *ret = (struct tun_flushed){.sent = t->put};
    t->put = 0;
    return BASE_OK;
}

unsigned tun_discard(struct tun *t)
{
    return 0;
}
