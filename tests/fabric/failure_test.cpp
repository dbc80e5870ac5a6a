// SPDX-License-Identifier: Apache-2.0
// Rails that fail, one named fault at a time. The mixes are the swarm's.
#include "tests/fabric/traffic.hpp"
#include "tests/transport/device_rules.hpp"
#include "transport/verbs/wire.hpp"

namespace gdrx::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ClusterSettings rails(int nics, int hosts = 2) {
  ClusterSettings settings;
  settings.nics = nics;
  settings.hosts = hosts;
  settings.receive_ring = Traffic::receive_ring_bytes(hosts);
  return settings;
}

bool logged(Host& host, std::string_view words) {
  return std::any_of(host.log.begin(), host.log.end(), [&](const std::string& line) {
    return line.find(words) != std::string::npos;
  });
}

std::string go_on(Cluster& cluster, Traffic& traffic, Duration time) {
  std::string wrong;
  cluster.run_until([&] { return !(wrong = traffic.round()).empty(); }, time);
  return wrong;
}

/// Runs traffic for `before`, does `hurt`, runs on for `after`, ends it. What was wrong.
std::string under(Cluster& cluster, Traffic& traffic, const std::function<void()>& hurt,
                  Duration before = milliseconds(5), Duration after = milliseconds(80)) {
  std::string wrong;
  const auto round = [&] {
    if (wrong.empty()) wrong = traffic.round();
    return !wrong.empty();
  };
  cluster.run_until(round, before);
  hurt();
  cluster.run_until(round, after);
  traffic.stop();
  cluster.run_until([&] { return round() || traffic.finished(); }, seconds(10));
  if (wrong.empty() && !traffic.finished()) wrong = "not all ended" + traffic.unfinished();
  return wrong;
}

TEST(RailFailure, APortThatGoesDownCostsItsRailAndNothingElse) {
  Cluster cluster(rails(2));
  Traffic traffic(cluster, 1);
  EXPECT_EQ(under(cluster, traffic, [&] { cluster.network.set_port(0, 1, false); }), "");
  EXPECT_TRUE(logged(cluster[0], "rail sim1:1: port down"));
  EXPECT_TRUE(logged(cluster[0], "rail sim1:1 down"));
  EXPECT_TRUE(logged(cluster[1], "rail sim1:1 down"));
  EXPECT_GT(traffic.messages(), 50U);
}

TEST(RailFailure, ARailComesBackWithNewQpsWhenItsPortDoes) {
  Cluster cluster(rails(2));
  Traffic traffic(cluster, 2);
  EXPECT_EQ(under(
                cluster, traffic,
                [&] {
                  cluster.network.set_port(0, 1, false);
                  const std::string wrong = go_on(cluster, traffic, milliseconds(100));
                  EXPECT_EQ(wrong, "");
                  cluster.network.set_port(0, 1, true);
                },
                milliseconds(5), milliseconds(1200)),
            "");
  EXPECT_TRUE(logged(cluster[0], "rail sim1:1 is back"));
  EXPECT_TRUE(logged(cluster[1], "rail sim1:1 is back"));
}

TEST(RailFailure, TheOnlyRailComesBackBeforeTheDeadlineAndNothingIsLost) {
  Cluster cluster(rails(1));
  Traffic traffic(cluster, 3);
  EXPECT_EQ(under(
                cluster, traffic,
                [&] {
                  cluster.network.set_port(1, 0, false);
                  EXPECT_EQ(go_on(cluster, traffic, milliseconds(300)), "");
                  cluster.network.set_port(1, 0, true);
                },
                milliseconds(5), milliseconds(1000)),
            "");
  EXPECT_TRUE(logged(cluster[0], "is back"));
}

// All that was posted has landed, and no acknowledgement came: nothing may land again.
TEST(RailFailure, WhatLandedWithoutAcknowledgementIsNotDeliveredTwice) {
  Cluster cluster(rails(2));
  Traffic traffic(cluster, 4);
  EXPECT_EQ(under(cluster, traffic, [&] { cluster.network.set_fault(Fault::ack_blackout, 0.02); }),
            "");
  EXPECT_GT(cluster.network.fired(Fault::ack_blackout), 0U);
  EXPECT_GT(cluster[0].device->counters().reconciled + cluster[1].device->counters().reconciled,
            0U);
}

