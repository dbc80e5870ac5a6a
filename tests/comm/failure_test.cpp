// SPDX-License-Identifier: Apache-2.0
// Calls that do not match, deadlines, aborts: named on every rank, never a hang.
#include <array>
#include <chrono>
#include <cstdlib>
#include <future>
#include <new>
#include <thread>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

using namespace std::chrono_literals;

struct Arguments {
  std::size_t count = 100;
  gdrxDataType_t type = gdrxFloat32;
  gdrxRedOp_t op = gdrxSum;
};

class Mismatch : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  // Rank 1 differs; every rank must be told, and by a message that names both calls.
  void expect_named(const Arguments& odd, const std::string& word) {
    const auto [algorithm, transport] = GetParam();
    const World world(3, with(algorithm, transport));
    world.run([&](int rank, gdrxComm_t comm) {
      const Arguments mine = rank == 1 ? odd : Arguments{};
      std::vector<double> in(odd.count + 100, 1.0);
      std::vector<double> out(odd.count + 100, 1.0);
      const gdrxResult_t result = gdrxAllReduce(in.data(), out.data(), mine.count, mine.type,
                                                mine.op, comm, nullptr, nullptr);
      EXPECT_EQ(result, gdrxMismatch) << "rank " << rank;
      const std::string text = gdrxGetLastError(comm);
      EXPECT_NE(text.find("rank 1 called"), std::string::npos) << text;
      EXPECT_NE(text.find(word), std::string::npos) << text;
    });
  }
};

TEST_P(Mismatch, OfCountIsNamed) { expect_named({101, gdrxFloat32, gdrxSum}, "101 float"); }
TEST_P(Mismatch, OfALargeCountIsNamed) {
  expect_named({1'000'000, gdrxFloat32, gdrxSum}, "1000000 float");
}
TEST_P(Mismatch, OfZeroAndSomethingIsNamed) {
  expect_named({0, gdrxFloat32, gdrxSum}, "of 0 float");
}
TEST_P(Mismatch, OfTypeIsNamed) { expect_named({100, gdrxInt32, gdrxSum}, "int32"); }
TEST_P(Mismatch, OfOperatorIsNamed) { expect_named({100, gdrxFloat32, gdrxMax}, "max"); }

INSTANTIATE_TEST_SUITE_P(Ways, Mismatch,
                         testing::Values(std::tuple{"auto", "auto"}, std::tuple{"ring", "ucx"},
                                         std::tuple{"tree", "ucx"}, std::tuple{"two-shot", "ucx"},
                                         std::tuple{"ring", "shm"}, std::tuple{"tree", "shm"}));

class Between : public testing::TestWithParam<const char*> {};

