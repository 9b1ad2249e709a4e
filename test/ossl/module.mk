# SPDX-License-Identifier: Apache-2.0
# The unit tests with the libraries that the image ships, ngtcp2's OpenSSL helper among them, in a Debian 13 root (root; the
# first run makes the root, about two minutes).

.PHONY: ossl-test
## ossl-test      the unit tests in a Debian 13 root, with ngtcp2's OpenSSL helper: what the image ships
ossl-test:
	@hack/run-tests.sh trixie/unit test/ossl/run.sh
.PHONY: ossl-bench
## ossl-bench     figures of the data path with the server that the image ships (Debian 13, OpenSSL); variables as for bench (root)
ossl-bench: $(BENCH_BIN) build/peers/holdfast-connectip-server
	@test/ossl/bench.sh $(BUILD)/test/bench build/peers build/bench/dataplane-ossl.txt $(PAIRS) $(or $(SESSIONS),10000) $(ONLY)
