// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tools/run/run_words.hpp"

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

TEST(RunWords, DivideOnlyWhereOptionsStand) {
  EXPECT_EQ(parsed({"-np", "2", "echo", "a", "--", "b"}).program, (Words{"echo", "a", "--", "b"}));
  EXPECT_EQ(parsed({"--as-rank", "--report", "true", "--", "x"}).program,
            (Words{"true", "--", "x"}));
  EXPECT_EQ(parsed({"-np", "2", "--", "-odd"}).program, (Words{"-odd"}));
}

TEST(RunWords, OfGdrxAreTakenWithEqualsAndWhenMisspeltRefused) {
  const RunWords run = parsed({"--ranks=4", "--launcher=torchrun", "--", "a"});
  EXPECT_EQ(run.ranks, 4);
  EXPECT_EQ(run.launcher, "torchrun");
  EXPECT_EQ(run.options, Words{});
  EXPECT_EQ(refusal({"--rank=4", "--", "a"}), "run: --rank=4: is --ranks meant?");
  EXPECT_EQ(refusal({"--reprot", "--", "a"}), "run: --reprot: is --report meant?");
  EXPECT_EQ(refusal({"--report=x", "a"}), "run: --report takes no value");
  EXPECT_EQ(refusal({"--report-bindings", "--", "a"}), "taken");
}

TEST(RunWords, ThatALaunchersRankHasNoUseForAreRefused) {
  EXPECT_EQ(refusal({"--as-rank", "-H", "a", "--", "b"}),
            "run: -H beside --as-rank: a launcher is there already");
  EXPECT_EQ(refusal({"--as-rank", "-np", "2", "b"}),
            "run: -np beside --as-rank: a launcher is there already");
}

TEST(RunWords, OfSeveralProgramsAreRefused) {
  EXPECT_NE(refusal({"-np", "2", "a", ":", "-np", "2", "b"}).find("several programs"),
            std::string::npos);
  EXPECT_EQ(refusal({"--launcher", "torchrun", "a", ":"}), "taken");
}

TEST(RunWords, AskForHelpBeforeTheProgramAlone) {
  EXPECT_TRUE(parsed({"-np", "2", "--help"}).help);
  EXPECT_FALSE(parsed({"-np", "2", "a", "--help"}).help);
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
            (Words{"mpirun", "-np", "2", "--bind-to", "none", "-x", "GDRX_LOG", "-H", "a,b", "/g",
                   "run", "--as-rank", "--unbound", "--report", "--", "./app", "1"}));
  EXPECT_EQ(launcher_words(LauncherKind::hydra, run, "/g", "", {"GDRX_LOG"}),
            (Words{"mpirun", "-np", "2", "-bind-to", "none", "-H", "a,b", "/g", "run", "--as-rank",
                   "--unbound", "--report", "--", "./app", "1"}));
}

TEST(RunWords, HaveTorchrunStartAScriptByPython) {
  const RunWords run = parsed({"--launcher", "torchrun", "-np", "2", "train.py", "-v"});
  EXPECT_EQ(launcher_words(LauncherKind::torchrun, run, "/g", "/p", {}),
            (Words{"torchrun", "--nproc_per_node", "2", "--standalone", "--no_python", "/g", "run",
                   "--as-rank", "--unbound", "--", "/p", "-u", "train.py", "-v"}));
}

TEST(RunWords, HaveTorchrunStartAModuleAndMeetByItself) {
  const auto words = [](const Words& given, const char* python) {
    return launcher_words(LauncherKind::torchrun, parsed(given), "/g", python, {});
  };
  EXPECT_EQ(words({"--launcher", "torchrun", "-np", "2", "-m", "pkg", "-v"}, "/p"),
            (Words{"torchrun", "--nproc_per_node", "2", "--standalone", "--no_python", "/g", "run",
                   "--as-rank", "--unbound", "--", "/p", "-u", "-m", "pkg", "-v"}));
  EXPECT_EQ(words({"--launcher", "torchrun", "-np", "2", "--max-restarts", "1", "--", "a"}, ""),
            (Words{"torchrun", "--nproc_per_node", "2", "--standalone", "--max-restarts", "1",
                   "--no_python", "/g", "run", "--as-rank", "--unbound", "--", "a"}));
  const Words two = words({"--launcher", "torchrun", "-np", "2", "--nnodes=2", "--", "a"}, "");
  EXPECT_EQ(std::count(two.begin(), two.end(), "--standalone"), 0);
}

TEST(RunWords, CarryNoVariableThatTheUserSetsAndOversubscribeOneHostAlone) {
  RunWords run = parsed({"-np", "9", "-x", "GDRX_LOG=info", "--", "a"});
  run.crowded = true;
  EXPECT_EQ(launcher_words(LauncherKind::open_mpi, run, "/g", "", {"GDRX_LOG", "GDRX_A"}),
            (Words{"mpirun", "-np", "9", "--bind-to", "none", "--oversubscribe", "-x", "GDRX_A",
                   "-x", "GDRX_LOG=info", "/g", "run", "--as-rank", "--unbound", "--", "a"}));
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
  set["LOCAL_RANK"] = "5";
  set["LOCAL_WORLD_SIZE"] = "8";
  EXPECT_EQ(rank(), "1/2") << "left from a shell";
  set["TORCHELASTIC_RUN_ID"] = "none";
  EXPECT_EQ(rank(), "5/8") << "torchrun below mpirun";
  set = {{"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}};
  EXPECT_EQ(rank(), "none") << "a rank behind the last";
  set = {{"LOCAL_RANK", "-1"}, {"LOCAL_WORLD_SIZE", "2"}};
  EXPECT_EQ(rank(), "none");
}

TEST(RunWords, SlurmTellsTheRanksOfEachHost) {
  std::map<std::string, std::string, std::less<>> set;
  const auto count = [&] {
    const auto found = local_rank([&](std::string_view name) {
      const auto at = set.find(name);
      return at == set.end() ? std::string() : at->second;
    });
    return found ? found->count : 0;
  };
  set = {{"SLURM_LOCALID", "1"}, {"SLURM_NODEID", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "2,4"}};
  EXPECT_EQ(count(), 4);
  set["SLURM_STEP_TASKS_PER_NODE"] = "4(x2),2";
  set["SLURM_NODEID"] = "2";
  EXPECT_EQ(count(), 2);
  set["SLURM_NTASKS_PER_NODE"] = "8";
  EXPECT_EQ(count(), 2) << "the step's are nearer than the job's";
  set["SLURM_NODEID"] = "3";
  EXPECT_EQ(count(), 0);
  set.erase("SLURM_STEP_TASKS_PER_NODE");
  EXPECT_EQ(count(), 8);
  for (const char* odd : {"4(x2", "4x", "(x2)", "4(x)"}) {
    set["SLURM_STEP_TASKS_PER_NODE"] = odd;
    EXPECT_EQ(count(), 0) << odd;
  }
}

}  // namespace
}  // namespace gdrx::tools
