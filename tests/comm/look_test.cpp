// SPDX-License-Identifier: Apache-2.0
// What a communicator tells of itself: the memory that it holds, whom its calls wait for, and how
// it would carry one.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>

#include "tests/comm/look.hpp"
#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

using namespace std::chrono_literals;

gdrxMemoryInfo_t memory_of(gdrxComm_t comm) {
  gdrxMemoryInfo_t info{};
  info.size = sizeof info;
  EXPECT_EQ(gdrxCommGetMemory(comm, &info), gdrxSuccess) << gdrxGetLastError(comm);
  return info;
}

TEST(Memory, OfTheCallersIsCountedWhileItIsHeld) {
  const World world(2, with("auto", "ucx"));
  const gdrxMemoryInfo_t before = memory_of(world[0]);
  EXPECT_EQ(before.allocated_bytes, 0U);
  EXPECT_GT(before.message_bytes, 0U);
  EXPECT_EQ(before.gpu_bytes, 0U);
  void* memory = nullptr;
  for (const std::size_t bytes : {std::size_t{1} << 16, std::size_t{1} << 20}) {
    ASSERT_EQ(gdrxMemAlloc(world[0], &memory, bytes), gdrxSuccess);
    EXPECT_EQ(memory_of(world[0]).allocated_bytes, bytes);
    EXPECT_EQ(memory_of(world[0]).registered_bytes, before.registered_bytes + bytes);
    ASSERT_EQ(gdrxMemFree(world[0], memory), gdrxSuccess);
    EXPECT_EQ(memory_of(world[0]).allocated_bytes, 0U);
  }
  std::vector<float> own(5000);
  gdrxRegistration_t handle = nullptr;
  ASSERT_EQ(gdrxRegister(world[0], own.data(), own.size() * 4, &handle), gdrxSuccess);
  EXPECT_EQ(memory_of(world[0]).registered_bytes, before.registered_bytes + own.size() * 4);
  ASSERT_EQ(gdrxDeregister(world[0], handle), gdrxSuccess);
  EXPECT_EQ(memory_of(world[0]).registered_bytes, before.registered_bytes);
}

// Calls of rising size: what they work in grows with them, and stays.
TEST(Memory, InWhichCallsWorkGrowsWithThem) {
  const World world(3, with("ring", "ucx"));
  std::array<std::uint64_t, 2> scratch{};
  for (std::size_t round = 0; round < scratch.size(); ++round) {
    const std::size_t count = std::size_t{1000} << (8 * round);
    world.run([&](int rank, gdrxComm_t comm) {
      std::vector<float> in(3 * count, 1.0F);
      std::vector<float> out(count);
      EXPECT_EQ(gdrxReduceScatter(in.data(), out.data(), count, gdrxFloat32, gdrxSum, comm, nullptr,
                                  nullptr),
                gdrxSuccess);
      if (rank == 1) scratch[round] = memory_of(comm).scratch_bytes;
    });
  }
  EXPECT_GT(scratch[1], scratch[0]);
}

TEST(Memory, ThatRanksShareIsTold) {
  const World world(2, with("auto", "shm"));
  EXPECT_GT(memory_of(world[1]).shared_bytes, 0U);
}

TEST(Memory, OfACallerWithAnotherStructIsRefused) {
  const World world(1);
  gdrxMemoryInfo_t info{};
  EXPECT_EQ(gdrxCommGetMemory(world[0], &info), gdrxInvalidArgument);
  EXPECT_EQ(gdrxCommGetMemory(world[0], nullptr), gdrxInvalidArgument);
  struct Later {
    gdrxMemoryInfo_t known;
    std::uint64_t more;
  } later{{}, 7};
  later.known.size = sizeof later;
  EXPECT_EQ(gdrxCommGetMemory(world[0], &later.known), gdrxSuccess);
  EXPECT_EQ(later.known.size, sizeof later);
  EXPECT_EQ(later.more, 7U);
}

