# SPDX-License-Identifier: Apache-2.0
# Peers that know nothing of Holdfast. Go modules are built by go, which does its own caching.

.PHONY: peers
## peers          the CONNECT-IP clients that the lab uses
peers: build/peers/holdfast-connector build/peers/holdfast-apiproxy build/peers/holdfast-webhook build/peers/holdfast-fleet
CAPSULE := $(wildcard test/peers/connectip/capsule/*.go)
build/peers/holdfast-connector: $(wildcard test/peers/connectip/*.go) $(CAPSULE) test/peers/connectip/go.mod test/peers/connectip/go.sum
	@mkdir -p $(@D)
	cd test/peers/connectip && CGO_ENABLED=0 go build -p 2 -trimpath -buildvcs=false -o ../../../$@ .
build/peers/holdfast-apiproxy: $(wildcard test/peers/apiproxy/*.go) test/peers/apiproxy/go.mod
	@mkdir -p $(@D)
	cd test/peers/apiproxy && CGO_ENABLED=0 go build -p 2 -trimpath -buildvcs=false -o ../../../$@ .
build/peers/holdfast-webhook: $(wildcard test/peers/webhook/*.go) test/peers/webhook/go.mod
	@mkdir -p $(@D)
	cd test/peers/webhook && CGO_ENABLED=0 go build -p 2 -trimpath -buildvcs=false -o ../../../$@ .
build/peers/holdfast-fleet: $(wildcard test/peers/connectip/fleet/*.go) $(CAPSULE) test/peers/connectip/go.mod test/peers/connectip/go.sum
	@mkdir -p $(@D)
	cd test/peers/connectip && CGO_ENABLED=0 go build -p 2 -trimpath -buildvcs=false -o ../../../$@ ./fleet

# The other clients of `make interop`: Go, Rust (cargo) and Python (a virtual environment outside the tree).
PEERS_VENV := $(or $(HOLDFAST_PEERS_VENV),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/holdfast/peers-venv)
INTEROP_PEERS := build/peers/holdfast-quicgo build/peers/holdfast-rust-h2 build/peers/holdfast-xnet-h2
.PHONY: interop interop-peers peers-venv
build/peers/holdfast-quicgo: $(wildcard test/peers/quicgo/*.go) test/peers/quicgo/go.mod test/peers/quicgo/go.sum
	@mkdir -p $(@D)
	cd test/peers/quicgo && CGO_ENABLED=0 go build -p 2 -trimpath -buildvcs=false -o ../../../$@ .
build/peers/holdfast-xnet-h2: $(wildcard test/peers/xnet-h2/*.go test/peers/xnet-h2/go.*)
	@mkdir -p $(@D)
	cd test/peers/xnet-h2 && CGO_ENABLED=0 go build -p 2 -trimpath -buildvcs=false -o ../../../$@ .
build/peers/holdfast-rust-h2: $(wildcard test/peers/rust-h2/src/*.rs) test/peers/rust-h2/Cargo.toml test/peers/rust-h2/Cargo.lock
	@mkdir -p $(@D)
	cd test/peers/rust-h2 && CARGO_TARGET_DIR=../../../build/cargo cargo build -q --locked
	cp build/cargo/debug/holdfast-rust-h2 $@
peers-venv: $(PEERS_VENV)/.holdfast
$(PEERS_VENV)/.holdfast: test/peers/python/requirements.txt
	python3 -m venv $(PEERS_VENV)
	$(PEERS_VENV)/bin/pip install -q -r $<
	touch $@
interop-peers: peers $(INTEROP_PEERS) peers-venv
## interop        clients of other stacks against an agent in the lab, with real traffic: prints the matrix (root, Go, cargo, Python)
interop: binaries interop-peers
	@HOLDFAST_BIN=$(CURDIR)/$(BUILD)/bin HOLDFAST_PEERS_VENV=$(PEERS_VENV) hack/run-tests.sh $(VARIANT)/interop test/peers/interop.sh
