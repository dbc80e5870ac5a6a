// SPDX-License-Identifier: Apache-2.0
// The GPU that the kernels see where there is none: a fiber for each of their threads. What
// collectives/kernels/device.cuh does in PTX is done here by atomics, each at least acquire and
// release: stronger than a GPU's. Logic is tested so, not what a GPU may reorder.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime_api.h>

#ifdef __x86_64__
#include <emmintrin.h>
#endif

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "collectives/kernels/call.hpp"
#include "collectives/kernels/shape.hpp"
#include "tests/emulated/grid.hpp"

#undef __device__
#undef __global__
#undef __forceinline__
#undef __noinline__
#undef __launch_bounds__
#undef __grid_constant__
#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__

namespace gdrx::gpu {

inline constexpr std::uint32_t kPollsBetweenLooks = 16;  // a poll is a turn of all threads

using emulated::blockDim;
using emulated::blockIdx;
using emulated::gridDim;
using emulated::threadIdx;

inline void __syncthreads() { emulated::block->meet(); }
inline int __syncthreads_or(int mine) { return emulated::block->any(mine != 0) ? 1 : 0; }
inline void __syncwarp() { emulated::block->warp().meet(); }
inline std::uint32_t __reduce_min_sync(std::uint32_t, std::uint32_t mine) {
  return emulated::block->warp().least(mine);
}

inline float __uint_as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t __float_as_uint(float value) { return std::bit_cast<std::uint32_t>(value); }

inline std::uint32_t atomicExch(std::uint32_t* at, std::uint32_t value) {
  return std::atomic_ref(*at).exchange(value);
}
inline std::uint32_t atomicCAS(std::uint32_t* at, std::uint32_t expected, std::uint32_t value) {
  std::atomic_ref(*at).compare_exchange_strong(expected, value);
  return expected;
}
template <class Number>
Number atomicAdd(Number* at, std::type_identity_t<Number> value) {
  return std::atomic_ref(*at).fetch_add(value);
}

// Who polls lets others run.
inline void rest() { emulated::yield(); }

#ifdef __x86_64__
// One instruction, whole where there is AVX, as Intel and AMD say; both orders are the processor's.
// libatomic would lock the bus to load.
inline void store_shared(Pack* at, Pack value) {
  asm volatile("movdqa %1, %0" : "=m"(*at) : "x"(std::bit_cast<__m128i>(value)) : "memory");
}
inline Pack load_whole(const Pack* at) {
  __m128i value;
  asm volatile("movdqa %1, %0" : "=x"(value) : "m"(*at) : "memory");
  return std::bit_cast<Pack>(value);
}
#else
inline void store_shared(Pack* at, Pack value) { __atomic_store(at, &value, __ATOMIC_RELEASE); }
inline Pack load_whole(const Pack* at) {
  Pack value;
  __atomic_load(at, &value, __ATOMIC_ACQUIRE);
  return value;
}
#endif
// Nothing there yet, or asked for twice in a row, as who enters a call asks for a peer's number.
inline Pack load_shared(const Pack* at) {
  thread_local const Pack* last = nullptr;
  const Pack value = load_whole(at);
  const bool again = std::exchange(last, at) == at;
  if (again || value.low == kSentinelLow) rest();
  return value;
}
inline void store_shared(std::uint8_t* at, std::uint32_t value) {
  std::atomic_ref(*at).store(static_cast<std::uint8_t>(value), std::memory_order_release);
}
inline std::uint32_t load_shared(const std::uint8_t* at) {
  return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}
inline void store_shared(std::uint32_t* at, std::uint32_t value) {
  std::atomic_ref(*at).store(value, std::memory_order_release);
}
inline std::uint32_t load_shared(const std::uint32_t* at) {
  rest();
  return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}
inline void store_shared(std::uint64_t* at, std::uint64_t value) {
  std::atomic_ref(*at).store(value, std::memory_order_release);
}
inline void store_shared_if(std::uint32_t wanted, Pack* at, Pack value) {
  if (wanted != 0) store_shared(at, value);
}
inline std::uint64_t load_shared_if(std::uint32_t wanted, const std::uint64_t* at) {
  return wanted != 0 ? __atomic_load_n(at, __ATOMIC_ACQUIRE) : 0;
}
inline std::uint64_t load_acquired(const std::uint64_t* at) {
  rest();
  return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}
inline void fence_system() { std::atomic_thread_fence(std::memory_order_seq_cst); }

inline void end_thread() { throw emulated::Ended{}; }

inline std::uint64_t nanoseconds() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

template <class T, int kCount>
T* block_memory() {
  static_assert(sizeof(T) * kCount <= sizeof(emulated::Block::memory));
  return reinterpret_cast<T*>(emulated::block->memory);
}
inline void raise_in_block(std::uint32_t* at, std::uint32_t value) {
  std::atomic_ref word(*at);
  std::uint32_t seen = word.load();
  while (seen < value && !word.compare_exchange_weak(seen, value)) {
  }
}
inline std::uint32_t read_in_block(std::uint32_t* at) {
  rest();
  return std::atomic_ref(*at).load();
}

inline std::uint32_t load_if_below(std::uint32_t i, std::uint32_t n, const std::uint32_t* at) {
  return i < n ? *at : 0;
}
inline void store_if_below(std::uint32_t i, std::uint32_t n, std::uint32_t* at,
                           std::uint32_t word) {
  if (i < n) *at = word;
}

inline std::uint8_t* memory_of_launch() { return emulated::block->staged(); }
inline std::uint32_t block_of_call() { return blockIdx.x; }
inline std::uint32_t blocks_of_call() { return gridDim.x; }
inline void begin_turn(std::uint32_t block, std::uint32_t blocks) {
  __syncthreads();
  blockIdx.x = block;
  gridDim.x = blocks;
}

inline std::uint32_t worked_out(std::uint32_t value) { return value; }
template <class T>
T* worked_out(T* value) {
  return value;
}

// As collectives/kernels/staged.cuh. A copy comes when it is waited for, and no sooner.
inline std::uint8_t* staged_memory() { return emulated::block->staged(); }
inline void begin_arrivals(std::uint64_t* word) { *word = 0; }
inline void expect_bytes(std::uint64_t* word, std::uint32_t bytes) { *word += bytes; }
inline void copy_in(void* staged, const void* from, std::uint32_t bytes, std::uint64_t*) {
  emulated::block->copies().in.push_back({staged, from, bytes, {}});
}
/// The word's upper half counts the turns that have ended.
inline void await_bytes(std::uint64_t* word, std::uint32_t turn) {
  if ((*word >> 32 & 1) != turn) std::abort();
  for (const emulated::Copy& copy : std::exchange(emulated::block->copies().in, {})) {
    std::memcpy(copy.to, copy.from, copy.bytes);
    *word -= copy.bytes;
  }
  if (static_cast<std::uint32_t>(*word) != 0) std::abort();
  *word += std::uint64_t{1} << 32;
}
inline void copy_out(void* to, const void* staged, std::uint32_t bytes) {
  emulated::block->copies().out.push_back({to, staged, bytes, {}});
}
inline void close_copies_out() {}
inline void await_read_of_copies_out() {
  for (emulated::Copy& copy : emulated::block->copies().out) copy.read();
}
inline void await_copies_out() {
  for (emulated::Copy& copy : std::exchange(emulated::block->copies().out, {})) {
    copy.read();
    std::memcpy(copy.to, copy.read_bytes.data(), copy.bytes);
  }
}
inline void show_to_copies() {}

/// As collectives/kernels/enqueue.cuh.
template <class AnyCall, class... Parameters, class... Arguments>
cudaError_t enqueue(void (*kernel)(AnyCall, Parameters...), const Shape& shape, cudaStream_t stream,
                    const AnyCall& call, const Arguments&... arguments) {
  return emulated::launch(stream, shape.blocks, shape.threads, [=] { kernel(call, arguments...); });
}
template <class... Parameters, class... Arguments>
cudaError_t enqueue_grid(void (*kernel)(Parameters...), int blocks, int threads, bool,
                         cudaStream_t stream, const Arguments&... arguments) {
  return emulated::launch(stream, blocks, threads, [=] { kernel(arguments...); });
}
template <class... Parameters>
bool has_room_for(void (*)(Parameters...), int bytes) {
  return bytes <= emulated::Block::kStaged;
}
template <class... Parameters>
bool has_room_for_any(void (*kernel)(Parameters...), int bytes) {
  return has_room_for(kernel, bytes);
}
template <class... Parameters, class... Arguments>
cudaError_t enqueue_staged(void (*kernel)(Parameters...), int blocks, int threads, int,
                           cudaStream_t stream, const Arguments&... arguments) {
  return emulated::launch(stream, blocks, threads, [=] { kernel(arguments...); });
}
template <class... Parameters, class... Arguments>
cudaError_t enqueue_alone(void (*kernel)(Parameters...), int blocks, int threads,
                          cudaStream_t stream, const Arguments&... arguments) {
  return emulated::launch(stream, blocks, threads, [=] { kernel(arguments...); });
}

}  // namespace gdrx::gpu
