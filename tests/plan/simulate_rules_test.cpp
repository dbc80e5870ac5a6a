// SPDX-License-Identifier: Apache-2.0
// The simulator's rules one by one, on programs made by hand.
#include <gtest/gtest.h>

#include "gdrx/plan_simulate.hpp"

namespace gdrx::plan {
namespace {

constexpr Bytes kSize = 1000;
constexpr double kAlpha = 5;
constexpr double kWire = 100;    // the vector on a link
constexpr double kReduce = 30;   // the vector combined
constexpr double kCopied = 700;  // the vector copied

constexpr ChunkRef kIn{Buffer::input, 0, 0};
constexpr ChunkRef kOut{Buffer::output, 0, 0};

Op send(std::int32_t to) { return {OpKind::send, false, Rank{to}, kIn, {}}; }
Op receive(std::int32_t from) { return {OpKind::recv_copy, false, Rank{from}, {}, kOut}; }
Op receive_reduce(std::int32_t from) { return {OpKind::recv_reduce, false, Rank{from}, kIn, kOut}; }
Op copy() { return {OpKind::copy, false, {}, kIn, kOut}; }
Op wait() { return {OpKind::wait, false, {}, kIn, {}}; }

Plan plan_of(std::vector<Channel> ranks, std::uint32_t credits = 1) {
  Plan plan;
  plan.spec.ranks = static_cast<std::int32_t>(ranks.size());
  plan.shape.credits = credits;
  for (Channel& channel : ranks) {
    plan.ranks.emplace_back();
    plan.ranks.back().channels.push_back(std::move(channel));
  }
  return plan;
}

Costs costs() {
  Costs costs;
  costs.alpha_us = kAlpha;
  costs.beta_us = kWire / static_cast<double>(kSize);
  costs.gamma_us = kReduce / static_cast<double>(kSize);
  return costs;
}

Prediction run(const Plan& plan, const Costs& with = costs()) {
  return simulate(plan, kSize, with).value();
}

TEST(SimulatorRules, AMessageTakesItsLatencyAndItsBytes) {
  const Prediction p = run(plan_of({{send(1)}, {receive(0)}}));
  EXPECT_DOUBLE_EQ(p.time_us, kAlpha + kWire);
  EXPECT_DOUBLE_EQ(p.finish_us[0], 0);  // a send does not block
}

TEST(SimulatorRules, MessagesOfOneSenderShareItsPortAndTheLatency) {
  const Plan plan = plan_of({{send(1), send(2)}, {receive(0)}, {receive(0)}});
  EXPECT_DOUBLE_EQ(run(plan).time_us, kAlpha + 2 * kWire);
  Costs pairs = costs();
  pairs.links = Links::pair;
  EXPECT_DOUBLE_EQ(run(plan, pairs).time_us, kAlpha + kWire);
}

TEST(SimulatorRules, MessagesToOneReceiverShareItsPort) {
  const Plan plan = plan_of({{receive(1), receive(2)}, {send(0)}, {send(0)}});
  EXPECT_DOUBLE_EQ(run(plan).time_us, kAlpha + 2 * kWire);
  Costs pairs = costs();
  pairs.links = Links::pair;
  EXPECT_DOUBLE_EQ(run(plan, pairs).time_us, kAlpha + kWire);
}

TEST(SimulatorRules, BothDirectionsOfAPortAreBusyAtOnce) {
  const Plan plan = plan_of({{send(1), receive(1)}, {send(0), receive(0)}});
  EXPECT_DOUBLE_EQ(run(plan).time_us, kAlpha + kWire);
}

TEST(SimulatorRules, AMessageWithoutCreditWaitsUntilTheOneBeforeIsConsumed) {
  const std::vector<Channel> ranks{{send(1), send(1)}, {receive_reduce(0), receive(0)}};
  const Prediction one = run(plan_of(ranks, 1));
  EXPECT_DOUBLE_EQ(one.time_us, 2 * (kAlpha + kWire) + kReduce);
  EXPECT_DOUBLE_EQ(run(plan_of(ranks, 2)).time_us, kAlpha + 2 * kWire);
  // send, combine, and then the send that had no credit.
  ASSERT_EQ(one.critical_path.size(), 4u);
  EXPECT_EQ(one.critical_path[1].rank, Rank{1});
  EXPECT_EQ(one.critical_path[2].rank, Rank{0});
  EXPECT_EQ(one.critical_path[2].op, 1u);
}

TEST(SimulatorRules, AWaitLastsUntilTheMessageIsDelivered) {
  Costs with = costs();
  with.copy_us = kCopied / static_cast<double>(kSize);
  const Prediction waits = run(plan_of({{send(1), wait(), copy()}, {receive_reduce(0)}}), with);
  EXPECT_DOUBLE_EQ(waits.finish_us[0], kAlpha + kWire + kCopied);
  const Prediction goes = run(plan_of({{send(1), copy()}, {receive_reduce(0)}}), with);
  EXPECT_DOUBLE_EQ(goes.finish_us[0], kCopied);
}

TEST(SimulatorRules, ARangeIsOneMessageOfItsChunks) {
  Plan plan = plan_of({{send(1)}, {receive(0)}});
  plan.shape.input_chunks = plan.shape.output_chunks = 4;
  plan.ranks[0].channels[0][0].src.count = 3;
  plan.ranks[1].channels[0][0].dst.count = 3;
  EXPECT_DOUBLE_EQ(run(plan).time_us, kAlpha + kWire * 3 / 4);
  EXPECT_EQ(run(plan).messages, 1u);
}

TEST(SimulatorRules, AMessageAChunkCostsHalvingAndDoublingTheRingsLatency) {
  for (const std::int32_t n : {2, 4, 8, 16, 32}) {
    Plan plan = build({Collective::all_reduce, Algorithm::halving_doubling, n, Rank{}}).value();
    for (RankProgram& program : plan.ranks) program = split_ranges(program);
    const Plan ring = build({Collective::all_reduce, Algorithm::ring, n, Rank{}}).value();
    EXPECT_NEAR(run(plan).time_us, run(ring).time_us, 1e-6) << "n=" << n;
  }
}

}  // namespace
}  // namespace gdrx::plan
