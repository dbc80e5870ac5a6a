// SPDX-License-Identifier: Apache-2.0
// Sends and receives that a deadline, an abort, a disagreement or a communicator's end stops.
// Skipped without a GPU.
#include <array>
#include <barrier>
#include <chrono>
#include <string>
#include <thread>

#include "tests/gpu/send_recv.hpp"

namespace gdrx::gpu {
namespace {

using GpuSendRecvEnds = GpuSendRecv;

gdrxResult_t error_within(const Member& self, std::chrono::seconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  gdrxResult_t error = gdrxSuccess;
  while (error == gdrxSuccess && std::chrono::steady_clock::now() < end) {
    EXPECT_EQ(gdrxCommGetAsyncError(self.comm, &error), gdrxSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return error;
}

void expect_told(const Member& self, gdrxResult_t error, std::initializer_list<const char*> what) {
  EXPECT_EQ(error_within(self, std::chrono::seconds(5)), error);
  for (const char* part : what) {
    EXPECT_NE(std::string(gdrxGetLastError(self.comm)).find(part), std::string::npos)
        << gdrxGetLastError(self.comm) << " lacks " << part;
  }
  EXPECT_EQ(cudaStreamSynchronize(self.stream), cudaSuccess);
}

// As with NCCL: each waits for the other's receive, behind its send.
TEST_F(GpuSendRecvEnds, LargeOnesThatWaitForEachOtherEndByTheirDeadline) {
  World world(2, 0.5);
  world.each([](Member& self) {
    EXPECT_EQ(send(self, self.in, kLarge, 1 - self.rank, self.stream), gdrxSuccess);
    const gdrxResult_t second = receive(self, self.out, kLarge, 1 - self.rank, self.stream);
    EXPECT_TRUE(second == gdrxSuccess || second == gdrxTimeout);
    expect_told(self, gdrxTimeout, {"waited over 0.5", "while sending"});
  });
}

TEST_F(GpuSendRecvEnds, ADeadlineOfItsOwnEndsAGroup) {
  World world(2);
  world.each([](Member& self) {
    if (self.rank == 0) {
      gdrxCallOptions_t options = GDRX_CALL_OPTIONS_INITIALIZER;
      options.timeout_seconds = 0.3;
      EXPECT_EQ(gdrxGroupStartWith(&options), gdrxSuccess);
      EXPECT_EQ(receive(self, self.out, 3, 1, self.stream), gdrxSuccess);
      EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess);
    }
    expect_told(self, gdrxTimeout, {"rank 0", "waited over 0.3", "for rank 1 while receiving"});
  });
}

TEST_F(GpuSendRecvEnds, AnAbortEndsThem) {
  World world(2);
  std::barrier<> together(2);
  world.each([&](Member& self) {
    if (self.rank == 0) {
      EXPECT_EQ(send(self, self.in, kLarge, 1, self.stream), gdrxSuccess);
    }
    together.arrive_and_wait();
    if (self.rank == 1) {
      EXPECT_EQ(gdrxCommAbort(self.comm), gdrxSuccess);
      self.comm = nullptr;
    }
    if (self.rank == 0) expect_told(self, gdrxAborted, {"rank 1 aborted"});
  });
}

void expect_mismatch(std::size_t sent, gdrxDataType_t type, std::initializer_list<const char*> of) {
  World world(2);
  world.each([&](Member& self) {
    run(self, ring(self, 1000, true));
    gdrxGroupStart();
    if (self.rank == 0) {
      EXPECT_EQ(gdrxSend(self.in, sent, type, 1, self.comm, self.gdrx_stream(), nullptr),
                gdrxSuccess);
    } else {
      EXPECT_EQ(receive(self, self.out, 1000, 0, self.stream), gdrxSuccess);
    }
    EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess);
    expect_told(self, gdrxMismatch, of);
  });
}

TEST_F(GpuSendRecvEnds, CountsThatDifferAreToldToBoth) {
  const std::initializer_list<const char*> of = {"rank 0 sends 900 uint32 to rank 1",
                                                 "receive is of 1000 uint32"};
  expect_mismatch(900, gdrxUint32, of);
  expect_mismatch(0, gdrxUint32, {"rank 0 sends 0 uint32 to rank 1", "of 1000 uint32"});
  expect_mismatch(kLarge, gdrxUint32, {"rank 0 sends 4000000 uint32", "of 1000 uint32"});
}

TEST_F(GpuSendRecvEnds, TypesThatDifferAreToldToBoth) {
  expect_mismatch(1000, gdrxFloat32, {"rank 0 sends 1000 float to rank 1", "of 1000 uint32"});
}

TEST_F(GpuSendRecvEnds, OneToItselfThatDiffersIsToldAtOnce) {
  World world(1);
  world.each([](Member& self) {
    gdrxGroupStart();
    EXPECT_EQ(send(self, self.in, 10, 0, self.stream), gdrxSuccess);
    EXPECT_EQ(receive(self, self.out, 11, 0, self.stream), gdrxSuccess);
    EXPECT_EQ(gdrxGroupEnd(), gdrxMismatch);
    expect_told(self, gdrxMismatch, {"rank 0 sends 10 uint32 to rank 0", "of 11 uint32"});
  });
}

// A graph is held that outlives its communicator: it touches nothing, whoever has the arena.
TEST_F(GpuSendRecvEnds, AGraphOfACommunicatorThatIsGoneDoesNothing) {
  World world(2);
  std::array<cudaGraphExec_t, 2> graphs{};
  std::array<std::uint32_t*, 2> outputs{};
  std::barrier<> together(2);
  world.each([&](Member& self) {
    const Case what = ring(self, 100'000, false);
    cudaGraph_t graph = nullptr;
    prepare(self, what, self.in, self.out);
    must(cudaStreamBeginCapture(self.stream, cudaStreamCaptureModeThreadLocal), "capture");
    EXPECT_EQ(what.call(self.in, self.out), gdrxSuccess);
    gdrxGroupStart();
    for (int i = 0; i < 100; ++i) {  // these lie in the arena
      EXPECT_EQ(send(self, self.in, 1, 1 - self.rank, self.stream), gdrxSuccess);
      EXPECT_EQ(receive(self, self.out, 1, 1 - self.rank, self.stream), gdrxSuccess);
    }
    EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess);
    must(cudaStreamEndCapture(self.stream, &graph), "capture");
    must(cudaGraphInstantiate(&graphs[static_cast<std::size_t>(self.rank)], graph, 0), "graph");
    cudaGraphDestroy(graph);
    outputs[static_cast<std::size_t>(self.rank)] = self.out;
    together.arrive_and_wait();  // an end would spoil the other's capture
    EXPECT_EQ(gdrxCommDestroy(self.comm), gdrxSuccess);
    self.comm = nullptr;
  });
  World next(2);
  next.each([&](Member& self) {
    std::uint32_t* const output = outputs[static_cast<std::size_t>(self.rank)];
    upload(self, output, Words(100'000, kPoison));
    for (int i = 0; i < 3; ++i) {
      must(cudaGraphLaunch(graphs[static_cast<std::size_t>(self.rank)], self.stream), "launch");
      run(self, ring(self, 100'000, true));
      run(self, all_pairs(self, 60));
    }
    EXPECT_EQ(content(output, 100'000, self.stream), Words(100'000, kPoison));
  });
  for (cudaGraphExec_t graph : graphs) cudaGraphExecDestroy(graph);
}

}  // namespace
}  // namespace gdrx::gpu
