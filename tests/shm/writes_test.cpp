// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "tests/shm/pair.hpp"
#include "tests/transport/device_rules.hpp"
#include "transport/fabric/hearing.hpp"
#include "transport/shm/mailbox.hpp"

namespace gdrx::test {
namespace {

class ShmWriteOf : public testing::TestWithParam<std::tuple<std::size_t, std::uint32_t>> {};

TEST_P(ShmWriteOf, IsThereWhenItsImmediateIsAndNowhereElse) {
  const auto [length, ranks] = GetParam();
  ShmPair pair(ranks);
  expect_writes_where_they_belong(pair, length);
}

INSTANTIATE_TEST_SUITE_P(Lengths, ShmWriteOf,
                         testing::Combine(testing::Values(0, 1, 65'536, 1'000'003),
                                          testing::Values(2, 9, 4096)));

class ShmWrites : public testing::TestWithParam<std::uint32_t> {};

TEST_P(ShmWrites, TellTheirReceiverThatTheSenderLives) {
  ShmPair pair(GetParam());
  Hearing hearing(2);
  pair.receiver->report_to(hearing);
  ASSERT_EQ(pair.endpoint->post(write_of({}, pair.import(), 0)).value(), Progress::done);
  const auto got = pair.receive();
  ASSERT_TRUE(got && *got);
  EXPECT_TRUE(hearing.take(Rank{0}));
  EXPECT_FALSE(hearing.take(Rank{1}));
}

// Many times round the ring and the numbers of its words, both ways.
TEST_P(ShmWrites, ArriveInOrderHoweverManyThereAre) {
  ShmPair pair(GetParam());
  const RemoteRegionId remote = pair.import();
  const auto back_region = pair.sender->allocate_memory(1 << 20).value();
  const auto back = pair.receiver->connect(Rank{0}, pair.sender->address()).value();
  const RemoteRegionId back_remote = back->import_region(back_region->export_key()).value();
  constexpr std::uint32_t kMessages = 200'000;
  std::array<std::uint32_t, 2> posted{}, got{}, done{};
  const auto post = [&](Endpoint& by, RemoteRegionId to, std::size_t side) {
    while (posted[side] < kMessages) {
      WriteOp op;
      op.header = std::as_bytes(std::span(&posted[side], 1));
      op.remote = to;
      op.offset = posted[side] % 64 * 4;
      op.has_immediate = true;
      op.immediate = posted[side];
      op.cookie = posted[side];
      if (by.post(op).value() == Progress::pending) return;
      ++posted[side];
    }
  };
  const auto take = [&](Device& device, std::size_t side) {
    std::array<Completion, 16> some;
    const auto count = device.poll(some);
    ASSERT_TRUE(count) << count.error().what;
    for (std::size_t i = 0; i < *count; ++i) {
      if (some[i].kind == CompletionKind::write_done) {
        ASSERT_EQ(some[i].cookie, done[side]++);
      } else {
        ASSERT_EQ(some[i].immediate, got[side]++);
      }
    }
  };
  while (got[0] < kMessages || got[1] < kMessages || done[0] < kMessages || done[1] < kMessages) {
    post(*pair.endpoint, remote, 0);
    post(*back, back_remote, 1);
    take(*pair.sender, 0);
    take(*pair.receiver, 1);
    if (HasFatalFailure()) return;
  }
  EXPECT_FALSE(pair.sender->busy());
}

TEST_P(ShmWrites, WaitForRoomAtAPeerThatTakesNothing) {
  ShmPair pair(GetParam());
  const WriteOp op = write_of({}, pair.import(), 0);
  std::array<Completion, 64> some;
  std::uint32_t posted = 0;
  while (pair.endpoint->post(op).value() == Progress::done && posted < 10'000) {
    ++posted;
    ASSERT_TRUE(pair.sender->poll(some));
  }
  EXPECT_EQ(posted, shm::kRing);
  WriteOp silent = op;
  silent.has_immediate = false;
  EXPECT_EQ(pair.endpoint->post(silent).value(), Progress::done) << "it needs no word";
  for (std::uint32_t left = posted; left > 0; --left) {
    const auto got = pair.receive();
    ASSERT_TRUE(got && *got);
  }
  EXPECT_EQ(pair.endpoint->post(op).value(), Progress::done);
}

// None of many peers silences another, however few completions fit.
TEST_P(ShmWrites, OfManyPeersAreAllHeardOf) {
  const std::uint32_t ranks = std::min(GetParam(), 600U);
  const auto receiver = open_shm(Rank{0}, ranks);
  const auto region = receiver->allocate_memory(4096).value();
  std::vector<std::shared_ptr<Device>> devices;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  constexpr int kEach = 20;
  for (std::uint32_t rank = 1; rank < ranks; ++rank) {
    devices.push_back(open_shm(Rank{static_cast<int>(rank)}, ranks));
    endpoints.push_back(devices.back()->connect(Rank{0}, receiver->address()).value());
    const RemoteRegionId remote = endpoints.back()->import_region(region->export_key()).value();
    for (int i = 0; i < kEach; ++i) {
      ASSERT_EQ(endpoints.back()->post(write_of({}, remote, 0)).value(), Progress::done);
    }
  }
  std::vector<int> heard(ranks);
  std::array<Completion, 3> some;
  while (const std::size_t count = receiver->poll(some).value()) {
    for (std::size_t i = 0; i < count; ++i) ++heard[static_cast<std::size_t>(index(some[i].peer))];
  }
  for (std::uint32_t rank = 1; rank < ranks; ++rank) EXPECT_EQ(heard[rank], kEach) << rank;
}

TEST_P(ShmWrites, OfARankToItselfAreThereToo) {
  ShmPair pair(GetParam());
  const auto own = pair.receiver->connect(Rank{1}, pair.receiver->address()).value();
  const RemoteRegionId remote = own->import_region(pair.region->export_key()).value();
  const Blob payload = pattern(1000, 3);
  ASSERT_TRUE(own->post(write_of(payload, remote, 5)));
  std::array<Completion, 4> some;
  ASSERT_EQ(pair.receiver->poll(some).value(), 2U);
  EXPECT_EQ(some[1].peer, Rank{1});
  EXPECT_EQ(std::memcmp(pair.region->bytes().data() + 5, payload.data(), payload.size()), 0);
}

TEST_P(ShmWrites, ToARegionThatHasEndedAreNotToldOf) {
  ShmPair pair(GetParam());
  const RemoteRegionId late = pair.import();
  auto next = pair.receiver->allocate_memory(4096).value();
  const RemoteRegionId remote = pair.import(next->export_key());
  pair.region.reset();
  ASSERT_TRUE(pair.endpoint->post(write_of({}, late, 0)));
  WriteOp op = write_of({}, remote, 0);
  op.immediate = 8;
  ASSERT_TRUE(pair.endpoint->post(op));
  const auto got = pair.receive();
  ASSERT_TRUE(got && *got);
  EXPECT_EQ((*got)->immediate, 8U);
}

TEST_P(ShmWrites, GoOnWhereAnEndpointIsMadeAnew) {
  ShmPair pair(GetParam());
  for (std::uint32_t round = 0; round < 3; ++round) {
    WriteOp op = write_of({}, pair.import(), 0);
    op.immediate = round;
    ASSERT_TRUE(pair.endpoint->post(op));
    const auto got = pair.receive();
    ASSERT_TRUE(got && *got);
    EXPECT_EQ((*got)->immediate, round);
    pair.endpoint = pair.sender->connect(Rank{1}, pair.receiver->address()).value();
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ShmWrites, testing::Values(2, 9, 4096));

TEST(ShmRegion, IsMappedForItsPeersAndZeroAtFirst) {
  const auto owner = open_shm(Rank{1}, 2);
  const auto region = owner->allocate_memory(1 << 20).value();
  EXPECT_TRUE(std::all_of(region->bytes().begin(), region->bytes().end(),
                          [](std::byte b) { return b == std::byte{}; }));
  const auto device = open_shm(Rank{0}, 2);
  const auto endpoint = device->connect(Rank{1}, owner->address()).value();
  const RemoteRegionId remote = endpoint->import_region(region->export_key()).value();
  endpoint->mapped(remote)[7] = std::byte{9};
  EXPECT_EQ(region->bytes()[7], std::byte{9});
}

TEST(ShmRegion, OfTheCallersMemoryIsReadFromAndNotWrittenTo) {
  ShmPair pair;
  Blob payload = pattern(1000, 1);
  const auto local = pair.sender->register_memory(payload, MemoryKind::host).value();
  WriteOp op = write_of(payload, pair.import(), 0);
  op.local = local.get();
  ASSERT_TRUE(pair.endpoint->post(op));
  EXPECT_EQ(std::memcmp(pair.region->bytes().data(), payload.data(), payload.size()), 0);
  const auto back = pair.receiver->connect(Rank{0}, pair.sender->address()).value();
  const auto imported = back->import_region(local->export_key());
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code, Errc::unsupported);
}

}  // namespace
}  // namespace gdrx::test
