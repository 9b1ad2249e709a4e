/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/request.h"

#include "base/mem.h"

#include <criterion/criterion.h>

#define GOOD_PATH "/.well-known/masque/ip/*/*/"

struct field {
    const char *name, *value;
};
static const struct field good[] = {{":method", "CONNECT"}, {":protocol", "connect-ip"},
                                    {":scheme", "https"},   {":authority", "masque.test:4433"},
                                    {":path", GOOD_PATH},   {"capsule-protocol", "?1"}};

/* The good request with `change` (same name: replaced, value NULL: left out, else added). */
static int check(const struct field *change, size_t n, bool fin, struct base_correlation *corr,
                 struct base_err *err)
{
    struct masque_headers h;
    struct masque_path path;
    masque_headers_init(&h, 8192);
    bool used[8] = {false};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct field f = good[i];
        for (size_t j = 0; j < n; j++)
            if (strcmp(change[j].name, f.name) == 0) {
                f = change[j];
                used[j] = true;
            }
        if (f.value)
            (void)masque_headers_add(&h, base_str_of(f.name), base_str_of(f.value));
    }
    for (size_t j = 0; j < n; j++)
        if (!used[j] && change[j].value)
            (void)masque_headers_add(&h, base_str_of(change[j].name), base_str_of(change[j].value));
    return masque_headers_check(&h, fin, &path, corr, err);
}

