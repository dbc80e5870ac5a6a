// SPDX-License-Identifier: Apache-2.0
// Each collective, type and operator, in place and not: every element.
#include "tests/nccl/values.hpp"

namespace gdrx::nccl {
namespace {

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
