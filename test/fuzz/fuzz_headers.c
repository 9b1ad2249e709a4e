/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_headers.c - a request's header block, and its path.
 *
 * Input: one byte of options, then fields: length of name, name, two bytes of length of value, value; a name
 * that is one byte below 16 stands for one of a list, so that good requests are near. What is accepted has
 * each thing that a tunnel needs; what is refused says why, in one printable line that repeats no token.
 */
#include "fuzz.h"

#include "base/mem.h"
#include "masque/path.h"
#include "masque/request.h"

static const char *const names[16] = {":method",
                                      ":protocol",
                                      ":scheme",
                                      ":authority",
                                      ":path",
                                      "capsule-protocol",
                                      "authorization",
                                      "traceparent",
                                      "content-length",
                                      "content-type",
                                      "transfer-encoding",
                                      "x-tenant",
                                      "cf-connect-proto",
                                      "host",
                                      "user-agent",
                                      "te"};
#define TOKEN "T0pS3cretT0ken"

static void printable(const struct base_err *err)
{
    CHECK(err->msg[0], "refused without a word");
    CHECK(err->http_status >= 400 && err->http_status <= 599, "status %d", err->http_status);
    for (const char *p = err->msg; *p; p++)
        CHECK((unsigned char)*p >= 0x20 && (unsigned char)*p < 0x7f, "byte 0x%02x", (unsigned char)*p);
}

/* A path written from what was read is read the same. */
static void path_again(const struct masque_path *p)
{
    char text[128], addr[BASE_IP6_SIZE];
    struct masque_path q;
    struct base_err err = {0};
    CHECK(p->ipproto >= -1 && p->ipproto <= 255, "%d", p->ipproto);
    base_ip6_text(addr, &p->prefix.addr);
    char proto[8];
    (void)snprintf(proto, sizeof proto, p->ipproto < 0 ? "*" : "%d", p->ipproto);
    if (p->target == MASQUE_TARGET_ANY)
        (void)snprintf(text, sizeof text, "/.well-known/masque/ip/*/%s/", proto);
    else
        (void)snprintf(text, sizeof text, "/.well-known/masque/ip/%s%%2F%u/%s/", addr, p->prefix.len, proto);
    CHECK(masque_path_parse(&q, base_str_of(text), &err) == BASE_OK, "%s: %s", text, err.msg);
    CHECK(q.target == p->target && q.ipproto == p->ipproto, "%s", text);
    CHECK(p->target == MASQUE_TARGET_ANY ||
              (q.prefix.len == p->prefix.len && memcmp(q.prefix.addr.b, p->prefix.addr.b, 16) == 0),
          "%s", text);
    for (unsigned bit = p->prefix.len; p->target == MASQUE_TARGET_PREFIX && bit < 128; bit++)
        CHECK(!(p->prefix.addr.b[bit / 8] & (0x80u >> bit % 8)), "bit %u", bit);
}

static void path_alone(struct base_str s)
{
    struct masque_path p;
    struct base_err err = {0};
    memset(&p, 0xa5, sizeof p);
    if (masque_path_parse(&p, s, &err) == BASE_OK) {
        path_again(&p);
        return;
    }
    struct masque_path before;
    memset(&before, 0xa5, sizeof before);
    CHECK(memcmp(&p, &before, sizeof p) == 0, "changed on failure");
    err.http_status = 400;
    printable(&err);
}

/* One field: cut out of the input, in memory of its own. */
static struct base_str take(struct fuzz_in *in, size_t n, uint8_t **ret)
{
    n = n < in->left ? n : in->left;
    uint8_t *copy = malloc(n + 1);
    if (!copy)
        abort();
    memcpy(copy, in->p, n);
    in->p += n;
    in->left -= n;
    *ret = copy;
    return (struct base_str){(const char *)copy, n};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    struct masque_headers h;
    struct masque_path path;
    struct base_correlation corr;
    struct base_err err = {0};
    uint8_t options = fuzz_byte(&in);
    unsigned paths = 0, methods = 0;
    bool elsewhere = false; /* the token is also in a field whose value may be repeated */
    uint64_t bytes = 0;
    uint32_t max = options & 4 ? 200 : 8192;
    path_alone((struct base_str){(const char *)in.p, in.left});
    masque_headers_init(&h, max);
    h.bearer = options & 1;
    while (in.left > 0) {
        uint8_t *a, *b;
        struct base_str name = take(&in, fuzz_byte(&in) % 40, &a);
        if (name.len == 1 && (uint8_t)name.ptr[0] < 16)
            name = base_str_of(names[(uint8_t)name.ptr[0]]);
        struct base_str value = take(&in, fuzz_u16(&in), &b);
        int rv = masque_headers_add(&h, name, value);
        bytes += name.len + value.len + 32;
        CHECK(rv == BASE_OK || rv == BASE_EFULL, "%d", rv);
        CHECK(rv == BASE_OK || bytes > max, "full after %llu bytes", (unsigned long long)bytes);
        elsewhere = elsewhere || (!base_str_eqz(name, "authorization") && fuzz_has(value, TOKEN));
        paths += base_str_eqz(name, ":path");
        methods += base_str_eqz(name, ":method");
        free(a);
        free(b);
    }
    int rv = masque_headers_check(&h, options & 2, &path, &corr, &err);
    if (rv == BASE_OK) {
        CHECK(bytes <= max, "%llu bytes", (unsigned long long)bytes);
        CHECK(methods > 0, "no method");
        CHECK(!(options & 2), "a stream that has ended");
        CHECK(paths == 0 || path.target == MASQUE_TARGET_ANY || path.target == MASQUE_TARGET_PREFIX,
              "target");
        if (paths > 0)
            path_again(&path);
    } else {
        CHECK(rv == BASE_EINVAL, "%d", rv);
        printable(&err);
        CHECK(elsewhere || !strstr(err.msg, TOKEN), "a token: %s", err.msg);
    }
    masque_headers_fini(&h);
    CHECK(h.token == NULL, "a token is left");
    return 0;
}
