# SPDX-License-Identifier: Apache-2.0
# The policy on real parts: see README.md.

.PHONY: test-policy
SUITES += test-policy
## test-policy    bearer tokens and the webhook on a real API server, with a webhook that lies; root
test-policy: binaries peers
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/policy test/policy/policy.sh
