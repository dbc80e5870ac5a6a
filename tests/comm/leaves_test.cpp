// SPDX-License-Identifier: Apache-2.0
// gdrxAllReduceLeaves: the same bits, however many ranks hold the leaves.
#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

using Bytes = std::vector<unsigned char>;
using Counts = std::vector<std::size_t>;

/// Of a leaf, alike whoever holds it: values whose sums are rounded, of very unlike sizes.
template <class Value>
std::vector<Value> leaf(int number, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(number) * 7919 + 1);
  std::vector<Value> values(count);
  for (Value& value : values) {
    const double unit = static_cast<double>(random()) / 4294967296.0 - 0.5;
    value = static_cast<Value>(std::ldexp(unit, static_cast<int>(random() % 24)));
  }
  return values;
}

/// The upper half of a float, as bfloat16 has it.
std::vector<std::uint16_t> narrow_leaf(int number, std::size_t count) {
  std::vector<std::uint16_t> out;
  for (const float value : leaf<float>(number, count)) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    out.push_back(static_cast<std::uint16_t>(bits >> 16));
  }
  return out;
}

struct Kind {
  gdrxDataType_t type;
  gdrxRedOp_t op;
};

Bytes leaf_of(const Kind& kind, int number, std::size_t count) {
  const auto bytes = [](const auto& values) {
    const auto* const data = reinterpret_cast<const unsigned char*>(values.data());
    return Bytes(data, data + values.size() * sizeof values[0]);
  };
  if (kind.type == gdrxFloat64) return bytes(leaf<double>(number, count));
  if (kind.type == gdrxBfloat16) return bytes(narrow_leaf(number, count));
  return bytes(leaf<float>(number, count));
}

/// The result on each rank, which has to be the same on all; `counts`: leaves of each.
Bytes reduced(const World& world, const Kind& kind, const Counts& counts, std::size_t count) {
  const std::size_t element = kind.type == gdrxFloat64 ? 8 : kind.type == gdrxBfloat16 ? 2 : 4;
  std::vector<Bytes> results(counts.size(), Bytes(count * element));
  world.run([&](int rank, gdrxComm_t comm) {
    const auto self = static_cast<std::size_t>(rank);
    int first = 0;
    for (std::size_t before = 0; before < self; ++before) first += static_cast<int>(counts[before]);
    Bytes in;
    for (std::size_t i = 0; i < counts[self]; ++i) {
      const Bytes one = leaf_of(kind, first + static_cast<int>(i), count);
      in.insert(in.end(), one.begin(), one.end());
    }
    ASSERT_EQ(gdrxAllReduceLeaves(in.data(), counts.data(), results[self].data(), count, kind.type,
                                  kind.op, comm, nullptr, nullptr),
              gdrxSuccess)
        << gdrxGetLastError(comm);
  });
  for (const Bytes& result : results) EXPECT_EQ(result, results[0]);
  return results[0];
}

constexpr int kLeaves = 48;
constexpr Kind kKinds[] = {{gdrxFloat32, gdrxSum},
                           {gdrxFloat64, gdrxAvg},
                           {gdrxBfloat16, gdrxSum},
                           {gdrxBfloat16, gdrxAvg},
                           {gdrxFloat32, gdrxProd}};

class LeavesOf : public testing::TestWithParam<const char*> {};

TEST_P(LeavesOf, AnyNumberOfRanksGiveTheSameBits) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1009}, std::size_t{70'001}}) {
    std::vector<Bytes> of_one_rank;
    for (const int ranks : {1, 2, 3, 4, 6, 8, 16}) {
      const World world(ranks, with(nullptr, GetParam()));
      const Counts counts(static_cast<std::size_t>(ranks),
                          static_cast<std::size_t>(kLeaves / ranks));
      for (std::size_t k = 0; k < std::size(kKinds); ++k) {
        const Bytes result = reduced(world, kKinds[k], counts, count);
        if (ranks == 1) of_one_rank.push_back(result);
        EXPECT_EQ(result, of_one_rank[k]) << ranks << " ranks, kind " << k << ", count " << count;
      }
    }
  }
}

