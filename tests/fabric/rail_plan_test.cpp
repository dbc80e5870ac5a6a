// SPDX-License-Identifier: Apache-2.0
// What exec/rail.hpp takes for granted of plans is checked for each that rails run, and the order
// of a stream for any levels.
#include "collectives/exec/rail_plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "collectives/comm/stream_order.hpp"

namespace gdrx {
namespace {

using exec::RailLayout;
using exec::RailPlan;
using Kind = RailPlan::Step::Kind;

/// What a chunk has in it: each sum and each message that it went through, by rank and number.
using Content = std::set<std::tuple<Kind, int, std::uint32_t>>;

/// All ranks of a rail, on names in place of numbers.
class Symbols {
 public:
  Symbols(plan::Algorithm algorithm, int hosts) {
    for (int host = 0; host < hosts; ++host) {
      plans.push_back(*RailPlan::create(algorithm, hosts, host));
      ranks_.emplace_back(plans.back());
    }
  }
  std::vector<RailPlan> plans;

  void run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < plans.size(); ++rank) {
        for (std::size_t channel = 0; channel < plans[rank].channels.size(); ++channel) {
          auto& next = ranks_[rank].next[channel];
          const auto& steps = plans[rank].channels[channel];
          while (next < steps.size() && step(static_cast<int>(rank), steps[next])) {
            ++next;
            moved = true;
          }
          if (testing::Test::HasFailure()) return;
        }
      }
    }
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      for (std::size_t channel = 0; channel < plans[rank].channels.size(); ++channel) {
        EXPECT_EQ(ranks_[rank].next[channel], plans[rank].channels[channel].size()) << "hangs";
      }
    }
    EXPECT_TRUE(messages_.empty()) << "a message that nobody takes";
  }
  /// Every sum goes into a result that every rank gets.
  void check_results() const {
    for (std::size_t adder = 0; adder < plans.size(); ++adder) {
      for (std::uint32_t sum = 0; sum < plans[adder].sums.size(); ++sum) {
        const auto [first, count] = plans[adder].sums[sum].chunks;
        for (std::uint32_t chunk = first; chunk < first + count; ++chunk) {
          for (const State& rank : ranks_) {
            EXPECT_TRUE(rank.chunks[chunk].contains({Kind::sum, static_cast<int>(adder), sum}));
          }
        }
      }
    }
  }

 private:
  struct State {
    explicit State(const RailPlan& plan)
        : next(plan.channels.size()), chunks(plan.chunks), touched(plan.chunks) {}
    std::vector<std::size_t> next;
    std::vector<Content> chunks;
    std::vector<std::optional<std::pair<Kind, std::uint32_t>>> touched;  // last, by what
    std::set<std::uint32_t> landed;                                      // chunks, ever
  };
  struct Message {
    std::vector<Content> chunks;
    std::optional<std::uint32_t> landing;
    std::uint32_t level = 0;
  };

  bool step(int rank, const RailPlan::Step& step) {
    State& state = ranks_[static_cast<std::size_t>(rank)];
    const RailPlan& plan = plans[static_cast<std::size_t>(rank)];
    if (step.kind == Kind::send) {
      const RailPlan::Send& send = plan.sends[step.at];
      Message message{{}, send.landing};
      for (std::uint32_t i = 0; i < send.chunks.count; ++i) {
        const std::uint32_t chunk = send.chunks.first + i;
        message.chunks.push_back(state.chunks[chunk]);
        message.chunks.back().insert({Kind::send, rank, step.at});
        state.touched[chunk] = {Kind::send, step.at};
      }
      EXPECT_TRUE(messages_.emplace(std::tuple(rank, send.host, send.number), message).second);
      return true;
    }
    if (step.kind == Kind::arrival) {
      const RailPlan::Arrival& arrival = plan.arrivals[step.at];
      const auto found = messages_.find({arrival.host, rank, arrival.number});
      if (found == messages_.end()) return false;
      EXPECT_FALSE(found->second.landing);
      land_in_place(rank, arrival, found->second);
      messages_.erase(found);
      return true;
    }
    return add(rank, step.at);
  }

  // It may land as soon as it is sent, whatever this rank does: it must need what this rank did
  // last with the chunk, and that must be a send.
  void land_in_place(int rank, const RailPlan::Arrival& arrival, const Message& message) {
    State& state = ranks_[static_cast<std::size_t>(rank)];
    ASSERT_EQ(message.chunks.size(), arrival.chunks.count);
    for (std::uint32_t i = 0; i < arrival.chunks.count; ++i) {
      const std::uint32_t chunk = arrival.chunks.first + i;
      const auto last = state.touched[chunk];
      ASSERT_TRUE(last && last->first == Kind::send) << "rank " << rank << ", chunk " << chunk;
      ASSERT_TRUE(message.chunks[i].contains({Kind::send, rank, last->second}));
      state.chunks[chunk] = message.chunks[i];
      state.touched[chunk] = {Kind::arrival, 0};
    }
  }

  bool add(int rank, std::uint32_t at) {
    State& state = ranks_[static_cast<std::size_t>(rank)];
    const RailPlan::Sum& sum = plans[static_cast<std::size_t>(rank)].sums[at];
    for (const RailPlan::Arrival& arrival : sum.arrivals) {
      if (!messages_.contains({arrival.host, rank, arrival.number})) return false;
    }
    std::uint32_t landing = sum.landing;
    for (const RailPlan::Arrival& arrival : sum.arrivals) {
      const auto found = messages_.find({arrival.host, rank, arrival.number});
      EXPECT_EQ(found->second.landing, landing);
      for (std::uint32_t i = 0; i < sum.chunks.count; ++i) {
        EXPECT_TRUE(state.landed.insert(landing + i).second) << "two land in one place";
        const std::uint32_t chunk = sum.chunks.first + i;
        state.chunks[chunk].insert(found->second.chunks[i].begin(), found->second.chunks[i].end());
      }
      landing += sum.chunks.count;
      messages_.erase(found);
    }
    EXPECT_LE(landing, plans[static_cast<std::size_t>(rank)].landings);
    EXPECT_LE(sum.level, plans[static_cast<std::size_t>(rank)].levels);
    for (std::uint32_t i = 0; i < sum.chunks.count; ++i) {
      const std::uint32_t chunk = sum.chunks.first + i;
      for (const auto& [kind, other, number] : state.chunks[chunk]) {
        if (kind != Kind::sum) continue;
        EXPECT_LT(plans[static_cast<std::size_t>(other)].sums[number].level, sum.level);
      }
      state.chunks[chunk].insert({Kind::sum, rank, at});
      state.touched[chunk] = {Kind::sum, at};
    }
    return true;
  }

  std::vector<State> ranks_;
  std::map<std::tuple<int, int, std::uint32_t>, Message> messages_;  // from, to, number
};