// A packet stays in a switch until its sender has given up, and comes when its buffer is another's.
TEST(RailFailure, AGhostWriteFindsItsQpQuiesced) {
  std::uint64_t held = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ClusterSettings settings = rails(2);
    settings.seed = seed;
    Cluster cluster(settings);
    Traffic traffic(cluster, seed);
    EXPECT_EQ(under(cluster, traffic, [&] { cluster.network.set_fault(Fault::hold, 0.01); }), "");
    held += cluster.network.fired(Fault::hold);
  }
  EXPECT_GT(held, 20U);
}

TEST(RailFailure, ADeadNicLeavesItsRailForGood) {
  Cluster cluster(rails(2));
  Traffic traffic(cluster, 6);
  EXPECT_EQ(under(cluster, traffic, [&] { cluster.network.kill_nic(1, 1); }), "");
  EXPECT_TRUE(logged(cluster[1], "rail sim1:1 dead"));
}

// With adaptive routing a write goes in two parts. The second one is refused, and the first is on
// its way: it must not land when the message has come over another rail and its buffer is
// another's.
TEST(RailFailure, WhatWasPostedInPartIsSentAgainOnlyWhenItsQpIsQuiesced) {
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ClusterSettings settings = rails(2);
    settings.seed = seed;
    settings.adaptive_routing = 1;
    Cluster cluster(settings);
    Traffic traffic(cluster, seed);
    cluster.network.set_fault(Fault::delay, 0.3);
    EXPECT_EQ(under(cluster, traffic, [&] { cluster.network.set_fault(Fault::post_fails, 0.01); }),
              "");
    refused += cluster.network.fired(Fault::post_fails);
  }
  EXPECT_GT(refused, 20U);
}

TEST(RailFailure, AFailedQpIsReplacedAtOnce) {
  Cluster cluster(rails(1));
  Traffic traffic(cluster, 7);
  EXPECT_EQ(under(cluster, traffic, [&] { cluster.network.break_qps(0, 0); }), "");
  EXPECT_TRUE(logged(cluster[0], "is back"));
}

TEST(RailFailure, APeerWithoutAnyRailIsLostWithBothEndsNamedWithinTheDeadline) {
  ClusterSettings settings = rails(2);
  settings.peer_timeout = milliseconds(400);
  Cluster cluster(settings);
  Traffic traffic(cluster, 8);
  std::string wrong;
  cluster.run_until([&] { return !(wrong = traffic.round()).empty(); }, milliseconds(5));
  ASSERT_EQ(wrong, "");
  const Instant start = cluster.network.now();
  cluster.network.set_port(1, 0, false);
  cluster.network.set_port(1, 1, false);
  ASSERT_TRUE(cluster.run_until(
      [&] {
        (void)traffic.round();
        return !cluster[0].error.empty() && !cluster[1].error.empty();
      },
      seconds(2)));
  EXPECT_LT(cluster.network.now() - start, milliseconds(600));
  for (const std::string_view part :
       {"rank 1 is lost", "400 ms", "of rank 0 to", "(10.", "qp 0x", "of rank 1", "sim"}) {
    EXPECT_NE(cluster[0].error.find(part), std::string::npos) << part << ": " << cluster[0].error;
  }
}

TEST(RailFailure, APeerThatDoesNotPollIsNotLost) {
  ClusterSettings settings = rails(1);
  settings.receive_ring = 1 << 20;
  settings.peer_timeout = milliseconds(100);
  Cluster cluster(settings);
  const auto data = pattern(5000, 1);
  cluster.send(0, 1, data, 0, 1);
  ASSERT_TRUE(cluster.run_until([&] { return cluster.count(1, CompletionKind::immediate) == 1; }));
  cluster[1].slow = true;  // its NIC acknowledges without it
  for (int i = 0; i < 20; ++i) cluster.send(0, 1, data, 0, 2);
  cluster.run_for(seconds(1));
  EXPECT_EQ(cluster[0].error, "");
  cluster[1].slow = false;
  ASSERT_TRUE(cluster.run_until([&] { return cluster.count(1, CompletionKind::immediate) == 21; }));
}

