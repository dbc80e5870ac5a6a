// SPDX-License-Identifier: Apache-2.0
#include "tests/tcp/pair.hpp"
#include "tests/transport/device_rules.hpp"

namespace gdrx::test {
namespace {

class TcpWriteOf : public testing::TestWithParam<std::tuple<std::size_t, bool>> {};

TEST_P(TcpWriteOf, IsThereWhenItsImmediateIsAndNowhereElse) {
  const auto [length, plain] = GetParam();
  TcpPair pair(plain);
  expect_writes_where_they_belong(pair, length);
}

INSTANTIATE_TEST_SUITE_P(Lengths, TcpWriteOf,
                         testing::Combine(testing::Values(0, 1, 8128, 16'328, 16'329, 65'536,
                                                          1'000'003),
                                          testing::Bool()));

class TcpWrites : public testing::TestWithParam<bool> {};

// More than there is room for at once, of all lengths, both ways.
TEST_P(TcpWrites, ArriveInOrderWhateverTheirLengths) {
  TcpPair pair(GetParam());
  const RemoteRegionId remote = pair.import();
  const Blob source = pattern(300'000, 1);
  const auto back_region = pair.sender->allocate_memory(1 << 20).value();
  const auto back = pair.receiver->connect(Rank{0}, pair.sender->address()).value();
  const RemoteRegionId back_remote = back->import_region(back_region->export_key()).value();
  constexpr std::uint32_t kMessages = 3000;
  std::array<std::uint32_t, 2> posted{}, got{}, done{};
  const auto post = [&](Endpoint& by, RemoteRegionId to, std::size_t side) {
    const std::uint32_t number = posted[side];
    if (number == kMessages) return;
    const std::size_t length = number % 97 == 0 ? 300'000 : (number * 2654435761U) % 4000;
    WriteOp op = write_of(std::span(source).first(length), to, number % 64);
    op.immediate = number;
    if (by.post(op).value() == Progress::done) ++posted[side];
  };
  const auto take = [&](Device& device, std::size_t side) {
    std::array<Completion, 16> some;
    const auto count = device.poll(some);
    ASSERT_TRUE(count) << count.error().what;
    for (std::size_t i = 0; i < *count; ++i) {
      if (some[i].kind == CompletionKind::write_done) {
        ++done[side];
      } else {
        ASSERT_EQ(some[i].immediate, got[side]);
        ++got[side];
      }
    }
  };
  const Deadline deadline = Deadline::after(steady_clock(), std::chrono::seconds(20));
  while (got[0] < kMessages || got[1] < kMessages || done[0] < kMessages || done[1] < kMessages) {
    ASSERT_FALSE(deadline.passed(steady_clock().now())) << got[0] << " " << got[1];
    post(*pair.endpoint, remote, 0);
    post(*back, back_remote, 1);
    take(*pair.sender, 0);
    take(*pair.receiver, 1);
    if (HasFatalFailure()) return;
  }
  EXPECT_FALSE(pair.sender->busy());
}

// Posted before there is a connection, so that they go as one stream, of which records end
// anywhere: amid a head, too.
TEST_P(TcpWrites, AreWholeWhereverTheirRecordsEnd) {
  for (const std::size_t length : {3000UL, 3001UL, 4050UL, 5421UL, 16'300UL, 16'344UL, 16'350UL,
                                   40'000UL, 65'536UL, 65'537UL, 100'000UL}) {
    TcpPair pair(GetParam());
    const RemoteRegionId remote = pair.import();
    const std::size_t count = TcpPair::kBytes / (length + 1);
    const Blob source = pattern(count * length, static_cast<int>(length));
    std::size_t came = 0;
    const auto take = [&] {
      const auto got = pair.receive();
      came += got && *got ? 1 : 0;
      return got && *got;
    };
    for (std::size_t i = 0; i < count; ++i) {
      // A canary between two.
      const auto op =
          write_of(std::span(source).subspan(i * length, length), remote, i * (length + 1));
      while (pair.endpoint->post(op).value() == Progress::pending) ASSERT_TRUE(take()) << length;
    }
    while (came < count) ASSERT_TRUE(take()) << length << ", " << came;
    const std::span<const std::byte> target = pair.region->bytes();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = i * (length + 1);
      ASSERT_EQ(std::memcmp(&target[at], &source[i * length], length), 0) << length << ", " << i;
      ASSERT_EQ(target[at + length], TcpPair::kCanary) << length << ", " << i;
    }
  }
}

TEST_P(TcpWrites, OfARankToItselfAreThereToo) {
  TcpPair pair(GetParam());
  const auto own = pair.receiver->connect(Rank{1}, pair.receiver->address()).value();
  const RemoteRegionId remote = own->import_region(pair.region->export_key()).value();
  const Blob payload = pattern(1000, 3);
  ASSERT_TRUE(own->post(write_of(payload, remote, 5)));
  const auto got = pair.receive();
  ASSERT_TRUE(got && *got);
  EXPECT_EQ((*got)->peer, Rank{1});
  EXPECT_EQ(std::memcmp(pair.region->bytes().data() + 5, payload.data(), payload.size()), 0);
}

INSTANTIATE_TEST_SUITE_P(, TcpWrites, testing::Bool(), [](const auto& info) {
  return info.param ? std::string("InClearText") : std::string("Encrypted");
});

}  // namespace
}  // namespace gdrx::test
