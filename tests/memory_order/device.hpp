// SPDX-License-Identifier: Apache-2.0
// The GPU that kernels see in the model: what collectives/kernels/device.cuh does in PTX, with the
// model's atomics. A GPU orders nothing by itself either, and PTX's relaxed, acquire and
// fence.acq_rel, for the whole system, publish as C++'s do. __syncthreads() is for its block alone.
// A kernel's own counters, by atomics without an order or volatile, are plain here.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include "collectives/kernels/call.hpp"
#include "tests/memory_order/model.hpp"

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

using From = std::source_location;

inline constexpr std::uint32_t kPollsBetweenLooks = 1;  // each vain poll is the others' turn

struct Dimension {
  std::uint32_t x = 0;
};
/// Of a block with others of the model's threads.
struct Barrier {
  std::uint64_t come = 0;
  bool any = false;
};
struct Spot {
  Dimension thread;
  Dimension threads{1};
  Barrier* barrier = nullptr;
  std::uint32_t last_read = 0;
};
inline std::array<Spot, model::kThreads> spots;
inline const Spot& spot() { return spots[model::self()]; }
#define threadIdx (gdrx::gpu::spot().thread)
#define blockDim (gdrx::gpu::spot().threads)
inline constexpr Dimension blockIdx{0};
inline constexpr Dimension gridDim{1};
inline std::uint32_t block_of_call() { return 0; }
inline std::uint32_t blocks_of_call() { return 1; }

inline void __syncthreads() {
  const std::uint64_t threads = spot().threads.x;
  if (threads == 1) return;
  std::uint64_t* const come = &spot().barrier->come;
  const std::uint64_t before = model::exchange(
      come, 0, [](std::uint64_t value) { return value + 1; }, std::memory_order_acq_rel,
      From::current());
  const std::uint64_t all = (before / threads + 1) * threads;
  while (model::load(come, 0, std::memory_order_acquire, From::current()) < all) model::wait();
}
inline int __syncthreads_or(int mine) {
  if (spot().threads.x == 1) return mine;
  if (mine != 0) spot().barrier->any = true;
  __syncthreads();
  return spot().barrier->any ? 1 : 0;
}

inline std::uint32_t atomicExch(std::uint32_t* at, std::uint32_t value) {
  return std::exchange(*at, value);
}
inline std::uint32_t atomicCAS(std::uint32_t* at, std::uint32_t expected, std::uint32_t value) {
  return *at == expected ? std::exchange(*at, value) : *at;
}
template <class Number>
Number atomicAdd(Number* at, std::type_identity_t<Number> value) {
  return std::exchange(*at, *at + value);
}

/// A pack is one value, and the model's have 64 bits: its number among those that were seen.
inline std::vector<Pack> packs;
inline std::uint64_t number_of(Pack pack) {
  for (std::size_t i = 0; i < packs.size(); ++i) {
    if (packs[i].low == pack.low && packs[i].high == pack.high) return i;
  }
  packs.push_back(pack);
  return packs.size() - 1;
}

constexpr auto kRelaxed = std::memory_order_relaxed;
inline void store_shared(Pack* at, Pack value, From from = From::current()) {
  model::store(at, number_of(*at), number_of(value), kRelaxed, from);
}
inline Pack load_shared(const Pack* at, From from = From::current()) {
  return packs[model::load(const_cast<Pack*>(at), number_of(*at), kRelaxed, from)];
}
template <class Number>
void store_shared(Number* at, std::type_identity_t<Number> value, From from = From::current()) {
  model::store(at, *at, value, kRelaxed, from);
}
inline std::uint32_t load_shared(const std::uint8_t* at, From from = From::current()) {
  return static_cast<std::uint32_t>(
      model::load(const_cast<std::uint8_t*>(at), *at, kRelaxed, from));
}
inline std::uint32_t load_shared(const std::uint32_t* at, From from = From::current()) {
  return static_cast<std::uint32_t>(
      model::load(const_cast<std::uint32_t*>(at), *at, kRelaxed, from));
}
inline void store_shared_if(std::uint32_t wanted, Pack* at, Pack value,
                            From from = From::current()) {
  if (wanted != 0) store_shared(at, value, from);
}
/// The lower half of a pack.
inline std::uint64_t load_shared_if(std::uint32_t wanted, const std::uint64_t* at,
                                    From from = From::current()) {
  return wanted != 0 ? load_shared(reinterpret_cast<const Pack*>(at), from).low : 0;
}
inline std::uint64_t load_acquired(const std::uint64_t* at, From from = From::current()) {
  return model::load(const_cast<std::uint64_t*>(at), *at, std::memory_order_acquire, from);
}
inline void fence_system(From from = From::current()) { model::fence_of_gpu(from); }

/// Words of a block's memory.
inline void raise_in_block(std::uint32_t* at, std::uint32_t value, From from = From::current()) {
  model::exchange(
      at, *at, [value](std::uint64_t before) { return before < value ? value : before; },
      std::memory_order_release, from, "raise_in_block");
}
/// Who reads the same again waits for another.
inline std::uint32_t read_in_block(std::uint32_t* at, From from = From::current()) {
  const auto value = static_cast<std::uint32_t>(model::exchange(
      at, *at, [](std::uint64_t before) { return before; }, std::memory_order_acquire, from,
      "read_in_block"));
  if (std::exchange(spots[model::self()].last_read, value) == value) model::wait();
  return value;
}
/// A warp has one thread here.
inline void __syncwarp() {}
inline std::uint32_t __reduce_min_sync(std::uint32_t, std::uint32_t mine) { return mine; }

inline void end_thread() { model::require(false, "a kernel of nobody"); }
/// Whoever waits in vain asks for it.
inline std::uint64_t nanoseconds() {
  model::wait();
  return 1;
}

inline float __uint_as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t __float_as_uint(float value) { return std::bit_cast<std::uint32_t>(value); }
inline std::uint32_t load_if_below(std::uint32_t i, std::uint32_t n, const std::uint32_t* at) {
  return i < n ? *at : 0;
}
inline void store_if_below(std::uint32_t i, std::uint32_t n, std::uint32_t* at,
                           std::uint32_t word) {
  if (i < n) *at = word;
}
template <class T>
T worked_out(T value) {
  return value;
}

// Of kernels that copy by way of a block's memory, which no scenario runs.
template <class T, int kCount>
T* block_memory();
std::uint8_t* staged_memory();
void begin_arrivals(std::uint64_t* word);
void expect_bytes(std::uint64_t* word, std::uint32_t bytes);
void copy_in(void* staged, const void* from, std::uint32_t bytes, std::uint64_t* word);
void await_bytes(std::uint64_t* word, std::uint32_t turn);
void copy_out(void* to, const void* staged, std::uint32_t bytes);
void close_copies_out();
void await_read_of_copies_out();
void await_copies_out();
void show_to_copies();

}  // namespace gdrx::gpu
