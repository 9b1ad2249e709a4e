/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <errno.h>
#include <stdio.h>

#include "base/err.h"

bool base_str_eq(struct base_str a, struct base_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool base_str_eqz(struct base_str a, const char *z)
{
    return base_str_eq(a, base_str_of(z));
}

bool base_str_starts(struct base_str s, const char *prefix)
{
    size_t n = strlen(prefix);

    return s.len >= n && memcmp(s.ptr, prefix, n) == 0;
}

bool base_vfmt(char *dst, size_t size, const char *fmt, va_list ap)
{
    int n = vsnprintf(dst, size, fmt, ap);

    return n >= 0 && (size_t)n < size;
}

bool base_fmt(char *dst, size_t size, const char *fmt, ...)
{
    va_list ap;
    bool whole;

    va_start(ap, fmt);
    whole = base_vfmt(dst, size, fmt, ap);
    va_end(ap);
    return whole;
}

int base_copy_str(char *dst, size_t size, struct base_str s)
{
    if (size == 0)
        return BASE_ERANGE;
    dst[0] = '\0';
    if (s.len >= size || (s.len && memchr(s.ptr, 0, s.len)))
        return BASE_ERANGE;
    if (s.len)
        memcpy(dst, s.ptr, s.len);
    dst[s.len] = '\0';
    return BASE_OK;
}

int base_copy(char *dst, size_t size, const char *z)
{
    return base_copy_str(dst, size, base_str_of(z));
}

void base_copy_cut(char *dst, size_t size, const char *z)
{
    size_t n = z ? strnlen(z, size - 1) : 0;

    if (n)
        memcpy(dst, z, n);
    dst[n] = '\0';
}

bool base_cat(char *dst, size_t size, const char *a, const char *b, const char *c)
{
    const char *part[] = {a, b, c ? c : ""};
    size_t at = 0;

    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        size_t n = strlen(part[i]);

        if (n >= size - at) {
            base_copy_cut(dst + at, size - at, part[i]);
            return false;
        }
        memcpy(dst + at, part[i], n + 1);
        at += n;
    }
    return true;
}

void base_u64_text(char dst[BASE_U64_SIZE], uint64_t v)
{
    char digits[BASE_U64_SIZE];
    size_t n = 0;

    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    for (size_t i = 0; i < n; i++)
        dst[i] = digits[n - 1 - i];
    dst[n] = '\0';
}

int base_parse_u64(struct base_str s, uint64_t max, uint64_t *ret)
{
    uint64_t v = 0;

    if (s.len == 0 || (s.len > 1 && s.ptr[0] == '0'))
        return BASE_EINVAL;
    for (size_t i = 0; i < s.len; i++) {
        unsigned d = (unsigned)(unsigned char)s.ptr[i] - '0';

        if (d > 9)
            return BASE_EINVAL;
        if (v > (UINT64_MAX - d) / 10)
            return BASE_ERANGE;
        v = v * 10 + d;
    }
    if (v > max)
        return BASE_ERANGE;
    *ret = v;
    return BASE_OK;
}

void base_hex(char *dst, const uint8_t *src, size_t n)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        dst[2 * i] = digits[src[i] >> 4];
        dst[2 * i + 1] = digits[src[i] & 15];
    }
    dst[2 * n] = '\0';
}

/* clang-format off */
static const int8_t hex_values[256] = { /* the verifier of the audit trail reads 64 digits a line */
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -1, -1, -1, -1, -1,
    -1, 10, 11, 12, 13, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, 10, 11, 12, 13, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
};
/* clang-format on */

static int hex_value(char c)
{
    return hex_values[(unsigned char)c];
}

int base_unhex(uint8_t *dst, size_t n, struct base_str s)
{
    if (s.len != 2 * n)
        return BASE_EINVAL;
    for (size_t i = 0; i < n; i++) {
        int hi = hex_value(s.ptr[2 * i]), lo = hex_value(s.ptr[2 * i + 1]);

        if (hi < 0 || lo < 0)
            return BASE_EINVAL;
        dst[i] = (uint8_t)(hi << 4 | lo);
    }
    return BASE_OK;
}

