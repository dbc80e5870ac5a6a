// SPDX-License-Identifier: Apache-2.0
// One seed: ranks that make a communicator, call, and destroy it, while something fails.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/swarm/faults.hpp"

namespace gdrx::swarm {

enum class Flavour : std::uint8_t { host, verbs, gpu };

struct Outcome {
  std::string wrong;              // empty: nothing
  std::array<char, 300> error{};  // the first that a rank was told; no object of the heap
  Fired fired;
  int made = 0;    // ranks that got a communicator
  int failed = 0;  // and those of which a call failed, or which got none
};

/// What a process holds; equal before and after, but for what a library keeps of its first use.
struct Holdings {
  long descriptors = 0;
  long threads = 0;
  long shared_files = 0;  // of this user's in /dev/shm
  std::int64_t objects = 0;
  static Holdings now();
};
/// Which of them have grown; empty: none.
std::string grown(const Holdings& before, const Holdings& after);

/// "3 ranks, unique id, ucx, 4 calls"
std::string shape_of(std::uint64_t seed, Flavour flavour);

std::vector<Fault> faults_of(std::uint64_t seed, Flavour flavour);
/// The ranks and calls of a seed; without faults: as a library's first use.
Outcome run_seed(std::uint64_t seed, Flavour flavour, std::span<const Fault> faults);

}  // namespace gdrx::swarm
