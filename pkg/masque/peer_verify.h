/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/peer_verify.h - the one check of client certificates: chain, purpose, and the URI that names the
 * client.
 *
 * The same code for every TLS library, so that two builds cannot differ in whom they let in. Uses OpenSSL's
 * X.509 part only, no TLS, no network, no revocation lists; the time is the system's wall clock, as for every
 * TLS library.
 */
#ifndef MASQUE_PEER_VERIFY_H
#define MASQUE_PEER_VERIFY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "masque/flow.h"

struct masque_roots; /* the CAs that may sign client certificates; immutable */
struct masque_der {
    const uint8_t *p;
    size_t len;
};
enum {
    MASQUE_CHAIN_MAX = 8,  /* certificates that a client may send */
    MASQUE_CHAIN_DEPTH = 2 /* intermediates between leaf and root */
};

/* Reads PEM. BASE_OK, BASE_EINVAL (file, why, remedy) or BASE_ENOMEM. */
int masque_roots_load(struct masque_roots **ret, const char *file, struct base_err *err);
struct masque_roots *masque_roots_free(struct masque_roots *r);

/* `chain`: leaf first. 0, or an X509_V_ERR_ code: not signed by one of `roots`, expired, not for client use,
 * weak key. */
int masque_peer_verify(const struct masque_roots *roots, const struct masque_der *chain, size_t n);
/* The TLS alert for that code, and a text for the log. */
uint8_t masque_peer_alert(int x509_err);
const char *masque_peer_error(int x509_err);

/* Looks at the leaf's URI names; buf holds the one URI for MASQUE_IDENTITY_URI, else "". */
enum masque_identity masque_peer_uri(const uint8_t *der, size_t derlen, char *buf, size_t size);

#endif
