// SPDX-License-Identifier: Apache-2.0
// A deadline of one call, of a group, and of all later calls.
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

gdrxCallOptions_t within(double seconds) {
  gdrxCallOptions_t options = GDRX_CALL_OPTIONS_INITIALIZER;
  options.timeout_seconds = seconds;
  return options;
}

gdrxConfig_t config_of(const char* transport, double seconds) {
  gdrxConfig_t config = with("auto", transport);
  config.timeout_seconds = seconds;
  return config;
}

gdrxResult_t reduce(gdrxComm_t comm, std::vector<float>& data, gdrxRequest_t* request = nullptr) {
  return gdrxAllReduce(data.data(), data.data(), data.size(), gdrxFloat32, gdrxSum, comm, nullptr,
                       request);
}

class Timeout : public testing::TestWithParam<const char*> {};

TEST_P(Timeout, OfOneCallEndsThatCallAndNamesTheLimit) {
  const World world(2, config_of(GetParam(), 100));
  std::vector<float> data(1000);
  const gdrxCallOptions_t options = within(0.3);
  const auto begin = Clock::now();
  ASSERT_EQ(gdrxGroupStartWith(&options), gdrxSuccess);
  ASSERT_EQ(reduce(world[0], data), gdrxSuccess);  // rank 1 does not come
  EXPECT_EQ(gdrxGroupEnd(), gdrxTimeout);
  const auto took = Clock::now() - begin;
  EXPECT_GE(took, 300ms);
  EXPECT_LT(took, 20s);
  const std::string text = gdrxGetLastError(world[0]);
  EXPECT_NE(text.find("within 0.301 s"), std::string::npos) << text;
  EXPECT_NE(text.find("its own timeout"), std::string::npos) << text;
  EXPECT_NE(text.find("it waits for"), std::string::npos) << text;
}

// The communicator's is short; a call that has more lives.
TEST_P(Timeout, OfOneCallMayBeLongerThanTheCommunicators) {
  const World world(2, config_of(GetParam(), 0.3));
  world.run([](int rank, gdrxComm_t comm) {
    std::vector<float> data(1000, 1.0F);
    for (const double seconds : {60.0, -1.0}) {
      if (rank == 1) std::this_thread::sleep_for(900ms);
      const gdrxCallOptions_t options = within(seconds);
      ASSERT_EQ(gdrxGroupStartWith(&options), gdrxSuccess);
      ASSERT_EQ(reduce(comm, data), gdrxSuccess);
      ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(comm);
    }
    EXPECT_EQ(data.front(), 4.0F);
  });
}

// A request that nobody waits for is ended by the communicator's own thread.
TEST_P(Timeout, OfARequestEndsItWithoutAWaiter) {
  const World world(2, config_of(GetParam(), 100));
  std::vector<float> data(1000);
  gdrxRequest_t request = nullptr;
  const gdrxCallOptions_t options = within(0.2);
  ASSERT_EQ(gdrxGroupStartWith(&options), gdrxSuccess);
  ASSERT_EQ(reduce(world[0], data, &request), gdrxSuccess);
  ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess);
  ASSERT_NE(request, nullptr);
  gdrxResult_t failed = gdrxSuccess;
  for (int i = 0; i < 200 && failed == gdrxSuccess; ++i) {
    std::this_thread::sleep_for(100ms);
    ASSERT_EQ(gdrxCommGetAsyncError(world[0], &failed), gdrxSuccess);
  }
  EXPECT_EQ(failed, gdrxTimeout);
  EXPECT_EQ(gdrxTest(&request), gdrxTimeout);
}

// The first waits as long as it likes; the second's time begins when the first has ended.
TEST_P(Timeout, BeginsWhenTheCallDoes) {
  const World world(2, config_of(GetParam(), 100));
  world.run([](int rank, gdrxComm_t comm) {
    std::vector<float> first(1000, 1.0F);
    std::vector<float> second(1000, 1.0F);
    std::array<gdrxRequest_t, 2> requests{};
    if (rank == 1) std::this_thread::sleep_for(1500ms);
    ASSERT_EQ(reduce(comm, first, &requests[0]), gdrxSuccess);
    const gdrxCallOptions_t options = within(0.7);
    ASSERT_EQ(gdrxGroupStartWith(&options), gdrxSuccess);
    ASSERT_EQ(reduce(comm, second, &requests[1]), gdrxSuccess);
    ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess);
    for (gdrxRequest_t& request : requests) {
      EXPECT_EQ(gdrxWait(&request), gdrxSuccess) << gdrxGetLastError(comm);
    }
  });
}

