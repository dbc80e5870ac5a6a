// SPDX-License-Identifier: Apache-2.0
// What the kernels need of the machine that runs them and CUDA has no words for: PTX, in line. All
// of it is here, so that the same kernels can be compiled for a machine that is none: see
// tests/emulated.
#pragma once

#ifdef GDRX_DEVICE_HEADER
#include GDRX_DEVICE_HEADER
#else

#include <cstdint>

#include "collectives/kernels/call.hpp"

namespace gdrx::gpu {

inline constexpr std::uint32_t kPollsBetweenLooks = 2048;  // about a millisecond

// PTX gives 128-bit scalars single-copy atomicity: a reader sees all of a pack or none of it.
__device__ __forceinline__ void store_shared(Pack* at, Pack value) {
  asm volatile(
      "{ .reg .b128 v; mov.b128 v, {%1, %2}; st.relaxed.sys.global.b128 [%0], v; }" ::"l"(at),
      "l"(value.low), "l"(value.high)
      : "memory");
}

__device__ __forceinline__ Pack load_shared(const Pack* at) {
  Pack value;
  asm volatile("{ .reg .b128 v; ld.relaxed.sys.global.b128 v, [%2]; mov.b128 {%0, %1}, v; }"
               : "=l"(value.low), "=l"(value.high)
               : "l"(at)
               : "memory");
  return value;
}

__device__ __forceinline__ void store_shared(std::uint8_t* at, std::uint32_t value) {
  asm volatile("st.relaxed.sys.global.u8 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

__device__ __forceinline__ std::uint32_t load_shared(const std::uint8_t* at) {
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.global.u8 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}

__device__ __forceinline__ void store_shared(std::uint32_t* at, std::uint32_t value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

__device__ __forceinline__ std::uint32_t load_shared(const std::uint32_t* at) {
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}

__device__ __forceinline__ void store_shared(std::uint64_t* at, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

// Without a branch, for what one thread does beside others of its warp that are in a hurry.
__device__ __forceinline__ void store_shared_if(std::uint32_t wanted, Pack* at, Pack value) {
  asm volatile(
      "{ .reg .pred p; .reg .b128 v; setp.ne.u32 p, %0, 0; mov.b128 v, {%2, %3}; "
      "@p st.relaxed.sys.global.b128 [%1], v; }" ::"r"(wanted),
      "l"(at), "l"(value.low), "l"(value.high)
      : "memory");
}

/// 0 if not `wanted`.
__device__ __forceinline__ std::uint64_t load_shared_if(std::uint32_t wanted,
                                                        const std::uint64_t* at) {
  std::uint64_t value;
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %1, 0; mov.u64 %0, 0; @p ld.relaxed.sys.global.u64 %0, [%2]; "
      "}"
      : "=l"(value)
      : "r"(wanted), "l"(at)
      : "memory");
  return value;
}

/// What was written before it is there, too.
__device__ __forceinline__ std::uint64_t load_acquired(const std::uint64_t* at) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}

__device__ __forceinline__ void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

/// As a return from the kernel. Here, where the compiler needs no registers for it: to return what
/// the kernel then asks for had small ones spill.
__device__ __forceinline__ void end_thread() {
  asm volatile("exit;" ::: "memory");
  __builtin_unreachable();
}

__device__ __forceinline__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// Of a kernel and the next one of its stream, where that was launched so: sm_90 and later.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__device__ __forceinline__ void let_next_start() {
  asm volatile("griddepcontrol.launch_dependents;");
}
__device__ __forceinline__ void await_last() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#endif

/// Memory of a block. One for each T, kCount and kernel.
template <class T, int kCount>
__device__ __forceinline__ T* block_memory() {
  __shared__ T memory[kCount];
  return memory;
}

/// Memory of a block, as much as its launch gives it.
__device__ __forceinline__ std::uint8_t* memory_of_launch() {
  extern __shared__ __align__(16) std::uint8_t memory_given[];
  return memory_given;
}

/// A word of block_memory(): what was done before is there for who reads the value.
__device__ __forceinline__ void raise_in_block(std::uint32_t* at, std::uint32_t value) {
  asm volatile("red.release.cta.shared.max.u32 [%0], %1;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(at))),
               "r"(value)
               : "memory");
}

__device__ __forceinline__ std::uint32_t read_in_block(std::uint32_t* at) {
  std::uint32_t value;
  asm volatile("atom.acquire.cta.shared.or.b32 %0, [%1], 0;"
               : "=r"(value)
               : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(at)))
               : "memory");
  return value;
}

/// Without a branch; 0 unless i < n.
__device__ __forceinline__ std::uint32_t load_if_below(std::uint32_t i, std::uint32_t n,
                                                       const std::uint32_t* at) {
  std::uint32_t word;
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, %2; mov.u32 %0, 0; @p ld.global.u32 %0, [%3]; }"
               : "=r"(word)
               : "r"(i), "r"(n), "l"(at)
               : "memory");
  return word;
}

__device__ __forceinline__ void store_if_below(std::uint32_t i, std::uint32_t n, std::uint32_t* at,
                                               std::uint32_t word) {
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %0, %1; @p st.global.u32 [%2], %3; }" ::"r"(i),
               "r"(n), "l"(at), "r"(word)
               : "memory");
}

/// Which block of a call this one is, and of how many. In turns both are the turn's: see turns.cuh.
#ifdef GDRX_IN_TURNS
__device__ __forceinline__ std::uint32_t* words_of_turn() {
  __shared__ std::uint32_t words[2];
  return words;
}
__device__ __forceinline__ std::uint32_t block_of_call() { return words_of_turn()[0]; }
__device__ __forceinline__ std::uint32_t blocks_of_call() { return words_of_turn()[1]; }

/// Every thread calls it: the block is done with the turn before.
__device__ __forceinline__ void begin_turn(std::uint32_t block, std::uint32_t blocks) {
  __syncthreads();
  if (threadIdx.x == 0) {
    words_of_turn()[0] = block;
    words_of_turn()[1] = blocks;
  }
  __syncthreads();
}
#else
__device__ __forceinline__ std::uint32_t block_of_call() { return blockIdx.x; }
__device__ __forceinline__ std::uint32_t blocks_of_call() { return gridDim.x; }
#endif

/// Here, and not where it is needed: before begin() that costs nothing.
__device__ __forceinline__ std::uint32_t worked_out(std::uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}
template <class T>
__device__ __forceinline__ T* worked_out(T* value) {
  asm volatile("" : "+l"(value));
  __builtin_assume(__isGlobal(value));
  return value;
}

}  // namespace gdrx::gpu

#endif
