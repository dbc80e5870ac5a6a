// SPDX-License-Identifier: Apache-2.0
// Scans, and sums at a root, by kernels of moves on every GPU of this host: the bits that the
// host's reducer gives, in the order of ranks. Skipped without a GPU.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "collectives/reduce/reducer.hpp"
#include "gdrx/traits.hpp"
#include "tests/gpu/delay.hpp"
#include "tests/gpu/moves.hpp"

namespace gdrx::gpu {
namespace {

using Bytes_ = std::vector<std::byte>;

constexpr std::uint64_t kRoom = 12 << 20;

class GpuScans : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};

std::vector<int> counts_of_ranks() {
  if (!kEmulated && gpu_count() < 2) return {1, 2, 3, 4};
  std::vector<int> counts{1, 2, 3, 4, 5, 6, 7, 8};
  if (!kEmulated) counts.insert(counts.end(), {9, 16});
  return counts;
}

struct Scan {
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::uint64_t count = 0;
  bool with_own = true;
  bool in_place = false;
  std::uint64_t shift = 0;  // bytes by which the buffers are off their alignment
  int root = -1;            // of a reduce

  std::uint64_t bytes() const { return count * size_of(type); }
  bool goes(int from, int to) const {
    if (root >= 0) return to == root;
    return from < to || (from == to && with_own);
  }
  Moves moves(const Ranks& ranks, int r) const {
    Moves what;
    what.collective = root >= 0  ? Collective::reduce
                      : with_own ? Collective::scan
                                 : Collective::exscan;
    what.root = Rank{root >= 0 ? root : 0};
    what.type = type;
    what.adds = op;
    what.output = ranks.out(r) + shift;
    what.input = in_place ? what.output : ranks.in(r) + shift;
    for (int p = 0; p < ranks.size(); ++p) {
      const auto at = static_cast<std::size_t>(p);
      if (goes(r, p)) what.sends[at].bytes = bytes();
      if (goes(p, r)) what.receives[at].bytes = bytes();
    }
    return what;
  }
};

/// The sign, and an exponent near that of 1: sums depend on the order, none is without end.
std::uint64_t float_bits(std::uint64_t random, int exponent_at, int sign_at) {
  const std::uint64_t one = (std::uint64_t{1} << (sign_at - exponent_at - 1)) - 1;
  const std::uint64_t mantissa = random & ((std::uint64_t{1} << exponent_at) - 1);
  return (random >> 63) << sign_at | (one - 2 + (random >> 60) % 4) << exponent_at | mantissa;
}

std::uint64_t element_bits(DataType type, std::uint64_t random) {
  if (type == DataType::float64) return float_bits(random, 52, 63);
  if (type == DataType::float32) return float_bits(random, 23, 31);
  if (type == DataType::bfloat16) return float_bits(random, 7, 15);
  if (type == DataType::float16) return float_bits(random, 10, 15);
  if (type == DataType::float8_e4m3) return float_bits(random, 3, 7);
  if (type == DataType::float8_e5m2) return float_bits(random, 2, 7);
  return random;
}

Bytes_ input_of(const Scan& scan, int r) {
  std::mt19937_64 random(scan.count * 64 + static_cast<std::uint64_t>(r));
  Bytes_ made(scan.bytes());
  for (std::uint64_t i = 0; i < scan.count; ++i) {
    const std::uint64_t bits = element_bits(scan.type, random());
    std::memcpy(made.data() + i * size_of(scan.type), &bits, size_of(scan.type));
  }
  return made;
}

std::vector<Bytes_> inputs_of(const Ranks& ranks, const Scan& scan) {
  std::vector<Bytes_> inputs;
  for (int r = 0; r < ranks.size(); ++r) inputs.push_back(input_of(scan, r));
  return inputs;
}

/// The output buffer's bytes before the call, and after it by the host's reducer.
Bytes_ before(const Scan& scan, const Bytes_& input) {
  Bytes_ made(scan.shift + scan.bytes() + kGuard, kPoison);
  if (scan.in_place) std::copy(input.begin(), input.end(), made.begin() + scan.shift);
  return made;
}

Bytes_ expected_of(const Scan& scan, const std::vector<Bytes_>& inputs, int r) {
  Bytes_ made = before(scan, inputs[static_cast<std::size_t>(r)]);
  std::vector<const void*> sources;
  for (int p = 0; p < static_cast<int>(inputs.size()); ++p) {
    if (scan.goes(p, r)) sources.push_back(inputs[static_cast<std::size_t>(p)].data());
  }
  const int over = scan.op == ReduceOp::avg ? static_cast<int>(inputs.size()) : 0;
  std::byte* const to = made.data() + scan.shift;
  if (sources.size() == 1) std::memcpy(to, sources[0], scan.bytes());
  if (sources.size() > 1) reduce::reduce(to, sources, scan.count, scan.type, scan.op, over);
  return made;
}

void prepare(const Ranks& ranks, const Scan& scan, const std::vector<Bytes_>& inputs) {
  for (int r = 0; r < ranks.size(); ++r) {
    const Bytes_& input = inputs[static_cast<std::size_t>(r)];
    copy_to(ranks, r, ranks.in(r) + scan.shift, input.data(), input.size());
    const Bytes_ output = before(scan, input);
    copy_to(ranks, r, ranks.out(r), output.data(), output.size());
  }
}

void launch(const Ranks& ranks, const Scan& scan, int r) {
  ranks.use(r);
  must(ranks.path(r).move(scan.moves(ranks, r), ranks.host().blocks, ranks.stream(r)));
}

void check(const Ranks& ranks, const Scan& scan, const std::vector<Bytes_>& inputs) {
  for (int r = 0; r < ranks.size(); ++r) {
    const Bytes_ expected = expected_of(scan, inputs, r);
    Bytes_ got(expected.size());
    ranks.use(r);
    must(cudaMemcpy(got.data(), ranks.out(r), got.size(), cudaMemcpyDeviceToHost), "copy");
    const auto wrong = std::mismatch(got.begin(), got.end(), expected.begin());
    EXPECT_TRUE(wrong.first == got.end())
        << to_string(scan.moves(ranks, r).collective) << " of " << scan.count << ' '
        << to_string(scan.type) << ' ' << to_string(scan.op) << ", shift " << scan.shift
        << (scan.in_place ? ", in place" : "") << ": rank " << r << " of " << ranks.size()
        << ", byte " << wrong.first - got.begin();
  }
}

void run(const Ranks& ranks, const Scan& scan) {
  const std::vector<Bytes_> inputs = inputs_of(ranks, scan);
  prepare(ranks, scan, inputs);
  for (int r = 0; r < ranks.size(); ++r) launch(ranks, scan, r);
  ranks.synchronize();
  check(ranks, scan, inputs);
}

constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max};

