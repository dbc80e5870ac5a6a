// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/relay.cuh"

#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/loadable.hpp"
#include "collectives/kernels/stops.hpp"

namespace gdrx::gpu {

// Threads with one of so many things each.
static int threads_for(std::uint64_t things) {
  const std::uint64_t warps = (things + 31) / 32;
  return static_cast<int>(std::clamp<std::uint64_t>(warps * 32, 32, kThreads));
}

static const Loadable kLoadableRelay(relay_alone);

cudaError_t launch_relay(const Call& call, const Relay& what, Flags* flags, bool crowded,
                         cudaStream_t stream) {
  // In graphs an early start gains nothing; of several ranks it took 1.7 us more.
  const bool early = !crowded && what.record.captured == 0;
  const auto launch = [&](auto kernel, std::uint64_t things) {
    return enqueue_grid(kernel, 1, threads_for(things), early, stream, call, what, flags);
  };
  if (call.ranks == 1) {  // a word each, none for the first
    return launch(relay_alone, call.bytes / word_of_relay(call, what) + 1);
  }
  const auto unroll = static_cast<std::uint64_t>(unroll_of_blocks(call.ranks));
  const std::uint64_t things = (packs_of(call.block) + unroll - 1) / unroll;
  if (call.ranks <= 2) return launch(relay_blocks<4, 1>, things);
  if (call.ranks <= 4) return launch(relay_blocks<2, 3>, things);
  return launch(relay_blocks<1, kManyPeers<Any>>, things);
}

}  // namespace gdrx::gpu
