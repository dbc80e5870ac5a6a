// SPDX-License-Identifier: Apache-2.0
// Verbs that are refused at one of their calls: what is made is made whole or not at all, and what
// fails is told by its name. The mixes are the swarm's.
#include <cerrno>

#include "tests/fabric/traffic.hpp"

namespace gdrx::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ClusterSettings unstarted() {
  ClusterSettings settings;
  settings.receive_ring = Traffic::receive_ring_bytes(settings.hosts);
  settings.start = false;
  return settings;
}

// Of a device of one rail: 1 its datagrams, 2 its staging memory, 3 the test's receive_ring, 4 and
// 5 a peer's. Memory that may not be locked (ulimit -l) is the likeliest first failure of all.
TEST(RefusedVerb, AConnectThatCouldNotRegisterItsMemorySaysSoAndCanBeRepeated) {
  Cluster cluster(unstarted());
  cluster.network.fail_verb(0, {Verb::reg_mr, 4, 1, ENOMEM});
  auto started = cluster.start();
  ASSERT_FALSE(started.has_value());
  EXPECT_NE(describe(started.error()).find("ibv_reg_mr"), std::string::npos);
  cluster.run_for(milliseconds(5));  // polls what the failure left
  EXPECT_EQ(cluster[0].error, "");
  EXPECT_TRUE(cluster[0].device->connect(Rank{1}, cluster[1].device->address()).has_value());
}

TEST(RefusedVerb, AHelloThatCannotBeServedEndsInAnErrorOfPoll) {
  Cluster cluster(unstarted());
  cluster.network.fail_verb(1, {Verb::reg_mr, 4, 1, ENOMEM});
  ASSERT_FALSE(cluster.start().has_value());  // rank 0 has connected, rank 1 could not
  ASSERT_TRUE(cluster[1].device->connect(Rank{0}, cluster[0].device->address()).has_value());

  Cluster other(unstarted());
  other.network.fail_verb(1, {Verb::reg_mr, 4, 1000, ENOMEM});
  ASSERT_FALSE(other.start().has_value());
  EXPECT_TRUE(other.run_until([&] { return !other[1].error.empty(); }, milliseconds(50)));
  EXPECT_NE(other[1].error.find("ibv_reg_mr"), std::string::npos) << other[1].error;
  EXPECT_EQ(other[1].device->describe().find("of rank 0"), std::string::npos);
}

TEST(RefusedVerb, WhereAnyIsRefusedAtOpeningNothingIsLeftBehind) {
  for (std::size_t verb = 0; verb < kVerbs; ++verb) {
    for (std::uint64_t nth = 1; nth <= 6; ++nth) {
      Cluster cluster(unstarted());
      cluster.network.fail_verb(0, {static_cast<Verb>(verb), nth, 1, EIO});
      const auto started = cluster.start();
      if (!started) {
        EXPECT_NE(describe(started.error()).find(to_string(static_cast<Verb>(verb))),
                  std::string::npos)
            << describe(started.error());
      }
      cluster.hosts.clear();
      EXPECT_EQ(cluster.network.live_objects(), 0U) << to_string(static_cast<Verb>(verb)) << nth;
    }
  }
}

std::size_t lines(const Host& host, std::string_view words) {
  return static_cast<std::size_t>(std::count_if(
      host.log.begin(), host.log.end(),
      [&](const std::string& line) { return line.find(words) != std::string::npos; }));
}

bool fails_with(Cluster& cluster, int rank, std::string_view words, Duration within) {
  cluster.run_until([&] { return !cluster[rank].error.empty(); }, within,
                    std::chrono::microseconds(50));
  return cluster[rank].error.find(words) != std::string::npos;
}

// As on EFA, which has none.
TEST(ReliableQp, APortWithoutAnyIsLeftOutOfTheRailsAndSaidToBe) {
  ClusterSettings settings = unstarted();
  settings.nics = 2;
  settings.unreliable = {2, 2};
  settings.log_level = Level::info;
  Cluster cluster(settings);
  ASSERT_TRUE(cluster.start().has_value());
  EXPECT_EQ(cluster[0].device->ports().find("sim1:1"), std::string::npos);
  EXPECT_EQ(lines(cluster[0], "sim1:1 has no reliable"), 1U);
}

