# SPDX-License-Identifier: Apache-2.0
# The lab: network namespaces, the probe, and what runs in them.

PROBE_SRC := $(wildcard test/lab/probe/*.c)
PROBE_OBJ := $(PROBE_SRC:%.c=$(BUILD)/%.o)
$(BUILD)/test/lab/probe/%.o: test/lab/probe/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(shell pkg-config --cflags libcrypto) -MMD -MP -c -o $@ $<
$(BUILD)/bin/holdfast-probe: $(PROBE_OBJ)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $(PROBE_OBJ) $(shell pkg-config --libs libcrypto)
-include $(PROBE_OBJ:.o=.d)

BINARIES += $(BUILD)/bin/holdfast-probe

.PHONY: test-lab-tool
SUITES += test-lab-tool
## test-lab-tool  the lab's own test: what it builds, and that it leaves nothing behind
test-lab-tool: $(BUILD)/bin/holdfast-probe
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/lab-tool test/lab/lab_test.sh

.PHONY: test-deps
SUITES += test-deps
## test-deps      hack/deps.sh against sources and systems of the test's own making
test-deps:
	@hack/run-tests.sh deps hack/deps_test.sh

.PHONY: test-run-tests
SUITES += test-run-tests
## test-run-tests hack/run-tests.sh and sum-results.sh: what counts as a failure, and what an interrupt does to a suite (seconds)
test-run-tests:
	@hack/run-tests.sh run-tests hack/run-tests_test.sh

.PHONY: test-layers
SUITES += test-layers
## test-layers    breaks each rule of the layers once, in a copy of the tree; the build or hack/check-layers.sh has to notice
test-layers:
	@hack/run-tests.sh layers hack/check-layers_test.sh

SCENARIOS_LONG := two_apis double_takeover_back
SCENARIOS := $(filter-out lib $(SCENARIOS_LONG),$(notdir $(basename $(wildcard test/lab/scenarios/*.sh))))
.PHONY: scenarios scenarios-long $(SCENARIOS:%=scenario-%) $(SCENARIOS_LONG:%=scenario-%)
SUITES += scenarios
## scenarios      the lab's scenarios with real packets (scenario-NAME runs one)
scenarios: $(SCENARIOS:%=scenario-%)
## scenarios-long those that are not part of `make test`
scenarios-long: $(SCENARIOS_LONG:%=scenario-%)
$(SCENARIOS:%=scenario-%) $(SCENARIOS_LONG:%=scenario-%): scenario-%: binaries peers
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/scenario-$* test/lab/scenarios/$*.sh

# ---- acceptance: test/lab/accept/README.md -----------------------------------------------------------------------
.PHONY: accept accept-short accept-mutants accept-mutants-build test-accept-report accept-peers test-accept-peers
SUITES += test-accept-report
## test-accept-report  verdicts, packet truths and timeline of the acceptance lab, on files made for it (seconds)
test-accept-report:
	@hack/run-tests.sh $(VARIANT)/accept-report test/lab/accept/report_test.sh
## accept         every scenario with figures, RUNS=20 times each, against the contract's bounds; build/accept/report.html (hours)
accept: binaries peers
	@HOLDFAST_SUITE_TIMEOUT=172800 HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/accept test/lab/accept/run.sh \
	  --runs $(or $(RUNS),20) --seed $(or $(SEED),1) $(if $(SUMMARY),--summary $(SUMMARY)) $(SCENARIO)
SUITES += accept-short
## accept-short   the load-bearing ones, once (3 to 4 minutes)
accept-short: binaries peers
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/accept-short test/lab/accept/run.sh --short $(if $(SUMMARY),--summary $(SUMMARY))
SUITES += test-accept-peers
## test-accept-peers  how a move is measured, and the table of movers, on files made for it (seconds)
test-accept-peers:
	@hack/run-tests.sh $(VARIANT)/accept-peers-table test/lab/accept/peers/table_test.sh
## accept-peers   keepalived and BIRD as movers of addresses beside Holdfast, RUNS=10 times each (an hour; installs keepalived)
accept-peers: binaries peers
	@hack/deps.sh --peers
	@HOLDFAST_SUITE_TIMEOUT=172800 HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/accept-peers test/lab/accept/peers/run.sh \
	  --runs $(or $(RUNS),10) --seed $(or $(SEED),1) $(if $(SUMMARY),--summary $(SUMMARY)) $(SCENARIO)
MUTANTS_LAB := build/mutants-lab
accept-mutants-build:
	@$(MAKE) -s --no-print-directory BUILD=$(MUTANTS_LAB) SAN= CFLAGS=-DHOLDFAST_MUTANTS $(MUTANTS_LAB)/bin/holdfast-agent \
	  $(MUTANTS_LAB)/bin/holdfast-foundation $(MUTANTS_LAB)/bin/holdfast-probe >/dev/null
## accept-mutants takes one protection away at a time: the scenario named in mutants.list has to fail (ONLY=fence tries one)
accept-mutants: accept-mutants-build peers
	@HOLDFAST_SUITE_TIMEOUT=7200 hack/run-tests.sh $(VARIANT)/accept-mutants test/lab/accept/mutants.sh $(MUTANTS_LAB) $(ONLY)
