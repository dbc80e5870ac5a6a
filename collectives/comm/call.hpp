// SPDX-License-Identifier: Apache-2.0
// A call as the API's arguments give it, checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gdrx/types.hpp"

namespace gdrx {

/// One send or receive of a group.
struct Part {
  bool send = true;
  Rank peer{};
  std::byte* buffer = nullptr;  // read only if send
  std::uint64_t count = 0;
  DataType type{};
};

/// What the caller asked for. Buffers stay his.
struct Call {
  Collective collective{};
  DataType type{};
  ReduceOp op{};
  Rank root{};
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::uint64_t count = 0;  // as the API's function defines it
  std::vector<Part> parts;  // send_recv
  void* stream = nullptr;   // CUDA's; nullptr: the legacy default stream
};

}  // namespace gdrx
