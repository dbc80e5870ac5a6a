// SPDX-License-Identifier: Apache-2.0
// What a NIC says of itself while it is used, and calls of its driver that take long.
#include <array>
#include <chrono>
#include <thread>

#include "tests/fabric/cluster.hpp"

namespace gdrx::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::size_t lines(const Host& host, std::string_view words) {
  return static_cast<std::size_t>(std::count_if(
      host.log.begin(), host.log.end(),
      [&](const std::string& line) { return line.find(words) != std::string::npos; }));
}

/// The verbs of rank 0, whose NIC says what a test wants it to.
struct Said {
  std::deque<ibv_async_event> events;
  ibv_qp* last_reliable = nullptr;  // may be gone
  ibv_context* its_nic = nullptr;
  bool second_port_up = true;

  void say(ibv_event_type type, ibv_qp* qp, ibv_cq* cq, int port) {
    ibv_async_event event{};
    event.event_type = type;
    if (qp != nullptr) event.element.qp = qp;
    if (cq != nullptr) event.element.cq = cq;
    if (port > 0) event.element.port_num = port;
    events.push_back(event);
  }
  void listen_to(verbs::VerbsTable& t) {
    t.get_async_event = [this, real = t.get_async_event](ibv_context* c, ibv_async_event* event) {
      const bool here = its_nic == nullptr || its_nic == c;
      if (events.empty() || !here) return real(c, event);
      *event = events.front();
      events.pop_front();
      return 0;
    };
    t.create_qp = [this, real = t.create_qp](ibv_pd* pd, ibv_qp_init_attr* attributes) {
      ibv_qp* made = real(pd, attributes);
      if (made != nullptr && attributes->qp_type == IBV_QPT_RC) {
        last_reliable = made;
        its_nic = made->context;
      }
      return made;
    };
  }
  /// One more port, which the simulated NIC takes for its first.
  void add_port(verbs::VerbsTable& t) {
    t.query_device = [real = t.query_device](ibv_context* c, ibv_device_attr* attributes) {
      const int error = real(c, attributes);
      attributes->phys_port_cnt = 2;
      return error;
    };
    t.query_port = [this, real = t.query_port](ibv_context* c, std::uint8_t port,
                                               ibv_port_attr* attributes) {
      const int error = real(c, 1, attributes);
      if (port == 2 && !second_port_up) attributes->state = IBV_PORT_DOWN;
      return error;
    };
    t.query_gid = [real = t.query_gid](ibv_context* c, std::uint8_t, std::uint32_t at,
                                       ibv_gid_entry* entry) { return real(c, 1, at, entry); };
    t.create_ah = [real = t.create_ah](ibv_pd* pd, ibv_ah_attr* attributes) {
      attributes->port_num = 1;
      return real(pd, attributes);
    };
    t.modify_qp = [real = t.modify_qp](ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
      attributes->port_num = attributes->ah_attr.port_num = 1;
      return real(qp, attributes, mask);
    };
  }
};

TEST(NicEvents, OfOnePortAreNotTakenByTheOther) {
  std::array<Said, 2> said;
  ClusterSettings settings;
  settings.amend = [&](int rank, verbs::VerbsTable& table) {
    said.at(static_cast<std::size_t>(rank)).listen_to(table);
    said.at(static_cast<std::size_t>(rank)).add_port(table);
  };
  Cluster cluster(settings);
  cluster.send(0, 1, pattern(5000, 1), 0, 1);
  cluster.run_for(milliseconds(15));
  said[0].second_port_up = false;
  said[0].say(IBV_EVENT_PORT_ERR, nullptr, nullptr, 2);
  cluster.run_for(milliseconds(25));
  EXPECT_EQ(lines(cluster[0], "rail sim0:2: port down"), 1U);
  EXPECT_EQ(lines(cluster[0], "rail sim0:1: port down"), 0U);
}

