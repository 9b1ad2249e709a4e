# SPDX-License-Identifier: Apache-2.0
# The real API server for tests: see test/apiserver/README.md.
.PHONY: apiserver-binaries
## apiserver-binaries  finds or builds kube-apiserver, etcd and kubectl
apiserver-binaries:
	@test/apiserver/build.sh >/dev/null
