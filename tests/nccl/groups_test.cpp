// SPDX-License-Identifier: Apache-2.0
// Groups: messages, several ranks a thread, errors.
#include <array>
#include <chrono>

#include "nccl/map.hpp"
#include "tests/nccl/door.hpp"
#include "tests/nccl/thread.hpp"

namespace gdrx::nccl {
namespace {

class NcclGroups : public Nccl {};

TEST_F(NcclGroups, OneThreadMakesUsesAndDestroysSeveralRanks) {
  Thread thread(3);
  init_in_a_group(thread);
  for (const Member& self : thread.members) {
    int rank = -1, count = -1, device = -1;
    EXPECT_EQ(ncclCommUserRank(self.comm, &rank), kSuccess);
    EXPECT_EQ(ncclCommCount(self.comm, &count), kSuccess);
    EXPECT_EQ(ncclCommCuDevice(self.comm, &device), kSuccess);
    EXPECT_EQ(rank, self.rank);
    EXPECT_EQ(count, 3);
    EXPECT_EQ(device, self.rank % gpu_count());
  }
  thread.sum_in_a_group();
  thread.destroy_in_a_group();
}

TEST_F(NcclGroups, AllRanksOfAProcessAtOnce) {
  Thread thread(2);
  std::array<ncclComm_t, 2> comms{};
  const std::array<int, 2> devices{0, 1 % gpu_count()};
  ASSERT_EQ(ncclCommInitAll(comms.data(), 2, devices.data()), kSuccess)
      << ncclGetLastError(nullptr);
  for (std::size_t r = 0; r < 2; ++r) thread.members[r].comm = comms[r];
  thread.sum_in_a_group();
  for (const ncclComm_t comm : comms) EXPECT_EQ(ncclCommFinalize(comm), kSuccess);
  for (const ncclComm_t comm : comms) {
    EXPECT_EQ(ncclCommDestroy(comm), kSuccess) << ncclGetLastError(nullptr);
  }
}

TEST_F(NcclGroups, SplitInAGroup) {
  Thread thread(4);
  init_in_a_group(thread);
  std::array<ncclComm_t, 4> parts{};
  ASSERT_EQ(ncclGroupStart(), kSuccess);
  for (std::size_t r = 0; r < 4; ++r) {
    const int color = r == 3 ? -1 : static_cast<int>(r % 2);
    EXPECT_EQ(ncclCommSplit(thread.members[r].comm, color, static_cast<int>(r), &parts[r], nullptr),
              kSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), kSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(parts[3], nullptr);
  const std::array<int, 3> sizes{2, 1, 2};
  for (std::size_t r = 0; r < 3; ++r) {
    int count = 0;
    ASSERT_NE(parts[r], nullptr);
    EXPECT_EQ(ncclCommCount(parts[r], &count), kSuccess);
    EXPECT_EQ(count, sizes[r]);
  }
  ASSERT_EQ(ncclGroupStart(), kSuccess);
  for (std::size_t r = 0; r < 3; ++r) EXPECT_EQ(ncclCommDestroy(parts[r]), kSuccess);
  EXPECT_EQ(ncclGroupEnd(), kSuccess);
  thread.sum_in_a_group();
  thread.destroy_in_a_group();
}

/// A group that is open has a window of each rank.
void begin_with_windows(const Thread& thread, std::array<ncclWindow_t, 2>& windows) {
  ASSERT_EQ(ncclGroupStart(), kSuccess);
  for (std::size_t r = 0; r < 2; ++r) {
    const Member& self = thread.members[r];
    EXPECT_EQ(ncclCommWindowRegister(self.comm, self.in, kRoom, &windows[r], kWindowSymmetric),
              kSuccess);
  }
}

TEST_F(NcclGroups, WindowsOfOneThreadsRanks) {
  Thread thread(2);
  init_in_a_group(thread);
  std::array<ncclWindow_t, 2> windows{};
  begin_with_windows(thread, windows);
  ASSERT_EQ(ncclGroupEnd(), kSuccess) << ncclGetLastError(nullptr);
  for (std::size_t r = 0; r < 2; ++r) ASSERT_NE(windows[r], nullptr);
  thread.sum_in_a_group();
  ASSERT_EQ(ncclGroupStart(), kSuccess);
  for (std::size_t r = 0; r < 2; ++r) {
    EXPECT_EQ(ncclCommWindowDeregister(thread.members[r].comm, windows[r]), kSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), kSuccess) << ncclGetLastError(nullptr);
  thread.destroy_in_a_group();
}

// Alike in size, so that nothing but the order tells which belong together.
TEST_F(NcclGroups, WindowsOfOneRankAreSharedInTheirOrder) {
  Thread thread(2);
  init_in_a_group(thread);
  std::array<std::array<ncclWindow_t, 2>, 2> windows{};
  ASSERT_EQ(ncclGroupStart(), kSuccess);
  for (std::size_t r = 0; r < 2; ++r) {
    const Member& self = thread.members[r];
    EXPECT_EQ(ncclCommWindowRegister(self.comm, self.in, kRoom, &windows[r][0], kWindowSymmetric),
              kSuccess);
    EXPECT_EQ(ncclCommWindowRegister(self.comm, self.out, kRoom, &windows[r][1], kWindowSymmetric),
              kSuccess);
    EXPECT_EQ(windows[r][0], nullptr) << "before the group has ended";
  }
  ASSERT_EQ(ncclGroupEnd(), kSuccess) << ncclGetLastError(nullptr);
  thread.sum_in_a_group();
  ASSERT_EQ(ncclGroupStart(), kSuccess);
  for (std::size_t r = 0; r < 2; ++r) {
    ncclComm_t const comm = std::exchange(thread.members[r].comm, nullptr);
    for (ncclWindow_t window : windows[r]) {
      ASSERT_NE(window, nullptr);
      EXPECT_EQ(ncclCommWindowDeregister(comm, window), kSuccess);
    }
    EXPECT_EQ(ncclCommDestroy(comm), kSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), kSuccess) << ncclGetLastError(nullptr);
}

TEST_F(NcclGroups, AnAbortedOnesWorkIsForgotten) {
  Thread thread(2);
  init_in_a_group(thread);
  ASSERT_EQ(ncclGroupStart(), kSuccess);
  for (Member& self : thread.members) {
    ncclComm_t const comm = std::exchange(self.comm, nullptr);
    EXPECT_EQ(ncclCommDestroy(comm), kSuccess);
    EXPECT_EQ(ncclCommAbort(comm), kSuccess);
  }
  EXPECT_EQ(ncclGroupEnd(), kSuccess);
}

Config without_blocking() {
  Config config{};
  config.size = sizeof config;
  config.magic = kConfigMagic;
  config.version = 22809;
  config.cga_cluster_size = config.min_ctas = config.split_share = config.shrink_share = kUndefined;
  config.max_ctas = 4;
  return config;
}

void wait_until_made(ncclComm_t comm) {
  Result state = kInProgress;
  while (state == kInProgress) {
    ASSERT_EQ(ncclCommGetAsyncError(comm, &state), kSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_EQ(state, kSuccess) << ncclGetLastError(comm);
}

TEST_F(NcclGroups, ACommunicatorIsMadeWhileTheProgramGoesOn) {
  Thread thread(2);
  UniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), kSuccess);
  Config config = without_blocking();
  for (Member& self : thread.members) {
    must(cudaSetDevice(self.rank % gpu_count()), "cudaSetDevice");
    EXPECT_EQ(ncclCommInitRankConfig(&self.comm, 2, id, self.rank, &config), kInProgress);
    ASSERT_NE(self.comm, nullptr);
  }
  for (const Member& self : thread.members) wait_until_made(self.comm);
  thread.sum_in_a_group();
  const ncclComm_t first = thread.members[0].comm, second = thread.members[1].comm;
  EXPECT_EQ(ncclCommFinalize(first), kInProgress);
  Result state = kSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(first, &state), kSuccess);
  EXPECT_EQ(state, kInProgress) << "the other rank has not come";
  EXPECT_EQ(ncclCommFinalize(second), kInProgress);
  for (const Member& self : thread.members) wait_until_made(self.comm);
  for (const Member& self : thread.members) EXPECT_EQ(ncclCommDestroy(self.comm), kSuccess);
}

TEST_F(NcclGroups, WhatDoesNotBlockDoesNotInAGroupEither) {
  Thread thread(2);
  UniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), kSuccess);
  Config config = without_blocking();
  ASSERT_EQ(ncclGroupStart(), kSuccess);
  for (Member& self : thread.members) {
    must(cudaSetDevice(self.rank % gpu_count()), "cudaSetDevice");
    EXPECT_EQ(ncclCommInitRankConfig(&self.comm, 2, id, self.rank, &config), kSuccess);
  }
  EXPECT_EQ(ncclGroupEnd(), kInProgress);
  for (const Member& self : thread.members) wait_until_made(self.comm);
  std::array<ncclComm_t, 2> parts{};
  ASSERT_EQ(ncclGroupStart(), kSuccess);
  for (std::size_t r = 0; r < 2; ++r) {
    EXPECT_EQ(ncclCommSplit(thread.members[r].comm, 0, 0, &parts[r], nullptr), kSuccess);
  }
  EXPECT_EQ(ncclGroupEnd(), kInProgress) << "as what they are split from";
  for (const ncclComm_t part : parts) {
    wait_until_made(part);
    EXPECT_EQ(ncclCommFinalize(part), kInProgress);
  }
  for (const ncclComm_t part : parts) EXPECT_EQ(ncclCommDestroy(part), kSuccess);
  thread.destroy_in_a_group();
}

