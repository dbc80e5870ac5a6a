// SPDX-License-Identifier: Apache-2.0
// gdrxGpuMemAlloc through the C API: ranks of one process, a thread and a GPU each. Skipped without
// a GPU.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gdrx/gdrx.h"
#include "tests/gpu/delay.hpp"
#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {
namespace {

constexpr std::uint64_t kCount = 2 << 20;  // uint32: where direct is the best by the model
constexpr std::uint64_t kBytes = kCount * 4;
constexpr std::size_t kTooMuch = std::size_t{1} << 40;  // no GPU has as much

class GpuAlloc : public testing::Test {
 protected:
  static constexpr int kRanks = 4;
  struct Member {
    int rank = 0;
    gdrxComm_t comm = nullptr;
    cudaStream_t stream = nullptr;
    std::string error() const { return gdrxGetLastError(comm); }
  };

  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
    setenv("GDRX_REPRODUCIBLE", "1", 1);  // without the ring, registered memory is always worth it
    for_each([](Member& self) {
      must(cudaStreamCreateWithFlags(&self.stream, cudaStreamNonBlocking), "stream");
    });
    make();
    // What the first call and the first mapping load stays loaded.
    for_each([](Member& self) { call_and_free(self); });
  }
  void TearDown() override {
    if (gpu_count() == 0) return;
    end();
    for_each([](Member& self) { cudaStreamDestroy(self.stream); });
    unsetenv("GDRX_REPRODUCIBLE");
  }

  void make() {
    gdrxUniqueId id{};
    ASSERT_EQ(gdrxGetUniqueId(&id), gdrxSuccess);
    for_each([&](Member& self) {
      gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
      config.timeout_seconds = 20;
      ASSERT_EQ(gdrxCommInitRank(&self.comm, kRanks, id, self.rank, &config), gdrxSuccess)
          << gdrxGetLastError(nullptr);
    });
  }
  void end() {
    for_each([](Member& self) {
      gdrxCommDestroy(self.comm);
      self.comm = nullptr;
    });
  }

