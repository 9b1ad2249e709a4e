/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/2 on one connection: settings, header blocks, answers, the bytes of request streams, and what a client
 * may do too often.
 */
#include "masque/h2_int.h"

enum { FIELDS_TOLERATED = 256 }; /* header fields beyond the limit before the connection ends for it */

static struct masque_h2_stream *stream_find(struct masque_h2_conn *c, int32_t id)
{
    return c->http ? nghttp2_session_get_stream_user_data(c->http, id) : NULL;
}

static struct masque_h2_stream *stream_new(struct masque_h2_conn *c, int32_t id)
{
    struct masque_h2_stream *s = base_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->conn = c;
    s->id = id;
    masque_headers_init(&s->headers, c->h->limits.header_bytes);
    s->headers.bearer = c->h->bearer;
    s->headers.no_rfc = c->h->no_rfc;
    s->headers.cloudflare = c->h->cloudflare;
    s->headers.plain = true;
    s->next = c->streams;
    c->streams = s;
    return s;
}

static void stream_free(struct masque_h2_stream *s)
{
    masque_headers_fini(&s->headers);
    base_free(s->out);
    base_free(s);
}

void masque_h2_stream_free_all(struct masque_h2_conn *c)
{
    while (c->streams) {
        struct masque_h2_stream *s = c->streams;
        c->streams = s->next;
        stream_free(s);
    }
}

/* ---- answers ---- */

/* Capsules and refusals first, then packets; a capsule that was begun goes before everything. */
static ssize_t read_out(nghttp2_session *http, int32_t id, uint8_t *buf, size_t size, uint32_t *flags,
                        nghttp2_data_source *source, void *user)
{
    struct masque_h2_stream *s = source->ptr;
    struct masque_h2_flow *f = s->flow;
    size_t n = 0;
    if (f && f->cur_len > 0)
        n += masque_h2_flow_fill(f, buf, size);
    if ((!f || f->cur_len == 0) && n < size && s->n_out > s->n_sent) {
        size_t k = s->n_out - s->n_sent < size - n ? s->n_out - s->n_sent : size - n;
        memcpy(buf + n, s->out + s->n_sent, k);
        s->n_sent += k;
        n += k;
        if (s->n_sent == s->n_out)
            s->n_sent = s->n_out = 0;
    }
    if (f && s->n_out == 0 && n < size)
        n += masque_h2_flow_fill(f, buf + n, size - n);
    if (s->eof && s->n_out == 0 && (!f || f->cur_len == 0))
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    else if (n == 0) {
        s->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)n;
}

void masque_h2_stream_wake(struct masque_h2_stream *s)
{
    if (s->answered && s->deferred) {
        s->deferred = false;
        (void)nghttp2_session_resume_data(s->conn->http, s->id);
    }
    masque_h2_conn_dirty(s->conn);
}

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .value = (uint8_t *)(uintptr_t)value,
                        .namelen = strlen(name),
                        .valuelen = strlen(value)}; /* nghttp2 copies both */
}

int masque_h2_stream_write(struct masque_h2_stream *s, const uint8_t *p, size_t n)
{
    if (!s->out && !(s->out = base_calloc(1, MASQUE_H2_OUT_MAX)))
        return BASE_ENOMEM;
    if (n > MASQUE_H2_OUT_MAX - s->n_out)
        return BASE_EFULL;
    memcpy(s->out + s->n_out, p, n);
    s->n_out += n;
    masque_h2_stream_wake(s);
    return BASE_OK;
}

static int submit(struct masque_h2_stream *s, const nghttp2_nv *nv, size_t n)
{
    nghttp2_data_provider source = {.source.ptr = s, .read_callback = read_out};
    if (nghttp2_submit_response(s->conn->http, s->id, nv, n, &source) != 0)
        return BASE_ENOMEM;
    s->answered = true;
    masque_h2_conn_dirty(s->conn);
    return BASE_OK;
}

int masque_h2_stream_accept(struct masque_h2_stream *s)
{
    nghttp2_nv nv[] = {field(":status", "200"), field("capsule-protocol", "?1")};
    return submit(s, nv, sizeof nv / sizeof nv[0]);
}

int masque_h2_stream_refuse(struct masque_h2_stream *s, int status, const char *reason, unsigned retry_after)
{
    char code[16], seconds[16], body[BASE_ERR_MSG_MAX + 16];
    if (s->answered)
        return BASE_OK;
    s->conn->h->stats.refused++;
    base_fmt(code, sizeof code, "%d", status);
    base_fmt(seconds, sizeof seconds, "%u", retry_after);
    base_fmt(body, sizeof body, "reason: %s\n", reason);
    s->refused = true;
    s->eof = true;
    if (masque_h2_stream_write(s, (const uint8_t *)body, strlen(body)) != BASE_OK)
        return BASE_ENOMEM;
    nghttp2_nv nv[4] = {field(":status", code), field("content-type", "text/plain; charset=utf-8")};
    size_t n = 2;
    if (retry_after)
        nv[n++] = field("retry-after", seconds);
    if (status == 401) /* RFC 6750 section 3: an error only when there was a credential */
        nv[n++] = field("www-authenticate", s->headers.has_authorization
                                                ? "Bearer realm=\"holdfast\", error=\"invalid_token\""
                                                : "Bearer realm=\"holdfast\"");
    return submit(s, nv, n);
}

