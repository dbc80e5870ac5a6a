// SPDX-License-Identifier: Apache-2.0
// Which sets of slots are empty again: how a block that works through more tiles than there are
// sets tells the blocks that send to it.
#pragma once

#include "collectives/kernels/wait.cuh"

namespace gdrx::gpu {

/// How a block's warps tell each other, and a peer's block of the same number, whose slots are
/// empty again. A fence between emptying and telling must not hold up the warps that send: it is
/// made by a warp that does nothing else. Atomics, since the race detector takes loads and stores
/// for races, acquire and release or not.
class Emptied {
 public:
  __device__ __forceinline__ Emptied(std::uint32_t* by_warp, std::uint32_t warps)
      : by_warp_(by_warp), warps_(warps) {}

  /// By every warp that empties slots, all of its threads: it is done with so many tiles.
  __device__ __forceinline__ void set(std::uint32_t tiles) const {
    __syncwarp();
    if (threadIdx.x % 32 != 0) return;
    raise_in_block(by_warp_ + threadIdx.x / 32, tiles);
  }

  /// By the warp after them, all of its threads: how many of the `tiles` all are done with.
  __device__ __forceinline__ std::uint32_t least(std::uint32_t tiles) const {
    const std::uint32_t lane = threadIdx.x % 32;
    std::uint32_t mine = tiles;
    if (lane < warps_) mine = read_in_block(by_warp_ + lane);
    return __reduce_min_sync(~0U, mine);
  }

  /// By that warp, of two ranks, until all are done with all tiles. A thread that gave up waits for
  /// nothing any more, and gets there, too.
  __device__ __forceinline__ void tell(Room* room, std::uint32_t call, std::uint32_t tiles) const {
    for (std::uint32_t told = 0; told < tiles;) {
      const std::uint32_t now = least(tiles);
      if (now == told) continue;
      told = now;
      __syncwarp();
      if (threadIdx.x % 32 != 0) continue;
      fence_system();  // what the warps emptied, is empty before the peer's block sends again
      store_shared(room, std::uint64_t{call} << 32 | told);
    }
  }

 private:
  std::uint32_t* by_warp_;
  std::uint32_t warps_;
};

/// How many tiles of this call the peer's block has emptied.
__device__ __forceinline__ std::uint32_t emptied_by_peer(const Room* room, std::uint32_t call) {
  // acquire: pairs with the fence of tell(), so that what is sent comes behind the emptying
  const std::uint64_t word = load_acquired(room);
  return word >> 32 == call ? static_cast<std::uint32_t>(word) : 0;
}

}  // namespace gdrx::gpu
