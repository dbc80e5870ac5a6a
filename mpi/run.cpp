// SPDX-License-Identifier: Apache-2.0
// Reductions, and the hook's decision.
#include "mpi/run.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>

#include "mpi/explain.hpp"
#include "mpi/pack.hpp"
#include "mpi/persistent.hpp"
#include "mpi/requests.hpp"
#include "mpi/settings.hpp"
#include "mpi/staging.hpp"

namespace gdrx::mpi {
namespace {

// Making gdrx's communicator takes 0.2 ms a rank, which calls have to save first: counted as 4 us
// a call, and more of large ones, of which small ones save less. docs/performance/mpi.md has the
// figures.
constexpr std::size_t kCostOfARank = 250'000;  // nanoseconds
constexpr std::size_t kSavedByACall = 4'000;
constexpr std::size_t kBytesOfANanosecond = 8;

bool pays(State& state, std::size_t bytes) noexcept {
  state.saved += kSavedByACall + bytes / kBytesOfANanosecond;
  return state.saved >= kCostOfARank * static_cast<std::size_t>(state.size);
}

// In place the input is the whole vector at recv, and the result is to be at its beginning. gdrx
// would leave it where this rank's part is, which MPIs leave as it was, and programs look there.
gdrxResult_t reduce_scatter(const Call& call, const Plan& plan, State& state, Work& work,
                            gdrxRequest_t* request) {
  const Engine& gdrx = *engine();
  const auto extent = static_cast<std::size_t>(plan.type->extent);
  std::size_t own = static_cast<std::size_t>(call.recv_count);
  const bool lists = call.kind == Kind::reduce_scatter;
  if (lists) {
    for (int i = 0; i < state.size; ++i) {
      work.lists[static_cast<std::size_t>(i)] = static_cast<std::size_t>(call.recv_counts[i]);
    }
    own = work.lists[static_cast<std::size_t>(state.rank)];
  }
  const void* const from = plan.in_place ? call.recv : call.send;
  void* to = plan.in_place ? work.packed_out.of(own * extent) : call.recv;
  if (to == nullptr) to = work.lists.data();  // nothing comes, and MPI lets it be no memory at all
  const gdrxResult_t result =
      lists ? gdrx.ReduceScatterv(from, to, work.lists.data(), plan.type->gdrx, plan.op, state.gdrx,
                                  call.stream, request)
            : gdrx.ReduceScatter(from, to, own, plan.type->gdrx, plan.op, state.gdrx, call.stream,
                                 request);
  if (plan.in_place) {
    work.moved_from = to;
    work.moved_to = call.recv;
    work.moved = own * extent;
  }
  return result;
}

gdrxResult_t reduce(const Call& call, const Plan& plan, State& state, Work& work,
                    gdrxRequest_t* request) {
  const Engine& gdrx = *engine();
  const void* const from = plan.in_place ? call.recv : call.send;
  const gdrxDataType_t type = plan.type->gdrx;
  void* const to = call.recv;
  const gdrxComm_t comm = state.gdrx;
  if (call.kind == Kind::allreduce) {
    return gdrx.AllReduce(from, to, plan.elements, type, plan.op, comm, call.stream, request);
  }
  if (call.kind == Kind::reduce) {
    return gdrx.Reduce(from, to, plan.elements, type, plan.op, call.root, comm, call.stream,
                       request);
  }
  if (call.kind == Kind::scan) {
    return gdrx.Scan(from, to, plan.elements, type, plan.op, comm, call.stream, request);
  }
  if (call.kind == Kind::exscan) {
    // Rank 0's is left as it is, and MPI lets it be no memory at all.
    void* const none = state.rank == 0 ? const_cast<void*>(from) : to;
    return gdrx.Exscan(from, none, plan.elements, type, plan.op, comm, call.stream, request);
  }
  return reduce_scatter(call, plan, state, work, request);
}

std::uint64_t now() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// Equal on every rank: from the settings, the collective, the communicator and what every rank
// knows of the call's size.
Verdict glance(const Call& call, const State& state, Plan& plan) noexcept {
  if (state.stage == State::Stage::declined) return state.why;
  const bool all = settings().all;
  const bool blocks = call.form == Form::blocking;
  if (!all && (!blocks || !state.choice->has(call.kind))) return Verdict::size;
  if (!blocks && call.request == nullptr) return Verdict::argument;
  const Verdict looked = look(call, state.rank, state.size, plan);
  if (looked != Verdict::taken) return looked;
  const bool nothing = trait_of(call.kind).sized && plan.bytes == 0 && call.kind != Kind::barrier;
  if (nothing) return Verdict::nothing;
  if (!all && !state.choice->takes(call.kind, plan.bytes)) return Verdict::size;
  return Verdict::taken;
}

// Of a call that could be taken. A nonblocking one waits for nobody, so it cannot make gdrx's
// communicator; all ranks are alike, as calls of a communicator have one order.
Verdict judge(const Call& call, State& state, std::size_t bytes) noexcept {
  if (call.form == Form::persistent) return Verdict::taken;  // if its own communicator can be made
  if (state.stage == State::Stage::fresh) {
    if (call.form == Form::nonblocking) return Verdict::early;
    if (!settings().all && !pays(state, bytes)) return Verdict::early;
    make(state);
  }
  if (state.apart && !settings().all) return Verdict::hosts;  // it is there for calls in its stream
  return state.stage == State::Stage::live ? Verdict::taken : state.why;
}

int run(const Call& call, const Plan& plan, State& state) {
  const gdrxResult_t result = state.pending == 0 ? start(call, plan, state, state.work, nullptr)
                                                 : run_behind_pending(call, plan, state);
  if (result != gdrxSuccess) return raise(state, engine()->GetLastError(state.gdrx));
  finish(state.work);
  return MPI_SUCCESS;
}

// The others are in the call already: they are told.
int give_up(State& state, const char* why) noexcept {
  engine()->CommAbort(state.gdrx);
  return raise(state, why);
}

}  // namespace

gdrxResult_t start(const Call& call, const Plan& plan, State& state, Work& work,
                   gdrxRequest_t* request) {
  work.bytes.packed = false;
  work.moved = 0;
  if (call.kind == Kind::barrier) return engine()->Barrier(state.gdrx, call.stream, request);
  return trait_of(call.kind).reduces ? reduce(call, plan, state, work, request)
                                     : move(call, plan, state, work, request);
}

void finish(const Work& work) {
  if (work.moved > 0) std::memmove(work.moved_to, work.moved_from, work.moved);
  if (!work.bytes.packed) return;
  for (int i = 0; i < work.out.blocks; ++i) unpack_block(work.out, i, work.bytes.begin_of(i));
}

Hook::Hook(Call& call, Staging& staging) noexcept : kind_(call.kind), form_(call.form) {
  decide(call, staging);
  if (!taken()) staging.for_mpi(call);
}

void Hook::decide(Call& call, Staging& staging) noexcept {
  if (Passing::on()) return;
  State* state = state_of(call.comm);
  if (state == nullptr) return;
  explained_ = settings().explain;
  if (explained_) [[unlikely]]
    began_ = now();
  if (state->stage == State::Stage::declined) state = look_again(state, call.comm);
  if (state == nullptr) return;
  if (state->stage == State::Stage::declined) {
    verdict_ = state->why;
    return;
  }
  Plan plan;
  verdict_ = glance(call, *state, plan);
  if (verdict_ == Verdict::taken) {
    State* const again = look_again(state, call.comm);
    if (again == nullptr) {
      verdict_ = Verdict::argument;
      return;
    }
    if (again != state) verdict_ = glance(call, *again, plan);
    state = again;
  }
  bytes_ = plan.bytes;
  if (verdict_ == Verdict::taken) verdict_ = judge(call, *state, bytes_);
  if (verdict_ != Verdict::taken) return;
  if (staging.for_gdrx(call)) look(call, state->rank, state->size, plan);  // of the copies
  if (form_ == Form::persistent) verdict_ = make_persistent(call, *state);
  if (verdict_ != Verdict::taken) return;
  result_ = take(call, plan, *state);
  if (explained_) [[unlikely]]
    note();
}

int Hook::take(const Call& call, const Plan& plan, State& state) noexcept {
  if (form_ == Form::persistent) return MPI_SUCCESS;  // until it is started
  try {
    return form_ == Form::nonblocking ? hand_out(call, plan, state) : run(call, plan, state);
  } catch (const std::bad_alloc&) {
    return give_up(state, "no memory to pack a call's data in");
  } catch (const std::exception& error) {
    return give_up(state, error.what());
  }
}

void Hook::note() const noexcept { note_call(kind_, form_, verdict_, bytes_, now() - began_); }

}  // namespace gdrx::mpi
