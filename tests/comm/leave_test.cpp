// SPDX-License-Identifier: Apache-2.0
// gdrxCommDestroy: whoever leaves takes nothing with him that the others still need.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/comm/processes.hpp"

namespace gdrx::test {
namespace {

using namespace std::chrono_literals;

class Leaving : public testing::TestWithParam<const char*> {};

gdrxConfig_t over(const char* transport) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.transport = transport;
  config.timeout_seconds = 20;
  return config;
}

TEST_P(Leaving, LosesNothingOfWhatThePeersHaveNotYetTaken) {
  Processes ranks(3, over(GetParam()), [](int rank, gdrxComm_t comm) {
    std::vector<float> data(300'000, rank == 0 ? 3.0F : 0.0F);
    if (rank > 0) std::this_thread::sleep_for(rank * 300ms);
    for (const std::size_t count : {std::size_t{1}, data.size()}) {
      if (gdrxBroadcast(data.data(), data.data(), count, gdrxFloat32, 0, comm, nullptr, nullptr) !=
          gdrxSuccess) {
        std::fprintf(stderr, "rank %d: %s\n", rank, gdrxGetLastError(comm));
        return 1;
      }
    }
    if (std::count(data.begin(), data.end(), 3.0F) != static_cast<int>(data.size())) return 2;
    return gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 3;
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
}

// 0 and 1 are done with each other while 2 and 1 go on.
TEST_P(Leaving, IsNoDeathToThoseThatGoOn) {
  Processes ranks(3, over(GetParam()), [](int rank, gdrxComm_t comm) {
    float value = static_cast<float>(rank);
    gdrxResult_t result =
        gdrxAllReduce(&value, &value, 1, gdrxFloat32, gdrxSum, comm, nullptr, nullptr);
    if (rank == 2) std::this_thread::sleep_for(2s);
    if (rank == 1 && result == gdrxSuccess) {
      result = gdrxRecv(&value, 1, gdrxFloat32, 2, comm, nullptr, nullptr);
    } else if (rank == 2 && result == gdrxSuccess) {
      result = gdrxSend(&value, 1, gdrxFloat32, 1, comm, nullptr, nullptr);
    }
    if (result != gdrxSuccess) {
      std::fprintf(stderr, "rank %d: %s\n", rank, gdrxGetLastError(comm));
      return 1;
    }
    return gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 3;
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
}

INSTANTIATE_TEST_SUITE_P(Transports, Leaving, testing::Values("shm", "ucx", "tcp"));

/// A second communicator of the same ranks.
gdrxComm_t another(gdrxComm_t comm) {
  gdrxComm_t made = nullptr;
  if (gdrxCommSplit(comm, 0, 0, &made, nullptr) != gdrxSuccess) return nullptr;
  return made;
}

gdrxResult_t sum(gdrxComm_t comm) {
  float value = 1.0F;
  return gdrxAllReduce(&value, &value, 1, gdrxFloat32, gdrxSum, comm, nullptr, nullptr);
}

// Each waits for nobody, so that it comes to the communicator that the other destroys first.
TEST_P(Leaving, OfTwoCommunicatorsInOppositeOrdersNeverHangs) {
  gdrxConfig_t config = over(GetParam());
  config.timeout_seconds = 60;
  Processes ranks(2, config, [](int rank, gdrxComm_t comm) {
    gdrxComm_t other = another(comm);
    if (other == nullptr || sum(comm) != gdrxSuccess || sum(other) != gdrxSuccess) return 1;
    const auto begin = std::chrono::steady_clock::now();
    if (gdrxCommDestroy(rank == 0 ? comm : other) != gdrxSuccess) return 2;
    if (gdrxCommDestroy(rank == 0 ? other : comm) != gdrxSuccess) return 3;
    return std::chrono::steady_clock::now() - begin < 20s ? 0 : 4;
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
}

// The others have destroyed theirs, and end their process at once.
TEST_P(Leaving, OfProcessesThatEndGivesALateOneItsData) {
  Processes ranks(3, over(GetParam()), [](int rank, gdrxComm_t comm) {
    std::vector<float> data(1000, rank == 0 ? 3.0F : 0.0F);
    if (sum(comm) != gdrxSuccess) return 1;
    if (rank == 1) std::this_thread::sleep_for(1500ms);
    for (const std::size_t count : {data.size(), std::size_t{1}}) {
      gdrxRequest_t request = nullptr;
      if (rank == 2) break;
      const gdrxResult_t posted =
          rank == 0 ? gdrxSend(data.data(), count, gdrxFloat32, 1, comm, nullptr, &request)
                    : gdrxRecv(data.data(), count, gdrxFloat32, 0, comm, nullptr, &request);
      if (posted != gdrxSuccess || gdrxWait(&request) != gdrxSuccess) {
        std::fprintf(stderr, "rank %d: %s\n", rank, gdrxGetLastError(comm));
        return 2;
      }
    }
    if (rank == 1 && std::count(data.begin(), data.end(), 3.0F) != 1000) return 3;
    return gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 4;
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
}

// The end of the process waits for it no longer than until that is known.
TEST_P(Leaving, IsEndedByADeath) {
  gdrxConfig_t config = over(GetParam());
  config.timeout_seconds = 60;
  const auto begin = std::chrono::steady_clock::now();
  Processes ranks(3, config, [](int rank, gdrxComm_t comm) {
    if (sum(comm) != gdrxSuccess) return 1;
    if (rank == 2) {
      std::this_thread::sleep_for(3s);
      raise(SIGKILL);
    }
    return gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 2;
  });
  EXPECT_EQ(ranks.wait(2), -SIGKILL);
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

// Destroying has no wait; the end of the process has one, of the timeout at most, and whoever comes
// later hears that he was given up.
TEST(Leave, WaitsForNobodyLongerThanTheTimeout) {
  gdrxConfig_t config = over("ucx");
  config.timeout_seconds = 4;
  Processes ranks(3, config, [](int rank, gdrxComm_t comm) {
    if (rank == 2) std::this_thread::sleep_for(9s);
    const auto begin = std::chrono::steady_clock::now();
    if (gdrxCommDestroy(comm) != (rank == 2 ? gdrxTimeout : gdrxSuccess)) return 1;
    return std::chrono::steady_clock::now() - begin < 3s ? 0 : 2;
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
}

// A communicator that another rank still needs has a thread, which a child of fork() has not.
TEST(Leave, IsTheParentsAffairInAChildOfFork) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer has no room for threads of a child of a process with threads";
#endif
  gdrxConfig_t config = over("shm");
  config.timeout_seconds = 60;
  Processes ranks(2, config, [](int rank, gdrxComm_t comm) {
    if (sum(comm) != gdrxSuccess) return 1;
    if (rank == 1) {
      std::this_thread::sleep_for(3s);
      return gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 2;
    }
    if (gdrxCommDestroy(comm) != gdrxSuccess) return 3;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      const auto begin = std::chrono::steady_clock::now();
      gdrxComm_t own = nullptr;  // its own communicators are seen to
      gdrxUniqueId id{};
      if (gdrxGetUniqueId(&id) != gdrxSuccess) _exit(1);
      if (gdrxCommInitRank(&own, 1, id, 0, nullptr) != gdrxSuccess) _exit(2);
      if (sum(own) != gdrxSuccess || gdrxCommDestroy(own) != gdrxSuccess) _exit(3);
      if (std::chrono::steady_clock::now() - begin > 2s) _exit(4);
      std::exit(0);
    }
    int status = 0;
    const auto begin = std::chrono::steady_clock::now();
    if (waitpid(child, &status, 0) != child || status != 0) return 10 + WEXITSTATUS(status);
    return std::chrono::steady_clock::now() - begin < 20s ? 0 : 4;
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
}

// What the program registered is its own again, and no handler of its is called.
TEST_P(Leaving, LeavesNothingOfTheProgramsBehind) {
  static std::atomic<bool> gone{false};
  static std::atomic<int> told{0};
  gdrxConfig_t config = over(GetParam());
  config.timeout_seconds = 60;
  config.on_error = [](gdrxResult_t, const char*, void*) {
    if (gone) ++told;
  };
  Processes ranks(2, config, [](int rank, gdrxComm_t comm) {
    const std::size_t bytes = 1 << 20;
    void* const memory = std::aligned_alloc(4096, bytes);
    gdrxRegistration_t handle = nullptr;
    if (gdrxRegister(comm, memory, bytes, &handle) != gdrxSuccess) return 1;
    std::memset(memory, 0, bytes);
    if (gdrxBroadcast(memory, memory, bytes, gdrxUint8, 0, comm, nullptr, nullptr) != gdrxSuccess) {
      return 2;
    }
    if (rank == 1) {
      std::this_thread::sleep_for(1500ms);
      raise(SIGKILL);
    }
    const gdrxResult_t ended = gdrxCommDestroy(comm);
    gone = true;
    std::free(memory);
    std::this_thread::sleep_for(3s);
    return ended == gdrxSuccess && told == 0 ? 0 : 3;
  });
  EXPECT_EQ(ranks.wait(0), 0);
}

// Rank 1 dies after it, rank 0 destroys much later: neither is missed.
TEST_P(Leaving, AfterFinalizeNobodyIsNeeded) {
  Processes ranks(3, over(GetParam()), [](int rank, gdrxComm_t comm) {
    std::vector<float> data(300'000, 1.0F);
    if (gdrxAllReduce(data.data(), data.data(), data.size(), gdrxFloat32, gdrxSum, comm, nullptr,
                      nullptr) != gdrxSuccess) {
      return 1;
    }
    if (rank == 2) std::this_thread::sleep_for(500ms);
    if (gdrxCommFinalize(comm, nullptr) != gdrxSuccess) return 2;
    if (rank == 1) raise(SIGKILL);
    if (rank == 0) std::this_thread::sleep_for(2s);
    const auto begin = std::chrono::steady_clock::now();
    if (gdrxCommDestroy(comm) != gdrxSuccess) return 3;
    return std::chrono::steady_clock::now() - begin < 1s ? 0 : 4;
  });
  EXPECT_EQ(ranks.wait(1), -SIGKILL);
  for (const int rank : {0, 2}) EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
}

TEST_P(Leaving, MayBeTestedWhileOthersAreLate) {
  Processes ranks(2, over(GetParam()), [](int rank, gdrxComm_t comm) {
    gdrxRequest_t barrier = nullptr;
    gdrxRequest_t end = nullptr;
    if (rank == 1) std::this_thread::sleep_for(1s);
    const auto begin = std::chrono::steady_clock::now();
    if (gdrxBarrier(comm, nullptr, &barrier) != gdrxSuccess) return 1;
    if (gdrxCommFinalize(comm, &end) != gdrxSuccess) return 2;
    if (std::chrono::steady_clock::now() - begin > 500ms) return 3;  // it waits for nobody
    if (gdrxBarrier(comm, nullptr, nullptr) != gdrxInvalidArgument) return 4;
    if (gdrxCommFinalize(comm, nullptr) != gdrxInvalidArgument) return 5;
    if (rank == 0 && gdrxTest(&end) != gdrxInProgress) return 6;
    if (gdrxWait(&end) != gdrxSuccess) return 7;
    if (gdrxTest(&barrier) != gdrxSuccess) return 8;  // it was before the end
    return gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 9;
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
}

TEST(Finalize, OfARankThatNeverComesIsATimeoutAndThenNobodyIsWaitedFor) {
  gdrxConfig_t config = over("shm");
  config.timeout_seconds = 1;
  Processes ranks(2, config, [](int rank, gdrxComm_t comm) {
    if (rank == 1) {
      std::this_thread::sleep_for(4s);
      gdrxCommDestroy(comm);
      return 0;
    }
    if (gdrxCommFinalize(comm, nullptr) != gdrxTimeout) return 1;
    const auto begin = std::chrono::steady_clock::now();
    if (gdrxCommDestroy(comm) != gdrxSuccess) return 2;
    return std::chrono::steady_clock::now() - begin < 800ms ? 0 : 3;
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
}

TEST(Finalize, IsEndedByAnAbort) {
  std::array<gdrxComm_t, 2> comms{};
  ASSERT_EQ(gdrxCommInitAll(comms.data(), 2, nullptr), gdrxSuccess);
  gdrxRequest_t end = nullptr;
  ASSERT_EQ(gdrxCommFinalize(comms[0], &end), gdrxSuccess);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(gdrxTest(&end), gdrxInProgress);
  ASSERT_EQ(gdrxCommAbort(comms[0]), gdrxSuccess);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(gdrxWait(&end), gdrxAborted);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  for (gdrxComm_t comm : comms) EXPECT_EQ(gdrxCommDestroy(comm), gdrxAborted);
}

// One thread for all ranks; one request is heard of by a handler, one is left to the destruction.
TEST(Finalize, OfSeveralRanksOfAThreadIsByRequests) {
  std::array<gdrxComm_t, 3> comms{};
  ASSERT_EQ(gdrxCommInitAll(comms.data(), 3, nullptr), gdrxSuccess);
  std::array<gdrxRequest_t, 3> ends{};
  std::atomic<int> told{0};
  for (std::size_t rank = 0; rank < 3; ++rank) {
    ASSERT_EQ(gdrxCommFinalize(comms[rank], &ends[rank]), gdrxSuccess);
    if (rank > 0) continue;
    ASSERT_EQ(gdrxRequestOnDone(
                  ends[0],
                  [](gdrxRequest_t, gdrxResult_t result, const char*, void* user) {
                    *static_cast<std::atomic<int>*>(user) = result == gdrxSuccess ? 1 : 2;
                  },
                  &told),
              gdrxSuccess);
  }
  EXPECT_EQ(gdrxWait(ends.data()), gdrxSuccess);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(gdrxWait(&ends[1]), gdrxSuccess);
  for (gdrxComm_t comm : comms) EXPECT_EQ(gdrxCommDestroy(comm), gdrxSuccess);
  EXPECT_EQ(gdrxTest(&ends[2]), gdrxSuccess);
}

}  // namespace
}  // namespace gdrx::test