TEST(NicEvents, AQpThatIsSaidToHaveFailedIsReplaced) {
  Said said;
  ClusterSettings settings;
  settings.amend = [&](int rank, verbs::VerbsTable& table) {
    if (rank == 0) said.listen_to(table);
  };
  Cluster cluster(settings);
  cluster.send(0, 1, pattern(5000, 1), 0, 1);
  said.say(IBV_EVENT_QP_FATAL, said.last_reliable, nullptr, 0);
  cluster.run_for(milliseconds(50));
  EXPECT_EQ(lines(cluster[0], "its NIC reports an error of qp"), 1U);
  cluster.send(0, 1, pattern(5000, 1), 0, 1);
  EXPECT_TRUE(cluster.run_until([&] { return cluster.count(1, CompletionKind::immediate) == 2; }));
}

TEST(NicEvents, ACompletionQueueThatIsSaidToBeBrokenEndsItsRailAndNoOther) {
  Said said;
  ClusterSettings settings;
  settings.nics = 2;
  settings.amend = [&](int rank, verbs::VerbsTable& table) {
    if (rank == 0) said.listen_to(table);
  };
  Cluster cluster(settings);
  cluster.send(0, 1, pattern(5000, 1), 0, 1);
  said.say(IBV_EVENT_CQ_ERR, nullptr, said.last_reliable->send_cq, 0);
  cluster.run_for(milliseconds(50));
  EXPECT_EQ(lines(cluster[0], "dead: its completion queue is broken"), 1U);
  cluster.send(0, 1, pattern(5000, 1), 0, 1);
  EXPECT_TRUE(cluster.run_until([&] { return cluster.count(1, CompletionKind::immediate) == 2; }));
}

// As by DHCP, by a subnet manager that starts anew, or by hand.
TEST(PortAddress, ThatChangesIsUsedByBothEnds) {
  for (const bool infiniband : {false, true}) {
    for (const int host : {0, 1}) {
      ClusterSettings settings;
      settings.infiniband = infiniband;
      Cluster cluster(settings);
      cluster.send(0, 1, pattern(5000, 1), 0, 1);
      ASSERT_TRUE(
          cluster.run_until([&] { return cluster.count(1, CompletionKind::immediate) == 1; }));
      cluster.network.move_port(host, 0);
      cluster.send(0, 1, pattern(5000, 1), 0, 1);
      EXPECT_TRUE(cluster.run_until([&] {
        return cluster.count(1, CompletionKind::immediate) == 2;
      })) << cluster[0].error
          << cluster[1].error;
      cluster.run_for(milliseconds(30));
      EXPECT_EQ(lines(cluster[host], "its address has changed"), 1U);
      cluster.send(1, 0, pattern(5000, 1), 0, 1);
      EXPECT_TRUE(cluster.run_until([&] {
        return cluster.count(0, CompletionKind::immediate) == 1;
      })) << cluster[0].error
          << cluster[1].error;
    }
  }
}

/// What the ports say of their MTU, and what the last QPs were connected with.
struct Mtus {
  ibv_mtu says = IBV_MTU_4096;
  std::array<ibv_mtu, 2> of_qp{};

  void amend(int rank, verbs::VerbsTable& table) {
    if (rank == 0) {
      table.query_port = [this, real = table.query_port](ibv_context* c, std::uint8_t port,
                                                         ibv_port_attr* attributes) {
        const int error = real(c, port, attributes);
        attributes->active_mtu = says;
        return error;
      };
    }
    table.modify_qp = [this, rank, real = table.modify_qp](ibv_qp* qp, ibv_qp_attr* attributes,
                                                           int mask) {
      if ((mask & IBV_QP_PATH_MTU) != 0) {
        of_qp.at(static_cast<std::size_t>(rank)) = attributes->path_mtu;
      }
      return real(qp, attributes, mask);
    };
  }
};

