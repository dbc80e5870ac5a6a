// SPDX-License-Identifier: Apache-2.0
// Collectives of ranks as threads over the verbs fabric on simulated NICs.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

class Live : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("GDRX_MODULE_PATH", GDRX_SIM_MODULE_PATH, 1);
    setenv("NCCL_IB_TIMEOUT", "10", 1);  // 4 ms: a rail that is down is known after 32
    setenv("GDRX_TIMEOUT", "60", 1);
  }
  static void all_reduce(const World& world, std::size_t count, int rounds) {
    world.run([&](int rank, gdrxComm_t comm) {
      std::vector<float> in(count);
      std::vector<float> out(count);
      for (int round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < count; ++i) {
          in[i] = value_of(rank + round, i);
        }
        const gdrxResult_t result = gdrxAllReduce(in.data(), out.data(), count, gdrxFloat32,
                                                  gdrxSum, comm, nullptr, nullptr);
        ASSERT_EQ(result, gdrxSuccess) << gdrxGetLastError(comm);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i) {
          float sum = 0;
          for (int r = 0; r < world.size(); ++r) sum += value_of(r + round, i);
          wrong += out[i] != sum ? 1 : 0;
        }
        ASSERT_EQ(wrong, 0U) << "round " << round;
      }
    });
  }
};

TEST_F(Live, RingTreeAndHalvingDoublingAgreeOnEverySize) {
  for (const char* algorithm : {"ring", "tree", "halving-doubling"}) {
    for (const int ranks : {2, 4}) {
      const World world(ranks, with(algorithm, "verbs"));
      for (const std::size_t count : {1UL, 1000UL, 70000UL, 1000000UL}) {
        all_reduce(world, count, 2);
      }
    }
  }
}

TEST_F(Live, EightRanksReduceOverTwoRailsEach) {
  const World world(8, with("ring", "verbs"));
  all_reduce(world, 200000, 3);
}

TEST_F(Live, ARailThatFlapsUnderLoadLosesNothing) {
  const World world(4, with("ring", "verbs"));
  const std::string path = std::string(GDRX_SIM_MODULE_PATH) + "/libgdrx-fabric-verbs.so";
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(module, nullptr);
  auto* set_rail = reinterpret_cast<void (*)(int, int)>(dlsym(module, "gdrx_sim_set_rail"));
  ASSERT_NE(set_rail, nullptr);
  std::atomic<bool> ended{false};
  std::jthread flapper([&] {
    for (int flap = 0; !ended; ++flap) {
      set_rail(flap % 2, 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      set_rail(flap % 2, 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
    }
  });
  all_reduce(world, 300000, 30);
  ended = true;
}

}  // namespace
}  // namespace gdrx::test
