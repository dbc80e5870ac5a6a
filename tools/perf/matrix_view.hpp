// SPDX-License-Identifier: Apache-2.0
// A matrix as text or JSON, and back as what an order of hosts needs. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "tools/perf/matrix.hpp"
#include "topo/place/host_ring.hpp"

namespace gdrx::perf {

/// Over one NIC; nothing: over all, of which each pair's slowest counts.
topo::HostMatrix host_matrix(const MatrixReport& report, const std::string* nic = nullptr);

/// A line of the names that are no host's own; nothing where there are none.
std::string shared_hosts_text(const std::vector<std::string>& hosts);
/// A table for each NIC with up to 16 hosts, for more a row a host; the slow links, those that
/// failed.
std::string matrix_text(const MatrixReport& report);
std::string matrix_json(const MatrixReport& report);
/// Errors, in one line: no JSON or not this, a name that is no host's, a pair of a host that is not
/// listed, twice the same, a rate that cannot be. Pairs that lack are not measured. `source` is the
/// name to show.
Result<topo::HostMatrix> read_matrix(std::string_view text, const std::string& source);

}  // namespace gdrx::perf
