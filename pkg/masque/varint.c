/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/varint.h"

size_t masque_varint_get(const uint8_t *p, size_t n, uint64_t *ret)
{
    if (n == 0)
        return 0;
    size_t len = (size_t)1 << (p[0] >> 6);
    if (n < len)
        return 0;
    uint64_t v = p[0] & 0x3f;
    for (size_t i = 1; i < len; i++)
        v = v << 8 | p[i];
    *ret = v;
    return len;
}

size_t masque_varint_len(uint64_t v)
{
    if (v < 64)
        return 1;
    if (v < 16384)
        return 2;
    if (v < (UINT64_C(1) << 30))
        return 4;
    return v <= MASQUE_VARINT_MAX ? 8 : 0;
}

size_t masque_varint_put(uint8_t *dst, size_t size, uint64_t v)
{
    size_t len = masque_varint_len(v);
    if (len == 0 || len > size)
        return 0;
    for (size_t i = len; i-- > 0; v >>= 8)
        dst[i] = (uint8_t)v;
    dst[0] |= (uint8_t)((len == 1 ? 0 : len == 2 ? 1 : len == 4 ? 2 : 3) << 6);
    return len;
}