void masque_h2_stream_abort(struct masque_h2_stream *s, uint32_t code)
{
    (void)nghttp2_submit_rst_stream(s->conn->http, NGHTTP2_FLAG_NONE, s->id, code);
    masque_h2_conn_dirty(s->conn);
}

void masque_h2_stream_finish(struct masque_h2_stream *s)
{
    s->eof = true;
    masque_h2_stream_wake(s);
}

/* ---- what may not be done too often ---- */

static void count_frame(struct masque_h2_conn *c, const nghttp2_frame_hd *hd)
{
    const struct masque_h2_limits *l = &c->h->limits;
    base_time now = c->h->now;
    double n = 1;
    if (hd->type != NGHTTP2_CONTINUATION)
        c->headers_since = hd->type == NGHTTP2_HEADERS ? now : 0; /* nothing else may stand within a block */
    switch (hd->type) {
    case NGHTTP2_DATA:
        if (!masque_h2_take(&c->small, now, 1, l->small, l->small / 64.0))
            c->flood = "DATA frames that complete nothing";
        return;
    case NGHTTP2_HEADERS: /* each request is looked at, answered and logged */
        n = 10;
        break;
    case NGHTTP2_RST_STREAM:
        if (!masque_h2_take(&c->resets, now, 1, l->resets, l->resets / 60.0))
            c->flood = "streams reset too often";
        return;
    case NGHTTP2_WINDOW_UPDATE: /* what we send earns some */
        if (c->earned > 0) {
            c->earned--;
            return;
        }
        break;
    default:
        break;
    }
    if (!masque_h2_take(&c->control, now, n, l->control, l->control / 10.0))
        c->flood = "control frames too often";
}