TEST_F(NcclGroups, EveryPairExchanges) {
  World world(3);
  world.each([](const Member& self) {
    constexpr std::size_t kCount = 3001;
    std::vector<std::uint32_t> mine(kCount * 3);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      mine[i] = static_cast<std::uint32_t>(i + static_cast<std::size_t>(self.rank) * 100000);
    }
    self.upload(self.in, mine.data(), mine.size() * 4);
    ASSERT_EQ(ncclGroupStart(), kSuccess);
    for (int peer = 0; peer < 3; ++peer) {
      const std::size_t at = kCount * 4 * static_cast<std::size_t>(peer);
      EXPECT_EQ(ncclSend(self.in + at, kCount, kUint32, peer, self.comm, self.stream), kSuccess);
      EXPECT_EQ(ncclRecv(self.out + at, kCount, kUint32, peer, self.comm, self.stream), kSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), kSuccess) << ncclGetLastError(self.comm);
    const auto got = self.got<std::uint32_t>(kCount * 3);
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i],
                static_cast<std::size_t>(self.rank) * kCount + i % kCount + i / kCount * 100000);
    }
  });
}

TEST_F(NcclGroups, AWrongCallEndsItsGroupAndNothingOfItStarts) {
  World world(2);
  world.each([](const Member& self) {
    const std::uint32_t before = 7;
    self.upload(self.out, &before, sizeof before);
    ASSERT_EQ(ncclGroupStart(), kSuccess);
    EXPECT_EQ(ncclAllReduce(self.in, self.out, 1, kUint32, kSum, self.comm, self.stream), kSuccess);
    EXPECT_EQ(ncclAllReduce(self.in, self.out, 1, 12, kSum, self.comm, self.stream),
              kInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), kInvalidArgument);
    EXPECT_EQ(self.got<std::uint32_t>(1)[0], before);
    EXPECT_EQ(count_by_sum(self, self.comm), 2U);
  });
  EXPECT_EQ(ncclGroupEnd(), kInvalidUsage);
}

