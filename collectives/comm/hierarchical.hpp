// SPDX-License-Identifier: Apache-2.0
// The network's part of an allReduce of GPU buffers on several hosts, through pinned memory: a
// host's GPUs reduce-scatter each piece of the vector into it, each rail reduces its part over the
// fabric, the GPUs gather the results.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "collectives/comm/gpu_flags.hpp"
#include "collectives/comm/gpu_pieces.hpp"
#include "collectives/exec/plan_execution.hpp"

namespace gdrx {

/// While the network reduces a piece, the GPUs scatter those after it and gather those before it.
/// Made when the stream has come to the call. step() allocates once a piece, to begin its
/// reduction.
class Hierarchical final : public exec::Execution {
 public:
  static constexpr std::uint64_t kMostPart = Pieces::kMostPart;
  static constexpr std::uint64_t kStagingBytes = kAhead * kMostPart;
  /// Starts the reduction of a part in place, over the rail.
  using Network = std::function<Result<std::unique_ptr<exec::PlanExecution>>(
      std::uint64_t piece, std::span<std::byte> part)>;
  /// Of pinned memory, where a piece's part lies.
  static constexpr std::uint64_t offset(std::uint64_t piece, const Pieces& pieces) noexcept {
    return piece % kAhead * pieces.part;
  }
  struct Setup {
    GpuFlags* flags = nullptr;
    Pieces pieces;
    trace::Track* track = nullptr;
    int local = 0;
    std::byte* staging = nullptr;  // pinned, kStagingBytes
    Network network;
  };

  explicit Hierarchical(Setup setup)
      : gpus_(*setup.flags, setup.pieces, setup.track), setup_(std::move(setup)) {}
  Result<exec::Step> step() override;
  void on_write_done(std::uint64_t cookie) noexcept override {
    if (network_) network_->on_write_done(cookie);
  }
  const exec::Counters& counters() const noexcept override { return counters_; }
  std::string waiting_for() const override;
  std::vector<Rank> awaited() const override {
    return network_ ? network_->awaited() : std::vector<Rank>();
  }

 private:
  exec::Step finish_piece();

  GpuWatch gpus_;
  Setup setup_;
  std::uint64_t piece_ = 0;  // the network's
  std::unique_ptr<exec::PlanExecution> network_;
  exec::Counters counters_;
};

}  // namespace gdrx
