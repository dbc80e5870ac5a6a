// SPDX-License-Identifier: Apache-2.0
// The order of hosts by a measured matrix, for people, launchers and programs. Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "topo/place/host_ring.hpp"
#include "topo/place/placement.hpp"

namespace gdrx::tools {

/// The hosts of a job, of a matrix of which `left_out` were too many.
struct MeasuredHosts {
  topo::HostMatrix matrix;
  topo::HostRing ring;
  std::vector<std::string> left_out;
};
/// The first `hosts` of the matrix; 0: all. Error: it has fewer.
Result<MeasuredHosts> measured_hosts(topo::HostMatrix matrix, int hosts, const std::string& source);
/// Their names in the ring's order.
std::vector<std::string> names_in_order(const MeasuredHosts& hosts);

/// The ring and what it is worth, each slow link and what the ring does about it.
std::string hosts_text(const MeasuredHosts& hosts, const std::string& source);
void add_hosts_json(nlohmann::ordered_json& json, const MeasuredHosts& hosts);
/// "name slots=ranks" in the ring's order. Error: no names.
Result<std::string> place_hostfile(const topo::Placement& placement);

}  // namespace gdrx::tools
