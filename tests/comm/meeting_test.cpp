// SPDX-License-Identifier: Apache-2.0
// A communicator that is made anew by processes that have one: over the connections that they have.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "collectives/api/c_init.hpp"
#include "tests/comm/entries.hpp"
#include "tests/comm/processes.hpp"

namespace gdrx::test {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 4;

bool sums(gdrxComm_t comm, int ranks) {
  float value = 1.0F;
  return gdrxAllReduce(&value, &value, 1, gdrxFloat32, gdrxSum, comm, nullptr, nullptr) ==
             gdrxSuccess &&
         value == static_cast<float>(ranks);
}

/// Sockets and threads, once what made the last communicator has ended.
struct Held {
  static Held now() {
    std::this_thread::sleep_for(200ms);
    return {entries_of("/proc/self/fd", "socket:"), entries_of("/proc/self/task")};
  }
  friend bool operator==(const Held&, const Held&) = default;
  int sockets;
  int threads;
};

/// The id is `root`'s, and goes by way of `comm`.
gdrxComm_t made_anew(gdrxComm_t comm, int root, int self, int rank, int ranks) {
  gdrxUniqueId id{};
  if (self == root && gdrxGetUniqueId(&id) != gdrxSuccess) return nullptr;
  if (gdrxBroadcast(&id, &id, sizeof id, gdrxUint8, root, comm, nullptr, nullptr) != gdrxSuccess) {
    return nullptr;
  }
  if (rank < 0) return nullptr;
  gdrxComm_t made = nullptr;
  if (gdrxCommInitRank(&made, ranks, id, rank, nullptr) == gdrxSuccess) return made;
  std::fprintf(stderr, "anew: %s\n", gdrxGetLastError(nullptr));
  return nullptr;
}

void expect_all_well(const Life& life) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 60;
  Processes processes(kRanks, config, life);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(processes.wait(rank), 0) << "rank " << rank;
}

int end(std::initializer_list<gdrxComm_t> all) {
  for (gdrxComm_t comm : all) {
    if (gdrxCommDestroy(comm) != gdrxSuccess) return 90;
  }
  return 0;
}

TEST(MeetingAgain, MakesNoConnectionAndNoThread) {
  expect_all_well([](int rank, gdrxComm_t comm) {
    if (!sums(comm, kRanks)) return 1;
    const Held before = Held::now();
    gdrxComm_t same = made_anew(comm, 0, rank, rank, kRanks);
    gdrxComm_t turned = made_anew(comm, 1, rank, kRanks - 1 - rank, kRanks);
    if (same == nullptr || turned == nullptr) return 2;
    if (!sums(turned, kRanks) || !sums(same, kRanks)) return 3;
    if (Held::now() != before) return 4;
    return end({comm, turned, same});
  });
}

TEST(MeetingAgain, GoesOnWhenTheFirstHasEndedAndMayBeOfSomeOfItsRanks) {
  expect_all_well([](int rank, gdrxComm_t comm) {
    const Held before = Held::now();
    gdrxComm_t some = made_anew(comm, 0, rank, rank - 1, kRanks - 1);
    if (rank == 0) return end({comm});
    if (some == nullptr || Held::now() != before) return 1;
    if (end({comm}) != 0 || !sums(some, kRanks - 1)) return 2;
    gdrxComm_t third = made_anew(some, 0, rank - 1, rank - 1, kRanks - 1);
    if (third == nullptr || !sums(third, kRanks - 1)) return 3;
    return end({some, third});
  });
}

TEST(MeetingAgain, OfAnotherConfigurationFindsOutAnew) {
  expect_all_well([](int rank, gdrxComm_t comm) {
    const Held before = Held::now();
    setenv("GDRX_CMA", "0", 1);
    gdrxComm_t other = made_anew(comm, 0, rank, rank, kRanks);
    if (other == nullptr || !sums(other, kRanks)) return 1;
    if (Held::now() != before) return 2;
    return end({other, comm});
  });
}