constexpr plan::Algorithm kOfRails[] = {plan::Algorithm::two_shot, plan::Algorithm::ring,
                                        plan::Algorithm::tree, plan::Algorithm::halving_doubling};

TEST(RailPlan, WhatARailTakesForGrantedHolds) {
  for (const plan::Algorithm algorithm : kOfRails) {
    for (int hosts = 2; hosts <= 19; ++hosts) {
      SCOPED_TRACE(std::string(plan::to_string(algorithm)) + " of " + std::to_string(hosts));
      Symbols all(algorithm, hosts);
      all.run();
      all.check_results();
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST(RailPlan, ChunksCoverAPartAndWhatLandsHasRoom) {
  constexpr RailLayout layout(896 << 10, 1 << 20);
  for (const plan::Algorithm algorithm : kOfRails) {
    for (const int hosts : {2, 3, 5, 8, 33, 100, 500}) {
      const RailPlan plan = *RailPlan::create(algorithm, hosts, hosts / 2);
      const Bytes most = plan.most_part(layout);
      ASSERT_GE(most, 256U << 10) << plan::to_string(algorithm) << " of " << hosts;
      for (const Bytes part : {Bytes{1}, Bytes{5000}, most / 3 + 1, most}) {
        Bytes covered = 0;
        for (std::uint32_t chunk = 0; chunk < plan.chunks; ++chunk) {
          const auto share = plan.share(part, {chunk, 1});
          EXPECT_EQ(share.begin, covered);
          EXPECT_TRUE(share.bytes == 0 || share.begin % RailLayout::kUnit == 0);
          covered += share.bytes;
        }
        EXPECT_EQ(covered, part);
        EXPECT_LE(plan.landings * plan.chunk(part), layout.landing_room());
      }
      EXPECT_LE(most, layout.part_room());
      EXPECT_LE(plan.messages, std::max(8U, 2 * static_cast<unsigned>(hosts)));
    }
  }
}

TEST(RailPlan, RefusesWhatRailsDoNotRun) {
  EXPECT_EQ(RailPlan::create(plan::Algorithm::one_shot, 3, 0).error().code, Errc::unsupported);
  EXPECT_EQ(RailPlan::create(plan::Algorithm::ring, RailPlan::kMostHosts + 1, 0).error().code,
            Errc::unsupported);
}

TEST(StreamOrder, HasEachItemOnceAndSlotsAreFreeInTime) {
  for (const std::uint32_t levels : {1, 2, 3, 4, 7, 30}) {
    for (const std::uint64_t pieces : {1, 2, 3, 4, 20}) {
      std::vector<std::uint32_t> sums;
      for (std::uint32_t level = 1; level <= levels; level += 2) sums.insert(sums.end(), 2, level);
      StreamOrder order(pieces, levels, sums);
      std::map<std::uint64_t, std::vector<StreamOrder::Item>> by_piece;
      std::set<std::uint64_t> gathered;
      while (const auto item = order.next()) {
        if (item->kind == StreamOrder::Kind::scatter && item->piece >= kAhead) {
          EXPECT_TRUE(gathered.contains(item->piece - kAhead)) << "its slot is in use";
        }
        if (item->kind == StreamOrder::Kind::gather) gathered.insert(item->piece);
        by_piece[item->piece].push_back(*item);
      }
      ASSERT_EQ(by_piece.size(), pieces);
      for (const auto& [piece, items] : by_piece) {
        ASSERT_EQ(items.size(), sums.size() + 2);
        EXPECT_EQ(items.front().kind, StreamOrder::Kind::scatter);
        EXPECT_EQ(items.back().kind, StreamOrder::Kind::gather);
        for (std::uint32_t sum = 0; sum < sums.size(); ++sum) EXPECT_EQ(items[sum + 1].sum, sum);
      }
    }
  }
}

/// Ranks with sums in other levels: what each waits for stands before it, everywhere.
TEST(StreamOrder, PutsAllPiecesOfALevelBeforeTheNextLevelOfTheOldest) {
  for (const std::uint32_t levels : {1, 2, 5}) {
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> step_of;  // piece, level
    std::vector<std::uint32_t> all;
    for (std::uint32_t level = 1; level <= levels; ++level) all.push_back(level);
    const auto place = [&](const std::vector<std::uint32_t>& sums) {
      std::vector<std::pair<std::uint64_t, std::uint32_t>> placed;
      StreamOrder order(10, levels, sums);
      while (const auto item = order.next()) {
        if (item->kind == StreamOrder::Kind::add) placed.emplace_back(item->piece, sums[item->sum]);
      }
      return placed;
    };
    const auto whole = place(all);
    for (std::uint64_t i = 0; i < whole.size(); ++i) step_of[whole[i]] = i;
    for (std::uint32_t one = 1; one <= levels; ++one) {
      std::uint64_t last = 0;
      for (const auto& item : place({one})) {
        EXPECT_GE(step_of.at(item), last) << "not in the order of a rank that has all levels";
        last = step_of.at(item);
      }
    }
  }
}

}  // namespace
}  // namespace gdrx
