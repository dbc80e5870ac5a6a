// SPDX-License-Identifier: Apache-2.0
// swarm [--first S] [--seeds N] [--flavour host|verbs|gpu] [--journal FILE] | --seed S: any call of
// the system, the allocator or CUDA fails somewhere in the life of a communicator. Says which seeds
// went wrong and how to replay each; a seed alone says what failed and from where.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
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

std::string leak_of(std::uint64_t seed, Flavour flavour, const Holdings& before) {
  Holdings last = at_rest(before, flavour);
  std::string text = grown(before, last);
  for (int i = 0; i < kAgain && !text.empty(); ++i) {
    print_live();
    static_cast<void>(run_seed(seed, flavour));
    const Holdings next = at_rest(last, flavour);
    text = grown(last, next);
    last = next;
  }
  if (!text.empty()) print_live();
  return text.empty() ? text : "leaks " + text;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t first = 1;
  std::uint64_t seeds = 1000;
  bool one = false;
  Flavour flavour = Flavour::host;
  std::string_view word = "host";
  int journal = -1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--first") first = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--seeds") seeds = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--journal") journal = open(argv[i + 1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (name == "--flavour") word = argv[i + 1];
    if (name == "--seed") {
      first = std::strtoull(argv[i + 1], nullptr, 10);
      seeds = 1;
      one = true;
    }
  }
  if (word == "verbs") flavour = Flavour::verbs;
  if (word == "gpu") flavour = Flavour::gpu;
  arm({});  // from here on the threads of what simulates are known for what they are
  // Small, so that a seed that waits for nobody ends soon.
  setenv("GDRX_INIT_TIMEOUT", "0.5", 1);
  setenv("GDRX_HEARTBEAT", "20", 1);
  setenv("GDRX_PEER_TIMEOUT", "0.3", 1);
  setenv("GDRX_SOCKET_IFNAME", "lo", 1);
  setenv("GDRX_LOG", "error", 1);
  setenv("NCCL_IB_TIMEOUT", "7", 1);
  if (flavour == Flavour::verbs) setenv("GDRX_MODULE_PATH", SWARM_SIM_FOLDER, 1);
  if (flavour == Flavour::gpu) setenv("GDRX_MODULE_PATH", SWARM_GPU_FOLDERS, 1);
  if (one) trace();

  Totals totals;
  for (std::uint64_t warm = 0; warm < 10; ++warm) {
    Outcome outcome = run_seed(warm, flavour, false);
    for (int again = 0; again < 10 && outcome.failed > 0; ++again) {  // a machine with other work
      outcome = run_seed(warm, flavour, false);
    }
    if (!outcome.wrong.empty() || outcome.failed > 0) {
      std::printf("WRONG without a fault (%s): %s\n", shape_of(warm, flavour).c_str(),
                  outcome.wrong.c_str());
      return 1;
    }
  }
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    if (journal >= 0 && pwrite(journal, &seed, sizeof seed, 0) != sizeof seed) return 2;
    const Holdings before = holdings(flavour);
    if (one) print_live();
    Outcome outcome = run_seed(seed, flavour);
    if (outcome.wrong.empty()) outcome.wrong = leak_of(seed, flavour, before);
    ++totals.seeds;
    bool any = false;
    for (std::size_t i = 0; i < kKinds; ++i) {
      totals.fired[i] += outcome.fired.of[i];
      any = any || outcome.fired.of[i] > 0;
    }
    totals.with_faults += any ? 1 : 0;
    totals.with_errors += outcome.failed > 0 ? 1 : 0;
    if (one) {
      std::printf("seed %llu (%s): %d made, %d failed; fired: %s\n",
                  static_cast<unsigned long long>(seed), shape_of(seed, flavour).c_str(),
                  outcome.made, outcome.failed, outcome.fired.text().c_str());
    }
    if (outcome.wrong.empty()) continue;
    ++totals.failed;
    std::printf("WRONG seed %llu (%s): %s; fired: %s; replay: %s --flavour %s --seed %llu\n",
                static_cast<unsigned long long>(seed), shape_of(seed, flavour).c_str(),
                outcome.wrong.c_str(), outcome.fired.text().c_str(), argv[0],
                std::string(word).c_str(), static_cast<unsigned long long>(seed));
    std::fflush(stdout);
  }
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
  return totals.failed > 0 ? 1 : 0;
}
