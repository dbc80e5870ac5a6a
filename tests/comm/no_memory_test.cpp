// SPDX-License-Identifier: Apache-2.0
// Each allocation of a call fails in turn, of the thread that makes it: the call ends and says why.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "gdrx/gdrx.h"
#include "tests/comm/shortage.hpp"
#include "transport/bootstrap/tcp_bootstrap.hpp"
#include "transport/bootstrap/unique_id.hpp"

namespace gdrx {
namespace {

using namespace std::chrono_literals;
using test::Shortage;

/// Until no allocation of `body` is left to fail: body(n) says whether its nth did.
template <class Body>
void each_in_turn(Body&& body) {
  bool came = true;
  for (long allocation = 1; came; ++allocation) {
    auto ends = std::async(std::launch::async, [&] { return body(allocation); });
    ASSERT_EQ(ends.wait_for(20s), std::future_status::ready)
        << (std::fprintf(stderr, "hangs where allocation %ld fails\n", allocation), std::abort(),
            "");
    came = ends.get();
  }
}

// Its root's thread ends with it, however far it came.
TEST(NoMemory, ForAUniqueIdIsSaidAndLeavesNoRootBehind) {
  each_in_turn([](long allocation) {
    bool came = false;
    try {
      const Shortage shortage(allocation);
      const auto id = make_unique_id("lo", Log(), Secret());
      came = Shortage::came();
      EXPECT_TRUE(id || came);
      if (id) retire_unique_id(*id);
    } catch (const std::bad_alloc&) {
      came = true;
    }
    return came;
  });
}

TEST(NoMemory, EndsNoProcessWhereTheRootIsGone) {
  const auto nobody = Socket::listen(loopback_address());
  ASSERT_TRUE(nobody);
  const auto id = make_id_for(*nobody->local_address());
  ASSERT_TRUE(id);
  const std::jthread closes([&](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(1ms)) (void)nobody->accept();
  });
  each_in_turn([&](long allocation) {
    bool came = false;
    try {
      const Shortage shortage(allocation);
      const auto deadline = Deadline::after(steady_clock(), 15ms);
      EXPECT_FALSE(TcpBootstrap::create(*id, Rank{0}, 1, Log(), deadline, Secret()));
      came = Shortage::came();
    } catch (const std::bad_alloc&) {
      came = true;
    }
    return came;
  });
}

TEST(NoMemory, ForAGroupIsSaidOfItsCommunicatorsAndFailsThem) {
  each_in_turn([](long allocation) {
    gdrxComm_t comm = nullptr;
    EXPECT_EQ(gdrxCommInitAll(&comm, 1, nullptr), gdrxSuccess);
    std::vector<float> data(8, 1.0F);
    EXPECT_EQ(gdrxGroupStart(), gdrxSuccess);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(gdrxAllReduce(data.data(), data.data(), data.size(), gdrxFloat32, gdrxSum, comm,
                              nullptr, nullptr),
                gdrxSuccess);
    }
    gdrxResult_t result = gdrxSuccess;
    bool came = false;
    {
      const Shortage shortage(allocation);
      result = gdrxGroupEnd();
      came = Shortage::came();
    }
    if (result != gdrxSuccess) {
      gdrxResult_t failure = gdrxSuccess;
      EXPECT_EQ(gdrxCommGetAsyncError(comm, &failure), gdrxSuccess);
      EXPECT_EQ(failure, gdrxSystemError) << allocation;
      EXPECT_STREQ(gdrxGetLastError(comm), "out of memory") << allocation;
      EXPECT_STREQ(gdrxGetLastError(nullptr), "out of memory") << allocation;
    }
    gdrxCommDestroy(comm);
    return came;
  });
}

TEST(NoMemory, IsNeededForAShortMessageWhateverElseIsOpen) {
  gdrxComm_t comms[2] = {};
  ASSERT_EQ(gdrxCommInitAll(comms, 2, nullptr), gdrxSuccess);
  std::vector<char> longer(3'000'000, 1), whole(longer.size());
  gdrxRequest_t open = nullptr;
  ASSERT_EQ(gdrxSend(longer.data(), longer.size(), gdrxByte, 0, comms[1], nullptr, &open),
            gdrxSuccess);
  for (const long allocation : {0, 1}) {  // the first message makes what both need
    const char out = 7;
    char in = 0;
    const Shortage shortage(allocation);
    EXPECT_EQ(gdrxSend(&out, 1, gdrxByte, 1, comms[0], nullptr, nullptr), gdrxSuccess);
    EXPECT_EQ(gdrxRecv(&in, 1, gdrxByte, 0, comms[1], nullptr, nullptr), gdrxSuccess);
    EXPECT_EQ(Shortage::came(), allocation == 0);
    EXPECT_EQ(in, 7);
  }
  EXPECT_EQ(gdrxRecv(whole.data(), whole.size(), gdrxByte, 1, comms[0], nullptr, nullptr),
            gdrxSuccess);
  EXPECT_EQ(gdrxWait(&open), gdrxSuccess);
  EXPECT_EQ(whole, longer);
  const std::jthread other([&] { gdrxCommDestroy(comms[1]); });
  gdrxCommDestroy(comms[0]);
}

TEST(NoMemory, TakesNoFailureItsReason) {
  each_in_turn([](long allocation) {
    gdrxComm_t comm = nullptr;
    EXPECT_EQ(gdrxCommInitAll(&comm, 1, nullptr), gdrxSuccess);
    EXPECT_EQ(gdrxCommAbort(comm), gdrxSuccess);
    float data = 1.0F;
    gdrxResult_t failure = gdrxSuccess;
    bool came = false;
    {
      const Shortage shortage(allocation);
      EXPECT_EQ(gdrxCommGetAsyncError(comm, &failure), gdrxSuccess);
      EXPECT_EQ(failure, gdrxAborted) << allocation;
      EXPECT_EQ(gdrxAllReduce(&data, &data, 1, gdrxFloat32, gdrxSum, comm, nullptr, nullptr),
                gdrxAborted)
          << allocation;
      const std::string_view words = gdrxGetLastError(comm);
      EXPECT_NE(words.find("aborted the communicator"), words.npos) << words;
      came = Shortage::came();
    }
    gdrxCommDestroy(comm);
    return came;
  });
}

}  // namespace
}  // namespace gdrx
