// SPDX-License-Identifier: Apache-2.0
// Sums of random numbers: the same bits whatever the kernel where that is promised, and near the
// sum in double precision everywhere.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "collectives/reduce/reducer.hpp"
#include "tests/emulated/ranks.hpp"

namespace gdrx::emulated {
namespace {

using gpu::Kernel;
using gpu::Shape;
using Bytes = std::vector<std::byte>;

constexpr DataType kFloats[] = {DataType::float32,  DataType::float64,     DataType::float16,
                                DataType::bfloat16, DataType::float8_e4m3, DataType::float8_e5m2};

template <class Number>
void put(std::byte* at, double value) {
  const auto number = static_cast<Number>(static_cast<float>(value));
  std::memcpy(at, &number, sizeof number);
}
template <class Number>
double get(const std::byte* at) {
  Number number;
  std::memcpy(static_cast<void*>(&number), at, sizeof number);
  return static_cast<double>(static_cast<float>(number));
}

void store(DataType type, std::byte* at, double value) {
  if (type == DataType::float32) put<float>(at, value);
  if (type == DataType::float64) std::memcpy(at, &value, sizeof value);
  if (type == DataType::float16) put<__half>(at, value);
  if (type == DataType::bfloat16) put<__nv_bfloat16>(at, value);
  if (type == DataType::float8_e4m3) put<__nv_fp8_e4m3>(at, value);
  if (type == DataType::float8_e5m2) put<__nv_fp8_e5m2>(at, value);
}

double load(DataType type, const std::byte* at) {
  double wide = 0;
  if (type == DataType::float64) std::memcpy(&wide, at, sizeof wide);
  if (type == DataType::float32) wide = get<float>(at);
  if (type == DataType::float16) wide = get<__half>(at);
  if (type == DataType::bfloat16) wide = get<__nv_bfloat16>(at);
  if (type == DataType::float8_e4m3) wide = get<__nv_fp8_e4m3>(at);
  if (type == DataType::float8_e5m2) wide = get<__nv_fp8_e5m2>(at);
  return wide;
}

/// Half a unit in the last place of 1.
double roundoff(DataType type) {
  switch (size_of(type)) {
    case 8:
      return std::ldexp(1, -53);
    case 4:
      return std::ldexp(1, -24);
    case 2:
      return std::ldexp(1, type == DataType::float16 ? -11 : -8);
    default:
      return std::ldexp(1, type == DataType::float8_e4m3 ? -4 : -3);
  }
}

/// Of each rank, so small that no sum of sixteen overflows the narrowest type.
std::vector<Bytes> noise(int ranks, DataType type, std::size_t count) {
  std::mt19937_64 random(static_cast<std::uint64_t>(ranks) * 31 + static_cast<std::uint64_t>(type));
  std::uniform_real_distribution<double> numbers(-8, 8);
  std::vector<Bytes> all;
  for (int r = 0; r < ranks; ++r) {
    all.emplace_back(count * size_of(type));
    for (std::size_t i = 0; i < count; ++i) {
      store(type, all.back().data() + i * size_of(type), numbers(random));
    }
  }
  return all;
}

/// Every rank's output, which is the same on all.
Bytes run(Ranks& ranks, const Shape& shape, DataType type, ReduceOp op,
          const std::vector<Bytes>& in) {
  std::vector<Bytes> out(in.size(), Bytes(in[0].size(), std::byte{0xa5}));
  for (std::size_t r = 0; r < in.size(); ++r) {
    ranks.launch(static_cast<int>(r), shape, type, op, in[r].data(), out[r].data(), in[r].size());
  }
  ranks.finish();
  for (const Bytes& got : out) EXPECT_TRUE(got == out[0]) << "ranks have different bits";
  return out[0];
}

/// In one tile and in many.
std::vector<Shape> in_rank_order(int ranks, std::size_t bytes) {
  std::vector<Shape> fit;
  for (const Shape& shape : {Shape{Kernel::one_shot, 2, 64, 1, false, false},
                             Shape{Kernel::one_shot, 1, 32, 2, false, true},
                             Shape{Kernel::two_shot, 4, 96, 1, false, false},
                             Shape{Kernel::two_shot, 1, 32, 1, true, false},
                             Shape{Kernel::two_shot, 2, 32, 2, true, false}}) {
    if (gpu::fits(shape, ranks, gpu::packs_of(bytes))) fit.push_back(shape);
  }
  EXPECT_GE(fit.size(), ranks == 2 ? 4U : 3U);
  return fit;
}

TEST(EmulatedBits, KernelsInRankOrderGiveTheHostReducersInAnyShape) {
  for (const int n : {2, 3, 4, 8}) {
    Ranks ranks(n);
    for (const DataType type : kFloats) {
      const std::size_t count = 4099 / size_of(type) * static_cast<std::size_t>(n);
      const auto in = noise(n, type, count);
      std::vector<const void*> sources;
      for (const Bytes& one : in) sources.push_back(one.data());
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::prod}) {
        Bytes expected(in[0].size());
        reduce::reduce(expected.data(), sources, count, type, op, op == ReduceOp::avg ? n : 0);
        for (const Shape& shape : in_rank_order(n, expected.size())) {
          EXPECT_TRUE(run(ranks, shape, type, op, in) == expected)
              << to_string(type) << ' ' << to_string(op) << " of " << n << ", kernel "
              << static_cast<int>(shape.kernel)
              << (shape.whole || shape.tiled ? ", tiles of " : ", one tile of ") << shape.blocks
              << " blocks";
        }
      }
    }
  }
}

