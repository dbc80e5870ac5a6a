// SPDX-License-Identifier: Apache-2.0
// Registered memory of ranks in one process, and calls that use it. Skipped without a GPU.
#include <gtest/gtest.h>

#include <algorithm>

#include "mpi-tests/data.hpp"
#include "tests/gpu/ranks.hpp"
#include "tests/gpu/segments.hpp"

namespace gdrx::gpu {
namespace {

class GpuWindows : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};

const Deadline kNever = Deadline::never();

/// The ranks' answers to an attempt to register `memory[r]`, of `bytes[r]`.
std::vector<Result<WindowId>> try_register(const Ranks& ranks,
                                           const std::vector<std::byte*>& memory,
                                           const std::vector<std::uint64_t>& bytes) {
  std::vector<std::unique_ptr<ExportedMemory>> offers;
  std::vector<Blob> tickets;
  for (int r = 0; r < ranks.size(); ++r) {
    ranks.use(r);
    const auto at = static_cast<std::size_t>(r);
    offers.push_back(must(ranks.path(r).offer(memory[at], bytes[at])));
    tickets.push_back(offers.back()->ticket());
  }
  std::vector<Result<WindowId>> answers;
  for (int r = 0; r < ranks.size(); ++r) {
    answers.push_back(ranks.path(r).open_window(tickets, kNever));
  }
  return answers;
}

WindowId register_all(const Ranks& ranks, const std::vector<std::byte*>& memory,
                      std::uint64_t bytes) {
  const auto answers =
      try_register(ranks, memory, std::vector<std::uint64_t>(memory.size(), bytes));
  for (const auto& answer : answers) {
    EXPECT_TRUE(answer) << answer.error().what;
    EXPECT_EQ(must(answer), must(answers[0]));
  }
  return must(answers[0]);
}

void close_all(const Ranks& ranks, WindowId window) {
  for (int r = 0; r < ranks.size(); ++r) ranks.path(r).close_window(window);
}

struct Buffers {
  std::vector<std::byte*> in;
  std::vector<std::byte*> out;
};

Buffers own_buffers(const Ranks& ranks) {
  Buffers buffers;
  for (int r = 0; r < ranks.size(); ++r) {
    buffers.in.push_back(ranks.in(r));
    buffers.out.push_back(ranks.out(r));
  }
  return buffers;
}

/// One call on all ranks, of `count` elements from `in` + `from` into `out` + `to`, compared with
/// the host's reference; and nothing is written around it.
void check_call(const Ranks& ranks, const Buffers& buffers, const Shape& shape, DataType type,
                ReduceOp op, std::uint64_t count, std::uint64_t from = 0, std::uint64_t to = 0) {
  const std::uint64_t bytes = count * size_of(type);
  const bench::DataKey key{type, op, ranks.size(), count * 31 + bytes};
  const std::uint64_t touched = to + bytes + 64;
  std::vector<std::byte> data(bytes);
  for (int r = 0; r < ranks.size(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    ranks.use(r);
    bench::fill_input(key, r, data.data(), count);
    must(cudaMemset(buffers.out[at], 0xa5, touched), "memset");
    must(cudaMemcpy(buffers.in[at] + from, data.data(), bytes, cudaMemcpyHostToDevice), "copy");
    must(cudaDeviceSynchronize(), "memset");
  }
  for (int r = 0; r < ranks.size(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    ranks.launch(r, {buffers.in[at] + from, buffers.out[at] + to, bytes, type, op}, shape);
  }
  ranks.synchronize();
  std::vector<std::byte> expected(bytes);
  bench::fill_expected(key, expected.data(), 0, count);
  for (int r = 0; r < ranks.size(); ++r) {
    ranks.use(r);
    std::vector<std::byte> got(touched);
    must(cudaMemcpy(got.data(), buffers.out[static_cast<std::size_t>(r)], touched,
                    cudaMemcpyDeviceToHost),
         "copy");
    EXPECT_EQ(bench::count_wrong(got.data() + to, expected.data(), size_of(type), count), 0)
        << to_string(shape.kernel) << ' ' << to_string(type) << ' ' << to_string(op) << ", "
        << count << " elements, rank " << r << " of " << ranks.size();
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (i >= to && i < to + bytes) continue;
      ASSERT_EQ(got[i], std::byte{0xa5}) << "written outside at " << i;
    }
  }
}

void check_direct(const Ranks& ranks, const Buffers& buffers, DataType type, ReduceOp op,
                  std::uint64_t count, std::uint64_t from = 0, std::uint64_t to = 0) {
  const std::uint64_t bytes = count * size_of(type);
  for (int r = 0; r < ranks.size(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    ASSERT_EQ(ranks.path(r).reaches(buffers.in[at] + from, buffers.out[at] + to, bytes),
              from % sizeof(Pack) == 0 && to % sizeof(Pack) == 0);
  }
  check_call(ranks, buffers, *shape_of(Kernel::direct, ranks.host(), bytes), type, op, count, from,
             to);
}

std::vector<int> counts() {
  return kEmulated || gpu_count() < 2 ? std::vector{2, 4} : std::vector{2, 3, 4, 8, 16};
}

TEST_F(GpuWindows, EveryTypeAndOperatorIsRight) {
  for (const int n : counts()) {
    const Ranks ranks(n, 8 << 20);
    const Buffers buffers = own_buffers(ranks);
    register_all(ranks, buffers.in, 8 << 20);
    register_all(ranks, buffers.out, 8 << 20);
    for (std::size_t type = 0; type < kGpuTypeCount; ++type) {
      for (std::size_t op = 0; op < kGpuOpCount; ++op) {
        for (const std::uint64_t count : {1, 7, 1021, 16384, 300007}) {
          check_direct(ranks, buffers, static_cast<DataType>(type), static_cast<ReduceOp>(op),
                       count);
        }
      }
    }
  }
}

TEST_F(GpuWindows, AnySizeIsRight) {
  const Ranks ranks(std::max(2, gpu_count()), 72 << 20);
  const Buffers buffers = own_buffers(ranks);
  register_all(ranks, buffers.in, 72 << 20);
  register_all(ranks, buffers.out, 72 << 20);
  for (const std::uint64_t count : {1, 3, 4, 5, 1000, 65537, 983040, 1000003, 17000001}) {
    check_direct(ranks, buffers, DataType::float32, ReduceOp::sum, count);
  }
}

TEST_F(GpuWindows, AnyAlignmentAndInPlace) {
  const Ranks ranks(std::max(2, gpu_count()), 4 << 20);
  const Buffers apart = own_buffers(ranks);
  register_all(ranks, apart.in, 4 << 20);
  register_all(ranks, apart.out, 4 << 20);
  const Buffers in_place{apart.out, apart.out};
  for (const std::uint64_t count : {1, 15, 1021, 500009}) {
    for (const auto& [from, to] : {std::pair(2, 6), std::pair(0, 8), std::pair(16, 0)}) {
      check_direct(ranks, apart, DataType::bfloat16, ReduceOp::max, count,
                   static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to));
    }
    check_direct(ranks, apart, DataType::uint8, ReduceOp::sum, count, 1, 3);
    for (const std::uint64_t shift : {0, 2, 16}) {
      check_direct(ranks, in_place, DataType::bfloat16, ReduceOp::sum, count, shift, shift);
    }
  }
}

// In and out of one registration; at each rank's own place in its allocation.
TEST_F(GpuWindows, APartOfAnAllocationIsRegistered) {
  const Ranks ranks(std::max(2, gpu_count()), 16 << 20);
  Buffers buffers;
  for (int r = 0; r < ranks.size(); ++r) {
    buffers.in.push_back(ranks.in(r) + 4096 * r + 256);
    buffers.out.push_back(buffers.in.back() + (2 << 20));
  }
  register_all(ranks, buffers.in, 4 << 20);
  check_direct(ranks, buffers, DataType::float32, ReduceOp::sum, 400001);
  check_direct(ranks, buffers, DataType::int32, ReduceOp::sum, 1001, 1024, 16);
  EXPECT_FALSE(ranks.path(0).reaches(buffers.in[0], buffers.out[0], (2 << 20) + 1));
  EXPECT_FALSE(ranks.path(0).reaches(buffers.in[0] - 1, buffers.out[0], 16));
  EXPECT_FALSE(ranks.path(0).reaches(buffers.in[0], ranks.out(0), 16));
}

TEST_F(GpuWindows, MemoryOfOneHandleAndOfSeveral) {
  const Ranks ranks(std::max(2, gpu_count()), 4096);
  const std::vector<std::vector<std::uint64_t>> layouts{{8}, {1, 1, 1, 1, 1, 1, 1, 1}, {1, 6, 1}};
  for (const bool exportable : {true, false}) {  // within a process it need not be
    for (const auto& pages : layouts) {
      std::vector<std::unique_ptr<Segments>> segments;
      Buffers buffers;
      for (int r = 0; r < ranks.size(); ++r) {
        ranks.use(r);
        segments.push_back(std::make_unique<Segments>(r % gpu_count(), pages, exportable));
        buffers.in.push_back(segments.back()->data() + 4096);
        buffers.out.push_back(buffers.in.back() + (8 << 20));
      }
      const WindowId window = register_all(ranks, buffers.in, 15 << 20);
      check_direct(ranks, buffers, DataType::float32, ReduceOp::sum, 1700003);
      check_direct(ranks, buffers, DataType::bfloat16, ReduceOp::sum, 1003, (2 << 20) - 510, 2);
      close_all(ranks, window);
    }
  }
}

TEST_F(GpuWindows, MemoryFreedAfterItsEndComesBackAtTheSameAddress) {
  const Ranks ranks(std::max(2, gpu_count()), 4096);
  constexpr std::uint64_t kCount = 1 << 20;
  std::vector<std::byte*> before;
  int same = 0;
  for (int round = 0; round < 6; ++round) {
    Buffers buffers;
    for (int r = 0; r < ranks.size(); ++r) {
      ranks.use(r);
      buffers.in.push_back(allocate<std::byte>(kCount * 8 + 256));
      buffers.out.push_back(buffers.in.back() + kCount * 4);
    }
    same += buffers.in == before ? 1 : 0;
    if (round % 3 == 2) {  // not registered, where a window was
      for (int r = 0; r < ranks.size(); ++r) {
        const auto at = static_cast<std::size_t>(r);
        EXPECT_FALSE(ranks.path(r).reaches(buffers.in[at], buffers.out[at], 16));
      }
      check_call(ranks, buffers, choose(ranks.host(), kCount * 4), DataType::float32, ReduceOp::sum,
                 kCount);
    } else {
      const WindowId window = register_all(ranks, buffers.in, kCount * 8);
      check_direct(ranks, buffers, DataType::float32, ReduceOp::sum, kCount - 16);
      close_all(ranks, window);
    }
    for (int r = 0; r < ranks.size(); ++r) {
      ranks.use(r);
      cudaFree(buffers.in[static_cast<std::size_t>(r)]);
    }
    before = buffers.in;
  }
  EXPECT_GT(same, 0) << "the allocator gave other addresses each time: nothing was tested";
}

TEST_F(GpuWindows, TheSameRangeAgainIsCountedAndAnotherOverlapRefused) {
  const Ranks ranks(2, 1 << 20);
  const Buffers buffers = own_buffers(ranks);
  const WindowId first = register_all(ranks, buffers.in, 1 << 20);
  EXPECT_EQ(register_all(ranks, buffers.in, 1 << 20), first);
  const WindowId other = register_all(ranks, buffers.out, 1 << 20);
  EXPECT_NE(other, first);
  for (const auto& [from, bytes] : {std::pair(0, 100), std::pair(100, 1 << 20)}) {
    const auto refused = ranks.path(0).offer(ranks.in(0) + from, static_cast<std::uint64_t>(bytes));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::invalid_argument);
    EXPECT_NE(refused.error().what.find("registered already"), std::string::npos);
  }
  close_all(ranks, first);
  EXPECT_TRUE(ranks.path(0).reaches(ranks.in(0), ranks.out(0), 1 << 20));
  check_direct(ranks, buffers, DataType::float32, ReduceOp::sum, 1000);
  close_all(ranks, first);
  EXPECT_FALSE(ranks.path(0).reaches(ranks.in(0), ranks.out(0), 1 << 20));
  EXPECT_TRUE(ranks.path(0).reaches(ranks.out(0), ranks.out(0), 1 << 20));
}

TEST_F(GpuWindows, SizesThatDifferOpenNothingAndSpoilNothing) {
  const Ranks ranks(2, 1 << 20);
  const Buffers buffers = own_buffers(ranks);
  for (const auto& answer : try_register(ranks, buffers.in, {4096, 4097})) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Errc::mismatch);
    EXPECT_NE(answer.error().what.find("4096"), std::string::npos);
    EXPECT_NE(answer.error().what.find("4097"), std::string::npos);
  }
  EXPECT_FALSE(ranks.path(0).reaches(ranks.in(0), ranks.in(0), 1));
  register_all(ranks, buffers.in, 1 << 20);
  register_all(ranks, buffers.out, 1 << 20);
  check_direct(ranks, buffers, DataType::float32, ReduceOp::sum, 1000);
}

