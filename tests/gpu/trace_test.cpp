// SPDX-License-Identifier: Apache-2.0
// What the trace of a communicator says of its GPU. Skipped without one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "collectives/comm/communicator.hpp"
#include "tests/gpu/delay.hpp"
#include "tests/gpu/ranks.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx::gpu {
namespace {

constexpr std::uint64_t kWords = 1024;

/// Two ranks, each with a stream and two buffers.
class GpuTrace : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
    static int made = 0;  // a process has one recording of a name
    folder_ = testing::TempDir() + "gdrx_gpu_trace_" + std::to_string(getpid()) + "_" +
              std::to_string(made++);
    std::filesystem::create_directories(folder_);
    auto bootstraps = ThreadBootstrap::create_all(kRanks);
    for_each([&](std::size_t rank) {
      Communicator::Options options;
      options.config.trace = folder_ + "/%r";
      options.log = Log(options.config.log_level, stderr_sink());
      Member& member = members_[rank];
      member.comm = must(Communicator::create(*bootstraps[rank], std::move(options)));
      member.in = allocate<std::byte>(kWords * 4);
      member.out = allocate<std::byte>(kWords * 4);
      must(cudaStreamCreateWithFlags(&member.stream, cudaStreamNonBlocking), "stream");
    });
  }
  void TearDown() override {
    if (folder_.empty()) return;
    end();
    std::filesystem::remove_all(folder_);
  }
  void end() {
    for_each([&](std::size_t rank) {
      Member& member = members_[rank];
      if (!member.comm) return;
      cudaStreamSynchronize(member.stream);  // a failed communicator does not wait for long
      (void)member.comm->drain();
      (void)member.comm->leave();
      member.comm.reset();
      cudaStreamDestroy(member.stream);
      cudaFree(member.in);
      cudaFree(member.out);
    });
  }
  static void for_each(const std::function<void(std::size_t)>& body) {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&body, rank] {
        must(cudaSetDevice(static_cast<int>(rank) % gpu_count()), "cudaSetDevice");
        must(cudaFree(nullptr), "context");
        body(rank);
      });
    }
  }
  Result<void> call(std::size_t rank) {
    const Member& member = members_[rank];
    gdrx::Call call;
    call.collective = Collective::all_reduce;
    call.type = DataType::uint32;
    call.input = member.in;
    call.output = member.out;
    call.count = kWords;
    call.stream = member.stream;
    return member.comm->launch(call);
  }
  /// Lines of a rank's file that are spans of kernels; `with`: only those that have it.
  int kernels(std::size_t rank, std::string_view with = "") const {
    std::ifstream file(folder_ + "/" + std::to_string(rank));
    int count = 0;
    for (std::string line; std::getline(file, line);) {
      const bool kernel = line.find("\"cat\":\"kernel\"") != std::string::npos;
      count += kernel && line.find(with) != std::string::npos ? 1 : 0;
    }
    return count;
  }

  static constexpr int kRanks = 2;
  struct Member {
    std::unique_ptr<Communicator> comm;
    std::byte* in = nullptr;
    std::byte* out = nullptr;
    cudaStream_t stream = nullptr;
  };
  std::array<Member, kRanks> members_;
  std::string folder_;
};

// Rank 1 keeps its GPU busy, so that rank 0's kernel runs and the call behind it does not.
TEST_F(GpuTrace, OfACommunicatorThatFailsHasAsOpenWhatHasNotEnded) {
  for_each([&](std::size_t rank) {
    if (rank == 1) {
      enqueue_delay(300'000'000, members_[1].stream);
      (void)call(rank);  // or it has heard of the failure already
      return;
    }
    must(call(rank));
    must(call(rank));
    members_[0].comm->abort();
  });
  EXPECT_EQ(kernels(0), 2);
  EXPECT_EQ(kernels(0, "\"open\":true"), 2);
  end();
  EXPECT_EQ(kernels(0), 2);
  EXPECT_EQ(kernels(0, "\"open\":true"), 0) << "they gave up, and the file was written again";
}

TEST_F(GpuTrace, HasNothingOfCallsThatAreCapturedOrOfTheirReplays) {
  for_each([&](std::size_t rank) {
    const cudaStream_t stream = members_[rank].stream;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    must(call(rank));
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    must(call(rank));
    must(cudaStreamEndCapture(stream, &graph), "capture");
    must(cudaGraphInstantiate(&ready, graph, 0), "instantiate");
    must(cudaGraphLaunch(ready, stream), "launch");
    must(cudaGraphLaunch(ready, stream), "launch");
    must(call(rank));
    must(cudaStreamSynchronize(stream), "synchronize");
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
  });
  end();
  for (const std::size_t rank : {0U, 1U}) {
    EXPECT_EQ(kernels(rank), 2);
    EXPECT_EQ(kernels(rank, "\"index\":0}"), 1);
    EXPECT_EQ(kernels(rank, "\"index\":2}"), 1) << "the captured call counts, too";
  }
}

}  // namespace
}  // namespace gdrx::gpu
