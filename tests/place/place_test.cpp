// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/cpu_list.hpp"
#include "tests/topo/builder.hpp"
#include "topo/place/placement.hpp"

namespace gdrx::topo {
namespace {

using test::HostBuilder;

/// Two sockets of `cores` cores of two threads; a switch of two GPUs and a NIC on each.
HostBuilder two_sockets(int cores) {
  HostBuilder host;
  int gpu = 0;
  for (int socket = 0; socket < 2; ++socket) {
    NumaNode node{socket, socket, {}, {}};
    std::vector<int> cpus;
    for (int core = socket * cores; core < (socket + 1) * cores; ++core) {
      node.cores.push_back(fmt::format("{},{}", core, core + 2 * cores));
      cpus.insert(cpus.end(), {core, core + 2 * cores});
    }
    std::sort(cpus.begin(), cpus.end());
    node.cpus = list_of_cpus(cpus);
    host.parts.numa.push_back(node);
    const std::size_t up = host.switch_below(host.root(socket));
    for (int i = 0; i < 2; ++i, ++gpu) host.gpu_on(up);
    host.nic_on(up, fmt::format("mlx5_{}", socket));
  }
  return host;
}

Placement placed(const Topology& topology, const PlaceRequest& request) {
  const auto placement = place(topology, request);
  EXPECT_TRUE(placement) << placement.error().what;
  return placement ? *placement : Placement();
}

std::string cpus(const Placement& placement, std::size_t rank) {
  return list_of_cpus(placement.ranks.at(rank).cpus);
}

bool notes_say(const Placement& placement, std::string_view words) {
  return std::any_of(placement.notes.begin(), placement.notes.end(),
                     [&](const std::string& note) { return note.find(words) != note.npos; });
}

TEST(Place, GivesEachRankAGpuItsNicAndCoresOfItsNumaNode) {
  const Placement placement = placed(two_sockets(4).build(), {});
  ASSERT_EQ(placement.ranks.size(), 4u);
  EXPECT_EQ(cpus(placement, 0), "0-1,8-9");
  EXPECT_EQ(cpus(placement, 1), "2-3,10-11");
  EXPECT_EQ(cpus(placement, 3), "6-7,14-15");
  EXPECT_EQ(placement.ranks[3].gpu, 3u);
  EXPECT_EQ(placement.ranks[3].nics.at(0).nic, 1u);
  EXPECT_EQ(placement.ranks[0].progress_cpu, 1) << "a core that is not the program's first";
  EXPECT_FALSE(placement.reorders_gpus);
}

TEST(Place, SharesCoresSoThatRanksDifferByOneAtMost) {
  const Topology topology = two_sockets(7).build();
  for (int ranks = 1; ranks <= 14; ++ranks) {
    const Placement placement = placed(topology, {ranks});
    for (int node = 0; node < 2; ++node) {
      std::size_t least = 99;
      std::size_t most = 0;
      std::set<int> seen;
      std::size_t count = 0;
      for (const RankPlace& rank : placement.ranks) {
        if (rank.numa != std::vector<int>{node}) continue;
        least = std::min(least, rank.cores);
        most = std::max(most, rank.cores);
        seen.insert(rank.cpus.begin(), rank.cpus.end());
        count += rank.cpus.size();
      }
      if (count == 0) continue;
      EXPECT_LE(most - least, 1u) << ranks << " ranks";
      EXPECT_EQ(seen.size(), count) << "a CPU is given twice, " << ranks << " ranks";
      EXPECT_EQ(count, 14u) << "a CPU is left over, " << ranks << " ranks";
    }
  }
}

TEST(Place, NeverGivesACpuThatTheMaskHides) {
  const Topology topology = two_sockets(4).build();
  for (const char* mask : {"0-3", "2,3,13", "8-15", "5"}) {
    const std::vector<int> may = cpus_of_list(mask);
    for (int ranks = 1; ranks < 9; ++ranks) {
      for (const RankPlace& rank : placed(topology, {ranks, 1, mask}).ranks) {
        EXPECT_FALSE(rank.cpus.empty()) << mask;
        EXPECT_TRUE(std::includes(may.begin(), may.end(), rank.cpus.begin(), rank.cpus.end()))
            << list_of_cpus(rank.cpus) << " of " << mask;
      }
    }
  }
}

TEST(Place, SaysThatTheGpusNodeIsHiddenAndTakesTheOther) {
  const Placement placement = placed(two_sockets(4).build(), {4, 1, "0-3,8-11"});
  EXPECT_EQ(placement.ranks[3].numa, std::vector<int>{0});
  EXPECT_NE(placement.ranks[3].reason.find("as the GPU's node 1 has none that may be used"),
            std::string::npos)
      << placement.ranks[3].reason;
  EXPECT_TRUE(notes_say(placement, "4 of 8 cores may not be used"));
}

TEST(Place, RefusesAMaskOfNoCpuOfThisHost) {
  const auto placement = place(two_sockets(4).build(), {1, 1, "64-65"});
  ASSERT_FALSE(placement);
  EXPECT_EQ(placement.error().what, "none of the CPUs 64-65 is of this host");
}

TEST(Place, LetsRanksSpillToTheOtherNodeBeforeTheyShareACore) {
  HostBuilder host = two_sockets(2);
  host.parts.gpus.pop_back();  // both of socket 1
  host.parts.gpus.pop_back();
  const Topology topology = host.build();
  const Placement four = placed(topology, {4});
  EXPECT_EQ(four.ranks[2].numa, std::vector<int>{1});
  EXPECT_NE(four.ranks[2].reason.find("as the GPU's node 0 has none left"), std::string::npos)
      << four.ranks[2].reason;
  EXPECT_FALSE(notes_say(four, "share 4 cores"));
  const Placement six = placed(topology, {6});
  EXPECT_TRUE(notes_say(six, "6 ranks share 4 cores"));
  EXPECT_TRUE(notes_say(six, "6 ranks share 2 GPUs"));
  EXPECT_EQ(six.ranks[0].progress_cpu, -1) << "its core is another rank's as well";
}

// Seen on a host of two sockets whose firmware lists all CPUs under each of eight nodes.
TEST(Place, GivesNoCpuTwiceWhereNodesOverlap) {
  HostBuilder host;
  for (int node = 0; node < 8; ++node) host.parts.numa.push_back({node, 0, "0-7", {}});
  const Placement placement = placed(host.build(), {});
  ASSERT_EQ(placement.ranks.size(), 8u);
  EXPECT_EQ(cpus(placement, 7), "7");
}

TEST(Place, CountsGpusAsProgramsDo) {
  const Placement placement = placed(two_sockets(4).build(), {6});
  for (const RankPlace& rank : placement.ranks) {
    EXPECT_EQ(rank.gpu, static_cast<std::size_t>(rank.local) % 4);
  }
}

TEST(Place, WithoutGpusGoesByCoresAlone) {
  HostBuilder host = two_sockets(4);
  host.parts.gpus.clear();
  const Topology topology = host.build();
  const Placement all = placed(topology, {});
  ASSERT_EQ(all.ranks.size(), 8u) << "a rank a core";
  EXPECT_EQ(cpus(all, 5), "5,13");
  EXPECT_EQ(all.ranks[5].nics.at(0).nic, 1u) << "the NIC of its NUMA node";
  const Placement one = placed(topology, {1});
  EXPECT_EQ(cpus(one, 0), "0-15") << "nobody else is there";
  const Placement three = placed(topology, {3});
  EXPECT_EQ(three.ranks[0].numa, std::vector<int>{0});
  EXPECT_EQ(three.ranks[2].numa, std::vector<int>{1});
}

TEST(Place, DividesRanksOverHostsByOneAtMost) {
  const Placement placement = placed(two_sockets(4).build(), {7, 3});
  std::vector<int> count(3, 0);
  for (const RankPlace& rank : placement.ranks) ++count[static_cast<std::size_t>(rank.host)];
  EXPECT_EQ(count, (std::vector<int>{3, 2, 2}));
  EXPECT_EQ(placement.ranks[5].local, 0);
}

TEST(Place, DoesNotDependOnTheOrderOfEnumeration) {
  HostBuilder host = two_sockets(4);
  const Placement before = placed(host.build(), {5});
  std::reverse(host.parts.gpus.begin(), host.parts.gpus.end());
  std::reverse(host.parts.nics.begin(), host.parts.nics.end());
  std::reverse(host.parts.numa.begin(), host.parts.numa.end());
  const Placement after = placed(host.build(), {5});
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(before.ranks[i].reason, after.ranks[i].reason);
}

TEST(Place, TakesOnlyVisibleGpusInTheOrderOfTheRing) {
  const Topology topology = two_sockets(4).build();
  const auto shown = visible_gpus(topology, "3,1", {0, 1, 2, 3});
  ASSERT_TRUE(shown);
  const Placement placement = placed(topology, {0, 1, std::nullopt, *shown});
  ASSERT_EQ(placement.ranks.size(), 2u);
  EXPECT_EQ(placement.ranks[0].gpu, 1u);
  EXPECT_TRUE(placement.reorders_gpus);
  const auto set = rank_environment(topology, placement, placement.ranks[0]);
  EXPECT_NE(std::find(set.begin(), set.end(),
                      std::pair<std::string, std::string>("CUDA_VISIBLE_DEVICES", "1,3")),
            set.end());
}

TEST(Place, GivesAMigInstanceToOneRankAlone) {
  HostBuilder host = two_sockets(4);
  host.parts.gpus[0].uuid = "GPU-aa";
  const Topology topology = host.build();
  const auto shown = visible_gpus(topology, "MIG-GPU-aa/1/0,MIG-GPU-aa/2/0", {0, 1, 2, 3});
  ASSERT_TRUE(shown);
  const Placement placement = placed(topology, {0, 1, std::nullopt, *shown});
  ASSERT_EQ(placement.ranks.size(), 2u);
  EXPECT_EQ(placement.ranks[1].gpu, 0u) << "both are of GPU0";
  const auto set = rank_environment(topology, placement, placement.ranks[1]);
  EXPECT_EQ(set.at(1).second, "MIG-GPU-aa/2/0");
}

TEST(Place, NoNicThatIsMoreThanAWordEntersTheEnvironment) {
  for (const char* name : {"mlx5_0;id", "mlx5_0,mlx5_1", "a b", "$(id)"}) {
    HostBuilder host;
    const std::size_t up = host.switch_below(host.root(0));
    host.gpu_on(up);
    host.nic_on(up, name);
    const Topology topology = host.build();
    const Placement placement = placed(topology, {});
    for (const auto& [variable, value] :
         rank_environment(topology, placement, placement.ranks.at(0))) {
      EXPECT_NE(variable, "UCX_NET_DEVICES") << value;
    }
  }
}

TEST(Place, FirstHostsHaveTheRanksThatAreLeft) {
  PlaceRequest request;
  request.ranks = 5;
  request.hosts = 3;
  std::vector<int> counts(3, 0);
  for (const RankPlace& rank : placed(two_sockets(4).build(), request).ranks)
    ++counts.at(rank.host);
  EXPECT_EQ(counts, (std::vector<int>{2, 2, 1}));
}

TEST(Place, RanksOfOneCoreHaveAThreadEach) {
  HostBuilder host;
  host.parts.numa.push_back({0, 0, "0-3", {}, {"0,2", "1,3"}});
  PlaceRequest request;
  request.ranks = 4;
  std::vector<int> all;
  for (const RankPlace& rank : placed(host.build(), request).ranks) {
    ASSERT_EQ(rank.cpus.size(), 1u);
    all.push_back(rank.cpus[0]);
  }
  EXPECT_EQ(all, (std::vector<int>{0, 2, 1, 3}));
}

TEST(Place, ACpuOfTwoCoresIsTheFirsts) {
  HostBuilder host;
  host.parts.numa.push_back({0, 0, "0-3", {}, {"0-2", "1-3"}});
  PlaceRequest request;
  request.ranks = 2;
  const Placement placement = placed(host.build(), request);
  EXPECT_EQ(placement.ranks.at(0).cpus, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(placement.ranks.at(1).cpus, (std::vector<int>{3}));
}

TEST(Place, WholeNodesOfARankAreOfOnePackage) {
  HostBuilder host;
  for (int node = 0; node < 8; ++node) {
    host.parts.numa.push_back({node, node / 4, std::to_string(node), {}});
  }
  PlaceRequest request;
  request.ranks = 3;
  for (const RankPlace& rank : placed(host.build(), request).ranks) {
    EXPECT_EQ(rank.numa.front() / 4, rank.numa.back() / 4) << rank.reason;
  }
}

TEST(Place, IdleCoresAreNoted) {
  PlaceRequest request;
  request.ranks = 2;  // both on the first socket
  const auto notes = placed(two_sockets(4).build(), request).notes;
  EXPECT_EQ(std::count(notes.begin(), notes.end(), "4 of 8 cores have no rank"), 1);
}

TEST(Place, TooManyRanksOfManyHostsAreCounted) {
  PlaceRequest request;
  request.hosts = 65536;
  request.gpus.emplace();
  for (int i = 0; i < 32; ++i) request.gpus->push_back({kNone, std::to_string(i)});
  const auto placement = place(two_sockets(4).build(), request);
  ASSERT_FALSE(placement);
  EXPECT_EQ(placement.error().what, "2097152 ranks: 1 to 1048576");
}

}  // namespace
}  // namespace gdrx::topo
