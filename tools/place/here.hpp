// SPDX-License-Identifier: Apache-2.0
// What this process may use of this host: its CPU mask, its GPUs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topo/place/placement.hpp"

namespace gdrx::tools {

/// CPUs by this process's mask, in which its cgroup's cpuset is; GPUs by their device files and by
/// CUDA_VISIBLE_DEVICES. On a host of AMD by ROCR_VISIBLE_DEVICES, and of what that shows by
/// HIP_VISIBLE_DEVICES or, where that is not set, CUDA_VISIBLE_DEVICES. Error: a list with a GPU
/// twice, or numbers whose order nobody can tell from a description.
Result<topo::PlaceRequest> request_here(const topo::Topology& topology);

/// The CPUs of `list` that `limit` has as well, all where that is nothing.
std::string within(const std::string& list, const std::optional<std::string>& limit);

/// The GPUs that the driver shows this process, before any variable hides some.
std::vector<std::size_t> present_here(const topo::Topology& topology);

/// Numbers from 0 to the last GPU.
std::vector<std::size_t> all_gpus(const topo::Topology& topology);

}  // namespace gdrx::tools
