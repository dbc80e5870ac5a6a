// SPDX-License-Identifier: Apache-2.0
// What the ucx fabric puts in front of its active messages, and what a region's key is.
#pragma once

#include <cstdint>
#include <type_traits>

namespace gdrx::ucx {

inline constexpr unsigned kMessageId = 0x6764;  // "gd"
inline constexpr std::uint32_t kMagic = 0x31756467;

struct MessageHead {
  std::uint32_t magic = kMagic;
  std::uint32_t region = 0;  // of the receiver
  std::uint64_t nonce = 0;   // of that region: a stale or guessed key is refused
  std::uint64_t offset = 0;  // where the data lands
  std::uint32_t immediate = 0;
  std::int32_t source = 0;  // sender's rank
  std::uint32_t has_immediate = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(MessageHead) == 40 && std::is_trivially_copyable_v<MessageHead>);

/// Followed by the packed rkey.
struct KeyHead {
  std::uint32_t magic = kMagic;
  std::uint32_t region = 0;
  std::uint64_t nonce = 0;
  std::uint64_t base = 0;
  std::uint64_t length = 0;
  std::uint64_t rkey_length = 0;
  std::int32_t segment = -1;  // of shared memory; negative: of none that is known
  std::uint32_t reserved = 0;
};
static_assert(sizeof(KeyHead) == 48 && std::is_trivially_copyable_v<KeyHead>);

}  // namespace gdrx::ucx
