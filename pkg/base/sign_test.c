/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sign.h"

#include <criterion/criterion.h>

static const char private_pem[] =
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIHrEzksVLOK5FHNBPpqf9rxwh0IcqC4bYdO1ZY6CFEuB\n-----END "
    "PRIVATE KEY-----\n";
static const char public_pem[] =
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA48gC03txmsaQkx3SQdpJRk7ui5dNzY7m4aBVE77ybrc=\n-----END "
    "PUBLIC KEY-----\n";

Test(base_sign, what_the_private_half_signs_the_public_half_knows)
{
    base_cleanup(base_key_freep) struct base_key *key = NULL, *pub = NULL;
    uint8_t sig[BASE_SIGNATURE_SIZE];

    cr_assert_eq(base_key_private(&key, base_str_of(private_pem), NULL), BASE_OK);
    cr_assert_eq(base_key_public(&pub, base_str_of(public_pem), NULL), BASE_OK);
    cr_assert_str_eq(base_key_id(key), base_key_id(pub));
    cr_assert_eq(strlen(base_key_id(key)), 16);
    cr_assert_eq(base_key_sign(key, sig, BASE_STR("hello")), BASE_OK);
    cr_assert_eq(base_key_verify(pub, sig, BASE_STR("hello")), BASE_OK);
    cr_assert_eq(base_key_verify(key, sig, BASE_STR("hello")), BASE_OK);
    cr_assert_eq(base_key_verify(pub, sig, BASE_STR("hellp")), BASE_EDENIED);
    for (size_t i = 0; i < sizeof sig; i++) {
        sig[i] ^= 1;
        cr_assert_eq(base_key_verify(pub, sig, BASE_STR("hello")), BASE_EDENIED, "byte %zu", i);
        sig[i] ^= 1;
    }
    cr_assert_eq(base_key_sign(pub, sig, BASE_STR("hello")), BASE_EINVAL);
}

Test(base_sign, what_is_no_such_key_is_refused_and_not_repeated)
{
    char broken[sizeof private_pem];
    struct base_key *k = NULL;
    struct base_err err = {0};

    cr_assert_eq(base_key_private(&k, base_str_of(public_pem), &err), BASE_EINVAL);
    cr_assert_not_null(strstr(err.msg, "genpkey"));
    cr_assert_eq(base_key_public(&k, base_str_of(private_pem), &err), BASE_EINVAL);
    cr_assert_not_null(strstr(err.msg, "-pubout"));
    cr_assert_eq(base_key_public(&k, BASE_STR(""), &err), BASE_EINVAL);
    /* cut anywhere; every character of the text changed to something that is no base64 */
    for (size_t n = 0; n + 2 < sizeof private_pem; n++)
        cr_assert_eq(base_key_private(&k, (struct base_str){private_pem, n}, &err), BASE_EINVAL, "%zu", n);
    for (size_t i = 0; i + 2 < sizeof private_pem; i++) {
        memcpy(broken, private_pem, sizeof broken);
        if (broken[i] == '\n')
            continue;
        broken[i] = '!';
        cr_assert_eq(base_key_private(&k, base_str_of(broken), &err), BASE_EINVAL, "%zu", i);
        cr_assert_null(strstr(err.msg, "!"));
    }
}
