// SPDX-License-Identifier: Apache-2.0
// Moves in which what has come is added up in the order of ranks, with this rank's own or without,
// and stored once. Scans: moves from each rank to those above it; reduce: to the root. A rank
// stores a pack after it has sent that: in place, no rank gets sums instead of its input.
#pragma once

#include "collectives/kernels/move.cuh"

namespace gdrx::gpu {

/// Either all ranks below this one have a part in its sum, or all ranks. What a rank sends to
/// itself is its own part. Where there is but that, it is copied.
template <class E, int kUnroll, int kPeers>
class Added {
 public:
  using Moving = Mover<kUnroll, kPeers>;
  using Packs = typename Moving::Packs;

  __device__ __forceinline__ explicit Added(const MoveCall& call)
      : call_(call),
        with_own_(call.sends[call.rank].bytes > 0),
        of_all_(call.rank == call.ranks - 1 || call.receives[call.ranks - 1].bytes > 0) {}

  __device__ __forceinline__ bool copies() const { return call_.rank == 0 && !of_all_; }
  __device__ __forceinline__ void prepare(std::uint32_t wanted, std::uint32_t tile) {
    if (!with_own_ || wanted == 0) return;
    const UserBuffer from(call_.input, call_.sends[call_.rank].bytes);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (has(wanted, i)) own_[i] = from.load(place(tile, i));
    }
  }
  __device__ __forceinline__ void store(const Packs& batch, std::uint32_t wanted,
                                        std::uint32_t tile) const {
    if (wanted == 0) return;
    const UserBuffer to(call_.output, call_.receives[0].bytes);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (has(wanted, i)) to.store(place(tile, i), sum(batch, i));
    }
  }

 private:
  /// All send the same packs.
  __device__ __forceinline__ static bool has(std::uint32_t wanted, int i) {
    return (wanted & Packs::bit(i, 0)) != 0;
  }
  __device__ __forceinline__ std::uint64_t place(std::uint32_t tile, int i) const {
    return Chunk(call_.receives[0], tile).first + Moving::at(i);
  }
  /// Of one operand a copy, as on the host: to load and round it would change what is no number.
  __device__ __forceinline__ Pack sum(const Packs& batch, int i) const {
    const int count = (of_all_ ? call_.ranks - 1 : call_.rank) + (with_own_ ? 1 : 0);
    if (count == 1) return batch.packs[i][0];
    const Reduction how{call_.type, call_.op, call_.finish_over};
    return reduce_packs<E, kPeers + 1>(how, count, [&](int rank) {
      if (rank == call_.rank) return own_[i];
      return batch.packs[i][(rank < call_.rank ? rank : rank - 1) % kPeers];
    });
  }

  const MoveCall& call_;
  bool with_own_;
  bool of_all_;
  Pack own_[kUnroll] = {};
};

template <class E, int kUnroll, int kPeers>
__global__ void __launch_bounds__(kMovers + 32, 2) add_runs(const __grid_constant__ MoveCall call) {
  run_moves<kUnroll, kPeers>(call, Added<E, kUnroll, kPeers>(call));
}

}  // namespace gdrx::gpu
