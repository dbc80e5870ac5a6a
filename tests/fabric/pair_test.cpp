// SPDX-License-Identifier: Apache-2.0
// Two devices on a simulated network without faults.
#include "tests/fabric/cluster.hpp"
#include "transport/fabric/hearing.hpp"

namespace gdrx::sim {
namespace {

struct Shape {
  int nics;
  int qps;
};

class Pair : public ::testing::TestWithParam<Shape> {
 protected:
  static ClusterSettings settings() {
    ClusterSettings made;
    made.nics = GetParam().nics;
    made.qps = GetParam().qps;
    return made;
  }
};

TEST_P(Pair, DeliversEverySizeOnceAndInOrder) {
  Cluster cluster(settings());
  const std::vector<std::size_t> sizes{0,    1,    8,     100,    1023,   1024,
                                       1025, 4096, 65536, 131072, 200000, 262145};
  std::uint32_t number = 0;
  for (const std::size_t size : sizes) {
    const auto data = pattern(size, size + 1);
    cluster.send(0, 1, data, 64, number, number);
    ASSERT_TRUE(cluster.run_until([&] {
      return cluster.count(1, CompletionKind::immediate) == number + 1 &&
             cluster.count(0, CompletionKind::write_done) == number + 1;
    })) << size;
    EXPECT_EQ(cluster[1].completions.back().immediate, number);
    EXPECT_EQ(index(cluster[1].completions.back().peer), 0);
    const auto landed = cluster[1].receive_ring->bytes();
    EXPECT_TRUE(std::equal(data.begin(), data.end(), landed.begin() + 64)) << size;
    EXPECT_EQ(landed[63], std::byte{0});
    EXPECT_EQ(landed[64 + 262145], std::byte{0});
    ++number;
  }
  EXPECT_TRUE(cluster[0].log.empty());
}

// The sender by the acknowledgement, the receiver by the data.
TEST_P(Pair, TellsOfWhomItHasHeard) {
  Cluster cluster(settings());
  Hearing sender(2);
  Hearing receiver(2);
  cluster.run_for(std::chrono::milliseconds(5));
  cluster[0].device->report_to(sender);
  cluster[1].device->report_to(receiver);
  EXPECT_FALSE(sender.take(Rank{1}) || receiver.take(Rank{0}));
  cluster.send(0, 1, pattern(100, 1), 64, 1, 1);
  ASSERT_TRUE(cluster.run_until([&] { return cluster.count(1, CompletionKind::immediate) == 1; }));
  cluster.run_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(sender.take(Rank{1}));
  EXPECT_TRUE(receiver.take(Rank{0}));
  EXPECT_FALSE(sender.take(Rank{1}) || sender.take(Rank{0}));
}

TEST_P(Pair, KeepsManyMessagesInFlightAndInOrder) {
  Cluster cluster(settings());
  constexpr std::uint32_t kMessages = 3000;
  std::uint32_t posted = 0;
  const auto data = pattern(40000, 7);
  ASSERT_TRUE(cluster.run_until([&] {
    while (posted < kMessages) {
      const std::size_t size = posted % 7 == 0 ? 40000 : (posted % 3) * 700;
      auto done = cluster.post(0, 1, {}, std::span(data).first(size), 0, posted, posted);
      EXPECT_TRUE(done.has_value());
      if (*done == Progress::pending) break;
      ++posted;
    }
    return cluster.count(1, CompletionKind::immediate) == kMessages &&
           cluster.count(0, CompletionKind::write_done) == kMessages;
  }));
  std::uint32_t next = 0;
  for (const Completion& c : cluster[1].completions) EXPECT_EQ(c.immediate, next++);
  cluster.run_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(cluster[0].device->busy());
  EXPECT_FALSE(cluster[1].device->busy());
}

TEST_P(Pair, PutsTheHeaderDirectlyBeforeThePayload) {
  Cluster cluster(settings());
  const auto header = pattern(64, 1);
  for (const std::size_t size : {std::size_t{10}, std::size_t{5000}, std::size_t{300000}}) {
    const auto data = pattern(size, 2);
    // An immediate of 32 bits does not fit into the wire's: it needs the envelope.
    for (const std::uint32_t immediate : {7U, 0xfedcba98U}) {
      const std::size_t before = cluster.count(1, CompletionKind::immediate);
      ASSERT_TRUE(cluster.run_until([&] {
        auto posted = cluster.post(0, 1, header, data, 128, immediate, 0);
        return posted.has_value() && *posted == Progress::done;
      }));
      ASSERT_TRUE(cluster.run_until(
          [&] { return cluster.count(1, CompletionKind::immediate) == before + 1; }));
      EXPECT_EQ(cluster[1].completions.back().immediate, immediate);
      const auto landed = cluster[1].receive_ring->bytes();
      EXPECT_EQ(std::memcmp(landed.data() + 128, header.data(), 64), 0);
      EXPECT_EQ(std::memcmp(landed.data() + 192, data.data(), size), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Pair,
                         ::testing::Values(Shape{1, 1}, Shape{2, 1}, Shape{1, 4}, Shape{3, 2}),
                         [](const auto& info) {
                           return "rails" + std::to_string(info.param.nics) + "qps" +
                                  std::to_string(info.param.qps);
                         });

TEST(AdaptiveRouting, LongMessagesGoByPlainWritesAndAnEmptyOneThatTells) {
  ClusterSettings settings;
  settings.nics = 2;
  settings.adaptive_routing = 1;
  Cluster cluster(settings);
  for (const std::size_t size : {100UL, 8192UL, 8193UL, 30'000UL, 500'000UL}) {
    const auto data = pattern(size, size);
    const std::uint64_t plain = cluster.network.posted(IBV_WR_RDMA_WRITE);
    const std::uint64_t telling = cluster.network.posted(IBV_WR_RDMA_WRITE_WITH_IMM);
    const std::uint64_t bytes = cluster.network.bytes_told();
    const std::size_t before = cluster.count(1, CompletionKind::immediate);
    cluster.send(0, 1, data, 0, 7, 7);
    ASSERT_TRUE(cluster.run_until(
        [&] { return cluster.count(1, CompletionKind::immediate) == before + 1; }));
    const auto landed = cluster[1].receive_ring->bytes().first(size);
    EXPECT_TRUE(std::equal(landed.begin(), landed.end(), data.begin())) << size;
    if (size > 8192) {
      EXPECT_GT(cluster.network.posted(IBV_WR_RDMA_WRITE), plain);
      EXPECT_GT(cluster.network.posted(IBV_WR_RDMA_WRITE_WITH_IMM), telling);
    }
    EXPECT_EQ(cluster.network.bytes_told() - bytes, size > 1024 && size <= 8192 ? size : 0U);
  }
}

struct EceCase {
  std::vector<std::uint32_t> offers;  // of two hosts' NICs; 0: none
  bool used;
  std::set<std::uint32_t> agreed;
};

class Ece : public ::testing::TestWithParam<EceCase> {};

TEST_P(Ece, BothEndsUseWhatBothCan) {
  ClusterSettings settings;
  settings.nics = 2;
  settings.qps = 2;
  settings.ece = GetParam().offers;
  settings.use_ece = GetParam().used;
  Cluster cluster(settings);
  const auto data = pattern(100'000, 1);
  cluster.send(0, 1, data, 0, 7, 7);
  ASSERT_TRUE(cluster.run_until([&] { return cluster.count(1, CompletionKind::immediate) == 1; }));
  cluster.run_for(std::chrono::milliseconds(20));
  if (GetParam().agreed.empty()) return;
  EXPECT_EQ(cluster.network.agreed_ece(0), GetParam().agreed);
  EXPECT_EQ(cluster.network.agreed_ece(1), GetParam().agreed);
}

INSTANTIATE_TEST_SUITE_P(Offers, Ece,
                         ::testing::Values(EceCase{{7, 5}, true, {5}}, EceCase{{5, 7}, true, {5}},
                                           EceCase{{3, 3}, true, {3}}, EceCase{{7, 0}, true, {}},
                                           EceCase{{0, 7}, true, {}}, EceCase{{0, 0}, true, {0}},
                                           EceCase{{7, 7}, false, {7}}));

}  // namespace
}  // namespace gdrx::sim
