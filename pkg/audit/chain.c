/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/chain.h"

#define HASH_TAIL_SIZE (sizeof(",\"hash\":\"") - 1 + 2 * BASE_SHA256_SIZE + sizeof("\"}") - 1)
#define HEAD_SIZE 80 /* within it a line of the chain's own says what it is */
static const char hash_key[] = ",\"hash\":\"";
static const char seq_key[] = ",\"seq\":";

/* ---- sealing */

/* `body` is the line from '{' to before its last '}'. */
static int seal(struct audit_chain *c, struct base_hasher *h, struct base_buf *out, struct base_str body)
{
    struct audit_chain next = {.seq = c->seq + 1};
    char seq[40], hex[2 * BASE_SHA256_SIZE + 1];
    size_t before = out->len;
    int rc;

    (void)base_fmt(seq, sizeof seq, "%s%llu", seq_key, (unsigned long long)next.seq);
    rc = base_hasher_digest(h, next.hash, (struct base_str){(const char *)c->hash, sizeof c->hash}, body,
                            base_str_of(seq));
    if (rc)
        return rc;
    base_hex(hex, next.hash, sizeof next.hash);
    rc = base_buf_add(out, body.ptr, body.len);
    if (!rc)
        rc = base_buf_addf(out, "%s%s%s\"}\n", seq, hash_key, hex);
    if (rc) {
        out->len = before;
        return rc;
    }
    *c = next;
    return BASE_OK;
}

int audit_chain_seal(struct audit_chain *c, struct base_hasher *h, struct base_buf *out, struct base_str line)
{
    if (line.len < 4 || line.ptr[0] != '{' || line.ptr[line.len - 1] != '\n' ||
        line.ptr[line.len - 2] != '}' || memchr(line.ptr, '\n', line.len - 1))
        return BASE_EINVAL;
    return seal(c, h, out, (struct base_str){line.ptr, line.len - 2});
}

int audit_chain_start(struct audit_chain *c, struct base_hasher *h, struct base_buf *out, base_wall ts,
                      const char *node)
{
    char line[400], at[BASE_RFC3339_SIZE], prev[2 * BASE_SHA256_SIZE + 1];

    if (!base_is_subdomain(base_str_of(node), 125))
        return BASE_EINVAL;
    base_rfc3339(at, ts);
    base_hex(prev, c->hash, sizeof c->hash);
    (void)base_fmt(line, sizeof line, "{\"ts\":\"%s\",\"chain\":\"start\",\"node\":\"%s\",\"prev\":\"%s\"",
                   at, node, prev);
    return seal(c, h, out, base_str_of(line));
}

int audit_chain_torn(struct audit_chain *c, struct base_hasher *h, struct base_buf *out, base_wall ts,
                     uint64_t bytes)
{
    char line[160], at[BASE_RFC3339_SIZE];

    base_rfc3339(at, ts);
    (void)base_fmt(line, sizeof line, "{\"ts\":\"%s\",\"chain\":\"torn\",\"bytes\":%llu", at,
                   (unsigned long long)bytes);
    return seal(c, h, out, base_str_of(line));
}

/* What a checkpoint signs: that at `at` the trail of `node` stood at this line. */
static bool statement(char *dst, size_t size, const struct audit_chain *c, struct base_str node,
                      struct base_str at)
{
    char hex[2 * BASE_SHA256_SIZE + 1];

    base_hex(hex, c->hash, sizeof c->hash);
    return base_fmt(dst, size, "holdfast-audit-checkpoint-v1\n%.*s\n%llu\n%s\n%.*s\n", (int)node.len,
                    node.ptr, (unsigned long long)c->seq, hex, (int)at.len, at.ptr);
}

int audit_chain_checkpoint(struct audit_chain *c, struct base_hasher *h, struct base_buf *out, base_wall ts,
                           const char *node, const struct base_key *key)
{
    char line[512], at[BASE_RFC3339_SIZE], said[400], hex[2 * BASE_SIGNATURE_SIZE + 1];
    uint8_t sig[BASE_SIGNATURE_SIZE];
    int rc;

    if (!base_is_subdomain(base_str_of(node), 125))
        return BASE_EINVAL;
    base_rfc3339(at, ts);
    if (!statement(said, sizeof said, c, base_str_of(node), base_str_of(at)))
        return BASE_EINVAL;
    rc = base_key_sign(key, sig, base_str_of(said));
    if (rc)
        return rc;
    base_hex(hex, sig, sizeof sig);
    (void)base_fmt(line, sizeof line,
                   "{\"ts\":\"%s\",\"chain\":\"checkpoint\",\"node\":\"%s\",\"key\":\"%s\",\"sig\":\"%s\"",
                   at, node, base_key_id(key), hex);
    return seal(c, h, out, base_str_of(line));
}

