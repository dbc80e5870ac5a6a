// SPDX-License-Identifier: Apache-2.0
#define GDRX_IN_TURNS  // a file of its own: see device.cuh
#include "collectives/kernels/turns.cuh"

#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/launch.hpp"
#include "collectives/kernels/loadable.hpp"

namespace gdrx::gpu {
namespace {

/// A call's blocks and threads, and how many blocks of the GPU carry it.
struct Turns {
  int blocks;
  int threads;
  int launched;
  cudaStream_t stream;

  template <class Body>
  cudaError_t launch(Body, const typename Body::Given& call) const {
    return enqueue_alone(in_turns<Body>, launched, threads, stream, call,
                         static_cast<std::uint32_t>(blocks));
  }
};

cudaError_t launch_one_shot(const Call& call, const Turns& turns) {
  if (call.ranks <= 2) return turns.launch(OneShotTurn<1>{}, call);
  if (call.ranks <= 4) return turns.launch(OneShotTurn<3>{}, call);
  return turns.launch(OneShotTurn<kMaxRanks - 1>{}, call);
}

/// Of a kernel with as many packs a thread as `shape` says: that is seen by the peers.
template <template <int, int> class Body>
cudaError_t launch_by_unroll(const Call& call, const Shape& shape, const Turns& turns) {
  if (shape.unroll == 4) return turns.launch(Body<4, 1>{}, call);
  if (shape.unroll == 2) return turns.launch(Body<2, 3>{}, call);
  return turns.launch(Body<1, kMaxRanks - 1>{}, call);
}
/// As the kernels have them for so many ranks.
template <template <int, int> class Body>
cudaError_t launch_blocks(const Call& call, bool whole, const Turns& turns) {
  BlocksCall blocks;
  static_cast<Call&>(blocks) = call;
  blocks.whole = whole;
  if (call.ranks <= 2) return turns.launch(Body<4, 1>{}, blocks);
  if (call.ranks <= 4) return turns.launch(Body<2, 3>{}, blocks);
  return turns.launch(Body<1, kMaxRanks - 1>{}, blocks);
}

template <template <int, int> class Body>
cudaError_t launch_moves(const MoveCall& call, const Turns& turns) {
  if (call.ranks <= 2) return turns.launch(Body<2, 1>{}, call);
  if (call.ranks <= 4) return turns.launch(Body<2, 3>{}, call);
  return turns.launch(Body<1, kMaxRanks - 1>{}, call);
}

const Loadable kLoadableTurns(in_turns<OneShotTurn<1>>);

}  // namespace

cudaError_t launch_in_turns(const Call& call, const Shape& shape, int launched,
                            cudaStream_t stream) {
  const int beside = shape.kernel == Kernel::one_shot && shape.tiled ? 32 : 0;
  const Turns turns{shape.blocks, shape.threads + beside, launched, stream};
  switch (shape.kernel) {
    case Kernel::one_shot:
      if (!shape.tiled) return launch_one_shot(call, turns);
      if (shape.unroll == 1) return turns.launch(OneShotTiledTurn<1>{}, call);
      return turns.launch(OneShotTiledTurn<2>{}, call);
    case Kernel::two_shot:
      return shape.whole ? launch_by_unroll<TwoShotTiledTurn>(call, shape, turns)
                         : launch_by_unroll<TwoShotTurn>(call, shape, turns);
    case Kernel::ring:
      if (shape.unroll == 1) return turns.launch(RingTurn<1>{}, call);
      if (shape.unroll == 2) return turns.launch(RingTurn<2>{}, call);
      return turns.launch(RingTurn<4>{}, call);
    case Kernel::tree:
      if (shape.unroll == 1) return turns.launch(TreeTurn<1>{}, call);
      return turns.launch(TreeTurn<2>{}, call);
    case Kernel::reduce_scatter:
      return launch_blocks<ScatterTurn>(call, shape.whole, turns);
    case Kernel::all_gather:
      return launch_blocks<GatherTurn>(call, shape.whole, turns);
    case Kernel::direct:
      return turns.launch(DirectTurn{}, static_cast<const DirectCall&>(call));
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_move_in_turns(const MoveCall& call, bool adds, int blocks, int launched,
                                 cudaStream_t stream) {
  const Turns turns{blocks, kMovers + 32, launched, stream};
  return adds ? launch_moves<AddTurn>(call, turns) : launch_moves<MoveTurn>(call, turns);
}

}  // namespace gdrx::gpu
