// SPDX-License-Identifier: Apache-2.0
module holdfast.test/peers/connectip

go 1.26.0

require (
	github.com/quic-go/connect-ip-go v0.7.0
	github.com/quic-go/quic-go v0.65.0
	github.com/yosida95/uritemplate/v3 v3.0.2
	golang.org/x/net v0.56.0
	golang.org/x/sys v0.47.0
)

require (
	github.com/dunglas/httpsfv v1.1.1 // indirect
	github.com/quic-go/qpack v0.6.0 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/text v0.40.0 // indirect
)
