// SPDX-License-Identifier: Apache-2.0
// A call as the API's arguments give it, checked.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gdrx/types.hpp"

namespace gdrx {

/// What the caller asked for. Buffers stay his. A send_recv is one of both, with the peer as root:
/// a send has an input, a receive an output.
struct Call {
  Collective collective{};
  DataType type{};
  ReduceOp op{};
  Rank root{};
  bool sends = false;  // send_recv
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::uint64_t count = 0;  // as the API's function defines it
  void* stream = nullptr;   // CUDA's; nullptr: the legacy default stream
};

}  // namespace gdrx
