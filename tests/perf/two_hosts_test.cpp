// SPDX-License-Identifier: Apache-2.0
// A measurement between two hosts: simulated NICs, real TCP, a thread each.
#include "tools/perf/two_hosts.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "tests/fabric/network.hpp"
#include "tools/perf/nic_perf_view.hpp"
#include "tools/perf/protocol.hpp"

namespace gdrx::perf {
namespace {

using Kind = Test;  // the fixtures have a Test of their own
using Table = std::shared_ptr<const verbs::VerbsTable>;
using Report = Result<NicPerfReport>;

class TwoHosts : public ::testing::TestWithParam<Kind> {
 protected:
  struct Both {
    Report leader = fail(Errc::internal, "not run");
    Report follower = fail(Errc::internal, "not run");
  };
  Both run(const NicPerfOptions& wanted, const NicPerfOptions& own = {}, const Judge& judge = {}) {
    Both both;
    auto listener = Listener::open(loopback_address());
    EXPECT_TRUE(listener) << listener.error().what;
    {
      const std::jthread follower([&] {
        const auto channel = listener->accept();
        const auto plan = channel ? greet(*channel, own) : tl::unexpected(channel.error());
        both.follower =
            plan ? follow(*channel, there_, *plan, judge) : tl::unexpected(plan.error());
      });
      const auto channel = Channel::connect("127.0.0.1", listener->port());
      both.leader = channel ? lead(*channel, here_, wanted) : tl::unexpected(channel.error());
    }
    return both;
  }
  sim::Network network_{sim::Network::Mode::live};
  Table here_ = network_.add_host({.nics = 2});
  Table there_ = network_.add_host({.nics = 2});
};

NicPerfOptions options_of(Kind test) {
  NicPerfOptions options;
  options.test = test;
  options.sizes = {1, 8, 4096, 100000};
  options.iterations = 50;
  options.depth = 16;
  options.qps = 2;
  return options;
}

// What a side decides for itself.
NicPerfOptions on(const std::string& device) {
  NicPerfOptions own;
  own.device = device;
  return own;
}

TEST_P(TwoHosts, MoveEachMessageAndCompareIt) {
  const auto both = run(options_of(GetParam()), on("sim1"));
  ASSERT_TRUE(both.leader) << both.leader.error().what;
  ASSERT_TRUE(both.follower) << both.follower.error().what;
  EXPECT_EQ(both.leader->from, "sim0 port 1");
  EXPECT_EQ(both.leader->to, "sim1 port 1");
  EXPECT_EQ(both.follower->options.test, GetParam());
  ASSERT_EQ(both.leader->rows.size(), 4u);
  const bool latency = GetParam() == Kind::write_lat || GetParam() == Kind::read_lat;
  for (const NicPerfRow& row : both.leader->rows) {
    EXPECT_EQ(row.iterations, latency ? 50u : 100u);  // each of two queue pairs
    EXPECT_GT(latency ? row.least : row.gigabits, 0);
  }
  EXPECT_EQ(both.leader->ping_pong, GetParam() == Kind::write_lat);
  EXPECT_EQ(network_.live_objects(), 0u);
}

TEST_P(TwoHosts, AreOverInTime) {
  NicPerfOptions options = options_of(GetParam());
  options.iterations = 0;
  options.duration = 0.05;
  options.sizes = {64};
  const auto both = run(options);
  ASSERT_TRUE(both.leader) << both.leader.error().what;
  ASSERT_TRUE(both.follower) << both.follower.error().what;
}

INSTANTIATE_TEST_SUITE_P(EachTest, TwoHosts,
                         ::testing::Values(Kind::write_bw, Kind::read_bw, Kind::write_lat,
                                           Kind::read_lat));

using TwoHostsOnce = TwoHosts;
INSTANTIATE_TEST_SUITE_P(WriteBw, TwoHostsOnce, ::testing::Values(Kind::write_bw));

TEST_P(TwoHostsOnce, BothWaysCountBothDirections) {
  for (const Kind test : {Kind::write_bw, Kind::read_bw}) {
    NicPerfOptions options = options_of(test);
    options.both_ways = true;
    const auto both = run(options);
    ASSERT_TRUE(both.leader) << both.leader.error().what;
    EXPECT_EQ(both.leader->rows[0].iterations, 200u);
  }
}

TEST_P(TwoHostsOnce, WhatTheOtherCannotOpenIsSaidOnBoth) {
  const auto both = run(options_of(Kind::write_bw), on("mlx5_7"));
  ASSERT_FALSE(both.leader);
  ASSERT_FALSE(both.follower);
  EXPECT_NE(both.leader.error().what.find("the other host: "), std::string::npos);
  EXPECT_NE(both.leader.error().what.find("mlx5_7"), std::string::npos);
}

TEST_P(TwoHostsOnce, APortThatIsDownHereIsSaidThere) {
  network_.set_port(0, 0, false);
  NicPerfOptions options = options_of(Kind::write_bw);
  options.device = "sim0";
  const auto both = run(options);
  ASSERT_FALSE(both.leader);
  ASSERT_FALSE(both.follower);
  EXPECT_NE(both.follower.error().what.find("the other host: sim0"), std::string::npos)
      << both.follower.error().what;
}

TEST_P(TwoHostsOnce, TheLowerLimitOfBothIsExpected) {
  const Judge slow = [](const NicPerfReport& report) {
    EXPECT_EQ(report.from, "sim0 port 1");
    return Expectation{25, "port rate 25 Gb/s"};
  };
  const auto both = run(options_of(Kind::write_bw), {}, slow);
  ASSERT_TRUE(both.leader) << both.leader.error().what;
  topo::Parts parts;
  topo::Nic nic;
  nic.name = "sim0";
  nic.gigabits = 100;
  parts.nics.push_back(nic);
  const auto topology = topo::Topology::make(std::move(parts));
  ASSERT_TRUE(topology) << topology.error().what;
  const auto expected = expectation(*both.leader, *topology);
  ASSERT_TRUE(expected);
  EXPECT_EQ(expected->gigabits, 25);
  EXPECT_EQ(expected->why, "there: port rate 25 Gb/s");
  NicPerfReport report = *both.leader;
  for (NicPerfRow& row : report.rows) row.gigabits = 24;
  const std::string text = nic_perf_text(report, *topology);
  EXPECT_NE(text.find("sim0 port 1 to sim0 port 1 of 127.0.0.1"), std::string::npos) << text;
  EXPECT_NE(text.find("good: 24.0 of 25 Gb/s (96%; there: port rate"), std::string::npos) << text;
}

// A NIC, or a PCIe path, that changes what it carries.
TEST_P(TwoHostsOnce, ChangedBytesAreFoundOnTheOtherHost) {
  auto table = std::make_shared<verbs::VerbsTable>(*there_);
  static std::span<std::byte> memory;
  const auto reg_mr = table->reg_mr;
  table->reg_mr = [reg_mr](ibv_pd* pd, void* at, std::size_t bytes, int access) {
    memory = {static_cast<std::byte*>(at), bytes};
    return reg_mr(pd, at, bytes, access);
  };
  there_ = table;
  // After the traffic and before the comparison: the leader tells its row in between.
  auto listener = Listener::open(loopback_address());
  ASSERT_TRUE(listener);
  Report leader = fail(Errc::internal, "not run");
  Report follower = fail(Errc::internal, "not run");
  {
    const std::jthread other([&] {
      const auto channel = listener->accept();
      const auto plan = greet(*channel, {});
      follower = follow(*channel, there_, *plan, {});
    });
    auto harmful = std::make_shared<verbs::VerbsTable>(*here_);
    const auto create_cq = harmful->create_cq;
    static int (*poll)(ibv_cq*, int, ibv_wc*) = nullptr;
    harmful->create_cq = [create_cq](ibv_context* context, int entries) {
      if (poll == nullptr) poll = context->ops.poll_cq;
      context->ops.poll_cq = [](ibv_cq* queue, int count, ibv_wc* into) {
        const int done = poll(queue, count, into);
        if (done > 0) memory[77] ^= std::byte{1};
        return done;
      };
      return create_cq(context, entries);
    };
    NicPerfOptions options = options_of(Kind::write_bw);
    options.sizes = {4096};
    options.iterations = 1;
    options.qps = 1;
    const auto channel = Channel::connect("127.0.0.1", listener->port());
    ASSERT_TRUE(channel);
    leader = lead(*channel, harmful, options);
  }
  ASSERT_FALSE(follower);
  EXPECT_EQ(follower.error().code, Errc::mismatch) << follower.error().what;
  ASSERT_FALSE(leader);
  EXPECT_NE(leader.error().what.find("arrived changed"), std::string::npos) << leader.error().what;
}

TEST(Plan, ComesBackAsItWas) {
  NicPerfOptions plan = options_of(Kind::read_lat);
  plan.both_ways = true;
  plan.traffic_class = 106;
  plan.duration = 2.5;
  const auto read = read_plan(plan_words(plan), on("mlx5_1"));
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(plan_words(*read), plan_words(plan));
  EXPECT_EQ(read->device, "mlx5_1");
}

TEST(Plan, OfSomebodyElseOrBeyondAllLimitsIsRefused) {
  const std::string good = plan_words(options_of(Kind::write_bw));
  ASSERT_TRUE(read_plan(good, {}));
  for (const std::string& bad :
       {std::string(), std::string("GET / HTTP/1.1\r\n"), good + " 0", good + " 1073741825",
        good + " x", good.substr(0, good.find(" 50 ")), good + std::string(200, ' ') + "-1",
        std::string("gdrx-perf-1 write_bw 1 0 99999 1 0 14 0 0 30 8"),
        std::string("gdrx-perf-1 write_bw 1 0 1 1000000 0 14 0 0 30 8"),
        std::string("gdrx-perf-1 send_bw 1 0 1 1 0 14 0 0 30 8"),
        std::string("gdrx-perf-1 write_bw 1 nan 1 1 0 14 0 0 30 8")}) {
    const auto read = read_plan(bad, {});
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().code, Errc::protocol);
  }
}

}  // namespace
}  // namespace gdrx::perf
