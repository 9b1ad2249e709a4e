/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/json.h"

#include <criterion/criterion.h>
#include <stdio.h>

static int parse(const char *text, size_t len, struct base_arena **arena, const struct contract_json **root,
                 struct base_err *err)
{
    *arena = base_arena_new(1u << 20);
    cr_assert(*arena);
    return contract_json_parse(root, *arena, (struct base_str){text, len}, 0, err);
}

Test(contract_json, accepts_what_rfc8259_knows)
{
    static const char *const good[] = {"{}",
                                       "[]",
                                       "0",
                                       "-0",
                                       "-1.5e+10",
                                       "\"\"",
                                       "true",
                                       "false",
                                       "null",
                                       " [1 , 2 ] ",
                                       "{\"a\":{\"b\":[{}]}}",
                                       "\"\\u00e9\\n\\/\"",
                                       "\"\xc3\xa9\"",
                                       "\"\xf0\x9f\x98\x80\""};

    for (size_t i = 0; i < BASE_LEN(good); i++) {
        struct base_arena *arena;
        const struct contract_json *root;
        struct base_err err = {0};

        cr_expect_eq(parse(good[i], strlen(good[i]), &arena, &root, &err), BASE_OK, "%s: %s", good[i],
                     err.msg);
        base_arena_free(arena);
    }
}

Test(contract_json, refuses_nonsense_and_says_where)
{
    static const struct {
        const char *text;
        size_t len; /* 0 = strlen */
        const char *says;
    } rows[] = {
        {"", 0, "byte 0"},
        {"{", 0, "member name"},
        {"[1,]", 0, "value is expected"},
        {"{\"a\":1,}", 0, "member name"},
        {"{\"a\" 1}", 0, "':'"},
        {"{\"a\":1 \"b\":2}", 0, "','"},
        {"{} {}", 0, "follows"},
        {"\xef\xbb\xbf{}", 0, "value is expected"},
        {"+1", 0, "value is expected"},
        {"01", 0, "follows"},
        {"1.", 0, "decimal"},
        {"1e", 0, "exponent"},
        {"-", 0, "digit"},
        {"NaN", 0, "value"},
        {"tru", 0, "value"},
        {"\"abc", 0, "no end"},
        {"\"\\", 0, "no end"},
        {"\"\\x\"", 0, "escape"},
        {"\"\\u12g4\"", 0, "hex"},
        {"\"a\nb\"", 0, "control"},
        {"\"\0\"", 3, "control"},
        {"\"\xff\"", 0, "UTF-8"},
        {"\"\xc0\x80\"", 0, "UTF-8"},
        {"\"\xed\xa0\x80\"", 0, "UTF-8"},
        {"\"\xf4\x90\x80\x80\"", 0, "UTF-8"},
        {"\"\xe2\x82", 0, "UTF-8"},
        {"{\"a\":1,\"b\":2,\"a\":3}", 0, "duplicate"},
        {"{\"a\":1,\"\\u0061\":3}", 0, "duplicate"},
    };

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct base_arena *arena;
        const struct contract_json *root;
        struct base_err err = {0};
        int rc = parse(rows[i].text, rows[i].len ? rows[i].len : strlen(rows[i].text), &arena, &root, &err);

        cr_expect_eq(rc, BASE_EINVAL, "row %zu: %s", i, rows[i].text);
        cr_expect(strstr(err.msg, rows[i].says), "row %zu: '%s' does not say '%s'", i, err.msg, rows[i].says);
        base_arena_free(arena);
    }
}

Test(contract_json, bounds_depth_members_and_memory)
{
    static char text[200000];
    struct base_arena *arena;
    const struct contract_json *root;
    struct base_err err = {0};
    size_t n = 0;

    memset(text, '[', 100000);
    cr_expect_eq(parse(text, 100000, &arena, &root, &err), BASE_EINVAL);
    cr_expect(strstr(err.msg, "64 levels"), "%s", err.msg);
    base_arena_free(arena);
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    cr_expect_eq(parse(text, 128, &arena, &root, &err), BASE_OK, "64 levels are allowed: %s", err.msg);
    base_arena_free(arena);

    text[n++] = '{';
    for (int i = 0; i < 1025; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\"m%d\":1", i ? "," : "", i);
    text[n++] = '}';
    cr_expect_eq(parse(text, n, &arena, &root, &err), BASE_EINVAL);
    cr_expect(strstr(err.msg, "1024 members"), "%s", err.msg);
    base_arena_free(arena);

    arena = base_arena_new(256);
    cr_expect_eq(contract_json_parse(&root, arena, BASE_STR("[1,2,3,4,5,6,7,8,9]"), 0, &err), BASE_ENOMEM);
    base_arena_free(arena);
}

