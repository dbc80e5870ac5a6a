// SPDX-License-Identifier: Apache-2.0
// Messages that are large enough to go in bulk, alone and beside others. Skipped without a GPU.
#include <random>
#include <thread>

#include "collectives/kernels/moved_messages.hpp"
#include "tests/gpu/delay.hpp"
#include "tests/gpu/messages.hpp"

namespace gdrx::gpu {
namespace {

constexpr std::uint64_t kRoom = 40 << 20;

class GpuBulkMessages : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};

Mail to_the_next(int ranks, std::uint64_t bytes, std::uint64_t gap, std::uint64_t shift) {
  Mail mail(gap, shift);
  for (int from = 0; from < ranks; ++from) mail.add(from, (from + 1) % ranks, bytes);
  return mail;
}

// Few, so that a message need not be long to go in bulk.
constexpr int kFew = 3;

std::uint64_t ring_of(int ranks) {
  const PairChannels channels = channels_of_pair(ranks, kFew);
  return std::uint64_t{channels.bulk} * channels.tiles * kBulkTile * sizeof(Pack);
}
/// The least that goes so.
std::uint64_t least_of(int ranks, int blocks = kFew) {
  const std::uint64_t channels = channels_of_pair(ranks, blocks).bulk;
  return (channels * (kLeastWidthInBulk - 1) + 1) * sizeof(Pack);
}

TEST_F(GpuBulkMessages, OfAnySizeArrive) {
  for (const int n : {2, 3, 4}) {
    const Ranks ranks(n, kRoom);
    const std::uint64_t least = least_of(n);
    for (const std::uint64_t bytes : {least - sizeof(Pack), least, least + 5, ring_of(n) + 17}) {
      deliver(ranks, to_the_next(n, bytes, 0, 0), bytes, kFew);
      if (bytes > 2 * least) continue;
      deliver(ranks, to_the_next(n, bytes, 5, 3), bytes + 1, kFew);
      deliver(ranks, to_the_next(n, bytes, 0, 8), bytes + 2, kFew);
    }
  }
}

// Of few blocks a warp carries several channels, of both directions.
TEST_F(GpuBulkMessages, GoBesideSmallOnesInTheOrderOfTheirCalls) {
  std::mt19937_64 random(4);
  for (const int n : {2, 3, 4}) {
    for (const int blocks : {1, 3, 5}) {
      const Ranks ranks(n, kRoom);
      Mail mail(random() % 3, random() % 2 * 8);
      for (int i = 0; i < 2 * n; ++i) {
        const int from = static_cast<int>(random() % static_cast<std::uint64_t>(n));
        const int to = static_cast<int>(random() % static_cast<std::uint64_t>(n));
        mail.add(from, to, random() % 5000);
        mail.add(from, to, least_of(n, blocks) + random() % 200'000);
        mail.add(to, from, random() % 3 == 0 ? 0 : random() % 300'000);
      }
      deliver(ranks, mail, 9, blocks);
    }
  }
}

// What is on its way is told of before anything else is waited for: room in the slots, here.
TEST_F(GpuBulkMessages, SmallOnesBehindOneMayBeMoreThanTheirSlots) {
  const Ranks ranks(2, kRoom);
  const PairChannels channels = channels_of_pair(2, kFew);
  const std::uint64_t small = least_of(2) - 8 * sizeof(Pack);
  ASSERT_LT(width_of_message(small, channels), kLeastWidthInBulk);
  Mail mail;
  mail.add(0, 1, least_of(2));
  const std::uint64_t slots = std::uint64_t{channels.count} * channels.ring * sizeof(Pack);
  for (std::uint64_t bytes = 0; bytes < slots + small; bytes += small) mail.add(0, 1, small);
  deliver(ranks, mail, 3, kFew);
}

// One rank gives in one call what the other takes in many, and the other way round.
TEST_F(GpuBulkMessages, CallsNeedNotHaveTheSameOnBothSides) {
  const Ranks ranks(2, kRoom);
  Mail mail;
  for (std::uint64_t i = 0; i < 9; ++i) {
    mail.add(0, 1, i % 3 == 0 ? 7'000 * i : least_of(2) + i * 9973);
  }
  for (const int by_parts : {0, 1}) {
    for (int r = 0; r < 2; ++r) prepare(ranks, r, mail, 5);
    for (std::size_t i = 0; i < mail.all().size(); ++i) {
      exchange(ranks, by_parts, mail.of(ranks, by_parts, i, i + 1), kFew);
    }
    exchange(ranks, 1 - by_parts, mail.of(ranks, 1 - by_parts), kFew);
    ranks.synchronize();
    check(ranks, 1, mail, 5);
  }
}

// They have the same rings as collectives that go in bulk, in whatever order ranks come.
TEST_F(GpuBulkMessages, FollowCollectivesInBulkAndGoBeforeThem) {
  for (const int n : {2, 3}) {
    const Ranks ranks(n, kRoom);
    const Mail mail = to_the_next(n, least_of(n) + 5, 0, 0);
    const std::uint64_t part = kLeastInBulk + 3;
    const Traffic traffic{matrix(n, [&](int from, int to) { return from == to ? 0 : part; })};
    for (int r = 0; r < n; ++r) prepare(ranks, r, mail, 1);
    for (int r = 0; r < n; ++r) {
      ranks.use(r);
      for (int call = 0; call < (kEmulated ? 3 : 9); ++call) {
        if (call % 3 == r % 3) enqueue_delay(300'000, ranks.stream(r));
        Moves moved = traffic.moves(ranks, r);
        moved.input = ranks.in(r) + (10 << 20);
        moved.output = ranks.out(r) + (10 << 20);
        exchange(ranks, r, mail.of(ranks, r), kFew);
        must(ranks.path(r).move(moved, kFew, ranks.stream(r)));
        exchange(ranks, r, mail.of(ranks, r), kFew);
      }
    }
    ranks.synchronize();
    for (int r = 0; r < n; ++r) check(ranks, r, mail, 1);
  }
}

// Tiles are counted in 32 bits, for as long as a communicator lives.
TEST_F(GpuBulkMessages, CountersWrapAround) {
  const Ranks ranks(2, kRoom);
  const PairChannels channels = channels_of_pair(2, kFew);
  const std::uint32_t near = ~0U - 1;
  for (int r = 0; r < 2; ++r) {
    auto* const arena = reinterpret_cast<std::uint8_t*>(ranks.path(r).ticket().pointer);
    const std::vector<TilesKept> kept(channels.bulk, {near, channels.tiles - 1});
    const std::vector<Tiles> told(channels.bulk, near);
    for (const std::uint64_t at : {kTilesSentAt, kTilesGotAt}) {
      copy_to(ranks, r, arena + at, kept.data(), channels.bulk * sizeof(TilesKept));
    }
    for (const std::uint64_t at : {kTilesComeAt, kTilesTakenAt}) {
      copy_to(ranks, r, arena + at, told.data(), channels.bulk * sizeof(Tiles));
    }
  }
  for (std::uint64_t round = 0; round < 6; ++round) {
    deliver(ranks, to_the_next(2, least_of(2) + 100'003, 0, 0), round, kFew);
  }
}

TEST_F(GpuBulkMessages, ARankThatDoesNotComeIsNamed) {
  const Ranks ranks(3, kRoom, 0.4);
  const Mail mail = to_the_next(3, least_of(3), 0, 0);
  for (int r = 0; r < 2; ++r) exchange(ranks, r, mail.of(ranks, r), kFew);
  ranks.synchronize();
  // What rank 0 sent all fits into the ring, and rank 1 takes it; then it waits for rank 2.
  for (int r = 0; r < 2; ++r) {
    const KernelError failure = ranks.path(r).kernel_error();
    EXPECT_TRUE(failure.happened);
    EXPECT_FALSE(failure.disagrees);
    EXPECT_EQ(index(failure.peer), 2);
  }
}

TEST_F(GpuBulkMessages, AnAbortEndsThem) {
  const Ranks ranks(2, kRoom);
  exchange(ranks, 0, to_the_next(2, least_of(2), 0, 0).of(ranks, 0), kFew);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(cudaStreamQuery(ranks.stream(0)), cudaErrorNotReady);
  ranks.path(0).abort();
  EXPECT_EQ(cudaStreamSynchronize(ranks.stream(0)), cudaSuccess);
}

}  // namespace
}  // namespace gdrx::gpu
