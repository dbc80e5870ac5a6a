// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <vector>

#include "collectives/reduce/kernel_table.hpp"
#include "collectives/reduce/reducer.hpp"

namespace gdrx::reduce {
namespace {

std::vector<std::uint8_t> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(generator());
  return bytes;
}

template <class T>
std::vector<T> sum_of(const std::vector<std::vector<T>>& sources) {
  std::vector<T> sum = sources[0];
  for (std::size_t s = 1; s < sources.size(); ++s) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<T>(sum[i] + sources[s][i]);
  }
  return sum;
}

TEST(Reduce, SumsFloatsInTheOrderOfTheSources) {
  for (const std::size_t count : {0u, 1u, 7u, 64u, 2049u, 5000u}) {
    for (const std::size_t n : {1u, 2u, 3u, 8u, 17u}) {
      std::vector<std::vector<float>> sources(n, std::vector<float>(count));
      std::mt19937 generator(static_cast<unsigned>(count + n));
      for (auto& source : sources) {
        for (float& value : source) value = static_cast<float>(generator()) * 1e-5F - 20000.0F;
      }
      std::vector<const void*> pointers;
      for (const auto& source : sources) pointers.push_back(source.data());
      std::vector<float> out(count, -1.0F);
      reduce(out.data(), pointers, count, DataType::float32, ReduceOp::sum);
      EXPECT_EQ(out, sum_of(sources)) << count << " x " << n;
    }
  }
}

TEST(Reduce, GivesTheSameBitsWithEveryInstructionSet) {
  std::size_t sets = 0;
  const auto usable = usable_sets(sets);
  ASSERT_GE(sets, 1u);
  constexpr std::size_t kCount = 4099;
  for (std::size_t type = 0; type < kDataTypeCount; ++type) {
    const std::size_t element = size_of(static_cast<DataType>(type));
    for (std::size_t op = 0; op < kReduceOpCount; ++op) {
      if ((*usable[0].kernels)[type][op] == nullptr) continue;
      std::vector<std::vector<std::uint8_t>> sources;
      std::vector<const void*> pointers;
      for (unsigned s = 0; s < 5; ++s) {  // any bits at all: NaN and infinity too, at odd addresses
        sources.push_back(
            random_bytes(kCount * element + 1, s * 100 + static_cast<unsigned>(type)));
      }
      for (const auto& source : sources) pointers.push_back(source.data() + 1);
      std::vector<std::uint8_t> first;
      for (std::size_t set = 0; set < sets; ++set) {
        std::vector<std::uint8_t> out(kCount * element);
        (*usable[set].kernels)[type][op](out.data(), pointers.data(), pointers.size(), kCount, 5);
        if (first.empty()) first = out;
        EXPECT_EQ(out == first, true)
            << usable[set].name << " " << to_string(static_cast<DataType>(type)) << " "
            << to_string(static_cast<ReduceOp>(op));
      }
    }
  }
}

TEST(Reduce, HasAKernelExactlyWhereATypeTakesAnOperatorThatIsNotAUsers) {
  std::size_t sets = 0;
  const auto usable = usable_sets(sets);
  for (std::size_t set = 0; set < sets; ++set) {
    for (std::size_t type = 0; type < kDataTypeCount; ++type) {
      for (std::size_t op = 0; op < kReduceOpCount; ++op) {
        const bool due = takes(static_cast<DataType>(type), static_cast<ReduceOp>(op)) &&
                         static_cast<ReduceOp>(op) != ReduceOp::user;
        EXPECT_EQ((*usable[set].kernels)[type][op] != nullptr, due)
            << usable[set].name << " " << to_string(static_cast<DataType>(type)) << " "
            << to_string(static_cast<ReduceOp>(op));
      }
    }
  }
}

template <class T>
T reduced(DataType type, ReduceOp op, const std::vector<T>& values) {
  std::vector<const void*> sources;
  for (const T& value : values) sources.push_back(&value);
  T out{};
  reduce(&out, sources, 1, type, op);
  return out;
}