TEST_F(GpuWindows, WhatPeersCannotMapIsRefusedWithTheReason) {
  const Ranks ranks(2, 1 << 20);
  ranks.use(0);
  const auto reason = [&](void* memory, std::uint64_t bytes) {
    const auto made = ranks.path(0).offer(memory, bytes);
    return made ? Text() : made.error().what;
  };
  EXPECT_NE(reason(ranks.in(0), 1 << 30).find("not within one allocation"), std::string::npos);
  EXPECT_NE(reason(ranks.in(0), 0).find("cannot be registered"), std::string::npos);
  if (gpu_count() > 1) {
    EXPECT_NE(reason(ranks.in(1), 16).find("on GPU 1"), std::string::npos);
  }
  void* memory = nullptr;
  must(cudaMallocHost(&memory, 4096), "cudaMallocHost");
  EXPECT_NE(reason(memory, 4096).find("not memory of a GPU"), std::string::npos);
  cudaFreeHost(memory);
  must(cudaMallocManaged(&memory, 4096), "cudaMallocManaged");
  EXPECT_NE(reason(memory, 4096).find("managed"), std::string::npos);
  cudaFree(memory);
  must(cudaMallocAsync(&memory, 4096, ranks.stream(0)), "cudaMallocAsync");
  must(cudaStreamSynchronize(ranks.stream(0)), "cudaMallocAsync");
  EXPECT_NE(reason(memory, 4096).find("cudaMallocAsync"), std::string::npos);
  must(cudaFreeAsync(memory, ranks.stream(0)), "cudaFreeAsync");
  const Segments segments(0, {1, 1});
  EXPECT_NE(reason(segments.data() + 16, segments.bytes()).find("not all mapped"),
            std::string::npos);
}

