// SPDX-License-Identifier: Apache-2.0
// All pairs of several simulated hosts, a thread each, over real TCP.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <set>
#include <thread>

#include "tests/fabric/network.hpp"
#include "tools/perf/matrix_side.hpp"

namespace gdrx::perf {
namespace {

using Table = std::shared_ptr<const verbs::VerbsTable>;

/// Every thread's text at every thread.
class Gathering {
 public:
  explicit Gathering(std::size_t ranks) : texts_(ranks), barrier_(static_cast<long>(ranks)) {}
  Gather of(std::size_t rank) {
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

MatrixOptions small() {
  MatrixOptions options;
  options.pings = 5;  // all hosts poll on the CPUs of one
  options.nic.sizes = {65536};
  options.nic.iterations = 20;
  options.nic.depth = 8;
  options.nic.deadline = 5;
  options.nic.patience = 20;
  return options;
}

class Matrix : public ::testing::Test {
 protected:
  MatrixReport run(const std::vector<Table>& tables, const MatrixOptions& options = small()) {
    Gathering gathering(tables.size());
    std::vector<Result<MatrixReport>> answers(tables.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t rank = 0; rank < tables.size(); ++rank) {
        threads.emplace_back([&, rank] {
          MatrixSide side;
          side.table = tables[rank];
          side.rank = rank;
          side.host = "n" + std::to_string(rank);
          side.at = at_;
          if (!secrets_.empty()) side.secret = secrets_[rank];
          MatrixOptions own = options;
          if (!devices_.empty()) own.nic.device = devices_[rank];
          if (rank == 0) own.progress = [&](const std::string& line) { said_.push_back(line); };
          const Gather gather = gathering.of(rank);
          answers[rank] = measure_matrix(
              side,
              [&](const std::string& mine) {
                auto all = gather(mine);
                if (rank == 0 && between_) between_(all->back());
                return all;
              },
              own);
        });
      }
    }
    for (const auto& answer : answers) EXPECT_TRUE(answer) << answer.error().what;
    for (const auto& answer : answers) EXPECT_EQ(answer->pairs.size(), answers[0]->pairs.size());
    return *answers[0];
  }
  sim::Network network_{sim::Network::Mode::live};
  std::vector<std::string> said_;
  std::vector<Secret> secrets_;
  std::vector<std::string> devices_;
  SocketAddress at_ = loopback_address();
  std::function<void(const std::string&)>
      between_;  // what the last one said, before rank 0 goes on
};

TEST(PartnerIn, PairsEachWithEachOnceAndNobodyTwiceInARound) {
  for (std::size_t ranks = 0; ranks < 12; ++ranks) {
    std::set<std::pair<std::size_t, std::size_t>> met;
    for (std::size_t round = 0; round < rounds_of(ranks); ++round) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const std::size_t other = partner_in(round, rank, ranks);
        ASSERT_LT(other, ranks);
        EXPECT_EQ(partner_in(round, other, ranks), rank);
        if (other != rank) {
          EXPECT_TRUE(met.emplace(rank, other).second);
        }
      }
    }
    EXPECT_EQ(met.size(), ranks < 2 ? 0 : ranks * (ranks - 1));
  }
}

TEST_F(Matrix, HasEachWayOfEachPair) {
  for (const std::size_t hosts : {3u, 4u}) {
    std::vector<Table> tables;
    for (std::size_t i = 0; i < hosts; ++i) tables.push_back(network_.add_host());
    const MatrixReport report = run(tables);
    ASSERT_EQ(report.pairs.size(), hosts * (hosts - 1));
    EXPECT_EQ(report.hosts[2], "n2");
    for (const MatrixPair& pair : report.pairs) {
      EXPECT_EQ(pair.problem, "") << pair.from << " " << pair.to;
      EXPECT_GT(pair.gigabits, 0);
      EXPECT_GT(pair.micros, 0);
      EXPECT_EQ(pair.from_nic, "sim0");
      EXPECT_EQ(pair.to_nic, "sim0");
    }
    EXPECT_EQ(said_.size(), rounds_of(hosts));
    said_.clear();
  }
  EXPECT_EQ(network_.live_objects(), 0u);
}

TEST_F(Matrix, TakesAnotherNicOnEachHost) {
  devices_ = {"sim0", "sim1"};
  const MatrixReport report = run({network_.add_host({.nics = 2}), network_.add_host({.nics = 2})});
  for (const MatrixPair& pair : report.pairs) {
    EXPECT_EQ(pair.problem, "");
    EXPECT_EQ(pair.from_nic, devices_[pair.from]);
    EXPECT_EQ(pair.to_nic, devices_[pair.to]);
  }
}

TEST_F(Matrix, GoesByIpv6) {
  at_ = {6, 0, {}};
  at_.ip[15] = 1;
  if (!Listener::open(at_)) GTEST_SKIP() << "no ::1 here";
  for (const MatrixPair& pair : run({network_.add_host(), network_.add_host()}).pairs) {
    EXPECT_EQ(pair.problem, "");
  }
}

TEST_F(Matrix, OfRailsHasEachNicThatAllHostsHave) {
  MatrixOptions options = small();
  options.rails = true;
  const MatrixReport report = run({network_.add_host({.nics = 2}), network_.add_host({.nics = 3}),
                                   network_.add_host({.nics = 2})},
                                  options);
  EXPECT_EQ(report.nics, (std::vector<std::string>{"sim0", "sim1"}));
  EXPECT_EQ(report.pairs.size(), 12u);
  EXPECT_EQ(report.pairs.back().nic, "sim1");
}

TEST_F(Matrix, NamesTheHostWithoutRdmaAndGoesOn) {
  const MatrixReport report = run({network_.add_host(), nullptr, network_.add_host()});
  ASSERT_EQ(report.pairs.size(), 6u);
  for (const MatrixPair& pair : report.pairs) {
    const bool bad = pair.from == 1 || pair.to == 1;
    EXPECT_EQ(pair.problem.find("no libibverbs") != std::string::npos, bad) << pair.problem;
  }
}

TEST_F(Matrix, NamesTheHostWhoseSecretIsNotTheOthers) {
  const auto secret = [](const std::string& text) {
    return *Secret::of(std::as_bytes(std::span(text)));
  };
  secrets_ = {secret("a secret of the cluster"), {}, secret("a secret of the cluster")};
  const MatrixReport report = run({network_.add_host(), network_.add_host(), network_.add_host()});
  ASSERT_EQ(report.pairs.size(), 6u);
  for (const MatrixPair& pair : report.pairs) {
    const bool bad = pair.from == 1 || pair.to == 1;
    EXPECT_EQ(pair.problem.find("GDRX_SECRET_FILE") != std::string::npos, bad) << pair.problem;
  }
}

TEST_F(Matrix, NamesAPairThatFailsEachWayAndGoesOn) {
  auto deaf = std::make_shared<verbs::VerbsTable>(*network_.add_host());
  const auto modify = deaf->modify_qp;
  deaf->modify_qp = [modify](ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
    if ((mask & IBV_QP_STATE) != 0 && attributes->qp_state == IBV_QPS_RTR) return ENETUNREACH;
    return modify(qp, attributes, mask);
  };
  const MatrixReport report = run({network_.add_host(), network_.add_host(), deaf});
  ASSERT_EQ(report.pairs.size(), 6u);
  for (const MatrixPair& pair : report.pairs) {
    EXPECT_EQ(pair.problem.empty(), pair.from != 2 && pair.to != 2) << pair.problem;
  }
  EXPECT_NE(said_[0].find("measured"), std::string::npos);
  EXPECT_TRUE(std::any_of(said_.begin(), said_.end(), [](const std::string& line) {
    return line.find("2 failed") != std::string::npos;
  }));
}

TEST_F(Matrix, OfOneProcessIsRefused) {
  MatrixSide side;
  side.table = network_.add_host();
  side.at = loopback_address();
  Gathering alone(1);
  const auto report = measure_matrix(side, alone.of(0), small());
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().what.find("one process: start one on each host"), std::string::npos);
}

