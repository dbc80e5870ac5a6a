// SPDX-License-Identifier: Apache-2.0
// Memory runs out on one of the ranks that make a communicator: none of the others waits for it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include "collectives/api/c_init.hpp"
#include "gdrx/gdrx.h"
#include "tests/comm/shortage.hpp"

namespace gdrx::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kRanks = 3;
constexpr int kVictim = 1;
constexpr auto kSoon = 3s;  // and GDRX_INIT_TIMEOUT is more

/// Memory that the ranks share before they have a communicator.
class Page {
 public:
  static Page* create() {
    void* at =
        mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? nullptr : new (at) Page;
  }
  /// An all-gather that allocates nothing. False: somebody does not come.
  bool gather(int rank, const void* mine, void* all, std::size_t bytes) {
    if (bytes > kMost) return false;
    std::memcpy(said_[static_cast<std::size_t>(rank)].data(), mine, bytes);
    if (!meet()) return false;
    for (std::size_t other = 0; other < kRanks; ++other) {
      std::memcpy(static_cast<char*>(all) + other * bytes, said_[other].data(), bytes);
    }
    return meet();
  }

 private:
  static constexpr std::size_t kMost = 64 << 10;
  bool meet() {
    const int round = round_.load();
    if (came_.fetch_add(1) + 1 == kRanks) {
      came_.store(0);
      round_.fetch_add(1);
    }
    for (const auto end = Clock::now() + 10s; round_.load() == round;) {
      if (Clock::now() > end) return false;
      std::this_thread::sleep_for(20us);
    }
    return true;
  }
  std::atomic<int> came_{0};
  std::atomic<int> round_{0};
  std::array<std::array<char, kMost>, kRanks> said_{};
};

/// A rank: it makes communicators by the page's all-gather.
struct Maker {
  Page& page;
  int rank;
  int calls = 0;
  long fails_at = 0;    // which allocation from then on; 0: none
  int fails_after = 0;  // calls
  bool for_good = false;

  static int call(const void* mine, void* all, std::size_t bytes, void* user) {
    auto& self = *static_cast<Maker*>(user);
    const bool done = self.page.gather(self.rank, mine, all, bytes);
    if (++self.calls == self.fails_after) Shortage::begin(self.fails_at, self.for_good);
    return done ? 0 : 1;
  }
  gdrxComm_t make(int after = 0, long allocation = 0) {
    calls = 0;
    if (after == 0) Shortage::begin(allocation, for_good);
    fails_after = after;
    fails_at = allocation;
    gdrxComm_t comm = nullptr;
    gdrxCommInitAllGather(&comm, kRanks, rank, &call, this, nullptr);
    return comm;
  }
  bool any(bool mine) {
    std::array<bool, kRanks> all{};
    page.gather(rank, &mine, all.data(), 1);
    return all[0] || all[1] || all[2];
  }
};

bool is_whole(gdrxComm_t comm) {
  gdrxResult_t failed = gdrxSuccess;
  return comm != nullptr && gdrxCommGetAsyncError(comm, &failed) == gdrxSuccess &&
         failed == gdrxSuccess;
}

/// What each rank does with the communicator that it has. `allocation` fails on the victim; true:
/// it did, or would have.
using Step = std::function<bool(Maker& maker, gdrxComm_t comm, long allocation)>;
/// And what becomes of the one that it has.
enum class Other : std::uint8_t { may_fail, stays };

// Exit status; nobody frees what he shares with others that have failed.
int live(Page& page, int rank, const Step& step, Other other) {
  Maker maker{page, rank};
  gdrxComm_t comm = nullptr;
  bool more = true;
  for (long allocation = 1; more; ++allocation) {
    if (maker.any(!is_whole(comm))) {
      gdrxCommDestroy(comm);
      comm = maker.make();
    }
    if (maker.any(comm == nullptr)) {
      std::fprintf(stderr, "rank %d has %s before allocation %ld: %s\n", rank,
                   comm == nullptr ? "none" : "one", allocation, gdrxGetLastError(nullptr));
      return 2;
    }
    const auto begin = Clock::now();
    const bool came = step(maker, comm, rank == kVictim ? allocation : 0);
    Shortage::begin(0);
    const bool late = Clock::now() - begin > kSoon;
    if (late)
      std::fprintf(stderr, "rank %d waits where allocation %ld fails: %s\n", rank, allocation,
                   gdrxGetLastError(nullptr));
    if (maker.any(late)) return 1;
    const bool fails = other == Other::stays && !is_whole(comm);
    if (fails)
      std::fprintf(stderr, "rank %d loses another where allocation %ld fails: %s\n", rank,
                   allocation, gdrxGetLastError(comm));
    if (maker.any(fails)) return 4;
    more = maker.any(rank == kVictim && came);
  }
  return gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 3;
}

