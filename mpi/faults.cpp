// SPDX-License-Identifier: Apache-2.0
#include "mpi/faults.hpp"

#include "mpi/abi/abi.hpp"

namespace gdrx::mpi {
namespace {

bool has_faults() noexcept {
  static const bool kHas = find_function("PMPIX_Comm_revoke") != nullptr;
  return kHas && kAbi.process_failed != 0;
}

// MPICH does not say.
bool is_revoked(const State& state) noexcept {
  static const auto kAsk =
      reinterpret_cast<int (*)(MPI_Comm, int*)>(find_function("PMPIX_Comm_is_revoked"));
  int is = 0;
  return kAsk != nullptr && state.handle != 0 && kAsk(state.comm, &is) == MPI_SUCCESS && is != 0;
}

}  // namespace

int code_of_fault(const State& state) noexcept {
  gdrxResult_t result = gdrxSuccess;
  if (!has_faults() || state.gdrx == nullptr ||
      engine()->CommGetAsyncError(state.gdrx, &result) != gdrxSuccess ||
      (result != gdrxPeerLost && result != gdrxAborted)) {
    return 0;
  }
  if (is_revoked(state)) return kAbi.revoked;
  return result == gdrxPeerLost ? kAbi.process_failed : 0;
}

}  // namespace gdrx::mpi

using namespace gdrx::mpi;  // NOLINT: this file defines MPI's functions

// Ranks that wait in gdrx's calls are told, as MPI tells those that wait in its own.
#define GDRX_REVOKED_AS(name)                                   \
  GDRX_MPIS int name(MPI_Comm comm) {                           \
    static constinit Real<int(MPI_Comm)> real_one(#name);       \
    static const bool kExists = real_one.exists();              \
    if (!kExists) return refuse_missing(MPI_COMM_WORLD, #name); \
    State* const state = state_of(comm);                        \
    const int result = real_one(comm);                          \
    if (state != nullptr) abort_calls_of(*state);               \
    return result;                                              \
  }
GDRX_REVOKED_AS(MPIX_Comm_revoke)
GDRX_REVOKED_AS(PMPIX_Comm_revoke)
