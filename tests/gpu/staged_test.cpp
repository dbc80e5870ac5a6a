// SPDX-License-Identifier: Apache-2.0
// Calls that go through host memory beside captures of streams. Ranks of one process, a thread
// each. Skipped without a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gdrx/gdrx.h"
#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {
namespace {

class GpuStaged : public testing::Test {
 protected:
  static constexpr int kRanks = 2;
  static constexpr std::uint64_t kCount = 10'000;
  struct Member {
    int rank = 0;
    gdrxComm_t comm = nullptr;
    cudaStream_t stream = nullptr;
    std::uint32_t* data = nullptr;
    gdrxRequest_t request = nullptr;
  };

  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
    gdrxUniqueId id{};
    ASSERT_EQ(gdrxGetUniqueId(&id), gdrxSuccess);
    for_each([&](Member& self) {
      gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
      config.timeout_seconds = 20;
      must(cudaStreamCreateWithFlags(&self.stream, cudaStreamNonBlocking), "stream");
      self.data = allocate<std::uint32_t>(kCount);
      ASSERT_EQ(gdrxCommInitRank(&self.comm, kRanks, id, self.rank, &config), gdrxSuccess)
          << gdrxGetLastError(nullptr);
    });
    must(cudaSetDevice(0), "cudaSetDevice");
    must(cudaStreamCreateWithFlags(&captured_, cudaStreamNonBlocking), "stream");
  }
  void TearDown() override {
    if (gpu_count() == 0) return;
    for_each([](Member& self) {
      EXPECT_EQ(gdrxCommDestroy(self.comm), gdrxSuccess);
      cudaFree(self.data);
      cudaStreamDestroy(self.stream);
    });
    cudaStreamDestroy(captured_);
  }

