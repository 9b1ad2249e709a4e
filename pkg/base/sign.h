/* SPDX-License-Identifier: Apache-2.0
 *
 * base/sign.h - Ed25519 keys out of PEM, signatures. Pure: Ed25519 needs no randomness.
 *
 * Only the plain forms that `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout` write are taken.
 * No error text holds anything of a key.
 */
#ifndef BASE_SIGN_H
#define BASE_SIGN_H

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"

#define BASE_SIGNATURE_SIZE 64
#define BASE_KEY_ID_SIZE 17 /* text with its NUL */

struct base_key;
/* PEM "PRIVATE KEY" (PKCS #8). BASE_OK, BASE_EINVAL (says what is expected), BASE_ENOMEM. */
int base_key_private(struct base_key **ret, struct base_str pem, struct base_err *err);
/* PEM "PUBLIC KEY". The same codes. */
int base_key_public(struct base_key **ret, struct base_str pem, struct base_err *err);
struct base_key *base_key_free(struct base_key *k);
BASE_DEFINE_CLEANUP(struct base_key *, base_key_free)
/* 16 hex digits: the first 8 bytes of SHA-256 of the public key. Lives as long as the key. */
const char *base_key_id(const struct base_key *k);
/* BASE_OK; BASE_EINVAL: a public key; BASE_ENOMEM. */
int base_key_sign(const struct base_key *k, uint8_t ret[BASE_SIGNATURE_SIZE], struct base_str msg);
/* BASE_OK; BASE_EDENIED: not this key's signature of this message; BASE_ENOMEM. */
int base_key_verify(const struct base_key *k, const uint8_t sig[BASE_SIGNATURE_SIZE], struct base_str msg);

#endif
