// SPDX-License-Identifier: Apache-2.0
// Ranks that die, and the others that go on without them.
#include <sys/syscall.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/comm/processes.hpp"

namespace gdrx::test {
namespace {

enum Wrong : int {
  kNoError = 10,
  kNamesAnother,
  kDoesNotShrink,
  kWrongSum,
  kDoesNotEnd,
  kNamesNoDeath,
};

int sum_until_it_fails(int rank, int dies, gdrxComm_t comm) {
  float in = 1, out = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (i == 50 && rank == dies) raise(SIGKILL);
    if (gdrxAllReduce(&in, &out, 1, gdrxFloat32, gdrxSum, comm, nullptr, nullptr) != gdrxSuccess) {
      return 0;
    }
  }
  return kNoError;
}

bool sums_right(gdrxComm_t comm, int ranks) {
  for (int i = 0; i < 200; ++i) {
    std::vector<float> data(static_cast<std::size_t>(1 + i * 17), 1.0F);
    if (gdrxAllReduce(data.data(), data.data(), data.size(), gdrxFloat32, gdrxSum, comm, nullptr,
                      nullptr) != gdrxSuccess ||
        data.back() != static_cast<float>(ranks)) {
      return false;
    }
  }
  return true;
}

// Each of `dying` in turn, named by its rank in the communicator that is left by then.
int outlive(int rank, int ranks, std::vector<int> dying, gdrxComm_t first) {
  gdrxComm_t comm = first;
  for (const int dies : dying) {
    if (const int wrong = sum_until_it_fails(rank, dies, comm); wrong != 0) return wrong;
    gdrxAsyncErrorInfo_t info{};
    info.size = sizeof info;
    if (gdrxCommGetAsyncErrorInfo(comm, &info) != gdrxSuccess || info.subject != dies) {
      return kNamesAnother;
    }
    gdrxComm_t rest = nullptr;
    const int gone = info.subject;
    if (gdrxCommShrink(comm, &gone, 1, &rest, nullptr) != gdrxSuccess) return kDoesNotShrink;
    if (comm != first) gdrxCommDestroy(comm);
    comm = rest;
    if (rank > dies) --rank;
    if (!sums_right(comm, --ranks)) return kWrongSum;
  }
  return gdrxCommDestroy(comm) == gdrxSuccess ? 0 : kDoesNotEnd;
}

class Death : public testing::TestWithParam<std::vector<int>> {};

TEST_P(Death, LeavesACommunicatorOfTheOthersThatGoesOn) {
  constexpr int kRanks = 5;
  const gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  Processes processes(kRanks, config, [&](int rank, gdrxComm_t comm) {
    return outlive(rank, kRanks, GetParam(), comm);
  });
  int killed = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    const int how = processes.wait(rank);
    if (how == -SIGKILL) ++killed;
    EXPECT_TRUE(how == -SIGKILL || how == 0) << "rank " << rank << ": " << how;
  }
  EXPECT_EQ(killed, static_cast<int>(GetParam().size()));
}

// The first, who tells where to meet and whose listener the first communicator met at; one in the
// middle; the last; one after another.
INSTANTIATE_TEST_SUITE_P(Of, Death,
                         testing::Values(std::vector{0}, std::vector{2}, std::vector{4},
                                         std::vector{0, 0, 2}));

void stand_still(int) { usleep(1'500'000); }

// As on a loaded machine: the thread of the control connections has no turn for some time. Of the
// signals gdrx's threads take those of faults alone.
void stop_other_threads() {
  signal(SIGTRAP, stand_still);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    const int thread = std::stoi(entry.path().filename());
    if (thread != getpid()) syscall(SYS_tgkill, getpid(), thread, SIGTRAP);
  }
}

int name_the_dead(gdrxComm_t comm, int calls) {
  std::array<float, 100> data{};
  for (int i = 0; i < calls; ++i) {
    if (gdrxAllReduce(data.data(), data.data(), data.size(), gdrxFloat32, gdrxSum, comm, nullptr,
                      nullptr) == gdrxSuccess) {
      continue;
    }
    std::fprintf(stderr, "%s\n", gdrxGetLastError(comm));
    return std::strstr(gdrxGetLastError(comm), "died") != nullptr ? 0 : kNamesNoDeath;
  }
  return kNoError;
}

// Rank 1 dies between two calls.
int die_or_name(int rank, gdrxComm_t comm) {
  if (name_the_dead(comm, 30) != kNoError) return kNamesNoDeath;
  if (rank == 0) stop_other_threads();
  if (name_the_dead(comm, 20) != kNoError) return kNamesNoDeath;
  if (rank == 1) raise(SIGKILL);
  return name_the_dead(comm, 100'000);
}

// Rank 1 dies in a call before rank 2 comes to it. What rank 0 then gets from rank 2 it has to pass
// on to the dead.
int pass_on_to_the_dead(int rank, gdrxComm_t comm) {
  if (name_the_dead(comm, 30) != kNoError) return kNamesNoDeath;
  if (rank != 1) stop_other_threads();
  if (rank == 1) ualarm(100'000, 0);
  if (rank == 2) usleep(300'000);
  return name_the_dead(comm, 1);
}

// A data path notices a peer that is gone in its own words. The mesh knows that it died.
class DeathOnALoadedMachine : public testing::TestWithParam<const char*> {
 protected:
  void expect_named(int ranks, const Life& life) {
#if defined(__SANITIZE_ADDRESS__)
    if (std::string_view(GetParam()) == "ucx") {
      GTEST_SKIP() << "of a peer that died UCX keeps memory, which the leak checker reports";
    }
#endif
    gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
    config.transport = GetParam();
    config.algorithm = "ring";
    Processes processes(ranks, config, life);
    EXPECT_EQ(processes.wait(0), 0);
  }
};

TEST_P(DeathOnALoadedMachine, IsNamedByTheMeshHoweverLateItsTurn) { expect_named(2, die_or_name); }
TEST_P(DeathOnALoadedMachine, OfWhomDataIsForIsNamedByTheMesh) {
  expect_named(3, pass_on_to_the_dead);
}

INSTANTIATE_TEST_SUITE_P(Over, DeathOnALoadedMachine, testing::Values("tcp", "shm", "ucx"));

}  // namespace
}  // namespace gdrx::test
