// SPDX-License-Identifier: Apache-2.0
// Calls that fewer blocks of an emulated GPU carry than they have, in turns.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>
#include <vector>

#include "collectives/kernels/moves.hpp"
#include "tests/emulated/grid.hpp"
#include "tests/emulated/ranks.hpp"
#include "tests/gpu/plan_sums.hpp"

namespace gdrx::emulated {
namespace {

using gpu::Kernel;
using gpu::Shape;
using Words = std::vector<std::vector<std::uint32_t>>;

constexpr int kBlocks = 4;
constexpr double kTimeout = 20;

/// Of the GPU, for each rank: 4 is the kernel that is not in turns.
const std::vector<std::vector<int>> kLaunched{{1, 1, 1}, {1, 4, 2}, {3, 1, 4},
                                              {4, 3, 1}, {2, 3, 2}, {2, 1, 3}};

class Turns : public testing::Test {
 protected:
  void SetUp() override { set_room(1); }
  void TearDown() override { set_room(0); }
};

std::vector<Shape> shapes(int ranks, std::uint64_t bytes) {
  std::vector<Shape> all;
  for (const int unroll : {1, 2, 4}) {
    for (const Shape& shape : {Shape{Kernel::one_shot, kBlocks, 32, 1, false, false},
                               Shape{Kernel::one_shot, kBlocks, 32, unroll, false, true},
                               Shape{Kernel::two_shot, kBlocks, 64, unroll, false, false},
                               Shape{Kernel::two_shot, kBlocks, 32, unroll, true, false},
                               Shape{Kernel::ring, kBlocks, 32, unroll, true, false},
                               Shape{Kernel::tree, kBlocks, 32, unroll, true, false}}) {
      if (unroll > 1 && shape.unroll == 1) continue;
      if (gpu::fits(shape, ranks, gpu::packs_of(bytes))) all.push_back(shape);
    }
  }
  return all;
}

Words inputs(int ranks, std::size_t words) {
  std::mt19937 random(static_cast<unsigned>(words));
  Words in(static_cast<std::size_t>(ranks), std::vector<std::uint32_t>(words));
  for (auto& of_rank : in) {
    for (auto& word : of_rank) word = static_cast<std::uint32_t>(random());
  }
  return in;
}

std::vector<std::uint32_t> sums(const Words& in) {
  std::vector<std::uint32_t> sum(in[0].size());
  for (const auto& one : in) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  }
  return sum;
}

void launch_as(Ranks& ranks, const std::vector<int>& launched) {
  for (int r = 0; r < ranks.size(); ++r) {
    ranks.set_launched(r, launched[static_cast<std::size_t>(r)]);
  }
}

void expect_well(const Ranks& ranks) {
  for (int r = 0; r < ranks.size(); ++r) EXPECT_EQ(ranks.report(r).failed, 0U) << "rank " << r;
  EXPECT_EQ(ranks.full_slots(), 0U);
}

TEST_F(Turns, GridsOfAnySizesGoOnWhereOneBlockHasRoom) {
  for (const int n : {2, 3}) {
    for (const std::size_t words : {500U, 9001U}) {
      const Words in = inputs(n, words);
      Ranks ranks(n, 2, kTimeout);
      for (const auto& launched : kLaunched) {
        launch_as(ranks, launched);
        for (const Shape& shape : shapes(n, words * 4)) {
          Words out(in.size(), std::vector<std::uint32_t>(words));
          for (int r = 0; r < n; ++r) {
            const auto at = static_cast<std::size_t>(r);
            ranks.launch(r, shape, DataType::uint32, ReduceOp::sum, in[at].data(), out[at].data(),
                         words * 4);
          }
          ranks.finish();
          EXPECT_EQ(out, Words(in.size(), sums(in)))
              << n << " ranks, " << words << " words, kernel " << static_cast<int>(shape.kernel)
              << ", unroll " << shape.unroll << ", blocks " << launched[0] << ", " << launched[1];
          if (ranks.report(0).failed != 0) return;
        }
      }
      expect_well(ranks);
    }
  }
}

TEST_F(Turns, ReduceScatterAndAllGatherGoOn) {
  for (const int n : {2, 3}) {
    const auto parts = static_cast<std::size_t>(n);
    for (const bool whole : {false, true}) {
      const std::size_t words = whole ? 6000 : 300;
      const Shape shape{Kernel::reduce_scatter,   kBlocks, 32,
                        gpu::unroll_of_blocks(n), whole,   false};
      ASSERT_TRUE(gpu::fits(shape, n, gpu::packs_of(words * 4)));
      Shape gather = shape;
      gather.kernel = Kernel::all_gather;
      Ranks ranks(n, 2, kTimeout);
      for (const auto& launched : kLaunched) {
        launch_as(ranks, launched);
        const Words in = inputs(n, words * parts);
        Words part(parts, std::vector<std::uint32_t>(words));
        Words all(parts, std::vector<std::uint32_t>(words * parts));
        for (int r = 0; r < n; ++r) {
          const auto at = static_cast<std::size_t>(r);
          ranks.launch(r, shape, DataType::uint32, ReduceOp::sum, in[at].data(), part[at].data(),
                       words * 4 * parts, words * 4);
          ranks.launch(r, gather, DataType::uint32, ReduceOp::sum, part[at].data(), all[at].data(),
                       words * 4 * parts, words * 4);
        }
        ranks.finish();
        EXPECT_EQ(all, Words(parts, sums(in))) << n << " ranks" << (whole ? ", tiles" : "");
      }
      expect_well(ranks);
    }
  }
}

TEST_F(Turns, DirectGoesOn) {
  for (const int n : {2, 3}) {
    const Shape shape{Kernel::direct, kBlocks, 32, gpu::unroll_of_blocks(n), true, false};
    Ranks ranks(n, 2, kTimeout);
    for (const auto& launched : kLaunched) {
      launch_as(ranks, launched);
      const Words in = inputs(n, 3001);
      Words out(in.size(), std::vector<std::uint32_t>(3001));
      ranks.launch_direct(shape, DataType::uint32, ReduceOp::sum, in, out,
                          std::vector<std::uint64_t>(in.size(), 77));
      ranks.finish();
      EXPECT_EQ(out, Words(in.size(), sums(in))) << n << " ranks";
    }
    expect_well(ranks);
  }
}

// Turns are of any type: where a type has kernels of its own, the sums have the same bits.
TEST_F(Turns, ATypeThatHasKernelsOfItsOwnHasTheSameBits) {
  constexpr std::size_t kBytes = 4096;
  std::vector<std::vector<float>> in;
  for (int r = 0; r < 3; ++r) in.push_back(gpu::noise(r, kBytes / sizeof(float)));
  Ranks ranks(3, 2, kTimeout);
  const auto sums_of = [&](const Shape& shape, DataType type, ReduceOp op,
                           const std::vector<int>& launched) {
    launch_as(ranks, launched);
    Words out(3, std::vector<std::uint32_t>(kBytes / 4));
    for (int r = 0; r < 3; ++r) {
      const auto at = static_cast<std::size_t>(r);
      ranks.launch(r, shape, type, op, in[at].data(), out[at].data(), kBytes);
    }
    ranks.finish();
    return out;
  };
  for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
      for (const Shape& shape : shapes(3, kBytes)) {
        EXPECT_EQ(sums_of(shape, type, op, {1, 2, 3}), sums_of(shape, type, op, {0, 0, 0}))
            << to_string(type) << ' ' << to_string(op) << ", kernel "
            << static_cast<int>(shape.kernel);
      }
    }
  }
  expect_well(ranks);
}

