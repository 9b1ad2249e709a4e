// SPDX-License-Identifier: Apache-2.0
module holdfast.test/peers/xnet-h2

go 1.26.0

require (
	golang.org/x/net v0.56.0
	golang.org/x/sys v0.47.0
)

require golang.org/x/text v0.40.0 // indirect
