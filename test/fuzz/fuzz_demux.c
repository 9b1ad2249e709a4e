/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_demux.c - which packet belongs to which tunnel: HTTP/3 datagrams and stream bytes of one connection.
 *
 * Input: a script of one-byte steps: a datagram (length, bytes), stream bytes (length, bytes), a new request,
 * its admission, the barrier, time, the flush that delivers what came early. No QUIC is involved: what
 * h3_flow.c calls of the layers below is here. A model of its own says for each packet whether it comes out,
 * and when.
 */
#include "fuzz.h"

#include "base/mem.h"
#include "masque/h3_int.h"
#include "masque/varint.h"

enum { KEPT = 64, REQUESTS = 6 };

/* ---- the layers below, as far as a flow needs them ---- */
static struct {
    bool aborted;
    uint64_t code;
} below;

void masque_stream_abort(struct masque_stream *s, uint64_t code)
{
    below.aborted = true;
    below.code = code;
}

void masque_stream_finish(struct masque_stream *s)
{
    below.aborted = true;
}

int masque_stream_write(struct masque_stream *s, const uint8_t *p, size_t n)
{
    CHECK(n <= MASQUE_CAPSULE_MAX, "a reply of %zu bytes", n);
    return BASE_OK;
}

int masque_stream_accept(struct masque_stream *s)
{
    return BASE_OK;
}

int masque_stream_refuse(struct masque_stream *s, int status, const char *reason, unsigned retry_after)
{
    return BASE_OK;
}

void masque_conn_dirty(struct masque_conn *c)
{
}

/* ---- what comes out ---- */
struct packet {
    uint64_t flow;
    size_t n;
    uint8_t b[256];
};
static struct packet got[KEPT];
static size_t n_got;

static void on_request(void *arg, const struct masque_request *rq)
{
}

static void on_packet(void *arg, uint64_t flow, uint8_t *p, size_t n)
{
    CHECK(n > 0, "an empty packet");
    memset(p - MASQUE_PACKET_ROOM, 0xee, MASQUE_PACKET_ROOM); /* the promise: writable */
    if (n_got < KEPT) {
        got[n_got].flow = flow;
        got[n_got].n = n;
        memcpy(got[n_got].b, p, n < 256 ? n : 256);
    }
    n_got++;
}

static uint64_t ended;
static void on_ended(void *arg, uint64_t flow, enum masque_end why, const char *detail)
{
    ended++;
    CHECK(detail[0], "ended without a word");
}

/* ---- the model ---- */
struct early {
    int64_t sid;
    base_time at;
    size_t n;
    uint8_t b[256];
};
static struct {
    int64_t sid, highest; /* of the flow; -1 = none */
    uint64_t flow;
    bool open, stopped, ready;
    struct early early[8];
    unsigned n_early;
    size_t early_bytes;
    size_t want; /* packets that must have come out by now */
} model;

static void expect(const uint8_t *p, size_t n)
{
    size_t i = model.want++;
    CHECK(n_got >= model.want, "packet %zu of %zu bytes did not come out", i, n);
    if (i < KEPT)
        CHECK(got[i].flow == model.flow && got[i].n == n && memcmp(got[i].b, p, n < 256 ? n : 256) == 0,
              "packet %zu is another one, or of another flow", i);
}

/* Payload of stream `sid`, when nothing was wrong with it. */
static void model_payload(int64_t sid, const uint8_t *p, size_t n, base_time now)
{
    uint64_t context;
    size_t k = masque_varint_get(p, n, &context);
    if (k == 0 || context != 0)
        return;
    p += k;
    n -= k;
    bool mine = model.sid == sid;
    if (mine ? !model.open || model.ready : sid > model.highest) {
        if (model.n_early < 8 && n > 0 && n <= 65536 - model.early_bytes) {
            struct early *e = &model.early[model.n_early++];
            *e = (struct early){.sid = sid, .at = now, .n = n};
            memcpy(e->b, p, n < 256 ? n : 256);
            model.early_bytes += n;
        }
    } else if (mine && !model.stopped && n > 0) {
        expect(p, n);
    }
}

