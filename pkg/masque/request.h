/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/request.h - is this header block a CONNECT-IP request that we can serve? (RFC 9484 section 4.4, RFC
 * 9220, RFC 9297 section 3.2)
 *
 * Beside that form there is the one that Cloudflare's clients use, where it is switched on: :protocol
 * cf-connect-ip, or over HTTP/2 a plain CONNECT with the header cf-connect-proto; their path says nothing,
 * any target is meant.
 *
 * Pure. Keeps only the fields that decide; everything else is counted and forgotten. Who a client is, its
 * tenant included, comes from its credential alone: a header that names a tenant is an error.
 */
#ifndef MASQUE_REQUEST_H
#define MASQUE_REQUEST_H

#include <stdbool.h>

#include "base/err.h"
#include "base/id.h"
#include "base/secret.h"
#include "base/str.h"
#include "masque/path.h"

enum { MASQUE_HEADERS_PATH_MAX = 256 };

struct masque_headers {
    uint32_t max, bytes; /* RFC 9114 section 4.2.2: name + value + 32 for each field */
    bool has_method, has_protocol, has_scheme, has_authority, has_path, has_traceparent;
    bool is_connect, is_connect_ip, is_cf_protocol, is_cf_header, is_https, path_cut, traceparent_twice;
    const char *forbidden; /* a field that a message with capsules must not have */
    /* Set by the owner: */
    bool bearer;     /* an Authorization header means something here */
    bool no_rfc;     /* :protocol connect-ip is not served */
    bool cloudflare; /* :protocol cf-connect-ip is served */
    bool plain;      /* with it: also CONNECT without :protocol, with the header cf-connect-proto (HTTP/2) */
    bool has_tenant, has_authorization, authorization_twice, no_memory;
    struct base_secret *token; /* of the Authorization header, when it is a bearer token */
    uint16_t n_path;
    char protocol[32]; /* printable and cut, for the error text */
    char path[MASQUE_HEADERS_PATH_MAX];
    char traceparent[64];
};

void masque_headers_init(struct masque_headers *h, uint32_t max_bytes);
/* Overwrites and frees the token, if it is still there. */
void masque_headers_fini(struct masque_headers *h);
/* BASE_OK (also when there was no memory for a token: masque_headers_check says so), or BASE_EFULL once the
 * block is larger than max_bytes (the field is not taken). */
int masque_headers_add(struct masque_headers *h, struct base_str name, struct base_str value);
/* Decides when the block is whole. `fin`: the request stream ended with it. BASE_OK fills *ret_path and
 * *ret_correlation (zero without a valid traceparent); else BASE_EINVAL, err->http_status says what to answer
 * (400, 405, 431, 501, 503) and err->msg why. */
int masque_headers_check(const struct masque_headers *h, bool fin, struct masque_path *ret_path,
                         struct base_correlation *ret_correlation, struct base_err *err);
/* The request is of the plain form, whose DATAGRAM capsules hold bare packets, without a context ID. */
bool masque_headers_bare(const struct masque_headers *h);

#endif
