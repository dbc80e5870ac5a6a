// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

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
