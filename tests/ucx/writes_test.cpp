// SPDX-License-Identifier: Apache-2.0
#include "tests/transport/device_rules.hpp"
#include "tests/ucx/pair.hpp"
#include "transport/fabric/hearing.hpp"

namespace gdrx::test {
namespace {

// Endpoints that report a peer's failure leave shared memory for TCP, unless UCX is told otherwise.
TEST(UcxEndpoint, StaysOnSharedMemoryInsideAHost) {
  const Pair pair;
  const std::string lanes = pair.endpoint->describe();
  EXPECT_TRUE(lanes.find("posix") != std::string::npos || lanes.find("sysv") != std::string::npos)
      << lanes;
  EXPECT_EQ(lanes.find("tcp"), std::string::npos) << lanes;
}

TEST(UcxEndpoint, SaysSoWhenTcpIsAllThereIs) { EXPECT_EQ(Pair("tcp").endpoint->describe(), "tcp"); }

class WriteOf : public testing::TestWithParam<std::tuple<std::size_t, const char*>> {};

TEST_P(WriteOf, IsThereWhenItsImmediateIsAndNowhereElse) {
  const auto [length, tls] = GetParam();
  Pair pair(tls);
  expect_writes_where_they_belong(pair, length);
}

TEST_P(WriteOf, TellsItsReceiverThatTheSenderLives) {
  const auto [length, tls] = GetParam();
  Pair pair(tls);
  Hearing hearing(2);
  pair.receiver->report_to(hearing);
  const Blob payload(length);
  const WriteOp op = write_of(payload, pair.import(pair.region->export_key()), 0);
  ASSERT_EQ(pair.endpoint->post(op).value(), Progress::done);
  const auto got = pair.receive();
  ASSERT_TRUE(got && *got);
  EXPECT_TRUE(hearing.take(Rank{0}));
  EXPECT_FALSE(hearing.take(Rank{1}));
}

INSTANTIATE_TEST_SUITE_P(Lengths, WriteOf,
                         testing::Combine(testing::Values(0, 1, 8128, 8129, 65'536, 1'000'003),
                                          testing::Values("", "tcp")));

}  // namespace
}  // namespace gdrx::test
