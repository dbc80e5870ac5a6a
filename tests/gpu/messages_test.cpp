// SPDX-License-Identifier: Apache-2.0
// Sends and receives as kernels, on every GPU of this host. Skipped without a GPU.
#include "tests/gpu/messages.hpp"

#include <random>
#include <thread>

#include "tests/gpu/delay.hpp"

namespace gdrx::gpu {
namespace {

constexpr std::uint64_t kRoom = 40 << 20;

class GpuMessages : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};

std::vector<int> counts_of_ranks() {
  std::vector<int> counts = rank_counts();
  if (kEmulated) counts.push_back(8);
  return counts;
}

Mail all_to_all(int ranks, std::uint64_t bytes, std::uint64_t gap, std::uint64_t shift) {
  Mail mail(gap, shift);
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) mail.add(from, to, bytes);
  }
  return mail;
}

TEST_F(GpuMessages, OfAnySizeGoBetweenAllRanksAndToThemselves) {
  for (const int n : counts_of_ranks()) {
    const Ranks ranks(n, kRoom);
    for (const std::uint64_t bytes : {0, 1, 4, 8, 100, 4096, 4099, 70'001, 2'000'003}) {
      if (n > 5 && bytes > 100'000) continue;
      deliver(ranks, all_to_all(n, bytes, 0, 0), bytes);
      if (bytes <= 100'000) deliver(ranks, all_to_all(n, bytes, 5, 3), bytes + 1);
      if (bytes <= 100'000) deliver(ranks, all_to_all(n, bytes, 4, 12), bytes + 2);
    }
  }
}

TEST_F(GpuMessages, SeveralOfAPairComeInTheOrderOfTheirCalls) {
  for (const int n : {2, 3}) {
    const Ranks ranks(n, kRoom);
    Mail mail(3);
    for (const std::uint64_t bytes : {16, 300'000, 0, 7, 4096, 0, 1'500'000, 8}) {
      for (int from = 0; from < n; ++from) mail.add(from, (from + 1) % n, bytes + 8);
      mail.add(1, 0, bytes);
    }
    for (std::uint64_t round = 0; round < 3; ++round) deliver(ranks, mail, round);
  }
}

// One rank gives in one call what the other takes in many, and the other way round.
TEST_F(GpuMessages, CallsNeedNotHaveTheSameOnBothSides) {
  const Ranks ranks(2, kRoom);
  Mail mail;
  for (std::uint64_t i = 0; i < 40; ++i) mail.add(0, 1, i * 997 % 9000);
  for (const int by_parts : {0, 1}) {
    for (int r = 0; r < 2; ++r) prepare(ranks, r, mail, 5);
    for (std::size_t i = 0; i < mail.all().size(); ++i) {
      exchange(ranks, by_parts, mail.of(ranks, by_parts, i, i + 1));
    }
    exchange(ranks, 1 - by_parts, mail.of(ranks, 1 - by_parts));
    ranks.synchronize();
    check(ranks, 1, mail, 5);
  }
}

TEST_F(GpuMessages, PairsMayDifferAndHaveNothing) {
  std::mt19937_64 random(1);
  for (const int n : counts_of_ranks()) {
    const Ranks ranks(n, kRoom);
    for (int round = 0; round < (kEmulated ? 12 : 60); ++round) {
      Mail mail(random() % 3, random() % 2 * 8);
      const std::uint64_t letters = random() % (4 * static_cast<std::uint64_t>(n));
      for (std::uint64_t i = 0; i < letters; ++i) {
        const int from = static_cast<int>(random() % static_cast<std::uint64_t>(n));
        const int to = static_cast<int>(random() % static_cast<std::uint64_t>(n));
        const std::uint64_t most = random() % 3 == 0 ? 300'000 : 9000;
        mail.add(from, to, random() % most);
      }
      deliver(ranks, mail, random());
    }
  }
}

// A sender may be ahead of its receiver by as much as there is room for, over many calls: no call
// here waits for the one before.
TEST_F(GpuMessages, ManyCallsGoThroughTheSameSlots) {
  std::mt19937_64 random(2);
  const Ranks ranks(2, kRoom);
  Mail mail;
  for (int i = 0; i < 400; ++i) {
    mail.add(i % 7 == 0 ? 1 : 0, i % 7 == 0 ? 0 : 1,
             random() % 5 == 0 ? random() % 200'000 : random() % 900);
  }
  for (int r = 0; r < 2; ++r) prepare(ranks, r, mail, 3);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&ranks, &mail, r] {
      ranks.use(r);
      for (std::size_t i = 0; i < mail.all().size(); ++i) {
        if (i % 50 == 0) enqueue_delay(200'000, ranks.stream(r));
        exchange(ranks, r, mail.of(ranks, r, i, i + 1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ranks.synchronize();
  for (int r = 0; r < 2; ++r) check(ranks, r, mail, 3);
}

// Far more than there is room for, to a rank that comes late.
TEST_F(GpuMessages, ASenderWaitsForRoom) {
  const Ranks ranks(2, kRoom);
  Mail mail;
  mail.add(0, 1, 9'000'001);
  mail.add(0, 1, 5);
  for (int r = 0; r < 2; ++r) prepare(ranks, r, mail, 1);
  ranks.use(1);
  enqueue_delay(kEmulated ? 1'000'000'000 : 20'000'000, ranks.stream(1));
  for (int r = 0; r < 2; ++r) exchange(ranks, r, mail.of(ranks, r));
  ranks.synchronize();
  check(ranks, 1, mail, 1);
}

// As gdrx.h promises: whoever takes a message late finds it there, and never says so while it
// waits.
TEST_F(GpuMessages, OneOf4KiBFindsRoomOnceAllBeforeItWereReceived) {
  const Ranks ranks(2, kRoom, 5);
  const std::uint64_t calls = channels_of_pair(2, ranks.host().blocks).ring / 40 + 30;
  for (std::uint64_t call = 0; call < calls; ++call) {
    Mail mail;
    mail.add(0, 1, call % 3 == 0 ? 4096 : 4096 - call % 50);
    for (int r = 0; r < 2; ++r) {
      prepare(ranks, r, mail, call);
      exchange(ranks, r, mail.of(ranks, r));
      must(cudaStreamSynchronize(ranks.stream(r)), "synchronize");
    }
    check(ranks, 1, mail, call);
    ASSERT_FALSE(ranks.path(0).kernel_error().happened) << call;
  }
}

// More than the arguments of a kernel hold, and than the arena does.
TEST_F(GpuMessages, AGroupMayHaveAnyNumber) {
  const Ranks ranks(2, kRoom);
  for (const int count : {kMessagesAtOnce / 2 + 1, kMessagesAtOnce + 1, 1000U, kMessages + 100}) {
    Mail mail;
    for (int i = 0; i < count; ++i) mail.add(i % 2, 1 - i % 2, static_cast<std::uint64_t>(i % 40));
    mail.add(0, 0, 1000);
    deliver(ranks, mail, static_cast<std::uint64_t>(count));
  }
}

// Of one multiprocessor: warps carry channels by turns, and none waits for one that has no room.
TEST_F(GpuMessages, OneMultiprocessorIsEnough) {
  for (const int n : {2, 5, 8}) {
    if (!kEmulated && n > 4 && gpu_count() == 1) continue;
    const Ranks ranks(n, kRoom);
    for (const std::uint64_t bytes : {8, 50'000, 700'003}) {
      if (n > 5 && bytes > 100'000) continue;
      deliver(ranks, all_to_all(n, bytes, 0, 0), bytes, 1);
    }
    // Both send far more than there is room for before either has received.
    if (n == 2) deliver(ranks, all_to_all(n, 12'000'003, 0, 0), 3, 1);
  }
}

// What a slot must never be taken for: the sentinel, and what stands for it.
TEST_F(GpuMessages, AnyBitsArrive) {
  const Ranks ranks(2, kRoom);
  Mail mail;
  for (int i = 0; i < 4; ++i) mail.add(i % 2, 1 - i % 2, 8192);
  std::vector<std::uint64_t> words(2 * 1024);
  for (std::size_t i = 0; i < words.size(); i += 2) {
    words[i] = kSentinelLow;
    words[i + 1] = i % 3 == 0 ? kSentinelHigh : i % 3 == 1 ? kEscapeHigh : i;
  }
  for (int r = 0; r < 2; ++r) copy_to(ranks, r, ranks.in(r), words.data(), 16384);
  for (int round = 0; round < 5; ++round) {
    for (int r = 0; r < 2; ++r) exchange(ranks, r, mail.of(ranks, r));
    ranks.synchronize();
    for (int r = 0; r < 2; ++r) {
      std::vector<std::uint64_t> got(2048);
      ranks.use(r);
      must(cudaMemcpy(got.data(), ranks.out(r), 16384, cudaMemcpyDeviceToHost), "copy");
      EXPECT_EQ(got, words) << r;
    }
  }
}

// What goes through a channel is counted in 32 bits, for as long as a communicator lives.
TEST_F(GpuMessages, CountersWrapAround) {
  const Ranks ranks(2, kRoom);
  const PairChannels channels = channels_of_pair(2, ranks.host().blocks);
  const std::uint32_t near = ~0U - channels.ring + 1;  // a full ring before their end
  for (int r = 0; r < 2; ++r) {
    auto* const arena = reinterpret_cast<std::uint8_t*>(ranks.path(r).ticket().pointer);
    const std::vector<PairWords> words(channels.count, {near, near, near, near});
    const std::vector<Room> told(channels.count, near);
    copy_to(ranks, r, arena + kPairWordsAt, words.data(), channels.count * sizeof(PairWords));
    copy_to(ranks, r, arena + kEmptiedAt, told.data(), channels.count * sizeof(Room));
  }
  for (std::uint64_t round = 0; round < 6; ++round) {
    deliver(ranks, all_to_all(2, 3'000'000, 0, 0), round);
  }
}

/// An allReduce of so many bytes, apart from what is sent.
void all_reduce(const Ranks& ranks, int r, std::uint64_t bytes) {
  std::byte* const at = ranks.in(r) + (20 << 20);
  ranks.launch(r, {at, at, bytes, DataType::uint32, ReduceOp::sum}, choose(ranks.host(), bytes));
}

TEST_F(GpuMessages, FollowOtherKernelsAndGoBeforeThem) {
  for (const int n : {2, 3}) {
    const Ranks ranks(n, kRoom);
    Mail mail;
    for (int from = 0; from < n; ++from) mail.add(from, (from + 1) % n, 600'001);
    const Traffic from_root{matrix(n, [](int from, int) { return from == 0 ? 900'001 : 0; })};
    for (int r = 0; r < n; ++r) prepare(ranks, r, mail, 1);
    for (int r = 0; r < n; ++r) {
      ranks.use(r);
      for (int call = 0; call < 8; ++call) {
        if (call % 3 == r % 3) enqueue_delay(200'000, ranks.stream(r));
        exchange(ranks, r, mail.of(ranks, r));
        all_reduce(ranks, r, call % 3 == 0 ? 64 : call % 3 == 1 ? 200'000 : 3'000'000);
        Moves moved = from_root.moves(ranks, r);
        moved.input = ranks.in(r) + (10 << 20);
        moved.output = ranks.out(r) + (10 << 20);
        if (call % 2 == 0) must(ranks.path(r).move(moved, ranks.host().blocks, ranks.stream(r)));
      }
    }
    ranks.synchronize();
    for (int r = 0; r < n; ++r) {
      ranks.use(r);
      check(ranks, r, mail, 1);
    }
  }
}

TEST_F(GpuMessages, KeepTheirOrderWhenTheStreamChanges) {
  const Ranks ranks(2, kRoom);
  Mail mail;
  for (std::uint64_t i = 0; i < 6; ++i) mail.add(0, 1, 5000 + 100 * i);
  for (int r = 0; r < 2; ++r) prepare(ranks, r, mail, 1);
  for (int r = 0; r < 2; ++r) {
    ranks.use(r);
    for (std::size_t i = 0; i < mail.all().size(); ++i) {
      Messages what = mail.of(ranks, r, i, i + 1);
      if (i % 2 == 1) what.streams = {ranks.path(r).own_stream()};
      if (i % 2 == 0) enqueue_delay(5'000'000, ranks.stream(r));
      exchange(ranks, r, what);
    }
    must(cudaStreamSynchronize(static_cast<cudaStream_t>(ranks.path(r).own_stream())), "stream");
  }
  ranks.synchronize();
  check(ranks, 1, mail, 1);
}

TEST_F(GpuMessages, RunFromGraphs) {
  for (const int n : {2, 3}) {
    const Ranks ranks(n, kRoom);
    Mail mail;
    for (int from = 0; from < n; ++from) {
      for (const std::uint64_t bytes : {8, 70'000, 0, 1'000'001}) {
        mail.add(from, (from + 1) % n, bytes);
        mail.add(from, from, bytes);
      }
    }
    for (int i = 0; i < 100; ++i) mail.add(i % 2, 1 - i % 2, 12);  // these lie in the arena
    std::vector<cudaGraphExec_t> graphs;
    for (int r = 0; r < n; ++r) {
      ranks.use(r);
      cudaGraph_t graph = nullptr;
      must(cudaStreamBeginCapture(ranks.stream(r), cudaStreamCaptureModeThreadLocal), "capture");
      for (int call = 0; call < 3; ++call) {
        exchange(ranks, r, mail.of(ranks, r));
        all_reduce(ranks, r, 4 << 10);
      }
      must(cudaStreamEndCapture(ranks.stream(r), &graph), "capture");
      must(cudaGraphInstantiate(&graphs.emplace_back(), graph, 0), "instantiate");
      cudaGraphDestroy(graph);
    }
    for (std::uint64_t replay = 0; replay < 3; ++replay) {
      for (int r = 0; r < n; ++r) prepare(ranks, r, mail, replay);
      for (int r = 0; r < n; ++r) {
        ranks.use(r);
        must(cudaGraphLaunch(graphs[static_cast<std::size_t>(r)], ranks.stream(r)), "launch");
      }
      ranks.synchronize();
      for (int r = 0; r < n; ++r) check(ranks, r, mail, replay);
      deliver(ranks, all_to_all(n, 33'000, 0, 0), replay);
    }
    for (cudaGraphExec_t graph : graphs) cudaGraphExecDestroy(graph);
  }
}

/// Whoever has no room for it waits, however it begins.
constexpr std::uint64_t kLarge = 20 << 20;

TEST_F(GpuMessages, ARankThatDoesNotComeIsNamed) {
  const Ranks ranks(3, kRoom, 0.4);
  Mail mail;
  mail.add(0, 1, 1000);    // the other is not there, but has room
  mail.add(0, 2, kLarge);  // nor that one, and has not
  mail.add(2, 1, 1000);
  for (int r = 0; r < 2; ++r) exchange(ranks, r, mail.of(ranks, r));
  ranks.synchronize();
  for (int r = 0; r < 2; ++r) {
    const KernelError failure = ranks.path(r).kernel_error();
    EXPECT_TRUE(failure.happened);
    EXPECT_FALSE(failure.disagrees);
    EXPECT_EQ(index(failure.peer), 2);
    EXPECT_EQ(failure.stage, r == 0 ? "sending" : "receiving");
  }
}

TEST_F(GpuMessages, AnAbortEndsThemAndWhatFollows) {
  const Ranks ranks(2, kRoom);
  Mail mail, later;
  mail.add(0, 1, kLarge);
  later.add(0, 1, 4096);
  exchange(ranks, 0, mail.of(ranks, 0));
  exchange(ranks, 0, later.of(ranks, 0));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ranks.use(0);
  EXPECT_EQ(cudaStreamQuery(ranks.stream(0)), cudaErrorNotReady);
  ranks.path(0).abort();
  EXPECT_EQ(cudaStreamSynchronize(ranks.stream(0)), cudaSuccess);
}

// What a kernel ahead of it did not receive is no data.
TEST_F(GpuMessages, NothingIsSentBehindOneThatGaveUp) {
  const Ranks ranks(2, kRoom, 0.4);
  Mail mail, later;
  mail.add(1, 0, 100);
  later.add(0, 1, 100);
  exchange(ranks, 0, mail.of(ranks, 0));  // in vain
  exchange(ranks, 0, later.of(ranks, 0));
  ranks.synchronize();
  exchange(ranks, 1, later.of(ranks, 1));
  ranks.synchronize();
  EXPECT_TRUE(ranks.path(1).kernel_error().happened);
}

struct Mismatch {
  std::uint64_t sent, expected;
  DataType type = DataType::byte;
};

// More, less, something for nothing: small ones and such of many tiles.
TEST_F(GpuMessages, WhatTheSidesDoNotCallAlikeIsToldToWhoReceives) {
  for (const Mismatch& odd : {Mismatch{8, 12},
                              {12, 8},
                              {0, 100},
                              {100, 0},
                              {3'000'000, 3'000'016},
                              {3'000'000, 10},
                              {8, 8, DataType::uint8}}) {
    const Ranks ranks(2, kRoom);
    Mail mail;
    for (int i = 0; i < 3; ++i) mail.add(i % 2, 1 - i % 2, 1000);
    deliver(ranks, mail, 1);
    for (int r = 0; r < 2; ++r) {
      Messages what = mail.of(ranks, r);
      if (r == 0) what.sends[1].bytes = odd.sent;
      if (r == 1) what.receives[1].bytes = odd.expected;
      if (r == 1) what.receives[1].type = odd.type;
      exchange(ranks, r, what);
    }
    ranks.use(1);
    EXPECT_EQ(cudaStreamSynchronize(ranks.stream(1)), cudaSuccess);
    const KernelError failure = ranks.path(1).kernel_error();
    EXPECT_TRUE(failure.happened && failure.disagrees) << odd.sent << ' ' << odd.expected;
    EXPECT_EQ(index(failure.peer), 0);
    EXPECT_TRUE(failure.mine.message && failure.theirs.message);
    EXPECT_EQ(failure.theirs.bytes, odd.sent);
    EXPECT_EQ(failure.mine.bytes, odd.expected);
    EXPECT_EQ(failure.mine.type, odd.type);
    EXPECT_EQ(failure.theirs.type, DataType::byte);
    for (int r = 0; r < 2; ++r) ranks.path(r).abort();  // as a communicator does that is told
  }
}

}  // namespace
}  // namespace gdrx::gpu
