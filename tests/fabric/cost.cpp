// SPDX-License-Identifier: Apache-2.0
// verbs_cost STEP BYTES COUNT: does one step of a put COUNT times, and only that step is collected
// when this runs under callgrind with --collect-atstart=no --instr-atstart=no. The simulated NIC is
// not collected.
//   idle      a poll with nothing to do
//   crowd     the same with a thousand peers
//   post      Endpoint::post
//   receive   the receiver's poll that reports the message
//   complete  the sender's poll that reports the write as done
#include <valgrind/callgrind.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fabric/boundary.hpp"

namespace {

using namespace gdrx;       // NOLINT: a program of one file
using namespace gdrx::sim;  // NOLINT

constexpr int kWarm = 300;

ClusterSettings settings_for(std::string_view step) {
  ClusterSettings settings;
  if (step != "crowd") return settings;
  settings.hosts = 1001;
  settings.star = true;
  settings.receive_ring = 4096;
  return settings;
}

struct Costs {
  explicit Costs(std::string_view step) : cluster(settings_for(step)) {}
  Cluster cluster;
  std::vector<std::byte> data = pattern(1 << 20, 1);
  std::unique_ptr<MemoryRegion> region;

  void begin() {
    region = *cluster[0].device->register_memory(data, MemoryKind::host);
    if (RUNNING_ON_VALGRIND == 0) return;  // it has its price
    for (auto& host : cluster.hosts) draw_line(*host);
  }
  bool poll(int rank, bool counted) {
    std::array<Completion, 16> batch;
    const Count on(counted);
    return cluster[rank].device->poll(batch).has_value();
  }
  bool idle(int count, bool counted) {
    for (int i = 0; i < count; ++i) {
      if (!poll(0, counted)) return false;
    }
    return true;
  }
  bool put(std::string_view step, std::size_t bytes, bool counted) {
    WriteOp op;
    op.payload = std::span(data).first(bytes);
    op.local = region.get();
    op.remote = cluster[0].receive_rings[1];
    op.has_immediate = true;
    op.immediate = 7;
    while (true) {
      const Count on(counted && step == "post");
      const auto posted = cluster[0].endpoints[1]->post(op);
      if (!posted) return false;
      if (*posted == Progress::done) break;
      if (counted) return false;  // there has to be room, or more than the step is collected
      cluster.network.run_for(std::chrono::microseconds(20));
      cluster.poll_all();
    }
    // Both ways over the simulated network, at its slowest.
    cluster.network.run_for(std::chrono::microseconds(10 + bytes / 10'000));
    const bool received = poll(1, counted && step == "receive");
    return poll(0, counted && step == "complete") && received;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string_view step = argv[1];
  const auto bytes = static_cast<std::size_t>(std::strtoull(argv[2], nullptr, 10));
  const int count = std::atoi(argv[3]);
  Count::changed = [] { CALLGRIND_TOGGLE_COLLECT; };
  Costs costs(step);
  costs.begin();
  for (int i = 0; i < kWarm; ++i) {
    if (!costs.put(step, bytes, false)) return 1;
  }
  if (step == "crowd") costs.cluster.run_for(std::chrono::milliseconds(20));
  CALLGRIND_START_INSTRUMENTATION;  // which slows down: a thousand peers were made without it
  if (step == "idle" || step == "crowd") {
    const auto begin = std::chrono::steady_clock::now();
    if (!costs.idle(count, true)) return 1;
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    std::printf("%.3f us each\n", took.count() / count);  // without callgrind
    return 0;
  }
  for (int i = 0; i < count; ++i) {
    if (!costs.put(step, bytes, true)) return 1;
  }
  return 0;
}
