// SPDX-License-Identifier: Apache-2.0
// Calls in the arena that some ranks make in one go and others step by step, in any order, with and
// without a root.
#include "collectives/exec/one_block.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collectives/exec/arena_execution.hpp"
#include "collectives/exec/one_block_execution.hpp"

namespace gdrx::exec {
namespace {

constexpr std::size_t kBlock = 4096;
constexpr std::uint64_t kMost = 3 * kBlock / sizeof(float);
constexpr std::uint64_t kMostOnce = kBlock / sizeof(float);
constexpr std::uint64_t kInPost = ArenaPost::kData / sizeof(float);

struct alignas(128) Line {
  std::byte bytes[128];
};
/// An arena in this process.
struct Memory {
  Memory(int ranks, bool shared)
      : lines((ArenaLayout::bytes(ranks, kBlock) + 127) / 128),
        layout(std::as_writable_bytes(std::span(lines)), ranks, kBlock, shared) {
    for (int rank = 0; rank < ranks; ++rank) seats.emplace_back(layout, rank);
  }
  std::vector<Line> lines;
  ArenaLayout layout;
  std::vector<ArenaSeat> seats;
};

float value_of(std::size_t rank, std::size_t i, std::uint64_t call) {
  return static_cast<float>((rank * 7 + i * 13 + call * 5) % 31);
}

/// A call of all ranks, some of which make it in one go, if it may be: by rank.
struct Made {
  Collective collective = Collective::all_reduce;
  plan::Algorithm algorithm = plan::Algorithm::one_shot;
  int root = 0;
  std::uint64_t count = 0;
  bool elsewhere = false;  // not in the arena: it only has its number
  std::vector<bool> whole{};

  CallSignature signature(std::uint64_t number) const {
    return {.collective = collective,
            .type = DataType::float32,
            .algorithm = algorithm,
            .root = root,
            .sequence = number,
            .count = count};
  }
};

/// The ranks of a host, in one thread.
class Host {
 public:
  Host(int ranks, bool shared) : memory_(ranks, shared), ranks_(static_cast<std::size_t>(ranks)) {}

  /// Each rank makes them one after another, as far as the others let it. `next`: who goes on.
  void run(const std::vector<Made>& calls, const std::function<std::size_t()>& next) {
    std::size_t running = ranks_.size();
    while (running > 0) {
      const std::size_t rank = next() % ranks_.size();
      if (ranks_[rank].calls == calls.size()) continue;
      step(rank, calls[ranks_[rank].calls]);
      if (ranks_[rank].calls == calls.size()) --running;
    }
    for (const Rank& rank : ranks_) RC_ASSERT(rank.stage == ranks_[0].stage);
  }
  /// How many calls the rank can make while nobody else does anything: no more than `most`.
  std::size_t run_ahead(std::size_t rank, const Made& call, std::size_t most) {
    const std::size_t before = ranks_[rank].calls;
    for (int vain = 0; vain < 10 && ranks_[rank].calls < before + most; ++vain) {
      const std::size_t at = ranks_[rank].calls;
      step(rank, call);
      if (ranks_[rank].calls != at) vain = 0;
    }
    return ranks_[rank].calls - before;
  }

 private:
  struct Rank {
    std::vector<float> in, out;
    std::optional<OneBlock> block;         // either this, made by the first step
    std::unique_ptr<Execution> execution;  // or this
    std::uint64_t stage = 0;
    std::size_t calls = 0;  // that have ended
  };

  void begin(std::size_t rank, const Made& made) {
    Rank& mine = ranks_[rank];
    ArenaSeat& seat = memory_.seats[rank];
    seat.begin(made.signature(mine.calls));
    if (made.elsewhere) {
      ++mine.calls;
      return;
    }
    const plan::CollectiveTraits& traits = plan::traits_of(made.collective);
    const int ranks = memory_.layout.ranks();
    const bool root = static_cast<int>(rank) == made.root;
    mine.in.resize(plan::elements(traits.input, made.count, ranks, root));
    for (std::size_t i = 0; i < mine.in.size(); ++i) mine.in[i] = value_of(rank, i, mine.calls);
    mine.out.assign(plan::elements(traits.output, made.count, ranks, root), -1.0F);
    const ArenaCall call{.signature = made.signature(mine.calls),
                         .base = mine.stage,
                         .input = reinterpret_cast<const std::byte*>(mine.in.data()),
                         .output = reinterpret_cast<std::byte*>(mine.out.data())};
    const std::uint64_t vector = plan::vector_elements(traits, made.count, ranks) * sizeof(float);
    if (made.algorithm != plan::Algorithm::one_shot || given_of(traits, vector, ranks) > kBlock) {
      mine.execution = std::make_unique<ArenaExecution>(seat, call);
    } else if (made.whole[rank]) {
      mine.block.emplace(seat, call);
    } else {
      mine.execution = std::make_unique<OneBlockExecution>(OneBlock(seat, call), nullptr);
    }
  }

