// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104). For a handful of small messages when a
// communicator is made: short, not fast.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace gdrx {

using Digest = std::array<std::byte, 32>;

Digest sha256(std::span<const std::byte> message);
Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);

}  // namespace gdrx
