# SPDX-License-Identifier: Apache-2.0
# The agent's command line and configuration file, from outside.
.PHONY: test-flags
SUITES += test-flags
## test-flags     what holdfast-agent says about wrong flags and files (seconds)
test-flags: $(BUILD)/bin/holdfast-agent
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/flags test/flags/run.sh
