/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_trail.c - the audit trail: the chain's verifier, the reader of records, checkpoints.
 *
 * Input: '0' and files as they stand, a NUL between them: what the verifier says, it says again, and what the
 * reader takes is written again as the same line. Or '1' and decisions: a trail is made from them by the real
 * encoder, and then edited. The verifier takes a trail only when it is a piece of the original (whole files
 * missing in front, lines missing at the end); with a key, whatever was computed anew without it, no line up
 * to the last signed one differs.
 */
#include "fuzz.h"

#include "audit/chain.h"
#include "audit/parse.h"

#define LINES_MAX 64

struct line {
    struct base_str text;
    int file;
};
struct trail {
    struct line line[LINES_MAX];
    size_t n;
    bool cut; /* the last line has no end */
};

/* Of this fuzzer alone. */
static const char key_pem[] = "-----BEGIN PRIVATE KEY-----\n"
                              "MC4CAQAwBQYDK2VwBCIEIOiix9upHqu8Jw1/cq/XmWx5ZvttnHOcA3v946ZdakZ1\n"
                              "-----END PRIVATE KEY-----\n";
static struct base_key *the_key;
static struct base_hasher *the_hasher;

static void set_up(void)
{
    if (!the_hasher)
        the_hasher = base_hasher_new();
    if (!the_key)
        CHECK(!base_key_private(&the_key, BASE_STR(key_pem), NULL), "own key");
}

static enum audit_flaw verify(const struct trail *t, struct audit_verifier *v, bool with_key)
{
    const struct base_key *keys[1] = {the_key};
    int file = -1;

    audit_verifier_init(v);
    v->keys = keys;
    v->n_keys = with_key;
    for (size_t i = 0; i < t->n; i++) {
        if (t->line[i].file != file)
            audit_verifier_file(v);
        file = t->line[i].file;
        (void)audit_verifier_line(v, the_hasher, t->line[i].text, i + 1 < t->n || !t->cut);
    }
    (void)audit_verifier_end(v);
    v->keys = NULL;
    return v->flaw;
}

static void again(const struct trail *t, const struct audit_verifier *was, bool with_key)
{
    struct audit_verifier v;

    (void)verify(t, &v, with_key);
    CHECK(v.flaw == was->flaw && v.records == was->records && v.torn == was->torn &&
              v.flaw_file == was->flaw_file && v.flaw_line == was->flaw_line &&
              v.signed_seq == was->signed_seq && memcmp(&v.chain, &was->chain, sizeof v.chain) == 0,
          "another verdict the second time");
    CHECK(v.records + v.torn + v.checkpoints + v.files <= 2 * v.lines + v.files, "more than there is");
    CHECK(v.flaw || v.signed_seq <= v.chain.seq, "signed beyond the end");
}

/* A line that the reader takes is one that the encoder writes. */
static void reread(struct base_str line)
{
    struct audit_line l, m;
    struct audit_query q = {.after = 0};
    struct base_buf b;
    struct base_err err = {0};
    size_t n;

    if (audit_parse(line, &l))
        return;
    CHECK(l.kind >= AUDIT_LINE_RECORD && l.kind <= AUDIT_LINE_CHECKPOINT, "kind %d", (int)l.kind);
    if (l.kind != AUDIT_LINE_RECORD) {
        CHECK(!audit_matches(&q, &l), "a line of the chain's own is no answer");
        return;
    }
    base_buf_init(&b, AUDIT_LINE_MAX);
    CHECK(!audit_encode(&b, &l.record, &err), "read, but not written: %s", err.msg);
    n = b.len - 2; /* without "}\n" */
    CHECK(line.len > n && memcmp(line.ptr, b.data, n) == 0, "another line:\n%.*s\n%s", (int)line.len,
          line.ptr, b.data);
    CHECK(l.seq ? base_str_starts((struct base_str){line.ptr + n, line.len - n}, ",\"seq\":")
                : line.len == n + 1,
          "something is behind the record");
    CHECK(!audit_parse((struct base_str){b.data, b.len - 1}, &m) && m.seq == 0, "written, but not read");
    base_buf_fini(&b);
    if (l.seq) { /* every question that fits finds it, also by the cheap look */
        q.correlation = l.record.correlation;
        CHECK(audit_matches(&q, &l) && audit_may_match(&q, line), "by its correlation ID");
        q = (struct audit_query){.n_objects = l.record.object[0] != 0, .since = l.ts, .after = l.seq - 1};
        (void)base_copy(q.objects[0], sizeof q.objects[0], l.record.object);
        CHECK(audit_matches(&q, &l) && audit_may_match(&q, line), "by its object");
        q.until = l.ts;
        CHECK(!audit_matches(&q, &l), "ts is before `until`");
    }
}

