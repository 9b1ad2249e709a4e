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

# ---- the data path ----------------------------------------------------------------------------------------------
# The client and the bare loop are written for ngtcp2's GnuTLS helper.
BENCH_DP := main server traffic figure scale threads client client_h2 wire sealed
BENCH_H3 := $(BUILD)/test/dataplane/h3.o
BENCH_DP_OBJ := $(BENCH_DP:%=$(BUILD)/test/bench/dp/%.o) $(BENCH_H3)
BENCH_AGENT := $(patsubst %.c,$(BUILD)/%.o,$(filter-out %_test.c,$(wildcard pkg/agent/data*.c)))
BENCH_LIB := $(foreach l,$(call linkset,masque tun),$(BUILD)/lib/libhf_$(l).a)
BENCH_LD = $(CC) $(LDFLAGS_ALL) -o $@ $^ $(call pc_libs,$(call linkext,masque tun))
BENCH_BIN := $(BUILD)/test/bench/bench-dataplane $(BUILD)/test/bench/bench-ours $(BUILD)/test/bench/bench-nofence $(BUILD)/test/bench/bench-bare $(BUILD)/test/bench/bench-ideal-h2 $(BUILD)/test/bench/bench-ideal-h3
$(BUILD)/test/bench/dp/%.o: test/bench/dp/%.c build/inc/agent/.stamp
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ibuild/inc/agent -Itest $(call pc_cflags,$(EXT_masque)) -MMD -MP -c -o $@ $<
$(BUILD)/test/bench/bench-dataplane: $(BENCH_DP_OBJ) $(BENCH_LIB)
	$(BENCH_LD)
$(BUILD)/test/bench/bench-ours: $(BUILD)/test/bench/dp/ours.o $(BENCH_AGENT) $(BENCH_LIB)
	$(BENCH_LD)
$(BUILD)/test/bench/bench-nofence: $(BUILD)/test/bench/dp/ours.o $(BUILD)/test/bench/dp/nofence.o $(BENCH_AGENT) $(BENCH_LIB)
	$(BENCH_LD) -Wl,--wrap=loop_clock
$(BUILD)/test/bench/bench-bare: $(BUILD)/test/bench/dp/bare.o $(BUILD)/test/bench/dp/wire.o $(BENCH_H3) $(BENCH_LIB)
	$(BENCH_LD)
$(BUILD)/test/bench/bench-ideal-h2: $(BUILD)/test/bench/dp/ideal_h2.o $(BUILD)/test/bench/dp/wire.o $(BENCH_LIB)
	$(BENCH_LD)
$(BUILD)/test/bench/bench-ideal-h3: $(BUILD)/test/bench/dp/ideal_h3.o $(BUILD)/test/bench/dp/sealed.o $(BUILD)/test/bench/dp/wire.o $(BENCH_LIB)
	$(BENCH_LD)
build/peers/holdfast-connectip-server: $(wildcard test/peers/connectip/server/*.go) test/peers/connectip/go.mod test/peers/connectip/go.sum
	@mkdir -p $(@D)
	cd test/peers/connectip && CGO_ENABLED=0 go build -p 2 -trimpath -buildvcs=false -o ../../../$@ ./server
-include $(wildcard $(BUILD)/test/bench/dp/*.d)

PAIRS ?= 7
ONLY ?=
.PHONY: bench
## bench          figures of the data path beside connect-ip-go and a bare loop, in pairs (root; PAIRS=7 SESSIONS=10000 ONLY=traffic|latency|http2|tenants|threads|scale)
bench: $(BENCH_BIN) build/peers/holdfast-connectip-server
	@test/bench/dp/run.sh $(BUILD)/test/bench build/peers build/bench/dataplane.txt $(PAIRS) $(or $(SESSIONS),10000) $(ONLY)
