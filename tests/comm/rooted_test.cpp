// SPDX-License-Identifier: Apache-2.0
// Small calls with a root, which some ranks leave before others enter them: among all other calls,
// with slow ranks, in threads and in processes; and what is said where they do not match.
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/comm/processes.hpp"
#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::uint64_t>;

enum class Kind {
  broadcast,
  scatter,
  reduce,
  gather,
  scatter_v,
  gather_v,
  all_reduce,
  all_gather,
  all_to_all,
  barrier
};
constexpr int kRooted = 6, kKinds = 10;

/// The same on every rank that draws as often.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::size_t below(std::size_t most) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return (state_ >> 33) % most;
  }

 private:
  std::uint64_t state_;
};

/// A call of every rank, of words that are like no other call's.
struct Call {
  Kind kind{};
  int root = 0;
  std::size_t count = 0;
  std::uint64_t number = 0;
  bool in_place = false;

  /// Of the rank's part, where they differ: nothing for some.
  std::size_t part(int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    return (r + number) % 3 == 0 ? 0 : count + r;
  }
  std::size_t begin(int rank) const {
    std::size_t end = 0;
    for (int r = 0; r < rank; ++r) end += part(r);
    return end;
  }
  std::vector<std::size_t> parts(int ranks) const {
    std::vector<std::size_t> counts;
    for (int r = 0; r < ranks; ++r) counts.push_back(part(r));
    return counts;
  }

  // Small, so that sums do not wrap into each other.
  std::uint64_t word(int rank, std::size_t i) const {
    return (number << 24) + (static_cast<std::uint64_t>(rank) << 16) + i % 65521;
  }
};

// Mostly beside the stage; around that limit, and around a block's.
Call draw(Dice& dice, int ranks, std::uint64_t number, bool rooted) {
  constexpr std::array<std::size_t, 12> kCounts{1, 1, 2, 5, 7, 9, 10, 11, 1000, 4095, 4097, 9000};
  Call call;
  call.kind = static_cast<Kind>(dice.below(rooted ? kRooted : kKinds));
  call.root = static_cast<int>(dice.below(static_cast<std::size_t>(ranks)));
  call.count = kCounts[dice.below(dice.below(4) == 0 ? kCounts.size() : 8)];
  call.number = number;
  call.in_place = dice.below(3) == 0;
  return call;
}

/// A rank's buffers of a call, and what must stand in the output.
struct Buffers {
  Buffers(const Call& call, int rank, int ranks) {
    const bool root = rank == call.root;
    const std::size_t all = call.count * static_cast<std::size_t>(ranks);
    const bool parts = call.kind == Kind::scatter_v || call.kind == Kind::gather_v;
    const std::size_t at = parts ? call.begin(rank) : call.count * static_cast<std::size_t>(rank);
    const auto input = [&](std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) in.push_back(call.word(rank, i));
    };
    const auto sums = [&] {
      for (std::size_t i = 0; i < call.count; ++i) {
        std::uint64_t sum = 0;
        for (int r = 0; r < ranks; ++r) sum += call.word(r, i);
        expected.push_back(sum);
      }
    };
    const auto blocks = [&](std::size_t offset) {
      for (int r = 0; r < ranks; ++r) {
        for (std::size_t i = 0; i < call.count; ++i) expected.push_back(call.word(r, offset + i));
      }
    };
    switch (call.kind) {
      case Kind::broadcast:
        if (root) input(call.count);
        for (std::size_t i = 0; i < call.count; ++i) expected.push_back(call.word(call.root, i));
        break;
      case Kind::scatter:
        if (root) input(all);
        for (std::size_t i = 0; i < call.count; ++i)
          expected.push_back(call.word(call.root, at + i));
        break;
      case Kind::reduce:
        input(call.count);
        if (root) sums();
        break;
      case Kind::gather:
        input(call.count);
        if (root) blocks(0);
        break;
      case Kind::scatter_v:
        if (root) input(call.begin(ranks));
        for (std::size_t i = 0; i < call.part(rank); ++i)
          expected.push_back(call.word(call.root, at + i));
        break;
      case Kind::gather_v:
        input(call.part(rank));
        for (int r = 0; root && r < ranks; ++r) {
          for (std::size_t i = 0; i < call.part(r); ++i) expected.push_back(call.word(r, i));
        }
        break;
      case Kind::all_reduce:
        input(call.count);
        sums();
        break;
      case Kind::all_gather:
        input(call.count);
        blocks(0);
        break;
      case Kind::all_to_all:
        input(all);
        blocks(at);
        break;
      case Kind::barrier:
        break;
    }
    out.assign(expected.size(), ~std::uint64_t{0});
    from = in.data();
    to = out.data();
    if (!call.in_place || in.empty() || out.empty()) return;
    if (call.kind == Kind::gather || call.kind == Kind::gather_v || call.kind == Kind::all_gather) {
      std::copy(in.begin(), in.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
      from = out.data() + at;
    } else if (call.kind == Kind::scatter || call.kind == Kind::scatter_v) {
      to = in.data() + at;
    } else {
      to = in.data();
    }
  }
  bool right() const { return std::equal(expected.begin(), expected.end(), to); }