  void for_each(const std::function<void(Member&)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      Member& self = members_[static_cast<std::size_t>(rank)];
      self.rank = rank;
      threads.emplace_back([&body, &self] {
        must(cudaSetDevice(self.rank % gpu_count()), "cudaSetDevice");
        must(cudaFree(nullptr), "context");
        body(self);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  static std::byte* allocate_shared(const Member& self, std::size_t bytes = kBytes) {
    void* memory = nullptr;
    EXPECT_EQ(gdrxGpuMemAlloc(self.comm, &memory, bytes), gdrxSuccess) << self.error();
    EXPECT_NE(memory, nullptr);
    return static_cast<std::byte*>(memory);
  }

  /// Every number compared; `registered`: whether the call has to say so of itself.
  static void check_call(const Member& self, std::byte* in, std::byte* out, bool registered) {
    std::vector<std::uint32_t> data(kCount);
    for (std::uint64_t i = 0; i < kCount; ++i) {
      data[i] = static_cast<std::uint32_t>(i * 2654435761U) + static_cast<std::uint32_t>(self.rank);
    }
    // In this rank's stream: the device's end would be that of kernels which wait for this rank.
    must(cudaMemsetAsync(out, 0xa5, kBytes, self.stream), "memset");
    must(cudaMemcpyAsync(in, data.data(), kBytes, cudaMemcpyHostToDevice, self.stream), "copy");
    ASSERT_EQ(gdrxAllReduce(in, out, kCount, gdrxUint32, gdrxSum, self.comm,
                            reinterpret_cast<gdrxStream_t>(self.stream), nullptr),
              gdrxSuccess)
        << self.error();
    must(cudaStreamSynchronize(self.stream), "synchronize");
    gdrxOpInfo_t info{};
    info.size = sizeof info;
    EXPECT_EQ(gdrxCommGetLastOp(self.comm, &info), gdrxSuccess);
    EXPECT_STREQ(info.transport, "gpu");
    EXPECT_EQ(info.registered != 0, registered);
    std::vector<std::uint32_t> got(kCount);
    must(cudaMemcpyAsync(got.data(), out, kBytes, cudaMemcpyDeviceToHost, self.stream), "copy");
    must(cudaStreamSynchronize(self.stream), "synchronize");
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const auto sum = static_cast<std::uint32_t>(i * 2654435761U) * kRanks + kOfRanks;
      wrong += got[i] != sum ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0U) << "rank " << self.rank;
  }
  static void call_and_free(const Member& self) {
    std::byte* in = allocate_shared(self);
    std::byte* out = allocate_shared(self);
    check_call(self, in, out, true);
    check_call(self, out, out, true);
    EXPECT_EQ(gdrxMemFree(self.comm, in), gdrxSuccess) << self.error();
    EXPECT_EQ(gdrxMemFree(self.comm, out), gdrxSuccess) << self.error();
  }

  static bool is_gpu_memory(const void* memory) {
    cudaPointerAttributes found{};
    const bool is = cudaPointerGetAttributes(&found, memory) == cudaSuccess &&
                    found.type == cudaMemoryTypeDevice;
    cudaGetLastError();
    return is;
  }
  /// Of all GPUs of this host; nobody else uses them meanwhile.
  static std::size_t free_memory() {
    std::size_t all = 0;
    for (int device = 0; device < gpu_count(); ++device) {
      must(cudaSetDevice(device), "cudaSetDevice");
      std::size_t free = 0, total = 0;
      must(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
      all += free;
    }
    return all;
  }

  static constexpr std::uint32_t kOfRanks = kRanks * (kRanks - 1) / 2;
  std::array<Member, kRanks> members_;
};

TEST_F(GpuAlloc, CallsInItTakeTheDirectKernelAndWhatIsFreedIsGone) {
  const std::size_t before = free_memory();
  for_each([](Member& self) {
    for (int round = 0; round < 3; ++round) {
      std::byte* in = allocate_shared(self);
      std::byte* out = allocate_shared(self);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(in) % (2 << 20), 0U);
      EXPECT_TRUE(is_gpu_memory(in + kBytes - 1));
      check_call(self, in, out, true);
      check_call(self, out, out, true);
      ASSERT_EQ(gdrxMemFree(self.comm, out), gdrxSuccess) << self.error();
      EXPECT_FALSE(is_gpu_memory(out));
      EXPECT_EQ(gdrxMemFree(self.comm, out), gdrxInvalidArgument);
      check_call(self, in, in, true);
      ASSERT_EQ(gdrxMemFree(self.comm, in), gdrxSuccess) << self.error();
      EXPECT_FALSE(is_gpu_memory(in));
      // Or another rank's next memory is there.
      ASSERT_EQ(gdrxBarrier(self.comm, nullptr, nullptr), gdrxSuccess);
    }
  });
  EXPECT_EQ(free_memory(), before);
}

TEST_F(GpuAlloc, IsCountedAmongTheMemoryOfTheCommunicator) {
  for_each([](Member& self) {
    const auto held = [&] {
      gdrxMemoryInfo_t info{};
      info.size = sizeof info;
      EXPECT_EQ(gdrxCommGetMemory(self.comm, &info), gdrxSuccess) << self.error();
      return info;
    };
    EXPECT_GT(held().gpu_bytes, 0U);
    EXPECT_EQ(held().gpu_allocated_bytes, 0U);
    std::byte* one = allocate_shared(self);
    EXPECT_EQ(held().gpu_allocated_bytes, kBytes);
    std::byte* two = allocate_shared(self);
    EXPECT_EQ(held().gpu_allocated_bytes, 2 * kBytes);
    ASSERT_EQ(gdrxMemFree(self.comm, one), gdrxSuccess) << self.error();
    ASSERT_EQ(gdrxMemFree(self.comm, two), gdrxSuccess) << self.error();
    EXPECT_EQ(held().gpu_allocated_bytes, 0U);
    // No kernel has the operator: it goes through host memory.
    std::uint64_t before = held().pinned_bytes;
    for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{8} << 20}) {
      auto* const data = allocate<std::byte>(bytes);
      ASSERT_EQ(gdrxScan(data, data, bytes, gdrxUint8, gdrxBor, self.comm, nullptr, nullptr),
                gdrxSuccess)
          << self.error();
      EXPECT_GE(held().pinned_bytes, bytes);
      EXPECT_GT(held().pinned_bytes, before);
      before = held().pinned_bytes;
      cudaFree(data);
    }
  });
}

