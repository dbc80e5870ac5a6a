// SPDX-License-Identifier: Apache-2.0
// How a message is laid over warps. Pure.
#pragma once

#include <cstdint>

#include "collectives/gpu/choose.hpp"
#include "collectives/kernels/pairs.hpp"

namespace gdrx::gpu {

struct MessageShape {
  std::uint32_t warps = 1;  // on each side
  std::uint64_t packs = 0;  // of one, at most
};

inline MessageShape shape_of_message(const Host& host, std::uint64_t bytes) noexcept {
  Message message;
  message.bytes = bytes;
  message.width = width_of_message(bytes, channels_of_pair(host.ranks, host.blocks));
  return {channels_of_message(message), message.width};
}

}  // namespace gdrx::gpu
