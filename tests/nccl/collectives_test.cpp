// SPDX-License-Identifier: Apache-2.0
// Each collective, type and operator, in place and not, in streams and graphs: every element.
#include <array>
#include <cmath>

#include "tests/nccl/world.hpp"

namespace gdrx::nccl {
namespace {

/// How NCCL's types hold small numbers.
struct Format {
  Type type;
  std::size_t size;
  int mantissa;  // 0: a whole number
  int bias;
};
constexpr std::array<Format, 12> kFormats{{{0, 1, 0, 0},
                                           {1, 1, 0, 0},
                                           {2, 4, 0, 0},
                                           {3, 4, 0, 0},
                                           {4, 8, 0, 0},
                                           {5, 8, 0, 0},
                                           {6, 2, 10, 15},
                                           {7, 4, 23, 127},
                                           {8, 8, 52, 1023},
                                           {9, 2, 7, 127},
                                           {10, 1, 3, 7},
                                           {11, 1, 2, 15}}};

/// Positive numbers that the format has.
void put(const Format& format, double value, std::byte* to) {
  auto bits = static_cast<std::uint64_t>(value);
  if (format.mantissa > 0) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent) * 2 - 1;
    bits = (static_cast<std::uint64_t>(exponent - 1 + format.bias) << format.mantissa) |
           static_cast<std::uint64_t>(std::ldexp(fraction, format.mantissa));
  }
  std::memcpy(to, &bits, format.size);
}
double get(const Format& format, const std::byte* from) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, format.size);
  if (format.mantissa == 0) return static_cast<double>(bits);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << format.mantissa) - 1);
  const int exponent = static_cast<int>(bits >> format.mantissa) - format.bias;
  return std::ldexp(1 + std::ldexp(static_cast<double>(fraction), -format.mantissa), exponent);
}

/// One or two, so that any format has all sums and products of four ranks.
double element(int rank, std::size_t i) {
  return 1 + static_cast<double>((i * 7 + i / 5 + static_cast<std::size_t>(rank) * 3) % 2);
}

double combine(Operator op, int ranks, std::size_t i) {
  double result = element(0, i);
  for (int r = 1; r < ranks; ++r) {
    const double next = element(r, i);
    if (op == kSum || op == kAvg) result += next;
    if (op == kProd) result *= next;
    if (op == kMax) result = std::max(result, next);
    if (op == kMin) result = std::min(result, next);
  }
  return op == kAvg ? result / ranks : result;
}

void fill(const Member& self, const Format& format, std::byte* to, std::size_t count,
          const std::function<double(std::size_t)>& value) {
  Bytes_ all(count * format.size);
  for (std::size_t i = 0; i < count; ++i) put(format, value(i), all.data() + i * format.size);
  self.upload(to, all.data(), all.size());
}

