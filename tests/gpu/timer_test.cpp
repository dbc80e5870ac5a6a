// SPDX-License-Identifier: Apache-2.0
// When work ran on the GPU, by the host's clock. Skipped without a GPU.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "tests/gpu/delay.hpp"
#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kWords = 1024;
constexpr milliseconds kDelay{50};

void delay(cudaStream_t stream) {
  enqueue_delay(static_cast<std::uint64_t>(Duration(kDelay).count()), stream);
}

/// A rank alone, whose calls are copies.
class GpuTimer : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
    ranks_.emplace(1, kWords * 4);
    timer_ = must(ranks_->path(0).timer(4));
  }
  void TearDown() override { timer_.reset(); }
  void call(cudaStream_t stream) const {
    must(ranks_->path(0).launch(
        {ranks_->in(0), ranks_->out(0), kWords * 4, DataType::uint32, ReduceOp::sum},
        choose(ranks_->host(), kWords * 4), stream));
  }
  std::optional<Ranks> ranks_;
  std::unique_ptr<Timer> timer_;
};

TEST_F(GpuTimer, SeesWhenWorkRanAndNotWhenItWasEnqueued) {
  const cudaStream_t stream = ranks_->stream(0);
  const Instant enqueued = steady_clock().now();
  delay(stream);
  ASSERT_TRUE(timer_->begin(0, stream));
  delay(stream);
  ASSERT_TRUE(timer_->end(0, stream));
  ranks_->synchronize();
  const Instant done = steady_clock().now();
  const Timer::Times times = timer_->read(0);
  ASSERT_TRUE(times.begin && times.end);
  const Duration off = timer_->precision() + std::chrono::microseconds(1);
  EXPECT_GE(*times.begin, enqueued + kDelay - off);
  EXPECT_GE(*times.end - *times.begin, kDelay - off);
  EXPECT_LE(*times.end, done + off);
}

TEST_F(GpuTimer, ReadsNothingBeforeItIsReachedAndDoesNotWait) {
  const cudaStream_t stream = ranks_->stream(0);
  delay(stream);
  ASSERT_TRUE(timer_->begin(0, stream));
  ASSERT_TRUE(timer_->end(0, stream));
  const Timer::Times at_once = timer_->read(0);
  EXPECT_FALSE(at_once.begin || at_once.end);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady) << "it has waited";
  cudaGetLastError();
  ranks_->synchronize();
  const Timer::Times later = timer_->read(0);
  EXPECT_TRUE(later.begin && later.end);
}

// Else the second would begin while the first runs.
TEST_F(GpuTimer, ACallOnAnotherStreamBeginsBehindTheOneBefore) {
  const cudaStream_t first = ranks_->stream(0);
  cudaStream_t second = nullptr;
  must(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), "stream");
  ASSERT_TRUE(timer_->begin(0, first));
  delay(first);
  call(first);
  ASSERT_TRUE(timer_->end(0, first));
  ASSERT_TRUE(timer_->begin(1, second));
  call(second);
  ASSERT_TRUE(timer_->end(1, second));
  must(cudaStreamSynchronize(second), "synchronize");
  ASSERT_TRUE(timer_->read(0).end && timer_->read(1).begin);
  EXPECT_GE(*timer_->read(1).begin, *timer_->read(0).end);
  cudaStreamDestroy(second);
}

TEST_F(GpuTimer, TimesNothingThatIsCapturedAndSpoilsNoCapture) {
  const cudaStream_t stream = ranks_->stream(0);
  cudaStream_t other = nullptr;
  must(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "stream");
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  EXPECT_FALSE(timer_->begin(0, stream));
  call(stream);
  EXPECT_TRUE(timer_->begin(1, other));
  call(other);
  EXPECT_TRUE(timer_->end(1, other));
  while (!timer_->read(1).end) std::this_thread::yield();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(other);
}

// Anchors are renewed after a second.
TEST_F(GpuTimer, StaysRightWhenTheAnchorHasAged) {
  const cudaStream_t stream = ranks_->stream(0);
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    const Instant before = steady_clock().now();
    ASSERT_TRUE(timer_->begin(slot, stream));
    ASSERT_TRUE(timer_->end(slot, stream));
    ranks_->synchronize();
    const Instant after = steady_clock().now();
    const Timer::Times times = timer_->read(slot);
    ASSERT_TRUE(times.begin && times.end);
    // The new anchor may be less precise than the first: 25 us, its limit's half.
    const Duration off = timer_->precision() + std::chrono::microseconds(26);
    EXPECT_GE(*times.begin, before - off);
    EXPECT_LE(*times.end, after + off);
    if (slot == 0) std::this_thread::sleep_for(milliseconds(1100));
  }
  EXPECT_TRUE(timer_->read(0).end) << "its own anchor is gone";
}

}  // namespace
}  // namespace gdrx::gpu
