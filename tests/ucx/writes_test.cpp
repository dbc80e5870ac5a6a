// SPDX-License-Identifier: Apache-2.0
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
  const RemoteRegionId remote = pair.import(pair.region->export_key());
  const std::size_t offset = 4096 + 3;
  const std::array<std::byte, 16> header{std::byte{0x11}, std::byte{0x22}};
  for (int round = 0; round < 4; ++round) {
    Blob payload(length);
    for (std::size_t i = 0; i < length; ++i) {
      payload[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(round));
    }
    WriteOp op = write_of(payload, remote, offset);
    op.header = header;
    ASSERT_EQ(pair.endpoint->post(op).value(), Progress::done);
    const auto got = pair.receive();
    ASSERT_TRUE(got && *got) << (got ? (*got).error().what : "nothing came");
    EXPECT_EQ((*got)->immediate, 7u);
    EXPECT_EQ((*got)->peer, Rank{0});
    const std::span<std::byte> memory = pair.region->bytes();
    EXPECT_EQ(std::memcmp(memory.data() + offset, header.data(), header.size()), 0);
    if (length > 0) {
      EXPECT_EQ(std::memcmp(memory.data() + offset + header.size(), payload.data(), length), 0);
    }
    EXPECT_EQ(memory[offset - 1], Pair::kCanary);
    EXPECT_EQ(memory[offset + header.size() + length], Pair::kCanary);
  }
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
