/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"

#include <criterion/criterion.h>

#include "base/cleanup.h"
#include "base/err.h"

Test(base_id, uuid)
{
    uint8_t random[16];
    struct base_uuid u, back;
    char text[BASE_UUID_SIZE];

    memset(random, 0xff, sizeof random);
    u = base_uuid_v4(random);
    base_uuid_text(text, &u);
    cr_assert_str_eq(text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    cr_assert_eq(base_uuid_parse(&back, base_str_of(text)), BASE_OK);
    cr_assert(base_uuid_eq(&u, &back));
    cr_assert_eq(base_uuid_parse(&back, BASE_STR("FFFFFFFF-ffff-4fff-bfff-ffffffffffff")), BASE_EINVAL);
    cr_assert_eq(base_uuid_parse(&back, BASE_STR("ffffffffffff-4fff-bfff-ffffffffffff-")), BASE_EINVAL);
    cr_assert_eq(base_uuid_parse(&back, BASE_STR("ffffffff-ffff-4fff-bfff-fffffffffff")), BASE_EINVAL);
    cr_assert_eq(base_uuid_parse(&back, BASE_STR("ffffffff-ffff-4fff-bfff-fffffffffffg")), BASE_EINVAL);
}

Test(base_id, correlation_from_traceparent)
{
    static const struct {
        const char *text;
        int code;
    } rows[] = {{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", BASE_OK},
                {"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", BASE_EINVAL},
                {"00-00000000000000000000000000000000-b7ad6b7169203331-01", BASE_EINVAL},
                {"00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", BASE_EINVAL},
                {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", BASE_EINVAL},
                {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-01", BASE_EINVAL},
                {"", BASE_EINVAL}};

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct base_correlation c;

        cr_assert_eq(base_traceparent_parse(&c, base_str_of(rows[i].text)), rows[i].code, "row %zu", i);
        if (!rows[i].code) {
            char text[BASE_CORRELATION_SIZE];

            base_correlation_text(text, &c);
            cr_assert_str_eq(text, "0af7651916cd43dd8448eb211c80319c");
        }
    }
}

Test(base_id, prefixes_are_canonical_or_refused)
{
    static const struct {
        const char *text;
        int code;
    } rows[] = {{"fd12::1:0:1:0:0/96", BASE_OK},
                {"fd12:0:0:1:0:1::/96", BASE_EINVAL},
                {"::/0", BASE_OK},
                {"fd20::10/128", BASE_OK},
                {"fd12::1:0:1:0:1/96", BASE_EINVAL},
                {"FD12::/64", BASE_EINVAL},
                {"fd12::0/64", BASE_EINVAL},
                {"fd12::/129", BASE_EINVAL},
                {"fd12::/064", BASE_EINVAL},
                {"fd12::", BASE_EINVAL},
                {"fd12::/", BASE_EINVAL},
                {"/64", BASE_EINVAL},
                {"fe80::%eth0/64", BASE_EINVAL},
                {"10.0.0.0/8", BASE_EINVAL},
                {"", BASE_EINVAL}};

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct base_prefix p;

        cr_assert_eq(base_prefix_parse(&p, base_str_of(rows[i].text)), rows[i].code, "'%s'", rows[i].text);
        if (!rows[i].code) {
            char text[BASE_PREFIX_SIZE];

            base_prefix_text(text, &p);
            cr_assert_str_eq(text, rows[i].text);
        }
    }
}

Test(base_id, containment_at_every_length)
{
    struct base_prefix outer, inner;
    struct base_ip6 ip;

    cr_assert_eq(base_ip6_parse(&ip, BASE_STR("fd12:3456:789a:bcde:f012:3456:789a:bcde")), BASE_OK);
    for (unsigned len = 0; len <= 128; len++) {
        outer = (struct base_prefix){ip, (uint8_t)len};
        for (unsigned bit = len; bit < 128; bit++)
            outer.addr.b[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
        cr_assert(base_prefix_has_ip(&outer, &ip));
        inner = (struct base_prefix){ip, 128};
        cr_assert(base_prefix_covers(&outer, &inner));
        if (len) {
            struct base_ip6 other = ip;

            other.b[(len - 1) / 8] ^= (uint8_t)(0x80u >> (len - 1) % 8);
            cr_assert_not(base_prefix_has_ip(&outer, &other), "length %u", len);
            inner = (struct base_prefix){outer.addr, (uint8_t)(len - 1)};
            cr_assert_not(base_prefix_covers(&outer, &inner));
        }
    }
}

Test(base_id, sha256_of_pieces)
{
    uint8_t one[BASE_SHA256_SIZE], two[BASE_SHA256_SIZE];
    char text[2 * BASE_SHA256_SIZE + 1];

    cr_assert_eq(base_sha256(one, "abc", 3, NULL, 0), BASE_OK);
    cr_assert_eq(base_sha256(two, "a", 1, "bc", 2), BASE_OK);
    cr_assert_arr_eq(one, two, sizeof one);
    base_hex(text, one, sizeof one);
    cr_assert_str_eq(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
