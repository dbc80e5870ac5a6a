// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/pair_carrier.cuh"

#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/launch.hpp"
#include "collectives/kernels/loadable.hpp"

namespace gdrx::gpu {
namespace {

/// A graph may outlive its communicator: the arena is another one's then.
__global__ void place_messages(const __grid_constant__ MessageBatch batch, std::uint8_t* arena,
                               std::uint32_t owner) {
  if (!is_of(reinterpret_cast<const volatile Control*>(arena)->owner, owner)) return;
  if (threadIdx.x >= batch.count) return;
  reinterpret_cast<Message*>(arena + kMessagesAt)[batch.first + threadIdx.x] =
      batch.messages[threadIdx.x];
}

}  // namespace

static const Loadable kLoadablePair(send_receive<1, InBulk::none>);

cudaError_t launch_pairs(const PairCall& call, const PairGrid& grid, cudaStream_t stream) {
  const auto launch = [&](auto kernel) {
    return enqueue_grid(kernel, grid.blocks, grid.threads, false, stream, call);
  };
  if (!grid.in_bulk) {
    return grid.by_turns ? launch(send_receive<kPairTurns, InBulk::none>)
                         : launch(send_receive<1, InBulk::none>);
  }
  const auto staged =
      grid.by_turns ? send_receive<kPairTurns, InBulk::staged> : send_receive<1, InBulk::staged>;
  constexpr int kStaged = kStagedTiles * kBulkTile * sizeof(Pack);
  if (grid.is_staged && has_room_for(staged, kStaged)) {
    return enqueue_staged(staged, grid.blocks, grid.threads, kStaged, stream, call);
  }
  return grid.by_turns ? launch(send_receive<kPairTurns, InBulk::by_threads>)
                       : launch(send_receive<1, InBulk::by_threads>);
}

cudaError_t launch_messages(const MessageBatch& batch, const Call& call, cudaStream_t stream) {
  return enqueue_alone(place_messages, 1, static_cast<int>(kMessagesAtOnce), stream, batch,
                       call.arena[call.rank], call.owner);
}

}  // namespace gdrx::gpu
