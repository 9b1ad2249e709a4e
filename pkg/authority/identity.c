/* SPDX-License-Identifier: Apache-2.0 */
#include "authority/identity.h"

#include "base/mutant.h"

static bool lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static int bad(struct base_err *err, const char *what)
{
    return base_err_set(err, BASE_EINVAL, "identity: %s", what);
}

/* "[address]" in the one form that RFC 5952 gives it. */
static bool literal(struct base_str s)
{
    char text[BASE_IP6_SIZE];
    struct base_ip6 ip;

    if (s.len < 4 || s.ptr[s.len - 1] != ']' || base_ip6_parse(&ip, (struct base_str){s.ptr + 1, s.len - 2}))
        return false;
    base_ip6_text(text, &ip);
    return base_str_eqz((struct base_str){s.ptr + 1, s.len - 2}, text);
}

/* Nothing, or ":port" as a plain number. *ret: the host without it. */
static bool split_port(struct base_str host, struct base_str *ret)
{
    const char *end = host.ptr[0] == '[' ? memchr(host.ptr, ']', host.len) : memchr(host.ptr, ':', host.len);
    size_t n = end ? (size_t)(end - host.ptr) + (*end == ']') : host.len;
    uint64_t port = 0;

    *ret = (struct base_str){host.ptr, n};
    return n == host.len || base_mutant("identity.port") ||
           (host.ptr[n] == ':' &&
            base_parse_u64((struct base_str){host.ptr + n + 1, host.len - n - 1}, 65535, &port) == BASE_OK &&
            port > 0);
}

static int check_host(struct base_str whole, struct base_err *err)
{
    struct base_str host = whole;
    bool label_start = true;

    if (host.len == 0)
        return bad(err, "the URI has no host after '//'");
    if (memchr(host.ptr, '@', host.len))
        return bad(err, "the URI must have no user before its host");
    if (!split_port(whole, &host))
        return bad(err,
                   "the port after the URI's host must be a number from 1 to 65535 without zeros before it");
    if (host.len == 0)
        return bad(err, "the URI has no host after '//'");
    if (host.ptr[0] == '[')
        return literal(host) || base_mutant("identity.literal")
                   ? BASE_OK
                   : bad(err, "an IPv6 address as the URI's host must be in its short form (RFC 5952), in "
                              "brackets");
    if (host.ptr[host.len - 1] == '.' && !base_mutant("identity.root"))
        return bad(err, "the URI's host must not end with '.'");
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];

        if (c >= 'A' && c <= 'Z' && !base_mutant("identity.case"))
            return bad(err, "the URI's host must be in lower case");
        if (!lower(c) && !digit(c) && !memchr("-._", c, 3) && !(c >= 'A' && c <= 'Z'))
            return bad(err, "the URI's host may hold a-z, 0-9, '-', '.', '_' and a port only");
        if (label_start && host.len - i >= 4 && memcmp(host.ptr + i, "xn--", 4) == 0)
            return bad(err, "a punycode label (xn--) can look like another name; use an ASCII name");
        if (label_start && c == '.')
            return bad(err, "the URI's host has an empty label ('..')");
        label_start = c == '.';
    }
    return BASE_OK;
}

static int check_path(struct base_str path, struct base_err *err)
{
    size_t start = 0;

    for (size_t i = 0; i <= path.len; i++) {
        size_t n = i - start;

        if (i < path.len && path.ptr[i] != '/')
            continue;
        if (n == 0 && i > 0 && i < path.len)
            return bad(err, "the URI's path has an empty segment ('//')");
        if ((n == 1 && path.ptr[start] == '.') ||
            (n == 2 && path.ptr[start] == '.' && path.ptr[start + 1] == '.'))
            return bad(err, "the URI's path has a '.' or '..' segment");
        start = i + 1;
    }
    return BASE_OK;
}

/* RFC 8141: a URN's namespace has no case. */
static bool urn_upper(struct base_str v)
{
    if (!base_str_starts(v, "urn:") || base_mutant("identity.urn"))
        return false;
    for (size_t i = 4; i < v.len && v.ptr[i] != ':'; i++)
        if (v.ptr[i] >= 'A' && v.ptr[i] <= 'Z')
            return true;
    return false;
}

static int check_uri(struct base_str v, struct base_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < v.len; i++) {
        char c = v.ptr[i];

        if (c == '%' && !base_mutant("identity.percent"))
            return bad(err, "percent-encoding is not allowed; write the URI without it");
        if (c == '?' || c == '#')
            return bad(err, "the URI must have no query ('?') and no fragment ('#')");
        if (memchr("\"<>\\^`{|}", c, 9))
            return bad(err, "the URI holds a character that no URI may hold");
    }
    while (n < v.len && (lower(v.ptr[n]) || digit(v.ptr[n]) || memchr("+-.", v.ptr[n], 3)))
        n++;
    if (n == 0 || n == v.len || v.ptr[n] != ':' || !lower(v.ptr[0]))
        return bad(err, "must be a URI whose scheme is in lower case, for example spiffe://acme/site-1");
    if (urn_upper(v))
        return bad(err, "the namespace of a URN must be in lower case");
    v = (struct base_str){v.ptr + n + 1, v.len - n - 1};
    if (v.len == 0)
        return bad(err, "the URI has nothing after its scheme");
    if (v.len >= 2 && v.ptr[0] == '/' && v.ptr[1] == '/') {
        const char *slash = v.len > 2 ? memchr(v.ptr + 2, '/', v.len - 2) : NULL;
        size_t host = slash ? (size_t)(slash - v.ptr) - 2 : v.len - 2;
        int rc = check_host((struct base_str){v.ptr + 2, host}, err);

        if (rc != BASE_OK)
            return rc;
        v = (struct base_str){v.ptr + 2 + host, v.len - 2 - host};
    }
    return check_path(v, err);
}

int authority_identity_check(enum contract_identity_kind kind, struct base_str value, struct base_err *err)
{
    if (value.len == 0)
        return bad(err, "is empty");
    if (value.len > AUTHORITY_IDENTITY_MAX && !base_mutant("identity.length"))
        return bad(err, "is longer than 512 bytes");
    for (size_t i = 0; i < value.len; i++)
        if ((value.ptr[i] < '!' || value.ptr[i] > '~') && !base_mutant("identity.alphabet"))
            return bad(err, "may hold printable ASCII characters without spaces only");
    if (kind == CONTRACT_IDENTITY_URI)
        return check_uri(value, err);
    if (base_str_eqz(value, "system:anonymous") || base_str_eqz(value, "system:unauthenticated"))
        return bad(err, "is the name that Kubernetes gives to nobody");
    return BASE_OK;
}
