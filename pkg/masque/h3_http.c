/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/3 on one connection: settings, header blocks, answers, the bytes of request streams.
 */
#include "loop/loop.h"
#include "masque/h3_int.h"

#include <stdio.h>

enum { FIELDS_TOLERATED = 256 }; /* header fields beyond the limit before the connection ends for it */

struct masque_stream *masque_stream_find(struct masque_conn *c, int64_t id)
{
    struct masque_stream *s = c->streams;
    while (s && s->id != id)
        s = s->next;
    return s;
}

static struct masque_stream *stream_new(struct masque_conn *c, int64_t id)
{
    struct masque_stream *s = base_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->conn = c;
    s->id = id;
    s->since = c->h->now;
    if (c->headers_since == 0)
        c->headers_since = s->since;
    masque_headers_init(&s->headers, c->h->limits.header_bytes);
    s->headers.bearer = c->h->bearer;
    s->headers.no_rfc = c->h->no_rfc;
    s->headers.cloudflare = c->h->cloudflare;
    s->next = c->streams;
    c->streams = s;
    return s;
}

/* Which header block has been on its way for longest? */
static void find_oldest(struct masque_conn *c)
{
    c->headers_since = 0;
    for (const struct masque_stream *s = c->streams; s; s = s->next)
        if (!s->whole && (c->headers_since == 0 || s->since < c->headers_since))
            c->headers_since = s->since;
}

void masque_stream_late(struct masque_conn *c)
{
    for (struct masque_stream *s = c->streams; s; s = s->next)
        if (!s->whole && base_time_add(s->since, c->h->limits.headers) <= c->h->now) {
            s->whole = true; /* not again */
            masque_stream_abort(s, NGHTTP3_H3_REQUEST_INCOMPLETE);
        }
    find_oldest(c);
}

static void stream_free(struct masque_stream *s)
{
    masque_headers_fini(&s->headers);
    base_free(s->out);
    base_free(s);
}

void masque_stream_free_all(struct masque_conn *c)
{
    while (c->streams) {
        struct masque_stream *s = c->streams;
        c->streams = s->next;
        stream_free(s);
    }
}

/* ---- answers ---- */

static nghttp3_ssize read_out(nghttp3_conn *http, int64_t sid, nghttp3_vec *vec, size_t n_vec,
                              uint32_t *flags, void *user, void *stream_user)
{
    struct masque_stream *s = stream_user;
    size_t n = s->n_out - s->n_sent;
    if (s->eof)
        *flags |= NGHTTP3_DATA_FLAG_EOF;
    if (n == 0)
        return s->eof ? 0 : NGHTTP3_ERR_WOULDBLOCK;
    vec[0] = (nghttp3_vec){s->out + s->n_sent, n};
    s->n_sent = s->n_out;
    return 1;
}

static nghttp3_nv field(const char *name, const char *value)
{
    return (nghttp3_nv){.name = (uint8_t *)(uintptr_t)name,
                        .value = (uint8_t *)(uintptr_t)value,
                        .namelen = strlen(name),
                        .valuelen = strlen(value)}; /* nghttp3 copies both */
}

int masque_stream_write(struct masque_stream *s, const uint8_t *p, size_t n)
{
    if (!s->out && !(s->out = base_calloc(1, MASQUE_OUT_MAX)))
        return BASE_ENOMEM;
    if (n > MASQUE_OUT_MAX - s->n_out)
        return BASE_EFULL;
    memcpy(s->out + s->n_out, p, n);
    s->n_out += n;
    if (s->answered) {
        (void)nghttp3_conn_resume_stream(s->conn->http, s->id);
        masque_conn_dirty(s->conn);
    }
    return BASE_OK;
}

static int submit(struct masque_stream *s, const nghttp3_nv *nv, size_t n)
{
    static const nghttp3_data_reader reader = {read_out};
    if (nghttp3_conn_submit_response(s->conn->http, s->id, nv, n, &reader) != 0)
        return BASE_ENOMEM;
    s->answered = true;
    masque_conn_dirty(s->conn);
    return BASE_OK;
}

int masque_stream_accept(struct masque_stream *s)
{
    nghttp3_nv nv[] = {field(":status", "200"), field("capsule-protocol", "?1")};
    return submit(s, nv, sizeof nv / sizeof nv[0]);
}

int masque_stream_refuse(struct masque_stream *s, int status, const char *reason, unsigned retry_after)
{
    char code[16], seconds[16], body[BASE_ERR_MSG_MAX + 16];
    if (s->answered)
        return BASE_OK;
    s->conn->h->stats.refused++;
    base_fmt(code, sizeof code, "%d", status);
    base_fmt(seconds, sizeof seconds, "%u", retry_after);
    base_fmt(body, sizeof body, "reason: %s\n", reason);
    if (masque_stream_write(s, (const uint8_t *)body, strlen(body)) != BASE_OK)
        return BASE_ENOMEM;
    s->eof = true;
    nghttp3_nv nv[4] = {field(":status", code), field("content-type", "text/plain; charset=utf-8")};
    size_t n = 2;
    if (retry_after)
        nv[n++] = field("retry-after", seconds);
    if (status == 401) /* RFC 6750 section 3: an error only when there was a credential */
        nv[n++] = field("www-authenticate", s->headers.has_authorization
                                                ? "Bearer realm=\"holdfast\", error=\"invalid_token\""
                                                : "Bearer realm=\"holdfast\"");
    int rv = submit(s, nv, n);
    if (rv == BASE_OK) /* what the client still sends is of no interest */
        (void)ngtcp2_conn_shutdown_stream_read(s->conn->quic, 0, s->id, NGHTTP3_H3_NO_ERROR);
    return rv;
}

