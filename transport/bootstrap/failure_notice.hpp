// SPDX-License-Identifier: Apache-2.0
// A notice on the wire.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "transport/bootstrap/control_mesh.hpp"

namespace gdrx {

/// Longest encoded notice, in bytes.
inline constexpr std::uint32_t kMostNotice = 1024;

/// The text is cut to fit. It needs no memory.
class EncodedNotice {
 public:
  explicit EncodedNotice(const FailureNotice& notice) noexcept;
  std::span<const std::byte> bytes() const noexcept { return std::span(bytes_).first(size_); }

 private:
  std::array<std::byte, kMostNotice> bytes_;
  std::size_t size_;
};

inline Blob encode_notice(const FailureNotice& notice) {
  const EncodedNotice encoded(notice);
  return {encoded.bytes().begin(), encoded.bytes().end()};
}
/// Errc::protocol for a wrong length, an unknown kind, or a rank outside 0..size-1.
Result<FailureNotice> decode_notice(std::span<const std::byte> bytes, std::int32_t size);

}  // namespace gdrx
