// SPDX-License-Identifier: Apache-2.0
// What the kernels compute, on an emulated GPU. tests/gpu asks the same of real ones, and more.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "mpi-tests/data.hpp"
#include "tests/emulated/ranks.hpp"
#include "tests/gpu/plan_sums.hpp"

namespace gdrx::emulated {
namespace {

using gpu::Kernel;
using gpu::Shape;
using Bytes = std::vector<std::byte>;

// Small grids: each of their threads is one of the CPU's.
std::vector<Shape> shapes(int ranks, std::uint64_t bytes) {
  std::vector<Shape> all;
  for (const int unroll : {1, 2}) {
    for (const Shape& shape : {Shape{Kernel::one_shot, 2, 32, 1, false, false},
                               Shape{Kernel::one_shot, 2, 32, unroll, false, true},
                               Shape{Kernel::two_shot, 2, 64, unroll, false, false},
                               Shape{Kernel::two_shot, 2, 32, unroll, true, false},
                               Shape{Kernel::ring, 2, 32, unroll, true, false},
                               Shape{Kernel::tree, 2, 32, unroll, true, false}}) {
      if (unroll > 1 && (shape.unroll == 1 || ranks > 8)) continue;
      const bool fits = gpu::fits(shape, ranks, gpu::packs_of(bytes));
      EXPECT_TRUE(fits || !shape.whole || unroll > 1) << "in tiles they carry any size";
      if (fits) all.push_back(shape);
    }
  }
  return all;
}

constexpr std::size_t kGuard = 64;

void check(Ranks& ranks, const Shape& shape, DataType type, ReduceOp op, std::uint64_t count,
           std::size_t shift = 0, bool in_place = false) {
  const std::uint64_t bytes = count * size_of(type);
  const bench::DataKey key{type, op, ranks.size(), count + bytes};
  std::vector<Bytes> in, out;
  for (int r = 0; r < ranks.size(); ++r) {
    in.emplace_back(shift + bytes);
    bench::fill_input(key, r, in.back().data() + shift, count);
    out.emplace_back(shift + bytes + kGuard, std::byte{0xa5});
    if (in_place) std::memcpy(out.back().data() + shift, in.back().data() + shift, bytes);
  }
  for (int r = 0; r < ranks.size(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    ranks.launch(r, shape, type, op, (in_place ? out : in)[at].data() + shift,
                 out[at].data() + shift, bytes);
  }
  ranks.finish();
  Bytes expected(bytes);
  bench::fill_expected(key, expected.data(), 0, count);
  for (int r = 0; r < ranks.size(); ++r) {
    const Bytes& got = out[static_cast<std::size_t>(r)];
    EXPECT_EQ(bench::count_wrong(got.data() + shift, expected.data(), size_of(type), count), 0U)
        << to_string(type) << ' ' << to_string(op) << ", " << count << " elements, rank " << r
        << " of " << ranks.size() << ", kernel " << static_cast<int>(shape.kernel) << ", unroll "
        << shape.unroll << (shape.whole || shape.tiled ? ", tiles" : "");
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (i >= shift && i < shift + bytes) continue;
      ASSERT_EQ(got[i], std::byte{0xa5}) << "written outside, at " << i;
    }
    EXPECT_EQ(ranks.report(r).failed, 0U);
  }
}

TEST(EmulatedKernels, EveryRankCountIsRight) {
#ifdef __SANITIZE_ADDRESS__
  constexpr int kMost = 5;  // threads are dear there
#else
  constexpr int kMost = 16;
#endif
  for (const int n : {2, 3, 5, 8, 16}) {
    if (n > kMost) continue;
    Ranks ranks(n);
    const auto counts = n < 8 ? std::vector<std::uint64_t>{1, 1021, 9001}
                              : std::vector<std::uint64_t>{n == 8 ? 1021U : 333U};
    for (const std::uint64_t count : counts) {
      for (const Shape& shape : shapes(n, count * 4)) {
        check(ranks, shape, DataType::uint32, ReduceOp::sum, count);
      }
    }
    EXPECT_EQ(ranks.full_slots(), 0U) << n << " ranks";
  }
}

TEST(EmulatedKernels, EveryTypeAndOperatorIsRight) {
  Ranks ranks(3);
  for (std::size_t type = 0; type < kGpuTypeCount; ++type) {
    for (std::size_t op = 0; op < kGpuOpCount; ++op) {
      for (const Shape& shape : shapes(3, 700)) {
        check(ranks, shape, static_cast<DataType>(type), static_cast<ReduceOp>(op), 83);
      }
    }
  }
  EXPECT_EQ(ranks.full_slots(), 0U);
}

TEST(EmulatedKernels, AnyAlignmentAndPlaceIsRight) {
  Ranks ranks(4);
  for (const std::size_t shift : {1, 4, 16}) {
    for (const Shape& shape : shapes(4, 3001)) {
      check(ranks, shape, DataType::uint8, ReduceOp::max, 3001, shift);
      check(ranks, shape, DataType::uint8, ReduceOp::max, 3001, shift, true);
    }
  }
  EXPECT_EQ(ranks.full_slots(), 0U);
}

// A kernel may start while its peers are in the one before: all that is known of slots holds from
// kernel to kernel, too.
TEST(EmulatedKernels, KernelsOfEveryKindFollowEachOther) {
  std::mt19937 random(7);
  for (const int n : {2, 3, 5}) {
    Ranks ranks(n);
    constexpr int kCalls = 24;
    std::vector<std::vector<std::uint32_t>> in, out, sums;
    for (int call = 0; call < kCalls; ++call) {
      const std::size_t words = 1 + random() % (call % 4 == 0 ? 20000 : 2000);
      const auto all = shapes(n, words * 4);
      const Shape shape = all[random() % all.size()];
      sums.emplace_back(words);
      for (int r = 0; r < n; ++r) {
        in.emplace_back(words);
        out.emplace_back(words);
        for (std::size_t i = 0; i < words; ++i) {
          in.back()[i] = static_cast<std::uint32_t>(random());
          sums.back()[i] += in.back()[i];
        }
        ranks.launch(r, shape, DataType::uint32, ReduceOp::sum, in.back().data(), out.back().data(),
                     words * 4);
      }
    }
    ranks.finish();
    for (std::size_t i = 0; i < out.size(); ++i) {
      EXPECT_EQ(out[i], sums[i / static_cast<std::size_t>(n)]) << "call " << i << " of " << n;
    }
    EXPECT_EQ(ranks.full_slots(), 0U);
  }
}

// What an empty slot holds, and its escape, are data like any other.
TEST(EmulatedKernels, DataThatLooksLikeAnEmptySlotArrives) {
  Ranks ranks(3);
  std::vector<gpu::Pack> in;
  for (int i = 0; i < 500; ++i) {
    in.push_back({gpu::kSentinelLow, i % 3 == 0 ? gpu::kEscapeHigh : gpu::kSentinelHigh});
  }
  for (const Shape& shape : shapes(3, in.size() * sizeof(gpu::Pack))) {
    std::vector<std::vector<gpu::Pack>> out(3, std::vector<gpu::Pack>(in.size()));
    for (int r = 0; r < 3; ++r) {
      ranks.launch(r, shape, DataType::uint64, ReduceOp::max, in.data(),
                   out[static_cast<std::size_t>(r)].data(), in.size() * sizeof(gpu::Pack));
    }
    ranks.finish();
    for (const auto& got : out) {
      EXPECT_EQ(std::memcmp(got.data(), in.data(), in.size() * sizeof(gpu::Pack)), 0);
    }
  }
  EXPECT_EQ(ranks.full_slots(), 0U);
}

// Kernels are the lowering of plans that verify() proves: they add in the plans' order, bit by bit.
TEST(EmulatedKernels, EveryKernelAddsAsItsPlanSays) {
  for (const int n : {2, 3, 4, 5, 8}) {
    Ranks ranks(n);
    // One tile, whose parts are the plans' chunks: whole packs, an equal number of each.
    const std::size_t count = static_cast<std::size_t>(n) * 2 * 4 * 4;
    for (const auto& [kernel, algorithm, by_bus] :
         {std::tuple{Kernel::one_shot, plan::Algorithm::one_shot, false},
          std::tuple{Kernel::two_shot, plan::Algorithm::two_shot, false},
          std::tuple{Kernel::ring, plan::Algorithm::ring, true},
          std::tuple{Kernel::tree, plan::Algorithm::tree, true}}) {
      const bool whole = kernel == Kernel::ring || kernel == Kernel::tree;
      const Shape shape{kernel, 2, 32, 1, whole, false};
      std::vector<std::vector<float>> in, out;
      for (int r = 0; r < n; ++r) {
        in.push_back(gpu::noise(r, count));
        out.emplace_back(count);
      }
      for (int r = 0; r < n; ++r) {
        const auto at = static_cast<std::size_t>(r);
        ranks.launch(r, shape, DataType::float32, ReduceOp::sum, in[at].data(), out[at].data(),
                     count * sizeof(float));
      }
      ranks.finish();
      const auto expected =
          gpu::sums_by_plan(algorithm, by_bus ? gpu::in_order(in, ranks.positions()) : in);
      for (const auto& got : out) {
        EXPECT_EQ(std::memcmp(got.data(), expected.data(), count * sizeof(float)), 0)
            << to_string(algorithm) << " of " << n;
      }
    }
  }
}

using Words = std::vector<std::vector<std::uint32_t>>;

TEST(EmulatedKernels, DirectIsRightAndRefusesOtherPlaces) {
  for (const int n : {2, 3, 8}) {
    const auto ranks_of = static_cast<std::size_t>(n);
    const Shape shape{Kernel::direct, 2, 32, gpu::unroll_of_blocks(n), true, false};
    Ranks ranks(n);
    Words in(ranks_of, std::vector<std::uint32_t>(3001)), out = in;
    for (std::size_t r = 0; r < ranks_of; ++r) {
      std::fill(in[r].begin(), in[r].end(), static_cast<std::uint32_t>(r + 5));
    }
    const auto sum = static_cast<std::uint32_t>(5 * n + n * (n - 1) / 2);
    ranks.launch_direct(shape, DataType::uint32, ReduceOp::sum, in, out,
                        std::vector<std::uint64_t>(ranks_of, 77));
    ranks.finish();
    EXPECT_EQ(out, Words(ranks_of, std::vector<std::uint32_t>(3001, sum))) << n << " ranks";
    std::vector<std::uint64_t> places(ranks_of, 77);
    places.back() = 78;
    Words untouched(ranks_of, std::vector<std::uint32_t>(3001, 1));
    Ranks divided(n);
    divided.launch_direct(shape, DataType::uint32, ReduceOp::sum, in, untouched, places);
    divided.finish();
    EXPECT_EQ(untouched, Words(ranks_of, std::vector<std::uint32_t>(3001, 1)));
    EXPECT_EQ(divided.report(n - 1).failed, 1U);
    EXPECT_EQ(divided.report(n - 1).stage, static_cast<std::uint32_t>(gpu::Stage::disagreeing));
  }
}

TEST(EmulatedKernels, ReduceScatterAndAllGatherAreRight) {
  for (const int n : {2, 3, 8}) {
    Ranks ranks(n);
    for (const bool whole : {false, true}) {
      const std::size_t words = whole ? 3000 : 200;
      const Shape shape{Kernel::reduce_scatter, 2, 32, gpu::unroll_of_blocks(n), whole, false};
      if (!fits(shape, n, gpu::packs_of(words * 4))) continue;
      const auto parts = static_cast<std::size_t>(n);
      std::vector<std::vector<std::uint32_t>> in, part, all;
      for (std::size_t r = 0; r < parts; ++r) {
        in.emplace_back();
        for (std::size_t i = 0; i < words * parts; ++i) {
          in.back().push_back(static_cast<std::uint32_t>(i * 7 + r));
        }
        part.emplace_back(words);
        all.emplace_back(words * parts);
      }
      Shape gather = shape;
      gather.kernel = Kernel::all_gather;
      for (int r = 0; r < n; ++r) {
        const auto at = static_cast<std::size_t>(r);
        ranks.launch(r, shape, DataType::uint32, ReduceOp::sum, in[at].data(), part[at].data(),
                     words * 4 * parts, words * 4);
        ranks.launch(r, gather, DataType::uint32, ReduceOp::sum, part[at].data(), all[at].data(),
                     words * 4 * parts, words * 4);
      }
      ranks.finish();
      for (const auto& got : all) {
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
          wrong += got[i] != static_cast<std::uint32_t>(i * 7 * parts + parts * (parts - 1) / 2);
        }
        EXPECT_EQ(wrong, 0U) << n << " ranks" << (whole ? ", tiles" : "");
      }
      EXPECT_EQ(ranks.full_slots(), 0U);
    }
  }
}

}  // namespace
}  // namespace gdrx::emulated
