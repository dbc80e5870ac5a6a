// SPDX-License-Identifier: Apache-2.0
// Registered GPU memory, all ranks or none: the communicator's part, over GPUs that are made up.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <string>
#include <thread>

#include "tests/comm/thread_ranks.hpp"
#include "tests/gpu/no_path.hpp"

namespace gdrx {
namespace {

constexpr int kRanks = 4;

/// What all made-up GPUs of a test do, and what they have seen.
struct World {
  int cannot_offer = -1;  // a rank
  int cannot_open = -1;
  int cannot_finish = -1;
  int cannot_allocate = -1;
  std::atomic<int> opened{0};
  std::atomic<int> closed{0};
  std::atomic<int> offers_alive{0};
  std::atomic<int> memory_alive{0};
  std::atomic<bool> closed_too_early{false};
  std::atomic<bool> withdrawn_too_early{false};
};

class FakeExport final : public gpu::ExportedMemory {
 public:
  FakeExport(World& world, Blob ticket) : world_(world), ticket_(std::move(ticket)) {
    ++world_.offers_alive;
  }
  ~FakeExport() override {
    --world_.offers_alive;
    const bool all_tried = world_.opened == kRanks || world_.cannot_open >= 0;
    if (!all_tried && world_.cannot_offer < 0 && world_.cannot_allocate < 0)
      world_.withdrawn_too_early = true;
  }
  const Blob& ticket() const noexcept override { return ticket_; }

 private:
  World& world_;
  Blob ticket_;
};

class FakeMemory final : public gpu::Memory {
 public:
  explicit FakeMemory(World& world) : world_(world) { ++world_.memory_alive; }
  ~FakeMemory() override { --world_.memory_alive; }
  std::byte* data() const noexcept override { return const_cast<std::byte*>(bytes_.data()); }

 private:
  World& world_;
  std::array<std::byte, 64> bytes_{};
};

class FakePath final : public gpu::NoPath {
 public:
  FakePath(World& world, int rank) : world_(world), rank_(rank) {
    ticket_.process = 1;
    ticket_.processors = 132;
    ticket_.device[0] = static_cast<std::uint8_t>(rank);
  }
  Result<void> finish(Deadline) override {
    if (rank_ == world_.cannot_finish) return fail(Errc::unsupported, "a stream is captured");
    finished_ = true;
    return {};
  }
  Result<std::unique_ptr<gpu::ExportedMemory>> offer(void*, std::uint64_t bytes) override {
    if (rank_ == world_.cannot_offer) return fail(Errc::invalid_argument, "not one allocation");
    return std::make_unique<FakeExport>(world_, Blob(static_cast<std::size_t>(bytes)));
  }
  Result<std::unique_ptr<gpu::Memory>> allocate(std::uint64_t) override {
    if (rank_ == world_.cannot_allocate) return fail(Errc::system, "out of memory");
    return std::make_unique<FakeMemory>(world_);
  }
  Result<gpu::WindowId> open_window(std::span<const Blob> tickets, Deadline) override {
    EXPECT_EQ(tickets.size(), kRanks);
    EXPECT_EQ(world_.offers_alive, kRanks);
    if (rank_ == world_.cannot_open) return fail(Errc::system, "cannot map it");
    open_.insert(++last_);
    ++world_.opened;
    return gpu::WindowId{last_};
  }
  void close_window(gpu::WindowId window) noexcept override {
    if (!finished_ && world_.cannot_open < 0) world_.closed_too_early = true;
    EXPECT_EQ(open_.erase(static_cast<std::uint64_t>(window)), 1U);
    ++world_.closed;
  }
  bool reaches(const void*, const void*, std::uint64_t) const noexcept override {
    return !open_.empty();
  }

