// SPDX-License-Identifier: Apache-2.0
// Memory that comes and goes, and memory as PyTorch maps it. Skipped without a GPU.
#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/gpu/ranks.hpp"

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

template <class Function>
Function driver(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  must(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result), name);
  return reinterpret_cast<Function>(found);
}

/// Memory as PyTorch's expandable segments have it: reserved addresses, physical pages mapped
/// there.
class Segment {
 public:
  Segment(int device, std::uint64_t bytes) {
    CUmemAllocationProp what{};
    what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    what.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    what.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    bytes_ = (bytes + kPage - 1) / kPage * kPage;
    CUmemAccessDesc access{};
    access.location = what.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const bool made =
        driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve")(&at_, bytes_, 0, 0, 0) == 0 &&
        driver<decltype(&cuMemCreate)>("cuMemCreate")(&handle_, bytes_, &what, 0) == 0 &&
        driver<decltype(&cuMemMap)>("cuMemMap")(at_, bytes_, 0, handle_, 0) == 0 &&
        driver<decltype(&cuMemSetAccess)>("cuMemSetAccess")(at_, bytes_, &access, 1) == 0;
    must(made ? cudaSuccess : cudaErrorMemoryAllocation, "mapping a segment");
  }
  ~Segment() {
    driver<decltype(&cuMemUnmap)>("cuMemUnmap")(at_, bytes_);
    driver<decltype(&cuMemRelease)>("cuMemRelease")(handle_);
    driver<decltype(&cuMemAddressFree)>("cuMemAddressFree")(at_, bytes_);
  }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  std::uint32_t* data() const { return reinterpret_cast<std::uint32_t*>(at_); }

 private:
  static constexpr std::uint64_t kPage = 2 << 20;
  std::uint64_t bytes_ = 0;
  CUdeviceptr at_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
};

TEST_F(GpuBuffers, BuffersInExpandableSegments) {
  const Ranks ranks(std::max(2, gpu_count()), 4096);
  for (int round = 0; round < 2; ++round) {  // unmapped and mapped again
    std::vector<std::unique_ptr<Segment>> segments;
    std::vector<std::uint32_t*> buffers;
    for (int r = 0; r < ranks.size(); ++r) {
      ranks.use(r);
      segments.push_back(std::make_unique<Segment>(r % gpu_count(), 12 << 20));
      buffers.push_back(segments.back()->data() + 1);
    }
    for (const std::uint64_t count : {100, 3000000}) check_ones(ranks, buffers, count);
  }
}

}  // namespace
}  // namespace gdrx::gpu
