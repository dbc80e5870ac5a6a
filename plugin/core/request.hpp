// SPDX-License-Identifier: Apache-2.0
// NCCL's void* request: which communicator, which slot, which life of the slot. Not a pointer, so
// that a stale one is seen and nothing freed is touched.
#pragma once

#include <cstdint>
#include <optional>

namespace gdrx::net {

struct RequestId {
  std::uint16_t comm = 0;
  std::uint16_t slot = 0;  // < 2^12
  std::uint32_t life = 0;
  friend bool operator==(const RequestId&, const RequestId&) = default;
};

/// Neither null nor NCCL's sentinel 1.
inline void* encode(RequestId id) noexcept {
  const std::uint64_t word = std::uint64_t{id.life} << 32 | std::uint64_t{id.comm} << 16 |
                             std::uint64_t{id.slot & 0xfffU} << 4 | 0xaU;
  return reinterpret_cast<void*>(word);  // NOLINT(performance-no-int-to-ptr)
}

inline std::optional<RequestId> decode(const void* request) noexcept {
  const auto word = reinterpret_cast<std::uintptr_t>(request);
  if ((word & 0xf) != 0xa) return std::nullopt;
  return RequestId{static_cast<std::uint16_t>(word >> 16),
                   static_cast<std::uint16_t>(word >> 4 & 0xfff),
                   static_cast<std::uint32_t>(word >> 32)};
}

}  // namespace gdrx::net
