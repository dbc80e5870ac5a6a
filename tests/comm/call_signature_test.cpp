// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/call_signature.hpp"

#include <gtest/gtest.h>

namespace gdrx::exec {
namespace {

CallSignature call_of(std::uint64_t count) {
  CallSignature signature;
  signature.type = DataType::float32;
  signature.sequence = 7;
  signature.count = count;
  return signature;
}

TEST(CallSignature, AcceptsTheSameCall) {
  EXPECT_TRUE(check_signature(call_of(100), Rank{1}, call_of(100), Rank{0}));
}

TEST(CallSignature, NamesBothRanksAndBothCallsOfAMismatch) {
  const auto result = check_signature(call_of(101), Rank{3}, call_of(100), Rank{2});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::mismatch);
  EXPECT_NE(result.error().what.find("rank 3 called allReduce #7 of 101 float"), std::string::npos);
  EXPECT_NE(result.error().what.find("rank 2 called allReduce #7 of 100 float"), std::string::npos);
}

TEST(CallSignature, EachFieldCounts) {
  const CallSignature mine = call_of(100);
  CallSignature other = mine;
  other.type = DataType::float64;
  EXPECT_FALSE(check_signature(other, Rank{1}, mine, Rank{0}));
  other = mine;
  other.op = ReduceOp::max;
  EXPECT_FALSE(check_signature(other, Rank{1}, mine, Rank{0}));
  other = mine;
  other.user_op = 1;
  EXPECT_FALSE(check_signature(other, Rank{1}, mine, Rank{0}));
  other = mine;
  other.root = 1;
  EXPECT_FALSE(check_signature(other, Rank{1}, mine, Rank{0}));
  other = mine;
  other.collective = Collective::broadcast;
  EXPECT_FALSE(check_signature(other, Rank{1}, mine, Rank{0}));
  other = mine;
  other.algorithm = plan::Algorithm::tree;
  EXPECT_FALSE(check_signature(other, Rank{1}, mine, Rank{0}));
}

TEST(CallSignature, TellsAStrangersBytesFromAMismatch) {
  CallSignature garbage = call_of(100);
  garbage.magic = 0xdeadbeef;
  EXPECT_EQ(check_signature(garbage, Rank{1}, call_of(100), Rank{0}).error().code, Errc::protocol);
  CallSignature old = call_of(100);
  old.version = 0;
  EXPECT_EQ(check_signature(old, Rank{1}, call_of(100), Rank{0}).error().code, Errc::protocol);
  CallSignature nonsense = call_of(100);  // values outside the enumerations are still described
  nonsense.collective = static_cast<Collective>(200);
  nonsense.type = static_cast<DataType>(201);
  EXPECT_EQ(check_signature(nonsense, Rank{1}, call_of(100), Rank{0}).error().code, Errc::mismatch);
}

TEST(MessageHeader, RefusesALengthThatTheCallDoesNotHave) {
  MessageHeader expected;
  expected.signature = call_of(100);
  expected.bytes = 400;
  MessageHeader theirs = expected;
  theirs.bytes = 401;
  EXPECT_EQ(check_message(theirs, Rank{1}, expected, Rank{0}).error().code, Errc::protocol);
}

}  // namespace
}  // namespace gdrx::exec
