// SPDX-License-Identifier: Apache-2.0
// A bad argument gets one clear line and starts nothing.
#include <array>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

class BadArgument : public testing::Test {
 protected:
  BadArgument() : world_(1), comm_(world_[0]) {}
  void expect_refused(gdrxResult_t result, const std::string& word) {
    EXPECT_EQ(result, gdrxInvalidArgument);
    EXPECT_NE(std::string(gdrxGetLastError(comm_)).find(word), std::string::npos)
        << gdrxGetLastError(comm_);
  }
  World world_;
  gdrxComm_t comm_;
  std::array<float, 8> in_{};
  std::array<float, 8> out_{};
};

TEST_F(BadArgument, OfANullBuffer) {
  expect_refused(
      gdrxAllReduce(nullptr, out_.data(), 8, gdrxFloat32, gdrxSum, comm_, nullptr, nullptr),
      "sendbuff is NULL");
  expect_refused(
      gdrxAllReduce(in_.data(), nullptr, 8, gdrxFloat32, gdrxSum, comm_, nullptr, nullptr),
      "recvbuff is NULL");
}

TEST_F(BadArgument, OfATypeOrOperatorThatDoesNotExist) {
  expect_refused(gdrxAllReduce(in_.data(), out_.data(), 8, static_cast<gdrxDataType_t>(27), gdrxSum,
                               comm_, nullptr, nullptr),
                 "gdrxDataType_t");
  expect_refused(gdrxAllReduce(in_.data(), out_.data(), 8, gdrxFloat32,
                               static_cast<gdrxRedOp_t>(13), comm_, nullptr, nullptr),
                 "gdrxRedOp_t");
}

TEST_F(BadArgument, OfBuffersThatOverlapPartly) {
  std::array<float, 16> both{};
  expect_refused(
      gdrxAllReduce(both.data(), both.data() + 1, 8, gdrxFloat32, gdrxSum, comm_, nullptr, nullptr),
      "overlap");
}

TEST_F(BadArgument, OfARootOrPeerOutside) {
  expect_refused(gdrxBroadcast(in_.data(), out_.data(), 8, gdrxFloat32, 1, comm_, nullptr, nullptr),
                 "root 1");
  expect_refused(gdrxSend(in_.data(), 8, gdrxFloat32, -1, comm_, nullptr, nullptr), "peer -1");
}

TEST_F(BadArgument, OfACountBeyondMemory) {
  expect_refused(gdrxAllReduce(in_.data(), out_.data(), SIZE_MAX / 2, gdrxFloat32, gdrxSum, comm_,
                               nullptr, nullptr),
                 "count");
}

TEST_F(BadArgument, OfAStreamInThisVersion) {
  int dummy = 0;
  EXPECT_EQ(gdrxAllReduce(in_.data(), out_.data(), 8, gdrxFloat32, gdrxSum, comm_,
                          reinterpret_cast<gdrxStream_t>(&dummy), nullptr),
            gdrxUnsupported);
}

TEST_F(BadArgument, LeavesTheCommunicatorUsable) {
  expect_refused(
      gdrxAllReduce(nullptr, out_.data(), 8, gdrxFloat32, gdrxSum, comm_, nullptr, nullptr),
      "NULL");
  in_.fill(3.0F);
  EXPECT_EQ(
      gdrxAllReduce(in_.data(), out_.data(), 8, gdrxFloat32, gdrxSum, comm_, nullptr, nullptr),
      gdrxSuccess);
  EXPECT_EQ(out_, in_);
}

TEST(Api, RefusesACommunicatorThatIsNullOrAPlaceThatIsImpossible) {
  EXPECT_EQ(gdrxBarrier(nullptr, nullptr, nullptr), gdrxInvalidArgument);
  gdrxComm_t comm = nullptr;
  EXPECT_EQ(gdrxCommInitRank(&comm, 2, gdrxUniqueId{}, 2, nullptr), gdrxInvalidArgument);
  EXPECT_EQ(comm, nullptr);
  EXPECT_EQ(gdrxCommDestroy(nullptr), gdrxSuccess);
  EXPECT_EQ(gdrxGroupEnd(), gdrxInvalidArgument);
}

TEST(Api, RefusesAConfigOfAnotherSizeOrWithAnUnknownAlgorithm) {
  gdrxComm_t comm = nullptr;
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.algorithm = "rink";
  EXPECT_EQ(gdrxCommInitAll(&comm, 1, &config), gdrxInvalidArgument);
  EXPECT_NE(std::string(gdrxGetLastError(nullptr)).find("'rink'"), std::string::npos);
  config = GDRX_CONFIG_INITIALIZER;
  config.gpu_blocks = -1;
  EXPECT_EQ(gdrxCommInitAll(&comm, 1, &config), gdrxInvalidArgument);
  config = GDRX_CONFIG_INITIALIZER;
  config.size = 3;
  EXPECT_EQ(gdrxCommInitAll(&comm, 1, &config), gdrxInvalidArgument);
}

