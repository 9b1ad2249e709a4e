/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_identity.c - identities, names, ids, prefixes: one text for one thing.
 *
 * Input: one byte that chooses, then the text. What is accepted is in normal form: written again it is the
 * same text, and a normaliser of the fuzzer's own (RFC 3986, section 6.2.2 and 6.2.3) finds nothing to do on
 * a URI.
 */
#include "fuzz.h"

#include <arpa/inet.h>
#include <ctype.h>

#include "authority/identity.h"
#include "authority/prefix.h"

#define MARK "S3CRET"

/* ---- URIs: what somebody else might take for the same */

static size_t decoded(char *dst, struct base_str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++) {
        uint8_t b;

        if (s.ptr[i] == '%' && i + 2 < s.len && !base_unhex(&b, 1, (struct base_str){s.ptr + i + 1, 2})) {
            dst[n++] = (char)b;
            i += 2;
        } else {
            dst[n++] = s.ptr[i];
        }
    }
    return n;
}

/* Dot segments and empty segments away; '/' at the end stays. */
static size_t path_normal(char *dst, struct base_str p)
{
    size_t n = 0, at = 0;

    while (at < p.len) {
        size_t end = at, len;

        if (p.ptr[at] == '/')
            end = ++at;
        while (end < p.len && p.ptr[end] != '/')
            end++;
        len = end - at;
        if (len == 0 && end < p.len) {
            continue;
        } else if (len == 1 && p.ptr[at] == '.') {
            at = end;
        } else if (len == 2 && memcmp(p.ptr + at, "..", 2) == 0) {
            while (n && dst[--n] != '/')
                ;
            at = end;
        } else {
            if (at > 0 && p.ptr[at - 1] == '/')
                dst[n++] = '/';
            memcpy(dst + n, p.ptr + at, len);
            n += len;
            at = end;
        }
    }
    return n;
}

/* Port: empty, or with zeros in front, is another spelling of none, or of a shorter one. */
static size_t host_normal(char *dst, struct base_str h)
{
    const char *colon = h.len ? memrchr(h.ptr, ':', h.len) : NULL;
    size_t n = 0, host = colon ? (size_t)(colon - h.ptr) : h.len, port;

    if (h.len && h.ptr[h.len - 1] == ']')
        host = h.len;
    for (size_t i = 0; i < host; i++)
        dst[n++] = (char)tolower((unsigned char)h.ptr[i]);
    while (n && dst[n - 1] == '.')
        n--; /* the root of the DNS */
    if (host == h.len)
        return n;
    for (port = host + 1; port < h.len && h.ptr[port] == '0'; port++)
        ;
    if (port < h.len) {
        dst[n++] = ':';
        memcpy(dst + n, h.ptr + port, h.len - port);
        n += h.len - port;
    }
    return n;
}

static void uri(struct base_str v)
{
    char plain[AUTHORITY_IDENTITY_SIZE], out[2 * AUTHORITY_IDENTITY_SIZE];
    struct base_str p;
    size_t n = 0, at = 0, host;

    p = (struct base_str){plain, decoded(plain, v)};
    while (at < p.len && p.ptr[at] != ':')
        out[n++] = (char)tolower((unsigned char)p.ptr[at++]);
    CHECK(at < p.len, "no scheme");
    out[n++] = ':';
    at++;
    if (p.len - at >= 2 && memcmp(p.ptr + at, "//", 2) == 0) {
        out[n++] = '/';
        out[n++] = '/';
        at += 2;
        for (host = at; host < p.len && p.ptr[host] != '/'; host++)
            ;
        CHECK(!memchr(p.ptr + at, '@', host - at), "a user before the host");
        n += host_normal(out + n, (struct base_str){p.ptr + at, host - at});
        at = host;
    }
    n += path_normal(out + n, (struct base_str){p.ptr + at, p.len - at});
    CHECK(base_str_eq(v, (struct base_str){out, n}), "'%.*s' is accepted, '%.*s' means the same", (int)v.len,
          v.ptr, (int)n, out);
}

static void identity(enum contract_identity_kind kind, struct base_str v)
{
    struct base_err err = {0};
    int rc = authority_identity_check(kind, v, &err);

    CHECK(rc == authority_identity_check(kind, v, NULL), "another answer the second time");
    if (rc) {
        CHECK(err.msg[0] && !fuzz_has(base_str_of(err.msg), MARK), "the error repeats the value: %s",
              err.msg);
        return;
    }
    CHECK(v.len > 0 && v.len <= AUTHORITY_IDENTITY_MAX, "%zu bytes", v.len);
    for (size_t i = 0; i < v.len; i++)
        CHECK(v.ptr[i] > ' ' && v.ptr[i] <= '~', "byte %02x", (unsigned char)v.ptr[i]);
    if (kind == CONTRACT_IDENTITY_URI) {
        CHECK(!memchr(v.ptr, '%', v.len) && !memchr(v.ptr, '?', v.len) && !memchr(v.ptr, '#', v.len), "form");
        uri(v);
    }
}

/* ---- ids: what is read is written as it was read */

