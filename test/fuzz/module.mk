# SPDX-License-Identifier: Apache-2.0
# Fuzzers (clang's libFuzzer, ASan and UBSan): see README.md.
#
# A new one: test/fuzz/fuzz_NAME.c, its name in FUZZERS, FUZZ_PKG_NAME := the packages that it includes (with theirs),
# seeds in test/fuzz/corpus/NAME/.

FUZZERS := webhook binding trail identity config capsule headers packet demux vnet
FUZZ_PKG_webhook  := authority
FUZZ_PKG_binding  := contract
FUZZ_PKG_trail    := audit
FUZZ_PKG_identity := authority
FUZZ_PKG_config   := agent
FUZZ_PKG_capsule  := masque
FUZZ_PKG_headers  := masque
FUZZ_PKG_packet   := masque
FUZZ_PKG_demux    := masque
FUZZ_PKG_vnet     := tun

# They are built by a make of their own, with another compiler, so that nothing else has to know of it.
FUZZ := build/fuzz
FUZZ_SECONDS ?= 600
FUZZ_QUICK := 5
# What a stranger's bytes reach runs for longer in `make test`.
FUZZ_WIRE := capsule headers packet demux vnet
FUZZ_WIRE_SECONDS := 60
MINUTES ?= 30
FUZZ_MAKE = $(MAKE) -s --no-print-directory BUILD=$(FUZZ) CC=clang SAN=address,undefined OPT=-O1 \
    CFLAGS='-fsanitize=fuzzer-no-link $(CFLAGS)'

# fuzzer NAME
define fuzzer
FUZZ_OBJ_$(1) := $$(BUILD)/test/fuzz/fuzz_$(1).o
$$(FUZZ_OBJ_$(1)): test/fuzz/fuzz_$(1).c test/fuzz/fuzz.h $$(foreach p,$$(FUZZ_PKG_$(1)),build/inc/$$(p)/.stamp)
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS_ALL) $$(foreach p,$$(FUZZ_PKG_$(1)),-Ibuild/inc/$$(p)) $$(call pc_cflags,$$(call linkext,$$(FUZZ_PKG_$(1)))) -MMD -MP -c -o $$@ $$<
$$(BUILD)/bin/fuzz_$(1): $$(FUZZ_OBJ_$(1)) $$(foreach l,$$(call linkset,$$(FUZZ_PKG_$(1))),$$(BUILD)/lib/libhf_$$(l).a)
	@mkdir -p $$(@D)
	$$(CC) $$(LDFLAGS_ALL) -fsanitize=fuzzer -o $$@ $$^ $$(call pc_libs,$$(call linkext,$$(FUZZ_PKG_$(1))))
-include $$(FUZZ_OBJ_$(1):.o=.d)
.PHONY: fuzz-$(1) fuzz-keep-$(1)
fuzz-$(1):
	+@$$(FUZZ_MAKE) $$(FUZZ)/bin/fuzz_$(1)
	@test/fuzz/run.sh run $$(FUZZ) $$(FUZZ_SECONDS) $(1)
fuzz-keep-$(1):
	+@$$(FUZZ_MAKE) $$(FUZZ)/bin/fuzz_$(1)
	@test/fuzz/run.sh keep $$(FUZZ) $(1)
endef
$(foreach f,$(FUZZERS),$(eval $(call fuzzer,$(f))))
$(foreach f,$(patsubst test/fuzz/fuzz_%.c,%,$(wildcard test/fuzz/fuzz_*.c)),$(if $(filter $(f),$(FUZZERS)),,$(error test/fuzz/fuzz_$(f).c is not listed in FUZZERS)))

SUITES += fuzz-quick
.PHONY: fuzz fuzz-long fuzz-quick fuzz-build
fuzz-build:
	+@$(FUZZ_MAKE) $(FUZZERS:%=$(FUZZ)/bin/fuzz_%)
## fuzz           every fuzzer for FUZZ_SECONDS (600) each under ASan and UBSan; fuzz-NAME runs one, fuzz-keep-NAME keeps what it found
fuzz: fuzz-build
	@HOLDFAST_SUITE_TIMEOUT=$$((($(FUZZ_SECONDS) + 60) * $(words $(FUZZERS)))) hack/run-tests.sh fuzz-all test/fuzz/run.sh run $(FUZZ) $(FUZZ_SECONDS) $(FUZZERS)
## fuzz-long      every fuzzer for MINUTES=30 each, two at a time, with CPU time that nobody else wants (SCHED_IDLE)
fuzz-long: fuzz-build
	@FUZZ_IDLE=1 FUZZ_JOBS=2 HOLDFAST_SUITE_TIMEOUT=$$((($(MINUTES) * 60 + 600) * $(words $(FUZZERS)))) \
	  hack/run-tests.sh fuzz-long test/fuzz/run.sh run $(FUZZ) $$(($(MINUTES) * 60)) $(FUZZERS)
## fuzz-quick     every corpus replayed; then a minute of fuzzing for each parser of the wire, two at a time, and a few seconds for the others
fuzz-quick: fuzz-build
	@FUZZ_JOBS=2 hack/run-tests.sh fuzz-wire test/fuzz/run.sh run $(FUZZ) $(FUZZ_WIRE_SECONDS) $(FUZZ_WIRE)
	@hack/run-tests.sh fuzz test/fuzz/run.sh run $(FUZZ) $(FUZZ_QUICK) $(filter-out $(FUZZ_WIRE),$(FUZZERS))
