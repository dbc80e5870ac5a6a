// SPDX-License-Identifier: Apache-2.0
// A Placement for people and for launchers: pure functions from a value to text.
#pragma once

#include <string>

#include "topo/place/placement.hpp"

namespace gdrx::tools {

struct MeasuredHosts;

/// A row a rank of the first of equal hosts, why, and notes.
std::string place_text(const topo::Topology& topology, const topo::Placement& placement);
/// The predicted rates of the placement beside those of the same ranks shuffled.
std::string forecast_text(const topo::Topology& topology, const topo::Placement& placement);
/// With the order of hosts, where there is one.
std::string place_json(const topo::Topology& topology, const topo::Placement& placement,
                       const MeasuredHosts* hosts = nullptr);

/// Open MPI's rankfile: the CPUs of each rank.
std::string place_rankfile(const topo::Placement& placement);
/// Open MPI's appfile: a line a rank, which binds itself by taskset. Error: a value with blanks.
Result<std::string> place_appfile(const topo::Topology& topology, const topo::Placement& placement);
/// A script that each task of srun, or each worker of torchrun, runs its program by. Its head has
/// the launcher's command line. Error: hosts with different numbers of ranks.
Result<std::string> place_srun(const topo::Topology& topology, const topo::Placement& placement);
Result<std::string> place_torchrun(const topo::Topology& topology,
                                   const topo::Placement& placement);
/// What of a pod and of the kubelet's configuration keeps GPUs, NICs and CPUs together. Error: no
/// CPUs known, or hosts with different numbers of ranks.
Result<std::string> place_k8s(const topo::Topology& topology, const topo::Placement& placement);

}  // namespace gdrx::tools
