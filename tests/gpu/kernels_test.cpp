// SPDX-License-Identifier: Apache-2.0
// Every kernel on every GPU of this host, ranks of one process. Skipped without a GPU.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "collectives/reduce/reducer.hpp"
#include "mpi-tests/data.hpp"
#include "tests/gpu/delay.hpp"
#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {
namespace {

constexpr Kernel kKernels[] = {Kernel::one_shot, Kernel::two_shot, Kernel::ring, Kernel::tree};

class GpuKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};

struct Layout {
  std::uint64_t input_shift = 0;
  std::uint64_t output_shift = 0;
  bool in_place = false;
};

/// Runs one call on all ranks; returns each rank's output. `inputs`: one a rank.
std::vector<std::vector<std::byte>> run(const Ranks& ranks, const Shape& shape, DataType type,
                                        ReduceOp op,
                                        const std::vector<std::vector<std::byte>>& inputs,
                                        const Layout& layout = {}) {
  const std::uint64_t bytes = inputs[0].size();
  const auto from = [&](int r) {
    return layout.in_place ? ranks.out(r) + layout.output_shift : ranks.in(r) + layout.input_shift;
  };
  for (int r = 0; r < ranks.size(); ++r) {
    ranks.use(r);
    must(cudaMemset(ranks.out(r), 0xa5, bytes + layout.output_shift + 64), "memset");
    must(cudaMemcpy(from(r), inputs[static_cast<std::size_t>(r)].data(), bytes,
                    cudaMemcpyHostToDevice),
         "copy");
    must(cudaDeviceSynchronize(), "memset");
  }
  for (int r = 0; r < ranks.size(); ++r) {
    ranks.launch(r, {from(r), ranks.out(r) + layout.output_shift, bytes, type, op}, shape);
  }
  ranks.synchronize();
  std::vector<std::vector<std::byte>> outputs;
  for (int r = 0; r < ranks.size(); ++r) {
    std::vector<std::byte> whole(bytes + layout.output_shift + 64);
    ranks.use(r);
    must(cudaMemcpy(whole.data(), ranks.out(r), whole.size(), cudaMemcpyDeviceToHost), "copy");
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (i >= layout.output_shift && i < layout.output_shift + bytes) continue;
      EXPECT_EQ(whole[i], std::byte{0xa5}) << "written outside at " << i;
    }
    const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(layout.output_shift);
    outputs.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(bytes));
  }
  return outputs;
}

void check_exact(const Ranks& ranks, const Shape& shape, DataType type, ReduceOp op,
                 std::uint64_t count, const Layout& layout = {}) {
  const std::uint64_t bytes = count * size_of(type);
  const bench::DataKey key{type, op, ranks.size(), count * 31 + bytes};
  std::vector<std::vector<std::byte>> inputs;
  for (int r = 0; r < ranks.size(); ++r) {
    inputs.emplace_back(bytes);
    bench::fill_input(key, r, inputs.back().data(), count);
  }
  std::vector<std::byte> expected(bytes);
  bench::fill_expected(key, expected.data(), 0, count);
  const auto outputs = run(ranks, shape, type, op, inputs, layout);
  for (int r = 0; r < ranks.size(); ++r) {
    const auto& output = outputs[static_cast<std::size_t>(r)];
    const auto first = std::mismatch(expected.begin(), expected.end(), output.begin()).first;
    EXPECT_EQ(bench::count_wrong(output.data(), expected.data(), size_of(type), count), 0)
        << "first at byte " << first - expected.begin() << " of " << bytes << ": "
        << to_string(shape.kernel) << ' ' << shape.blocks << 'x' << shape.threads << 'x'
        << shape.unroll << ' ' << to_string(type) << ' ' << to_string(op) << ", " << count
        << " elements, rank " << r << " of " << ranks.size();
  }
}

void check_exact(const Ranks& ranks, Kernel kernel, DataType type, ReduceOp op, std::uint64_t count,
                 const Layout& layout = {}) {
  const auto shape = shape_of(kernel, ranks.host(), count * size_of(type));
  if (shape) check_exact(ranks, *shape, type, op, count, layout);
}

TEST_F(GpuKernels, EveryTypeAndOperatorIsRightOnEveryRankCount) {
  for (const int n : rank_counts()) {
    const Ranks ranks(n, 1 << 20);
    for (const Kernel kernel : kKernels) {
      for (std::size_t type = 0; type < kGpuTypeCount; ++type) {
        for (std::size_t op = 0; op < kGpuOpCount; ++op) {
          for (const std::uint64_t count : {1, 7, 1021, 16384, 70001}) {
            check_exact(ranks, kernel, static_cast<DataType>(type), static_cast<ReduceOp>(op),
                        count);
          }
        }
      }
    }
  }
}

