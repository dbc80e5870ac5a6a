// SPDX-License-Identifier: Apache-2.0
// Every type with every operator that it takes, against plain arithmetic in the order of ranks.
#include <complex>

#include "gdrx/communicator.hpp"
#include "tests/comm/elements.hpp"
#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

gdrxDataType_t c_of(DataType type) { return static_cast<gdrxDataType_t>(type); }
gdrxRedOp_t c_of(ReduceOp op) { return static_cast<gdrxRedOp_t>(op); }

struct Case {
  DataType type{};
  ReduceOp op{};
};

std::vector<Case> valid_cases() {
  std::vector<Case> cases;
  for (std::size_t type = 0; type < kDataTypeCount; ++type) {
    for (std::size_t op = 0; op < kNamedOpCount; ++op) {
      const Case one{static_cast<DataType>(type), static_cast<ReduceOp>(op)};
      if (takes(one.type, one.op)) cases.push_back(one);
    }
  }
  return cases;
}

class EveryType : public testing::TestWithParam<int> {};

TEST_P(EveryType, AndOperatorGivesWhatPlainArithmeticGives) {
  const int ranks = GetParam();
  const World world(ranks);
  world.run([&](int rank, gdrxComm_t comm) {
    for (const Case& one : valid_cases()) {
      const std::size_t size = size_of(one.type);
      for (const std::size_t count : {std::size_t{1}, std::size_t{1009}}) {
        const std::size_t whole = count * static_cast<std::size_t>(ranks);
        const auto in = inputs(one.type, one.op, rank, whole);
        const auto all = expected(one.type, one.op, ranks, whole);
        const auto equal = [&](const std::vector<std::byte>& out, std::size_t begin) {
          return same(one.type, out.data(), all.data() + begin * size, count);
        };
        const auto what = [&] {
          return std::string(to_string(one.op)) + " of " + std::to_string(count) + " " +
                 std::string(to_string(one.type)) + ": " + gdrxGetLastError(comm);
        };
        std::vector<std::byte> out(count * size, std::byte{0});
        ASSERT_EQ(gdrxAllReduce(in.data(), out.data(), count, c_of(one.type), c_of(one.op), comm,
                                nullptr, nullptr),
                  gdrxSuccess)
            << what();
        EXPECT_TRUE(equal(out, 0)) << "allReduce " << what();
        out.assign(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count * size));
        ASSERT_EQ(gdrxAllReduce(out.data(), out.data(), count, c_of(one.type), c_of(one.op), comm,
                                nullptr, nullptr),
                  gdrxSuccess);
        EXPECT_TRUE(equal(out, 0)) << "allReduce in place " << what();
        out.assign(count * size, std::byte{0});
        ASSERT_EQ(gdrxReduceScatter(in.data(), out.data(), count, c_of(one.type), c_of(one.op),
                                    comm, nullptr, nullptr),
                  gdrxSuccess)
            << what();
        EXPECT_TRUE(equal(out, count * static_cast<std::size_t>(rank)))
            << "reduceScatter " << what();
        out.assign(count * size, std::byte{0});
        ASSERT_EQ(gdrxReduce(in.data(), out.data(), count, c_of(one.type), c_of(one.op), ranks - 1,
                             comm, nullptr, nullptr),
                  gdrxSuccess)
            << what();
        EXPECT_TRUE(rank != ranks - 1 || equal(out, 0)) << "reduce " << what();
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryType, testing::Values(1, 2, 3, 8));

TEST(EveryTypeMoves, FromEachRankToEachRank) {
  constexpr int kRanks = 3;
  constexpr std::size_t kCount = 1003;
  const World world(kRanks);
  world.run([&](int rank, gdrxComm_t comm) {
    for (std::size_t i = 0; i < kDataTypeCount; ++i) {
      const auto type = static_cast<DataType>(i);
      const auto mine = inputs(type, ReduceOp::sum, rank, kCount);
      std::vector<std::byte> all(kRanks * mine.size());
      ASSERT_EQ(gdrxAllGather(mine.data(), all.data(), kCount, c_of(type), comm, nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      std::vector<std::byte> expected;
      for (int from = 0; from < kRanks; ++from) {
        const auto block = inputs(type, ReduceOp::sum, from, kCount);
        expected.insert(expected.end(), block.begin(), block.end());
      }
      EXPECT_EQ(all, expected) << to_string(type);
    }
  });
}

TEST(Operator, ThatATypeDoesNotTakeIsRefusedWithThoseThatItTakes) {
  const World world(1);
  gdrxComm_t comm = world[0];
  int refused = 0;
  for (std::size_t type = 0; type < kDataTypeCount; ++type) {
    for (std::size_t op = 0; op < kNamedOpCount; ++op) {
      const Case one{static_cast<DataType>(type), static_cast<ReduceOp>(op)};
      if (takes(one.type, one.op)) continue;
      ++refused;
      alignas(16) std::array<std::byte, 64> data{};
      for (const gdrxResult_t result :
           {gdrxAllReduce(data.data(), data.data(), 1, c_of(one.type), c_of(one.op), comm, nullptr,
                          nullptr),
            gdrxReduce(data.data(), data.data(), 1, c_of(one.type), c_of(one.op), 0, comm, nullptr,
                       nullptr),
            gdrxReduceScatter(data.data(), data.data(), 1, c_of(one.type), c_of(one.op), comm,
                              nullptr, nullptr)}) {
        EXPECT_EQ(result, gdrxInvalidArgument);
      }
      const std::string said = gdrxGetLastError(comm);
      const std::string due = "there is no " + std::string(to_string(one.op)) + " of " +
                              std::string(to_string(one.type)) + ", which takes " +
                              operators_of(one.type);
      EXPECT_NE(said.find(due), std::string::npos) << said;
    }
  }
  EXPECT_GT(refused, 150);
}

TEST(TypeOf, KnowsTheTypesOfTheLanguage) {
  static_assert(api::TypeOf<std::int16_t>::value == gdrxInt16);
  static_assert(api::TypeOf<std::uint16_t>::value == gdrxUint16);
  static_assert(api::TypeOf<bool>::value == gdrxBool);
  static_assert(api::TypeOf<std::byte>::value == gdrxByte);
  static_assert(api::TypeOf<long double>::value == gdrxLongDouble);
  static_assert(api::TypeOf<std::complex<float>>::value == gdrxComplex64);
  static_assert(api::TypeOf<std::complex<double>>::value == gdrxComplex128);
  auto comms = api::Communicator::all(1);
  std::complex<double> value(1, 2);
  comms[0].all_reduce(std::span(&value, 1), gdrxProd);
  EXPECT_EQ(value, std::complex<double>(1, 2));
}

}  // namespace
}  // namespace gdrx::test
