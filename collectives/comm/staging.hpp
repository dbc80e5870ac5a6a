// SPDX-License-Identifier: Apache-2.0
// GPU buffers where nothing below can reach them: a call runs on pinned host copies.
#pragma once

#include <optional>
#include <vector>

#include "collectives/comm/call.hpp"
#include "transport/memory/cuda_memory.hpp"

namespace gdrx {

/// One a communicator, for the call at the front of its queue. Keeps its memory for the next call.
class Staging {
 public:
  /// Replaces the call's GPU buffers by host memory that holds what they hold. Blocks for the copy.
  /// Nothing happens to host buffers.
  Result<void> begin(Call& call, int ranks, Rank self);
  /// Copies results to the GPU. Blocks for the copy.
  Result<void> end();
  /// Whether the last call was staged.
  bool used() const noexcept { return used_; }

 private:
  struct Copy {
    std::byte* device = nullptr;
    const std::byte* host = nullptr;
    std::size_t bytes = 0;
  };
  Result<std::byte*> room(std::size_t slot, std::size_t bytes, const void* device);
  Result<void> begin_parts(Call& call);

  std::vector<std::optional<cuda::PinnedBuffer>> pinned_;  // input, output; or one a part
  std::vector<Copy> results_;
  bool used_ = false;
};

}  // namespace gdrx
