// SPDX-License-Identifier: Apache-2.0
// Graphs that are launched after the end of their communicator. Ranks of one process. Skipped
// without a GPU.
#include <array>

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

void fill(const Member& self, std::uint32_t value, std::uint32_t* to) {
  upload(self, to, Words(kCount, value));
}

Words content(const Member& self, const std::uint32_t* from) {
  Words got(kCount);
  must(cudaMemcpyAsync(got.data(), from, kCount * 4, cudaMemcpyDeviceToHost, self.stream), "copy");
  must(cudaStreamSynchronize(self.stream), "copy");
  return got;
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
