// SPDX-License-Identifier: Apache-2.0
// Sends and receives that come to their end. Skipped without a GPU.
#include <array>
#include <string>

#include "tests/gpu/send_recv.hpp"

namespace gdrx::gpu {
namespace {

TEST_F(GpuSendRecv, ExchangesOfAGroupRunOnTheGpus) {
  for (const int n : counts_of_ranks()) {
    World world(n);
    world.each([](Member& self) {
      for (const std::uint64_t count : {0, 1, 2, 1000, 100'001, 1'500'000}) {
        run(self, ring(self, count, self.rank % 2 == 0));
        if (count <= 100'001) run(self, ring(self, count, true), 1);
      }
      for (const std::size_t unit : {0, 3, 20'000}) run(self, all_pairs(self, unit));
    });
  }
}

TEST_F(GpuSendRecv, RunFromGraphs) {
  for (const int n : {2, 3}) {
    World world(n);
    world.each([](Member& self) {
      run_captured(self, ring(self, 1'500'000, self.rank == 0));
      run_captured(self, all_pairs(self, 777));
      run(self, ring(self, 1000, true));
    });
  }
}

// What a rank sends on one stream and receives on another is one group all the same: each is behind
// what its own stream had.
TEST_F(GpuSendRecv, StreamsOfAGroupMayDiffer) {
  World world(2);
  world.each([](Member& self) {
    cudaStream_t other = nullptr;
    must(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "stream");
    std::uint32_t* const late = self.in + kLarge;
    for (std::uint32_t round = 0; round < 4; ++round) {
      upload(self, late, from(self.rank, kLarge, round));
      upload(self, self.in, Words(kLarge, kPoison));
      // The data is there when the other stream has got so far; the memory is free as late.
      cudaStream_t first = round % 2 == 0 ? self.stream : other;
      cudaStream_t second = round % 2 == 0 ? other : self.stream;
      enqueue_delay(20'000'000, second);
      must(cudaMemcpyAsync(self.in, late, kLarge * 4, cudaMemcpyDeviceToDevice, second), "copy");
      gdrxGroupStart();
      EXPECT_EQ(receive(self, self.out, kLarge, 1 - self.rank, first), gdrxSuccess);
      EXPECT_EQ(send(self, self.in, kLarge, 1 - self.rank, second), gdrxSuccess);
      EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(self.comm);
      must(cudaMemsetAsync(self.in, 0, kLarge * 4, second), "memset");
      EXPECT_EQ(content(self.out, kLarge, first), from(1 - self.rank, kLarge, round));
      must(cudaStreamSynchronize(second), "synchronize");
    }
    cudaStreamDestroy(other);
  });
}

TEST_F(GpuSendRecv, AGroupIsCapturedAsAWholeOrNotAtAll) {
  World world(2);
  world.each([](Member& self) {
    cudaStream_t other = nullptr;
    must(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "stream");
    cudaGraph_t graph = nullptr;
    must(cudaStreamBeginCapture(self.stream, cudaStreamCaptureModeThreadLocal), "capture");
    gdrxGroupStart();
    EXPECT_EQ(send(self, self.in, 10, 1 - self.rank, self.stream), gdrxSuccess);
    EXPECT_EQ(receive(self, self.out, 10, 1 - self.rank, other), gdrxSuccess);
    EXPECT_EQ(gdrxGroupEnd(), gdrxUnsupported);
    EXPECT_NE(std::string(gdrxGetLastError(self.comm)).find("captured together"),
              std::string::npos);
    must(cudaStreamEndCapture(self.stream, &graph), "the capture goes on");
    cudaGraphDestroy(graph);
    run(self, ring(self, 1000, true));
    cudaStreamDestroy(other);
  });
}

TEST_F(GpuSendRecv, RequestsEndWithTheirMessages) {
  World world(3);
  world.each([](Member& self) {
    for (std::uint32_t round = 0; round < 3; ++round) {
      upload(self, self.in, from(self.rank, 70'000, round));
      std::array<gdrxRequest_t, 4> requests{};
      const int next = (self.rank + 1) % 3, last = (self.rank + 2) % 3;
      gdrxGroupStart();
      EXPECT_EQ(send(self, self.in, 70'000, next, self.stream, &requests[0]), gdrxSuccess);
      EXPECT_EQ(receive(self, self.out, 70'000, last, self.stream, &requests[1]), gdrxSuccess);
      EXPECT_EQ(send(self, self.in, 9, self.rank, self.stream, &requests[2]), gdrxSuccess);
      EXPECT_EQ(receive(self, self.out + 80'000, 9, self.rank, self.stream, &requests[3]),
                gdrxSuccess);
      EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(self.comm);
      for (gdrxRequest_t& request : requests) {
        ASSERT_NE(request, nullptr);
        EXPECT_EQ(gdrxWait(&request), gdrxSuccess) << gdrxGetLastError(self.comm);
      }
      EXPECT_EQ(content(self.out, 70'000, self.stream), from(last, 70'000, round));
      EXPECT_EQ(content(self.out + 80'000, 9, self.stream), from(self.rank, 9, round));
      check_runs_on_gpu(self);
    }
  });
}

// One after the other and not in a group: small ones find room.
TEST_F(GpuSendRecv, SmallMessagesWaitForNoReceive) {
  World world(2);
  world.each([](Member& self) {
    for (const std::uint64_t count : {2, 2000, 30'000}) {
      upload(self, self.in, from(self.rank, count, 1));
      for (int call = 0; call < 3; ++call) {
        EXPECT_EQ(send(self, self.in, count, 1 - self.rank, self.stream), gdrxSuccess);
        EXPECT_EQ(receive(self, self.out, count, 1 - self.rank, self.stream), gdrxSuccess);
      }
      EXPECT_EQ(content(self.out, count, self.stream), from(1 - self.rank, count, 1));
    }
    check_runs_on_gpu(self);
  });
}

// Whatever else a group has, and wherever, on each rank.
TEST_F(GpuSendRecv, CollectivesOfTheGroupComeFirst) {
  World world(2);
  world.each([](Member& self) {
    std::uint32_t* const sum = self.in + kLarge;
    for (std::uint32_t round = 0; round < 3; ++round) {
      upload(self, self.in, from(self.rank, kLarge, round));
      upload(self, sum, Words(1000, 1));
      const auto add = [&] {
        EXPECT_EQ(gdrxAllReduce(sum, sum, 1000, gdrxUint32, gdrxSum, self.comm, self.gdrx_stream(),
                                nullptr),
                  gdrxSuccess);
      };
      gdrxGroupStart();
      if (self.rank == 0) add();
      EXPECT_EQ(send(self, self.in, kLarge, 1 - self.rank, self.stream), gdrxSuccess);
      EXPECT_EQ(receive(self, self.out, kLarge, 1 - self.rank, self.stream), gdrxSuccess);
      if (self.rank == 1) add();
      EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(self.comm);
      EXPECT_EQ(content(self.out, kLarge, self.stream), from(1 - self.rank, kLarge, round));
      EXPECT_EQ(content(sum, 1000, self.stream), Words(1000, 2));
    }
  });
}

// As before there were kernels for it: by the host, in any order.
TEST_F(GpuSendRecv, WithoutAStreamTheHostCarriesThem) {
  World world(2);
  world.each([](Member& self) {
    upload(self, self.in, from(self.rank, kLarge, 1));
    std::array<gdrxRequest_t, 2> requests{};
    EXPECT_EQ(send(self, self.in, kLarge, 1 - self.rank, nullptr, &requests[0]), gdrxSuccess);
    EXPECT_EQ(receive(self, self.out, kLarge, 1 - self.rank, nullptr, &requests[1]), gdrxSuccess);
    for (gdrxRequest_t& request : requests) {
      EXPECT_EQ(gdrxWait(&request), gdrxSuccess) << gdrxGetLastError(self.comm);
    }
    EXPECT_EQ(content(self.out, kLarge, self.stream), from(1 - self.rank, kLarge, 1));
    run(self, ring(self, 1000, true));
  });
}

// A send to oneself that its group does not receive is the host's, as is what is matched with it.
TEST_F(GpuSendRecv, WhatARankSendsToItselfNeedNotBeReceivedInItsGroup) {
  World world(2);
  world.each([](Member& self) {
    upload(self, self.in, from(self.rank, 300, 1));
    std::array<gdrxRequest_t, 4> requests{};
    EXPECT_EQ(send(self, self.in, 100, self.rank, self.stream, &requests[0]), gdrxSuccess);
    gdrxGroupStart();  // gets what was sent before
    EXPECT_EQ(send(self, self.in + 100, 100, self.rank, self.stream, &requests[1]), gdrxSuccess);
    EXPECT_EQ(receive(self, self.out, 100, self.rank, self.stream, &requests[2]), gdrxSuccess);
    EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(self.comm);
    EXPECT_EQ(receive(self, self.out + 100, 100, self.rank, self.stream, &requests[3]),
              gdrxSuccess);
    for (gdrxRequest_t& request : requests) {
      EXPECT_EQ(gdrxWait(&request), gdrxSuccess) << gdrxGetLastError(self.comm);
    }
    Words expected = from(self.rank, 300, 1);
    expected.resize(200);
    EXPECT_EQ(content(self.out, 200, self.stream), expected);
    run(self, all_pairs(self, 40));
  });
}

}  // namespace
}  // namespace gdrx::gpu