void expect(const Member& self, const Format& format, const std::byte* from, std::size_t count,
            const std::function<double(std::size_t)>& value, bool rounds = false) {
  const Bytes_ all = self.got<std::byte>(count * format.size, from);
  for (std::size_t i = 0; i < count; ++i) {
    double want = value(i);
    if (rounds && format.mantissa == 0) want = std::floor(want);
    const double slack = rounds && format.mantissa > 0 ? std::ldexp(want, -format.mantissa) : 0;
    ASSERT_NEAR(get(format, all.data() + i * format.size), want, slack)
        << "type " << format.type << ", rank " << self.rank << ", element " << i << " of " << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, NcclRanks, testing::Values(2, 3, 4));

TEST_P(NcclRanks, ReduceEveryTypeWithEveryOperator) {
  World world(GetParam());
  constexpr std::size_t kCount = 257;
  world.each([&](const Member& self) {
    for (const Format& format : kFormats) {
      for (Operator op = kSum; op < kOperators; ++op) {
        const auto mine = [&](std::size_t i) { return element(self.rank, i); };
        const auto all = [&](std::size_t i) { return combine(op, self.ranks, i); };
        fill(self, format, self.in, kCount, mine);
        ASSERT_EQ(ncclAllReduce(self.in, self.out, kCount, format.type, op, self.comm, self.stream),
                  kSuccess)
            << ncclGetLastError(self.comm);
        expect(self, format, self.out, kCount, all, op == kAvg);
        fill(self, format, self.out, kCount, mine);
        ASSERT_EQ(
            pncclAllReduce(self.out, self.out, kCount, format.type, op, self.comm, self.stream),
            kSuccess);
        expect(self, format, self.out, kCount, all, op == kAvg);
        const int root = static_cast<int>(op) % self.ranks;
        self.upload(self.out, Bytes_(kCount * format.size).data(), kCount * format.size);
        ASSERT_EQ(
            ncclReduce(self.in, self.out, kCount, format.type, op, root, self.comm, self.stream),
            kSuccess);
        if (self.rank == root) expect(self, format, self.out, kCount, all, op == kAvg);
      }
    }
  });
}

TEST_P(NcclRanks, ReduceScatterGivesEachItsBlock) {
  World world(GetParam());
  world.each([&](const Member& self) {
    for (const std::size_t count : {0, 1, 33, 1001}) {
      const Format& format = kFormats[kFloat32];
      const std::size_t first = count * static_cast<std::size_t>(self.rank);
      const std::size_t whole = count * static_cast<std::size_t>(self.ranks);
      const auto block = [&](std::size_t i) { return combine(kSum, self.ranks, first + i); };
      fill(self, format, self.in, whole, [&](std::size_t i) { return element(self.rank, i); });
      ASSERT_EQ(ncclReduceScatter(self.in, self.out, count, kFloat32, kSum, self.comm, self.stream),
                kSuccess);
      expect(self, format, self.out, count, block);
      ASSERT_EQ(ncclReduceScatter(self.in, self.in + first * 4, count, kFloat32, kSum, self.comm,
                                  self.stream),
                kSuccess);
      expect(self, format, self.in + first * 4, count, block);
    }
  });
}

/// What `from` has for `to`.
double word(int from, int to, std::size_t i) {
  return static_cast<double>(i % 1000) + from * 1000 + to * 10000;
}
const Format& kWords = kFormats[kUint32];

void fill_for_all(const Member& self, std::byte* to, std::size_t count) {
  fill(self, kWords, to, count * static_cast<std::size_t>(self.ranks), [&](std::size_t i) {
    return word(self.rank, count > 0 ? static_cast<int>(i / count) : 0, count > 0 ? i % count : 0);
  });
}

TEST_P(NcclRanks, MoveWhatTheyAreGiven) {
  World world(GetParam());
  world.each([&](const Member& self) {
    const auto ranks = static_cast<std::size_t>(self.ranks);
    for (const std::size_t count : {1, 7, 1023}) {
      const auto from_all = [&](std::size_t i) {
        return word(static_cast<int>(i / count), 0, i % count);
      };
      const int root = self.ranks - 1;
      const auto mine = [&](std::size_t i) { return word(self.rank, 0, i); };
      fill(self, kWords, self.in, count, mine);
      ASSERT_EQ(ncclAllGather(self.in, self.out, count, kUint32, self.comm, self.stream), kSuccess);
      expect(self, kWords, self.out, count * ranks, from_all);
      std::byte* const own = self.out + count * 4 * static_cast<std::size_t>(self.rank);
      fill(self, kWords, self.out, count * ranks, [](std::size_t) { return 5; });
      fill(self, kWords, own, count, mine);
      ASSERT_EQ(ncclAllGather(own, self.out, count, kUint32, self.comm, self.stream), kSuccess);
      expect(self, kWords, self.out, count * ranks, from_all);
      const bool is_root = self.rank == root;
      ASSERT_EQ(ncclGather(self.in, is_root ? self.out : nullptr, count, kUint32, root, self.comm,
                           self.stream),
                kSuccess);
      if (is_root) expect(self, kWords, self.out, count * ranks, from_all);
      fill_for_all(self, self.in, count);
      ASSERT_EQ(ncclScatter(is_root ? self.in : nullptr, self.out, count, kUint32, root, self.comm,
                            self.stream),
                kSuccess);
      expect(self, kWords, self.out, count,
             [&](std::size_t i) { return word(root, self.rank, i); });
      ASSERT_EQ(ncclAlltoAll(self.in, self.out, count, kUint32, self.comm, self.stream), kSuccess);
      expect(self, kWords, self.out, count * ranks, [&](std::size_t i) {
        return word(static_cast<int>(i / count), self.rank, i % count);
      });
    }
  });
}

TEST_P(NcclRanks, BroadcastFromEveryRoot) {
  World world(GetParam());
  world.each([&](const Member& self) {
    for (int root = 0; root < self.ranks; ++root) {
      const auto value = [&](std::size_t i) { return word(root, 3, i); };
      const bool is_root = self.rank == root;
      fill(self, kWords, self.in, 501, [&](std::size_t i) { return word(self.rank, 3, i); });
      ASSERT_EQ(ncclBroadcast(is_root ? self.in : nullptr, self.out, 501, kUint32, root, self.comm,
                              self.stream),
                kSuccess);
      expect(self, kWords, self.out, 501, value);
      ASSERT_EQ(ncclBcast(self.in, 501, kUint32, root, self.comm, self.stream), kSuccess);
      expect(self, kWords, self.in, 501, value);
    }
  });
}

TEST_P(NcclRanks, RunFromGraphs) {
  World world(GetParam());
  world.each([&](const Member& self) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    const auto count = std::size_t{99};
    must(cudaStreamBeginCapture(self.stream, cudaStreamCaptureModeThreadLocal), "capture");
    EXPECT_EQ(ncclAllReduce(self.in, self.out, count, kFloat32, kMax, self.comm, self.stream),
              kSuccess)
        << ncclGetLastError(self.comm);
    EXPECT_EQ(ncclAllGather(self.out, self.out + 4096, count, kFloat32, self.comm, self.stream),
              kSuccess);
    must(cudaStreamEndCapture(self.stream, &graph), "capture");
    must(cudaGraphInstantiate(&made, graph, 0), "instantiate");
    for (int replay = 0; replay < 2; ++replay) {
      fill(self, kFormats[kFloat32], self.in, count,
           [&](std::size_t i) { return element(self.rank + replay, i); });
      must(cudaGraphLaunch(made, self.stream), "launch");
      ASSERT_EQ(cudaStreamSynchronize(self.stream), cudaSuccess);
      expect(self, kFormats[kFloat32], self.out + 4096,
             count * static_cast<std::size_t>(self.ranks), [&](std::size_t i) {
               double most = 0;
               for (int r = 0; r < self.ranks; ++r)
                 most = std::max(most, element(r + replay, i % count));
               return most;
             });
    }
    cudaGraphExecDestroy(made);
    cudaGraphDestroy(graph);
  });
}

