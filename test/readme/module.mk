# SPDX-License-Identifier: Apache-2.0
# The README's commands on a fresh Debian 12.

.PHONY: readme-test
## readme-test    follows the README in a fresh Debian 12 root, as a newcomer (root; 25 to 40 minutes; README_GO_CACHE=1: about 5)
readme-test:
	@HOLDFAST_SUITE_TIMEOUT=7200 hack/run-tests.sh readme test/readme/run.sh