  void step(std::size_t rank, const Made& call) {
    Rank& mine = ranks_[rank];
    if (!mine.block && !mine.execution) return begin(rank, call);
    if (mine.block) {
      if (!mine.block->ready()) return;
      RC_ASSERT(mine.block->agrees());
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
    check(rank, call);
    ++mine.calls;
  }

  // Every element of the output, by what the collective means.
  void check(std::size_t rank, const Made& call) const {
    const Rank& mine = ranks_[rank];
    const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
    const bool of_parts = plan::CollectiveTraits::is_all(traits.input);
    for (std::size_t i = 0; i < mine.out.size(); ++i) {
      const std::size_t offset = (of_parts ? rank * call.count : 0) + i % call.count;
      float expected = 0;
      if (traits.reduces) {
        for (std::size_t r = 0; r < ranks_.size(); ++r) expected += value_of(r, offset, mine.calls);
      } else {
        const bool from_root = traits.rooted && mine.out.size() == call.count &&
                               !plan::CollectiveTraits::is_all(traits.output);
        const std::size_t from = from_root ? static_cast<std::size_t>(call.root) : i / call.count;
        expected = value_of(from, offset, mine.calls);
      }
      RC_ASSERT(mine.out[i] == expected);
    }
  }

  Memory memory_;
  std::vector<Rank> ranks_;
};

/// Calls of any collective, any root and sizes around every limit.
std::vector<Made> any_calls(int ranks, std::size_t most) {
  using enum Collective;
  const auto small =
      rc::gen::element<std::uint64_t>(0, 1, 19, kInPost / 5, kInPost - 1, kInPost, kInPost + 1);
  const auto large = rc::gen::element<std::uint64_t>(1023, 1024, 1025, kMost);
  std::vector<Made> calls(*rc::gen::inRange<std::size_t>(1, most));
  for (Made& call : calls) {
    call.collective = *rc::gen::element(all_reduce, all_gather, reduce_scatter, all_to_all,
                                        broadcast, reduce, gather, scatter, broadcast, reduce);
    call.root = *rc::gen::inRange(0, ranks);
    call.count = *small;
    if (*rc::gen::inRange(0, 4) == 0) call.count = kMostOnce;
    if (plan::CollectiveTraits::is_all(plan::traits_of(call.collective).input)) {
      call.count /= static_cast<std::uint64_t>(ranks);
    }
    call.elsewhere = *rc::gen::inRange(0, 8) == 0;
    if (call.collective == all_reduce) {
      if (*rc::gen::inRange(0, 2) == 0) call.count = *large;
      if (*rc::gen::inRange(0, 3) == 0) call.algorithm = plan::Algorithm::two_shot;
    }
    call.whole = *rc::gen::container<std::vector<bool>>(static_cast<std::size_t>(ranks),
                                                        rc::gen::arbitrary<bool>());
  }
  return calls;
}

RC_GTEST_PROP(OneBlock, MixesWithExecutionsOfAnySizeAndOrder, ()) {
  const int ranks = *rc::gen::inRange(1, 6);
  Host host(ranks, *rc::gen::arbitrary<bool>());
  const std::vector<Made> calls = any_calls(ranks, 60);
  // A favourite runs ahead as far as it can.
  const auto favourite = *rc::gen::inRange<std::size_t>(0, static_cast<std::size_t>(ranks));
  std::size_t turn = 0;
  host.run(calls, [&] {
    ++turn;
    return turn % 8 == 0 ? turn / 8 : favourite;
  });
}

// Whom it is that all others outrun changes, and so does by how much.
RC_GTEST_PROP(OneBlock, HasOneThatIsSlowerThanAllOthers, ()) {
  const int ranks = *rc::gen::inRange(2, 6);
  Host host(ranks, *rc::gen::arbitrary<bool>());
  const std::vector<Made> calls = any_calls(ranks, 120);
  std::uint64_t random = *rc::gen::arbitrary<std::uint32_t>();
  std::size_t turn = 0;
  host.run(calls, [&]() -> std::size_t {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const std::size_t rank = (random >> 33) % static_cast<std::size_t>(ranks);
    ++turn;
    const bool slow = rank == (turn >> 8) % static_cast<std::size_t>(ranks);
    return slow && (random >> 50) % 64 != 0 ? (rank + 1) % static_cast<std::size_t>(ranks) : rank;
  });
}

// As many calls as ArenaSeat says, and never so many that what is not read is written over.
void expect_ahead(Collective collective, std::uint64_t count, bool shared) {
  const bool root_gives = collective == Collective::broadcast || collective == Collective::scatter;
  const std::size_t giver = root_gives ? 0 : 1;
  const bool in_post = count <= 3;
  const std::size_t shelves = shared ? 16 : 2;
  Made call{.collective = collective, .count = count, .whole = {true, true}};
  for (std::size_t before = 0; before < 80; ++before) {
    Host host(2, shared);
    std::size_t turn = 0;
    if (before > 0) host.run(std::vector<Made>(before, call), [&] { return turn++; });
    const std::size_t ahead = host.run_ahead(giver, call, 100);
    EXPECT_GE(ahead, in_post ? kPosts / 2 : shelves)
        << to_string(collective) << " of " << count << " after " << before;
    EXPECT_LE(ahead, in_post ? kPosts : shelves)
        << to_string(collective) << " of " << count << " after " << before;
  }
}

TEST(OneBlock, WhoOnlyGivesRunsAheadOfItsReaders) {
  using enum Collective;
  for (const Collective collective : {broadcast, scatter, reduce, gather}) {
    for (const std::uint64_t count : {3, 30, 512}) {
      expect_ahead(collective, count, true);
      expect_ahead(collective, count, false);
    }
  }
}

/// Two ranks, each with a call of its own.
class TwoCalls {
 public:
  TwoCalls(const Made& first, const Made& second) : made_{first, second} {}
  OneBlock begin(std::size_t rank) {
    const CallSignature signature = made_[rank].signature(numbers_[rank]++);
    memory_.seats[rank].begin(signature);
    const auto* const in = reinterpret_cast<const std::byte*>(in_.data());
    return {
        memory_.seats[rank],
        {.signature = signature, .input = in, .output = reinterpret_cast<std::byte*>(out_.data())}};
  }
  std::array<Made, 2> made_;
  Memory memory_{2, false};
  std::array<std::uint64_t, 2> numbers_{};
  std::array<float, 8> in_{1, 2}, out_{-1, -1};
};

TEST(OneBlock, SeesThatAPeerMakesAnotherCall) {
  TwoCalls both({.count = 2}, {.count = 1});
  OneBlock first = both.begin(0);
  EXPECT_FALSE(first.ready());
  OneBlock second = both.begin(1);
  ASSERT_TRUE(second.ready());
  ASSERT_TRUE(first.ready());
  EXPECT_FALSE(first.agrees());
  EXPECT_FALSE(second.agrees());
  // Whoever goes on step by step says how they differ.
  const auto step = OneBlockExecution(first, nullptr).step();
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().code, Errc::mismatch);
  EXPECT_EQ(both.out_[0], -1);
}

TEST(OneBlock, NamesOnlyWhomItHasWaitedForInThisCall) {
  TwoCalls both({.collective = Collective::broadcast, .count = 2},
                {.collective = Collective::broadcast, .count = 2});
  const std::vector<Rank> reader{Rank{1}};
  std::uint64_t calls = 0;
  for (bool full = false; !full; ++calls) {
    ASSERT_LE(calls, kPosts);
    OneBlock block = both.begin(0);
    EXPECT_TRUE(block.awaited().empty()) << calls;
    EXPECT_EQ(OneBlockExecution(block, nullptr).waiting_for(), "its next step");
    full = !block.ready();
    if (!full) continue;
    EXPECT_EQ(block.awaited(), reader);
    EXPECT_EQ(OneBlockExecution(block, nullptr).waiting_for(),
              "rank(s) 1 to take what it gave before");
    for (std::uint64_t call = 0; call <= calls; ++call) {  // the last has nothing to take yet
      OneBlock taker = both.begin(1);
      EXPECT_EQ(taker.ready(), call < calls);
      if (call < calls) taker.end();
    }
    EXPECT_TRUE(block.ready());
    block.end();
  }
  // Of the call before nothing is left.
  both.made_[0] = {.collective = Collective::all_reduce, .count = 2};
  const CallSignature signature = both.made_[0].signature(both.numbers_[0]++);
  both.memory_.seats[0].begin(signature);
  const ArenaExecution next(both.memory_.seats[0], {.signature = signature});
  EXPECT_TRUE(next.awaited().empty());
  EXPECT_EQ(next.waiting_for(), "its next step");
}

// Both only give: each has left before the other could be seen. Their next call tells.
TEST(OneBlock, SeesLaterThatAPeerHasMadeAnotherCall) {
  TwoCalls both({.collective = Collective::broadcast, .root = 0, .count = 2},
                {.collective = Collective::broadcast, .root = 1, .count = 2});
  for (std::size_t rank = 0; rank < 2; ++rank) {
    OneBlock block = both.begin(rank);
    ASSERT_TRUE(block.ready());
    ASSERT_TRUE(block.agrees());
    block.end();
  }
  both.made_.fill({.count = 2});
  OneBlock first = both.begin(0);
  OneBlock second = both.begin(1);
  EXPECT_FALSE(first.ready());
  ASSERT_TRUE(second.ready());
  EXPECT_FALSE(second.agrees());
  const auto checked = second.check();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Errc::mismatch);
  EXPECT_NE(checked.error().what.find("broadcast #0 of 2 float, root 0"), std::string::npos)
      << checked.error().what;
  EXPECT_NE(checked.error().what.find("broadcast #0 of 2 float, root 1"), std::string::npos)
      << checked.error().what;
}

}  // namespace
}  // namespace gdrx::exec
