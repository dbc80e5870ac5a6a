// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other of their memory. Nothing of it is trusted.
#pragma once

#include <cstdint>
#include <type_traits>

#include "transport/memory/arena.hpp"

namespace gdrx::shm {

inline constexpr std::uint32_t kMagic = 0x676d7331;  // "gms1"

struct Address {
  std::uint32_t magic = kMagic;
  std::uint32_t ranks = 0;  // that the mailbox has room for
  ArenaTicket mailbox;
};

struct RegionKey {
  std::uint32_t magic = kMagic;
  std::uint32_t region = 0;  // its number at its owner
  ArenaTicket memory;        // pid 0: memory that its process alone has
};

static_assert(std::is_trivially_copyable_v<Address> && sizeof(Address) == 32);
static_assert(std::is_trivially_copyable_v<RegionKey> && sizeof(RegionKey) == 32);

}  // namespace gdrx::shm