/// As in NCCL: what a group does not wait for is none of its calls.
TEST_F(NcclGroups, AWrongQuestionIsNoneOfItsCalls) {
  World world(2);
  world.each([](const Member& self) {
    const auto mine = static_cast<std::uint32_t>(self.rank + 3);
    self.upload(self.in, &mine, sizeof mine);
    ASSERT_EQ(ncclGroupStart(), kSuccess);
    EXPECT_EQ(ncclAllReduce(self.in, self.out, 1, kUint32, kSum, self.comm, self.stream), kSuccess);
    EXPECT_EQ(ncclCommCount(self.comm, nullptr), kInvalidArgument);
    EXPECT_EQ(ncclCommCuDevice(nullptr, nullptr), kInvalidArgument);
    EXPECT_EQ(ncclCommGetAsyncError(nullptr, nullptr), kInvalidArgument);
    EXPECT_EQ(ncclGetVersion(nullptr), kInvalidArgument);
    EXPECT_EQ(ncclGetUniqueId(nullptr), kInvalidArgument);
    EXPECT_EQ(ncclMemAlloc(nullptr, 5), kInvalidArgument);
    EXPECT_EQ(ncclCommRegister(self.comm, nullptr, 0, nullptr), kInvalidArgument);
    EXPECT_EQ(ncclRedOpDestroy(kFirstMade + 7, self.comm), kInvalidArgument);
    EXPECT_EQ(ncclCommMemStats(self.comm, 9, nullptr), kInvalidArgument);
    EXPECT_EQ(ncclParamGetI8(), kInvalidUsage);
    EXPECT_EQ(ncclCommQueryProperties(), kInvalidUsage);
    EXPECT_EQ(ncclGroupEnd(), kSuccess) << ncclGetLastError(nullptr);
    EXPECT_EQ(self.got<std::uint32_t>(1)[0], 7U);
  });
}

