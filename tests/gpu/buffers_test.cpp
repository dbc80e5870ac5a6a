// SPDX-License-Identifier: Apache-2.0
// Memory that comes and goes, and memory as PyTorch maps it. Skipped without a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/gpu/ranks.hpp"
#include "tests/gpu/segments.hpp"

namespace gdrx::gpu {
namespace {

class GpuBuffers : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};

void check_ones(const Ranks& ranks, const std::vector<std::uint32_t*>& buffers,
                std::uint64_t count) {
  const std::vector<std::uint32_t> ones(count, 1);
  for (int r = 0; r < ranks.size(); ++r) {
    ranks.use(r);
    must(cudaMemcpy(buffers[static_cast<std::size_t>(r)], ones.data(), count * 4,
                    cudaMemcpyHostToDevice),
         "copy");
    must(cudaDeviceSynchronize(), "copy");
  }
  for (int r = 0; r < ranks.size(); ++r) {
    std::uint32_t* buffer = buffers[static_cast<std::size_t>(r)];
    ranks.launch(r, {buffer, buffer, count * 4, DataType::uint32, ReduceOp::sum},
                 choose(ranks.host(), count * 4));
  }
  ranks.synchronize();
  for (int r = 0; r < ranks.size(); ++r) {
    std::vector<std::uint32_t> got(count);
    ranks.use(r);
    must(cudaMemcpy(got.data(), buffers[static_cast<std::size_t>(r)], count * 4,
                    cudaMemcpyDeviceToHost),
         "copy");
    EXPECT_EQ(got, std::vector<std::uint32_t>(count, static_cast<std::uint32_t>(ranks.size())));
  }
}

// Nothing of a caller's buffer is kept: what is freed may come back as other memory.
TEST_F(GpuBuffers, BuffersFreedAndAllocatedAgainAtTheSameAddress) {
  const Ranks ranks(std::max(2, gpu_count()), 4096);
  constexpr std::uint64_t kCount = 3 << 20;
  std::vector<std::uint32_t*> before;
  int same = 0;
  for (int round = 0; round < 4; ++round) {
    std::vector<std::uint32_t*> buffers;
    for (int r = 0; r < ranks.size(); ++r) {
      ranks.use(r);
      buffers.push_back(allocate<std::uint32_t>(kCount));
    }
    same += buffers == before ? 1 : 0;
    check_ones(ranks, buffers, kCount);
    for (int r = 0; r < ranks.size(); ++r) {
      ranks.use(r);
      cudaFree(buffers[static_cast<std::size_t>(r)]);
    }
    before = buffers;
  }
  EXPECT_GT(same, 0) << "the allocator gave other addresses each time: nothing was tested";
}

TEST_F(GpuBuffers, BuffersInExpandableSegments) {
  const Ranks ranks(std::max(2, gpu_count()), 4096);
  for (int round = 0; round < 2; ++round) {  // unmapped and mapped again
    std::vector<std::unique_ptr<Segments>> segments;
    std::vector<std::uint32_t*> buffers;
    for (int r = 0; r < ranks.size(); ++r) {
      ranks.use(r);
      segments.push_back(
          std::make_unique<Segments>(r % gpu_count(), std::vector<std::uint64_t>{1, 4, 1}));
      buffers.push_back(reinterpret_cast<std::uint32_t*>(segments.back()->data()) + 1);
    }
    for (const std::uint64_t count : {100, 3000000}) check_ones(ranks, buffers, count);
  }
}

}  // namespace
}  // namespace gdrx::gpu