TEST_F(GpuKernels, EverySizeIsRight) {
  for (const int n : rank_counts()) {
    const Ranks ranks(n, 72 << 20);
    for (const Kernel kernel : kKernels) {
      for (const std::uint64_t count :
           {1, 3, 4, 5, 100, 1000, 65536, 65537, 245761, 983040, 1000003, 4194304, 17000001}) {
        if (count * static_cast<std::uint64_t>(n) > 70'000'000) continue;  // the host is slow
        check_exact(ranks, kernel, DataType::float32, ReduceOp::sum, count);
      }
    }
  }
}

// Of few tiles and of many: more than there are sets of slots for, which takes over 7.5 MiB.
TEST_F(GpuKernels, OneShotOfTwoInTilesIsRight) {
  const Ranks ranks(2, 72 << 20);
  for (const int unroll : {1, 2}) {
    for (const int blocks : {1, 7, 2 * ranks.host().blocks}) {
      for (const int threads : {32, 256}) {
        const Shape shape{Kernel::one_shot, blocks, threads, unroll, false, true};
        for (const std::uint64_t count : {1, 5, 1000, 65537, 1000003, 6000011}) {
          check_exact(ranks, shape, DataType::float32, ReduceOp::sum, count);
        }
      }
    }
    const Shape shape{Kernel::one_shot, 16, 128, unroll, false, true};
    for (std::size_t type = 0; type < kGpuTypeCount; ++type) {
      for (std::size_t op = 0; op < kGpuOpCount; ++op) {
        check_exact(ranks, shape, static_cast<DataType>(type), static_cast<ReduceOp>(op), 70001);
      }
    }
    for (const Layout layout : {Layout{1, 3, false}, Layout{0, 0, true}, Layout{5, 5, true}}) {
      check_exact(ranks, shape, DataType::bfloat16, ReduceOp::max, 9000011, layout);
    }
  }
}

TEST_F(GpuKernels, AnyAlignmentAndInPlace) {
  const Ranks ranks(std::max(2, gpu_count()), 4 << 20);
  for (const Kernel kernel : kKernels) {
    for (const Layout layout : {Layout{1, 3, false}, Layout{0, 8, false}, Layout{16, 0, false},
                                Layout{0, 0, true}, Layout{5, 5, true}}) {
      for (const std::uint64_t count : {1, 1021, 500009}) {
        check_exact(ranks, kernel, DataType::bfloat16, ReduceOp::max, count, layout);
      }
    }
  }
}

// Random bits of floats, infinities left in, NaN taken out: their payload is the processor's own.
TEST_F(GpuKernels, OneShotAndTwoShotGiveTheHostReducersBits) {
  const Ranks ranks(std::max(3, gpu_count()), 1 << 20);
  std::mt19937_64 random(7);
  for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16,
                              DataType::float64, DataType::float8_e4m3, DataType::float8_e5m2}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max}) {
      const std::uint64_t count = 40961;
      std::vector<std::vector<std::byte>> inputs;
      std::vector<const void*> sources;
      for (int r = 0; r < ranks.size(); ++r) {
        std::vector<float> values(count * 2);
        for (float& value : values) {
          value = std::ldexp(static_cast<float>(static_cast<std::int64_t>(random() % 4001) - 2000),
                             static_cast<int>(random() % 12) - 12);
        }
        inputs.emplace_back(count * size_of(type));
        // Narrow types take the upper bytes: finite for bfloat16; fp16 and fp8 by masking.
        auto* to = inputs.back().data();
        for (std::uint64_t i = 0; i < count; ++i) {
          if (type == DataType::float32) std::memcpy(to + i * 4, &values[i], 4);
          if (type == DataType::float64) {
            const double wide = values[i] * 1.1;
            std::memcpy(to + i * 8, &wide, 8);
          }
          const auto bits = static_cast<std::uint16_t>(random());
          const std::uint16_t half = type == DataType::float16
                                         ? static_cast<std::uint16_t>(bits & 0xbbffU)
                                         : static_cast<std::uint16_t>(bits & 0xbfffU);
          if (size_of(type) == 2) std::memcpy(to + i * 2, &half, 2);
          const auto narrow = static_cast<std::uint8_t>(bits & 0xbbU);
          if (size_of(type) == 1) std::memcpy(to + i, &narrow, 1);
        }
        sources.push_back(inputs.back().data());
      }
      std::vector<std::byte> expected(count * size_of(type));
      for (int r = 0; r < ranks.size(); ++r) {
        sources[static_cast<std::size_t>(r)] = inputs[static_cast<std::size_t>(r)].data();
      }
      reduce::reduce(expected.data(), sources, count, type, op,
                     op == ReduceOp::avg ? ranks.size() : 0);
      for (const Kernel kernel : {Kernel::one_shot, Kernel::two_shot}) {
        const auto shape = shape_of(kernel, ranks.host(), expected.size());
        ASSERT_TRUE(shape);
        for (const auto& output : run(ranks, *shape, type, op, inputs)) {
          EXPECT_EQ(bench::count_wrong(output.data(), expected.data(), size_of(type), count), 0)
              << to_string(kernel) << ' ' << to_string(type) << ' ' << to_string(op);
        }
      }
    }
  }
}

