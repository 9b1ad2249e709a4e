# SPDX-License-Identifier: Apache-2.0
# The model of the contract, in Promela: see test/model/README.md.

MODEL := test/model
$(BUILD)/test/model-constants: $(MODEL)/constants.c $(LIB_contract) $(LIB_base) build/inc/contract/.stamp
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -Ipkg -o $@ $(MODEL)/constants.c $(LIB_contract) $(LIB_base) $(call pc_libs,libcjson libcrypto)

SUITES += model
.PHONY: model model-guards
## model          the contract model-checked: all states with all guards, a counterexample without each (FULL=1: longer runs)
model: $(BUILD)/test/model-constants model-guards
	@hack/run-tests.sh $(VARIANT)/model-runner $(MODEL)/run_test.sh $<
	@hack/run-tests.sh $(VARIANT)/model $(MODEL)/run.sh $<
## model-guards   each guard of the model names the C functions that implement it, and the check that misses them
model-guards:
	@hack/run-tests.sh $(VARIANT)/model-guards $(MODEL)/check-guards.sh