Test(contract_json, strings_decode_exactly)
{
    struct base_arena *arena;
    const struct contract_json *root;
    struct base_err err = {0};
    const char *text = "[\"a\\u0000b\",\"\\ud83d\\ude00\",\"\\ud83d\",\"\\udc00x\",\"\\\"\\\\\\t\"]";
    const struct contract_json *e;

    cr_assert_eq(parse(text, strlen(text), &arena, &root, &err), BASE_OK, "%s", err.msg);
    e = root->child;
    cr_expect(base_str_eq(e->str, (struct base_str){"a\0b", 3}), "NUL is kept, length 3");
    e = e->next;
    cr_expect(base_str_eqz(e->str, "\xf0\x9f\x98\x80"), "surrogate pair");
    e = e->next;
    cr_expect(base_str_eqz(e->str, "\xef\xbf\xbd"), "high surrogate alone");
    e = e->next;
    cr_expect(base_str_eqz(e->str, "\xef\xbf\xbdx"), "low surrogate alone");
    e = e->next;
    cr_expect(base_str_eqz(e->str, "\"\\\t"));
    base_arena_free(arena);
}

Test(contract_json, integers_are_exact_or_refused)
{
    static const struct {
        const char *text;
        int code;
        int64_t value;
    } rows[] = {
        {"9223372036854775807", BASE_OK, INT64_MAX},
        {"-9223372036854775808", BASE_OK, INT64_MIN},
        {"9007199254740993", BASE_OK, 9007199254740993},
        {"0", BASE_OK, 0},
        {"-0", BASE_OK, 0},
        {"9223372036854775808", BASE_EINVAL, 0},
        {"-9223372036854775809", BASE_EINVAL, 0},
        {"1.0", BASE_EINVAL, 0},
        {"1e0", BASE_EINVAL, 0},
        {"\"1\"", BASE_EINVAL, 0},
        {"true", BASE_EINVAL, 0},
        {"123456789012345678901234567890", BASE_EINVAL, 0},
    };

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct base_arena *arena;
        const struct contract_json *root;
        struct base_err err = {0};
        int64_t v = 0;

        cr_assert_eq(parse(rows[i].text, strlen(rows[i].text), &arena, &root, &err), BASE_OK);
        cr_expect_eq(contract_json_int(root, &v), rows[i].code, "%s", rows[i].text);
        cr_expect_eq(v, rows[i].value, "%s", rows[i].text);
        base_arena_free(arena);
    }
}

Test(contract_json, keeps_only_the_levels_asked_for)
{
    struct base_arena *arena = base_arena_new(1u << 16);
    const struct contract_json *root, *item;
    struct base_err err = {0};

    cr_assert_eq(
        contract_json_parse(&root, arena, BASE_STR("{\"items\":[{\"a\":1},{\"b\":{\"c\":2}}]}"), 2, &err),
        BASE_OK, "%s", err.msg);
    item = contract_json_get(root, "items")->child;
    cr_assert(item && item->next);
    cr_expect(item->child == NULL && base_str_eqz(item->raw, "{\"a\":1}"));
    cr_expect(base_str_eqz(item->next->raw, "{\"b\":{\"c\":2}}"));
    cr_expect_eq(contract_json_parse(&root, arena, BASE_STR("{\"items\":[{\"a\":}]}"), 1, &err), BASE_EINVAL,
                 "what gets no node is checked too");
    base_arena_free(arena);
}

Test(contract_json, quotes_so_that_it_reads_back)
{
    static const char text[] = "a\"b\\c\x01\x7f\n\xc3\xa9";
    struct base_arena *arena = base_arena_new(1u << 16);
    const struct contract_json *root;
    struct base_err err = {0};
    struct base_buf b;

    base_buf_init(&b, 200);
    contract_json_quote(&b, (struct base_str){text, sizeof text}); /* with its NUL */
    cr_assert_eq(contract_json_parse(&root, arena, (struct base_str){b.data, b.len}, 0, &err), BASE_OK,
                 "%s: %s", b.data, err.msg);
    cr_expect(base_str_eq(root->str, (struct base_str){text, sizeof text}));
    base_buf_fini(&b);
    base_arena_free(arena);
}