// What an empty slot holds, and its escape, are data like any other.
TEST_F(GpuKernels, DataThatLooksLikeAnEmptySlotArrives) {
  const Ranks ranks(std::max(2, gpu_count()), 1 << 20);
  const std::uint64_t patterns[][2] = {{kSentinelLow, kSentinelHigh}, {kSentinelLow, kEscapeHigh}};
  for (const Kernel kernel : kKernels) {
    const std::uint64_t count = 4096;
    std::vector<std::byte> data(count * 8);
    for (std::uint64_t i = 0; i < count; i += 2) {
      std::memcpy(data.data() + i * 8, patterns[i / 2 % 3 == 0 ? 1 : 0], 16);
    }
    const std::vector inputs(static_cast<std::size_t>(ranks.size()), data);
    const auto shape = shape_of(kernel, ranks.host(), data.size());
    if (!shape) continue;
    for (int repeat = 0; repeat < 5; ++repeat) {
      for (const auto& output : run(ranks, *shape, DataType::uint64, ReduceOp::max, inputs)) {
        EXPECT_EQ(output, data) << to_string(kernel);
      }
      if (kernel != Kernel::one_shot || ranks.size() != 2) continue;
      const Shape tiled{kernel, 3, 64, 2, false, true};
      for (const auto& output : run(ranks, tiled, DataType::uint64, ReduceOp::max, inputs)) {
        EXPECT_EQ(output, data) << "in tiles";
      }
    }
  }
}

// Shapes, sizes and kernels change from call to call, and ranks are late at random.
TEST_F(GpuKernels, CallsOfEveryKindFollowEachOther) {
  for (const int n : {2, std::max(2, gpu_count())}) {
    const Ranks ranks(n, 8 << 20);
    std::mt19937 random(11);
    std::vector<StressState*> states;
    for (int r = 0; r < n; ++r) {
      ranks.use(r);
      states.push_back(allocate<StressState>(1));
      load_delays();
    }
    constexpr std::uint64_t kCalls = 3000;
    for (std::uint64_t call = 0; call < kCalls; ++call) {
      const auto words = static_cast<std::uint32_t>(random() % 16 == 0 ? 1 + random() % 2000000
                                                                       : 1 + random() % 20000);
      const Kernel kernel = kKernels[random() % std::size(kKernels)];
      auto shape = shape_of(kernel, ranks.host(), words * 4);
      if (!shape) shape = choose(ranks.host(), words * 4);
      if (n == 2 && random() % 4 == 0) {
        const int unroll = 1 + static_cast<int>(random() % 2);
        shape =
            Shape{Kernel::one_shot, 1 + static_cast<int>(random() % 100), 64, unroll, false, true};
      }
      for (int r = 0; r < n; ++r) {
        ranks.use(r);
        const auto at = static_cast<std::size_t>(r);
        auto* in = reinterpret_cast<std::uint32_t*>(ranks.in(r));
        auto* out = reinterpret_cast<std::uint32_t*>(ranks.out(r));
        enqueue_fill(in, words, r, 20000, states[at], ranks.stream(r));
        ranks.launch(r, {in, out, words * 4ULL, DataType::uint32, ReduceOp::sum}, *shape);
        enqueue_check(out, words, n, states[at], ranks.stream(r));
      }
      if (call % 200 == 199) ranks.synchronize();  // the launch queues are not endless
    }
    ranks.synchronize();
    for (int r = 0; r < n; ++r) {
      StressState state{};
      ranks.use(r);
      must(cudaMemcpy(&state, states[static_cast<std::size_t>(r)], sizeof state,
                      cudaMemcpyDeviceToHost),
           "copy");
      EXPECT_FALSE(ranks.path(r).kernel_error().happened) << "rank " << r << " gave up waiting";
      EXPECT_EQ(state.iteration, kCalls);
      EXPECT_EQ(state.wrong, 0) << "rank " << r << ", first in call " << state.first_wrong - 1;
      cudaFree(states[static_cast<std::size_t>(r)]);
    }
  }
}

