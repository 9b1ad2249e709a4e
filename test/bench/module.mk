# SPDX-License-Identifier: Apache-2.0
# Figures of the ownership core: see core.c.

BENCH_CORE_OBJ := $(BUILD)/test/bench/core.o
$(BENCH_CORE_OBJ): test/bench/core.c build/inc/session/.stamp
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ibuild/inc/session -MMD -MP -c -o $@ $<
$(BUILD)/test/bench/core: $(BENCH_CORE_OBJ) $(foreach l,$(call linkset,session),$(BUILD)/lib/libhf_$(l).a)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(call pc_libs,$(call linkext,session)) -ldl
-include $(BENCH_CORE_OBJ:.o=.d)

.PHONY: bench-core
## bench-core     figures of the ownership core: a step, memory per connector, allocations; fails when one does not hold
bench-core: $(BUILD)/test/bench/core
	@$<
