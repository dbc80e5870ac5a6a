// SPDX-License-Identifier: Apache-2.0
// The end of a communicator: as agreed, or at once.
#include <chrono>
#include <thread>

#include "nccl/comm.hpp"
#include "nccl/group.hpp"

using namespace gdrx::nccl;  // NOLINT: this file defines its functions

namespace {

void on_finalized(gdrxRequest_t, gdrxResult_t result, const char*, void* user) {
  static_cast<ncclComm*>(user)->finalized.store(result, std::memory_order_release);
}

/// All ranks of a thread can say that they leave before the thread waits for one.
gdrxResult_t finalize(ncclComm* comm) noexcept {
  gdrxRequest_t request = nullptr;
  gdrxResult_t result = gdrxCommFinalize(comm->gdrx, &request);
  if (result != gdrxSuccess) return result;  // as it was
  comm->finalizing = request;
  comm->finalized = gdrxInProgress;
  result = gdrxRequestOnDone(request, on_finalized, comm);
  if (result != gdrxSuccess) comm->finalized = result;
  return result;
}

/// Of several threads that end a communicator one does.
bool begin_end(ncclComm* comm) noexcept {
  std::uint64_t alive = ncclComm::kMagic;
  return comm->magic.compare_exchange_strong(alive, ncclComm::kEnding);
}

/// Lets calls in other threads return first. What a thread does in an open group nobody can know:
/// its group ends the communicator then, as does a call that takes longer.
gdrxResult_t end_behind_calls(ncclComm* comm) noexcept {
  using namespace std::chrono_literals;
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (comm->users.load() % ncclComm::kHolder > 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(1ms);
  }
  return let_go(comm, ncclComm::kHolder);
}

constexpr auto kEnded = "comm was destroyed";

Result destroy(const char* function, ncclComm* comm) noexcept {
  if (!begin_end(comm)) return refuse(function, kInvalidArgument, kEnded);
  const gdrxResult_t result = end_behind_calls(comm);
  const bool as_asked = result == gdrxSuccess || (result == gdrxAborted && comm->revoked);
  return as_asked ? kSuccess : failed(function, result);
}

Result state_of(const ncclComm* comm) noexcept {
  gdrxResult_t failure = gdrxSuccess;
  const gdrxResult_t asked = gdrxCommGetAsyncError(comm->gdrx, &failure);
  if (asked != gdrxSuccess) return result_of(asked);
  if (comm->revoked.load(std::memory_order_relaxed)) return kSuccess;
  if (failure != gdrxSuccess) return result_of(failure);
  return result_of(static_cast<gdrxResult_t>(comm->finalized.load(std::memory_order_acquire)));
}

}  // namespace

gdrxResult_t gdrx::nccl::end(const ncclComm* comm) noexcept {
  std::uint64_t ending = ncclComm::kEnding;
  if (!comm->magic.compare_exchange_strong(ending, ncclComm::kGone)) return gdrxSuccess;
  if (comm->gdrx == nullptr) return gdrxSuccess;  // its group could not make it
  const gdrxResult_t result = gdrxCommDestroy(comm->gdrx);
  gdrxRequest_t finalizing = comm->finalizing;
  if (finalizing != nullptr) gdrxWait(&finalizing);
  return result;
}

GDRX_NCCL(ncclCommGetAsyncError, ncclComm* comm, Result* error) {
  constexpr auto kName = "ncclCommGetAsyncError";
  if (error == nullptr) return deny(kName, kInvalidArgument, "asyncError is NULL");
  const Use use(comm);
  if (use.fault() != nullptr) return deny(kName, kInvalidArgument, use.fault());
  *error = state_of(comm);
  return kSuccess;
}

/// Returns at once: one thread may finalize several ranks, one after another.
GDRX_NCCL(ncclCommFinalize, ncclComm* comm) {
  constexpr auto kName = "ncclCommFinalize";
  const Use use(comm);
  if (use.fault() != nullptr) return refuse(kName, kInvalidArgument, use.fault());
  const bool grouped = group.depth > 0;
  const Result begun = when_group_ends(kName, comm, [comm]() -> Result {
    return through(kName, comm, [comm](gdrxComm_t) { return finalize(comm); });
  });
  return begun == kSuccess && !comm->blocking && !grouped ? kInProgress : begun;
}

GDRX_NCCL(ncclCommDestroy, ncclComm* comm) {
  constexpr auto kName = "ncclCommDestroy";
  if (comm == nullptr) return kSuccess;
  if (const char* fault = fault_of(comm)) return refuse(kName, kInvalidArgument, fault);
  return when_group_ends(
      kName, comm, [comm] { return destroy(kName, comm); }, true);
}

GDRX_NCCL(ncclCommAbort, ncclComm* comm) {
  constexpr auto kName = "ncclCommAbort";
  if (comm == nullptr) return kSuccess;
  if (const char* fault = fault_of(comm)) return refuse(kName, kInvalidArgument, fault);
  if (!begin_end(comm)) return refuse(kName, kInvalidArgument, kEnded);
  gdrxCommAbort(comm->gdrx);
  if (group.depth > 0) forget_in_group(comm);
  end_behind_calls(comm);  // says that it was aborted
  return kSuccess;
}

/// What runs is ended; the communicator is left for ncclCommShrink and ncclCommDestroy then.
GDRX_NCCL(ncclCommRevoke, ncclComm* comm, int flags) {
  constexpr auto kName = "ncclCommRevoke";
  if (flags != 0) return refuse(kName, kInvalidArgument, "revokeFlags is not NCCL_REVOKE_DEFAULT");
  return through(kName, comm, [comm](gdrxComm_t gdrx) {
    comm->revoked = true;
    return gdrxCommAbort(gdrx);
  });
}
