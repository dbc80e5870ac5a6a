// SPDX-License-Identifier: Apache-2.0
// What a communicator's graphs keep of a GPU, as another process sees it that has rows there. On
// emulated GPUs: others may use real ones.
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "collectives/gpu/room_of_gpu.hpp"
#include "tests/gpu/collectives.hpp"

namespace gdrx::gpu {
namespace {

constexpr int kProcessors = 61;
constexpr int kRoomOfAll = kProcessors - 1;
constexpr std::size_t kCount = 1 << 16;  // whose call has more blocks than a third of the GPU

class GpuCrowd : public testing::Test {
 protected:
  GpuCrowd() { setenv("GDRX_EMULATED_PROCESSORS", "61", 1); }
  ~GpuCrowd() override { unsetenv("GDRX_EMULATED_PROCESSORS"); }

  /// One more communicator on the first GPU.
  void come() {
    cudaDeviceProp properties{};
    must(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    std::array<std::uint8_t, 16> device{};
    std::memcpy(device.data(), properties.uuid.bytes, device.size());
    others_.push_back(GpuShare::take(device, kProcessors, 1000 + others_.size()));
  }
  /// So many have come.
  void come(std::size_t count) {
    while (others_.size() < count) come();
  }
  int share() const { return others_.front()->most(); }

  std::vector<std::shared_ptr<GpuShare>> others_;
};

/// A call of each rank, as a graph.
class Graphs {
 public:
  explicit Graphs(World& world) : world_(world), all_(2) {
    world.each([&](Member& self) {
      cudaGraph_t graph = nullptr;
      must(cudaStreamBeginCapture(self.stream, cudaStreamCaptureModeThreadLocal), "capture");
      EXPECT_EQ(gdrxAllReduce(self.in, self.out, kCount, gdrxUint32, gdrxSum, self.comm,
                              self.gdrx_stream(), nullptr),
                gdrxSuccess);
      must(cudaStreamEndCapture(self.stream, &graph), "capture");
      must(cudaGraphInstantiate(&all_[static_cast<std::size_t>(self.rank)], graph, 0), "graph");
      must(cudaGraphDestroy(graph), "graph");
    });
  }
  ~Graphs() { destroy(); }
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;
  void destroy() {
    for (cudaGraphExec_t& graph : all_) {
      if (graph != nullptr) cudaGraphExecDestroy(graph);
      graph = nullptr;
    }
  }
  void launch() {
    world_.each([&](Member& self) {
      must(cudaGraphLaunch(all_[static_cast<std::size_t>(self.rank)], self.stream), "launch");
      must(cudaStreamSynchronize(self.stream), "synchronize");
    });
  }

 private:
  World& world_;
  std::vector<cudaGraphExec_t> all_;
};

// Of three ranks the first alone is on a crowded GPU: its blocks are fewer than its peers'.
TEST_F(GpuCrowd, WhatAddsInTheOrderOfRanksGoesOnInTurns) {
  World world(3);
  for (const std::size_t others : {2U, 7U, 40U}) {
    come(others);
    world.each([](Member& self) {
      for (const bool own : {true, false}) {
        Case what;
        append(what.input, self.rank, 0, kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
          std::uint32_t sum = 0;
          for (int r = 0; r < self.rank + (own ? 1 : 0); ++r) sum += word(r, 0, i);
          what.expected.push_back(sum);
        }
        if (!own && self.rank == 0) what.expected.assign(kCount, kPoison);
        what.call = [&](const std::uint32_t* in, std::uint32_t* out) {
          const auto scan = own ? gdrxScan : gdrxExscan;
          return scan(in, out, kCount, gdrxUint32, gdrxSum, self.comm, self.gdrx_stream(), nullptr);
        };
        run(self, what);
      }
    });
  }
}

TEST_F(GpuCrowd, AllToAllGoesOnInTurns) {
  World world(3);
  for (const std::size_t others : {2U, 7U, 40U}) {
    come(others);
    world.each([](Member& self) {
      Case what;
      for (int to = 0; to < 3; ++to) append(what.input, self.rank, to, kCount);
      for (int from = 0; from < 3; ++from) append(what.expected, from, self.rank, kCount);
      what.call = [&](const std::uint32_t* in, std::uint32_t* out) {
        return gdrxAllToAll(in, out, kCount, gdrxUint32, self.comm, self.gdrx_stream(), nullptr);
      };
      run(self, what);
    });
  }
}

// Whom the rank passes on to waits for each of its channels.
TEST_F(GpuCrowd, ALargeBroadcastIsPassedOnByWhateverBlocksThereAre) {
  constexpr std::size_t kLarge = 2'000'000;
  World world(3);
  for (const std::size_t others : {2U, 4U, 6U, 9U, 40U}) {
    come(others);
    world.each([](Member& self) {
      Case what;
      append(what.input, self.rank, 0, kLarge);
      append(what.expected, 1, 0, kLarge);
      what.call = [&](const std::uint32_t* in, std::uint32_t* out) {
        return gdrxBroadcast(in, out, kLarge, gdrxUint32, 1, self.comm, self.gdrx_stream(),
                             nullptr);
      };
      run(self, what);
    });
  }
}

TEST_F(GpuCrowd, AGraphKeepsItsBlocksUntilItIsGone) {
  World world(2);
  come();
  EXPECT_EQ(share(), 0) << "of two";
  come();
  EXPECT_EQ(share(), kRoomOfAll / 3);
  Graphs graphs(world);
  graphs.launch();
  for (int i = 0; i < 3; ++i) come();
  EXPECT_EQ(share(), (kRoomOfAll - kRoomOfAll / 3) / 5);
  graphs.destroy();
  EXPECT_EQ(share(), kRoomOfAll / 6);
}

TEST_F(GpuCrowd, AGraphThatOutlivesItsCommunicatorKeepsNothing) {
  auto world = std::make_unique<World>(2);
  for (int i = 0; i < 2; ++i) come();
  Graphs graphs(*world);
  EXPECT_EQ(share(), kRoomOfAll / 3);
  world.reset();
  EXPECT_EQ(share(), 0) << "of two";
  graphs.destroy();
  EXPECT_EQ(share(), 0) << "of two";
}

TEST_F(GpuCrowd, WhatWasCapturedBesideOneOtherIsKeptUntilTheCommunicatorEnds) {
  auto world = std::make_unique<World>(2);
  Graphs graphs(*world);
  for (int i = 0; i < 3; ++i) come();
  const int kept = share();
  EXPECT_LT(kept, kRoomOfAll / 4);
  graphs.destroy();
  EXPECT_EQ(share(), kept);
  world.reset();
  EXPECT_EQ(share(), kRoomOfAll / 3);
}

TEST_F(GpuCrowd, ACommunicatorOfOneRankHasNoRow) {
  const World world(1);
  for (int i = 0; i < 2; ++i) come();
  EXPECT_EQ(share(), 0);
}

}  // namespace
}  // namespace gdrx::gpu
