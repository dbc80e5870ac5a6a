// SPDX-License-Identifier: Apache-2.0
// Runs that are large enough to go in bulk, alone and beside others. Skipped without a GPU.
#include <random>

#include "collectives/kernels/moved_messages.hpp"
#include "tests/gpu/delay.hpp"
#include "tests/gpu/moves.hpp"

namespace gdrx::gpu {
namespace {

constexpr std::uint64_t kMost = 32 << 20;
constexpr std::uint64_t kTileBytes = kBulkTile * sizeof(Pack);

class GpuBulk : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};

std::vector<int> counts_of_ranks() { return {2, 3, 5}; }

// At the edge of what goes so, of whole tiles and of some packs more; more than rings hold.
TEST_F(GpuBulk, EveryRankGetsWhatEachOtherHasForIt) {
  for (const int n : counts_of_ranks()) {
    const Ranks ranks(n, kMost);
    const std::uint64_t more = std::uint64_t{9 << 20} + 17;
    for (const std::uint64_t bytes : {kLeastInBulk, kLeastInBulk + 5, more}) {
      if (n * (bytes + 8) > kMost) continue;
      const Matrix even = matrix(n, [&](int, int) { return bytes; });
      move(ranks, {even}, bytes);
      move(ranks, {even, 0, 0, true}, bytes + 1);
      if (bytes == more) continue;
      move(ranks, {even, 5, 3}, bytes + 2);
      move(ranks, {even, 12, 4, true}, bytes + 3);
    }
  }
}

void move_with(const Ranks& ranks, const Traffic& traffic, std::uint64_t seed, int blocks) {
  for (int r = 0; r < ranks.size(); ++r) prepare(ranks, r, traffic, seed);
  for (int r = 0; r < ranks.size(); ++r) {
    ranks.use(r);
    must(ranks.path(r).move(traffic.moves(ranks, r), std::min(blocks, ranks.host().blocks),
                            ranks.stream(r)));
  }
  ranks.synchronize();
  for (int r = 0; r < ranks.size(); ++r) check(ranks, r, traffic, seed);
}

std::uint64_t any_length(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return 0;
    case 1:
      return random() % 9000;
    case 2:
      return random() % 300'000;
    default:
      return kLeastInBulk + random() % 100'000;
  }
}

// Some in bulk, some in slots, some of nothing; of few blocks, which then have several tasks.
TEST_F(GpuBulk, SmallRunsGoBesideLargeOnes) {
  std::mt19937_64 random(3);
  for (const int n : counts_of_ranks()) {
    for (const int blocks : {1, 3, 16, 64, 200}) {
      const Ranks ranks(n, kMost);
      const Matrix bytes = matrix(n, [&](int, int) { return any_length(random); });
      move_with(ranks, {bytes, random() % 3, random() % 2 * 8}, 7, blocks);
    }
  }
}

// Who gives and gets at one place reads before it writes, whichever runs are large.
TEST_F(GpuBulk, InPlaceSmallRunsGoBesideLargeOnes) {
  std::mt19937_64 random(5);
  for (const int n : counts_of_ranks()) {
    for (const int blocks : {1, 3, 200}) {
      const Ranks ranks(n, kMost);
      for (std::uint64_t call = 0; call < 2; ++call) {
        Matrix bytes = matrix(n, [&](int, int) { return any_length(random); });
        for (std::size_t from = 0; from < bytes.size(); ++from) {
          for (std::size_t to = 0; to < from; ++to) bytes[from][to] = bytes[to][from];
        }
        move_with(ranks, {bytes, random() % 3, call * 8, true}, 3 + call, blocks);
      }
    }
  }
}