TEST(MeetingAgain, IsOverNewConnectionsWhereOneHasOtherOptions) {
  expect_all_well([](int rank, gdrxComm_t comm) {
    const Held before = Held::now();
    if (rank == 2) setenv("GDRX_SILENCE", "25", 1);
    gdrxComm_t other = made_anew(comm, 0, rank, rank, kRanks);
    if (other == nullptr || !sums(other, kRanks)) return 1;
    if (Held::now() == before) return 2;
    return end({comm, other});
  });
}

// --- over somebody else's all-gather, as MPI's: nobody leaves it while others are in it

struct Gather {
  gdrxComm_t comm;
  int calls = 0;
  static int call(const void* mine, void* all, std::size_t bytes, void* user) {
    auto& self = *static_cast<Gather*>(user);
    ++self.calls;
    return gdrxAllGather(mine, all, bytes, gdrxUint8, self.comm, nullptr, nullptr);
  }
};

TEST(MeetingAgain, TakesOneRoundOfSomebodyElsesAllGather) {
  expect_all_well([](int rank, gdrxComm_t comm) {
    Gather gather{comm};
    gdrxComm_t made = nullptr;
    if (gdrxCommInitAllGather(&made, kRanks, rank, &Gather::call, &gather, nullptr) !=
        gdrxSuccess) {
      return 1;
    }
    if (gather.calls != 2) return 2;  // lengths, and what is that long
    if (!sums(made, kRanks)) return 3;
    return end({made, comm});
  });
}

struct Fault {
  const char* name;
  const char* value;
  bool apart = false;  // each rank takes itself for alone on its host
};

class MeetingOfOneThatCannot : public testing::TestWithParam<Fault> {};

TEST_P(MeetingOfOneThatCannot, IsOverForAllAndSaysWhoAndWhy) {
  expect_all_well([](int rank, gdrxComm_t comm) {
    const Fault& fault = GetParam();
    if (fault.apart) setenv("GDRX_HOST_ID", std::to_string(rank).c_str(), 1);
    if (rank == 2) setenv(fault.name, fault.value, 1);
    Gather gather{comm};
    gdrxComm_t made = nullptr;
    const auto begin = std::chrono::steady_clock::now();
    if (gdrxCommInitAllGather(&made, kRanks, rank, &Gather::call, &gather, nullptr) ==
        gdrxSuccess) {
      return 1;
    }
    if (std::chrono::steady_clock::now() - begin > 5s) return 2;
    const std::string said = gdrxGetLastError(nullptr);
    std::fprintf(stderr, "rank %d: %s\n", rank, said.c_str());
    if (rank != 2 && said.find("rank 2: ") == std::string::npos) return 3;
    if (said.find(fault.value) == std::string::npos) return 4;
    if (!sums(comm, kRanks)) return 5;  // they are in step
    return end({comm});
  });
}

INSTANTIATE_TEST_SUITE_P(Faults, MeetingOfOneThatCannot,
                         testing::Values(Fault{"GDRX_LANES", "many"},
                                         Fault{"GDRX_SECRET_FILE", "/nowhere/secret"},
                                         Fault{"GDRX_TUNE_FILE", "/nowhere/table"},
                                         Fault{"GDRX_SOCKET_IFNAME", "nowhere0", true}));

// A child has none of its parent's connections, and begins its own.
TEST(MeetingAgain, OfAChildIsOverConnectionsOfItsOwn) {
  expect_all_well([](int, gdrxComm_t comm) {
    if (!sums(comm, kRanks)) return 1;
    gdrxComm_t part = nullptr;
    if (gdrxCommSplit(comm, 0, 0, &part, nullptr) != gdrxSuccess) return 2;
    const pid_t child = fork();
    if (child == 0) {
      gdrxUniqueId id{};
      gdrxComm_t own = nullptr;
      const bool made = gdrxGetUniqueId(&id) == gdrxSuccess &&
                        gdrxCommInitRank(&own, 1, id, 0, nullptr) == gdrxSuccess;
      _exit(made && sums(own, 1) && gdrxCommDestroy(own) == gdrxSuccess ? 0 : 1);
    }
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) return 3;
    if (!sums(part, kRanks) || !sums(comm, kRanks)) return 4;
    return end({part, comm});
  });
}

}  // namespace
}  // namespace gdrx::test
