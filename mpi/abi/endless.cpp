// SPDX-License-Identifier: Apache-2.0
// How an MPI goes on whose probes do not look at all that is under way.
#include <mutex>
#include <utility>

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
MPI_Request endless{};
std::mutex endless_mutex;  // MPI forbids that two threads ask for it at once

}  // namespace

// A probe of MPI_COMM_SELF, as for Open MPI, looks at this rank's messages to itself and at nothing
// else in MPICH 4.0. A test of a request that is not done goes through all that is under way.
void let_mpi_go_on() noexcept {
  const std::unique_lock lock(endless_mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;  // another thread's look does
  static const bool kMade = real::Grequest_start(end_endless, free_endless, cancel_endless, nullptr,
                                                 &endless) == MPI_SUCCESS;
  int done = 0;
  if (kMade && endless != MPI_Request{}) real::Test(&endless, &done, MPI_STATUS_IGNORE);
}

void end_going_on() noexcept {
  const std::lock_guard lock(endless_mutex);
  MPI_Request request = std::exchange(endless, {});
  if (request == MPI_Request{}) return;
  real::Grequest_complete(request);
  real::Request_free(&request);
}

}  // namespace gdrx::mpi
