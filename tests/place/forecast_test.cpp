// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/topo/builder.hpp"
#include "topo/place/forecast.hpp"

namespace gdrx::topo {
namespace {

using test::HostBuilder;

// PCIe 4.0 x16 gives 31.5 GB/s; a NIC of 200 Gb/s 25.
HostBuilder two_sockets() {
  HostBuilder host;
  for (int socket = 0; socket < 2; ++socket) {
    host.parts.numa.push_back({socket, socket, socket == 0 ? "0-3" : "4-7", {}});
    const std::size_t up = host.switch_below(host.root(socket));
    host.gpu_on(up);
    host.gpu_on(up);
    host.nic(host.bridge(up), fmt::format("mlx5_{}", socket), 200);
  }
  return host;
}

Placement placed(const Topology& topology, int ranks, int hosts = 1) {
  const auto placement = place(topology, {ranks, hosts});
  EXPECT_TRUE(placement);
  return placement ? *placement : Placement();
}

TEST(Forecast, RanksThatShareANicShareItsRate) {
  const Topology topology = two_sockets().build();
  EXPECT_NEAR(forecast(topology, placed(topology, 4).ranks).nic.gbytes, 12.5, 0.01);
  const Placement two = placed(topology, 2);  // both on mlx5_0
  EXPECT_EQ(forecast(topology, two.ranks).nic.limit, "mlx5_0 out of host 0, 2 flows");
}

TEST(Forecast, ANicOfTheOtherSocketIsSlow) {
  const Topology topology = two_sockets().build();
  auto ranks = placed(topology, 4).ranks;
  const double before = forecast(topology, ranks).nic.gbytes;
  std::swap(ranks[0].nics, ranks[2].nics);
  const Rate after = forecast(topology, ranks).nic;
  EXPECT_LT(after.gbytes, before);
  EXPECT_NE(after.limit.find("another socket"), std::string::npos) << after.limit;
}

TEST(Forecast, TheRingBetweenHostsLeavesEachByOneNicOnce) {
  const Topology topology = two_sockets().build();
  const Placement placement = placed(topology, 8, 2);
  const Rate ring = forecast(topology, placement.ranks).ring;
  EXPECT_NEAR(ring.gbytes, 25, 0.01) << ring.limit;
  auto cyclic = placement.ranks;  // as a launcher deals ranks to hosts in turn
  for (std::size_t i = 0; i < 8; ++i) cyclic[i] = placement.ranks[i % 2 * 4 + i / 2];
  EXPECT_NEAR(forecast(topology, cyclic).ring.gbytes, 12.5, 0.01);
}

TEST(Forecast, CoresOfTheOtherSocketShareTheSocketsLink) {
  const Topology topology = two_sockets().build();
  auto ranks = placed(topology, 4).ranks;
  const double before = forecast(topology, ranks).host.gbytes;
  std::swap(ranks[0].numa, ranks[2].numa);
  std::swap(ranks[1].numa, ranks[3].numa);
  const Rate after = forecast(topology, ranks).host;
  // Two GPUs share the switch's link already: crossing costs nothing more here, and never gains.
  EXPECT_LE(after.gbytes, before);
  EXPECT_GT(before, 0);
}

TEST(Forecast, ShufflingKeepsRanksHostsAndDevices) {
  const Topology topology = two_sockets().build();
  const Placement placement = placed(topology, 8, 2);
  const auto ranks = shuffled(placement, 7);
  ASSERT_EQ(ranks.size(), 8u);
  std::vector<std::pair<int, std::size_t>> before;
  std::vector<std::pair<int, std::size_t>> after;
  bool same = true;
  for (std::size_t i = 0; i < 8; ++i) {
    before.emplace_back(placement.ranks[i].host, placement.ranks[i].gpu);
    after.emplace_back(ranks[i].host, ranks[i].gpu);
    same &= before.back() == after.back();
    EXPECT_EQ(ranks[i].rank, static_cast<int>(i));
  }
  EXPECT_FALSE(same);
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  EXPECT_EQ(before, after);
  EXPECT_EQ(shuffled(placement, 7).front().reason, ranks.front().reason);
}

TEST(Forecast, NoShufflingGainsOnThisMachine) {
  const Topology topology = two_sockets().build();
  const Placement placement = placed(topology, 8, 2);
  const Forecast best = forecast(topology, placement.ranks);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Forecast other = forecast(topology, shuffled(placement, seed));
    EXPECT_LE(other.ring.gbytes, best.ring.gbytes + 1e-9) << seed;
    EXPECT_LE(other.nic.gbytes, best.nic.gbytes + 1e-9) << seed;
    EXPECT_LE(other.host.gbytes, best.host.gbytes + 1e-9) << seed;
  }
}

TEST(Forecast, WithoutRatesNothingIsKnown) {
  const auto cluster = parse_cluster("2 XYZ, 2 NICs");
  ASSERT_TRUE(cluster);
  const Forecast unknown = forecast(cluster->host, placed(cluster->host, 2).ranks);
  EXPECT_EQ(unknown.nic.gbytes, 0);
  EXPECT_TRUE(unknown.nic.limit.empty());
}

}  // namespace
}  // namespace gdrx::topo
