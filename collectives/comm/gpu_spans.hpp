// SPDX-License-Identifier: Apache-2.0
// When calls ran on the GPU, for the trace file.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "collectives/gpu/path.hpp"
#include "collectives/trace/span.hpp"
#include "gdrx/log.hpp"

namespace gdrx {

/// Any thread; begin() and end() about one launch at a time. The path and the track outlive it.
class GpuSpans {
 public:
  /// Calls that were launched and have not been seen to end; one more goes without a span.
  static constexpr std::uint32_t kInFlight = 256;

  /// Null where no file is written, or the GPU gives no times; then the log says why.
  static std::unique_ptr<GpuSpans> create(gpu::Streams& streams, trace::Track* track,
                                          const Log& log);
  GpuSpans(std::unique_ptr<gpu::Timer> timer, trace::Track& track)
      : track_(track), timer_(std::move(timer)) {}

  /// The number of the next call, from 0. Those count, too, that get no span.
  std::uint32_t next_call() noexcept {
    return calls_.fetch_add(1, std::memory_order_relaxed);  // a number is all that is taken
  }
  /// In front of a launch. False: it gets no span, and end() is not called.
  bool begin(void* stream) noexcept;
  /// Behind a launch that worked. `kernel`: a literal.
  void end(void* stream, std::string_view kernel, std::uint64_t bytes, std::uint32_t call) noexcept;
  /// Takes over what has ended, unless another thread is at it.
  void look() noexcept;
  /// Before the file is written: what had ended by then, and what had not as open. max(): by now,
  /// whatever the two clocks are apart.
  void show(Instant by) noexcept;

 private:
  struct Flying {
    trace::Event event;
    Instant launched{};
    std::optional<std::uint64_t> number;  // in the file already, as open
  };
  void harvest(Instant by = Instant::max()) noexcept;
  void write(Flying& flying, Instant begin, Duration length) noexcept;
  Instant earliest(const Flying& flying) const noexcept {
    return std::max(flying.launched, last_end_);
  }

  trace::Track& track_;
  std::unique_ptr<gpu::Timer> timer_;
  std::atomic<std::uint32_t> calls_{0};
  std::mutex mutex_;  // of all that follows, and of the timer
  std::array<Flying, kInFlight> flying_;
  std::uint32_t oldest_ = 0;
  std::uint32_t count_ = 0;
  Instant launched_{};  // between begin() and end()
  Instant last_end_{};
};

}  // namespace gdrx
