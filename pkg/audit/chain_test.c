/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/chain.h"

#include <criterion/criterion.h>

enum { FILES = 3, RECORDS = 4 }; /* each file: a start line and RECORDS records */
#define LINES (FILES * (RECORDS + 1))

struct trail {
    struct base_buf text;
    struct base_str line[LINES + 4]; /* without '\n' */
    int file[LINES + 4];
    size_t n;
    struct audit_chain end;
};

static void split_lines(struct trail *t, int file, size_t from)
{
    size_t at = from;

    while (at < t->text.len) {
        size_t len =
            (size_t)((char *)memchr(t->text.data + at, '\n', t->text.len - at) - (t->text.data + at));

        t->line[t->n] = (struct base_str){t->text.data + at, len};
        t->file[t->n++] = file;
        at += len + 1;
    }
}

static struct trail *make(struct base_hasher *h)
{
    struct trail *t = base_calloc(1, sizeof *t);
    size_t ends[FILES];
    unsigned k = 0;

    base_buf_init(&t->text, 1 << 20);
    for (int f = 0; f < FILES; f++) {
        cr_assert_eq(audit_chain_start(&t->end, h, &t->text, 1000000 * (f + 1), "edge1"), BASE_OK);
        for (int r = 0; r < RECORDS; r++) {
            char line[64];

            (void)base_fmt(line, sizeof line, "{\"event\":\"renew\",\"n\":%u}\n", ++k);
            cr_assert_eq(audit_chain_seal(&t->end, h, &t->text, base_str_of(line)), BASE_OK);
        }
        ends[f] = t->text.len;
    }
    for (int f = 0; f < FILES; f++) {
        size_t all = t->text.len;

        t->text.len = ends[f];
        split_lines(t, f, f ? ends[f - 1] : 0);
        t->text.len = all;
    }
    cr_assert_eq(t->n, LINES);
    return t;
}

static void drop(struct trail *t)
{
    base_buf_fini(&t->text);
    base_free(t);
}

static enum audit_flaw verify(struct base_hasher *h, const struct trail *t, struct audit_verifier *v)
{
    int file = -1;

    audit_verifier_init(v);
    for (size_t i = 0; i < t->n; i++) {
        if (t->file[i] != file)
            audit_verifier_file(v);
        file = t->file[i];
        (void)audit_verifier_line(v, h, t->line[i], true);
    }
    return audit_verifier_end(v);
}

Test(audit_chain, a_trail_over_several_files_verifies)
{
    base_cleanup(base_hasher_freep) struct base_hasher *h = base_hasher_new();
    struct trail *t = make(h);
    struct audit_verifier v;

    cr_assert_eq(verify(h, t, &v), AUDIT_FLAW_NONE, "%s at %lu:%lu", audit_flaw_name(v.flaw),
                 (unsigned long)v.flaw_file, (unsigned long)v.flaw_line);
    cr_assert_eq(v.records, FILES * RECORDS);
    cr_assert_eq(v.files, FILES);
    cr_assert_eq(v.chain.seq, t->end.seq);
    cr_assert_arr_eq(v.chain.hash, t->end.hash, sizeof t->end.hash);
    /* The oldest files may be gone: the trail then begins in the middle. */
    t->n -= RECORDS + 1;
    memmove(t->line, t->line + RECORDS + 1, t->n * sizeof t->line[0]);
    memmove(t->file, t->file + RECORDS + 1, t->n * sizeof t->file[0]);
    cr_assert_eq(verify(h, t, &v), AUDIT_FLAW_NONE);
    drop(t);
}

/* Every byte of every line, changed in one bit, is found. */
Test(audit_chain, an_edit_anywhere_is_found)
{
    base_cleanup(base_hasher_freep) struct base_hasher *h = base_hasher_new();
    struct trail *t = make(h);
    struct audit_verifier v;

    for (size_t i = 0; i < t->n; i++)
        for (size_t at = 0; at < t->line[i].len; at++) {
            char *p = t->text.data + (t->line[i].ptr - t->text.data) + at;

            *p ^= 1;
            cr_assert_neq(verify(h, t, &v), AUDIT_FLAW_NONE, "line %zu byte %zu", i, at);
            *p ^= 1;
        }
    drop(t);
}

