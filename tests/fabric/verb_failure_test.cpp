// SPDX-License-Identifier: Apache-2.0
// Verbs that are refused at one of their calls: what is made is made whole or not at all, and what
// fails is told by its name. The mixes are the swarm's.
#include "tests/fabric/traffic.hpp"

#include <cerrno>

namespace gdrx::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ClusterSettings unstarted() {
  ClusterSettings settings;
  settings.inbox = Traffic::inbox_bytes(settings.hosts);
  settings.start = false;
  return settings;
}

// Of a device of one rail: 1 its datagrams, 2 its staging memory, 3 the test's inbox, 4 and 5 a
// peer's. Memory that may not be locked (ulimit -l) is the likeliest first failure of all.
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

}  // namespace
}  // namespace gdrx::sim
