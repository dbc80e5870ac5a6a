// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gdrx/plan_text.hpp"

namespace gdrx::plan {
namespace {

Spec any_spec() {
  const auto collective =
      *rc::gen::element(Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                        Collective::broadcast, Collective::reduce, Collective::barrier);
  const auto algorithms = algorithms_of(collective);
  const auto algorithm = algorithms[*rc::gen::inRange<std::size_t>(0, algorithms.size())];
  const auto n = *rc::gen::inRange<std::int32_t>(1, 34);
  return {collective, algorithm, n, Rank{*rc::gen::inRange<std::int32_t>(0, n)}};
}

Plan plan_of(const Spec& spec) { return build(spec).value(); }

RC_GTEST_PROP(PlanJson, ComesBackAsItWas, ()) {
  const Plan plan = plan_of(any_spec());
  const auto back = from_json(to_json(plan));
  RC_ASSERT(back.has_value());
  RC_ASSERT(back->spec == plan.spec);
  RC_ASSERT(back->shape == plan.shape);
  RC_ASSERT(back->ranks == plan.ranks);
}

// One line, no control characters, names the place.
void refuses(const std::string& text, const std::string& because, const JsonLimits& limits = {}) {
  const auto plan = from_json(text, limits);
  ASSERT_FALSE(plan) << text.substr(0, 200);
  EXPECT_EQ(plan.error().code, Errc::invalid_argument) << plan.error().what;
  EXPECT_NE(plan.error().what.find(because), std::string::npos) << plan.error().what;
  EXPECT_EQ(plan.error().what.find('\n'), std::string::npos);
  EXPECT_LT(plan.error().what.size(), 200u);
}

std::string ring3() { return to_json(plan_of({Collective::all_reduce, Algorithm::ring, 3, {}})); }

std::string with(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

RC_GTEST_PROP(PlanJson, RefusesEveryTruncation, ()) {
  const std::string text = ring3();
  const auto end = text.find_last_of('}');
  RC_ASSERT(!from_json(text.substr(0, *rc::gen::inRange<std::size_t>(0, end))));
}

// A plan with one mistake in it is refused as JSON exactly if the verifier refuses it: nothing that
// matters is lost on the way.
RC_GTEST_PROP(PlanJson, HoldsExactlyIfThePlanDoes, ()) {
  Plan plan = plan_of(any_spec());
  auto& rank = plan.ranks[*rc::gen::inRange<std::size_t>(0, plan.ranks.size())];
  auto& ops = rank.channels[*rc::gen::inRange<std::size_t>(0, rank.channels.size())];
  RC_PRE(!ops.empty());
  Op& op = ops[*rc::gen::inRange<std::size_t>(0, ops.size())];
  switch (*rc::gen::inRange(0, 6)) {
    case 0:
      op.finish = !op.finish;
      break;
    case 1:
      op.src.chunk = *rc::gen::inRange<std::uint32_t>(0, 40);
      break;
    case 2:
      op.dst.chunk = *rc::gen::inRange<std::uint32_t>(0, 40);
      break;
    case 3:
      op.src.count = *rc::gen::inRange<std::uint32_t>(1, 40);
      break;
    case 4:
      op.src.buffer = op.src.buffer == Buffer::input ? Buffer::output : Buffer::input;
      break;
    default:
      ops.erase(ops.begin() + (&op - ops.data()));
  }
  const bool unused = from_json(to_json(plan)) && !verify(plan);
  if (unused) {  // the mistake was in an operand that the op does not have
    RC_ASSERT(from_json(to_json(plan))->ranks != plan.ranks);
  } else {
    RC_ASSERT(from_json(to_json(plan)).has_value() == verify(plan).has_value());
  }
}

// The fuzzer's seeds, for builds without it.
TEST(PlanJson, JudgesTheFuzzersSeeds) {
  int seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(GDRX_PLAN_SEEDS)) {
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const bool good = !entry.path().filename().string().starts_with("bad_");
    EXPECT_EQ(from_json(text).has_value(), good) << entry.path();
    ++seeds;
  }
  EXPECT_GE(seeds, 15);
}

// Whatever a flipped byte gives, it is an error or a plan that holds.
RC_GTEST_PROP(PlanJson, TakesOnlyProvenPlansFromDamagedText, ()) {
  std::string text = ring3();
  const auto flips = *rc::gen::inRange(1, 4);
  for (int i = 0; i < flips; ++i) {
    text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
  }
  const auto plan = from_json(text);
  if (plan) RC_ASSERT(verify(*plan).has_value());
  if (!plan) RC_ASSERT(plan.error().what.find('\n') == std::string::npos);
}

TEST(PlanJson, SaysWhatIsWrong) {
  const std::string good = ring3();
  ASSERT_TRUE(from_json(good));
  refuses("", "not JSON");
  refuses("null", "an object is expected");
  refuses("[]", "an object is expected");
  refuses(std::string(100'000, '['), "nested too deeply");
  refuses("{\"gdrx_plan\": \"\xff\xfe\"}", "not JSON");
  refuses(with(good, "\"root\": 0", "\"root\": 0, \"root\": 0"), "the key 'root' stands twice");
  refuses(with(good, "\"root\"", "\"roOt\""), "unknown key 'roOt'");
  refuses(with(good, "\"root\"", "\"ro\\not\\u0000\""), "unknown key 'ro?ot?'");
  refuses(with(good, "\"root\": 0,", ""), "plan: root is missing");
  refuses(with(good, "\"gdrx_plan\": 1", "\"gdrx_plan\": 2"), "gdrx_plan is not a whole number");
  refuses(with(good, "\"ranks\": 3", "\"ranks\": 3.0"), "ranks is not a whole number");
  refuses(with(good, "\"ranks\": 3", "\"ranks\": -3"), "ranks is not a whole number");
  refuses(with(good, "\"ranks\": 3", "\"ranks\": 4294967299"), "ranks is not a whole number");
  refuses(with(good, "\"ranks\": 3", "\"ranks\": 1e400"), "not JSON");
  refuses(with(good, "\"ranks\": 3", "\"ranks\": 1000000"), "ranks is not a whole number");
  refuses(with(good, "\"ranks\": 3", "\"ranks\": \"3\""), "ranks is not a whole number");
  refuses(with(good, "\"ranks\": 3", "\"ranks\": 4"), "its chunks");
  refuses(with(good, "\"root\": 0", "\"root\": 3"), "root is not a whole number from 0 to 2");
  refuses(with(good, "\"ring\"", "\"ringg\""), "algorithm knows no 'ringg'");
  refuses(with(good, "\"ring\"", "\"" + std::string(500, 'r') + "\""), "...'");
  refuses(with(good, "\"allReduce\"", "7"), "collective is not a string");
  refuses(with(good, "\"allReduce\"", "\"sendRecv\""), "sendRecv");
  refuses(with(good, "\"input_chunks\": 3", "\"input_chunks\": 4"), "its chunks");
  refuses(with(good, "\"credits\": 1", "\"credits\": 2"), "its chunks");
  refuses(with(good, "\"op\": \"send\"", "\"op\": \"sned\""), "op 0: op knows no 'sned'");
  refuses(with(good, "\"peer\": 1", "\"peer\": 3"), "peer is not a whole number from 0 to 2");
  refuses(with(good, "\"chunk\": 0}", "\"chunk\": 0, \"count\": 0}"), "count is not a whole");
  refuses(with(good, "\"chunk\": 0}", "\"chunk\": 77}"), "names a chunk that does not exist");
  refuses(with(good, "\"chunk\": 0}", "\"chunk\": 0, \"count\": 2147483647}"), "does not exist");
  refuses(with(good, "\"finish\": true", "\"finish\": 1"), "finish is not true or false");
  refuses(with(good, ", \"finish\": true", ""), "completes a reduction without saying so");
  refuses(with(good, "\"scratch_chunks\": 0", "\"scratch_chunks\": 65"), "from 0 to 64");
  refuses(with(good, "{\"op\": \"send\", \"peer\": 1", "{\"op\": \"copy\", \"peer\": 1"),
          "copy has no peer");
}

TEST(PlanJson, KeepsItsLimits) {
  JsonLimits limits;
  limits.bytes = 100;
  refuses(ring3(), "more than 100 bytes", limits);
  limits = {};
  limits.ranks = 2;
  refuses(ring3(), "ranks is not a whole number from 1 to 2", limits);
  limits = {};
  limits.ops = 20;  // 3 ranks of 8
  refuses(ring3(), "ops", limits);
  limits = {};
  limits.ops = 10;
  limits.ranks = 3;
  std::string numbers = "[0";
  for (int i = 0; i < 1000; ++i) numbers += ",0";
  refuses(numbers + "]", "more values than it may have", limits);
  std::string many = "{\"op\": \"wait\", \"src\": {\"buffer\": \"input\", \"chunk\": 0}}";
  std::string list;
  for (int i = 0; i < 100; ++i) list += many + ",";
  refuses(with(ring3(), "{\"op\"", list + "{\"op\""), "more than 64 ops in a channel");
}

}  // namespace
}  // namespace gdrx::plan
