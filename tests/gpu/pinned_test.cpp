// SPDX-License-Identifier: Apache-2.0
// Pinned host memory of calls that go through it: as much as the largest of them needs, however
// many sizes there were. Skipped without a GPU.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

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
    auto bootstraps = ThreadBootstrap::create_all(1);
    Communicator::Options options;
    options.config.gpu = false;
    comm_ = must(Communicator::create(*bootstraps[0], std::move(options)));
    for (std::byte*& memory : memory_) memory = allocate<std::byte>(kMost);
    before_ = used();
  }
  void TearDown() override {
    comm_.reset();
    for (std::byte* memory : memory_) cudaFree(memory);
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
  std::uint64_t held() const {
    const std::uint64_t held = comm_->memory_held().pinned;
    if (kEmulated) {  // real drivers do not count it; here in whole pages
      EXPECT_GE(used() - before_, held);
      EXPECT_LE(used() - before_, held + (64 << 10));
    }
    return held;
  }

  std::unique_ptr<Communicator> comm_;
  std::array<std::byte*, 2> memory_{};

 private:
  static std::uint64_t used() {
    std::size_t free = 0, total = 0;
    must(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return total - free;
  }
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
  EXPECT_LE(held(), 2 * 5'000'000 + 2 * 4096);
}

}  // namespace
}  // namespace gdrx::gpu
