# SPDX-License-Identifier: Apache-2.0
# kubectl-holdfast on a real API server, the agents' audit page, secrets, the schema: see test/cli/README.md.

SUITES += test-kubectl-holdfast
.PHONY: test-kubectl-holdfast
## test-kubectl-holdfast  the operators' tool on a real API server (root)
test-kubectl-holdfast: binaries
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/kubectl-holdfast test/cli/run.sh

# not $(BUILD)/test/cli: that is the unit tests of pkg/cli
BENCH_AUDIT_OBJ := $(BUILD)/bench/audit.o
$(BENCH_AUDIT_OBJ): test/cli/bench.c build/inc/journal/.stamp
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ibuild/inc/journal -MMD -MP -c -o $@ $<
$(BUILD)/test/bench-audit: $(BENCH_AUDIT_OBJ) $(foreach l,$(call linkset,journal),$(BUILD)/lib/libhf_$(l).a)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(call pc_libs,$(call linkext,journal))
-include $(BENCH_AUDIT_OBJ:.o=.d)

.PHONY: bench-audit
## bench-audit    figures of the audit trail beside raw fdatasync; fails when one does not hold (BENCH_DIR: on which disk)
bench-audit: $(BUILD)/test/bench-audit
	@d=$$(mktemp -d "$${BENCH_DIR:-/tmp}/holdfast-bench.XXXXXX"); $< "$$d"; rc=$$?; rm -rf "$$d"; exit $$rc

SUITES += test-audit-page
.PHONY: test-audit-page
## test-audit-page  the agents' audit page, secrets in every input, no core dump, forged trails (root)
test-audit-page: binaries peers
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/audit-page test/cli/page.sh

SUITES += test-schema
.PHONY: test-schema
## test-schema    the CRDs only add: first landed ones, current ones over them, back, uninstalled; rows stay (root)
test-schema: binaries
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/schema test/cli/schema.sh

SUITES += test-plugin
.PHONY: test-plugin man krew
## test-plugin    kubeconfigs, exec plug-ins, check, version, dump, man page, krew manifest; Events by node (root)
test-plugin: binaries
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/plugin test/cli/plugin.sh
## man            writes the man page of kubectl-holdfast anew, from its --help
man: $(BUILD)/bin/kubectl-holdfast
	@hack/man.sh $< --write
## krew           the plug-in's archive and krew manifest, in build/krew (RELEASE_URL: where releases are)
krew: $(BUILD)/bin/kubectl-holdfast
	@hack/krew.sh $(BUILD)/bin build/krew

.PHONY: bench-status
## bench-status   kubectl holdfast status on 100 nodes and 10,000 claims: time and memory; fails when one does not hold (root; 2 minutes)
bench-status: $(BUILD)/bin/kubectl-holdfast
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/bench-status test/cli/status_bench.sh
