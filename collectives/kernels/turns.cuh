// SPDX-License-Identifier: Apache-2.0
// A call's blocks by fewer blocks of the GPU than the call has, each of which carries a run of them
// in turns. Peers need not know: what goes over the slots is what the call's own blocks would send.
//
// Why it goes on where a GPU has room for but one block. A block of a call waits only for those of
// its number on other ranks. Of all that have not ended on some rank take the least number, k. On
// each rank the blocks before k have ended. Runs are in the order of numbers, and a GPU begins
// blocks in that order: so every block of the GPU that carries less than k has gone, the one that
// carries k has room, and it is at k. So k goes on everywhere. With every n-th in place of a run
// that fails: two ranks with unequal n may both have room for a block that waits for the other's
// next.
#pragma once

#include "collectives/kernels/add.cuh"
#include "collectives/kernels/blocks.cuh"
#include "collectives/kernels/one_shot_tiled.cuh"
#include "collectives/kernels/one_shot_turns.cuh"
#include "collectives/kernels/ring.cuh"
#include "collectives/kernels/tree.cuh"
#include "collectives/kernels/two_shot.cuh"

namespace gdrx::gpu {

/// Of `launched` blocks of the GPU, the first of the call's `blocks` that this one carries.
constexpr std::uint32_t first_turn(std::uint32_t of, std::uint32_t launched, std::uint32_t blocks) {
  return static_cast<std::uint32_t>(std::uint64_t{of} * blocks / launched);
}

/// `blocks`: of the call.
template <class Body>
__global__ void __launch_bounds__(Body::kMost, Body::kBeside)
    in_turns(const __grid_constant__ typename Body::Given call, std::uint32_t blocks) {
  const std::uint32_t self = blockIdx.x;
  const std::uint32_t launched = gridDim.x;
  const std::uint32_t end = first_turn(self + 1, launched, blocks);
#pragma unroll 1
  for (std::uint32_t turn = first_turn(self, launched, blocks); turn < end; ++turn) {
    begin_turn(turn, blocks);
    Body::run(call);
  }
}

/// What a turn does: threads of a block at most, blocks that a multiprocessor has room for, and of
/// what it is told. Each is of any type: of those that have kernels of their own the bits are the
/// same. kPeers is at least that of the kernel whose place it takes.
template <class AnyCall, int kThreadsOfBlock, int kBlocksBeside>
struct Turn {
  using Given = AnyCall;
  static constexpr int kMost = kThreadsOfBlock;
  static constexpr int kBeside = kBlocksBeside;
};

template <int kPeers>
struct OneShotTurn : Turn<Call, kThreads, kPeers <= 7 ? 2 : 1> {
  static __device__ __forceinline__ void run(const Call& call) { run_one_shot<kPeers>(call); }
};

template <int kUnroll>
struct OneShotTiledTurn : Turn<Call, kThreads / 2 + 32, 2> {
  static __device__ __forceinline__ void run(const Call& call) {
    run_one_shot_tiled<Any, kUnroll>(call);
  }
};

template <int kUnroll, int kPeers>
struct TwoShotTurn : Turn<Call, kThreads, is_light(kUnroll, kPeers) ? 2 : 1> {
  static __device__ __forceinline__ void run(const Call& call) {
    run_two_shot<Any, kUnroll, kPeers>(call);
  }
};

template <int kUnroll, int kPeers>
struct TwoShotTiledTurn : Turn<Call, kThreads / 2, 2> {
  static __device__ __forceinline__ void run(const Call& call) {
    run_two_shot_tiled<Any, kUnroll, kPeers>(call);
  }
};

template <int kUnroll>
struct RingTurn : Turn<Call, kThreads / 2, 2> {
  static __device__ __forceinline__ void run(const Call& call) { run_ring<Any, kUnroll>(call); }
};

template <int kUnroll>
struct TreeTurn : Turn<Call, kThreads / 2, 2> {
  static __device__ __forceinline__ void run(const Call& call) { run_tree<Any, kUnroll>(call); }
};

struct DirectTurn : Turn<DirectCall, kThreads / 2, 2> {
  static __device__ __forceinline__ void run(const DirectCall& call) {
    run_direct<kMaxRanks - 1>(call);
  }
};

/// Of scatter_blocks() and gather_blocks().
struct BlocksCall : Call {
  bool whole = false;
};

template <int kUnroll, int kPeers>
struct ScatterTurn : Turn<BlocksCall, kThreads / 2, 2> {
  static __device__ __forceinline__ void run(const BlocksCall& call) {
    WaitGuard guard(call);
    scatter_blocks<Any, kUnroll, kPeers>(call, call.output, call.whole, guard, [] {});
  }
};

template <int kUnroll, int kPeers>
struct GatherTurn : Turn<BlocksCall, kThreads / 2, 2> {
  static __device__ __forceinline__ void run(const BlocksCall& call) {
    WaitGuard guard(call);
    gather_blocks<kUnroll, kPeers>(call, call.input, call.whole, guard);
  }
};

template <int kUnroll, int kPeers>
struct MoveTurn : Turn<MoveCall, kMovers + 32, 2> {
  static __device__ __forceinline__ void run(const MoveCall& call) {
    run_moves<kUnroll, kPeers>(call, AsItComes<kUnroll, kPeers>{call});
  }
};

template <int kUnroll, int kPeers>
struct AddTurn : Turn<MoveCall, kMovers + 32, 2> {
  static __device__ __forceinline__ void run(const MoveCall& call) {
    run_moves<kUnroll, kPeers>(call, Added<Any, kUnroll, kPeers>(call));
  }
};

}  // namespace gdrx::gpu