Test(masque_request, verdicts)
{
    static const struct {
        const char *name;
        struct field change;
        bool fin;
        int status; /* 0 = good */
        const char *text;
    } rows[] = {
        {"good", {"accept", "*/*"}, false, 0, NULL},
        {"get", {":method", "GET"}, false, 405, "method"},
        {"no protocol", {":protocol", NULL}, false, 501, "protocol: missing"},
        {"connect-udp", {":protocol", "connect-udp"}, false, 501, "\"connect-udp\""},
        {"cloudflare dialect", {":protocol", "cf-connect-ip"}, false, 501, "cf-connect-ip"},
        {"empty protocol", {":protocol", ""}, false, 501, "\"\""},
        {"hostile protocol", {":protocol", "a\nb"}, false, 501, "a?b"},
        {"http", {":scheme", "http"}, false, 400, "https"},
        {"no scheme", {":scheme", NULL}, false, 400, "scheme"},
        {"no authority", {":authority", NULL}, false, 400, "authority"},
        {"empty authority", {":authority", ""}, false, 400, "authority"},
        {"no path", {":path", NULL}, false, 400, "path: missing"},
        {"bad path", {":path", "/x"}, false, 400, "path"},
        {"content-length 0", {"content-length", "0"}, false, 400, "content-length"},
        {"content-length 5", {"content-length", "5"}, false, 400, "content-length"},
        {"content-type", {"content-type", "text/plain"}, false, 400, "content-type"},
        {"transfer-encoding", {"transfer-encoding", "chunked"}, false, 400, "transfer-encoding"},
        {"fin", {"accept", "*/*"}, true, 400, "ended with the headers"},
        {"capsule-protocol ?0", {"capsule-protocol", "?0"}, false, 0, NULL},
        {"capsule-protocol nonsense", {"capsule-protocol", "12"}, false, 0, NULL},
        {"no capsule-protocol", {"capsule-protocol", NULL}, false, 0, NULL},
        {"tenant header", {"x-tenant", "someone-else"}, false, 400, "names a tenant"},
        {"tenant header, own", {"tenant", "acme"}, false, 400, "names a tenant"},
        {"tenant in the query", {":path", GOOD_PATH "?tenant=acme"}, false, 400, "query"},
        {"tenant in the path", {":path", "/tenants/acme" GOOD_PATH}, false, 400, "path"},
        {"token where none counts", {"authorization", "Bearer secret"}, false, 0, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct base_err err = {0};
        struct base_correlation corr;
        int rv = check(&rows[i].change, 1, rows[i].fin, &corr, &err);
        cr_assert_eq(rv, rows[i].status ? BASE_EINVAL : BASE_OK, "%s: %s", rows[i].name, err.msg);
        if (rows[i].status) {
            cr_assert_eq(err.http_status, rows[i].status, "%s: %d", rows[i].name, err.http_status);
            cr_assert(strstr(err.msg, rows[i].text), "%s: %s", rows[i].name, err.msg);
        }
    }
}

Test(masque_request, bearer_token_is_taken_once_and_wiped)
{
    struct masque_headers h;
    masque_headers_init(&h, 8192);
    (void)masque_headers_add(&h, BASE_STR("authorization"), BASE_STR("Bearer abc"));
    cr_assert(!h.has_authorization && !h.token, "it means nothing unless the owner says so");
    h.bearer = true;
    (void)masque_headers_add(&h, BASE_STR("authorization"), BASE_STR("Bearer abc"));
    cr_assert(h.has_authorization && !h.authorization_twice);
    cr_assert(base_str_eqz(base_secret_text(h.token), "abc"));
    (void)masque_headers_add(&h, BASE_STR("authorization"), BASE_STR("Bearer def"));
    cr_assert(h.authorization_twice);
    cr_assert(base_str_eqz(base_secret_text(h.token), "abc"));
    masque_headers_fini(&h);
    cr_assert_null(h.token);
    masque_headers_init(&h, 8192);
    h.bearer = true;
    (void)masque_headers_add(&h, BASE_STR("authorization"), BASE_STR("Basic abc"));
    cr_assert(h.has_authorization && !h.token);
    masque_headers_init(&h, 8192);
    h.bearer = true;
    base_mem_fail_after(1);
    (void)masque_headers_add(&h, BASE_STR("authorization"), BASE_STR("Bearer abc"));
    base_mem_fail_after(0);
    cr_assert(h.no_memory && !h.token);
}

Test(masque_request, a_path_of_more_than_256_bytes_is_refused_not_cut)
{
    char path[300] = GOOD_PATH;
    struct base_err err = {0};
    struct base_correlation corr;
    memset(path + sizeof GOOD_PATH - 1, '/', sizeof path - sizeof GOOD_PATH);
    struct field f = {":path", path};
    cr_assert_eq(check(&f, 1, false, &corr, &err), BASE_EINVAL);
    cr_assert(strstr(err.msg, "256"), "%s", err.msg);
}

Test(masque_request, header_block_is_bounded)
{
    struct masque_headers h;
    struct masque_path path;
    struct base_correlation corr;
    struct base_err err = {0};
    masque_headers_init(&h, 100);
    cr_assert_eq(masque_headers_add(&h, BASE_STR("a"), (struct base_str){"xxxxxxxxxxxxxxxxxxxx", 20}),
                 BASE_OK);
    cr_assert_eq(masque_headers_add(&h, BASE_STR("a"), (struct base_str){"xxxxxxxxxxxxxxx", 14}), BASE_OK,
                 "exactly 100");
    cr_assert_eq(masque_headers_add(&h, BASE_STR(":method"), BASE_STR("CONNECT")), BASE_EFULL);
    cr_assert_not(h.has_method);
    cr_assert_eq(masque_headers_add(&h, BASE_STR("a"), BASE_STR("")), BASE_EFULL, "full stays full");
    cr_assert_eq(masque_headers_check(&h, false, &path, &corr, &err), BASE_EINVAL);
    cr_assert_eq(err.http_status, 431);
    cr_assert(strstr(err.msg, "100"), "%s", err.msg);
}

Test(masque_request, traceparent_becomes_the_correlation)
{
    static const char tp[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    struct base_correlation corr;
    char text[BASE_CORRELATION_SIZE];
    struct field one = {"traceparent", tp}, bad = {"traceparent", "00-xyz"};
    cr_assert_eq(check(&one, 1, false, &corr, NULL), BASE_OK);
    base_correlation_text(text, &corr);
    cr_assert_str_eq(text, "4bf92f3577b34da6a3ce929d0e0e4736");
    cr_assert_eq(check(&bad, 1, false, &corr, NULL), BASE_OK, "a bad one is as good as none");
    cr_assert(base_correlation_is_zero(&corr));
    struct masque_headers h;
    struct masque_path path;
    masque_headers_init(&h, 8192);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        (void)masque_headers_add(&h, base_str_of(good[i].name), base_str_of(good[i].value));
    (void)masque_headers_add(&h, BASE_STR("traceparent"), base_str_of(tp));
    (void)masque_headers_add(&h, BASE_STR("traceparent"), base_str_of(tp));
    cr_assert_eq(masque_headers_check(&h, false, &path, &corr, NULL), BASE_OK);
    cr_assert(base_correlation_is_zero(&corr), "two are as good as none");
}