/// Each waits for the others, and not all threads can be had: nothing is run, and all that there is
/// goes on and can be destroyed.
TEST_F(NcclGroups, WithoutThreadsAGroupsWorkIsRefused) {
  Thread thread(2);
  init_in_a_group(thread);
  for (const int allowed : {0, 1}) {
    std::array<ncclWindow_t, 2> windows{};
    begin_with_windows(thread, windows);
    door::allow_threads(allowed);
    const Result ended = ncclGroupEnd();
    door::allow_threads(-1);
    EXPECT_EQ(ended, kSystemError) << allowed;
    for (const ncclWindow_t window : windows) EXPECT_EQ(window, nullptr);
    thread.sum_in_a_group();
  }
  const int before = door::destroyed();
  thread.destroy_in_a_group();
  EXPECT_EQ(door::destroyed(), before + 2) << "somebody still has one";
}

/// A thread at a time, but with groups of their own.
TEST_F(NcclGroups, TwoThreadsMayHaveOpenGroupsOfOneCommunicator) {
  World world(2);
  world.each([](const Member& self) {
    ASSERT_EQ(ncclGroupStart(), kSuccess);
    EXPECT_EQ(ncclAllReduce(self.in, self.out, 1, kUint32, kSum, self.comm, self.stream), kSuccess);
    std::thread([&] {
      must(cudaSetDevice(self.rank % gpu_count()), "cudaSetDevice");
      ASSERT_EQ(ncclGroupStart(), kSuccess);
      EXPECT_EQ(ncclAllReduce(self.in, self.out, 1, kUint32, kSum, self.comm, self.stream),
                kSuccess);
      EXPECT_EQ(ncclGroupEnd(), kSuccess) << ncclGetLastError(nullptr);
    }).join();
    EXPECT_EQ(ncclGroupEnd(), kSuccess) << ncclGetLastError(nullptr);
    EXPECT_EQ(count_by_sum(self, self.comm), 2U);
  });
}

}  // namespace
}  // namespace gdrx::nccl
