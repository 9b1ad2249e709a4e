/* SPDX-License-Identifier: Apache-2.0
 * tcp.c - a transfer in both directions, each checked by SHA-256 at the far end.
 * Wire: length (8 bytes), data, digest (32 bytes), answered by one byte: 1 = the digest agrees. First client
 * to server, then server to client with the same length and other data. */
#include "probe.h"
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { CHUNK = 16384, DIGEST = 32 };

static bool write_all(int fd, const void *buf, size_t len)
{
    const char *p = buf;
    while (len) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

static bool read_all(int fd, void *buf, size_t len)
{
    char *p = buf;
    while (len) {
        ssize_t n = recv(fd, p, len, 0);
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

static EVP_MD_CTX *hash_new(void)
{
    EVP_MD_CTX *h = EVP_MD_CTX_new();
    if (!h || EVP_DigestInit_ex(h, EVP_sha256(), NULL) != 1)
        probe_die("SHA-256 is not available");
    return h;
}

/* Sends `len` bytes that depend on the time of the call, then their digest; true when the peer agrees. */
static bool push(int fd, uint64_t len, unsigned char *ret_digest)
{
    unsigned char buf[CHUNK], ok = 0;
    uint64_t x = (uint64_t)probe_now() | 1, be = htobe64(len), left = len;
    EVP_MD_CTX *h = hash_new();
    bool good = write_all(fd, &be, sizeof be);
    while (good && left) {
        size_t n = left < CHUNK ? (size_t)left : CHUNK;
        for (size_t i = 0; i < n; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            buf[i] = (unsigned char)x;
        }
        EVP_DigestUpdate(h, buf, n);
        good = write_all(fd, buf, n);
        left -= n;
    }
    EVP_DigestFinal_ex(h, ret_digest, NULL);
    EVP_MD_CTX_free(h);
    return good && write_all(fd, ret_digest, DIGEST) && read_all(fd, &ok, 1) && ok == 1;
}

/* Counterpart of push. */
static bool pull(int fd, uint64_t *ret_len, unsigned char *ret_digest)
{
    unsigned char buf[CHUNK], want[DIGEST], ok;
    uint64_t be, left;
    if (!read_all(fd, &be, sizeof be))
        return false;
    *ret_len = left = be64toh(be);
    EVP_MD_CTX *h = hash_new();
    bool good = true;
    while (good && left) {
        size_t n = left < CHUNK ? (size_t)left : CHUNK;
        good = read_all(fd, buf, n);
        if (good)
            EVP_DigestUpdate(h, buf, n);
        left -= n;
    }
    EVP_DigestFinal_ex(h, ret_digest, NULL);
    EVP_MD_CTX_free(h);
    good = good && read_all(fd, want, DIGEST);
    ok = good && !memcmp(want, ret_digest, DIGEST);
    return good && write_all(fd, &ok, 1) && ok == 1;
}

static void report(bool ok, uint64_t len, const unsigned char *up, const unsigned char *down, int64_t t0)
{
    printf("{\"ok\":%s,\"bytesEachWay\":%" PRIu64 ",\"sha256Up\":\"", ok ? "true" : "false", len);
    for (int i = 0; i < DIGEST; i++)
        printf("%02x", up[i]);
    fputs("\",\"sha256Down\":\"", stdout);
    for (int i = 0; i < DIGEST; i++)
        printf("%02x", down[i]);
    printf("\",\"ms\":%" PRId64 "}\n", (probe_now() - t0) / 1000000);
}

static void set_timeout(int fd, uint32_t ms)
{
    struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv) ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv))
        probe_die("socket time-out: %s", strerror(errno));
}

int probe_tcp_serve(const struct probe_opts *o)
{
    struct sockaddr_storage a;
    socklen_t len;
    int on = 1, lfd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!o->port)
        probe_die("tcp-serve needs --port");
    probe_open_log(o->log);
    probe_addr(o->bind, o->port, &a, &len);
    if (lfd < 0 || setsockopt(lfd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
        bind(lfd, (struct sockaddr *)&a, len) || listen(lfd, 8))
        probe_die("TCP [%s]:%u: %s", o->bind ? o->bind : "::", o->port, strerror(errno));
    while (!probe_stopped()) {
        unsigned char up[DIGEST] = {0}, down[DIGEST] = {0};
        uint64_t n = 0;
        int fd = accept4(lfd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        int64_t t0 = probe_now();
        set_timeout(fd, o->timeout_ms);
        bool ok = pull(fd, &n, up) && push(fd, n, down);
        report(ok, n, up, down, t0);
        close(fd);
    }
    close(lfd);
    return 0;
}

int probe_tcp_xfer(const struct probe_opts *o)
{
    struct sockaddr_storage a;
    socklen_t len;
    unsigned char up[DIGEST] = {0}, down[DIGEST] = {0};
    uint64_t n = 0;
    if (!o->to || !o->port || !o->count)
        probe_die("tcp-xfer needs --to, --port and --count");
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        probe_die("socket: %s", strerror(errno));
    set_timeout(fd, o->timeout_ms);
    probe_addr(o->to, o->port, &a, &len);
    int64_t t0 = probe_now();
    bool ok = !connect(fd, (struct sockaddr *)&a, len) && push(fd, o->count, up) && pull(fd, &n, down) &&
              n == o->count;
    report(ok, o->count, up, down, t0);
    close(fd);
    return ok ? 0 : 1;
}