TEST(Reduce, LogicalResultsAreZeroOrOne) {
  using enum ReduceOp;
  EXPECT_EQ(reduced<std::int32_t>(DataType::int32, land, {256, -7}), 1);
  EXPECT_EQ(reduced<std::int32_t>(DataType::int32, land, {256, 0}), 0);
  EXPECT_EQ(reduced<std::int64_t>(DataType::int64, lor, {0, INT64_C(1) << 40}), 1);
  EXPECT_EQ(reduced<std::int16_t>(DataType::int16, lxor, {5, 6, 7}), 1);
  EXPECT_EQ(reduced<std::uint8_t>(DataType::boolean, bor, {2, 4}), 1);
  EXPECT_EQ(reduced<std::uint8_t>(DataType::byte, bor, {2, 4}), 6);
}

struct FloatInt {
  float value;
  int index;
  friend bool operator==(const FloatInt&, const FloatInt&) = default;
};

TEST(Reduce, ANanIsBothLeastAndGreatestAndTheLowestIndexCounts) {
  const float nan = std::nanf("");
  for (const ReduceOp op : {ReduceOp::minloc, ReduceOp::maxloc}) {
    for (const auto& pairs : {std::vector<FloatInt>{{1, 5}, {nan, 9}, {nan, 7}, {2, 1}},
                              std::vector<FloatInt>{{nan, 7}, {2, 1}, {nan, 9}, {1, 5}}}) {
      const FloatInt found = reduced(DataType::float_int, op, pairs);
      EXPECT_TRUE(std::isnan(found.value));
      EXPECT_EQ(found.index, 7);
    }
  }
  const std::vector<FloatInt> pairs{{3, 4}, {1, 6}, {3, 2}, {1, 5}};
  EXPECT_EQ(reduced(DataType::float_int, ReduceOp::minloc, pairs), (FloatInt{1, 5}));
  EXPECT_EQ(reduced(DataType::float_int, ReduceOp::maxloc, pairs), (FloatInt{3, 2}));
}

TEST(Reduce, MultipliesComplexNumbers) {
  using Complex = std::complex<float>;
  EXPECT_EQ(reduced<Complex>(DataType::complex64, ReduceOp::prod, {{1, 2}, {3, -1}, {0, 1}}),
            Complex(-5, 5));
}

TEST(Scale, MultipliesEveryElementInPlaceToo) {
  for (const std::size_t count : {0u, 1u, 1023u, 5000u}) {
    std::vector<float> values(count), out(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
    const float scalar = 2.5F;
    scale(out.data(), values.data(), &scalar, count, DataType::float32);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], 2.5F * static_cast<float>(i));
    scale(values.data(), values.data(), &scalar, count, DataType::float32);
    EXPECT_EQ(values, out);
  }
}

// a, b -> 10 a + b: digits in the order of the sources.
TEST(ReduceBy, AppliesAFunctionInTheOrderOfTheSources) {
  const UserOperator digits{
      [](const void*, const void* in, void* inout, std::size_t count, DataType type) {
        EXPECT_EQ(type, DataType::uint64);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(in) % 64, 0u);
        const auto* left = static_cast<const std::uint64_t*>(in);
        auto* right = static_cast<std::uint64_t*>(inout);
        for (std::size_t i = 0; i < count; ++i) right[i] += 10 * left[i];
      }};
  constexpr std::size_t kCount = 5001;
  std::vector<std::vector<std::uint64_t>> sources;
  std::vector<const void*> pointers;
  for (std::uint64_t s = 1; s <= 5; ++s) sources.emplace_back(kCount, s);
  for (const auto& source : sources) pointers.push_back(source.data());
  reduce_by(digits, sources[2].data(), pointers, kCount, DataType::uint64);
  EXPECT_EQ(sources[2], std::vector<std::uint64_t>(kCount, 12345));
}

TEST(Reduce, WorksInPlaceOnAnySource) {
  for (std::size_t place = 0; place < 3; ++place) {
    std::vector<std::vector<std::int32_t>> sources(3, std::vector<std::int32_t>(3000));
    for (std::size_t s = 0; s < 3; ++s) {
      for (std::size_t i = 0; i < 3000; ++i)
        sources[s][i] = static_cast<std::int32_t>(s * 1000 + i);
    }
    const auto expected = sum_of(sources);
    const void* pointers[3] = {sources[0].data(), sources[1].data(), sources[2].data()};
    reduce(sources[place].data(), pointers, 3000, DataType::int32, ReduceOp::sum);
    EXPECT_EQ(sources[place], expected) << place;
  }
}

