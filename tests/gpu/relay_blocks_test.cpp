// SPDX-License-Identifier: Apache-2.0
// The one kernel of a small call between hosts: the ranks of a host scatter, the network (here the
// test) has its turn, or the GPU adds what came from it, the ranks gather. Skipped without a GPU.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/gpu/network.hpp"
#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {
namespace {

using Numbers = std::vector<std::int32_t>;
constexpr std::uint64_t kMost = 64 << 10;
constexpr std::uint64_t kAround = 8;  // elements looked at behind a result
constexpr std::int32_t kPoison = 0x5a5a5a5a;

std::int32_t input_of(int rank, std::uint64_t i, std::uint64_t count) {
  return static_cast<std::int32_t>(i * 7 + count) + 1000 * rank;
}

class GpuRelayBlocks : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
    void* pinned = nullptr;
    must(cudaHostAlloc(&pinned, 2 * kMaxRanks * kMost, cudaHostAllocPortable), "cudaHostAlloc");
    memory_ = static_cast<std::byte*>(pinned);
  }
  void TearDown() override {
    ranks_.reset();
    if (memory_ != nullptr) cudaFreeHost(memory_);
  }

  void make(int ranks) {
    ranks_ = std::make_unique<Ranks>(ranks, kMost);
    calls_ = adds_ = 0;
  }
  int size() const { return ranks_->size(); }
  /// This rank's, of the network; behind it what "another host" has sent.
  std::int32_t* part(int r) const {
    return reinterpret_cast<std::int32_t*>(memory_ + static_cast<std::size_t>(r) * 2 * kMost);
  }
  std::int32_t* landed(int r) const { return part(r) + kMost / 4; }

  void prepare(std::uint64_t count) {
    for (int r = 0; r < size(); ++r) {
      Numbers input(count);
      for (std::uint64_t i = 0; i < count; ++i) input[i] = input_of(r, i, count);
      ranks_->use(r);
      must(cudaMemcpy(ranks_->in(r), input.data(), 4 * count, cudaMemcpyHostToDevice), "copy");
      must(cudaMemset(ranks_->out(r), 0x5a, 4 * (count + kAround)), "memset");
      must(cudaDeviceSynchronize(), "copy");
    }
  }
  std::uint64_t block_of(std::uint64_t count) const {
    return Bytes{16} * ((packs_of(4 * count) + static_cast<std::uint64_t>(size()) - 1) /
                        static_cast<std::uint64_t>(size()));
  }
  std::uint64_t elements_of(int r, std::uint64_t count) const {
    const std::uint64_t begin = begin_of(r, count);
    return begin < count ? std::min(count - begin, block_of(count) / 4) : 0;
  }
  std::uint64_t begin_of(int r, std::uint64_t count) const {
    return static_cast<std::uint64_t>(r) * block_of(count) / 4;
  }
  std::int32_t sum_of(std::uint64_t i, std::uint64_t count) const {
    std::int32_t sum = 0;
    for (int r = 0; r < size(); ++r) sum += input_of(r, i, count);
    return sum;
  }

  bool relay(int r, std::uint64_t count, bool adds) {
    ranks_->use(r);
    Relay between{part(r), {count, 2, 0, 0}, {}};
    if (adds && elements_of(r, count) > 0) {
      HostSum& sum = between.sum;
      sum.own = sum.into = reinterpret_cast<std::uint8_t*>(part(r));
      sum.landed = reinterpret_cast<const std::uint8_t*>(landed(r));
      sum.stride = kMost;
      sum.hosts = 2;
      sum.self = r % 2;
      sum.bytes = 4 * elements_of(r, count);
      sum.type = DataType::int32;
      sum.op = ReduceOp::sum;
    }
    return must(ranks_->path(r).relay(
        {ranks_->in(r), ranks_->out(r), 4 * count, DataType::int32, ReduceOp::sum, block_of(count)},
        between, ranks_->stream(r)));
  }

  /// Every rank of the host: what lies in its part is its block's sum; other hosts have
  /// each element's index.
  void network(std::uint64_t count, bool adds) {
    ++calls_;
    for (int r = 0; r < size(); ++r) {
      Path& path = ranks_->path(r);
      ASSERT_TRUE(comes(path, Signal::begun, calls_));
      ASSERT_TRUE(comes(path, Signal::scattered, calls_));
      ASSERT_EQ(path.flags().record.count, count);
      for (std::uint64_t i = 0; i < elements_of(r, count); ++i) {
        const std::uint64_t at = begin_of(r, count) + i;
        ASSERT_EQ(part(r)[i], sum_of(at, count)) << "rank " << r << ", element " << at;
        if (adds) {
          landed(r)[i] = static_cast<std::int32_t>(at);
        } else {
          part(r)[i] += static_cast<std::int32_t>(at);
        }
      }
    }
    adds_ += adds ? 1 : 0;
    for (int r = 0; r < size(); ++r) {
      Path& path = ranks_->path(r);
      if (adds && elements_of(r, count) > 0) {
        allow(path, WaitFlag::add);
        ASSERT_TRUE(comes(path, Signal::added, adds_));
      }
      ASSERT_EQ(signalled(path, Signal::gathered), calls_ - 1);
      allow(path, WaitFlag::gather);
    }
    for (int r = 0; r < size(); ++r) ASSERT_TRUE(comes(ranks_->path(r), Signal::gathered, calls_));
  }
  void expect_outputs(std::uint64_t count) {
    ranks_->synchronize();
    for (int r = 0; r < size(); ++r) {
      Numbers got(count + kAround);
      must(cudaMemcpy(got.data(), ranks_->out(r), 4 * got.size(), cudaMemcpyDeviceToHost), "copy");
      for (std::uint64_t i = 0; i < got.size(); ++i) {
        const auto right = i < count ? sum_of(i, count) + static_cast<std::int32_t>(i) : kPoison;
        ASSERT_EQ(got[i], right) << "rank " << r << ", element " << i;
      }
    }
  }

  std::unique_ptr<Ranks> ranks_;
  std::byte* memory_ = nullptr;
  std::uint64_t calls_ = 0;
  std::uint64_t adds_ = 0;  // of each rank whose part has bytes
};

