// SPDX-License-Identifier: Apache-2.0
// allReduce of GPU buffers on several hosts: a host's GPUs reduce-scatter each piece of the vector
// into pinned memory, each rail reduces its part over the fabric, the GPUs gather the results.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "collectives/comm/gpu_pieces.hpp"
#include "collectives/exec/plan_execution.hpp"

namespace gdrx {

/// While the network reduces a piece, the GPUs scatter those after it and gather those before it.
/// step() allocates once a piece, to begin its reduction.
class Hierarchical final : public exec::Execution {
 public:
  static constexpr std::uint64_t kMostPart = Pieces::kMostPart;
  static constexpr std::uint64_t kStagingBytes = GpuPieces::kAhead * kMostPart;
  /// Starts the reduction of a part in place, over the rail.
  using Network = std::function<Result<std::unique_ptr<exec::PlanExecution>>(
      std::uint64_t piece, std::span<std::byte> part)>;
  struct Setup {
    GpuPieces::Setup gpus;
    int local = 0;
    std::byte* staging = nullptr;  // pinned, kStagingBytes, until the path has finished
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
  Hierarchical(GpuPieces gpus, Setup setup) : gpus_(std::move(gpus)), setup_(std::move(setup)) {}
  std::byte* part(std::uint64_t piece) const noexcept {
    return setup_.staging + piece % GpuPieces::kAhead * gpus_.cut().part;
  }
  Result<exec::Step> finish_piece();

  GpuPieces gpus_;
  Setup setup_;
  std::uint64_t piece_ = 0;  // the network's
  std::unique_ptr<exec::PlanExecution> network_;
  exec::Counters counters_;
};

}  // namespace gdrx
