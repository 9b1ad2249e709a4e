/* SPDX-License-Identifier: Apache-2.0
 *
 * nft.h - the default drop that stands behind the gate, made before any device exists.
 */
#ifndef FOUNDATION_NFT_H
#define FOUNDATION_NFT_H

#include "base/err.h"

/* Puts up table inet holdfast_gate, replacing an older one in one transaction. Runs `nft` (found in PATH) and
 * waits for it: only at start. BASE_OK, BASE_ENOTFOUND (no nft), BASE_EIO with what nft said. */
int nft_default_drop(struct base_err *err);

#endif
