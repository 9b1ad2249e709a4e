# SPDX-License-Identifier: Apache-2.0
# Holdfast's build. `make help` lists the targets.
#
#   make [SAN=address,undefined|thread] [CC=gcc|clang]
#
# The layers stand here once, from low to high; a package may include only what its DEPS_ line names, and only layers
# that stand before it. pkg/README.md shows the same table and a check compares the two.

PKGS := base contract lease audit authority fence session store loop http kube kubestore journal masque tun agent cli
PURE := base contract lease audit authority fence session store

DEPS_base      :=
DEPS_contract  := base
DEPS_lease     := base contract
DEPS_audit     := base
DEPS_authority := base contract lease
DEPS_fence     := base
DEPS_session   := base contract lease authority
DEPS_store     := base contract
DEPS_loop      := base
DEPS_http      := base loop
DEPS_kube      := base loop http
DEPS_kubestore := base contract store loop http kube
DEPS_journal   := base audit loop
DEPS_masque    := base fence loop
DEPS_tun       := base fence loop
DEPS_agent     := base contract lease audit authority fence session store loop http kube kubestore journal masque tun
DEPS_cli       := base contract lease audit loop http kube journal

# External libraries of each package, as pkg-config modules.
QUIC_TLS := $(shell pkg-config --exists libngtcp2_crypto_ossl && echo ossl || echo gnutls)
EXT_base      := libcrypto
EXT_contract  := libcjson
EXT_audit     :=
EXT_loop      := libuv
EXT_http      := libcurl libssl libcrypto
EXT_kube      := libcurl libcjson yaml-0.1 libcrypto libssl
EXT_kubestore := libcjson
EXT_masque    := libnghttp2 libngtcp2 libngtcp2_crypto_$(QUIC_TLS) libnghttp3 libcrypto libssl $(if $(filter gnutls,$(QUIC_TLS)),gnutls)
EXT_agent     := yaml-0.1 libcjson libuv libcrypto libmicrohttpd
EXT_cli       := libcjson yaml-0.1

CC      := $(if $(filter default,$(origin CC)),gcc,$(CC))
SAN     :=
OPT     ?= -O2
comma   := ,
VARIANT := $(notdir $(CC))$(if $(SAN),-$(subst $(comma),-,$(SAN)))
BUILD   := build/$(VARIANT)
VERSION ?= 0.1.0

WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings \
        -Wvla -Wundef -Wformat=2 -Wswitch-enum -Wcast-qual -Wnull-dereference -Wno-unused-parameter
CFLAGS_ALL := -std=c11 -D_GNU_SOURCE -g $(OPT) -fno-omit-frame-pointer -fstack-protector-strong $(if $(SAN),,-D_FORTIFY_SOURCE=2) \
        $(WARN) -DHOLDFAST_VERSION='"$(VERSION)"' $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all) $(CFLAGS)
# Criterion and ThreadSanitizer want the same addresses: a stand-in with its interface takes its place there.
CRITERION := $(if $(findstring thread,$(SAN)),,criterion)
CFLAGS_ALL += $(if $(findstring thread,$(SAN)),-Ihack/tsan)
# A build that says what time it is wants the same bytes from any folder (hack/image.sh).
PREFIX_MAP := $(if $(SOURCE_DATE_EPOCH),-ffile-prefix-map=$(CURDIR)=.)
CFLAGS_ALL += $(PREFIX_MAP)
LDFLAGS_ALL := $(if $(SAN),-fsanitize=$(SAN)) -pthread $(LDFLAGS)

