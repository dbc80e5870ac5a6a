// SPDX-License-Identifier: Apache-2.0
// What the only GPU of a host does of a call: copies, and the kernel that passes a small vector to
// the network and back. Here the test is the network. Skipped without a GPU.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/gpu/network.hpp"
#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {
namespace {

using Bytes_ = std::vector<std::byte>;
constexpr std::byte kPoison{0xa5};
constexpr std::uint64_t kMost = 300'000;
constexpr std::uint64_t kAround = 32;  // looked at behind a result

class GpuRelay : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
    ranks_ = std::make_unique<Ranks>(1, kMost);
    void* pinned = nullptr;
    must(cudaHostAlloc(&pinned, kMost, cudaHostAllocPortable), "cudaHostAlloc");
    part_ = static_cast<std::byte*>(pinned);
  }
  void TearDown() override {
    ranks_.reset();
    if (part_ != nullptr) cudaFreeHost(part_);
  }

  Path& path() { return ranks_->path(0); }
  std::uint64_t signalled(Signal what) { return gpu::signalled(path(), what); }
  bool comes(Signal what, std::uint64_t count) { return gpu::comes(path(), what, count); }
  /// An input of numbers, an output of poison.
  Bytes_ prepare(std::uint64_t bytes, std::uint64_t in, std::uint64_t out) {
    Bytes_ input(bytes);
    for (std::uint64_t i = 0; i < bytes; ++i)
      input[i] = static_cast<std::byte>(i * 31 + bytes + in);
    must(cudaMemcpy(ranks_->in(0) + in, input.data(), bytes, cudaMemcpyHostToDevice), "copy");
    must(cudaMemset(ranks_->out(0), 0xa5, out + bytes + kAround), "memset");
    must(cudaDeviceSynchronize(), "copy");
    return input;
  }
  /// The output is this, and nothing else was written.
  void expect_output(const Bytes_& expected, std::uint64_t out) {
    Bytes_ got(out + expected.size() + kAround);
    must(cudaMemcpy(got.data(), ranks_->out(0), got.size(), cudaMemcpyDeviceToHost), "copy");
    Bytes_ right(got.size(), kPoison);
    std::copy(expected.begin(), expected.end(), right.begin() + static_cast<std::ptrdiff_t>(out));
    EXPECT_TRUE(got == right);
  }
  bool relay(std::uint64_t bytes, std::uint64_t in, std::uint64_t out, std::uint64_t part) {
    return must(path().relay(
        {ranks_->in(0) + in, ranks_->out(0) + out, bytes, DataType::uint8, ReduceOp::sum, bytes},
        {part_ + part, {bytes, 3, 2, 1}, {}}, ranks_->stream(0)));
  }

  std::unique_ptr<Ranks> ranks_;
  std::byte* part_ = nullptr;
};

TEST_F(GpuRelay, PassesEveryByteThereAndBackAtAnyAddress) {
  std::uint64_t calls = 0;
  for (const std::uint64_t bytes : {1, 3, 4, 15, 16, 17, 4099, 16384, 65536}) {
    for (const auto& [in, out, part] :
         {std::tuple(0, 0, 0), std::tuple(4, 8, 0), std::tuple(1, 0, 16), std::tuple(0, 3, 0)}) {
      SCOPED_TRACE(testing::Message()
                   << bytes << " bytes at " << in << ", " << out << ", " << part);
      const Bytes_ input = prepare(bytes, in, out);
      const bool words =
          (in | out | part) % 16 == 0 || ((in | out | part) % 4 == 0 && bytes <= 16384);
      ASSERT_EQ(relay(bytes, in, out, part), words || bytes <= 4096);
      if (!words && bytes > 4096) continue;
      ASSERT_TRUE(comes(Signal::begun, ++calls));
      EXPECT_EQ(path().flags().record.count, bytes);
      EXPECT_EQ(path().flags().record.captured, 1);
      ASSERT_TRUE(comes(Signal::scattered, calls));
      EXPECT_EQ(std::memcmp(part_ + part, input.data(), bytes), 0);
      Bytes_ sum = input;
      for (std::byte& byte : sum) byte ^= std::byte{0x5a};
      std::memcpy(part_ + part, sum.data(), bytes);
      EXPECT_EQ(signalled(Signal::gathered), calls - 1);
      allow(path(), WaitFlag::gather);
      ASSERT_TRUE(comes(Signal::gathered, calls));
      ranks_->synchronize();
      expect_output(sum, out);
    }
  }
  EXPECT_EQ(signalled(Signal::added), 0U);
}

TEST_F(GpuRelay, IsNoneOfLargeCalls) {
  EXPECT_FALSE(relay(65537, 0, 0, 0));
  ranks_->synchronize();
  EXPECT_EQ(signalled(Signal::begun), 0U);
}

TEST_F(GpuRelay, AnAbortEndsItAndNothingIsToldAfterwards) {
  prepare(64, 0, 0);
  ASSERT_TRUE(relay(64, 0, 0, 0));
  ASSERT_TRUE(comes(Signal::scattered, 1));
  path().abort();
  ASSERT_TRUE(relay(64, 0, 0, 0));
  ranks_->synchronize();
  EXPECT_EQ(signalled(Signal::begun), 1U);
  EXPECT_EQ(signalled(Signal::gathered), 0U);
  expect_output(Bytes_(64, kPoison), 0);
}

// By a kernel or by the copy engine: 16Ki words are the border.
TEST_F(GpuRelay, ACopyOfOneRankCopiesEveryByteAtAnyAddress) {
  for (const std::uint64_t bytes : {1, 15, 16, 17, 4099, 16384, 16385, 65537, 262144, 262145}) {
    for (const auto& [in, out] :
         {std::pair(0, 0), std::pair(4, 8), std::pair(1, 0), std::pair(16, 2), std::pair(7, 7)}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes at " << in << " and " << out);
      const Bytes_ input = prepare(bytes, in, out);
      ranks_->launch(
          0,
          {ranks_->in(0) + in, ranks_->out(0) + out, bytes, DataType::uint8, ReduceOp::sum, bytes},
          shape_of_blocks(Kernel::reduce_scatter, ranks_->host(), bytes));
      ranks_->synchronize();
      expect_output(input, out);
    }
  }
}

}  // namespace
}  // namespace gdrx::gpu
