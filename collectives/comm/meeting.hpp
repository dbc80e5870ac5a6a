// SPDX-License-Identifier: Apache-2.0
// How the ranks of a new communicator come to the connections by which it is made.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collectives/comm/heritage.hpp"
#include "gdrx/bootstrap.hpp"
#include "gdrx/config.hpp"
#include "gdrx/log.hpp"
#include "transport/bootstrap/control_mesh.hpp"

namespace gdrx {

struct Met {
  std::unique_ptr<ControlMesh> mesh;
  Heritage heritage{};
  std::vector<Blob> hellos{};  // by rank, where the ranks share memory
};
/// What a rank says of itself to ranks of such a heritage.
using Introduce = std::function<Result<Blob>(const Heritage& likely)>;

/// Over a mesh that their processes have in common, or a new one. Collective over the bootstrap:
/// one round where their processes share memory.
Result<Met> meet(Bootstrap& bootstrap, const Config& config, const Log& log,
                 const Introduce& introduce, Deadline deadline);

/// What of a configuration a heritage holds for.
std::string heritage_name(const Config& config);

/// The last that they say to each other while it is made. All have heard the same of each other:
/// `told`, a digest. What was told elsewhere than over the mesh was told by those who are in it.
Result<void> meet_at_the_end(ControlMesh& mesh, const Key& told, Deadline deadline);

}  // namespace gdrx