  Words in, out, expected;
  std::uint64_t* from = nullptr;
  std::uint64_t* to = nullptr;
};

gdrxResult_t make(const Call& call, Buffers& buffers, gdrxComm_t comm, gdrxRequest_t* request) {
  int rank = 0, ranks = 0;
  gdrxCommUserRank(comm, &rank);
  gdrxCommCount(comm, &ranks);
  const std::vector<std::size_t> parts = call.parts(ranks);
  const void* const in = buffers.from;
  void* const out = buffers.to;
  const std::size_t n = call.count;
  constexpr gdrxDataType_t kType = gdrxUint64;
  switch (call.kind) {
    case Kind::broadcast:
      return gdrxBroadcast(in, out, n, kType, call.root, comm, nullptr, request);
    case Kind::scatter:
      return gdrxScatter(in, out, n, kType, call.root, comm, nullptr, request);
    case Kind::reduce:
      return gdrxReduce(in, out, n, kType, gdrxSum, call.root, comm, nullptr, request);
    case Kind::gather:
      return gdrxGather(in, out, n, kType, call.root, comm, nullptr, request);
    case Kind::scatter_v:
      return gdrxScatterv(in, parts.data(), nullptr, out, call.part(rank), kType, call.root, comm,
                          nullptr, request);
    case Kind::gather_v:
      return gdrxGatherv(in, call.part(rank), out, parts.data(), nullptr, kType, call.root, comm,
                         nullptr, request);
    case Kind::all_reduce:
      return gdrxAllReduce(in, out, n, kType, gdrxSum, comm, nullptr, request);
    case Kind::all_gather:
      return gdrxAllGather(in, out, n, kType, comm, nullptr, request);
    case Kind::all_to_all:
      return gdrxAllToAll(in, out, n, kType, comm, nullptr, request);
    case Kind::barrier:
      break;
  }
  return gdrxBarrier(comm, nullptr, request);
}

void pause(Dice& mine) {
  switch (mine.below(64)) {
    case 0:
      return std::this_thread::sleep_for(300us);
    case 1:
    case 2:
      return std::this_thread::yield();
    default:
      return;
  }
}

/// The number of the first call whose result is wrong or that fails, counted from 1; 0: none.
int first_wrong(int rank, int ranks, gdrxComm_t comm, std::uint64_t seed, int calls, bool rooted) {
  Dice common(seed), mine(seed * 31 + static_cast<std::uint64_t>(rank) + 7);
  for (int number = 0; number < calls; ++number) {
    const Call call = draw(common, ranks, static_cast<std::uint64_t>(number) + 1, rooted);
    Buffers buffers(call, rank, ranks);
    // One is slow, and then another.
    if (rank == (number / 50) % ranks) pause(mine);
    gdrxRequest_t request = nullptr;
    const bool posted = mine.below(8) == 0;
    if (make(call, buffers, comm, posted ? &request : nullptr) != gdrxSuccess) return number + 1;
    if (posted && gdrxWait(&request) != gdrxSuccess) return number + 1;
    if (!buffers.right()) return number + 1;
  }
  return 0;
}

