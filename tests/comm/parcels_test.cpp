// SPDX-License-Identifier: Apache-2.0
// All-to-all-v in the arena, in any order of steps, among other calls in which all meet.
#include "collectives/exec/parcels.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "collectives/exec/one_block.hpp"

namespace gdrx::exec {
namespace {

constexpr std::size_t kBlock = 4096;

struct alignas(128) Line {
  std::byte bytes[128];
};

std::vector<Part> one_behind_another(const std::vector<std::uint64_t>& counts) {
  std::vector<Part> parts;
  std::uint64_t end = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    parts.push_back({Rank{static_cast<int>(rank)}, {end, counts[rank]}});
    end += counts[rank];
  }
  return parts;
}

float value_of(std::size_t from, std::size_t to, std::uint64_t call, std::uint64_t i) {
  return static_cast<float>(from * 1000 + to * 100 + call * 7 % 50 + i % 40);
}

/// The ranks of a host, in one thread.
class Ranks {
 public:
  /// counts[from][to] of a call.
  using Counts = std::vector<std::vector<std::uint64_t>>;
  explicit Ranks(int ranks)
      : lines_((ArenaLayout::bytes(ranks, kBlock) + 127) / 128),
        layout_(std::as_writable_bytes(std::span(lines_)), ranks, kBlock, false),
        ranks_(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) seats_.emplace_back(layout_, rank);
  }

  Parcels begin(std::size_t rank, const Counts& counts) {
    One& mine = ranks_[rank];
    std::vector<std::uint64_t> from;
    for (const auto& row : counts) from.push_back(row[rank]);
    mine.parts = {one_behind_another(counts[rank]), one_behind_another(from)};
    mine.in.clear();
    for (std::size_t to = 0; to < counts.size(); ++to) {
      for (std::uint64_t i = 0; i < counts[rank][to]; ++i) {
        mine.in.push_back(value_of(rank, to, mine.calls, i));
      }
    }
    std::uint64_t all = 0;
    for (const std::uint64_t count : from) all += count;
    mine.out.assign(all, -1.0F);
    const CallSignature signature{.collective = Collective::all_to_all_v, .sequence = mine.calls};
    seats_[rank].begin(signature);
    return {seats_[rank],
            {.signature = signature,
             .element = sizeof(float),
             .input = reinterpret_cast<const std::byte*>(mine.in.data()),
             .output = reinterpret_cast<std::byte*>(mine.out.data()),
             .parts = &mine.parts},
            mine.stage};
  }

  /// All make the calls, each after an allReduce of 100 elements if it is so; `next`: who goes on.
  void run(const std::vector<Counts>& calls, const std::vector<bool>& with_sum,
           const std::function<std::size_t()>& next) {
    std::size_t running = ranks_.size();
    while (running > 0) {
      const std::size_t rank = next() % ranks_.size();
      if (ranks_[rank].round == calls.size()) continue;
      step(rank, calls[ranks_[rank].round], with_sum[ranks_[rank].round]);
      if (ranks_[rank].round == calls.size()) --running;
    }
  }
  ArenaSeat& seat(std::size_t rank) { return seats_[rank]; }

 private:
  struct One {
    std::vector<float> in, out, sum;
    Parts parts;
    std::optional<Parcels> parcels;
    std::optional<OneBlock> block;
    bool summed = false;
    std::uint64_t calls = 0, stage = 0;
    std::size_t round = 0;
  };

  void step(std::size_t rank, const Counts& counts, bool with_sum) {
    One& mine = ranks_[rank];
    if (with_sum && !mine.summed) return add(rank);
    if (!mine.parcels) {
      mine.parcels.emplace(begin(rank, counts));
      RC_ASSERT(!mine.parcels->by_messages());
      return;
    }
    if (!mine.parcels->ready()) return;
    RC_ASSERT(mine.parcels->all_here());
    mine.parcels->end();
    mine.stage = mine.parcels->end_stage();
    std::size_t at = 0;
    for (std::size_t from = 0; from < counts.size(); ++from) {
      for (std::uint64_t i = 0; i < counts[from][rank]; ++i) {
        RC_ASSERT(mine.out[at++] == value_of(from, rank, mine.calls, i));
      }
    }
    mine.parcels.reset();
    mine.summed = false;
    ++mine.calls;
    ++mine.round;
  }

