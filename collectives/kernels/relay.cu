// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/copy.cuh"
#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/flags.cuh"
#include "collectives/kernels/loadable.hpp"
#include "collectives/kernels/stops.hpp"

namespace gdrx::gpu {
namespace {

// One block: that all of it has copied is known without other blocks, and so without waits for some
// that may have no room.
template <class Word>
__global__ void __launch_bounds__(kThreads)
    relay(const __grid_constant__ Call call, const __grid_constant__ Relay what, Flags* flags) {
  const bool first = threadIdx.x == 0;
  if (__syncthreads_or(first && gave_up(call)) != 0) return;
  Counts counts;
  if (first) {
    counts = counts_of(flags);
    tell(flags, counts, bit_of(Told::begun), what.record);  // meanwhile the network gets ready
  }
  copy_words<Word>(what.part, what.input, what.bytes, threadIdx.x, blockDim.x);
  __syncthreads();
  Patience patience(call);
  if (first) {
    tell(flags, counts, bit_of(Told::scattered), {});
    await(call, flags, counts, Allowed::gather, patience);
  }
  // Behind the first thread's acquire, what the network wrote is there for all of them.
  if (__syncthreads_or(patience.over()) != 0) return;
  copy_words<Word>(what.output, what.part, what.bytes, threadIdx.x, blockDim.x);
  __syncthreads();
  if (first) tell(flags, counts, bit_of(Told::gathered), {});
}

const Loadable kLoadable(relay<Pack>);

}  // namespace

cudaError_t launch_relay(const Call& call, const Relay& what, Flags* flags, cudaStream_t stream) {
  switch (word_of_relay(what)) {
    case sizeof(Pack):
      return enqueue_alone(relay<Pack>, 1, kThreads, stream, call, what, flags);
    case sizeof(std::uint32_t):
      return enqueue_alone(relay<std::uint32_t>, 1, kThreads, stream, call, what, flags);
    default:
      return enqueue_alone(relay<std::uint8_t>, 1, kThreads, stream, call, what, flags);
  }
}

}  // namespace gdrx::gpu