static int on_begin_frame(nghttp2_session *http, const nghttp2_frame_hd *hd, void *user)
{
    struct masque_h2_conn *c = user;
    if (c->dead)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    count_frame(c, hd);
    return c->flood ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_invalid_frame(nghttp2_session *http, const nghttp2_frame *frame, int code, void *user)
{
    struct masque_h2_conn *c = user;
    struct masque_h2_stream *s = stream_find(c, frame->hd.stream_id);
    c->h->stats.drop_malformed++;
    if (s)
        masque_h2_flow_end(s->flow, MASQUE_END_PROTOCOL, "malformed HTTP/2 message: %s",
                           nghttp2_strerror(code));
    return 0;
}

static int on_frame_send(nghttp2_session *http, const nghttp2_frame *frame, void *user)
{
    struct masque_h2_conn *c = user;
    const struct masque_h2_limits *l = &c->h->limits;
    struct masque_h2_stream *s;
    if (frame->hd.type == NGHTTP2_RST_STREAM &&
        !masque_h2_take(&c->resets, c->h->now, 1, l->resets, l->resets / 60.0))
        c->flood = "streams that had to be reset too often";
    if (frame->hd.type == NGHTTP2_DATA && c->earned < l->control)
        c->earned +=
            2 + (uint32_t)frame->hd.length / 1024; /* WINDOW_UPDATEs: one a stream, one a connection */
    if (frame->hd.type == NGHTTP2_DATA && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        s = stream_find(c, frame->hd.stream_id);
        if (s && s->refused) /* what the client still sends is of no interest (RFC 9113 section 8.1) */
            (void)nghttp2_submit_rst_stream(http, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
    }
    return 0;
}

/* ---- requests ---- */

static int request_complete(struct masque_h2_stream *s, bool fin)
{
    struct masque_h2_conn *c = s->conn;
    struct masque_path path;
    struct base_correlation corr;
    struct base_err err = {0};
    c->h->stats.requests++;
    s->complete = true;
    int rv = masque_headers_check(&s->headers, fin, &path, &corr, &err);
    if (rv != BASE_OK) {
        loop_log(c->h->log, LOOP_INFO, "masque_request_refused", err.msg, LOG_STR("peer", c->peer),
                 LOG_INT("status", err.http_status));
        rv = masque_h2_stream_refuse(s, err.http_status, err.msg, 0);
    } else {
        rv = masque_h2_flow_begin(s, &path, &corr);
    }
    masque_headers_fini(&s->headers); /* nobody here needs the token any more */
    return rv == BASE_OK ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_begin_headers(nghttp2_session *http, const nghttp2_frame *frame, void *user)
{
    struct masque_h2_conn *c = user;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct masque_h2_stream *s = stream_new(c, frame->hd.stream_id);
    if (!s || nghttp2_session_set_stream_user_data(http, s->id, s) != 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    return 0;
}

static struct base_str text(nghttp2_rcbuf *b)
{
    nghttp2_vec v = nghttp2_rcbuf_get_buf(b);
    return (struct base_str){(const char *)v.base, v.len};
}

static int on_header(nghttp2_session *http, const nghttp2_frame *frame, nghttp2_rcbuf *name,
                     nghttp2_rcbuf *value, uint8_t flags, void *user)
{
    struct masque_h2_conn *c = user;
    struct masque_h2_stream *s = stream_find(c, frame->hd.stream_id);
    if (!s || s->complete)
        return 0; /* trailers say nothing here */
    struct base_str n = text(name), v = text(value);
    bool secret = base_str_eqz(n, "authorization");
    int rv = masque_headers_add(&s->headers, n, v);
    if (secret && v.len > 0 && nghttp2_session_get_hd_inflate_dynamic_table_size(http) == 0) {
        nghttp2_vec raw = nghttp2_rcbuf_get_buf(value); /* no table holds it: the only copy in the library */
        base_wipe(raw.base, raw.len);
    }
    /* Too many bytes are answered with 431 when the block is whole; endless ones end the connection. */
    if (rv != BASE_OK && ++s->excess >= FIELDS_TOLERATED)
        c->flood = "endless headers";
    return c->flood ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_frame(nghttp2_session *http, const nghttp2_frame *frame, void *user)
{
    struct masque_h2_conn *c = user;
    struct masque_h2_stream *s = stream_find(c, frame->hd.stream_id);
    bool fin = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        c->headers_since = 0;
        if (s && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
            return request_complete(s, fin);
        break;
    case NGHTTP2_DATA:
        break;
    case NGHTTP2_SETTINGS:
        c->settings_seen = true;
        return 0;
    default:
        return 0;
    }
    if (fin && s && s->flow)
        masque_h2_flow_fin(s->flow);
    return c->dead ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_data(nghttp2_session *http, uint8_t flags, int32_t id, const uint8_t *data, size_t n,
                   void *user)
{
    struct masque_h2_conn *c = user;
    struct masque_h2_stream *s = stream_find(c, id);
    if (s && s->flow)
        masque_h2_flow_data(s->flow, data, n);
    return c->dead ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_stream_close(nghttp2_session *http, int32_t id, uint32_t code, void *user)
{
    struct masque_h2_conn *c = user;
    struct masque_h2_stream **p = &c->streams, *s = stream_find(c, id);
    if (!s)
        return 0;
    masque_h2_flow_end(s->flow, MASQUE_END_CLIENT, "the client closed its stream, code 0x%x", (unsigned)code);
    while (*p && *p != s)
        p = &(*p)->next;
    if (*p)
        *p = s->next;
    stream_free(s);
    return 0;
}

/* ---- sessions ---- */

int masque_h2_http_setup(struct masque_h2 *h, struct base_err *err)
{
    const struct masque_h2_limits *l = &h->limits;
    if (nghttp2_session_callbacks_new(&h->callbacks) != 0 || nghttp2_option_new(&h->option) != 0)
        return base_err_set(err, BASE_ENOMEM, "HTTP/2 endpoint: no memory");
    nghttp2_session_callbacks *k = h->callbacks;
    nghttp2_session_callbacks_set_on_begin_frame_callback(k, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(k, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback2(k, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(k, on_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(k, on_invalid_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(k, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(k, on_frame_send);
    nghttp2_session_callbacks_set_on_stream_close_callback(k, on_stream_close);
    nghttp2_option_set_no_closed_streams(h->option, 1);
    nghttp2_option_set_max_outbound_ack(h->option, 2 * l->control);
    nghttp2_option_set_max_settings(h->option, 16);
    nghttp2_option_set_max_continuations(h->option, 8);
    nghttp2_option_set_stream_reset_rate_limit(h->option, 2 * l->resets,
                                               (l->resets + 59) / 60); /* behind ours */
    nghttp2_option_set_max_deflate_dynamic_table_size(h->option, 0);
    nghttp2_option_set_server_fallback_rfc7540_priorities(h->option, 0);
    return BASE_OK;
}

int masque_h2_http_open(struct masque_h2_conn *c)
{
    const struct masque_h2_limits *l = &c->h->limits;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 0}, /* see on_header: no table keeps a token */
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, MASQUE_H2_STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, l->window},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, l->header_bytes},
        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    if (nghttp2_session_server_new2(&c->http, c->h->callbacks, c, c->h->option) != 0)
        return BASE_ENOMEM;
    if (nghttp2_submit_settings(c->http, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof settings[0]) !=
            0 ||
        nghttp2_session_set_local_window_size(c->http, NGHTTP2_FLAG_NONE, 0, (int32_t)l->connection_window) !=
            0)
        return BASE_ENOMEM;
    return BASE_OK;
}

void masque_h2_http_goaway(struct masque_h2_conn *c)
{
    if (c->goaway || !c->http || c->dead)
        return;
    c->goaway = true;
    if (nghttp2_submit_goaway(c->http, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(c->http),
                              NGHTTP2_NO_ERROR, NULL, 0) != 0)
        c->goaway = false;
    masque_h2_conn_dirty(c);
}