TEST_P(Timeout, SetLaterIsThatOfLaterCalls) {
  const World world(2, config_of(GetParam(), 0.2));
  for (int rank = 0; rank < 2; ++rank) ASSERT_EQ(gdrxCommSetTimeout(world[rank], 60), gdrxSuccess);
  world.run([](int rank, gdrxComm_t comm) {  // outlives the first limit
    std::vector<float> data(1000, 1.0F);
    if (rank == 1) std::this_thread::sleep_for(900ms);
    EXPECT_EQ(reduce(comm, data), gdrxSuccess) << gdrxGetLastError(comm);
  });
  std::vector<float> data(1000, 1.0F);
  gdrxRequest_t posted = nullptr;
  ASSERT_EQ(reduce(world[0], data, &posted), gdrxSuccess);
  std::thread([&] { ASSERT_EQ(gdrxCommSetTimeout(world[0], 0), gdrxSuccess); }).join();
  std::this_thread::sleep_for(900ms);  // back to what it was made with, which is not this call's
  EXPECT_EQ(gdrxTest(&posted), gdrxInProgress);
  std::vector<float> theirs(1000, 1.0F);
  ASSERT_EQ(reduce(world[1], theirs), gdrxSuccess);
  EXPECT_EQ(gdrxWait(&posted), gdrxSuccess);
  EXPECT_EQ(reduce(world[0], data), gdrxTimeout);
}

INSTANTIATE_TEST_SUITE_P(Transports, Timeout, testing::Values("shm", "ucx"));

TEST(TimeoutOfAPair, IsThatOfItsGroup) {
  const World world(2, config_of("ucx", 100));
  float value = 0;
  const gdrxCallOptions_t options = within(0.3);
  ASSERT_EQ(gdrxGroupStartWith(&options), gdrxSuccess);
  ASSERT_EQ(gdrxRecv(&value, 1, gdrxFloat32, 1, world[0], nullptr, nullptr), gdrxSuccess);
  EXPECT_EQ(gdrxGroupEnd(), gdrxTimeout);
  const std::string text = gdrxGetLastError(world[0]);
  EXPECT_NE(text.find("its own timeout"), std::string::npos) << text;
}

// The inner group's is its own, what it leaves open is the outer one's, and after both it is the
// communicator's.
TEST(TimeoutOfAGroup, IsInheritedAndEndsWithTheGroup) {
  const World world(2, config_of("auto", 100));
  std::vector<float> data(10);
  gdrxRequest_t request = nullptr;
  const gdrxCallOptions_t outer = within(0.3);
  const gdrxCallOptions_t inner = within(0);
  const gdrxCallOptions_t longer = within(90);
  ASSERT_EQ(gdrxGroupStartWith(&outer), gdrxSuccess);
  ASSERT_EQ(gdrxGroupStartWith(&longer), gdrxSuccess);
  ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess);
  ASSERT_EQ(gdrxGroupStartWith(&inner), gdrxSuccess);
  ASSERT_EQ(gdrxGroupStartWith(nullptr), gdrxSuccess);
  ASSERT_EQ(reduce(world[0], data, &request), gdrxSuccess);
  ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess);
  ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess);
  ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess);
  EXPECT_EQ(gdrxWait(&request), gdrxTimeout);

  const World other(2, config_of("auto", 100));
  ASSERT_EQ(reduce(other[0], data, &request), gdrxSuccess);
  std::this_thread::sleep_for(1s);
  EXPECT_EQ(gdrxTest(&request), gdrxInProgress);
  EXPECT_EQ(gdrxCommAbort(other[0]), gdrxSuccess);
  EXPECT_EQ(gdrxWait(&request), gdrxAborted);
}

TEST(CallOptions, ThatAreNotUnderstoodStartNoGroup) {
  gdrxCallOptions_t options = within(1);
  options.size = 3;
  EXPECT_EQ(gdrxGroupStartWith(&options), gdrxInvalidArgument);
  EXPECT_NE(std::string(gdrxGetLastError(nullptr)).find("GDRX_CALL_OPTIONS_INITIALIZER"),
            std::string::npos);
  options = within(std::nan(""));
  EXPECT_EQ(gdrxGroupStartWith(&options), gdrxInvalidArgument);
  struct Later {
    gdrxCallOptions_t known;
    double more[2];
  } later{within(1), {0, 0}};
  later.known.size = sizeof later;
  EXPECT_EQ(gdrxGroupStartWith(&later.known), gdrxSuccess);
  EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess);
  later.more[1] = 1;
  EXPECT_EQ(gdrxGroupStartWith(&later.known), gdrxUnsupported);
  EXPECT_EQ(gdrxGroupEnd(), gdrxInvalidArgument);  // none is open
  EXPECT_EQ(gdrxCommSetTimeout(nullptr, 1), gdrxInvalidArgument);
  const World world(1);
  EXPECT_EQ(gdrxCommSetTimeout(world[0], std::nan("")), gdrxInvalidArgument);
}

}  // namespace
}  // namespace gdrx::test
