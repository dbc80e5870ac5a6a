// SPDX-License-Identifier: Apache-2.0
#include "tests/swarm/plan.hpp"

#include <array>
#include <string>

namespace gdrx::swarm {
namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return (state_ ^= state_ << 17) * 0x2545F4914F6CDD1DULL;
  }
  std::uint64_t below(std::uint64_t most) { return (next() >> 11) % most; }
  bool chance(double of_one) { return static_cast<double>(next() >> 11) * 0x1p-53 < of_one; }

 private:
  std::uint64_t state_;
};

}  // namespace

Plan plan_of(std::uint64_t seed, Flavour flavour) {
  Random random(seed);
  Plan plan;
  plan.ranks = static_cast<int>(1 + random.below(kMostRanks));
  plan.by_id = random.chance(0.5) || flavour == Flavour::gpu;  // gdrxCommInitAll uses no GPU
  plan.fabric = flavour == Flavour::verbs || random.chance(0.35);
  const std::uint64_t which = flavour == Flavour::host && plan.fabric ? random.below(10) : 9;
  if (which < 3) plan.transport = "ucx";
  if (which >= 3 && which < 5) plan.transport = "tcp";
  if (flavour == Flavour::verbs) plan.transport = "verbs";
  constexpr std::array<std::size_t, 10> kCounts{1, 1, 7, 7, 500, 500, 500, 9000, 9000, 70000};
  for (std::uint64_t left = 1 + random.below(4); left > 0; --left) {
    const auto what = static_cast<What>(random.below(kWhats));
    plan.calls.push_back({what, kCounts[random.below(kCounts.size())],
                          static_cast<int>(random.below(static_cast<std::uint64_t>(plan.ranks)))});
  }
  if (random.chance(0.15)) plan.fork_before = static_cast<int>(random.below(plan.calls.size()));
  for (std::uint64_t left = 1 + random.below(3); left > 0; --left) {
    Fault fault;
    // One kind, several, or whatever comes: with many calls of one kind, or with few.
    const std::uint64_t of = random.below(10);
    if (of < 6) {
      fault.kinds = 1U << random.below(kKinds);
    } else if (of < 9) {
      fault.kinds = static_cast<std::uint32_t>(random.next() >> 40) & ((1U << kKinds) - 1);
    } else {
      fault.kinds = (1U << kKinds) - 1;
    }
    const bool often = (fault.kinds & 1U) != 0;  // allocations: thousands
    const std::uint64_t bits = random.below(often ? 13 : 7);
    fault.first = 1 + random.below(std::uint64_t{2} << bits);
    fault.times = random.chance(0.7) ? 1 : random.chance(0.8) ? 2 + random.below(8) : 1'000'000;
    fault.choice = static_cast<std::uint32_t>(random.next() >> 33);
    plan.faults.push_back(fault);
  }
  return plan;
}

std::string shape_of(std::uint64_t seed, Flavour flavour) {
  const Plan plan = plan_of(seed, flavour);
  return std::to_string(plan.ranks) + " ranks, " + (plan.by_id ? "unique id" : "one process") +
         ", " + (plan.fabric ? plan.transport : "shm") + ", " + std::to_string(plan.calls.size()) +
         " calls" + (plan.fork_before >= 0 ? ", a fork" : "");
}

std::vector<Fault> faults_of(std::uint64_t seed, Flavour flavour) {
  return plan_of(seed, flavour).faults;
}

}  // namespace gdrx::swarm
