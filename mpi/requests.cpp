// SPDX-License-Identifier: Apache-2.0
#include "mpi/requests.hpp"

#include <stdexcept>
#include <thread>
#include <unordered_map>

#include "mpi/run.hpp"
#include "mpi/waiting.hpp"

namespace gdrx::mpi {
namespace {

struct Pending {
  State* state = nullptr;
  gdrxRequest_t request = nullptr;
  Work work;
  MPI_Datatype own_type = MPI_DATATYPE_NULL;  // the program may free its type before the end
  int error = MPI_SUCCESS;
};

std::mutex mutex;  // of what follows, and of gdrx's communicators that have calls pending
std::unordered_map<std::uintptr_t, Pending*> pending;  // by the request's handle
std::atomic<int> count{0};

// MPI's, when the program has asked for a request that is done.
int on_query(void* extra, MPI_Status* status) {
  const int error = static_cast<Pending*>(extra)->error;
  real::Status_set_elements(status, MPI_BYTE, 0);
  real::Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  status->MPI_ERROR = error;
  return error;
}
int on_free(void* extra) {
  delete static_cast<Pending*>(extra);
  return MPI_SUCCESS;
}
int on_cancel(void*, int) { return MPI_SUCCESS; }

// mutex held. True: it is done, and MPI knows.
bool look_at(MPI_Request handle, Pending& one) noexcept {
  const gdrxComm_t comm = one.state->gdrx;  // null: the program has freed its communicator
  const gdrxResult_t result = engine()->Test(&one.request);
  if (result == gdrxInProgress) return false;
  const char* why = comm == nullptr ? "a call of a communicator that was freed failed"
                                    : engine()->GetLastError(comm);
  bool right = result == gdrxSuccess;
  try {
    if (right) finish(one.work);
  } catch (const std::exception& error) {
    why = error.what();
    right = false;
  }
  if (!right) one.error = raise(*one.state, why);
  if (one.own_type != MPI_DATATYPE_NULL) real::Type_free(&one.own_type);
  pending.erase(number_of(handle));
  --one.state->pending;
  --count;
  real::Grequest_complete(handle);  // `one` may be gone
  return true;
}

// A type of the program's as it is now, if it may be needed in the end.
Plan with_own_type(Plan plan, Pending& one) {
  if (plan.out.blocks == 0 || predefined(plan.out.handle) != nullptr) return plan;
  if (real::Type_dup(plan.out.handle, &one.own_type) != MPI_SUCCESS) {
    throw std::runtime_error("MPI does not duplicate a type of the program's");
  }
  plan.out.handle = one.own_type;
  return plan;
}

// mutex held. MPI's request for a call that is not begun yet.
MPI_Request make_request(std::unique_ptr<Pending> one) {
  MPI_Request handle{};
  if (real::Grequest_start(on_query, on_free, on_cancel, one.get(), &handle) != MPI_SUCCESS) {
    throw std::runtime_error("MPI makes no generalized request");
  }
  pending.emplace(number_of(handle), one.release());
  return handle;
}

// mutex held. Of one that did not begin.
void drop(MPI_Request handle) noexcept {
  pending.erase(number_of(handle));
  real::Grequest_complete(handle);
  real::Request_free(&handle);
}

}  // namespace

std::mutex& pending_mutex() noexcept { return mutex; }
bool any_pending() noexcept { return count.load(std::memory_order_relaxed) > 0; }

int hand_out(const Call& call, const Plan& plan, State& state) {
  auto made = std::make_unique<Pending>();
  Pending& one = *made;
  one.state = &state;
  one.work.lists.resize(4 * static_cast<std::size_t>(state.size));
  const Plan own = with_own_type(plan, one);
  const std::lock_guard lock(mutex);
  const MPI_Request handle = make_request(std::move(made));
  try {
    if (start(call, own, state, one.work, &one.request) != gdrxSuccess) {
      drop(handle);
      return raise(state, engine()->GetLastError(state.gdrx));
    }
  } catch (...) {
    drop(handle);
    throw;
  }
  ++state.pending;
  ++count;
  *call.request = handle;
  return MPI_SUCCESS;
}

gdrxResult_t run_behind_pending(const Call& call, const Plan& plan, State& state) {
  gdrxRequest_t request = nullptr;
  gdrxResult_t result = gdrxSuccess;
  {
    const std::lock_guard lock(mutex);
    result = start(call, plan, state, state.work, &request);
  }
  for (std::uint64_t rounds = 0; result == gdrxSuccess && request != nullptr; ++rounds) {
    {
      const std::lock_guard lock(mutex);
      result = engine()->Test(&request);
    }
    if (result != gdrxInProgress) break;
    result = gdrxSuccess;
    std::this_thread::yield();
    while_waiting(nullptr, rounds);
  }
  return result;
}

bool drive(const MPI_Request* list, int length) noexcept {
  if (list == nullptr) return false;
  bool waits = false;
  const std::lock_guard lock(mutex);
  for (int i = 0; i < length; ++i) {
    const auto found = pending.find(number_of(list[i]));
    if (found != pending.end() && !look_at(list[i], *found->second)) waits = true;
  }
  return waits;
}

void drive_all() noexcept {
  const std::lock_guard lock(mutex);
  for (auto next = pending.begin(); next != pending.end();) {
    const auto one = next++;
    look_at(reinterpret_cast<MPI_Request>(one->first), *one->second);
  }
}

void wait_for(const MPI_Request* list, int length) noexcept {
  for (std::uint64_t rounds = 0; any_pending() && drive(list, length); ++rounds) {
    std::this_thread::yield();
    while_waiting(nullptr, rounds);
  }
}

}  // namespace gdrx::mpi
