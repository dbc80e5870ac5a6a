// SPDX-License-Identifier: Apache-2.0
// Makes a gdrxComm over any Bootstrap: what gdrxCommInit* and libgdrx-mpi.so share.
#pragma once

#include "collectives/api/c_mpi.hpp"
#include "collectives/api/c_state.hpp"

namespace gdrx::c_api {

/// Environment, then the caller's config, then defaults. Unknown GDRX_* variables are reported
/// once.
Result<Communicator::Options> make_options(const gdrxConfig_t* config);
/// Puts a handle around what was made with the options; no handle if it was not.
Result<void> keep(gdrxComm_t* comm, Result<std::unique_ptr<Communicator>> made,
                  const Communicator::Options& options);
/// Collective over `bootstrap`, which is not kept.
Result<void> init(gdrxComm_t* comm, Bootstrap& bootstrap, const Communicator::Options& options);

}  // namespace gdrx::c_api