TEST(ExplainedCall, IsNamedAsTheCallIs) {
  const World world(2);
  std::array<char, 2000> text{};
  const auto explain = [&](const gdrxCallShape_t& call) {
    return gdrxCommExplainCall(world[0], &call, text.data(), text.size());
  };
  gdrxCallShape_t call{};
  call.size = sizeof call;
  call.count = 1000;
  call.type = gdrxFloat32;
  for (const char* name : {"allReduce", "ALLTOALLV", "sendrecv", "Barrier", "reduceScatterv"}) {
    call.collective = name;
    EXPECT_EQ(explain(call), gdrxSuccess) << name << ": " << gdrxGetLastError(world[0]);
    EXPECT_NE(std::string(text.data()).find("\n  * "), std::string::npos) << text.data();
  }
  EXPECT_EQ(gdrxCommExplainCall(world[0], &call, text.data(), 5), gdrxSuccess);
  EXPECT_EQ(std::string(text.data()).size(), 4U);
  call.cuda = 1;
  EXPECT_EQ(explain(call), gdrxSuccess);
  EXPECT_EQ(std::string(text.data()).find("GPU buffers go through pinned host memory: "), 0U);
  for (const char* name : {"allreduc", "", "reduce"}) {  // the last: of a root that is none
    call.collective = name;
    call.root = 2;
    EXPECT_EQ(explain(call), gdrxInvalidArgument) << name;
  }
  call.collective = nullptr;
  EXPECT_EQ(explain(call), gdrxInvalidArgument);
  call.collective = "scan";
  call.op = gdrxLand;  // not of float
  EXPECT_EQ(explain(call), gdrxInvalidArgument);
  call.size = 8;
  EXPECT_EQ(explain(call), gdrxInvalidArgument);
  EXPECT_EQ(gdrxCommExplainCall(world[0], nullptr, text.data(), text.size()), gdrxInvalidArgument);
}

TEST(RouteOfACall, IsTheHostsWithoutGpus) {
  const World world(2);
  gdrxCallShape_t call{};
  call.size = sizeof call;
  call.collective = "allReduce";
  call.count = 1000;
  call.type = gdrxFloat32;
  for (const int cuda : {0, 1}) {
    const char* route = nullptr;
    call.cuda = cuda;
    EXPECT_EQ(gdrxCommRouteOfCall(world[0], &call, &route), gdrxSuccess);
    EXPECT_STREQ(route, "host");
  }
  const char* route = nullptr;
  EXPECT_EQ(gdrxCommRouteOfCall(world[0], &call, nullptr), gdrxInvalidArgument);
  EXPECT_EQ(gdrxCommRouteOfCall(world[0], nullptr, &route), gdrxInvalidArgument);
}

// As the one above, of other structs.
TEST(LastOperation, IsToldToProgramsOfALaterHeader) {
  const World world(1);
  float value = 1;
  ASSERT_EQ(gdrxAllReduce(&value, &value, 1, gdrxFloat32, gdrxSum, world[0], nullptr, nullptr),
            gdrxSuccess);
  gdrxOpInfo_t info{};
  info.registered = 7;
  info.size = sizeof info - sizeof info.registered;
  EXPECT_EQ(gdrxCommGetLastOp(world[0], &info), gdrxInvalidArgument);
  EXPECT_EQ(info.registered, 7);
  EXPECT_STREQ(info.algorithm, "");
  EXPECT_EQ(gdrxCommGetLastOp(world[0], nullptr), gdrxInvalidArgument);
  struct Later {
    gdrxOpInfo_t known;
    std::uint64_t more;
  } later{{}, 7};
  later.known.size = sizeof later;
  EXPECT_EQ(gdrxCommGetLastOp(world[0], &later.known), gdrxSuccess) << gdrxGetLastError(world[0]);
  EXPECT_STRNE(later.known.algorithm, "");
  EXPECT_EQ(later.known.size, sizeof later);
  EXPECT_EQ(later.more, 7U);
}

TEST(AsyncError, IsToldToProgramsOfALaterHeader) {
  const World world(1);
  gdrxAsyncErrorInfo_t info{0, gdrxInProgress, 7, 7};
  info.size = offsetof(gdrxAsyncErrorInfo_t, subject);
  EXPECT_EQ(gdrxCommGetAsyncErrorInfo(world[0], &info), gdrxInvalidArgument);
  EXPECT_EQ(info.result, gdrxInProgress);
  EXPECT_EQ(info.subject, 7);
  EXPECT_EQ(gdrxCommGetAsyncErrorInfo(world[0], nullptr), gdrxInvalidArgument);
  struct Later {
    gdrxAsyncErrorInfo_t known;
    std::uint64_t more;
  } later{{}, 7};
  later.known.size = sizeof later;
  EXPECT_EQ(gdrxCommGetAsyncErrorInfo(world[0], &later.known), gdrxSuccess);
  EXPECT_EQ(later.known.result, gdrxSuccess);
  EXPECT_EQ(later.known.subject, -1);
  EXPECT_EQ(later.known.size, sizeof later);
  EXPECT_EQ(later.more, 7U);
}

class WhoIsLate : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

