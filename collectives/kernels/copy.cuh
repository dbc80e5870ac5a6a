// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collectives/kernels/pack.cuh"

namespace gdrx::gpu {

/// What thread `first` of `threads` copies, all of them the whole: words in turns, and what is less
/// than a word byte by byte. There are at least sizeof(Word) threads.
template <class Word>
__device__ __forceinline__ void copy_words(void* to, const void* from, std::uint64_t bytes,
                                           std::uint64_t first, std::uint64_t threads) {
  const std::uint64_t words = bytes / sizeof(Word);
  for (std::uint64_t i = first; i < words; i += threads) {
    static_cast<Word*>(to)[i] = static_cast<const Word*>(from)[i];
  }
  const std::uint64_t left = words * sizeof(Word) + first;
  if (left < bytes)
    static_cast<std::uint8_t*>(to)[left] = static_cast<const std::uint8_t*>(from)[left];
}

}  // namespace gdrx::gpu
