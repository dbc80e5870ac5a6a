// SPDX-License-Identifier: Apache-2.0
#include "mpi/requests.hpp"

#include <stdexcept>
#include <thread>
#include <unordered_map>

#include "mpi/faults.hpp"
#include "mpi/pending.hpp"
#include "mpi/run.hpp"
#include "mpi/waiting.hpp"

namespace gdrx::mpi {
namespace {

void free_type(Pending& one) noexcept {
  if (one.own_type != MPI_DATATYPE_NULL) real::Type_free(&one.own_type);
}

std::mutex requests_mutex;  // of what follows, and of gdrx's communicators that have calls pending
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

// requests_mutex held. True: it is done, and nobody else finds it any more.
bool has_ended(MPI_Request handle, Pending& one) noexcept {
  const gdrxComm_t comm = one.state->gdrx;  // null: the program has freed its communicator
  const gdrxResult_t result = engine()->Test(&one.request);
  if (result == gdrxInProgress) return false;
  if (result != gdrxSuccess) {
    one.end = end_of(*one.state);
    one.why = "a call of a communicator that was freed failed";
    if (comm != nullptr) {
      std::snprintf(one.text.data(), one.text.size(), "%s", engine()->GetLastError(comm));
      one.why = one.text.data();
    }
  }
  pending.erase(number_of(handle));
  return true;
}

// Without the mutex: the program's error handler may wait for other requests.
void tell_mpi(MPI_Request handle, Pending& one) noexcept {
  try {
    if (one.why == nullptr) finish(one.work);
  } catch (const std::exception&) {
    one.why = "what has come could not be unpacked";
  }
  if (one.why != nullptr) one.error = raise(*one.state, one.why, one.end);
  free_type(one);
  const int tag = one.tag;
  const bool failed = one.error != MPI_SUCCESS;
  {
    const std::lock_guard lock(requests_mutex);
    one.active = false;
    --one.state->pending;  // from here on it may be another communicator's
    --count;
  }
  if (tag != 0) return complete_persistent(tag, failed);  // `one` may be gone
  real::Grequest_complete(handle);
}

// A type of the program's as it is now, if it may be needed in the end.
Plan with_own(Plan plan, Pending& one) {
  one.own_lists.reserve(2 * static_cast<std::size_t>(plan.out.blocks));
  keep_lists(plan.out, one.own_lists);
  if (plan.out.blocks == 0 || predefined(plan.out.handle) != nullptr) return plan;
  plan.out.handle = one.own_type = own_type_of(plan.out.handle);
  return plan;
}

// requests_mutex held. MPI's request for a call that is not begun yet.
MPI_Request make_request(std::unique_ptr<Pending> one) {
  MPI_Request handle{};
  if (real::Grequest_start(on_query, on_free, on_cancel, one.get(), &handle) != MPI_SUCCESS) {
    throw std::runtime_error("MPI makes no generalized request");
  }
  pending.emplace(number_of(handle), one.release());
  return handle;
}

// requests_mutex held. Of one that did not begin.
void drop(MPI_Request handle, Pending& one) noexcept {
  free_type(one);
  pending.erase(number_of(handle));
  real::Grequest_complete(handle);
  real::Request_free(&handle);
}

}  // namespace

std::mutex& pending_mutex() noexcept { return requests_mutex; }
void expect(MPI_Request handle, Pending& one) {
  pending.emplace(number_of(handle), &one);
  ++one.state->pending;
  ++count;
}

void expect_no_more(MPI_Request handle, Pending& one) noexcept {
  pending.erase(number_of(handle));
  --one.state->pending;
  --count;
}

// MPI forbids the program to change them before the end (3.1, section 5.12), but they are not
// always the program's: where Fortran's integers are no C int, Open MPI's binding frees its own
// copies as soon as the call is posted.
void keep_lists(Side& side, std::vector<long>& kept) {
  if (side.counts == nullptr) return;
  const auto begin = static_cast<std::ptrdiff_t>(kept.size());
  for (int i = 0; i < side.blocks; ++i) kept.push_back(side.counts[i]);
  for (int i = 0; i < side.blocks; ++i) kept.push_back(side.places[i]);
  side.counts = kept.data() + begin;
  side.places = kept.data() + begin + side.blocks;
}

MPI_Datatype own_type_of(MPI_Datatype type) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  const bool is_made = real::Type_contiguous(1, type, &made) == MPI_SUCCESS;
  if (!is_made || real::Type_commit(&made) != MPI_SUCCESS) {
    if (is_made) real::Type_free(&made);
    throw std::runtime_error("MPI makes no type like one of the program's");
  }
  return made;
}

bool any_pending() noexcept { return count.load(std::memory_order_relaxed) > 0; }

int hand_out(const Call& call, const Plan& plan, State& state) {
  auto made = std::make_unique<Pending>();
  Pending& one = *made;
  one.state = &state;
  one.work.lists.resize(4 * static_cast<std::size_t>(state.size));
  const Plan own = with_own(plan, one);
  {
    const std::lock_guard lock(requests_mutex);
    const MPI_Request handle = make_request(std::move(made));
    bool begun = false;
    try {
      begun = start(call, own, state, one.work, &one.request) == gdrxSuccess;
    } catch (...) {
      drop(handle, one);
      throw;
    }
    if (begun) {
      ++state.pending;
      ++count;
      *call.request = handle;
      return MPI_SUCCESS;
    }
    drop(handle, one);
  }
  return raise(state, engine()->GetLastError(state.gdrx));
}

gdrxResult_t run_behind_pending(const Call& call, const Plan& plan, State& state) {
  return wait_behind_pending(
      [&](gdrxRequest_t* request) { return start(call, plan, state, state.work, request); });
}

gdrxResult_t wait_behind_pending(const std::function<gdrxResult_t(gdrxRequest_t*)>& post) {
  gdrxRequest_t request = nullptr;
  gdrxResult_t result = gdrxSuccess;
  {
    const std::lock_guard lock(requests_mutex);
    result = post(&request);
  }
  for (std::uint64_t rounds = 0; result == gdrxSuccess && request != nullptr; ++rounds) {
    {
      const std::lock_guard lock(requests_mutex);
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
  for (int i = 0; i < length; ++i) {
    Pending* one = nullptr;
    {
      const std::lock_guard lock(requests_mutex);
      const auto found = pending.find(number_of(list[i]));
      if (found == pending.end()) continue;
      one = found->second;
      if (!has_ended(list[i], *one)) {
        waits = true;
        continue;
      }
    }
    tell_mpi(list[i], *one);
  }
  return waits;
}

void drive_all() noexcept {
  for (;;) {
    std::pair<std::uintptr_t, Pending*> ended{};
    {
      const std::lock_guard lock(requests_mutex);
      for (const auto& entry : pending) {
        const std::pair<std::uintptr_t, Pending*> one = entry;  // it goes when it has ended
        if (has_ended(handle_of<MPI_Request>(one.first), *one.second)) {
          ended = one;
          break;
        }
      }
    }
    if (ended.second == nullptr) return;
    tell_mpi(handle_of<MPI_Request>(ended.first), *ended.second);
  }
}

void wait_for(const MPI_Request* list, int length) noexcept {
  for (std::uint64_t rounds = 0; any_pending() && drive(list, length); ++rounds) {
    std::this_thread::yield();
    while_waiting(nullptr, rounds);
  }
}

}  // namespace gdrx::mpi