// While a thread is blocked in the call, and from another one.
TEST_P(WhoIsLate, IsKnownWhileACollectiveHangs) {
  const auto [algorithm, transport] = GetParam();
  const World world(3, with(algorithm, transport));
  EXPECT_EQ(Look(world[0]).waiting.calls, 0);
  std::array<std::jthread, 2> blocked;
  for (const int rank : {0, 2}) {
    blocked[rank == 0 ? 0 : 1] = std::jthread([&world, rank] {
      std::vector<float> data(1000, 1.0F);
      EXPECT_EQ(gdrxAllReduce(data.data(), data.data(), data.size(), gdrxFloat32, gdrxSum,
                              world[rank], nullptr, nullptr),
                gdrxSuccess);
    });
  }
  std::this_thread::sleep_for(700ms);
  const Look first(world[0]);
  ASSERT_EQ(first.result, gdrxSuccess) << gdrxGetLastError(nullptr);
  EXPECT_EQ(first.waiting.calls, 1);
  EXPECT_GT(first.waiting.seconds, 0.2);
  EXPECT_LT(first.waiting.seconds, 30);
  EXPECT_NE(first.said().find("allReduce"), std::string::npos) << first.said();
  // Rank 1 alone is late; who has it from another rank waits for that one, as in a ring.
  std::vector<int> named;
  for (const int rank : {0, 2}) {
    for (const int late : Look(world[rank]).late()) named.push_back(late);
  }
  EXPECT_NE(std::find(named.begin(), named.end(), 1), named.end()) << first.said();
  gdrxResult_t failed = gdrxInternalError;
  EXPECT_EQ(gdrxCommGetAsyncError(world[0], &failed), gdrxSuccess);
  EXPECT_EQ(failed, gdrxSuccess);
  std::vector<float> data(1000, 1.0F);
  EXPECT_EQ(gdrxAllReduce(data.data(), data.data(), data.size(), gdrxFloat32, gdrxSum, world[1],
                          nullptr, nullptr),
            gdrxSuccess);
  for (std::jthread& thread : blocked) thread.join();
  EXPECT_EQ(Look(world[0]).waiting.calls, 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, WhoIsLate,
                         testing::Values(std::tuple{"auto", "shm"}, std::tuple{"ring", "ucx"},
                                         std::tuple{"tree", "ucx"}));

TEST(WhoIsLateInShm, IsExactlyThatRank) {
  const World world(3, with("auto", "shm"));
  std::array<std::vector<float>, 3> data;
  std::array<gdrxRequest_t, 3> requests{};
  for (std::size_t rank = 0; rank < 3; ++rank) data[rank].assign(10, 1.0F);
  const auto post = [&](std::size_t rank) {
    EXPECT_EQ(gdrxAllReduce(data[rank].data(), data[rank].data(), 10, gdrxFloat32, gdrxSum,
                            world[static_cast<int>(rank)], nullptr, &requests[rank]),
              gdrxSuccess);
  };
  post(0);
  post(2);
  gdrxRequest_t behind = nullptr;
  EXPECT_EQ(gdrxBarrier(world[0], nullptr, &behind), gdrxSuccess);
  std::this_thread::sleep_for(300ms);
  const Look look(world[0]);
  EXPECT_EQ(look.late(), std::vector<int>{1}) << look.said();
  EXPECT_EQ(look.waiting.behind, 1);
  post(1);
  for (gdrxRequest_t& request : requests) EXPECT_EQ(gdrxWait(&request), gdrxSuccess);
  EXPECT_EQ(gdrxCommAbort(world[0]), gdrxSuccess);
  EXPECT_EQ(gdrxWait(&behind), gdrxAborted);
}

TEST(WhoIsLateOfAPair, IsThePeer) {
  const World world(3, with("auto", "ucx"));
  float value = 1;
  std::array<gdrxRequest_t, 2> requests{};
  ASSERT_EQ(gdrxRecv(&value, 1, gdrxFloat32, 2, world[0], nullptr, requests.data()), gdrxSuccess);
  std::this_thread::sleep_for(200ms);
  const Look look(world[0]);
  EXPECT_EQ(look.late(), std::vector<int>{2});
  EXPECT_NE(look.said().find("from rank 2"), std::string::npos) << look.said();
  gdrxWaiting_t none{};  // no room for anything
  none.size = sizeof none;
  EXPECT_EQ(gdrxCommGetWaiting(world[0], &none), gdrxSuccess);
  EXPECT_EQ(none.rank_count, 1);
  ASSERT_EQ(gdrxSend(&value, 1, gdrxFloat32, 0, world[2], nullptr, &requests[1]), gdrxSuccess);
  for (gdrxRequest_t& request : requests) EXPECT_EQ(gdrxWait(&request), gdrxSuccess);
}

}  // namespace
}  // namespace gdrx::test