TEST(ReliableQp, WhereNoPortHasAnyOpeningFailsAndSaysSo) {
  ClusterSettings settings = unstarted();
  settings.unreliable = {1, 1};
  Cluster cluster(settings);
  const auto started = cluster.start();
  ASSERT_FALSE(started.has_value());
  EXPECT_NE(started.error().what.find("sim0:1 has no reliable"), std::string::npos)
      << started.error().what;
}

TEST(ReliableQp, OneThatIsRefusedForGoodEndsThePeerAtOnceWithTheReason) {
  for (const int error : {EOPNOTSUPP, EINVAL, EPERM}) {
    Cluster cluster(unstarted());
    ASSERT_TRUE(cluster.start().has_value());
    cluster.network.fail_verb(0, {Verb::create_qp, 1, 1'000'000, error});
    EXPECT_TRUE(fails_with(cluster, 0, "ibv_create_qp", milliseconds(100))) << cluster[0].error;
  }
}

TEST(ReliableQp, OneThatIsRefusedAgainAndAgainIsToldAndEndsThePeerAfterItsTimeout) {
  for (const Verb verb : {Verb::create_qp, Verb::modify_qp, Verb::post_recv}) {
    Cluster cluster(unstarted());
    ASSERT_TRUE(cluster.start().has_value());
    cluster.network.fail_verb(0, {verb, 1, 1'000'000, ENOMEM});
    cluster.run_for(milliseconds(1500));
    EXPECT_EQ(cluster[0].error, "");
    EXPECT_GE(lines(cluster[0], to_string(verb)), 1U);
    EXPECT_LE(cluster[0].log.size(), 30U);
    EXPECT_TRUE(fails_with(cluster, 0, to_string(verb), seconds(2))) << cluster[0].error;
  }
}

// The third leads to RTS: its QP knows the peer's, and its end has to be agreed upon.
TEST(ReliableQp, ThatFailedBeforeItWasEverUpIsNotAwaitedForEver) {
  Cluster cluster(unstarted());
  ASSERT_TRUE(cluster.start().has_value());
  cluster.network.fail_verb(0, {Verb::modify_qp, 3, 1, EIO});
  ASSERT_TRUE(cluster.run_until([&] { return lines(cluster[0], "sim0:1 down") > 0; }));
  cluster[1].slow = true;  // and is not heard again
  EXPECT_TRUE(fails_with(cluster, 0, "has acknowledged or answered", seconds(3)))
      << cluster[0].error;
}

TEST(ReliableQp, OfAPeerThatComesLateIsAwaited) {
  Cluster cluster(unstarted());
  ASSERT_TRUE(cluster.start().has_value());
  cluster[1].slow = true;
  cluster.run_for(seconds(5));  // more than twice the peer's timeout
  EXPECT_EQ(cluster[0].error, "");
  cluster[1].slow = false;
  cluster.send(0, 1, pattern(100, 1), 0, 1U);
  EXPECT_TRUE(cluster.run_until([&] { return cluster.count(1, CompletionKind::immediate) == 1; }));
}

// Of so many hosts that rank 0 needs a second queue, and gets none above `most` entries.
ClusterSettings with_queues(int most, int error, int* refused = nullptr) {
  ClusterSettings settings;
  settings.hosts = 26;
  settings.star = true;
  settings.receive_ring = 1 << 16;
  settings.amend = [=](int rank, verbs::VerbsTable& table) {
    if (rank != 0) return;
    table.create_cq = [=, real = table.create_cq](ibv_context* context, int entries) -> ibv_cq* {
      errno = error;
      if (entries > most && refused != nullptr) ++*refused;
      return entries > most ? nullptr : real(context, entries);
    };
  };
  return settings;
}

