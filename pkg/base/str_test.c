/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <criterion/criterion.h>
#include <errno.h>

#include "base/cleanup.h"
#include "base/err.h"

Test(base_str, numbers_are_exact)
{
    static const struct {
        const char *text;
        uint64_t max;
        int code;
        uint64_t value;
    } rows[] = {{"0", 10, BASE_OK, 0},
                {"10", 10, BASE_OK, 10},
                {"11", 10, BASE_ERANGE, 0},
                {"", 10, BASE_EINVAL, 0},
                {"01", 10, BASE_EINVAL, 0},
                {"-1", 10, BASE_EINVAL, 0},
                {"+1", 10, BASE_EINVAL, 0},
                {" 1", 10, BASE_EINVAL, 0},
                {"1 ", 10, BASE_EINVAL, 0},
                {"1e3", 10000, BASE_EINVAL, 0},
                {"0x10", 100, BASE_EINVAL, 0},
                {"18446744073709551615", UINT64_MAX, BASE_OK, UINT64_MAX},
                {"18446744073709551616", UINT64_MAX, BASE_ERANGE, 0},
                {"99999999999999999999999", UINT64_MAX, BASE_ERANGE, 0}};

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        uint64_t v = 77;

        cr_assert_eq(base_parse_u64(base_str_of(rows[i].text), rows[i].max, &v), rows[i].code, "'%s'",
                     rows[i].text);
        cr_assert_eq(v, rows[i].code ? 77 : rows[i].value, "'%s'", rows[i].text);
    }
}

Test(base_str, identifiers_are_never_cut)
{
    char room[4] = "old";

    cr_assert_eq(base_copy(room, sizeof room, "abcd"), BASE_ERANGE);
    cr_assert_str_eq(room, "");
    cr_assert_eq(base_copy(room, sizeof room, "abc"), BASE_OK);
    cr_assert_str_eq(room, "abc");
    cr_assert_eq(base_copy_str(room, sizeof room, (struct base_str){"a\0b", 3}), BASE_ERANGE);
    cr_assert_eq(base_copy(room, 0, ""), BASE_ERANGE);
}

Test(base_str, texts_are_cut_and_pieces_joined)
{
    char s[8];

    base_copy_cut(s, sizeof s, "1234567");
    cr_assert_str_eq(s, "1234567");
    base_copy_cut(s, sizeof s, "123456789");
    cr_assert_str_eq(s, "1234567");
    base_copy_cut(s, sizeof s, NULL);
    cr_assert_str_eq(s, "");
    cr_assert(base_cat(s, sizeof s, "ab", ".", "cdef"));
    cr_assert_str_eq(s, "ab.cdef");
    cr_assert_not(base_cat(s, sizeof s, "ab", ".", "cdefg"));
    cr_assert_str_eq(s, "ab.cdef");
    cr_assert_not(base_cat(s, sizeof s, "abcdefgh", ".", NULL));
    cr_assert_str_eq(s, "abcdefg");
    cr_assert(base_cat(s, sizeof s, "", "", NULL));
    cr_assert_str_eq(s, "");
}

Test(base_str, numbers_are_written_as_they_are_read)
{
    static const uint64_t rows[] = {0, 9, 10, 99, 100, 4294967296, UINT64_MAX};

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        char s[BASE_U64_SIZE];
        uint64_t v = 77;

        base_u64_text(s, rows[i]);
        cr_assert_eq(base_parse_u64(base_str_of(s), UINT64_MAX, &v), BASE_OK, "%s", s);
        cr_assert_eq(v, rows[i], "%s", s);
    }
}

Test(base_str, dns_names)
{
    static const struct {
        const char *text;
        bool label, subdomain;
    } rows[] = {{"a", true, true},          {"a-b", true, true},   {"a.b", false, true},
                {"-a", false, false},       {"a-", false, false},  {".a", false, false},
                {"a.", false, false},       {"A", false, false},   {"", false, false},
                {"a_b", false, false},      {"a b", false, false}, {"0", true, true},
                {"a\xc3\xa9", false, false}};

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        cr_assert_eq(base_is_label(base_str_of(rows[i].text), 63), rows[i].label, "'%s'", rows[i].text);
        cr_assert_eq(base_is_subdomain(base_str_of(rows[i].text), 253), rows[i].subdomain, "'%s'",
                     rows[i].text);
    }
    cr_assert_not(base_is_label(BASE_STR("abcd"), 3));
}

Test(base_str, resource_versions_compare_as_numbers_of_any_length)
{
    static const struct {
        const char *a, *b;
        int code, sign;
    } rows[] = {
        {"9", "10", BASE_OK, -1},
        {"10", "9", BASE_OK, 1},
        {"123", "123", BASE_OK, 0},
        {"340282366920938463463374607431768211455", "340282366920938463463374607431768211454", BASE_OK, 1},
        {"0", "1", BASE_EINVAL, 0},
        {"01", "1", BASE_EINVAL, 0},
        {"", "1", BASE_EINVAL, 0},
        {"1", "abc", BASE_EINVAL, 0},
        {"1", "1a", BASE_EINVAL, 0}};

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        int cmp = 0;

        cr_assert_eq(base_rv_cmp(rows[i].a, rows[i].b, &cmp), rows[i].code, "row %zu", i);
        cr_assert_eq((cmp > 0) - (cmp < 0), rows[i].sign, "row %zu", i);
    }
}

Test(base_str, hex_round_trip_and_refusals)
{
    uint8_t in[4] = {0x00, 0x7f, 0xff, 0x1a}, out[4];
    char text[9];

    base_hex(text, in, 4);
    cr_assert_str_eq(text, "007fff1a");
    cr_assert_eq(base_unhex(out, 4, BASE_STR("007FFF1a")), BASE_OK);
    cr_assert_arr_eq(in, out, 4);
    cr_assert_eq(base_unhex(out, 4, BASE_STR("007fff1")), BASE_EINVAL);
    cr_assert_eq(base_unhex(out, 4, BASE_STR("007fff1g")), BASE_EINVAL);
}

Test(base_err, prefixes_and_keeps_the_code)
{
    struct base_err err;

    cr_assert_eq(base_err_set(&err, BASE_ECONFLICT, "row %d", 7), BASE_ECONFLICT);
    cr_assert_eq(base_err_wrap(&err, "claim %s", "a"), BASE_ECONFLICT);
    cr_assert_str_eq(err.msg, "claim a: row 7");
    cr_assert_eq(base_err_sys(&err, BASE_EIO, ENOSPC, "write"), BASE_EIO);
    cr_assert_str_eq(err.msg, "write: ENOSPC (no space left on device)");
    cr_assert_eq(err.sys_errno, ENOSPC);
    cr_assert_eq(base_err_set(NULL, BASE_EFULL, "x"), BASE_EFULL);
    for (int i = 0; i < 200; i++)
        (void)base_err_wrap(&err, "prefix");
    cr_assert_eq(strlen(err.msg), BASE_ERR_MSG_MAX - 1);
    cr_assert_str_eq(base_code_name(BASE_ERANGE), "ERANGE");
    cr_assert_str_eq(base_code_name(-99), "E?");
}
