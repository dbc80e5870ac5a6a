// SPDX-License-Identifier: Apache-2.0
// Runs each rule in a process of its own, so that a plugin that crashes or hangs fails one rule.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "net-conformance/suite/rule.hpp"

namespace gdrx::conformance {

struct Finding {
  const Rule* rule = nullptr;
  Verdict verdict = Verdict::blocked;
  std::string seen;  // empty for a pass
  std::chrono::microseconds took{0};
};

struct RunOptions {
  Options plugin;
  std::chrono::seconds limit{30};  // of one rule, after which it counts as hung
  bool in_process = false;         // for a debugger
};

/// `report` is called after each rule. The caller has one thread and has not loaded the plugin.
std::vector<Finding> run(const std::vector<Rule>& rules, const RunOptions& options,
                         const std::function<void(const Finding&)>& report);

}  // namespace gdrx::conformance