static void raw(struct base_str text)
{
    struct trail *t = calloc(1, sizeof *t);
    struct audit_verifier v;
    struct base_buf forged;
    int file = 0;

    for (size_t at = 0; t && at < text.len && t->n < LINES_MAX;) {
        size_t end = at;

        while (end < text.len && text.ptr[end] != '\n' && text.ptr[end] != '\0')
            end++;
        t->line[t->n++] = (struct line){{text.ptr + at, end - at}, file};
        t->cut = end == text.len;
        file += end < text.len && text.ptr[end] == '\0';
        at = end + 1;
    }
    base_buf_init(&forged, 1 << 20);
    for (int with_key = 0; t && with_key < 2; with_key++) {
        (void)verify(t, &v, with_key);
        again(t, &v, with_key);
    }
    for (size_t i = 0; t && i < t->n; i++) {
        struct audit_chain c = {.seq = 5};

        reread(t->line[i].text);
        base_buf_reset(&forged); /* sealed, if it is a line at all: the seal is what the reader finds */
        if (!base_buf_add(&forged, t->line[i].text.ptr, t->line[i].text.len) &&
            !base_buf_addz(&forged, "\n")) {
            struct base_buf sealed;
            struct audit_chain said;

            base_buf_init(&sealed, 1 << 20);
            if (!audit_chain_seal(&c, the_hasher, &sealed, (struct base_str){forged.data, forged.len}))
                CHECK(!audit_chain_parse((struct base_str){sealed.data, sealed.len - 1}, &said) &&
                          said.seq == 6 && memcmp(said.hash, c.hash, sizeof c.hash) == 0,
                      "sealed, but not as said");
            base_buf_fini(&sealed);
        }
    }
    base_buf_fini(&forged);
    free(t);
}

/* ---- a trail of our own */

static void record(struct fuzz_in *in, struct base_buf *out)
{
    static const char *const reasons[] = {"FirstConnect", "TakenOver", "GrantExpired", "R", "Ab9"};
    static const char *const objects[] = {"", "acme.site-1", "acme.site-2", "a.b"};
    struct audit_record r = {
        .ts = 1764450000000000 + fuzz_u16(in), .node = "edge1", .instance = "masque.edge1"};
    unsigned has = fuzz_byte(in);

    r.event = (enum audit_event)(1 + fuzz_byte(in) % 6);
    r.outcome = (enum audit_outcome)(1 + (has & 1));
    r.effect = (enum audit_effect)(1 + has % 3);
    (void)base_copy(r.reason, sizeof r.reason, reasons[has % 5]);
    (void)base_copy(r.object, sizeof r.object, objects[has % 4]);
    r.correlation.b[3] = (uint8_t)(has | 1);
    if (has & 2)
        r.trace.b[7] = 9;
    if (has & 4)
        r.epoch = 1 + (int64_t)fuzz_u16(in);
    if (has & 8)
        r.lease_uuid.b[0] = fuzz_byte(in);
    if (has & 16)
        memset(r.credential_id, 'a', 64);
    if (has & 32)
        r.count = fuzz_byte(in), r.first = r.last = r.ts;
    if (has & 64)
        (void)base_copy(r.new_holder, sizeof r.new_holder, "edge2");
    CHECK(!audit_encode(out, &r, NULL), "own record");
}

static void add(struct trail *t, const struct base_buf *b, size_t from, int file)
{
    char *copy = malloc(b->len - from);

    CHECK(copy && t->n < LINES_MAX, "room");
    memcpy(copy, b->data + from, b->len - from - 1);
    t->line[t->n++] = (struct line){{copy, b->len - from - 1}, file};
}

