# SPDX-License-Identifier: Apache-2.0
# The images without a container engine, and a real cluster: see README.md. Root.

SUITES += cluster-test
.PHONY: image image-again image-test cluster-test cluster-deps cluster-programs
cluster-deps:
	@hack/deps.sh --cluster
## image          the images of agent, plugin and foundation in build/image, with SBOM; fails above 40 MB (root)
image: cluster-deps
	@hack/image.sh
## image-again    builds the agent's image once more in another folder: every file has to be the same
image-again: image
	@hack/image.sh again
## image-test     the unit tests in the image's build stage
image-test: cluster-deps
	@hack/image.sh test
# kubelet, scheduler and controller manager, built once (test/apiserver/build.sh), while the images are.
cluster-programs:
	@test/apiserver/build.sh cluster >/dev/null
## cluster-test   Helm charts and images on a real cluster: install, traffic, update, drain, outage, upgrade, uninstall (root; 6 minutes)
cluster-test:
	@$(MAKE) -s --no-print-directory -j2 image cluster-programs binaries peers
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/cluster test/cluster/run.sh
