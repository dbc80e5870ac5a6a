// SPDX-License-Identifier: Apache-2.0
// Rails over simulated NICs: parts of random sizes, types and operators in random order of events,
// every sum compared bit by bit, and what may be overwritten poisoned as soon as it may be.
#include "tests/fabric/rail_world.hpp"

#include <cstdio>
#include <fstream>
#include <sstream>

#include "collectives/exec/call_handshake.hpp"
#include "collectives/reduce/reducer.hpp"

namespace gdrx::sim {
namespace {

using exec::Rail;
using exec::RailLayout;

constexpr Bytes kMost = 6000;
constexpr RailLayout kLayout{kMost, 2 * kMost};

struct Piece {
  Bytes bytes = 0;
  Rail::Call call;
};

std::vector<std::byte> input_of(std::uint64_t turn, int rank, const Piece& piece) {
  std::vector<std::byte> data(piece.bytes);
  Random random(turn * 1000 + static_cast<std::uint64_t>(rank));
  // Small numbers of any type: bytes below 60 are numbers that neither overflow nor are NaN.
  for (std::byte& one : data) one = static_cast<std::byte>(random.below(60));
  return data;
}

std::vector<std::byte> sum_of(std::uint64_t turn, int ranks, const Piece& piece) {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<const void*> sources;
  for (int rank = 0; rank < ranks; ++rank) inputs.push_back(input_of(turn, rank, piece));
  for (const auto& input : inputs) sources.push_back(input.data());
  std::vector<std::byte> sum(piece.bytes);
  reduce::reduce(sum.data(), sources, piece.bytes / size_of(piece.call.type), piece.call.type,
                 piece.call.op, piece.call.finish_over);
  return sum;
}

void poison(std::span<std::byte> bytes) { std::fill(bytes.begin(), bytes.end(), std::byte{0xee}); }

/// One rank: scatters, adds and gathers on its GPU as far as the rail lets it.
class Member final : public exec::RailAdder {
 public:
  Member(RailWorld& world, int rank, const std::vector<Piece>& pieces, std::uint64_t seed)
      : world_(world),
        rank_(rank),
        pieces_(pieces),
        plan_(*exec::RailPlan::create(plan::Algorithm::two_shot, world.size(), rank)),
        stream_(seed) {}

  Result<void> start(std::uint32_t slot, std::uint32_t, const Sum& sum) override {
    sums_[slot] = stream_.push([this, sum] { add(sum); });
    return {};
  }
  Result<bool> ended(std::uint32_t slot, std::uint32_t) override {
    return stream_.reached(sums_[slot]);
  }
  Rail::Call call(const Rail::Call& like) const {
    return {like.type, like.op, like.finish_over, &plan_};
  }

  Result<void> round() {
    Rail& rail = world_.rail(rank_);
    GDRX_TRY(world_.poll(rank_, [&](std::uint64_t cookie) { rail.on_write_done(cookie); }));
    stream_.tick();
    const std::uint64_t most = std::min<std::uint64_t>(ended_ + Rail::kSlots, pieces_.size());
    for (; enqueued_ < most; ++enqueued_) scatter(enqueued_);
    for (; begun_ < enqueued_ && stream_.reached(scattered_[begun_ % Rail::kSlots]); ++begun_) {
      rail.begin(begun_, pieces_[begun_].bytes, call(pieces_[begun_].call));
    }
    GDRX_TRY(rail.step());
    for (; ended_ < begun_ && rail.ended(ended_); ++ended_) {
      stream_.push([this, turn = ended_] { gather(turn); });
    }
    return {};
  }
  bool finished() const { return gathered_ == pieces_.size(); }
  std::string wrong() const { return wrong_; }

 private:
  void scatter(std::uint64_t turn) {
    scattered_[turn % Rail::kSlots] = stream_.push([this, turn] {
      const auto data = input_of(turn, rank_, pieces_[turn]);
      const auto to = world_.seen(world_.rail(rank_).part(turn), world_.layout().part_room());
      poison(to);
      std::copy(data.begin(), data.end(), to.begin());
    });
  }
  void add(const Sum& sum) {
    std::vector<const void*> sources;
    std::size_t place = 0;
    for (int host = 0; host < sum.operands; ++host) {
      const std::byte* at = host == sum.self ? sum.own : sum.landed + place++ * sum.stride;
      sources.push_back(world_.seen(at, sum.bytes).data());
    }
    reduce::reduce(world_.seen(sum.own, sum.bytes).data(), sources, sum.bytes / size_of(sum.type),
                   sum.type, sum.op, sum.finish_over);
    for (std::size_t i = 0; i < place; ++i) {
      poison(world_.seen(sum.landed + i * sum.stride, sum.bytes));
    }
  }
  void gather(std::uint64_t turn) {
    const Piece& piece = pieces_[turn];
    const auto result = world_.seen(world_.rail(rank_).part(turn), piece.bytes);
    const auto expected = sum_of(turn, world_.size(), piece);
    if (wrong_.empty() && !std::equal(expected.begin(), expected.end(), result.begin())) {
      wrong_ = fmt::format("rank {}, turn {}: {} bytes of {} {}", rank_, turn, piece.bytes,
                           to_string(piece.call.type), to_string(piece.call.op));
    }
    poison(result);
    ++gathered_;
  }

