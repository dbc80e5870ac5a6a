// SPDX-License-Identifier: Apache-2.0
// A call that is taken, by gdrx.
#pragma once

#include "mpi/communicator.hpp"
#include "mpi/plan.hpp"

namespace gdrx::mpi {

/// Blocks until it is done. `state` is live.
gdrxResult_t run(const Call& call, const Plan& plan, State& state);
/// The half of it that moves data alone.
gdrxResult_t move(const Call& call, const Plan& plan, State& state);

}  // namespace gdrx::mpi
