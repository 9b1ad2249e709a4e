# SPDX-License-Identifier: Apache-2.0
# The policy on real parts: see README.md.

.PHONY: test-policy
SUITES += test-policy
## test-policy    bearer tokens and the webhook on a real API server, with a webhook that lies; root
test-policy: binaries peers
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/policy test/policy/policy.sh

.PHONY: figures-policy figure-outage figure-requests figure-suspend figure-agent
## figures-policy the policy's figures on a lab, each with its bound (25 minutes; RUNS=N for fewer outages and suspends); root
figures-policy: figure-suspend figure-requests figure-outage
## figure-agent   an agent: API requests at start, writes, memory idle and with 1,000 connectors; fails when one does not hold (root; 2 minutes)
figure-suspend figure-requests figure-agent: figure-%: binaries peers
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/figure-$* test/policy/figure_$*.sh
figure-outage: binaries peers
	@for w in webhook apiserver; do HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/figure-outage-$$w test/policy/figure_outage.sh $$w || exit 1; done
