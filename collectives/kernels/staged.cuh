// SPDX-License-Identifier: Apache-2.0
// Bytes that a GPU moves by itself, through its block's memory: a thread says from where to where,
// and no other is needed. So few blocks fill a link. From sm_90 on; see is_staged().
#pragma once

#ifdef GDRX_DEVICE_HEADER
#include GDRX_DEVICE_HEADER
#else

#include <cstdint>

#include "collectives/kernels/device.cuh"

namespace gdrx::gpu {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

__device__ __forceinline__ std::uint32_t in_block(const void* at) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}

/// What the kernel was given for this.
__device__ __forceinline__ std::uint8_t* staged_memory() {
  extern __shared__ __align__(128) std::uint8_t staged[];
  return staged;
}

/// A word of block_memory(), by which a thread knows that all it expects has come.
__device__ __forceinline__ void begin_arrivals(std::uint64_t* word) {
  asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.proxy.async;" ::"r"(in_block(word))
               : "memory");
}
__device__ __forceinline__ void expect_bytes(std::uint64_t* word, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(in_block(word)), "r"(bytes)
               : "memory");
}
/// `turn`: 0, 1, 0, ... for one expectation after the other.
__device__ __forceinline__ void await_bytes(std::uint64_t* word, std::uint32_t turn) {
  std::uint32_t here = 0;
  while (here == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(here)
        : "r"(in_block(word)), "r"(turn)
        : "memory");
  }
}

// Both addresses, and `bytes`, are multiples of 16.
__device__ __forceinline__ void copy_in(void* staged, const void* from, std::uint32_t bytes,
                                        std::uint64_t* word) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(in_block(staged)),
      "l"(from), "r"(bytes), "r"(in_block(word))
      : "memory");
}
__device__ __forceinline__ void copy_out(void* to, const void* staged, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(in_block(staged)), "r"(bytes)
               : "memory");
}
/// Of the thread's own.
__device__ __forceinline__ void close_copies_out() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Their block's memory may be written again.
__device__ __forceinline__ void await_read_of_copies_out() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
/// What they wrote is there for who is told of it behind a fence.
__device__ __forceinline__ void await_copies_out() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
/// What this thread has been told of by loads is there for copies, too.
__device__ __forceinline__ void show_to_copies() {
  asm volatile("fence.proxy.async;" ::: "memory");
}

#else  // is not launched there

__device__ __forceinline__ std::uint8_t* staged_memory() { return nullptr; }
__device__ __forceinline__ void begin_arrivals(std::uint64_t*) { __trap(); }
__device__ __forceinline__ void expect_bytes(std::uint64_t*, std::uint32_t) {}
__device__ __forceinline__ void await_bytes(std::uint64_t*, std::uint32_t) {}
__device__ __forceinline__ void copy_in(void*, const void*, std::uint32_t, std::uint64_t*) {}
__device__ __forceinline__ void copy_out(void*, const void*, std::uint32_t) {}
__device__ __forceinline__ void close_copies_out() {}
__device__ __forceinline__ void await_read_of_copies_out() {}
__device__ __forceinline__ void await_copies_out() {}
__device__ __forceinline__ void show_to_copies() {}

#endif

}  // namespace gdrx::gpu

#endif
