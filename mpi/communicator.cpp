// SPDX-License-Identifier: Apache-2.0
// The communicators, from the first look to the end.
#include "mpi/communicator.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <utility>

#include "mpi/abi/abi.hpp"
#include "mpi/agree.hpp"
#include "mpi/copied_requests.hpp"
#include "mpi/faults.hpp"
#include "mpi/persistent.hpp"
#include "mpi/requests.hpp"
#include "mpi/settings.hpp"
#include "mpi/waiting.hpp"

namespace gdrx::mpi {
namespace {

enum class Phase : std::uint8_t { before, on, off };
std::atomic<Phase> phase{Phase::before};
std::mutex mutex;  // of all below; never held in a call of MPI's that other ranks take part in
int keyval = 0;
State* unused = nullptr;     // states are never freed: a look beside the lock may still see one
std::vector<State*> states;  // all that were ever made

// By the handle's hash: the state that was last looked for there.
constexpr std::size_t kRecent = 64;
std::array<std::atomic<State*>, kRecent> recent;

std::atomic<State*>& recent_of(std::uintptr_t handle) noexcept {
  return recent[(handle * 0x9E3779B97F4A7C15U) >> 58U];
}

// Between the free of a communicator and the meeting of its ranks.
struct Leaving {
  const State* state;  // while calls of it are pending, else null
  gdrxComm_t comm;
  gdrxRequest_t request;
};
std::vector<Leaving> leaving;

// mutex held. Never waits.
void look_at_leaving() noexcept {
  const auto has_left = [](Leaving& one) {
    if (one.state != nullptr && one.state->pending > 0) return false;
    if (engine()->Test(&one.request) == gdrxInProgress) return false;
    engine()->CommDestroy(one.comm);
    return true;
  };
  leaving.erase(std::remove_if(leaving.begin(), leaving.end(), has_left), leaving.end());
}

// mutex held. The ranks meet on their own.
void leave(State& state) noexcept {
  if (state.gdrx == nullptr) return;
  const std::lock_guard lock(pending_mutex());
  Leaving one{state.pending > 0 ? &state : nullptr, std::exchange(state.gdrx, nullptr), nullptr};
  if (engine()->CommFinalize(one.comm, &one.request) == gdrxSuccess) {
    leaving.push_back(one);
  } else {
    engine()->CommDestroy(one.comm);  // it has failed: nobody is waited for
  }
}

// mutex held.
void put_away(State& state) noexcept {
  state.handle = 0;
  leave(state);
  state.work = {};
  if (state.pending == 0) state.next = std::exchange(unused, &state);
  if (phase == Phase::on) look_at_leaving();
}

// MPI's, when a communicator is freed.
int free_state(MPI_Comm, int, void* attribute, void*) {
  const std::lock_guard lock(mutex);
  State& state = *static_cast<State*>(attribute);
  State* expected = &state;
  recent_of(state.handle).compare_exchange_strong(expected, nullptr);
  if (any_persistent()) {
    for (State* const own : states) {
      if (own->parent != &state) continue;
      own->handle = 0;  // nor is its error handler called any more
      own->parent = nullptr;
    }
  }
  put_away(state);
  return MPI_SUCCESS;
}

// A duplicate is a communicator of its own.
int copy_state(MPI_Comm, int, void*, void*, void*, int* copied) {
  *copied = 0;
  return MPI_SUCCESS;
}

// Whether calls may be taken from now on.
bool begin() noexcept {
  const std::lock_guard lock(mutex);
  if (phase != Phase::before) return phase == Phase::on;
  // First of all: handles of another interface may be cut, so such a call cannot even be passed on.
  if (!is_served() || settings().off) {
    phase = Phase::off;
    return false;
  }
  int initialized = 0;
  int finalized = 0;
  if (real::Initialized(&initialized) != MPI_SUCCESS || initialized == 0) return false;
  const bool works =
      ranks_agree() && real::Finalized(&finalized) == MPI_SUCCESS && finalized == 0 &&
      real::Comm_create_keyval(copy_state, free_state, &keyval, nullptr) == MPI_SUCCESS;
  phase = works ? Phase::on : Phase::off;
  return works;
}

State* new_state() noexcept {
  const std::lock_guard lock(mutex);
  if (unused != nullptr) return std::exchange(unused, unused->next);
  auto* const made = new State;
  states.push_back(made);
  return made;
}

// As MPI knows the communicator. Null: it does not.
State* meet(MPI_Comm comm) noexcept {
  int between_groups = 0;
  int size = 0;
  int rank = 0;
  if (real::Comm_test_inter(comm, &between_groups) != MPI_SUCCESS ||
      real::Comm_size(comm, &size) != MPI_SUCCESS || real::Comm_rank(comm, &rank) != MPI_SUCCESS) {
    return nullptr;
  }
  State* const state = new_state();
  const bool alone = between_groups != 0 || size == 1;
  state->stage = alone ? State::Stage::declined : State::Stage::fresh;
  state->why = Verdict::alone;
  state->comm = comm;
  state->rank = rank;
  state->size = size;
  state->choice = &choice_for(size);
  state->saved = 0;
  state->persistent = Verdict::taken;
  state->error = 0;
  state->error_stays = false;
  state->stream = gdrxStreamNone;
  state->apart = false;
  if (!alone) state->work.lists.resize(4 * static_cast<std::size_t>(size));
  state->handle = number_of(comm);
  if (real::Comm_set_attr(comm, keyval, state) == MPI_SUCCESS) return state;
  free_state(comm, keyval, state, nullptr);
  return nullptr;
}

State* look_up(MPI_Comm comm) noexcept {
  static const MPI_Comm kNone = MPI_COMM_NULL;
  if (comm == kNone || number_of(comm) == 0) return nullptr;  // MPI says so
  void* attribute = nullptr;
  int found = 0;
  if (real::Comm_get_attr(comm, keyval, &attribute, &found) != MPI_SUCCESS) return nullptr;
  State* const state = found != 0 ? static_cast<State*>(attribute) : meet(comm);
  if (state != nullptr) recent_of(number_of(comm)) = state;
  return state;
}

}  // namespace

State* state_of(MPI_Comm comm) noexcept {
  if (phase.load(std::memory_order_acquire) != Phase::on && !begin()) return nullptr;
  if (Freeing::is_of(comm)) return nullptr;
  const std::uintptr_t handle = number_of(comm);
  State* const state = recent_of(handle).load(std::memory_order_acquire);
  const bool is_it = state != nullptr && state->handle.load(std::memory_order_relaxed) == handle;
  return is_it ? state : look_up(comm);
}

State* look_again(State* state, MPI_Comm comm) noexcept {
  void* attribute = nullptr;
  int found = 0;
  const bool is_still = real::Comm_get_attr(comm, keyval, &attribute, &found) == MPI_SUCCESS &&
                        found != 0 && attribute == state;
  return is_still ? state : look_up(comm);
}

int raise(State& state, const char* why) noexcept { return raise(state, why, end_of(state)); }

int raise(State& state, const char* why, gdrxResult_t end) noexcept {
  if (const int fault = code_of_fault(state, end)) {
    const bool is_news = std::exchange(state.error, fault) != fault;
    state.error_stays = true;
    if (is_news && fault != kAbi.revoked) std::fprintf(stderr, "gdrx: %s\n", why);
    if (state.handle != 0) real::Comm_call_errhandler(state.comm, fault);
    return fault;
  }
  static int kind = MPI_ERR_OTHER;
  static const bool known = real::Add_error_class(&kind) == MPI_SUCCESS;
  if (!state.error_stays) {
    char text[MPI_MAX_ERROR_STRING];
    std::snprintf(text, sizeof text, "gdrx: %s", why);
    state.error = kind;
    if (known && real::Add_error_code(kind, &state.error) == MPI_SUCCESS) {
      real::Add_error_string(state.error, text);
    }
    std::fprintf(stderr, "%s\n", text);
    state.error_stays = end != gdrxSuccess;  // else it was one call's, and gdrx goes on
  }
  if (state.handle != 0) real::Comm_call_errhandler(state.comm, state.error);
  return state.error;
}

State& own_state_of(const State& parent) noexcept {
  State& own = *new_state();
  own.stage = State::Stage::fresh;
  own.comm = parent.comm;
  own.rank = parent.rank;
  own.size = parent.size;
  own.choice = parent.choice;
  own.error = 0;
  own.error_stays = false;
  own.stream = gdrxStreamNone;
  own.apart = false;
  const std::lock_guard lock(mutex);
  if (phase == Phase::on) look_at_leaving();
  own.parent = &parent;
  own.handle = parent.handle.load();
  return own;
}

void end_own(State& state) noexcept {
  const std::lock_guard lock(mutex);
  state.parent = nullptr;
  put_away(state);
}

void abort_calls_of(const State& state) noexcept {
  const std::lock_guard lock(mutex);
  for (const State* const one : states) {
    if ((one == &state || one->parent == &state) && one->gdrx != nullptr) {
      engine()->CommAbort(one->gdrx);
    }
  }
}

void end_communicators() noexcept {
  if (phase.exchange(Phase::off) != Phase::on) return;
  std::unique_lock lock(mutex);
  for (State* const state : states) leave(*state);
  // All ranks are in MPI_Finalize, or dead: then gdrx says so.
  for (std::uint64_t rounds = 0; !leaving.empty(); ++rounds) {
    lock.unlock();
    drive_all();  // may call the program's error handler, which may call MPI
    lock.lock();
    look_at_leaving();
    while_waiting(nullptr, rounds);
  }
  lock.unlock();
  look_at_freed();
  end_persistent();
  end_going_on();
}

}  // namespace gdrx::mpi
