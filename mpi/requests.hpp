// SPDX-License-Identifier: Apache-2.0
// Nonblocking calls that gdrx has. The program's MPI_Request is a generalized request of MPI's: it
// stands beside MPI's own in any list, and MPI has done with it all that is to be done. gdrx's
// threads go on with a call; that it is done is seen, and told to MPI, by whoever asks for it.
#pragma once

#include <functional>
#include <mutex>

#include "mpi/communicator.hpp"
#include "mpi/plan.hpp"

namespace gdrx::mpi {

/// Posts the call and sets *call.request; MPI's code.
int hand_out(const Call& call, const Plan& plan, State& state);
/// A blocking call of a communicator that has others pending: another thread may ask for those.
gdrxResult_t run_behind_pending(const Call& call, const Plan& plan, State& state);
/// The same of any call of gdrx's, which `post` makes with a request.
gdrxResult_t wait_behind_pending(const std::function<gdrxResult_t(gdrxRequest_t*)>& post);
/// Held by who calls gdrx for a communicator that may have calls pending. Never while waiting.
std::mutex& pending_mutex() noexcept;

/// Whether there are any of ours in this process.
bool any_pending() noexcept;
/// A look at each of the list that is ours. True: one of them is not done.
bool drive(const MPI_Request* list, int count) noexcept;
void drive_all() noexcept;
/// Until all of the list that are ours are done; MPI goes on meanwhile.
void wait_for(const MPI_Request* list, int count) noexcept;

}  // namespace gdrx::mpi
