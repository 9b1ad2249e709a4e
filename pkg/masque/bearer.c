/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/bearer.h"

static bool alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool masque_bearer_parse(struct base_str *ret, struct base_str value)
{
    static const char scheme[] = "bearer ";
    const size_t skip = sizeof scheme - 1;
    size_t n = 0;

    if (value.len <= skip || value.len - skip > MASQUE_TOKEN_MAX)
        return false;
    for (size_t i = 0; i < skip; i++)
        if ((value.ptr[i] | (i + 1 < skip ? 0x20 : 0)) != scheme[i])
            return false;
    value = (struct base_str){value.ptr + skip, value.len - skip};
    while (n < value.len && (alnum(value.ptr[n]) || memchr("-._~+/", value.ptr[n], 6)))
        n++;
    if (n == 0)
        return false;
    while (n < value.len && value.ptr[n] == '=')
        n++;
    if (n != value.len)
        return false;
    *ret = value;
    return true;
}

bool masque_names_tenant(struct base_str name)
{
    static const char word[] = "tenant";
    const size_t n = sizeof word - 1;

    for (size_t i = 0; i + n <= name.len; i++) {
        size_t k = 0;

        while (k < n && (name.ptr[i + k] | 0x20) == word[k])
            k++;
        if (k == n && (i == 0 || !alnum(name.ptr[i - 1])) && (i + n == name.len || !alnum(name.ptr[i + n])))
            return true;
    }
    return false;
}
