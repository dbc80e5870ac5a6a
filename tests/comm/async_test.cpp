// SPDX-License-Identifier: Apache-2.0
// Requests: what is posted goes on while nobody waits, in order, and several ranks share a thread.
#include <array>
#include <chrono>
#include <thread>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

using namespace std::chrono_literals;

class Async : public testing::TestWithParam<const char*> {};

TEST_P(Async, OneThreadDrivesAllRanks) {
  const World world(4, with("auto", GetParam()));
  std::vector<std::vector<float>> data(4, std::vector<float>(50'000, 1.0F));
  std::vector<gdrxRequest_t> requests(4);
  for (int rank = 0; rank < 4; ++rank) {
    auto& mine = data[static_cast<std::size_t>(rank)];
    ASSERT_EQ(gdrxAllReduce(mine.data(), mine.data(), mine.size(), gdrxFloat32, gdrxSum,
                            world[rank], nullptr, &requests[static_cast<std::size_t>(rank)]),
              gdrxSuccess);
  }
  for (gdrxRequest_t& request : requests) EXPECT_EQ(gdrxWait(&request), gdrxSuccess);
  for (const auto& mine : data) EXPECT_EQ(mine, std::vector<float>(mine.size(), 4.0F));
}

TEST_P(Async, GoesOnWhileNobodyWaits) {
  const World world(3, with("auto", GetParam()));
  std::vector<std::vector<float>> data(3, std::vector<float>(200'000, 1.0F));
  std::vector<gdrxRequest_t> requests(3);
  for (int rank = 0; rank < 3; ++rank) {
    auto& mine = data[static_cast<std::size_t>(rank)];
    ASSERT_EQ(gdrxAllReduce(mine.data(), mine.data(), mine.size(), gdrxFloat32, gdrxSum,
                            world[rank], nullptr, &requests[static_cast<std::size_t>(rank)]),
              gdrxSuccess);
  }
  std::this_thread::sleep_for(1500ms);  // the communicators' own threads must finish it
  for (gdrxRequest_t& request : requests) {
    EXPECT_EQ(gdrxTest(&request), gdrxSuccess);
    EXPECT_EQ(request, nullptr);
  }
  EXPECT_EQ(data[2].back(), 3.0F);
}

TEST_P(Async, RunsWhatWasPostedInOrder) {
  const World world(2, with("auto", GetParam()));
  world.run([](int, gdrxComm_t comm) {
    std::vector<float> value(1000, 1.0F);
    std::vector<gdrxRequest_t> requests(8);
    for (gdrxRequest_t& request : requests) {  // each doubles what the one before made
      ASSERT_EQ(gdrxAllReduce(value.data(), value.data(), value.size(), gdrxFloat32, gdrxSum, comm,
                              nullptr, &request),
                gdrxSuccess);
    }
    EXPECT_EQ(gdrxWait(&requests.back()), gdrxSuccess);
    EXPECT_EQ(value, std::vector<float>(1000, 256.0F));
    for (gdrxRequest_t& request : requests) EXPECT_EQ(gdrxWait(&request), gdrxSuccess);
  });
}

TEST_P(Async, ARankThatReturnedDoesNotHoldBackItsPeers) {
  // Every rank sleeps after its call, without touching gdrx: the others must still end.
  const World world(4, with("ring", GetParam()));
  world.run([](int rank, gdrxComm_t comm) {
    std::vector<float> data(1 << 20, 1.0F);
    for (int round = 0; round < 5; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      std::fill(data.begin(), data.end(), 1.0F);
      ASSERT_EQ(gdrxAllReduce(data.data(), data.data(), data.size(), gdrxFloat32, gdrxSum, comm,
                              nullptr, nullptr),
                gdrxSuccess);
      EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
      EXPECT_EQ(data.back(), 4.0F);
      if (rank == round % 4) std::this_thread::sleep_for(300ms);
    }
  });
}

TEST(Request, OutlivesItsCommunicator) {
  for (const bool abort : {false, true}) {
    std::array<gdrxComm_t, 2> comms{};
    ASSERT_EQ(gdrxCommInitAll(comms.data(), 2, nullptr), gdrxSuccess);
    std::array<std::array<gdrxRequest_t, 3>, 2> requests{};
    std::array<std::array<float, 3>, 2> data{};
    for (std::size_t rank = 0; rank < 2; ++rank) {
      if (abort && rank == 1) {
        ASSERT_EQ(gdrxCommAbort(comms[1]), gdrxSuccess);
      }
      data[rank].fill(1.0F);
      for (std::size_t i = 0; i < 3 && (!abort || rank == 0); ++i) {
        ASSERT_EQ(gdrxAllReduce(&data[rank][i], &data[rank][i], 1, gdrxFloat32, gdrxSum,
                                comms[rank], nullptr, &requests[rank][i]),
                  gdrxSuccess);
      }
    }
    const gdrxResult_t expected = abort ? gdrxAborted : gdrxSuccess;
    if (!abort) {
      EXPECT_EQ(gdrxWait(&requests[0][1]), gdrxSuccess);  // from the middle
    }
    for (gdrxComm_t comm : comms) EXPECT_EQ(gdrxCommDestroy(comm), expected);
    EXPECT_EQ(gdrxTest(&requests[0][0]), expected);
    EXPECT_EQ(gdrxWait(&requests[0][2]), expected);
    if (abort) {
      EXPECT_NE(std::string(gdrxGetLastError(nullptr)).find("rank 1 aborted"), std::string::npos);
      EXPECT_EQ(gdrxWait(&requests[0][1]), expected);
      continue;
    }
    for (gdrxRequest_t& request : requests[1]) EXPECT_EQ(gdrxWait(&request), expected);
    for (const auto& mine : data) EXPECT_EQ(mine, (std::array{2.0F, 2.0F, 2.0F}));
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, Async, testing::Values("auto", "shm", "ucx"));

}  // namespace
}  // namespace gdrx::test
