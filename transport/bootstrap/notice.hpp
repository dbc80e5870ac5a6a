// SPDX-License-Identifier: Apache-2.0
// A notice on the wire.
#pragma once

#include <span>

#include "transport/bootstrap/control_mesh.hpp"

namespace gdrx {

/// Longest encoded notice, in bytes. encode_notice() cuts the text to fit.
inline constexpr std::uint32_t kMostNotice = 1024;

Blob encode_notice(const Notice& notice);
/// Errc::protocol for a wrong length, an unknown kind, or a rank outside 0..size-1.
Result<Notice> decode_notice(std::span<const std::byte> bytes, std::int32_t size);

}  // namespace gdrx
