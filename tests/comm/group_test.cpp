// SPDX-License-Identifier: Apache-2.0
// A group of calls is started as a whole, or not at all.
#include <array>
#include <cstdint>
#include <limits>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

struct Buffers {
  std::vector<float> a = std::vector<float>(100, 1.0F);
  std::vector<float> b = std::vector<float>(100, 1.0F);
};

gdrxResult_t sum(std::vector<float>& data, gdrxComm_t comm, gdrxRequest_t* request = nullptr) {
  return gdrxAllReduce(data.data(), data.data(), data.size(), gdrxFloat32, gdrxSum, comm, nullptr,
                       request);
}

// Each rank refuses the same call; what came before it and after it must not run on any.
TEST(Group, WithACallThatWasRefusedStartsNothingAndReturnsTheFirstError) {
  const World world(2);
  world.run([](int, gdrxComm_t comm) {
    Buffers data;
    gdrxRequest_t request = nullptr;
    ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
    EXPECT_EQ(sum(data.a, comm, &request), gdrxSuccess);
    EXPECT_EQ(
        gdrxBroadcast(data.a.data(), data.a.data(), 1, gdrxFloat32, 7, comm, nullptr, nullptr),
        gdrxInvalidArgument);
    EXPECT_EQ(gdrxSend(nullptr, 8, gdrxFloat32, 0, comm, nullptr, nullptr), gdrxInvalidArgument);
    EXPECT_EQ(sum(data.b, comm), gdrxSuccess);
    EXPECT_EQ(gdrxGroupEnd(), gdrxInvalidArgument);
    EXPECT_NE(std::string(gdrxGetLastError(comm)).find("root 7"), std::string::npos)
        << gdrxGetLastError(comm);
    EXPECT_NE(std::string(gdrxGetLastError(nullptr)).find("root 7"), std::string::npos);
    EXPECT_EQ(request, nullptr);
    EXPECT_EQ(data.a, Buffers().a);
    EXPECT_EQ(data.b, Buffers().b);
    ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);  // and is forgotten
    EXPECT_EQ(sum(data.a, comm), gdrxSuccess);
    EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(comm);
    EXPECT_EQ(data.a.back(), 2.0F);
  });
}

TEST(Group, InsideAGroupIsRefusedWithIt) {
  const World world(1);
  Buffers data;
  ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
  EXPECT_EQ(sum(data.a, world[0]), gdrxSuccess);
  ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
  EXPECT_EQ(sum(data.a, nullptr), gdrxInvalidArgument);
  EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess) << "the outermost one starts";
  EXPECT_EQ(gdrxGroupEnd(), gdrxInvalidArgument);
}

// The group has calls on two communicators, of which one has failed.
TEST(Group, WithAFailedCommunicatorStartsNothingOnTheOther) {
  const World well(2);
  const World failed(2);
  ASSERT_EQ(gdrxCommAbort(failed[0]), gdrxSuccess);
  for (int rank = 0; rank < 2; ++rank) {
    gdrxResult_t state = gdrxSuccess;
    while (state == gdrxSuccess) gdrxCommGetAsyncError(failed[rank], &state);
  }
  for (int rank = 0; rank < 2; ++rank) {
    Buffers data;
    ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
    EXPECT_EQ(sum(data.a, well[rank]), gdrxSuccess);
    EXPECT_EQ(sum(data.b, failed[rank]), gdrxSuccess);
    EXPECT_EQ(gdrxGroupEnd(), gdrxAborted);
  }
  well.run([](int, gdrxComm_t comm) {
    Buffers data;
    EXPECT_EQ(sum(data.a, comm), gdrxSuccess) << gdrxGetLastError(comm);
    EXPECT_EQ(data.a.back(), 2.0F);
  });
}

TEST(Group, OnACommunicatorThatIsDestroyedInItIsRefused) {
  const World other(1);
  gdrxComm_t comm = nullptr;
  ASSERT_EQ(gdrxCommInitAll(&comm, 1, nullptr), gdrxSuccess);
  Buffers data;
  ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
  EXPECT_EQ(sum(data.a, other[0]), gdrxSuccess);
  EXPECT_EQ(sum(data.b, comm), gdrxSuccess);
  EXPECT_EQ(gdrxCommDestroy(comm), gdrxSuccess);
  EXPECT_EQ(gdrxGroupEnd(), gdrxInvalidArgument);
  EXPECT_NE(std::string(gdrxGetLastError(nullptr)).find("destroyed"), std::string::npos);
}

class LongTimeout : public testing::TestWithParam<double> {};

TEST_P(LongTimeout, SoLongIsAsGoodAsNone) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = GetParam();
  const World world(2, config);
  world.run([](int rank, gdrxComm_t comm) {
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    Buffers data;
    EXPECT_EQ(sum(data.a, comm), gdrxSuccess) << gdrxGetLastError(comm);
    EXPECT_EQ(data.a.back(), 2.0F);
  });
}

INSTANTIATE_TEST_SUITE_P(Seconds, LongTimeout,
                         testing::Values(9e6, 1e9, 1e10, 1e15, 1e300,
                                         std::numeric_limits<double>::infinity(),
                                         -std::numeric_limits<double>::infinity(), -1e-300));

TEST(Timeout, ThatIsNoNumberIsRefused) {
  gdrxComm_t comm = nullptr;
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(gdrxCommInitAll(&comm, 1, &config), gdrxInvalidArgument);
  EXPECT_NE(std::string(gdrxGetLastError(nullptr)).find("timeout_seconds"), std::string::npos);
}

}  // namespace
}  // namespace gdrx::test
