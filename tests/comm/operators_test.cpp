// SPDX-License-Identifier: Apache-2.0
// Operators that a program makes.
#include <algorithm>
#include <tuple>

#include "gdrx/types.hpp"
#include "tests/comm/elements.hpp"
#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

// A 2 x 2 matrix of 16-bit numbers in a uint64: its product is associative and not commutative.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  const auto of = [](std::uint64_t matrix, int place) { return matrix >> 16 * place & 0xffff; };
  std::uint64_t result = 0;
  for (int row = 0; row < 2; ++row) {
    for (int column = 0; column < 2; ++column) {
      const std::uint64_t sum =
          of(a, 2 * row) * of(b, column) + of(a, 2 * row + 1) * of(b, 2 + column);
      result |= (sum & 0xffff) << 16 * (2 * row + column);
    }
  }
  return result;
}

void multiply(const void* in, void* inout, std::size_t count, gdrxDataType_t type, void* user) {
  EXPECT_EQ(type, gdrxUint64);
  EXPECT_EQ(*static_cast<int*>(user), 42);
  const auto* left = static_cast<const std::uint64_t*>(in);
  auto* right = static_cast<std::uint64_t*>(inout);
  for (std::size_t i = 0; i < count; ++i) right[i] = product(left[i], right[i]);
}

void add(const void* in, void* inout, std::size_t count, gdrxDataType_t, void*) {
  const auto* left = static_cast<const std::uint64_t*>(in);
  auto* right = static_cast<std::uint64_t*>(inout);
  for (std::size_t i = 0; i < count; ++i) right[i] += left[i];
}

std::vector<std::uint64_t> matrices(int rank, std::size_t count) {
  std::vector<std::uint64_t> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] =
        (i + 1) * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(rank) * 0xD6E8FEB86659FDU;
  }
  return values;
}

std::vector<std::uint64_t> folded(int ranks, std::size_t count,
                                  std::uint64_t (*op)(std::uint64_t, std::uint64_t)) {
  std::vector<std::uint64_t> result = matrices(0, count);
  for (int rank = 1; rank < ranks; ++rank) {
    const auto next = matrices(rank, count);
    for (std::size_t i = 0; i < count; ++i) result[i] = op(result[i], next[i]);
  }
  return result;
}

struct Way {
  const char* algorithm;
  const char* transport;
};

class UserOperator : public testing::TestWithParam<std::tuple<int, Way>> {
 protected:
  /// AllReduce in place and not, reduceScatter, and reduce to each root.
  static void check(gdrxRedOpFunction_t function, int commutative,
                    std::uint64_t (*op)(std::uint64_t, std::uint64_t)) {
    const auto [ranks, way] = GetParam();
    const World world(ranks, with(way.algorithm, way.transport));
    world.run([&, ranks = ranks](int rank, gdrxComm_t comm) {
      gdrxRedOp_t made{};
      int user = 42;
      ASSERT_EQ(gdrxRedOpCreate(&made, function, commutative, &user, comm), gdrxSuccess);
      const auto ok = [&](gdrxResult_t result) {
        EXPECT_EQ(result, gdrxSuccess) << gdrxGetLastError(comm);
      };
      for (const std::size_t count : {1U, 1009U, 20'011U}) {
        const std::size_t whole = count * static_cast<std::size_t>(ranks);
        const auto total = folded(ranks, whole, op);
        const auto in = matrices(rank, whole);
        std::vector<std::uint64_t> out(count);
        const auto equal = [&](std::size_t begin) {
          return std::equal(out.begin(), out.end(),
                            total.begin() + static_cast<std::ptrdiff_t>(begin));
        };
        ok(gdrxAllReduce(in.data(), out.data(), count, gdrxUint64, made, comm, nullptr, nullptr));
        EXPECT_TRUE(equal(0)) << "allReduce of " << count;
        out.assign(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count));
        ok(gdrxAllReduce(out.data(), out.data(), count, gdrxUint64, made, comm, nullptr, nullptr));
        EXPECT_TRUE(equal(0)) << "allReduce in place of " << count;
        ok(gdrxReduceScatter(in.data(), out.data(), count, gdrxUint64, made, comm, nullptr,
                             nullptr));
        EXPECT_TRUE(equal(count * static_cast<std::size_t>(rank))) << "reduceScatter of " << count;
        for (int root = 0; root < ranks; ++root) {
          ok(gdrxReduce(in.data(), out.data(), count, gdrxUint64, made, root, comm, nullptr,
                        nullptr));
          EXPECT_TRUE(rank != root || equal(0)) << "reduce of " << count << " to " << root;
        }
      }
      const auto before = matrices(rank, 1009);
      std::vector<std::uint64_t> sums(before.size());
      ok(gdrxScan(before.data(), sums.data(), sums.size(), gdrxUint64, made, comm, nullptr,
                  nullptr));
      EXPECT_EQ(sums, folded(rank + 1, sums.size(), op)) << "scan";
      ok(gdrxExscan(before.data(), sums.data(), sums.size(), gdrxUint64, made, comm, nullptr,
                    nullptr));
      EXPECT_EQ(sums, folded(std::max(rank, 1), sums.size(), op)) << "exscan";
      ok(gdrxRedOpDestroy(made, comm));
    });
  }
};

