// SPDX-License-Identifier: Apache-2.0
#include "mpi/staging.hpp"

#include "mpi/settings.hpp"

namespace gdrx::mpi {
namespace {

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
struct Blocks {
  MPI_Datatype type{};
  std::ptrdiff_t count = 0;
  List counts = {};
  List places = {};
  int blocks = 0;

  void add_to(Touched& touched) const {
    if (counts == nullptr) return touched.add_blocks(type, count, blocks);
    std::ptrdiff_t next = 0;
    for (int i = 0; i < blocks; ++i) {
      touched.add(type, places != nullptr ? places[i] : next, counts[i]);
      next += counts[i];
    }
  }
};

// Of the buffers that are asked for; none where this rank's is not looked at. The arguments of
// others may be anything, as in place.
void blocks_of(const Call& call, const Ranks& ranks, Blocks& send, Blocks& recv) {
  const Trait& trait = trait_of(call.kind);
  const bool gathers = call.kind == Kind::gather || call.kind == Kind::gatherv;
  const bool scatters = call.kind == Kind::scatter || call.kind == Kind::scatterv;
  const bool in_place = call.send == MPI_IN_PLACE;
  const int all = ranks.others;
  if (!ranks.takes_part || call.kind == Kind::barrier) return;
  if (trait.reduces) {
    const bool lists = call.kind == Kind::reduce_scatter;
    const bool blocks = call.kind == Kind::reduce_scatter_block;
    const Blocks whole{call.recv_type,
                       call.recv_count,
                       lists ? call.recv_counts : List(),
                       {},
                       lists || blocks ? ranks.group : 1};
    const std::ptrdiff_t own = lists ? call.recv_counts[ranks.own] : call.recv_count;
    send = whole;
    const bool exscan_first = call.kind == Kind::exscan && ranks.own == 0;
    if (exscan_first || (call.kind == Kind::reduce && !ranks.root)) return;
    recv = in_place ? whole : Blocks{call.recv_type, own, {}, {}, 1};
    return;
  }
  const bool many_sent = scatters || call.kind == Kind::alltoall || call.kind == Kind::alltoallv;
  const bool many_got = !scatters && call.kind != Kind::bcast;
  if (call.kind != Kind::bcast && (!scatters || ranks.root)) {
    send = {call.send_type, call.send_count, call.send_counts, call.send_places,
            many_sent ? all : 1};
  }
  if (!gathers || ranks.root) {
    recv = {call.recv_type, call.recv_count, call.recv_counts, call.recv_places,
            many_got ? all : 1};
  }
}

}  // namespace

int Staging::copied(int result, const Call& call) noexcept {
  if (call.form == Form::blocking) return copies_.done(result);
  return copies_.done(result, call.request, call.form == Form::persistent);
}

void Staging::begin_for_mpi(Call& call) noexcept {
  const Passing passing;
  if (!mpi_knows_gpus()) begin(call);
}

bool Staging::begin(Call& call) noexcept {
  if (settings().off) return false;
  const bool sends = call.send != MPI_IN_PLACE && is_on_gpu(call.send);
  const bool gets = call.recv != MPI_IN_PLACE && is_on_gpu(call.recv);
  static const MPI_Comm kNone = MPI_COMM_NULL;
  if ((!sends && !gets) || call.comm == kNone) return false;
  Ranks ranks;
  Blocks send;
  Blocks recv;
  if (!ask(call, ranks)) return false;  // MPI says what is wrong
  blocks_of(call, ranks, send, recv);
  if (sends) {
    call.send = copies_.send_blocks(call.send, [&](Touched& touched) { send.add_to(touched); });
  }
  if (gets) {
    call.recv = copies_.recv_blocks(call.recv, [&](Touched& touched) { recv.add_to(touched); });
  }
  if (call.kind == Kind::bcast && ranks.root) copies_.receive_nothing();
  return true;
}

}  // namespace gdrx::mpi
