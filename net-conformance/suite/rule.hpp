// SPDX-License-Identifier: Apache-2.0
// A rule: what NCCL demands, what it does with a plugin that breaks it, and the check.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "gdrx/result.hpp"
#include "net-conformance/driver/session.hpp"
#include "net-conformance/driver/verdict.hpp"

namespace gdrx::conformance {

enum class Severity : std::uint8_t {
  must,   // NCCL fails, hangs, crashes or computes something wrong
  should  // it works, until something else goes wrong
};

struct Rule {
  const char* id;
  Severity severity;
  const char* demand;       // what has to hold
  const char* consequence;  // what NCCL does when it does not
  const char* needs;        // a rule that has to hold for this one to be tried; null: none
  Result<void> (*check)(Session&);
};

// In the order in which they are run; each in a process of its own, in which nothing is loaded yet.
std::span<const Rule> load_rules();
std::span<const Rule> device_rules();
std::span<const Rule> connect_rules();
std::span<const Rule> life_rules();
std::span<const Rule> transfer_rules();
std::span<const Rule> memory_rules();
std::span<const Rule> request_rules();
std::span<const Rule> group_rules();
std::span<const Rule> flush_rules();
std::span<const Rule> close_rules();
std::span<const Rule> process_rules();
std::span<const Rule> thread_rules();

std::vector<Rule> all_rules();

}  // namespace gdrx::conformance
