# SPDX-License-Identifier: Apache-2.0
# Branch coverage of the packages that decide: see coverage.sh.

COVERAGE := build/coverage
.PHONY: coverage
## coverage       branch coverage of pkg/session, pkg/lease and pkg/authority; fails below 98 % (needs gcovr)
coverage:
	@$(MAKE) -s --no-print-directory BUILD=$(COVERAGE) SAN= CC=gcc OPT=-O0 CFLAGS=--coverage LDFLAGS=--coverage \
	  $(COVERAGE)/test/lease $(COVERAGE)/test/authority $(COVERAGE)/test/session $(COVERAGE)/test/sim/sim
	@test/coverage/coverage.sh $(COVERAGE)
