// SPDX-License-Identifier: Apache-2.0
// What the last call was and what it cost.
#pragma once

#include <atomic>
#include <optional>

#include "collectives/comm/operation.hpp"

namespace gdrx {

/// The host's is written by who drives, the GPU's with the lock of launches: neither waits for the
/// other.
class LastCall {
 public:
  // By who drives.
  const OperationInfo& host() const noexcept { return host_; }
  void was_host() noexcept { was_gpu_.store(false, std::memory_order_relaxed); }
  void was_host(const OperationInfo& info) noexcept {
    host_ = info;
    was_host();
  }

  /// Any thread, of a collective that all ranks call: whether it went to the GPU.
  void was_posted(bool on_gpu) noexcept { posted_on_gpu_ = on_gpu; }
  bool posted_on_gpu() const noexcept { return posted_on_gpu_; }

  // With the lock of launches.
  void was_gpu(const OperationInfo& info) noexcept {
    gpu_ = info;
    was_gpu_.store(true, std::memory_order_relaxed);
  }
  /// Empty: the host's was later.
  std::optional<OperationInfo> gpu() const noexcept {
    if (!was_gpu_.load(std::memory_order_relaxed)) return std::nullopt;
    return gpu_;
  }

 private:
  OperationInfo host_, gpu_;
  std::atomic<bool> was_gpu_{false};
  std::atomic<bool> posted_on_gpu_{false};
};

}  // namespace gdrx
