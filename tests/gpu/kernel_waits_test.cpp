// SPDX-License-Identifier: Apache-2.0
// Kernels that wait: for others on the same GPUs, too long, and when they are told not to. Skipped
// without a GPU.
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {
namespace {

constexpr auto kPromptly = std::chrono::milliseconds(kEmulated ? 10'000 : 500);

class GpuKernelWaits : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};

// Communicators on the same GPUs, launched in opposite orders: no kernel may keep out one that it
// waits for. The streams are filled, so that successors press in.
void run_at_once(int communicators, int share) {
  const int n = std::max(2, gpu_count());
  const std::uint64_t bytes = 16 << 20;
  std::vector<std::unique_ptr<Ranks>> all;
  for (int i = 0; i < communicators; ++i) all.push_back(std::make_unique<Ranks>(n, bytes));
  Host host = all[0]->host();
  host.blocks /= share;
  std::mt19937 random(5);
  for (int call = 0; call < 400; ++call) {
    const std::uint64_t words = 1 + random() % (call % 10 == 0 ? bytes / 4 : 100000);
    const Shape shape = choose(host, words * 4);
    for (int r = 0; r < n; ++r) {
      for (int turn = 0; turn < communicators; ++turn) {
        const Ranks& ranks = *all[static_cast<std::size_t>((turn + r + call / 7) % communicators)];
        ranks.launch(r, {ranks.in(r), ranks.out(r), words * 4, DataType::uint32, ReduceOp::sum},
                     shape);
      }
    }
  }
  for (const auto& ranks : all) {
    ranks->synchronize();
    for (int r = 0; r < n; ++r) {
      EXPECT_FALSE(ranks->path(r).kernel_error().happened) << "rank " << r;
    }
  }
}

TEST_F(GpuKernelWaits, TwoCommunicatorsRunAtOnce) { run_at_once(2, 1); }

TEST_F(GpuKernelWaits, FourCommunicatorsRunAtOnceWithAQuarterEach) { run_at_once(4, 4); }

TEST_F(GpuKernelWaits, AKernelThatWaitsTooLongSaysForWhomAndEnds) {
  const Ranks ranks(2, 1 << 20, 0.5);
  const auto begin = std::chrono::steady_clock::now();
  ranks.launch(1, {ranks.in(1), ranks.out(1), 4096, DataType::float32, ReduceOp::sum},
               choose(ranks.host(), 4096));
  ranks.synchronize();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPromptly + std::chrono::seconds(1));
  const KernelError failure = ranks.path(1).kernel_error();
  ASSERT_TRUE(failure.happened);
  EXPECT_EQ(index(failure.peer), 0);
  EXPECT_EQ(failure.stage, "reducing");
  EXPECT_FALSE(ranks.path(0).kernel_error().happened);
}

TEST_F(GpuKernelWaits, AKernelMayHaveATimeoutOfItsOwn) {
  const Ranks ranks(2, 1 << 20, 100);
  const auto begin = std::chrono::steady_clock::now();
  Work work{ranks.in(1), ranks.out(1), 4096, DataType::float32, ReduceOp::sum};
  work.timeout = std::chrono::milliseconds(500);
  ranks.launch(1, work, choose(ranks.host(), 4096));
  ranks.synchronize();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPromptly + std::chrono::seconds(1));
  const KernelError failure = ranks.path(1).kernel_error();
  ASSERT_TRUE(failure.happened);
  EXPECT_EQ(failure.timeout, std::chrono::milliseconds(500));
}

// The limit is of one wait. A kernel of thousands of short ones may take many times as long.
TEST_F(GpuKernelWaits, ALongKernelOfShortWaitsIsNotLate) {
  const std::uint64_t bytes = 256 << 20;
  for (const double timeout : {20.0, 0.004}) {  // the first loads the kernel
    const Ranks ranks(2, bytes, timeout);
    Shape shape = *shape_of(Kernel::ring, ranks.host(), bytes);
    shape.blocks = 1;
    for (int r = 0; r < 2; ++r) {
      ranks.launch(r, {ranks.in(r), ranks.out(r), bytes, DataType::float32, ReduceOp::sum}, shape);
    }
    ranks.synchronize();
    for (int r = 0; r < 2; ++r) EXPECT_FALSE(ranks.path(r).kernel_error().happened);
  }
}

TEST_F(GpuKernelWaits, AnAbortEndsAWaitingKernel) {
  const Ranks ranks(2, 1 << 20, 100);
  ranks.launch(0, {ranks.in(0), ranks.out(0), 1 << 20, DataType::float32, ReduceOp::sum},
               *shape_of(Kernel::ring, ranks.host(), 1 << 20));
  EXPECT_EQ(cudaStreamQuery(ranks.stream(0)), cudaErrorNotReady);
  const auto begin = std::chrono::steady_clock::now();
  ranks.path(0).abort();
  ranks.synchronize();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPromptly);
  EXPECT_FALSE(ranks.path(0).kernel_error().happened);
}

}  // namespace
}  // namespace gdrx::gpu
