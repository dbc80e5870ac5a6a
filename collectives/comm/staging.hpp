// SPDX-License-Identifier: Apache-2.0
// GPU buffers where nothing below can reach them: a call runs on pinned host copies.
#pragma once

#include <vector>

#include "collectives/comm/call.hpp"
#include "transport/memory/cuda_memory.hpp"
#include "transport/memory/registration_cache.hpp"

namespace gdrx {

/// One a communicator, for the call at the front of its queue. Keeps its memory for the next call.
class Staging {
 public:
  /// What its stream does before a call must have happened when it begins. Blocks, and so not in
  /// the thread that drives: streams may be waiting for that.
  static Result<void> wait_for_stream(const Call& call);
  /// Replaces the call's GPU buffers by host memory that holds what they hold. Blocks for the copy,
  /// which waits for no stream. Nothing happens to host buffers.
  /// The copies are registered in `cache`, which outlives this object.
  Result<void> begin(Call& call, int ranks, Rank self, RegistrationCache& cache);
  /// Copies results to the GPU. Blocks for the copy, likewise.
  Result<void> end();
  /// Whether the last call was staged.
  bool used() const noexcept { return used_; }
  /// Bytes of pinned memory: less than twice what the largest calls needed, rounded up to powers of
  /// two.
  std::size_t held() const noexcept;
  /// Pinned memory of the context that `device` belongs to, registered in `cache`; the same as
  /// begin() uses, so for an object that does not begin().
  Result<std::byte*> memory(std::size_t bytes, const void* device, RegistrationCache& cache);

 private:
  struct Copy {
    std::byte* device = nullptr;
    const std::byte* host = nullptr;
    std::size_t bytes = 0;
  };
  struct Pinned {
    cuda::PinnedBuffer memory;
    RegistrationRef registration{};
    bool taken = false;  // by the last call
  };
  void reset(RegistrationCache& cache);
  Result<std::byte*> room(std::size_t bytes, const void* device);

  RegistrationCache* cache_ = nullptr;
  std::vector<Pinned> pinned_;
  std::vector<Copy> results_;
  bool used_ = false;
};

}  // namespace gdrx
