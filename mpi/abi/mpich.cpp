// SPDX-License-Identifier: Apache-2.0
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

// Done in MPI_Finalize and not before. No such: 0.
std::atomic<MPI_Request> endless{0};

}  // namespace

// Debian's name is the second.
constexpr Abi kAbi{"libgdrx-coll-mpich.so",
                   "MPICH, Intel MPI or another of libmpi.so.12",
                   {"libmpi.so.12", "libmpich.so.12"},
                   "mpiexec -genv"};

// A library of the interface that MPI 5 has defined says so; those of this one say -1, or lack the
// function.
bool has_this_abi() noexcept {
  if (find_object("ompi_mpi_comm_world") != nullptr) return false;
  int major = -1;
  int minor = -1;
  const auto ask = reinterpret_cast<int (*)(int*, int*)>(find_function("PMPI_Abi_get_version"));
  return ask == nullptr || ask(&major, &minor) != MPI_SUCCESS || major < 0;
}

// Neither MPICH nor Intel MPI was measured.
bool is_known_slower() noexcept { return false; }

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
  if (kMade && request != 0) real::Test(&request, &done, MPI_STATUS_IGNORE);
}

void end_going_on() noexcept {
  MPI_Request request = endless.exchange(0);
  if (request == 0) return;
  real::Grequest_complete(request);
  real::Request_free(&request);
}

}  // namespace gdrx::mpi
