/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes from outside as text: URLs, paths, Status bodies, watch lines, base64, tokens, YAML. Tables of
 * nasty input.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "kube_int.h"

Test(kube_url, table)
{
    static const struct {
        const char *in, *hostport, *prefix, *word; /* word: in the error */
    } row[] = {
        {"https://127.0.0.1:6443", "127.0.0.1:6443", "", NULL},
        {"https://api.example", "api.example:443", "", NULL},
        {"https://[fd00:c::1]:6443/", "[fd00:c::1]:6443", "", NULL},
        {"https://[::1]", "[::1]:443", "", NULL},
        {"https://rancher.example:8443/k8s/clusters/c-1//", "rancher.example:8443", "/k8s/clusters/c-1",
         NULL},
        {"http://127.0.0.1:8080", NULL, NULL, "https"},
        {"127.0.0.1:6443", NULL, NULL, "https"},
        {"", NULL, NULL, "https"},
        {"https://", NULL, NULL, "host is missing"},
        {"https://:6443", NULL, NULL, "host is missing"},
        {"https://[fd00:c::1:6443", NULL, NULL, "bracket"},
        {"https://[fd00::1%25eth0]:1", NULL, NULL, "IPv6"},
        {"https://[1.2.3.4]", NULL, NULL, "IPv6"},
        {"https://h:0", NULL, NULL, "port"},
        {"https://h:65536", NULL, NULL, "port"},
        {"https://h:", NULL, NULL, "port"},
        {"https://h:6443x", NULL, NULL, "port"},
        {"https://h:99999999999999999999", NULL, NULL, "port"},
        {"https://user:s3cret@h", NULL, NULL, "user"},
        {"https://h/x@y", "h:443", "/x@y", NULL},
        {"https://h?x=1", NULL, NULL, "end after"},
        {"https://h/#f", NULL, NULL, "end after"},
        {"https://h/a b", NULL, NULL, "space"},
        {"https://h\r\nX: y", NULL, NULL, "space"},
        {"https://h_1.x", "h_1.x:443", "", NULL},
        {"https://h/../x", NULL, NULL, "percent-encoded"},
        {"https://h\xc3\xbc", NULL, NULL, "non-ASCII"},
        {"https://a,b", NULL, NULL, "character"},
    };

    for (unsigned i = 0; i < BASE_LEN(row); i++) {
        struct kube_url u;
        struct base_err err = {0};
        char hp[300];
        int rc = kube_url_parse(&u, row[i].in, &err);

        cr_expect_eq(rc, row[i].word ? BASE_EINVAL : BASE_OK, "row %u %s: %s", i, row[i].in, err.msg);
        if (row[i].word) {
            cr_expect(strstr(err.msg, row[i].word) != NULL, "row %u: %s", i, err.msg);
            cr_expect_null(strstr(err.msg, "s3cret"));
        } else if (rc == BASE_OK) {
            kube_url_hostport(hp, sizeof hp, &u);
            cr_expect_str_eq(hp, row[i].hostport);
            cr_expect_str_eq(u.prefix, row[i].prefix);
        }
    }
}

Test(kube_url, request_paths)
{
    static const struct {
        const char *path;
        bool good;
    } row[] = {
        {"/", true},
        {"/apis/x/v1/namespaces/a/b?limit=1&continue=abc%3D", true},
        {"/api/v1/pods?fieldSelector=spec.nodeName%3Da..b/../c", true},
        {"/api/.hidden/..x", true},
        {"", false},
        {NULL, false},
        {"apis", false},
        {"/a b", false},
        {"/a\r\nHost: x", false},
        {"/a/../b", false},
        {"/a/..", false},
        {"/./b", false},
        {"/..?x", false},
        {"/a#b", false},
        {"/a\x7f", false},
        {"/\xc3\xbc", false},
        {"/a{b}", false},
    };

    for (unsigned i = 0; i < BASE_LEN(row); i++)
        cr_expect_eq(kube_path_check(row[i].path, NULL), row[i].good ? BASE_OK : BASE_EINVAL, "row %u", i);
}

/* Fluent Bit and the official C client send `continue` and selectors as they are. */
Test(kube_escape, everything_but_unreserved_characters)
{
    struct base_buf b;
    char all[256], *long_name;

    base_buf_init(&b, 4096);
    cr_assert_eq(kube_escape(&b, BASE_STR("a=b,c in (d)&e+f/g~h%\xc3\xbc")), BASE_OK);
    cr_assert_str_eq(b.data, "a%3Db%2Cc%20in%20%28d%29%26e%2Bf%2Fg~h%25%C3%BC");
    base_buf_reset(&b);
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    cr_assert_eq(kube_escape(&b, (struct base_str){all, 256}), BASE_OK);
    cr_assert_eq(b.len, 66 + 190 * 3);
    base_buf_fini(&b);
    /* no fixed buffer: a name of 253 characters and far more */
    long_name = calloc(1, 5001);
    memset(long_name, 'n', 5000);
    base_buf_init(&b, 4096);
    cr_assert_eq(kube_escape(&b, base_str_of(long_name)), BASE_EFULL);
    base_buf_fini(&b);
    free(long_name);
}

