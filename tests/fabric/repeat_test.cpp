// SPDX-License-Identifier: Apache-2.0
// NICs that deliver again what they have delivered, and rails whose silence is the machine's.
#include "tests/fabric/traffic.hpp"

namespace gdrx::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kSeeds = 10;

ClusterSettings two_rails(std::uint64_t seed) {
  ClusterSettings settings;
  settings.nics = 2;
  settings.seed = seed;
  settings.receive_ring = Traffic::receive_ring_bytes(2);
  return settings;
}

/// Traffic for 40 ms, then to its end. What was wrong.
std::string run(Cluster& cluster, std::uint64_t seed) {
  Traffic traffic(cluster, seed);
  std::string wrong;
  const auto round = [&] { return !(wrong = traffic.round()).empty(); };
  cluster.run_until(round, milliseconds(40));
  traffic.stop();
  const auto ended = [&] {
    return round() ||
           (traffic.finished() && !cluster[0].device->busy() && !cluster[1].device->busy());
  };
  if (wrong.empty() && !cluster.run_until(ended, seconds(10))) {
    wrong = "not all ended" + traffic.unfinished() + cluster[0].device->state();
  }
  return wrong;
}

std::uint64_t sum(Cluster& cluster, std::uint64_t verbs::Counters::*member) {
  return cluster[0].device->counters().*member + cluster[1].device->counters().*member;
}

std::size_t lines(Cluster& cluster, std::string_view words) {
  std::size_t count = 0;
  for (const auto& host : cluster.hosts) {
    count += static_cast<std::size_t>(std::count_if(
        host->log.begin(), host->log.end(),
        [&](const std::string& line) { return line.find(words) != std::string::npos; }));
  }
  return count;
}

TEST(Repeats, SoftRoceThatDeliversAgainCostsNoByteNoMessageAndNoRail) {
  std::uint64_t repeated = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    ClusterSettings settings = two_rails(seed);
    settings.soft = {true, true};
    settings.timeout = 12;  // no time-out of its own
    Cluster cluster(settings);
    cluster.network.set_fault(Fault::repeat, 0.2);
    EXPECT_EQ(run(cluster, seed), "") << "seed " << seed;
    EXPECT_EQ(sum(cluster, &verbs::Counters::rails_down), 0U) << "seed " << seed;
    repeated += sum(cluster, &verbs::Counters::repeated);
  }
  EXPECT_GT(repeated, 100U);
}

TEST(Repeats, AHostThatHasNoSuchNicIsTold) {
  for (const bool first : {true, false}) {
    ClusterSettings settings = two_rails(3);
    settings.soft = {first, !first};
    settings.timeout = 12;
    Cluster cluster(settings);
    cluster.network.set_fault(Fault::repeat, 0.2);
    EXPECT_EQ(run(cluster, 3), "");
    EXPECT_GT(sum(cluster, &verbs::Counters::repeated), 0U);
  }
}

// What had been given away may be another message's memory: no number of it is right after that.
TEST(Repeats, ANicOfWhichItIsNewsIsUsedWithCareOrItsPeerIsLostByName) {
  std::size_t careful = 0;
  std::size_t lost = 0;
  for (std::uint64_t seed = 1; seed <= 2 * kSeeds; ++seed) {
    ClusterSettings settings = two_rails(seed);
    settings.repeats = true;
    settings.timeout = 12;
    Cluster cluster(settings);
    cluster.network.set_fault(Fault::repeat, 0.002);
    const std::string wrong = run(cluster, seed);
    const bool named = wrong.find("a NIC wrote message") != std::string::npos &&
                       wrong.find("again") != std::string::npos;
    EXPECT_TRUE(wrong.empty() || named ||
                wrong.find("was written after its message") != std::string::npos)
        << "seed " << seed << ": " << wrong;
    lost += named ? 1U : 0U;
    careful += wrong.empty() ? lines(cluster, "delivered a part of a message again") : 0U;
  }
  EXPECT_GT(careful, 0U);
  EXPECT_GT(lost, 0U);
}

// Between two acknowledgements soft-RoCE hears one request to repeat; of a second loss it learns by
// its time-out of a second. So a write of 1 MB that lost one packet in twenty took 13 s.
TEST(Repeats, SoftRoceIsAcknowledgedAmidALongMessage) {
  const auto writes = [](bool soft, std::size_t bytes) {
    ClusterSettings settings = two_rails(1);
    settings.nics = 1;
    settings.soft = {soft, soft};
    settings.receive_ring = 16 << 20;
    Cluster cluster(settings);
    const auto data = pattern(bytes, 1);
    cluster.send(0, 1, data, 0, 1);
    EXPECT_TRUE(
        cluster.run_until([&] { return cluster.count(1, CompletionKind::immediate) == 1; }));
    EXPECT_EQ(std::memcmp(cluster[1].receive_ring->bytes().data(), data.data(), bytes), 0);
    return cluster.network.posted(IBV_WR_RDMA_WRITE) +
           cluster.network.posted(IBV_WR_RDMA_WRITE_WITH_IMM);
  };
  EXPECT_GE(writes(true, 1'000'000), 60U);
  EXPECT_LE(writes(true, 4'000'000), 70U);  // a queue pair takes 128
  EXPECT_LE(writes(true, 16'000), 5U);
  EXPECT_LE(writes(false, 1'000'000), 5U);
}

// A machine that stands still is silent on every rail, and the rails come back one after another:
// at the fifth beat rail 0 has been heard for 7 ms, and rail 1 will be in 2.
TEST(Silence, ThatAllRailsShareIsNoRails) {
  ClusterSettings settings = two_rails(1);
  settings.timeout = 13;  // a QP sends again after 33.6 ms
  settings.heartbeat = milliseconds(10);
  Cluster cluster(settings);
  cluster.run_for(milliseconds(5));
  const auto bytes = pattern(64, 1);
  const auto lose = [&](Fault fault, bool all) { cluster.network.set_fault(fault, all ? 1 : 0); };
  lose(Fault::drop_packet, true);
  lose(Fault::drop_datagram, true);
  cluster.send(0, 1, bytes, 0, 1);
  cluster.run_for(milliseconds(9));
  cluster.send(0, 1, bytes, 64, 2);
  cluster.run_for(milliseconds(16));
  lose(Fault::drop_packet, false);
  cluster.run_for(milliseconds(12));
  lose(Fault::drop_datagram, false);
  cluster.run_for(milliseconds(60));
  EXPECT_EQ(cluster.count(1, CompletionKind::immediate), 2U);
  EXPECT_EQ(lines(cluster, "it is silent while another rail answers"), 0U);
  EXPECT_EQ(sum(cluster, &verbs::Counters::rails_down), 0U);
}

}  // namespace
}  // namespace gdrx::sim
