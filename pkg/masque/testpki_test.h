/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/testpki_test.h - certificates for tests, made in the process, right and wrong on purpose.
 */
#ifndef MASQUE_TESTPKI_TEST_H
#define MASQUE_TESTPKI_TEST_H

#include <stdbool.h>
#include <stddef.h>

#include "masque/peer_verify.h"

enum testpki_key { TESTPKI_EC = 0, TESTPKI_RSA, TESTPKI_RSA1024, TESTPKI_ED25519 };
struct testpki_cert; /* key and certificate */
struct testpki_spec {
    const char *cn;
    const struct testpki_cert *issuer; /* NULL = signed by itself */
    bool ca;
    enum testpki_key key;
    const char *eku; /* "clientAuth"; NULL = no such extension */
    const char *san; /* "URI:spiffe://a/b,DNS:c"; NULL = none */
    const char *uri; /* one URI as raw bytes, NUL and all (san must be NULL) */
    size_t n_uri;
    bool has_uri;
    long from, to; /* s from now; both 0 = valid for a day */
};
/* Aborts when a certificate cannot be made. */
struct testpki_cert *testpki_new(const struct testpki_spec *spec);
void testpki_free(struct testpki_cert *c);
/* Writes the certificate, then `also` (NULL ok) behind it; and the key. Either name may be NULL. */
void testpki_write(const struct testpki_cert *c, const struct testpki_cert *also, const char *cert_file,
                   const char *key_file);
/* Borrowed. */
struct masque_der testpki_der(const struct testpki_cert *c);

#endif