TEST_F(GpuKernels, ACapturedCallCanBeReplayed) {
  const Ranks ranks(std::max(2, gpu_count()), 1 << 20);
  const std::uint64_t count = 5000;
  for (const Kernel kernel : kKernels) {
    const auto shape = shape_of(kernel, ranks.host(), count * 4);
    if (!shape) continue;
    std::vector<cudaGraphExec_t> graphs(static_cast<std::size_t>(ranks.size()));
    for (int r = 0; r < ranks.size(); ++r) {
      ranks.use(r);
      cudaGraph_t graph = nullptr;
      must(cudaStreamBeginCapture(ranks.stream(r), cudaStreamCaptureModeGlobal), "capture");
      // In place: each call multiplies by the number of ranks.
      for (int i = 0; i < 3; ++i) {
        ranks.launch(r, {ranks.out(r), ranks.out(r), count * 4, DataType::uint32, ReduceOp::sum},
                     *shape);
      }
      must(cudaStreamEndCapture(ranks.stream(r), &graph), "capture");
      must(cudaGraphInstantiate(&graphs[static_cast<std::size_t>(r)], graph, 0), "instantiate");
      cudaGraphDestroy(graph);
      const std::vector<std::uint32_t> ones(count, 1);
      must(cudaMemcpy(ranks.out(r), ones.data(), count * 4, cudaMemcpyHostToDevice), "copy");
    }
    std::uint32_t expected = 1;
    for (int replay = 0; replay < 4; ++replay) {
      for (int r = 0; r < ranks.size(); ++r) {
        ranks.use(r);
        must(cudaGraphLaunch(graphs[static_cast<std::size_t>(r)], ranks.stream(r)), "launch");
      }
      for (int i = 0; i < 3; ++i) expected *= static_cast<std::uint32_t>(ranks.size());
    }
    ranks.synchronize();
    for (int r = 0; r < ranks.size(); ++r) {
      std::vector<std::uint32_t> got(count);
      ranks.use(r);
      must(cudaMemcpy(got.data(), ranks.out(r), count * 4, cudaMemcpyDeviceToHost), "copy");
      EXPECT_EQ(got, std::vector<std::uint32_t>(count, expected)) << to_string(kernel);
      cudaGraphExecDestroy(graphs[static_cast<std::size_t>(r)]);
    }
  }
}

TEST_F(GpuKernels, AChangeOfStreamKeepsTheOrder) {
  const Ranks ranks(std::max(2, gpu_count()), 1 << 20);
  const Shape shape = choose(ranks.host(), 4096);
  std::vector<cudaStream_t> second(static_cast<std::size_t>(ranks.size()));
  for (int r = 0; r < ranks.size(); ++r) {
    ranks.use(r);
    must(cudaStreamCreateWithFlags(&second[static_cast<std::size_t>(r)], cudaStreamNonBlocking),
         "stream");
    const std::vector<std::uint32_t> ones(1024, 1);
    must(cudaMemcpy(ranks.out(r), ones.data(), 4096, cudaMemcpyHostToDevice), "copy");
  }
  for (int i = 0; i < 10; ++i) {
    for (int r = 0; r < ranks.size(); ++r) {
      ranks.use(r);
      const cudaStream_t stream =
          i % 2 == 0 ? ranks.stream(r) : second[static_cast<std::size_t>(r)];
      if (i % 2 == 0 && r == 0) enqueue_delay(200000, stream);
      must(ranks.path(r).launch({ranks.out(r), ranks.out(r), 4096, DataType::uint32, ReduceOp::sum},
                                shape, stream));
    }
  }
  std::uint32_t expected = 1;
  for (int i = 0; i < 10; ++i) expected *= static_cast<std::uint32_t>(ranks.size());
  for (int r = 0; r < ranks.size(); ++r) {
    ranks.use(r);
    must(cudaDeviceSynchronize(), "synchronize");
    std::vector<std::uint32_t> got(1024);
    must(cudaMemcpy(got.data(), ranks.out(r), 4096, cudaMemcpyDeviceToHost), "copy");
    EXPECT_EQ(got, std::vector<std::uint32_t>(1024, expected));
    cudaStreamDestroy(second[static_cast<std::size_t>(r)]);
  }
}

}  // namespace
}  // namespace gdrx::gpu
