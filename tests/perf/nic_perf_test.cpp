// SPDX-License-Identifier: Apache-2.0
// Bandwidth and latency on simulated NICs: that they are counted rightly, not how fast.
#include "tools/perf/nic_perf.hpp"

#include <gtest/gtest.h>

#include "tests/fabric/network.hpp"

namespace gdrx::perf {
namespace {

using Kind = Test;  // the fixtures have a Test of their own

class NicPerf : public ::testing::TestWithParam<Kind> {
 protected:
  sim::Network network_{sim::Network::Mode::live};
  std::shared_ptr<const verbs::VerbsTable> table_ = network_.add_host({.nics = 2});
};

TEST_P(NicPerf, MovesEachMessageOnceAndComparesIt) {
  NicPerfOptions options;
  options.test = GetParam();
  options.sizes = {1, 8, 4096, 100000};
  options.iterations = 50;
  options.depth = 16;
  options.qps = 2;
  const auto report = measure_nic(table_, options);
  ASSERT_TRUE(report) << report.error().what;
  ASSERT_EQ(report->rows.size(), 4u);
  const bool latency = GetParam() == Kind::write_lat || GetParam() == Kind::read_lat;
  for (const NicPerfRow& row : report->rows) {
    EXPECT_EQ(row.iterations, latency ? 50u : 100u);  // each of two queue pairs
    if (latency) {
      EXPECT_GT(row.least, 0);
      EXPECT_LE(row.least, row.typical);
      EXPECT_LE(row.typical, row.p99);
      EXPECT_LE(row.p99, row.most);
    } else {
      EXPECT_GT(row.gigabits, 0);
      EXPECT_NEAR(row.gigabits, row.messages * static_cast<double>(row.bytes) * 8e-9,
                  row.gigabits * 1e-6);
    }
  }
  EXPECT_EQ(network_.live_objects(), 0u);
}

INSTANTIATE_TEST_SUITE_P(EachTest, NicPerf,
                         ::testing::Values(Kind::write_bw, Kind::read_bw, Kind::write_lat,
                                           Kind::read_lat));

TEST_P(NicPerf, GoesFromOneNicToAnother) {
  NicPerfOptions options;
  options.test = GetParam();
  options.device = "sim1";
  options.to = "sim0";
  options.sizes = {256};
  options.iterations = 20;
  const auto report = measure_nic(table_, options);
  ASSERT_TRUE(report) << report.error().what;
  EXPECT_EQ(report->from, "sim1 port 1");
  EXPECT_EQ(report->to, "sim0 port 1");
}

NicPerfOptions small() {
  NicPerfOptions options;
  options.sizes = {1024};
  options.iterations = 20;
  return options;
}

class NicPerfErrors : public ::testing::Test {
 protected:
  sim::Network network_{sim::Network::Mode::live};
  std::shared_ptr<const verbs::VerbsTable> table_ = network_.add_host({.nics = 2});
};

TEST_F(NicPerfErrors, BothWaysCountsEachDirection) {
  NicPerfOptions options = small();
  options.both_ways = true;
  const auto report = measure_nic(table_, options);
  ASSERT_TRUE(report) << report.error().what;
  EXPECT_EQ(report->rows[0].iterations, 40u);
}

TEST_F(NicPerfErrors, ADurationEndsIt) {
  NicPerfOptions options = small();
  options.duration = 0.1;
  ASSERT_TRUE(measure_nic(table_, options));
}

TEST_F(NicPerfErrors, AnUnknownNicIsNamed) {
  NicPerfOptions options = small();
  options.device = "mlx5_9";
  const auto report = measure_nic(table_, options);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().what.find("mlx5_9"), std::string::npos);
}

TEST_F(NicPerfErrors, APortThatIsDownIsNamed) {
  network_.set_port(0, 0, false);
  NicPerfOptions options = small();
  options.device = "sim0";
  const auto report = measure_nic(table_, options);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().what.find("sim0"), std::string::npos);
}

TEST_F(NicPerfErrors, AnMtuThatThePortHasNotIsRefused) {
  NicPerfOptions options = small();
  options.mtu = 333;
  ASSERT_FALSE(measure_nic(table_, options));
}

TEST_F(NicPerfErrors, AGpuWithoutCudaIsAnError) {
  NicPerfOptions options = small();
  options.gpu = 1023;
  const auto report = measure_nic(table_, options);
  ASSERT_FALSE(report);
}

}  // namespace
}  // namespace gdrx::perf