# ---- layering, checked while this file is read -----------------------------------------------------------------
seen :=
define check_layer
$(foreach d,$(DEPS_$(1)),$(if $(filter $(d),$(seen)),,$(error pkg/$(1): '$(d)' is not a layer below it)))
$(eval seen += $(1))
endef
$(foreach p,$(PKGS),$(call check_layer,$(p)))
$(foreach p,$(notdir $(wildcard pkg/*)),$(if $(filter README.md $(PKGS),$(p)),,$(error pkg/$(p) is not listed in PKGS)))

# transitive closure of DEPS, high to low, for linking
closure = $(if $(1),$(1) $(call closure,$(sort $(foreach p,$(1),$(DEPS_$(p))))))
reverse = $(if $(1),$(call reverse,$(wordlist 2,999,$(1))) $(firstword $(1)))
linkset = $(call reverse,$(foreach p,$(PKGS),$(if $(filter $(p),$(call closure,$(1))),$(p))))
linkext = $(sort $(foreach p,$(call linkset,$(1)),$(EXT_$(p))))
pc_cflags = $(if $(1),$(shell pkg-config --cflags $(1)))
pc_libs   = $(if $(1),$(shell pkg-config --libs $(1)))

SKIP_masque := $(if $(filter gnutls,$(QUIC_TLS)),pkg/masque/qtls_ossl.c,pkg/masque/qtls_gnutls.c)
# what the unit tests of a package put in the place of a function below it, to make it fail
TLD_session := -Wl,--wrap=base_sha256

.PHONY: all help
all: binaries
help:
	@grep -hE '^## ' $(MAKEFILE_LIST) | sed 's/^## /  /'

# ---- packages --------------------------------------------------------------------------------------------------
define package
SRC_$(1)   := $$(filter-out %_test.c $$(SKIP_$(1)),$$(wildcard pkg/$(1)/*.c))
TEST_$(1)  := $$(wildcard pkg/$(1)/*_test.c)
OBJ_$(1)   := $$(SRC_$(1):%.c=$(BUILD)/%.o)
TOBJ_$(1)  := $$(TEST_$(1):%.c=$(BUILD)/%.o)
LIB_$(1)   := $(BUILD)/lib/libhf_$(1).a
CF_$(1)    := $$(call pc_cflags,$$(EXT_$(1)))

build/inc/$(1)/.stamp: Makefile
	@rm -rf build/inc/$(1) && mkdir -p build/inc/$(1)
	@for d in $(1) $(DEPS_$(1)); do ln -s ../../../pkg/$$$$d build/inc/$(1)/$$$$d; done; touch $$@
$(BUILD)/pkg/$(1)/%.o: pkg/$(1)/%.c build/inc/$(1)/.stamp
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS_ALL) -Ibuild/inc/$(1) $$(CF_$(1)) -MMD -MP -c -o $$@ $$<
$$(LIB_$(1)): $$(OBJ_$(1))
	@mkdir -p $$(@D); rm -f $$@
	ar rcsD $$@ $$^
$(BUILD)/test/$(1): $$(TOBJ_$(1)) $$(foreach l,$$(call linkset,$(1)),$(BUILD)/lib/libhf_$$(l).a)
	@mkdir -p $$(@D)
	$$(CC) $$(LDFLAGS_ALL) $$(TLD_$(1)) -o $$@ $$(TOBJ_$(1)) $$(foreach l,$$(call linkset,$(1)),$(BUILD)/lib/libhf_$$(l).a) $$(call pc_libs,$$(call linkext,$(1)) $(CRITERION))
.PHONY: pkg/$(1) test-$(1)
pkg/$(1): $$(LIB_$(1))
test-$(1): $$(if $$(TEST_$(1)),$(BUILD)/test/$(1))
	$$(if $$(TEST_$(1)),@hack/run-tests.sh $(VARIANT)/$(1) $(BUILD)/test/$(1) -j2 --timeout 300,@echo "pkg/$(1): no unit tests")
-include $$(OBJ_$(1):.o=.d) $$(TOBJ_$(1):.o=.d)
endef
$(foreach p,$(PKGS),$(eval $(call package,$(p))))

LIBS_ALL := $(foreach p,$(PKGS),$(LIB_$(p)))

# ---- programs --------------------------------------------------------------------------------------------------
# program NAME,SOURCES,TOP PACKAGES,EXTRA PKG-CONFIG MODULES: a binary on top of packages
define program
$(BUILD)/bin/$(1): $(2:%.c=$(BUILD)/%.o) $(foreach l,$(call linkset,$(3)),$(BUILD)/lib/libhf_$(l).a)
	@mkdir -p $$(@D)
	$$(CC) $$(LDFLAGS_ALL) -o $$@ $(2:%.c=$(BUILD)/%.o) $(foreach l,$(call linkset,$(3)),$(BUILD)/lib/libhf_$(l).a) $$(call pc_libs,$$(sort $$(call linkext,$(3)) $(4)))
$(2:%.c=$(BUILD)/%.o): $(BUILD)/%.o: %.c $(foreach p,$(3),build/inc/$(p)/.stamp)
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS_ALL) $(foreach p,$(3),-Ibuild/inc/$(p)) $$(call pc_cflags,$$(sort $$(call linkext,$(3)) $(4))) $$(CFLAGS_$(1)) -MMD -MP -c -o $$@ $$<
-include $(2:%.c=$(BUILD)/%.d)
endef

BINARIES :=
ifneq ($(wildcard cmd/holdfast-agent/main.c),)
$(eval $(call program,holdfast-agent,$(wildcard cmd/holdfast-agent/*.c),agent))
BINARIES += $(BUILD)/bin/holdfast-agent
endif
ifneq ($(wildcard cmd/kubectl-holdfast/main.c),)
$(eval $(call program,kubectl-holdfast,$(wildcard cmd/kubectl-holdfast/*.c),cli))
BINARIES += $(BUILD)/bin/kubectl-holdfast
endif

SUITES :=
-include $(wildcard test/*/module.mk)

.PHONY: binaries unit check fmt clean
## binaries       the agent and its companions, in build/bin (default)
binaries: $(BINARIES)
	@mkdir -p build && ln -sfn $(VARIANT)/bin build/bin

## unit           unit tests of every package (also SAN=address,undefined, SAN=thread, CC=clang)
unit: $(foreach p,$(PKGS),test-$(p))
.PHONY: unit-programs
unit-programs: $(foreach p,$(PKGS),$(if $(wildcard pkg/$(p)/*_test.c),$(BUILD)/test/$(p)))

## check          layering, pure archives, includes, banned functions, names, licence lines, layout
check: $(LIBS_ALL)
	@hack/run-tests.sh $(VARIANT)/check hack/check-layers.sh $(BUILD) "$(PKGS)" "$(PURE)"
	@hack/run-tests.sh check-fmt hack/check-fmt.sh

## fmt            formats all C files
fmt:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

## clean          removes build/
clean:
	rm -rf build

# What check-layers and check-docs read.
.PHONY: print-layers
print-layers:
	@$(foreach p,$(PKGS),echo '$(p):$(if $(filter $(p),$(PURE)),P,D):$(strip $(DEPS_$(p)))';)

# ---- the whole test suite --------------------------------------------------------------------------------------
# A suite is a target that calls hack/run-tests.sh; it goes on after a failure, and the last line is the sum. A target that
# fails counts as one failure more, so that a suite which does not even build is seen.
SUITES := check unit sanitize $(SUITES)
.PHONY: deps test sanitize
## deps           installs what building and testing needs (Debian 12, root); says what it does
deps:
	@hack/deps.sh

## sanitize       unit tests under ASan and UBSan, and the clang build
sanitize:
	@$(MAKE) -s --no-print-directory -k unit SAN=address,undefined
	@$(MAKE) -s --no-print-directory binaries CC=clang

## test           everything; the last line is "N passed, N failed"
test: deps
	@rm -rf build/results
	@$(MAKE) -s --no-print-directory -j2 binaries peers
	@for s in $(SUITES); do echo "== $$s"; $(MAKE) -s --no-print-directory -k $$s || \
	    { mkdir -p build/results/make; echo "0 1 0" >"build/results/make/$$s"; }; done
	@hack/sum-results.sh