 private:
  World& world_;
  int rank_;
  std::uint64_t last_ = 0;
  std::set<std::uint64_t> open_;
  bool finished_ = false;
};

class Windows : public ThreadRanks {
 protected:
  void SetUp() override {
    make(kRanks, [this](int rank) { return std::make_unique<FakePath>(world_, rank); });
  }
  void TearDown() override {
    for_each([&](std::size_t rank) {
      (void)comms_[rank]->drain();
      (void)comms_[rank]->leave();
      // Whoever has left may free: nobody has it open any more.
      EXPECT_EQ(world_.opened, world_.closed);
      comms_[rank].reset();
    });
    EXPECT_FALSE(world_.closed_too_early);
    EXPECT_FALSE(world_.withdrawn_too_early);
    EXPECT_EQ(world_.offers_alive, 0);
    EXPECT_EQ(world_.memory_alive, 0);
  }
  auto open(std::size_t rank) { return comms_[rank]->open_window(std::span(memory_)); }
  const Window* must_open(std::size_t rank) {
    const auto opened = open(rank);
    EXPECT_TRUE(opened) << opened.error().what;
    return opened ? *opened : nullptr;
  }
  std::size_t open_windows(std::size_t rank) {
    const auto text = comms_[rank]->explain(16 << 20);
    return text && text->find("direct") != std::string::npos ? 1 : 0;
  }
  void expect_all_refuse(Errc code, const std::string& what) {
    for_each([&](std::size_t rank) {
      const auto window = open(rank);
      ASSERT_FALSE(window);
      EXPECT_EQ(window.error().code, code);
      EXPECT_EQ(window.error().what, what);
      EXPECT_FALSE(comms_[rank]->failure());
    });
    EXPECT_EQ(world_.opened, world_.closed);
  }

