// SPDX-License-Identifier: Apache-2.0
// gdrxCommDestroy: whoever leaves takes nothing with him that the others still need.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
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

// One is killed while the others wait for it to leave.
TEST_P(Leaving, IsEndedByADeath) {
  gdrxConfig_t config = over(GetParam());
  config.timeout_seconds = 60;
  Processes ranks(3, config, [](int rank, gdrxComm_t comm) {
    float value = 1.0F;
    if (gdrxAllReduce(&value, &value, 1, gdrxFloat32, gdrxSum, comm, nullptr, nullptr) !=
        gdrxSuccess) {
      return 1;
    }
    if (rank == 2) {
      std::this_thread::sleep_for(300ms);
      raise(SIGKILL);
    }
    const auto begin = std::chrono::steady_clock::now();
    if (gdrxCommDestroy(comm) != gdrxPeerLost) return 2;
    return std::chrono::steady_clock::now() - begin < 10s ? 0 : 3;
  });
  EXPECT_EQ(ranks.wait(2), -SIGKILL);
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
}

TEST(Leave, WaitsForNobodyLongerThanTheTimeout) {
  gdrxConfig_t config = over("ucx");
  config.timeout_seconds = 1;
  Processes ranks(3, config, [](int rank, gdrxComm_t comm) {
    if (rank == 2) std::this_thread::sleep_for(3s);
    return gdrxCommDestroy(comm) == gdrxTimeout ? 0 : 1;
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
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