Test(audit_chain, missing_repeated_and_swapped_lines_are_found)
{
    base_cleanup(base_hasher_freep) struct base_hasher *h = base_hasher_new();
    struct audit_verifier v;

    for (size_t i = 0; i + 1 < LINES; i++) {
        struct trail *t = make(h);
        struct base_str a = t->line[i];

        if (i > 0 || t->file[1] != t->file[0]) { /* take line i away (the very first start line: see below) */
            memmove(&t->line[i], &t->line[i + 1], (t->n - i - 1) * sizeof t->line[0]);
            memmove(&t->file[i], &t->file[i + 1], (t->n - i - 1) * sizeof t->file[0]);
            t->n--;
            cr_assert_neq(verify(h, t, &v), AUDIT_FLAW_NONE, "missing %zu", i);
        }
        drop(t);
        t = make(h);
        a = t->line[i];
        t->line[i] = t->line[i + 1];
        t->line[i + 1] = a;
        cr_assert_neq(verify(h, t, &v), AUDIT_FLAW_NONE, "swapped %zu", i);
        drop(t);
        t = make(h);
        t->line[i + 1] = t->line[i];
        cr_assert_neq(verify(h, t, &v), AUDIT_FLAW_NONE, "repeated %zu", i);
        drop(t);
    }
}

Test(audit_chain, a_file_left_out_or_of_another_node_is_found)
{
    base_cleanup(base_hasher_freep) struct base_hasher *h = base_hasher_new();
    struct trail *t = make(h), *other = make(h);
    struct audit_verifier v;
    size_t first = RECORDS + 1;

    memmove(&t->line[first], &t->line[2 * first], first * sizeof t->line[0]);
    memmove(&t->file[first], &t->file[2 * first], first * sizeof t->file[0]);
    t->n -= first;
    cr_assert_eq(verify(h, t, &v), AUDIT_FLAW_START);
    drop(t);
    /* spliced: the second file of another trail that says the same numbers */
    t = make(h);
    base_buf_reset(&other->text);
    memset(&other->end, 7, sizeof other->end.hash);
    other->end.seq = first;
    other->n = 0;
    cr_assert_eq(audit_chain_start(&other->end, h, &other->text, 1, "edge1"), BASE_OK);
    split_lines(other, 1, 0);
    t->line[first] = other->line[0];
    cr_assert_eq(verify(h, t, &v), AUDIT_FLAW_START);
    drop(t);
    drop(other);
}

/* Crash at every byte of the last line: one torn record at most, and the trail goes on behind a line that
 * says so. */
Test(audit_chain, a_torn_last_line_is_counted_and_nothing_may_follow_it)
{
    base_cleanup(base_hasher_freep) struct base_hasher *h = base_hasher_new();
    struct trail *t = make(h);
    struct base_str last = t->line[LINES - 1];
    struct audit_chain before;

    cr_assert_eq(audit_chain_parse(t->line[LINES - 2], &before), BASE_OK);
    t->n--;
    for (size_t cut = 1; cut <= last.len; cut++) {
        struct audit_chain c = before;
        struct audit_verifier v, w;
        struct base_buf more;

        cr_assert_eq(verify(h, t, &v), AUDIT_FLAW_NONE);
        w = v;
        cr_assert_eq(audit_verifier_line(&v, h, (struct base_str){last.ptr, cut}, false), AUDIT_FLAW_NONE,
                     "cut at %zu", cut);
        cr_assert_eq(audit_verifier_end(&v), AUDIT_FLAW_NONE);
        cr_assert_eq(v.torn, 1);
        cr_assert_eq(audit_verifier_line(&v, h, last, true), AUDIT_FLAW_TORN);
        base_buf_init(&more, 4096);
        cr_assert_eq(audit_chain_torn(&c, h, &more, 1, cut), BASE_OK);
        cr_assert_eq(audit_verifier_line(&w, h, (struct base_str){more.data, more.len - 1}, true),
                     AUDIT_FLAW_NONE);
        cr_assert_eq(w.torn, 1);
        base_buf_fini(&more);
    }
    drop(t);
}