void expect_that_none_waits(const Step& step, Other other = Other::may_fail,
                            const char* transport = "auto") {
  setenv("GDRX_TRANSPORT", transport, 1);
  setenv("GDRX_INIT_TIMEOUT", "8", 1);
  setenv("GDRX_TIMEOUT", "8", 1);
  Page* const page = Page::create();
  ASSERT_NE(page, nullptr);
  std::fflush(nullptr);
  std::array<pid_t, kRanks> ranks{};
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) std::_Exit(live(*page, rank, step, other));
    ranks[static_cast<std::size_t>(rank)] = pid;
  }
  for (const pid_t pid : ranks) {
    int status = -1;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  munmap(page, sizeof(Page));
}

// From the first word of the meeting to the last when they part.
bool live_through_another(Maker& maker, long allocation) {
  gdrxComm_t made = maker.make(0, allocation);
  float data = 1.0F;
  if (made != nullptr) {
    gdrxAllReduce(&data, &data, 1, gdrxFloat32, gdrxSum, made, nullptr, nullptr);
    gdrxCommDestroy(made);
  }
  return allocation > 0 && Shortage::came();
}

TEST(NoMemory, InTheLifeOfACommunicatorEndsNoOther) {
  const Step step = [](Maker& maker, gdrxComm_t, long allocation) {
    return live_through_another(maker, allocation);
  };
  expect_that_none_waits(step, Other::stays);
}

// Not even for words. Those in the all-gather have no deadline.
TEST(NoMemory, ForGoodInTheLifeOfACommunicatorIsToldToTheOthersAndEndsNoOther) {
  const Step step = [](Maker& maker, gdrxComm_t, long allocation) {
    maker.for_good = true;
    const bool came = live_through_another(maker, allocation);
    maker.for_good = false;
    return came;
  };
  expect_that_none_waits(step, Other::stays);
}

// They share a mesh, and meet in one round of two calls.
bool live_behind_the_round(Maker& maker, long allocation) {
  gdrxComm_t made = maker.make(2, allocation);
  const bool came = Shortage::came();
  Shortage::begin(0);
  if (made != nullptr) gdrxCommDestroy(made);
  return came;
}

TEST(NoMemory, BehindTheRoundInWhichRanksMeetIsToldToThem) {
  expect_that_none_waits([](Maker& maker, gdrxComm_t, long allocation) {
    return live_behind_the_round(maker, allocation);
  });
}

// Where they share no memory there is a second round, in which the others would be for ever.
TEST(NoMemory, ForGoodBehindTheFirstOfTwoRoundsIsToldToTheOthers) {
  const Step step = [](Maker& maker, gdrxComm_t, long allocation) {
    maker.for_good = true;
    const bool came = live_behind_the_round(maker, allocation);
    maker.for_good = false;
    return came;
  };
  expect_that_none_waits(step, Other::stays, "tcp");
}

TEST(NoMemory, BetweenTheTwoCallsOfARoundIsWaitedFor) {
  expect_that_none_waits([](Maker& maker, gdrxComm_t, long allocation) {
    gdrxComm_t made = maker.make(1, allocation > 40 ? 0 : allocation);
    const bool came = Shortage::came();
    Shortage::begin(0);
    if (made != nullptr) gdrxCommDestroy(made);
    return came && allocation <= 40;
  });
}

// Each other rank would be in MPI for ever.
TEST(Refused, ByOneOfThoseThatMakeACommunicatorIsToldToTheOthers) {
  expect_that_none_waits([](Maker& maker, gdrxComm_t, long allocation) {
    gdrxComm_t made = nullptr;
    EXPECT_EQ(gdrxCommInitAllGather(allocation > 0 ? nullptr : &made, kRanks, maker.rank,
                                    &Maker::call, &maker, nullptr),
              gdrxInvalidArgument);
    return false;
  });
}

TEST(NoThread, ForOneRankOfAProcessIsSaidAtOnce) {
  for (int refused = 1; refused <= 4; ++refused) {
    std::array<gdrxComm_t, 4> comms{};
    const auto begin = Clock::now();
    refuse_thread(refused);
    EXPECT_EQ(gdrxCommInitAll(comms.data(), 4, nullptr), gdrxSystemError);
    refuse_thread(0);
    EXPECT_STREQ(gdrxGetLastError(nullptr), "no new thread");
    EXPECT_LT(Clock::now() - begin, kSoon);
    EXPECT_EQ(comms, decltype(comms){});
  }
}

TEST(NoMemory, InASplitIsToldToTheOthers) {
  expect_that_none_waits([](Maker& maker, gdrxComm_t comm, long allocation) {
    gdrxComm_t made = nullptr;
    Shortage::begin(allocation);
    gdrxCommSplit(comm, 0, maker.rank, &made, nullptr);
    const bool came = Shortage::came();
    Shortage::begin(0);
    if (made != nullptr) gdrxCommDestroy(made);
    return came;
  });
}

}  // namespace
}  // namespace gdrx::test
