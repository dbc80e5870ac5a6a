// SPDX-License-Identifier: Apache-2.0
// What only moves data goes as bytes. A type of the program's own is packed first, by MPI, and
// unpacked behind: another rank may use a plain type for the same bytes, so none of them can
// decline because of its own. So do blocks that overlap or lie before the buffer's address, which
// gdrx does not have: MPI lets them be sent, and MPIs let them be received.
#include <algorithm>

#include "mpi/pack.hpp"
#include "mpi/run.hpp"

namespace gdrx::mpi {
namespace {

// One block behind another, from the buffer's address on. In another order they may be as well
// apart, and are copied all the same.
bool ascends(const Side& side) noexcept {
  std::ptrdiff_t end = 0;
  for (int i = 0; i < side.blocks; ++i) {
    if (side.bytes(i) == 0) continue;  // wherever it is
    if (side.place(i) < end) return false;
    end = side.place(i) + static_cast<std::ptrdiff_t>(side.bytes(i));
  }
  return true;
}

/// `lists`: room for two of the side's blocks.
Bytes bytes_of(const Side& side, Scratch& scratch, std::size_t* lists) {
  Bytes bytes{.at = side.at};
  bytes.packed = !side.type.plain || (side.places != nullptr && !ascends(side));
  if (side.blocks == 0) return bytes;
  std::size_t whole = 0;
  if (side.counts == nullptr) {
    bytes.block = side.bytes(0);
    whole = bytes.block * static_cast<std::size_t>(side.blocks);
  } else {
    std::size_t* const places = lists + side.blocks;
    for (int i = 0; i < side.blocks; ++i) {
      lists[i] = side.bytes(i);
      const std::size_t place = lists[i] == 0 ? 0 : static_cast<std::size_t>(side.place(i));
      places[i] = bytes.packed ? whole : place;
      whole += lists[i];
    }
    bytes.counts = lists;
    bytes.places = places;
  }
  if (bytes.packed) bytes.at = scratch.of(whole);
  return bytes;
}

void pack(const Side& side, const Bytes& bytes, int first, int end) {
  if (!bytes.packed) return;
  for (int i = first; i < end; ++i) pack_block(side, i, bytes.begin_of(i));
}

// What MPI_IN_PLACE stands for.
void place_in(const Call& call, const Plan& plan, const State& state, Bytes& in, Bytes& out) {
  if (call.kind == Kind::alltoall || call.kind == Kind::alltoallv) {
    in = out;
    pack(plan.out, out, 0, plan.out.blocks);
  } else if (call.kind == Kind::scatter || call.kind == Kind::scatterv) {
    out.at = in.begin_of(state.rank);
  } else {  // the gathers
    in.at = out.begin_of(state.rank);
    pack(plan.out, out, state.rank, state.rank + 1);
  }
}

gdrxResult_t send_off(const Call& call, const Bytes& in, const Bytes& out, const State& state,
                      gdrxRequest_t* request) {
  const Engine& gdrx = *engine();
  const gdrxComm_t comm = state.gdrx;
  const std::size_t block = std::max(in.block, out.block);  // in place one side alone has it
  const auto own = static_cast<std::size_t>(state.rank);
  switch (call.kind) {
    case Kind::bcast:
      return gdrx.Broadcast(in.at, in.at != nullptr ? in.at : out.at, block, gdrxByte, call.root,
                            comm, call.stream, request);
    case Kind::allgather:
      return gdrx.AllGather(in.at, out.at, block, gdrxByte, comm, call.stream, request);
    case Kind::allgatherv:
      return gdrx.AllGatherv(in.at, out.at, out.counts, out.places, gdrxByte, comm, call.stream,
                             request);
    case Kind::alltoall:
      return gdrx.AllToAll(in.at, out.at, block, gdrxByte, comm, call.stream, request);
    case Kind::alltoallv:
      return gdrx.AllToAllv(in.at, in.counts, in.places, out.at, out.counts, out.places, gdrxByte,
                            comm, call.stream, request);
    case Kind::gather:
      return gdrx.Gather(in.at, out.at, block, gdrxByte, call.root, comm, call.stream, request);
    case Kind::gatherv:
      return gdrx.Gatherv(in.at, out.counts != nullptr ? out.counts[own] : block, out.at,
                          out.counts, out.places, gdrxByte, call.root, comm, call.stream, request);
    case Kind::scatter:
      return gdrx.Scatter(in.at, out.at, block, gdrxByte, call.root, comm, call.stream, request);
    case Kind::scatterv:
      return gdrx.Scatterv(in.at, in.counts, in.places, out.at,
                           in.counts != nullptr ? in.counts[own] : block, gdrxByte, call.root, comm,
                           call.stream, request);
    case Kind::allreduce:
    case Kind::reduce:
    case Kind::reduce_scatter_block:
    case Kind::reduce_scatter:
    case Kind::scan:
    case Kind::exscan:
    case Kind::barrier:
      break;
  }
  return gdrxInternalError;
}

}  // namespace

gdrxResult_t move(const Call& call, const Plan& plan, State& state, Work& work,
                  gdrxRequest_t* request) {
  std::size_t* const lists = work.lists.data();
  Bytes in = bytes_of(plan.in, work.packed_in, lists);
  Bytes out =
      bytes_of(plan.out, work.packed_out, lists + 2 * static_cast<std::ptrdiff_t>(state.size));
  pack(plan.in, in, 0, plan.in.blocks);
  if (plan.in_place) place_in(call, plan, state, in, out);
  work.out = plan.out;
  work.bytes = out;
  return send_off(call, in, out, state, request);
}

}  // namespace gdrx::mpi
