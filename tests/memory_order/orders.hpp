// SPDX-License-Identifier: Apache-2.0
// What is asked of the scenarios of a protocol: all runs are right, and each order is needed.
#pragma once

#include <span>
#include <string_view>

#include "tests/memory_order/model.hpp"

namespace gdrx::model {

struct Named {
  std::string_view name;
  Scenario scenario;
  Limits limits{};
};

/// Each run of each scenario is right.
void expect_right(std::span<const Named> scenarios);

/// Of the sources named, from the tree's root, each order that is stronger than relaxed is in some
/// scenario, and weakened by a step, some run of some scenario is wrong. `stronger`: operations, as
/// "file.hpp fence", whose order has a reason that the model cannot see.
void expect_needed(std::span<const Named> scenarios, std::span<const std::string_view> sources,
                   std::span<const std::string_view> stronger = {});

}  // namespace gdrx::model
