# SPDX-License-Identifier: Apache-2.0
# Signatures of images: see hack/sign.sh.

SUITES += test-sign
.PHONY: test-sign
## test-sign      hack/sign.sh: an image signed and verified; other images, names, keys and damaged files refused (seconds)
test-sign:
	@hack/run-tests.sh sign test/sign/sign.sh