Test(audit_chain, what_is_no_line_is_not_sealed_and_no_trail_is_no_good_trail)
{
    base_cleanup(base_hasher_freep) struct base_hasher *h = base_hasher_new();
    static const char *const bad[] = {"", "{}", "{a}", "x{a}\n", "{a\n", "{a}\n{b}\n", "\n"};
    struct audit_verifier v;
    struct base_buf out;

    base_buf_init(&out, 4096);
    for (size_t i = 0; i < BASE_LEN(bad); i++) {
        struct audit_chain c = {.seq = 3};

        cr_assert_eq(audit_chain_seal(&c, h, &out, base_str_of(bad[i])), BASE_EINVAL, "row %zu", i);
        cr_assert_eq(c.seq, 3);
    }
    audit_verifier_init(&v);
    audit_verifier_file(&v);
    cr_assert_eq(audit_verifier_end(&v), AUDIT_FLAW_START);
    audit_verifier_init(&v);
    audit_verifier_file(&v);
    (void)audit_verifier_line(&v, h, BASE_STR("{\"a\":1}"), true);
    cr_assert_neq(audit_verifier_end(&v), AUDIT_FLAW_NONE);
    base_buf_fini(&out);
}

/* ---- checkpoints */
static const char key_pem[] =
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIHrEzksVLOK5FHNBPpqf9rxwh0IcqC4bYdO1ZY6CFEuB\n-----END "
    "PRIVATE KEY-----\n";
static const char pub_pem[] =
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA48gC03txmsaQkx3SQdpJRk7ui5dNzY7m4aBVE77ybrc=\n-----END "
    "PUBLIC KEY-----\n";
static const char other_pem[] =
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAkwE82t3+g+vYQTT1u7qGk4SEo9/KE5IYUBGqcUXhQQI=\n-----END "
    "PUBLIC KEY-----\n";

static enum audit_flaw verify_text(struct base_hasher *h, struct base_str text, const struct base_key *key,
                                   struct audit_verifier *v)
{
    const struct base_key *keys[] = {key};

    audit_verifier_init(v);
    v->keys = keys;
    v->n_keys = key ? 1 : 0;
    audit_verifier_file(v);
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        size_t n = (size_t)(end - (text.ptr + at));

        (void)audit_verifier_line(v, h, (struct base_str){text.ptr + at, n}, true);
        at += n + 1;
    }
    (void)audit_verifier_end(v);
    v->keys = NULL;
    return v->flaw;
}

/* Writes a trail of `n` records with a checkpoint after each second one, all hashes right. */
static void signed_trail(struct base_buf *out, struct base_hasher *h, const struct base_key *key, unsigned n,
                         const char *word)
{
    struct audit_chain c = {.seq = 0};

    base_buf_init(out, 1 << 16);
    cr_assert_eq(audit_chain_start(&c, h, out, 1, "edge1"), BASE_OK);
    for (unsigned i = 1; i <= n; i++) {
        char line[64];

        (void)base_fmt(line, sizeof line, "{\"n\":%u,\"w\":\"%s\"}\n", i, i == 1 ? word : "x");
        cr_assert_eq(audit_chain_seal(&c, h, out, base_str_of(line)), BASE_OK);
        if (i % 2 == 0)
            cr_assert_eq(audit_chain_checkpoint(&c, h, out, 2, "edge1", key), BASE_OK);
    }
}