void masque_stream_abort(struct masque_stream *s, uint64_t h3_error)
{
    nghttp3_conn_shutdown_stream_write(s->conn->http, s->id);
    (void)ngtcp2_conn_shutdown_stream(s->conn->quic, 0, s->id, h3_error);
    masque_conn_count_reset(s->conn, s);
    masque_conn_dirty(s->conn);
}

void masque_stream_finish(struct masque_stream *s)
{
    s->eof = true;
    if (s->answered)
        (void)nghttp3_conn_resume_stream(s->conn->http, s->id);
    masque_conn_dirty(s->conn);
}

/* ---- requests ---- */

static void log_refusal(const struct masque_conn *c, const struct base_err *err)
{
    loop_log(c->h->log, LOOP_INFO, "masque_request_refused", err->msg, LOG_STR("peer", c->peer),
             LOG_INT("status", err->http_status));
}

static int request_complete(struct masque_stream *s, bool fin)
{
    struct masque_conn *c = s->conn;
    struct masque_path path;
    struct base_correlation corr;
    struct base_err err = {0};
    c->h->stats.requests++;
    int rv = masque_headers_check(&s->headers, fin, &path, &corr, &err);
    if (rv != BASE_OK) {
        log_refusal(c, &err);
        rv = masque_stream_refuse(s, err.http_status, err.msg, 0);
    } else {
        rv = masque_flow_begin(s, &path, &corr);
    }
    masque_headers_fini(&s->headers); /* nobody here needs the token any more */
    return rv == BASE_OK ? 0 : NGHTTP3_ERR_CALLBACK_FAILURE;
}

static int on_begin_headers(nghttp3_conn *http, int64_t sid, void *user, void *stream_user)
{
    struct masque_conn *c = user;
    struct masque_stream *s = stream_new(c, sid);
    if (!s || nghttp3_conn_set_stream_user_data(http, sid, s) != 0)
        return NGHTTP3_ERR_CALLBACK_FAILURE;
    if (sid > c->highest_sid)
        c->highest_sid = sid;
    return 0;
}

static struct base_str text(nghttp3_rcbuf *b)
{
    nghttp3_vec v = nghttp3_rcbuf_get_buf(b);
    return (struct base_str){(const char *)v.base, v.len};
}

static int on_header(nghttp3_conn *http, int64_t sid, int32_t token, nghttp3_rcbuf *name,
                     nghttp3_rcbuf *value, uint8_t flags, void *user, void *stream_user)
{
    struct masque_stream *s = stream_user;
    if (!s)
        return NGHTTP3_ERR_CALLBACK_FAILURE;
    struct base_str n = text(name), v = text(value);
    bool secret = base_str_eqz(n, "authorization");
    int rv = masque_headers_add(&s->headers, n, v);
    if (secret && v.len > 0) {
        /* Our QPACK decoder has no dynamic table, so this is the only copy that the HTTP library has. */
        nghttp3_vec raw = nghttp3_rcbuf_get_buf(value);
        base_wipe(raw.base, raw.len);
    }
    /* Too many bytes are answered with 431 when the block is whole; endless ones end the connection. */
    if (rv == BASE_OK || ++s->excess < FIELDS_TOLERATED)
        return 0;
    static const char why[] = "endless headers";
    ngtcp2_ccerr_set_application_error(&s->conn->err, NGHTTP3_H3_EXCESSIVE_LOAD, (const uint8_t *)why,
                                       sizeof why - 1);
    return NGHTTP3_ERR_CALLBACK_FAILURE;
}

static int on_end_headers(nghttp3_conn *http, int64_t sid, int fin, void *user, void *stream_user)
{
    struct masque_stream *s = stream_user;
    if (!s || s->answered || s->whole)
        return 0;
    s->whole = true;
    find_oldest(s->conn);
    return request_complete(s, fin != 0);
}

static int on_data(nghttp3_conn *http, int64_t sid, const uint8_t *data, size_t n, void *user,
                   void *stream_user)
{
    struct masque_conn *c = user;
    struct masque_stream *s = stream_user;
    (void)ngtcp2_conn_extend_max_stream_offset(c->quic, sid, n);
    ngtcp2_conn_extend_max_offset(c->quic, n);
    if (s && s->flow)
        masque_flow_data(s->flow, data, n);
    return 0;
}

