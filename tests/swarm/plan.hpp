// SPDX-License-Identifier: Apache-2.0
// What a seed stands for: ranks, a way between them, calls, and what fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/swarm/world.hpp"

namespace gdrx::swarm {

inline constexpr std::uint64_t kMostRanks = 4;

enum class What : std::uint8_t {
  all_reduce,
  broadcast,
  all_gather,
  exchange,
  barrier,
  all_to_all,
  scan,
};
inline constexpr std::uint64_t kWhats = 7;
struct OneCall {
  What what{};
  std::size_t count = 1;
  int root = 0;
};

struct Plan {
  int ranks = 1;
  bool by_id = false;  // else gdrxCommInitAll
  const char* transport = "auto";
  bool fabric = true;  // false: shared memory is all there is
  std::vector<OneCall> calls;
  int fork_before = -1;  // a call of rank 0
  std::vector<Fault> faults;
};

Plan plan_of(std::uint64_t seed, Flavour flavour);

}  // namespace gdrx::swarm
