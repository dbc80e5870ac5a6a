// SPDX-License-Identifier: Apache-2.0
// allReduce of GPU buffers on several hosts: a host's GPUs reduce-scatter each piece of the vector
// into pinned memory, each rail reduces its part over the fabric, the GPUs gather the results.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>

#include "collectives/comm/hierarchy.hpp"
#include "collectives/exec/plan_execution.hpp"
#include "collectives/gpu/choose.hpp"
#include "collectives/gpu/path.hpp"

namespace gdrx {

/// While the network reduces a piece, the GPUs scatter those after it and gather those before it.
/// GPUs run piece by piece in one order that does not depend on when the network is done: scatter
/// 0, 1, 2, gather 0, scatter 3, gather 1, ... Kernels of a host's ranks wait for each other, so
/// all ranks must launch them in the same order. step() allocates once a piece, to begin its
/// reduction.
class Hierarchical final : public exec::Execution {
 public:
  /// Pieces in flight, each with a part in `staging`.
  static constexpr std::uint64_t kSlots = 3;
  static constexpr std::uint64_t kStagingBytes = kSlots * Pieces::kMostPart;
  /// Starts the reduction of a part in place, over the rail.
  using Network = std::function<Result<std::unique_ptr<exec::PlanExecution>>(
      std::uint64_t piece, std::span<std::byte> part)>;
  struct Setup {
    gpu::Path* path = nullptr;
    gpu::Host host;
    int local = 0;
    gpu::Work work;                // input, output, bytes, type and op
    std::byte* staging = nullptr;  // pinned, kStagingBytes, until the path has finished
    gpu::Mark* before = nullptr;   // in the caller's stream: what the call has to wait for
    Network network;
  };

  static Result<std::unique_ptr<Hierarchical>> create(Setup setup);
  Result<exec::Step> step() override;
  void on_write_done(std::uint64_t cookie) noexcept override {
    if (network_) network_->on_write_done(cookie);
  }
  const exec::Counters& counters() const noexcept override { return counters_; }
  std::string waiting_for() const override;

 private:
  explicit Hierarchical(Setup setup);
  std::byte* part(std::uint64_t piece) const noexcept {
    return setup_.staging + piece % kSlots * pieces_.part;
  }
  Result<void> scatter(std::uint64_t piece);
  Result<void> gather(std::uint64_t piece);
  Result<exec::Step> finish_piece();

  Setup setup_;
  Pieces pieces_;
  void* stream_ = nullptr;
  std::array<std::unique_ptr<gpu::Mark>, kSlots> scattered_;
  std::unique_ptr<gpu::Mark> gathered_;  // the last piece
  std::uint64_t piece_ = 0;              // the network's
  std::unique_ptr<exec::PlanExecution> network_;
  exec::Counters counters_;
};

}  // namespace gdrx