TEST_F(GpuAlloc, WhatOneRankCannotHaveNobodyHasAndAllSayWhoAndWhy) {
  const std::size_t before = free_memory();
  std::array<std::string, kRanks> errors;
  for_each([&](Member& self) {
    void* memory = &self;
    EXPECT_EQ(gdrxGpuMemAlloc(self.comm, &memory, self.rank == 2 ? kTooMuch : kBytes),
              gdrxSystemError);
    EXPECT_EQ(memory, nullptr);
    errors[static_cast<std::size_t>(self.rank)] = self.error();
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(error, errors[0]);
    EXPECT_NE(error.find("rank 2: cuMemCreate of " + std::to_string(kTooMuch)), std::string::npos)
        << error;
  }
  EXPECT_EQ(free_memory(), before);
  for_each([](Member& self) {
    void* memory = nullptr;
    EXPECT_EQ(gdrxGpuMemAlloc(self.comm, &memory, SIZE_MAX), gdrxInvalidArgument);
    EXPECT_EQ(gdrxGpuMemAlloc(self.comm, &memory, self.rank == 1 ? 4096 : 8192), gdrxMismatch);
    EXPECT_NE(self.error().find("4096"), std::string::npos) << self.error();
    EXPECT_EQ(memory, nullptr);
    call_and_free(self);
  });
  EXPECT_EQ(free_memory(), before);
}

TEST_F(GpuAlloc, OneRankThatCapturesIsRefusedWithAllOthers) {
  for_each([](Member& self) {
    if (self.rank == 1) {
      must(cudaStreamBeginCapture(self.stream, cudaStreamCaptureModeThreadLocal), "capture");
    }
    void* memory = nullptr;
    EXPECT_EQ(gdrxGpuMemAlloc(self.comm, &memory, kBytes), gdrxUnsupported);
    EXPECT_NE(self.error().find("rank 1: memory is not registered while a stream is"),
              std::string::npos)
        << self.error();
    if (self.rank == 1) {
      cudaGraph_t spoilt = nullptr;
      if (cudaStreamEndCapture(self.stream, &spoilt) == cudaSuccess) cudaGraphDestroy(spoilt);
      cudaGetLastError();
    }
    call_and_free(self);
  });
}

TEST_F(GpuAlloc, WhatTheUserHasRegisteredTooIsNotFreed) {
  for_each([](Member& self) {
    std::byte* memory = allocate_shared(self);
    gdrxRegistration_t handle = nullptr;
    ASSERT_EQ(gdrxRegister(self.comm, memory, kBytes, &handle), gdrxSuccess) << self.error();
    EXPECT_EQ(gdrxMemFree(self.comm, memory), gdrxInvalidArgument);
    EXPECT_NE(self.error().find("deregister it"), std::string::npos) << self.error();
    check_call(self, memory, memory, true);
    ASSERT_EQ(gdrxDeregister(self.comm, handle), gdrxSuccess) << self.error();
    check_call(self, memory, memory, true);
    // Of a part of it none is made, which would not be seen so.
    EXPECT_EQ(gdrxRegister(self.comm, memory + 64, 64, &handle), gdrxInvalidArgument);
    EXPECT_EQ(gdrxMemFree(self.comm, memory), gdrxSuccess) << self.error();
  });
}

TEST_F(GpuAlloc, AnotherOrderOfFreeingIsRefusedOnAllRanksAndCanBeMended) {
  for_each([](Member& self) {
    std::byte* memory[] = {allocate_shared(self), allocate_shared(self)};
    EXPECT_EQ(gdrxMemFree(self.comm, memory[self.rank == 3 ? 1 : 0]), gdrxMismatch);
    check_call(self, memory[0], memory[1], true);
    for (std::byte* one : memory) EXPECT_EQ(gdrxMemFree(self.comm, one), gdrxSuccess);
  });
}

TEST_F(GpuAlloc, WhatIsLeftEndsWithTheCommunicator) {
  const std::size_t before = free_memory();
  std::array<std::byte*, kRanks> left{};
  for_each([&](Member& self) {
    left[static_cast<std::size_t>(self.rank)] = allocate_shared(self);
    check_call(self, left[static_cast<std::size_t>(self.rank)],
               left[static_cast<std::size_t>(self.rank)], true);
  });
  EXPECT_LT(free_memory(), before);
  for (const std::byte* memory : left) EXPECT_TRUE(is_gpu_memory(memory));
  end();
  for (const std::byte* memory : left) EXPECT_FALSE(is_gpu_memory(memory));
  make();
  for_each([](Member& self) { call_and_free(self); });
  EXPECT_EQ(free_memory(), before);
}

// Nobody waits for anybody then: some still map it, and may have a kernel that reads it.
TEST_F(GpuAlloc, OfAFailedCommunicatorItLivesAsLongAsAnyRankMapsIt) {
  std::array<std::byte*, kRanks> memory{};
  for_each(
      [&](Member& self) { memory[static_cast<std::size_t>(self.rank)] = allocate_shared(self); });
  for_each([&](Member& self) {
    if (self.rank == 0) gdrxCommAbort(self.comm);
    gdrxResult_t failed = gdrxSuccess;
    while (failed == gdrxSuccess) gdrxCommGetAsyncError(self.comm, &failed);
  });
  for_each([&](Member& self) {
    if (self.rank == 3) return;
    if (self.rank == 0) {
      EXPECT_EQ(gdrxMemFree(self.comm, memory[0]), gdrxAborted);
    }
    EXPECT_EQ(gdrxCommDestroy(self.comm), gdrxAborted);
    self.comm = nullptr;
  });
  for (const std::byte* one : memory) EXPECT_TRUE(is_gpu_memory(one));
  end();
  for (const std::byte* one : memory) EXPECT_FALSE(is_gpu_memory(one));
}

// Of a communicator that has launched none itself.
TEST_F(GpuAlloc, ItsEndWaitsForKernelsOfTheUsersOwn) {
  const auto use = [](const Member& self, std::byte* memory, std::uint64_t after) {
    enqueue_delay(after, self.stream);
    must(cudaMemsetAsync(memory, 1, kBytes, self.stream), "memset");
  };
  end();
  make();
  for_each([&](Member& self) {
    std::byte* memory = allocate_shared(self);
    use(self, memory, 50'000'000);
    EXPECT_EQ(gdrxMemFree(self.comm, memory), gdrxSuccess) << self.error();
    EXPECT_EQ(cudaStreamQuery(self.stream), cudaSuccess);
  });
  std::array<std::byte*, kRanks> memory{};
  for_each(
      [&](Member& self) { memory[static_cast<std::size_t>(self.rank)] = allocate_shared(self); });
  // A failed one waits for no rank, and not for long for its GPU: the memory is there until then.
  gdrxCommAbort(members_[0].comm);
  for (const bool last : {false, true}) {
    for_each([&](Member& self) {
      if ((self.rank == 0) != last) return;
      use(self, memory[static_cast<std::size_t>(self.rank)], 800'000'000);
      gdrxCommDestroy(self.comm);
      self.comm = nullptr;
      EXPECT_EQ(cudaStreamSynchronize(self.stream), cudaSuccess);
    });
  }
}

TEST_F(GpuAlloc, NothingIsAllocatedForZeroBytes) {
  for_each([](Member& self) {
    void* memory = &self;
    EXPECT_EQ(gdrxGpuMemAlloc(self.comm, &memory, 0), gdrxSuccess);
    EXPECT_EQ(memory, nullptr);
    EXPECT_EQ(gdrxMemFree(self.comm, memory), gdrxSuccess);
    EXPECT_EQ(gdrxGpuMemAlloc(self.comm, &memory, self.rank == 2 ? 0 : kBytes), gdrxMismatch);
    EXPECT_NE(self.error().find("rank 2 allocates 0 bytes"), std::string::npos) << self.error();
    EXPECT_EQ(gdrxGpuMemAlloc(self.comm, nullptr, kBytes), gdrxInvalidArgument);
    call_and_free(self);
  });
}

}  // namespace
}  // namespace gdrx::gpu
