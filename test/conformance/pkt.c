/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets for the cases, written byte by byte and checked with arithmetic of their own.
 */
#include "conf.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *conf_addr(unsigned n)
{
    static char text[8][32];
    (void)snprintf(text[n % 8], sizeof text[0], "fd12::1:0:%x:0:5", n);
    return text[n % 8];
}

static uint16_t sum16(const struct conf_pkt *p, size_t at, uint8_t proto)
{
    uint32_t s = (uint32_t)(p->n - at) + proto;
    for (size_t i = 8; i < 40; i++)
        s += i & 1 ? p->b[i] : (uint32_t)p->b[i] << 8;
    for (size_t i = at; i < p->n; i++)
        s += (i - at) & 1 ? p->b[i] : (uint32_t)p->b[i] << 8;
    while (s >> 16)
        s = (s & 0xffff) + (s >> 16);
    return (uint16_t)~s;
}

struct conf_pkt conf_raw(const char *src, const char *dst, uint8_t next, const void *p, size_t n)
{
    struct conf_pkt r = {.n = 40 + n};
    if (r.n > sizeof r.b)
        abort();
    r.b[0] = 0x60;
    r.b[4] = (uint8_t)(n >> 8);
    r.b[5] = (uint8_t)n;
    r.b[6] = next;
    r.b[7] = 64;
    if (inet_pton(AF_INET6, src, r.b + 8) != 1 || inet_pton(AF_INET6, dst, r.b + 24) != 1)
        abort();
    if (n > 0)
        memcpy(r.b + 40, p, n);
    return r;
}

struct conf_pkt conf_udp(const char *src, const char *dst, size_t size, uint8_t mark)
{
    uint8_t u[2008] = {0x1b, 0x58, 0x1b, 0x59};
    size_t n = size - 40;
    u[4] = (uint8_t)(n >> 8);
    u[5] = (uint8_t)n;
    for (size_t i = 8; i < n; i++)
        u[i] = (uint8_t)(i ^ mark);
    if (n > 8)
        u[8] = mark;
    struct conf_pkt r = conf_raw(src, dst, 17, u, n);
    uint16_t s = sum16(&r, 40, 17);
    r.b[46] = (uint8_t)(s >> 8);
    r.b[47] = (uint8_t)s;
    return r;
}

struct conf_pkt conf_echo(const char *src, const char *dst, size_t data)
{
    uint8_t u[2008] = {128, 0, 0, 0, 0x12, 0x34, 0, 1};
    for (size_t i = 8; i < 8 + data; i++)
        u[i] = (uint8_t)i;
    struct conf_pkt r = conf_raw(src, dst, 58, u, 8 + data);
    uint16_t s = sum16(&r, 40, 58);
    r.b[42] = (uint8_t)(s >> 8);
    r.b[43] = (uint8_t)s;
    return r;
}

void conf_hop(struct conf_pkt *p, uint8_t hop)
{
    p->b[7] = hop;
}

void conf_up(struct conf_client *c, size_t stream, const struct conf_pkt *p)
{
    uint64_t n = c->t->n_taken;
    c->t->tr->packet(c->impl, stream, 0, p->b, p->n);
    WAIT(c->t, c->t->n_taken > n);
}

void conf_down(struct conf *t, const struct conf_pkt *p)
{
    conf_tun_put(p->b, p->n);
    conf_turn(t);
}

size_t conf_got_n(struct conf_client *c)
{
    size_t n = 0, len;
    while (c->t->tr->received(c->impl, n, &len))
        n++;
    return n;
}

struct conf_pkt conf_got(struct conf_client *c, size_t i)
{
    struct conf_pkt r = {.n = 0};
    const uint8_t *p = c->t->tr->received(c->impl, i, &r.n);
    if (!p || r.n > sizeof r.b)
        conf_fail(__FILE__, __LINE__, "packet %zu: not there, or too long (%zu)", i, r.n);
    memcpy(r.b, p, r.n);
    return r;
}

static bool is(const uint8_t *addr, const char *text)
{
    uint8_t a[16];
    return inet_pton(AF_INET6, text, a) == 1 && memcmp(a, addr, 16) == 0;
}

void conf_check_icmp(const struct conf_pkt *p, int type, int code, const char *from, const char *to,
                     const struct conf_pkt *about)
{
    CHECK(p->n >= 48 && p->b[0] >> 4 == 6 && p->b[6] == 58, "not ICMPv6: %zu bytes, next header %d", p->n,
          p->b[6]);
    CHECK((size_t)(p->b[4] << 8 | p->b[5]) + 40 == p->n, "payload length");
    CHECK(p->b[40] == type && p->b[41] == code, "type %d code %d, not %d/%d", p->b[40], p->b[41], type, code);
    CHECK(is(p->b + 8, from), "it does not come from %s", from);
    CHECK(is(p->b + 24, to), "it does not go to %s", to);
    CHECK(sum16(p, 40, 58) == 0, "checksum");
    CHECK(p->b[7] == 64, "hop limit %d", p->b[7]);
    if (!about)
        return;
    CHECK(p->n <= 1280, "%zu bytes: longer than the least MTU", p->n);
    size_t quote = p->n - 48;
    CHECK(quote == (about->n < 1232 ? about->n : 1232), "%zu of %zu bytes are quoted", quote, about->n);
    CHECK(memcmp(p->b + 48, about->b, quote) == 0, "it quotes another packet");
}
