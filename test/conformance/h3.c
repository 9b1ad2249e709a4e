/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/3 for the cases: the test client of pkg/masque.
 */
#include "conf.h"

#include <string.h>

#include "masque/varint.h"

static void *h3_open(struct conf *t, const struct conf_options *o)
{
    struct testclient_config cfg = {.port = masque_endpoint_port(t->d->ends),
                                    .cert_file = o->no_cert ? NULL
                                                 : o->cert  ? o->cert
                                                            : t->cert,
                                    .key_file = o->no_cert ? NULL
                                                : o->key   ? o->key
                                                           : t->key,
                                    .alpn = o->alpn ? o->alpn : "h3",
                                    .no_h3_datagram = o->no_datagram,
                                    .no_http = o->raw,
                                    .max_datagram_frame_size = o->frame_size,
                                    .max_tx = o->path_mtu};
    struct testclient *c = testclient_new(&cfg, conf_clock());
    testclient_step(c, conf_clock());
    return c;
}

static void h3_free(void *c)
{
    testclient_free(c);
}

static void h3_step(void *c, base_time now)
{
    testclient_step(c, now);
}

static base_time h3_expiry(const void *c)
{
    return testclient_expiry(c);
}

static int h3_fd(const void *c)
{
    return ((const struct testclient *)c)->fd;
}

static bool h3_ready(const void *v)
{
    const struct testclient *c = v;
    return c->handshaken && (c->cfg.no_http || c->got_settings);
}

static bool h3_closed(const void *v, uint64_t *ret_code)
{
    const struct testclient *c = v;
    *ret_code = c->close_code;
    return c->closed;
}

static size_t h3_request(void *c, const struct testclient_field *f, size_t n, bool fin)
{
    return testclient_request(c, f, n, fin);
}

static void h3_write(void *c, size_t stream, const void *p, size_t n, bool fin)
{
    testclient_write(c, stream, p, n, fin);
}

static void h3_reset(void *c, size_t stream)
{
    testclient_reset(c, stream, NGHTTP3_H3_REQUEST_CANCELLED);
}

static void h3_hang_up(void *c)
{
    testclient_close(c, NGHTTP3_H3_NO_ERROR);
}

static void h3_packet(void *v, size_t stream, uint64_t context, const void *p, size_t n)
{
    struct testclient *c = v;
    uint8_t buf[2100];
    size_t at = masque_varint_put(buf, 8, (uint64_t)c->streams[stream].id / 4);
    at += masque_varint_put(buf + at, 8, context);
    memcpy(buf + at, p, n);
    testclient_datagram(c, buf, at + n);
}

static const struct testclient_stream *of(const void *c, size_t stream)
{
    return &((const struct testclient *)c)->streams[stream];
}

static int h3_status(const void *c, size_t stream)
{
    return of(c, stream)->status;
}

static const char *h3_fields(const void *c, size_t stream)
{
    return of(c, stream)->fields;
}

static const uint8_t *h3_body(const void *c, size_t stream, size_t *n)
{
    *n = of(c, stream)->n_body;
    return of(c, stream)->body;
}

static enum conf_end h3_end(const void *c, size_t stream, uint64_t *ret_code)
{
    const struct testclient_stream *s = of(c, stream);
    *ret_code = s->code;
    return s->was_reset ? CONF_RESET : s->ended ? CONF_ENDED : CONF_OPEN;
}

static enum conf_code h3_code(uint64_t code)
{
    return code == NGHTTP3_H3_MESSAGE_ERROR ? CONF_CODE_MESSAGE
           : code == 0x33                   ? CONF_CODE_DATAGRAM
                                            : CONF_CODE_OTHER;
}

static const uint8_t *h3_received(void *v, size_t i, size_t *n)
{
    const struct testclient *c = v;
    uint64_t quarter, context;
    if (i >= c->n_datagrams)
        return NULL;
    const uint8_t *p = c->datagrams[i];
    size_t len = c->datagram_len[i], a = masque_varint_get(p, len, &quarter);
    size_t b = a ? masque_varint_get(p + a, len - a, &context) : 0;
    if (b == 0 || context != 0 ||
        quarter != (uint64_t)c->streams[quarter < c->n_streams ? quarter : 0].id / 4)
        conf_fail(__FILE__, __LINE__, "datagram %zu is of no request of this client", i);
    *n = len - a - b;
    return p + a + b;
}

const struct conf_transport conf_h3_transport = {.name = "HTTP/3",
                                                 .id = CONF_H3,
                                                 .open = h3_open,
                                                 .free = h3_free,
                                                 .step = h3_step,
                                                 .expiry = h3_expiry,
                                                 .fd = h3_fd,
                                                 .ready = h3_ready,
                                                 .closed = h3_closed,
                                                 .request = h3_request,
                                                 .write = h3_write,
                                                 .reset = h3_reset,
                                                 .hang_up = h3_hang_up,
                                                 .packet = h3_packet,
                                                 .status = h3_status,
                                                 .fields = h3_fields,
                                                 .body = h3_body,
                                                 .end = h3_end,
                                                 .code = h3_code,
                                                 .received = h3_received};
