// SPDX-License-Identifier: Apache-2.0
// Which GPU a rank has, and what is said where it has none. Ranks of one process. Skipped without a
// GPU.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gdrx/gdrx.h"
#include "tests/gpu/ranks.hpp"
#include "tests/gpu/segments.hpp"

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
    on_threads([&](std::size_t rank) { gdrxCommDestroy(comms_[rank]); });
  }

  static void use_device(int device) {
    must(cudaSetDevice(device), "cudaSetDevice");
    must(cudaFree(nullptr), "context");
  }
  static void on_threads(const std::function<void(std::size_t rank)>& body) {
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < kRanks; ++rank) threads.emplace_back(body, rank);
    for (std::thread& thread : threads) thread.join();
  }

  /// What carried an allReduce of GPU memory, each rank in a thread on devices[rank].
  std::string transport_on(const std::array<int, kRanks>& devices) {
    std::array<std::uint32_t*, kRanks> data{};
    on_threads([&](std::size_t rank) {  // it waits for the GPU, on which a kernel may wait for it
      use_device(devices[rank]);
      data[rank] = allocate<std::uint32_t>(kCount);
    });
    std::array<std::string, kRanks> used;
    on_threads([&](std::size_t rank) {
      use_device(devices[rank]);
      used[rank] = transport_of_call(comms_[rank], static_cast<std::uint32_t>(rank), data[rank]);
    });
    for (std::uint32_t* one : data) cudaFree(one);
    EXPECT_EQ(used[0], used[1]);
    return used[0];
  }
  static std::string transport_of_call(gdrxComm_t comm, std::uint32_t rank, std::uint32_t* data) {
    cudaStream_t stream = nullptr;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    const std::vector<std::uint32_t> mine(kCount, 20 + rank);
    must(cudaMemcpyAsync(data, mine.data(), kCount * 4, cudaMemcpyHostToDevice, stream), "copy");
    EXPECT_EQ(gdrxAllReduce(data, data, kCount, gdrxUint32, gdrxSum, comm,
                            reinterpret_cast<gdrxStream_t>(stream), nullptr),
              gdrxSuccess)
        << gdrxGetLastError(comm);
    must(cudaStreamSynchronize(stream), "synchronize");
    std::vector<std::uint32_t> got(kCount);
    must(cudaMemcpy(got.data(), data, kCount * 4, cudaMemcpyDeviceToHost), "copy");
    EXPECT_EQ(got, std::vector<std::uint32_t>(kCount, 41));
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
  use_device(device);
  ASSERT_EQ(gdrxCommInitAll(comms_.data(), kRanks, nullptr), gdrxSuccess);
  EXPECT_EQ(transport_on({device, device}), "gpu");
}

TEST_F(GpuDevices, EachRankIsOnTheGpuThatTheListHasForIt) {
  must(cudaSetDevice(0), "cudaSetDevice");
  const int last = gpu_count() - 1;
  const std::array<int, kRanks> devices{last, 0};
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.gpus = devices.data();
  ASSERT_EQ(gdrxCommInitAll(comms_.data(), kRanks, &config), gdrxSuccess)
      << gdrxGetLastError(nullptr);
  int current = -1;
  must(cudaGetDevice(&current), "cudaGetDevice");
  EXPECT_EQ(current, 0);
  EXPECT_EQ(transport_on(devices), "gpu");
}

TEST_F(GpuDevices, AThreadThatHasUsedNoGpuIsGivenTheOneThatItNames) {
  gdrxUniqueId id{};
  ASSERT_EQ(gdrxGetUniqueId(&id), gdrxSuccess);
  const int device = gpu_count() - 1;
  on_threads([&](std::size_t rank) {
    gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
    config.gpus = &device;
    EXPECT_EQ(gdrxCommInitRank(&comms_[rank], kRanks, id, static_cast<int>(rank), &config),
              gdrxSuccess)
        << gdrxGetLastError(nullptr);
    EXPECT_FALSE(current_device()) << "it has been left a context";
  });
  EXPECT_EQ(transport_on({device, device}), "gpu");
}