  void add(std::size_t rank) {
    One& mine = ranks_[rank];
    if (!mine.block) {
      mine.in.assign(100, static_cast<float>(rank + mine.calls));
      mine.sum.assign(100, -1.0F);
      const CallSignature signature{.collective = Collective::all_reduce,
                                    .type = DataType::float32,
                                    .algorithm = plan::Algorithm::one_shot,
                                    .sequence = mine.calls,
                                    .count = 100};
      seats_[rank].begin(signature);
      mine.block.emplace(seats_[rank],
                         ArenaCall{.signature = signature,
                                   .base = mine.stage,
                                   .input = reinterpret_cast<const std::byte*>(mine.in.data()),
                                   .output = reinterpret_cast<std::byte*>(mine.sum.data())});
    }
    if (!mine.block->ready()) return;
    RC_ASSERT(mine.block->agrees());
    mine.block->end();
    mine.stage = mine.block->end_stage();
    float expected = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) expected += static_cast<float>(r + mine.calls);
    for (const float value : mine.sum) RC_ASSERT(value == expected);
    mine.block.reset();
    mine.summed = true;
    ++mine.calls;
  }

  std::vector<Line> lines_;
  ArenaLayout layout_;
  std::vector<ArenaSeat> seats_;
  std::vector<One> ranks_;
};

Ranks::Counts any_counts(std::size_t ranks) {
  // Sixteen elements are a parcel in a post among two; the last is one that fills a block.
  const std::uint64_t fills = (kBlock - 16 * ranks) / sizeof(float) / ranks / 4 * 4;
  Ranks::Counts counts(ranks);
  for (auto& row : counts) {
    row = *rc::gen::container<std::vector<std::uint64_t>>(
        ranks, rc::gen::element<std::uint64_t>(0, 1, 3, 4, 11, 12, 13, 16, 33, fills));
  }
  return counts;
}

RC_GTEST_PROP(Parcels, GoToTheirRanksInAnyOrderOfSteps, ()) {
  const auto ranks = *rc::gen::inRange<std::size_t>(2, 6);
  std::vector<Ranks::Counts> calls(*rc::gen::inRange<std::size_t>(1, 20));
  std::vector<bool> with_sum;
  for (auto& call : calls) {
    call = any_counts(ranks);
    with_sum.push_back(*rc::gen::arbitrary<bool>());
  }
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  const std::size_t slow = random() % ranks;
  Ranks host(static_cast<int>(ranks));
  host.run(calls, with_sum, [&] {
    const std::size_t rank = random() % ranks;
    return rank == slow && random() % 16 != 0 ? rank + 1 : rank;
  });
}

TEST(Parcels, ThatAreTooLargeGoByMessagesAndTheOthersAreToldSo) {
  Ranks host(2);
  const Ranks::Counts counts{{0, 4000}, {3, 0}};
  Parcels large = host.begin(0, counts);
  Parcels small = host.begin(1, counts);
  EXPECT_TRUE(large.by_messages());
  EXPECT_FALSE(small.by_messages());
  EXPECT_FALSE(large.ready());
  ASSERT_TRUE(small.ready());
  EXPECT_FALSE(small.all_here());
  EXPECT_TRUE(small.check(0).has_value());
  EXPECT_TRUE(small.sends(0));
  ASSERT_TRUE(large.ready());
  EXPECT_TRUE(large.check(1).has_value());
  EXPECT_FALSE(large.sends(1));
}

TEST(Parcels, AreAsLargeAsWhatIsForOthers) {
  Ranks host(2);
  EXPECT_FALSE(host.begin(0, {{5000, 3}, {3, 0}}).by_messages());
}

TEST(Parcels, AreTooLargeWhereTheSumOfTheirLengthsWouldRunOver) {
  Ranks host(2);
  host.begin(0, {{0, 0}, {0, 0}});
  Parts parts{{{Rank{0}, {}}, {Rank{1}, {0, ~std::uint64_t{0} / 4 + 2}}}, {}};
  EXPECT_TRUE(
      Parcels(host.seat(0), {.signature = {}, .element = 4, .parts = &parts}, 0).by_messages());
}

