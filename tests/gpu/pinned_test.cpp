// SPDX-License-Identifier: Apache-2.0
// Pinned host memory of calls that go through it: as much as the largest of them needs, however
// many sizes there were. Skipped without a GPU.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <thread>

#include "collectives/comm/communicator.hpp"
#include "tests/gpu/ranks.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx::gpu {
namespace {

constexpr std::uint64_t kMost = 8 << 20;

class GpuPinned : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
    must(cudaSetDevice(0), "cudaSetDevice");
    must(cudaFree(nullptr), "context");
    make();
    for (std::byte*& memory : memory_) memory = allocate<std::byte>(kMost);
    before_ = used();
  }
  void TearDown() override {
    comm_.reset();
    for (std::byte* memory : memory_) cudaFree(memory);
  }

  void make() {
    auto bootstraps = ThreadBootstrap::create_all(1);
    Communicator::Options options;
    options.config.gpu = false;
    comm_ = must(Communicator::create(*bootstraps[0], std::move(options)));
  }
  void all_reduce(std::uint64_t bytes) {
    gdrx::Call call;
    call.collective = Collective::all_reduce;
    call.type = DataType::uint8;
    call.input = memory_[0];
    call.output = memory_[1];
    call.count = bytes;
    must(comm_->wait(*must(comm_->post(call))));
  }
  /// To itself, so many bytes.
  void exchange(std::uint64_t bytes) {
    gdrx::Call call;
    call.collective = Collective::send_recv;
    call.type = DataType::uint8;
    call.count = bytes;
    call.sends = true;
    call.input = memory_[0];
    const auto sent = must(comm_->post(call));
    call.sends = false;
    call.input = nullptr;
    call.output = memory_[1];
    must(comm_->wait(*must(comm_->post(call))));
    must(comm_->wait(*sent));
  }
  static std::uint64_t used() {
    std::size_t free = 0, total = 0;
    must(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return total - free;
  }
  std::uint64_t held() const {
    const std::uint64_t held = comm_->memory_held().pinned;
    if (kEmulated) {  // real drivers do not count it; here in whole pages
      EXPECT_LE(used() - before_, held + (64 << 10));
    }
    return held;
  }

  std::unique_ptr<Communicator> comm_;
  std::array<std::byte*, 2> memory_{};

 private:
  std::uint64_t before_ = 0;
};

TEST_F(GpuPinned, IsBoundedWithSizesThatRise) {
  for (std::uint64_t bytes = 1 << 20; bytes <= kMost; bytes += 128 << 10) all_reduce(bytes);
  EXPECT_LE(held(), 2 * 2 * kMost);  // two buffers, and less than as much that they outgrew
}

TEST_F(GpuPinned, IsBoundedWithSizesThatRiseAndFallAndKindsThatTakeTurns) {
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t bytes = 100'000; bytes < kMost; bytes = bytes * 5 / 4) {
      all_reduce(bytes);
      exchange(kMost - bytes);
      exchange(bytes);
    }
  }
  EXPECT_LE(held(), 2 * 2 * kMost);
}

TEST_F(GpuPinned, IsWhatCallsOfOneSizeNeed) {
  for (int call = 0; call < 10; ++call) all_reduce(5'000'000);
  EXPECT_LE(held(), 2 * 5'000'000 * 5 / 4);  // what the process has kept may be larger
}

// The process keeps what a communicator has had, and the next ones use it.
TEST_F(GpuPinned, OfCommunicatorsOneAfterAnotherIsUsedAgainThoughEachNeedsALittleMore) {
  if (!kEmulated) GTEST_SKIP() << "real drivers do not count it";
  const std::uint64_t before = used();
  for (std::uint64_t bytes = 4 << 20; bytes < kMost; bytes += 192 << 10) {
    make();
    all_reduce(bytes);
  }
  EXPECT_LE(used() - before, (2 * (4 + 5 + 6 + 7 + 8)) << 20);  // of two buffers
}

// The thread that drives may be what a stream waits for, and CUDA may let who allocates wait for
// the stream.
TEST_F(GpuPinned, OfACallIsThereWhenItIsPostedBehindOthers) {
  auto bootstraps = ThreadBootstrap::create_all(2);
  std::array<std::unique_ptr<Communicator>, 2> comms;
  const auto make = [&](std::size_t rank) {
    Communicator::Options options;
    options.config.gpu = false;
    comms[rank] = must(Communicator::create(*bootstraps[rank], std::move(options)));
  };
  std::thread other(make, 1);
  make(0);
  other.join();
  const auto post = [&](std::size_t rank, std::uint64_t bytes) {
    gdrx::Call call;
    call.collective = Collective::all_reduce;
    call.type = DataType::uint8;
    call.input = call.output = memory_[rank];
    call.count = bytes;
    return must(comms[rank]->post(call));
  };
  constexpr std::uint64_t kSmall = 1000;
  std::array<std::shared_ptr<Operation>, 2> first{}, last{};
  first[0] = post(0, kSmall);
  last[0] = post(0, kMost);
  EXPECT_GE(comms[0]->memory_held().pinned, 2 * (kSmall + kMost));  // the first runs
  first[1] = post(1, kSmall);
  last[1] = post(1, kMost);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    must(comms[rank]->wait(*first[rank]));
    must(comms[rank]->wait(*last[rank]));
  }
  std::thread leaves([&] { comms[1].reset(); });
  comms[0].reset();
  leaves.join();
}

}  // namespace
}  // namespace gdrx::gpu