// First: it forks, while the test has no thread.
TEST(RootedProcesses, EveryWordIsRightHoweverFarSomeAreAhead) {
  for (const int ranks : {2, 4}) {
    const gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
    Processes all(ranks, config, [ranks](int rank, gdrxComm_t comm) {
      const int wrong = first_wrong(rank, ranks, comm, 99, 1000, false);
      if (wrong != 0) std::fprintf(stderr, "call %d: %s\n", wrong, gdrxGetLastError(comm));
      gdrxCommDestroy(comm);
      return wrong == 0 ? 0 : 1;
    });
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(all.wait(rank), 0) << rank;
  }
}

TEST(Rooted, EveryWordIsRightHoweverFarSomeAreAhead) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const bool rooted : {true, false}) {
      const World world(ranks);
      world.run([&](int rank, gdrxComm_t comm) {
        const auto seed = static_cast<std::uint64_t>(ranks);
        EXPECT_EQ(first_wrong(rank, ranks, comm, seed, 600, rooted), 0)
            << "rank " << rank << " of " << ranks << ": " << gdrxGetLastError(comm);
      });
    }
  }
}

// One root and one size: nothing but the posts' own order holds it back.
TEST(Rooted, ARootOfManyCallsIsReadByOneThatSleeps) {
  for (const Kind kind : {Kind::broadcast, Kind::scatter, Kind::reduce, Kind::gather,
                          Kind::scatter_v, Kind::gather_v}) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{500}}) {
      const World world(3);
      world.run([&](int rank, gdrxComm_t comm) {
        const bool root_gives =
            kind == Kind::broadcast || kind == Kind::scatter || kind == Kind::scatter_v;
        Dice mine(static_cast<std::uint64_t>(rank));
        for (std::uint64_t number = 1; number <= 200; ++number) {
          const Call call{kind, 1, count, number, false};
          Buffers buffers(call, rank, 3);
          const bool reads = root_gives ? rank == 2 : rank == 1;
          if (reads && mine.below(4) == 0) std::this_thread::sleep_for(50us);
          ASSERT_EQ(make(call, buffers, comm, nullptr), gdrxSuccess) << gdrxGetLastError(comm);
          ASSERT_TRUE(buffers.right()) << "rank " << rank << ", call " << number;
        }
      });
    }
  }
}

