// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "collectives/comm/hello.hpp"
#include "collectives/comm/hierarchy.hpp"
#include "collectives/gpu/choose.hpp"
#include "collectives/gpu/path.hpp"
#include "transport/bootstrap/control_mesh.hpp"

namespace gdrx {

/// Whoever asked for a GPU by its number does not want to do without: an error, the same on every
/// rank, if one of `peers` did and cannot have it.
Result<void> check_gpus(std::span<const Hello> peers);

/// This rank's path, or why it has none.
struct GpuOffer {
  gpu::Path* path = nullptr;
  std::string_view why_not;
};
/// All ranks or nobody: connects the GPUs of each host with each other, and agrees that it worked.
/// `peers`: what each rank said; `hierarchy`: where this rank stands. Why nobody has GPUs, the same
/// on every rank; empty: all have. Collective over the mesh.
Result<std::string> share_gpus(const GpuOffer& offer, std::span<const Hello> peers,
                               const Hierarchy& hierarchy, ControlMesh& mesh, Deadline deadline);

/// How many ranks of the process that `own` is of are on its GPU.
int ranks_on_gpu(std::span<const Hello> peers, const gpu::Ticket& own);

}  // namespace gdrx
