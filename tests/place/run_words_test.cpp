// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "tools/run/words.hpp"

namespace gdrx::tools {
namespace {

using Words = std::vector<std::string>;

RunWords parsed(const Words& words) {
  const auto run = parse_run(words);
  EXPECT_TRUE(run) << run.error().what;
  return run ? *run : RunWords();
}

std::string refusal(const Words& words) {
  const auto run = parse_run(words);
  return run ? "taken" : run.error().what;
}

TEST(RunWords, EndAtTheProgramWhoseOptionsAreItsOwn) {
  const RunWords run = parsed({"-np", "4", "./app", "-np", "9", "--launcher"});
  EXPECT_EQ(run.ranks, 4);
  EXPECT_EQ(run.launcher, "mpirun");
  EXPECT_EQ(run.program, (Words{"./app", "-np", "9", "--launcher"}));
}

TEST(RunWords, BeforeTwoDashesAreTheLaunchers) {
  const RunWords run = parsed({"--hostfile", "hosts", "-n", "2", "--", "./app", "--", "x"});
  EXPECT_EQ(run.ranks, 2);
  EXPECT_EQ(run.options, (Words{"--hostfile", "hosts"}));
  EXPECT_EQ(run.program, (Words{"./app", "--", "x"}));
}

TEST(RunWords, ThatMakeNoSenseAreNamed) {
  EXPECT_EQ(refusal({}), "run: what is to be run?");
  EXPECT_EQ(refusal({"-np", "2", "--"}), "run: what is to be run?");
  EXPECT_EQ(refusal({"-np"}), "run: -np of what?");
  for (const char* count : {"0", "-1", "x", "2x", "4(x2)", "99999999999"}) {
    EXPECT_EQ(refusal({"-np", count, "a"}), std::string("run: -np ") + count + ": 1 to 1048576");
  }
  EXPECT_EQ(refusal({"--launcher", "rsh", "a"}), "run: --launcher rsh: mpirun or torchrun");
  EXPECT_NE(refusal({"--hostfile", "h", "a"}).find("stand before a --"), std::string::npos);
}

TEST(RunWords, HaveEachLauncherLeaveBindingToTheRanks) {
  RunWords run = parsed({"-np", "2", "--report", "-H", "a,b", "--", "./app", "1"});
  EXPECT_EQ(launcher_words(LauncherKind::open_mpi, run, "/g", "", {"GDRX_LOG"}),
            (Words{"mpirun", "-np", "2", "--bind-to", "none", "--oversubscribe", "-x", "GDRX_LOG",
                   "-H", "a,b", "/g", "run", "--as-rank", "--report", "--", "./app", "1"}));
  EXPECT_EQ(launcher_words(LauncherKind::hydra, run, "/g", "", {"GDRX_LOG"}),
            (Words{"mpirun", "-np", "2", "-bind-to", "none", "-H", "a,b", "/g", "run", "--as-rank",
                   "--report", "--", "./app", "1"}));
}

TEST(RunWords, HaveTorchrunStartAScriptByPython) {
  const RunWords run = parsed({"--launcher", "torchrun", "-np", "2", "train.py", "-v"});
  EXPECT_EQ(launcher_words(LauncherKind::torchrun, run, "/g", "/p", {}),
            (Words{"torchrun", "--nproc_per_node", "2", "--standalone", "--no_python", "/g", "run",
                   "--as-rank", "--", "/p", "-u", "train.py", "-v"}));
}

TEST(RunWords, ALocalRankIsWhatTheNearestLauncherSays) {
  std::map<std::string, std::string, std::less<>> set;
  const auto rank = [&] {
    const auto found = local_rank([&](std::string_view name) {
      const auto at = set.find(name);
      return at == set.end() ? std::string() : at->second;
    });
    return found ? std::to_string(found->number) + "/" + std::to_string(found->count) : "none";
  };
  EXPECT_EQ(rank(), "none");
  set = {{"SLURM_LOCALID", "3"}, {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}};
  EXPECT_EQ(rank(), "3/4");
  set["OMPI_COMM_WORLD_LOCAL_RANK"] = "1";
  EXPECT_EQ(rank(), "3/4") << "half of what a launcher says is nothing";
  set["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  EXPECT_EQ(rank(), "1/2");
  set = {{"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}};
  EXPECT_EQ(rank(), "none") << "a rank behind the last";
  set = {{"LOCAL_RANK", "-1"}, {"LOCAL_WORLD_SIZE", "2"}};
  EXPECT_EQ(rank(), "none");
}

}  // namespace
}  // namespace gdrx::tools