static void ids(struct base_str v)
{
    char text[64];
    struct base_uuid u;
    struct base_correlation c;
    struct base_prefix p, q;
    struct base_ip6 ip;
    uint64_t n;

    if (!base_uuid_parse(&u, v)) {
        base_uuid_text(text, &u);
        CHECK(base_str_eqz(v, text), "uuid %s", text);
    }
    if (!base_correlation_parse(&c, v)) {
        base_correlation_text(text, &c);
        CHECK(base_str_eqz(v, text) && !base_correlation_is_zero(&c), "correlation %s", text);
    }
    if (!base_traceparent_parse(&c, v)) {
        base_correlation_text(text, &c);
        CHECK(fuzz_has(v, text), "correlation %s", text);
    }
    if (!base_prefix_parse(&p, v)) {
        base_prefix_text(text, &p);
        CHECK(base_str_eqz(v, text) && p.len <= 128, "prefix %s", text);
        CHECK(base_prefix_covers(&p, &p) && base_prefix_has_ip(&p, &p.addr), "a prefix holds itself");
        q = (struct base_prefix){.len = 0};
        CHECK(base_prefix_covers(&q, &p) && (p.len == 0 || !base_prefix_covers(&p, &q)), "::/0");
    }
    if (!base_ip6_parse(&ip, v)) {
        struct base_ip6 again;

        base_ip6_text(text, &ip);
        CHECK(!base_ip6_parse(&again, base_str_of(text)) && base_ip6_eq(&ip, &again), "address %s", text);
    }
    if (!base_parse_u64(v, INT64_MAX, &n)) {
        (void)base_fmt(text, sizeof text, "%llu", (unsigned long long)n);
        CHECK(base_str_eqz(v, text), "number %s", text);
    }
}

static void times(struct base_str v)
{
    char text[BASE_RFC3339_SIZE];
    base_wall t, again;

    if (base_rfc3339_parse(v, &t))
        return;
    base_rfc3339(text, t);
    CHECK(!base_rfc3339_parse(base_str_of(text), &again), "'%.*s' becomes '%s', which nobody reads",
          (int)v.len, v.ptr, text);
    CHECK(t == again, "%s", text);
}

/* ---- names: no two pairs make one name */

static void names(struct base_str v)
{
    char a[300], b[300], name[CONTRACT_NAME_SIZE];
    const char *nul = v.len ? memchr(v.ptr, 0, v.len) : NULL;
    struct base_err err = {0};

    if (!nul || base_copy_str(a, sizeof a, (struct base_str){v.ptr, (size_t)(nul - v.ptr)}) ||
        base_copy_str(b, sizeof b, (struct base_str){nul + 1, v.len - (size_t)(nul - v.ptr) - 1}) ||
        strlen(b) != v.len - (size_t)(nul - v.ptr) - 1)
        return;
    if (!contract_binding_name(name, a, b, &err)) {
        CHECK(strlen(a) <= 63 && !strchr(a, '.') && strlen(b) <= 189, "parts");
        CHECK(base_is_subdomain(base_str_of(name), 253), "%s", name);
        CHECK(strncmp(name, a, strlen(a)) == 0 && name[strlen(a)] == '.' && !strcmp(name + strlen(a) + 1, b),
              "the first dot does not part %s", name);
    } else {
        CHECK(err.msg[0], "refused without a reason");
    }
    if (!contract_instance_name(name, a, b, NULL))
        CHECK(strlen(b) <= 125 && base_is_subdomain(base_str_of(name), 253), "%s", name);
}

/* ---- which /96 of a pool */

static void candidates(struct fuzz_in in)
{
    struct base_prefix pool = {.len = (uint8_t)(fuzz_byte(&in) % 97)}, got[AUTHORITY_CANDIDATES];
    char tenant[64] = "t", connector[190] = "c";
    unsigned n = 0;

    for (unsigned i = 0; i < 16; i++)
        pool.addr.b[i] = fuzz_byte(&in);
    for (unsigned bit = pool.len; bit < 128; bit++)
        pool.addr.b[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
    (void)base_fmt(connector, sizeof connector, "c%u", fuzz_u16(&in));
    for (; n < AUTHORITY_CANDIDATES; n++) {
        int rc = authority_candidate(&got[n], tenant, connector, "vpc-a", &pool, n);

        if (rc) {
            CHECK(pool.len > 95 ? rc == BASE_EINVAL : rc == BASE_EFULL && n == (1u << (96 - pool.len)) - 1,
                  "candidate %u of a /%u", n, pool.len);
            break;
        }
        CHECK(got[n].len == 96 && base_prefix_covers(&pool, &got[n]) && authority_in_pool(&pool, &got[n]),
              "candidate %u is none of the pool's", n);
        for (unsigned i = 0; i < n; i++)
            CHECK(!base_prefix_eq(&got[i], &got[n]), "candidate %u comes twice", n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct base_str v;

    if (size < 1)
        return 0;
    v = fuzz_text(data + 1, size - 1);
    switch (data[0] & 7) {
    case 0:
        identity(CONTRACT_IDENTITY_URI, v);
        break;
    case 1:
        identity(CONTRACT_IDENTITY_USER, v);
        break;
    case 2:
        ids(v);
        break;
    case 3:
        times(v);
        break;
    case 4:
        names(v);
        break;
    case 5:
        candidates((struct fuzz_in){data + 1, size - 1});
        break;
    default:
        break;
    }
    return 0;
}
