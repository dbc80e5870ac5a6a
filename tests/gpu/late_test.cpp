// SPDX-License-Identifier: Apache-2.0
// Who is late, while a kernel waits and long before its deadline: ranks of one process, a thread
// each. Skipped without a GPU.
#include <array>
#include <barrier>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/comm/look.hpp"
#include "tests/gpu/send_recv.hpp"

namespace gdrx::gpu {
namespace {

using namespace std::chrono_literals;

using GpuLate = GpuSendRecv;

struct Look : test::Look {
  explicit Look(gdrxComm_t comm) : test::Look(comm) {
    EXPECT_EQ(result, gdrxSuccess) << gdrxGetLastError(nullptr);
  }
};

gdrxResult_t sum(const Member& self) {
  return gdrxAllReduce(self.in, self.out, 1000, gdrxUint32, gdrxSum, self.comm, self.gdrx_stream(),
                       nullptr);
}

void expect_nothing_waits(const Member& self) {
  must(cudaStreamSynchronize(self.stream), "synchronize");
  const Look after(self.comm);
  EXPECT_EQ(after.waiting.calls, 0) << after.said();
  EXPECT_EQ(after.waiting.rank_count, 0);
}

TEST_F(GpuLate, ARankThatDoesNotEnterACollectiveIsNamedByAllOthers) {
  World world(3);
  std::barrier<> looked(3);
  world.each([&](Member& self) {
    ASSERT_EQ(sum(self), gdrxSuccess);
    expect_nothing_waits(self);
    looked.arrive_and_wait();
    if (self.rank != 1) {
      ASSERT_EQ(sum(self), gdrxSuccess);
      std::this_thread::sleep_for(500ms);
      for (int i = 0; i < 3; ++i) {  // one look close to another
        const Look look(self.comm);
        EXPECT_EQ(look.late(), std::vector<int>{1}) << look.said();
        EXPECT_EQ(look.waiting.calls, 1);
        EXPECT_GT(look.waiting.seconds, 0.1);
        EXPECT_LT(look.waiting.seconds, 20);
        EXPECT_NE(look.said().find("allReduce of 1000 uint32"), std::string::npos) << look.said();
      }
    }
    looked.arrive_and_wait();
    if (self.rank == 1) {
      ASSERT_EQ(sum(self), gdrxSuccess);
    }
    expect_nothing_waits(self);
  });
}

TEST_F(GpuLate, AReceiversSenderIsNamed) {
  World world(3);
  std::barrier<> looked(3);
  world.each([&](Member& self) {
    if (self.rank == 0) {
      ASSERT_EQ(receive(self, self.out, 100, 2, self.stream), gdrxSuccess);
      std::this_thread::sleep_for(300ms);
      const Look look(self.comm);
      EXPECT_EQ(look.late(), std::vector<int>{2}) << look.said();
      EXPECT_NE(look.said().find("messages"), std::string::npos) << look.said();
      EXPECT_NE(look.said().find("receiving"), std::string::npos) << look.said();
    }
    looked.arrive_and_wait();
    if (self.rank == 2) {
      ASSERT_EQ(send(self, self.in, 100, 0, self.stream), gdrxSuccess);
    }
    expect_nothing_waits(self);
  });
}

// No host has called what a graph repeats.
TEST_F(GpuLate, ARankThatDoesNotLaunchItsGraphIsNamed) {
  World world(2);
  std::barrier<> looked(2);
  world.each([&](Member& self) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t repeated = nullptr;
    must(cudaStreamBeginCapture(self.stream, cudaStreamCaptureModeThreadLocal), "capture");
    ASSERT_EQ(sum(self), gdrxSuccess);
    must(cudaStreamEndCapture(self.stream, &graph), "end of capture");
    must(cudaGraphInstantiate(&repeated, graph, 0), "instantiate");
    looked.arrive_and_wait();
    if (self.rank == 0) {
      must(cudaGraphLaunch(repeated, self.stream), "launch");
      std::this_thread::sleep_for(300ms);
      const Look look(self.comm);
      EXPECT_EQ(look.late(), std::vector<int>{1}) << look.said();
    }
    looked.arrive_and_wait();
    if (self.rank == 1) must(cudaGraphLaunch(repeated, self.stream), "launch");
    expect_nothing_waits(self);
    must(cudaGraphExecDestroy(repeated), "destroy");
    must(cudaGraphDestroy(graph), "destroy");
  });
}

}  // namespace
}  // namespace gdrx::gpu
