/* SPDX-License-Identifier: Apache-2.0
 *
 * url.c - the server's URL and the paths of requests.
 */
#include <arpa/inet.h>
#include <string.h>

#include "kube_int.h"

static bool unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static int bad(struct base_err *err, const char *url, const char *why)
{
    return base_err_set(err, BASE_EINVAL, "server \"%.200s\": %s; write it as https://host:port", url, why);
}

int kube_url_parse(struct kube_url *ret, const char *url, struct base_err *err)
{
    struct kube_url u = {.port = 443};
    const char *p = url, *end;
    unsigned char ip[16];
    size_t n;

    for (const char *q = url; *q; q++)
        if (*q <= ' ' || *q > '~')
            return bad(err, "(not shown)", "it holds a space, a control character or a non-ASCII character");
    if (strncmp(p, "https://", 8) != 0)
        return bad(err, url, "only https is supported");
    p += 8;
    if (p[strcspn(p, "/")] == '\0' ? strchr(p, '@') != NULL : memchr(p, '@', strcspn(p, "/")) != NULL)
        return bad(err, "(not shown)", "a user in the URL is not supported");
    if (*p == '[') {
        end = strchr(++p, ']');
        if (!end)
            return bad(err, url, "the bracket of the IPv6 address is not closed");
        u.v6 = u.ip = true;
        n = (size_t)(end - p);
        end++;
    } else {
        n = strcspn(p, ":/?#");
        end = p + n;
    }
    if (n == 0 || base_copy_str(u.host, sizeof u.host, (struct base_str){p, n}) != BASE_OK)
        return bad(err, url, "the host is missing or too long");
    if (u.v6) {
        if (inet_pton(AF_INET6, u.host, ip) != 1)
            return bad(err, url, "the host is no IPv6 address (zones are not supported)");
    } else {
        u.ip = inet_pton(AF_INET, u.host, ip) == 1;
        for (size_t i = 0; i < n; i++)
            if (!unreserved(u.host[i]) || u.host[i] == '~')
                return bad(err, url, "the host holds a character that no name has");
    }
    p = end;
    if (*p == ':') {
        uint64_t port = 0;

        n = strcspn(++p, "/?#");
        if (base_parse_u64((struct base_str){p, n}, 65535, &port) != BASE_OK || port == 0)
            return bad(err, url, "the port must be 1..65535");
        u.port = (int)port;
        p += n;
    }
    if (strchr(p, '?') || strchr(p, '#') || (*p && *p != '/'))
        return bad(err, url, "it must end after host, port and path");
    n = strlen(p);
    while (n && p[n - 1] == '/')
        n--;
    if (base_copy_str(u.prefix, sizeof u.prefix, (struct base_str){p, n}) != BASE_OK)
        return bad(err, url, "the path is too long");
    if (n && kube_path_check(u.prefix, NULL) != BASE_OK)
        return bad(err, url, "the path holds a character that must be percent-encoded");
    *ret = u;
    return BASE_OK;
}

void kube_url_hostport(char *dst, size_t size, const struct kube_url *u)
{
    base_fmt(dst, size, u->v6 ? "[%s]:%d" : "%s:%d", u->host, u->port);
}

int kube_path_check(const char *path, struct base_err *err)
{
    const char *query;

    if (!path || path[0] != '/')
        return base_err_set(err, BASE_EINVAL, "request path: it must begin with '/'");
    if (strlen(path) > 8192)
        return base_err_set(err, BASE_EINVAL, "request path: longer than 8192 characters");
    for (const char *p = path; *p; p++)
        if (*p <= ' ' || *p > '~' || strchr("\"#<>\\^`{|}", *p))
            return base_err_set(err, BASE_EINVAL,
                                "request path: character 0x%02x at %zu must be percent-encoded",
                                (unsigned char)*p, (size_t)(p - path));
    query = strchr(path, '?');
    for (const char *p = path; *p && (!query || p < query); p++)
        if (p[0] == '/' && p[1] == '.') {
            const char *q = p + (p[2] == '.' ? 3 : 2);

            if (*q == '/' || *q == '\0' || *q == '?')
                return base_err_set(err, BASE_EINVAL, "request path: \".\" and \"..\" are no names");
        }
    return BASE_OK;
}

int kube_escape(struct base_buf *b, struct base_str s)
{
    static const char hex[] = "0123456789ABCDEF";
    int rc = BASE_OK;

    for (size_t i = 0; rc == BASE_OK && i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        char t[3] = {'%', hex[c >> 4], hex[c & 15]};

        rc = unreserved((char)c) ? base_buf_add(b, s.ptr + i, 1) : base_buf_add(b, t, 3);
    }
    return rc;
}
