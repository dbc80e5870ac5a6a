// SPDX-License-Identifier: Apache-2.0
// Registered memory through the C API, over the verbs fabric on simulated NICs: nothing of it is
// copied to be sent, and what was freed is never sent from.
#include <sys/mman.h>

#include <array>
#include <cstdlib>
#include <string>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

constexpr std::size_t kCount = 100'000;
constexpr std::size_t kBytes = kCount * sizeof(float);

class Registered : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("GDRX_MODULE_PATH", GDRX_SIM_MODULE_PATH, 1);
    setenv("GDRX_TIMEOUT", "60", 1);
  }
  static std::uint64_t copied(gdrxComm_t comm) {
    std::array<char, 2048> text{};
    EXPECT_EQ(gdrxCommDescribe(comm, text.data(), text.size()), gdrxSuccess);
    const std::string all(text.data());
    const std::size_t end = all.find(" bytes copied");
    if (end == std::string::npos) {
      ADD_FAILURE() << all;
      return 0;
    }
    return std::stoull(all.substr(all.rfind(' ', end - 1) + 1));
  }
  static void reduce(int rank, int ranks, gdrxComm_t comm, float* in, float* out, int round) {
    for (std::size_t i = 0; i < kCount; ++i) in[i] = value_of(rank + round, i);
    ASSERT_EQ(gdrxAllReduce(in, out, kCount, gdrxFloat32, gdrxSum, comm, nullptr, nullptr),
              gdrxSuccess)
        << gdrxGetLastError(comm);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      float sum = 0;
      for (int r = 0; r < ranks; ++r) sum += value_of(r + round, i);
      wrong += out[i] != sum ? 1 : 0;
    }
    ASSERT_EQ(wrong, 0U) << "round " << round;
  }
  static bool was_registered(gdrxComm_t comm) {
    gdrxOpInfo_t info{};
    info.size = sizeof info;
    EXPECT_EQ(gdrxCommGetLastOp(comm, &info), gdrxSuccess);
    return info.registered == 1;
  }
};

/// Pages at a fixed place: what is freed comes back at the same address.
float* map_at(void* place) {
  const int fixed = place != nullptr ? MAP_FIXED_NOREPLACE : 0;
  void* memory =
      mmap(place, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  return static_cast<float*>(memory);
}

TEST_F(Registered, MemoryIsSentFromWithoutACopyByEveryAlgorithm) {
  for (const char* algorithm : {"ring", "tree", "halving-doubling"}) {
    const World world(4, with(algorithm, "verbs"));
    world.run([&](int rank, gdrxComm_t comm) {
      void* in = nullptr;
      void* out = nullptr;
      ASSERT_EQ(gdrxMemAlloc(comm, &in, kBytes), gdrxSuccess) << gdrxGetLastError(comm);
      ASSERT_EQ(gdrxMemAlloc(comm, &out, kBytes), gdrxSuccess);
      for (int round = 0; round < 3; ++round) {
        reduce(rank, 4, comm, static_cast<float*>(in), static_cast<float*>(out), round);
        EXPECT_TRUE(was_registered(comm));
      }
      EXPECT_EQ(copied(comm), 0U) << algorithm;
      EXPECT_EQ(gdrxMemFree(comm, in), gdrxSuccess);
      EXPECT_EQ(gdrxMemFree(comm, out), gdrxSuccess);
      EXPECT_EQ(gdrxMemFree(comm, out), gdrxInvalidArgument);
    });
  }
}

TEST_F(Registered, WhatIsNotRegisteredIsCopiedAndSaysSo) {
  const World world(2, with("ring", "verbs"));
  world.run([&](int rank, gdrxComm_t comm) {
    std::vector<float> in(kCount);
    std::vector<float> out(kCount);
    gdrxRegistration_t half = nullptr;
    ASSERT_EQ(gdrxRegister(comm, out.data(), kBytes / 2, &half), gdrxSuccess);
    reduce(rank, 2, comm, in.data(), out.data(), 1);
    EXPECT_FALSE(was_registered(comm));
    EXPECT_GT(copied(comm), 0U);
    EXPECT_EQ(gdrxDeregister(comm, half), gdrxSuccess);
    EXPECT_EQ(gdrxDeregister(comm, half), gdrxInvalidArgument);
  });
}

TEST_F(Registered, MemoryFreedAndAllocatedAgainAtTheSameAddressIsRightEitherWay) {
  const World world(2, with("ring", "verbs"));
  world.run([&](int rank, gdrxComm_t comm) {
    float* in = map_at(nullptr);
    float* out = map_at(nullptr);
    for (int round = 0; round < 6; ++round) {
      std::array<gdrxRegistration_t, 2> handles{};
      const bool registered = round % 2 == 0;
      if (registered) {
        ASSERT_EQ(gdrxRegister(comm, in, kBytes, handles.data()), gdrxSuccess);
        ASSERT_EQ(gdrxRegister(comm, out, kBytes, &handles[1]), gdrxSuccess);
      }
      reduce(rank, 2, comm, in, out, round);
      EXPECT_EQ(was_registered(comm), registered) << "round " << round;
      for (gdrxRegistration_t handle : handles) {
        if (registered) {
          EXPECT_EQ(gdrxDeregister(comm, handle), gdrxSuccess);
        }
      }
      for (float** buffer : {&in, &out}) {
        munmap(*buffer, kBytes);
        *buffer = map_at(*buffer);
      }
    }
    munmap(in, kBytes);
    munmap(out, kBytes);
  });
}

TEST_F(Registered, DeregisteredWhileAnOperationReadsItIsStillSentRight) {
  const World world(2, with("ring", "verbs"));
  world.run([&](int rank, gdrxComm_t comm) {
    std::vector<float> in(kCount);
    std::vector<float> out(kCount);
    for (std::size_t i = 0; i < kCount; ++i) in[i] = value_of(rank, i);
    gdrxRegistration_t handle = nullptr;
    ASSERT_EQ(gdrxRegister(comm, in.data(), kBytes, &handle), gdrxSuccess);
    gdrxRequest_t request = nullptr;
    ASSERT_EQ(
        gdrxAllReduce(in.data(), out.data(), kCount, gdrxFloat32, gdrxSum, comm, nullptr, &request),
        gdrxSuccess);
    EXPECT_EQ(gdrxDeregister(comm, handle), gdrxSuccess);
    ASSERT_EQ(gdrxWait(&request), gdrxSuccess) << gdrxGetLastError(comm);
    for (std::size_t i = 0; i < kCount; i += 997) {
      ASSERT_EQ(out[i], value_of(0, i) + value_of(1, i)) << i;
    }
  });
}

TEST_F(Registered, BadArgumentsAreRefusedInOneLine) {
  const World world(1, with("ring"));
  std::array<float, 8> memory{};
  gdrxRegistration_t handle = nullptr;
  EXPECT_EQ(gdrxRegister(world[0], nullptr, 8, &handle), gdrxInvalidArgument);
  EXPECT_EQ(gdrxRegister(world[0], memory.data(), 0, &handle), gdrxInvalidArgument);
  EXPECT_EQ(gdrxRegister(world[0], memory.data(), 8, nullptr), gdrxInvalidArgument);
  EXPECT_EQ(gdrxMemFree(world[0], memory.data()), gdrxInvalidArgument);
  EXPECT_EQ(gdrxMemFree(world[0], nullptr), gdrxSuccess);
}

}  // namespace
}  // namespace gdrx::test
