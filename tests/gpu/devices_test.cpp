// SPDX-License-Identifier: Apache-2.0
// Which GPU a rank has, and what is said where it has none. Ranks of one process. Skipped without a
// GPU.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "gdrx/gdrx.h"
#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {
namespace {

constexpr int kRanks = 2;
constexpr std::uint64_t kCount = 10'000;

class GpuDevices : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
  void TearDown() override {
    for (gdrxComm_t comm : comms_) gdrxCommDestroy(comm);
  }

  /// What carried an allReduce of GPU memory, each rank in a thread on devices[rank].
  std::string transport_on(const std::array<int, kRanks>& devices) {
    std::vector<std::thread> threads;
    std::array<std::string, kRanks> used;
    for (std::size_t rank = 0; rank < comms_.size(); ++rank) {
      threads.emplace_back([&, rank] {
        must(cudaSetDevice(devices[rank]), "cudaSetDevice");
        used[rank] = transport_of_call(comms_[rank], static_cast<std::uint32_t>(rank));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(used[0], used[1]);
    return used[0];
  }
  static std::string transport_of_call(gdrxComm_t comm, std::uint32_t rank) {
    cudaStream_t stream = nullptr;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    auto* data = allocate<std::uint32_t>(kCount);
    const std::vector<std::uint32_t> mine(kCount, 20 + rank);
    must(cudaMemcpy(data, mine.data(), kCount * 4, cudaMemcpyHostToDevice), "copy");
    EXPECT_EQ(gdrxAllReduce(data, data, kCount, gdrxUint32, gdrxSum, comm,
                            reinterpret_cast<gdrxStream_t>(stream), nullptr),
              gdrxSuccess)
        << gdrxGetLastError(comm);
    must(cudaStreamSynchronize(stream), "synchronize");
    std::vector<std::uint32_t> got(kCount);
    must(cudaMemcpy(got.data(), data, kCount * 4, cudaMemcpyDeviceToHost), "copy");
    EXPECT_EQ(got, std::vector<std::uint32_t>(kCount, 41));
    cudaFree(data);
    cudaStreamDestroy(stream);
    gdrxOpInfo_t info{};
    info.size = sizeof info;
    EXPECT_EQ(gdrxCommGetLastOp(comm, &info), gdrxSuccess);
    return info.transport;
  }

  std::array<gdrxComm_t, kRanks> comms_{};
};

TEST_F(GpuDevices, AllRanksOfAProcessAreOnTheGpuThatIsCurrentWhereTheyAreMade) {
  const int device = gpu_count() - 1;
  must(cudaSetDevice(device), "cudaSetDevice");
  must(cudaFree(nullptr), "context");
  ASSERT_EQ(gdrxCommInitAll(comms_.data(), kRanks, nullptr), gdrxSuccess);
  EXPECT_EQ(transport_on({device, device}), "gpu");
}

}  // namespace
}  // namespace gdrx::gpu
