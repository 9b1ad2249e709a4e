# SPDX-License-Identifier: Apache-2.0
# The data thread on real parts: see test/dataplane/README.md. The small client here is written for ngtcp2's GnuTLS helper.

DATAPLANE_SRC := $(wildcard test/dataplane/*.c)
DATAPLANE_OBJ := $(DATAPLANE_SRC:%.c=$(BUILD)/%.o)
# Of the agent only the data thread: the rest has nothing to do with it.
DATAPLANE_AGENT := $(patsubst %.c,$(BUILD)/%.o,$(filter-out %_test.c,$(wildcard pkg/agent/data*.c)))
DATAPLANE_LIB := $(foreach l,$(call linkset,masque tun),$(BUILD)/lib/libhf_$(l).a)
# See stall.c.
DATAPLANE_WRAP := tun_offload tun_put write masque_endpoint_send agent_mail_post agent_data_admit_next pthread_create
$(DATAPLANE_OBJ): $(BUILD)/%.o: %.c build/inc/agent/.stamp
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ibuild/inc/agent $(call pc_cflags,$(EXT_masque)) -MMD -MP -c -o $@ $<
$(BUILD)/test/dataplane/dataplane: $(DATAPLANE_OBJ) $(DATAPLANE_AGENT) $(DATAPLANE_LIB)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(call pc_libs,$(call linkext,masque tun)) $(DATAPLANE_WRAP:%=-Wl,--wrap=%)
-include $(DATAPLANE_OBJ:.o=.d)

SUITES += test-dataplane sanitize-dataplane
.PHONY: test-dataplane sanitize-dataplane mutants-dataplane
## test-dataplane     packets, fences, barrier and gap of the data thread on a real TUN (root; also SAN=thread)
test-dataplane: $(BUILD)/test/dataplane/dataplane
	@hack/run-tests.sh $(VARIANT)/dataplane test/dataplane/run.sh $<
## sanitize-dataplane the same under ASan/UBSan and under TSan: forwarding with revocations
sanitize-dataplane:
	@$(MAKE) -s --no-print-directory test-dataplane SAN=address,undefined
	@$(MAKE) -s --no-print-directory test-dataplane SAN=thread
## mutants-dataplane  removes each guard of the data plane once; fails unless a test notices
mutants-dataplane:
	@test/dataplane/mutants.sh
