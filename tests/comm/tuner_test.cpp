// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/tuner.hpp"

#include <gtest/gtest.h>

#include "collectives/comm/ways.hpp"
#include "gdrx/plan_simulate.hpp"

namespace gdrx {
namespace {

Machine sixteen_on_two() {
  Machine machine;
  machine.ranks = 16;
  machine.cpus = 2;
  machine.shm = true;
  machine.fabric = true;
  machine.fabric_name = "ucx";
  return machine;
}

TEST(Tuner, TakesOneShotForSmallAndTwoShotForLargeInAHost) {
  const auto small = choose(sixteen_on_two(), Collective::all_reduce, 64, std::nullopt);
  const auto large = choose(sixteen_on_two(), Collective::all_reduce, 16 << 20, std::nullopt);
  ASSERT_TRUE(small && large);
  EXPECT_EQ(small->chosen.algorithm, plan::Algorithm::one_shot);
  EXPECT_EQ(large->chosen.algorithm, plan::Algorithm::two_shot);
  EXPECT_EQ(large->chosen.path, PathKind::shm);
}

TEST(Tuner, ObeysTheUser) {
  const auto choice = choose(sixteen_on_two(), Collective::all_reduce, 64, plan::Algorithm::ring);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->chosen.algorithm, plan::Algorithm::ring);
  EXPECT_EQ(choice->chosen.path, PathKind::fabric);
}

TEST(Tuner, TakesWhatAddsInTheOrderOfRanksWhereResultsMustRepeat) {
  for (const bool shm : {true, false}) {
    Machine machine = sixteen_on_two();
    machine.reproducible = true;
    machine.shm = shm;
    const auto choice = choose(machine, Collective::all_reduce, 16 << 20, std::nullopt);
    ASSERT_TRUE(choice);
    for (const Candidate& candidate : choice->candidates) {
      EXPECT_TRUE(candidate.algorithm == plan::Algorithm::one_shot ||
                  candidate.algorithm == plan::Algorithm::two_shot);
    }
  }
}

TEST(Tuner, LeavesSharedMemoryOutBetweenHosts) {
  Machine machine = sixteen_on_two();
  machine.hosts = 2;
  machine.shm = false;
  const auto choice = choose(machine, Collective::all_reduce, 1 << 20, std::nullopt);
  ASSERT_TRUE(choice);
  for (const Candidate& candidate : choice->candidates) {
    EXPECT_EQ(candidate.path, PathKind::fabric);
  }
}

TEST(Tuner, SaysThatNothingCarriesACollectiveWithoutAFabric) {
  Machine machine = sixteen_on_two();
  machine.fabric = false;
  EXPECT_FALSE(choose(machine, Collective::broadcast, 64, std::nullopt));
  EXPECT_TRUE(choose(machine, Collective::all_reduce, 64, std::nullopt));
}

std::vector<tune::Curve> every_way(double us) {
  std::vector<tune::Curve> all;
  for (const auto algorithm : plan::algorithms_of(Collective::all_reduce)) {
    const bool direct =
        algorithm == plan::Algorithm::one_shot || algorithm == plan::Algorithm::two_shot;
    all.push_back({direct ? "shm" : "ucx", algorithm, 16, 1, {{64, us}, {1 << 20, us}}});
  }
  return all;
}

TEST(Tuner, TakesWhatWasMeasuredAsTheFastestAgainstItsModel) {
  Machine machine = sixteen_on_two();
  machine.measured = every_way(10);
  machine.measured_by = "a test";
  machine.measured[1].points = {{64, 9}, {1 << 20, 9}};
  const auto choice = choose(machine, Collective::all_reduce, 4096, std::nullopt);
  ASSERT_TRUE(choice);
  EXPECT_TRUE(choice->measured);
  EXPECT_EQ(choice->chosen.algorithm, plan::Algorithm::tree);
  EXPECT_EQ(choice->chosen.predicted_us, 9);
  EXPECT_NE(explain(machine, Collective::all_reduce, 4096, *choice).find("times from a test"),
            std::string::npos);
  machine.measured.clear();
  EXPECT_NE(choose(machine, Collective::all_reduce, 4096, std::nullopt)->chosen.algorithm,
            plan::Algorithm::tree);
}

TEST(Tuner, ComparesNoMeasuredTimeWithTheModels) {
  Machine machine = sixteen_on_two();
  const auto by_model = choose(machine, Collective::all_reduce, 4096, std::nullopt);
  machine.measured = every_way(0.001);  // as if all were faster than anything the model says
  for (const Bytes outside : {Bytes{63}, Bytes{(1 << 20) + 1}}) {
    EXPECT_FALSE(choose(machine, Collective::all_reduce, outside, std::nullopt)->measured);
  }
  EXPECT_FALSE(choose(machine, Collective::broadcast, 4096, std::nullopt)->measured);
  machine.measured.pop_back();  // one way was not measured
  const auto choice = choose(machine, Collective::all_reduce, 4096, std::nullopt);
  EXPECT_FALSE(choice->measured);
  EXPECT_EQ(choice->chosen.algorithm, by_model->chosen.algorithm);
  EXPECT_EQ(choice->chosen.predicted_us, by_model->chosen.predicted_us);
  // What was asked for needs no rival.
  EXPECT_TRUE(choose(machine, Collective::all_reduce, 4096, plan::Algorithm::ring)->measured);
}

Machine two_on_two() {
  Machine machine = sixteen_on_two();
  machine.ranks = 2;
  machine.cma = 1;
  return machine;
}

TEST(Tuner, WritesResultsIntoOtherProcessesWhereThatIsFaster) {
  const Machine machine = two_on_two();
  const auto taken = [](const Machine& on, Bytes bytes) {
    return choose(on, Collective::all_reduce, bytes, std::nullopt)->chosen.algorithm;
  };
  EXPECT_EQ(taken(machine, 16 << 10), plan::Algorithm::one_shot);
  EXPECT_EQ(taken(machine, 1 << 20), plan::Algorithm::two_shot);
  EXPECT_EQ(taken(machine, 64 << 20), plan::Algorithm::one_shot) << "beyond the caches";
  EXPECT_FALSE(writes_results(machine, 16 << 10));
  EXPECT_TRUE(writes_results(machine, 1 << 20));
  EXPECT_FALSE(writes_results(machine, 64 << 20));

  Machine refused = machine;
  refused.cma = 0;
  EXPECT_FALSE(writes_results(refused, 1 << 20));
  EXPECT_EQ(taken(refused, 1 << 20), plan::Algorithm::one_shot);
  Machine shared = sixteen_on_two();
  shared.cma = 1;
  EXPECT_FALSE(writes_results(shared, 1 << 20)) << "ranks take turns, and slices are small";
  shared.cma = 2;
  EXPECT_TRUE(writes_results(shared, 1));
  shared.shm = false;
  EXPECT_FALSE(writes_results(shared, 1 << 20));
}

TEST(Tuner, SaysThatResultsAreWrittenIntoOtherProcesses) {
  const auto line = [](Bytes bytes) {
    const auto choice = choose(two_on_two(), Collective::all_reduce, bytes, std::nullopt);
    return explain(two_on_two(), Collective::all_reduce, bytes, *choice).find("GDRX_CMA");
  };
  EXPECT_NE(line(1 << 20), std::string::npos);
  EXPECT_EQ(line(1 << 10), std::string::npos);
}

Machine rail_of(int hosts) {
  Machine machine;
  machine.ranks = machine.hosts = hosts;
  machine.fabric = true;
  machine.fabric_name = "verbs";
  return machine;
}

TEST(Tuner, TimesOfARailAreOfAllItsPieces) {
  const Machine rail = rail_of(4);
  for (const Bytes bytes : {Bytes{16}, Bytes{300'000}, Bytes{(1 << 20) + 64}, Bytes{40'000'016}}) {
    const Pieces pieces = Pieces::cut(bytes, 2);
    const auto choice = choose_rail(rail, pieces, std::nullopt);
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->candidates.size(), plan::algorithms_of(Collective::all_reduce).size());
    double before = 0;
    for (const Candidate& candidate : choice->candidates) {
      double us = 0;
      for (std::uint64_t number = 0; number < pieces.count(); ++number) {
        us += choose(rail, Collective::all_reduce, pieces.piece(number).part, candidate.algorithm)
                  ->chosen.predicted_us;
      }
      EXPECT_NEAR(candidate.predicted_us, us, 1e-9 * us) << bytes;
      EXPECT_GE(candidate.predicted_us, before);
      before = candidate.predicted_us;
    }
    EXPECT_EQ(choice->chosen.algorithm, choice->candidates[0].algorithm);
  }
  EXPECT_EQ(choose_rail(rail, Pieces::cut(64, 2), plan::Algorithm::tree)->candidates.size(), 1U);
}

TEST(Tuner, PredictsGpuDirectAsTheSimulationOfItsPlan) {
  constexpr Bytes kOnePiece = 512 << 10;
  const auto us = [](int hosts, Bytes bytes) {
    return direct_rail_us(rail_of(hosts), Pieces::cut(bytes, 1, 1 << 20),
                          plan::Algorithm::two_shot);
  };
  // Of two hosts it takes 2 alpha + S beta.
  plan::Costs costs;
  costs.beta_us = (us(2, kOnePiece) - us(2, kOnePiece / 2)) / (kOnePiece / 2);
  costs.alpha_us = (us(2, kOnePiece) - costs.beta_us * kOnePiece) / 2;
  for (int hosts = 2; hosts <= 9; ++hosts) {
    const auto plan =
        plan::build({Collective::all_reduce, plan::Algorithm::two_shot, hosts, Rank{}});
    ASSERT_TRUE(plan);
    const auto simulated = plan::simulate(*plan, kOnePiece, costs);
    ASSERT_TRUE(simulated);
    EXPECT_NEAR(us(hosts, kOnePiece), simulated->time_us, 1e-6) << hosts;
  }
  // More pieces: more bytes, but not more latencies.
  EXPECT_NEAR(us(2, 40 << 20), 2 * costs.alpha_us + (40 << 20) * costs.beta_us, 1e-6);
  EXPECT_EQ(
      direct_rail_us(rail_of(2), Pieces::cut(40 << 20, 4, 1 << 20), plan::Algorithm::two_shot),
      us(2, 10 << 20));
}

// Where the processors add, two hosts send the same bytes in as many messages.
TEST(Tuner, PredictsGpuDirectByTheCostsOfOtherFabrics) {
  for (const Bytes bytes : {Bytes{16}, Bytes{512 << 10}}) {
    const Pieces pieces = Pieces::cut(bytes, 1);
    const double pinned =
        choose_rail(rail_of(2), pieces, plan::Algorithm::two_shot)->chosen.predicted_us;
    const double direct = direct_rail_us(rail_of(2), pieces, plan::Algorithm::two_shot);
    EXPECT_LE(direct, pinned) << bytes;
    EXPECT_GE(direct, 0.8 * pinned) << bytes;
  }
}

// A program may make them in turn all the time.
TEST(Ways, OfAReduceIsNotTheOneOfASlightlyLargerAllReduce) {
  int lost = 0;
  for (Bytes bytes = 4; bytes <= 400; bytes += 4) {
    Ways ways;
    const Question reduce{Collective::reduce, bytes, std::nullopt};
    ways.keep(reduce, {});
    const Bytes longer = bytes + static_cast<Bytes>(Collective::reduce);
    ways.keep({Collective::all_reduce, longer, std::nullopt}, {});
    if (ways.find(reduce) == nullptr) ++lost;
  }
  EXPECT_LE(lost, 10);  // of 100: some numbers are mixed alike
}

TEST(Tuner, ExplainsEveryCandidateAndMarksTheChoice) {
  const auto choice = choose(sixteen_on_two(), Collective::all_reduce, 1 << 20, std::nullopt);
  ASSERT_TRUE(choice);
  const std::string text = explain(sixteen_on_two(), Collective::all_reduce, 1 << 20, *choice);
  for (const char* name : {"ring", "tree", "halving-doubling", "one-shot", "two-shot"}) {
    EXPECT_NE(text.find(name), std::string::npos) << name;
  }
  EXPECT_NE(text.find("<- chosen"), std::string::npos);
}

}  // namespace
}  // namespace gdrx
