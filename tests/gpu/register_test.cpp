// SPDX-License-Identifier: Apache-2.0
// Registering GPU memory with a communicator: all ranks or none. Ranks of one process, a thread and
// a GPU each. Skipped without a GPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "collectives/comm/communicator.hpp"
#include "mpi-tests/data.hpp"
#include "tests/gpu/ranks.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx::gpu {
namespace {

constexpr std::uint64_t kBytes = 8 << 20;  // where direct is the best by the model

class GpuRegister : public testing::Test {
 protected:
  struct Member {
    std::unique_ptr<Communicator> comm;
    std::byte* in = nullptr;
    std::byte* out = nullptr;
    cudaStream_t stream = nullptr;
    std::vector<std::byte> data;
  };

  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
    make("auto");
  }
  void TearDown() override { end(); }

  void make(const std::string& algorithm) {
    end();
    members_.resize(kRanks);
    auto bootstraps = ThreadBootstrap::create_all(kRanks);
    for_each([&](int rank) {
      auto loaded = must(load_config(process_environment()));
      Communicator::Options options;
      options.config = std::move(loaded.config);
      options.config.timeout = std::chrono::seconds(20);
      options.config.algo = algorithm;
      // Against the ring, direct wins at few sizes only; the ring is no rival here.
      options.config.reproducible = algorithm == "auto";
      options.log = Log(options.config.log_level, stderr_sink());
      Member& member = at(rank);
      member.comm = must(
          Communicator::create(*bootstraps[static_cast<std::size_t>(rank)], std::move(options)));
      member.in = allocate<std::byte>(kBytes);
      member.out = allocate<std::byte>(kBytes);
      must(cudaStreamCreateWithFlags(&member.stream, cudaStreamNonBlocking), "stream");
    });
  }
  void end() {
    if (members_.empty()) return;
    for_each([&](int rank) {
      Member& member = at(rank);
      (void)member.comm->drain();
      (void)member.comm->leave();
      member.comm.reset();
      cudaFree(member.in);
      cudaFree(member.out);
      cudaStreamDestroy(member.stream);
    });
    members_.clear();
  }

  Member& at(int rank) { return members_[static_cast<std::size_t>(rank)]; }

