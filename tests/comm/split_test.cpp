// SPDX-License-Identifier: Apache-2.0
// Communicators out of a communicator.
#include <array>
#include <string>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

float sum_of_one_each(gdrxComm_t comm, float mine) {
  float sum = 0;
  EXPECT_EQ(gdrxAllReduce(&mine, &sum, 1, gdrxFloat32, gdrxSum, comm, nullptr, nullptr),
            gdrxSuccess)
      << gdrxGetLastError(comm);
  return sum;
}

std::pair<int, int> place_in(gdrxComm_t comm) {
  int rank = -1, count = -1;
  EXPECT_EQ(gdrxCommUserRank(comm, &rank), gdrxSuccess);
  EXPECT_EQ(gdrxCommCount(comm, &count), gdrxSuccess);
  return {rank, count};
}

TEST(Split, GivesRanksOfAColorACommunicatorInTheOrderOfTheirKeys) {
  const World world(5);
  world.run([&](int rank, gdrxComm_t comm) {
    gdrxComm_t half = nullptr;
    ASSERT_EQ(gdrxCommSplit(comm, rank % 2, -rank, &half, nullptr), gdrxSuccess)
        << gdrxGetLastError(comm);
    const int size = rank % 2 == 0 ? 3 : 2;
    EXPECT_EQ(place_in(half), std::pair(size - 1 - rank / 2, size));
    EXPECT_EQ(sum_of_one_each(half, static_cast<float>(rank)), rank % 2 == 0 ? 6.0F : 4.0F);
    EXPECT_EQ(sum_of_one_each(comm, 1.0F), 5.0F) << "the first goes on beside it";
    EXPECT_EQ(gdrxCommDestroy(half), gdrxSuccess);
    EXPECT_EQ(sum_of_one_each(comm, 2.0F), 10.0F);
  });
}

TEST(Split, KeepsEqualKeysInTheOrderOfRanksAndLeavesOutWhoHasNoColor) {
  const World world(4);
  world.run([&](int rank, gdrxComm_t comm) {
    gdrxComm_t rest = comm;
    ASSERT_EQ(gdrxCommSplit(comm, rank == 1 ? gdrxSplitNoColor : 7, 0, &rest, nullptr), gdrxSuccess)
        << gdrxGetLastError(comm);
    if (rank == 1) {
      EXPECT_EQ(rest, nullptr);
      return;
    }
    EXPECT_EQ(place_in(rest), std::pair(rank == 0 ? 0 : rank - 1, 3));
    EXPECT_EQ(sum_of_one_each(rest, 1.0F), 3.0F);
    EXPECT_EQ(gdrxCommDestroy(rest), gdrxSuccess);
  });
}

TEST(Split, OfASplitOutlivesWhatItCameFrom) {
  std::vector<gdrxComm_t> quarters(4);
  {
    const World world(4);
    world.run([&](int rank, gdrxComm_t comm) {
      gdrxComm_t half = nullptr;
      ASSERT_EQ(gdrxCommSplit(comm, rank / 2, rank, &half, nullptr), gdrxSuccess);
      ASSERT_EQ(gdrxCommSplit(half, 0, -rank, &quarters[static_cast<std::size_t>(rank)], nullptr),
                gdrxSuccess);
      EXPECT_EQ(gdrxCommDestroy(half), gdrxSuccess);
    });
  }
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      gdrxComm_t comm = quarters[static_cast<std::size_t>(rank)];
      EXPECT_EQ(sum_of_one_each(comm, static_cast<float>(rank)), rank < 2 ? 1.0F : 5.0F);
      EXPECT_EQ(gdrxCommDestroy(comm), gdrxSuccess);
    });
  }
}