/* ---- reading */

static const char *find(struct base_str s, const char *what)
{
    return s.len ? memmem(s.ptr, s.len, what, strlen(what)) : NULL;
}

/* Splits a sealed line: what was hashed, and what it says. */
static int split(struct base_str line, struct base_str *ret_hashed, struct audit_chain *ret)
{
    size_t tail = sizeof hash_key - 1, n;
    const char *at;
    uint64_t seq;

    if (line.len < HASH_TAIL_SIZE + 12 || line.ptr[0] != '{')
        return BASE_EINVAL;
    n = line.len - HASH_TAIL_SIZE;
    if (memcmp(line.ptr + n, hash_key, tail) != 0 || memcmp(line.ptr + line.len - 2, "\"}", 2) != 0)
        return BASE_EINVAL;
    for (size_t i = n + tail; i < line.len - 2; i++)
        if (line.ptr[i] >= 'A' && line.ptr[i] <= 'F')
            return BASE_EINVAL;
    if (base_unhex(ret->hash, sizeof ret->hash, (struct base_str){line.ptr + n + tail, 2 * BASE_SHA256_SIZE}))
        return BASE_EINVAL;
    for (at = line.ptr + n; at > line.ptr && at[-1] >= '0' && at[-1] <= '9'; at--)
        ;
    if ((size_t)(at - line.ptr) < sizeof seq_key ||
        memcmp(at - (sizeof seq_key - 1), seq_key, sizeof seq_key - 1) != 0 ||
        base_parse_u64((struct base_str){at, (size_t)(line.ptr + n - at)}, UINT64_MAX, &seq))
        return BASE_EINVAL;
    ret->seq = seq;
    *ret_hashed = (struct base_str){line.ptr, n};
    return BASE_OK;
}

int audit_chain_parse(struct base_str line, struct audit_chain *ret)
{
    struct base_str hashed;
    struct audit_chain c;

    if (split(line, &hashed, &c))
        return BASE_EINVAL;
    *ret = c;
    return BASE_OK;
}

const char *audit_flaw_name(enum audit_flaw f)
{
    switch (f) {
    case AUDIT_FLAW_NONE:
        return "none";
    case AUDIT_FLAW_FORM:
        return "no sealed record";
    case AUDIT_FLAW_HASH:
        return "hash does not fit: this line or the one before was changed, moved or taken away";
    case AUDIT_FLAW_SEQUENCE:
        return "sequence number is not the next one";
    case AUDIT_FLAW_START:
        return "file does not continue the one before";
    case AUDIT_FLAW_SIGNATURE:
        return "checkpoint is not signed by a given key, or signs another line";
    case AUDIT_FLAW_TORN:
        return "unfinished line with something after it";
    }
    return "?";
}

void audit_verifier_init(struct audit_verifier *v)
{
    *v = (struct audit_verifier){.begun = false};
}

static enum audit_flaw flawed(struct audit_verifier *v, enum audit_flaw f)
{
    if (!v->flaw) {
        v->flaw = f;
        v->flaw_file = v->files;
        v->flaw_line = v->line_in_file;
    }
    return v->flaw;
}

void audit_verifier_file(struct audit_verifier *v)
{
    v->files++;
    v->line_in_file = 0;
}

/* A start line: takes up the chain where it says, or must say where we are. */
static enum audit_flaw start_line(struct audit_verifier *v, struct base_str line,
                                  const struct audit_chain *said)
{
    static const char prev_key[] = "\",\"prev\":\"", node_key[] = "\"chain\":\"start\",\"node\":\"";
    const char *prev = find(line, prev_key), *node = find(line, node_key), *end;
    uint8_t hash[BASE_SHA256_SIZE];
    char name[sizeof v->node];

    if (!prev || !node)
        return flawed(v, AUDIT_FLAW_FORM);
    prev += sizeof prev_key - 1;
    node += sizeof node_key - 1;
    end = memchr(node, '"', (size_t)(line.ptr + line.len - node));
    if ((size_t)(line.ptr + line.len - prev) < 2 * BASE_SHA256_SIZE || !end ||
        base_unhex(hash, sizeof hash, (struct base_str){prev, 2 * BASE_SHA256_SIZE}) ||
        base_copy_str(name, sizeof name, (struct base_str){node, (size_t)(end - node)}))
        return flawed(v, AUDIT_FLAW_FORM);
    if (!v->begun) { /* the first file that we were given may be in the middle of the trail */
        memcpy(v->chain.hash, hash, sizeof hash);
        v->chain.seq = said->seq - 1;
        (void)base_copy(v->node, sizeof v->node, name);
        v->begun = true;
        return AUDIT_FLAW_NONE;
    }
    if (memcmp(hash, v->chain.hash, sizeof hash) != 0 || strcmp(name, v->node) != 0)
        return flawed(v, AUDIT_FLAW_START);
    return AUDIT_FLAW_NONE;
}

