# SPDX-License-Identifier: Apache-2.0
# Mutants: guards removed one by one by name in a build of its own; see test/mutants/README.md.

MUTANTS_CORE := build/mutants
.PHONY: mutants-core mutants-core-build
mutants-core-build:
	@$(MAKE) -s --no-print-directory BUILD=$(MUTANTS_CORE) SAN= OPT=-O1 CFLAGS=-DHOLDFAST_MUTANTS \
	  $(MUTANTS_CORE)/test/lease $(MUTANTS_CORE)/test/authority $(MUTANTS_CORE)/test/session >/dev/null
## mutants-core   removes each guard of the ownership core in turn, and each part of the gate's deadline; fails unless a test notices every one
mutants-core: mutants-core-build mutants-gate
	@hack/run-tests.sh $(VARIANT)/mutants-core test/mutants/core.sh $(MUTANTS_CORE)
SUITES += mutants-core

.PHONY: mutants-lease
MUTANTS_LEASE_UNITS := lease contract audit journal masque cli
## mutants-lease  the lease record and its trail, rows B1 to B11 of lease.sh: what breaks each, and the test that notices; root for the schema's
mutants-lease: mutants-core-build binaries $(MUTANTS_LEASE_UNITS:%=$(BUILD)/test/%)
	@hack/run-tests.sh $(VARIANT)/mutants-lease test/mutants/lease.sh $(MUTANTS_CORE) $(BUILD)
