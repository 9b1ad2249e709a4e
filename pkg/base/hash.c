/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <openssl/evp.h>

#include "base/err.h"
#include "base/mem.h"

struct base_hasher {
    EVP_MD *md;
    EVP_MD_CTX *ctx;
};

struct base_hasher *base_hasher_new(void)
{
    struct base_hasher *h = base_calloc(1, sizeof *h);

    if (!h)
        return NULL;
    h->md = EVP_MD_fetch(NULL, "SHA256", NULL);
    h->ctx = EVP_MD_CTX_new();
    return h->md && h->ctx ? h : base_hasher_free(h);
}

struct base_hasher *base_hasher_free(struct base_hasher *h)
{
    if (!h)
        return NULL;
    EVP_MD_CTX_free(h->ctx);
    EVP_MD_free(h->md);
    return base_free(h);
}

int base_hasher_digest(struct base_hasher *h, uint8_t ret[BASE_SHA256_SIZE], struct base_str a,
                       struct base_str b, struct base_str c)
{
    int ok = EVP_DigestInit_ex(h->ctx, h->md, NULL) == 1 &&
             (!a.len || EVP_DigestUpdate(h->ctx, a.ptr, a.len) == 1) &&
             (!b.len || EVP_DigestUpdate(h->ctx, b.ptr, b.len) == 1) &&
             (!c.len || EVP_DigestUpdate(h->ctx, c.ptr, c.len) == 1) &&
             EVP_DigestFinal_ex(h->ctx, ret, NULL) == 1;

    return ok ? BASE_OK : BASE_ENOMEM;
}
