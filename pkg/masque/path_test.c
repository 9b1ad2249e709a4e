/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/path.h"

#include <criterion/criterion.h>

#define P "/.well-known/masque/ip/"

Test(masque_path, good)
{
    static const struct {
        const char *path;
        enum masque_target target;
        const char *prefix;
        int ipproto;
    } rows[] = {
        {P "*/*/", MASQUE_TARGET_ANY, NULL, -1},
        {P "%2A/%2a/", MASQUE_TARGET_ANY, NULL, -1},
        {P "fd20%3A%3A%2F64/6/", MASQUE_TARGET_PREFIX, "fd20::/64", 6},
        {P "fd20::10/255/", MASQUE_TARGET_PREFIX, "fd20::10/128", 255},
        {P "FD20%3a%3A%2F64/0/", MASQUE_TARGET_PREFIX, "fd20::/64", 0},
        {P "::%2F0/*/", MASQUE_TARGET_PREFIX, "::/0", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct masque_path r;
        struct base_err err = {0};
        char text[BASE_PREFIX_SIZE];
        cr_assert_eq(masque_path_parse(&r, base_str_of(rows[i].path), &err), BASE_OK, "%s: %s", rows[i].path,
                     err.msg);
        cr_assert_eq(r.target, rows[i].target, "%s", rows[i].path);
        cr_assert_eq(r.ipproto, rows[i].ipproto, "%s", rows[i].path);
        if (rows[i].prefix) {
            base_prefix_text(text, &r.prefix);
            cr_assert_str_eq(text, rows[i].prefix);
        }
    }
}

Test(masque_path, bad_inputs_name_part_and_remedy)
{
    static const struct {
        const char *path, *text;
    } rows[] = {
        {"", "must be /.well-known"},
        {"/", "must be /.well-known"},
        {"/.well-known/masque/udp/*/*/", "must be /.well-known"},
        {P, "ipproto is missing"},
        {P "*", "ipproto is missing"},
        {P "*/", "must end with /"},
        {P "*/*", "must end with /"},
        {P "*/*/x", "%2F"},
        {P "fd20::/64/*/", "%2F"},
        {P "*/*/?a=b", "query"},
        {P "/*/", "target \"\": is empty"},
        {P "fe80%3A%3A1%25eth0/*/", "zone"},
        {P "%5Bfd20%3A%3A1%5D/*/", "brackets"},
        {P "192.0.2.1/*/", "not IPv6"},
        {P "vpc.example/*/", "not IPv6"},
        {P "fd20%3A%3A1%2F64/*/", "bits after"},
        {P "fd20%3A%3A%2F129/*/", "from 0 to 128"},
        {P "fd20%3A%3A%2F/*/", "from 0 to 128"},
        {P "fd20%3A%3A%2F064/*/", "from 0 to 128"},
        {P "fd20%3A%3A%2F64%2F1/*/", "from 0 to 128"},
        {P "fd20%3Ag%3A/*/", "not an IPv6 address"},
        {P "fd20%3/*/", "hexadecimal"},
        {P "fd20%/*/", "hexadecimal"},
        {P "fd20%zz/*/", "hexadecimal"},
        {P "fd20%3A%3A%00/*/", "NUL"},
        {P "*/256/", "ipproto \"256\""},
        {P "*/-1/", "from 0 to 255"},
        {P "*/06/", "from 0 to 255"},
        {P "*//", "from 0 to 255"},
        {P "*/udp/", "from 0 to 255"},
        {P "*/11111111111111111111/", "too long"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct masque_path r = {.ipproto = 77};
        struct base_err err = {0};
        cr_assert_eq(masque_path_parse(&r, base_str_of(rows[i].path), &err), BASE_EINVAL, "%s", rows[i].path);
        cr_assert(strstr(err.msg, rows[i].text), "%s: %s", rows[i].path, err.msg);
        cr_assert_eq(r.ipproto, 77, "%s: the result was touched", rows[i].path);
    }
}

Test(masque_path, hostile_bytes_are_not_quoted)
{
    char path[400];
    struct masque_path r;
    struct base_err err = {0};
    memset(path, '\n', sizeof path);
    memcpy(path, P, sizeof P - 1);
    path[sizeof path - 3] = '/';
    path[sizeof path - 2] = '*';
    path[sizeof path - 1] = '/';
    cr_assert_eq(masque_path_parse(&r, (struct base_str){path, sizeof path}, &err), BASE_EINVAL);
    cr_assert_not(strchr(err.msg, '\n'));
    cr_assert(strlen(err.msg) < 160, "%s", err.msg);
}
