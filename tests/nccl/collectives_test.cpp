// SPDX-License-Identifier: Apache-2.0
// Each collective, type and operator, in place and not: every element.
#include "nccl/comm.hpp"
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

/// 1, 2 or 4 a rank: every type has all products and their sums.
double factor_of(int rank) { return static_cast<double>(1 << rank % 3); }

double scaled_sum(int ranks, std::size_t i) {
  double sum = 0;
  for (int r = 0; r < ranks; ++r) sum += factor_of(r) * element(r, i);
  return sum;
}

/// The operator with this rank's factor, which lies at `on_gpu` unless that is null.
Operator made_of(const Member& self, const Format& format, std::byte* on_gpu) {
  std::array<std::byte, 8> factor{};
  put(format, factor_of(self.rank), factor.data());
  if (on_gpu != nullptr) self.upload(on_gpu, factor.data(), format.size);
  Operator op = 0;
  void* const from = on_gpu != nullptr ? static_cast<void*>(on_gpu) : factor.data();
  const int residence = on_gpu != nullptr ? kScalarDevice : kScalarHost;
  EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, from, format.type, residence, self.comm), kSuccess)
      << ncclGetLastError(self.comm);
  EXPECT_GE(op, kOperators);
  return op;
}

void expect_on_gpu(const Member& self) {
  gdrxOpInfo_t info{};
  info.size = sizeof info;
  EXPECT_EQ(gdrxCommGetLastOp(self.comm->gdrx, &info), gdrxSuccess);
  EXPECT_STREQ(info.transport, "gpu");
}

/// allReduce, reduce to the last rank and reduceScatter, of memory at any place, and in place.
void multiply_and_add(const Member& self, const Format& format, Operator op, std::size_t shift) {
  constexpr std::size_t kEach = 101;
  const std::size_t count = kEach * static_cast<std::size_t>(self.ranks);
  const std::size_t mine = kEach * static_cast<std::size_t>(self.rank);
  std::byte* const in = self.in + shift * format.size;
  std::byte* const out = self.out + shift * format.size;
  const auto own = [&](std::size_t i) { return element(self.rank, i); };
  const auto sum = [&](std::size_t i) { return scaled_sum(self.ranks, i); };
  fill(self, format, in, count, own);
  EXPECT_EQ(ncclAllReduce(in, out, count, format.type, op, self.comm, self.stream), kSuccess)
      << ncclGetLastError(self.comm);
  expect_on_gpu(self);
  expect(self, format, out, count, sum);
  expect(self, format, in, count, own);  // what is given stays as it is
  const int root = self.ranks - 1;
  EXPECT_EQ(ncclReduce(in, self.rank == root ? out : nullptr, count - 1, format.type, op, root,
                       self.comm, self.stream),
            kSuccess);
  expect_on_gpu(self);
  if (self.rank == root) expect(self, format, out, count - 1, sum);
  EXPECT_EQ(ncclReduceScatter(in, out, kEach, format.type, op, self.comm, self.stream), kSuccess);
  expect_on_gpu(self);
  expect(self, format, out, kEach, [&](std::size_t i) { return sum(mine + i); });
  expect(self, format, in, count, own);
  EXPECT_EQ(ncclAllReduce(in, in, count, format.type, op, self.comm, self.stream), kSuccess);
  expect(self, format, in, count, sum);
}

TEST_P(NcclRanks, MultiplyBeforeTheyAdd) {
  World world(GetParam());
  world.each([&](const Member& self) {
    std::size_t shift = 0;
    for (const Format& format : kFormats) {
      if (format.mantissa == 2 && self.ranks > 2) continue;  // no room for these sums
      for (std::byte* const on_gpu : {static_cast<std::byte*>(nullptr), self.in + kRoom - 8}) {
        const Operator op = made_of(self, format, on_gpu);
        multiply_and_add(self, format, op, shift++ % 3);
        EXPECT_EQ(ncclRedOpDestroy(op, self.comm), kSuccess);
        EXPECT_EQ(ncclRedOpDestroy(op, self.comm), kInvalidArgument);
      }
    }
    EXPECT_EQ(ncclRedOpDestroy(kSum, self.comm), kInvalidArgument);
  });
}