/// What each rank calls, one after another: in the end each names both calls, and none waits for
/// the deadline.
void expect_both(const std::vector<std::vector<Call>>& calls, const std::string& one,
                 const std::string& other) {
  const int ranks = static_cast<int>(calls.size());
  const World world(ranks);
  const auto began = std::chrono::steady_clock::now();
  world.run([&](int rank, gdrxComm_t comm) {
    gdrxResult_t result = gdrxSuccess;
    for (const Call& call : calls[static_cast<std::size_t>(rank)]) {
      Buffers buffers(call, rank, ranks);
      result = make(call, buffers, comm, nullptr);
      if (result != gdrxSuccess) break;
    }
    // Who has not been concerned is told by the communicator.
    for (int i = 0; i < 2000 && result == gdrxSuccess; ++i) {
      gdrxCommGetAsyncError(comm, &result);
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(result, gdrxMismatch) << rank;
    Buffers buffers({Kind::all_reduce, 0, 1, 1, false}, rank, ranks);
    EXPECT_EQ(make({Kind::all_reduce, 0, 1, 1, false}, buffers, comm, nullptr), gdrxMismatch);
    const std::string said = gdrxGetLastError(comm);
    EXPECT_NE(said.find(one), std::string::npos) << rank << ": " << said;
    EXPECT_NE(said.find(other), std::string::npos) << rank << ": " << said;
  });
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
}

TEST(RootedMismatch, OfWhoTakesIsSeenAtOnce) {
  const Call good{Kind::all_reduce, 0, 1, 1, false};
  const Call two{Kind::broadcast, 0, 2, 1, false}, three{Kind::broadcast, 0, 3, 1, false};
  expect_both({{good, two}, {good, three}}, "of 2 uint64", "of 3 uint64");
  const Call reduce{Kind::reduce, 0, 2, 1, false}, gather{Kind::gather, 0, 2, 1, false};
  expect_both({{good, reduce}, {good, gather}}, "reduce #1", "gather #1");
  // One waits for a post that never comes.
  expect_both({{good, gather}, {good, two}}, "gather #1", "broadcast #1");
  expect_both({{good, two}, {good, two}, {good, good}}, "broadcast #1", "allReduce #1");
  // On both sides of what is small.
  const Call large{Kind::broadcast, 0, 100'000, 1, false};
  expect_both({{good, two}, {good, large}}, "of 2 uint64", "of 100000 uint64");
  expect_both({{good, large}, {good, two}}, "of 2 uint64", "of 100000 uint64");
}

// Both give and take nothing: the next call in which one needs the other tells, though it matches.
TEST(RootedMismatch, OfWhoOnlyGivesIsSeenLater) {
  const Call first{Kind::broadcast, 0, 2, 1, false}, second{Kind::broadcast, 1, 2, 1, false};
  const Call scatter{Kind::scatter, 0, 2, 1, false}, gather{Kind::gather, 0, 2, 1, false};
  const Call next{Kind::all_reduce, 0, 1, 1, false}, later{Kind::broadcast, 0, 1, 1, false};
  expect_both({{first, next}, {second, next}}, "broadcast #0 of 2 uint64, root 0",
              "broadcast #0 of 2 uint64, root 1");
  expect_both({{scatter, later, later}, {gather, later, later}}, "scatter #0", "gather #0");
}

// Of whom it is ahead: it gives until its posts are full.
TEST(Rooted, ACallWhoseReadersNeverComeEndsByItsDeadline) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 0.3;
  for (const Kind kind : {Kind::broadcast, Kind::gather}) {
    const World world(2, config);
    world.run([&](int rank, gdrxComm_t comm) {
      const int idle = kind == Kind::broadcast ? 1 : 0;
      if (rank == idle) return;
      gdrxResult_t result = gdrxSuccess;
      int ended = 0;
      for (; ended < 100 && result == gdrxSuccess; ++ended) {
        const Call call{kind, 0, 1, 1, false};
        Buffers buffers(call, rank, 2);
        result = make(call, buffers, comm, nullptr);
      }
      EXPECT_EQ(result, gdrxTimeout);
      EXPECT_GE(ended, 8);
      EXPECT_NE(std::string(gdrxGetLastError(comm)).find("to take what it gave before"),
                std::string::npos)
          << gdrxGetLastError(comm);
    });
  }
}

TEST(Rooted, CallsAreWhatTheLastOperationWas) {
  const World world(3);
  world.run([](int rank, gdrxComm_t comm) {
    for (const Kind kind : {Kind::broadcast, Kind::scatter, Kind::reduce, Kind::gather,
                            Kind::scatter_v, Kind::gather_v}) {
      for (int i = 0; i < 3; ++i) {
        const Call call{kind, 1, 3, 1, false};
        Buffers buffers(call, rank, 3);
        ASSERT_EQ(make(call, buffers, comm, nullptr), gdrxSuccess);
        gdrxOpInfo_t info{};
        info.size = sizeof info;
        ASSERT_EQ(gdrxCommGetLastOp(comm, &info), gdrxSuccess);
        EXPECT_STREQ(info.algorithm, "one-shot");
        EXPECT_STREQ(info.transport, "shm");
        const bool many =
            kind == Kind::broadcast || kind == Kind::scatter || kind == Kind::scatter_v;
        const std::uint64_t root = many ? info.messages_sent : info.messages_received;
        const std::uint64_t none = many ? info.messages_received : info.messages_sent;
        EXPECT_EQ(rank == 1 ? root : none, rank == 1 ? 2U : 1U);
        EXPECT_EQ(rank == 1 ? none : root, 0U);
        EXPECT_EQ(info.messages_sent, info.plan_sends * info.slices);
        EXPECT_EQ(info.messages_received, info.plan_receives * info.slices);
      }
    }
  });
}

}  // namespace
}  // namespace gdrx::test