static void model_flush(base_time now)
{
    if (!model.ready)
        return;
    for (unsigned i = 0; i < model.n_early; i++)
        if (model.sid == model.early[i].sid && model.open && !model.stopped &&
            now - model.early[i].at <= MASQUE_EARLY_AGE)
            expect(model.early[i].b, model.early[i].n);
    model.n_early = 0;
    model.early_bytes = 0;
    model.ready = false;
}

static void model_end(void)
{
    model.sid = -1;
    model.open = false;
    model.n_early = 0;
    model.early_bytes = 0;
    model.ready = false;
}

/* ---- the steps ---- */
struct rig {
    struct masque_h3 *h;
    struct masque_conn c;
    struct masque_stream streams[REQUESTS];
    unsigned n_streams;
};

static void request(struct rig *r)
{
    static const struct masque_path path = {.ipproto = -1};
    static const struct base_correlation none;
    if (r->n_streams == REQUESTS || r->c.flow)
        return;
    struct masque_stream *s = &r->streams[r->n_streams];
    *s = (struct masque_stream){.conn = &r->c, .id = 4 * (int64_t)r->n_streams};
    r->n_streams++;
    masque_headers_init(&s->headers, 8192);
    r->c.highest_sid = s->id;
    model.highest = s->id;
    if (masque_flow_begin(s, &path, &none) != BASE_OK || !s->flow)
        abort();
    s->flow->state = MASQUE_FLOW_ASKED; /* SETTINGS are there, and it was reported */
    s->flow->reported = true;
    model.sid = s->id;
    model.flow = s->flow->id;
    model.open = model.stopped = false;
}

/* What masque_h3_accept does to a flow, without QUIC. */
static void admit(struct rig *r)
{
    struct masque_flow *f = r->c.flow;
    uint8_t out[MASQUE_TUNNEL_SETUP_MAX];
    struct base_prefix p = {.len = 96};
    if (!f || f->state != MASQUE_FLOW_ASKED)
        return;
    CHECK(masque_tunnel_open(&f->tunnel, &p, &p, 1, out, sizeof out) > 0, "no room for the answer");
    f->state = MASQUE_FLOW_OPEN;
    r->c.early_ready = r->c.n_early > 0;
    model.open = true;
    model.ready = model.n_early > 0;
}

static void datagram(struct rig *r, const uint8_t *p, size_t n)
{
    uint64_t quarter;
    size_t before = n_got, k = masque_varint_get(p, n, &quarter);
    struct masque_flow *f = r->c.flow;
    uint64_t id = f ? f->id : 0;
    bool bad = k == 0 || quarter > (UINT64_C(1) << 60) - 1, beyond = !bad && quarter >= r->c.streams_granted;
    below.aborted = false;
    int rv = masque_flow_datagram(&r->c, p, n);
    CHECK((rv != 0) == (bad || beyond), "%d", rv);
    if (rv != 0) {
        CHECK(r->c.err.error_code == (bad ? 0x33u : 0x108u), "code 0x%llx",
              (unsigned long long)r->c.err.error_code);
        CHECK(n_got == before, "a packet came out");
        return;
    }
    uint64_t context;
    bool none = masque_varint_get(p + k, n - k, &context) == 0;
    if (none && f && f->sid == (int64_t)(quarter * 4)) {
        CHECK(below.aborted && below.code == 0x33 && r->c.flow == NULL, "flow %llu lives",
              (unsigned long long)id);
        model_end();
        return;
    }
    CHECK(!below.aborted, "something else was aborted");
    model_payload((int64_t)(quarter * 4), p + k, n - k, r->h->now);
}

