# SPDX-License-Identifier: Apache-2.0
# Peers that know nothing of Holdfast. Go modules are built by go, which does its own caching.

.PHONY: peers
## peers          the CONNECT-IP clients that the lab uses
peers: build/peers/holdfast-connector build/peers/holdfast-apiproxy build/peers/holdfast-webhook
build/peers/holdfast-connector: $(wildcard test/peers/connectip/*.go) test/peers/connectip/go.mod test/peers/connectip/go.sum
	@mkdir -p $(@D)
	cd test/peers/connectip && CGO_ENABLED=0 go build -p 2 -trimpath -buildvcs=false -o ../../../$@ .
build/peers/holdfast-apiproxy: $(wildcard test/peers/apiproxy/*.go) test/peers/apiproxy/go.mod
	@mkdir -p $(@D)
	cd test/peers/apiproxy && CGO_ENABLED=0 go build -p 2 -trimpath -buildvcs=false -o ../../../$@ .
build/peers/holdfast-webhook: $(wildcard test/peers/webhook/*.go) test/peers/webhook/go.mod
	@mkdir -p $(@D)
	cd test/peers/webhook && CGO_ENABLED=0 go build -p 2 -trimpath -buildvcs=false -o ../../../$@ .
