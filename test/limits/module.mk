# SPDX-License-Identifier: Apache-2.0
# Limits of the wire: TABLE.md against the sources.

.PHONY: test-limits
SUITES += test-limits
## test-limits    each limit's option, default, metric and test, as test/limits/TABLE.md says, are in the sources (seconds)
test-limits:
	@hack/run-tests.sh limits test/limits/check_test.sh
