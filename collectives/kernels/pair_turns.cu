// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/pair_turns.cuh"

#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/launch.hpp"
#include "collectives/kernels/loadable.hpp"

namespace gdrx::gpu {
namespace {

const Loadable kLoadablePairTurns(send_receive_in_turns);

/// `threads`: of a block of kPairWarps that carry, and perhaps one more.
template <class AnyRelay, class AnyCall>
cudaError_t launch(void (*kernel)(AnyCall), const AnyCall& call, std::uint32_t paired, int blocks,
                   int threads, cudaStream_t stream) {
  const auto warps = static_cast<std::uint32_t>(blocks * kPairWarps);
  const std::uint32_t channels = channels_of_warp(call.tasks, paired, warps) * kPairWarps;
  const auto bytes = static_cast<int>(channels * sizeof(typename ManyChannels<AnyRelay>::Lane));
  if (!has_room_for_any(kernel, bytes)) return cudaErrorInvalidConfiguration;
  return enqueue_staged(kernel, blocks, threads, bytes, stream, call);
}

}  // namespace

cudaError_t launch_pairs_in_turns(const PairCall& call, int launched, cudaStream_t stream) {
  return launch<NoRelay>(send_receive_in_turns, call, 0, launched, kPairWarps * 32, stream);
}

cudaError_t launch_moved_in_turns(const MovedMessages& call, int launched, cudaStream_t stream) {
  const int threads = (kPairWarps + static_cast<int>(call.enters)) * 32;
  return launch<PairRelay<InBulk::by_threads>>(move_messages_in_turns, call, call.paired, launched,
                                               threads, stream);
}

}  // namespace gdrx::gpu
