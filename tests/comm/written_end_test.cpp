// SPDX-License-Identifier: Apache-2.0
// A rank that gives up a call whose results others write: from then on nobody does.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "collectives/exec/arena_execution.hpp"

namespace gdrx::exec {
namespace {

constexpr std::size_t kBlock = 4096;
constexpr std::uint64_t kCount = 3 * kBlock / sizeof(float);

/// Two ranks in one process, which writes to itself as to any other.
class WrittenEnd : public testing::Test {
 protected:
  WrittenEnd() : memory_((ArenaLayout::bytes(2, kBlock) + 127) / 128) {
    const auto bytes = std::as_writable_bytes(std::span(memory_));
    layout_ = std::make_unique<ArenaLayout>(bytes, 2, kBlock);
    for (int rank = 0; rank < 2; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      in_[at].assign(kCount, 1.0F + static_cast<float>(rank));
      out_[at].assign(kCount, -1.0F);
      Word word;
      word.collective = Collective::all_reduce;
      word.type = DataType::float32;
      word.algorithm = plan::Algorithm::two_shot;
      word.count = kCount;
      layout_->publish(rank, word, 0);
      const ArenaCall call{.word = word,
                           .input = reinterpret_cast<const std::byte*>(in_[at].data()),
                           .output = reinterpret_cast<std::byte*>(out_[at].data()),
                           .processes = processes_};
      ranks_[at] = std::make_unique<ArenaExecution>(*layout_, rank, call);
    }
  }

  struct alignas(128) Line {
    std::byte bytes[128];
  };
  std::vector<Line> memory_;
  std::unique_ptr<ArenaLayout> layout_;
  std::vector<std::int32_t> processes_{getpid(), getpid()};
  std::array<std::vector<float>, 2> in_, out_;
  std::array<std::unique_ptr<ArenaExecution>, 2> ranks_;
};

TEST_F(WrittenEnd, BothGetTheSumsWhereBothGoOn) {
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
  layout_->line(0).writing.store(1);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    layout_->line(0).writing.store(0);
  });
  auto begin = std::chrono::steady_clock::now();
  ranks_[1].reset();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(15));
  writer.join();
  layout_->line(1).writing.store(1);  // and died
  begin = std::chrono::steady_clock::now();
  ranks_[0].reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace gdrx::exec
