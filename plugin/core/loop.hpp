// SPDX-License-Identifier: Apache-2.0
// A device context's connection to itself, which NCCL makes to probe and to register: copies, no
// NIC.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "gdrx/transport.hpp"

namespace gdrx::net {

class LoopEndpoint;

class Loop {
 public:
  /// A region whose key may come back through the greeting.
  void remember(const Blob& key, const MemoryRegion& region);
  void forget(const MemoryRegion& region) noexcept;
  /// `self` is the device context's rank. The endpoint must not outlive the loop.
  std::unique_ptr<Endpoint> endpoint(Rank self);

  bool empty() const noexcept { return ready_.empty(); }
  std::size_t take(std::span<Completion> completions);

 private:
  friend class LoopEndpoint;
  struct Known {
    Blob key;
    const MemoryRegion* region = nullptr;
  };
  std::vector<Known> known_;
  std::deque<Completion> ready_;
  LoopEndpoint* endpoint_ = nullptr;  // the device context's, gone with it
};

}  // namespace gdrx::net