TEST_F(GpuScans, AddUpEveryTypeByEveryOperatorInTheOrderOfRanks) {
  for (const int n : counts_of_ranks()) {
    const Ranks ranks(n, kRoom);
    for (std::size_t type = 0; type < kGpuTypeCount; ++type) {
      for (const ReduceOp op : kOps) {
        run(ranks, {static_cast<DataType>(type), op, 301, true});
        run(ranks, {static_cast<DataType>(type), op, 301, false});
      }
    }
  }
}

TEST_F(GpuScans, AddUpAtARootAsWell) {
  for (const int n : counts_of_ranks()) {
    if (n < 2) continue;
    const Ranks ranks(n, kRoom);
    for (const int root : {0, n / 2, n - 1}) {
      for (std::size_t type = 0; type < kGpuTypeCount; ++type) {
        for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::avg}) {
          const Scan one{static_cast<DataType>(type), op, 301, true, op == ReduceOp::min, 0, root};
          run(ranks, one);
        }
      }
      run(ranks, {DataType::float16, ReduceOp::sum, 4001, true, true, 6, root});
      if (kEmulated && n > 3) continue;
      run(ranks, {DataType::float32, ReduceOp::avg, 600'001, true, false, 0, root});
      run(ranks, {DataType::float32, ReduceOp::sum, 600'001, true, true, 4, root});
    }
  }
}

// What an average left in the path divided the next scan's sums, too.
TEST_F(GpuScans, BehindAnAverageDivideNothing) {
  for (const int n : {2, 3}) {
    const Ranks ranks(n, kRoom);
    const Scan scan{DataType::float32, ReduceOp::sum, 301, true};
    const std::vector<Bytes_> inputs = inputs_of(ranks, scan);
    prepare(ranks, scan, inputs);
    Work average{nullptr, nullptr, scan.bytes(), DataType::float32, ReduceOp::avg};
    const Shape shape{Kernel::one_shot, 1, 128};
    for (int r = 0; r < n; ++r) {
      average.input = ranks.in(r);
      average.output = ranks.out(r) + scan.bytes() + kGuard;
      ranks.launch(r, average, shape);
      launch(ranks, scan, r);
    }
    ranks.synchronize();
    for (int r = 0; r < n; ++r) ranks.use(r);
    check(ranks, scan, inputs);
  }
}

TEST_F(GpuScans, OfAnyCountAndPlace) {
  for (const int n : counts_of_ranks()) {
    const Ranks ranks(n, kRoom);
    for (const std::uint64_t count : {1, 3, 4, 1000, 40'003, 700'001}) {
      if (kEmulated && count > (n > 3 ? 50'000U : 800'000U)) continue;
      for (const bool with_own : {true, false}) {
        run(ranks, {DataType::float32, ReduceOp::sum, count, with_own});
        run(ranks, {DataType::float32, ReduceOp::sum, count, with_own, true});
        if (count > 5000) continue;
        run(ranks, {DataType::float32, ReduceOp::sum, count, with_own, false, 4});
        run(ranks, {DataType::float16, ReduceOp::sum, count, with_own, true, 6});
        run(ranks, {DataType::int8, ReduceOp::sum, count, with_own, false, 3});
        run(ranks, {DataType::uint8, ReduceOp::max, count, with_own, true, 1});
      }
    }
  }
}

// Rank 0 waits for nobody's data and may run ahead; what comes next uses the other half of the
// slots, or all of them.
TEST_F(GpuScans, FollowEachOtherAndOtherKernels) {
  for (const int n : {2, 3, 4}) {
    const Ranks ranks(n, kRoom);
    for (const std::uint64_t count : {100, 200'001}) {
      const Scan scan{DataType::float32, ReduceOp::sum, count, true};
      const std::vector<Bytes_> inputs = inputs_of(ranks, scan);
      prepare(ranks, scan, inputs);
      for (int r = 0; r < n; ++r) {
        ranks.use(r);
        if (r == static_cast<int>(count) % n) enqueue_delay(300'000, ranks.stream(r));
        for (int call = 0; call < 6; ++call) {
          launch(ranks, scan, r);
          std::byte* const at = ranks.in(r) + (8 << 20);
          const std::uint64_t bytes = call % 2 == 0 ? 64 : 3'000'000;
          ranks.launch(r, {at, at, bytes, DataType::uint32, ReduceOp::sum},
                       choose(ranks.host(), bytes));
        }
      }
      ranks.synchronize();
      check(ranks, scan, inputs);
    }
  }
}

// What stands for an empty slot, as data of rank 0 that rank 1 gets.
TEST_F(GpuScans, AnyBitsArrive) {
  const Ranks ranks(3, kRoom);
  const Scan scan{DataType::uint64, ReduceOp::sum, 2048, true};
  std::vector<Bytes_> inputs = inputs_of(ranks, scan);
  for (Bytes_& input : inputs) {
    for (std::uint64_t i = 0; i < scan.count; i += 2) {
      const std::uint64_t high = i % 3 == 0 ? kSentinelHigh : i % 3 == 1 ? kEscapeHigh : i;
      std::memcpy(input.data() + i * 8, &kSentinelLow, 8);
      std::memcpy(input.data() + i * 8 + 8, &high, 8);
    }
  }
  for (int round = 0; round < 3; ++round) {
    prepare(ranks, scan, inputs);
    for (int r = 0; r < ranks.size(); ++r) launch(ranks, scan, r);
    ranks.synchronize();
    check(ranks, scan, inputs);
  }
}

// One operand is copied: a NaN keeps its bits.
TEST_F(GpuScans, OfOneOperandAreItsBits) {
  const Ranks ranks(2, kRoom);
  for (const DataType type : {DataType::float32, DataType::float16, DataType::float8_e4m3}) {
    const Scan scan{type, ReduceOp::sum, 333, false};
    std::vector<Bytes_> inputs = inputs_of(ranks, scan);
    std::fill(inputs[0].begin(), inputs[0].end(), std::byte{0xff});
    prepare(ranks, scan, inputs);
    for (int r = 0; r < ranks.size(); ++r) launch(ranks, scan, r);
    ranks.synchronize();
    check(ranks, scan, inputs);
  }
}

TEST_F(GpuScans, ARankThatDoesNotComeIsNamedByAll) {
  const int n = 3;
  const Ranks ranks(n, kRoom, 0.4);
  for (int r = 0; r < 2; ++r) launch(ranks, {DataType::int32, ReduceOp::sum, 1000}, r);
  ranks.synchronize();
  for (int r = 0; r < 2; ++r) {
    const KernelError failure = ranks.path(r).kernel_error();
    EXPECT_TRUE(failure.happened);
    EXPECT_FALSE(failure.disagrees);
    EXPECT_EQ(index(failure.peer), 2);
  }
}

}  // namespace
}  // namespace gdrx::gpu