  void for_each(const std::function<void(Member&)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      Member& self = members_[static_cast<std::size_t>(rank)];
      self.rank = rank;
      threads.emplace_back([&body, &self] {
        must(cudaSetDevice(self.rank % gpu_count()), "cudaSetDevice");
        body(self);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  /// No kernel does it: it goes through host memory.
  void post(Member& self) {
    EXPECT_EQ(gdrxAllReduce(self.data, self.data, kCount, gdrxUint32, gdrxBor, self.comm,
                            reinterpret_cast<gdrxStream_t>(self.stream), &self.request),
              gdrxSuccess)
        << gdrxGetLastError(self.comm);
  }
  void set(Member& self) {
    const std::vector<std::uint32_t> mine(kCount, 42 + static_cast<std::uint32_t>(self.rank));
    // Whoever waits for the whole GPU waits for the kernel of a rank that shares it.
    must(cudaMemcpyAsync(self.data, mine.data(), kCount * 4, cudaMemcpyHostToDevice, self.stream),
         "copy");
    must(cudaStreamSynchronize(self.stream), "copy");
  }
  void check(const Member& self) { expect_all(self, 42 | 43); }
  void expect_all(const Member& self, std::uint32_t value) {
    must(cudaStreamSynchronize(self.stream), "cudaStreamSynchronize");
    std::vector<std::uint32_t> got(kCount);
    must(cudaMemcpy(got.data(), self.data, kCount * 4, cudaMemcpyDeviceToHost), "copy");
    EXPECT_EQ(got, std::vector<std::uint32_t>(kCount, value)) << "rank " << self.rank;
  }
  void expect_whole_capture() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(captured_, &graph), cudaSuccess);
    cudaGetLastError();
    if (graph != nullptr) cudaGraphDestroy(graph);
  }

  std::array<Member, kRanks> members_;
  cudaStream_t captured_ = nullptr;
};

TEST_F(GpuStaged, ACallThatIsWaitedForSpoilsNoCaptureOfAnotherThread) {
  for_each([&](Member& self) { set(self); });
  must(cudaStreamBeginCapture(captured_, cudaStreamCaptureModeGlobal), "capture");
  for_each([&](Member& self) {
    post(self);
    EXPECT_EQ(gdrxWait(&self.request), gdrxSuccess) << gdrxGetLastError(self.comm);
  });
  expect_whole_capture();
  for_each([&](Member& self) { check(self); });
}

TEST_F(GpuStaged, ACallThatNobodyWaitsForSpoilsNoCaptureOfAnotherThread) {
  for_each([&](Member& self) { set(self); });
  must(cudaStreamBeginCapture(captured_, cudaStreamCaptureModeGlobal), "capture");
  for_each([&](Member& self) { post(self); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the communicators' threads do it
  expect_whole_capture();
  for_each([&](Member& self) {
    EXPECT_EQ(gdrxTest(&self.request), gdrxSuccess) << gdrxGetLastError(self.comm);
    EXPECT_EQ(gdrxWait(&self.request), gdrxSuccess);
    check(self);
  });
}

TEST_F(GpuStaged, ACallThatACapturedStreamCannotHaveIsRefusedAndTheCaptureGoesOn) {
  must(cudaStreamBeginCapture(captured_, cudaStreamCaptureModeRelaxed), "capture");
  Member& self = members_[0];
  EXPECT_EQ(gdrxAllReduce(self.data, self.data, kCount, gdrxUint32, gdrxBor, self.comm,
                          reinterpret_cast<gdrxStream_t>(captured_), &self.request),
            gdrxUnsupported);
  EXPECT_NE(std::string(gdrxGetLastError(self.comm)).find("captured"), std::string::npos);
  expect_whole_capture();
}

// Rank 0 holds two of them, rank 1 one.
TEST_F(GpuStaged, LeavesAreReducedInTheirStreamAndForWhoWaits) {
  constexpr std::size_t kEach = 3000;
  const std::array<std::size_t, kRanks> leaves{2, 1};
  for_each([&](Member& self) {
    for (const bool in_stream : {true, false}) {
      set(self);
      std::uint32_t* const out = self.data + 2 * kEach;
      EXPECT_EQ(gdrxAllReduceLeaves(
                    self.data, leaves.data(), out, kEach, gdrxUint32, gdrxSum, self.comm,
                    in_stream ? reinterpret_cast<gdrxStream_t>(self.stream) : nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(self.comm);
      must(cudaStreamSynchronize(self.stream), "cudaStreamSynchronize");
      std::vector<std::uint32_t> got(kEach);
      must(cudaMemcpy(got.data(), out, kEach * 4, cudaMemcpyDeviceToHost), "copy");
      EXPECT_EQ(got, std::vector<std::uint32_t>(kEach, 42 + 42 + 43)) << "rank " << self.rank;
    }
  });
}

// Kernels know neither: the calls go through host memory.
TEST_F(GpuStaged, ATypeOrOperatorWithoutKernelsIsRightAllTheSame) {
  for_each([&](Member& self) {
    const auto stream = reinterpret_cast<gdrxStream_t>(self.stream);
    set(self);
    EXPECT_EQ(gdrxAllReduce(self.data, self.data, kCount, gdrxUint32, gdrxBor, self.comm, stream,
                            nullptr),
              gdrxSuccess)
        << gdrxGetLastError(self.comm);
    expect_all(self, 42 | 43);
    set(self);
    EXPECT_EQ(gdrxAllReduce(self.data, self.data, 2 * kCount, gdrxUint16, gdrxMax, self.comm,
                            stream, nullptr),
              gdrxSuccess)
        << gdrxGetLastError(self.comm);
    expect_all(self, 43);
  });
}

// Blocks are bytes to a kernel.
TEST_F(GpuStaged, ATypeWithoutArithmeticIsGatheredOnTheGpus) {
  for_each([&](Member& self) {
    set(self);
    std::uint32_t* const own = self.data + static_cast<std::uint64_t>(self.rank) * kCount / 2;
    EXPECT_EQ(gdrxAllGather(own, self.data, kCount / 8, gdrxComplex128, self.comm,
                            reinterpret_cast<gdrxStream_t>(self.stream), nullptr),
              gdrxSuccess)
        << gdrxGetLastError(self.comm);
    must(cudaStreamSynchronize(self.stream), "stream");
    std::vector<std::uint32_t> got(kCount);
    must(cudaMemcpy(got.data(), self.data, kCount * 4, cudaMemcpyDeviceToHost), "copy");
    std::vector<std::uint32_t> expected(kCount, 42);
    std::fill(expected.begin() + kCount / 2, expected.end(), 43);
    EXPECT_EQ(got, expected);
    gdrxOpInfo_t info{};
    info.size = sizeof info;
    EXPECT_EQ(gdrxCommGetLastOp(self.comm, &info), gdrxSuccess);
    EXPECT_STREQ(info.transport, "gpu");
  });
}

TEST_F(GpuStaged, AnOperatorOfTheProgramRunsOnHostCopies) {
  for_each([&](Member& self) {
    const auto stream = reinterpret_cast<gdrxStream_t>(self.stream);
    const auto minus = [](const void* in, void* inout, size_t count, gdrxDataType_t, void*) {
      const auto* left = static_cast<const std::uint32_t*>(in);
      auto* right = static_cast<std::uint32_t*>(inout);
      for (size_t i = 0; i < count; ++i) right[i] = left[i] * 100 - right[i];
    };
    gdrxRedOp_t op{};
    ASSERT_EQ(gdrxRedOpCreate(&op, minus, 0, nullptr, self.comm), gdrxSuccess);
    set(self);
    EXPECT_EQ(
        gdrxAllReduce(self.data, self.data, kCount, gdrxUint32, op, self.comm, stream, nullptr),
        gdrxSuccess)
        << gdrxGetLastError(self.comm);
    expect_all(self, 42 * 100 - 43);
    const std::uint32_t scalar = 10 + static_cast<std::uint32_t>(self.rank);
    ASSERT_EQ(gdrxRedOpCreatePreMulSum(&op, &scalar, gdrxUint32, self.comm), gdrxSuccess);
    set(self);
    EXPECT_EQ(
        gdrxAllReduce(self.data, self.data, kCount, gdrxUint32, op, self.comm, stream, nullptr),
        gdrxSuccess)
        << gdrxGetLastError(self.comm);
    expect_all(self, 42 * 10 + 43 * 11);
  });
}

TEST_F(GpuStaged, LongDoubleOfGpuMemoryIsRefused) {
  Member& self = members_[0];
  for (const gdrxDataType_t type : {gdrxLongDouble, gdrxLongDoubleInt}) {
    EXPECT_EQ(gdrxBroadcast(self.data, self.data, 1, type, 0, self.comm, nullptr, nullptr),
              gdrxInvalidArgument);
    EXPECT_NE(std::string(gdrxGetLastError(self.comm)).find("in GPU memory"), std::string::npos)
        << gdrxGetLastError(self.comm);
  }
}

}  // namespace
}  // namespace gdrx::gpu
