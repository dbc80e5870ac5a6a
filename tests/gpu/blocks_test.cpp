// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter and all-gather kernels on every GPU of this host. Skipped without a GPU.
#include <gtest/gtest.h>

#include <cstring>

#include "mpi-tests/data.hpp"
#include "tests/gpu/delay.hpp"
#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {
namespace {

using Bytes_ = std::vector<std::byte>;

class GpuBlocks : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};

void put(const Ranks& ranks, int r, std::byte* to, const void* from, std::uint64_t bytes) {
  ranks.use(r);
  must(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copy");
  must(cudaDeviceSynchronize(), "copy");
}

Bytes_ get(const Ranks& ranks, int r, const std::byte* from, std::uint64_t bytes) {
  Bytes_ got(bytes);
  ranks.use(r);
  must(cudaMemcpy(got.data(), from, bytes, cudaMemcpyDeviceToHost), "copy");
  return got;
}

/// Block `r` of a vector of `total` elements in blocks of `block`.
std::uint64_t elements_of(std::uint64_t total, std::uint64_t block, int r) {
  const std::uint64_t begin = std::min(total, static_cast<std::uint64_t>(r) * block);
  return std::min(block, total - begin);
}

struct Case {
  DataType type{};
  ReduceOp op{};
  std::uint64_t total = 0;  // elements
  std::uint64_t block = 0;
  std::uint64_t shift = 0;  // bytes by which the buffers are off their alignment
};

void check_reduce_scatter(const Ranks& ranks, const Case& what) {
  const std::uint64_t bytes = what.total * size_of(what.type);
  const std::uint64_t block = what.block * size_of(what.type);
  const bench::DataKey key{what.type, what.op, ranks.size(), what.total * 7 + what.block};
  for (int r = 0; r < ranks.size(); ++r) {
    Bytes_ input(bytes);
    bench::fill_input(key, r, input.data(), what.total);
    put(ranks, r, ranks.in(r) + what.shift, input.data(), bytes);
    const Bytes_ poison(block + 64, std::byte{0xa5});
    put(ranks, r, ranks.out(r), poison.data(), poison.size());
  }
  const Shape shape = shape_of_blocks(Kernel::reduce_scatter, ranks.host(), block);
  for (int r = 0; r < ranks.size(); ++r) {
    ranks.launch(r,
                 {ranks.in(r) + what.shift, ranks.out(r) + what.shift, bytes, what.type, what.op,
                  block, true},
                 shape);
  }
  ranks.synchronize();
  for (int r = 0; r < ranks.size(); ++r) {
    const std::uint64_t count = elements_of(what.total, what.block, r);
    Bytes_ expected(count * size_of(what.type));
    bench::fill_expected(key, expected.data(), static_cast<std::uint64_t>(r) * what.block, count);
    const Bytes_ got = get(ranks, r, ranks.out(r), block + 64);
    EXPECT_EQ(
        bench::count_wrong(got.data() + what.shift, expected.data(), size_of(what.type), count), 0)
        << to_string(what.type) << ' ' << to_string(what.op) << ' ' << what.total << '/'
        << what.block << " rank " << r << " of " << ranks.size();
    for (std::size_t i = what.shift + expected.size(); i < got.size(); ++i) {
      ASSERT_EQ(got[i], std::byte{0xa5}) << "written outside at " << i;
    }
  }
}

void check_all_gather(const Ranks& ranks, const Case& what, bool in_place) {
  const std::uint64_t bytes = what.total * size_of(what.type);
  const std::uint64_t block = what.block * size_of(what.type);
  Bytes_ whole(bytes);
  const bench::DataKey key{what.type, ReduceOp::max, 1, what.total * 3 + what.block};
  bench::fill_input(key, 0, whole.data(), what.total);
  std::vector<const std::byte*> inputs;
  for (int r = 0; r < ranks.size(); ++r) {
    const Bytes_ poison(bytes + 64, std::byte{0xa5});
    put(ranks, r, ranks.out(r), poison.data(), poison.size());
    const std::uint64_t begin = std::min(bytes, static_cast<std::uint64_t>(r) * block);
    std::byte* from = in_place ? ranks.out(r) + what.shift + begin : ranks.in(r) + what.shift;
    put(ranks, r, from, whole.data() + begin,
        elements_of(what.total, what.block, r) * size_of(what.type));
    inputs.push_back(from);
  }
  const Shape shape = shape_of_blocks(Kernel::all_gather, ranks.host(), block);
  for (int r = 0; r < ranks.size(); ++r) {
    ranks.launch(r,
                 {inputs[static_cast<std::size_t>(r)], ranks.out(r) + what.shift, bytes, what.type,
                  ReduceOp::sum, block, true},
                 shape);
  }
  ranks.synchronize();
  for (int r = 0; r < ranks.size(); ++r) {
    const Bytes_ got = get(ranks, r, ranks.out(r), bytes + 64);
    EXPECT_EQ(std::memcmp(got.data() + what.shift, whole.data(), bytes), 0)
        << what.total << '/' << what.block << " rank " << r << " of " << ranks.size();
    for (std::size_t i = what.shift + bytes; i < got.size(); ++i) {
      ASSERT_EQ(got[i], std::byte{0xa5}) << "written outside at " << i;
    }
  }
}

constexpr std::uint64_t kBlocks[] = {1, 7, 1021, 70000, 1000003};
constexpr std::uint64_t kRoom = 80 << 20;  // sixteen of the largest, as floats

TEST_F(GpuBlocks, ReduceScatterGivesEachRankItsBlock) {
  for (const int n : rank_counts()) {
    const Ranks ranks(n, kRoom);
    for (const std::uint64_t block : kBlocks) {
      const std::uint64_t total = block * static_cast<std::uint64_t>(n);
      check_reduce_scatter(ranks, {DataType::float32, ReduceOp::sum, total, block});
      check_reduce_scatter(ranks, {DataType::bfloat16, ReduceOp::avg, total, block, 2});
      if (block > 2000) continue;
      for (std::size_t type = 0; type < kGpuTypeCount; ++type) {
        check_reduce_scatter(ranks, {static_cast<DataType>(type), ReduceOp::max, total, block});
      }
    }
  }
}

TEST_F(GpuBlocks, AllGatherGivesEveryRankAllBlocks) {
  for (const int n : rank_counts()) {
    const Ranks ranks(n, kRoom);
    for (const std::uint64_t block : kBlocks) {
      for (const bool in_place : {false, true}) {
        const std::uint64_t total = block * static_cast<std::uint64_t>(n);
        check_all_gather(ranks, {DataType::float32, {}, total, block}, in_place);
        check_all_gather(ranks, {DataType::uint8, {}, total, block, 3}, in_place);
      }
    }
  }
}

// As a piece of a vector that is no multiple of the ranks: blocks of whole packs, the last ones
// short or empty.
TEST_F(GpuBlocks, TheLastBlocksMayBeShortOrEmpty) {
  for (const int n : rank_counts()) {
    const Ranks ranks(n, kRoom);
    for (const std::uint64_t total : {1, 5, 1021, 500009, 4000037}) {
      const std::uint64_t least =
          (total + static_cast<std::uint64_t>(n) - 1) / static_cast<std::uint64_t>(n);
      const std::uint64_t block = (least + 3) / 4 * 4;
      check_reduce_scatter(ranks, {DataType::float32, ReduceOp::sum, total, block});
      check_all_gather(ranks, {DataType::float32, {}, total, block}, false);
    }
  }
}

// Calls of all kinds share the arena: a half, the whole, a half again.
TEST_F(GpuBlocks, FollowEachOtherAndAllReduce) {
  const int n = std::max(2, gpu_count());
  const Ranks ranks(n, kRoom);
  for (int round = 0; round < (kEmulated ? 4 : 20); ++round) {
    for (const std::uint64_t block : {100, 300000, 40}) {
      const std::uint64_t total = block * static_cast<std::uint64_t>(n);
      check_reduce_scatter(ranks, {DataType::int32, ReduceOp::sum, total, block});
      const std::uint64_t bytes = total * 4;
      for (int r = 0; r < n; ++r) {
        if (round % 3 == r % 3) enqueue_delay(30000, ranks.stream(r));
        ranks.launch(r, {ranks.in(r), ranks.out(r), bytes, DataType::int32, ReduceOp::sum},
                     choose(ranks.host(), bytes));
      }
      ranks.synchronize();
      check_all_gather(ranks, {DataType::int32, {}, total, block}, false);
    }
  }
}

}  // namespace
}  // namespace gdrx::gpu