Test(kube_status, table)
{
    static const struct {
        const char *body, *reason, *message;
        base_time retry;
    } row[] = {
        {"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"no\",\"reason\":"
         "\"Conflict\",\"code\":409}",
         "Conflict", "no", 0},
        {"{\n  \"kind\": \"Status\",\n  \"reason\": \"Expired\",\n  \"message\": \"too\\nold\",\n  \"code\": "
         "410\n}\n",
         "Expired", "too old", 0},
        {"{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":5}}", "", "", 5 * BASE_SEC},
        {"{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":1e99}}", "", "", 3600 * BASE_SEC},
        {"{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":-5}}", "", "", 0},
        {"{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":\"5\"}}", "", "", 0},
        {"{\"kind\":\"Status\",\"details\":[],\"reason\":7,\"message\":null}", "", "", 0},
        {"{\"kind\":\"status\",\"reason\":\"X\"}", "", "{\"kind\":\"status\",\"reason\":\"X\"}", 0},
        {"{\"kind\":\"List\",\"reason\":\"X\",\"items\":[]}", "",
         "{\"kind\":\"List\",\"reason\":\"X\",\"items\":[]}", 0},
        {"Too many requests, please try again later.\n", "", "Too many requests, please try again later.", 0},
        {"<html>\r\n<b>502</b>\x01\x1b[31m</html>", "", "<html> <b>502</b> [31m</html>", 0},
        {"", "", "", 0},
        {"null", "", "null", 0},
        {"[]", "", "[]", 0},
        {"{\"kind\":\"Status\"", "", "{\"kind\":\"Status\"", 0},
        {"{\"kind\":\"Status\",\"reason\":"
         "\"0123456789012345678901234567890123456789012345678901234567890123456789\"}",
         "", "", 0},
        {"\xff\xfe", "", "\xff\xfe", 0},
    };

    for (unsigned i = 0; i < BASE_LEN(row); i++) {
        struct kube_status st;

        kube_status_parse(&st, base_str_of(row[i].body));
        cr_expect_str_eq(st.reason, row[i].reason, "row %u: %s", i, st.reason);
        cr_expect_str_eq(st.message, row[i].message, "row %u: %s", i, st.message);
        cr_expect_eq(st.retry_after, row[i].retry, "row %u", i);
    }
}

Test(kube_status, deep_and_large_bodies_are_harmless)
{
    size_t n = 3 << 20;
    char *z = calloc(1, n + 1);
    struct kube_status st;

    memset(z, '[', n);
    kube_status_parse(&st, (struct base_str){z, 100000});
    cr_assert_eq(strlen(st.message), sizeof st.message - 1);
    kube_status_parse(&st, (struct base_str){z, n});
    cr_assert_str_eq(st.reason, "");
    free(z);
}

Test(kube_status, codes)
{
    static const int row[][2] = {{200, BASE_OK},        {201, BASE_OK},        {302, BASE_EPROTO},
                                 {400, BASE_EINVAL},    {401, BASE_EDENIED},   {403, BASE_EDENIED},
                                 {404, BASE_ENOTFOUND}, {409, BASE_ECONFLICT}, {410, BASE_EGONE},
                                 {422, BASE_EINVAL},    {429, BASE_EAGAIN},    {500, BASE_EUNKNOWN},
                                 {503, BASE_EUNKNOWN},  {504, BASE_EUNKNOWN}};

    for (unsigned i = 0; i < BASE_LEN(row); i++)
        cr_expect_eq(kube_status_code(row[i][0]), row[i][1], "%d", row[i][0]);
}

/* ---- lines */
struct lines {
    char text[4096];
    unsigned n, stop_after;
};

static bool on_line(void *arg, struct base_str line)
{
    struct lines *l = arg;

    size_t n = strlen(l->text);

    base_fmt(l->text + n, sizeof l->text - n, "%.*s|", (int)line.len, line.ptr);
    return ++l->n != l->stop_after;
}