TEST_P(UserOperator, ThatDoesNotCommuteIsAppliedInTheOrderOfRanks) { check(multiply, 0, product); }

TEST_P(UserOperator, ThatCommutesIsRightInEveryOrder) {
  check(add, 1, [](std::uint64_t a, std::uint64_t b) { return a + b; });
}

INSTANTIATE_TEST_SUITE_P(
    Ways, UserOperator,
    testing::Combine(testing::Values(1, 2, 3, 8),
                     testing::Values(Way{"auto", nullptr}, Way{"one-shot", nullptr},
                                     Way{"two-shot", nullptr}, Way{"ring", "ucx"},
                                     Way{"tree", "ucx"}, Way{"halving-doubling", "ucx"},
                                     Way{"one-shot", "ucx"}, Way{"two-shot", "ucx"})),
    [](const auto& info) {
      const Way way = std::get<1>(info.param);
      std::string name = std::to_string(std::get<0>(info.param)) + "_" + way.algorithm + "_" +
                         (way.transport == nullptr ? "shm" : way.transport);
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(PreMulSum, IsTheSumOfWhatEachRankHasScaledByHand) {
  constexpr int kRanks = 3;
  constexpr std::size_t kCount = 2051;
  const World world(kRanks);
  world.run([&](int rank, gdrxComm_t comm) {
    for (std::size_t i = 0; i < kDataTypeCount; ++i) {
      const auto type = static_cast<DataType>(i);
      const auto c_type = static_cast<gdrxDataType_t>(i);
      if (!takes(type, ReduceOp::premul_sum)) continue;
      std::vector<std::byte> scalar(size_of(type));
      const Value own{static_cast<long double>(rank + 1), rank == 1 ? 1.0L : 0.0L};
      put(type, own, scalar.data());
      std::vector<std::byte> scaled(kRanks * kCount * size_of(type));
      for (std::size_t k = 0; k < kRanks * kCount; ++k) {
        Value factor = own;
        if (class_of(type) != TypeClass::complex) factor.second = 0;
        put(type,
            combine(ReduceOp::prod, class_of(type), factor, input_of(type, ReduceOp::sum, rank, k)),
            scaled.data() + k * size_of(type));
      }
      const auto in = inputs(type, ReduceOp::sum, rank, kRanks * kCount);
      gdrxRedOp_t op{};
      ASSERT_EQ(gdrxRedOpCreatePreMulSum(&op, scalar.data(), c_type, comm), gdrxSuccess);
      std::fill(scalar.begin(), scalar.end(), std::byte{0});  // it was read
      const std::size_t bytes = kCount * size_of(type);
      std::vector<std::byte> out(bytes), same(bytes, std::byte{1});
      const auto ok = [&](gdrxResult_t result) {
        EXPECT_EQ(result, gdrxSuccess) << gdrxGetLastError(comm);
      };
      const auto expect_equal = [&](const char* what) {
        EXPECT_EQ(out, same) << what << " of " << to_string(type);
      };
      const auto* hand = scaled.data();
      ok(gdrxAllReduce(hand, same.data(), kCount, c_type, gdrxSum, comm, nullptr, nullptr));
      ok(gdrxAllReduce(in.data(), out.data(), kCount, c_type, op, comm, nullptr, nullptr));
      expect_equal("allReduce");
      std::copy_n(in.begin(), bytes, out.begin());
      ok(gdrxAllReduce(out.data(), out.data(), kCount, c_type, op, comm, nullptr, nullptr));
      expect_equal("allReduce in place");
      ok(gdrxReduceScatter(hand, same.data(), kCount, c_type, gdrxSum, comm, nullptr, nullptr));
      ok(gdrxReduceScatter(in.data(), out.data(), kCount, c_type, op, comm, nullptr, nullptr));
      expect_equal("reduceScatter");
      ok(gdrxReduce(hand, same.data(), kCount, c_type, gdrxSum, 1, comm, nullptr, nullptr));
      ok(gdrxReduce(in.data(), out.data(), kCount, c_type, op, 1, comm, nullptr, nullptr));
      expect_equal("reduce");
      ok(gdrxExscan(hand, same.data(), kCount, c_type, gdrxSum, comm, nullptr, nullptr));
      ok(gdrxExscan(in.data(), out.data(), kCount, c_type, op, comm, nullptr, nullptr));
      EXPECT_TRUE(rank == 0 || out == same) << "exscan of " << to_string(type);
      EXPECT_EQ(in, inputs(type, ReduceOp::sum, rank, kRanks * kCount)) << "an input was changed";
      ok(gdrxRedOpDestroy(op, comm));
    }
  });
}

class MadeOperator : public testing::Test {
 protected:
  void expect_refused(gdrxResult_t result, gdrxComm_t comm, const std::string& words) {
    EXPECT_EQ(result, gdrxInvalidArgument);
    EXPECT_NE(std::string(gdrxGetLastError(comm)).find(words), std::string::npos)
        << gdrxGetLastError(comm);
  }
  gdrxResult_t call(gdrxRedOp_t op, gdrxComm_t comm, gdrxDataType_t type = gdrxFloat64) {
    return gdrxAllReduce(&value_, &value_, 1, type, op, comm, nullptr, nullptr);
  }
  double value_ = 1;
  World world_{1};
  World another_{1};
};

TEST_F(MadeOperator, OfAnotherCommunicatorOrDestroyedIsRefused) {
  gdrxRedOp_t op{};
  ASSERT_EQ(gdrxRedOpCreate(&op, add, 1, nullptr, world_[0]), gdrxSuccess);
  EXPECT_EQ(call(op, world_[0]), gdrxSuccess);
  expect_refused(call(op, another_[0]), another_[0], "is no gdrxRedOp_t of this communicator");
  expect_refused(gdrxRedOpDestroy(op, another_[0]), another_[0], "no operator");
  EXPECT_EQ(gdrxRedOpDestroy(op, world_[0]), gdrxSuccess);
  expect_refused(call(op, world_[0]), world_[0], "is no gdrxRedOp_t of this communicator");
  expect_refused(gdrxRedOpDestroy(op, world_[0]), world_[0], "no operator");
  expect_refused(gdrxRedOpDestroy(gdrxSum, world_[0]), world_[0], "no operator");
}

TEST_F(MadeOperator, OfAScalarTakesItsTypeAlone) {
  gdrxRedOp_t op{};
  const float half = 0.5F;
  ASSERT_EQ(gdrxRedOpCreatePreMulSum(&op, &half, gdrxFloat32, world_[0]), gdrxSuccess);
  expect_refused(call(op, world_[0]), world_[0], "scalar of float and the call is of double");
  expect_refused(gdrxRedOpCreatePreMulSum(&op, &half, gdrxBool, world_[0]), world_[0],
                 "there is no premulsum of bool");
  expect_refused(gdrxRedOpCreatePreMulSum(&op, nullptr, gdrxFloat32, world_[0]), world_[0], "NULL");
  expect_refused(gdrxRedOpCreate(&op, nullptr, 1, nullptr, world_[0]), world_[0], "NULL");
}

TEST_F(MadeOperator, MayBeDestroyedWhileAnOperationHasIt) {
  World world(2);
  world.run([](int rank, gdrxComm_t comm) {
    gdrxRedOp_t op{};
    ASSERT_EQ(gdrxRedOpCreate(&op, add, 1, nullptr, comm), gdrxSuccess);
    std::uint64_t value = static_cast<std::uint64_t>(rank) + 1;
    gdrxRequest_t request = nullptr;
    ASSERT_EQ(gdrxAllReduce(&value, &value, 1, gdrxUint64, op, comm, nullptr, &request),
              gdrxSuccess);
    EXPECT_EQ(gdrxRedOpDestroy(op, comm), gdrxSuccess);
    EXPECT_EQ(gdrxWait(&request), gdrxSuccess) << gdrxGetLastError(comm);
    EXPECT_EQ(value, 3u);
  });
}

// What rank 0 and rank 1 call, and a word of each that both are told.
void expect_named(const std::function<gdrxRedOp_t(int, gdrxComm_t)>& operator_of,
                  const std::array<std::string, 2>& words) {
  for (const char* transport : {static_cast<const char*>(nullptr), "ucx"}) {
    const World world(2, with(nullptr, transport));
    world.run([&](int rank, gdrxComm_t comm) {
      std::uint64_t value = 1;
      EXPECT_EQ(gdrxAllReduce(&value, &value, 1, gdrxUint64, operator_of(rank, comm), comm, nullptr,
                              nullptr),
                gdrxMismatch);
      const std::string said = gdrxGetLastError(comm);
      for (const std::string& word : words) {
        EXPECT_NE(said.find(word), std::string::npos) << said;
      }
    });
  }
}

TEST(Mismatch, OfTwoOperatorsOfAProgramIsNamedWithBoth) {
  expect_named(
      [](int rank, gdrxComm_t comm) {
        std::array<gdrxRedOp_t, 2> ops{};
        for (gdrxRedOp_t& op : ops) {
          EXPECT_EQ(gdrxRedOpCreate(&op, add, 1, nullptr, comm), gdrxSuccess);
        }
        return ops[static_cast<std::size_t>(rank)];
      },
      {"user operator 1", "user operator 2"});
}

TEST(Mismatch, OfAScaledSumAndASumIsNamedWithBoth) {
  expect_named(
      [](int rank, gdrxComm_t comm) {
        gdrxRedOp_t op = gdrxSum;
        const std::uint64_t two = 2;
        if (rank == 1) {
          EXPECT_EQ(gdrxRedOpCreatePreMulSum(&op, &two, gdrxUint64, comm), gdrxSuccess);
        }
        return op;
      },
      {", sum", ", premulsum"});
}

}  // namespace
}  // namespace gdrx::test