  RailWorld& world_;
  int rank_;
  const std::vector<Piece>& pieces_;
  exec::RailPlan plan_;
  GpuStream stream_;
  std::array<std::uint64_t, Rail::kSlots> scattered_{};
  std::array<std::uint64_t, Rail::kSlots> sums_{};
  std::uint64_t enqueued_ = 0;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t gathered_ = 0;
  std::string wrong_;
};

std::vector<Piece> pieces_of(std::uint64_t seed, int hosts, std::size_t count) {
  Random random(seed);
  std::vector<Piece> pieces(count);
  for (Piece& piece : pieces) {
    piece.call.type = static_cast<DataType>(random.below(kGpuTypeCount));
    piece.call.op = static_cast<ReduceOp>(random.below(kGpuOpCount));
    piece.call.finish_over = piece.call.op == ReduceOp::avg ? hosts : 0;
    const Bytes element = size_of(piece.call.type);
    // None, a few, or any number.
    const Bytes most = random.chance(0.2) ? 0 : random.chance(0.3) ? 5 : kMost / element;
    piece.bytes = random.between(most == 0 ? 0 : 1, most) * element;
  }
  return pieces;
}

struct Outcome {
  std::string wrong;
  std::uint64_t held = 0;  // writes to GPUs that were held back
};

Outcome run(std::uint64_t seed, bool faults, trace::Track* track = nullptr) {
  Random random(seed);
  ClusterSettings settings;
  settings.seed = seed;
  settings.hosts = static_cast<int>(random.between(2, 5));
  settings.nics = static_cast<int>(random.between(1, 2));
  const auto pieces = pieces_of(seed, settings.hosts, 40);
  RailWorld world(settings, kLayout);
  std::vector<std::unique_ptr<Member>> members;
  std::vector<exec::RailAdder*> adders;
  for (int rank = 0; rank < world.size(); ++rank) {
    members.push_back(std::make_unique<Member>(world, rank, pieces, random.next()));
    adders.push_back(members.back().get());
  }
  world.make_rails(adders, track);
  world.network().set_fault(Fault::gpu_hold, 0.5);
  if (faults) {
    for (const auto& [fault, probability] :
         {std::pair(Fault::delay, 0.05), std::pair(Fault::drop_packet, 0.01),
          std::pair(Fault::drop_ack, 0.02), std::pair(Fault::scatter, 0.5),
          std::pair(Fault::late_completion, 0.05), std::pair(Fault::rnr, 0.01)}) {
      world.network().set_fault(fault, probability);
    }
  }
  const auto done = [](const auto& member) { return member->finished(); };
  const Instant end = world.network().now() + std::chrono::seconds(20);
  Outcome result;
  while (!std::all_of(members.begin(), members.end(), done) && result.wrong.empty()) {
    if (world.network().now() >= end) {
      for (auto& member : members) result.wrong += member->finished() ? " done" : " hangs";
      result.wrong += ": rank 0 waits for " + world.rail(0).waiting_for();
      break;
    }
    world.network().run_for(std::chrono::microseconds(2));
    for (auto& member : members) {
      if (random.chance(0.2)) continue;  // a slow processor
      const auto moved = member->round();
      if (!moved) result.wrong = describe(moved.error());
      if (!member->wrong().empty()) result.wrong = member->wrong();
    }
  }
  result.held = world.network().fired(Fault::gpu_hold);
  return result;
}

TEST(Rail, SumsEveryPartInTheOrderOfHostsWhateverTheOrderOfEvents) {
  std::uint64_t held = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Outcome one = run(seed, false);
    ASSERT_EQ(one.wrong, "") << "seed " << seed;
    held += one.held;
  }
  EXPECT_GT(held, 100U) << "no write was ever held back from the GPU";
}

TEST(Rail, SumsEveryPartOnANetworkThatLosesAndDelays) {
  for (std::uint64_t seed = 1001; seed <= 1100; ++seed) {
    const Outcome one = run(seed, true);
    ASSERT_EQ(one.wrong, "") << "seed " << seed;
  }
}

TEST(Rail, ShowsWhatItDoesAndWaitsFor) {
  const std::string file = testing::TempDir() + "gdrx_rail_" + std::to_string(getpid());
  const auto track = trace::Track::create(file + "_%r", Rank{0});
  ASSERT_EQ(run(3, false, track.get()).wrong, "");
  track->write(Log());
  std::stringstream text;
  text << std::ifstream(file + "_0").rdbuf();
  for (const char* name : {"chunk", "send to", "reduce", "wait for"}) {
    EXPECT_NE(text.str().find(fmt::format("\"{}", name)), std::string::npos) << name;
  }
  EXPECT_EQ(text.str().find("\"open\":true"), std::string::npos) << "something did not end";
  std::remove((file + "_0").c_str());
}

// Two ranks, a rail of which nothing is added.
class RailOfTwo : public ::testing::Test {
 protected:
  RailOfTwo() : world_({}, kLayout) {
    none_.emplace(world_, 0, no_pieces_, 1);
    world_.make_rails({&*none_, &*none_});
  }
  std::vector<Piece> no_pieces_;
  RailWorld world_;
  std::optional<Member> none_;
};

TEST_F(RailOfTwo, RefusesWhatNoPeerMaySay) {
  Rail& rail = world_.rail(0);
  constexpr std::uint32_t kMessage = 1 << 14;
  constexpr std::uint32_t kSlot = 1 << 11;
  EXPECT_TRUE(rail.arrived(Rank{1}, kMessage | 2 * kSlot).has_value());
  EXPECT_EQ(rail.arrived(Rank{1}, kMessage | 2 * kSlot).error().code, Errc::protocol) << "twice";
  EXPECT_EQ(rail.arrived(Rank{1}, kMessage | 3 * kSlot).error().code, Errc::protocol) << "no slot";
  EXPECT_EQ(rail.arrived(Rank{1}, kMessage | 2000).error().code, Errc::protocol) << "no message";
  EXPECT_EQ(rail.arrived(Rank{7}, kMessage).error().code, Errc::protocol) << "no rank";
  EXPECT_EQ(rail.arrived(Rank{0}, kMessage).error().code, Errc::protocol) << "itself";
  // A message of an receive_ring is none of a rail.
  EXPECT_FALSE(Rail::is_mine(exec::make_immediate(exec::kMaxLanes - 1, exec::kSlots - 1)));
}

TEST_F(RailOfTwo, SaysWhomItWaitsFor) {
  Rail& rail = world_.rail(0);
  EXPECT_EQ(rail.waiting_for(), "nobody");
  rail.begin(0, 1000, none_->call({DataType::uint8, ReduceOp::sum, 0}));
  for (int round = 0; round < 1000; ++round) {  // until it is connected
    world_.network().run_for(std::chrono::microseconds(5));
    for (int rank = 0; rank < 2; ++rank) {
      ASSERT_TRUE(world_.poll(rank, [&](std::uint64_t) {}).has_value());
    }
    ASSERT_TRUE(rail.step().has_value());
  }
  EXPECT_EQ(rail.waiting_for(), "message 0 of rank 1");
  EXPECT_FALSE(rail.ended(0));
}

TEST_F(RailOfTwo, TurnsWithoutBytesEndAtOnceAndSendNothing) {
  Rail& rail = world_.rail(0);
  rail.begin(0, 0, none_->call({DataType::uint8, ReduceOp::sum, 0}));
  EXPECT_TRUE(rail.ended(0));
  EXPECT_EQ(*rail.step(), exec::Step::done);
  EXPECT_EQ(rail.counters().sent, 0U);
}

exec::CallSignature signature_of(std::uint64_t sequence, std::uint64_t count) {
  exec::CallSignature signature;
  signature.collective = Collective::all_reduce;
  signature.type = DataType::float32;
  signature.algorithm = plan::Algorithm::two_shot;
  signature.sequence = sequence;
  signature.count = count;
  return signature;
}

class HandshakeOf : public RailOfTwo {
 protected:
  /// Both ranks' calls, until both are done or one has failed.
  std::vector<Result<exec::Step>> shake(const exec::CallSignature& first,
                                        const exec::CallSignature& second) {
    std::vector<exec::Handshake> sides;
    for (int rank = 0; rank < 2; ++rank) {
      sides.push_back(*exec::Handshake::create(rank == 0 ? first : second, {Rank{0}, Rank{1}},
                                               world_.links(rank)));
    }
    std::vector<Result<exec::Step>> steps(2, exec::Step::idle);
    const auto open = [](const Result<exec::Step>& step) {
      return step && *step != exec::Step::done;
    };
    for (int round = 0; round < 100'000 && (open(steps[0]) || open(steps[1])); ++round) {
      world_.network().run_for(std::chrono::microseconds(1));
      for (int rank = 0; rank < 2; ++rank) {
        EXPECT_TRUE(world_.poll(rank, [](std::uint64_t) {}).has_value());
        const auto at = static_cast<std::size_t>(rank);
        if (open(steps[at])) steps[at] = sides[at].step();
      }
    }
    return steps;
  }
};

TEST_F(HandshakeOf, ManyCallsAgreeOneAfterAnother) {
  for (std::uint64_t call = 0; call < 50; ++call) {
    for (const auto& step : shake(signature_of(call, 7), signature_of(call, 7))) {
      ASSERT_TRUE(step.has_value()) << describe(step.error());
      ASSERT_EQ(*step, exec::Step::done) << "call " << call;
    }
  }
}

TEST_F(HandshakeOf, DifferentCallsAreNamedOnBothRanks) {
  for (const auto& step : shake(signature_of(3, 7), signature_of(3, 8))) {
    ASSERT_FALSE(step.has_value());
    EXPECT_EQ(step.error().code, Errc::mismatch);
    EXPECT_NE(step.error().what.find("allReduce #3 of 7 float"), std::string::npos)
        << step.error().what;
    EXPECT_NE(step.error().what.find("allReduce #3 of 8 float"), std::string::npos);
  }
}

}  // namespace
}  // namespace gdrx::sim