TEST_F(GpuWindows, ACapturedCallCanBeReplayed) {
  const Ranks ranks(std::max(2, gpu_count()), 1 << 20);
  const Buffers buffers = own_buffers(ranks);
  register_all(ranks, buffers.out, 1 << 20);
  constexpr std::uint64_t kCount = 5000;
  const Shape shape = *shape_of(Kernel::direct, ranks.host(), kCount * 4);
  std::vector<cudaGraphExec_t> graphs(static_cast<std::size_t>(ranks.size()));
  for (int r = 0; r < ranks.size(); ++r) {
    ranks.use(r);
    const std::vector<std::uint32_t> ones(kCount, 1);
    must(cudaMemcpy(ranks.out(r), ones.data(), kCount * 4, cudaMemcpyHostToDevice), "copy");
    must(cudaDeviceSynchronize(), "copy");
    cudaGraph_t graph = nullptr;
    must(cudaStreamBeginCapture(ranks.stream(r), cudaStreamCaptureModeThreadLocal), "capture");
    // In place: each call multiplies by the number of ranks.
    for (int i = 0; i < 3; ++i) {
      ranks.launch(r, {ranks.out(r), ranks.out(r), kCount * 4, DataType::uint32, ReduceOp::sum},
                   shape);
    }
    must(cudaStreamEndCapture(ranks.stream(r), &graph), "capture");
    must(cudaGraphInstantiate(&graphs[static_cast<std::size_t>(r)], graph, 0), "instantiate");
    cudaGraphDestroy(graph);
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
    ranks.use(r);
    std::vector<std::uint32_t> got(kCount);
    must(cudaMemcpy(got.data(), ranks.out(r), kCount * 4, cudaMemcpyDeviceToHost), "copy");
    EXPECT_EQ(got, std::vector<std::uint32_t>(kCount, expected));
    cudaGraphExecDestroy(graphs[static_cast<std::size_t>(r)]);
  }
}