Test(audit_chain, a_checkpoint_says_up_to_where_the_trail_is_signed)
{
    base_cleanup(base_hasher_freep) struct base_hasher *h = base_hasher_new();
    base_cleanup(base_key_freep) struct base_key *key = NULL, *pub = NULL, *other = NULL;
    struct audit_verifier v;
    struct base_buf t;

    cr_assert_eq(base_key_private(&key, base_str_of(key_pem), NULL), BASE_OK);
    cr_assert_eq(base_key_public(&pub, base_str_of(pub_pem), NULL), BASE_OK);
    cr_assert_eq(base_key_public(&other, base_str_of(other_pem), NULL), BASE_OK);
    signed_trail(&t, h, key, 5, "good");
    cr_assert_eq(verify_text(h, (struct base_str){t.data, t.len}, pub, &v), AUDIT_FLAW_NONE);
    cr_assert_eq(v.records, 5);
    cr_assert_eq(v.checkpoints, 2);
    cr_assert_eq(v.signed_seq, 6); /* start, two records, checkpoint, two records */
    cr_assert_eq(v.chain.seq, 8);
    cr_assert_eq(verify_text(h, (struct base_str){t.data, t.len}, NULL, &v), AUDIT_FLAW_NONE);
    cr_assert_eq(v.signed_seq, 0);
    cr_assert_eq(verify_text(h, (struct base_str){t.data, t.len}, other, &v), AUDIT_FLAW_SIGNATURE);
    cr_assert_eq(v.flaw_line, 4);
    base_buf_fini(&t);
}

/* Somebody with the files changes a record and computes every hash anew: without the key it shows. */
Test(audit_chain, a_trail_that_was_written_anew_is_found_by_its_checkpoints)
{
    base_cleanup(base_hasher_freep) struct base_hasher *h = base_hasher_new();
    base_cleanup(base_key_freep) struct base_key *key = NULL, *pub = NULL;
    struct audit_chain c = {.seq = 0};
    struct audit_verifier v;
    struct base_buf good, forged, out;
    const char *at, *end;

    cr_assert_eq(base_key_private(&key, base_str_of(key_pem), NULL), BASE_OK);
    cr_assert_eq(base_key_public(&pub, base_str_of(pub_pem), NULL), BASE_OK);
    signed_trail(&good, h, key, 2, "good");
    signed_trail(&forged, h, key, 2, "evil");
    /* the forged records, with the genuine checkpoint sealed behind them */
    base_buf_init(&out, 1 << 16);
    end = strstr(forged.data, "{\"ts\":\"1970-01-01T00:00:00.000002Z\",\"chain\":\"checkpoint\"");
    cr_assert_not_null(end);
    cr_assert_eq(base_buf_add(&out, forged.data, (size_t)(end - forged.data)), BASE_OK);
    at = memrchr(out.data, '{', out.len);
    cr_assert_eq(audit_chain_parse((struct base_str){at, (size_t)(out.data + out.len - 1 - at)}, &c),
                 BASE_OK);
    at = strstr(good.data, "{\"ts\":\"1970-01-01T00:00:00.000002Z\",\"chain\":\"checkpoint\"");
    end = strstr(at, ",\"seq\":");
    {
        char line[512];

        (void)base_fmt(line, sizeof line, "%.*s}\n", (int)(end - at), at);
        cr_assert_eq(audit_chain_seal(&c, h, &out, base_str_of(line)), BASE_OK);
    }
    cr_assert_eq(verify_text(h, (struct base_str){out.data, out.len}, NULL, &v), AUDIT_FLAW_NONE);
    cr_assert_eq(verify_text(h, (struct base_str){out.data, out.len}, pub, &v), AUDIT_FLAW_SIGNATURE);
    base_buf_fini(&good);
    base_buf_fini(&forged);
    base_buf_fini(&out);
}

Test(audit_chain, what_cannot_be_left_of_a_first_line_is_no_torn_trail)
{
    static char zeros[60000];
    static const struct {
        struct base_str s;
        bool good;
    } rows[] = {{BASE_STR("{"), true},
                {BASE_STR("{\"ts\":\"2026"), true},
                {BASE_STR("garbage"), false},
                {BASE_STR(" {\"ts\":\""), false},
                {BASE_STR("{\"event\":\"acquire\""), false},
                {{zeros, 1}, false},
                {{zeros, sizeof zeros}, false}};
    base_cleanup(base_hasher_freep) struct base_hasher *h = base_hasher_new();

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct audit_verifier v;

        audit_verifier_init(&v);
        audit_verifier_file(&v);
        (void)audit_verifier_line(&v, h, rows[i].s, false);
        cr_assert_eq(audit_verifier_end(&v), rows[i].good ? AUDIT_FLAW_NONE : AUDIT_FLAW_FORM, "row %zu", i);
    }
}
