// SPDX-License-Identifier: Apache-2.0
// Communicators that are made in the background, which an abort ends, and several by one thread.
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

gdrxUniqueId new_id() {
  gdrxUniqueId id{};
  EXPECT_EQ(gdrxGetUniqueId(&id), gdrxSuccess) << gdrxGetLastError(nullptr);
  return id;
}

gdrxResult_t state_of(gdrxComm_t comm) {
  gdrxResult_t state = gdrxInternalError;
  EXPECT_EQ(gdrxCommGetAsyncError(comm, &state), gdrxSuccess);
  return state;
}

/// Until it is made, or is not.
gdrxResult_t settled(gdrxComm_t comm, std::chrono::milliseconds most = 60s) {
  const auto end = Clock::now() + most;
  while (state_of(comm) == gdrxInProgress && Clock::now() < end) std::this_thread::sleep_for(5ms);
  return state_of(comm);
}

gdrxResult_t sum(gdrxComm_t comm, float& value, gdrxRequest_t* request) {
  return gdrxAllReduce(&value, &value, 1, gdrxFloat32, gdrxSum, comm, nullptr, request);
}

/// One thread for all of them.
template <std::size_t kRanks>
void expect_sum_is(float expected, const std::array<gdrxComm_t, kRanks>& comms) {
  std::array<float, kRanks> values{};
  values.fill(1.0F);
  std::array<gdrxRequest_t, kRanks> requests{};
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(sum(comms[rank], values[rank], &requests[rank]), gdrxSuccess)
        << gdrxGetLastError(comms[rank]);
  }
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(gdrxWait(&requests[rank]), gdrxSuccess);
    EXPECT_EQ(values[rank], expected);
  }
}

TEST(InitAsync, OneThreadStartsAllRanks) {
  const gdrxUniqueId id = new_id();
  std::array<gdrxComm_t, 3> comms{};
  for (int rank = 0; rank < 3; ++rank) {
    auto& comm = comms[static_cast<std::size_t>(rank)];
    ASSERT_EQ(gdrxCommInitRankAsync(&comm, 3, id, rank, nullptr), gdrxSuccess);
    ASSERT_NE(comm, nullptr);
  }
  for (gdrxComm_t comm : comms) ASSERT_EQ(settled(comm), gdrxSuccess) << gdrxGetLastError(comm);
  expect_sum_is(3.0F, comms);
  std::array<std::jthread, 3> threads;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    threads[rank] =
        std::jthread([&, rank] { EXPECT_EQ(gdrxCommDestroy(comms[rank]), gdrxSuccess); });
  }
}

class InitAborted : public testing::TestWithParam<int> {};

// The other rank never comes: where the root is, and where it is not.
TEST_P(InitAborted, EndsWithinASecond) {
  const gdrxUniqueId id = new_id();
  gdrxComm_t comm = nullptr;
  ASSERT_EQ(gdrxCommInitRankAsync(&comm, 2, id, GetParam(), nullptr), gdrxSuccess);
  std::this_thread::sleep_for(500ms);
  ASSERT_EQ(state_of(comm), gdrxInProgress);
  float value = 1;
  int count = 0;
  EXPECT_EQ(sum(comm, value, nullptr), gdrxInvalidArgument);
  EXPECT_NE(std::string(gdrxGetLastError(nullptr)).find("is being made"), std::string::npos);
  EXPECT_EQ(gdrxCommCount(comm, &count), gdrxInvalidArgument);
  const auto begin = Clock::now();
  std::thread([comm] { EXPECT_EQ(gdrxCommAbort(comm), gdrxSuccess); }).join();
  EXPECT_EQ(settled(comm), gdrxAborted);
  EXPECT_LT(Clock::now() - begin, 1s);
  EXPECT_NE(std::string(gdrxGetLastError(comm)).find("aborted while it was made"),
            std::string::npos);
  EXPECT_EQ(sum(comm, value, nullptr), gdrxAborted);
  EXPECT_EQ(gdrxCommDestroy(comm), gdrxAborted);
}

TEST_P(InitAborted, IsWhatADestructionDoes) {
  const gdrxUniqueId id = new_id();
  gdrxComm_t comm = nullptr;
  ASSERT_EQ(gdrxCommInitRankAsync(&comm, 2, id, GetParam(), nullptr), gdrxSuccess);
  std::this_thread::sleep_for(300ms);
  const auto begin = Clock::now();
  EXPECT_EQ(gdrxCommDestroy(comm), gdrxAborted);
  EXPECT_LT(Clock::now() - begin, 1s);
}

INSTANTIATE_TEST_SUITE_P(Ranks, InitAborted, testing::Values(0, 1));

