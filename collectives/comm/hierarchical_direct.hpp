// SPDX-License-Identifier: Apache-2.0
// allReduce of GPU buffers on several hosts, NICs reading and writing GPU memory: a host's GPUs
// reduce-scatter each piece of the vector into the area of a Rail, which sums the parts of all
// hosts there, the GPUs gather the results.
#pragma once

#include <array>
#include <memory>

#include "collectives/comm/gpu_pieces.hpp"
#include "collectives/exec/handshake.hpp"
#include "collectives/exec/rail.hpp"

namespace gdrx {

/// Adds on a path's own stream, between its scatters and gathers. A sum waits for no other rank,
/// and a gather for sums of its own piece alone: those stand behind gathers of earlier pieces only.
/// So the kernels of all ranks come to an end, whatever the order in which pieces arrive.
class GpuAdder final : public exec::RailAdder {
 public:
  /// `blocks`: multiprocessors that it may keep busy.
  GpuAdder(gpu::Path& path, int blocks) : path_(path), blocks_(blocks) {}
  Result<void> start(std::uint32_t slot, const Sum& sum) override;
  Result<bool> ended(std::uint32_t slot) override { return marks_[slot]->reached(); }

 private:
  gpu::Path& path_;
  int blocks_;
  std::array<std::unique_ptr<gpu::Mark>, exec::Rail::kSlots> marks_;
};

/// Turn first + p of the rail is piece p. step() allocates a mark a kernel.
class HierarchicalDirect final : public exec::Execution {
 public:
  /// Small, for the memory that a rail needs beside the buffers; several pieces keep the NICs busy.
  static constexpr std::uint64_t kMostPart = 1 << 20;
  static_assert(exec::Rail::kSlots == GpuPieces::kAhead);
  struct Setup {
    GpuPieces::Setup gpus;
    int local = 0;
    exec::Rail* rail = nullptr;  // connected
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
  HierarchicalDirect(GpuPieces gpus, exec::Handshake handshake, const Setup& setup);
  Result<bool> begin_pieces();
  Result<bool> end_pieces();
  void count() noexcept;

  GpuPieces gpus_;
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