static void make(struct fuzz_in *in, struct trail *t)
{
    unsigned n = 1 + fuzz_byte(in) % 16;
    struct audit_chain c = {.seq = fuzz_byte(in)};
    struct base_buf b, plain;
    int file = 0;

    base_buf_init(&b, 1 << 20);
    base_buf_init(&plain, 1 << 16);
    CHECK(!audit_chain_start(&c, the_hasher, &b, 1764450000000000, "edge1"), "start");
    add(t, &b, 0, file);
    for (unsigned i = 0; i < n; i++) {
        unsigned what = fuzz_byte(in) % 8;
        size_t from = b.len;
        int rc;

        if (what == 0)
            file++;
        base_buf_reset(&plain);
        if (what > 2)
            record(in, &plain);
        rc = what == 0   ? audit_chain_start(&c, the_hasher, &b, 1764450000000001, "edge1")
             : what == 1 ? audit_chain_checkpoint(&c, the_hasher, &b, 1764450000000002, "edge1", the_key)
             : what == 2 ? audit_chain_torn(&c, the_hasher, &b, 1764450000000003, fuzz_byte(in))
                         : audit_chain_seal(&c, the_hasher, &b, (struct base_str){plain.data, plain.len});
        CHECK(!rc, "sealing");
        add(t, &b, from, file);
    }
    base_buf_fini(&b);
    base_buf_fini(&plain);
}

static void replace(struct line *l, const char *p, size_t n)
{
    char *copy = malloc(n ? n : 1);

    CHECK(copy, "memory");
    memcpy(copy, p, n);
    free((char *)(uintptr_t)l->text.ptr);
    l->text = (struct base_str){copy, n};
}

static void take_out(struct trail *t, size_t i)
{
    free((char *)(uintptr_t)t->line[i].text.ptr);
    memmove(&t->line[i], &t->line[i + 1], (t->n - i - 1) * sizeof t->line[0]);
    t->n--;
}

/* Somebody who has the files but not the key computes every hash from line i on anew. */
static void forge(struct trail *t, size_t i)
{
    struct audit_chain c = {.seq = 0};
    struct base_buf b, body;

    if (i && audit_chain_parse(t->line[i - 1].text, &c))
        return;
    base_buf_init(&b, 1 << 20);
    base_buf_init(&body, 1 << 20);
    for (; i < t->n; i++) {
        struct base_str l = t->line[i].text;
        const char *seq = l.len ? memmem(l.ptr, l.len, ",\"seq\":", 7) : NULL;

        base_buf_reset(&b);
        base_buf_reset(&body);
        if (!seq)
            break;
        (void)base_buf_add(&body, l.ptr, (size_t)(seq - l.ptr));
        (void)base_buf_addz(&body, "}\n");
        if (audit_chain_seal(&c, the_hasher, &b, (struct base_str){body.data, body.len}))
            break;
        replace(&t->line[i], b.data, b.len - 1);
    }
    base_buf_fini(&b);
    base_buf_fini(&body);
}

/* True when hashes were computed anew. */
static bool edit(struct fuzz_in *in, struct trail *t)
{
    unsigned what = fuzz_byte(in) % 9;
    size_t i = t->n ? fuzz_byte(in) % t->n : 0, at = fuzz_u16(in), j;
    struct line *l = &t->line[i], keep;
    char text[4096 + 2];

    if (!t->n || l->text.len > sizeof text - 2)
        return false;
    memcpy(text, l->text.ptr, l->text.len);
    at = l->text.len ? at % l->text.len : 0;
    switch (what) {
    case 0: /* one bit */
    case 8:
        text[at] ^= (char)(1 << (fuzz_byte(in) & 7));
        replace(l, text, l->text.len);
        if (what == 8)
            forge(t, i);
        return what == 8;
    case 1:
        take_out(t, i);
        return false;
    case 2: /* twice */
        if (t->n == LINES_MAX)
            return false;
        memmove(l + 1, l, (t->n - i) * sizeof *l);
        t->n++;
        l->text = (struct base_str){NULL, 0};
        replace(l, text, l[1].text.len);
        return false;
    case 3:
        j = fuzz_byte(in) % t->n;
        keep = *l;
        *l = t->line[j];
        t->line[j] = keep;
        return false;
    case 4: /* the end of a line */
        replace(l, text, at);
        return false;
    case 5: /* a byte more */
        memmove(text + at + 1, text + at, l->text.len - at);
        text[at] = (char)fuzz_byte(in);
        replace(l, text, l->text.len + 1);
        return false;
    case 6: /* another file begins here, or none */
        for (j = i; j < t->n; j++)
            t->line[j].file += 1 + (int)(at & 1);
        return false;
    default: /* the end of the trail */
        while (t->n > i)
            take_out(t, t->n - 1);
        t->cut = false;
        return false;
    }
}