TEST(CompletionQueues, OneThatIsTooLargeForTheSystemIsMadeSmaller) {
  for (const int error : {ENOMEM, EINVAL}) {
    int refused = 0;
    Cluster cluster(with_queues(512, error, &refused));
    for (int peer = 1; peer < 26; ++peer) cluster.send(peer, 0, pattern(5000, 1), 0, 1);
    EXPECT_TRUE(
        cluster.run_until([&] { return cluster.count(0, CompletionKind::immediate) == 25; }));
    EXPECT_EQ(cluster[0].error, "");
    EXPECT_EQ(cluster[0].log, std::vector<std::string>());
    EXPECT_EQ(refused, 3) << "4096, 2048, 1024";
  }
}

TEST(CompletionQueues, OneThatIsTooSmallForAQpEndsThePeerAndIsToldOnce) {
  Cluster cluster(with_queues(150, ENOMEM));
  cluster.run_for(milliseconds(1000));
  EXPECT_EQ(lines(cluster[0], "ibv_create_cq"), 25U);  // one a peer
  EXPECT_TRUE(fails_with(cluster, 0, "of 192 entries, which a QP needs", seconds(2)))
      << cluster[0].error;
}

// No hello leaves, and so no rail ever comes up.
TEST(RefusedVerb, DatagramsThatAreNeverTakenEndThePeerAfterItsTimeoutWithTheReason) {
  Cluster cluster(unstarted());
  ASSERT_TRUE(cluster.start().has_value());
  cluster.network.fail_verb(0, {Verb::post_send, 1, ~std::uint64_t{0}, ENOMEM});
  cluster.run_for(milliseconds(1500));
  EXPECT_EQ(cluster[0].error, "");
  EXPECT_EQ(lines(cluster[0], "ibv_post_send"), 1U);
  EXPECT_TRUE(fails_with(cluster, 0, "ibv_post_send", seconds(2))) << cluster[0].error;
}

// The epoch that began by the peer's hello has ended, and no end of it is told.
TEST(RefusedVerb, DatagramsThatAreNeverTakenEndThePeerInAQuiescedEpochToo) {
  Cluster cluster(unstarted());
  ASSERT_TRUE(cluster.start().has_value());
  cluster.network.fail_verb(0, {Verb::post_send, 1, ~std::uint64_t{0}, ENOMEM});
  cluster.run_for(milliseconds(100));
  cluster.network.break_qps(0, 0);
  EXPECT_TRUE(fails_with(cluster, 0, "ibv_post_send", seconds(4))) << cluster[0].error;
}

TEST(RefusedVerb, APortThatCannotBeReadIsNotSaidToBeDown) {
  Cluster cluster(ClusterSettings{});
  cluster.send(0, 1, pattern(5000, 1), 0, 1);
  cluster.network.fail_verb(0, {Verb::query_port, 1, ~std::uint64_t{0}, EIO});
  cluster.run_until([] { return false; }, milliseconds(2100), std::chrono::microseconds(50));
  cluster.network.break_qps(0, 0);
  const auto data = pattern(5000, 2);
  cluster.send(0, 1, data, 0, 2);
  EXPECT_TRUE(cluster.run_until([&] { return cluster.count(1, CompletionKind::immediate) == 2; }));
  EXPECT_EQ(lines(cluster[0], "port down"), 0U);
  EXPECT_EQ(lines(cluster[0], "ibv_query_port"), 1U);
}

TEST(ReliableQp, LetsItsPeerWriteAndNothingElse) {
  Cluster cluster(ClusterSettings{});
  cluster.send(0, 1, pattern(5000, 1), 0, 1);
  EXPECT_EQ(cluster.network.qp_access(0), std::multiset<unsigned>{IBV_ACCESS_REMOTE_WRITE});
}

TEST(ReliableQp, BeginsEachLifeWithAPacketNumberOfItsOwn) {
  ClusterSettings settings;
  settings.nics = 2;
  settings.qps = 2;
  Cluster cluster(settings);
  for (int epoch = 0; epoch < 5; ++epoch) {
    cluster.send(0, 1, pattern(5000, 1), 0, 1);
    cluster.run_for(milliseconds(20));
    cluster.network.break_qps(0, epoch % 2);
    cluster.run_for(milliseconds(20));
  }
  auto psns = cluster.network.first_psns();
  ASSERT_GE(psns.size(), 16U);
  std::sort(psns.begin(), psns.end());
  for (std::size_t i = 1; i < psns.size(); ++i) EXPECT_GT(psns[i] - psns[i - 1], 1U);
}

