// SPDX-License-Identifier: Apache-2.0
// One seed: a cluster of its own shape under a mix of faults of its own. Safety first (nothing is
// ever wrong while they fire), then liveness (they stop, and everything ends).
#pragma once

#include <array>
#include <string>

#include "tests/fabric/network.hpp"
#include "transport/verbs/core.hpp"

namespace gdrx::sim {

struct SwarmResult {
  std::string wrong;  // empty: nothing
  std::uint64_t hash = 0;
  std::array<std::uint64_t, kFaults> fired{};
  std::uint64_t messages = 0;
  verbs::Counters counters;  // of all devices
  std::string shape;
};

SwarmResult run_swarm(std::uint64_t seed);

}  // namespace gdrx::sim
