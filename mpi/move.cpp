// SPDX-License-Identifier: Apache-2.0
// What only moves data goes as bytes. A type of the program's own is packed first, by MPI, and
// unpacked behind: another rank may use a plain type for the same bytes, so none of them can
// decline because of its own. So do blocks that overlap or lie before the buffer's address, which
// gdrx does not have: MPI lets them be sent, and MPIs let them be received.
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "mpi/run.hpp"

namespace gdrx::mpi {
namespace {

/// A side as gdrx gets it.
struct Bytes {
  std::byte* at = nullptr;
  std::size_t block = 0;                // bytes of each block
  const std::size_t* counts = nullptr;  // or of each its own
  const std::size_t* places = nullptr;
  bool packed = false;  // `at` is not the program's

  std::byte* begin_of(int block_number) const noexcept {
    const auto i = static_cast<std::size_t>(block_number);
    return at + (places != nullptr ? places[i] : i * block);
  }
};

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

/// A block of the program's type and its bytes, in pieces that MPI's int can count.
template <class Body>
void each_piece(const Side& side, int block, std::byte* packed, Body&& body) {
  if (side.type.size == 0) return;
  constexpr std::size_t kMost = std::size_t{1} << 30;
  const std::size_t most = std::max<std::size_t>(1, kMost / side.type.size);
  if (side.type.size > std::size_t{std::numeric_limits<int>::max()}) {
    throw std::runtime_error("one element of a type has over 2 GiB, more than MPI_Pack can count");
  }
  std::byte* at = side.at + side.place(block);
  for (std::size_t left = side.elements(block); left > 0;) {
    const std::size_t count = std::min(left, most);
    const std::size_t bytes = count * side.type.size;
    int used = 0;
    const int result = body(at, static_cast<int>(count), packed, static_cast<int>(bytes), &used);
    if (result != MPI_SUCCESS) {
      throw std::runtime_error("MPI does not pack or unpack a type of the program's");
    }
    if (static_cast<std::size_t>(used) != bytes) {
      throw std::runtime_error("MPI packs a type to another size than it says");
    }
    at += static_cast<std::ptrdiff_t>(count) * side.type.extent;
    packed += bytes;
    left -= count;
  }
}

void pack(const Side& side, const Bytes& bytes, int first, int end, MPI_Comm comm) {
  if (!bytes.packed) return;
  for (int i = first; i < end; ++i) {
    each_piece(side, i, bytes.begin_of(i),
               [&](void* from, int count, void* to, int size, int* used) {
                 return real::Pack(from, count, side.handle, to, size, used, comm);
               });
  }
}

void unpack(const Side& side, const Bytes& bytes, MPI_Comm comm) {
  if (!bytes.packed) return;
  for (int i = 0; i < side.blocks; ++i) {
    each_piece(side, i, bytes.begin_of(i),
               [&](void* to, int count, void* from, int size, int* used) {
                 return real::Unpack(from, size, used, to, count, side.handle, comm);
               });
  }
}

// What MPI_IN_PLACE stands for.
void place_in(const Call& call, const Plan& plan, const State& state, Bytes& in, Bytes& out) {
  if (call.kind == Kind::alltoall || call.kind == Kind::alltoallv) {
    in = out;
    pack(plan.out, out, 0, plan.out.blocks, state.comm);
  } else if (call.kind == Kind::scatter || call.kind == Kind::scatterv) {
    out.at = in.begin_of(state.rank);
  } else {  // the gathers
    in.at = out.begin_of(state.rank);
    pack(plan.out, out, state.rank, state.rank + 1, state.comm);
  }
}

gdrxResult_t send_off(const Call& call, const Bytes& in, const Bytes& out, const State& state) {
  const Engine& gdrx = *engine();
  const gdrxComm_t comm = state.gdrx;
  const std::size_t block = std::max(in.block, out.block);  // in place one side alone has it
  const auto own = static_cast<std::size_t>(state.rank);
  switch (call.kind) {
    case Kind::bcast:
      return gdrx.Broadcast(in.at, in.at != nullptr ? in.at : out.at, block, gdrxByte, call.root,
                            comm, nullptr, nullptr);
    case Kind::allgather:
      return gdrx.AllGather(in.at, out.at, block, gdrxByte, comm, nullptr, nullptr);
    case Kind::allgatherv:
      return gdrx.AllGatherv(in.at, out.at, out.counts, out.places, gdrxByte, comm, nullptr,
                             nullptr);
    case Kind::alltoall:
      return gdrx.AllToAll(in.at, out.at, block, gdrxByte, comm, nullptr, nullptr);
    case Kind::alltoallv:
      return gdrx.AllToAllv(in.at, in.counts, in.places, out.at, out.counts, out.places, gdrxByte,
                            comm, nullptr, nullptr);
    case Kind::gather:
      return gdrx.Gather(in.at, out.at, block, gdrxByte, call.root, comm, nullptr, nullptr);
    case Kind::gatherv:
      return gdrx.Gatherv(in.at, out.counts != nullptr ? out.counts[own] : block, out.at,
                          out.counts, out.places, gdrxByte, call.root, comm, nullptr, nullptr);
    case Kind::scatter:
      return gdrx.Scatter(in.at, out.at, block, gdrxByte, call.root, comm, nullptr, nullptr);
    case Kind::scatterv:
      return gdrx.Scatterv(in.at, in.counts, in.places, out.at,
                           in.counts != nullptr ? in.counts[own] : block, gdrxByte, call.root, comm,
                           nullptr, nullptr);
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

gdrxResult_t move(const Call& call, const Plan& plan, State& state) {
  std::size_t* const lists = state.lists.data();
  Bytes in = bytes_of(plan.in, state.packed_in, lists);
  Bytes out =
      bytes_of(plan.out, state.packed_out, lists + 2 * static_cast<std::ptrdiff_t>(state.size));
  pack(plan.in, in, 0, plan.in.blocks, state.comm);
  if (plan.in_place) place_in(call, plan, state, in, out);
  const gdrxResult_t result = send_off(call, in, out, state);
  if (result == gdrxSuccess) unpack(plan.out, out, state.comm);
  return result;
}

}  // namespace gdrx::mpi