TEST(Split, ThatOneRankAsksWronglyIsRefusedOnAllAndTheCommunicatorGoesOn) {
  const World world(3);
  world.run([&](int rank, gdrxComm_t comm) {
    gdrxComm_t made = nullptr;
    EXPECT_EQ(gdrxCommSplit(comm, rank == 2 ? -5 : 0, 0, &made, nullptr), gdrxInvalidArgument);
    EXPECT_NE(std::string(gdrxGetLastError(comm)).find("color -5"), std::string::npos)
        << gdrxGetLastError(comm);
    EXPECT_EQ(made, nullptr);
    EXPECT_EQ(gdrxCommSplit(comm, 0, 0, rank == 0 ? nullptr : &made, nullptr), gdrxInvalidArgument);
    EXPECT_EQ(sum_of_one_each(comm, 1.0F), 3.0F);
  });
}

gdrxAsyncErrorInfo_t error_of(gdrxComm_t comm) {
  gdrxAsyncErrorInfo_t info{};
  info.size = sizeof info;
  EXPECT_EQ(gdrxCommGetAsyncErrorInfo(comm, &info), gdrxSuccess);
  return info;
}

TEST(Shrink, LeavesOutRanksThatDoNotCallItAndTheFirstGoesOn) {
  const World world(5);
  world.run([&](int rank, gdrxComm_t comm) {
    const std::array exclude{1, 3};
    if (rank == 1 || rank == 3) return;
    gdrxComm_t rest = nullptr;
    ASSERT_EQ(gdrxCommShrink(comm, exclude.data(), 2, &rest, nullptr), gdrxSuccess)
        << gdrxGetLastError(comm);
    EXPECT_EQ(place_in(rest), std::pair(rank / 2, 3));
    EXPECT_EQ(sum_of_one_each(rest, static_cast<float>(rank)), 6.0F);
    EXPECT_EQ(gdrxCommDestroy(rest), gdrxSuccess);
    EXPECT_EQ(error_of(comm).result, gdrxSuccess);
  });
  world.run([](int, gdrxComm_t comm) { EXPECT_EQ(sum_of_one_each(comm, 1.0F), 5.0F); });
}

TEST(Shrink, GoesOnAfterAnAbortAgainAndAgain) {
  const World world(4);
  world.run([&](int rank, gdrxComm_t comm) {
    if (rank == 2) gdrxCommAbort(comm);
    float in = 1, out = 0;
    gdrxResult_t result = gdrxSuccess;
    while (result == gdrxSuccess) {
      result = gdrxAllReduce(&in, &out, 1, gdrxFloat32, gdrxSum, comm, nullptr, nullptr);
    }
    EXPECT_EQ(result, gdrxAborted);
    EXPECT_EQ(error_of(comm).origin, 2);
    EXPECT_EQ(error_of(comm).subject, -1);
    for (int left = 4; left > 1; --left) {
      if (rank >= left) return;
      const std::array exclude{1, 2, 3};
      gdrxComm_t rest = nullptr;
      ASSERT_EQ(gdrxCommShrink(comm, exclude.data() + left - 1, 4 - left, &rest, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      EXPECT_EQ(sum_of_one_each(rest, 1.0F), static_cast<float>(left));
      EXPECT_EQ(gdrxCommDestroy(rest), gdrxSuccess);
    }
  });
}

TEST(Shrink, RefusesWhatMakesNoSense) {
  const World world(2);
  world.run([&](int rank, gdrxComm_t comm) {
    gdrxComm_t rest = nullptr;
    const int other = 7;
    EXPECT_EQ(gdrxCommShrink(comm, &rank, 1, &rest, nullptr), gdrxInvalidArgument);
    EXPECT_NE(std::string(gdrxGetLastError(comm)).find("excludes itself"), std::string::npos);
    EXPECT_EQ(gdrxCommShrink(comm, &other, 1, &rest, nullptr), gdrxInvalidArgument);
    EXPECT_EQ(gdrxCommShrink(comm, nullptr, 1, &rest, nullptr), gdrxInvalidArgument);
    EXPECT_EQ(gdrxCommShrink(comm, nullptr, 0, nullptr, nullptr), gdrxInvalidArgument);
  });
}

}  // namespace
}  // namespace gdrx::test