TEST_P(NcclRanks, MultiplyBeforeTheyAdd) {
  World world(GetParam());
  world.each([&](const Member& self) {
    float scalar = static_cast<float>(self.rank) + 1;
    for (const int residence : {kScalarHost, kScalarDevice}) {
      std::byte* const on_device = self.in + kRoom - 4;
      self.upload(on_device, &scalar, sizeof scalar);
      Operator op = 0;
      void* const from = residence == kScalarHost ? static_cast<void*>(&scalar) : on_device;
      ASSERT_EQ(ncclRedOpCreatePreMulSum(&op, from, kFloat32, residence, self.comm), kSuccess)
          << ncclGetLastError(self.comm);
      EXPECT_GE(op, kOperators);
      fill(self, kFormats[kFloat32], self.in, 101,
           [&](std::size_t i) { return element(self.rank, i); });
      ASSERT_EQ(ncclAllReduce(self.in, self.out, 101, kFloat32, op, self.comm, self.stream),
                kSuccess);
      EXPECT_EQ(ncclRedOpDestroy(op, self.comm), kSuccess);
      EXPECT_EQ(ncclRedOpDestroy(op, self.comm), kInvalidArgument);
      expect(self, kFormats[kFloat32], self.out, 101, [&](std::size_t i) {
        double sum = 0;
        for (int r = 0; r < self.ranks; ++r) sum += (r + 1) * element(r, i);
        return sum;
      });
    }
    EXPECT_EQ(ncclRedOpDestroy(kSum, self.comm), kInvalidArgument);
  });
}

}  // namespace
}  // namespace gdrx::nccl
