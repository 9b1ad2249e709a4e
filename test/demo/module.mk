# SPDX-License-Identifier: Apache-2.0

.PHONY: demo check-docs
## demo           the main job on real parts, as a story with a timeline (root; sets up what it needs)
demo:
	@hack/deps.sh
	@$(MAKE) --no-print-directory -j2 binaries peers
	@test/demo/demo.sh build/demo

## check-docs     runs every shell block of README and CONTRIBUTING, compares flags, layers, links, targets
check-docs: binaries peers
	@hack/run-tests.sh $(VARIANT)/check-docs hack/check-docs.sh
