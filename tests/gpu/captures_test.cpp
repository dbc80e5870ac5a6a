// SPDX-License-Identifier: Apache-2.0
// Calls beside captures of streams. Skipped without a GPU.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "collectives/comm/communicator.hpp"
#include "tests/gpu/delay.hpp"
#include "tests/gpu/ranks.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx::gpu {
namespace {

constexpr std::uint64_t kWords = 1024;

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  return stream;
}

class GpuCaptures : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};

void fill_with_ones(const Ranks& ranks, int r) {
  ranks.use(r);
  const std::vector<std::uint32_t> ones(kWords, 1);
  must(cudaMemcpy(ranks.out(r), ones.data(), kWords * 4, cudaMemcpyHostToDevice), "copy");
}

/// In place: multiplies by the number of ranks.
void multiply(const Ranks& ranks, int r, const Shape& shape, cudaStream_t stream) {
  must(ranks.path(r).launch(
      {ranks.out(r), ranks.out(r), kWords * 4, DataType::uint32, ReduceOp::sum}, shape, stream));
}

/// Or is just about to.
bool has_ended(cudaStream_t stream) {
  for (int i = 0; i < 50; ++i) {
    if (cudaStreamQuery(stream) == cudaSuccess) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// The first stream is kept busy: without the order the last call overtakes the first.
TEST_F(GpuCaptures, OneBetweenTwoCallsLeavesTheirOrder) {
  const Ranks ranks(2, kWords * 4);
  const Shape shape = choose(ranks.host(), kWords * 4);
  std::vector<cudaStream_t> captured, last;
  for (int r = 0; r < 2; ++r) fill_with_ones(ranks, r);
  for (int r = 0; r < 2; ++r) {
    ranks.use(r);
    captured.push_back(new_stream());
    last.push_back(new_stream());
    enqueue_delay(200'000'000, ranks.stream(r));
    multiply(ranks, r, shape, ranks.stream(r));
    cudaGraph_t graph = nullptr;
    must(cudaStreamBeginCapture(captured.back(), cudaStreamCaptureModeThreadLocal), "capture");
    multiply(ranks, r, shape, captured.back());
    must(cudaStreamEndCapture(captured.back(), &graph), "capture");
    cudaGraphDestroy(graph);
    multiply(ranks, r, shape, last.back());
  }
  for (std::size_t r = 0; r < 2; ++r) {
    ranks.use(static_cast<int>(r));
    must(cudaStreamSynchronize(last[r]), "synchronize");
    EXPECT_TRUE(has_ended(ranks.stream(static_cast<int>(r)))) << "rank " << r;
  }
  for (const auto* streams : {&captured, &last}) {
    for (const cudaStream_t stream : *streams) cudaStreamDestroy(stream);
  }
}

TEST_F(GpuCaptures, MemoryIsRegisteredAfterOneThatChangedStreams) {
  const Ranks ranks(2, kWords * 4);
  const Shape shape = choose(ranks.host(), kWords * 4);
  ranks.use(0);
  const cudaStream_t first = new_stream(), second = new_stream();
  cudaEvent_t fork = nullptr, join = nullptr;
  must(cudaEventCreate(&fork), "event");
  must(cudaEventCreate(&join), "event");
  cudaGraph_t graph = nullptr;
  must(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal), "capture");
  must(cudaEventRecord(fork, first), "record");
  must(cudaStreamWaitEvent(second, fork, 0), "wait");
  multiply(ranks, 0, shape, first);
  multiply(ranks, 0, shape, second);
  must(cudaEventRecord(join, second), "record");
  must(cudaStreamWaitEvent(first, join, 0), "wait");
  must(cudaStreamEndCapture(first, &graph), "capture");
  cudaGraphDestroy(graph);
  const auto offer = ranks.path(0).offer(ranks.out(0), kWords * 4);
  EXPECT_TRUE(offer) << offer.error().what;
  cudaEventDestroy(fork);
  cudaEventDestroy(join);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
}

TEST_F(GpuCaptures, AnotherThreadsCaptureAndARequestDoNotDisturbEachOther) {
  const Ranks ranks(2, kWords * 4);
  ranks.use(0);
  const auto mark = must(ranks.path(0).mark(ranks.stream(0)));
  const cudaStream_t captured = new_stream();
  must(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal), "capture");
  std::thread([&] {
    const auto reached = mark->reached();
    EXPECT_TRUE(reached) << reached.error().what;
  }).join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(captured, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(captured);
}

// An event on it would be one of the graph's, and the call would be drawn into the graph.
TEST_F(GpuCaptures, TheStreamOfTheCallBeforeMustNotBeCapturedMeanwhile) {
  const Ranks ranks(1, kWords * 4);
  const Shape shape = choose(ranks.host(), kWords * 4);
  ranks.use(0);
  const cudaStream_t other = new_stream();
  multiply(ranks, 0, shape, ranks.stream(0));
  must(cudaStreamSynchronize(ranks.stream(0)), "synchronize");
  must(cudaStreamBeginCapture(ranks.stream(0), cudaStreamCaptureModeThreadLocal), "capture");
  const auto launched = ranks.path(0).launch(
      {ranks.out(0), ranks.out(0), kWords * 4, DataType::uint32, ReduceOp::sum}, shape, other);
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().code, Errc::unsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(ranks.stream(0), &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(other);
}

TEST_F(GpuCaptures, ARequestIsRefusedBeforeAnythingIsInTheGraph) {
  must(cudaSetDevice(0), "cudaSetDevice");
  must(cudaFree(nullptr), "context");
  auto bootstraps = ThreadBootstrap::create_all(1);
  Communicator::Options options;
  options.log = Log(options.config.log_level, stderr_sink());
  const auto comm = must(Communicator::create(*bootstraps[0], std::move(options)));
  auto* const in = allocate<std::uint32_t>(kWords);
  auto* const out = allocate<std::uint32_t>(kWords);
  const std::vector<std::uint32_t> ones(kWords, 1), zeros(kWords, 0);
  must(cudaMemcpy(in, ones.data(), kWords * 4, cudaMemcpyHostToDevice), "copy");
  const cudaStream_t stream = new_stream();
  gdrx::Call call;
  call.collective = Collective::all_reduce;
  call.type = DataType::uint32;
  call.input = reinterpret_cast<std::byte*>(in);
  call.output = reinterpret_cast<std::byte*>(out);
  call.count = kWords;
  call.stream = stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  const auto posted = comm->post(call);
  ASSERT_FALSE(posted);
  EXPECT_EQ(posted.error().code, Errc::unsupported);
  must(cudaStreamEndCapture(stream, &graph), "capture");
  must(cudaGraphInstantiate(&ready, graph, 0), "instantiate");
  must(cudaGraphLaunch(ready, stream), "launch");
  must(cudaStreamSynchronize(stream), "synchronize");
  std::vector<std::uint32_t> got(kWords);
  must(cudaMemcpy(got.data(), out, kWords * 4, cudaMemcpyDeviceToHost), "copy");
  EXPECT_EQ(got, zeros);
  EXPECT_FALSE(comm->failure());
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  cudaFree(in);
  cudaFree(out);
}

class GpuEnd : public GpuCaptures {
 protected:
  void SetUp() override {
    GpuCaptures::SetUp();
    if (IsSkipped()) return;
    must(cudaSetDevice(0), "cudaSetDevice");
    must(cudaFree(nullptr), "context");
    load_delays();
    Communicator::Options options;
    options.config.timeout = std::chrono::milliseconds(300);
    auto bootstraps = ThreadBootstrap::create_all(1);
    comm_ = must(Communicator::create(*bootstraps[0], std::move(options)));
    memory_ = allocate<std::uint32_t>(2 * kWords);
    stream_ = new_stream();
  }
  void TearDown() override {
    comm_.reset();
    if (stream_ == nullptr) return;
    must(cudaDeviceSynchronize(), "synchronize");
    cudaStreamDestroy(stream_);
    cudaFree(memory_);
  }
  gdrx::Call call() const {
    gdrx::Call call;
    call.collective = Collective::all_reduce;
    call.type = DataType::uint32;
    call.input = reinterpret_cast<std::byte*>(memory_);
    call.output = reinterpret_cast<std::byte*>(memory_ + kWords);
    call.count = kWords;
    call.stream = stream_;
    return call;
  }

  std::unique_ptr<Communicator> comm_;
  std::uint32_t* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

TEST_F(GpuEnd, OfACommunicatorWhoseCallsWereWaitedForSpoilsNoCapture) {
  auto posted = must(comm_->post(call()));
  must(comm_->wait(*posted));
  const cudaStream_t captured = new_stream();
  must(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal), "capture");
  std::thread([&] {
    must(comm_->drain());
    comm_.reset();
  }).join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(captured, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(captured);
}

TEST_F(GpuEnd, OfACommunicatorWaitsForTheUsersKernelsForItsTimeoutAlone) {
  const Instant begin = steady_clock().now();
  must(comm_->launch(call()));
  enqueue_delay(2'500'000'000, stream_);
  const auto drained = comm_->drain();
  comm_.reset();
  EXPECT_LT(steady_clock().now() - begin, std::chrono::milliseconds(2000));
  ASSERT_FALSE(drained);
  EXPECT_EQ(drained.error().code, Errc::timeout);
  EXPECT_NE(drained.error().what.find("does not end"), std::string::npos) << drained.error().what;
}

// What hangs may be another communicator's: its kernels end when they end.
class GpuEndOfAFailure : public GpuEnd {
 protected:
  static constexpr std::uint64_t kHangs = 5'000'000'000;
  void SetUp() override {
    GpuEnd::SetUp();
    if (IsSkipped()) return;
    comm_->set_timeout(std::chrono::seconds(60));
    beside_ = new_stream();
    must(comm_->launch(call()));  // and nobody waits for it
    enqueue_delay(kHangs, beside_);
  }
  void TearDown() override {
    GpuEnd::TearDown();
    if (beside_ != nullptr) cudaStreamDestroy(beside_);
  }
  void expect_freed_at_once(std::chrono::milliseconds fails_after) {
    const Instant begin = steady_clock().now();
    std::thread fails([&] {
      std::this_thread::sleep_for(fails_after);
      comm_->abort();
    });
    if (fails_after.count() == 0) fails.join();
    const auto drained = comm_->drain();
    if (fails.joinable()) fails.join();
    comm_.reset();
    EXPECT_LT(steady_clock().now() - begin, std::chrono::nanoseconds(kHangs / 2));
    ASSERT_FALSE(drained);
    EXPECT_EQ(drained.error().code, Errc::aborted) << drained.error().what;
  }

  cudaStream_t beside_ = nullptr;
};

TEST_F(GpuEndOfAFailure, WaitsForNothingElseThatTheGpuRuns) {
  expect_freed_at_once(std::chrono::milliseconds(0));
}

TEST_F(GpuEndOfAFailure, IsHeardOfWhileTheGpuIsWaitedFor) {
  expect_freed_at_once(std::chrono::milliseconds(300));
}

}  // namespace
}  // namespace gdrx::gpu