static bool alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool dns_name(struct base_str s, size_t max, bool dots)
{
    if (s.len == 0 || s.len > max || !alnum(s.ptr[0]) || !alnum(s.ptr[s.len - 1]))
        return false;
    for (size_t i = 1; i + 1 < s.len; i++) {
        char c = s.ptr[i];

        if (!alnum(c) && c != '-' && !(dots && c == '.'))
            return false;
    }
    return true;
}

bool base_is_label(struct base_str s, size_t max)
{
    return dns_name(s, max, false);
}

bool base_is_subdomain(struct base_str s, size_t max)
{
    return dns_name(s, max, true);
}

static bool is_rv(const char *s)
{
    if (s[0] < '1' || s[0] > '9')
        return false;
    for (; *s; s++)
        if (*s < '0' || *s > '9')
            return false;
    return true;
}

int base_rv_cmp(const char *a, const char *b, int *ret)
{
    size_t na, nb;

    if (!is_rv(a) || !is_rv(b))
        return BASE_EINVAL;
    na = strlen(a);
    nb = strlen(b);
    *ret = na != nb ? (na < nb ? -1 : 1) : strcmp(a, b);
    return BASE_OK;
}

const char *base_errno_name(int e)
{
    static const struct {
        int e;
        const char *name;
    } table[] = {
        {EPERM, "EPERM (operation not permitted)"},
        {ENOENT, "ENOENT (no such file or directory)"},
        {EINTR, "EINTR (interrupted)"},
        {EIO, "EIO (input/output error)"},
        {ENXIO, "ENXIO (no such device or address)"},
        {EBADF, "EBADF (bad file descriptor)"},
        {EAGAIN, "EAGAIN (try again)"},
        {ENOMEM, "ENOMEM (out of memory)"},
        {EACCES, "EACCES (permission denied)"},
        {EFAULT, "EFAULT (bad address)"},
        {EBUSY, "EBUSY (device or resource busy)"},
        {EEXIST, "EEXIST (file exists)"},
        {ENODEV, "ENODEV (no such device)"},
        {ENOTDIR, "ENOTDIR (not a directory)"},
        {EISDIR, "EISDIR (is a directory)"},
        {EINVAL, "EINVAL (invalid argument)"},
        {EMFILE, "EMFILE (too many open files)"},
        {ENFILE, "ENFILE (too many open files in the system)"},
        {EFBIG, "EFBIG (file too large)"},
        {ENOSPC, "ENOSPC (no space left on device)"},
        {EROFS, "EROFS (read-only file system)"},
        {EPIPE, "EPIPE (broken pipe)"},
        {EDQUOT, "EDQUOT (disk quota exceeded)"},
        {EBADFD, "EBADFD (file descriptor in bad state)"},
        {EADDRINUSE, "EADDRINUSE (address already in use)"},
        {EADDRNOTAVAIL, "EADDRNOTAVAIL (cannot assign requested address)"},
        {EAFNOSUPPORT, "EAFNOSUPPORT (address family not supported)"},
        {EMSGSIZE, "EMSGSIZE (message too long)"},
        {ENOBUFS, "ENOBUFS (no buffer space)"},
        {ENETDOWN, "ENETDOWN (network is down)"},
        {ENETUNREACH, "ENETUNREACH (network is unreachable)"},
        {EHOSTUNREACH, "EHOSTUNREACH (no route to host)"},
        {ECONNREFUSED, "ECONNREFUSED (connection refused)"},
        {ECONNRESET, "ECONNRESET (connection reset)"},
        {ETIMEDOUT, "ETIMEDOUT (timed out)"},
        {EOPNOTSUPP, "EOPNOTSUPP (operation not supported)"},
        {ENOSYS, "ENOSYS (function not implemented)"},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].e == e)
            return table[i].name;
    return "unlisted errno";
}
