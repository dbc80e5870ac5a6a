// SPDX-License-Identifier: Apache-2.0
// Whose packets have which traffic class: over simulated NICs, told by the counters.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "plugin/stats/prometheus.hpp"
#include "tests/plugin/pair.hpp"

namespace gdrx::test {
namespace {

/// Senders of whose path this is a part.
std::size_t senders(const std::string& part) {
  const std::string all = stats::prometheus(**stats::open_page(stats::page_path(getpid())));
  const std::string start = "\ngdrx_net_bytes_total{";
  std::size_t count = 0;
  for (std::size_t at = 0; (at = all.find(start, at)) != std::string::npos; ++at) {
    const std::string_view line(all.data() + at, all.find('\n', at + 1) - at);
    count +=
        line.find("way=\"send\"") != line.npos && line.find(part, line.find("path=")) != line.npos
            ? 1
            : 0;
  }
  return count;
}

class TrafficClass : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    setenv("GDRX_TRANSPORT", "verbs", 1);
    setenv("GDRX_MODULE_PATH", GDRX_SIM_FOLDER, 1);
    setenv("NCCL_IB_TIMEOUT", "10", 1);
    unsetenv("NCCL_IB_TC");
    std::string why;
    net = AnyNet::open(GDRX_PLUGIN, GetParam(), &why);
    ASSERT_NE(net, nullptr) << why;
    ASSERT_EQ(net->init(&plain, nccl_logger), NetResult::success);
  }
  void TearDown() override {
    EXPECT_EQ(net->finalize(plain), NetResult::success);
    EXPECT_EQ(heard(), "");
  }
  /// What senders() says of `part` while a communicator of that class sends and another one of
  /// none.
  std::size_t senders_with(int traffic_class, const std::string& part) {
    net->traffic_class = traffic_class;
    void* classed = nullptr;
    EXPECT_EQ(net->init(&classed, nccl_logger), NetResult::success);
    std::size_t count = 0;
    {
      Pair with(*net), without(*net);
      with.connect(classed, plain);
      net->traffic_class = nccl::kUndefined;
      without.connect(plain, classed);
      std::vector<std::byte> out = pattern(100'000, 1), in(out.size());
      with.post_recv({&in}, {1});
      with.post_send(out, 1);
      EXPECT_TRUE(with.finish());
      EXPECT_EQ(in, out);
      count = senders(part);
    }
    EXPECT_EQ(net->finalize(classed), NetResult::success);
    return count;
  }
  std::unique_ptr<AnyNet> net;
  void* plain = nullptr;
};

TEST_P(TrafficClass, IsThatOfTheCommunicatorThatSendsAndOfNoOther) {
  EXPECT_EQ(senders_with(106, "verbs"), 2U);
  EXPECT_EQ(senders_with(106, ", traffic class 106\""), 1U);
}

TEST_P(TrafficClass, WhichNoPacketCanHoldIsNone) {
  EXPECT_EQ(senders_with(-2147483647, "traffic class"), 0U);
}

TEST_P(TrafficClass, OfTheEnvironmentGoesBeforeTheCommunicators) {
  // A class of its own: before v11 what is of one class and thread keeps the settings that it began
  // with.
  setenv("NCCL_IB_TC", "7", 1);
  EXPECT_EQ(senders_with(107, "traffic class 107"), 0U);
}

INSTANTIATE_TEST_SUITE_P(Abi, TrafficClass, testing::Values(10, 11, 12),
                         [](const auto& info) { return "v" + std::to_string(info.param); });

}  // namespace
}  // namespace gdrx::test
