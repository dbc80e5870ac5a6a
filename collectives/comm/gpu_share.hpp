// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "collectives/comm/hierarchy.hpp"
#include "collectives/gpu/choose.hpp"
#include "collectives/gpu/path.hpp"
#include "gdrx/config.hpp"
#include "gdrx/log.hpp"
#include "transport/bootstrap/control_mesh.hpp"

namespace gdrx {

/// All ranks or nobody: connects the GPUs of each host with each other, and agrees that it worked.
/// `offered` is this rank's, empty where it has none; `tickets`: one a rank; `hierarchy`: where
/// this rank stands. Collective over the mesh; empty if the ranks do without,
/// and the log says why where GPUs were offered.
Result<std::unique_ptr<gpu::Path>> share_gpus(std::unique_ptr<gpu::Path> offered,
                                              std::span<const gpu::Ticket> tickets, Rank self,
                                              const Hierarchy& hierarchy, ControlMesh& mesh,
                                              const Log& log, Deadline deadline);

}  // namespace gdrx
