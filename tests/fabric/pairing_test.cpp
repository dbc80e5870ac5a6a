// SPDX-License-Identifier: Apache-2.0
// Which ports are joined: the rule by itself, and devices whose NICs are numbered in another order.
#include "transport/verbs/pairing.hpp"
#include "tests/fabric/cluster.hpp"
#include "transport/verbs/subnet.hpp"

namespace gdrx::sim {
namespace {

using verbs::pair_rails;
using verbs::Pairing;
using verbs::RailAddress;

/// Ports of 10.<subnet>.0.0/16 each; 0: of an unknown subnet.
std::vector<RailAddress> ports(std::initializer_list<int> subnets, std::uint8_t host) {
  std::vector<RailAddress> made;
  for (const int subnet : subnets) {
    RailAddress& port = made.emplace_back();
    port.ethernet = 1;
    port.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, static_cast<std::uint8_t>(subnet)};
    port.gid[14] = host;
    port.subnet_bits = subnet == 0 ? 0 : 112;
  }
  return made;
}

/// "own-peer" of each port pair; both ends have to find the same.
std::string pairs(std::initializer_list<int> own, std::initializer_list<int> peer) {
  const auto a = ports(own, 1);
  const auto b = ports(peer, 2);
  const Pairing here = pair_rails(a, b, true);
  const Pairing there = pair_rails(b, a, false);
  EXPECT_EQ(here.own_word(), there.peer_word());
  EXPECT_EQ(here.peer_word(), there.own_word());
  std::string text;
  for (std::size_t i = 0; i < here.count; ++i) {
    text += fmt::format("{}{}-{}", i == 0 ? "" : " ", here.pairs[i].own, here.pairs[i].peer);
  }
  return text;
}

TEST(Pairing, GoesByNumberWhereSubnetsDoNotTell) {
  EXPECT_EQ(pairs({0, 0}, {0, 0}), "0-0 1-1");
  EXPECT_EQ(pairs({5, 5, 5}, {5, 5, 5}), "0-0 1-1 2-2");
  EXPECT_EQ(pairs({1, 2}, {3, 4}), "0-0 1-1");
  EXPECT_EQ(pairs({0, 0, 0}, {0, 0}), "0-0 1-1 2-0");
  EXPECT_EQ(pairs({0}, {0, 0}), "0-0 0-1");
}

TEST(Pairing, JoinsPortsOfASubnetWhateverTheirNumbers) {
  EXPECT_EQ(pairs({1, 2}, {2, 1}), "0-1 1-0");
  EXPECT_EQ(pairs({1, 2, 3}, {3, 1, 2}), "0-1 1-2 2-0");
  EXPECT_EQ(pairs({1, 2}, {2, 3, 1}), "1-0 1-1 0-2");
  EXPECT_EQ(pairs({1, 9}, {8, 1}), "0-1 1-0");  // routers may lead from 9 to 8
  EXPECT_EQ(pairs({1, 1, 2}, {2, 1, 1}), "0-2 1-1 2-0");
}

TEST(Pairing, OfAPortThatIsNotThereIsRefused) {
  verbs::Control message;
  message.rails = 2;
  message.own_rails = 0x10;
  message.peer_rails = 0x10;
  EXPECT_TRUE(read_pairing(message, 2).has_value());
  EXPECT_FALSE(read_pairing(message, 1).has_value());
  message.own_rails = 0x20;
  EXPECT_FALSE(read_pairing(message, 2).has_value());
}

TEST(Pairing, DevicesWithNicsInAnotherOrderTalkOverAllOfThem) {
  ClusterSettings settings;
  settings.nics = 3;
  settings.first_subnet = {0, 2};
  settings.routed = false;
  settings.log_level = Level::info;
  Cluster cluster(settings);
  const auto data = pattern(500'000, 1);
  std::uint32_t number = 0;
  const auto up = [&] {
    const std::string text = cluster[0].device->state();
    return text.find("connecting") == std::string::npos;
  };
  ASSERT_TRUE(cluster.run_until(up)) << cluster[0].device->state();
  for (; number < 20; ++number) cluster.send(0, 1, data, 0, number, number);
  ASSERT_TRUE(cluster.run_until([&] {
    return cluster.count(1, CompletionKind::immediate) == number &&
           cluster.count(0, CompletionKind::write_done) == number;
  }));
  EXPECT_TRUE(std::equal(data.begin(), data.end(), cluster[1].receive_ring->bytes().begin()));
  EXPECT_EQ(cluster[0].device->counters().rails_down, 0U);
  EXPECT_TRUE(std::any_of(cluster[0].log.begin(), cluster[0].log.end(), [](const auto& line) {
    return line.find("of rank 0 to sim1:1") != std::string::npos &&
           line.find("of one subnet") != std::string::npos;
  }));
}

TEST(Subnet, OfAnAddressThatNoInterfaceHasIsUnknown) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  gid.raw[12] = 127;
  gid.raw[15] = 1;
  EXPECT_EQ(verbs::subnet_bits_of(gid), 96 + 8);  // the loopback interface has it
  gid.raw[12] = 203;
  gid.raw[14] = 113;
  EXPECT_EQ(verbs::subnet_bits_of(gid), 0);
  gid.raw[0] = 0xfe;
  gid.raw[1] = 0x80;
  EXPECT_EQ(verbs::subnet_bits_of(gid), 0);
}

}  // namespace
}  // namespace gdrx::sim
