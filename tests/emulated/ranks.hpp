// SPDX-License-Identifier: Apache-2.0
// Ranks whose GPUs are emulated: arenas, calls and streams.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/kernels/call.hpp"
#include "collectives/kernels/shape.hpp"
#include "gdrx/types.hpp"

namespace gdrx::emulated {

class Ranks {
 public:
  /// Dealt out over `gpus` GPUs in turn, as positions_of() then has them. Their kernels run on one
  /// each, as far as there are.
  explicit Ranks(int ranks, int gpus = 2, double timeout_s = 120);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int size() const { return static_cast<int>(arenas_.size()); }
  /// Ranks by position in the ring and the trees.
  const std::vector<std::int32_t>& positions() const { return positions_; }
  /// The next kernel of rank r, in its stream. `bytes`: of the vector; `block` of a rank's part.
  void launch(int r, const gpu::Shape& shape, DataType type, ReduceOp op, const void* input,
              void* output, std::uint64_t bytes, std::uint64_t block = 0);
  /// Of Kernel::direct, on all ranks; rank r says that its buffers are at places[r].
  void launch_direct(const gpu::Shape& shape, DataType type, ReduceOp op,
                     const std::vector<std::vector<std::uint32_t>>& inputs,
                     std::vector<std::vector<std::uint32_t>>& outputs,
                     const std::vector<std::uint64_t>& places);
  /// Until all that was launched has ended.
  void finish() const;

  /// Of the kernels that rank r launches from now on.
  void set_timeout(int r, double seconds) { timeouts_[static_cast<std::size_t>(r)] = seconds; }
  /// Of the GPU, that carry the kernels that rank r launches from now on; 0: as many as each has.
  void set_launched(int r, int blocks) { launched_[static_cast<std::size_t>(r)] = blocks; }
  /// Its peers see it in the first call, of this kind, which it does not run.
  void pretend_to_enter(int r, const gpu::Shape& shape, DataType type, ReduceOp op,
                        std::uint64_t bytes);

  const gpu::Report& report(int r) const { return *reports_[static_cast<std::size_t>(r)]; }
  /// Slots that are not empty, of all ranks.
  std::uint64_t full_slots() const;

 private:
  gpu::DirectCall call_of(int r, ReduceOp op, const void* input, void* output,
                          std::uint64_t bytes) const;
  void enqueue(int r, const gpu::Shape& shape, DataType type, const gpu::DirectCall& call);

  struct Free {
    void operator()(std::uint8_t* memory) const;
  };
  std::vector<std::unique_ptr<std::uint8_t, Free>> arenas_;
  std::vector<std::unique_ptr<gpu::Report>> reports_;
  std::vector<cudaStream_t> streams_;
  std::vector<std::int32_t> positions_;
  std::vector<double> timeouts_;
  std::vector<int> launched_;
};

}  // namespace gdrx::emulated
