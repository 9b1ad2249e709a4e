# SPDX-License-Identifier: Apache-2.0
# The soak: see soak.sh. Not part of `make test`; how it judges is.

DURATION ?= 30m
.PHONY: soak test-soak-judge
## soak           500 sessions that come, move data, switch transport and vanish, for DURATION=30m; fails on growth, a leaked claim, two forwarders, a restart (root)
soak: binaries peers
	@HOLDFAST_SUITE_TIMEOUT=14400 HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/soak test/soak/soak.sh $(DURATION) $(or $(SESSIONS),500)
SUITES += test-soak-judge
## test-soak-judge the soak's verdicts, on series made for it (seconds)
test-soak-judge:
	@hack/run-tests.sh soak-judge test/soak/judge_test.sh
