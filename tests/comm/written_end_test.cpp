// SPDX-License-Identifier: Apache-2.0
// A rank that gives up a call whose results others write: from then on nobody does.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "collectives/exec/arena_execution.hpp"

namespace gdrx::exec {
namespace {

/// What process_vm_writev() does here.
struct Kernel {
  static inline std::atomic<bool> stops{false}, entered{false}, goes_on{false};
  static inline std::atomic<std::uintptr_t> refuses{0};
  static inline std::atomic<std::size_t> refuses_bytes{0};
};

constexpr std::size_t kBlock = 4096;
constexpr std::uint64_t kCount = 3 * kBlock / sizeof(float);

/// Two ranks in one process, which writes to itself as to any other.
class WrittenEnd : public testing::Test {
 protected:
  WrittenEnd() : memory_((ArenaLayout::bytes(2, kBlock) + 127) / 128) {
    const auto bytes = std::as_writable_bytes(std::span(memory_));
    layout_ = std::make_unique<ArenaLayout>(bytes, 2, kBlock, false);
    for (int rank = 0; rank < 2; ++rank) seats_.emplace_back(*layout_, rank);
    for (WriteGate& gate : gates_) gate = std::move(*WriteGate::create());
    make_call();
  }

  void make_call() {
    for (int rank = 0; rank < 2; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      in_[at].assign(kCount, 1.0F + static_cast<float>(rank));
      out_[at].assign(kCount, -1.0F);
      CallSignature signature;
      signature.collective = Collective::all_reduce;
      signature.type = DataType::float32;
      signature.algorithm = plan::Algorithm::two_shot;
      signature.sequence = calls_;
      signature.count = kCount;
      seats_[at].begin(signature);
      const ArenaCall call{.signature = signature,
                           .base = base_,
                           .input = reinterpret_cast<const std::byte*>(in_[at].data()),
                           .output = reinterpret_cast<std::byte*>(out_[at].data()),
                           .processes = processes_,
                           .gate = &gates_[at]};
      ranks_[at] = std::make_unique<ArenaExecution>(seats_[at], call);
    }
    ++calls_;
    base_ = ranks_[0]->end_stage(base_);
  }

  void run_to_the_end() {
    for (int done = 0; done < 2;) {
      done = 0;
      for (auto& rank : ranks_) {
        if (rank == nullptr) {
          ++done;
          continue;
        }
        const auto step = rank->step();
        ASSERT_TRUE(step) << step.error().what;
        if (*step == Step::done) rank.reset();
      }
    }
  }

  struct alignas(128) Line {
    std::byte bytes[128];
  };
  std::vector<Line> memory_;
  std::unique_ptr<ArenaLayout> layout_;
  std::vector<ArenaSeat> seats_;
  std::uint64_t calls_ = 0;
  std::uint64_t base_ = 0;
  std::array<WriteGate, 2> gates_;
  std::vector<ProcessTicket> processes_{{.pid = getpid()}, {.pid = getpid()}};
  std::array<std::vector<float>, 2> in_, out_;
  std::array<std::unique_ptr<ArenaExecution>, 2> ranks_;
};

TEST_F(WrittenEnd, BothGetTheSumsWhereBothGoOn) {
  run_to_the_end();
  for (const auto& out : out_) EXPECT_EQ(out, std::vector<float>(kCount, 3.0F));
}

TEST_F(WrittenEnd, WhoGaveUpIsNotWritten) {
  ASSERT_TRUE(ranks_[0]->step());
  ASSERT_TRUE(ranks_[1]->step());
  ranks_[1].reset();
  const auto step = ranks_[0]->step();
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().code, Errc::peer_lost);
  EXPECT_EQ(out_[1], std::vector<float>(kCount, -1.0F));
}

TEST_F(WrittenEnd, WhoGivesUpWaitsForAWriterButNotForEver) {
  ASSERT_TRUE(ranks_[0]->step());
  ASSERT_TRUE(ranks_[1]->step());
  std::atomic<std::int32_t> dead{0};
  auto begin = std::chrono::steady_clock::now();
  std::thread writer([&] {
    dead = own_thread();
    layout_->line(0).writing.store(own_thread());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    layout_->line(0).writing.store(0);
  });
  while (layout_->line(0).writing.load() == 0) std::this_thread::yield();
  ranks_[1].reset();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
  writer.join();
  layout_->line(1).writing.store(dead);
  begin = std::chrono::steady_clock::now();
  ranks_[0].reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

// It has read where it writes to, and is stopped before the kernel hears of it.
TEST_F(WrittenEnd, ARankStoppedBeforeItsWriteChangesNothingWhenItGoesOn) {
  for (auto& rank : ranks_) ASSERT_TRUE(rank->step());
  Kernel::entered = false;
  Kernel::goes_on = false;
  Kernel::stops = true;
  std::thread late([&] { EXPECT_FALSE(ranks_[0]->step()); });
  while (!Kernel::entered) std::this_thread::yield();
  layout_->line(0).writing.store(0);  // as good as a thread that is_running() says is stopped
  ranks_[1].reset();                  // it gives the call up, and its caller frees the buffer
  const std::vector<float> others(kCount, 42.0F);
  out_[1] = others;
  Kernel::goes_on = true;
  late.join();
  Kernel::stops = false;
  EXPECT_EQ(out_[1], others);
}

// Memory of a device, for one: the processor writes it, and the kernel does not for another
// process.
TEST_F(WrittenEnd, WhatTheKernelDoesNotWriteGoesThroughTheResultBlock) {
  Kernel::refuses = reinterpret_cast<std::uintptr_t>(out_[1].data());
  Kernel::refuses_bytes = kCount * sizeof(float);
  run_to_the_end();
  Kernel::refuses_bytes = 0;
  for (const auto& out : out_) EXPECT_EQ(out, std::vector<float>(kCount, 3.0F));
  make_call();  // and the next one is written again
  run_to_the_end();
  for (const auto& out : out_) EXPECT_EQ(out, std::vector<float>(kCount, 3.0F));
}

}  // namespace
}  // namespace gdrx::exec

// In place of the C library's.
extern "C" ssize_t process_vm_writev(pid_t pid, const iovec* from, unsigned long froms,
                                     const iovec* to, unsigned long tos,
                                     unsigned long flags) noexcept {
  using gdrx::exec::Kernel;
  if (Kernel::stops) {
    Kernel::entered = true;
    while (!Kernel::goes_on) std::this_thread::yield();
  }
  std::size_t before = 0;
  for (unsigned long i = 0; i < tos; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(to[i].iov_base);
    if (address - Kernel::refuses < Kernel::refuses_bytes) {  // it has written what is before
      if (i == 0) errno = EFAULT;
      return i == 0 ? -1 : static_cast<ssize_t>(before);
    }
    before += to[i].iov_len;
  }
  return syscall(SYS_process_vm_writev, pid, from, froms, to, tos, flags);
}
