# SPDX-License-Identifier: Apache-2.0
# Exact checks of the small pure functions: see test/exact/exact.h.

EXACT_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard test/exact/*.c))
$(EXACT_OBJ): $(BUILD)/%.o: %.c build/inc/session/.stamp
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ibuild/inc/session -MMD -MP -c -o $@ $<
-include $(EXACT_OBJ:.o=.d)
$(BUILD)/test/exact/exact: $(EXACT_OBJ) $(LIB_lease) $(LIB_contract) $(LIB_base)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(call pc_libs,libcjson libcrypto)

SUITES += exact
.PHONY: exact
## exact          the small pure functions against exact oracles, whole domains; every wrong variant has to be found
exact: $(BUILD)/test/exact/exact
	@hack/run-tests.sh $(VARIANT)/exact $<
