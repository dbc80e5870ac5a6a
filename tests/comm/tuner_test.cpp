// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/tuner.hpp"

#include <gtest/gtest.h>

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
