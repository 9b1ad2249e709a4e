/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/bearer.h"

#include <criterion/criterion.h>

Test(masque_bearer, form)
{
    static const struct {
        const char *value, *token; /* NULL = none */
    } rows[] = {
        {"Bearer eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOlsieCJdfQ.c2ln",
         "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOlsieCJdfQ.c2ln"},
        {"bearer a", "a"},
        {"BEARER abc-._~+/==", "abc-._~+/=="},
        {"Bearer", NULL},
        {"Bearer ", NULL},
        {"Bearer  a", NULL},
        {"Bearer a ", NULL},
        {"Bearer a b", NULL},
        {"Bearer\ta", NULL},
        {" Bearer a", NULL},
        {"Bearer =", NULL},
        {"Bearer a=b", NULL},
        {"Bearer a,b", NULL},
        {"Bearer \"a\"", NULL},
        {"Bearer a\x01", NULL},
        {"Bearer \xc3\xa4", NULL},
        {"Basic dXNlcjpwYXNz", NULL},
        {"Bearertoken", NULL},
        {"Bearer\x00 a", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct base_str t = {NULL, 0};
        bool ok = masque_bearer_parse(&t, base_str_of(rows[i].value));
        cr_assert_eq(ok, rows[i].token != NULL, "'%s'", rows[i].value);
        if (ok)
            cr_assert(base_str_eqz(t, rows[i].token));
    }
}

Test(masque_bearer, length)
{
    static char z[MASQUE_TOKEN_MAX + 16];
    struct base_str t;
    memset(z, 'a', sizeof z);
    memcpy(z, "Bearer ", 7);
    cr_assert(masque_bearer_parse(&t, (struct base_str){z, 7 + MASQUE_TOKEN_MAX}));
    cr_assert_eq(t.len, MASQUE_TOKEN_MAX);
    cr_assert(!masque_bearer_parse(&t, (struct base_str){z, 8 + MASQUE_TOKEN_MAX}));
}

Test(masque_bearer, tenant_names)
{
    static const char *const yes[] = {"tenant",          "x-tenant", "x-tenant-id",
                                      "holdfast-tenant", "Tenant",   "x_tenant_name"};
    static const char *const no[] = {"lieutenant", "tenants", "user-agent", "", "ten-ant", "subtenant"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
        cr_assert(masque_names_tenant(base_str_of(yes[i])), "%s", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        cr_assert(!masque_names_tenant(base_str_of(no[i])), "%s", no[i]);
}
