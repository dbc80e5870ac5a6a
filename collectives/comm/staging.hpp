// SPDX-License-Identifier: Apache-2.0
// GPU buffers where nothing below can reach them: a call runs on pinned host copies.
#pragma once

#include <memory>
#include <vector>

#include "collectives/comm/call.hpp"
#include "collectives/comm/staging_pool.hpp"

namespace gdrx {

/// Of a call. Its pinned memory is of a pool, which outlives it, until it goes.
class Staging {
 public:
  /// What a call's stream does before it must have happened when it begins: blocks for that, and
  /// then for pinned memory, and so not in the thread that drives, for which streams may be
  /// waiting. Null: no buffer of it is a GPU's. Collectives take turns with their memory, messages
  /// do not.
  static Result<std::unique_ptr<Staging>> prepare(const Call& call, int ranks, Rank self,
                                                  StagingPool& pool);
  /// Replaces the call's GPU buffers by host memory that holds what they hold. Blocks for the copy,
  /// which waits for no stream. Nothing happens to host buffers.
  Result<void> begin(Call& call);
  /// Copies results to the GPU. Blocks for the copy, likewise.
  Result<void> end();
  /// Whether it is the beginning of memory of begin()'s.
  bool has(const std::byte* memory) const noexcept;

 private:
  struct Copy {
    std::byte* device = nullptr;
    std::byte* host = nullptr;
    std::size_t bytes = 0;
  };
  /// A buffer of the call.
  struct Half {
    StagingPool::Lease memory;  // null: it is host memory
    std::vector<Copy> copies;
  };
  explicit Staging(StagingPool& pool) : pool_(pool) {}
  Result<void> prepare(Half& half, const Call& call, bool output, int ranks, Rank self);

  StagingPool& pool_;
  Half input_, output_;
};

}  // namespace gdrx