// At any moment of it: the rank is made and aborted, or was aborted while it was made. No peer
// hangs.
TEST(InitAborted, AtAnyMomentHangsNobody) {
  setenv("GDRX_INIT_TIMEOUT", "5", 1);
  for (int microseconds = 0; microseconds < 60'000; microseconds += 4'000) {
    SCOPED_TRACE(microseconds);
    const gdrxUniqueId id = new_id();
    std::array<gdrxComm_t, 2> comms{};
    for (int rank = 0; rank < 2; ++rank) {
      ASSERT_EQ(gdrxCommInitRankAsync(&comms[static_cast<std::size_t>(rank)], 2, id, rank, nullptr),
                gdrxSuccess);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    EXPECT_EQ(gdrxCommAbort(comms[1]), gdrxSuccess);
    EXPECT_NE(settled(comms[0]), gdrxInProgress);
    EXPECT_EQ(settled(comms[1]), gdrxAborted);
    std::jthread other([&] { EXPECT_NE(gdrxCommDestroy(comms[0]), gdrxSuccess); });
    EXPECT_EQ(gdrxCommDestroy(comms[1]), gdrxAborted);
  }
  unsetenv("GDRX_INIT_TIMEOUT");
}

TEST(InitAsync, ARankThatNeverComesIsNamed) {
  setenv("GDRX_INIT_TIMEOUT", "1", 1);
  const gdrxUniqueId id = new_id();
  gdrxComm_t comm = nullptr;
  ASSERT_EQ(gdrxCommInitRankAsync(&comm, 2, id, 0, nullptr), gdrxSuccess);
  EXPECT_EQ(settled(comm), gdrxTimeout);
  EXPECT_NE(std::string(gdrxGetLastError(comm)).find("rank 0 waited in vain"), std::string::npos)
      << gdrxGetLastError(comm);
  EXPECT_EQ(gdrxCommDestroy(comm), gdrxTimeout);
  unsetenv("GDRX_INIT_TIMEOUT");
  EXPECT_EQ(gdrxCommInitRankAsync(&comm, 2, id, 2, nullptr), gdrxInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

TEST(InitInAGroup, GivesOneThreadSeveralRanks) {
  const gdrxUniqueId id = new_id();
  std::array<gdrxComm_t, 3> comms{};
  ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
  for (int rank = 0; rank < 3; ++rank) {
    gdrxConfig_t config = with("ring");  // gone before it is used
    auto& comm = comms[static_cast<std::size_t>(rank)];
    ASSERT_EQ(gdrxCommInitRank(&comm, 3, id, rank, &config), gdrxSuccess);
    EXPECT_EQ(comm, nullptr);
  }
  ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(nullptr);
  expect_sum_is(3.0F, comms);

  std::array<gdrxComm_t, 3> parts{};
  ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const int color = rank < 2 ? 0 : gdrxSplitNoColor;
    ASSERT_EQ(gdrxCommSplit(comms[rank], color, -static_cast<int>(rank), &parts[rank], nullptr),
              gdrxSuccess);
  }
  ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(nullptr);
  EXPECT_EQ(parts[2], nullptr);
  int rank = -1;
  EXPECT_EQ(gdrxCommUserRank(parts[0], &rank), gdrxSuccess);
  EXPECT_EQ(rank, 1);  // by its key
  expect_sum_is(2.0F, std::array{parts[0], parts[1]});

  std::vector<gdrxRequest_t> ends;
  for (gdrxComm_t comm : {parts[0], parts[1], comms[0], comms[1], comms[2]}) {
    ASSERT_EQ(gdrxCommFinalize(comm, &ends.emplace_back()), gdrxSuccess);
  }
  for (gdrxRequest_t& end : ends) EXPECT_EQ(gdrxWait(&end), gdrxSuccess);
  for (gdrxComm_t comm : {parts[0], parts[1], comms[0], comms[1], comms[2]}) {
    EXPECT_EQ(gdrxCommDestroy(comm), gdrxSuccess);
  }
}

TEST(InitInAGroup, IsRefusedAsAWhole) {
  const gdrxUniqueId id = new_id();
  std::array<gdrxComm_t, 2> comms{};
  ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
  EXPECT_EQ(gdrxCommInitRank(comms.data(), 2, id, 0, nullptr), gdrxSuccess);
  EXPECT_EQ(gdrxCommInitRank(&comms[1], 2, id, 7, nullptr), gdrxInvalidArgument);
  const auto begin = Clock::now();
  EXPECT_EQ(gdrxGroupEnd(), gdrxInvalidArgument);
  EXPECT_LT(Clock::now() - begin, 5s);  // rank 0 was not started
  EXPECT_EQ(comms[0], nullptr);
  EXPECT_EQ(comms[1], nullptr);
}

// One of the ranks asks for what is not there: nobody hangs, and none is made.
TEST(InitInAGroup, ThatFailsMakesNone) {
  const gdrxUniqueId id = new_id();
  std::array<gdrxComm_t, 2> comms{};
  ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
  for (int rank = 0; rank < 2; ++rank) {
    const gdrxConfig_t config = with(rank == 0 ? "ring" : "tree");
    ASSERT_EQ(gdrxCommInitRank(&comms[static_cast<std::size_t>(rank)], 2, id, rank, &config),
              gdrxSuccess);
  }
  EXPECT_EQ(gdrxGroupEnd(), gdrxMismatch);
  for (gdrxComm_t comm : comms) EXPECT_EQ(comm, nullptr);
}

}  // namespace
}  // namespace gdrx::test
