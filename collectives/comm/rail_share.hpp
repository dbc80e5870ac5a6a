// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "collectives/comm/hierarchy.hpp"
#include "collectives/exec/rail.hpp"
#include "collectives/gpu/path.hpp"
#include "gdrx/config.hpp"
#include "gdrx/log.hpp"
#include "transport/bootstrap/control_mesh.hpp"

namespace gdrx {

struct RailOffer {
  gpu::Path* path = nullptr;
  Device* device = nullptr;  // or null: no fabric
  GpuDirect wanted{};
  exec::RailAdder* adder = nullptr;
};

/// All ranks or nobody: memory of each GPU that NICs write, whose keys the ranks of a rail
/// exchange. Collective over the mesh; empty if the ranks do without, and the log says why.
Result<std::unique_ptr<exec::Rail>> share_rails(const RailOffer& offer, const Hierarchy& hierarchy,
                                                Rank self, ControlMesh& mesh, const Log& log,
                                                Deadline deadline);

}  // namespace gdrx
