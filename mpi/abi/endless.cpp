// SPDX-License-Identifier: Apache-2.0
// How an MPI goes on whose probes do not look at all that is under way.
#include <atomic>

#include "mpi/abi/abi.hpp"
#include "mpi/library.hpp"

namespace gdrx::mpi {

namespace {

int end_endless(void*, MPI_Status* status) {
  return real::Status_set_elements(status, MPI_BYTE, 0);
}
int free_endless(void*) { return MPI_SUCCESS; }
int cancel_endless(void*, int) { return MPI_SUCCESS; }

// Done in MPI_Finalize and not before. No such: nothing.
std::atomic<MPI_Request> endless{};

}  // namespace

// A probe of MPI_COMM_SELF, as for Open MPI, looks at this rank's messages to itself and at nothing
// else in MPICH 4.0. A test of a request that is not done goes through all that is under way.
void let_mpi_go_on() noexcept {
  static const bool kMade = [] {
    MPI_Request made{};
    if (real::Grequest_start(end_endless, free_endless, cancel_endless, nullptr, &made) !=
        MPI_SUCCESS) {
      return false;
    }
    endless = made;
    return true;
  }();
  MPI_Request request = endless;  // MPI writes there when it is done
  int done = 0;
  if (kMade && request != MPI_Request{}) real::Test(&request, &done, MPI_STATUS_IGNORE);
}

void end_going_on() noexcept {
  MPI_Request request = endless.exchange({});
  if (request == MPI_Request{}) return;
  real::Grequest_complete(request);
  real::Request_free(&request);
}

}  // namespace gdrx::mpi
