# SPDX-License-Identifier: Apache-2.0
# kubectl-holdfast on a real API server, the agents' audit page, secrets, the schema: see test/cli/README.md.

SUITES += test-kubectl-holdfast
.PHONY: test-kubectl-holdfast
## test-kubectl-holdfast  the operators' tool on a real API server (root)
test-kubectl-holdfast: binaries
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/cli test/cli/run.sh
