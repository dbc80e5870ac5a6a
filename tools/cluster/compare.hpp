// SPDX-License-Identifier: Apache-2.0
// Reports of several hosts beside each other: what is not the same everywhere. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "gdrx/doctor.hpp"
#include "tools/perf/connectivity.hpp"

namespace gdrx::tools {

struct HostReport {
  std::string host;
  doctor::Report report;
  std::string problem;  // no report: why
};

/// Hosts that have one value in common.
struct Group {
  std::string value;
  std::vector<std::string> hosts;
};
/// A trait or a finding that differs. The largest group is first; of equal ones, that of the first
/// host.
struct Difference {
  std::string what;
  std::vector<Group> groups;
  bool is_finding = false;
};
struct Comparison {
  std::size_t hosts = 0;
  std::vector<Difference> differences;
  std::vector<HostReport> silent;  // hosts without a report
  std::string odd;                 // the host that is in a minority most often, empty: none
  doctor::Severity worst = doctor::Severity::ok;
  /// Pairs of NICs of the same name on two hosts, and of others.
  std::size_t rails = 0;
  std::size_t crossing = 0;
  std::size_t crossing_reached = 0;
  std::vector<std::string> unreached;  // rails that do not work, a line each
};
/// `reached` may be empty: not tried. Its ranks are places in `reports`.
Comparison compare(const std::vector<HostReport>& reports,
                   const std::vector<perf::Reached>& reached = {});

/// Fits 80 columns but for long values.
std::string comparison_text(const Comparison& comparison);
std::string comparison_json(const Comparison& comparison);

}  // namespace gdrx::tools
