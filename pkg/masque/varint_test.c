/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/varint.h"

#include <criterion/criterion.h>

Test(masque_varint, shortest_form_at_each_border)
{
    static const struct {
        uint64_t v;
        size_t len;
        uint8_t first;
    } rows[] = {{0, 1, 0x00},
                {63, 1, 0x3f},
                {64, 2, 0x40},
                {16383, 2, 0x7f},
                {16384, 4, 0x80},
                {(UINT64_C(1) << 30) - 1, 4, 0xbf},
                {UINT64_C(1) << 30, 8, 0xc0},
                {MASQUE_VARINT_MAX, 8, 0xff}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t buf[8] = {0};
        uint64_t back = 0;
        cr_assert_eq(masque_varint_len(rows[i].v), rows[i].len, "row %zu", i);
        cr_assert_eq(masque_varint_put(buf, sizeof buf, rows[i].v), rows[i].len, "row %zu", i);
        cr_assert_eq(buf[0], rows[i].first, "row %zu", i);
        cr_assert_eq(masque_varint_get(buf, rows[i].len, &back), rows[i].len, "row %zu", i);
        cr_assert_eq(back, rows[i].v, "row %zu", i);
        cr_assert_eq(masque_varint_get(buf, rows[i].len - 1, &back), 0, "row %zu cut short", i);
        cr_assert_eq(masque_varint_put(buf, rows[i].len - 1, rows[i].v), 0, "row %zu without room", i);
    }
}

Test(masque_varint, too_large_is_refused)
{
    uint8_t buf[8];
    cr_assert_eq(masque_varint_len(MASQUE_VARINT_MAX + 1), 0);
    cr_assert_eq(masque_varint_put(buf, sizeof buf, MASQUE_VARINT_MAX + 1), 0);
}

Test(masque_varint, longer_forms_are_read)
{
    static const uint8_t eight[] = {0xc0, 0, 0, 0, 0, 0, 0, 2}, two[] = {0x40, 0x02};
    uint64_t v = 0;
    cr_assert_eq(masque_varint_get(eight, sizeof eight, &v), 8);
    cr_assert_eq(v, 2);
    cr_assert_eq(masque_varint_get(two, sizeof two, &v), 2);
    cr_assert_eq(v, 2);
}
