// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other between the user's calls.
#include <gtest/gtest.h>

#include <string>

#include "tests/comm/thread_ranks.hpp"

namespace gdrx {
namespace {

Blob blob_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class Agreement : public ThreadRanks {
 protected:
  static constexpr int kRanks = 5;

  void SetUp() override { make(kRanks); }
  void TearDown() override {
    for_each([&](std::size_t rank) {
      (void)comms_[rank]->leave();
      comms_[rank].reset();
    });
  }
};

TEST_F(Agreement, EveryRankHasEverysBytesOfAnyLength) {
  for (const std::size_t longest : {0, 1, 100, 70000}) {
    for_each([&](std::size_t rank) {
      const auto all = comms_[rank]->gather(Blob(longest * rank, static_cast<std::byte>(rank)));
      ASSERT_TRUE(all) << all.error().what;
      ASSERT_EQ(all->size(), kRanks);
      for (std::size_t other = 0; other < kRanks; ++other) {
        EXPECT_EQ((*all)[other], Blob(longest * other, static_cast<std::byte>(other)));
      }
    });
  }
}

TEST_F(Agreement, IsTheSameErrorEverywhereAndTheCommunicatorGoesOn) {
  for_each([&](std::size_t rank) {
    Communicator& comm = *comms_[rank];
    const Result<Blob> fine = blob_of("fine");
    const Result<Blob> worse = fail(Errc::unsupported, "no such memory");
    const Result<Blob> later = fail(Errc::system, "and another");
    const auto failed = comm.agree(rank == 3 ? worse : rank == 4 ? later : fine);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Errc::unsupported);
    EXPECT_EQ(failed.error().what, "rank 3: no such memory");
    const auto agreed = comm.agree(fine);
    ASSERT_TRUE(agreed) << agreed.error().what;
    for (const Blob& one : *agreed) EXPECT_EQ(one, *fine);
    EXPECT_FALSE(comm.failure());
  });
}

TEST_F(Agreement, LeavesTheUsersLastOperationAlone) {
  for_each([&](std::size_t rank) {
    Communicator& comm = *comms_[rank];
    Call call;
    call.collective = Collective::all_reduce;
    call.type = DataType::int32;
    std::int32_t number = 1;
    call.input = reinterpret_cast<std::byte*>(&number);
    call.output = reinterpret_cast<std::byte*>(&number);
    call.count = 1;
    auto operation = comm.post(call);
    ASSERT_TRUE(operation && comm.wait(**operation));
    EXPECT_EQ(number, kRanks);
    const OperationInfo before = comm.last_operation();
    ASSERT_TRUE(comm.gather(Blob(100000, std::byte{1})));
    EXPECT_EQ(comm.last_operation().counters.slices, before.counters.slices);
    EXPECT_EQ(comm.last_operation().algorithm, before.algorithm);
    EXPECT_EQ(comm.last_operation().predicted_us, before.predicted_us);
  });
}

TEST_F(Agreement, WithARankThatDoesSomethingElseFailsWithItsName) {
  for_each([&](std::size_t rank) {
    Communicator& comm = *comms_[rank];
    if (rank != 2) {
      const auto all = comm.gather(Blob(4));
      ASSERT_FALSE(all);
      EXPECT_EQ(all.error().code, Errc::mismatch);
      EXPECT_NE(all.error().what.find("rank 2"), std::string::npos) << all.error().what;
      return;
    }
    Call call;
    call.collective = Collective::barrier;
    auto operation = comm.post(call);
    EXPECT_FALSE(operation && comm.wait(**operation));
  });
}

}  // namespace
}  // namespace gdrx