TEST_F(GpuDevices, AGpuThatIsNotThereIsRefusedAtOnceAndOnEveryRank) {
  gdrxUniqueId id{};
  ASSERT_EQ(gdrxGetUniqueId(&id), gdrxSuccess);
  const auto begin = std::chrono::steady_clock::now();
  on_threads([&](std::size_t rank) {
    gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
    const int none = 1000;
    if (rank == 1) config.gpus = &none;
    EXPECT_EQ(gdrxCommInitRank(&comms_[rank], kRanks, id, static_cast<int>(rank), &config),
              gdrxInvalidArgument);
    const std::string why = gdrxGetLastError(nullptr);
    EXPECT_NE(why.find("rank 1 cannot have the GPU"), std::string::npos) << why;
    EXPECT_NE(why.find("GPU 1000 is none of the"), std::string::npos) << why;
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST_F(GpuDevices, CallsThatCannotUseTheGpusSayWhyOnce) {
  gdrxUniqueId id{};
  ASSERT_EQ(gdrxGetUniqueId(&id), gdrxSuccess);
  testing::internal::CaptureStderr();
  on_threads([&](std::size_t rank) {
    if (rank == 0) use_device(0);
    ASSERT_EQ(gdrxCommInitRank(&comms_[rank], kRanks, id, static_cast<int>(rank), nullptr),
              gdrxSuccess);
  });
  EXPECT_NE(transport_on({0, 0}), "gpu");
  EXPECT_NE(transport_on({0, 0}), "gpu");
  const std::string said = testing::internal::GetCapturedStderr();
  const std::string reason = "goes through host memory: rank 1: no CUDA context was current";
  const std::size_t first = said.find(reason);
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("goes through host memory", first + reason.size()), std::string::npos)
      << said;
}

// One thread posts for all ranks, in no stream: their kernels would stand in one default stream.
TEST_F(GpuDevices, RanksThatShareAGpuNeedNoStreamsOfTheirOwn) {
  use_device(0);
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 5;
  ASSERT_EQ(gdrxCommInitAll(comms_.data(), kRanks, &config), gdrxSuccess);
  auto* data = allocate<std::uint32_t>(kRanks * kCount);
  const std::vector<std::uint32_t> ones(kRanks * kCount, 1);
  must(cudaMemcpy(data, ones.data(), ones.size() * 4, cudaMemcpyHostToDevice), "copy");
  std::array<gdrxRequest_t, kRanks> requests{};
  for (std::size_t rank = 0; rank < comms_.size(); ++rank) {
    auto* const mine = data + rank * kCount;
    EXPECT_EQ(gdrxAllReduce(mine, mine, kCount, gdrxUint32, gdrxSum, comms_[rank], nullptr,
                            &requests[rank]),
              gdrxSuccess)
        << gdrxGetLastError(comms_[rank]);
  }
  for (std::size_t rank = 0; rank < comms_.size(); ++rank) {
    EXPECT_EQ(gdrxWait(&requests[rank]), gdrxSuccess) << gdrxGetLastError(comms_[rank]);
  }
  std::vector<std::uint32_t> got(kRanks * kCount);
  must(cudaMemcpy(got.data(), data, got.size() * 4, cudaMemcpyDeviceToHost), "copy");
  EXPECT_EQ(got, std::vector<std::uint32_t>(kRanks * kCount, kRanks));
  cudaFree(data);
}

// One rank in CUDA's default stream, whose name there is none here. Its copies are in it, too.
TEST_F(GpuDevices, TheDefaultStreamIsAStream) {
  use_device(0);
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 5;
  ASSERT_EQ(gdrxCommInitAll(comms_.data(), kRanks, &config), gdrxSuccess);
  auto* data = allocate<std::uint32_t>(kRanks * kCount);
  cudaStream_t other = nullptr;
  must(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "stream");
  const std::array<gdrxStream_t, kRanks> streams{gdrxStreamDefault,
                                                 reinterpret_cast<gdrxStream_t>(other)};
  const std::vector<std::uint32_t> ones(kCount, 1);
  std::vector<std::uint32_t> got(kRanks * kCount);
  for (std::size_t rank = 0; rank < comms_.size(); ++rank) {
    auto* const mine = data + rank * kCount;
    auto* const stream = reinterpret_cast<cudaStream_t>(streams[rank]);
    must(cudaMemcpyAsync(mine, ones.data(), kCount * 4, cudaMemcpyHostToDevice, stream), "copy");
    EXPECT_EQ(gdrxAllReduce(mine, mine, kCount, gdrxUint32, gdrxSum, comms_[rank], streams[rank],
                            nullptr),
              gdrxSuccess)
        << gdrxGetLastError(comms_[rank]);
  }
  for (std::size_t rank = 0; rank < comms_.size(); ++rank) {
    must(cudaMemcpyAsync(got.data() + rank * kCount, data + rank * kCount, kCount * 4,
                         cudaMemcpyDeviceToHost, reinterpret_cast<cudaStream_t>(streams[rank])),
         "copy");
  }
  must(cudaStreamSynchronize(other), "synchronize");
  must(cudaStreamSynchronize(cudaStreamLegacy), "synchronize");
  EXPECT_EQ(got, std::vector<std::uint32_t>(kRanks * kCount, kRanks));
  EXPECT_EQ(gdrxBarrier(comms_[0], reinterpret_cast<gdrxStream_t>(cudaStreamPerThread), nullptr),
            gdrxInvalidArgument);
  EXPECT_NE(std::string(gdrxGetLastError(comms_[0])).find("of each thread"), std::string::npos);
  cudaStreamDestroy(other);
  cudaFree(data);
}

// Nobody tests and nobody waits. A call whose peer never comes is heard of by its timeout.
TEST_F(GpuDevices, AHandlerHearsOfWhatTheGpuHasDone) {
  use_device(0);
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 2;
  ASSERT_EQ(gdrxCommInitAll(comms_.data(), kRanks, &config), gdrxSuccess);
  auto* data = allocate<std::uint32_t>(kRanks * kCount);
  std::array<std::atomic<int>, kRanks> told{};
  const auto on_done = [](gdrxRequest_t request, gdrxResult_t result, const char*, void* user) {
    *static_cast<std::atomic<int>*>(user) = 1 + static_cast<int>(result);
    EXPECT_EQ(gdrxTest(&request), result);
  };
  const auto post = [&](std::size_t rank) {
    auto* const mine = data + rank * kCount;
    gdrxRequest_t request = nullptr;
    told[rank] = 0;
    ASSERT_EQ(
        gdrxAllReduce(mine, mine, kCount, gdrxUint32, gdrxSum, comms_[rank], nullptr, &request),
        gdrxSuccess)
        << gdrxGetLastError(comms_[rank]);
    ASSERT_EQ(gdrxRequestOnDone(request, on_done, &told[rank]), gdrxSuccess);
  };
  const auto hears = [&](std::size_t rank) {
    for (int i = 0; i < 20'000 && told[rank] == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return told[rank].load() - 1;
  };
  for (std::size_t rank = 0; rank < comms_.size(); ++rank) post(rank);
  for (std::size_t rank = 0; rank < comms_.size(); ++rank) EXPECT_EQ(hears(rank), gdrxSuccess);
  post(0);
  EXPECT_EQ(hears(0), gdrxTimeout);
  cudaFree(data);
}

TEST_F(GpuDevices, WhatAKernelGaveUpIsKnownOnceItsStreamHasEnded) {
  use_device(0);
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 0.1;
  constexpr int kTimes = 4;  // the communicator's own thread looks now and then, too
  for (int i = 0; i < kTimes; ++i) {
    ASSERT_EQ(gdrxCommInitAll(comms_.data(), kRanks, &config), gdrxSuccess);
    auto* data = allocate<std::uint32_t>(kCount);
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(gdrxAllReduce(data, data, kCount, gdrxUint32, gdrxSum, comms_[0],
                            reinterpret_cast<gdrxStream_t>(stream), nullptr),
              gdrxSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    gdrxResult_t error = gdrxSuccess;
    ASSERT_EQ(gdrxCommGetAsyncError(comms_[0], &error), gdrxSuccess);
    EXPECT_EQ(error, gdrxTimeout);
    on_threads([&](std::size_t rank) { gdrxCommDestroy(std::exchange(comms_[rank], nullptr)); });
    cudaStreamDestroy(stream);
    cudaFree(data);
  }
}

// Of every kernel and length: nothing of it waits any more once one of its threads has given up.
TEST_F(GpuDevices, KernelsThatWaitInVainEnd) {
  use_device(0);
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 0.05;
  constexpr std::uint64_t kMost = 1'000'000;
  auto* data = allocate<std::uint32_t>(2 * kMost);
  for (const char* algorithm : {"auto", "one-shot", "two-shot", "ring", "tree"}) {
    config.algorithm = algorithm;
    for (const std::uint64_t count :
         {std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{70'000}, kMost}) {
      std::array<gdrxComm_t, 4> comms{};
      ASSERT_EQ(gdrxCommInitAll(comms.data(), 4, &config), gdrxSuccess);
      cudaStream_t stream = nullptr;
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
      ASSERT_EQ(gdrxAllReduce(data, data + kMost, count, gdrxFloat32, gdrxSum, comms[2],
                              reinterpret_cast<gdrxStream_t>(stream), nullptr),
                gdrxSuccess);
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
      gdrxResult_t error = gdrxSuccess;
      EXPECT_EQ(gdrxCommGetAsyncError(comms[2], &error), gdrxSuccess);
      EXPECT_EQ(error, gdrxTimeout) << algorithm << " " << count;
      std::vector<std::thread> threads;
      for (gdrxComm_t comm : comms) threads.emplace_back([comm] { gdrxCommDestroy(comm); });
      for (std::thread& thread : threads) thread.join();
      cudaStreamDestroy(stream);
    }
  }
  cudaFree(data);
}

// Whether the program, or a test before, has let one GPU into the other's memory makes no
// difference.
TEST_F(GpuDevices, ABufferOfAnotherGpuEndsTheCallOnEveryRank) {
  if (gpu_count() < 2) GTEST_SKIP() << "one GPU on this machine";
  for (const bool open : {false, true}) {  // what gdrx has opened has to be open afterwards
    use_device(0);
    const cudaError_t status =
        open ? cudaDeviceEnablePeerAccess(1, 0) : cudaDeviceDisablePeerAccess(1);
    cudaGetLastError();
    if (status == cudaErrorPeerAccessUnsupported) continue;
    ASSERT_EQ(gdrxCommInitAll(comms_.data(), kRanks, nullptr), gdrxSuccess);
    on_threads([&](std::size_t rank) {
      must(cudaSetDevice(static_cast<int>(rank)), "cudaSetDevice");
      auto* data = allocate<std::uint32_t>(kCount);
      EXPECT_EQ(
          gdrxAllReduce(data, data, kCount, gdrxUint32, gdrxSum, comms_[rank], nullptr, nullptr),
          gdrxInvalidArgument);
      const std::string why = gdrxGetLastError(comms_[rank]);
      EXPECT_NE(why.find("rank 1: a buffer is on GPU 1, the communicator on GPU 0"),
                std::string::npos)
          << why;
      cudaFree(data);
      gdrxCommDestroy(comms_[rank]);
      comms_[rank] = nullptr;
    });
  }
}

TEST_F(GpuDevices, ABufferOfAnotherGpuMayBeMappedForThisOneToo) {
  if (gpu_count() < 2) GTEST_SKIP() << "one GPU on this machine";
  use_device(0);
  ASSERT_EQ(gdrxCommInitAll(comms_.data(), kRanks, nullptr), gdrxSuccess);
  on_threads([&](std::size_t rank) {
    use_device(0);
    const Segments there(1, {1});
    there.open_to(0);
    auto* data = reinterpret_cast<std::uint32_t*>(there.data());
    EXPECT_EQ(transport_of_call(comms_[rank], static_cast<std::uint32_t>(rank), data), "gpu");
  });
}

TEST_F(GpuDevices, MoreRanksThanTheQueuesOfAGpuAreStagedAndSaySo) {
  use_device(0);
  std::array<gdrxComm_t, 11> comms{};
  testing::internal::CaptureStderr();
  ASSERT_EQ(gdrxCommInitAll(comms.data(), static_cast<int>(comms.size()), nullptr), gdrxSuccess);
  auto* data = allocate<std::uint32_t>(comms.size());
  std::array<gdrxRequest_t, comms.size()> requests{};
  for (std::size_t rank = 0; rank < comms.size(); ++rank) {
    EXPECT_EQ(gdrxAllReduce(data + rank, data + rank, 1, gdrxUint32, gdrxSum, comms[rank], nullptr,
                            &requests[rank]),
              gdrxSuccess);
  }
  for (gdrxRequest_t& request : requests) EXPECT_EQ(gdrxWait(&request), gdrxSuccess);
  for (gdrxComm_t comm : comms) EXPECT_EQ(gdrxCommDestroy(comm), gdrxSuccess);
  cudaFree(data);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("11 ranks of one process share a GPU"), std::string::npos) << said;
}

}  // namespace
}  // namespace gdrx::gpu
