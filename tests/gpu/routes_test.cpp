// SPDX-License-Identifier: Apache-2.0
// The route that a communicator says a call takes is the one in its trace: every collective, size
// and kind of memory. Skipped without a GPU.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/gpu/staged_world.hpp"

namespace gdrx::gpu {
namespace {

constexpr Collective kAll[] = {Collective::all_reduce,   Collective::reduce_scatter,
                               Collective::all_gather,   Collective::broadcast,
                               Collective::reduce,       Collective::barrier,
                               Collective::all_to_all,   Collective::gather,
                               Collective::scatter,      Collective::scan,
                               Collective::exscan,       Collective::all_to_all_v,
                               Collective::gather_v,     Collective::scatter_v,
                               Collective::all_gather_v, Collective::reduce_scatter_v,
                               Collective::send_recv};

/// The marks of a rank's plans, in the order of their beginnings.
std::vector<std::string> marks_in(const std::string& name) {
  std::ifstream file(name);
  std::multimap<double, std::string> marks;
  const auto after = [](const std::string& line, std::string_view key) {
    const std::size_t at = line.find(key);
    return at == std::string::npos ? std::string() : line.substr(at + key.size());
  };
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"cat\":\"plan\"") == std::string::npos) continue;
    const std::string title = after(line, "\"name\":\"");
    std::string_view mark;
    for (const RouteRow& row : kRoutes) {
      if (row.mark.size() > mark.size() && title.starts_with(row.mark)) mark = row.mark;
    }
    marks.emplace(std::strtod(after(line, "\"ts\":").c_str(), nullptr), mark);
  }
  std::vector<std::string> sorted;
  for (auto& [when, mark] : marks) sorted.push_back(std::move(mark));
  return sorted;
}

gdrx::Call call_on(Hosts& world, const StagedCase& what, int rank, MemoryKind memory,
                   std::vector<std::byte>& host) {
  gdrx::Call call = staged_call(what, rank, world.size());
  if (what.collective == Collective::send_recv) {  // from 0 to 1
    call.root = Rank{1 - rank};
    call.sends = rank == 0;
  }
  if (memory == MemoryKind::cuda) {
    call.input = input_at(world, rank);
    call.output = output_at(world, rank);
    call.stream = world.stream(rank);
  } else {
    host.resize(16 << 20);
    call.input = host.data();
    call.output = host.data() + (8 << 20);
  }
  return call;
}

class GpuRoutes : public GpuHosts {
 protected:
  void expect_traced(int hosts, int locals, const std::string& algorithm) {
    const std::string folder = testing::TempDir() + "gdrx_routes_" + std::to_string(getpid()) +
                               "_" + std::to_string(hosts);
    std::filesystem::create_directories(folder);
    static int made = 0;  // a process has one recording of a name
    const std::string name = folder + "/" + std::to_string(made++) + "_";
    std::vector<std::vector<std::string>> said(static_cast<std::size_t>(hosts * locals));
    {
      Hosts::Settings settings = settings_of(GetParam(), algorithm);
      if (hosts == 1) settings.transport = "auto";  // others are to carry all there
      settings.trace = name + "%r";
      Hosts world(hosts, locals, settings);
      for (const Collective collective : kAll) {
        for (const std::uint64_t count : {1, 5'000, 200'000}) {
          for (const MemoryKind memory : {MemoryKind::cuda, MemoryKind::host}) {
            call_all(world, {collective, count}, memory, said);
          }
        }
      }
    }
    for (std::size_t rank = 0; rank < said.size(); ++rank) {
      EXPECT_EQ(marks_in(name + std::to_string(rank)), said[rank]) << "rank " << rank;
    }
    std::filesystem::remove_all(folder);
  }

 private:
  static void call_all(Hosts& world, const StagedCase& what, MemoryKind memory,
                       std::vector<std::vector<std::string>>& said) {
    world.for_each([&](int rank) {
      if (what.collective == Collective::send_recv && rank > 1) return;
      Communicator& comm = world.comm(rank);
      std::vector<std::byte> host;
      const gdrx::Call call = call_on(world, what, rank, memory, host);
      gdrx::Call shape;
      shape.collective = call.collective;
      shape.type = call.type;
      shape.op = call.op;
      shape.root = call.root;
      shape.count = what.count;
      const RouteRow& row = row_of(comm.route_of(shape, memory));
      EXPECT_NE(must(comm.explain(shape, memory)).find(std::string("route: ") + row.name),
                std::string::npos);
      must(call_api(comm, call));
      synchronize(world, rank);
      // Messages have no plan: those of the host are in no other trace than the call's.
      const bool pair = what.collective == Collective::send_recv;
      if (pair && row.route != Route::gpu_kernel) {
        EXPECT_EQ(row.route, memory == MemoryKind::cuda ? Route::staged : Route::host);
      } else {
        said[static_cast<std::size_t>(rank)].emplace_back(row.mark);
      }
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (comm.last_operation().route != row.route && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
      }
      EXPECT_EQ(row_of(comm.last_operation().route).name, std::string(row.name)) << what.name();
    });
  }
};

TEST_P(GpuRoutes, AreSaidAsTheyAreTakenOnOneHost) {
  expect_traced(1, 2, "auto");
  expect_traced(1, 2, "halving-doubling");  // no kernel has it
}
TEST_P(GpuRoutes, AreSaidAsTheyAreTakenBetweenHosts) { expect_traced(2, 1, "auto"); }
TEST_P(GpuRoutes, AreSaidAsTheyAreTakenBetweenHostsOfSeveralGpus) { expect_traced(2, 2, "auto"); }

INSTANTIATE_TEST_SUITE_P(Fabrics, GpuRoutes, testing::Values("tcp", "verbs"));

}  // namespace
}  // namespace gdrx::gpu
