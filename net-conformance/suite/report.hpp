// SPDX-License-Identifier: Apache-2.0
// Findings in words and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "net-conformance/suite/runner.hpp"

namespace gdrx::conformance {

const char* to_string(Verdict verdict) noexcept;
const char* to_string(Severity severity) noexcept;

/// One line for a pass, a skip or what is blocked; four for a failure.
std::string describe(const Finding& finding);
/// Counts, and the worst of it.
std::string summary(const std::vector<Finding>& findings);
nlohmann::json to_json(const Finding& finding);
nlohmann::json to_json(const Rule& rule);

/// Rules that do not hold. `strict` counts those of the kind "should" too.
std::size_t failures(const std::vector<Finding>& findings, bool strict);

}  // namespace gdrx::conformance