static bool piece_of(const struct trail *t, const struct trail *whole)
{
    for (size_t from = 0; from < whole->n; from++) {
        size_t k = 0;

        while (k < t->n && from + k < whole->n && base_str_eq(t->line[k].text, whole->line[from + k].text) &&
               (k == 0 || (t->line[k].file != t->line[k - 1].file) ==
                              (whole->line[from + k].file != whole->line[from + k - 1].file)))
            k++;
        if (k == t->n || (k + 1 == t->n && t->cut))
            return true;
    }
    return t->n == 0 || (t->n == 1 && t->cut);
}

static void signed_lines(const struct trail *t, const struct trail *whole, uint64_t upto)
{
    for (size_t i = 0; i < t->n; i++) {
        struct audit_chain c, w;
        bool found = false;

        if (audit_chain_parse(t->line[i].text, &c) || c.seq > upto)
            continue;
        for (size_t k = 0; k < whole->n && !found; k++)
            found = !audit_chain_parse(whole->line[k].text, &w) && w.seq == c.seq &&
                    base_str_eq(t->line[i].text, whole->line[k].text);
        CHECK(found, "line %zu is signed, but nobody wrote it: %.*s", i, (int)t->line[i].text.len,
              t->line[i].text.ptr);
    }
}

static struct trail *copy_of(const struct trail *t)
{
    struct trail *c = calloc(1, sizeof *c);

    CHECK(c, "memory");
    *c = *t;
    for (size_t i = 0; i < t->n; i++) {
        c->line[i].text = (struct base_str){NULL, 0};
        replace(&c->line[i], t->line[i].text.ptr, t->line[i].text.len);
    }
    return c;
}

static void drop(struct trail *t)
{
    while (t->n)
        take_out(t, t->n - 1);
    free(t);
}

static void made(struct fuzz_in in)
{
    struct trail *whole = calloc(1, sizeof *whole), *t;
    struct audit_verifier v;
    bool forged = false;
    unsigned edits;

    CHECK(whole, "memory");
    make(&in, whole);
    CHECK(!verify(whole, &v, true), "our own trail: %s at %llu:%llu", audit_flaw_name(v.flaw),
          (unsigned long long)v.flaw_file, (unsigned long long)v.flaw_line);
    CHECK(v.lines == whole->n && v.torn + v.records + v.checkpoints + v.files == whole->n, "counted wrongly");
    for (size_t i = 0; i < whole->n; i++)
        reread(whole->line[i].text);
    t = copy_of(whole);
    t->cut = fuzz_byte(&in) & 1;
    edits = fuzz_byte(&in) % 4;
    for (unsigned i = 0; i < edits; i++)
        forged |= edit(&in, t);
    for (int with_key = 0; with_key < 2; with_key++) {
        if (!verify(t, &v, with_key) && !forged)
            CHECK(piece_of(t, whole), "an edited trail is taken");
        if (!v.flaw)
            signed_lines(t, whole, v.signed_seq);
        again(t, &v, with_key);
    }
    drop(t);
    drop(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    set_up();
    if (data[0] & 1)
        made((struct fuzz_in){data + 1, size - 1});
    else
        raw(fuzz_text(data + 1, size - 1));
    return 0;
}