// Who computes for long and polls nothing hears nobody: that is no peer's silence.
TEST(RailFailure, NobodyIsLostByWhoDidNotPoll) {
  for (const int hosts : {2, 40}) {  // more are looked at in turns
    ClusterSettings settings = rails(1);
    settings.hosts = hosts;
    settings.star = true;
    settings.receive_ring = 1 << 16;
    settings.peer_timeout = milliseconds(100);
    Cluster cluster(settings);
    const auto data = pattern(5000, 1);
    for (int peer = 1; peer < hosts; ++peer) cluster.send(0, peer, data, 0, 1);
    const auto have_come = [&](std::size_t count) {
      return cluster.run_until([&] {
        for (int peer = 1; peer < hosts; ++peer) {
          if (cluster.count(peer, CompletionKind::immediate) < count) return false;
        }
        return true;
      });
    };
    ASSERT_TRUE(have_come(1));
    cluster.run_for(milliseconds(20));
    cluster[0].slow = true;
    cluster.run_for(milliseconds(300));
    for (int peer = 1; peer < hosts; ++peer) {
      const auto posted = cluster.post(0, peer, {}, data, 0, 2, 0);
      ASSERT_TRUE(posted.has_value() && *posted == Progress::done);
    }
    cluster[0].slow = false;
    for (int i = 0; i < 40; ++i) cluster.poll_all();  // before anything can have answered
    EXPECT_TRUE(have_come(2)) << hosts;
    EXPECT_EQ(cluster[0].error, "") << hosts;
  }
}

// What was acknowledged while nobody polled is read before anybody is judged.
TEST(RailFailure, NobodyIsLostByWhoPostedAndDidNotPoll) {
  ClusterSettings settings = rails(1);
  settings.hosts = 40;
  settings.star = true;
  settings.receive_ring = 1 << 16;
  settings.peer_timeout = milliseconds(100);
  Cluster cluster(settings);
  const auto data = pattern(5000, 1);
  for (int peer = 1; peer < 40; ++peer) cluster.send(0, peer, data, 0, 1);
  for (int i = 0; i < 32 && cluster[0].error.empty(); ++i) {  // every so many polls know the time
    cluster.run_for(milliseconds(2));
    for (int peer = 1; peer < 40; ++peer) {
      const auto posted = cluster.post(0, peer, {}, data, 0, 2, 0);
      ASSERT_TRUE(posted.has_value() && *posted == Progress::done);
    }
    cluster[0].slow = true;
    cluster.run_until([] { return false; }, milliseconds(120), milliseconds(1));
    cluster[0].slow = false;
    cluster.poll_all();
  }
  EXPECT_EQ(cluster[0].error, "");
}

TEST(RailFailure, ASilentRailIsGivenUpBeforeItsQpsTimeOut) {
  ClusterSettings settings = rails(2);
  settings.timeout = 20;  // 4 s, eight times: NCCL's
  Cluster cluster(settings);
  Traffic traffic(cluster, 9);
  std::string wrong;
  cluster.run_until([&] { return !(wrong = traffic.round()).empty(); }, milliseconds(5));
  const Instant start = cluster.network.now();
  cluster.network.cut(1, 1);  // no port goes down, and nothing comes back
  cluster[1].log.clear();
  ASSERT_TRUE(cluster.run_until(
      [&] {
        wrong = traffic.round();
        return !wrong.empty() || logged(cluster[0], "rail sim1:1 down");
      },
      seconds(5)));
  EXPECT_EQ(wrong, "");
  EXPECT_LT(cluster.network.now() - start, milliseconds(200));
  EXPECT_EQ(go_on(cluster, traffic, milliseconds(200)), "");
  EXPECT_GT(cluster[0].device->counters().resent, 0U);
}

TEST(RailFailure, APortThatGoesDownIsLeftAtOnceWhileAnotherIsUp) {
  ClusterSettings settings = rails(2);
  settings.timeout = 20;
  Cluster cluster(settings);
  Traffic traffic(cluster, 11);
  EXPECT_EQ(go_on(cluster, traffic, milliseconds(5)), "");
  cluster.network.set_port(1, 1, false);
  // Looked for every 10 ms; heartbeats are 10 ms apart here, and two of them make silence.
  EXPECT_EQ(go_on(cluster, traffic, milliseconds(15)), "");
  EXPECT_TRUE(logged(cluster[1], "rail sim1:1 down: its port is down"));
  EXPECT_TRUE(logged(cluster[0], "rail sim1:1 down: its other end gave it up"));
}

