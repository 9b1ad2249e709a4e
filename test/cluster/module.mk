# SPDX-License-Identifier: Apache-2.0
# The images without a container engine, and a real cluster: see README.md. Root; `hack/deps.sh --cluster` once.

.PHONY: image image-again image-test cluster-test
## image          the images of agent, plugin and foundation in build/image, with SBOM; fails above 40 MB (root)
image:
	@hack/image.sh
## image-again    builds the agent's image once more in another folder: every file has to be the same
image-again: image
	@hack/image.sh again
## image-test     the unit tests in the image's build stage
image-test:
	@hack/image.sh test
## cluster-test   Helm charts and images on a real cluster: install, traffic, update, drain, outage, upgrade, uninstall (root)
cluster-test: image binaries peers
	@test/apiserver/build.sh cluster >/dev/null
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin hack/run-tests.sh $(VARIANT)/cluster test/cluster/run.sh
