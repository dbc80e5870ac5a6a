// SPDX-License-Identifier: Apache-2.0
// Communicators that end beside captures, and graphs of theirs that are launched then. Ranks of one
// process. Skipped without a GPU.
#include <array>
#include <barrier>
#include <functional>
#include <thread>

#include "tests/gpu/collectives.hpp"

namespace gdrx::gpu {
namespace {

constexpr int kRanks = 2;
constexpr std::uint64_t kCount = 3000;

class GpuGraphEnds : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};

gdrxResult_t all_reduce(const Member& self, gdrxRequest_t* request = nullptr) {
  return gdrxAllReduce(self.in, self.out, kCount, gdrxUint32, gdrxSum, self.comm,
                       self.gdrx_stream(), request);
}

/// One that gdrx sees end.
void call_and_wait(const Member& self) {
  gdrxRequest_t request = nullptr;
  EXPECT_EQ(all_reduce(self, &request), gdrxSuccess);
  EXPECT_EQ(gdrxWait(&request), gdrxSuccess);
}

void fill(const Member& self, std::uint32_t value, std::uint32_t* to) {
  upload(self, to, Words(kCount, value));
}

Words content(const Member& self, const std::uint32_t* from) {
  Words got(kCount);
  must(cudaMemcpyAsync(got.data(), from, kCount * 4, cudaMemcpyDeviceToHost, self.stream), "copy");
  must(cudaStreamSynchronize(self.stream), "copy");
  return got;
}

/// Ranks whose communicators end while their threads capture a call of them.
class Ending {
 public:
  Ending() {
    world.each([&](Member& self) {
      self.ranks = kRanks;
      call_and_wait(self);
    });
  }
  ~Ending() {
    for (cudaGraphExec_t graph : graphs_) cudaGraphExecDestroy(graph);
  }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

  /// `end`: in another thread than that which captures.
  void end_while_captured(cudaStreamCaptureMode mode, const std::function<void(Member&)>& end) {
    std::barrier<> together(kRanks);
    world.each([&](Member& self) {
      together.arrive_and_wait();
      must(cudaStreamBeginCapture(self.stream, mode), "capture");
      EXPECT_EQ(all_reduce(self), gdrxSuccess) << gdrxGetLastError(self.comm);
      together.arrive_and_wait();
      std::thread([&] {
        must(cudaSetDevice(self.rank % gpu_count()), "device");
        end(self);
        self.comm = nullptr;
      }).join();
      together.arrive_and_wait();
      cudaGraph_t graph = nullptr;
      EXPECT_EQ(cudaStreamEndCapture(self.stream, &graph), cudaSuccess) << "the capture is spoilt";
      cudaGetLastError();
      together.arrive_and_wait();
      if (graph == nullptr) return;
      must(cudaGraphInstantiate(&at(self), graph, 0), "instantiate");
      cudaGraphDestroy(graph);
    });
  }

  void expect_nothing_happens() {
    world.each([&](Member& self) {
      fill(self, kPoison, self.out);
      if (at(self) != nullptr) must(cudaGraphLaunch(at(self), self.stream), "launch");
      EXPECT_EQ(content(self, self.out), Words(kCount, kPoison));
    });
  }
  /// Beside ranks of another communicator, on the memory that these had.
  void expect_another_to_work() {
    World next(kRanks);
    next.each([&](Member& self) {
      const Member& old = *members_[static_cast<std::size_t>(self.rank)];
      fill(self, static_cast<std::uint32_t>(self.rank + 1), self.in);
      for (int i = 0; i < 4; ++i) {
        if (at(old) != nullptr) must(cudaGraphLaunch(at(old), old.stream), "launch");
        EXPECT_EQ(all_reduce(self), gdrxSuccess) << gdrxGetLastError(self.comm);
      }
      must(cudaStreamSynchronize(old.stream), "synchronize");
      EXPECT_EQ(content(self, self.out), Words(kCount, 3));
    });
    expect_nothing_happens();
  }

  World world{kRanks};