TEST(RailFailure, AnAddressThatNobodyAnswersForIsAskedForAgain) {
  ClusterSettings settings = rails(2);
  settings.unresolved = 3;  // both rails, and one of them once more
  Cluster cluster(settings);
  EXPECT_TRUE(logged(cluster[0], "rail sim0:1 does not reach sim0:1 of rank 1 yet"));
  Traffic traffic(cluster, 12);
  EXPECT_EQ(under(
                cluster, traffic, [] {}, seconds(1), seconds(3)),
            "");
  EXPECT_GT(traffic.messages(), 50U);
  EXPECT_NE(cluster[0].device->state().find("sim1:1 up"), std::string::npos);
}

TEST(Bounds, AKeyOrAnAddressThatIsNotOursIsRefused) {
  Cluster cluster(rails(1));
  auto bad = cluster[1].receive_ring->export_key();
  bad.pop_back();
  EXPECT_FALSE(cluster[0].endpoints[1]->import_region(bad).has_value());
  bad = cluster[1].receive_ring->export_key();
  bad[0] = std::byte{0};
  EXPECT_FALSE(cluster[0].endpoints[1]->import_region(bad).has_value());
  auto address = cluster[1].device->address();
  address[5] = std::byte{200};  // rails
  EXPECT_FALSE(cluster[0].device->connect(Rank{7}, address).has_value());
  address = cluster[1].device->address();
  address[6] = std::byte{3};  // QPs: not ours
  auto other = cluster[0].device->connect(Rank{7}, address);
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, Errc::mismatch);
}

TEST(Bounds, AWriteBeyondItsRegionIsRefusedBeforeItIsPosted) {
  Cluster cluster(rails(1));
  const auto data = pattern(4096, 1);
  ASSERT_FALSE(cluster.post(0, 1, {}, data, cluster[1].receive_ring->bytes().size() - 100, 1, 0)
                   .has_value());
}

TEST(Objects, NothingIsLeftBehind) {
  std::unique_ptr<Cluster> cluster = std::make_unique<Cluster>(rails(2, 3));
  {
    Traffic traffic(*cluster, 10);
    EXPECT_EQ(under(*cluster, traffic, [&] { cluster->network.break_qps(0, 0); }), "");
  }
  EXPECT_GT(cluster->network.live_objects(), 0U);
  cluster->hosts.clear();
  EXPECT_EQ(cluster->network.live_objects(), 0U);
}

TEST(Regions, ThatHaveEndedGiveTheirPlacesToOthers) {
  Cluster cluster(rails(1));
  test::expect_places_to_be_used_again<verbs::RegionKey>(*cluster[0].device);
}

// A communicator's connections close one by one, while others of the same peer go on.
TEST(Isolated, WhatIsLateForARegionThatHasEndedIsDropped) {
  ClusterSettings settings = rails(1);
  Cluster cluster(settings);
  for (int rank : {0, 1}) cluster[rank].device->isolate_peers();
  auto ended = *cluster[1].device->allocate_memory(4096);
  const auto remote = *cluster[0].endpoints[1]->import_region(ended->export_key());
  ended.reset();
  std::uint64_t word = 7;
  WriteOp op;
  op.header = std::as_bytes(std::span(&word, 1));
  op.remote = remote;
  ASSERT_TRUE(
      cluster.run_until([&] { return *cluster[0].endpoints[1]->post(op) == Progress::done; }));
  cluster.send(0, 1, {}, 0, 5U);
  EXPECT_TRUE(cluster.run_until([&] { return cluster.count(1, CompletionKind::immediate) == 1; }));
  EXPECT_EQ(cluster[0].endpoints[1]->error(), nullptr);
  EXPECT_EQ(cluster[1].endpoints[0]->error(), nullptr);
}

}  // namespace
}  // namespace gdrx::sim