  void for_each(const std::function<void(int)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&body, rank] {
        must(cudaSetDevice(rank % gpu_count()), "cudaSetDevice");
        must(cudaFree(nullptr), "context");
        body(rank);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  /// Every rank's answer to a registration of what `of` says.
  std::vector<Result<const Window*>> open(const std::function<std::span<std::byte>(int rank)>& of) {
    std::vector<Result<const Window*>> answers(kRanks);
    for_each([&](int rank) {
      answers[static_cast<std::size_t>(rank)] = at(rank).comm->open_window(of(rank));
    });
    return answers;
  }
  std::vector<const Window*> open_both() {
    std::vector<const Window*> windows;
    for (const auto member : {&Member::in, &Member::out}) {
      for (const auto& answer :
           open([&](int rank) { return std::span(at(rank).*member, kBytes); })) {
        EXPECT_TRUE(answer) << answer.error().what;
        windows.push_back(must(answer));
      }
    }
    return windows;  // of the inputs by rank, of the outputs by rank
  }

  static void expect_all(const std::vector<Result<const Window*>>& answers, Errc code,
                         const std::string& words) {
    for (const auto& answer : answers) {
      ASSERT_FALSE(answer);
      EXPECT_EQ(answer.error().code, code);
      EXPECT_NE(answer.error().what.find(words), std::string::npos) << answer.error().what;
    }
  }

  void check(bool registered, std::uint64_t bytes = kBytes) {
    const std::uint64_t count = bytes / 4;
    const bench::DataKey key{DataType::float32, ReduceOp::sum, kRanks, ++calls_};
    for_each([&](int rank) {
      Member& member = at(rank);
      member.data.resize(bytes);
      bench::fill_input(key, rank, member.data.data(), count);
      must(cudaMemset(member.out, 0xa5, bytes), "memset");
      must(cudaMemcpy(member.in, member.data.data(), bytes, cudaMemcpyHostToDevice), "copy");
      must(cudaDeviceSynchronize(), "copy");
    });
    for_each([&](int rank) {
      Member& member = at(rank);
      gdrx::Call call;
      call.collective = Collective::all_reduce;
      call.type = DataType::float32;
      call.input = member.in;
      call.output = member.out;
      call.count = count;
      call.stream = member.stream;
      must(member.comm->wait(*must(member.comm->post(call))));
      const OperationInfo info = member.comm->last_operation();
      EXPECT_EQ(info.path, PathKind::gpu);
      EXPECT_EQ(info.registered, registered);
    });
    std::vector<std::byte> expected(bytes);
    bench::fill_expected(key, expected.data(), 0, count);
    for_each([&](int rank) {
      std::vector<std::byte> got(bytes);
      must(cudaMemcpy(got.data(), at(rank).out, bytes, cudaMemcpyDeviceToHost), "copy");
      EXPECT_EQ(bench::count_wrong(got.data(), expected.data(), 4, count), 0) << "rank " << rank;
    });
  }

  static constexpr int kRanks = 4;
  std::vector<Member> members_;
  std::uint64_t calls_ = 0;
};

TEST_F(GpuRegister, ACallUsesItFromItsBeginningToItsEnd) {
  check(false);
  const auto windows = open_both();
  check(true);
  EXPECT_NE(must(at(0).comm->explain(kBytes)).find("direct"), std::string::npos);
  for (int which = 0; which < 2; ++which) {
    for_each([&](int rank) {
      must(at(rank).comm->close_window(windows[static_cast<std::size_t>(which * kRanks + rank)]));
    });
    check(false);
  }
  EXPECT_EQ(must(at(0).comm->explain(kBytes)).find("direct"), std::string::npos);
}

// By the model two-shot is the faster one there.
TEST_F(GpuRegister, DirectIsTakenAtAnySizeWhereItIsAskedFor) {
  constexpr std::uint64_t kSmall = 256;
  open_both();
  check(false, kSmall);
  make("direct");
  check(false, kSmall);
  open_both();
  check(true, kSmall);
  check(true);
  const std::string said = must(at(0).comm->explain(kSmall));
  EXPECT_NE(said.find("<- asked for, of registered buffers"), std::string::npos) << said;
}

TEST_F(GpuRegister, WhatOneRankCannotNoneDoesAndAllSayWhoAndWhy) {
  const auto answers = open([&](int rank) {
    return std::span(at(rank).in, rank == 2 ? std::size_t{1} << 30 : std::size_t{1} << 20);
  });
  expect_all(answers, Errc::invalid_argument, "rank 2: ");
  expect_all(answers, Errc::invalid_argument, "not within one allocation");
  expect_all(open([&](int rank) { return std::span(at(rank).in, rank == 1 ? 4096U : 8192U); }),
             Errc::mismatch, "registers 4096");
  check(false);
  open_both();
  check(true);  // the destruction of the communicators unmaps
}

TEST_F(GpuRegister, OneRankThatCapturesIsRefusedWithAllOthers) {
  std::vector<Result<const Window*>> answers(kRanks);
  for_each([&](int rank) {
    cudaStream_t stream = at(rank).stream;
    if (rank == 1) {
      must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    }
    answers[static_cast<std::size_t>(rank)] =
        at(rank).comm->open_window(std::span(at(rank).in, kBytes));
    if (rank != 1) return;
    cudaGraph_t spoilt = nullptr;
    if (cudaStreamEndCapture(stream, &spoilt) == cudaSuccess) cudaGraphDestroy(spoilt);
    cudaGetLastError();
  });
  expect_all(answers, Errc::unsupported, "rank 1: memory is not registered while a stream is");
  open_both();
  check(true);
}

TEST_F(GpuRegister, AnotherOrderOfDeregisteringIsRefusedOnAllRanksAndCanBeMended) {
  const auto windows = open_both();
  for_each([&](int rank) {
    const auto first = static_cast<std::size_t>(rank == 3 ? kRanks + rank : rank);
    const auto answer = at(rank).comm->close_window(windows[first]);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Errc::mismatch);
    EXPECT_NE(answer.error().what.find("ranks 0 and 3"), std::string::npos) << answer.error().what;
  });
  check(true);
  for_each([&](int rank) {
    must(at(rank).comm->close_window(windows[static_cast<std::size_t>(rank)]));
  });
  check(false);
}

TEST_F(GpuRegister, AnAlgorithmThatWasAskedForIsKept) {
  make("ring");
  open_both();
  check(false);
}

}  // namespace
}  // namespace gdrx::gpu