/// A collective reads what its stream has left there.
TEST_P(NcclRanks, AFactorOnTheGpuIsReadWhenTheStreamComesToTheCall) {
  World world(GetParam());
  world.each([&](const Member& self) {
    const Format& format = kFormats[kFloat32];
    auto* const factor = reinterpret_cast<float*>(self.in + kRoom - 8);
    float zero = 0;
    self.upload(reinterpret_cast<std::byte*>(factor), &zero, sizeof zero);
    Operator op = 0;
    ASSERT_EQ(ncclRedOpCreatePreMulSum(&op, factor, kFloat32, kScalarDevice, self.comm), kSuccess);
    fill(self, format, self.in, 9, [&](std::size_t i) { return element(self.rank, i); });
    const auto value = static_cast<float>(factor_of(self.rank));
    must(cudaMemcpyAsync(factor, &value, sizeof value, cudaMemcpyHostToDevice, self.stream),
         "copy");
    ASSERT_EQ(ncclAllReduce(self.in, self.out, 9, kFloat32, op, self.comm, self.stream), kSuccess);
    must(cudaMemsetAsync(factor, 0, sizeof value, self.stream), "clear");
    expect(self, format, self.out, 9, [&](std::size_t i) { return scaled_sum(self.ranks, i); });
    EXPECT_EQ(ncclRedOpDestroy(op, self.comm), kSuccess);
  });
}

/// What has no room at once is multiplied and added in pieces.
TEST_F(Nccl, LargeCallsMultiplyInPieces) {
  World world(2);
  world.each([](const Member& self) {
    constexpr std::size_t kCount = (std::size_t{9} << 20) + 3;  // of each block
    const Type bytes = kFormats[1].type;
    auto* const in = gpu::allocate<std::byte>(2 * kCount);
    auto* const out = gpu::allocate<std::byte>(2 * kCount);
    const auto own = [&](int rank, std::size_t i) {
      return (i * 7 + i / 1021) % 11 + 3 * static_cast<std::size_t>(rank);
    };
    Bytes_ mine(2 * kCount);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = std::byte(own(self.rank, i));
    self.upload(in, mine.data(), mine.size());
    std::uint8_t factor = self.rank == 0 ? 2 : 5;
    Operator op = 0;
    ASSERT_EQ(ncclRedOpCreatePreMulSum(&op, &factor, bytes, kScalarHost, self.comm), kSuccess);
    const auto expect_sums = [&](std::size_t first, std::size_t count) {
      const auto got = self.got<std::uint8_t>(count, out);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(got[i], 2 * own(0, first + i) + 5 * own(1, first + i)) << i;
      }
    };
    EXPECT_EQ(ncclReduceScatter(in, out, kCount, bytes, op, self.comm, self.stream), kSuccess);
    expect_on_gpu(self);
    expect_sums(kCount * static_cast<std::size_t>(self.rank), kCount);
    EXPECT_EQ(ncclReduce(in, out, 2 * kCount, bytes, op, 0, self.comm, self.stream), kSuccess);
    if (self.rank == 0) expect_sums(0, 2 * kCount);
    EXPECT_EQ(ncclRedOpDestroy(op, self.comm), kSuccess);
    must(cudaStreamSynchronize(self.stream), "stream");
    cudaFree(in);
    cudaFree(out);
  });
}

TEST_F(Nccl, AFactorThatIsNoMemoryOfCudasIsRefused) {
  World world(1);
  float factor = 1;
  Operator op = 0;
  EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, &factor, kFloat32, kScalarDevice, world[0].comm),
            kInvalidArgument);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("CUDA does not know"), std::string::npos);
  EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, &factor, kFloat32, 7, world[0].comm), kInvalidArgument);
}

}  // namespace
}  // namespace gdrx::nccl
