# SPDX-License-Identifier: Apache-2.0
# The simulator: see test/sim/README.md. The cores are the agent's and the foundation's own, unchanged.

SIM_SRC := $(wildcard test/sim/*.c)
SIM_OBJ := $(SIM_SRC:%.c=$(BUILD)/%.o)
SIM_DEPS := session store authority lease contract base
SIM_BIN := $(BUILD)/test/sim/sim
build/inc/sim/.stamp: Makefile test/sim/module.mk
	@rm -rf build/inc/sim && mkdir -p build/inc/sim/test
	@for d in $(SIM_DEPS); do ln -s ../../../pkg/$$d build/inc/sim/$$d; done
	@ln -s ../../../../test/foundation build/inc/sim/test/foundation; touch $@
$(SIM_OBJ): $(BUILD)/%.o: %.c build/inc/sim/.stamp
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ibuild/inc/sim -MMD -MP -c -o $@ $<
-include $(SIM_OBJ:.o=.d)
$(SIM_BIN): $(SIM_OBJ) $(FND_CORE:%.c=$(BUILD)/%.o) $(foreach l,$(SIM_DEPS),$(BUILD)/lib/libhf_$(l).a)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(call pc_libs,libcjson libcrypto)

SIM_SCENARIOS := $(sort $(wildcard test/sim/scenarios/*.sim))
SUITES += test-sim
.PHONY: sim test-sim sim-scenarios mutants-sim mutants
## sim            the simulator: scenarios, then 100,000 random schedules (SCHEDULES=N, FROM=SEED); SEED=N replays one
sim: $(SIM_BIN)
ifdef SEED
	@$(SIM_BIN) seed $(SEED)
else
	@$(SIM_BIN) scenario $(SIM_SCENARIOS)
	@$(SIM_BIN) handover
	@$(SIM_BIN) pairs 2000
	@$(SIM_BIN) run $(or $(SCHEDULES),100000) $(or $(FROM),1) 2
endif

## sim-scenarios  the simulator's scenario files alone
sim-scenarios: $(SIM_BIN)
	@$(SIM_BIN) scenario $(SIM_SCENARIOS)

## test-sim       the simulator in `make test`: scenarios, figures, one trace with both compilers, 100,000 schedules
test-sim: $(SIM_BIN)
	@hack/run-tests.sh $(VARIANT)/sim-scenarios $(SIM_BIN) scenario $(SIM_SCENARIOS)
	@hack/run-tests.sh $(VARIANT)/sim-selftest test/sim/selftest.sh $(SIM_BIN)
	@hack/run-tests.sh $(VARIANT)/sim-handover $(SIM_BIN) handover
	@hack/run-tests.sh $(VARIANT)/sim-pairs $(SIM_BIN) pairs 500
	@$(MAKE) -s --no-print-directory CC=clang SAN= build/clang/test/sim/sim
	@$(MAKE) -s --no-print-directory CC=gcc SAN= build/gcc/test/sim/sim
	@hack/run-tests.sh sim-compilers test/sim/compilers.sh build/gcc/test/sim/sim build/clang/test/sim/sim
	@hack/run-tests.sh $(VARIANT)/sim $(SIM_BIN) run $(or $(SCHEDULES),100000) $(or $(FROM),1) 2

CELLS := $(BUILD)/cells.txt
SUITES += cells
.PHONY: cells
## cells          state x event tables of the agent's core: fails on a cell that no run reached and that is not impossible
cells: $(SIM_BIN) $(BUILD)/test/session
	@rm -f $(CELLS)
	@HOLDFAST_CELLS=$(CELLS) $(BUILD)/test/session -j2 --timeout 300 >$(CELLS:.txt=.log) 2>&1 || { tail -5 $(CELLS:.txt=.log); exit 1; }
	@HOLDFAST_CELLS=$(CELLS) $(SIM_BIN) scenario $(SIM_SCENARIOS) >$(CELLS:.txt=.log)
	@HOLDFAST_CELLS=$(CELLS) $(SIM_BIN) run $(or $(SCHEDULES),5000) 1 2 >>$(CELLS:.txt=.log)
	@hack/run-tests.sh $(VARIANT)/cells $(SIM_BIN) cells $(CELLS)

# A build of its own, in which base_mutant() is true for the name in HOLDFAST_MUTANT.
SIM_MUTANTS := build/mutants-sim
## mutants-sim    removes each guard of both cores in turn; fails unless the simulator or a unit test notices (long)
mutants-sim: $(SIM_BIN) $(BUILD)/test/foundation-core
	@$(MAKE) -s --no-print-directory BUILD=$(SIM_MUTANTS) SAN= CFLAGS=-DHOLDFAST_MUTANTS $(SIM_MUTANTS)/test/sim/sim \
	  $(SIM_MUTANTS)/test/lease $(SIM_MUTANTS)/test/authority $(SIM_MUTANTS)/test/session
	@HOLDFAST_SUITE_TIMEOUT=14400 hack/run-tests.sh $(VARIANT)/mutants-sim test/sim/mutants.sh $(BUILD) $(SIM_MUTANTS) $(or $(SCHEDULES),2000)
## mutants        the same as mutants-sim
mutants: mutants-sim
