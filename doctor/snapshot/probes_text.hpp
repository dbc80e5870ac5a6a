// SPDX-License-Identifier: Apache-2.0
// The answers of probes, as lines of a snapshot. Pure functions but for asking.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/doctor.hpp"

namespace gdrx::doctor {

inline constexpr const char* kProbesFile = "gdrx/calls";

/// What probes are asked about by name.
struct Asked {
  std::vector<std::string> nodes;                        // paths below /dev whose opening is tried
  std::vector<std::string> interfaces;                   // of the network
  std::function<std::string(const std::string&)> shown;  // a device's name, as it is written down
};

/// Asks everything. Of the environment only the variables that a check looks at; paths in them only
/// where names are kept.
std::string probes_text(const Probes& probes, const Asked& asked, bool keep_names);
/// `otherwise` with what the lines answer. What does not parse is not known.
Probes probes_of_text(Probes otherwise, std::string_view text);

}  // namespace gdrx::doctor
