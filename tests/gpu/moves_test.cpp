// SPDX-License-Identifier: Apache-2.0
// Bytes from every rank to every other, on every GPU of this host. Skipped without a GPU.
#include "tests/gpu/moves.hpp"

#include <random>
#include <thread>

#include "tests/gpu/delay.hpp"

namespace gdrx::gpu {
namespace {

constexpr std::uint64_t kRoom = (kEmulated ? 24 : 40) << 20;  // 16 ranks' largest blocks

class GpuMoves : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};

std::vector<int> counts_of_ranks() {
  std::vector<int> counts = rank_counts();
  if (kEmulated) counts.insert(counts.end(), {4, 8});
  return counts;
}

TEST_F(GpuMoves, EveryRankGetsWhatEachOtherHasForIt) {
  for (const int n : counts_of_ranks()) {
    const Ranks ranks(n, kRoom);
    for (const std::uint64_t bytes : {1, 4, 16, 1000, 4099, 100'000, 2'000'003}) {
      if (kEmulated && n > 3 && bytes > 200'000) continue;
      const Matrix even = matrix(n, [&](int, int) { return bytes; });
      move(ranks, {even}, bytes);
      move(ranks, {even, 0, 0, true}, bytes + 1);
      if (bytes <= 100'000) move(ranks, {even, 5, 3}, bytes + 2);
      if (bytes <= 100'000) move(ranks, {even, 12, 4, true}, bytes + 3);
    }
  }
}

// A root alone sends, or alone receives: nobody hears of the others by data.
TEST_F(GpuMoves, OneMaySendToAllAndAllToOne) {
  for (const int n : counts_of_ranks()) {
    const Ranks ranks(n, kRoom);
    for (int round = 0; round < 6; ++round) {
      const int root = round % n;
      for (const std::uint64_t bytes : {8, 70'001, 1'200'000}) {
        if (kEmulated && n > 3 && bytes > 200'000) continue;
        const auto from_root = [&](int from, int) { return from == root ? bytes : 0; };
        const auto to_root = [&](int, int to) { return to == root ? bytes : 0; };
        move(ranks, {matrix(n, from_root)}, bytes);
        move(ranks, {matrix(n, to_root)}, bytes);
      }
    }
  }
}

TEST_F(GpuMoves, PairsMayDifferAndHaveNothing) {
  std::mt19937_64 random(1);
  for (const int n : counts_of_ranks()) {
    const Ranks ranks(n, kRoom);
    for (int round = 0; round < (kEmulated ? 12 : 60); ++round) {
      const Matrix bytes = matrix(n, [&](int, int) -> std::uint64_t {
        switch (random() % 5) {
          case 0:
            return 0;
          case 1:
            return random() % 64;
          case 2:
            return random() % 300'000;
          default:
            return random() % 9000;
        }
      });
      move(ranks, {bytes, random() % 3, random() % 2 * 8}, random());
    }
    move(ranks, {matrix(n, [](int, int) { return 0; })}, 1);
  }
}

// What a slot must never be taken for: the sentinel, and what stands for it.
TEST_F(GpuMoves, AnyBitsArrive) {
  const int n = 2;
  const Ranks ranks(n, kRoom);
  const Traffic traffic{matrix(n, [](int, int) { return 4096; })};
  std::vector<std::uint64_t> words(2 * 512);
  for (std::size_t i = 0; i < words.size(); i += 2) {
    words[i] = kSentinelLow;
    words[i + 1] = i % 3 == 0 ? kSentinelHigh : i % 3 == 1 ? kEscapeHigh : i;
  }
  for (int round = 0; round < 3; ++round) {
    for (int r = 0; r < n; ++r) copy_to(ranks, r, ranks.in(r), words.data(), 8192);
    for (int r = 0; r < n; ++r) {
      ranks.use(r);
      must(ranks.path(r).move(traffic.moves(ranks, r), ranks.host().blocks, ranks.stream(r)));
    }
    ranks.synchronize();
    for (int r = 0; r < n; ++r) {
      std::vector<std::uint64_t> got(1024);
      must(cudaMemcpy(got.data(), ranks.out(r), 8192, cudaMemcpyDeviceToHost), "copy");
      EXPECT_TRUE(std::equal(got.begin(), got.begin() + 512, words.begin() + 512 * r)) << r;
      EXPECT_TRUE(std::equal(got.begin() + 512, got.end(), words.begin() + 512 * r)) << r;
    }
  }
}

/// An allReduce of so many bytes, apart from what is moved.
void all_reduce(const Ranks& ranks, int r, std::uint64_t bytes) {
  std::byte* const at = ranks.in(r) + (8 << 20);
  ranks.launch(r, {at, at, bytes, DataType::uint32, ReduceOp::sum}, choose(ranks.host(), bytes));
}

// Nobody waits between them, and a rank that only sends may run ahead of the others: of calls that
// use a half of the slots, and all of them.
TEST_F(GpuMoves, FollowEachOtherAndOtherKernels) {
  for (const int n : {2, 3, 4}) {
    const Ranks ranks(n, kRoom);
    for (int round = 0; round < (kEmulated ? 3 : 20); ++round) {
      const int root = round % n;
      const std::uint64_t bytes = round % 2 == 0 ? 400 : 900'001;
      const Traffic from_root{matrix(n, [&](int from, int) { return from == root ? bytes : 0; })};
      for (int r = 0; r < n; ++r) prepare(ranks, r, from_root, 1);
      for (int r = 0; r < n; ++r) {
        ranks.use(r);
        if (round % 3 == r % 3) enqueue_delay(300'000, ranks.stream(r));
        for (int call = 0; call < 8; ++call) {
          must(ranks.path(r).move(from_root.moves(ranks, r), ranks.host().blocks, ranks.stream(r)));
          const std::uint64_t sum = call % 3 == 0 ? 64 : call % 3 == 1 ? 200'000 : 3'000'000;
          if (call % 2 == 0) all_reduce(ranks, r, sum);
        }
      }
      ranks.synchronize();
      for (int r = 0; r < n; ++r) check(ranks, r, from_root, 1);
    }
  }
}

TEST_F(GpuMoves, RunFromGraphs) {
  for (const int n : {2, 3}) {
    const Ranks ranks(n, kRoom);
    const Traffic traffic{matrix(
        n, [](int from, int to) { return static_cast<std::uint64_t>(from * 70'000 + to * 1001); })};
    std::vector<cudaGraphExec_t> graphs;
    for (int r = 0; r < n; ++r) {
      ranks.use(r);
      cudaGraph_t graph = nullptr;
      must(cudaStreamBeginCapture(ranks.stream(r), cudaStreamCaptureModeThreadLocal), "capture");
      for (int call = 0; call < 3; ++call) {
        must(ranks.path(r).move(traffic.moves(ranks, r), ranks.host().blocks, ranks.stream(r)));
        all_reduce(ranks, r, 4 << 10);
      }
      must(cudaStreamEndCapture(ranks.stream(r), &graph), "capture");
      must(cudaGraphInstantiate(&graphs.emplace_back(), graph, 0), "instantiate");
      cudaGraphDestroy(graph);
    }
    for (std::uint64_t replay = 0; replay < 3; ++replay) {
      for (int r = 0; r < n; ++r) prepare(ranks, r, traffic, replay);
      for (int r = 0; r < n; ++r) {
        ranks.use(r);
        must(cudaGraphLaunch(graphs[static_cast<std::size_t>(r)], ranks.stream(r)), "launch");
      }
      ranks.synchronize();
      for (int r = 0; r < n; ++r) check(ranks, r, traffic, replay);
    }
    for (cudaGraphExec_t graph : graphs) cudaGraphExecDestroy(graph);
  }
}

// Nothing of its data is needed, and all the same nobody goes on without it.
TEST_F(GpuMoves, ARankThatDoesNotComeIsNamedByAll) {
  const int n = 3;
  const Ranks ranks(n, kRoom, 0.4);
  const Traffic traffic{matrix(n, [](int from, int) { return from == 0 ? 1000 : 0; })};
  for (int r = 0; r < 2; ++r) {
    ranks.use(r);
    must(ranks.path(r).move(traffic.moves(ranks, r), ranks.host().blocks, ranks.stream(r)));
  }
  ranks.synchronize();
  for (int r = 0; r < 2; ++r) {
    const KernelError failure = ranks.path(r).kernel_error();
    EXPECT_TRUE(failure.happened);
    EXPECT_FALSE(failure.disagrees);
    EXPECT_EQ(index(failure.peer), 2);
  }
}

TEST_F(GpuMoves, AnAbortEndsThem) {
  const Ranks ranks(2, kRoom);
  const Traffic traffic{matrix(2, [](int, int) { return 3 << 20; })};
  ranks.use(0);
  must(ranks.path(0).move(traffic.moves(ranks, 0), ranks.host().blocks, ranks.stream(0)));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(cudaStreamQuery(ranks.stream(0)), cudaErrorNotReady);
  ranks.path(0).abort();
  ranks.use(0);
  EXPECT_EQ(cudaStreamSynchronize(ranks.stream(0)), cudaSuccess);
}

struct Mismatch {
  std::uint64_t sent, expected;
};

// More, less, something for nothing: small ones and such of many tiles.
TEST_F(GpuMoves, CountsThatDifferAreToldToWhoExpectsThem) {
  const int n = 3;
  for (const Mismatch& odd :
       {Mismatch{8, 12}, {12, 8}, {0, 100}, {100, 0}, {3'000'000, 3'000'016}, {3'000'000, 10}}) {
    const Ranks ranks(n, kRoom);
    const Traffic traffic{matrix(n, [](int, int) { return 1000; })};
    for (int r = 0; r < n; ++r) {
      ranks.use(r);
      Moves what = traffic.moves(ranks, r);
      if (r == 1) what.sends[2].bytes = odd.sent;
      if (r == 2) what.receives[1].bytes = odd.expected;
      must(ranks.path(r).move(what, ranks.host().blocks, ranks.stream(r)));
    }
    ranks.use(2);
    EXPECT_EQ(cudaStreamSynchronize(ranks.stream(2)), cudaSuccess);
    const KernelError failure = ranks.path(2).kernel_error();
    EXPECT_TRUE(failure.happened && failure.disagrees) << odd.sent << ' ' << odd.expected;
    EXPECT_EQ(index(failure.peer), 1);
    EXPECT_TRUE(failure.theirs.moves);
    EXPECT_EQ(failure.theirs.bytes, odd.sent);
    EXPECT_EQ(failure.mine.bytes, odd.expected);
    for (int r = 0; r < n; ++r) ranks.path(r).abort();  // as a communicator does that is told
  }
}

}  // namespace
}  // namespace gdrx::gpu
