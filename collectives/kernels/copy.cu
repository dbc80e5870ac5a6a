// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/copy.hpp"

#include "collectives/kernels/copy.cuh"
#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/guard.cuh"
#include "collectives/kernels/loadable.hpp"

namespace gdrx::gpu {
namespace {

constexpr std::uint64_t kMostBlocks = 32;  // enough for the bus, and the rest is left to others

template <class Word>
__global__ void __launch_bounds__(kBlock)
    copy(void* to, const void* from, std::uint64_t bytes, const __grid_constant__ Guard guard) {
  if (is_closed(guard)) return;
  const std::uint64_t first = static_cast<std::uint64_t>(blockIdx.x) * kBlock + threadIdx.x;
  copy_words<Word>(to, from, bytes, first, static_cast<std::uint64_t>(gridDim.x) * kBlock);
}

template <class Word>
cudaError_t enqueue_copy(void* to, const void* from, std::uint64_t bytes, const Guard& guard,
                         cudaStream_t stream) {
  const std::uint64_t words = bytes / sizeof(Word);
  const std::uint64_t wanted = words / kBlock + 1;  // at least one, for what is less than a word
  const auto blocks = static_cast<int>(wanted < kMostBlocks ? wanted : kMostBlocks);
  return enqueue_alone(copy<Word>, blocks, kBlock, stream, to, from, bytes, guard);
}

const Loadable kLoadableCopy(copy<Pack>);

}  // namespace

cudaError_t launch_copy(void* to, const void* from, std::uint64_t bytes, const Guard& guard,
                        cudaStream_t stream) {
  switch (word_of_copy(to, from)) {
    case sizeof(Pack):
      return enqueue_copy<Pack>(to, from, bytes, guard, stream);
    case sizeof(std::uint32_t):
      return enqueue_copy<std::uint32_t>(to, from, bytes, guard, stream);
    default:
      return enqueue_copy<std::uint8_t>(to, from, bytes, guard, stream);
  }
}

}  // namespace gdrx::gpu
