// SPDX-License-Identifier: Apache-2.0
module holdfast.test/peers/apiproxy

go 1.26
