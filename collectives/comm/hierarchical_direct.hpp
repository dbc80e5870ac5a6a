// SPDX-License-Identifier: Apache-2.0
// The network's part of an allReduce of GPU buffers on several hosts, NICs reading and writing GPU
// memory: a host's GPUs reduce-scatter each piece of the vector into the area of a Rail, which sums
// the parts of all hosts there, the GPUs gather the results.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/comm/gpu_flags.hpp"
#include "collectives/comm/gpu_pieces.hpp"
#include "collectives/exec/call_handshake.hpp"
#include "collectives/exec/rail.hpp"

namespace gdrx {

/// Where in an arena a rail is.
inline constexpr exec::RailLayout kRailLayout{896 << 10, 1 << 20};
static_assert(kRailLayout.bytes() <= gpu::kRailBytes);
static_assert(exec::Rail::kSlots == kAhead);

/// What the GPU is to add for a rail. `blocks`: multiprocessors that it may keep busy. None: the
/// sum has no bytes.
std::optional<gpu::HostSum> host_sum(const exec::RailAdder::Sum& sum, int blocks);
/// StreamOrder's, of this rank's sums.
std::vector<std::uint32_t> levels_of(const exec::RailPlan& plan);

/// Lets the GPU begin sums that stand in its stream already, in the stream's order.
class GpuAdder final : public exec::RailAdder {
 public:
  explicit GpuAdder(GpuFlags& flags) : flags_(flags) {}
  /// Before the first piece of a call with so many sums a piece. `has_bytes`: whether one of them
  /// is in the stream.
  void begin_call(std::size_t sums, StreamOrder order,
                  std::function<bool(std::uint64_t piece, std::uint32_t sum)> has_bytes);
  Result<void> start(std::uint32_t slot, std::uint32_t which, const Sum& sum) override;
  Result<bool> ended(std::uint32_t slot, std::uint32_t which) override;

 private:
  struct State {
    bool ready = false;       // and not allowed: an earlier one is not ready
    std::uint64_t place = 0;  // how many the GPU has to have added
  };
  void find_next();

  GpuFlags& flags_;
  std::optional<StreamOrder> order_;
  std::function<bool(std::uint64_t, std::uint32_t)> has_bytes_;
  std::optional<StreamOrder::Item> next_;  // the stream's next sum that was not allowed
  std::uint64_t allowed_ = 0;              // of the running call
  std::array<std::vector<State>, exec::Rail::kSlots> states_;
};

/// Turn first + p of the rail is piece p. Made when the stream has come to the call; step()
/// allocates nothing.
class HierarchicalDirect final : public exec::Execution {
 public:
  struct Setup {
    GpuFlags* flags = nullptr;
    Pieces pieces;
    trace::Track* track = nullptr;
    int local = 0;
    exec::Rail* rail = nullptr;            // connected
    GpuAdder* adder = nullptr;             // the rail's
    const exec::RailPlan* plan = nullptr;  // that of signature.algorithm
    int finish_over = 0;                   // avg: ranks of the communicator
    exec::CallSignature signature;
    exec::Links* links = nullptr;
  };

  static Result<std::unique_ptr<HierarchicalDirect>> create(const Setup& setup);
  Result<exec::Step> step() override;
  void on_write_done(std::uint64_t cookie) noexcept override { rail_->on_write_done(cookie); }
  /// The call is one slice.
  const exec::Counters& counters() const noexcept override { return counters_; }
  /// Messages of this call.
  plan::Traffic planned() const noexcept;
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