static int on_consume(nghttp3_conn *http, int64_t sid, size_t n, void *user, void *stream_user)
{
    struct masque_conn *c = user;
    (void)ngtcp2_conn_extend_max_stream_offset(c->quic, sid, n);
    ngtcp2_conn_extend_max_offset(c->quic, n);
    return 0;
}

static int on_end_stream(nghttp3_conn *http, int64_t sid, void *user, void *stream_user)
{
    struct masque_stream *s = stream_user;
    if (s && s->flow)
        masque_flow_fin(s->flow);
    return 0;
}

static int on_acked(nghttp3_conn *http, int64_t sid, uint64_t n, void *user, void *stream_user)
{
    struct masque_stream *s = stream_user;
    if (!s)
        return 0;
    s->n_acked += n;
    if (s->n_acked == s->n_out && s->n_sent == s->n_out)
        s->n_acked = s->n_out = s->n_sent = 0; /* nobody holds a pointer into it any more */
    return 0;
}

static int on_stop_sending(nghttp3_conn *http, int64_t sid, uint64_t code, void *user, void *stream_user)
{
    struct masque_conn *c = user;
    (void)ngtcp2_conn_shutdown_stream_read(c->quic, 0, sid, code);
    return 0;
}

/* nghttp3 found the message malformed and wants the stream gone. */
static int on_reset_stream(nghttp3_conn *http, int64_t sid, uint64_t code, void *user, void *stream_user)
{
    struct masque_conn *c = user;
    struct masque_stream *s = stream_user;
    if (s)
        masque_flow_end(s->flow, MASQUE_END_PROTOCOL, "malformed HTTP/3 message, code 0x%llx",
                        (unsigned long long)code);
    (void)ngtcp2_conn_shutdown_stream_write(c->quic, 0, sid, code);
    masque_conn_count_reset(c, s);
    return 0;
}

static int on_stream_close(nghttp3_conn *http, int64_t sid, uint64_t code, void *user, void *stream_user)
{
    struct masque_conn *c = user;
    struct masque_stream **p = &c->streams, *s = stream_user;
    if (!s)
        return 0;
    masque_flow_end(s->flow, MASQUE_END_CLIENT, "the client closed its stream, code 0x%llx",
                    (unsigned long long)code);
    while (*p && *p != s)
        p = &(*p)->next;
    if (*p)
        *p = s->next;
    if (!s->whole)
        find_oldest(c);
    stream_free(s);
    return 0;
}

static int on_settings(nghttp3_conn *http, const nghttp3_settings *settings, void *user)
{
    struct masque_conn *c = user;
    c->settings_seen = true;
    c->peer_h3_datagram = settings->h3_datagram != 0;
    masque_flow_settings(c);
    return 0;
}

#if NGHTTP3_VERSION_NUM >= 0x010b00
static void on_rand(uint8_t *dst, size_t n)
{
    loop_random(dst, n);
}
#endif

static const nghttp3_callbacks callbacks = {
    .begin_headers = on_begin_headers,
    .recv_header = on_header,
    .end_headers = on_end_headers,
    .recv_data = on_data,
    .deferred_consume = on_consume,
    .end_stream = on_end_stream,
    .acked_stream_data = on_acked,
    .stop_sending = on_stop_sending,
    .reset_stream = on_reset_stream,
    .stream_close = on_stream_close,
    .recv_settings = on_settings,
#if NGHTTP3_VERSION_NUM >= 0x010b00
    .rand = on_rand,
#endif
};

int masque_http_open(struct masque_conn *c)
{
    int64_t control, encoder, decoder;
    nghttp3_settings settings;
    nghttp3_settings_default(&settings);
    settings.enable_connect_protocol = 1;
    settings.h3_datagram = 1;
    settings.max_field_section_size = c->h->limits.header_bytes;
    settings.qpack_max_dtable_capacity = 0; /* see on_header: no table keeps a token */
    if (nghttp3_conn_server_new(&c->http, &callbacks, &settings, nghttp3_mem_default(), c) != 0)
        return NGTCP2_ERR_CALLBACK_FAILURE;
    nghttp3_conn_set_max_client_streams_bidi(c->http, MASQUE_STREAMS_MAX);
    if (ngtcp2_conn_open_uni_stream(c->quic, &control, NULL) != 0 ||
        ngtcp2_conn_open_uni_stream(c->quic, &encoder, NULL) != 0 ||
        ngtcp2_conn_open_uni_stream(c->quic, &decoder, NULL) != 0 ||
        nghttp3_conn_bind_control_stream(c->http, control) != 0 ||
        nghttp3_conn_bind_qpack_streams(c->http, encoder, decoder) != 0) {
        static const char why[] = "three unidirectional streams are needed";
        ngtcp2_ccerr_set_application_error(&c->err, NGHTTP3_H3_STREAM_CREATION_ERROR, (const uint8_t *)why,
                                           sizeof why - 1);
        return NGTCP2_ERR_CALLBACK_FAILURE;
    }
    if (c->h->draining)
        masque_conn_goaway(c);
    return 0;
}
