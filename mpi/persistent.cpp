// SPDX-License-Identifier: Apache-2.0
// MPI's request of a persistent call is a receive of nothing from this rank itself: it may be
// started again and again, and it is done when this rank sends to it. So MPI_Wait and all its
// sisters know what to do with it, beside any other request.
#include "mpi/persistent.hpp"

#include <array>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "mpi/pending.hpp"
#include "mpi/requests.hpp"
#include "mpi/run.hpp"
#include "mpi/settings.hpp"

namespace gdrx::mpi {
namespace {

constexpr int kMostTags = 32767;  // of every MPI

struct Persistent {
  Call call;
  Plan plan;
  Pending pending;
  MPI_Request handle{};
  std::array<MPI_Datatype, 2> types{MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
};

struct Calls {
  std::mutex mutex;  // taken before pending_mutex()
  std::unordered_map<std::uintptr_t, std::unique_ptr<Persistent>> all;
  std::vector<int> free_tags;
  int tags = 0;  // that were ever given
  MPI_Comm self{};
  bool has_self = false;
  std::atomic<bool> ended{false};  // with MPI
  std::atomic<int> taken{0};
};
Calls& calls() noexcept {
  static auto& ours = *new Calls;  // requests may be asked for while the program ends
  return ours;
}

// The mutex held.
int take_tag() {
  if (!calls().free_tags.empty()) {
    const int tag = calls().free_tags.back();
    calls().free_tags.pop_back();
    return tag;
  }
  if (calls().tags == kMostTags) {
    throw std::runtime_error("more persistent calls than MPI has tags");
  }
  const auto given = static_cast<std::size_t>(calls().tags);
  calls().free_tags.reserve(given + 1);  // to give it back cannot fail
  return ++calls().tags;
}

// The mutex held. What a receive needs, and this rank's part of the call.
void prepare(Persistent& one) {
  if (!calls().has_self) throw std::runtime_error("MPI made no copy of MPI_COMM_SELF");
  one.pending.tag = take_tag();
  if (real::Recv_init(nullptr, 0, MPI_BYTE, 0, one.pending.tag, calls().self, &one.handle) !=
      MPI_SUCCESS) {
    calls().free_tags.push_back(std::exchange(one.pending.tag, 0));
    throw std::runtime_error("MPI makes no persistent receive");
  }
}

// The program's lists and types may go once the call is made.
void own_all(Persistent& one, const State& state) {
  Call& call = one.call;
  std::vector<long>& lists = one.pending.own_lists;
  one.pending.work.lists.resize(4 * static_cast<std::size_t>(state.size));
  lists.reserve(4 * static_cast<std::size_t>(state.size));
  if (call.kind == Kind::reduce_scatter) {
    for (int i = 0; i < state.size; ++i) lists.push_back(call.recv_counts[i]);
    call.recv_counts = lists.data();
  }
  look(call, state.rank, state.size, one.plan);
  std::size_t made = 0;
  for (Side* const side : {&one.plan.in, &one.plan.out}) {
    keep_lists(*side, lists);
    if (side->blocks == 0 || predefined(side->handle) != nullptr) continue;
    side->handle = one.types[made++] = own_type_of(side->handle);
  }
}

// The mutex held.
void let_go(Persistent& one) noexcept {
  for (MPI_Datatype& type : one.types) {
    if (type != MPI_DATATYPE_NULL) real::Type_free(&type);
  }
  if (one.pending.tag != 0) calls().free_tags.push_back(one.pending.tag);
}

// The mutex held. Null: this rank cannot have the call.
Persistent* begin(const Call& call, const State& parent) noexcept {
  static bool told = false;
  auto one = std::unique_ptr<Persistent>();
  try {
    one = std::make_unique<Persistent>();
    one->call = call;
    prepare(*one);
    own_all(*one, parent);
    Persistent& made = *one;
    calls().all.emplace(number_of(made.handle), std::move(one));
    return &made;
  } catch (const std::exception& error) {
    if (!std::exchange(told, true)) {
      std::fprintf(stderr, "gdrx: MPI keeps a persistent call: %s\n", error.what());
    }
  }
  if (one == nullptr) return nullptr;
  if (one->pending.tag != 0) real::Request_free(&one->handle);
  let_go(*one);
  return nullptr;
}

Persistent* find(MPI_Request request) noexcept {
  const auto found = calls().all.find(number_of(request));
  return found != calls().all.end() ? found->second.get() : nullptr;
}

// Of a call that could not be started: its request is done with an error.
int fail(Persistent& one, const char* why) noexcept {
  one.pending.error = raise(*one.pending.state, why);
  complete_persistent(one.pending.tag, true);
  return one.pending.error;
}

// An error of the program's: one that is active, or of a program that has ended MPI.
int refuse_start(const State& state) noexcept {
  if (state.handle != 0) real::Comm_call_errhandler(state.comm, MPI_ERR_REQUEST);
  return MPI_ERR_REQUEST;
}

// Null: it has begun. The pending mutex held.
const char* post(Persistent& one) noexcept {
  Pending& pending = one.pending;
  State& state = *pending.state;
  try {
    expect(one.handle, pending);
  } catch (const std::exception&) {
    return "no memory for a request";
  }
  const char* why = nullptr;
  try {
    const gdrxResult_t begun = start(one.call, one.plan, state, pending.work, &pending.request);
    if (begun != gdrxSuccess) why = engine()->GetLastError(state.gdrx);
  } catch (const std::exception&) {
    engine()->CommAbort(state.gdrx);  // the others are in the call already: they are told
    why = "no memory to pack a call's data in";
  }
  if (why != nullptr) {
    expect_no_more(one.handle, pending);
    pending.active = false;
  }
  return why;
}

int start(Persistent& one) noexcept {
  Pending& pending = one.pending;
  {
    std::unique_lock lock(pending_mutex());
    if (pending.active || calls().ended) {
      lock.unlock();  // the program's error handler may wait for other requests
      return refuse_start(*pending.state);
    }
    pending.active = true;
    pending.why = nullptr;
    pending.error = MPI_SUCCESS;
  }
  const int result = real::Start(&one.handle);  // may call the program's error handler
  const char* why = nullptr;
  {
    const std::lock_guard lock(pending_mutex());
    if (result != MPI_SUCCESS) {
      pending.active = false;
      return result;
    }
    why = post(one);
  }
  return why == nullptr ? MPI_SUCCESS : fail(one, why);
}

}  // namespace

Verdict make_persistent(const Call& call, State& parent) noexcept {
  if (parent.persistent != Verdict::taken) return parent.persistent;
  Persistent* one = nullptr;
  {
    const std::lock_guard lock(calls().mutex);
    one = begin(call, parent);
  }
  State& state = own_state_of(parent);
  make(state, one != nullptr);
  const Verdict verdict = state.stage == State::Stage::live ? Verdict::taken : state.why;
  const std::lock_guard lock(calls().mutex);
  if (verdict != Verdict::taken) {
    end_own(state);
    // What is so for good, on every rank.
    if (verdict == Verdict::worlds || verdict == Verdict::hosts) parent.persistent = verdict;
    if (one == nullptr) return verdict;
    MPI_Request handle = one->handle;
    let_go(*one);
    calls().all.erase(number_of(handle));
    real::Request_free(&handle);
    return verdict;
  }
  one->pending.state = &state;
  *call.request = one->handle;
  ++calls().taken;
  return verdict;
}

void begin_persistent() noexcept {
  if (!settings().all) return;  // nothing is taken
  const std::lock_guard lock(calls().mutex);
  if (real::Comm_split(MPI_COMM_SELF, 0, 0, &calls().self) != MPI_SUCCESS) return;
  calls().has_self = real::Comm_set_errhandler(calls().self, MPI_ERRORS_RETURN) == MPI_SUCCESS;
  if (!calls().has_self) real::Comm_free(&calls().self);
}

bool any_persistent() noexcept { return calls().taken.load(std::memory_order_relaxed) > 0; }

bool is_persistent(MPI_Request request) noexcept {
  const std::lock_guard lock(calls().mutex);
  return find(request) != nullptr;
}

int start_persistent(MPI_Request request) noexcept {
  Persistent* one = nullptr;
  {
    const std::lock_guard lock(calls().mutex);
    one = find(request);
  }
  return one != nullptr ? start(*one) : MPI_ERR_REQUEST;
}

void complete_persistent(int tag, bool failed) noexcept {
  const char more_than_nothing = 0;  // which MPI calls an error of the receive's
  real::Send(&more_than_nothing, failed ? 1 : 0, MPI_BYTE, 0, tag, calls().self);
}

void forget_persistent(const MPI_Request* request) noexcept {
  if (request == nullptr || !is_persistent(*request)) return;
  wait_for(request, 1);
  const std::lock_guard lock(calls().mutex);
  const auto found = calls().all.find(number_of(*request));
  if (found == calls().all.end()) return;
  if (!calls().ended) {
    let_go(*found->second);
    end_own(*found->second->pending.state);
  }
  calls().all.erase(found);
  --calls().taken;
}

void end_persistent() noexcept {
  const std::lock_guard lock(calls().mutex);
  calls().ended = true;
  for (const auto& entry : calls().all) let_go(*entry.second);
  if (std::exchange(calls().has_self, false)) real::Comm_free(&calls().self);
}

}  // namespace gdrx::mpi