// The contract is broken: rank 1 means another place. No wrong result without a word.
TEST_F(GpuWindows, PlacesThatDifferEndTheCallWithTheReason) {
  const Ranks ranks(2, 1 << 20, 0.5);
  const Buffers buffers = own_buffers(ranks);
  register_all(ranks, buffers.in, 1 << 20);
  register_all(ranks, buffers.out, 1 << 20);
  const Shape shape = *shape_of(Kernel::direct, ranks.host(), 4096);
  for (int r = 0; r < 2; ++r) {
    ranks.launch(r, {ranks.in(r) + 4096 * r, ranks.out(r), 4096, DataType::float32, ReduceOp::sum},
                 shape);
  }
  ranks.synchronize();
  EXPECT_TRUE(ranks.path(0).kernel_error().happened || ranks.path(1).kernel_error().happened);
}

// Of a communicator that failed the owner is gone first, and then its GPU is waited for.
TEST_F(GpuWindows, AllocatedMemoryLivesAsLongAsItsOwnerOrAnyWindow) {
  const Ranks ranks(1, 4096);
  const auto is_alive = [](const std::byte* memory) {
    cudaPointerAttributes found{};
    const bool known = cudaPointerGetAttributes(&found, memory) == cudaSuccess;
    cudaGetLastError();
    return known && found.type == cudaMemoryTypeDevice;
  };
  auto owner = must(ranks.path(0).allocate(4096));
  std::byte* const memory = owner->data();
  EXPECT_TRUE(is_alive(memory));
  const WindowId window = register_all(ranks, {memory}, 4096);
  owner.reset();
  EXPECT_TRUE(is_alive(memory));
  close_all(ranks, window);
  EXPECT_FALSE(is_alive(memory));
}

}  // namespace
}  // namespace gdrx::gpu
