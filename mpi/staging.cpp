// SPDX-License-Identifier: Apache-2.0
#include "mpi/staging.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "mpi/settings.hpp"

namespace gdrx::mpi {
namespace {

// Bytes of a buffer that a call may touch, from its address on.
struct Span {
  std::ptrdiff_t from = 0;
  std::ptrdiff_t to = 0;
};

struct Shape {
  std::ptrdiff_t lowest = 0;  // of one element's bytes
  std::ptrdiff_t end = 0;
  std::ptrdiff_t extent = 0;
};

// False: MPI says what is wrong with the type.
bool measure(MPI_Datatype type, Shape& shape) noexcept {
  MPI_Aint bound = 0;
  MPI_Aint extent = 0;
  MPI_Aint lowest = 0;
  MPI_Aint true_extent = 0;
  static const MPI_Datatype kNone = MPI_DATATYPE_NULL;
  if (type == kNone || number_of(type) == 0 ||
      real::Type_get_extent(type, &bound, &extent) != MPI_SUCCESS ||
      real::Type_get_true_extent(type, &lowest, &true_extent) != MPI_SUCCESS) {
    return false;
  }
  shape = {lowest, lowest + true_extent, extent};
  return true;
}

void add(Span& span, const Shape& shape, std::ptrdiff_t place, std::ptrdiff_t count) noexcept {
  if (count <= 0) return;
  const std::ptrdiff_t first = place * shape.extent;
  const std::ptrdiff_t last = (place + count - 1) * shape.extent;
  const Span one{std::min(first, last) + shape.lowest, std::max(first, last) + shape.end};
  const bool is_first = span.from == span.to;
  span = is_first ? one : Span{std::min(span.from, one.from), std::max(span.to, one.to)};
}

struct Ranks {
  int group = 0;   // in this rank's
  int others = 0;  // blocks that a side with one a rank has
  int own = 0;
  bool root = false;
  bool takes_part = true;  // in a rooted call between groups some do not
};

bool ask(const Call& call, Ranks& ranks) noexcept {
  int between = 0;
  if (real::Comm_test_inter(call.comm, &between) != MPI_SUCCESS) return false;
  const int asked = between != 0 ? real::Comm_remote_size(call.comm, &ranks.others)
                                 : real::Comm_size(call.comm, &ranks.others);
  if (asked != MPI_SUCCESS || real::Comm_rank(call.comm, &ranks.own) != MPI_SUCCESS ||
      real::Comm_size(call.comm, &ranks.group) != MPI_SUCCESS) {
    return false;
  }
  ranks.root = between != 0 ? call.root == MPI_ROOT : call.root == ranks.own;
  ranks.takes_part = between == 0 || call.root != MPI_PROC_NULL;
  return true;
}

// One block, or one a rank, of a side.
Span span_of(MPI_Datatype type, std::ptrdiff_t count, List counts, List places, int blocks) {
  Span span;
  Shape shape;
  if (!measure(type, shape)) return span;
  if (counts == nullptr) {
    add(span, shape, 0, count * blocks);
    return span;
  }
  std::ptrdiff_t next = 0;
  for (int i = 0; i < blocks; ++i) {
    add(span, shape, places != nullptr ? places[i] : next, counts[i]);
    next += counts[i];
  }
  return span;
}

// Of the buffers that are asked for; none where this rank's is not looked at. The arguments of
// others may be anything, as in place.
void spans_of(const Call& call, const Ranks& ranks, Span* send, Span* recv) {
  const Trait& trait = trait_of(call.kind);
  const bool gathers = call.kind == Kind::gather || call.kind == Kind::gatherv;
  const bool scatters = call.kind == Kind::scatter || call.kind == Kind::scatterv;
  const bool in_place = call.send == MPI_IN_PLACE;
  const int all = ranks.others;
  if (!ranks.takes_part || call.kind == Kind::barrier) return;
  if (trait.reduces) {
    const bool lists = call.kind == Kind::reduce_scatter;
    const bool blocks = call.kind == Kind::reduce_scatter_block;
    const Span whole = span_of(call.recv_type, call.recv_count, lists ? call.recv_counts : List(),
                               nullptr, lists || blocks ? ranks.group : 1);
    const std::ptrdiff_t own = lists ? call.recv_counts[ranks.own] : call.recv_count;
    if (send != nullptr) *send = whole;
    const bool exscan_first = call.kind == Kind::exscan && ranks.own == 0;
    if (recv == nullptr || exscan_first || (call.kind == Kind::reduce && !ranks.root)) return;
    *recv = in_place ? whole : span_of(call.recv_type, own, nullptr, nullptr, 1);
    return;
  }
  const bool many_sent = scatters || call.kind == Kind::alltoall || call.kind == Kind::alltoallv;
  const bool many_got = !scatters && call.kind != Kind::bcast;
  if (send != nullptr && call.kind != Kind::bcast && (!scatters || ranks.root)) {
    *send = span_of(call.send_type, call.send_count, call.send_counts, call.send_places,
                    many_sent ? all : 1);
  }
  if (recv != nullptr && (!gathers || ranks.root)) {
    *recv = span_of(call.recv_type, call.recv_count, call.recv_counts, call.recv_places,
                    many_got ? all : 1);
  }
}

}  // namespace

void* Staging::stage(const void* at, std::ptrdiff_t from, std::ptrdiff_t to, Copy& copy) {
  copy.bytes = static_cast<std::size_t>(to - from);
  copy.host = std::make_unique_for_overwrite<std::byte[]>(copy.bytes);
  copy.gpu = const_cast<std::byte*>(static_cast<const std::byte*>(at)) + from;
  copy_from_gpu(copy.host.get(), copy.gpu, copy.bytes);
  return copy.host.get() - from;
}

bool Staging::mpi_knows_gpus() noexcept {
  static const bool kKnows = [] {
    const auto query = reinterpret_cast<int (*)()>(find_function("MPIX_Query_cuda_support"));
    return query != nullptr && query() == 1;
  }();
  return kKnows;
}

bool Staging::begin(Call& call) noexcept {
  if (settings().off) return false;
  const bool sends = call.send != MPI_IN_PLACE && is_on_gpu(call.send);
  const bool gets = call.recv != MPI_IN_PLACE && is_on_gpu(call.recv);
  static const MPI_Comm kNone = MPI_COMM_NULL;
  if ((!sends && !gets) || call.form != Form::blocking || call.comm == kNone) return false;
  Ranks ranks;
  Span send;
  Span recv;
  if (!ask(call, ranks)) return false;  // MPI says what is wrong
  try {
    spans_of(call, ranks, sends ? &send : nullptr, gets ? &recv : nullptr);
    // What is received is read as well: not all of it is written, where a type has gaps.
    if (sends && send.to > send.from) call.send = stage(call.send, send.from, send.to, send_);
    if (gets && recv.to > recv.from) call.recv = stage(call.recv, recv.from, recv.to, recv_);
    if (call.kind == Kind::bcast && ranks.root)
      send_ = std::move(recv_);  // nothing is written there
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "gdrx: no memory for the copy of a buffer on a GPU\n");
    std::abort();
  }
  return true;
}

}  // namespace gdrx::mpi
