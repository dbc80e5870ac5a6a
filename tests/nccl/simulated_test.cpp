// SPDX-License-Identifier: Apache-2.0
// Groups that are predicted, and never start.
#include <array>

#include "tests/nccl/thread.hpp"

namespace gdrx::nccl {
namespace {

class NcclSimulated : public Nccl {};

SimInfo asked() {
  SimInfo info{};
  info.size = sizeof info;
  info.magic = kSimMagic;
  info.estimated_time = -1;
  return info;
}

/// Microseconds that a group is said to take, which does not start.
template <class Body>
float simulated(Body&& body) {
  EXPECT_EQ(ncclGroupStart(), kSuccess);
  body();
  SimInfo info = asked();
  EXPECT_EQ(ncclGroupSimulateEnd(&info), kSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(ncclGroupEnd(), kInvalidUsage) << "the group is still open";
  return info.estimated_time;
}

TEST_F(NcclSimulated, ASimulatedGroupIsPredictedAndDoesNotStart) {
  World world(2);
  world.each([](const Member& self) {
    const std::uint32_t before = 7;
    self.upload(self.out, &before, sizeof before);
    const auto sum = [&](std::size_t count) {
      EXPECT_EQ(ncclAllReduce(self.in, self.out, count, kUint32, kSum, self.comm, self.stream),
                kSuccess);
    };
    const float small = simulated([&] { sum(1); });
    const float large = simulated([&] { sum(kRoom / 4); });
    EXPECT_GT(small, 0);
    EXPECT_GT(large, small);
    EXPECT_FLOAT_EQ(simulated([&] {
                      sum(1);
                      sum(kRoom / 4);
                    }),
                    small + large);
    const auto exchange = [&](std::size_t count) {
      const int peer = 1 - self.rank;
      EXPECT_EQ(ncclSend(self.in, count, kUint32, peer, self.comm, self.stream), kSuccess);
      EXPECT_EQ(ncclRecv(self.out, count, kUint32, peer, self.comm, self.stream), kSuccess);
    };
    const float once = simulated([&] { exchange(kRoom / 8); });
    EXPECT_FLOAT_EQ(simulated([&] {
                      exchange(kRoom / 16);
                      exchange(kRoom / 16);
                    }),
                    once)
        << "messages start together";
    EXPECT_EQ(simulated([] {}), 0);
    EXPECT_EQ(self.got<std::uint32_t>(1)[0], before);
    EXPECT_EQ(count_by_sum(self, self.comm), 2U);
  });
}

TEST_F(NcclSimulated, AWrongSimulationEndsTheGroupToo) {
  World world(2);
  world.each([](const Member& self) {
    SimInfo info{};  // as no initialiser leaves it
    ASSERT_EQ(ncclGroupStart(), kSuccess);
    EXPECT_EQ(ncclGroupSimulateEnd(&info), kInvalidArgument);
    ASSERT_EQ(ncclGroupStart(), kSuccess);
    EXPECT_EQ(ncclAllReduce(self.in, self.out, 1, 12, kSum, self.comm, self.stream),
              kInvalidArgument);
    info = asked();
    EXPECT_EQ(ncclGroupSimulateEnd(&info), kInvalidArgument);
    EXPECT_EQ(info.estimated_time, -1);
    EXPECT_EQ(ncclGroupSimulateEnd(&info), kInvalidUsage) << "no group is open";
    EXPECT_EQ(count_by_sum(self, self.comm), 2U);
  });
}

/// What is made or ended in a group stays as it was.
TEST_F(NcclSimulated, ASimulatedGroupMakesAndEndsNothing) {
  Thread thread(2);
  init_in_a_group(thread);
  UniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), kSuccess);
  std::array<ncclComm_t, 2> made{};
  simulated([&] {
    for (std::size_t r = 0; r < 2; ++r) {
      EXPECT_EQ(ncclCommInitRank(&made[r], 2, id, static_cast<int>(r)), kSuccess);
      EXPECT_EQ(ncclCommDestroy(thread.members[r].comm), kSuccess);
    }
  });
  for (const ncclComm_t comm : made) EXPECT_EQ(comm, nullptr);
  thread.sum_in_a_group();
  thread.destroy_in_a_group();
}

}  // namespace
}  // namespace gdrx::nccl