TEST_F(Matrix, NamesTheProcessOfOtherOptionsAtEach) {
  Gathering gathering(3);
  std::vector<std::string> said(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        MatrixSide side;
        side.rank = rank;
        side.problem = "no NIC";
        side.at = loopback_address();
        MatrixOptions options = small();
        options.rails = rank == 2;  // it would gather more often
        const auto report = measure_matrix(side, gathering.of(rank), options);
        if (!report) said[rank] = report.error().what;
      });
    }
  }
  for (const std::string& line : said) {
    EXPECT_NE(line.find("process 2 has "), std::string::npos) << line;
    EXPECT_NE(line.find("--rails"), std::string::npos) << line;
  }
}

TEST_F(Matrix, TakesNoConnectionOfAnotherPair) {
  const std::string text = "a secret of the cluster";
  const Secret secret = *Secret::of(std::as_bytes(std::span(text)));
  secrets_ = {secret, secret};
  std::jthread left;  // one that was too late, and is there first
  between_ = [&](const std::string& said) {
    const auto host = read_matrix_host(said);
    if (!host || host->port == 0 || left.joinable()) return;
    left = std::jthread([ip = host->ip, port = host->port, secret] {
      const auto ignored = Channel::connect(ip, port, secret);
      static_cast<void>(ignored);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  };
  for (const MatrixPair& pair : run({network_.add_host(), network_.add_host()}).pairs) {
    EXPECT_EQ(pair.problem, "");
  }
}

TEST(MatrixWords, OfHostsComeBack) {
  const MatrixHost host{"node-1", "10.0.0.1", 4711, {"mlx5_0", "mlx5_1"}, ""};
  const auto read = read_matrix_host(host_words(host, "plan"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ip, host.ip);
  EXPECT_EQ(read->port, host.port);
  EXPECT_EQ(read->nics, host.nics);
  for (const char* bad : {"", "p\ta", "p\ta\tb", "p\ta\t\t0\t\t", "p\ta\tb\tc\t\t",
                          "p\ta\tb\t70000\t\t", "p\ta\tb\t1\tx;y\t"}) {
    EXPECT_FALSE(read_matrix_host(bad)) << bad;
  }
}

TEST(MatrixWords, OfPairsComeBackAndOthersAreRefused) {
  const auto pair = read_pair(pair_words({0, 2, "", 97.5, 1.25, "", "mlx5_1", "mlx5_0"}), 0, 3);
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->from_nic, "mlx5_1");
  EXPECT_EQ(pair->to_nic, "mlx5_0");
  EXPECT_DOUBLE_EQ(pair->gigabits, 97.5);
  EXPECT_DOUBLE_EQ(pair->micros, 1.25);
  const auto failed = read_pair(pair_words({0, 1, "", 5, 1, "no\nway"}), 0, 3);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->problem, "no way");
  EXPECT_EQ(failed->gigabits, 0);
  for (const char* bad : {"", "x", "0\t1\t1\t", "3\t1\t1\t", "1\t-1\t1\t", "1\tnan\t1\t",
                          "1\tinf\t1\t", "1\t1\t1\ta;b\t\t", "1\t1e9\t1\t", "1\t1\t-1\t"}) {
    EXPECT_FALSE(read_pair(bad, 0, 3)) << bad;
  }
}

TEST(MatrixWords, ANameIsThereOnceAndAPlainWord) {
  const auto named = [](const char* name) { return MatrixHost{name, {}, 0, {}, {}}; };
  EXPECT_EQ(distinct_names({named("a"), named("a"), named("a-2"), named("x y"), named("-r")}),
            (std::vector<std::string>{"a", "a:2", "a-2", "x-y:1", "host-r:1"}));
}

}  // namespace
}  // namespace gdrx::perf