  World world_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(64);
};

TEST_F(Windows, OpenOnAllRanksAndEndWhenAllHaveFinished) {
  for_each([&](std::size_t rank) {
    const auto window = open(rank);
    ASSERT_TRUE(window) << window.error().what;
    EXPECT_EQ(comms_[rank]->window_of(*window), *window);
    EXPECT_EQ(open_windows(rank), 1U);
    EXPECT_EQ(world_.opened, kRanks);  // on return everybody has mapped everybody's
    std::this_thread::sleep_for(std::chrono::milliseconds(rank * 20));
    const auto closed = comms_[rank]->close_window(*window);
    EXPECT_TRUE(closed);
    EXPECT_EQ(world_.closed, kRanks);  // on return nobody maps it
    EXPECT_EQ(comms_[rank]->window_of(*window), nullptr);
    EXPECT_EQ(open_windows(rank), 0U);
  });
}

TEST_F(Windows, WhatOneRankCannotOfferNobodyOpens) {
  world_.cannot_offer = 2;
  expect_all_refuse(Errc::invalid_argument, "rank 2: not one allocation");
  EXPECT_EQ(world_.opened, 0);
}

TEST_F(Windows, WhatOneRankCannotMapIsClosedByTheOthers) {
  world_.cannot_open = 1;
  expect_all_refuse(Errc::system, "rank 1: cannot map it");
  EXPECT_EQ(world_.closed, kRanks - 1);
}

TEST_F(Windows, ARankThatCannotDeregisterYetKeepsAllOpen) {
  world_.cannot_finish = 3;
  std::vector<const Window*> windows(kRanks);
  for_each([&](std::size_t rank) {
    windows[rank] = must_open(rank);
    ASSERT_NE(windows[rank], nullptr);
    const auto closed = comms_[rank]->close_window(windows[rank]);
    ASSERT_FALSE(closed);
    EXPECT_EQ(closed.error().what, "rank 3: a stream is captured");
    EXPECT_EQ(comms_[rank]->window_of(windows[rank]), windows[rank]);
  });
  EXPECT_EQ(world_.closed, 0);
  world_.cannot_finish = -1;
  for_each([&](std::size_t rank) { EXPECT_TRUE(comms_[rank]->close_window(windows[rank])); });
}

TEST_F(Windows, WhatIsLeftOpenEndsBeforeAnyRankHasLeft) {
  for_each([&](std::size_t rank) { EXPECT_TRUE(open(rank)); });
}

TEST_F(Windows, EndWithAFailedCommunicatorAndSayWhy) {
  std::vector<const Window*> windows(kRanks);
  for_each([&](std::size_t rank) { windows[rank] = must_open(rank); });
  ASSERT_EQ(std::count(windows.begin(), windows.end(), nullptr), 0);
  for_each([&](std::size_t rank) {
    if (rank == 0) comms_[0]->abort();
    while (!comms_[rank]->failure()) std::this_thread::yield();
    const auto closed = comms_[rank]->close_window(windows[rank]);
    ASSERT_FALSE(closed);
    EXPECT_EQ(closed.error().code, Errc::aborted);
    EXPECT_EQ(comms_[rank]->window_of(windows[rank]), nullptr);
    EXPECT_FALSE(open(rank));
  });
  EXPECT_EQ(world_.closed, kRanks);
}

TEST_F(Windows, OfAllocatedMemoryEndTogetherWithIt) {
  for_each([&](std::size_t rank) {
    const auto memory = comms_[rank]->allocate_gpu_memory(64);
    ASSERT_TRUE(memory) << memory.error().what;
    EXPECT_EQ(world_.opened, kRanks);
    const auto* window = comms_[rank]->window_with(*memory);
    ASSERT_NE(window, nullptr);
    EXPECT_TRUE(comms_[rank]->close_window(window));
    EXPECT_EQ(world_.memory_alive, 0);  // on return nobody has any
    EXPECT_EQ(comms_[rank]->window_with(*memory), nullptr);
  });
}

TEST_F(Windows, OfMemoryThatOneRankCannotAllocateOrMapAreNowhereAndNothingIsLeft) {
  for (int* cannot : {&world_.cannot_allocate, &world_.cannot_offer, &world_.cannot_open}) {
    *cannot = 2;
    std::array<std::string, kRanks> errors;
    for_each([&](std::size_t rank) {
      const auto memory = comms_[rank]->allocate_gpu_memory(64);
      ASSERT_FALSE(memory);
      errors[rank] = memory.error().what;
    });
    EXPECT_EQ(errors[0].find("rank 2: "), 0U) << errors[0];
    EXPECT_EQ(std::count(errors.begin(), errors.end(), errors[0]), kRanks);
    EXPECT_EQ(world_.memory_alive, 0);
    EXPECT_EQ(world_.opened, world_.closed);
    *cannot = -1;
  }
}

TEST_F(Windows, OfAllocatedMemoryEndAlsoWithAFailedCommunicator) {
  std::vector<std::byte*> memory(kRanks);
  for_each([&](std::size_t rank) {
    const auto made = comms_[rank]->allocate_gpu_memory(64);
    ASSERT_TRUE(made) << made.error().what;
    memory[rank] = *made;
  });
  EXPECT_EQ(world_.memory_alive, kRanks);
  for_each([&](std::size_t rank) {
    if (rank == 0) comms_[0]->abort();
    while (!comms_[rank]->failure()) std::this_thread::yield();
    EXPECT_FALSE(comms_[rank]->close_window(comms_[rank]->window_with(memory[rank])));
    EXPECT_FALSE(comms_[rank]->allocate_gpu_memory(64));
  });
  EXPECT_EQ(world_.memory_alive, 0);
}

TEST_F(Windows, OfNoBytesAreNone) {
  for_each([&](std::size_t rank) {
    const auto memory = comms_[rank]->allocate_gpu_memory(0);
    ASSERT_TRUE(memory) << memory.error().what;
    EXPECT_EQ(*memory, nullptr);
    const auto refused = comms_[rank]->allocate_gpu_memory(rank == 1 ? 0 : 64);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::mismatch);
  });
  world_.withdrawn_too_early = false;  // they were, rightly
}

class NoWindows : public ThreadRanks {};

TEST_F(NoWindows, WithoutGpusMemoryOfThemIsRefusedWithWhatToDo) {
  make(2);
  for_each([&](std::size_t rank) {
    const auto memory = comms_[rank]->allocate_gpu_memory(64);
    ASSERT_FALSE(memory);
    EXPECT_EQ(memory.error().code, Errc::unsupported);
    EXPECT_NE(memory.error().what.find("CUDA context"), std::string::npos);
  });
}

}  // namespace
}  // namespace gdrx