 private:
  cudaGraphExec_t& at(const Member& self) {
    members_[static_cast<std::size_t>(self.rank)] = &self;
    return graphs_[static_cast<std::size_t>(self.rank)];
  }
  std::array<cudaGraphExec_t, kRanks> graphs_{};
  std::array<const Member*, kRanks> members_{};
};

constexpr cudaStreamCaptureMode kModes[] = {
    cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed};

TEST_F(GpuGraphEnds, ACommunicatorMayBeDestroyedWhileAnotherThreadCapturesItsCalls) {
  for (const cudaStreamCaptureMode mode : kModes) {
    Ending ending;
    ending.end_while_captured(
        mode, [](Member& self) { EXPECT_EQ(gdrxCommDestroy(self.comm), gdrxSuccess); });
    ending.expect_nothing_happens();
    ending.expect_another_to_work();
  }
}

TEST_F(GpuGraphEnds, OneThatFailedMayBeDestroyedWhileAnotherThreadCapturesItsCalls) {
  for (const cudaStreamCaptureMode mode : kModes) {
    Ending ending;
    ending.end_while_captured(mode, [](Member& self) {
      if (self.rank == 0) {
        EXPECT_EQ(gdrxCommAbort(self.comm), gdrxSuccess);
      }
      gdrxResult_t error = gdrxSuccess;
      while (error == gdrxSuccess) gdrxCommGetAsyncError(self.comm, &error);
      EXPECT_EQ(gdrxCommDestroy(self.comm), gdrxAborted);
    });
    ending.expect_nothing_happens();
    ending.expect_another_to_work();
  }
}

using Graphs = std::array<cudaGraphExec_t, kRanks>;

/// Of a call of each rank. Nobody goes on before all captures have ended: the end of a communicator
/// that has graphs spoils them.
Graphs capture(World& world) {
  Graphs graphs{};
  world.each([&](Member& self) {
    self.ranks = kRanks;
    fill(self, static_cast<std::uint32_t>(self.rank + 1), self.in);
    cudaGraph_t graph = nullptr;
    must(cudaStreamBeginCapture(self.stream, cudaStreamCaptureModeThreadLocal), "capture");
    EXPECT_EQ(all_reduce(self), gdrxSuccess);
    must(cudaStreamEndCapture(self.stream, &graph), "capture");
    must(cudaGraphInstantiate(&graphs[static_cast<std::size_t>(self.rank)], graph, 0),
         "instantiate");
    cudaGraphDestroy(graph);
  });
  return graphs;
}

void expect_nothing_of(World& world, const Graphs& graphs) {
  world.each([&](Member& self) {
    fill(self, kPoison, self.out);
    must(cudaGraphLaunch(graphs[static_cast<std::size_t>(self.rank)], self.stream), "launch");
    EXPECT_EQ(content(self, self.out), Words(kCount, kPoison));
  });
  for (cudaGraphExec_t graph : graphs) cudaGraphExecDestroy(graph);
}

// A graph that runs is waited for, and is nothing afterwards.
TEST_F(GpuGraphEnds, AGraphThatRanDoesNothingAfterItsCommunicator) {
  World world(kRanks);
  const Graphs graphs = capture(world);
  world.each([&](Member& self) {
    must(cudaGraphLaunch(graphs[static_cast<std::size_t>(self.rank)], self.stream), "launch");
    EXPECT_EQ(gdrxCommDestroy(self.comm), gdrxSuccess);
    self.comm = nullptr;
    EXPECT_EQ(cudaStreamQuery(self.stream), cudaSuccess);
    EXPECT_EQ(content(self, self.out), Words(kCount, 3));
  });
  expect_nothing_of(world, graphs);
}

// Its meeting is over, and so is what graphs hold.
TEST_F(GpuGraphEnds, AGraphOfACommunicatorThatIsFinalizedDoesNothing) {
  World world(kRanks);
  const Graphs graphs = capture(world);
  world.each([](Member& self) { EXPECT_EQ(gdrxCommFinalize(self.comm, nullptr), gdrxSuccess); });
  expect_nothing_of(world, graphs);
}

}  // namespace
}  // namespace gdrx::gpu