TEST_P(Between, CollectivesAMismatchIsNamed) {
  const World world(2, with("auto", GetParam()));
  world.run([](int rank, gdrxComm_t comm) {
    std::vector<float> in(100);
    std::vector<float> out(200);
    const gdrxResult_t result =
        rank == 0 ? gdrxAllReduce(in.data(), out.data(), 100, gdrxFloat32, gdrxSum, comm, nullptr,
                                  nullptr)
                  : gdrxAllGather(in.data(), out.data(), 100, gdrxFloat32, comm, nullptr, nullptr);
    EXPECT_EQ(result, gdrxMismatch);
    EXPECT_NE(std::string(gdrxGetLastError(comm)).find("allGather"), std::string::npos);
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, Between, testing::Values("shm", "ucx"));

TEST(Mismatch, OfRootIsNamedByTheNextCallAtTheLatest) {
  const World world(2);
  world.run([](int rank, gdrxComm_t comm) {
    std::vector<float> data(100, static_cast<float>(rank));
    gdrxResult_t result =
        gdrxBroadcast(data.data(), data.data(), 100, gdrxFloat32, rank, comm, nullptr, nullptr);
    if (result == gdrxSuccess) result = gdrxBarrier(comm, nullptr, nullptr);
    EXPECT_EQ(result, gdrxMismatch) << gdrxGetLastError(comm);
  });
}

// A root that has gone on is a call ahead: both name the call at which they parted.
TEST(Mismatch, OfABroadcastAndABarrierIsNamedOnBothWhoeverIsAhead) {
  for (int round = 0; round < 20; ++round) {
    const World world(2);
    world.run([round](int rank, gdrxComm_t comm) {
      std::vector<float> data(4);
      for (int i = 0; i < 3; ++i) ASSERT_EQ(gdrxBarrier(comm, nullptr, nullptr), gdrxSuccess);
      if (rank == 1) std::this_thread::sleep_for(std::chrono::microseconds(round * 50));
      gdrxResult_t result = gdrxSuccess;
      if (rank == 0) {
        result = gdrxBroadcast(data.data(), data.data(), 4, gdrxFloat32, 0, comm, nullptr, nullptr);
      }
      if (result == gdrxSuccess) result = gdrxBarrier(comm, nullptr, nullptr);
      EXPECT_EQ(result, gdrxMismatch);
      const std::string said = gdrxGetLastError(comm);
      EXPECT_NE(said.find("broadcast #3"), std::string::npos) << said;
      EXPECT_NE(said.find("barrier #3"), std::string::npos) << said;
    });
  }
}

class Waiting : public testing::TestWithParam<const char*> {};

TEST_P(Waiting, EndsAtTheDeadlineAndNamesWhomItWaitedFor) {
  gdrxConfig_t config = with("auto", GetParam());
  config.timeout_seconds = 0.5;
  const World world(2, config);
  std::vector<float> data(100);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(gdrxAllReduce(data.data(), data.data(), 100, gdrxFloat32, gdrxSum, world[0], nullptr,
                          nullptr),
            gdrxTimeout);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
  const std::string text = gdrxGetLastError(world[0]);
  EXPECT_NE(text.find("1"), std::string::npos) << text;
  EXPECT_NE(text.find("GDRX_TIMEOUT"), std::string::npos) << text;
}

TEST_P(Waiting, EndsWhenAnotherRankAborts) {
  const World world(3, with("auto", GetParam()));
  world.run([](int rank, gdrxComm_t comm) {
    std::vector<float> data(100);
    if (rank == 2) {
      std::this_thread::sleep_for(100ms);
      EXPECT_EQ(gdrxCommAbort(comm), gdrxSuccess);
      return;
    }
    EXPECT_EQ(
        gdrxAllReduce(data.data(), data.data(), 100, gdrxFloat32, gdrxSum, comm, nullptr, nullptr),
        gdrxAborted);
    EXPECT_NE(std::string(gdrxGetLastError(comm)).find("rank 2 aborted"), std::string::npos);
    gdrxResult_t state = gdrxSuccess;
    EXPECT_EQ(gdrxCommGetAsyncError(comm, &state), gdrxSuccess);
    EXPECT_EQ(state, gdrxAborted);
    EXPECT_EQ(gdrxBarrier(comm, nullptr, nullptr), gdrxAborted) << "a failed one stays failed";
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, Waiting, testing::Values("auto", "ucx"));

TEST(ErrorHandler, IsCalledOnceOnEveryRank) {
  std::atomic<int> calls{0};
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.on_error = [](gdrxResult_t result, const char*, void* user) {
    EXPECT_EQ(result, gdrxAborted);
    static_cast<std::atomic<int>*>(user)->fetch_add(1);
  };
  config.on_error_user = &calls;
  {
    const World world(3, config);
    EXPECT_EQ(gdrxCommAbort(world[1]), gdrxSuccess);
    for (int i = 0; i < 500 && calls.load() < 3; ++i) std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(calls.load(), 3);
}

// What a handler saw.
struct Seen {
  std::atomic<int> calls{0};
  std::atomic<bool> on_a_callers_thread{false};
  std::thread::id waits;  // the only thread of the test that is in gdrx
};

// It is within gdrxWait that rank 0 finds its deadline passed.
TEST(ErrorHandler, RunsOnAThreadOfTheCommunicatorEvenIfACallFindsTheFailure) {
  Seen seen;
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 0.3;
  config.on_error = [](gdrxResult_t, const char*, void* user) {
    auto& self = *static_cast<Seen*>(user);
    if (std::this_thread::get_id() == self.waits) self.on_a_callers_thread = true;
    self.calls.fetch_add(1);
  };
  config.on_error_user = &seen;
  seen.waits = std::this_thread::get_id();
  {
    const World world(2, config);
    float value = 1.0F;
    gdrxRequest_t request = nullptr;
    ASSERT_EQ(gdrxAllReduce(&value, &value, 1, gdrxFloat32, gdrxSum, world[0], nullptr, &request),
              gdrxSuccess);
    EXPECT_EQ(gdrxWait(&request), gdrxTimeout);
    for (int i = 0; i < 500 && seen.calls.load() < 2; ++i) std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(seen.calls.load(), 2);
  EXPECT_FALSE(seen.on_a_callers_thread.load());
}

// gdrxWait does not return while the handler sleeps, or it does; gdrxCommDescribe takes the lock
// that gdrxWait holds while it waits.
TEST(ErrorHandler, RunsWithoutALock) {
  static std::atomic<gdrxComm_t> known{nullptr};
  static std::atomic<int> described{0};
  known = nullptr;
  described = 0;
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 0.3;
  config.on_error = [](gdrxResult_t, const char*, void*) {
    std::array<char, 64> text{};
    if (gdrxCommDescribe(known, text.data(), text.size()) == gdrxSuccess) described.fetch_add(1);
  };
  const World world(2, config);
  known = world[0];
  float value = 1.0F;
  EXPECT_EQ(gdrxAllReduce(&value, &value, 1, gdrxFloat32, gdrxSum, world[0], nullptr, nullptr),
            gdrxTimeout);
  for (int i = 0; i < 500 && described.load() < 2; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(described.load(), 2);
}

TEST(ErrorHandler, CannotDestroyItsCommunicator) {
  static std::atomic<gdrxComm_t> known{nullptr};
  static std::atomic<int> refused{0};
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.on_error = [](gdrxResult_t, const char*, void*) {
    if (gdrxCommDestroy(known) == gdrxInvalidArgument) refused.fetch_add(1);
  };
  gdrxUniqueId id{};
  ASSERT_EQ(gdrxGetUniqueId(&id), gdrxSuccess);
  gdrxComm_t comm = nullptr;
  ASSERT_EQ(gdrxCommInitRank(&comm, 1, id, 0, &config), gdrxSuccess);
  known = comm;
  ASSERT_EQ(gdrxCommAbort(comm), gdrxSuccess);
  EXPECT_EQ(gdrxCommDestroy(comm), gdrxAborted);
  EXPECT_EQ(refused.load(), 1);
}

// The exception of a handler in C++, or of what copies the error for it when there is no memory.
TEST(ErrorHandler, ThatThrowsDoesNotKeepItsCommunicatorFromEnding) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.on_error = [](gdrxResult_t, const char*, void*) { throw std::bad_alloc(); };
  gdrxUniqueId id{};
  ASSERT_EQ(gdrxGetUniqueId(&id), gdrxSuccess);
  gdrxComm_t comm = nullptr;
  ASSERT_EQ(gdrxCommInitRank(&comm, 1, id, 0, &config), gdrxSuccess);
  ASSERT_EQ(gdrxCommAbort(comm), gdrxSuccess);
  auto destroyed = std::async(std::launch::async, [&] { return gdrxCommDestroy(comm); });
  ASSERT_EQ(destroyed.wait_for(20s), std::future_status::ready) << (std::abort(), "it hangs");
  EXPECT_EQ(destroyed.get(), gdrxAborted);
}

TEST(ErrorHandler, IsCalledBeforeDestroyReturns) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> calls{0};
    gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
    config.on_error = [](gdrxResult_t, const char*, void* user) {
      static_cast<std::atomic<int>*>(user)->fetch_add(1);
    };
    config.on_error_user = &calls;
    gdrxUniqueId id{};
    ASSERT_EQ(gdrxGetUniqueId(&id), gdrxSuccess);
    gdrxComm_t comm = nullptr;
    ASSERT_EQ(gdrxCommInitRank(&comm, 1, id, 0, &config), gdrxSuccess);
    ASSERT_EQ(gdrxCommAbort(comm), gdrxSuccess);
    EXPECT_EQ(gdrxCommDestroy(comm), gdrxAborted);
    EXPECT_EQ(calls.load(), 1);
  }
}

// They have one thread, so that the second handler runs in the first, whichever that is: whose
// communicator is not gone before it returns. Until then it has the other, which nobody else may
// destroy.
TEST(ErrorHandler, ThatDestroysAnotherWhoseHandlerDestroysThisOneReturns) {
  static std::array<std::atomic<gdrxComm_t>, 2> comms;
  static std::atomic<int> refused{0};
  static std::atomic<int> ended{0};
  static std::atomic<bool> may_go{false};
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.on_error = [](gdrxResult_t, const char*, void* user) {
    while (!may_go) std::this_thread::sleep_for(1ms);
    std::atomic<gdrxComm_t>& other = *static_cast<std::atomic<gdrxComm_t>*>(user);
    if (gdrxCommDestroy(other) == gdrxInvalidArgument) {
      refused.fetch_add(1);
    } else {
      other = nullptr;
    }
    ++ended;
  };
  gdrxUniqueId id{};
  std::array<gdrxComm_t, 2> made{};
  ASSERT_EQ(gdrxGetUniqueId(&id), gdrxSuccess);
  config.on_error_user = &comms[1];
  ASSERT_EQ(gdrxCommInitRank(made.data(), 1, id, 0, &config), gdrxSuccess);
  config.on_error_user = &comms[0];
  ASSERT_EQ(gdrxCommSplit(made[0], 0, 0, &made[1], &config), gdrxSuccess);
  auto done = std::async(std::launch::async, [&] {
    for (std::size_t i = 0; i < 2; ++i) comms[i] = made[i];
    for (gdrxComm_t comm : made) gdrxCommAbort(comm);
    may_go = true;
    while (ended < 2) std::this_thread::sleep_for(1ms);
  });
  ASSERT_EQ(done.wait_for(20s), std::future_status::ready) << (std::abort(), "it hangs");
  EXPECT_EQ(refused, 1);
  for (auto& comm : comms) gdrxCommDestroy(comm);
}

struct Opposite {
  static inline std::array<std::atomic<gdrxComm_t>, 2> comms;
  static inline std::array<std::thread::id, 2> threads;
  static inline std::atomic<int> inside{0}, refused{0}, done{0};

  static void destroy_other(gdrxResult_t, const char*, void* user) {
    const std::size_t self = *static_cast<const std::size_t*>(user);
    threads[self] = std::this_thread::get_id();
    ++inside;
    while (inside < 2) std::this_thread::sleep_for(1ms);
    if (gdrxCommDestroy(comms[1 - self]) == gdrxInvalidArgument) {
      ++refused;
    } else {
      comms[1 - self] = nullptr;
    }
    ++done;
  }
};

// As there, but they are set differently, so that each has a thread of its own: of the two that
// would wait for each other the later one is refused.
TEST(ErrorHandler, ThatDestroysAnotherWhoseHandlerDestroysThisOneOnItsThreadReturns) {
  static constexpr std::array<std::size_t, 2> kSelves{0, 1};
  for (const std::size_t& self : kSelves) {
    gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
    config.on_error = Opposite::destroy_other;
    config.on_error_user = const_cast<std::size_t*>(&self);
    gdrxUniqueId id{};
    ASSERT_EQ(gdrxGetUniqueId(&id), gdrxSuccess);
    gdrxComm_t comm = nullptr;
    setenv("GDRX_HEARTBEAT", self == 0 ? "901" : "902", 1);
    ASSERT_EQ(gdrxCommInitRank(&comm, 1, id, 0, &config), gdrxSuccess);
    unsetenv("GDRX_HEARTBEAT");
    Opposite::comms[self] = comm;
  }
  for (auto& comm : Opposite::comms) ASSERT_EQ(gdrxCommAbort(comm), gdrxSuccess);
  for (int i = 0; i < 2000 && Opposite::done < 2; ++i) std::this_thread::sleep_for(10ms);
  ASSERT_EQ(Opposite::done, 2) << (std::abort(), "they wait for each other");
  EXPECT_NE(Opposite::threads[0], Opposite::threads[1]);
  EXPECT_EQ(Opposite::refused, 1);
  for (auto& comm : Opposite::comms) gdrxCommDestroy(comm);
}

TEST(LastError, OfACommunicatorThatFailedByItselfIsWhy) {
  const World world(2);
  EXPECT_STREQ(gdrxGetLastError(world[1]), "");
  EXPECT_EQ(gdrxBroadcast(nullptr, nullptr, 1, gdrxFloat32, 9, world[1], nullptr, nullptr),
            gdrxInvalidArgument);  // an older one
  ASSERT_EQ(gdrxCommAbort(world[0]), gdrxSuccess);
  gdrxResult_t state = gdrxSuccess;
  for (int i = 0; i < 500 && state == gdrxSuccess; ++i) {
    std::this_thread::sleep_for(10ms);
    ASSERT_EQ(gdrxCommGetAsyncError(world[1], &state), gdrxSuccess);
  }
  EXPECT_EQ(state, gdrxAborted);
  EXPECT_NE(std::string(gdrxGetLastError(world[1])).find("rank 0 aborted"), std::string::npos)
      << gdrxGetLastError(world[1]);
  EXPECT_EQ(gdrxBroadcast(nullptr, nullptr, 1, gdrxFloat32, 9, world[1], nullptr, nullptr),
            gdrxInvalidArgument);
  EXPECT_NE(std::string(gdrxGetLastError(world[1])).find("root 9"), std::string::npos)
      << "a later one";
}

}  // namespace
}  // namespace gdrx::test