Test(kube_frame, any_cut_gives_the_same_lines)
{
    static const char in[] = "{\"a\":1}\n{\"b\":\"x\\ny\"}\r\n\n\r\n{\"c\":3}\n{\"last\":true}";
    static const char want[] = "{\"a\":1}|{\"b\":\"x\\ny\"}|{\"c\":3}|{\"last\":true}|";

    for (size_t step = 1; step <= sizeof in; step++) {
        struct kube_frame f;
        struct lines l = {0};

        kube_frame_init(&f, 64);
        for (size_t i = 0; i < sizeof in - 1; i += step) {
            size_t n = sizeof in - 1 - i < step ? sizeof in - 1 - i : step;

            cr_assert_eq(kube_frame_feed(&f, (struct base_str){in + i, n}, on_line, &l), BASE_OK);
        }
        cr_assert_eq(kube_frame_end(&f, on_line, &l), BASE_OK);
        cr_expect_str_eq(l.text, want, "step %zu: %s", step, l.text);
        kube_frame_fini(&f);
    }
}

/* The official C client holds back complete events until the partial last one is whole. */
Test(kube_frame, a_partial_line_holds_nothing_back)
{
    struct kube_frame f;
    struct lines l = {0};

    kube_frame_init(&f, 64);
    cr_assert_eq(kube_frame_feed(&f, BASE_STR("one\ntwo\nthr"), on_line, &l), BASE_OK);
    cr_assert_str_eq(l.text, "one|two|");
    cr_assert_eq(kube_frame_feed(&f, BASE_STR("ee\n"), on_line, &l), BASE_OK);
    cr_assert_str_eq(l.text, "one|two|three|");
    kube_frame_fini(&f);
}

Test(kube_frame, the_bound_is_exact_whatever_the_cut)
{
    for (unsigned step = 1; step <= 9; step++)
        for (unsigned len = 7; len <= 9; len++) {
            struct kube_frame f;
            struct lines l = {0};
            int rc = BASE_OK;

            kube_frame_init(&f, 8);
            for (unsigned i = 0; rc == BASE_OK && i < len; i += step)
                rc = kube_frame_feed(&f, (struct base_str){"xxxxxxxxxx", len - i < step ? len - i : step},
                                     on_line, &l);
            if (rc == BASE_OK)
                rc = kube_frame_feed(&f, BASE_STR("\n"), on_line, &l);
            cr_expect_eq(rc, len <= 8 ? BASE_OK : BASE_EFULL, "length %u, step %u", len, step);
            kube_frame_fini(&f);
        }
}

Test(kube_frame, the_bound_holds_for_a_line_that_comes_whole)
{
    struct kube_frame f;
    struct lines l = {0};

    kube_frame_init(&f, 8);
    cr_assert_eq(kube_frame_feed(&f, BASE_STR("xxxxxxxx\nxxxxxxxxx\nx\n"), on_line, &l), BASE_EFULL);
    cr_assert_str_eq(l.text, "xxxxxxxx|");
    kube_frame_fini(&f);
}

Test(kube_frame, stops_when_told)
{
    struct kube_frame f;
    struct lines l = {.stop_after = 2};

    kube_frame_init(&f, 64);
    cr_assert_eq(kube_frame_feed(&f, BASE_STR("a\nb\nc\n"), on_line, &l), BASE_ECLOSED);
    cr_assert_str_eq(l.text, "a|b|");
    kube_frame_fini(&f);
}

/* ---- base64, tokens, PEM */
Test(kube_base64, table)
{
    static const struct {
        const char *in, *out;
    } row[] = {
        {"", ""},
        {"Zg==", "f"},
        {"Zm8=", "fo"},
        {"Zm9v", "foo"},
        {"Zm9v\nYmE=\n", "fooba"},
        {" Z m 9 v ", "foo"},
        {"Zm9", NULL},
        {"Zm9vY", NULL},
        {"Zg=", NULL},
        {"Zg===", NULL},
        {"Z===", NULL},
        {"Zg==Zg==", NULL},
        {"Zm9v!", NULL},
        {"====", NULL},
        {"Zm-_", NULL},
    };

    for (unsigned i = 0; i < BASE_LEN(row); i++) {
        char *out = NULL;
        size_t n = 99;
        int rc = kube_base64(&out, &n, base_str_of(row[i].in));

        cr_expect_eq(rc, row[i].out ? BASE_OK : BASE_EINVAL, "row %u \"%s\"", i, row[i].in);
        if (rc == BASE_OK) {
            cr_expect_str_eq(out, row[i].out, "row %u", i);
            cr_expect_eq(n, strlen(row[i].out));
        }
        base_free(out);
    }
}

Test(kube_token, table)
{
    static const struct {
        const char *in, *out;
    } row[] = {
        {"abc", "abc"},  {" abc\n", "abc"}, {"\t\r\nabc\r\n\n", "abc"}, {"", NULL},
        {"\n \n", NULL}, {"a b", NULL},     {"a\r\nX-Evil: 1", NULL},   {"a\xc3\xbc", NULL},
        {"a\x7f", NULL}, {"a\x01", NULL},
    };

    for (unsigned i = 0; i < BASE_LEN(row); i++) {
        char t[64];
        struct base_err err = {0};
        int rc;

        base_copy(t, sizeof t, row[i].in);
        rc = kube_token_clean(t, &err);
        cr_expect_eq(rc, row[i].out ? BASE_OK : BASE_EINVAL, "row %u", i);
        if (row[i].out)
            cr_expect_str_eq(t, row[i].out, "row %u", i);
        else
            cr_expect_null(strstr(err.msg, "Evil"), "%s", err.msg);
    }
}

