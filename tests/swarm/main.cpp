// SPDX-License-Identifier: Apache-2.0
// swarm [--first S] [--seeds N] [--flavour host|verbs|gpu] [--journal FILE] | --seed S [--every K]:
// any call of the system, the allocator or CUDA fails somewhere in the life of a communicator. Says
// which seeds went wrong and how to replay each; a seed alone says what failed and from where. With
// --every, instead of the seed's own faults: the first allocation fails, then that K later, and so
// on to the last.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "tests/swarm/world.hpp"

namespace {

using namespace gdrx::swarm;  // NOLINT: this is its program

constexpr int kAgain = 3;  // a leak is what grows each time
constexpr int kMostLooks = 400;
constexpr int kStillLooks = 50;

struct Totals {
  std::array<std::uint64_t, kKinds> fired{};
  std::uint64_t seeds = 0;
  std::uint64_t failed = 0;
  std::uint64_t with_faults = 0;
  std::uint64_t with_errors = 0;
};

Holdings holdings(Flavour flavour) {
  Holdings now = Holdings::now();
  if (flavour == Flavour::verbs) now.objects = 0;    // the simulated network keeps its hosts
  if (flavour == Flavour::gpu) now.descriptors = 0;  // a kernel that was ended keeps its memory
  return now;
}

// A thread that was joined is a moment longer in /proc, and the root of a unique id ends by itself.
// What does not change any more is what stays: the root that served is kept until the next one.
Holdings at_rest(const Holdings& before, Flavour flavour) {
  Holdings now = holdings(flavour);
  int still = 0;
  for (int i = 0; i < kMostLooks && still < kStillLooks && !grown(before, now).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const Holdings next = holdings(flavour);
    still = grown(now, next).empty() && grown(next, now).empty() ? still + 1 : 0;
    now = next;
  }
  return now;
}

std::string leak_of(std::uint64_t seed, Flavour flavour, std::span<const Fault> faults,
                    const Holdings& before) {
  Holdings last = at_rest(before, flavour);
  std::string text = grown(before, last);
  for (int i = 0; i < kAgain && !text.empty(); ++i) {
    print_live();
    static_cast<void>(run_seed(seed, flavour, faults));
    const Holdings next = at_rest(last, flavour);
    text = grown(last, next);
    last = next;
  }
  if (!text.empty()) print_live();
  return text.empty() ? text : "leaks " + text;
}

struct Options {
  std::uint64_t first = 1;
  std::uint64_t seeds = 1000;
  std::uint64_t every = 0;  // 0: the faults are the seed's
  bool one = false;
  Flavour flavour = Flavour::host;
  std::string_view word = "host";
  int journal = -1;
  const char* program = "";
};

Options options_of(int argc, char** argv) {
  Options options;
  options.program = argv[0];
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const char* const value = argv[i + 1];
    if (name == "--first") options.first = std::strtoull(value, nullptr, 10);
    if (name == "--seeds") options.seeds = std::strtoull(value, nullptr, 10);
    if (name == "--every") options.every = std::strtoull(value, nullptr, 10);
    if (name == "--journal") options.journal = open(value, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (name == "--flavour") options.word = value;
    if (name == "--seed") {
      options.first = std::strtoull(value, nullptr, 10);
      options.seeds = 1;
      options.one = true;
    }
  }
  if (options.word == "verbs") options.flavour = Flavour::verbs;
  if (options.word == "gpu") options.flavour = Flavour::gpu;
  return options;
}

// Small limits, so that a seed that waits for nobody ends soon.
void prepare_environment(Flavour flavour) {
  setenv("GDRX_HEARTBEAT", "20", 1);
  setenv("GDRX_PEER_TIMEOUT", "0.3", 1);
  setenv("GDRX_SOCKET_IFNAME", "lo", 1);
  setenv("GDRX_LOG", "error", 1);
  setenv("NCCL_IB_TIMEOUT", "7", 1);
  if (flavour == Flavour::verbs) setenv("GDRX_MODULE_PATH", SWARM_SIM_FOLDER, 1);
  if (flavour == Flavour::gpu) setenv("GDRX_MODULE_PATH", SWARM_GPU_FOLDERS, 1);
}

// A library keeps some of its first use. On a machine with other work that may take long.
bool warm_up(Flavour flavour) {
  setenv("GDRX_INIT_TIMEOUT", "10", 1);
  for (std::uint64_t warm = 0; warm < 10; ++warm) {
    Outcome outcome = run_seed(warm, flavour, {});
    for (int again = 0; again < 10 && outcome.failed > 0; ++again) {
      outcome = run_seed(warm, flavour, {});
    }
    if (outcome.wrong.empty() && outcome.failed == 0) continue;
    std::printf("WRONG without a fault (%s): %s%s\n", shape_of(warm, flavour).c_str(),
                outcome.wrong.c_str(), outcome.error.data());
    return false;
  }
  setenv("GDRX_INIT_TIMEOUT", "0.5", 1);
  return true;
}

/// Whether any of them came to pass.
bool try_faults(const Options& options, std::uint64_t seed, std::span<const Fault> faults,
                Totals& totals) {
  const Holdings before = holdings(options.flavour);
  print_live();
  Outcome outcome = run_seed(seed, options.flavour, faults);
  if (outcome.wrong.empty()) outcome.wrong = leak_of(seed, options.flavour, faults, before);
  ++totals.seeds;
  bool any = false;
  for (std::size_t i = 0; i < kKinds; ++i) {
    totals.fired[i] += outcome.fired.of[i];
    any = any || outcome.fired.of[i] > 0;
  }
  totals.with_faults += any ? 1 : 0;
  totals.with_errors += outcome.failed > 0 ? 1 : 0;
  const std::string shape = shape_of(seed, options.flavour);
  if (options.one) {
    std::printf("seed %llu (%s): %d made, %d failed; fired: %s\n",
                static_cast<unsigned long long>(seed), shape.c_str(), outcome.made, outcome.failed,
                outcome.fired.text().c_str());
  }
  if (outcome.wrong.empty()) return any;
  ++totals.failed;
  std::printf("WRONG seed %llu (%s): %s; fired: %s; told: %s; replay: %s --flavour %s --seed %llu",
              static_cast<unsigned long long>(seed), shape.c_str(), outcome.wrong.c_str(),
              outcome.fired.text().c_str(), outcome.error.data(), options.program,
              std::string(options.word).c_str(), static_cast<unsigned long long>(seed));
  std::printf(options.every > 0 ? " --every %llu\n" : "\n",
              static_cast<unsigned long long>(options.every));
  std::fflush(stdout);
  return any;
}

void print(const Totals& totals) {
  std::printf("{\"seeds\": %llu, \"failed\": %llu, \"with_faults\": %llu, \"with_errors\": %llu",
              static_cast<unsigned long long>(totals.seeds),
              static_cast<unsigned long long>(totals.failed),
              static_cast<unsigned long long>(totals.with_faults),
              static_cast<unsigned long long>(totals.with_errors));
  std::printf(", \"fired\": {");
  for (std::size_t i = 0; i < kKinds; ++i) {
    std::printf("%s\"%s\": %llu", i == 0 ? "" : ", ",
                std::string(name_of(static_cast<Kind>(i))).c_str(),
                static_cast<unsigned long long>(totals.fired[i]));
  }
  std::printf("}}\n");
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = options_of(argc, argv);
  arm({});  // from here on the threads of what simulates are known for what they are
  prepare_environment(options.flavour);
  if (options.one && options.every == 0) trace();
  if (!warm_up(options.flavour)) return 1;
  Totals totals;
  Fault allocation{.kinds = 1U << static_cast<unsigned>(Kind::allocate)};
  while (options.every > 0 && try_faults(options, options.first, {&allocation, 1}, totals)) {
    allocation.first += options.every;
  }
  const std::uint64_t seeds = options.every > 0 ? 0 : options.seeds;
  for (std::uint64_t seed = options.first; seed < options.first + seeds; ++seed) {
    if (options.journal >= 0 && pwrite(options.journal, &seed, sizeof seed, 0) != sizeof seed) {
      return 2;
    }
    try_faults(options, seed, faults_of(seed, options.flavour), totals);
  }
  print(totals);
  return totals.failed > 0 ? 1 : 0;
}
