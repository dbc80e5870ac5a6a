// SPDX-License-Identifier: Apache-2.0
// From allreduce_test's JSON to a tuning table, and a table for a person. Pure.
#pragma once

#include <string>
#include <string_view>

#include "collectives/tune/tune_table.hpp"

namespace gdrx::tools {

/// Adds the rows of a run (allreduce_test --json). A way that was measured twice keeps its better
/// time: GPU kernels that cannot carry a size give way to others.
Result<void> add_rows(std::string_view json, tune::Table& table);

/// The GPU that a run names (allreduce_test --json), empty if it names none.
std::string gpu_of(std::string_view json);

/// For each size the best way and its time, and what the others took.
std::string to_text(const tune::Table& table);

}  // namespace gdrx::tools