/* The value of "key":"…" in a line of ours. */
static bool text_of(struct base_str line, const char *key, struct base_str *ret)
{
    const char *at = find(line, key), *end;

    if (!at)
        return false;
    at += strlen(key);
    end = memchr(at, '"', (size_t)(line.ptr + line.len - at));
    *ret = (struct base_str){at, end ? (size_t)(end - at) : 0};
    return end != NULL;
}

static enum audit_flaw checkpoint_line(struct audit_verifier *v, struct base_str line)
{
    struct base_str at, node, id, sig;
    uint8_t bytes[BASE_SIGNATURE_SIZE];
    char said[400];

    if (!text_of(line, "{\"ts\":\"", &at) || !text_of(line, ",\"node\":\"", &node) ||
        !text_of(line, ",\"key\":\"", &id) || !text_of(line, ",\"sig\":\"", &sig) ||
        base_unhex(bytes, sizeof bytes, sig) || node.len > 125 || at.len >= BASE_RFC3339_SIZE)
        return flawed(v, AUDIT_FLAW_FORM);
    v->checkpoints++;
    if (!v->n_keys)
        return AUDIT_FLAW_NONE;
    if (!base_str_eqz(node, v->node) || !statement(said, sizeof said, &v->chain, node, at))
        return flawed(v, AUDIT_FLAW_SIGNATURE);
    for (size_t i = 0; i < v->n_keys; i++)
        if (base_str_eqz(id, base_key_id(v->keys[i])) &&
            base_key_verify(v->keys[i], bytes, base_str_of(said)) == BASE_OK) {
            v->signed_seq = v->chain.seq;
            return AUDIT_FLAW_NONE;
        }
    return flawed(v, AUDIT_FLAW_SIGNATURE);
}

/* Can these bytes be what a crash left of a first line? */
static bool begins_a_line(struct base_str s)
{
    static const char head[] = "{\"ts\":\"";
    size_t n = s.len < sizeof head - 1 ? s.len : sizeof head - 1;

    return s.len > 0 && s.len < HASH_TAIL_SIZE + 400 && memcmp(s.ptr, head, n) == 0;
}

enum audit_flaw audit_verifier_line(struct audit_verifier *v, struct base_hasher *h, struct base_str line,
                                    bool whole)
{
    struct audit_chain said;
    struct base_str hashed;
    uint8_t hash[BASE_SHA256_SIZE];
    struct base_str own;
    bool is_start, is_torn, is_checkpoint;

    if (v->flaw)
        return v->flaw;
    v->line_in_file++;
    v->lines++;
    if (v->torn_end)
        return flawed(v, AUDIT_FLAW_TORN);
    if (!whole && !v->begun && !begins_a_line(line)) /* all that there is, and no part of a trail */
        return flawed(v, AUDIT_FLAW_FORM);
    if (!whole) { /* what a crash tore off: nothing may come after it */
        v->torn_end = true;
        v->torn++;
        return AUDIT_FLAW_NONE;
    }
    if (split(line, &hashed, &said))
        return flawed(v, AUDIT_FLAW_FORM);
    own = (struct base_str){hashed.ptr, hashed.len < HEAD_SIZE ? hashed.len : HEAD_SIZE};
    if (!find(own, "\"chain\":\""))
        own.len = 0; /* a record: the chain's own lines say so behind their time */
    is_start = find(own, "\"chain\":\"start\"") != NULL;
    is_torn = find(own, "\"chain\":\"torn\"") != NULL;
    is_checkpoint = find(own, "\"chain\":\"checkpoint\"") != NULL;
    if ((v->line_in_file == 1) != is_start)
        return flawed(v, AUDIT_FLAW_START);
    if (is_start && start_line(v, hashed, &said))
        return v->flaw;
    if (said.seq != v->chain.seq + 1)
        return flawed(v, AUDIT_FLAW_SEQUENCE);
    if (base_hasher_digest(h, hash, (struct base_str){(const char *)v->chain.hash, sizeof v->chain.hash},
                           hashed, BASE_STR("")) ||
        memcmp(hash, said.hash, sizeof hash) != 0)
        return flawed(v, AUDIT_FLAW_HASH);
    if (is_checkpoint && checkpoint_line(v, hashed))
        return v->flaw;
    v->chain = said;
    v->torn += is_torn;
    v->records += !is_start && !is_torn && !is_checkpoint;
    return AUDIT_FLAW_NONE;
}

enum audit_flaw audit_verifier_end(struct audit_verifier *v)
{
    if (!v->flaw && !v->begun && !v->torn_end)
        return flawed(v, AUDIT_FLAW_START);
    return v->flaw;
}