// In rank order narrow types are added in float and rounded once; in the ring and the trees at
// every step.
TEST(EmulatedBits, EverySumIsNearTheOneInDoublePrecision) {
  for (const int n : {2, 3, 5, 8}) {
    Ranks ranks(n);
    for (const DataType type : kFloats) {
      const std::size_t width = size_of(type), count = 2053;
      const auto in = noise(n, type, count);
      auto all = in_rank_order(n, in[0].size());
      all.push_back({Kernel::ring, 1, 32, 1, true, false});
      all.push_back({Kernel::tree, 2, 32, 1, true, false});
      for (const Shape& shape : all) {
        const bool once = shape.kernel != Kernel::ring && shape.kernel != Kernel::tree;
        if (!once && width == 1 && n > 3) continue;  // the bound says nothing any more
        const double u = roundoff(type), wide = std::min(u, roundoff(DataType::float32));
        const Bytes got = run(ranks, shape, type, ReduceOp::sum, in);
        for (std::size_t i = 0; i < count; ++i) {
          double sum = 0, size = 0;
          for (const Bytes& one : in) {
            sum += load(type, one.data() + i * width);
            size += std::fabs(load(type, one.data() + i * width));
          }
          const double steps = (n - 1) * size;
          const double bound = once ? u * std::fabs(sum) + 2 * wide * steps : 1.1 * u * steps;
          // Below the normal numbers the error is absolute.
          const double least = std::ldexp(1, type == DataType::float8_e4m3 ? -10 : -17);
          ASSERT_NEAR(load(type, got.data() + i * width), sum, bound + least)
              << to_string(type) << " of " << n << ", kernel " << static_cast<int>(shape.kernel);
        }
      }
    }
  }
}

TEST(EmulatedBits, MinusZeroInfinityAndNaNArrive) {
  constexpr int kRanks = 3;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Ranks ranks(kRanks);
  for (const DataType type :
       {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16}) {
    const std::size_t width = size_of(type), count = 600;
    std::vector<Bytes> in(kRanks, Bytes(count * width));
    for (std::size_t r = 0; r < kRanks; ++r) {
      for (std::size_t i = 0; i < count; ++i) {
        const bool mine = i / 3 % kRanks == r;
        const double special = i % 3 == 0   ? -0.0
                               : i % 3 == 1 ? -kInfinity
                                            : std::numeric_limits<double>::quiet_NaN();
        store(type, in[r].data() + i * width, mine ? special : i % 3 == 0 ? -0.0 : 1.0);
      }
    }
    auto all = in_rank_order(kRanks, in[0].size());
    all.push_back({Kernel::ring, 1, 32, 1, true, false});
    all.push_back({Kernel::tree, 2, 32, 1, true, false});
    for (const Shape& shape : all) {
      const Bytes got = run(ranks, shape, type, ReduceOp::sum, in);
      for (std::size_t i = 0; i < count; ++i) {
        const double value = load(type, got.data() + i * width);
        const bool right = i % 3 == 0   ? value == 0 && std::signbit(value)
                           : i % 3 == 1 ? value == -kInfinity
                                        : std::isnan(value);
        ASSERT_TRUE(right) << to_string(type) << ", kernel " << static_cast<int>(shape.kernel)
                           << ", element " << i << ": " << value;
      }
    }
  }
}

}  // namespace
}  // namespace gdrx::emulated
