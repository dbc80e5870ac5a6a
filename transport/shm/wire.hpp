// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other of their memory. Nothing of it is trusted.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "gdrx/bootstrap.hpp"
#include "transport/memory/arena.hpp"

namespace gdrx::shm {

inline constexpr std::uint32_t kMagic = 0x676d7332;  // "gms2"

struct Address {
  std::uint32_t magic = kMagic;
  std::uint32_t ranks = 0;  // that the mailbox has room for
  ArenaTicket memory;
  std::uint64_t offset = 0;  // of the mailbox in it
};

struct RegionKey {
  std::uint32_t magic = kMagic;
  std::uint32_t region = 0;  // its number at its owner
  ArenaTicket memory;        // pid 0: memory that its process alone has
  std::uint64_t offset = 0;  // of the region in it
  std::uint64_t bytes = 0;
};

static_assert(std::is_trivially_copyable_v<Address> && sizeof(Address) == 40);
static_assert(std::is_trivially_copyable_v<RegionKey> && sizeof(RegionKey) == 48);

template <class T>
Blob blob_of(const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

}  // namespace gdrx::shm