// As a program gives it that was compiled with the gdrx.h before `gpus`, or with a later one.
TEST(Api, TakesAConfigOfAnOlderOrNewerHeader) {
  gdrxComm_t comm = nullptr;
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  const int unknown = -1;
  config.size = offsetof(gdrxConfig_t, gpus);
  config.reserved = -1;
  config.gpus = &unknown;
  EXPECT_EQ(gdrxCommInitAll(&comm, 1, &config), gdrxSuccess) << gdrxGetLastError(nullptr);
  EXPECT_EQ(gdrxCommDestroy(comm), gdrxSuccess);
  struct {
    gdrxConfig_t known = GDRX_CONFIG_INITIALIZER;
    const void* later = nullptr;
  } newer;
  newer.known.size = sizeof newer;
  EXPECT_EQ(gdrxCommInitAll(&comm, 1, &newer.known), gdrxSuccess) << gdrxGetLastError(nullptr);
  EXPECT_EQ(gdrxCommDestroy(comm), gdrxSuccess);
  newer.later = &comm;
  EXPECT_EQ(gdrxCommInitAll(&comm, 1, &newer.known), gdrxUnsupported);
}

TEST(Api, HasATextForEveryResult) {
  for (int result = gdrxSuccess; result <= gdrxInProgress; ++result) {
    EXPECT_STRNE(gdrxGetErrorString(static_cast<gdrxResult_t>(result)), "unknown result");
  }
}

TEST(Api, MakesACommunicatorFromAUniqueId) {
  gdrxUniqueId id;
  ASSERT_EQ(gdrxGetUniqueId(&id), gdrxSuccess) << gdrxGetLastError(nullptr);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      gdrxComm_t comm = nullptr;
      ASSERT_EQ(gdrxCommInitRank(&comm, 3, id, rank, nullptr), gdrxSuccess)
          << gdrxGetLastError(nullptr);
      float value = 1.0F;
      EXPECT_EQ(gdrxAllReduce(&value, &value, 1, gdrxFloat32, gdrxSum, comm, nullptr, nullptr),
                gdrxSuccess);
      EXPECT_EQ(value, 3.0F);
      EXPECT_EQ(gdrxCommDestroy(comm), gdrxSuccess);
    });
  }
}

class WithoutAModule : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { setenv("GDRX_MODULE_PATH", "/nonexistent", 1); }
  void TearDown() override { unsetenv("GDRX_MODULE_PATH"); }
};

TEST_P(WithoutAModule, OneHostRunsEveryCollectiveAndSendsAndReceives) {
  const World world(GetParam());
  const auto ranks = static_cast<float>(world.size());
  const auto blocks = static_cast<std::size_t>(world.size());
  constexpr std::size_t kCount = 100'003;
  world.run([&](int rank, gdrxComm_t comm) {
    const std::vector<float> ones(kCount * blocks, 1.0F);
    std::vector<float> out(kCount * blocks);
    const auto expect = [&](gdrxResult_t result, std::size_t last, float value) {
      ASSERT_EQ(result, gdrxSuccess) << gdrxGetLastError(comm);
      EXPECT_EQ(out[last], value);
      gdrxOpInfo_t info{};
      info.size = sizeof info;
      ASSERT_EQ(gdrxCommGetLastOp(comm, &info), gdrxSuccess);
      EXPECT_STREQ(info.transport, "shm");
      out.assign(out.size(), 0.0F);
    };
    const float* in = ones.data();
    expect(gdrxAllReduce(in, out.data(), kCount, gdrxFloat32, gdrxSum, comm, nullptr, nullptr),
           kCount - 1, ranks);
    expect(gdrxReduceScatter(in, out.data(), kCount, gdrxFloat32, gdrxSum, comm, nullptr, nullptr),
           kCount - 1, ranks);
    expect(gdrxAllGather(in, out.data(), kCount, gdrxFloat32, comm, nullptr, nullptr),
           out.size() - 1, 1.0F);
    expect(gdrxBroadcast(in, out.data(), kCount, gdrxFloat32, 0, comm, nullptr, nullptr),
           kCount - 1, 1.0F);
    expect(gdrxReduce(in, out.data(), kCount, gdrxFloat32, gdrxSum, 0, comm, nullptr, nullptr),
           kCount - 1, rank == 0 ? ranks : 0.0F);
    expect(gdrxBarrier(comm, nullptr, nullptr), 0, 0.0F);
    const int next = (rank + 1) % world.size();
    const int previous = (rank + world.size() - 1) % world.size();
    ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
    ASSERT_EQ(gdrxRecv(out.data(), kCount, gdrxFloat32, previous, comm, nullptr, nullptr),
              gdrxSuccess);
    ASSERT_EQ(gdrxSend(in, kCount, gdrxFloat32, next, comm, nullptr, nullptr), gdrxSuccess);
    expect(gdrxGroupEnd(), kCount - 1, 1.0F);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, WithoutAModule, testing::Values(1, 2, 5, 33));

}  // namespace
}  // namespace gdrx::test
