# SPDX-License-Identifier: Apache-2.0
# The charts, metrics, alerts and dashboard without a cluster: see README.md.

SUITES += chart-test
.PHONY: chart-test chart-readme
## chart-test     charts (lint, golden files, refusals, strict validation, install), metrics, alerts, dashboard
chart-test: $(BUILD)/bin/holdfast-agent
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/chart test/chart/run.sh
## chart-readme   writes the charts' tables of values anew
chart-readme:
	@for c in charts/*; do hack/chart-readme.sh "$$c"; done
