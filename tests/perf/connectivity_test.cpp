// SPDX-License-Identifier: Apache-2.0
// NICs of several simulated hosts that try to reach each other, a thread each.
#include "tools/perf/connectivity.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <thread>

#include "tests/fabric/network.hpp"

namespace gdrx::perf {
namespace {

/// Every thread's text at every thread.
class Meeting {
 public:
  explicit Meeting(std::size_t ranks) : texts_(ranks), barrier_(static_cast<long>(ranks)) {}
  Exchange exchange(std::size_t rank) {
    return [this, rank](const std::string& mine) -> Result<std::vector<std::string>> {
      texts_[rank] = mine;
      barrier_.arrive_and_wait();
      std::vector<std::string> all = texts_;
      barrier_.arrive_and_wait();
      return all;
    };
  }

 private:
  std::vector<std::string> texts_;
  std::barrier<> barrier_;
};

class Reach : public ::testing::Test {
 protected:
  using Table = std::shared_ptr<const verbs::VerbsTable>;
  std::vector<Reached> run(const std::vector<Table>& hosts) {
    Meeting meeting(hosts.size());
    std::vector<Result<std::vector<Reached>>> answers(hosts.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
        threads.emplace_back(
            [&, rank] { answers[rank] = reach(hosts[rank], rank, meeting.exchange(rank)); });
      }
    }
    for (const auto& answer : answers) EXPECT_TRUE(answer) << answer.error().what;
    for (const auto& answer : answers) EXPECT_EQ(answer->size(), answers[0]->size());
    return *answers[0];
  }
  sim::Network network_{sim::Network::Mode::live};
};

TEST_F(Reach, EveryNicReachesEveryNicOfTheOthers) {
  const auto found = run({network_.add_host({.nics = 2}), network_.add_host({.nics = 2}),
                          network_.add_host({.nics = 1})});
  // 2*2 each way between the first two, 2*1 each way between these and the third.
  EXPECT_EQ(found.size(), 8u + 8u);
  for (const Reached& one : found) {
    EXPECT_EQ(one.problem, "") << one.from_rank << " " << one.from << " " << one.to_rank;
    EXPECT_NE(one.from_rank, one.to_rank);
  }
  EXPECT_EQ(network_.live_objects(), 0u);
}

TEST_F(Reach, APortThatIsDownIsNotTried) {
  const std::vector<Table> hosts{network_.add_host({.nics = 2}), network_.add_host({.nics = 2})};
  network_.set_port(1, 0, false);
  const auto found = run(hosts);
  EXPECT_EQ(found.size(), 4u);
  EXPECT_TRUE(std::none_of(found.begin(), found.end(), [](const Reached& one) {
    return one.from_rank == 1 && one.from == "sim0 port 1";
  }));
}

TEST_F(Reach, AHostThatDoesNotTakeWritesIsNamed) {
  auto deaf = std::make_shared<verbs::VerbsTable>(*network_.add_host());
  const auto modify = deaf->modify_qp;
  deaf->modify_qp = [modify](ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
    if ((mask & IBV_QP_STATE) != 0 && attributes->qp_state == IBV_QPS_RTR) return ENETUNREACH;
    return modify(qp, attributes, mask);
  };
  const auto found = run({network_.add_host(), deaf});
  ASSERT_EQ(found.size(), 2u);
  for (const Reached& one : found) EXPECT_NE(one.problem, "") << one.from_rank;
}

TEST_F(Reach, AHostWithoutRdmaTakesPartWithoutPorts) {
  const auto found = run({network_.add_host(), nullptr});
  EXPECT_TRUE(found.empty());
}

TEST_F(Reach, WhatIsNoPortIsRefused) {
  for (const char* bad : {"x", "mlx5_0 1 70000 1 3 00 1 1", "mlx5_0 1 1 1 9 0 1 1"}) {
    const auto answer = reach(network_.add_host(), 0,
                              [&](const std::string& mine) -> Result<std::vector<std::string>> {
                                return std::vector<std::string>{mine, bad};
                              });
    ASSERT_FALSE(answer) << bad;
    EXPECT_EQ(answer.error().code, Errc::protocol);
  }
}

}  // namespace
}  // namespace gdrx::perf
