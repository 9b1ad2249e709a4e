# SPDX-License-Identifier: Apache-2.0
# The reference foundation: see test/foundation/README.md.

FND := test/foundation
FND_CORE   := $(addprefix $(FND)/,core.c row.c claim.c verdict.c gate.c status.c finalizer.c instance.c attachment.c device.c service.c regress.c)
FND_KERNEL := $(addprefix $(FND)/,kernel.c gatemap.c netlink.c nft.c)
FND_DRIVER := $(addprefix $(FND)/,main.c options.c lock.c watchdog.c driver.c driver_store.c driver_log.c authority.c identity.c)
FND_SRC    := $(FND_CORE) $(FND_KERNEL) $(FND_DRIVER)
FND_MULTI  := $(shell gcc -print-multiarch 2>/dev/null)

# The eBPF program, compiled for the bpf target and embedded as a skeleton.
build/gen/foundation/gate.bpf.o: $(FND)/gate.bpf.c $(FND)/gate_abi.h
	@mkdir -p $(@D)
	clang -O2 -g -Wall -Werror -target bpf $(PREFIX_MAP) -I/usr/include/$(FND_MULTI) -c -o $@ $<
build/gen/foundation/gate.skel.h: build/gen/foundation/gate.bpf.o
	bpftool gen skeleton $< name gate_bpf > $@.tmp && mv $@.tmp $@

CFLAGS_holdfast-foundation := -Ibuild/gen/foundation
$(eval $(call program,holdfast-foundation,$(FND_SRC),kubestore,libbpf libcjson))
$(BUILD)/$(FND)/gatemap.o: build/gen/foundation/gate.skel.h
BINARIES += $(BUILD)/bin/holdfast-foundation

# Tests: the core by events and effects alone; the kernel's side as root in a network namespace of its own.
FND_TEST := $(wildcard $(FND)/*_test.c) $(FND)/rig.c
FND_TOBJ := $(FND_TEST:%.c=$(BUILD)/%.o)
$(FND_TOBJ): $(BUILD)/%.o: %.c build/inc/kubestore/.stamp
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ibuild/inc/kubestore $(call pc_cflags,criterion libcjson) -MMD -MP -c -o $@ $<
-include $(FND_TOBJ:.o=.d)
FND_LIBS := $(foreach l,loop contract base,$(BUILD)/lib/libhf_$(l).a)
FND_UNIT := $(filter-out %/kernel_test.o,$(FND_TOBJ))
$(BUILD)/test/foundation-core: $(FND_UNIT) $(FND_CORE:%.c=$(BUILD)/%.o) $(BUILD)/$(FND)/options.o $(BUILD)/$(FND)/identity.o \
    $(foreach l,$(call linkset,kubestore),$(BUILD)/lib/libhf_$(l).a)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(call pc_libs,$(sort $(call linkext,kubestore) criterion libcjson))
$(BUILD)/test/foundation-kernel: $(BUILD)/$(FND)/kernel_test.o $(FND_KERNEL:%.c=$(BUILD)/%.o) $(BUILD)/$(FND)/lock.o $(FND_LIBS)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(call pc_libs,criterion libbpf libcjson libcrypto libuv)

SUITES += test-foundation
.PHONY: test-foundation test-foundation-core test-foundation-kernel test-foundation-driver
## test-foundation  the reference foundation: its core by events, its kernel side as root in a namespace
test-foundation: test-foundation-core test-foundation-kernel test-foundation-driver
test-foundation-core: $(BUILD)/test/foundation-core
	@hack/run-tests.sh $(VARIANT)/foundation-core $< -j2
test-foundation-kernel: $(BUILD)/test/foundation-kernel
	@hack/run-tests.sh $(VARIANT)/foundation-kernel $(FND)/kernel_test.sh $<
test-foundation-driver: $(BUILD)/bin/holdfast-foundation
	@hack/run-tests.sh $(VARIANT)/foundation-driver $(FND)/driver_test.sh $<
.PHONY: mutants-foundation
## mutants-foundation  removes each rule of the foundation's core once; fails unless a test notices (3 minutes)
mutants-foundation: $(BUILD)/test/foundation-core
	@hack/run-tests.sh $(VARIANT)/mutants-foundation $(FND)/mutants.sh $(BUILD)
# Each part of the gate's deadline, and what each is anchored at.
GATE_MUTANTS := deadline-renewal deadline-service deadline-proof deadline-proof-of-claims deadline-proof-of-services deadline-smaller-lease \
  deadline-extend-by-event deadline-shorten deadline-in-the-proof renewal-ahead renewal-other-boot valid-until-clamp valid-until-once proof-id
.PHONY: mutants-gate
mutants-gate: $(BUILD)/test/foundation-core
	@hack/run-tests.sh $(VARIANT)/mutants-gate $(FND)/mutants.sh $(BUILD) $(GATE_MUTANTS)
