/* SPDX-License-Identifier: Apache-2.0 */
#include "sealed.h"

#include <string.h>

enum { COUNTER = 8, NONCE = 12, TAG = 16 };

int bench_sealed_init(struct bench_sealed *s, int server)
{
    static unsigned char secret[16] = "not a secret";
    const gnutls_datum_t key = {secret, sizeof secret};
    s->counter = (uint64_t)(server != 0) << 63;
    return gnutls_aead_cipher_init(&s->key, GNUTLS_CIPHER_AES_128_GCM, &key);
}

size_t bench_seal(struct bench_sealed *s, uint8_t *out, const uint8_t *pkt, size_t len)
{
    uint8_t nonce[NONCE] = {0};
    size_t n = len + TAG;
    memcpy(nonce, &s->counter, COUNTER);
    memcpy(out, &s->counter, COUNTER);
    s->counter++;
    return gnutls_aead_cipher_encrypt(s->key, nonce, NONCE, NULL, 0, TAG, pkt, len, out + COUNTER, &n) == 0
               ? n + COUNTER
               : 0;
}

size_t bench_unseal(struct bench_sealed *s, uint8_t *pkt, size_t room, const uint8_t *in, size_t len)
{
    uint8_t nonce[NONCE] = {0};
    if (len < BENCH_SEALED_ROOM)
        return 0;
    memcpy(nonce, in, COUNTER);
    return gnutls_aead_cipher_decrypt(s->key, nonce, NONCE, NULL, 0, TAG, in + COUNTER, len - COUNTER, pkt,
                                      &room) == 0
               ? room
               : 0;
}
