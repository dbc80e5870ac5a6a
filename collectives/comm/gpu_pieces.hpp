// SPDX-License-Identifier: Apache-2.0
// The GPUs' part of an allReduce on several hosts: scatter and gather the pieces of a vector.
#pragma once

#include <array>
#include <memory>

#include "collectives/comm/hierarchy.hpp"
#include "collectives/gpu/choose.hpp"
#include "collectives/gpu/path.hpp"
#include "collectives/trace/span.hpp"

namespace gdrx {

/// GPUs run piece by piece in one order that does not depend on when the network is done: scatter
/// 0, 1, 2, gather 0, scatter 3, gather 1, ... Kernels of a host's ranks wait for each other, so
/// all ranks must launch them in the same order.
class GpuPieces {
 public:
  /// Pieces in flight.
  static constexpr std::uint64_t kAhead = 3;
  struct Setup {
    gpu::Path* path = nullptr;
    gpu::Host host;
    gpu::Work work;               // input, output, bytes, type and op
    gpu::Mark* before = nullptr;  // in the caller's stream: what the call has to wait for
    trace::Track* track = nullptr;
  };
  /// `most`: bytes of a part, at most.
  static Result<GpuPieces> create(Setup setup, std::uint64_t most);

  const Pieces& cut() const noexcept { return pieces_; }
  std::uint64_t count() const noexcept { return count_; }
  void* stream() const noexcept { return stream_; }
  /// This rank's part of the piece will lie at `to` when scattered() says so.
  Result<void> scatter(std::uint64_t number, std::byte* to);
  Result<bool> scattered(std::uint64_t number);
  /// All parts of the piece are summed, this rank's at `from`.
  Result<void> gather(std::uint64_t number, const std::byte* from);
  /// The last piece is where it belongs.
  Result<bool> gathered();

 private:
  GpuPieces(Setup setup, std::uint64_t most);
  void begin_span(std::string_view what, std::uint64_t number);

  Setup setup_;
  Pieces pieces_;
  std::uint64_t count_;
  void* stream_ = nullptr;
  std::array<std::unique_ptr<gpu::Mark>, kAhead> scattered_;
  std::unique_ptr<gpu::Mark> gathered_;
  std::uint64_t launched_ = 0;  // pieces whose scatter was
  std::uint64_t marked_ = 0;    // whose span is open
  trace::Span span_;            // of the oldest scatter that has not ended, or the last gather
};

}  // namespace gdrx
