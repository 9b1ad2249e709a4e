// SPDX-License-Identifier: Apache-2.0
module holdfast.test/peers/webhook

go 1.26
