// SPDX-License-Identifier: Apache-2.0
// Calls of one block that some ranks make in one go and others step by step, in any order.
#include "collectives/exec/one_block.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace gdrx::exec {
namespace {

constexpr std::size_t kBlock = 4096;
constexpr std::uint64_t kMost = 3 * kBlock / sizeof(float);

/// The ranks of a host, in one thread.
class Host {
 public:
  explicit Host(int ranks)
      : memory_((ArenaLayout::bytes(ranks, kBlock) + 127) / 128),
        layout_(std::as_writable_bytes(std::span(memory_)), ranks, kBlock),
        ranks_(static_cast<std::size_t>(ranks)) {}

  /// Of which some ranks make each in one go, if it may be: by rank.
  struct Call {
    std::uint64_t count;
    plan::Algorithm algorithm;
    std::vector<bool> whole;
  };
  /// Each rank makes them one after another, as far as the others let it. `next`: who goes on.
  void run(const std::vector<Call>& calls, const std::function<std::size_t()>& next) {
    std::size_t running = ranks_.size();
    while (running > 0) {
      const std::size_t rank = next() % ranks_.size();
      if (ranks_[rank].calls == calls.size()) continue;
      step(rank, calls[ranks_[rank].calls]);
      if (ranks_[rank].calls == calls.size()) --running;
    }
    for (const Rank& rank : ranks_) RC_ASSERT(rank.stage == ranks_[0].stage);
  }

 private:
  struct alignas(128) Line {
    std::byte bytes[128];
  };
  struct Rank {
    std::vector<float> in, out;
    ArenaCall call;
    std::optional<OneBlock> block;              // either this, made by the first step
    std::unique_ptr<ArenaExecution> execution;  // or this
    std::uint64_t stage = 0;
    std::size_t calls = 0;  // that have ended
  };

  void begin(std::size_t rank, const Call& call) {
    Rank& mine = ranks_[rank];
    Word word;
    word.type = DataType::float32;
    word.algorithm = call.algorithm;
    word.sequence = mine.calls;
    word.count = call.count;
    mine.in.resize(call.count);
    for (std::size_t i = 0; i < call.count; ++i) mine.in[i] = value(rank, i, mine.calls);
    mine.out.assign(call.count, -1.0F);
    mine.call = {.word = word,
                 .base = mine.stage,
                 .input = reinterpret_cast<const std::byte*>(mine.in.data()),
                 .output = reinterpret_cast<std::byte*>(mine.out.data())};
    const bool fits = call.algorithm == plan::Algorithm::one_shot &&
                      fits_one_block(Collective::all_reduce, call.count * sizeof(float),
                                     layout_.ranks(), layout_.block());
    const int self = static_cast<int>(rank);
    if (fits && call.whole[rank]) {
      mine.block.emplace(layout_, self, mine.call);
    } else {
      mine.execution = std::make_unique<ArenaExecution>(layout_, self, mine.call);
    }
  }

  void step(std::size_t rank, const Call& call) {
    Rank& mine = ranks_[rank];
    if (!mine.block && !mine.execution) return begin(rank, call);
    if (mine.block) {
      if (!mine.block->all_have_come()) return;
      RC_ASSERT(mine.block->agree());
      mine.block->end();
      mine.stage = mine.block->end_stage();
    } else {
      const auto step = mine.execution->step();
      RC_ASSERT(step.has_value());
      if (*step != Step::done) return;
      mine.stage = mine.execution->end_stage(mine.stage);
    }
    mine.block.reset();
    mine.execution.reset();
    check(mine.out, call.count, mine.calls++);
  }

  static float value(std::size_t rank, std::size_t i, std::uint64_t call) {
    return static_cast<float>((rank * 7 + i * 13 + call * 5) % 31);
  }
  void check(const std::vector<float>& out, std::uint64_t count, std::size_t call) const {
    RC_ASSERT(out.size() == count);
    for (std::size_t i = 0; i < count; ++i) {
      float sum = 0;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) sum += value(rank, i, call);
      RC_ASSERT(out[i] == sum);
    }
  }

  std::vector<Line> memory_;
  ArenaLayout layout_;
  std::vector<Rank> ranks_;
};

RC_GTEST_PROP(OneBlock, MixesWithExecutionsOfAnySizeAndOrder, ()) {
  const int ranks = *rc::gen::inRange(1, 6);
  Host host(ranks);
  // Around what stands beside the stage, around a block, and of several blocks.
  const auto counts = rc::gen::element<std::uint64_t>(0, 1, 19, 20, 21, 1023, 1024, 1025, kMost);
  std::vector<Host::Call> calls(*rc::gen::inRange<std::size_t>(1, 12));
  for (Host::Call& call : calls) {
    call = {*counts,
            *rc::gen::element(plan::Algorithm::one_shot, plan::Algorithm::one_shot,
                              plan::Algorithm::two_shot),
            *rc::gen::container<std::vector<bool>>(static_cast<std::size_t>(ranks),
                                                   rc::gen::arbitrary<bool>())};
  }
  // A favourite runs ahead as far as it can.
  const auto favourite = *rc::gen::inRange<std::size_t>(0, static_cast<std::size_t>(ranks));
  std::size_t turn = 0;
  host.run(calls, [&] {
    ++turn;
    return turn % 8 == 0 ? turn / 8 : favourite;
  });
}

TEST(OneBlock, SeesThatAPeerMakesAnotherCall) {
  struct alignas(128) Line {
    std::byte bytes[128];
  };
  std::vector<Line> memory((ArenaLayout::bytes(2, kBlock) + 127) / 128);
  const ArenaLayout layout(std::as_writable_bytes(std::span(memory)), 2, kBlock);
  std::array<float, 2> in{1, 2}, out{-1, -1};
  std::array<ArenaCall, 2> calls;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    calls[rank].word.type = DataType::float32;
    calls[rank].word.algorithm = plan::Algorithm::one_shot;
    calls[rank].word.count = rank == 0 ? 2 : 1;
    calls[rank].input = reinterpret_cast<const std::byte*>(in.data());
    calls[rank].output = reinterpret_cast<std::byte*>(out.data());
  }
  OneBlock first(layout, 0, calls[0]);
  EXPECT_FALSE(first.all_have_come());
  OneBlock second(layout, 1, calls[1]);
  ASSERT_TRUE(first.all_have_come());
  ASSERT_TRUE(second.all_have_come());
  EXPECT_FALSE(first.agree());
  EXPECT_FALSE(second.agree());
  // Whoever goes on step by step says how they differ.
  ArenaExecution execution(layout, 0, calls[0]);
  execution.skip_first_stage();
  const auto step = execution.step();
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().code, Errc::mismatch);
  EXPECT_EQ(out, (std::array<float, 2>{-1, -1}));
}

}  // namespace
}  // namespace gdrx::exec
