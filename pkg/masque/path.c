/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/path.h"

#define PREFIX "/.well-known/masque/ip/"
#define SHOW 64 /* bytes of a wrong value that are quoted */

/* Printable copy of `s` for an error text. */
static const char *show(char dst[SHOW + 4], struct base_str s)
{
    size_t n = s.len < SHOW ? s.len : SHOW;
    for (size_t i = 0; i < n; i++)
        dst[i] = s.ptr[i] >= 0x20 && s.ptr[i] < 0x7f && s.ptr[i] != '"' ? s.ptr[i] : '?';
    memcpy(dst + n, s.len > SHOW ? "..." : "", s.len > SHOW ? 4 : 1);
    return dst;
}

static int bad(struct base_err *err, const char *part, struct base_str value, const char *why)
{
    char buf[SHOW + 4];
    return base_err_set(err, BASE_EINVAL, "path: %s \"%s\": %s", part, show(buf, value), why);
}

static int unhex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Percent-decodes one segment into dst. NULL, or what is wrong. */
static const char *decode(char *dst, size_t size, struct base_str s, struct base_str *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (n == size)
            return "too long";
        char c = s.ptr[i];
        if (c == '%') {
            int hi = i + 2 < s.len ? unhex(s.ptr[i + 1]) : -1, lo = i + 2 < s.len ? unhex(s.ptr[i + 2]) : -1;
            if (hi < 0 || lo < 0)
                return "% must be followed by two hexadecimal digits";
            c = (char)(hi << 4 | lo);
            i += 2;
        }
        if (c == 0)
            return "contains a NUL";
        dst[n++] = c;
    }
    *ret = (struct base_str){dst, n};
    return NULL;
}

static bool has(struct base_str s, char c)
{
    return s.len > 0 && memchr(s.ptr, c, s.len) != NULL;
}

static int parse_target(struct masque_path *ret, struct base_str raw, struct base_err *err)
{
    char buf[128];
    struct base_str s;
    const char *why = decode(buf, sizeof buf, raw, &s);
    if (why)
        return bad(err, "target", raw, why);
    if (s.len == 0)
        return bad(err, "target", raw, "is empty; use * or an IPv6 prefix such as fd00%3A%3A%2F64");
    if (base_str_eqz(s, "*")) {
        ret->target = MASQUE_TARGET_ANY;
        return BASE_OK;
    }
    if (has(s, '%'))
        return bad(err, "target", raw, "has a zone; zones mean nothing here, leave it out");
    if (has(s, '['))
        return bad(err, "target", raw, "has brackets; write the address without them");
    if (!has(s, ':'))
        return bad(err, "target", raw,
                   "is not IPv6 (IPv4 and host names are not offered); use * or an IPv6 prefix");

    const char *slash = memchr(s.ptr, '/', s.len);
    struct base_str addr = {s.ptr, slash ? (size_t)(slash - s.ptr) : s.len};
    uint64_t len = 128;
    if (slash && base_parse_u64((struct base_str){slash + 1, s.len - addr.len - 1}, 128, &len) != BASE_OK)
        return bad(err, "target", raw, "prefix length must be a number from 0 to 128");
    struct base_prefix p = {.len = (uint8_t)len};
    if (base_ip6_parse(&p.addr, addr) != BASE_OK)
        return bad(err, "target", raw, "is not an IPv6 address or prefix");
    for (unsigned bit = p.len; bit < 128; bit++)
        if (p.addr.b[bit / 8] & (0x80u >> (bit % 8)))
            return bad(err, "target", raw, "bits after the prefix length must be zero");
    ret->target = MASQUE_TARGET_PREFIX;
    ret->prefix = p;
    return BASE_OK;
}

static int parse_ipproto(struct masque_path *ret, struct base_str raw, struct base_err *err)
{
    char buf[16];
    struct base_str s;
    uint64_t v;
    const char *why = decode(buf, sizeof buf, raw, &s);
    if (why)
        return bad(err, "ipproto", raw, why);
    if (base_str_eqz(s, "*")) {
        ret->ipproto = -1;
        return BASE_OK;
    }
    if (base_parse_u64(s, 255, &v) != BASE_OK)
        return bad(err, "ipproto", raw, "must be * or a number from 0 to 255");
    ret->ipproto = (int)v;
    return BASE_OK;
}

int masque_path_parse(struct masque_path *ret, struct base_str path, struct base_err *err)
{
    struct masque_path out = {0};
    size_t skip = sizeof PREFIX - 1;
    if (!base_str_starts(path, PREFIX))
        return bad(err, "path", path, "must be " PREFIX "{target}/{ipproto}/");
    if (has(path, '?') || has(path, '#'))
        return bad(err, "path", path, "a query is not part of " PREFIX "{target}/{ipproto}/");
    struct base_str rest = {path.ptr + skip, path.len - skip};
    const char *a = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
    if (!a)
        return bad(err, "path", path, "ipproto is missing; must be " PREFIX "{target}/{ipproto}/");
    struct base_str target = {rest.ptr, (size_t)(a - rest.ptr)};
    struct base_str tail = {a + 1, rest.len - target.len - 1};
    const char *b = tail.len ? memchr(tail.ptr, '/', tail.len) : NULL;
    if (!b)
        return bad(err, "path", path, "must end with /");
    if (b != tail.ptr + tail.len - 1)
        return bad(err, "path", path,
                   "has more parts than " PREFIX "{target}/{ipproto}/; the / of a prefix is written %2F");
    struct base_str ipproto = {tail.ptr, tail.len - 1};
    int rv = parse_target(&out, target, err);
    if (rv == BASE_OK)
        rv = parse_ipproto(&out, ipproto, err);
    if (rv == BASE_OK)
        *ret = out;
    return rv;
}
