# SPDX-License-Identifier: Apache-2.0

.PHONY: demo test-demo demo-sanitized check-docs check-docs-quick
SUITES += test-demo demo-sanitized check-docs-quick
## demo           the main job on real parts, as a story with a timeline (root; sets up what it needs)
demo:
	@[ "$$(id -u)" = 0 ] || { echo "demo: error: needs root, for network namespaces (try: sudo make demo)" >&2; exit 1; }
	@hack/deps.sh
	@$(MAKE) --no-print-directory -j2 binaries peers
	@test/demo/demo.sh build/demo

# The same as a suite of `make test`, with the variant that is being tested.
test-demo: binaries peers
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin HOLDFAST_BOUNDS=$(if $(SAN),report) hack/run-tests.sh $(VARIANT)/demo test/demo/demo.sh build/demo

## demo-sanitized the story under ASan and UBSan (leaks at exit too) and under TSan: forwarding with revocations, kills, drain
demo-sanitized:
	@$(MAKE) -s --no-print-directory -k -j2 test-demo SAN=address,undefined
	@$(MAKE) -s --no-print-directory -k -j2 test-demo SAN=thread

## check-docs     runs every shell block of README and CONTRIBUTING, compares flags, layers, links, targets
check-docs: binaries peers
	@HOLDFAST_SUITE_TIMEOUT=5400 hack/run-tests.sh $(VARIANT)/check-docs hack/check-docs.sh
# What `make test` runs: without the blocks that are long (whole demo, whole test suite, which would be itself).
check-docs-quick: binaries peers
	@hack/run-tests.sh $(VARIANT)/check-docs hack/check-docs.sh --quick
