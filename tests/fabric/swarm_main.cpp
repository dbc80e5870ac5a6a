// SPDX-License-Identifier: Apache-2.0
// verbs_swarm [--seeds N] [--first S] | --seed S: runs seeds of the swarm, says which faults fired
// in how many of them, and how to replay one that failed.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string_view>

#include "tests/fabric/swarm.hpp"

namespace {

using gdrx::sim::kFaults;

constexpr double kLeastShare = 0.05;       // of the seeds, in which each fault has to fire
constexpr std::uint64_t kEnough = 200;     // seeds from which on that is asked for
constexpr std::uint64_t kTwiceEvery = 20;  // one seed in so many runs twice

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t first = 1;
  std::uint64_t seeds = 1000;
  bool one = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--seeds") seeds = value;
    if (name == "--first") first = value;
    if (name == "--seed") {
      first = value;
      seeds = 1;
      one = true;
    }
  }
  const auto start = std::chrono::steady_clock::now();
  std::array<std::uint64_t, kFaults> in_seeds{};
  std::array<std::uint64_t, kFaults> fired{};
  gdrx::verbs::Counters sum;
  std::uint64_t messages = 0;
  std::uint64_t failed = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const auto result = gdrx::sim::run_swarm(seed);
    std::string wrong = result.wrong;
    if (wrong.empty() && seed % kTwiceEvery == 0 &&
        gdrx::sim::run_swarm(seed).hash != result.hash) {
      wrong = "the same seed took another course";
    }
    if (!wrong.empty()) {
      ++failed;
      fmt::print("seed {} ({}): {}\n  replay: {} --seed {}\n", seed, result.shape, wrong, argv[0],
                 seed);
    }
    if (one) fmt::print("seed {}: {}, trace {:016x}\n", seed, result.shape, result.hash);
    for (std::size_t i = 0; i < kFaults; ++i) {
      in_seeds[i] += result.fired[i] > 0 ? 1 : 0;
      fired[i] += result.fired[i];
    }
    messages += result.messages;
    sum.rails_down += result.counters.rails_down;
    sum.resent += result.counters.resent;
    sum.reconciled += result.counters.reconciled;
    sum.flushes += result.counters.flushes;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print(
      "{} seeds, {} failed, {:.1f} s; {} messages, {} rails down, {} fragments resent, {} found "
      "received by their count, {} flushes\n",
      seeds, failed, seconds, messages, sum.rails_down, sum.resent, sum.reconciled, sum.flushes);
  bool rare = false;
  for (std::size_t i = 0; i < kFaults; ++i) {
    const double share = static_cast<double>(in_seeds[i]) / static_cast<double>(seeds);
    const bool too_rare = seeds >= kEnough && share < kLeastShare;
    rare = rare || too_rare;
    fmt::print("  {:16} in {:5.1f}% of the seeds, {} times{}\n",
               gdrx::sim::to_string(static_cast<gdrx::sim::Fault>(i)), share * 100, fired[i],
               too_rare ? ": too rare" : "");
  }
  return failed > 0 || rare ? 1 : 0;
}
