# SPDX-License-Identifier: Apache-2.0
# The transports with the TLS library that the image ships: ngtcp2's OpenSSL helper, in a Debian 13 root (root; the first run
# makes the root, about two minutes).

.PHONY: ossl-test
## ossl-test      the transports in a Debian 13 root, with ngtcp2's OpenSSL helper
ossl-test:
	@hack/run-tests.sh trixie/unit test/ossl/run.sh
