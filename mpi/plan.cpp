// SPDX-License-Identifier: Apache-2.0
#include "mpi/plan.hpp"

namespace gdrx::mpi {
namespace {

constexpr int kBad = -1;

// Elements of all blocks, or kBad.
std::ptrdiff_t sum_of(List counts, int blocks) noexcept {
  if (counts == nullptr) return kBad;
  std::ptrdiff_t sum = 0;
  for (int i = 0; i < blocks; ++i) {
    if (counts[i] < 0) return kBad;
    sum += counts[i];
  }
  return sum;
}

Verdict look_at_reduction(const Call& call, int rank, int size, Plan& plan) noexcept {
  const auto op = operator_of(call.op);
  if (!op) return Verdict::operator_;
  const Type* const type = predefined(call.recv_type);
  if (type == nullptr) return Verdict::type;  // MPI refuses it, or knows how
  if (!takes(type->family, *op)) return Verdict::type;
  std::ptrdiff_t elements = call.recv_count;
  if (call.kind == Kind::reduce_scatter_block) elements *= size;
  if (call.kind == Kind::reduce_scatter) elements = sum_of(call.recv_counts, size);
  if (elements < 0) return Verdict::argument;
  plan.op = *op;
  plan.type = type;
  plan.elements = static_cast<std::size_t>(elements);
  plan.bytes = plan.elements * static_cast<std::size_t>(type->extent);
  plan.in_place = call.send == MPI_IN_PLACE;
  const bool to_others = call.kind == Kind::reduce && rank != call.root;
  const bool gets_nothing = (call.kind == Kind::exscan && rank == 0) ||
                            (call.kind == Kind::reduce_scatter && call.recv_counts[rank] == 0);
  const bool needs_recv = plan.in_place || !(to_others || gets_nothing);
  if (plan.in_place && to_others) return Verdict::argument;
  if (plan.bytes > 0 && (call.send == nullptr || (needs_recv && call.recv == nullptr))) {
    return Verdict::argument;
  }
  return Verdict::taken;
}

// False: MPI is to say what is wrong.
bool set(Side& side, const void* at, int blocks, std::ptrdiff_t count, MPI_Datatype handle,
         List counts = {}, List places = {}) noexcept {
  const auto type = type_of(handle);
  if (!type || count < 0) return false;
  side = {
      static_cast<std::byte*>(const_cast<void*>(at)), blocks, count, counts, places, handle, *type};
  return at != nullptr || !type->plain || (counts == nullptr && count == 0) ||
         (counts != nullptr && sum_of(counts, blocks) == 0);
}

bool set_send(Side& side, const Call& call, int blocks) noexcept {
  return set(side, call.send, blocks, call.send_count, call.send_type);
}
bool set_recv(Side& side, const Call& call, int blocks) noexcept {
  return set(side, call.recv, blocks, call.recv_count, call.recv_type);
}
bool set_send_lists(Side& side, const Call& call, int size) noexcept {
  return sum_of(call.send_counts, size) >= 0 && call.send_places != nullptr &&
         set(side, call.send, size, 0, call.send_type, call.send_counts, call.send_places);
}
bool set_recv_lists(Side& side, const Call& call, int size) noexcept {
  return sum_of(call.recv_counts, size) >= 0 && call.recv_places != nullptr &&
         set(side, call.recv, size, 0, call.recv_type, call.recv_counts, call.recv_places);
}

// One side of one block, the other of one a rank, here `own`.
bool agree(const Side& one, const Side& all, int own) noexcept {
  return one.blocks == 0 || all.blocks == 0 || one.bytes(0) == all.bytes(own);
}

// The sides that this rank has. False: MPI is to say what is wrong.
bool set_sides(const Call& call, int rank, int size, Plan& plan) noexcept {
  Side& in = plan.in;
  Side& out = plan.out;
  const bool root = rank == call.root;
  const bool send_in_place = plan.in_place = call.send == MPI_IN_PLACE;
  switch (call.kind) {
    case Kind::bcast:
      plan.in_place = false;
      return set_recv(root ? in : out, call, 1);
    case Kind::allgather:
      return set_recv(out, call, size) && (send_in_place || set_send(in, call, 1)) &&
             agree(in, out, 0);
    case Kind::allgatherv:
      return set_recv_lists(out, call, size) && (send_in_place || set_send(in, call, 1)) &&
             agree(in, out, rank);
    case Kind::alltoall:
      return set_recv(out, call, size) && (send_in_place || set_send(in, call, size)) &&
             agree(in, out, 0);
    case Kind::alltoallv:
      return set_recv_lists(out, call, size) && (send_in_place || set_send_lists(in, call, size)) &&
             (send_in_place || in.bytes(rank) == out.bytes(rank));
    case Kind::gather:
      if (!root) return !send_in_place && set_send(in, call, 1);
      return set_recv(out, call, size) && (send_in_place || set_send(in, call, 1)) &&
             agree(in, out, 0);
    case Kind::gatherv:
      if (!root) return !send_in_place && set_send(in, call, 1);
      return set_recv_lists(out, call, size) && (send_in_place || set_send(in, call, 1)) &&
             agree(in, out, rank);
    case Kind::scatter:
    case Kind::scatterv: {
      const bool recv_in_place = plan.in_place = call.recv == MPI_IN_PLACE;
      if (!root) return !recv_in_place && set_recv(out, call, 1);
      const bool lists = call.kind == Kind::scatterv;
      return (lists ? set_send_lists(in, call, size) : set_send(in, call, size)) &&
             (recv_in_place || set_recv(out, call, 1)) && agree(out, in, lists ? rank : 0);
    }
    case Kind::barrier:
    case Kind::allreduce:
    case Kind::reduce:
    case Kind::reduce_scatter_block:
    case Kind::reduce_scatter:
    case Kind::scan:
    case Kind::exscan:
      break;
  }
  plan.in_place = false;
  return true;
}

std::size_t bytes_of(const Side& side) noexcept {
  if (side.counts == nullptr) return side.bytes(0) * static_cast<std::size_t>(side.blocks);
  return static_cast<std::size_t>(sum_of(side.counts, side.blocks)) * side.type.size;
}

// What is the same on every rank: a block's bytes times the blocks; of lists that only some ranks
// have, this rank's own.
std::size_t judged(const Call& call, int size, const Plan& plan) noexcept {
  const Side& any = plan.out.blocks > 0 ? plan.out : plan.in;
  if (any.blocks == 0) return 0;
  const bool equal_blocks = call.kind == Kind::allgather || call.kind == Kind::alltoall ||
                            call.kind == Kind::gather || call.kind == Kind::scatter;
  return equal_blocks ? any.bytes(0) * static_cast<std::size_t>(size) : bytes_of(any);
}

}  // namespace

Verdict look(const Call& call, int rank, int size, Plan& plan) noexcept {
  const Trait& trait = trait_of(call.kind);
  if (trait.rooted && (call.root < 0 || call.root >= size)) return Verdict::argument;
  if (trait.reduces) return look_at_reduction(call, rank, size, plan);
  if (!set_sides(call, rank, size, plan)) return Verdict::argument;
  plan.bytes = judged(call, size, plan);
  return Verdict::taken;
}

}  // namespace gdrx::mpi
