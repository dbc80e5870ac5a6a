// SPDX-License-Identifier: Apache-2.0
// Communicators that are split from another share its connections and its thread, and nothing that
// happens to one of them.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/comm/entries.hpp"
#include "tests/comm/processes.hpp"

namespace gdrx::test {
namespace {

using namespace std::chrono_literals;

gdrxConfig_t patient() {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 60;
  return config;
}

void expect_all_well(Processes& processes, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(processes.wait(rank), 0) << "rank " << rank;
}

gdrxComm_t split_of(gdrxComm_t comm, int color, int key) {
  gdrxComm_t made = nullptr;
  if (gdrxCommSplit(comm, color, key, &made, nullptr) == gdrxSuccess) return made;
  std::fprintf(stderr, "split: %s\n", gdrxGetLastError(comm));
  return nullptr;
}

bool sums(gdrxComm_t comm, int ranks) {
  float value = 1.0F;
  return gdrxAllReduce(&value, &value, 1, gdrxFloat32, gdrxSum, comm, nullptr, nullptr) ==
             gdrxSuccess &&
         value == static_cast<float>(ranks);
}

gdrxAsyncErrorInfo_t error_of(gdrxComm_t comm) {
  gdrxAsyncErrorInfo_t info{};
  info.size = sizeof info;
  gdrxCommGetAsyncErrorInfo(comm, &info);
  return info;
}

bool dies_by(gdrxComm_t comm, gdrxResult_t why, std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (error_of(comm).result == gdrxSuccess && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(5ms);
  }
  return error_of(comm).result == why;
}

TEST(Sharing, MakesNoDescriptorNoConnectionAndNoThread) {
  Processes processes(4, patient(), [](int rank, gdrxComm_t comm) {
    if (!sums(comm, 4)) return 1;
    std::this_thread::sleep_for(100ms);  // what made the first has ended
    const int sockets = entries_of("/proc/self/fd", "socket:");
    const int threads = entries_of("/proc/self/task");
    const int descriptors = entries_of("/proc/self/fd");
    std::vector<gdrxComm_t> many;
    for (int i = 0; i < 64; ++i) {
      many.push_back(i % 2 == 0 ? split_of(comm, 0, -rank) : split_of(comm, rank / 2, rank));
      if (many.back() == nullptr || !sums(many.back(), i % 2 == 0 ? 4 : 2)) return 2;
    }
    if (entries_of("/proc/self/fd", "socket:") != sockets) return 3;
    if (entries_of("/proc/self/task") != threads) return 4;
    if (entries_of("/proc/self/fd") != descriptors) return 7;
    for (gdrxComm_t one : many) {
      if (gdrxCommDestroy(one) != gdrxSuccess) return 5;
    }
    return sums(comm, 4) && gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 6;
  });
  expect_all_well(processes, 4);
}

// At distance 3 of 8 there is no connection between two ranks: they make one.
TEST(Sharing, OfRanksThatNoConnectionsJoinMakesThem) {
  Processes processes(8, patient(), [](int rank, gdrxComm_t comm) {
    const bool apart = rank == 0 || rank == 3;
    gdrxComm_t made = split_of(comm, apart ? 1 : 2, 0);
    if (made == nullptr || !sums(made, apart ? 2 : 6)) return 1;
    if (gdrxCommDestroy(made) != gdrxSuccess) return 2;
    return sums(comm, 8) && gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 3;
  });
  expect_all_well(processes, 8);
}

// 0 and 3 have a connection by way of 1 alone. When that dies they still find each other.
int outlive_the_joint(int rank, gdrxComm_t comm) {
  const bool three = rank == 0 || rank == 1 || rank == 3;
  gdrxComm_t made = split_of(comm, three ? 1 : 2, 0);
  if (made == nullptr || !sums(made, three ? 3 : 5)) return 1;
  if (!sums(comm, 8)) return 2;
  std::this_thread::sleep_for(200ms);  // all have their sums
  if (rank == 1) raise(SIGKILL);
  if (three) {
    if (!dies_by(made, gdrxPeerLost, 1000ms)) return 3;
    const int gone = 1;
    gdrxComm_t rest = nullptr;
    const auto begin = std::chrono::steady_clock::now();
    if (gdrxCommShrink(made, &gone, 1, &rest, nullptr) != gdrxSuccess || !sums(rest, 2)) return 4;
    if (std::chrono::steady_clock::now() - begin > 10s) return 5;
    gdrxCommDestroy(rest);
  }
  gdrxCommDestroy(made);
  gdrxCommDestroy(comm);
  return 0;
}

TEST(Sharing, OfRanksThatOneAloneJoinsIsNone) {
  Processes processes(8, patient(), outlive_the_joint);
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(processes.wait(rank), rank == 1 ? -SIGKILL : 0) << "rank " << rank;
  }
}

// The even ranks backwards: 2 is their rank 1.
int outlive_two(int rank, gdrxComm_t comm) {
  gdrxComm_t half = split_of(comm, rank % 2, -rank);
  gdrxComm_t again = half == nullptr ? nullptr : split_of(half, 0, rank);
  if (again == nullptr || !sums(again, rank % 2 == 0 ? 3 : 2)) return 1;
  if (!sums(comm, 5)) return 2;
  std::this_thread::sleep_for(200ms);  // all have their sums
  if (rank == 2) raise(SIGKILL);
  if (!dies_by(comm, gdrxPeerLost, 1000ms) || error_of(comm).subject != 2) return 3;
  if (rank % 2 == 1) {
    std::this_thread::sleep_for(300ms);
    for (int i = 0; i < 100; ++i) {
      if (!sums(half, 2) || !sums(again, 2)) return 4;
    }
  } else {
    if (!dies_by(half, gdrxPeerLost, 1000ms) || error_of(half).subject != 1) return 5;
    if (!dies_by(again, gdrxPeerLost, 1000ms) || error_of(again).subject != 1) return 6;
    const int gone = 1;
    gdrxComm_t rest = nullptr;
    if (gdrxCommShrink(again, &gone, 1, &rest, nullptr) != gdrxSuccess || !sums(rest, 2)) return 7;
    gdrxCommDestroy(rest);
  }
  gdrxCommDestroy(comm);
  gdrxCommDestroy(half);
  gdrxCommDestroy(again);
  return 0;
}

TEST(Sharing, NamesADeathInEachThatHasTheRankAndNoOther) {
  Processes processes(5, patient(), outlive_two);
  for (int rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(processes.wait(rank), rank == 2 ? -SIGKILL : 0) << "rank " << rank;
  }
}

TEST(Sharing, OfOneThatIsAbortedLeavesTheOthersAlone) {
  Processes processes(4, patient(), [](int rank, gdrxComm_t comm) {
    gdrxComm_t one = split_of(comm, 0, 0);
    gdrxComm_t other = split_of(comm, 0, -rank);
    if (rank == 1) gdrxCommAbort(one);
    if (!dies_by(one, gdrxAborted, 2000ms)) return 1;
    std::this_thread::sleep_for(100ms);
    if (!sums(comm, 4) || !sums(other, 4)) return 2;
    if (rank == 3) gdrxCommAbort(comm);
    if (!dies_by(comm, gdrxAborted, 2000ms)) return 3;
    for (int i = 0; i < 100; ++i) {
      if (!sums(other, 4)) return 4;
    }
    gdrxCommDestroy(comm);
    gdrxCommDestroy(one);
    return sums(other, 4) && gdrxCommDestroy(other) == gdrxSuccess ? 0 : 5;
  });
  expect_all_well(processes, 4);
}

// Those of the other half have no more of it than a connection, which ends with their process.
TEST(Sharing, GoesOnWhenTheFirstAndOthersOfItsRanksAreGone) {
  Processes processes(4, patient(), [](int rank, gdrxComm_t comm) {
    gdrxComm_t half = split_of(comm, rank / 2, rank);
    if (half == nullptr || gdrxCommDestroy(comm) != gdrxSuccess) return 1;
    if (rank >= 2) return gdrxCommDestroy(half) == gdrxSuccess ? 0 : 2;
    std::this_thread::sleep_for(500ms);
    gdrxComm_t again = split_of(half, 0, -rank);
    if (again == nullptr || !sums(again, 2) || !sums(half, 2)) return 3;
    if (gdrxCommDestroy(rank == 0 ? half : again) != gdrxSuccess) return 4;
    return gdrxCommDestroy(rank == 0 ? again : half) == gdrxSuccess ? 0 : 5;
  });
  expect_all_well(processes, 4);
}

TEST(Sharing, OfTwoThatAreMadeAtOnceByTwoThreadsOfEachRank) {
  Processes processes(3, patient(), [](int rank, gdrxComm_t comm) {
    const std::array from{comm, split_of(comm, 0, -rank)};
    std::array<int, 2> wrong{};
    {
      std::array<std::jthread, 2> threads;
      for (std::size_t i = 0; i < 2; ++i) {
        threads[i] = std::jthread([&, i] {
          for (int round = 0; round < 10 && wrong[i] == 0; ++round) {
            gdrxComm_t made = split_of(from[i], 0, round % 2 == 0 ? rank : -rank);
            if (made == nullptr || !sums(made, 3)) wrong[i] = 1 + round;
            gdrxCommDestroy(made);
          }
        });
      }
    }
    if (wrong[0] + wrong[1] != 0) return 1;
    gdrxCommDestroy(from[1]);
    return gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 2;
  });
  expect_all_well(processes, 3);
}

// Whoever waits for the one drives that alone: the thread that they share drives the other.
TEST(Sharing, DrivesWhatNobodyWaitsForInEachOfThem) {
  Processes processes(2, patient(), [](int rank, gdrxComm_t comm) {
    std::array<gdrxComm_t, 3> all{comm, split_of(comm, 0, 0), split_of(comm, 0, 0)};
    std::array<std::vector<float>, 3> data;
    for (int round = 0; round < 20; ++round) {
      std::array<gdrxRequest_t, 3> requests{};
      for (std::size_t i = 0; i < 3; ++i) {
        data[i].assign(300'000, 1.0F);
        if (gdrxAllReduce(data[i].data(), data[i].data(), data[i].size(), gdrxFloat32, gdrxSum,
                          all[i], nullptr, &requests[i]) != gdrxSuccess) {
          return 1;
        }
      }
      for (std::size_t i = 0; i < 3; ++i) {
        if (gdrxWait(&requests[rank == 0 ? i : 2 - i]) != gdrxSuccess) return 2;
      }
      for (const auto& one : data) {
        if (std::count(one.begin(), one.end(), 2.0F) != 300'000) return 3;
      }
    }
    for (gdrxComm_t one : all) gdrxCommDestroy(one);
    return 0;
  });
  expect_all_well(processes, 2);
}

// A handler is called by the thread that both share, where nobody else is in a call.
struct InHandler {
  gdrxComm_t other = nullptr;
  int rank = 0;
  bool dies = false;
  std::atomic<int> ended{-1};

  static void use(gdrxRequest_t, gdrxResult_t result, const char*, void* user) {
    auto& self = *static_cast<InHandler*>(user);
    self.ended = result == gdrxSuccess ? self.use() : 20;
  }
  int use() {
    gdrxComm_t made = split_of(other, 0, -rank);
    if (made == nullptr || !sums(made, 2) || !sums(other, 2)) return 21;
    if (dies && rank == 1) {
      std::this_thread::sleep_for(200ms);  // the other has its sums
      raise(SIGKILL);
    }
    if (dies) {
      float value = 1.0F;
      if (gdrxAllReduce(&value, &value, 1, gdrxFloat32, gdrxSum, other, nullptr, nullptr) !=
          gdrxPeerLost) {
        return 22;
      }
      gdrxCommDestroy(other);
    }
    gdrxCommDestroy(made);
    return 0;
  }
};

int use_in_a_handler(int rank, gdrxComm_t comm, bool dies) {
  InHandler handler;
  handler.other = split_of(comm, 0, 0);
  handler.rank = rank;
  handler.dies = dies;
  std::vector<float> data(300'000, 1.0F);
  gdrxRequest_t request = nullptr;
  if (gdrxAllReduce(data.data(), data.data(), data.size(), gdrxFloat32, gdrxSum, comm, nullptr,
                    &request) != gdrxSuccess ||
      gdrxRequestOnDone(request, InHandler::use, &handler) != gdrxSuccess) {
    return 1;
  }
  for (int i = 0; i < 1000 && handler.ended < 0; ++i) std::this_thread::sleep_for(10ms);
  if (handler.ended != 0) return handler.ended < 0 ? 2 : handler.ended.load();
  gdrxWait(&request);
  if (!dies) gdrxCommDestroy(handler.other);
  gdrxCommDestroy(comm);
  return 0;
}

TEST(Sharing, LetsAHandlerOfOneUseAnother) {
  Processes processes(
      2, patient(), [](int rank, gdrxComm_t comm) { return use_in_a_handler(rank, comm, false); });
  expect_all_well(processes, 2);
}

TEST(Sharing, NamesADeathToAHandlerOfOneThatWaitsForAnother) {
  Processes processes(2, patient(),
                      [](int rank, gdrxComm_t comm) { return use_in_a_handler(rank, comm, true); });
  EXPECT_EQ(processes.wait(0), 0);
  EXPECT_EQ(processes.wait(1), -SIGKILL);
}

}  // namespace
}  // namespace gdrx::test