static void stream_bytes(struct rig *r, const uint8_t *p, size_t n)
{
    struct masque_flow *f = r->c.flow;
    if (!f)
        return;
    struct masque_stream *s = f->stream;
    size_t before = n_got;
    int64_t sid = f->sid;
    below.aborted = false;
    masque_flow_data(f, p, n);
    CHECK((s->flow == NULL) == below.aborted, "ended without an abort, or the other way round");
    /* Which capsules are in it is fuzz_capsule's question: here it is whose the packets are. */
    for (size_t i = before; i < n_got && i < KEPT; i++)
        CHECK(got[i].flow == model.flow && model.open && !model.stopped, "a packet of no open flow");
    model.want = n_got;
    if (s->flow == NULL) {
        model_end();
        return;
    }
    /* DATAGRAM capsules may have been kept as early ones: take over what is there. */
    CHECK(r->c.n_early <= 8 && r->c.early_bytes <= 65536, "%u early packets", r->c.n_early);
    for (unsigned i = model.n_early; i < r->c.n_early; i++) {
        const struct masque_early *e = &r->c.early[i];
        CHECK(e->sid == sid, "early packet of another stream");
        model.early[i] = (struct early){.sid = e->sid, .at = e->at, .n = e->len};
        memcpy(model.early[i].b, e->data, e->len < 256 ? e->len : 256);
        model.early_bytes += e->len;
    }
    model.n_early = r->c.n_early;
}

static void stop(struct rig *r)
{
    if (!r->c.flow)
        return;
    masque_h3_stop(r->h, r->c.flow->id);
    model.stopped = true;
    model.n_early = 0;
    model.early_bytes = 0;
    model.ready = false;
}

static void step(struct rig *r, struct fuzz_in *in)
{
    uint8_t op = fuzz_byte(in);
    size_t n = 0;
    const uint8_t *p;
    if (op % 8 < 3) {
        n = op % 8 == 2 ? fuzz_u16(in) : fuzz_byte(in);
        n = n < in->left ? n : in->left;
    }
    uint8_t *copy = malloc(n ? n : 1);
    if (!copy)
        abort();
    p = in->p;
    if (n > 0)
        memcpy(copy, p, n);
    in->p += n;
    in->left -= n;
    switch (op % 8) {
    case 0:
    case 2:
        datagram(r, copy, n);
        break;
    case 1:
        stream_bytes(r, copy, n);
        break;
    case 3:
        request(r);
        break;
    case 4:
        admit(r);
        break;
    case 5:
        if (op & 8)
            stop(r);
        else if (r->c.flow) {
            masque_flow_fin(r->c.flow);
            model_end();
        }
        break;
    case 6:
        r->h->now += (base_time)(op >> 3) * 50 * BASE_MS;
        break;
    default:
        masque_flow_deliver_early(&r->c);
        model_flush(r->h->now);
    }
    free(copy);
    CHECK(n_got == model.want, "%zu packets came out, %zu should", n_got, model.want);
    CHECK(r->c.n_early == model.n_early, "%u early ones are kept, %u should", r->c.n_early, model.n_early);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    static struct masque_h3 *h;
    struct rig r = {.n_streams = 0};
    if (!h && !(h = calloc(1, sizeof *h)))
        abort();
    memset(h, 0, offsetof(struct masque_h3, burst));
    h->events = (struct masque_events){on_request, on_packet, on_ended};
    h->ended_tail = &h->ended;
    h->now = BASE_SEC;
    r.h = h;
    r.c = (struct masque_conn){.h = h, .highest_sid = -4, .streams_granted = MASQUE_STREAMS_MAX};
    n_got = ended = 0;
    memset(&model, 0, sizeof model);
    model.sid = -1;
    model.highest = -4;
    while (in.left > 0)
        step(&r, &in);
    uint64_t begun = r.n_streams;
    masque_flow_end(r.c.flow, MASQUE_END_CLIENT, "the end of the input");
    masque_flow_drop_early(&r.c);
    masque_flow_report(h);
    CHECK(ended == begun, "%llu flows, %llu ends", (unsigned long long)begun, (unsigned long long)ended);
    CHECK(h->n_flows == 0, "%u flows are left", h->n_flows);
    masque_heap_fini(&h->heap);
    return 0;
}