// Two sources have a loop of their own: elements one by one are its reference.
TEST(Reduce, TwoSourcesGiveTheSameBitsInPlaceAndOneByOne) {
  constexpr std::size_t kCount = 1003;
  std::size_t sets = 0;
  const auto usable = usable_sets(sets);
  for (std::size_t type = 0; type < kDataTypeCount; ++type) {
    const std::size_t element = size_of(static_cast<DataType>(type));
    const auto a = random_bytes(kCount * element + 1, 3);
    const auto b = random_bytes(kCount * element + 1, 4);
    for (std::size_t op = 0; op < kReduceOpCount; ++op) {
      for (std::size_t set = 0; set < sets; ++set) {
        const Kernel kernel = (*usable[set].kernels)[type][op];
        if (kernel == nullptr) continue;
        std::vector<std::uint8_t> expected(kCount * element);
        for (std::size_t i = 0; i < kCount; ++i) {
          const void* one[2] = {a.data() + 1 + i * element, b.data() + 1 + i * element};
          kernel(expected.data() + i * element, one, 2, 1, 0);
        }
        for (int place = 0; place < 3; ++place) {  // in the first, in the second, in neither
          auto first = a;
          auto second = b;
          std::vector<std::uint8_t> other(kCount * element + 1);
          auto& out = place == 0 ? first : place == 1 ? second : other;
          const void* both[2] = {first.data() + 1, second.data() + 1};
          kernel(out.data() + 1, both, 2, kCount, 0);
          EXPECT_EQ(std::memcmp(out.data() + 1, expected.data(), expected.size()), 0)
              << usable[set].name << " " << to_string(static_cast<DataType>(type)) << " "
              << to_string(static_cast<ReduceOp>(op)) << " " << place;
        }
      }
    }
  }
}

TEST(Reduce, WrapsIntegersAndTruncatesTheirAverage) {
  const std::int8_t a[4] = {100, -100, 7, -7};
  const std::int8_t b[4] = {100, -100, 0, 0};
  const void* sources[2] = {a, b};
  std::int8_t out[4];
  reduce(out, sources, 4, DataType::int8, ReduceOp::sum);
  EXPECT_EQ(out[0], static_cast<std::int8_t>(200));
  EXPECT_EQ(out[1], static_cast<std::int8_t>(-200));
  reduce(out, sources, 4, DataType::int8, ReduceOp::avg, 2);
  EXPECT_EQ(out[2], 3);
  EXPECT_EQ(out[3], -3);
}

TEST(Reduce, KnowsEveryOperator) {
  const double a[2] = {3, -2};
  const double b[2] = {-5, 4};
  const void* sources[2] = {a, b};
  const auto result = [&](ReduceOp op, int finish = 0) {
    std::vector<double> out(2);
    reduce(out.data(), sources, 2, DataType::float64, op, finish);
    return out;
  };
  EXPECT_EQ(result(ReduceOp::sum), (std::vector<double>{-2, 2}));
  EXPECT_EQ(result(ReduceOp::prod), (std::vector<double>{-15, -8}));
  EXPECT_EQ(result(ReduceOp::min), (std::vector<double>{-5, -2}));
  EXPECT_EQ(result(ReduceOp::max), (std::vector<double>{3, 4}));
  EXPECT_EQ(result(ReduceOp::avg, 2), (std::vector<double>{-1, 1}));
}

TEST(Copy, MovesEveryByteAtAnyAlignment) {
  const auto from = random_bytes(20'000, 1);
  for (const bool streaming : {false, true}) {
    for (const std::size_t shift : {0u, 1u, 63u}) {
      for (const std::size_t length : {0u, 1u, 4096u, 10'001u}) {
        std::vector<std::uint8_t> to(20'000, 0xEE);
        copy(to.data() + shift, from.data() + 3, length, streaming);
        EXPECT_EQ(std::memcmp(to.data() + shift, from.data() + 3, length), 0);
        EXPECT_EQ(to[shift + length], 0xEE);
      }
    }
  }
}

}  // namespace
}  // namespace gdrx::reduce
