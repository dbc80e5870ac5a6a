// SPDX-License-Identifier: Apache-2.0
// gdrxCommDestroy: whoever leaves takes nothing with him that the others still need.
#include <algorithm>
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

INSTANTIATE_TEST_SUITE_P(Transports, Leaving, testing::Values("ucx", "tcp"));

// One is killed while the others wait for it to leave.
TEST(Leave, IsEndedByADeath) {
  gdrxConfig_t config = over("ucx");
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

}  // namespace
}  // namespace gdrx::test
