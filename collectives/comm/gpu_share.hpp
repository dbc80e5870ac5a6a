// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "collectives/comm/hello.hpp"
#include "collectives/comm/hierarchy.hpp"
#include "collectives/gpu/choose.hpp"
#include "collectives/gpu/path.hpp"
#include "transport/bootstrap/control_mesh.hpp"

namespace gdrx {

/// A path, or why there is none: of this rank before, of all ranks after share_gpus().
struct GpuOffer {
  std::unique_ptr<gpu::Path> path;
  std::string why_not;
};
using SharedGpus = GpuOffer;

/// Whoever asked for a GPU by its number does not want to do without: an error, the same on every
/// rank, if one of `peers` did and cannot have it.
Result<void> check_gpus(std::span<const Hello> peers);

/// All ranks or nobody: connects the GPUs of each host with each other, and agrees that it worked.
/// `offer` is this rank's; `peers`: what each rank said; `hierarchy`: where this rank stands.
/// Collective over the mesh.
Result<SharedGpus> share_gpus(GpuOffer offer, std::span<const Hello> peers,
                              const Hierarchy& hierarchy, ControlMesh& mesh, Deadline deadline);

/// How many ranks of the process that `own` is of are on its GPU.
int ranks_on_gpu(std::span<const Hello> peers, const gpu::Ticket& own);

}  // namespace gdrx
