// SPDX-License-Identifier: Apache-2.0
#include "mpi/faults.hpp"

#include <chrono>

#include "mpi/abi/abi.hpp"

namespace gdrx::mpi {
namespace {

bool has_faults() noexcept {
  static const bool kHas = find_function("PMPIX_Comm_revoke") != nullptr;
  return kHas && kAbi.process_failed != 0;
}

// MPICH does not say. gdrx may have heard of it before MPI has: of what gdrx says that it was
// aborted, MPI is given a second to hear.
bool is_revoked(const State& state, bool aborted) noexcept {
  static const auto kAsk =
      reinterpret_cast<int (*)(MPI_Comm, int*)>(find_function("PMPIX_Comm_is_revoked"));
  if (kAsk == nullptr) return false;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (;;) {
    int is = 0;
    if (state.handle == 0 || kAsk(state.comm, &is) != MPI_SUCCESS) return false;
    if (is != 0 || !aborted || std::chrono::steady_clock::now() >= end) return is != 0;
    let_mpi_go_on();
  }
}

}  // namespace

gdrxResult_t end_of(const State& state) noexcept {
  gdrxResult_t result = gdrxSuccess;
  const bool asked =
      state.gdrx != nullptr && engine()->CommGetAsyncError(state.gdrx, &result) == gdrxSuccess;
  return asked ? result : gdrxSuccess;
}

int code_of_fault(const State& state, gdrxResult_t end) noexcept {
  if (!has_faults() || (end != gdrxPeerLost && end != gdrxAborted)) return 0;
  if (is_revoked(state, end == gdrxAborted)) return kAbi.revoked;
  return end == gdrxPeerLost ? kAbi.process_failed : 0;
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
