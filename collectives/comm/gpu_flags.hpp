// SPDX-License-Identifier: Apache-2.0
// The driver's side of what a GPU and its network tell each other: see kernels/flags.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "collectives/comm/hierarchy.hpp"
#include "collectives/gpu/path.hpp"
#include "collectives/trace/span.hpp"

namespace gdrx {

/// One a communicator; used by the thread that drives it.
class GpuFlags {
 public:
  explicit GpuFlags(gpu::Flags& flags) : flags_(flags) {}

  /// The stream has come to a call that was not taken yet. The last one that was has ended.
  bool begun() const noexcept { return count(gpu::Signal::begun) > 0; }
  gpu::CallRecord take() noexcept {
    ++before_[static_cast<std::size_t>(gpu::Signal::begun)];
    return flags_.record;
  }
  /// How often in the running call.
  std::uint64_t count(gpu::Signal what) const noexcept {
    const auto at = static_cast<std::size_t>(what);
    // acquire: pairs with the fence in front of the GPU's store, so that what it wrote is seen, and
    // what it read is written over after that
    return std::atomic_ref(flags_.signals[at]).load(std::memory_order_acquire) - before_[at];
  }
  /// What was written before it is there for the GPU.
  void allow(gpu::WaitFlag what) noexcept {
    const auto at = static_cast<std::size_t>(what);
    std::atomic_ref allowed(flags_.wait_flags[at]);
    // relaxed: nobody else writes it. release: pairs with the GPU's ld.acquire.sys
    allowed.store(allowed.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    ++allowed_[at];
  }
  /// The running call has gathered. The next one may be telling already: by what was allowed it is
  /// known how much of it all was the running one's.
  void end() noexcept {
    const auto [adds, pieces] = allowed_;
    before_[static_cast<std::size_t>(gpu::Signal::scattered)] += pieces;
    before_[static_cast<std::size_t>(gpu::Signal::added)] += adds;
    ++before_[static_cast<std::size_t>(gpu::Signal::gathered)];
    allowed_ = {};
  }

 private:
  gpu::Flags& flags_;
  std::array<std::uint64_t, gpu::kSignals> before_{};     // told by calls that have ended
  std::array<std::uint64_t, gpu::kWaitFlags> allowed_{};  // in the running one
};

/// The pieces of the running call as they pass through the GPUs of a host, and the spans of that.
class GpuWatch {
 public:
  GpuWatch(GpuFlags& flags, const Pieces& pieces, trace::Track* track);
  const Pieces& cut() const noexcept { return pieces_; }
  std::uint64_t count() const noexcept { return count_; }
  /// This rank's part of the piece lies where the network takes it.
  bool scattered(std::uint64_t number);
  /// All parts of the next piece in order are summed, this rank's where the GPU takes it.
  void allow_gather();
  /// The last piece is where it belongs: the call is over.
  bool gathered();

 private:
  void begin_span(std::string_view what, std::uint64_t number);

  GpuFlags& flags_;
  Pieces pieces_;
  std::uint64_t count_;
  trace::Track* track_;
  std::uint64_t scattered_ = 0;  // pieces that were seen to be
  std::uint64_t allowed_ = 0;
  trace::Span span_;  // of the first scatter that has not ended, or of the last gather
};

}  // namespace gdrx
