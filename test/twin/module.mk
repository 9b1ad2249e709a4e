# SPDX-License-Identifier: Apache-2.0
# The in-memory twin against a real API server, and collections on a real one: see test/twin/README.md.

TWIN_SRC := $(wildcard test/twin/*.c)
TWIN_OBJ := $(TWIN_SRC:%.c=$(BUILD)/%.o)
TWIN_LIB := $(foreach l,$(call linkset,kubestore),$(BUILD)/lib/libhf_$(l).a)
$(TWIN_OBJ): $(BUILD)/%.o: %.c build/inc/kubestore/.stamp
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ibuild/inc/kubestore $(call pc_cflags,$(call linkext,kubestore)) -MMD -MP -c -o $@ $<
$(BUILD)/test/twin/twin: $(TWIN_OBJ) $(TWIN_LIB)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(call pc_libs,$(call linkext,kubestore))
-include $(TWIN_OBJ:.o=.d)

SUITES += test-twin
.PHONY: test-twin
## test-twin          one table of requests on the twin and on a real API server; watches and proofs on a real one
test-twin: $(BUILD)/test/twin/twin
	@hack/run-tests.sh $(VARIANT)/twin test/twin/run.sh $<