// Rank 0 stalls within a call: the turns that come after the first that gave up wait no more.
TEST_F(Turns, WhoGivesUpInOneDoesNotWaitInThoseBehindIt) {
  constexpr double kShort = 0.5;
  constexpr std::size_t kWords = 9001;
  for (const Shape& shape : shapes(3, kWords * 4)) {
    Ranks ranks(3, 1, kTimeout);
    ranks.set_timeout(1, kShort);
    ranks.set_timeout(2, kShort);
    launch_as(ranks, {1, 1, 1});
    ranks.pretend_to_enter(0, shape, DataType::uint32, ReduceOp::sum, kWords * 4);
    const Words in = inputs(3, kWords);
    Words out(3, std::vector<std::uint32_t>(kWords));
    const auto begin = std::chrono::steady_clock::now();
    for (const std::size_t r : {1U, 2U}) {
      ranks.launch(static_cast<int>(r), shape, DataType::uint32, ReduceOp::sum, in[r].data(),
                   out[r].data(), kWords * 4);
    }
    ranks.finish();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(took.count(), (kBlocks - 1) * kShort) << static_cast<int>(shape.kernel);
    EXPECT_EQ(ranks.report(1).failed, 1U) << static_cast<int>(shape.kernel);
    EXPECT_EQ(ranks.report(2).failed, 1U) << static_cast<int>(shape.kernel);
  }
}

}  // namespace
}  // namespace gdrx::emulated
