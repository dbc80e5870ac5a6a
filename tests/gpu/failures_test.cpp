// SPDX-License-Identifier: Apache-2.0
// What communicators leave behind that failed. Skipped without a GPU.
#include <algorithm>

#include "collectives/kernels/call.hpp"
#include "tests/gpu/processes.hpp"

namespace gdrx::gpu {
namespace {

std::uint64_t free_memory() {
  std::size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? free : 0;
}

/// Made, used, and aborted by one rank while the others' kernels wait for it.
int fail_one(Rank_& self, int aborts, void* data) {
  gdrxComm_t child = nullptr;
  CHECK_HERE(gdrxCommSplit(self.comm, 0, self.rank, &child, nullptr) == gdrxSuccess);
  CHECK_HERE(gdrxBarrier(self.comm, nullptr, nullptr) == gdrxSuccess);  // all have it
  auto* const stream = reinterpret_cast<gdrxStream_t>(self.stream);
  CHECK_HERE(gdrxAllReduce(data, data, 1000, gdrxUint32, gdrxSum, child, stream, nullptr) ==
             gdrxSuccess);
  CHECK_HERE(cudaStreamSynchronize(self.stream) == cudaSuccess);
  CHECK_HERE(gdrxBarrier(self.comm, nullptr, nullptr) == gdrxSuccess);
  if (self.rank == aborts) {
    CHECK_HERE(gdrxCommAbort(child) == gdrxSuccess);
  } else {
    gdrxAllReduce(data, data, 1000, gdrxUint32, gdrxSum, child, stream, nullptr);
  }
  CHECK_HERE(cudaStreamSynchronize(self.stream) == cudaSuccess);  // by the abort
  gdrxResult_t error = gdrxSuccess;
  while (error == gdrxSuccess) CHECK_HERE(gdrxCommGetAsyncError(child, &error) == gdrxSuccess);
  CHECK_HERE(gdrxCommDestroy(child) == gdrxAborted);
  return 0;
}

TEST_F(GpuProcesses, FailedCommunicatorsGiveTheirGpuMemoryBack) {
  const auto answers = run([](Rank_& self) {
    void* data = nullptr;
    CHECK_HERE(cudaMalloc(&data, kBytes) == cudaSuccess);
    std::uint64_t most = 0;
    constexpr int kTimes = 20;
    for (int i = 0; i < kTimes; ++i) {
      if (const int wrong = fail_one(self, i % kRanks, data); wrong != 0) return wrong;
      CHECK_HERE(gdrxBarrier(self.comm, nullptr, nullptr) == gdrxSuccess);
      if (i < 4) most = std::max(most, free_memory());
    }
    // All have destroyed the last one: what it had is given back by the next. A moment may have had
    // more of them at once than those before it; a leak would be one each time.
    constexpr std::uint64_t kArenas = (kEmulated ? 1 : 2) * kRanks * kArenaBytes;
    static_assert(kTimes - 4 > 2 * kRanks);
    CHECK_HERE(free_memory() + kArenas >= most);
    cudaFree(data);
    return 0;
  });
  EXPECT_EQ(answers, well_);
}

}  // namespace
}  // namespace gdrx::gpu