/* ---- YAML */
static int yaml(const char *text, size_t len, struct base_arena **a, struct kube_ynode **root,
                struct base_err *err)
{
    *a = base_arena_new(16 << 20);
    return kube_yaml_parse(root, *a, (struct base_str){text, len}, err);
}

Test(kube_yaml, a_tree_with_lines_and_nulls)
{
    static const char z[] =
        "a: 1\nb:\n- x\n- 'null'\n- null\nc: {d: \"e f\", g: ~}\nh:\ni: |\n  two\n  lines\n\"\\x6a\": k\n";
    struct base_arena *a;
    struct kube_ynode *r = NULL;
    struct base_err err = {0};
    const struct kube_ynode *b;

    cr_assert_eq(yaml(z, sizeof z - 1, &a, &r, &err), BASE_OK, "%s", err.msg);
    cr_assert_str_eq(kube_yaml_get(r, "a")->text, "1");
    b = kube_yaml_get(r, "b");
    cr_assert_eq(b->kind, KUBE_Y_LIST);
    cr_assert_eq(b->first->line, 3);
    cr_assert_eq(b->first->next->kind, KUBE_Y_SCALAR);
    cr_assert_eq(b->last->kind, KUBE_Y_NULL);
    cr_assert_str_eq(kube_yaml_get(kube_yaml_get(r, "c"), "d")->text, "e f");
    cr_assert_null(kube_yaml_get(kube_yaml_get(r, "c"), "g"));
    cr_assert_null(kube_yaml_get(r, "h"));
    cr_assert_str_eq(kube_yaml_get(r, "i")->text, "two\nlines\n");
    cr_assert_str_eq(kube_yaml_get(r, "j")->text, "k");
    cr_assert_null(kube_yaml_get(r, "A"));
    cr_assert_null(kube_yaml_get(NULL, "a"));
    cr_assert_null(kube_yaml_get(b, "x"));
    base_arena_free(a);
}

Test(kube_yaml, what_is_refused)
{
    static const struct {
        const char *in, *word;
    } row[] = {
        {"a: 1\na: 2\n", "twice"},
        {"a: &x 1\nb: *x\n", "aliases"},
        {"&x [*x]", "aliases"},
        {"<<: *b\n", "line 1"},
        {"a: 1\n---\nb: 2\n", "second document"},
        {"\ta: 1\n", "not YAML"},
        {"a: [1\n", "not YAML"},
        {"? [x]\n: y\n", "plain text"},
        {"a: \"x\\0y\"\n", "NUL"},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "nested"},
        {"a: \xff\xfe\n", "not YAML"},
        {"a: !!binary [x\n", "not YAML"},
        {"%YAML 9.9\n---\na: 1\n", "not YAML"},
    };

    for (unsigned i = 0; i < BASE_LEN(row); i++) {
        struct base_arena *a;
        struct kube_ynode *r = NULL;
        struct base_err err = {0};
        int rc = yaml(row[i].in, strlen(row[i].in), &a, &r, &err);

        cr_expect_eq(rc, BASE_EINVAL, "row %u", i);
        cr_expect(strstr(err.msg, row[i].word) != NULL, "row %u: %s", i, err.msg);
        base_arena_free(a);
    }
}

Test(kube_yaml, nesting_does_not_cost_seconds, .timeout = 5)
{
    size_t n = 1 << 20;
    char *z = malloc(n);
    struct base_arena *a;
    struct kube_ynode *r = NULL;

    memset(z, '{', n);
    cr_assert_eq(yaml(z, n, &a, &r, NULL), BASE_EINVAL);
    base_arena_free(a);
    for (size_t i = 0; i < n; i++)
        z[i] = i % 2 ? '\n' : '-';
    cr_assert_eq(yaml(z, n, &a, &r, NULL), BASE_EINVAL);
    base_arena_free(a);
    free(z);
}

Test(kube_yaml, empty_texts_are_null)
{
    static const char *const row[] = {"", "\n", "# nothing\n", "---\n", "null\n", "---\n...\n"};

    for (unsigned i = 0; i < BASE_LEN(row); i++) {
        struct base_arena *a;
        struct kube_ynode *r = NULL;

        cr_expect_eq(yaml(row[i], strlen(row[i]), &a, &r, NULL), BASE_OK, "row %u", i);
        cr_expect_eq(r->kind, KUBE_Y_NULL, "row %u", i);
        base_arena_free(a);
    }
}