TEST_P(LeavesOf, UnequalRunsGiveTheSameBits) {
  const World alone(1, with(nullptr, GetParam()));
  const World world(5, with(nullptr, GetParam()));
  for (const char* const algorithm : {"one-shot", "two-shot"}) {
    const World fixed(5, with(algorithm, GetParam()));
    for (const Counts& counts :
         {Counts{10, 0, 20, 1, 17}, Counts{0, 0, 48, 0, 0}, Counts{1, 13, 13, 13, 8}}) {
      const Bytes expected = reduced(alone, kKinds[2], {kLeaves}, 4099);
      EXPECT_EQ(reduced(world, kKinds[2], counts, 4099), expected);
      EXPECT_EQ(reduced(fixed, kKinds[2], counts, 4099), expected) << algorithm;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, LeavesOf, testing::Values("auto", "ucx", "tcp"));

// Within one rank and by hand: ((0 + 1) + 2) of three leaves, each sum rounded to bfloat16.
TEST(Leaves, AreReducedAlongTheTreeThatIsPromised) {
  const World world(1);
  const auto narrow = [](float value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<std::uint16_t>(bits >> 16);
  };
  const std::vector<std::uint16_t> in{narrow(256.0F), narrow(1.0F), narrow(1.0F)};
  std::uint16_t out = 0;
  const Counts counts{3};
  ASSERT_EQ(gdrxAllReduceLeaves(in.data(), counts.data(), &out, 1, gdrxBfloat16, gdrxSum, world[0],
                                nullptr, nullptr),
            gdrxSuccess)
      << gdrxGetLastError(world[0]);
  EXPECT_EQ(out, narrow(256.0F));  // 258 if it were rounded once
}

TEST(Leaves, OfWhichEachRankHasOneAreThoseOfNoList) {
  const World world(3);
  world.run([](int rank, gdrxComm_t comm) {
    const std::vector<float> in = leaf<float>(rank, 100);
    std::vector<float> without(100), with_list(100);
    const Counts counts{1, 1, 1};
    ASSERT_EQ(gdrxAllReduceLeaves(in.data(), rank == 1 ? counts.data() : nullptr, without.data(),
                                  100, gdrxFloat32, gdrxSum, comm, nullptr, nullptr),
              gdrxSuccess)
        << gdrxGetLastError(comm);
    gdrxRequest_t request = nullptr;
    ASSERT_EQ(gdrxAllReduceLeaves(in.data(), counts.data(), with_list.data(), 100, gdrxFloat32,
                                  gdrxSum, comm, nullptr, &request),
              gdrxSuccess);
    ASSERT_EQ(gdrxWait(&request), gdrxSuccess);
    EXPECT_EQ(without, with_list);
  });
}

TEST(Leaves, WhoseListsDifferAreNamed) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  const World world(2, config);
  world.run([](int rank, gdrxComm_t comm) {
    const std::vector<float> in(300);
    std::vector<float> out(100);
    const Counts counts = rank == 0 ? Counts{2, 1} : Counts{1, 2};
    EXPECT_EQ(gdrxAllReduceLeaves(in.data(), counts.data(), out.data(), 100, gdrxFloat32, gdrxSum,
                                  comm, nullptr, nullptr),
              gdrxMismatch);
    EXPECT_NE(std::string(gdrxGetLastError(comm)).find("leaves"), std::string::npos)
        << gdrxGetLastError(comm);
  });
}

// Neither rank has a partial sum for the other.
TEST(Leaves, WhoseHoldersDifferAreNamedWithoutSharedMemoryToo) {
  for (const char* const transport : {"auto", "ucx", "tcp"}) {
    for (const char* const algorithm : {"one-shot", "two-shot"}) {
      const World world(2, with(algorithm, transport));
      world.run([](int rank, gdrxComm_t comm) {
        const std::vector<float> in(300);
        std::vector<float> out(100);
        const Counts counts = rank == 0 ? Counts{3, 0} : Counts{0, 3};
        EXPECT_EQ(gdrxAllReduceLeaves(in.data(), counts.data(), out.data(), 100, gdrxFloat32,
                                      gdrxSum, comm, nullptr, nullptr),
                  gdrxMismatch);
      });
    }
  }
}

TEST(Leaves, OfNoElementsAndOfOtherListsFollowEachOther) {
  const World world(3);
  for (const Counts& counts : {Counts{2, 2, 2}, Counts{6, 0, 0}, Counts{1, 2, 3}}) {
    EXPECT_TRUE(reduced(world, kKinds[0], counts, 0).empty());
    EXPECT_EQ(reduced(world, kKinds[2], counts, 700), reduced(world, kKinds[2], {2, 2, 2}, 700));
  }
}

void twice_left_less_right(const void* left, void* right, size_t count, gdrxDataType_t, void*) {
  for (size_t i = 0; i < count; ++i) {
    auto& value = static_cast<double*>(right)[i];
    value = 2 * static_cast<const double*>(left)[i] - value;
  }
}

TEST(Leaves, AreGivenToAnOperatorOfTheProgramsOwnWithTheirSides) {
  const World world(3);
  world.run([](int rank, gdrxComm_t comm) {
    gdrxRedOp_t op{};
    ASSERT_EQ(gdrxRedOpCreate(&op, twice_left_less_right, 0, nullptr, comm), gdrxSuccess)
        << gdrxGetLastError(comm);
    const Counts counts{1, 2, 1};
    const std::vector<std::vector<double>> leaves{{1}, {2, 3}, {4}};
    double out = 0;
    ASSERT_EQ(gdrxAllReduceLeaves(leaves[static_cast<std::size_t>(rank)].data(), counts.data(),
                                  &out, 1, gdrxFloat64, op, comm, nullptr, nullptr),
              gdrxSuccess)
        << gdrxGetLastError(comm);
    EXPECT_EQ(out, 2 * (2 * 1 - 2) - (2 * 3 - 4));
    EXPECT_EQ(gdrxRedOpDestroy(op, comm), gdrxSuccess);
  });
}

TEST(Leaves, WithBadArgumentsAreRefused) {
  const World world(2);
  world.run([](int, gdrxComm_t comm) {
    std::vector<float> data(64);
    const auto refused = [&](const Counts& counts, const float* in, float* out, const char* why) {
      EXPECT_EQ(gdrxAllReduceLeaves(in, counts.data(), out, 8, gdrxFloat32, gdrxSum, comm, nullptr,
                                    nullptr),
                gdrxInvalidArgument);
      EXPECT_NE(std::string(gdrxGetLastError(comm)).find(why), std::string::npos)
          << gdrxGetLastError(comm);
    };
    refused({0, 0}, data.data(), data.data() + 32, "0 leaves: there are 1 at least");
    refused({65'536, 1}, data.data(), data.data() + 32,
            "65537 leaves: there are 1 at least and 65536 at most");
    refused({~std::size_t{0}, 2}, data.data(), data.data() + 32,
            "65539 leaves: there are 1 at least and 65536 at most");
    refused({2, 2}, nullptr, data.data(), "sendbuff");
    refused({2, 2}, data.data(), nullptr, "recvbuff");
    refused({2, 2}, data.data(), data.data(), "overlap");
  });
}

}  // namespace
}  // namespace gdrx::test
