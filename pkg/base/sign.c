/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sign.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/id.h"
#include "base/mem.h"

#define RAW_SIZE 32

struct base_key {
    EVP_PKEY *pkey;
    bool private_half;
    char id[BASE_KEY_ID_SIZE];
};

/* The DER of an Ed25519 key is this and the 32 bytes of the key (RFC 8410). */
static const uint8_t private_der[] = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
                                      0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20};
static const uint8_t public_der[] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};

/* The bytes between the armour lines; exactly `want` of them. */
static bool unarmour(struct base_str pem, const char *label, uint8_t *dst, size_t want)
{
    char begin[48], end[48], text[96];
    const char *at, *stop;
    size_t n = 0;
    int got;

    (void)base_fmt(begin, sizeof begin, "-----BEGIN %s-----", label);
    (void)base_fmt(end, sizeof end, "-----END %s-----", label);
    at = pem.len ? memmem(pem.ptr, pem.len, begin, strlen(begin)) : NULL;
    if (!at)
        return false;
    at += strlen(begin);
    stop = memmem(at, (size_t)(pem.ptr + pem.len - at), end, strlen(end));
    for (; stop && at < stop; at++) {
        if (*at == '\n' || *at == '\r')
            continue;
        if (n == sizeof text)
            return false;
        text[n++] = *at;
    }
    if (!stop || n % 4 != 0 || n / 4 * 3 < want || n / 4 * 3 > want + 2)
        return false;
    {
        uint8_t out[sizeof text];
        bool fits;

        got = EVP_DecodeBlock(out, (const uint8_t *)text, (int)n);
        fits = got >= (int)want;
        if (fits)
            memcpy(dst, out, want);
        OPENSSL_cleanse(out, sizeof out);
        OPENSSL_cleanse(text, sizeof text);
        return fits;
    }
}

static int make(struct base_key **ret, const uint8_t raw[RAW_SIZE], bool private_half)
{
    struct base_key *k = base_calloc(1, sizeof *k);
    uint8_t pub[RAW_SIZE], digest[BASE_SHA256_SIZE];
    size_t len = sizeof pub;

    if (!k)
        return BASE_ENOMEM;
    k->private_half = private_half;
    k->pkey = private_half ? EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, raw, RAW_SIZE)
                           : EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, raw, RAW_SIZE);
    if (!k->pkey || EVP_PKEY_get_raw_public_key(k->pkey, pub, &len) != 1 || len != sizeof pub ||
        base_sha256(digest, pub, sizeof pub, NULL, 0)) {
        base_key_free(k);
        return BASE_ENOMEM;
    }
    base_hex(k->id, digest, (sizeof k->id - 1) / 2);
    *ret = k;
    return BASE_OK;
}

static int load(struct base_key **ret, struct base_str pem, bool private_half, struct base_err *err)
{
    const uint8_t *head = private_half ? private_der : public_der;
    size_t n = private_half ? sizeof private_der : sizeof public_der;
    uint8_t der[sizeof private_der + RAW_SIZE];
    int rc;

    if (!unarmour(pem, private_half ? "PRIVATE KEY" : "PUBLIC KEY", der, n + RAW_SIZE) ||
        memcmp(der, head, n) != 0)
        return base_err_set(err, BASE_EINVAL,
                            private_half
                                ? "no Ed25519 private key in PEM; make one with `openssl genpkey -algorithm "
                                  "ed25519 -out FILE`"
                                : "no Ed25519 public key in PEM; make it with `openssl pkey -in "
                                  "PRIVATE-KEY -pubout -out FILE`");
    rc = make(ret, der + n, private_half);
    OPENSSL_cleanse(der, sizeof der);
    return rc ? base_err_set(err, rc, "no memory for a key") : BASE_OK;
}

int base_key_private(struct base_key **ret, struct base_str pem, struct base_err *err)
{
    return load(ret, pem, true, err);
}

int base_key_public(struct base_key **ret, struct base_str pem, struct base_err *err)
{
    return load(ret, pem, false, err);
}

struct base_key *base_key_free(struct base_key *k)
{
    if (!k)
        return NULL;
    EVP_PKEY_free(k->pkey);
    return base_free(k);
}

const char *base_key_id(const struct base_key *k)
{
    return k->id;
}

int base_key_sign(const struct base_key *k, uint8_t ret[BASE_SIGNATURE_SIZE], struct base_str msg)
{
    EVP_MD_CTX *ctx;
    size_t len = BASE_SIGNATURE_SIZE;
    bool ok;

    if (!k->private_half)
        return BASE_EINVAL;
    ctx = EVP_MD_CTX_new();
    ok = ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, k->pkey) == 1 &&
         EVP_DigestSign(ctx, ret, &len, (const uint8_t *)msg.ptr, msg.len) == 1 && len == BASE_SIGNATURE_SIZE;
    EVP_MD_CTX_free(ctx);
    return ok ? BASE_OK : BASE_ENOMEM;
}

int base_key_verify(const struct base_key *k, const uint8_t sig[BASE_SIGNATURE_SIZE], struct base_str msg)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int rc = BASE_ENOMEM;

    if (ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, k->pkey) == 1)
        rc = EVP_DigestVerify(ctx, sig, BASE_SIGNATURE_SIZE, (const uint8_t *)msg.ptr, msg.len) == 1
                 ? BASE_OK
                 : BASE_EDENIED;
    EVP_MD_CTX_free(ctx);
    return rc;
}