TEST_F(GpuRelayBlocks, GivesEveryRankTheSumOfAllHosts) {
  for (const int n : rank_counts()) {
    if (n == 1) continue;
    make(n);
    // The largest that one block of threads does, and one whose last part is short.
    const std::uint64_t most = std::uint64_t{1024} * static_cast<std::uint64_t>(n) *
                               static_cast<std::uint64_t>(unroll_of_blocks(n));
    for (const std::uint64_t count : {std::uint64_t{2}, std::uint64_t{1000}, most - 5, most}) {
      for (const bool adds : {false, true}) {
        if (adds && elements_of(n - 1, count) == 0) continue;  // counts them alike
        SCOPED_TRACE(testing::Message() << n << " ranks, " << count << (adds ? " added" : ""));
        std::memset(memory_, 0, 2 * kMaxRanks * kMost);
        prepare(count);
        for (int r = 0; r < n; ++r) ASSERT_TRUE(relay(r, count, adds));
        network(count, adds);
        if (HasFatalFailure()) return;
        expect_outputs(count);
        if (HasFatalFailure()) return;
      }
    }
    EXPECT_FALSE(relay(0, most + 1, false));
  }
}

// Behind a kernel that uses all slots it enters by a barrier; between others by halves.
TEST_F(GpuRelayBlocks, TakesTurnsWithOtherKernels) {
  make(2);
  constexpr std::uint64_t kCount = 600;
  Shape whole = shape_of_blocks(Kernel::reduce_scatter, ranks_->host(), 2400);
  whole.whole = true;
  for (int turn = 0; turn < 30; ++turn) {
    std::memset(memory_, 0, 2 * kMaxRanks * kMost);
    prepare(kCount);
    for (int r = 0; r < 2; ++r) {
      for (int k = 0; k < turn % 3; ++k) {
        ranks_->launch(
            r, {ranks_->in(r), ranks_->out(r), 4800, DataType::int32, ReduceOp::sum, 2400},
            turn % 2 == 0 ? whole : shape_of_blocks(Kernel::reduce_scatter, ranks_->host(), 2400));
      }
      ASSERT_TRUE(relay(r, kCount, false));
    }
    network(kCount, false);
    if (HasFatalFailure()) return;
    ranks_->synchronize();
    Numbers got(kCount);
    must(cudaMemcpy(got.data(), ranks_->out(1), 4 * kCount, cudaMemcpyDeviceToHost), "copy");
    for (std::uint64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(got[i], sum_of(i, kCount) + static_cast<std::int32_t>(i)) << "turn " << turn;
    }
  }
}

TEST_F(GpuRelayBlocks, OneThatWaitsInVainTellsNothing) {
  make(2);
  prepare(100);
  ASSERT_TRUE(relay(0, 100, false));  // without rank 1
  ASSERT_TRUE(comes(ranks_->path(0), Signal::begun, 1));
  ranks_->path(0).abort();
  ASSERT_TRUE(relay(0, 100, false));
  ranks_->synchronize();
  EXPECT_EQ(signalled(ranks_->path(0), Signal::begun), 1U);
  EXPECT_EQ(signalled(ranks_->path(0), Signal::scattered), 0U);
  EXPECT_EQ(signalled(ranks_->path(0), Signal::gathered), 0U);
}

}  // namespace
}  // namespace gdrx::gpu
