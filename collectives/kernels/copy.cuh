// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collectives/kernels/pack.cuh"

namespace gdrx::gpu {

/// What thread `first` of `threads` copies, all of them the whole: words in turns, and what is less
/// than a word byte by byte. There are at least sizeof(Word) threads.
template <class Word>
__device__ __forceinline__ void copy_words(void* to, const void* from, std::uint64_t bytes,
                                           std::uint64_t first, std::uint64_t threads) {
  constexpr int kAtOnce = 4;  // loads: a way over the bus and back takes as long for all of them
  const std::uint64_t words = bytes / sizeof(Word);
  for (std::uint64_t i = first; i < words; i += kAtOnce * threads) {
    Word word[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (i + k * threads < words) word[k] = static_cast<const Word*>(from)[i + k * threads];
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (i + k * threads < words) static_cast<Word*>(to)[i + k * threads] = word[k];
    }
  }
  const std::uint64_t left = words * sizeof(Word) + first;
  if (left < bytes)
    static_cast<std::uint8_t*>(to)[left] = static_cast<const std::uint8_t*>(from)[left];
}

/// The same in the widest words that both addresses are at multiples of.
__device__ __forceinline__ void copy_bytes(void* to, const void* from, std::uint64_t bytes,
                                           std::uint64_t first, std::uint64_t threads) {
  const auto both = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  if (both % sizeof(Pack) == 0) {
    copy_words<Pack>(to, from, bytes, first, threads);
  } else if (both % sizeof(std::uint32_t) == 0) {
    copy_words<std::uint32_t>(to, from, bytes, first, threads);
  } else {
    copy_words<std::uint8_t>(to, from, bytes, first, threads);
  }
}

}  // namespace gdrx::gpu
