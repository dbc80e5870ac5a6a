// SPDX-License-Identifier: Apache-2.0
// Ends beside what the GPU runs for others, which does not end. Skipped without a GPU.
#include <algorithm>
#include <array>
#include <chrono>

#include "tests/gpu/collectives.hpp"
#include "tests/gpu/delay.hpp"

namespace gdrx::gpu {
namespace {

using Clock = std::chrono::steady_clock;

class GpuBusyEnds : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
    must(cudaSetDevice(0), "cudaSetDevice");
    load_delays();
  }
};

// Of several communicators none is waited for alone.
TEST_F(GpuBusyEnds, AGroupOfSeveralCommunicatorsIsGivenUp) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 0.3;
  std::array<gdrxComm_t, 2> comms{};
  for (gdrxComm_t& comm : comms) ASSERT_EQ(gdrxCommInitAll(&comm, 1, &config), gdrxSuccess);
  auto* const data = allocate<std::uint32_t>(1000);
  enqueue_delay(5'000'000'000, nullptr);
  const auto begin = Clock::now();
  gdrxGroupStart();
  for (gdrxComm_t comm : comms) {
    EXPECT_EQ(gdrxAllReduce(data, data, 1000, gdrxUint32, gdrxSum, comm, nullptr, nullptr),
              gdrxSuccess);
  }
  EXPECT_EQ(gdrxGroupEnd(), gdrxTimeout);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(4));
  for (gdrxComm_t comm : comms) EXPECT_EQ(gdrxCommDestroy(comm), gdrxTimeout);
  must(cudaDeviceSynchronize(), "synchronize");
  cudaFree(data);
}

// Its kernels have ended, which nobody has told it. The least of several: others may have the
// processor.
TEST_F(GpuBusyEnds, AFailedCommunicatorIsGoneAtOnce) {
  std::array<Clock::duration, 2> least{Clock::duration::max(), Clock::duration::max()};
  constexpr std::chrono::milliseconds kMost{95};
  for (int round = 0; round < 10 && *std::max_element(least.begin(), least.end()) >= kMost;
       ++round) {
    World world(2);
    std::array<cudaStream_t, 2> busy{};
    world.each([&](Member& self) {
      cudaStream_t& stream = busy[static_cast<std::size_t>(self.rank)];
      must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
      EXPECT_EQ(gdrxAllReduce(self.in, self.out, 1000, gdrxUint32, gdrxSum, self.comm,
                              self.gdrx_stream(), nullptr),
                gdrxSuccess);
      must(cudaStreamSynchronize(self.stream), "synchronize");
      enqueue_delay(1'500'000'000, stream);
    });
    world.each([&](Member& self) {
      const auto rank = static_cast<std::size_t>(self.rank);
      EXPECT_EQ(gdrxCommAbort(self.comm), gdrxSuccess);
      const auto begin = Clock::now();
      EXPECT_EQ(gdrxCommDestroy(self.comm), gdrxAborted);
      least[rank] = std::min<Clock::duration>(least[rank], Clock::now() - begin);
      self.comm = nullptr;
      must(cudaStreamDestroy(busy[rank]), "stream");
    });
  }
  for (const Clock::duration took : least) EXPECT_LT(took, kMost);
}

}  // namespace
}  // namespace gdrx::gpu
