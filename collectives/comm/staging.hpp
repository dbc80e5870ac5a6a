// SPDX-License-Identifier: Apache-2.0
// GPU buffers where nothing below can reach them: a call runs on pinned host copies.
#pragma once

#include <vector>

#include "collectives/comm/call.hpp"
#include "collectives/comm/staging_pool.hpp"

namespace gdrx {

/// Of one call at a time.
class Staging {
 public:
  Staging() = default;
  ~Staging() { give_back(); }
  Staging(Staging&&) = default;
  Staging& operator=(Staging&&) = delete;
  /// Which of the call's buffers are a GPU's. And what its stream does before a call must have
  /// happened when it begins: blocks for that, and so not in the thread that drives, for which
  /// streams may be waiting.
  static Result<void> look(Call& call);
  /// After look(): replaces the call's GPU buffers by host memory that holds what they hold. Blocks
  /// for the copy, which waits for no stream. Nothing happens to host buffers. The host memory is
  /// of `pool`, which outlives this object, until end() or the next begin().
  Result<void> begin(Call& call, int ranks, Rank self, StagingPool& pool);
  /// Copies results to the GPU. Blocks for the copy, likewise.
  Result<void> end();
  /// Whether it is the beginning of memory of begin()'s.
  bool has(const std::byte* memory) const noexcept;
  /// Whether the last call was staged.
  bool used() const noexcept { return used_; }

 private:
  struct Copy {
    std::byte* device = nullptr;
    const std::byte* host = nullptr;
    std::size_t bytes = 0;
  };
  Result<std::byte*> take(StagingPool& pool, std::size_t bytes, const void* device);
  void give_back() noexcept;

  std::vector<StagingPool::Block*> blocks_;
  std::vector<Copy> results_;
  bool used_ = false;
};

}  // namespace gdrx
