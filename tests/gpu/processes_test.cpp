// SPDX-License-Identifier: Apache-2.0
// GPU memory registered between processes: by CUDA IPC and by file descriptors. Skipped without a
// GPU.
#include "tests/gpu/processes.hpp"

#include <fcntl.h>

#include <algorithm>

#include "tests/gpu/ranks.hpp"
#include "tests/gpu/segments.hpp"

namespace gdrx::gpu {
namespace {

int check_registered(Rank_& self, std::byte* in, std::byte* out) {
  gdrxRegistration_t handles[2] = {};
  CHECK_HERE(gdrxRegister(self.comm, in, kBytes, &handles[0]) == gdrxSuccess);
  CHECK_HERE(gdrxRegister(self.comm, out, kBytes, &handles[1]) == gdrxSuccess);
  CHECK_HERE(check_call(self, in, out, true) == 0);
  CHECK_HERE(check_call(self, out, out, true) == 0);
  CHECK_HERE(gdrxDeregister(self.comm, handles[1]) == gdrxSuccess);
  CHECK_HERE(check_call(self, in, out, false) == 0);
  CHECK_HERE(check_call(self, in, in, true) == 0);
  CHECK_HERE(gdrxDeregister(self.comm, handles[0]) == gdrxSuccess);
  CHECK_HERE(check_call(self, in, in, false) == 0);
  return 0;
}

std::size_t open_files() {
  std::size_t count = 0;
  for (int fd = 0; fd < 4096; ++fd) count += fcntl(fd, F_GETFD) != -1 ? 1 : 0;
  return count;
}

// Both in one allocation, at each rank's own place: it is mapped once.
TEST_F(GpuProcesses, MemoryOfCudaMalloc) {
  EXPECT_EQ(run([](Rank_& self) {
              std::byte* memory = nullptr;
              void* raw = nullptr;
              CHECK_HERE(cudaMalloc(&raw, 3 * kBytes) == cudaSuccess);
              memory = static_cast<std::byte*>(raw) + 512 * (self.rank + 1);
              CHECK_HERE(check_registered(self, memory, memory + kBytes) == 0);
              CHECK_HERE(cudaFree(raw) == cudaSuccess);
              return 0;
            }),
            well_);
}

TEST_F(GpuProcesses, MemoryFreedAfterItsEndComesBackAtTheSameAddress) {
  EXPECT_EQ(run([](Rank_& self) {
              void* before = nullptr;
              int same = 0;
              for (int round = 0; round < 5; ++round) {
                void* raw = nullptr;
                CHECK_HERE(cudaMalloc(&raw, 2 * kBytes) == cudaSuccess);
                same += raw == before ? 1 : 0;
                auto* in = static_cast<std::byte*>(raw);
                if (round % 2 == 0) {
                  CHECK_HERE(check_registered(self, in, in + kBytes) == 0);
                } else {
                  CHECK_HERE(check_call(self, in, in + kBytes, false) == 0);
                }
                CHECK_HERE(cudaFree(raw) == cudaSuccess);
                before = raw;
              }
              CHECK_HERE(same > 0);  // else nothing was tested
              return 0;
            }),
            well_);
}

TEST_F(GpuProcesses, MemoryOfOneHandleAndOfSeveralAndNoDescriptorIsLeft) {
  EXPECT_EQ(run([](Rank_& self) {
              std::vector<std::vector<std::uint64_t>> layouts{{20}, {10, 1, 1, 8}};
              layouts.emplace_back(20, 1);  // a handle for each 2 MiB
              std::size_t before = 0;
              for (int round = 0; round < 2; ++round) {
                for (const auto& pages : layouts) {
                  const Segments segments(self.device, pages);
                  std::byte* in = segments.data() + 4096;
                  CHECK_HERE(check_registered(self, in, in + kBytes) == 0);
                }
                if (round == 0) before = open_files();
              }
              CHECK_HERE(open_files() == before);
              return 0;
            }),
            well_);
}

TEST_F(GpuProcesses, MemoryThatWasNotMadeForOthersIsRefusedEverywhere) {
  EXPECT_EQ(
      run([](Rank_& self) {
        const Segments segments(self.device, {16}, self.rank != 2);
        gdrxRegistration_t handle = nullptr;
        CHECK_HERE(gdrxRegister(self.comm, segments.data(), kBytes, &handle) == gdrxUnsupported);
        const std::string why = gdrxGetLastError(self.comm);
        CHECK_HERE(why.find("rank 2: ") != std::string::npos);
        CHECK_HERE(why.find("POSIX_FILE_DESCRIPTOR") != std::string::npos);
        CHECK_HERE(handle == nullptr);
        CHECK_HERE(check_call(self, segments.data(), segments.data() + kBytes, false) == 0);
        return 0;
      }),
      well_);
}

TEST_F(GpuProcesses, WhatIsStillRegisteredEndsWithTheCommunicator) {
  EXPECT_EQ(
      run([](Rank_& self) {
        const Segments segments(self.device, {8, 8});
        void* raw = nullptr;
        CHECK_HERE(cudaMalloc(&raw, kBytes) == cudaSuccess);
        gdrxRegistration_t handle = nullptr;
        CHECK_HERE(gdrxRegister(self.comm, segments.data(), kBytes, &handle) == gdrxSuccess);
        CHECK_HERE(gdrxRegister(self.comm, raw, kBytes, &handle) == gdrxSuccess);
        CHECK_HERE(check_call(self, segments.data(), static_cast<std::byte*>(raw), true) == 0);
        const gdrxResult_t ended = gdrxCommDestroy(self.comm);
        self.comm = nullptr;
        CHECK_HERE(ended == gdrxSuccess);
        CHECK_HERE(cudaFree(raw) == cudaSuccess);
        return 0;
      }),
      well_);
}

int check_allocated(Rank_& self) {
  void* memory[2] = {};
  for (void*& one : memory) {
    CHECK_HERE(gdrxGpuMemAlloc(self.comm, &one, kBytes) == gdrxSuccess);
  }
  auto* in = static_cast<std::byte*>(memory[0]);
  auto* out = static_cast<std::byte*>(memory[1]);
  CHECK_HERE(check_call(self, in, out, true) == 0);
  CHECK_HERE(check_call(self, out, out, true) == 0);
  CHECK_HERE(gdrxMemFree(self.comm, out) == gdrxSuccess);
  CHECK_HERE(check_call(self, in, in, true) == 0);
  CHECK_HERE(gdrxMemFree(self.comm, in) == gdrxSuccess);
  return 0;
}

std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? free : 0;
}

// The peers of another process that still map what a rank has freed would keep it, and a barrier
// makes sure that none of them is behind.
TEST_F(GpuProcesses, MemoryOfGdrxIsMappedByAllAndNothingOfItIsLeft) {
  EXPECT_EQ(run([](Rank_& self) {
              CHECK_HERE(check_allocated(self) == 0);
              CHECK_HERE(gdrxBarrier(self.comm, nullptr, nullptr) == gdrxSuccess);
              const std::size_t files = open_files();
              const std::size_t memory = free_memory();
              CHECK_HERE(gdrxBarrier(self.comm, nullptr, nullptr) == gdrxSuccess);
              CHECK_HERE(check_allocated(self) == 0);
              void* none = &self;
              const std::size_t bytes = self.rank == 2 ? std::size_t{1} << 40 : kBytes;
              CHECK_HERE(gdrxGpuMemAlloc(self.comm, &none, bytes) == gdrxSystemError);
              CHECK_HERE(none == nullptr);
              const std::string why = gdrxGetLastError(self.comm);
              CHECK_HERE(why.find("rank 2: cuMemCreate of") != std::string::npos);
              CHECK_HERE(check_allocated(self) == 0);
              CHECK_HERE(gdrxBarrier(self.comm, nullptr, nullptr) == gdrxSuccess);
              CHECK_HERE(open_files() == files && free_memory() == memory);
              return 0;
            }),
            well_);
}

TEST_F(GpuProcesses, MemoryOfGdrxThatIsLeftEndsWithTheCommunicator) {
  EXPECT_EQ(run([](Rank_& self) {
              const std::size_t files = open_files();
              void* memory = nullptr;
              CHECK_HERE(gdrxGpuMemAlloc(self.comm, &memory, kBytes) == gdrxSuccess);
              auto* both = static_cast<std::byte*>(memory);
              CHECK_HERE(check_call(self, both, both, true) == 0);
              const gdrxResult_t ended = gdrxCommDestroy(self.comm);
              self.comm = nullptr;
              CHECK_HERE(ended == gdrxSuccess);
              cudaPointerAttributes found{};
              const cudaError_t asked = cudaPointerGetAttributes(&found, memory);
              CHECK_HERE(asked != cudaSuccess || found.type != cudaMemoryTypeDevice);
              CHECK_HERE(open_files() <= files);
              return 0;
            }),
            well_);
}

// Though only one rank wants a request, and of the first alone.
TEST_F(GpuProcesses, AGroupStartsItsGpuCallsInOrder) {
  constexpr std::uint64_t kFew = 1024;
  EXPECT_EQ(
      run([](Rank_& self) {
        std::uint32_t* at[3] = {};
        for (std::uint32_t*& one : at) {
          void* raw = nullptr;
          CHECK_HERE(cudaMalloc(&raw, kFew * 4) == cudaSuccess);
          one = static_cast<std::uint32_t*>(raw);
        }
        std::vector<std::uint32_t> data(kFew, 1);
        CHECK_HERE(cudaMemcpy(at[0], data.data(), kFew * 4, cudaMemcpyDefault) == cudaSuccess);
        auto* const stream = reinterpret_cast<gdrxStream_t>(self.stream);
        gdrxRequest_t request = nullptr;
        CHECK_HERE(gdrxGroupStart() == gdrxSuccess);
        for (int call = 0; call < 2; ++call) {
          CHECK_HERE(gdrxAllReduce(at[call], at[call + 1], kFew, gdrxUint32, gdrxSum, self.comm,
                                   stream, self.rank == 0 && call == 0 ? &request : nullptr) ==
                     gdrxSuccess);
        }
        CHECK_HERE(gdrxGroupEnd() == gdrxSuccess);
        CHECK_HERE(request == nullptr || gdrxWait(&request) == gdrxSuccess);
        CHECK_HERE(cudaStreamSynchronize(self.stream) == cudaSuccess);
        CHECK_HERE(cudaMemcpy(data.data(), at[2], kFew * 4, cudaMemcpyDefault) == cudaSuccess);
        CHECK_HERE(data == std::vector<std::uint32_t>(kFew, kRanks * kRanks));
        for (std::uint32_t* one : at) CHECK_HERE(cudaFree(one) == cudaSuccess);
        return 0;
      }),
      well_);
}

// The last rank comes when the others' queues are long: they must have left it room on the GPU.
TEST_F(GpuProcesses, RanksThatShareAGpuMayPostManySmallCallsAhead) {
  EXPECT_EQ(run([](Rank_& self) {
              void* raw = nullptr;
              CHECK_HERE(cudaMalloc(&raw, 8) == cudaSuccess);
              const std::uint32_t one[2] = {1, 0};
              CHECK_HERE(cudaMemcpy(raw, one, sizeof one, cudaMemcpyDefault) == cudaSuccess);
              CHECK_HERE(gdrxBarrier(self.comm, nullptr, nullptr) == gdrxSuccess);
              usleep(20'000 * static_cast<unsigned>(self.rank));
              constexpr int kCalls = 200;
              for (int call = 0; call < kCalls; ++call) {
                CHECK_HERE(gdrxAllReduce(raw, raw, 1, gdrxUint32, gdrxSum, self.comm,
                                         reinterpret_cast<gdrxStream_t>(self.stream),
                                         nullptr) == gdrxSuccess);
              }
              CHECK_HERE(cudaStreamSynchronize(self.stream) == cudaSuccess);
              std::uint32_t expected = 1;
              for (int call = 0; call < kCalls; ++call) expected *= kRanks;
              std::uint32_t got = 1;
              CHECK_HERE(cudaMemcpy(&got, raw, sizeof got, cudaMemcpyDefault) == cudaSuccess);
              CHECK_HERE(got == expected);
              CHECK_HERE(cudaFree(raw) == cudaSuccess);
              return 0;
            }),
            well_);
}

}  // namespace
}  // namespace gdrx::gpu