TEST(Parcels, OfAnotherLengthAreNamedWithBoth) {
  Ranks host(3);
  Parcels giver = host.begin(1, {{0, 0, 0}, {0, 0, 7}, {0, 0, 0}});
  Parcels taker = host.begin(2, {{0, 0, 0}, {0, 0, 10}, {0, 0, 0}});
  Parcels third = host.begin(0, {{0, 0, 0}, {0, 0, 7}, {0, 0, 0}});
  EXPECT_FALSE(giver.ready());
  EXPECT_FALSE(taker.ready());
  EXPECT_EQ(taker.awaited(), std::vector<Rank>{Rank{0}});
  EXPECT_TRUE(third.ready());
  ASSERT_TRUE(taker.ready());
  EXPECT_FALSE(taker.all_here());
  EXPECT_TRUE(taker.check(0).has_value());
  const auto checked = taker.check(1);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Errc::mismatch);
  EXPECT_NE(checked.error().what.find("rank 1 sends 7 elements to rank 2"), std::string::npos)
      << checked.error().what;
  EXPECT_NE(checked.error().what.find("expects 10"), std::string::npos) << checked.error().what;
}

// Nothing that stands in a peer's post leads out of the arena: run with the address sanitizer.
TEST(Parcels, WithLengthsOutOfAllBoundsAreNotTaken) {
  for (const std::uint32_t where : {0U, 1U, 2U, 3U, 4U, ~0U}) {
    for (const std::uint32_t length : {1020U, 0x3fffffffU, 0x80000000U, ~0U}) {
      Ranks host(2);
      const Ranks::Counts own{{0, 0}, {0, 0}};
      Parcels giver = host.begin(0, own);
      std::byte* const post = host.seat(0).post_of(0).data;
      EXPECT_FALSE(giver.ready());
      const std::uint32_t lengths[2]{length, length};
      std::memcpy(post, &where, sizeof where);
      std::memcpy(post + 16, lengths, sizeof lengths);
      std::memcpy(host.seat(0).layout().slot(0, 0), lengths, sizeof lengths);
      Parts parts{one_behind_another({0, 0}), one_behind_another({length, 0})};
      host.begin(1, own);
      Parcels taker(
          host.seat(1),
          {.signature = giver.call().signature, .element = sizeof(float), .parts = &parts}, 0);
      ASSERT_TRUE(taker.ready());
      EXPECT_FALSE(taker.all_here()) << where << " " << length;
      EXPECT_EQ(taker.check(0).has_value(), where == 3) << where << " " << length;
    }
  }
}

// The same of a root's.
TEST(Parcels, OfARootWithLengthsOutOfAllBoundsAreNotTaken) {
  for (const std::uint32_t where : {1U, 2U}) {
    for (const std::uint32_t length : {4U, 1020U, 0x3fffffffU, ~0U}) {
      Ranks host(2);
      const CallSignature signature{.collective = Collective::scatter_v, .root = 0};
      const Parts given{one_behind_another({0, 4}), {{Rank{0}, {}}}};
      const Parts taken{{}, {{Rank{0}, {0, length}}}};
      const std::vector<float> in(4);
      std::vector<float> out(4);
      for (const int rank : {0, 1}) host.seat(static_cast<std::size_t>(rank)).begin(signature);
      Parcels giver(host.seat(0),
                    {.signature = signature,
                     .element = sizeof(float),
                     .input = reinterpret_cast<const std::byte*>(in.data()),
                     .output = reinterpret_cast<std::byte*>(out.data()),
                     .parts = &given},
                    0);
      ASSERT_TRUE(giver.ready());
      const std::uint32_t lengths[2]{length - 4, length};
      std::byte* const post = host.seat(0).post_of(0).data;
      if (length != 4) {
        std::memcpy(post, &where, sizeof where);
        std::memcpy(post + 16, lengths, sizeof lengths);
        std::memcpy(host.seat(0).shelf_of(0), lengths, sizeof lengths);
      }
      Parcels taker(host.seat(1),
                    {.signature = signature, .element = sizeof(float), .parts = &taken}, 0);
      ASSERT_TRUE(taker.ready());
      EXPECT_EQ(taker.all_here(), length == 4) << where << " " << length;
      EXPECT_EQ(taker.check(0).has_value(), length == 4) << where << " " << length;
    }
  }
}

}  // namespace
}  // namespace gdrx::exec
