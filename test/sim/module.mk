# SPDX-License-Identifier: Apache-2.0
# The simulator: see test/sim/README.md. The cores are the agent's and the foundation's own, unchanged.

SIM_SRC := $(wildcard test/sim/*.c)
SIM_OBJ := $(SIM_SRC:%.c=$(BUILD)/%.o)
SIM_LIBS := $(foreach l,session store authority lease contract base,$(BUILD)/lib/libhf_$(l).a)
build/inc/sim/.stamp: Makefile test/sim/module.mk
	@rm -rf build/inc/sim && mkdir -p build/inc/sim/test
	@for d in session store authority lease contract base; do ln -s ../../../pkg/$$d build/inc/sim/$$d; done
	@ln -s ../../../../test/foundation build/inc/sim/test/foundation; touch $@
$(SIM_OBJ): $(BUILD)/%.o: %.c build/inc/sim/.stamp
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ibuild/inc/sim -MMD -MP -c -o $@ $<
-include $(SIM_OBJ:.o=.d)
$(BUILD)/test/sim/sim: $(SIM_OBJ) $(FND_CORE:%.c=$(BUILD)/%.o) $(SIM_LIBS)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(call pc_libs,libcjson libcrypto)
