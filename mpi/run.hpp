// SPDX-License-Identifier: Apache-2.0
// A call that is taken, by gdrx.
#pragma once

#include "mpi/communicator.hpp"
#include "mpi/plan.hpp"

namespace gdrx::mpi {

/// `state` is live. Without `request` it blocks until the call is done, but for finish().
gdrxResult_t start(const Call& call, const Plan& plan, State& state, Work& work,
                   gdrxRequest_t* request);
/// The half of it that moves data alone.
gdrxResult_t move(const Call& call, const Plan& plan, State& state, Work& work,
                  gdrxRequest_t* request);
/// When gdrx is done with it, without an error. Throws std::runtime_error where MPI does not
/// unpack.
void finish(const Work& work);

}  // namespace gdrx::mpi
