# SPDX-License-Identifier: Apache-2.0
# The real API server for tests: see test/apiserver/README.md.
.PHONY: apiserver-binaries
apiserver-binaries: ## find or build kube-apiserver, etcd and kubectl
	@test/apiserver/build.sh >/dev/null
