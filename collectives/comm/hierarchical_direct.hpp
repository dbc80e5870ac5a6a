// SPDX-License-Identifier: Apache-2.0
// The network's part of an allReduce of GPU buffers on several hosts, NICs reading and writing GPU
// memory: a host's GPUs reduce-scatter each piece of the vector into the area of a Rail, which sums
// the parts of all hosts there, the GPUs gather the results.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "collectives/comm/gpu_flags.hpp"
#include "collectives/comm/gpu_pieces.hpp"
#include "collectives/exec/handshake.hpp"
#include "collectives/exec/rail.hpp"

namespace gdrx {

/// What the GPU is to add for a rail. `blocks`: multiprocessors that it may keep busy. None where
/// this rank has no share.
std::optional<gpu::HostSum> host_sum(const exec::RailAdder::Sum& sum, int blocks);

/// Lets the GPU begin sums that stand in its stream already, in the order of pieces.
class GpuAdder final : public exec::RailAdder {
 public:
  explicit GpuAdder(GpuFlags& flags) : flags_(flags) {}
  /// Before the first piece of a call.
  void begin_call() noexcept;
  Result<void> start(std::uint32_t slot, const Sum& sum) override;
  Result<bool> ended(std::uint32_t slot) override;

 private:
  static constexpr std::uint32_t kSlots = exec::Rail::kSlots;
  GpuFlags& flags_;
  std::uint64_t allowed_ = 0;                 // of the running call
  std::array<bool, kSlots> ready_{};          // and not allowed: an earlier piece is not ready
  std::array<std::uint64_t, kSlots> sums_{};  // what the GPU has to have added
};

/// Turn first + p of the rail is piece p. Made when the stream has come to the call; step()
/// allocates nothing.
class HierarchicalDirect final : public exec::Execution {
 public:
  /// So that a rail of any number of hosts has room in a GPU's arena (gpu::kRailBytes); several
  /// pieces keep the NICs busy.
  static constexpr std::uint64_t kMostPart = 896 << 10;
  static_assert(exec::Rail::kSlots == kAhead);
  struct Setup {
    GpuFlags* flags = nullptr;
    Pieces pieces;
    trace::Track* track = nullptr;
    int local = 0;
    exec::Rail* rail = nullptr;  // connected
    GpuAdder* adder = nullptr;   // the rail's
    int finish_over = 0;         // avg: ranks of the communicator
    exec::Word word;
    exec::Links* links = nullptr;
  };

  static Result<std::unique_ptr<HierarchicalDirect>> create(const Setup& setup);
  Result<exec::Step> step() override;
  void on_write_done(std::uint64_t cookie) noexcept override { rail_->on_write_done(cookie); }
  /// The call is one slice.
  const exec::Counters& counters() const noexcept override { return counters_; }
  /// Messages of this call to send, and as many to receive.
  std::uint64_t planned() const noexcept;
  std::string waiting_for() const override;

 private:
  HierarchicalDirect(exec::Handshake handshake, const Setup& setup);
  bool begin_pieces();
  bool end_pieces();
  void count() noexcept;

  GpuWatch gpus_;
  exec::Handshake handshake_;
  exec::Rail* rail_;
  exec::Rail::Call call_;
  int local_;
  std::uint64_t first_;      // turn of piece 0
  std::uint64_t begun_ = 0;  // pieces that the rail was given
  std::uint64_t ended_ = 0;  // and that it has summed
  bool agreed_ = false;      // all of the rail make this call
  exec::Counters before_;    // the rail's, of earlier calls
  exec::Counters counters_;
};

}  // namespace gdrx