// The next call finds the rings as the first did, whoever is late.
TEST_F(GpuBulk, FollowEachOtherAndSmallCalls) {
  for (const int n : {2, 3, 4}) {
    const Ranks ranks(n, kMost);
    for (int round = 0; round < (kEmulated ? 2 : 6); ++round) {
      const int root = round % n;
      const Traffic large{matrix(
          n, [&](int from, int) { return from == root ? kLeastInBulk + 3 : std::uint64_t{0}; })};
      const Traffic small{matrix(n, [](int, int) { return 3000; })};
      for (int r = 0; r < n; ++r) prepare(ranks, r, large, 1);
      for (int r = 0; r < n; ++r) {
        ranks.use(r);
        if (round % 3 == r % 3) enqueue_delay(300'000, ranks.stream(r));
        for (int call = 0; call < 5; ++call) {
          const Traffic& traffic = call % 2 == 0 ? large : small;
          must(ranks.path(r).move(traffic.moves(ranks, r), ranks.host().blocks, ranks.stream(r)));
        }
      }
      ranks.synchronize();
      for (int r = 0; r < n; ++r) {
        if (r != root) check(ranks, r, large, 1);
      }
    }
  }
}

// As a large broadcast goes: the root's pieces, each passed on by who gets it.
TEST_F(GpuBulk, APieceIsPassedOn) {
  for (const int n : {3, 4, 6}) {
    for (const std::uint64_t piece : {std::uint64_t{100}, kTileBytes, std::uint64_t{1'500'016}}) {
      const Ranks ranks(n, kMost);
      for (int root = 0; root < n; root += 2) {
        const auto length = static_cast<std::size_t>(n - 1) * piece;
        std::vector<std::byte> data(length);
        for (std::size_t i = 0; i < length; ++i) data[i] = byte_of(root, n, i, piece);
        const std::vector<std::byte> nothing(length + kGuard, kPoison);
        for (int r = 0; r < n; ++r) {
          copy_to(ranks, r, ranks.out(r), nothing.data(), nothing.size());
          if (r == root) copy_to(ranks, r, ranks.in(r), data.data(), length);
        }
        for (int r = 0; r < n; ++r) {
          Moves what;
          what.collective = Collective::broadcast;
          what.type = DataType::byte;
          what.root = Rank{root};
          what.passes_on = true;
          what.input = r == root ? ranks.in(r) : ranks.out(r);
          what.output = ranks.out(r);
          const auto run_of = [&](int rank) {
            return gpu::Run{static_cast<std::uint64_t>((rank - root + n) % n - 1) * piece, piece};
          };
          for (int p = 0; p < n; ++p) {
            if (p == r) continue;
            const auto at = static_cast<std::size_t>(p);
            if (p != root) what.sends[at] = run_of(r == root ? p : r);
            if (r != root) what.receives[at] = run_of(p == root ? r : p);
          }
          ranks.use(r);
          const int blocks = piece == kTileBytes ? 2 : ranks.host().blocks;
          must(ranks.path(r).move(what, blocks, ranks.stream(r)));
        }
        ranks.synchronize();
        for (int r = 0; r < n; ++r) {
          if (r == root) continue;
          std::vector<std::byte> got(length + kGuard);
          ranks.use(r);
          must(cudaMemcpy(got.data(), ranks.out(r), got.size(), cudaMemcpyDeviceToHost), "copy");
          EXPECT_TRUE(std::equal(data.begin(), data.end(), got.begin()))
              << n << ' ' << r << ' ' << piece;
          EXPECT_EQ(got[length], kPoison);
        }
      }
    }
  }
}

// The bytes of each pair are the same, and all the same it is another call.
TEST_F(GpuBulk, WhoDoesNotPassOnIsTold) {
  const int n = 3;
  const Ranks ranks(n, kMost);
  for (int r = 0; r < n; ++r) {
    Moves what;
    what.collective = Collective::broadcast;
    what.type = DataType::byte;
    what.input = ranks.in(r);
    what.output = ranks.out(r);
    what.passes_on = r == 0;
    if (r == 0) what.sends[1] = what.sends[2] = {0, kLeastInBulk};
    if (r != 0) what.receives[0] = {0, kLeastInBulk};
    ranks.use(r);
    must(ranks.path(r).move(what, ranks.host().blocks, ranks.stream(r)));
  }
  ranks.synchronize();
  for (int r = 1; r < n; ++r) {
    EXPECT_TRUE(ranks.path(r).kernel_error().happened && ranks.path(r).kernel_error().disagrees);
  }
  for (int r = 0; r < n; ++r) ranks.path(r).abort();
}

// Such a run has no header: what the ranks announce tells. Whoever expects something else is told.
TEST_F(GpuBulk, WhoGivesAnotherLengthIsTold) {
  for (const std::uint64_t expected :
       {std::uint64_t{6} << 20, std::uint64_t{1} << 20, std::uint64_t{0}}) {
    const Ranks ranks(2, kMost);
    for (int r = 0; r < 2; ++r) {
      Moves what;
      what.collective = Collective::all_to_all_v;
      what.type = DataType::byte;
      what.input = ranks.in(r);
      what.output = ranks.out(r);
      if (r == 0) what.sends[1] = {0, 8 << 20};
      if (r == 1) what.receives[0] = {0, expected};
      ranks.use(r);
      must(ranks.path(r).move(what, ranks.host().blocks, ranks.stream(r)));
    }
    ranks.use(1);
    must(cudaStreamSynchronize(ranks.stream(1)), "stream");
    const KernelError failure = ranks.path(1).kernel_error();
    EXPECT_TRUE(failure.happened && failure.disagrees) << expected;
    EXPECT_EQ(failure.theirs.bytes, 8U << 20) << expected;
    for (int r = 0; r < 2; ++r) ranks.path(r).abort();
  }
}

TEST_F(GpuBulk, WhoDoesNotTakeIsNamed) {
  const int n = 3;
  const Ranks ranks(n, kMost, 0.4);
  const Traffic traffic{matrix(n, [](int, int) { return 10 << 20; })};
  for (int r = 0; r < 2; ++r) {
    ranks.use(r);
    must(ranks.path(r).move(traffic.moves(ranks, r), ranks.host().blocks, ranks.stream(r)));
  }
  ranks.synchronize();
  for (int r = 0; r < 2; ++r) {
    const KernelError failure = ranks.path(r).kernel_error();
    EXPECT_TRUE(failure.happened);
    EXPECT_EQ(index(failure.peer), 2);
  }
}

}  // namespace
}  // namespace gdrx::gpu