/// The receive_ring of rank 1, as rank 0 would know it if rank 1's NICs had never heard of it.
RemoteRegionId forged_region(Cluster& cluster) {
  Blob key = cluster[1].receive_ring->export_key();
  verbs::RegionKey forged;
  std::memcpy(static_cast<void*>(&forged), key.data(), sizeof forged);
  for (std::uint32_t& rkey : forged.rkey) rkey ^= 0x77;
  const auto bytes = std::as_bytes(std::span(&forged, 1));
  return *cluster[0].endpoints[1]->import_region(bytes);
}

void post_forged(Cluster& cluster, std::span<const std::byte> data) {
  WriteOp op;
  op.payload = data;
  op.remote = forged_region(cluster);
  op.has_immediate = true;
  ASSERT_TRUE(
      cluster.run_until([&] { return *cluster[0].endpoints[1]->post(op) == Progress::done; }));
}

TEST(FinalStatus, ARefusedAccessEndsThePeerWithTheReasonInsteadOfBeingRepeated) {
  ClusterSettings settings;
  settings.nics = 2;
  Cluster cluster(settings);
  const auto data = pattern(5000, 1);
  post_forged(cluster, data);
  EXPECT_TRUE(fails_with(cluster, 0, "remote access refused", seconds(1))) << cluster[0].error;
  EXPECT_LE(cluster[0].log.size() + cluster[1].log.size(), 10U);
}

TEST(FinalStatus, AnIsolatedPeerThatIsGivenUpKeepsNothingAlive) {
  ClusterSettings settings;
  settings.hosts = 3;
  Cluster cluster(settings);
  for (auto& host : cluster.hosts) host->device->isolate_peers();
  const auto data = pattern(5000, 1);
  cluster.send(0, 2, data, 0, 1);
  ASSERT_EQ(cluster.network.qp_access(0).size(), 2U);
  post_forged(cluster, data);
  const auto* here = &cluster[0].endpoints[1];
  ASSERT_TRUE(cluster.run_until([&] { return (*here)->error() != nullptr; }, seconds(1)));
  EXPECT_EQ(cluster.network.qp_access(0).size(), 1U);
  EXPECT_FALSE(cluster[0].device->busy());
  cluster.send(0, 2, data, 0, 1);
  EXPECT_TRUE(cluster.run_until([&] { return cluster.count(2, CompletionKind::immediate) == 2; }));
}

// Datagrams pass, and so every epoch begins well; its data is lost, as where a switch's MTU is too
// small.
TEST(Resends, AMessageThatIsLostInEveryLifeOfItsRailsEndsThePeer) {
  ClusterSettings settings;
  settings.nics = 2;
  settings.peer_timeout = seconds(60);
  Cluster cluster(settings);
  cluster.send(0, 1, pattern(5000, 1), 0, 1);
  cluster.network.set_fault(Fault::drop_packet, 1);
  cluster.send(0, 1, pattern(5000, 1), 0, 1);
  EXPECT_TRUE(fails_with(cluster, 0, "16 times", seconds(30))) << cluster[0].error;
  EXPECT_NE(cluster[0].error.find("retry exceeded"), std::string::npos) << cluster[0].error;
}

TEST(Resends, LivesWithoutAnyAcknowledgementComeEverMoreSlowly) {
  ClusterSettings settings;
  settings.peer_timeout = seconds(60);
  Cluster cluster(settings);
  cluster.send(0, 1, pattern(5000, 1), 0, 1);
  cluster.network.set_fault(Fault::drop_packet, 1);
  cluster.send(0, 1, pattern(5000, 1), 0, 1);
  cluster.run_until([] { return false; }, seconds(1), std::chrono::microseconds(50));
  EXPECT_LE(cluster[0].device->counters().rails_down, 12U);
}

}  // namespace
}  // namespace gdrx::sim