// As an interface's by hand. QPs that send longer packets than a port takes fail again and again.
TEST(PortMtu, ThatChangesIsThatOfTheQpsOfBothEnds) {
  Mtus mtus;
  ClusterSettings settings;
  settings.amend = [&](int rank, verbs::VerbsTable& table) { mtus.amend(rank, table); };
  Cluster cluster(settings);
  std::size_t sent = 0;
  for (const ibv_mtu mtu : {IBV_MTU_4096, IBV_MTU_1024, IBV_MTU_2048}) {
    mtus.says = mtu;
    cluster.run_for(seconds(2));
    cluster.send(0, 1, pattern(5000, 1), 0, 1);
    ++sent;
    ASSERT_TRUE(cluster.run_until([&] {
      return cluster.count(1, CompletionKind::immediate) == sent;
    })) << cluster[0].error
        << cluster[1].error;
    EXPECT_EQ(mtus.of_qp[0], mtu);
    EXPECT_EQ(mtus.of_qp[1], mtu);
  }
}

TEST(LogLines, OfARailThatFailsAgainAndAgainAreFew) {
  Cluster cluster(ClusterSettings{});
  const Instant began = cluster.network.now();
  for (int epoch = 0; epoch < 60; ++epoch) {
    cluster.send(0, 1, pattern(5000, 1), 0, 1);
    cluster.network.break_qps(0, 0);
    cluster.run_for(milliseconds(8));
  }
  EXPECT_GT(cluster[0].device->counters().rails_down, 30U);
  const auto passed = (cluster.network.now() - began) / seconds(1);
  EXPECT_LT(cluster[0].log.size(), 14U + static_cast<std::size_t>(passed));
}

/// Rank 0 sends to rank 1 for that long. The longest of its polls.
Duration longest_poll(Cluster& cluster, Duration time) {
  const auto data = pattern(5000, 1);
  Duration longest{};
  std::size_t sent = 0;
  for (const Instant end = steady_clock().now() + time; steady_clock().now() < end;) {
    if (sent == cluster.count(1, CompletionKind::immediate) &&
        *cluster.post(0, 1, {}, data, 0, 1, 1) == Progress::done) {
      ++sent;
    }
    const Instant before = steady_clock().now();
    cluster.poll_all();
    longest = std::max(longest, steady_clock().now() - before);
  }
  EXPECT_GT(sent, 100U);
  return longest;
}

TEST(SlowCalls, AnAddressThatNobodyAnswersForDoesNotHoldUpAnotherPeer) {
  ClusterSettings settings;
  settings.hosts = 3;
  settings.live = settings.own_thread = true;
  settings.peer_timeout = seconds(60);
  settings.amend = [](int rank, verbs::VerbsTable& table) {
    if (rank > 0) return;
    table.create_ah = [real = table.create_ah](ibv_pd* pd, ibv_ah_attr* to) -> ibv_ah* {
      if (to->grh.dgid.raw[14] != 2) return real(pd, to);
      std::this_thread::sleep_for(milliseconds(600));
      errno = ETIMEDOUT;
      return nullptr;
    };
  };
  Cluster cluster(settings);
  EXPECT_LT(longest_poll(cluster, milliseconds(1800)), milliseconds(300));
}

TEST(SlowCalls, APortThatIsReadSlowlyDoesNotHoldUpAPeer) {
  std::atomic<bool> slow{false};
  ClusterSettings settings;
  settings.live = settings.own_thread = true;
  settings.amend = [&](int rank, verbs::VerbsTable& table) {
    if (rank > 0) return;
    table.query_port = [&, real = table.query_port](ibv_context* c, std::uint8_t port,
                                                    ibv_port_attr* attributes) {
      if (slow) std::this_thread::sleep_for(milliseconds(600));
      return real(c, port, attributes);
    };
  };
  Cluster cluster(settings);
  slow = true;
  EXPECT_LT(longest_poll(cluster, milliseconds(1200)), milliseconds(300));
}

}  // namespace
}  // namespace gdrx::sim
