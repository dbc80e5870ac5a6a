// SPDX-License-Identifier: Apache-2.0
// A warp's part of its block's memory, through which what goes in bulk comes and goes: see
// staged.cuh. One thread of the warp does it all.
#pragma once

#include "collectives/kernels/pack.cuh"
#include "collectives/kernels/pairs.hpp"
#include "collectives/kernels/staged.cuh"

namespace gdrx::gpu {

class Staging {
 public:
  /// By all threads of the warp. `bytes`: of its part.
  __device__ __forceinline__ void begin(std::uint32_t bytes) {
    const std::uint32_t warp = threadIdx.x / 32;
    memory_ = staged_memory() + warp * bytes;
    arrivals_ = block_memory<std::uint64_t, kWarpsOfStaged>() + warp;
    if (threadIdx.x % 32 == 0) begin_arrivals(arrivals_);
    __syncwarp();
  }

  /// So many bytes will be fetched; what was put into them last is on its way out.
  __device__ __forceinline__ void expect(std::uint32_t bytes) {
    await_read_of_copies_out();
    expect_bytes(arrivals_, bytes);
  }
  __device__ __forceinline__ void fetch(std::uint32_t at, const void* from, std::uint32_t bytes) {
    copy_in(memory_ + at, from, bytes, arrivals_);
  }
  /// Until all of it is here.
  __device__ __forceinline__ void await() {
    await_bytes(arrivals_, turn_);
    turn_ ^= 1;
  }
  __device__ __forceinline__ void put(void* to, std::uint32_t at, std::uint32_t bytes) const {
    copy_out(to, memory_ + at, bytes);
  }

 private:
  std::uint8_t* memory_;
  std::uint64_t* arrivals_;
  std::uint32_t turn_ = 0;
};

inline constexpr int kThreadPacks = 16;  // that a thread loads before it stores
inline constexpr std::uint32_t kWarpPacks = kThreadPacks * 32;

/// By all threads of a warp: packs `first` to `end` of a buffer into `slots`, or the other way.
template <bool kFills>
__device__ __forceinline__ void move_by_threads(Pack* slots, const UserBuffer& buffer,
                                                std::uint64_t first, std::uint64_t end) {
  slots += threadIdx.x % 32;
  for (; first < end; first += kWarpPacks, slots += kWarpPacks) {
    const std::uint64_t mine = first + threadIdx.x % 32;
    if (end - first >= kWarpPacks && buffer.is_plain(first + kWarpPacks - 1)) {
      Pack* const theirs = const_cast<Pack*>(buffer.place(mine));
      const Pack* const from = kFills ? theirs : slots;
      Pack* const to = kFills ? slots : theirs;
      Pack packs[kThreadPacks];
#pragma unroll
      for (int i = 0; i < kThreadPacks; ++i) packs[i] = from[i * 32];
#pragma unroll
      for (int i = 0; i < kThreadPacks; ++i) to[i * 32] = packs[i];
      continue;
    }
#pragma unroll 4
    for (int i = 0; i < kThreadPacks; ++i) {
      const std::uint64_t pack = mine + static_cast<std::uint64_t>(i) * 32;
      if (pack >= end) continue;
      if constexpr (kFills) {
        slots[i * 32] = buffer.load(pack);
      } else {
        buffer.store(pack, slots[i * 32]);
      }
    }
  }
}

}  // namespace gdrx::gpu
