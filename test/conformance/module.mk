# SPDX-License-Identifier: Apache-2.0
# Obligations of RFC 9484, 9297, 9298, 9220, 8441, 9221, one case each, on every transport: see conf.h and TABLE.md.

CONF_SRC := $(wildcard test/conformance/*.c)
CONF_OBJ := $(CONF_SRC:%.c=$(BUILD)/%.o)
# Of the agent the packet path; the TUN is the test's own (tun.c), so libhf_tun gives no more than the prefix table.
CONF_AGENT := $(patsubst %.c,$(BUILD)/%.o,$(filter-out %_test.c,$(wildcard pkg/agent/data*.c)))
CONF_MASQUE := $(patsubst %,$(BUILD)/pkg/masque/%_test.o,testclient testtls testpki)
CONF_LIB := $(foreach l,$(call linkset,masque tun),$(BUILD)/lib/libhf_$(l).a)
$(CONF_OBJ): $(BUILD)/%.o: %.c build/inc/agent/.stamp
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ibuild/inc/agent $(call pc_cflags,$(EXT_masque)) -MMD -MP -c -o $@ $<
$(BUILD)/test/conformance/conformance: $(CONF_OBJ) $(CONF_AGENT) $(CONF_MASQUE) $(CONF_LIB)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(call pc_libs,$(call linkext,masque tun))
-include $(CONF_OBJ:.o=.d)

SUITES += conformance
.PHONY: conformance conformance-table
## conformance    one case per obligation of a CONNECT-IP server, on every transport; TABLE.md has to agree
conformance: $(BUILD)/test/conformance/conformance
	@hack/run-tests.sh $(VARIANT)/conformance $< --check test/conformance/TABLE.md
## conformance-table  writes test/conformance/TABLE.md anew
conformance-table: $(BUILD)/test/conformance/conformance
	@$< --write test/conformance/TABLE.md
