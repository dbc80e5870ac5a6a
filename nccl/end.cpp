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

Result destroy(const char* function, ncclComm* comm) noexcept {
  const gdrxResult_t result = gdrxCommDestroy(comm->gdrx);
  const bool as_asked = result == gdrxSuccess || (result == gdrxAborted && comm->revoked);
  const Result told = as_asked ? kSuccess : failed(function, result);
  if (comm->finalizing != nullptr) gdrxWait(&comm->finalizing);
  comm->magic = 0;
  delete comm;
  return told;
}

/// Whether no thread is in a call of it. An aborted one's calls end, but what a program's thread
/// does between two calls of a group nobody can know.
bool is_left_alone(const ncclComm* comm) noexcept {
  using namespace std::chrono_literals;
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (comm->users.load(std::memory_order_acquire) > 0) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
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

GDRX_NCCL(ncclCommGetAsyncError, ncclComm* comm, Result* error) {
  if (error == nullptr) {
    return refuse("ncclCommGetAsyncError", kInvalidArgument, "asyncError is NULL");
  }
  if (const char* fault = fault_of(comm)) {
    return refuse("ncclCommGetAsyncError", kInvalidArgument, fault);
  }
  *error = state_of(comm);
  return kSuccess;
}

/// Returns at once: one thread may finalize several ranks, one after another.
GDRX_NCCL(ncclCommFinalize, ncclComm* comm) {
  constexpr auto kName = "ncclCommFinalize";
  if (const char* fault = fault_of(comm)) return refuse(kName, kInvalidArgument, fault);
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
  gdrxCommAbort(comm->gdrx);
  if (group.depth > 0) forget_in_group(comm);
  if (!is_left_alone(comm)) return kSuccess;  // its memory stays until the process ends
  gdrxCommDestroy(comm->gdrx);                // says that it was aborted
  if (comm->finalizing != nullptr) gdrxWait(&comm->finalizing);
  comm->magic = 0;
  delete comm;
  return kSuccess;
}

/// What runs is ended; the communicator is for ncclCommShrink and ncclCommDestroy then.
GDRX_NCCL(ncclCommRevoke, ncclComm* comm, int flags) {
  constexpr auto kName = "ncclCommRevoke";
  if (const char* fault = fault_of(comm)) return refuse(kName, kInvalidArgument, fault);
  if (flags != 0) return refuse(kName, kInvalidArgument, "revokeFlags is not NCCL_REVOKE_DEFAULT");
  comm->revoked = true;
  const gdrxResult_t result = gdrxCommAbort(comm->gdrx);
  return result == gdrxSuccess ? kSuccess : failed(kName, result);
}
